"""Standalone rules: each true by itself, whatever the others say.

A rule of an ordered list holds where its premise does and those of all rules before it do not.
What is left of it is written as premises of its own, no two of which hold together.
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
)
from skescore.rules._conditions import normalize as normalized
from skescore.rules._rule import Rule
from skescore.rules.simplification._merging import (
    Conditions,
    exclude,
    implies,
    united,
    without_implied,
)

if TYPE_CHECKING:
    from skescore.rules._ruleset import RuleSet

#: More parts than these nobody would read.
_MOST_PARTS = 400


def standalone(ruleset: RuleSet) -> RuleSet:
    """Make every rule true by itself; see :meth:`RuleSet.standalone`."""
    if ruleset.disjoint:
        return ruleset.replace(ordered=False)
    gaps = _features_with_gaps(ruleset)
    order = ruleset.assignment_order.tolist()
    parts: dict[int, list[Conditions]] = {}
    n_parts = 0
    for place, index in enumerate(order):
        left = [ruleset.rules[index].conditions]
        # General rules first: what they leave is often apart from the special ones already.
        before = sorted(order[:place], key=lambda i: ruleset.rules[i].n_literals)
        for other in before:
            against = ruleset.rules[other].conditions
            left = [part for one in left for part in _without(one, against, gaps)]
            if n_parts + len(left) > _MOST_PARTS:
                raise ValueError(
                    f"The first {place + 1} rules fall into more than {_MOST_PARTS} standalone "
                    "parts, which nobody would read. Keep the ordered list, or simplify it first."
                )
        parts[index] = _joined(left, gaps)
        n_parts += len(parts[index])
    rules = []
    for index, rule in enumerate(ruleset.rules):
        found = parts[index]
        seen = rule.statistics if len(found) == 1 else None
        rules += [Rule(conditions, rule.output, seen) for conditions in found]
    return ruleset.replace(rules=rules, ordered=False, disjoint=True)


def _features_with_gaps(ruleset: RuleSet) -> set[int]:
    """Features that may lack a value: the domain tells, or some rule says what holds then."""
    domain = ruleset.domain
    found = set() if domain is None else {j for j, share in enumerate(domain.missing) if share > 0}
    given = [c for rule in ruleset.rules for c in rule.conditions]
    while given:
        condition = given.pop()
        if isinstance(condition, AtLeast):
            given += condition.conditions
        elif isinstance(condition, Missing) or (
            isinstance(condition, Interval | OneOf) and truth_table(condition).missing
        ):
            found.add(condition.feature)
    return found


def _without(one: Conditions, other: Conditions, gaps: Set[int]) -> Iterator[Conditions]:
    """What is left of a premise without another: premises of which no two hold together."""
    if exclude(one, other):
        yield one
        return
    asked: Conditions = ()
    for condition in other:
        if any(implies(given, condition) for given in one):
            continue
        for opposite in _negations(condition, gaps):
            part = _both(one, (*asked, opposite))
            if part is not None:
                yield part
        asked = (*asked, condition)


def _both(one: Conditions, other: Conditions) -> Conditions | None:
    """Two premises at once, each condition once; None if they contradict each other."""
    if exclude(one, other):
        return None
    try:
        conditions = normalized((*one, *other))
    except ValueError:
        return None
    lists: dict[int, OneOf | Missing] = {}
    rest: list[Condition] = []
    for condition in conditions:
        if not isinstance(condition, OneOf):
            rest.append(condition)
            continue
        known = lists.get(condition.feature)
        joint = condition if known is None else _both_lists(known, condition)
        if joint is None:
            return None
        lists[condition.feature] = joint
    return without_implied(normalized((*rest, *lists.values())))


def _both_lists(one: OneOf | Missing, other: OneOf) -> OneOf | Missing | None:
    """What both allow: a list of values, or missing ones alone; None if nothing."""
    if isinstance(one, Missing):
        return one if truth_table(other).missing else None
    missing = truth_table(one).missing and truth_table(other).missing
    if one.negated and other.negated:
        return OneOf(one.feature, (*one.values, *other.values), negated=True, missing=missing)
    if one.negated:
        one, other = other, one
    values = tuple(v for v in one.values if (v in other.values) != other.negated)
    if not values:
        return Missing(one.feature) if missing else None
    return OneOf(one.feature, values, missing=missing)


def _negations(condition: Condition, gaps: Set[int]) -> list[Condition]:
    """Where a condition does not hold: conditions of which no two hold together."""
    if isinstance(condition, Missing):
        return [replace(condition, negated=not condition.negated)]
    if isinstance(condition, OneOf):
        missing = not truth_table(condition).missing and condition.feature in gaps
        return [replace(condition, negated=not condition.negated, missing=missing)]
    if isinstance(condition, AtLeast):
        opposites = []
        for part in condition.conditions:
            found = _negations(part, gaps)
            opposites.append(found[0] if len(found) == 1 else AtLeast(1, tuple(found)))
        return [AtLeast(len(opposites) - condition.m + 1, tuple(opposites))]
    below, above = (
        (condition.lower, condition.lower_closed),
        (
            condition.upper,
            condition.upper_closed,
        ),
    )
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
            # Of two sides, the first takes the missing values.
            accepted = truth_table(condition).missing or bool(sides)
            missing = not accepted and condition.feature in gaps
            bounds = (lower, upper, lower_closed, upper_closed)
            sides.append(Interval(condition.feature, *bounds, missing))
    if isinstance(condition, Linear):  # no sum holds where one of its values is missing
        known: Conditions = ()
        for feature in (f for f in condition.features if f in gaps):
            gone = (*known, Missing(feature))
            sides.append(gone[0] if len(gone) == 1 else AtLeast(len(gone), gone))
            known = (*known, Missing(feature, negated=True))
    return sides


def _joined(parts: list[Conditions], gaps: Set[int]) -> list[Conditions]:
    """Premises of which no two differ in one condition alone, which would be one premise."""
    joined: list[Conditions] = []
    for part in parts:
        place = len(joined)
        while True:
            unions = ((k, _union(one, part, gaps)) for k, one in enumerate(joined))
            found = next(((k, union) for k, union in unions if union is not None), None)
            if found is None:
                break
            place, part = found
            del joined[place]
        joined.insert(place, part)
    return joined


def _union(one: Conditions, other: Conditions, gaps: Set[int]) -> Conditions | None:
    """Two premises as one, if they differ in one condition that can hold for both."""
    if len(one) != len(other):
        return None
    ours = [c for c in one if c not in other]
    theirs = [c for c in other if c not in one]
    if len(ours) != 1 or len(theirs) != 1:
        return None
    joint = united(ours[0], theirs[0])
    if joint is None and _negations(ours[0], gaps) == theirs:
        return tuple(c for c in one if c in other)
    if joint is None:
        return None
    if isinstance(joint, Missing) and joint.negated and joint.feature not in gaps:
        return tuple(c for c in one if c in other)  # any value, and there always is one
    return normalized((*(c for c in one if c in other), joint))
