"""GridEx: generated points that fill cells with few rows."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from skescore.black_boxes import CallableClassifier, CallableRegressor
from skescore.extractors import GridExExtractor

#: Every box is cut along all features at once, as published.
whole_grid = partial(GridExExtractor, max_rules=None, n_features_to_select=None, depth=2)


class Asked:
    """Function that records the queried points after the rows."""

    def __init__(self, answer):
        self.answer = answer
        self.points = []

    def __call__(self, rows):
        self.points.append(rows)
        return self.answer(rows)


@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("black_box", ["classifier", "regressor"])
def test_statistics_count_rows_and_points_inside(depth, black_box):
    function = Asked(lambda r: ((r[:, 0] * 3).astype(int) + (r[:, 1] > r[:, 2]) * 2) * 1.0)
    adapter = {"classifier": CallableClassifier, "regressor": CallableRegressor}[black_box]
    X = np.random.default_rng(1).uniform(size=(60, 3))
    extractor = whole_grid(
        adapter(function), depth=depth, min_examples=25, threshold=0.3, random_state=0
    ).fit(X)
    assert 2 <= len(function.points) <= 1 + depth
    everything = np.vstack(function.points)
    answers = function.answer(everything)
    owner = extractor.rules_.assign(everything)
    for index, rule in enumerate(extractor.rules_):
        inside = answers[owner == index]
        assert len(inside) >= 25
        assert rule.statistics.n_rows == np.sum(owner[:60] == index)
        if black_box == "classifier":
            counts = tuple(np.sum(inside == c) for c in extractor.classes_)
            assert rule.statistics.class_counts == counts
            assert rule.output == extractor.classes_[np.argmax(counts)]
        else:
            assert rule.output == pytest.approx(inside.mean())
            assert rule.statistics.standard_deviation == pytest.approx(inside.std(), abs=1e-9)


def test_generated_points_are_uniform_in_cells():
    function = Asked(lambda r: r.sum(axis=1))
    # 3 rows in the lower left, 1 in the upper right, none elsewhere.
    X = np.array([[0.0, 0.0], [0.2, 0.3], [0.4, 0.1], [1.0, 1.0]])
    whole_grid(CallableRegressor(function), depth=1, min_examples=2000, random_state=0).fit(X)
    _, points = function.points
    lower_left = (points < 0.5).all(axis=1)
    upper_right = (points >= 0.5).all(axis=1)
    assert (lower_left.sum(), upper_right.sum()) == (1997, 1999)
    assert len(points) == 1997 + 1999
    for cell in (points[lower_left] * 2, points[upper_right] * 2 - 1):
        counts = np.histogram2d(*cell.T, bins=5, range=[[0, 1], [0, 1]])[0]
        # Pearson's statistic has 24 degrees of freedom: 99.9 % of samples stay below 51.2.
        expected = len(cell) / 25
        assert ((counts - expected) ** 2 / expected).sum() < 51.2
    assert len(np.unique(points, axis=0)) == len(points)


def test_points_of_two_levels_differ():
    function = Asked(lambda r: r[:, 0])
    X = np.array([[0.0], [1.0]])
    whole_grid(
        CallableRegressor(function),
        n_slices=1,
        depth=2,
        min_examples=50,
        threshold=0,
        random_state=0,
    ).fit(X)
    _, first, second = function.points
    assert len(first) == len(second) == 48
    assert not np.isin(first, second).any()
