"""Checked rows for metrics of predictions, and a decorator that turns formulas into metrics.

There are four kinds: labels, outcomes of two classes, numbers, and class probabilities. Rows with
weight 0 are dropped.
"""

from __future__ import annotations

import functools
import inspect
import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.exceptions import UndefinedMetricWarning

from skescore._text import listed
from skescore._validation import as_numbers, check_number_or_nan, row_weights

__all__ = ["Floats", "Labels", "Numbers", "Outcomes", "Probabilities", "metric_of", "ratio"]

Floats = NDArray[np.float64]
#: Tolerance of the sum of probabilities, for models in single precision.
_ROUNDING = 1e-4
_REMEDY = "Drop or fill such rows first."
#: Pairs of labels whose positive label is 1 by default.
_ONE_IS_POSITIVE = ({0, 1}, {-1, 1})


def metric_of(
    rows: type[Any], undefined_where: str = ""
) -> Callable[[Callable[..., float]], Callable[..., float]]:
    """Return a decorator that turns a formula of checked `rows`, which may be NaN, into a metric.

    The metric has the signature ``(y_true, y_pred, *, sample_weight, undefined, **options)``, with
    the options of the rows, such as ``pos_label``, and the options of the formula.
    """

    def decorate(formula: Callable[..., float]) -> Callable[..., float]:
        reading = _options(rows.of)

        def metric(
            y_true: Any,
            y_pred: Any,
            *,
            sample_weight: Any = None,
            undefined: float = math.nan,
            **options: Any,
        ) -> float:
            otherwise = check_number_or_nan("undefined", undefined)
            reading_options = {name: options.pop(name) for name in reading if name in options}
            checked = rows.of(y_true, y_pred, sample_weight, **reading_options)
            value = float(formula(checked, **options))
            if not math.isnan(value):
                return value
            if math.isnan(otherwise):
                where = undefined_where or f"at {checked}"
                warnings.warn(
                    f"{formula.__name__} is undefined {where}. Pass undefined=... to choose "
                    "another value.",
                    UndefinedMetricWarning,
                    stacklevel=2,
                )
            return otherwise

        functools.update_wrapper(metric, formula)
        del metric.__wrapped__  # type: ignore[attr-defined]  # has the signature of the formula
        shared = list(inspect.signature(metric).parameters.values())[:-1]
        option_parameters = [*reading.values(), *_options(formula).values()]
        metric.__signature__ = inspect.Signature([*shared, *option_parameters])  # type: ignore[attr-defined]
        return metric

    return decorate


def _options(function: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    parameters = inspect.signature(function).parameters
    return {k: p for k, p in parameters.items() if p.kind is inspect.Parameter.KEYWORD_ONLY}


def ratio(part: float, total: float) -> float:
    """Divide; NaN if `total` is 0."""
    return part / total if total else math.nan


@dataclass(frozen=True, eq=False)
class Labels:
    """True and predicted labels of rows with a positive weight, as indices into `labels`."""

    y_true: NDArray[np.intp]
    y_pred: NDArray[np.intp]
    labels: list[Any]
    weights: Floats

    @classmethod
    def of(cls, y_true: Any, y_pred: Any, sample_weight: Any) -> Labels:
        """Check labels of any type and encode them."""
        true, predicted = _label_column("y_true", y_true), _label_column("y_pred", y_pred)
        weights = _weights(len(true), len(predicted), sample_weight, "y_pred")
        has_weight = weights > 0
        true, predicted = true[has_weight], predicted[has_weight]
        kinds = [{isinstance(label, str) for label in pd.unique(y)} for y in (true, predicted)]
        if not kinds[0] & kinds[1]:
            raise ValueError(
                "y_true and y_pred must hold labels of one type, got "
                f"{true[0]!r} and {predicted[0]!r}. Encode or decode one of them first."
            )
        codes, labels = pd.factorize(np.concatenate([true, predicted]))
        return cls(codes[: len(true)], codes[len(true) :], list(labels), weights[has_weight])

    @property
    def one_is_positive(self) -> bool:
        """Whether 1 is the positive label by default."""
        return any(set(self.labels) <= pair for pair in _ONE_IS_POSITIVE)

    def positive(self, pos_label: Any) -> int:
        """Return the index of the positive label; -1 if it does not occur."""
        if len(self.labels) > 2:
            raise ValueError(
                "The metric is for two classes, but y_true and y_pred contain "
                f"{len(self.labels)} labels: {listed(self.labels)}. Compare one class with all "
                "others, as in y == label, or choose a multiclass metric."
            )
        if pos_label is None:
            if not self.one_is_positive:
                raise ValueError(
                    "pos_label must name the positive label unless the labels are 0 and 1, or -1 "
                    f"and 1; got None with the labels {listed(self.labels)}."
                )
            pos_label = 1
        if pos_label in self.labels:
            return self.labels.index(pos_label)
        # A single label of the same type may be the negative one.
        if len(self.labels) == 2 or isinstance(pos_label, str) != isinstance(self.labels[0], str):
            raise ValueError(
                f"pos_label must be one of the labels {listed(self.labels)}, got {pos_label!r}."
            )
        return -1


@dataclass(frozen=True)
class Outcomes:
    """Sums of weights of the true and false positives, and the true and false negatives."""

    tp: float
    fp: float
    tn: float
    fn: float

    @classmethod
    def of(cls, y_true: Any, y_pred: Any, sample_weight: Any, *, pos_label: Any = None) -> Outcomes:
        """Count labels of at most two classes; `pos_label` is the positive class."""
        rows = Labels.of(y_true, y_pred, sample_weight)
        index = rows.positive(pos_label)
        true, predicted = rows.y_true == index, rows.y_pred == index
        cells = [(true, predicted), (~true, predicted), (~true, ~predicted), (true, ~predicted)]
        return cls(*(float(rows.weights[a & b].sum()) for a, b in cells))

    @property
    def precision(self) -> float:
        return ratio(self.tp, self.tp + self.fp)

    @property
    def recall(self) -> float:
        return ratio(self.tp, self.tp + self.fn)

    @property
    def specificity(self) -> float:
        return ratio(self.tn, self.tn + self.fp)

    @property
    def negative_predictive_value(self) -> float:
        return ratio(self.tn, self.tn + self.fn)

    def __str__(self) -> str:
        return f"TP = {self.tp:g}, FP = {self.fp:g}, TN = {self.tn:g}, FN = {self.fn:g}"


@dataclass(frozen=True, eq=False)
class Numbers:
    """True and predicted numbers of rows with a positive weight."""

    y_true: Floats
    y_pred: Floats
    weights: Floats

    @classmethod
    def of(cls, y_true: Any, y_pred: Any, sample_weight: Any) -> Numbers:
        """Check numbers."""
        true, predicted = _number_column("y_true", y_true), _number_column("y_pred", y_pred)
        weights = _weights(len(true), len(predicted), sample_weight, "y_pred")
        has_weight = weights > 0
        return cls(true[has_weight], predicted[has_weight], weights[has_weight])


@dataclass(frozen=True, eq=False)
class Probabilities:
    """Predicted probabilities of the true classes of rows with a positive weight."""

    of_true: Floats
    weights: Floats

    @classmethod
    def of(
        cls, y_true: Any, y_prob: Any, sample_weight: Any, *, labels: Any = None
    ) -> Probabilities:
        """Check class probabilities with columns `labels`; select the true class of each row."""
        true = _label_column("y_true", y_true)
        matrix = as_numbers(
            "y_prob",
            y_prob,
            low=-_ROUNDING,
            high=1 + _ROUNDING,
            remedy="Pass the output of predict_proba.",
        )
        if matrix.ndim != 2:
            raise ValueError(
                "y_prob must have one column per class, shape (n_rows, n_classes), got shape "
                f"{matrix.shape}. Pass all columns of predict_proba."
            )
        weights = _weights(len(true), len(matrix), sample_weight, "y_prob")
        classes = _classes(true, labels, matrix.shape[1])
        sums = matrix.sum(axis=1)
        wrong = np.flatnonzero(np.abs(sums - 1) > _ROUNDING)
        if len(wrong):
            raise ValueError(
                "Each row of y_prob must sum to 1, but row "
                f"{int(wrong[0])} sums to {float(sums[wrong[0]])!r}. Divide rows by their sums."
            )
        columns = pd.Index(classes, dtype=object).get_indexer(pd.Index(true, dtype=object))
        if (columns < 0).any():
            raise ValueError(
                f"y_true holds the label {true[columns < 0].tolist()[0]!r}, which is none of the "
                f"classes of y_prob, {listed(classes)}. Check that y is encoded as for the model, "
                "and that the model was fitted with the class."
            )
        of_true = np.clip(matrix[np.arange(len(true)), columns], 0.0, 1.0)
        has_weight = weights > 0
        return cls(of_true[has_weight], weights[has_weight])


def _classes(true: NDArray[Any], labels: Any, n_columns: int) -> list[Any]:
    """Return the classes of the columns of class probabilities."""
    if labels is None:
        true_labels = list(pd.unique(true))
        try:
            classes = sorted(true_labels)
        except TypeError:
            raise ValueError(
                "labels must name the columns of y_prob if labels cannot be sorted, got None "
                f"with {listed(true_labels)}. Pass model.classes_."
            ) from None
        meaning = "one for each label of y_true"
    else:
        classes = list(_label_column("labels", labels))
        meaning = "one for each entry of labels"
        if len(set(classes)) < len(classes):
            raise ValueError(f"labels must be different from each other, got {listed(classes)}.")
    if len(classes) != n_columns:
        raise ValueError(
            f"y_prob must have {len(classes)} columns, {meaning}, got {n_columns}. Pass "
            "labels=model.classes_ to name the columns."
        )
    return classes


def _label_column(name: str, labels: Any) -> NDArray[Any]:
    """Return labels as Python objects, so that equal labels compare equal."""
    if np.ma.is_masked(labels):
        raise ValueError(f"{name} must have no masked entries. Fill or drop them first.")
    column = np.asarray(labels)
    if column.ndim != 1:
        raise ValueError(f"{name} must hold one label per row, got shape {column.shape}.")
    if not hasattr(labels, "dtype"):
        # NumPy would convert the NaN of a mixed list to a string; Arrow yields its own scalars.
        values = labels.to_pylist() if hasattr(labels, "to_pylist") else list(labels)
        column = np.empty(len(column), dtype=object)
        column[:] = values
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
                f"{name} must hold labels, but {label!r} is not an integer. Choose a metric "
                "of regression, or turn numbers into labels first."
            )
    return objects


def _number_column(name: str, values: Any) -> Floats:
    array = as_numbers(name, values, remedy=_REMEDY)
    if array.ndim != 1:
        raise ValueError(
            f"{name} must hold one number per row, got shape {array.shape}. Measure multiple "
            "targets one by one."
        )
    if (array == -np.inf).any():
        raise ValueError(f"{name} must be finite, got -inf. {_REMEDY}")
    return array


def _weights(n_true: int, n_other: int, sample_weight: Any, other: str) -> Floats:
    if n_true != n_other:
        raise ValueError(
            f"y_true and {other} must have the same number of rows, got {n_true} and {n_other}. "
            "Pass the predictions of the rows of y_true."
        )
    if n_true == 0:
        raise ValueError("y_true must hold at least one row, got 0 rows.")
    weights = np.ones(n_true) if sample_weight is None else row_weights(sample_weight, n_true)
    if not weights.any():
        raise ValueError(
            f"sample_weight must hold a positive number, got {n_true} zeros. Pass None to weight "
            "all rows equally."
        )
    return weights
