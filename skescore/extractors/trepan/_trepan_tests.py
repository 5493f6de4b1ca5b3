"""Tests of Trepan's nodes, and what is left of the domain behind them.

A test asks whether at least m of n literals hold. Along a path the tests that are conjunctions
narrow one box; the others stay as they are. Both outcomes of every test can be written so, since
"not at least m of n hold" means "at least n - m + 1 of the n opposites hold".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from skescore.rules._conditions import AtLeast, Condition, Interval, OneOf


@dataclass(frozen=True, slots=True)
class Literal:
    """One elementary question about one feature.

    Parameters
    ----------
    feature : int
        Column index.
    cut : float, default=0.0
        Numbers: holds if the number is at most this.
    codes : tuple of int, default=()
        Categories: holds if the value is one of these; empty for numbers.
    opposite : bool, default=False
        Turns the answer round.
    """

    feature: int
    cut: float = 0.0
    codes: tuple[int, ...] = ()
    opposite: bool = False

    def holds(self, values: np.ndarray) -> np.ndarray:
        """Tell for every value of the feature whether the literal holds."""
        inside = np.isin(values, self.codes) if self.codes else values <= self.cut
        return ~inside if self.opposite else inside

    def negated(self) -> Literal:
        """The opposite question."""
        return replace(self, opposite=not self.opposite)


@dataclass(frozen=True, slots=True)
class Test:
    """At least `m` of the literals hold; no two of them ask about the same feature."""

    m: int
    literals: tuple[Literal, ...]

    def holds(self, X: np.ndarray, rows: np.ndarray | None = None) -> np.ndarray:
        """Tell for every row (of the given ones) whether the test holds."""
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
    """What the tests on a path leave: a box, and tests that no box can express.

    Parameters
    ----------
    lower, upper : ndarray of shape (n_features,)
        Numbers x with ``lower < x <= upper``.
    allowed : mapping of int to ndarray of bool
        For every categorical feature which codes are left; one more entry at the end stands for
        all values that are none of the known categories.
    tests : tuple of Test
        Tests that must hold as well. Literals that the box decides are left out of them.
    """

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
        """Tell for every row whether it lies in the region."""
        inside = np.asarray(((self.lower < X) & (self.upper >= X)).all(axis=1))
        for j, mask in self.allowed.items():
            inside &= mask[X[:, j].astype(np.intp)]
        for test in self.tests:
            inside &= test.holds(X)
        return inside

    def conditions(self, categories: Mapping[int, tuple[Any, ...]]) -> list[Condition]:
        """Write the region as conditions of a rule.

        Parameters
        ----------
        categories : mapping of int to tuple
            The values that the codes of each categorical feature stand for.
        """
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
