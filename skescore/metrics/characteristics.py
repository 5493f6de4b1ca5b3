"""A rule set in a few figures: its size, the worth of its rules, their significance and conflicts.

The figures are those by which RuleKit describes a model, as far as rules and rows tell them. How
long an induction took, and what it tried, rules do not remember.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skescore.metrics._rule_rows import (
    Floats,
    check_alpha,
    checked_weights,
    held_in_batches,
    label_codes,
)
from skescore.metrics.confusion import confusion
from skescore.metrics.quality import Measure
from skescore.metrics.significance import significant_fraction
from skescore.rules.data import Table
from skescore.rules.domain import Fallback
from skescore.rules.ruleset import RuleSet

__all__ = ["characteristics"]

#: Corrections of p-values by the part of the name that tells them.
_CORRECTIONS = {
    "": None,
    "fdr_": "fdr_bh",
    "fwer_": "holm",
    "rulekit_fdr_": "rulekit_fdr",
    "rulekit_fwer_": "rulekit_fwer",
}


def characteristics(
    ruleset: RuleSet,
    X: Any,
    y: ArrayLike,
    *,
    measure: str | Measure = "c2",
    alpha: float = 0.05,
    sample_weight: ArrayLike | None = None,
    untested: float = np.nan,
    **parameters: float,
) -> dict[str, float]:
    """Describe a rule set by averages over its rules, and how rules meet on rows.

    Use it to compare rule sets, or to set one beside a model of RuleKit.

    Parameters
    ----------
    ruleset : RuleSet
        The rules.
    X : array-like or DataFrame of shape (n_rows, n_features)
        The rows, at least one.
    y : array-like of shape (n_rows,)
        Their labels: the truth, or the answers of a black box.
    measure : str or Measure, default="c2"
        What `avg_rule_quality` is the average of: a name in
        :data:`skescore.metrics.quality.MEASURES`, or a measure of your own.
    alpha : float, default=0.05
        Level of significance, between 0 and 1.
    sample_weight : array-like of shape (n_rows,), optional
        Weight of each row, zero or positive; conflicts are sums of weights then, and the tests
        take weights for numbers of rows.
    untested : float, default=NaN
        Regression: the p-value of a rule that holds for too few rows to be tested; see
        :meth:`RuleCounts.p_values`. RuleKit has 0.0.
    **parameters : float
        Parameters of the measure.

    Returns
    -------
    dict of str to float
        ``n_rules``
            Number of rules.
        ``conditions_per_rule``, ``literals_per_rule``
            Mean number of different features in a premise, and of elementary comparisons (a
            two-sided interval is two).
        ``avg_rule_coverage``, ``avg_rule_precision``, ``avg_rule_quality``
            Means of (p + n) / (P + N), of p / (p + n) and of the measure.
        ``avg_pvalue``, ``avg_fdr_pvalue``, ``avg_fwer_pvalue``
            Means of raw p-values and of those corrected by Benjamini and Hochberg, and by Holm;
            ``avg_rulekit_fdr_pvalue`` and ``avg_rulekit_fwer_pvalue`` are corrected as RuleKit does
            and may exceed 1.
        ``fraction_significant``, ``fraction_fdr_significant``, ``fraction_fwer_significant``
            Shares of tested rules that succeed beyond chance by each of these, also with
            ``rulekit_``.
        ``rules_per_example``
            How many rules hold for a row on average.
        ``voting_conflicts``, ``negative_voting_conflicts``
            Classification only: rows that rules of two or more classes hold for, and those of them
            that the rule set answers wrongly.

        Means and shares over rules are NaN without rules, and means also where some rule has no
        value, such as the precision of a rule that holds for no row, or cannot be tested.

    Raises
    ------
    ValueError
        If the measure is unknown, or the level, rows, labels or weights do not fit.

    See Also
    --------
    rule_report : The same figures rule by rule.

    Notes
    -----
    All rows that a rule holds for count, also where the rules are ordered. RuleKit counts conflicts
    without weights, and gives the p-value 0 to rules of one row in a regression, where a spread has
    no meaning: ``untested=0.0`` does so too.

    References
    ----------
    A. Gudyś, M. Sikora, Ł. Wróbel: RuleKit: a comprehensive suite for rule-based learning.
    Knowledge-Based Systems 194, 2020, doi:10.1016/j.knosys.2020.105480.

    Examples
    --------
    >>> from skescore.rules import Interval, Rule, RuleSet
    >>> rules = RuleSet(
    ...     [Rule([Interval(0, upper=2)], "low"), Rule([Interval(0, lower=1)], "high")],
    ...     ["length"], task="classification", ordered=False,
    ... )
    >>> X, y = [[0.5], [1.5], [2.5], [3.5]], ["low", "low", "high", "low"]
    >>> figures = characteristics(rules, X, y, measure="precision")
    >>> figures["n_rules"], figures["rules_per_example"], figures["voting_conflicts"]
    (2, 1.25, 1.0)
    """
    check_alpha(alpha)
    counts = confusion(ruleset, X, y, sample_weight)
    features = [{f for c in rule.conditions for f in c.features} for rule in ruleset.rules]
    total = counts.P + counts.N
    figures: dict[str, float] = {
        "n_rules": len(ruleset),
        "conditions_per_rule": _mean([len(used) for used in features]),
        "literals_per_rule": _mean([rule.n_literals for rule in ruleset.rules]),
        "avg_rule_coverage": _mean(counts.covered / total),
        "avg_rule_precision": _mean(counts.quality("precision")),
        "avg_rule_quality": _mean(counts.quality(measure, **parameters)),
    }
    raw = counts.p_values(untested=untested)
    for part, correction in _CORRECTIONS.items():
        figures[f"avg_{part}pvalue"] = _mean(counts.p_values(correction, untested=untested))
    for part, correction in _CORRECTIONS.items():
        figures[f"fraction_{part}significant"] = significant_fraction(raw, alpha, correction)
    table = Table(X, ruleset.feature_names)
    weights = checked_weights(sample_weight, len(table))
    if weights is None:
        weights = np.ones(len(table))
    figures["rules_per_example"] = float(counts.covered.sum() / weights.sum())
    if ruleset.classes is not None:
        codes = label_codes(ruleset, y, len(table))
        figures |= _conflicts(ruleset, table, codes, weights)
    return figures


def _mean(values: Sequence[float] | NDArray[Any]) -> float:
    return float(np.mean(values)) if len(values) else np.nan


def _conflicts(
    ruleset: RuleSet, table: Table, codes: NDArray[np.intp], weights: Floats
) -> dict[str, float]:
    outputs = ruleset.conclusions.outputs.astype(np.intp)
    torn = np.zeros(len(table), dtype=bool)
    if len(np.unique(outputs)) > 1:
        for rows, held in held_in_batches(ruleset, table):
            one_of_them = outputs[held.argmax(axis=1)]
            torn[rows] = (held & (outputs != one_of_them[:, None])).any(axis=1)
    wrong = torn
    if torn.any():
        # Rules hold for all of these rows, so that it does not matter what a fallback would say.
        answers = ruleset.replace(fallback=Fallback((ruleset.classes or ())[0])).predict(table)
        wrong = torn & (label_codes(ruleset, answers, len(table)) != codes)
    return {
        "voting_conflicts": float(weights[torn].sum()),
        "negative_voting_conflicts": float(weights[wrong].sum()),
    }
