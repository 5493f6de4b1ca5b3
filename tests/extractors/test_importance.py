"""Importance of features compared with the formulas."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skescore.black_boxes import CallableClassifier, CallableRegressor
from skescore.extractors import GridExExtractor


def feature_importances(X: np.ndarray, y_pred: np.ndarray, task: str) -> np.ndarray:
    """Return the importances that GridEx learns from rows and predictions."""
    kind = CallableClassifier if task == "classification" else CallableRegressor
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The black box predicts")
        extractor = GridExExtractor(kind(lambda _: y_pred), depth=1, importance_threshold=1.0)
        return extractor.fit(X).importances_


def variance_ratio(x: np.ndarray, groups: np.ndarray) -> float:
    """Return F of a one-way analysis of variance: between groups over within groups."""
    labels = np.unique(groups)
    between = sum(np.sum(groups == g) * (x[groups == g].mean() - x.mean()) ** 2 for g in labels) / (
        len(labels) - 1
    )
    within = sum(((x[groups == g] - x[groups == g].mean()) ** 2).sum() for g in labels)
    return between / (within / (len(x) - len(labels)))


def regression_ratio(x: np.ndarray, y: np.ndarray) -> float:
    """Return F of a straight line: explained over unexplained variance."""
    slope, intercept = np.polyfit(x, y, 1)
    rest = ((y - slope * x - intercept) ** 2).sum()
    total = ((y - y.mean()) ** 2).sum()
    return (total - rest) / (rest / (len(x) - 2))


@settings(max_examples=30)
@given(st.integers(0, 2**32 - 1), st.integers(5, 40), st.integers(1, 5), st.booleans())
def test_importances_are_f_statistics_over_the_largest(seed, n_rows, n_features, classification):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n_rows, n_features)) * 10.0 ** random.integers(-3, 4, n_features)
    if classification:
        answers = np.r_[0, 1, 0, 1, random.integers(0, 3, n_rows - 4)]
        expected = [variance_ratio(x, answers) for x in X.T]
        task = "classification"
    else:
        answers = X @ random.normal(size=n_features) + random.normal(size=n_rows)
        expected = [regression_ratio(x, answers) for x in X.T]
        task = "regression"
    result = feature_importances(X, answers, task)
    np.testing.assert_allclose(result, np.array(expected) / max(expected), rtol=1e-6, atol=1e-12)
    assert result.max() == 1


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_constant_features_are_not_important(task):
    random = np.random.default_rng(0)
    X = random.normal(size=(30, 2))
    answers = (X[:, 0] + 0.3 * random.normal(size=30) > 0) * 1
    with_constants = np.column_stack([np.full(30, 0.1), X, np.zeros(30)])
    result = feature_importances(with_constants, answers, task)
    assert result[[0, 3]].tolist() == [0, 0]
    np.testing.assert_allclose(result[1:3], feature_importances(X, answers, task), rtol=1e-12)
    assert feature_importances(np.ones((30, 2)), answers, task).tolist() == [0, 0]


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_importances_of_constant_predictions_are_zero(task):
    X = np.random.default_rng(0).normal(size=(30, 2))
    assert feature_importances(X, np.ones(30, dtype=int), task).tolist() == [0, 0]


def test_feature_equal_to_target_has_importance_one():
    random = np.random.default_rng(0)
    groups = np.repeat([0, 1, 2], 10)
    near = groups + 0.01 * random.normal(size=30)
    X = np.column_stack([near, groups * 2.0, random.normal(size=30), groups - 7.0])
    assert feature_importances(X, groups, "classification").tolist() == [0, 1, 0, 1]
    # Rounding must not make one of them slightly less than perfect, or more.
    for line in (np.arange(8.0), np.arange(20) * 0.1, random.normal(size=300)):
        X = np.column_stack([line, -line, line * 0.3 + 1e3, line**2, line / 3 - 7])
        assert feature_importances(X, line, "regression").tolist() == [1, 1, 1, 0, 1]


@settings(max_examples=25)
@given(st.integers(0, 2**32 - 1))
def test_importances_of_perfect_features_are_one(seed):
    random = np.random.default_rng(seed)
    line, groups = random.normal(size=50), np.r_[0, 1, 2, random.integers(0, 3, 47)]
    factors, shifts = random.normal(size=(2, 20)) * 10.0 ** random.integers(-2, 3, (2, 20))
    noise = random.normal(size=(50, 1))
    for answers, task in ((line, "regression"), (groups, "classification")):
        X = np.column_stack([answers[:, None] * factors + shifts, noise])
        assert feature_importances(X, answers, task).tolist() == [1] * 20 + [0]


def test_importances_do_not_depend_on_units():
    random = np.random.default_rng(0)
    X = random.normal(size=(200, 3))
    groups = (X[:, 0] + random.normal(size=200) > 0) * 1
    numbers = X[:, 0] + 0.5 * X[:, 1] + random.normal(size=200)
    moved = X * [1e-9, 1.0, 1e9] + [0, 1e8, -1e12]
    for answers, task in ((groups, "classification"), (numbers, "regression")):
        np.testing.assert_allclose(
            feature_importances(moved, answers, task),
            feature_importances(X, answers, task),
            rtol=1e-3,
        )
    extreme = np.column_stack([np.linspace(-1, 1, 200) * 9e299, X[:, 0]])
    plain = np.column_stack([np.linspace(-1, 1, 200), X[:, 0]])
    for answers, task in ((groups, "classification"), (numbers, "regression")):
        np.testing.assert_allclose(
            feature_importances(extreme, answers, task), feature_importances(plain, answers, task)
        )


def test_importances_accept_two_rows():
    X = np.array([[0.0, 1.0], [1.0, 1.0]])
    for task in ("classification", "regression"):
        result = feature_importances(X, np.array([0, 1]), task)
        assert result[1] == 0
        assert 0 <= result[0] <= 1


def test_undefined_statistics_cause_no_warning():
    # Warnings are errors in these tests.
    X = np.column_stack([np.repeat([0.0, 1.0], 10), np.ones(20), np.arange(20.0)])
    classes = GridExExtractor(
        CallableClassifier(lambda rows: rows[:, 0] > 0.5), importance_threshold=0.5
    ).fit(X)
    assert classes.importances_.tolist() == [1, 0, 0]
    assert classes.n_rules_ == 2
    numbers = GridExExtractor(
        CallableRegressor(lambda rows: rows[:, 2] * 0.1), importance_threshold=0.9, threshold=5
    ).fit(X)
    assert numbers.importances_[2] == 1
    assert numbers.importances_[1] == 0
