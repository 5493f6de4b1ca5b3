"""Compare bounds of the weighted F1 with an enumeration of trees and conclusions."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.metrics import f1_score

from skescore.optimal import (
    SearchSpace,
    SolverLimits,
    bound_f1_of_trees,
    candidate_cuts,
    optimal_trees,
)


def partitions(tests: list[int], rows: int, size: int) -> set[frozenset[int]]:
    """Return the partitions of the rows by trees with at most `size` leaves."""
    all_partitions = {frozenset([rows])}
    for test in tests:
        yes, no = rows & test, rows & ~test
        if yes and no:
            for left in range(1, size):
                for one, other in product(
                    partitions(tests, yes, left), partitions(tests, no, size - left)
                ):
                    all_partitions.add(one | other)
    return all_partitions


def best_of_all(X: np.ndarray, y: np.ndarray, w: np.ndarray, cuts: Any, size: int) -> float:
    """Return the best weighted F1 by enumeration."""
    test_masks = [np.array(column) for column in _columns(X, cuts)]
    tests = [sum(1 << i for i in np.flatnonzero(column)) for column in test_masks]
    codes = np.unique(y, return_inverse=True)[1]
    n = np.bincount(codes, w)
    best = 0.0
    for leaves in partitions(tests, (1 << len(y)) - 1, size):
        members = [[i for i in range(len(y)) if leaf >> i & 1] for leaf in leaves]
        counts = np.array([np.bincount(codes[m], w[m], len(n)) for m in members])
        for leaf_classes in product(range(len(n)), repeat=len(counts)):
            hits, predicted_weight = np.zeros(len(n)), np.zeros(len(n))
            for leaf, k in zip(counts, leaf_classes, strict=True):
                hits[k] += leaf[k]
                predicted_weight[k] += leaf.sum()
            best = max(best, float((n * 2 * hits / (n + predicted_weight)).sum() / n.sum()))
    return best


def _columns(X: np.ndarray, cuts: Any) -> list[np.ndarray]:
    columns = []
    for j in range(X.shape[1]):
        for cut in cuts.thresholds[j]:
            below = X[:, j] <= cut
            columns.append(below)
            if j in cuts.missing_features:
                columns.append(below | np.isnan(X[:, j]))
        if j in cuts.missing_features:
            columns.append(np.isnan(X[:, j]))
    return columns


def small_case(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray | None, Any, int]:
    rng = np.random.default_rng(seed)
    n_rows, n_classes = int(rng.integers(6, 16)), int(rng.integers(2, 5))
    X = rng.integers(0, 3, (n_rows, 3)).astype(float)
    if seed % 4 == 1:
        X[rng.integers(n_rows, size=2), 0] = np.nan
    y = rng.integers(0, n_classes, n_rows)
    y = np.where(X[:, 1] > 1, 0, y)
    w = rng.integers(1, 4, n_rows).astype(float) if seed % 3 == 0 else None
    if seed % 6 == 3:
        w = rng.random(n_rows) + 0.1
    return X, y, w, candidate_cuts(X, 2), int(rng.integers(1, 5 if n_classes < 4 else 4))


@pytest.mark.parametrize("seed", range(24))
def test_f1_bound_equals_enumeration(seed: int, monkeypatch: Any) -> None:
    """Test the dynamic programming over boxes and the search."""
    monkeypatch.setattr("skescore.optimal._trees._MAX_BOX_SPLITS", seed % 2 * 20_000)
    X, y, w, cuts, size = small_case(seed)
    best = best_of_all(X, y, np.ones(len(y)) if w is None else w, cuts, size)
    enough, rounds = 0.0, 0
    while True:  # The target grows until no better tree is found.
        bound = bound_f1_of_trees(
            X,
            y,
            size,
            target=enough,
            cuts=cuts,
            sample_weight=w,
            limits=SolverLimits(max_nodes=100),
        )
        assert bound.upper_bound >= best - 1e-9
        assert bound.incumbent <= best + 1e-9
        if bound.rules is not None:
            predicted = bound.rules.predict(X)
            value = f1_score(y, predicted, average="weighted", sample_weight=w, zero_division=0)
            assert value == pytest.approx(bound.incumbent)
            assert len(bound.rules) <= size
        if bound.incumbent <= enough:
            break
        enough = bound.incumbent + 0.02
        rounds += 1
    assert rounds >= 1
    assert best <= bound.upper_bound + 1e-9


def test_f1_bound_is_usually_tight() -> None:
    narrow = 0
    for seed in range(24):
        X, y, w, cuts, size = small_case(seed)
        best = best_of_all(X, y, np.ones(len(y)) if w is None else w, cuts, size)
        options = {"cuts": cuts, "sample_weight": w, "limits": SolverLimits(max_nodes=150)}
        narrow += (
            bound_f1_of_trees(X, y, size, target=best + 0.05, **options).upper_bound <= best + 0.05
        )
    assert narrow >= 22


def test_f1_bound_with_few_nodes_is_valid() -> None:
    X, y = load_iris(return_X_y=True)
    few = bound_f1_of_trees(X, y, 4, target=0.95, limits=SolverLimits(max_nodes=1))
    assert 0.95 < few.upper_bound <= 1
    best = optimal_trees(X, y, SearchSpace(4, cuts=16)).rules[3]
    assert best is not None
    assert few.upper_bound >= f1_score(y, best.predict(X), average="weighted")
    proven = bound_f1_of_trees(X, y, 4, target=0.99)
    assert proven.upper_bound == 0.99
    assert proven.incumbent == pytest.approx(0.9733, abs=1e-4)


def test_f1_bound_finds_tree_that_predicts_minority_class() -> None:
    """A leaf that predicts a rare class can gain more than one that predicts its majority."""
    X = np.array([[0.0], [1], [1], [1], [1], [2], [2], [2], [2], [2]])
    y = np.array(["a", "b", "b", "a", "a", "a", "a", "a", "a", "a"])
    bound = bound_f1_of_trees(X, y, 3, target=0.72, cuts=None)
    assert bound.rules is not None
    errors = optimal_trees(X, y, SearchSpace(3, cuts=None))
    assert errors.upper[2] == 2  # The same number as without cuts.
    assert bound.incumbent > f1_score(y, np.full(10, "a"), average="weighted")
    assert [rule.output for rule in bound.rules].count("b") == 1


@pytest.mark.parametrize("unit", [1e-300, 1e-165, 1e155])
def test_f1_bound_does_not_depend_on_unit_of_weights(unit: float) -> None:
    X = np.array([[0], [1], [1], [2], [2], [2]])
    y, weights = [2, 0, 2, 0, 2, 1], np.array([2.0, 1, 1, 1, 2, 1])
    cuts = candidate_cuts(X, categories=[0])
    usual, scaled = (
        bound_f1_of_trees(X, y, 3, target=0.526, cuts=cuts, sample_weight=weights * factor)
        for factor in (1.0, unit)
    )
    assert scaled.incumbent == pytest.approx(usual.incumbent)
    assert scaled.upper_bound == pytest.approx(usual.upper_bound, abs=0.05)


def test_f1_bound_rejects_invalid_parameters() -> None:
    X, y = [[0.0], [1.0]], ["a", "b"]
    with pytest.raises(ValueError, match="max_leaves must be"):
        bound_f1_of_trees(X, y, 0)
    with pytest.raises(ValueError, match="classes must hold all labels of y, but it lacks 'b'"):
        bound_f1_of_trees(X, y, 2, classes=["a"])
    with pytest.raises(ValueError, match="y must hold one value for each of the 2 rows"):
        bound_f1_of_trees(X, y[:1], 2)
