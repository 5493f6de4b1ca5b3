"""Measures a list of cells in parallel and keeps each as soon as it is there."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pandas as pd
from joblib import Parallel, delayed

from skescore._io import LineFile

__all__ = ["as_frame"]


# --- a paper's table as files: one CSV row per row of the table, and all of it as JSON -----------


def as_frame(table: Mapping[str, Any]) -> pd.DataFrame:
    """Give the rows of a table as a data frame."""
    return pd.DataFrame([dict(_flat("", row)) for row in table["rows"]])


def _flat(prefix: str, row: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for key, value in row.items():
        name = f"{prefix}{key}"
        if key == "params" or isinstance(value, list):
            yield name, json.dumps(value)
        elif isinstance(value, Mapping):
            yield from _flat(f"{name}.", value)
        else:
            yield name, value


# --- Measures a list of cells in parallel and keeps each as soon as it is there ------------------

#: Cells that other versions of these have measured are not mixed with new ones.
_PACKAGES = ("skescore", "scikit-learn", "optuna")

#: A cell's name, such as ("wine", "cart", "half", 0); of texts and numbers, as JSON knows them.
Key = tuple[Any, ...]
#: Told the name of every cell that is measured, and how many are done out of how many.
Progress = Callable[[Key, int, int], None]


def measure_cells(
    keys: Sequence[Key],
    measure: Callable[[Key], Any],
    *,
    settings: Mapping[str, Any],
    path: Path | None = None,
    n_jobs: int = 1,
    progress: Progress | None = None,
) -> dict[Key, Any]:
    """Measure cells; those that an earlier run has written to the file are not measured again."""
    about = {**settings, **{f"{name} version": version(name) for name in _PACKAGES}}
    about = json.loads(json.dumps(about))
    file = None
    done: dict[Key, Any] = {}
    if path is not None:
        head = json.dumps({"settings": about})
        file = LineFile(path, head, check=lambda line: _check_settings(path, line, about))
        done = {tuple(cell["key"]): cell["value"] for cell in map(json.loads, file.lines)}
    left = [key for key in keys if key not in done]
    found = Parallel(n_jobs=n_jobs, return_as="generator_unordered")(
        delayed(_named)(measure, key) for key in left
    )
    try:
        for count, (key, value) in enumerate(found, start=len(keys) - len(left) + 1):
            line = json.dumps({"key": list(key), "value": value})
            done[key] = json.loads(line)["value"]
            if file is not None:
                file.append(line)
            if progress is not None:
                progress(key, count, len(keys))
    finally:
        if hasattr(found, "close"):
            found.close()
    return {key: done[key] for key in keys}


def _named(measure: Callable[[Key], Any], key: Key) -> tuple[Key, Any]:
    return key, measure(key)


def _check_settings(path: Path, line: str, settings: dict[str, Any]) -> None:
    try:
        earlier = json.loads(line)["settings"]
    except (ValueError, KeyError, TypeError):
        earlier = None
    if not isinstance(earlier, dict):
        raise ValueError(
            f"{path} is no file of this command: move it away, or name another folder."
        )
    other = sorted(k for k in {*earlier, *settings} if earlier.get(k) != settings.get(k))
    if other:
        told = ", ".join(f"{k} {earlier.get(k)!r} instead of {settings.get(k)!r}" for k in other)
        raise ValueError(
            f"{path} holds cells of other settings: {told}. Name another folder, pass the settings "
            "of that run, or forget them (on the command line: --overwrite)."
        )
