"""Rules learnt from standardised columns, back in the user's units without moving any row.

A user of PSyKE who standardises gives an extractor the map ``{column: (mean, scale)}``; the columns
that it sees are ``(x - mean) / scale``. Computing ``bound * scale + mean`` rounds, so that a row on
a bound could change sides. That map never falls as ``x`` grows, so the rows that pass a bound are
those beyond one certain float, which bisection finds.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from skescore._validation import check_number
from skescore.rules._conditions import Interval
from skescore.rules._rule import LinearOutput


def _number_at(place: int) -> float:
    """The float at a place in the order of all floats; 0 is at 0."""
    bits = place if place >= 0 else -place | (1 << 63)
    return float(struct.unpack("<d", struct.pack("<Q", bits))[0])


#: Place of infinity.
_LAST = 0x7FF << 52


def first_number(holds: Callable[[float], bool]) -> float:
    """The least float for which something holds that goes on holding for all greater ones.

    Parameters
    ----------
    holds : callable
        Takes a float, gives a truth value.

    Returns
    -------
    float
        That float; infinity if there is none before it.

    Examples
    --------
    >>> first_number(lambda x: x * 10 >= 3)
    0.3
    """
    low, high = -_LAST - 1, _LAST  # it does not hold at low, and is taken to hold at high
    while high - low > 1:
        middle = (low + high) // 2
        if holds(_number_at(middle)):
            high = middle
        else:
            low = middle
    return _number_at(high)


def interval_before(interval: Interval, mean: float, scale: float) -> Interval | None:
    """The floats x with ``(x - mean) / scale``, as floats compute it, in an interval.

    Parameters
    ----------
    interval : Interval
        Bounds after the map.
    mean, scale : float
        The map; the scale is above 0.

    Returns
    -------
    Interval or None
        Bounds before the map; None if no float gets into the interval.
    """
    low, high = -math.inf, math.inf
    if interval.lower > -math.inf:
        bound = interval.lower
        if interval.lower_closed:
            low = first_number(lambda x: (x - mean) / scale >= bound)
        else:
            low = math.nextafter(first_number(lambda x: (x - mean) / scale > bound), -math.inf)
    if interval.upper < math.inf:
        limit = interval.upper
        if interval.upper_closed:
            high = math.nextafter(first_number(lambda x: (x - mean) / scale > limit), -math.inf)
        else:
            high = first_number(lambda x: (x - mean) / scale >= limit)
    closed = interval.lower_closed, interval.upper_closed
    if low > high or (low == high and not all(closed)):
        return None
    return Interval(interval.feature, low, high, *closed)


@dataclass(frozen=True)
class Units:
    """What was done to the columns and to the target of an extractor before it saw them.

    Parameters
    ----------
    columns : mapping of str to (float, float)
        Mean and scale of every column that was standardised.
    target : tuple of float, default=(0.0, 1.0)
        Mean and scale of the target.
    """

    columns: Mapping[str, tuple[float, float]]
    target: tuple[float, float] = (0.0, 1.0)

    @classmethod
    def of(cls, normalization: Mapping[str, tuple[float, float]] | None) -> Units:
        """Read the map that a user gave to an extractor: its last entry is the target's.

        Raises
        ------
        ValueError
            If a scale is not above 0.
        """
        found = {}
        for name, (mean, scale) in (normalization or {}).items():
            mean = check_number(f"the mean of {name!r}", mean, finite=True)
            scale = check_number(f"the scale of {name!r}", scale, finite=True)
            if scale <= 0:
                raise ValueError(
                    f"The extractor's normalization must divide by numbers above 0, got the scale "
                    f"{scale!r} for {name!r}: those rules cannot be put in the user's units."
                )
            found[str(name)] = mean, scale
        return cls(found, list(found.values())[-1] if found else (0.0, 1.0))

    def interval(self, name: str, interval: Interval) -> Interval | None:
        """Bounds on a column in the user's units; None if no number lies between them."""
        if name not in self.columns:
            return interval
        return interval_before(interval, *self.columns[name])

    def number(self, name: str, value: float) -> float:
        """One value of a column in the user's units."""
        mean, scale = self.columns.get(name, (0.0, 1.0))
        return value * scale + mean

    def scaled(self, name: str, values: Any) -> Any:
        """A column as the extractor sees it."""
        if name not in self.columns:
            return values
        mean, scale = self.columns[name]
        return (values - mean) / scale

    def answer(self, value: Any) -> Any:
        """A predicted number in the user's units, by the operations that PSyKE uses."""
        mean, scale = self.target
        return value if self.target == (0.0, 1.0) else value * scale + mean

    def linear(self, intercept: float, terms: Iterable[tuple[str, int, float]]) -> LinearOutput:
        """An affine answer in the user's units.

        Parameters
        ----------
        intercept : float
            Its constant.
        terms : iterable of (str, int, float)
            Column name, index among the rules' features and coefficient.
        """
        mean_out, scale_out = self.target
        pairs = []
        for name, feature, coefficient in terms:
            mean, scale = self.columns.get(name, (0.0, 1.0))
            intercept -= coefficient * mean / scale
            pairs.append((feature, coefficient / scale * scale_out))
        return LinearOutput(intercept * scale_out + mean_out, tuple(pairs))
