"""The named measures of predictions in a few steps of NumPy.

scikit-learn's functions give the same values. They check their input at every call though, which
takes a hundred times as long as the measure itself where a search scores a few dozen rows. Here
nothing is checked: labels come as codes, which :func:`label_codes` makes, numbers as finite floats,
weights are positive, and there is a row at least.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

Weights = NDArray[np.float64] | None

#: The code of a row that no rule answers: wrong, but no class of its own.
NO_RULE = -1


def label_codes(truth: np.ndarray, answers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Number the labels of any type, equal ones alike.

    Parameters
    ----------
    truth, answers : ndarray of shape (n_rows,)
        Labels.

    Returns
    -------
    truth, answers : ndarray of int, shape (n_rows,)
        Codes from 0, in the order in which the labels first occur.
    """
    labels = [*truth.tolist(), *answers.tolist()]
    places: dict[Any, int] = {}
    codes = np.array([places.setdefault(label, len(places)) for label in labels], dtype=np.intp)
    if all(isinstance(label, str | int | float) and label == label for label in places):
        return codes[: len(truth)], codes[len(truth) :]
    # A missing label does not equal itself; pandas knows that all of them are one.
    objects = np.fromiter(labels, dtype=object, count=len(labels))
    codes = pd.factorize(objects, use_na_sentinel=False)[0]
    return codes[: len(truth)], codes[len(truth) :]


def _mean(values: np.ndarray, weights: Weights) -> float:
    if weights is None:
        return float(values.mean())
    return float((values * weights).sum() / weights.sum())


# --- classes -------------------------------------------------------------------------------------


def accuracy(truth: np.ndarray, answers: np.ndarray, weights: Weights) -> float:
    """Share of the rows that are answered rightly."""
    return _mean(truth == answers, weights)


def _counts(
    truth: np.ndarray, answers: np.ndarray, weights: Weights
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows answered rightly, rows answered and rows of every class that occurs."""
    n_codes = int(max(truth.max(), answers.max())) + 1
    right, ruled = truth == answers, answers != NO_RULE
    hits, answered, there = (
        np.bincount(codes[rows], None if weights is None else weights[rows], n_codes)
        for codes, rows in ((truth, right), (answers, ruled), (truth, slice(None)))
    )
    occurs = (there > 0) | (answered > 0)
    hits, answered, there = hits[occurs], answered[occurs], there[occurs]
    # Through the errors, as scikit-learn has it: sums of weights then round alike.
    return hits, hits + (answered - hits), hits + (there - hits)


def _f1_per_class(
    truth: np.ndarray, answers: np.ndarray, weights: Weights
) -> tuple[np.ndarray, np.ndarray]:
    hits, answered, there = _counts(truth, answers, weights)
    return 2.0 * hits / (there + answered), there


def f1_weighted(truth: np.ndarray, answers: np.ndarray, weights: Weights) -> float:
    """F1 of the classes, averaged by their rows."""
    return _mean(*_f1_per_class(truth, answers, weights))


def f1_macro(truth: np.ndarray, answers: np.ndarray, weights: Weights) -> float:
    """Mean F1 of the classes that occur."""
    return _mean(_f1_per_class(truth, answers, weights)[0], None)


def balanced_accuracy(truth: np.ndarray, answers: np.ndarray, weights: Weights) -> float:
    """Mean share of the rows answered rightly among those of each class."""
    hits, _, there = _counts(truth, answers, weights)
    known = there > 0
    return _mean(hits[known] / there[known], None)


# --- numbers -------------------------------------------------------------------------------------


def r2(truth: np.ndarray, answers: np.ndarray, weights: Weights) -> float:
    """Share of the spread that the answers explain."""
    errors, spread = (truth - answers) ** 2, (truth - _mean(truth, weights)) ** 2
    if weights is not None:
        errors, spread = weights * errors, weights * spread
    left, whole = float(errors.sum()), float(spread.sum())
    if left == 0.0:
        return 1.0
    # An infinite quotient helps nobody who takes means over folds.
    return 0.0 if whole == 0.0 else float(1.0 - np.divide(left, whole))


def mean_absolute_error(truth: np.ndarray, answers: np.ndarray, weights: Weights) -> float:
    """Mean distance from the truth."""
    return _mean(np.abs(answers - truth), weights)


def mean_squared_error(truth: np.ndarray, answers: np.ndarray, weights: Weights) -> float:
    """Mean square of the distance from the truth."""
    return _mean((truth - answers) ** 2, weights)


def root_mean_squared_error(truth: np.ndarray, answers: np.ndarray, weights: Weights) -> float:
    """Root of the mean square of the distance from the truth."""
    return math.sqrt(mean_squared_error(truth, answers, weights))
