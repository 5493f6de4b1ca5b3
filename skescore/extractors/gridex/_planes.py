"""Boxes with a plane each: joining them, and what is left to conclude.

The counterpart, for linear outputs, of the tables of class counts and moments. The diversity of a
box is the mean absolute residual of its plane.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np

from skescore.extractors._linear_models import (
    CHUNK,
    Fits,
    Groups,
    Points,
    Solver,
    Units,
    absolute_residuals,
    ridge_slopes,
)
from skescore.rules import Conclusions, LinearOutput

#: Pairs of boxes, or boxes, whose planes are worked on at once.
_BLOCK = 1024
#: Mean residuals that are closer than this share of the answers' range count as equal.
_TIE = 1e-9


@dataclass(frozen=True, eq=False)
class PlaneSettings:
    """How planes are fitted, all through an extraction.

    Parameters
    ----------
    units : Units
        The units to work in.
    tolerance : float, default=0.0
        Slopes with less effect across their box are dropped; a share of the answers' range.
    solver : callable, default=ridge_slopes
        Gives slopes from second moments.
    """

    units: Units
    tolerance: float = 0.0
    solver: Solver = ridge_slopes

    def vectors(self, fits: Fits) -> np.ndarray:
        """Residual vectors of the planes of boxes."""
        return fits.vectors(self.solver(fits.n, fits.gram, self.units.unit[:-1]))


@dataclass(eq=False)
class Planes:
    """The planes of boxes whose rows are done with.

    Parameters
    ----------
    units : Units
        The units of all other figures.
    full, vectors : ndarray of shape (n_boxes, n_features + 2)
        Residual vectors of the planes with all slopes, and with those that are kept.
    full_residual, residual : ndarray of shape (n_boxes,)
        Their mean absolute residuals.
    mean, spread : ndarray of shape (n_boxes,)
        Mean and standard deviation of the answers.
    """

    units: Units
    full: np.ndarray
    full_residual: np.ndarray
    vectors: np.ndarray
    residual: np.ndarray
    mean: np.ndarray
    spread: np.ndarray

    def __len__(self) -> int:
        return len(self.mean)

    @property
    def diversity(self) -> np.ndarray:
        """Mean absolute residual of each box's plane, in the target's units."""
        return self.full_residual * self.units.unit[-1]

    @property
    def n_dropped(self) -> int:
        """How many slopes have been dropped from all planes."""
        dropped = (self.full[:, :-2] != 0) & (self.vectors[:, :-2] == 0)
        return int(np.count_nonzero(dropped))

    def _arrays(self) -> list[np.ndarray]:
        return [getattr(self, field.name) for field in fields(self)[1:]]

    def take(self, index: np.ndarray) -> Planes:
        """Those of some of the boxes."""
        return Planes(self.units, *(array[index] for array in self._arrays()))

    @classmethod
    def joined(cls, units: Units, parts: Sequence[Planes]) -> Planes:
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
        intercepts, slopes = self.units.planes(vectors)
        level = ~slopes.any(axis=1)
        linear = {
            int(i): LinearOutput(intercepts[i], tuple(enumerate(slopes[i].tolist())))
            for i in np.flatnonzero(~level)
        }
        return Conclusions(
            np.where(level, intercepts, np.nan),
            n_rows=n_rows,
            mean=self.units.origin[-1] + self.mean * self.units.unit[-1],
            spread=self.spread * self.units.unit[-1],
            linear=linear,
        )


class PlaneBox:
    """The points of one box, and the moments that its plane depends on."""

    __slots__ = ("_fits", "_table", "points")

    def __init__(self, table: PlanesTable, points: np.ndarray, fits: Fits | None) -> None:
        self._table, self.points, self._fits = table, points, fits

    @property
    def fits(self) -> Fits:
        """The moments, as a table of one box."""
        if self._fits is None:
            self._fits = Fits.collect(self._table.points, Groups.of([self.points]))
        return self._fits

    def union(self, other: PlaneBox) -> PlaneBox:
        """Both boxes together."""
        points = np.concatenate([self.points, other.points])
        return PlaneBox(self._table, points, self.fits.plus(other.fits))

    def union_diversities(
        self, others: Sequence[PlaneBox], threshold: float
    ) -> Sequence[float | None]:
        """Rank of the union with each of some boxes; None where they may not join."""
        points, settings = self._table.points, self._table.settings
        unknown = [other for other in others if other._fits is None]
        if unknown:
            found = Fits.collect(points, Groups.of([other.points for other in unknown]))
            for i, other in enumerate(unknown):
                other._fits = found.take([i])
        union = self.fits.plus(Fits.stacked([other.fits for other in others]))
        vectors = settings.vectors(union)
        groups = Groups.of([self.points, *(other.points for other in others)])
        numbers = np.arange(len(others))
        assert groups.order is not None
        if len(groups.order) <= CHUNK:
            residuals = vectors @ points.look_up(groups.order).T
            sums = np.add.reduceat(np.abs(residuals, out=residuals), groups.begin, axis=1)
            total = sums[:, 0] + sums[numbers, numbers + 1]
        else:
            boxes = np.concatenate([np.zeros_like(numbers), numbers + 1])
            planes = np.concatenate([numbers, numbers])
            sums = absolute_residuals(points, groups, vectors, boxes, planes)
            total = sums[: len(others)] + sums[len(others) :]
        residual = total / union.n
        allowed = residual * settings.units.unit[-1] < threshold
        ranks = np.round(residual / _TIE)
        return [rank if ok else None for rank, ok in zip(ranks.tolist(), allowed, strict=True)]


class PlanesTable:
    """Boxes that may still be joined.

    Parameters
    ----------
    points : Points
        Rows and queried points, box by box.
    settings : PlaneSettings
        How planes are fitted.
    """

    def __init__(self, points: Points, settings: PlaneSettings) -> None:
        self.points, self.settings = points, settings
        # There may be too many boxes with fewer points than features to keep so much of each.
        large = points.by_box.size > len(settings.units.usable) + 1
        self._place = np.where(large, np.cumsum(large) - 1, -1)
        self._known = Fits.collect(points, points.by_box.take(np.flatnonzero(large)))
        self._joined: tuple[np.ndarray, Sequence[PlaneBox]] | None = None

    @classmethod
    def collect(
        cls, X: np.ndarray, answers: np.ndarray, box: np.ndarray, n_boxes: int,
        settings: PlaneSettings,
    ) -> PlanesTable:  # fmt: skip
        """Group points by the number of their box."""
        return cls(Points(X, answers, box, n_boxes, settings.units), settings)

    def __len__(self) -> int:
        return len(self._place)

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

    def each(self, index: np.ndarray) -> list[PlaneBox]:
        """Some boxes, one by one."""
        place = self._place[index].tolist()
        return [
            PlaneBox(self, self.points.by_box.points(i), None if at < 0 else self._known.take([at]))
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
                self.points, self.points.by_box.take(boxes), self.settings.vectors(union),
                member[by_box], by_box // 2,
            )  # fmt: skip
            residual[block] = (sums[::2] + sums[1::2]) / union.n
        return residual * self.settings.units.unit[-1] < threshold, np.round(residual / _TIE)

    def assemble(self, kept: np.ndarray, unions: Sequence[PlaneBox]) -> PlanesTable:
        """A table of some of the boxes, followed by unions, to be closed."""
        self._joined = kept, unions
        return self

    def closed(self, lower: np.ndarray, upper: np.ndarray) -> Planes:
        """The planes of all boxes, once nothing is to be joined any more.

        Parameters
        ----------
        lower, upper : ndarray of shape (n_boxes, n_features)
            The boxes.
        """
        kept, unions = self._joined or (np.arange(len(self)), [])
        sides = (upper - lower) / self.settings.units.unit[:-1]
        parts = []
        for begin in range(0, len(kept), _BLOCK):
            some = slice(begin, min(begin + _BLOCK, len(kept)))
            groups = self.points.by_box.take(kept[some])
            parts.append(self._planes(groups, self._fits(kept[some]), sides[some]))
        for begin in range(0, len(unions), _BLOCK):
            made = unions[begin : begin + _BLOCK]
            groups = Groups.of([union.points for union in made])
            fits = Fits.stacked([union.fits for union in made])
            first = len(kept) + begin
            parts.append(self._planes(groups, fits, sides[first : first + len(made)]))
        return Planes.joined(self.settings.units, parts)

    def _planes(self, groups: Groups, fits: Fits, sides: np.ndarray) -> Planes:
        settings = self.settings
        full = reduced = settings.vectors(fits)
        if settings.tolerance > 0:
            effect = np.abs(full[:, :-2]) * sides
            reduced = settings.vectors(fits.restricted(effect >= settings.tolerance))
        each = np.arange(len(fits.n))
        residual = [
            absolute_residuals(self.points, groups, vectors, each, each) / fits.n
            for vectors in ([full] if reduced is full else [full, reduced])
        ]
        spread = np.sqrt(fits.gram[:, -1, -1] / fits.n)
        return Planes(
            settings.units, full, residual[0], reduced, residual[-1], fits.mean[:, -1], spread
        )
