"""What rows and targets can be worked on, with errors that name the column and say what to do."""

from __future__ import annotations

from collections.abc import Container
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np
import pandas as pd

from skescore._validation import python_value


def frame_column(X: Any, position: int) -> pd.Series:
    """One column of a pandas or polars frame."""
    if hasattr(X, "iloc"):
        return X.iloc[:, position]
    column = X.to_series(position)
    return pd.Series(column.to_numpy() if column.dtype.is_numeric() else column.to_list())


def check_columns(X: Any, extractor: str, categorical: Container[int] = ()) -> None:
    """Raise if a data frame has columns that no extractor can work on.

    The columns at the positions `categorical` need not hold numbers. Arrays are left to
    scikit-learn's own checks, which name the row rather than the column.
    """
    if not (hasattr(X, "columns") and hasattr(X, "shape")):
        return
    names = [str(c) for c in X.columns]
    twice = sorted({n for n in names if names.count(n) > 1}) if len(set(names)) < len(names) else []
    if twice:
        raise ValueError(
            f"X has more than one column named {', '.join(map(repr, twice))}, so rules could not "
            "say which is meant. Rename or drop them."
        )
    for position, name in enumerate(names):
        column = frame_column(X, position)
        if position in categorical:
            check_complete(column, name)
        else:
            _check_column(column, name, extractor)


def _check_column(column: pd.Series, name: str, extractor: str) -> None:
    if not pd.api.types.is_numeric_dtype(column.dtype):
        wrong = [not isinstance(v, Real | Decimal) for v in column] & column.notna().to_numpy()
        if wrong.any():
            at = int(np.flatnonzero(wrong)[0])
            names = wrong.all() and pd.to_numeric(column, errors="coerce").isna().all()
            hint = " CART, REAL and Trepan read categorical columns." if names else ""
            value = python_value(column.iloc[at])
            raise ValueError(
                f"{extractor} needs numbers, but column {name!r} holds {value!r} in row {at} "
                f"({int(wrong.sum())} of {len(column)} rows are no numbers). Encode the column as "
                f"numbers or drop it.{hint}"
            )
    check_complete(column, name)
    values = column.to_numpy(dtype=float)
    infinite = np.isinf(values)
    if infinite.any():
        at = int(np.flatnonzero(infinite)[0])
        raise ValueError(
            f"Input X contains infinity: column {name!r} holds {values[at]} in row {at}. Rules "
            "need finite numbers; replace or drop such rows."
        )


def check_complete(column: pd.Series, name: str) -> None:
    """Raise if a column lacks a value somewhere."""
    missing = column.isna().to_numpy()
    if missing.any():
        raise ValueError(
            f"Input X contains NaN: column {name!r} lacks a value in {int(missing.sum())} of "
            f"{len(column)} rows, the first in row {int(np.flatnonzero(missing)[0])}. A missing "
            "value satisfies no rule, so fill the gaps (SimpleImputer) or drop those rows."
        )


def check_labels(y: np.ndarray) -> None:
    """Raise if class labels lack a value or cannot be told apart in one order."""
    if y.dtype != object:
        return
    missing = np.flatnonzero(pd.isna(y))
    if len(missing):
        raise ValueError(
            f"y lacks a label in {len(missing)} of {len(y)} rows, the first in row {missing[0]} "
            f"({y[missing[0]]!r}). Drop those rows, or give them a label of their own."
        )
    kinds = sorted({type(label).__name__ for label in y if not isinstance(label, Real)})
    if len(kinds) > 1 or (kinds and any(isinstance(label, Real) for label in y)):
        raise ValueError(
            f"y mixes labels of different types ({', '.join(kinds)} and numbers or others). Make "
            "them all text, or all numbers."
        )


def is_plain(X: Any, n_features: int | None = None, *, least: int = 1) -> bool:
    """Return whether rows are an array in which scikit-learn's checks would find nothing to say."""
    return (
        type(X) is np.ndarray
        and X.dtype == np.float64
        and X.ndim == 2
        and len(X) >= least
        and (X.shape[1] > 0 if n_features is None else X.shape[1] == n_features)
        and bool(np.isfinite(X).all())
    )
