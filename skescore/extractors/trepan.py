"""Trepan: a tree of M-of-N tests on rows and on instances that the black box is queried about."""

from __future__ import annotations

import heapq
import math
import warnings
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from scipy.special import betaincinv, chdtrc, chdtri, kolmogorov, ndtr, ndtri

from skescore import _validation as check
from skescore._deadline import check_deadline
from skescore._random import combine, draw_seed
from skescore.extractors._base import BaseExtractor, Extraction, documented
from skescore.extractors._sharing import Sharing
from skescore.rules import AtLeast, Condition, Interval, OneOf, Rule, RuleSet, RuleStatistics
from skescore.rules.importers._sklearn import shortened_paths

__all__ = ["TrepanExtractor"]


# --- tests of nodes, what is left of the domain behind them, and the search for the best ----------

# A test holds where at least m of n literals do. Along a path the tests that are conjunctions
# narrow one box; the others stay as they are. Both outcomes of every test can be written so, since
# "not at least m of n hold" means "at least n - m + 1 of the n opposites hold".

#: Bins per feature; cuts beyond them are thinned evenly.
MOST_BINS = 256
#: Values that are looked at to find cuts; of more instances only so many.
_LOOKED_AT = 10_000
#: Gains are compared to so many decimals, lest rounding errors decide between equal tests.
_DECIMALS = 12


@dataclass(frozen=True, slots=True)
class Literal:
    """A condition on one feature: a number is at most `cut`, or a category one of `codes`.

    `codes` is empty for numbers; `opposite` negates the condition.
    """

    feature: int
    cut: float = 0.0
    codes: tuple[int, ...] = ()
    opposite: bool = False

    def holds(self, values: np.ndarray) -> np.ndarray:
        """Return for every value of the feature whether the literal holds."""
        inside = np.isin(values, self.codes) if self.codes else values <= self.cut
        return ~inside if self.opposite else inside

    def negated(self) -> Literal:
        """The opposite condition."""
        return replace(self, opposite=not self.opposite)


@dataclass(frozen=True, slots=True)
class Test:
    """At least `m` of the literals hold; no two of them are on the same feature."""

    m: int
    literals: tuple[Literal, ...]

    def holds(self, X: np.ndarray, rows: np.ndarray | None = None) -> np.ndarray:
        """Return for every row (of the given ones) whether the test holds."""
        n_holding: Any = 0
        for literal in self.literals:
            column = X[:, literal.feature]
            n_holding = n_holding + literal.holds(column if rows is None else column[rows]).astype(
                np.int32
            )
        return np.asarray(n_holding >= self.m)

    def negated(self) -> Test:
        """The test that holds where this one does not."""
        opposites = tuple(literal.negated() for literal in self.literals)
        return Test(len(self.literals) - self.m + 1, opposites)


@dataclass(frozen=True, eq=False)
class Region:
    """What the tests on a path leave: a box, and tests that no box can express."""

    lower: np.ndarray
    upper: np.ndarray
    allowed: Mapping[int, np.ndarray]
    tests: tuple[Test, ...] = ()

    @classmethod
    def everything(cls, n_features: int, n_categories: Mapping[int, int]) -> Region:
        """The region before any test."""
        free = np.full(n_features, np.inf)
        return cls(-free, free, {j: np.ones(n + 1, bool) for j, n in n_categories.items()})

    def within(self, literals: Iterable[Literal]) -> Region:
        """The part of the box in which all the literals hold."""
        lower, upper, allowed = self.lower.copy(), self.upper.copy(), dict(self.allowed)
        for literal in literals:
            j = literal.feature
            if literal.codes:
                allowed[j] = allowed[j] & _mask(literal, len(allowed[j]))
            elif literal.opposite:
                lower[j] = max(lower[j], literal.cut)
            else:
                upper[j] = min(upper[j], literal.cut)
        return Region(lower, upper, allowed, self.tests)

    def after(self, tests: Iterable[Test]) -> Region:
        """The part in which further tests hold."""
        return replace(self, tests=(*self.tests, *tests)).reduced()

    def reduced(self) -> Region:
        """The same region with as few literals as possible in its tests."""
        region, tests = self, list(self.tests)
        settled = False
        while not settled:
            settled = True
            open_tests: list[Test] = []
            for test in tests:
                decisions = [region._decided(literal) for literal in test.literals]
                left = tuple(t for t, d in zip(test.literals, decisions, strict=True) if d is None)
                m = test.m - sum(d is True for d in decisions)
                if m >= 1 and m == len(left):  # a conjunction goes into the box
                    region = region.within(left)
                    settled = False
                elif m >= 1:
                    open_tests.append(Test(m, left))
            tests = open_tests
        return replace(region, tests=tuple(tests))

    def _decided(self, literal: Literal) -> bool | None:
        """Whether the literal holds everywhere (True) or nowhere (False) in the box."""
        j = literal.feature
        if literal.codes:
            left = _mask(literal, len(self.allowed[j]))[self.allowed[j]]
            return True if left.all() else None if left.any() else False
        if self.upper[j] <= literal.cut:
            return not literal.opposite
        return literal.opposite if self.lower[j] >= literal.cut else None

    def holds(self, X: np.ndarray) -> np.ndarray:
        """Return for every row whether it lies in the region."""
        inside = np.asarray(((self.lower < X) & (self.upper >= X)).all(axis=1))
        for j, mask in self.allowed.items():
            inside &= mask[X[:, j].astype(np.intp)]
        for test in self.tests:
            inside &= test.holds(X)
        return inside

    def conditions(self, categories: Mapping[int, tuple[Any, ...]]) -> list[Condition]:
        """Write the region as conditions of a rule, given the values that codes stand for."""
        result: list[Condition] = []
        for j in range(len(self.lower)):
            if j in self.allowed:
                mask = self.allowed[j]
                if not mask.all():
                    # Values never seen are left wherever only some have been excluded.
                    listed = np.flatnonzero(mask[:-1] != mask[-1])
                    values = tuple(categories[j][code] for code in listed)
                    result.append(OneOf(j, values, negated=bool(mask[-1])))
            elif self.lower[j] > -np.inf or self.upper[j] < np.inf:
                result.append(Interval(j, float(self.lower[j]), float(self.upper[j])))
        for test in self.tests:
            parts = [_condition(literal, categories) for literal in test.literals]
            result.append(AtLeast(test.m, tuple(parts)))
        return result


def _mask(literal: Literal, n_entries: int) -> np.ndarray:
    """Which codes satisfy a literal; the last entry stands for values never seen."""
    mask = np.full(n_entries, literal.opposite)
    mask[list(literal.codes)] = not literal.opposite
    return mask


def _condition(literal: Literal, categories: Mapping[int, tuple[Any, ...]]) -> Condition:
    j = literal.feature
    if literal.codes:
        values = tuple(categories[j][code] for code in literal.codes)
        return OneOf(j, values, negated=literal.opposite)
    if literal.opposite:
        return Interval(j, lower=literal.cut)
    return Interval(j, upper=literal.cut)


# Everything is counted on histograms: the instances of a node are put into few bins per feature
# once, and then the gains of all tests that differ in one literal come from one table of bins and
# classes.


@dataclass(frozen=True, eq=False)
class Binned:
    """The instances of a node, every feature in few bins."""

    codes: list[np.ndarray]
    cuts: list[np.ndarray | None]
    n_bins: list[int]
    labels: np.ndarray
    n_classes: int
    n_rows: int = 0

    def table(self, feature: int, at: np.ndarray | None = None) -> np.ndarray:
        """Count the instances (at the given positions) by bin and class.

        One more column counts the training rows among them.
        """
        codes, labels, n_rows = self.codes[feature], self.labels, self.n_rows
        if at is not None:
            codes, labels, n_rows = codes[at], labels[at], int(np.searchsorted(at, n_rows))
        n_bins = self.n_bins[feature]
        table = np.empty((n_bins, self.n_classes + 1), dtype=np.int64)
        table[:, -1] = np.bincount(codes[:n_rows], minlength=n_bins)
        cells = codes.astype(np.intp)
        cells *= self.n_classes
        cells += labels
        counts = np.bincount(cells, minlength=n_bins * self.n_classes)
        table[:, :-1] = counts.reshape(n_bins, self.n_classes)
        return table

    def count(self, at: np.ndarray | None = None) -> np.ndarray:
        """Count the instances (at the given positions) by class, and the rows, as in a table."""
        labels, n_rows = self.labels, self.n_rows
        if at is not None:
            labels, n_rows = labels[at], int(np.searchsorted(at, n_rows))
        return np.append(np.bincount(labels, minlength=self.n_classes), n_rows)

    def holds(self, literal: Literal) -> np.ndarray:
        """Return for every instance whether a literal made here holds."""
        codes, cuts = self.codes[literal.feature], self.cuts[literal.feature]
        if cuts is None:
            inside = np.isin(codes, literal.codes)
        else:
            inside = codes <= np.searchsorted(cuts, literal.cut)
        return ~inside if literal.opposite else inside


def find_cuts(values: np.ndarray, labels: np.ndarray, max_cuts: int = MOST_BINS - 1) -> np.ndarray:
    """Cuts half-way between neighboring values where the class changes.

    No other cut can have the largest information gain. Of more than 10 000 values every so many-th
    is looked at; more than `max_cuts` cuts are thinned evenly.

    References
    ----------
    U. Fayyad, K. Irani: On the handling of continuous-valued attributes in decision tree
    generation. Machine Learning 8, 1992.
    """
    if len(values) > _LOOKED_AT:
        at = np.linspace(0, len(values) - 1, _LOOKED_AT).astype(np.intp)
        values, labels = values[at], labels[at]
    order = np.argsort(values, kind="stable")
    values, labels = values[order], labels[order]
    first = np.flatnonzero(np.r_[True, values[1:] != values[:-1]])  # of each run of equal values
    low = np.minimum.reduceat(labels, first)
    high = np.maximum.reduceat(labels, first)
    # Between two runs of one and the same class no cut is worth while.
    mixed = (low[:-1] != high[1:]) | (high[:-1] != low[1:])
    below, above = values[first][:-1][mixed], values[first][1:][mixed]
    if len(below) > max_cuts:
        chosen = np.linspace(0, len(below) - 1, max_cuts).round().astype(np.intp)
        below, above = below[chosen], above[chosen]
    middle = below / 2 + above / 2
    # The middle of neighboring floats rounds to one of them.
    return np.where((middle >= below) & (middle < above), middle, below)


def put_into_bins(
    columns: Iterable[np.ndarray],
    labels: np.ndarray,
    n_classes: int,
    n_categories: Mapping[int, int],
    n_rows: int,
) -> Binned:
    """Put instances into bins, one feature after the other: only one column is held at a time."""
    codes: list[np.ndarray] = []
    cuts: list[np.ndarray | None] = []
    n_bins = []
    for feature, values in enumerate(columns):
        if feature in n_categories:
            cuts.append(None)
            n_bins.append(n_categories[feature])
            code = values
        else:
            feature_cuts = find_cuts(values, labels)
            cuts.append(feature_cuts)
            n_bins.append(len(feature_cuts) + 1)
            code = np.searchsorted(feature_cuts, values, side="left")
        codes.append(code.astype(np.uint8 if n_bins[-1] <= 256 else np.int32))
    return Binned(codes, cuts, n_bins, labels, n_classes, n_rows)


def information_gain(inside: np.ndarray, total: np.ndarray) -> np.ndarray:
    """Bits that tests tell about the class.

    `inside`, of shape (..., n_classes), counts the instances of each class for which a test holds,
    `total` all of them.
    """
    # One pass over both sides: of small tables the calls cost more than the numbers.
    inside_entropy, outside_entropy = _weighted_entropy(np.stack([inside, total - inside]))
    return np.asarray((_weighted_entropy(total) - (inside_entropy + outside_entropy)) / total.sum())


def _weighted_entropy(counts: np.ndarray) -> np.ndarray:
    """Entropy of the classes in bits, times the number of instances."""
    total = counts.sum(axis=-1)
    return np.asarray(_x_log_x(total) - _x_log_x(counts).sum(axis=-1))


def _x_log_x(x: np.ndarray) -> np.ndarray:
    return x * np.log2(np.maximum(x, 1))


@dataclass(frozen=True, eq=False)
class _Candidate:
    """A test with what is needed to extend it."""

    gain: float
    test: Test
    held: np.ndarray  # how many of its literals hold, per instance


@dataclass(frozen=True)
class MofNSearch:
    """How to search for tests; the fields are parameters of :class:`TrepanExtractor`."""

    max_literals: int = 4
    beam_width: int = 2
    significance: float = 0.05
    min_gain: float = 0.0
    min_samples_leaf: int = 1

    def best_test(self, binned: Binned, used_features: Sequence[int] = ()) -> Test | None:
        """Return the best test at a node, or None if no test gains information.

        The `used_features` occur in tests with several literals above the node. Such tests may not
        use them again, so that their literals stay independent.
        """
        total = binned.count()
        seed = self._best_seed(binned, total)
        if seed is None or seed.gain <= max(self.min_gain, 10.0**-_DECIMALS):
            return None
        best, beam = seed, [seed]
        if seed.test.literals[0].feature in used_features:
            return seed.test
        needed = self._needed_gain(total, len(binned.codes) - len(used_features))
        for _ in range(1, self.max_literals):
            beam = self._extend(binned, total, beam, used_features, needed)
            if not beam:
                break
            if beam[0].gain > best.gain:
                best = beam[0]
        return Test(best.test.m, tuple(sorted(best.test.literals, key=lambda t: t.feature)))

    def _needed_gain(self, total: np.ndarray, n_features: int) -> float:
        """The gain by which an extension must be better than what it extends.

        An extension moves some instances of one side to the other. By the chain rule its gain is
        at most that of both partitions together, which splits one side in two: if that split had
        nothing to do with the class, twice the added information (in nats) would follow a
        chi-squared distribution with one degree of freedom per class but one. The level is shared
        by the features, the two operators and the two directions among which the best is taken.
        """
        degrees = max(1, np.count_nonzero(total[:-1]) - 1)
        level = self.significance / max(1, 4 * n_features)
        return float(chdtri(degrees, level)) / (2 * math.log(2) * total[:-1].sum())

    def _extend(
        self,
        binned: Binned,
        total: np.ndarray,
        beam: list[_Candidate],
        used_features: Sequence[int],
        needed: float,
    ) -> list[_Candidate]:
        """Return the best extensions by one literal that gain at least `needed`, best first."""
        extensions = [
            (gain, candidate, test)
            for candidate in beam
            for m in (candidate.test.m, candidate.test.m + 1)
            for gain, test in self._extensions(binned, total, candidate, m, used_features)
            if gain - candidate.gain >= needed
        ]
        extensions.sort(key=lambda entry: -entry[0])  # stable, so the first of equal gains wins
        new_beam: dict[tuple[int, frozenset[Literal]], _Candidate] = {}
        for gain, parent, test in extensions:
            key = test.m, frozenset(test.literals)
            if key not in new_beam:
                n_holding = parent.held + binned.holds(test.literals[-1])
                new_beam[key] = _Candidate(gain, test, n_holding)
            if len(new_beam) == self.beam_width:
                break
        return list(new_beam.values())

    def _extensions(
        self,
        binned: Binned,
        total: np.ndarray,
        candidate: _Candidate,
        m: int,
        used_features: Sequence[int],
    ) -> Iterator[tuple[float, Test]]:
        """Yield the m-of-n tests that extend a candidate by a literal on each unused feature."""
        used = {literal.feature for literal in candidate.test.literals} | set(used_features)
        # Instances that lack one literal pass if the new one holds; the others are decided.
        undecided = np.flatnonzero(candidate.held == m - 1)
        if not len(undecided):
            return
        passing = binned.count(np.flatnonzero(candidate.held >= m))
        for feature in range(len(binned.codes)):
            if feature in used:
                continue
            table = binned.table(feature, undecided)
            for gain, literal in self._best_literals(
                binned, feature, table, passing, total, (False, True)
            ):
                if literal is not None:
                    yield gain, Test(m, (*candidate.test.literals, literal))

    def _best_seed(self, binned: Binned, total: np.ndarray) -> _Candidate | None:
        """The best test of one feature, turned so that it speaks for the later classes."""
        best, chosen = -1.0, None
        nothing = np.zeros_like(total)
        for feature in range(len(binned.codes)):
            table = binned.table(feature)
            [(gain, literal)] = self._best_literals(
                binned, feature, table, nothing, total, (False,)
            )
            if literal is not None and gain > best:
                best, chosen = gain, literal
        if chosen is None:
            return None
        holds = binned.holds(chosen)
        if binned.labels[holds].mean() < binned.labels[~holds].mean():
            chosen, holds = chosen.negated(), ~holds
        return _Candidate(best, Test(1, (chosen,)), holds.astype(np.uint8))

    def _best_literals(
        self,
        binned: Binned,
        feature: int,
        table: np.ndarray,
        passing: np.ndarray,
        total: np.ndarray,
        directions: Sequence[bool],
    ) -> list[tuple[float, Literal | None]]:
        """The literal on one feature that completes a test best, and the test's gain, each way.

        All counts are by class, with rows in the last column: `table` those of the instances for
        which the literal decides, by bin; `passing` those for which the test holds anyway; `total`
        all. A direction of False looks among the literals as they are, True among the negated.
        """
        cuts = binned.cuts[feature]
        subsets: list[np.ndarray] = []
        if cuts is not None:
            inside = np.cumsum(table[:-1], axis=0)
        else:
            subsets = _subsets(table[:, :-1])
            inside = np.array([table[codes].sum(axis=0) for codes in subsets])
        if not len(inside):
            return [(0.0, None)] * len(directions)
        all_counts = table.sum(axis=0)
        holding = passing + np.stack(
            [all_counts - inside if turned else inside for turned in directions]
        )
        gains = np.round(information_gain(holding[..., :-1], total[:-1]), _DECIMALS)
        rows = holding[..., -1]
        gains[(rows < self.min_samples_leaf) | (total[-1] - rows < self.min_samples_leaf)] = -1.0
        best_literals: list[tuple[float, Literal | None]] = []
        for turned, at, gain in zip(
            directions, gains.argmax(axis=1).tolist(), gains.max(axis=1).tolist(), strict=True
        ):
            if cuts is not None:
                best_literals.append((gain, Literal(feature, float(cuts[at]), opposite=turned)))
                continue
            codes, opposite = subsets[at], turned
            complement = np.setdiff1d(np.flatnonzero(table[:, :-1].any(axis=1)), codes)
            if len(complement) < len(codes):  # the shorter list reads better
                codes, opposite = complement, not turned
            best_literals.append(
                (gain, Literal(feature, codes=tuple(codes.tolist()), opposite=opposite))
            )
        return best_literals


def _subsets(table: np.ndarray) -> list[np.ndarray]:
    """Sets of codes worth trying: single ones, and the first ones in order of a class's share.

    With two classes the best of all sets is among them.

    References
    ----------
    L. Breiman, J. Friedman, C. Stone, R. Olshen: Classification and Regression Trees, 1984,
    theorem 4.5.
    """
    observed_codes = np.flatnonzero(table.any(axis=1))
    if len(observed_codes) < 2:
        return []
    subsets = [observed_codes[i : i + 1] for i in range(len(observed_codes))]
    counts = table[observed_codes]
    classes = np.flatnonzero(counts.any(axis=0))
    for label in classes[1:] if len(classes) == 2 else classes:
        share = counts[:, label] / counts.sum(axis=1)
        order = np.argsort(-share, kind="stable")
        subsets.extend(
            np.sort(observed_codes[order[:size]]) for size in range(2, len(observed_codes) - 1)
        )
    return subsets


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
                distinct_values = np.unique(X[:, j])
                # Of few rows all values are few, which says nothing.
                if len(distinct_values) <= MOST_VALUES and 2 * len(distinct_values) <= len(X):
                    values[j] = distinct_values
        return cls(lower, upper, values, n_categories)


def thinned(rows: np.ndarray, key: np.uint64, max_rows: int = MOST_KERNELS) -> np.ndarray:
    """Some of the rows, drawn evenly: one at random from each of `max_rows` equal stretches."""
    if len(rows) <= max_rows:
        return rows
    share = _uniform(combine(key, np.arange(max_rows)), _THINNING)
    return rows[((np.arange(max_rows) + share) * (len(rows) / max_rows)).astype(np.intp)]


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
        centers, width = self.sample[:, j], self._widths[j]
        if width == 0:
            return ((centers >= low) & (centers <= high)).astype(float)
        below, above = _turned((low - centers) / width, (high - centers) / width)[:2]
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
        position = _uniform(keys, _STREAMS * j + _PLACE)
        hopeless = not weights.sum() > 0  # the model excludes what the region demands
        if j in self.features.values:
            if hopeless:
                weights = self._listed(region, j).astype(float)
            return self.features.values[j][_picked(weights, pick)]
        low, high = self._limits(region, j)
        if hopeless:
            return np.clip(low + position * (high - low), low, high)
        centers, width = self.sample[_picked(weights, pick), j], self._widths[j]
        if width == 0:
            return centers
        below, above, turned = _turned((low - centers) / width, (high - centers) / width)
        quantile = ndtri(ndtr(below) + position * (ndtr(above) - ndtr(below)))
        return np.clip(centers + width * np.where(turned, -quantile, quantile), low, high)

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
                literal_holds = _uniform(keys, _STREAMS * j + _LITERAL) < chance
                literal_holds |= (
                    tails[i + 1, needed] == 0
                )  # certain, whatever rounding made of the chance
                literal_holds &= tails[i + 1, fewer] > 0
                needed = np.maximum(needed - literal_holds, 0)
                for side, part in ((literal, literal_holds), (literal.negated(), ~literal_holds)):
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
        outside_rows = self.sample[~region.holds(self.sample)]
        if len(sample) < 2 or len(outside_rows) < 2:
            return False
        level = significance / sample.shape[1]
        shares = {}
        for test in region.tests:
            conditional = given_at_least(self._chances(region, test), test.m)
            for literal, share in zip(test.literals, conditional, strict=True):
                shares[literal.feature] = literal, share
        for j in range(sample.shape[1]):
            values, column = outside_rows[:, j], sample[:, j]
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
    """Standardized limits, mirrored where they lie in the upper tail: there ndtr rounds to 1."""
    turned = below > 0
    return np.where(turned, -above, below), np.where(turned, -below, above), turned


def _picked(weights: np.ndarray, share: np.ndarray) -> np.ndarray:
    """Indices drawn in proportion to weights, one per share in [0, 1)."""
    cumulated = np.cumsum(weights)
    index = np.searchsorted(cumulated, share * cumulated[-1], side="right")
    # Rounding could point behind the last weight that is not 0.
    return np.minimum(index, np.flatnonzero(weights)[-1])


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
    total_chance = at_least(chances)[0, m]
    chances_of_others = [at_least(np.delete(chances, i))[0, m - 1] for i in range(len(chances))]
    return chances * np.array(chances_of_others) / total_chance


def _reweighted(weights: np.ndarray, holds: np.ndarray, share: float) -> np.ndarray:
    """Give those for which a literal holds the share that they have in the region."""
    result = np.zeros_like(weights)
    for part, part_share in ((holds, share), (~holds, 1 - share)):
        total = weights[part].sum()
        if total > 0:
            result[part] = weights[part] * (part_share / total)
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
    total = first + second
    first, second, total = first[total > 0], second[total > 0], total[total > 0]
    if len(total) < 2:
        return 1.0
    statistic = 0.0
    for counts in (first, second):
        expected = total * (counts.sum() / total.sum())
        statistic += float(((counts - expected) ** 2 / expected).sum())
    return float(chdtrc(len(total) - 1, statistic))


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
        split: _Split | None = None if self.sharing is None else self.sharing.get(name)
        if split is None:
            split = make()
            if self.sharing is not None:
                self.sharing.put(name, split)
        elif split.n_queries:
            self.extraction.oracle.count_again(split.n_queries)
        # The tree drops data of its nodes, which others may still need.
        return split.test, [replace(node) for node in split.nodes]

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
        majority_count, n = int(counts.max()), int(counts.sum())
        return bool(
            betaincinv(majority_count, n - majority_count + 1, 1 - self.confidence) >= self.purity
        )

    def _best_test(self, node: Node) -> Test | None:
        X = self.extraction.X
        assert node.model is not None
        n_categories = node.model.features.n_categories
        # One column at a time, so that no copy of the rows is ever held.
        columns = (np.concatenate([X[node.rows, j], node.points[:, j]]) for j in range(X.shape[1]))
        labels = np.concatenate([self.extraction.predictions[node.rows], node.point_labels])
        binned = put_into_bins(columns, labels, len(node.counts), n_categories, len(node.rows))
        used_features = sorted(
            {literal.feature for test in node.region.tests for literal in test.literals}
        )
        return self.search.best_test(binned, used_features)

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
    neighboring values where the class changes (255 of them at most), or a set of categories. The
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
    rows in six of six splits of one-hot columns of iris (3 nearest neighbors; mean 0.971, ours by
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
    1. IF petal length (cm) ≤ 2.466 THEN setosa   [50 rows, 100 % agree with the model]
    2. ELSE IF at least 1 of (petal length (cm) > 5.077; petal width (cm) > 1.993) THEN virginica
       [44 rows, 99.1 % agree with the model]
    3. ELSE versicolor   [56 rows, 94 % agree with the model]
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
