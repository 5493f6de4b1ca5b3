"""Search spaces: one per extractor, every point of which the extractor accepts."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor

from skescore.registry import EXTRACTORS, extractor_class
from skescore.tuning import search_space
from skescore.tuning.spaces import starting_points

CASES = [(name, task) for name, spec in EXTRACTORS.items() for task in spec.tasks]
RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3))
TARGETS = {
    "classification": np.array(["low", "middle", "high"])[np.digitize(X[:, 0], [-0.5, 0.5])],
    "regression": 3 * X[:, 0] + X[:, 1] ** 2,
}
BLACK_BOXES = {"classification": KNeighborsClassifier(), "regression": KNeighborsRegressor()}


def points_of(space: dict[str, BaseDistribution]) -> st.SearchStrategy[dict[str, Any]]:
    """Any point of a space, corners included."""

    def values(distribution: BaseDistribution) -> st.SearchStrategy[Any]:
        if isinstance(distribution, CategoricalDistribution):
            return st.sampled_from(distribution.choices)
        if isinstance(distribution, IntDistribution):
            return st.integers(distribution.low, distribution.high)
        assert isinstance(distribution, FloatDistribution)
        return st.floats(distribution.low, distribution.high)

    return st.fixed_dictionaries({name: values(d) for name, d in space.items()})


@pytest.mark.parametrize(("name", "task"), CASES)
def test_every_extractor_has_a_space_of_its_own_parameters(name: str, task: str) -> None:
    space = search_space(name, X, TARGETS[task], task=task)
    assert space
    extractor = extractor_class(name)(BLACK_BOXES[task])
    assert set(space) <= set(extractor.get_params(deep=False)) - {"estimator"}
    assert all(isinstance(d, BaseDistribution) for d in space.values())


@pytest.mark.parametrize(("name", "task"), CASES)
@settings(max_examples=25)
@given(data=st.data())
def test_every_point_of_a_space_can_be_fitted(name: str, task: str, data: st.DataObject) -> None:
    n_rows = data.draw(st.sampled_from([6, 40]))  # spaces depend on the number of rows
    rows, target = X[:n_rows], TARGETS[task][:n_rows]
    params = data.draw(points_of(search_space(name, rows, target, task=task)))
    extractor = extractor_class(name)(BLACK_BOXES[task]).set_params(**params)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # few leaves, one answer: bad, not wrong
        extractor.fit(rows, target)
    assert extractor.n_rules_ >= 1
    assert len(extractor.predict(X)) == len(X)


@pytest.mark.parametrize(("name", "task"), CASES)
@pytest.mark.parametrize("n_classes", [2, 3, 8, 60])
@pytest.mark.parametrize("n_rows", [4, 10, 200])
def test_starting_points_lie_in_the_space(
    name: str, task: str, n_classes: int, n_rows: int
) -> None:
    y = np.arange(n_rows) % n_classes
    y = y if task == "classification" else y.astype(float)
    rows = np.zeros((n_rows, 2))
    space = search_space(name, rows, y, task=task)
    points = starting_points(name, space, y, task)
    for point in points:
        for parameter, value in point.items():
            assert space[parameter].low <= value <= space[parameter].high
    if n_classes <= 8 and n_rows == 200:
        assert points  # a usual problem has some


def test_starting_points_respect_a_space_of_ones_own() -> None:
    y = np.arange(30) % 3
    # The points ask for max_leaves 3, 4 and 6 with max_depth 4, n_slices 3 and 8 with 0.99 and 1.
    assert starting_points("cart", {"max_leaves": IntDistribution(2, 9)}, y, "classification") == []
    space = {"max_leaves": IntDistribution(2, 8, step=2), "max_depth": IntDistribution(1, 5)}
    found = starting_points("cart", space, y, "classification")
    assert [point["max_leaves"] for point in found] == [4, 6]
    space = {"max_leaves": CategoricalDistribution([3, 4]), "max_depth": IntDistribution(1, 5)}
    assert starting_points("cart", space, y, "classification") == []
    space = {
        "n_slices": IntDistribution(2, 4),
        "importance_threshold": FloatDistribution(0, 1, step=0.01),
        "depth": IntDistribution(1, 2),
    }
    found = starting_points("gridex", space, y, "classification")
    assert found == [{"n_slices": 3, "importance_threshold": 0.99, "depth": 1}]
    assert starting_points("no extractor of ours", space, y, "classification") == []


@pytest.mark.parametrize("factor", [1e-3, 1000.0])
def test_thresholds_follow_the_units_of_the_target(factor: float) -> None:
    y = TARGETS["regression"]
    one, other = (search_space("gridex", X, values)["threshold"] for values in (y, factor * y))
    assert isinstance(one, FloatDistribution)
    assert isinstance(other, FloatDistribution)
    assert other.low == pytest.approx(factor * one.low)
    assert other.high == pytest.approx(factor * one.high)
    assert one.low < np.std(y) <= one.high


def test_thresholds_of_classes_are_shares() -> None:
    for y in (TARGETS["classification"], np.arange(40) % 3 * 1000):
        threshold = search_space("gridex", X, y)["threshold"]
        assert isinstance(threshold, FloatDistribution)
        assert 0 < threshold.low < threshold.high <= 0.5


def test_sizes_follow_the_data() -> None:
    few, many = (search_space("cart", np.zeros((n, 1)), np.arange(n) % 2) for n in (10, 1000))
    assert (few["max_leaves"].high, many["max_leaves"].high) == (5, 32)
    assert (few["min_samples_leaf"].high, many["min_samples_leaf"].high) == (1, 50)
    letters = search_space("cart", np.zeros((520, 1)), np.arange(520) % 52)
    assert letters["max_leaves"].high > 52  # each class can have a leaf


def test_the_slow_criterion_is_left_out_where_it_would_take_long() -> None:
    criteria = [
        search_space("cart", np.zeros((n, 1)), np.arange(n, dtype=float))["criterion"].choices
        for n in (5000, 5001)
    ]
    assert criteria == [("squared_error", "absolute_error"), ("squared_error",)]


def test_the_task_is_read_off_the_target_unless_it_is_said() -> None:
    whole_numbers = np.arange(40) % 7
    assert "gini" in search_space("cart", X, whole_numbers)["criterion"].choices
    asked = search_space("cart", X, whole_numbers, task="regression")
    assert "squared_error" in asked["criterion"].choices
    assert "squared_error" in search_space("cart", X, TARGETS["regression"])["criterion"].choices
    for labels in (pd.Series(TARGETS["classification"]), whole_numbers.astype(bool), ["a"] * 40):
        assert "gini" in search_space("cart", X, labels)["criterion"].choices


def test_a_constant_target_has_a_space() -> None:
    threshold = search_space("gridex", X, np.full(40, 2.5))["threshold"]
    assert isinstance(threshold, FloatDistribution)
    assert 0 < threshold.low < threshold.high


def test_a_space_may_be_changed_freely() -> None:
    y = TARGETS["classification"]
    search_space("cart", X, y).clear()
    assert search_space("cart", X, y)


def test_unknown_names_and_tasks() -> None:
    with pytest.raises(ValueError, match=r"no search space for 'grid-ex'\. Did you mean 'gridex'"):
        search_space("grid-ex", X, TARGETS["regression"])
    with pytest.raises(ValueError, match="'classification' or 'regression', got 'ranking'"):
        search_space("cart", X, TARGETS["regression"], task="ranking")
