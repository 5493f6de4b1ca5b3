"""Measures of confidence: how sure a model is of the class that is the true one."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from skescore.metrics._rows import Confidences, check_undefined, documented, mean

__all__ = ["cross_entropy", "logistic_loss", "margin", "soft_margin_loss"]


class ConfidenceMetric(Protocol):
    """A measure of the confidences that a model gives to classes."""

    __name__: str

    def __call__(
        self,
        y_true: Any,
        y_prob: Any,
        *,
        labels: Any = None,
        sample_weight: Any = None,
        undefined: float = math.nan,
    ) -> float: ...


_SHARED = """
Parameters
----------
y_true : array-like of shape (n_rows,)
    The true labels.
y_prob : array-like of shape (n_rows, n_classes)
    How sure the model is of each class, as ``predict_proba`` tells; rows sum to 1.
labels : array-like of shape (n_classes,), optional
    What the columns stand for: ``model.classes_``, or ``classes`` of a rule set. By default the
    labels of `y_true` in order.
sample_weight : array-like of shape (n_rows,), optional
    Weights of the rows, zero or positive.
undefined : float, default=NaN
    Taken for the sake of the other measures; this one always has a value.

Returns
-------
float
    The value.

Raises
------
ValueError
    If there are no rows, labels and columns do not fit each other, or a row does not sum to 1.
TypeError
    If something is no number.
"""


def _of_confidences(formula: Callable[[Confidences], float]) -> ConfidenceMetric:
    """Make a measure of a formula: all take the same arguments, told once."""

    @functools.wraps(formula, assigned=("__module__", "__name__", "__qualname__"), updated=())
    def metric(
        y_true: Any,
        y_prob: Any,
        *,
        labels: Any = None,
        sample_weight: Any = None,
        undefined: float = math.nan,
    ) -> float:
        check_undefined(undefined)
        return float(formula(Confidences.of(y_true, y_prob, labels, sample_weight)))

    metric.__doc__ = documented(formula, _SHARED)
    del metric.__wrapped__  # its signature is not the metric's
    return metric


@_of_confidences
def cross_entropy(rows: Confidences) -> float:
    """Bits that the true classes come unexpected by, a loss: the mean of -log2(q).

    q is the confidence in the true class of a row; a single q of 0 gives infinity. It is
    scikit-learn's ``log_loss`` divided by ln 2, except that the latter replaces 0 by a tiny number.

    Examples
    --------
    >>> cross_entropy(["a", "b"], [[0.5, 0.5], [0.75, 0.25]])
    1.5
    """
    with np.errstate(divide="ignore"):
        return abs(mean(-np.log2(rows.sure), rows.weights))  # not -0.0


@_of_confidences
def margin(rows: Confidences) -> float:
    """The least confidence in a true class, over all rows that weigh something.

    Examples
    --------
    >>> margin(["a", "b"], [[0.5, 0.5], [0.75, 0.25]])
    0.25
    """
    return float(rows.sure.min())


@_of_confidences
def soft_margin_loss(rows: Confidences) -> float:
    """Mean lack of confidence in the true class, a loss: the mean of 1 - q.

    Examples
    --------
    >>> soft_margin_loss(["a", "b"], [[0.5, 0.5], [0.75, 0.25]])
    0.625
    """
    return mean(1 - rows.sure, rows.weights)


@_of_confidences
def logistic_loss(rows: Confidences) -> float:
    """The mean of ln(1 + exp(-q)), a loss, q being the confidence in the true class.

    q lies between 0 and 1, so that the loss lies between 0.313 and 0.693: it is not the loss of
    logistic regression, which is ``log_loss`` in scikit-learn.

    Examples
    --------
    >>> round(logistic_loss(["a", "b"], [[0.5, 0.5], [0.75, 0.25]]), 6)
    0.525008
    """
    return mean(np.logaddexp(0.0, -rows.sure), rows.weights)
