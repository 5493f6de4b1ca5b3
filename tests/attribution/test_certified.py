"""Proofs of B-ReX's certified values by predictions, and the search for flip sets."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from skescore.attribution import (
    BReX,
    Formula,
    random_formula,
    responsibility,
)
from skescore.metrics.attribution import jensen_shannon_divergence


def rows_of(n_inputs: int, n: int, seed: int) -> NDArray[np.int64]:
    return np.random.default_rng(seed).integers(0, 2, (n, n_inputs))


# --- proofs --------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("family", ["monotone", "non-monotone"])
def test_certified_bounds_hold_for_kleene_masks(family: str) -> None:
    for seed in range(12):
        formula = random_formula(3 + seed % 7, n_inputs=10, family=family, random_state=seed)
        X = rows_of(10, 40, seed)
        truth = responsibility(formula, X)
        for limit in (None, 8, 14):
            explanation = BReX(
                formula, masking="kleene", max_queries=limit, random_state=seed
            ).explain(X)
            assert (explanation.values[explanation.resolved] == truth[explanation.resolved]).all()
            assert (truth <= explanation.upper).all()
            assert (explanation.values <= explanation.upper).all()
            assert limit is None or (explanation.queries <= limit).all()
            assert explanation.exhausted.any() == (
                limit == 8 or (limit == 14 and explanation.exhausted.any())
            )
            if limit is None:
                assert explanation.resolved.any(axis=0).sum() >= 2


def test_certified_values_are_unresolved_for_wide_formulas() -> None:
    formula = random_formula(5, n_inputs=40, random_state=2)
    X = rows_of(40, 20, 1)
    explanation = BReX(formula, random_state=0).explain(X)
    assert explanation.masking == "kleene"
    assert (explanation.values == responsibility(formula, X)).all()
    assert not explanation.resolved.any()
    assert (explanation.upper == 1).all()


# --- flip sets -----------------------------------------------------------------------------------


def flips(formula: Formula, row: NDArray[np.int64], members: Any) -> bool:
    other = row ^ np.isin(np.arange(len(row)), members)
    return bool(formula.predict(other[None])[0] != formula.predict(row[None])[0])


@pytest.mark.parametrize("limit", [12, 60, 1000])
@pytest.mark.parametrize("family", ["monotone", "non-monotone"])
def test_certified_flip_sets_are_minimal(family: str, limit: int) -> None:
    for seed in range(4):
        formula = random_formula(
            5 + seed, n_inputs=9, family=family, read_once=False, random_state=seed
        )
        X = rows_of(9, 15, seed)
        brex = BReX(formula, masking="sampled", max_queries=limit, random_state=0)
        explanation = brex.explain(X)
        assert (explanation.queries <= limit).all()
        for row, witnesses, resolved in zip(
            X, explanation.witnesses, explanation.resolved, strict=True
        ):
            for feature, witness in enumerate(witnesses):
                if witness is None:
                    continue
                names = sorted((feature, *witness))
                assert flips(formula, row, names)
                parts = (
                    part for size in range(1, len(names)) for part in combinations(names, size)
                )
                if resolved[feature]:
                    assert not any(flips(formula, row, part) for part in parts)


@pytest.mark.slow
@pytest.mark.parametrize("family", ["monotone", "non-monotone"])
def test_certified_bounds_hold_for_sampled_masks(family: str) -> None:
    divergences = []
    for seed in range(10):
        formula = random_formula(
            4 + seed % 7, family=family, read_once=False, random_state=40 + seed
        )
        X = rows_of(12, 12, seed)
        truth = responsibility(formula, X)
        for limit in (None, 80):
            explanation = BReX(
                formula, masking="sampled", max_queries=limit, random_state=0
            ).explain(X)
            assert (explanation.values[explanation.resolved] == truth[explanation.resolved]).all()
            assert (truth <= explanation.upper).all()
            assert (explanation.queries <= (limit or 1000)).all()
            if limit is None:
                divergences.append(jensen_shannon_divergence(explanation.values, truth).mean())
    assert np.mean(divergences) < 0.02


@pytest.mark.slow
def test_certified_search_finds_few_of_hundreds_of_features() -> None:
    def model(X: NDArray[Any]) -> NDArray[np.bool_]:
        return (X[:, 7] > 0) & (X[:, 150] > 0) | (X[:, 299] > 0) & (X[:, 3] > 0)

    X = np.ones((3, 300))
    X[1, 7] = X[2, 299] = -1.0
    explanation = BReX(model, contrast=-np.ones(300), random_state=0).explain(X)
    truth = np.zeros((3, 300))
    truth[0, [7, 150, 299, 3]] = 0.5  # one feature of each pair
    truth[1, [299, 3]] = 1.0
    truth[2, [7, 150]] = 1.0
    assert (explanation.values == truth).all()
    assert explanation.witnesses is not None
    assert explanation.witnesses[0][7] in {(3,), (299,)}
    assert (explanation.queries <= 3000).all()


def test_certified_search_batches_queries_of_wide_rows() -> None:
    """With a thousand features, queries of a row are batched."""
    generator = np.random.default_rng(0)
    weights = np.r_[generator.uniform(1, 2, 12), np.zeros(988)]
    calls = [0]

    def decide(X: np.ndarray) -> np.ndarray:
        calls[0] += 1
        return np.asarray(X) @ weights > weights.sum() / 2

    explanation = BReX(decide, random_state=0).explain(np.ones((1, 1000), dtype=int))
    assert 1000 < explanation.queries[0] <= 10_000
    assert calls[0] < explanation.queries[0] / 20
    # Only features with a weight are responsible, and all of them were found.
    assert np.flatnonzero(explanation.values[0]).tolist() == list(range(12))
    for feature, witness in enumerate(explanation.witnesses[0][:12]):
        flipped = np.ones((1, 1000), dtype=int)
        flipped[0, list(witness)] = 0
        assert decide(flipped)[0]
        flipped[0, feature] = 0
        assert not decide(flipped)[0]
