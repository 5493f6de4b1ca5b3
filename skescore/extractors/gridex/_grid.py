"""The levels of a grid extraction: cut boxes, fill up cells, join them, go on.

Rows and queried points are never copied per cell; each carries the number of its box.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from skescore._random import combine, uniform_points
from skescore.extractors._base import Extraction
from skescore.extractors.gridex._cells import (
    CellMerger,
    Edges,
    group_cells,
    slice_numbers,
)
from skescore.extractors.gridex._statistics import JoinableTable, StatisticsTable
from skescore.rules import BoxTable

#: Makes statistics from points, predictions, the box of each, and the number of boxes.
Collector = Callable[[np.ndarray, np.ndarray, np.ndarray, int], JoinableTable]


@dataclass(frozen=True, eq=False)
class Level:
    """How boxes are cut at one level: slices per feature, when to stop, predictions per cell."""

    n_slices: np.ndarray
    threshold: float
    min_examples: int


@dataclass(eq=False)
class Regions:
    """Boxes, each with a key made from its place in the structure."""

    lower: np.ndarray
    upper: np.ndarray
    key: np.ndarray


@dataclass(eq=False)
class Boxes(Regions):
    """Boxes, and what is known of the predictions and rows in them."""

    statistics: StatisticsTable
    n_rows: np.ndarray

    def take(self, index: np.ndarray) -> Boxes:
        """Some of the boxes."""
        return Boxes(
            self.lower[index],
            self.upper[index],
            self.key[index],
            self.statistics.take(index),
            self.n_rows[index],
        )


@dataclass(eq=False)
class _Points:
    """Rows first, then queried points: where they are, what was predicted, in which box."""

    X: np.ndarray
    predictions: np.ndarray
    box: np.ndarray
    n_rows: int

    def move(self, box: np.ndarray) -> None:
        """Put every point into another box; those whose box is -1 are dropped."""
        keep = box >= 0
        if keep.all():
            self.box = box
            return
        self.n_rows = int(np.count_nonzero(keep[: self.n_rows]))
        self.X, self.predictions, self.box = self.X[keep], self.predictions[keep], box[keep]

    def add(self, X: np.ndarray, predictions: np.ndarray, box: np.ndarray) -> None:
        """Add queried points."""
        self.X = np.concatenate([self.X, X])
        self.predictions = np.concatenate([self.predictions, predictions])
        self.box = np.concatenate([self.box, box])


def cut_domain(
    extraction: Extraction, levels: list[Level], seed: int, collect: Collector
) -> tuple[BoxTable, list[Boxes]]:
    """Cut the domain level by level.

    Gives disjoint half-open boxes, whose sides on the border of the domain are free, and the same
    boxes in the same order, in parts, with their statistics.
    """
    domain = extraction.settings["domain"]
    lower, upper = np.asarray(domain.lower), np.asarray(domain.upper)
    n_rows = len(extraction.X)
    points = _Points(extraction.X, extraction.predictions, np.zeros(n_rows, np.intp), n_rows)
    whole = Regions(lower[None], upper[None], np.zeros(1, np.uint64))
    frontier = _cut(extraction, points, whole, levels[0], seed, collect)  # always cuts
    done: list[Boxes] = []
    for level in levels[1:]:
        final = frontier.statistics.impurity < level.threshold
        done.append(frontier.take(np.flatnonzero(final)))
        frontier = frontier.take(np.flatnonzero(~final))
        if final.all():
            break
        points.move(np.where(final, -1, np.cumsum(~final) - 1)[points.box])
        frontier = _cut(extraction, points, frontier, level, seed, collect)
    done.append(frontier)
    lower_bounds = np.concatenate([part.lower for part in done])
    upper_bounds = np.concatenate([part.upper for part in done])
    return _open_at_border(lower_bounds, upper_bounds, lower, upper), done


def _cut(
    extraction: Extraction,
    points: _Points,
    frontier: Regions,
    level: Level,
    seed: int,
    collect: Collector,
) -> Boxes:
    """Cut every box into cells, fill these up and join them; the points move to the result."""
    n_slices, n_boxes = level.n_slices, len(frontier.lower)
    numbers = slice_numbers(points.X, points.box, frontier.lower, frontier.upper, n_slices)
    cell, example = group_cells(points.box, numbers, n_slices, n_boxes)
    n_rows = np.bincount(cell[: points.n_rows], minlength=len(example))
    kept = n_rows > 0
    if not kept.all():  # cells with queried points alone are none
        cell = np.where(kept, np.cumsum(kept) - 1, -1)[cell]
        example, n_rows = example[kept], n_rows[kept]
    parent, slices = points.box[example], numbers[:, example].T.astype(np.int64)
    key = frontier.key[parent]
    for column in slices.T:
        key = combine(key, column)
    points.move(cell)

    edges = Edges(frontier.lower, frontier.upper, n_slices)
    wanted = np.maximum(0, level.min_examples - n_rows)
    if wanted.any():
        lower, upper = edges.boxes(parent, slices, edges.above(parent, slices))
        drawn, owner = uniform_points(seed, key, wanted, lower, upper)
        points.add(drawn, extraction.query(drawn), owner)

    table = collect(points.X, points.predictions, points.box, len(parent))
    group, low, high, table = CellMerger(parent, slices, edges, table, level.threshold).result()
    points.move(group[points.box])
    first = np.unique(group, return_index=True)[1]
    lower, upper = edges.boxes(parent[first], low, high)
    # A union's key must not depend on the order in which its cells joined.
    scrambled = np.zeros(len(first), np.uint64)
    np.add.at(scrambled, group, combine(key, 0))
    n_rows = np.bincount(group, weights=n_rows).astype(np.intp)
    return Boxes(lower, upper, scrambled, table.closed(lower, upper), n_rows)


def _open_at_border(
    lower: np.ndarray, upper: np.ndarray, domain_lower: np.ndarray, domain_upper: np.ndarray
) -> BoxTable:
    """Free the sides on the domain's border, so that rules hold beyond the training rows."""
    at_lower, at_upper = lower <= domain_lower, upper >= domain_upper
    return BoxTable(
        np.where(at_lower, -np.inf, lower),
        np.where(at_upper, np.inf, upper),
        ~at_lower,
        np.zeros_like(at_upper),
    )
