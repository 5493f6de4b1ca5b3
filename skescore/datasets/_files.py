"""Tables from files: text in several dialects and encodings, Parquet, and sheets of Excel.

Content is returned unchanged, with one type per column; `_reading` interprets it. A file that is
not a table is rejected with an error that names the file, the line and a remedy.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import hashlib
import io
import re
import warnings
import zipfile
import zlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from pandas.api.types import is_numeric_dtype

from skescore._io import check_regular
from skescore._optional import import_optional
from skescore._text import listed, plural, repeated
from skescore.datasets._extra_rows import find_extra_rows, may_have_extra_rows
from skescore.datasets._layout import LayoutOptions, MergedCells, TableLayout, detect_layout

__all__ = [
    "DatasetError",
    "FileTable",
    "LayoutOptions",
    "check_unique",
    "header_hint",
    "read_file",
    "unique_names",
]

#: Usual separator of each kind of text file; another one may be detected.
TEXT_KINDS = {".csv": ",", ".txt": ",", ".tsv": "\t", ".tab": "\t"}
PARQUET_KINDS = (".parquet", ".pq")
SHEET_KINDS = (".xlsx", ".xlsm")
SEPARATORS = (",", ";", "\t", "|")
#: Columns separated by any number of blanks, as in older data files.
BLANKS = r"\s+"
#: Names of separators that are hard to type.
SEPARATOR_NAMES = {
    "tab": "\t",
    "\\t": "\t",
    "comma": ",",
    "semicolon": ";",
    "space": BLANKS,
    " ": BLANKS,
    "blank": BLANKS,
    "pipe": "|",
}
#: Integer written with a decimal point, as in a column of decimals.
_POINTLESS = r"[+-]?\d+\.0+"
#: A cell that begins with a zero and another digit.
_PADDED = re.compile(rb"(?<![^,;|\s\"'])0\d")
LINE_NOTE = "(the header is line 1)"
#: Number of rows in which the header is searched, and of rows at the end that may be totals.
_LAYOUT_ROWS, _TAIL_ROWS = 70, 30
#: Minimum share of filled cells in at least two columns of a table with blocks of rows.
_FULL_SHARE = 0.9
#: Maximum number of rows of a table that is searched for totals between the data.
_MAX_SEARCHED_ROWS = 50_000
#: Number of first rows that must have equally many cells for blanks to be the separator.
_SEEN_ROWS = 20
#: Texts of missing cells; whether "none" and "?" are missing depends on the column.
NULL_CELLS = (
    "",
    "NA",
    "N/A",
    "n/a",
    "NaN",
    "nan",
    "-nan",
    "-NaN",
    "null",
    "NULL",
    "None",
    "<NA>",
    "#N/A",
    "#N/A N/A",
    "#NA",
    "1.#QNAN",
    "-1.#QNAN",
    "1.#IND",
    "-1.#IND",
)


class Conversion(str):
    """Finding about the cells of a column that are converted when the table is read.

    It is a string with a sentence for the user, like all other findings.

    Parameters
    ----------
    column : str
        Name of the column in the file.
    kind : {"missing", "number", "date", "category", "text", "merged"}
        Result of the conversion: missing values, numbers, parts of dates, categories, texts
        without the blanks around them, or merged cells that are repeated in the rows below.
    text : str
        The sentence.

    Examples
    --------
    >>> import pandas as pd
    >>> from skescore.datasets import read_table
    >>> finding = read_table(pd.DataFrame({"price": ["12", "15", "n/a", "12"]})).findings[0]
    >>> finding
    "'n/a' in column 'price' is read as missing (1 row)"
    >>> finding.column, finding.kind
    ('price', 'missing')
    """

    column: str
    kind: str

    def __new__(cls, column: str, kind: str, text: str) -> Conversion:
        finding = super().__new__(cls, text)
        finding.column, finding.kind = column, kind
        return finding

    def __getnewargs__(self) -> tuple[str, str, str]:  # type: ignore[override]
        return self.column, self.kind, str(self)

    def to_dict(self) -> dict[str, str]:
        """Return the column, the kind and the sentence for JSON."""
        return {"column": self.column, "kind": self.kind, "note": str(self)}


class DatasetError(ValueError):
    """Error for a data set that cannot be used; the message names the place and a remedy.

    Parameters
    ----------
    text : str
        Complete message.
    options : sequence of str, default=()
        Command-line options that solve the problem, such as ``("--drop", "id")``.
    misspelled : mapping, optional
        Unknown column names, with the names that were probably meant.
    """

    __module__ = "skescore.datasets"  # public module of the class

    def __init__(
        self, text: str, options: Sequence[str] = (), misspelled: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(text)
        self.options = tuple(options)
        self.misspelled = dict(misspelled or {})


#: Sheet files in a workbook.
_SHEET_FILE = re.compile(r"xl/worksheets/[^/]*\.xml")
_HIDDEN_ROW = re.compile(rb'<row [^>]*\bhidden="(?:1|true)"')
#: Cell of a text file that is read as missing, or that begins with blanks.
_ALTERED_CELL = re.compile(
    rb"[,;|\t\n\"](?:NA|N/A|n/a|-?nan|-?NaN|null|NULL|None|<NA>|#NA|#N/A(?: N/A)?)"
    rb"(?=[,;|\t\r\n\"]|$)|[,;|\t\n] +[^\s,;|]"
)


@dataclass(frozen=True)
class FileTable:
    """Raw content of a file, before the types of its columns are detected.

    `reread` reads the same file with a decimal comma; None if numbers are not text. `texts` returns
    the columns at given positions as written, if numbers are written as text; with `keep_words`,
    this includes words for missing values. `may_pad` is False if no number can be written with
    leading zeros. `sheets` are the names of the sheets of a workbook, the first of which is read.
    `written` returns the text columns as written, with blanks and words for missing values; None if
    there are none of these.
    """

    frame: pd.DataFrame
    checksum: str
    separator: str | None = None
    findings: list[str] = field(default_factory=list)
    reread: Any = None
    texts: Any = None
    may_pad: bool = False
    sheets: tuple[str, ...] = ()
    written: Any = None

    def as_written(self, names: Iterable[str]) -> pd.DataFrame:
        """Return numeric columns as written, so that 01 and 1 differ.

        Integers that programs write with a decimal point because some are missing are returned
        without it. Other columns are omitted.
        """
        name_set, numeric = set(names), pd.api.types.is_numeric_dtype
        positions = [
            position
            for position, (name, column) in enumerate(self.frame.items())
            if str(name) in name_set and numeric(column.dtype) and column.dtype != bool
        ]
        if not positions:
            return self.frame.iloc[:, :0]
        texts = self.texts(positions).astype(object)
        texts.columns = self.frame.columns[positions]
        for name, column in texts.items():
            present = column.dropna().astype(str).str.strip()
            if len(present) and present.str.fullmatch(_POINTLESS).all():
                present = present.str.partition(".")[0]
            texts[name] = present.reindex(column.index)
        return texts

    def missing_texts(self, column: pd.Series) -> pd.Series:
        """Return the words of a column that are read as missing, such as NA, by row number."""
        if self.texts is None or not column.isna().any():
            return pd.Series(dtype=object)
        position = list(map(str, self.frame.columns)).index(str(column.name))
        texts = self.texts([position], keep_words=True).iloc[:, 0]
        words = texts[column.isna().to_numpy()].dropna().astype(str).str.strip()
        return words[words != ""]

    def with_words(self, column: pd.Series, words: Collection[str] | None = None) -> pd.Series:
        """Return a column in which the given, or all, words are texts instead of missing values."""
        texts = self.missing_texts(column)
        texts = texts if words is None else texts[texts.isin(words)]
        if not len(texts):
            return column
        result = column.astype(object)
        result.loc[texts.index] = texts
        return result

    def with_decimal_comma(self) -> FileTable:
        """Read the file again with a decimal comma."""
        if self.reread is None:
            return self
        return replace(self, frame=self.reread(decimal=","), reread=None)


def read_file(
    path: Path,
    where: str,
    *,
    separator: str | None = None,
    encoding: str | None = None,
    layout: LayoutOptions | None = None,
) -> FileTable:
    """Read the raw table of a file, with rows numbered from 0.

    `where` is the name of the file in errors. Rows above the header, units and totals are dropped;
    `layout` states where the header is.
    """
    layout = LayoutOptions() if layout is None else layout
    try:
        check_regular(path, where)
        with path.open("rb") as raw:
            start = raw.read(4096)
            raw.seek(0)
            checksum = hashlib.file_digest(raw, "sha256").hexdigest()
    except FileNotFoundError:
        raise  # only the caller knows what else the name could mean
    except ValueError as error:
        raise DatasetError(str(error)) from error
    except OSError as error:
        if path.is_dir():
            raise DatasetError(f"{where} is a folder: pass one of the files in it.") from error
        reason = error.strerror or error
        raise DatasetError(
            f"{where} cannot be read: {reason}. Check its name and its access rights."
        ) from error
    if not start:
        raise DatasetError(f"{where} is empty: it needs a header line and data rows.")
    stem = path.name.lower().removesuffix(".gz")
    suffix, is_compressed = Path(stem).suffix, stem != path.name.lower()
    if suffix in TEXT_KINDS:
        text_format = _TextFormat(TEXT_KINDS[suffix], is_compressed, separator, encoding)
        return _read_text(path, where, checksum, text_format, layout)
    if suffix in (*PARQUET_KINDS, *SHEET_KINDS) and not is_compressed:
        for option, argument in (("sep", separator), ("encoding", encoding)):
            if argument is not None:
                raise DatasetError(
                    f"{where}: {option} is for text files, got {argument!r} for a {suffix} file. "
                    f"Leave it out (on the command line: leave out --{option})."
                )
        if suffix in PARQUET_KINDS:
            return FileTable(_read_parquet(path, where, start), checksum)
        return _read_sheet(path, where, start, checksum, layout)
    raise DatasetError(
        f"{where} has the unknown ending {path.suffix!r}: it must be .csv, .tsv, .tab, .txt (each "
        "also with .gz), .xlsx, .parquet or .pq. Save the table as CSV."
    )


def check_unique(names: list[str], where: str) -> None:
    """Raise an error for repeated column names."""
    duplicates = [name for name in repeated(names) if name.strip()]
    if duplicates:
        raise DatasetError(
            f"{where}: the header has the duplicate column names {listed(duplicates)}: give every "
            f"column a name of its own.{header_hint(names)}"
        )


def header_hint(names: Sequence[str]) -> str:
    """Return a hint if the names look like the numbers of a data row."""
    numeric = [
        name for name in names if re.fullmatch(r"[+-]?\d*\.?\d+(\.\d+)?([eE][+-]?\d+)?", name)
    ]
    if 2 * len(numeric) >= len(names) and any("." in name for name in numeric):
        return " The first line looks like data, not names: put a header line above it."
    return ""


def _read_parquet(path: Path, where: str, start: bytes) -> pd.DataFrame:
    if not start.startswith(b"PAR1"):
        raise DatasetError(
            f"{where} is not a Parquet file: rename it to match its format, such as .csv."
        )
    try:
        parquet = import_optional(
            "pyarrow.parquet", extra="parquet", purpose="Reading a Parquet file"
        )
    except ImportError as error:
        raise DatasetError(f"{where} cannot be read. {error}") from error
    # Pass an open file: given a path, pyarrow would also derive columns from folder names.
    with path.open("rb") as raw:
        try:
            check_unique(list(parquet.read_schema(raw).names), where)
            raw.seek(0)
            table = pd.read_parquet(raw, engine="pyarrow")
        except DatasetError:
            raise
        except (ValueError, TypeError, LookupError, OSError, NotImplementedError) as error:
            raise DatasetError(f"{where} is a damaged Parquet file: {error}") from error
    if any(name is not None for name in table.index.names):
        table = table.reset_index()
    table.columns = pd.Index([str(column) for column in table.columns])
    return table.reset_index(drop=True)


def _read_sheet(
    path: Path, where: str, start: bytes, checksum: str, layout_options: LayoutOptions
) -> FileTable:
    if not start.startswith(b"PK\x03\x04"):
        raise DatasetError(
            f"{where} is not an Excel workbook: rename it to match its format, such as .csv."
        )
    try:
        import_optional("openpyxl", extra="excel", purpose="Reading an Excel workbook")
    except ImportError as error:
        raise DatasetError(f"{where} cannot be read. {error}") from error
    findings: list[str] = []
    try:
        with warnings.catch_warnings(), pd.ExcelFile(path, engine="openpyxl") as book:
            warnings.simplefilter("ignore")  # warnings about styles and extensions
            sheets = [str(name) for name in book.sheet_names]
            nulls: dict[str, Any] = {"keep_default_na": False, "na_values": list(NULL_CELLS)}
            written_grid = _read_cells(book)
            grid = written_grid.mask(written_grid.isin(NULL_CELLS))
            grid_texts = _texts_of_sheet(grid)
            head = grid_texts[:_LAYOUT_ROWS]
            contents = _contents_of_sheets(path)
            merged = _merged_ranges(path) if any(b"mergeCell" in c for c in contents) else []
            _note_hidden_rows(contents, findings)
            layout = _find_layout(head, layout_options, _merged_names(merged, head))
            first_row = 1 if layout is None else layout.first_row
            names = layout.names if layout is not None else grid_texts[0] if grid_texts else ()
            extra = find_extra_rows(grid_texts[first_row:], names)
            findings += [*(() if layout is None else layout.findings), *extra.findings]
            below = range(extra.first_below, len(grid) - first_row)
            left_out = [first_row + i for i in (*extra.among_data, *below)]
            if layout is None:
                table = book.parse(sheets[0], skiprows=left_out, **nulls)
            else:
                table = book.parse(
                    sheets[0],
                    header=None,
                    names=unique_names(layout.names),
                    skiprows=[*range(first_row), *left_out],
                    **nulls,
                )
            cells = grid.iloc[first_row:].drop(index=left_out).head(len(table))
            table = _with_merged_cells(table, cells.index, merged, findings)
    except DatasetError:
        raise
    except (ValueError, OSError, KeyError, IndexError, zlib.error) as error:
        raise DatasetError(f"{where} is a damaged Excel workbook: {error}") from error
    if not len(table.columns):
        raise DatasetError(f"{where} is empty: it needs a header line and data rows.")
    table.columns = pd.Index([str(column) for column in table.columns])
    more = f"the first of {len(sheets)} sheets is read, {sheets[0]!r}"
    findings = [more, *findings] if len(sheets) > 1 else findings
    nonempty_rows = table.notna().any(axis=1)
    row_numbers = cells.index[nonempty_rows.to_numpy()[: len(cells)]]

    texts = partial(_cells_of_sheet, grid.loc[row_numbers], written_grid.loc[row_numbers])
    table = _fill_down(table[nonempty_rows].reset_index(drop=True), findings)
    written = partial(_written_cells, texts, table)
    return FileTable(
        table, checksum, None, findings, None, texts, True, tuple(sheets), written=written
    )


def _note_hidden_rows(contents: Sequence[bytes], findings: list[str]) -> None:
    """Report that hidden rows are read, unless several sheets could contain them."""
    n_hidden = len(_HIDDEN_ROW.findall(contents[0])) if len(contents) == 1 else 0
    if n_hidden:
        verb = "is" if n_hidden == 1 else "are"
        findings.append(f"{plural(n_hidden, 'hidden row')} of the sheet {verb} read as well")


def _cells_of_sheet(
    cells: pd.DataFrame,
    written_cells: pd.DataFrame,
    positions: list[int],
    *,
    keep_words: bool = False,
) -> pd.DataFrame:
    """Return columns of a sheet as written, optionally with words for missing values."""
    return (written_cells if keep_words else cells).iloc[:, positions].reset_index(drop=True)


def _written_cells(texts: Any, table: pd.DataFrame) -> pd.DataFrame:
    """Return the text columns of a sheet with all blanks and words for missing values."""
    positions = [i for i, dtype in enumerate(table.dtypes) if not is_numeric_dtype(dtype)]
    cells: pd.DataFrame = texts(positions, keep_words=True)
    return cells.set_axis(table.columns[positions], axis=1)


def _read_cells(book: pd.ExcelFile) -> pd.DataFrame:
    """Return the cells of the first sheet as written, including words for missing values."""
    cells: pd.DataFrame = book.parse(
        book.sheet_names[0], header=None, dtype=object, keep_default_na=False, na_values=[""]
    )
    return cells


def _fill_down(table: pd.DataFrame, findings: list[str]) -> pd.DataFrame:
    """Repeat texts of the first column that only the first row of each block contains.

    Such columns result from merged cells, or from people who omit repeated labels.
    """
    is_filled = table.notna()
    is_used = is_filled.any(axis=0).to_numpy()
    if not is_used.any():
        return table
    position = int(is_used.argmax())
    column, starts = table.iloc[:, position], is_filled.iloc[:, position]
    labels = column[starts]
    others = is_filled.iloc[:, position + 1 :]
    has_blocks = (
        len(labels) >= 2
        and bool(starts.iloc[0])
        and len(labels) <= len(column) / 2
        and labels.map(lambda cell: isinstance(cell, str)).all()
        and (labels.to_numpy()[1:] != labels.to_numpy()[:-1]).all()
        and int((others.mean(axis=0) >= _FULL_SHARE).sum()) >= 2
    )
    if not has_blocks:
        return table
    name = str(table.columns[position])
    text = (
        f"column {name!r} has a text only in the first row of each block, "
        f"which is repeated in the rows below it ({len(labels)} blocks)"
    )
    findings.append(Conversion(name, "merged", text))
    return table.assign(**{name: column.ffill()})


def _texts_of_sheet(grid: pd.DataFrame) -> list[list[str]]:
    """Return the cells of a sheet as texts; missing ones are empty."""
    texts = grid.map(lambda cell: "" if pd.isna(cell) else str(cell).strip())
    rows: list[list[str]] = texts.to_numpy().tolist()
    return rows


def _contents_of_sheets(path: Path) -> list[bytes]:
    """Return the sheet files of a workbook, in any order."""
    with zipfile.ZipFile(path) as archive:
        return [archive.read(name) for name in archive.namelist() if _SHEET_FILE.fullmatch(name)]


def _merged_ranges(path: Path) -> list[tuple[slice, slice]]:
    """Return the rows and columns of the merged cells of the first sheet, counted from 0."""
    from openpyxl import load_workbook

    # openpyxl's read-only mode does not provide merged cells.
    return [
        (slice(cells.min_row - 1, cells.max_row), slice(cells.min_col - 1, cells.max_col))
        for cells in load_workbook(path).worksheets[0].merged_cells.ranges
    ]


def _merged_names(ranges: Iterable[tuple[slice, slice]], head: list[list[str]]) -> MergedCells:
    """Return the columns of merged cells by row, if the first row of a sheet lacks some names."""
    if not head or all(head[0]):
        return None
    columns_by_row: dict[int, dict[int, int]] = {}
    for rows, columns in ranges:
        if columns.stop - columns.start > 1:
            columns_by_row.setdefault(rows.start, {})[columns.start] = columns.stop - 1
    return columns_by_row


def _with_merged_cells(
    table: pd.DataFrame,
    sheet_rows: pd.Index,
    ranges: Iterable[tuple[slice, slice]],
    findings: list[str],
) -> pd.DataFrame:
    """Repeat the value of a merged cell in all rows that it spans.

    `sheet_rows` are the sheet's row numbers of the table's rows.
    """
    counts: dict[int, int] = {}
    for rows, columns in ranges:
        positions = np.flatnonzero((sheet_rows >= rows.start) & (sheet_rows < rows.stop))
        is_tall = rows.stop - rows.start > 1 and columns.stop - columns.start == 1
        column = columns.start
        if not is_tall or len(positions) < 2 or column >= table.shape[1]:
            continue
        if sheet_rows[positions[0]] != rows.start or pd.isna(table.iloc[positions[0], column]):
            continue
        table.iloc[positions[1:], column] = table.iloc[positions[0], column]
        counts[column] = counts.get(column, 0) + 1
    for column, count in sorted(counts.items()):
        name, verb = str(table.columns[column]), "is" if count == 1 else "are"
        text = (
            f"{plural(count, 'merged cell')} of column {name!r} {verb} repeated in the rows below"
        )
        findings.append(Conversion(name, "merged", text))
    return table


def _find_layout(
    rows: list[list[str]], options: LayoutOptions, merged: MergedCells = None
) -> TableLayout | None:
    try:
        return detect_layout(rows, options, merged)
    except ValueError as error:
        raise DatasetError(str(error)) from error


def unique_names(names: Sequence[str]) -> list[str]:
    """Return column names as pandas reads them: empty and repeated ones get numbers."""
    seen_counts: dict[str, int] = {}
    unique = []
    for position, name in enumerate(names):
        name = name or f"Unnamed: {position}"
        count = seen_counts.get(name, 0)
        seen_counts[name] = count + 1
        unique.append(f"{name}.{count}" if count else name)
    return unique


def _trim_to_table(
    content: bytes, encoding: str, text_format: _TextFormat, options: LayoutOptions
) -> tuple[bytes, str, str | None, list[str]]:
    """Return text with one header line above the data and nothing below.

    Also return its encoding and separator, and messages about dropped rows. Content that already
    has this form is returned unchanged.
    """
    original = content, encoding, text_format.separator, list[str]()
    try:
        text = content.decode(encoding)
    except UnicodeDecodeError:
        return original  # the reader reports the error
    lines = text.splitlines(keepends=True)
    separator = _detect_separator(lines[:_LAYOUT_ROWS], text_format)
    if separator is None or len(separator) > 1:
        return original
    rows, ends = _grid(lines[: 2 * _LAYOUT_ROWS], separator)
    layout = _find_layout(rows[:_LAYOUT_ROWS], options)
    first_line = ends[0] if layout is None else ends[layout.first_row - 1]
    names = rows[0] if layout is None else list(layout.names)
    records, spans = _records_below(lines, first_line, separator)
    extra = find_extra_rows(records, names) if records else None
    if layout is None and (extra is None or not extra.findings):
        return original
    header = lines[:first_line]
    if layout is not None:
        buffer = io.StringIO()
        names = [name.replace("\n", " ") for name in names]
        csv.writer(buffer, delimiter=separator, lineterminator="\n").writerow(names)
        header = [buffer.getvalue()]
    data, findings = lines[first_line:], list(() if layout is None else layout.findings)
    if extra is not None:
        omitted_rows = {*extra.among_data, *range(extra.first_below, len(records))}
        data = lines[first_line : spans[0][0]] + [
            line
            for i, (start, end) in enumerate(spans)
            if i not in omitted_rows
            for line in lines[start:end]
        ]
        findings += extra.findings
    return "".join([*header, *data]).encode("utf-8"), "utf-8", separator, findings


def _records_below(
    lines: Sequence[str], first_line: int, separator: str
) -> tuple[list[list[str]], list[tuple[int, int]]]:
    """Return the records below a header with the lines of each, or only the last ones.

    In a long table, or one without words for totals, all earlier records are regarded as data.
    """
    start = first_line
    is_short = len(lines) - first_line <= _MAX_SEARCHED_ROWS
    header = "".join(lines[first_line - 1 : first_line])
    if not (is_short and may_have_extra_rows("".join(lines[first_line:]), separator, header)):
        start = max(first_line, len(lines) - _TAIL_ROWS)
        if any(line.count('"') % 2 for line in lines[start:]):
            return [], []  # a record may begin above
    try:
        records, ends = _grid(lines[start:], separator)
    except csv.Error:
        return [], []  # the reader reports the error
    return records, list(pairwise([start, *(start + end for end in ends)]))


def _detect_separator(lines: Sequence[str], text_format: _TextFormat) -> str | None:
    """Return the separator that gives most lines the same number of cells, at least two."""
    if text_format.separator is not None:
        return SEPARATOR_NAMES.get(text_format.separator, text_format.separator)
    best_separator, best_count = None, 0
    for separator in dict.fromkeys((text_format.usual, *SEPARATORS)):
        try:
            widths = [len(row) for row in _grid(lines, separator)[0] if row]
        except csv.Error:
            continue
        usual = max(set(widths), key=widths.count, default=1)
        count = widths.count(usual) if usual > 1 else 0
        if count > best_count:
            best_separator, best_count = separator, count
    return best_separator


def _grid(lines: Sequence[str], separator: str) -> tuple[list[list[str]], list[int]]:
    """Return the records of lines, blank ones included, and the number of lines up to each."""
    reader = csv.reader(iter(lines), delimiter=separator, skipinitialspace=True)
    rows, ends = [], []
    for row in reader:
        rows.append(row)
        ends.append(reader.line_num)
    return rows, ends


@dataclass(frozen=True)
class _TextFormat:
    """Usual separator of a kind of text file, its compression, and the user's options."""

    usual: str
    is_compressed: bool
    separator: str | None
    encoding: str | None


def _read_text(
    path: Path, where: str, checksum: str, text_format: _TextFormat, layout: LayoutOptions
) -> FileTable:
    opener: Any = gzip.open if text_format.is_compressed else open
    usual = text_format.usual
    findings: list[str] = []
    try:
        with opener(path, "rb") as raw:
            content = raw.read()
        _refuse_binary(content[:4096], where, text_format.encoding)
        encoding = _detect_encoding(content, where, text_format.encoding, findings)
        content, encoding, separator, notes = _trim_to_table(content, encoding, text_format, layout)
        findings += notes
        try:
            with io.TextIOWrapper(io.BytesIO(content), encoding=encoding, newline="") as text:
                if separator is None:
                    separator, header = _sniff(text, usual)
                else:
                    separator = SEPARATOR_NAMES.get(separator, separator)
                    header = _header(text, separator)
        except UnicodeDecodeError as error:
            raise DatasetError(_describe_decoding_error(content, where, encoding)) from error
        if len(separator) > 1 and separator != BLANKS:
            raise DatasetError(
                f"{where}: sep must be one character, 'tab' or 'space', got {separator!r} (on the "
                "command line: --sep)."
            )
        read = partial(_parse, content, where, separator, encoding, header)
        table = read()
        duplicates = [name for name in repeated(header) if name.strip()]
        if duplicates:
            findings.append(
                f"the header has {listed(duplicates)} more than once; the other columns are read "
                f"as {listed([f'{name}.1' for name in duplicates])} and so on"
            )
        # The patterns do not match encodings with two bytes per character.
        utf8_content = content.decode(encoding).encode() if encoding.startswith("utf-") else content
        may_pad = _PADDED.search(utf8_content) is not None
        texts = partial(_texts_of, read)
        cells = None
        if _ALTERED_CELL.search(utf8_content) is not None:
            cells = partial(_written_texts, read, table)
        return FileTable(table, checksum, separator, findings, read, texts, may_pad, written=cells)
    except pd.errors.EmptyDataError as error:
        raise DatasetError(f"{where} is empty: it needs a header line and data rows.") from error
    except csv.Error as error:
        separator = text_format.separator or usual
        raise DatasetError(_describe_parser_error(str(error), where, separator)) from error
    except (OSError, EOFError, zlib.error) as error:
        raise DatasetError(f"{where} is damaged or cannot be read: {error}") from error


def _texts_of(read: Any, positions: list[int], *, keep_words: bool = False) -> pd.DataFrame:
    """Read the columns at given positions as text; missing cells stay missing."""
    na_values = [""] if keep_words else list(NULL_CELLS)
    table: pd.DataFrame = read(usecols=positions, dtype=str, na_values=na_values)
    return table


def _written_texts(read: Any, table: pd.DataFrame) -> pd.DataFrame:
    """Return the text columns of a table with all blanks and words for missing values."""
    positions = [i for i, dtype in enumerate(table.dtypes) if not is_numeric_dtype(dtype)]
    texts: pd.DataFrame = read(usecols=positions, dtype=str, na_values=[""], skipinitialspace=False)
    return texts.set_axis(table.columns[positions], axis=1)


def _parse(
    content: bytes,
    where: str,
    separator: str,
    encoding: str,
    header: list[str],
    decimal: str = ".",
    **options: Any,
) -> pd.DataFrame:
    """Read text with pandas, with a known separator and encoding."""
    usual: dict[str, Any] = {"skipinitialspace": True, "na_values": list(NULL_CELLS)}
    try:
        with warnings.catch_warnings():
            # pandas only warns, and truncates rows, if all rows have more cells than the header.
            warnings.simplefilter("error", pd.errors.ParserWarning)
            table = pd.read_csv(
                io.BytesIO(content),
                sep=separator,
                encoding=encoding,
                engine="c",
                low_memory=False,  # one type per column in files of any length
                index_col=False,
                decimal=decimal,
                keep_default_na=False,
                **usual | options,
            )
    except UnicodeDecodeError as error:
        raise DatasetError(_describe_decoding_error(content, where, encoding)) from error
    except pd.errors.ParserWarning as error:
        raise DatasetError(
            f"{where}: the data rows have more cells than the header, which has {len(header)}. "
            f"Name every column, and put cells that hold {separator!r} in quotation marks."
        ) from error
    except pd.errors.EmptyDataError:
        raise
    except pd.errors.ParserError as error:
        raise DatasetError(_describe_parser_error(str(error), where, separator)) from error
    names = [str(name).strip() for name in table.columns]
    if len(set(names)) == len(names):
        table.columns = pd.Index(names)
    return table


def _records(text: Any, separator: str) -> Any:
    text.seek(0)
    if separator == BLANKS:
        return (line.split() for line in text if line.strip())
    records = csv.reader(text, delimiter=separator, skipinitialspace=True)
    # Like pandas, skip blank lines; a line that contains only separators is not blank.
    return (record for record in records if len(record) > 1 or any(record))


def _header(text: Any, separator: str) -> list[str]:
    if len(separator) > 1 and separator != BLANKS:
        return []
    return next(iter(_records(text, separator)), [])


def _sniff(text: Any, usual: str) -> tuple[str, list[str]]:
    """Return the separator that splits header and first row alike, and the names in the header.

    Of several separators, the one with most columns is used, because cells may contain commas.
    """
    heads: dict[str, list[list[str]]] = {}
    for separator in dict.fromkeys((usual, *SEPARATORS)):
        heads[separator] = list(islice(_records(text, separator), 2)) or [[]]
    candidates = [sign for sign, rows in heads.items() if len({*map(len, rows)}) == 1]
    if candidates:
        best_separator = max(candidates, key=lambda separator: len(heads[separator][0]))
        if len(heads[best_separator][0]) > 1:
            return best_separator, heads[best_separator][0]
    best_separator = max(heads, key=lambda separator: len(heads[separator][0]))
    if len(heads[best_separator][0]) == 1:
        rows = list(islice(_records(text, BLANKS), _SEEN_ROWS))
        if len({len(row) for row in rows}) == 1 < len(rows) and len(rows[0]) > 1:
            return BLANKS, rows[0]
    return best_separator, heads[best_separator][0]


def _refuse_binary(start: bytes, where: str, encoding: str | None) -> None:
    disguises = {
        b"PAR1": "a Parquet file: rename it to end in .parquet",
        b"\x1f\x8b": "compressed with gzip: rename it to end in .gz",
        b"PK\x03\x04": "a zip archive or a spreadsheet: unpack it, or rename it to end in .xlsx",
    }
    for magic, remedy in disguises.items():
        if start.startswith(magic):
            raise DatasetError(f"{where} is {remedy}.")
    has_bom = start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    if b"\0" in start and not has_bom and encoding is None:
        raise DatasetError(
            f"{where} is binary, not text: save the table as CSV in UTF-8; if it is text, pass its "
            "encoding, such as encoding='utf-16-le' (on the command line: --encoding "
            "utf-16-le).",
            ("--encoding", "utf-16-le"),
        )


def _detect_encoding(content: bytes, where: str, name: str | None, findings: list[str]) -> str:
    """Detect the encoding of the text, and report an old one."""
    if name is not None:
        try:
            codecs.lookup(name)
        except LookupError as error:
            raise DatasetError(
                f"{where}: encoding must be one that Python knows, such as 'utf-8' or 'cp1252', "
                f"got {name!r} (on the command line: --encoding)."
            ) from error
        name = codecs.lookup(name).name
        return "utf-8-sig" if name == "utf-8" else name
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        findings.append("the text is in the encoding UTF-16")
        return "utf-16"
    try:
        content.decode("utf-8")
        return "utf-8-sig"
    except UnicodeDecodeError:
        pass
    # In damaged UTF-8, most non-ASCII characters are valid; in an 8-bit encoding, hardly any are.
    decoded_text = content.decode("utf-8", errors="replace")
    n_invalid = decoded_text.count("�")
    n_valid = sum(map(len, re.findall(r"[^\x00-\x7f�]+", decoded_text)))
    if n_valid > n_invalid:
        raise DatasetError(_describe_decoding_error(content, where, "utf-8"))
    try:
        content.decode("cp1252")
    except UnicodeDecodeError:
        findings.append("the text is read as ISO-8859-1; for another encoding: --encoding NAME")
        return "iso-8859-1"
    findings.append("the text is read as Windows-1252; for another encoding: --encoding NAME")
    return "cp1252"


def _describe_decoding_error(content: bytes, where: str, encoding: str) -> str:
    """Describe the first line that cannot be decoded."""
    name = "UTF-8" if encoding.startswith("utf-8") else encoding
    position = ""
    for number, line in enumerate(io.BytesIO(content), start=1):
        try:
            line.decode(encoding)
        except UnicodeDecodeError as error:
            position = f": line {number} {LINE_NOTE} has the byte 0x{line[error.start]:02x}"
            break
    return (
        f"{where} is not in the encoding {name}{position}. Save it as UTF-8, or name its encoding, "
        "such as encoding='cp1252' (on the command line: --encoding cp1252)."
    )


def _describe_parser_error(message: str, where: str, separator: str) -> str:
    """Convert an error of the tokenizer to a message about the file."""
    match = re.search(r"Expected (\d+) fields in line (\d+), saw (\d+)", message)
    if match:
        expected, line, n_cells = match.groups()
        return (
            f"{where}: line {line} {LINE_NOTE} has {n_cells} cells, the header {expected}. Put "
            f"cells that hold {separator!r} in quotation marks, or remove the extra cell."
        )
    match = re.search(r"EOF inside string starting at row (\d+)", message)
    if match:
        line = str(int(match[1]) + 1)
        return f"{where}: a quotation mark opened in line {line} {LINE_NOTE} is never closed."
    return f"{where} cannot be read as a table: {message.strip()}. Save it as CSV again."
