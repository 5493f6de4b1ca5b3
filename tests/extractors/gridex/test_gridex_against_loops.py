"""GridEx compared with plain loops that use exact fractions and all pairs of cells.

It follows the published description step by step and shares no code with the package. Fractions
make every comparison exact, so that ties are ties.
"""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skescore.black_boxes import CallableClassifier, CallableRegressor
from skescore.extractors import GridExExtractor

#: Every box is cut along all features at once, as published.
whole_grid = partial(GridExExtractor, max_rules=None, n_features_to_select=None, depth=2)

Interval = tuple[Fraction, Fraction]


@dataclass
class Cell:
    """A box with its rows, and its slice numbers [first, behind last) inside its parent."""

    intervals: list[Interval]
    slices: list[tuple[int, int]]
    rows: list[int]


class SlowGridEx:
    def __init__(self, X, answers, *, classes, threshold):
        self.X = [[Fraction(v) for v in row] for row in X.tolist()]
        self.answers = answers.tolist()
        self.classes = classes
        self.threshold = Fraction(threshold)

    # --- statistics ---

    def output(self, rows):
        answers = [self.answers[i] for i in rows]
        if self.classes is None:
            return sum(map(Fraction, answers)) / len(answers)
        counts = Counter(answers)
        return max(self.classes, key=lambda c: (counts[c], -self.classes.index(c)))

    def diversity(self, rows):
        """Return the share outside the largest class, or the squared deviation in regression."""
        answers = [self.answers[i] for i in rows]
        if self.classes is None:
            mean = self.output(rows)
            return sum((Fraction(a) - mean) ** 2 for a in answers) / len(answers)
        return 1 - Fraction(max(Counter(answers).values()), len(answers))

    def homogeneous(self, rows):
        limit = self.threshold if self.classes is not None else self.threshold**2
        return self.diversity(rows) < limit

    # --- the algorithm ---

    def extract(self, levels):
        margin = Fraction(1, 10**9)
        domain = []
        for column in zip(*self.X, strict=True):
            extra = margin * (max(column) - min(column)) or 1  # a constant is inside
            domain.append((min(column) - extra, max(column) + extra))
        frontier = [Cell(domain, [], list(range(len(self.X))))]
        done = []
        for number, slices in enumerate(levels):
            following = []
            for box in frontier:
                if number > 0 and self.homogeneous(box.rows):
                    done.append(box)
                else:
                    following += self.merge(self.cut(box, slices))
            frontier = following
        return done + frontier

    def cut(self, box, slices):
        edges = [
            [a + i * (b - a) / k for i in range(k + 1)]
            for (a, b), k in zip(box.intervals, slices, strict=True)
        ]
        cells = []
        for numbers in itertools.product(*(range(k) for k in slices)):  # the last one fastest
            intervals = [(e[i], e[i + 1]) for e, i in zip(edges, numbers, strict=True)]
            rows = [i for i in box.rows if inside(self.X[i], intervals)]
            if rows:
                cells.append(Cell(intervals, [(i, i + 1) for i in numbers], rows))
        return cells

    def merge(self, cells):
        while True:
            best = None
            for i, j in itertools.combinations(range(len(cells)), 2):
                one, other = cells[i], cells[j]
                if not touch(one, other):
                    continue
                rows = one.rows + other.rows
                if self.classes is not None:
                    admissible = self.output(one.rows) == self.output(other.rows)
                else:
                    admissible = self.homogeneous(rows)
                if admissible and (best is None or self.diversity(rows) < best[0]):
                    best = self.diversity(rows), i, j
            if best is None:
                return cells
            _, i, j = best
            union = joined(cells[i], cells[j])
            cells = [c for number, c in enumerate(cells) if number not in (i, j)] + [union]


def inside(row, intervals):
    return all(a <= x < b for x, (a, b) in zip(row, intervals, strict=True))


def touch(one, other):
    """Return whether two cells differ in one feature only and share an edge there."""
    different = [(p, q) for p, q in zip(one.slices, other.slices, strict=True) if p != q]
    return len(different) == 1 and (
        different[0][0][1] == different[0][1][0] or different[0][1][1] == different[0][0][0]
    )


def joined(one, other):
    def hull(pairs_one, pairs_other):
        return [
            (min(a, c), max(b, d)) for (a, b), (c, d) in zip(pairs_one, pairs_other, strict=True)
        ]

    return Cell(
        hull(one.intervals, other.intervals),
        hull(one.slices, other.slices),
        one.rows + other.rows,
    )


# --- comparison ---


def fast(X, answers, *, classes, **parameters: Any):
    """Return the rules of the package for a black box that predicts these labels."""
    # Only the rows are queried, so the function may ignore its argument.
    if classes is None:
        black_box: Any = CallableRegressor(lambda rows: answers)
    else:
        black_box = CallableClassifier(lambda rows: answers, classes=classes)
    return whole_grid(black_box, min_examples=1, **parameters).fit(X)


def slices_of(importances, counts, limits):
    """Return slices per feature: the scan over increasing limits stops at the first unmet one."""
    result = []
    for importance in importances:
        k = 1
        for count, limit in zip(counts, limits, strict=True):
            if importance < limit:
                break
            k = count
        result.append(k)
    return result


def assert_same(extractor, slow, boxes):
    X = slow.X
    lower = np.array([float(min(column)) for column in zip(*X, strict=True)])
    upper = np.array([float(max(column)) for column in zip(*X, strict=True)])
    spread = np.where(upper > lower, upper - lower, 1)
    table = extractor.rules_.boxes

    def key(low, high):
        return tuple(
            np.round((np.concatenate([low, high]) - np.tile(lower, 2)) / np.tile(spread, 2), 6)
        )

    ours = {}
    for index, rule in enumerate(extractor.rules_):
        low = np.maximum(table.lower[index], lower)
        ours[key(low, np.minimum(table.upper[index], upper))] = rule
    theirs = {}
    for box in boxes:
        low, high = (np.array([float(i[side]) for i in box.intervals]) for side in (0, 1))
        theirs[key(np.maximum(low, lower), np.minimum(high, upper))] = box
    assert set(ours) == set(theirs)
    assert len(ours) == len(extractor.rules_) == len(boxes)
    for where, box in theirs.items():
        rule = ours[where]
        assert rule.statistics.n_rows == len(box.rows)
        if slow.classes is None:
            assert rule.output == pytest.approx(float(slow.output(box.rows)), abs=1e-9)
            expected = float(slow.diversity(box.rows)) ** 0.5
            assert rule.statistics.standard_deviation == pytest.approx(expected, abs=1e-6)
        else:
            assert rule.output == slow.output(box.rows)
            counts = Counter(slow.answers[i] for i in box.rows)
            assert rule.statistics.class_counts == tuple(counts[c] for c in slow.classes)


@st.composite
def problems(draw):
    """Draw rows, predictions and parameters."""
    n_features = draw(st.integers(1, 4))
    n_rows = draw(st.integers(2, 40))
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    X = random.uniform(-3, 7, size=(n_rows, n_features)) * 10.0 ** random.integers(-3, 4)
    for feature in range(n_features):
        kind = draw(st.sampled_from(["plain", "plain", "plain", "constant", "copy", "clustered"]))
        if kind == "constant":
            X[:, feature] = X[0, feature]
        elif kind == "copy":
            X[:, feature] = X[:, 0]
        elif kind == "clustered":
            X[:, feature] = X[random.integers(0, min(3, n_rows), n_rows), feature] + random.normal(
                size=n_rows
            ) * 0.01 * np.ptp(X[:, feature])
    classes = draw(st.sampled_from([None, None, ["a", "b"], ["a", "b", "c", "d"]]))
    if classes is None:
        pick = draw(st.sampled_from(["numbers", "few", "smooth"]))
        if pick == "numbers":
            answers = random.normal(size=n_rows)
        elif pick == "few":
            answers = random.integers(0, 3, n_rows) * 0.1
        else:
            answers = X[:, 0] / (np.abs(X[:, 0]).max() + 1) + (X[:, -1] > X[:, -1].mean())
    else:
        answers = np.array(classes)[random.integers(0, len(classes), n_rows)]
        if draw(st.booleans()):  # mostly one class, so that boxes become pure
            answers = np.where(X[:, 0] > np.median(X[:, 0]), answers, "a")
    depth = draw(st.integers(1, 2))
    threshold = draw(st.sampled_from([0, 0.001, 0.07, 0.137, 0.3137, 0.61, 2.0]))
    importances = np.round(random.uniform(size=n_features), 3)
    levels = []
    for _ in range(depth):
        n_limits = draw(st.integers(1, 2))
        limits = sorted(
            draw(
                st.sets(st.sampled_from([0.0, 0.2, 0.5, 0.9]), min_size=n_limits, max_size=n_limits)
            )
        )
        counts = draw(st.lists(st.integers(1, 4), min_size=n_limits, max_size=n_limits))
        levels.append((counts, limits))
    return X, answers, classes, threshold, importances, levels


@settings(max_examples=40)
@pytest.mark.filterwarnings("ignore:The black box predicts")
@given(problems())
def test_gridex_equals_plain_loops(problem):
    X, answers, classes, threshold, importances, levels = problem
    extractor = fast(
        X,
        answers,
        classes=classes,
        threshold=threshold,
        importances=importances,
        level_strategies=[
            {"n_slices": counts, "importance_threshold": limits} for counts, limits in levels
        ],
    )
    slow = SlowGridEx(X, answers, classes=classes, threshold=threshold)
    varies = np.ptp(X, axis=0) > 0
    slices = [
        [k if v else 1 for k, v in zip(slices_of(importances, *level), varies, strict=True)]
        for level in levels
    ]
    assert_same(extractor, slow, slow.extract(slices))
