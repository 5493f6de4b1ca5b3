"""Measure the speed of GridEx and of rule prediction relative to peers.

    python benchmarks/speed/run.py [--quick] [--output results.csv]

Compare the ratios of two times of the same run. Each time is the best of several calls.
"""

from __future__ import annotations

import argparse
import csv
import sys
import time
from collections.abc import Callable
from pathlib import Path

import naive
import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.tree import DecisionTreeClassifier

from skescore import GridExExtractor, as_ruleset


def best_time(function: Callable[[], object], repeat: int = 5, budget: float = 20.0) -> float:
    """Return the seconds of the fastest of several calls; the first call warms up."""
    times = []
    first_start = time.perf_counter()
    for _ in range(repeat + 1):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
        if time.perf_counter() - first_start > budget:
            break
    return min(times)


def uniform_classes(n: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    """Return uniform rows, and three classes by 2 x0 + x1**2."""
    X = np.random.default_rng(0).uniform(size=(n, d))
    return X, np.digitize(2 * X[:, 0] + X[:, 1] ** 2, [1.0, 1.8])


def make_black_box(d: int) -> DecisionTreeClassifier:
    """Return a tree of depth 8 fitted on 1000 rows, which is fast compared with the extraction."""
    return DecisionTreeClassifier(max_depth=8, random_state=0).fit(*uniform_classes(1000, d))


class Report:
    """Printer of Markdown tables that collects the rows for the CSV file."""

    def __init__(self) -> None:
        self.rows: list[dict[str, object]] = []

    def section(self, title: str, peer: str) -> None:
        print(f"\n### {title}\n\n| case | ours (s) | {peer} (s) | ratio | limit |")
        print("| :-- | --: | --: | --: | --: |")
        self.title = title

    def add(self, case: str, ours: float, peer: float, ratio: float, limit: str) -> None:
        print(f"| {case} | {ours:.5f} | {peer:.5f} | {ratio:.2f} | {limit} |", flush=True)
        self.rows.append(
            {
                "section": self.title,
                "case": case,
                "ours_seconds": ours,
                "peer_seconds": peer,
                "ratio": ratio,
                "limit": limit,
            }
        )


def measure_prediction(report: Report, n: int) -> None:
    X, y = uniform_classes(n, 10)
    tree = DecisionTreeClassifier(max_leaf_nodes=50, random_state=0)
    noise = (
        np.random.default_rng(1).random(20_000) < 0.2
    )  # without noise, the tree needs fewer than 50 leaves
    tree.fit(X[:20_000], np.where(noise, (y[:20_000] + 1) % 3, y[:20_000]))
    report.section("Prediction, our rules relative to a tree", "DecisionTreeClassifier.predict")
    for simplify in (False, True):
        rules = as_ruleset(tree, simplify=simplify)
        assert len(rules) == 50
        assert (rules.predict(X[:10_000]) == tree.predict(X[:10_000])).all()
        kind = "ordered list" if simplify else "disjoint rules"
        ours, theirs = best_time(lambda r=rules: r.predict(X)), best_time(lambda: tree.predict(X))
        report.add(f"{n} rows x 10, 50 {kind}", ours, theirs, ours / theirs, "at most 4")
    report.section("Prediction, row by row relative to ours", "row by row")
    sample = X[:10_000]
    peer_seconds = best_time(lambda: naive.predict(rules, sample), repeat=1)
    assert naive.predict(rules, sample[:500]) == rules.predict(sample[:500]).tolist()
    ours = best_time(lambda: rules.predict(sample))
    report.add("10000 rows x 10, 50 rules", ours, peer_seconds, peer_seconds / ours, "-")


def measure_extraction(report: Report, sizes: list[int]) -> None:
    importances = np.array([1.0] * 4 + [0.0] * 6)
    report.section("GridEx extraction, straightforward relative to ours", "straightforward")
    for n in sizes:
        X, _ = uniform_classes(n, 10)
        model = make_black_box(10)
        extractor = GridExExtractor(
            model, n_slices=2, importance_threshold=0.5, importances=importances, depth=2
        )
        ours = best_time(lambda e=extractor, X=X: e.fit(X))
        boxes: list = []

        def extract_by_peer(X: np.ndarray = X, model: object = model, boxes: list = boxes) -> None:
            boxes[:] = naive.extract(X, model, [2] * 4 + [1] * 6, 2, 0.1)

        peer_seconds = best_time(extract_by_peer, repeat=0)
        assert len(boxes) == extractor.n_rules_, (len(boxes), extractor.n_rules_)
        report.add(f"{n} rows x 10, 4 cut, 2 levels", ours, peer_seconds, peer_seconds / ours, "-")
    report.section(
        "GridEx extraction, ours relative to a tree of equal size", "DecisionTreeClassifier.fit"
    )
    for n in sizes:
        X, _ = uniform_classes(n, 10)
        model = make_black_box(10)
        extractor = GridExExtractor(
            model, n_slices=2, importance_threshold=0.5, importances=importances, depth=2
        )
        ours = best_time(lambda e=extractor, X=X: e.fit(X))
        predictions = model.predict(X)
        tree = DecisionTreeClassifier(max_leaf_nodes=extractor.n_rules_, random_state=0)
        theirs = best_time(lambda t=tree, X=X, z=predictions: t.fit(X, z))
        report.add(f"{n} rows x 10, {extractor.n_rules_} rules", ours, theirs, ours / theirs, "-")


def measure_growth(report: Report, sizes: list[int], widths: list[int]) -> None:
    """Measure how the time grows with rows and features, with a fast and a typical black box."""
    models = {
        "fast black box (one tree)": make_black_box,
        "random forest of 100 trees": lambda d: RandomForestClassifier(random_state=0).fit(
            *uniform_classes(1000, d)
        ),
    }
    for name, make_model in models.items():
        is_forest = name.startswith("random")

        def fit_time(n: int, d: int, make_model: Callable = make_model) -> tuple[float, int]:
            X, _ = uniform_classes(n, d)
            extractor = GridExExtractor(make_model(d), n_slices=2, depth=1)
            return best_time(lambda: extractor.fit(X), repeat=7), extractor.n_rules_

        report.section(f"GridEx, 10 features, 2 slices everywhere; {name}", "half the rows")
        for n in sizes[:3] if is_forest else sizes:
            (half_seconds, _), (all_seconds, n_rules) = fit_time(n // 2, 10), fit_time(n, 10)
            case = f"{n // 2} to {n} rows, {n_rules} rules"
            report.add(case, all_seconds, half_seconds, all_seconds / half_seconds, "at most 2.2")
        report.section(f"GridEx, 10000 rows, 2 slices everywhere; {name}", "half the features")
        times = {d: fit_time(10_000, d) for d in widths}
        for d in widths[1:]:
            (all_seconds, n_rules), (half_seconds, _) = times[d], times[d // 2]
            case = f"{d // 2} to {d} features, {n_rules} rules"
            report.add(case, all_seconds, half_seconds, all_seconds / half_seconds, "at most 3")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="measure small sizes only")
    parser.add_argument("--output", type=Path, default=Path(__file__).with_name("results.csv"))
    options = parser.parse_args()
    report = Report()
    is_quick = options.quick
    measure_prediction(report, 100_000 if is_quick else 1_000_000)
    measure_extraction(report, [1000] if is_quick else [1000, 10_000])
    measure_growth(
        report,
        [1000, 10_000] if is_quick else [1000, 10_000, 100_000, 1_000_000],
        [5, 10, 20] if is_quick else [5, 10, 20, 40],
    )
    with options.output.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(report.rows[0]))
        writer.writeheader()
        writer.writerows(report.rows)
    limits = [r for r in report.rows if str(r["limit"]).startswith("at most")]
    exceeded = [r for r in limits if float(str(r["ratio"])) > float(str(r["limit"]).split()[-1])]
    print(
        f"\n{len(limits) - len(exceeded)} of {len(limits)} limits satisfied; "
        f"rows in {options.output}"
    )
    for row in exceeded:
        print(f"limit exceeded: {row['section']}: {row['case']}: {float(str(row['ratio'])):.2f}")
    return 1 if exceeded else 0


if __name__ == "__main__":
    sys.exit(main())
