"""Which boxes of a grid touch: all pairs of cells at once, and the neighbours of a new union.

Two boxes touch if they differ in one feature only, where they share an edge. Pairs are found by
hashing, never by comparing all with all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

import numpy as np

_MASK = (1 << 64) - 1
#: Edge numbers of the union of two touching boxes: (parent, feature that they differ in, low, high,
#: other low, other high) -> (low, high, features whose edges have changed).
EdgeJoiner = Callable[
    [int, int, list[int], list[int], list[int], list[int]],
    tuple[list[int], list[int], Iterable[int]],
]


def _multipliers(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Fixed odd random factors of the hash that finds touching cells."""
    generator = np.random.default_rng(20240229)
    draw = generator.integers(0, 1 << 63, size=(2, n), dtype=np.uint64)
    draw = draw * np.uint64(2) + np.uint64(1)
    return draw[0], draw[1]


def adjacent_cells(parent: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Pairs of cells of one parent that differ in one feature, where they share an edge.

    Parameters
    ----------
    parent : ndarray of int, shape (n_cells,)
        Cells of different parents never touch.
    low, high : ndarray of int, shape (n_cells, n_features)
        Edge numbers of each cell.

    Returns
    -------
    ndarray of int, shape (n_pairs, 3)
        Lower cell, upper cell and feature.
    """
    n_features = low.shape[1]
    whole, by_low, by_high = _hashes(parent, low, high)
    pairs = [np.empty((0, 3), dtype=np.intp)]
    for j in range(n_features):
        rest = whole - by_low[:, j] - by_high[:, j]
        order = np.argsort(rest)
        same = rest[order[1:]] == rest[order[:-1]]
        if not same.any():
            continue
        # Cells that lie in a line with another; only they need to be put in order.
        line = order[np.append(same, False) | np.append(False, same)]
        line = line[np.lexsort((low[line, j], rest[line]))]
        first, second = line[:-1], line[1:]
        touching = (rest[first] == rest[second]) & (high[first, j] == low[second, j])
        first, second = first[touching], second[touching]
        pairs.append(np.column_stack([first, second, np.full(len(first), j)]))
    return np.concatenate(pairs)


def _hashes(
    parent: np.ndarray, low: np.ndarray, high: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Hash of every cell, and what each of its edges adds to it.

    Edges count from 1: an edge that added nothing could be taken for one that is left out.
    """
    n_features = low.shape[1]
    for_low, for_high = _multipliers(n_features + 1)
    with np.errstate(over="ignore"):
        by_low = (low + 1).astype(np.uint64) * for_low[:-1]
        by_high = (high + 1).astype(np.uint64) * for_high[:-1]
        whole = by_low.sum(axis=1) + by_high.sum(axis=1) + parent.astype(np.uint64) * for_low[-1]
    return whole, by_low, by_high


def join_edges(
    parent: int,
    at: int,
    low: list[int],
    high: list[int],
    other_low: list[int],
    other_high: list[int],
) -> tuple[list[int], list[int], Iterable[int]]:
    """Edge numbers of a union, exactly."""
    low, high = low.copy(), high.copy()
    low[at] = min(low[at], other_low[at])
    high[at] = max(high[at], other_high[at])
    return low, high, (at,)


class NeighbourIndex(Protocol):
    """Finds the neighbours of unions while boxes are being joined."""

    def unite(self, i: int, j: int, union: int) -> list[int]:
        """Replace two boxes by their union; give its neighbours, and perhaps boxes long joined."""

    def edges(self, boxes: list[int]) -> tuple[np.ndarray, np.ndarray]:
        """Edge numbers of some boxes, below and above."""


class FaceIndex:
    """Neighbours in any grid: by hashes of faces.

    Parameters
    ----------
    cells : ndarray of int, shape (n_cells,)
        Numbers of the cells that touch another.
    parent : ndarray of int, shape (n_cells,)
        Box that each was cut from.
    low, high : ndarray of int, shape (n_cells, n_features)
        Their edge numbers.
    last_edge : list of int
        Number of the last edge along each feature.
    joiner : callable
        Gives the edges of a union.

    Notes
    -----
    A face is known by the hash of all edges but the opposite one of its box. Faces on the border
    of the parent touch nothing.
    """

    def __init__(
        self,
        cells: np.ndarray,
        parent: np.ndarray,
        low: np.ndarray,
        high: np.ndarray,
        last_edge: list[int],
        joiner: EdgeJoiner,
    ) -> None:
        self._joiner = joiner
        whole, by_low, by_high = _hashes(parent, low, high)
        boxes = zip(low.tolist(), high.tolist(), whole.tolist(), parent.tolist(), strict=True)
        self._boxes = dict(zip(cells.tolist(), boxes, strict=True))
        number = np.broadcast_to(cells[:, None], low.shape)
        inner_low, inner_high = low > 0, high < last_edge
        lower, upper = (whole[:, None] - by_high)[inner_low], (whole[:, None] - by_low)[inner_high]
        self._lower_face = dict(zip(lower.tolist(), number[inner_low].tolist(), strict=True))
        self._upper_face = dict(zip(upper.tolist(), number[inner_high].tolist(), strict=True))
        for_low, for_high = (factor.tolist() for factor in _multipliers(low.shape[1] + 1))
        self._for_low, self._for_high = for_low[:-1], for_high[:-1]
        swap = [a - b for a, b in zip(self._for_low, self._for_high, strict=True)]
        self._factors = list(zip(last_edge, self._for_low, self._for_high, swap, strict=True))

    def unite(self, i: int, j: int, union: int) -> list[int]:
        """Replace two boxes by their union; give its neighbours, and perhaps boxes long joined."""
        low, high, whole, parent = self._boxes.pop(i)
        other_low, other_high, _, _ = self._boxes.pop(j)
        at = 0
        while low[at] == other_low[at]:
            at += 1
        new_low, new_high, changed = self._joiner(parent, at, low, high, other_low, other_high)
        for f in changed:
            whole += (new_low[f] - low[f]) * self._for_low[f]
            whole += (new_high[f] - high[f]) * self._for_high[f]
        whole &= _MASK
        self._boxes[union] = (new_low, new_high, whole, parent)
        return self._touching(union, new_low, new_high, whole)

    def _touching(self, union: int, low: list[int], high: list[int], whole: int) -> list[int]:
        lower_face, upper_face = self._lower_face, self._upper_face
        found = []
        for a, b, (last, for_low, for_high, swap) in zip(low, high, self._factors, strict=True):
            if a:  # there is room below: who ends where this one begins?
                face = whole - (b + 1) * for_high
                other = upper_face.get((face - (a + 1) * swap) & _MASK)
                if other is not None:
                    found.append(other)
                lower_face[face & _MASK] = union
            if b != last:  # there is room above: who begins where this one ends?
                face = whole - (a + 1) * for_low
                other = lower_face.get((face + (b + 1) * swap) & _MASK)
                if other is not None:
                    found.append(other)
                upper_face[face & _MASK] = union
        return found

    def edges(self, boxes: list[int]) -> tuple[np.ndarray, np.ndarray]:
        """Edge numbers of some boxes, below and above."""
        made = [self._boxes[box] for box in boxes]
        return np.array([box[0] for box in made]), np.array([box[1] for box in made])


class HalvesIndex:
    """Neighbours in a grid that cuts every feature in two: by bits, which is several times faster.

    Parameters
    ----------
    cells : ndarray of int, shape (n_cells,)
        Numbers of the cells that touch another.
    parent : ndarray of int, shape (n_cells,)
        Box that each was cut from.
    low, high : ndarray of int, shape (n_cells, n_features)
        Their edge numbers: 0 and 1, 1 and 2, or 0 and 2.

    Notes
    -----
    A box is a number with two bits per feature: whether it is a half along it, and then which. The
    neighbour along a feature has the other half, so that a single bit differs.
    """

    def __init__(
        self, cells: np.ndarray, parent: np.ndarray, low: np.ndarray, high: np.ndarray
    ) -> None:
        self._n_features = low.shape[1]
        is_half = high - low == 1
        # Python's own integers have as many bits as it takes.
        n_bits = 2 * self._n_features + int(parent.max()).bit_length()
        self._kind = np.dtype(np.int64 if n_bits < 63 else object)
        code = parent.astype(self._kind) << (2 * self._n_features)
        for f in range(self._n_features):
            half = is_half[:, f].astype(self._kind)
            code |= (half << (f + self._n_features)) | ((half * low[:, f]) << f)
        keys = code.tolist()
        self._keys = dict(zip(cells.tolist(), keys, strict=True))
        self._boxes = dict(zip(keys, cells.tolist(), strict=True))
        self._which = [1 << f for f in range(self._n_features)]

    def unite(self, i: int, j: int, union: int) -> list[int]:
        """Replace two boxes by their union; give its neighbours."""
        key, other = self._keys.pop(i), self._keys.pop(j)
        boxes = self._boxes
        del boxes[key], boxes[other]
        which = key ^ other
        key &= ~(which | (which << self._n_features))
        self._keys[union] = key
        boxes[key] = union
        # Where the box is whole along a feature no box has that other bit.
        near = map(boxes.get, [key ^ which for which in self._which])
        return [box for box in near if box is not None]

    def edges(self, boxes: list[int]) -> tuple[np.ndarray, np.ndarray]:
        """Edge numbers of some boxes, below and above."""
        keys = np.array([self._keys[box] for box in boxes], dtype=self._kind)[:, None]
        features = np.arange(self._n_features).astype(self._kind)
        low = keys >> features & 1
        whole = 1 - (keys >> (features + self._n_features) & 1)
        return low.astype(np.int64), (low + 1 + whole).astype(np.int64)
