"""Measures of boxes: volume in the domain and mass near the rows, and random points of both.

The distribution near the rows is defined as follows: choose a row at random, and replace each of
its numbers by a uniform value within a radius and within the observed range. Integers remain
integers, and categories and missing values do not change.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from skescore.verification._grid import CellBoxes, CellGrid

#: Radius of the neighborhood of a row, in standard deviations of each column.
RADIUS = 0.1


@dataclass(frozen=True, eq=False)
class Neighborhoods:
    """Boxes around rows, in which numbers vary and categories and missing values are fixed.

    Parameters
    ----------
    grid : CellGrid
        Cells of all columns.
    points : ndarray of shape (n_rows, n_features)
        Rows with codes for categories, and NaN for missing values.
    low, high : ndarray of shape (n_rows, n_features)
        Bounds of each number in the neighborhood; NaN for categories and missing values.
    """

    grid: CellGrid
    points: np.ndarray
    low: np.ndarray
    high: np.ndarray

    @classmethod
    def around(cls, grid: CellGrid, radius: float) -> Neighborhoods:
        """Return the neighborhoods of all rows for a radius in standard deviations."""
        points = grid.codes.matrix
        scales = column_scales(grid)
        low = np.maximum(points - radius * scales, grid.codes.lower)
        high = np.minimum(points + radius * scales, grid.codes.upper)
        is_whole = grid.codes.is_whole
        low[:, is_whole], high[:, is_whole] = np.ceil(low[:, is_whole]), np.floor(high[:, is_whole])
        low[:, grid.is_category] = high[:, grid.is_category] = np.nan
        return cls(grid, points, low, high)

    def __len__(self) -> int:
        return len(self.points)

    def shares(self, j: int, boxes: CellBoxes, i: int, rows: np.ndarray) -> np.ndarray:
        """Return the share of each row's neighborhood in column `j` that is in box `i`."""
        values = self.points[rows, j]
        is_missing = np.isnan(values)
        if self.grid.is_category[j]:
            bits = self.grid.unpack(j, boxes.words[i])
            codes = np.where(is_missing, len(bits) - 1, values).astype(np.intp)
            return bits[codes].astype(float)
        start, stop = self.grid.bounds(j, boxes, i)
        overlap = self.grid.lengths(j, self.low[rows, j], self.high[rows, j])(start, stop)
        return np.where(is_missing, float(boxes.missing[i, j]), overlap)

    def masses(self, boxes: CellBoxes, i: int, rows: np.ndarray | None = None) -> np.ndarray:
        """Return the share of each row's neighborhood that is in box `i`."""
        if rows is None:
            rows = np.arange(len(self))
        result = np.ones(len(rows))
        for j in range(self.grid.n_features):
            result *= self.shares(j, boxes, i, rows)
        return result

    def draw(
        self, boxes: CellBoxes, i: int, rows: np.ndarray, rng: np.random.Generator
    ) -> np.ndarray:
        """Draw one point per row from the intersection of its neighborhood with box `i`."""
        points = self.points[rows].copy()
        for j in np.flatnonzero(~self.grid.is_category).tolist():
            start, stop = self.grid.bounds(j, boxes, i)
            is_observed = ~np.isnan(points[:, j])
            low = np.maximum(self.low[rows, j], start)
            high = self.high[rows, j]
            values = _uniform(low, high, stop, is_whole=bool(self.grid.codes.is_whole[j]), rng=rng)
            points[is_observed, j] = values[is_observed]
        return points


def column_scales(grid: CellGrid) -> np.ndarray:
    """Return the standard deviation of each column; 1 for constant columns and categories."""
    matrix = grid.codes.matrix
    result = np.ones(grid.n_features)
    for j in np.flatnonzero(~grid.is_category).tolist():
        values = matrix[~np.isnan(matrix[:, j]), j]
        std = float(values.std()) if len(values) else 0.0
        result[j] = std if std > 0 and math.isfinite(std) else 1.0
    return result


def _uniform(
    low: np.ndarray, high: np.ndarray, stop: float, *, is_whole: bool, rng: np.random.Generator
) -> np.ndarray:
    """Draw numbers from `low` to `high`, all of them less than `stop`."""
    shares = rng.random(len(low))
    if stop == -math.inf:  # the box contains only missing values
        return np.full(len(low), np.nan)
    if is_whole:
        first = np.ceil(low)
        last = np.minimum(np.floor(high), math.ceil(stop) - 1 if stop < math.inf else np.inf)
        return np.asarray(np.minimum(first + np.floor(shares * (last - first + 1)), last))
    last = np.minimum(high, math.nextafter(stop, -math.inf))
    return np.asarray(np.clip(low + shares * (last - low), low, last))


def draw_in_domain(
    grid: CellGrid, boxes: CellBoxes, i: int, n_points: int, rng: np.random.Generator
) -> np.ndarray:
    """Draw points of a box by the product measure of the domain.

    Parameters
    ----------
    grid : CellGrid
        The cells.
    boxes : CellBoxes
        Boxes.
    i : int
        Index of the box, whose volume must be positive.
    n_points : int
        Number of points.
    rng : numpy.random.Generator
        Source of random numbers.

    Returns
    -------
    ndarray of shape (n_points, n_features)
        Points with codes for categories, and NaN for missing values.
    """
    points = np.empty((n_points, grid.n_features))
    for j in range(grid.n_features):
        if grid.is_category[j]:
            weights = grid.category_weights[j] * grid.unpack(j, boxes.words[i])
            codes = rng.choice(len(weights), n_points, p=weights / weights.sum()).astype(float)
            points[:, j] = np.where(codes == len(weights) - 1, np.nan, codes)
            continue
        total = grid.cumulative[j]
        low, high = int(boxes.low[i, j]), int(boxes.high[i, j])
        observed_share = total[high] - total[low] if low < high else 0.0
        missing = grid.missing_share[j] if boxes.missing[i, j] else 0.0
        is_missing = rng.random(n_points) * (observed_share + missing) >= observed_share
        start, stop = grid.bounds(j, boxes, i)
        values = _uniform(
            np.full(n_points, max(start, grid.domain_lower[j])),
            np.full(n_points, grid.domain_upper[j]),
            stop,
            is_whole=bool(grid.codes.is_whole[j]),
            rng=rng,
        )
        points[:, j] = np.where(is_missing, np.nan, values)
    return points
