"""Table rows that are not data: totals, subtotals, headings, repeated headers, footnotes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from skescore._text import listed, plural
from skescore.datasets._numbers import as_numbers, style_of

__all__ = ["ExtraRows", "find_extra_rows", "is_word", "may_have_extra_rows", "shortened"]

#: Labels of rows with totals: at the beginning of a cell, or at its end ("North total").
_TOTAL = re.compile(
    r"(?i)(grand |sub-?|sous-?|overall )?(tota(l|ls|le|les|al)|sums?|averages?|mean|count)\b"
    r"|(zwischen|gesamt)?summe\b|gesamt(ergebnis)?\b|teilergebnis\b|insgesamt\b|durchschnitt\b"
    r"|mittelwert\b|suma\b|(year|jahr|quarter|quartal|ytd|all year)$|[øσ∑](?!\w)"
    r"|.+\W(grand |sub-?)?(total|sum|average|ergebnis|summe)$"
)
#: Lower-case parts of labels, at least one of which occurs in every label of `_TOTAL`.
_LABEL_PARTS = (
    *("tota", "sum", "average", "mean", "count", "gesamt", "ergebnis", "durchschnitt"),
    *("mittelwert", "ø", "σ", "∑", "year", "jahr", "quart", "ytd"),
)
#: Cell that may be a label; the separator of columns is inserted before and after it.
_MAY_BE_LABEL = (
    r"(?im)(?:^|{0})[ \"]*(?:grand |sub-?|sous-?|overall |zwischen|ins)?"
    r"(?:tota|sum|average|mean|count|gesamt|teil|durch|mittel|[øσ∑]"
    r"|(?:year|jahr|quarter|quartal|ytd|all year)[ \"]*(?:{0}|\r?$))"
    r"|(?:total|sum|average|ergebnis|summe)[ \"]*(?:{0}|\r?$)"
)
#: Labels of means.
_MEAN = re.compile(r"(?i)average|\bmean\b|durchschnitt|mittelwert|ø")
#: Beginning of footnotes.
_FOOTNOTE = re.compile(
    r"(?i)(source|sources|notes?|quelle|anmerkung|stand|as of|\*|¹|fuente|legend|©|generated"
    r"|exported|created)\b|\*|¹|©|--"
)
_NUMBER = re.compile(r"[^\w]*[+-]?[\d.,' ]*\d[\d.,' ]*([eE][+-]?\d+)?\s*([%€$£]|EUR|USD)?")
#: Minimum share of rows with a number (or with text) in a column of numbers (or text).
_MAIN_SHARE = 0.5
#: Minimum share of filled cells in a column in which an empty cell is significant.
_FILLED_SHARE = 0.9
#: Maximum number of earlier totals after which a block of summed rows may begin.
_MAX_BLOCKS = 20
#: Minimum number of rows and of columns of a table that is searched for headings.
_MIN_ROWS, _MIN_COLUMNS = 5, 3


def is_word(cell: str) -> bool:
    """Return whether a cell contains a word, not a number."""
    return bool(cell) and _NUMBER.fullmatch(cell) is None


def shortened(text: str) -> str:
    """Shorten a text to at most 50 characters."""
    return text if len(text) <= 50 else f"{text[:47]}..."


@dataclass(frozen=True)
class ExtraRows:
    """Table rows that are not data, by reason.

    Parameters
    ----------
    totals, headings, repeated_headers, blank : tuple of int
        Indices of rows between rows of data.
    first_below : int
        Index of the first row below the data; the number of rows if there is none.
    findings : tuple of str
        Messages for the user.
    """

    totals: tuple[int, ...]
    headings: tuple[int, ...]
    repeated_headers: tuple[int, ...]
    blank: tuple[int, ...]
    first_below: int
    findings: tuple[str, ...]

    @property
    def among_data(self) -> tuple[int, ...]:
        """Indices of all omitted rows between rows of data, with blank rows around them."""
        rows = {*self.totals, *self.headings, *self.repeated_headers}
        return tuple(sorted(rows.union(self.blank))) if rows else ()


def find_extra_rows(rows: Sequence[Sequence[str]], names: Sequence[str]) -> ExtraRows:
    """Find the rows of a table that are not data.

    Parameters
    ----------
    rows : sequence of sequence of str
        Rows below the header; empty cells are empty strings.
    names : sequence of str
        Names of the columns.

    Returns
    -------
    ExtraRows
        Totals of other rows, headings of groups of rows, repeated headers, and rows below the data.

    Examples
    --------
    >>> from skescore.datasets._extra_rows import find_extra_rows
    >>> rows = [["Ann", "3"], ["Bob", "4"], ["Total north", "7"], ["Cid", "5"], ["Total", "12"]]
    >>> extra = find_extra_rows(rows, ["name", "paid"])
    >>> extra.totals, extra.first_below
    ((2,), 4)
    """
    width = max([len(names), *map(len, rows)])
    cells = [[cell.strip() for cell in row] + [""] * (width - len(row)) for row in rows]
    header = [name.strip() for name in names] + [""] * (width - len(names))
    header_rows = [i for i, row in enumerate(cells) if row == header]
    labels = _total_labels(cells)
    lone_words = {i for i, row in enumerate(cells) if row and is_word(row[0]) and not any(row[1:])}
    table = _CellTable(cells, {*labels, *header_rows, *lone_words})
    first_below, texts_below = _rows_below(table, labels)
    totals = [i for i in labels if i < first_below and table.is_total(i, labels[i])]
    headings = _find_headings(table, lone_words, first_below)
    blank = [i for i, row in enumerate(cells) if not any(row)]
    findings = (
        []
        if not header_rows
        else [f"{plural(len(header_rows), 'row')} among the data left out (repeated header)"]
    )
    findings += _left_out_text(cells, totals, "sums or means of other rows")
    findings += _left_out_text(cells, headings, "headings of the rows below them")
    if table.is_unnamed_total:
        findings.append("the last row is left out, because it holds only sums of the rows above")
    if texts_below:
        label = "row" if len(texts_below) == 1 else "rows"
        findings.append(f"{label} below the data left out: {listed(texts_below, 3)}")
    return ExtraRows(
        tuple(totals),
        tuple(headings),
        tuple(header_rows),
        tuple(blank),
        first_below,
        tuple(findings),
    )


def _left_out_text(
    cells: Sequence[Sequence[str]], indices: Sequence[int], reason: str
) -> list[str]:
    """Return a message about omitted rows, if there are any."""
    if not indices:
        return []
    words = [shortened(next(filter(None, cells[i]))) for i in indices]
    rows = plural(len(indices), "row")
    return [f"{rows} among the data left out ({reason}): {listed(words, 3)}"]


def may_have_extra_rows(text: str, separator: str, header: str) -> bool:
    """Check quickly whether other rows may lie between the rows of data in a text.

    Parameters
    ----------
    text : str
        The lines below the header.
    separator : str
        Separator of the columns.
    header : str
        Line of the header.

    Returns
    -------
    bool
        False if `find_extra_rows` finds nothing among the data.
    """
    lower_text = text.lower()
    has_parts = any(part in lower_text for part in _LABEL_PARTS)
    if has_parts and re.search(_MAY_BE_LABEL.format(re.escape(separator)), text):
        return True
    has_lone_words = any(f"{separator}{separator}{end}" in text for end in ("\n", "\r\n"))
    last_line = text.rstrip("\r\n").rpartition("\n")[2].strip("\r")
    last_cells = last_line.split(separator)
    if not last_cells[0] or 2 * last_cells.count("") >= len(last_cells):
        return True  # it may hold sums without a label
    return has_lone_words or header.strip() in text


def _total_labels(cells: Sequence[Sequence[str]]) -> dict[int, int]:
    """Return the column of the label of each row that is labeled like a total."""
    is_label: dict[str, bool] = {}
    labels = {}
    for i, row in enumerate(cells):
        for j, cell in enumerate(row):
            if not cell or cell[0].isdigit():
                continue
            if cell not in is_label:
                is_label[cell] = len(cell) <= 60 and _TOTAL.match(cell) is not None
            if is_label[cell]:
                labels[i] = j
                break
    return labels if 2 * len(labels) < len(cells) else {}


class _CellTable:
    """Cells of a table, with the types of its columns in the rows of data."""

    def __init__(self, cells: Sequence[Sequence[str]], excluded_rows: set[int]) -> None:
        self.cells = cells
        self.is_data = np.array(
            [i not in excluded_rows and any(row) for i, row in enumerate(cells)], dtype=bool
        )
        self.n_data = int(self.is_data.sum())
        self._sums: dict[int, tuple[np.ndarray, np.ndarray, np.ndarray]] = {}

    @cached_property
    def last_filled_row(self) -> int:
        """Index of the last row that is not empty; -1 if all rows are."""
        return max((i for i, row in enumerate(self.cells) if any(row)), default=-1)

    @cached_property
    def is_unnamed_total(self) -> bool:
        """Whether the last row has empty cells and otherwise only sums of all rows above."""
        row = self.cells[self.last_filled_row] if self.last_filled_row >= _MIN_ROWS else []
        columns = [j for j, cell in enumerate(row) if cell]
        if not columns or len(columns) == len(row) or any(is_word(row[j]) for j in columns):
            return False
        return all(self._is_sum_of_block(self.last_filled_row, j, is_mean=False) for j in columns)

    @cached_property
    def _shares(self) -> list[tuple[float, float]]:
        """Share of filled cells of each column, and of words among them."""
        data = [row for row, is_data in zip(self.cells, self.is_data, strict=True) if is_data]
        shares = []
        for column in zip(*data, strict=True):
            cells = [cell for cell in column if cell]
            n_words = sum(map(is_word, cells))
            shares.append((len(cells) / len(data), n_words / max(len(cells), 1)))
        return shares

    @property
    def n_full_columns(self) -> int:
        """Number of columns that are almost always filled."""
        return sum(n_filled >= _FILLED_SHARE for n_filled, _ in self._shares)

    def word_columns(self, label_column: int) -> list[int]:
        """Return the columns of words that are almost always filled, except the label column."""
        return [
            j
            for j, (n_filled, n_words) in enumerate(self._shares)
            if j != label_column and n_words > _MAIN_SHARE and n_filled >= _FILLED_SHARE
        ]

    def is_total(self, i: int, label_column: int) -> bool:
        """Return whether a row is a total: its numbers are sums or means, or it has no other words.

        A row of data may also have a name such as "Total".
        """
        words = self.word_columns(label_column)
        if words and not any(self.cells[i][j] for j in words):
            return True
        return self._sums_up_rows(i, _MEAN.search(self.cells[i][label_column]) is not None)

    def resembles_data(self, i: int, label_column: int) -> bool:
        """Return whether a word of a row also occurs in this column of a row of data."""
        return any(
            self.cells[i][j]
            and any(
                row[j] == self.cells[i][j]
                for row, is_data in zip(self.cells, self.is_data, strict=True)
                if is_data
            )
            for j in self.word_columns(label_column)
        )

    def _sums_up_rows(self, i: int, is_mean: bool) -> bool:
        """Return whether most numbers of a row are sums or means of the rows above it."""
        n_numbers = n_sums = 0
        for j, (_, n_words) in enumerate(self._shares):
            if n_words >= _MAIN_SHARE or not self.cells[i][j] or is_word(self.cells[i][j]):
                continue
            n_numbers += 1
            n_sums += self._is_sum_of_block(i, j, is_mean)
        return 2 * n_sums > n_numbers

    def _is_sum_of_block(self, i: int, j: int, is_mean: bool) -> bool:
        """Return whether a number is the sum or mean of the rows since an earlier total."""
        values, sums, counts = self._column_sums(j)
        value = values[i]
        earlier = np.flatnonzero(~self.is_data[:i])[-_MAX_BLOCKS:] + 1
        for start in (0, *earlier.tolist()):
            count = counts[i] - counts[start]
            if count < 2 or value == 0 or not np.isfinite(value):
                continue
            total = float(sums[i] - sums[start]) / (count if is_mean else 1)
            tolerance = 0.501 * 10.0 ** -_n_decimals(self.cells[i][j])
            if abs(value - total) <= max(tolerance, 1e-6 * abs(total)):
                return True
        return False

    def _column_sums(self, j: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the numbers of a column, and for each row the sum and count of data rows above."""
        if j not in self._sums:
            texts = [row[j] for row in self.cells]
            values = as_numbers(texts, *style_of([text for text in texts if text]))
            is_number = self.is_data & np.isfinite(values)
            terms = np.where(is_number, values, 0.0)
            sums = np.concatenate([[0.0], np.cumsum(terms)])
            counts = np.concatenate([[0], np.cumsum(is_number)])
            self._sums[j] = np.where(np.isfinite(values), values, 0.0), sums, counts
        return self._sums[j]


def _find_headings(table: _CellTable, lone_words: set[int], end: int) -> list[int]:
    """Return rows with a single word that begin the table and head groups of full rows."""
    headings = sorted(i for i in lone_words if i < end)
    if table.n_data < _MIN_ROWS or len(headings) < 2 or table.n_full_columns < _MIN_COLUMNS:
        return []
    data = np.flatnonzero(table.is_data[:end])
    starts = np.searchsorted(data, headings)  # number of data rows above each heading
    has_rows = np.diff(np.append(starts, len(data))) > 0
    return headings if starts[0] == 0 and has_rows.all() else []


def _n_decimals(text: str) -> int:
    """Return the number of digits after the last point or comma of a decimal number."""
    match = re.search(r"[.,](\d+)\D*$", text)
    return 0 if match is None or len(match[1]) == 3 else len(match[1])


def _rows_below(table: _CellTable, labels: dict[int, int]) -> tuple[int, list[str]]:
    """Return the index of the first total or footnote at the end of the table, and their texts."""
    first_below, texts = len(table.cells), []
    for i in reversed(range(len(table.cells))):
        cells = [cell for cell in table.cells[i] if cell]
        if not cells:
            continue
        if i == table.last_filled_row and table.is_unnamed_total:
            first_below = i
            continue
        if not (_is_total_below(table, i, labels) or _is_footnote(cells, len(table.cells[i]))):
            break
        first_below = i
        texts.append(shortened(cells[0]))
    return first_below, texts[::-1]


def _is_total_below(table: _CellTable, i: int, labels: dict[int, int]) -> bool:
    """Return whether a row at the end is labeled like a total and does not resemble data."""
    if i not in labels:
        return False
    other_cells = [cell for j, cell in enumerate(table.cells[i]) if cell and j != labels[i]]
    is_text = 2 * sum(map(is_word, other_cells)) > len(other_cells) if other_cells else False
    return table.is_total(i, labels[i]) or not (is_text or table.resembles_data(i, labels[i]))


def _is_footnote(cells: Sequence[str], n_columns: int) -> bool:
    """Return whether a row at the end contains only a remark."""
    text = cells[0]
    is_remark = _FOOTNOTE.match(text) is not None or (len(text) > 20 and is_word(text))
    return len(cells) == 1 < n_columns and is_remark
