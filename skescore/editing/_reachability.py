"""Unreachable rules, and rules that contradict each other."""

from __future__ import annotations

from typing import Any

import numpy as np

from skescore.constraints import UndecidableError, reachable_rules
from skescore.rules import RuleSet


def unreachable_rules(rules: RuleSet) -> tuple[int, ...]:
    """Return the numbers of rules that predict no point of the domain, from 1.

    Parameters
    ----------
    rules : RuleSet
        The rules. Rules that vote are all reachable.

    Returns
    -------
    tuple of int
        Rules whose premise earlier rules cover. This is proven on the whole domain, or for all
        values including missing ones if the rules have no domain. Empty if any rule has a linear
        condition.

    Examples
    --------
    >>> from skescore.editing import unreachable_rules
    >>> from skescore.rules import Interval, Rule, RuleSet
    >>> ages = [Interval(0, upper=30)], [Interval(0, lower=30)], [Interval(0, 20, 40)]
    >>> rules = RuleSet(
    ...     [Rule(premise, "yes") for premise in ages], ["age"], task="classification"
    ... )
    >>> unreachable_rules(rules)
    (3,)
    """
    if rules.voting is not None or not len(rules):
        return ()
    try:
        reachable = set(reachable_rules(rules))
    except UndecidableError:
        return ()
    return tuple(index + 1 for index in range(len(rules)) if index not in reachable)


def contradictions(rules: RuleSet, X: Any) -> tuple[tuple[int, int], ...]:
    """Return pairs of unordered rules that cover the same rows but have different outputs.

    Parameters
    ----------
    rules : RuleSet
        Rules to check. Ordered, disjoint and voting ones have no contradictions.
    X : array-like or DataFrame of shape (n_rows, n_features)
        The rows.

    Returns
    -------
    tuple of pairs of int
        Numbers of the rules, from 1.

    Examples
    --------
    >>> from skescore.editing import contradictions
    >>> from skescore.rules import Interval, Rule, RuleSet
    >>> rules = RuleSet(
    ...     [Rule([Interval(0, upper=30)], "no"), Rule([Interval(0, lower=20)], "yes")],
    ...     ["age"], task="classification", ordered=False,
    ... )
    >>> contradictions(rules, [[10], [25], [40]])
    ((1, 2),)
    """
    if rules.ordered or rules.disjoint or rules.voting is not None:
        return ()
    holds = rules.match(X).astype(np.int64)
    together = holds.T @ holds
    return tuple(
        (i + 1, j + 1)
        for i, j in np.argwhere(np.triu(together, 1)).tolist()
        if rules[i].output != rules[j].output
    )
