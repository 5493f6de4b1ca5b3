"""Black boxes: what they do, what they may predict, and functions in their place."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import (
    BaseEstimator,
    ClassifierMixin,
    RegressorMixin,
    clone,
    is_classifier,
    is_regressor,
)
from sklearn.exceptions import NotFittedError
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_array, check_is_fitted

from skescore._validation import python_value


def black_box_task(estimator: Any) -> str:
    """Find out whether a black box is a classifier or a regressor.

    Parameters
    ----------
    estimator : estimator
        The black box.

    Returns
    -------
    {"classification", "regression"}
        What it does.

    Raises
    ------
    TypeError
        If it is no scikit-learn classifier or regressor, or has no ``predict``.

    Examples
    --------
    >>> from sklearn.svm import SVC
    >>> black_box_task(SVC())
    'classification'
    """
    task = None
    # What is no scikit-learn estimator has no tags, nor has a class.
    if hasattr(estimator, "__sklearn_tags__"):
        with contextlib.suppress(AttributeError, TypeError):
            if is_classifier(estimator):
                task = "classification"
            elif is_regressor(estimator):
                task = "regression"
    if task is not None and not hasattr(estimator, "predict"):
        raise TypeError(
            f"estimator must have predict, which {type(estimator).__name__} lacks. Wrap a function "
            "that gives labels, or scores and classes=[...]: CallableClassifier(function)."
        )
    if task is not None:
        return task
    hint = (
        f" An instance is needed, not the class: {estimator.__name__}()."
        if isinstance(estimator, type)
        else ""
    )
    raise TypeError(
        f"estimator must be a scikit-learn classifier or regressor, got {estimator!r}.{hint} Wrap "
        "any other model's function: CallableClassifier(model.predict) or "
        "CallableRegressor(model.predict)."
    )


def is_fitted(estimator: Any) -> bool:
    """Return whether a black box can be queried as it is.

    Parameters
    ----------
    estimator : estimator
        The black box.

    Returns
    -------
    bool
        Whether it is fitted.
    """
    try:
        check_is_fitted(estimator)
    except (NotFittedError, TypeError):
        return False
    return True


def is_prefit(estimator: Any) -> bool:
    """Return whether a clone of the black box would still be fitted (frozen, or a function).

    Parameters
    ----------
    estimator : estimator
        The black box.

    Returns
    -------
    bool
        Whether cloning leaves it fitted.
    """
    return is_fitted(clone(estimator))


def finite_predictions(predictions: np.ndarray) -> np.ndarray:
    """Make floats of the black box's numbers; raises if some are none."""
    try:
        if predictions.dtype.kind in "US":
            raise TypeError("text")  # NumPy would read "1" as a number
        numbers = np.asarray(predictions, dtype=float)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"The black box is a regressor but predicted {python_value(predictions[0])!r}, no "
            "number. Is it a classifier? Then wrap its function in CallableClassifier."
        ) from error
    bad = ~np.isfinite(numbers)
    if bad.any():
        at = int(np.flatnonzero(bad)[0])
        raise ValueError(
            f"The black box predicted {numbers[at]} for row {at} ({int(bad.sum())} of "
            f"{len(numbers)} rows). Rules need finite numbers; mend the black box or leave out "
            "those rows."
        )
    return numbers


def observed_classes(predictions: np.ndarray, y: np.ndarray | None) -> np.ndarray:
    """Find the classes of a black box that does not declare them."""
    try:
        if predictions.dtype.kind == "f" and not np.isfinite(predictions).all():
            raise ValueError("some predictions are not finite")
        check_classification_targets(predictions)
        if y is None:
            return np.unique(predictions)
        if _is_text(y) != _is_text(predictions):
            raise ValueError(f"y holds labels such as {python_value(y[0])!r}")
        return np.unique(np.concatenate([y, predictions]))
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"The black box predicted {python_value(predictions[0])!r}, which does not do as a "
            f"label: {error}. It must predict one label per row, of the same kind as y; a "
            "CallableClassifier whose function gives scores needs classes=[...] and one column of "
            "scores per class."
        ) from error


def _is_text(labels: np.ndarray) -> bool:
    return labels.dtype.kind in "US" or isinstance(labels[0], str)


def encode_labels(predictions: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Index of each label among the classes; raises for a label that is not there."""
    numbered = predictions.dtype.kind in "iu" and np.array_equal(classes, np.arange(len(classes)))
    if numbered and predictions.min(initial=0) >= 0 and predictions.max(initial=0) < len(classes):
        return predictions.astype(np.intp, copy=False)  # they are indices already
    if predictions.dtype.kind == classes.dtype.kind == "U":
        index = {label: code for code, label in enumerate(classes.tolist())}
        codes = np.array([index.get(label, -1) for label in predictions.tolist()], dtype=np.intp)
    else:
        codes = pd.Index(classes).get_indexer(pd.Index(predictions))
    if (codes < 0).any():
        at = int(np.flatnonzero(codes < 0)[0])
        raise ValueError(
            f"The black box predicted {python_value(predictions[at])!r}, which is not among the "
            f"classes {classes.tolist()}. If it is a CallableClassifier, pass classes=[...] with "
            "all its labels."
        )
    return codes.astype(np.intp)


class _CallableEstimator(BaseEstimator):
    """What both adapters share. A function is always fitted, and never copied."""

    function: Callable[[Any], Any]

    def _call(self, X: Any) -> np.ndarray:
        """Call the function; what it gives per row, in an array of one or two dimensions."""
        if not callable(self.function):
            raise TypeError(
                f"function must be callable on rows, got {self.function!r}. Pass for example "
                f"{type(self).__name__}(model.predict)."
            )
        given = np.asarray(self.function(X))
        if given.ndim not in (1, 2) or len(given) != len(X):
            raise ValueError(
                f"function must predict every row, but for {len(X)} rows it gave an array of shape "
                f"{given.shape}. Let it return one prediction per row, in order."
            )
        return given[:, 0] if given.ndim == 2 and given.shape[1] == 1 else given

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __sklearn_clone__(self) -> Any:
        # A deep copy, as scikit-learn makes of parameters, would copy the model behind a method.
        return type(self)(**self.get_params(deep=False))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = False
        tags.no_validation = True
        tags._skip_test = True  # what it predicts is up to the function
        return tags


class CallableClassifier(ClassifierMixin, _CallableEstimator):
    """A function that gives a class for each row, as a fitted scikit-learn classifier.

    Parameters
    ----------
    function : callable
        Called with the rows (an array, or a frame where the extractor was given one). Returns one
        label per row, or scores of shape (n_rows, n_classes), of which the largest wins.
    classes : sequence, optional
        The labels. Needed where the function gives scores, and where it may predict a class that
        the training rows do not show.

    Raises
    ------
    TypeError
        At ``predict``, if `function` is not callable.
    ValueError
        At ``predict``, if the function does not predict every row, or gives scores and `classes` is
        missing or of another length.

    Examples
    --------
    >>> import numpy as np
    >>> from skescore.extractors import CallableClassifier, CARTExtractor
    >>> X = np.linspace(0, 1, 101).reshape(-1, 1)
    >>> black_box = CallableClassifier(lambda rows: np.where(rows[:, 0] > 0.5, "high", "low"))
    >>> print(CARTExtractor(black_box).fit(X).rules_)
    1. IF x0 ≤ 0.505 THEN low   [51 rows, 100 % pure]
    2. ELSE high   [50 rows, 100 % pure]
    """

    def __init__(
        self, function: Callable[[Any], Any], *, classes: Sequence[Any] | None = None
    ) -> None:
        self.function = function
        self.classes = classes

    def fit(self, X: Any, y: Any = None) -> CallableClassifier:
        """Do nothing: the function knows what it knows."""
        return self

    @property
    def classes_(self) -> np.ndarray:
        """The declared labels."""
        if self.classes is None:
            raise AttributeError("CallableClassifier was made without classes=[...].")
        labels = np.asarray(self.classes)
        if labels.ndim != 1 or len(labels) < 2 or len(set(labels.tolist())) < len(labels):
            raise ValueError(
                f"classes must list at least 2 labels, each of them once, got {self.classes!r}."
            )
        return labels

    def predict(self, X: Any) -> np.ndarray:
        """Call the function.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_rows, n_features)
            The rows, handed on as they are.

        Returns
        -------
        ndarray of shape (n_rows,)
            Labels.
        """
        given = self._call(X)
        if given.ndim == 1:
            return given
        n_known = 0 if self.classes is None else len(self.classes_)
        if given.shape[1] != n_known:
            raise ValueError(
                f"The function gave {given.shape[1]} scores per row, but classes lists "
                f"{n_known} labels. Pass CallableClassifier(function, classes=[...]) with one "
                "label per column."
            )
        scores = check_array(
            given, dtype=float, ensure_all_finite="allow-nan", input_name="the function's scores"
        )
        unsure = np.isnan(scores).any(axis=1)
        if unsure.any():
            raise ValueError(
                f"The function gave NaN among the scores of row {int(np.flatnonzero(unsure)[0])} "
                f"({int(unsure.sum())} of {len(scores)} rows), so no class is the largest there. "
                "Mend the function or leave out those rows."
            )
        return self.classes_[scores.argmax(axis=1)]


class CallableRegressor(RegressorMixin, _CallableEstimator):
    """A function that gives a number for each row, as a fitted scikit-learn regressor.

    Parameters
    ----------
    function : callable
        Called with the rows (an array, or a frame where the extractor was given one). Returns one
        number per row.

    Raises
    ------
    TypeError
        At ``predict``, if `function` is not callable.
    ValueError
        At ``predict``, if it does not give one finite number per row.

    Examples
    --------
    >>> import numpy as np
    >>> from skescore.extractors import CallableRegressor
    >>> CallableRegressor(lambda rows: 2 * rows[:, 0]).predict(np.array([[1.0], [2.0]])).tolist()
    [2.0, 4.0]
    """

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self.function = function

    def fit(self, X: Any, y: Any = None) -> CallableRegressor:
        """Do nothing: the function knows what it knows."""
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Call the function.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_rows, n_features)
            The rows, handed on as they are.

        Returns
        -------
        ndarray of shape (n_rows,)
            Numbers.
        """
        given = self._call(X)
        if given.ndim == 2:
            raise ValueError(
                f"function must predict one number per row, but it gave an array of shape "
                f"{given.shape}. Extract rules for one output at a time: "
                "CallableRegressor(lambda rows: function(rows)[:, 0])."
            )
        return finite_predictions(given)
