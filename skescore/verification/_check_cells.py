"""Cells of the domain by enumeration, for the check of a verification.

This code is independent of the cells of :func:`verify`: each cell has a representative row, its
volume, and its mass near the rows.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from skescore._validation import python_value
from skescore.extractors import CategoryEncoder
from skescore.rules import Condition, Domain, Interval, RuleSet


@dataclass(frozen=True)
class Column:
    """A column of the domain.

    Parameters
    ----------
    name : str
        Name of the column.
    kind : {"number", "integer", "category"}
        Type of the values.
    missing : float
        Share of missing values in the domain.
    has_missing : bool
        Whether the domain or the rows have missing values.
    categories : tuple
        Categories of the column.
    lower, upper : float
        Range of the numbers in the domain.
    bottom, top : float
        Range of the numbers in the domain and the rows.
    spread : float
        Standard deviation of the numbers in the rows; 1 if it is 0.
    """

    name: str
    kind: str
    missing: float
    has_missing: bool
    categories: tuple[Any, ...] = ()
    lower: float = 0.0
    upper: float = 0.0
    bottom: float = 0.0
    top: float = 0.0
    spread: float = 1.0

    def to_dict(self) -> dict[str, Any]:
        """Return the column as in the JSON of a verification."""
        head = {"name": self.name, "missing": self.missing, "kind": self.kind}
        if self.kind == "category":
            return {**head, "values": [python_value(value) for value in self.categories]}
        return {**head, "lower": self.lower, "upper": self.upper}

    def accepts(self, value: Any) -> bool:
        """Return whether a value lies in the domain or the range of the rows."""
        if value is None:
            return self.has_missing
        if self.kind == "category":
            is_flag = isinstance(value, bool)
            return any(value == v and is_flag == isinstance(v, bool) for v in self.categories)
        if type(value) not in (int, float) or not self.bottom <= value <= self.top:
            return False
        return self.kind == "number" or value == round(value)

    def ranges(self, values: np.ndarray, radius: float) -> tuple[np.ndarray, np.ndarray]:
        """Return the range of the neighborhood of each row."""
        if np.isnan(values).all():
            return values, values
        with np.errstate(invalid="ignore"):
            low = np.maximum(values - radius * self.spread, np.nanmin(values))
            high = np.minimum(values + radius * self.spread, np.nanmax(values))
        if self.kind == "integer":
            return np.ceil(low), np.floor(high)
        return low, high


def read_columns(
    rules: RuleSet,
    positions: Sequence[int],
    rows: pd.DataFrame,
    like: Any,
    listed_columns: Iterable[int],
) -> list[Column]:
    """Return the columns of the domain from rules and rows.

    Parameters
    ----------
    rules : RuleSet
        The rules, with or without a domain.
    positions : sequence of int
        Column of each feature of the rules.
    rows : DataFrame
        The rows, as objects.
    like : DataFrame or ndarray
        The rows in their original container.
    listed_columns : iterable of int
        Columns that conditions compare with listed values.

    Returns
    -------
    list of Column
        One per column of the rows.
    """
    categories = dict(CategoryEncoder(like).categories)
    for j in set(listed_columns) - categories.keys():
        values = rows.iloc[:, j].to_numpy(dtype=float)
        categories[j] = tuple(np.unique(values[~np.isnan(values)]).tolist())
    feature_of = {j: feature for feature, j in enumerate(positions)}
    columns = []
    for j, name in enumerate(rows.columns):
        is_missing = rows.iloc[:, j].isna().to_numpy()
        share = float(is_missing.mean())
        feature = feature_of.get(j) if rules.domain is not None else None
        if rules.domain is not None and feature is not None:
            share = float(rules.domain.missing[feature])
        has_missing = bool(is_missing.any() or share > 0)
        if j in categories:
            columns.append(Column(name, "category", share, has_missing, categories[j]))
            continue
        values = rows.iloc[:, j].to_numpy(dtype=float)
        column = _number_column(name, values, rules.domain, feature)
        columns.append(replace(column, missing=share, has_missing=has_missing))
    return columns


def _number_column(
    name: str, values: np.ndarray, domain: Domain | None, feature: int | None
) -> Column:
    """Return a numeric column with the range of the domain, or of the rows without a domain."""
    observed = values[~np.isnan(values)]
    is_whole = bool((np.round(observed) == observed).all())
    if len(observed) and (observed.min() > 2.0**53 or observed.max() < -(2.0**53)):
        is_whole = False  # every number is an integer, but their counts are rounded
    kind = "integer" if is_whole else "number"
    if domain is None or feature is None or domain.values_of(feature) is not None:
        domain, feature = Domain.around(values[:, None]), 0
    lower, upper = float(domain.lower[feature]), float(domain.upper[feature])
    ends = observed if len(observed) else np.zeros(1)
    bottom, top = min(lower, float(ends.min())), max(upper, float(ends.max()))
    if kind == "integer":
        lower, bottom = float(math.ceil(lower)), float(math.ceil(bottom))
        upper, top = float(math.floor(upper)), float(math.floor(top))
    spread = float(observed.std()) if len(observed) else 0.0
    is_usable = spread > 0 and math.isfinite(spread)
    return Column(
        name, kind, 0.0, False, (), lower, upper, bottom, top, spread if is_usable else 1.0
    )


@dataclass(frozen=True)
class ColumnCells:
    """Cells of a column.

    Parameters
    ----------
    values : list
        Smallest number of each cell, or its category, or NaN for missing values.
    ends : list
        Largest number of each cell; None for categories and missing values.
    weights : ndarray of shape (n_cells,)
        Share of the domain in each cell.
    near : ndarray of shape (n_rows, n_cells)
        Share of the neighborhood of each row in each cell.
    """

    values: list[Any]
    ends: list[float | None]
    weights: np.ndarray
    near: np.ndarray

    def meets(self, conditions: Sequence[Condition]) -> np.ndarray:
        """Return which cells contain a value that satisfies all conditions on the column."""
        result = np.ones(len(self.values), dtype=bool)
        column = np.empty(len(self.values), dtype=object)
        column[:] = self.values
        if not any(isinstance(value, str) for value in self.values):
            column = column.astype(float)
        is_number = np.array([end is not None for end in self.ends])
        low, high = np.full(len(self.values), -math.inf), np.full(len(self.values), math.inf)
        low[is_number] = [v for v, n in zip(self.values, is_number, strict=True) if n]
        high[is_number] = [end for end in self.ends if end is not None]
        for condition in conditions:
            if isinstance(condition, Interval) and is_number.any():
                lower, upper = _closed(condition)
                low, high = np.maximum(low, lower), np.minimum(high, upper)
                others = replace(condition, feature=0).holds(lambda _: column)
                result &= is_number | others
            else:
                result &= replace(condition, feature=0).holds(lambda _: column)  # type: ignore[arg-type]
        return np.asarray(result & (~is_number | (low <= high)))

    def are_covered(self, intervals: Sequence[Interval], rounding: float) -> bool:
        """Return whether the numeric cells that meet intervals lie in them, up to rounding."""
        meets = self.meets(intervals)
        for start, end, is_met in zip(self.values, self.ends, meets, strict=True):
            if end is None or not is_met:
                continue
            for lower, upper in map(_closed, intervals):
                if lower > start + rounding or upper < end - rounding:
                    return False
        return True


def _closed(condition: Interval) -> tuple[float, float]:
    """Return the smallest and the largest number that satisfy an interval."""
    lower, upper = condition.lower, condition.upper
    if not condition.lower_closed and math.isfinite(lower):
        lower = math.nextafter(lower, math.inf)
    if not condition.upper_closed and math.isfinite(upper):
        upper = math.nextafter(upper, -math.inf)
    return lower, upper


def cells_of_column(
    column: Column, values: pd.Series, edges: Sequence[float], radius: float
) -> ColumnCells:
    """Return the cells of a column.

    Parameters
    ----------
    column : Column
        The column.
    values : Series
        Values of the column in the rows.
    edges : sequence of float
        Cuts of rules and model, in ascending order.
    radius : float
        Radius of the neighborhood of a row.

    Returns
    -------
    ColumnCells
        The cells.
    """
    is_missing = values.isna().to_numpy()
    cells: list[tuple[Any, float | None, float, np.ndarray]] = []
    if column.has_missing:
        cells.append((np.nan, None, column.missing, is_missing * 1.0))
    if column.kind == "category":
        weight = (1 - column.missing) / max(len(column.categories), 1)
        for value in column.categories:
            cells.append((value, None, weight, (values == value).to_numpy() * 1.0))
    else:
        cells += _number_cells(column, values.to_numpy(dtype=float), edges, radius)
    return ColumnCells(
        [cell[0] for cell in cells],
        [cell[1] for cell in cells],
        np.array([cell[2] for cell in cells]),
        np.array([cell[3] for cell in cells]).T,
    )


def _number_cells(
    column: Column, values: np.ndarray, edges: Sequence[float], radius: float
) -> list[tuple[float, float, float, np.ndarray]]:
    """Return the intervals of a numeric column, or its integers."""
    share, lower, upper, top = 1 - column.missing, column.lower, column.upper, column.top
    low, high = column.ranges(values, radius)
    inner = [edge for edge in edges if column.bottom < edge <= top]
    cells = []
    for start, stop in itertools.pairwise([column.bottom, *inner, math.inf]):
        if column.kind == "integer":
            # Beyond 2^53, subtracting 1 does not change a number.
            before = (
                top if stop > top else min(math.ceil(stop) - 1, math.nextafter(stop, -math.inf))
            )
            first, last = float(math.ceil(start)), float(before)
            if first > last:
                continue
            n = max(min(last, upper) - max(first, lower) + 1, 0)
            weight = share * n / (upper - lower + 1)
            overlap = np.minimum(last, high) - np.maximum(first, low) + 1
            near = np.maximum(overlap, 0) / (high - low + 1)
            cells.append((first, last, weight, np.nan_to_num(near)))
            continue
        end = min(stop, top)
        length = upper - lower
        is_point = start <= lower < stop
        weight = max(min(end, upper) - max(start, lower), 0) / length if length else is_point
        overlap = np.maximum(np.minimum(end, high) - np.maximum(start, low), 0)
        with np.errstate(invalid="ignore", divide="ignore"):
            is_inside = (start <= low) & (low < stop)
            near = np.where(high > low, overlap / (high - low), is_inside * 1.0)
        last = min(math.nextafter(stop, -math.inf), top)
        cells.append((start, last, share * weight, np.nan_to_num(near)))
    return cells


@dataclass(frozen=True)
class Cells:
    """Cells of the domain.

    Parameters
    ----------
    rows : DataFrame
        One row per cell.
    volume, near : ndarray of shape (n_cells,)
        Share of the domain, and mass near the rows, in each cell.
    columns : sequence of ColumnCells
        Cells of each column.
    positions : sequence of ndarray of int, shape (n_cells,)
        For each column, the index of the column's cell for each cell.
    """

    rows: pd.DataFrame
    volume: np.ndarray
    near: np.ndarray
    columns: Sequence[ColumnCells]
    positions: Sequence[np.ndarray]

    @classmethod
    def combine(cls, names: Sequence[str], columns: Sequence[ColumnCells]) -> Cells:
        """Combine the cells of all columns."""
        positions = [
            grid.ravel()
            for grid in np.meshgrid(*(np.arange(len(c.values)) for c in columns), indexing="ij")
        ]
        volume, near = np.ones(len(positions[0])), np.zeros(len(positions[0]))
        table = {}
        for name, column, position in zip(names, columns, positions, strict=True):
            values = np.empty(len(column.values), dtype=object)
            values[:] = column.values
            table[name] = values[position]
            volume *= column.weights[position]
        for r in range(len(columns[0].near)):
            products = np.ones(len(near))
            for column, position in zip(columns, positions, strict=True):
                products *= column.near[r][position]
            near += products
        return cls(pd.DataFrame(table), volume, near, columns, positions)

    def meets(self, conditions: Sequence[Condition]) -> np.ndarray:
        """Return which cells contain a row that satisfies conditions on single columns."""
        result = np.ones(len(self.volume), dtype=bool)
        for j, (column, position) in enumerate(zip(self.columns, self.positions, strict=True)):
            own = [c for c in conditions if c.features == (j,)]
            if own:
                result &= column.meets(own)[position]
        return result
