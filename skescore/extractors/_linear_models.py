"""Linear models of the black box's predictions in boxes, and what is needed to join such boxes.

The sufficient statistics of a least-squares fit add up, so that the model of a union needs no
second look at rows; its mean absolute residual does. Rows are never copied as a whole: every cell
knows its stretch of one list of row numbers, and rows are looked up piece by piece.

All numbers in here are in units of the training rows: features and predictions are shifted and
scaled to about 1, so that neither large offsets nor small units cost digits.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields

import numpy as np

from skescore.rules import Conclusions, LinearOutput

#: Rows looked up at once; few enough to stay in the processor's cache.
CHUNK = 4096
#: Smaller groups of rows are worked on many at a time.
_SMALL = 512
#: A feature that spreads less than this, in units of the rows' range, is constant.
_FLAT = 1e-12
#: Effects and intercepts smaller than this share of what they come from are rounding errors.
_ROUNDING = 1e-12
#: Ridge that makes every fit solvable, and the steps of refinement that take its effect out again.
_TINY_RIDGE, _REFINEMENTS = 1e-10, 2
#: Boxes with fewer points than this many times the varying features plus 2 get a ridge.
_FEW = 2
#: A feature of which others leave a smaller share of its variance is a copy of theirs.
_COPY = 1e-9
#: Features that take away nearly as much of the residual are as good.
_EQUAL = 1e-9
#: Pairs of boxes, or boxes, whose linear models are worked on at once.
_BLOCK = 1024
#: Mean residuals that are closer than this share of the predictions' range count as equal.
TIE = 1e-9
#: Shares, for the default threshold, of one model's mean absolute residual and of the deviation.
_SHARE_OF_RESIDUAL, _SHARE_OF_DEVIATION = 0.5, 0.01


def ridge_slopes(n: np.ndarray, gram: np.ndarray) -> np.ndarray:
    """Slopes of the least-squares models of many boxes.

    They come from the numbers of points and the products of the deviations from the mean, summed,
    the predictions last. Features that are constant in a box get 0.

    Features are standardized in each box, so that the matrix to be inverted is their correlation.
    Of equally good models, as correlated features allow, it is about the one of least norm.

    A model of few points says nothing of its errors, and is steep where a feature happens to
    vary little among them. With d varying features and n < 2 (d + 2) points the slopes minimize,
    in units of the rows' ranges, the mean squared residual plus d/n times the mean variance of the
    features times the sum of the squared slopes.
    """
    moments = gram[:, :-1, :-1] / n[:, None, None]
    variance = np.einsum("bjj->bj", moments)
    varies = variance > _FLAT**2
    n_varying = varies.sum(axis=1)
    few = n < _FEW * (n_varying + 2)
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
    for _ in range(_REFINEMENTS):
        refinement = inverse @ (target - correlation @ slopes)
        slopes += np.where(few, 0.0, 1.0)[:, None, None] * refinement
    slopes[np.abs(slopes) < _ROUNDING] = 0.0
    return np.asarray(slopes[:, :, 0] * scale)


def sparse_slopes(n: np.ndarray, gram: np.ndarray, max_terms: int | None) -> np.ndarray:
    """Slopes of linear models of at most `max_terms` features each, the others 0; None: of all.

    The features are chosen by forward selection: next comes the one that takes away most of the
    squared residual. Then the model of those alone is that of :func:`ridge_slopes`.
    """
    n_boxes, n_features = gram.shape[0], gram.shape[1] - 1
    if max_terms is None or max_terms >= n_features:
        return ridge_slopes(n, gram)
    residual_gram, box = gram.copy(), np.arange(n_boxes)
    variance = np.einsum("bjj->bj", gram)[:, :-1]
    chosen = np.empty((n_boxes, max_terms), dtype=np.intp)
    useful = np.empty((n_boxes, max_terms), dtype=bool)
    for term in range(max_terms):
        # What other features say already is no news.
        left = np.einsum("bjj->bj", residual_gram)[:, :-1]
        free = (left > _COPY * variance) & (variance > n[:, None] * _FLAT**2)
        gain = np.where(free, residual_gram[:, :-1, -1] ** 2 / np.where(free, left, 1.0), 0.0)
        # Of features that are as good, rounding apart, the first.
        near = gain >= gain.max(axis=1, keepdims=True) * (1 - _EQUAL)
        best = chosen[:, term] = near.argmax(axis=1)
        useful[:, term] = gain[box, best] > _ROUNDING * gram[:, -1, -1]
        column = np.where(useful[:, term, None], residual_gram[box, :, best], 0.0)
        pivot = np.where(useful[:, term], left[box, best], 1.0)
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
    """Origin and unit of every feature, and of the predictions last.

    A number x is worked on as ``(x - origin) / unit``. Features that are constant, or whose slope
    would overflow, are not usable.
    """

    origin: np.ndarray
    unit: np.ndarray
    usable: np.ndarray

    @classmethod
    def of(cls, lower: np.ndarray, upper: np.ndarray, predictions: np.ndarray) -> Units:
        """The middle and range of a domain and of predictions."""
        low, high = np.append(lower, predictions.min()), np.append(upper, predictions.max())
        span = high - low
        usable = span[:-1] > 1e-280 * max(span[-1], 1e-20)
        unit = np.where(np.append(usable, span[-1] > 0), span, 1.0)
        return cls(low / 2 + high / 2, unit, usable)

    def models(self, vectors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Intercepts and slopes in the user's units, from residual vectors."""
        slopes = -vectors[:, :-2] * (self.unit[-1] / self.unit[:-1])
        level = self.origin[-1] - vectors[:, -1] * self.unit[-1]
        intercepts = level - slopes @ self.origin[:-1]
        parts = np.abs(level) + np.abs(slopes) @ np.abs(self.origin[:-1])
        return np.where(np.abs(intercepts) < _ROUNDING * parts, 0.0, intercepts), slopes


@dataclass(frozen=True, eq=False)
class Groups:
    """Points grouped by box.

    Each begins at a place in `order`, numbers of points; by default among the points themselves.
    """

    begin: np.ndarray
    size: np.ndarray
    order: np.ndarray | None = None

    @classmethod
    def of(cls, parts: Sequence[np.ndarray]) -> Groups:
        """Groups given one by one."""
        size = np.array([len(part) for part in parts], dtype=np.intp)
        order = np.concatenate(parts) if parts else np.empty(0, np.intp)
        return cls(np.cumsum(size) - size, size, order)

    def take(self, index: np.ndarray) -> Groups:
        """Some of the groups."""
        return Groups(self.begin[index], self.size[index], self.order)

    def points(self, group: int) -> np.ndarray:
        """The numbers of the points of one group."""
        begin, end = self.begin[group], self.begin[group] + self.size[group]
        return np.arange(begin, end) if self.order is None else self.order[begin:end]


class Points:
    """Rows and queried points, box by box, as rows of features, prediction, and 1.

    `by_box` are the points of each box.
    """

    def __init__(
        self, X: np.ndarray, predictions: np.ndarray, box: np.ndarray, n_boxes: int, units: Units
    ) -> None:
        self.units = units
        size = np.bincount(box, minlength=n_boxes)
        self.by_box = Groups(np.cumsum(size) - size, size)
        n_points, n_features = X.shape
        # 16 bits are sorted in linear time.
        order = np.argsort(box.astype(np.uint16) if n_boxes <= 1 << 16 else box, kind="stable")
        # A row of zeros at the end stands for points that are not there.
        self._rows = np.zeros((n_points + 1, n_features + 2))
        # Written out row by row, so that NumPy runs through whole blocks at once.
        origin = np.tile(np.append(units.origin, 0.0), (_SMALL, 1))
        factor = np.tile(np.append(np.append(units.usable, True) / units.unit, 1.0), (_SMALL, 1))
        for begin in range(0, n_points, _SMALL):
            index = order[begin : begin + _SMALL]
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
        """Some points, at most `CHUNK`; they are overwritten by the next ones."""
        rows = self._buffer[: index.size].reshape(*index.shape, -1)
        return np.take(self._rows, index, axis=0, out=rows, mode="clip")

    def pieces(self, groups: Groups) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Look up all groups.

        Gives the groups whose points come now, and the points, followed by rows of zeros; they are
        overwritten by the next ones. A large group comes in several pieces, one at a time.
        """
        order, nothing = groups.order, len(self._rows) - 1
        for g in np.flatnonzero(groups.size > _SMALL).tolist():
            start, end = int(groups.begin[g]), int(groups.begin[g] + groups.size[g])
            for begin in range(start, end, CHUNK):
                piece = slice(begin, min(begin + CHUNK, end))
                rows = self._rows[piece] if order is None else self.look_up(order[piece])
                yield np.array([g]), rows[None]
        width = np.ceil(np.log2(np.maximum(groups.size, 1))).astype(np.intp)
        width[groups.size > _SMALL] = -1
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
    """Number, mean and second moments of the points in boxes: all that their models depend on.

    The moments are of the features and, last, the predictions: products of the deviations from the
    mean, summed.
    """

    n: np.ndarray
    mean: np.ndarray
    gram: np.ndarray

    @classmethod
    def collect(cls, points: Points, groups: Groups) -> Fits:
        """Summarize groups of points."""
        size = len(points.units.origin)
        n_groups, size = len(groups.size), len(points.units.origin)
        fits = cls(np.zeros(n_groups), np.zeros((n_groups, size)), np.zeros((n_groups, size, size)))
        buffer = np.empty((CHUNK, size))
        for group, rows in points.pieces(groups):
            totals = (rows[:, None, :, -1] @ rows)[:, 0]
            n, mean = totals[:, -1], totals[:, :-1] / totals[:, -1:]
            centered = buffer[: rows.shape[0] * rows.shape[1]].reshape(*rows.shape[:2], size)
            np.multiply(
                mean[:, None, :], rows[:, :, -1:], out=centered
            )  # 0 where there is no point
            np.subtract(rows[:, :, :-1], centered, out=centered)
            piece = cls(n, mean, centered.transpose(0, 2, 1) @ centered)
            if len(group) == 1:  # perhaps not the group's first piece
                piece = fits.take(group).plus(piece)
            fits.n[group], fits.mean[group], fits.gram[group] = piece.n, piece.mean, piece.gram
        return fits

    def take(self, index: np.ndarray | list[int]) -> Fits:
        """Some of the boxes."""
        return Fits(self.n[index], self.mean[index], self.gram[index])

    @classmethod
    def stacked(cls, parts: Sequence[Fits]) -> Fits:
        """Several tables one after the other."""
        return cls(
            np.concatenate([part.n for part in parts]),
            np.concatenate([part.mean for part in parts]),
            np.concatenate([part.gram for part in parts]),
        )

    def restricted(self, varies: np.ndarray) -> Fits:
        """As if the features that are not kept in a box were constant there."""
        in_gram = np.append(varies, np.ones((len(varies), 1), bool), axis=1)
        return Fits(self.n, self.mean, self.gram * (in_gram[:, :, None] & in_gram[:, None, :]))

    def plus(self, other: Fits) -> Fits:
        """Boxes united one with one (or one with each)."""
        n = self.n + other.n
        share = other.n / n
        apart = other.mean - self.mean
        # A sum of terms that are never negative loses no digits, unlike sums of squares.
        between = apart[:, :, None] * (apart * (self.n * share)[:, None])[:, None, :]
        return Fits(n, self.mean + apart * share[:, None], self.gram + other.gram + between)

    def vectors(self, slopes: np.ndarray) -> np.ndarray:
        """Models as vectors whose product with (x, prediction, 1) is the residual."""
        result = np.empty((len(self.n), self.mean.shape[1] + 1))
        result[:, :-2] = -slopes
        result[:, -2] = 1.0
        result[:, -1] = np.einsum("bj,bj->b", slopes, self.mean[:, :-1]) - self.mean[:, -1]
        return result


def absolute_residuals(
    points: Points, groups: Groups, vectors: np.ndarray, group: np.ndarray, model: np.ndarray
) -> np.ndarray:
    """Sum of absolute residuals of groups of points from linear models.

    One for each pair of a group and a model, in order of the groups; models are residual vectors.
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
    """The linear models of boxes whose rows are done with.

    `full` are the residual vectors with all slopes, `vectors` those with the slopes that are kept;
    figures are in `units`.
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

    @property
    def n_dropped(self) -> int:
        """How many slopes have been dropped from all models."""
        dropped = (self.full[:, :-2] != 0) & (self.vectors[:, :-2] == 0)
        return int(np.count_nonzero(dropped))

    def _arrays(self) -> list[np.ndarray]:
        return [getattr(self, field.name) for field in fields(self)[1:]]

    def take(self, index: np.ndarray) -> LinearModels:
        """Those of some of the boxes."""
        return LinearModels(self.units, *(array[index] for array in self._arrays()))

    @classmethod
    def joined(cls, units: Units, parts: Sequence[LinearModels]) -> LinearModels:
        """Several tables one after the other."""
        columns = zip(*(part._arrays() for part in parts), strict=True)
        return cls(units, *(np.concatenate(column) for column in columns))

    def conclude(self, n_rows: np.ndarray) -> Conclusions:
        """Outputs and statistics of the rules that the boxes become."""
        return self._conclusions(n_rows, self.vectors)

    def conclude_in_full(self, n_rows: np.ndarray) -> Conclusions:
        """The same, had no slope been dropped."""
        return self._conclusions(n_rows, self.full)

    def _conclusions(self, n_rows: np.ndarray, vectors: np.ndarray) -> Conclusions:
        intercepts, slopes = self.units.models(vectors)
        level = ~slopes.any(axis=1)
        linear = {
            int(i): LinearOutput(intercepts[i], tuple(enumerate(slopes[i].tolist())))
            for i in np.flatnonzero(~level)
        }
        return Conclusions(
            np.where(level, intercepts, np.nan),
            n_rows=n_rows,
            mean=self.units.origin[-1] + self.mean * self.units.unit[-1],
            standard_deviation=self.deviation * self.units.unit[-1],
            linear=linear,
        )


class LinearBox:
    """The points of one box, and the moments that its linear model depends on."""

    __slots__ = ("_fits", "_table", "points")

    def __init__(self, table: LinearTable, points: np.ndarray, fits: Fits | None) -> None:
        self._table, self.points, self._fits = table, points, fits

    @property
    def fits(self) -> Fits:
        """The moments, as a table of one box."""
        if self._fits is None:
            self._fits = Fits.collect(self._table.points, Groups.of([self.points]))
        return self._fits

    def union(self, other: LinearBox) -> LinearBox:
        """Both boxes together."""
        points = np.concatenate([self.points, other.points])
        return LinearBox(self._table, points, self.fits.plus(other.fits))

    def union_impurities(
        self, candidates: Sequence[LinearBox], threshold: float
    ) -> Sequence[float | None]:
        """Rank of the union with each of some boxes; None where they may not join."""
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
    """Boxes with a linear model each that may still be joined.

    The impurity of a box is the mean absolute residual of its model.

    Models have at most `max_terms` slopes. Those with less effect across their box than
    `tolerance`, a share of the predictions' range, are dropped in the end.
    """

    def __init__(self, points: Points, tolerance: float, max_terms: int | None) -> None:
        self.points, self.max_terms, self._tolerance = points, max_terms, tolerance
        # There may be too many boxes with fewer points than features to keep so much of each.
        large = points.by_box.size > len(points.units.usable) + 1
        self._place = np.where(large, np.cumsum(large) - 1, -1)
        self._known = Fits.collect(points, points.by_box.take(np.flatnonzero(large)))
        self._joined: tuple[np.ndarray, Sequence[LinearBox]] | None = None

    def __len__(self) -> int:
        return len(self._place)

    @property
    def scatter(self) -> np.ndarray:
        """Summed squared residuals of the linear models."""
        fits = self._fits(np.arange(len(self)))
        vectors = _vectors(fits, self.max_terms)[:, :-1]
        return np.einsum("bi,bij,bj->b", vectors, fits.gram, vectors)

    def _fits(self, index: np.ndarray) -> Fits:
        """Moments of some boxes."""
        stored_index = self._place[index]
        is_stored = stored_index >= 0
        if is_stored.all():
            return self._known.take(stored_index)
        new_fits = Fits.collect(self.points, self.points.by_box.take(index[~is_stored]))
        all_fits = Fits.stacked([self._known.take(stored_index[is_stored]), new_fits])
        order = np.argsort(np.append(np.flatnonzero(is_stored), np.flatnonzero(~is_stored)))
        return all_fits.take(order)

    def each(self, index: np.ndarray) -> list[LinearBox]:
        """Some boxes, one by one."""
        stored_index = self._place[index].tolist()
        return [
            LinearBox(
                self, self.points.by_box.points(i), None if at < 0 else self._known.take([at])
            )
            for i, at in zip(index.tolist(), stored_index, strict=True)
        ]

    def joinable(self, pairs: np.ndarray, threshold: float) -> tuple[np.ndarray, np.ndarray]:
        """Whether each pair of adjacent boxes may join, and the rank of their union."""
        residual = np.empty(len(pairs))
        # Pairs of one box together, so that its points are looked up once.
        order = np.argsort(pairs.min(axis=1), kind="stable")
        for begin in range(0, len(pairs), _BLOCK):
            block = order[begin : begin + _BLOCK]
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
        """A table of some of the boxes, followed by unions, to be closed."""
        self._joined = cells, unions
        return self

    def closed(self, lower: np.ndarray, upper: np.ndarray) -> LinearModels:
        """The linear models of all boxes, once nothing is to be joined any more."""
        cells, unions = self._joined or (np.arange(len(self)), [])
        sides = (upper - lower) / self.points.units.unit[:-1]
        parts = []
        for begin in range(0, len(cells), _BLOCK):
            block = slice(begin, min(begin + _BLOCK, len(cells)))
            groups = self.points.by_box.take(cells[block])
            parts.append(self._models(groups, self._fits(cells[block]), sides[block]))
        for begin in range(0, len(unions), _BLOCK):
            union_block = unions[begin : begin + _BLOCK]
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
    """Residual vectors of the linear models of boxes."""
    return fits.vectors(sparse_slopes(fits.n, fits.gram, max_terms))


def threshold_of(residual: float, deviation: float) -> float:
    """The default threshold, from the mean absolute residual of one model and the deviation."""
    # Predictions that are all the same join below any number but 0.
    smallest = float(np.finfo(float).tiny)
    return max(_SHARE_OF_RESIDUAL * residual, _SHARE_OF_DEVIATION * deviation, smallest)
