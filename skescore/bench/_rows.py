"""The file of results: whole lines are added as they come, and a torn last one is dropped."""

from __future__ import annotations

import csv
import io
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from skescore._text import listed
from skescore.bench._plan import Cell
from skescore.scorers import SCORE_SPECS

__all__ = ["RowFile", "read_rows", "row_columns"]

_FIRST = (
    "data", "task", "black_box", "extractor", "params", "seed", "fold", "state", "error",
    "n_rules", "size",
)  # fmt: skip
_LAST = ("seconds", "black_box_calls", "black_box_rows", "warnings")
#: Those that hold no floats.
_TYPES = {
    **dict.fromkeys(
        ("data", "task", "black_box", "extractor", "params", "state", "error", "warnings"), "object"
    ),
    "seed": "int64",
    "fold": "int64",
}


def row_columns(measures: Iterable[str] = ()) -> tuple[str, ...]:
    """The columns of a bench's rows, in order.

    Parameters
    ----------
    measures : iterable of str, default=()
        Further measures of the run.

    Returns
    -------
    tuple of str
        With those of every score in :data:`skescore.scorers.SCORE_SPECS`.

    Examples
    --------
    >>> from skescore.bench import row_columns
    >>> row_columns()[:4]
    ('data', 'task', 'black_box', 'extractor')
    """
    return (
        *_FIRST, *(spec.kept_as for spec in SCORE_SPECS.values()), "completeness_volume",
        "completeness_instances", "fidelity", "black_box_quality", *SCORE_SPECS, *measures, *_LAST,
    )  # fmt: skip


class RowFile:
    """A CSV file that grows by whole lines.

    Use it where a process may be killed at any moment: what was written is found again.

    Parameters
    ----------
    path : Path
        The file; made with a header where there is none.
    measures : iterable of str, default=()
        Further columns, see :func:`row_columns`.

    Raises
    ------
    ValueError
        If there is a file with other columns.

    Notes
    -----
    A line is written by one call and ends with a line feed that no cell holds, so that the last
    line is whole exactly if the file ends with one.
    """

    def __init__(self, path: Path, measures: Iterable[str] = ()) -> None:
        self.path = path
        self.columns = row_columns(measures)
        content = path.read_bytes() if path.exists() else b""
        whole = content[: content.rfind(b"\n") + 1]
        header = _line(self.columns)
        if whole and not whole.startswith(header):
            raise ValueError(
                f"{path} holds other columns than the rows of a bench with these scores and "
                "measures: move it away, or name another folder."
            )
        if whole != content:
            with path.open("r+b") as file:
                file.truncate(len(whole))
        if not whole:
            path.write_bytes(header)
        self._file = path.open("ab", buffering=0)

    def append(self, row: Mapping[str, Any]) -> None:
        """Add a row; columns that it does not know stay empty."""
        data = _line([_cell(row.get(name)) for name in self.columns])
        written = self._file.write(data)
        while written is not None and written < len(data):  # a signal came, or the disk is full
            data = data[written:]
            written = self._file.write(data)

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def __enter__(self) -> RowFile:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def read(self) -> pd.DataFrame:
        """Read all rows, in the order of the file."""
        return read_rows(self.path)

    def rewrite(self, rows: pd.DataFrame) -> None:
        """Put other rows in the place of all, as a whole or not at all."""
        self._file.close()
        part = self.path.with_name(self.path.name + ".part")
        part.write_bytes(csv_bytes(rows))
        os.replace(part, self.path)
        self._file = self.path.open("ab", buffering=0)


def read_rows(path: Path) -> pd.DataFrame:
    """Read the rows of a bench; a torn last line is left out.

    Parameters
    ----------
    path : Path
        The file ``rows.csv`` of a bench's folder.

    Returns
    -------
    pandas.DataFrame
        Texts, whole seeds and folds, other columns as floats; NaN where there is no value.

    Raises
    ------
    ValueError
        If it is no such file.
    """
    content = path.read_bytes()
    whole = content[: content.rfind(b"\n") + 1].decode("utf-8", errors="replace")
    lines = csv.reader(io.StringIO(whole, newline=""))
    header = tuple(next(lines, ()))
    if (header[: len(_FIRST)], header[-len(_LAST) :]) != (_FIRST, _LAST):
        raise ValueError(
            f"{path} cannot be read as the rows of a bench: its columns are {listed(header)}. Name "
            "the file rows.csv of its folder."
        )
    # Not read by pandas: numbers must be the same again, and a label may be called NA.
    columns: dict[str, list[Any]] = {name: [] for name in header}
    for number, line in enumerate(lines, start=2):
        try:
            for name, cell in zip(header, line, strict=True):
                columns[name].append(_value(name, cell))
        except ValueError as error:
            raise ValueError(
                f"{path}, line {number}, cannot be read as a row of a bench: {error}. Remove what "
                "other programs wrote into it, or begin anew in another folder."
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
        return cell
    return int(cell) if kind == "int64" else float(cell or "nan")


def in_order(rows: pd.DataFrame, cells: Iterable[Cell]) -> pd.DataFrame:
    """Give the rows in the order of the cells, the last of several for the same cell.

    Parameters
    ----------
    rows : pandas.DataFrame
        Rows, in any order.
    cells : iterable of Cell
        The order; rows of other cells are left out.

    Returns
    -------
    pandas.DataFrame
        Numbered from 0.
    """
    known = dict(zip(cells_of(rows), range(len(rows)), strict=True))
    return rows.iloc[[known[cell] for cell in cells if cell in known]].reset_index(drop=True)


def cells_of(rows: pd.DataFrame) -> list[Cell]:
    """Tell which cell each row is of.

    Parameters
    ----------
    rows : pandas.DataFrame
        Rows.

    Returns
    -------
    list of Cell
        In their order.
    """
    columns = [rows[name].tolist() for name in Cell._fields]
    return [Cell(*values) for values in zip(*columns, strict=True)]


def csv_bytes(rows: pd.DataFrame) -> bytes:
    """Write rows as the file holds them.

    Parameters
    ----------
    rows : pandas.DataFrame
        As :func:`read_rows` gives them.

    Returns
    -------
    bytes
        CSV in UTF-8.
    """
    lines = [_line(list(rows.columns))]
    for values in rows.itertuples(index=False, name=None):
        lines.append(_line([_cell(value) for value in values]))
    return b"".join(lines)


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float):
        if math.isnan(value):
            return ""
        # What is whole looks so, and numbers are the same again when they are read.
        return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)
    return " ".join(str(value).split()) if isinstance(value, str) else str(value)


def _line(cells: Sequence[str]) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow(cells)
    return text.getvalue().encode("utf-8", errors="backslashreplace")
