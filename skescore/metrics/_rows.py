"""Rows as measures of predictions read them: labels, numbers or confidences, checked."""

from __future__ import annotations

import inspect
import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.exceptions import UndefinedMetricWarning

from skescore._text import listed
from skescore.metrics._arguments import as_numbers, row_weights

__all__ = [
    "Confidences",
    "Floats",
    "Labels",
    "Numbers",
    "check_undefined",
    "documented",
    "mean",
    "undefined_value",
]

Floats = NDArray[np.float64]
#: Confidences that some models give in single precision do not sum to 1 more closely.
_ROUNDING = 1e-4
_REMEDY = "Drop or fill such rows first."
#: Pairs of labels that need no word about which of them is the positive one.
_ONE_IS_POSITIVE = ({0, 1}, {-1, 1})


def documented(formula: Callable[..., float], shared: str) -> str:
    """Write the docstring of a measure: that of its formula, and what all of its kind share."""
    about, _, examples = inspect.cleandoc(formula.__doc__ or "").partition("Examples\n")
    return f"{about.strip()}\n{shared}\nExamples\n{examples}"


def check_undefined(undefined: float) -> float:
    """Return what stands for a missing value once it is a number."""
    if not isinstance(undefined, Real) or isinstance(undefined, bool | np.bool_):
        raise TypeError(f"undefined must be a number, NaN included, got {undefined!r}.")
    return float(undefined)


def undefined_value(undefined: float, why: str) -> float:
    """Return what stands for a missing value, and tell why there is none."""
    value = check_undefined(undefined)
    if math.isnan(value):
        warnings.warn(
            f"{why} Pass undefined=... to choose another value.",
            UndefinedMetricWarning,
            stacklevel=3,
        )
    return value


def mean(values: Floats, weights: Floats) -> float:
    """Average rows by what they weigh; too large a number is infinite."""
    with np.errstate(over="ignore"):
        return float(np.average(values, weights=weights))


@dataclass(frozen=True, eq=False)
class Labels:
    """True and answered labels of rows that weigh something.

    Attributes
    ----------
    truth, answers : ndarray of int
        Positions in `known`.
    known : list
        All labels that occur.
    weights : ndarray of float
        What each row weighs.
    """

    truth: NDArray[np.intp]
    answers: NDArray[np.intp]
    known: list[Any]
    weights: Floats

    @classmethod
    def of(cls, y_true: Any, y_pred: Any, sample_weight: Any) -> Labels:
        """Check labels of any type and number them."""
        truth, answers = _label_column("y_true", y_true), _label_column("y_pred", y_pred)
        weights = _weights(len(truth), len(answers), sample_weight, "y_pred")
        kept = weights > 0  # a row that weighs nothing must not count in any way
        truth, answers = truth[kept], answers[kept]
        kinds = [{isinstance(label, str) for label in pd.unique(side)} for side in (truth, answers)]
        if not kinds[0] & kinds[1]:
            raise ValueError(
                "y_true and y_pred must hold labels of one kind, got "
                f"{truth[0]!r} and {answers[0]!r}. Encode or decode one of them first."
            )
        codes, known = pd.factorize(np.concatenate([truth, answers]))
        return cls(codes[: len(truth)], codes[len(truth) :], list(known), weights[kept])

    @property
    def one_is_positive(self) -> bool:
        """Whether 1 is the positive label without a word about it."""
        return any(set(self.known) <= pair for pair in _ONE_IS_POSITIVE)

    def positive(self, pos_label: Any) -> int:
        """Position of the positive label; -1 if it does not occur."""
        if len(self.known) > 2:
            raise ValueError(
                "The measure is for two classes, but y_true and y_pred hold "
                f"{len(self.known)} labels: {listed(self.known)}. Compare one class with all "
                "others, as in y == label, or choose a measure for many classes."
            )
        if pos_label is None:
            if not self.one_is_positive:
                raise ValueError(
                    "pos_label must say which label is the positive one unless labels are 0 and 1, "
                    f"or -1 and 1; got None with the labels {listed(self.known)}."
                )
            pos_label = 1
        if pos_label in self.known:
            return self.known.index(pos_label)
        # A lone label of the same kind may be the negative one.
        if len(self.known) == 2 or isinstance(pos_label, str) != isinstance(self.known[0], str):
            raise ValueError(
                f"pos_label must be one of the labels {listed(self.known)}, got {pos_label!r}."
            )
        return -1


@dataclass(frozen=True, eq=False)
class Numbers:
    """True and answered numbers of rows that weigh something.

    Attributes
    ----------
    truth, answers, weights : ndarray of float
        One entry per row.
    """

    truth: Floats
    answers: Floats
    weights: Floats

    @classmethod
    def of(cls, y_true: Any, y_pred: Any, sample_weight: Any) -> Numbers:
        """Check numbers."""
        truth, answers = _number_column("y_true", y_true), _number_column("y_pred", y_pred)
        weights = _weights(len(truth), len(answers), sample_weight, "y_pred")
        kept = weights > 0
        return cls(truth[kept], answers[kept], weights[kept])


@dataclass(frozen=True, eq=False)
class Confidences:
    """How sure a model is of the true class of rows that weigh something.

    Attributes
    ----------
    sure, weights : ndarray of float
        One entry per row.
    """

    sure: Floats
    weights: Floats

    @classmethod
    def of(cls, y_true: Any, y_prob: Any, labels: Any, sample_weight: Any) -> Confidences:
        """Check confidences and pick those of the true classes."""
        truth = _label_column("y_true", y_true)
        shares = as_numbers(
            "y_prob", y_prob, low=-_ROUNDING, high=1 + _ROUNDING,
            remedy="Pass what predict_proba gives.",
        )  # fmt: skip
        if shares.ndim != 2:
            raise ValueError(
                "y_prob must have one column per class, shape (n_rows, n_classes), got shape "
                f"{shares.shape}. Pass all columns that predict_proba gives."
            )
        weights = _weights(len(truth), len(shares), sample_weight, "y_prob")
        classes = _classes(truth, labels, shares.shape[1])
        sums = shares.sum(axis=1)
        wrong = np.flatnonzero(np.abs(sums - 1) > _ROUNDING)
        if len(wrong):
            raise ValueError(
                "Each row of y_prob must sum to 1, but row "
                f"{int(wrong[0])} sums to {float(sums[wrong[0]])!r}. Divide rows by their sums."
            )
        columns = pd.Index(classes, dtype=object).get_indexer(pd.Index(truth, dtype=object))
        if (columns < 0).any():
            raise ValueError(
                f"y_true holds the label {truth[columns < 0][0]!r}, which is not one of the "
                f"classes of y_prob, {listed(classes)}. Was y encoded otherwise than for the "
                "model, or does the model not know the class?"
            )
        sure = np.clip(shares[np.arange(len(truth)), columns], 0.0, 1.0)
        kept = weights > 0
        return cls(sure[kept], weights[kept])


def _classes(truth: NDArray[Any], labels: Any, n_columns: int) -> list[Any]:
    """What the columns of confidences stand for."""
    if labels is None:
        found = list(pd.unique(truth))
        try:
            classes = sorted(found)
        except TypeError:
            raise ValueError(
                "labels must name the columns of y_prob where labels cannot be sorted, got None "
                f"with {listed(found)}. Pass model.classes_."
            ) from None
        meaning = "y_true has so many labels"
    else:
        classes = list(_label_column("labels", labels))
        meaning = "labels names so many"
        if len(set(classes)) < len(classes):
            raise ValueError(f"labels must be different from each other, got {listed(classes)}.")
    if len(classes) != n_columns:
        raise ValueError(
            f"y_prob must have {len(classes)} columns, as {meaning}, got {n_columns}. Pass "
            "labels=model.classes_ to name the columns."
        )
    return classes


def _label_column(name: str, labels: Any) -> NDArray[Any]:
    """Labels as Python objects, which are equal where the labels are."""
    if np.ma.is_masked(labels):
        raise ValueError(f"{name} must have no masked entries. Fill or drop them first.")
    column = np.asarray(labels)
    if column.ndim != 1:
        raise ValueError(f"{name} must hold one label per row, got shape {column.shape}.")
    if not hasattr(labels, "dtype"):
        # numpy would write the number of a mixed list as text, and hide that it is missing.
        column = np.empty(len(column), dtype=object)
        column[:] = list(labels)
    objects = np.asarray(column.tolist() if column.dtype != object else column, dtype=object)
    missing = np.flatnonzero(pd.isna(objects))
    if len(missing):
        row = int(missing[0])
        raise ValueError(
            f"{name} must have no missing labels, got {objects[row]!r} in row {row}. {_REMEDY}"
        )
    for label in pd.unique(objects):
        if isinstance(label, float | np.floating) and not label.is_integer():
            raise ValueError(
                f"{name} must hold labels, but {label!r} is not a whole number. Choose a measure "
                "of regression, or turn numbers into labels first."
            )
    return objects


def _number_column(name: str, values: Any) -> Floats:
    array = as_numbers(name, values, remedy=_REMEDY)
    if array.ndim != 1:
        raise ValueError(
            f"{name} must hold one number per row, got shape {array.shape}. Measure the columns "
            "of several targets one by one."
        )
    if (array == -np.inf).any():
        raise ValueError(f"{name} must be finite, got -inf. {_REMEDY}")
    return array


def _weights(n_true: int, n_other: int, sample_weight: Any, other: str) -> Floats:
    if n_true != n_other:
        raise ValueError(
            f"y_true and {other} must have as many rows, got {n_true} and {n_other}. Pass the "
            "answers to the very rows of y_true."
        )
    if n_true == 0:
        raise ValueError("y_true must hold at least one row, got 0 rows.")
    weights = np.ones(n_true) if sample_weight is None else row_weights(sample_weight, n_true)
    if not weights.any():
        raise ValueError(
            f"sample_weight must hold a positive number, got {n_true} zeros. Pass None to weigh "
            "all rows alike."
        )
    with np.errstate(over="ignore"):
        total = weights.sum()
    if total == np.inf:
        raise ValueError("sample_weight must have a finite sum. Divide weights by the greatest.")
    return weights
