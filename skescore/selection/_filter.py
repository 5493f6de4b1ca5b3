"""Filters of rules by a measure or by statistical significance.

A filter only removes rules. The remaining rules keep their order, weights and statistics, and the
rule set keeps its classes, domain, voting and fallback.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from skescore._validation import as_numbers
from skescore.metrics import RuleMeasure, confusion
from skescore.rules import RuleSet

__all__ = ["select_rules", "significant_rules"]


def select_rules(
    ruleset: RuleSet,
    X: Any,
    y: ArrayLike,
    measure: str | RuleMeasure,
    threshold: float,
    *,
    sample_weight: ArrayLike | None = None,
    assigned: bool = False,
    undefined: float = np.nan,
    **parameters: float,
) -> RuleSet:
    """Keep the rules for which a measure reaches a threshold.

    Use it to drop weak rules. Rows of dropped rules get the prediction of another rule that holds,
    otherwise that of the fallback.

    Parameters
    ----------
    ruleset : RuleSet
        The rules.
    X : array-like or DataFrame of shape (n_rows, n_features)
        The rows, at least one.
    y : array-like of shape (n_rows,)
        Labels of the rows: the truth, or the predictions of a black box.
    measure : str or RuleMeasure
        A name in :data:`skescore.metrics.RULE_MEASURES`, or a user-defined measure.
    threshold : float
        Minimum value of a rule to keep.
    sample_weight : array-like of shape (n_rows,), optional
        Weight of each row, zero or positive.
    assigned : bool, default=False
        Whether to count for each rule only the rows assigned to it, see :func:`confusion`.
    undefined : float, default=NaN
        Value of a rule for which the measure is undefined. NaN reaches no threshold.
    **parameters : float
        Parameters of the measure.

    Returns
    -------
    RuleSet
        Remaining rules, in order. If none remain, the fallback predicts all rows.

    Raises
    ------
    ValueError
        If the measure is unknown, or the threshold, rows, labels or weights do not fit.

    See Also
    --------
    skescore.selection.selection_effect : Effect of the selection on ICE, FiRe and Q.

    Examples
    --------
    >>> from skescore.rules import Interval, Rule, RuleSet
    >>> rules = RuleSet(
    ...     [Rule([Interval(0, upper=2)], "low"), Rule([Interval(0, lower=1)], "high")],
    ...     ["length"], task="classification", ordered=False,
    ... )
    >>> X, y = [[0.5], [1.5], [2.5], [3.5]], ["low", "low", "high", "low"]
    >>> print(select_rules(rules, X, y, "precision", 0.8))
    1. IF length ≤ 2 THEN low
    """
    lower_bound = as_numbers(
        "threshold", threshold, remedy="Pass the smallest value that a rule needs to be kept."
    )
    if lower_bound.ndim:
        raise ValueError(f"threshold must be one number, got {threshold!r}. Pass a single value.")
    counts = confusion(ruleset, X, y, sample_weight, assigned=assigned)
    values = counts.quality(measure, undefined=undefined, **parameters)
    return _select_flagged(ruleset, values >= float(lower_bound))


def significant_rules(
    ruleset: RuleSet,
    X: Any,
    y: ArrayLike,
    alpha: float = 0.05,
    correction: str | None = "fdr_bh",
    *,
    sample_weight: ArrayLike | None = None,
    assigned: bool = False,
    untested: float = np.nan,
) -> RuleSet:
    """Keep the rules that are statistically significant.

    Use it to drop rules that may be due to chance. The test is Fisher's exact test for classes and
    the chi-square test of variance for numbers. For a valid test, use held-out rows.

    Parameters
    ----------
    ruleset : RuleSet
        The rules.
    X : array-like or DataFrame of shape (n_rows, n_features)
        The rows, at least one.
    y : array-like of shape (n_rows,)
        Labels of the rows: the truth, or the predictions of a black box.
    alpha : float, default=0.05
        Significance level, between 0 and 1.
    correction : str or None, default="fdr_bh"
        Correction for multiple tests: "fdr_bh", "holm", "rulekit_fdr", "rulekit_fwer", or None.
    sample_weight : array-like of shape (n_rows,), optional
        Weight of each row, zero or positive; the tests treat weights as numbers of rows.
    assigned : bool, default=False
        Whether to count for each rule only the rows assigned to it, see :func:`confusion`.
    untested : float, default=NaN
        Regression: p-value of a rule that covers too few rows for a test; see
        :meth:`RuleConfusion.p_values`. RuleKit uses 0.0.

    Returns
    -------
    RuleSet
        Remaining rules, in order. Rules that cannot be tested are dropped. If no rules remain, the
        fallback predicts all rows.

    Raises
    ------
    ValueError
        If the correction is unknown, or the level, rows, labels or weights do not fit.

    See Also
    --------
    skescore.selection.selection_effect : Effect of the selection on ICE, FiRe and Q.

    Examples
    --------
    >>> from skescore.rules import Interval, Rule, RuleSet
    >>> rules = RuleSet(
    ...     [Rule([Interval(0, upper=5)], "low"), Rule([Interval(1, lower=0)], "high")],
    ...     ["length", "width"], task="classification", ordered=False,
    ... )
    >>> X, y = [[x, (-1) ** x] for x in range(12)], ["low"] * 6 + ["high"] * 6
    >>> print(significant_rules(rules, X, y))
    1. IF length ≤ 5 THEN low
    """
    counts = confusion(ruleset, X, y, sample_weight, assigned=assigned)
    return _select_flagged(ruleset, counts.significant(alpha, correction, untested=untested))


def _select_flagged(ruleset: RuleSet, flags: np.ndarray) -> RuleSet:
    return ruleset.replace(rules=[ruleset.rules[index] for index in np.flatnonzero(flags)])
