"""The formulas behind the measures of a rule: one small function each, of four counts.

A formula gets :class:`Counts` and its parameters as arrays, and answers NaN exactly where it is
undefined. The counts have been checked by then, so that no formula checks anything. Removable
singularities have no NaN: each formula is written in the form that has none, mostly by way of the
difference D = pN - nP, which is 0 for a rule no better than chance.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import rel_entr, xlog1py, xlogy

from skescore.metrics._counts import Counts, divergence, ratio

Numbers = NDArray[np.float64]
Limits = Callable[..., tuple[ArrayLike, ArrayLike]]


# --- tools ---------------------------------------------------------------------------------------


def _entropy(a: Numbers, b: Numbers) -> Numbers:
    """Entropy of two counts in bits, times their sum; 0 for no counts."""
    return -(rel_entr(a, a + b) + rel_entr(b, a + b)) / np.log(2)


def _positives_times_log_lift(k: Counts) -> Numbers:
    """Evaluate p ln(pT / (cP)), 0 if p = 0."""
    baseline = k.covered * k.P
    excess = ratio(k.difference, baseline, 0.0)
    near = np.abs(excess) < 0.5  # where the quotient is near 1, its logarithm would be noise
    lift_ = ratio(k.p * k.total, baseline, 1.0)
    return np.where(near, xlog1py(k.p, np.where(near, excess, 0.0)), xlogy(k.p, lift_))


# --- counts of covered rows ----------------------------------------------------------------------


def accuracy(k: Counts) -> Numbers:
    return k.p - k.n


def full_coverage(k: Counts) -> Numbers:
    return k.covered / k.total


def precision(k: Counts) -> Numbers:
    return ratio(k.p, k.covered)


def ripper(k: Counts) -> Numbers:
    return ratio(k.p - k.n, k.covered)


def sensitivity(k: Counts) -> Numbers:
    return ratio(k.p, k.P)


def specificity(k: Counts) -> Numbers:
    return ratio(k.rejected, k.N)


def mutual_support(k: Counts) -> Numbers:
    return ratio(k.p, k.n + k.P)


def f_measure(k: Counts, beta: Numbers) -> Numbers:
    return ratio((1 + beta**2) * k.p, beta**2 * k.P + k.covered)


def geo_rss(k: Counts) -> Numbers:
    return np.sqrt(sensitivity(k) * specificity(k))


def yails(k: Counts) -> Numbers:
    purity = precision(k)
    return (0.5 + purity / 4) * purity + (0.5 - purity / 4) * sensitivity(k)


# --- estimates of precision that mistrust small counts -------------------------------------------


def laplace(k: Counts) -> Numbers:
    return (k.p + 1) / (k.covered + 2)


def weighted_laplace(k: Counts) -> Numbers:
    return ratio((k.p + 1) * k.total, (k.covered + 2) * k.P)


def m_estimate(k: Counts, m: Numbers) -> Numbers:
    return ratio(k.p + m * k.P / k.total, k.covered + m)


def g_measure(k: Counts, g: Numbers) -> Numbers:
    return ratio(k.p, k.covered + g)


# --- distance from chance ------------------------------------------------------------------------


def coleman(k: Counts) -> Numbers:
    return ratio(k.difference, k.N * k.covered)


def kappa(k: Counts) -> Numbers:
    return ratio(2 * k.difference, k.N * k.covered + k.P * k.uncovered)


def c1(k: Counts) -> Numbers:
    return coleman(k) * (2 + kappa(k)) / 3


def c2(k: Counts) -> Numbers:
    return coleman(k) * ratio(k.P + k.p, 2 * k.P)


def correlation(k: Counts) -> Numbers:
    value = ratio(k.difference, np.sqrt(k.P * k.N * k.covered * k.uncovered))
    return np.clip(value, -1.0, 1.0)  # the root may round down


def f_bayesian_confirmation(k: Counts) -> Numbers:
    return ratio(k.difference, k.p * k.N + k.n * k.P)


def s_bayesian(k: Counts) -> Numbers:
    return ratio(k.difference, k.covered * k.uncovered)


def pawlak_dependency_factor(k: Counts) -> Numbers:
    return ratio(k.difference, k.p * k.total + k.P * k.covered)


def rss(k: Counts) -> Numbers:
    return ratio(k.difference, k.P * k.N)


def q2(k: Counts) -> Numbers:
    return rss(k) * specificity(k)


def rule_interest(k: Counts) -> Numbers:
    return k.difference / k.total


def novelty(k: Counts) -> Numbers:
    return k.difference / k.total**2


def klosgen(k: Counts, omega: Numbers) -> Numbers:
    better = ratio(k.difference, k.covered * k.total)
    value = full_coverage(k) ** omega * better
    # Small rules count for ever less, unless size does not count at all.
    return np.where((k.covered == 0) & (omega > 0), 0.0, value)


# --- quotients -----------------------------------------------------------------------------------


def lift(k: Counts) -> Numbers:
    return ratio(k.p * k.total, k.covered * k.P)


def logical_sufficiency(k: Counts, smoothing: Numbers) -> Numbers:
    return ratio(k.p * k.N, k.n * k.P + smoothing)


def odds_ratio(k: Counts, smoothing: Numbers) -> Numbers:
    return ratio(k.p * k.rejected, k.n * k.missed + smoothing)


def relative_risk(k: Counts, smoothing: Numbers) -> Numbers:
    return ratio(k.p * k.uncovered, k.covered * (k.missed + smoothing))


# --- information ---------------------------------------------------------------------------------


def cfoil(k: Counts) -> Numbers:
    return _positives_times_log_lift(k) / np.log(2)


def one_way_support(k: Counts) -> Numbers:
    return ratio(_positives_times_log_lift(k), k.covered)


def two_way_support(k: Counts) -> Numbers:
    return _positives_times_log_lift(k) / k.total


def cn2_significance(k: Counts) -> Numbers:
    return 2 * divergence(k, k.covered)


def j_measure(k: Counts) -> Numbers:
    return divergence(k, k.covered) / k.total


def information_gain(k: Counts) -> Numbers:
    gain = k.information / (k.total * np.log(2))
    return np.where(k.difference < 0, -gain, gain)


def binary_entropy(k: Counts) -> Numbers:
    return 1 - (_entropy(k.p, k.n) + _entropy(k.missed, k.rejected)) / k.total


# --- limits --------------------------------------------------------------------------------------


def between(low: float, high: float) -> Limits:
    return lambda P, N: (low, high)


def prior_entropy(P: Numbers, N: Numbers) -> Numbers:
    """Entropy of the class in bits."""
    return _entropy(P, N) / (P + N)


def most_divergent(P: Numbers, N: Numbers) -> Numbers:
    """Half the significance of the rule that covers one whole class and nothing else."""
    return np.maximum(P * np.log1p(N / P), N * np.log1p(P / N))


def binary_entropy_limits(P: Numbers, N: Numbers) -> tuple[ArrayLike, ArrayLike]:
    return 1 - prior_entropy(P, N), 1.0


def information_limits(P: Numbers, N: Numbers) -> tuple[ArrayLike, ArrayLike]:
    most = prior_entropy(P, N)
    return -most, most


def novelty_limits(P: Numbers, N: Numbers) -> tuple[ArrayLike, ArrayLike]:
    most = P * N / (P + N) ** 2
    return -most, most


def product_limits(P: Numbers, N: Numbers, smoothing: Numbers) -> tuple[ArrayLike, ArrayLike]:
    return 0.0, ratio(P * N, smoothing, np.inf)


def relative_risk_limits(P: Numbers, N: Numbers, smoothing: Numbers) -> tuple[ArrayLike, ArrayLike]:
    # A pure rule covers either all positives or, with much smoothing, next to nothing.
    all_positives = ratio(N, smoothing, np.inf)
    return 0.0, np.maximum(all_positives, (P + N) / (P + smoothing))


def klosgen_limits(P: Numbers, N: Numbers, omega: Numbers) -> tuple[ArrayLike, ArrayLike]:
    total = P + N

    def greatest(kind: Numbers) -> Numbers:
        # Best is a rule that covers a whole class; if size counts a lot, it takes in others.
        covered = np.maximum(kind, total * (1 - ratio(np.ones_like(omega), omega, np.inf)))
        return (covered / total) ** omega * kind * (1 / covered - 1 / total)

    return -greatest(N), greatest(P)


def m_estimate_limits(P: Numbers, N: Numbers, m: Numbers) -> tuple[ArrayLike, ArrayLike]:
    prior = P / (P + N)
    return m * prior / (N + m), (P + m * prior) / (P + m)
