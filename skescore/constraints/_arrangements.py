"""Arrangements of pinned rules: the index of each, and where other rules are needed."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, permutations
from typing import TypeAlias

from skescore.constraints._pinned import PinnedRule

#: Rules from the first rule to the last pinned rule; None represents any other rule.
Arrangement: TypeAlias = tuple[PinnedRule | None, ...]

#: Largest number of arrangements that are listed.
MAX_ARRANGEMENTS = 300


def arrangements(pinned: Sequence[PinnedRule]) -> list[Arrangement] | None:
    """Return all arrangements of pinned rules.

    Parameters
    ----------
    pinned : sequence of PinnedRule
        Different rules; no two have the same position.

    Returns
    -------
    list of Arrangement or None
        None if there are too many. Rules that are not pinned may also be inserted behind the last
        position; they do not change the rows of any pinned rule.

    Examples
    --------
    >>> from skescore.rules import Rule
    >>> first, second = PinnedRule(Rule([], 1), [], 1), PinnedRule(Rule([], 2), [])
    >>> [[rule and rule.rule.output for rule in one] for one in arrangements([first, second])]
    [[None, 1, 2], [2, 1]]
    """
    positioned = {p.position: p for p in pinned if p.position is not None}
    anywhere = [p for p in pinned if p.position is None]
    n_front = max((int(position) for position in positioned), default=-1) + 1
    open_slots = [i for i in range(n_front) if i not in positioned]
    result: list[Arrangement] = []
    for order in permutations(anywhere):
        for size in range(min(len(open_slots), len(order)) + 1):
            for slots in combinations(open_slots, size):
                front: list[PinnedRule | None] = [positioned.get(i) for i in range(n_front)]
                for slot, rule in zip(slots, order, strict=False):
                    front[slot] = rule
                result.append((*front, *order[size:]))
                if len(result) > MAX_ARRANGEMENTS:
                    return None
    return list(dict.fromkeys(result))
