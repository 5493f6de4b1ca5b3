"""Trepan: a tree of M-of-N tests on rows and on instances that the black box is queried about."""

from __future__ import annotations

import heapq
import warnings
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from scipy.special import betaincinv, chdtrc, kolmogorov, ndtr, ndtri

from skescore import _validation as check
from skescore._deadline import check_deadline
from skescore._random import combine, draw_seed
from skescore.extractors._base import BaseExtractor, Extraction, documented
from skescore.extractors._sharing import Sharing
from skescore.extractors.trepan._tests import MofNSearch, Region, Test, put_into_bins
from skescore.rules import Rule, RuleSet, RuleStatistics
from skescore.rules.importers._sklearn import shortened_paths

# --- the tree, grown best first -------------------------------------------------------------------


# A model takes the features to be independent of each other: kernel density estimates for numbers,
# shares for categories and for numbers with few different values. Under it everything that the
# tests on a path demand can be met exactly, without rejecting anything: a box cuts off parts of
# single features, and of an M-of-N test one draws first which literals hold, then the values.

#: A model holds at most so many rows, and so many kernels per feature.
MOST_KERNELS = 10_000
#: Numbers with at most so many different values are drawn from those values.
MOST_VALUES = 10
#: Three independent streams of random numbers per feature and point.
_PICK, _PLACE, _LITERAL = 0, 1, 2
_STREAMS = 3
#: Far from the streams of all features.
_THINNING = 2**40


@dataclass(frozen=True, eq=False)
class Features:
    """What is known of the features before any model."""

    lower: np.ndarray
    upper: np.ndarray
    values: Mapping[int, np.ndarray]
    n_categories: Mapping[int, int]

    @classmethod
    def of(
        cls, X: np.ndarray, lower: np.ndarray, upper: np.ndarray, n_categories: Mapping[int, int]
    ) -> Features:
        """Look at the training rows."""
        values: dict[int, np.ndarray] = {}
        for j in range(X.shape[1]):
            if j in n_categories:
                values[j] = np.arange(float(n_categories[j]))
            elif len(np.unique(X[: 50 * MOST_VALUES, j])) <= MOST_VALUES:
                found = np.unique(X[:, j])
                # Of few rows all values are few, which says nothing.
                if len(found) <= MOST_VALUES and 2 * len(found) <= len(X):
                    values[j] = found
        return cls(lower, upper, values, n_categories)


def thinned(rows: np.ndarray, key: np.uint64, most: int = MOST_KERNELS) -> np.ndarray:
    """Some of the rows, drawn evenly: one at random from each of `most` equal stretches."""
    if len(rows) <= most:
        return rows
    share = _uniform(combine(key, np.arange(most)), _THINNING)
    return rows[((np.arange(most) + share) * (len(rows) / most)).astype(np.intp)]


def _uniform(keys: np.ndarray, stream: int) -> np.ndarray:
    """One number in [0, 1) per key."""
    return (combine(keys, stream) >> np.uint64(11)) * 2.0**-53


class InstanceModel:
    """Independent distributions of the features, as a sample of the rows suggests them.

    The density of a number is the mean of normal densities around the rows' values, with standard
    deviation ``s / sqrt(n_rows)``, where s is that of the values, cut off at the domain's limits.
    """

    def __init__(self, features: Features, sample: np.ndarray) -> None:
        self.features = features
        self.sample = sample

    @cached_property
    def _widths(self) -> np.ndarray:
        low, high = self.sample.min(axis=0), self.sample.max(axis=0)
        span = np.where(high > low, high - low, 1.0)
        return np.asarray(span * ((self.sample - low) / span).std(axis=0)) / np.sqrt(
            len(self.sample)
        )

    def _limits(self, region: Region, j: int) -> tuple[float, float]:
        """The smallest and largest number of a feature that may be drawn in the region."""
        low, high = float(self.features.lower[j]), float(self.features.upper[j])
        if region.lower[j] >= low:
            low = float(np.nextafter(region.lower[j], np.inf))
        return low, min(high, float(region.upper[j]))

    def _weights(self, region: Region, j: int) -> np.ndarray:
        """Weight of every value or kernel of a feature in the region."""
        features = self.features
        if j in features.values:
            values = features.values[j]
            counts = np.bincount(np.searchsorted(values, self.sample[:, j]), minlength=len(values))
            return counts * self._listed(region, j)
        low, high = self._limits(region, j)
        centres, width = self.sample[:, j], self._widths[j]
        if width == 0:
            return ((centres >= low) & (centres <= high)).astype(float)
        below, above = _turned((low - centres) / width, (high - centres) / width)[:2]
        return np.maximum(ndtr(above) - ndtr(below), 0.0)

    def _listed(self, region: Region, j: int) -> np.ndarray:
        """Which values of a listed feature are left in the region."""
        if j in region.allowed:
            return region.allowed[j][:-1]
        values = self.features.values[j]
        return (values > region.lower[j]) & (values <= region.upper[j])

    def _draw_feature(self, region: Region, j: int, keys: np.ndarray) -> np.ndarray:
        """Draw one number of a feature per key."""
        weights = self._weights(region, j)
        pick = _uniform(keys, _STREAMS * j + _PICK)
        place = _uniform(keys, _STREAMS * j + _PLACE)
        hopeless = not weights.sum() > 0  # the model excludes what the region demands
        if j in self.features.values:
            if hopeless:
                weights = self._listed(region, j).astype(float)
            return self.features.values[j][_picked(weights, pick)]
        low, high = self._limits(region, j)
        if hopeless:
            return np.clip(low + place * (high - low), low, high)
        centres, width = self.sample[_picked(weights, pick), j], self._widths[j]
        if width == 0:
            return centres
        below, above, turned = _turned((low - centres) / width, (high - centres) / width)
        quantile = ndtri(ndtr(below) + place * (ndtr(above) - ndtr(below)))
        return np.clip(centres + width * np.where(turned, -quantile, quantile), low, high)

    def draw(self, region: Region, key: np.uint64, n: int) -> np.ndarray:
        """Draw n instances that satisfy a region, whose tests must not share features.

        The key of the node and the region decide all.
        """
        points = np.empty((n, self.sample.shape[1]))
        keys = combine(key, np.arange(n))
        free = set(range(points.shape[1]))
        for test in region.tests:
            chances = self._chances(region, test)
            needed = np.full(n, test.m)
            tails = at_least(chances)
            for i, literal in enumerate(test.literals):
                j = literal.feature
                free.discard(j)
                # Chance that this literal holds, given that `needed` of those from here on do.
                fewer = np.maximum(needed - 1, 0)
                chance = chances[i] * tails[i + 1, fewer] / tails[i, needed]
                held = _uniform(keys, _STREAMS * j + _LITERAL) < chance
                held |= tails[i + 1, needed] == 0  # certain, whatever rounding made of the chance
                held &= tails[i + 1, fewer] > 0
                needed = np.maximum(needed - held, 0)
                for side, part in ((literal, held), (literal.negated(), ~held)):
                    if part.any():
                        points[part, j] = self._draw_feature(region.within([side]), j, keys[part])
        for j in sorted(free):
            points[:, j] = self._draw_feature(region, j, keys)
        return points

    def _chances(self, region: Region, test: Test) -> np.ndarray:
        """Chance of every literal of a test in the region's box."""
        chances, ignorant = np.empty(len(test.literals)), np.empty(len(test.literals))
        for i, literal in enumerate(test.literals):
            sides = [region.within([side]) for side in (literal, literal.negated())]
            yes, no = (self._weights(side, literal.feature).sum() for side in sides)
            ignorant[i] = self._ignorant_chance(sides, literal.feature)
            chances[i] = yes / (yes + no) if yes + no > 0 else ignorant[i]
        # If the model excludes what the test demands, it cannot say how it comes about.
        return chances if at_least(chances)[0, test.m] > 0 else ignorant

    def _ignorant_chance(self, sides: list[Region], j: int) -> float:
        """Chance of the first of two sides if no row tells: an even one, if both can be."""
        if j not in self.features.values:
            return 0.5
        yes, no = (self._listed(side, j).any() for side in sides)
        return 0.5 if yes and no else float(yes)

    def differs(self, sample: np.ndarray, region: Region, significance: float) -> bool:
        """Return whether rows of a region are distributed otherwise than the model says.

        Every feature is tested for itself, at the level `significance` divided by the number of
        features (Bonferroni): the rows against those of the model's rows that lie outside of the
        region, on the part of the feature that the region leaves, weighted as the region's M-of-N
        tests weight them. Numbers take the Kolmogorov-Smirnov test, listed values the chi-squared
        test.
        """
        rest = self.sample[~region.holds(self.sample)]
        if len(sample) < 2 or len(rest) < 2:
            return False
        level = significance / sample.shape[1]
        shares = {}
        for test in region.tests:
            conditional = given_at_least(self._chances(region, test), test.m)
            for literal, share in zip(test.literals, conditional, strict=True):
                shares[literal.feature] = literal, share
        for j in range(sample.shape[1]):
            values, column = rest[:, j], sample[:, j]
            if j in region.allowed:
                weights = region.allowed[j][values.astype(np.intp)].astype(float)
            else:
                weights = ((values > region.lower[j]) & (values <= region.upper[j])).astype(float)
            if j in shares:
                literal, share = shares[j]
                weights = _reweighted(weights, literal.holds(values), share)
            if j in self.features.values:
                chance = chi_squared(self.features.values[j], column, values, weights)
            else:
                chance = kolmogorov_smirnov(column, values, weights)
            if chance < level:
                return True
        return False


def _turned(below: np.ndarray, above: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Standardised limits, mirrored where they lie in the upper tail: there ndtr rounds to 1."""
    turned = below > 0
    return np.where(turned, -above, below), np.where(turned, -below, above), turned


def _picked(weights: np.ndarray, share: np.ndarray) -> np.ndarray:
    """Indices drawn in proportion to weights, one per share in [0, 1)."""
    cumulated = np.cumsum(weights)
    found = np.searchsorted(cumulated, share * cumulated[-1], side="right")
    # Rounding could point behind the last weight that is not 0.
    return np.minimum(found, np.flatnonzero(weights)[-1])


def at_least(chances: np.ndarray) -> np.ndarray:
    """Chances that at least k of the independent events from i on happen: row i, column k."""
    n = len(chances)
    tails = np.zeros((n + 1, n + 1))
    tails[:, 0] = 1.0
    for i in reversed(range(n)):
        tails[i, 1:] = chances[i] * tails[i + 1, :-1] + (1 - chances[i]) * tails[i + 1, 1:]
    return tails


def given_at_least(chances: np.ndarray, m: int) -> np.ndarray:
    """Chance of each independent event, given that at least m of them happen."""
    whole = at_least(chances)[0, m]
    others = [at_least(np.delete(chances, i))[0, m - 1] for i in range(len(chances))]
    return chances * np.array(others) / whole


def _reweighted(weights: np.ndarray, holds: np.ndarray, share: float) -> np.ndarray:
    """Give those for which a literal holds the share that they have in the region."""
    result = np.zeros_like(weights)
    for part, wanted in ((holds, share), (~holds, 1 - share)):
        total = weights[part].sum()
        if total > 0:
            result[part] = weights[part] * (wanted / total)
    return result


def _size(weights: np.ndarray) -> float:
    """How many equally weighted rows are worth as much (Kish)."""
    squares = float((weights**2).sum())
    return float(weights.sum()) ** 2 / squares if squares > 0 else 0.0


def kolmogorov_smirnov(a: np.ndarray, b: np.ndarray, weights: np.ndarray) -> float:
    """Chance of two samples so different, the second one weighted, if both are of one distribution.

    By the asymptotic distribution.
    """
    n = _size(weights)
    if n == 0 or not len(a):
        return 1.0
    values = np.concatenate([a, b])
    steps = np.concatenate([np.full(len(a), 1 / len(a)), -weights / weights.sum()])
    order = np.argsort(values, kind="stable")
    values, heights = values[order], np.cumsum(steps[order])
    last = np.r_[values[1:] != values[:-1], True]  # of each run of equal values
    distance = float(np.abs(heights[last]).max())
    return float(kolmogorov(np.sqrt(len(a) * n / (len(a) + n)) * distance))


def chi_squared(listed: np.ndarray, a: np.ndarray, b: np.ndarray, weights: np.ndarray) -> float:
    """The same for samples of listed values, which ascend."""
    n = _size(weights)
    if n == 0 or not len(a):
        return 1.0
    first = np.bincount(np.searchsorted(listed, a), minlength=len(listed)).astype(float)
    second = np.bincount(np.searchsorted(listed, b), weights, minlength=len(listed))
    second *= n / second.sum()
    both = first + second
    first, second, both = first[both > 0], second[both > 0], both[both > 0]
    if len(both) < 2:
        return 1.0
    statistic = 0.0
    for counts in (first, second):
        expected = both * (counts.sum() / both.sum())
        statistic += float(((counts - expected) ** 2 / expected).sum())
    return float(chdtrc(len(both) - 1, statistic))


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
            check_deadline()
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


# --- the extractor --------------------------------------------------------------------------------


#: Distances between larger numbers would overflow.
_LARGEST = 1e300


@documented
class TrepanExtractor(BaseExtractor):
    """Rules from a tree of M-of-N tests, with queries to the black box wherever rows are few.

    For classifiers. Choose it where a class depends on how many of several conditions hold, or
    where there are few rows: below the first tests an ordinary tree looks at a handful of rows,
    Trepan at `min_sample` of them, most of which it draws itself and has the black box predict.
    Numbers and categories may be mixed.

    Parameters
    ----------
    estimator : estimator
        The black box: a scikit-learn classifier. An unfitted one is cloned and fitted on (X, y);
        wrap a fitted one in ``FrozenEstimator``, any other model's function in
        :class:`CallableClassifier`.
    max_leaf_nodes : int or None, default=None
        Most leaves, that is rules; at least 2. None: no limit but `max_nodes`.
    max_nodes : int or None, default=15
        Most tests in the tree; None for no limit.
    max_depth : int or None, default=None
        Most tests on the way to a leaf; None for no limit.
    min_sample : int, default=1000
        Rows wanted at every node, before its class or its test is chosen: where training rows are
        fewer, instances are drawn. 0: nothing is drawn, and the black box is queried once.
    min_samples_leaf : int, default=1
        Least training rows on either side of a test. 0 allows leaves that only drawn instances
        reach.
    max_literals : int, default=4
        Most conditions that one test may count, the N of M-of-N; 1 for ordinary tests.
    beam_width : int, default=2
        M-of-N tests that the search keeps in each round; 1 is hill climbing.
    purity : float, default=0.99
        A node is not split any more once a class has at least this share of it ...
    confidence : float, default=0.95
        ... with this confidence.
    significance : float, default=0.05
        Level of the tests by which M-of-N tests are extended and new models are made; see Notes.
    min_gain : float, default=0.0
        Information (bits per instance) that a test must gain, more than this.
    simplify : bool, default=True
        True: an ordered list, read from the top, without the conditions that the rules before make
        superfluous. False: one rule per leaf, each of which stands by itself.
    {common}
    random_state : int, RandomState instance or None, default=None
        Seed of the instances. Pass an int for the same rules on every run.

    Attributes
    ----------
    rules_ : RuleSet
        The rules. Their ``n_rows`` count training rows, their ``class_counts`` the black box's
        predictions on those and on the instances drawn.
    n_rules_ : int
        Their number.
    n_splits_ : int
        Nodes that were split, before leaves of one class were joined. The black box is queried once
        about the rows, once for the root and once for each of these at most.
    coverage_ : float
        Share of the training rows that some rule covers: 1.
    completeness_ : float
        Share of the domain's volume that some rule covers: 1.
    {fitted}

    Notes
    -----
    The tree grows best first: always the leaf with the largest ``reach * (1 - fidelity)``, where
    reach is the share of the training rows that come there and fidelity the share of the leaf's
    majority class. In the end, siblings that conclude the same class are joined.

    *Instances.* A node with fewer than `min_sample` rows draws the rest from a model that takes
    features to be independent: for numbers the mean of normal densities around the rows, with
    standard deviation ``s / sqrt(m)`` for m rows of standard deviation s, cut off at the limits of
    the training rows; for categories, and for numbers with 10 different values at most, the rows'
    frequencies. What is drawn satisfies all tests on the path; no draw is ever rejected. A node
    makes a model of its own, from its own rows, where they differ significantly from those of the
    model above (Kolmogorov-Smirnov or chi-squared test per feature, Bonferroni's correction);
    otherwise it goes on with that model, and with its instances. Models use 10 000 rows at most.

    *Tests.* The best test of one feature by information gain is the seed: a cut half-way between
    neighbouring values where the class changes (255 of them at most), or a set of categories. The
    beam search extends m-of-n to m-of-(n+1) or (m+1)-of-(n+1) by a further condition. An extension
    must gain significantly more: ``2 N ln(2) (gain' - gain)`` must exceed the chi-squared quantile
    with one degree of freedom per class but one, for N instances, at the level `significance`
    divided by the number of ways to extend. No feature is used twice in one such test, or in two
    such tests on one path, which keeps rules readable. The false side of "at least m of n hold" is
    written as "at least n - m + 1 of the n opposites hold".

    Unlike the published algorithm, tests without training rows on one side are left out
    (`min_samples_leaf`): they would spend rules on what never occurs.

    *Beside PSyKE.* Its Trepan asks nothing of instances and counts no conditions: that is
    ``min_sample=0, max_literals=1, max_depth=3``, which has the fidelity of PSyKE's on held-out
    rows in six of six splits of one-hot columns of iris (3 nearest neighbours; mean 0.971, ours by
    default 0.970, from 0.89 to 1 by split and seed). Instances cost fidelity where features depend
    on each other: pass a column of categories rather than its one-hot columns, which are drawn as
    if a value could be two at once.

    References
    ----------
    M. Craven, J. Shavlik: Extracting tree-structured representations of trained networks. Advances
    in Neural Information Processing Systems 8, 1996.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> from skescore.extractors import TrepanExtractor
    >>> data = load_iris(as_frame=True)
    >>> labels = data.target_names[data.target]
    >>> extractor = TrepanExtractor(KNeighborsClassifier(9), max_leaf_nodes=3, random_state=0)
    >>> print(extractor.fit(data.data, labels).rules_)
    1. IF petal length (cm) ≤ 2.466 THEN setosa   [50 rows, 100 % pure]
    2. ELSE IF at least 1 of (petal length (cm) > 5.077; petal width (cm) > 1.993) THEN virginica
       [44 rows, 99.1 % pure]
    3. ELSE versicolor   [56 rows, 94 % pure]
    """

    tasks: ClassVar[tuple[str, ...]] = ("classification",)
    takes_categories: ClassVar[bool] = True

    def __init__(
        self,
        estimator: Any,
        *,
        max_leaf_nodes: int | None = None,
        max_nodes: int | None = 15,
        max_depth: int | None = None,
        min_sample: int = 1000,
        min_samples_leaf: int = 1,
        max_literals: int = 4,
        beam_width: int = 2,
        purity: float = 0.99,
        confidence: float = 0.95,
        significance: float = 0.05,
        min_gain: float = 0.0,
        simplify: bool = True,
        features: Any = None,
        prune: str | None = None,
        uncovered: str = "default",
        abstain_label: Any = None,
        batch_size: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.max_leaf_nodes = max_leaf_nodes
        self.max_nodes = max_nodes
        self.max_depth = max_depth
        self.min_sample = min_sample
        self.min_samples_leaf = min_samples_leaf
        self.max_literals = max_literals
        self.beam_width = beam_width
        self.purity = purity
        self.confidence = confidence
        self.significance = significance
        self.min_gain = min_gain
        self.simplify = simplify
        self.features = features
        self.prune = prune
        self.uncovered = uncovered
        self.abstain_label = abstain_label
        self.batch_size = batch_size
        self.random_state = random_state

    def _check_parameters(self) -> None:
        check.check_integer("max_leaf_nodes", self.max_leaf_nodes, 2, optional=True)
        check.check_integer("max_nodes", self.max_nodes, 1, optional=True)
        check.check_integer("max_depth", self.max_depth, 1, optional=True)
        check.check_integer("min_sample", self.min_sample, 0)
        check.check_integer("min_samples_leaf", self.min_samples_leaf, 0)
        check.check_integer("max_literals", self.max_literals, 1)
        check.check_integer("beam_width", self.beam_width, 1)
        check.check_number("purity", self.purity, 0.0, 1.0)
        check.check_number("confidence", self.confidence, 0.0, 1.0)
        check.check_number("significance", self.significance, 0.0, 1.0)
        check.check_number("min_gain", self.min_gain, 0.0)
        check.check_flag("simplify", self.simplify)

    def _extract(self, extraction: Extraction) -> RuleSet:
        extraction.check_magnitude(_LARGEST, "distances between them would overflow")
        n_classes = len(np.unique(extraction.predictions))
        if self.max_leaf_nodes is not None and self.max_leaf_nodes < n_classes:
            warnings.warn(
                f"max_leaf_nodes={self.max_leaf_nodes} is less than the {n_classes} classes that "
                "the black box predicts, so no rule can conclude some of them.",
                UserWarning,
                stacklevel=3,
            )
        sharing = None
        if self.random_state is not None:  # a seed of None is never used again
            sharing = Sharing.of(extraction)
        tree = TreeGrower(
            extraction=extraction,
            search=MofNSearch(
                self.max_literals,
                self.beam_width,
                self.significance,
                self.min_gain,
                self.min_samples_leaf,
            ),
            max_nodes=self.max_nodes,
            max_leaf_nodes=self.max_leaf_nodes,
            max_depth=self.max_depth,
            min_sample=self.min_sample,
            purity=self.purity,
            confidence=self.confidence,
            significance=self.significance,
            seed=draw_seed(self.random_state),
            sharing=sharing,
        ).grow()
        self.n_splits_ = tree.n_splits
        tree.collapse()
        return self._read(tree, extraction)

    def _read(self, tree: Tree, extraction: Extraction) -> RuleSet:
        """Read the leaves as rules."""
        classes, categories = extraction.settings["classes"], extraction.categories
        everything = Region.everything(
            extraction.X.shape[1], {j: len(values) for j, values in categories.items()}
        )
        paths = shortened_paths(tree.paths()) if self.simplify else tree.paths()
        rules = []
        for number, path in paths.items():
            tests = []
            for above, holds in path:
                test = tree.nodes[above].test
                assert test is not None
                tests.append(test if holds else test.negated())
            leaf = tree.nodes[number]
            statistics = RuleStatistics(leaf.n_rows, tuple(leaf.counts.tolist()))
            conditions = everything.after(tests).conditions(categories)
            rules.append(Rule(tuple(conditions), classes[leaf.label], statistics))
        return RuleSet(
            rules, ordered=self.simplify, disjoint=not self.simplify, **extraction.settings
        )
