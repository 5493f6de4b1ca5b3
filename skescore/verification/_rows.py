"""Rows as numbers: codes of categories, NaN for missing values, and kinds of columns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from skescore.extractors import CategoryEncoder, RowGenerator
from skescore.rules import convert_rows


class RowCodes:
    """Converter of rows to a matrix of numbers and back.

    Parameters
    ----------
    X : array-like or DataFrame of shape (n_rows, n_features)
        Rows in the container that the black box accepts.
    code_columns : iterable of int, default=()
        Numeric columns that become categories because conditions compare them with listed values.
    names : sequence of str, optional
        Names for the columns of an array.

    Attributes
    ----------
    matrix : ndarray of shape (n_rows, n_features)
        The rows, with the index of the value for categories and NaN for missing values.
    categories : dict of int to tuple
        Values of the categorical columns.
    is_whole : ndarray of bool, shape (n_features,)
        Columns of numbers without fractions.
    lower, upper : ndarray of shape (n_features,)
        Smallest and largest observed value; 0 for a column without values.
    names : list of str
        Names of the columns.

    Examples
    --------
    >>> import pandas as pd
    >>> codes = RowCodes(pd.DataFrame({"color": ["red", "blue"], "size": [1.5, None]}))
    >>> codes.matrix.tolist(), codes.categories
    ([[1.0, 1.5], [0.0, nan]], {0: ('blue', 'red')})
    >>> codes.decode(codes.matrix)["color"].tolist()
    ['red', 'blue']
    """

    def __init__(
        self, X: Any, code_columns: Iterable[int] = (), names: Sequence[str] | None = None
    ) -> None:
        X = convert_rows(X)
        self.rows = X if hasattr(X, "columns") else np.asarray(X)
        self._encoder = CategoryEncoder(self.rows)
        matrix = np.array(self._encode(self.rows))
        if matrix.ndim != 2 or not len(matrix):
            raise ValueError(
                f"X must have at least one row and two dimensions, got shape {matrix.shape}."
            )
        if np.isinf(matrix).any():
            raise ValueError("X must be finite or missing, got infinity. Replace it by NaN.")
        if hasattr(self.rows, "columns"):
            names = [str(name) for name in self.rows.columns]
        elif names is None or len(names) != matrix.shape[1]:
            names = [f"x{j}" for j in range(matrix.shape[1])]
        self.names = list(names)
        self.categories = dict(self._encoder.categories)
        self._numeric_codes: dict[int, np.ndarray] = {}
        for j in sorted(set(code_columns) - self.categories.keys()):
            values = np.unique(matrix[~np.isnan(matrix[:, j]), j])
            self._numeric_codes[j] = values
            self.categories[j] = tuple(values.tolist())
            is_observed = ~np.isnan(matrix[:, j])
            matrix[is_observed, j] = np.searchsorted(values, matrix[is_observed, j])
        self.matrix = matrix
        kinds = RowGenerator(matrix, self.categories, 0).kinds
        self.lower, self.upper = np.nan_to_num(kinds.lower), np.nan_to_num(kinds.upper)
        # Where all numbers are beyond 2^53, all are integers, whose counts would be rounded.
        self.is_whole = kinds.is_whole & (self.lower <= 2.0**53) & (self.upper >= -(2.0**53))

    def _encode(self, rows: Any) -> np.ndarray:
        if hasattr(rows, "columns"):
            return np.asarray(self._encoder.codes(rows).to_numpy(dtype=float))
        return np.asarray(rows, dtype=float)

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return int(self.matrix.shape[1])

    def decode(self, points: np.ndarray) -> Any:
        """Convert points to rows in the container of the original rows.

        Parameters
        ----------
        points : ndarray of shape (n_points, n_features)
            Points with codes and NaN.

        Returns
        -------
        DataFrame or ndarray
            The rows.
        """
        points = np.array(points, dtype=float)
        for j, values in self._numeric_codes.items():
            is_observed = ~np.isnan(points[:, j])
            points[is_observed, j] = values[points[is_observed, j].astype(np.intp)]
        return self._encoder.decode(points) if hasattr(self.rows, "columns") else points

    def encode(self, rows: Any) -> np.ndarray:
        """Convert rows in the container of the original rows to points.

        Parameters
        ----------
        rows : DataFrame or ndarray of shape (n_rows, n_features)
            Rows whose categories occur in the original rows.

        Returns
        -------
        ndarray of shape (n_rows, n_features)
            Points with codes, and NaN for missing values and unknown categories.
        """
        matrix = np.array(self._encode(rows))
        for j, values in self._numeric_codes.items():
            position = np.clip(np.searchsorted(values, matrix[:, j]), 0, len(values) - 1)
            matrix[:, j] = np.where(values[position] == matrix[:, j], position, np.nan)
        return matrix

    def values_of(self, point: np.ndarray) -> dict[str, Any]:
        """Return the values of a point by column name; None for missing values."""
        result: dict[str, Any] = {}
        for j, name in enumerate(self.names):
            value = float(point[j])
            if np.isnan(value):
                result[name] = None
            elif j in self.categories:
                result[name] = self.categories[j][int(value)]
            else:
                result[name] = int(value) if self.is_whole[j] else value
        return result


def column_positions(feature_names: Sequence[str], column_names: Sequence[str]) -> list[int]:
    """Return the column of each feature: by name if all names occur, else by position.

    Raises
    ------
    ValueError
        If neither is possible.
    """
    position_of = {name: j for j, name in enumerate(column_names)}
    underscored = {name.replace(" ", "_"): j for name, j in position_of.items()}
    for positions in (position_of, underscored):
        if all(name in positions for name in feature_names):
            return [positions[name] for name in feature_names]
    if len(feature_names) == len(column_names):
        return list(range(len(column_names)))
    absent_names = [name for name in feature_names if name not in position_of]
    raise ValueError(
        f"X lacks the columns {absent_names} of the rules or the model. "
        "Pass the columns that both use."
    )
