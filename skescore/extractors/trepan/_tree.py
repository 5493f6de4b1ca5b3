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
from skescore.extractors.trepan._instances import Features, Model, thinned
from skescore.extractors.trepan._tests import Region, Search, Test, put_into_bins


@dataclass(eq=False)
class Node:
    """A node of the tree; a leaf as long as it has no children.

    Parameters
    ----------
    key : uint64
        Its place in the tree, mixed with the seed.
    depth : int
        Tests above it.
    region : Region
        What the tests above it leave.
    rows : ndarray of int
        Training rows that reach it.
    model : Model
        Where its instances come from.
    points, point_labels : ndarray
        Instances drawn here or taken over, and the black box's answers on them.
    n_rows : int
        Training rows that reach it.
    counts : ndarray of shape (n_classes,)
        The black box's answers on rows and instances.
    test : Test or None
        What tells its children apart.
    children : tuple of int
        Their numbers: where the test holds, and where it does not.
    """

    key: np.uint64
    depth: int
    region: Region
    rows: np.ndarray
    model: Model | None
    points: np.ndarray
    point_labels: np.ndarray
    n_rows: int = 0
    counts: np.ndarray = field(default_factory=lambda: np.empty(0))
    test: Test | None = None
    children: tuple[int, ...] = ()

    @property
    def label(self) -> int:
        """The commonest class; the first one on ties."""
        return int(np.argmax(self.counts))

    @property
    def fidelity(self) -> float:
        """Share of rows and instances on which the black box answers the commonest class."""
        return float(self.counts.max() / self.counts.sum())

    @property
    def settled(self) -> bool:
        """Whether nobody would ever split it."""
        return self.n_rows == 0 or self.fidelity == 1.0

    def forget(self) -> None:
        """Let go of what only leaves that may still be split must know."""
        self.rows, self.points, self.model = self.rows[:0], self.points[:0], None
        self.point_labels = self.point_labels[:0]


@dataclass(frozen=True, eq=False)
class _Parting:
    """A test, the nodes that it makes, and the number of points asked about for them."""

    test: Test | None
    nodes: tuple[Node, ...]
    n_asked: int


@dataclass(frozen=True)
class Tree:
    """A grown tree.

    Parameters
    ----------
    nodes : list of Node
        The root first, children after their parents.
    n_splits : int
        How often a node was split.
    """

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


@dataclass(frozen=True)
class Growth:
    """How the tree grows.

    Parameters
    ----------
    search : Search
        Looks for the tests.
    max_nodes, max_leaf_nodes, max_depth : int or None
        Limits of the tree.
    min_sample : int
        Rows and instances wanted at every node.
    purity, confidence : float
        A node is a leaf if its largest class has at least the share `purity` with that confidence.
    significance : float
        Level of the tests that decide about new models.
    """

    search: Search
    max_nodes: int | None
    max_leaf_nodes: int | None
    max_depth: int | None
    min_sample: int
    purity: float
    confidence: float
    significance: float

    def grow(self, extraction: Extraction, seed: int, sharing: Sharing | None = None) -> Tree:
        """Grow a tree.

        Parameters
        ----------
        extraction : Extraction
            The rows, the answers, the black box.
        seed : int
            Seed of the instances.
        sharing : Sharing or None, default=None
            Where trees on the same rows find each other's nodes: what limits a tree decides which
            nodes are split, not how.

        Returns
        -------
        Tree
            The tree, not yet collapsed. The black box was asked once for the root, if it lacks
            instances, and once at most for each split.
        """
        nodes, n_splits = [self._root(extraction, seed, sharing)], 0
        queue: list[tuple[float, int]] = []
        self._offer(queue, nodes, 0)
        while (
            queue
            and (self.max_nodes is None or n_splits < self.max_nodes)
            and (self.max_leaf_nodes is None or n_splits + 1 < self.max_leaf_nodes)
        ):
            node = nodes[heapq.heappop(queue)[1]]
            test, children = self._parted(extraction, node, sharing)
            if test is not None:
                n_splits += 1
                node.test, node.children = test, (len(nodes), len(nodes) + 1)
                nodes.extend(children)
                for number in node.children:
                    self._offer(queue, nodes, number)
            node.forget()
        return Tree(nodes, n_splits)

    def _root(self, extraction: Extraction, seed: int, sharing: Sharing | None) -> Node:
        key = np.uint64(combine(seed, 0))

        def make() -> _Parting:
            root = self._bare_root(extraction, key)
            return _Parting(None, (root,), self._fill(extraction, [root]))

        name = "Trepan's root", int(key), self.min_sample
        return self._shared(extraction, sharing, name, make)[1][0]

    def _parted(
        self, extraction: Extraction, node: Node, sharing: Sharing | None
    ) -> tuple[Test | None, list[Node]]:
        """Find a node's test and make its children; None and nothing if no test is any good."""

        def make() -> _Parting:
            test = self._best_test(extraction, node)
            if test is None:
                return _Parting(None, (), 0)
            children = self._split(extraction.X, node, test)
            n_asked = self._fill(extraction, children)
            for child in children:
                if child.settled:
                    child.forget()
            return _Parting(test, tuple(children), n_asked)

        # The key says the way from the root, and the rest decides what is done along the way.
        name = "Trepan's node", int(node.key), self.min_sample, self.significance, self.search
        return self._shared(extraction, sharing, name, make)

    def _shared(
        self,
        extraction: Extraction,
        sharing: Sharing | None,
        name: Hashable,
        make: Callable[[], _Parting],
    ) -> tuple[Test | None, list[Node]]:
        """Take what others have made, with the same question, or make it."""
        made: _Parting | None = None if sharing is None else sharing.get(name)
        if made is None:
            made = make()
            if sharing is not None:
                sharing.put(name, made)
        elif made.n_asked:
            extraction.oracle.count_again(made.n_asked)
        # The tree forgets things of its nodes, which others may still need.
        return made.test, [replace(node) for node in made.nodes]

    def _bare_root(self, extraction: Extraction, key: np.uint64) -> Node:
        X, domain = extraction.X, extraction.settings["domain"]
        n_categories = {j: len(values) for j, values in extraction.categories.items()}
        features = Features.of(X, np.array(domain.lower), np.array(domain.upper), n_categories)
        rows = np.arange(len(X), dtype=np.int32 if len(X) < 2**31 else np.int64)
        region = Region.everything(X.shape[1], n_categories)
        model = Model(features, X[thinned(rows, key)])
        return Node(key, 0, region, rows, model, X[:0], extraction.answers[:0])

    def _offer(self, queue: list[tuple[float, int]], nodes: list[Node], number: int) -> None:
        """Queue a node up, unless it must stay a leaf."""
        node = nodes[number]
        deep = self.max_depth is not None and node.depth >= self.max_depth
        reach = node.n_rows / nodes[0].n_rows
        if deep or node.settled or self._is_pure(node.counts):
            node.forget()
            return
        heapq.heappush(queue, (-reach * (1 - node.fidelity), number))

    def _is_pure(self, counts: np.ndarray) -> bool:
        """Whether the lower end of Clopper and Pearson's interval reaches the wanted purity."""
        most, n = int(counts.max()), int(counts.sum())
        return bool(betaincinv(most, n - most + 1, 1 - self.confidence) >= self.purity)

    def _best_test(self, extraction: Extraction, node: Node) -> Test | None:
        X = extraction.X
        assert node.model is not None
        n_categories = node.model.features.n_categories
        # One column at a time, so that no copy of the rows is ever held.
        columns = (np.concatenate([X[node.rows, j], node.points[:, j]]) for j in range(X.shape[1]))
        labels = np.concatenate([extraction.answers[node.rows], node.point_labels])
        binned = put_into_bins(columns, labels, len(node.counts), n_categories, len(node.rows))
        taken = sorted({literal.feature for test in node.region.tests for literal in test.literals})
        return self.search.best_test(binned, taken)

    def _split(self, X: np.ndarray, node: Node, test: Test) -> list[Node]:
        """The two sides of a test, with the instances that they take over."""
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
                model = Model(model.features, sample)
                # The instances at hand follow the old model.
                points, point_labels = points[:0], point_labels[:0]
            children.append(Node(key, node.depth + 1, region, rows, model, points, point_labels))
        return children

    def _fill(self, extraction: Extraction, nodes: Sequence[Node]) -> int:
        """Draw the instances that nodes lack, ask about all of them at once, and count.

        Gives the number of instances.
        """
        drawn = []
        for node in nodes:
            assert node.model is not None
            n_wanted = max(0, self.min_sample - len(node.rows) - len(node.points))
            drawn.append(node.model.draw(node.region, node.key, n_wanted))
        points = np.concatenate(drawn)
        labels = extraction.ask(points) if len(points) else extraction.answers[:0]
        n_classes = 0 if extraction.classes is None else len(extraction.classes)
        answered = np.split(labels, np.cumsum([len(new) for new in drawn])[:-1])
        for node, new, answers in zip(nodes, drawn, answered, strict=True):
            node.points = np.concatenate([node.points, new])
            node.point_labels = np.concatenate([node.point_labels, answers])
            node.n_rows = len(node.rows)
            node.counts = np.bincount(extraction.answers[node.rows], minlength=n_classes)
            node.counts += np.bincount(node.point_labels, minlength=n_classes)
        return len(points)
