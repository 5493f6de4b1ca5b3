"""Random choices and time limits of hostile tests."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np


def pick(rng: np.random.Generator, pool: Sequence[Any]) -> Any:
    """Draw an element, whatever its type."""
    return pool[int(rng.integers(len(pool)))]


@contextmanager
def at_most(seconds: int) -> Iterator[None]:
    """Raise a TimeoutError if the block takes longer."""

    def stop(*_: object) -> None:
        raise TimeoutError(f"more than {seconds} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
