"""Layout of tables made for people: titles, headers in several rows, units, totals.

The rows of the header and of the data are detected in a grid of texts from a file or sheet. Rows
around them are dropped and reported.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from skescore._text import listed
from skescore.datasets._extra_rows import is_word, shortened

__all__ = ["LayoutOptions", "MergedCells", "TableLayout", "detect_layout"]

#: First and last column of merged cells, by row; None if they are unknown, as in text files.
MergedCells = Mapping[int, Mapping[int, int]] | None

#: Number of rows in which the header is searched, and of data rows that are examined.
_MAX_TITLE_ROWS, _SAMPLE_ROWS = 30, 40
#: Units alone in a cell, with or without brackets.
_UNIT = re.compile(
    r"[\[(]\s*[^\d\])]{1,20}[\])]|(?i:%|€|\$|£|eur|usd|[munµμkcd]?(g|m|l|s|v|a|w|hz|pa|mol)"
    r"|[munµμkcd]?(g|mol|iu|u)/d?l|mm ?hg|km/h|m/s|kg/m[²2]|h|min|days?|years?|yrs?|jahre|tage"
    r"|°\s?[cf]|pct|kcal|kj|m[²³23]|bpm|n|no\.|cm|inches|in|lbs?|miles)"
)

#: Largest number of rows of a header that is detected.
_MAX_HEADER_ROWS = 3
#: Years, which may be names of groups of columns.
_YEAR = re.compile(r"(19|20)\d\d([-/–](19|20)?\d\d)?")
#: Cells above a table with information about the file, such as "Date:" or "Page 1".
_ABOUT_FILE = re.compile(
    r"(?i).*:|(page|seite|date|datum|as of|stand|exported|created|printed|version)\b.*"
)
#: Largest length of a name of a group of columns.
_MAX_GROUP_NAME = 40


@dataclass(frozen=True)
class LayoutOptions:
    """Header rows of a file, as stated by the user.

    Parameters
    ----------
    header : tuple of int, optional
        Row numbers of the header, counted from 1 at the top of the file. Names of several rows are
        joined. None detects them.
    skip_rows : int, optional
        Number of rows above the header. None detects it.
    """

    header: tuple[int, ...] | None = None
    skip_rows: int | None = None

    @property
    def is_automatic(self) -> bool:
        """True if the header is detected."""
        return self.header is None and self.skip_rows is None


@dataclass(frozen=True)
class TableLayout:
    """Rows of a grid that hold the header and the data.

    Parameters
    ----------
    names : tuple of str
        Names of the columns.
    first_row : int
        Index of the first row of data.
    findings : tuple of str, default=()
        Messages about what was detected.
    """

    names: tuple[str, ...]
    first_row: int
    findings: tuple[str, ...] = field(default=())


def _n_filled(row: Sequence[str]) -> int:
    return sum(1 for cell in row if cell)


def detect_layout(
    grid: Sequence[Sequence[str]], options: LayoutOptions, merged: MergedCells = None
) -> TableLayout | None:
    """Find the rows of the header and of the data in the first rows of a grid.

    Parameters
    ----------
    grid : sequence of sequence of str
        First rows; empty cells are empty strings.
    options : LayoutOptions
        Options of the user.
    merged : mapping of int to mapping of int to int, optional
        First and last column of merged cells, by row. Without them, a name in the upper row of a
        header applies to all columns up to the next name, except columns that the names of other
        groups exclude.

    Returns
    -------
    TableLayout or None
        The layout; None if the first row is the header and all others are data.

    Raises
    ------
    ValueError
        If the user's rows do not exist.
    """
    rows = [[cell.strip() for cell in row] for row in grid]
    width = max((len(row) for row in rows), default=0)
    rows = [row + [""] * (width - len(row)) for row in rows]
    if not options.is_automatic:
        return _user_layout(rows, options, merged)
    start = _header_row(rows, merged)
    if start is None or start + 1 >= len(rows):
        return None
    first_row = start + (2 if _is_merged_header(rows, start, merged) else 1)
    while (
        start
        and first_row - start < _MAX_HEADER_ROWS
        and _names_groups(rows, start, first_row, merged)
    ):
        start -= 1
    n_header = first_row - start
    first_data_row, unit_findings = _skip_units(rows, first_row)
    if start == 0 and n_header == 1 and not unit_findings:
        return None
    findings = []
    titles = [" | ".join(filter(None, row)) for row in rows[:start] if any(row)]
    first_filled = next((i for i, row in enumerate(rows) if any(row)), 0)
    if titles:
        findings.append(
            f"row{'s' if len(titles) > 1 else ''} above the header left out: "
            f"{listed([shortened(title) for title in titles], 3)}; the header is row {start + 1} "
            f"(to name another one: --header)"
        )
        if n_header == 1 and _n_filled(rows[start - 1]) > 1:
            findings[-1] = findings[-1].replace(
                "(to name another one: --header)",
                f"(to put the names of row {start} before its names: --header {start},{start + 1})",
            )
    elif start > first_filled:
        findings.append(f"the header is row {start + 1} (to name another one: --header)")
    if n_header > 1:
        joint = "and" if n_header == 2 else "to"
        findings.append(
            f"the names of rows {start + 1} {joint} {first_row} are joined to one header (to take "
            f"one row only: --header {first_row})"
        )
        findings += _note_assumed_group(rows, start, first_row, merged)
    names = _header_names(rows, range(start, start + n_header), merged)
    return TableLayout(tuple(names), first_data_row, tuple(findings + unit_findings))


def _note_assumed_group(
    rows: list[list[str]], start: int, first_row: int, merged: MergedCells
) -> list[str]:
    """Return a message if the extent of the last name of the upper row is an assumption."""
    last_name = max(i for i, cell in enumerate(rows[start]) if cell)
    end = _group_end(rows, range(start, first_row), start, last_name, merged)
    if (merged or {}).get(start) or end <= last_name + 1 or end < len(rows[start]) - 1:
        return []
    lower = rows[start + 1]
    if len(set(filter(None, lower))) < len(list(filter(None, lower))):
        return []
    name = shortened(rows[start][last_name])
    return [f"the name {name!r} in row {start + 1} is read as the name of all columns to its right"]


def _user_layout(rows: list[list[str]], options: LayoutOptions, merged: MergedCells) -> TableLayout:
    """Return the layout that the user states."""
    header = options.header
    if header is None:
        header = ((options.skip_rows or 0) + 1,)
        while header[0] < len(rows) and not any(rows[header[0] - 1]):
            header = (header[0] + 1,)
    if min(header) < 1 or max(header) >= len(rows):
        raise ValueError(
            f"header must be rows of the table with data below them, got {list(header)} for "
            f"{len(rows)} rows. Name another row (on the command line: --header, --skip-rows)."
        )
    names = _header_names(rows, [number - 1 for number in header], merged)
    first_row, findings = _skip_units(rows, max(header))
    return TableLayout(tuple(names), first_row, tuple(findings))


def _skip_units(rows: list[list[str]], first_row: int) -> tuple[int, list[str]]:
    """Return the first row of data, below a row of units, and a message about the units."""
    if not _is_unit_row(rows, first_row):
        return first_row, []
    units = listed([cell for cell in rows[first_row] if cell], 6)
    return first_row + 1, [f"row {first_row + 1} holds units and is left out: {units}"]


def _header_row(rows: list[list[str]], merged: MergedCells) -> int | None:
    """Return the index of the first row that is as wide as the data and contains no numbers."""
    sample = [row for row in rows[: _MAX_TITLE_ROWS + _SAMPLE_ROWS] if any(row)]
    if len(sample) < 3:
        return None
    widths = sorted(_n_filled(row) for row in sample)
    usual = widths[len(widths) // 2]
    if usual < 2:
        return None
    for index, row in enumerate(rows[:_MAX_TITLE_ROWS]):
        n_filled, is_group_row = _n_filled(row), _is_group_row(rows, index, merged)
        if n_filled == 1 and not row[0] and usual == 2:  # row numbers without a name
            return index
        if not n_filled or (n_filled == 1 and row[0] and usual >= 2 and not is_group_row):
            continue
        is_wide = n_filled >= max(2, 0.6 * usual) or is_group_row
        if is_wide and not _precedes_header(rows, index, usual, merged):
            return index
    return None


def _precedes_header(rows: list[list[str]], index: int, usual: int, merged: MergedCells) -> bool:
    """Return whether a row that is not full precedes one that names all columns."""
    if _n_filled(rows[index]) >= usual or _is_merged_header(rows, index, merged):
        return False
    lower = next((row for row in rows[index + 1 : index + 4] if any(row)), [])
    return _n_filled(lower) >= usual and all(is_word(cell) for cell in lower if cell)


def _is_group_row(rows: list[list[str]], index: int, merged: MergedCells) -> bool:
    """Return whether a row contains the upper names of a header in two rows."""
    if index + 2 >= len(rows):
        return False
    upper = rows[index]
    n_upper = _n_filled(upper)
    if n_upper < 2 or any(upper[i] and not is_word(upper[i]) for i in range(len(upper))):
        return False
    return _is_merged_header(rows, index, merged)


def _is_merged_header(rows: list[list[str]], start: int, merged: MergedCells) -> bool:
    """Return whether a row continues the names of the row above it, which has merged cells.

    In text, the upper row may also be a title. It is part of the header if names in the lower row
    are missing, or are repeated and distinguished by the upper ones.
    """
    if start + 2 >= len(rows):
        return False
    upper, lower = rows[start], rows[start + 1]
    last_column = max((i for i, cell in enumerate(lower) if cell), default=0)
    gaps = [i for i in range(1, last_column + 1) if not upper[i]]
    if not gaps or any(not lower[i] for i in gaps) or not any(upper):
        return False
    if not all(is_word(cell) for cell in lower if cell):
        return False
    if any(cell and not is_word(cell) for cell in upper):
        return False
    below = [row for row in rows[start + 2 : start + 2 + _SAMPLE_ROWS] if any(row)]
    numeric_below = [i for i in gaps if any(row[i] and not is_word(row[i]) for row in below)]
    is_header = 2 * len(numeric_below) >= len(gaps) and len(set(filter(None, lower))) > 1
    return is_header and (
        bool((merged or {}).get(start))
        or any(name and not lower[i] for i, name in enumerate(upper))
        or _has_fewer_repeats(rows, start, merged)
    )


def _has_fewer_repeats(rows: list[list[str]], start: int, merged: MergedCells) -> bool:
    """Return whether names of a row repeat less often if prefixed by the names above them."""

    def n_repeats(first_level: int) -> int:
        names = [
            name for name in _header_names(rows, range(first_level, start + 2), merged) if name
        ]
        return len(names) - len(set(names))

    fewest = min(n_repeats(first_level) for first_level in {start, max(start - 1, 0)})
    return fewest < n_repeats(start + 1)


def _names_groups(rows: list[list[str]], start: int, first_row: int, merged: MergedCells) -> bool:
    """Return whether the row above a header names groups of its columns.

    Each of at least two names must stand where a group of the next row begins, before the first
    group, or above a column without further names. The header below must have merged cells, or
    names that repeat in other groups.
    """
    upper, lower = rows[start - 1], rows[start]
    name_columns = [i for i, cell in enumerate(upper) if cell]
    if len(name_columns) < 2 or not all(_is_group_name(upper[i]) for i in name_columns):
        return False
    has_name = [any(row[i] for row in rows[start:first_row]) for i in range(len(upper))]
    first_group = next((i for i, cell in enumerate(lower) if cell), 0)
    if not all(lower[i] or i < first_group or not has_name[i] for i in name_columns):
        return False
    if not any(has_name[i] and not upper[i] for i in range(name_columns[0], len(upper))):
        return False
    names = _header_names(rows, range(start, first_row), merged)
    if first_row - start > 1:
        return len(set(filter(None, upper))) > 1
    repeats = len(set(names)) < len(names)
    joined_names = _header_names(rows, range(start - 1, first_row), merged)
    return repeats and len(set(joined_names)) == len(joined_names)


def _is_group_name(cell: str) -> bool:
    if len(cell) > _MAX_GROUP_NAME or _ABOUT_FILE.fullmatch(cell):
        return False
    return is_word(cell) or _YEAR.fullmatch(cell) is not None


def _is_unit_row(rows: list[list[str]], index: int) -> bool:
    """Return whether a row contains the units of the numbers below it."""
    if index + 1 >= len(rows):
        return False
    row = rows[index]
    columns = [i for i, cell in enumerate(row) if cell]
    if not columns or not all(is_word(row[i]) for i in columns):
        return False
    units = [i for i in columns if _UNIT.fullmatch(row[i]) or row[i] in ("-", "–", "—")]
    below = [other for other in rows[index + 1 : index + 1 + _SAMPLE_ROWS] if any(other)]
    numeric = [
        i
        for i in units
        if below
        and sum(bool(other[i]) and not is_word(other[i]) for other in below) > len(below) / 2
    ]
    return bool(numeric) and len(units) >= max(1, 0.6 * len(columns))


def _header_names(rows: list[list[str]], header: Sequence[int], merged: MergedCells) -> list[str]:
    """Return column names, prefixed by the names of merged cells above them."""
    names = [""] * len(rows[header[0]])
    for level in header:
        texts = list(rows[level])
        if level != header[-1]:
            for i, cell in enumerate(rows[level]):
                if cell:
                    end = _group_end(rows, header, level, i, merged)
                    texts[i : end + 1] = [cell] * (end + 1 - i)
        for i, text in enumerate(texts):
            if text and text != names[i]:
                names[i] = f"{names[i]} {text}".strip()
    return names


def _group_end(
    rows: list[list[str]], header: Sequence[int], level: int, start: int, merged: MergedCells
) -> int:
    """Return the last column of a group whose name stands above its first column.

    Without merged cells in its row, a group ends before the next name of its row or of one above.
    It ends earlier if only its first names also occur in other groups of the row.
    """
    if merged and merged.get(level):
        return merged[level].get(start, start)
    above = [rows[number] for number in header if number <= level]
    n_columns = len(rows[level])

    def next_start(position: int) -> int:
        starts = (i for i in range(position + 1, n_columns) if any(row[i] for row in above))
        return next(starts, n_columns)

    end = next_start(start) - 1
    lower = rows[header[-1]]
    group_names = lower[start : end + 1]
    others = {*lower[:start], *lower[end + 1 :]} - {""}
    if group_names[0] not in others:
        return end
    while lower[end] and lower[end] not in others:
        end -= 1
    return end
