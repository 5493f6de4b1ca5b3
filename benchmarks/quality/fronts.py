"""Compare the fronts of our search with optimal trees and with the records of PSyKE.

    pip install pystreed
    python benchmarks/quality/fronts.py [--data iris wine wbc] [--splits 1] [--trials 200]

Prints Markdown tables. Black boxes and halves of the data are the same as in run.py.

1. Training fidelity. The search minimizes the loss (share of rows on which rules and black box
   disagree) and the number of rules on the training half. STreeD computes optimal decision trees
   with 2 to 8 leaves for the same predictions. Both fronts are compared by their
   hypervolume. The reference point is the loss of a single rule (the most frequent class) and 9
   rules, so a front that is no better than a single rule has a hypervolume of 0. STreeD needs
   binary features "x <= t". The thresholds t are
   - all midpoints between adjacent values if there are at most 1000 of them, or at most 3 leaves,
   - otherwise some midpoints per feature, evenly spaced by rank (16 for 4 leaves, 8 for more),
   - and always the bounds of the rules of our fronts and of scikit-learn's trees.
   The depth of trees with up to 5 leaves is not limited; larger trees have a depth of at most 4.
   "Proven sizes" are the numbers of leaves for which STreeD finished with the largest set of
   thresholds. For each number of leaves, the optimal front is the better of STreeD's tree and all
   our trees, so no tree of our front is better. Rules that are not trees (Trepan, REAL) may be
   better.
2. Held-out fidelity. Every candidate of a cross-validated search is extracted again from the same
   half and measured on the other half, like the records of PSyKE. A record dominates a point of our
   front if it has no more rules and no lower agreement, and is strictly better in one of them.
   The table also shows the front that cross-validation alone would select, without a verdict. On
   halves of 75 to 285 rows, records selected by their held-out results often beat such points.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import optuna
from run import CLASSES, TITLES, load_records, split
from sklearn.tree import DecisionTreeClassifier

from skescore.registry import suitable_extractors
from skescore.tuning import ExtractorSearchCV, hypervolume, pareto_mask

LEAVES = range(2, 9)
#: Smallest accepted ratio of our hypervolume to the hypervolume of optimal trees.
TARGET = 0.98
#: Largest number of midpoints that are all used as thresholds.
MAX_CUTS = 1000
#: Thresholds per feature to try, by number of leaves, if there are more than `MAX_CUTS` midpoints;
#: None means all midpoints. The largest set comes last.
CUTS_PER_FEATURE = {
    2: (16, None),
    3: (16, None),
    4: (8, 16),
    5: (8,),
    6: (8,),
    7: (8,),
    8: (8,),
}
EXTRACTORS = {
    "CART and GridEx": ("cart", "gridex"),
    "defaults": suitable_extractors("classification"),
}


class Front(NamedTuple):
    """Points (loss, rules) of all candidates and of the trees among them, and their thresholds."""

    points: np.ndarray
    trees: np.ndarray
    cuts: set[tuple[int, float]]


# --- ours ----------------------------------------------------------------------------------------


def run_search(data: Any, names: tuple[str, ...], trials: int, cv: Any, seed: int) -> Any:
    search = ExtractorSearchCV(
        data.black_box,
        extractors=names,
        scoring=("loss", "n_rules"),
        n_trials=trials,
        cv=cv,
        refit=False,
        random_state=seed,
    )
    return search.fit(data.X_train)


def training_front(data: Any, names: tuple[str, ...], trials: int, seed: int) -> Front:
    all_rows = np.arange(len(data.X_train))
    search = run_search(data, names, trials, [(all_rows, all_rows)], seed)
    points = np.column_stack([search.candidates_.means(name) for name in ("loss", "n_rules")])
    cuts: set[tuple[int, float]] = set()
    for _, row in search.pareto_front_.iterrows():
        cuts |= finite_bounds(search.make_candidate(row).fit(data.X_train).rules_)
    is_tree = [candidate.extractor == "cart" for candidate in search.candidates_]
    return Front(points, points[is_tree], cuts)


def finite_bounds(ruleset: Any) -> set[tuple[int, float]]:
    """Return the finite bounds of all rules that are boxes, with their features."""
    bound_set = set()
    for rule in ruleset.rules:
        for condition in getattr(rule, "intervals", ()):
            for bound in (condition.lower, condition.upper):
                if np.isfinite(bound):
                    bound_set.add((condition.feature, float(bound)))
    return bound_set


# --- optimal trees -------------------------------------------------------------------------------


def greedy_tree_errors(
    rows: np.ndarray, predictions: np.ndarray
) -> tuple[dict[int, int], set[Any]]:
    """Return the errors of scikit-learn's trees by number of leaves, and their thresholds."""
    errors, cuts = {k: len(rows) for k in LEAVES}, set()
    for n_leaves in LEAVES:
        for criterion in ("gini", "entropy"):
            tree = DecisionTreeClassifier(
                max_leaf_nodes=n_leaves, criterion=criterion, random_state=0
            ).fit(rows, predictions)
            errors[n_leaves] = min(errors[n_leaves], int((tree.predict(rows) != predictions).sum()))
            is_inner = tree.tree_.feature >= 0
            cuts |= set(
                zip(tree.tree_.feature[is_inner], tree.tree_.threshold[is_inner], strict=True)
            )
    return errors, cuts


def binary_tests(
    rows: np.ndarray, extra_cuts: Iterable[tuple[int, float]], per_feature: int | None
) -> np.ndarray:
    """Return the results of all tests of a tree; tests with equal results are included once."""
    midpoints = [(np.unique(x)[1:] + np.unique(x)[:-1]) / 2 for x in rows.T]
    if per_feature is not None and sum(map(len, midpoints)) > MAX_CUTS:
        levels = np.linspace(0, 1, per_feature)
        midpoints = [np.unique(np.quantile(m, levels, method="nearest")) for m in midpoints]
    cut_set = {(j, float(t)) for j, column in enumerate(midpoints) for t in column} | set(
        extra_cuts
    )
    distinct_tests: dict[bytes, np.ndarray] = {}
    for j, t in sorted(cut_set):
        is_below = rows[:, j] <= t
        if is_below.any() and not is_below.all():
            distinct_tests.setdefault(is_below.tobytes(), is_below)
    return np.column_stack(list(distinct_tests.values())).astype(np.int32)


def optimal_errors(
    rows: np.ndarray, predictions: np.ndarray, cuts: Iterable[tuple[int, float]], seconds: float
) -> tuple[dict[int, int], list[int], list[int]]:
    """Return the fewest errors by number of leaves, the proven sizes, and the numbers of tests."""
    from pystreed import STreeDClassifier

    codes = np.unique(predictions, return_inverse=True)[1]
    errors, proved, test_counts = {}, [], set()
    for n_leaves in LEAVES:
        errors[n_leaves], is_proved = len(codes), False
        for per_feature in CUTS_PER_FEATURE[n_leaves]:
            tests = binary_tests(rows, cuts, per_feature)
            test_counts.add(tests.shape[1])
            tree = STreeDClassifier(
                "accuracy",
                max_depth=min(n_leaves - 1, 4),
                max_num_nodes=n_leaves - 1,
                time_limit=seconds,
            ).fit(tests, codes)
            errors[n_leaves] = min(errors[n_leaves], int((tree.predict(tests) != codes).sum()))
            is_proved = tree.fit_result.is_optimal()
        if is_proved:
            proved.append(n_leaves)
        if errors[n_leaves] == 0:  # more leaves have no errors either
            larger_sizes = range(n_leaves + 1, LEAVES[-1] + 1)
            return (
                errors | dict.fromkeys(larger_sizes, 0),
                [*proved, *larger_sizes],
                sorted(test_counts),
            )
    return errors, proved, sorted(test_counts)


def compare_training(options: argparse.Namespace) -> list[float]:
    print("\n### Training fidelity: hypervolume of (loss, rules)\n")
    print("Errors are listed for 2 to 8 rules.\n")
    print(
        "| data | split | rows | tests | proven sizes | optimal trees: errors "
        "| CART, both criteria | search | errors | hypervolume | share of the optimum "
        "| 0.98 or more? |"
    )
    print("| :-- |" + " --: |" * 2 + " :-- |" * 6 + " --: | --: | :-- |", flush=True)
    ratios = []
    for dataset in options.data:
        for seed in range(options.splits):
            data = split(dataset, seed)
            predictions = data.black_box.predict(data.X_train)
            sklearn_errors, cuts = greedy_tree_errors(data.X_train, predictions)
            fronts = {
                name: training_front(data, names, options.trials, seed)
                for name, names in EXTRACTORS.items()
            }
            for front in fronts.values():
                cuts |= front.cuts
            optimal, proved, test_counts = optimal_errors(
                data.X_train, predictions, cuts, options.seconds
            )
            for front in fronts.values():
                tree_errors = errors_at(front.trees, len(predictions))
                optimal = {k: min(optimal[k], sklearn_errors[k], tree_errors[k]) for k in LEAVES}
            one_rule = 1 - np.unique(predictions, return_counts=True)[1].max() / len(predictions)
            reference = (one_rule, LEAVES[-1] + 1)
            optimum = hypervolume(
                [(e / len(predictions), k) for k, e in optimal.items()], reference
            )
            test_counts_text = " or ".join(map(str, test_counts))
            greedy = ", ".join(str(sklearn_errors[k]) for k in LEAVES)
            for name, front in fronts.items():
                volume = hypervolume(front.points, reference)
                ratios.append(volume / optimum)
                tree_errors = errors_at(front.points, len(predictions))
                print(
                    f"| {TITLES[dataset]} | {seed} | {len(predictions)} | {test_counts_text} "
                    f"| {', '.join(map(str, proved))} "
                    f"| {', '.join(str(optimal[k]) for k in LEAVES)} | {greedy} | {name} "
                    f"| {', '.join(str(tree_errors[k]) for k in LEAVES)} | {volume:.4f} "
                    f"| {ratios[-1]:.4f} | {'yes' if ratios[-1] >= TARGET else 'NO'} |",
                    flush=True,
                )
    return ratios


def errors_at(points: np.ndarray, n_rows: int) -> dict[int, int]:
    """Return the fewest errors of points by the largest number of rules."""
    errors = np.round(points[:, 0] * n_rows).astype(int)
    return {k: int(errors[points[:, 1] <= k].min(initial=n_rows)) for k in LEAVES}


# --- PSyKE's records -----------------------------------------------------------------------------


def compare_held_out(options: argparse.Namespace) -> int:
    print("\n### Held-out rows: records of PSyKE compared with ours\n")
    print("Points are (rules, agreement with the black box).\n")
    print(
        "| data | split | search | candidates | our front | records | dominated "
        "| front by cross-validation | pairs dominated there |"
    )
    print("| :-- | --: | :-- | --: | :-- | --: | :-- | :-- | :-- |", flush=True)
    n_dominated = 0
    records = load_records()
    for dataset in options.data:
        for seed in range(options.splits):
            psyke = {
                label + (" (scaled)" if scaled else ""): (run["n_rules"], run["fidelity"])
                for (name, label, scaled), runs in records.items()
                if name == dataset and seed in runs and not (run := runs[seed])["error"]
            }
            if not psyke:
                continue
            data = split(dataset, seed)
            for name, names in EXTRACTORS.items():
                search = run_search(data, names, options.trials, 5, seed)
                table = search.leaderboard_
                rows = [row for _, row in table[table["state"] == "complete"].iterrows()]
                points = [measure_held_out(search.make_candidate(row), data) for row in rows]
                front = sorted(
                    p
                    for p, is_on_front in zip(points, pareto_mask(points), strict=True)
                    if is_on_front
                )
                blind_front = sorted(
                    {
                        measure_held_out(search.make_candidate(row), data)
                        for _, row in search.pareto_front_.iterrows()
                    }
                )
                dominated, dominated_blind = (
                    list_dominated(front, psyke),
                    list_dominated(blind_front, psyke),
                )
                n_dominated += len(dominated)
                print(
                    f"| {TITLES[dataset]} | {seed} | {name} | {len(points)} "
                    f"| {format_points(front)} | {len(psyke)} | {'; '.join(dominated) or 'none'} "
                    f"| {format_points(blind_front)} | {len(dominated_blind)} |",
                    flush=True,
                )
    return n_dominated


def measure_held_out(extractor: Any, data: Any) -> tuple[int, float]:
    """Return the number of rules of one half, and their disagreement on the other half."""
    extractor.fit(data.X_train)
    agrees = extractor.covers(data.X_test) & (extractor.predict(data.X_test) == data.predictions)
    return extractor.n_rules_, float(1 - np.mean(agrees))


def format_points(points: list[tuple[int, float]]) -> str:
    return ", ".join(f"({rules}, {1 - loss:.3f})" for rules, loss in points)


def list_dominated(
    points: list[tuple[int, float]], records: dict[str, tuple[float, float]]
) -> list[str]:
    """Describe each pair of a point and a record that dominates it."""
    return [
        f"{format_points([(r, loss)])} by {label} ({rules:g}, {fidelity:.3f})"
        for r, loss in points
        for label, (rules, fidelity) in records.items()
        if dominates((rules, fidelity), (r, 1 - loss))
    ]


def dominates(point: tuple[float, float], other_point: tuple[float, float]) -> bool:
    """Return whether a point (rules, agreement) dominates another; records have six digits."""
    is_no_worse = point[0] <= other_point[0] and point[1] >= other_point[1] - 1e-6
    return is_no_worse and (point[0] < other_point[0] or point[1] > other_point[1] + 1e-6)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", nargs="+", choices=list(CLASSES), default=list(CLASSES))
    parser.add_argument("--splits", type=int, default=1)
    parser.add_argument("--trials", type=int, default=200, help="number of trials per search")
    parser.add_argument("--seconds", type=float, default=30.0, help="time limit of STreeD per tree")
    parser.add_argument(
        "--parts", nargs="+", choices=["training", "held-out"], default=["training", "held-out"]
    )
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    start, n_failed = time.perf_counter(), 0
    if "training" in options.parts:
        n_failed += sum(ratio < TARGET for ratio in compare_training(options))
    if "held-out" in options.parts:
        n_failed += compare_held_out(options)
    print(f"\n{n_failed} fall short; {time.perf_counter() - start:.0f} seconds.")
    return 1 if n_failed else 0


if __name__ == "__main__":
    sys.exit(main())
