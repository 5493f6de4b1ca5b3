"""Statistics of rules on rows with labels."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from skescore.rules._rule import RuleStatistics
from skescore.rules._ruleset import RuleSet


def with_statistics(ruleset: RuleSet, X: Any, labels: np.ndarray) -> RuleSet:
    """Return the rules with the statistics of some rows.

    In an ordered or disjoint rule set a row counts for the rule that predicts it, otherwise for
    every rule that covers it.

    Parameters
    ----------
    ruleset : RuleSet
        The rules.
    X : array-like or DataFrame of shape (n_rows, n_features)
        The rows.
    labels : ndarray of shape (n_rows,)
        Labels or numbers to describe, such as the predictions of the black box.

    Returns
    -------
    RuleSet
        The same rules with other statistics. A rule without rows counts 0.

    Examples
    --------
    >>> import numpy as np
    >>> from skescore.rules import Interval, Rule, RuleSet, with_statistics
    >>> rules = RuleSet(
    ...     [Rule([Interval(0, upper=1)], "a"), Rule([], "b")],
    ...     ["x"],
    ...     task="classification",
    ...     classes=["a", "b"],
    ...     ordered=True,
    ... )
    >>> print(with_statistics(rules, [[0], [1], [2]], np.array(["a", "b", "b"])))
    1. IF x ≤ 1 THEN a   [2 rows, 50 % of this class]
    2. ELSE b   [1 row, 100 % of this class]
    """
    codes, n_classes = labels, 0
    if ruleset.classes is not None:
        codes = pd.Index(ruleset.classes).get_indexer(pd.Index(labels))
        n_classes = len(ruleset.classes)
    if ruleset.ordered or ruleset.disjoint:
        assigned = ruleset.assign(X)
        members = [np.flatnonzero(assigned == number) for number in range(len(ruleset))]
    else:
        members = [np.flatnonzero(column) for column in ruleset.match(X).T]
    rules = [
        replace(rule, statistics=_statistics(codes[rows], n_classes))
        for rule, rows in zip(ruleset.rules, members, strict=True)
    ]
    return ruleset.replace(rules=rules)


def _statistics(codes: np.ndarray, n_classes: int) -> RuleStatistics:
    """Describe the codes of classes, or the numbers, of a rule's rows."""
    if n_classes:
        counts = np.bincount(codes[codes >= 0], minlength=n_classes)
        return RuleStatistics(len(codes), tuple(counts.tolist()))
    if not len(codes):
        return RuleStatistics(0)
    spread = 0.0 if (codes == codes[0]).all() else float(np.std(codes))
    mean = float(codes[0]) if spread == 0.0 else float(np.mean(codes))
    return RuleStatistics(len(codes), mean=mean, standard_deviation=spread)
