"""Random points in boxes and the intervals around what they estimate."""

from __future__ import annotations

from collections.abc import Callable
from math import comb

import numpy as np
import pytest
from scipy.stats import binomtest

from skescore.rules._volumes import clopper_pearson, sampled_volume, sampling_stream


def test_points_are_not_those_of_data_made_with_the_same_seed() -> None:
    # Narrow boxes around rows drawn with seed 0, and points with seed 0 in the whole cube: points
    # of the same stream would all hit the boxes.
    points = np.random.default_rng(0).random((500, 2))
    assert not np.isin(sampling_stream(0).random((500, 2)), points).any()


@pytest.mark.parametrize(
    ("hits", "n_samples", "confidence"),
    [(0, 50, 0.95), (50, 50, 0.99), (7, 1000, 0.9), (3, 4, 0.5)],
)
def test_clopper_pearson_agrees_with_scipy(hits: int, n_samples: int, confidence: float) -> None:
    expected = binomtest(hits, n_samples).proportion_ci(confidence, method="exact")
    assert clopper_pearson(hits, n_samples, confidence) == pytest.approx(tuple(expected), rel=1e-9)


@pytest.mark.parametrize("n_samples", [1, 7, 20])
@pytest.mark.parametrize("truth", [0.0, 0.01, 0.3, 0.5, 0.97, 1.0])
def test_clopper_pearson_never_falls_short_of_its_confidence(n_samples: int, truth: float) -> None:
    held = 0.0
    for hits in range(n_samples + 1):
        low, high = clopper_pearson(hits, n_samples, 0.9)
        assert 0.0 <= low <= hits / n_samples <= high <= 1.0
        if low <= truth <= high:
            held += comb(n_samples, hits) * truth**hits * (1 - truth) ** (n_samples - hits)
    assert held >= 0.9


@pytest.mark.parametrize(
    ("lower", "upper"),
    [
        # A staircase that fills much of the square around it: points are drawn there.
        ([[0, 0], [0, 0], [0, 0]], [[8, 2], [5, 5], [2, 8]]),
        # Two bars far from filling it: points are drawn in the bars.
        ([[0, 0], [0, 0]], [[8, 1], [1, 8]]),
        # One inside another: only the first box of equal points may count.
        ([[1, 1], [0, 0], [7, 7]], [[2, 2], [3, 3], [8, 8]]),
    ],
)
def test_sampled_volume_comes_near_to_counted_cells(
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


def test_a_stream_is_drawn_from_as_it_is() -> None:
    generator = np.random.default_rng(3)
    assert sampling_stream(generator) is generator
    state = np.random.RandomState(3)
    first, second = sampling_stream(state).random(), sampling_stream(state).random()
    assert first != second
    assert sampling_stream(None).random() != sampling_stream(None).random()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: sampling_stream(-1), "`random_state` must be.*got -1"),
        (lambda: sampling_stream("0"), "`random_state` must be.*got '0'"),
        (lambda: sampling_stream(True), "`random_state` must be.*got True"),
        (lambda: clopper_pearson(5, 4), "`hits` must lie between 0 and n_samples=4, got 5"),
        (lambda: clopper_pearson(0, 0), "`n_samples` must be.*got 0"),
        (lambda: clopper_pearson(0, 1, 0.0), "`confidence` must lie.*got 0.0"),
    ],
)
def test_bad_input_is_named(call: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()
