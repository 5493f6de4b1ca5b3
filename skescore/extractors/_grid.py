"""The levels of a grid extraction: cut boxes, fill up cells, join them, go on.

Rows and queried points are never copied per cell; each carries the number of its box.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from skescore.extractors._cells import CellMerger, group_cells, slice_numbers, slice_width
from skescore.extractors._extraction import Extraction
from skescore.extractors._neighbours import join_edges
from skescore.extractors._random import combine, uniform_points
from skescore.extractors._reference import ReferenceRounding, collect_first_met, reference_domain
from skescore.extractors._statistics import (
    ClassCountsTable,
    JoinableTable,
    MomentsTable,
    StatisticsTable,
)
from skescore.rules import BoxTable, Conclusions

#: Diversities closer than this share of the answers' range count as equal.
_TIE = 1e-12


@dataclass(frozen=True, eq=False)
class Level:
    """How boxes are cut at one level: slices per feature, when to stop, answers per cell."""

    n_slices: np.ndarray
    threshold: float
    min_examples: int


#: Makes statistics from points, answers, the box of each, and the number of boxes.
Collector = Callable[[np.ndarray, np.ndarray, np.ndarray, int], JoinableTable]


@dataclass(eq=False)
class Regions:
    """Boxes, each with a key made from its place in the structure."""

    lower: np.ndarray
    upper: np.ndarray
    key: np.ndarray


@dataclass(eq=False)
class Boxes(Regions):
    """Boxes, and what is known of the answers and rows in them."""

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
    """Rows first, then queried points: where they are, what was answered, in which box."""

    X: np.ndarray
    answers: np.ndarray
    n_rows: int
    box: np.ndarray | None  # None: all in box 0

    def add(self, X: np.ndarray, answers: np.ndarray, box: np.ndarray) -> None:
        assert self.box is not None
        self.X = np.concatenate([self.X, X])
        self.answers = np.concatenate([self.answers, answers])
        self.box = np.concatenate([self.box, box])

    def move(self, new_box: np.ndarray) -> None:
        """Renumber boxes; points whose box gets -1 are done with, and dropped."""
        assert self.box is not None
        box = new_box[self.box]
        keep = box >= 0
        if keep.all():
            self.box = box
            return
        self.n_rows = int(np.count_nonzero(keep[: self.n_rows]))
        self.X, self.answers, self.box = self.X[keep], self.answers[keep], box[keep]


def refine(
    extraction: Extraction, levels: list[Level], seed: int, *, rounding: bool = False
) -> tuple[BoxTable, Conclusions]:
    """Cut the domain level by level; constant outputs.

    Parameters
    ----------
    extraction : Extraction
        Rows, answers and the oracle.
    levels : list of Level
        How to cut at each level.
    seed : int
        Of the points that fill up cells.
    rounding : bool, default=False
        Round the domain and joined boxes as the reference platform does.

    Returns
    -------
    boxes : BoxTable
        Disjoint half-open boxes; sides on the border of the domain are free.
    conclusions : Conclusions
        Their outputs.
    """
    boxes, done = cut_domain(
        extraction, levels, seed, _collector(extraction, rounding), rounding=rounding
    )
    parts = [part.statistics.conclude(part.n_rows) for part in done]
    return boxes, _concatenated(parts)


def cut_domain(
    extraction: Extraction,
    levels: list[Level],
    seed: int,
    collect: Collector,
    *,
    rounding: bool = False,
) -> tuple[BoxTable, list[Boxes]]:
    """Cut the domain level by level; any kind of statistics.

    Parameters
    ----------
    extraction : Extraction
        Rows, answers and the oracle.
    levels : list of Level
        How to cut at each level.
    seed : int
        Of the points that fill up cells.
    collect : callable
        Makes the statistics of cells.
    rounding : bool, default=False
        Round the domain and joined boxes as the reference platform does.

    Returns
    -------
    boxes : BoxTable
        Disjoint half-open boxes; sides on the border of the domain are free.
    done : list of Boxes
        The same boxes in the same order, in parts, with their statistics.
    """
    X, answers = extraction.X, extraction.answers
    if rounding:
        lower, upper = reference_domain(X)
    else:
        domain = extraction.settings["domain"]
        lower, upper = np.asarray(domain.lower), np.asarray(domain.upper)
    points = _Points(X, answers, len(X), None)
    whole = Regions(lower[None], upper[None], np.zeros(1, np.uint64))
    cut = partial(_cut, points=points, collect=collect, ask=extraction.ask, seed=seed)
    frontier = cut(whole, level=levels[0], rounding=rounding)  # the first level always cuts
    done: list[Boxes] = []
    for level in levels[1:]:
        final = frontier.statistics.diversity < level.threshold
        done.append(frontier.take(np.flatnonzero(final)))
        points.move(np.where(final, -1, np.cumsum(~final) - 1))
        frontier = frontier.take(np.flatnonzero(~final))
        if final.all():
            break
        frontier = cut(frontier, level=level, rounding=rounding)
    done.append(frontier)
    lower_bounds = np.concatenate([part.lower for part in done])
    upper_bounds = np.concatenate([part.upper for part in done])
    return _open_at_border(lower_bounds, upper_bounds, lower, upper), done


def _collector(extraction: Extraction, rounding: bool) -> Collector:
    """What makes a table of statistics for constant outputs."""
    if extraction.task == "classification":
        assert extraction.classes is not None
        n_classes = len(extraction.classes)
        count = collect_first_met if rounding else ClassCountsTable.collect
        return lambda X, answers, box, n_boxes: count(answers, box, n_boxes, n_classes)
    quantum = _TIE * float(np.ptp(extraction.answers))
    return lambda X, answers, box, n_boxes: MomentsTable.collect(answers, box, n_boxes, quantum)


def _concatenated(parts: list[Conclusions]) -> Conclusions:
    def joined(name: str) -> Any:
        arrays = [getattr(part, name) for part in parts]
        return None if arrays[0] is None else np.concatenate(arrays)

    return Conclusions(
        *(joined(name) for name in ("outputs", "n_rows", "class_counts", "mean", "spread"))
    )


def _cut(
    frontier: Regions,
    *,
    points: _Points,
    level: Level,
    collect: Collector,
    ask: Callable[[np.ndarray], np.ndarray],
    seed: int,
    rounding: bool,
) -> Boxes:
    """Cut every box of the frontier; give the joined cells, with the points moved to them."""
    n_slices = level.n_slices
    numbers = slice_numbers(points.X, points.box, frontier.lower, frontier.upper, n_slices)
    cell, example = group_cells(points.box, numbers, n_slices, len(points.X), len(frontier.lower))
    n_rows = np.bincount(cell[: points.n_rows], minlength=len(example))
    kept = n_rows > 0
    parent = np.zeros(len(example), np.intp) if points.box is None else points.box[example]
    slices, parent, n_rows = numbers[:, example[kept]].T, parent[kept], n_rows[kept]
    points.box = cell
    points.move(np.where(kept, np.cumsum(kept) - 1, -1))

    key = frontier.key[parent]
    for column in slices.T:
        key = combine(key, column)
    slices = slices.astype(np.int64)
    edges = _Edges(frontier, n_slices)
    above = edges.above(parent, slices)

    wanted = np.maximum(0, level.min_examples - n_rows)
    if wanted.any():
        lower, upper = edges.boxes(parent, slices, above)
        drawn, owner = uniform_points(seed, key, wanted, lower, upper)
        points.add(drawn, ask(drawn), owner)
    table = collect(points.X, points.answers, points.box, len(parent))

    rounder = ReferenceRounding(frontier.lower, frontier.upper, n_slices) if rounding else None
    merger = CellMerger(
        parent,
        slices,
        above,
        n_slices[n_slices > 1],
        table,
        level.threshold,
        rounder.join if rounder else join_edges,
    )
    group, low, high, table = merger.result()
    first = np.unique(group, return_index=True)[1]
    if rounder is not None:
        lower, upper = rounder.boxes(parent[first], low, high, np.bincount(group) > 1)
    else:
        lower, upper = edges.boxes(parent[first], low, high)
    points.move(group)
    # A union's key must not depend on the order in which its cells joined.
    scrambled = np.zeros(len(first), np.uint64)
    np.add.at(scrambled, group, combine(key, 0))
    statistics = table.closed(lower, upper)
    return Boxes(
        lower, upper, scrambled, statistics, np.bincount(group, weights=n_rows).astype(np.intp)
    )


class _Edges:
    """Where the slices of boxes begin and end.

    Parameters
    ----------
    frontier : Regions
        The boxes that are cut.
    n_slices : ndarray of int, shape (n_features,)
        Slices per feature.
    """

    def __init__(self, frontier: Regions, n_slices: np.ndarray) -> None:
        self._cut = np.flatnonzero(n_slices > 1)
        self._count = n_slices[self._cut]
        self._lower, self._upper = frontier.lower, frontier.upper
        self._step = slice_width(self._lower, self._upper, n_slices)[:, self._cut]

    def above(self, parent: np.ndarray, number: np.ndarray) -> np.ndarray:
        """Number of the edge above each slice; the last one of a box that stays whole."""
        return np.where(np.isinf(self._step[parent]), self._count, number + 1)

    def boxes(
        self, parent: np.ndarray, low: np.ndarray, high: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Bounds of cells, from their parents and edge numbers along the cut features."""
        lower, upper = self._lower[parent], self._upper[parent]
        base = lower[:, self._cut]
        step = np.where(np.isinf(self._step), 0.0, self._step)[parent]
        # The last edge is the parent's own, whatever the multiplication rounds to.
        upper[:, self._cut] = np.where(high == self._count, upper[:, self._cut], base + high * step)
        lower[:, self._cut] = base + low * step
        return lower, upper


def _open_at_border(
    lower: np.ndarray, upper: np.ndarray, domain_lower: np.ndarray, domain_upper: np.ndarray
) -> BoxTable:
    """Free the sides on the domain's border, so that rules answer beyond the training rows."""
    at_lower, at_upper = lower <= domain_lower, upper >= domain_upper
    return BoxTable(
        np.where(at_lower, -np.inf, lower),
        np.where(at_upper, np.inf, upper),
        ~at_lower,
        np.zeros_like(at_upper),
    )
