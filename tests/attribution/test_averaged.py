"""Degrees of responsibility averaged over several contrasts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.ensemble import RandomForestClassifier
from sklearn.tree import DecisionTreeClassifier

from skescore.attribution import (
    averaged_responsibility,
    nearest_contrasts,
    responsibility,
)


def test_averaged_responsibility_equals_single_contrasts() -> None:
    X, y = load_breast_cancer(return_X_y=True)
    X = X[:, 20:26]
    model = RandomForestClassifier(10, random_state=0).fit(X, y)
    rows, background = X[[3, 70, 120]], X[::15]
    attribution = averaged_responsibility(model, rows, background, n_contrasts=6)
    answers, others = model.predict(rows), model.predict(background)
    for index, row in enumerate(rows):
        distance = (np.abs(background - row) / background.std(axis=0)).sum(axis=1)
        distance[others == answers[index]] = np.inf
        nearest = np.argsort(distance, kind="stable")[:6]
        each = np.array([responsibility(model, row, contrast=background[k]) for k in nearest])
        np.testing.assert_allclose(attribution.values[index], each.mean(axis=0), rtol=1e-12)
        np.testing.assert_allclose(attribution.std[index], each.std(axis=0), atol=1e-12)
        np.testing.assert_array_equal(attribution.minimum[index], each.min(axis=0))
        np.testing.assert_array_equal(attribution.maximum[index], each.max(axis=0))
        np.testing.assert_allclose(
            attribution.frequency[index], (each > 0).mean(axis=0), rtol=1e-12
        )
    assert attribution.n_contrasts.tolist() == [6, 6, 6]
    assert attribution.std.max() > 0
    np.testing.assert_array_equal(np.asarray(attribution), attribution.values)


def test_averaged_responsibility_of_one_contrast_is_nearest() -> None:
    X, y = load_iris(return_X_y=True)
    model = DecisionTreeClassifier(random_state=0).fit(X, y)
    attribution = averaged_responsibility(model, X[::10], X, n_contrasts=1)
    single = responsibility(model, X[::10], contrast=nearest_contrasts(model, X[::10], X))
    np.testing.assert_array_equal(attribution.values, single)
    assert not attribution.std.any()


def test_averaged_responsibility_accepts_small_backgrounds() -> None:
    def decide(X: Any) -> Any:
        return np.asarray(X)[:, 0] > 0

    background = [[-1, 0, 0], [1, 0, 1], [2, 1, 0], [3, 1, 1]]
    attribution = averaged_responsibility(decide, [[5, 5, 5], [-5, 5, 5]], background)
    assert attribution.n_contrasts.tolist() == [1, 3]
    assert attribution.values.tolist() == [[1.0, 0.0, 0.0]] * 2
    with pytest.raises(
        ValueError, match="differently than row 0 of X, but all 3 rows have the label True"
    ):
        averaged_responsibility(decide, [[5, 5, 5]], background[1:])


def test_averaged_responsibility_accepts_frames_with_gaps() -> None:
    frame = pd.DataFrame(
        {
            "age": [20.0, np.nan, 60.0, 61.0],
            "town": ["Rome", None, "Oslo", "Oslo"],
            "noise": [1.0, 2.0, 3.0, np.nan],
        }
    )

    def decide(table: pd.DataFrame) -> Any:
        return ((table["age"].fillna(0) > 50) & (table["town"] == "Oslo")).to_numpy()

    attribution = averaged_responsibility(decide, frame.iloc[[2]], frame)
    table = attribution.to_frame()
    assert table.index.tolist() == ["age", "town", "noise"]
    assert table["mean"].tolist() == [1.0, 1.0, 0.0]
    assert attribution.n_contrasts.tolist() == [2]


def test_averaged_responsibility_of_wide_rows_is_reproducible() -> None:
    X, y = load_breast_cancer(return_X_y=True)
    model = DecisionTreeClassifier(max_depth=4, random_state=0).fit(X, y)
    result, again = (
        averaged_responsibility(model, X[[0, 19]], X[::4], n_contrasts=3, random_state=0)
        for _ in range(2)
    )
    np.testing.assert_array_equal(result.values, again.values)
    read = np.unique(model.tree_.feature[model.tree_.feature >= 0])
    assert np.setdiff1d(np.flatnonzero(result.values.any(axis=0)), read).size == 0
    assert (result.values.max(axis=1) > 0).all()


@pytest.mark.parametrize(("name", "value"), [("n_contrasts", 0), ("max_batch", 0.5)])
def test_averaged_responsibility_rejects_invalid_parameters(name: str, value: Any) -> None:
    with pytest.raises((ValueError, TypeError), match=name):
        averaged_responsibility(lambda Z: Z[:, 0], [[0, 1]], [[1, 1]], **{name: value})
    with pytest.raises(ValueError, match="X must be rows of features"):
        averaged_responsibility(lambda Z: Z[:, 0], [0, 1], [[1, 1]])


@pytest.mark.parametrize(
    ("rows", "labels", "message"),
    [
        ([[np.inf, 1.0]], [0], "numbers up to 1e\\+150.*got inf"),
        ([[-1e200, 1.0]], [0], "numbers up to 1e\\+150.*got -1e\\+200"),
        ([[]], [0], r"X must be rows of features, got shape \(1, 0\)"),
        ([[1.0, 1.0]], [None], "a label for every row, got None"),
        ([[1.0, 1.0]], [1j], "a label for every row, got complex numbers"),
    ],
)
def test_nearest_contrasts_rejects_invalid_rows_and_labels(
    rows: Any, labels: Any, message: str
) -> None:
    background = np.zeros((2, len(rows[0])))
    with pytest.raises(ValueError, match=message):
        nearest_contrasts(lambda table: np.array(labels * len(table)), rows, background)


def test_nearest_contrasts_ignores_columns_without_values() -> None:
    rows, background = [[np.nan, 1.0]], [[np.nan, 9.0], [np.nan, 4.0]]
    contrasts = nearest_contrasts(lambda table: np.array(table)[:, 1] > 2, rows, background)
    assert contrasts[:, 1].tolist() == [4.0]


def test_averaged_responsibility_accepts_nullable_numbers():
    rows = pd.DataFrame({"a": pd.array([3, pd.NA], "Int64"), "b": [1.0, 1.0]})
    background = pd.DataFrame({"a": pd.array([pd.NA, 0], "Int64"), "b": [1.0, 2.0]})

    def model(table):
        return table["b"].to_numpy() > 1.5

    result = averaged_responsibility(model, rows, background)
    assert result.values.tolist() == [[0.0, 1.0], [0.0, 1.0]]


@pytest.mark.parametrize("unit", [1.0, 1e-200])
def test_nearest_contrasts_do_not_depend_on_the_unit(unit):
    def model(table):
        return table[:, 1] > 0

    background = [[2 * unit, 1.0], [unit, 1.0], [9 * unit, 0.0]]
    assert nearest_contrasts(model, [[0.0, 0.0]], background).tolist() == [[unit, 1.0]]
