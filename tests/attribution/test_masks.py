"""Masking of features compared with loops over single masks, and passes over masks."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
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
    uniforms,
)
from skescore.attribution._refinement import (
    Certificates,
    MaskCache,
    cut,
    evidence,
    fewest_masked,
    refine,
)

Masks = NDArray[np.bool_]


def bits(codes: Any, n: int) -> Masks:
    return np.asarray(codes)[..., None] >> np.arange(n) & 1 == 1


def rows_of(n_inputs: int, n: int, seed: int) -> NDArray[np.int64]:
    return np.random.default_rng(seed).integers(0, 2, (n, n_inputs))


def drawn_masks(n_rows: int, n_features: int, n: int = 60) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    return rng.integers(0, n_rows, n), rng.random((n, n_features)) < 0.5


def corner(X: NDArray[Any]) -> NDArray[np.int64]:
    """Return one of three classes by the thresholds of a weighted sum."""
    return np.digitize(np.asarray(X, dtype=float) @ np.array([1.0, 2.0, -1.0, 0.5]), [-1.0, 1.5])


@pytest.fixture
def rows() -> NDArray[np.float64]:
    return np.random.default_rng(1).normal(size=(9, 4))


def test_kleene_masks_leave_inputs_unassigned() -> None:
    formula = Formula.parse("(x1 & x2) | (x1 ^ x3)", n_inputs=4)
    X = np.random.default_rng(0).integers(0, 2, (6, 4))
    masker = KleeneMasks(formula, X, 5)
    indices, masks = drawn_masks(6, 4)
    masked = masker.keeps_decision(indices, masks)
    for index, mask, same in zip(indices, masks, masked, strict=True):
        signs = [0 if m else 2 * int(v) - 1 for v, m in zip(X[index], mask, strict=True)]
        own = 1 if formula.evaluate(X[index][None])[0] else -1
        assert same == (formula.evaluate_kleene([signs])[0] == own)
    assert masker.n_model_rows == 6 + 60


def test_replaced_masks_use_one_contrast_or_one_per_row(
    rows: NDArray[np.float64],
) -> None:
    indices, masks = drawn_masks(9, 4)
    for contrast in (np.array([0.0, 1.0, 0.0, -1.0]), rows[::-1]):
        masker = ReplacedMasks(ContrastPairs(corner, rows, contrast, 7))
        others = np.broadcast_to(contrast, rows.shape)
        expected = [
            corner(np.where(mask, others[p], rows[p])[None])[0] == corner(rows[[p]])[0]
            for p, mask in zip(indices, masks, strict=True)
        ]
        assert masker.keeps_decision(indices, masks).tolist() == expected


def test_background_masks_use_majority_of_background(
    rows: NDArray[np.float64],
) -> None:
    background = np.random.default_rng(2).normal(size=(6, 4))
    indices, masks = drawn_masks(9, 4)
    answers = {}
    for max_batch in (1, 13, 1000):
        masker = BackgroundMasks(corner, rows, background, max_batch)
        answers[max_batch] = masker.keeps_decision(indices, masks).tolist()
        assert masker.n_model_rows == 9 + 60 * 6
    expected = []
    for p, mask in zip(indices, masks, strict=True):
        retained = sum(
            corner(np.where(mask, other, rows[p])[None])[0] == corner(rows[[p]])[0]
            for other in background
        )
        expected.append(retained > 3)
    assert all(result == expected for result in answers.values())
    assert 0 < sum(expected) < 60


@pytest.mark.parametrize("contrasted", [False, True])
def test_supervaluation_masks_check_all_subsets(contrasted: bool) -> None:
    formula = random_formula(5, n_inputs=6, read_once=False, random_state=3)
    X = np.random.default_rng(0).integers(0, 2, (5, 6))
    contrast = np.random.default_rng(1).integers(0, 2, (5, 6)) if contrasted else 1 - X
    reference = contrast if contrasted else None
    masker = SupervaluationMasks(ContrastPairs(formula.predict, X, reference, 100))
    indices, masks = drawn_masks(5, 6)
    masked = masker.keeps_decision(indices, masks)
    for index, mask, same in zip(indices, masks, masked, strict=True):
        members = np.flatnonzero(mask)
        keeps = True
        for size in range(len(members) + 1):
            for part in combinations(members, size):
                other = X[index].copy()
                other[list(part)] = contrast[index][list(part)]
                keeps &= formula.predict(other[None])[0] == formula.predict(X[[index]])[0]
        assert same == keeps


def test_supervaluation_masks_accept_many_values(rows: NDArray[np.float64]) -> None:
    masker = SupervaluationMasks(ContrastPairs(corner, rows, rows[::-1], 100))
    sampled = SampledMasks(ContrastPairs(corner, rows, rows[::-1], 100), row_keys(rows, 0), 300)
    indices, masks = drawn_masks(9, 4)
    masked = masker.keeps_decision(indices, masks)
    # 300 draws include all 16 subsets.
    assert (masked == sampled.keeps_decision(indices, masks)).all()
    assert 0 < masked.sum() < 60


def test_sampled_masks_err_on_one_side_only() -> None:
    formula = random_formula(8, n_inputs=8, read_once=False, random_state=1)
    X = np.random.default_rng(0).integers(0, 2, (7, 8))
    exact = SupervaluationMasks(ContrastPairs(formula.predict, X, None, 100))
    indices, masks = drawn_masks(7, 8, 200)
    truth = exact.keeps_decision(indices, masks)
    right = []
    for n_completions in (0, 4, 64):
        masker = SampledMasks(
            ContrastPairs(formula.predict, X, None, 33), row_keys(X, 5), n_completions
        )
        masked = masker.keeps_decision(indices, masks)
        assert (masked >= truth).all()  # an observed change is certain
        right.append((masked == truth).mean())
        order = np.random.default_rng(1).permutation(200)
        assert (masker.keeps_decision(indices[order], masks[order]) == masked[order]).all()
    assert right[0] < right[1] < right[2]
    assert right[2] > 0.95


# --- the cache of masks --------------------------------------------------------------------------


class Antitone:
    """A masker that keeps the decision of a row unless the mask contains one of its change sets."""

    def __init__(self, change_sets: list[list[int]], n_features: int) -> None:
        self.sets = [bits(np.array(sets, dtype=np.int64), n_features) for sets in change_sets]
        self.asked: list[tuple[int, bytes]] = []

    def __call__(self, indices: NDArray[np.int64], masks: Masks) -> NDArray[np.bool_]:
        self.asked += [(p, m.tobytes()) for p, m in zip(indices.tolist(), masks, strict=True)]
        return np.array(
            [not (self.sets[p] <= m).all(axis=1).any() for p, m in zip(indices, masks, strict=True)]
        )


@given(
    change_sets=st.lists(
        st.lists(st.integers(1, 255), min_size=1, max_size=4), min_size=1, max_size=3
    ),
    batches=st.lists(
        st.lists(st.tuples(st.integers(0, 2), st.integers(0, 255)), max_size=12), max_size=6
    ),
    inference=st.booleans(),
)
@settings(max_examples=60, deadline=None)
def test_mask_cache_queries_nothing_twice(
    change_sets: list[list[int]], batches: list[list[tuple[int, int]]], inference: bool
) -> None:
    oracle, truth = Antitone(change_sets, 8), Antitone(change_sets, 8)
    n = len(change_sets)
    cache = MaskCache(oracle, n, 8, inference=inference, max_queries=None)
    expected = set()
    for batch in batches:
        indices = np.array([index % n for index, _ in batch], dtype=np.int64)
        masks = bits(np.array([code for _, code in batch], dtype=np.int64), 8)
        assert (cache.keeps_decision(indices, masks) == truth(indices, masks)).all()
        expected |= {
            (p, m.tobytes()) for p, m in zip(indices.tolist(), masks, strict=True) if m.any()
        }
    assert len(set(oracle.asked)) == len(oracle.asked)
    assert cache.queries.sum() == n + len(oracle.asked)
    if inference:
        assert set(oracle.asked) <= expected
    else:
        assert set(oracle.asked) == expected


@pytest.mark.parametrize("n_features", [63, 64, 65, 200])
def test_mask_cache_supports_many_features(n_features: int) -> None:
    def ask(indices: NDArray[np.int64], masks: Masks) -> NDArray[np.bool_]:
        return ~(masks[:, 0] & masks[:, -1])

    cache = MaskCache(ask, 2, n_features, inference=True, max_queries=None)
    everything = np.ones((2, n_features), dtype=np.bool_)
    assert cache.keeps_decision(np.arange(2), everything).tolist() == [0, 0]
    copied = everything.copy()
    copied[:, -1] = False
    assert cache.keeps_decision(np.arange(2), copied).tolist() == [1, 1]
    copied[:, 5] = False  # a subset of a mask that keeps the decision
    assert cache.keeps_decision(np.arange(2), copied).tolist() == [1, 1]
    assert cache.queries.tolist() == [3, 3]
    ends = ~copied & False
    ends[:, [0, -1]] = True
    assert cache.keeps_decision(np.arange(2), ends).tolist() == [0, 0]
    assert cache.queries.tolist() == [4, 4]


def test_mask_cache_stops_at_its_limit_per_row() -> None:
    oracle = Antitone([[3], [3]], 4)
    cache = MaskCache(oracle, 2, 4, inference=False, max_queries=3)
    indices = np.array([0, 0, 0, 1])
    masks = bits(np.array([1, 2, 3, 3]), 4)
    assert cache.keeps_decision(indices, masks).tolist() == [1, 1, -1, 0]
    assert cache.exhausted.tolist() == [True, False]
    assert cache.queries.tolist() == [3, 2]
    assert cache.keeps_decision(indices, masks).tolist() == [1, 1, -1, 0]


# --- passes --------------------------------------------------------------------------------------


def slow_pass(
    same: Any, key: NDArray[np.uint64], weights: Any, stream: int, n_blocks: int, keep: bool
) -> tuple[list[float], list[tuple[int, frozenset[int]]]]:
    """Return values and certificates of one row by the recursion of the paper, with sets."""
    n = len(weights)
    values = [0.0] * n
    certificates = []

    def go(part: frozenset[int], mask: frozenset[int], depth: int) -> None:
        inside = np.isin(np.arange(n), list(part))[None, :]
        draws = uniforms(key, (stream << 16) + depth, n)
        labels = cut(inside, np.asarray(weights)[None, :], draws, n_blocks)[0]
        blocks = [frozenset(np.flatnonzero(labels == b).tolist()) for b in range(labels.max() + 1)]
        for number, block in enumerate(blocks):
            for feature in block:
                values[feature] = 0.0
            codes = sorted(range(1 << len(blocks)), key=lambda c: (c.bit_count(), c))
            for code in codes:
                if code >> number & 1:
                    continue
                others = frozenset().union(*(b for i, b in enumerate(blocks) if code >> i & 1))
                if same(mask | others) and not same(mask | others | block):
                    for feature in block:
                        values[feature] = 1 / (1 + code.bit_count())
                    inner = mask | others if keep else frozenset()
                    if len(block) > 1:
                        go(block, inner, depth + 1)
                    elif keep:
                        certificates.append((min(block), inner))
                    break

    go(frozenset(range(n)), frozenset(), 0)
    return values, certificates


@pytest.mark.parametrize("keep", [True, False], ids=["witness", "original"])
@pytest.mark.parametrize("n_blocks", [2, 3, 4, 5])
@pytest.mark.parametrize("kind", ["kleene", "replaced"])
def test_refine_agrees_with_recursion_on_each_row(kind: str, n_blocks: int, keep: bool) -> None:
    formula = random_formula(6, n_inputs=9, read_once=False, random_state=n_blocks)
    X = rows_of(9, 12, 5)
    if kind == "kleene":
        masker: Any = KleeneMasks(formula, X, 7)
    else:
        masker = ReplacedMasks(ContrastPairs(formula.predict, X, np.zeros(9, dtype=int), 50))
    cache = MaskCache(masker.keeps_decision, 12, 9, inference=kind == "kleene", max_queries=None)
    keys = row_keys(X, 3)
    weights = np.random.default_rng(1).random((12, 9)) * (np.arange(12) % 3 > 0)[:, None]
    weights[:, 2] = 0.0
    values, certificates = refine(
        cache, np.arange(12), keys, weights, stream=4, n_blocks=n_blocks, keep_witness=keep
    )
    results = {
        (index, feature, frozenset(np.flatnonzero(mask).tolist()))
        for index, feature, mask in zip(*certificates, strict=True)
    }
    expected = set()
    for index in range(12):

        def same(mask: frozenset[int], index: int = index) -> bool:
            if not mask:
                return True
            array = np.isin(np.arange(9), list(mask))[None, :]
            return bool(masker.keeps_decision(np.array([index]), array)[0])

        slow, own = slow_pass(same, keys[[index]], weights[index], 4, n_blocks, keep)
        assert values[index].tolist() == slow
        expected |= {(index, feature, mask) for feature, mask in own}
    assert results == expected
    assert (len(results) > 0) == keep


def test_cut_partitions_and_balances_features() -> None:
    rng = np.random.default_rng(0)
    parts = rng.random((400, 12)) < 0.7
    parts[parts.sum(axis=1) < 2, :3] = True
    weights = rng.random((400, 12)) * (rng.random((400, 12)) < 0.6)
    for n_blocks in (2, 4):
        labels = cut(parts, weights, rng.random((400, 12)), n_blocks)
        assert ((labels >= 0) == parts).all()
        counts = np.array([np.unique(row[row >= 0]).size for row in labels])
        assert ((counts >= 2) & (counts <= n_blocks)).all()
        # Block labels are 0, 1, ... without gaps.
        assert (labels.max(axis=1) + 1 == counts).all()
    # Twelve equal weights give blocks of three, whether four or five are requested.
    for n_blocks in (4, 5):
        labels = cut(np.ones((1, 12), bool), np.zeros((1, 12)), rng.random((1, 12)), n_blocks)
        assert sorted(np.bincount(labels[0]).tolist()) == [3, 3, 3, 3]
    # The feature with the largest weight gets its own block.
    heavy = np.full((200, 8), 0.01)
    heavy[:, 5] = 10.0
    labels = cut(np.ones((200, 8), bool), heavy, rng.random((200, 8)), 2)
    alone = (labels == labels[:, [5]]).sum(axis=1) == 1
    assert alone.mean() > 0.9


def test_uniforms_depend_on_keys_only() -> None:
    keys = row_keys(np.arange(2000.0)[:, None], 1)
    draws = uniforms(keys, 3, 12)
    assert abs(draws.mean() - 0.5) < 0.01
    assert abs(np.corrcoef(draws.T) - np.eye(12)).max() < 0.1
    assert (uniforms(keys[5:7], 3, 12) == draws[5:7]).all()
    assert not np.isin(uniforms(keys, 4, 12), draws).any()
    assert len(np.unique(draws)) == draws.size


# --- certificates --------------------------------------------------------------------------------


def test_fewest_masked_counts_certified_features_only() -> None:
    result = Certificates(
        np.array([0, 0, 0, 1]),
        np.array([0, 0, 2, 1]),
        bits(np.array([0b1010, 0b1100, 0b1000, 0b0001]), 4),
    )
    sizes, witnesses = fewest_masked(result, 2, 4)
    # In row 0, features 0 and 2 decide; features 1 and 3 never do.
    assert sizes.tolist() == [[0, -1, 0, -1], [-1, 0, -1, -1]]
    assert not witnesses.any()
    sizes, witnesses = fewest_masked(
        Certificates(np.array([0, 0]), np.array([0, 1]), bits(np.array([0b110, 0b001]), 3)), 1, 3
    )
    assert sizes.tolist() == [[1, 1, -1]]
    assert np.argwhere(witnesses[0]).tolist() == [[0, 1], [1, 0]]


@given(
    change_sets=st.lists(st.integers(1, 31), min_size=1, max_size=4),
    masks=st.lists(st.integers(1, 31), max_size=14),
)
@settings(max_examples=80, deadline=None)
def test_evidence_follows_from_predictions(change_sets: list[int], masks: list[int]) -> None:
    n = 5
    oracle = Antitone([change_sets], n)
    cache = MaskCache(oracle, 1, n, inference=True, max_queries=None)
    zeros = np.zeros(len(masks), dtype=np.int64)
    answers = cache.keeps_decision(zeros, bits(np.array(masks, dtype=np.int64), n))
    same = [0] + [c for c, a in zip(masks, answers, strict=True) if a]
    change = [c for c, a in zip(masks, answers, strict=True) if not a]
    nothing = np.full((1, n), -1), np.zeros((1, n, n), dtype=np.bool_)
    result = evidence(cache, *nothing)
    for i in range(n):
        least_sizes, shown_sizes = [], []
        for code in range(1 << n):
            if code >> i & 1:
                continue
            more = code | 1 << i
            is_same = any(code & ~s == 0 for s in same)
            changes = any(c & ~more == 0 for c in change)
            may_be_same = not any(c & ~code == 0 for c in change)
            may_change = not any(more & ~s == 0 for s in same)
            least_sizes += [code.bit_count()] * (may_be_same and may_change)
            shown_sizes += [code.bit_count()] * (is_same and changes)
        assert result.min_sizes[0, i] == min(least_sizes, default=-1)
        assert result.sizes[0, i] == min(shown_sizes, default=-1)
        assert result.witnesses[0, i].sum() == max(0, result.sizes[0, i])
        assert not result.witnesses[0, i, i]


def test_evidence_refutes_counts_that_the_predictions_exclude() -> None:
    cache = MaskCache(Antitone([[0b11]], 3), 1, 3, inference=True, max_queries=None)
    cache.keeps_decision(np.zeros(2, dtype=np.int64), bits(np.array([0b001, 0b011]), 3))
    claimed = np.array([[0, -1, -1]]), np.zeros((1, 3, 3), dtype=np.bool_)
    result = evidence(cache, *claimed)
    assert result.sizes[0, 0] == -1  # masking only this feature keeps the decision
    assert result.sizes[0, 1] == result.min_sizes[0, 0] + 0 == 1


# --- rows ----------------------------------------------------------------------------------------


def test_row_keys_depend_on_values_only() -> None:
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


def test_brex_baseline_uses_typical_rows() -> None:
    frame = pd.DataFrame(
        {"n": [1.0, 2.0, 9.0, 2.0], "s": ["a", "b", "b", "c"], "t": [True, False, True, True]}
    )
    expected: dict[str, list[Any]] = {
        "mean": [3.5, "b", True],
        "median": [2.0, "b", True],
        "mode": [2.0, "b", True],
    }
    for how, typical in expected.items():
        queries: list[list[Any]] = []

        def record(X: pd.DataFrame, queries: list[list[Any]] = queries) -> Any:
            queries += X.to_numpy().tolist()
            return np.zeros(len(X))

        BReX(record, baseline=how, background=frame, preset="paper").explain(frame.iloc[[0]])
        assert typical in queries
        columns = [set(column) for column in zip(*queries, strict=True)]
        assert columns == [{1.0, typical[0]}, {"a", "b"}, {True}]
    rows = np.array([[1.0, 2.0], [3.0, 2.0]])
    decide = lambda X: X[:, 0] > 1.5  # noqa: E731
    explanation = BReX(decide, baseline="mean", background=rows).explain(rows)
    assert explanation.values.tolist() == [[1.0, 0.0], [0.0, 0.0]]


def test_nearest_contrasts_finds_rows_of_another_decision() -> None:
    n_rows = []

    def decide(X: Any) -> Any:
        n_rows.append(len(X))
        return np.asarray(X)[:, 0].astype(float) > 0

    X = np.array([[1.0, 0.0], [-1.0, 5.0]])
    background = np.array([[-5.0, 0.0], [-1.0, 0.1], [2.0, 5.0], [9.0, 5.0], [1.0, 9.0]])
    contrasts = nearest_contrasts(decide, X, background, max_batch=3)
    assert contrasts.tolist() == [[-1.0, 0.1], [2.0, 5.0]]
    assert n_rows == [3, 3, 1]
    with pytest.raises(ValueError, match=r"labels differently than row 0 of X"):
        nearest_contrasts(decide, X, background[2:])


def test_nearest_contrasts_uses_deviations_and_categories() -> None:
    frame = pd.DataFrame({"wide": [0.0, 900.0, 0.0], "color": ["red", "red", "blue"]})
    background = pd.DataFrame({"wide": [0.0, 1000.0, 2000.0], "color": ["blue", "red", "red"]})

    def decide(X: pd.DataFrame) -> Any:
        return (X["wide"] + 1 > 1000) | (X["color"] == "blue")

    contrasts = nearest_contrasts(decide, frame.iloc[:2], background)
    # Another category is as far away as one standard deviation (816).
    assert contrasts["wide"].tolist() == [0.0, 1000.0]
    assert contrasts["color"].tolist() == ["blue", "red"]


def test_brex_treats_undecided_as_decision() -> None:
    def proba(X: Any) -> Any:
        p = np.asarray(X)[:, 0]
        return np.column_stack([p, 1 - p])

    rows = np.array([[0.9], [0.5], [0.1], [0.8]])
    for contrast, changed in ((0.95, [0, 1, 1, 0]), (0.6, [1, 0, 1, 1]), (0.2, [1, 1, 0, 1])):
        explanation = BReX(proba, threshold=0.8, contrast=[[contrast]]).explain(rows)
        assert explanation.values[:, 0].tolist() == changed
    with pytest.raises(ValueError, match=r"finite probabilities per class, got shape \(2,\)"):
        BReX(lambda X: X[:, 0], threshold=0.8, contrast=[[0.5]]).explain([[0.9]])
