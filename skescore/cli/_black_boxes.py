"""Black boxes from files, loaded without running a file's code."""

from __future__ import annotations

import os
from typing import Any

from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.utils.validation import check_is_fitted

from skescore.black_boxes import BlackBoxError, type_name
from skescore.cli._models import SavedModelError, UnknownEndingError, load_model

__all__ = ["load_black_box"]

WRAP = (
    "Any other model, ONNX ones too, can be explained from Python: wrap its predict function in "
    "CallableClassifier or CallableRegressor."
)


def load_black_box(path: str | os.PathLike[str], *, trust: bool = False) -> FrozenEstimator:
    """Load a trained model from a file, without running code from it unless told to.

    Use it for a model trained elsewhere. A skops file is data; a pickle or joblib file is a
    program, so it is not even opened without `trust`.

    Parameters
    ----------
    path : str or path-like
        File ending in .skops, .pkl, .pickle or .joblib.
    trust : bool, default=False
        True means: the file comes from someone who may run code on this machine. It opens pickle
        and joblib files, and lets a skops file bring every type that it names.

    Returns
    -------
    black_box : sklearn.frozen.FrozenEstimator
        The fitted model; `fit` and `clone` leave it as it is.

    Raises
    ------
    BlackBoxError
        A ValueError: the file cannot be read, would need `trust`, or holds no fitted model.

    Notes
    -----
    Many of scikit-learn's own models need `trust` as well, random forests among them: they hold
    compiled parts, such as ``sklearn.tree._tree.Tree``, through which a forged file could break the
    memory of the process. The error lists the types, those of scikit-learn apart from the rest.
    The bytes that are checked are the bytes that are loaded, even when the file changes meanwhile.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from skescore.cli._black_boxes import load_black_box
    >>> with tempfile.TemporaryDirectory() as folder:  # doctest: +ELLIPSIS
    ...     file = Path(folder) / "model.pkl"
    ...     _ = file.write_bytes(b"a program, for all we know")
    ...     load_black_box(file)
    Traceback (most recent call last):
        ...
    skescore.black_boxes.BlackBoxError: ... was not opened: a .pkl file can run any code ...
    """
    try:
        return _checked_model(load_model(path, trust=trust, what="a black box"), os.fspath(path))
    except UnknownEndingError as error:
        raise BlackBoxError(f"{error} {WRAP}") from error.__cause__
    except SavedModelError as error:
        raise BlackBoxError(str(error)) from error.__cause__


def _checked_model(model: Any, where: str) -> FrozenEstimator:
    kind = type_name(model)
    if isinstance(model, type) or not callable(getattr(model, "predict", None)):
        raise BlackBoxError(
            f"{where} holds an object of type {kind} without predict: save a fitted scikit-learn "
            "classifier or regressor, or a Pipeline that ends in one."
        )
    try:
        check_is_fitted(model)
    except NotFittedError as error:
        raise BlackBoxError(f"{where} holds a {kind} that is not fitted: fit it first.") from error
    except (TypeError, AttributeError) as error:
        raise BlackBoxError(
            f"{where} holds a {kind}, which is no scikit-learn estimator. {WRAP}"
        ) from error
    return model if isinstance(model, FrozenEstimator) else FrozenEstimator(model)
