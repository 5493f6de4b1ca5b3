"""Compare our rules with rules of other libraries that imitate the same black box.

    python benchmarks/quality/peers.py [--data iris wine] [--seeds 0 1 2] [--csv peers.csv]
        [--tables-only]

Every learner is trained on the same half of the data with the predictions of the same random forest
as labels. The rules, read by `as_ruleset`, are scored on the other half with its true target. All
learners have default settings. Our learners are `CARTExtractor` and the search by ICE. Only the
search chooses hyperparameters, so the table shows results without manual tuning, not which
algorithm is best.

Results are appended to the CSV immediately, so an interrupted run resumes. Needs imodels, RuleKit
and interpret (`tox -e benchmark-peers`). PSyKE 1.0.4 needs another version of JPype than RuleKit,
so its rows are measured in a separate environment (`tox -e benchmark-peers-psyke`).
"""

from __future__ import annotations

import argparse
import csv
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.datasets import (
    load_breast_cancer,
    load_diabetes,
    load_iris,
    load_wine,
    make_friedman1,
)
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import accuracy_score, r2_score
from sklearn.model_selection import train_test_split
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from skescore import CARTExtractor, ExtractorSearchCV, as_ruleset, make_knowledge_scorer
from skescore.bench import read_methods
from skescore.registry import make_extractor

CLASSIFICATION = {"iris": load_iris, "wine": load_wine, "breast_cancer": load_breast_cancer}
REGRESSION = ("diabetes", "friedman10")
DATA = (*CLASSIFICATION, *REGRESSION)
MEASURES = (
    "ice",
    "neg_fire",
    "n_rules",
    "fidelity",
    "completeness_volume",
    "completeness_instances",
)
COLUMNS = ("data", "seed", "learner", "state", *MEASURES, "seconds", "detail")
CSV = Path(__file__).with_name("peers.csv")
#: Folder with the learners of other libraries.
METHODS = Path(__file__).parents[1] / "arena" / "methods"


def split_data(data: str, seed: int) -> tuple[Any, Any, Any, Any, Any]:
    """Return both halves of the data, and a forest fitted on the first."""
    black_box: Any
    if data in CLASSIFICATION:
        bunch = CLASSIFICATION[data](as_frame=True)
        X, y = bunch.data, bunch.target
        black_box = RandomForestClassifier(100, random_state=0)
    else:
        if data == "diabetes":
            X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
            y = y.to_numpy()
        else:
            X, y = make_friedman1(1000, 10, noise=0.5, random_state=0)
            X = pd.DataFrame(X, columns=[f"x{j}" for j in range(10)])
        black_box = RandomForestRegressor(100, random_state=0)
    # All libraries accept these names.
    X.columns = [str(name).split(" (")[0].replace(" ", "_").replace("/", "_") for name in X.columns]
    X_train, X_test, y_train, y_test = train_test_split(
        X, y, test_size=0.5, random_state=seed, stratify=y if data in CLASSIFICATION else None
    )
    return X_train, y_train, X_test, y_test, black_box.fit(X_train, y_train)


# --- learners: each maps rows, predictions, the black box, labels and a seed to rules ------------


def _ours_cart(rows: Any, predictions: Any, black_box: Any, y: Any, seed: int) -> Any:
    return CARTExtractor(FrozenEstimator(black_box), random_state=seed).fit(rows).rules_


def _ours_search(rows: Any, predictions: Any, black_box: Any, y: Any, seed: int) -> Any:
    """Search with the forest trained on each fold, so no score uses rows that it has seen."""
    return ExtractorSearchCV(black_box, random_state=seed).fit(rows, y).rules_


def _tree(rows: Any, predictions: Any, black_box: Any, y: Any, seed: int) -> Any:
    kind = DecisionTreeRegressor if predictions.dtype.kind == "f" else DecisionTreeClassifier
    return as_ruleset(kind(random_state=seed).fit(rows, predictions))


def _from_arena(file: str, label: str) -> Callable[..., Any]:
    """Return the learner of a method of the arena."""

    def learn(rows: Any, predictions: Any, black_box: Any, y: Any, seed: int) -> Any:
        methods = {entry["label"]: entry["extractor"] for entry in read_methods(METHODS / file)}
        extractor = clone(methods[label]).set_params(random_state=seed)
        return extractor.set_params(estimator=FrozenEstimator(black_box)).fit(rows).rules_

    return learn


def _psyke(algorithm: str) -> Callable[..., Any]:
    def learn(rows: Any, predictions: Any, black_box: Any, y: Any, seed: int) -> Any:
        if algorithm == "gridrex" and predictions.dtype.kind != "f":
            raise NotImplementedError("regression only")
        return make_extractor(f"psyke:{algorithm}", FrozenEstimator(black_box)).fit(rows).rules_

    return learn


LEARNERS: dict[str, Callable[..., Any]] = {
    "skescore search": _ours_search,
    "skescore CART": _ours_cart,
    "scikit-learn tree": _tree,
    **{
        f"imodels {name}": _from_arena("imodels.py", f"imodels {name}")
        for name in ("SkopeRules", "GreedyRuleList", "BoostedRules")
    },
    "imodels RuleFit": _from_arena("imodels_rulefit.py", "imodels RuleFit"),
    "imodels FIGS": _from_arena("imodels.py", "imodels FIGS"),
    "RuleKit": _from_arena("rulekit.py", "RuleKit"),
    "interpret tree": _from_arena("interpret.py", "interpret tree"),
    "PSyKE CART": _psyke("cart"),
    "PSyKE GridEx": _psyke("gridex"),
    "PSyKE GridREx": _psyke("gridrex"),
    "PSyKE CREAM": _psyke("cream"),
}


# --- running -------------------------------------------------------------------------------------


def measure(data: str, seed: int, learner: str) -> dict[str, Any]:
    X_train, y_train, X_test, y_test, black_box = split_data(data, seed)
    predictions = np.asarray(black_box.predict(X_train))
    start = time.process_time()
    rules = LEARNERS[learner](X_train, predictions, black_box, y_train, seed)
    seconds = time.process_time() - start
    scores = dict(make_knowledge_scorer()(rules, X_test, y_test))
    rule_predictions, model_predictions = (
        np.asarray(rules.predict(X_test)),
        np.asarray(black_box.predict(X_test)),
    )
    if data in CLASSIFICATION:
        scores["fidelity"] = accuracy_score(model_predictions, rule_predictions)
    else:
        scores["fidelity"] = r2_score(model_predictions, rule_predictions)
    return {name: scores[name] for name in MEASURES} | {"state": "done", "seconds": seconds}


def run(options: argparse.Namespace) -> None:
    measured_cells = set()
    if options.csv.exists():
        measured_cells = set(
            pd.read_csv(options.csv, dtype=str)[["data", "seed", "learner"]].itertuples(
                index=False, name=None
            )
        )
    for data in options.data:
        for seed in options.seeds:
            for learner in options.learners:
                if (data, str(seed), learner) in measured_cells:
                    continue
                row = {"data": data, "seed": seed, "learner": learner}
                try:
                    row |= measure(data, seed, learner)
                except Exception as error:  # the other learners are still measured
                    row |= {"state": "failed", "detail": f"{type(error).__name__}: {error}"[:120]}
                is_new = not options.csv.exists()
                with options.csv.open("a", newline="", encoding="utf-8") as file:
                    writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
                    if is_new:
                        writer.writeheader()
                    writer.writerow(
                        {k: f"{v:.6g}" if isinstance(v, float) else v for k, v in row.items()}
                    )
                print(data, seed, learner, row["state"], row.get("detail", ""), file=sys.stderr)


def print_tables(path: Path) -> None:
    table = pd.read_csv(path)
    for data in [d for d in DATA if d in set(table["data"])]:
        part = table[(table["data"] == data)]
        seeds = part["seed"].nunique()
        print(f"\n### {data}, {seeds} splits\n")
        print(
            "| learner | ICE | FiRe | rules | fidelity | c (volume) | c (rows) | seconds |\n"
            "| :-- | --: | --: | --: | --: | --: | --: | --: |"
        )
        for learner in [name for name in LEARNERS if name in set(part["learner"])]:
            successful = part[(part["learner"] == learner) & (part["state"] == "done")]
            if not len(successful):
                reason = str(part[part["learner"] == learner]["detail"].iloc[0])
                print(f"| {learner} | - ({reason}) | | | | | | |")
                continue
            m = successful[[*MEASURES, "seconds"]].mean()
            cells = [
                f"{m['ice']:.3f}",
                f"{-m['neg_fire']:.3g}",
                f"{m['n_rules']:.1f}",
                f"{m['fidelity']:.3f}",
                f"{m['completeness_volume']:.2f}",
                f"{m['completeness_instances']:.2f}",
                f"{m['seconds']:.1f}",
            ]
            print(f"| {learner} | {' | '.join(cells)} |")


def print_summary(path: Path) -> None:
    """Print one table with the ICE, rules and fidelity of all learners and data sets."""
    table = pd.read_csv(path)
    data_names = [d for d in DATA if d in set(table["data"])]
    print("\n### ICE (rules, fidelity to the forest)\n")
    print(f"| learner | {' | '.join(data_names)} |\n| :-- |{' --: |' * len(data_names)}")
    for learner in [name for name in LEARNERS if name in set(table["learner"])]:
        cells = []
        for data in data_names:
            part = table[(table["data"] == data) & (table["learner"] == learner)]
            successful = part[part["state"] == "done"]
            m = successful[list(MEASURES)].mean()
            cell = f"{m['ice']:.3f} ({m['n_rules']:.1f}, {m['fidelity']:.2f})"
            cells.append(cell if len(successful) else "-")
        print(f"| {learner} | {' | '.join(cells)} |")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", nargs="+", choices=DATA, default=list(DATA))
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument(
        "--learners",
        nargs="+",
        choices=list(LEARNERS),
        default=[name for name in LEARNERS if not name.startswith("PSyKE")],
    )
    parser.add_argument("--csv", type=Path, default=CSV)
    parser.add_argument("--tables-only", action="store_true")
    options = parser.parse_args()
    if not options.tables_only:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            run(options)
    print_tables(options.csv)
    print_summary(options.csv)
    return 0


if __name__ == "__main__":
    sys.exit(main())
