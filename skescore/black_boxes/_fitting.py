"""Tasks, fitting and predictions of black boxes."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from textwrap import shorten
from typing import Any

import numpy as np
import pandas as pd
import sklearn
from sklearn.base import (
    clone,
    is_classifier,
    is_clusterer,
    is_outlier_detector,
    is_regressor,
)
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV
from sklearn.utils.metadata_routing import get_routing_for_object
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _num_samples, check_is_fitted, has_fit_parameter

from skescore._rows import repeated_rows, take_rows
from skescore._text import listed
from skescore._validation import own_rows, python_value, row_weights


@dataclass(frozen=True)
class QueryCost:
    """Number of rows that a black box predicted, and the time that it took.

    Parameters
    ----------
    n_rows : int, default=0
        Number of rows, without rows whose predictions were cached.
    seconds : float, default=0.0
        Time in seconds, summed over processes.

    Examples
    --------
    >>> from skescore.black_boxes import QueryCost
    >>> cost = QueryCost(600, 1.5) + QueryCost(400, 0.5)
    >>> cost.n_rows, cost.seconds, cost.seconds_per_row
    (1000, 2.0, 0.002)
    """

    n_rows: int = 0
    seconds: float = 0.0

    @property
    def seconds_per_row(self) -> float:
        """Mean time per row in seconds; NaN without rows."""
        return self.seconds / self.n_rows if self.n_rows else math.nan

    def __add__(self, other: QueryCost) -> QueryCost:
        return QueryCost(self.n_rows + other.n_rows, self.seconds + other.seconds)

    def __sub__(self, other: QueryCost) -> QueryCost:
        return QueryCost(self.n_rows - other.n_rows, self.seconds - other.seconds)


def black_box_task(estimator: Any) -> str:
    """Return the task of a black box.

    Parameters
    ----------
    estimator : estimator
        A classifier, a regressor, or a clusterer or outlier detector, whose labels are classes.

    Returns
    -------
    {"classification", "regression"}
        The task.

    Raises
    ------
    TypeError
        If it is not such a scikit-learn estimator, or lacks ``predict``.

    Examples
    --------
    >>> from sklearn.cluster import KMeans
    >>> from sklearn.svm import SVC
    >>> black_box_task(SVC()), black_box_task(KMeans())
    ('classification', 'classification')
    """
    task = None
    # Classes and objects that are not scikit-learn estimators have no tags.
    if hasattr(estimator, "__sklearn_tags__"):
        with contextlib.suppress(AttributeError, TypeError):
            if is_classifier(estimator) or is_unsupervised(estimator):
                task = "classification"
            elif is_regressor(estimator):
                task = "regression"
    if task is not None and not hasattr(estimator, "predict"):
        hint = ""
        if is_unsupervised(estimator):
            hint = (
                " To explain the labels of the rows that it was fitted on, fit a classifier on "
                "(X, labels) and pass the classifier."
            )
        raise TypeError(
            f"estimator must have predict, which {type(estimator).__name__} lacks.{hint} Wrap a "
            "function that returns labels, or scores with classes=[...]: "
            "CallableClassifier(function)."
        )
    if task is not None:
        return task
    hint = (
        f" Pass an instance instead of the class: {estimator.__name__}()."
        if isinstance(estimator, type)
        else ""
    )
    raise TypeError(
        f"estimator must be a scikit-learn classifier, regressor, clusterer or outlier detector, "
        f"got {shorten(repr(estimator), 150, placeholder='...')}.{hint} Pass fitted models of "
        "FLAML, AutoGluon and statsmodels as as_black_box(model). Wrap any other model's function: "
        "CallableClassifier(model.predict) or CallableRegressor(model.predict)."
    )


def is_unsupervised(estimator: Any) -> bool:
    """Return whether a black box is a clusterer or an outlier detector, which needs no target.

    Parameters
    ----------
    estimator : estimator
        The black box.

    Returns
    -------
    bool
        True for clusterers and outlier detectors.
    """
    with contextlib.suppress(AttributeError, TypeError):
        return bool(is_clusterer(estimator) or is_outlier_detector(estimator))
    return False


@contextlib.contextmanager
def explained_refusal(estimator: Any, X: Any, call: Callable[[Any], Any]) -> Iterator[None]:
    """Add a remedy to the error of a black box that does not support missing values.

    Parameters
    ----------
    estimator : estimator
        The black box.
    X : array-like or DataFrame
        The rows that the black box gets.
    call : callable
        Repeats the failed call with other rows.
    """
    try:
        yield
    except TimeoutError:  # the time limit of a search
        raise
    except Exception as error:
        columns = lacking_columns(X)
        if not columns:
            raise
        name = type(getattr(estimator, "estimator", estimator)).__name__
        message = f"The black box {name} failed: {type(error).__name__}: {error}"
        try:
            call(_fill_missing_values(X))
        except TimeoutError:
            raise
        except Exception:
            raise ValueError(
                f"{message}\nIt also fails if the missing values of these {_num_samples(X)} rows "
                "are filled in, so they are not the cause. Pass rows with the column types that "
                "the model was fitted on."
            ) from error
        raise ValueError(
            f"{message}\nIt accepts the same rows without missing values (now in "
            f"{listed(columns)}). Put an imputer in front of it, "
            f"make_pipeline(SimpleImputer(), {name}(...)), and fit it again; or use a model that "
            "accepts missing values, such as HistGradientBoosting, XGBoost, LightGBM or CatBoost "
            "(on the command line: --black-box hist-gradient-boosting)."
        ) from error


def _fill_missing_values(X: Any) -> Any:
    """Replace missing values by another value of the column, or 0 if there is none."""
    frame = _as_pandas(X)
    complete = pd.DataFrame(
        {j: frame.iloc[:, j].bfill().ffill() for j in range(frame.shape[1])}, index=frame.index
    )
    complete = complete.fillna({j: 0 for j in complete if complete[j].isna().all()}).set_axis(
        frame.columns, axis=1
    )
    if isinstance(X, pd.DataFrame):
        return complete
    if hasattr(X, "columns"):
        return type(X)(complete.to_dict("series"))
    return complete.to_numpy()


def lacking_columns(X: Any) -> list[str]:
    """List the columns with missing values.

    Parameters
    ----------
    X : array-like or DataFrame
        The rows.

    Returns
    -------
    list of str
        Names of the columns; ``x0``, ``x1``, ... for an array.
    """
    frame = _as_pandas(X)
    names = [str(n) if hasattr(X, "columns") else f"x{n}" for n in frame.columns]
    return [name for name, lacks in zip(names, frame.isna().any(), strict=True) if lacks]


def _as_pandas(X: Any) -> pd.DataFrame:
    if hasattr(X, "columns") and not isinstance(X, pd.DataFrame):
        return pd.DataFrame({name: X[name].to_numpy() for name in X.columns})
    return X if isinstance(X, pd.DataFrame) else pd.DataFrame(np.asarray(X))


def fit_black_box(estimator: Any, X: Any, y: Any = None, **options: Any) -> Any:
    """Fit a clone of a black box.

    Parameters
    ----------
    estimator : estimator
        The black box.
    X : array-like or DataFrame
        The rows, unchanged.
    y : array-like, optional
        The target.
    **options
        Passed on to ``fit``.

    Returns
    -------
    estimator
        The fitted clone.

    Raises
    ------
    ValueError
        If the black box does not support missing values or cannot be cloned, with the remedy.
    """

    def fit(rows: Any) -> Any:
        # Some models modify rows or targets in place, so they get copies.
        return _clone_unfitted(estimator).fit(own_rows(rows), own_rows(y), **options)

    _clone_unfitted(estimator)  # errors of cloning are not due to the rows
    with explained_refusal(estimator, X, fit):
        return fit(X)


def _clone_unfitted(estimator: Any) -> Any:
    """Return a clone of a black box, which is fitted only if it is frozen."""
    try:
        return clone(estimator)
    except RuntimeError as error:
        raise ValueError(
            f"estimator cannot be cloned ({error}), so it cannot be fitted here. Fit "
            f"{type(estimator).__name__} yourself and pass as_black_box(model)."
        ) from error


def is_fitted(estimator: Any) -> bool:
    """Return whether a black box is fitted.

    Parameters
    ----------
    estimator : estimator
        The black box.

    Returns
    -------
    bool
        True if it is fitted.
    """
    while isinstance(estimator, FrozenEstimator):  # its check would copy tags, which is slow
        estimator = estimator.estimator
    try:
        check_is_fitted(estimator)
    except (NotFittedError, TypeError):
        return False
    return True


def is_prefit(estimator: Any) -> bool:
    """Return whether clones of a black box are fitted, as for a frozen model or a function.

    Parameters
    ----------
    estimator : estimator
        The black box.

    Returns
    -------
    bool
        True if clones are fitted.
    """
    return is_fitted(_clone_unfitted(estimator))


def accepts_groups(estimator: Any) -> bool:
    """Return whether `fit` of a black box uses groups of rows, like a search for parameters.

    Parameters
    ----------
    estimator : estimator
        The black box.

    Returns
    -------
    bool
        With metadata routing, True if it or one of its parts requests ``groups``; otherwise True if
        it is a ``GridSearchCV`` or ``RandomizedSearchCV``.

    Examples
    --------
    >>> from sklearn.model_selection import GridSearchCV
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from skescore.black_boxes import accepts_groups
    >>> tree = DecisionTreeClassifier()
    >>> accepts_groups(tree), accepts_groups(GridSearchCV(tree, {"max_depth": [2, 3]}))
    (False, True)
    """
    if sklearn.get_config()["enable_metadata_routing"]:
        routing = get_routing_for_object(estimator)
        return bool(routing.consumes("fit", ["groups"]))
    return isinstance(estimator, GridSearchCV | RandomizedSearchCV)


def fit_weighted(estimator: Any, X: Any, y: Any, weights: Any, /, **options: Any) -> Any:
    """Fit a clone of a black box on weighted rows, or on repeated rows if it accepts no weights."""
    if weights is None:
        return fit_black_box(estimator, X, y, **options)
    without_routing = not sklearn.get_config()["enable_metadata_routing"]
    if "sample_weight" in options or (
        without_routing and has_fit_parameter(estimator, "sample_weight")
    ):
        weights = row_weights(weights, _num_samples(X), finite_sum=False)
        return fit_black_box(estimator, X, y, **(options | {"sample_weight": weights}))
    row_index = repeated_rows(weights, _num_samples(X))
    if "groups" in options:
        options = options | {"groups": take_rows(options["groups"], row_index)}
    return fit_black_box(estimator, take_rows(X, row_index), take_rows(y, row_index), **options)


def finite_predictions(predictions: np.ndarray) -> np.ndarray:
    """Return the predictions of a regressor as floats; raise a ValueError unless all are finite."""
    try:
        if predictions.dtype.kind in "US":
            raise TypeError("text")  # NumPy would read "1" as a number
        if predictions.dtype.kind == "c":
            raise TypeError("complex")  # NumPy would drop the imaginary part
        numbers = np.asarray(predictions, dtype=float)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"The black box is a regressor but predicted {python_value(predictions[0])!r}, "
            "which is not a number. Wrap the function of a classifier in CallableClassifier."
        ) from error
    is_bad = ~np.isfinite(numbers)
    if is_bad.any():
        row = int(np.flatnonzero(is_bad)[0])
        raise ValueError(
            f"The black box predicted {numbers[row]} for row {row} ({int(is_bad.sum())} of "
            f"{len(numbers)} rows). Rules need finite numbers; correct the black box or leave out "
            "those rows."
        )
    return numbers


def observed_classes(predictions: np.ndarray, y: np.ndarray | None) -> np.ndarray:
    """Return the classes in the predictions and y, for a black box without ``classes_``."""
    try:
        if predictions.dtype.kind == "f" and not np.isfinite(predictions).all():
            raise ValueError("some predictions are not finite")
        check_classification_targets(predictions)
        if y is None:
            return np.unique(predictions)
        if is_text(y) != is_text(predictions):
            raise ValueError(f"y holds labels such as {python_value(y[0])!r}")
        return np.unique(np.concatenate([y, predictions]))
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"The black box predicted {python_value(predictions[0])!r}, which is not a valid "
            f"label: {error}. It must predict one label per row, of the same kind as y; a "
            "CallableClassifier whose function returns scores needs classes=[...] and one column "
            "of scores per class."
        ) from error


def is_text(labels: np.ndarray) -> bool:
    return labels.dtype.kind in "US" or isinstance(labels[0], str)


def encode_labels(predictions: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Return the index of each label among the classes; raise a ValueError for other labels."""
    are_codes = predictions.dtype.kind in "iu" and np.array_equal(classes, np.arange(len(classes)))
    if are_codes and predictions.min(initial=0) >= 0 and predictions.max(initial=0) < len(classes):
        return predictions.astype(np.intp, copy=False)  # the labels are indices
    if predictions.dtype.kind == classes.dtype.kind == "U":
        index = {label: code for code, label in enumerate(classes.tolist())}
        codes = np.array([index.get(label, -1) for label in predictions.tolist()], dtype=np.intp)
    else:
        # With objects, pandas does not convert text to an Arrow array first.
        dtype = object if predictions.dtype == classes.dtype == object else None
        codes = pd.Index(classes, dtype=dtype).get_indexer(pd.Index(predictions, dtype=dtype))
    if (codes < 0).any():
        row = int(np.flatnonzero(codes < 0)[0])
        raise ValueError(
            f"The black box predicted {python_value(predictions[row])!r}, which is not among the "
            f"classes {classes.tolist()}. If it is a CallableClassifier, pass classes=[...] with "
            "all its labels."
        )
    return codes.astype(np.intp)
