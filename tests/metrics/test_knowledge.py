"""Oracles, bounds, monotonicity and limits of FiRe, Q_s and ICE."""

from __future__ import annotations

import math
import re
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from sklearn.datasets import load_iris
from sklearn.metrics import make_scorer
from sklearn.model_selection import GridSearchCV
from sklearn.tree import DecisionTreeClassifier

from skescore import scorers
from skescore.extractors import CARTExtractor
from skescore.metrics import (
    fire_score,
    ice_performance,
    ice_readability,
    ice_score,
    q_score,
    score_slopes,
)
from skescore.scorers import SCORE_SPECS

CEILING = 1 / (1 + math.exp(-5))  # the limit of both sigmoids of ICE

# --- oracles -----------------------------------------------------------------------------------

losses = st.floats(0, 1e6)
performances = st.floats(-1e3, 1)
shares = st.floats(0, 1)
weights = st.floats(1e-3, 1e3)
rule_counts = st.integers(1, 10_000)


def sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x)) if x > -700 else 0.0


@given(performances, rule_counts, shares, weights, weights)
def test_ice_score_equals_printed_formula(p, r, c, phi, rho):
    performance, readability = sigmoid(5 * (1 - phi * (1 - p))), sigmoid(5 - 0.3 * rho * r)
    tolerance = {"rel": 1e-9, "abs": 1e-300}
    assert ice_performance(p, phi=phi) == pytest.approx(performance, **tolerance)
    assert ice_readability(r, rho=rho) == pytest.approx(readability, **tolerance)
    assert ice_score(p, r, c, phi=phi, rho=rho) == pytest.approx(
        performance * readability * c, **tolerance
    )


@given(losses, rule_counts, shares)
def test_q_score_equals_printed_formula(loss, r, c):
    assert q_score(loss, r, c) == pytest.approx(loss * r * (2 - c), rel=1e-12)


decimals = st.decimals("0.001", "1000", places=3)


@given(losses, decimals.filter(lambda number: number >= 1), decimals)
@example(1.0, Decimal(21), Decimal("0.7"))
@example(1.0, Decimal(3), Decimal("0.1"))
@example(1.0, Decimal(7), Decimal(3))
@example(1.0, Decimal(1), Decimal(1000))
def test_fire_score_counts_steps_like_decimal_arithmetic(loss, r, psi):
    steps = math.ceil(Fraction(r) / Fraction(psi))
    expected = loss * steps * float(r) ** 0.05
    assert fire_score(loss, float(r), psi=float(psi)) == pytest.approx(expected, rel=1e-12)


def steps(n_rules, psi) -> float:
    return fire_score(1.0, n_rules, psi=psi) / n_rules**0.05


@pytest.mark.parametrize(
    ("n_rules", "psi", "expected"),
    [
        (21, 0.7, 30),  # 21 / 0.7 = 30.000000000000004
        (21, 0.1 * 7, 30),  # 0.1 * 7 = 0.7000000000000001
        (21, 0.7 + 1e-9, 30),
        (21, 0.7 - 1e-9, 31),  # a real difference, not rounding
        (3, 1 - 1e-9, 4),
        (1, 1e9, 1),  # almost 0 steps, but at least one
        (1, 1.7e308, 1),
        (10**12 + 1, 2, 500_000_000_001),  # a tolerance of 1e-9 would remove the half step
        (10**12 + 1, 0.5, 2 * 10**12 + 2),
        (21 * 10**9, 0.7, 30 * 10**9),
        (2**53, 1, 2**53),
    ],
)
def test_fire_score_counts_steps_next_to_whole_numbers(n_rules, psi, expected):
    assert steps(n_rules, psi) == pytest.approx(expected, rel=1e-14, abs=0.01)


@given(losses, rule_counts, shares, st.floats(0.1, 100))
def test_scores_of_scalars_are_python_floats(loss, r, c, weight):
    for score in (
        fire_score(loss, np.int64(r), psi=weight),
        q_score(np.float64(loss), r, c),
        ice_score(np.asarray(c), r, np.float32(0.5), phi=weight),
        ice_performance(c),
        ice_readability(Fraction(r, 2)),
    ):
        assert type(score) is float


def test_scores_broadcast_like_loop():
    generator = np.random.default_rng(0)
    loss = generator.uniform(0, 3, size=(4, 1, 1))
    performance = 1 - loss
    n_rules = np.array([1, 3, 8, 21, 50]).reshape(5, 1)
    share = generator.uniform(size=6)
    weight = generator.uniform(0.1, 3, size=(4, 5, 6))
    shape = (4, 5, 6)
    grid = list(np.ndindex(shape))
    p, q, r, c = (np.broadcast_to(a, shape) for a in (performance, loss, n_rules, share))
    for together, one_by_one in [
        (
            fire_score(loss, n_rules, psi=weight),
            [fire_score(q[i], r[i], psi=weight[i]) for i in grid],
        ),
        (q_score(loss, n_rules, share), [q_score(q[i], r[i], c[i]) for i in grid]),
        (
            ice_score(performance, n_rules, share, phi=weight, rho=weight),
            [ice_score(p[i], r[i], c[i], phi=weight[i], rho=weight[i]) for i in grid],
        ),
        (
            ice_performance(performance, phi=weight),
            [ice_performance(p[i], phi=weight[i]) for i in grid],
        ),
        (
            ice_readability(n_rules, rho=weight),
            [ice_readability(r[i], rho=weight[i]) for i in grid],
        ),
    ]:
        assert isinstance(together, np.ndarray)
        assert together.shape == shape
        np.testing.assert_allclose(together.ravel(), one_by_one, rtol=1e-14)


# --- bounds and monotonicity --------------------------------------------------------------------


@given(losses, rule_counts, shares, weights)
def test_fire_and_q_are_nonnegative_and_zero_without_error(loss, r, c, psi):
    assert fire_score(loss, r, psi=psi) >= 0
    assert q_score(loss, r, c) >= 0
    assert fire_score(0.0, r, psi=psi) == 0
    assert q_score(0.0, r, c) == 0


@given(performances, rule_counts, shares, weights, weights)
def test_ice_score_is_between_zero_and_ceiling(p, r, c, phi, rho):
    assert 0 <= ice_performance(p, phi=phi) <= CEILING
    assert 0 <= ice_readability(r, rho=rho) <= CEILING
    assert 0 <= ice_score(p, r, c, phi=phi, rho=rho) <= CEILING**2 < 1
    assert ice_score(p, r, 0.0, phi=phi, rho=rho) == 0  # equation 27


@given(losses, losses, rule_counts, weights)
def test_fire_and_q_increase_with_the_loss(first, second, r, psi):
    assume(first < second * (1 - 1e-9))
    assert fire_score(first, r, psi=psi) < fire_score(second, r, psi=psi)
    assert q_score(first, r, 0.5) < q_score(second, r, 0.5)


@given(st.floats(1e-9, 1e6), rule_counts, rule_counts, weights)
@example(1.0, 1, 2, 10.0)  # one step, but different scores
def test_fire_and_q_increase_with_the_rules(loss, fewer, more, psi):
    assume(fewer < more)
    assert fire_score(loss, fewer, psi=psi) < fire_score(loss, more, psi=psi)
    assert q_score(loss, fewer, 0.5) < q_score(loss, more, 0.5)


@given(losses, rule_counts, weights, weights)
def test_fire_never_increases_with_psi(loss, r, first, second):
    small, large = sorted([first, second])
    assert fire_score(loss, r, psi=large) <= fire_score(loss, r, psi=small)


@given(losses, rule_counts, shares, shares)
def test_q_never_increases_with_completeness(loss, r, first, second):
    small, large = sorted([first, second])
    assert q_score(loss, r, large) <= q_score(loss, r, small)


@given(
    st.tuples(performances, performances),
    st.tuples(rule_counts, rule_counts),
    st.tuples(shares, shares),
    st.tuples(weights, weights),
    st.tuples(weights, weights),
)
def test_ice_score_is_monotone_in_every_argument(p, r, c, phi, rho):
    """Better inputs never lower the score, neither together nor one at a time."""
    good = {
        "performance": max(p),
        "n_rules": min(r),
        "completeness": max(c),
        "phi": min(phi),
        "rho": min(rho),
    }
    bad = {
        "performance": min(p),
        "n_rules": max(r),
        "completeness": min(c),
        "phi": max(phi),
        "rho": max(rho),
    }
    for name in good:
        assert ice_score(**good) >= ice_score(**good | {name: bad[name]})
        assert ice_score(**bad) <= ice_score(**bad | {name: good[name]})


def test_ice_score_is_strictly_monotone():
    p, r, weight = np.linspace(-1, 1, 50), np.arange(1, 60), np.linspace(0.1, 2, 50)
    assert (np.diff(ice_performance(p)) > 0).all()
    assert (np.diff(ice_performance(0.5, phi=weight)) < 0).all()
    assert (np.diff(ice_readability(r)) < 0).all()
    assert (np.diff(ice_readability(5, rho=weight)) < 0).all()
    assert (np.diff(ice_score(0.9, 5, np.linspace(0, 1, 50))) > 0).all()


# --- limits --------------------------------------------------------------------------------------


def test_ice_performance_has_printed_limits():
    assert ice_performance(-1e308) == 0  # equation 7
    assert ice_performance(-np.inf) == 0
    assert ice_performance(0.999, phi=1e308) == 0  # equation 9


def test_ice_readability_has_printed_limits():
    assert ice_readability(1e308) == 0  # equation 16
    assert ice_readability(1, rho=1e308) == 0  # equation 18


@pytest.mark.parametrize("weight", [0.5, 1.0, 3.0])
def test_ice_limits_printed_as_one_equal_ceiling(weight):
    """Equations 8, 10, 17 and 19 print 1, but 1 / (1 + e^-5) follows from equations 4 and 6."""
    assert pytest.approx(0.9933, abs=5e-5) == CEILING
    assert ice_performance(1.0, phi=weight) == pytest.approx(CEILING, rel=1e-15)
    assert ice_performance(-3.0, phi=1e-300) == pytest.approx(CEILING, rel=1e-15)
    assert ice_readability(1e-300, rho=weight) == pytest.approx(CEILING, rel=1e-15)
    assert ice_readability(50, rho=1e-300) == pytest.approx(CEILING, rel=1e-15)
    assert ice_score(1.0, 1e-300, 1.0, phi=weight) == pytest.approx(CEILING**2, rel=1e-15)


def test_ice_score_of_flawless_complete_rule_is_0984():
    assert ice_score(1.0, 1, 1.0) == pytest.approx(0.984, abs=5e-4)


@given(weights)
def test_ice_parts_are_one_half_at_flex_points(weight):
    """Both sigmoids are one half at p = 1 - 1/phi and r = 5 / (0.3 rho)."""
    assert ice_performance(1 - 1 / weight, phi=weight) == pytest.approx(0.5, abs=1e-9)
    assert ice_readability(5 / (0.3 * weight), rho=weight) == pytest.approx(0.5, abs=1e-9)


# --- finite inputs give values without floating-point warnings ------------------------------------

any_loss = st.floats(0, allow_infinity=False)
any_rules = st.floats(1, allow_infinity=False)
any_weight = st.floats(0, exclude_min=True, allow_infinity=False)
any_performance = st.floats(max_value=1, allow_nan=False)


@given(any_loss, any_rules, shares, any_performance, any_weight, any_weight)
@example(0.0, 1e308, 1.0, 1.0, 1.7e308, 1.7e308)
@example(1e308, 1e308, 0.0, -1e308, 5e-324, 5e-324)
@example(5e-324, 1.0, 0.5, -np.inf, 5e-324, 5e-324)
def test_scores_accept_all_finite_input(loss, r, c, p, phi, rho):
    assume(math.isfinite(r / phi))
    with np.errstate(all="raise"):
        for shape in ((), (1,), (9,)):  # NumPy computes scalars and vectors in different code paths
            values = [np.full(shape, value) for value in (loss, r, c, p, phi, rho)]
            loss_, r_, c_, p_, phi_, rho_ = values
            assert not np.isnan(fire_score(loss_, r_, psi=phi_)).any()
            assert not np.isnan(q_score(loss_, r_, c_)).any()
            ice = np.asarray(ice_score(p_, r_, c_, phi=phi_, rho=rho_))
            assert ((ice >= 0) & (ice < 1)).all()


def test_scores_above_largest_float_are_infinite():
    assert fire_score(1e308, 100) == np.inf
    assert q_score([1e308], 100, 0.5).tolist() == [np.inf]


def test_ice_parts_reject_shapes_that_do_not_fit() -> None:
    with pytest.raises(ValueError, match=r"performance: \(2,\), phi: \(3,\)"):
        ice_performance([0.5, 0.6], phi=[1.0, 2.0, 3.0])
    assert ice_readability(10) == pytest.approx(1 / (1 + math.exp(-2)))


# --- slopes --------------------------------------------------------------------------------------


@given(st.floats(0, 10), st.floats(1.01, 300), st.floats(0.1, 20))
def test_score_slopes_of_fire_equal_equations_6_and_7(loss, size, psi):
    quotient = size / psi
    assume(abs(quotient - round(quotient)) > 1e-6)
    slopes = score_slopes("fire", loss, size, psi=psi)
    assert slopes["loss"] == pytest.approx(math.ceil(quotient) * size**0.05)
    assert slopes["n_rules"] == pytest.approx(0.05 * loss * math.ceil(quotient) / size**0.95)
    assert slopes["psi"] == 0


def test_score_slopes_of_fire_are_nan_where_steps_jump():
    slopes = score_slopes("fire", 0.5, 21, psi=0.7)  # 30 steps, but not in floats
    assert math.isnan(slopes["n_rules"])
    assert slopes["loss"] == pytest.approx(30 * 21**0.05)


@given(st.floats(-2, 1), st.floats(0.1, 60), st.floats(0, 1), st.floats(0.1, 9), st.floats(0.1, 9))
def test_score_slopes_of_ice_equal_its_paper(p, r, c, phi, rho):
    slopes = score_slopes("ice", p, r, c, phi=phi, rho=rho)
    e, f = 5 * (phi * (1 - p) - 1), 0.3 * rho * r - 5
    own, readability = sigmoid(-e), sigmoid(-f)
    of_p, of_r = own * sigmoid(e), readability * sigmoid(f)  # x / (1 + x)² of the equations
    expected = {
        "performance": 5 * phi * of_p * readability * c,  # equation 11
        "phi": -5 * (1 - p) * of_p * readability * c,  # equation 12
        "n_rules": -0.3 * rho * of_r * own * c,  # equation 20
        "rho": -0.3 * r * of_r * own * c,  # equation 21
        "completeness": own * readability,
    }
    assert slopes == pytest.approx(expected, rel=1e-9, abs=1e-300)


@pytest.mark.parametrize("name", ["ice", "fire", "q"])
def test_score_slopes_equal_differences(name):
    at = {"prediction": 0.3, "n_rules": 7.3, "completeness": 0.8}
    weights = dict.fromkeys(SCORE_SPECS[name].weight_names, 1.7)
    step = 1e-6

    def value(**changes):
        values = at | weights | changes
        parts = [values.pop(key) for key in ("prediction", "n_rules", "completeness")]
        return SCORE_SPECS[name].value(*parts, values)

    for argument, slope in score_slopes(name, *at.values(), **weights).items():
        key = "prediction" if argument in ("loss", "performance") else argument
        center = (at | weights)[key]
        difference = value(**{key: center + step}) - value(**{key: center - step})
        assert slope == pytest.approx(difference / (2 * step), rel=1e-6, abs=1e-8), argument


def test_score_slopes_reject_bad_arguments():
    with pytest.raises(TypeError, match="no weight 'rho'"):
        score_slopes("fire", 0.1, 3, rho=2)
    with pytest.raises(ValueError, match="performance must"):
        score_slopes("ice", 1.5, 3, 1.0)
    with pytest.raises(ValueError, match="score must be one of"):
        score_slopes("fir", 0.1, 3)


@pytest.mark.parametrize("score", [fire_score, ice_score, q_score])
def test_scores_name_the_scorer_for_make_scorer(score):
    """The scorer named in the message works where `make_scorer` cannot."""
    rows, labels = load_iris(return_X_y=True)
    extractor = CARTExtractor(DecisionTreeClassifier(random_state=0)).fit(rows, labels)
    with pytest.raises((TypeError, ValueError), match=r"GridSearchCV.*scoring=") as error:
        make_scorer(score)(extractor, rows, labels)
    written = re.search(r"scoring=skescore\.scorers\.(\w+)\(\)", str(error.value))[1]
    search = GridSearchCV(extractor, {"max_leaf_nodes": [3]}, scoring=getattr(scorers, written)())
    assert np.isfinite(search.fit(rows, labels).best_score_)
