"""What B-ReX is told: presets, parameters that override them, and rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from skescore._text import did_you_mean
from skescore.attribution._bits import as_whole
from skescore.attribution._contrasts import typical_row

__all__ = ["Settings", "is_signs", "one_of", "read_baseline", "read_rows", "read_settings"]

_MASKINGS = ("auto", "kleene", "supervaluation", "sampled", "baseline", "background")
_CONTEXTS = ("witness", "original")
_TYPICAL = ("mean", "median", "mode")
_MOST_BLOCKS = 8


class Settings(NamedTuple):
    """What a preset and the parameters that override it say.

    Parameters
    ----------
    n_blocks, n_iterations : int
        How features are cut, and how often.
    context : {"witness", "original"}
        Whether masks stay on while a block is refined.
    patience : int or None
        Passes without a new question after which a row is done.
    certified : bool
        Whether certificates count, and not the mean over passes.
    """

    n_blocks: int
    n_iterations: int
    context: str
    patience: int | None
    certified: bool


_PRESETS = {
    "certified": Settings(2, 30, "witness", 6, True),
    "paper": Settings(4, 1, "witness", None, False),
    "literal": Settings(4, 20, "original", None, False),
}


def one_of(name: str, value: object, allowed: tuple[str, ...]) -> None:
    """Check a choice.

    Parameters
    ----------
    name : str
        What the caller calls it.
    value : object
        What came.
    allowed : tuple of str
        What there is to choose from.

    Raises
    ------
    ValueError
        If it is none of these.
    """
    if value not in allowed:
        raise ValueError(
            f"{name} must be one of {', '.join(map(repr, allowed))}, got {value!r}. "
            f"{did_you_mean(value, allowed)}".rstrip()
        )


def read_settings(params: Mapping[str, Any]) -> Settings:
    """Check the parameters that need no rows.

    Parameters
    ----------
    params : mapping
        Parameters of the explainer.

    Returns
    -------
    Settings
        The preset with what overrides it.

    Raises
    ------
    ValueError
        If something is not allowed.
    """
    one_of("preset", params["preset"], tuple(_PRESETS))
    one_of("masking", params["masking"], _MASKINGS)
    preset = _PRESETS[params["preset"]]
    given = {
        name: params[name]
        for name in ("n_blocks", "n_iterations", "context", "patience")
        if params[name] is not None
    }
    for name, low in (("n_blocks", 2), ("n_iterations", 1), ("patience", 1)):
        if name in given:
            given[name] = as_whole(name, given[name], low=low, remedy="Leave it to the preset.")
    settings = preset._replace(**given)
    if settings.n_blocks > _MOST_BLOCKS:
        raise ValueError(
            f"n_blocks must be at most {_MOST_BLOCKS}, as all sets of blocks are tried, got "
            f"{settings.n_blocks!r}. Take a few blocks and more iterations."
        )
    one_of("context", settings.context, _CONTEXTS)
    if settings.certified and settings.context == "original":
        raise ValueError(
            "context must be 'witness' with preset='certified', got 'original', in which no mask "
            "certifies anything. Pass preset='literal'."
        )
    if params["max_queries"] is not None:
        as_whole("max_queries", params["max_queries"], low=1, remedy="None stands for no limit.")
    as_whole("max_batch", params["max_batch"], low=1, remedy="8192 is the default.")
    as_whole("n_completions", params["n_completions"], low=0, remedy="16 is the default.")
    threshold = params["threshold"]
    if threshold is not None and not 0 < threshold <= 1:
        raise ValueError(
            f"threshold must be above 0 and at most 1, got {threshold!r}. It is a probability; "
            "leave it out to compare labels."
        )
    return settings


def read_rows(X: Any) -> tuple[Any, tuple[str, ...]]:
    """Check rows.

    Parameters
    ----------
    X : array-like or DataFrame
        One row or many.

    Returns
    -------
    tuple of (array or DataFrame, tuple of str)
        The rows, and the names of their columns.

    Raises
    ------
    ValueError, TypeError
        If it is no table of rows.
    """
    if hasattr(X, "tocsr"):
        raise TypeError("X must be dense, got a sparse matrix. Pass X.toarray().")
    if hasattr(X, "to_pandas") and not isinstance(X, pd.DataFrame):
        X = X.to_pandas()
    if isinstance(X, pd.Series):
        raise TypeError("X must be rows, got a Series. Pass one row of a frame as X.iloc[[0]].")
    rows: Any = X if isinstance(X, pd.DataFrame) else np.asarray(X)
    if rows.ndim == 1 and len(rows):
        rows = rows[None, :]
    if rows.ndim != 2 or rows.shape[0] == 0 or rows.shape[1] == 0:
        raise ValueError(
            f"X must be rows of features, got shape {rows.shape!r}. Pass at least one row."
        )
    if isinstance(rows, pd.DataFrame):
        if not rows.columns.is_unique:
            twice = rows.columns[rows.columns.duplicated()][0]
            raise ValueError(f"X must name its columns apart, got {twice!r} twice. Rename one.")
        return rows.reset_index(drop=True), tuple(map(str, rows.columns))
    return rows, tuple(f"x{i + 1}" for i in range(rows.shape[1]))


def is_signs(rows: Any) -> bool:
    """Tell whether rows are of -1 and +1.

    Parameters
    ----------
    rows : array or DataFrame
        The rows.

    Returns
    -------
    bool
        Whether there is nothing else, and some -1.
    """
    values = rows.to_numpy() if isinstance(rows, pd.DataFrame) else rows
    return values.dtype.kind in "if" and bool(np.isin(values, (-1, 1)).all() and np.any(values < 0))


def read_baseline(params: Mapping[str, Any], n_features: int) -> Any:
    """Give the values of masked features.

    Parameters
    ----------
    params : mapping
        Parameters of the explainer.
    n_features : int
        How many are needed.

    Returns
    -------
    array-like or DataFrame
        One row.

    Raises
    ------
    ValueError
        If a word is unknown, or there is no background for it.
    """
    value = params["baseline"]
    if isinstance(value, str):
        one_of("baseline", value, _TYPICAL)
        if params["background"] is None:
            raise ValueError(
                f"background must be given for baseline={value!r}, got None. Pass some rows."
            )
        return typical_row(params["background"], value)
    return np.full(n_features, value) if np.ndim(value) == 0 else value
