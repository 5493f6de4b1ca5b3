"""Measure how time and memory of every extractor grow with the number of rows.

    python benchmarks/speed/growth.py [--max-rows 1000000] [--extractors cart gridex]
        [--csv growth.csv]

The number of rows is doubled four times, up to `--max-rows`; compare the ratios of the times. Each
case runs in a separate process with one thread. It measures the best CPU time of three fits, and
the additional memory of the first fit relative to the size of the rows. The black box is a fast
formula.
"""

from __future__ import annotations

import argparse
import csv
import json
import subprocess
import sys
import time
import warnings
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.frozen import FrozenEstimator
from threadpoolctl import threadpool_limits

from skescore.registry import EXTRACTORS, extractor_class

N_FEATURES = 10
N_DOUBLINGS = 4
TIME_LIMIT, MEMORY_LIMIT = 2.2, 3.0
#: Parameters that differ from the defaults, because a grid over all ten features would have about
#: one cell per row.
PARAMETERS: dict[str, dict[str, Any]] = {
    "gridex": {"importance_threshold": 0.3},
    "gridrex": {"importance_threshold": 0.3},
}
#: Time limit of a cell in wall time.
SECONDS_PER_CELL = 600.0


class Formula(BaseEstimator):
    """Black box that computes 2 x0 + x1**2 without copying the rows."""

    n_features_in_ = N_FEATURES

    def fit(self, X: Any, y: Any) -> Formula:
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def value(self, X: Any) -> np.ndarray:
        X = np.asarray(X)
        return 2 * X[:, 0] + X[:, 1] ** 2


class FormulaClassifier(ClassifierMixin, Formula):
    classes_ = np.arange(3)

    def predict(self, X: Any) -> np.ndarray:
        return np.digitize(self.value(X), [1.0, 1.8])


class FormulaRegressor(RegressorMixin, Formula):
    def predict(self, X: Any) -> np.ndarray:
        return self.value(X)


# --- one cell, in a separate process -------------------------------------------------------------


def read_memory(field: str) -> int:
    """Return the current memory (VmRSS) or its peak since the last reset (VmHWM) in bytes."""
    try:
        lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    except OSError:  # without Linux, only the peak of the process is available
        import resource

        unit = 1 if sys.platform == "darwin" else 1024
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(field + ":"))


def reset_peak() -> None:
    path = Path("/proc/self/clear_refs")
    if path.exists():
        path.write_text("5", encoding="ascii")


def measure(name: str, task: str, n: int) -> dict[str, float]:
    """Measure the time and memory of an extractor on n rows."""
    warnings.simplefilter("ignore")
    threadpool_limits(1)
    X = np.random.default_rng(0).uniform(size=(n, N_FEATURES))
    model = FormulaClassifier() if task == "classification" else FormulaRegressor()
    extractor_type = extractor_class(name)
    parameters = dict(PARAMETERS.get(name, {}))
    if "random_state" in signature(extractor_type).parameters:
        parameters["random_state"] = 0
    extractor = extractor_type(FrozenEstimator(model), **parameters)
    extractor.fit(X[:1000].copy())  # the first use imports modules and allocates buffers
    reset_peak()
    memory_before = read_memory("VmRSS")
    times = []
    for repeat in range(3):
        start = time.process_time()
        extractor.fit(X)
        times.append(time.process_time() - start)
        if repeat == 0:
            memory = (read_memory("VmHWM") - memory_before) / X.nbytes
        if sum(times) > SECONDS_PER_CELL / 4:
            break
    return {
        "seconds": min(times),
        "memory": memory,
        "n_rules": extractor.n_rules_,
        "calls": extractor.oracle_.n_calls,
        "queried_rows": extractor.oracle_.n_rows,
    }


def measure_in_process(name: str, task: str, n: int) -> dict[str, Any]:
    cell = json.dumps([name, task, n])
    try:
        process = subprocess.run(
            [sys.executable, __file__, "--cell", cell],
            capture_output=True,
            text=True,
            timeout=SECONDS_PER_CELL,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return {"error": f"over {SECONDS_PER_CELL:g} s"}
    if process.returncode:
        return {"error": process.stderr.strip().splitlines()[-1][:200]}
    return json.loads(process.stdout.splitlines()[-1])


# --- all cells -----------------------------------------------------------------------------------


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--max-rows", type=int, default=1_000_000)
    parser.add_argument("--extractors", nargs="+", choices=EXTRACTORS, default=list(EXTRACTORS))
    parser.add_argument("--csv", type=Path, help="file for all results")
    parser.add_argument("--cell", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.cell:
        print(json.dumps(measure(*json.loads(options.cell))))
        return 0
    print(
        f"| extractor | task | rows | seconds | relative to half the rows (at most {TIME_LIMIT}) "
        f"| memory relative to the rows (at most {MEMORY_LIMIT:g}) | rules | calls (queried rows) |"
    )
    print("| :-- | :-- | --: | --: | --: | --: | --: | --: |", flush=True)
    rows, exceeded = [], []
    for name in options.extractors:
        for task in EXTRACTORS[name].tasks:
            half_seconds = None
            for k in reversed(range(N_DOUBLINGS + 1)):
                n = options.max_rows >> k
                cell = measure_in_process(name, task, n)
                row = {"extractor": name, "task": task, "n": n, **cell}
                row["ratio"] = (
                    cell["seconds"] / half_seconds if half_seconds and "seconds" in cell else None
                )
                half_seconds = cell.get("seconds")
                rows.append(row)
                print_row(row)
                if "error" in cell or (row["ratio"] or 0) > TIME_LIMIT:
                    exceeded.append(row)
                elif k == 0 and cell["memory"] > MEMORY_LIMIT:
                    exceeded.append(row)  # with few rows, fixed memory dominates
                if "error" in cell:
                    break
    print(f"\n{len(rows) - len(exceeded)} of {len(rows)} rows satisfy their limits")
    if options.csv:
        names = list(dict.fromkeys(key for row in rows for key in row))
        with options.csv.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, names)
            writer.writeheader()
            writer.writerows(rows)
    return 1 if exceeded else 0


def print_row(row: dict[str, Any]) -> None:
    head = f"| {row['extractor']} | {row['task']} | {row['n']} "
    if "error" in row:
        print(f"{head}| {row['error']} | - | - | - | - |", flush=True)
        return
    ratio = "-" if row["ratio"] is None else f"{row['ratio']:.2f}"
    print(
        f"{head}| {row['seconds']:.4f} | {ratio} | {row['memory']:.2f} | {row['n_rules']} "
        f"| {row['calls']} ({row['queried_rows']}) |",
        flush=True,
    )


if __name__ == "__main__":
    sys.exit(main())
