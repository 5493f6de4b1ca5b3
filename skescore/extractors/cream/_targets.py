"""What clusters are to be homogeneous in: labels, numbers, or the features themselves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np

from skescore.extractors._linear_models import sparse_slopes
from skescore.rules import Conclusions, LinearOutput

#: Larger numbers have squares, and sums of them, that overflow.
LARGEST = 1e100
#: Rows worked on at a time.
_CHUNK = 1 << 16


class Target(Protocol):
    """The values that rules are to conclude."""

    #: Impurity at which a set of rows is homogeneous unless the user says otherwise.
    default_threshold: float

    def columns(self, rows: np.ndarray, scale: bool) -> np.ndarray:
        """Numbers that describe the target of some rows to a mixture, one row each."""

    def impurity(self, rows: np.ndarray) -> float:
        """How different the targets of some rows are."""

    def moments(self, rows: np.ndarray) -> np.ndarray | None:
        """Numbers whose sums over rows say how different their targets are; None: there are none.

        One row per number, one column per row of the data; the first numbers are all 1.
        """

    def scatter(self, sums: np.ndarray) -> np.ndarray:
        """How different the targets are, times their number, given sums of moments (last axis)."""

    def importance_target(self, index: Any) -> tuple[np.ndarray, str]:
        """What features may be important for, given each row's rule, and its kind of task."""

    def conclude(self, index: np.ndarray, n_rules: int) -> Conclusions:
        """What each rule concludes on the rows of the given index."""


class LabelTarget:
    """Class labels, by their codes; the impurity is the share of rows outside the majority class.

    Codes are the same for the whole run, whatever classes some rows have.
    """

    default_threshold = 0.15

    def __init__(self, codes: np.ndarray, n_classes: int) -> None:
        self._codes, self._n_classes = codes, n_classes
        share = np.bincount(codes, minlength=n_classes) / len(codes)
        self._mean = share @ np.arange(n_classes)
        self._deviation = np.sqrt(share @ (np.arange(n_classes) - self._mean) ** 2)

    def columns(self, rows: np.ndarray, scale: bool) -> np.ndarray:
        codes = self._codes[rows, None].astype(float)
        return (codes - self._mean) / (self._deviation or 1.0) if scale else codes

    def impurity(self, rows: np.ndarray) -> float:
        counts = np.bincount(self._codes[rows])
        # Not 1 - share: 1 - 9/10 is a little less than 0.1.
        return float((len(rows) - counts.max()) / len(rows))

    def moments(self, rows: np.ndarray) -> np.ndarray:
        of_class = self._codes[rows] == np.arange(self._n_classes)[:, None]
        return np.vstack([np.ones(len(rows)), of_class])

    def scatter(self, sums: np.ndarray) -> np.ndarray:
        """Gini impurity: the share of other classes falls by jumps, with nothing in between."""
        n_rows = np.maximum(sums[..., 0], 1)
        return np.asarray(n_rows - (sums[..., 1:] ** 2).sum(axis=-1) / n_rows)

    def importance_target(self, index: Any) -> tuple[np.ndarray, str]:
        return self._codes, "classification"

    def conclude(self, index: np.ndarray, n_rules: int) -> Conclusions:
        """Majority class, of equally large ones the first."""
        flat = np.bincount(
            index * self._n_classes + self._codes, minlength=n_rules * self._n_classes
        )
        counts = flat.reshape(n_rules, self._n_classes)
        return Conclusions(counts.argmax(axis=1), n_rows=counts.sum(axis=1), class_counts=counts)


class NumberTarget:
    """Numbers, concluded as their mean or by a linear model.

    The impurity is their standard deviation, or the mean absolute residual of the model. Raises a
    ValueError, which begins with `who`, for numbers whose squares would overflow.
    """

    def __init__(
        self,
        X: np.ndarray,
        values: np.ndarray,
        linear: bool,
        max_terms: int | None = None,
        who: str = "y holds",
    ) -> None:
        largest = float(np.abs(values).max())
        if largest > LARGEST:
            raise ValueError(
                f"{who} numbers up to {largest:.3g}, more than {LARGEST:g}; their squares would "
                "overflow. Scale the target."
            )
        self._X, self._values, self._linear, self._max_terms = X, values, linear, max_terms
        self._mean, self._deviation = float(values.mean()), float(values.std())
        self.default_threshold = 0.1 * self._deviation

    def columns(self, rows: np.ndarray, scale: bool) -> np.ndarray:
        return self._standardized(rows)[:, None] if scale else self._values[rows, None]

    def _standardized(self, rows: np.ndarray) -> np.ndarray:
        return np.asarray((self._values[rows] - self._mean) / (self._deviation or 1.0))

    def impurity(self, rows: np.ndarray) -> float:
        """Standard deviation, or the model's mean absolute residual.

        A model lies the closer to its own rows the fewer they are, and the farther from others;
        the residual is therefore multiplied by rows over rows minus coefficients.
        """
        if not self._linear:
            return float(self._values[rows].std())
        intercept, slopes = fit_linear_model(self._X, self._values, rows, self._max_terms)
        total = sum(
            float(np.abs(self._values[chunk] - intercept - self._X[chunk] @ slopes).sum())
            for chunk in _chunks(rows)
        )
        n_terms = min(self._X.shape[1], self._max_terms or self._X.shape[1])
        return total / max(1, len(rows) - n_terms - 1)

    def moments(self, rows: np.ndarray) -> np.ndarray:
        standard = self._standardized(rows)
        return np.vstack([np.ones(len(rows)), standard, standard**2])

    def scatter(self, sums: np.ndarray) -> np.ndarray:
        """Standard deviation."""
        return np.sqrt(np.maximum(0.0, sums[..., 0] * sums[..., 2] - sums[..., 1] ** 2))

    def importance_target(self, index: Any) -> tuple[np.ndarray, str]:
        return self._values, "regression"

    def conclude(self, index: np.ndarray, n_rules: int) -> Conclusions:
        n_rows = np.bincount(index, minlength=n_rules)
        mean = np.bincount(index, weights=self._values, minlength=n_rules) / n_rows
        squares = (self._values - mean[index]) ** 2
        deviation = np.sqrt(np.bincount(index, weights=squares, minlength=n_rules) / n_rows)
        if not self._linear:
            return Conclusions(mean, n_rows=n_rows, mean=mean, standard_deviation=deviation)
        linear = {}
        groups = np.split(np.argsort(index, kind="stable"), np.cumsum(n_rows)[:-1])
        for rule, rows in enumerate(groups):
            intercept, slopes = fit_linear_model(self._X, self._values, rows, self._max_terms)
            linear[rule] = LinearOutput(intercept, tuple(enumerate(slopes.tolist())))
        return Conclusions(
            np.full(n_rules, np.nan),
            n_rows=n_rows,
            mean=mean,
            standard_deviation=deviation,
            linear=linear,
        )


class NoTarget:
    """No target: clusters of rows that lie close together, numbered.

    The impurity is the share of all rows' variance (summed over standardized features) that is
    left. There are no moments: boxes are to be those of clusters.
    """

    default_threshold = 0.1

    def __init__(self, X: np.ndarray) -> None:
        self._X, self._deviation = X, column_moments(X, np.arange(len(X)))[1]

    def columns(self, rows: np.ndarray, scale: bool) -> np.ndarray:
        return np.empty((len(rows), 0))

    def impurity(self, rows: np.ndarray) -> float:
        varying = self._deviation > 0
        if not varying.any():
            return 0.0
        deviation = column_moments(self._X, rows)[1]
        return float(np.mean((deviation[varying] / self._deviation[varying]) ** 2))

    def moments(self, rows: np.ndarray) -> None:
        return None

    def scatter(self, sums: np.ndarray) -> np.ndarray:
        raise NotImplementedError("There are no moments to compute it from.")

    def importance_target(self, index: Any) -> tuple[np.ndarray, str]:
        return index, "classification"

    def conclude(self, index: np.ndarray, n_rules: int) -> Conclusions:
        n_rows = np.bincount(index, minlength=n_rules)
        return Conclusions(np.arange(n_rules), n_rows=n_rows, class_counts=np.diag(n_rows))


def _chunks(rows: np.ndarray) -> Iterator[np.ndarray]:
    for begin in range(0, len(rows), _CHUNK):
        yield rows[begin : begin + _CHUNK]


def column_moments(X: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and population standard deviation of every column over some rows, at least one.

    The standard deviation of a column of equal numbers is 0 exactly. Only some thousands of rows
    are copied at a time.
    """
    first = X[rows[0]]
    shift = sum((X[chunk] - first).sum(axis=0) for chunk in _chunks(rows)) / len(rows)
    mean = first + shift
    squares = sum(((X[chunk] - mean) ** 2).sum(axis=0) for chunk in _chunks(rows))
    return mean, np.sqrt(squares / len(rows))


def fit_linear_model(
    X: np.ndarray, values: np.ndarray, rows: np.ndarray, max_terms: int | None = None
) -> tuple[float, np.ndarray]:
    """Intercept and slopes of a linear model, fitted to some rows by least squares.

    At most `max_terms` slopes are not 0, those of forward selection; None: all may be.

    Slopes are 0 for features that are constant on the rows. Of equally good models it is the one
    with the smallest slopes per standard deviation. With few rows slopes are shrunk, see
    :func:`skescore.extractors._linear_models.ridge_slopes`.
    """
    n_features = X.shape[1]
    mean, deviation = column_moments(X, rows)
    unit = np.where(deviation > 0, deviation, np.inf)
    center = float(values[rows].mean())
    level = float(np.abs(values[rows] - center).max()) or 1.0
    gram = np.zeros((n_features + 1, n_features + 1))
    for chunk in _chunks(rows):
        standard = np.column_stack([(X[chunk] - mean) / unit, (values[chunk] - center) / level])
        gram += standard.T @ standard
    slopes = sparse_slopes(np.array([len(rows)]), gram[None], max_terms)[0] * level / unit
    return center - float(slopes @ mean), slopes
