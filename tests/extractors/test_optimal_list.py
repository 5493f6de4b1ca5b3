"""OptimalListExtractor: spaces, statuses, initial rules and warnings."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_diabetes, load_iris
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.neighbors import KNeighborsRegressor

from skescore.black_boxes import CallableClassifier, CallableRegressor
from skescore.extractors import CARTExtractor, OptimalListExtractor
from skescore.optimal import Cuts, SearchSpace, optimal_lists
from skescore.rules import Interval, OneOf, Rule, RuleSet


@pytest.fixture(scope="module")
def iris() -> tuple[pd.DataFrame, np.ndarray, RandomForestClassifier]:
    data = load_iris(as_frame=True)
    labels = data.target_names[data.target]
    return data.data, labels, RandomForestClassifier(20, random_state=0).fit(data.data, labels)


def test_optimal_list_equals_the_optimum_over_all_cuts(iris) -> None:
    X, _, forest = iris
    extractor = OptimalListExtractor(forest, max_rules=3).fit(X)
    predictions = forest.predict(X)
    frontier = optimal_lists(X, predictions, SearchSpace(3, cuts=None))
    assert extractor.status_ == "optimal over all cuts"
    assert extractor.gap_ == 0
    np.testing.assert_array_equal(extractor.lower_bounds_, frontier.lower)
    assert (extractor.predict(X) != predictions).sum() == frontier.upper[-1]
    assert len(extractor.rules_) <= 3
    for size, rules in zip(extractor.frontier_.sizes, extractor.frontier_.rules, strict=True):
        errors = (rules.predict(X) != predictions).sum()
        assert errors == extractor.frontier_.upper[size - 1]


def test_optimal_list_uses_cuts_of_cart(iris) -> None:
    X, _, forest = iris
    few = OptimalListExtractor(forest, max_rules=3, cuts_per_feature=1).fit(X)
    tree = CARTExtractor(forest, max_leaf_nodes=3, random_state=0).fit(X)
    assert few.status_ == "optimal over 1 cut per feature"
    assert few.fidelity(X) >= tree.fidelity(X)


def test_optimal_list_warns_of_a_gap_with_both_bounds(iris) -> None:
    X, _, forest = iris
    with pytest.warns(ConvergenceWarning, match=r"loss \(errors\) is \d+, .* lower bound is 0\."):
        few = OptimalListExtractor(forest, max_nodes=20).fit(X)
    more = OptimalListExtractor(forest).fit(X)
    assert few.status_ == "node limit reached over all cuts"
    assert few.gap_ > 0
    assert (few.lower_bounds_ <= more.lower_bounds_).all()
    assert few.frontier_.upper[-1] >= more.frontier_.upper[-1]


@pytest.mark.slow
def test_optimal_list_status_names_inexpressible_trees() -> None:
    # Three tests per leaf, and every class occurs in one leaf only.
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (200, 3)).astype(float)
    leaf = X @ [4.0, 2.0, 1.0]
    box = CallableClassifier(lambda rows: rows @ [4.0, 2.0, 1.0], classes=list(range(8)))
    pairs = OptimalListExtractor(box, max_rules=8, max_conditions=2, max_work=0.1)
    expected = r"CART has a loss of 0 with rules that a list of 8 rules of at most 2 tests cannot"
    pairs.fit(X)
    assert (pairs.predict(X) != leaf).any()
    assert expected in pairs.status_
    triples = OptimalListExtractor(box, max_rules=8, max_conditions=3).fit(X)
    assert triples.status_ == "optimal over all cuts"
    assert (triples.predict(X) == leaf).all()


def test_optimal_list_starts_from_rules() -> None:
    rng = np.random.default_rng(3)
    X = pd.DataFrame({f"x{j}": rng.choice(list("abcd"), 300) for j in range(8)})
    X["number"] = rng.normal(size=300)
    names = [*X.columns[::-1]]
    pairs = [[OneOf(8 - 2 * j, ("c",)), OneOf(7 - 2 * j, ("a",))] for j in range(4)]
    premises = [*pairs, [Interval(0, lower=0.0)], []]
    rules = [Rule(tuple(premise), "ny"[k % 2]) for k, premise in enumerate(premises)]
    start = RuleSet(rules, names, task="classification", classes=["n", "y"])
    box = CallableClassifier(lambda rows: start.predict(rows[names]), classes=["n", "y"])
    options = {"max_rules": 6, "max_nodes": 1, "cuts_per_feature": None}
    few = OptimalListExtractor(box, **options).fit(X)
    started = OptimalListExtractor(box, **options, start=start).fit(X)
    assert started.frontier_.upper[-1] == 0 < few.frontier_.upper[-1]
    rule = Rule((Interval(0, upper=1.0),), "n")
    other = RuleSet([rule], ["height"], task="classification", classes=["n", "y"])
    with pytest.raises(ValueError, match="start must hold rules about features of X, but 'height'"):
        started.set_params(start=other).fit(X)


def test_optimal_list_supports_categories_and_missing_values() -> None:
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

    extractor = OptimalListExtractor(CallableClassifier(box, classes=["no", "yes"]), max_rules=3)
    extractor.fit(X)
    assert extractor.fidelity(X) == 1
    assert extractor.lower_bounds_[-1] == 0
    text = str(extractor.rules_)
    assert "color" in text
    assert "age is" in text
    assert extractor.frontier_.space["cuts"]["categories"]["0"] == ["blue", "green", "red"]


def test_optimal_list_cuts_important_features_only() -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(150, 5))
    y = (X[:, 1] > 0.1).astype(int)
    extractor = OptimalListExtractor(
        RandomForestClassifier(10, random_state=0), max_rules=2, n_features_to_select=1
    ).fit(X, y)
    assert list(extractor.frontier_.space["cuts"]["thresholds"]) == ["1"]


@pytest.mark.parametrize("criterion", ["squared_error", "absolute_error"])
def test_optimal_list_minimizes_errors_of_numbers(
    criterion: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(OptimalListExtractor, "readable_bounds", False)  # shortens numbers
    X, y = load_diabetes(return_X_y=True)
    X, y = X[:60, [2, 8]], y[:60]
    box = KNeighborsRegressor(5).fit(X, y)
    extractor = OptimalListExtractor(box, criterion=criterion, max_rules=3, cuts_per_feature=4)
    extractor.fit(X)
    difference = np.abs(extractor.predict(X) - box.predict(X))
    power = 2 if criterion == "squared_error" else 1
    assert (difference**power).sum() == pytest.approx(extractor.frontier_.upper[-1])
    assert extractor.gap_ == pytest.approx(0, abs=1e-6)
    other = optimal_lists(X, box.predict(X), SearchSpace(2, cuts=Cuts(2, {}, {})), loss=criterion)
    assert other.lower[0] == pytest.approx(extractor.lower_bounds_[0])


def test_optimal_list_with_extreme_weights_is_solved_up_to_rounding() -> None:
    answers = np.array([0.1, 4.0, 4.0, 1.0, 0.1, 2.5, -3.0, 2.5])
    weights = [1.0, 1e-9, 1e9, 1.0, 1.0, 1.0, 1e-9, 1e9]
    X = pd.DataFrame(
        {
            "a": [-4, 1, 2, -4, 1, 2, 2, 2],
            "b": pd.Categorical(["", "a", "b", None, "a", "b", "b", "1"]),
            "row": range(8),
        }
    )
    extractor = OptimalListExtractor(
        CallableRegressor(lambda rows: answers[rows["row"].to_numpy(int)]),
        max_rules=4,
        max_conditions=1,
        criterion="absolute_error",
        features=["a", "b"],
    )
    with pytest.warns(ConvergenceWarning, match="solved up to rounding errors over all cuts"):
        extractor.fit(X, sample_weight=weights)
