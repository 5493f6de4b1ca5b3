"""Straightforward GridEx and row-by-row rule prediction: the peer that speed is measured against.

Written for obviousness: every possible cell is visited, every cell asks the black box anew, every
pair of cells is tried for joining, every row is compared with one rule after the other.
"""

from __future__ import annotations

from itertools import combinations, product
from typing import Any

import numpy as np


def extract(X: np.ndarray, black_box: Any, n_slices: list[int], depth: int, threshold: float):
    """Give a list of (lower, upper, label) boxes."""
    margin = 1e-9 * np.ptp(X, axis=0)
    frontier = [(X.min(axis=0) - margin, X.max(axis=0) + margin, np.inf)]
    finished_boxes = []
    for _ in range(depth):
        following = []
        for lower, upper, diversity in frontier:
            if diversity < threshold:
                finished_boxes.append((lower, upper, diversity))
                continue
            cells = []
            for index in product(*map(range, n_slices)):
                step = (upper - lower) / n_slices
                a = lower + np.array(index) * step
                cell = (a, a + step)
                if _inside(X, *cell).any():
                    cells.append(cell)
            following += _join(X, black_box, cells)
        frontier = following
    finished_boxes += frontier
    return [(a, b, _label(X, black_box, a, b)[0]) for a, b, _ in finished_boxes]


def _inside(X: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
    return (np.greater_equal(X, lower) & np.less(X, upper)).all(axis=1)


def _label(X: np.ndarray, black_box: Any, lower: np.ndarray, upper: np.ndarray):
    labels, counts = np.unique(black_box.predict(X[_inside(X, lower, upper)]), return_counts=True)
    return labels[counts.argmax()], 1 - counts.max() / counts.sum()


def _adjacent(one: tuple, other: tuple) -> bool:
    differs = ~(np.isclose(one[0], other[0]) & np.isclose(one[1], other[1]))
    if differs.sum() != 1:
        return False
    j = int(np.flatnonzero(differs)[0])
    return bool(np.isclose(one[1][j], other[0][j]) or np.isclose(other[1][j], one[0][j]))


def _join(X: np.ndarray, black_box: Any, cells: list) -> list:
    boxes = [(*cell, *_label(X, black_box, *cell)) for cell in cells]
    while True:
        best = None
        for i, j in combinations(range(len(boxes)), 2):
            if boxes[i][2] == boxes[j][2] and _adjacent(boxes[i], boxes[j]):
                a = np.minimum(boxes[i][0], boxes[j][0])
                b = np.maximum(boxes[i][1], boxes[j][1])
                label, diversity = _label(X, black_box, a, b)
                if best is None or diversity < best[0]:
                    best = (diversity, i, j, (a, b, label, diversity))
        if best is None:
            return [(a, b, diversity) for a, b, _, diversity in boxes]
        _, i, j, union = best
        boxes = [box for k, box in enumerate(boxes) if k not in (i, j)] + [union]


def predict(ruleset: Any, X: np.ndarray) -> list:
    """Answer row by row, rule by rule."""
    rules = [(rule.intervals, rule.output) for rule in ruleset.rules]
    default = ruleset.fallback.output if ruleset.fallback else None
    answers = []
    for row in X.tolist():
        for intervals, output in rules:
            if all(
                (row[c.feature] >= c.lower if c.lower_closed else row[c.feature] > c.lower)
                and (row[c.feature] <= c.upper if c.upper_closed else row[c.feature] < c.upper)
                for c in intervals
            ):
                answers.append(output)
                break
        else:
            answers.append(default)
    return answers
