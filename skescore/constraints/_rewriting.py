"""Rewriting of conditions: features, thresholds and categories."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np

from skescore.constraints._constraints import Constraints
from skescore.constraints._thresholds import AllowedThresholds
from skescore.rules import AtLeast, Condition, Domain, Interval, Linear, OneOf

#: Function that rewrites a condition; it returns None if the new condition could never hold.
Rewrite = Callable[[Any], "list[Condition] | None"]


def rewrite(conditions: Iterable[Condition], change: Rewrite) -> list[Condition] | None:
    """Rewrite all conditions, including those within M-of-N conditions.

    Parameters
    ----------
    conditions : iterable of conditions
        A conjunction.
    change : callable
        Rewrites one condition.

    Returns
    -------
    list of conditions, or None
        None if the conjunction could never hold.
    """
    result: list[Condition] = []
    for condition in conditions:
        if isinstance(condition, AtLeast):
            parts = [rewrite([inner], change) for inner in condition.conditions]
            possible = [part for part in parts if part is not None]
            n_always = sum(not part for part in possible)
            inner_conditions = [part[0] for part in possible if part]
            m = condition.m - n_always
            if m > len(inner_conditions):
                return None
            if m > 0:
                result.append(AtLeast(m, tuple(inner_conditions)))
            continue
        new_condition = change(condition)
        if new_condition is None:
            return None
        result += new_condition
    return result


def keep_features(features: set[int]) -> Rewrite:
    """Return a rewriting that drops conditions on other features.

    Within M-of-N conditions a dropped condition counts as true.
    """

    def change(condition: Any) -> list[Condition]:
        return [condition] if features.issuperset(condition.features) else []

    return change


def move_bounds(bounds: Mapping[tuple[int, float], float]) -> Rewrite:
    """Return a rewriting that replaces bounds of intervals.

    Parameters
    ----------
    bounds : mapping of (int, float) to float
        The new bound by feature and bound.
    """

    def change(condition: Any) -> list[Condition] | None:
        if not isinstance(condition, Interval):
            return [condition]
        feature = condition.feature
        lower = bounds.get((feature, condition.lower), condition.lower)
        upper = bounds.get((feature, condition.upper), condition.upper)
        is_point = condition.lower_closed and condition.upper_closed
        if lower > upper or (lower == upper and not is_point):
            return None
        return [replace(condition, lower=lower, upper=upper)]

    return change


def nearest_bounds(
    bounds: Iterable[float], allowed: AllowedThresholds, values: np.ndarray
) -> dict[float, float]:
    """Return for each bound the allowed bound that moves the fewest rows to the other side.

    Parameters
    ----------
    bounds : iterable of float
        Finite bounds.
    allowed : AllowedThresholds
        The allowed numbers.
    values : ndarray
        Values of the feature in the rows, without missing ones.

    Returns
    -------
    dict of float to float
    """
    ordered = np.sort(values)

    def n_moved(bound: float, target: float) -> tuple[int, float]:
        low, high = sorted((bound, target))
        between = np.searchsorted(ordered, high, "right") - np.searchsorted(ordered, low, "right")
        return abs(int(between)), abs(target - bound)

    return {b: min(allowed.near(b), key=lambda t: n_moved(b, t)) for b in bounds}


def respect_groups(constraints: Constraints, names: Any, domain: Domain | None) -> Rewrite:
    """Return a rewriting that respects categories that belong together or apart.

    Parameters
    ----------
    constraints : Constraints
        The constraints.
    names : sequence of str
        Feature names.
    domain : Domain or None
        Known values of categorical features.
    """

    def change(condition: Any) -> list[Condition] | None:
        if not isinstance(condition, OneOf | Interval):
            return [condition]
        name = names[condition.feature]
        together = constraints.together.get(name, ())
        apart = constraints.apart.get(name, ())
        if groups_hold(condition, together, apart):
            return [condition]
        if isinstance(condition, Interval):
            condition = _widened(condition, together)
            return [condition] if groups_hold(condition, together, apart) else []
        values = known_values(condition, domain)
        if values is None:
            return []
        accepted = _complete_groups([v for v in values if accepts(condition, v)], together)
        accepted = _separated(accepted, apart, together)
        if not accepted:
            return []
        candidate = OneOf(condition.feature, tuple(accepted), missing=condition.missing)
        return [candidate] if groups_hold(candidate, together, apart) else []

    return change


def _widened(condition: Interval, together: Any) -> Interval:
    """Widen an interval so that it contains all numbers of the groups that it separates."""
    for group in together:
        if not groups_hold(condition, [group], ()) and all(type(v) in (int, float) for v in group):
            low, high = min(group), max(group)
            condition = replace(
                condition,
                lower=min(condition.lower, low),
                upper=max(condition.upper, high),
                lower_closed=condition.lower_closed or low <= condition.lower,
                upper_closed=condition.upper_closed or high >= condition.upper,
            )
    return condition


def accepts(condition: OneOf | Interval, value: Any) -> bool:
    """Return whether a condition accepts a value."""
    if isinstance(condition, OneOf):
        return (value in condition.values) != condition.negated
    if not isinstance(value, int | float):
        return False
    is_above = value > condition.lower or (condition.lower_closed and value == condition.lower)
    is_below = value < condition.upper or (condition.upper_closed and value == condition.upper)
    return is_above and is_below


def groups_hold(condition: OneOf | Interval, together: Any, apart: Any) -> bool:
    """Return whether a condition respects groups of values."""
    is_together = all(len({accepts(condition, v) for v in group}) == 1 for group in together)
    return is_together and all(sum(accepts(condition, v) for v in group) <= 1 for group in apart)


def known_values(condition: OneOf, domain: Domain | None) -> list[Any] | None:
    """Return the values of the feature of a condition; None if they are not known."""
    categories = None if domain is None else domain.values_of(condition.feature)
    if categories is not None:
        return list(categories)
    return None if condition.negated else list(condition.values)


def intersect_categories(conditions: Sequence[Condition], domain: Domain | None) -> list[Condition]:
    """Merge categorical conditions on the same feature into one that accepts what all accept.

    Parameters
    ----------
    conditions : sequence of conditions
        A conjunction.
    domain : Domain or None
        Known values.

    Returns
    -------
    list of conditions
        An equivalent conjunction. Conditions are not merged if their values are unknown, or if they
        have no accepted value in common.
    """
    result: list[Condition] = []
    for condition in conditions:
        position = next(
            (
                i
                for i, earlier in enumerate(result)
                if isinstance(earlier, OneOf) and earlier.features == condition.features
            ),
            None,
        )
        intersection = None
        if position is not None and isinstance(condition, OneOf):
            intersection = _intersection(cast(OneOf, result[position]), condition, domain)
        if position is None or intersection is None:
            result.append(condition)
        else:
            result[position] = intersection
    return result


def _intersection(one: OneOf, other: OneOf, domain: Domain | None) -> OneOf | None:
    """Return a condition that accepts what both accept; None if that is unknown or empty."""
    listed = [values for c in (one, other) if (values := known_values(c, domain)) is not None]
    accepted = [v for v in listed[0] if accepts(one, v) and accepts(other, v)] if listed else []
    if not accepted:
        return None
    return OneOf(one.feature, tuple(accepted), missing=one.missing and other.missing)


def _complete_groups(accepted: list[Any], together: Any) -> list[Any]:
    """Add the other values of a group if half of it is accepted, otherwise drop the group."""
    result = dict.fromkeys(accepted)
    for group in together:
        n_accepted = sum(v in result for v in group)
        if 2 * n_accepted >= len(group):
            result |= dict.fromkeys(group)
        else:
            result = {v: None for v in result if v not in group}
    return list(result)


def _separated(accepted: list[Any], apart: Any, together: Any) -> list[Any]:
    """Drop values, and values kept together with them, until at most one of each group is left."""
    result = list(accepted)
    for group in apart:
        accepted_members = [v for v in result if v in group]
        for value in accepted_members[1:]:
            dropped = {value}.union(*(set(g) for g in together if value in g))
            result = [v for v in result if v not in dropped]
    return result


def splits_of(condition: OneOf, apart: Any, domain: Domain | None) -> list[OneOf]:
    """Return conditions that accept one value per group and jointly the values of `condition`.

    Parameters
    ----------
    condition : OneOf
        The condition.
    apart : sequence of sequences of values
        Groups of values; a condition may accept at most one value of each group.
    domain : Domain or None
        Known values.

    Returns
    -------
    list of OneOf
        The condition itself if it accepts at most one value of each group.
    """
    for group in apart:
        accepted_members = [v for v in group if accepts(condition, v)]
        if len(accepted_members) < 2:
            continue
        values = known_values(condition, domain)
        if values is None:
            return [condition]
        others = [v for v in values if accepts(condition, v) and v not in accepted_members[1:]]
        if accepted_members[0] not in values:  # accepted, but not in the domain
            others.append(accepted_members[0])
        parts = [OneOf(condition.feature, tuple(others), missing=condition.missing)]
        parts += [OneOf(condition.feature, (v,)) for v in accepted_members[1:]]
        return [part for one in parts for part in splits_of(one, apart, domain)]
    return [condition]


def trivial_condition(
    feature: int, allowed: AllowedThresholds | None, domain: Domain | None
) -> list[Condition]:
    """Return conditions on a feature that hold in the whole domain, apart from missing values."""
    from skescore.rules import Missing

    result: list[Condition] = []
    if domain is not None and domain.values_of(feature) is None:
        low, high = domain.lower[feature], domain.upper[feature]
        upper = high if allowed is None else max(allowed.near(high))
        lower = low if allowed is None else min(allowed.near(low))
        if upper >= high and math.isfinite(upper):
            result.append(Interval(feature, upper=upper))
        if lower <= low and math.isfinite(lower):
            result.append(Interval(feature, lower=lower, lower_closed=True))
    result.append(Missing(feature, negated=True))
    return result


def drop_linear(condition: Any) -> list[Condition]:
    """Drop a condition on a weighted sum, which boxes cannot express."""
    return [] if isinstance(condition, Linear) else [condition]
