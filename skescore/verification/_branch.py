"""Branch and bound over boxes of cells: what a model can predict in a region of the domain.

In a box, every tree adds the value of one of the leaves that meet the box. The sums of the smallest
and of the largest of these values bound the score of the model. Boxes whose bounds prove neither
agreement nor disagreement with the rule are split at a cut of the trees.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from skescore.rules import LinearOutput
from skescore.verification._clock import Deadline
from skescore.verification._ensemble import LeafEnsemble
from skescore.verification._grid import CellBoxes, CellGrid
from skescore.verification._measures import Neighborhoods

UNKNOWN, AGREES, DISAGREES = range(3)
#: Volume up to which a part without rows is omitted.
_NO_MASS = 0.0
#: Relative rounding error of a linear prediction.
_ROUNDING = 1e-12


@dataclass(eq=False)
class Node:
    """A box with the leaves that meet it.

    Parameters
    ----------
    box : CellBoxes
        One box.
    leaves : ndarray of int
        Leaves of the ensemble that have cells in the box.
    volume : float
        Share of the domain in the box.
    rows : ndarray of int
        Rows whose neighborhoods meet the box.
    row_masses : ndarray of float
        Shares of these neighborhoods in the box.
    lower, upper : ndarray of shape (n_contrasts,)
        Bounds of the scores; in regression, of the difference of model and rule.
    status : int
        `UNKNOWN`, `AGREES` or `DISAGREES`.
    is_final : bool
        Whether the box cannot be split further.
    """

    box: CellBoxes
    leaves: np.ndarray
    volume: float = 0.0
    rows: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=np.intp))
    row_masses: np.ndarray = field(default_factory=lambda: np.empty(0))
    lower: np.ndarray = field(default_factory=lambda: np.empty(0))
    upper: np.ndarray = field(default_factory=lambda: np.empty(0))
    status: int = UNKNOWN
    is_final: bool = False

    @property
    def near(self) -> float:
        """Mass near the data, in rows."""
        return float(self.row_masses.sum())


@dataclass(frozen=True, eq=False)
class Target:
    """Statement about the model that is proven or refuted in boxes.

    Parameters
    ----------
    contrasts : ndarray of shape (n_leaves, n_contrasts)
        Classification: contribution of each leaf to the score of the rule's class minus the scores
        of the other classes. Regression: values of the leaves.
    output : label, number or LinearOutput
        Prediction of the rule.
    tolerance : float or None
        Largest deviation that counts as agreement; None in classification.
    rounding : float
        Largest rounding error of a score.
    columns : sequence of int
        Column of each feature of a linear output.
    """

    contrasts: np.ndarray
    output: Any
    tolerance: float | None
    rounding: float = 0.0
    columns: Sequence[int] = ()

    @classmethod
    def of_rule(
        cls,
        ensemble: LeafEnsemble,
        output: Any,
        tolerance: float | None,
        columns: Sequence[int] = (),
    ) -> Target:
        """Return the statement that the model predicts the output of a rule."""
        values = ensemble.values
        if ensemble.classes is None:
            return cls(values, output, tolerance, ensemble.rounding, columns)
        position = _position(ensemble.classes, output)
        if position is None:
            contrasts = np.full((len(values), 1), -1.0)
        elif len(ensemble.classes) == 1:  # no other class can have a higher score
            contrasts = np.ones((len(values), 1))
        else:
            contrasts = np.delete(values[:, [position]] - values, position, axis=1)
        return cls(contrasts, output, None, 2 * ensemble.rounding)

    def status(self, lower: np.ndarray, upper: np.ndarray) -> int:
        """Return the status that the bounds of a box prove."""
        if self.tolerance is None:
            if (lower > self.rounding).all():
                return AGREES
            return DISAGREES if (upper < -self.rounding).any() else UNKNOWN
        if self.gap(lower, upper) < self.tolerance - self.rounding:
            return AGREES
        is_apart = max(float(lower[0]), -float(upper[0])) > self.tolerance + self.rounding
        return DISAGREES if is_apart else UNKNOWN

    @property
    def is_linear(self) -> bool:
        """Whether the prediction of the rule is a linear function."""
        return isinstance(self.output, LinearOutput)

    def output_range(self, grid: CellGrid, box: CellBoxes) -> tuple[float, float]:
        """Return the smallest and the largest number that the rule predicts in a box."""
        if not isinstance(self.output, LinearOutput):
            return self.output, self.output
        low = high = self.output.intercept
        rounding = abs(low)
        for feature, coefficient in self.output.terms:
            j = self.columns[feature]
            if grid.is_category[j] or box.missing[0, j]:
                return -math.inf, math.inf
            start, stop = grid.bounds(j, box, 0)
            bounds = coefficient * start, coefficient * min(stop, float(grid.upper[j]))
            low, high = low + min(bounds), high + max(bounds)
            rounding += max(map(abs, bounds))
        return low - _ROUNDING * rounding, high + _ROUNDING * rounding

    def outputs(self, points: np.ndarray) -> Any:
        """Return the prediction of the rule, one per point for a linear output."""
        if not isinstance(self.output, LinearOutput):
            return self.output
        total = np.full(len(points), self.output.intercept)
        for feature, coefficient in self.output.terms:
            total += coefficient * points[:, self.columns[feature]]
        return total

    def agrees(self, predictions: np.ndarray, points: np.ndarray) -> np.ndarray:
        """Return for each prediction of the model whether it agrees with the rule."""
        if self.tolerance is None:
            return np.asarray(predictions == self.output)
        return np.asarray(self.deviations(predictions, points) <= self.tolerance)

    def deviations(self, predictions: np.ndarray, points: np.ndarray) -> np.ndarray:
        """Return the deviations of the model's predictions from the rule's."""
        return np.abs(np.asarray(predictions, dtype=float) - self.outputs(points))

    def gap(self, lower: np.ndarray, upper: np.ndarray) -> float:
        """Return the distance of the bounds of a box from a proof of agreement.

        In regression this is the upper bound of the deviation.
        """
        if self.tolerance is None:
            return -float(lower.min())
        return max(float(upper[0]), -float(lower[0]))


def _position(classes: tuple[Any, ...], label: Any) -> int | None:
    return next((k for k, name in enumerate(classes) if name == label), None)


class BranchAndBound:
    """Split boxes until the bounds decide, or a limit is reached.

    Parameters
    ----------
    grid : CellGrid
        The cells.
    ensemble : LeafEnsemble
        The model.
    target : Target
        The statement.
    predict : callable
        Function that returns the predictions of the model for points.
    neighborhoods : Neighborhoods, optional
        Rows whose masses are tracked.
    """

    def __init__(
        self,
        grid: CellGrid,
        ensemble: LeafEnsemble,
        target: Target,
        predict: Callable[[np.ndarray], np.ndarray],
        neighborhoods: Neighborhoods | None = None,
    ) -> None:
        self.grid = grid
        self.ensemble = ensemble
        self.target = target
        self.neighborhoods = neighborhoods
        self.predict = predict
        self._low = np.ascontiguousarray(ensemble.boxes.low.T)
        self._high = np.ascontiguousarray(ensemble.boxes.high.T)
        self._missing = np.ascontiguousarray(ensemble.boxes.missing.T)
        sizes = np.diff(np.append(ensemble.tree_starts, len(ensemble.boxes)))
        self._tree_of_leaf = np.repeat(np.arange(ensemble.n_trees), sizes)

    def root(self, boxes: CellBoxes, i: int) -> Node:
        """Return the node of a box, with its bounds."""
        box = boxes.take([i])
        leaves = np.arange(len(self.ensemble.boxes))
        for j in range(self.grid.n_features):
            leaves = leaves[self.meets(j, leaves, box)]
        node = Node(box, leaves, float(self.grid.volumes(box)[0]))
        if self.neighborhoods is not None:
            masses = self.neighborhoods.masses(box, 0)
            node.rows = np.flatnonzero(masses > 0)
            node.row_masses = masses[node.rows]
        self.set_bounds(node)
        return node

    def meets(self, j: int, leaves: np.ndarray, box: CellBoxes) -> np.ndarray:
        """Return which leaves may have cells in a box, judging by one column."""
        if self.grid.is_category[j]:
            position = self.grid.word_slices[j]
            shared_words = self.ensemble.boxes.words[leaves, position] & box.words[0, position]
            return np.asarray(shared_words.any(axis=1))
        ranges = (self._low[j, leaves] < box.high[0, j]) & (self._high[j, leaves] > box.low[0, j])
        if box.low[0, j] >= box.high[0, j]:
            ranges[:] = False
        if box.missing[0, j]:
            ranges |= self._missing[j, leaves]
        return np.asarray(ranges)

    def set_bounds(self, node: Node) -> None:
        """Compute the bounds of a node and its status."""
        trees = self._tree_of_leaf[node.leaves]
        contrasts = self.target.contrasts[node.leaves]
        if len(trees):
            starts = np.flatnonzero(np.diff(trees, prepend=-1))
            smallest = np.minimum.reduceat(contrasts, starts, axis=0)
            largest = np.maximum.reduceat(contrasts, starts, axis=0)
            skips = self.ensemble.may_skip[trees[starts]]
            smallest[skips] = np.minimum(smallest[skips], 0.0)
            largest[skips] = np.maximum(largest[skips], 0.0)
            node.lower, node.upper = smallest.sum(axis=0), largest.sum(axis=0)
        else:
            node.lower = node.upper = np.zeros(contrasts.shape[1])
        if self.target.tolerance is not None:
            low, high = self.target.output_range(self.grid, node.box)
            node.lower, node.upper = node.lower - high, node.upper - low
        node.status = self.target.status(node.lower, node.upper)

    def split(self, node: Node, *, drop_empty: bool = True) -> list[Node]:
        """Return the parts of a node; none if no cut of the model is inside.

        Parameters
        ----------
        node : Node
            The node.
        drop_empty : bool, default=True
            Whether to omit parts without volume and rows.

        Returns
        -------
        list of Node
            The parts with their bounds.
        """
        boxes = self._split_boxes(node)
        if boxes is None:
            node.is_final = True
            return []
        j, parts = boxes
        children = []
        parent_shares = None
        if self.neighborhoods is not None and len(node.rows):
            parent_shares = self.neighborhoods.shares(j, node.box, 0, node.rows)
        for i in range(len(parts)):
            box = parts.take([i])
            leaves = node.leaves[self.meets(j, node.leaves, box)]
            child = Node(box, leaves, float(self.grid.volumes(box)[0]))
            if parent_shares is not None and self.neighborhoods is not None:
                shares = self.neighborhoods.shares(j, box, 0, node.rows)
                masses = node.row_masses * shares / parent_shares
                child.rows = node.rows[masses > 0]
                child.row_masses = masses[masses > 0]
            if drop_empty and child.volume <= _NO_MASS and not len(child.rows):
                continue
            self.set_bounds(child)
            children.append(child)
        return children

    def _split_boxes(self, node: Node) -> tuple[int, CellBoxes] | None:
        """Return a column and the parts of a box on both sides of a cut, or None without a cut."""
        weights = self._leaf_weights(node)
        box = node.box
        low, high = self._low[:, node.leaves], self._high[:, node.leaves]
        inside_low = low > box.low.T
        inside_high = high < box.high.T
        differs = box.missing.T & (self._missing[:, node.leaves] != box.missing.T)
        differs &= (box.low < box.high).T
        is_number = ~self.grid.is_category[:, None] & (box.low < box.high).T
        scores = ((inside_low | inside_high) & is_number | differs) @ weights
        for j, position in self.grid.word_slices.items():
            shared = self.ensemble.boxes.words[node.leaves, position] & box.words[0, position]
            scores[j] = (shared != box.words[0, position]).any(axis=1) @ weights
        j = int(scores.argmax())
        if scores[j] <= 0:
            return None
        if self.grid.is_category[j]:
            return j, self._split_categories(node, j, weights)
        parts = box.take([0, 0]).copy()
        if box.missing[0, j]:
            parts.high[0, j] = parts.low[0, j]
            parts.missing[1, j] = False
            return j, parts
        edges = np.concatenate([low[j][inside_low[j]], high[j][inside_high[j]]])
        edge_weights = np.concatenate([weights[inside_low[j]], weights[inside_high[j]]])
        cut = _weighted_median(edges, edge_weights)
        parts.high[0, j] = parts.low[1, j] = cut
        return j, parts

    def _leaf_weights(self, node: Node) -> np.ndarray:
        """Return the importance of each leaf, based on the spread of the values in its tree."""
        trees = self._tree_of_leaf[node.leaves]
        k = int(np.argmin(node.lower)) if self.target.tolerance is None else 0
        contrasts = self.target.contrasts[node.leaves, k]
        starts = np.flatnonzero(np.diff(trees, prepend=-1))
        sizes = np.diff(np.append(starts, len(trees)))
        spreads = np.maximum.reduceat(contrasts, starts) - np.minimum.reduceat(contrasts, starts)
        spreads = np.where(self.ensemble.may_skip[trees[starts]], spreads + 1e-12, spreads)
        if not np.isfinite(spreads).all() or spreads.max() <= 0:
            spreads = np.ones(len(spreads))
        return np.repeat(spreads / sizes, sizes)

    def _split_categories(self, node: Node, j: int, weights: np.ndarray) -> CellBoxes:
        """Split the categories of a box by the dividing leaf with the largest weight."""
        position = self.grid.word_slices[j]
        words = node.box.words[0, position]
        shared = self.ensemble.boxes.words[node.leaves, position] & words
        divides = (shared != words).any(axis=1)
        leaf = int(np.where(divides, weights, -1.0).argmax())
        parts = node.box.take([0, 0]).copy()
        parts.words[0, position] = shared[leaf]
        parts.words[1, position] = words & ~shared[leaf]
        return parts

    def point_in(self, node: Node, origin: np.ndarray | None = None) -> np.ndarray:
        """Return a point in the box of a node, as close to another point as possible."""
        return nearest_point(self.grid, node.box, 0, origin)

    def decide_final(self, node: Node) -> None:
        """Query the model in a box in which its score is constant.

        A box in which a linear prediction of the rule varies remains undecided.
        """
        if self.target.is_linear:
            return
        points = self.point_in(node)[None, :]
        agrees = self.target.agrees(self.predict(points), points)[0]
        node.status = AGREES if agrees else DISAGREES


def nearest_point(
    grid: CellGrid, boxes: CellBoxes, i: int, origin: np.ndarray | None = None
) -> np.ndarray:
    """Return the point of a box that is nearest to another point, column by column."""
    point = np.full(grid.n_features, np.nan) if origin is None else origin.astype(float).copy()
    for j in range(grid.n_features):
        is_missing = np.isnan(point[j])
        if grid.is_category[j]:
            bits = grid.unpack(j, boxes.words[i])
            code = len(bits) - 1 if is_missing else int(point[j])
            if not bits[code]:
                code = int(bits.argmax())
                point[j] = np.nan if code == len(bits) - 1 else float(code)
            continue
        if is_missing and boxes.missing[i, j]:
            continue
        start, stop = grid.bounds(j, boxes, i)
        if start > stop:
            point[j] = np.nan
            continue
        last = min(math.nextafter(stop, -math.inf), float(grid.upper[j]))
        if grid.codes.is_whole[j]:
            last = math.floor(last)
        # Without a value nearby, the middle of the box is as good as any other.
        wish = start + (last - start) / 2 if is_missing else point[j]
        point[j] = min(max(round(wish) if grid.codes.is_whole[j] else wish, start), last)
    return point


def _weighted_median(values: np.ndarray, weights: np.ndarray) -> int:
    order = np.argsort(values, kind="stable")
    total = np.cumsum(weights[order])
    return int(values[order][np.searchsorted(total, total[-1] / 2)])


@dataclass(eq=False)
class Partition:
    """Disjoint boxes that make up a region, each with a status.

    Parameters
    ----------
    nodes : list of Node
        The boxes.
    n_splits : int
        Number of boxes that were split.
    """

    nodes: list[Node]
    n_splits: int

    def volume(self, status: int) -> float:
        """Return the share of the domain in the boxes with a status."""
        return math.fsum(node.volume for node in self.nodes if node.status == status)

    def near(self, status: int) -> float:
        """Return the mass near the data, in rows, of the boxes with a status."""
        return math.fsum(node.near for node in self.nodes if node.status == status)

    def select(self, status: int) -> list[Node]:
        """Return the boxes with a status."""
        return [node for node in self.nodes if node.status == status]


def partition_region(
    search: BranchAndBound,
    region: CellBoxes,
    *,
    max_splits: int,
    deadline: Deadline,
    priority: Callable[[Node], float] | None = None,
) -> Partition:
    """Divide a region into boxes of proven agreement, proven disagreement and unknown ones.

    Parameters
    ----------
    search : BranchAndBound
        Bounds and splits.
    region : CellBoxes
        Disjoint boxes.
    max_splits : int
        Largest number of splits.
    deadline : Deadline
        Time at which splitting ends.
    priority : callable, optional
        Function that returns the urgency of a node; by default the sum of its shares of the
        region's volume and of its mass near the data.

    Returns
    -------
    Partition
        Boxes, except those without volume and rows nearby.
    """
    roots = [search.root(region, i) for i in range(len(region))]
    roots = [node for node in roots if node.volume > 0 or len(node.rows)]
    volume = math.fsum(node.volume for node in roots) or 1.0
    near_mass = math.fsum(node.near for node in roots) or 1.0
    order = priority or (lambda node: node.volume / volume + node.near / near_mass)
    closed_nodes: list[Node] = []
    heap: list[tuple[float, int, Node]] = []
    for number, node in enumerate(roots):
        heapq.heappush(heap, (-order(node), number, node))
    number, n_splits = len(roots), 0
    while heap:
        _, _, node = heapq.heappop(heap)
        if node.status != UNKNOWN:
            closed_nodes.append(node)
            continue
        if n_splits >= max_splits or deadline.is_over():
            closed_nodes.append(node)
            continue
        n_splits += 1
        children = search.split(node)
        if node.is_final:
            search.decide_final(node)
            closed_nodes.append(node)
        for child in children:
            number += 1
            heapq.heappush(heap, (-order(child), number, child))
    return Partition(closed_nodes, n_splits)


def bound_gap(
    search: BranchAndBound, region: CellBoxes, *, max_splits: int, deadline: Deadline
) -> Partition:
    """Divide a region at the boxes whose bounds are farthest from a proof of agreement.

    The bounds of the result hold for the whole region. If the limits allow, its worst boxes contain
    the largest deviation, or the most confident contradiction.

    Parameters
    ----------
    search : BranchAndBound
        Bounds and splits.
    region : CellBoxes
        Disjoint boxes.
    max_splits : int
        Largest number of splits.
    deadline : Deadline
        Time at which splitting ends.

    Returns
    -------
    Partition
        All boxes, the worst first.
    """

    def gap(node: Node) -> float:
        return search.target.gap(node.lower, node.upper)

    roots = [search.root(region, i) for i in range(len(region))]
    heap = [(-gap(node), number, node) for number, node in enumerate(roots)]
    heapq.heapify(heap)
    number, n_splits = len(roots), 0
    while heap and n_splits < max_splits and not deadline.is_over():
        children = search.split(heap[0][2], drop_empty=False)
        if heap[0][2].is_final:
            break
        heapq.heappop(heap)
        n_splits += 1
        for child in children:
            number += 1
            heapq.heappush(heap, (-gap(child), number, child))
    return Partition([node for _, _, node in sorted(heap)], n_splits)
