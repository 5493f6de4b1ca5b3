"""Targets of clustering: labels, numbers, or the features themselves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np

from skescore.extractors._linear_models import sparse_slopes
from skescore.rules import Conclusions, LinearOutput

#: Largest number whose sums of squares do not overflow.
LARGEST = 1e100
#: Number of rows that are processed at a time.
_CHUNK = 1 << 16


class Target(Protocol):
    """Values that the rules predict."""

    #: Default impurity threshold of homogeneous rows.
    default_threshold: float

    def columns(self, rows: np.ndarray, scale: bool) -> np.ndarray:
        """Return columns that represent the target of some rows in a mixture."""

    def impurity(self, rows: np.ndarray) -> float:
        """Return the impurity of the target of some rows."""

    def moments(self, rows: np.ndarray) -> np.ndarray | None:
        """Return moments per row, whose sums determine the scatter; None without a target.

        The result has the shape (n_moments, n_rows); the first moment is 1.
        """

    def scatter(self, sums: np.ndarray) -> np.ndarray:
        """Return the scatter of the target from sums of moments along the last axis."""

    def importance_target(self, index: Any) -> tuple[np.ndarray, str]:
        """Return target and task for the importances of features, given the rule of each row."""

    def conclude(self, index: np.ndarray, n_rules: int) -> Conclusions:
        """Return the conclusions of the rules, given the rule of each row."""


class LabelTarget:
    """Class labels as codes; the impurity is the share of rows outside the majority class."""

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
        # Not 1 - share, because 1 - 9/10 is less than 0.1 in floating point.
        return float((len(rows) - counts.max()) / len(rows))

    def moments(self, rows: np.ndarray) -> np.ndarray:
        is_class = self._codes[rows] == np.arange(self._n_classes)[:, None]
        return np.vstack([np.ones(len(rows)), is_class])

    def scatter(self, sums: np.ndarray) -> np.ndarray:
        """Return the Gini impurity times the number of rows."""
        n_rows = np.maximum(sums[..., 0], 1)
        return np.asarray(n_rows - (sums[..., 1:] ** 2).sum(axis=-1) / n_rows)

    def importance_target(self, index: Any) -> tuple[np.ndarray, str]:
        return self._codes, "classification"

    def conclude(self, index: np.ndarray, n_rules: int) -> Conclusions:
        """Return the majority class of each rule; ties go to the first class."""
        flat = np.bincount(
            index * self._n_classes + self._codes, minlength=n_rules * self._n_classes
        )
        counts = flat.reshape(n_rules, self._n_classes)
        return Conclusions(counts.argmax(axis=1), n_rows=counts.sum(axis=1), class_counts=counts)


class NumberTarget:
    """Numbers, which rules predict by their mean or by a linear model.

    The impurity is the standard deviation, or the mean absolute residual of the model. Numbers
    whose squares would overflow raise a ValueError whose message begins with `message_start`.
    """

    def __init__(
        self,
        X: np.ndarray,
        values: np.ndarray,
        linear: bool,
        max_terms: int | None = None,
        message_start: str = "y holds",
    ) -> None:
        largest = float(np.abs(values).max())
        if largest > LARGEST:
            raise ValueError(
                f"{message_start} numbers up to {largest:.3g}, more than {LARGEST:g}; their "
                "squares would overflow. Scale the target."
            )
        self._X, self._values, self._linear, self._max_terms = X, values, linear, max_terms
        self._mean, self._deviation = float(values.mean()), float(values.std())
        self.default_threshold = 0.1 * self._deviation

    def columns(self, rows: np.ndarray, scale: bool) -> np.ndarray:
        return self._standardized(rows)[:, None] if scale else self._values[rows, None]

    def _standardized(self, rows: np.ndarray) -> np.ndarray:
        return np.asarray((self._values[rows] - self._mean) / (self._deviation or 1.0))

    def impurity(self, rows: np.ndarray) -> float:
        """Return the standard deviation, or the adjusted mean absolute residual of the model.

        Models of few rows overfit, so the residual is multiplied by rows / (rows - coefficients).
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
        """Return the standard deviation times the number of rows."""
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
    """No target: rows that are close together form clusters, and rules predict cluster numbers.

    The impurity of a set of rows is the mean ratio of a feature's variance on these rows to its
    variance on all rows. There are no moments, so the faces of boxes are not moved.
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
        raise NotImplementedError("There is no scatter without a target.")

    def importance_target(self, index: Any) -> tuple[np.ndarray, str]:
        return index, "classification"

    def conclude(self, index: np.ndarray, n_rules: int) -> Conclusions:
        n_rows = np.bincount(index, minlength=n_rules)
        return Conclusions(np.arange(n_rules), n_rows=n_rows, class_counts=np.diag(n_rows))


def _chunks(rows: np.ndarray) -> Iterator[np.ndarray]:
    for begin in range(0, len(rows), _CHUNK):
        yield rows[begin : begin + _CHUNK]


def column_moments(X: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and population standard deviation of every column over some rows.

    The standard deviation of a constant column is exactly 0. Rows are copied in chunks.
    """
    first = X[rows[0]]
    shift = sum((X[chunk] - first).sum(axis=0) for chunk in _chunks(rows)) / len(rows)
    mean = first + shift
    squares = sum(((X[chunk] - mean) ** 2).sum(axis=0) for chunk in _chunks(rows))
    return mean, np.sqrt(squares / len(rows))


def fit_linear_model(
    X: np.ndarray, values: np.ndarray, rows: np.ndarray, max_terms: int | None = None
) -> tuple[float, np.ndarray]:
    """Return the intercept and slopes of a linear least-squares model of some rows.

    Forward selection chooses at most `max_terms` features with nonzero slopes; None: all features.
    Features that are constant on the rows have slope 0. Among equally good models, the one with the
    smallest standardized slopes is returned. With few rows, slopes are shrunk; see
    :func:`skescore.extractors._linear_models.ridge_slopes`.
    """
    n_features = X.shape[1]
    mean, deviation = column_moments(X, rows)
    unit = np.where(deviation > 0, deviation, np.inf)
    center = float(values[rows].mean())
    largest = float(np.abs(values[rows] - center).max()) or 1.0
    gram = np.zeros((n_features + 1, n_features + 1))
    for chunk in _chunks(rows):
        standard = np.column_stack([(X[chunk] - mean) / unit, (values[chunk] - center) / largest])
        gram += standard.T @ standard
    slopes = sparse_slopes(np.array([len(rows)]), gram[None], max_terms)[0] * largest / unit
    return center - float(slopes @ mean), slopes
