"""Columns of 0 and 1 that say in which part of a feature's range a value lies.

PSyKE's REAL and Trepan (and CART, if asked) learn from such columns. Its ``DiscreteFeature`` knows
which column stands for which values, so that literals on columns become conditions on features.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from skescore._text import listed
from skescore._validation import check_label, python_value
from skescore.rules._columns import Table
from skescore.rules._conditions import AtLeast, Condition, Interval, OneOf
from skescore.rules._domain import Domain

#: A place between two numbers: just before (0) or just after (1) a number.
_Cut: TypeAlias = tuple[float, int]
#: Pieces of the line, from one cut to another, in order and without touching.
_Region: TypeAlias = list[tuple[_Cut, _Cut]]

_EVERYTHING: _Region = [((-math.inf, 0), (math.inf, 1))]

#: A column and whether it must hold 1.
Literal: TypeAlias = tuple[str, bool]


def _without(region: _Region) -> _Region:
    cuts = [(-math.inf, 0), *(cut for piece in region for cut in piece), (math.inf, 1)]
    return [(a, b) for a, b in zip(cuts[::2], cuts[1::2], strict=True) if a < b]


def _common(one: _Region, other: _Region) -> _Region:
    pieces = [(max(a, c), min(b, d)) for a, b in one for c, d in other]
    return sorted((a, b) for a, b in pieces if a < b)


def _meaning(value: Any) -> _Region | None:
    """Numbers that one of PSyKE's values stands for; None for a single label or number."""
    kind = type(value).__name__
    if kind == "Constant" or not hasattr(value, "is_in"):
        return None
    first = int(not value.standard)
    low, high = (float(value.lower), first), (float(value.upper), first)
    if kind == "LessThan":
        return [((-math.inf, 0), (high[0], int(value.standard)))]
    if kind == "GreaterThan":
        return [((low[0], int(value.standard)), (math.inf, 1))]
    if kind in ("Between", "Outside"):
        inside = [(low, high)] if low < high else []
        return inside if kind == "Between" else _without(inside)
    raise TypeError(
        f"A DiscreteFeature must have values of PSyKE's kinds (LessThan, GreaterThan, Between, "
        f"Outside, Constant), got {value!r}."
    )


def _single(value: Any) -> Any:
    """The label or number that a constant stands for."""
    return check_label("a DiscreteFeature's value", getattr(value, "value", value))


def _piece(feature: int, start: _Cut, stop: _Cut) -> Interval:
    return Interval(feature, start[0], stop[0], start[1] == 0, stop[1] == 1)


@dataclass(frozen=True)
class Discretisation:
    """What the columns of 0 and 1 stand for.

    Parameters
    ----------
    features : sequence of DiscreteFeature
        PSyKE's objects; none mean that the columns are features themselves.
    """

    features: Sequence[Any]

    @classmethod
    def of(cls, extractor: Any, given: Iterable[Any] | None) -> Discretisation:
        """Take what the caller gives, by default what the extractor was given."""
        features = list((extractor.discretization or ()) if given is None else given)
        for feature in features:
            if not hasattr(feature, "admissible_values"):
                raise TypeError(
                    f"discretisation must hold PSyKE's DiscreteFeature objects, got {feature!r}."
                )
        columns = [column for feature in features for column in feature.admissible_values]
        twice = sorted({column for column in columns if columns.count(column) > 1})
        if twice:
            raise ValueError(f"discretisation must name each column once, got {listed(twice)}.")
        return cls(features)

    @property
    def names(self) -> list[str]:
        """Names of the features."""
        return [str(feature.name) for feature in self.features]

    @property
    def column_names(self) -> list[str]:
        """Names of the columns, sorted as PSyKE makes them."""
        return sorted(str(c) for feature in self.features for c in feature.admissible_values)

    def check(self, columns: Iterable[str]) -> None:
        """Raise a ValueError for a column that no feature knows."""
        known = set(self.column_names)
        strange = [column for column in columns if column not in known]
        if strange:
            raise ValueError(
                f"discretisation must say what every column stands for; {strange[0]!r} is missing. "
                "Pass discretisation=() for conditions on the columns as they are."
            )

    def conditions(
        self, literals: Iterable[Literal], place: Mapping[str, int]
    ) -> tuple[Condition, ...] | None:
        """Turn literals on columns into conditions on features.

        Parameters
        ----------
        literals : iterable of (str, bool)
            Columns that must hold 1, or 0.
        place : mapping of str to int
            Index of every feature among those of the rules.

        Returns
        -------
        tuple of conditions or None
            None if no value of some feature satisfies its literals.
        """
        wanted = dict(literals)
        conditions: list[Condition] = []
        for feature in self.features:
            asked = [
                (value, wanted[str(column)])
                for column, value in feature.admissible_values.items()
                if str(column) in wanted
            ]
            if not asked:
                continue
            at = place[str(feature.name)]
            if all(_meaning(value) is None for value in feature.admissible_values.values()):
                found = _of_labels(at, asked)
            else:
                found = _of_numbers(at, asked)
            if found is None:
                return None
            conditions += found
        return tuple(conditions)

    def domain(self, names: Sequence[str], X: Any) -> Domain | None:
        """The box around rows of the features; None if a column cannot be measured."""
        table = Table(X, names)
        by_name = {str(feature.name): feature for feature in self.features}
        matrix, categories = np.zeros((len(table), len(names))), {}
        for j, name in enumerate(names):
            feature = by_name.get(name)
            meant = feature.admissible_values.values() if feature is not None else ()
            if meant and all(_meaning(value) is None for value in meant):
                labels = [_single(value) for value in meant]
                seen = pd.unique(pd.Series(table.column(j)).dropna()).tolist()
                categories[j] = list(dict.fromkeys([*labels, *sorted(seen, key=str)]))
                continue
            try:
                matrix[:, j] = table.numbers(j, slice(None))
            except ValueError:
                return None
        if not len(table) or np.isnan(matrix).any():
            return None
        return Domain.around(matrix, categories=categories)

    def frame(self, table: Table, names: Sequence[str]) -> pd.DataFrame:
        """The columns of 0 and 1 for rows of the features, by PSyKE's own tests."""
        columns = {}
        for feature in self.features:
            values = [python_value(v) for v in table.column(names.index(str(feature.name)))]
            for column, value in feature.admissible_values.items():
                holds = getattr(value, "is_in", value.__eq__)
                columns[str(column)] = [int(bool(holds(v))) for v in values]
        return pd.DataFrame(columns)[self.column_names]


def _of_labels(at: int, asked: Sequence[tuple[Any, bool]]) -> list[Condition] | None:
    """Conditions on a feature whose columns stand for one label each."""
    must = tuple({_single(value) for value, held in asked if held})
    must_not = tuple({_single(value) for value, held in asked if not held})
    if len(must) > 1 or set(must) & set(must_not):
        return None
    return [OneOf(at, must)] if must else [OneOf(at, must_not, negated=True)]


def _of_numbers(at: int, asked: Sequence[tuple[Any, bool]]) -> list[Condition] | None:
    """Conditions on a feature whose columns stand for parts of its range."""
    region = _EVERYTHING
    for value, held in asked:
        part = _meaning(value)
        if part is None:
            number = float(_single(value))
            part = [((number, 0), (number, 1))]
        region = _common(region, part if held else _without(part))
    if not region:
        return None
    pieces = [_piece(at, start, stop) for start, stop in region]
    if len(pieces) > 1:
        return [AtLeast(1, tuple(pieces))]
    return [piece for piece in pieces if not piece.is_trivial]
