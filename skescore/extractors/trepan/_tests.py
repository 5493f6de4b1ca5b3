"""Tests of Trepan's nodes, what is left of the domain behind them, and the search for the best.

A test holds where at least m of n literals do. Along a path the tests that are conjunctions narrow
one box; the others stay as they are. Both outcomes of every test can be written so, since "not at
least m of n hold" means "at least n - m + 1 of the n opposites hold".
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import chdtri

from skescore.rules._conditions import AtLeast, Condition, Interval, OneOf

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
        held: Any = 0
        for literal in self.literals:
            column = X[:, literal.feature]
            held = held + literal.holds(column if rows is None else column[rows]).astype(np.int32)
        return np.asarray(held >= self.m)

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
            kept: list[Test] = []
            for test in tests:
                known = [region._decided(literal) for literal in test.literals]
                left = tuple(t for t, d in zip(test.literals, known, strict=True) if d is None)
                m = test.m - sum(d is True for d in known)
                if m >= 1 and m == len(left):  # a conjunction goes into the box
                    region = region.within(left)
                    settled = False
                elif m >= 1:
                    kept.append(Test(m, left))
            tests = kept
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


def find_cuts(values: np.ndarray, labels: np.ndarray, most: int = MOST_BINS - 1) -> np.ndarray:
    """Cuts half-way between neighbouring values where the class changes.

    No other cut can have the largest information gain. Of more than 10 000 values every so many-th
    is looked at; more than `most` cuts are thinned evenly.

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
    if len(below) > most:
        kept = np.linspace(0, len(below) - 1, most).round().astype(np.intp)
        below, above = below[kept], above[kept]
    middle = below / 2 + above / 2
    # The middle of neighbouring floats rounds to one of them.
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
            found = find_cuts(values, labels)
            cuts.append(found)
            n_bins.append(len(found) + 1)
            code = np.searchsorted(found, values, side="left")
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

    def best_test(self, binned: Binned, taken: Sequence[int] = ()) -> Test | None:
        """The best test at a node, or None if none gains anything.

        Features that are `taken` occur in tests of several literals further up; such tests may not
        use them again, so that their literals stay independent.
        """
        total = binned.count()
        seed = self._best_seed(binned, total)
        if seed is None or seed.gain <= max(self.min_gain, 10.0**-_DECIMALS):
            return None
        best, beam = seed, [seed]
        if seed.test.literals[0].feature in taken:
            return seed.test
        needed = self._needed_gain(total, len(binned.codes) - len(taken))
        for _ in range(1, self.max_literals):
            beam = self._extended(binned, total, beam, taken, needed)
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

    def _extended(
        self,
        binned: Binned,
        total: np.ndarray,
        beam: list[_Candidate],
        taken: Sequence[int],
        needed: float,
    ) -> list[_Candidate]:
        """The best extensions by one literal that are worth it, best first."""
        found: list[tuple[float, _Candidate, Test]] = []
        for candidate in beam:
            used = {literal.feature for literal in candidate.test.literals} | set(taken)
            for more in (0, 1):
                m = candidate.test.m + more
                # Those that lack one literal pass if the new one holds; the others are decided.
                open_ones = np.flatnonzero(candidate.held == m - 1)
                sure = binned.count(np.flatnonzero(candidate.held >= m))
                for feature in range(len(binned.codes)):
                    if feature in used or not len(open_ones):
                        continue
                    table = binned.table(feature, open_ones)
                    for gain, literal in self._best_literals(
                        binned, feature, table, sure, total, (False, True)
                    ):
                        if literal is not None and gain - candidate.gain >= needed:
                            test = Test(m, (*candidate.test.literals, literal))
                            found.append((gain, candidate, test))
        found.sort(key=lambda entry: -entry[0])  # stable: the first found wins ties
        kept: list[_Candidate] = []
        seen: list[tuple[int, frozenset[Literal]]] = []
        for gain, parent, test in found:
            key = test.m, frozenset(test.literals)
            if key in seen:
                continue
            seen.append(key)
            kept.append(_Candidate(gain, test, parent.held + binned.holds(test.literals[-1])))
            if len(kept) == self.beam_width:
                break
        return kept

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
        sure: np.ndarray,
        total: np.ndarray,
        directions: Sequence[bool],
    ) -> list[tuple[float, Literal | None]]:
        """The literal on one feature that completes a test best, and the test's gain, each way.

        All counts are by class, with rows in the last column: `table` those of the instances for
        which the literal decides, by bin; `sure` those for which the test holds anyway; `total`
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
        whole = table.sum(axis=0)
        holding = sure + np.stack([whole - inside if turned else inside for turned in directions])
        gains = np.round(information_gain(holding[..., :-1], total[:-1]), _DECIMALS)
        rows = holding[..., -1]
        gains[(rows < self.min_samples_leaf) | (total[-1] - rows < self.min_samples_leaf)] = -1.0
        found: list[tuple[float, Literal | None]] = []
        for turned, at, gain in zip(
            directions, gains.argmax(axis=1).tolist(), gains.max(axis=1).tolist(), strict=True
        ):
            if cuts is not None:
                found.append((gain, Literal(feature, float(cuts[at]), opposite=turned)))
                continue
            codes, opposite = subsets[at], turned
            others = np.setdiff1d(np.flatnonzero(table[:, :-1].any(axis=1)), codes)
            if len(others) < len(codes):  # the shorter list reads better
                codes, opposite = others, not turned
            found.append((gain, Literal(feature, codes=tuple(codes.tolist()), opposite=opposite)))
        return found


def _subsets(table: np.ndarray) -> list[np.ndarray]:
    """Sets of codes worth trying: single ones, and the first ones in order of a class's share.

    With two classes the best of all sets is among them.

    References
    ----------
    L. Breiman, J. Friedman, C. Stone, R. Olshen: Classification and Regression Trees, 1984,
    theorem 4.5.
    """
    seen = np.flatnonzero(table.any(axis=1))
    if len(seen) < 2:
        return []
    subsets = [seen[i : i + 1] for i in range(len(seen))]
    counts = table[seen]
    classes = np.flatnonzero(counts.any(axis=0))
    for label in classes[1:] if len(classes) == 2 else classes:
        share = counts[:, label] / counts.sum(axis=1)
        order = np.argsort(-share, kind="stable")
        subsets.extend(np.sort(seen[order[:size]]) for size in range(2, len(seen) - 1))
    return subsets
