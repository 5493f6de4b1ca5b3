"""Pairs of boxes against slow and obvious loops."""

from __future__ import annotations

import itertools
import math
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skescore.rules import _volumes as geometry
from skescore.rules._volumes import adjacent_pairs, contained_in_other, overlapping_pairs

SIDE = 8

PATHS = {"as it comes": {}, "bit tables": {"_DENSE_CELLS": 0, "_COLUMNS": 64, "_ROWS": 3}}


@st.composite
def grid_boxes(draw: st.DrawFn, max_boxes: int = 7, max_features: int = 3) -> np.ndarray:
    """Integer boxes of shape (2, n_boxes, n_features) in [0, SIDE], some of them empty."""
    shape = (2, draw(st.integers(0, max_boxes)), draw(st.integers(1, max_features)))
    count = math.prod(shape)
    values = draw(st.lists(st.integers(0, SIDE), min_size=count, max_size=count))
    boxes = np.array(values, dtype=int).reshape(shape)
    if draw(st.booleans()):
        boxes = np.sort(boxes, axis=0)  # seldom empty
    return boxes


def random_boxes(n_boxes: int, n_features: int, reach: float, seed: int) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    centre = rng.uniform(size=(n_boxes, n_features))
    half = rng.uniform(0.1, 1.0, size=(n_boxes, n_features)) * reach
    return [np.clip(centre - half, 0.0, 1.0), np.clip(centre + half, 0.0, 1.0)]


@contextmanager
def forced(path: str) -> Iterator[None]:
    """Make the module compare in one of its ways whatever the input."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in PATHS[path].items():
            patch.setattr(geometry, name, value)
        yield


@pytest.mark.parametrize("path", PATHS)
@given(boxes=grid_boxes(max_boxes=12), tolerance=st.sampled_from([0, 1, 2]))
def test_overlapping_pairs_by_loops(path: str, boxes: np.ndarray, tolerance: int) -> None:
    lower, upper = boxes
    expected = [
        [i, j]
        for i, j in itertools.combinations(range(len(lower)), 2)
        if (np.minimum(upper[i], upper[j]) - np.maximum(lower[i], lower[j]) > tolerance).all()
    ]
    with forced(path):
        found = overlapping_pairs(lower, upper, tolerance)
    assert found.shape == (len(expected), 2)
    assert found.tolist() == expected


@pytest.mark.parametrize("path", PATHS)
@given(boxes=grid_boxes(max_boxes=12, max_features=2))
def test_contained_in_other_by_loops(path: str, boxes: np.ndarray) -> None:
    lower, upper = boxes
    cells = [
        frozenset(itertools.product(*map(range, low, high)))
        for low, high in zip(lower.tolist(), upper.tolist(), strict=True)
    ]
    expected = [
        any(mine < other or (mine == other and j < i) for j, other in enumerate(cells))
        for i, mine in enumerate(cells)
    ]
    with forced(path):
        assert contained_in_other(lower, upper).tolist() == expected


@given(boxes=grid_boxes(max_boxes=12), data=st.data())
def test_adjacent_pairs_by_loops(boxes: np.ndarray, data: st.DataObject) -> None:
    lower, upper = np.sort(boxes // 3, axis=0)  # a coarse grid, so that many boxes touch
    n_features = lower.shape[1]
    flags: list[np.ndarray | None] = [None, None]
    if data.draw(st.booleans()):
        bits = st.lists(st.booleans(), min_size=lower.size, max_size=lower.size)
        flags = [np.array(data.draw(bits), dtype=bool).reshape(lower.shape) for _ in range(2)]

    def same(i: int, j: int, feature: int) -> bool:
        arrays = [lower, upper, *(f for f in flags if f is not None)]
        return all(array[i, feature] == array[j, feature] for array in arrays)

    def joined(i: int, j: int, feature: int) -> bool:
        if upper[i, feature] != lower[j, feature]:
            return False
        return flags[0] is None or bool(flags[1][i, feature] or flags[0][j, feature])

    solid = np.flatnonzero((lower < upper).all(axis=1))
    expected = [
        [i, j, feature]
        for i, j, feature in itertools.product(solid, solid, range(n_features))
        if joined(i, j, feature)
        and all(same(i, j, other) for other in range(n_features) if other != feature)
    ]
    found = adjacent_pairs(lower, upper, *flags)
    assert found.shape == (len(expected), 3)
    assert found.tolist() == expected
    for i, j, _ in expected:  # the two together are the box around them
        hull = np.maximum(upper[i], upper[j]) - np.minimum(lower[i], lower[j])
        assert hull.prod() == sum((upper[one] - lower[one]).prod() for one in (i, j))


def test_unbounded_boxes() -> None:
    inf = math.inf
    lower, upper = [[-inf, 0], [2, 0], [-inf, -inf]], [[2, 1], [inf, 1], [0, inf]]
    assert adjacent_pairs(lower, upper).tolist() == [[0, 1, 0]]
    assert overlapping_pairs(lower, upper).tolist() == [[0, 2]]
    assert contained_in_other(lower, upper).tolist() == [False, False, False]
    assert contained_in_other([*lower, [-inf, -inf]], [*upper, [inf, inf]]).tolist() == [
        True, True, True, False,
    ]  # fmt: skip


def test_minus_zero_is_zero() -> None:
    assert contained_in_other([[0.0], [-0.0]], [[1.0], [1.0]]).tolist() == [False, True]
    assert adjacent_pairs([[0.0], [-1.0]], [[1.0], [-0.0]]).tolist() == [[1, 0, 0]]


@pytest.mark.parametrize(("rows", "columns"), [(16384, 4096), (1500, 1024)])
def test_pairs_of_many_boxes_in_bounded_memory(
    rows: int, columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(geometry, "_ROWS", rows)
    monkeypatch.setattr(geometry, "_COLUMNS", columns)
    n_boxes = 5000
    lower, upper = random_boxes(n_boxes, 4, 0.1, seed=1)
    lower[4000:], upper[4000:] = lower[:1000] * 0.99 + 0.005, upper[:1000] * 0.99 + 0.005
    upper[::50], lower[::50] = upper[1::50], lower[1::50]  # duplicates across the list
    tracemalloc.start()
    pairs = overlapping_pairs(lower, upper)
    inside = contained_in_other(lower, upper)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    expected_inside = np.zeros(n_boxes, dtype=bool)
    expected_pairs = []
    for i in range(n_boxes):
        meets = (np.minimum(upper, upper[i]) > np.maximum(lower, lower[i])).all(axis=1)
        expected_pairs += [[i, j] for j in np.flatnonzero(meets).tolist() if j > i]
        holds = ((lower <= lower[i]) & (upper >= upper[i])).all(axis=1)
        equal = ((lower == lower[i]) & (upper == upper[i])).all(axis=1)
        expected_inside[i] = (holds & ~equal).any() or equal[:i].any()
    assert pairs.tolist() == expected_pairs
    assert inside.tolist() == expected_inside.tolist()
    assert expected_inside.sum() >= 100
    assert peak < 60e6  # all pairs of comparisons at once would be 25 million per feature


BOX = ([[0.0, 0.0]], [[0.5, 0.5]])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: overlapping_pairs([[0.0]], [[0.5, 0.5]]), r"same shape.*\(1, 1\) and \(1, 2\)"),
        (lambda: contained_in_other([0.0], [0.5]), r"same shape \(n_boxes, n_features\)"),
        (lambda: contained_in_other([[0.0]], [[math.nan]]), "must not hold NaN"),
        (lambda: overlapping_pairs(*BOX, tolerance=-1.0), "`tolerance` must be.*got -1.0"),
        (lambda: overlapping_pairs(*BOX, tolerance=math.nan), "`tolerance` must be.*got nan"),
        (lambda: adjacent_pairs(*BOX, [[True]]), r"`lower_closed` must have the shape.*\(1, 1\)"),
    ],
)
def test_bad_input_is_named(call: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()
