"""Helpers for messages, docstrings and CSV cells."""

from __future__ import annotations

import csv
import difflib
import inspect
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from typing import Any, TypeVar

__all__ = [
    "cell_text",
    "csv_of",
    "did_you_mean",
    "fill_docstring",
    "listed",
    "nearest",
    "nearest_names",
    "percentage",
    "plural",
    "printable",
    "rename_hint",
    "repeated",
    "short_repr",
    "value_text",
    "without_formula",
]

T = TypeVar("T", bound=Callable[..., Any])

#: Control characters except tabs and line ends, and characters that change the text direction.
_COMMANDS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
#: Beginning of texts that spreadsheets evaluate as formulas, and of texts already escaped.
_FORMULA = re.compile(r"'*[=+\-@\t\r]")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


def without_formula(text: str) -> str:
    """Escape a text for a CSV cell, so that no spreadsheet evaluates it as a formula.

    Examples
    --------
    >>> without_formula("=1+1"), without_formula("-1"), without_formula("1=1")
    ("'=1+1", '-1', '1=1')
    """
    return f"'{text}" if _FORMULA.match(text) and not _NUMBER.fullmatch(text) else text


def csv_of(table: Any) -> str:
    r"""Return a data frame without its index as CSV that contains no spreadsheet formulas.

    Examples
    --------
    >>> import pandas as pd
    >>> csv_of(pd.DataFrame({"@a": ["=1+1", "x"], "b": [-1.5, 2.0]}))
    "'@a,b\n'=1+1,-1.5\nx,2.0\n"
    """
    safe = table.copy()
    safe.columns = [without_formula(str(name)) for name in table.columns]
    for index, kind in enumerate(table.dtypes):
        if kind.kind not in "biuf":
            column = table.iloc[:, index].astype(object)
            for row, cell in enumerate(column):
                if isinstance(cell, str):
                    column.iat[row] = without_formula(cell)
            safe.isetitem(index, column)
    text = str(safe.to_csv(index=False, lineterminator="\n"))
    if "\r" in text:  # pandas does not quote it, but many readers treat it as a line end
        quoting = csv.QUOTE_NONNUMERIC
        text = str(safe.to_csv(index=False, lineterminator="\n", quoting=quoting))
    return text


def cell_text(cell: str) -> str:
    """Undo :func:`without_formula`.

    Examples
    --------
    >>> cell_text("'=1+1"), cell_text("'tis"), cell_text(without_formula("'=1"))
    ('=1+1', "'tis", "'=1")
    """
    return cell[1:] if cell[:1] == "'" and _FORMULA.match(cell[1:]) else cell


def did_you_mean(name: object, known_names: Iterable[str]) -> str:
    """Return the closing sentence of an error about an unknown name.

    Use it if a name is looked up in a table: algorithms, scores, data sets, columns.

    Examples
    --------
    >>> from skescore._text import did_you_mean
    >>> did_you_mean("GridX", ["gridex", "cart"])
    "Did you mean 'gridex'? Known: cart, gridex."
    >>> did_you_mean("svm", ["gridex", "cart"])
    'Known: cart, gridex.'
    """
    names = sorted(set(known_names))
    if not names:
        return "Known: none."
    sentence = f"Known: {', '.join(names)}."
    near = nearest(name, names)
    return f"Did you mean {near!r}? {sentence}" if near else sentence


def rename_hint(missing: Iterable[str], column_names: Iterable[str]) -> str:
    """Return a sentence that names columns similar to missing ones; empty if there are none.

    Examples
    --------
    >>> from skescore._text import rename_hint
    >>> rename_hint(["bwt", "age"], ["BWT", "smoke"])
    " Did you mean 'BWT' for 'bwt'? Rename it."
    """
    columns = list(column_names)
    pairs = [(nearest(name, columns), name) for name in missing]
    similar = [f"{near!r} for {name!r}" for near, name in pairs if near is not None]
    if not similar:
        return ""
    rename = "it" if len(similar) == 1 else "them"
    return f" Did you mean {', '.join(similar)}? Rename {rename}."


def nearest(name: object, known_names: Iterable[str]) -> str | None:
    """Return the known name most similar to `name`, or None if there is no similar one.

    Case is ignored, as are blanks at the ends.

    Examples
    --------
    >>> from skescore._text import nearest
    >>> nearest("GridX", ["gridex", "cart"])
    'gridex'
    """
    if not isinstance(name, str):
        return None
    folded = {candidate.casefold(): candidate for candidate in known_names}
    near = difflib.get_close_matches(name.strip().casefold(), folded, n=1)
    return folded[near[0]] if near else None


def nearest_names(name: object, known_names: Sequence[str]) -> str:
    """Return the most similar names, in quotation marks and joined by "or".

    Examples
    --------
    >>> from skescore._text import nearest_names
    >>> nearest_names("wine.csw", ["wine.csv", "wine.tsv", "iris.csv"])
    "'wine.csv' or 'wine.tsv'"
    """
    folded = {candidate.casefold(): candidate for candidate in reversed(known_names)}
    near = difflib.get_close_matches(str(name).casefold(), folded)
    return " or ".join(repr(folded[candidate]) for candidate in near)


def fill_docstring(documented: T, parts: Mapping[str, str]) -> T:
    """Replace names in braces in the docstring of a class or function by shared parts."""
    text = inspect.cleandoc(documented.__doc__ or "")
    for name, part in parts.items():
        text = text.replace(f"{{{name}}}", part.strip("\n"))
    documented.__doc__ = text
    return documented


def listed(names: Sequence[object], limit: int = 12) -> str:
    """Join quoted names; long lists are truncated.

    Examples
    --------
    >>> from skescore._text import listed
    >>> listed(["a", "b", "c"]), listed(["a", "b", "c"], limit=2)
    ("'a', 'b', 'c'", "'a', 'b' and 1 more")
    """
    text = ", ".join(map(repr, names[:limit]))
    return text if len(names) <= limit else f"{text} and {len(names) - limit} more"


def repeated(names: Iterable[str]) -> list[str]:
    """Return the names that occur more than once, sorted.

    Examples
    --------
    >>> from skescore._text import repeated
    >>> repeated(["b", "a", "c", "b", "a"])
    ['a', 'b']
    """
    return sorted(name for name, count in Counter(names).items() if count > 1)


def plural(count: int, noun: str) -> str:
    """Return a count with its noun.

    Examples
    --------
    >>> from skescore._text import plural
    >>> plural(0, "rule"), plural(1, "rule"), plural(2, "rule")
    ('0 rules', '1 rule', '2 rules')
    """
    return f"{count} {noun}{'' if count == 1 else 's'}"


def value_text(value: Any, *, all_digits: bool = False) -> str:
    """Return a value of a table as text; fractions have six digits unless all are asked for.

    Examples
    --------
    >>> from skescore._text import value_text
    >>> value_text(1065.0), value_text(0.1 + 0.2), value_text(0.1 + 0.2, all_digits=True)
    ('1065', '0.3', '0.30000000000000004')
    >>> value_text(None)
    'missing'
    """
    if value is None or value != value:
        return "missing"
    if not isinstance(value, float):
        return str(value)
    if value.is_integer() and abs(value) < 1e16:
        return str(int(value))
    return str(value) if all_digits else f"{value:.6g}"


def printable(text: str) -> str:
    r"""Escape control characters, so that names from a file cannot control a terminal.

    Examples
    --------
    >>> from skescore._text import printable
    >>> print(printable("a\x1b[2Jb"))
    a\x1b[2Jb
    """
    return _COMMANDS.sub(lambda match: match[0].encode("unicode_escape").decode(), text)


def short_repr(settings: Any) -> str:
    """Return the representation of a dataclass without fields at their defaults."""
    values = [
        (field.name, getattr(settings, field.name), field.default) for field in fields(settings)
    ]
    changed = [f"{name}={value!r}" for name, value, default in values if value is not default]
    return f"{type(settings).__name__}({', '.join(changed)})"


def percentage(value: float, *, digits: int = 0) -> str:
    """Return a share in percent; only shares of exactly 1 and 0 become 100 % and 0 %.

    Examples
    --------
    >>> from skescore._text import percentage
    >>> percentage(0.794), percentage(0.9999), percentage(1.0)
    ('79 %', '> 99.9 %', '100 %')
    """
    percent = 100 * value
    text = f"{percent:.{digits}f}"
    if float(text) == 100 and value < 1 - 1e-9:
        text = f"{percent:.1f}" if percent < 99.9 else "> 99.9"
    elif float(text) == 0 and percent > 1e-9:
        text = f"{percent:.1f}" if percent >= 0.1 else "< 0.1"
    return f"{text} %"
