"""Straightforward implementations of GridEx and of rule prediction, as peers for speed.

Both are simple: GridEx visits every possible cell, queries the black box once per cell, and tests
all pairs of cells for joining. The prediction processes one row and one rule at a time.
"""

from __future__ import annotations

from itertools import combinations, product
from typing import Any

import numpy as np


def extract(X: np.ndarray, black_box: Any, n_slices: list[int], depth: int, threshold: float):
    """Return boxes as tuples (lower, upper, label)."""
    margin = 1e-9 * np.ptp(X, axis=0)
    frontier = [(X.min(axis=0) - margin, X.max(axis=0) + margin, np.inf)]
    finished_boxes = []
    for _ in range(depth):
        next_frontier = []
        for lower, upper, diversity in frontier:
            if diversity < threshold:
                finished_boxes.append((lower, upper, diversity))
                continue
            cells = []
            for index in product(*map(range, n_slices)):
                step = (upper - lower) / n_slices
                a = lower + np.array(index) * step
                cell = (a, a + step)
                if _is_inside(X, *cell).any():
                    cells.append(cell)
            next_frontier += _join_cells(X, black_box, cells)
        frontier = next_frontier
    finished_boxes += frontier
    return [(a, b, _majority_label(X, black_box, a, b)[0]) for a, b, _ in finished_boxes]


def _is_inside(X: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
    return (np.greater_equal(X, lower) & np.less(X, upper)).all(axis=1)


def _majority_label(X: np.ndarray, black_box: Any, lower: np.ndarray, upper: np.ndarray):
    labels, counts = np.unique(
        black_box.predict(X[_is_inside(X, lower, upper)]), return_counts=True
    )
    return labels[counts.argmax()], 1 - counts.max() / counts.sum()


def _is_adjacent(first: tuple, second: tuple) -> bool:
    differs = ~(np.isclose(first[0], second[0]) & np.isclose(first[1], second[1]))
    if differs.sum() != 1:
        return False
    j = int(np.flatnonzero(differs)[0])
    return bool(np.isclose(first[1][j], second[0][j]) or np.isclose(second[1][j], first[0][j]))


def _join_cells(X: np.ndarray, black_box: Any, cells: list) -> list:
    boxes = [(*cell, *_majority_label(X, black_box, *cell)) for cell in cells]
    while True:
        best = None
        for i, j in combinations(range(len(boxes)), 2):
            if boxes[i][2] == boxes[j][2] and _is_adjacent(boxes[i], boxes[j]):
                a = np.minimum(boxes[i][0], boxes[j][0])
                b = np.maximum(boxes[i][1], boxes[j][1])
                label, diversity = _majority_label(X, black_box, a, b)
                if best is None or diversity < best[0]:
                    best = (diversity, i, j, (a, b, label, diversity))
        if best is None:
            return [(a, b, diversity) for a, b, _, diversity in boxes]
        _, i, j, union = best
        boxes = [box for k, box in enumerate(boxes) if k not in (i, j)] + [union]


def predict(ruleset: Any, X: np.ndarray) -> list:
    """Predict row by row and rule by rule."""
    rules = [(rule.intervals, rule.output) for rule in ruleset.rules]
    default = ruleset.fallback.output if ruleset.fallback else None
    predictions = []
    for row in X.tolist():
        for intervals, output in rules:
            if all(
                (row[c.feature] >= c.lower if c.lower_closed else row[c.feature] > c.lower)
                and (row[c.feature] <= c.upper if c.upper_closed else row[c.feature] < c.upper)
                for c in intervals
            ):
                predictions.append(output)
                break
        else:
            predictions.append(default)
    return predictions
