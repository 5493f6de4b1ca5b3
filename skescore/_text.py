"""Small tools for the texts of errors."""

from __future__ import annotations

import csv
import difflib
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import fields
from typing import Any

__all__ = [
    "cell_text",
    "csv_of",
    "did_you_mean",
    "listed",
    "nearest",
    "nearest_names",
    "plural",
    "printable",
    "repeated",
    "short_repr",
    "without_formula",
]

#: Control signs but for tabs and ends of lines, and those that turn the direction of writing.
_COMMANDS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


#: What makes a spreadsheet take a text for a formula, or for one that was made a text already.
_FORMULA = re.compile(r"'*[=+\-@\t\r]")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


def without_formula(text: str) -> str:
    """Write a text for a cell of CSV: no spreadsheet takes it for a formula.

    Examples
    --------
    >>> without_formula("=1+1"), without_formula("-1"), without_formula("1=1")
    ("'=1+1", '-1', '1=1')
    """
    return f"'{text}" if _FORMULA.match(text) and not _NUMBER.fullmatch(text) else text


def csv_of(table: Any) -> str:
    r"""Write a data frame as CSV of which a spreadsheet calculates nothing, without its index.

    Examples
    --------
    >>> import pandas as pd
    >>> csv_of(pd.DataFrame({"@a": ["=1+1", "x"], "b": [-1.5, 2.0]}))
    "'@a,b\n'=1+1,-1.5\nx,2.0\n"
    """
    safe = table.copy()
    safe.columns = [without_formula(str(name)) for name in table.columns]
    for place, kind in enumerate(table.dtypes):
        if kind.kind not in "biuf":
            column = table.iloc[:, place].astype(object)
            for row, cell in enumerate(column):
                if isinstance(cell, str):
                    column.iat[row] = without_formula(cell)
            safe.isetitem(place, column)
    text = str(safe.to_csv(index=False, lineterminator="\n"))
    if "\r" in text:  # which is left without quotation marks, but ends a line for many readers
        quoting = csv.QUOTE_NONNUMERIC
        text = str(safe.to_csv(index=False, lineterminator="\n", quoting=quoting))
    return text


def cell_text(cell: str) -> str:
    """Read what :func:`without_formula` has written.

    Examples
    --------
    >>> cell_text("'=1+1"), cell_text("'tis"), cell_text(without_formula("'=1"))
    ('=1+1', "'tis", "'=1")
    """
    return cell[1:] if cell[:1] == "'" and _FORMULA.match(cell[1:]) else cell


def did_you_mean(name: object, known: Iterable[str]) -> str:
    """Return the closing sentence of an error about an unknown name.

    Use it wherever a name is looked up in a table: algorithms, scores, data sets, columns.

    Examples
    --------
    >>> from skescore._text import did_you_mean
    >>> did_you_mean("GridX", ["gridex", "cart"])
    "Did you mean 'gridex'? Known: cart, gridex."
    >>> did_you_mean("svm", ["gridex", "cart"])
    'Known: cart, gridex.'
    """
    names = sorted(set(known))
    if not names:
        return "Known: none."
    listed = f"Known: {', '.join(names)}."
    near = nearest(name, names)
    return f"Did you mean {near!r}? {listed}" if near else listed


def nearest(name: object, known: Iterable[str]) -> str | None:
    """Return the known name that is spelt most like `name`, or None if there is none near.

    Case is ignored, as are blanks at the ends.

    Examples
    --------
    >>> from skescore._text import nearest
    >>> nearest("GridX", ["gridex", "cart"])
    'gridex'
    """
    if not isinstance(name, str):
        return None
    folded = {candidate.casefold(): candidate for candidate in known}
    near = difflib.get_close_matches(name.strip().casefold(), folded, n=1)
    return folded[near[0]] if near else None


def nearest_names(name: object, known: Sequence[str]) -> str:
    """Return the names most like this one, in quotation marks and joined by "or".

    Examples
    --------
    >>> from skescore._text import nearest_names
    >>> nearest_names("wine.csw", ["wine.csv", "wine.tsv", "iris.csv"])
    "'wine.csv' or 'wine.tsv'"
    """
    folded = {each.casefold(): each for each in reversed(known)}
    near = difflib.get_close_matches(str(name).casefold(), folded)
    return " or ".join(repr(folded[each]) for each in near)


def listed(names: Sequence[object], limit: int = 12) -> str:
    """Write the names of a list, but not of an endless one.

    Examples
    --------
    >>> from skescore._text import listed
    >>> listed(["a", "b", "c"]), listed(["a", "b", "c"], limit=2)
    ("'a', 'b', 'c'", "'a', 'b' and 1 more")
    """
    shown = ", ".join(map(repr, names[:limit]))
    return shown if len(names) <= limit else f"{shown} and {len(names) - limit} more"


def repeated(names: Iterable[str]) -> list[str]:
    """Find the names that occur more than once, sorted.

    Examples
    --------
    >>> from skescore._text import repeated
    >>> repeated(["b", "a", "c", "b", "a"])
    ['a', 'b']
    """
    return sorted(name for name, count in Counter(names).items() if count > 1)


def plural(count: int, noun: str) -> str:
    """Write a number of things.

    Examples
    --------
    >>> from skescore._text import plural
    >>> plural(0, "rule"), plural(1, "rule"), plural(2, "rule")
    ('0 rules', '1 rule', '2 rules')
    """
    return f"{count} {noun}{'' if count == 1 else 's'}"


def printable(text: str) -> str:
    r"""Write what commands a terminal as an escape: names out of a file must not.

    Examples
    --------
    >>> from skescore._text import printable
    >>> print(printable("a\x1b[2Jb"))
    a\x1b[2Jb
    """
    return _COMMANDS.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def short_repr(settings: Any) -> str:
    """Write a dataclass with those fields only that are not left at their defaults."""
    given = [(each.name, getattr(settings, each.name), each.default) for each in fields(settings)]
    shown = [f"{name}={value!r}" for name, value, default in given if value is not default]
    return f"{type(settings).__name__}({', '.join(shown)})"
