"""Finding neighbours while boxes join: by faces, by bits, and by comparing all with all."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skescore.extractors.gridex._grid import (
    Edges,
    FaceIndex,
    HalvesIndex,
    adjacent_cells,
)


def touching(one: Any, other: Any) -> bool:
    """Whether two boxes of one parent differ in one feature, where they share an edge."""
    if one[0] != other[0]:
        return False
    apart = [
        (a, b)
        for a, b in zip(zip(*one[1:], strict=True), zip(*other[1:], strict=True), strict=True)
        if a != b
    ]
    return len(apart) == 1 and (
        apart[0][0][1] == apart[0][1][0] or apart[0][1][1] == apart[0][0][0]
    )


def grid_of(seed: int, n_features: int, n_slices: int, n_parents: int) -> dict[int, Any]:
    """Some cells of some parents; in the last parent the first feature could not be cut."""
    random = np.random.default_rng(seed)
    wanted = random.integers(1, 60)
    parents = random.integers(0, n_parents, wanted)
    low = random.integers(0, n_slices, (wanted, n_features))
    low[:, 4:] = 0  # so that some touch where there are many features
    high = low + 1
    thin = parents == n_parents - 1
    low[thin, 0], high[thin, 0] = 0, n_slices
    cells = np.unique(np.column_stack([parents, low, high]), axis=0)
    return {
        i: (row[0], tuple(row[1 : n_features + 1]), tuple(row[n_features + 1 :]))
        for i, row in enumerate(cells.tolist())
    }


@pytest.mark.parametrize(
    ("n_features", "n_slices"), [(1, 2), (3, 2), (10, 2), (40, 2), (2, 3), (3, 5)]
)
@settings(max_examples=25)
@given(st.integers(0, 2**32 - 1), st.integers(1, 3))
def test_neighbours_are_those_found_by_comparing_all(n_features, n_slices, seed, n_parents):
    boxes = grid_of(seed, n_features, n_slices, n_parents)
    parent = np.array([box[0] for box in boxes.values()])
    low, high = (np.array([box[k] for box in boxes.values()]) for k in (1, 2))
    expected = {(i, j) for i in boxes for j in boxes if i < j and touching(boxes[i], boxes[j])}
    pairs = adjacent_cells(parent, low, high)
    assert {tuple(sorted(pair)) for pair in pairs[:, :2].tolist()} == expected
    assert len(pairs) == len(expected)
    cells = np.arange(len(boxes))
    unit = np.zeros((1, n_features))
    edges = Edges(unit, unit + 1, np.full(n_features, n_slices))
    indices: list[Any] = [FaceIndex(cells, parent, low, high, edges)]
    if n_slices == 2:
        indices.append(HalvesIndex(cells, parent, low, high))
    random = np.random.default_rng(seed)
    unions = []
    while expected:
        i, j = sorted(expected)[random.integers(len(expected))]
        one, other = boxes.pop(i), boxes.pop(j)
        union = max([i, j, *boxes, *unions]) + 1
        unions = [u for u in unions if u not in (i, j)] + [union]
        boxes[union] = (
            one[0],
            tuple(map(min, one[1], other[1])),
            tuple(map(max, one[2], other[2])),
        )
        neighbours = {k for k in boxes if touching(boxes[k], boxes[union])}
        for index in indices:
            assert {k for k in index.unite(i, j, union) if k in boxes} == neighbours
            found_low, found_high = index.edges(unions)
            assert [tuple(row) for row in found_low.tolist()] == [boxes[u][1] for u in unions]
            assert [tuple(row) for row in found_high.tolist()] == [boxes[u][2] for u in unions]
        expected = {pair for pair in expected if not {i, j} & set(pair)}
        expected |= {(k, union) for k in neighbours}
