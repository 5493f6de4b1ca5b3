"""Confidence intervals of paired differences between two rule sets on the same rows."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import stats

from skescore._binomial import clopper_pearson
from skescore._validation import check_number

#: Confidence of the intervals of edits.
CONFIDENCE = 0.95
#: Share of the error probability for the share of rows whose correctness changes.
SHARE_OF_CHANGE = 0.2


@dataclass(frozen=True)
class PairedDifference:
    """Mean of paired differences with its confidence interval.

    Parameters
    ----------
    estimate : float
        Mean difference on the rows.
    low, high : float
        Bounds of the interval.
    p_value : float
        Two-sided p-value of no difference.
    n_rows : int
        Number of rows.
    method : str
        Name of the method.
    """

    estimate: float
    low: float
    high: float
    p_value: float
    n_rows: int
    method: str


def difference_of_shares(
    before: np.ndarray, after: np.ndarray, confidence: float = CONFIDENCE
) -> PairedDifference:
    """Compute an exact interval of the difference of two shares on the same rows.

    Parameters
    ----------
    before, after : ndarray of bool, shape (n_rows,)
        Whether each row is right before and after a change.
    confidence : float, default=0.95
        Minimum probability that the interval covers the true difference.

    Returns
    -------
    PairedDifference
        Difference, after minus before, with the p-value of McNemar's exact test.

    Raises
    ------
    ValueError
        If there are no rows, or `confidence` is out of its range.

    Notes
    -----
    The difference is d(2p - 1), where d is the probability that the correctness of a row changes,
    and p the probability that it then becomes right. Clopper-Pearson intervals of both are
    combined, with a fifth and four fifths of the error probability ``1 - confidence``. The interval
    covers the difference with at least this confidence for any number of rows.

    References
    ----------
    C. J. Clopper, E. S. Pearson: The use of confidence or fiducial limits illustrated in the case
    of the binomial. Biometrika 26(4), 1934.

    Q. McNemar: Note on the sampling error of the difference between correlated proportions or
    percentages. Psychometrika 12(2), 1947.

    Examples
    --------
    >>> import numpy as np
    >>> before = np.array([True] * 80 + [False] * 20)
    >>> after = np.array([True] * 90 + [False] * 10)
    >>> difference = difference_of_shares(before, after)
    >>> round(difference.estimate, 2), round(difference.low, 3), round(difference.high, 3)
    (0.1, 0.013, 0.202)
    """
    confidence = check_number("confidence", confidence, above=0, below=1)
    before, after = np.asarray(before, dtype=bool), np.asarray(after, dtype=bool)
    n_rows = len(before)
    if n_rows == 0:
        raise ValueError("before and after must have at least one row, got 0.")
    n_gained, n_lost = int((after & ~before).sum()), int((before & ~after).sum())
    n_changed = n_gained + n_lost
    error = 1 - confidence
    change = clopper_pearson(n_changed, n_rows, 1 - SHARE_OF_CHANGE * error)
    direction = (
        clopper_pearson(n_gained, n_changed, 1 - (1 - SHARE_OF_CHANGE) * error)
        if n_changed
        else (0.0, 1.0)
    )
    corners = [d * (2 * p - 1) for d in change for p in direction]
    p_value = float(stats.binomtest(n_gained, n_changed).pvalue) if n_changed else 1.0
    return PairedDifference(
        (n_gained - n_lost) / n_rows,
        min(corners),
        max(corners),
        p_value,
        n_rows,
        "exact interval of paired shares (Clopper-Pearson)",
    )


def difference_of_means(
    before: np.ndarray, after: np.ndarray, confidence: float = CONFIDENCE
) -> PairedDifference:
    """Compute Student's t interval of the difference of two means on the same rows.

    Parameters
    ----------
    before, after : ndarray of float, shape (n_rows,)
        One number per row before and after a change, such as an absolute error.
    confidence : float, default=0.95
        Asymptotic confidence level of the interval.

    Returns
    -------
    PairedDifference
        Difference, after minus before. If all differences are equal, the interval is this point;
        a single row with a difference gives an unbounded interval.

    Raises
    ------
    ValueError
        If there are no rows, or `confidence` is out of its range.

    Examples
    --------
    >>> import numpy as np
    >>> difference = difference_of_means(np.array([1.0, 2.0, 3.0]), np.array([0.5, 1.0, 3.0]))
    >>> round(difference.estimate, 2), round(difference.low, 2), round(difference.high, 2)
    (-0.5, -1.74, 0.74)
    """
    confidence = check_number("confidence", confidence, above=0, below=1)
    differences = np.asarray(after, dtype=float) - np.asarray(before, dtype=float)
    method = "paired t interval"
    if len(differences) == 0:
        raise ValueError("before and after must have at least one row, got 0.")
    if not differences.any():
        return PairedDifference(0.0, 0.0, 0.0, 1.0, len(differences), method)
    mean = float(differences.mean())
    if len(differences) == 1:
        return PairedDifference(mean, -math.inf, math.inf, 1.0, 1, method)
    if np.ptp(differences) == 0:
        return PairedDifference(mean, mean, mean, 0.0, len(differences), method)
    test = stats.ttest_1samp(differences, 0.0)
    interval = test.confidence_interval(confidence)
    return PairedDifference(
        mean,
        float(interval.low),
        float(interval.high),
        float(test.pvalue),
        len(differences),
        method,
    )
