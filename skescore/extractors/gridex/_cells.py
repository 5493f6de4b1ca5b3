"""Cutting boxes into grid cells, and joining cells that belong together.

Cells are told apart by integer slice numbers, so that two cells touch exactly or not at all, and
only cells with rows are ever made: a grid of 2**40 cells costs no more than its rows.
"""

from __future__ import annotations

import heapq
from typing import Any

import numpy as np

from skescore.extractors.gridex._neighbours import (
    EdgeJoiner,
    FaceIndex,
    HalvesIndex,
    NeighbourIndex,
    adjacent_cells,
    join_edges,
)
from skescore.extractors.gridex._statistics import BoxStatistics, JoinableTable

_CHUNK = 16384


def slice_numbers(
    points: np.ndarray,
    box: np.ndarray | None,
    lower: np.ndarray,
    upper: np.ndarray,
    n_slices: np.ndarray,
) -> np.ndarray:
    """Number of the slice that every point lies in, per cut feature.

    Parameters
    ----------
    points : ndarray of shape (n_points, n_features)
        Points inside their boxes.
    box : ndarray of int, shape (n_points,), optional
        The box of each point; None if there is one box.
    lower, upper : ndarray of shape (n_boxes, n_features)
        The boxes.
    n_slices : ndarray of int, shape (n_features,)
        Equal slices per feature; features with 1 are not cut.

    Returns
    -------
    ndarray of int, shape (n_cut_features, n_points)
        From 0 to the feature's number of slices less 1. Slices are half-open, ``[a, b)``.
    """
    cut = np.flatnonzero(n_slices > 1)
    small = np.uint8 if n_slices.max(initial=1) < 256 else np.int32
    result = np.empty((len(cut), len(points)), dtype=small)
    step = slice_width(lower, upper, n_slices)
    for begin in range(0, len(points), _CHUNK):
        rows = slice(begin, begin + _CHUNK)
        chunk = points[rows]
        owner: Any = 0 if box is None else box[rows]
        for position, j in enumerate(cut):
            x, a, width = chunk[:, j], lower[owner, j], step[owner, j]
            last = n_slices[j] - 1
            if last == 1:  # two slices: one comparison says it all
                result[position, rows] = x >= a + width
                continue
            with np.errstate(invalid="ignore"):  # infinite widths give 0 * inf, which is no slice
                number = np.clip(np.floor((x - a) / width), 0, last)
                # The division may round across an edge; the edges themselves decide.
                number -= (x < a + number * width) & (number > 0)
                number += (x >= a + (number + 1) * width) & (number < last)
            result[position, rows] = number
    return result


def slice_width(lower: np.ndarray, upper: np.ndarray, n_slices: np.ndarray) -> np.ndarray:
    """Width of one slice of each box along each feature.

    Infinite where a box is so thin that floats cannot tell the edges of its slices apart: then
    nothing lies beyond the first edge, and the box stays whole along that feature.
    """
    width = upper / n_slices - lower / n_slices
    finest = np.spacing(np.maximum(np.abs(lower), np.abs(upper)))
    return np.where(width > 2 * finest, width, np.inf)


def group_cells(
    box: np.ndarray | None, numbers: np.ndarray, n_slices: np.ndarray, n_points: int, n_boxes: int
) -> tuple[np.ndarray, np.ndarray]:
    """Group points by box and slice numbers.

    Returns
    -------
    cell : ndarray of int, shape (n_points,)
        Index of each point's cell. Cells come in order of box, then of slice numbers with the
        last feature fastest.
    example : ndarray of int, shape (n_cells,)
        Some point of each cell.
    """
    key = np.zeros(n_points, dtype=np.int64) if box is None else box.astype(np.int64)
    size = n_boxes
    for row, k in zip(numbers, n_slices[n_slices > 1].tolist(), strict=True):
        if size > (1 << 62) // k:
            key, size = _ranks(key, size)
        key = key * k + row
        size *= k
    key, size = _ranks(key, size)
    example = np.zeros(size, dtype=np.intp)
    example[key[::-1]] = np.arange(n_points)[::-1]
    return key, example


def _ranks(key: np.ndarray, size: int) -> tuple[np.ndarray, int]:
    """Number the distinct keys in order from 0."""
    if size <= 4 * len(key) + 1024:  # counting beats sorting where keys are dense
        present = np.zeros(size, dtype=bool)
        present[key] = True
        number = np.cumsum(present) - 1
        return number[key], int(number[-1]) + 1
    values, ranks = np.unique(key, return_inverse=True)
    return ranks, len(values)


class CellMerger:
    """Joins touching cells, the pair with the most homogeneous union first.

    Parameters
    ----------
    parent : ndarray of int, shape (n_cells,)
        Box that each cell was cut from; only cells of one parent join.
    low, high : ndarray of int, shape (n_cells, n_features)
        Edge numbers of each cell along the cut features.
    n_slices : ndarray of int, shape (n_features,)
        Slices along the cut features.
    statistics : JoinableTable
        Statistics of the cells.
    threshold : float
        Passed on to the statistics, which decide what may join.
    joiner : callable, default=join_edges
        Gives the edges of a union; the parity tests pass one that rounds.

    Notes
    -----
    The cells form a list; a union goes to its end. Of all admissible pairs the one whose union
    has the least diversity joins, the first in list order on ties. The pairs of cells are sorted
    once; a heap keeps those of unions.
    """

    def __init__(
        self,
        parent: np.ndarray,
        low: np.ndarray,
        high: np.ndarray,
        n_slices: np.ndarray,
        statistics: JoinableTable,
        threshold: float,
        joiner: EdgeJoiner = join_edges,
    ) -> None:
        self._low, self._high = low, high
        self._table = statistics
        self._threshold = threshold
        self._n_cells = len(low)
        #: The box that a box became part of; itself while it stands alone.
        self._joined = list(range(self._n_cells))
        pairs = adjacent_cells(parent, low, high)[:, :2]
        if not len(pairs):
            return
        allowed, diversity = statistics.joinable(pairs, threshold)
        if not allowed.any():
            return
        cells = np.unique(pairs)
        self._index: NeighbourIndex
        if joiner is join_edges and (n_slices == 2).all():
            self._index = HalvesIndex(cells, parent[cells], low[cells], high[cells])
        else:
            self._index = FaceIndex(
                cells, parent[cells], low[cells], high[cells], n_slices.tolist(), joiner
            )
        self._statistics: dict[int, BoxStatistics] = dict(
            zip(cells.tolist(), statistics.each(cells), strict=True)
        )
        self._join(pairs[allowed], diversity[allowed])

    def _join(self, pairs: np.ndarray, diversity: np.ndarray) -> None:
        first, second = pairs.min(axis=1), pairs.max(axis=1)
        order = np.lexsort((second, first, diversity))
        queue = zip(
            diversity[order].tolist(), first[order].tolist(), second[order].tolist(), strict=True
        )
        heap: list[tuple[float, int, int]] = []
        joined = self._joined
        for pair in queue:
            while heap and heap[0] < pair:
                _, i, j = heapq.heappop(heap)
                if joined[i] == i and joined[j] == j:
                    self._unite(i, j, heap)
            _, i, j = pair
            if joined[i] == i and joined[j] == j:
                self._unite(i, j, heap)
        while heap:
            _, i, j = heapq.heappop(heap)
            if joined[i] == i and joined[j] == j:
                self._unite(i, j, heap)

    def _unite(self, i: int, j: int, heap: list[tuple[float, int, int]]) -> None:
        """Replace two boxes by their union; add the union's admissible pairs to the heap."""
        joined, statistics = self._joined, self._statistics
        union = len(joined)
        joined[i] = joined[j] = union
        joined.append(union)
        united = statistics[union] = statistics.pop(i).union(statistics.pop(j))
        # A face may be known whose box has become part of another.
        others = [k for k in self._index.unite(i, j, union) if joined[k] == k]
        if not others:
            return
        diversities = united.union_diversities([statistics[k] for k in others], self._threshold)
        for other, diversity in zip(others, diversities, strict=True):
            if diversity is not None:
                heapq.heappush(heap, (diversity, other, union))

    def result(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, JoinableTable]:
        """The boxes left, in list order.

        Returns
        -------
        group : ndarray of int, shape (n_cells,)
            Index of the box that each cell ended in.
        low, high : ndarray of int, shape (n_boxes, n_features)
            Edge numbers of the boxes.
        statistics : JoinableTable
            Statistics of the boxes.
        """
        joined = self._joined
        if len(joined) == self._n_cells:
            return np.arange(self._n_cells), self._low, self._high, self._table
        for i in range(len(joined) - 1, -1, -1):  # unions come after their parts
            joined[i] = joined[joined[i]]
        left, group = np.unique(joined[: self._n_cells], return_inverse=True)
        cells, unions = left[left < self._n_cells], left[left >= self._n_cells].tolist()
        new_low, new_high = self._index.edges(unions)
        low = np.concatenate([self._low[cells], new_low])
        high = np.concatenate([self._high[cells], new_high])
        statistics = self._table.assemble(cells, [self._statistics[union] for union in unions])
        return group, low, high, statistics
