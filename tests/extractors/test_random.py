"""Points that depend on where they are drawn, not on when."""

from __future__ import annotations

import numpy as np
import pytest

from skescore._random import combine, draw_seed, mix, uniform_points

N = 200
LOWER = np.tile([0.0, -5.0, 100.0], (N, 1))
UPPER = np.tile([1.0, 5.0, 100.0], (N, 1))
KEYS = np.arange(N, dtype=np.uint64)


def test_mix_is_the_published_generator():
    # The first outputs of splitmix64 with seed 1234567, as its authors' C code gives them.
    state, outputs = 1234567, []
    for _ in range(5):
        outputs.append(int(mix(np.uint64(state))))
        state = (state + 0x9E3779B97F4A7C15) % 2**64
    assert outputs == [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
        4593380528125082431,
        16408922859458223821,
    ]


def test_points_lie_in_their_boxes_in_order():
    counts = np.arange(N) % 7
    points, owner = uniform_points(5, KEYS, counts, LOWER, UPPER)
    np.testing.assert_array_equal(owner, np.repeat(np.arange(N), counts))
    assert (points >= LOWER[owner]).all()
    assert (points <= UPPER[owner]).all()
    assert (points[:, 2] == 100).all()


def test_points_depend_on_seed_key_and_number_alone():
    points, owner = uniform_points(5, KEYS, np.full(N, 10), LOWER, UPPER)
    order = np.random.default_rng(0).permutation(N)
    shuffled, new_owner = uniform_points(5, KEYS[order], np.full(N, 10), LOWER[order], UPPER[order])
    for position in range(0, N, 17):
        np.testing.assert_array_equal(
            shuffled[new_owner == position], points[owner == order[position]]
        )
    fewer, _ = uniform_points(5, KEYS[:3], np.array([4, 0, 2]), LOWER[:3], UPPER[:3])
    np.testing.assert_array_equal(fewer, points[[0, 1, 2, 3, 20, 21]])
    other, _ = uniform_points(6, KEYS, np.full(N, 10), LOWER, UPPER)
    assert not np.isin(points[:, :2], other[:, :2]).any()


def test_points_are_uniform_and_independent():
    points, _ = uniform_points(0, KEYS, np.full(N, 100), LOWER, UPPER)
    shares = np.column_stack([points[:, 0], (points[:, 1] + 5) / 10])
    n = len(shares)
    assert len(np.unique(shares)) == shares.size
    counts = np.histogram2d(*shares.T, bins=10, range=[[0, 1], [0, 1]])[0]
    # Pearson's statistic has 99 degrees of freedom: 99.9 % of samples lie from 61.1 to 148.2.
    assert 61.1 < ((counts - n / 100) ** 2 / (n / 100)).sum() < 148.2
    # Neighbours in one box, and first points of neighbouring boxes, know nothing of each other.
    for a, b in (
        (shares[:-1, 0], shares[1:, 0]),
        (shares[:, 0], shares[:, 1]),
        (shares[:-100, 0], shares[100:, 0]),
    ):
        assert abs(np.corrcoef(a, b)[0, 1]) < 4 / np.sqrt(n)


def test_keys_of_parts():
    keys = combine(np.arange(100, dtype=np.uint64)[:, None], np.arange(100)[None, :])
    assert keys.dtype == np.uint64
    assert len(np.unique(keys)) == 10_000
    assert combine(3, 4) != combine(4, 3)


def test_seeds():
    assert draw_seed(3) == draw_seed(3) == draw_seed(np.random.RandomState(3))
    assert draw_seed(3) != draw_seed(4)
    generator = np.random.RandomState(0)
    assert draw_seed(generator) != draw_seed(generator)
    assert draw_seed(None) != draw_seed(None)
    with pytest.raises(ValueError, match=r"random_state must be None, an int from 0 .* got 'seed'"):
        draw_seed("seed")
