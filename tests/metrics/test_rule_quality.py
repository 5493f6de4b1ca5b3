"""Rule measures: RuleKit's values, textbook formulas in decimals, identities, edge cases."""

from __future__ import annotations

import itertools
import json
import math
from decimal import Decimal, localcontext
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skescore.metrics import RULE_MEASURES, RuleMeasure, rule_quality

# Values of RuleKit 2.1.24; the file describes how they were made.
DATA = Path(__file__).parents[1] / "data"
RULEKIT = json.loads((DATA / "rulekit_measures.json").read_text(encoding="utf-8"))
RULES = json.loads((DATA / "rulekit_rules.json").read_text(encoding="utf-8"))["rule_sets"]
CASES = [case for kind in ("regular", "fractional", "edge") for case in RULEKIT[kind]]

# Counts for which a measure has neither a value nor a limit.
UNDEFINED = {
    "c1": lambda p, n, P, N: p + n == 0 or N == 0,
    "c2": lambda p, n, P, N: p + n == 0 or N == 0 or P == 0,
    "coleman": lambda p, n, P, N: p + n == 0 or N == 0,
    "correlation": lambda p, n, P, N: p + n in (0, P + N) or P == 0 or N == 0,
    "coverage": lambda p, n, P, N: P == 0,
    "f_bayesian_confirmation": lambda p, n, P, N: p + n == 0 or P == 0 or N == 0,
    "f_measure": lambda p, n, P, N: P == 0 and p + n == 0,
    "geo_rss": lambda p, n, P, N: P == 0 or N == 0,
    "kappa": lambda p, n, P, N: (N == 0 and p == P) or (P == 0 and n == 0),
    "lift": lambda p, n, P, N: p + n == 0 or P == 0,
    "mutual_support": lambda p, n, P, N: n == P == 0,
    "one_way_support": lambda p, n, P, N: p + n == 0,
    "pawlak_dependency_factor": lambda p, n, P, N: p + n == 0 or P == 0,
    "precision": lambda p, n, P, N: p + n == 0,
    "q2": lambda p, n, P, N: P == 0 or N == 0,
    "relative_risk": lambda p, n, P, N: p + n == 0,
    "ripper": lambda p, n, P, N: p + n == 0,
    "rss": lambda p, n, P, N: P == 0 or N == 0,
    "s_bayesian": lambda p, n, P, N: p + n in (0, P + N),
    "sensitivity": lambda p, n, P, N: P == 0,
    "specificity": lambda p, n, P, N: N == 0,
    "weighted_laplace": lambda p, n, P, N: P == 0,
    "yails": lambda p, n, P, N: p + n == 0 or P == 0,
}


def is_undefined(name, p, n, P, N):
    return name in UNDEFINED and UNDEFINED[name](p, n, P, N)


# --- RuleKit -------------------------------------------------------------------------------------


def test_rule_measures_are_those_of_rulekit_and_coleman():
    assert set(RULE_MEASURES) == {*RULEKIT["names"], "coleman"}
    assert len(RULE_MEASURES) == 40


@pytest.mark.parametrize("name", RULE_MEASURES)
def test_rule_quality_equals_finite_values_of_rulekit(name):
    compared = 0
    for case in CASES:
        if name == "coleman":
            expected = case["coleman"]
        else:
            expected = case["values"][RULEKIT["names"].index(name)]
        if isinstance(expected, float | int) and case["counts"] != [0, 0, 0, 0]:
            value = rule_quality(name, *case["counts"])
            assert value == pytest.approx(expected, rel=1e-9, abs=1e-12), case["counts"]
            compared += 1
    assert compared >= 60


@pytest.mark.parametrize("name", RULEKIT["names"])
def test_rule_quality_is_finite_where_rulekit_is_not(name):
    for case in RULEKIT["edge"]:
        expected = case["values"][RULEKIT["names"].index(name)]
        if isinstance(expected, str) and case["counts"] != [0, 0, 0, 0]:
            value = rule_quality(name, *case["counts"], undefined=-77.0)
            assert math.isfinite(value)
            assert (value == -77.0) == is_undefined(name, *case["counts"])


def test_rule_quality_equals_weights_of_rulekit():
    compared = 0
    for rule_set in RULES:
        name = rule_set["params"].get("voting_measure", "correlation").lower()
        for rule in rule_set["rules"]:
            counts = [rule[key] for key in "pnPN"]
            assert rule_quality(name, *counts) == pytest.approx(rule["weight"], rel=1e-9)
            compared += 1
    assert compared == 52


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("f_measure", 30 / 47),  # 5 * 30 / (4 * 50 + 35), where another package has 0.441
        ("logical_sufficiency", 3000 / 251),  # where another package has 30.4
        ("accuracy", 25.0),  # these are no shares of rows
        ("c2", Fraction(11, 14) * Fraction(80, 100)),
        ("laplace", Fraction(31, 37)),
        ("yails", Fraction(6, 7) * Fraction(5, 7) + Fraction(3, 5) * Fraction(2, 7)),
    ],
)
def test_rule_quality_equals_hand_computed_values(name, value):
    assert rule_quality(name, 30, 5, 50, 100) == pytest.approx(float(value), rel=1e-14)


def test_rule_quality_keeps_correlation_within_one():
    P, N = (a.ravel() / 10 for a in np.meshgrid(np.arange(1, 300), np.arange(1, 300)))
    assert (P * N / np.sqrt(P * N * P * N)).max() > 1  # because of rounding
    assert rule_quality("correlation", P, 0, P, N).max() == 1
    assert rule_quality("correlation", 0, N, P, N).min() == -1


def test_rule_quality_of_pure_rule_is_most_significant():
    expected = 2 * 50 * math.log(3)
    assert rule_quality("cn2_significance", 50, 0, 50, 100) == pytest.approx(expected)
    assert RULE_MEASURES["cn2_significance"].bounds(50, 100)[1] == pytest.approx(expected)


# --- textbook formulas, in decimals --------------------------------------------------------------


def log_of(x, quotient):
    """Return the product x ln(quotient), where 0 ln 0 = 0."""
    return x * quotient.ln() if x else Decimal(0)


def entropy(a, b):
    s = a + b
    bits = log_of(a, a / s) + log_of(b, b / s) if s else Decimal(0)
    return -bits / (s or 1) / Decimal(2).ln()


def textbook(p, n, P, N):
    """Return every measure by its textbook formula, except for measures with a division by 0."""
    c, T, one = p + n, P + N, Decimal(1)
    u = T - c

    def conditional():
        return (c * entropy(p, n) + u * entropy(P - p, N - n)) / T

    def significance():
        inside = log_of(p, p * T / (c * P)) if p else 0
        outside = log_of(n, n * T / (c * N)) if n else 0
        return 2 * (inside + outside)

    def log_lift(factor):
        return log_of(factor, (p / c) / (P / T)) if p else 0 * factor

    def coleman():
        return (p * N - n * P) / (N * c)

    def kappa():
        if c == 0 and P > 0:
            return 0
        agreed, chance = (p + N - n) / T, (P * c + N * u) / T**2
        return (agreed - chance) / (1 - chance)

    formulas = {
        "accuracy": lambda: p - n,
        "binary_entropy": lambda: 1 - conditional(),
        "c1": lambda: coleman() * (2 + kappa()) / 3,
        "c2": lambda: coleman() * (1 + p / P) / 2,
        "cfoil": lambda: log_lift(p) / Decimal(2).ln(),
        "cn2_significance": significance,
        "coleman": coleman,
        "correlation": lambda: (p * N - n * P) / (P * N * c * u).sqrt(),
        "coverage": lambda: p / P,
        "f_bayesian_confirmation": lambda: (p * N - n * P) / (p * N + n * P),
        "f_measure": lambda: 5 * p / (4 * P + c),
        "full_coverage": lambda: c / T,
        "geo_rss": lambda: (p / P * (1 - n / N)).sqrt(),
        "g_measure": lambda: p / (c + 2),
        "information_gain": lambda: (
            (entropy(P, N) - conditional()) * (-1 if n and p * N < n * P else 1)
        ),
        "j_measure": lambda: significance() / (2 * T),
        "kappa": kappa,
        "klosgen": lambda: c / T * (p / c - P / T) if c else 0,
        "laplace": lambda: (p + 1) / (c + 2),
        "lift": lambda: (p / c) / (P / T),
        "logical_sufficiency": lambda: p * N / (n * P + 1),
        "m_estimate": lambda: (p + 2 * P / T) / (c + 2),
        "mutual_support": lambda: p / (n + P),
        "novelty": lambda: p / T - P * c / T**2,
        "odds_ratio": lambda: p * (N - n) / (n * (P - p) + 1),
        "one_way_support": lambda: log_lift(p / c),
        "pawlak_dependency_factor": lambda: (p / c - P / T) / (p / c + P / T),
        "q2": lambda: (p / P - n / N) * (1 - n / N),
        "precision": lambda: p / c,
        "relative_risk": lambda: p / c * u / (P - p + 1),
        "ripper": lambda: (p - n) / c,
        "rule_interest": lambda: (p * N - n * P) / T,
        "rss": lambda: p / P - n / N,
        "s_bayesian": lambda: p / c - (P - p) / u,
        "sensitivity": lambda: p / P,
        "specificity": lambda: (N - n) / N,
        "two_way_support": lambda: log_lift(p / T),
        "weighted_laplace": lambda: (p + 1) * T / ((c + 2) * P),
        "weighted_relative_accuracy": lambda: c / T * (p / c - P / T) if c else 0,
        "yails": lambda: (one / 2 + p / c / 4) * p / c + (one / 2 - p / c / 4) * p / P,
    }
    values = {}
    for name, formula in formulas.items():
        if not is_undefined(name, p, n, P, N):
            values[name] = float(formula())
    return values


def in_long_arithmetic(p, n, P, N):
    with localcontext(prec=80):
        return textbook(*map(Decimal, (p, n, P, N)))


def tables(most):
    """Return all tables of counts with up to `most` positives and negatives, including 0."""
    for P, N in itertools.product(range(most + 1), repeat=2):
        if P + N:
            yield from ((p, n, P, N) for p in range(P + 1) for n in range(N + 1))


GRID = np.array(list(tables(4)), dtype=float)


def test_rule_quality_equals_textbook_for_small_tables():
    columns = GRID.T
    ours = {name: rule_quality(name, *columns) for name in RULE_MEASURES}
    for row, counts in enumerate(GRID.astype(int).tolist()):
        expected = in_long_arithmetic(*counts)
        for name in RULE_MEASURES:
            value = ours[name][row]
            if name in expected:
                assert value == pytest.approx(expected[name], rel=1e-13, abs=1e-15), (name, counts)
            else:
                assert math.isnan(value), (name, counts)


@st.composite
def count_tables(draw, numbers):
    P, N = draw(numbers), draw(numbers)
    p = draw(st.one_of(st.just(0), st.just(P), numbers.map(lambda x: min(x, P))))
    n = draw(st.one_of(st.just(0), st.just(N), numbers.map(lambda x: min(x, N))))
    return p, n, P, N


huge = st.one_of(st.integers(1, 10**7), st.integers(10**7 - 1000, 10**7), st.integers(1, 9))


@given(count_tables(huge))
def test_rule_quality_equals_textbook_for_huge_tables(counts):
    for name, expected in in_long_arithmetic(*counts).items():
        value = rule_quality(name, *counts)
        assert value == pytest.approx(expected, rel=1e-11, abs=1e-15), name


def test_rule_quality_is_exact_close_to_chance():
    big = 10**7
    counts = (5_000_001, 5_000_000, big, big + 1)
    expected = in_long_arithmetic(*counts)
    for name in ("correlation", "cn2_significance", "information_gain", "cfoil", "q2", "kappa"):
        assert 0 < expected[name] < 2
        assert rule_quality(name, *counts) == pytest.approx(expected[name], rel=1e-11, abs=0)


@given(st.integers(1, 5000), st.integers(1, 5000), st.integers(1, 5000), st.integers(0, 5000))
def test_rule_quality_of_chance_is_exactly_zero(positives, negatives, share, rest):
    # Both classes are covered in the same ratio share : share + rest.
    whole = share + rest
    counts = positives * share, negatives * share, positives * whole, negatives * whole
    for name in (
        "coleman",
        "c1",
        "c2",
        "kappa",
        "rss",
        "q2",
        "novelty",
        "rule_interest",
        "klosgen",
        "f_bayesian_confirmation",
        "pawlak_dependency_factor",
        "cfoil",
        "cn2_significance",
        "j_measure",
        "information_gain",
        "one_way_support",
        "two_way_support",
    ):
        assert rule_quality(name, *counts) == 0, name
    for name in ("correlation", "s_bayesian"):
        assert rule_quality(name, *counts, undefined=0.0) == 0
    assert rule_quality("lift", *counts) == 1


def test_rule_quality_is_continuous_at_singularities():
    """All measures are continuous from every direction where they are defined."""
    generator = np.random.default_rng(0)
    p, n, P, N = GRID.T
    exact = {name: rule_quality(name, *GRID.T) for name in RULE_MEASURES}
    for _ in range(5):
        a, b, c, d = generator.uniform(0.1, 1, size=(4, len(GRID))) * 1e-11
        for name in RULE_MEASURES:
            near = rule_quality(name, p + a, n + b, P + a + c, N + b + d)
            defined = ~np.isnan(exact[name])
            np.testing.assert_allclose(
                near[defined], exact[name][defined], rtol=0, atol=2e-5, err_msg=name
            )


# --- identities ----------------------------------------------------------------------------------

positive = st.floats(1e-3, 1e6)
share = st.one_of(st.floats(1e-6, 1), st.sampled_from([0.0, 1.0]))


@given(positive, positive, share, share)
def test_rule_quality_satisfies_identities(P, N, sensitivity, fallout):
    counts = sensitivity * P, fallout * N, P, N
    p, n = counts[:2]
    T = P + N

    def q(name, **parameters):
        return rule_quality(name, *counts, **parameters)

    def same(one, other):
        # An undefined part makes both sides undefined.
        assert one == pytest.approx(other, rel=1e-9, abs=1e-12, nan_ok=True)

    for other in ("klosgen", "weighted_relative_accuracy"):
        same(q(other), q("novelty"))
    same(q("rule_interest") / T, q("novelty"))
    same(q("coverage"), q("sensitivity"))
    same(q("rss"), q("sensitivity") + q("specificity") - 1)
    same(q("j_measure"), q("cn2_significance") / (2 * T))
    if p + n > 0:
        same(q("two_way_support"), q("full_coverage") * q("one_way_support"))
    same(q("cfoil") * math.log(2), T * q("two_way_support"))
    prior_entropy = rule_quality("information_gain", P, 0, P, N)  # the perfect rule
    same(q("binary_entropy"), 1 - prior_entropy + abs(q("information_gain")))
    same(q("c1"), q("coleman") * (2 + q("kappa")) / 3)
    same(q("c2"), q("coleman") * (1 + q("coverage")) / 2)
    same(q("weighted_laplace"), q("laplace") / (P / T))
    same(q("lift"), q("precision") / (P / T))
    same(q("pawlak_dependency_factor"), (q("lift") - 1) / (q("lift") + 1))
    same(q("ripper"), 2 * q("precision") - 1)
    same(q("correlation") ** 2, q("rss") * q("s_bayesian"))
    # Parameters turn one measure into another.
    for other in (q("m_estimate", m=0), q("g_measure", g=0), q("f_measure", beta=0)):
        same(other, q("precision"))
    same(q("klosgen", omega=0), q("precision") - P / T)


@given(positive, positive, share, share)
def test_rule_quality_is_antisymmetric_in_classes(P, N, sensitivity, fallout):
    """Swapping the classes changes the sign; symmetric measures keep their value."""
    one, other = (
        (sensitivity * P, fallout * N, P, N),
        (fallout * N, sensitivity * P, N, P),
    )
    for name in ("correlation", "s_bayesian", "rss", "novelty", "information_gain"):
        first, second = rule_quality(name, *one), rule_quality(name, *other)
        assert first == pytest.approx(-second, rel=1e-9, abs=1e-12, nan_ok=True), name
    for name, measure in RULE_MEASURES.items():
        if measure.symmetric:
            assert rule_quality(name, *one) == pytest.approx(
                rule_quality(name, *other), rel=1e-9, abs=1e-12
            )


# --- the registry --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", RULE_MEASURES)
def test_rule_measures_have_complete_entries(name):
    measure = RULE_MEASURES[name]
    assert measure.name == name
    assert measure.formula
    assert measure.source
    assert measure.range[0] in "[("
    assert measure.range[-1] in "])"
    assert measure.greater_is_better
    assert all(type(default) is float for default in measure.parameters.values())


def test_rule_measures_state_defaults_and_symmetry():
    assert {name: dict(m.parameters) for name, m in RULE_MEASURES.items() if m.parameters} == {
        "f_measure": {"beta": 2.0},
        "g_measure": {"g": 2.0},
        "klosgen": {"omega": 1.0},
        "logical_sufficiency": {"smoothing": 1.0},
        "m_estimate": {"m": 2.0},
        "odds_ratio": {"smoothing": 1.0},
        "relative_risk": {"smoothing": 1.0},
    }
    symmetric = {name for name, measure in RULE_MEASURES.items() if measure.symmetric}
    assert symmetric == {"binary_entropy", "cn2_significance", "j_measure"}


def test_rule_measures_are_read_only():
    with pytest.raises(TypeError):
        RULE_MEASURES["mine"] = RULE_MEASURES["precision"]  # type: ignore[index]


@pytest.mark.parametrize("name", RULE_MEASURES)
@pytest.mark.parametrize(("P", "N"), [(3, 8), (6, 4), (1, 1), (20, 2)])
def test_rule_measures_keep_their_range_and_reach_closed_ends(name, P, N):
    measure = RULE_MEASURES[name]
    p, n = (a.ravel()[1:] for a in np.meshgrid(np.arange(P + 1), np.arange(N + 1)))
    values = rule_quality(name, p, n, P, N)
    values = values[~np.isnan(values)]
    low, high = measure.bounds(P, N)
    assert type(low) is type(high) is float
    assert low - 1e-12 <= values.min()
    assert values.max() <= high + 1e-12
    # These bounds need a rule without rows, or one that covers exactly a half or a third of them.
    exempt = {"full_coverage", "one_way_support"} | ({"q2"} if N % 2 else set())
    if measure.range[0] == "[" and name not in exempt:
        assert values.min() == pytest.approx(low, rel=1e-12, abs=1e-12)
    if measure.range[-1] == "]":
        assert values.max() == pytest.approx(high, rel=1e-12, abs=1e-12)
    if not any(letter in measure.range for letter in "PNT"):
        assert measure.range == f"[{'-1/4' if low == -0.25 else int(low)}, {int(high)}]"


@given(positive, positive, share, share, st.one_of(st.just(0.0), st.floats(0.01, 100)))
def test_rule_measures_bounds_hold_for_any_parameter(P, N, sensitivity, fallout, value):
    P, N = 1 + P, 1 + N
    for name, measure in RULE_MEASURES.items():
        parameters = dict.fromkeys(measure.parameters, value)
        quality = rule_quality(name, sensitivity * P, fallout * N, P, N, **parameters)
        low, high = measure.bounds(P, N, **parameters)
        covered = sensitivity + fallout > 0
        if not math.isnan(quality) and covered:
            assert low - 1e-9 * abs(low) - 1e-12 <= quality <= high + 1e-9 * abs(high) + 1e-12, name


def test_rule_measures_bounds_accept_arrays():
    low, high = RULE_MEASURES["coleman"].bounds([1, 2], 4)
    assert (low.tolist(), high.tolist()) == ([-0.25, -0.5], [1.0, 1.0])
    low, high = RULE_MEASURES["g_measure"].bounds(8, 4, g=[0, 2])
    assert (low.tolist(), high.tolist()) == ([0.0, 0.0], [1.0, 0.8])
    assert RULE_MEASURES["odds_ratio"].bounds(3, 4, smoothing=0) == (0.0, math.inf)
    with pytest.raises(ValueError, match=r"P must be > 0 .*got 0\.0"):
        RULE_MEASURES["lift"].bounds(0, 3)
    with pytest.raises(TypeError, match="no parameter 'beta'"):
        RULE_MEASURES["lift"].bounds(1, 3, beta=1)


def test_rule_quality_accepts_custom_measures():
    jaccard = RuleMeasure(
        "jaccard",
        lambda counts: counts.p / (counts.P + counts.n),
        "p / (P + n)",
        "[0, 1]",
        lambda P, N: (0.0, 1.0),
    )
    assert rule_quality(jaccard, 3, 1, 5, 5) == rule_quality("mutual_support", 3, 1, 5, 5) == 0.5


# --- parameters ----------------------------------------------------------------------------------


def test_rule_quality_accepts_parameters():
    counts = 30, 10, 50, 100
    assert rule_quality("f_measure", *counts, beta=1) == pytest.approx(60 / 90)
    assert rule_quality("m_estimate", *counts, m=[0, 20]).tolist() == pytest.approx(
        [30 / 40, (30 + 20 / 3) / 60]
    )
    assert rule_quality("g_measure", *counts, g=20) == pytest.approx(30 / 60)
    assert rule_quality("klosgen", *counts, omega=0.5) == pytest.approx(
        math.sqrt(40 / 150) * (3 / 4 - 1 / 3)
    )
    assert rule_quality("odds_ratio", *counts, smoothing=0) == pytest.approx(30 * 90 / (10 * 20))
    assert rule_quality("logical_sufficiency", *counts, smoothing=0) == pytest.approx(6.0)
    assert rule_quality("relative_risk", *counts, smoothing=0) == pytest.approx(0.75 * 110 / 20)


@pytest.mark.parametrize(
    ("name", "parameters", "undefined_at"),
    [
        ("logical_sufficiency", {"smoothing": 0}, lambda p, n, P, N: n * P == 0),
        ("odds_ratio", {"smoothing": 0}, lambda p, n, P, N: n * (P - p) == 0),
        ("relative_risk", {"smoothing": 0}, lambda p, n, P, N: p + n == 0 or p == P),
        ("m_estimate", {"m": 0}, lambda p, n, P, N: p + n == 0),
        ("g_measure", {"g": 0}, lambda p, n, P, N: p + n == 0),
        ("f_measure", {"beta": 0}, lambda p, n, P, N: p + n == 0),
        ("klosgen", {"omega": 0}, lambda p, n, P, N: p + n == 0),
        ("klosgen", {"omega": 0.5}, lambda p, n, P, N: False),
    ],
)
def test_rule_quality_is_nan_for_some_parameters(name, parameters, undefined_at):
    values = rule_quality(name, *GRID.T, **parameters)
    assert np.isnan(values).tolist() == [undefined_at(*counts) for counts in GRID.tolist()]
    assert np.isfinite(rule_quality(name, *GRID.T, undefined=0.0, **parameters)).all()


# --- arguments -----------------------------------------------------------------------------------


@pytest.mark.parametrize("undefined", [0.0, -1, math.inf, -math.inf, np.float32(0.5)])
def test_rule_quality_returns_undefined_value(undefined):
    value = rule_quality("precision", 0, 0, 1, 1, undefined=undefined)
    assert type(value) is float
    assert value == undefined
    assert rule_quality("precision", 1, 0, 1, 1, undefined=undefined) == 1.0


@pytest.mark.parametrize("undefined", [None, "nan", True, [0.0]])
def test_rule_quality_rejects_undefined_of_other_types(undefined):
    with pytest.raises(TypeError, match=r"undefined must be a number, got .* NaN is accepted"):
        rule_quality("precision", 0, 0, 1, 1, undefined=undefined)


@pytest.mark.parametrize("name", RULE_MEASURES)
def test_rule_quality_broadcasts_like_loop(name):
    generator = np.random.default_rng(1)
    P, N = generator.integers(1, 40, size=(3, 1)), generator.integers(1, 40, size=4)
    p, n = np.zeros((2, 1, 1)), generator.integers(0, N)
    p[1] = 1
    together = rule_quality(name, p, n, P, N)
    assert together.shape == (2, 3, 4)
    assert together.flags.writeable
    shaped = [np.broadcast_to(a, together.shape) for a in (p, n, P, N)]
    for at in np.ndindex(together.shape):
        one = rule_quality(name, *(float(a[at]) for a in shaped))
        assert type(one) is float
        assert one == pytest.approx(together[at], rel=1e-14, abs=1e-16, nan_ok=True)


@pytest.mark.parametrize("container", [list, tuple, np.array, pd.Series, lambda v: np.uint8(v)])
def test_rule_quality_accepts_all_containers(container):
    values = rule_quality("precision", container([1, 2]), container([1, 0]), 3, 3)
    assert isinstance(values, np.ndarray)
    assert values.tolist() == [0.5, 1.0]
    assert rule_quality("lift", [], [], [], []).tolist() == []
    assert rule_quality("correlation", [], [], 3, 3).shape == (0,)


def test_rule_quality_does_not_change_its_arguments():
    p = np.array([1.0, 2.0])
    values = rule_quality("accuracy", p, 0, 3, 3)
    values += 1
    assert p.tolist() == [1.0, 2.0]


@pytest.mark.parametrize(
    ("counts", "message"),
    [
        ((-1, 0, 5, 5), r"p must be >= 0 and finite, got -1\.0"),
        ((0, -1e-9, 5, 5), "n must be >= 0"),
        ((0, 0, -5, 5), "P must be >= 0"),
        ((0, 0, 5, math.inf), "N must be >= 0 and finite, got inf"),
        ((math.nan, 0, 5, 5), "p must be >= 0 and finite, got nan"),
        ((6, 0, 5, 5), r"p must not exceed P, got p=6\.0 and P=5\.0\."),
        ((1, [0, 6], 5, 5), r"n must not exceed N, got n=6\.0 and N=5\.0 at position 1"),
        ((0, 0, 0, 0), r"P \+ N must be above 0"),
        (([[0], [0]], 0, [[1], [0]], 0), r"P \+ N must be above 0.*at position \(1, 0\)"),
        (([1, 2], 0, [5, 5, 5], 5), "must be broadcastable"),
    ],
)
@pytest.mark.parametrize("name", ["accuracy", "correlation", "binary_entropy"])
def test_rule_quality_rejects_impossible_counts(name, counts, message):
    with pytest.raises(ValueError, match=message):
        rule_quality(name, *counts)


@pytest.mark.parametrize("bad", ["3", True, None, 1j])
def test_rule_quality_rejects_counts_of_other_types(bad):
    with pytest.raises(TypeError, match="n must be a number"):
        rule_quality("accuracy", 1, bad, 5, 5)


@pytest.mark.parametrize("name", ["C3", "c3", "", None, 3, ["c2"]])
def test_rule_quality_rejects_unknown_measures(name):
    with pytest.raises(ValueError, match=r"There is no measure of rules .*Known: accuracy, "):
        rule_quality(name, 1, 0, 5, 5)


def test_rule_quality_suggests_close_names():
    with pytest.raises(ValueError, match="Did you mean 'correlation'"):
        rule_quality("Corelation", 1, 0, 5, 5)
    with pytest.raises(TypeError, match=r"'f_measure' has no parameter 'betta'. Did you mean 'b"):
        rule_quality("f_measure", 1, 0, 5, 5, betta=1)
    with pytest.raises(TypeError, match=r"'c2' has no parameter 'beta'. Known: none"):
        rule_quality("c2", 1, 0, 5, 5, beta=1)


@pytest.mark.parametrize("beta", [-1, math.nan, math.inf])
def test_rule_quality_rejects_invalid_parameters(beta):
    with pytest.raises(ValueError, match="beta must be"):
        rule_quality("f_measure", 1, 0, 5, 5, beta=beta)


@given(count_tables(st.floats(1e-9, 1e9)))
def test_rule_quality_survives_overflow_of_sums(counts):
    for name in RULE_MEASURES:
        value = rule_quality(name, *counts)
        assert not math.isinf(value), name
        assert math.isnan(value) == is_undefined(name, *map(Fraction, counts)), name


@pytest.mark.parametrize("name", ["c1", "cfoil", "one_way_support", "two_way_support"])
def test_rule_measures_lower_limits_are_approached(name):
    P, N = 6.0, 6e6
    p, n = np.meshgrid(np.linspace(0, P, 2001), [0.0, 0.9 * N, N])
    with np.errstate(divide="ignore", invalid="ignore"):
        values = rule_quality(name, p, n, P, N)
    low, _ = RULE_MEASURES[name].limits(P, N)
    assert np.nanmin(values) == pytest.approx(low, rel=0.01)
    assert np.nanmin(values) >= low - 1e-12
