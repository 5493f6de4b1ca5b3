"""OptimalTreeExtractor: spaces, statuses, initial rules and warnings."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.frozen import FrozenEstimator
from sklearn.neighbors import KNeighborsRegressor

from skescore.black_boxes import CallableClassifier
from skescore.extractors import CARTExtractor, OptimalListExtractor, OptimalTreeExtractor
from skescore.optimal import Cuts, SearchSpace, SolverLimits, optimal_lists, optimal_trees
from skescore.rules import Interval, Rule, RuleSet


@pytest.fixture(scope="module")
def iris() -> tuple[pd.DataFrame, RandomForestClassifier]:
    data = load_iris(as_frame=True)
    labels = data.target_names[data.target]
    return data.data, RandomForestClassifier(20, random_state=0).fit(data.data, labels)


def test_optimal_tree_equals_the_optimum_over_all_cuts(iris: Any) -> None:
    X, forest = iris
    extractor = OptimalTreeExtractor(forest).fit(X)
    predictions = forest.predict(X)
    frontier = optimal_trees(X, predictions, SearchSpace(4, cuts=None))
    assert extractor.status_ == "optimal over all cuts"
    assert extractor.gap_ == 0
    np.testing.assert_array_equal(extractor.lower_bounds_, frontier.lower)
    assert (extractor.rules_.match(X).sum(axis=1) == 1).all()
    for size, rules in zip(extractor.frontier_.sizes, extractor.frontier_.rules, strict=True):
        assert (rules.predict(X) != predictions).sum() == frontier.upper[size - 1]


def test_optimal_tree_uses_cuts_of_cart() -> None:
    X, y = load_iris(return_X_y=True)
    X, y = X[::5], y[::5]
    forest = RandomForestClassifier(20, random_state=0).fit(X, y)
    for n_cuts in (1, 2, 16):
        tree = OptimalTreeExtractor(forest, max_leaf_nodes=3, cuts_per_feature=n_cuts).fit(X)
        cart = CARTExtractor(forest, max_leaf_nodes=3, random_state=0).fit(X)
        assert tree.fidelity(X) >= cart.fidelity(X)
        assert tree.status_.startswith("optimal over")


def test_optimal_tree_warns_of_a_gap_with_both_bounds(iris: Any) -> None:
    X, forest = iris
    with pytest.warns(ConvergenceWarning, match=r"loss \(errors\) is 3, .* lower bound is 0\."):
        few = OptimalTreeExtractor(forest, max_leaf_nodes=5, max_nodes=1).fit(X)
    more = OptimalTreeExtractor(forest, max_leaf_nodes=5, max_work=None).fit(X)
    assert few.status_ == "node limit reached over all cuts"
    assert few.gap_ == 3
    assert (few.lower_bounds_ <= more.frontier_.upper).all()
    assert (few.frontier_.upper >= more.lower_bounds_).all()


@pytest.mark.slow
def test_optimal_tree_with_a_work_limit_is_reproducible() -> None:
    X, y = load_breast_cancer(return_X_y=True)
    forest = RandomForestClassifier(10, random_state=0).fit(X, y)
    results = []
    for rows in (X, X.copy()):
        extractor = OptimalTreeExtractor(forest, max_leaf_nodes=8, max_work=0.3)
        with pytest.warns(ConvergenceWarning, match="work limit reached over 16 cuts per feature"):
            results.append(extractor.fit(rows))
    first, second = results
    assert str(first.rules_) == str(second.rules_)
    np.testing.assert_array_equal(first.lower_bounds_, second.lower_bounds_)


@pytest.mark.parametrize("kind", [OptimalTreeExtractor, OptimalListExtractor])
def test_optimal_rules_use_exact_fractional_weights(kind: Any) -> None:
    for seed in range(8):
        rng = np.random.default_rng(seed)
        X = pd.DataFrame({"x": np.arange(20.0), "z": rng.permutation(20).astype(float)})
        labels, weights = rng.integers(0, 2, 20), rng.uniform(0.05, 1, 20).round(2)
        black_box = CallableClassifier(lambda Z, y=labels: y[Z["x"].astype(int)], classes=[0, 1])
        size = {"max_leaf_nodes" if kind is OptimalTreeExtractor else "max_rules": 3}
        extractor = kind(black_box, cuts_per_feature=None, **size).fit(X, sample_weight=weights)
        solve = optimal_trees if kind is OptimalTreeExtractor else optimal_lists
        conditions = {} if kind is OptimalTreeExtractor else {"max_conditions": 2}
        space = SearchSpace(max_rules=3, cuts=None, **conditions)
        frontier = solve(X, labels, space, sample_weight=weights)
        loss = weights[extractor.predict(X) != labels].sum()
        assert loss == pytest.approx(frontier.upper[-1])
        assert extractor.lower_bounds_[-1] == pytest.approx(loss)


def test_optimal_tree_supports_categories_and_missing_values() -> None:
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
def test_optimal_tree_minimizes_errors_of_numbers(criterion: str) -> None:
    X, y = load_diabetes(return_X_y=True)
    X, y = X[:60, [2, 8]], y[:60]
    box = KNeighborsRegressor(5).fit(X, y)
    extractor = OptimalTreeExtractor(box, criterion=criterion, max_leaf_nodes=3, max_work=None)
    extractor.fit(X)
    difference = np.abs(extractor.predict(X) - box.predict(X))
    power = 2 if criterion == "squared_error" else 1
    assert (difference**power).sum() == pytest.approx(extractor.frontier_.upper[-1])
    assert extractor.gap_ == 0


def test_optimal_tree_starts_from_rules_or_extractors() -> None:
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.integers(0, 2, (400, 6)).astype(float), columns=list("abcdef"))
    X["g"] = rng.choice(["u", "v", "w"], 400)
    box = CallableClassifier(
        lambda rows: np.where((rows["a"] + rows["b"] + (rows["g"] == "v")) % 2 == 1, "odd", "even"),
        classes=["even", "odd"],
    )
    whole = OptimalTreeExtractor(box, max_leaf_nodes=8).fit(X)
    assert whole.frontier_.upper[-1] == 0
    options = {"max_leaf_nodes": 8, "max_nodes": 1}
    few = OptimalTreeExtractor(box, **options).fit(X)
    assert few.frontier_.upper[-1] > 0  # greedy trees cannot represent parity
    for start in (whole, whole.rules_, FrozenEstimator(whole)):
        started = OptimalTreeExtractor(box, **options, start=start).fit(X)
        assert started.frontier_.upper[-1] == 0
        assert (started.lower_bounds_ <= whole.lower_bounds_).all()
    # Rules with more leaves than allowed have no effect.
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
    rule = Rule((Interval(0, upper=1.0),), "odd")
    other = RuleSet([rule], ["height"], task="classification", classes=["even", "odd"])
    with pytest.raises(ValueError, match="start must hold rules about features of X, but 'height'"):
        OptimalTreeExtractor(box, start=other).fit(X)


def test_optimal_trees_start_from_the_nearest_tree() -> None:
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
    frontier = optimal_trees(X, y, space, start=[start], limits=SolverLimits(max_nodes=1))
    assert frontier.upper[-1] == optimal_trees(X, y, space).upper[-1] == 0
