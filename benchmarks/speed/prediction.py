"""Measure rule predictions relative to a tree of scikit-learn, each case in fresh processes.

    python benchmarks/speed/prediction.py [--rows 1e6 1e7] [--processes 5] [--output FILE]

A process predicts the same rows by 50 rules and by the tree from which they were read, in turn. It
reports the ratios of the fastest calls, in wall and CPU time. The first call is not counted,
because it also loads modules. The results are minimum, median and maximum over the processes.
`memory` is the growth of the peak resident set during a prediction in MB, without the result.
`two_threads` is the time of one thread divided by the time of two threads. `sum_ratio` is the CPU
time of summing all numbers of the array, which the memory bandwidth limits, divided by ours.
`page_faults` and `tree_page_faults` count the page faults of a call per 1,000 rows: new arrays of
some megabytes come from the system, which clears each page at its first use.

`--piece N` predicts N rows per call, so other programs rarely interrupt a call.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import resource
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.tree import DecisionTreeClassifier

from skescore.rules import as_ruleset

N_FEATURES = 10
NAMES = [f"x{i}" for i in range(N_FEATURES)]
CONTAINERS = (
    "row-major",
    "column-major",
    "float32",
    "frame",
    "frame-of-columns",
    "polars",
    "arrow",
)
#: Only these containers use the compiled kernel.
ROW_MAJOR = ("row-major", "float32")
#: Largest ratio to the tree on the same container, by container and kernel.
LIMITS = {
    ("row-major", "numpy"): 0.5,
    ("frame", "numpy"): 0.3,
    ("frame-of-columns", "numpy"): 0.3,
    ("row-major", "numba"): 0.25,
}


def make_container(X: np.ndarray, kind: str) -> Any:
    """Return the rows as an array or table; polars and Arrow have several chunks."""
    if kind == "column-major":
        return np.asfortranarray(X)
    if kind == "float32":
        return X.astype(np.float32)
    if kind == "frame":
        return pd.DataFrame(X, columns=NAMES)
    columns = {name: X[:, j].copy() for j, name in enumerate(NAMES)}
    if kind == "frame-of-columns":
        return pd.DataFrame(columns)
    if kind == "polars":
        import polars as pl

        return pl.DataFrame(columns)
    if kind == "arrow":
        import pyarrow as pa

        return pa.Table.from_batches(pa.table(columns).to_batches(max_chunksize=1_000_000))
    return X


def measure_times(function: Callable[[], object]) -> tuple[float, float]:
    """Return the wall and CPU time of a call."""
    wall_start, cpu_start = time.perf_counter(), time.process_time()
    function()
    return time.perf_counter() - wall_start, time.process_time() - cpu_start


def count_page_faults(function: Callable[[], object]) -> int:
    """Return the number of page faults of a call that need no input."""
    start = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    function()
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - start


def peak_memory() -> float:
    """Return the largest resident set of this process so far, in MB."""
    with open("/proc/self/status", encoding="ascii") as file:
        return next(int(line.split()[1]) / 1024 for line in file if line.startswith("VmHWM"))


def reset_peak_memory() -> None:
    """Set the largest resident set of this process to the current one."""
    with open("/proc/self/clear_refs", "w", encoding="ascii") as file:
        file.write("5")


def measure(n_rows: int, kind: str, repeat: int, piece: int | None) -> dict[str, float]:
    """Measure one container in this process."""
    warnings.simplefilter("ignore")  # the tree was fitted without column names
    X = np.random.default_rng(0).normal(size=(n_rows, N_FEATURES))
    first_rows = X[:200_000]
    labels = (first_rows.sum(axis=1) > 0).astype(int) + (first_rows[:, 1] * first_rows[:, 2] > 0.5)
    tree = DecisionTreeClassifier(max_leaf_nodes=50, random_state=0).fit(first_rows, labels)
    rules = as_ruleset(tree)
    rows = make_container(X, kind)
    takes_tables = kind not in ("polars", "arrow")
    predictors: dict[str, Callable[[Any], Any]] = {
        "ours": rules.predict,
        "threads": lambda part: rules.predict(part, n_jobs=2),
        "tree": tree.predict if takes_tables else lambda part: tree.predict(X[: len(part)]),
        "sum": lambda part: X[: len(part)].sum(),
    }
    part = rows if piece is None else rows[:piece]
    assert len(rules) == 50
    assert (rules.predict(rows)[: len(first_rows)] == tree.predict(first_rows)).all()
    memory = None
    if sys.platform == "linux":
        reset_peak_memory()
        memory_before = peak_memory()
        result = rules.predict(rows)
        memory = peak_memory() - memory_before - result.nbytes / 2**20
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in predictors}
    for _ in range(repeat):
        for name, predict in predictors.items():
            times[name].append(measure_times(lambda predict=predict: predict(part)))
    wall = {name: min(t[0] for t in values) for name, values in times.items()}
    cpu = {name: min(t[1] for t in values) for name, values in times.items()}
    n_thousands = len(part) / 1000
    return {
        "page_faults": count_page_faults(lambda: predictors["ours"](part)) / n_thousands,
        "tree_page_faults": count_page_faults(lambda: predictors["tree"](part)) / n_thousands,
        "sum_ratio": cpu["sum"] / cpu["ours"],
        "ns_per_row": wall["ours"] / len(part) * 1e9,
        "tree_ns_per_row": wall["tree"] / len(part) * 1e9,
        "wall_ratio": wall["ours"] / wall["tree"],
        "cpu_ratio": cpu["ours"] / cpu["tree"],
        "median_ratio": statistics.median(
            ours[0] / theirs[0] for ours, theirs in zip(times["ours"], times["tree"], strict=True)
        ),
        "two_threads": wall["ours"] / wall["threads"],
        "memory": float("nan") if memory is None else memory,
    }


def run_processes(options: argparse.Namespace, n_rows: int, kind: str, kernel: str) -> list[dict]:
    """Measure one case in several fresh processes."""
    environment = {**os.environ, "SKESCORE_NUMBA": str(int(kernel == "numba"))}
    command = [sys.executable, __file__, "--worker", kind, "--rows", str(n_rows)]
    command += ["--repeat", str(options.repeat)]
    command += [] if options.piece is None else ["--piece", str(options.piece)]
    return [
        json.loads(subprocess.run(command, env=environment, check=True, capture_output=True).stdout)
        for _ in range(options.processes)
    ]


def has_numba() -> bool:
    try:
        import numba  # noqa: F401
    except ImportError:
        return False
    return True


def summarize(results: list[dict[str, float]], name: str) -> str:
    """Return the minimum, median and maximum of a figure over processes."""
    values = [result[name] for result in results]
    digits = 0 if name == "memory" or name.endswith("row") else 2
    numbers = (min(values), statistics.median(values), max(values))
    return " / ".join(f"{value:.{digits}f}" for value in numbers)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=float, nargs="+", default=[1e6, 1e7])
    parser.add_argument("--containers", nargs="+", choices=CONTAINERS, default=[*CONTAINERS])
    parser.add_argument("--kernels", nargs="+", choices=("numpy", "numba"))
    parser.add_argument("--processes", type=int, default=5)
    parser.add_argument("--repeat", type=int, default=7, help="calls per process")
    parser.add_argument("--piece", type=int, help="rows per call (default: all)")
    parser.add_argument("--output", type=Path, default=Path(__file__).with_name("prediction.csv"))
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        n_rows = int(options.rows[0])
        print(json.dumps(measure(n_rows, options.worker, options.repeat, options.piece)))
        return 0
    kernels = options.kernels or ["numpy", *(["numba"] if has_numba() else [])]
    figures = ("wall_ratio", "cpu_ratio", "two_threads", "ns_per_row", "tree_ns_per_row", "memory")
    figures += ("sum_ratio", "page_faults", "tree_page_faults")
    print(f"| rows | container | kernel | {' | '.join(figures)} | limit |")
    print("| --: | :-- | :-- |" + " --: |" * (len(figures) + 1))
    rows: list[dict[str, object]] = []
    for n_rows in map(int, options.rows):
        for kind in options.containers:
            for kernel in kernels if kind in ROW_MAJOR else ("numpy",):
                results = run_processes(options, n_rows, kind, kernel)
                cells = [summarize(results, name) for name in figures]
                limit = LIMITS.get((kind, kernel), "")
                print(
                    f"| {n_rows} | {kind} | {kernel} | {' | '.join(cells)} | {limit} |", flush=True
                )
                case = {"rows": n_rows, "container": kind, "kernel": kernel, "limit": limit}
                rows += [{**case, "process": i, **result} for i, result in enumerate(results)]
    with options.output.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
