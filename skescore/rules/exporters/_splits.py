"""The tree that parts boxes which never hold together."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from skescore.rules._arrays import BoxTable
from skescore.rules._conditions import Interval


@dataclass(frozen=True, slots=True)
class Node:
    """One line of a tree.

    Parameters
    ----------
    depth : int
        Number of conditions on the way here, its own included.
    condition : Interval or None
        What leads here from the node above; None for the root.
    rules : tuple of int
        The rules that end here, in order; none where the node is split.
    remaining : tuple of tuple of Interval
        For each of them, what it asks beyond the conditions on the way.
    """

    depth: int
    condition: Interval | None
    rules: tuple[int, ...] = ()
    remaining: tuple[tuple[Interval, ...], ...] = ()


def split_tree(boxes: BoxTable) -> Iterator[Node]:
    """Part boxes by single comparisons until each stands alone, as far as that goes.

    Parameters
    ----------
    boxes : BoxTable
        Boxes, in the order of their rules.

    Yields
    ------
    Node
        Every node before those below it.

    Notes
    -----
    Only splits that cut no box are used, so that boxes on its two sides never hold together. Of
    several, one that parts the list of rules into its beginning and its end comes first (leaves of
    a tree are listed that way), then one that leaves no gap, then the most even.
    """
    start, stop = boxes.entry_cuts()
    stop = np.where(boxes.upper == np.inf, np.inf, stop)
    root = (np.arange(len(boxes)), 0, None, np.full(start.shape[1], -np.inf))
    # Deep trees would exhaust the interpreter's own stack.
    waiting: list[tuple[np.ndarray, int, Interval | None, np.ndarray, np.ndarray]]
    waiting = [(*root, np.full(start.shape[1], np.inf))]
    while waiting:
        rules, depth, condition, low, high = waiting.pop()
        found = _best_split(rules, start, stop) if len(rules) > 1 else None
        if found is None:
            # Conditions that the way here has asked are not repeated.
            remaining = tuple(_remaining(boxes, i, start, stop, low, high) for i in rules)
            yield Node(depth, condition, tuple(rules.tolist()), remaining)
            continue
        yield Node(depth, condition)
        feature, cut, before = found
        at = rules[before][np.argmax(stop[rules[before], feature])]
        bound, closed = boxes.upper[at, feature].item(), boxes.upper_closed[at, feature].item()
        left, right = high.copy(), low.copy()
        left[feature] = right[feature] = cut
        above = Interval(feature, lower=bound, lower_closed=not closed)
        below = Interval(feature, upper=bound, upper_closed=closed)
        waiting.append((rules[~before], depth + 1, above, right, high))
        waiting.append((rules[before], depth + 1, below, low, left))


def _best_split(
    rules: np.ndarray, start: np.ndarray, stop: np.ndarray
) -> tuple[int, float, np.ndarray] | None:
    """The feature, the cut and which rules lie before it; None if every cut goes through a box."""
    best: tuple[tuple[bool, bool, int], int, float, np.ndarray] | None = None
    for feature in range(start.shape[1]):
        first, last = start[rules, feature], stop[rules, feature]
        order = np.argsort(first, kind="stable")
        reached = np.maximum.accumulate(last[order])[:-1]
        following = first[order][1:]
        for k in np.flatnonzero(reached <= following).tolist():
            before = np.zeros(len(rules), dtype=bool)
            before[order[: k + 1]] = True
            in_order = bool(before[: k + 1].all() or before[-k - 1 :].all())
            quality = (not in_order, reached[k] < following[k], abs(2 * (k + 1) - len(rules)))
            if best is None or quality < best[0]:
                best = quality, feature, float(reached[k]), before
    return best and best[1:]


def _remaining(
    boxes: BoxTable,
    rule: int,
    start: np.ndarray,
    stop: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
) -> tuple[Interval, ...]:
    """The sides of a box that lie within the region from `low` to `high`."""
    result = []
    for interval in boxes.intervals(rule):
        j = interval.feature
        lower = interval.lower if start[rule, j] > low[j] else -math.inf
        upper = interval.upper if stop[rule, j] < high[j] else math.inf
        if lower > -math.inf or upper < math.inf:
            closed = interval.lower_closed, interval.upper_closed
            result.append(Interval(j, lower, upper, *closed))
    return tuple(result)
