"""Measure what a report on every rule costs beside merely matching rules to rows.

    python benchmarks/speed/report.py [--quick]

Every figure that matters is a ratio of two times from the same run, each the best of several that
take turns. Memory is the peak of what is allocated during a call, beyond the rows and labels. The
exit code is 1 while a limit is exceeded; limits are for a million rows, `--quick` holds to none.
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
MANY_ROWS = 1_000_000
#: Seconds, and mebibytes.
Cost = tuple[float, float]


def best_times(functions: list[Callable[[], object]], repeat: int) -> list[float]:
    """Seconds of the fastest of several calls; functions take turns, so that noise meets all."""
    times = [np.inf] * len(functions)
    for _ in range(repeat + 1):  # the first one warms up
        for index, function in enumerate(functions):
            start = time.perf_counter()
            function()
            times[index] = min(times[index], time.perf_counter() - start)
    return times


def peak_memory(function: Callable[[], object]) -> float:
    """Mebibytes allocated at most at a time during a call."""
    tracemalloc.start()
    function()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / 2**20


def example(task: str, voting: str, n_rows: int) -> tuple[RuleSet, np.ndarray, np.ndarray]:
    """Rules of three two-sided conditions each, that hold for some rows in forty."""
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
    """Rows for the terminal (Markdown), and which limits are exceeded."""

    def __init__(self) -> None:
        self.over: list[str] = []
        self.kept = 0

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
            self.over.append(f"{case}: {ratio:.2f}")
        elif limit is not None:
            self.kept += 1


def reports(table: Table, n_rows: int, repeat: int) -> None:
    for task, voting in (("classification", "votes"), ("regression", "mean")):
        rules, X, y = example(task, voting, n_rows)
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
            limit = limit if n_rows >= MANY_ROWS else None  # less is lost in what calls cost
            table.add(name, (seconds, peak_memory(call)), peer, limit)


def measures(table: Table, n_counts: int, repeat: int) -> None:
    """The measures check their arguments and answer where a plain quotient has none."""
    rng = np.random.default_rng(1)
    P, N = rng.integers(1, 1000, (2, n_counts)).astype(float)
    p, n = np.ceil(rng.random(n_counts) * P), np.floor(rng.random(n_counts) * (N + 1))
    T = P + N
    plain: dict[str, Callable[[], object]] = {
        "precision": lambda: p / (p + n),
        "correlation": lambda: (
            (p * N - n * P) / np.sqrt(P * N * (p + n) * np.maximum(T - p - n, 1))
        ),
        "one_way_support": lambda: p / (p + n) * np.log(p * T / ((p + n) * P)),
    }
    table.section(f"Measures of {n_counts} rules", "plain numpy")
    for name, peer in plain.items():

        def call(name: str = name) -> object:
            return rule_quality(name, p, n, P, N)

        theirs, ours = best_times([peer, call], repeat)
        table.add(name, (ours, peak_memory(call)), theirs, None)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer rows, for a look")
    quick = parser.parse_args().quick
    table = Table()
    n_rows, repeat = (100_000, 3) if quick else (MANY_ROWS, 7)
    reports(table, n_rows, repeat)
    measures(table, n_rows, repeat)
    print(f"\n{table.kept} of {table.kept + len(table.over)} limits kept")
    for case in table.over:
        print(f"over its limit: {case}")
    return 1 if table.over else 0


if __name__ == "__main__":
    sys.exit(main())
