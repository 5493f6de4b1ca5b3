"""Parallel measurement of the cells of a table, with a file from which runs are resumed."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pandas as pd
from joblib import delayed

from skescore._io import LineFile
from skescore._processes import parallel

__all__ = ["CellFile", "Key", "Progress", "as_frame", "measure_cells"]

#: Packages whose versions must be the same for all cells of a file.
_PACKAGES = ("skescore", "scikit-learn", "optuna")

#: Key of a cell, such as ("wine", "cart", "half", 0), made of JSON strings and numbers.
Key = tuple[Any, ...]
#: Function of the key of a measured cell, the numbers of finished and of all cells, and the
#: estimated remaining seconds.
Progress = Callable[[Key, int, int, float], None]


class CellFile:
    """Values of cells by key, appended to a file if there is a path.

    A file with other settings raises a ValueError.
    """

    def __init__(self, path: Path | None, settings: Mapping[str, Any]) -> None:
        self.values: dict[Key, Any] = {}
        self._file: LineFile | None = None
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            head = json.dumps({"settings": settings})
            check = partial(_check_settings, path, settings)
            self._file = LineFile(path, head, check=check)
            for cell in map(json.loads, self._file.lines):
                self.values[tuple(cell["key"])] = cell["value"]

    def add(self, key: Key, value: Any) -> None:
        """Store the value of a cell, converted to JSON types."""
        line = json.dumps({"key": list(key), "value": value})
        self.values[key] = json.loads(line)["value"]
        if self._file is not None:
            self._file.append(line)


def measure_cells(
    keys: Sequence[Key],
    measure: Callable[[Key], Any],
    *,
    settings: Mapping[str, Any],
    path: Path | None = None,
    n_jobs: int = 1,
    progress: Progress | None = None,
    cost: Callable[[Key], float] = lambda key: 1.0,
) -> dict[Key, Any]:
    """Measure the cells that are not in the file yet.

    The remaining time is estimated from the relative `cost` of cells, in any unit.
    """
    about = {**settings, **{f"{name} version": version(name) for name in _PACKAGES}}
    cells = CellFile(path, json.loads(json.dumps(about)))
    missing_keys = [key for key in keys if key not in cells.values]
    results = parallel(n_jobs, return_as="generator_unordered")(
        delayed(_measure_cell)(measure, key) for key in missing_keys
    )
    begin, cost_left, cost_done = time.monotonic(), sum(map(cost, missing_keys)), 0.0
    try:
        for count, (key, value) in enumerate(results, start=len(keys) - len(missing_keys) + 1):
            cells.add(key, value)
            cost_left, cost_done = cost_left - cost(key), cost_done + cost(key)
            if progress is not None:
                seconds = (time.monotonic() - begin) / cost_done * max(cost_left, 0.0)
                progress(key, count, len(keys), seconds)
    finally:
        if hasattr(results, "close"):
            results.close()
    return {key: cells.values[key] for key in keys}


def _measure_cell(measure: Callable[[Key], Any], key: Key) -> tuple[Key, Any]:
    return key, measure(key)


def _check_settings(path: Path, settings: Mapping[str, Any], line: str) -> None:
    try:
        earlier = json.loads(line)["settings"]
    except (ValueError, KeyError, TypeError):
        earlier = None
    if not isinstance(earlier, dict):
        raise ValueError(
            f"{path} is not a file of this command: move it away, or name another folder."
        )
    other = sorted(k for k in {*earlier, *settings} if earlier.get(k) != settings.get(k))
    if other:
        text = ", ".join(f"{k} {earlier.get(k)!r} instead of {settings.get(k)!r}" for k in other)
        raise ValueError(
            f"{path} holds cells of other settings: {text}. Name another folder, pass the settings "
            "of that run, or discard them (on the command line: --overwrite)."
        )


def as_frame(table: Mapping[str, Any]) -> pd.DataFrame:
    """Return the rows of a table as a data frame.

    Parameters
    ----------
    table : mapping
        Result of :func:`reproduce_fire` or :func:`reproduce_ice`.

    Returns
    -------
    pandas.DataFrame
        Columns such as ``printed.accuracy`` and ``half.accuracy.mean``; parameters as JSON.
    """
    return pd.DataFrame([dict(_flatten("", row)) for row in table["rows"]])


def _flatten(prefix: str, row: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for key, value in row.items():
        name = f"{prefix}{key}"
        if key == "params" or isinstance(value, list):
            yield name, json.dumps(value)
        elif isinstance(value, Mapping):
            yield from _flatten(f"{name}.", value)
        else:
            yield name, value
