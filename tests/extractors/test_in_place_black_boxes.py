"""Black boxes that work in place change neither the rows of the caller nor the rules."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import TransformedTargetRegressor
from sklearn.datasets import load_diabetes, load_iris
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skescore.attribution import nearest_contrasts, sufficient_subsets
from skescore.black_boxes import CallableClassifier, CallableRegressor
from skescore.constraints import Constraints, constrain
from skescore.extractors import CARTExtractor
from skescore.metrics import OFF_DATA, feature_agreement, fidelity, rows_off_data
from skescore.metrics.attribution import attribution_sensitivity
from skescore.rules import Interval, Rule, RuleSet
from skescore.scorers import evaluate_rules
from skescore.tuning import ExtractorSearchCV

# Scaled features are far from the rows, so that rules in wrong units agree with nothing.
IRIS, LABELS = load_iris(return_X_y=True)
DIABETES, NUMBERS = load_diabetes(return_X_y=True)
ROWS = {
    "classification": (IRIS * 100, LABELS),
    "regression": (DIABETES[:200, [2, 3, 8, 9]] * 100 + 50, NUMBERS[:200]),
}


def pipeline(task: str, copy: bool) -> Any:
    kind = KNeighborsClassifier if task == "classification" else KNeighborsRegressor
    return make_pipeline(StandardScaler(copy=copy), kind(9))


def writing(task: str) -> Any:
    """Return a fitted model behind a function that writes to its rows."""
    X, y = ROWS[task]
    model = pipeline(task, True).fit(X, y)

    def function(rows: Any) -> np.ndarray:
        y_pred = model.predict(np.asarray(rows))
        rows[:] = 0.0
        return y_pred

    return (CallableClassifier if task == "classification" else CallableRegressor)(function)


def test_in_place_black_box_gives_the_same_rules(make, able):
    X, y = (values.copy() for values in ROWS[able])
    expected = make(pipeline(able, True)).fit(X, y).rules_
    result = make(pipeline(able, False)).fit(X, y).rules_
    np.testing.assert_array_equal(X, ROWS[able][0])
    assert result == expected
    assert (
        make(writing(able)).fit(X).rules_
        == make(FrozenEstimator(pipeline(able, True).fit(X, y))).fit(X).rules_
    )
    np.testing.assert_array_equal(X, ROWS[able][0])


@pytest.mark.parametrize("batch_size", [None, 40])
@pytest.mark.parametrize("frame", [False, True])
def test_fit_does_not_change_rows(batch_size: int | None, frame: bool) -> None:
    X = pd.DataFrame(ROWS["classification"][0], columns=list("abcd"))
    before = X.copy()
    rows = X if frame else X.to_numpy(copy=True)
    extractor = CARTExtractor(writing("classification"), batch_size=batch_size).fit(rows)
    extractor.fidelity(rows)
    np.testing.assert_array_equal(np.asarray(rows), before)


def test_fit_does_not_change_targets() -> None:
    X, y = (values.copy() for values in ROWS["regression"])
    model = TransformedTargetRegressor(LinearRegression(), transformer=StandardScaler(copy=False))
    CARTExtractor(model, max_leaf_nodes=4).fit(X, y)
    np.testing.assert_array_equal(y, ROWS["regression"][1])


@pytest.mark.slow
def test_in_place_black_box_gives_the_same_search() -> None:
    X, y = (values.copy() for values in ROWS["classification"])
    results = []
    for black_box in (pipeline("classification", True), pipeline("classification", False)):
        search = ExtractorSearchCV(
            black_box, extractors=("cart", "gridex"), n_trials=4, cv=2, random_state=0
        ).fit(X, y)
        results.append((search.rules_, search.best_score_, search.black_box_quality_))
        np.testing.assert_array_equal(X, ROWS["classification"][0])
    assert results[0] == results[1]
    writer = writing("classification")
    ExtractorSearchCV(writer, extractors=("cart",), n_trials=2, cv=2, random_state=0).fit(X)
    np.testing.assert_array_equal(X, ROWS["classification"][0])


def test_in_place_pipeline_steps_scale_rows_once() -> None:
    X, y = (values.copy() for values in ROWS["classification"])
    results = []
    for copy in (True, False):
        steps = make_pipeline(
            StandardScaler(copy=copy), CARTExtractor(KNeighborsClassifier(9), max_leaf_nodes=4)
        ).fit(X.copy(), y)
        evaluation = evaluate_rules(steps, X, y)
        results.append((evaluation.y_pred.tolist(), evaluation.covered.tolist()))
        np.testing.assert_array_equal(X, ROWS["classification"][0])
    assert results[0] == results[1]


def test_contrasts_ignore_changes_by_black_box() -> None:
    X = ROWS["classification"][0][::10].copy()
    model = writing("classification").function
    frozen = pipeline("classification", True).fit(*ROWS["classification"]).predict
    contrasts = nearest_contrasts(model, X, X.copy())
    np.testing.assert_array_equal(contrasts, nearest_contrasts(frozen, X, X.copy()))
    np.testing.assert_array_equal(X, ROWS["classification"][0][::10])


HALVES = RuleSet(
    [Rule([Interval(0, upper=0.5)], "a"), Rule([], "b")], ["x", "y"], task="classification"
)


def centering(X: Any) -> np.ndarray:
    """Decide at 0.5, and center the rows in place as some models do."""
    if isinstance(X, pd.DataFrame):
        y = np.where(X["x"].to_numpy() > 0.5, "b", "a")
        X["x"] -= X["x"].mean()
        return y
    X -= 0.5
    return np.where(X[:, 0] > 0, "b", "a")


def deciding(X: Any) -> np.ndarray:
    """Decide as `centering`, without a change of the rows."""
    return np.where(np.asarray(X)[:, 0] > 0.5, "b", "a")


MEASURES = {
    **{
        f"fidelity-{where}": lambda box, X, where=where: fidelity(HALVES, box, X, where=where)
        for where in ("rows", *OFF_DATA)
    },
    "boundary": lambda box, X: np.asarray(rows_off_data(X, "boundary", 20, black_box=box)).tolist(),
    "feature_agreement": lambda box, X: feature_agreement(HALVES, box, X).agreement,
    "sufficient": lambda box, X: str(sufficient_subsets(box, X[:1], X, random_state=0)),
    "sensitivity": lambda box, X: attribution_sensitivity(
        lambda rows: np.where(box(rows) == "a", 1.0, 2.0)[:, None] * np.ones(2), X
    ).tolist(),
    "constrain": lambda box, X: str(constrain(HALVES, Constraints(max_rules=1), X, black_box=box)),
}


@pytest.mark.parametrize("is_frame", [False, True])
@pytest.mark.parametrize("measure", MEASURES)
def test_measures_copy_rows_for_black_box(measure: str, is_frame: bool) -> None:
    values = np.column_stack([np.linspace(0, 1, 11), np.linspace(1, 0, 11) ** 2])
    X = pd.DataFrame(values.copy(), columns=["x", "y"]) if is_frame else values.copy()
    result = MEASURES[measure](centering, X)
    np.testing.assert_array_equal(np.asarray(X), values)
    assert result == MEASURES[measure](deciding, X)
