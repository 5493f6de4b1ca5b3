"""Deadlines in wall time or CPU time."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

_CLOCKS = {"wall": time.monotonic, "cpu": time.process_time}
CLOCKS = tuple(_CLOCKS)


@dataclass(frozen=True)
class Deadline:
    """Time at which a search ends.

    Parameters
    ----------
    end : float, default=inf
        Reading of the clock at the deadline.
    clock : {"wall", "cpu"}, default="wall"
        Wall time, or CPU time of the process.

    Examples
    --------
    >>> Deadline().is_over(), Deadline.after(0.0).is_over()
    (False, True)
    """

    end: float = math.inf
    clock: str = "wall"

    @classmethod
    def after(cls, seconds: float, clock: str = "wall") -> Deadline:
        """Return the deadline some seconds from now."""
        return cls(_CLOCKS[clock]() + seconds, clock)

    def seconds_left(self) -> float:
        """Return the remaining seconds; 0 if the deadline is over."""
        return max(self.end - _CLOCKS[self.clock](), 0.0)

    def is_over(self) -> bool:
        """Return whether the deadline has passed."""
        return _CLOCKS[self.clock]() >= self.end

    def part(self, share: float) -> Deadline:
        """Return the deadline after a share of the remaining time."""
        return Deadline.after(share * self.seconds_left(), self.clock)
