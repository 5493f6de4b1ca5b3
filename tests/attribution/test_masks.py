"""Ways to mask features, each beside a loop over single questions."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

from skescore.attribution import BReX, Formula, nearest_contrasts, random_formula
from skescore.attribution._contrasts import ContrastPairs
from skescore.attribution._masks import (
    BackgroundMasks,
    KleeneMasks,
    ReplacedMasks,
    SampledMasks,
    SupervaluationMasks,
    row_keys,
)


def questions(n_rows: int, n_features: int, n: int = 60) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    return rng.integers(0, n_rows, n), rng.random((n, n_features)) < 0.5


def corner(X: NDArray[Any]) -> NDArray[np.int64]:
    """A decision among three of sums of features."""
    return np.digitize(np.asarray(X, dtype=float) @ np.array([1.0, 2.0, -1.0, 0.5]), [-1.0, 1.5])


@pytest.fixture
def rows() -> NDArray[np.float64]:
    return np.random.default_rng(1).normal(size=(9, 4))


def test_kleene_masks_are_unassigned_inputs() -> None:
    formula = Formula.parse("(x1 & x2) | (x1 ^ x3)", n_inputs=4)
    X = np.random.default_rng(0).integers(0, 2, (6, 4))
    masker = KleeneMasks(formula, X, 5)
    places, masks = questions(6, 4)
    kept = masker.same(places, masks)
    for place, mask, same in zip(places, masks, kept, strict=True):
        signs = [0 if m else 2 * int(v) - 1 for v, m in zip(X[place], mask, strict=True)]
        own = 1 if formula.evaluate(X[place][None])[0] else -1
        assert same == (formula.evaluate_kleene([signs])[0] == own)
    assert masker.n_model_rows == 6 + 60


def test_replaced_masks_take_the_values_of_one_row_or_of_each_ones_own(
    rows: NDArray[np.float64],
) -> None:
    places, masks = questions(9, 4)
    for contrast in (np.array([0.0, 1.0, 0.0, -1.0]), rows[::-1]):
        masker = ReplacedMasks(ContrastPairs(corner, rows, contrast, 7))
        others = np.broadcast_to(contrast, rows.shape)
        expected = [
            corner(np.where(mask, others[p], rows[p])[None])[0] == corner(rows[[p]])[0]
            for p, mask in zip(places, masks, strict=True)
        ]
        assert masker.same(places, masks).tolist() == expected


def test_background_masks_keep_what_most_of_the_background_keeps(
    rows: NDArray[np.float64],
) -> None:
    background = np.random.default_rng(2).normal(size=(6, 4))
    places, masks = questions(9, 4)
    answers = {}
    for max_batch in (1, 13, 1000):
        masker = BackgroundMasks(corner, rows, background, max_batch)
        answers[max_batch] = masker.same(places, masks).tolist()
        assert masker.n_model_rows == 9 + 60 * 6
    expected = []
    for p, mask in zip(places, masks, strict=True):
        kept = sum(
            corner(np.where(mask, other, rows[p])[None])[0] == corner(rows[[p]])[0]
            for other in background
        )
        expected.append(kept > 3)
    assert all(found == expected for found in answers.values())
    assert 0 < sum(expected) < 60


@pytest.mark.parametrize("contrasted", [False, True])
def test_supervaluation_looks_at_all_parts(contrasted: bool) -> None:
    formula = random_formula(5, n_inputs=6, read_once=False, random_state=3)
    X = np.random.default_rng(0).integers(0, 2, (5, 6))
    contrast = np.random.default_rng(1).integers(0, 2, (5, 6)) if contrasted else 1 - X
    given = contrast if contrasted else None
    masker = SupervaluationMasks(ContrastPairs(formula.predict, X, given, 100))
    places, masks = questions(5, 6)
    for place, mask, same in zip(places, masks, masker.same(places, masks), strict=True):
        members = np.flatnonzero(mask)
        keeps = True
        for size in range(len(members) + 1):
            for part in combinations(members, size):
                other = X[place].copy()
                other[list(part)] = contrast[place][list(part)]
                keeps &= formula.predict(other[None])[0] == formula.predict(X[[place]])[0]
        assert same == keeps


def test_supervaluation_of_rows_with_many_values(rows: NDArray[np.float64]) -> None:
    masker = SupervaluationMasks(ContrastPairs(corner, rows, rows[::-1], 100))
    sampled = SampledMasks(ContrastPairs(corner, rows, rows[::-1], 100), row_keys(rows, 0), 300)
    places, masks = questions(9, 4)
    kept = masker.same(places, masks)
    assert (kept == sampled.same(places, masks)).all()  # 300 draws see all 16 parts
    assert 0 < kept.sum() < 60


def test_sampled_masks_err_on_one_side_and_depend_on_the_question_alone() -> None:
    formula = random_formula(8, n_inputs=8, read_once=False, random_state=1)
    X = np.random.default_rng(0).integers(0, 2, (7, 8))
    exact = SupervaluationMasks(ContrastPairs(formula.predict, X, None, 100))
    places, masks = questions(7, 8, 200)
    truth = exact.same(places, masks)
    right = []
    for n_completions in (0, 4, 64):
        masker = SampledMasks(
            ContrastPairs(formula.predict, X, None, 33), row_keys(X, 5), n_completions
        )
        kept = masker.same(places, masks)
        assert (kept >= truth).all()  # a change that was seen is one
        right.append((kept == truth).mean())
        order = np.random.default_rng(1).permutation(200)
        assert (masker.same(places[order], masks[order]) == kept[order]).all()
    assert right[0] < right[1] < right[2]
    assert right[2] > 0.95


# --- rows ----------------------------------------------------------------------------------------


def test_keys_depend_on_values_alone() -> None:
    X = np.array([[0, 1, 2], [2, 1, 0], [0, 1, 2]])
    keys = row_keys(X, 7)
    assert keys[0] == keys[2] != keys[1]
    assert (row_keys(X.astype(float), 7) == keys).all()
    assert (row_keys(pd.DataFrame(X), 7) == keys).all()
    assert (row_keys(np.asfortranarray(X[::-1]), 7) == keys[::-1]).all()
    assert row_keys(-0.0 * X.astype(float), 7)[0] == row_keys(0 * X, 7)[0]
    assert (row_keys(X, 8) != keys).all()
    assert len(np.unique(row_keys(np.arange(5000)[:, None], 0))) == 5000
    mixed = pd.DataFrame({"a": ["x", "y", "x"], "b": [1.0, 1.0, 1.0]})
    keys = row_keys(mixed, 7)
    assert keys[0] == keys[2] != keys[1]
    assert row_keys(mixed.iloc[[1]], 7)[0] == keys[1]


def test_typical_rows() -> None:
    frame = pd.DataFrame(
        {"n": [1.0, 2.0, 9.0, 2.0], "s": ["a", "b", "b", "c"], "t": [True, False, True, True]}
    )
    expected: dict[str, list[Any]] = {
        "mean": [3.5, "b", True], "median": [2.0, "b", True], "mode": [2.0, "b", True],
    }  # fmt: skip
    for how, typical in expected.items():
        seen: list[list[Any]] = []

        def record(X: pd.DataFrame, seen: list[list[Any]] = seen) -> Any:
            seen += X.to_numpy().tolist()
            return np.zeros(len(X))

        BReX(record, baseline=how, background=frame, preset="paper").explain(frame.iloc[[0]])
        assert typical in seen
        columns = [set(column) for column in zip(*seen, strict=True)]
        assert columns == [{1.0, typical[0]}, {"a", "b"}, {True}]
    rows = np.array([[1.0, 2.0], [3.0, 2.0]])
    decide = lambda X: X[:, 0] > 1.5  # noqa: E731
    found = BReX(decide, baseline="mean", background=rows).explain(rows)
    assert found.values.tolist() == [[1.0, 0.0], [0.0, 0.0]]


def test_the_nearest_row_of_another_decision() -> None:
    n_rows = []

    def decide(X: Any) -> Any:
        n_rows.append(len(X))
        return np.asarray(X)[:, 0].astype(float) > 0

    X = np.array([[1.0, 0.0], [-1.0, 5.0]])
    background = np.array([[-5.0, 0.0], [-1.0, 0.1], [2.0, 5.0], [9.0, 5.0], [1.0, 9.0]])
    found = nearest_contrasts(decide, X, background, max_batch=3)
    assert found.tolist() == [[-1.0, 0.1], [2.0, 5.0]]
    assert n_rows == [3, 3, 1]
    with pytest.raises(ValueError, match=r"another decision than row 0 of X, got True in all"):
        nearest_contrasts(decide, X, background[2:])


def test_the_nearest_row_in_standard_deviations_and_by_categories() -> None:
    frame = pd.DataFrame({"wide": [0.0, 900.0, 0.0], "colour": ["red", "red", "blue"]})
    background = pd.DataFrame({"wide": [0.0, 1000.0, 2000.0], "colour": ["blue", "red", "red"]})

    def decide(X: pd.DataFrame) -> Any:
        return (X["wide"] + 1 > 1000) | (X["colour"] == "blue")

    found = nearest_contrasts(decide, frame.iloc[:2], background)
    # A category apart is as far as a standard deviation (816).
    assert found["wide"].tolist() == [0.0, 1000.0]
    assert found["colour"].tolist() == ["blue", "red"]


def test_undecided_is_a_decision_of_its_own() -> None:
    def proba(X: Any) -> Any:
        p = np.asarray(X)[:, 0]
        return np.column_stack([p, 1 - p])

    rows = np.array([[0.9], [0.5], [0.1], [0.8]])
    for contrast, changed in ((0.95, [0, 1, 1, 0]), (0.6, [1, 0, 1, 1]), (0.2, [1, 1, 0, 1])):
        found = BReX(proba, threshold=0.8, contrast=[[contrast]]).explain(rows)
        assert found.values[:, 0].tolist() == changed
    with pytest.raises(ValueError, match=r"finite probabilities per class, got shape \(2,\)"):
        BReX(lambda X: X[:, 0], threshold=0.8, contrast=[[0.5]]).explain([[0.9]])
