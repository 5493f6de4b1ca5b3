"""Cuts of numeric columns next to quantiles, at round numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from skescore.extractors import Column
from skescore.sources._reducers import RowSource
from skescore.sources._scale import Scale
from skescore.sources._sums import BinReducer

Floats = NDArray[np.float64]
Sums = NDArray[np.int64]

#: Bins of the first pass over the rows, and passes that divide bins with too many rows.
_N_BINS, _MAX_PASSES = 1000, 3


def cut_at_quantiles(
    source: RowSource, columns: Sequence[Column], scale: Scale, n_cuts: int
) -> list[Column]:
    """Cut numeric columns so that all bins have about the same weight.

    Cuts are round numbers: the ends of at most 1000 bins of equal width. Bins of too much weight
    are divided in the same way, up to three times.
    """
    weight_scale = replace(scale, with_labels=False)
    grids = {j: _grid(c.low, c.high, _N_BINS) for j, c in enumerate(columns) if c.values is None}
    grids = {j: grid for j, grid in grids.items() if len(grid)}
    result = list(columns)
    unfinished = list(grids)
    for n_passes in range(_MAX_PASSES + 1):
        if not unfinished:
            break
        binned = [replace(columns[j], cuts=tuple(grids[j])) for j in unfinished]
        column_sums = source.reduce(BinReducer(None, binned, weight_scale))
        crowded = []
        for j, sums in zip(unfinished, column_sums, strict=True):
            weights = sums[0, :-1, 0]
            heavy = np.flatnonzero(weights * 2 * (n_cuts + 1) > weights.sum())
            finer_grid = grids[j]
            if n_passes < _MAX_PASSES:
                finer_grid = _divide_bins(columns[j], grids[j], heavy)
            if len(finer_grid) > len(grids[j]):
                grids[j] = finer_grid
                crowded.append(j)
            else:
                cuts = _choose_cuts(np.array(grids[j]), weights, n_cuts)
                result[j] = replace(columns[j], cuts=tuple(cuts))
        unfinished = crowded
    return result


def _grid(low: float, high: float, max_points: int) -> list[float]:
    """Return evenly spaced round numbers from `low` to below `high`, at most `max_points`."""
    width = high - low
    if not (0 < width < math.inf and max_points >= 1):
        return []
    exponent = math.floor(math.log10(width / max_points))
    for power in (exponent, exponent + 1):
        for factor in (1, 2, 5):
            step = Fraction(factor) * Fraction(10) ** power
            first, last = math.ceil(Fraction(low) / step), math.ceil(Fraction(high) / step)
            if last - first <= max_points:
                grid = (float(k * step) for k in range(first, last))
                return sorted({x for x in grid if low <= x < high})
    return []


def _divide_bins(column: Column, grid: list[float], heavy: NDArray[np.intp]) -> list[float]:
    """Add cuts to a grid in bins of too much weight."""
    ends = [column.low, *grid, column.high]
    max_points = max(1, (2 * _N_BINS) // max(len(heavy), 1) // 2)
    new_cuts = {
        x for bin_ in heavy for x in _grid(ends[bin_], ends[bin_ + 1], min(max_points, 100))
    }
    return sorted({*grid, *new_cuts})


def _choose_cuts(grid: Floats, weights: Sums, n_cuts: int) -> list[float]:
    """Choose the ends of bins next to quantiles, with few digits if no row decides."""
    weight_below = np.cumsum(weights)[:-1]
    total = int(weights.sum())
    cut_of_weight: dict[int, float] = {}
    for k in range(1, n_cuts + 1):
        quantile = total * k / (n_cuts + 1)
        right = int(np.searchsorted(weight_below, quantile))
        neighbors = [p for p in (right - 1, right) if 0 <= p < len(weight_below)]
        if not neighbors:
            continue
        nearest = min(neighbors, key=lambda p: abs(float(weight_below[p]) - quantile))
        weight = int(weight_below[nearest])
        if not 0 < weight < total or weight in cut_of_weight:
            continue
        cut_of_weight[weight] = _shortest(grid[weight_below == weight])
    return sorted(cut_of_weight.values())


def _shortest(numbers: Floats) -> float:
    """Return the number with the fewest digits; of several, the one nearest to the middle."""
    middle = float(numbers[0] / 2 + numbers[-1] / 2)
    return min(numbers.tolist(), key=lambda x: (len(f"{x:.15g}"), abs(x - middle), x))
