"""PSyKE's rounding in our grids, so that parity with it can be tested.

PSyKE rounds the domain box and every box that it copies to six decimals. A box that has been
joined once therefore often no longer touches its neighbors, and joining stops early. Of equally
common classes it takes the one met first in row order.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import numpy as np

from skescore.extractors.gridex import _grid
from skescore.extractors.gridex._statistics import ClassCountsTable
from skescore.rules import Domain

DECIMALS = 6
MARGIN = 2e-6


class RoundedEdges(_grid.Edges):
    """Edges of joined boxes, rounded as in PSyKE."""

    def __init__(self, lower: np.ndarray, upper: np.ndarray, n_slices: np.ndarray) -> None:
        super().__init__(lower, upper, n_slices)
        self.in_halves = False
        self._values: list[list[list[float]]] = [
            [
                (a + np.arange(k + 1) * ((b - a) / k)).tolist()
                for a, b, k in zip(low, high, n_slices, strict=True)
                if k > 1
            ]
            for low, high in zip(lower, upper, strict=True)
        ]

    def join(self, parent, at, low, high, other_low, other_high):
        """Return the edges of a union: those of the first box, rounded, except for `at`."""
        values = self._values[parent]

        def rounded(feature: int, edge: int) -> int:
            edges = values[feature]
            value = round(edges[edge], DECIMALS)
            if value not in edges:
                edges.append(value)
            return edges.index(value)

        new_low = [rounded(f, e) for f, e in enumerate(low)]
        new_high = [rounded(f, e) for f, e in enumerate(high)]
        new_low[at] = min(low[at], other_low[at], key=values[at].__getitem__)
        new_high[at] = max(high[at], other_high[at], key=values[at].__getitem__)
        return new_low, new_high, range(len(low))

    def boxes(self, parent, low, high):
        """Return the bounds of boxes from their parents and edge numbers."""
        lower, upper = super().boxes(parent, np.zeros_like(low), np.zeros_like(high))
        lower[:, self._cut], upper[:, self._cut] = self._of(parent, low), self._of(parent, high)
        return lower, upper

    def _of(self, parent: np.ndarray, edges: np.ndarray) -> np.ndarray:
        rows = zip(parent.tolist(), edges.tolist(), strict=True)
        values = [[self._values[p][f][e] for f, e in enumerate(row)] for p, row in rows]
        return np.array(values).reshape(edges.shape)


def rounded_domain(X: np.ndarray, *_: Any) -> Domain:
    """Return PSyKE's box around the training rows."""
    lower = np.round(X.min(axis=0) - MARGIN, DECIMALS)
    return Domain(tuple(lower), tuple(np.round(X.max(axis=0) + MARGIN, DECIMALS)))


def first_met(predictions: np.ndarray, box: np.ndarray, n_boxes: int, n_classes: int) -> Any:
    """Count classes; ties go to the class that comes first in row order."""
    counts = np.zeros((n_boxes, n_classes))
    first = np.full((n_boxes, n_classes), len(predictions))
    np.add.at(counts, (box, predictions), 1)
    np.minimum.at(first, (box, predictions), np.arange(len(predictions)))
    majority = counts == counts.max(axis=1, keepdims=True)
    outputs = np.where(majority, first, len(predictions) + 1).argmin(axis=1)
    return ClassCountsTable(counts, outputs)


@contextmanager
def psyke_rounding() -> Iterator[None]:
    """Make all grids fitted in this context round as PSyKE does."""
    with (
        patch.object(_grid, "Edges", RoundedEdges),
        patch.object(ClassCountsTable, "collect", first_met),
        patch.object(Domain, "around", rounded_domain),
    ):
        yield
