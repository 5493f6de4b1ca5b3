"""One seed, several independent streams of random numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["ASSIGNMENTS", "FORMULAE", "child_generator"]

#: Formulae and assignments draw from streams of their own, so that a benchmark that takes more of
#: the one keeps the other as it was.
FORMULAE = 0
ASSIGNMENTS = 1


def child_generator(random_state: Any, stream: int) -> np.random.Generator:
    """Give the generator of one purpose.

    Parameters
    ----------
    random_state : int, Generator, SeedSequence or RandomState, optional
        Of a number and a seed sequence the stream is a child. Generators are used, and moved on, as
        they are. None draws from the operating system.
    stream : int
        The purpose.

    Returns
    -------
    Generator
        The generator.

    Raises
    ------
    ValueError
        If `random_state` is none of these.
    """
    if isinstance(random_state, np.random.Generator):
        return random_state
    if isinstance(random_state, np.random.RandomState):
        return np.random.Generator(random_state._bit_generator)
    if isinstance(random_state, np.random.SeedSequence):
        entropy, key = random_state.entropy, (*random_state.spawn_key, stream)
        return np.random.default_rng(np.random.SeedSequence(entropy, spawn_key=key))
    whole = isinstance(random_state, int | np.integer) and not isinstance(random_state, bool)
    if random_state is None or (whole and random_state >= 0):
        seed = None if random_state is None else int(random_state)
        return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(stream,)))
    raise ValueError(
        f"random_state must be None, a whole number >= 0, a Generator, a SeedSequence or a "
        f"RandomState, got {random_state!r}. Pass random_state=0 for the same result every time."
    )
