"""Two rules as one: their statistics, their further conditions, their hull."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from skescore.rules._conditions import Condition, Interval, OneOf
from skescore.rules._rule import Rule, RuleStatistics

Conditions = tuple[Condition, ...]


def combined(one: RuleStatistics | None, other: RuleStatistics | None) -> RuleStatistics | None:
    """What was seen where either of two rules predicts; None if that is unknown of one of them.

    Rows and class counts add up; means weigh as many rows as they were taken from, and the
    standard_deviation follows from both means and standard deviations.
    """
    if one is None or other is None:
        return None
    counts = None
    if one.class_counts is not None and other.class_counts is not None:
        counts = tuple(a + b for a, b in zip(one.class_counts, other.class_counts, strict=True))
    n_rows = one.n_rows + other.n_rows
    share = other.n_rows / n_rows if n_rows > 0 else 0.5
    mean = standard_deviation = None
    if one.mean is not None and other.mean is not None:
        # One and the same mean must come out as itself, free of rounding.
        mean = one.mean if one.mean == other.mean else (1 - share) * one.mean + share * other.mean
        if one.standard_deviation is not None and other.standard_deviation is not None:
            within = math.hypot(
                math.sqrt(1 - share) * one.standard_deviation,
                math.sqrt(share) * other.standard_deviation,
            )
            between = math.sqrt(share * (1 - share)) * abs(other.mean / 2 - one.mean / 2) * 2
            standard_deviation = math.hypot(within, between)
    return RuleStatistics(n_rows, counts, mean, standard_deviation)


def implies(one: Condition, other: Condition) -> bool:
    """Whether `other` surely holds wherever `one` does."""
    if one == other:
        return True
    if not (isinstance(one, OneOf) and isinstance(other, OneOf) and one.feature == other.feature):
        return False
    if not one.negated:
        inside = [value in other.values for value in one.values]
        return not any(inside) if other.negated else all(inside)
    return other.negated and all(value in one.values for value in other.values)


def all_implied(given: Sequence[Condition], asked: Sequence[Condition]) -> bool:
    """Whether all conditions asked for surely hold where the given ones do."""
    return all(any(implies(one, other) for one in given) for other in asked)


def exclude(one: Sequence[Condition], other: Sequence[Condition]) -> bool:
    """Whether two conjunctions surely never hold together."""
    return any(_contradict(a, b) for a in one for b in other)


def _contradict(one: Condition, other: Condition) -> bool:
    if not (isinstance(one, OneOf) and isinstance(other, OneOf) and one.feature == other.feature):
        return False
    if one.negated and other.negated:
        return False  # there are values that nobody has listed
    if one.negated:
        one, other = other, one
    inside = [value in other.values for value in one.values]
    return all(inside) if other.negated else not any(inside)


def without_implied(conditions: Conditions) -> Conditions:
    """Leave out the conditions that the others of the same rule imply."""
    kept = list(conditions)
    for condition in conditions:
        rest = [other for other in kept if other is not condition]
        if any(implies(other, condition) for other in rest):
            kept = rest
    return tuple(kept)


def united(one: OneOf, other: OneOf) -> OneOf | None:
    """One condition that holds where either does; None if no condition says that.

    "Any value at all" is not to be said, as a missing value still satisfies neither.
    """
    if one.feature != other.feature:
        return None
    if not one.negated and not other.negated:
        return OneOf(one.feature, (*one.values, *other.values))
    if one.negated and other.negated:
        barred = [value for value in one.values if value in other.values]
    else:
        wanted, unwanted = (other, one) if one.negated else (one, other)
        barred = [value for value in unwanted.values if value not in wanted.values]
    return OneOf(one.feature, tuple(barred), negated=True) if barred else None


def hull(one: Rule, other: Rule) -> Rule:
    """The smallest box around two rules, with the output of the first.

    Of the other conditions it keeps those that both rules make, and joins values of one feature.
    """
    boxes: dict[int, Interval] = {i.feature: i for i in other.intervals}
    conditions: list[Condition] = []
    for mine in one.intervals:
        theirs = boxes.get(mine.feature)
        if theirs is None:
            continue
        low = min(mine, theirs, key=lambda i: (i.lower, not i.lower_closed))
        high = max(mine, theirs, key=lambda i: (i.upper, i.upper_closed))
        both = (low.lower, high.upper, low.lower_closed, high.upper_closed)
        conditions.append(Interval(mine.feature, *both))
    for condition in one.others:
        if condition in other.others:
            conditions.append(condition)
            continue
        for partner in other.others:
            if isinstance(condition, OneOf) and isinstance(partner, OneOf):
                joint = united(condition, partner)
                if joint is not None:
                    conditions.append(joint)
    return Rule(tuple(conditions), one.output, combined(one.statistics, other.statistics))


def priority_of(rule: Rule, output_index: int | None) -> tuple[float, float]:
    """What an unordered set prefers: purity, then rows."""
    seen = rule.statistics
    return rule.purity(output_index) or 0.0, float(seen.n_rows) if seen else 0.0


def ranks_of(priority: np.ndarray, by_priority: bool) -> np.ndarray:
    """Rank of every rule in the order of assignment; see :attr:`RuleSet.assignment_order`."""
    order = np.arange(len(priority))
    if by_priority:
        order = np.lexsort((-priority[:, 1], -priority[:, 0]))
    ranks = np.empty(len(priority), dtype=np.intp)
    ranks[order] = np.arange(len(priority))
    return ranks
