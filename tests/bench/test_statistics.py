from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from skescore.bench import (
    compare_ranks,
    friedman_test,
    holm_against,
    nemenyi_difference,
    nemenyi_p_values,
)

# Demšar, JMLR 7 (2006): Table 5(a), and the example of section 3.2.2 with 4 variants of C4.5 on 14
# data sets, whose average ranks are those of Table 6.
QUANTILES = {
    0.05: (1.960, 2.343, 2.569, 2.728, 2.850, 2.949, 3.031, 3.102, 3.164),
    0.10: (1.645, 2.052, 2.291, 2.459, 2.589, 2.693, 2.780, 2.855, 2.920),
}
C45 = np.array([3.143, 2.000, 2.893, 1.964])


@pytest.mark.parametrize("alpha", QUANTILES)
def test_nemenyi_difference_equals_published_quantiles(alpha):
    for k, quantile in enumerate(QUANTILES[alpha], start=2):
        error = math.sqrt(k * (k + 1) / (6 * 20))
        assert nemenyi_difference(k, 20, alpha) / error == pytest.approx(quantile, abs=1.5e-3)


def test_nemenyi_difference_equals_demsar_example():
    assert nemenyi_difference(4, 14, 0.05) == pytest.approx(1.25, abs=0.005)
    assert nemenyi_difference(4, 14, 0.10) == pytest.approx(1.12, abs=0.005)


def test_holm_against_equals_demsar_example():
    # There: z of 2.416, 2.342 and .512, and p of .016, .019 and .607.
    p_values, adjusted = holm_against(C45, 14)
    assert p_values == pytest.approx([0.019, 0.607, 0.016], abs=2e-3)
    assert adjusted == pytest.approx([0.047, 0.607, 0.047], abs=2e-3)
    assert list(p_values < [0.05 / 2, 0.05, 0.05 / 3]) == [True, False, True]


def test_nemenyi_p_value_equals_alpha_at_critical_difference():
    difference = nemenyi_difference(5, 12)
    p_values = nemenyi_p_values(np.array([1.0, 1.0 + difference, 3.0, 3.0, 4.0]), 12)
    assert p_values[0, 1] == pytest.approx(0.05, abs=1e-6)
    assert (p_values == p_values.T).all()
    assert p_values[2, 3] == 1.0


@settings(max_examples=15, deadline=None)
@given(
    st.integers(3, 6).flatmap(
        lambda k: st.lists(
            st.lists(st.integers(0, 4), min_size=k, max_size=k), min_size=2, max_size=12
        )
    )
)
def test_friedman_statistic_matches_scipy(scores):
    ranks = np.array([stats.rankdata(row) for row in scores])
    statistic, p_value = friedman_test(ranks)
    assert 0 < p_value <= 1
    if (ranks == ranks[:, :1]).all():
        assert (statistic, p_value) == (0.0, 1.0)
    else:
        assert statistic == pytest.approx(stats.friedmanchisquare(*ranks.T).statistic)


@pytest.mark.parametrize(
    ("n_data", "k", "exact"), [(3, 3, 1 / 36), (5, 2, 2 / 32), (4, 2, 2 / 16), (2, 4, 1 / 24)]
)
def test_friedman_p_value_is_exact_for_few_rows(n_data, k, exact):
    """Of all (k!)^n rankings, k! agree everywhere."""
    _, p_value = friedman_test(np.tile(np.arange(1.0, k + 1), (n_data, 1)))
    assert p_value == pytest.approx(exact, abs=4 * math.sqrt(exact / 9999))


def test_friedman_p_value_is_near_asymptotic():
    generator = np.random.default_rng(5)
    scores = generator.normal(loc=[0, 0.1, 0.2, 0.5], size=(40, 4))
    ranks = stats.rankdata(scores, axis=1)
    assert friedman_test(ranks)[1] == pytest.approx(
        stats.friedmanchisquare(*ranks.T).pvalue, abs=0.02
    )
    assert friedman_test(ranks) == friedman_test(ranks)


def frame(*rows):
    return pd.DataFrame(rows, columns=list("abcdef")[: len(rows[0])])


@settings(max_examples=15, deadline=None)
@given(st.integers(2, 9), st.integers(2, 6), st.integers(0, 10**6))
def test_groups_are_maximal(n_data, k, seed):
    generator = np.random.default_rng(seed)
    drift = np.arange(k) * generator.uniform(0, 2)
    ranks = stats.rankdata(generator.normal(size=(n_data, k)) + drift, axis=1)
    comparison = compare_ranks(frame(*ranks.tolist()))
    average, limit = comparison.average_ranks, comparison.critical_difference
    runs = [
        set(average.index[i : j + 1])
        for i, j in combinations(range(k), 2)
        if average.iloc[j] - average.iloc[i] < limit
    ]
    largest = {frozenset(run) for run in runs if not any(run < other for other in runs)}
    assert {frozenset(group) for group in comparison.groups} == largest
    for pair in comparison.pairs.itertuples():
        assert (pair.difference >= limit) == (pair.p_value <= 0.05 + 1e-9)


def test_verdict_names_a_significant_winner():
    comparison = compare_ranks(frame(*[[1, 2, 3, 4]] * 9))
    assert comparison.significant
    assert comparison.verdict == (
        "The extractors differ (Friedman's test over 9 data sets, p = 0.0001). a is better than c "
        "and d: average ranks differ by at least 1.56 (Nemenyi). It does not differ "
        "significantly from b."
    )
    assert comparison.groups == [["a", "b"], ["b", "c"], ["c", "d"]]
    assert comparison.caveat.startswith("With only 9 data sets, only large differences")
    assert compare_ranks(frame(*[[1, 2, 3, 4]] * 10)).caveat == ""


def test_verdict_states_missing_significance():
    comparison = compare_ranks(frame([1, 2, 3], [3, 2, 1], [2, 3, 1], [2, 1, 3]))
    assert not comparison.significant
    assert comparison.verdict.startswith("No extractor is significantly better")


def test_verdict_without_significant_pair_asks_for_data():
    ranks = [[1.5, 1.5, 3.5, 3.5]] * 4 + [[1.5, 3.5, 1.5, 3.5]] * 3
    comparison = compare_ranks(frame(*ranks))
    assert comparison.significant
    assert "a is better than d" in comparison.verdict
    few = compare_ranks(frame(*[[1, 2, 3, 4, 5, 6]] * 2))
    assert few.significant
    assert "no two average ranks differ by 5.33" in few.verdict
    assert "More data sets are needed." in few.caveat
    assert "by at most 5" in few.caveat


def test_verdict_explains_single_extractor_or_data_set():
    alone = compare_ranks(frame([1.0, 2.0]))
    assert math.isnan(alone.p_value)
    assert not alone.significant
    assert alone.verdict.startswith("There is only one data set")
    single = compare_ranks(frame([1.0], [1.0]))
    assert single.verdict.startswith("There is only one extractor")
    assert single.caveat == ""
    assert len(single.pairs) == 0


def test_compare_ranks_rejects_invalid_input():
    with pytest.raises(ValueError, match="ranks must not be missing"):
        compare_ranks(frame([1.0, math.nan]))
    with pytest.raises(ValueError, match="alpha must be between 0 and 1, got 5"):
        compare_ranks(frame([1, 2]), alpha=5)
