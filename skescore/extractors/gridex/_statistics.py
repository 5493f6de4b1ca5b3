"""Additive statistics of the black box's predictions in boxes.

Tables hold sufficient statistics of many boxes as arrays, from which the statistics of unions are
computed without the rows. Boxes are joined pair by pair, so single boxes are small objects.

The impurity of a box, which extractors compare with their threshold, is the share of predictions
outside the majority class, or the standard deviation of the predictions.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from skescore.rules import Conclusions


class StatisticsTable(Protocol):
    """Statistics of the predictions in many boxes."""

    @property
    def impurity(self) -> np.ndarray:
        """Impurity of each box."""

    def is_below(self, threshold: float) -> np.ndarray:
        """Return whether the impurity of each box is below a threshold."""

    def take(self, index: np.ndarray) -> Any:
        """Return a table with a selection of the boxes."""

    def conclude(self, n_rows: np.ndarray) -> Conclusions:
        """Return the outputs and statistics of the rules of the boxes."""


class JoinableTable(Protocol):
    """Statistics of the predictions in many boxes that may be joined."""

    def __len__(self) -> int: ...

    @property
    def scatter(self) -> np.ndarray:
        """Scatter of the predictions in each box, such as the summed squared error."""

    def split_boxes(self, index: np.ndarray) -> Sequence[Any]:
        """Return boxes as separate objects with `union` and `union_impurities`."""

    def joinable(self, pairs: np.ndarray, threshold: float) -> tuple[np.ndarray, np.ndarray]:
        """Return whether each pair of boxes may join, and ranks of their unions by impurity."""

    def assemble(self, cells: np.ndarray, unions: Sequence[Any]) -> Any:
        """Return a table with some boxes, followed by unions."""

    def finalize(self, lower: np.ndarray, upper: np.ndarray) -> StatisticsTable:
        """Return the final statistics of boxes with these bounds, which are not joined further."""


class ClassCounts:
    """Number of predictions of each class in a box, and its majority class."""

    __slots__ = ("counts", "majority_count", "output", "total")

    def __init__(self, counts: list[float], output: int, total: float) -> None:
        self.counts = counts
        self.output = output
        self.majority_count = counts[output]
        self.total = total

    def union(self, other: ClassCounts) -> ClassCounts:
        """Return the counts of the union of both boxes, which have the same majority class."""
        counts = [a + b for a, b in zip(self.counts, other.counts)]  # noqa: B905
        return ClassCounts(counts, self.output, self.total + other.total)

    def union_impurities(
        self, candidates: Sequence[ClassCounts], threshold: float
    ) -> list[float | None]:
        """Return the impurity of the union with each candidate; None if the classes differ."""
        output, majority_count, total = self.output, self.majority_count, self.total
        return [
            (total + other.total - (majority_count + other.majority_count)) / (total + other.total)
            if other.output == output
            else None
            for other in candidates
        ]


class ClassCountsTable:
    """Class counts of many boxes.

    Of equally frequent classes, the first is the majority class, unless `outputs` are given.
    """

    def __init__(self, counts: np.ndarray, outputs: np.ndarray | None = None) -> None:
        self.counts = counts
        self.outputs = counts.argmax(axis=1) if outputs is None else outputs

    @classmethod
    def collect(
        cls, predictions: np.ndarray, box: np.ndarray, n_boxes: int, n_classes: int
    ) -> ClassCountsTable:
        """Count the predictions, which are class indices, by box."""
        flat = np.bincount(box * n_classes + predictions, minlength=n_boxes * n_classes)
        return cls(flat.reshape(n_boxes, n_classes).astype(float))

    def __len__(self) -> int:
        return len(self.counts)

    @property
    def impurity(self) -> np.ndarray:
        """Share of predictions outside the majority class."""
        return _class_impurity(self.counts)

    def is_below(self, threshold: float) -> np.ndarray:
        """Return whether the impurity of each box is below a threshold."""
        return np.asarray(self.impurity < threshold)

    @property
    def scatter(self) -> np.ndarray:
        """Gini impurity, times the number of predictions."""
        total = self.counts.sum(axis=1)
        return np.asarray(total - (self.counts**2).sum(axis=1) / total)

    def split_boxes(self, index: np.ndarray) -> list[ClassCounts]:
        """Return the counts of boxes as separate objects."""
        counts = self.counts[index]
        parts = counts.tolist(), self.outputs[index].tolist(), counts.sum(axis=1).tolist()
        return list(map(ClassCounts, *parts))

    def joinable(self, pairs: np.ndarray, threshold: float) -> tuple[np.ndarray, np.ndarray]:
        """Return whether each pair of adjacent boxes may join, and the impurity of their union."""
        first, second = pairs.T
        allowed = self.outputs[first] == self.outputs[second]
        return allowed, _class_impurity(self.counts[first] + self.counts[second])

    def assemble(self, cells: np.ndarray, unions: Sequence[ClassCounts]) -> ClassCountsTable:
        """Return a table with some boxes, followed by unions."""
        counts = np.array([u.counts for u in unions])
        outputs = np.array([u.output for u in unions])
        return ClassCountsTable(
            np.concatenate([self.counts[cells], counts]),
            np.concatenate([self.outputs[cells], outputs]),
        )

    def finalize(self, lower: np.ndarray, upper: np.ndarray) -> ClassCountsTable:
        """Return the table, which needs no further computation."""
        return self

    def take(self, index: np.ndarray) -> ClassCountsTable:
        """Return a table with a selection of the boxes."""
        return ClassCountsTable(self.counts[index], self.outputs[index])

    def conclude(self, n_rows: np.ndarray) -> Conclusions:
        """Return the outputs and statistics of the rules of the boxes."""
        return Conclusions(self.outputs, n_rows=n_rows, class_counts=self.counts)


def _class_impurity(counts: np.ndarray) -> np.ndarray:
    # Not 1 - share, because 1 - 9/10 is less than 0.1 in floating point.
    total = counts.sum(axis=1)
    return (total - counts.max(axis=1)) / total


class Moments:
    """Number, mean and summed squared deviation of the predictions in a box."""

    __slots__ = ("deviation", "mean", "n", "tolerance")

    def __init__(self, n: float, mean: float, deviation: float, tolerance: float) -> None:
        self.n, self.mean, self.deviation, self.tolerance = n, mean, deviation, tolerance

    def _union_deviation(self, other: Moments) -> float:
        # Unlike a difference of squares, a sum of nonnegative terms loses no precision.
        distance = self.mean - other.mean
        between = distance * distance * (self.n * other.n / (self.n + other.n))
        return self.deviation + other.deviation + between

    def union(self, other: Moments) -> Moments:
        """Return the moments of the union of both boxes."""
        n = self.n + other.n
        mean = (self.n * self.mean + other.n * other.mean) / n
        return Moments(n, mean, self._union_deviation(other), self.tolerance)

    def union_impurities(
        self, candidates: Sequence[Moments], threshold: float
    ) -> list[float | None]:
        """Return ranks by impurity of the unions with candidates; None if they may not join."""
        tolerance = self.tolerance
        ranks: list[float | None] = []
        for other in candidates:
            impurity = math.sqrt(self._union_deviation(other) / (self.n + other.n))
            if impurity >= threshold - tolerance:
                ranks.append(None)
            else:
                ranks.append(float(round(impurity / tolerance)) if tolerance else 0.0)
        return ranks


class MomentsTable:
    """Moments of many boxes: number, mean and summed squared deviation from the mean.

    Because rounding errors depend on the order of rows, impurities are rounded to multiples of
    `tolerance` before pairs of boxes are ranked, and must be below a threshold by more than it.
    """

    def __init__(self, moments: np.ndarray, tolerance: float) -> None:
        self.moments = moments
        self.tolerance = tolerance

    @classmethod
    def collect(
        cls, predictions: np.ndarray, box: np.ndarray, n_boxes: int, tolerance: float
    ) -> MomentsTable:
        """Compute the moments of predictions by box."""
        n = np.bincount(box, minlength=n_boxes)
        mean = np.bincount(box, weights=predictions, minlength=n_boxes) / n
        squares = (predictions - mean[box]) ** 2
        deviation = np.bincount(box, weights=squares, minlength=n_boxes)
        return cls(np.column_stack([n, mean, deviation]), tolerance)

    def __len__(self) -> int:
        return len(self.moments)

    @property
    def impurity(self) -> np.ndarray:
        """Population standard deviation of each box's predictions."""
        return np.sqrt(self.moments[:, 2] / self.moments[:, 0])

    def is_below(self, threshold: float) -> np.ndarray:
        """Return whether the impurity of each box is clearly below a threshold, see `tolerance`."""
        return np.asarray(self.impurity < threshold - self.tolerance)

    @property
    def scatter(self) -> np.ndarray:
        """Summed squared deviation from the mean."""
        return self.moments[:, 2]

    def split_boxes(self, index: np.ndarray) -> list[Moments]:
        """Return the moments of boxes as separate objects."""
        return [Moments(n, mean, s, self.tolerance) for n, mean, s in self.moments[index].tolist()]

    def joinable(self, pairs: np.ndarray, threshold: float) -> tuple[np.ndarray, np.ndarray]:
        """Return whether each pair of boxes may join, and ranks of their unions by impurity."""
        (n, mean, deviation), (m, other_mean, other_deviation) = self.moments[pairs].T.transpose(
            1, 0, 2
        )
        between = (mean - other_mean) ** 2 * (n * m / (n + m))
        impurity = np.sqrt((deviation + other_deviation + between) / (n + m))
        ranks = np.round(impurity / self.tolerance) if self.tolerance else np.zeros_like(impurity)
        return impurity < threshold - self.tolerance, ranks

    def assemble(self, cells: np.ndarray, unions: Sequence[Moments]) -> MomentsTable:
        """Return a table with some boxes, followed by unions."""
        rows = np.array([(u.n, u.mean, u.deviation) for u in unions])
        return MomentsTable(np.concatenate([self.moments[cells], rows]), self.tolerance)

    def finalize(self, lower: np.ndarray, upper: np.ndarray) -> MomentsTable:
        """Return the table, which needs no further computation."""
        return self

    def take(self, index: np.ndarray) -> MomentsTable:
        """Return a table with a selection of the boxes."""
        return MomentsTable(self.moments[index], self.tolerance)

    def conclude(self, n_rows: np.ndarray) -> Conclusions:
        """Return the outputs and statistics of the rules of the boxes."""
        mean = self.moments[:, 1]
        return Conclusions(mean, n_rows=n_rows, mean=mean, standard_deviation=self.impurity)


def joined_conclusions(parts: Sequence[Conclusions]) -> Conclusions:
    """Concatenate the conclusions of several tables."""

    def joined(name: str) -> Any:
        arrays = [getattr(part, name) for part in parts]
        return None if arrays[0] is None else np.concatenate(arrays)

    return Conclusions(
        *(
            joined(name)
            for name in ("outputs", "n_rows", "class_counts", "mean", "standard_deviation")
        )
    )
