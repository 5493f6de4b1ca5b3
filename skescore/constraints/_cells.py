"""Cells of the domain in which no condition of the rules changes, as bits of integers.

Each feature that a condition tests is divided into cells: ranges of numbers, categories, and the
missing value. A set of cells of one feature is an integer with one bit per cell, so a premise is a
box of such integers. Boxes describe premises without rounding.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise, product
from typing import Any, TypeAlias

import numpy as np

from skescore._validation import label_order
from skescore.rules import (
    AtLeast,
    Condition,
    Domain,
    Interval,
    Linear,
    Missing,
    OneOf,
    Rule,
    truth_table,
)

#: One set of cells per feature of the space.
Box: TypeAlias = tuple[int, ...]

#: Largest number of boxes of one premise with M-of-N conditions.
_MAX_BOXES = 2000


class UndecidableError(ValueError):
    """Error for rules whose predictions are not constant in the cells of their conditions."""


@dataclass(frozen=True)
class Cell:
    """Values of a feature that no condition distinguishes.

    Parameters
    ----------
    lower, upper : float
        Bounds of a range of numbers, included only if they are equal; NaN for other cells.
    value : object
        A value in the cell: a number, a category, or None for a missing value.
    """

    lower: float
    upper: float
    value: Any


class FeatureCells:
    """Cells of one feature.

    Parameters
    ----------
    cells : sequence of Cell
        The cells; numbers in increasing order, and a missing value at the end.
    n_ordered : int
        Number of ordered cells, which are the first ones.

    Attributes
    ----------
    full : int
        Bit mask of all cells.
    ordered : int
        Bit mask of the ordered cells.
    """

    def __init__(self, cells: Sequence[Cell], n_ordered: int) -> None:
        self.cells = tuple(cells)
        self.full = (1 << len(self.cells)) - 1
        self.ordered = (1 << n_ordered) - 1
        self._bits: dict[Condition, int] = {}

    def bits(self, condition: Interval | OneOf | Missing) -> int:
        """Return the bit mask of the cells in which a condition holds."""
        if condition not in self._bits:
            self._bits[condition] = sum(
                1 << i for i, cell in enumerate(self.cells) if cell_holds(condition, cell)
            )
        return self._bits[condition]


def cell_holds(condition: Interval | OneOf | Missing, cell: Cell) -> bool:
    """Return whether a condition holds in a cell."""
    table = truth_table(condition)
    if cell.value is None:
        return table.missing
    if isinstance(condition, Missing):
        return table.passing
    if isinstance(condition, OneOf):
        return table.passing if _is_listed(cell.value, condition) else table.failing
    if isinstance(cell.value, str):
        return table.failing
    number = float(cell.value)
    above = number > condition.lower or (condition.lower_closed and number == condition.lower)
    below = number < condition.upper or (condition.upper_closed and number == condition.upper)
    return table.passing if above and below else table.failing


def _is_listed(value: Any, condition: OneOf) -> bool:
    return any(
        isinstance(v, str) == isinstance(value, str) and v == value for v in condition.values
    )


class CellSpace:
    """Cells of all features that occur in conditions.

    Parameters
    ----------
    conditions : iterable of conditions
        Conditions whose boxes are needed.
    domain : Domain, optional
        Domain that limits the cells; by default all possible rows have a cell.
    further_features : iterable of int, default=()
        Features that get cells even if no condition tests them.

    Raises
    ------
    UndecidableError
        If a condition is linear.

    Examples
    --------
    >>> space = CellSpace([Interval(0, upper=2), Interval(0, upper=5)], Domain((0,), (9,)))
    >>> [cell.value for cell in space.cells[0].cells]
    [1.0, 3.5, 7.0]
    """

    def __init__(
        self,
        conditions: Iterable[Condition],
        domain: Domain | None = None,
        further_features: Iterable[int] = (),
    ) -> None:
        self.domain = domain
        by_feature: dict[int, list[Any]] = {feature: [] for feature in further_features}
        for atom in _atoms(conditions):
            by_feature.setdefault(atom.feature, []).append(atom)
        self.features = tuple(sorted(by_feature))
        self.index = {feature: i for i, feature in enumerate(self.features)}
        self.cells = [self._divide(f, list(dict.fromkeys(by_feature[f]))) for f in self.features]
        self.full: Box = tuple(cells.full for cells in self.cells)

    @classmethod
    def of_rules(
        cls, rules: Iterable[Rule], domain: Domain | None, further_features: Iterable[int] = ()
    ) -> CellSpace:
        """Divide the features by the conditions of rules."""
        return cls((c for rule in rules for c in rule.conditions), domain, further_features)

    def _divide(self, feature: int, atoms: list[Any]) -> FeatureCells:
        """Divide a feature by the conditions that test it."""
        categories = None if self.domain is None else self.domain.values_of(feature)
        is_category = any(isinstance(v, str) for a in atoms for v in getattr(a, "values", ()))
        if categories is not None or is_category:
            cells = self._categories(atoms, categories)
        else:
            cells = _merged(self._ranges(feature, atoms), atoms)
        n_ordered = 0 if any(isinstance(cell.value, str) for cell in cells) else len(cells)
        if self.domain is None or self.domain.missing[feature] > 0:
            cells = [*cells, Cell(math.nan, math.nan, None)]
        return FeatureCells(cells, n_ordered)

    @staticmethod
    def _categories(atoms: list[Any], categories: Sequence[Any] | None) -> list[Cell]:
        if categories is None:
            listed_values = {v for atom in atoms for v in getattr(atom, "values", ())}
            # The last value represents all categories that no condition lists.
            categories = [*sorted(listed_values, key=label_order), _unlisted_text(listed_values)]
        elif not any(isinstance(v, str) for v in categories):
            categories = sorted(categories)
        return [Cell(math.nan, math.nan, value) for value in categories]

    def _ranges(self, feature: int, atoms: list[Any]) -> list[Cell]:
        """Return points and ranges between the bounds of conditions, limited to the domain."""
        bounds = {bound for a in atoms if isinstance(a, Interval) for bound in (a.lower, a.upper)}
        bounds |= {float(v) for a in atoms if isinstance(a, OneOf) for v in a.values}
        low, high = -math.inf, math.inf
        if self.domain is not None:
            low, high = self.domain.lower[feature], self.domain.upper[feature]
        if low == high:
            return [Cell(low, high, low)]
        cuts = sorted(b for b in bounds | {low, high} if low <= b <= high)
        cells = [Cell(b, b, b) for b in cuts if math.isfinite(b)]
        for lower, upper in pairwise(cuts):
            value = _number_between(lower, upper)
            if value is not None:
                cells.append(Cell(lower, upper, value))
        return sorted(cells, key=lambda cell: cell.value)

    def boxes(self, conditions: Iterable[Condition]) -> list[Box]:
        """Return the boxes in which all conditions hold; several for M-of-N conditions.

        Raises
        ------
        UndecidableError
            If there are too many boxes.
        """
        boxes: list[Box] = [self.full]
        for condition in conditions:
            choices = self._choices(condition)
            if len(boxes) * len(choices) > _MAX_BOXES:
                raise UndecidableError(
                    f"A premise consists of more than {_MAX_BOXES} boxes, because of the condition "
                    f"{condition}; write it with fewer alternatives."
                )
            intersections = (self._intersect(b, c) for b, c in product(boxes, choices))
            boxes = [box for box in intersections if all(box)]
        return boxes

    def _choices(self, condition: Condition) -> list[Box]:
        if not isinstance(condition, AtLeast):
            if isinstance(condition, Linear):
                raise _undecidable(condition)
            position = self.index[condition.feature]
            box = list(self.full)
            box[position] &= self.cells[position].bits(condition)
            return [tuple(box)]
        n_choices = math.comb(len(condition.conditions), condition.m)
        if n_choices > _MAX_BOXES:
            raise UndecidableError(
                f"The condition {condition} has {n_choices} alternatives, more than {_MAX_BOXES}."
            )
        return [
            box
            for conditions in combinations(condition.conditions, condition.m)
            for box in self.boxes(conditions)
        ]

    @staticmethod
    def _intersect(one: Box, other: Box) -> Box:
        return tuple(a & b for a, b in zip(one, other, strict=True))

    def values(self, region: Sequence[int]) -> dict[int, Any]:
        """Return a row in a region: one value for each feature of the space."""
        return {
            feature: self.cells[i].cells[lowest_bit(region[i])].value
            for i, feature in enumerate(self.features)
        }


def lowest_bit(bits: int) -> int:
    """Return the index of the lowest bit that is set."""
    return (bits & -bits).bit_length() - 1


def _undecidable(condition: Linear) -> UndecidableError:
    return UndecidableError(
        f"The condition {condition} compares a weighted sum, which is not constant in boxes; "
        "use conditions on single features."
    )


def _atoms(conditions: Iterable[Condition]) -> Iterator[Any]:
    """Yield the conditions on single features."""
    for condition in conditions:
        if isinstance(condition, Linear):
            raise _undecidable(condition)
        if isinstance(condition, AtLeast):
            yield from _atoms(condition.conditions)
        else:
            yield condition


def _unlisted_text(listed: Iterable[Any]) -> str:
    text = "another value"
    while text in listed:
        text += " "
    return text


def _number_between(lower: float, upper: float) -> float | None:
    """Return a number strictly between two others, None if there is no such float."""
    if math.isinf(lower) and math.isinf(upper):
        return 0.0
    if math.isinf(upper):
        value = lower + max(1.0, abs(lower))
    elif math.isinf(lower):
        value = upper - max(1.0, abs(upper))
    else:
        value = lower / 2 + upper / 2
    if not lower < value < upper:
        value = float(np.nextafter(lower, upper)) if math.isfinite(lower) else -math.inf
    return value if lower < value < upper else None


def _merged(cells: list[Cell], atoms: list[Any]) -> list[Cell]:
    """Merge neighboring cells that no condition distinguishes."""
    merged: list[Cell] = []
    previous: tuple[bool, ...] | None = None
    for cell in cells:
        truth = tuple(cell_holds(atom, cell) for atom in atoms)
        if truth == previous:
            before = merged[-1]
            is_wider = cell.upper - cell.lower > before.upper - before.lower
            value = cell.value if is_wider else before.value
            merged[-1] = Cell(before.lower, cell.upper, value)
        else:
            merged.append(cell)
        previous = truth
    return merged
