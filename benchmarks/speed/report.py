"""Measure the time of a report on every rule relative to matching rules and rows.

    python benchmarks/speed/report.py [--quick]

Compare the ratios of two times of the same run. The functions are called alternately, and the best
time of each counts. Memory is the peak that a call allocates in addition to the rows and
labels. The exit code is 1 if a limit is exceeded. The limits are for a million rows, so `--quick`
has none.
"""

from __future__ import annotations

import argparse
import sys
import time
import tracemalloc
from collections.abc import Callable

import numpy as np

from skescore.metrics import (
    characteristics,
    rule_quality,
    rule_report,
)
from skescore.rules import Interval, Rule, RuleSet

N_FEATURES, N_RULES, N_CLASSES = 10, 100, 3
N_ROWS = 1_000_000
#: Seconds and mebibytes.
Cost = tuple[float, float]


def best_times(functions: list[Callable[[], object]], repeat: int) -> list[float]:
    """Return the seconds of the fastest call of each function; the functions are called in turn."""
    times = [np.inf] * len(functions)
    for _ in range(repeat + 1):  # the first call warms up
        for index, function in enumerate(functions):
            start = time.perf_counter()
            function()
            times[index] = min(times[index], time.perf_counter() - start)
    return times


def peak_memory(function: Callable[[], object]) -> float:
    """Return the peak of the mebibytes allocated during a call."""
    tracemalloc.start()
    function()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / 2**20


def make_example(task: str, voting: str, n_rows: int) -> tuple[RuleSet, np.ndarray, np.ndarray]:
    """Return rules with three intervals each, which cover about one row in forty, and rows."""
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(n_rows, N_FEATURES))
    y = 2 * X[:, 0] + X[:, 1] ** 2 + rng.normal(scale=0.1, size=n_rows)
    if task == "classification":
        y = np.digitize(y, [1.0, 1.8])
    rules = []
    for index in range(N_RULES):
        lower, width = rng.uniform(0, 0.6, 3), rng.uniform(0.2, 0.4, 3)
        premise = [
            Interval(int(feature), lower=float(low), upper=float(low + size))
            for feature, low, size in zip(
                rng.choice(N_FEATURES, 3, replace=False), lower, width, strict=True
            )
        ]
        output = index % N_CLASSES if task == "classification" else float(rng.uniform(0, 3))
        rules.append(Rule(premise, output, weight=float(rng.uniform(0.2, 1))))
    names = [f"x{index}" for index in range(N_FEATURES)]
    return RuleSet(rules, names, task=task, ordered=False, voting=voting), X, y


class Table:
    """Printer of Markdown tables that records exceeded limits."""

    def __init__(self) -> None:
        self.exceeded: list[str] = []
        self.n_satisfied = 0

    def section(self, title: str, peer: str) -> None:
        print(f"\n### {title}\n\n| case | ours (s) | {peer} (s) | ratio | limit | ours (MiB) |")
        print("| :-- | --: | --: | --: | --: | --: |")

    def add(self, case: str, ours: Cost, peer: float, limit: float | None) -> None:
        seconds, memory = ours
        ratio = seconds / peer
        text = "-" if limit is None else f"at most {limit:g}"
        print(
            f"| {case} | {seconds:.5f} | {peer:.5f} | {ratio:.2f} | {text} | {memory:.0f} |",
            flush=True,
        )
        if limit is not None and ratio > limit:
            self.exceeded.append(f"{case}: {ratio:.2f}")
        elif limit is not None:
            self.n_satisfied += 1


def measure_reports(table: Table, n_rows: int, repeat: int) -> None:
    for task, voting in (("classification", "votes"), ("regression", "mean")):
        rules, X, y = make_example(task, voting, n_rows)
        calls: dict[str, tuple[Callable[[], object], float | None]] = {
            "rule_report": (lambda r=rules, X=X, y=y: rule_report(r, X, y), 3.0),
            "rule_report, all measures": (
                lambda r=rules, X=X, y=y: rule_report(r, X, y, measures="all"),
                3.0,
            ),
            "characteristics": (lambda r=rules, X=X, y=y: characteristics(r, X, y), 3.0),
        }
        table.section(f"{task}, {n_rows} rows x {N_FEATURES}, {N_RULES} rules", "match")
        functions = [lambda r=rules, X=X: r.match(X), *(call for call, _ in calls.values())]
        peer, *times = best_times(functions, repeat)
        table.add("match", (peer, peak_memory(functions[0])), peer, None)
        for (name, (call, limit)), seconds in zip(calls.items(), times, strict=True):
            limit = (
                limit if n_rows >= N_ROWS else None
            )  # with few rows, the overhead of calls dominates
            table.add(name, (seconds, peak_memory(call)), peer, limit)


def measure_qualities(table: Table, n_counts: int, repeat: int) -> None:
    """Measure rule qualities, which validate counts and handle zero denominators, against NumPy."""
    rng = np.random.default_rng(1)
    P, N = rng.integers(1, 1000, (2, n_counts)).astype(float)
    p, n = np.ceil(rng.random(n_counts) * P), np.floor(rng.random(n_counts) * (N + 1))
    T = P + N
    numpy_measures: dict[str, Callable[[], object]] = {
        "precision": lambda: p / (p + n),
        "correlation": lambda: (
            (p * N - n * P) / np.sqrt(P * N * (p + n) * np.maximum(T - p - n, 1))
        ),
        "one_way_support": lambda: p / (p + n) * np.log(p * T / ((p + n) * P)),
    }
    table.section(f"Measures of {n_counts} rules", "plain numpy")
    for name, peer in numpy_measures.items():

        def call(name: str = name) -> object:
            return rule_quality(name, p, n, P, N)

        theirs, ours = best_times([peer, call], repeat)
        table.add(name, (ours, peak_memory(call)), theirs, None)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="measure fewer rows")
    quick = parser.parse_args().quick
    table = Table()
    n_rows, repeat = (100_000, 3) if quick else (N_ROWS, 7)
    measure_reports(table, n_rows, repeat)
    measure_qualities(table, n_rows, repeat)
    print(f"\n{table.n_satisfied} of {table.n_satisfied + len(table.exceeded)} limits satisfied")
    for case in table.exceeded:
        print(f"limit exceeded: {case}")
    return 1 if table.exceeded else 0


if __name__ == "__main__":
    sys.exit(main())
