"""Minimal sets of features whose change changes the answer of rules, the smallest first."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations, count, islice, product
from typing import TypeAlias

import numpy as np

from skescore.attribution._rule_cells import Premise

#: Rows tried at a time by :func:`flips_by_trial`.
_BATCH = 1 << 12

FlipSet: TypeAlias = tuple[int, ...]


@dataclass(frozen=True)
class Flips:
    """What was found for one row.

    Attributes
    ----------
    sets : list of tuple of int
        Minimal flip sets in the order of their size.
    complete_below : int or None
        All minimal flip sets of fewer features are known; None if all of any size are.
    steps : int
        Changes that were looked at.
    """

    sets: list[FlipSet]
    complete_below: int | None
    steps: int


class PremiseFlips:
    """Flip sets of rules whose premises are sets of cells.

    Parameters
    ----------
    premises : sequence of (int, Premise)
        Index of the rule and the cells of its premise, in the order in which rules answer.
    allowed : sequence of int
        For every feature, the cells that a move may lead to, as bits.
    differ : callable
        Gives for a rule (-1 for none) an array that tells which rules answer otherwise; its last
        entry stands for no rule.
    max_steps : int
        Partial changes looked at per row before the search gives up.
    """

    def __init__(
        self,
        premises: Sequence[tuple[int, Premise]],
        allowed: Sequence[int],
        differ: Callable[[int], np.ndarray],
        max_steps: int,
    ) -> None:
        self.premises = premises
        self.allowed = allowed
        self.differ = differ
        self.max_steps = max_steps
        meet = np.tril(self._meet(), -1)
        #: Premises ahead that a row can satisfy together with this one.
        self.ahead = [np.flatnonzero(row).tolist() for row in meet]
        self.covering = self._cover_everything()
        self._known: dict[int, tuple[list[bool], dict[int, list[int]]]] = {}

    def _meet(self) -> np.ndarray:
        """Which premises share a cell of every feature."""
        result = np.ones((len(self.premises), len(self.premises)), dtype=bool)
        for at in sorted({at for _, premise in self.premises for at in premise}):
            limited = np.array([k for k, (_, p) in enumerate(self.premises) if at in p])
            sets = [self.premises[k][1][at] for k in limited]
            width = max(bits.bit_length() for bits in sets)
            cells = np.array([[bits >> c & 1 for c in range(width)] for bits in sets], np.float32)
            result[np.ix_(limited, limited)] &= cells @ cells.T > 0
        return result

    def _cover_everything(self) -> bool:
        """Whether premises that exclude each other leave no reachable cell without a rule."""
        if any(self.ahead):
            return False
        total, everything = 0, 1
        for bits in self.allowed:
            everything *= bits.bit_count()
        for _, premise in self.premises:
            size = 1
            for at, bits in enumerate(self.allowed):
                size *= (premise.get(at, -1) & bits).bit_count()
            total += size
        return total == everything

    def of(self, cells: Sequence[int]) -> Flips:
        """Find the flip sets of a row in the given cells.

        Notes
        -----
        Another answer comes from a premise of a rule that answers otherwise (or from no rule at
        all), where no premise ahead of it with the same answer as now holds. A partial change keeps
        for each feature the cells that it may still be in. Changes are looked at in the order of
        how many features they move, so that a change that needs no more is a minimal one unless it
        holds one found before.
        """
        here = [1 << cell for cell in cells]
        answering = next(
            (rule for rule, p in self.premises if all(b & here[at] for at, b in p.items())), -1
        )
        other = self.differ(answering)
        if answering not in self._known:
            self._known[answering] = [not other[rule] for rule, _ in self.premises], {}
        same, avoided = self._known[answering]
        queue: list[tuple[int, int, int, dict[int, int]]] = []
        serial = count()
        for k, (_, premise) in enumerate(self.premises):
            if same[k]:
                continue
            # Features that break the premise must move; their cells are those that satisfy it.
            moved = {a: b & self.allowed[a] for a, b in premise.items() if not b & here[a]}
            if all(moved.values()):
                queue.append((len(moved), next(serial), k, moved))
        at_home = all(cell & allowed for cell, allowed in zip(here, self.allowed, strict=True))
        if other[-1] and not (self.covering and at_home):
            queue.append((0, next(serial), len(self.premises), {}))
        for _, _, k, _ in queue:
            if k not in avoided:
                ahead = self.ahead[k] if k < len(same) else range(k)
                avoided[k] = [i for i in ahead if same[i]]
        return self._search(here, queue, avoided, serial)

    def _search(
        self,
        here: list[int],
        queue: list[tuple[int, int, int, dict[int, int]]],
        avoided: dict[int, list[int]],
        serial: count[int],
    ) -> Flips:
        heapq.heapify(queue)
        found: list[frozenset[int]] = []
        seen: set[tuple[int, frozenset[tuple[int, int]]]] = set()
        steps = 0
        while queue:
            size, _, k, moved = heapq.heappop(queue)
            if any(known <= moved.keys() for known in found):
                continue
            if steps == self.max_steps:
                return Flips(_sorted(found), size, steps)
            steps += 1
            breaking = self._first_held(here, moved, avoided[k])
            if breaking is None:
                found.append(frozenset(moved))
                continue
            target = self.premises[k][1] if k < len(self.premises) else {}
            for at, bits in breaking.items():
                left = moved.get(at, target.get(at, -1) & self.allowed[at]) & ~bits
                if not left:
                    continue
                child = {**moved, at: left}
                key = k, frozenset(child.items())
                if key not in seen:
                    seen.add(key)
                    heapq.heappush(queue, (len(child), next(serial), k, child))
        return Flips(_sorted(found), None, steps)

    def _first_held(
        self, here: list[int], moved: dict[int, int], indices: list[int]
    ) -> Premise | None:
        """The first premise that some row left by the partial change may satisfy."""
        for i in indices:
            premise = self.premises[i][1]
            if all(bits & moved.get(at, here[at]) for at, bits in premise.items()):
                return premise
        return None


def flips_by_trial(
    options: Sequence[Sequence[int]],
    changed: Callable[[list[dict[int, int]]], np.ndarray],
    max_steps: int,
) -> Flips:
    """Flip sets found by trying every combination of options of ever more features.

    Parameters
    ----------
    options : sequence of sequence of int
        For every feature, what it may change to.
    changed : callable
        Tells for changes (an option for each moved feature) whether the answer is another.
    max_steps : int
        Changes tried before the search gives up.
    """
    found: list[frozenset[int]] = []
    movable = [at for at, choices in enumerate(options) if choices]
    steps = 0
    for size in range(1, len(movable) + 1):
        left = False
        for chosen in combinations(movable, size):
            if any(known <= set(chosen) for known in found):
                continue
            left = True
            tried = product(*(options[at] for at in chosen))
            while batch := [
                dict(zip(chosen, c, strict=True))
                for c in islice(tried, min(_BATCH, max_steps - steps + 1))
            ]:
                if steps + len(batch) > max_steps:
                    return Flips(_sorted(found), size, steps)
                steps += len(batch)
                if changed(batch).any():
                    found.append(frozenset(chosen))
                    break
        if not left:
            break
    return Flips(_sorted(found), None, steps)


def _sorted(found: list[frozenset[int]]) -> list[FlipSet]:
    return sorted((tuple(sorted(s)) for s in found), key=lambda s: (len(s), s))
