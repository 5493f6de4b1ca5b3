"""Compare the speed of predictions by 50 disjoint rules: precision, threads, scikit-learn's tree.

    python benchmarks/scale/predict.py --rows 10000000 --pairs 15

The variants are single precision, two threads, and scikit-learn's own tree. Two further variants
measure the limits of the machine: "memory" sums all numbers, which measures the memory bandwidth,
and "processes" predicts with two processes that already hold the rows, which measures the speedup
by two cores (the CPU time of these processes is not included).

Each variant and float64 on one thread are measured alternately, `--pairs` times. The output shows
the median of the ratios of the pairs, in wall time and CPU time, with both quartiles and the
minimum. Threads need idle cores. With `--piece`, each pair predicts only the next rows of the
table, so other programs rarely interrupt it.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import numpy as np
from sklearn.tree import DecisionTreeClassifier

from skescore.rules import as_ruleset

VARIANTS = ("float32", "threads", "processes", "tree", "memory")
#: Rules and rows of the forked processes, which share them without a copy.
shared_data: dict[str, Any] = {}


def predict_range(start: int, stop: int) -> int:
    """Predict a range of the shared rows; return their number."""
    return len(shared_data["rules"].predict(shared_data["rows"][start:stop]))


def measure_times(function: Callable[[], object]) -> tuple[float, float]:
    """Return the wall time and the CPU time of a call in seconds."""
    wall_start, cpu_start = time.perf_counter(), time.process_time()
    function()
    return time.perf_counter() - wall_start, time.process_time() - cpu_start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--pairs", type=int, default=15)
    parser.add_argument("--ways", nargs="+", choices=VARIANTS, default=[*VARIANTS])
    parser.add_argument("--piece", type=int, help="rows per prediction (default: all)")
    options = parser.parse_args()
    n_rows = options.piece or options.rows
    rng = np.random.default_rng(0)
    double = rng.normal(size=(options.rows, 10))
    first_rows = double[:200_000]
    labels = (first_rows.sum(axis=1) > 0).astype(int) + (first_rows[:, 1] * first_rows[:, 2] > 0.5)
    tree = DecisionTreeClassifier(max_leaf_nodes=50, random_state=0).fit(first_rows, labels)
    rules, single = as_ruleset(tree), double.astype(np.float32)
    assert (rules.predict(first_rows) == tree.predict(first_rows)).all()
    assert (rules.predict(single[:200_000]) == rules.predict(single[:200_000].astype(float))).all()
    assert (rules.predict(first_rows, n_jobs=2) == rules.predict(first_rows)).all()
    shared_data.update(rules=rules, rows=double)
    pool = ProcessPoolExecutor(2, multiprocessing.get_context("fork"))

    def predict_in_processes(rows: slice) -> list[int]:
        middle = (rows.start + rows.stop) // 2
        return list(pool.map(predict_range, [rows.start, middle], [middle, rows.stop]))

    functions: dict[str, Callable[[slice], object]] = {
        "float64": lambda rows: rules.predict(double[rows]),
        "float32": lambda rows: rules.predict(single[rows]),
        "threads": lambda rows: rules.predict(double[rows], n_jobs=2),
        "processes": predict_in_processes,
        "tree": lambda rows: tree.predict(double[rows]),
        "memory": lambda rows: double[rows].sum(),
    }

    def measure_pair(name: str, pair: int) -> tuple[float, float]:
        start = pair * n_rows % (options.rows - n_rows + 1)
        return measure_times(lambda: functions[name](slice(start, start + n_rows)))

    for name in options.ways:
        pairs = np.array(
            [(*measure_pair("float64", i), *measure_pair(name, i)) for i in range(options.pairs)]
        )
        for clock_name, column in (("wall time", 0), ("CPU time", 1)):
            ratios = pairs[:, column + 2] / pairs[:, column]
            low, middle, high = np.quantile(ratios, [0.25, 0.5, 0.75])
            print(
                f"{name}, {clock_name}: {middle:.2f} ({low:.2f} to {high:.2f}, "
                f"minimum {ratios.min():.2f}) x float64 on one thread, "
                f"{np.median(pairs[:, column]):.4f} s; load {os.getloadavg()[0]:.1f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
