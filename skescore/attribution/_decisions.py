"""Decisions of a model on the points between a row and its contrast, asked for in batches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

__all__ = ["Crossroads", "as_decide"]


def as_decide(model: Any) -> Callable[[Any], NDArray[Any]]:
    """Give the function that answers rows with decisions.

    Parameters
    ----------
    model : estimator or callable
        A fitted classifier, or a function of rows that gives labels, or one column of scores per
        class.

    Returns
    -------
    callable
        From rows to a vector of labels.

    Raises
    ------
    TypeError
        If there is nothing to ask, or it is a regressor.
    """
    ask = getattr(model, "predict", model)
    if isinstance(model, type) or not callable(ask):
        raise TypeError(
            f"model must be a Formula, a fitted classifier or a function of rows, got {model!r}. "
            "Pass model.predict, or the instance rather than its class."
        )
    if getattr(model, "_estimator_type", None) == "regressor" or _is_regressor(model):
        raise TypeError(
            f"model must decide between classes, got the regressor {model!r}. Pass a function that "
            "does: lambda X: model.predict(X) > threshold."
        )

    def decide(rows: Any) -> NDArray[Any]:
        answers = np.asarray(ask(rows))
        if answers.ndim == 2 and answers.shape[1] > 1 and ask is model:
            answers = _finite(answers).argmax(axis=1)
        answers = answers.reshape(-1) if answers.shape[1:] == (1,) else answers
        if answers.shape != (len(rows),):
            raise ValueError(
                f"model must answer {len(rows)} rows with as many labels, got an array of shape "
                f"{answers.shape!r}. Models of several outputs are explained one at a time."
            )
        if answers.dtype.kind == "f":
            whole = _finite(answers) == np.round(answers)
            if not whole.all():
                raise ValueError(
                    f"model must answer with labels, got {float(answers[~whole][0])!r}. Of scores "
                    "take the decision: lambda X: scores(X) > 0.5."
                )
        return answers

    return decide


def _is_regressor(model: Any) -> bool:
    from sklearn.base import is_regressor

    if not hasattr(model, "__sklearn_tags__"):
        return False
    try:
        return bool(is_regressor(model))
    except (AttributeError, TypeError):  # tags that are not complete tell nothing
        return False


def _finite(answers: NDArray[Any]) -> NDArray[Any]:
    if answers.dtype.kind == "f" and not np.isfinite(answers).all():
        raise ValueError(
            "model must answer every row with a label, got NaN or infinity. Leave out the rows it "
            "cannot answer."
        )
    return answers


class Crossroads:
    """The points on the way from rows to their contrasts, and what the model decides there.

    Use it to ask "what if exactly these features had the contrast's values?".

    Parameters
    ----------
    model : estimator or callable
        What decides.
    X : array-like or DataFrame, shape (n_rows, n_features)
        The rows.
    contrast : array-like or DataFrame, optional
        One row for all, or one for each. Rows of zeros and ones have their opposites if not given.
    max_batch : int
        Points that are asked for at once, at most.

    Attributes
    ----------
    differs : ndarray of bool, shape (n_rows, n_features)
        Where a row and its contrast are not the same.
    n_queries : int
        Points that the model was asked about.
    """

    def __init__(self, model: Any, X: Any, contrast: Any, max_batch: int) -> None:
        self._decide = as_decide(model)
        self._max_batch = max_batch
        self.n_queries = 0
        rows, others = _ends(X, contrast)
        self.n_rows, self.n_features = rows.shape
        self._shared = len(others) < self.n_rows
        both: Any
        if isinstance(rows, pd.DataFrame):
            both = pd.concat([rows, others], ignore_index=True)
            columns = [both.iloc[:, j] for j in range(self.n_features)]
        else:
            both = np.concatenate([rows, others])
            columns = list(both.T)
        self._both = both
        codes = [pd.factorize(column, use_na_sentinel=False)[0] for column in columns]
        self._codes = np.array(codes, dtype=np.int64).reshape(self.n_features, len(both)).T
        self.differs = self._codes[: self.n_rows] != self._codes[self._contrast_of()]
        self._own: NDArray[Any] | None = None

    def _contrast_of(self) -> NDArray[np.int64]:
        places = np.zeros(self.n_rows) if self._shared else np.arange(self.n_rows)
        return (self.n_rows + places).astype(np.int64)

    def _points(self, indices: NDArray[np.int64]) -> Any:
        """Rows whose every column has the value that stands at an index."""
        if not isinstance(self._both, pd.DataFrame):
            return self._both[indices, np.arange(self.n_features)]
        columns = [
            pd.Series(self._both.iloc[:, j].array.take(indices[:, j]))
            for j in range(self.n_features)
        ]
        points = pd.concat(columns, axis=1)
        points.columns = self._both.columns
        return points

    def _ask(self, indices: NDArray[np.int64]) -> NDArray[Any]:
        answers = []
        for start in range(0, len(indices), self._max_batch):
            part = indices[start : start + self._max_batch]
            answers.append(self._decide(self._points(part)))
            self.n_queries += len(part)
        return np.concatenate(answers)

    @property
    def decisions(self) -> NDArray[Any]:
        """What the model decides on the rows themselves."""
        if self._own is None:
            own = np.repeat(np.arange(self.n_rows)[:, None], self.n_features, axis=1)
            self._own = self._ask(own)
        return self._own

    def changes(self, places: NDArray[np.int64], flipped: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Tell whether flips change decisions.

        Parameters
        ----------
        places : ndarray of int, shape (n,)
            Numbers of the rows.
        flipped : ndarray of bool, shape (n, n_features)
            Which features take the contrast's value.

        Returns
        -------
        ndarray of bool, shape (n,)
            Whether the decision differs from that on the row.
        """
        contrast = self._contrast_of()
        changed = np.empty(len(places), dtype=np.bool_)
        own = self.decisions
        # In parts, since the points of a part are alive at the same time.
        for start in range(0, len(places), self._max_batch):
            part = slice(start, start + self._max_batch)
            at = places[part, None]
            indices = np.where(flipped[part], contrast[at], at)
            changed[part] = self._ask(indices) != own[places[part]]
        return changed

    def two_valued(self) -> NDArray[np.int64]:
        """Columns that take two values among all rows and contrasts.

        Returns
        -------
        ndarray of int
            Their numbers; empty if some column takes more than two.
        """
        largest = self._codes.max(axis=0, initial=0)
        return np.flatnonzero(largest == 1) if (largest <= 1).all() else np.array([], dtype=int)

    def table(self, columns: NDArray[np.int64]) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """Ask for all combinations of the values of two-valued columns.

        Parameters
        ----------
        columns : ndarray of int
            What `two_valued` gives.

        Returns
        -------
        table : ndarray, shape (2**len(columns),)
            Decisions; entry k has the value of the second kind in column i if bit i of k is 1.
        codes : ndarray of int, shape (n_rows,)
            The entry that each row is.
        """
        n_points = 1 << len(columns)
        indices = np.zeros((n_points, self.n_features), dtype=np.int64)
        for bit, column in enumerate(columns):
            second = int(self._codes[:, column].argmax())  # codes count from 0: the first is at 0
            indices[:, column] = np.where(np.arange(n_points) >> bit & 1, second, 0)
        table = pd.factorize(self._ask(indices))[0]
        codes = self._codes[: self.n_rows, columns] @ (1 << np.arange(len(columns)))
        return table, codes


def _ends(X: Any, contrast: Any) -> tuple[Any, Any]:
    """The rows and what they are compared with, as two frames or two matrices."""
    if hasattr(X, "tocsr"):
        raise TypeError("X must be dense, got a sparse matrix. Pass X.toarray().")
    rows = X if isinstance(X, pd.DataFrame) else np.asarray(X)
    if rows.ndim != 2 or rows.shape[0] == 0:
        raise ValueError(
            f"X must be rows of features, got shape {rows.shape!r}. Pass one row as row[None, :]."
        )
    if contrast is None:
        return rows, _opposite(rows)
    if isinstance(rows, pd.DataFrame):
        return rows, _contrast_frame(rows, contrast)
    others = np.atleast_2d(np.asarray(contrast))
    if others.shape not in {(1, rows.shape[1]), rows.shape}:
        raise ValueError(
            f"contrast must be one row of {rows.shape[1]} features or {len(rows)} of them, got "
            f"shape {np.shape(contrast)!r}. Pass a typical row, or one per row of X."
        )
    if rows.dtype.kind not in "OUS" and others.dtype.kind not in "OUS":
        return rows, others
    return rows.astype(object), others.astype(object)


def _opposite(rows: Any) -> Any:
    values = rows.to_numpy() if isinstance(rows, pd.DataFrame) else rows
    wrong = values.dtype != np.bool_ and not np.isin(values, (0, 1)).all()
    if wrong:
        raise ValueError(
            "X must hold zeros and ones where no contrast is given, got other values. Pass "
            "contrast=: the row, or rows, whose values a flipped feature takes, such as "
            "X_train.median() or nearest_contrasts(model, X, X_train). BReX finds the nearest by "
            "itself with background=X_train."
        )
    if not isinstance(rows, pd.DataFrame):
        return ~rows if values.dtype == np.bool_ else 1 - rows
    columns = [rows.iloc[:, j] for j in range(rows.shape[1])]
    others = pd.concat([~c if c.dtype == np.bool_ else 1 - c for c in columns], axis=1)
    return others.set_axis(rows.columns, axis=1)


def _contrast_frame(rows: pd.DataFrame, contrast: Any) -> pd.DataFrame:
    if isinstance(contrast, pd.Series):
        contrast = contrast.to_frame().T
    if isinstance(contrast, pd.DataFrame):
        missing = [name for name in rows.columns if name not in set(contrast.columns)]
        if missing:
            raise ValueError(
                f"contrast must have the columns of X, got none named {missing[0]!r}. Pass rows of "
                "the same table."
            )
        others = contrast[list(rows.columns)].reset_index(drop=True)
    else:
        others = pd.DataFrame(np.atleast_2d(np.asarray(contrast)))
        if others.shape[1] == rows.shape[1]:
            others.columns = rows.columns
    if others.shape not in {(1, rows.shape[1]), rows.shape}:
        raise ValueError(
            f"contrast must be one row of {rows.shape[1]} features or {len(rows)} of them, got "
            f"shape {others.shape!r}. Pass a typical row, or one per row of X."
        )
    columns = [_like(others.iloc[:, j], rows.iloc[:, j]) for j in range(rows.shape[1])]
    return pd.concat(columns, axis=1)


def _like(other: pd.Series, column: pd.Series) -> pd.Series:
    """Values of a contrast in the type of the column that they go into."""
    complaint = (
        f"contrast must fit the columns of X, got {other.iloc[0]!r} for {column.name!r} of type "
        f"{column.dtype}. Pass values that the column can hold."
    )
    if isinstance(column.dtype, pd.CategoricalDtype):
        if not (other.isin(column.dtype.categories) | other.isna()).all():
            raise ValueError(complaint)
        return other.astype(column.dtype)
    try:
        if pd.api.types.is_numeric_dtype(column.dtype):
            # A median of whole numbers need not be whole.
            return pd.to_numeric(other)
        return other.astype(column.dtype)
    except (TypeError, ValueError) as error:
        raise ValueError(complaint) from error
