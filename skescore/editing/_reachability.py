"""Unreachable rules and contradictions: proofs over the whole domain, and pairs on rows."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from skescore.rules import AtLeast, Condition, Interval, Missing, OneOf, RuleSet

#: Largest number of boxes that the proof for one rule may make.
_MAX_BOXES = 20_000
#: Text that no rule compares with.
_OTHER_VALUE = "\0 any other value"

#: Values of each feature for which a premise holds, as a bit set over representative values.
Box = dict[int, int]


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
        values if the rules have no domain. Rules that would need too many steps, and combinations
        of linear and M-of-N conditions, count as reachable.

    Notes
    -----
    The bounds and values that rules name divide the values of each feature into finitely many
    kinds. A premise is a product of sets of kinds, and the products of earlier rules are
    subtracted from it.

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
    ordered = [rules[i] for i in rules.assignment_order.tolist()]
    values = {j: _representatives(rules, j) for j in sorted(_tested_features(rules))}
    boxes = [_box(rule.conditions, values) for rule in ordered]
    # An earlier rule with other conditions covers its box only in part.
    extras = [[c for c in rule.conditions if not _is_simple(c)] for rule in ordered]
    full = {j: (1 << len(v)) - 1 for j, v in values.items()}
    unreachable = []
    for position, box in enumerate(boxes):
        earlier = [
            other
            for other, conditions in zip(boxes[:position], extras[:position], strict=True)
            if all(c in extras[position] for c in conditions)
        ]
        if not _remains(box, earlier, full):
            unreachable.append(int(rules.assignment_order[position]) + 1)
    return tuple(sorted(unreachable))


def _is_simple(condition: Condition) -> bool:
    return isinstance(condition, Interval | OneOf | Missing)


def _tested_features(rules: RuleSet) -> set[int]:
    return {c.features[0] for rule in rules for c in rule.conditions if _is_simple(c)}


def _representatives(rules: RuleSet, feature: int) -> np.ndarray:
    """Return one value of each kind that the rules distinguish, among those of the domain."""
    conditions = [
        c for rule in rules for c in rule.conditions if _is_simple(c) and c.features == (feature,)
    ]
    listed = {v for c in conditions if isinstance(c, OneOf) for v in c.values}
    domain = rules.domain
    categories = None if domain is None else domain.values_of(feature)
    values: list[Any]
    if categories is not None:
        values = list(categories)
    elif any(isinstance(v, str) for v in listed):
        values = [*listed, _OTHER_VALUE]
    else:
        bounds = {b for c in conditions if isinstance(c, Interval) for b in (c.lower, c.upper)}
        low, high = -math.inf, math.inf
        if domain is not None:
            low, high = domain.lower[feature], domain.upper[feature]
        values = list(_numbers_between(bounds | {float(v) for v in listed}, low, high))
    mentions = any(isinstance(c, Missing) or getattr(c, "missing", False) for c in conditions)
    if domain is None or domain.missing[feature] > 0 or mentions:
        values.append(None)
    result = np.empty(len(values), dtype=object)
    result[:] = values
    return result


def _numbers_between(bounds: set[float], low: float, high: float) -> Iterator[float]:
    """Yield the bounds, a number between any two neighbors, and numbers beyond them."""
    inside = sorted({b for b in bounds | {low, high} if low <= b <= high and math.isfinite(b)})
    if not inside:
        yield 0.0
        return
    if low == -math.inf:
        yield math.nextafter(inside[0], -math.inf)
    for one, other in itertools.pairwise(inside):
        yield one
        yield one / 2 + other / 2
    yield inside[-1]
    if high == math.inf:
        yield math.nextafter(inside[-1], math.inf)


def _box(conditions: Sequence[Condition], values: dict[int, np.ndarray]) -> Box:
    """Return the kinds of values for which the conditions on single features hold."""
    box: Box = {}
    for condition in conditions:
        if isinstance(condition, AtLeast) or not _is_simple(condition):
            continue
        (j,) = condition.features
        holds = condition.holds(lambda feature: values[feature])
        bits = sum(1 << k for k in np.flatnonzero(holds).tolist())
        box[j] = box.get(j, -1) & bits
    return box


def _remains(box: Box, others: Sequence[Box], full: dict[int, int]) -> bool:
    """Return whether something of a box remains after others are subtracted."""
    boxes = [{j: box.get(j, bits) & bits for j, bits in full.items()}]
    if not all(boxes[0].values()):
        return False
    for other in others:
        remaining: list[Box] = []
        for one in boxes:
            remaining += _subtract(one, other)
        boxes = remaining
        if not boxes:
            return False
        if len(boxes) > _MAX_BOXES:
            return True
    return True


def _subtract(box: Box, other: Box) -> Iterator[Box]:
    """Yield disjoint boxes that make up a box without another one."""
    if any(not box[j] & bits for j, bits in other.items()):
        yield box
        return
    inside = box
    for j, bits in other.items():
        outside = inside[j] & ~bits
        if outside:
            yield {**inside, j: outside}
        inside = {**inside, j: inside[j] & bits}


def contradictions(rules: RuleSet, X: Any) -> tuple[tuple[int, int], ...]:
    """Return pairs of rules without an order that hold for the same rows and conclude differently.

    Parameters
    ----------
    rules : RuleSet
        The rules. Ordered, disjoint and voting ones have no contradictions.
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
