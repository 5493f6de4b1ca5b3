"""Measures of answers to a question of two classes, one of them the positive one."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from skescore.metrics._rows import Labels, check_undefined, documented, undefined_value

__all__ = [
    "f_measure",
    "fallout",
    "false_negative",
    "false_positive",
    "geometric_mean",
    "lift",
    "negative_predictive_value",
    "precision",
    "psep",
    "sensitivity",
    "specificity",
    "true_negative",
    "true_positive",
    "youden",
]


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
