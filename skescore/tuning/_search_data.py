"""Rows of a search with their targets, groups and weights."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.utils import _safe_indexing
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.validation import _num_samples, indexable

from skescore._validation import row_weights
from skescore.black_boxes import black_box_task, is_prefit, is_unsupervised
from skescore.tuning._objective import Fold, fold_of_all_rows, make_folds, target_or_predictions


@dataclass(frozen=True, eq=False)
class SearchData:
    """Rows that a search was fitted with; rows are referenced, not copied.

    Parameters
    ----------
    X : array-like or DataFrame of shape (n_rows, n_features)
        The rows.
    y : array-like of shape (n_rows,) or None
        The target as the user passed it.
    target : array-like of shape (n_rows,)
        The checked target, or the predictions of the black box without one.
    estimator : estimator
        The black box as the user passed it.
    groups : array-like of shape (n_rows,) or None
        Groups of rows for cross-validation.
    row_weights : ndarray of shape (n_rows,) or None
        Weights of the rows, of their classes included; None if all are 1.
    is_weighted : bool
        Whether the user passed `sample_weight`.
    """

    X: Any
    y: Any
    target: Any
    estimator: Any
    groups: Any
    row_weights: np.ndarray | None
    is_weighted: bool

    @classmethod
    def prepare(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        checked_target: Any,
        groups: Any,
        sample_weight: Any,
        class_weight: Any,
    ) -> SearchData:
        """Query the black box for a missing target, and combine the weights of rows and classes."""
        X, target = indexable(X, target_or_predictions(estimator, X, checked_target))
        weights = None if sample_weight is None else row_weights(sample_weight, _num_samples(X))
        if class_weight is not None:
            if black_box_task(estimator) != "classification":
                raise ValueError(
                    f"class_weight={class_weight!r} is for classes, but the black box does "
                    "regression. Pass sample_weight to fit."
                )
            by_class = compute_sample_weight(class_weight, target)
            weights = by_class if weights is None else by_class * weights
        return cls(X, y, target, estimator, groups, weights, sample_weight is not None)

    def __len__(self) -> int:
        return _num_samples(self.X)

    @property
    def is_fitted(self) -> bool:
        """True if the user fitted the black box."""
        return self.y is None or is_prefit(self.estimator)

    @property
    def has_generated_rows(self) -> bool:
        """True if agreement with the black box is measured on rows that are generated."""
        return self.is_fitted and not is_unsupervised(self.estimator)

    def take(self, rows: np.ndarray | None) -> SearchData:
        """Return the data of some rows; all of them for None."""
        if rows is None:
            return self
        return replace(
            self,
            X=_safe_indexing(self.X, rows),
            y=None if self.y is None else _safe_indexing(self.y, rows),
            target=_safe_indexing(self.target, rows),
            groups=None if self.groups is None else _safe_indexing(self.groups, rows),
            row_weights=None if self.row_weights is None else self.row_weights[rows],
        )

    def constant_quality(self) -> dict[str, float]:
        """Return the performance of the best constant prediction, by measure."""
        if black_box_task(self.estimator) == "regression":
            return {"r2": 0.0}
        target = np.ravel(np.asarray(self.target))
        weights = np.ones(len(target)) if self.row_weights is None else self.row_weights
        codes = np.unique(target, return_inverse=True)[1]
        share = float(np.bincount(codes, weights=weights).max() / weights.sum())
        return {
            "accuracy": share,
            "f1_weighted": share * 2 * share / (1 + share),
            "balanced_accuracy": 1 / (codes.max() + 1),
        }

    def folds(self, cv: Any) -> list[Fold]:
        """Split the rows, and fit the black box on the training rows of each split."""
        return make_folds(
            self.estimator,
            self.X,
            self.target,
            cv,
            black_box_task(self.estimator),
            fitted=self.is_fitted,
            groups=self.groups,
            sample_weight=self.row_weights,
            has_target=self.y is not None,
        )

    def fold_of_all_rows(self) -> Fold:
        """Fit the black box on all rows."""
        return fold_of_all_rows(
            self.estimator,
            self.X,
            self.target,
            fitted=self.is_fitted,
            groups=self.groups,
            sample_weight=self.row_weights,
            has_target=self.y is not None,
        )
