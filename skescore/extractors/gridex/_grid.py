"""Levels of grid extraction: cut boxes into cells, query points in cells, and join cells.

Rows and queried points are not copied per cell; they store the number of their box.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np

from skescore._deadline import check_deadline
from skescore._random import combine, uniform_points
from skescore.extractors._base import Extraction
from skescore.extractors._histogram_tree import FetchHistograms, Path, Sums
from skescore.extractors.gridex._statistics import JoinableTable, StatisticsTable
from skescore.rules import BoxTable

# Cells are identified by integer slice numbers, so adjacency is exact. Only cells with rows are
# created, so the cost of a grid of 2**40 cells depends only on its rows. Two boxes touch if they
# differ in a single feature, along which they share an edge. Hashing finds these pairs.

_MASK = (1 << 64) - 1
_CHUNK = 16384
#: Smallest share of the total scatter that a cut must remove.
_MIN_GAIN_SHARE = 0.002


def _multipliers(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the fixed random odd factors of the hash that finds touching cells."""
    generator = np.random.default_rng(20240229)
    draw = generator.integers(0, 1 << 63, size=(2, n), dtype=np.uint64)
    draw = draw * np.uint64(2) + np.uint64(1)
    return draw[0], draw[1]


def adjacent_cells(parent: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Return the pairs of touching cells with the same parent.

    Each row of the result holds the lower cell, the upper cell and the feature that differs.
    """
    n_features = low.shape[1]
    cell_hash, by_low, by_high = _hashes(parent, low, high)
    pairs = [np.empty((0, 3), dtype=np.intp)]
    for j in range(n_features):
        line_hash = cell_hash - by_low[:, j] - by_high[:, j]
        order = np.argsort(line_hash)
        same = line_hash[order[1:]] == line_hash[order[:-1]]
        if not same.any():
            continue
        # Only cells that are in line with another cell are sorted.
        line = order[np.append(same, False) | np.append(False, same)]
        line = line[np.lexsort((low[line, j], line_hash[line]))]
        first, second = line[:-1], line[1:]
        touching = (line_hash[first] == line_hash[second]) & (high[first, j] == low[second, j])
        first, second = first[touching], second[touching]
        pairs.append(np.column_stack([first, second, np.full(len(first), j)]))
    return np.concatenate(pairs)


def _hashes(
    parent: np.ndarray, low: np.ndarray, high: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the hash of every cell and the contributions of its edges.

    Edges count from 1, because an edge that contributes 0 would equal a missing one.
    """
    n_features = low.shape[1]
    for_low, for_high = _multipliers(n_features + 1)
    with np.errstate(over="ignore"):
        by_low = (low + 1).astype(np.uint64) * for_low[:-1]
        by_high = (high + 1).astype(np.uint64) * for_high[:-1]
        cell_hash = (
            by_low.sum(axis=1) + by_high.sum(axis=1) + parent.astype(np.uint64) * for_low[-1]
        )
    return cell_hash, by_low, by_high


class NeighborIndex(Protocol):
    """Index of the neighbors of boxes while boxes are joined."""

    def unite(self, i: int, j: int, union: int) -> list[int]:
        """Replace two boxes by their union; return its neighbors, which may be joined already."""

    def edges(self, boxes: list[int]) -> tuple[np.ndarray, np.ndarray]:
        """Return the lower and upper edge numbers of boxes."""


class FaceIndex:
    """Index of neighbors in any grid by hashes of faces.

    Its arguments are the numbers of the cells that touch another cell, their parents and edge
    numbers. A face is identified by the hash of all edges of its box except the opposite one. Faces
    on the border of the parent touch no box.
    """

    def __init__(
        self,
        cells: np.ndarray,
        parent: np.ndarray,
        low: np.ndarray,
        high: np.ndarray,
        edges: Edges,
    ) -> None:
        self._join, last_edge = edges.join, edges.n_slices.tolist()
        cell_hash, by_low, by_high = _hashes(parent, low, high)
        boxes = zip(low.tolist(), high.tolist(), cell_hash.tolist(), parent.tolist(), strict=True)
        self._boxes = dict(zip(cells.tolist(), boxes, strict=True))
        number = np.broadcast_to(cells[:, None], low.shape)
        inner_low, inner_high = low > 0, high < last_edge
        lower, upper = (
            (cell_hash[:, None] - by_high)[inner_low],
            (cell_hash[:, None] - by_low)[inner_high],
        )
        self._lower_face = dict(zip(lower.tolist(), number[inner_low].tolist(), strict=True))
        self._upper_face = dict(zip(upper.tolist(), number[inner_high].tolist(), strict=True))
        for_low, for_high = (factor.tolist() for factor in _multipliers(low.shape[1] + 1))
        self._for_low, self._for_high = for_low[:-1], for_high[:-1]
        swap = [a - b for a, b in zip(self._for_low, self._for_high, strict=True)]
        self._factors = list(zip(last_edge, self._for_low, self._for_high, swap, strict=True))

    def unite(self, i: int, j: int, union: int) -> list[int]:
        """Replace two boxes by their union; return its neighbors, which may be joined already."""
        low, high, box_hash, parent = self._boxes.pop(i)
        other_low, other_high, _, _ = self._boxes.pop(j)
        at = 0
        while low[at] == other_low[at]:
            at += 1
        new_low, new_high, changed = self._join(parent, at, low, high, other_low, other_high)
        for f in changed:
            box_hash += (new_low[f] - low[f]) * self._for_low[f]
            box_hash += (new_high[f] - high[f]) * self._for_high[f]
        box_hash &= _MASK
        self._boxes[union] = (new_low, new_high, box_hash, parent)
        return self._touching(union, new_low, new_high, box_hash)

    def _touching(self, union: int, low: list[int], high: list[int], box_hash: int) -> list[int]:
        lower_face, upper_face = self._lower_face, self._upper_face
        neighbors = []
        for a, b, (last, for_low, for_high, swap) in zip(low, high, self._factors, strict=True):
            if a:  # find the box that ends where this one begins
                face = box_hash - (b + 1) * for_high
                other = upper_face.get((face - (a + 1) * swap) & _MASK)
                if other is not None:
                    neighbors.append(other)
                lower_face[face & _MASK] = union
            if b != last:  # find the box that begins where this one ends
                face = box_hash - (a + 1) * for_low
                other = lower_face.get((face + (b + 1) * swap) & _MASK)
                if other is not None:
                    neighbors.append(other)
                upper_face[face & _MASK] = union
        return neighbors

    def edges(self, boxes: list[int]) -> tuple[np.ndarray, np.ndarray]:
        """Return the lower and upper edge numbers of boxes."""
        edge_lists = [self._boxes[box] for box in boxes]
        return np.array([box[0] for box in edge_lists]), np.array([box[1] for box in edge_lists])


class HalvesIndex:
    """Faster index of neighbors in a grid with two slices per feature.

    A box is an integer with two bits per feature: whether it is one half, and which half. The
    neighbor along a feature differs only in the second of these bits.
    """

    def __init__(
        self, cells: np.ndarray, parent: np.ndarray, low: np.ndarray, high: np.ndarray
    ) -> None:
        self._n_features = low.shape[1]
        is_half = high - low == 1
        # Arrays of objects hold Python integers, whose number of bits is not limited.
        n_bits = 2 * self._n_features + int(parent.max()).bit_length()
        self._kind = np.dtype(np.int64 if n_bits < 63 else object)
        code = parent.astype(self._kind) << (2 * self._n_features)
        for f in range(self._n_features):
            half = is_half[:, f].astype(self._kind)
            code |= (half << (f + self._n_features)) | ((half * low[:, f]) << f)
        keys = code.tolist()
        self._keys = dict(zip(cells.tolist(), keys, strict=True))
        self._boxes = dict(zip(keys, cells.tolist(), strict=True))
        self._half_bits = [1 << f for f in range(self._n_features)]

    def unite(self, i: int, j: int, union: int) -> list[int]:
        """Replace two boxes by their union; return its neighbors."""
        key, other = self._keys.pop(i), self._keys.pop(j)
        boxes = self._boxes
        del boxes[key], boxes[other]
        bit = key ^ other
        key &= ~(bit | (bit << self._n_features))
        self._keys[union] = key
        boxes[key] = union
        # Along uncut features, no box has the other bit, so `get` returns None.
        near = map(boxes.get, [key ^ bit for bit in self._half_bits])
        return [box for box in near if box is not None]

    def edges(self, boxes: list[int]) -> tuple[np.ndarray, np.ndarray]:
        """Return the lower and upper edge numbers of boxes."""
        keys = np.array([self._keys[box] for box in boxes], dtype=self._kind)[:, None]
        features = np.arange(self._n_features).astype(self._kind)
        low = keys >> features & 1
        is_uncut = 1 - (keys >> (features + self._n_features) & 1)
        return low.astype(np.int64), (low + 1 + is_uncut).astype(np.int64)


def slice_numbers(
    points: np.ndarray,
    box: np.ndarray,
    lower: np.ndarray,
    upper: np.ndarray,
    n_slices: np.ndarray,
) -> np.ndarray:
    """Return the slice number of every point along each cut feature.

    Features with one slice are not cut. Slices ``[a, b)`` are half-open and numbered from 0.
    """
    cut = np.flatnonzero(n_slices > 1)
    small = np.uint8 if n_slices.max(initial=1) < 256 else np.int32
    result = np.empty((len(cut), len(points)), dtype=small)
    step = slice_width(lower, upper, n_slices)
    for begin in range(0, len(points), _CHUNK):
        rows = slice(begin, begin + _CHUNK)
        chunk, owner = points[rows], box[rows]
        for position, j in enumerate(cut):
            x, a, width = chunk[:, j], lower[owner, j], step[owner, j]
            last = n_slices[j] - 1
            if last == 1:  # two slices need one comparison
                result[position, rows] = x >= a + width
                continue
            with np.errstate(invalid="ignore"):  # infinite widths give 0 * inf = NaN, and slice 0
                number = np.clip(np.floor((x - a) / width), 0, last)
                # Points are compared with the edges, because the division may round across an edge.
                number -= (x < a + number * width) & (number > 0)
                number += (x >= a + (number + 1) * width) & (number < last)
            result[position, rows] = number
    return result


def slice_width(lower: np.ndarray, upper: np.ndarray, n_slices: np.ndarray) -> np.ndarray:
    """Return the width of a slice of each box along each feature.

    The width is infinite if a box is so thin that the edges of its slices would coincide. The box
    is then not cut along that feature.
    """
    width = upper / n_slices - lower / n_slices
    finest = np.spacing(np.maximum(np.abs(lower), np.abs(upper)))
    return np.where(width > 2 * finest, width, np.inf)


def group_cells(
    box: np.ndarray, numbers: np.ndarray, n_slices: np.ndarray, n_boxes: int
) -> tuple[np.ndarray, np.ndarray]:
    """Group points by box and slice numbers.

    Return the cell of each point and one point of each cell. Cells are ordered by box, then by
    slice numbers, where the last feature varies fastest.
    """
    key, size = box.astype(np.int64), n_boxes
    for row, k in zip(numbers, n_slices[n_slices > 1].tolist(), strict=True):
        if size > (1 << 62) // k:
            key, size = _ranks(key, size)
        key = key * k + row
        size *= k
    key, size = _ranks(key, size)
    example = np.zeros(size, dtype=np.intp)
    example[key[::-1]] = np.arange(len(box))[::-1]
    return key, example


def _ranks(key: np.ndarray, size: int) -> tuple[np.ndarray, int]:
    """Replace keys by the ranks of their distinct values; also return the number of ranks."""
    if size <= 4 * len(key) + 1024:  # for dense keys counting is faster than sorting
        present = np.zeros(size, dtype=bool)
        present[key] = True
        number = np.cumsum(present) - 1
        return number[key], int(number[-1]) + 1
    values, ranks = np.unique(key, return_inverse=True)
    return ranks, len(values)


class Edges:
    """Edges of the slices of boxes.

    Along each cut feature, edges are numbered from 0 to the number of slices in `n_slices`.
    `in_halves` states whether every cut feature has two slices.
    """

    def __init__(self, lower: np.ndarray, upper: np.ndarray, n_slices: np.ndarray) -> None:
        self._cut = np.flatnonzero(n_slices > 1)
        self.n_slices = n_slices[self._cut]
        self.in_halves = bool((self.n_slices == 2).all())
        self._lower, self._upper = lower, upper
        self._step = slice_width(lower, upper, n_slices)[:, self._cut]

    def above(self, parent: np.ndarray, number: np.ndarray) -> np.ndarray:
        """Return the number of the edge above each slice; the last edge if the box is not cut."""
        return np.where(np.isinf(self._step[parent]), self.n_slices, number + 1)

    def join(
        self,
        parent: int,
        at: int,
        low: list[int],
        high: list[int],
        other_low: list[int],
        other_high: list[int],
    ) -> tuple[list[int], list[int], Iterable[int]]:
        """Return the edge numbers of the union of two boxes that differ in feature `at`."""
        low, high = low.copy(), high.copy()
        low[at] = min(low[at], other_low[at])
        high[at] = max(high[at], other_high[at])
        return low, high, (at,)

    def boxes(
        self, parent: np.ndarray, low: np.ndarray, high: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the bounds of cells from their parents and edge numbers."""
        lower, upper = self._lower[parent], self._upper[parent]
        base = lower[:, self._cut]
        step = np.where(np.isinf(self._step), 0.0, self._step)[parent]
        # The last edge must be exactly the edge of the parent.
        last = high == self.n_slices
        upper[:, self._cut] = np.where(last, upper[:, self._cut], base + high * step)
        lower[:, self._cut] = base + low * step
        return lower, upper


class CellMerger:
    """Join touching cells, always the pair with the purest union.

    Notes
    -----
    Unions are appended to the list of cells. Among admissible pairs whose unions have equal
    impurities, the first pair in list order is joined. Pairs of cells are sorted once; pairs with
    unions are kept in a heap. With `pure`, the impurities must also be below the threshold.
    """

    def __init__(
        self,
        parent: np.ndarray,
        slices: np.ndarray,
        edges: Edges,
        statistics: JoinableTable,
        threshold: float,
        pure: bool = False,
    ) -> None:
        low, high = slices, edges.above(parent, slices)
        self._low, self._high = low, high
        self._table = statistics
        self._threshold = threshold
        self._impurity_limit = threshold if pure else math.inf
        self._n_cells = len(low)
        #: Union that each box was joined to; the box itself if it was not joined.
        self._union_of = list(range(self._n_cells))
        pairs = adjacent_cells(parent, low, high)[:, :2]
        if not len(pairs):
            return
        allowed, impurity = statistics.joinable(pairs, threshold)
        if pure:
            allowed &= impurity < threshold
        if not allowed.any():
            return
        cells = np.unique(pairs)
        self._index: NeighborIndex
        if edges.in_halves:
            self._index = HalvesIndex(cells, parent[cells], low[cells], high[cells])
        else:
            self._index = FaceIndex(cells, parent[cells], low[cells], high[cells], edges)
        self._statistics: dict[int, Any] = dict(
            zip(cells.tolist(), statistics.split_boxes(cells), strict=True)
        )
        self._join(pairs[allowed], impurity[allowed])

    def _join(self, pairs: np.ndarray, impurity: np.ndarray) -> None:
        first, second = pairs.min(axis=1), pairs.max(axis=1)
        order = np.lexsort((second, first, impurity))
        queue = zip(
            impurity[order].tolist(), first[order].tolist(), second[order].tolist(), strict=True
        )
        heap: list[tuple[float, int, int]] = []
        union_of = self._union_of
        for pair in queue:
            while heap and heap[0] < pair:
                _, i, j = heapq.heappop(heap)
                if union_of[i] == i and union_of[j] == j:
                    self._unite(i, j, heap)
            _, i, j = pair
            if union_of[i] == i and union_of[j] == j:
                self._unite(i, j, heap)
        while heap:
            _, i, j = heapq.heappop(heap)
            if union_of[i] == i and union_of[j] == j:
                self._unite(i, j, heap)

    def _unite(self, i: int, j: int, heap: list[tuple[float, int, int]]) -> None:
        """Replace two boxes by their union; add the union's admissible pairs to the heap."""
        check_deadline()
        union_of, statistics = self._union_of, self._statistics
        union = len(union_of)
        union_of[i] = union_of[j] = union
        union_of.append(union)
        united = statistics[union] = statistics.pop(i).union(statistics.pop(j))
        # The index may still contain faces of joined boxes.
        neighbors = [k for k in self._index.unite(i, j, union) if union_of[k] == k]
        if not neighbors:
            return
        impurities = united.union_impurities([statistics[k] for k in neighbors], self._threshold)
        for other, impurity in zip(neighbors, impurities, strict=True):
            if impurity is not None and impurity < self._impurity_limit:
                heapq.heappush(heap, (impurity, other, union))

    def result(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, JoinableTable]:
        """Return the remaining boxes, in list order.

        Returns the box of each cell, and the edge numbers and statistics of the boxes.
        """
        union_of = self._union_of
        if len(union_of) == self._n_cells:
            return np.arange(self._n_cells), self._low, self._high, self._table
        for i in range(len(union_of) - 1, -1, -1):  # unions follow their parts
            union_of[i] = union_of[union_of[i]]
        left, group = np.unique(union_of[: self._n_cells], return_inverse=True)
        cells, unions = left[left < self._n_cells], left[left >= self._n_cells].tolist()
        new_low, new_high = self._index.edges(unions)
        low = np.concatenate([self._low[cells], new_low])
        high = np.concatenate([self._high[cells], new_high])
        statistics = self._table.assemble(cells, [self._statistics[union] for union in unions])
        return group, low, high, statistics


#: Computes statistics from points, their predictions and boxes, and the number of boxes.
Collector = Callable[[np.ndarray, np.ndarray, np.ndarray, int], JoinableTable]


@dataclass(frozen=True, eq=False)
class Level:
    """Parameters of a level: slices per feature, impurity threshold, and predictions per cell."""

    n_slices: np.ndarray
    threshold: float
    min_examples: int


@dataclass(eq=False)
class Regions:
    """Boxes with keys that depend on their position in the grid."""

    lower: np.ndarray
    upper: np.ndarray
    key: np.ndarray


@dataclass(eq=False)
class Boxes(Regions):
    """Boxes with statistics of their predictions and numbers of rows."""

    statistics: StatisticsTable
    n_rows: np.ndarray

    def take(self, index: np.ndarray) -> Boxes:
        """Select boxes by index."""
        return Boxes(
            self.lower[index],
            self.upper[index],
            self.key[index],
            self.statistics.take(index),
            self.n_rows[index],
        )


@dataclass(eq=False)
class _Points:
    """Rows, followed by queried points, with their predictions and boxes."""

    X: np.ndarray
    predictions: np.ndarray
    box: np.ndarray
    n_rows: int

    def move(self, box: np.ndarray) -> None:
        """Assign every point to another box; drop points with box -1."""
        keep = box >= 0
        if keep.all():
            self.box = box
            return
        self.n_rows = int(np.count_nonzero(keep[: self.n_rows]))
        self.X, self.predictions, self.box = self.X[keep], self.predictions[keep], box[keep]

    def along(self, feature: int) -> _Points:
        """Return the points; unlike histograms, they do not depend on the feature."""
        return self

    def parts(self, boxes: Boxes, feature: int) -> list[_Points]:
        """Return the points of each box."""
        return [self.part(box) for box in range(len(boxes.lower))]

    def part(self, box: int) -> _Points:
        """Return the points of one box."""
        inside = np.flatnonzero(self.box == box)
        n_rows = int(np.count_nonzero(inside < self.n_rows))
        return _Points(
            self.X[inside], self.predictions[inside], np.zeros(len(inside), np.intp), n_rows
        )

    def add(self, X: np.ndarray, predictions: np.ndarray, box: np.ndarray) -> None:
        """Add queried points."""
        self.X = np.concatenate([self.X, X])
        self.predictions = np.concatenate([self.predictions, predictions])
        self.box = np.concatenate([self.box, box])


class Histogram:
    """Box that is known only by its histograms: sums per feature and bin.

    Parameters
    ----------
    path : tuple
        Cuts that lead to the box.
    total : ndarray of int
        Sums of all rows in the box.
    bins : list of ndarray of int, optional
        The histograms, one per feature; None until they are fetched.
    """

    def __init__(self, path: Path, total: Sums, bins: list[Sums] | None = None) -> None:
        self.path, self.total, self.bins = path, total, bins

    def along(self, feature: int) -> _Points:
        """Return the bins along a feature, which replace rows in a cut."""
        assert self.bins is not None
        sums = self.bins[feature]
        occupied_bins = np.flatnonzero(sums.any(axis=1))
        X = np.zeros((len(occupied_bins), len(self.bins)))
        X[:, feature] = occupied_bins
        bins: Any = Bins(self, feature, occupied_bins, sums[occupied_bins])
        return _Points(X, bins, np.zeros(len(occupied_bins), np.intp), len(occupied_bins))

    def parts(self, boxes: Boxes, feature: int) -> list[Histogram]:
        """Return the parts after a cut; their histograms are not fetched yet."""
        assert self.bins is not None
        sums, result = self.bins[feature], []
        for lower, upper in zip(boxes.lower[:, feature], boxes.upper[:, feature], strict=True):
            low, high = max(math.ceil(lower), 0), min(math.ceil(upper), len(sums))
            result.append(Histogram(self.within(feature, low, high), sums[low:high].sum(axis=0)))
        return result

    def within(self, feature: int, low: int, high: int) -> Path:
        """Return the path to the rows in the bins from `low` to before `high`."""
        assert self.bins is not None
        path, is_occupied = self.path, np.asarray(self.bins[feature].any(axis=1))
        if is_occupied[:low].any():
            path = (*path, (feature, low - 1, False))
        if is_occupied[high:].any():
            path = (*path, (feature, high - 1, True))
        return path


@dataclass(frozen=True, eq=False)
class Bins:
    """Occupied bins of a box along a feature: their numbers and sums."""

    box: Histogram
    feature: int
    numbers: np.ndarray
    sums: Sums


#: Sets the histograms of the parts of boxes.
Fetch = Callable[[Sequence[tuple[Histogram, Sequence[Histogram]]]], None]


def make_fetch(look_up: FetchHistograms) -> Fetch:
    """Return a function that fetches the histograms of parts.

    The histograms of the part with the most rows are computed as differences.
    """

    def fetch(families: Sequence[tuple[Histogram, Sequence[Histogram]]]) -> None:
        lighter = []
        for parent, parts in families:
            heaviest = max(parts, key=lambda part: int(part.total.sum()))
            if len(parts) == 1:
                heaviest.bins = parent.bins
            lighter += [part for part in parts if part is not heaviest]
        if lighter:
            histograms = look_up([part.path for part in lighter], [part.total for part in lighter])
            for part, bins in zip(lighter, histograms, strict=True):
                part.bins = bins
        for parent, parts in families:
            for part in parts:
                if part.bins is None:
                    assert parent.bins is not None
                    sibling_bins = [other.bins for other in parts if other.bins is not None]
                    part.bins = [
                        sums - np.sum(sibling_sums, axis=0)
                        for sums, *sibling_sums in zip(parent.bins, *sibling_bins, strict=True)
                    ]

    return fetch


def cut_domain(
    extraction: Extraction, levels: list[Level], seed: int, collect: Collector
) -> tuple[BoxTable, list[Boxes]]:
    """Cut the domain level by level.

    Returns disjoint half-open boxes, which are unbounded at the border of the domain, and the same
    boxes in the same order with their statistics, in several parts.
    """
    domain = extraction.settings["domain"]
    lower, upper = np.asarray(domain.lower), np.asarray(domain.upper)
    n_rows = len(extraction.X)
    points = _Points(extraction.X, extraction.predictions, np.zeros(n_rows, np.intp), n_rows)
    root = Regions(lower[None], upper[None], np.zeros(1, np.uint64))
    frontier = _cut(extraction, points, root, levels[0], seed, collect)  # the root is always cut
    finished: list[Boxes] = []
    for level in levels[1:]:
        final = frontier.statistics.is_below(level.threshold)
        finished.append(frontier.take(np.flatnonzero(final)))
        frontier = frontier.take(np.flatnonzero(~final))
        if final.all():
            break
        points.move(np.where(final, -1, np.cumsum(~final) - 1)[points.box])
        frontier = _cut(extraction, points, frontier, level, seed, collect)
    finished.append(frontier)
    lower_bounds = np.concatenate([part.lower for part in finished])
    upper_bounds = np.concatenate([part.upper for part in finished])
    return _open_at_border(lower_bounds, upper_bounds, lower, upper), finished


@dataclass(eq=False)
class _GridNode:
    """Box that may be cut along one feature.

    `feature` is the best feature to cut along, and `gain` the scatter that this cut removes.
    `depth` is the number of previous cuts along each feature, and `number` the position in the
    order of creation. `parts` are the nodes that a cut into `n_slices` slices creates.
    """

    box: Boxes
    points: Any
    depth: np.ndarray
    feature: int = 0
    gain: float = 0.0
    number: int = 0
    n_slices: int = 0
    parts: list[_GridNode] = field(default_factory=list)

    def __lt__(self, other: _GridNode) -> bool:
        return (-self.gain, self.number) < (-other.gain, other.number)


def cut_adaptively(
    extraction: Any,
    levels: list[Level],
    seed: int,
    collect: Collector,
    max_rules: int,
    histogram: Histogram | None = None,
    fetch: Fetch | None = None,
) -> tuple[BoxTable, list[Boxes]]:
    """Cut one box at a time along its best feature, into at most `max_rules` boxes.

    Each feature is cut once per level. All faces are therefore faces of the grid of
    :func:`cut_domain`, unless `max_rules` allows fewer slices. Returns the same as
    :func:`cut_domain`. Boxes may have histograms instead of rows; `fetch` then fetches the
    histograms of all boxes that will probably be cut next.
    """
    domain = extraction.settings["domain"]
    lower, upper = np.asarray(domain.lower), np.asarray(domain.upper)
    cutter = _AdaptiveCutter(extraction, levels, seed, collect, fetch)
    finished = cutter.cut(lower, upper, histogram, max_rules)
    lower_bounds = np.concatenate([part.lower for part in finished])
    upper_bounds = np.concatenate([part.upper for part in finished])
    return _open_at_border(lower_bounds, upper_bounds, lower, upper), finished


class _AdaptiveCutter:
    """Best-first search of :func:`cut_adaptively`, with the same parameters."""

    def __init__(
        self,
        extraction: Any,
        levels: list[Level],
        seed: int,
        collect: Collector,
        fetch: Fetch | None,
    ) -> None:
        self._extraction, self._levels, self._seed = extraction, levels, seed
        self._collect, self._fetch = collect, fetch
        # Impure parts with the same majority class stay apart: later cuts may separate classes.
        self._pure = extraction.classes is not None

    def cut(
        self, lower: np.ndarray, upper: np.ndarray, histogram: Histogram | None, max_rules: int
    ) -> list[Boxes]:
        """Cut the box with the given bounds; return the final boxes."""
        root, least_gain = self._root(lower, upper, histogram)
        queue, finished = [root], list[Boxes]()
        numbers = itertools.count(1)
        while queue:
            best = heapq.heappop(queue)
            room = max_rules - len(queue) - len(finished)
            if best.gain <= least_gain or room < 2:
                finished.append(best.box)
                continue
            n_slices = int(self._levels[best.depth[best.feature]].n_slices[best.feature])
            if best.n_slices != min(n_slices, room):
                nodes = [best]
                if self._fetch is not None:
                    nearest = heapq.nsmallest(room - 2, queue)
                    nodes += [n for n in nearest if n.gain > least_gain and not n.n_slices]
                self._divide(nodes, room)
            for part in best.parts:
                part.number = next(numbers)
                queue.append(part)
            heapq.heapify(queue)
        return finished

    def _root(
        self, lower: np.ndarray, upper: np.ndarray, histogram: Histogram | None
    ) -> tuple[_GridNode, float]:
        """Return the node of the whole domain and the gain that a cut must exceed."""
        source: Any = histogram
        if histogram is None:
            X, n_rows = self._extraction.X, len(self._extraction.X)
            source = _Points(X, self._extraction.predictions, np.zeros(n_rows, np.intp), n_rows)
        points = source.along(0)
        table = self._collect(points.X, points.predictions, points.box, 1)
        box = Boxes(
            lower[None],
            upper[None],
            np.zeros(1, np.uint64),
            table.finalize(lower[None], upper[None]),
            np.array([points.n_rows]),
        )
        root = _GridNode(box, source, np.zeros(len(lower), dtype=np.intp))
        self._find_cut(root)
        return root, max(0.0, _MIN_GAIN_SHARE * float(table.scatter[0]))

    def _is_final(self, node: _GridNode) -> bool:
        return bool(node.box.statistics.is_below(self._levels[0].threshold)[0])

    def _find_cut(self, node: _GridNode) -> None:
        """Find the best feature to cut a node along."""
        if not self._is_final(node):
            n_slices = _next_slices(self._levels, node.depth)
            node.feature, node.gain = _best_cut(node.box, node.points, n_slices, self._collect)

    def _divide(self, nodes: list[_GridNode], room: int) -> None:
        """Cut nodes and find the best cuts of their parts."""
        for node in nodes:
            self._cut_node(node, room)
        if self._fetch is not None:
            self._fetch(
                [
                    (node.points, [part.points for part in node.parts])
                    for node in nodes
                    if not all(map(self._is_final, node.parts))
                ]
            )
        for node in nodes:
            for part in node.parts:
                self._find_cut(part)

    def _cut_node(self, node: _GridNode, room: int) -> None:
        """Cut a node along its feature into at most `room` slices."""
        level = self._levels[node.depth[node.feature]]
        slices = np.ones_like(level.n_slices)
        node.n_slices = slices[node.feature] = min(level.n_slices[node.feature], room)
        parts = _cut(
            self._extraction,
            node.points.along(node.feature),
            Regions(node.box.lower, node.box.upper, combine(node.box.key, node.feature)),
            replace(level, n_slices=slices),
            self._seed,
            self._collect,
            self._pure,
        )
        depth = node.depth.copy()
        depth[node.feature] += 1
        node.parts = [
            _GridNode(parts.take(np.array([i])), points, depth)
            for i, points in enumerate(node.points.parts(parts, node.feature))
        ]


def _next_slices(levels: list[Level], depth: np.ndarray) -> np.ndarray:
    """Return the number of slices of the next cut along each feature."""
    by_level = np.array([level.n_slices for level in levels] + [np.ones_like(levels[0].n_slices)])
    return by_level[depth, np.arange(len(depth))]


def _best_cut(
    box: Boxes, points: Any, n_slices: np.ndarray, collect: Collector
) -> tuple[int, float]:
    """Return the feature whose cut removes the most scatter, and the removed scatter."""
    best, least_scatter, scatter = 0, math.inf, math.inf
    for feature in np.flatnonzero(n_slices > 1).tolist():
        along = points.along(feature)
        inside = np.zeros(len(along.X), np.intp)
        if scatter == math.inf:
            least_scatter = scatter = float(
                collect(along.X, along.predictions, inside, 1).scatter[0]
            )
        only = np.where(np.arange(len(n_slices)) == feature, n_slices, 1)
        (number,) = slice_numbers(along.X, inside, box.lower, box.upper, only)
        cell, n_cells = _ranks(number.astype(np.int64), int(n_slices[feature]))
        if n_cells < 2:
            continue
        left = float(collect(along.X, along.predictions, cell, n_cells).scatter.sum())
        if left < least_scatter:
            best, least_scatter = feature, left
    return best, 0.0 if scatter == math.inf else scatter - least_scatter


def _cut(
    extraction: Extraction,
    points: _Points,
    frontier: Regions,
    level: Level,
    seed: int,
    collect: Collector,
    pure: bool = False,
) -> Boxes:
    """Cut every box into cells, query points in them and join them; reassign the points."""
    n_slices, n_boxes = level.n_slices, len(frontier.lower)
    numbers = slice_numbers(points.X, points.box, frontier.lower, frontier.upper, n_slices)
    cell, example = group_cells(points.box, numbers, n_slices, n_boxes)
    n_rows = np.bincount(cell[: points.n_rows], minlength=len(example))
    has_rows = n_rows > 0
    if not has_rows.all():  # drop cells that hold only queried points
        cell = np.where(has_rows, np.cumsum(has_rows) - 1, -1)[cell]
        example, n_rows = example[has_rows], n_rows[has_rows]
    parent, slices = points.box[example], numbers[:, example].T.astype(np.int64)
    key = frontier.key[parent]
    for column in slices.T:
        key = combine(key, column)
    points.move(cell)

    edges = Edges(frontier.lower, frontier.upper, n_slices)
    n_missing = np.maximum(0, level.min_examples - n_rows)
    if n_missing.any():
        lower, upper = edges.boxes(parent, slices, edges.above(parent, slices))
        drawn, owner = uniform_points(seed, key, n_missing, lower, upper)
        points.add(drawn, extraction.query(drawn), owner)

    table = collect(points.X, points.predictions, points.box, len(parent))
    merger = CellMerger(parent, slices, edges, table, level.threshold, pure)
    group, low, high, table = merger.result()
    points.move(group[points.box])
    first = np.unique(group, return_index=True)[1]
    lower, upper = edges.boxes(parent[first], low, high)
    # The key of a union must not depend on the order in which its cells were joined.
    scrambled = np.zeros(len(first), np.uint64)
    np.add.at(scrambled, group, combine(key, 0))
    n_rows = np.bincount(group, weights=n_rows).astype(np.intp)
    return Boxes(lower, upper, scrambled, table.finalize(lower, upper), n_rows)


def _open_at_border(
    lower: np.ndarray, upper: np.ndarray, domain_lower: np.ndarray, domain_upper: np.ndarray
) -> BoxTable:
    """Remove bounds on the border of the domain, so that rules hold beyond the training rows."""
    at_lower, at_upper = lower <= domain_lower, upper >= domain_upper
    return BoxTable(
        np.where(at_lower, -np.inf, lower),
        np.where(at_upper, np.inf, upper),
        ~at_lower,
        np.zeros_like(at_upper),
    )
