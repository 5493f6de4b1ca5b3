"""Geometry of axis-aligned boxes: overlaps, adjacency and containment.

A box is a row of `lower` and the same row of `upper`. Only :func:`adjacent_pairs` asks whether a
face is open or closed. A box with a side of zero or negative length is empty here, even where a
closed rule would still hold on its one remaining value.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

__all__ = ["adjacent_pairs", "contained_in_other", "overlapping_pairs"]

Floats = NDArray[np.float64]
Integers = NDArray[np.intp]

_COLUMNS = 4096  # boxes per block of a bit table: 4097 x 512 bytes stay in the processor's cache
_ROWS = 16384
_DENSE_CELLS = 1 << 18  # up to here a plain comparison of all with all is quicker than bit tables


def overlapping_pairs(lower: ArrayLike, upper: ArrayLike, tolerance: float = 0.0) -> Integers:
    """Pairs of boxes whose interiors intersect.

    Gives row numbers i < j, sorted, of boxes whose intersection is deeper than `tolerance` on
    every feature.

    Examples
    --------
    >>> from skescore.rules._geometry import overlapping_pairs
    >>> overlapping_pairs([[0.0], [1.0], [1.5]], [[1.0], [2.0], [3.0]]).tolist()
    [[1, 2]]
    """
    low, high = as_boxes(lower, upper)
    if not tolerance >= 0.0:
        raise ValueError(f"`tolerance` must be zero or positive, got {tolerance!r}.")
    chunks = _overlap_chunks(low, high, float(tolerance))
    keys = [np.empty(0, dtype=np.intp), *(i * len(low) + j for i, j in chunks)]
    return np.column_stack(np.divmod(np.sort(np.concatenate(keys)), max(len(low), 1)))


def contained_in_other(lower: ArrayLike, upper: ArrayLike) -> NDArray[np.bool_]:
    """Mark the boxes that lie inside another box.

    Of equal boxes the first stays unmarked; empty boxes lie in every box.

    Examples
    --------
    >>> from skescore.rules._geometry import contained_in_other
    >>> contained_in_other([[0, 0], [0, 0], [0.2, 0]], [[1, 1], [1, 1], [0.8, 1]]).tolist()
    [False, True, True]
    """
    low, high = as_boxes(lower, upper)
    if not low.shape[1]:
        return np.arange(len(low)) > 0
    corners = np.hstack([low, -high]) + 0.0  # one zero only: -0.0 and 0.0 are the same bound
    corners[(high <= low).any(axis=1)] = np.inf
    _, first, inverse = np.unique(corners, axis=0, return_index=True, return_inverse=True)
    distinct = corners[first]
    inside = np.zeros(len(distinct), dtype=bool)
    for rows, start, bits in _bit_blocks(distinct, distinct, strict=False):
        own = np.arange(max(rows, start), min(rows + len(bits), start + _COLUMNS))
        place = own - start
        bits[own - rows, place >> 3] &= ~(128 >> (place & 7)).astype(np.uint8)
        inside[rows : rows + len(bits)] |= bits.any(axis=1)
    inverse = inverse.reshape(-1)  # numpy 2.0 returns a column
    return inside[inverse] | (first[inverse] != np.arange(len(low)))


def adjacent_pairs(
    lower: ArrayLike,
    upper: ArrayLike,
    lower_closed: ArrayLike | None = None,
    upper_closed: ArrayLike | None = None,
) -> Integers:
    """Pairs of boxes that share a whole face, so that their union is a box.

    Gives rows (i, j, feature), sorted, with ``upper[i, feature] == lower[j, feature]`` and equal
    intervals on every other feature. If flags are given, they too must agree there, and the shared
    face must belong to one of the two boxes; a missing flag array means all open.

    Notes
    -----
    The intervals on all features but one are hashed by a sum of random words, from which one
    summand is easily taken away; boxes with equal sums are then compared exactly. The cost is
    n_features sorts, not all pairs.

    Examples
    --------
    >>> from skescore.rules._geometry import adjacent_pairs
    >>> adjacent_pairs([[1, 0], [0, 0]], [[2, 5], [1, 5]]).tolist()
    [[1, 0, 0]]
    """
    low, high = as_boxes(lower, upper)
    with_flags = lower_closed is not None or upper_closed is not None
    low_flag = _as_flags("lower_closed", lower_closed, low.shape)
    high_flag = _as_flags("upper_closed", upper_closed, low.shape)
    kept = np.flatnonzero((high > low).all(axis=1))
    low, high = low[kept] + 0.0, high[kept] + 0.0
    low_flag, high_flag = low_flag[kept], high_flag[kept]
    n_boxes, n_features = low.shape
    rng = np.random.default_rng(0)
    words = np.empty((n_boxes, n_features), dtype=np.uint64)
    for feature in range(n_features):
        columns = [part[:, feature] for part in (low, high, low_flag, high_flag)]
        words[:, feature] = _random_words(np.column_stack(columns), rng)
    total = words.sum(axis=1, dtype=np.uint64)
    found = [np.empty((0, 3), dtype=np.intp)]
    for feature in range(n_features):
        ends = np.concatenate([low[:, feature], high[:, feature]])[:, None]
        end_words = _random_words(ends, rng)
        rest = total - words[:, feature]
        starting, ending = rest + end_words[:n_boxes], rest + end_words[n_boxes:]
        order = np.argsort(starting, kind="stable")
        begin = np.searchsorted(starting[order], ending, side="left")
        count = np.searchsorted(starting[order], ending, side="right") - begin
        below = np.repeat(np.arange(n_boxes), count)
        offset = np.arange(len(below)) - np.repeat(np.cumsum(count) - count, count)
        above = order[np.repeat(begin, count) + offset]
        same = (low[below] == low[above]) & (high[below] == high[above])
        same &= (low_flag[below] == low_flag[above]) & (high_flag[below] == high_flag[above])
        same[:, feature] = high[below, feature] == low[above, feature]
        if with_flags:
            same[:, feature] &= high_flag[below, feature] | low_flag[above, feature]
        good = same.all(axis=1)
        columns = [kept[below[good]], kept[above[good]], np.full(good.sum(), feature)]
        found.append(np.column_stack(columns))
    pairs = np.concatenate(found)
    return pairs[np.lexsort((pairs[:, 2], pairs[:, 1], pairs[:, 0]))]


# ---------------------------------------------------------------- for the modules that measure


def as_boxes(lower: ArrayLike, upper: ArrayLike) -> tuple[Floats, Floats]:
    """Return the bounds as arrays of floats, or say what is wrong with them."""
    low = np.asarray(lower, dtype=np.float64)
    high = np.asarray(upper, dtype=np.float64)
    if low.ndim == 1 and not low.size and high.ndim == 1 and not high.size:
        low, high = low.reshape(0, 0), high.reshape(0, 0)
    if low.ndim != 2 or low.shape != high.shape:
        raise ValueError(
            "`lower` and `upper` must have the same shape (n_boxes, n_features), got "
            f"{low.shape!r} and {high.shape!r}."
        )
    if np.isnan(low).any() or np.isnan(high).any():
        raise ValueError("`lower` and `upper` must not hold NaN. Use -inf and inf for no bound.")
    return low, high


def box_volumes(low: Floats, high: Floats) -> Floats:
    """Volume of every box, none of which may be empty."""
    sides = high - low
    if sides.shape[1] <= 100:
        return np.prod(sides, axis=1)
    return np.exp(np.log(sides).sum(axis=1))


def overlap_components(low: Floats, high: Floats) -> Integers:
    """Number every group of boxes that hang together by overlaps; return the number per box."""
    n_boxes = len(low)
    labels = np.arange(n_boxes)
    for i, j in _overlap_chunks(low, high, 0.0):
        edges = (np.ones(len(i), dtype=bool), (labels[i], labels[j]))
        graph = coo_array(edges, shape=(n_boxes, n_boxes))
        labels = connected_components(graph, directed=False)[1][labels]
    return np.unique(labels, return_inverse=True)[1]


def first_box(points: Floats, low: Floats, high: Floats) -> Integers:
    """Find the first box that holds each point; ``len(low)`` if none does."""
    first = np.full(len(points), len(low))
    limits = np.hstack([points, -points])
    for i0, j0, bits in _bit_blocks(np.hstack([low, -high]), limits, strict=False):
        place = (bits != 0).argmax(axis=1)
        byte = bits[np.arange(len(bits)), place].astype(np.intp)
        held = np.flatnonzero(byte)
        leading = 8 - np.frexp(byte[held])[1]
        target = first[i0 : i0 + len(bits)]
        target[held] = np.minimum(target[held], j0 + place[held] * 8 + leading)
    return first


# ---------------------------------------------------------------- comparisons of all with all


def _overlap_chunks(
    low: Floats, high: Floats, tolerance: float
) -> Iterator[tuple[Integers, Integers]]:
    """Pairs i < j of overlapping boxes, in pieces of bounded size."""
    solid = np.flatnonzero((high > low + tolerance).all(axis=1))
    raised = low[solid] + tolerance
    values = np.hstack([raised, -high[solid]])
    limits = np.hstack([high[solid], -raised])
    for i0, j0, bits in _bit_blocks(values, limits, strict=True, triangle=True):
        for row in range(0, len(bits), 1024):
            # Most bytes are zero, so only the others are unpacked.
            i, place = np.nonzero(bits[row : row + 1024])
            found, bit = np.nonzero(np.unpackbits(bits[row + i, place][:, None], axis=1))
            i, j = i[found] + i0 + row, place[found] * 8 + bit + j0
            ordered = i < j
            if ordered.any():
                yield solid[i[ordered]], solid[j[ordered]]


def _bit_blocks(
    values: Floats, limits: Floats, *, strict: bool, triangle: bool = False
) -> Iterator[tuple[int, int, NDArray[np.uint8]]]:
    """Compare all rows with all rows in bounded memory.

    Yields (i0, j0, bits): bit j of row i says that row ``j0 + j`` of `values` is below (or equal
    to, unless `strict`) row ``i0 + i`` of `limits` in every column. With `triangle`, blocks and
    rows are left out that hold no pair of a limit before a value.
    """
    for i0 in range(0, len(limits), _ROWS):
        for j0 in range(i0 if triangle else 0, len(values), _COLUMNS):
            end = min(i0 + _ROWS, j0 + _COLUMNS) if triangle else i0 + _ROWS
            yield i0, j0, _all_below(values[j0 : j0 + _COLUMNS], limits[i0:end], strict=strict)


def _all_below(values: Floats, limits: Floats, *, strict: bool) -> NDArray[np.uint8]:
    n_values, n_columns = values.shape
    if n_values * len(limits) * n_columns <= _DENSE_CELLS:
        compare = np.less if strict else np.less_equal
        return np.packbits(compare(values[None], limits[:, None]).all(axis=2), axis=1)
    n_words = -(-n_values // 64)
    start = np.packbits(np.arange(n_words * 64) < n_values)
    bits = np.tile(start, (len(limits), 1)).view(np.uint64)
    rows = np.arange(1, n_values + 1)
    side: Literal["left", "right"] = "left" if strict else "right"
    for column in range(n_columns):
        order = np.argsort(values[:, column], kind="stable")
        ranks = np.searchsorted(values[order, column], limits[:, column], side=side)
        if ranks.min() == n_values:
            continue
        # Row r of the table is the set of the r smallest values, so one gather answers a column.
        table = np.zeros((n_values + 1, n_words * 8), dtype=np.uint8)
        table[rows, order >> 3] = 128 >> (order & 7)
        sets = table.view(np.uint64)
        np.bitwise_or.accumulate(sets, axis=0, out=sets)
        bits &= sets[ranks]
    return bits.view(np.uint8)


def _as_flags(name: str, flags: ArrayLike | None, shape: tuple[int, ...]) -> NDArray[np.bool_]:
    if flags is None:
        return np.zeros(shape, dtype=bool)
    array = np.asarray(flags, dtype=bool)
    if array.shape != shape:
        raise ValueError(
            f"`{name}` must have the shape of `lower`, {shape!r}; got {array.shape!r}."
        )
    return array


def _random_words(rows: NDArray[np.generic], rng: np.random.Generator) -> NDArray[np.uint64]:
    """One random word per distinct row."""
    distinct, inverse = np.unique(rows, axis=0, return_inverse=True)
    words = rng.integers(0, 2**64, size=len(distinct), dtype=np.uint64)
    return words[inverse.reshape(-1)]  # numpy 2.0 returns a column
