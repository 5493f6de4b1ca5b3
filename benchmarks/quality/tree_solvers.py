"""Compare solvers of optimal trees: errors and CPU time.

    pip install pystreed pycontree pytrees-rs
    python benchmarks/quality/tree_solvers.py [--seconds 60] [--solvers ours pystreed]
    python benchmarks/quality/tree_solvers.py --keel     # KEEL tables, 16 cuts, ours and pystreed
    python benchmarks/quality/tree_solvers.py --large    # 100,000 rows, all cuts, at most 3 leaves
    python benchmarks/quality/tree_solvers.py --marks    # optimal trees, PSyKE's best scores

Prints a Markdown table with errors and CPU seconds; "?" marks errors not proven optimal in time.
Solvers that are not installed are reported as ModuleNotFoundError. All solvers use the cuts of
`skescore.optimal.candidate_cuts`, except pycontree and pytrees-rs. These two take numeric features
and limit the depth instead of the number of leaves. They run for 4 leaves with all cuts only, with
a depth of 2.
"""

from __future__ import annotations

import argparse
import importlib
import resource
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.metrics import accuracy_score

from skescore.bench import suite_config
from skescore.datasets import load_dataset
from skescore.optimal import SearchSpace, SolverLimits, candidate_cuts, optimal_trees

TABLES: dict[str, Callable[..., Any]] = {
    "iris": load_iris,
    "wine": load_wine,
    "breast_cancer": load_breast_cancer,
}
KEEL_TABLES = (
    "bupa",
    "hayes-roth",
    "heart",
    "ionosphere",
    "iris",
    "pima",
    "segment",
    "tae",
    "wine",
)
KEEL_TABLES += ("wisconsin",)
SolverResult = tuple[float, bool]


def evaluate_tests(X: np.ndarray, cuts: Any) -> np.ndarray:
    """Return the results of all tests for all rows."""
    columns = [X[:, j] <= cut for j, thresholds in cuts.thresholds.items() for cut in thresholds]
    return np.column_stack(columns)


def ours(X: Any, y: Any, cuts: Any, leaves: int, seconds: float) -> SolverResult:
    frontier = optimal_trees(
        X, y, SearchSpace(leaves, cuts=cuts), limits=SolverLimits(time_limit=seconds)
    )
    return float(frontier.upper[-1]), frontier.status[-1] == "optimal"


def pystreed(X: Any, y: Any, cuts: Any, leaves: int, seconds: float) -> SolverResult:
    module = importlib.import_module("pystreed")
    rows = evaluate_tests(X, cuts).astype(np.int32)
    tree = module.STreeDClassifier(
        "accuracy", max_depth=leaves - 1, max_num_nodes=leaves - 1, time_limit=seconds
    ).fit(rows, y)
    return float((tree.predict(rows) != y).sum()), tree.fit_result.is_optimal()


def pycontree(X: Any, y: Any, cuts: Any, leaves: int, seconds: float) -> SolverResult:
    module = importlib.import_module("pycontree")
    with warnings.catch_warnings(record=True) as warning_list:
        warnings.simplefilter("always")
        tree = module.ConTree(max_depth=2, time_limit=seconds).fit(X, y)
    is_timeout = any("time limit" in str(warning.message) for warning in warning_list)
    return len(y) * (1 - accuracy_score(y, tree.predict(X))), not is_timeout


def pytrees(X: Any, y: Any, cuts: Any, leaves: int, seconds: float) -> SolverResult:
    module = importlib.import_module("pytrees")
    tree = module.ConTreeClassifier(max_depth=2, max_time=seconds).fit(X, y)
    return float(tree.train_error_), tree.status_ == "optimal"


def compare_large(n_rows: int = 100_000) -> None:
    """Print CPU time and peak memory for trees with at most 3 leaves and all cuts."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows, 10))
    y = ((X[:, 0] > 0.2) & (X[:, 1] < 0.5)) ^ (rng.random(n_rows) < 0.1)
    start = time.process_time()
    frontier = optimal_trees(X, y.astype(int), SearchSpace(3, cuts=None))
    seconds = time.process_time() - start
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print("| rows | leaves | errors | status | CPU seconds | memory (GiB) |")
    print("| --: | --: | --: | :-- | --: | --: |")
    print(
        f"| {n_rows} | 3 | {frontier.upper[-1]:.0f} | {frontier.status[-1]} | {seconds:.1f} "
        f"| {memory:.2f} |"
    )


def compare_marks() -> None:
    """Print the scores of optimal trees of both halves of breast_cancer on the second half.

    The best tree trained on the second half is an upper bound for extracted trees.
    """
    from tuners_data import MARKS, make_problem, measure

    problem = make_problem("breast_cancer", 0)
    fire, ice = MARKS["breast_cancer"]
    print("| trees of | cuts | leaves | proven | FiRe(1) | ICE(1, 1) |")
    print("| :-- | --: | --: | :-- | --: | --: |")
    print(f"| (reference) | | | | {fire:.4f} | {ice:.4f} |")
    halves = {
        "training half": (problem.X_train, problem.model.predict(problem.X_train)),
        "scored half": (problem.X_test, problem.y_test),
    }
    for half, (X, y) in halves.items():
        for cuts in (8, 16, None):
            frontier = optimal_trees(
                X, y, SearchSpace(4, cuts=cuts), limits=SolverLimits(time_limit=60.0)
            )
            for size, rules, status in zip(
                frontier.sizes, frontier.rules, frontier.status, strict=True
            ):
                if size == 1:
                    continue
                values = [
                    measure(rules, "breast_cancer", problem.X_test, problem.y_test, score)["marked"]
                    for score in ("fire1", "ice11")
                ]
                print(
                    f"| {half} | {cuts or 'all'} | {size} | {status} | {values[0]:.4f} "
                    f"| {values[1]:.4f} |",
                    flush=True,
                )


def compare_keel(seconds: float) -> None:
    """Compare our solver with pystreed on KEEL tables, with 16 cuts of every feature."""
    print("| table | rows | leaves | ours | pystreed |\n| :-- | --: | --: | --: | --: |")
    times = []
    for entry in suite_config("keel-balanced").data:
        if entry.label not in KEEL_TABLES:
            continue
        data = load_dataset(entry.source, **entry.options)
        X = data.X.select_dtypes("number").to_numpy(float)
        y = np.unique(np.asarray(data.y), return_inverse=True)[1]
        cuts = candidate_cuts(X, 16)
        for leaves in (3, 4, 5):
            cells, pair = [], []
            for solver in (ours, pystreed):
                start = time.process_time()
                errors, proven = solver(X, y, cuts, leaves, seconds)
                pair.append(time.process_time() - start)
                cells.append(f"{errors:.0f}{'' if proven else '?'} in {pair[-1]:.3f} s")
            times.append(pair)
            print(f"| {entry.label} | {len(y)} | {leaves} | {' | '.join(cells)} |", flush=True)
    ratios = np.array([our_time / their_time for our_time, their_time in times])
    slower = [our_time for our_time, their_time in times if our_time > their_time]
    print(
        f"\npystreed is faster on {len(slower)} of {len(times)} trees, on which ours takes at most "
        f"{max(slower):.2f} s. Geometric mean of the ratios: {np.exp(np.log(ratios).mean()):.2f}."
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=60.0)
    solvers = {f.__name__: f for f in (ours, pystreed, pycontree, pytrees)}
    parser.add_argument("--solvers", nargs="+", choices=list(solvers), default=list(solvers))
    parser.add_argument("--keel", action="store_true")
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--marks", action="store_true")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.keel:
        compare_keel(options.seconds)
        return
    if options.large or options.marks:
        compare_large() if options.large else compare_marks()
        return
    print("| table | cuts | leaves | " + " | ".join(options.solvers) + " |")
    print("| :-- | --: | --: |" + " --: |" * len(options.solvers), flush=True)
    for name, load in TABLES.items():
        X, y = load(return_X_y=True)
        for per_feature in (16, None):
            cuts = candidate_cuts(X, per_feature)
            n_cuts = sum(map(len, cuts.thresholds.values()))
            for leaves in (3, 4, 5):
                cells = []
                for solver in options.solvers:
                    depth_only = solver in ("pycontree", "pytrees")
                    if depth_only and (per_feature is not None or leaves != 4):
                        cells.append("-")
                        continue
                    if per_feature is None and (
                        n_cuts > 5000 and solver != "ours" and not depth_only
                    ):
                        cells.append("too many cuts")
                        continue
                    start = time.process_time()
                    try:
                        errors, proven = solvers[solver](X, y, cuts, leaves, options.seconds)
                    except Exception as error:  # packages raise various errors
                        cells.append(type(error).__name__)
                        continue
                    seconds = time.process_time() - start
                    cells.append(f"{errors:.0f}{'' if proven else '?'} in {seconds:.2f} s")
                print(f"| {name} | {n_cuts} | {leaves} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
