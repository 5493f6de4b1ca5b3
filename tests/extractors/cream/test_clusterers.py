"""CREAM and ExACT as clusterers: properties of clusters with rules."""

from __future__ import annotations

import inspect

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris, make_blobs
from sklearn.exceptions import NotFittedError
from sklearn.metrics import adjusted_rand_score
from sklearn.utils.estimator_checks import parametrize_with_checks

from skescore.extractors.cream import CREAMClusterer, ExACTClusterer
from skescore.rules import RuleSet

CLUSTERERS = [CREAMClusterer, ExACTClusterer]


@parametrize_with_checks([CREAMClusterer(), ExACTClusterer()])
def test_clusterers_pass_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.fixture(params=CLUSTERERS, ids=lambda cls: cls.__name__)
def cls(request):
    return request.param


def assign_slowly(rules: RuleSet, X: np.ndarray) -> list[int]:
    def holds(rule, row):
        return all(c.lower <= row[c.feature] <= c.upper for c in rule.conditions)

    return [next(i for i, rule in enumerate(rules) if holds(rule, row)) for row in X]


def test_cluster_labels_index_rules_in_order(cls):
    X, y = load_iris(return_X_y=True)
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    clusterer = cls(depth=2, random_state=0)
    labels = clusterer.fit_predict(X, names)
    assert clusterer.explain() is clusterer.rules_
    assert labels.tolist() == clusterer.labels_.tolist()
    assert labels.tolist() == assign_slowly(clusterer.rules_, X)
    assert clusterer.predict(X).tolist() == labels.tolist()
    assert np.unique(labels).tolist() == list(range(clusterer.n_clusters_))
    for number, rule in enumerate(clusterer.rules_):
        counts = [int(np.sum(names[labels == number] == c)) for c in np.unique(names)]
        assert rule.statistics.class_counts == tuple(counts)
        assert rule.output == np.unique(names)[int(np.argmax(counts))]
    assert clusterer.rules_.ordered
    assert not clusterer.rules_[-1].conditions


def test_fit_predict_uses_target(cls):
    X = np.random.default_rng(0).uniform(size=(200, 2))
    y = (X[:, 0] > 0.5).astype(int)
    clusterer = cls(random_state=0)
    np.testing.assert_array_equal(clusterer.fit_predict(X, y), clusterer.fit(X, y).labels_)
    assert list(clusterer.rules_.classes) == [0, 1]


def test_clusterers_find_clusters_without_target():
    X, truth = make_blobs(300, centers=[[0, 0], [20, 0], [60, 9]], random_state=0)
    clusterer = CREAMClusterer(random_state=0).fit(X)
    assert adjusted_rand_score(truth, clusterer.labels_) == 1.0
    assert [rule.output for rule in clusterer.rules_] == [0, 1, 2]
    assert [rule.statistics.n_rows for rule in clusterer.rules_] == [100, 100, 100]
    # The other extractor never splits rows outside of a box.
    chain = ExACTClusterer(random_state=0).fit(X)
    assert adjusted_rand_score(truth == 2, chain.labels_) == 1.0


def test_clusters_of_numbers_predict_their_mean(cls):
    X = np.random.default_rng(0).uniform(size=(300, 2))
    y = np.where(X[:, 0] > 0.5, 10.0, 2.0)
    clusterer = cls(random_state=0).fit(X, y)
    assert clusterer.rules_.task == "regression"
    for number, rule in enumerate(clusterer.rules_):
        assert rule.output == pytest.approx(y[clusterer.labels_ == number].mean())
    assert np.abs(clusterer.rules_.predict(X) - y).mean() < 0.4


def test_linear_outputs_use_units_of_features():
    random = np.random.default_rng(0)
    X = random.uniform(size=(400, 2)) * [1000, 1e-3]
    y = 3 + 0.02 * X[:, 0] - 5000 * X[:, 1]
    clusterer = CREAMClusterer(output="linear", random_state=0).fit(X, y)
    assert len(clusterer.rules_) == 1  # one linear model fits all rows
    output = clusterer.rules_[0].output
    assert output.intercept == pytest.approx(3)
    assert dict(output.terms) == pytest.approx({0: 0.02, 1: -5000})


@pytest.mark.parametrize(
    "relabel",
    [lambda y: y, lambda y: y == 1, lambda y: np.array(["a", "b"])[y], lambda y: y * 7 - 3],
    ids=["ints", "bools", "strings", "other ints"],
)
def test_clusters_do_not_depend_on_label_type(cls, relabel):
    X = np.random.default_rng(0).uniform(size=(150, 2))
    y = (X.sum(axis=1) > 1).astype(int)
    expected = cls(random_state=0).fit(X, y).labels_
    np.testing.assert_array_equal(cls(random_state=0).fit(X, relabel(y)).labels_, expected)


def test_task_parameter_overrides_inference():
    X = np.random.default_rng(0).uniform(size=(150, 2))
    y = (X[:, 0] > 0.5).astype(int)
    assert CREAMClusterer(task="regression").fit(X, y).rules_.task == "regression"
    assert CREAMClusterer(task="classification").fit(X, y / 2).rules_.classes == (0.0, 0.5)


def test_clusterers_keep_names_of_data_frames(cls):
    frame = pd.DataFrame({"width": np.arange(60.0) % 30, "height": np.arange(60.0)})
    clusterer = cls(random_state=0).fit(frame, np.arange(60) < 30)
    assert clusterer.rules_.feature_names == ("width", "height")
    np.testing.assert_array_equal(clusterer.predict(frame), clusterer.labels_)


def test_predict_assigns_clusters_to_distant_rows(cls):
    X, y = load_iris(return_X_y=True)
    clusterer = cls(random_state=0).fit(X, y)
    assert (clusterer.predict(X * 1000 - 500) >= 0).all()


def test_clusterers_handle_constant_features_and_equal_rows(cls):
    X, y = load_iris(return_X_y=True)
    more = np.column_stack([X, np.full(150, 3.0)])
    one, other = cls(random_state=0).fit(X, y), cls(random_state=0).fit(more, y)
    np.testing.assert_array_equal(one.labels_, other.labels_)
    same = cls(random_state=0).fit(np.ones((20, 2)), np.arange(20) % 2)
    assert len(same.rules_) == 1
    assert same.rules_[0].statistics.class_counts == (10, 10)


def test_ignore_threshold_uses_clusters_without_target(cls):
    random = np.random.default_rng(0)
    X = np.column_stack([np.repeat([0.0, 50.0], 60) + random.normal(size=120), np.zeros(120)])
    X[:, 1] = random.normal(size=120)
    clusterer = cls(depth=1, ignore_threshold=0.5, random_state=0).fit(X)
    assert clusterer.importances_[0] == 1.0 > clusterer.importances_[1]
    assert {c.feature for rule in clusterer.rules_ for c in rule.conditions} == {0}


@pytest.mark.parametrize(
    ("options", "y", "message"),
    [
        ({"depth": 0}, None, "depth must be an integer of 1 or more, got 0"),
        ({"error_threshold": -1.0}, None, "error_threshold must be a number of 0 or more"),
        ({"gauss_components": 1}, None, "gauss_components must be an integer of 2 or more, got 1"),
        ({"criterion": "aic"}, None, "criterion must be one of 'bic', 'bic/m', got 'aic'"),
        ({"scale": "yes"}, None, "scale must be True or False, got 'yes'"),
        ({"max_samples": 9}, None, "max_samples must be an integer of 10 or more or None, got 9"),
        ({"ignore_threshold": 2.0}, None, "ignore_threshold must be a number from 0 to 1"),
        ({"importances": [1.0]}, None, "importances must hold one number for each of the 2"),
        ({"output": "plane"}, None, "output must be one of 'constant', 'linear', got 'plane'"),
        ({"task": "both"}, None, "task must be one of None, 'classification', 'regression'"),
        ({"output": "linear"}, None, "output='linear' requires a numeric target, but y is None"),
        ({"output": "linear"}, [0, 1] * 10, "but y holds labels"),
        ({"task": "regression"}, ["a", "b"] * 10, "y must hold numbers for task='regression'"),
        ({}, [np.nan, 1.0] * 10, "y holds nan in row 0"),
        ({"task": "classification"}, [np.nan, 1.0] * 10, "y lacks a label"),
        ({}, [1e120, 1.0] * 10, "y holds numbers up to 1e[+]120, more than 1e[+]100"),
    ],
)
def test_clusterers_reject_invalid_parameters(cls, options, y, message):
    X = np.random.default_rng(0).uniform(size=(20, 2))
    with pytest.raises((TypeError, ValueError), match=message):
        cls(**options).fit(X, y)


def test_clusterers_reject_overflowing_numbers(cls):
    with pytest.raises(ValueError, match="Feature 'x1' holds numbers up to"):
        cls().fit(np.array([[0, 1e200], [1, 0], [2, 3]]))


def test_clusterers_reject_queries_before_fit(cls):
    for query in (lambda c: c.predict([[0.0]]), lambda c: c.explain(), lambda c: c.n_clusters_):
        with pytest.raises(NotFittedError):
            query(cls())


def test_clusterer_parameters_are_documented_keywords(cls):
    text = inspect.getdoc(cls)
    for name, parameter in inspect.signature(cls).parameters.items():
        assert parameter.kind is parameter.KEYWORD_ONLY
        assert f"\n{name} : " in text
