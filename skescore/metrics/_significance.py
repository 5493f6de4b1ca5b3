"""Significance of rules: p-values, and corrections for multiple tests.

Rules are found by a search, so their p-values on the training rows are too small. These values
rank rules; only on held-out rows are they probabilities.
"""

from __future__ import annotations

from typing import overload

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betaln, chdtr
from scipy.stats import false_discovery_control

from skescore._validation import (
    as_numbers,
    check_choice,
    check_number,
    check_number_or_nan,
    check_shapes,
    plain,
)
from skescore.metrics._rule_quality import Counts, as_counts

__all__ = [
    "CORRECTIONS",
    "adjust_p_values",
    "check_alpha",
    "fisher_p_value",
    "significant",
    "significant_fraction",
    "variance_p_value",
]

Numbers = NDArray[np.float64]

#: Corrections for the number of tests: Benjamini-Hochberg, Holm, and RuleKit's forms of both.
CORRECTIONS = ("fdr_bh", "holm", "rulekit_fdr", "rulekit_fwer")

_WHOLE_TOLERANCE = 1e-9  # relative error of summed weights
_MAX_ROWS = 2.0**53  # largest integer that floats represent exactly
_FIRST_TERMS, _MAX_TERMS = 64, 1 << 16  # summed terms of a tail per step
_CELLS = 1 << 20  # numbers in memory at a time
#: Relative tolerance for p-values that equal the significance level.
_ROUNDING = 8 * np.finfo(np.float64).eps


@overload
def fisher_p_value(p: float, n: float, P: float, N: float) -> float: ...
@overload
def fisher_p_value(p: ArrayLike, n: ArrayLike, P: ArrayLike, N: ArrayLike) -> float | Numbers: ...
def fisher_p_value(p: ArrayLike, n: ArrayLike, P: ArrayLike, N: ArrayLike) -> float | Numbers:
    """Compute the one-sided p-value of Fisher's exact test for a rule.

    Use it for classification. Arguments broadcast against each other.

    Parameters
    ----------
    p, n : float or array-like, >= 0
        Positives and negatives that the rule covers.
    P, N : float or array-like, >= 0
        All positives and negatives.

    Returns
    -------
    float or ndarray of float
        Probability of at least `p` positives among p + n rows drawn from the P + N rows; 1 for a
        rule that covers no positive row. A Python float if all arguments are scalars.

    Raises
    ------
    ValueError
        If a count is negative or not finite, p > P, n > N, or the counts sum to less than one row.
    TypeError
        If an argument is a boolean or not a number.

    Notes
    -----
    The test counts rows. Each of the four sums of weights is truncated to an integer, as in
    RuleKit; a sum within a relative 1e-9 of an integer is rounded, since 10 weights of 0.1 add up
    to slightly less than 1. Weights should therefore be 1 on average.

    The tail is summed outwards from the observed table until the decreasing terms are negligible.
    The relative accuracy is about 1e-13 for small counts and 1e-8 for a million rows, even for tiny
    p-values; values below the smallest float are 0.

    References
    ----------
    R. A. Fisher: Statistical methods for research workers, 1934, section 21.02.

    Examples
    --------
    >>> from skescore.metrics import fisher_p_value
    >>> round(fisher_p_value(3, 0, 3, 3), 4)  # one of 20 ways to draw 3 of 6
    0.05
    >>> fisher_p_value([0, 3], 2, 3, 3).round(2).tolist()
    [1.0, 0.5]
    """
    checked_counts = as_counts(p, n, P, N)
    whole_counts = Counts(
        *(
            _truncate(array)
            for array in (checked_counts.p, checked_counts.n, checked_counts.P, checked_counts.N)
        )
    )
    total = whole_counts.total
    if (total == 0).any() or (total > _MAX_ROWS).any():
        at = np.argwhere((total == 0) | (total > _MAX_ROWS))[0]
        raise ValueError(
            f"P + N must be a number of rows from 1 to {_MAX_ROWS:g}, got "
            f"{float(checked_counts.total[tuple(at)])!r}. Scale the weights to a mean of 1."
        )
    return plain(_upper_tail(whole_counts))


def _truncate(array: Numbers) -> Numbers:
    nearest = np.rint(array)
    near = np.abs(array - nearest) <= _WHOLE_TOLERANCE * nearest
    return np.where(near, nearest, np.floor(array))


def _upper_tail(k: Counts) -> Numbers:
    """Compute P(X >= p) for hypergeometric X with the margins of the counts."""
    first = np.exp(_log_probability(k))
    # Sum towards more positives if the rule is better than chance, otherwise towards fewer.
    better = k.difference > 0
    cells = (
        np.where(better, k.missed, k.p),
        np.where(better, k.n, k.rejected),
        np.where(better, k.p, k.missed),
        np.where(better, k.rejected, k.n),
    )
    shrinking, growing = (cells[0].ravel(), cells[1].ravel()), (cells[2].ravel(), cells[3].ravel())
    beyond = first * _sum_beyond(*shrinking, *growing).reshape(first.shape)
    return np.clip(np.where(better, first + beyond, 1 - beyond), 0.0, 1.0)


def _log_probability(k: Counts) -> Numbers:
    """Compute the logarithm of the hypergeometric probability of a table of integer counts."""
    log_ways = _log_ways(k.P, k.p) + _log_ways(k.N, k.n)
    return log_ways - _log_ways(k.total, k.covered)


def _log_ways(n: Numbers, k: Numbers) -> Numbers:
    """Compute the logarithm of the number of ways to draw k of n rows."""
    return -betaln(n - k + 1, k + 1) - np.log1p(n)


def _sum_beyond(a: Numbers, b: Numbers, c: Numbers, d: Numbers) -> Numbers:
    """Sum the terms beyond a table, relative to the term of the table itself.

    Each step moves one row from each of `a` and `b` to each of `c` and `d`. The ratio of terms
    decreases, and the sum ends at the smaller of `a` and `b`.
    """
    totals = np.zeros(a.shape)
    last = np.ones(a.shape)  # most recent term
    active = np.flatnonzero(np.minimum(a, b) > 0)
    start, length = 0, _FIRST_TERMS
    while active.size:
        remaining = []
        steps = start + np.arange(length, dtype=np.float64)
        for rows in np.array_split(active, -(-active.size * length // _CELLS)):
            down = (a[rows, None] - steps) * (b[rows, None] - steps)
            up = (c[rows, None] + steps + 1) * (d[rows, None] + steps + 1)
            terms = down / up
            terms[:, 0] *= last[rows]
            np.cumprod(terms, axis=1, out=terms)  # 0 beyond the last term
            totals[rows] += terms.sum(axis=1)
            last[rows] = terms[:, -1]
            # A geometric series with the last quotient bounds the remaining terms.
            quotient = np.clip(down[:, -1] / up[:, -1], 0.0, 1.0)
            is_open = last[rows] > (1 - quotient) * totals[rows] * 2.0**-55
            remaining.append(rows[is_open])
        active = np.concatenate(remaining)
        start, length = start + length, min(2 * length, _MAX_TERMS)
    return totals


@overload
def variance_p_value(
    expected_sd: float, sample_sd: float, sample_size: float, *, undefined: float = ...
) -> float: ...
@overload
def variance_p_value(
    expected_sd: ArrayLike,
    sample_sd: ArrayLike,
    sample_size: ArrayLike,
    *,
    undefined: float = ...,
) -> float | Numbers: ...
def variance_p_value(
    expected_sd: ArrayLike,
    sample_sd: ArrayLike,
    sample_size: ArrayLike,
    *,
    undefined: float = np.nan,
) -> float | Numbers:
    r"""Compute the lower-tail p-value of the chi-square test of variance.

    Use it to test whether the labels of a regression rule are close together by chance. Arguments
    broadcast against each other.

    Parameters
    ----------
    expected_sd : float or array-like, >= 0
        Standard deviation of the labels of all rows. RuleKit uses ``ddof=1``.
    sample_sd : float or array-like, >= 0
        Standard deviation of the labels of covered rows. RuleKit uses ``ddof=0``, so its p-values
        are smaller than textbook values.
    sample_size : float or array-like, >= 0
        Number of covered rows.
    undefined : float, default=NaN
        Value for a rule that covers at most one row, or if the labels of all rows are equal, since
        there is no variance to test. RuleKit uses 0.0 for one row.

    Returns
    -------
    float or ndarray of float
        A Python float if all arguments are scalars, otherwise an array of the broadcast shape.

    Raises
    ------
    ValueError
        If an argument is negative, NaN or infinite, or the shapes do not broadcast.
    TypeError
        If an argument is a boolean or not a number.

    Notes
    -----
    The value is the distribution function of chi-square with :math:`k - 1` degrees of freedom at
    :math:`(k - 1) s^2 / S^2`, for :math:`k` rows with standard deviation :math:`s` and expected
    standard deviation :math:`S`.

    References
    ----------
    G. W. Snedecor, W. G. Cochran: Statistical methods, 1989, section 5.11.

    Examples
    --------
    >>> from skescore.metrics import variance_p_value
    >>> round(variance_p_value(2.0, 1.0, 12), 6)
    0.006366
    >>> variance_p_value(2.0, 0.0, 1)
    nan
    """
    remedy = "Remove missing labels before computing standard deviations."
    arguments = {"expected_sd": expected_sd, "sample_sd": sample_sd, "sample_size": sample_size}
    arrays = {name: as_numbers(name, x, low=0.0, remedy=remedy) for name, x in arguments.items()}
    otherwise = check_number_or_nan("undefined", undefined)
    check_shapes(**arrays)
    expected, sample, size = np.broadcast_arrays(*arrays.values())
    tested = (size > 1) & (expected > 0)
    result = np.full(tested.shape, otherwise)
    freedom = size[tested] - 1
    with np.errstate(over="ignore", under="ignore"):  # ratios may overflow and underflow
        result[tested] = chdtr(freedom, freedom * (sample[tested] / expected[tested]) ** 2)
    return plain(result)


def adjust_p_values(p_values: ArrayLike, correction: str = "fdr_bh") -> Numbers:
    """Correct p-values for multiple tests.

    Parameters
    ----------
    p_values : array-like of shape (n_rules,)
        P-values from 0 to 1, in any order. NaN marks a rule that was not tested; it stays NaN and
        does not count as a test.
    correction : {"fdr_bh", "holm", "rulekit_fdr", "rulekit_fwer"}, default="fdr_bh"
        ``"fdr_bh"`` (Benjamini and Hochberg) bounds the expected share of false discoveries among
        the significant rules, ``"holm"`` the probability of any false discovery. The other two are
        RuleKit's variants.

    Returns
    -------
    ndarray of float, shape (n_rules,)
        Adjusted p-values in the order of `p_values`.

    Raises
    ------
    ValueError
        If p-values are not from 0 to 1 or not one-dimensional, or the correction is unknown.
    TypeError
        If an argument is a boolean or not a number.

    Notes
    -----
    The k-th smallest of R p-values becomes p R / k for Benjamini-Hochberg and p (R + 1 - k) for
    Holm. The standard procedures then let no adjusted value exceed a later one (Benjamini-Hochberg)
    or fall below an earlier one (Holm), nor exceed 1. RuleKit omits this step: its values may
    exceed 1, and equal p-values get different values that depend on their order.

    References
    ----------
    Y. Benjamini, Y. Hochberg: Controlling the false discovery rate, 1995.
    S. Holm: A simple sequentially rejective multiple test procedure, 1979.

    Examples
    --------
    >>> from skescore.metrics import adjust_p_values
    >>> adjust_p_values([0.01, 0.04, 0.02]).round(3).tolist()
    [0.03, 0.04, 0.03]
    >>> adjust_p_values([0.01, 0.04, 0.02], "holm").round(3).tolist()
    [0.03, 0.04, 0.04]
    """
    values = _p_values(p_values)
    check_choice("correction", correction, CORRECTIONS)
    tested = np.flatnonzero(~np.isnan(values))
    result = np.full(values.shape, np.nan)
    if correction == "fdr_bh":
        result[tested] = false_discovery_control(values[tested])
        return result
    order = tested[np.argsort(values[tested], kind="stable")]
    n_tests, rank = len(order), np.arange(1, len(order) + 1)
    if correction == "rulekit_fdr":
        result[order] = values[order] * (n_tests / rank)
    else:
        result[order] = values[order] * (n_tests + 1 - rank)
    if correction == "holm":
        result[order] = np.minimum(np.maximum.accumulate(result[order]), 1.0)
    return result


def check_alpha(alpha: float) -> float:
    """Check a significance level, a number between 0 and 1."""
    return check_number("alpha", alpha, above=0.0, below=1.0, remedy="Pass 0.05 for 5 %.")


def significant(p_values: ArrayLike, alpha: float, correction: str | None) -> NDArray[np.bool_]:
    """Return which raw p-values are significant by :func:`significant_fraction`."""
    values, level = _p_values(p_values), check_alpha(alpha)
    if correction is None:
        return np.asarray(values < level)
    adjusted = adjust_p_values(values, correction)
    if not correction.startswith("rulekit"):
        return np.asarray(adjusted <= level * (1 + _ROUNDING))
    order = np.argsort(values, kind="stable")
    result = np.zeros(len(values), dtype=bool)
    result[order] = np.logical_and.accumulate(adjusted[order] < level)
    return result


def significant_fraction(
    p_values: ArrayLike, alpha: float = 0.05, correction: str | None = None
) -> float:
    """Compute the share of rules that are significant.

    Parameters
    ----------
    p_values : array-like of shape (n_rules,)
        Raw p-values from 0 to 1. NaN marks a rule that was not tested and is ignored.
    alpha : float, default=0.05
        Significance level, above 0 and below 1.
    correction : {"fdr_bh", "holm", "rulekit_fdr", "rulekit_fwer"}, optional
        Correction for multiple tests; none by default.

    Returns
    -------
    float
        Share of the tested rules; NaN if there are none.

    Raises
    ------
    ValueError
        If a p-value or `alpha` lies outside its domain, or there is no such correction.
    TypeError
        If an argument is a boolean or not a number.

    Notes
    -----
    Without correction, p-values below `alpha` are significant. With the standard corrections,
    adjusted values of at most `alpha` are significant, as in the papers. RuleKit iterates over the
    sorted values and stops at the first adjusted value that is not below `alpha`: its false
    discovery rate yields fewer rules than Benjamini and Hochberg's.

    Examples
    --------
    >>> from skescore.metrics import significant_fraction
    >>> p_values = [0.001, 0.02, 0.03, 0.04, 0.6]
    >>> [significant_fraction(p_values, correction=c) for c in (None, "fdr_bh", "rulekit_fdr")]
    [0.8, 0.8, 0.2]
    """
    flags = significant(p_values, alpha, correction)[~np.isnan(_p_values(p_values))]
    return float(flags.mean()) if flags.size else np.nan


def _p_values(p_values: ArrayLike) -> Numbers:
    """Check p-values, which may be NaN."""
    raw_values = np.asarray(
        p_values if hasattr(p_values, "dtype") else np.asarray(p_values, object)
    )
    untested = (
        np.asarray(raw_values != raw_values, dtype=bool) if raw_values.dtype.kind in "fO" else None
    )
    if untested is not None and untested.any():
        raw_values = np.where(untested, 0.0, raw_values)
    values = as_numbers(
        "p_values", raw_values, low=0.0, high=1.0, remedy="NaN marks untested rules."
    )
    if values.ndim != 1:
        raise ValueError(
            f"p_values must be one-dimensional, a number per rule, got shape {values.shape}."
        )
    if untested is not None:
        values[untested] = np.nan
    return values
