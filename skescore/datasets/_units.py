"""Numbers written with units, such as ``1,4 mg/dl`` or ``3 kg``."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from skescore.datasets._numbers import QUALIFIER

__all__ = ["UnitTexts", "main_unit", "plain_divisor", "split_units", "unit_factor"]

#: Number in any style, followed by a unit without digits.
_WITH_UNIT = re.compile(
    rf"(?P<number>{QUALIFIER}?[+-]?\d[\d.,' ]*(?:[eE][+-]?\d+)?)\s*"
    r"(?P<unit>[^\W\d_][^\d,;]{0,14}|[%°‰µμΩ][^\d,;]{0,14}|[^\W\d_]+(?:/[^\W\d_]+)*\^?[23²³])"
)
#: Times and time spans in hours, minutes and optional seconds.
_CLOCK = re.compile(r"(\d{1,3}):([0-5]\d)(?::([0-5]\d))?")
#: Words after numbers that make them ranks or times of day.
_NO_UNITS = frozenset(["st", "nd", "rd", "th", "am", "pm", "uhr", "a.m.", "p.m.", "x"])
#: Minimum share of rows with the main unit, or a convertible one, among the rows with a unit.
_MAIN_SHARE = 0.8
#: Sizes of units by dimension, as strings, so that ratios are exact.
_SIZES: dict[str, dict[str, str]] = {
    "mass": {
        "µg": "1e-6",
        "μg": "1e-6",
        "ug": "1e-6",
        "mg": "1e-3",
        "g": "1",
        "kg": "1e3",
        "t": "1e6",
    },
    "length": {"mm": "1e-3", "cm": "1e-2", "m": "1", "km": "1e3"},
    "volume": {"µl": "1e-6", "ml": "1e-3", "cl": "1e-2", "dl": "1e-1", "l": "1"},
    "amount": {"nmol": "1e-9", "µmol": "1e-6", "umol": "1e-6", "mmol": "1e-3", "mol": "1"},
    "time": {"ms": "1e-3", "s": "1", "sec": "1", "min": "60", "h": "3600", "std": "3600"},
}
#: Words that multiply the number before them, in lower case and without a final point.
_MULTIPLIERS = {
    **dict.fromkeys(("k", "tsd", "thousand", "тыс", "千"), 1e3),
    **dict.fromkeys(("万", "萬"), 1e4),
    **dict.fromkeys(("lakh", "lac"), 1e5),
    **dict.fromkeys(("mio", "mill", "mln", "million", "millions", "millionen", "млн"), 1e6),
    **dict.fromkeys(("crore",), 1e7),
    **dict.fromkeys(("億", "亿"), 1e8),
    **dict.fromkeys(("mrd", "bn", "billion", "billions", "млрд"), 1e9),
}
#: Units that may be multipliers (thousand, million, billion) or not (kelvin, molar, byte).
_AMBIGUOUS = ("K", "M", "B")


class UnitTexts(NamedTuple):
    """Texts split into numbers and units; both are empty for other texts."""

    numbers: list[str]
    units: list[str]


def split_units(texts: Sequence[str]) -> UnitTexts:
    """Split texts into numbers and units; times such as 1:30 are hours.

    Parameters
    ----------
    texts : sequence of str
        The texts.

    Returns
    -------
    UnitTexts
        Numbers as written, and units.

    Examples
    --------
    >>> from skescore.datasets._units import split_units
    >>> split_units(["1,4 mg/dl", "12", "3rd", "1:30"])
    UnitTexts(numbers=['1,4', '', '', '1.5'], units=['mg/dl', '', '', 'h'])
    """
    numbers, units = [], []
    for text in texts:
        if (clock := _CLOCK.fullmatch(text)) is not None:
            hours, minutes, seconds = (int(value or 0) for value in clock.groups())
            numbers.append(repr(hours + minutes / 60 + seconds / 3600))
            units.append("h")
            continue
        match = _WITH_UNIT.fullmatch(text)
        is_unit = match is not None and match["unit"].strip().lower() not in _NO_UNITS
        numbers.append(match["number"].strip() if match is not None and is_unit else "")
        units.append(match["unit"].strip() if match is not None and is_unit else "")
    return UnitTexts(numbers, units)


def main_unit(units: Sequence[str], counts: np.ndarray) -> str | None:
    """Return the unit of nearly all rows with a unit, or None.

    Parameters
    ----------
    units : sequence of str
        Unit of each text, possibly empty.
    counts : ndarray of int
        Number of rows of each text.
    """
    rows = Counter[str]()
    for unit, count in zip(units, counts.tolist(), strict=True):
        if unit:
            rows[unit] += count
    if not rows:
        return None
    unit, count = rows.most_common(1)[0]
    convertible = sum(n for u, n in rows.items() if unit_factor(u, unit) is not None)
    is_main = max(count, convertible) >= _MAIN_SHARE * rows.total()
    return unit if is_main else None


def plain_divisor(unit: str) -> float:
    """Return the divisor of numbers without a unit in a column of numbers with a unit.

    NaN if the unit may be a multiplier or not.

    Examples
    --------
    >>> from skescore.datasets._units import plain_divisor
    >>> plain_divisor("kg"), plain_divisor("k"), plain_divisor("Mio. €"), plain_divisor("M")
    (1.0, 1000.0, 1000000.0, nan)
    """
    word = re.split(r"[\s€$£]", unit)[0]
    if word in _AMBIGUOUS:
        return np.nan
    return _MULTIPLIERS.get(word.lower().removesuffix("."), 1.0)


def unit_factor(unit: str, target: str) -> Fraction | None:
    """Return the factor that converts numbers in a unit to another one, or None.

    Examples
    --------
    >>> from skescore.datasets._units import unit_factor
    >>> unit_factor("kg", "g"), unit_factor("g/l", "mg/dl"), unit_factor("kg", "years")
    (Fraction(1000, 1), Fraction(100, 1), None)
    """
    if unit == target:
        return Fraction(1)
    parts, target_parts = unit.split("/"), target.split("/")
    if len(parts) != len(target_parts):
        return None
    factor = Fraction(1)
    for position, (part, target_part) in enumerate(zip(parts, target_parts, strict=True)):
        ratio = _size_ratio(part.strip(), target_part.strip())
        if ratio is None:
            return None
        factor = factor * ratio if position == 0 else factor / ratio
    return factor


def _size_ratio(unit: str, target: str) -> Fraction | None:
    """Return the ratio of the sizes of two units of one dimension, or None."""
    if unit.lower() == target.lower():
        return Fraction(1)
    for sizes in _SIZES.values():
        if unit.lower() in sizes and target.lower() in sizes:
            return Fraction(sizes[unit.lower()]) / Fraction(sizes[target.lower()])
    return None
