"""p-values of rules: RuleKit's, exact fractions, SciPy, and corrections for many tests."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from skescore.metrics import (
    CORRECTIONS,
    adjust_p_values,
    fisher_p_value,
    significant_fraction,
    variance_p_value,
)

# Values of RuleKit 2.1.24; the files describe how they were made.
DATA = Path(__file__).parents[1] / "data"
RULEKIT = json.loads((DATA / "rulekit_measures.json").read_text(encoding="utf-8"))
RULES = json.loads((DATA / "rulekit_rules.json").read_text(encoding="utf-8"))["rule_sets"]
RULEKIT_NAMES = {"none": None, "FDR": "rulekit_fdr", "FWER": "rulekit_fwer"}


# --- Fisher's exact test -------------------------------------------------------------------------


def by_counting(p, n, P, N):
    """Return the share of ways to draw p + n rows with at least p positives."""
    c = p + n
    ways = sum(math.comb(P, k) * math.comb(N, c - k) for k in range(p, min(P, c) + 1))
    return Fraction(ways, math.comb(P + N, c))


def test_fisher_p_value_equals_rulekit_for_given_counts():
    cases = [case for kind in ("regular", "edge") for case in RULEKIT[kind]]
    cases = [case for case in cases if case["fisher"] is not None]
    assert len(cases) == 73
    ours = fisher_p_value(*np.array([case["counts"] for case in cases]).T)
    # Relative tolerance only, since the smallest value is 1e-123.
    np.testing.assert_allclose(ours, [case["fisher"] for case in cases], rtol=1e-6, atol=0)


def test_fisher_p_value_equals_rulekit_for_learned_rules():
    rules = [r for s in RULES if s["task"] == "classification" for r in s["rules"]]
    assert len(rules) == 22
    ours = fisher_p_value(*([rule[key] for rule in rules] for key in "pnPN"))
    np.testing.assert_allclose(ours, [rule["pvalue"] for rule in rules], rtol=1e-6, atol=0)


def test_fisher_p_value_equals_counting_for_small_tables():
    tables = [
        (p, n, P, N)
        for P in range(8)
        for N in range(8)
        if P + N
        for p in range(P + 1)
        for n in range(N + 1)
    ]
    ours = fisher_p_value(*np.array(tables).T)
    expected = [float(by_counting(*table)) for table in tables]
    np.testing.assert_allclose(ours, expected, rtol=1e-13, atol=0)


@st.composite
def tables(draw, most):
    P, N = draw(st.integers(0, most)), draw(st.integers(1, most))
    return draw(st.integers(0, P)), draw(st.integers(0, N)), P, N


@given(tables(1500))
def test_fisher_p_value_equals_counting_for_large_tables(table):
    exact = by_counting(*table)
    ours = fisher_p_value(*table)
    assert type(ours) is float
    if exact > Fraction(1, 10**300):
        assert ours == pytest.approx(float(exact), rel=1e-9, abs=0)
    else:
        assert ours <= 1e-299


@given(tables(30))
def test_fisher_p_value_equals_scipy(table):
    p, n, P, N = table
    expected = stats.fisher_exact([[p, n], [P - p, N - n]], alternative="greater").pvalue
    assert fisher_p_value(*table) == pytest.approx(expected, rel=1e-9)


@given(tables(200))
def test_fisher_p_value_satisfies_identities(table):
    p, n, P, N = table
    ours = fisher_p_value(*table)
    assert 0 <= ours <= 1
    # Covering positives and not covering negatives have the same p-value.
    assert fisher_p_value(N - n, P - p, N, P) == pytest.approx(ours, rel=1e-10)
    if p < P:
        assert fisher_p_value(p + 1, n, P, N) <= ours * (1 + 1e-12)
    if p and n < N:  # together with the tail of fewer positives the probability is 1
        fewer = fisher_p_value(n + 1, p - 1, N, P)
        assert ours + fewer == pytest.approx(1, rel=1e-11)


@pytest.mark.parametrize("rows", [1e5, 1e6, 1e7])
@pytest.mark.parametrize("deviations", [-2.0, -0.5, 0.0, 0.5, 3.0])
def test_fisher_p_value_approaches_normal_distribution(rows, deviations):
    quarter = rows / 4
    sd = math.sqrt(quarter * quarter / rows)  # half of the rows drawn, half of them positive
    p = quarter + round(deviations * sd)
    value = fisher_p_value(p, 2 * quarter - p, 2 * quarter, 2 * quarter)
    expected = stats.norm.sf((p - 0.5 - quarter) / sd)
    assert value == pytest.approx(expected, rel=20 / sd)


def test_fisher_p_value_is_1_without_evidence():
    assert fisher_p_value(0, 0, 5, 5) == 1.0
    assert fisher_p_value(0, 3, 5, 5) == 1.0
    assert fisher_p_value(0, 3, 0, 5) == 1.0
    assert fisher_p_value(5, 0, 5, 0) == 1.0
    assert fisher_p_value(5, 5, 5, 5) == 1.0


def test_fisher_p_value_truncates_weights_to_whole_rows():
    assert fisher_p_value(3.9, 1.5, 6.7, 8.2) == fisher_p_value(3, 1, 6, 8)
    # slightly below 3 because of rounding
    one = float(np.cumsum([0.1] * 10)[-1])
    assert one < 1
    assert fisher_p_value(2 + one, 0, 3, 3) == fisher_p_value(3, 0, 3, 3)
    assert fisher_p_value(2.9999, 0, 3, 3) == fisher_p_value(2, 0, 3, 3)


def test_fisher_p_value_broadcasts():
    p, P = np.array([[0], [2], [5]]), np.array([5, 6, 7, 8])
    values = fisher_p_value(p, 1, P, 9)
    assert values.shape == (3, 4)
    for at in np.ndindex(values.shape):
        one = fisher_p_value(int(p[at[0], 0]), 1, int(P[at[1]]), 9)
        assert values[at] == pytest.approx(one, rel=1e-13)
    assert fisher_p_value([], [], [], []).tolist() == []


def test_fisher_p_value_is_equal_in_batches():
    generator = np.random.default_rng(0)
    P, N = generator.integers(1, 300, size=(2, 20_000))
    p, n = generator.integers(0, P + 1), generator.integers(0, N + 1)
    together = fisher_p_value(p, n, P, N)
    for part in np.array_split(np.arange(20_000), 40)[::13]:
        few = fisher_p_value(p[part], n[part], P[part], N[part])
        np.testing.assert_allclose(together[part], few, rtol=1e-13)


@pytest.mark.parametrize(
    ("counts", "error", "message"),
    [
        ((6, 0, 5, 5), ValueError, "p must not exceed P"),
        ((0, -1, 5, 5), ValueError, "n must be >= 0"),
        ((0, 0, 0, 0), ValueError, r"P \+ N must be above 0"),
        ((0.25, 0, 0.5, 0.5), ValueError, r"number of rows from 1 .*got 1\.0\. Scale the weights"),
        ((1, 0, 1e16, 5), ValueError, "number of rows from 1 to 9"),
        ((math.nan, 0, 5, 5), ValueError, "p must be .*got nan"),
        (("1", 0, 5, 5), TypeError, "p must be a number"),
        (([1, 2], 0, [5, 5, 5], 5), ValueError, "broadcast"),
    ],
)
def test_fisher_p_value_rejects_invalid_counts(counts, error, message):
    with pytest.raises(error, match=message):
        fisher_p_value(*counts)


# --- test of variance ----------------------------------------------------------------------------


def test_variance_p_value_equals_rulekit():
    cases = RULEKIT["chi_square_variance"]
    assert len(cases) == 6
    columns = [[c[key] for c in cases] for key in ("expected_sd", "sample_sd", "sample_size")]
    expected = [case["pvalue"] for case in cases]
    np.testing.assert_allclose(variance_p_value(*columns), expected, rtol=1e-6, atol=0)


@given(st.floats(0.1, 10), st.floats(0, 10), st.integers(2, 10_000))
def test_variance_p_value_equals_scipy(expected_sd, sample_sd, size):
    value = variance_p_value(expected_sd, sample_sd, size)
    statistic = (size - 1) * (sample_sd / expected_sd) ** 2
    assert type(value) is float
    assert value == pytest.approx(stats.chi2.cdf(statistic, df=size - 1), rel=1e-9, abs=1e-300)
    assert variance_p_value(expected_sd * 8, sample_sd * 8, size) == value  # in any unit


def test_variance_p_value_equals_hand_computed_values():
    # With one degree of freedom: the square of a normal deviate.
    assert variance_p_value(2.0, 1.0, 2) == pytest.approx(math.erf(0.5 / math.sqrt(2)))
    # With two: exponential.
    assert variance_p_value(1.0, 1.0, 3) == pytest.approx(1 - math.exp(-1))


def test_variance_p_value_of_equal_and_spread_labels():
    assert variance_p_value(1.0, 0.0, 5) == 0.0
    assert variance_p_value(1.0, 1e9, 5) == 1.0
    assert variance_p_value(1e-300, 1e300, 5) == 1.0
    assert variance_p_value(1e300, 1e-300, 5) == 0.0


@pytest.mark.parametrize(
    ("expected_sd", "sample_sd", "size"), [(2.0, 0.0, 1), (2.0, 0.0, 0), (0.0, 0.0, 7), (2, 1, 0.5)]
)
def test_variance_p_value_needs_variance(expected_sd, sample_sd, size):
    assert math.isnan(variance_p_value(expected_sd, sample_sd, size))
    # RuleKit reports 0 for one row.
    assert variance_p_value(expected_sd, sample_sd, size, undefined=0.0) == 0.0


def test_variance_p_value_broadcasts():
    values = variance_p_value(2.0, [[1.0], [2.0]], [1, 2, 12])
    assert values.shape == (2, 3)
    assert np.isnan(values[:, 0]).all()
    assert values[0, 2] == variance_p_value(2.0, 1.0, 12)


@pytest.mark.parametrize("name", ["expected_sd", "sample_sd", "sample_size"])
@pytest.mark.parametrize("bad", [-1.0, math.nan, math.inf])
def test_variance_p_value_rejects_invalid_deviations(name, bad):
    arguments = {"expected_sd": 2.0, "sample_sd": 1.0, "sample_size": 12} | {name: bad}
    with pytest.raises(ValueError, match=f"{name} must be >= 0 and finite, got {bad!r}"):
        variance_p_value(**arguments)
    with pytest.raises(TypeError, match=f"{name} must be a number"):
        variance_p_value(**(arguments | {name: "2"}))


def test_variance_p_value_rejects_invalid_undefined():
    with pytest.raises(TypeError, match="undefined must be a number"):
        variance_p_value(1, 1, 1, undefined=None)


# --- corrections ---------------------------------------------------------------------------------


def test_significance_averages_equal_those_of_rulekit():
    assert len(RULEKIT["significance"]) == 7
    for case in RULEKIT["significance"]:
        for key, correction in RULEKIT_NAMES.items():
            raw = case["pvalues"]
            adjusted = raw if correction is None else adjust_p_values(raw, correction)
            assert np.mean(adjusted) == pytest.approx(case[key]["avg_pvalue"], rel=1e-9)
            share = significant_fraction(raw, case["alpha"], correction)
            assert share == pytest.approx(case[key]["fraction_significant"], rel=1e-9)


def adjusted_slowly(values, correction):
    """Return adjusted p-values by the definitions of the procedures, in fractions."""
    ordered = sorted(values)
    total = len(values)
    result = []
    for value in values:
        if correction == "fdr_bh":
            later = [(k, p) for k, p in enumerate(ordered, 1) if p >= value]
            adjusted = min(p * total / k for k, p in later)
        else:
            earlier = [(k, p) for k, p in enumerate(ordered, 1) if p <= value]
            adjusted = max(p * (total + 1 - k) for k, p in earlier)
        result.append(min(adjusted, 1))
    return result


# Thousandths, so that ties and values equal to alpha occur.
thousandths = st.lists(st.integers(0, 1000), max_size=12)
low_thousandths = st.lists(st.integers(0, 60), max_size=12)


@given(st.one_of(thousandths, low_thousandths), st.sampled_from(["fdr_bh", "holm"]))
def test_adjust_p_values_equals_definitions(values, correction):
    exact = adjusted_slowly([Fraction(v, 1000) for v in values], correction)
    raw = [v / 1000 for v in values]
    assert adjust_p_values(raw, correction).tolist() == pytest.approx([float(v) for v in exact])
    share = significant_fraction(raw, 0.05, correction)
    if values:
        assert share == sum(v <= Fraction(5, 100) for v in exact) / len(values)
    else:
        assert math.isnan(share)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30))
def test_adjust_p_values_by_benjamini_hochberg_equals_scipy(values):
    expected = stats.false_discovery_control(values, method="bh")
    np.testing.assert_allclose(adjust_p_values(values), expected, rtol=1e-12)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30), st.randoms())
def test_adjust_p_values_ignores_order_and_never_lowers(values, random):
    shuffled = list(range(len(values)))
    random.shuffle(shuffled)
    for correction in CORRECTIONS:
        adjusted = adjust_p_values(values, correction)
        assert (adjusted >= np.array(values) * (1 - 1e-15)).all()
        second_result = adjust_p_values([values[i] for i in shuffled], correction)
        if not correction.startswith("rulekit"):  # it distinguishes equal p-values
            np.testing.assert_array_equal(second_result, adjusted[shuffled])
            assert adjusted.max() <= 1
        np.testing.assert_allclose(np.sort(second_result), np.sort(adjusted), rtol=1e-14)
    # RuleKit's procedure for the family-wise error is Holm's, except for values equal to alpha.
    holm = adjust_p_values(values, "holm")
    if not np.isclose(holm, 0.05, rtol=1e-9).any():
        assert significant_fraction(values, 0.05, "rulekit_fwer") == np.mean(holm < 0.05)
    assert significant_fraction(values, 0.05, "rulekit_fdr") <= significant_fraction(
        values, 0.05, "fdr_bh"
    )


def test_adjust_p_values_differs_from_rulekit_fdr():
    assert adjust_p_values(np.array([0, 1])).tolist() == [0.0, 1.0]  # whole numbers
    values = [0.001, 0.02, 0.03, 0.04, 0.6]
    assert significant_fraction(values, 0.05, "fdr_bh") == 0.8
    assert significant_fraction(values, 0.05, "rulekit_fdr") == 0.2
    assert significant_fraction([0.04] * 3, 0.05, "fdr_bh") == 1.0
    assert significant_fraction([0.04] * 3, 0.05, "rulekit_fdr") == 0.0
    assert adjust_p_values([0.9, 0.95, 1.0, 0.8], "rulekit_fdr").max() == pytest.approx(3.2)
    assert adjust_p_values([0.9, 0.95, 1.0, 0.8], "fdr_bh").max() == 1.0


def test_significant_fraction_ignores_rounding_at_alpha():
    values = [0.034] * 17 + [1.0] * 8  # adjusted to 0.034 * 25 / 17, which is 0.05
    assert adjust_p_values(values)[0] > 0.05
    assert significant_fraction(values, 0.05, "fdr_bh") == 17 / 25


def test_significant_fraction_excludes_alpha_without_correction():
    assert significant_fraction([0.05, 0.049, 0.5, 0.0]) == 0.5
    assert significant_fraction([0.05, 0.049, 0.5, 0.0], alpha=0.01) == 0.25


@pytest.mark.parametrize("correction", CORRECTIONS)
def test_adjust_p_values_ignores_untested_rules(correction):
    tested = [0.01, 0.04, 0.02]
    p_values = [math.nan, 0.01, 0.04, math.nan, 0.02]
    adjusted = adjust_p_values(p_values, correction)
    assert np.isnan(adjusted).tolist() == [True, False, False, True, False]
    assert adjusted[[1, 2, 4]].tolist() == adjust_p_values(tested, correction).tolist()
    for level in (0.015, 0.05):
        assert significant_fraction(p_values, level, correction) == significant_fraction(
            tested, level, correction
        )
    assert math.isnan(significant_fraction([math.nan], 0.05, correction))
    assert math.isnan(significant_fraction([], 0.05, correction))
    assert adjust_p_values([], correction).shape == (0,)


def test_adjust_p_values_returns_new_float_array():
    raw = np.array([0.3, math.nan])
    adjusted = adjust_p_values(raw)
    assert adjusted.dtype == np.float64
    adjusted[:] = 1
    assert raw[0] == 0.3
    assert math.isnan(raw[1])
    assert type(significant_fraction([0.01])) is float
    assert type(significant_fraction([])) is float


@pytest.mark.parametrize(
    ("values", "error", "message"),
    [
        ([0.5, 1.5], ValueError, r"p_values must be >= 0 and <= 1 and finite, got 1\.5 at posi"),
        ([-0.1], ValueError, "p_values must be >= 0"),
        ([math.nan, math.inf], ValueError, "p_values must be .*got inf at position 1"),
        (0.5, ValueError, r"one-dimensional, a number per rule, got shape \(\)"),
        ([[0.5]], ValueError, "one-dimensional"),
        (["0.5"], TypeError, "p_values must be a number"),
        ([None], TypeError, "p_values must be a number"),
        ([True], TypeError, "p_values must be a number"),
    ],
)
def test_adjust_p_values_rejects_invalid_p_values(values, error, message):
    with pytest.raises(error, match=message):
        adjust_p_values(values)
    with pytest.raises(error, match=message):
        significant_fraction(values)


def test_adjust_p_values_rejects_invalid_settings():
    with pytest.raises(ValueError, match=r"got 'fdr'\. Did you mean 'fdr_bh'"):
        adjust_p_values([0.5], "fdr")
    with pytest.raises(ValueError, match=r"correction must be one of .* got None"):
        adjust_p_values([0.5], None)
    with pytest.raises(ValueError, match="got 'bonferroni'"):
        significant_fraction([], correction="bonferroni")
    with pytest.raises(ValueError, match="correction must be one of"):
        adjust_p_values([0.5], ["holm"])
    for alpha in (0, -1, 1, 5, math.nan):
        with pytest.raises(ValueError, match="alpha must be"):
            significant_fraction([0.5], alpha)
    with pytest.raises(TypeError, match="alpha must be a number"):
        significant_fraction([0.5], "0.05")


def test_fisher_p_value_accepts_the_largest_exact_number_of_rows():
    assert fisher_p_value(0, 0, 2.0**53 - 1, 1) == 1.0
    with pytest.raises(ValueError, match=r"number of rows from 1 .*got 0\.5\. "):
        fisher_p_value(0, 0, [2.0**53 - 1, 0.25], [1, 0.25])
