"""Solvers of optimal trees on our tables: what each can do, and how long it takes.

    pip install pystreed pycontree pytrees-rs   # those that are missing are left out
    python benchmarks/quality/tree_solvers.py [--seconds 60] [--solvers ours pystreed]

Prints a Markdown table: errors and processor seconds; a "?" behind errors that were not proven in
time. The cuts are those of `skescore.optimal.candidate_cuts`, the same for all; pycontree and
pytrees-rs take the numbers themselves and limit the depth, not the leaves: they run where all
trees of depth 2 are asked for, which are some of those of at most 4 leaves, with all cuts.
"""

from __future__ import annotations

import argparse
import importlib
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.metrics import accuracy_score

from skescore.optimal import candidate_cuts, optimal_trees

TABLES: dict[str, Callable[..., Any]] = {
    "iris": load_iris,
    "wine": load_wine,
    "breast_cancer": load_breast_cancer,
}
Result = tuple[float, bool]


def answers(X: np.ndarray, cuts: Any) -> np.ndarray:
    """Whether each test holds for each row."""
    columns = [X[:, j] <= cut for j, some in cuts.thresholds.items() for cut in some]
    return np.column_stack(columns)


def ours(X: Any, y: Any, cuts: Any, leaves: int, seconds: float) -> Result:
    found = optimal_trees(X, y, max_rules=leaves, cuts=cuts, time_limit=seconds)
    return float(found.upper[-1]), found.status[-1] == "optimal"


def pystreed(X: Any, y: Any, cuts: Any, leaves: int, seconds: float) -> Result:
    module = importlib.import_module("pystreed")
    rows = answers(X, cuts).astype(np.int32)
    tree = module.STreeDClassifier(
        "accuracy", max_depth=leaves - 1, max_num_nodes=leaves - 1, time_limit=seconds
    ).fit(rows, y)
    return float((tree.predict(rows) != y).sum()), tree.fit_result.is_optimal()


def pycontree(X: Any, y: Any, cuts: Any, leaves: int, seconds: float) -> Result:
    module = importlib.import_module("pycontree")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        tree = module.ConTree(max_depth=2, time_limit=seconds).fit(X, y)
    over = any("time limit" in str(warning.message) for warning in caught)
    return len(y) * (1 - accuracy_score(y, tree.predict(X))), not over


def pytrees(X: Any, y: Any, cuts: Any, leaves: int, seconds: float) -> Result:
    module = importlib.import_module("pytrees")
    tree = module.ConTreeClassifier(max_depth=2, max_time=seconds).fit(X, y)
    return float(tree.train_error_), tree.status_ == "optimal"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=60.0)
    solvers = {f.__name__: f for f in (ours, pystreed, pycontree, pytrees)}
    parser.add_argument("--solvers", nargs="+", choices=list(solvers), default=list(solvers))
    options = parser.parse_args()
    warnings.simplefilter("ignore")
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
                    began = time.process_time()
                    try:
                        errors, proven = solvers[solver](X, y, cuts, leaves, options.seconds)
                    except Exception as error:  # whatever another package raises
                        cells.append(type(error).__name__)
                        continue
                    seconds = time.process_time() - began
                    cells.append(f"{errors:.0f}{'' if proven else '?'} in {seconds:.2f} s")
                print(f"| {name} | {n_cuts} | {leaves} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
