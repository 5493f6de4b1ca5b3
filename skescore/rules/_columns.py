"""Rows as rules see them: one column at a time, whatever container they came in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from skescore._text import listed


class Table:
    """Uniform access to an array or data frame.

    Parameters
    ----------
    X : array-like, pandas or polars DataFrame of shape (n_rows, n_features)
        The rows. Columns of a frame are found by name, so their order does not matter and further
        columns are ignored; columns of an array, or of a frame whose columns are only numbered,
        are taken by position.
    names : sequence of str
        The feature names that the rules were made with.

    Raises
    ------
    TypeError
        If X is sparse.
    ValueError
        If X is not two-dimensional, or columns are missing, ambiguous or too many.
    """

    def __init__(self, X: Any, names: Sequence[str]) -> None:
        self._names = names
        self._frame: Any = X if _is_frame(X) else None
        self._cache: dict[int, np.ndarray] = {}
        if self._frame is not None:
            found = [str(c) for c in self._frame.columns]
            known = set(found)
            missing = [n for n in names if n not in known]
            if not missing:
                self._position = _positions(names, found)
                self._n_rows = len(self._frame)
                return
            if any(isinstance(c, str) for c in self._frame.columns):
                raise ValueError(
                    f"X lacks the feature{'s' if len(missing) > 1 else ''} {listed(missing)} "
                    f"that the rules were made with; its columns are {listed(found)}."
                )
            self._frame = None  # numbered columns are no names: by position, then
        array = _as_array(X)
        if array.ndim != 2:
            raise ValueError(
                f"X must be two-dimensional (rows, features), got shape {array.shape}. "
                "Reshape one row with X.reshape(1, -1)."
            )
        if array.shape[1] != len(names):
            raise ValueError(
                f"X has {array.shape[1]} features, but the rules were made with "
                f"{len(names)}: {listed(names)}."
            )
        self._array = array
        self._n_rows = len(array)

    @classmethod
    def of(cls, X: Any, names: Sequence[str]) -> Table:
        """Make a table of rows; one that is a table already stays as it is."""
        return X if isinstance(X, Table) else cls(X, names)

    def __len__(self) -> int:
        return self._n_rows

    def column(self, feature: int) -> np.ndarray:
        """All values of one feature, as they came."""
        if self._frame is None:
            return self._checked(feature, self._array[:, feature])
        if feature not in self._cache:
            self._cache[feature] = self._checked(feature, self._series(feature))
        return self._cache[feature]

    def _series(self, feature: int) -> np.ndarray:
        at = self._position[feature]
        if not hasattr(self._frame, "iloc"):
            return np.asarray(self._frame[:, at].to_numpy())
        series = self._frame.iloc[:, at]
        values = np.asarray(series.to_numpy())
        if values.dtype.kind == "O":
            # The missing value of pandas' own types cannot be turned into a float.
            missing = series.isna().to_numpy()
            if missing.any():
                values = np.where(missing, np.nan, values)
        return values

    def _checked(self, feature: int, values: np.ndarray) -> np.ndarray:
        if values.dtype.kind not in "biufOUT":
            raise ValueError(
                f"Rules know numbers and labels, but X holds {values.dtype} in feature "
                f"{self._names[feature]!r}. Convert that column to numbers or text."
            )
        return values

    def values(self, feature: int, rows: slice) -> np.ndarray:
        """Some values of one feature, as they came."""
        return self.column(feature)[rows]

    def numbers(self, feature: int, rows: slice) -> np.ndarray:
        """Some values of one feature as contiguous floats."""
        values = self.column(feature)[rows]
        try:
            return np.ascontiguousarray(values, dtype=float)
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"The rules compare feature {self._names[feature]!r} with numbers, but X holds "
                f"{values.dtype} there: {error}. Convert that column to numbers."
            ) from error

    def matrix(self, rows: np.ndarray, features: Sequence[int]) -> np.ndarray:
        """Some rows as one float matrix, NaN in all features but the given ones."""
        result = np.full((len(rows), len(self._names)), np.nan)
        for feature in features:
            result[:, feature] = self.numbers(feature, slice(None))[rows]
        return result


def _is_frame(X: Any) -> bool:
    return hasattr(X, "columns") and (hasattr(X, "iloc") or hasattr(X, "get_column"))


def _as_array(X: Any) -> np.ndarray:
    if hasattr(X, "toarray"):
        raise TypeError("X is sparse, which rules cannot read: pass X.toarray().")
    array = np.asarray(X)
    if array.dtype.kind in "US" and not isinstance(X, np.ndarray):
        array = np.asarray(X, dtype=object)  # numbers among texts stay numbers
    return array


def _positions(names: Sequence[str], found: Sequence[str]) -> list[int]:
    """Where each name is; found twice, it would be anyone's guess."""
    place = {name: at for at, name in enumerate(found)}
    if len(place) < len(found):
        twice = [n for n in names if found.count(n) > 1]
        if twice:
            raise ValueError(
                f"X has more than one column {listed(twice)}: rename or drop all but one of each."
            )
    return [place[name] for name in names]
