"""Parts of grids compared with loops: neighbors, fits by moments, residuals, linear models."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skescore.extractors import _linear_models as _linear
from skescore.extractors._linear_models import (
    Fits,
    Groups,
    Points,
    Units,
    absolute_residuals,
    ridge_slopes,
    sparse_slopes,
)
from skescore.extractors.gridex._grid import (
    Edges,
    FaceIndex,
    HalvesIndex,
    adjacent_cells,
)
from skescore.extractors.gridex._gridrex import LinearTable


def slow_model(X, z):
    """Return intercept and slopes by least squares, or with the documented ridge.

    Rows of a ridge are points of their own, far from the formula in the package.
    """
    center, height = X.mean(axis=0), z.mean()
    n = len(X)
    varies = X.std(axis=0) > 1e-12
    d = int(varies.sum())
    slopes = np.zeros(X.shape[1])
    if d:
        rows, target = (X - center)[:, varies], z - height
        if n < 2 * (d + 2):
            weight = d / n * np.mean(rows.var(axis=0))
            rows = np.vstack([rows, np.sqrt(n * weight) * np.eye(d)])
            target = np.append(target, np.zeros(d))
        slopes[varies] = np.linalg.lstsq(rows, target, rcond=None)[0]
    return height - slopes @ center, slopes


def slow_residual(X, z, plane):
    return sum(abs(b - plane[0] - plane[1] @ a) for a, b in zip(X, z, strict=True)) / len(z)


def some_points(seed, sizes, n_features, *, order="C"):
    random = np.random.default_rng(seed)
    n = sum(sizes)
    X = random.uniform(size=(n, n_features))
    z = X @ random.normal(size=n_features) + np.sin(5 * X[:, 0]) + random.normal(size=n) * 0.1
    box = random.permutation(np.repeat(np.arange(len(sizes)), sizes))
    units = Units.of(X.min(axis=0), X.max(axis=0), z)
    points = Points(np.asarray(X, order=order), z, box, len(sizes), units)
    scaled = (np.column_stack([X, z]) - units.origin) / units.unit
    return points, scaled[:, :-1], scaled[:, -1], box


SIZES = [
    [1],
    [1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 17],
    [600, 3, 1, 40, 513, 512, 511],
    [_linear.CHUNK, _linear.CHUNK + 1, 2 * _linear.CHUNK + 5, 30],
]


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("n_features", [1, 3])
@pytest.mark.parametrize("sizes", SIZES, ids=["one", "few", "mixed", "large"])
def test_fits_and_residuals_equal_least_squares(sizes, n_features, order):
    points, X, z, box = some_points(len(sizes), sizes, n_features, order=order)
    fits = Fits.collect(points, points.by_box)
    vectors = fits.vectors(ridge_slopes(fits.n, fits.gram))
    each = np.arange(len(sizes))
    sums = absolute_residuals(points, points.by_box, vectors, each, each)
    for i, size in enumerate(sizes):
        rows, answers = X[box == i], z[box == i]
        both = np.column_stack([rows, answers])
        assert fits.n[i] == size
        np.testing.assert_allclose(fits.mean[i], both.mean(axis=0), rtol=0, atol=1e-12)
        deviation = both - both.mean(axis=0)
        np.testing.assert_allclose(fits.gram[i], deviation.T @ deviation, rtol=0, atol=1e-9)
        intercept, slopes = slow_model(rows, answers)
        np.testing.assert_allclose(-vectors[i, :-2], slopes, rtol=1e-7, atol=1e-9)
        assert -vectors[i, -1] == pytest.approx(intercept, abs=1e-9)
        assert sums[i] / size == pytest.approx(
            slow_residual(rows, answers, (intercept, slopes)), abs=1e-9
        )


def test_absolute_residuals_accept_groups_in_any_order():
    points, X, z, box = some_points(0, [700, 5, 0, 60], 2)
    random = np.random.default_rng(1)
    vectors = random.normal(size=(4, 4))
    group = np.array([0, 0, 1, 3, 3, 3])
    plane = np.array([2, 0, 3, 1, 1, 0])
    lists = [points.by_box.points(g) for g in range(4)]
    shuffled = Groups.of([random.permutation(part) for part in lists])
    for groups in (points.by_box, shuffled, shuffled.take(np.arange(4))):
        sums = absolute_residuals(points, groups, vectors, group, plane)
        for total, g, p in zip(sums, group, plane, strict=True):
            expected = 0.0
            for x, answer in zip(X[box == g], z[box == g], strict=True):
                expected += abs(vectors[p] @ [*x, answer, 1.0])
            assert total == pytest.approx(expected, rel=1e-12)


@settings(max_examples=30)
@given(st.integers(0, 2**32 - 1), st.integers(1, 5), st.integers(1, 40), st.integers(1, 40))
def test_moments_of_unions_equal_sums(seed, n_features, n, m):
    points, *_ = some_points(seed, [n, m], n_features)
    apart = Fits.collect(points, points.by_box)
    together = Fits.collect(points, Groups.of([np.arange(n + m)]))
    union = apart.take([0]).plus(apart.take([1]))
    for name in ("n", "mean", "gram"):
        np.testing.assert_allclose(getattr(union, name), getattr(together, name), atol=1e-12)


def test_planes_are_exact_for_correlated_features():
    random = np.random.default_rng(0)
    x = random.uniform(size=(200, 1))
    for noise in (1.0, 1e-2, 1e-4):
        X = np.column_stack([x, x + noise * random.uniform(size=(200, 1))])
        z = 3 * X[:, 0] - 2 * X[:, 1]
        units = Units.of(X.min(axis=0), X.max(axis=0), z)
        points = Points(X, z, np.zeros(200, int), 1, units)
        fits = Fits.collect(points, points.by_box)
        intercepts, slopes = units.models(fits.vectors(ridge_slopes(fits.n, fits.gram)))
        # Second moments contain the difference of the features only squared.
        np.testing.assert_allclose(slopes[0], [3, -2], rtol=1e-12 / noise**2)
        assert abs(intercepts[0]) < 1e-12 / noise**2


def test_ridge_slopes_split_over_copies_and_skip_constants():
    random = np.random.default_rng(0)
    x = random.uniform(size=100)
    X = np.column_stack([x, np.full(100, 7.0), x])
    z = 4 * x + 1
    units = Units.of(X.min(axis=0), X.max(axis=0), z)
    points = Points(X, z, np.zeros(100, int), 1, units)
    fits = Fits.collect(points, points.by_box)
    intercepts, slopes = units.models(fits.vectors(ridge_slopes(fits.n, fits.gram)))
    np.testing.assert_allclose(slopes[0], [2, 0, 2], rtol=1e-6)
    assert slopes[0, 1] == 0
    assert intercepts[0] == pytest.approx(1)


def test_ridge_residuals_of_few_points_stay_above_zero():
    for n_features in (2, 10):
        for n in (2, 3, n_features, n_features + 1, n_features + 2, 2 * n_features + 3):
            points, _, z, _ = some_points(n, [n], n_features)
            fits = Fits.collect(points, points.by_box)
            vectors = fits.vectors(ridge_slopes(fits.n, fits.gram))
            residual = absolute_residuals(points, points.by_box, vectors, [0], np.array([0]))[0]
            # A constant is far off; planes of PSyKE through n <= d + 1 points are not.
            assert residual > 0.15 * np.abs(z - z.mean()).sum()


def test_linear_table_ranks_pairs_and_unions_by_all_residuals():
    sizes = [1, 2, 30, 5, 8, 700, 4000, 600, 3]
    points, X, z, box = some_points(3, sizes, 2)
    table = LinearTable(points, 0.0, None)
    everything = np.array([(i, j) for i in range(len(sizes)) for j in range(i)])
    height = points.units.unit[-1]

    def expected(*boxes):
        inside = np.isin(box, boxes)
        return slow_residual(X[inside], z[inside], slow_model(X[inside], z[inside]))

    residuals = [expected(i, j) for i, j in everything]
    threshold = float(np.median(residuals))
    # more pairs than in one chunk
    allowed, ranks = table.joinable(np.tile(everything, (40, 1)), threshold * height * 1.0000001)
    assert allowed.tolist() == [r <= threshold for r in residuals] * 40
    np.testing.assert_allclose(ranks * 1e-9, residuals * 40, atol=1e-8)
    boxes = table.split_boxes(np.arange(len(sizes)))
    union = boxes[2].union(boxes[0]).union(boxes[7])
    other_items = [1, 3, 4, 5, 6, 8]
    for some in (other_items, [1, 8]):  # more rows than in one chunk, and fewer
        result = union.union_impurities([boxes[i] for i in some], 1e9)
        np.testing.assert_allclose(
            np.array(result) * 1e-9, [expected(2, 0, 7, i) for i in some], atol=1e-8
        )
    assert union.union_impurities([boxes[3]], 0.0) == [None]
    assembled = table.assemble(np.array(other_items), [union])
    inf = np.zeros((len(other_items) + 1, 2))
    models = assembled.finalize(inf, inf)
    np.testing.assert_allclose(
        models.impurity / height,
        [expected(i) for i in other_items] + [expected(2, 0, 7)],
        atol=1e-9,
    )
    inside = np.isin(box, [2, 0, 7])
    assert models.mean[-1] == pytest.approx(z[inside].mean())
    assert models.deviation[-1] == pytest.approx(z[inside].std())


# --- neighbors ---


def touching(one: Any, other: Any) -> bool:
    """Return whether two boxes of one parent differ in one feature only and share an edge there."""
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
    """Return cells of several parents; the first feature is not cut in the last parent."""
    random = np.random.default_rng(seed)
    expected = random.integers(1, 60)
    parents = random.integers(0, n_parents, expected)
    low = random.integers(0, n_slices, (expected, n_features))
    low[:, 4:] = 0  # so that some boxes touch with many features
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
def test_adjacent_cells_equal_pairwise_comparison(n_features, n_slices, seed, n_parents):
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
        neighbors = {k for k in boxes if touching(boxes[k], boxes[union])}
        for index in indices:
            assert {k for k in index.unite(i, j, union) if k in boxes} == neighbors
            found_low, found_high = index.edges(unions)
            assert [tuple(row) for row in found_low.tolist()] == [boxes[u][1] for u in unions]
            assert [tuple(row) for row in found_high.tolist()] == [boxes[u][2] for u in unions]
        expected = {pair for pair in expected if not {i, j} & set(pair)}
        expected |= {(k, union) for k in neighbors}


def test_sparse_slopes_equal_plain_loop():
    random = np.random.default_rng(1)
    grams, n = [], np.array([50, 30, 80])
    for rows in n:
        columns = random.normal(size=(rows, 9)) @ random.normal(size=(9, 9))
        columns -= columns.mean(axis=0)
        grams.append(columns.T @ columns)
    gram = np.array(grams)
    slopes = sparse_slopes(n, gram, 3)
    for table, result in zip(gram, slopes, strict=True):
        chosen: list[int] = []
        for _ in range(3):
            explained = {}
            for j in set(range(8)) - set(chosen):
                part = [*chosen, j]
                b = table[part, 8]
                explained[j] = b @ np.linalg.solve(table[np.ix_(part, part)], b)
            chosen.append(max(explained, key=explained.__getitem__))
        assert set(np.flatnonzero(result)) == set(chosen)
        exact = np.linalg.solve(table[np.ix_(chosen, chosen)], table[chosen, 8])
        np.testing.assert_allclose(result[chosen], exact, rtol=1e-6)
    np.testing.assert_allclose(sparse_slopes(n, gram, None), ridge_slopes(n, gram))
