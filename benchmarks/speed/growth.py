"""How time and memory of every registered extractor grow with the number of rows.

    python benchmarks/speed/growth.py [--max-rows 1000000] [--extractors cart gridex]
        [--csv growth.csv]

Rows are doubled four times, up to `--max-rows`; the ratios of the times are what counts. Every
figure comes from a process of its own: the best time of three fits (of the processor, one thread,
so that other work does not disturb it), and the memory that the first fit takes beyond what the
process held with the rows in place, in units of the rows. The black box is a formula that costs
next to nothing.
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
DOUBLINGS = 4
TIME_LIMIT, MEMORY_LIMIT = 2.2, 3.0
#: Parameters other than the defaults: a grid over all ten features has a cell per row.
PARAMETERS: dict[str, dict[str, Any]] = {
    "gridex": {"importance_threshold": 0.3},
    "gridrex": {"importance_threshold": 0.3},
}
#: A cell that takes longer is given up.
SECONDS_PER_CELL = 600.0


class Formula(BaseEstimator):
    """2 x0 + x1**2, plainly or in three classes; the rows are never copied."""

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


# --- one cell, in a process of its own -----------------------------------------------------------


def resident(field: str) -> int:
    """Bytes of memory in use now (VmRSS) or at most since the last reset (VmHWM)."""
    try:
        lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    except OSError:  # no Linux: only the most that was ever in use is known
        import resource

        unit = 1 if sys.platform == "darwin" else 1024
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(field + ":"))


def forget_peak() -> None:
    path = Path("/proc/self/clear_refs")
    if path.exists():
        path.write_text("5", encoding="ascii")


def measure(name: str, task: str, n: int) -> dict[str, float]:
    """Seconds and memory of one extractor on n rows."""
    warnings.simplefilter("ignore")
    threadpool_limits(1)
    X = np.random.default_rng(0).uniform(size=(n, N_FEATURES))
    model = FormulaClassifier() if task == "classification" else FormulaRegressor()
    extractor_type = extractor_class(name)
    parameters = dict(PARAMETERS.get(name, {}))
    if "random_state" in signature(extractor_type).parameters:
        parameters["random_state"] = 0
    extractor = extractor_type(FrozenEstimator(model), **parameters)
    extractor.fit(X[:1000].copy())  # what is imported or allocated when it is first used
    forget_peak()
    before = resident("VmRSS")
    times = []
    for repeat in range(3):
        start = time.process_time()
        extractor.fit(X)
        times.append(time.process_time() - start)
        if repeat == 0:
            memory = (resident("VmHWM") - before) / X.nbytes
        if sum(times) > SECONDS_PER_CELL / 4:
            break
    return {
        "seconds": min(times),
        "memory": memory,
        "n_rules": extractor.n_rules_,
        "calls": extractor.oracle_.n_calls,
        "asked": extractor.oracle_.n_rows,
    }


def measure_apart(name: str, task: str, n: int) -> dict[str, Any]:
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
    parser.add_argument("--csv", type=Path, help="where to write all figures")
    parser.add_argument("--cell", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.cell:
        print(json.dumps(measure(*json.loads(options.cell))))
        return 0
    print(
        f"| extractor | task | rows | seconds | over half the rows (at most {TIME_LIMIT}) "
        f"| memory over the rows (at most {MEMORY_LIMIT:g}) | rules | calls (rows asked) |"
    )
    print("| :-- | :-- | --: | --: | --: | --: | --: | --: |", flush=True)
    rows, over = [], []
    for name in options.extractors:
        for task in EXTRACTORS[name].tasks:
            half = None
            for k in reversed(range(DOUBLINGS + 1)):
                n = options.max_rows >> k
                cell = measure_apart(name, task, n)
                row = {"extractor": name, "task": task, "n": n, **cell}
                row["ratio"] = cell["seconds"] / half if half and "seconds" in cell else None
                half = cell.get("seconds")
                rows.append(row)
                print_row(row)
                if "error" in cell or (row["ratio"] or 0) > TIME_LIMIT:
                    over.append(row)
                elif k == 0 and cell["memory"] > MEMORY_LIMIT:
                    over.append(row)  # with few rows what the rows do not cause counts too much
                if "error" in cell:
                    break
    print(f"\n{len(rows) - len(over)} of {len(rows)} rows keep their limits")
    if options.csv:
        names = list(dict.fromkeys(key for row in rows for key in row))
        with options.csv.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, names)
            writer.writeheader()
            writer.writerows(rows)
    return 1 if over else 0


def print_row(row: dict[str, Any]) -> None:
    start = f"| {row['extractor']} | {row['task']} | {row['n']} "
    if "error" in row:
        print(f"{start}| {row['error']} | - | - | - | - |", flush=True)
        return
    ratio = "-" if row["ratio"] is None else f"{row['ratio']:.2f}"
    print(
        f"{start}| {row['seconds']:.4f} | {ratio} | {row['memory']:.2f} | {row['n_rules']} "
        f"| {row['calls']} ({row['asked']}) |",
        flush=True,
    )


if __name__ == "__main__":
    sys.exit(main())
