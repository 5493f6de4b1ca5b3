"""Allowed thresholds: a list of numbers, or numbers with few decimals or digits."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np

from skescore._text import plural
from skescore._validation import check_choice, check_integer, check_number

#: Key of `thresholds` for all features that are not named.
EVERY_FEATURE = "*"
#: Kinds of rounding: decimals after the point, or significant digits.
ROUNDINGS = ("decimals", "digits")


@lru_cache(maxsize=1 << 17)  # extractions round the same columns repeatedly
def _rounded(value: float, kind: str, n: int, mode: str) -> float:
    if value == 0 or not math.isfinite(value):
        return value
    number = Decimal(repr(value))
    exponent = number.adjusted() + 1 - n if kind == "digits" else -n
    if number.as_tuple().exponent >= exponent:  # type: ignore[operator]
        return value
    return float(number.quantize(Decimal(1).scaleb(exponent), rounding=mode))


@dataclass(frozen=True, slots=True)
class Rounding:
    """Numbers with a limited number of decimals or of significant digits.

    Parameters
    ----------
    kind : {"decimals", "digits"}
        Whether `n` counts decimals or significant digits.
    n : int
        Largest number of decimals or digits.

    Examples
    --------
    >>> Rounding("digits", 2).allows(1300), Rounding("digits", 2).allows(1320)
    (True, False)
    >>> Rounding("decimals", 1).near(2.449)
    (2.4, 2.5)
    """

    kind: str
    n: int

    def __post_init__(self) -> None:
        check_choice("thresholds", self.kind, ROUNDINGS)
        smallest = 1 if self.kind == "digits" else 0
        object.__setattr__(self, "n", check_integer(f"thresholds {self.kind}", self.n, smallest))

    def __str__(self) -> str:
        return plural(self.n, self.kind.removesuffix("s"))

    def allows(self, value: float) -> bool:
        """Return whether a number has at most `n` decimals or digits."""
        return _rounded(value, self.kind, self.n, ROUND_HALF_EVEN) == value

    def near(self, value: float) -> tuple[float, ...]:
        """Return the largest allowed number up to `value`, and the smallest from `value` on."""
        modes = ROUND_FLOOR, ROUND_CEILING
        low, high = (_rounded(value, self.kind, self.n, mode) for mode in modes)
        return low, high


@dataclass(frozen=True, slots=True)
class Cutoffs:
    """A list of allowed numbers.

    Parameters
    ----------
    values : tuple of float
        The numbers in increasing order.

    Examples
    --------
    >>> Cutoffs((18.0, 65.0)).near(30)
    (18.0, 65.0)
    """

    values: tuple[float, ...]

    def __str__(self) -> str:
        return ", ".join(f"{v:g}" if float(f"{v:g}") == v else repr(v) for v in self.values)

    def allows(self, value: float) -> bool:
        """Return whether a number is in the list."""
        return value in self.values

    def near(self, value: float) -> tuple[float, ...]:
        """Return the nearest listed numbers on both sides, or the only one."""
        position = int(np.searchsorted(self.values, value))
        if position < len(self.values) and self.values[position] == value:
            return value, value
        return tuple(self.values[max(position - 1, 0) : position + 1])


#: Numbers that conditions on a feature may use as bounds.
AllowedThresholds: TypeAlias = Rounding | Cutoffs


def check_thresholds(feature: str, value: Any) -> AllowedThresholds:
    """Return the allowed thresholds of a feature, given a list or ``{"digits": n}``.

    Raises
    ------
    TypeError, ValueError
        If the value is neither.
    """
    if isinstance(value, Rounding | Cutoffs):
        return value
    name = f"thresholds[{feature!r}]"
    if isinstance(value, Mapping):
        if len(value) != 1:
            raise ValueError(f'{name} must be {{"decimals": n}} or {{"digits": n}}, got {value!r}.')
        ((kind, n),) = value.items()
        return Rounding(kind, n)
    if isinstance(value, str) or not hasattr(value, "__iter__"):
        raise TypeError(
            f"{name} must be a list of numbers, {{'decimals': n}} or {{'digits': n}}, got "
            f"{value!r}."
        )
    numbers = sorted({check_number(name, v, finite=True) for v in value})
    if not numbers:
        raise ValueError(
            f"{name} must list at least one number; to exclude {feature!r} from the rules, forbid "
            "it."
        )
    return Cutoffs(tuple(numbers))
