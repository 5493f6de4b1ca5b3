"""Volumes and scores at the limits of floats, compared with exact rational arithmetic."""

from __future__ import annotations

import itertools
import math
import sys
from decimal import Decimal, localcontext
from fractions import Fraction

import pytest
from attempts import pick

from skescore.metrics import (
    adjust_p_values,
    fire_score,
    fisher_p_value,
    ice_score,
    prediction_loss,
    prediction_performance,
    q_score,
    rule_quality,
    volume_completeness,
)
from skescore.rules import Domain, Interval, Missing, Rule, RuleSet

INF, LARGEST = math.inf, sys.float_info.max
SCALES = [
    (0.0, 1.0),
    (-3.0, 5.0),
    (0.1, 0.3),
    (-1e-300, 1e-300),
    (1e15, 1e15 + 8),
    (-1e200, 1e200),
    (-LARGEST, LARGEST),
    (2.0, 2.0),
    (0.0, 5e-324),
    (-LARGEST, 0.0),
    (0, 2e-308),
]


# --- volumes ----------------------------------------------------------------------------------


def side(rng, feature, low, high):
    """Return a condition on one feature at the ends of the domain, next to them or beyond."""
    if rng.random() < 0.1:
        return Missing(feature, bool(rng.integers(2)))
    inside = [
        low / 2 + high / 2,
        low,
        high,
        low + (high / 8 - low / 8),
        high - (high / 4 - low / 4),
    ]
    pool = [*inside, 0.0, math.nextafter(low, -INF), math.nextafter(high, INF)]
    first, last = sorted([pick(rng, pool), pick(rng, pool)])
    shape = rng.integers(5)
    first, last = (-INF if shape == 0 else first), (INF if shape == 1 else last)
    if first == last and math.isinf(first):
        first, last = -LARGEST, LARGEST
    closed = (rng.random(2) < 0.5) if first < last else (True, True)
    return Interval(feature, first, last, *closed, missing=rng.random() < 0.3)


def measured(ruleset):
    """Return the share of the domain that rules cover, cell by cell in fractions."""
    domain = ruleset.domain
    axes = []
    for j, (low, high, gone) in enumerate(
        zip(domain.lower, domain.upper, domain.missing, strict=True)
    ):
        gone, span = Fraction(gone), Fraction(high) - Fraction(low)
        ends = {Fraction(low), Fraction(high)}
        for rule in ruleset:
            for c in rule.conditions:
                if isinstance(c, Interval) and c.feature == j:
                    ends |= {Fraction(min(max(b, low), high)) for b in (c.lower, c.upper)}
        cuts = sorted(ends)
        cells = [(a, b, (1 - gone) * (b - a) / span) for a, b in itertools.pairwise(cuts)]
        if not span:
            cells = [(cuts[0], cuts[0], 1 - gone)]
        axes.append([*cells, (None, None, gone)] if gone else cells)

    def inside(rule, cell):
        for c in rule.conditions:
            low, high, _ = cell[c.feature]
            if isinstance(c, Missing):
                if (low is None) == c.negated:
                    return False
            elif low is None:
                if not c.missing:
                    return False
            elif not (c.lower <= low and high <= c.upper):
                return False
        return True

    return sum(
        math.prod((part for _, _, part in cell), start=Fraction(1))
        for cell in itertools.product(*axes)
        if any(inside(rule, cell) for rule in ruleset)
    )


def check_volume(rng):
    n = int(rng.integers(1, 4))
    scales = [pick(rng, SCALES) for _ in range(n)]
    rules = []
    for _ in range(int(rng.integers(0, 5))):
        used = rng.permutation(n)[: rng.integers(0, n + 1)].tolist()
        rules.append(Rule([side(rng, j, *scales[j]) for j in used], "a"))
    missing = [pick(rng, [0.0, 0.0, 0.25, 0.1, 1.0]) for _ in range(n)]
    ruleset = RuleSet(
        rules,
        [f"x{j}" for j in range(n)],
        task="classification",
        classes=["a"],
        domain=Domain([s[0] for s in scales], [s[1] for s in scales], (), missing),
    )
    result, true = volume_completeness(ruleset), float(measured(ruleset))
    assert result.exact
    assert math.isclose(result.value, true, rel_tol=1e-9, abs_tol=1e-12), (
        str(ruleset),
        ruleset.domain,
        result,
        true,
    )


def test_volumes_equal_fractions(attack):
    attack(check_volume, 80)


# --- scores -----------------------------------------------------------------------------------


def exact(value):
    return Decimal(value) if isinstance(value, float | int) else value


def check_scores(rng):
    """Compare FiRe, Q and ICE with 60 digits, and check their limits."""
    loss = pick(rng, [0.0, 5e-324, 1e-300, 0.1, 0.5, 1.0, 17.3, 1e300, float(rng.random())])
    rules = pick(rng, [1, 2, 3, 7, 16, 21, 1000, 10**6, 2.5, float(1 + 40 * rng.random())])
    share = pick(rng, [0.0, 5e-324, 0.1, 0.5, 1 - 2**-53, 1.0, float(rng.random())])
    performance = pick(rng, [-INF, -LARGEST, -1e3, -1.0, 0.0, 0.5, 0.9, 1.0, 1 - 2**-53])
    phi, rho = (pick(rng, [5e-324, 0.1, 1.0, 2.0, 7.5, 1e300]) for _ in range(2))
    psi = pick(rng, [0.1, 0.3, 0.7, 1.0, 2.0, 6.0, 1e9])
    with localcontext() as context:
        context.prec, context.Emin, context.Emax = 60, -(10**9), 10**9
        power = Decimal(rules) ** Decimal("0.05")
        # Parameters mean their decimal text: psi=0.7 is seven tenths.
        quotient = Decimal(str(rules)) / Decimal(str(psi))
        steps = max(int(quotient.to_integral_value(rounding="ROUND_CEILING")), 1)
        expected = {
            "fire": Decimal(loss) * steps * power,
            "q": Decimal(loss) * Decimal(rules) * (2 - Decimal(share)),
        }

        def sigmoid(exponent):
            return 1 / (1 + min(exponent, Decimal(10) ** 6).exp())

        part = (
            Decimal(0)
            if performance == -INF
            else sigmoid(5 * (Decimal(phi) * (1 - Decimal(performance)) - 1))
        )
        readable = sigmoid(Decimal("0.3") * Decimal(rho) * Decimal(rules) - 5)
        expected["ice"] = part * readable * Decimal(share)
    results = {
        "fire": fire_score(loss, rules, psi=psi),
        "q": q_score(loss, rules, share),
        "ice": ice_score(performance, rules, share, phi=phi, rho=rho),
    }
    for name, value in results.items():
        true = float(expected[name]) if expected[name] < Decimal(LARGEST) else INF
        assert type(value) is float
        # Differences below 1e-300 do not decide between two sets of rules.
        assert math.isclose(value, true, rel_tol=1e-11, abs_tol=1e-300), (
            name,
            value,
            true,
            loss,
            rules,
            share,
            performance,
            phi,
            rho,
            psi,
        )


def test_scores_equal_60_digits(attack):
    attack(check_scores, 150)


def check_performance(rng):
    """Compare shares of rows, also with weights of 0, uncovered rows and labels of any kind."""
    n = int(rng.integers(1, 9))
    pool = pick(rng, [["a", "b", ""], [0, 1, 2], [0, 2**53 + 1, 2**53], [0.5, -0.0, 1e300]])
    truth, predictions = ([pick(rng, pool) for _ in range(n)] for _ in range(2))
    weights = [pick(rng, [0, 1, 1, 2, 0.25, 1e-300]) for _ in range(n)]
    weights = weights if rng.random() < 0.5 and any(weights) else [1] * n
    covered = [bool(rng.random() < 0.8) for _ in range(n)]
    how = pick(rng, ["ignore", "penalize"])
    options = {
        "task": "classification",
        "covered": covered,
        "uncovered": how,
        "sample_weight": weights,
    }
    retained = [i for i in range(n) if weights[i] and (covered[i] or how == "penalize")]
    total = sum(Fraction(weights[i]) for i in retained)
    right = {i for i in retained if covered[i] and truth[i] == predictions[i]}
    performance = prediction_performance(truth, predictions, metric="accuracy", **options)
    if not retained:
        assert performance != performance
        return
    share = sum(Fraction(weights[i]) for i in right) / total
    assert math.isclose(performance, share, rel_tol=1e-12), (
        truth,
        predictions,
        weights,
        covered,
        how,
    )
    f1 = Fraction(0)
    for label in set(truth) | set(predictions):
        actual = sum(Fraction(weights[i]) for i in retained if truth[i] == label)
        predicted = sum(
            Fraction(weights[i]) for i in retained if covered[i] and predictions[i] == label
        )
        hits = sum(Fraction(weights[i]) for i in right if truth[i] == label)
        f1 += 2 * hits / (actual + predicted) * actual / total if actual else 0
    performance = prediction_loss(truth, predictions, metric="f1_weighted", **options)
    assert math.isclose(performance, 1 - f1, rel_tol=1e-12, abs_tol=1e-12), (
        truth,
        predictions,
        weights,
        how,
    )


def test_shares_of_rows_equal_fractions(attack):
    attack(check_performance, 150)


def check_counts(rng):
    """Compare measures of one rule and its p-value for counts of up to a thousand rows."""
    P, N = (int(rng.integers(1, pick(rng, [3, 20, 500]))) for _ in range(2))
    p, n = int(rng.integers(0, P + 1)), int(rng.integers(0, N + 1))
    below = math.comb(P + N, p + n)
    tail = sum(math.comb(P, k) * math.comb(N, p + n - k) for k in range(p, min(P, p + n) + 1))
    assert math.isclose(fisher_p_value(p, n, P, N), Fraction(tail, below), rel_tol=1e-9), (
        p,
        n,
        P,
        N,
    )
    expected = {
        "precision": Fraction(p, p + n) if p + n else None,
        "sensitivity": Fraction(p, P),
        "specificity": Fraction(N - n, N),
        "laplace": Fraction(p + 1, p + n + 2),
        "rss": Fraction(p, P) - Fraction(n, N),
        "novelty": Fraction(p, P + N) - Fraction(P * (p + n), (P + N) ** 2),
    }
    for name, true in expected.items():
        result = rule_quality(name, p, n, P, N)
        if true is None:
            assert result != result or result == 0.0
        else:
            assert math.isclose(result, true, rel_tol=1e-12, abs_tol=1e-15), (name, p, n, P, N)
    values = [
        pick(rng, [0.0, 1e-300, 0.01, 0.02, 0.5, 1.0]) for _ in range(int(rng.integers(1, 7)))
    ]
    m, order = len(values), sorted(values)
    expected = [
        min(min(Fraction(order[k]) * m / (k + 1) for k in range(m) if order[k] >= v), 1)
        for v in values
    ]
    assert adjust_p_values(values, "fdr_bh").tolist() == pytest.approx(list(map(float, expected)))


def test_measures_of_rules_equal_fractions(attack):
    attack(check_counts, 60)
