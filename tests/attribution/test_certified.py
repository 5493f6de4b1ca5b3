"""What answers imply and prove: the cache, passes, certificates and the search of flip sets."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from skescore.attribution import (
    BReX,
    Formula,
    random_formula,
    responsibility,
)
from skescore.attribution._contrasts import ContrastPairs
from skescore.attribution._masks import KleeneMasks, ReplacedMasks, row_keys, uniforms
from skescore.attribution._refinement import (
    Certificates,
    MaskCache,
    cut,
    evidence,
    fewest_masked,
    refine,
)
from skescore.metrics.attribution import jensen_shannon_divergence

Masks = NDArray[np.bool_]


def bits(codes: Any, n: int) -> Masks:
    return np.asarray(codes)[..., None] >> np.arange(n) & 1 == 1


def rows_of(n_inputs: int, n: int, seed: int) -> NDArray[np.int64]:
    return np.random.default_rng(seed).integers(0, 2, (n, n_inputs))


# --- the cache ------------------------------------------------------------------------------------


class Antitone:
    """Masks keep the decision of a row unless they contain one of its change sets."""

    def __init__(self, change_sets: list[list[int]], n_features: int) -> None:
        self.sets = [bits(np.array(sets, dtype=np.int64), n_features) for sets in change_sets]
        self.asked: list[tuple[int, bytes]] = []

    def __call__(self, places: NDArray[np.int64], masks: Masks) -> NDArray[np.bool_]:
        self.asked += [(p, m.tobytes()) for p, m in zip(places.tolist(), masks, strict=True)]
        return np.array(
            [not (self.sets[p] <= m).all(axis=1).any() for p, m in zip(places, masks, strict=True)]
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
@settings(max_examples=150, deadline=None)
def test_a_cache_answers_as_the_model_and_asks_nothing_twice(
    change_sets: list[list[int]], batches: list[list[tuple[int, int]]], inference: bool
) -> None:
    oracle, truth = Antitone(change_sets, 8), Antitone(change_sets, 8)
    n = len(change_sets)
    cache = MaskCache(oracle, n, 8, inference=inference, max_queries=None)
    wanted = set()
    for batch in batches:
        places = np.array([place % n for place, _ in batch], dtype=np.int64)
        masks = bits(np.array([code for _, code in batch], dtype=np.int64), 8)
        assert (cache.same(places, masks) == truth(places, masks)).all()
        wanted |= {(p, m.tobytes()) for p, m in zip(places.tolist(), masks, strict=True) if m.any()}
    assert len(set(oracle.asked)) == len(oracle.asked)
    assert cache.queries.sum() == n + len(oracle.asked)
    if inference:
        assert set(oracle.asked) <= wanted
    else:
        assert set(oracle.asked) == wanted


@pytest.mark.parametrize("n_features", [63, 64, 65, 200])
def test_a_cache_of_many_features(n_features: int) -> None:
    def ask(places: NDArray[np.int64], masks: Masks) -> NDArray[np.bool_]:
        return ~(masks[:, 0] & masks[:, -1])

    cache = MaskCache(ask, 2, n_features, inference=True, max_queries=None)
    everything = np.ones((2, n_features), dtype=np.bool_)
    assert cache.same(np.arange(2), everything).tolist() == [0, 0]
    some = everything.copy()
    some[:, -1] = False
    assert cache.same(np.arange(2), some).tolist() == [1, 1]
    some[:, 5] = False  # a part of what keeps the decision
    assert cache.same(np.arange(2), some).tolist() == [1, 1]
    assert cache.queries.tolist() == [3, 3]
    ends = ~some & False
    ends[:, [0, -1]] = True
    assert cache.same(np.arange(2), ends).tolist() == [0, 0]
    assert cache.queries.tolist() == [4, 4]


def test_a_cache_stops_at_its_limit_row_by_row() -> None:
    oracle = Antitone([[3], [3]], 4)
    cache = MaskCache(oracle, 2, 4, inference=False, max_queries=3)
    places = np.array([0, 0, 0, 1])
    masks = bits(np.array([1, 2, 3, 3]), 4)
    assert cache.same(places, masks).tolist() == [1, 1, -1, 0]
    assert cache.exhausted.tolist() == [True, False]
    assert cache.queries.tolist() == [3, 2]
    assert cache.same(places, masks).tolist() == [1, 1, -1, 0]


# --- passes --------------------------------------------------------------------------------------


def slow_pass(
    same: Any, key: NDArray[np.uint64], weights: Any, stream: int, n_blocks: int, keep: bool
) -> tuple[list[float], list[tuple[int, frozenset[int]]]]:
    """The recursion as the paper describes it, for one row, with sets."""
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
def test_a_pass_over_many_rows_is_the_recursion_on_each(
    kind: str, n_blocks: int, keep: bool
) -> None:
    formula = random_formula(6, n_inputs=9, read_once=False, random_state=n_blocks)
    X = rows_of(9, 12, 5)
    if kind == "kleene":
        masker: Any = KleeneMasks(formula, X, 7)
    else:
        masker = ReplacedMasks(ContrastPairs(formula.predict, X, np.zeros(9, dtype=int), 50))
    cache = MaskCache(masker.same, 12, 9, inference=kind == "kleene", max_queries=None)
    keys = row_keys(X, 3)
    weights = np.random.default_rng(1).random((12, 9)) * (np.arange(12) % 3 > 0)[:, None]
    weights[:, 2] = 0.0
    values, certificates = refine(
        cache, np.arange(12), keys, weights, stream=4, n_blocks=n_blocks, keep_witness=keep
    )
    found = {
        (place, feature, frozenset(np.flatnonzero(mask).tolist()))
        for place, feature, mask in zip(*certificates, strict=True)
    }
    expected = set()
    for place in range(12):

        def same(mask: frozenset[int], place: int = place) -> bool:
            if not mask:
                return True
            array = np.isin(np.arange(9), list(mask))[None, :]
            return bool(masker.same(np.array([place]), array)[0])

        slow, own = slow_pass(same, keys[[place]], weights[place], 4, n_blocks, keep)
        assert values[place].tolist() == slow
        expected |= {(place, feature, mask) for feature, mask in own}
    assert found == expected
    assert (len(found) > 0) == keep


def test_cuts_partition_and_balance() -> None:
    rng = np.random.default_rng(0)
    parts = rng.random((400, 12)) < 0.7
    parts[parts.sum(axis=1) < 2, :3] = True
    weights = rng.random((400, 12)) * (rng.random((400, 12)) < 0.6)
    for n_blocks in (2, 4):
        labels = cut(parts, weights, rng.random((400, 12)), n_blocks)
        assert ((labels >= 0) == parts).all()
        counts = np.array([np.unique(row[row >= 0]).size for row in labels])
        assert ((counts >= 2) & (counts <= n_blocks)).all()
        # Numbers are 0, 1, ... without gaps.
        assert (labels.max(axis=1) + 1 == counts).all()
    # Twelve equal weights: blocks of three, whether four or five are asked for.
    for n_blocks in (4, 5):
        labels = cut(np.ones((1, 12), bool), np.zeros((1, 12)), rng.random((1, 12)), n_blocks)
        assert sorted(np.bincount(labels[0]).tolist()) == [3, 3, 3, 3]
    # What weighs most comes in a block of its own.
    heavy = np.full((200, 8), 0.01)
    heavy[:, 5] = 10.0
    labels = cut(np.ones((200, 8), bool), heavy, rng.random((200, 8)), 2)
    alone = (labels == labels[:, [5]]).sum(axis=1) == 1
    assert alone.mean() > 0.9


def test_random_numbers_are_uniform_and_depend_on_keys_alone() -> None:
    keys = row_keys(np.arange(2000.0)[:, None], 1)
    draws = uniforms(keys, 3, 12)
    assert abs(draws.mean() - 0.5) < 0.01
    assert abs(np.corrcoef(draws.T) - np.eye(12)).max() < 0.1
    assert (uniforms(keys[5:7], 3, 12) == draws[5:7]).all()
    assert not np.isin(uniforms(keys, 4, 12), draws).any()
    assert len(np.unique(draws)) == draws.size


# --- certificates --------------------------------------------------------------------------------


def test_only_features_with_certificates_count() -> None:
    found = Certificates(
        np.array([0, 0, 0, 1]), np.array([0, 0, 2, 1]),
        bits(np.array([0b1010, 0b1100, 0b1000, 0b0001]), 4),
    )  # fmt: skip
    sizes, witnesses = fewest_masked(found, 2, 4)
    # Row 0: features 0 and 2 decide, 1 and 3 nowhere.
    assert sizes.tolist() == [[0, -1, 0, -1], [-1, 0, -1, -1]]
    assert not witnesses.any()
    sizes, witnesses = fewest_masked(
        Certificates(np.array([0, 0]), np.array([0, 1]), bits(np.array([0b110, 0b001]), 3)), 1, 3
    )
    assert sizes.tolist() == [[1, 1, -1]]
    assert np.argwhere(witnesses[0]).tolist() == [[0, 1], [1, 0]]


@given(
    change_sets=st.lists(st.integers(1, 31), min_size=1, max_size=4),
    asked=st.lists(st.integers(1, 31), max_size=14),
)
@settings(max_examples=200, deadline=None)
def test_evidence_is_what_the_answers_imply(change_sets: list[int], asked: list[int]) -> None:
    n = 5
    oracle = Antitone([change_sets], n)
    cache = MaskCache(oracle, 1, n, inference=True, max_queries=None)
    zeros = np.zeros(len(asked), dtype=np.int64)
    answers = cache.same(zeros, bits(np.array(asked, dtype=np.int64), n))
    same = [0] + [c for c, a in zip(asked, answers, strict=True) if a]
    change = [c for c, a in zip(asked, answers, strict=True) if not a]
    nothing = np.full((1, n), -1), np.zeros((1, n, n), dtype=np.bool_)
    found = evidence(cache, *nothing)
    for i in range(n):
        least, shown = [], []
        for code in range(1 << n):
            if code >> i & 1:
                continue
            more = code | 1 << i
            is_same = any(code & ~s == 0 for s in same)
            changes = any(c & ~more == 0 for c in change)
            may_be_same = not any(c & ~code == 0 for c in change)
            may_change = not any(more & ~s == 0 for s in same)
            least += [code.bit_count()] * (may_be_same and may_change)
            shown += [code.bit_count()] * (is_same and changes)
        assert found.least[0, i] == min(least, default=-1)
        assert found.sizes[0, i] == min(shown, default=-1)
        assert found.witnesses[0, i].sum() == max(0, found.sizes[0, i])
        assert not found.witnesses[0, i, i]


def test_evidence_refutes_counts_that_the_answers_exclude() -> None:
    cache = MaskCache(Antitone([[0b11]], 3), 1, 3, inference=True, max_queries=None)
    cache.same(np.zeros(2, dtype=np.int64), bits(np.array([0b001, 0b011]), 3))
    claimed = np.array([[0, -1, -1]]), np.zeros((1, 3, 3), dtype=np.bool_)
    found = evidence(cache, *claimed)
    assert found.sizes[0, 0] == -1  # masking it alone keeps the decision
    assert found.sizes[0, 1] == found.least[0, 0] + 0 == 1


@pytest.mark.parametrize("family", ["monotone", "non-monotone"])
def test_what_kleene_answers_prove_is_true(family: str) -> None:
    for seed in range(12):
        formula = random_formula(3 + seed % 7, n_inputs=10, family=family, random_state=seed)
        X = rows_of(10, 40, seed)
        truth = responsibility(formula, X)
        for limit in (None, 8, 14):
            found = BReX(formula, masking="kleene", max_queries=limit, random_state=seed).explain(X)
            assert (found.values[found.resolved] == truth[found.resolved]).all()
            assert (truth <= found.upper).all()
            assert (found.values <= found.upper).all()
            assert limit is None or (found.queries <= limit).all()
            assert found.exhausted.any() == (limit == 8 or (limit == 14 and found.exhausted.any()))
            if limit is None:
                assert found.resolved.any(axis=0).sum() >= 2


def test_masks_more_than_proofs_can_look_at() -> None:
    formula = random_formula(5, n_inputs=40, random_state=2)
    X = rows_of(40, 20, 1)
    found = BReX(formula, random_state=0).explain(X)
    assert found.masking == "kleene"
    assert (found.values == responsibility(formula, X)).all()
    assert not found.resolved.any()
    assert (found.upper == 1).all()


# --- flip sets -----------------------------------------------------------------------------------


def flips(formula: Formula, row: NDArray[np.int64], members: Any) -> bool:
    other = row ^ np.isin(np.arange(len(row)), members)
    return bool(formula.predict(other[None])[0] != formula.predict(row[None])[0])


@pytest.mark.parametrize("limit", [12, 60, 1000])
@pytest.mark.parametrize("family", ["monotone", "non-monotone"])
def test_found_flip_sets_flip_and_what_is_exact_is_minimal(family: str, limit: int) -> None:
    for seed in range(4):
        formula = random_formula(
            5 + seed, n_inputs=9, family=family, read_once=False, random_state=seed
        )
        X = rows_of(9, 15, seed)
        brex = BReX(formula, masking="sampled", max_queries=limit, random_state=0)
        found = brex.explain(X)
        assert (found.queries <= limit).all()
        for row, witnesses, resolved in zip(X, found.witnesses, found.resolved, strict=True):
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


@pytest.mark.parametrize("family", ["monotone", "non-monotone"])
def test_what_flips_prove_is_true_and_most_is_found(family: str) -> None:
    divergences = []
    for seed in range(10):
        formula = random_formula(
            4 + seed % 7, family=family, read_once=False, random_state=40 + seed
        )
        X = rows_of(12, 12, seed)
        truth = responsibility(formula, X)
        for limit in (None, 80):
            found = BReX(formula, masking="sampled", max_queries=limit, random_state=0).explain(X)
            assert (found.values[found.resolved] == truth[found.resolved]).all()
            assert (truth <= found.upper).all()
            assert (found.queries <= (limit or 1000)).all()
            if limit is None:
                divergences.append(jensen_shannon_divergence(found.values, truth).mean())
    assert np.mean(divergences) < 0.02


def test_a_few_of_hundreds_of_features_are_found() -> None:
    def model(X: NDArray[Any]) -> NDArray[np.bool_]:
        return (X[:, 7] > 0) & (X[:, 150] > 0) | (X[:, 299] > 0) & (X[:, 3] > 0)

    X = np.ones((3, 300))
    X[1, 7] = X[2, 299] = -1.0
    found = BReX(model, contrast=-np.ones(300), random_state=0).explain(X)
    truth = np.zeros((3, 300))
    truth[0, [7, 150, 299, 3]] = 0.5  # one of each pair
    truth[1, [299, 3]] = 1.0
    truth[2, [7, 150]] = 1.0
    assert (found.values == truth).all()
    assert found.witnesses is not None
    assert found.witnesses[0][7] in {(3,), (299,)}
    assert (found.queries <= 3000).all()


def test_wide_rows_share_the_calls_of_the_model() -> None:
    """A thousand features: what is asked about one row goes to the model in common calls."""
    generator = np.random.default_rng(0)
    weights = np.r_[generator.uniform(1, 2, 12), np.zeros(988)]
    calls = [0]

    def decide(X: np.ndarray) -> np.ndarray:
        calls[0] += 1
        return np.asarray(X) @ weights > weights.sum() / 2

    found = BReX(decide, random_state=0).explain(np.ones((1, 1000), dtype=int))
    assert 1000 < found.queries[0] <= 10_000
    assert calls[0] < found.queries[0] / 20
    # Only what has a weight is ever responsible, and all of it was found.
    assert np.flatnonzero(found.values[0]).tolist() == list(range(12))
    for feature, witness in enumerate(found.witnesses[0][:12]):
        flipped = np.ones((1, 1000), dtype=int)
        flipped[0, list(witness)] = 0
        assert decide(flipped)[0]
        flipped[0, feature] = 0
        assert not decide(flipped)[0]
