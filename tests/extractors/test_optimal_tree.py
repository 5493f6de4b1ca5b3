"""Optimal trees of black boxes: what is particular to them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_diabetes, load_iris
from sklearn.ensemble import RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.neighbors import KNeighborsRegressor

from skescore.black_boxes import CallableClassifier
from skescore.extractors import CARTExtractor, OptimalListExtractor, OptimalTreeExtractor
from skescore.optimal import Cuts, SearchSpace, SolverLimits, optimal_trees
from skescore.rules import Interval, Rule, RuleSet


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
    X = pd.DataFrame(
        {
            "color": pd.Series(rng.choice(["red", "blue", "green", None], size), dtype=object),
            "age": np.where(rng.random(size) < 0.2, np.nan, rng.integers(20, 60, size)),
            "noise": rng.normal(size=size),
        }
    )

    def box(rows: pd.DataFrame) -> np.ndarray:
        return np.where((rows["color"] == "red") | rows["age"].isna(), "yes", "no")

    extractor = OptimalTreeExtractor(
        CallableClassifier(box, classes=["no", "yes"]), max_leaf_nodes=3
    ).fit(X)
    assert extractor.fidelity(X) == 1
    assert extractor.lower_bounds_[-1] == 0
    assert "color" in str(extractor.rules_)
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


def test_begins_with_rules_or_with_the_extractor_that_found_them() -> None:
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.integers(0, 2, (400, 6)).astype(float), columns=list("abcdef"))
    X["g"] = rng.choice(["u", "v", "w"], 400)
    box = CallableClassifier(
        lambda rows: np.where((rows["a"] + rows["b"] + (rows["g"] == "v")) % 2 == 1, "odd", "even"),
        classes=["even", "odd"],
    )
    whole = OptimalTreeExtractor(box, max_leaf_nodes=8, max_nodes=None).fit(X)
    assert whole.frontier_.upper[-1] == 0
    options = {"max_leaf_nodes": 8, "max_nodes": 1}
    few = OptimalTreeExtractor(box, **options).fit(X)
    assert few.frontier_.upper[-1] > 0  # greedy trees know nothing of parity
    for start in (whole, whole.rules_, FrozenEstimator(whole)):
        begun = OptimalTreeExtractor(box, **options, start=start).fit(X)
        assert begun.frontier_.upper[-1] == 0
        assert (begun.lower_bounds_ <= whole.lower_bounds_).all()
    # Fewer leaves than the rules have: they are of no use, and do no harm.
    small = OptimalTreeExtractor(box, max_leaf_nodes=3, start=whole).fit(X)
    assert (
        small.frontier_.upper[-1]
        == OptimalTreeExtractor(box, max_leaf_nodes=3).fit(X).frontier_.upper[-1]
    )
    as_list = OptimalListExtractor(box, max_rules=8, max_nodes=1, start=whole).fit(X)
    assert (
        as_list.frontier_.upper[-1]
        <= OptimalListExtractor(box, max_rules=8, max_nodes=1).fit(X).frontier_.upper[-1]
    )
    with pytest.raises(TypeError, match="start must be rules or a fitted extractor"):
        OptimalTreeExtractor(box, start=OptimalTreeExtractor(box)).fit(X)
    other = RuleSet([Rule((), "odd")], ["height"], task="classification", classes=["even", "odd"])
    with pytest.raises(ValueError, match="start must hold rules about features of X, but 'height'"):
        OptimalTreeExtractor(box, start=other).fit(X)


def test_rules_that_are_no_tree_of_the_space_give_the_nearest_one() -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(200, 2))
    y = (X[:, 0] > 0.3).astype(int) + 2 * (X[:, 1] > 0)
    rules = [
        Rule((Interval(0, upper=0.31), Interval(1, upper=0.02)), 0),
        Rule((Interval(0, lower=0.31), Interval(1, upper=0.02)), 1),
        Rule((Interval(1, lower=0.02), Interval(0, upper=0.27)), 2),
        Rule((Interval(1, lower=0.02), Interval(0, lower=0.27)), 3),
    ]
    start = RuleSet(rules, ["x0", "x1"], task="classification", classes=[0, 1, 2, 3])
    space = SearchSpace(4, cuts=Cuts(2, {0: (-1.0, 0.3), 1: (0.0, 1.0)}, {}))
    found = optimal_trees(X, y, space, start=[start], limits=SolverLimits(max_nodes=1))
    assert found.upper[-1] == optimal_trees(X, y, space).upper[-1] == 0
