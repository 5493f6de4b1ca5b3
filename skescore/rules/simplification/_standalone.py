"""Conversion of rules to standalone rules, which do not depend on other rules.

A rule of an ordered list predicts rows for which its premise holds and no earlier premise holds.
This difference is rewritten as disjoint premises.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Set
from dataclasses import replace
from typing import TYPE_CHECKING

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
from skescore.rules._conditions import normalize as normalized
from skescore.rules._rule import Rule
from skescore.rules.simplification._merging import (
    Conditions,
    are_exclusive,
    disjunction,
    implies,
    without_implied,
)

if TYPE_CHECKING:
    from skescore.rules._ruleset import RuleSet

#: Largest number of rules in the result.
_MAX_PARTS = 400


def standalone(ruleset: RuleSet) -> RuleSet:
    """Convert rules to disjoint rules; see :meth:`RuleSet.standalone`."""
    if ruleset.disjoint:
        return ruleset.replace(ordered=False)
    gaps = _features_with_gaps(ruleset)
    order = ruleset.assignment_order.tolist()
    parts: dict[int, list[Conditions]] = {}
    n_parts = 0
    for position, index in enumerate(order):
        left = [ruleset.rules[index].conditions]
        # Subtracting general rules first leaves fewer parts that overlap special rules.
        before = sorted(order[:position], key=lambda i: ruleset.rules[i].n_literals)
        for other in before:
            against = ruleset.rules[other].conditions
            left = [part for one in left for part in _subtract(one, against, gaps)]
            if n_parts + len(left) > _MAX_PARTS:
                raise ValueError(
                    f"The first {position + 1} rules fall into more than {_MAX_PARTS} standalone "
                    "parts. Use the ordered list, or simplify it first."
                )
        parts[index] = _merge_all(left, gaps)
        n_parts += len(parts[index])
    rules = []
    for index, rule in enumerate(ruleset.rules):
        premises = parts[index]
        statistics = rule.statistics if len(premises) == 1 else None
        rules += [Rule(conditions, rule.output, statistics) for conditions in premises]
    return ruleset.replace(rules=rules, ordered=False, disjoint=True)


def _features_with_gaps(ruleset: RuleSet) -> set[int]:
    """Return the features that may be missing according to the domain or to a condition."""
    domain = ruleset.domain
    features = (
        set() if domain is None else {j for j, share in enumerate(domain.missing) if share > 0}
    )
    pending = [c for rule in ruleset.rules for c in rule.conditions]
    while pending:
        condition = pending.pop()
        if isinstance(condition, AtLeast):
            pending += condition.conditions
        elif isinstance(condition, Missing) or (
            isinstance(condition, Interval | OneOf) and truth_table(condition).missing
        ):
            features.add(condition.feature)
    return features


def _subtract(one: Conditions, other: Conditions, gaps: Set[int]) -> Iterator[Conditions]:
    """Subtract a premise from another; return disjoint premises."""
    if are_exclusive(one, other):
        yield one
        return
    satisfied: Conditions = ()
    for condition in other:
        if any(implies(own_condition, condition) for own_condition in one):
            continue
        for opposite in _negations(condition, gaps):
            part = _intersect_premises(one, (*satisfied, opposite))
            if part is not None:
                yield part
        satisfied = (*satisfied, condition)


def _intersect_premises(one: Conditions, other: Conditions) -> Conditions | None:
    """Return the conjunction of two premises; None if they contradict each other."""
    if are_exclusive(one, other):
        return None
    try:
        conditions = normalized((*one, *other))
    except ValueError:
        return None
    lists: dict[int, OneOf | Missing] = {}
    conditions_left: list[Condition] = []
    for condition in conditions:
        if not isinstance(condition, OneOf):
            conditions_left.append(condition)
            continue
        earlier = lists.get(condition.feature)
        joint = condition if earlier is None else _intersect_lists(earlier, condition)
        if joint is None:
            return None
        lists[condition.feature] = joint
    return without_implied(normalized((*conditions_left, *lists.values())))


def _intersect_lists(one: OneOf | Missing, other: OneOf) -> OneOf | Missing | None:
    """Return the conjunction of two conditions on categories; None if it is empty."""
    if isinstance(one, Missing):
        return one if truth_table(other).missing else None
    missing = truth_table(one).missing and truth_table(other).missing
    if one.negated and other.negated:
        excluded = OneOf(one.feature, (*one.values, *other.values), negated=True)
        return with_missing(excluded, missing)
    if one.negated:
        one, other = other, one
    values = tuple(v for v in one.values if (v in other.values) != other.negated)
    if not values:
        return Missing(one.feature) if missing else None
    return with_missing(OneOf(one.feature, values), missing)


def _negations(condition: Condition, gaps: Set[int]) -> list[Condition]:
    """Return the negation of a condition as disjoint conditions."""
    if isinstance(condition, Missing):
        return [replace(condition, negated=not condition.negated)]
    if isinstance(condition, OneOf):
        missing = not truth_table(condition).missing and condition.feature in gaps
        opposite = OneOf(condition.feature, condition.values, not condition.negated)
        return _accepting(opposite, missing)
    if isinstance(condition, AtLeast):
        opposites = []
        for part in condition.conditions:
            negations = _negations(part, gaps)
            if negations:  # empty for a part that always holds
                opposites.append(
                    negations[0] if len(negations) == 1 else AtLeast(1, tuple(negations))
                )
        n_failing = len(condition.conditions) - condition.m + 1
        return [AtLeast(n_failing, tuple(opposites))] if n_failing <= len(opposites) else []
    below = condition.lower, condition.lower_closed
    above = condition.upper, condition.upper_closed
    sides: list[Condition] = []
    for lower, upper, lower_closed, upper_closed in (
        (-math.inf, below[0], False, not below[1]),
        (above[0], math.inf, not above[1], False),
    ):
        if math.isinf(lower) and math.isinf(upper):
            continue
        if isinstance(condition, Linear):
            sides.append(Linear(condition.terms, lower, upper, lower_closed, upper_closed))
        else:
            # The first of two sides includes missing values.
            accepted = truth_table(condition).missing or bool(sides)
            missing = not accepted and condition.feature in gaps
            bounds = (lower, upper, lower_closed, upper_closed)
            sides += _accepting(Interval(condition.feature, *bounds), missing)
    if isinstance(condition, Interval) and not sides and condition.feature in gaps:
        # Only missing values do not satisfy an interval without bounds.
        return [] if truth_table(condition).missing else [Missing(condition.feature)]
    if isinstance(condition, Linear):  # a sum with a missing term satisfies no bounds
        observed: Conditions = ()
        for feature in (f for f in condition.features if f in gaps):
            premise = (*observed, Missing(feature))
            sides.append(premise[0] if len(premise) == 1 else AtLeast(len(premise), premise))
            observed = (*observed, Missing(feature, negated=True))
    return sides


def _accepting(condition: Interval | OneOf, missing: bool) -> list[Condition]:
    """Return disjoint conditions for the same observed values, and missing values if `missing`."""
    accepting = with_missing(condition, missing)
    return [condition, Missing(condition.feature)] if accepting is None else [accepting]


def _merge_all(parts: list[Conditions], gaps: Set[int]) -> list[Conditions]:
    """Merge premises that differ in a single condition, until no two of them can be merged."""
    joined: list[Conditions] = []
    for part in parts:
        position = len(joined)
        while True:
            unions = ((k, _merge_premises(one, part, gaps)) for k, one in enumerate(joined))
            match = next(((k, union) for k, union in unions if union is not None), None)
            if match is None:
                break
            position, part = match
            del joined[position]
        joined.insert(position, part)
    return joined


def _merge_premises(one: Conditions, other: Conditions, gaps: Set[int]) -> Conditions | None:
    """Return the union of two premises that differ in one condition; None if it is no premise."""
    if len(one) != len(other):
        return None
    ours = [c for c in one if c not in other]
    theirs = [c for c in other if c not in one]
    if len(ours) != 1 or len(theirs) != 1:
        return None
    joint = disjunction(ours[0], theirs[0])
    if joint is None and _negations(ours[0], gaps) == theirs:
        return tuple(c for c in one if c in other)
    if joint is None:
        return None
    if isinstance(joint, Missing) and joint.negated and joint.feature not in gaps:
        return tuple(c for c in one if c in other)  # the feature is never missing
    return normalized((*(c for c in one if c in other), joint))
