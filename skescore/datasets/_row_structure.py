"""Groups and times of rows, which determine how rows may be split into folds."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pandas as pd

from skescore.datasets._files import DatasetError, FileTable
from skescore.datasets._reading import ReadingOptions, read_time, read_times

__all__ = ["order_by_time", "read_groups"]


def read_groups(column: pd.Series, findings: list[str]) -> pd.Series:
    """Return the group of each row as a string; a row without a group is a group of its own.

    Parameters
    ----------
    column : pandas.Series
        Identifiers of the groups.
    findings : list of str
        Messages for the user, which are extended.
    """
    labels = column.map(_group_label, na_action="ignore").astype(object)
    is_missing = labels.isna().to_numpy()
    if is_missing.any():
        numbers = np.flatnonzero(is_missing)
        labels[is_missing] = [f"row {number + 1} without a group" for number in numbers]
        findings.append(
            f"{len(numbers)} rows have no {str(column.name)!r}, so each of them is a group of its "
            "own"
        )
    return labels.reset_index(drop=True)


def _group_label(value: Any) -> str:
    """Return an identifier as a string; integers have no decimal point."""
    is_whole = isinstance(value, float) and value.is_integer()
    return re.sub(r"\s+", " ", str(int(value) if is_whole else value)).strip()


def order_by_time(
    rows: pd.DataFrame, raw: FileTable, options: ReadingOptions, findings: list[str]
) -> tuple[pd.DataFrame, pd.Series | None]:
    """Sort rows by the time column; rows without a time, and before `since`, are dropped.

    Parameters
    ----------
    rows : pandas.DataFrame
        The rows, indexed by their numbers in the file.
    raw : FileTable
        File that contains the time column.
    options : ReadingOptions
        Options whose `time` names the column, and whose `since` is the first time.
    findings : list of str
        Messages for the user, which are extended.

    Returns
    -------
    rows : pandas.DataFrame
        The sorted rows.
    times : pandas.Series or None
        Times of the rows; None without a time column.
    """
    if options.time is None:
        return rows, None
    column = raw.frame.rename(columns=str).loc[rows.index, options.time]
    times = read_times(column, options.na_values)
    if times is None:
        raise DatasetError(
            f"time must be a column of dates or numbers, but {options.time!r} has text such as "
            f"{column.dropna().astype(str).iloc[0]!r}. Name another column (on the command line: "
            "--time)."
        )
    n_missing = int(times.isna().sum())
    if n_missing:
        findings.append(
            f"{n_missing} of {len(rows)} rows are left out, because their time "
            f"({options.time!r}) is missing"
        )
    times = times.dropna().sort_values(kind="stable")
    if len(times) < 2:
        raise DatasetError(
            f"time must have a value in at least 2 rows, but {options.time!r} has {len(times)}. "
            "Name another column (on the command line: --time)."
        )
    times = _from_start(times, column, options, findings)
    return rows.loc[times.index], times.reset_index(drop=True)


def _from_start(
    times: pd.Series, column: pd.Series, options: ReadingOptions, findings: list[str]
) -> pd.Series:
    """Return the times from `since` on; `since` is written like the cells of the column."""
    if options.since is None:
        return times
    start = read_time(options.since, column, options.na_values)
    if start is None:
        kind = "number" if pd.api.types.is_numeric_dtype(times.dtype) else "date"
        example = str(column.dropna().iloc[-1])
        raise DatasetError(
            f"since must be a {kind} like those of {options.time!r}, such as {example!r}, got "
            f"{options.since!r} (on the command line: --since)."
        )
    later = times[times >= start]
    if len(later) < 2:
        raise DatasetError(
            f"since={options.since!r} leaves {len(later)} of {len(times)} rows, but at least 2 are "
            f"needed. Pass an earlier value (on the command line: --since); {options.time!r} ends "
            f"with {times.iloc[-1]}."
        )
    findings.append(f"{len(times) - len(later)} rows before {options.since} are left out")
    return later
