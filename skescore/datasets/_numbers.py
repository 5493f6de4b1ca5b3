"""Numbers written as text, in the styles of several languages."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from functools import cache

import numpy as np
import pandas as pd

__all__ = ["EITHER_SIGN", "QUALIFIER", "as_numbers", "fits", "is_number", "style_of", "units_of"]

#: Words before approximate numbers.
QUALIFIER = r"(?:(?i:ca\.?|circa|approx\.?|approximately|about|etwa)[ ]+|[~≈][ ]*)"

_CURRENCY = (
    r"US\$|R\$|A\$|C\$|[$€£¥₹₽₩₺₪฿]|kr\.?|zł|Fr\.|"
    r"(?:USD|EUR|GBP|CHF|JPY|INR|SEK|NOK|DKK|PLN|CZK|AUD|CAD|CNY|BRL)\b"
)
_UNIT = re.compile(rf"%|{_CURRENCY}")
_EXPONENT = r"(?:[eE][+-]?\d+)?"
_TRUTH = {"true": 1.0, "false": 0.0}
#: Decimal signs and thousands separators; of styles that fit equally well, the first is used.
_STYLES = ((".", ","), (",", "."), (".", " "), (",", " "), (".", "'"), (",", "'"))
#: Style of columns in which some numbers have a decimal point and others a decimal comma.
EITHER_SIGN = (".,", " ")
_MONEY = re.compile(_CURRENCY)
#: Minimum number of amounts for which three digits after each point are no coincidence.
_MIN_WITH_POINT = 3
#: The same minimum for numbers without a currency.
_MIN_THOUSANDS = 10
#: Maximum number of texts that are used to detect the style.
_STYLE_TEXTS = 1000
#: Variants of minus signs, apostrophes and spaces.
_SIGNS = str.maketrans("\u2212\u2019\u00a0\u202f\u2009", "-'   ")
#: Fraction characters such as ½, with a space before them after an integer.
_FRACTION = re.compile(r"(?:(?<=\d) )?([\u00bc-\u00be\u2150-\u215e])")


@cache
def _pattern(decimal: str, thousands: str) -> re.Pattern[str]:
    """Compile a pattern that matches every line; groups are empty for lines that are no number."""
    d, t = re.escape(decimal), re.escape(thousands)
    # Three digits after a point or comma could also be thousands, except after a zero.
    core = rf"(?:\d+(?:[.,](?:\d{{1,2}}|\d{{4,}})?)?|0?[.,]\d+){_EXPONENT}"
    if (decimal, thousands) != EITHER_SIGN:
        core = rf"[1-9]\d{{0,2}}(?:{t}\d{{3}})+(?:{d}\d*)?|(?:\d+(?:{d}\d*)?|{d}\d+){_EXPONENT}"
    return re.compile(
        rf"^(?:(\()?[ ]*{QUALIFIER}?([+-])?[ ]*(?:{_CURRENCY})?[ ]*([+-])?[ ]*({core})[ ]*"
        rf"(?:%|{_CURRENCY})?[ ]*\)?$|.*$)",
        re.MULTILINE,
    )


def _join_lines(texts: Sequence[str], decimal: str) -> str:
    """Join texts as lines, as one search in all of them is faster than many searches."""
    lines = "\n".join(re.sub(r"[\r\n]", "\0", t) if "\n" in t else t for t in texts)
    lines = lines.translate(_SIGNS)

    def decimals(fraction: re.Match[str]) -> str:
        return decimal[0] + str(unicodedata.numeric(fraction[1])).partition(".")[2]

    return lines if lines.isascii() else _FRACTION.sub(decimals, lines)


def fits(texts: Sequence[str], decimal: str, thousands: str) -> np.ndarray:
    """Return a mask of the texts that are numbers in this style."""
    matches = _pattern(decimal, thousands).findall(_join_lines(texts, decimal))
    return np.array([row[3] != "" for row in matches[: len(texts)]], dtype=bool)


def style_of(
    texts: Sequence[str], decimal: str | None = None, *, comma_first: bool = False
) -> tuple[str, str]:
    """Return the decimal sign and the thousands separator that fit most of the texts.

    `EITHER_SIGN` is returned if some numbers have a decimal point and others a decimal comma.
    """
    sample_texts = texts[:: len(texts) // _STYLE_TEXTS + 1]
    styles = [style for style in _STYLES if decimal in (None, style[0])]
    if comma_first:
        styles.sort(key=lambda style: style[0] != ",")
    best_style = max(styles, key=lambda style: int(fits(sample_texts, *style).sum()))
    if decimal is None and _have_either_sign(sample_texts, best_style):
        return EITHER_SIGN
    if decimal is not None or best_style != (".", ","):
        return best_style
    if _are_thousands_of_money(sample_texts) or _mix_grouped_and_small_integers(sample_texts):
        return ",", "."
    return best_style


def _have_either_sign(texts: Sequence[str], best_style: tuple[str, str]) -> bool:
    """Return whether numbers have a decimal point or a decimal comma, and no cell is ambiguous."""
    fits_best = fits(texts, *best_style)
    if fits_best.all():
        return False
    either = fits(texts, *EITHER_SIGN)
    is_number_text = fits(texts, ".", ",") | fits(texts, ",", ".")
    return bool(either.sum() > fits_best.sum() and not (is_number_text & ~either).any())


def _are_thousands_of_money(texts: Sequence[str]) -> bool:
    """Return whether the only point in amounts of money always precedes three digits.

    Money has no third decimal, so the point separates thousands.
    """
    numbers = [_MONEY.sub("", text).strip(" +-()\u00a0\u202f") for text in texts]
    with_point = [number for number in numbers if "." in number]
    is_money = sum(map(bool, map(_MONEY.search, texts))) > len(texts) / 2
    return (
        is_money
        and len(with_point) >= _MIN_WITH_POINT
        and all(re.fullmatch(r"[1-9]\d{0,2}\.\d{3}", number) for number in with_point)
    )


def _mix_grouped_and_small_integers(texts: Sequence[str]) -> bool:
    """Return whether points precede three digits, and numbers without points lie between them.

    Of 7.996, 1.204 and 631 the last would be by far the largest if points were decimal signs. As
    thousands separators, they occur in all numbers from 1,000 on and in no others.
    """
    numbers = [text.strip(" +-\u00a0\u202f") for text in texts]
    grouped = [number for number in numbers if "." in number]
    small = [number for number in numbers if re.fullmatch(r"\d{1,3}", number)]
    if len(grouped) < _MIN_THOUSANDS or not small or len(grouped) + len(small) < len(numbers):
        return False
    if not all(re.fullmatch(r"[1-9]\d{0,2}\.\d{3}", number) for number in grouped):
        return False
    largest = max(int(number.partition(".")[0]) for number in grouped)
    return float(np.median([int(number) for number in small])) > largest


def as_numbers(texts: Sequence[str], decimal: str = ".", thousands: str = ",") -> np.ndarray:
    """Convert texts to numbers and booleans to 0 and 1; other text becomes NaN."""
    result = np.full(len(texts), np.nan)
    if decimal == ".":
        result = pd.to_numeric(pd.Series(texts, dtype=object), errors="coerce").to_numpy(
            float, copy=True
        )
    unread = np.flatnonzero(np.isnan(result))
    if not len(unread):
        return result
    unread_texts = [texts[int(i)] for i in unread]
    matches = _pattern(decimal, thousands).findall(_join_lines(unread_texts, decimal))
    matches = matches[: len(unread_texts)]
    cores = "\n".join(row[3] for row in matches).replace(thousands, "")
    for sign in decimal:
        cores = cores.replace(sign, ".")
    values = pd.to_numeric(pd.Series(cores.split("\n"), dtype=object), errors="coerce")
    negative = np.array([row[0] != "" or "-" in row[1:3] for row in matches], dtype=bool)
    result[unread] = np.where(negative, -1.0, 1.0) * values.to_numpy(float)
    for i, text in zip(unread, unread_texts, strict=True):
        if len(text) < 6 and np.isnan(result[i]):
            result[i] = _TRUTH.get(text.lower(), np.nan)
    return result


def units_of(texts: Sequence[str]) -> tuple[list[str], bool]:
    """Return the currencies and percent signs of numbers, and whether some have none."""
    units = _UNIT.findall("\n".join(texts))
    return sorted(set(units)), len(units) < len(texts)


def is_number(text: str) -> bool:
    """Return whether Python converts a text to a float."""
    try:
        float(text)
    except ValueError:
        return False
    return True
