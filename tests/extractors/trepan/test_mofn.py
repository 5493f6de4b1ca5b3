"""The search for M-of-N tests, beside plain loops."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2

from skescore.extractors.trepan._tests import (
    MOST_BINS,
    Literal,
    Search,
    Test,
    find_cuts,
    information_gain,
    put_into_bins,
)

Test.__test__ = False  # pytest would take it for a class of tests


def gain_of(holds, labels):
    """Information gain by the textbook, in plain Python."""

    def entropy(part):
        shares = [part.count(c) / len(part) for c in set(part)]
        return -sum(p * math.log2(p) for p in shares)

    sides = [[int(c) for c, h in zip(labels, holds, strict=True) if bool(h) == s] for s in (0, 1)]
    left = sum(len(side) / len(labels) * entropy(side) for side in sides if side)
    return entropy([int(c) for c in labels]) - left


def binned(X, labels, n_categories=None, n_rows=None):
    return put_into_bins(
        X.T, labels, int(labels.max()) + 1, n_categories or {}, len(X) if n_rows is None else n_rows
    )


def rounded_data(seed, n=60, n_features=3, n_classes=3):
    random = np.random.default_rng(seed)
    X = random.integers(0, 8, (n, n_features)).astype(float)
    score = X[:, 0] + 2 * (X[:, 1] > 4) + random.normal(0, 1.5, n)
    labels = np.clip(score / 8 * n_classes, 0, n_classes - 1).astype(np.intp)
    return X, labels


# --- cuts and gains ---


def test_information_gain_of_a_textbook():
    # 14 days, 9 of them fit for tennis: by wind 6 of 8 and 3 of 6 (T. Mitchell: Machine Learning,
    # 1997, section 3.4.1.2), by humidity 3 of 7 and 6 of 7.
    total = np.array([5, 9])
    gains = information_gain(np.array([[2, 6], [4, 3]]), total)
    assert gains.round(3).tolist() == [0.048, 0.152]


@given(seed=st.integers(0, 10**6), n=st.integers(2, 40), n_classes=st.integers(1, 4))
def test_no_cut_is_better_than_the_best_one_found(seed, n, n_classes):
    random = np.random.default_rng(seed)
    values = random.integers(0, 12, n) * 0.1
    labels = random.integers(0, n_classes, n)
    cuts = find_cuts(values, labels)
    assert (np.diff(cuts) > 0).all()
    every = np.unique(values)
    middles = (every[:-1] + every[1:]) / 2
    for cut in cuts:
        assert np.isclose(middles, cut, rtol=0, atol=1e-12).any()
    best = max((gain_of(values <= cut, labels) for cut in middles), default=0.0)
    found = max((gain_of(values <= cut, labels) for cut in cuts), default=0.0)
    assert found == pytest.approx(best, abs=1e-12)


def test_cuts_lie_where_the_class_changes_and_only_there():
    values = np.array([1.0, 2, 3, 4, 4, 5])
    labels = np.array([0, 0, 1, 1, 0, 0])
    assert find_cuts(values, labels).tolist() == [2.5, 3.5, 4.5]


def test_a_cut_between_neighbouring_floats_parts_them():
    low = 1.0
    for values in ([low, np.nextafter(low, 2)], [-5e-324, 0.0], [1e308, 1.7e308]):
        (cut,) = find_cuts(np.array(values), np.array([0, 1]))
        assert values[0] <= cut < values[1]


def test_many_cuts_are_thinned_evenly():
    values = np.arange(5000.0)
    cuts = find_cuts(values, np.arange(5000) % 2)
    assert len(cuts) == MOST_BINS - 1
    assert (cuts[0], cuts[-1]) == (0.5, 4998.5)
    assert np.ptp(np.diff(cuts)) <= 1
    huge = find_cuts(np.linspace(0, 1, 300_000), (np.linspace(0, 1, 300_000) > 0.3).astype(int))
    assert len(huge) == 1
    assert huge[0] == pytest.approx(0.3, abs=1e-4)


@given(seed=st.integers(0, 10**6))
def test_tables_count_as_loops_do(seed):
    X, labels = rounded_data(seed, 30)
    X[:, 2] %= 3
    data = binned(X, labels, {2: 3}, n_rows=20)
    at = np.flatnonzero(np.random.default_rng(seed).random(30) < 0.6)
    for feature in range(3):
        cuts = data.cuts[feature]
        slow = np.zeros((data.n_bins[feature], 4), dtype=int)
        for i in at:
            bin_ = int(X[i, 2]) if cuts is None else sum(X[i, feature] > cut for cut in cuts)
            slow[bin_, labels[i]] += 1
            slow[bin_, 3] += i < 20
        np.testing.assert_array_equal(
            data.table(feature, at)[:, : labels.max() + 1], slow[:, : labels.max() + 1]
        )
        np.testing.assert_array_equal(data.table(feature, at)[:, -1], slow[:, 3])
    assert data.count(at).tolist()[-1] == np.sum(at < 20)


# --- the best test of one feature ---


@given(seed=st.integers(0, 10**6), min_samples_leaf=st.integers(0, 5))
def test_the_best_ordinary_test_is_that_of_all_cuts(seed, min_samples_leaf):
    X, labels = rounded_data(seed)
    n_rows = 40
    best = 0.0
    for j in range(3):
        for cut in np.unique(X[:, j])[:-1]:
            holds = X[:, j] <= cut
            if min(holds[:n_rows].sum(), (~holds[:n_rows]).sum()) >= min_samples_leaf:
                best = max(best, gain_of(holds, labels))
    test = Search(max_literals=1, min_samples_leaf=min_samples_leaf).best_test(
        binned(X, labels, n_rows=n_rows)
    )
    assert (0.0 if test is None else gain_of(test.holds(X), labels)) == pytest.approx(best)


@given(seed=st.integers(0, 10**6))
def test_with_two_classes_the_best_set_of_categories_is_found(seed):
    random = np.random.default_rng(seed)
    codes = random.integers(0, 6, 50).astype(float)
    labels = (random.random(50) < random.random(6)[codes.astype(int)]).astype(np.intp)
    labels[0] = 1
    sets = [s for size in range(1, 6) for s in combinations(range(6), size)]
    best = max(gain_of(np.isin(codes, s), labels) for s in sets)
    test = Search(max_literals=1).best_test(binned(codes[:, None], labels, {0: 6}))
    assert (0.0 if test is None else gain_of(test.holds(codes[:, None]), labels)) == pytest.approx(
        best, abs=1e-9
    )
    if test is not None:
        assert 2 * len(test.literals[0].codes) <= len(np.unique(codes))  # the shorter list


@pytest.mark.parametrize(
    ("X", "labels"),
    [
        (np.ones((5, 2)), np.array([0, 1, 0, 1, 0])),  # nothing to tell rows apart
        (np.arange(5.0)[:, None], np.zeros(5, dtype=int)),  # nothing to tell
        (np.array([[0, 0], [0, 1], [1, 0], [1, 1.0]]), np.array([0, 1, 1, 0])),  # no gain
    ],
)
def test_without_gain_there_is_no_test(X, labels):
    assert Search().best_test(binned(X, labels)) is None


def test_a_test_must_gain_more_than_min_gain():
    X, labels = np.arange(8.0)[:, None], np.repeat([0, 1], 4)
    assert Search(min_gain=0.999).best_test(binned(X, labels)) is not None
    assert Search(min_gain=1.0).best_test(binned(X, labels)) is None


# --- M-of-N ---


def every_literal(X, used):
    for j in range(X.shape[1]):
        if j not in used:
            for cut in np.unique(X[:, j])[:-1]:
                for opposite in (False, True):
                    yield Literal(j, float(cut) + 0.5, opposite=opposite)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6), min_samples_leaf=st.sampled_from([0, 4]))
def test_an_extension_is_the_best_of_all(seed, min_samples_leaf):
    X, labels = rounded_data(seed, 80)
    data = binned(X, labels)
    search = Search(2, 1, significance=0.9, min_samples_leaf=min_samples_leaf)
    seed_test = Search(1, min_samples_leaf=min_samples_leaf).best_test(data)
    if seed_test is None:
        return
    test = search.best_test(data)
    before, best = gain_of(seed_test.holds(X), labels), 0.0
    for literal in every_literal(X, {seed_test.literals[0].feature}):
        for m in (1, 2):
            holds = Test(m, (*seed_test.literals, literal)).holds(X)
            if min(holds.sum(), (~holds).sum()) >= min_samples_leaf:
                best = max(best, gain_of(holds, labels))
    degrees = len(np.unique(labels)) - 1
    needed = chi2.isf(0.9 / 12, degrees) / (2 * math.log(2) * 80)
    expected = best if best - before > needed else before
    assert gain_of(test.holds(X), labels) == pytest.approx(expected, abs=1e-9)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_an_extension_by_a_set_of_categories_is_the_best_of_all(seed):
    random = np.random.default_rng(seed)
    X = np.column_stack([random.integers(0, 2, 80), random.integers(0, 5, 80)]).astype(float)
    chance = random.random((2, 5))[X[:, 0].astype(int), X[:, 1].astype(int)]
    labels = (random.random(80) < 0.5 * chance + 0.5 * X[:, 0]).astype(np.intp)
    labels[:2] = 0, 1
    data = binned(X, labels, {1: 5})
    seed_test = Search(1).best_test(data)
    if seed_test is None or seed_test.literals[0].feature != 0:
        return
    best = before = gain_of(seed_test.holds(X), labels)
    for codes in (c for size in range(1, 5) for c in combinations(range(5), size)):
        for m in (1, 2):
            test = Test(m, (*seed_test.literals, Literal(1, codes=codes)))
            best = max(best, gain_of(test.holds(X), labels))
    if best - before > chi2.isf(0.99 / 8, 1) / (2 * math.log(2) * 80):
        found = Search(2, 1, significance=0.99, min_samples_leaf=0).best_test(data)
        assert gain_of(found.holds(X), labels) == pytest.approx(best, abs=1e-9)


@pytest.mark.parametrize("m", [1, 2, 3, 4, 5])
def test_m_of_5_is_found_as_one_test(m):
    random = np.random.default_rng(0)
    X = random.integers(0, 2, (500, 7)).astype(float)
    labels = (X[:, :5].sum(axis=1) >= m).astype(np.intp)
    test = Search(5).best_test(binned(X, labels))
    assert test == Test(m, tuple(Literal(j, 0.5, opposite=True) for j in range(5)))


def test_numbers_and_categories_are_counted_together():
    random = np.random.default_rng(1)
    X = np.column_stack(
        [random.integers(0, 4, 600), random.normal(size=600), random.integers(0, 3, 600)]
    )
    literals = [np.isin(X[:, 0], [1, 3]), X[:, 1] > 0.2, X[:, 2] == 2]
    labels = (np.sum(literals, axis=0) >= 2).astype(np.intp)
    test = Search().best_test(binned(X, labels, {0: 4, 2: 3}))
    np.testing.assert_array_equal(test.holds(X), labels == 1)
    assert (test.m, len(test.literals)) == (2, 3)


def test_an_extension_needs_a_significant_gain():
    extended = {0.001: 0, 0.05: 0, 1.0: 0}
    for seed in range(40):
        random = np.random.default_rng(seed)
        X = random.normal(size=(400, 6))
        labels = ((X[:, 0] > 0) ^ (random.random(400) < 0.2)).astype(np.intp)
        for level in extended:
            test = Search(4, significance=level).best_test(binned(X, labels))
            extended[level] += len(test.literals) > 1
            assert 0 in [literal.feature for literal in test.literals]
    assert extended[0.001] <= 1
    assert extended[0.05] <= 8
    assert extended[1.0] >= 20  # by chance there is always something to gain


def test_a_wider_beam_finds_what_hill_climbing_misses():
    changes = []
    for seed in range(20):
        random = np.random.default_rng(seed)
        X = random.integers(0, 2, (300, 8)).astype(float)
        score = X @ random.normal(size=8) + 2 * X[:, 0] * X[:, 1] - X[:, 2] * X[:, 3]
        labels = (score > random.normal()).astype(np.intp)
        if len(set(labels.tolist())) == 2:
            narrow, wide = (
                gain_of(Search(4, width, 0.99).best_test(binned(X, labels)).holds(X), labels)
                for width in (1, 4)
            )
            changes.append(wide - narrow)
    assert min(changes) > -1e-9
    assert max(changes) > 1e-3


def test_features_of_tests_further_up_are_left_alone():
    random = np.random.default_rng(0)
    X = random.integers(0, 2, (500, 5)).astype(float)
    labels = (X[:, :3].sum(axis=1) >= 2).astype(np.intp)
    free = Search().best_test(binned(X, labels))
    assert [t.feature for t in free.literals] == [0, 1, 2]
    for taken in ([0], [1], [2]):
        test = Search().best_test(binned(X, labels), taken)
        assert len(test.literals) == 1 or not {t.feature for t in test.literals} & set(taken)
    assert len(Search().best_test(binned(X, labels), [0, 1, 2]).literals) == 1


@given(seed=st.integers(0, 10**6), width=st.integers(1, 3))
def test_no_feature_is_counted_twice(seed, width):
    X, labels = rounded_data(seed, 80, 5)
    test = Search(4, width, 0.9).best_test(binned(X, labels))
    if test is not None:
        features = [t.feature for t in test.literals]
        assert features == sorted(set(features))
        assert 1 <= test.m <= len(features) <= 4
