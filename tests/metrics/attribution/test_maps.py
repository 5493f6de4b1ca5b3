"""Attribution maps: known values, SciPy as a reference, and properties."""

from __future__ import annotations

import itertools
import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.spatial.distance import jensenshannon

from skescore.metrics.attribution import (
    attribution_agreement,
    attribution_complexity,
    faithfulness,
    jensen_shannon_divergence,
    plausibility,
    top_k_accuracy,
    zero_maps,
)

ENTRIES = st.floats(0, 10, allow_subnormal=False).map(lambda value: round(value, 3))
PAIRS = st.integers(1, 8).flatmap(
    lambda n: st.tuples(
        arrays(float, (3, n), elements=ENTRIES), arrays(float, (3, n), elements=ENTRIES)
    )
)


# --- divergence ----------------------------------------------------------------------------------


@given(PAIRS)
def test_divergence_equals_squared_scipy_distance(pair: tuple[Any, Any]) -> None:
    p, q = pair
    map_values = jensen_shannon_divergence(p, q, zero="nan")
    for row, value in enumerate(map_values):
        if p[row].any() and q[row].any():
            assert value == pytest.approx(jensenshannon(p[row], q[row], base=2) ** 2, abs=1e-12)
        elif p[row].any() or q[row].any():
            assert math.isnan(value)
        else:
            assert value == 0


@given(PAIRS, st.sampled_from(["max", "uniform"]), st.floats(1e-6, 1e6), st.floats(1.1, 10))
def test_divergence_is_symmetric_and_scale_free(
    pair: tuple[Any, Any], zero: str, factor: float, base: float
) -> None:
    p, q = pair
    map_values = jensen_shannon_divergence(p, q, zero=zero)
    assert ((map_values >= 0) & (map_values <= 1)).all()
    np.testing.assert_allclose(jensen_shannon_divergence(q, p, zero=zero), map_values, atol=1e-12)
    np.testing.assert_allclose(
        jensen_shannon_divergence(factor * p, q, zero=zero), map_values, atol=1e-9
    )
    np.testing.assert_allclose(
        jensen_shannon_divergence(p, q, zero=zero, base=base),
        map_values / math.log2(base),
        atol=1e-12,
    )
    np.testing.assert_allclose(jensen_shannon_divergence(p, p, zero=zero), 0, atol=1e-12)
    # Features without shares in both maps have no effect, unless shares are uniform.
    if zero == "max":
        wider = [np.hstack([maps, np.zeros((3, 2))]) for maps in pair]
        np.testing.assert_allclose(jensen_shannon_divergence(*wider), map_values, atol=1e-12)


def test_divergence_handles_zero_maps() -> None:
    p, q = [[0, 0], [1, 1], [0, 0]], [[0, 0], [0, 0], [1, 0]]
    assert jensen_shannon_divergence(p, q).tolist() == [0, 1, 1]
    assert jensen_shannon_divergence(p, q, base=math.e).tolist() == [0, math.log(2), math.log(2)]
    uniform = jensen_shannon_divergence(p, q, zero="uniform")
    assert uniform[:2].tolist() == [0, 0]
    assert uniform[2] == pytest.approx(jensenshannon([1, 1], [1, 0], base=2) ** 2)
    undefined = jensen_shannon_divergence(p, q, zero="nan")
    assert undefined[0] == 0
    assert np.isnan(undefined[1:]).all()


def test_divergence_clips_or_uses_size_of_negative_entries() -> None:
    p, q = [[1.0, -3.0], [-1.0, -1.0]], [[1.0, 0.0], [1.0, 1.0]]
    assert jensen_shannon_divergence(p, q).tolist() == [0, 1]
    by_size = jensen_shannon_divergence(p, q, signed="abs")
    assert by_size[0] == pytest.approx(jensenshannon([1, 3], [1, 0], base=2) ** 2)
    assert by_size[1] == 0
    assert zero_maps(p).tolist() == [False, True]
    assert zero_maps(p, signed="abs").tolist() == [False, False]


def test_divergence_handles_extreme_floats() -> None:
    tiny, huge = [[1e-310, 2e-310]], [[1e308, 1.7e308]]
    expected = jensenshannon([1, 2], [1, 1.7], base=2) ** 2
    assert jensen_shannon_divergence(tiny, huge)[0] == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize(
    ("p", "q"),
    [([3, 2, 0], [0, 0, 1]), ([3, 2, 0, 0], [0, 0, 3, 2]), ([5, 4, 3, 2, 0], [0] * 4 + [2])],
)
def test_divergence_of_disjoint_maps_is_at_most_one(p: list[int], q: list[int]) -> None:
    """Without a bound, rounding would give slightly more than 1."""
    divergence = jensen_shannon_divergence(p, q)
    assert divergence == pytest.approx(1.0)
    assert divergence <= 1.0


def test_maps_reject_durations() -> None:
    durations = np.array([[1, 2]], dtype="timedelta64[ns]")
    with pytest.raises(TypeError, match="must hold numbers"):
        zero_maps(durations)
    with pytest.raises(TypeError, match="must hold numbers"):
        faithfulness(lambda X: X.sum(axis=1), [[1.0, 2.0]], durations)


def test_divergence_accepts_containers_and_single_maps() -> None:
    maps = np.array([[1.0, 2, 3], [3, 2, 1]])
    one = [1.0, 2, 3]
    expected = jensen_shannon_divergence(maps, [one, one])
    for same in (
        maps.tolist(),
        pd.DataFrame(maps),
        scipy.sparse.csr_array(maps),
        SimpleNamespace(values=maps, queries=[1, 2]),
        maps.astype(np.float32),
        maps.astype(int),
        [tuple(row) for row in maps],
    ):
        assert jensen_shannon_divergence(same, one).tolist() == expected.tolist()
        assert jensen_shannon_divergence(one, same).tolist() == expected.tolist()
    single = jensen_shannon_divergence(one, [3, 2, 1])
    assert isinstance(single, float)
    assert single == expected[1]
    assert jensen_shannon_divergence(np.empty((0, 3)), np.empty((0, 3))).shape == (0,)


@pytest.mark.parametrize(
    ("arguments", "options", "error", "message"),
    [
        (([1, 2], [1, 2, 3]), {}, ValueError, "same shape"),
        (([[1, 2]] * 2, [[1, 2]] * 3), {}, ValueError, "same shape"),
        (([[1, 2]], [[1, 2]] * 3), {}, ValueError, "same shape"),
        (([1, math.nan], [1, 2]), {}, ValueError, "p must be finite, got nan at position 1"),
        (([1, 2], [1, math.inf]), {}, ValueError, "q must be finite"),
        (([], []), {}, ValueError, "at least one feature"),
        ((["a"], ["b"]), {}, TypeError, "p must hold numbers"),
        (([[1], [1, 2]], [1]), {}, (ValueError, TypeError), "p must"),
        (([1, 2], [1, 2]), {"base": 1}, ValueError, "base"),
        (([1, 2], [1, 2]), {"base": "e"}, TypeError, "base"),
        (([1, 2], [1, 2]), {"zero": "one"}, ValueError, "zero"),
        (([1, 2], [1, 2]), {"signed": "square"}, ValueError, "signed"),
    ],
)
def test_divergence_rejects_invalid_maps(
    arguments: Any, options: dict[str, Any], error: Any, message: str
) -> None:
    with pytest.raises(error, match=message):
        jensen_shannon_divergence(*arguments, **options)


# --- top k ---------------------------------------------------------------------------------------


def fair_chance(scores: np.ndarray, relevant: np.ndarray) -> float:
    """Return the share of all orders of tied features that are hits."""
    k, hits, total = int(relevant.sum()), 0, 0
    for order in itertools.permutations(range(len(scores))):
        top = sorted(order, key=lambda j: (-scores[j], order.index(j)))[:k]
        hits += set(top) == set(np.flatnonzero(relevant))
        total += 1
    return hits / total


@given(
    st.integers(1, 5).flatmap(
        lambda n: st.tuples(
            arrays(int, n, elements=st.integers(0, 2)), arrays(bool, n, elements=st.booleans())
        )
    )
)
def test_top_k_expected_ties_equal_share_of_orders(pair: tuple[Any, Any]) -> None:
    scores, relevant = pair
    expected = top_k_accuracy([scores], [relevant], ties="expected")[0]
    strict = top_k_accuracy([scores], [relevant])[0]
    if not relevant.any():
        assert math.isnan(expected)
        assert math.isnan(strict)
        return
    chance = fair_chance(scores, relevant)
    assert expected == pytest.approx(chance)
    assert strict == (chance == 1)


def test_top_k_random_ties_are_reproducible() -> None:
    maps = np.tile([1.0, 1.0, 1.0, 0.0], (4000, 1))
    relevant = np.tile([1, 0, 0, 0], (4000, 1))
    hits = top_k_accuracy(maps, relevant, ties="random", random_state=0)
    assert set(hits) == {0.0, 1.0}
    assert hits.mean() == pytest.approx(1 / 3, abs=0.03)
    second_result = top_k_accuracy(maps, relevant, ties="random", random_state=0)
    np.testing.assert_array_equal(hits, second_result)
    # Draws do not depend on other rows.
    maps[::2] = [3, 2, 1, 0]
    mixed = top_k_accuracy(maps, relevant, ties="random", random_state=0)
    assert (mixed[::2] == 1).all()
    np.testing.assert_array_equal(mixed[1::2], hits[1::2])


def test_top_k_accepts_responsibilities() -> None:
    truth = [[1, 0.5, 1 / 3, 0], [0.5, 0.5, 0, 0], [0, 0, 0, 0], [1, 1, 1, 1]]
    maps = [[9, 3, 2, 1], [9, 3, 2, 1], [9, 3, 2, 1], [0, 0, 0, 0]]
    assert np.array_equal(top_k_accuracy(maps, truth), [1, 1, np.nan, 1], equal_nan=True)
    # Without a feature of responsibility 1, the result is NaN.
    but_for = top_k_accuracy(maps, truth, but_for=True)
    assert np.array_equal(but_for, [1, np.nan, np.nan, 1], equal_nan=True)
    assert top_k_accuracy(np.array(truth)[:2], np.array(truth)[:2] > 0).tolist() == [1, 1]


def test_top_k_rejects_invalid_inputs() -> None:
    with pytest.raises(ValueError, match="same shape"):
        top_k_accuracy([[1, 2]], [[1, 0, 0]])
    with pytest.raises(ValueError, match="from 0 to 1"):
        top_k_accuracy([[1, 2]], [[2, 0]])
    with pytest.raises(ValueError, match="relevant must be finite"):
        top_k_accuracy([[1, 2]], [[math.nan, 0]])
    with pytest.raises(ValueError, match="Did you mean 'strict'"):
        top_k_accuracy([[1, 2]], [[1, 0]], ties="stric")


# --- agreement and complexity --------------------------------------------------------------------


def test_agreement_equals_values_computed_by_hand() -> None:
    """The top features a, b, c and b, a, d share a and b, no rank, and the sign of a."""
    left, right = [[5, 4, -3, 1]], [[4, -5, 1, 3]]

    def agree(measure: str) -> float:
        return float(attribution_agreement(left, right, measure=measure, top_k=3)[0])

    assert agree("feature") == pytest.approx(2 / 3)
    assert agree("rank") == 0
    assert agree("sign") == pytest.approx(1 / 3)
    assert agree("signed_rank") == 0
    # The magnitudes a > b > c > d and b > a > d > c disagree in two of six pairs.
    assert agree("pairwise") == pytest.approx(4 / 6)
    assert agree("rank_correlation") == pytest.approx(1 - 6 * 4 / (4 * 15))


@given(PAIRS, st.integers(1, 9))
def test_agreement_is_bounded_and_consistent(pair: tuple[Any, Any], top_k: int) -> None:
    left, right = pair[0] - 5, pair[1] - 5
    measures = ("feature", "rank", "sign", "signed_rank")
    map_values = {
        name: attribution_agreement(left, right, measure=name, top_k=top_k) for name in measures
    }
    for name, values in map_values.items():
        assert ((values >= 0) & (values <= 1)).all()
        same = attribution_agreement(left, 2 * left, measure=name, top_k=top_k)
        assert same.tolist() == [1, 1, 1]
    assert (map_values["signed_rank"] <= np.minimum(map_values["rank"], map_values["sign"])).all()
    assert (np.maximum(map_values["rank"], map_values["sign"]) <= map_values["feature"]).all()
    correlation = attribution_agreement(left, right, measure="rank_correlation")
    for row, value in enumerate(correlation):
        sizes = np.abs(left[row]), np.abs(right[row])
        if min(len(set(size)) for size in sizes) < 2:
            assert math.isnan(value)
        else:
            assert value == pytest.approx(scipy.stats.spearmanr(*sizes).statistic)


def test_rank_correlation_of_constant_map_is_nan() -> None:
    pairs = ([[2, 2, 2]], [[1, 2, 3]])
    for left, right in (pairs, pairs[::-1]):
        values = attribution_agreement(left, right, measure="rank_correlation")
        assert np.isnan(values).all()


def test_agreement_rejects_invalid_inputs() -> None:
    for top_k in (0, 1.5):
        with pytest.raises((TypeError, ValueError), match="top_k"):
            attribution_agreement([[1, 2]], [[1, 2]], top_k=top_k)
    with pytest.raises(ValueError, match="'feature'"):
        attribution_agreement([[1, 2]], [[1, 2]], measure="features")
    assert np.isnan(attribution_agreement([[1]], [[1]], measure="pairwise")).all()
    assert np.isnan(attribution_agreement([[1]], [[1]], measure="rank_correlation")).all()


@given(arrays(float, (4, 6), elements=ENTRIES))
def test_complexity_equals_entropy(maps: np.ndarray) -> None:
    map_values = attribution_complexity(maps - 5)
    for row, value in zip(np.abs(maps - 5), map_values, strict=True):
        if row.any():
            assert value == pytest.approx(scipy.stats.entropy(row, base=2), abs=1e-12)
        else:
            assert math.isnan(value)
    with pytest.raises(ValueError, match="base"):
        attribution_complexity(maps, base=0.5)


def test_complexity_of_one_feature_is_positive_zero() -> None:
    assert math.copysign(1.0, attribution_complexity([[1.0, 0.0]])[0]) == 1.0


def test_agreement_pairwise_equals_known_shares() -> None:
    for one, other, share in (([1, 2, 3], [3, 2, 1], 0), ([1, 3, 2], [1, 2, 3], 2 / 3)):
        map_values = attribution_agreement([one], [other], measure="pairwise")
        assert map_values.tolist() == [pytest.approx(share)]
    # Two features form one pair.
    assert attribution_agreement([[1, 2]], [[3, 4]], measure="pairwise").tolist() == [1.0]


# --- names of features ---------------------------------------------------------------------------

COMPARISONS = {
    "divergence": jensen_shannon_divergence,
    **{
        name: lambda a, b, name=name: attribution_agreement(a, b, measure=name, top_k=2)
        for name in ("feature", "rank", "sign", "signed_rank", "rank_correlation", "pairwise")
    },
    "top_k": lambda a, b: top_k_accuracy(a, b > 2),
    "plausibility": lambda a, b: plausibility(a, b > 2, top_k=1)["token_f1"],
}


@pytest.mark.parametrize("comparison", COMPARISONS)
@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_comparisons_align_features_by_name(comparison: str, kind: str) -> None:
    compare = COMPARISONS[comparison]
    one, other = np.array([[3.0, -2.0, 1.0], [0, 1, 2]]), np.array([[3.0, 2.0, -1.0], [3, 0, 1]])
    expected = compare(one, other)
    make = pd.DataFrame if kind == "pandas" else pl.DataFrame
    options = {"columns": list("abc")} if kind == "pandas" else {"schema": list("abc")}
    left, right = (make(maps, **options) for maps in (one, other))
    for order in itertools.permutations("abc"):
        result = compare(left, right[list(order)])
        np.testing.assert_array_equal(result, expected)
    for different in (
        right[["a", "b"]],
        right.rename(columns={"c": "d"}) if kind == "pandas" else right.rename({"c": "d"}),
    ):
        with pytest.raises(ValueError, match=r"must have the features of|same shape"):
            compare(left, different)
    np.testing.assert_array_equal(compare(left, other), expected)
    np.testing.assert_array_equal(compare(one, right), expected)
    np.testing.assert_array_equal(compare(left, pd.DataFrame(other)), expected)


def test_comparisons_reject_repeated_names_in_other_orders() -> None:
    left = pd.DataFrame([[3.0, 2.0, 1.0]], columns=["a", "a", "b"])
    assert jensen_shannon_divergence(left, left) == 0
    with pytest.raises(ValueError, match="q must have the features of p"):
        jensen_shannon_divergence(left, left[["b", "a"]])


def test_comparisons_align_single_maps_by_name() -> None:
    one = pd.Series([3.0, 2.0, 1.0], index=list("abc"))
    assert jensen_shannon_divergence(one, one[::-1]) == 0
    assert jensen_shannon_divergence(one, one.to_frame().T[list("cba")]).tolist() == [0]


def test_comparisons_align_like_faithfulness() -> None:
    maps = pd.DataFrame([[3.0, 2.0, 1.0]], columns=list("abc"))
    reordered = maps[list("cba")]
    values = faithfulness(lambda Z: Z.to_numpy() @ [3.0, 2.0, 1.0], maps, reordered)
    assert values["taucorr_loo"].tolist() == [1]
    assert attribution_agreement(maps, reordered, measure="rank", top_k=3).tolist() == [1]
