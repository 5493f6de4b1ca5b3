"""Infidelity and sensitivity of attributions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression

from skescore.metrics.attribution import (
    Removal,
    Target,
    attribution_infidelity,
    attribution_sensitivity,
)

WEIGHTS = np.array([3.0, -2.0, 0.5, 0.0])
X = np.random.default_rng(0).normal(size=(6, 4))


def linear(rows: Any) -> Any:
    return np.asarray(rows) @ WEIGHTS


def test_infidelity_of_linear_effects_is_zero() -> None:
    effects = X * WEIGHTS  # The effect of replacing a feature by 0.
    infidelity = attribution_infidelity(
        linear, X, effects, target=Target(link="identity"), scale=False
    )
    np.testing.assert_allclose(infidelity, 0, atol=1e-25)
    # Scaling corrects the unit of attributions, but not their sign.
    scaled = attribution_infidelity(linear, X, 7 * effects, target=Target(link="identity"))
    np.testing.assert_allclose(scaled, 0, atol=1e-25)
    wrong = attribution_infidelity(linear, X, -effects, target=Target(link="identity"))
    nothing = attribution_infidelity(linear, X, 0 * effects, target=Target(link="identity"))
    np.testing.assert_allclose(wrong, nothing)
    assert (wrong > 0.01).all()


def test_infidelity_estimates_mean_over_sets() -> None:
    """Compare with the expectation over all sets, with equally likely sizes."""
    from itertools import combinations

    def product(rows: Any) -> Any:
        return np.asarray(rows).prod(axis=1)

    row, maps = np.array([[2.0, 3.0, -1.5]]), np.array([[1.0, 0.5, -2.0]])
    by_size = []
    for size in (1, 2, 3):
        errors = []
        for members in combinations(range(3), size):
            copied = row.copy()
            copied[0, list(members)] = 1.0
            effect = product(row) - product(copied)
            errors.append(float((maps[0, list(members)].sum() - effect[0]) ** 2))
        by_size.append(np.mean(errors))
    infidelity = attribution_infidelity(
        product,
        row,
        maps,
        target=Target(link="identity"),
        removal=1.0,
        scale=False,
        n_samples=20_000,
    )
    assert infidelity[0] == pytest.approx(np.mean(by_size), rel=0.03)


def test_infidelity_of_one_feature_is_exact() -> None:
    """The only set is the feature, so that the error is the same for every sample."""
    infidelity = attribution_infidelity(lambda Z: 3 * Z[:, 0], [[2.0]], [[5.0]], scale=False)
    assert infidelity.tolist() == [1.0]


def test_infidelity_of_one_sample_ignores_batch_size() -> None:
    options: dict[str, Any] = {"scale": False, "n_samples": 1}
    expected = attribution_infidelity(linear, X, X, **options)
    np.testing.assert_allclose(
        attribution_infidelity(linear, X, X, max_batch=1, **options), expected
    )


def test_infidelity_accepts_empty_texts() -> None:
    def count_good(texts: Any) -> Any:
        return np.array([float(text.split().count("good")) for text in texts])

    infidelity = attribution_infidelity(
        count_good,
        ["", "good film"],
        [[], [2.0, 0.0]],
        removal=Removal(tokenizer=str.split),
        scale=False,
        n_samples=2000,
    )
    assert np.isnan(infidelity[0])
    # Half of the sets hold both words, half of the others the first: there the error is 1.
    assert infidelity[1] == pytest.approx(3 / 4, abs=0.05)


def test_infidelity_is_independent_of_batches() -> None:
    data, y = load_iris(return_X_y=True, as_frame=True)
    model = LogisticRegression(max_iter=1000).fit(data, y)
    rows = data.iloc[::30]
    maps = np.abs(np.random.default_rng(1).normal(size=rows.shape))
    options: dict[str, Any] = {"removal": Removal("median", reference=data), "n_samples": 16}
    infidelity = attribution_infidelity(model, rows, maps, **options)
    repeated = attribution_infidelity(model, rows, maps, max_batch=7, **options)
    np.testing.assert_allclose(infidelity, repeated, rtol=1e-12)
    assert ((infidelity >= 0) & (infidelity <= 1)).all()


def test_sensitivity_of_linear_explainers_is_relative_change() -> None:
    """The relative change of the map x -> c x is the relative change of x."""
    rows = np.array([[3.0, 4.0], [6.0, 8.0]])
    infidelity = attribution_sensitivity(lambda Z: 5 * np.asarray(Z), rows, n_samples=200)
    spread = rows.std(axis=0)
    bound = 0.02 * np.linalg.norm(spread) / np.linalg.norm(rows, axis=1)
    assert (infidelity <= bound + 1e-12).all()
    assert (infidelity > 0.8 * bound).all()
    wider = attribution_sensitivity(lambda Z: 5 * np.asarray(Z), rows, n_samples=200, radius=0.2)
    np.testing.assert_allclose(wider, 10 * infidelity, rtol=1e-9)
    unit = attribution_sensitivity(lambda Z: 5 * np.asarray(Z), rows, reference=rows * 3)
    one = attribution_sensitivity(lambda Z: 5 * np.asarray(Z), rows)
    np.testing.assert_allclose(unit, 3 * one, rtol=1e-9)


def test_sensitivity_keeps_text_and_missing_values() -> None:
    frame = pd.DataFrame({"size": [1.0, np.nan, 4.0], "town": ["a", "b", None], "yes": True})
    received = []

    def explainer(rows: pd.DataFrame) -> Any:
        received.append(rows)
        return rows[["size", "yes"]].fillna(0).to_numpy(dtype=float)

    infidelity = attribution_sensitivity(explainer, frame, n_samples=3)
    assert infidelity[0] > 0
    assert infidelity[1] == 0
    for rows in received[1:]:
        pd.testing.assert_frame_equal(rows[["town", "yes"]], frame[["town", "yes"]])
        assert np.isnan(rows["size"].iloc[1])
        assert (rows["size"].iloc[[0, 2]] != frame["size"].iloc[[0, 2]]).all()
    zero = attribution_sensitivity(lambda Z: 0 * np.asarray(Z), X)
    assert np.isnan(zero).all()


@pytest.mark.parametrize("options", [{"radius": 0}, {"n_samples": 0}, {"random_state": -1}])
def test_sensitivity_rejects_invalid_options(options: dict[str, Any]) -> None:
    with pytest.raises((TypeError, ValueError), match=next(iter(options))):
        attribution_sensitivity(np.asarray, X, **options)


def test_robustness_rejects_invalid_inputs() -> None:
    with pytest.raises(ValueError, match="n_samples must be an integer"):
        attribution_infidelity(linear, X, X, target=Target(link="identity"), n_samples=0)
    with pytest.raises(ValueError, match="X must have a numeric column"):
        attribution_sensitivity(np.asarray, pd.DataFrame({"a": ["x"]}))
    with pytest.raises(ValueError, match="reference must have one value for each of the 4 feat"):
        attribution_sensitivity(np.asarray, X, reference=X[:, :2])
    with pytest.raises(ValueError, match="one attribution map for each of the 6 rows"):
        attribution_sensitivity(lambda Z: np.ones(4), X)


@pytest.mark.parametrize("maps", [np.ones((2, 3)), np.ones(4)])
def test_sensitivity_needs_map_per_row(maps) -> None:
    with pytest.raises(ValueError, match="one attribution map for each of the 4 rows"):
        attribution_sensitivity(lambda X: maps, np.ones((4, 3)), radius=0.1)


def test_attribution_sensitivity_matches_the_reference_by_name() -> None:
    rows = pd.DataFrame({"a": [1.0, 2.0, 4.0], "b": [100.0, 300.0, 200.0]})
    reference = rows * [2.0, 3.0]
    expected = attribution_sensitivity(lambda Z: np.asarray(Z), rows, reference=reference)
    for other in (reference[["b", "a"]], pl.from_pandas(reference[["b", "a"]])):
        np.testing.assert_array_equal(
            attribution_sensitivity(lambda Z: np.asarray(Z), rows, reference=other), expected
        )


@pytest.mark.parametrize("unit", [2.0**-900, 2.0**900])
def test_robustness_does_not_depend_on_the_unit_of_attributions(unit: float) -> None:
    rows, scores = np.array([[1.0, 2.0], [3.0, 5.0]]), np.array([[1.0, -1.0], [2.0, 1.0]])
    for measure in (
        lambda factor: attribution_sensitivity(lambda Z: factor * np.asarray(Z), rows),
        lambda factor: attribution_infidelity(lambda Z: 2.0 * Z[:, 0], rows, factor * scores),
    ):
        np.testing.assert_array_equal(measure(unit), measure(1.0))
