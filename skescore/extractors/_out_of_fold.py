"""Predictions for training rows by models that were not fitted on them."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.utils.validation import _num_samples

from skescore._rows import take_rows
from skescore.black_boxes import fit_weighted
from skescore.extractors._oracle import Oracle

#: Value of `sampling` that labels the training rows out of fold.
OUT_OF_FOLD = "out-of-fold"
#: Number of folds.
_N_FOLDS = 5


def out_of_fold_predictions(
    estimator: Any,
    X: Any,
    y: Any,
    task: str,
    *,
    sample_weight: np.ndarray | None = None,
    seed: int = 0,
) -> np.ndarray:
    """Predict each row by a clone of the black box that was fitted on the other folds.

    An overfitted model reproduces the labels of its training rows. Out-of-fold predictions show how
    it predicts unseen rows.

    Parameters
    ----------
    estimator : estimator
        The black box, clones of which are fitted.
    X : array-like or DataFrame of shape (n_rows, n_features)
        The rows.
    y : array-like of shape (n_rows,)
        Targets of the rows.
    task : {"classification", "regression"}
        The task; for classification, the folds are stratified by class.
    sample_weight : ndarray of shape (n_rows,), optional
        Weights of the rows.
    seed : int, default=0
        Seed of the folds.

    Returns
    -------
    ndarray of shape (n_rows,)
        The predictions.

    Raises
    ------
    ValueError
        If there are fewer than two rows.
    """
    n_rows = _num_samples(X)
    if n_rows < 2:
        raise ValueError(
            f"sampling={OUT_OF_FOLD!r} divides the rows into folds, which needs at least 2 rows, "
            f"got {n_rows}. Pass more rows, or sampling=None."
        )
    kind, largest = KFold, n_rows
    if task == "classification":
        largest_class = int(pd.Series(np.ravel(y)).value_counts().max())
        if largest_class > 1:
            kind, largest = StratifiedKFold, largest_class
    folds = kind(min(_N_FOLDS, largest), shuffle=True, random_state=seed)
    parts, order = [], []
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The least populated class")
        splits = list(folds.split(np.zeros(n_rows), y))
    for train, test in splits:
        weights = None if sample_weight is None else sample_weight[train]
        model = fit_weighted(estimator, take_rows(X, train), take_rows(y, train), weights)
        parts.append(Oracle(model, like=X).query(take_rows(X, test)))
        order.append(test)
    return np.asarray(np.concatenate(parts)[np.argsort(np.concatenate(order))])
