"""Compare the search with peers that are tuned with the same time, on KEEL tables.

    python benchmarks/arena/equal_budgets.py [--budgets 5] [--tables odd] [--seconds 3600]
        [--jobs 1] [--output FILE] [--page FILE]

Every method explains the same random forest on one half of a table, with at most 8 rules or leaves
(or as many as there are classes), and gets the same number of seconds after the black box is
fitted. The search gets them as its `timeout`. Each peer is tuned by Optuna's default sampler, which
maximizes the mean agreement with the black box on five held-out folds. The first trial uses the
defaults, and no trial starts after the budget. The final fit is not counted for any method. For
solvers of optimal trees, the budget limits the final fit, and a tenth of it each fit in a trial.

Rows are appended to `equal_budgets.csv` immediately, so an interrupted run resumes.
`equal_budgets.md` is written at the end from the last row of each cell.
"""

from __future__ import annotations

import argparse
import importlib
import itertools
import os
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import optuna
import pandas as pd
from fidelity import (
    COLUMNS,
    FOLDER,
    Cell,
    Group,
    LearnedModel,
    Method,
    append_row,
    interpolate_rows,
    load_tables,
    package_commit,
    prepare_group,
    wrap_numeric_model,
)
from fidelity_report import compare, format_p, format_table
from sklearn.base import ClassifierMixin
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.tree import DecisionTreeClassifier
from threadpoolctl import threadpool_limits

from skescore.tuning import ExtractorSearchCV

CSV, PAGE = FOLDER / "equal_budgets.csv", FOLDER / "equal_budgets.md"
BLACK_BOX = "random-forest"
N_FOLDS = 5
SEARCH = "search"
KEYS = ["budget", "data", "method"]
INTRO = """
# Fidelity with equal budgets

This page compares the search, with its default settings, with other methods that are tuned for the
same amount of time. It is written by `python benchmarks/arena/equal_budgets.py` from
[equal_budgets.csv](equal_budgets.csv); do not edit either file by hand.

**Cells.** The tables are every second table of the [fidelity](fidelity.md) page: its *odd* half, on
which no default of the search was tuned. That page also defines the limit on the number of rules,
the ratios and the columns. There is one black box, a random forest, and one split. The *budget*
starts when the black box has been fitted, and does not include the final fit on all training rows.
Each method has one thread. Means and medians are over the tables that the method completed; ratios
compare the search with the method on the tables that both completed.

**Methods.** *search* is `ExtractorSearchCV` with fidelity as its score, at most as many rules as
the limit, and the budget as `timeout`. *Trepan alone* is the same search with Trepan as its only
extractor. It fails if no trial ends in time. Optuna's default sampler tunes the other methods. It
starts with the default parameters and maximizes the mean agreement with the black box in five-fold
cross-validation. The tuned methods are CART (leaves, rows per leaf, criterion, complexity
penalty), CART on queries (also the number of interpolated rows that the black box labels), FIGS
(splits, trees, impurity decrease), pycontree (depth) and pystreed (depth, leaves, complexity
penalty, rows per leaf, cut points per feature). The time limit of the final fit of pycontree
and pystreed equals the budget, and each fit in a trial may take a tenth of it.
"""


class Tuner:
    """Tuning of a model by Optuna within the budget of a cell."""

    def __init__(self, cell: Cell, defaults: dict[str, Any]) -> None:
        self.cell = cell
        self.defaults = defaults
        counts = np.bincount(cell.codes)
        splitter = StratifiedKFold if counts[counts > 0].min() >= N_FOLDS else KFold
        folds = splitter(N_FOLDS, shuffle=True, random_state=cell.seed)
        self.folds = list(folds.split(cell.numbers, cell.codes))

    def tune(self, learn: Callable[[optuna.trial.BaseTrial, Any, Any, float], Any]) -> Any:
        """Tune `learn(trial, X, y, seconds)` within the budget; return it fitted on all rows."""
        cell, budget = self.cell, self.cell.solver_seconds
        X, y = cell.numbers, cell.codes

        def evaluate(trial: optuna.Trial) -> float:
            agreements = []
            for train, test in self.folds:
                model = learn(trial, X[train], y[train], budget / 10)
                agreements.append(np.mean(model.predict(X[test]) == y[test]))
            return float(np.mean(agreements))

        study = optuna.create_study(
            direction="maximize", sampler=optuna.samplers.TPESampler(seed=cell.seed)
        )
        study.enqueue_trial(self.defaults)
        study.optimize(evaluate, timeout=budget, catch=(ValueError, RuntimeError))
        return learn(optuna.trial.FixedTrial(study.best_params), X, y, budget)


def _suggest_tree(trial: optuna.trial.BaseTrial, cell: Cell) -> DecisionTreeClassifier:
    """Return an unfitted tree of scikit-learn."""
    return DecisionTreeClassifier(
        max_leaf_nodes=trial.suggest_int("max_leaf_nodes", 2, cell.limit),
        min_samples_leaf=trial.suggest_int("min_samples_leaf", 1, 20, log=True),
        criterion=trial.suggest_categorical("criterion", ["gini", "entropy"]),
        ccp_alpha=trial.suggest_float("ccp_alpha", 0.0, 0.02),
        random_state=cell.seed,
    )


def _tree_defaults(cell: Cell) -> dict[str, Any]:
    return {
        "max_leaf_nodes": cell.limit,
        "min_samples_leaf": 1,
        "criterion": "gini",
        "ccp_alpha": 0.0,
    }


def tune_cart(cell: Cell) -> LearnedModel:
    """Tune scikit-learn's tree on the training rows."""
    tree = Tuner(cell, _tree_defaults(cell)).tune(
        lambda trial, X, y, _: _suggest_tree(trial, cell).fit(X, y)
    )
    return wrap_numeric_model(cell, tree, tree.get_n_leaves())


def tune_cart_on_queries(cell: Cell) -> LearnedModel:
    """Tune scikit-learn's tree, and the number of interpolated rows."""
    queries = interpolate_rows(cell.X, cell.categories, 10_000, cell.seed)
    numbers = cell.encoder.transform(queries)
    # A forest may predict a class for interpolated rows that it never predicts for training rows.
    labels = np.asarray(cell.model.predict(queries))
    is_known = np.isin(labels, cell.classes)
    codes = np.searchsorted(cell.classes, labels[is_known])
    numbers = numbers[is_known]

    def learn(trial: optuna.trial.BaseTrial, X: Any, y: Any, _: float) -> Any:
        n = trial.suggest_categorical("n_queries", [0, 300, 1000, 3000, 10_000])
        return _suggest_tree(trial, cell).fit(
            np.vstack([X, numbers[:n]]), np.concatenate([y, codes[:n]])
        )

    tree = Tuner(cell, _tree_defaults(cell) | {"n_queries": 10_000}).tune(learn)
    return wrap_numeric_model(cell, tree, tree.get_n_leaves())


def tune_figs(cell: Cell) -> LearnedModel:
    """Tune FIGS; fits with more leaves than the limit are repeated with fewer splits."""
    from imodels import FIGSClassifier

    def learn(trial: optuna.trial.BaseTrial, X: Any, y: Any, _: float) -> Any:
        for n_splits in range(trial.suggest_int("max_rules", 1, cell.limit - 1), 0, -1):
            np.random.seed(cell.seed)  # its stumps use the global generator
            model = FIGSClassifier(
                max_rules=n_splits,
                max_trees=trial.suggest_categorical("max_trees", [None, 1, 2, 3]),
                min_impurity_decrease=trial.suggest_float("min_impurity_decrease", 0.0, 0.02),
                random_state=cell.seed,
            ).fit(X, y)
            if model.complexity_ + len(model.trees_) <= cell.limit:
                break
        return model

    defaults = {"max_rules": cell.limit - 1, "max_trees": None, "min_impurity_decrease": 0.0}
    model = Tuner(cell, defaults).tune(learn)
    return wrap_numeric_model(cell, model, model.complexity_ + len(model.trees_))


def tune_contree(cell: Cell) -> LearnedModel:
    """Tune the depth of optimal trees on continuous features."""
    from pycontree import ConTree

    depth = int(np.floor(np.log2(cell.limit)))

    def learn(trial: optuna.trial.BaseTrial, X: Any, y: Any, seconds: float) -> Any:
        tree = ConTree(max_depth=trial.suggest_int("max_depth", 1, depth), time_limit=seconds)
        tree.fit(X, y)
        return tree

    tree = Tuner(cell, {"max_depth": depth}).tune(learn)
    return wrap_numeric_model(cell, tree, tree.get_num_leaf_nodes())


def tune_streed(cell: Cell) -> LearnedModel:
    """Tune optimal trees on binarized features."""
    from pystreed import STreeDClassifier

    depth = int(np.ceil(np.log2(cell.limit)))

    def learn(trial: optuna.trial.BaseTrial, X: Any, y: Any, seconds: float) -> ClassifierMixin:
        max_depth = trial.suggest_int("max_depth", 1, depth)
        n_nodes = trial.suggest_int("max_num_nodes", 1, cell.limit - 1)
        return STreeDClassifier(
            max_depth=max_depth,
            max_num_nodes=min(n_nodes, 2**max_depth - 1),
            min_leaf_node_size=trial.suggest_int("min_leaf_node_size", 1, 20, log=True),
            cost_complexity=trial.suggest_float("cost_complexity", 0.0, 0.02),
            n_thresholds=trial.suggest_int("n_thresholds", 3, 20),
            time_limit=seconds,
        ).fit(X, y)

    defaults = {
        "max_depth": depth,
        "max_num_nodes": cell.limit - 1,
        "min_leaf_node_size": 1,
        "cost_complexity": 0.0,
        "n_thresholds": 10,
    }
    tree = Tuner(cell, defaults).tune(learn)
    return wrap_numeric_model(cell, tree, tree.get_n_leaves())


def _search(cell: Cell, extractors: tuple[str, ...] | None) -> LearnedModel:
    search = ExtractorSearchCV(
        FrozenEstimator(cell.model),
        extractors=extractors,
        scoring="fidelity",
        max_rules=cell.limit,
        n_trials=None,
        timeout=cell.solver_seconds,
        random_state=cell.seed,
    ).fit(cell.X, cell.y)
    best = search.best_extractor_
    return LearnedModel(best.predict, best.n_rules_)


def search_all(cell: Cell) -> LearnedModel:
    """Run the default search within the budget."""
    return _search(cell, None)


def search_trepan(cell: Cell) -> LearnedModel:
    """Run the search with Trepan alone within the budget."""
    return _search(cell, ("trepan",))


METHODS = {
    SEARCH: Method(search_all, is_ours=True),
    "Trepan alone": Method(search_trepan, is_ours=True),
    "CART": Method(tune_cart),
    "CART on queries": Method(tune_cart_on_queries),
    "FIGS": Method(tune_figs, module="imodels"),
    "pycontree": Method(tune_contree, module="pycontree"),
    "pystreed": Method(tune_streed, module="pystreed"),
}


def measure_budget(group: Group, budget: float) -> list[dict[str, Any]]:
    """Return the rows of all methods of a group."""
    with warnings.catch_warnings(), threadpool_limits(limits=1):
        warnings.simplefilter("ignore")
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        prepared = prepare_group(group)
        prepared.cell.solver_seconds = budget
        rows = []
        for label in group.methods:
            importlib.import_module(METHODS[label].module)
            rows.append({"budget": budget} | prepared.measure(label, METHODS[label]))
        return rows


def measure_missing(options: argparse.Namespace) -> None:
    """Measure all missing cells."""
    end = time.monotonic() + options.seconds
    commit = package_commit()
    finished: set[tuple[Any, ...]] = set()
    if options.output.exists():
        finished = set(pd.read_csv(options.output)[KEYS].itertuples(index=False, name=None))
    tasks = []
    for budget, (name, (suite, table)) in itertools.product(
        options.budgets, load_tables(options.tables).items()
    ):
        missing = tuple(m for m in METHODS if (budget, name, m) not in finished)
        if missing:
            tasks.append((Group(suite, name, table, BLACK_BOX, 0, missing, commit), budget))
    parallel = joblib.Parallel(
        options.jobs, return_as="generator_unordered", pre_dispatch="n_jobs", batch_size=1
    )
    calls = (joblib.delayed(measure_budget)(*task) for task in tasks if time.monotonic() < end)
    for rows in parallel(calls):
        for row in rows:
            append_row(options.output, row, ("budget", *COLUMNS))


def format_page(rows: pd.DataFrame) -> str:
    """Return the page with the search compared with each method, by budget."""
    rows = rows.drop_duplicates(KEYS, keep="last")
    rows = rows.assign(disagreement=1 - rows["fidelity"])
    commits = ", ".join(sorted(set(rows["commit"])))
    lines = [INTRO.strip(), "", f"Commit of the package: {commits}.", ""]
    for budget, part in rows.groupby("budget"):
        table = []
        for method in METHODS:
            group = part[part["method"] == method]
            completed = group[group["fidelity"].notna()]
            line = [method, len(completed), len(group) - len(completed)]
            line += [f"{completed[c].mean():.4f}" for c in ("fidelity", "correctness")]
            line += [f"{completed['n_rules'].mean():.1f}"]
            line += [f"{completed[c].median():.2f}" for c in ("seconds", "cpu_seconds")]
            comparison = None if method == SEARCH else compare(part, SEARCH, method)
            line += (
                ["", "", ""]
                if comparison is None
                else [f"{comparison.ratio:.3f}", format_p(comparison.p), comparison.record]
            )
            table.append(line)
        head = ["method", "tables", "failed", "fidelity", "correctness", "rules"]
        head += ["seconds, median", "CPU, median", "ratio of the search", "p"]
        head += ["ahead / equal / behind"]
        unit = "second" if budget == 1 else "seconds"
        lines += [f"## {budget:g} {unit}", "", *format_table(head, table)]
    return "\n".join(lines).rstrip() + "\n"


def main() -> None:
    """Measure missing cells and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--budgets", nargs="+", type=float, default=[5.0], help="seconds")
    parser.add_argument("--tables", choices=("all", "even", "odd"), default="odd")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=np.inf, help="start no table after this")
    parser.add_argument("--output", type=Path, default=CSV)
    parser.add_argument("--page", type=Path, default=PAGE)
    options = parser.parse_args()
    settings = {"OMP_NUM_THREADS": "1", "PYTHONHASHSEED": "0"}
    if any(os.environ.get(name) != value for name, value in settings.items()):
        os.execve(sys.executable, [sys.executable, *sys.argv], os.environ | settings)
    measure_missing(options)
    rows = pd.read_csv(options.output, dtype={"commit": str, "error": str})
    options.page.write_text(format_page(rows), encoding="utf-8")


if __name__ == "__main__":
    main()
