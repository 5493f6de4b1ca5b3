"""Optimal trees of black boxes: what is particular to them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_diabetes, load_iris
from sklearn.ensemble import RandomForestClassifier
from sklearn.neighbors import KNeighborsRegressor

from skescore.extractors import CallableClassifier, CARTExtractor, OptimalTreeExtractor
from skescore.optimal import optimal_trees


@pytest.fixture(scope="module")
def iris() -> tuple[pd.DataFrame, RandomForestClassifier]:
    data = load_iris(as_frame=True)
    labels = data.target_names[data.target]
    return data.data, RandomForestClassifier(20, random_state=0).fit(data.data, labels)


def test_no_tree_of_its_kind_departs_less(iris: Any) -> None:
    X, forest = iris
    extractor = OptimalTreeExtractor(forest).fit(X)
    predictions = forest.predict(X)
    frontier = optimal_trees(X, predictions)
    assert extractor.status_ == "optimal"
    assert extractor.gap_ == 0
    np.testing.assert_array_equal(extractor.lower_bounds_, frontier.lower)
    assert (extractor.rules_.match(X).sum(axis=1) == 1).all()
    for size, rules in zip(extractor.frontier_.sizes, extractor.frontier_.rules, strict=True):
        assert (rules.predict(X) != predictions).sum() == frontier.upper[size - 1]


@pytest.mark.parametrize("leaves", [3, 4, 5])
def test_no_tree_of_cart_is_nearer_to_the_black_box(iris: Any, leaves: int) -> None:
    X, forest = iris
    best = OptimalTreeExtractor(
        forest, max_leaf_nodes=leaves, cuts_per_feature=None, max_nodes=None
    ).fit(X)
    greedy = CARTExtractor(forest, max_leaf_nodes=leaves, random_state=0).fit(X)
    assert best.status_ == "optimal"
    assert best.fidelity(X) >= greedy.fidelity(X)


def test_few_nodes_leave_a_gap_that_is_told(iris: Any) -> None:
    X, forest = iris
    few = OptimalTreeExtractor(forest, max_leaf_nodes=6, max_nodes=1).fit(X)
    more = OptimalTreeExtractor(forest, max_leaf_nodes=6).fit(X)
    assert few.status_ == "node_limit"
    assert few.gap_ > 0
    assert (few.lower_bounds_ <= more.frontier_.upper).all()
    assert (few.frontier_.upper >= more.lower_bounds_).all()


def test_categories_and_missing_values_as_they_stand() -> None:
    rng = np.random.default_rng(0)
    size = 200
    X = pd.DataFrame({
        "colour": pd.Series(rng.choice(["red", "blue", "green", None], size), dtype=object),
        "age": np.where(rng.random(size) < 0.2, np.nan, rng.integers(20, 60, size)),
        "noise": rng.normal(size=size),
    })  # fmt: skip

    def box(rows: pd.DataFrame) -> np.ndarray:
        return np.where((rows["colour"] == "red") | rows["age"].isna(), "yes", "no")

    extractor = OptimalTreeExtractor(
        CallableClassifier(box, classes=["no", "yes"]), max_leaf_nodes=3
    ).fit(X)
    assert extractor.fidelity(X) == 1
    assert extractor.lower_bounds_[-1] == 0
    assert "colour" in str(extractor.rules_)
    assert "age is" in str(extractor.rules_)


@pytest.mark.parametrize("criterion", ["squared_error", "absolute_error"])
def test_regression(criterion: str) -> None:
    X, y = load_diabetes(return_X_y=True)
    X, y = X[:60, [2, 8]], y[:60]
    box = KNeighborsRegressor(5).fit(X, y)
    extractor = OptimalTreeExtractor(box, criterion=criterion, max_leaf_nodes=3, max_nodes=None)
    extractor.fit(X)
    difference = np.abs(extractor.predict(X) - box.predict(X))
    power = 2 if criterion == "squared_error" else 1
    assert (difference**power).sum() == pytest.approx(extractor.frontier_.upper[-1])
    assert extractor.gap_ == 0
