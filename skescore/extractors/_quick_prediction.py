"""Predictions of scikit-learn's forests without what their `predict` costs per call.

An extractor queries its black box hundreds of times for a few hundred points, and a forest of 100
trees spends nearly all of such a call on checks, threads and the encoder in front of it. Here its
trees are asked themselves, in the same order, so that predictions are the same to the last bit.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder
from sklearn.utils import get_tags

_CLASSIFIERS = (RandomForestClassifier, ExtraTreesClassifier)
_REGRESSORS = (RandomForestRegressor, ExtraTreesRegressor)


def quick_predict(estimator: Any, X: Any) -> np.ndarray:
    """Predict rows: what ``estimator.predict(X)`` gives, sooner where it is a forest.

    A forest by itself, or behind a :class:`~sklearn.compose.ColumnTransformer` that turns columns
    into 0/1 columns and lets others through, is looked into; any other black box is just called, as
    is one whose rows would have to be complained about.

    Parameters
    ----------
    estimator : estimator
        The fitted black box.
    X : array-like or DataFrame of shape (n_rows, n_features)
        The rows, in the container that it was fitted on.

    Returns
    -------
    ndarray
        Its predictions.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> forest = RandomForestClassifier(n_estimators=10, random_state=0).fit(X, y)
    >>> bool((quick_predict(forest, X) == forest.predict(X)).all())
    True
    """
    model = estimator.estimator if type(estimator) is FrozenEstimator else estimator
    first, forest = None, model
    if type(model) is Pipeline and len(model.steps) == 2:
        first, forest = model.steps[0][1], model.steps[1][1]
    if type(forest) in (*_CLASSIFIERS, *_REGRESSORS) and _is_simple(forest):
        rows = _numbers(forest, X) if first is None else _encoded(first, X)
        if rows is not None and _is_sound(forest, rows):
            return _of_trees(forest, rows)
    return np.asarray(estimator.predict(X))


def _is_simple(forest: Any) -> bool:
    """Whether one output is predicted, by one thread, of which nothing is told."""
    fitted = hasattr(forest, "estimators_") and forest.n_outputs_ == 1
    return fitted and forest.n_jobs in (None, 1) and not forest.verbose


def _is_sound(forest: Any, rows: np.ndarray) -> bool:
    """Whether the forest would take the rows without complaint."""
    if rows.shape[1] != forest.n_features_in_ or not len(rows) or np.isinf(rows).any():
        return False
    return not np.isnan(rows).any() or get_tags(forest.estimators_[0]).input_tags.allow_nan


def _of_trees(forest: Any, rows: np.ndarray) -> np.ndarray:
    trees = forest.estimators_
    classifies = type(forest) in _CLASSIFIERS
    total = np.zeros((len(rows), forest.n_classes_ if classifies else 1))
    for tree in trees:
        total += tree.tree_.predict(rows)
    total /= len(trees)
    return forest.classes_.take(total.argmax(axis=1), axis=0) if classifies else total[:, 0]


def _numbers(forest: Any, X: Any) -> np.ndarray | None:
    """The rows as a forest's trees take them; None if they are not what it was fitted on."""
    if isinstance(X, pd.DataFrame):
        if list(X.columns) != list(getattr(forest, "feature_names_in_", ())):
            return None
        plain = all(isinstance(t, np.dtype) and t.kind in "fiu" for t in X.dtypes)
        X = X.to_numpy(dtype=float) if plain else None
    elif hasattr(forest, "feature_names_in_"):
        return None
    if not isinstance(X, np.ndarray) or X.ndim != 2 or X.dtype.kind not in "fiu":
        return None
    return _floats(X)


def _numeric(columns: list[pd.Series]) -> np.ndarray | None:
    """The numbers of some columns; None if they hold anything else."""
    if not all(isinstance(c.dtype, np.dtype) and c.dtype.kind in "fiu" for c in columns):
        return None
    return np.column_stack([column.to_numpy(dtype=float) for column in columns])


def _floats(numbers: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore"):  # what is too large is infinite, and complained about
        return np.ascontiguousarray(numbers, dtype=np.float32)


def _encoded(transformer: Any, X: Any) -> np.ndarray | None:
    """The rows as a column transformer gives them; None if that is not known here."""
    if type(transformer) is not ColumnTransformer or not isinstance(X, pd.DataFrame):
        return None
    if list(X.columns) != list(getattr(transformer, "feature_names_in_", ())):
        return None
    blocks = []
    for _, part, columns in transformer.transformers_:
        if isinstance(columns, list) and not columns:
            continue
        some = _selected(X, columns)
        if some is None:
            return None
        if type(part) is OneHotEncoder:
            block = _one_hot(part, some)
        elif part == "passthrough" or (type(part) is FunctionTransformer and part.func is None):
            block = _numeric(some)
        else:
            return None
        if block is None:
            return None
        blocks.append(block)
    weights = transformer.transformer_weights
    return _floats(np.hstack(blocks)) if blocks and not weights else None


def _selected(X: pd.DataFrame, columns: Any) -> list[pd.Series] | None:
    """Columns by a list of names or of indices; None for what else they may be selected by."""
    kinds = {type(column) for column in columns} if isinstance(columns, list) else set()
    if not X.columns.is_unique or kinds not in ({str}, {int}):
        return None
    return [X[column] if kinds == {str} else X.iloc[:, column] for column in columns]


def _one_hot(encoder: OneHotEncoder, columns: list[pd.Series]) -> np.ndarray | None:
    """Columns of 0 and 1, all 0 for what was never seen; None if the encoder does otherwise."""
    merges = encoder.min_frequency is not None or encoder.max_categories is not None
    if encoder.handle_unknown != "ignore" or encoder.drop is not None or merges:
        return None
    sizes = [len(known) for known in encoder.categories_]
    n_rows, start = len(columns[0]), 0
    result, rows = np.zeros((n_rows, sum(sizes))), np.arange(n_rows)
    for known, column in zip(encoder.categories_, columns, strict=True):
        labels, values = known.tolist(), column.to_numpy(dtype=object).tolist()
        if any(value is pd.NA for value in (*labels, *values)):
            return None
        # A dict is quicker for some hundred rows than what larger tables need.
        place = {value: at for at, value in enumerate(labels) if value == value}
        gap = len(place) if len(place) < len(labels) else -1  # NaN comes last
        codes = np.array([place.get(v, -1) if v == v else gap for v in values], dtype=np.intp)
        there = codes >= 0
        result[rows[there], start + codes[there]] = 1.0
        start += len(known)
    return result
