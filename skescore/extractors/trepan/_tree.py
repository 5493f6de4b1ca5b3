"""Trepan's tree, grown best first on rows and on instances drawn along the way."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from scipy.special import betaincinv

from skescore._random import combine
from skescore.extractors._base import Extraction
from skescore.extractors._sharing import Sharing
from skescore.extractors.trepan._instances import Features, InstanceModel, thinned
from skescore.extractors.trepan._tests import MofNSearch, Region, Test, put_into_bins


@dataclass(eq=False)
class Node:
    """A node of the tree; a leaf as long as it has no children."""

    key: np.uint64
    depth: int
    region: Region
    rows: np.ndarray
    model: InstanceModel | None
    points: np.ndarray
    point_labels: np.ndarray
    n_rows: int = 0
    counts: np.ndarray = field(default_factory=lambda: np.empty(0))
    test: Test | None = None
    children: tuple[int, ...] = ()

    @property
    def label(self) -> int:
        """The majority class; the first one on ties."""
        return int(np.argmax(self.counts))

    @property
    def fidelity(self) -> float:
        """Share of rows and instances for which the black box predicts the majority class."""
        return float(self.counts.max() / self.counts.sum())

    @property
    def settled(self) -> bool:
        """Whether nobody would ever split it."""
        return self.n_rows == 0 or self.fidelity == 1.0

    def drop_data(self) -> None:
        """Free what only leaves that may still be split need."""
        self.rows, self.points, self.model = self.rows[:0], self.points[:0], None
        self.point_labels = self.point_labels[:0]


@dataclass(frozen=True, eq=False)
class _Split:
    """A test, the nodes that it makes, and the number of points queried for them."""

    test: Test | None
    nodes: tuple[Node, ...]
    n_queries: int


@dataclass(frozen=True)
class Tree:
    """A grown tree: its nodes, the root first, children after their parents."""

    nodes: list[Node]
    n_splits: int

    def collapse(self) -> None:
        """Make leaves of the nodes behind which all leaves conclude the same class."""
        for node in reversed(self.nodes):
            if not node.children:
                continue
            first, second = (self.nodes[child] for child in node.children)
            if not first.children and not second.children and first.label == second.label:
                node.children, node.test = (), None
                # What was drawn for the children was seen here as well.
                node.counts = first.counts + second.counts

    def paths(self) -> dict[int, list[tuple[int, bool]]]:
        """The way to every leaf: the numbers of the nodes above, and whether their tests hold.

        Of two subtrees the one with fewer leaves comes first: so an ordered list can leave out
        most conditions.
        """
        n_leaves = [1] * len(self.nodes)
        for number in reversed(range(len(self.nodes))):
            children = self.nodes[number].children
            if children:
                n_leaves[number] = sum(n_leaves[child] for child in children)
        leaves = {}
        waiting: list[tuple[int, list[tuple[int, bool]]]] = [(0, [])]
        while waiting:
            number, path = waiting.pop()
            children = self.nodes[number].children
            if not children:
                leaves[number] = path
                continue
            sides = sorted(
                zip(children, (True, False), strict=True), key=lambda side: n_leaves[side[0]]
            )
            waiting.extend((child, [*path, (number, holds)]) for child, holds in sides[::-1])
        return leaves


@dataclass(frozen=True, eq=False, kw_only=True)
class TreeGrower:
    """Grows a tree best first.

    The black box is queried once for the root, if it lacks instances, and once at most for each
    split. Trees on the same rows find each other's nodes in `sharing`: what limits a tree decides
    which nodes are split, not how. The other fields are parameters of :class:`TrepanExtractor`.
    """

    extraction: Extraction
    search: MofNSearch
    max_nodes: int | None
    max_leaf_nodes: int | None
    max_depth: int | None
    min_sample: int
    purity: float
    confidence: float
    significance: float
    seed: int
    sharing: Sharing | None

    def grow(self) -> Tree:
        """Grow a tree, which is not yet collapsed."""
        nodes, n_splits = [self._root()], 0
        queue: list[tuple[float, int]] = []
        self._offer(queue, nodes, 0)
        while (
            queue
            and (self.max_nodes is None or n_splits < self.max_nodes)
            and (self.max_leaf_nodes is None or n_splits + 1 < self.max_leaf_nodes)
        ):
            node = nodes[heapq.heappop(queue)[1]]
            test, children = self._split(node)
            if test is not None:
                n_splits += 1
                node.test, node.children = test, (len(nodes), len(nodes) + 1)
                nodes.extend(children)
                for number in node.children:
                    self._offer(queue, nodes, number)
            node.drop_data()
        return Tree(nodes, n_splits)

    def _root(self) -> Node:
        key = np.uint64(combine(self.seed, 0))

        def make() -> _Split:
            X, domain = self.extraction.X, self.extraction.settings["domain"]
            n_categories = {j: len(v) for j, v in self.extraction.categories.items()}
            features = Features.of(X, np.array(domain.lower), np.array(domain.upper), n_categories)
            rows = np.arange(len(X), dtype=np.int32 if len(X) < 2**31 else np.int64)
            region = Region.everything(X.shape[1], n_categories)
            model = InstanceModel(features, X[thinned(rows, key)])
            root = Node(key, 0, region, rows, model, X[:0], self.extraction.predictions[:0])
            return _Split(None, (root,), self._fill([root]))

        return self._shared(("Trepan's root", int(key), self.min_sample), make)[1][0]

    def _split(self, node: Node) -> tuple[Test | None, list[Node]]:
        """Find a node's test and make its children; None and nothing if no test is any good."""

        def make() -> _Split:
            test = self._best_test(node)
            if test is None:
                return _Split(None, (), 0)
            children = self._children(node, test)
            n_queries = self._fill(children)
            for child in children:
                if child.settled:
                    child.drop_data()
            return _Split(test, tuple(children), n_queries)

        # The key says the way from the root, and the rest decides what is done along the way.
        name = "Trepan's node", int(node.key), self.min_sample, self.significance, self.search
        return self._shared(name, make)

    def _shared(self, name: Hashable, make: Callable[[], _Split]) -> tuple[Test | None, list[Node]]:
        """Take what others have made under the same name, or make it."""
        made: _Split | None = None if self.sharing is None else self.sharing.get(name)
        if made is None:
            made = make()
            if self.sharing is not None:
                self.sharing.put(name, made)
        elif made.n_queries:
            self.extraction.oracle.count_again(made.n_queries)
        # The tree drops data of its nodes, which others may still need.
        return made.test, [replace(node) for node in made.nodes]

    def _offer(self, queue: list[tuple[float, int]], nodes: list[Node], number: int) -> None:
        """Queue a node up by its priority, unless it must stay a leaf."""
        node = nodes[number]
        deep = self.max_depth is not None and node.depth >= self.max_depth
        reach = node.n_rows / nodes[0].n_rows
        if deep or node.settled or self._is_pure(node.counts):
            node.drop_data()
            return
        heapq.heappush(queue, (-reach * (1 - node.fidelity), number))

    def _is_pure(self, counts: np.ndarray) -> bool:
        """Whether the lower end of Clopper and Pearson's interval reaches the wanted purity."""
        most, n = int(counts.max()), int(counts.sum())
        return bool(betaincinv(most, n - most + 1, 1 - self.confidence) >= self.purity)

    def _best_test(self, node: Node) -> Test | None:
        X = self.extraction.X
        assert node.model is not None
        n_categories = node.model.features.n_categories
        # One column at a time, so that no copy of the rows is ever held.
        columns = (np.concatenate([X[node.rows, j], node.points[:, j]]) for j in range(X.shape[1]))
        labels = np.concatenate([self.extraction.predictions[node.rows], node.point_labels])
        binned = put_into_bins(columns, labels, len(node.counts), n_categories, len(node.rows))
        taken = sorted({literal.feature for test in node.region.tests for literal in test.literals})
        return self.search.best_test(binned, taken)

    def _children(self, node: Node, test: Test) -> list[Node]:
        """The two sides of a test, with the instances that they take over."""
        X = self.extraction.X
        in_rows, in_points = test.holds(X, node.rows), test.holds(node.points)
        children = []
        for side, outcome in enumerate((test, test.negated())):
            of_rows, of_points = (~in_rows, ~in_points) if side else (in_rows, in_points)
            key = np.uint64(combine(node.key, side + 1))
            region, rows = node.region.after([outcome]), node.rows[of_rows]
            points, point_labels = node.points[of_points], node.point_labels[of_points]
            model, sample = node.model, X[thinned(rows, key)]
            assert model is not None
            if model.differs(sample, region, self.significance):
                model = InstanceModel(model.features, sample)
                # The instances at hand follow the old model.
                points, point_labels = points[:0], point_labels[:0]
            children.append(Node(key, node.depth + 1, region, rows, model, points, point_labels))
        return children

    def _fill(self, nodes: Sequence[Node]) -> int:
        """Draw the instances that nodes lack, query all of them at once, and count.

        Returns the number of instances.
        """
        drawn = []
        for node in nodes:
            assert node.model is not None
            n_wanted = max(0, self.min_sample - len(node.rows) - len(node.points))
            drawn.append(node.model.draw(node.region, node.key, n_wanted))
        points, y_pred = np.concatenate(drawn), self.extraction.predictions
        labels = self.extraction.query(points) if len(points) else y_pred[:0]
        n_classes = 0 if self.extraction.classes is None else len(self.extraction.classes)
        of_node = np.split(labels, np.cumsum([len(new) for new in drawn])[:-1])
        for node, new, new_labels in zip(nodes, drawn, of_node, strict=True):
            node.points = np.concatenate([node.points, new])
            node.point_labels = np.concatenate([node.point_labels, new_labels])
            node.n_rows = len(node.rows)
            node.counts = np.bincount(y_pred[node.rows], minlength=n_classes)
            node.counts += np.bincount(node.point_labels, minlength=n_classes)
        return len(points)
