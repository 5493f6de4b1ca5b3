"""Checks of input and parameters, with errors that say what to do."""

from __future__ import annotations

from collections.abc import Container
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils.multiclass import check_classification_targets

from skescore._validation import python_value


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
        if hasattr(X, "iloc"):
            column = X.iloc[:, position]
        else:
            column = pd.Series(X.to_series(position).to_numpy())
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
            hint = " CART, REAL and Trepan read columns of names." if names else ""
            value = python_value(column.iloc[at])
            raise ValueError(
                f"{extractor} needs numbers, but column {name!r} holds "
                f"{value!r} in row {at} ({int(wrong.sum())} of {len(column)} rows "
                f"are no numbers). Encode the column as numbers or drop it.{hint}"
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
    """Return whether rows are an array in which scikit-learn's checks would find nothing to say.

    Parameters
    ----------
    X : object
        What a caller gave for rows.
    n_features : int, optional
        How many columns there must be; by default at least one.
    least : int, default=1
        How many rows there must be.

    Returns
    -------
    bool
        True for two-dimensional arrays of finite float64 of that shape, and for nothing else.
    """
    return (
        type(X) is np.ndarray
        and X.dtype == np.float64
        and X.ndim == 2
        and len(X) >= least
        and (X.shape[1] > 0 if n_features is None else X.shape[1] == n_features)
        and bool(np.isfinite(X).all())
    )


def finite_answers(answers: np.ndarray) -> np.ndarray:
    """Make floats of the black box's numbers; raises if some are none."""
    try:
        if answers.dtype.kind in "US":
            raise TypeError("text")  # NumPy would read "1" as a number
        numbers = np.asarray(answers, dtype=float)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"The black box is a regressor but predicted {python_value(answers[0])!r}, which is no "
            "number. Is it a classifier? Then wrap its function in CallableClassifier."
        ) from error
    bad = ~np.isfinite(numbers)
    if bad.any():
        at = int(np.flatnonzero(bad)[0])
        raise ValueError(
            f"The black box answered {numbers[at]} for row {at} ({int(bad.sum())} of "
            f"{len(numbers)} rows). Rules need finite numbers; mend the black box or leave out "
            "those rows."
        )
    return numbers


def observed_classes(answers: np.ndarray, y: np.ndarray | None) -> np.ndarray:
    """Sort out the classes of a black box that does not declare them."""
    try:
        if answers.dtype.kind == "f" and not np.isfinite(answers).all():
            raise ValueError("some answers are not finite")
        check_classification_targets(answers)
        if y is None:
            return np.unique(answers)
        if _is_text(y) != _is_text(answers):
            raise ValueError(f"y holds labels such as {python_value(y[0])!r}")
        return np.unique(np.concatenate([y, answers]))
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"The black box predicted {python_value(answers[0])!r}, which does not do as a class "
            f"label: {error}. It must answer one label per row, of the same kind as y; a "
            "CallableClassifier whose function gives scores needs classes=[...] and one column of "
            "scores per class."
        ) from error


def _is_text(labels: np.ndarray) -> bool:
    return labels.dtype.kind in "US" or isinstance(labels[0], str)


def encode_labels(answers: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Index of each label among the classes; raises for a label that is not there."""
    numbered = answers.dtype.kind in "iu" and np.array_equal(classes, np.arange(len(classes)))
    if numbered and answers.min(initial=0) >= 0 and answers.max(initial=0) < len(classes):
        return answers.astype(np.intp, copy=False)  # they are indices already
    if answers.dtype.kind == classes.dtype.kind == "U":
        place = {label: code for code, label in enumerate(classes.tolist())}
        codes = np.array([place.get(label, -1) for label in answers.tolist()], dtype=np.intp)
    else:
        codes = pd.Index(classes).get_indexer(pd.Index(answers))
    if (codes < 0).any():
        at = int(np.flatnonzero(codes < 0)[0])
        raise ValueError(
            f"The black box answered {python_value(answers[at])!r}, which is not among the classes "
            f"{classes.tolist()}. If it is a CallableClassifier, pass classes=[...] with all its "
            "labels."
        )
    return codes.astype(np.intp)
