"""What rules can tell apart: the cells that their thresholds and lists cut each feature into.

Rows in the same cells of all features satisfy the same conditions, as long as each condition looks
at one feature. So a change of a feature is a move to another of its cells, and a premise is one set
of cells per feature; premises that count conditions (M-of-N) are several of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import combinations, pairwise, product
from typing import Any

import numpy as np

from skescore._validation import label_order, python_value
from skescore.rules import RuleSet
from skescore.rules._columns import Table
from skescore.rules._conditions import AtLeast, Condition, Interval, Linear, OneOf

#: Premises that M-of-N conditions of one rule set may be written out into.
_MAX_PREMISES = 4096


class OtherValue:
    """Stands for every value that no rule names."""

    def __repr__(self) -> str:
        return "<any other value>"


OTHER = OtherValue()


class FeatureCells:
    """The cells of one feature, numbered from 0; the last one holds missing values.

    Parameters
    ----------
    feature : int
        Column index.
    cuts : set of float
        Bounds of intervals; empty for a feature whose values are only listed.
    listed : set
        Values in lists.
    known : tuple or None
        All categories, where the rules' domain knows them.
    span : tuple of float or None
        The domain along a numeric feature: moves do not leave it.
    """

    def __init__(
        self,
        feature: int,
        cuts: set[float],
        listed: set[Any],
        known: tuple[Any, ...] | None,
        span: tuple[float, float] | None,
    ) -> None:
        # A feature that is only counted without bounds is a number with one stretch.
        self.feature, self.numeric = feature, bool(cuts) or not listed
        if self.numeric:
            points = cuts | {float(v) for v in listed if not isinstance(v, str)}
            self.cuts = np.array(sorted(points))
            places = [_place(*ends, span) for ends in _stretches(self.cuts)]
            values: list[Any] = [value for value, _ in places]
            reachable = [reached for _, reached in places]
        else:
            names = sorted({*listed, *(known or ())}, key=label_order)
            # Values beyond the known categories do not come, unless a row brings one.
            values, reachable = [*names, OTHER], [True] * len(names) + [known is None]
            self.codes = {value: code for code, value in enumerate(names)}
        #: One value of each cell; the cell of missing values is the last.
        self.values = np.empty(len(values) + 1, dtype=object)
        self.values[:-1], self.values[-1] = values, None
        self.reachable = np.array([*reachable, False])

    def __len__(self) -> int:
        return len(self.values)

    def numbers(self) -> np.ndarray:
        """The values as conditions read them."""
        if self.numeric:
            return np.array([*self.values[:-1], math.nan], dtype=float)
        return self.values

    def locate(self, table: Table) -> np.ndarray:
        """The cell of every row."""
        missing = len(self) - 1
        if self.numeric:
            column = table.numbers(self.feature, slice(None))
            left = np.searchsorted(self.cuts, column)
            cells = 2 * left
            on_cut = left < len(self.cuts)
            on_cut[on_cut] = self.cuts[left[on_cut]] == column[on_cut]
            cells[on_cut] += 1
            cells[np.isnan(column)] = missing
            return np.asarray(cells)
        other = missing - 1
        return np.array(
            [
                missing if value is None or value != value else self.codes.get(value, other)
                for value in map(python_value, table.column(self.feature).tolist())
            ],
            dtype=np.intp,
        )


def _stretches(cuts: np.ndarray) -> Iterator[tuple[float, float]]:
    """Ends of every cell along a number line, first the stretch below all cuts; cuts in between."""
    ends = [-math.inf, *cuts.tolist(), math.inf]
    for low, high in pairwise(ends):
        yield low, high
        if high < math.inf:
            yield high, high


def _place(low: float, high: float, span: tuple[float, float] | None) -> tuple[float, bool]:
    """A value of a cell, in the domain if it may be, and whether a move can lead there."""
    if low == high:
        return low, span is None or span[0] <= low <= span[1]
    if span is not None and max(low, span[0]) <= min(high, span[1]):
        inner_low, inner_high = max(low, span[0]), min(high, span[1])
        # The ends themselves belong to cells of their own, unless they are the domain's.
        for value in (inner_low / 2 + inner_high / 2, inner_low, inner_high):
            if low < value < high:
                return value, True
    if math.isinf(low) and math.isinf(high):
        value = 0.0
    elif math.isinf(low):
        value = min(high - 1.0, math.nextafter(high, -math.inf))
    elif math.isinf(high):
        value = max(low + 1.0, math.nextafter(low, math.inf))
    else:
        value = low / 2 + high / 2
    inside = low < value < high  # no number lies between neighbouring ones
    return value, inside and span is None


def feature_cells(ruleset: RuleSet, *, beyond_domain: bool) -> list[FeatureCells]:
    """The cells of every feature that a condition on one feature looks at."""
    cuts: dict[int, set[float]] = {}
    listed: dict[int, set[Any]] = {}
    for rule in ruleset.rules:
        for condition in rule.conditions:
            _note(condition, cuts, listed)
    domain = None if beyond_domain else ruleset.domain
    result = []
    for j in sorted(cuts.keys() | listed.keys()):
        known = ruleset.domain.values_of(j) if ruleset.domain is not None else None
        span = None if domain is None or known else (domain.lower[j], domain.upper[j])
        result.append(FeatureCells(j, cuts.get(j, set()), listed.get(j, set()), known, span))
    return result


def _note(condition: Condition, cuts: dict[int, set[float]], listed: dict[int, set[Any]]) -> None:
    if isinstance(condition, AtLeast):
        for part in condition.conditions:
            _note(part, cuts, listed)
    elif isinstance(condition, Interval):
        ends = {bound for bound in (condition.lower, condition.upper) if math.isfinite(bound)}
        cuts.setdefault(condition.feature, set()).update(ends)
    elif isinstance(condition, OneOf):
        listed.setdefault(condition.feature, set()).update(condition.values)


#: A premise: for features (by their place among the cells), the cells that satisfy it, as bits.
Premise = dict[int, int]


def premises(ruleset: RuleSet, cells: list[FeatureCells]) -> list[tuple[int, Premise]] | None:
    """Every rule as premises over cells, in the order in which rules answer.

    Returns
    -------
    list of (int, Premise) or None
        With the index of the rule; None where rules cannot be written so: they answer together, a
        condition weighs several features, or there would be too many.
    """
    if ruleset.voting is not None:
        return None
    place = {cell.feature: at for at, cell in enumerate(cells)}
    result: list[tuple[int, Premise]] = []
    for index in ruleset._priority.tolist():
        written = _written_out(ruleset.rules[index].conditions, cells, place)
        if written is None or len(result) + len(written) > _MAX_PREMISES:
            return None
        result += [(index, premise) for premise in written]
    return result


def _written_out(
    conditions: tuple[Condition, ...], cells: list[FeatureCells], place: dict[int, int]
) -> list[Premise] | None:
    """A conjunction as premises, at least one of which must hold."""
    result: list[Premise] = [{}]
    for condition in conditions:
        if isinstance(condition, Linear):
            return None
        if isinstance(condition, AtLeast):
            ways = 0
            choices: list[Premise] = []
            for chosen in combinations(condition.conditions, condition.m):
                written = _written_out(chosen, cells, place)
                if written is None or (ways := ways + len(written)) > _MAX_PREMISES:
                    return None
                choices += written
        else:
            at = place[condition.feature]
            values = cells[at].numbers()
            holds = condition.holds(lambda _, values=values: values)  # type: ignore[misc]
            choices = [{at: as_bits(holds)}]
        if len(result) * len(choices) > _MAX_PREMISES:
            return None
        joined = (_both(one, two) for one, two in product(result, choices))
        result = _distinct(premise for premise in joined if premise is not None)
    return result


def _both(one: Premise, two: Premise) -> Premise | None:
    """Two premises at once; None if they contradict each other."""
    result = dict(one)
    for at, bits in two.items():
        result[at] = result.get(at, -1) & bits
        if not result[at]:
            return None
    return result


def _distinct(found: Iterator[Premise]) -> list[Premise]:
    return list({tuple(sorted(premise.items())): premise for premise in found}.values())


def as_bits(flags: np.ndarray) -> int:
    """Flags as one whole number, the first flag as its lowest bit."""
    return sum(1 << int(i) for i in np.flatnonzero(flags))
