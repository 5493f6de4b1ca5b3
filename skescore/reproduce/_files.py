"""A paper's table as files: one CSV row per row of the table, and all of it as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import pandas as pd

__all__ = ["as_frame"]


def as_frame(table: Mapping[str, Any]) -> pd.DataFrame:
    """Give the rows of a table as a data frame.

    Parameters
    ----------
    table : mapping
        What :func:`~skescore.reproduce.reproduce_fire` or
        :func:`~skescore.reproduce.reproduce_ice` returned.

    Returns
    -------
    pandas.DataFrame
        Columns such as ``printed.accuracy`` and ``half.accuracy.mean``; parameters as JSON.
    """
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
