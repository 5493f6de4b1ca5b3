"""Implication, contradiction, union and hull of pairs of conditions and rules."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from skescore.rules._conditions import (
    AtLeast,
    Condition,
    Interval,
    Linear,
    Missing,
    OneOf,
    truth_table,
    with_missing,
)
from skescore.rules._rule import Rule, combine_statistics

if TYPE_CHECKING:
    from skescore.rules._ruleset import RuleSet

Conditions = tuple[Condition, ...]


#: A condition on a single feature.
_Side: TypeAlias = Interval | OneOf | Missing
_SIDES = (Interval, OneOf, Missing)


def implies(one: Condition, other: Condition) -> bool:
    """Return whether it is certain that `one` implies `other`."""
    if one == other:
        return True
    if not (isinstance(one, _SIDES) and isinstance(other, _SIDES)) or one.feature != other.feature:
        return False
    if truth_table(one).missing and not truth_table(other).missing:
        return False
    if isinstance(one, Missing) and not one.negated:
        return True  # `one` accepts only missing values, which `other` also accepts
    if isinstance(other, Missing):
        return other.negated  # `other` then accepts all observed values
    if isinstance(one, Interval) and isinstance(other, Interval):
        return _begins_before(other, one) and _ends_after(other, one)
    if not (isinstance(one, OneOf) and isinstance(other, OneOf)):
        return False
    if not one.negated:
        inside = [value in other.values for value in one.values]
        return not any(inside) if other.negated else all(inside)
    return other.negated and all(value in one.values for value in other.values)


def _begins_before(one: Interval, other: Interval) -> bool:
    """Return whether an interval has the same or a smaller lower bound."""
    return (one.lower, not one.lower_closed) <= (other.lower, not other.lower_closed)


def _ends_after(one: Interval, other: Interval) -> bool:
    return (one.upper, one.upper_closed) >= (other.upper, other.upper_closed)


def all_implied(premise: Sequence[Condition], conclusion: Sequence[Condition]) -> bool:
    """Return whether it is certain that a premise implies every condition of a conclusion."""
    return all(any(implies(one, other) for one in premise) for other in conclusion)


def are_exclusive(one: Sequence[Condition], other: Sequence[Condition]) -> bool:
    """Return whether two conjunctions contain a pair of contradictory conditions."""
    return any(_contradict(a, b) for a in one for b in other)


def _contradict(one: Condition, other: Condition) -> bool:
    """Return whether it is certain that two conditions contradict each other."""
    for a, b in ((one, other), (other, one)):
        if isinstance(a, Linear) and isinstance(b, Missing) and not b.negated:
            return b.feature in a.features  # a sum with a missing value satisfies no condition
    if not (isinstance(one, _SIDES) and isinstance(other, _SIDES)) or one.feature != other.feature:
        return False
    if truth_table(one).missing and truth_table(other).missing:
        return False
    if isinstance(one, Missing) or isinstance(other, Missing):
        # They are contradictory if one accepts only missing and the other only observed values.
        return not (_accepts_observed(one) and _accepts_observed(other))
    if isinstance(one, Interval) and isinstance(other, Interval):
        return not _overlap(one, other)
    if not (isinstance(one, OneOf) and isinstance(other, OneOf)):
        return False
    if one.negated and other.negated:
        return False  # unlisted values satisfy both
    if one.negated:
        one, other = other, one
    inside = [value in other.values for value in one.values]
    return all(inside) if other.negated else not any(inside)


def _accepts_observed(condition: _Side) -> bool:
    return not isinstance(condition, Missing) or condition.negated


def _overlap(one: Interval, other: Interval, *, touching: bool = False) -> bool:
    """Return whether two intervals overlap or, with `touching`, have no gap between them."""
    for below, above in ((one, other), (other, one)):
        if below.upper < above.lower:
            return False
        closed_flags = (below.upper_closed, above.lower_closed)
        if below.upper == above.lower and not (any if touching else all)(closed_flags):
            return False
    return True


def without_implied(conditions: Conditions) -> Conditions:
    """Remove the conditions of a rule that its other conditions imply."""
    required = list(conditions)
    for condition in conditions:
        others = [other for other in required if other is not condition]
        if any(implies(other, condition) for other in others):
            required = others
    return tuple(required)


def without_covered_values(ruleset: RuleSet) -> RuleSet:
    """Drop the values of categories that cannot matter because an earlier rule covers them.

    In ``IF color = red THEN a ELSE IF color in {blue, red} THEN b``, the second `red` is dropped.
    """
    # Distances to the nearest rule depend on all values.
    by_nearest = ruleset.fallback is not None and ruleset.fallback.policy == "nearest"
    if not ruleset.ordered or ruleset.disjoint or by_nearest:
        return ruleset
    earlier: list[Rule] = []
    for rule in ruleset.rules:
        conditions = list(rule.conditions)
        for position, condition in enumerate(conditions):
            if isinstance(condition, OneOf) and len(condition.values) > 1:
                others = [*conditions[:position], *conditions[position + 1 :]]
                values = _uncovered_values(condition, others, earlier)
                conditions[position] = replace(condition, values=values)
        is_same = tuple(conditions) == rule.conditions
        earlier.append(rule if is_same else replace(rule, conditions=tuple(conditions)))
    return ruleset if tuple(earlier) == ruleset.rules else ruleset.replace(rules=earlier)


def _uncovered_values(
    condition: OneOf, others: Sequence[Condition], earlier: Sequence[Rule]
) -> tuple[Any, ...]:
    """Return the values whose rows no earlier rule fully covers; if none, the first value."""
    features = {feature for c in (condition, *others) for feature in c.features}
    premises = [
        rule.conditions
        for rule in earlier
        # Rules that test other features need not cover all of these rows.
        if all(features.issuperset(c.features) for c in rule.conditions)
        and all_implied(others, [c for c in rule.conditions if c.features != condition.features])
    ]
    left = [
        value
        for value in condition.values
        if not any(all_implied([*others, OneOf(condition.feature, (value,))], p) for p in premises)
    ]
    return tuple(left) or condition.values[:1]


def disjunction(one: Condition, other: Condition) -> Condition | None:
    """Return a condition equivalent to the disjunction of two conditions; None if there is none.

    The result is a trivial interval if the disjunction always holds. It is None for two lists of
    values that together accept all observed values but no missing values.
    """
    if not (isinstance(one, _SIDES) and isinstance(other, _SIDES)) or one.feature != other.feature:
        return None
    feature = one.feature
    missing = truth_table(one).missing or truth_table(other).missing
    always = Interval(feature)
    for side, partner in ((one, other), (other, one)):
        if isinstance(side, Missing):
            if side.negated:
                return always if missing else side
            return always if _is_not_missing(partner) else with_missing(partner, True)
    if isinstance(one, Interval) and isinstance(other, Interval):
        if not _overlap(one, other, touching=True):
            return None
        low = one if _begins_before(one, other) else other
        high = one if _ends_after(one, other) else other
        bounds = (low.lower, high.upper, low.lower_closed, high.upper_closed)
        joint = Interval(feature, *bounds)
        if joint.is_trivial:
            return always if missing else Missing(feature, negated=True)
        return with_missing(joint, missing)
    if not (isinstance(one, OneOf) and isinstance(other, OneOf)):
        return None
    if not one.negated and not other.negated:
        return with_missing(OneOf(feature, (*one.values, *other.values)), missing)
    if one.negated and other.negated:
        excluded_values = [value for value in one.values if value in other.values]
    else:
        included, excluded = (other, one) if one.negated else (one, other)
        excluded_values = [value for value in excluded.values if value not in included.values]
    if excluded_values:
        return with_missing(OneOf(feature, tuple(excluded_values), negated=True), missing)
    return always if missing else None


def _is_not_missing(condition: _Side) -> bool:
    """Return whether a condition accepts exactly the observed values."""
    return isinstance(condition, Missing) and condition.negated


def hull(one: Rule, other: Rule) -> Rule:
    """Return the smallest box around two rules, with the output of the first rule.

    Conditions other than intervals are kept if both rules have them. Of two lists of values
    of the same feature, the disjunction is used.
    """
    other_sides: dict[int, Interval | Missing] = {i.feature: i for i in other.intervals}
    one_missing, other_missing = (
        {c.feature: c for c in rule.non_intervals if isinstance(c, Missing)}
        for rule in (one, other)
    )
    other_sides |= other_missing
    conditions: list[Condition] = []
    one_sides: list[Interval | Missing] = [*one.intervals, *one_missing.values()]
    for side in one_sides:
        partner = other_sides.get(side.feature)
        if partner is None:
            continue
        if isinstance(side, Interval) and isinstance(partner, Interval):
            low = min(side, partner, key=lambda i: (i.lower, not i.lower_closed))
            high = max(side, partner, key=lambda i: (i.upper, i.upper_closed))
            bounds = (low.lower, high.upper, low.lower_closed, high.upper_closed)
            accepts_missing = truth_table(side).missing or truth_table(partner).missing
            box_side = with_missing(Interval(side.feature, *bounds), accepts_missing)
            conditions += [] if box_side is None else [box_side]
        elif joint := disjunction(side, partner):
            conditions.append(joint)
    for condition in one.non_intervals:
        if isinstance(condition, Missing) and condition.feature in other_sides:
            continue
        if condition in other.non_intervals:
            conditions.append(condition)
            continue
        for candidate in other.non_intervals:
            union = disjunction(condition, candidate)
            if union is not None:
                conditions.append(union)
    return Rule(tuple(conditions), one.output, combine_statistics(one.statistics, other.statistics))


def priority_of(rule: Rule, output_index: int | None) -> tuple[float, float]:
    """Return the priority of a rule in an unordered set: its purity, then its number of rows."""
    statistics = rule.statistics
    return rule.purity(output_index) or 0.0, float(statistics.n_rows) if statistics else 0.0


def ranks_of(priority: np.ndarray, by_priority: bool) -> np.ndarray:
    """Return the rank of each rule by priority; see :attr:`RuleSet.assignment_order`."""
    order = np.arange(len(priority))
    if by_priority:
        order = np.lexsort((-priority[:, 1], -priority[:, 0]))
    ranks = np.empty(len(priority), dtype=np.intp)
    ranks[order] = np.arange(len(priority))
    return ranks


def shorten_counts(ruleset: RuleSet) -> RuleSet:
    """Shorten M-of-N conditions, if possible to conjunctions, without changing any prediction.

    Two conditions on a feature are replaced by their disjunction if at most one of them can hold.
    """
    if ruleset.fallback is not None and ruleset.fallback.policy == "nearest":
        return ruleset  # distances depend on the form of the conditions
    rules = [_with_short_counts(rule) for rule in ruleset.rules]
    if all(new is old for new, old in zip(rules, ruleset.rules, strict=True)):
        return ruleset
    return ruleset.replace(rules=rules)


def _with_short_counts(rule: Rule) -> Rule:
    conditions: list[Condition] = []
    for condition in rule.conditions:
        conditions += _short_count(condition) if isinstance(condition, AtLeast) else [condition]
    if tuple(conditions) == rule.conditions:
        return rule
    try:
        return replace(rule, conditions=tuple(conditions))
    except ValueError:  # the conjunction never holds
        return rule


def _short_count(condition: AtLeast) -> list[Condition]:
    """Return an equivalent conjunction with as few counted conditions as possible."""
    m, parts = condition.m, list(condition.conditions)
    while (pair := _exclusive_pair(parts)) is not None:
        one, other, joint = pair
        parts = [joint if c == one else c for c in parts if c != other]
        if joint.is_trivial:
            parts.remove(joint)
            m -= 1
    if len(parts) == len(condition.conditions) or m > len(parts):
        return [condition]
    if m <= 0:
        return []
    return parts if m == len(parts) else [AtLeast(m, tuple(parts))]


def _exclusive_pair(parts: list[Condition]) -> tuple[Condition, Condition, Condition] | None:
    """Return two conditions of which at most one can hold, and their disjunction."""
    for one, other in combinations(parts, 2):
        joint = disjunction(one, other) if _contradict(one, other) else None
        if joint is not None and parts.count(one) == parts.count(other) == 1:
            return one, other, joint
    return None
