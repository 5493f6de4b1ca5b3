"""Comparison of the texts and tables of a page with expected ones."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

NAN = math.nan

_NUMBER = r"[-+−]?\d(?:[\d,]*\d)?(?:\.\d+)?(?:e[-+]?\d+)?|[-+−]?\.\d+|–|"
_FREE_NUMBER = re.compile(r"(?<![\w.])\d+(?:[.,]\d+)*")


@dataclass(frozen=True)
class Rounded:
    """Value that a page prints with a given number of significant digits."""

    value: float
    digits: int = 2


def last_digit_unit(printed: str) -> float:
    """Return the value of one in the last printed digit."""
    mantissa, _, exponent = printed.partition("e")
    return 10.0 ** (int(exponent or 0) - len(mantissa.partition(".")[2]))


def agrees(printed: str, expected: float | Rounded) -> bool:
    """Return whether a printed number is the expected one, rounded."""
    value = expected.value if isinstance(expected, Rounded) else float(expected)
    printed = printed.replace("−", "-").replace(",", "").strip()
    if printed in ("", "–", "-"):
        return math.isnan(value)
    if math.isnan(value):
        return False
    unit = last_digit_unit(printed)
    if isinstance(expected, Rounded) and value:
        unit = 10.0 ** (math.floor(math.log10(abs(value))) - expected.digits + 1)
    return abs(float(printed) - value) <= 0.5 * unit * (1 + 1e-6) + 1e-12


def pattern_of(parts: Sequence[Any]) -> re.Pattern[str]:
    """Return the pattern of a text with numbers; spaces match any white space."""
    pieces = []
    for part in parts:
        if isinstance(part, str):
            words = [re.escape(word) for word in re.split(r"\s+", part)]
            pieces.append(r"\s+".join(words))
        else:
            pieces.append(f"({_NUMBER})")
    return re.compile("".join(pieces))


def show(parts: Sequence[Any]) -> str:
    """Return an expected text."""
    values = [part.value if isinstance(part, Rounded) else part for part in parts]
    return "".join(v if isinstance(v, str) else f"{v:.6g}" for v in values)


class Page:
    """Page with its differences and its checked parts."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.text = path.read_text(encoding="utf-8")
        self.is_checked = np.zeros(len(self.text), dtype=bool)
        self.differences: list[str] = []
        self.n_figures = 0

    def fail(self, message: str) -> None:
        """Record a difference."""
        self.differences.append(f"{self.path.name}: {message}")

    def section(self, heading: str | None) -> tuple[int, int]:
        """Return begin and end of the text under a heading; of the whole page for None."""
        if heading is None:
            return 0, len(self.text)
        match = re.search(rf"^#+ {re.escape(heading)}$", self.text, flags=re.M)
        if match is None:
            self.fail(f"has no heading {heading!r}")
            return 0, 0
        next_heading = re.compile(r"^#+ ", flags=re.M).search(self.text, match.end())
        self.is_checked[match.start() : match.end()] = True
        return match.start(), next_heading.start() if next_heading else len(self.text)

    def compare(self, match: re.Match[str], parts: Sequence[Any], row: str = "") -> None:
        """Compare the numbers of a matching text, which may be a cell of a row."""
        expected = [part for part in parts if not isinstance(part, str)]
        self.n_figures += len(expected)
        if not all(map(agrees, match.groups(), expected)):
            self.fail(f"{row}{' '.join(match[0].split())!r} should be {show(parts)!r}")

    def claim(self, *parts: Any, heading: str | None = None) -> None:
        """Check the numbers in the first occurrence of a text in a section."""
        begin, end = self.section(heading)
        match = pattern_of(parts).search(self.text, begin, end)
        if match is None:
            self.fail(f"lacks {show(parts)!r}" + (f" under {heading!r}" if heading else ""))
            return
        self.is_checked[match.start() : match.end()] = True
        self.compare(match, parts)

    def name(self, *texts: str) -> None:
        """Accept the numbers in these texts without a check."""
        for text in texts:
            for match in pattern_of([text]).finditer(self.text):
                self.is_checked[match.start() : match.end()] = True

    def rows(self, head: Sequence[str], heading: str | None) -> list[tuple[int, list[str]]]:
        """Return the offsets and cells of the rows of a table."""
        begin, end = self.section(heading)
        line = f"| {' | '.join(head)} |"
        start = self.text.find(line, begin, end)
        if start < 0:
            self.fail(f"has no table {line!r}" + (f" under {heading!r}" if heading else ""))
            return []
        rows = []
        offset = start
        for text in self.text[start:end].splitlines(keepends=True):
            if not text.startswith("|"):
                break
            rows.append((offset, [cell.strip() for cell in text.strip().strip("|").split("|")]))
            offset += len(text)
        self.is_checked[start : start + len(line)] = True
        return rows[2:]

    def table(
        self,
        head: Sequence[str],
        expected: Iterable[Sequence[Any]],
        heading: str | None = None,
        n_keys: int = 1,
    ) -> None:
        """Check a table; the first `n_keys` cells, which are texts, identify a row."""
        by_key = {tuple(map(str, row[:n_keys])): row for row in expected}
        for offset, cells in self.rows(head, heading):
            line = self.text[offset : self.text.find("\n", offset)]
            self.is_checked[offset : offset + len(line)] = True
            row = by_key.pop(tuple(cells[:n_keys]), None)
            if row is None:
                self.fail(f"has a row too many: {line}")
                continue
            for title, cell, value in zip(head, cells, row, strict=True):
                parts = list(value) if isinstance(value, (tuple, list)) else [value]
                match = pattern_of(parts).fullmatch(cell)
                name = f"{', '.join(cells[:n_keys])}, {title}: "
                if match is None:
                    self.fail(f"{name}{cell!r} should be {show(parts)!r}")
                else:
                    self.compare(match, parts, name)
        for key in by_key:
            self.fail(f"lacks the row {' | '.join(key)}" + (f" of {heading!r}" if heading else ""))

    def check_coverage(self) -> None:
        """Report numbers that no check covers."""
        for match in re.finditer(r"`[^`\n]*`|\]\([^)]*\)", self.text):
            self.is_checked[match.start() : match.end()] = True
        for match in _FREE_NUMBER.finditer(self.text):
            if not self.is_checked[match.start() : match.end()].all():
                line = self.text.count("\n", 0, match.start()) + 1
                self.fail(f"line {line}: no check covers {match[0]!r}")
