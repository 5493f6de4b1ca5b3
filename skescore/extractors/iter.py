"""ITER: boxes that grow stepwise by the adjacent strip with the most similar predictions."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Callable, Container, Sequence
from functools import partial
from typing import Any, ClassVar

import numpy as np

from skescore import _validation as check
from skescore._deadline import check_deadline
from skescore._random import combine, draw_seed
from skescore.extractors._base import BaseExtractor, Extraction, documented
from skescore.extractors._features import important_features
from skescore.extractors._sampling import N_QUERIES
from skescore.rules import BoxTable, Conclusions, RuleSet
from skescore.rules._volumes import join_touching

__all__ = ["ITERExtractor"]


# --- predictions as vectors, and random points ----------------------

# Predictions are encoded as vectors, whose mean over a set of rows determines its output and its
# impurity. Gaps (distances of means) and impurities are integer multiples of `_UNIT`.

#: Unit of gaps as a share of the predictions' range; rounding to it hides rounding errors.
_UNIT = 1e-9
#: Limits of predictions, of scaled predictions and of the scale; squares must not overflow.
_MAX_PREDICTION, _MAX_SCALED, _MIN_SCALE = 1e150, 1e100, 1e-150


class LabelVectors:
    """Class indices, encoded as indicator vectors."""

    def __init__(self, codes: np.ndarray, n_classes: int) -> None:
        self._codes = codes
        self.width = n_classes

    def encode(self, predictions: np.ndarray) -> np.ndarray:
        """Return the class indices."""
        return predictions

    def rows(self, index: np.ndarray, group: np.ndarray, n_groups: int) -> np.ndarray:
        """Return class counts of the rows at `index`, by group."""
        return self.sums(self._codes[index], group, n_groups)

    def sums(self, encoded: np.ndarray, group: np.ndarray, n_groups: int) -> np.ndarray:
        """Return class counts by group."""
        flat = np.bincount(group * self.width + encoded, minlength=n_groups * self.width)
        return flat.reshape(n_groups, self.width).astype(float)

    def gaps(self, means: np.ndarray, mean: np.ndarray) -> np.ndarray:
        """Return the total variation distances of class probabilities."""
        return np.round(np.abs(means - mean).sum(axis=1) * (0.5 / _UNIT))

    def impurities(self, means: np.ndarray) -> np.ndarray:
        """Return the shares outside the majority class."""
        return np.round((1 - means.max(axis=1)) / _UNIT)

    def outputs(self, means: np.ndarray) -> np.ndarray:
        """Return the majority class; ties go to the smallest index."""
        return means.argmax(axis=1)

    def limit(self, threshold: float) -> float:
        """Return the largest gap within a threshold, plus half a unit for rounding errors."""
        return min(threshold / _UNIT + 0.5, _MAX_SCALED)


class NumberVectors:
    """Numbers, scaled to [-1, 1] and encoded as the number and its square."""

    width = 2

    def __init__(self, predictions: np.ndarray) -> None:
        low, high = float(predictions.min()), float(predictions.max())
        self._center = low / 2 + high / 2
        self._scale = max(high / 2 - low / 2, _MIN_SCALE)
        self._values = self.encode(predictions)

    def encode(self, predictions: np.ndarray) -> np.ndarray:
        """Scale numbers to [-1, 1]."""
        scaled = np.clip(predictions, -_MAX_PREDICTION, _MAX_PREDICTION)
        scaled -= self._center
        scaled /= self._scale
        return np.clip(scaled, -_MAX_SCALED, _MAX_SCALED, out=scaled)

    def rows(self, index: np.ndarray, group: np.ndarray, n_groups: int) -> np.ndarray:
        """Return sums and sums of squares of the rows at `index`, by group."""
        return self.sums(self._values[index], group, n_groups)

    def sums(self, encoded: np.ndarray, group: np.ndarray, n_groups: int) -> np.ndarray:
        """Return sums and sums of squares by group."""
        result = np.empty((n_groups, 2))
        result[:, 0] = np.bincount(group, encoded, n_groups)
        result[:, 1] = np.bincount(group, encoded * encoded, n_groups)
        return result

    def gaps(self, means: np.ndarray, mean: np.ndarray) -> np.ndarray:
        """Return the distances of the means."""
        return np.round(np.abs(means[:, 0] - mean[0]) / _UNIT)

    def impurities(self, means: np.ndarray) -> np.ndarray:
        """Return the standard deviations."""
        variance = np.maximum(means[:, 1] - means[:, 0] ** 2, 0.0)
        return np.round(np.sqrt(variance) / _UNIT)

    def outputs(self, means: np.ndarray) -> np.ndarray:
        """Return the means in the target's units."""
        return means[:, 0] * self._scale + self._center

    def limit(self, threshold: float) -> float:
        """Return the largest gap within a threshold in the target's units."""
        return min(threshold / self._scale / _UNIT + 0.5, _MAX_SCALED)


Predictions = LabelVectors | NumberVectors


class PointSource:
    """Uniform points in boxes; they depend only on the seed and the key of the box.

    All boxes use the same Latin hypercube sample with a cyclic shift, which is a hash of the seed
    and the key of the box. Every point is uniform in its box and needs only a few additions.
    """

    def __init__(self, seed: int, n_points: int, n_features: int) -> None:
        self._features = np.arange(n_features)
        self._seed = seed
        numbers = np.arange(n_points)[:, None]
        strata = _uniform(combine(combine(seed, numbers), self._features)).argsort(axis=0)
        within = _uniform(combine(combine(seed + 1, numbers), self._features))
        self._sample = (strata + within) / max(n_points, 1)

    def draw(
        self, keys: np.ndarray, lower: np.ndarray, upper: np.ndarray, n_points: int
    ) -> np.ndarray:
        """Return the first `n_points` points of each box, shape (n_boxes, n_points, n_features)."""
        shift = _uniform(combine(combine(keys, self._seed)[:, None], self._features))
        share = self._sample[None, :n_points] + shift[:, None]
        share -= share >= 1.0
        share *= (upper - lower)[:, None]
        share += lower[:, None]
        return share


def _uniform(keys: np.ndarray) -> np.ndarray:
    return (keys >> np.uint64(11)) * 2.0**-53


# --- boxes that grow by strips at their faces ---------------------------------------------


#: Distance, as a share of a step, below which two faces are the same.
_SNAP_TOLERANCE = 1e-6
#: Number of row codes that are kept in memory.
_MAX_CACHED_CODES = 1 << 22
#: Share of a strip's volume that its points must represent before the strip is used.
_MIN_SHARE_TO_USE = 0.7
#: Share of a strip's volume above which its points are not updated.
_MAX_SHARE_TO_UPDATE = 0.95
#: Largest number of coordinates in one query of the black box.
_MAX_QUERY_NUMBERS = 1 << 22


class RowOrder:
    """The rows sorted by each feature along which boxes may have faces."""

    def __init__(self, X: np.ndarray, features: list[int]) -> None:
        self._n_rows = len(X)
        self._value = {j: X[:, j].item for j in features}
        self._order = {j: np.argsort(X[:, j], kind="stable").astype(np.int32) for j in features}

    def rank(self, feature: int, bound: float) -> int:
        """Return the number of rows below a bound."""
        if np.isinf(bound):
            return self._n_rows if bound > 0 else 0
        return bisect_left(self._order[feature], bound, key=self._value[feature])

    def between(self, feature: int, start: int, stop: int) -> np.ndarray:
        """Return the rows with ranks from `start` to before `stop`."""
        return self._order[feature][start:stop]


class GrowingBoxes:
    """Disjoint boxes that grow by the most similar adjacent strips.

    Face 2j is the lower face of feature j, face 2j + 1 the upper one. An open face has a strip: the
    region that the box gains if the face moves by one step, or as far as the next box. Boxes
    contain ``lower <= x < upper``; a face on the border of the domain is at infinity.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_features)
        The rows.
    predictions : Predictions
        The black box's predictions for the rows.
    lower, upper : ndarray of shape (n_features,)
        The domain.
    steps : ndarray of shape (n_features,)
        Step sizes of faces; 0 for features along which boxes have the full range.
    query : callable
        Returns the black box's predictions at points.
    points : PointSource
        Source of the random points.
    min_examples : int
        Smallest number of predictions per strip; random points replace missing rows.
    limit : float
        Largest gap between a strip and the box that it joins.
    follow : bool
        Whether strips are compared with the current mean of the box instead of its first mean.
    max_boxes : int, optional
        Largest number of boxes.
    categories : container of int, default=()
        Categorical features; the value of rank r occupies [r, r + 1).

    Attributes
    ----------
    n_boxes : int
        Number of boxes, which is the number of used rows in the arrays below.
    lower, upper : ndarray of shape (n_boxes, n_features)
        Bounds of the boxes.
    mean, first_mean : ndarray of shape (n_boxes, width)
        Current and first mean vector of the predictions in each box.
    far : ndarray of shape (n_boxes, n_faces)
        Outer end of each strip.
    open : ndarray of bool, shape (n_boxes, n_faces)
        Whether the face has a strip.
    n, sums : ndarray of shape (n_boxes, n_faces) and (n_boxes, n_faces, width)
        Number of rows in each strip, and the sum of their prediction vectors.
    point_mean, share : ndarray of shape (n_boxes, n_faces, width) and (n_boxes, n_faces)
        Mean vector of the points in each strip, and the share of its volume that they represent.
    near_rank, far_rank : ndarray of int, shape (n_boxes, n_faces)
        Numbers of rows below the inner and the outer end of each strip.
    snapshot, draws : ndarray of int, shape (n_boxes, n_faces)
        Bounds of the box at the last draw of points (index in `_snapshots`), and number of draws.
    gap, impurity : ndarray of shape (n_boxes, n_faces)
        Gap between each strip and its box, infinite without a strip; impurity of each strip.
    owner : ndarray of int, shape (n_rows,)
        Box of each row; -1 for none.

    Notes
    -----
    Every box has one code per row: the sum of ``n_features + j`` over the features j along which
    the row lies outside the box. Rows inside have the code 0. Only rows outside along a single
    feature can be in strips; their code ``n_features + j`` is less than any sum of two. When a face
    moves, only the codes of rows between its old and new position change, so the cost of a step is
    proportional to the number of these rows.

    When a box grows along another feature, a strip widens and its points represent a smaller share
    of it. To update them, points are drawn uniformly in the whole strip, but only those in its new
    part are queried; the old mean represents the others. Many steps need no query, because no strip
    has widened much since the last one.
    """

    _fields: tuple[tuple[str, str, Any, float], ...] = (
        ("lower", "features", float, -np.inf),
        ("upper", "features", float, np.inf),
        ("mean", "width", float, 0),
        ("first_mean", "width", float, 0),
        ("far", "faces", float, 0),
        ("open", "faces", bool, False),
        ("n", "faces", float, 0),
        ("sums", "faces width", float, 0),
        ("near_rank", "faces", np.int64, 0),
        ("far_rank", "faces", np.int64, 0),
        ("point_mean", "faces width", float, 0),
        ("share", "faces", float, 0),
        ("snapshot", "faces", np.int64, -1),
        ("draws", "faces", np.int64, 0),
        ("gap", "faces", float, np.inf),
        ("impurity", "faces", float, 0),
    )

    lower: np.ndarray
    upper: np.ndarray
    mean: np.ndarray
    first_mean: np.ndarray
    far: np.ndarray
    open: np.ndarray
    n: np.ndarray
    sums: np.ndarray
    near_rank: np.ndarray
    far_rank: np.ndarray
    point_mean: np.ndarray
    share: np.ndarray
    snapshot: np.ndarray
    draws: np.ndarray
    gap: np.ndarray
    impurity: np.ndarray

    def __init__(
        self,
        X: np.ndarray,
        predictions: Predictions,
        lower: np.ndarray,
        upper: np.ndarray,
        steps: np.ndarray,
        *,
        query: Callable[[np.ndarray], np.ndarray],
        points: PointSource,
        min_examples: int,
        limit: float,
        follow: bool,
        max_boxes: int | None = None,
        categories: Container[int] = (),
    ) -> None:
        n_rows, self.n_features = X.shape
        self.X, self.predictions, self.steps = X, predictions, steps
        self.domain_lower, self.domain_upper = lower, upper
        self.limit = limit
        self._categories = categories
        self._max_boxes = math.inf if max_boxes is None else max_boxes
        self.active: list[int] = np.flatnonzero(steps > 0).tolist()
        self.order = RowOrder(X, self.active)
        self.owner = np.full(n_rows, -1, dtype=np.int32)
        self.n_boxes, self.n_faces = 0, 2 * self.n_features
        self._query, self._points = query, points
        self._min_examples, self._follow = min_examples, follow
        largest = self.n_features**2 + self.n_features * (self.n_features - 1) // 2
        self._code_type = np.min_scalar_type(largest)
        self._codes: OrderedDict[int, np.ndarray] = OrderedDict()
        self._max_cached_boxes = max(8, self.n_features, _MAX_CACHED_CODES // n_rows)
        #: Bounds that boxes had when their strips were sampled.
        self._snapshots = np.empty((64, 2, self.n_features))
        self._n_snapshots = 0
        self._allocate(16)

    def _allocate(self, capacity: int) -> None:
        sizes = {
            "features": self.n_features,
            "faces": self.n_faces,
            "width": self.predictions.width,
        }
        for name, shape, kind, blank in self._fields:
            dimensions = [sizes[size] for size in shape.split()]
            array = np.full((capacity, *dimensions), blank, dtype=kind)
            if self.n_boxes:
                array[: self.n_boxes] = getattr(self, name)[: self.n_boxes]
            setattr(self, name, array)
        self._capacity = capacity

    def around(self, row: int) -> tuple[np.ndarray, np.ndarray]:
        """Return bounds one step to each side of a row; for a category, the bounds of its value."""
        x = self.X[row]
        lower, upper = np.full(len(x), -np.inf), np.full(len(x), np.inf)
        for j in self.active:
            below, above = (0.0, 1.0) if j in self._categories else (self.steps[j],) * 2
            lower[j] = self._snap(j, x[j] - below)
            upper[j] = self._snap(j, x[j] + above)
        return lower, upper

    def around_uncovered(self, row: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the bounds of :meth:`around`, reduced so that they overlap no box.

        For each overlapping box, the face between the row and the box is moved to the box, along
        the feature with the largest distance in steps.
        """
        x, in_use = self.X[row], slice(0, self.n_boxes)
        lower, upper = self.around(row)
        while True:
            apart = (self.lower[in_use] >= upper) | (self.upper[in_use] <= lower)
            overlapping = np.flatnonzero(~apart.any(axis=1))
            if not len(overlapping):
                return lower, upper
            box_lower, box_upper = self.lower[overlapping[0]], self.upper[overlapping[0]]
            distances = np.full(len(x), -1.0)
            for j in self.active:
                if x[j] >= box_upper[j]:
                    distances[j] = (x[j] - box_upper[j]) / self.steps[j]
                elif x[j] < box_lower[j]:
                    distances[j] = (box_lower[j] - x[j]) / self.steps[j]
            j = int(distances.argmax())
            if x[j] >= box_upper[j]:
                lower[j] = box_upper[j]
            else:
                upper[j] = box_lower[j]

    def add_box(self, lower: np.ndarray, upper: np.ndarray) -> int:
        """Add a box that overlaps no other box and contains at least one row."""
        check_deadline()
        b = self._append_box(lower, upper)
        rows = np.flatnonzero(self._row_codes(b) == 0)
        self.owner[rows] = b
        mean = self.predictions.rows(rows, np.zeros(len(rows), dtype=np.intp), 1)[0] / len(rows)
        self._initialize_box(b, mean)
        return b

    def split_off(self, box: int, face: int) -> int:
        """Turn a strip into a new box."""
        j, mean = face >> 1, self._strip_means(box)[face]
        lower, upper = self.lower[box].copy(), self.upper[box].copy()
        if face & 1:
            lower[j], upper[j] = upper[j], self.far[box, face]
        else:
            lower[j], upper[j] = self.far[box, face], lower[j]
        codes = self._row_codes(box).copy()
        left = self.order.between(j, self.near_rank[box, 2 * j], self.near_rank[box, 2 * j + 1])
        entered = self._slab(box, face)
        codes[left] += self.n_features + j
        codes[entered] -= self.n_features + j
        b = self._append_box(lower, upper)
        self._cache_codes(b, codes)
        self.owner[entered[codes[entered] == 0]] = b
        self._initialize_box(b, mean)
        return b

    def grow(self, b: int, face: int) -> None:
        """Move a face of a box to the far end of its strip."""
        j, d = face >> 1, self.n_features
        slab, codes = self._slab(b, face), self._row_codes(b)
        left = codes[slab] - (d + j)  # all these rows were outside along j
        codes[slab] = left
        near = left < 2 * d
        slab, left = slab[near], left[near]
        inside = left == 0
        self.owner[slab[inside]] = b

        mean = self._strip_means(b)[face]
        width = self._extent(b, j)
        (self.upper if face & 1 else self.lower)[b, j] = self.far[b, face]
        self._widen(b, face, width / self._extent(b, j), mean)
        self.near_rank[b, face] = self.far_rank[b, face]
        self._add_strip(b, face)
        self._add_rows_to_strips(b, slab[~inside], left[~inside] - d)
        shortened, shortened_boxes = self._shorten_overlapping_strips(b)
        for changed in {face: None} | dict.fromkeys(shortened):
            self._recount(b, changed)
        for other in [b, *dict.fromkeys(shortened_boxes)]:
            self._compare_strips(other)

    def _append_box(self, lower: np.ndarray, upper: np.ndarray) -> int:
        if self.n_boxes == self._capacity:
            self._allocate(2 * self._capacity)
        b = self.n_boxes
        self.n_boxes += 1
        self.lower[b], self.upper[b] = lower, upper
        for j in self.active:
            self.near_rank[b, 2 * j] = self.order.rank(j, lower[j])
            self.near_rank[b, 2 * j + 1] = self.order.rank(j, upper[j])
        return b

    def _initialize_box(self, b: int, mean: np.ndarray) -> None:
        """Set the output and the strips of a new box."""
        self.mean[b] = self.first_mean[b] = mean
        for j in self.active:
            self._add_strip(b, 2 * j)
            self._add_strip(b, 2 * j + 1)
        _, shortened_boxes = self._shorten_overlapping_strips(b)
        codes, d = self._row_codes(b), self.n_features
        outside_once = np.flatnonzero((codes >= d) & (codes < 2 * d))
        self._add_rows_to_strips(b, outside_once, codes[outside_once] - d)
        for other in [b, *dict.fromkeys(shortened_boxes)]:
            self._compare_strips(other)

    def _extent(self, b: int, j: int) -> float:
        """Return the length of a box along a feature, inside the domain."""
        lower = max(self.lower[b, j], self.domain_lower[j])
        return float(min(self.upper[b, j], self.domain_upper[j]) - lower)

    def _widen(self, b: int, face: int, old_share: float, mean: np.ndarray) -> None:
        """Update a box that has grown; `old_share` is its former share of the volume."""
        if self._min_examples == 0:  # few rows must not represent a large volume
            rows = np.count_nonzero(self.owner == b)  # includes the rows of the strip
            old_weight = 1 - self.n[b, face] / rows
        else:
            old_weight = old_share
        self.mean[b] = old_weight * self.mean[b] + (1 - old_weight) * mean
        opposite_share = self.share[b, face ^ 1]  # the opposite strip does not widen
        self.share[b] *= old_share
        self.share[b, face ^ 1] = opposite_share

    def _row_codes(self, b: int) -> np.ndarray:
        """Return the position of each row relative to a box, with d features.

        The code is 0 inside the box, d + j outside along feature j only, and more than 2 d outside
        along several features.
        """
        codes = self._codes.get(b)
        if codes is not None:
            self._codes.move_to_end(b)
            return codes
        codes = np.zeros(len(self.owner), dtype=self._code_type)
        for j in self.active:
            weight, start = self.n_features + j, self.near_rank[b, 2 * j]
            codes[self.order.between(j, 0, start)] += weight
            codes[self.order.between(j, self.near_rank[b, 2 * j + 1], len(codes))] += weight
        self._cache_codes(b, codes)
        return codes

    def _cache_codes(self, b: int, codes: np.ndarray) -> None:
        self._codes[b] = codes
        if len(self._codes) > self._max_cached_boxes:  # bounds the memory for many boxes
            self._codes.popitem(last=False)

    def _slab(self, b: int, face: int) -> np.ndarray:
        """Return the rows between both ends of a strip, regardless of other features."""
        near, far = self.near_rank[b, face], self.far_rank[b, face]
        return self.order.between(face >> 1, *((near, far) if face & 1 else (far, near)))

    def _add_strip(self, b: int, face: int) -> None:
        """Create the next strip at a face, regardless of other boxes and with zero counts."""
        j = face >> 1
        near = self.upper[b, j] if face & 1 else self.lower[b, j]
        self._forget(b, face)
        self.n[b, face], self.sums[b, face] = 0, 0
        if np.isinf(near):
            self._close(b, face)
            return
        far = self._snap(j, near + self.steps[j] if face & 1 else near - self.steps[j])
        self.open[b, face], self.far[b, face] = True, far
        self.far_rank[b, face] = self.order.rank(j, far)

    def _snap(self, j: int, bound: float) -> float:
        """Snap a bound to a face or border of the domain at nearly the same position."""
        slack = _SNAP_TOLERANCE * self.steps[j]
        if bound >= self.domain_upper[j] - slack:
            return np.inf
        if bound <= self.domain_lower[j] + slack:
            return -np.inf
        for faces in (self.lower[: self.n_boxes, j], self.upper[: self.n_boxes, j]):
            near = np.flatnonzero(np.abs(faces - bound) <= slack)
            if len(near):
                return float(faces[near[0]])
        return float(bound)

    def _shorten_overlapping_strips(self, b: int) -> tuple[list[int], list[int]]:
        """Shorten the strips of a box that overlap other boxes, and others' strips that overlap it.

        Return the faces of shortened strips of b, whose rows must be recounted, and the other boxes
        with shortened strips.
        """
        lower, upper = self.lower[: self.n_boxes], self.upper[: self.n_boxes]
        apart = (lower >= upper[b]) | (upper <= lower[b])
        # Boxes that are separated along a single feature limit each other's strips there.
        blocking_boxes = np.flatnonzero(apart.sum(axis=1) == 1)
        if not len(blocking_boxes):
            return [], []
        along = apart[blocking_boxes].argmax(axis=1)
        above = lower[blocking_boxes, along] >= upper[b, along]
        own_faces, facing = 2 * along + above, 2 * along + ~above
        own_limit = np.where(above, lower[blocking_boxes, along], upper[blocking_boxes, along])
        facing_limit = np.where(above, upper[b, along], lower[b, along])
        far, facing_far = self.far[b, own_faces], self.far[blocking_boxes, facing]
        too_far = np.flatnonzero(np.where(above, far > own_limit, far < own_limit))
        shortened = own_faces[too_far].tolist()
        for face, limit in zip(shortened, own_limit[too_far].tolist(), strict=True):
            self._shorten(b, face, limit)
        too_far = np.flatnonzero(
            np.where(above, facing_far < facing_limit, facing_far > facing_limit)
        )
        changed = blocking_boxes[too_far].tolist()
        parts = facing[too_far].tolist(), facing_limit[too_far].tolist()
        for other, face, limit in zip(changed, *parts, strict=True):
            self._shorten(other, face, limit)
            self._recount(other, face)
        return shortened, changed

    def _shorten(self, b: int, face: int, limit: float) -> None:
        """Shorten a strip to a limit unless it ends at or before the limit."""
        j, far = face >> 1, self.far[b, face]
        if (far <= limit) if face & 1 else (far >= limit):
            return
        self._forget(b, face)
        if limit == (self.upper[b, j] if face & 1 else self.lower[b, j]):
            self._close(b, face)
            return
        self.far[b, face] = limit
        self.far_rank[b, face] = self.order.rank(j, limit)

    def _close(self, b: int, face: int) -> None:
        """Mark a face without a strip."""
        j = face >> 1
        self.open[b, face] = False
        self.far[b, face] = self.upper[b, j] if face & 1 else self.lower[b, j]
        self.far_rank[b, face] = self.near_rank[b, face]

    def _add_rows_to_strips(self, b: int, rows: np.ndarray, features: np.ndarray) -> None:
        """Add rows that are outside a box along only one feature to the strips around them."""
        features = features.astype(np.intp)
        values = self.X[rows, features]
        faces = 2 * features + (values >= self.upper[b, features])
        far = self.far[b, faces]
        inside = np.where(faces & 1, values < far, values >= far)
        rows, faces = rows[inside], faces[inside]
        if len(rows):
            self.n[b] += np.bincount(faces, minlength=self.n_faces)
            self.sums[b] += self.predictions.rows(rows, faces, self.n_faces)

    def _recount(self, b: int, face: int) -> None:
        """Recount the rows of one strip."""
        slab = self._slab(b, face)
        rows = slab[self._row_codes(b)[slab] == self.n_features + (face >> 1)]
        self.n[b, face] = len(rows)
        self.sums[b, face] = self.predictions.rows(rows, np.zeros(len(rows), dtype=np.intp), 1)[0]

    def step(self) -> bool:
        """Move a face or turn a strip into a box, after at most one query.

        Return False if no step is possible.
        """
        choice, stale = self._choose_strip(), self._stale()
        if stale.any():
            # Before a new box is created, all strips that may have smaller gaps are updated.
            nothing_near = choice is None or self.gap[choice] > self.limit
            if nothing_near or stale[choice]:
                self._sample_strips(stale.size if nothing_near else max(4, self.n_features // 2))
                stale = self._stale()
                choice = self._choose_strip(~stale)
        if choice is None:
            return bool(stale.any())
        if self.gap[choice] > self.limit:
            if self.n_boxes >= self._max_boxes:
                return False
            self.split_off(*choice)
        else:
            self.grow(*choice)
        return True

    def grow_all(self, max_steps: int, fill_gaps: bool) -> int:
        """Grow boxes until no step is possible or `max_steps` are made; return the number of steps.

        With `fill_gaps`, new boxes start at the first row without a box.
        """
        row = 0
        for n_steps in range(max_steps):
            if self.step():
                continue
            uncovered = self.owner[row:] < 0
            if not fill_gaps or not uncovered.any() or self.n_boxes >= self._max_boxes:
                return n_steps
            row += int(uncovered.argmax())
            self.add_box(*self.around_uncovered(row))
        return max_steps

    def _choose_strip(self, allowed: np.ndarray | None = None) -> tuple[int, int] | None:
        """Return the box and face of the next strip; None if there is none."""
        in_use = slice(0, self.n_boxes)
        gap, n = self.gap[in_use], self.n[in_use]
        if allowed is not None:
            gap = np.where(allowed, gap, np.inf)
        smallest_gap = gap.min()
        if smallest_gap > self.limit and (has_rows := (n > 0) & (gap < np.inf)).any():
            gap = np.where(has_rows, gap, np.inf)
            smallest_gap = gap.min()
        if smallest_gap == np.inf:
            return None
        ties = np.flatnonzero(gap == smallest_gap)
        if len(ties) > 1:
            impurity = self.impurity[in_use].ravel()[ties]
            ties = ties[np.lexsort((impurity, -n.ravel()[ties]))]
        box, face = divmod(int(ties[0]), self.n_faces)
        return box, face

    def _undersampled(self, share: float) -> np.ndarray:
        """Return a mask of strips with too few rows whose points represent less than a share."""
        in_use = slice(0, self.n_boxes)
        lacks = self.n[in_use] < self._min_examples
        return self.open[in_use] & lacks & (self.share[in_use] < share)

    def _stale(self) -> np.ndarray:
        """Return a mask of strips that need further points before they are used."""
        return self._undersampled(_MIN_SHARE_TO_USE)

    def _n_points(self, b: int) -> np.ndarray:
        """Return the number of points per strip, which replace missing rows."""
        return np.maximum(self._min_examples - self.n[b], 0)

    def _strip_means(self, b: int) -> np.ndarray:
        """Return the mean vectors of all strips of a box; zeros for empty strips."""
        points = self._n_points(b)
        total = np.maximum(self.n[b] + points, 1)
        return (self.sums[b] + points[:, None] * self.point_mean[b]) / total[:, None]

    def _forget(self, b: int, face: int) -> None:
        """Discard the points of a strip that has changed."""
        self.share[b, face], self.snapshot[b, face] = 0, -1

    def _compare_strips(self, b: int) -> None:
        """Update the gaps and impurities of all strips of a box."""
        means = self._strip_means(b)
        gap = self.predictions.gaps(means, (self.mean if self._follow else self.first_mean)[b])
        impurity = self.predictions.impurities(means)
        if self._min_examples == 0:
            # Empty strips are joined last, in the order that makes boxes grow evenly.
            unknown = np.flatnonzero((self.n[b] == 0) & self.open[b])
            gap[unknown] = self.limit
            features = unknown >> 1
            extent = np.minimum(self.upper[b], self.domain_upper)[features]
            extent -= np.maximum(self.lower[b], self.domain_lower)[features]
            impurity[unknown] = np.round(extent / self.steps[features], 6)
        waiting = (self.share[b] == 0) & (self.n[b] < self._min_examples)
        gap[waiting | ~self.open[b]] = np.inf
        self.gap[b], self.impurity[b] = gap, impurity

    def _sample_strips(self, max_strips: int) -> None:
        """Sample all strips without points, and the next `max_strips` others, in one query."""
        in_use = slice(0, self.n_boxes)
        flat = np.flatnonzero(self._undersampled(_MAX_SHARE_TO_UPDATE))
        unknown = self.share[in_use].ravel()[flat] == 0
        gap = np.where(unknown, -1.0, self.gap[in_use].ravel()[flat])
        n, impurity = self.n[in_use].ravel()[flat], self.impurity[in_use].ravel()[flat]
        order = np.lexsort((impurity, -n, gap))
        room = max(1, _MAX_QUERY_NUMBERS // (self._min_examples * self.n_features))
        flat = flat[order][: min(max_strips + int(unknown.sum()), room)]
        boxes, faces = np.divmod(flat, self.n_faces)
        self._query_strips(boxes, faces)
        for b in np.unique(boxes).tolist():
            self._compare_strips(b)

    def _query_strips(self, boxes: np.ndarray, faces: np.ndarray) -> None:
        """Query the black box at points in strips, and update their means."""
        positions, features, share = np.arange(len(boxes)), faces >> 1, self.share[boxes, faces]
        lower = np.maximum(self.lower[boxes], self.domain_lower)
        upper = np.minimum(self.upper[boxes], self.domain_upper)
        last, self.snapshot[boxes, faces] = (
            self.snapshot[boxes, faces],
            self._keep_bounds(boxes, lower, upper),
        )
        near = np.where(faces & 1, upper[positions, features], lower[positions, features])
        far = np.clip(
            self.far[boxes, faces], self.domain_lower[features], self.domain_upper[features]
        )
        lower[positions, features], upper[positions, features] = (
            np.minimum(near, far),
            np.maximum(near, far),
        )

        keys = combine(combine(boxes, faces), self.draws[boxes, faces])
        self.draws[boxes, faces] += 1
        n_points = (self._min_examples - self.n[boxes, faces]).astype(np.intp)
        points = self._points.draw(keys, lower, upper, int(n_points.max()))
        queried = np.arange(points.shape[1]) < n_points[:, None]
        sampled_before = np.flatnonzero(share > 0)
        if len(sampled_before):
            before = self._snapshots[last[sampled_before]]
            before[np.arange(len(sampled_before)), 0, features[sampled_before]] = -np.inf
            before[np.arange(len(sampled_before)), 1, features[sampled_before]] = np.inf
            new_points = points[sampled_before]
            new = (new_points < before[:, None, 0]) | (new_points >= before[:, None, 1])
            queried[sampled_before] &= new.any(axis=2)
        owner = queried.nonzero()[0]
        if len(owner):
            encoded = self.predictions.encode(self._query(points[queried]))
            sums = self.predictions.sums(encoded, owner, len(boxes))
            count = np.bincount(owner, minlength=len(boxes))
            has_points = count > 0
            strips = boxes[has_points], faces[has_points]
            old = share[has_points, None]
            self.point_mean[strips] = old * self.point_mean[strips] + (1 - old) * (
                sums[has_points] / count[has_points, None]
            )
        self.share[boxes, faces] = 1

    def _keep_bounds(self, boxes: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
        """Store the current bounds of boxes; return their indices in the snapshots."""
        _, first, index = np.unique(boxes, return_index=True, return_inverse=True)
        start, stop = self._n_snapshots, self._n_snapshots + len(first)
        if stop > len(self._snapshots):
            larger = np.empty((2 * stop, 2, self.n_features))
            larger[:start] = self._snapshots[:start]
            self._snapshots = larger
        self._snapshots[start:stop, 0] = lower[first]
        self._snapshots[start:stop, 1] = upper[first]
        self._n_snapshots = stop
        return start + index


def seed_boxes(
    growing: GrowingBoxes, predictions: np.ndarray, task: str, n_points: int
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return the bounds of the first boxes, which are disjoint.

    In classification, they lie around the first row of each class; in regression, around the rows
    whose predictions are nearest to evenly spaced values (for one box, the middle of the range). If
    `n_points` boxes would overlap, there are fewer boxes.
    """
    if task == "classification":
        present = np.flatnonzero(np.bincount(predictions))
        max_seeds, order = min(n_points, len(present)), None
    else:
        max_seeds = min(n_points, len(predictions))
        # Rows with equal predictions keep their order.
        order = np.argsort(predictions, kind="stable") if max_seeds > 1 else None
    for n in range(max_seeds, 1, -1):
        boxes: list[tuple[np.ndarray, np.ndarray]] = []
        for i in range(n):
            if order is None:
                row = int(np.argmax(predictions == present[i]))
            else:
                row = _nearest(predictions, order, i / (n - 1))
            lower, upper = growing.around(row)
            if any(((lower < high) & (low < upper)).all() for low, high in boxes):
                break
            boxes.append((lower, upper))
        else:
            return boxes
    if task == "classification":
        return [growing.around(int(np.argmax(predictions == present[0])))]
    halfway = predictions.min() / 2 + predictions.max() / 2
    return [growing.around(int(np.argmin(np.abs(predictions - halfway))))]


def _nearest(predictions: np.ndarray, order: np.ndarray, share: float) -> int:
    """Return the first row whose prediction is nearest to a position in the predictions' range."""
    low, high = predictions[order[0]], predictions[order[-1]]
    target = low + share * (high - low)
    above = int(np.searchsorted(predictions, target, sorter=order))
    candidates = []
    if above < len(order):
        candidates.append(int(order[above]))
    if above > 0:  # first row with the next lower prediction
        below = np.searchsorted(predictions, predictions[order[above - 1]], sorter=order)
        candidates.append(int(order[below]))
    return min(candidates, key=lambda row: (abs(predictions[row] - target), row))


# --- the extractor --------------------------------------------------------------------------------


#: Largest magnitude of features; steps along larger ones would overflow.
_MAX_FEATURE = 1e300


@documented
class ITERExtractor(BaseExtractor):
    """Disjoint boxes that grow from seed rows by their most similar adjacent strips.

    The algorithm starts with small boxes around `n_points` rows. Every step considers the strips of
    `min_update` width at the faces of the boxes. The strip with the smallest gap (the difference
    between its predictions and those of its box) joins its box, or becomes a new box if the gap
    exceeds `threshold`. Rows that remain without a box get boxes at the end. ITER gives a few
    simple rules, even where a grid needs many. Use it if queries of the black box are cheap and its
    predictions depend on few features.

    Parameters
    ----------
    {estimator}
    min_update : float, default=0.1
        Step size as a share of each feature's range, above 0 and at most 1. Smaller steps find more
        precise borders and need more iterations.
    n_points : int, default=3
        Number of initial boxes, at least 1: around one row of each of the first `n_points` classes,
        or, in regression, around rows whose predictions are evenly spaced. There are fewer if the
        boxes would overlap.
    n_features_to_select : int or None, default=5
        {selection}
    max_rules : int or None, default=16
        Largest number of boxes, at least 1; the regions between them remain uncovered. None:
        limited only by `max_iterations`.
    max_iterations : int, default=600
        Largest number of steps, at least 1.
    min_examples : int, default=100
        Smallest number of predictions per strip. In strips with fewer rows, the black box is
        queried at uniform random points. With 0 no points are drawn and nothing is random.
    threshold : float or None, default=None
        Largest gap between a strip and the box that it joins: the difference of their mean
        predictions in regression, the distance of their class probabilities in classification, from
        0 (equal) to 1 (no class in common). None: 0.15 in classification, half the standard
        deviation of the predictions in regression.
    fill_gaps : bool, default=True
        Whether to start new boxes at uncovered rows until all rows are covered, within
        `max_iterations`.
    ignore_dimensions : sequence of int or str, default=()
        Columns, by index or name, that rules do not use.
    refresh_output : bool, default=True
        True: strips are compared with the current box, and rules predict the black box's majority
        class or mean. False: strips and rules use the box's first prediction (PSyKE).
    {common}
    random_state : int, RandomState instance or None, default=None
        Seed of the points. Pass an int for reproducible rules.

    Attributes
    ----------
    rules_ : RuleSet
        The rules: disjoint half-open boxes, each of which covers at least one training row.
    n_iterations_ : int
        Number of steps. The black box is queried once for the rows and at most once per step.
    {sizes}
    {fitted}

    Notes
    -----
    The gap between class probabilities p and q is ``sum(abs(p - q)) / 2``. If majority classes were
    compared instead, nearly all gaps would be 0.

    Among equal gaps, the strip with the most rows is used, then the one with the smallest impurity,
    then the one of the older box, the earlier feature and the lower face. A strip without rows
    becomes a box only if no strip has rows. Boxes without rows do not become rules.

    The mean of a strip is computed from its rows and from points that replace missing rows. Points
    remain valid while their face does not move. If the box grows along other features, the new part
    of the strip is queried once it makes up 30 % of the strip. Points depend on `random_state`,
    box, face and number of draws, not on other queries. Rows are ordered by a hash of their
    content, so that their original order does not matter and a row of weight 2 counts as two rows.

    In classification, boxes of the same class that share a full face are joined at the end, which
    changes no prediction. Features that are constant on the rows never appear in rules.

    References
    ----------
    J. Huysmans, B. Baesens, J. Vanthienen: ITER: An algorithm for predictive regression rule
    extraction. DaWaK 2006. doi:10.1007/11823728_26

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> from skescore.extractors import ITERExtractor
    >>> data = load_iris(as_frame=True)
    >>> labels = data.target_names[data.target]
    >>> extractor = ITERExtractor(
    ...     KNeighborsClassifier(9), n_points=1, min_examples=250, threshold=0.3, random_state=0
    ... )
    >>> print(extractor.fit(data.data, labels).rules_)
    1. IF petal length (cm) < 2.28 THEN setosa
       [50 rows, 100 % agree with the model, 100 % right (data)]
    2. IF 2.87 ≤ petal length (cm) < 4.64 THEN versicolor
       [40 rows, 100 % agree with the model, 98 % right (data)]
    3. IF petal length (cm) ≥ 4.64 THEN virginica
       [60 rows, 85 % agree with the model, 82 % right (data)]
    otherwise, where no rule holds: virginica
    >>> extractor.n_iterations_, extractor.oracle_.n_calls
    (36, 22)
    """

    takes_categories: ClassVar[bool] = True
    _orders_categories: ClassVar[bool] = True

    def __init__(
        self,
        estimator: Any,
        *,
        min_update: float = 0.1,
        n_points: int = 3,
        n_features_to_select: int | None = 5,
        max_rules: int | None = 16,
        max_iterations: int = 600,
        min_examples: int = 100,
        threshold: float | None = None,
        fill_gaps: bool = True,
        ignore_dimensions: Sequence[int | str] = (),
        refresh_output: bool = True,
        features: Any = None,
        sampling: Any = None,
        n_queries: int = N_QUERIES,
        prune: str | None = None,
        uncovered: str = "default",
        abstain_label: Any = None,
        batch_size: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.min_update = min_update
        self.n_points = n_points
        self.n_features_to_select = n_features_to_select
        self.max_rules = max_rules
        self.max_iterations = max_iterations
        self.min_examples = min_examples
        self.threshold = threshold
        self.fill_gaps = fill_gaps
        self.ignore_dimensions = ignore_dimensions
        self.refresh_output = refresh_output
        self.features = features
        self.sampling = sampling
        self.n_queries = n_queries
        self.prune = prune
        self.uncovered = uncovered
        self.abstain_label = abstain_label
        self.batch_size = batch_size
        self.random_state = random_state

    def _check_parameters(self) -> None:
        remedy = "It is the share of a feature's range by which boxes grow."
        check.check_number("min_update", self.min_update, high=1, above=0, remedy=remedy)
        check.check_integer("n_points", self.n_points, 1)
        check.check_integer("n_features_to_select", self.n_features_to_select, 1, optional=True)
        check.check_integer("max_rules", self.max_rules, 1, optional=True)
        check.check_integer("max_iterations", self.max_iterations, 1)
        check.check_integer("min_examples", self.min_examples, 0)
        check.check_number("threshold", self.threshold, 0.0, optional=True)
        check.check_flag("fill_gaps", self.fill_gaps)
        check.check_flag("refresh_output", self.refresh_output)

    def _extract(self, extraction: Extraction) -> RuleSet:
        extraction.check_magnitude(_MAX_FEATURE, "steps along them would overflow")
        extraction.check_predictions(_MAX_PREDICTION)
        # Boxes start at the first suitable row, which must not depend on the original order.
        extraction, _ = extraction.in_content_order()
        X, domain, y_pred = extraction.X, extraction.settings["domain"], extraction.predictions
        lower, upper = np.array(domain.lower), np.array(domain.upper)
        predictions: Predictions
        if extraction.classes is not None:
            predictions, threshold = LabelVectors(y_pred, len(extraction.classes)), 0.15
        else:
            predictions, threshold = NumberVectors(y_pred), float(np.std(y_pred)) / 2
        if self.threshold is not None:
            threshold = float(self.threshold)
        # Both ends of a shorter step would be the same float.
        min_step = 4 * np.spacing(np.maximum(np.abs(lower), np.abs(upper)))
        steps = np.where(
            lower < upper, np.maximum(self.min_update * (upper - lower), min_step), 0.0
        )
        for feature in extraction.categories:  # faces lie between values
            steps[feature] = max(1.0, np.ceil(steps[feature]))
        ignored = _column_indices(self.ignore_dimensions, extraction.settings["feature_names"])
        steps[ignored] = 0.0
        candidates = np.flatnonzero(steps > 0)
        selected = candidates[
            important_features(X[:, candidates], y_pred, extraction.task, self.n_features_to_select)
        ]
        steps[np.setdiff1d(candidates, selected)] = 0.0
        growing = GrowingBoxes(
            X,
            predictions,
            lower,
            upper,
            steps,
            query=partial(extraction.query, cache=False),
            points=PointSource(draw_seed(self.random_state), self.min_examples, X.shape[1]),
            min_examples=self.min_examples,
            limit=predictions.limit(threshold),
            follow=bool(self.refresh_output),
            max_boxes=self.max_rules,
            categories=extraction.categories,
        )
        n_points = self.n_points if self.max_rules is None else min(self.n_points, self.max_rules)
        for bounds in seed_boxes(growing, y_pred, extraction.task, n_points):
            growing.add_box(*bounds)
        self.n_iterations_ = growing.grow_all(self.max_iterations, bool(self.fill_gaps))
        return RuleSet.from_boxes(
            *self._conclude(extraction, growing),
            ordered=False,
            disjoint=True,
            **extraction.settings,
        )

    def _conclude(
        self, extraction: Extraction, growing: GrowingBoxes
    ) -> tuple[BoxTable, Conclusions]:
        """Convert the boxes that contain rows to rules."""
        owner, y_pred = growing.owner, extraction.predictions
        if owner.min() < 0:
            y_pred, owner = y_pred[owner >= 0], owner[owner >= 0]
        boxes_with_rows = np.flatnonzero(np.bincount(owner))
        lower, upper = growing.lower[boxes_with_rows], growing.upper[boxes_with_rows]
        rule = np.zeros(growing.n_boxes, dtype=np.intp)
        rule[boxes_with_rows] = np.arange(len(boxes_with_rows))
        first_outputs = growing.predictions.outputs(growing.first_mean[boxes_with_rows])
        if extraction.classes is not None:
            counts = _class_counts(
                y_pred, rule[owner], len(boxes_with_rows), len(extraction.classes)
            )
            outputs = counts.argmax(axis=1) if self.refresh_output else first_outputs
            first, joined = join_touching(lower, upper, outputs)
            rule[boxes_with_rows] = joined
            counts = _class_counts(y_pred, rule[owner], len(first), len(extraction.classes))
            lower, upper, outputs = lower[first], upper[first], outputs[first]
            conclusions = Conclusions(outputs, n_rows=counts.sum(axis=1), class_counts=counts)
        else:
            box = rule[owner]
            n_rows = np.bincount(box)
            mean = np.bincount(box, y_pred) / n_rows
            squares = (y_pred - mean[box]) ** 2
            deviation = np.sqrt(np.bincount(box, squares) / n_rows)
            outputs = mean if self.refresh_output else first_outputs
            conclusions = Conclusions(
                outputs, n_rows=n_rows, mean=mean, standard_deviation=deviation
            )
        is_closed = np.isfinite(lower)
        return BoxTable(lower, upper, is_closed, np.zeros_like(is_closed)), conclusions


def _class_counts(codes: np.ndarray, rule: np.ndarray, n_rules: int, n_classes: int) -> np.ndarray:
    counts = np.bincount(rule * n_classes + codes, minlength=n_rules * n_classes)
    return counts.reshape(n_rules, n_classes)


def _column_indices(columns_or_names: Any, names: Any) -> list[int]:
    """Return the indices of columns given by index or name."""
    if isinstance(columns_or_names, str) or not isinstance(columns_or_names, Sequence | np.ndarray):
        raise TypeError(
            "ignore_dimensions must be a sequence of column indices or names, such as [0] or "
            f"['age'], got {columns_or_names!r}."
        )
    column_names, columns = [str(name) for name in names], []
    for column in columns_or_names:
        if isinstance(column, str):
            if column not in column_names:
                raise ValueError(
                    f"ignore_dimensions must hold names of columns, but {column!r} is none of "
                    f"{column_names}."
                )
            columns.append(column_names.index(column))
            continue
        if not isinstance(column, int | np.integer) or isinstance(column, bool):
            raise TypeError(f"ignore_dimensions must hold column indices or names, got {column!r}.")
        if not 0 <= column < len(column_names):
            raise ValueError(
                f"ignore_dimensions must hold column indices from 0 to {len(column_names) - 1}, "
                f"got {column!r}."
            )
        columns.append(int(column))
    return columns
