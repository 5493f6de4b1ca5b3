"""Trees grown from histograms, which are sums per node, feature and bin."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import count
from types import SimpleNamespace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

#: Integers, whose sums do not depend on the order of addition.
Sums: TypeAlias = NDArray[np.int64]
#: Path from the root to a node: per split its feature, last bin on the left, and True for left.
Path: TypeAlias = tuple[tuple[int, int, bool], ...]
#: Returns the histograms of nodes: the sums of each bin, of shape (n_bins, n_sums) per feature. The
#: arguments are the paths of the nodes and their total sums, which are None for the root.
FetchHistograms: TypeAlias = Callable[[Sequence[Path], Sequence[Sums] | None], list[list[Sums]]]

#: Number of nodes whose histograms are requested together.
_BATCH_SIZE = 256


@dataclass(frozen=True)
class Growth:
    """Parameters of a tree.

    In classification, there is one sum of weights per class. In regression, there is a sum of the
    weights and a sum of weights times labels. The value of a sum is its product with a unit.

    Parameters
    ----------
    task : {"classification", "regression"}
        The task.
    criterion : {"gini", "entropy", "log_loss", "squared_error"}
        Impurity measure.
    max_leaf_nodes, max_depth : int or None
        Limits of the tree; with `max_leaf_nodes` it grows best first.
    min_weight : float
        Smallest weight of a leaf; 0 for no limit.
    unit, label_unit : float, default=1.0
        Value of one unit in a sum of weights, and in a sum of weights times labels.

    Notes
    -----
    The best split of a node has the smallest impurity, as computed by scikit-learn. Of equally good
    splits, the one with the first feature and then the lowest threshold is used; thresholds are
    midway between two occupied bins. Of equally good nodes, the oldest is split first. In
    regression, a node is split as long as the means of some bins differ.
    """

    task: str
    criterion: str
    max_leaf_nodes: int | None
    max_depth: int | None
    min_weight: float
    unit: float = 1.0
    label_unit: float = 1.0

    def weight(self, sums: Sums) -> NDArray[np.float64]:
        """Return the weight of the rows from sums along the last axis."""
        weight_sum = sums.sum(axis=-1) if self.task == "classification" else sums[..., 0]
        return np.asarray(weight_sum * self.unit)

    def impurity(self, sums: Sums) -> NDArray[np.float64]:
        """Return the impurity in classification from sums along the last axis."""
        counts, weight = sums * self.unit, self.weight(sums)
        if self.criterion == "gini":
            return np.asarray(1.0 - (counts * counts).sum(axis=-1) / (weight * weight))
        shares = counts / weight[..., None]
        logs = np.log(np.where(shares > 0, shares, 1.0)) / math.log(2.0)
        return np.asarray(-(shares * logs).sum(axis=-1))

    def is_final(self, sums: Sums, depth: int) -> bool:
        """Return whether a node must be a leaf, regardless of its bins."""
        if self.max_depth is not None and depth >= self.max_depth:
            return True
        if float(self.weight(sums)) < 2 * self.min_weight:
            return True
        return self.task == "classification" and int(sums.max()) == int(sums.sum())

    def best_split(self, bins: Sequence[Sums], total: Sums) -> _HistogramSplit | None:
        """Return the best split of a node; None if there is none."""
        if self.task == "regression" and not _means_differ(bins, total):
            return None
        best: _HistogramSplit | None = None
        for feature, sums in enumerate(bins):
            occupied_bins = np.flatnonzero(self.weight(sums) > 0)
            if len(occupied_bins) < 2:
                continue
            left = np.cumsum(sums[occupied_bins[:-1]], axis=0)
            right = total - left
            weights = self.weight(left), self.weight(right)
            allowed = np.flatnonzero(
                (weights[0] >= self.min_weight) & (weights[1] >= self.min_weight)
            )
            if not len(allowed):
                continue
            merit = self._score_splits(left[allowed], right[allowed], total)
            best_row = int(np.argmax(merit))
            if best is None or merit[best_row] > best.merit:
                at = int(allowed[best_row])
                cut = (int(occupied_bins[at]) + int(occupied_bins[at + 1])) // 2
                best = _HistogramSplit(feature, cut, left[at], right[at], float(merit[best_row]))
        return best

    def _score_splits(self, left: Sums, right: Sums, total: Sums) -> NDArray[np.float64]:
        first, second = self.weight(left), self.weight(right)
        if self.task == "classification":
            return -second * self.impurity(right) - first * self.impurity(left)
        # Deviation of the left sum from its value if both means were equal.
        mean = float(total[1]) / float(total[0])
        deviation = left[:, 1] - left[:, 0] * mean
        return np.asarray(deviation * deviation * (1 / first + 1 / second))

    def improvement(self, split: _HistogramSplit, total: Sums, all_weight: float) -> float:
        """Return how much a split reduces the impurity of the tree."""
        if self.task == "regression":
            return split.merit
        weight = float(self.weight(total))
        first, second = (float(self.weight(side)) for side in (split.left, split.right))
        return (weight / all_weight) * (
            float(self.impurity(total))
            - second / weight * float(self.impurity(split.right))
            - first / weight * float(self.impurity(split.left))
        )


@dataclass(frozen=True)
class _HistogramSplit:
    feature: int
    cut: int
    left: Sums
    right: Sums
    merit: float


def _means_differ(bins: Sequence[Sums], total: Sums) -> bool:
    """Return whether the exact mean of some bin differs from the mean of the node."""
    weight, sum_of_all = int(total[0]), int(total[1])
    return any(int(part[1]) * weight != sum_of_all * int(part[0]) for sums in bins for part in sums)


@dataclass(eq=False)
class _TreeNode:
    path: Path
    total: Sums
    bins: list[Sums] | None = None
    split: _HistogramSplit | None = None
    improvement: float = 0.0
    children: tuple[_TreeNode, _TreeNode] | None = None
    number: int = field(default=-1)


def grow(fetch: FetchHistograms, growth: Growth) -> SimpleNamespace:
    """Grow a tree level by level, or best first if its leaves are limited.

    Parameters
    ----------
    fetch : callable
        Returns the histograms of nodes. It is called for many nodes at a time, but only for the
        lighter of two siblings; the histograms of the other one are differences.
    growth : Growth
        Parameters of the tree.

    Returns
    -------
    namespace
        Object with ``tree_``, ``classes_`` and ``criterion`` like a scikit-learn tree that was
        fitted on bin numbers, but without impurities. In regression, leaves have values in the
        units of the labels.
    """
    bins = fetch([()], None)[0]
    root = _TreeNode((), bins[0].sum(axis=0), bins)
    grower = _Grower(fetch, growth, root)
    if growth.max_leaf_nodes is None:
        grower.grow_by_level()
    else:
        grower.grow_best_first(growth.max_leaf_nodes - 1)
    return _as_scikit_learn(grower.nodes(), growth, len(bins))


class _Grower:
    def __init__(self, fetch: FetchHistograms, growth: Growth, root: _TreeNode) -> None:
        self._fetch, self._growth, self._root = fetch, growth, root
        self._total_weight = float(growth.weight(root.total))
        self._find_split(root)

    def _find_split(self, node: _TreeNode) -> None:
        growth = self._growth
        if node.bins is None or growth.is_final(node.total, len(node.path)):
            return
        node.split = growth.best_split(node.bins, node.total)
        if node.split is not None:
            node.improvement = growth.improvement(node.split, node.total, self._total_weight)

    def _split_nodes(self, nodes: Sequence[_TreeNode], *, last: bool = False) -> None:
        """Create the children of nodes; find the splits of the children unless they are `last`."""
        parents = []
        for node in nodes:
            split = node.split
            assert split is not None
            step = (split.feature, split.cut)
            left = _TreeNode((*node.path, (*step, True)), split.left)
            right = _TreeNode((*node.path, (*step, False)), split.right)
            node.children = left, right
            depth = len(left.path)
            if not (last or all(self._growth.is_final(n.total, depth) for n in (left, right))):
                parents.append(node)
        for begin in range(0, len(parents), _BATCH_SIZE):
            batch = parents[begin : begin + _BATCH_SIZE]
            lighter = [
                min(_children(n), key=lambda n: float(self._growth.weight(n.total))) for n in batch
            ]
            histograms = self._fetch([n.path for n in lighter], [n.total for n in lighter])
            for node, child, bins in zip(batch, lighter, histograms, strict=True):
                assert node.bins is not None
                child.bins = bins
                sibling = next(n for n in _children(node) if n is not child)
                sibling.bins = [a - b for a, b in zip(node.bins, bins, strict=True)]
                node.bins = None
                for new_child in (child, sibling):
                    self._find_split(new_child)

    def grow_by_level(self) -> None:
        level = [self._root]
        while level := [node for node in level if node.split is not None]:
            self._split_nodes(level)
            level = [child for node in level for child in _children(node)]
        for number, node in enumerate(self.nodes()):
            node.number = number

    def grow_best_first(self, n_splits: int) -> None:
        numbers, push_numbers = count(), count()
        self._root.number = next(numbers)
        frontier: list[tuple[float, int, _TreeNode]] = []

        def add(node: _TreeNode) -> None:
            if node.split is not None:
                heapq.heappush(frontier, (-node.improvement, next(push_numbers), node))

        add(self._root)
        while n_splits > 0 and frontier:
            if frontier[0][2].children is None:
                # Nodes that will probably be split next are divided together.
                near = [entry[2] for entry in heapq.nsmallest(n_splits, frontier)]
                self._split_nodes([n for n in near if n.children is None], last=n_splits == 1)
            node = heapq.heappop(frontier)[2]
            n_splits -= 1
            for child in _children(node):
                child.number = next(numbers)
                add(child)

    def nodes(self) -> list[_TreeNode]:
        """Return the nodes of the tree in the order of their numbers, or from left to right."""
        tree_nodes, waiting = [], [self._root]
        while waiting:
            node = waiting.pop()
            tree_nodes.append(node)
            if node.children is not None and (node.children[0].number >= 0 or node.number < 0):
                waiting += [node.children[1], node.children[0]]
        return sorted(tree_nodes, key=lambda node: node.number)


def _children(node: _TreeNode) -> tuple[_TreeNode, _TreeNode]:
    assert node.children is not None
    return node.children


def _as_scikit_learn(
    nodes: Sequence[_TreeNode], growth: Growth, n_features: int
) -> SimpleNamespace:
    """Return a model with the attributes of a tree in scikit-learn."""
    number_of = {id(node): number for number, node in enumerate(nodes)}
    left, right = np.full((2, len(nodes)), -1)
    feature, threshold = np.full(len(nodes), -2), np.full(len(nodes), -2.0)
    for number, node in enumerate(nodes):
        if node.children is not None and id(node.children[0]) in number_of:
            assert node.split is not None
            left[number], right[number] = (number_of[id(child)] for child in node.children)
            feature[number], threshold[number] = node.split.feature, node.split.cut + 0.5
    totals = np.array([node.total for node in nodes])
    weight = growth.weight(totals)
    classification = growth.task == "classification"
    if classification:
        value = totals * growth.unit
    else:
        value = (totals[:, 1] * growth.label_unit / weight)[:, None]
    tree = SimpleNamespace(
        n_outputs=1,
        n_features=n_features,
        node_count=len(nodes),
        children_left=left,
        children_right=right,
        feature=feature,
        threshold=threshold,
        missing_go_to_left=np.zeros(len(nodes), dtype=bool),
        value=value[:, None, :],
        n_node_samples=np.rint(weight).astype(np.int64),
        weighted_n_node_samples=weight,
        max_n_classes=totals.shape[1],
        impurity=np.zeros(len(nodes)),
    )
    model: dict[str, Any] = {"tree_": tree, "criterion": growth.criterion}
    if classification:
        model["classes_"] = np.arange(totals.shape[1])
    return SimpleNamespace(**model)
