"""Measures of answered classes, however many there are: all of them are scikit-learn's."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from sklearn import metrics as sk

from skescore.metrics._rows import Labels, check_undefined, documented, undefined_value

__all__ = ["accuracy", "balanced_accuracy", "classification_error", "kappa"]


class ClassMetric(Protocol):
    """A measure of answered classes."""

    __name__: str

    def __call__(
        self,
        y_true: Any,
        y_pred: Any,
        *,
        sample_weight: Any = None,
        undefined: float = math.nan,
    ) -> float: ...


_SHARED = """
Parameters
----------
y_true, y_pred : array-like of shape (n_rows,)
    The truth and the answers: labels of any kind.
sample_weight : array-like of shape (n_rows,), optional
    Weights of the rows, zero or positive.
undefined : float, default=NaN
    The value where there is none; NaN comes with an ``UndefinedMetricWarning``.

Returns
-------
float
    The value.

Raises
------
ValueError
    If there are no rows, or labels are missing or numbers that are not whole.
TypeError
    If an option is of the wrong type.
"""


def _of_classes(formula: Callable[[Labels], float]) -> ClassMetric:
    """Make a measure of a formula: all take the same arguments, told once."""

    @functools.wraps(formula, assigned=("__module__", "__name__", "__qualname__"), updated=())
    def metric(
        y_true: Any,
        y_pred: Any,
        *,
        sample_weight: Any = None,
        undefined: float = math.nan,
    ) -> float:
        check_undefined(undefined)
        rows = Labels.of(y_true, y_pred, sample_weight)
        value = float(formula(rows))
        if math.isnan(value):
            why = f"{formula.__name__} is undefined where all labels and answers are the same."
            return undefined_value(undefined, why)
        return value

    metric.__doc__ = documented(formula, _SHARED)
    del metric.__wrapped__  # its signature is not the metric's
    return metric


@_of_classes
def accuracy(rows: Labels) -> float:
    """Share of rows answered rightly: scikit-learn's ``accuracy_score``.

    Examples
    --------
    >>> accuracy(["a", "b", "c", "c"], ["a", "b", "c", "a"])
    0.75
    """
    return float(sk.accuracy_score(rows.truth, rows.answers, sample_weight=rows.weights))


@_of_classes
def classification_error(rows: Labels) -> float:
    """Share of rows answered wrongly, a loss: scikit-learn's ``zero_one_loss``.

    Examples
    --------
    >>> classification_error(["a", "b", "c", "c"], ["a", "b", "c", "a"])
    0.25
    """
    return float(sk.zero_one_loss(rows.truth, rows.answers, sample_weight=rows.weights))


@_of_classes
def balanced_accuracy(rows: Labels) -> float:
    """Mean over the classes of the share answered rightly: ``balanced_accuracy_score``.

    Classes are those of the truth. scikit-learn's function warns of answers that are no row's
    class; this does not. RuleKit leaves weights out of this one.

    Examples
    --------
    >>> balanced_accuracy(["a", "b", "c", "c"], ["a", "b", "c", "a"])
    0.8333333333333334
    """
    shares = sk.recall_score(
        rows.truth,
        rows.answers,
        labels=np.unique(rows.truth),
        average="macro",
        sample_weight=rows.weights,
    )
    return float(shares)


@_of_classes
def kappa(rows: Labels) -> float:
    """Agreement beyond chance: scikit-learn's ``cohen_kappa_score``.

    Examples
    --------
    >>> kappa(["a", "a", "b", "b"], ["a", "a", "b", "a"])
    0.5
    """
    if len(rows.known) == 1:
        return math.nan  # scikit-learn divides 0 by 0 there
    return float(sk.cohen_kappa_score(rows.truth, rows.answers, sample_weight=rows.weights))
