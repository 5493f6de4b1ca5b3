"""The rows of a bench, and the CSV file that keeps them."""

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

_FIRST = (
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
        *_FIRST,
        *(spec.kept_as for spec in SCORE_SPECS.values()),
        "completeness_volume",
        "completeness_instances",
        "fidelity",
        "black_box_quality",
        *SCORE_SPECS,
        *measures,
        *_LAST,
    )


class RowFile(LineFile):
    """The rows of a bench as CSV, of which a run that was broken off finds what is there."""

    def __init__(self, path: Path, measures: Iterable[str] = ()) -> None:
        self.columns = row_columns(measures)
        super().__init__(path, _line(self.columns))

    def add(self, row: Mapping[str, Any]) -> None:
        """Add a row; columns that it does not know stay empty."""
        self.append(_line([_cell(row.get(name)) for name in self.columns]))

    def read(self) -> pd.DataFrame:
        """Read all rows, in the order of the file."""
        return read_rows(self.path)

    def rewrite(self, rows: pd.DataFrame) -> None:
        """Put other rows in the place of all, as a whole or not at all."""
        write_atomically(self.path, csv_text(rows))


def read_rows(path: str | Path) -> pd.DataFrame:
    """Read the rows of a bench; a torn last line is left out.

    Parameters
    ----------
    path : str or Path
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
    content = Path(path).read_bytes()
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
        return cell_text(cell)
    return int(cell) if kind == "int64" else float(cell or "nan")


def in_order(rows: pd.DataFrame, cells: Iterable[Cell]) -> pd.DataFrame:
    """Give the rows in the order of the cells, the last of several for the same cell."""
    known = dict(zip(cells_of(rows), range(len(rows)), strict=True))
    return rows.iloc[[known[cell] for cell in cells if cell in known]].reset_index(drop=True)


def cells_of(rows: pd.DataFrame) -> list[Cell]:
    """Give the cell that each row is of."""
    columns = [rows[name].tolist() for name in Cell._fields]
    return [Cell(*values) for values in zip(*columns, strict=True)]


def csv_text(rows: pd.DataFrame) -> str:
    """Write rows, as :func:`read_rows` gives them, as the file holds them."""
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
        # What is whole looks so, and numbers are the same again when they are read.
        return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)
    if not isinstance(value, str):
        return str(value)
    text = " ".join(value.split())
    # Numbers among texts are no formulas, but would be aligned and rounded as numbers.
    return f"'{text}" if text.startswith(("+", "-")) else without_formula(text)


def _line(cells: Sequence[str]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="").writerow(cells)
    return text.getvalue()
