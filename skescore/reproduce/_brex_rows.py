"""Results of the benchmark on Boolean attributions: one row per formula and method, in a CSV."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

ROWS_FILE, SETTINGS_FILE = "brex_rows.csv", "brex_settings.json"


@dataclass(frozen=True)
class Row:
    """What one method reached on one formula.

    Parameters
    ----------
    table : int
        Number of the paper's table.
    kind, family, column, number : str, str, str, int
        Which formula of the benchmark.
    formula : str
        The formula.
    method : str
        The explainer.
    rows : int
        Assignments explained.
    jsd, jsd_without_zero_maps : float
        Mean divergence from the exact responsibilities in bits; rows of which the method says
        nothing count 1, or are left out.
    zero_maps : float
        Share of rows of which the method says nothing.
    top_k, top_k_strict : float
        Share of rows whose highest attributions are those of the responsible inputs; equal ones at
        the border are drawn fairly, or are no hit.
    queries : float or None
        Mean number of different questions per row; None for methods that look into a network.
    accuracy : float or None
        Share of complete assignments that the network has learnt.
    """

    table: int
    kind: str
    family: str
    column: str
    number: int
    formula: str
    method: str
    rows: int
    jsd: float
    jsd_without_zero_maps: float
    zero_maps: float
    top_k: float
    top_k_strict: float
    queries: float | None
    accuracy: float | None

    @property
    def key(self) -> tuple[str, str, str, int, str]:
        """What tells rows apart."""
        return self.kind, self.family, self.column, self.number, self.method


_WHOLE = {"table", "number", "rows"}
_TEXT = {"kind", "family", "column", "formula", "method"}


def _read_value(name: str, text: str) -> Any:
    if name in _TEXT:
        return text
    if name in _WHOLE:
        return int(text)
    return float(text) if text else (math.nan if name.startswith("jsd") else None)


def _write_value(value: Any) -> str:
    if value is None or value != value:
        return ""
    return repr(value) if isinstance(value, float) else str(value)


class RowStore:
    """Rows of a run, kept in a folder if there is one, so that a broken run goes on.

    Parameters
    ----------
    folder : Path or None
        Where the rows are kept.
    settings : dict
        What must be the same for rows to belong together.

    Raises
    ------
    ValueError
        If the folder holds rows of other settings, or a file that is none of ours.
    """

    def __init__(self, folder: Path | None, settings: dict[str, Any]) -> None:
        self.folder = folder
        self.rows: dict[tuple[str, str, str, int, str], Row] = {}
        if folder is None:
            return
        folder.mkdir(parents=True, exist_ok=True)
        self._check_settings(folder / SETTINGS_FILE, settings)
        path = folder / ROWS_FILE
        if path.exists():
            for row in self._read(path):
                self.rows[row.key] = row
        # Written anew, without a last line that was broken off.
        whole = "".join(self._line(row) for row in self.rows.values())
        beside = path.with_suffix(".tmp")
        beside.write_text(self._header() + whole, encoding="utf-8", newline="")
        beside.replace(path)

    def _check_settings(self, path: Path, settings: dict[str, Any]) -> None:
        if path.exists():
            try:
                known = json.loads(path.read_text(encoding="utf-8"))
            except ValueError as error:
                raise ValueError(
                    f"{path} is no JSON ({error}). Remove the folder's files, or choose another."
                ) from error
            differing = [
                f"{name} {known.get(name)!r} there, {value!r} now"
                for name, value in settings.items()
                if not isinstance(known, dict) or known.get(name) != value
            ]
            if differing:
                raise ValueError(
                    f"{path.parent} holds results of other settings ({'; '.join(differing)}). Pass "
                    "the same ones to go on, or choose another folder."
                )
        path.write_text(json.dumps(settings, indent=2) + "\n", encoding="utf-8")

    @staticmethod
    def _read(path: Path) -> Iterator[Row]:
        text = path.read_text(encoding="utf-8", errors="replace")
        # What follows the last line break was being written when the run broke off.
        reader = csv.DictReader(text[: text.rfind("\n") + 1].splitlines())
        names = [f.name for f in fields(Row)]
        if reader.fieldnames is not None and list(reader.fieldnames) != names:
            raise ValueError(
                f"{path} must have the columns {', '.join(names)}, it has "
                f"{', '.join(reader.fieldnames)}. Choose another folder."
            )
        for record in reader:
            try:
                yield Row(**{name: _read_value(name, record[name]) for name in names})
            except (TypeError, ValueError) as error:
                raise ValueError(
                    f"{path} has a line that cannot be read, {reader.line_num}: {error}. Remove "
                    "that line, and its results are made again."
                ) from error

    @staticmethod
    def _header() -> str:
        return ",".join(f.name for f in fields(Row)) + "\r\n"

    @staticmethod
    def _line(row: Row) -> str:
        # No value holds a comma, a quotation mark or a line break.
        return ",".join(map(_write_value, asdict(row).values())) + "\r\n"

    def __contains__(self, key: object) -> bool:
        return key in self.rows

    def add(self, row: Row) -> None:
        """Keep a row, and write it at once."""
        self.rows[row.key] = row
        if self.folder is not None:
            with (self.folder / ROWS_FILE).open("a", encoding="utf-8", newline="") as file:
                file.write(self._line(row))
