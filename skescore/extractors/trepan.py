"""Trepan: a tree of M-of-N tests, grown on the rows and on instances that the black box labels."""

from __future__ import annotations

import heapq
import math
import warnings
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from scipy.special import betaincinv, chdtrc, chdtri, kolmogorov, ndtr, ndtri

from skescore import _validation as check
from skescore._deadline import check_deadline
from skescore._random import combine, draw_seed
from skescore.extractors._base import BaseExtractor, Extraction, documented
from skescore.extractors._sampling import N_QUERIES
from skescore.extractors._sharing import Sharing
from skescore.rules import AtLeast, Condition, Interval, OneOf, Rule, RuleSet, RuleStatistics
from skescore.rules.importers._sklearn import shortened_paths

__all__ = ["TrepanExtractor"]


# --- tests, the regions behind them, and the search for the best test ----------

# A test holds if at least m of its n literals hold. A region consists of a box, which conjunctions
# narrow, and a list of all other tests. The negation of a test is a test, because "not at least m
# of n hold" is equivalent to "at least n - m + 1 of the n negations hold".

#: Largest number of bins per feature; if there are more cuts, evenly spaced ones are used.
MAX_BINS = 256
#: Largest number of instances that are used to find cuts.
_MAX_CUT_ROWS = 10_000
#: Largest number of rows whose ranks are computed once for all nodes; more would take much memory.
_MAX_RANKED_ROWS = 2**16
#: Decimals to which gains are rounded in comparisons, so that rounding errors do not break ties.
_GAIN_DECIMALS = 12


@dataclass(frozen=True, slots=True)
class Literal:
    """Condition on one feature: its number is at most `cut`, or its category is in `codes`.

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
        """Return the opposite condition."""
        return replace(self, opposite=not self.opposite)


@dataclass(frozen=True, slots=True)
class MofNTest:
    """Test that at least `m` of the literals hold; each literal is on a different feature."""

    m: int
    literals: tuple[Literal, ...]

    def holds(self, X: np.ndarray, rows: np.ndarray | None = None) -> np.ndarray:
        """Return for every row, or for the selected rows, whether the test holds."""
        n_holding: Any = 0
        for literal in self.literals:
            column = X[:, literal.feature]
            n_holding = n_holding + literal.holds(column if rows is None else column[rows]).astype(
                np.int32
            )
        return np.asarray(n_holding >= self.m)

    def negated(self) -> MofNTest:
        """Return the test that holds where this one does not."""
        opposites = tuple(literal.negated() for literal in self.literals)
        return MofNTest(len(self.literals) - self.m + 1, opposites)


@dataclass(frozen=True, eq=False)
class Region:
    """Region in which all tests on a path hold: a box, and the tests that are not conjunctions."""

    lower: np.ndarray
    upper: np.ndarray
    allowed: Mapping[int, np.ndarray]
    tests: tuple[MofNTest, ...] = ()

    @classmethod
    def everything(cls, n_features: int, n_categories: Mapping[int, int]) -> Region:
        """Return the region of all points."""
        free = np.full(n_features, np.inf)
        return cls(-free, free, {j: np.ones(n + 1, bool) for j, n in n_categories.items()})

    def within(self, literals: Iterable[Literal]) -> Region:
        """Return the part of the region in which all literals hold."""
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

    def after(self, tests: Iterable[MofNTest]) -> Region:
        """Return the part of the region in which further tests hold."""
        return replace(self, tests=(*self.tests, *tests)).reduced()

    def reduced(self) -> Region:
        """Return the same region without literals that hold everywhere or nowhere in its box."""
        region, tests = self, list(self.tests)
        is_reduced = False
        while not is_reduced:
            is_reduced = True
            open_tests: list[MofNTest] = []
            for test in tests:
                decisions = [region._decide(literal) for literal in test.literals]
                left = tuple(t for t, d in zip(test.literals, decisions, strict=True) if d is None)
                m = test.m - sum(d is True for d in decisions)
                if m >= 1 and m == len(left):  # a conjunction narrows the box
                    region = region.within(left)
                    is_reduced = False
                elif m >= 1:
                    open_tests.append(MofNTest(m, left))
            tests = open_tests
        return replace(region, tests=tuple(tests))

    def _decide(self, literal: Literal) -> bool | None:
        """Return True (False) if the literal holds everywhere (nowhere) in the box, else None."""
        j = literal.feature
        if literal.codes:
            left = _mask(literal, len(self.allowed[j]))[self.allowed[j]]
            return True if left.all() else None if left.any() else False
        if self.upper[j] <= literal.cut:
            return not literal.opposite
        return literal.opposite if self.lower[j] >= literal.cut else None

    def holds(self, X: np.ndarray) -> np.ndarray:
        """Return for every row whether it lies in the region."""
        inside = np.ones(len(X), dtype=bool)
        for j in np.flatnonzero((self.lower > -np.inf) | (self.upper < np.inf)).tolist():
            inside &= (self.lower[j] < X[:, j]) & (self.upper[j] >= X[:, j])
        for j, mask in self.allowed.items():
            inside &= mask[X[:, j].astype(np.intp)]
        for test in self.tests:
            inside &= test.holds(X)
        return inside

    def conditions(self, categories: Mapping[int, tuple[Any, ...]]) -> list[Condition]:
        """Return the region as conditions of a rule; `categories` holds the values of codes."""
        result: list[Condition] = []
        for j in range(len(self.lower)):
            if j in self.allowed:
                mask = self.allowed[j]
                if not mask.all():
                    # Listing the excluded values keeps unseen values in the region.
                    listed = np.flatnonzero(mask[:-1] != mask[-1])
                    values = tuple(categories[j][code] for code in listed)
                    result.append(OneOf(j, values, negated=bool(mask[-1])))
            elif self.lower[j] > -np.inf or self.upper[j] < np.inf:
                result.append(Interval(j, float(self.lower[j]), float(self.upper[j])))
        for test in self.tests:
            parts = [_make_condition(literal, categories) for literal in test.literals]
            result.append(AtLeast(test.m, tuple(parts)))
        return result


def _mask(literal: Literal, n_entries: int) -> np.ndarray:
    """Return for each code whether it satisfies a literal; the last entry is for unseen values."""
    mask = np.full(n_entries, literal.opposite)
    mask[list(literal.codes)] = not literal.opposite
    return mask


def _make_condition(literal: Literal, categories: Mapping[int, tuple[Any, ...]]) -> Condition:
    j = literal.feature
    if literal.codes:
        values = tuple(categories[j][code] for code in literal.codes)
        return OneOf(j, values, negated=literal.opposite)
    if literal.opposite:
        return Interval(j, lower=literal.cut)
    return Interval(j, upper=literal.cut)


# The instances of a node are binned once per feature. A single table of counts by class and bin of
# all features then gives the gains of all tests that differ in one literal.

#: Largest product of instances and features that are counted at once, to limit memory.
_BLOCK_CELLS = 2**19
#: Largest number of steps from an entry of the table in :func:`draw_indices` before bisection.
_MAX_STEPS = 8


@dataclass(frozen=True, eq=False)
class Binned:
    """Instances of a node with binned features.

    Bins are numbered consecutively over all features; `codes`, of shape (n_features, n_instances),
    are relative to the first bin of the feature.
    """

    codes: np.ndarray
    cuts: list[np.ndarray | None]
    n_bins: list[int]
    labels: np.ndarray
    n_classes: int
    n_rows: int = 0

    @cached_property
    def starts(self) -> np.ndarray:
        """First bin of every feature, and at the end the number of all bins."""
        return np.concatenate([[0], np.cumsum(self.n_bins)]).astype(np.intp)

    @cached_property
    def owners(self) -> np.ndarray:
        """Feature of every bin."""
        return np.repeat(np.arange(len(self.n_bins)), self.n_bins)

    @cached_property
    def is_categorical(self) -> np.ndarray:
        """True for the bins of categorical features."""
        return np.repeat([cuts is None for cuts in self.cuts], self.n_bins)

    @cached_property
    def cut_runs(self) -> tuple[np.ndarray, np.ndarray]:
        """For every cut, the first bin of its feature and the first bin above the cut."""
        is_below = ~self.is_categorical
        is_below[self.starts[1:] - 1] = False
        bins = np.flatnonzero(is_below)
        return self.starts[self.owners[bins]], bins + 1

    @cached_property
    def x_log_x(self) -> np.ndarray:
        """Table of ``x * log2(x)`` for every possible count x."""
        x = np.arange(len(self.labels) + 1)
        return x * np.log2(np.maximum(x, 1))

    @cached_property
    def table(self) -> np.ndarray:
        """Counts of the instances by class and bin; the last row counts the training rows."""
        return self._count_bins(None)

    def table_of(self, is_selected: np.ndarray) -> np.ndarray:
        """Return the table of the selected instances."""
        if 2 * np.count_nonzero(is_selected) > len(is_selected):
            return self.table - self._count_bins(np.flatnonzero(~is_selected))
        return self._count_bins(np.flatnonzero(is_selected))

    def _count_bins(self, at: np.ndarray | None) -> np.ndarray:
        """Return the table of the instances at some positions; of all if `at` is None."""
        labels, n_rows = self.labels, self.n_rows
        if at is not None:
            labels, n_rows = labels[at], int(np.searchsorted(at, n_rows))
        starts, n_features = self.starts, len(self.n_bins)
        table = np.empty((self.n_classes + 1, starts[-1]), dtype=np.intp)
        step = max(1, _BLOCK_CELLS // max(1, len(labels)))
        for first in range(0, n_features, step):
            last = min(first + step, n_features)
            codes = self.codes[first:last]
            cells = (codes if at is None else codes.take(at, axis=1)).astype(np.intp)
            cells += (starts[first:last] - starts[first])[:, None]
            bins, n_bins = slice(starts[first], starts[last]), starts[last] - starts[first]
            if n_rows < len(labels):
                table[-1, bins] = np.bincount(cells[:, :n_rows].ravel(), minlength=n_bins)
            cells += labels * n_bins
            counts = np.bincount(cells.ravel(), minlength=self.n_classes * n_bins)
            table[:-1, bins] = counts.reshape(self.n_classes, n_bins)
        if n_rows == len(labels):
            table[:-1].sum(axis=0, out=table[-1])
        return table

    def count(self, is_selected: np.ndarray | None = None) -> np.ndarray:
        """Count the (selected) instances by class; the last entry counts the training rows."""
        labels, n_rows = self.labels, self.n_rows
        if is_selected is not None:
            labels, n_rows = labels[is_selected], int(np.count_nonzero(is_selected[:n_rows]))
        return np.append(np.bincount(labels, minlength=self.n_classes), n_rows)

    def holds(self, literal: Literal) -> np.ndarray:
        """Return for every instance whether a literal on these bins holds."""
        codes, cuts = self.codes[literal.feature], self.cuts[literal.feature]
        if cuts is None:
            inside = np.isin(codes, literal.codes)
        else:
            inside = codes <= np.searchsorted(cuts, literal.cut)
        return ~inside if literal.opposite else inside


@dataclass(frozen=True, eq=False)
class RankedColumn:
    """Numeric feature as sorted distinct numbers and the rank of each instance among them.

    Ranks allow binning the instances of a node without sorting. `numbers` are those of all rows, so
    some may have no instance at the node.
    """

    numbers: np.ndarray
    ranks: np.ndarray

    @classmethod
    def of(cls, values: np.ndarray) -> RankedColumn:
        """Rank the values of a feature."""
        order = np.argsort(values)  # the order of equal values does not matter
        values = values[order]
        is_first = np.ones(len(values), dtype=bool)
        np.not_equal(values[1:], values[:-1], out=is_first[1:])
        numbers = values[is_first]
        ranks = np.empty(len(values), dtype=np.min_scalar_type(max(0, len(numbers) - 1)))
        ranks[order] = np.cumsum(is_first) - 1
        return cls(numbers, ranks)

    def at(self, positions: np.ndarray) -> RankedColumn:
        """Return the column of the instances at some positions."""
        return RankedColumn(self.numbers, self.ranks.take(positions))

    def cuts(self, labels: np.ndarray, max_cuts: int) -> np.ndarray:
        """Return cuts between neighboring numbers of different classes; see :func:`find_cuts`."""
        label_of = np.full(len(self.numbers), -1, dtype=labels.dtype)
        label_of[self.ranks] = labels
        is_mixed = np.zeros(len(self.numbers), dtype=bool)
        is_mixed[self.ranks[label_of.take(self.ranks) != labels]] = True
        observed = np.flatnonzero(label_of >= 0)
        label_of, is_mixed = label_of[observed], is_mixed[observed]
        # A cut between two values of the same class gains nothing.
        changes = np.flatnonzero((label_of[1:] != label_of[:-1]) | is_mixed[1:] | is_mixed[:-1])
        if len(changes) > max_cuts:
            chosen = np.linspace(0, len(changes) - 1, max_cuts).round().astype(np.intp)
            changes = changes[chosen]
        below, above = self.numbers[observed[changes]], self.numbers[observed[changes + 1]]
        middle = below / 2 + above / 2
        # The midpoint of neighboring floats rounds to one of them.
        return np.where((middle >= below) & (middle < above), middle, below)

    def codes(self, cuts: np.ndarray) -> np.ndarray:
        """Return the number of cuts below every instance.

        At most one cut may lie between two neighboring numbers.
        """
        steps = np.zeros(len(self.numbers), dtype=np.uint8)
        steps[np.searchsorted(self.numbers, cuts, side="right")] = 1
        return np.cumsum(steps, dtype=np.uint8).take(self.ranks)


def find_cuts(
    column: np.ndarray | RankedColumn, labels: np.ndarray, max_cuts: int = MAX_BINS - 1
) -> np.ndarray:
    """Return cuts halfway between neighboring values where the class changes.

    No other cut can have the largest information gain. Of more than 10 000 values or `max_cuts`
    cuts, evenly spaced ones are used.

    References
    ----------
    U. Fayyad, K. Irani: On the handling of continuous-valued attributes in decision tree
    generation. Machine Learning 8, 1992.
    """
    if len(labels) > _MAX_CUT_ROWS:
        at = np.linspace(0, len(labels) - 1, _MAX_CUT_ROWS).astype(np.intp)
        labels = labels[at]
        column = column.at(at) if isinstance(column, RankedColumn) else column[at]
    if not isinstance(column, RankedColumn):
        column = RankedColumn.of(column)
    return column.cuts(labels, max_cuts)


def bin_numbers(
    column: np.ndarray | RankedColumn, labels: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the cuts of a numeric feature and the number of cuts below each value."""
    if not isinstance(column, RankedColumn):
        if len(labels) > _MAX_CUT_ROWS:  # sorting a sample costs less
            cuts = find_cuts(column, labels)
            return cuts, np.searchsorted(cuts, column, side="left")
        column = RankedColumn.of(column)
    cuts = find_cuts(column, labels)
    return cuts, column.codes(cuts)


def bin_instances(
    columns: Iterable[np.ndarray | RankedColumn],
    labels: np.ndarray,
    n_classes: int,
    n_categories: Mapping[int, int],
    n_rows: int,
) -> Binned:
    """Bin the features of instances, with one column in memory at a time."""
    codes: list[np.ndarray] = []
    cuts: list[np.ndarray | None] = []
    n_bins = []
    for feature, column in enumerate(columns):
        if isinstance(column, np.ndarray) and feature in n_categories:
            cuts.append(None)
            n_bins.append(n_categories[feature])
            code = column
        else:
            feature_cuts, code = bin_numbers(column, labels)
            cuts.append(feature_cuts)
            n_bins.append(len(feature_cuts) + 1)
        codes.append(code.astype(np.min_scalar_type(n_bins[-1] - 1), copy=False))
    return Binned(np.stack(codes), cuts, n_bins, labels, n_classes, n_rows)


def information_gain(inside: np.ndarray, total: np.ndarray, x_log_x: np.ndarray) -> np.ndarray:
    """Return the information gain of tests in bits.

    `inside`, of shape (..., n_classes, n_tests), counts the instances of each class for which a
    test holds, `total` all of them. `x_log_x` is the table in :class:`Binned`.
    """
    inside_entropy = _weighted_entropy(inside, x_log_x)
    outside_entropy = _weighted_entropy(total[:, None] - inside, x_log_x)
    entropy = _weighted_entropy(total[:, None], x_log_x)
    return np.asarray((entropy - (inside_entropy + outside_entropy)) / total.sum())


def accuracy_gain(inside: np.ndarray, total: np.ndarray, x_log_x: np.ndarray) -> np.ndarray:
    """Return the accuracy of tests minus the share of the larger of two classes.

    The two sides of a test predict different classes. The arguments are as for
    :func:`information_gain`, with two classes.
    """
    n_right = total[0] - inside[..., 0, :] + inside[..., 1, :]
    return np.asarray((np.maximum(n_right, total.sum() - n_right) - total.max()) / total.sum())


def _weighted_entropy(counts: np.ndarray, x_log_x: np.ndarray) -> np.ndarray:
    """Return the entropy of the classes in bits, times the number of instances."""
    total = counts.sum(axis=-2)
    return np.asarray(x_log_x.take(total) - x_log_x.take(counts).sum(axis=-2))


@dataclass(frozen=True, eq=False)
class BinRuns:
    """Sets of bins that literals can accept, stored as contiguous runs in sequences of bins.

    Run i consists of ``bins[first[i] : end[i]]``, which belong to the feature ``features[i]``. Runs
    are sorted by feature. `inside`, of shape (n_classes + 1, n_runs), holds their counts.
    """

    bins: np.ndarray
    first: np.ndarray
    end: np.ndarray
    features: np.ndarray
    inside: np.ndarray

    @classmethod
    def of(cls, binned: Binned, table: np.ndarray) -> BinRuns:
        """Return the candidate runs: the bins below each cut, and sets of categories.

        Sets of categories are single categories, and prefixes of the categories sorted by the share
        of a class. With two classes, they include the best of all sets.

        References
        ----------
        L. Breiman, J. Friedman, C. Stone, R. Olshen: Classification and Regression Trees, 1984,
        theorem 4.5.
        """
        first, end = binned.cut_runs
        bins = np.arange(table.shape[1])
        features = binned.owners[first]
        if binned.is_categorical.any():
            sequences, firsts, ends = _category_runs(binned, table)
            bins = np.concatenate([bins, *sequences])
            first, end = np.concatenate([first, *firsts]), np.concatenate([end, *ends])
            features = binned.owners[bins[first]]
            order = np.argsort(features, kind="stable")
            first, end, features = first[order], end[order], features[order]
            table = table[:, bins]
        below = np.zeros((len(table), len(bins) + 1), dtype=np.intp)
        np.cumsum(table, axis=1, out=below[:, 1:])
        inside = below.take(end, axis=1) - below.take(first, axis=1)
        return cls(bins, first, end, features, inside)


def _category_runs(
    binned: Binned, table: np.ndarray
) -> tuple[list[np.ndarray], list[np.ndarray], list[np.ndarray]]:
    """Return sequences of the bins of categories, and the first and end positions of their runs.

    Positions refer to the concatenation of the sequence of all bins and these sequences.
    """
    n_all = table.shape[1]
    counts = table[:-1]
    n_instances = counts.sum(axis=0)
    observed = np.flatnonzero(binned.is_categorical & (n_instances > 0))
    owners = binned.owners[observed]
    n_observed = np.bincount(owners, minlength=len(binned.n_bins))
    singles = observed[n_observed[owners] >= 2]
    sequences: list[np.ndarray] = []
    firsts, ends = [singles], [singles + 1]
    # Observed bins are contiguous per feature; their order within a feature does not matter.
    start = np.searchsorted(owners, owners)
    size = np.arange(len(owners)) - start + 1
    is_prefix = (size >= 2) & (size <= n_observed[owners] - 2)
    labels = np.flatnonzero(counts[:, observed].any(axis=1))
    for label in labels[1:] if len(labels) == 2 else labels:
        share = counts[label, observed] / n_instances[observed]
        offset = n_all + len(sequences) * len(observed)
        sequences.append(observed[np.lexsort((-share, owners))])
        firsts.append(offset + start[is_prefix])
        ends.append(offset + (start + size)[is_prefix])
    return sequences, firsts, ends


@dataclass(frozen=True, eq=False)
class _Candidate:
    """A test, its gain, and the number of its literals that hold for each instance."""

    gain: float
    test: MofNTest
    n_holding: np.ndarray


@dataclass(frozen=True)
class MofNSearch:
    """Beam search for M-of-N tests that maximize `gain`.

    The other fields are parameters of :class:`TrepanExtractor`.
    """

    max_literals: int = 4
    beam_width: int = 2
    significance: float = 0.05
    min_gain: float = 0.0
    min_samples_leaf: int = 1
    gain: Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray] = information_gain

    def best_test(self, binned: Binned, used_features: Sequence[int] = ()) -> MofNTest | None:
        """Return the best test at a node, or None if no test gains information.

        The `used_features` occur in tests with several literals on a path through the node. New
        tests with several literals may not use them, so that literals on a path stay independent.
        """
        total = binned.count()
        seed = self._best_seed(binned, total)
        if seed is None or seed.gain <= max(self.min_gain, 10.0**-_GAIN_DECIMALS):
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
        return MofNTest(best.test.m, tuple(sorted(best.test.literals, key=lambda t: t.feature)))

    def _needed_gain(self, total: np.ndarray, n_features: int) -> float:
        """Return the gain that an extension must add to the gain of its test.

        An extension moves some instances from one side to the other. By the chain rule, its gain is
        at most the gain of the partition into three parts, in which these instances form one part.
        If that split is independent of the class, twice the added information (in nats) times the
        number of instances has a chi-squared distribution with (classes - 1) degrees of freedom.
        The significance level is divided by the number of candidates.
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
        """Return extensions by one literal that gain at least `needed`, by descending gain."""
        extensions = [
            (gain, candidate, m, completions, position)
            for candidate in beam
            for m in (candidate.test.m, candidate.test.m + 1)
            for completions in self._completions(binned, total, candidate, m, used_features)
            for gain, position in completions.gaining(candidate.gain, needed)
        ]
        extensions.sort(key=lambda entry: -entry[0])  # stable, so the first of equal gains wins
        new_beam: dict[tuple[int, frozenset[Literal]], _Candidate] = {}
        for gain, parent, m, completions, position in extensions:
            test = MofNTest(m, (*parent.test.literals, completions.literal(position)))
            key = m, frozenset(test.literals)
            if key not in new_beam:
                n_holding = parent.n_holding + binned.holds(test.literals[-1])
                new_beam[key] = _Candidate(gain, test, n_holding)
            if len(new_beam) == self.beam_width:
                break
        return list(new_beam.values())

    def _completions(
        self,
        binned: Binned,
        total: np.ndarray,
        candidate: _Candidate,
        m: int,
        used_features: Sequence[int],
    ) -> Iterator[Completions]:
        """Yield the literals that extend a candidate to an m-of-n test, if any can."""
        # The new literal decides only for instances with m - 1 literals that hold.
        is_undecided = candidate.n_holding == m - 1
        if is_undecided.any():
            passing = binned.count(candidate.n_holding >= m)
            used = {literal.feature for literal in candidate.test.literals} | set(used_features)
            yield self._complete(
                binned, binned.table_of(is_undecided), passing, total, (False, True), used
            )

    def _best_seed(self, binned: Binned, total: np.ndarray) -> _Candidate | None:
        """Return the best test of one literal; it holds on the side with the later classes."""
        completions = self._complete(binned, binned.table, np.zeros_like(total), total, (False,))
        gains = completions.best_gains
        if not gains.size or gains.max() <= -1.0:
            return None
        chosen = completions.literal(int(gains.argmax()))
        holds = binned.holds(chosen)
        if binned.labels[holds].mean() < binned.labels[~holds].mean():
            chosen, holds = chosen.negated(), ~holds
        return _Candidate(float(gains.max()), MofNTest(1, (chosen,)), holds.astype(np.uint8))

    def _complete(
        self,
        binned: Binned,
        table: np.ndarray,
        passing: np.ndarray,
        total: np.ndarray,
        directions: Sequence[bool],
        used_features: Collection[int] = (),
    ) -> Completions:
        """Compute the gains of all literals that complete a test.

        All counts are by class, with the training rows at the end: `table` counts the instances for
        which the literal decides, by bin; `passing` those for which the test holds anyway; `total`
        all. Direction False stands for literals, True for their negations.
        """
        runs = BinRuns.of(binned, table)
        undecided = table[:, : binned.n_bins[0]].sum(axis=1)
        holding = np.empty((len(directions), *runs.inside.shape), dtype=np.intp)
        for part, is_negated in zip(holding, directions, strict=True):
            if is_negated:
                np.subtract((passing + undecided)[:, None], runs.inside, out=part)
            else:
                np.add(passing[:, None], runs.inside, out=part)
        gains = self.gain(holding[:, :-1], total[:-1], binned.x_log_x)
        gains = np.round(gains, _GAIN_DECIMALS)
        rows = holding[:, -1]
        gains[(rows < self.min_samples_leaf) | (total[-1] - rows < self.min_samples_leaf)] = -1.0
        if used_features:
            is_used = np.zeros(len(binned.n_bins), dtype=bool)
            is_used[list(used_features)] = True
            gains[:, is_used[runs.features]] = -np.inf
        return Completions(binned, table, runs, gains, directions)


@dataclass(frozen=True, eq=False)
class Completions:
    """Literals that complete a test, with their gains by direction and run of bins."""

    binned: Binned
    table: np.ndarray
    runs: BinRuns
    gains: np.ndarray
    directions: Sequence[bool]

    @cached_property
    def _starts(self) -> np.ndarray:
        """Position of the first run of each feature with runs."""
        features = self.runs.features
        return np.flatnonzero(np.r_[True, features[1:] != features[:-1]][: len(features)])

    @cached_property
    def best_gains(self) -> np.ndarray:
        """Largest gain per feature with runs and per direction; the direction varies fastest."""
        if not len(self._starts):
            return np.empty(0)
        return np.maximum.reduceat(self.gains, self._starts, axis=1).T.ravel()

    def gaining(self, gain: float, needed: float) -> Iterator[tuple[float, int]]:
        """Yield the best gains that exceed `gain` by at least `needed`, and their positions."""
        for position in np.flatnonzero(self.best_gains - gain >= needed).tolist():
            yield float(self.best_gains[position]), position

    def literal(self, position: int) -> Literal:
        """Return the literal with the best gain at a position."""
        number, side = divmod(position, len(self.directions))
        runs, is_negated = self.runs, self.directions[side]
        ends = [*self._starts[1:].tolist(), len(runs.features)]
        start = int(self._starts[number])
        run = start + int(self.gains[side, start : ends[number]].argmax())
        feature = int(runs.features[run])
        first_bin, cuts = int(self.binned.starts[feature]), self.binned.cuts[feature]
        if cuts is not None:
            cut = float(cuts[runs.end[run] - 1 - first_bin])
            return Literal(feature, cut, opposite=is_negated)
        codes = np.sort(runs.bins[runs.first[run] : runs.end[run]]) - first_bin
        counts = self.table[:-1, first_bin : first_bin + self.binned.n_bins[feature]]
        complement = np.setdiff1d(np.flatnonzero(counts.any(axis=0)), codes)
        if len(complement) < len(codes):  # the shorter list is easier to read
            codes, is_negated = complement, not is_negated
        return Literal(feature, codes=tuple(codes.tolist()), opposite=is_negated)


# --- the tree, grown best first -------------------------------------------------------------------


# A model treats features as independent: kernel density estimates for numbers, frequencies for
# categories and for numbers with few distinct values. Instances that satisfy the tests on a path
# are drawn without rejection: a box truncates single features, and for an M-of-N test the literals
# that hold are drawn first, then the values.

#: Largest number of rows in a model, which is the number of kernels per feature.
MAX_KERNELS = 10_000
#: Largest number of distinct values of a numeric feature that is drawn from these values.
MAX_VALUES = 10
#: Independent streams of random numbers per feature and point.
_PICK, _POSITION, _LITERAL = 0, 1, 2
_STREAMS = 3
#: Stream of random numbers for thinning; larger than the streams of all features.
_THINNING = 2**40


@dataclass(frozen=True, eq=False)
class Features:
    """Ranges and distinct values of the features."""

    lower: np.ndarray
    upper: np.ndarray
    values: Mapping[int, np.ndarray]
    n_categories: Mapping[int, int]

    @cached_property
    def is_discrete(self) -> np.ndarray:
        """True for features that are drawn from a list of values."""
        return np.isin(np.arange(len(self.lower)), list(self.values))

    @classmethod
    def of(
        cls, X: np.ndarray, lower: np.ndarray, upper: np.ndarray, n_categories: Mapping[int, int]
    ) -> Features:
        """Find the distinct values of discrete features in the training rows."""
        values: dict[int, np.ndarray] = {}
        for j in range(X.shape[1]):
            if j in n_categories:
                values[j] = np.arange(float(n_categories[j]))
            elif len(np.unique(X[: 50 * MAX_VALUES, j])) <= MAX_VALUES:
                distinct_values = np.unique(X[:, j])
                # With few rows, a continuous feature has few distinct values, too.
                if len(distinct_values) <= MAX_VALUES and 2 * len(distinct_values) <= len(X):
                    values[j] = distinct_values
        return cls(lower, upper, values, n_categories)


def draw_spread_rows(rows: np.ndarray, key: np.uint64, max_rows: int = MAX_KERNELS) -> np.ndarray:
    """Draw at most `max_rows` rows, one from each of as many ranges of equal length."""
    if len(rows) <= max_rows:
        return rows
    share = _uniform(combine(key, np.arange(max_rows)), _THINNING)
    return rows[((np.arange(max_rows) + share) * (len(rows) / max_rows)).astype(np.intp)]


def _uniform(keys: np.ndarray, stream: Any) -> np.ndarray:
    """Return a number in [0, 1) per key, or per stream and key."""
    return (combine(keys, stream) >> np.uint64(11)) * 2.0**-53


class Kernels:
    """Normal densities around the values of features, truncated at limits.

    Parameters
    ----------
    low, high : ndarray of shape (n_features, 1)
        Limits of each feature.
    centers : ndarray of shape (n_features, n_kernels)
        Values of each feature.
    widths : ndarray of shape (n_features, 1)
        Standard deviation for each feature; 0 for point masses at the values.
    """

    def __init__(
        self, low: np.ndarray, high: np.ndarray, centers: np.ndarray, widths: np.ndarray
    ) -> None:
        self.low, self.high, self.centers = low, high, centers
        self.is_exact = widths == 0
        widths = np.where(self.is_exact, 1.0, widths)
        below, above = (low - centers) / widths, (high - centers) / widths
        # Limits in the upper tail are mirrored, because `ndtr` would round to 1.
        is_mirrored = below > 0
        self._lowest = ndtr(np.where(is_mirrored, -above, below))
        self._span = ndtr(np.where(is_mirrored, -below, above)) - self._lowest
        self._scale = np.where(is_mirrored, -widths, widths)

    @cached_property
    def weights(self) -> np.ndarray:
        """Probability between the limits under each kernel, of shape (n_features, n_kernels)."""
        weights = np.maximum(self._span, 0.0)
        if not self.is_exact.any():
            return weights
        is_inside = (self.centers >= self.low) & (self.centers <= self.high)
        return np.where(self.is_exact, is_inside, weights)

    def quantiles(self, kernels: np.ndarray, position: np.ndarray) -> np.ndarray:
        """Return quantiles at positions in [0, 1) of the given kernel of each feature (row)."""
        at = kernels + np.arange(len(kernels))[:, None] * self.centers.shape[1]
        centers = self.centers.take(at)
        quantile = ndtri(self._lowest.take(at) + position * self._span.take(at))
        drawn = np.clip(centers + self._scale.take(at) * quantile, self.low, self.high)
        return np.where(self.is_exact, centers, drawn) if self.is_exact.any() else drawn


class InstanceModel:
    """Independent distributions of the features, estimated from a sample of the rows.

    The density of a numeric feature is the mean of normal densities around the rows' values,
    truncated at the domain's limits. Their standard deviation is ``s / sqrt(n_rows)``, where s is
    the standard deviation of the values.
    """

    def __init__(self, features: Features, sample: np.ndarray) -> None:
        self.features = features
        self.sample = sample
        self._counts: dict[int, np.ndarray] = {}

    @cached_property
    def _widths(self) -> np.ndarray:
        low, high = self.sample.min(axis=0), self.sample.max(axis=0)
        span = np.where(high > low, high - low, 1.0)
        return np.asarray(span * ((self.sample - low) / span).std(axis=0)) / np.sqrt(
            len(self.sample)
        )

    @cached_property
    def _columns(self) -> np.ndarray:
        return np.ascontiguousarray(self.sample.T)

    def _limits(self, region: Region, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the limits of features in the region's box, each of shape (n_features, 1)."""
        low, high = self.features.lower[numbers], self.features.upper[numbers]
        lower, upper = region.lower[numbers], region.upper[numbers]
        low = np.where(lower >= low, np.nextafter(lower, np.inf), low)
        return low[:, None], np.minimum(high, upper)[:, None]

    def _weights(self, region: Region, j: int) -> np.ndarray:
        """Return the weight of every value or kernel of a feature in the region."""
        if j in self.features.values:
            return self._value_counts(j) * self._values_inside(region, j)
        return np.asarray(self._kernels(region, np.array([j])).weights[0])

    def _value_counts(self, j: int) -> np.ndarray:
        """Count the values of a discrete feature in the sample; counts are cached."""
        if j not in self._counts:
            values = self.features.values[j]
            positions = np.searchsorted(values, self.sample[:, j])
            self._counts[j] = np.bincount(positions, minlength=len(values))
        return self._counts[j]

    def _kernels(self, region: Region, numbers: np.ndarray) -> Kernels:
        """Return the densities of numeric features (rows) in the region."""
        low, high = self._limits(region, numbers)
        return Kernels(low, high, self._columns[numbers], self._widths[numbers, None])

    def _values_inside(self, region: Region, j: int) -> np.ndarray:
        """Return a mask of the values of a discrete feature in the region."""
        if j in region.allowed:
            return region.allowed[j][:-1]
        values = self.features.values[j]
        return (values > region.lower[j]) & (values <= region.upper[j])

    def _draw_features(self, region: Region, features: np.ndarray, keys: np.ndarray) -> np.ndarray:
        """Draw one number of each feature (rows) per key (columns)."""
        points = np.empty((len(features), len(keys)))
        pick = _uniform(keys, _STREAMS * features[:, None] + _PICK)
        is_discrete = self.features.is_discrete[features]
        for row in np.flatnonzero(is_discrete):
            points[row] = self._draw_values(region, int(features[row]), pick[row])
        numeric_rows = np.flatnonzero(~is_discrete)
        step = max(1, _BLOCK_CELLS // (len(self.sample) + len(keys)))
        for first in range(0, len(numeric_rows), step):
            rows = numeric_rows[first : first + step]
            position = _uniform(keys, _STREAMS * features[rows, None] + _POSITION)
            points[rows] = self._draw_numbers(region, features[rows], pick[rows], position)
        return points

    def _draw_values(self, region: Region, j: int, pick: np.ndarray) -> np.ndarray:
        """Draw one value of a discrete feature per random number."""
        weights = self._weights(region, j)
        if not weights.any():  # the model gives the region probability 0
            weights = self._values_inside(region, j).astype(float)
        return self.features.values[j][draw_indices(weights, pick)]

    def _draw_numbers(
        self, region: Region, numbers: np.ndarray, pick: np.ndarray, position: np.ndarray
    ) -> np.ndarray:
        """Draw numbers of numeric features (rows), each from two random numbers (columns).

        The first random number picks the kernel, the second the position in its density.
        """
        kernels = self._kernels(region, numbers)
        low, high = kernels.low, kernels.high
        is_possible = kernels.weights.any(axis=1, keepdims=True)
        picked = np.zeros(pick.shape, dtype=np.intp)
        for row in np.flatnonzero(is_possible):
            picked[row] = draw_indices(kernels.weights[row], pick[row])
        drawn = kernels.quantiles(picked, position)
        if is_possible.all():
            return drawn
        # The model gives the region probability 0.
        return np.where(is_possible, drawn, np.clip(low + position * (high - low), low, high))

    def draw(self, region: Region, key: np.uint64, n: int) -> np.ndarray:
        """Draw n instances in a region whose tests have no feature in common.

        The instances depend only on this model, the region and the key of the node.
        """
        points = np.empty((n, self.sample.shape[1]))
        if n == 0:
            return points
        keys = combine(key, np.arange(n))
        free = set(range(points.shape[1]))
        for test in region.tests:
            probabilities = self._literal_probabilities(region, test)
            needed = np.full(n, test.m)
            tails = tail_probabilities(probabilities)
            for i, literal in enumerate(test.literals):
                j = literal.feature
                free.discard(j)
                # Probability that this literal holds if at least `needed` of the rest hold.
                fewer = np.maximum(needed - 1, 0)
                probability = probabilities[i] * tails[i + 1, fewer] / tails[i, needed]
                literal_holds = _uniform(keys, _STREAMS * j + _LITERAL) < probability
                literal_holds |= tails[i + 1, needed] == 0  # certain, despite rounding errors
                literal_holds &= tails[i + 1, fewer] > 0
                needed = np.maximum(needed - literal_holds, 0)
                for side, part in ((literal, literal_holds), (literal.negated(), ~literal_holds)):
                    if part.any():
                        drawn = self._draw_features(
                            region.within([side]), np.array([j]), keys[part]
                        )
                        points[part, j] = drawn[0]
        others = np.array(sorted(free), dtype=np.intp)
        points[:, others] = self._draw_features(region, others, keys).T
        return points

    def _literal_probabilities(self, region: Region, test: MofNTest) -> np.ndarray:
        """Return the probability of every literal of a test in the region's box."""
        probabilities, uninformed = np.empty(len(test.literals)), np.empty(len(test.literals))
        for i, literal in enumerate(test.literals):
            sides = [region.within([side]) for side in (literal, literal.negated())]
            yes, no = (self._weights(side, literal.feature).sum() for side in sides)
            uninformed[i] = self._uninformed_probability(sides, literal.feature)
            probabilities[i] = yes / (yes + no) if yes + no > 0 else uninformed[i]
        # If the test has probability 0 under the model, the uninformed probabilities are used.
        return probabilities if tail_probabilities(probabilities)[0, test.m] > 0 else uninformed

    def _uninformed_probability(self, sides: list[Region], j: int) -> float:
        """Return the probability of the first of two sides if there is no model.

        It is 1/2, or 0 or 1 if only one side has values.
        """
        if j not in self.features.values:
            return 0.5
        yes, no = (self._values_inside(side, j).any() for side in sides)
        return 0.5 if yes and no else float(yes)

    def differs(self, sample: np.ndarray, region: Region, significance: float) -> bool:
        """Return whether the distribution of rows in a region differs from the model.

        Every feature is tested at the level `significance` divided by the number of features
        (Bonferroni): numbers by the Kolmogorov-Smirnov test, discrete features by the chi-squared
        test. The rows are compared with those rows of the model that are outside of the region but
        in the feature's range; their weights follow from the region's M-of-N tests.
        """
        outside = np.flatnonzero(~region.holds(self.sample))
        if len(sample) < 2 or len(outside) < 2:
            return False
        level = significance / sample.shape[1]
        # Features of M-of-N tests come last, because their weights are the most expensive.
        tested = {literal.feature for test in region.tests for literal in test.literals}
        others = np.array(sorted(set(range(sample.shape[1])) - tested), dtype=np.intp)
        is_discrete = self.features.is_discrete[others]
        for j in others[is_discrete]:
            values = self.sample[outside, j]
            weights = _box_weights(region, j, values)
            if self._p_value(j, sample[:, j], values, weights) < level:
                return True
        numbers = others[~is_discrete]
        step = max(1, _BLOCK_CELLS // (len(sample) + len(outside)))
        for first in range(0, len(numbers), step):
            block = numbers[first : first + step]
            columns = self._columns[block][:, outside]
            inside = columns > region.lower[block, None]
            inside &= columns <= region.upper[block, None]
            if (kolmogorov_smirnov(sample.T[block], columns, inside.astype(float)) < level).any():
                return True
        for test in region.tests:
            conditional = conditional_probabilities(
                self._literal_probabilities(region, test), test.m
            )
            for literal, share in zip(test.literals, conditional, strict=True):
                j = literal.feature
                values = self.sample[outside, j]
                weights = _box_weights(region, j, values)
                weights = _reweight(weights, literal.holds(values), share)
                if self._p_value(j, sample[:, j], values, weights) < level:
                    return True
        return False

    def _p_value(
        self, j: int, column: np.ndarray, values: np.ndarray, weights: np.ndarray
    ) -> float:
        """Return the p-value of the difference between a column and a weighted sample."""
        if j in self.features.values:
            return chi_squared(self.features.values[j], column, values, weights)
        return float(kolmogorov_smirnov(column, values, weights))


def _box_weights(region: Region, j: int, values: np.ndarray) -> np.ndarray:
    """Return 1 for the values of a feature inside the region's box, else 0."""
    if j in region.allowed:
        return region.allowed[j][values.astype(np.intp)].astype(float)
    return ((values > region.lower[j]) & (values <= region.upper[j])).astype(float)


def draw_indices(weights: np.ndarray, share: np.ndarray) -> np.ndarray:
    """Draw indices in proportion to weights, one per share in [0, 1).

    For many draws, each search starts from a table of indices for equally spaced shares.

    Parameters
    ----------
    weights : ndarray of shape (n_weights,)
        Weights of the indices; at least one must be positive.
    share : ndarray of shape (n_draws,)
        Random numbers in [0, 1).

    Returns
    -------
    ndarray of int, shape (n_draws,)
        For each share, the first index whose cumulative weight exceeds that share of the total.

    References
    ----------
    H.-C. Chen, Y. Asau: On generating random variates from an empirical distribution. AIIE
    Transactions 6, 1974.
    """
    positive = np.flatnonzero(weights)
    cumulated = np.cumsum(weights[positive], dtype=float)
    targets = share * cumulated[-1]
    n_entries = 1 << (2 * len(positive)).bit_length()  # a power of 2, so that no product rounds
    if n_entries > len(share):
        index = np.searchsorted(cumulated, targets, side="right")
    else:
        entries = np.arange(n_entries) / n_entries * cumulated[-1]
        first = np.searchsorted(cumulated, entries, side="right")
        index = first.take((share * n_entries).astype(np.intp))
        cumulated[-1] = np.inf  # rounding must not give an index after the last weight
        too_small = np.flatnonzero(cumulated.take(index, mode="clip") <= targets)
        for _ in range(_MAX_STEPS):
            if not len(too_small):
                break
            index[too_small] += 1
            too_small = too_small[cumulated.take(index[too_small]) <= targets[too_small]]
        index[too_small] = np.searchsorted(cumulated, targets[too_small], side="right")
    return positive.take(index, mode="clip")


def tail_probabilities(probabilities: np.ndarray) -> np.ndarray:
    """Return at [i, k] the probability that at least k of the events i, i + 1, ... happen."""
    n = len(probabilities)
    tails = np.zeros((n + 1, n + 1))
    tails[:, 0] = 1.0
    for i in reversed(range(n)):
        tails[i, 1:] = (
            probabilities[i] * tails[i + 1, :-1] + (1 - probabilities[i]) * tails[i + 1, 1:]
        )
    return tails


def conditional_probabilities(probabilities: np.ndarray, m: int) -> np.ndarray:
    """Return the probability of each independent event, given that at least m of them happen."""
    total_probability = tail_probabilities(probabilities)[0, m]
    probabilities_of_others = [
        tail_probabilities(np.delete(probabilities, i))[0, m - 1] for i in range(len(probabilities))
    ]
    return probabilities * np.array(probabilities_of_others) / total_probability


def _reweight(weights: np.ndarray, holds: np.ndarray, share: float) -> np.ndarray:
    """Scale weights so that a literal holds with its probability in the region."""
    result = np.zeros_like(weights)
    for part, part_share in ((holds, share), (~holds, 1 - share)):
        total = weights[part].sum()
        if total > 0:
            result[part] = weights[part] * (part_share / total)
    return result


def _effective_size(weights: np.ndarray) -> float:
    """Return Kish's effective sample size."""
    squares = float((weights**2).sum())
    return float(weights.sum()) ** 2 / squares if squares > 0 else 0.0


def kolmogorov_smirnov(a: np.ndarray, b: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return asymptotic p-values of the Kolmogorov-Smirnov test; the sample `b` is weighted.

    The last axis of each array holds the values of a sample.
    """
    n_rows, total = a.shape[-1], weights.sum(axis=-1, keepdims=True)
    is_tested = (total[..., 0] > 0) & (n_rows > 0)
    total = np.where(total > 0, total, 1.0)
    values = np.concatenate([a, b], axis=-1)
    steps = np.concatenate([np.full(a.shape, 1 / max(n_rows, 1)), -weights / total], axis=-1)
    order = np.argsort(values, axis=-1, kind="stable")
    values = np.take_along_axis(values, order, axis=-1)
    heights = np.cumsum(np.take_along_axis(steps, order, axis=-1), axis=-1)
    heights[..., :-1][values[..., 1:] == values[..., :-1]] = 0.0  # but the last of equal values
    distance = np.abs(heights).max(axis=-1)
    n = np.where(is_tested, total[..., 0] ** 2 / np.maximum((weights**2).sum(axis=-1), 1e-300), 1.0)
    p_values = kolmogorov(np.sqrt(n_rows * n / (n_rows + n)) * distance)
    return np.asarray(np.where(is_tested, p_values, 1.0))


def chi_squared(listed: np.ndarray, a: np.ndarray, b: np.ndarray, weights: np.ndarray) -> float:
    """Return the p-value of a chi-squared test that `a` and the weighted `b` have equal shares."""
    n = _effective_size(weights)
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
    """Node of the tree; a leaf if it has no children."""

    key: np.uint64
    depth: int
    region: Region
    rows: np.ndarray
    model: InstanceModel | None
    points: np.ndarray
    point_labels: np.ndarray
    n_rows: int = 0
    counts: np.ndarray = field(default_factory=lambda: np.empty(0))
    test: MofNTest | None = None
    children: tuple[int, ...] = ()

    @property
    def label(self) -> int:
        """Majority class; ties go to the first class."""
        return int(np.argmax(self.counts))

    @property
    def fidelity(self) -> float:
        """Share of rows and instances for which the black box predicts the majority class."""
        return float(self.counts.max() / self.counts.sum())

    @property
    def is_settled(self) -> bool:
        """True if the node cannot be split: it has no rows or is pure."""
        return self.n_rows == 0 or self.fidelity == 1.0

    def drop_data(self) -> None:
        """Release the data that is only needed to split the node."""
        self.rows, self.points, self.model = self.rows[:0], self.points[:0], None
        self.point_labels = self.point_labels[:0]


@dataclass(frozen=True, eq=False)
class _NodeSplit:
    """A test, its child nodes, and the number of points queried for them."""

    test: MofNTest | None
    nodes: tuple[Node, ...]
    n_queries: int


@dataclass(frozen=True)
class Tree:
    """Tree as a list of nodes in which parents precede their children."""

    nodes: list[Node]
    n_splits: int

    def collapse(self) -> None:
        """Turn each node whose leaves all have the same class into a leaf."""
        for node in reversed(self.nodes):
            if not node.children:
                continue
            first, second = (self.nodes[child] for child in node.children)
            if not first.children and not second.children and first.label == second.label:
                node.children, node.test = (), None
                # The points of the children belong to the node, too.
                node.counts = first.counts + second.counts

    def paths(self) -> dict[int, list[tuple[int, bool]]]:
        """Return the path to every leaf: the nodes above it, and whether their tests hold.

        Smaller subtrees come first, so that an ordered list can omit most conditions.
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


class CollapsedLeaves:
    """Number of leaves that a growing tree will have once it is collapsed.

    Parameters
    ----------
    label : int
        Class of the root. Nodes are numbered in the order of their addition.
    """

    def __init__(self, label: int) -> None:
        self._parents: list[int] = [-1]
        self._children: list[tuple[int, int] | None] = [None]
        #: The class that all leaves below a node share, or None.
        self._labels: list[int | None] = [label]
        self._counts = [1]

    @property
    def n_leaves(self) -> int:
        """Number of leaves of the collapsed tree."""
        return self._counts[0]

    def split(self, number: int, labels: Sequence[int], max_leaves: float) -> bool:
        """Add two leaves below a leaf; return False without a change if there would be too many."""
        before = self._labels[:], self._counts[:]
        first = len(self._parents)
        self._parents += [number, number]
        self._children += [None, None]
        self._children[number] = (first, first + 1)
        self._labels += labels
        self._counts += [1, 1]
        node = number
        while node >= 0:
            children = self._children[node]
            assert children is not None
            left, right = children
            joins = self._labels[left] is not None and self._labels[left] == self._labels[right]
            self._labels[node] = self._labels[left] if joins else None
            self._counts[node] = 1 if joins else self._counts[left] + self._counts[right]
            node = self._parents[node]
        if self.n_leaves <= max_leaves:
            return True
        self._labels, self._counts = before
        del self._parents[first:], self._children[first:]
        self._children[number] = None
        return False


@dataclass(frozen=True, eq=False, kw_only=True)
class TreeGrower:
    """Grow a tree best first.

    The black box is queried at most once for the root and for each node for which a split is
    sought. Trees on the same rows share nodes through `sharing`: the limits of a tree determine
    which nodes are split, but not how. The other fields are parameters of :class:`TrepanExtractor`.
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
        """Grow a tree without collapsing it.

        Splits that would leave too many leaves in the collapsed tree are skipped.
        """
        nodes, n_splits = [self._root()], 0
        collapsed = CollapsedLeaves(nodes[0].label)
        max_leaves = math.inf if self.max_leaf_nodes is None else self.max_leaf_nodes
        queue: list[tuple[float, int]] = []
        self._offer(queue, nodes, 0)
        while (
            queue
            and (self.max_nodes is None or n_splits < self.max_nodes)
            and collapsed.n_leaves < max_leaves
        ):
            check_deadline()
            number = heapq.heappop(queue)[1]
            node = nodes[number]
            test, children = self._split(node)
            labels = [child.label for child in children]
            if test is not None and collapsed.split(number, labels, max_leaves):
                n_splits += 1
                node.test, node.children = test, (len(nodes), len(nodes) + 1)
                nodes.extend(children)
                for child in node.children:
                    self._offer(queue, nodes, child)
            node.drop_data()
        return Tree(nodes, n_splits)

    def _root(self) -> Node:
        key = np.uint64(combine(self.seed, 0))

        def make() -> _NodeSplit:
            X, domain = self.extraction.X, self.extraction.settings["domain"]
            n_categories = {j: len(v) for j, v in self.extraction.categories.items()}
            features = Features.of(X, np.array(domain.lower), np.array(domain.upper), n_categories)
            rows = np.arange(len(X), dtype=np.int32 if len(X) < 2**31 else np.int64)
            region = Region.everything(X.shape[1], n_categories)
            model = InstanceModel(features, X[draw_spread_rows(rows, key)])
            root = Node(key, 0, region, rows, model, X[:0], self.extraction.predictions[:0])
            return _NodeSplit(None, (root,), self._fill([root]))

        return self._shared(("Trepan's root", int(key), self.min_sample), make)[1][0]

    def _split(self, node: Node) -> tuple[MofNTest | None, list[Node]]:
        """Find a node's test and create its children; return None if no test is good enough."""

        def make() -> _NodeSplit:
            test = self._best_test(node)
            if test is None:
                return _NodeSplit(None, (), 0)
            children = self._children(node, test)
            n_queries = self._fill(children)
            for child in children:
                if child.is_settled:
                    child.drop_data()
            return _NodeSplit(test, tuple(children), n_queries)

        # The key identifies the path from the root; the other entries are the parameters of nodes.
        name = "Trepan's node", int(node.key), self.min_sample, self.significance, self.search
        return self._shared(name, make)

    def _shared(
        self, name: Hashable, make: Callable[[], _NodeSplit]
    ) -> tuple[MofNTest | None, list[Node]]:
        """Return a shared split, or make it; nodes are copies."""
        split: _NodeSplit | None = None if self.sharing is None else self.sharing.get(name)
        if split is None:
            split = make()
            if self.sharing is not None:
                self.sharing.put(name, split)
        elif split.n_queries:
            self.extraction.oracle.count_again(split.n_queries)
        # The tree drops the data of its nodes.
        return split.test, [replace(node) for node in split.nodes]

    def _offer(self, queue: list[tuple[float, int]], nodes: list[Node], number: int) -> None:
        """Add a node to the queue unless it must remain a leaf."""
        node = nodes[number]
        deep = self.max_depth is not None and node.depth >= self.max_depth
        reach = node.n_rows / nodes[0].n_rows
        if deep or node.is_settled or self._is_pure(node.counts):
            node.drop_data()
            return
        heapq.heappush(queue, (-reach * (1 - node.fidelity), number))

    def _is_pure(self, counts: np.ndarray) -> bool:
        """Return whether the lower Clopper-Pearson bound of the purity reaches `purity`."""
        majority_count, n = int(counts.max()), int(counts.sum())
        return bool(
            betaincinv(majority_count, n - majority_count + 1, 1 - self.confidence) >= self.purity
        )

    def _best_test(self, node: Node) -> MofNTest | None:
        X = self.extraction.X
        assert node.model is not None
        n_categories = node.model.features.n_categories
        columns: Iterator[np.ndarray | RankedColumn]
        if len(node.points) or 4 * len(node.rows) < len(X) or len(X) > _MAX_RANKED_ROWS:
            # Columns are ranked one at a time, to avoid a copy of the rows.
            columns = (
                np.concatenate([X[node.rows, j], node.points[:, j]]) for j in range(X.shape[1])
            )
        else:
            rows = node.rows.astype(np.intp)
            columns = (
                column.at(rows) if isinstance(column, RankedColumn) else column[rows]
                for column in self._columns
            )
        labels = np.concatenate([self.extraction.predictions[node.rows], node.point_labels])
        binned = bin_instances(columns, labels, len(node.counts), n_categories, len(node.rows))
        used_features = sorted(
            {literal.feature for test in node.region.tests for literal in test.literals}
        )
        return self.search.best_test(binned, used_features)

    @cached_property
    def _columns(self) -> list[np.ndarray | RankedColumn]:
        """Columns of all rows: ranked numbers, and codes of categories."""
        X, categories = self.extraction.X, self.extraction.categories
        return [
            X[:, j].copy() if j in categories else RankedColumn.of(X[:, j])
            for j in range(X.shape[1])
        ]

    def _children(self, node: Node, test: MofNTest) -> list[Node]:
        """Return the two child nodes of a test with their instances."""
        X = self.extraction.X
        in_rows, in_points = test.holds(X, node.rows), test.holds(node.points)
        children = []
        for side, outcome in enumerate((test, test.negated())):
            of_rows, of_points = (~in_rows, ~in_points) if side else (in_rows, in_points)
            key = np.uint64(combine(node.key, side + 1))
            region, rows = node.region.after([outcome]), node.rows[of_rows]
            points, point_labels = node.points[of_points], node.point_labels[of_points]
            model, sample = node.model, X[draw_spread_rows(rows, key)]
            assert model is not None
            if self.min_sample and model.differs(sample, region, self.significance):
                model = InstanceModel(model.features, sample)
                # The instances of the node follow the old model.
                points, point_labels = points[:0], point_labels[:0]
            children.append(Node(key, node.depth + 1, region, rows, model, points, point_labels))
        return children

    def _fill(self, nodes: Sequence[Node]) -> int:
        """Draw the missing instances of nodes, query the black box once, and update the counts.

        Return the number of queried instances.
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


# --- alternating optimization of a grown tree -----------------------------------------------------


class TreeRefiner:
    """Replace the tests of a grown tree one by one, so that it agrees with more predictions.

    A row depends on the test of a node only if exactly one of the node's branches predicts it
    correctly. The best test therefore solves a problem with two classes, the branches. Every
    replacement increases the number of rows that the tree predicts correctly.

    Parameters
    ----------
    tree : Tree
        The tree, which is modified.
    extraction : Extraction
        Rows with predictions of the black box.
    search : MofNSearch
        Finds tests.

    References
    ----------
    M. Carreira-Perpiñán, P. Tavallali: Alternating optimization of decision trees, with application
    to learning sparse oblique trees. Advances in Neural Information Processing Systems 31, 2018.
    """

    def __init__(self, tree: Tree, extraction: Extraction, search: MofNSearch) -> None:
        self.nodes = tree.nodes
        self.X, self.y = extraction.X, np.asarray(extraction.predictions)
        self.n_categories = {j: len(values) for j, values in extraction.categories.items()}
        self.min_samples_leaf = search.min_samples_leaf
        search = replace(search, min_samples_leaf=0)
        self.searches = search, replace(search, gain=accuracy_gain)
        self.labels = [node.label for node in self.nodes]
        self.parents: dict[int, int] = {}
        #: The nodes of the tree without collapsed ones; parents precede their children.
        self.order = [0]
        for number in self.order:
            children = self.nodes[number].children
            self.order.extend(children)
            self.parents |= dict.fromkeys(children, number)

    def refine(self, max_passes: int) -> None:
        """Optimize all tests from the leaves to the root, until a pass changes none."""
        for _ in range(max_passes):
            n_changed = 0
            for number in reversed(self.order):
                check_deadline()
                rows = self._rows_at(number)
                if self.nodes[number].children:
                    n_changed += self._replace_test(number, rows)
                elif len(rows):
                    self.labels[number] = int(np.bincount(self.y[rows]).argmax())
            if not n_changed:
                break
        self._count_rows()

    def _rows_at(self, number: int) -> np.ndarray:
        """Return the rows that reach a node."""
        if number not in self.parents:
            return np.arange(len(self.X))
        parent = self.parents[number]
        rows, test = self._rows_at(parent), self.nodes[parent].test
        assert test is not None
        holds = test.holds(self.X, rows)
        return rows[holds if number == self.nodes[parent].children[0] else ~holds]

    def _leaves_of(self, number: int, rows: np.ndarray) -> np.ndarray:
        """Return the leaf below a node that each row reaches."""
        node = self.nodes[number]
        if not node.children:
            return np.full(len(rows), number)
        assert node.test is not None
        holds = node.test.holds(self.X, rows)
        leaves = np.empty(len(rows), dtype=np.intp)
        for child, is_at_child in zip(node.children, (holds, ~holds), strict=True):
            leaves[is_at_child] = self._leaves_of(child, rows[is_at_child])
        return leaves

    def _replace_test(self, number: int, rows: np.ndarray) -> bool:
        """Replace the test of a node if the tree then predicts more rows correctly."""
        test = self.nodes[number].test
        assert test is not None
        labels, y = np.array(self.labels), self.y[rows]
        leaves = [self._leaves_of(child, rows) for child in self.nodes[number].children]
        is_right = [labels[at] == y for at in leaves]
        depends = is_right[0] != is_right[1]
        targets = is_right[0][depends].astype(np.intp)
        deciding = rows[depends]
        fewest = int(np.count_nonzero(test.holds(self.X, deciding) != targets))
        if fewest == 0 or fewest == len(targets) or targets.min() == targets.max():
            return False
        best = None
        for candidate in self._candidates(number, deciding, targets):
            n_wrong = int(np.count_nonzero(candidate.holds(self.X, deciding) != targets))
            if n_wrong < fewest and self._keeps_leaves(candidate, rows, leaves):
                best, fewest = candidate, n_wrong
        if best is not None:
            self.nodes[number] = replace(self.nodes[number], test=best)
        return best is not None

    def _candidates(self, number: int, rows: np.ndarray, targets: np.ndarray) -> Iterator[MofNTest]:
        """Yield tests that separate the rows by their correct branch."""
        columns = (self.X[rows, j] for j in range(self.X.shape[1]))
        binned = bin_instances(columns, targets, 2, self.n_categories, len(rows))
        used_features = sorted(self._features_above(number) | self._features_below(number))
        for search in self.searches:
            test = search.best_test(binned, used_features)
            if test is not None:
                yield test
                yield test.negated()

    def _keeps_leaves(self, test: MofNTest, rows: np.ndarray, leaves: Sequence[np.ndarray]) -> bool:
        """Return whether enough rows reach each nonempty leaf below a test."""
        reached = np.where(test.holds(self.X, rows), *leaves)
        n_rows = np.bincount(reached)
        return bool(n_rows[n_rows > 0].min() >= self.min_samples_leaf)

    def _features_in(self, number: int) -> set[int]:
        """Return the features of a test if it has several literals, else none."""
        test = self.nodes[number].test
        literals = () if test is None or len(test.literals) == 1 else test.literals
        return {literal.feature for literal in literals}

    def _features_above(self, number: int) -> set[int]:
        features: set[int] = set()
        while number in self.parents:
            number = self.parents[number]
            features |= self._features_in(number)
        return features

    def _features_below(self, number: int) -> set[int]:
        features: set[int] = set()
        for child in self.nodes[number].children:
            features |= self._features_in(child) | self._features_below(child)
        return features

    def _count_rows(self) -> None:
        """Count the rows of the leaves, and remove leaves that no row reaches."""
        n_classes = len(self.nodes[0].counts)
        leaves = self._leaves_of(0, np.arange(len(self.X)))
        for number in reversed(self.order):
            node = self.nodes[number]
            if node.children:
                remaining = [child for child in node.children if self.nodes[child].n_rows]
                if len(remaining) == 1:  # the node becomes its only child
                    self.nodes[number] = replace(self.nodes[remaining[0]], key=node.key)
                else:
                    n_rows = sum(self.nodes[child].n_rows for child in node.children)
                    self.nodes[number] = replace(node, n_rows=n_rows)
            else:
                counts = np.bincount(self.y[leaves == number], minlength=n_classes)
                self.nodes[number] = replace(node, counts=counts, n_rows=int(counts.sum()))


# --- the extractor --------------------------------------------------------------------------------


#: Largest magnitude of features; distances between larger numbers would overflow.
_LARGEST = 1e300


@documented
class TrepanExtractor(BaseExtractor):
    """Rules from a tree of M-of-N tests, with queries of the black box at nodes with few rows.

    Use it for classifiers if the class depends on how many conditions hold, or if there are few
    rows. Nodes with fewer than `min_sample` rows get additional instances, which are drawn at
    random and labeled by the black box. Numbers and categories may be mixed.

    Parameters
    ----------
    estimator : estimator
        The black box: a scikit-learn classifier. An unfitted one is cloned and fitted on (X, y);
        wrap a fitted one in ``FrozenEstimator``, or another model's function in
        :class:`CallableClassifier`.
    max_leaf_nodes : int or None, default=None
        Largest number of leaves, each of which is a rule; at least 2. Siblings that predict the
        same class are joined and count as one. None: limited only by `max_nodes`.
    max_nodes : int or None, default=15
        Largest number of tests in the tree; None for no limit.
    max_depth : int or None, default=None
        Largest number of tests on a path; None for no limit.
    min_sample : int, default=1000
        Smallest number of rows and instances at a node; missing instances are drawn. 0: no
        instances are drawn, and the black box is queried once.
    min_samples_leaf : int, default=1
        Smallest number of training rows on either side of a test. 0 allows leaves without rows.
    max_literals : int, default=4
        Largest number of conditions in a test, the N of M-of-N; 1 for ordinary tests.
    beam_width : int, default=2
        Number of M-of-N tests that the beam search keeps; 1 is hill climbing.
    purity : float, default=0.99
        A node is not split if one class has at least this share.
    confidence : float, default=0.95
        Confidence with which the share must be at least `purity`.
    significance : float, default=0.05
        Level of the statistical tests for extensions of M-of-N tests and for new models; see Notes.
    min_gain : float, default=0.0
        Information gain (bits per instance) that a test must exceed.
    refinement_passes : int, default=0
        Largest number of passes that improve the grown tree's tests, see Notes. 0 as in the paper.
    simplify : bool, default=True
        True: return an ordered list without conditions that earlier rules make redundant. False:
        return one independent rule per leaf.
    {common}
    random_state : int, RandomState instance or None, default=None
        Seed of the instances. Pass an int for reproducible rules.

    Attributes
    ----------
    rules_ : RuleSet
        The rules. Their ``n_rows`` count training rows; their ``class_counts`` count the black
        box's predictions for training rows and drawn instances.
    n_rules_ : int
        Number of rules.
    n_splits_ : int
        Number of splits before leaves of the same class are joined. The black box is queried once
        for the rows, and at most once for the root and for each node for which a split is sought.
    coverage_ : float
        Share of the training rows that some rule covers: 1.
    completeness_ : float
        Share of the domain's volume that some rule covers: 1.
    {fitted}

    Notes
    -----
    The tree grows best first: it always splits the leaf with the largest ``reach * (1 -
    fidelity)``, where reach is the share of the training rows in the leaf and fidelity the share of
    its majority class. Siblings that predict the same class are joined at the end. A split is
    skipped if more than `max_leaf_nodes` leaves would then remain.

    *Instances.* A node with fewer than `min_sample` rows draws the missing instances from a model
    with independent features. Numbers follow an equal mixture of normal densities around the values
    of m rows. Each has the standard deviation ``s / sqrt(m)``, where s is that of the values, and
    is truncated at the limits of the training rows. Categories, and numbers with at most 10
    distinct values, have the frequencies of the rows. All instances satisfy the tests on the path,
    without rejection. A node gets its own model if its rows differ significantly from the model of
    its parent (Kolmogorov-Smirnov or chi-squared test per feature, Bonferroni correction);
    otherwise it keeps the model and instances of its parent. Models use at most 10 000 rows.

    *Tests.* The seed is the test of one feature with the largest information gain: a cut halfway
    between neighboring values where the class changes (at most 255 cuts), or a set of categories.
    The beam search extends m-of-n to m-of-(n+1) or (m+1)-of-(n+1) by a further condition, if the
    gain rises significantly: for N instances, ``2 N ln(2) (gain' - gain)`` must exceed the
    chi-squared quantile with (classes - 1) degrees of freedom. Its level is `significance` divided
    by the number of possible extensions. No feature occurs twice in an M-of-N test, or in two such
    tests on one path. The negation of "at least m of n hold" is written as "at least n - m + 1 of
    the n opposites hold".

    *Refinement.* `refinement_passes` is the largest number of passes of alternating optimization:
    from the leaves to the root, one test at a time is optimized while the others are fixed. A row
    depends on a test only if exactly one branch predicts it correctly. The best tests of these rows
    by information gain and by accuracy are tried; one of them is used if the tree then agrees with
    more predictions for the rows and query rows, without drawn instances. Empty leaves are removed.

    Unlike the published algorithm, tests without training rows on one side are not used
    (`min_samples_leaf`), because they would add rules that apply to no training row.

    *Comparison with PSyKE.* PSyKE's Trepan draws no instances and has no M-of-N tests. It
    corresponds to ``min_sample=0, max_literals=1, max_depth=3``; both had the same held-out
    fidelity in all six splits of iris with one-hot columns (3 nearest neighbors; mean 0.971; 0.970
    with our defaults, from 0.89 to 1 by split and seed). Drawn instances reduce fidelity if
    features depend on each other: pass a categorical column rather than its one-hot columns,
    several of which may be 1 in a drawn instance.

    References
    ----------
    M. Craven, J. Shavlik: Extracting tree-structured representations of trained networks. Advances
    in Neural Information Processing Systems 8, 1996.

    M. Carreira-Perpiñán, P. Tavallali: Alternating optimization of decision trees, with application
    to learning sparse oblique trees. Advances in Neural Information Processing Systems 31, 2018
    (refinement).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> from skescore.extractors import TrepanExtractor
    >>> data = load_iris(as_frame=True)
    >>> labels = data.target_names[data.target]
    >>> extractor = TrepanExtractor(KNeighborsClassifier(9), max_leaf_nodes=3, random_state=0)
    >>> print(extractor.fit(data.data, labels).rules_)
    1. IF petal length (cm) ≤ 2.466 THEN setosa
       [50 rows, 100 % of 1000 queried rows agree with the model, 100 % right (data)]
    2. ELSE IF at least 1 of (petal length (cm) > 5.077; petal width (cm) > 1.993) THEN virginica
       [44 rows, 99.1 % of 1000 queried rows agree with the model, 98 % right (data)]
    3. ELSE versicolor
       [56 rows, 94 % of 1000 queried rows agree with the model, 88 % right (data)]
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
        refinement_passes: int = 0,
        simplify: bool = True,
        features: Any = None,
        sampling: Any = None,
        n_queries: int = N_QUERIES,
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
        self.refinement_passes = refinement_passes
        self.simplify = simplify
        self.features = features
        self.sampling = sampling
        self.n_queries = n_queries
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
        check.check_integer("refinement_passes", self.refinement_passes, 0)
        check.check_flag("simplify", self.simplify)

    def _extract(self, extraction: Extraction) -> RuleSet:
        extraction.check_magnitude(_LARGEST, "distances between them would overflow")
        n_classes = len(np.unique(extraction.predictions))
        if self.max_leaf_nodes is not None and self.max_leaf_nodes < n_classes:
            warnings.warn(
                f"max_leaf_nodes={self.max_leaf_nodes} is less than the {n_classes} classes that "
                "the black box predicts, so some of them are never predicted.",
                UserWarning,
                stacklevel=3,
            )
        sharing = None
        if self.random_state is not None:  # without a seed, results must not be shared
            sharing = Sharing.of(extraction)
        search = MofNSearch(
            self.max_literals,
            self.beam_width,
            self.significance,
            self.min_gain,
            self.min_samples_leaf,
        )
        tree = TreeGrower(
            extraction=extraction,
            search=search,
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
        if self.refinement_passes:
            TreeRefiner(tree, extraction, search).refine(self.refinement_passes)
            tree.collapse()
        return self._read(tree, extraction)

    def _read(self, tree: Tree, extraction: Extraction) -> RuleSet:
        """Convert the leaves to rules."""
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
