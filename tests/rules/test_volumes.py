"""Volumes and pairs of boxes, compared with slow counts: cells, recursion, fractions."""

from __future__ import annotations

import functools
import itertools
import math
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skescore.metrics import volume_completeness
from skescore.rules import Domain, Interval, Rule, RuleSet
from skescore.rules import _volumes as volumes
from skescore.rules._volumes import (
    Volume,
    _by_fragments,
    _by_inclusion_exclusion,
    adjacent_pairs,
    contained_in_other,
    first_box,
    in_some_rule,
    join_touching,
    overlapping_pairs,
    sampled_volume,
    sampling_stream,
    subtract,
    union_volume,
    volume_outside,
)

SIDE = 8  # with a power of two, all bounds and volumes are exact in floating point

PATHS: dict[str, dict[str, object]] = {
    "as it comes": {},
    "products": {"_GRID_CELLS": 0, "_by_fragments": lambda *_: None},
    "inclusion-exclusion": {"_MAX_PARTS": 0, "_GRID_CELLS": 0, "_by_fragments": lambda *_: None},
    "grid": {"_MAX_PARTS": 0},
    "grid in chunks": {"_MAX_PARTS": 0, "_GRID_CHUNK": 5},
    "fragments": {"_MAX_PARTS": 0, "_GRID_CELLS": 0},
    "bit tables": {"_DENSE_CELLS": 0, "_COLUMNS": 64, "_ROWS": 3},
}
#: Ways to compare boxes in pairs.
PAIR_PATHS = ("as it comes", "bit tables")


@contextmanager
def forced(path: str) -> Iterator[None]:
    """Make the module take one of its ways whatever the input."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in PATHS[path].items():
            patch.setattr(volumes, name, value)
        yield


@st.composite
def grid_boxes(draw: st.DrawFn, max_boxes: int = 7, max_features: int = 3) -> np.ndarray:
    """Draw integer boxes of shape (2, n_boxes, n_features) in [0, SIDE], some of them empty."""
    shape = (2, draw(st.integers(0, max_boxes)), draw(st.integers(1, max_features)))
    count = math.prod(shape)
    values = draw(st.lists(st.integers(0, SIDE), min_size=count, max_size=count))
    boxes = np.array(values, dtype=int).reshape(shape)
    if draw(st.booleans()):
        boxes = np.sort(boxes, axis=0)  # rarely empty
    return boxes


def counted_volume(lower: np.ndarray, upper: np.ndarray) -> Fraction:
    """Return the share of unit cells of an integer grid that lie in some box."""
    n_features = lower.shape[1]
    cells = itertools.product(range(SIDE), repeat=n_features)
    covered = sum(
        any(
            all(low <= c < high for c, low, high in zip(cell, box_low, box_high, strict=True))
            for box_low, box_high in zip(lower, upper, strict=True)
        )
        for cell in cells
    )
    return Fraction(covered, SIDE**n_features)


def recursive_volume(boxes: list[tuple[tuple[float, ...], tuple[float, ...]]]) -> float:
    """Return the volume of a union by recursion: first box + rest - overlap."""
    if not boxes:
        return 0.0
    (low, high), rest = boxes[0], boxes[1:]
    shared = []
    for other_low, other_high in rest:
        meet = tuple(map(max, low, other_low)), tuple(map(min, high, other_high))
        if all(a < b for a, b in zip(*meet, strict=True)):
            shared.append(meet)
    own = math.prod(b - a for a, b in zip(low, high, strict=True))
    return own + recursive_volume(rest) - recursive_volume(shared)


def cell_volume(lower: np.ndarray, upper: np.ndarray) -> float:
    """Return the volume of the cells between all distinct coordinates that lie in a box."""
    edges = [np.unique(np.r_[0.0, column, 1.0]) for column in np.vstack([lower, upper]).T]
    middles = np.meshgrid(*[(edge[1:] + edge[:-1]) / 2 for edge in edges], indexing="ij")
    widths = np.meshgrid(*[np.diff(edge) for edge in edges], indexing="ij")
    inside = np.zeros(middles[0].shape, dtype=bool)
    for low, high in zip(lower, upper, strict=True):
        inside |= np.logical_and.reduce(
            [(a < m) & (m < b) for a, m, b in zip(low, middles, high, strict=True)]
        )
    return float(math.prod(widths)[inside].sum())


def random_boxes(n_boxes: int, n_features: int, reach: float, seed: int) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    center = rng.uniform(size=(n_boxes, n_features))
    half = rng.uniform(0.1, 1.0, size=(n_boxes, n_features)) * reach
    return [np.clip(center - half, 0.0, 1.0), np.clip(center + half, 0.0, 1.0)]


@pytest.mark.parametrize("path", PATHS)
@given(boxes=grid_boxes())
@settings(max_examples=60)
def test_union_volume_counts_cells(path: str, boxes: np.ndarray) -> None:
    with forced(path):
        volume = union_volume(*boxes / SIDE)
    assert volume.exact
    assert volume.value == float(counted_volume(*boxes))
    assert volume == Volume(volume.value, True, volume.value, volume.value, None, 0)
    assert type(volume.value) is float


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    ("n_boxes", "n_features", "reach"),
    [(13, 1, 0.1), (40, 2, 0.3), (70, 2, 0.2), (25, 3, 0.4), (16, 4, 0.6)],
)
def test_union_volume_agrees_with_cells_for_entangled_boxes(
    path: str, n_boxes: int, n_features: int, reach: float
) -> None:
    boxes = random_boxes(n_boxes, n_features, reach, seed=n_boxes)
    with forced(path):
        volume = union_volume(*boxes)
    assert volume.exact
    assert volume.value == pytest.approx(cell_volume(*boxes), rel=1e-12)


@st.composite
def value_sets(draw: st.DrawFn, max_rules: int = 6, max_features: int = 3) -> list[np.ndarray]:
    """Draw the cells of [0, SIDE] that each rule allows per feature, of shape (n_rules, SIDE)."""
    n_rules = draw(st.integers(1, max_rules))
    n_features = draw(st.integers(1, max_features))
    bits = st.lists(st.integers(1, 2**SIDE - 1), min_size=n_rules, max_size=n_rules)
    cells = np.arange(SIDE)
    return [np.array(draw(bits))[:, None] >> cells & 1 == 1 for _ in range(n_features)]


def boxes_of(sets: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the boxes of rules that allow sets of cells, with the index of the rule."""
    lower, upper, rule = [], [], []
    for number in range(len(sets[0])):
        runs = []
        for allowed in sets:
            edges = np.flatnonzero(np.diff(np.r_[0, allowed[number].astype(int), 0]))
            runs.append(edges.reshape(-1, 2).tolist())
        for intervals in itertools.product(*runs):
            lower.append([a for a, _ in intervals])
            upper.append([b for _, b in intervals])
            rule.append(number)
    return np.array(lower) / SIDE, np.array(upper) / SIDE, np.array(rule)


def covered_cells(sets: list[np.ndarray], rules: list[int]) -> np.ndarray:
    """Return the mask of grid cells that some rule allows."""
    cells = [functools.reduce(np.multiply.outer, [allowed[r] for allowed in sets]) for r in rules]
    return np.any(cells, axis=0) if cells else np.zeros((SIDE,) * len(sets), dtype=bool)


@pytest.mark.parametrize("path", PATHS)
@given(sets=value_sets())
def test_union_volume_agrees_with_cells_for_products(path: str, sets: list[np.ndarray]) -> None:
    lower, upper, rule = boxes_of(sets)
    order = np.random.default_rng(len(lower)).permutation(len(lower))
    with forced(path):
        volume = union_volume(lower[order], upper[order], rule=rule[order])
    assert volume.exact
    n_rules = len(sets[0])
    assert volume.value == covered_cells(sets, list(range(n_rules))).mean()


@given(sets=value_sets(), seed=st.integers(0, 5))
def test_in_some_rule_agrees_with_first_box(sets: list[np.ndarray], seed: int) -> None:
    lower, upper, rule = boxes_of(sets)
    # Half of the coordinates are ends of boxes, which belong to both of two adjacent boxes.
    points = np.random.default_rng(seed).integers(0, 4 * SIDE + 1, (50, len(sets))) / (4 * SIDE)
    points[::2] = np.round(points[::2] * SIDE) / SIDE
    in_some_box = first_box(points, lower, upper) < len(lower)
    assert in_some_rule(points, lower, upper, rule).tolist() == in_some_box.tolist()


def test_union_volume_is_exact_for_rules_with_many_boxes() -> None:
    rng = np.random.default_rng(0)
    sets = [np.ones((30, SIDE), dtype=bool) for _ in range(20)]
    for number in range(30):
        for feature in rng.choice(20, 5, replace=False):
            allowed = rng.choice([0, 2, 4, 6], rng.choice([1, 2, 3]), replace=False)
            sets[feature][number] = np.isin(np.arange(SIDE), allowed)
    lower, upper, rule = boxes_of(sets)
    assert len(lower) == 1252
    volume = union_volume(lower, upper, rule=rule)
    points = np.random.default_rng(1).random((100_000, 20))
    assert volume.exact
    assert volume.value == pytest.approx((first_box(points, lower, upper) < 1252).mean(), abs=0.002)


@given(sets=value_sets(), first=st.integers(0, 5))
def test_volume_outside_agrees_with_cells(sets: list[np.ndarray], first: int) -> None:
    lower, upper, rule = boxes_of(sets)
    one = first % len(sets[0])
    own, others = rule == one, rule != one
    result = volume_outside(
        lower[own], upper[own], lower[others], upper[others], rule[others], limit=1000
    )
    rest = [r for r in range(len(sets[0])) if r != one]
    expected = covered_cells(sets, [one]) & ~covered_cells(sets, rest)
    assert result == pytest.approx(expected.mean(), abs=1e-15)


def test_volume_outside_returns_none_beyond_limit() -> None:
    lower, upper = random_boxes(60, 10, 0.5, seed=1)
    one, others = slice(0, 1), slice(1, None)
    rule = np.arange(59)
    boxes = lower[one], upper[one], lower[others], upper[others], rule
    assert volume_outside(*boxes, limit=1) is None


def test_sampled_volume_underflows_to_zero() -> None:
    low = np.repeat([[0.0], [0.1]], 400, axis=1)
    assert sampled_volume(low, low + 0.1, 10, 0.95, 0) == (0.0, 0.0, 0.0)


@pytest.mark.parametrize(("n_boxes", "n_features", "reach"), [(20, 8, 0.7), (14, 30, 1.2)])
def test_union_volume_agrees_with_recursion(n_boxes: int, n_features: int, reach: float) -> None:
    lower, upper = random_boxes(n_boxes, n_features, reach, seed=5)
    expected = recursive_volume(
        [(tuple(a), tuple(b)) for a, b in zip(lower.tolist(), upper.tolist(), strict=True)]
    )
    volume = union_volume(lower, upper)
    assert len(overlapping_pairs(lower, upper)) > n_boxes
    assert volume.exact
    assert volume.value == pytest.approx(expected, rel=1e-11)


@pytest.mark.parametrize(
    ("lower", "upper", "expected"),
    [
        ([[0, 0], [0.5, 0.5]], [[0.5, 0.5], [1, 1]], 0.5),  # boxes that touch at a corner
        ([[0.25, 0], [0, 0.25]], [[0.75, 1], [1, 0.75]], 0.75),  # boxes that form a cross
        ([[0, 0], [0.5, 0]], [[0.5, 1], [1, 1]], 1.0),  # two halves
        ([[0, 0]], [[1, 1]], 1.0),
        ([[0.5, 0]], [[0.5, 1]], 0.0),  # boxes without width
        ([[0.75, 0]], [[0.25, 1]], 0.0),  # lower bounds above the upper bounds
        ([[0.25], [0.25], [0.25]], [[0.5], [0.5], [0.5]], 0.25),  # the same box three times
        (np.empty((0, 3)), np.empty((0, 3)), 0.0),
        ([], [], 0.0),
        (np.empty((2, 0)), np.empty((2, 0)), 1.0),  # a point fills a cube without dimensions
    ],
)
def test_union_volume_equals_known_volumes_of_shapes(
    lower: object, upper: object, expected: float
) -> None:
    assert union_volume(lower, upper) == Volume(expected, True, expected, expected, None, 0)


@given(boxes=grid_boxes(max_boxes=15), data=st.data())
def test_union_volume_is_equal_for_array_views(boxes: np.ndarray, data: st.DataObject) -> None:
    lower, upper = boxes / SIDE
    value = union_volume(lower, upper).value
    order = data.draw(st.permutations(range(len(lower))))
    features = data.draw(st.permutations(range(lower.shape[1])))
    assert union_volume(lower[order], upper[order]).value == pytest.approx(value, rel=1e-12)
    permuted = union_volume(lower[:, features], upper[:, features]).value
    assert permuted == pytest.approx(value, rel=1e-12)
    assert union_volume(1 - upper, 1 - lower).value == pytest.approx(value, rel=1e-12)
    shift = data.draw(st.floats(0, 0.5))
    transformed = union_volume(lower / 2 + shift, upper / 2 + shift).value
    assert transformed == pytest.approx(value / 2 ** lower.shape[1], rel=1e-9, abs=1e-12)
    free = np.zeros((len(lower), 1))
    assert union_volume(np.hstack([lower, free]), np.hstack([upper, free + 1])).value == value
    slab = union_volume(np.hstack([lower, free]), np.hstack([upper, free + 0.25]))
    assert slab.value == pytest.approx(value / 4, rel=1e-12)


@given(boxes=grid_boxes())
def test_union_volume_is_between_the_largest_and_the_sum(boxes: np.ndarray) -> None:
    lower, upper = boxes / SIDE
    volumes = np.prod(np.maximum(upper - lower, 0), axis=1)
    value = union_volume(lower, upper).value
    assert max(volumes, default=0.0) <= value <= min(volumes.sum(), 1.0)


def test_union_volume_adds_over_separate_groups() -> None:
    boxes = [random_boxes(n, 3, 0.5, seed=n) for n in (4, 14, 1, 20)]
    parts = [union_volume(*pair).value for pair in boxes]
    # Each group lies in its own quarter of the first feature.
    for corner, pair in enumerate(boxes):
        for bounds in pair:
            bounds[:, 0] = bounds[:, 0] / 4 + corner / 4
    lower, upper = map(np.concatenate, zip(*boxes, strict=True))
    volume = union_volume(lower, upper)
    assert volume.exact
    assert volume.value == pytest.approx(sum(parts) / 4, rel=1e-12)


def test_union_volume_sums_disjoint_boxes() -> None:
    edges = np.linspace(0, 1, 11)
    lower, upper = edges[:-1, None], edges[1:, None]
    assert union_volume(lower, upper, disjoint=True).value == pytest.approx(1.0, abs=1e-15)
    assert union_volume(lower[:3], upper[:3], disjoint=True).value == pytest.approx(0.3)
    with pytest.raises(ValueError, match=r"boxes overlap.*sum to 1\.(1|0999).*disjoint=False"):
        union_volume([*lower, [0.0]], [*upper, [0.1]], disjoint=True)


def test_union_volume_tolerates_rounding_of_disjoint_boxes() -> None:
    lower, upper = [[0.0], [0.5 - 1e-10]], [[0.5], [1.0]]
    assert union_volume(lower, upper, disjoint=True).value == 1.0


def test_union_volume_handles_150_dimensions() -> None:
    lower = np.zeros((2, 150))
    upper = np.full((2, 150), 0.99)
    upper[1] = 0.98
    upper[1, :50] = 1.0
    lower[1, 50:100] = 0.01
    first, second = 0.99**150, 0.97**50 * 0.98**50
    both = 0.99**50 * 0.97**50 * 0.98**50
    volume = union_volume(lower, upper)
    assert volume.exact
    assert volume.value == pytest.approx(first + second - both, rel=1e-12)
    flat = np.full((1, 150), 0.5)  # an empty box has no logarithmic volume
    assert union_volume(np.vstack([lower, flat]), np.vstack([upper, flat])) == volume


def test_union_volume_underflows_to_zero() -> None:
    lower = np.zeros((14, 1000))
    upper = np.full((14, 1000), 0.4)
    upper[np.arange(14), np.arange(14)] = 0.5
    assert union_volume(lower, upper).value == 0.0
    assert union_volume(lower[:1, :700], upper[:1, :700]).value == pytest.approx(
        math.exp(699 * math.log(0.4) + math.log(0.5)), rel=1e-12
    )


# --- sampling ------------------------------------------------------------------------------------

SAMPLED = [
    (40, 7, 0.9),  # the sum of the volumes exceeds the box around them
    (15, 7, 0.9),  # the sum of the volumes is smaller than that box
    (25, 12, 0.6),  # the sum of the volumes is far smaller than that box
]


@pytest.mark.parametrize(("n_boxes", "n_features", "reach"), SAMPLED)
def test_union_volume_interval_contains_exact_volume(
    n_boxes: int, n_features: int, reach: float
) -> None:
    boxes = random_boxes(n_boxes, n_features, reach, seed=11)
    exact = union_volume(*boxes)
    assert exact.exact
    total = np.prod(boxes[1] - boxes[0], axis=1).sum()
    assert (total > 1.0) == (n_boxes == 40)
    n_inside = 0
    for seed in range(40):
        volume = union_volume(*boxes, max_fragments=1, n_samples=2000, random_state=seed)
        assert (volume.exact, volume.confidence, volume.n_samples) == (False, 0.99, 2000)
        assert volume.low <= volume.value <= volume.high
        assert type(volume.value) is type(volume.low) is type(volume.high) is float
        n_inside += volume.low <= exact.value <= volume.high
        # Hoeffding's half-width for points in the unit cube.
        assert volume.high - volume.low <= 2 * math.sqrt(math.log(2 / 0.01) / (2 * 2000))
    assert n_inside >= 38


def test_union_volume_samples_tiny_unions_accurately() -> None:
    boxes = random_boxes(60, 20, 0.7, seed=11)
    exact = union_volume(*boxes).value
    assert 0.0 < exact < 0.002
    volume = union_volume(*boxes, max_fragments=1, n_samples=10_000)
    assert not volume.exact
    assert volume.low <= exact <= volume.high
    assert volume.high - volume.low < 0.01 * exact


def test_union_volume_adds_exact_and_sampled_parts() -> None:
    lower, upper = random_boxes(15, 7, 0.9, seed=11)
    lower[:, 0], upper[:, 0] = lower[:, 0] / 2, upper[:, 0] / 2
    limited = union_volume(lower, upper, max_fragments=1)
    corner = np.zeros((1, 7))
    corner[0, 0] = 0.5
    joined = union_volume(
        np.vstack([lower, corner]), np.vstack([upper, np.ones((1, 7))]), max_fragments=1
    )
    assert joined.value == pytest.approx(limited.value + 0.5, abs=1e-12)
    assert joined.low == pytest.approx(limited.low + 0.5, abs=1e-12)
    assert joined.high == pytest.approx(min(limited.high + 0.5, 1.0), abs=1e-12)


def test_union_volume_samples_reproducibly() -> None:
    boxes = random_boxes(15, 7, 0.9, seed=11)

    def value(random_state: object) -> float:
        return union_volume(
            *boxes, max_fragments=1, n_samples=3000, random_state=random_state
        ).value

    assert value(0) == value(0)
    assert value(0) != value(1)
    assert value(np.random.default_rng(3)) == value(np.random.default_rng(3))
    assert value(np.random.RandomState(3)) == value(np.random.RandomState(3))
    assert union_volume(*boxes, max_fragments=1, n_samples=3000, confidence=0.5).high < (
        union_volume(*boxes, max_fragments=1, n_samples=3000, confidence=0.999).high
    )


# --- invalid input -------------------------------------------------------------------------------


def test_union_volume_samples_entangled_boxes(monkeypatch: pytest.MonkeyPatch) -> None:
    # Rules of 5 conditions "below 1/2" or "above 1/2" on 30 features form a Boolean formula.
    rng = np.random.default_rng(0)
    names, domain = [f"x{j}" for j in range(30)], Domain((0,) * 30, (1,) * 30)
    features = [rng.permutation(30)[:5] for _ in range(40)]
    sides = [
        Interval(j, lower=0.5) if rng.random() < 0.5 else Interval(j, upper=0.5)
        for premise in features
        for j in premise.tolist()
    ]
    premises = [sides[5 * i : 5 * i + 5] for i in range(40)]
    rules = RuleSet([Rule(p, 1.0) for p in premises], names, task="regression", domain=domain)
    reversed_rules = rules.replace(rules=rules.rules[::-1])  # same volume, new order
    exact = volume_completeness(reversed_rules)
    assert exact.exact
    for limit in (
        "_FLOATS_PER_FRAGMENT",
        "_GRID_CELLS",
        "_MAX_PARTS",
    ):  # no time for an exact result
        monkeypatch.setattr(volumes, limit, 0)
    share = volume_completeness(rules)
    assert not share.exact
    assert share.low < exact.value < share.high
    assert share.low < share.value < share.high
    assert volume_completeness(rules) == share
    assert volume_completeness(rules, random_state=1) != share
    fewer = volume_completeness(rules, n_samples=1000)
    assert fewer.high - fewer.low > 5 * (share.high - share.low)


# --- sampling ---


def test_sampling_stream_is_independent_of_data_seed() -> None:
    # With the same stream, random points in the cube would fall into narrow boxes around rows that
    # were drawn with the same seed.
    points = np.random.default_rng(0).random((500, 2))
    assert not np.isin(sampling_stream(0).random((500, 2)), points).any()


@pytest.mark.parametrize(
    ("lower", "upper"),
    [
        # A staircase fills much of the square around it, so that points are drawn in that square.
        ([[0, 0], [0, 0], [0, 0]], [[8, 2], [5, 5], [2, 8]]),
        # Two bars leave most of it empty, so that points are drawn in the bars.
        ([[0, 0], [0, 0]], [[8, 1], [1, 8]]),
        # Nested boxes share points: only the first box of equal points may count them.
        ([[1, 1], [0, 0], [7, 7]], [[2, 2], [3, 3], [8, 8]]),
    ],
)
def test_sampled_volume_agrees_with_counted_cells(
    lower: list[list[int]], upper: list[list[int]]
) -> None:
    low, high = np.array(lower) / 8, np.array(upper) / 8
    cells = {
        (x, y)
        for (left, bottom), (right, top) in zip(lower, upper, strict=True)
        for x in range(left, right)
        for y in range(bottom, top)
    }
    truth = len(cells) / 64
    value, bottom, top = sampled_volume(low, high, 20_000, 0.999, 0)
    assert bottom <= truth <= top
    assert bottom <= value <= top
    assert value == pytest.approx(truth, rel=0.05)
    assert {type(number) for number in (value, bottom, top)} == {float}


def test_sampling_stream_uses_given_generator() -> None:
    generator = np.random.default_rng(3)
    assert sampling_stream(generator) is generator
    state = np.random.RandomState(3)
    first, second = sampling_stream(state).random(), sampling_stream(state).random()
    assert first != second
    assert sampling_stream(None).random() != sampling_stream(None).random()


# --- pairs ---


@pytest.mark.parametrize("path", PAIR_PATHS)
@given(boxes=grid_boxes(max_boxes=12), tolerance=st.sampled_from([0, 1, 2]))
def test_overlapping_pairs_agree_with_loop(path: str, boxes: np.ndarray, tolerance: int) -> None:
    lower, upper = boxes
    expected = [
        [i, j]
        for i, j in itertools.combinations(range(len(lower)), 2)
        if (np.minimum(upper[i], upper[j]) - np.maximum(lower[i], lower[j]) > tolerance).all()
    ]
    with forced(path):
        result = overlapping_pairs(lower, upper, tolerance)
    assert result.shape == (len(expected), 2)
    assert result.tolist() == expected


@pytest.mark.parametrize("path", PAIR_PATHS)
@given(boxes=grid_boxes(max_boxes=12, max_features=2))
def test_contained_in_other_agrees_with_loop(path: str, boxes: np.ndarray) -> None:
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
def test_adjacent_pairs_agree_with_loop(boxes: np.ndarray, data: st.DataObject) -> None:
    lower, upper = np.sort(boxes // 3, axis=0)  # on a coarse grid many boxes touch
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
    result = adjacent_pairs(lower, upper, *flags)
    assert result.shape == (len(expected), 3)
    assert result.tolist() == expected
    for i, j, _ in expected:  # together they form the box around them
        hull = np.maximum(upper[i], upper[j]) - np.minimum(lower[i], lower[j])
        assert hull.prod() == sum((upper[one] - lower[one]).prod() for one in (i, j))


def test_pairs_of_boxes_accept_unbounded_boxes() -> None:
    inf = math.inf
    lower, upper = [[-inf, 0], [2, 0], [-inf, -inf]], [[2, 1], [inf, 1], [0, inf]]
    assert adjacent_pairs(lower, upper).tolist() == [[0, 1, 0]]
    assert overlapping_pairs(lower, upper).tolist() == [[0, 2]]
    assert contained_in_other(lower, upper).tolist() == [False, False, False]
    # Without features, all boxes are equal.
    assert contained_in_other(np.empty((3, 0)), np.empty((3, 0))).tolist() == [False, True, True]
    assert contained_in_other([*lower, [-inf, -inf]], [*upper, [inf, inf]]).tolist() == [
        True,
        True,
        True,
        False,
    ]


def test_pairs_of_boxes_treat_minus_zero_as_zero() -> None:
    assert contained_in_other([[0.0], [-0.0]], [[1.0], [1.0]]).tolist() == [False, True]
    assert adjacent_pairs([[0.0], [-1.0]], [[1.0], [-0.0]]).tolist() == [[1, 0, 0]]


@pytest.mark.slow
@pytest.mark.parametrize(("rows", "columns"), [(16384, 4096), (1500, 1024)])
def test_overlapping_pairs_use_bounded_memory(
    rows: int, columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(volumes, "_ROWS", rows)
    monkeypatch.setattr(volumes, "_COLUMNS", columns)
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
    assert peak < 60e6  # comparing all pairs at once would need 25 million comparisons per feature


BOX = ([[0.0, 0.0]], [[0.5, 0.5]])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: union_volume([[0.0]], [[0.5, 0.5]]), r"same shape.*\(1, 1\) and \(1, 2\)"),
        (lambda: union_volume([0.0], [0.5]), r"same shape \(n_boxes, n_features\)"),
        (lambda: union_volume([[math.nan]], [[0.5]]), "must not hold NaN"),
        (lambda: union_volume([[-0.25]], [[0.5]]), r"in \[0, 1\], got values in \[-0\.25, 0\.5\]"),
        (lambda: union_volume([[0.25]], [[math.inf]]), r"values in \[0\.25, inf\].*clip"),
        (lambda: union_volume(*BOX, max_fragments=0), "`max_fragments` must be.*got 0"),
        (lambda: union_volume(*BOX, n_samples=2.5), "`n_samples` must be.*got 2.5"),
        (lambda: union_volume(*BOX, confidence=1.0), "`confidence` must lie.*got 1.0"),
        (lambda: union_volume(*BOX, confidence=math.nan), "`confidence` must lie.*got nan"),
        (lambda: overlapping_pairs([[0.0]], [[0.5, 0.5]]), r"same shape.*\(1, 1\) and \(1, 2\)"),
        (lambda: contained_in_other([0.0], [0.5]), r"same shape \(n_boxes, n_features\)"),
        (lambda: contained_in_other([[0.0]], [[math.nan]]), "must not hold NaN"),
        (lambda: overlapping_pairs(*BOX, tolerance=-1.0), "`tolerance` must be.*got -1.0"),
        (lambda: overlapping_pairs(*BOX, tolerance=math.nan), "`tolerance` must be.*got nan"),
        (lambda: adjacent_pairs(*BOX, [[True]]), r"`lower_closed` must have the shape.*\(1, 1\)"),
        (lambda: sampling_stream(-1), "`random_state` must be.*got -1"),
        (lambda: sampling_stream("0"), "`random_state` must be.*got '0'"),
        (lambda: sampling_stream(True), "`random_state` must be.*got True"),
    ],
)
def test_volumes_reject_invalid_input(call: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


# --- results of single methods -------------------------------------------------------------------


def overlapping_boxes(n_boxes: int, n_features: int) -> list[np.ndarray]:
    """Boxes around the center of the cube, all of which meet there."""
    rng = np.random.default_rng(n_boxes)
    shape = n_boxes, n_features
    return [rng.integers(0, 24, shape) / 64, rng.integers(40, 65, shape) / 64]


def test_union_volume_of_12_boxes_is_always_exact() -> None:
    lower, upper = overlapping_boxes(12, 10)
    volume = union_volume(lower, upper, max_fragments=1)
    assert volume.exact
    pairs = zip(map(tuple, lower.tolist()), map(tuple, upper.tolist()), strict=True)
    assert volume.value == pytest.approx(recursive_volume(list(pairs)), rel=1e-9)


def test_union_volume_of_few_cells_is_always_exact() -> None:
    boxes = random_boxes(40, 2, 0.3, seed=40)
    volume = union_volume(*boxes, max_fragments=1)
    assert volume.exact
    assert volume.value == pytest.approx(cell_volume(*boxes), rel=1e-12)


def test_union_volume_respects_max_fragments() -> None:
    boxes = overlapping_boxes(13, 9)
    # All sets of boxes meet: inclusion-exclusion has a term for each of them.
    assert union_volume(*boxes, max_fragments=8191).exact
    assert not union_volume(*boxes, max_fragments=1000, n_samples=10).exact


def test_union_volume_of_cube_is_1_beside_other_boxes() -> None:
    cube = union_volume([[0.25, 0], [0, 0]], [[0.5, 1], [1, 1]], disjoint=True)
    assert cube == Volume(1.0, True, 1.0, 1.0, None, 0)


def test_sampled_union_volume_is_at_most_1(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(volumes, "_component_volume", lambda *_: None)
    lower, upper = [[0, 0], [0, 0], [0.625, 0.625]], [[1, 0.5], [0.5, 1], [1, 1]]
    volume = union_volume(lower, upper, n_samples=10)
    assert volume.low <= volume.value <= volume.high == 1.0
    assert union_volume(lower, upper).n_samples == 100_000


def test_sampled_volume_of_filled_box_is_exact() -> None:
    low, high = np.array([[0.25], [0.375]]), np.array([[0.625], [0.75]])
    value, bottom, top = sampled_volume(low, high, 200, 0.99, 0)
    assert (value, top) == (0.5, 0.5)
    assert 0.48 < bottom < 0.5


def test_sampled_volume_is_a_share_of_points() -> None:
    low, high = np.zeros((2, 2)), np.array([[1.0, 0.125], [0.125, 1.0]])
    n_samples = 40
    value, bottom, top = sampled_volume(low, high, n_samples, 0.999999, 1)
    hits = value * n_samples / 0.25  # points are drawn in the boxes, of which they may hit either
    assert bottom < value < top
    assert hits == pytest.approx(round(hits), abs=1e-9)


def test_sampled_volume_is_at_least_largest_box() -> None:
    low, high = np.zeros((2, 2)), np.array([[0.5, 0.25], [0.25, 0.75]])
    assert sampled_volume(low, high, 1, 0.99, 0)[1] == 0.1875


def test_points_in_products_of_many_rules() -> None:
    lower = np.arange(70)[:, None] / 70
    lower, upper = np.vstack([lower, [[0.5]]]), np.vstack([lower + 0.001, [[0.6]]])
    rule = np.r_[np.arange(70), 0]
    points = np.linspace(0, 1, 500)[:, None]
    in_some_box = first_box(points, lower, upper) < len(lower)
    assert in_some_rule(points, lower, upper, rule).tolist() == in_some_box.tolist()


def test_points_in_products_without_width() -> None:
    lower, upper = np.array([[0.0], [0.5], [1.0]]), np.array([[0.25], [0.5], [1.0]])
    points = np.array([[0.0], [0.25], [0.375], [0.5], [0.75], [1.0]])
    in_rule = in_some_rule(points, lower, upper, np.array([0, 0, 1]))
    assert in_rule.tolist() == [True, True, False, True, False, True]


def test_volume_outside_of_boxes_with_a_free_side() -> None:
    lower, upper = np.array([[0.0, 0.25]]), np.array([[1.0, 1.0]])
    inner = np.zeros((1, 2)), np.array([[1.0, 0.5]])
    assert volume_outside(*inner, lower, upper, np.array([0]), limit=1000) == 0.25


def test_union_volume_of_staircase_of_70_boxes() -> None:
    steps = np.arange(1, 71) / 70
    lower, upper = np.zeros((70, 2)), np.column_stack([steps, steps[::-1]])
    with forced("products"):
        volume = union_volume(lower, upper)
    assert volume.exact
    assert volume.value == pytest.approx(71 / 140, rel=1e-12)


def test_inclusion_exclusion_needs_a_term_per_overlap() -> None:
    lower, upper = overlapping_boxes(3, 2)
    exact = union_volume(lower, upper).value
    assert _by_inclusion_exclusion(lower, upper, 7) == pytest.approx(exact, rel=1e-12)
    assert _by_inclusion_exclusion(lower, upper, 6) is None


def test_inclusion_exclusion_gives_up_on_lost_digits(monkeypatch: pytest.MonkeyPatch) -> None:
    lower, upper = overlapping_boxes(3, 2)
    monkeypatch.setattr(volumes, "_RELATIVE_ERROR", 1e-15)
    assert _by_inclusion_exclusion(lower / 4, upper / 4, 1000) is None
    assert _by_inclusion_exclusion(lower[:1] / 4, upper[:1] / 4, 1000) is not None


def test_fragments_add_up_to_volume() -> None:
    boxes = random_boxes(40, 2, 0.3, seed=40)
    assert _by_fragments(*boxes, 200_000) == pytest.approx(cell_volume(*boxes), rel=1e-12)
    assert _by_fragments(*boxes, 10) is None


@pytest.mark.parametrize(("start", "end"), [(1, 2), (-1, 0)])
def test_subtract_leaves_touching_boxes_whole(start: float, end: float) -> None:
    box = np.zeros((1, 2)), np.ones((1, 2))
    cut = np.array([start, 0.25]), np.array([end, 0.5])
    left = subtract(*box, *cut, limit=10)
    assert left is not None
    assert [part.tolist() for part in left] == [[[0, 0]], [[1, 1]]]


def test_adjacent_pairs_of_several_boxes_at_one_face() -> None:
    lower, upper = [[0], [1], [1], [2], [2], [0.5]], [[1], [2], [2.5], [3], [4], [1]]
    assert adjacent_pairs(lower, upper).tolist() == [
        [0, 1, 0],
        [0, 2, 0],
        [1, 3, 0],
        [1, 4, 0],
        [5, 1, 0],
        [5, 2, 0],
    ]


def test_adjacent_pairs_need_a_closed_face() -> None:
    lower, upper = [[0, 0], [1, 0]], [[1, 1], [2, 1]]
    faces = np.zeros((2, 2), dtype=bool)
    assert adjacent_pairs(lower, upper, faces, faces).tolist() == []
    assert adjacent_pairs(lower, upper, faces, ~faces).tolist() == [[0, 1, 0]]


@pytest.mark.parametrize(
    ("lower", "upper", "outputs", "joined"),
    [
        # Cells of two columns, of which the second has two outputs.
        (
            [[0, 0], [0, 1], [1, 0], [1, 1]],
            [[1, 1], [1, 2], [2, 1], [2, 2]],
            [5, 5, 5, 6],
            [([0, 0], [1, 2], [0, 1]), ([1, 0], [2, 1], [2]), ([1, 1], [2, 2], [3])],
        ),
        # A square of one output.
        (
            [[0, 0], [0, 1], [1, 0], [1, 1]],
            [[1, 1], [1, 2], [2, 1], [2, 2]],
            [5, 5, 5, 5],
            [([0, 0], [2, 2], [0, 1, 2, 3])],
        ),
        # Faces that differ in size, meet at a corner, or lie apart.
        (
            [[0, 0], [1, 0], [2, 3], [7, 0]],
            [[1, 1], [2, 3], [3, 4], [8, 1]],
            [5, 5, 5, 5],
            [
                ([0, 0], [1, 1], [0]),
                ([1, 0], [2, 3], [1]),
                ([2, 3], [3, 4], [2]),
                ([7, 0], [8, 1], [3]),
            ],
        ),
    ],
)
def test_join_touching_merges_whole_faces(
    lower: list[list[int]],
    upper: list[list[int]],
    outputs: list[int],
    joined: list[tuple[list[int], list[int], list[int]]],
) -> None:
    low, high = np.array(lower, dtype=float), np.array(upper, dtype=float)
    first, union = join_touching(low, high, np.array(outputs))
    found = [
        (low[box].tolist(), high[box].tolist(), np.flatnonzero(union == number).tolist())
        for number, box in enumerate(first)
    ]
    assert found == joined
