"""Voting rules, weighted by the value of a measure on labeled rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from skescore._text import did_you_mean
from skescore._validation import check_number
from skescore.metrics import RULE_MEASURES, RuleMeasure, confusion
from skescore.rules import Rule, RuleSet

__all__ = ["with_weights"]

#: Default voting by task.
_VOTING = {"classification": "votes", "regression": "mean"}


def with_weights(
    ruleset: RuleSet,
    measure: str | RuleMeasure,
    X: Any,
    y: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    voting: str | None = None,
    undefined: float = 0.0,
    **parameters: float,
) -> RuleSet:
    r"""Set the weight of each rule to the value of a measure, so that all matching rules vote.

    Use it if rules overlap and contradict each other: good rules then outvote weak ones, as in
    RuleKit. The weights of the matching rules decide, not their order.

    Parameters
    ----------
    ruleset : RuleSet
        Unordered rules, or an ordered list that is declared disjoint.
    measure : str or RuleMeasure
        A name in :data:`skescore.metrics.RULE_MEASURES`, or a user-defined measure.
    X : array-like or DataFrame of shape (n_rows, n_features)
        Rows on which the weights are computed, at least one; usually the training rows.
    y : array-like of shape (n_rows,)
        Labels of the rows: the truth, or the predictions of a black box.
    sample_weight : array-like of shape (n_rows,), optional
        Weight of each row, zero or positive.
    voting : {"votes", "probabilities", "logistic", "mean", "sum"}, optional
        How rules vote, see :class:`RuleSet`; by default ``"votes"`` for classes and
        ``"mean"`` for numbers.
    undefined : float, default=0.0
        Weight of a rule for which the measure is undefined, such as one that covers no row. Rules
        with weight zero have no vote.
    **parameters : float
        Parameters of the measure.

    Returns
    -------
    RuleSet
        The same rules in the same order, but unordered and with weights. Classes, domain,
        statistics and fallback are kept.

    Raises
    ------
    ValueError
        If the rules are an ordered list that is not disjoint; if the fallback uses the nearest
        rule, which voting does not support; if the measure is a loss, unknown or not finite for any
        rule; if rows, labels or weights do not fit.
    TypeError
        If the measure is neither a name nor a RuleMeasure, or has no such parameter.

    Notes
    -----
    With weights :math:`w_i = q(p_i, n_i, P_i, N_i)`, a row gets the class with the largest sum
    :math:`\sum_i w_i` over the matching rules of that class (the first if sums are equal). In
    regression, it gets the mean :math:`\sum_i w_i v_i / \sum_i w_i` of the outputs :math:`v_i` of
    the matching rules. A signed measure gives negative weights to rules that are worse than chance,
    which then vote against their class. A symmetric measure (``RuleMeasure.symmetric``) gives such
    rules large weights, and RuleKit lets them vote with these weights.

    If all sums are 0, or no rule matches, RuleKit predicts the class whose name sorts first. Here,
    uncovered rows get the fallback's prediction.

    References
    ----------
    A. Gudyś, M. Sikora, Ł. Wróbel: RuleKit: a comprehensive suite for rule-based learning.
    Knowledge-Based Systems 194, 2020, doi:10.1016/j.knosys.2020.105480. Voting of rules.

    Examples
    --------
    >>> from skescore.rules import Interval, Rule, RuleSet
    >>> rules = RuleSet(
    ...     [Rule([Interval(0, upper=2)], "low"), Rule([Interval(0, lower=1)], "high")],
    ...     ["length"], task="classification", ordered=False,
    ... )
    >>> X, y = [[0.5], [1.5], [2.5], [3.5]], ["low", "low", "high", "low"]
    >>> weighted = with_weights(rules, "precision", X, y)
    >>> print(weighted)
    1. IF length ≤ 2 THEN low   [weight 1]
    2. IF length > 1 THEN high   [weight 0.3333]
    together: all rules that hold vote with their weights
    >>> weighted.predict([[1.5], [2.5]]).tolist()
    ['low', 'high']
    """
    entry = _weighing_measure(measure)
    undefined = check_number("undefined", undefined, finite=True)
    if ruleset.ordered and not ruleset.disjoint and len(ruleset) > 1:
        raise ValueError(
            "with_weights requires independent rules, but in this ordered list each later rule "
            "also implies that no earlier one holds. Pass ruleset.replace(ordered=False) to "
            "interpret every rule by itself, or ruleset.replace(disjoint=True) if no two rules "
            "ever hold together."
        )
    # Check the arguments before any row is read.
    voting_rules = ruleset.replace(ordered=False, voting=voting or _VOTING[ruleset.task])
    counts = confusion(ruleset, X, y, sample_weight)
    values = counts.quality(entry, undefined=undefined, **parameters)
    not_finite = np.flatnonzero(~np.isfinite(values)).tolist()
    if not_finite:
        index, value = not_finite[0], float(values[not_finite[0]])
        raise ValueError(
            f"The measure {entry.name!r} gives rule {index + 1} the weight {value!r}, which cannot "
            "be used in a vote. Choose another measure, or other parameters."
        )
    rules = [
        Rule(rule.conditions, rule.output, rule.statistics, weight)
        for rule, weight in zip(ruleset.rules, values.tolist(), strict=True)
    ]
    return voting_rules.replace(rules=rules)


def _weighing_measure(measure: str | RuleMeasure) -> RuleMeasure:
    """Find a measure by its name, and reject losses."""
    if isinstance(measure, str):
        if measure not in RULE_MEASURES:
            raise ValueError(f"Unknown measure {measure!r}. {did_you_mean(measure, RULE_MEASURES)}")
        measure = RULE_MEASURES[measure]
    if not isinstance(measure, RuleMeasure):
        raise TypeError(
            f"measure must be a name or a RuleMeasure, got {measure!r}. See RULE_MEASURES."
        )
    if not measure.greater_is_better:
        raise ValueError(
            f"The measure {measure.name!r} is a loss: the worst rule would have the largest "
            "weight. Pass a RuleMeasure for which greater is better."
        )
    return measure
