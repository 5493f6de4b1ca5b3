"""The levels of a grid extraction: cut boxes, fill up cells, join them, go on.

Rows and queried points are never copied per cell; each carries the number of its box.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from skescore._random import combine, uniform_points
from skescore.extractors._base import Extraction
from skescore.extractors._sharing import Sharing, WatchedThreshold, digest
from skescore.extractors.gridex._cells import (
    CellMerger,
    group_cells,
    join_edges,
    slice_numbers,
    slice_width,
)
from skescore.extractors.gridex._reference import (
    ReferenceRounding,
    collect_first_met,
    reference_domain,
)
from skescore.extractors.gridex._statistics import (
    ClassCountsTable,
    JoinableTable,
    MomentsTable,
    StatisticsTable,
)
from skescore.rules import BoxTable, Conclusions

# --- the points of a grid extraction: how they go into cells, and with them from box to b --------


@dataclass(eq=False)
class GridCells:
    """The cells that boxes were cut into, before any of them join.

    Parameters
    ----------
    cell : ndarray of int, shape (n_points,)
        Index of each point's cell; -1 for a queried point in a cell without rows.
    parent : ndarray of int, shape (n_cells,)
        Box that each cell was cut from.
    slices : ndarray of int, shape (n_cells, n_cut_features)
        Slice numbers of each cell along the cut features.
    n_rows : ndarray of int, shape (n_cells,)
        Rows in each cell.
    key : ndarray of uint64, shape (n_cells,)
        Structural key of each cell.
    drawn, drawn_answers, owner : ndarray or None
        Points drawn to fill up cells, what the black box answered, and the cell of each.
    """

    cell: np.ndarray
    parent: np.ndarray
    slices: np.ndarray
    n_rows: np.ndarray
    key: np.ndarray
    drawn: np.ndarray | None = None
    drawn_answers: np.ndarray | None = None
    owner: np.ndarray | None = None

    def compact(self) -> GridCells:
        """The same, with the points' cells in as few bytes as possible."""
        for kind in (np.int8, np.int16, np.int32):
            if len(self.n_rows) <= np.iinfo(kind).max:
                return replace(self, cell=self.cell.astype(kind))
        return self


class GridPoints:
    """Rows first, then queried points: where they are, what was answered, in which box.

    Moves are put off until someone looks: nobody does where all boxes are known already.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_features)
        The rows.
    answers : ndarray of shape (n_rows,)
        What the black box answered.
    """

    def __init__(self, X: np.ndarray, answers: np.ndarray) -> None:
        self.X, self.answers, self.n_rows = X, answers, len(X)
        self.box: Any = None  # None: all in box 0
        self._waiting: list[GridCells | np.ndarray] = []

    def enter_later(self, cells: GridCells) -> None:
        """Put every point into its cell, and add those that were drawn."""
        self._waiting.append(cells)

    def move_later(self, new_box: np.ndarray) -> None:
        """Renumber boxes; points whose box gets -1 are done with, and dropped."""
        self._waiting.append(new_box)

    def settled(self) -> GridPoints:
        """The same points, once all moves are made."""
        for move in self._waiting:
            if isinstance(move, GridCells):
                self._go_to(move.cell.astype(np.intp, copy=False))
                if move.drawn is not None:
                    self._add(move.drawn, move.drawn_answers, move.owner)
            else:
                self._go_to(move[self.box])
        self._waiting.clear()
        return self

    def _go_to(self, box: np.ndarray) -> None:
        keep = box >= 0
        if keep.all():
            self.box = box
            return
        self.n_rows = int(np.count_nonzero(keep[: self.n_rows]))
        self.X, self.answers, self.box = self.X[keep], self.answers[keep], box[keep]

    def _add(self, X: np.ndarray, answers: Any, box: Any) -> None:
        self.X = np.concatenate([self.X, X])
        self.answers = np.concatenate([self.answers, answers])
        self.box = np.concatenate([self.box, box])


# --- The levels of a grid extraction: cut boxes, fill up cells, join them, go on -----------------

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
class _Joined:
    """What the cells have become: the box of each, and the boxes."""

    group: np.ndarray
    boxes: Boxes


def refine(
    extraction: Extraction,
    levels: list[Level],
    seed: int,
    *,
    rounding: bool = False,
    sharing: Sharing | None = None,
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
    sharing : Sharing, optional
        Memory of what other extractions from these rows have worked out.

    Returns
    -------
    boxes : BoxTable
        Disjoint half-open boxes; sides on the border of the domain are free.
    conclusions : Conclusions
        Their outputs.
    """
    boxes, done = cut_domain(
        extraction,
        levels,
        seed,
        _collector(extraction, rounding),
        rounding=rounding,
        sharing=sharing,
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
    sharing: Sharing | None = None,
    kind: Hashable = "constant",
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
        Round the domain and joined boxes as the reference platform does; nothing is shared then.
    sharing : Sharing, optional
        Memory of what other extractions from these rows have worked out.
    kind : hashable, default="constant"
        What tells the statistics that `collect` makes from those of other collectors.

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
    whole = Regions(lower[None], upper[None], np.zeros(1, np.uint64))
    cutter = _Cutter(
        GridPoints(X, answers), collect, extraction, seed, rounding, None if rounding else sharing,
        kind,
    )  # fmt: skip
    frontier = cutter.cut(whole, levels[0])  # the first level always cuts
    done: list[Boxes] = []
    for level in levels[1:]:
        final = frontier.statistics.diversity < level.threshold
        done.append(frontier.take(np.flatnonzero(final)))
        frontier = frontier.take(np.flatnonzero(~final))
        if final.all():
            break
        cutter.leave_out(final)
        frontier = cutter.cut(frontier, level)
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


class _Cutter:
    """Cuts the boxes of one level after the other, or finds them cut already.

    Parameters
    ----------
    points : GridPoints
        The rows.
    collect : callable
        Makes the statistics of cells.
    extraction : Extraction
        Asks the black box.
    seed : int
        Of the points that fill up cells.
    rounding : bool
        Round joined boxes as the reference platform does.
    sharing : Sharing or None
        Memory of what other extractions from these rows have worked out.
    kind : hashable
        What tells the statistics from those of other collectors.
    """

    def __init__(
        self, points: GridPoints, collect: Collector, extraction: Extraction, seed: int,
        rounding: bool, sharing: Sharing | None, kind: Hashable,
    ) -> None:  # fmt: skip
        self._points, self._collect, self._extraction = points, collect, extraction
        self._seed, self._rounding = seed, rounding
        self._sharing, self._kind = sharing, kind
        #: What decides the boxes so far, and which points are in them.
        self._trail = b""

    def leave_out(self, final: np.ndarray) -> None:
        """Go on without the boxes that are final."""
        self._points.move_later(np.where(final, -1, np.cumsum(~final) - 1))
        if self._sharing is not None:
            self._trail += digest(final)

    def cut(self, frontier: Regions, level: Level) -> Boxes:
        """Cut every box; give the joined cells, with the points moved to them."""
        sharing, points = self._sharing, self._points
        if sharing is None:
            cells = self._cells(frontier, level)
            points.enter_later(cells)
            joined = self._joined(frontier, level, cells, level.threshold)
            points.move_later(joined.group)
            return joined.boxes
        # The seed matters where points are drawn only, the threshold where cells are joined.
        drawing = (level.min_examples, self._seed) if level.min_examples > 1 else None
        key = (self._trail, digest(level.n_slices.astype(np.int64)), drawing)
        cells = sharing.get(key)
        if cells is None:
            cells = self._cells(frontier, level)
            sharing.put(key, cells.compact())
        elif cells.drawn is not None:
            self._extraction.oracle.count_again(len(cells.drawn))
        points.enter_later(cells)
        joined = sharing.get_for_threshold((key, self._kind), level.threshold)
        if joined is None:
            watched: Any = WatchedThreshold(level.threshold)
            joined = self._joined(frontier, level, cells, watched)
            sharing.put_for_threshold((key, self._kind), watched, joined)
        points.move_later(joined.group)
        self._trail = digest(
            np.frombuffer(repr(key).encode(), np.uint8), joined.group.astype(np.int64)
        )
        return joined.boxes

    def _cells(self, frontier: Regions, level: Level) -> GridCells:
        """The cells with rows, and points that fill them up."""
        points = self._points.settled()
        n_slices = level.n_slices
        numbers = slice_numbers(points.X, points.box, frontier.lower, frontier.upper, n_slices)
        cell, example = group_cells(
            points.box, numbers, n_slices, len(points.X), len(frontier.lower)
        )
        n_rows = np.bincount(cell[: points.n_rows], minlength=len(example))
        kept = n_rows > 0
        parent = np.zeros(len(example), np.intp) if points.box is None else points.box[example]
        slices, parent, n_rows = numbers[:, example[kept]].T, parent[kept], n_rows[kept]
        if not kept.all():
            cell = np.where(kept, np.cumsum(kept) - 1, -1)[cell]
        key = frontier.key[parent]
        for column in slices.T:
            key = combine(key, column)
        cells = GridCells(cell, parent, slices.astype(np.int64), n_rows, key)

        wanted = np.maximum(0, level.min_examples - n_rows)
        if wanted.any():
            edges = _Edges(frontier, n_slices)
            lower, upper = edges.boxes(parent, cells.slices, edges.above(parent, cells.slices))
            cells.drawn, cells.owner = uniform_points(self._seed, key, wanted, lower, upper)
            cells.drawn_answers = self._extraction.ask(cells.drawn)
        return cells

    def _joined(
        self, frontier: Regions, level: Level, cells: GridCells, threshold: float
    ) -> _Joined:
        """Join the cells that belong together; the points must be in them."""
        points, n_slices, parent = self._points.settled(), level.n_slices, cells.parent
        assert points.box is not None
        table = self._collect(points.X, points.answers, points.box, len(parent))
        edges = _Edges(frontier, n_slices)
        rounder = None
        if self._rounding:
            rounder = ReferenceRounding(frontier.lower, frontier.upper, n_slices)
        merger = CellMerger(
            parent,
            cells.slices,
            edges.above(parent, cells.slices),
            n_slices[n_slices > 1],
            table,
            threshold,
            rounder.join if rounder else join_edges,
        )
        group, low, high, table = merger.result()
        first = np.unique(group, return_index=True)[1]
        if rounder is not None:
            lower, upper = rounder.boxes(parent[first], low, high, np.bincount(group) > 1)
        else:
            lower, upper = edges.boxes(parent[first], low, high)
        # A union's key must not depend on the order in which its cells joined.
        scrambled = np.zeros(len(first), np.uint64)
        np.add.at(scrambled, group, combine(cells.key, 0))
        statistics = table.closed(lower, upper)
        n_rows = np.bincount(group, weights=cells.n_rows).astype(np.intp)
        return _Joined(group, Boxes(lower, upper, scrambled, statistics, n_rows))


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
