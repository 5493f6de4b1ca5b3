"""Contrasts of rows, and a model's decisions for rows that take some values of a contrast."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import is_regressor

from skescore._validation import as_pandas, check_integer, own_rows

__all__ = [
    "ContrastPairs",
    "as_table",
    "background_rows",
    "batches",
    "in_columns_of",
    "in_types_of",
    "nearest_contrasts",
    "nearest_rows",
    "select_values",
    "stacked",
    "typical_row",
    "with_threshold",
]

#: Maximum number of distances in memory.
_CELLS = 1 << 24


def label_function(model: Any) -> Callable[[Any], NDArray[Any]]:
    """Return a function that maps rows to labels; the model gets copies of the rows."""
    predict = getattr(model, "predict", model)
    if isinstance(model, type) or not callable(predict):
        raise TypeError(
            f"model must be a Formula, a fitted classifier or a function of rows, got {model!r}. "
            "Pass model.predict, or the instance rather than its class."
        )
    tagged = hasattr(model, "__sklearn_tags__")
    if getattr(model, "_estimator_type", None) == "regressor" or (tagged and is_regressor(model)):
        raise TypeError(
            f"model must decide between classes, got the regressor {model!r}. Pass a function that "
            "decides, such as lambda X: model.predict(X) > threshold."
        )

    def decide(rows: Any) -> NDArray[Any]:
        y_pred = np.asarray(predict(own_rows(rows)))
        if y_pred.ndim == 2 and y_pred.shape[1] > 1 and predict is model:
            y_pred = _finite(y_pred).argmax(axis=1)
        y_pred = y_pred.reshape(-1) if y_pred.shape[1:] == (1,) else y_pred
        if y_pred.shape != (len(rows),):
            raise ValueError(
                f"model must predict one label for each of {len(rows)} rows, got an array of shape "
                f"{y_pred.shape!r}. Explain the outputs of a model one at a time."
            )
        if _finite(y_pred).dtype.kind == "f":
            is_integer = y_pred == np.round(y_pred)
            if not is_integer.all():
                raise ValueError(
                    f"model must predict labels, got {float(y_pred[~is_integer][0])!r}. Convert "
                    "scores to decisions: lambda X: scores(X) > 0.5."
                )
        return y_pred

    return decide


def _finite(y_pred: NDArray[Any]) -> NDArray[Any]:
    kind = y_pred.dtype.kind
    if kind == "c" or (
        kind in "fO" and not (np.isfinite(y_pred) if kind == "f" else pd.notna(y_pred)).all()
    ):
        problem = "complex numbers" if kind == "c" else "None" if kind == "O" else "NaN or infinity"
        raise ValueError(
            f"model must predict a label for every row, got {problem}. Drop rows without a label."
        )
    return y_pred


def with_threshold(model: Any, threshold: float) -> Any:
    """Return a function that maps rows to class indices; uncertain rows get an additional index."""
    predict = getattr(model, "predict_proba", model)
    if not callable(predict):
        raise TypeError(
            f"threshold needs a model with predict_proba, got {model!r}. Pass a function that "
            "returns one column of probabilities per class, or no threshold."
        )

    def decide(rows: Any) -> NDArray[np.int64]:
        scores = np.asarray(predict(rows), dtype=float)
        if scores.ndim != 2 or not np.isfinite(scores).all():
            raise ValueError(
                f"threshold needs finite probabilities per class, got shape {scores.shape!r}. "
                "Omit it to compare labels."
            )
        best = scores.argmax(axis=1)
        return np.where(scores.max(axis=1) >= threshold, best, scores.shape[1])

    return decide


class ContrastPairs:
    """Rows with their contrasts, and decisions for rows whose features take the contrast's values.

    `contrast` is one row for all rows, or one per row. If it is None, the rows must hold zeros and
    ones, and the contrast has the opposite values. `differs` marks the values in which a row and
    its contrast differ, and `n_queries` counts the points that the model predicted.
    """

    def __init__(self, model: Any, X: Any, contrast: Any, max_batch: int) -> None:
        self._decide = label_function(model)
        self._max_batch = max_batch
        self.n_queries = 0
        rows = as_table(X)
        contrast_rows = _opposite(rows) if contrast is None else _contrasts_of(rows, contrast)
        self.n_rows, self.n_features = rows.shape
        self._both = stacked(rows, contrast_rows)
        #: Index of each row's contrast in the table of rows and contrasts.
        self._partner = self.n_rows + np.arange(self.n_rows) * (len(contrast_rows) == self.n_rows)
        columns = [
            self._both.iloc[:, j] if isinstance(self._both, pd.DataFrame) else self._both[:, j]
            for j in range(self.n_features)
        ]
        codes = [pd.factorize(column, use_na_sentinel=False)[0] for column in columns]
        self._codes = np.array(codes, dtype=np.int64).reshape(self.n_features, -1).T
        self.differs = self._codes[: self.n_rows] != self._codes[self._partner]
        self._own: NDArray[Any] | None = None

    def predict_mixed(self, indices: NDArray[np.int64]) -> NDArray[Any]:
        """Predict rows that take each value from the row or contrast with the given index."""
        y_pred = []
        for part in batches(len(indices), self._max_batch):
            y_pred.append(self._decide(self._points(indices[part])))
            self.n_queries += len(indices[part])
        return np.concatenate(y_pred)

    def _points(self, indices: NDArray[np.int64]) -> Any:
        if not isinstance(self._both, pd.DataFrame):
            return self._both[indices, np.arange(self.n_features)]
        columns = [
            pd.Series(self._both.iloc[:, j].array.take(indices[:, j]))
            for j in range(self.n_features)
        ]
        return pd.concat(columns, axis=1).set_axis(self._both.columns, axis=1)

    def decisions(self) -> NDArray[Any]:
        """Return the decisions of the model for the rows; the model is queried only once."""
        if self._own is None:
            row_index = np.repeat(np.arange(self.n_rows)[:, None], self.n_features, axis=1)
            self._own = self.predict_mixed(row_index)
        return self._own

    def changes(self, index: NDArray[np.int64], flipped: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return whether the flipped features change the decisions of rows.

        `index` has shape (n,), and `flipped` has shape (n, n_features).
        """
        result = np.empty(len(index), dtype=np.bool_)
        row_decisions = self.decisions()
        for part in batches(len(index), self._max_batch):  # limits the points in memory
            row_index = index[part, None]
            points = np.where(flipped[part], self._partner[row_index], row_index)
            result[part] = self.predict_mixed(points) != row_decisions[index[part]]
        return result

    def two_valued(self) -> NDArray[np.int64]:
        """Return the columns with two values; empty if any column has more than two.

        Values of the rows and of the contrasts count.
        """
        largest = self._codes.max(axis=0, initial=0)
        return np.flatnonzero(largest == 1) if (largest <= 1).all() else np.array([], dtype=int)

    def table(self, columns: NDArray[np.int64]) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """Return decisions for all combinations of two-valued columns, and the entry of each row.

        Entry k has the second value of column i if bit i of k is 1.
        """
        n_points = 1 << len(columns)
        indices = np.zeros((n_points, self.n_features), dtype=np.int64)
        for bit, column in enumerate(columns):
            second = int(self._codes[:, column].argmax())  # row 0 has the first value
            indices[:, column] = np.where(np.arange(n_points) >> bit & 1, second, 0)
        table = pd.factorize(self.predict_mixed(indices))[0]
        codes = self._codes[: self.n_rows, columns] @ (1 << np.arange(len(columns)))
        return table, codes


def as_table(X: Any) -> Any:
    """Return rows as a frame or a matrix."""
    X = as_pandas(X)
    rows = X if isinstance(X, pd.DataFrame) else np.asarray(X)
    if rows.ndim != 2 or 0 in rows.shape:
        raise ValueError(
            f"X must be rows of features, got shape {rows.shape!r}. Pass one row as row[None, :]."
        )
    return rows


def batches(n: int, length: int) -> Iterator[slice]:
    """Split the range of `n` rows into slices of a given length."""
    length = max(1, length)
    for start in range(0, n, length):
        yield slice(start, min(start + length, n))


def stacked(rows: Any, more_rows: Any) -> Any:
    """Concatenate two tables with the same columns."""
    if isinstance(rows, pd.DataFrame):
        return pd.concat([rows, more_rows], ignore_index=True)
    if rows.dtype.kind in "OUS" or more_rows.dtype.kind in "OUS":
        rows, more_rows = rows.astype(object), more_rows.astype(object)
    return np.concatenate([rows, more_rows])


def select_values(table: Any, index: NDArray[np.int64]) -> Any:
    """Select rows of a table; the index of a frame is reset."""
    if isinstance(table, pd.DataFrame):
        return table.iloc[index].reset_index(drop=True)
    return table[index]


def in_columns_of(rows: Any, frame: Any, name: str) -> Any:
    """Convert further rows to the columns and the type of `rows`, a frame or an array."""
    frame = as_pandas(frame)
    if isinstance(frame, pd.Series) and isinstance(rows, pd.DataFrame):
        frame = frame.to_frame().T
    if not isinstance(rows, pd.DataFrame):
        return np.atleast_2d(np.asarray(frame))
    if isinstance(frame, pd.DataFrame):
        missing = [column for column in rows.columns if column not in set(frame.columns)]
        if missing:
            raise ValueError(
                f"{name} must have the columns of X, but {missing[0]!r} is missing. Pass rows of "
                "the same table."
            )
        return frame[list(rows.columns)].reset_index(drop=True)
    frame = pd.DataFrame(np.atleast_2d(np.asarray(frame)))
    same = frame.shape[1] == rows.shape[1]
    return frame.set_axis(rows.columns, axis=1) if same else frame


def _opposite(rows: Any) -> Any:
    values = rows.to_numpy() if isinstance(rows, pd.DataFrame) else rows
    if values.dtype != np.bool_ and not np.isin(values, (0, 1)).all():
        raise ValueError(
            "X must hold zeros and ones if contrast is None, got other values. Flipped features "
            "take the values of the contrast: pass one row, such as contrast=X_train.median(), or "
            "one per row of X, such as contrast=nearest_contrasts(model, X, X_train). With "
            "background=X_train, BReX finds the nearest contrasts itself."
        )
    if not isinstance(rows, pd.DataFrame):
        return ~rows if values.dtype == np.bool_ else 1 - rows
    columns = [rows.iloc[:, j] for j in range(rows.shape[1])]
    opposite = pd.concat([~c if c.dtype == np.bool_ else 1 - c for c in columns], axis=1)
    return opposite.set_axis(rows.columns, axis=1)


def _contrasts_of(rows: Any, contrast: Any) -> Any:
    contrast_rows = in_columns_of(rows, contrast, "contrast")
    if contrast_rows.shape not in {(1, rows.shape[1]), rows.shape}:
        raise ValueError(
            f"contrast must be one row of {rows.shape[1]} features or {len(rows)} of them, got "
            f"shape {np.shape(contrast)!r}. Pass a typical row, or one per row of X."
        )
    return in_types_of(rows, contrast_rows, "contrast")


def in_types_of(rows: Any, frame: Any, name: str) -> Any:
    """Convert a frame to the column types of `rows`, if these are a frame."""
    if not isinstance(rows, pd.DataFrame):
        return frame
    columns = [_like(frame.iloc[:, j], rows.iloc[:, j], name) for j in range(rows.shape[1])]
    return pd.concat(columns, axis=1)


def _like(other: pd.Series, column: pd.Series, name: str) -> pd.Series:
    """Convert a column of `name` to the type of the same column of X."""
    dtype, fits = column.dtype, other.isna()
    is_number, cause = pd.api.types.is_numeric_dtype(dtype), None
    try:
        if not isinstance(dtype, pd.CategoricalDtype):
            # Fractions are kept, because the median of integers may be fractional.
            return pd.to_numeric(other) if is_number else other.astype(dtype)
        fits |= other.isin(dtype.categories)
        if fits.all():
            return other.astype(dtype)
    except (TypeError, ValueError) as error:
        fits, cause = fits | (is_number & pd.to_numeric(other, errors="coerce").notna()), error
    value = other.iloc[int(fits.to_numpy().argmin())]
    raise ValueError(
        f"{name} must fit the columns of X, got {value!r} for {column.name!r} of type {dtype}. "
        "Pass values that the column can hold."
    ) from cause


def typical_row(background: Any, how: str) -> Any:
    """Return the mean or median of each numeric column, and the mode of the others or of all."""
    is_frame = isinstance(background, pd.DataFrame)
    frame = background if is_frame else pd.DataFrame(np.asarray(background))
    values = {}
    for position, name in enumerate(frame.columns):
        column = frame.iloc[:, position]
        is_numeric = pd.api.types.is_numeric_dtype(column.dtype)
        if how != "mode" and is_numeric and not pd.api.types.is_bool_dtype(column.dtype):
            values[name] = [column.mean() if how == "mean" else column.median()]
        else:
            values[name] = [column.mode().iloc[0]]
    row = pd.DataFrame(values)
    return row if is_frame else row.to_numpy()[0]


def nearest_contrasts(model: Any, X: Any, background: Any, *, max_batch: int = 8192) -> Any:
    """Find for each row the nearest background row with another decision.

    Use it for the `contrast` of `responsibility`. The degrees of responsibility then show which
    features separate a row from the closest case with another decision. A typical row of a class,
    or a median, may have the same decision as the row, and then there may be nothing to explain.

    Parameters
    ----------
    model : Formula, estimator or callable
        The model, as in `responsibility`.
    X : array-like or DataFrame, shape (n_rows, n_features)
        The rows.
    background : array-like or DataFrame, shape (n_background, n_features)
        Candidates for contrasts, such as the training rows.
    max_batch : int, default=8192
        Largest number of rows per query of the model.

    Returns
    -------
    ndarray or DataFrame, shape (n_rows, n_features)
        One background row for each row; the first of several nearest ones.

    Raises
    ------
    ValueError
        If all background rows have the same decision as a row of `X`, or the columns do not match.

    Notes
    -----
    The distance is the sum over the columns. A numeric column adds the absolute difference, in
    standard deviations of the background. Any other column adds 1 if the values differ.

    Examples
    --------
    >>> from skescore.attribution import nearest_contrasts, responsibility
    >>> def approved(X):
    ...     return (X[:, 0] > 50) & (X[:, 1] < 10)
    >>> background = [[60, 5, 1], [45, 9, 2], [52, 12, 3], [20, 30, 4]]
    >>> contrast = nearest_contrasts(approved, [[58, 8, 1]], background)
    >>> contrast.tolist()
    [[45, 9, 2]]
    >>> responsibility(approved, [[58, 8, 1]], contrast=contrast).tolist()
    [[1.0, 0.0, 0.0]]
    """
    max_batch = check_integer("max_batch", max_batch, 1, remedy="8192 is the default.")
    all_rows, indices = nearest_rows(model, as_table(X), background, max_batch)
    return select_values(all_rows, indices[:, 0])


#: Largest number whose distances are computed; squares of larger numbers would overflow.
_LARGEST = 1e150


def nearest_rows(
    model: Any, X: Any, background: Any, max_batch: int, n_nearest: int = 1
) -> tuple[Any, NDArray[np.int64]]:
    """Find for each row the nearest background rows with another decision.

    Returns a table with the rows followed by the background, and the indices in this table of the
    nearest background rows. The indices have shape (n_rows, n_nearest), the nearest first; they are
    -1 if there are fewer such rows.
    """
    n_rows, candidates = len(X), background_rows(X, background)
    all_rows = stacked(X, candidates)
    decide = label_function(model)
    framed = isinstance(all_rows, pd.DataFrame)
    labels = np.concatenate(
        [
            decide(all_rows.iloc[part] if framed else all_rows[part])
            for part in batches(len(all_rows), max_batch)
        ]
    )
    columns = [
        all_rows.iloc[:, j] if framed else pd.Series(all_rows[:, j])
        for j in range(all_rows.shape[1])
    ]
    coded = []
    for column in columns:
        if pd.api.types.is_numeric_dtype(column.dtype):
            numbers = column.to_numpy(dtype=float, na_value=np.nan)
            observed = numbers[~np.isnan(numbers)]
            if np.abs(observed).max(initial=0.0) > _LARGEST:
                raise ValueError(
                    f"X and background must hold numbers up to {_LARGEST:g}, because distances "
                    "between larger ones would overflow, got "
                    f"{observed[np.abs(observed).argmax()].item()!r}."
                )
            observed = numbers[n_rows:][~np.isnan(numbers[n_rows:])]
            # A power of two keeps the squares of small numbers in range.
            exponent = np.frexp(np.abs(observed).max(initial=0.0))[1]
            deviation = np.std(np.ldexp(observed, -exponent)) if len(observed) else 0.0
            deviation = float(np.ldexp(deviation, exponent))
            coded.append((True, numbers / (deviation if deviation > 0 else 1.0)))
        else:
            coded.append((False, pd.factorize(column, use_na_sentinel=False)[0].astype(float)))
    nearest = np.full((n_rows, n_nearest), -1, dtype=np.int64)
    for part in batches(n_rows, _CELLS // len(candidates)):
        distance = np.zeros((part.stop - part.start, len(candidates)))
        for numeric, values in coded:
            differences = np.abs(values[part, None] - values[n_rows:])
            # A value that is missing in only one of two rows counts as a difference of 1.
            unknown = np.isnan(values[part, None]) != np.isnan(values[n_rows:])
            differences = np.where(np.isnan(differences), unknown, differences)
            distance += differences if numeric else differences > 0
        distance[labels[part, None] == labels[n_rows:]] = np.inf
        alone = np.isinf(distance).all(axis=1)
        if alone.any():
            row = part.start + int(np.argmax(alone))
            raise ValueError(
                f"background must have a row that the model labels differently than row {row} of "
                f"X, but all {len(candidates)} rows have the label {labels[[row]].tolist()[0]!r}. "
                "Pass more background rows, or a contrast."
            )
        order = np.argsort(distance, axis=1, kind="stable")[:, :n_nearest]
        is_finite = np.isfinite(np.take_along_axis(distance, order, axis=1))
        nearest[part, : order.shape[1]] = np.where(is_finite, n_rows + order, -1)
    return all_rows, nearest


def background_rows(rows: Any, background: Any) -> Any:
    """Return the background rows, at least one, with the columns of `rows`."""
    frame = in_columns_of(rows, background, "background")
    if frame.shape[1] != rows.shape[1]:
        raise ValueError(
            f"background must be rows of {rows.shape[1]} features, got shape {frame.shape!r}. "
            "Pass rows such as those the model was fitted on."
        )
    if len(frame) == 0:
        raise ValueError("background must have at least one row, got none. Pass training rows.")
    return frame
