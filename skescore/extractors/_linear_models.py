"""Linear models of the black box's predictions in boxes that may be joined.

The sufficient statistics of a least-squares fit are additive, so the model of a union is computed
without rows. Only its mean absolute residual requires the rows. The rows of a cell are a range in a
list of row numbers and are processed in pieces.

All features and predictions are shifted and scaled to about 1, so that large offsets and small
units do not reduce the precision.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields

import numpy as np

from skescore.rules import Conclusions, LinearOutput

#: Number of rows that are processed at once; they fit into the CPU cache.
CHUNK = 4096
#: Largest number of rows in groups that are processed together.
_MAX_SMALL_GROUP = 512
#: Smallest standard deviation of a varying feature, in units of the rows' range.
_MIN_DEVIATION = 1e-12
#: Relative size below which effects and intercepts are regarded as rounding errors.
_ROUNDING = 1e-12
#: Ridge that makes every system solvable, and number of refinement steps that remove its effect.
_TINY_RIDGE, _N_REFINEMENTS = 1e-10, 2
#: Boxes with fewer points than this factor times (varying features + 2) are fitted with a ridge.
_FEW_POINTS_FACTOR = 2
#: Share of unexplained variance below which a feature is redundant.
_REDUNDANCY = 1e-9
#: Relative difference below which gains are regarded as equal.
_GAIN_TOLERANCE = 1e-9
#: Number of boxes or pairs of boxes whose linear models are computed together.
_BLOCK_SIZE = 1024
#: Difference of mean residuals that is regarded as 0, as a share of the predictions' range.
TIE = 1e-9
#: Default threshold, as shares of a single model's mean absolute residual and of the deviation.
_SHARE_OF_RESIDUAL, _SHARE_OF_DEVIATION = 0.5, 0.01


def ridge_slopes(n: np.ndarray, gram: np.ndarray) -> np.ndarray:
    """Return the slopes of the least-squares models of many boxes.

    `n` holds the numbers of points, and `gram` the sums of products of deviations from the mean,
    with the predictions last. Features that are constant in a box get the slope 0.

    Features are standardized in each box, so the inverted matrix is their correlation. Among
    equally good models of correlated features, the result is close to the one of smallest norm.

    A model of few points overfits and is steep along features that vary little among them. With d
    varying features and n < 2 (d + 2) points, the slopes minimize the mean squared residual plus
    d/n times the mean variance of the features times the sum of the squared slopes, all in units of
    the rows' ranges.
    """
    moments = gram[:, :-1, :-1] / n[:, None, None]
    variance = np.einsum("bjj->bj", moments)
    varies = variance > _MIN_DEVIATION**2
    n_varying = varies.sum(axis=1)
    few = n < _FEW_POINTS_FACTOR * (n_varying + 2)
    common = np.where(varies, variance, 0.0).sum(axis=1) / np.maximum(n_varying, 1)
    spread = np.sqrt(np.where(few[:, None], common[:, None], variance))
    scale = np.where(varies, 1 / np.where(varies, spread, 1.0), 0.0)
    correlation = moments * (scale[:, :, None] * scale[:, None, :])
    target = gram[:, :-1, -1:] / n[:, None, None] * scale[:, :, None]
    diagonal = np.arange(correlation.shape[1])
    solvable = correlation.copy()
    solvable[:, diagonal, diagonal] += (np.where(few, n_varying / n, 0.0) + _TINY_RIDGE)[:, None]
    inverse = np.linalg.inv(solvable)
    slopes = inverse @ target
    for _ in range(_N_REFINEMENTS):
        refinement = inverse @ (target - correlation @ slopes)
        slopes += np.where(few, 0.0, 1.0)[:, None, None] * refinement
    slopes[np.abs(slopes) < _ROUNDING] = 0.0
    return np.asarray(slopes[:, :, 0] * scale)


def sparse_slopes(n: np.ndarray, gram: np.ndarray, max_terms: int | None) -> np.ndarray:
    """Return slopes of linear models with at most `max_terms` nonzero slopes; None: no limit.

    Forward selection chooses the features that reduce the squared residual most. Their model is
    then fitted by :func:`ridge_slopes`.
    """
    n_boxes, n_features = gram.shape[0], gram.shape[1] - 1
    if max_terms is None or max_terms >= n_features:
        return ridge_slopes(n, gram)
    residual_gram, box = gram.copy(), np.arange(n_boxes)
    variance = np.einsum("bjj->bj", gram)[:, :-1]
    chosen = np.empty((n_boxes, max_terms), dtype=np.intp)
    useful = np.empty((n_boxes, max_terms), dtype=bool)
    for term in range(max_terms):
        # Variance of each feature that the selected features leave unexplained.
        unexplained = np.einsum("bjj->bj", residual_gram)[:, :-1]
        is_candidate = (unexplained > _REDUNDANCY * variance) & (
            variance > n[:, None] * _MIN_DEVIATION**2
        )
        gain = np.where(
            is_candidate,
            residual_gram[:, :-1, -1] ** 2 / np.where(is_candidate, unexplained, 1.0),
            0.0,
        )
        # The first of features with equal gains, up to rounding errors, is selected.
        near = gain >= gain.max(axis=1, keepdims=True) * (1 - _GAIN_TOLERANCE)
        best = chosen[:, term] = near.argmax(axis=1)
        useful[:, term] = gain[box, best] > _ROUNDING * gram[:, -1, -1]
        column = np.where(useful[:, term, None], residual_gram[box, :, best], 0.0)
        pivot = np.where(useful[:, term], unexplained[box, best], 1.0)
        residual_gram -= column[:, :, None] * column[:, None, :] / pivot[:, None, None]
    index = np.append(chosen, np.full((n_boxes, 1), n_features), axis=1)
    in_model = np.append(useful, np.ones((n_boxes, 1), dtype=bool), axis=1)
    part = gram[box[:, None, None], index[:, :, None], index[:, None, :]]
    model_slopes = ridge_slopes(n, part * (in_model[:, :, None] & in_model[:, None, :]))
    slopes = np.zeros((n_boxes, n_features))
    np.add.at(slopes, (box[:, None], chosen), np.where(useful, model_slopes, 0.0))
    return slopes


@dataclass(frozen=True, eq=False)
class Units:
    """Origin and unit of every feature and, as last entries, of the predictions.

    A number x is scaled to ``(x - origin) / unit``. Features that are constant, or whose slope
    would overflow, are not usable.
    """

    origin: np.ndarray
    unit: np.ndarray
    usable: np.ndarray

    @classmethod
    def of(cls, lower: np.ndarray, upper: np.ndarray, predictions: np.ndarray) -> Units:
        """Return units with the midpoints and ranges of a domain and of predictions."""
        low, high = np.append(lower, predictions.min()), np.append(upper, predictions.max())
        span = high - low
        usable = span[:-1] > 1e-280 * max(span[-1], 1e-20)
        unit = np.where(np.append(usable, span[-1] > 0), span, 1.0)
        return cls(low / 2 + high / 2, unit, usable)

    def models(self, vectors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Convert residual vectors to intercepts and slopes in the original units."""
        slopes = -vectors[:, :-2] * (self.unit[-1] / self.unit[:-1])
        level = self.origin[-1] - vectors[:, -1] * self.unit[-1]
        intercepts = level - slopes @ self.origin[:-1]
        parts = np.abs(level) + np.abs(slopes) @ np.abs(self.origin[:-1])
        return np.where(np.abs(intercepts) < _ROUNDING * parts, 0.0, intercepts), slopes


@dataclass(frozen=True, eq=False)
class Groups:
    """Points grouped by box.

    A group is a range in `order`, a list of point numbers; without `order` it is a range of points.
    """

    begin: np.ndarray
    size: np.ndarray
    order: np.ndarray | None = None

    @classmethod
    def of(cls, parts: Sequence[np.ndarray]) -> Groups:
        """Create groups from arrays of point numbers."""
        size = np.array([len(part) for part in parts], dtype=np.intp)
        order = np.concatenate(parts) if parts else np.empty(0, np.intp)
        return cls(np.cumsum(size) - size, size, order)

    def take(self, index: np.ndarray) -> Groups:
        """Select groups by index."""
        return Groups(self.begin[index], self.size[index], self.order)

    def points(self, group: int) -> np.ndarray:
        """Return the numbers of the points of one group."""
        begin, end = self.begin[group], self.begin[group] + self.size[group]
        return np.arange(begin, end) if self.order is None else self.order[begin:end]


class Points:
    """Rows and queried points, sorted by box, as rows of features, prediction, and 1.

    `by_box` groups the points by box.
    """

    def __init__(
        self, X: np.ndarray, predictions: np.ndarray, box: np.ndarray, n_boxes: int, units: Units
    ) -> None:
        self.units = units
        size = np.bincount(box, minlength=n_boxes)
        self.by_box = Groups(np.cumsum(size) - size, size)
        n_points, n_features = X.shape
        # Integers of 16 bits are sorted in linear time.
        order = np.argsort(box.astype(np.uint16) if n_boxes <= 1 << 16 else box, kind="stable")
        # The row of zeros at the end represents absent points.
        self._rows = np.zeros((n_points + 1, n_features + 2))
        # Repeated for every row of a block, so that NumPy can process whole blocks.
        origin = np.tile(np.append(units.origin, 0.0), (_MAX_SMALL_GROUP, 1))
        factor = np.tile(
            np.append(np.append(units.usable, True) / units.unit, 1.0), (_MAX_SMALL_GROUP, 1)
        )
        for begin in range(0, n_points, _MAX_SMALL_GROUP):
            index = order[begin : begin + _MAX_SMALL_GROUP]
            rows = self._rows[begin : begin + len(index)]
            if X.flags.c_contiguous:
                rows[:, :-2] = X.take(index, axis=0)
            else:
                for j in range(n_features):
                    rows[:, j] = X[:, j].take(index)
            rows[:, -2] = predictions.take(index)
            rows[:, -1] = 1.0
            rows -= origin[: len(index)]
            rows *= factor[: len(index)]
        self._buffer = np.empty((CHUNK, n_features + 2))

    def look_up(self, index: np.ndarray) -> np.ndarray:
        """Return at most `CHUNK` points; the next call overwrites them."""
        rows = self._buffer[: index.size].reshape(*index.shape, -1)
        return np.take(self._rows, index, axis=0, out=rows, mode="clip")

    def pieces(self, groups: Groups) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Iterate over the points of all groups.

        Yields group numbers and their points, padded with rows of zeros; the next iteration
        overwrites the points. A large group is yielded alone, in several pieces.
        """
        order, nothing = groups.order, len(self._rows) - 1
        for g in np.flatnonzero(groups.size > _MAX_SMALL_GROUP).tolist():
            start, end = int(groups.begin[g]), int(groups.begin[g] + groups.size[g])
            for begin in range(start, end, CHUNK):
                piece = slice(begin, min(begin + CHUNK, end))
                rows = self._rows[piece] if order is None else self.look_up(order[piece])
                yield np.array([g]), rows[None]
        width = np.ceil(np.log2(np.maximum(groups.size, 1))).astype(np.intp)
        width[groups.size > _MAX_SMALL_GROUP] = -1
        for exponent in np.flatnonzero(np.bincount(width + 1)[1:]).tolist():
            small_groups, size = np.flatnonzero(width == exponent), 1 << exponent
            offset = np.arange(size)
            for begin in range(0, len(small_groups), CHUNK // size):
                group = small_groups[begin : begin + CHUNK // size]
                is_point = offset < groups.size[group, None]
                index = groups.begin[group, None] + offset
                if order is not None:
                    index = order[np.minimum(index, len(order) - 1)]
                yield group, self.look_up(np.where(is_point, index, nothing))


@dataclass(eq=False)
class Fits:
    """Numbers, means and second moments of the points in boxes, which determine linear models.

    The second moments are sums of products of deviations from the mean. The last row and column are
    for the predictions.
    """

    n: np.ndarray
    mean: np.ndarray
    gram: np.ndarray

    @classmethod
    def collect(cls, points: Points, groups: Groups) -> Fits:
        """Compute the moments of groups of points."""
        n_groups, size = len(groups.size), len(points.units.origin)
        fits = cls(np.zeros(n_groups), np.zeros((n_groups, size)), np.zeros((n_groups, size, size)))
        buffer = np.empty((CHUNK, size))
        for group, rows in points.pieces(groups):
            totals = (rows[:, None, :, -1] @ rows)[:, 0]
            n, mean = totals[:, -1], totals[:, :-1] / totals[:, -1:]
            centered = buffer[: rows.shape[0] * rows.shape[1]].reshape(*rows.shape[:2], size)
            np.multiply(mean[:, None, :], rows[:, :, -1:], out=centered)  # 0 for empty groups
            np.subtract(rows[:, :, :-1], centered, out=centered)
            piece = cls(n, mean, centered.transpose(0, 2, 1) @ centered)
            if len(group) == 1:  # possibly a later piece of the group
                piece = fits.take(group).plus(piece)
            fits.n[group], fits.mean[group], fits.gram[group] = piece.n, piece.mean, piece.gram
        return fits

    def take(self, index: np.ndarray | list[int]) -> Fits:
        """Select boxes by index."""
        return Fits(self.n[index], self.mean[index], self.gram[index])

    @classmethod
    def stacked(cls, parts: Sequence[Fits]) -> Fits:
        """Concatenate several tables."""
        return cls(
            np.concatenate([part.n for part in parts]),
            np.concatenate([part.mean for part in parts]),
            np.concatenate([part.gram for part in parts]),
        )

    def restricted(self, varies: np.ndarray) -> Fits:
        """Return the moments as if features not marked in `varies` were constant in the box."""
        in_gram = np.append(varies, np.ones((len(varies), 1), bool), axis=1)
        return Fits(self.n, self.mean, self.gram * (in_gram[:, :, None] & in_gram[:, None, :]))

    def plus(self, other: Fits) -> Fits:
        """Return the moments of pairwise unions (or of unions of one box with each)."""
        n = self.n + other.n
        share = other.n / n
        mean_difference = other.mean - self.mean
        # Unlike a difference of squares, a sum of nonnegative terms loses no precision.
        between = (
            mean_difference[:, :, None] * (mean_difference * (self.n * share)[:, None])[:, None, :]
        )
        return Fits(
            n, self.mean + mean_difference * share[:, None], self.gram + other.gram + between
        )

    def vectors(self, slopes: np.ndarray) -> np.ndarray:
        """Return residual vectors, whose product with (x, prediction, 1) is the residual."""
        result = np.empty((len(self.n), self.mean.shape[1] + 1))
        result[:, :-2] = -slopes
        result[:, -2] = 1.0
        result[:, -1] = np.einsum("bj,bj->b", slopes, self.mean[:, :-1]) - self.mean[:, -1]
        return result


def absolute_residuals(
    points: Points, groups: Groups, vectors: np.ndarray, group: np.ndarray, model: np.ndarray
) -> np.ndarray:
    """Return sums of absolute residuals of groups of points from linear models.

    There is one sum per pair of a group and a model, sorted by group. Models are residual vectors.
    """
    result = np.zeros(len(group))
    first = np.searchsorted(group, np.arange(len(groups.size) + 1))
    for piece, rows in points.pieces(groups):
        max_pairs = int((first[piece + 1] - first[piece]).max(initial=0))
        pair = first[piece, None] + np.arange(max_pairs)
        is_pair = pair < first[piece + 1, None]
        chosen = vectors[model[np.minimum(pair, len(model) - 1)]]
        residuals = chosen @ rows.transpose(0, 2, 1)
        sums = np.abs(residuals, out=residuals).sum(axis=2)
        result[pair[is_pair]] += sums[is_pair]
    return result


@dataclass(eq=False)
class LinearModels:
    """Final linear models of boxes.

    `full` holds the residual vectors with all slopes, `vectors` those without the dropped slopes.
    Both are scaled by `units`.
    """

    units: Units
    full: np.ndarray
    full_residual: np.ndarray
    vectors: np.ndarray
    residual: np.ndarray
    mean: np.ndarray
    deviation: np.ndarray

    def __len__(self) -> int:
        return len(self.mean)

    @property
    def impurity(self) -> np.ndarray:
        """Mean absolute residual of each box's model, in the target's units."""
        return self.full_residual * self.units.unit[-1]

    def is_below(self, threshold: float) -> np.ndarray:
        """Return whether the impurity of each box is below a threshold."""
        return np.asarray(self.impurity < threshold)

    @property
    def n_dropped(self) -> int:
        """Number of slopes that were dropped from all models."""
        dropped = (self.full[:, :-2] != 0) & (self.vectors[:, :-2] == 0)
        return int(np.count_nonzero(dropped))

    def _arrays(self) -> list[np.ndarray]:
        return [getattr(self, field.name) for field in fields(self)[1:]]

    def take(self, index: np.ndarray) -> LinearModels:
        """Select boxes by index."""
        return LinearModels(self.units, *(array[index] for array in self._arrays()))

    @classmethod
    def joined(cls, units: Units, parts: Sequence[LinearModels]) -> LinearModels:
        """Concatenate several tables."""
        columns = zip(*(part._arrays() for part in parts), strict=True)
        return cls(units, *(np.concatenate(column) for column in columns))

    def conclude(self, n_rows: np.ndarray) -> Conclusions:
        """Return the outputs and statistics of the rules of the boxes."""
        return self._conclusions(n_rows, self.vectors)

    def conclude_in_full(self, n_rows: np.ndarray) -> Conclusions:
        """Return the outputs and statistics with all slopes."""
        return self._conclusions(n_rows, self.full)

    def _conclusions(self, n_rows: np.ndarray, vectors: np.ndarray) -> Conclusions:
        intercepts, slopes = self.units.models(vectors)
        is_constant = ~slopes.any(axis=1)
        linear = {
            int(i): LinearOutput(intercepts[i], tuple(enumerate(slopes[i].tolist())))
            for i in np.flatnonzero(~is_constant)
        }
        return Conclusions(
            np.where(is_constant, intercepts, np.nan),
            n_rows=n_rows,
            mean=self.units.origin[-1] + self.mean * self.units.unit[-1],
            standard_deviation=self.deviation * self.units.unit[-1],
            linear=linear,
        )


class LinearBox:
    """Points of one box and the moments that determine its linear model."""

    __slots__ = ("_fits", "_table", "points")

    def __init__(self, table: LinearTable, points: np.ndarray, fits: Fits | None) -> None:
        self._table, self.points, self._fits = table, points, fits

    @property
    def fits(self) -> Fits:
        """Moments as a table of one box."""
        if self._fits is None:
            self._fits = Fits.collect(self._table.points, Groups.of([self.points]))
        return self._fits

    def union(self, other: LinearBox) -> LinearBox:
        """Return the union of both boxes."""
        points = np.concatenate([self.points, other.points])
        return LinearBox(self._table, points, self.fits.plus(other.fits))

    def union_impurities(
        self, candidates: Sequence[LinearBox], threshold: float
    ) -> Sequence[float | None]:
        """Return the rounded residual of the union with each candidate, or None if not allowed."""
        points = self._table.points
        unknown = [other for other in candidates if other._fits is None]
        if unknown:
            new_fits = Fits.collect(points, Groups.of([other.points for other in unknown]))
            for i, other in enumerate(unknown):
                other._fits = new_fits.take([i])
        union = self.fits.plus(Fits.stacked([other.fits for other in candidates]))
        vectors = _vectors(union, self._table.max_terms)
        groups = Groups.of([self.points, *(other.points for other in candidates)])
        numbers = np.arange(len(candidates))
        assert groups.order is not None
        if len(groups.order) <= CHUNK:
            residuals = vectors @ points.look_up(groups.order).T
            sums = np.add.reduceat(np.abs(residuals, out=residuals), groups.begin, axis=1)
            total = sums[:, 0] + sums[numbers, numbers + 1]
        else:
            boxes = np.concatenate([np.zeros_like(numbers), numbers + 1])
            models = np.concatenate([numbers, numbers])
            sums = absolute_residuals(points, groups, vectors, boxes, models)
            total = sums[: len(candidates)] + sums[len(candidates) :]
        residual = total / union.n
        allowed = residual * points.units.unit[-1] < threshold
        ranks = np.round(residual / TIE)
        return [rank if ok else None for rank, ok in zip(ranks.tolist(), allowed, strict=True)]


class LinearTable:
    """Boxes with linear models that may be joined.

    The impurity of a box is the mean absolute residual of its model. Models have at most
    `max_terms` slopes. At the end, slopes are dropped if their effect across the box is less than
    `tolerance`, a share of the predictions' range.
    """

    def __init__(self, points: Points, tolerance: float, max_terms: int | None) -> None:
        self.points, self.max_terms, self._tolerance = points, max_terms, tolerance
        # Moments of small boxes would take more memory than the points and are not stored.
        large = points.by_box.size > len(points.units.usable) + 1
        self._stored_index = np.where(large, np.cumsum(large) - 1, -1)
        self._stored_fits = Fits.collect(points, points.by_box.take(np.flatnonzero(large)))
        self._assembled: tuple[np.ndarray, Sequence[LinearBox]] | None = None

    def __len__(self) -> int:
        return len(self._stored_index)

    @property
    def scatter(self) -> np.ndarray:
        """Summed squared residuals of the linear models."""
        fits = self._fits(np.arange(len(self)))
        vectors = _vectors(fits, self.max_terms)[:, :-1]
        return np.einsum("bi,bij,bj->b", vectors, fits.gram, vectors)

    def _fits(self, index: np.ndarray) -> Fits:
        """Return the moments of the boxes at `index`."""
        stored_index = self._stored_index[index]
        is_stored = stored_index >= 0
        if is_stored.all():
            return self._stored_fits.take(stored_index)
        new_fits = Fits.collect(self.points, self.points.by_box.take(index[~is_stored]))
        all_fits = Fits.stacked([self._stored_fits.take(stored_index[is_stored]), new_fits])
        order = np.argsort(np.append(np.flatnonzero(is_stored), np.flatnonzero(~is_stored)))
        return all_fits.take(order)

    def split_boxes(self, index: np.ndarray) -> list[LinearBox]:
        """Return the boxes at `index` as separate objects."""
        stored_index = self._stored_index[index].tolist()
        return [
            LinearBox(
                self, self.points.by_box.points(i), None if at < 0 else self._stored_fits.take([at])
            )
            for i, at in zip(index.tolist(), stored_index, strict=True)
        ]

    def joinable(self, pairs: np.ndarray, threshold: float) -> tuple[np.ndarray, np.ndarray]:
        """Return whether each pair of boxes may join, and the rounded residual of their union."""
        residual = np.empty(len(pairs))
        # Pairs are sorted by box, so that the points of a box are copied only once.
        order = np.argsort(pairs.min(axis=1), kind="stable")
        for begin in range(0, len(pairs), _BLOCK_SIZE):
            block = order[begin : begin + _BLOCK_SIZE]
            boxes, member = np.unique(pairs[block].ravel(), return_inverse=True)
            fits = self._fits(boxes)
            union = fits.take(member[::2]).plus(fits.take(member[1::2]))
            by_box = np.argsort(member, kind="stable")
            sums = np.empty(len(member))
            sums[by_box] = absolute_residuals(
                self.points,
                self.points.by_box.take(boxes),
                _vectors(union, self.max_terms),
                member[by_box],
                by_box // 2,
            )
            residual[block] = (sums[::2] + sums[1::2]) / union.n
        return residual * self.points.units.unit[-1] < threshold, np.round(residual / TIE)

    def assemble(self, cells: np.ndarray, unions: Sequence[LinearBox]) -> LinearTable:
        """Restrict the table to the boxes at `cells`, followed by unions, and return it."""
        self._assembled = cells, unions
        return self

    def finalize(self, lower: np.ndarray, upper: np.ndarray) -> LinearModels:
        """Return the final linear models of all boxes."""
        cells, unions = self._assembled or (np.arange(len(self)), [])
        sides = (upper - lower) / self.points.units.unit[:-1]
        parts = []
        for begin in range(0, len(cells), _BLOCK_SIZE):
            block = slice(begin, min(begin + _BLOCK_SIZE, len(cells)))
            groups = self.points.by_box.take(cells[block])
            parts.append(self._models(groups, self._fits(cells[block]), sides[block]))
        for begin in range(0, len(unions), _BLOCK_SIZE):
            union_block = unions[begin : begin + _BLOCK_SIZE]
            groups = Groups.of([union.points for union in union_block])
            fits = Fits.stacked([union.fits for union in union_block])
            first = len(cells) + begin
            parts.append(self._models(groups, fits, sides[first : first + len(union_block)]))
        return LinearModels.joined(self.points.units, parts)

    def _models(self, groups: Groups, fits: Fits, sides: np.ndarray) -> LinearModels:
        full = reduced = _vectors(fits, self.max_terms)
        if self._tolerance > 0:
            effect = np.abs(full[:, :-2]) * sides
            reduced = _vectors(fits.restricted(effect >= self._tolerance), self.max_terms)
        box_index = np.arange(len(fits.n))
        residual = [
            absolute_residuals(self.points, groups, vectors, box_index, box_index) / fits.n
            for vectors in ([full] if reduced is full else [full, reduced])
        ]
        return LinearModels(
            self.points.units,
            full,
            residual[0],
            reduced,
            residual[-1],
            fits.mean[:, -1],
            np.sqrt(fits.gram[:, -1, -1] / fits.n),
        )


def _vectors(fits: Fits, max_terms: int | None) -> np.ndarray:
    """Return the residual vectors of the linear models of boxes."""
    return fits.vectors(sparse_slopes(fits.n, fits.gram, max_terms))


def default_threshold(residual: float, deviation: float) -> float:
    """Compute the default threshold from one model's mean absolute residual and the deviation."""
    # Any positive threshold joins boxes with equal predictions.
    smallest = float(np.finfo(float).tiny)
    return max(_SHARE_OF_RESIDUAL * residual, _SHARE_OF_DEVIATION * deviation, smallest)
