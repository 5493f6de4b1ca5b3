"""The trade-off that a search finds, beside provably optimal trees and the records of PSyKE.

    pip install pystreed
    python benchmarks/quality/fronts.py [--data iris wine wbc] [--splits 1] [--trials 200]

Prints Markdown tables. Black boxes and halves of the data are those of run.py.

1. Training fidelity. The search sees one half and minimizes (share of rows answered otherwise than
   the black box, number of rules) on that very half. STreeD finds optimal decision trees of 2 to 8
   leaves for the same answers. Both fronts are measured by their hypervolume; the reference is the
   loss of a single rule (the commonest answer) and 9 rules, so that a front that is no better than
   one rule has none. STreeD needs features of two values: "x <= t", where t is
   - every midpoint between neighboring values where these are at most 1000, or leaves at most 3,
   - else some midpoints per feature, evenly spread over the ranks (16 for 4 leaves, 8 for more),
   - and always every bound of a rule on our fronts and of scikit-learn's trees.
   Trees of up to 5 leaves are as deep as they like, larger ones have up to four questions on a
   path. "Proved" lists the leaves for which STreeD finished with the most questions. The front
   called optimal takes the better, per number of leaves, of STreeD and of all trees of ours, so
   that it is never below ours for want of a proof. Rules that are no trees (of Trepan and REAL) may
   be better than it.
2. Held-out fidelity. Every candidate of a search that is cross-validated on one half is extracted
   again from that half and measured on the other, as the records of PSyKE were. A record dominates
   a point of our front if it has no more rules and no less agreement, one of them strictly.
   Beside it, without verdict: the front that cross-validation alone would have chosen. On halves of
   75 to 285 rows a record that is picked by its held-out figure often beats a point of that.
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
#: Our hypervolume over that of optimal trees should be at least this.
TARGET = 0.98
#: Up to here every midpoint may be asked about, beyond so many per feature, by number of leaves;
#: the finest comes last, and a coarser one first where the finest may not finish.
MOST_CUTS = 1000
CUTS_PER_FEATURE = {
    2: (16, None),
    3: (16, None),
    4: (8, 16),
    5: (8,),
    6: (8,),
    7: (8,),
    8: (8,),
}
SEARCHED = {
    "CART and GridEx": ("cart", "gridex"),
    "defaults": suitable_extractors("classification"),
}


class Front(NamedTuple):
    """Points of (loss, rules) of all candidates and of the trees among them, and where they cut."""

    points: np.ndarray
    trees: np.ndarray
    cuts: set[tuple[int, float]]


# --- ours ----------------------------------------------------------------------------------------


def search_on(data: Any, names: tuple[str, ...], trials: int, cv: Any, seed: int) -> Any:
    search = ExtractorSearchCV(
        data.black_box,
        extractors=names,
        scoring=("loss", "n_rules"),
        n_trials=trials,
        cv=cv,
        refit=False,
        random_state=seed,
    )
    return search.fit(data.rows)


def training_front(data: Any, names: tuple[str, ...], trials: int, seed: int) -> Front:
    everything = np.arange(len(data.rows))
    search = search_on(data, names, trials, [(everything, everything)], seed)
    points = np.column_stack([search.candidates_.means(name) for name in ("loss", "n_rules")])
    cuts: set[tuple[int, float]] = set()
    for _, row in search.pareto_front_.iterrows():
        cuts |= bounds(search.make_candidate(row).fit(data.rows).rules_)
    is_tree = [candidate.extractor == "cart" for candidate in search.candidates_]
    return Front(points, points[is_tree], cuts)


def bounds(ruleset: Any) -> set[tuple[int, float]]:
    """Return the bounds of all rules that are boxes."""
    bound_set = set()
    for rule in ruleset.rules:
        for condition in getattr(rule, "intervals", ()):
            for bound in (condition.lower, condition.upper):
                if np.isfinite(bound):
                    bound_set.add((condition.feature, float(bound)))
    return bound_set


# --- optimal trees -------------------------------------------------------------------------------


def plain_trees(rows: np.ndarray, answers: np.ndarray) -> tuple[dict[int, int], set[Any]]:
    """Errors of scikit-learn's trees by number of leaves, and where they cut."""
    errors, cuts = {k: len(rows) for k in LEAVES}, set()
    for leaves in LEAVES:
        for criterion in ("gini", "entropy"):
            tree = DecisionTreeClassifier(
                max_leaf_nodes=leaves, criterion=criterion, random_state=0
            ).fit(rows, answers)
            errors[leaves] = min(errors[leaves], int((tree.predict(rows) != answers).sum()))
            inner = tree.tree_.feature >= 0
            cuts |= set(zip(tree.tree_.feature[inner], tree.tree_.threshold[inner], strict=True))
    return errors, cuts


def questions(
    rows: np.ndarray, more: Iterable[tuple[int, float]], per_feature: int | None
) -> np.ndarray:
    """Answers to all questions that a tree may ask; those that part the rows alike count once."""
    middles = [(np.unique(x)[1:] + np.unique(x)[:-1]) / 2 for x in rows.T]
    if per_feature is not None and sum(map(len, middles)) > MOST_CUTS:
        spread = np.linspace(0, 1, per_feature)
        middles = [np.unique(np.quantile(m, spread, method="nearest")) for m in middles]
    cut_set = {(j, float(t)) for j, column in enumerate(middles) for t in column} | set(more)
    different: dict[bytes, np.ndarray] = {}
    for j, t in sorted(cut_set):
        below = rows[:, j] <= t
        if below.any() and not below.all():
            different.setdefault(below.tobytes(), below)
    return np.column_stack(list(different.values())).astype(np.int32)


def optimal_errors(
    rows: np.ndarray, answers: np.ndarray, cuts: Iterable[tuple[int, float]], seconds: float
) -> tuple[dict[int, int], list[int], list[int]]:
    """Fewest errors by number of leaves, where that is proved, and the numbers of questions."""
    from pystreed import STreeDClassifier

    codes = np.unique(answers, return_inverse=True)[1]
    errors, proved, n_questions = {}, [], set()
    for leaves in LEAVES:
        errors[leaves], finished = len(codes), False
        for per_feature in CUTS_PER_FEATURE[leaves]:
            tests = questions(rows, cuts, per_feature)
            n_questions.add(tests.shape[1])
            tree = STreeDClassifier(
                "accuracy",
                max_depth=min(leaves - 1, 4),
                max_num_nodes=leaves - 1,
                time_limit=seconds,
            ).fit(tests, codes)
            errors[leaves] = min(errors[leaves], int((tree.predict(tests) != codes).sum()))
            finished = tree.fit_result.is_optimal()
        if finished:
            proved.append(leaves)
        if errors[leaves] == 0:  # so it is with more leaves
            larger_sizes = range(leaves + 1, LEAVES[-1] + 1)
            return (
                errors | dict.fromkeys(larger_sizes, 0),
                [*proved, *larger_sizes],
                sorted(n_questions),
            )
    return errors, proved, sorted(n_questions)


def compare_training(options: argparse.Namespace) -> list[float]:
    print("\n### Training fidelity: hypervolume of (loss, rules)\n")
    print("Errors are those at 2 to 8 rules.\n")
    print(
        "| data | split | rows | questions | proved | optimal trees: errors | CART, both criteria "
        "| search | errors | hypervolume | of the optimal one | 0.98 or more? |"
    )
    print("| :-- |" + " --: |" * 2 + " :-- |" * 6 + " --: | --: | :-- |", flush=True)
    ratios = []
    for dataset in options.data:
        for seed in range(options.splits):
            data = split(dataset, seed)
            answers = data.black_box.predict(data.rows)
            trees, cuts = plain_trees(data.rows, answers)
            ours = {
                name: training_front(data, names, options.trials, seed)
                for name, names in SEARCHED.items()
            }
            for front in ours.values():
                cuts |= front.cuts
            best, proved, n_questions = optimal_errors(data.rows, answers, cuts, options.seconds)
            for front in ours.values():
                points = errors_at(front.trees, len(answers))
                best = {k: min(best[k], trees[k], points[k]) for k in LEAVES}
            one_rule = 1 - np.unique(answers, return_counts=True)[1].max() / len(answers)
            reference = (one_rule, LEAVES[-1] + 1)
            optimum = hypervolume([(e / len(answers), k) for k, e in best.items()], reference)
            question_counts = " or ".join(map(str, n_questions))
            plain = ", ".join(str(trees[k]) for k in LEAVES)
            for name, front in ours.items():
                size = hypervolume(front.points, reference)
                ratios.append(size / optimum)
                points = errors_at(front.points, len(answers))
                print(
                    f"| {TITLES[dataset]} | {seed} | {len(answers)} | {question_counts} "
                    f"| {', '.join(map(str, proved))} "
                    f"| {', '.join(str(best[k]) for k in LEAVES)} | {plain} | {name} "
                    f"| {', '.join(str(points[k]) for k in LEAVES)} | {size:.4f} "
                    f"| {ratios[-1]:.4f} | {'yes' if ratios[-1] >= TARGET else 'NO'} |",
                    flush=True,
                )
    return ratios


def errors_at(points: np.ndarray, n_rows: int) -> dict[int, int]:
    """Fewest errors with at most so many rules."""
    errors = np.round(points[:, 0] * n_rows).astype(int)
    return {k: int(errors[points[:, 1] <= k].min(initial=n_rows)) for k in LEAVES}


# --- PSyKE's records -----------------------------------------------------------------------------


def compare_held_out(options: argparse.Namespace) -> int:
    print("\n### Held-out fidelity: does a record of PSyKE dominate a point of our front?\n")
    print("Points are (rules, agreement with the black box).\n")
    print(
        "| data | split | search | candidates | our front | records | dominated | chosen blind "
        "| dominated, without verdict |"
    )
    print("| :-- | --: | :-- | --: | :-- | --: | :-- | :-- | :-- |", flush=True)
    n_dominated = 0
    records = load_records()
    for dataset in options.data:
        for seed in range(options.splits):
            theirs = {
                label + (" (scaled)" if scaled else ""): (run["n_rules"], run["fidelity"])
                for (name, label, scaled), runs in records.items()
                if name == dataset and seed in runs and not (run := runs[seed])["error"]
            }
            if not theirs:
                continue
            data = split(dataset, seed)
            for name, names in SEARCHED.items():
                search = search_on(data, names, options.trials, 5, seed)
                table = search.leaderboard_
                rows = [row for _, row in table[table["state"] == "complete"].iterrows()]
                measured = [held_out(search.make_candidate(row), data) for row in rows]
                front = sorted(
                    p for p, on in zip(measured, pareto_mask(measured), strict=True) if on
                )
                blind = sorted(
                    {
                        held_out(search.make_candidate(row), data)
                        for _, row in search.pareto_front_.iterrows()
                    }
                )
                beaten, beaten_blind = dominated(front, theirs), dominated(blind, theirs)
                n_dominated += len(beaten)
                print(
                    f"| {TITLES[dataset]} | {seed} | {name} | {len(measured)} "
                    f"| {format_points(front)} | {len(theirs)} | {'; '.join(beaten) or 'none'} "
                    f"| {format_points(blind)} | {len(beaten_blind)} |",
                    flush=True,
                )
    return n_dominated


def held_out(extractor: Any, data: Any) -> tuple[int, float]:
    """Rules from one half, and how often they disagree with the black box on the other."""
    extractor.fit(data.rows)
    agrees = extractor.covers(data.others) & (extractor.predict(data.others) == data.answers)
    return extractor.n_rules_, float(1 - np.mean(agrees))


def format_points(points: list[tuple[int, float]]) -> str:
    return ", ".join(f"({rules}, {1 - loss:.3f})" for rules, loss in points)


def dominated(
    points: list[tuple[int, float]], records: dict[str, tuple[float, float]]
) -> list[str]:
    return [
        f"{format_points([(r, loss)])} by {label} ({rules:g}, {fidelity:.3f})"
        for r, loss in points
        for label, (rules, fidelity) in records.items()
        if dominates((rules, fidelity), (r, 1 - loss))
    ]


def dominates(one: tuple[float, float], other: tuple[float, float]) -> bool:
    """No more rules and no less agreement; agreement is recorded with six digits."""
    no_worse = one[0] <= other[0] and one[1] >= other[1] - 1e-6
    return no_worse and (one[0] < other[0] or one[1] > other[1] + 1e-6)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", nargs="+", choices=list(CLASSES), default=list(CLASSES))
    parser.add_argument("--splits", type=int, default=1)
    parser.add_argument("--trials", type=int, default=200, help="of each search")
    parser.add_argument("--seconds", type=float, default=30.0, help="of STreeD per tree")
    parser.add_argument(
        "--parts", nargs="+", choices=["training", "held-out"], default=["training", "held-out"]
    )
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    begin, failed = time.perf_counter(), 0
    if "training" in options.parts:
        failed += sum(ratio < TARGET for ratio in compare_training(options))
    if "held-out" in options.parts:
        failed += compare_held_out(options)
    print(f"\n{failed} fall short; {time.perf_counter() - begin:.0f} seconds.")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
