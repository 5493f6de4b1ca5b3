"""Putting categories in an order, so that a tree can split them by thresholds.

For two classes or a number, ordering the values by the mean answer makes the best of all splits
into two sets a threshold. For more classes the values are ordered along the first principal
component of their class shares, which nearly always gives the best split.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from skescore.rules import Interval, OneOf, Rule, RuleSet


def category_order(
    codes: np.ndarray, answers: np.ndarray, n_values: int, n_classes: int | None
) -> np.ndarray:
    """Order the values of a categorical feature by what the black box answers for them.

    Parameters
    ----------
    codes : ndarray of int, shape (n_rows,)
        The value of each row; every value occurs.
    answers : ndarray of shape (n_rows,)
        Class indices or numbers.
    n_values : int
        Number of values.
    n_classes : int or None
        Number of classes; None for numbers.

    Returns
    -------
    ndarray of int, shape (n_values,)
        Values in order; those that are answered alike stay in the order of their codes.

    References
    ----------
    L. Breiman, J. Friedman, C. Stone, R. Olshen: Classification and Regression Trees, 1984,
    section 4.2; D. Coppersmith, S. Hong, J. Hosking: Partitioning nominal attributes in decision
    trees. Data Mining and Knowledge Discovery 3, 1999.
    """
    total = np.bincount(codes, minlength=n_values)
    if n_classes is None:
        position = np.bincount(codes, weights=answers, minlength=n_values) / total
    else:
        counts = np.bincount(codes * n_classes + answers, minlength=n_values * n_classes)
        shares = counts.reshape(n_values, n_classes) / total[:, None]
        centred = shares - np.average(shares, axis=0, weights=total)
        scatter = (centred * total[:, None]).T @ centred
        direction = np.linalg.eigh(scatter)[1][:, -1]
        # The sign of an eigenvector is anyone's choice; its largest part shall be positive.
        direction *= np.sign(direction[np.argmax(np.abs(direction))])
        position = centred @ direction
    spread = np.ptp(position)
    if spread > 0:  # differences of rounding must not decide
        position = np.round(position / spread, 9)
    return np.argsort(position, kind="stable")


def name_categories(ruleset: RuleSet, values: Mapping[int, tuple[Any, ...]]) -> RuleSet:
    """Turn intervals over the ranks of ordered categories into sets of their values.

    Parameters
    ----------
    ruleset : RuleSet
        Rules with intervals on the features concerned.
    values : mapping of int to tuple
        Values of each categorical feature, in the order in which they were ranked.

    Returns
    -------
    RuleSet
        The same rules with conditions such as ``colour in {blue, red}``. A set of more than half
        of the values is written as what it leaves out, ``colour ≠ green``: that also holds for
        values that were never seen.
    """
    rules = []
    for rule in ruleset.rules:
        conditions = [
            _one_of(c, values[c.feature]) if isinstance(c, Interval) and c.feature in values else c
            for c in rule.conditions
        ]
        rules.append(Rule(tuple(conditions), rule.output, rule.statistics))
    return ruleset.replace(rules=rules)


def _one_of(interval: Interval, values: tuple[Any, ...]) -> OneOf:
    ranks = np.arange(len(values), dtype=float)
    held = interval.holds(lambda _: ranks)
    inside = [v for v, holds in zip(values, held, strict=True) if holds]
    outside = [v for v, holds in zip(values, held, strict=True) if not holds]
    if len(outside) < len(inside) and len(inside) > 1:
        return OneOf(interval.feature, tuple(outside), negated=True)
    return OneOf(interval.feature, tuple(inside))
