"""Instances drawn in regions, beside draws that throw away what does not fit."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.special import kolmogorov

from skescore.extractors.trepan._instances import (
    Features,
    Model,
    at_least,
    chi_squared,
    given_at_least,
    kolmogorov_smirnov,
    thinned,
)
from skescore.extractors.trepan._tests import Literal, Region, Test

Test.__test__ = False  # pytest would take it for a class of tests
KEY = np.uint64(12345)
CATEGORIES = {3: ("a", "b", "c", "d")}
N_CATEGORIES = {3: 4}


def rows_of(seed, n=40):
    """Two columns of numbers, one of three different numbers, one of categories."""
    random = np.random.default_rng(seed)
    return np.column_stack(
        [
            random.normal(size=n),
            random.exponential(100.0, n),
            random.choice([0.0, 1.0, 2.0], n, p=[0.6, 0.3, 0.1]),
            random.integers(0, 4, n),
        ]
    )


def model_of(X, n_categories=None):
    n_categories = {} if n_categories is None else n_categories
    return Model(Features.of(X, X.min(axis=0), X.max(axis=0), n_categories), X)


def random_literal(random, X, feature):
    opposite = bool(random.integers(2))
    if feature == 3:
        codes = tuple(sorted(random.choice(4, random.integers(1, 4), replace=False).tolist()))
        return Literal(3, codes=codes, opposite=opposite)
    low, high = np.sort(random.choice(X[:, feature], 2))
    return Literal(feature, float(low / 2 + high / 2), opposite=opposite)


def random_tests(random, X):
    """Single tests on a few features, then a test of several literals."""
    singles = [
        Test(1, (random_literal(random, X, int(j)),))
        for j in random.integers(0, 4, random.integers(0, 4))
    ]
    features = random.permutation(4)[: random.integers(2, 5)]
    counted = tuple(random_literal(random, X, int(j)) for j in features)
    return [*singles, Test(int(random.integers(1, len(counted) + 1)), counted)]


# --- regions ---


@settings(deadline=None)
@given(seed=st.integers(0, 10**6))
def test_a_region_holds_what_satisfies_all_tests(seed):
    random = np.random.default_rng(seed)
    X = rows_of(seed)
    tests = random_tests(random, X)
    cuts = [t.cut for test in tests for t in test.literals]
    near = X[random.integers(0, len(X), 300)]
    near[:, :3] = np.where(
        random.random((300, 3)) < 0.5, near[:, :3], random.choice(cuts, (300, 3))
    )
    region = Region.everything(4, N_CATEGORIES).after(tests)
    expected = np.all(
        [
            np.sum(
                [
                    (
                        np.isin(near[:, t.feature], t.codes)
                        if t.codes
                        else near[:, t.feature] <= t.cut
                    )
                    != t.opposite
                    for t in test.literals
                ],
                axis=0,
            )
            >= test.m
            for test in tests
        ],
        axis=0,
    )
    np.testing.assert_array_equal(region.holds(near), expected)
    if not expected.any():
        return  # a contradiction is no region that a tree could make
    # The conditions of the rule say the same, also about a value never seen in training.
    names = np.array([*CATEGORIES[3], "new"], dtype=object)
    seen = near[:, 3].astype(int)
    unseen = np.full(len(near), 4)
    for codes in (seen, unseen):
        rows = np.column_stack([near[:, :3], codes])
        plain = np.all([test.holds(rows) for test in tests], axis=0)
        held = np.ones(len(near), dtype=bool)
        for condition in region.conditions(CATEGORIES):
            held &= condition.holds(
                lambda j, r=rows: names[r[:, 3].astype(int)] if j == 3 else r[:, j]
            )
        np.testing.assert_array_equal(held, plain)


@given(seed=st.integers(0, 10**6))
def test_the_false_side_is_the_complement(seed):
    random = np.random.default_rng(seed)
    X = rows_of(seed)
    *_, test = random_tests(random, X)
    np.testing.assert_array_equal(test.negated().holds(X), ~test.holds(X))
    assert test.negated().negated() == test


def test_conjunctions_go_into_the_box():
    low, high = Literal(0, 2.0), Literal(1, 5.0, opposite=True)
    everything = Region.everything(3, {})
    both = everything.after([Test(2, (low, high))])
    assert (both.tests, both.upper[0], both.lower[1]) == ((), 2.0, 5.0)
    neither = everything.after([Test(1, (low, high)).negated()])
    assert (neither.tests, neither.lower[0], neither.upper[1]) == ((), 2.0, 5.0)
    # What the box decides is not asked again, and what is left may be a conjunction, too.
    three = Test(2, (low, high, Literal(2, 0.0)))
    decided = everything.after([three, Test(1, (Literal(0, 2.5, opposite=True),))])
    assert (decided.tests, decided.lower.tolist()[:2]) == ((), [2.5, 5.0])
    assert decided.upper[2] == 0.0
    half = everything.after([three, Test(1, (Literal(0, 1.5),))])
    assert half.tests == (Test(1, (high, Literal(2, 0.0))),)


# --- chances ---


@given(chances=st.lists(st.floats(0, 1), min_size=1, max_size=5))
def test_chances_of_counts_are_those_of_all_patterns(chances):
    n = len(chances)
    tails = at_least(np.array(chances))
    for start in range(n + 1):
        for k in range(n - start + 1):
            slow = 0.0
            for pattern in product([0, 1], repeat=n - start):
                chance = 1.0
                for happens, p in zip(pattern, chances[start:], strict=True):
                    chance *= p if happens else 1 - p
                slow += chance * (sum(pattern) >= k)
            assert tails[start, k] == pytest.approx(slow, abs=1e-12)


@given(chances=st.lists(st.floats(0.05, 0.95), min_size=1, max_size=4), data=st.data())
def test_conditional_chances_are_those_of_all_patterns(chances, data):
    m = data.draw(st.integers(1, len(chances)))
    total, each = 0.0, np.zeros(len(chances))
    for pattern in product([0, 1], repeat=len(chances)):
        if sum(pattern) >= m:
            p = np.array(chances)
            chance = np.prod(np.where(pattern, p, 1 - p))
            total += chance
            each += chance * np.array(pattern)
    np.testing.assert_allclose(given_at_least(np.array(chances), m), each / total)


# --- draws ---


@settings(deadline=None)
@given(seed=st.integers(0, 10**6))
def test_what_is_drawn_satisfies_all_tests(seed):
    random = np.random.default_rng(seed)
    X = rows_of(seed)
    region = Region.everything(4, N_CATEGORIES).after(random_tests(random, X))
    if not region.holds(X).any():
        return  # every node of a tree has rows or instances
    # Also where the model has seen no row of the kind.
    for sample in (X, X[~region.holds(X)]):
        if len(sample):
            model = Model(Features.of(X, X.min(axis=0), X.max(axis=0), N_CATEGORIES), sample)
            points = model.draw(region, KEY, 50)
            assert region.holds(points).all()
            assert ((X.min(axis=0) <= points) & (points <= X.max(axis=0))).all()
            assert np.isin(points[:, 2], X[:, 2]).all()


def test_conditional_draws_are_distributed_like_those_that_fit():
    X = rows_of(3, 60)
    model = model_of(X, N_CATEGORIES)
    counted = (
        Literal(0, 0.3), Literal(1, 80.0, opposite=True), Literal(2, 0.5), Literal(3, codes=(0, 2)),
    )  # fmt: skip
    everything = Region.everything(4, N_CATEGORIES)
    region = everything.after([Test(1, (Literal(1, 30.0, opposite=True),)), Test(2, counted)])
    assert len(region.tests) == 1
    free = model.draw(everything, np.uint64(1), 150_000)
    free = free[region.holds(free)]
    drawn = model.draw(region, np.uint64(2), 30_000)
    for j in (0, 1):
        assert stats.ks_2samp(free[:, j], drawn[:, j]).pvalue > 1e-3

    def patterns(points):
        held = np.array([literal.holds(points[:, literal.feature]) for literal in counted])
        joint = (points[:, 2] * 4 + points[:, 3]).astype(int)
        return np.bincount(joint * 16 + 2 ** np.arange(4) @ held, minlength=12 * 16)

    table = np.array([patterns(free), patterns(drawn)])
    assert stats.chi2_contingency(table[:, table.sum(axis=0) > 10])[1] > 1e-3


def test_densities_are_normal_bumps_of_the_published_width_cut_off_at_the_limits():
    X = np.array([[0.0], [1.0], [5.0], [6.0]])
    width = X.std() / np.sqrt(4)
    drawn = model_of(X).draw(Region.everything(1, {}), KEY, 40_000)[:, 0]

    def cdf(x, low=0.0, high=6.0):
        def mixture(v):
            return stats.norm.cdf((np.asarray(v)[..., None] - X[:, 0]) / width).mean(axis=-1)

        return (mixture(x) - mixture(low)) / (mixture(high) - mixture(low))

    assert stats.kstest(drawn, cdf).pvalue > 1e-3
    cut = Region.everything(1, {}).within([Literal(0, 0.5, opposite=True), Literal(0, 1.5)])
    drawn = model_of(X).draw(cut, KEY, 40_000)[:, 0]
    assert stats.kstest(drawn, lambda x: cdf(x, 0.5, 1.5)).pvalue > 1e-3


def test_far_tails_are_drawn_exactly():
    X = np.concatenate([np.linspace(-1, 1, 400), [60.0]])[:, None]
    model = model_of(X)
    for low, high in ((20.0, 30.0), (-0.9, -0.8), (8.0, 59.99)):
        region = Region.everything(1, {}).within([Literal(0, low, opposite=True), Literal(0, high)])
        drawn = model.draw(region, KEY, 2000)[:, 0]
        assert ((low < drawn) & (drawn <= high)).all()
        assert len(np.unique(drawn)) > 1000


def test_values_of_lists_come_as_often_as_in_the_rows():
    X = rows_of(0, 1000)
    drawn = model_of(X, N_CATEGORIES).draw(Region.everything(4, N_CATEGORIES), KEY, 20_000)
    for j in (2, 3):
        seen = np.bincount(X[:, j].astype(int)) / len(X)
        np.testing.assert_allclose(np.bincount(drawn[:, j].astype(int)) / 20_000, seen, atol=0.015)


def test_features_are_drawn_independently():
    random = np.random.default_rng(0)
    x = random.normal(size=500)
    drawn = model_of(np.column_stack([x, x, -x])).draw(Region.everything(3, {}), KEY, 20_000)
    correlations = np.corrcoef(drawn.T)[np.triu_indices(3, 1)]
    assert np.abs(correlations).max() < 0.03


def test_constant_and_tiny_features_keep_their_scale():
    """Fault 12: absolute epsilons let features of small range collapse."""
    random = np.random.default_rng(0)
    X = np.column_stack(
        [np.full(200, 7.0), 1.0 + 1e-12 * random.random(200), 1e-300 * random.random(200)]
    )
    drawn = model_of(X).draw(Region.everything(3, {}), KEY, 1000)
    assert (drawn[:, 0] == 7.0).all()
    for j in (1, 2):
        assert drawn[:, j].std() == pytest.approx(X[:, j].std(), rel=0.1)
        assert len(np.unique(drawn[:, j])) > 300


# --- keys ---


def test_draws_depend_on_the_key_and_nothing_else():
    """Fault 6: the global generator is left alone."""
    X = rows_of(0)
    region = Region.everything(4, N_CATEGORIES).after(
        [Test(1, (Literal(0, 0.1), Literal(1, 50.0)))]
    )
    state = np.random.get_state()[1].copy()
    first = model_of(X, N_CATEGORIES).draw(region, KEY, 100)
    np.testing.assert_array_equal(np.random.get_state()[1], state)
    np.testing.assert_array_equal(model_of(X, N_CATEGORIES).draw(region, KEY, 130)[:100], first)
    other = model_of(X, N_CATEGORIES).draw(region, np.uint64(54321), 100)
    assert not np.isin(other[:, :2], first[:, :2]).any()
    assert model_of(X, N_CATEGORIES).draw(region, KEY, 0).shape == (0, 4)


def test_many_rows_are_thinned_evenly():
    rows = np.arange(100, 1100)
    assert thinned(rows, KEY, 1000) is rows
    few = thinned(rows, KEY, 100)
    np.testing.assert_array_equal((few - 100) // 10, np.arange(100))
    assert len(np.unique(few % 10)) == 10  # not always the same row of each stretch
    np.testing.assert_array_equal(thinned(rows, KEY, 100), few)
    assert (thinned(rows, np.uint64(9), 100) != few).any()


# --- tests for new models ---


def test_kolmogorov_smirnov_agrees_with_scipy():
    random = np.random.default_rng(0)
    for n, shift in ((30, 0.0), (80, 0.3), (200, 0.2)):
        a, b = random.normal(size=n).round(1), random.normal(shift, size=2 * n).round(1)
        distance = stats.ks_2samp(a, b).statistic
        expected = kolmogorov(np.sqrt(n * 2 * n / (3 * n)) * distance)
        assert kolmogorov_smirnov(a, b, np.ones(2 * n)) == pytest.approx(expected, rel=1e-9)
        # Rows of weight 0 are as good as not there.
        weights = (np.arange(2 * n) % 2).astype(float)
        assert kolmogorov_smirnov(a, b, weights) == kolmogorov_smirnov(a, b[1::2], np.ones(n))
    assert kolmogorov_smirnov(a, b, np.zeros(400)) == kolmogorov_smirnov(a[:0], b, weights) == 1.0


def test_chi_squared_agrees_with_scipy():
    random = np.random.default_rng(0)
    listed = np.arange(5.0)
    a, b = random.integers(0, 4, 60).astype(float), random.integers(0, 4, 90).astype(float)
    table = np.array([np.bincount(s.astype(int), minlength=4) for s in (a, b)])
    expected = stats.chi2_contingency(table, correction=False)[1]
    assert chi_squared(listed, a, b, np.ones(90)) == pytest.approx(expected, rel=1e-12)
    assert chi_squared(listed, a[:0], b, np.ones(90)) == 1.0
    assert chi_squared(listed, a * 0, b * 0, np.ones(90)) == 1.0


def test_a_model_suits_rows_that_the_tests_alone_tell_apart():
    """The tests on the path change the rows' distribution; that is no reason for a new model."""
    tests = {
        "box": [Test(1, (Literal(0, 0.0),))],
        "counted": [Test(2, (Literal(0, 0.0), Literal(1, 60.0), Literal(3, codes=(0, 1))))],
    }
    for path in tests.values():
        region = Region.everything(4, N_CATEGORIES).after(path)
        differing = 0
        for seed in range(60):
            X = rows_of(seed, 300)  # columns independent of each other
            differing += model_of(X, N_CATEGORIES).differs(X[region.holds(X)], region, 0.05)
        assert differing <= 6


@pytest.mark.parametrize("dependent", [1, 2, 3])
def test_a_model_does_not_suit_rows_that_depend_on_the_tests(dependent):
    region = Region.everything(4, N_CATEGORIES).after([Test(1, (Literal(0, 0.0),))])
    for seed in range(10):
        X = rows_of(seed, 300)
        if dependent == 1:
            X[:, 1] += 100 * X[:, 0]
        else:
            X[:, dependent] = np.where(X[:, 0] > 0, X[:, dependent], np.minimum(X[:, dependent], 1))
        assert model_of(X, N_CATEGORIES).differs(X[region.holds(X)], region, 0.05)


def test_few_rows_never_make_a_model():
    X = rows_of(0)
    region = Region.everything(4, N_CATEGORIES)
    assert not model_of(X, N_CATEGORIES).differs(X[:1], region, 0.05)
    assert not model_of(X, N_CATEGORIES).differs(X, region, 0.05)  # all of the model's own rows


def test_few_values_among_few_rows_are_numbers_all_the_same():
    few = np.array([[1.0], [2.0], [3.0], [4.0], [5.0]])
    assert Features.of(few, few[0], few[-1], {}).values == {}
    twice = np.repeat(few, 2, axis=0)
    assert Features.of(twice, few[0], few[-1], {}).values[0].tolist() == [1, 2, 3, 4, 5]
    late = np.concatenate([np.zeros(600), np.arange(20.0)])[:, None]
    assert Features.of(late, late[0], late[-1], {}).values == {}
