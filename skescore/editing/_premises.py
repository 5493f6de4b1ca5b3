"""Premises of edited rules: replace conditions, merge premises, prove disjointness."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from skescore.rules import (
    AtLeast,
    Condition,
    Interval,
    Linear,
    LinearOutput,
    Missing,
    OneOf,
    Rule,
    RuleSet,
    truth_table,
)

Premise = Sequence[Condition]


def with_condition(rule: Rule, feature: int, condition: Condition | None) -> Rule:
    """Return the rule with another condition on a feature, or without a condition on it."""
    remaining = [
        c
        for c in rule.conditions
        if not (isinstance(c, Interval | OneOf | Missing) and c.feature == feature)
    ]
    if condition is not None:
        remaining.append(condition)
    return replace(rule, conditions=tuple(remaining))


def interval_of(rule: Rule, feature: int) -> Interval:
    """Return the interval of a feature in a rule, possibly within an M-of-N condition.

    Raises
    ------
    ValueError
        If an M-of-N condition counts several intervals of the feature.
    """
    own = [c for c in rule.intervals if c.feature == feature]
    intervals = [
        c
        for condition in rule.conditions
        if isinstance(condition, AtLeast)
        for c in condition.conditions
        if isinstance(c, Interval) and c.feature == feature
    ]
    if not own and len(intervals) > 1:
        raise ValueError(
            "An M-of-N condition of the rule counts several bounds of this feature, so none of "
            "them can be changed alone. Drop the rule, and add one with the new bounds."
        )
    return next(iter(own or intervals), Interval(feature))


def with_interval(rule: Rule, old: Interval, new: Interval) -> Rule:
    """Return the rule with an interval from :func:`interval_of` replaced by another one."""
    if old in rule.conditions or old.is_trivial:
        return with_condition(rule, old.feature, new)
    conditions = [
        AtLeast(c.m, tuple(new if part == old else part for part in c.conditions))
        if isinstance(c, AtLeast)
        else c
        for c in rule.conditions
    ]
    return replace(rule, conditions=tuple(conditions))


def without_feature(rules: RuleSet, rule: Rule, number: int, feature: int) -> Rule:
    """Return the rule without its conditions on a feature.

    Raises
    ------
    ValueError
        If the rule combines the feature with others, so it cannot be removed alone.
    """
    name = rules.feature_names[feature]
    for condition in rule.conditions:
        if feature in condition.features and len(condition.features) > 1:
            text = condition.to_text(rules.feature_names)
            raise ValueError(
                f"Rule {number} combines {name} with other features in {text}; drop the rule, or "
                "refit without the feature (reoptimize)."
            )
    for part in (rule.output, rule.weight):
        if isinstance(part, LinearOutput) and feature in dict(part.terms):
            raise ValueError(
                f"Rule {number} computes its output or weight from {name}; give it a constant with "
                "set_output, or refit without the feature (reoptimize)."
            )
    remaining = tuple(c for c in rule.conditions if feature not in c.features)
    return rule if len(remaining) == len(rule.conditions) else replace(rule, conditions=remaining)


def mentions_missing(rules: RuleSet, feature: int) -> bool:
    """Return whether the domain or a rule mentions missing values of a feature."""
    if rules.domain is not None and rules.domain.missing[feature] > 0:
        return True
    return any(
        isinstance(c, Missing) or getattr(c, "missing", False)
        for rule in rules
        for c in rule.conditions
        if c.features == (feature,)
    )


def may_be_missing(rules: RuleSet, rule: Rule, feature: int) -> bool:
    """Return whether a rule may cover rows without a value of a feature.

    Without a domain, any feature may have missing values.
    """
    excludes_missing = any(
        isinstance(c, Interval | OneOf | Missing)
        and c.feature == feature
        and not truth_table(c).missing
        for c in rule.conditions
    )
    return not excludes_missing and (rules.domain is None or mentions_missing(rules, feature))


def move_shared_bound(
    rules: RuleSet, result: list[Rule], index: int, old: Interval, new: Interval
) -> list[Rule]:
    """Also move the same bound of all other rules, which share the split of a tree."""
    for side in ("lower", "upper"):
        before, after = getattr(old, side), getattr(new, side)
        if not (math.isfinite(before) and math.isfinite(after)):
            continue
        # Represent the bound as the upper end of the region below the cut.
        was_below = getattr(old, f"{side}_closed") == (side == "upper")
        is_below = getattr(new, f"{side}_closed") == (side == "upper")
        for i, rule in enumerate(result):
            condition = next((c for c in rule.intervals if c.feature == old.feature), None)
            if i == index or condition is None:
                continue
            changes: dict[str, object] = {}
            if condition.upper == before and condition.upper_closed == was_below:
                changes |= {"upper": after, "upper_closed": is_below}
            if condition.lower == before and condition.lower_closed != was_below:
                changes |= {"lower": after, "lower_closed": not is_below}
            if not changes:
                continue
            try:
                moved: Interval = replace(condition, **changes)  # type: ignore[arg-type]
                result[i] = with_condition(rule, old.feature, moved)
            except ValueError as error:
                raise ValueError(
                    f"The rules share this bound, and rule {i + 1} would become empty: {error} "
                    "Drop that rule first, or pass shared=False."
                ) from error
    return result


def hull_of(rules: RuleSet, one: Premise, other: Premise) -> tuple[Condition, ...]:
    """Return the conditions of the smallest premise that both premises imply.

    Intervals are widened to the smallest one that contains both, lists of values are merged, and
    conditions of only one premise are dropped.
    """
    hull: list[Condition] = [c for c in one if c in other]
    for a in one:
        for b in other:
            if a in hull or b in hull or a.features != b.features:
                continue
            united = _unite(rules, a, b)
            if united is not None:
                hull.append(united)
    return tuple(hull)


def _unite(rules: RuleSet, a: Condition, b: Condition) -> Condition | None:
    """Return the smallest condition on one feature that both imply; None if there is none."""
    if isinstance(a, AtLeast | Linear) or isinstance(b, AtLeast | Linear):
        return None
    parts = [c for c in (a, b) if not isinstance(c, Missing)]
    missing = truth_table(a).missing or truth_table(b).missing
    is_known = any(isinstance(c, Missing) and c.negated for c in (a, b))
    united: Interval | OneOf | None = None
    if len(parts) == 1 and not is_known:
        united = replace(parts[0], missing=missing)
    elif isinstance(a, Interval) and isinstance(b, Interval):
        low = min(a, b, key=lambda c: (c.lower, not c.lower_closed))
        high = max(a, b, key=lambda c: (c.upper, c.upper_closed))
        if not (math.isinf(low.lower) and math.isinf(high.upper)):
            united = replace(low, upper=high.upper, upper_closed=high.upper_closed, missing=missing)
    elif isinstance(a, OneOf) and isinstance(b, OneOf):
        united = _unite_values(a, b)
    if united is not None:
        return united
    may_lack = rules.domain is None or mentions_missing(rules, a.features[0])
    return Missing(a.features[0], negated=True) if may_lack and not missing else None


def _unite_values(a: OneOf, b: OneOf) -> OneOf | None:
    """Merge two lists of values; None if no value is excluded anymore."""
    missing = a.missing or b.missing
    if not a.negated and not b.negated:
        return OneOf(a.feature, (*a.values, *b.values), missing=missing)
    if a.negated and b.negated:
        excluded = [v for v in a.values if v in b.values]
    else:
        listed, negated = (a, b) if b.negated else (b, a)
        excluded = [v for v in negated.values if v not in listed.values]
    return OneOf(a.feature, tuple(excluded), True, missing) if excluded else None


def are_disjoint(one: Premise, other: Premise) -> bool:
    """Return whether a single feature proves that two premises never hold together."""
    return any(
        _exclude(a, b)
        for a in one
        for b in other
        if not isinstance(a, AtLeast) and not isinstance(b, AtLeast) and a.features == b.features
    )


def _exclude(a: Condition, b: Condition) -> bool:
    """Return whether no value satisfies two conditions on the same feature."""
    if len(a.features) != 1 or len(b.features) != 1:
        return False
    try:
        Rule((a, b), 0)
    except ValueError:
        return True
    if isinstance(a, OneOf) and isinstance(b, OneOf):
        if a.missing and b.missing:
            return False
        if not a.negated and not b.negated:
            return not set(a.values) & set(b.values)
        if a.negated != b.negated:
            listed, negated = (a, b) if b.negated else (b, a)
            return set(listed.values) <= set(negated.values)
    return False
