"""Linear models in the boxes of a grid, and the boxes that may still be joined."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np

from skescore.extractors._linear_models import (
    CHUNK,
    Fits,
    Groups,
    Points,
    Units,
    absolute_residuals,
    sparse_slopes,
)
from skescore.rules import Conclusions, LinearOutput

#: Pairs of boxes, or boxes, whose linear models are worked on at once.
_BLOCK = 1024
#: Mean residuals that are closer than this share of the predictions' range count as equal.
TIE = 1e-9
#: Shares, for the default threshold, of one model's mean absolute residual and of the deviation.
_SHARE_OF_RESIDUAL, _SHARE_OF_DEVIATION = 0.5, 0.01


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
        self, others: Sequence[LinearBox], threshold: float
    ) -> Sequence[float | None]:
        """Rank of the union with each of some boxes; None where they may not join."""
        points = self._table.points
        unknown = [other for other in others if other._fits is None]
        if unknown:
            found = Fits.collect(points, Groups.of([other.points for other in unknown]))
            for i, other in enumerate(unknown):
                other._fits = found.take([i])
        union = self.fits.plus(Fits.stacked([other.fits for other in others]))
        vectors = _vectors(union, self._table.max_terms)
        groups = Groups.of([self.points, *(other.points for other in others)])
        numbers = np.arange(len(others))
        assert groups.order is not None
        if len(groups.order) <= CHUNK:
            residuals = vectors @ points.look_up(groups.order).T
            sums = np.add.reduceat(np.abs(residuals, out=residuals), groups.begin, axis=1)
            total = sums[:, 0] + sums[numbers, numbers + 1]
        else:
            boxes = np.concatenate([np.zeros_like(numbers), numbers + 1])
            models = np.concatenate([numbers, numbers])
            sums = absolute_residuals(points, groups, vectors, boxes, models)
            total = sums[: len(others)] + sums[len(others) :]
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
        place = self._place[index]
        known = place >= 0
        if known.all():
            return self._known.take(place)
        found = Fits.collect(self.points, self.points.by_box.take(index[~known]))
        both = Fits.stacked([self._known.take(place[known]), found])
        order = np.argsort(np.append(np.flatnonzero(known), np.flatnonzero(~known)))
        return both.take(order)

    def each(self, index: np.ndarray) -> list[LinearBox]:
        """Some boxes, one by one."""
        place = self._place[index].tolist()
        return [
            LinearBox(
                self, self.points.by_box.points(i), None if at < 0 else self._known.take([at])
            )
            for i, at in zip(index.tolist(), place, strict=True)
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
                self.points, self.points.by_box.take(boxes),
                _vectors(union, self.max_terms), member[by_box], by_box // 2,
            )  # fmt: skip
            residual[block] = (sums[::2] + sums[1::2]) / union.n
        return residual * self.points.units.unit[-1] < threshold, np.round(residual / TIE)

    def assemble(self, kept: np.ndarray, unions: Sequence[LinearBox]) -> LinearTable:
        """A table of some of the boxes, followed by unions, to be closed."""
        self._joined = kept, unions
        return self

    def closed(self, lower: np.ndarray, upper: np.ndarray) -> LinearModels:
        """The linear models of all boxes, once nothing is to be joined any more."""
        kept, unions = self._joined or (np.arange(len(self)), [])
        sides = (upper - lower) / self.points.units.unit[:-1]
        parts = []
        for begin in range(0, len(kept), _BLOCK):
            some = slice(begin, min(begin + _BLOCK, len(kept)))
            groups = self.points.by_box.take(kept[some])
            parts.append(self._models(groups, self._fits(kept[some]), sides[some]))
        for begin in range(0, len(unions), _BLOCK):
            made = unions[begin : begin + _BLOCK]
            groups = Groups.of([union.points for union in made])
            fits = Fits.stacked([union.fits for union in made])
            first = len(kept) + begin
            parts.append(self._models(groups, fits, sides[first : first + len(made)]))
        return LinearModels.joined(self.points.units, parts)

    def _models(self, groups: Groups, fits: Fits, sides: np.ndarray) -> LinearModels:
        full = reduced = _vectors(fits, self.max_terms)
        if self._tolerance > 0:
            effect = np.abs(full[:, :-2]) * sides
            reduced = _vectors(fits.restricted(effect >= self._tolerance), self.max_terms)
        each = np.arange(len(fits.n))
        residual = [
            absolute_residuals(self.points, groups, vectors, each, each) / fits.n
            for vectors in ([full] if reduced is full else [full, reduced])
        ]
        return LinearModels(
            self.points.units, full, residual[0], reduced, residual[-1], fits.mean[:, -1],
            np.sqrt(fits.gram[:, -1, -1] / fits.n),
        )  # fmt: skip


def _vectors(fits: Fits, max_terms: int | None) -> np.ndarray:
    """Residual vectors of the linear models of boxes."""
    return fits.vectors(sparse_slopes(fits.n, fits.gram, max_terms))


def threshold_of(residual: float, deviation: float) -> float:
    """The default threshold, from the mean absolute residual of one model and the deviation."""
    # Predictions that are all the same join below any number but 0.
    smallest = float(np.finfo(float).tiny)
    return max(_SHARE_OF_RESIDUAL * residual, _SHARE_OF_DEVIATION * deviation, smallest)
