"""Rules extracted from the training rows of a fold, with the held-out rows."""

from __future__ import annotations

import copy
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from skescore.tuning._objective import Fold

__all__ = ["HeldOutExtraction"]


@dataclass(frozen=True, eq=False)
class HeldOutExtraction:
    """An extractor fitted on the training rows of a fold, and the held-out rows of the fold.

    Parameters
    ----------
    extractor : extractor
        The fitted extractor.
    rows : ndarray of int
        Indices of the held-out rows among the rows that trials used.
    X : array-like or DataFrame of shape (n_rows, n_features)
        The held-out rows.
    y : array-like of shape (n_rows,) or None
        Their target; None if the search has none.
    model_predictions : ndarray of shape (n_rows,)
        Predictions of the black box of the fold.
    """

    extractor: Any
    rows: np.ndarray
    X: Any
    y: Any
    model_predictions: np.ndarray

    @classmethod
    def from_fold(cls, extractor: Any, fold: Fold) -> HeldOutExtraction:
        """Fit a clone of an extractor on the training rows of a fold."""
        # The black box is replaced before cloning, because clones share a cached black box.
        extractor = clone(copy.copy(extractor).set_params(estimator=fold.black_box))
        options = {} if fold.train_weight is None else {"sample_weight": fold.train_weight}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a candidate of the search, which reported them
            extractor.fit(fold.X_train, **options)
        return cls(
            extractor,
            fold.test,
            fold.X_test,
            fold.y_test if fold.has_target else None,
            np.asarray(fold.black_box.predict(fold.X_test)),
        )
