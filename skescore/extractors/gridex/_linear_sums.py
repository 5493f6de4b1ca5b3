"""Linear models in boxes, fitted from sums of products, to join boxes with similar models.

A least-squares fit requires only sums of products. Its mean absolute residual requires the rows,
which are scanned for several boxes at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from skescore.extractors._binned import BinnedTable, HistogramSource
from skescore.extractors._histogram_tree import Path, Sums
from skescore.extractors._linear_models import (
    TIE,
    Fits,
    LinearModels,
    Units,
    default_threshold,
    sparse_slopes,
)
from skescore.extractors.gridex._grid import Bins, Boxes, Histogram


class LinearSums:
    """Linear models in boxes, from sums of products and residuals of the rows.

    Models have at most `max_terms` slopes. At the end, slopes are dropped if their effect across
    the box is less than `tolerance`, a share of the labels' range.
    """

    def __init__(
        self, source: HistogramSource, table: BinnedTable, tolerance: float, max_terms: int | None
    ) -> None:
        self.max_terms, self._tolerance = max_terms, tolerance
        self._source, self._table = source, table
        columns = source.columns
        ends = np.zeros((2, len(table.names)))
        for m in source.measured:
            ends[:, m.index] = columns[m.index].low, columns[m.index].high
        self.units = Units.of(ends[0], ends[1], np.array(source.label_range))
        self._residual_sums: dict[tuple[Path, bytes], Fraction] = {}
        self._requests: dict[tuple[Path, bytes], tuple[LinearSumsBox, np.ndarray]] = {}

    def collect(self, _: Any, bins: Bins, box: np.ndarray, n_boxes: int) -> LinearSumsTable:
        """Add up the bins of each box."""
        boxes = []
        for number in range(n_boxes):
            inside = box == number
            bin_numbers = bins.numbers[inside]
            ends = int(bin_numbers[0]), int(bin_numbers[-1]) + 1
            sums = bins.sums[inside].sum(axis=0)
            boxes.append(LinearSumsBox(self, bins.box, bins.feature, (ends,), (sums,)))
        return LinearSumsTable(self, boxes)

    def fits(self, boxes: Sequence[LinearSumsBox]) -> Fits:
        """Return the moments of the rows in each box, computed from exact integer sums."""
        source, units, measured = self._source, self.units, self._source.measured
        m, size = len(measured), len(units.origin)
        fits = Fits(
            np.zeros(len(boxes)), np.zeros((len(boxes), size)), np.zeros((len(boxes), size, size))
        )
        moments = self._table.moments(np.array([box.total for box in boxes]))
        fits.n[:] = moments[:, 0]
        fits.mean[:, -1] = (moments[:, 1] - units.origin[-1]) / units.unit[-1]
        fits.gram[:, -1, -1] = moments[:, 2] / units.unit[-1] ** 2
        columns = np.array([column.index for column in measured], dtype=np.intp)
        steps = np.array([column.step for column in measured]) / units.unit[columns]
        starts = np.array([column.center for column in measured])
        first, second = np.triu_indices(m)
        for row, box in enumerate(boxes):
            sums = box.total.tolist()
            last = len(sums) - m
            linear, products, label_products = sums[3 : 3 + m], sums[3 + m : last], sums[last:]
            # Express the weight in the unit of the products.
            weight = sums[0] * round(source.unit / source.product_unit)
            mean = np.array([s / weight for s in linear])
            fits.mean[row, columns] = (starts - units.origin[columns]) / units.unit[columns]
            fits.mean[row, columns] += mean * steps
            covariances = [
                (s * weight - linear[i] * linear[j]) / weight
                for s, i, j in zip(products, first.tolist(), second.tolist(), strict=True)
            ]
            gram = np.zeros((m, m))
            gram[first, second] = gram[second, first] = covariances
            gram *= source.product_unit * steps[:, None] * steps
            fits.gram[row, columns[:, None], columns] = gram
            label_covariances = [
                (s * weight - f * sums[1]) / weight
                for s, f in zip(label_products, linear, strict=True)
            ]
            covariance = np.array(label_covariances) * (source.label_unit / units.unit[-1]) * steps
            fits.gram[row, columns, -1] = fits.gram[row, -1, columns] = covariance
        return fits

    def vectors(self, fits: Fits) -> np.ndarray:
        """Return the residual vectors of linear models."""
        return fits.vectors(sparse_slopes(fits.n, fits.gram, self.max_terms))

    def rank_unions(
        self, unions: Sequence[LinearSumsBox], threshold: float
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return whether each union's impurity is below a threshold, and its rounded residual."""
        residuals = self.residuals(unions, self.vectors(self.fits(unions)))
        return residuals * self.units.unit[-1] < threshold, np.round(residuals / TIE)

    # --- residuals

    def request(self, boxes: Sequence[LinearSumsBox], vectors: np.ndarray) -> None:
        """Request the residuals of models in boxes for the next scan."""
        for box, vector in zip(boxes, vectors, strict=True):
            key = box.path, vector.tobytes()
            if key not in self._residual_sums:
                self._requests[key] = box, vector

    def residuals(self, boxes: Sequence[LinearSumsBox], vectors: np.ndarray) -> np.ndarray:
        """Return mean absolute residuals of models in boxes, as shares of the labels' range."""
        self.request(boxes, vectors)
        self._scan_rows()
        means = []
        for box, vector in zip(boxes, vectors, strict=True):
            weight = Fraction(self._source.unit) * int(box.total[0])
            means.append(float(self._residual_sums[box.path, vector.tobytes()] / weight))
        return np.array(means) / self.units.unit[-1]

    def _scan_rows(self) -> None:
        """Scan the rows once for all requested residuals.

        Requested boxes may overlap, so their disjoint parts are scanned instead.
        """
        if not self._requests:
            return
        nodes: dict[Path, tuple[Sums, list[tuple[tuple[Path, bytes], np.ndarray]]]] = {}
        for key, (box, vector) in self._requests.items():
            for path, sums in box.parts():
                nodes.setdefault(path, (sums, []))[1].append((key, self._equation(vector)))
            self._residual_sums[key] = Fraction(0)
        residual_lists = self._table.residuals(
            list(nodes),
            [np.array([e for _, e in requests]) for _, requests in nodes.values()],
            [sums for sums, _ in nodes.values()],
        )
        for residuals, (_, requests) in zip(residual_lists, nodes.values(), strict=True):
            for residual, (key, _) in zip(residuals, requests, strict=True):
                self._residual_sums[key] += residual
        self._requests = {}

    def _equation(self, vector: np.ndarray) -> np.ndarray:
        """Convert a residual vector to a linear function in the units of the source."""
        units, source = self.units, self._source
        equation, label_unit = np.zeros(1 + len(source.measured)), units.unit[-1]
        equation[0] = units.origin[-1] - source.center - vector[-1] * label_unit
        for position, m in enumerate(source.measured, start=1):
            slope = -vector[m.index] * (label_unit / units.unit[m.index])
            equation[0] += slope * (m.center - units.origin[m.index])
            equation[position] = slope * m.step
        return equation

    # --- final models

    def default_threshold(self, root: Histogram) -> float:
        """Return the default impurity threshold, computed from a linear model of all rows."""
        root_boxes = self._root_boxes(root)
        fits = self.fits(root_boxes)
        residual = float(self.residuals(root_boxes, self.vectors(fits))[0])
        deviation = float(np.sqrt(fits.gram[0, -1, -1] / fits.n[0]))
        return default_threshold(residual * self.units.unit[-1], deviation * self.units.unit[-1])

    def _root_boxes(self, root: Histogram) -> list[LinearSumsBox]:
        points: Any = root.along(0)
        return self.collect(None, points.predictions, points.box, 1).boxes

    def models(self, finished: Sequence[Boxes]) -> tuple[LinearModels, np.ndarray]:
        """Return the final linear models of all boxes and the weights of their rows."""
        boxes = _boxes(finished)
        fits = self.fits(boxes)
        full = reduced = self.vectors(fits)
        if self._tolerance > 0:
            lower, upper = (
                np.concatenate([getattr(p, end) for p in finished]) for end in ("lower", "upper")
            )
            effect = np.abs(full[:, :-2]) * self._table.sides(lower, upper) / self.units.unit[:-1]
            reduced = self.vectors(fits.restricted(effect >= self._tolerance))
        self.request(boxes, full)
        self.request(boxes, reduced)
        models = LinearModels(
            self.units,
            full,
            self.residuals(boxes, full),
            reduced,
            self.residuals(boxes, reduced),
            fits.mean[:, -1],
            np.sqrt(fits.gram[:, -1, -1] / fits.n),
        )
        return models, fits.n

    def fidelity_loss(
        self, root: Histogram, finished: Sequence[Boxes], models: LinearModels
    ) -> float:
        """Return the R² with all coefficients minus the R² without the dropped coefficients."""
        if not models.n_dropped:
            return 0.0
        fits = self.fits(_boxes(finished))
        before, after = (
            np.einsum("bi,bij,bj->", vectors[:, :-1], fits.gram, vectors[:, :-1])
            for vectors in (models.full, models.vectors)
        )
        return float((after - before) / self.fits(self._root_boxes(root)).gram[0, -1, -1])


@dataclass(frozen=True, eq=False)
class LinearSumsBox:
    """Union of slices of a box along a feature, with their ranges of bins and sums."""

    context: LinearSums
    box: Histogram
    feature: int
    ends: tuple[tuple[int, int], ...]
    sums: tuple[Sums, ...]

    @property
    def total(self) -> Sums:
        """Sums of all rows."""
        return np.asarray(np.sum(self.sums, axis=0))

    @property
    def path(self) -> Path:
        """Path to the rows."""
        low, high = min(low for low, _ in self.ends), max(high for _, high in self.ends)
        return self.box.within(self.feature, low, high)

    def parts(self) -> list[tuple[Path, Sums]]:
        """Return the paths and sums of the disjoint slices."""
        paths = (self.box.within(self.feature, *ends) for ends in self.ends)
        return list(zip(paths, self.sums, strict=True))

    def union(self, other: LinearSumsBox) -> LinearSumsBox:
        """Return the union of both boxes."""
        ends, sums = self.ends + other.ends, self.sums + other.sums
        return LinearSumsBox(self.context, self.box, self.feature, ends, sums)

    def union_impurities(
        self, candidates: Sequence[LinearSumsBox], threshold: float
    ) -> Sequence[float | None]:
        """Return the rounded residual of the union with each candidate, or None if not allowed."""
        allowed, ranks = self.context.rank_unions(
            [self.union(other) for other in candidates], threshold
        )
        return [rank if ok else None for rank, ok in zip(ranks.tolist(), allowed, strict=True)]


class LinearSumsTable:
    """Boxes with linear models that may be joined, like :class:`LinearTable`."""

    def __init__(self, context: LinearSums, boxes: list[LinearSumsBox]) -> None:
        self._context, self.boxes = context, boxes

    def __len__(self) -> int:
        return len(self.boxes)

    @property
    def scatter(self) -> np.ndarray:
        """Summed squared residuals of the linear models."""
        fits = self._context.fits(self.boxes)
        vectors = self._context.vectors(fits)[:, :-1]
        return np.einsum("bi,bij,bj->b", vectors, fits.gram, vectors)

    def split_boxes(self, index: np.ndarray) -> list[LinearSumsBox]:
        """Return the boxes at `index` as separate objects."""
        return [self.boxes[i] for i in index.tolist()]

    def joinable(self, pairs: np.ndarray, threshold: float) -> tuple[np.ndarray, np.ndarray]:
        """Return whether each pair of boxes may join, and the rounded residual of their union."""
        unions = [self.boxes[i].union(self.boxes[j]) for i, j in pairs.tolist()]
        return self._context.rank_unions(unions, threshold)

    def assemble(self, cells: np.ndarray, unions: Sequence[LinearSumsBox]) -> LinearSumsTable:
        """Return a table with some boxes, followed by unions."""
        return LinearSumsTable(self._context, [*self.split_boxes(cells), *unions])

    def finalize(self, lower: np.ndarray, upper: np.ndarray) -> FinalLinearSums:
        """Return the boxes as final boxes, which are not joined further."""
        return FinalLinearSums(self._context, self.boxes)


class FinalLinearSums:
    """Boxes with final linear models; the first access to `impurity` scans the rows."""

    def __init__(self, context: LinearSums, boxes: list[LinearSumsBox]) -> None:
        self._context, self.boxes = context, boxes
        self._vectors = context.vectors(context.fits(boxes))
        context.request(boxes, self._vectors)

    @property
    def impurity(self) -> np.ndarray:
        """Mean absolute residual of each box's model, in the target's units."""
        residuals = self._context.residuals(self.boxes, self._vectors)
        return residuals * self._context.units.unit[-1]

    def is_below(self, threshold: float) -> np.ndarray:
        """Return whether the impurity of each box is below a threshold."""
        return np.asarray(self.impurity < threshold)

    def take(self, index: np.ndarray) -> FinalLinearSums:
        """Select boxes by index."""
        return FinalLinearSums(self._context, [self.boxes[i] for i in index.tolist()])


def _boxes(finished: Sequence[Boxes]) -> list[LinearSumsBox]:
    tables: list[Any] = [part.statistics for part in finished]
    return [box for table in tables for box in table.boxes]
