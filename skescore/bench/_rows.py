"""Rows of a benchmark and the CSV file that stores them."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from skescore._io import LineFile, write_atomically
from skescore._text import cell_text, listed, without_formula
from skescore.bench._plan import Cell
from skescore.scorers import SCORE_SPECS

__all__ = ["RowFile", "read_rows", "row_columns"]

_FIRST_COLUMNS = (
    "data",
    "task",
    "black_box",
    "extractor",
    "params",
    "seed",
    "fold",
    "state",
    "error",
    "n_rules",
    "size",
)
_LAST_COLUMNS = ("seconds", "black_box_calls", "black_box_rows", "warnings")
#: Types of the columns that do not contain floats.
_TYPES = {
    **dict.fromkeys(
        ("data", "task", "black_box", "extractor", "params", "state", "error", "warnings"), "object"
    ),
    "seed": "int64",
    "fold": "int64",
}


def row_columns(measures: Iterable[str] = ()) -> tuple[str, ...]:
    """Return the columns of the rows of a benchmark, in order.

    Parameters
    ----------
    measures : iterable of str, default=()
        Further measures of the run.

    Returns
    -------
    tuple of str
        Names, including the columns of every score in :data:`skescore.scorers.SCORE_SPECS`.

    Examples
    --------
    >>> from skescore.bench import row_columns
    >>> row_columns()[:4]
    ('data', 'task', 'black_box', 'extractor')
    """
    return (
        *_FIRST_COLUMNS,
        *(spec.kept_as for spec in SCORE_SPECS.values()),
        "completeness_volume",
        "completeness_instances",
        "fidelity",
        "black_box_quality",
        *SCORE_SPECS,
        *measures,
        *_LAST_COLUMNS,
    )


class RowFile(LineFile):
    """CSV file with the rows of a benchmark, to which an interrupted run can append."""

    def __init__(self, path: Path, measures: Iterable[str] = ()) -> None:
        self.columns = row_columns(measures)
        super().__init__(path, _line(self.columns))

    def add(self, row: Mapping[str, Any]) -> None:
        """Append a row; columns without a value remain empty."""
        self.append(_line([_cell(row.get(name)) for name in self.columns]))

    def read(self) -> pd.DataFrame:
        """Read all rows, in the order of the file."""
        return read_rows(self.path)

    def rewrite(self, rows: pd.DataFrame) -> None:
        """Replace all rows at once."""
        write_atomically(self.path, csv_text(rows))


def read_rows(path: str | Path) -> pd.DataFrame:
    """Read the rows of a benchmark; an incomplete last line is skipped.

    Parameters
    ----------
    path : str or Path
        The file ``rows.csv`` in the folder of the benchmark.

    Returns
    -------
    pandas.DataFrame
        Strings, with seeds and folds as integers and other columns as floats; NaN without a value.

    Raises
    ------
    ValueError
        If the file does not contain such rows.
    """
    content = Path(path).read_bytes()
    text = content[: content.rfind(b"\n") + 1].decode("utf-8", errors="replace")
    lines = csv.reader(io.StringIO(text, newline=""))
    header = tuple(next(lines, ()))
    is_complete = header[: len(_FIRST_COLUMNS)] == _FIRST_COLUMNS
    if not is_complete or header[-len(_LAST_COLUMNS) :] != _LAST_COLUMNS:
        raise ValueError(
            f"{path} does not contain the rows of a benchmark: its columns are {listed(header)}. "
            "Name the file rows.csv of its folder."
        )
    # pandas would read the label "NA" as a missing value and might round numbers.
    columns: dict[str, list[Any]] = {name: [] for name in header}
    for number, line in enumerate(lines, start=2):
        try:
            for name, cell in zip(header, line, strict=True):
                columns[name].append(_value(name, cell))
        except ValueError as error:
            raise ValueError(
                f"{path}, line {number}, is not a row of a benchmark: {error}. Remove what other "
                "programs wrote into it, or start over in another folder."
            ) from error
    return pd.DataFrame(
        {
            name: pd.Series(values, dtype=_TYPES.get(name, "float64"))
            for name, values in columns.items()
        }
    )


def _value(name: str, cell: str) -> Any:
    kind = _TYPES.get(name)
    if kind == "object":
        return cell_text(cell)
    return int(cell) if kind == "int64" else float(cell or "nan")


def in_order(rows: pd.DataFrame, cells: Iterable[Cell]) -> pd.DataFrame:
    """Return the rows in the order of the cells; of several rows of a cell, return the last."""
    row_numbers = dict(zip(cells_of(rows), range(len(rows)), strict=True))
    return rows.iloc[[row_numbers[cell] for cell in cells if cell in row_numbers]].reset_index(
        drop=True
    )


def cells_of(rows: pd.DataFrame) -> list[Cell]:
    """Return the cell of each row."""
    columns = [rows[name].tolist() for name in Cell._fields]
    return [Cell(*values) for values in zip(*columns, strict=True)]


def csv_text(rows: pd.DataFrame) -> str:
    """Return rows from :func:`read_rows` as the text of a CSV file."""
    table = rows.itertuples(index=False, name=None)
    lines = [list(rows.columns), *([_cell(value) for value in values] for values in table)]
    return "".join(f"{_line(cells)}\n" for cells in lines)


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float):
        if math.isnan(value):
            return ""
        # Integers have no decimals, and all numbers are unchanged when they are read.
        return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)
    if not isinstance(value, str):
        return str(value)
    text = " ".join(value.split())
    # A spreadsheet would interpret signed numbers in a column of strings.
    return f"'{text}" if text.startswith(("+", "-")) else without_formula(text)


def _line(cells: Sequence[str]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="").writerow(cells)
    return text.getvalue()
