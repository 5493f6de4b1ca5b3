"""Export of rules to an indented tree, like scikit-learn's ``export_text``."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from skescore.rules._boxes import BoxTable
from skescore.rules._conditions import AtLeast, Condition, Interval, Missing, OneOf, truth_table
from skescore.rules._text import (
    NumberFormat,
    bounds_text,
    closing_lines,
    exact_number,
    feature_name,
    format_label,
    linear_text,
    or_missing,
    plain_number,
)

if TYPE_CHECKING:
    from skescore.rules._ruleset import RuleSet


@dataclass(frozen=True, slots=True)
class Node:
    """Line of a tree: a condition, and at a leaf its rules with their remaining conditions."""

    depth: int
    condition: Interval | None
    rules: tuple[int, ...] = ()
    remaining: tuple[tuple[Interval | Missing, ...], ...] = ()


def split_tree(boxes: BoxTable) -> Iterator[Node]:
    """Yield the nodes of a tree of comparisons that separates all boxes, if possible.

    Notes
    -----
    Splits must not cut boxes. Splits that divide the list of rules into its beginning and its end
    are preferred, because leaves of trees are listed in this order; then splits without a gap
    between the boxes; then the most balanced split. Missing values go to the side of the boxes that
    accept them. If boxes on both sides accept them, there is no split.
    """
    start, stop = boxes.half_open_bounds()
    stop = np.where(boxes.upper == np.inf, np.inf, stop)
    n_features = start.shape[1]
    space = _Region(
        np.full(n_features, -np.inf), np.full(n_features, np.inf), np.ones(n_features, dtype=bool)
    )
    # A stack replaces recursion, which deep trees would exhaust.
    stack: list[tuple[np.ndarray, int, Interval | None, _Region]]
    stack = [(np.arange(len(boxes)), 0, None, space)]
    while stack:
        rules, depth, condition, region = stack.pop()
        split = _best_split(rules, start, stop, boxes.missing) if len(rules) > 1 else None
        if split is None:
            # Conditions on the path to this node are not repeated.
            remaining = tuple(_remaining_conditions(boxes, i, start, stop, region) for i in rules)
            yield Node(depth, condition, tuple(rules.tolist()), remaining)
            continue
        yield Node(depth, condition)
        feature, cut, before = split
        at = rules[before][np.argmax(stop[rules[before], feature])]
        bound, is_closed = boxes.upper[at, feature].item(), boxes.upper_closed[at, feature].item()
        for after in (True, False):
            members = rules[~before if after else before]
            part = _Region(*(array.copy() for array in region))
            (part.low if after else part.high)[feature] = cut
            part.gaps[feature] = boxes.missing[members, feature].any()
            gaps = bool(part.gaps[feature])
            if after:
                side = Interval(feature, lower=bound, lower_closed=not is_closed, missing=gaps)
            else:
                side = Interval(feature, upper=bound, upper_closed=is_closed, missing=gaps)
            stack.append((members, depth + 1, side, part))


class _Region(NamedTuple):
    """Bounds of every feature at a node of the tree, and whether it may be missing."""

    low: np.ndarray
    high: np.ndarray
    gaps: np.ndarray


def _best_split(
    rules: np.ndarray, start: np.ndarray, stop: np.ndarray, missing: np.ndarray
) -> tuple[int, float, np.ndarray] | None:
    """Return the feature, the cut and a mask of the rules below it; None if there is no split."""
    best: tuple[tuple[bool, bool, int], int, float, np.ndarray] | None = None
    for feature in range(start.shape[1]):
        first, last = start[rules, feature], stop[rules, feature]
        order = np.argsort(first, kind="stable")
        reached = np.maximum.accumulate(last[order])[:-1]
        following = first[order][1:]
        for k in np.flatnonzero(reached <= following).tolist():
            before = np.zeros(len(rules), dtype=bool)
            before[order[: k + 1]] = True
            gaps = missing[rules, feature]
            if gaps[before].any() and gaps[~before].any():
                continue
            in_order = bool(before[: k + 1].all() or before[-k - 1 :].all())
            quality = (not in_order, reached[k] < following[k], abs(2 * (k + 1) - len(rules)))
            if best is None or quality < best[0]:
                best = quality, feature, float(reached[k]), before
    return best and best[1:]


def _remaining_conditions(
    boxes: BoxTable,
    rule: int,
    start: np.ndarray,
    stop: np.ndarray,
    region: _Region,
) -> tuple[Interval | Missing, ...]:
    """Return the conditions of a box that its region does not imply."""
    result: list[Interval | Missing] = []
    for interval in boxes.intervals(rule):
        j = interval.feature
        lower = interval.lower if start[rule, j] > region.low[j] else -math.inf
        upper = interval.upper if stop[rule, j] < region.high[j] else math.inf
        if lower > -math.inf or upper < math.inf:
            closed_flags = interval.lower_closed, interval.upper_closed
            missing = interval.missing and bool(region.gaps[j])
            result.append(Interval(j, lower, upper, *closed_flags, missing))
        elif region.gaps[j] and not interval.missing:
            result.append(Missing(j, negated=True))
    return tuple(result)


_ASCII = str.maketrans({"≤": "<=", "≥": ">="})
_BRANCH, _INDENT = "|--- ", "|   "


def to_tree_text(ruleset: RuleSet, number: NumberFormat) -> str:
    """Write a rule set as an indented tree; see :meth:`RuleSet.to_tree_text`."""
    return "\n".join(_lines(ruleset, number))


def _lines(ruleset: RuleSet, number: NumberFormat) -> Iterator[str]:
    if not len(ruleset):
        yield "(no rules)"
    elif ruleset.disjoint and ruleset.boxes_only:
        nodes = list(split_tree(ruleset.boxes))
        if any(len(node.rules) > 1 for node in nodes):
            yield _FIRST_BRANCH_NOTE
        for node in nodes:
            if node.condition is not None:
                condition = condition_text(node.condition, ruleset.feature_names, number)
                yield f"{_INDENT * (node.depth - 1)}{_BRANCH}{condition}"
            yield from _branches(ruleset, _remaining(node), number, node.depth)
    else:
        if len(ruleset) > 1:
            yield _FIRST_BRANCH_NOTE
        rules = [(i, ruleset.rules[i].conditions) for i in ruleset.assignment_order.tolist()]
        yield from _branches(ruleset, rules, number, 0)
    yield from closing_lines(ruleset)


_FIRST_BRANCH_NOTE = "(from the top, the first branch whose conditions all hold predicts)"


def _remaining(node: Node) -> list[tuple[int, Sequence[Condition]]]:
    """Return the rules at a node, with the conditions that its path does not imply."""
    return list(zip(node.rules, node.remaining, strict=True))


def _branches(
    ruleset: RuleSet,
    rules: Iterable[tuple[int, Sequence[Condition]]],
    number: NumberFormat,
    depth: int,
) -> Iterator[str]:
    """Yield the lines of rules, each below the first conditions it shares with the rule before."""
    names = ruleset.feature_names
    before: Sequence[Condition] = ()
    for position, conditions in rules:
        shared = 0
        for old, new in zip(before, conditions, strict=False):
            if old != new:
                break
            shared += 1
        for level, condition in enumerate(conditions[shared:], depth + shared):
            yield f"{_INDENT * level}{_BRANCH}{condition_text(condition, names, number)}"
        yield f"{_INDENT * (depth + len(conditions))}{_BRANCH}{_leaf(ruleset, position)}"
        before = conditions


def _leaf(ruleset: RuleSet, position: int) -> str:
    rule = ruleset.rules[position]
    numeric = ruleset.task == "regression"
    text = f"{'value' if numeric else 'class'}: "
    text += rule.output_text(ruleset.feature_names, numeric=numeric, domain=ruleset.domain)
    statistics = rule.statistics_text(ruleset.output_index(rule), weighted=False)
    return f"{text}   ({statistics})" if statistics else text


def condition_text(
    condition: Condition,
    names: Sequence[str] | None = None,
    number: NumberFormat = plain_number,
) -> str:
    """Write a condition in ASCII."""
    if isinstance(condition, AtLeast):
        inner = "; ".join(condition_text(c, names, number) for c in condition.conditions)
        return f"at least {condition.m} of ({inner})"
    if isinstance(condition, OneOf):
        if len(condition.values) > 1 or not condition.negated:
            return condition.to_text(names)
        text = f"{feature_name(names, condition.feature)} != {format_label(condition.values[0])}"
        return or_missing(text) if truth_table(condition).missing else text
    if isinstance(condition, Missing):
        return condition.to_text(names)
    if isinstance(condition, Interval):
        feature, middle = condition.feature, feature_name(names, condition.feature)
    else:
        sizes = [exact_number(abs(coefficient)) for _, coefficient in condition.terms]
        feature, middle = 0, linear_text(condition.terms, sizes, names)
        number = plain_number
    bounds = bounds_text(
        "\0",  # only operators are converted to ASCII, not the name
        condition.lower,
        condition.upper,
        condition.lower_closed,
        condition.upper_closed,
        lambda value: number(feature, value),
    )
    text = bounds.translate(_ASCII).replace("\0", middle)
    accepts_missing = isinstance(condition, Interval) and truth_table(condition).missing
    return or_missing(text) if accepts_missing else text
