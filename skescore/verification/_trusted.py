"""Trusted parts of rules: large boxes in which a model provably agrees with a rule.

Two searches produce candidates. The first search starts from the region of a rule. Branch and bound
splits the region. A part in which agreement cannot be proven is peeled off by the cut that loses
the fewest rows, until agreement is proven in the remaining box. The second search starts from
single rows. The bounding box of a row and its nearest rows grows as long as it contains no known
point of disagreement. Further points are drawn in the box with the most rows, and parts without a
proof are peeled off as in the first search. The resulting boxes are then extended column by column.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from skescore.verification._branch import AGREES, UNKNOWN, BranchAndBound, Node
from skescore.verification._clock import Deadline
from skescore.verification._grid import CellBoxes, CellGrid
from skescore.verification._measures import draw_in_domain
from skescore.verification._regions import RuleRegion

#: Depths of splits after which an undecided part is excluded, which are tried in turn.
_DEPTHS = (8, 12, 16)
#: Share of the time for the first search, and share of the remaining time for the second one; the
#: rest is for extending the boxes.
_PEELING_SHARE, _BOUNDING_BOX_SHARE = 0.35, 0.6
#: Second search: number of initial rows, number of points drawn in a box, maximum number of stored
#: points, and maximum number of boxes.
_N_SEEDS, _N_DRAWN, _N_ADDED, _MAX_BOXES = 6, 4000, 200, 300
#: Largest number of splits of a search, as a multiple of the limit for proving one extension.
_EXTENSION_EFFORT = 30


@dataclass(frozen=True, order=True)
class _Cut:
    """Cut that excludes a part of a box; `cost` measures the lost rows and volume."""

    cost: float
    column: int
    kind: str
    box: CellBoxes = field(compare=False)


def _gap(search: BranchAndBound, node: Node) -> float:
    """Return the distance of the bounds of a part from a proof of agreement."""
    return search.target.gap(node.lower, node.upper)


class _Peeling:
    """A box that shrinks until agreement is proven everywhere in it.

    Parameters
    ----------
    search : BranchAndBound
        Bounds and splits.
    region : RuleRegion
        Region in which the rule predicts.
    points : ndarray of shape (n_rows, n_features)
        Rows in the region; the box should keep as many as possible.
    max_depth : int
        Number of splits of a part after which it is excluded.
    box : CellBoxes, optional
        The box; by default the premise of the rule.
    """

    def __init__(
        self,
        search: BranchAndBound,
        region: RuleRegion,
        points: np.ndarray,
        max_depth: int,
        box: CellBoxes | None = None,
    ) -> None:
        self.search = search
        self.grid = search.grid
        self.box = region.premise.copy() if box is None else box
        self.points = points[self.grid.contains(self.box, 0, points)]
        self.max_depth = max_depth
        self._number = 0
        self._heap: list[tuple[float, int, int, Node]] = []
        for i in range(len(region.boxes)):
            part = clip(self.grid, region.boxes.take([i]), self.box)
            if not self.grid.are_empty(part)[0]:
                self._push(search.root(part, 0), 0)

    def _push(self, node: Node, depth: int) -> None:
        """Queue a part without a proof, the one with the worst bound first."""
        if node.status != AGREES:
            self._number += 1
            heapq.heappush(self._heap, (-_gap(self.search, node), self._number, depth, node))

    def run(self, deadline: Deadline, max_steps: int) -> bool:
        """Shrink the box; return whether agreement is proven in the remaining box."""
        for _ in range(max_steps):
            if not self._heap:
                return True
            if not len(self.points) or deadline.is_over():
                return False
            _, _, depth, node = heapq.heappop(self._heap)
            if node.status == UNKNOWN and not node.is_final and depth < self.max_depth:
                children = self.search.split(node, drop_empty=False)
                if node.is_final:
                    self.search.decide_final(node)
                    self._push(node, depth)
                for child in children:
                    self._push(child, depth + 1)
            elif not self._exclude(node):
                return False
        return not self._heap

    def _exclude(self, node: Node) -> bool:
        """Exclude a part from the box; return False if every cut excludes the whole box."""
        cuts = cuts_between(self.grid, self.box, node.box, self.points)
        if not cuts:
            return False
        self.box = min(cuts).box
        self.points = self.points[self.grid.contains(self.box, 0, self.points)]
        remaining, self._heap = self._heap, []
        for _, _, depth, other in remaining:
            clipped = clip(self.grid, other.box, self.box)
            if self.grid.are_empty(clipped)[0]:
                continue
            if _equal(clipped, other.box):
                self._push(other, depth)
                continue
            self._push(self._shrunk_node(other, clipped), depth)
        return True

    def _shrunk_node(self, node: Node, box: CellBoxes) -> Node:
        """Return the node of a box inside the box of a node, with its own bounds."""
        leaves = node.leaves
        for j in range(self.grid.n_features):
            if not _equal_in(self.grid, j, node.box, box):
                leaves = leaves[self.search.meets(j, leaves, box)]
        result = Node(box, leaves)
        self.search.set_bounds(result)
        return result


def clip(grid: CellGrid, box: CellBoxes, other: CellBoxes) -> CellBoxes:
    """Return the intersection of two boxes."""
    low = np.maximum(box.low, other.low)
    high = np.maximum(np.minimum(box.high, other.high), low)
    return CellBoxes(low, high, box.missing & other.missing, box.words & other.words)


def _equal(one: CellBoxes, other: CellBoxes) -> bool:
    return (
        np.array_equal(one.low, other.low)
        and np.array_equal(one.high, other.high)
        and np.array_equal(one.missing, other.missing)
        and np.array_equal(one.words, other.words)
    )


def _equal_in(grid: CellGrid, j: int, one: CellBoxes, other: CellBoxes) -> bool:
    """Return whether two boxes have the same cells in a column."""
    if grid.is_category[j]:
        position = grid.word_slices[j]
        return bool((one.words[0, position] == other.words[0, position]).all())
    return (one.low[0, j], one.high[0, j], one.missing[0, j]) == (
        other.low[0, j],
        other.high[0, j],
        other.missing[0, j],
    )


def cuts_between(grid: CellGrid, box: CellBoxes, part: CellBoxes, points: np.ndarray) -> list[_Cut]:
    """Return the cuts of one column that exclude a part from a box.

    Parameters
    ----------
    grid : CellGrid
        The cells.
    box, part : CellBoxes
        A box, and a box inside it.
    points : ndarray
        Rows in the box. The cost of a cut is the number of rows that it excludes, plus half the
        share of the volume that it excludes.

    Returns
    -------
    list of _Cut
        The cuts, with the remaining box.
    """
    volume = float(grid.volumes(box)[0])
    cuts = []
    for j in range(grid.n_features):
        for kind, remaining in _remaining_boxes(grid, j, box, part):
            if grid.are_empty(remaining)[0]:
                continue
            is_inside = _contained(grid, j, remaining, points)
            lost_volume = 1 - float(grid.volumes(remaining)[0]) / volume if volume else 0.0
            cost = float((~is_inside).sum()) + 0.5 * lost_volume
            cuts.append(_Cut(cost, j, kind, remaining))
    return cuts


def _contained(grid: CellGrid, j: int, box: CellBoxes, points: np.ndarray) -> np.ndarray:
    """Return which points a box contains if only one column is compared."""
    values = points[:, j]
    is_missing = np.isnan(values)
    if grid.is_category[j]:
        bits = grid.unpack(j, box.words[0])
        return bits[np.where(is_missing, len(bits) - 1, values).astype(np.intp)]
    start, stop = grid.bounds(j, box, 0)
    return np.where(is_missing, bool(box.missing[0, j]), (values >= start) & (values < stop))


def _remaining_boxes(
    grid: CellGrid, j: int, box: CellBoxes, part: CellBoxes
) -> list[tuple[str, CellBoxes]]:
    """Return the boxes that remain if a part of a box is excluded by a cut of one column."""
    if grid.is_category[j]:
        position = grid.word_slices[j]
        remaining = box.copy()
        remaining.words[0, position] &= ~part.words[0, position]
        return [("values", remaining)]
    result = []
    has_numbers, has_missing = part.low[0, j] < part.high[0, j], part.missing[0, j]
    if has_numbers:
        below, above = box.copy(), box.copy()
        below.high[0, j], above.low[0, j] = part.low[0, j], part.high[0, j]
        for kind, remaining in (("upper", below), ("lower", above)):
            remaining.missing[0, j] &= not has_missing
            result.append((kind, remaining))
    elif has_missing:
        remaining = box.copy()
        remaining.missing[0, j] = False
        result.append(("observed", remaining))
    return result


class _BoundingBoxes:
    """Bounding boxes of neighboring rows that contain no known point of disagreement.

    Parameters
    ----------
    search : BranchAndBound
        Bounds and splits.
    region : RuleRegion
        Region in which the rule predicts.
    points : ndarray of shape (n_rows, n_features)
        Rows of the rule with which the model agrees.
    excluded_points : ndarray of shape (n_points, n_features)
        Points that the box must not include.
    """

    def __init__(
        self,
        search: BranchAndBound,
        region: RuleRegion,
        points: np.ndarray,
        excluded_points: np.ndarray,
    ) -> None:
        self.search = search
        self.region = region
        self.points = points
        self.rows = CellPoints.of(search.grid, points)
        self.excluded_points = CellPoints.of(search.grid, excluded_points)
        seeds = np.unique(np.linspace(0, len(points) - 1, _N_SEEDS).astype(np.intp)).tolist()
        self._boxes = {seed: self._box_around(seed) for seed in seeds}
        self._rng = np.random.default_rng(0)

    def run(self, deadline: Deadline, max_steps: int, n_required: int) -> CellBoxes | None:
        """Return the proven box with the most rows; None unless it has more than `n_required`."""
        result = None
        for _ in range(_MAX_BOXES):
            n_rows, seed = max(
                ((n_rows, seed) for seed, (n_rows, _) in self._boxes.items()), default=(0, -1)
            )
            if n_rows <= n_required or deadline.is_over():
                break
            box = self._boxes[seed][1].to_box()
            if self._has_disagreement(box):
                continue
            del self._boxes[seed]
            peeling = _Peeling(self.search, self.region, self.points, _DEPTHS[-1], box)
            if peeling.run(deadline, max_steps) and len(peeling.points) > n_required:
                result, n_required = peeling.box, len(peeling.points)
        return result

    def _box_around(self, seed: int) -> tuple[int, CellPoints]:
        """Return a box that includes a row and as many of the next rows as possible."""
        box = self.rows.take([seed])
        for i in self.rows.order_from(seed):
            grown = box.joined(self.rows.take([i]))
            if not grown.contains(self.excluded_points).any():
                box = grown
        return int(box.contains(self.rows).sum()), box

    def _has_disagreement(self, box: CellBoxes) -> bool:
        """Draw points of a box; store points in the region whose rule the model contradicts."""
        grid, target = self.search.grid, self.search.target
        if not grid.volumes(box)[0]:
            return False
        points = draw_in_domain(grid, box, 0, _N_DRAWN, self._rng)
        in_region = np.zeros(len(points), dtype=bool)
        for i in range(len(self.region.boxes)):
            in_region |= grid.contains(self.region.boxes, i, points)
        points = points[in_region]
        if not len(points):
            return False
        wrong = ~target.agrees(self.search.predict(points), points)
        self._add(points[wrong][:_N_ADDED])
        return bool(wrong.any())

    def _add(self, points: np.ndarray) -> None:
        """Add points to the excluded ones, and replace the boxes that include such a point."""
        added = CellPoints.of(self.search.grid, points)
        self.excluded_points = self.excluded_points.append(added)
        for seed, (_, box) in self._boxes.items():
            if box.contains(added).any():
                self._boxes[seed] = self._box_around(seed)


@dataclass(frozen=True, eq=False)
class CellPoints:
    """Boxes of grid cells: one cell per point, or a single box that contains several points.

    Parameters
    ----------
    grid : CellGrid
        Grid of the cells.
    low, high : ndarray of int, shape (n_points, n_features)
        Half-open ranges of cells in numeric columns. An empty range has the largest int as `low`.
    missing : ndarray of bool, shape (n_points, n_features)
        Whether missing values of numeric columns are included.
    words : ndarray of uint64
        Categories and missing values of categorical columns, as in :class:`CellBoxes`.
    """

    grid: CellGrid
    low: np.ndarray
    high: np.ndarray
    missing: np.ndarray
    words: np.ndarray

    @classmethod
    def of(cls, grid: CellGrid, points: np.ndarray) -> CellPoints:
        """Return the cell that contains each point."""
        is_missing = np.isnan(points)
        low = np.zeros(points.shape, dtype=np.int32)
        high = np.ones(points.shape, dtype=np.int32)
        words = np.zeros((len(points), grid.n_words), dtype=np.uint64)
        for j in range(grid.n_features):
            if grid.is_category[j]:
                n_categories = len(grid.codes.categories[j])
                codes = np.where(is_missing[:, j], n_categories, points[:, j]).astype(np.intp)
                masks = [grid.pack(j, bits) for bits in np.eye(n_categories + 1, dtype=bool)]
                words[:, grid.word_slices[j]] = np.array(masks)[codes]
                continue
            low[:, j] = np.searchsorted(grid.starts[j], points[:, j], side="right") - 1
            high[:, j] = low[:, j] + 1
        missing = is_missing & ~grid.is_category
        low[missing], high[missing] = np.iinfo(np.int32).max, 0
        return cls(grid, low, high, missing, words)

    def take(self, index: Any) -> CellPoints:
        """Return the boxes with the given indices."""
        return CellPoints(
            self.grid, self.low[index], self.high[index], self.missing[index], self.words[index]
        )

    def append(self, other: CellPoints) -> CellPoints:
        """Return the boxes followed by the boxes of `other`."""
        return CellPoints(
            self.grid,
            np.concatenate([self.low, other.low]),
            np.concatenate([self.high, other.high]),
            np.concatenate([self.missing, other.missing]),
            np.concatenate([self.words, other.words]),
        )

    def joined(self, other: CellPoints) -> CellPoints:
        """Return, for each pair of boxes, the smallest box that contains both."""
        return CellPoints(
            self.grid,
            np.minimum(self.low, other.low),
            np.maximum(self.high, other.high),
            self.missing | other.missing,
            self.words | other.words,
        )

    def contains(self, points: CellPoints) -> np.ndarray:
        """Return a mask of the points that the single box contains."""
        is_inside = (points.low >= self.low) & (points.low < self.high) & ~points.missing
        is_inside |= points.missing & self.missing
        result = is_inside.all(axis=1)
        for position in self.grid.word_slices.values():
            result &= (points.words[:, position] & self.words[:, position]).any(axis=1)
        return np.asarray(result)

    def order_from(self, seed: int) -> list[int]:
        """Return the other points, ordered by the number of cuts between them and point `seed`."""
        both_missing = self.missing & self.missing[seed]
        one_missing = self.missing ^ self.missing[seed]
        n_cuts = np.abs(self.low.astype(float) - self.low[seed])
        sizes = np.array([len(starts) for starts in self.grid.starts], dtype=float)
        n_cuts = np.where(one_missing, sizes, np.where(both_missing, 0.0, n_cuts)).sum(axis=1)
        for position in self.grid.word_slices.values():
            differs = (self.words[:, position] != self.words[seed, position]).any(axis=1)
            n_cuts += differs * sizes.mean()
        return [int(i) for i in np.argsort(n_cuts, kind="stable") if i != seed]

    def to_box(self) -> CellBoxes:
        """Convert to boxes of the grid."""
        is_empty = self.low >= self.high
        low, high = np.where(is_empty, 0, self.low), np.where(is_empty, 0, self.high)
        return CellBoxes(
            low.astype(np.int32), high.astype(np.int32), self.missing.copy(), self.words.copy()
        )


class _ProvenBox:
    """Proven box that is extended column by column, as long as extensions can be proven.

    Parameters
    ----------
    search : BranchAndBound
        Bounds and splits.
    region : RuleRegion
        Region in which the rule predicts.
    box : CellBoxes
        A box in which agreement is proven.
    points : ndarray
        Rows of the rule with which the model agrees.
    counterexamples : ndarray
        Points of the rule's region with which the model disagrees.
    """

    def __init__(
        self,
        search: BranchAndBound,
        region: RuleRegion,
        box: CellBoxes,
        points: np.ndarray,
        counterexamples: np.ndarray,
    ) -> None:
        self.search = search
        self.grid = search.grid
        self.region = region
        self.box = box
        self.points = points
        self.counterexamples = counterexamples

    def run(self, deadline: Deadline, max_splits: int) -> None:
        """Extend the box until no extension can be proven or the time is over."""
        failures: set[tuple[int, int]] = set()
        while not deadline.is_over():
            extensions = [
                extension
                for extension in self._extensions()
                if (extension[1], extension[2]) not in failures
            ]
            if not extensions:
                return
            _, j, side, grown, added = max(extensions, key=lambda extension: extension[:3])
            if self.is_proven(added, deadline, max_splits):
                self.box = grown
                failures.clear()
            elif not self._extend_partly(j, grown, deadline, max_splits):
                failures.add((j, side))

    def _extend_partly(self, j: int, grown: CellBoxes, deadline: Deadline, max_splits: int) -> bool:
        """Try increasingly shorter extensions in a column; return whether one is proven."""
        if self.grid.is_category[j]:
            return False
        while not deadline.is_over():
            below = int(self.box.low[0, j] - grown.low[0, j]) // 2
            above = int(grown.high[0, j] - self.box.high[0, j]) // 2
            if below <= 0 and above <= 0:
                return False
            grown = self.box.copy()
            grown.low[0, j] -= max(below, 0)
            grown.high[0, j] += max(above, 0)
            if self.is_proven(self._added_cells(j, grown), deadline, max_splits):
                self.box = grown
                return True
        return False

    def _added_cells(self, j: int, grown: CellBoxes) -> CellBoxes:
        """Return the cells that an extension in a column adds."""
        added = grown.copy()
        if self.grid.is_category[j]:
            position = self.grid.word_slices[j]
            added.words[0, position] &= ~self.box.words[0, position]
            return added
        if grown.low[0, j] < self.box.low[0, j]:
            added.high[0, j] = self.box.low[0, j]
        elif grown.high[0, j] > self.box.high[0, j]:
            added.low[0, j] = self.box.high[0, j]
        else:
            added.high[0, j] = added.low[0, j]
        added.missing[0, j] = grown.missing[0, j] and not self.box.missing[0, j]
        return added

    def _extensions(self) -> list[tuple[int, int, int, CellBoxes, CellBoxes]]:
        """Return the largest extension on each side of each column, with the rows it gains."""
        result = []
        for j in range(self.grid.n_features):
            for side, grown in enumerate(self._grown_boxes(j)):
                added = self._added_cells(j, grown)
                gain = int(self.grid.contains(added, 0, self.points).sum())
                result.append((gain, j, side, grown, added))
        return result

    def _grown_boxes(self, j: int) -> list[CellBoxes]:
        """Return the box with one side of a column extended up to the premise."""
        premise, box = self.region.premise, self.box
        if self.grid.is_category[j]:
            position = self.grid.word_slices[j]
            addable = premise.words[0, position] & ~box.words[0, position]
            words = box.words[0].copy()
            words[position] = addable
            bits = self.grid.unpack(j, words)
            return [self._with_category(j, code) for code in np.flatnonzero(bits).tolist()]
        result = []
        for low, high, missing in (
            (premise.low[0, j], box.high[0, j], box.missing[0, j]),
            (box.low[0, j], premise.high[0, j], box.missing[0, j]),
            (box.low[0, j], box.high[0, j], premise.missing[0, j]),
        ):
            if (low, high, missing) == (box.low[0, j], box.high[0, j], box.missing[0, j]):
                continue
            if box.low[0, j] >= box.high[0, j]:
                continue
            grown = box.copy()
            grown.low[0, j], grown.high[0, j], grown.missing[0, j] = low, high, missing
            result.append(grown)
        return result

    def _with_category(self, j: int, code: int) -> CellBoxes:
        bits = self.grid.unpack(j, self.box.words[0])
        bits[code] = True
        grown = self.box.copy()
        grown.words[0, self.grid.word_slices[j]] = self.grid.pack(j, bits)
        return grown

    def is_proven(self, box: CellBoxes, deadline: Deadline, max_splits: int) -> bool:
        """Return whether the model provably agrees with the rule in `box` within the region."""
        if self.grid.contains(box, 0, self.counterexamples).any():
            return False
        heap: list[tuple[float, int, Node]] = []
        number = 0
        for i in range(len(self.region.boxes)):
            part = clip(self.grid, self.region.boxes.take([i]), box)
            if not self.grid.are_empty(part)[0]:
                number += 1
                heapq.heappush(heap, (0.0, number, self.search.root(part, 0)))
        for _ in range(max_splits):
            if not heap or deadline.is_over():
                break
            _, _, node = heapq.heappop(heap)
            if node.status == AGREES:
                continue
            children = []
            if node.status == UNKNOWN:
                children = self.search.split(node, drop_empty=False)
                if node.is_final:
                    self.search.decide_final(node)
            if node.is_final and node.status == UNKNOWN:  # a linear output varies in the part
                return False
            if node.status not in (UNKNOWN, AGREES):
                point = self.search.point_in(node)
                self.counterexamples = np.vstack([self.counterexamples, point])
                return False
            for child in children:
                if child.status != AGREES:
                    number += 1
                    heapq.heappush(heap, (-_gap(self.search, child), number, child))
        return not heap


def trusted_box(
    search: BranchAndBound,
    region: RuleRegion,
    points: np.ndarray,
    counterexamples: np.ndarray,
    *,
    deadline: Deadline,
    max_steps: int,
) -> CellBoxes | None:
    """Return a large box in which the model provably agrees wherever the rule predicts.

    Parameters
    ----------
    search : BranchAndBound
        Bounds and splits for the rule.
    region : RuleRegion
        Region in which the rule predicts.
    points : ndarray of shape (n_rows, n_features)
        Rows of the rule with which the model agrees.
    counterexamples : ndarray of shape (n_points, n_features)
        Points of the region with which the model disagrees.
    deadline : Deadline
        Time at which the search ends.
    max_steps : int
        Largest number of splits and cuts per attempt.

    Returns
    -------
    CellBoxes or None
        Box with the most rows; None if there is none.
    """
    max_rows = 0
    starts: list[CellBoxes] = []
    peeling_end = deadline.part(_PEELING_SHARE)
    for max_depth in _DEPTHS:
        peeling = _Peeling(search, region, points, max_depth)
        if peeling.run(peeling_end, max_steps) and len(peeling.points) >= max(max_rows, 1):
            max_rows, starts = len(peeling.points), [peeling.box]
    max_splits = max_steps // _EXTENSION_EFFORT
    if len(points):
        boxes = _BoundingBoxes(search, region, points, counterexamples)
        box = boxes.run(deadline.part(_BOUNDING_BOX_SHARE), max_steps, max_rows)
        starts += [] if box is None else [box]
        cell = cell_around(search.grid, points[len(points) // 2])
        proven_box = _ProvenBox(search, region, cell, points, counterexamples)
        # A linear output may deviate in other places of the cell than at the row.
        if not starts and (
            not search.target.is_linear or proven_box.is_proven(cell, deadline, max_splits)
        ):
            starts = [cell]
    results = []
    for i, start in enumerate(starts):
        proven_box = _ProvenBox(search, region, start, points, counterexamples)
        proven_box.run(deadline.part(1 / (len(starts) - i)), max_splits)
        results.append(proven_box.box)

    def size(box: CellBoxes) -> tuple[int, float]:
        n_rows = int(search.grid.contains(box, 0, points).sum())
        return n_rows, float(search.grid.volumes(box)[0])

    return max(results, key=size, default=None)


def cell_around(grid: CellGrid, point: np.ndarray) -> CellBoxes:
    """Return the box of the one cell that contains a point.

    Parameters
    ----------
    grid : CellGrid
        The cells.
    point : ndarray of shape (n_features,)
        The point, with codes and NaN.

    Returns
    -------
    CellBoxes
        One box. The outputs of trees and the conditions of rules are constant in it.
    """
    box = grid.whole_space().copy()
    for j, value in enumerate(point.tolist()):
        if grid.is_category[j]:
            bits = np.zeros(len(grid.codes.categories[j]) + 1, dtype=bool)
            bits[-1 if np.isnan(value) else int(value)] = True
            box.words[0, grid.word_slices[j]] = grid.pack(j, bits)
        elif np.isnan(value):
            box.high[0, j] = box.low[0, j]
        else:
            cell = int(np.searchsorted(grid.starts[j], value, side="right")) - 1
            box.low[0, j], box.high[0, j] = cell, cell + 1
            box.missing[0, j] = False
    return box
