"""Calibration: statistics printed with rules compared with those on held-out rows."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.special import betaincinv, stdtrit

from skescore._rows import scale_weights
from skescore._validation import check_choice, check_number, finite_numbers
from skescore.metrics._confusion import class_codes
from skescore.metrics._overlap import rules_and_rows
from skescore.metrics._rule_counts import Floats, one_per_row
from skescore.rules import RowTable, RuleSet

__all__ = ["RuleCalibration", "rule_calibration"]


@dataclass(frozen=True, eq=False)
class RuleCalibration:
    """Printed and held-out statistics of each rule, returned by :func:`rule_calibration`.

    Attributes
    ----------
    printed : ndarray of shape (n_rules,)
        Classification: printed share of the rule's class; NaN if none is printed. Regression: mean
        prediction of the rule for its rows.
    observed : ndarray of shape (n_rules,)
        Share of the rule's rows with its class, or the mean of their labels; NaN without rows.
    low, high : ndarray of shape (n_rules,)
        Bounds of the confidence interval of `observed`. In classification, 0 and 1 without rows; in
        regression, infinite for at most one row.
    rows : ndarray of shape (n_rules,)
        Total weight of the rows that the rule predicts.
    unit : float
        1 in classification, the standard deviation of all labels in regression.

    Examples
    --------
    >>> import numpy as np
    >>> one = np.ones(1)
    >>> RuleCalibration(one, 0.9 * one, 0.8 * one, 0.95 * one, 40 * one, 1.0).error
    0.09999999999999998
    """

    printed: Floats
    observed: Floats
    low: Floats
    high: Floats
    rows: Floats
    unit: float

    @property
    def error(self) -> float:
        """Mean distance between printed and observed values, weighted by rows, in units of `unit`.

        NaN if no rule has both values.
        """
        is_measured = (self.rows > 0) & np.isfinite(self.printed) & np.isfinite(self.observed)
        if not is_measured.any():
            return math.nan
        distance = np.abs(self.printed[is_measured] - self.observed[is_measured])
        if self.unit == 0:  # Equal labels have no scale.
            return math.inf if distance.any() else 0.0
        return float(np.average(distance, weights=self.rows[is_measured]) / self.unit)

    @property
    def within(self) -> np.ndarray:
        """Whether the interval of each rule contains the printed value (ndarray of bool)."""
        return np.asarray((self.low <= self.printed) & (self.printed <= self.high))

    @property
    def share_within(self) -> float:
        """Share of rules whose interval contains the printed value, among rules that have both."""
        is_measured = (self.rows > 0) & np.isfinite(self.printed)
        return float(self.within[is_measured].mean()) if is_measured.any() else math.nan

    def to_frame(self) -> pd.DataFrame:
        """Return a table with one row per rule, numbered from 1.

        Returns
        -------
        DataFrame
            ``printed``, ``observed``, ``low``, ``high``, ``rows`` and ``within``.
        """
        names = ("printed", "observed", "low", "high", "rows", "within")
        index = pd.RangeIndex(1, len(self.rows) + 1, name="rule")
        return pd.DataFrame({name: getattr(self, name) for name in names}, index=index)


def rule_calibration(
    rules: Any,
    X: Any,
    y: ArrayLike,
    sample_weight: ArrayLike | None = None,
    *,
    confidence: float = 0.95,
    reference: str | None = None,
) -> RuleCalibration:
    r"""Compare the statistics printed with each rule to its statistics on held-out rows.

    Use it to check printed shares such as "98 % agree with the model", which were counted on the
    training rows. FiRe and ICE evaluate the rule set as a whole, not the statistics of its rules.

    Parameters
    ----------
    rules : RuleSet, or what :func:`skescore.rules.as_ruleset` reads
        Rules with their statistics.
    X : array-like or DataFrame of shape (n_rows, n_features)
        Held-out rows, at least one.
    y : array-like of shape (n_rows,)
        Labels of the rows. They may be of the kind that the printed shares were counted on (see
        `reference` of :class:`skescore.RuleSet`) or of another kind, such as the target.
    sample_weight : array-like of shape (n_rows,), optional
        Weight of each row, zero or positive.
    confidence : float, default=0.95
        Confidence level of the interval of each single rule, in (0, 1).
    reference : {"data", "black_box"}, optional
        Whether `y` is the target (``"data"``) or predictions of the black box. For the target, the
        printed share of correct predictions is compared if there is one. In all other cases, the
        printed purity is compared.

    Returns
    -------
    RuleCalibration

    Raises
    ------
    TypeError
        If X is a :class:`RuleCounts`.
    ValueError
        If there are no rows, or labels or weights do not match them.

    Notes
    -----
    A rule is evaluated on the rows assigned to it, or on all rows that it covers if rules vote. In
    classification, the interval of a rule with :math:`k` of :math:`n` rows of its class is the
    Clopper-Pearson interval. The error :math:`\sum_i \frac{n_i}{n} |\pi_i - k_i / n_i|` of the
    printed shares :math:`\pi_i` is the expected calibration error with rules as bins: 0 at best, 1
    at worst. In regression, the mean prediction of a rule is compared with the mean label of its
    rows and Student's t interval, and the error is measured in standard deviations of all labels.
    With weights, the effective number of rows is :math:`n = (\sum w)^2 / \sum w^2`. Shares that
    were printed for weighted rows are undefined (NaN) without `sample_weight`.

    Correct statistics may lie outside their intervals by chance: 1 in 20 at a confidence of 0.95.

    References
    ----------
    C. J. Clopper, E. S. Pearson: The use of confidence or fiducial limits illustrated in the case
    of the binomial. Biometrika 26(4), 1934.

    M. P. Naeini, G. Cooper, M. Hauskrecht: Obtaining well calibrated probabilities using Bayesian
    binning. AAAI 2015. Expected calibration error.

    Examples
    --------
    >>> from skescore.metrics import rule_calibration
    >>> from skescore.rules import Interval, Rule, RuleSet, RuleStatistics
    >>> rules = RuleSet(
    ...     [Rule([Interval(0, upper=2)], "low", RuleStatistics(40, (40, 0)))],
    ...     ["length"], task="classification", classes=["low", "high"],
    ... )
    >>> held_out = rule_calibration(rules, [[0.5], [1.0], [1.5], [9.0]], ["low", "low", "high", "low"])
    >>> print(held_out.to_frame().round(2))
          printed  observed   low  high  rows  within
    rule
    1         1.0   0.67  0.09  0.99   3.0   False
    """  # noqa: E501 - as one types it
    check_number("confidence", confidence, 0.0, 1.0, finite=True)
    if confidence in (0, 1):
        raise ValueError(f"confidence must lie strictly between 0 and 1, got {confidence!r}.")
    check_choice("reference", reference, (None, "data", "black_box"))
    ruleset, table, weights = rules_and_rows("rule_calibration", rules, X, sample_weight)
    n_rules, n_rows = len(ruleset), len(table)
    if ruleset.voting is None:
        rule_rows = ruleset.assign(table)[:, None] == np.arange(n_rules)
    else:
        rule_rows = ruleset.match(table)
    has_weight = np.flatnonzero(weights > 0)  # Rows of weight 0 are ignored.
    rule_rows, weights = rule_rows[has_weight], weights[has_weight]
    rows = weights @ rule_rows
    weights = scale_weights(weights)
    total, squares = weights @ rule_rows, weights**2 @ rule_rows
    # Effective sample size: rows of equal weight with the same information.
    effective_rows = np.divide(total**2, squares, out=np.zeros(n_rules), where=squares > 0)
    positive_rows = np.where(total > 0, total, np.nan)
    if ruleset.classes is not None:
        codes = class_codes(ruleset, y, n_rows)[has_weight]
        hits = weights @ (rule_rows & (codes[:, None] == ruleset.conclusions.outputs))
        observed = np.clip(hits / positive_rows, 0.0, 1.0)
        printed = _printed_shares(ruleset, reference)
        if sample_weight is None:
            printed[[r.statistics is not None and r.statistics.weighted for r in ruleset]] = np.nan
        low, high = _share_intervals(observed, effective_rows, confidence)
        return RuleCalibration(printed, observed, low, high, rows, 1.0)
    labels = finite_numbers("y", one_per_row(y, n_rows))[has_weight]
    observed = weights * labels @ rule_rows / positive_rows
    deviations = np.where(rule_rows, labels[:, None] - np.where(total > 0, observed, 0.0), 0.0)
    variance = weights @ deviations**2 / positive_rows
    printed = _predicted(ruleset, table, has_weight, rule_rows, weights) / positive_rows
    low, high = _mean_intervals(observed, variance, effective_rows, confidence)
    mean = np.average(labels, weights=weights)
    unit = math.sqrt(np.average((labels - mean) ** 2, weights=weights))
    return RuleCalibration(printed, observed, low, high, rows, unit if np.ptp(labels) else 0.0)


def _printed_shares(ruleset: RuleSet, reference: str | None) -> Floats:
    """Return the share of the class that is printed with each rule; NaN if none is printed."""
    shares = np.full(len(ruleset), np.nan)
    for i, rule in enumerate(ruleset.rules):
        index = ruleset.output_index(rule)
        share = rule.correctness(index) if reference == "data" else None
        share = rule.purity(index) if share is None else share
        shares[i] = np.nan if share is None else share
    return shares


def _predicted(
    ruleset: RuleSet, table: RowTable, positions: NDArray[np.intp], rule_rows: Any, weights: Floats
) -> Floats:
    """Sum the predictions of each rule over its rows, which lie at positions of the table."""
    conclusions = ruleset.conclusions
    sums = (weights @ rule_rows) * np.nan_to_num(conclusions.outputs)
    for index, function in conclusions.linear.items():
        rows = np.flatnonzero(rule_rows[:, index])
        columns = functools.partial(_numbers, table, positions[rows])
        sums[index] = weights[rows] @ function.evaluate(columns, len(rows))
    return np.asarray(sums)


def _numbers(table: RowTable, rows: NDArray[np.intp], feature: int) -> Floats:
    return table.numbers(feature, slice(None))[rows]


def _share_intervals(share: Floats, rows: Floats, confidence: float) -> tuple[Floats, Floats]:
    """Compute Clopper-Pearson intervals; the interval of a rule without rows is [0, 1]."""
    tail = (1 - confidence) / 2
    hits = np.where(rows > 0, np.nan_to_num(share) * rows, 0.0)
    missed = np.maximum(rows - hits, 0.0)
    low, high = np.zeros(len(rows)), np.ones(len(rows))
    has_hits, has_misses = hits > 0, missed > 0
    low[has_hits] = betaincinv(hits[has_hits], missed[has_hits] + 1, tail)
    high[has_misses] = betaincinv(hits[has_misses] + 1, missed[has_misses], 1 - tail)
    return low, np.where(rows > 0, high, 1.0)


def _mean_intervals(
    mean: Floats, variance: Floats, rows: Floats, confidence: float
) -> tuple[Floats, Floats]:
    """Compute Student's t intervals; the interval of a single row is unbounded."""
    has_spread = rows > 1
    degrees_of_freedom = np.where(has_spread, rows - 1, 1.0)
    half_width = stdtrit(degrees_of_freedom, 1 - (1 - confidence) / 2) * np.sqrt(
        np.where(has_spread, variance, 0) / degrees_of_freedom
    )
    return (
        np.where(has_spread, mean - half_width, -math.inf),
        np.where(has_spread, mean + half_width, math.inf),
    )
