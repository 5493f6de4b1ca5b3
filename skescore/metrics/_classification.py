"""Measures of answers to a question of two classes, one of them the positive one."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from sklearn import metrics as sk

from skescore.metrics._rows import (
    Confidences,
    Labels,
    check_undefined,
    documented,
    mean,
    undefined_value,
)

__all__ = [
    "accuracy",
    "balanced_accuracy",
    "classification_error",
    "cross_entropy",
    "f_measure",
    "fallout",
    "false_negative",
    "false_positive",
    "geometric_mean",
    "kappa",
    "lift",
    "logistic_loss",
    "margin",
    "negative_predictive_value",
    "precision",
    "psep",
    "sensitivity",
    "soft_margin_loss",
    "specificity",
    "true_negative",
    "true_positive",
    "youden",
]


# --- measures of answered classes, however many there are: all of them are scikit-learn's --------


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


_OF_LABELS = """
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

    metric.__doc__ = documented(formula, _OF_LABELS)
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


# --- Measures of answers to a question of two classes, one of them the positive one --------------


@dataclass(frozen=True)
class Outcomes:
    """What the rows of each outcome weigh, true and false answers of the two classes.

    Attributes
    ----------
    tp, fp, tn, fn : float
        True and false positives, true and false negatives.
    """

    tp: float
    fp: float
    tn: float
    fn: float

    @classmethod
    def of(cls, y_true: Any, y_pred: Any, pos_label: Any, sample_weight: Any) -> Outcomes:
        """Count."""
        rows = Labels.of(y_true, y_pred, sample_weight)
        positive = rows.positive(pos_label)
        is_so, said_so = rows.truth == positive, rows.answers == positive
        weigh = [(is_so, said_so), (~is_so, said_so), (~is_so, ~said_so), (is_so, ~said_so)]
        return cls(*(float(rows.weights[a & b].sum()) for a, b in weigh))

    @property
    def precision(self) -> float:
        return _ratio(self.tp, self.tp + self.fp)

    @property
    def sensitivity(self) -> float:
        return _ratio(self.tp, self.tp + self.fn)

    @property
    def specificity(self) -> float:
        return _ratio(self.tn, self.tn + self.fp)

    @property
    def negative_precision(self) -> float:
        return _ratio(self.tn, self.tn + self.fn)

    def __str__(self) -> str:
        return f"TP = {self.tp:g}, FP = {self.fp:g}, TN = {self.tn:g}, FN = {self.fn:g}"


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole else math.nan


class BinaryMetric(Protocol):
    """A measure of answers to a question of two classes."""

    __name__: str

    def __call__(
        self,
        y_true: Any,
        y_pred: Any,
        *,
        pos_label: Any = None,
        sample_weight: Any = None,
        undefined: float = math.nan,
    ) -> float: ...


_SHARED = """
Parameters
----------
y_true, y_pred : array-like of shape (n_rows,)
    The truth and the answers: labels of two classes at most.
pos_label : label, optional
    The positive class; by default 1, where labels are 0 and 1, or -1 and 1.
sample_weight : array-like of shape (n_rows,), optional
    Weights of the rows, zero or positive.
undefined : float, default=NaN
    The value where the formula is 0/0; NaN comes with an ``UndefinedMetricWarning``.

Returns
-------
float
    The value.

Raises
------
ValueError
    If there are no rows, more than two labels or missing ones, or it is open which is positive.
TypeError
    If an option is of the wrong type.
"""


def _binary(formula: Callable[[Outcomes], float]) -> BinaryMetric:
    """Make a measure of a formula: all take the same arguments, told once."""

    @functools.wraps(formula, assigned=("__module__", "__name__", "__qualname__"), updated=())
    def metric(
        y_true: Any,
        y_pred: Any,
        *,
        pos_label: Any = None,
        sample_weight: Any = None,
        undefined: float = math.nan,
    ) -> float:
        check_undefined(undefined)
        outcomes = Outcomes.of(y_true, y_pred, pos_label, sample_weight)
        value = formula(outcomes)
        if math.isnan(value):
            return undefined_value(undefined, f"{formula.__name__} is undefined at {outcomes}.")
        return value

    metric.__doc__ = documented(formula, _SHARED)
    del metric.__wrapped__  # its signature is not the metric's
    return metric


@_binary
def precision(outcomes: Outcomes) -> float:
    """Share of answered positives that are positive: TP / (TP + FP).

    Examples
    --------
    >>> precision([1, 1, 1, 0], [1, 1, 0, 1])
    0.6666666666666666
    """
    return outcomes.precision


@_binary
def sensitivity(outcomes: Outcomes) -> float:
    """Share of positives that are found: TP / (TP + FN), also called recall.

    Examples
    --------
    >>> sensitivity([1, 1, 1, 0], [1, 1, 0, 1])
    0.6666666666666666
    """
    return outcomes.sensitivity


@_binary
def specificity(outcomes: Outcomes) -> float:
    """Share of negatives that are left alone: TN / (TN + FP).

    Examples
    --------
    >>> specificity(["no", "no", "yes"], ["no", "yes", "yes"], pos_label="yes")
    0.5
    """
    return outcomes.specificity


@_binary
def negative_predictive_value(outcomes: Outcomes) -> float:
    """Share of answered negatives that are negative: TN / (TN + FN).

    Examples
    --------
    >>> negative_predictive_value(["no", "no", "yes"], ["no", "no", "no"], pos_label="yes")
    0.6666666666666666
    """
    return outcomes.negative_precision


@_binary
def fallout(outcomes: Outcomes) -> float:
    """Share of negatives that are taken for positive, a loss: FP / (FP + TN).

    Examples
    --------
    >>> fallout([0, 0, 0, 1], [1, 0, 0, 1])
    0.3333333333333333
    """
    return _ratio(outcomes.fp, outcomes.fp + outcomes.tn)


@_binary
def youden(outcomes: Outcomes) -> float:
    """How much better than chance both classes are found: sensitivity + specificity - 1.

    Examples
    --------
    >>> youden([0, 0, 1, 1], [0, 1, 1, 1])
    0.5
    """
    return outcomes.sensitivity + outcomes.specificity - 1


@_binary
def geometric_mean(outcomes: Outcomes) -> float:
    """Both classes found, none at the cost of the other: sqrt(sensitivity * specificity).

    Examples
    --------
    >>> geometric_mean([0, 0, 1, 1], [0, 1, 1, 1])
    0.7071067811865476
    """
    return math.sqrt(outcomes.sensitivity * outcomes.specificity)


@_binary
def psep(outcomes: Outcomes) -> float:
    """How far answers tell the classes apart: precision + negative predictive value - 1.

    Examples
    --------
    >>> psep([0, 0, 1, 1], [0, 0, 0, 1])
    0.6666666666666665
    """
    return outcomes.precision + outcomes.negative_precision - 1


@_binary
def lift(outcomes: Outcomes) -> float:
    """How many times more positives there are among answered ones than among all rows.

    It is the precision divided by the share of positives. 1 is chance, and the greatest value is 1
    divided by the share of positives.

    Examples
    --------
    >>> lift([0, 0, 1, 1], [0, 0, 0, 1])
    2.0
    """
    total = outcomes.tp + outcomes.fp + outcomes.tn + outcomes.fn
    return _ratio(outcomes.precision, (outcomes.tp + outcomes.fn) / total)


@_binary
def true_positive(outcomes: Outcomes) -> float:
    """Positives that are found, as a number of rows or their weight.

    Examples
    --------
    >>> true_positive([0, 0, 1, 1], [0, 1, 1, 1])
    2.0
    """
    return outcomes.tp


@_binary
def false_positive(outcomes: Outcomes) -> float:
    """Negatives that are taken for positive, a loss, as a number of rows or their weight.

    Examples
    --------
    >>> false_positive([0, 0, 1, 1], [0, 1, 1, 1])
    1.0
    """
    return outcomes.fp


@_binary
def true_negative(outcomes: Outcomes) -> float:
    """Negatives that are left alone, as a number of rows or their weight.

    Examples
    --------
    >>> true_negative([0, 0, 1, 1], [0, 1, 1, 1])
    1.0
    """
    return outcomes.tn


@_binary
def false_negative(outcomes: Outcomes) -> float:
    """Positives that are missed, a loss, as a number of rows or their weight.

    Examples
    --------
    >>> false_negative([0, 0, 1, 1], [0, 1, 1, 1])
    0.0
    """
    return outcomes.fn


def f_measure(
    y_true: Any,
    y_pred: Any,
    *,
    pos_label: Any = None,
    harmonic: bool = False,
    sample_weight: Any = None,
    undefined: float = math.nan,
) -> float:
    """Positives found and answers right, both at once: 2 TP / (2 TP + FP + FN).

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n_rows,)
        The truth and the answers: labels of two classes at most.
    pos_label : label, optional
        The positive class; by default 1, where labels are 0 and 1, or -1 and 1.
    harmonic : bool, default=False
        True takes it for the harmonic mean of precision and sensitivity to the letter, which is 0/0
        where no positive is found; False gives 0 there, as long as there is one to be found or
        answered.
    sample_weight : array-like of shape (n_rows,), optional
        Weights of the rows, zero or positive.
    undefined : float, default=NaN
        The value where the formula is 0/0; NaN comes with an ``UndefinedMetricWarning``.

    Returns
    -------
    float
        The value.

    Raises
    ------
    ValueError
        If there are no rows, more than two labels or missing ones, or it is open which is positive.
    TypeError
        If an option is of the wrong type.

    Notes
    -----
    scikit-learn's ``f1_score`` has the value 0 without true positives, as here, and also where
    there is no positive at all. RuleKit has none in both cases: ``harmonic=True``.

    Examples
    --------
    >>> f_measure([0, 0, 1, 1], [0, 1, 1, 1])
    0.8
    """
    if not isinstance(harmonic, bool):
        raise TypeError(f"harmonic must be True or False, got {harmonic!r}.")
    check_undefined(undefined)
    outcomes = Outcomes.of(y_true, y_pred, pos_label, sample_weight)
    whole = 2 * outcomes.tp + outcomes.fp + outcomes.fn
    if whole == 0 or (harmonic and outcomes.tp == 0):
        return undefined_value(undefined, f"f_measure is undefined at {outcomes}.")
    return 2 * outcomes.tp / whole


# --- measures of confidence: how sure a model is of the class that is the true one ---------------


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


_OF_PROBABILITIES = """
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

    metric.__doc__ = documented(formula, _OF_PROBABILITIES)
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
