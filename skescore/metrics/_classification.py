"""Formulas of the metrics of predicted classes: of many, of two, and of their probabilities."""

from __future__ import annotations

import math

import numpy as np
from sklearn.metrics import cohen_kappa_score

from skescore._validation import check_flag
from skescore.metrics import _prediction
from skescore.metrics._rows import Labels, Outcomes, Probabilities, metric_of, ratio


@metric_of(Labels)
def accuracy(rows: Labels) -> float:
    """Compute the share of the rows that are predicted correctly."""
    return _prediction.accuracy(rows.y_true, rows.y_pred, rows.weights)


@metric_of(Labels)
def zero_one_loss(rows: Labels) -> float:
    """Compute the share of the rows that are predicted wrongly."""
    return 1 - _prediction.accuracy(rows.y_true, rows.y_pred, rows.weights)


@metric_of(Labels)
def balanced_accuracy(rows: Labels) -> float:
    """Compute the mean recall of the classes of y_true; RuleKit ignores weights here."""
    return _prediction.balanced_accuracy(rows.y_true, rows.y_pred, rows.weights)


@metric_of(Labels, "where all labels and predictions are the same")
def cohen_kappa(rows: Labels) -> float:
    """Compute the agreement beyond chance."""
    if len(rows.labels) == 1:
        return math.nan  # scikit-learn divides 0 by 0 there
    return float(cohen_kappa_score(rows.y_true, rows.y_pred, sample_weight=rows.weights))


@metric_of(Outcomes)
def precision(rows: Outcomes) -> float:
    """Compute the share of the predicted positives that are positive."""
    return rows.precision


@metric_of(Outcomes)
def recall(rows: Outcomes) -> float:
    """Compute the share of the positives that are predicted as positive (sensitivity)."""
    return rows.recall


@metric_of(Outcomes)
def specificity(rows: Outcomes) -> float:
    """Compute the share of the negatives that are predicted as negative."""
    return rows.specificity


@metric_of(Outcomes)
def negative_predictive_value(rows: Outcomes) -> float:
    """Compute the share of the predicted negatives that are negative."""
    return rows.negative_predictive_value


@metric_of(Outcomes)
def fallout(rows: Outcomes) -> float:
    """Compute the share of the negatives that are predicted as positive, a loss."""
    return ratio(rows.fp, rows.fp + rows.tn)


@metric_of(Outcomes)
def youden(rows: Outcomes) -> float:
    """Compute recall plus specificity minus 1, the improvement over chance."""
    return rows.recall + rows.specificity - 1


@metric_of(Outcomes)
def geometric_mean(rows: Outcomes) -> float:
    """Compute the geometric mean of recall and specificity."""
    return math.sqrt(rows.recall * rows.specificity)


@metric_of(Outcomes)
def psep(rows: Outcomes) -> float:
    """Compute precision plus negative predictive value minus 1."""
    return rows.precision + rows.negative_predictive_value - 1


@metric_of(Outcomes)
def lift(rows: Outcomes) -> float:
    """Compute the ratio of the precision to the share of positives among all rows.

    1 is chance, and the greatest value is 1 divided by the share of positives.
    """
    total = rows.tp + rows.fp + rows.tn + rows.fn
    return ratio(rows.precision, (rows.tp + rows.fn) / total)


@metric_of(Outcomes)
def f1(rows: Outcomes, *, harmonic: bool = False) -> float:
    """Compute F1; 0 without true positives, undefined without any positive.

    scikit-learn has 0 in both cases. RuleKit has no value in either, as the harmonic mean of
    precision and recall is 0/0: ``harmonic=True``.
    """
    if check_flag("harmonic", harmonic) and rows.tp == 0:
        return math.nan
    return ratio(2 * rows.tp, 2 * rows.tp + rows.fp + rows.fn)


@metric_of(Outcomes)
def true_positive(rows: Outcomes) -> float:
    """Sum the weights of the positives that are predicted as positive."""
    return rows.tp


@metric_of(Outcomes)
def false_positive(rows: Outcomes) -> float:
    """Sum the weights of the negatives that are predicted as positive, a loss."""
    return rows.fp


@metric_of(Outcomes)
def true_negative(rows: Outcomes) -> float:
    """Sum the weights of the negatives that are predicted as negative."""
    return rows.tn


@metric_of(Outcomes)
def false_negative(rows: Outcomes) -> float:
    """Sum the weights of the positives that are predicted as negative, a loss."""
    return rows.fn


@metric_of(Probabilities)
def cross_entropy(rows: Probabilities) -> float:
    """Compute the mean of -log2 of the probability of the true class, a loss in bits.

    A single probability of 0 makes it infinite. It is scikit-learn's ``log_loss`` divided by ln 2,
    except that the latter replaces 0 by a tiny number.
    """
    with np.errstate(divide="ignore"):
        return abs(float(np.average(-np.log2(rows.of_true), weights=rows.weights)))  # not -0.0


@metric_of(Probabilities)
def margin(rows: Probabilities) -> float:
    """Compute the smallest probability of a true class."""
    return float(rows.of_true.min())


@metric_of(Probabilities)
def soft_margin_loss(rows: Probabilities) -> float:
    """Compute the mean probability of the wrong classes, a loss."""
    return float(np.average(1 - rows.of_true, weights=rows.weights))


@metric_of(Probabilities)
def logistic_loss(rows: Probabilities) -> float:
    """Compute the mean of ln(1 + exp(-q)) for the probability q of the true class, a loss.

    It lies between 0.313 and 0.693: it is not the loss of logistic regression, which is
    scikit-learn's ``log_loss``.
    """
    return float(np.average(np.logaddexp(0.0, -rows.of_true), weights=rows.weights))
