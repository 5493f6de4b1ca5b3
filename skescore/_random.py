"""Random points that depend on their position in the algorithm, not on the order of drawing.

Every unit of work (a cell, a strip) has a key derived from its position in the structure; its
points are hashes of the seed, the key and their number. So batching, parallel work and the order of
the units cannot change results, and a million units are drawn in one vectorized pass.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import check_random_state

__all__ = ["ASSIGNMENTS", "FORMULAS", "child_generator"]


#: Formulas and assignments have separate streams, so that drawing more of one does not change the
#: other.
FORMULAS = 0
ASSIGNMENTS = 1


def child_generator(random_state: Any, stream: int) -> np.random.Generator:
    """Return the random generator of a stream, `FORMULAS` or `ASSIGNMENTS`.

    An integer or a seed sequence yields an independent generator for each stream. Generators are
    used directly and advanced. None uses entropy of the operating system.
    """
    if isinstance(random_state, np.random.Generator):
        return random_state
    if isinstance(random_state, np.random.RandomState):
        return np.random.Generator(random_state._bit_generator)
    if isinstance(random_state, np.random.SeedSequence):
        entropy, key = random_state.entropy, (*random_state.spawn_key, stream)
        return np.random.default_rng(np.random.SeedSequence(entropy, spawn_key=key))
    is_integer = isinstance(random_state, int | np.integer) and not isinstance(random_state, bool)
    if random_state is None or (is_integer and random_state >= 0):
        seed = None if random_state is None else int(random_state)
        return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(stream,)))
    raise ValueError(
        f"random_state must be None, an integer >= 0, a Generator, a SeedSequence or a "
        f"RandomState, got {random_state!r}. Pass random_state=0 for the same result every time."
    )


_STEP = np.uint64(0x9E3779B97F4A7C15)


def draw_seed(random_state: Any) -> int:
    """Convert scikit-learn's `random_state` to one integer."""
    try:
        generator = check_random_state(random_state)
    except (TypeError, ValueError) as error:
        raise ValueError(
            "random_state must be None, an int from 0 to 2**32 - 1 or a RandomState, got "
            f"{random_state!r}."
        ) from error
    return int(generator.randint(0, 2**31 - 1))


def mix(values: Any) -> np.ndarray:
    """Mix the bits of 64-bit integers (finalizer of the splitmix64 generator).

    References
    ----------
    G. Steele, D. Lea, C. Flood: Fast splittable pseudorandom number generators. OOPSLA 2014.
    """
    z = np.asarray(values, dtype=np.uint64)
    with np.errstate(over="ignore"):
        z = z + _STEP
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))


def combine(keys: Any, numbers: Any) -> np.ndarray:
    """Derive the keys of parts from the keys of their parents and the numbers of the parts."""
    return mix(np.asarray(keys, dtype=np.uint64) ^ mix(np.asarray(numbers, dtype=np.uint64)))


def uniform_points(
    seed: int, keys: np.ndarray, counts: np.ndarray, lower: np.ndarray, upper: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Draw uniform points in boxes.

    Return the points, box by box, and the box of each point. They depend only on the structural key
    of the box.
    """
    owner = np.repeat(np.arange(len(counts)), counts)
    number = np.arange(len(owner)) - np.repeat(np.cumsum(counts) - counts, counts)
    point_keys = combine(combine(keys, seed)[owner], number)
    n_features = lower.shape[1]
    bits = combine(point_keys[:, None], np.arange(n_features)[None, :])
    share = (bits >> np.uint64(11)) * 2.0**-53
    low, high = lower[owner], upper[owner]
    return np.clip(low + share * (high - low), low, high), owner
