"""Rules on some features only, and features of rules that the black box does not use."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.spatial.distance import cdist
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.frozen import FrozenEstimator

from skescore.black_boxes import CallableClassifier, CallableRegressor
from skescore.extractors import CARTExtractor, Oracle
from skescore.registry import EXTRACTORS, extractor_class

RNG = np.random.default_rng(0)
X = RNG.uniform(0, 1, (150, 4))
CLASSIFYING = [
    (name, "classification") for name, spec in EXTRACTORS.items() if "classification" in spec.tasks
]


def used(rules) -> set[int]:
    return {j for rule in rules.rules for c in rule.conditions for j in c.features}


@pytest.mark.parametrize("case", CLASSIFYING, ids=lambda case: case[0])
def test_features_parameter_limits_features_of_rules(make) -> None:
    shapes = set()

    def decide(rows: np.ndarray) -> np.ndarray:
        shapes.add(rows.shape[1])
        return (rows[:, 0] + rows[:, 3] > 1).astype(int)

    extractor = make(CallableClassifier(decide, classes=[0, 1]), features=[1, 3])
    rules = extractor.fit(X).rules_
    assert used(rules) <= {1, 3}
    assert 3 in used(rules)
    assert shapes == {4}
    assert rules.n_features == 4
    assert len(rules.domain.lower) == 4
    assert (extractor.predict(X) == decide(X)).mean() > 0.6
    assert clone(extractor).features == [1, 3]


def test_features_parameter_limits_linear_terms() -> None:
    black_box = CallableRegressor(lambda rows: 2 * rows[:, 2] + rows[:, 1])
    extractor = extractor_class("gridrex")(black_box, features=[2], random_state=0).fit(X)
    lines = {j for rule in extractor.rules_.rules for j, _ in rule.output.terms}
    assert used(extractor.rules_) | lines == {2}
    assert extractor.fidelity(X) > 0.6


def test_features_parameter_accepts_names_and_categories() -> None:
    frame = pd.DataFrame(X[:, :2], columns=["a", "b"])
    frame["c"] = np.where(X[:, 2] > 0.5, "high", "low")
    frame["d"] = np.where(X[:, 3] > 0.5, "up", "down")

    def decide(rows: pd.DataFrame) -> np.ndarray:
        assert set(rows.columns) == set("abcd")
        return np.where((rows["c"] == "high") & (rows["a"] > 0.3), "yes", "no")

    for name in ("cart", "trepan", "real"):
        extractor = extractor_class(name)(
            CallableClassifier(decide, classes=["no", "yes"]), features=["c", "b"]
        )
        rules = extractor.fit(frame).rules_
        assert 2 in used(rules) <= {1, 2}
        assert (extractor.predict(frame) == decide(frame)).mean() > 0.7


def test_features_without_influence_are_reported() -> None:
    twins = np.column_stack([X[:, 0], X[:, 0], X[:, 1]])

    def decide(rows: np.ndarray) -> np.ndarray:
        return (rows[:, 0] > 0.5).astype(int)

    black_box = CallableClassifier(decide, classes=[0, 1])
    other = CARTExtractor(black_box, features=[1, 2]).fit(twins)
    assert other.features_without_influence(twins) == ["x1"]
    own_fitted = CARTExtractor(black_box, features=[0]).fit(twins)
    assert own_fitted.features_without_influence(twins) == []
    frame = pd.DataFrame(twins, columns=["p", "q", "r"])
    named = CallableClassifier(lambda rows: (rows["p"] > 0.5).astype(int), classes=[0, 1])
    assert CARTExtractor(named, features=["q"]).fit(frame).features_without_influence(frame) == [
        "q"
    ]


def test_influence_of_features_needs_few_queries() -> None:
    rows = np.random.default_rng(0).random((1000, 2))
    n_queried = []

    def decide(queried: np.ndarray) -> np.ndarray:
        n_queried.append(len(queried))
        return (queried[:, 0] > 0.5).astype(int)

    extractor = CARTExtractor(CallableClassifier(decide, classes=[0, 1])).fit(rows)
    n_queried.clear()
    assert extractor.features_without_influence(rows) == []
    assert sum(n_queried) == 64 + 64  # the first rows, and the first rows of a permutation
    # A feature that changes only one output is found on all rows.
    rare = np.where(np.arange(1000) == 999, 1.0, 0.0)
    twins = np.column_stack([rare, rare])
    black_box = CallableClassifier(lambda rows: rows[:, 0].astype(int), classes=[0, 1])
    last = CARTExtractor(black_box, features=[0]).fit(twins)
    assert last.features_without_influence(twins) == []
    assert CARTExtractor(black_box, features=[1]).fit(twins).features_without_influence(twins) == [
        "x1"
    ]


class _Sure(ClassifierMixin, BaseEstimator):
    """Black box whose second feature changes probabilities, but no label of these rows."""

    def fit(self, rows: np.ndarray, y: np.ndarray) -> _Sure:
        self.classes_, self.n_features_in_ = np.unique(y), rows.shape[1]
        return self

    def predict_proba(self, rows: np.ndarray) -> np.ndarray:
        second = np.where(rows[:, 0] > 0.5, 0.75, 0.15) + 0.1 * rows[:, 1]
        return np.column_stack([1 - second, second])

    def predict(self, rows: np.ndarray) -> np.ndarray:
        return self.classes_[(self.predict_proba(rows)[:, 1] > 0.5).astype(int)]


def test_features_that_change_probabilities_have_influence() -> None:
    twins = np.column_stack([X[:, 0], X[:, 1], X[:, 1]])
    y = (twins[:, 0] > 0.5).astype(int)
    black_box = FrozenEstimator(_Sure().fit(twins, y))
    noticed = CARTExtractor(black_box, features=[1], max_leaf_nodes=3).fit(twins)
    before = noticed.oracle_.query(twins)
    shuffled = twins.copy()
    shuffled[:, 1] = shuffled[::-1, 1]
    assert (noticed.oracle_.query(shuffled) == before).all()
    assert noticed.features_without_influence(twins) == []
    copied = CARTExtractor(black_box, features=[2], max_leaf_nodes=3).fit(twins)
    assert copied.features_without_influence(twins) == ["x2"]


def test_query_outputs_respects_batches() -> None:
    y = (X[:, 0] > 0.5).astype(int)
    model = _Sure().fit(X, y)
    oracle = Oracle(FrozenEstimator(model), batch_size=7)
    np.testing.assert_array_equal(oracle.query_outputs(X), model.predict_proba(X))
    assert oracle.n_rows == len(X)
    assert oracle.n_calls == -(-len(X) // 7)
    labels = Oracle(CallableClassifier(model.predict, classes=[0, 1]))
    np.testing.assert_array_equal(labels.query_outputs(X), model.predict(X))


@pytest.mark.parametrize("n_features", [3, 12])
def test_queries_copy_other_features_from_nearest_row(n_features: int) -> None:
    rows = 1e4 + np.random.default_rng(1).normal(size=(80, n_features + 2))
    queried: list[np.ndarray] = []

    def decide(points: np.ndarray) -> np.ndarray:
        queried.append(np.asarray(points))
        return (points[:, 0] + points[:, 1] > 2e4).astype(int)

    extractor = extractor_class("trepan")(CallableClassifier(decide, classes=[0, 1]))
    chosen = list(range(n_features))
    extractor.set_params(features=chosen, min_sample=300, random_state=0).fit(rows)
    points = np.concatenate(queried)
    assert len(points) > 200
    extent = np.ptp(rows[:, chosen], axis=0)
    distances = cdist(points[:, chosen] / extent, rows[:, chosen] / extent)
    np.testing.assert_array_equal(
        points[:, n_features:], rows[distances.argmin(axis=1)][:, n_features:]
    )


def test_first_of_equally_near_rows_gives_other_features() -> None:
    rng = np.random.default_rng(2)
    rows = np.column_stack([rng.integers(0, 2, (60, 12)).astype(float), np.arange(60.0)])
    queried: list[np.ndarray] = []

    def decide(points: np.ndarray) -> np.ndarray:
        queried.append(np.asarray(points))
        return (points[:, 0] > 0.5).astype(int)

    extractor = extractor_class("trepan")(CallableClassifier(decide, classes=[0, 1]))
    extractor.set_params(features=range(12), min_sample=300, random_state=0).fit(rows)
    points = np.concatenate(queried)
    is_row = (points[:, np.newaxis] == rows).all(axis=2).any(axis=1)
    generated = points[~is_row]
    distances = cdist(generated[:, :12], rows[:, :12], "sqeuclidean")  # exact for small integers
    np.testing.assert_array_equal(generated[:, 12], distances.argmin(axis=1))
