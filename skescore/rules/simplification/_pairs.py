"""Which pairs of rules are worth a merge, and which rules others meet once they are wider."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from skescore.rules._arrays import BoxTable
from skescore.rules._geometry import adjacent_pairs
from skescore.rules._rule import Output, Rule

if TYPE_CHECKING:
    from skescore.rules.simplification._on_rows import RuleRows

#: Up to so many rules all pairs are compared; of more, only adjacent boxes are.
_MOST_COMPARED = 1000


def closest_pairs(rows: RuleRows, limit: int, alike: bool) -> list[tuple[int, int]]:
    """Pairs of rules, adjacent ones first, then those whose hulls add least.

    Parameters
    ----------
    rows : RuleRows
        The rules.
    limit : int
        How many pairs at most.
    alike : bool
        Only rules of one output; else also rules that answer different numbers.

    Returns
    -------
    list of (int, int)
        Places, the smaller one first.
    """
    places = np.flatnonzero(rows.alive)
    codes: dict[Output, int] = {}
    code = np.array([codes.setdefault(rows.rules[i].output, len(codes)) for i in places.tolist()])
    low, high = _unit_boxes(rows.lower[places], rows.upper[places])
    if len(places) <= _MOST_COMPARED:
        one, other = np.triu_indices(len(places), 1)
    else:
        touching = np.sort(adjacent_pairs(low, high)[:, :2], axis=1)
        one, other = np.unique(touching, axis=0).T
    apart = np.zeros(len(one))
    fits = code[one] == code[other]
    if not alike:
        numbers = rows.outputs[places]
        known = numbers[~np.isnan(numbers)]
        spread = float(np.ptp(known)) if len(known) else 0.0
        gap = np.abs(numbers[one] - numbers[other]) / (spread or 1.0)
        fits |= ~np.isnan(gap)
        apart = np.where(np.isnan(gap), 0.0, gap)
    one, other, apart = one[fits], other[fits], apart[fits]
    joint = np.maximum(high[one], high[other]) - np.minimum(low[one], low[other])
    lengths = high - low
    extra = (joint - np.maximum(lengths[one], lengths[other])).sum(axis=1)
    differs = (low[one] != low[other]) | (high[one] != high[other])
    touches = (low[one] <= high[other]) & (low[other] <= high[one])
    adjacent = (differs.sum(axis=1) <= 1) & touches.all(axis=1)
    # Hulls that differ by rounding alone must not change the order.
    worth = np.round(extra + apart, 9)
    order = np.lexsort((other, one, worth, ~adjacent))[:limit]
    return [(int(places[one[i]]), int(places[other[i]])) for i in order]


def _unit_boxes(lower: np.ndarray, upper: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Boxes in units of the range of all finite bounds; free sides reach a bit beyond."""
    bounds = np.concatenate([lower, upper])
    finite = np.isfinite(bounds)
    least = np.where(finite, bounds, np.inf).min(axis=0, initial=np.inf)
    most = np.where(finite, bounds, -np.inf).max(axis=0, initial=-np.inf)
    known = least < most
    # Halves, as the range of very large numbers would overflow.
    start = np.where(known, least, 0.0) / 2
    length = np.where(known, most, 1.0) / 2 - start
    low, high = (np.clip((bound / 2 - start) / length, -0.1, 1.1) for bound in (lower, upper))
    return low, high


class Widened:
    """Rules that may take the place of some, and whether they meet any other.

    What was found is kept; after steps only the rules that they have changed are looked at again.

    Parameters
    ----------
    rows : RuleRows
        The rules as they stand.
    news : sequence of Rule
        The rules that may come.
    places : tuple of int
        The rules whose place they would take.
    """

    def __init__(self, rows: RuleRows, news: Sequence[Rule], places: tuple[int, ...]) -> None:
        self._rows = rows
        self._boxes = BoxTable.from_intervals([n.intervals for n in news], rows.ruleset.n_features)
        self._others = [new.others for new in news]
        self._places = list(places)
        self._seen = 0
        self._apart: np.ndarray | None = None

    def sides(self, number: int) -> tuple[np.ndarray, np.ndarray]:
        """Bounds of one of them."""
        return self._boxes.lower[number], self._boxes.upper[number]

    def apart(self) -> np.ndarray:
        """Which of them meet no rule but those whose place they take."""
        changes = self._rows.changes
        if self._apart is None:
            self._start, self._stop = cuts(self._boxes)
            changed = list(range(len(self._rows.rules)))
            self._met = np.zeros((len(self._boxes), len(changed)), dtype=bool)
        elif self._seen == len(changes):
            return self._apart
        else:
            changed = sorted(set(changes[self._seen :]))
        self._met[:, changed] = self._rows.meets(self._start, self._stop, self._others, changed)
        self._met[:, self._places] = False
        self._seen = len(changes)
        self._apart = np.asarray(~self._met.any(axis=1))
        return self._apart


def cuts(boxes: BoxTable) -> tuple[np.ndarray, np.ndarray]:
    """Boxes as ``start <= x < stop``, with free sides as infinity."""
    start, stop = boxes.entry_cuts()
    return start, np.where(boxes.upper == np.inf, np.inf, stop)
