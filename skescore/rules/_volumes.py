"""Volume of a union of axis-aligned boxes: exact if that is affordable, otherwise sampled.

Volumes do not depend on whether faces are open or closed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from numbers import Integral
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from skescore._binomial import clopper_pearson

__all__ = [
    "Volume",
    "adjacent_pairs",
    "contained_in_other",
    "join_touching",
    "overlapping_pairs",
    "sampling_stream",
    "union_volume",
]


# A box is a row of `lower` and the same row of `upper`. Only :func:`adjacent_pairs` distinguishes
# open from closed bounds. A box with a side of zero or negative length is empty, even though a rule
# with closed bounds may hold at a single value.

Floats = NDArray[np.float64]
Integers = NDArray[np.intp]

_COLUMNS = 4096  # boxes per block of a bit table: 4097 x 512 bytes fit into the CPU cache
_ROWS = 16384
_DENSE_CELLS = 1 << 18  # with fewer cells, comparing all pairs is faster than bit tables


def overlapping_pairs(lower: ArrayLike, upper: ArrayLike, tolerance: float = 0.0) -> Integers:
    """Return the pairs of boxes whose interiors intersect.

    Returns the sorted rows i < j of boxes whose intersection exceeds `tolerance` on all features.
    """
    low, high = as_boxes(lower, upper)
    if not tolerance >= 0.0:
        raise ValueError(f"`tolerance` must be zero or positive, got {tolerance!r}.")
    chunks = _overlap_chunks(low, high, float(tolerance))
    keys = [np.empty(0, dtype=np.intp), *(i * len(low) + j for i, j in chunks)]
    return np.column_stack(np.divmod(np.sort(np.concatenate(keys)), max(len(low), 1)))


def contained_in_other(lower: ArrayLike, upper: ArrayLike) -> NDArray[np.bool_]:
    """Mark the boxes that lie inside another box.

    The first of several equal boxes is not marked. Empty boxes lie inside every box.
    """
    low, high = as_boxes(lower, upper)
    if not low.shape[1]:
        return np.arange(len(low)) > 0
    corners = np.hstack([low, -high]) + 0.0  # -0.0 becomes 0.0, which is the same bound
    corners[(high <= low).any(axis=1)] = np.inf
    _, first, inverse = np.unique(corners, axis=0, return_index=True, return_inverse=True)
    distinct = corners[first]
    inside = np.zeros(len(distinct), dtype=bool)
    for rows, start, bits in _bit_blocks(distinct, distinct, strict=False):
        diagonal = np.arange(max(rows, start), min(rows + len(bits), start + _COLUMNS))
        column = diagonal - start
        bits[diagonal - rows, column >> 3] &= ~(128 >> (column & 7)).astype(np.uint8)
        inside[rows : rows + len(bits)] |= bits.any(axis=1)
    inverse = inverse.reshape(-1)  # numpy 2.0 returns a column
    return inside[inverse] | (first[inverse] != np.arange(len(low)))


def adjacent_pairs(
    lower: ArrayLike,
    upper: ArrayLike,
    lower_closed: ArrayLike | None = None,
    upper_closed: ArrayLike | None = None,
) -> Integers:
    """Return the pairs of boxes that share a whole face, so that their union is a box.

    Returns sorted rows (i, j, feature) with ``upper[i, feature] == lower[j, feature]`` and equal
    intervals on every other feature. If flags of closed bounds are passed, they must be equal, too,
    and the shared face must belong to one of the boxes; a missing flag array means open bounds.

    Notes
    -----
    The hash of a box is a sum of random words, one per feature and interval. Subtracting one
    summand gives the hash of all other features. Boxes with equal hashes are compared exactly. This
    takes n_features sorts instead of a comparison of all pairs.
    """
    low, high = as_boxes(lower, upper)
    with_flags = lower_closed is not None or upper_closed is not None
    low_flag = _as_flags("lower_closed", lower_closed, low.shape)
    high_flag = _as_flags("upper_closed", upper_closed, low.shape)
    solid = np.flatnonzero((high > low).all(axis=1))
    low, high = low[solid] + 0.0, high[solid] + 0.0
    low_flag, high_flag = low_flag[solid], high_flag[solid]
    n_boxes, n_features = low.shape
    rng = np.random.default_rng(0)
    words = np.empty((n_boxes, n_features), dtype=np.uint64)
    for feature in range(n_features):
        columns = [part[:, feature] for part in (low, high, low_flag, high_flag)]
        words[:, feature] = _random_words(np.column_stack(columns), rng)
    total = words.sum(axis=1, dtype=np.uint64)
    chunks = [np.empty((0, 3), dtype=np.intp)]
    for feature in range(n_features):
        ends = np.concatenate([low[:, feature], high[:, feature]])[:, None]
        end_words = _random_words(ends, rng)
        remaining_words = total - words[:, feature]
        starting, ending = (
            remaining_words + end_words[:n_boxes],
            remaining_words + end_words[n_boxes:],
        )
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
        columns = [solid[below[good]], solid[above[good]], np.full(good.sum(), feature)]
        chunks.append(np.column_stack(columns))
    pairs = np.concatenate(chunks)
    return pairs[np.lexsort((pairs[:, 2], pairs[:, 1], pairs[:, 0]))]


def as_boxes(lower: ArrayLike, upper: ArrayLike) -> tuple[Floats, Floats]:
    """Convert bounds to arrays of floats and check them."""
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
    """Return the volume of each box; boxes must not be empty."""
    sides = high - low
    if sides.shape[1] <= 100:
        return np.prod(sides, axis=1)
    return np.exp(np.log(sides).sum(axis=1))


def overlap_components(low: Floats, high: Floats) -> Integers:
    """Label the connected components of the overlap graph; return the label of each box."""
    n_boxes = len(low)
    labels = np.arange(n_boxes)
    for i, j in _overlap_chunks(low, high, 0.0):
        edges = (np.ones(len(i), dtype=bool), (labels[i], labels[j]))
        graph = coo_array(edges, shape=(n_boxes, n_boxes))
        labels = connected_components(graph, directed=False)[1][labels]
    return np.unique(labels, return_inverse=True)[1]


def first_box(points: Floats, low: Floats, high: Floats) -> Integers:
    """Return the index of the first box that contains each point; ``len(low)`` if none does."""
    first = np.full(len(points), len(low))
    limits = np.hstack([points, -points])
    for i0, j0, bits in _bit_blocks(np.hstack([low, -high]), limits, strict=False):
        byte_index = (bits != 0).argmax(axis=1)
        byte = bits[np.arange(len(bits)), byte_index].astype(np.intp)
        is_contained = np.flatnonzero(byte)
        leading = 8 - np.frexp(byte[is_contained])[1]
        target = first[i0 : i0 + len(bits)]
        target[is_contained] = np.minimum(
            target[is_contained], j0 + byte_index[is_contained] * 8 + leading
        )
    return first


def in_some_rule(points: Floats, low: Floats, high: Floats, rule: Integers) -> NDArray[np.bool_]:
    """Mark the points in at least one box; boxes of the same `rule` must form a product.

    A rule with sets of values has one box for each combination of values. Points are therefore
    compared with the values of each feature that a rule allows, not with the rule's boxes.
    """
    numbers, rule = np.unique(rule, return_inverse=True)
    if len(numbers) == len(low):
        return np.asarray(first_box(points, low, high) < len(low))
    possible = np.tile(_as_words(np.ones((1, len(numbers)), dtype=bool)), (len(points), 1))
    for start, end, values in zip(low.T, high.T, points.T, strict=True):
        sides = np.unique(np.column_stack([rule, start, end]), axis=0)
        owner = sides[:, 0].astype(np.intp)
        edges = np.unique(sides[:, 1:])
        # Part 2 i + 1 is the i-th edge itself, and part 2 i is between the previous edge and it.
        allowed = np.zeros((2 * len(edges) + 1, len(numbers)), dtype=bool)
        first, last = (2 * np.searchsorted(edges, ends) + 1 for ends in sides[:, 1:].T)
        for one_owner, one_first, one_last in zip(owner, first, last, strict=True):
            allowed[one_first : one_last + 1, one_owner] = True
        position = np.searchsorted(edges, values)
        is_edge = edges[np.minimum(position, len(edges) - 1)] == values
        possible &= _as_words(allowed)[2 * position + is_edge]
    return np.asarray(possible.any(axis=1))


def _overlap_chunks(
    low: Floats, high: Floats, tolerance: float
) -> Iterator[tuple[Integers, Integers]]:
    """Yield the pairs i < j of overlapping boxes, in chunks of bounded size."""
    solid = np.flatnonzero((high > low + tolerance).all(axis=1))
    raised = low[solid] + tolerance
    values = np.hstack([raised, -high[solid]])
    limits = np.hstack([high[solid], -raised])
    for i0, j0, bits in _bit_blocks(values, limits, strict=True, triangle=True):
        for row in range(0, len(bits), 1024):
            # Most bytes are zero, so only nonzero bytes are unpacked.
            i, byte_index = np.nonzero(bits[row : row + 1024])
            byte_row, bit = np.nonzero(np.unpackbits(bits[row + i, byte_index][:, None], axis=1))
            i, j = i[byte_row] + i0 + row, byte_index[byte_row] * 8 + bit + j0
            ordered = i < j
            if ordered.any():
                yield solid[i[ordered]], solid[j[ordered]]


def _bit_blocks(
    values: Floats, limits: Floats, *, strict: bool, triangle: bool = False
) -> Iterator[tuple[int, int, NDArray[np.uint8]]]:
    """Compare all rows of two arrays in bounded memory.

    Yields (i0, j0, bits): bit j of row i states that row ``j0 + j`` of `values` is below (or equal
    to, unless `strict`) row ``i0 + i`` of `limits` in every column. With `triangle`, blocks and
    rows are omitted in which no limit has a smaller index than a value.
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
        # Row r of the table is the set of the r smallest values, so one lookup computes a column.
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
    """Return a random word for each row; equal rows get equal words."""
    distinct, inverse = np.unique(rows, axis=0, return_inverse=True)
    words = rng.integers(0, 2**64, size=len(distinct), dtype=np.uint64)
    return words[inverse.reshape(-1)]  # numpy 2.0 returns a column


Seed = int | np.random.Generator | np.random.RandomState | None


def sampling_stream(random_state: Seed) -> np.random.Generator:
    """Return a random generator for points of a domain that is independent of generated data.

    Use it instead of ``np.random.default_rng``. Synthetic rows are often drawn with a small seed
    such as 0; points from the same stream would repeat these rows, and the rules around the rows
    would seem to cover too much.
    """
    if isinstance(random_state, np.random.Generator):
        return random_state
    if isinstance(random_state, np.random.RandomState):
        random_state = int(random_state.randint(2**31))
    if random_state is not None and (
        not isinstance(random_state, Integral) or isinstance(random_state, bool) or random_state < 0
    ):
        raise ValueError(
            "`random_state` must be a whole number of 0 or more, a Generator, a RandomState or "
            f"None, got {random_state!r}."
        )
    return np.random.default_rng(np.random.SeedSequence(random_state, spawn_key=(1991,)))


def sampled_volume(
    low: Floats,
    high: Floats,
    n_samples: int,
    confidence: float,
    random_state: Seed,
    rule: Integers | None = None,
) -> tuple[float, float, float]:
    """Estimate the volume of a union of boxes; return the estimate and its confidence interval.

    Boxes must not be empty, and boxes of the same `rule` must form a product. See
    :func:`union_volume` for the method.
    """
    volumes = box_volumes(low, high)
    order = np.argsort(-volumes, kind="stable")
    low, high, volumes = low[order], high[order], volumes[order]
    rule = np.arange(len(low)) if rule is None else rule[order]
    total = math.fsum(volumes)
    floor, ceiling = low.min(axis=0), high.max(axis=0)
    outer = float(box_volumes(floor[None], ceiling[None])[0])
    by_box = total < outer
    scale = total if by_box else outer
    if scale == 0.0:
        return 0.0, 0.0, 0.0
    rng = sampling_stream(random_state)
    logs = np.log(high - low).sum(axis=1)
    shares = np.exp(logs - logs.max())  # volumes may be too small for a float64
    batch = max(1, 2_000_000 // low.shape[1])
    hits = 0
    for start in range(0, n_samples, batch):
        points = rng.random((min(batch, n_samples - start), low.shape[1]))
        if by_box:
            drawn = rng.choice(len(low), size=len(points), p=shares / shares.sum())
            points = low[drawn] + points * (high[drawn] - low[drawn])
            points = np.minimum(points, high[drawn])  # rounding must not move points outside
            hits += int(np.count_nonzero(first_box(points, low, high) == drawn))
        else:
            points = floor + points * (ceiling - floor)
            hits += int(np.count_nonzero(in_some_rule(points, low, high, rule)))
    bottom, top = clopper_pearson(hits, n_samples, confidence)
    bottom = max(bottom * scale, float(volumes[0]))
    top = max(min(top * scale, total), bottom)
    return min(max(hits / n_samples * scale, bottom), top), bottom, top


def check_count(name: str, number: int) -> None:
    """Raise an error unless a value is a whole number of at least 1."""
    if not isinstance(number, Integral) or isinstance(number, bool) or number < 1:
        raise ValueError(f"`{name}` must be a whole number of at least 1, got {number!r}.")


def check_confidence(confidence: float) -> None:
    """Raise an error unless a value lies strictly between 0 and 1."""
    if not 0.0 < confidence < 1.0:
        raise ValueError(f"`confidence` must lie strictly between 0 and 1, got {confidence!r}.")


_MANY_BOXES_PER_RULE = 8  # with more boxes, sets of values are compared instead
_FEW_BOXES = 12  # up to this number, all (at most 4095) sets of rules are affordable
_MAX_PARTS = 4_000_000  # boxes times parts of a feature; with more, cutting boxes is faster
_WORDS_PER_FRAGMENT = 50
_GRID_CELLS = 50_000_000
_MANY_CELLS, _FEW_FRAGMENTS = 1_000_000, 5_000  # with more cells, few fragments are tried first
_GRID_CHUNK = 1_000_000  # cells in memory at a time
_FLOATS_IN_MEMORY = 20_000_000
_FLOATS_PER_FRAGMENT = 5000  # limit of processed numbers, which limits the time
_CALL_COST = 10_000  # a step on small arrays takes as long as processing this many numbers
_RELATIVE_ERROR = 1e-9


@dataclass(frozen=True, slots=True)
class Volume:
    """Covered share of the unit cube, with a confidence interval if it is an estimate.

    Attributes
    ----------
    value : float
        Volume, or its estimate.
    exact : bool
        Whether the value was computed without sampling, up to rounding errors.
    low, high : float
        Confidence interval; both equal `value` when `exact`.
    confidence : float or None
        Probability with which the interval contains the true volume; None if `exact`.
    n_samples : int
        Number of random points; 0 if `exact`.
    """

    value: float
    exact: bool
    low: float
    high: float
    confidence: float | None
    n_samples: int

    def __float__(self) -> float:
        return self.value


def union_volume(
    lower: ArrayLike,
    upper: ArrayLike,
    *,
    disjoint: bool = False,
    rule: ArrayLike | None = None,
    max_fragments: int = 200_000,
    n_samples: int = 100_000,
    confidence: float = 0.99,
    random_state: Seed = 0,
) -> Volume:
    """Return the volume of a union of boxes in the unit cube, exactly if that is affordable.

    `disjoint` declares that no two boxes overlap, so that volumes can be added. Boxes of the same
    `rule` (a number per box; by default each box has its own) are disjoint and form a product of
    sets of values, one set for each feature. `max_fragments` limits the memory of the exact methods
    for each group of more than 12 overlapping boxes; beyond it, `n_samples` points are drawn.

    Notes
    -----
    If a box equals the cube, the volume is 1; if no boxes overlap, their volumes are added.
    Otherwise, boxes inside other boxes are removed, and features that all boxes span are ignored.
    Each connected component of the overlap graph is then measured separately by the first
    applicable method, after factoring out features on which all its boxes have the same interval:

    - Feature by feature, the cube is cut where the set of rules that may still hold changes, and
      pieces with the same set are merged. This is done for up to 12 rules, and for more rules as
      long as there are few such sets.
    - In a grid of all distinct coordinates with at most 5e7 cells, the volumes of the filled cells
      are added (with more than 1e6 cells, the next method is tried first, within narrow limits).
    - Each box is cut into slabs outside the larger boxes, at most two per feature and cut;
      beyond `max_fragments`, inclusion-exclusion is used within the same limit.
    - All remaining boxes are sampled together, either uniformly in their bounding box or by the
      method of Karp and Luby (draw a box in proportion to its volume and a point in it; the point
      counts if no earlier box contains it), whichever encloses less volume. Hits then have a
      binomial distribution, so the Clopper-Pearson interval is valid for every sample size and
      share; it is restricted to the certain bounds (largest box, sum of boxes). Even tiny unions in
      many dimensions get a small relative error, whereas all uniform points in the cube would miss.

    Side lengths are multiplied in float64; with more than 100 features, their logarithms are added.
    Volumes below 5e-324 are 0.0: 1000 sides of length 0.4 underflow.

    References
    ----------
    M. H. Overmars, C.-K. Yap: New upper bounds in Klee's measure problem. SIAM Journal on
    Computing 20(6), 1991.
    R. M. Karp, M. Luby, N. Madras: Monte-Carlo approximation algorithms for enumeration problems.
    Journal of Algorithms 10(3), 1989.

    Examples
    --------
    >>> from skescore.rules._volumes import union_volume
    >>> union_volume([[0, 0], [0.5, 0]], [[0.75, 1], [1, 0.5]]).value
    0.875
    """
    low, high = as_boxes(lower, upper)
    bounds = np.concatenate([low, high])
    if bounds.size and not 0.0 <= bounds.min() <= bounds.max() <= 1.0:
        raise ValueError(
            f"`lower` and `upper` must lie in [0, 1], got values in [{float(bounds.min())!r}, "
            f"{float(bounds.max())!r}]. Rescale by the domain and clip first."
        )
    check_count("max_fragments", max_fragments)
    check_count("n_samples", n_samples)
    check_confidence(confidence)

    rules = np.arange(len(low)) if rule is None else np.asarray(rule, dtype=np.intp)
    solid = (high > low).all(axis=1)
    low, high, rules = low[solid], high[solid], rules[solid]
    if not len(low):
        return _exact_volume(0.0)
    if ((low == 0.0) & (high == 1.0)).all(axis=1).any():
        return _exact_volume(1.0)
    if disjoint:
        total = math.fsum(box_volumes(low, high))
        if total > 1.0 + _RELATIVE_ERROR:
            raise ValueError(
                f"The boxes overlap: they were declared disjoint, but their volumes sum to "
                f"{total!r}, which must not exceed 1. Pass disjoint=False."
            )
        return _exact_volume(total)

    volume = _volume_of_sets(low, high, rules, max_fragments)
    if volume is not None:
        return _exact_volume(volume)
    maximal = ~contained_in_other(low, high)
    maximal = np.isin(rules, rules[maximal])  # a product needs all boxes of its rule
    wide = ((low == 0.0) & (high == 1.0)).all(axis=0)
    low, high, rules = low[maximal][:, ~wide], high[maximal][:, ~wide], rules[maximal]
    labels = _linked_components(low, high, rules)
    sizes = np.bincount(labels)
    alone = sizes[labels] == 1
    parts = list(box_volumes(low[alone], high[alone]))
    unsolved = np.zeros(len(low), dtype=bool)
    by_label = np.split(np.argsort(labels, kind="stable"), np.cumsum(sizes)[:-1])
    for members in (group for group in by_label if len(group) > 1):
        part = _component_volume(low[members], high[members], rules[members], max_fragments)
        if part is None:
            unsolved[members] = True
        else:
            parts.append(part)
    disjoint_volume = math.fsum(parts)
    if not unsolved.any():
        return _exact_volume(disjoint_volume)
    boxes = low[unsolved], high[unsolved]
    value, bottom, top = sampled_volume(
        *boxes, int(n_samples), confidence, random_state, rules[unsolved]
    )
    value, bottom, top = (min(disjoint_volume + part, 1.0) for part in (value, bottom, top))
    return Volume(value, False, bottom, top, float(confidence), int(n_samples))


def _volume_of_sets(low: Floats, high: Floats, rule: Integers, limit: int) -> float | None:
    """Return the volume of rules with many boxes each; None for others, or beyond the limit.

    Comparing all pairs of boxes would take longer than comparing the sets of values.
    """
    if len(low) <= _MANY_BOXES_PER_RULE * len(np.unique(rule)):
        return None
    products = Products.of_boxes(low, high, rule)
    return None if products is None else products.covered(limit=limit)


def _linked_components(low: Floats, high: Floats, rule: Integers) -> Integers:
    """Label the components of overlapping boxes; the boxes of a rule belong to one component."""
    labels = overlap_components(low, high)
    links = (np.ones(len(low), dtype=bool), (labels, labels.max() + 1 + rule))
    graph = coo_array(links, shape=(labels.max() + rule.max() + 2,) * 2)
    labels = connected_components(graph, directed=False)[1][labels]
    return np.unique(labels, return_inverse=True)[1]


def _exact_volume(value: float) -> Volume:
    value = min(float(value), 1.0)
    return Volume(value, True, value, value, None, 0)


def _component_volume(
    low: Floats, high: Floats, rule: Integers, max_fragments: int
) -> float | None:
    """Return the exact volume of overlapping boxes; None if it needs too many fragments."""
    common = (low == low[0]).all(axis=0) & (high == high[0]).all(axis=0)
    factor = float(box_volumes(low[:1, common], high[:1, common])[0])
    low, high = low[:, ~common], high[:, ~common]
    limit = min(max_fragments, max(1000, _FLOATS_IN_MEMORY // low.shape[1]))
    products = Products.of_boxes(low, high, rule)
    volume = None
    if products is not None:
        few = products.n_rules <= _FEW_BOXES
        volume = products.covered(limit=2**_FEW_BOXES if few else min(limit, _FEW_FRAGMENTS))
    if volume is None and _n_cells(low, high) > _MANY_CELLS:  # few boxes often have few fragments
        volume = _by_fragments(low, high, min(limit, _FEW_FRAGMENTS))
        if volume is None:
            volume = _by_inclusion_exclusion(low, high, limit // 10)
    if volume is None:
        volume = _by_grid(low, high)
    if volume is None and products is not None:
        volume = products.covered(limit=limit // 10)
    if volume is None:
        volume = _by_fragments(low, high, limit)
    if volume is None:
        volume = _by_inclusion_exclusion(low, high, limit)
    return None if volume is None else factor * volume


def _by_inclusion_exclusion(low: Floats, high: Floats, limit: int) -> float | None:
    meet_low, meet_high, signs = low[:0], high[:0], np.empty(0)
    work = 0
    for one_low, one_high in zip(low, high, strict=True):
        next_low, next_high = np.maximum(meet_low, one_low), np.minimum(meet_high, one_high)
        solid = (next_high > next_low).all(axis=1)
        work += _CALL_COST + low.shape[1] * len(signs)
        exhausted = work > _FLOATS_PER_FRAGMENT * limit
        if exhausted or len(signs) + 1 + np.count_nonzero(solid) > limit:
            return None
        meet_low = np.concatenate([meet_low, one_low[None], next_low[solid]])
        meet_high = np.concatenate([meet_high, one_high[None], next_high[solid]])
        signs = np.concatenate([signs, [1.0], -signs[solid]])
    terms = signs * box_volumes(meet_low, meet_high)
    volume = math.fsum(terms)
    # The terms cancel, and each has a rounding error of about its size times n_features.
    error = math.fsum(np.abs(terms)) * low.shape[1] * np.finfo(np.float64).eps
    return volume if error <= _RELATIVE_ERROR * volume else None


class Products:
    """Rules as products of sets of allowed values, one set per feature.

    Values of a feature that the same rules allow are grouped into parts. Sets of rules are rows of
    bits, in words of 64.

    Parameters
    ----------
    allowed : list of ndarray of uint64, each of shape (n_parts, n_words)
        For each feature, the rules that allow each part of its values.
    widths : list of ndarray of float, each of shape (n_parts,)
        For each feature, the length of each part.
    n_rules : int
        Number of rules.
    """

    def __init__(
        self, allowed: list[NDArray[np.uint64]], widths: list[Floats], n_rules: int
    ) -> None:
        self._allowed, self._widths, self.n_rules = allowed, widths, n_rules

    @classmethod
    def of_boxes(cls, low: Floats, high: Floats, rule: Integers) -> Products | None:
        """Convert boxes in the unit cube; several boxes of one rule must form a product.

        Returns None if boxes have so many different bounds that other methods are faster.
        """
        order = np.argsort(rule, kind="stable")
        low, high = low[order], high[order]
        starts = np.flatnonzero(np.diff(rule[order], prepend=rule.min() - 1))
        allowed, widths = [], []
        for start, end in zip(low.T, high.T, strict=True):
            edges = np.unique(np.concatenate([start, end, [0.0, 1.0]]))
            if len(low) * len(edges) > _MAX_PARTS:
                return None
            first, last = (np.searchsorted(edges, ends)[:, None] for ends in (start, end))
            part = np.arange(len(edges) - 1)
            covers_part = np.logical_or.reduceat((first <= part) & (part < last), starts, axis=0)
            if covers_part.all():
                continue
            distinct, inverse = _distinct_rows(_as_words(covers_part.T))
            allowed.append(distinct)
            widths.append(np.bincount(inverse, np.diff(edges)).astype(np.float64))
        return cls(allowed, widths, len(starts))

    def covered(self, *, within: int | None = None, limit: int) -> float | None:
        """Return the volume that rules cover; None if this takes more than `limit` steps.

        With `within`, return the volume that the other rules cover inside this rule.

        Notes
        -----
        The unit cube is partitioned feature by feature. Parts in which the same rules may still
        hold are merged, because the values of earlier features no longer matter (dynamic
        programming). A part is covered once all requirements of a rule are met, and uncovered once
        no rule can hold. The volume is a sum of positive numbers, so there is no cancellation.
        """
        allowed, widths = self._allowed, self._widths
        possible, scale = np.ones(self.n_rules, dtype=bool), 1.0
        if within is not None:
            inside = [_as_bits(words, self.n_rules)[:, within] for words in allowed]
            allowed = [words[row_mask] for words, row_mask in zip(allowed, inside, strict=True)]
            widths = [words[row_mask] for words, row_mask in zip(widths, inside, strict=True)]
            lengths = [float(words.sum()) for words in widths]
            scale = math.prod(lengths)
            widths = [words / length for words, length in zip(widths, lengths, strict=True)]
            possible[within] = False
        requires = np.array([~_as_bits(words, self.n_rules).all(axis=0) for words in allowed])
        requires = requires.reshape(len(allowed), self.n_rules)
        if (possible & ~requires.any(axis=0)).any():
            return scale
        order = _features_in_order(requires)
        last = np.full(self.n_rules, -1)
        for step, feature in enumerate(order):
            last[requires[feature]] = step
        states, volume, covered = _as_words(possible[None]), np.ones(1), [np.empty(0)]
        for step, feature in enumerate(order):
            parts = allowed[feature]
            if states.size * len(parts) > _WORDS_PER_FRAGMENT * limit:
                return None
            states = (states[:, None] & parts).reshape(-1, parts.shape[1])
            volume = np.multiply.outer(volume, widths[feature]).ravel()
            complete = (states & _as_words((last == step)[None])).any(axis=1)
            covered.append(volume[complete])
            left = ~complete & states.any(axis=1)
            states, inverse = _distinct_rows(states[left])
            volume = np.bincount(inverse, volume[left], len(states)).astype(np.float64)
            if len(states) > limit:
                return None
        return scale * math.fsum(np.concatenate(covered))


def volume_outside(
    low: Floats, high: Floats, lower: Floats, upper: Floats, rule: Integers, limit: int
) -> float | None:
    """Return the volume of a product of boxes outside other products; None beyond the limit.

    Each group of other boxes with the same `rule` is a product, too; see :func:`union_volume`.
    """
    met = (lower < high.max(axis=0)).all(axis=1) & (upper > low.min(axis=0)).all(axis=1)
    rules = np.concatenate([np.full(len(low), rule.min(initial=0) - 1), rule[met]])
    products = Products.of_boxes(
        np.concatenate([low, lower[met]]), np.concatenate([high, upper[met]]), rules
    )
    inside = None if products is None else products.covered(within=0, limit=limit)
    return None if inside is None else max(math.fsum(box_volumes(low, high)) - inside, 0.0)


def _features_in_order(requires: NDArray[np.bool_]) -> list[int]:
    """Order features so that the requirements of rules are completed as early as possible.

    `requires` states for every feature and rule whether the rule depends on the feature.
    """
    order: list[int] = []
    left = requires.sum(axis=0)
    waiting = np.ones(len(requires), dtype=bool)
    for _ in range(len(requires)):
        merit = (requires / np.maximum(left, 1) ** 2).sum(axis=1)
        feature = int(np.where(waiting, merit, -1.0).argmax())
        order.append(feature)
        waiting[feature] = False
        left = left - requires[feature]
    return order


def _as_words(bits: NDArray[np.bool_]) -> NDArray[np.uint64]:
    """Pack every row of bits into words of 64."""
    words = np.zeros((len(bits), -(-bits.shape[1] // 64) * 8), dtype=np.uint8)
    packed = np.packbits(bits, axis=1)
    words[:, : packed.shape[1]] = packed
    return words.view(np.uint64)


def _as_bits(words: NDArray[np.uint64], n_bits: int) -> NDArray[np.bool_]:
    """Unpack bits; the inverse of :func:`_as_words`."""
    return np.unpackbits(words.view(np.uint8), axis=1, count=n_bits).view(bool)


def _distinct_rows(words: NDArray[np.uint64]) -> tuple[NDArray[np.uint64], Integers]:
    """Return the distinct rows, and the index of each row among them."""
    if not len(words):
        return words, np.empty(0, dtype=np.intp)
    rows = np.ascontiguousarray(words)
    keys = rows[:, 0] if rows.shape[1] == 1 else rows.view(f"V{rows.shape[1] * 8}")[:, 0]
    _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    return rows[first], inverse.reshape(-1)


def _n_cells(low: Floats, high: Floats) -> int:
    """Return the number of cells of the grid of all distinct coordinates."""
    return math.prod(len(np.unique(bounds)) - 1 for bounds in np.hstack([low.T, high.T]))


def _by_grid(low: Floats, high: Floats) -> float | None:
    edges = [np.unique(np.concatenate(pair)) for pair in zip(low.T, high.T, strict=True)]
    cells = math.prod(len(edge) - 1 for edge in edges)
    if cells > _GRID_CELLS:
        return None
    order = sorted(range(len(edges)), key=lambda feature: -len(edges[feature]))
    edges = [edges[feature] for feature in order]
    columns = list(zip(edges, low.T[order], high.T[order], strict=True))
    first = np.column_stack([np.searchsorted(edge, start) for edge, start, _ in columns])
    last = np.column_stack([np.searchsorted(edge, end) for edge, _, end in columns])
    widths = [np.diff(edge) for edge in edges]
    step = max(1, _GRID_CHUNK * len(widths[0]) // cells)
    parts = []
    for start in range(0, len(widths[0]), step):
        lengths = widths[0][start : start + step]
        filled = np.zeros([len(lengths), *map(len, widths[1:])], dtype=bool)
        begin, end = np.maximum(first[:, 0] - start, 0), np.minimum(last[:, 0] - start, step)
        for box in np.flatnonzero(begin < end):
            slices = map(slice, first[box, 1:], last[box, 1:])
            filled[(slice(begin[box], end[box]), *slices)] = True
        measure = filled.astype(np.float64)
        for length in reversed([lengths, *widths[1:]]):
            measure = measure @ length
        parts.append(float(measure))
    return math.fsum(parts)


def _by_fragments(low: Floats, high: Floats, limit: int) -> float | None:
    order = np.argsort(-box_volumes(low, high), kind="stable")
    low, high = low[order], high[order]
    parts: list[float] = []
    work = 0
    for new in range(len(low)):
        cut_low, cut_high = np.maximum(low[:new], low[new]), np.minimum(high[:new], high[new])
        solid = (cut_high > cut_low).all(axis=1)
        cut_low, cut_high = cut_low[solid], cut_high[solid]
        maximal = np.flatnonzero(~contained_in_other(cut_low, cut_high))
        maximal = maximal[np.argsort(-box_volumes(cut_low[maximal], cut_high[maximal]))]
        left_low, left_high = low[new : new + 1], high[new : new + 1]
        for cut in maximal:
            left = subtract(left_low, left_high, cut_low[cut], cut_high[cut], limit)
            work += _CALL_COST + left_low.size
            if left is None or work > _FLOATS_PER_FRAGMENT * limit:
                return None
            left_low, left_high = left
        parts.extend(box_volumes(left_low, left_high))
    return math.fsum(parts)


def subtract(
    low: Floats, high: Floats, cut_low: Floats, cut_high: Floats, limit: int
) -> tuple[Floats, Floats] | None:
    """Subtract a box from disjoint boxes; return disjoint boxes."""
    hit = ((low < cut_high) & (high > cut_low)).all(axis=1)
    core_low, core_high = low[hit], high[hit]
    below, above = core_low < cut_low, core_high > cut_high
    if np.count_nonzero(~hit) + np.count_nonzero(below) + np.count_nonzero(above) > limit:
        return None
    lows, highs = [low[~hit]], [high[~hit]]
    for feature in np.flatnonzero(below.any(axis=0) | above.any(axis=0)):
        slab_low, slab_high = core_low[below[:, feature]], core_high[below[:, feature]]
        slab_high[:, feature] = cut_low[feature]
        lows.append(slab_low)
        highs.append(slab_high)
        slab_low, slab_high = core_low[above[:, feature]], core_high[above[:, feature]]
        slab_low[:, feature] = cut_high[feature]
        lows.append(slab_low)
        highs.append(slab_high)
        core_low[:, feature] = np.maximum(core_low[:, feature], cut_low[feature])
        core_high[:, feature] = np.minimum(core_high[:, feature], cut_high[feature])
    return np.concatenate(lows), np.concatenate(highs)


def join_touching(
    lower: np.ndarray, upper: np.ndarray, outputs: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Merge boxes with the same output that share a whole face, in place, until none are left.

    A union is stored in its first box. Returns the index of this box for each union, and the index
    of the union for each box.
    """
    part_of = np.arange(len(lower))
    is_stable = False
    while not is_stable:
        is_stable = True
        for b in range(len(lower)):
            if part_of[b] != b:
                continue
            differs = (lower != lower[b]) | (upper != upper[b])
            along = differs.argmax(axis=1)
            meets = (upper[b, along] == lower[np.arange(len(lower)), along]) | (
                lower[b, along] == upper[np.arange(len(lower)), along]
            )
            same_output = (part_of == np.arange(len(lower))) & (outputs == outputs[b])
            partners = np.flatnonzero(same_output & meets & (differs.sum(axis=1) == 1))
            if len(partners):
                c = partners[0]
                lower[b] = np.minimum(lower[b], lower[c])
                upper[b] = np.maximum(upper[b], upper[c])
                part_of[part_of == c] = b
                is_stable = False
    return np.unique(part_of, return_inverse=True)
