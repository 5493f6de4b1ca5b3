"""Predictions of 50 disjoint rules: single precision, two threads, and scikit-learn's own tree.

    python benchmarks/scale/predict.py --rows 10000000 --pairs 15

Two further ways tell what the machine gives: the sum of all numbers, how soon memory has them; two
processes with half of the rows each, which they have already, how much faster two processors are
(their own seconds are not counted).

Each way is measured beside float64 on one thread, the two in turn, `--pairs` times. Given are the
medians of the ratios of the pairs, by the clock and by the processor, with the lower and the upper
quartile, and the best pair: threads need processors that nothing else uses. With `--piece` each
pair predicts the next so many rows of the table, so short a time that other programs seldom come
in between.
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
#: What the processes predict: forked, they have it without a copy.
shared: dict[str, Any] = {}


def predict_part(start: int, stop: int) -> int:
    """Predict some rows in another process; how many."""
    return len(shared["rules"].predict(shared["rows"][start:stop]))


def spent(work: Callable[[], object]) -> tuple[float, float]:
    """Seconds of the clock and of processors."""
    begin, before = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - begin, time.process_time() - before


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--pairs", type=int, default=15)
    parser.add_argument("--ways", nargs="+", choices=VARIANTS, default=[*VARIANTS])
    parser.add_argument("--piece", type=int, help="rows that are predicted at a time; all")
    options = parser.parse_args()
    size = options.piece or options.rows
    rng = np.random.default_rng(0)
    double = rng.normal(size=(options.rows, 10))
    first = double[:200_000]
    labels = (first.sum(axis=1) > 0).astype(int) + (first[:, 1] * first[:, 2] > 0.5)
    tree = DecisionTreeClassifier(max_leaf_nodes=50, random_state=0).fit(first, labels)
    rules, single = as_ruleset(tree), double.astype(np.float32)
    assert (rules.predict(first) == tree.predict(first)).all()
    assert (rules.predict(single[:200_000]) == rules.predict(single[:200_000].astype(float))).all()
    assert (rules.predict(first, n_jobs=2) == rules.predict(first)).all()
    shared.update(rules=rules, rows=double)
    pool = ProcessPoolExecutor(2, multiprocessing.get_context("fork"))

    def in_processes(rows: slice) -> list[int]:
        middle = (rows.start + rows.stop) // 2
        return list(pool.map(predict_part, [rows.start, middle], [middle, rows.stop]))

    functions: dict[str, Callable[[slice], object]] = {
        "float64": lambda rows: rules.predict(double[rows]),
        "float32": lambda rows: rules.predict(single[rows]),
        "threads": lambda rows: rules.predict(double[rows], n_jobs=2),
        "processes": in_processes,
        "tree": lambda rows: tree.predict(double[rows]),
        "memory": lambda rows: double[rows].sum(),
    }

    def measured(name: str, pair: int) -> tuple[float, float]:
        start = pair * size % (options.rows - size + 1)
        return spent(lambda: functions[name](slice(start, start + size)))

    for name in options.ways:
        pairs = np.array(
            [(*measured("float64", i), *measured(name, i)) for i in range(options.pairs)]
        )
        for clock_name, at in (("clock", 0), ("processor", 1)):
            ratios = pairs[:, at + 2] / pairs[:, at]
            low, middle, high = np.quantile(ratios, [0.25, 0.5, 0.75])
            print(
                f"{name}, {clock_name}: {middle:.2f} ({low:.2f} to {high:.2f}, "
                f"least {ratios.min():.2f}) x float64 on one thread, "
                f"{np.median(pairs[:, at]):.4f} s; load {os.getloadavg()[0]:.1f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
