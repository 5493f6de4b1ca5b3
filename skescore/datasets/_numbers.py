"""Numbers as people write them: with currencies, percent signs, thousands, decimal commas."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

import numpy as np
import pandas as pd

__all__ = ["as_numbers", "fits", "is_number", "style_of", "units_of"]

_CURRENCY = (
    r"US\$|R\$|A\$|C\$|[$€£¥₹₽₩₺₪฿]|kr\.?|zł|Fr\.|"
    r"(?:USD|EUR|GBP|CHF|JPY|INR|SEK|NOK|DKK|PLN|CZK|AUD|CAD|CNY|BRL)\b"
)
_UNIT = re.compile(rf"%|{_CURRENCY}")
_EXPONENT = r"(?:[eE][+-]?\d+)?"
_TRUTH = {"true": 1.0, "false": 0.0}
#: A decimal sign, and the one between thousands; of two that fit equally well, the first.
_STYLES = ((".", ","), (",", "."), (".", " "), (",", " "), (".", "'"), (",", "'"))
#: Texts by which the style is chosen.
_SEEN = 1000
#: Signs for which there are several.
_SIGNS = str.maketrans("\u2212\u2019\u00a0\u202f\u2009", "-'   ")


@cache
def _pattern(decimal: str, thousands: str) -> re.Pattern[str]:
    """A line that is a number in this style, in groups; or any line, and empty groups."""
    d, t = re.escape(decimal), re.escape(thousands)
    core = rf"\d{{1,3}}(?:{t}\d{{3}})+(?:{d}\d*)?|(?:\d+(?:{d}\d*)?|{d}\d+){_EXPONENT}"
    return re.compile(
        rf"^(?:(\()?[ ]*([+-])?[ ]*(?:{_CURRENCY})?[ ]*([+-])?[ ]*({core})[ ]*"
        rf"(?:%|{_CURRENCY})?[ ]*\)?$|.*$)",
        re.MULTILINE,
    )


def _lines(texts: Sequence[str]) -> str:
    """All texts in one, a line each: one search in it is faster than many in each."""
    return "\n".join(re.sub(r"[\r\n]", "\0", t) if "\n" in t else t for t in texts).translate(
        _SIGNS
    )


def fits(texts: Sequence[str], decimal: str, thousands: str) -> np.ndarray:
    """Whether each text is a number in this style."""
    found = _pattern(decimal, thousands).findall(_lines(texts))
    return np.array([row[3] != "" for row in found[: len(texts)]], dtype=bool)


def style_of(
    texts: Sequence[str], decimal: str | None = None, *, comma_first: bool = False
) -> tuple[str, str]:
    """Return the signs before decimals and between thousands that fit most of the texts."""
    seen = texts[:: len(texts) // _SEEN + 1]
    styles = [style for style in _STYLES if decimal in (None, style[0])]
    if comma_first:
        styles.sort(key=lambda style: style[0] != ",")
    return max(styles, key=lambda style: int(fits(seen, *style).sum()))


def as_numbers(texts: Sequence[str], decimal: str = ".", thousands: str = ",") -> np.ndarray:
    """Read numbers, and booleans as 0 and 1; NaN for all other text."""
    result = np.full(len(texts), np.nan)
    if decimal == ".":
        result = pd.to_numeric(pd.Series(texts, dtype=object), errors="coerce").to_numpy(
            float, copy=True
        )
    left = np.flatnonzero(np.isnan(result))
    if not len(left):
        return result
    rest = [texts[int(i)] for i in left]
    found = _pattern(decimal, thousands).findall(_lines(rest))[: len(rest)]
    cores = "\n".join(row[3] for row in found).replace(thousands, "").replace(decimal, ".")
    values = pd.to_numeric(pd.Series(cores.split("\n"), dtype=object), errors="coerce")
    negative = np.array([row[0] != "" or "-" in row[1:3] for row in found], dtype=bool)
    result[left] = np.where(negative, -1.0, 1.0) * values.to_numpy(float)
    for i, text in zip(left, rest, strict=True):
        if len(text) < 6 and np.isnan(result[i]):
            result[i] = _TRUTH.get(text.lower(), np.nan)
    return result


def units_of(texts: Sequence[str]) -> tuple[list[str], bool]:
    """Return currencies and percent signs among numbers, and whether some have none."""
    found = _UNIT.findall("\n".join(texts))
    return sorted(set(found)), len(found) < len(texts)


def is_number(text: str) -> bool:
    """Whether Python reads a text as a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True
