"""What can be told of a black box before it is asked."""

from __future__ import annotations

import contextlib
from typing import Any

from sklearn.base import clone, is_classifier, is_regressor
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted


def black_box_task(estimator: Any) -> str:
    """Tell classifiers from regressors.

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
    # What is no scikit-learn estimator has no tags to look at, nor has a class.
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
    """Tell whether a black box can be asked as it is.

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
    """Tell whether a clone of the black box would still be fitted (frozen, or a function).

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
