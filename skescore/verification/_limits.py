"""Limits of a verification."""

from __future__ import annotations

from dataclasses import dataclass

from skescore._validation import check_choice, check_integer, check_number
from skescore.verification._clock import CLOCKS


@dataclass(frozen=True)
class VerificationLimits:
    """Required widths of intervals, and limits of time and work.

    Parameters
    ----------
    time_limit : float, default=60.0
        Time in seconds, divided among the rules; it does not include reading the model. Each
        interval gets at least one sample.
    clock : {"wall", "cpu"}, default="wall"
        Time that is limited: wall time, or CPU time of the process, which suits a loaded machine.
    max_splits : int, default=1000
        Maximum number of splits of boxes per rule for intervals; ten times as many for trusted
        parts.
    max_samples : int, default=400_000
        Largest number of sampled points per interval.
    near_width, volume_width : float, default=0.01, 0.02
        Width of an interval at which sampling stops.

    Examples
    --------
    >>> VerificationLimits(time_limit=5.0).near_width
    0.01
    """

    time_limit: float = 60.0
    clock: str = "wall"
    max_splits: int = 1000
    max_samples: int = 400_000
    near_width: float = 0.01
    volume_width: float = 0.02

    def __post_init__(self) -> None:
        check_number("time_limit", self.time_limit, 0.0)
        check_choice("clock", self.clock, CLOCKS)
        check_integer("max_splits", self.max_splits, 0)
        check_integer("max_samples", self.max_samples, 2000)
        for name in ("near_width", "volume_width"):
            value = check_number(name, getattr(self, name), finite=True)
            if not 0 < value <= 1:
                raise ValueError(f"{name} must lie in (0, 1], got {value!r}.")
