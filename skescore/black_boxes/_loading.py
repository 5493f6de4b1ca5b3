"""Loading of black boxes from files, without running code unless the file is trusted."""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import io
import json
import os
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline

from skescore._io import check_regular, expand_home
from skescore._names import PICKLE_KINDS, no_model_text
from skescore._optional import ENGINE_EXTRAS, import_optional, install_commands
from skescore._xgboost_categories import stored_categories
from skescore.black_boxes._adapters import CallableClassifier, CallableRegressor, as_black_box
from skescore.black_boxes._catalog import ModelCategories, encoded_categories
from skescore.black_boxes._compatibility import type_name
from skescore.black_boxes._errors import BlackBoxError, SavedModelError, UnknownEndingError
from skescore.black_boxes._fitting import is_fitted
from skescore.black_boxes._onnx import OnnxPredictor

_SKOPS_REMEDY = "Load it with the versions of the packages that saved it, or save the model again."
_PICKLE_REMEDY = "It is damaged, or needs the packages and versions with which it was saved."


def load_model(
    path: str | os.PathLike[str], *, trust: bool = False, description: str = "a model"
) -> Any:
    """Load an object from a file, without running its code unless it is trusted.

    A file of skops, ONNX, XGBoost or CatBoost holds data. A pickle or joblib file is a program, so
    it is not opened without `trust`.

    Parameters
    ----------
    path : str or path-like
        File ending in .skops, .onnx, .ubj or .json (XGBoost), .cbm (CatBoost), .pkl, .pickle or
        .joblib, or the folder of an AutoGluon predictor.
    trust : bool, default=False
        Whether the author of the file may run code on this machine. True opens pickle and joblib
        files, and allows every type in a skops file.
    description : str, default="a model"
        Description of the object for error messages.

    Returns
    -------
    object
        The saved object, which is not checked.

    Raises
    ------
    SavedModelError
        If the file cannot be read, or requires `trust`; it is a ValueError.
    UnknownEndingError
        If the file has another ending; it is a SavedModelError.

    Notes
    -----
    The loaded bytes are those that were checked, even if the file changes in the meantime.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from skescore.black_boxes import load_model
    >>> with tempfile.TemporaryDirectory() as folder:  # doctest: +ELLIPSIS
    ...     file = Path(folder) / "model.pkl"
    ...     _ = file.write_bytes(b"content of a pickle")
    ...     load_model(file)
    Traceback (most recent call last):
        ...
    skescore.black_boxes...SavedModelError: ... was not opened: a .pkl file can run any code ...
    """
    where = os.fspath(path)
    file = expand_home(path)
    suffix = file.suffix.lower()
    if not file.exists():
        raise SavedModelError(no_model_text(file, where))
    if file.is_dir():
        return _load_autogluon(file, where, trust)
    if suffix == ".skops":
        return _load_skops(file, where, trust)
    if suffix == ".onnx":
        return _load_onnx(file, where)
    if suffix in (".ubj", ".json", ".cbm"):
        read = _read_catboost if suffix == ".cbm" else _read_xgboost
        with _explain_damage(where, "Save the model again with save_model."):
            return read(read_bytes(file, where), where)
    if suffix in PICKLE_KINDS:
        return _load_pickle(file, where, trust)
    raise UnknownEndingError(
        f"{where} has the ending {file.suffix!r}, but {description} must be a file of skops "
        "(.skops), ONNX (.onnx), XGBoost (.ubj, .json) or CatBoost (.cbm) or, with --trust, one of "
        f"{', '.join(PICKLE_KINDS)}."
    )


@contextlib.contextmanager
def _explain_damage(where: str, remedy: str) -> Iterator[None]:
    """Raise a SavedModelError with a remedy if a model cannot be loaded."""
    try:
        yield
    except SavedModelError:
        raise
    except Exception as error:
        raise SavedModelError(
            f"{where} cannot be loaded ({_describe_error(error)}). "
            f"{_missing_package(error) or remedy}"
        ) from error


def _load_skops(file: Path, where: str, trust: bool) -> Any:
    try:
        skops = import_optional("skops.io", extra="skops", purpose="Loading a .skops file")
    except ImportError as error:
        raise SavedModelError(f"{where} cannot be loaded. {error}") from error
    content = read_bytes(file, where)
    try:
        size = 0 if trust else _suspicious_size(content)
        untrusted = [] if size else skops.get_untrusted_types(data=content)
    except Exception as error:
        raise SavedModelError(
            f"{where} is not a skops file, or it is damaged ({_describe_error(error)}). Save the "
            "model again with skops.io.dump."
        ) from error
    if size:
        raise SavedModelError(
            f"{where} has {len(content)} bytes that unpack to {size}, which can only "
            "be meant to exhaust the memory. If you know who made the file, pass trust=True (on "
            "the command line: --trust)."
        )
    if untrusted and not trust:
        sklearn_types = [name for name in untrusted if name.startswith("sklearn.")]
        other_types = [name for name in untrusted if name not in sklearn_types]
        groups = [("of scikit-learn itself", sklearn_types), ("of other packages", other_types)]
        type_groups = "; ".join(f"{label}: {', '.join(names)}" for label, names in groups if names)
        raise SavedModelError(
            f"{where} holds types that skops does not trust by itself ({type_groups}). If you know "
            "who made the file and find nothing strange in this list, pass trust=True (on the "
            "command line: --trust)."
        )
    with _explain_damage(where, _SKOPS_REMEDY):
        return skops.loads(content, trusted=untrusted)


def _load_onnx(file: Path, where: str) -> Any:
    content = read_bytes(file, where)
    try:
        predictor = OnnxPredictor(content)
    except Exception as error:
        raise SavedModelError(f"{where} cannot be loaded. {error}") from error
    return (CallableClassifier if predictor.is_classifier else CallableRegressor)(predictor)


def _read_xgboost(content: bytes, where: str) -> Any:
    xgboost = import_optional("xgboost", extra="boosting", purpose="Loading a model of XGBoost")
    booster = xgboost.Booster()
    try:
        booster.load_model(bytearray(content))
    except xgboost.core.XGBoostError as error:  # its text is a stack trace
        raise SavedModelError(
            f"{where} is not a model of XGBoost, or it is damaged. Save the model again with "
            "save_model."
        ) from error
    objective = json.loads(booster.save_config())["learner"]["objective"]["name"]
    is_classifier = objective in ("binary:logistic", "binary:hinge", "multi:softprob")
    if is_classifier or objective.startswith(("reg:", "count:")):
        # An estimator stores its kind: a regressor may predict shares, and a Booster has no kind.
        kind = json.loads(booster.attr("scikit_learn") or "{}").get("_estimator_type")
        is_classifier = is_classifier if kind is None else kind == "classifier"
        model = xgboost.XGBClassifier() if is_classifier else xgboost.XGBRegressor()
    else:
        raise SavedModelError(
            f"{where} has the objective {objective!r}, from which XGBoost does not predict labels "
            f"or numbers as its estimators do. {WRAP}"
        )
    model.load_model(bytearray(content))
    return model


def _read_catboost(content: bytes, where: str) -> Any:
    catboost = import_optional("catboost", extra="boosting", purpose="Loading a model of CatBoost")
    model = catboost.CatBoost().load_model(blob=content)
    loss = str(model.get_all_params().get("loss_function", ""))
    if any(word in loss for word in ("Rank", "Query", "Pair")):
        raise SavedModelError(
            f"{where} has the loss function {loss!r} of a ranking, but a black box must predict "
            f"labels or numbers. {WRAP}"
        )
    if len(model.classes_):
        return catboost.CatBoostClassifier().load_model(blob=content)
    # CatBoost reads no parameters from bytes, but a Poisson model predicts logarithms without them.
    return catboost.CatBoostRegressor(loss_function=loss or "RMSE").load_model(blob=content)


def _suspicious_size(content: bytes) -> int:
    """Return the uncompressed size of an archive if it is suspiciously large, otherwise 0."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        size = sum(member.file_size for member in archive.infolist())
    return size if size > _LARGE_ARCHIVE and size > _COMPRESSION * len(content) else 0


#: Number of uncompressed bytes that are always allowed, and largest compression ratio of more.
_LARGE_ARCHIVE, _COMPRESSION = 1 << 26, 100


def _load_autogluon(folder: Path, where: str, trust: bool) -> Any:
    """Load the folder of a TabularPredictor, which contains pickle files."""
    if not (folder / "predictor.pkl").is_file():
        raise SavedModelError(f"{where} is a folder: pass the file of the model.")
    if not trust:
        raise SavedModelError(
            f"{where} was not opened: the folder of an AutoGluon predictor contains pickle files, "
            "which can run any code when they are read. If you trust whoever made it, pass "
            "trust=True (on the command line: --trust)."
        )
    with _explain_damage(where, _PICKLE_REMEDY):
        tabular = importlib.import_module("autogluon.tabular")
        return tabular.TabularPredictor.load(str(folder))


def _load_pickle(file: Path, where: str, trust: bool) -> Any:
    if not trust:
        raise SavedModelError(
            f"{where} was not opened: a {file.suffix} file can run any code when it is read. "
            "Convert the model where it was trained, skops.io.dump(model, 'model.skops'), or, if "
            "you trust whoever made the file, pass trust=True (on the command line: --trust)."
        )
    import joblib

    content = read_bytes(file, where)
    with _explain_damage(where, _PICKLE_REMEDY):
        return joblib.load(io.BytesIO(content))


def read_bytes(file: Path, where: str) -> bytes:
    """Read a file; raise a SavedModelError if it is empty or cannot be read."""
    check_regular(file, where)
    try:
        content = file.read_bytes()
    except OSError as error:
        raise SavedModelError(f"{where} cannot be read: {error.strerror or error}.") from error
    if not content:
        raise SavedModelError(f"{where} is empty: save it again.")
    return content


def model_checksum(path: str | os.PathLike[str]) -> str:
    """Return the SHA-256 of a model's file, or of all files in its folder."""
    model = expand_home(path)
    if not model.is_dir():
        return hashlib.sha256(read_bytes(model, os.fspath(path))).hexdigest()
    files = sorted(file for file in model.rglob("*") if file.is_file())
    digests = [
        f"{file.relative_to(model).as_posix()} {hashlib.sha256(file.read_bytes()).hexdigest()}"
        for file in files
    ]
    return hashlib.sha256("\n".join(digests).encode()).hexdigest()


def _missing_package(error: BaseException | None) -> str:
    """Return a hint to install the package that a file requires; empty if none is missing."""
    while error is not None:
        if isinstance(error, ModuleNotFoundError) and error.name:
            package = error.name.partition(".")[0]
            if package not in ENGINE_EXTRAS:
                return f"It needs the package {package!r}, which is not installed."
            commands = " && ".join(install_commands(ENGINE_EXTRAS[package]))
            return f"It needs the package {package!r}. Run: {commands}"
        error = error.__cause__ or error.__context__
    return ""


def _describe_error(error: Exception) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


WRAP = (
    "Any other model can be explained from Python: wrap its predict function in "
    "CallableClassifier or CallableRegressor."
)


def load_black_box(path: str | os.PathLike[str], *, trust: bool = False) -> FrozenEstimator:
    """Load a trained model from a file, without running its code unless it is trusted.

    A file of skops, ONNX, XGBoost or CatBoost holds data. A pickle or joblib file is a program, so
    it is not opened without `trust`.

    Parameters
    ----------
    path : str or path-like
        File ending in .skops, .onnx, .ubj or .json (XGBoost), .cbm (CatBoost), .pkl, .pickle or
        .joblib, or the folder of an AutoGluon predictor. An ONNX model is a regressor if its first
        output holds floating-point numbers, otherwise a classifier. A file of XGBoost contains
        neither the labels of classes nor the parameter `missing`; its classifiers predict 0, 1 and
        so on. Models of FLAML and statsmodels are read from pickle files, see :func:`as_black_box`.
    trust : bool, default=False
        Whether the author of the file may run code on this machine. True opens pickle and joblib
        files, and allows every type in a skops file.

    Returns
    -------
    black_box : sklearn.frozen.FrozenEstimator
        The fitted model; `fit` and `clone` do not change it. A model of LightGBM or XGBoost with
        pandas' categorical columns is preceded by a step that converts text to its categories.

    Raises
    ------
    BlackBoxError
        If the file cannot be read, requires `trust`, or holds no fitted model; it is a ValueError.

    Notes
    -----
    Many of scikit-learn's models, such as random forests, also require `trust`, because they
    contain compiled types such as ``sklearn.tree._tree.Tree``, through which a forged file could
    corrupt the memory of the process. The error lists these types separately from those of other
    packages. The loaded bytes are those that were checked, even if the file changes.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from skescore.black_boxes import load_black_box
    >>> with tempfile.TemporaryDirectory() as folder:  # doctest: +ELLIPSIS
    ...     file = Path(folder) / "model.pkl"
    ...     _ = file.write_bytes(b"content of a pickle")
    ...     load_black_box(file)
    Traceback (most recent call last):
        ...
    skescore.black_boxes...BlackBoxError: ... was not opened: a .pkl file can run any code ...
    """
    try:
        return _as_frozen_model(
            load_model(path, trust=trust, description="a black box"), os.fspath(path)
        )
    except UnknownEndingError as error:
        raise BlackBoxError(f"{error} {WRAP}") from error.__cause__
    except SavedModelError as error:
        raise BlackBoxError(str(error)) from error.__cause__


def _as_frozen_model(model: Any, where: str) -> FrozenEstimator:
    kind = type_name(model)
    if isinstance(model, type) or not callable(getattr(model, "predict", None)):
        raise BlackBoxError(
            f"{where} holds an object of type {kind} without predict: save a fitted scikit-learn "
            "classifier or regressor, or a Pipeline that ends in one."
        )
    try:
        black_box = as_black_box(_with_category_columns(model))
    except NotFittedError as error:
        raise BlackBoxError(f"{where} holds a {kind} that is not fitted: fit it first.") from error
    except ValueError as error:
        raise BlackBoxError(f"{where} holds a {kind} that is incomplete: {error}") from error
    except TypeError as error:
        raise BlackBoxError(
            f"{where} holds a {kind}, which is not a scikit-learn estimator. {WRAP}"
        ) from error
    return black_box if isinstance(black_box, FrozenEstimator) else FrozenEstimator(black_box)


def _with_category_columns(model: Any) -> Any:
    """Let a model accept categorical columns as a table stores them, such as numbers as text."""
    if not is_fitted(model):
        return model
    library = type(model).__module__.partition(".")[0]
    categories: dict[str, Any] = {}
    if library == "sklearn":
        categories = encoded_categories(model)
        if not any(map(_may_be_numbers, categories.values())):
            return model
        names = model.feature_names_in_
    if library == "lightgbm":
        booster = model.booster_
        positions, labels = booster.params.get("categorical_column"), booster.pandas_categorical
        names = booster.feature_name()
        if labels and positions and len(labels) == len(positions):
            categories = {names[j]: values for j, values in zip(positions, labels, strict=True)}
    elif library == "xgboost":
        booster = model.get_booster()
        names = booster.feature_names
        if names and "c" in (booster.feature_types or ()):
            learner = json.loads(bytes(booster.save_raw("json")))["learner"]
            categories = {names[j]: labels for j, labels in stored_categories(learner).items()}
            for name, labels in categories.items():
                if isinstance(labels, str):
                    raise BlackBoxError(
                        f"XGBoost {labels} of {name!r}, so the texts of a table cannot be "
                        "converted to its codes. Save the model with XGBoost 3.1 or newer and "
                        "labels in ASCII, or explain it in Python with as_black_box(model) and "
                        "the columns that it was fitted on."
                    )
    if not categories:
        return model
    columns = ModelCategories(names, categories, as_columns=library != "sklearn")
    return Pipeline([("categories", columns), ("model", model)])


def _may_be_numbers(labels: Sequence[Any]) -> bool:
    """Return whether a table may have labels as numbers or booleans instead of texts."""
    texts = pd.Series([str(label) for label in labels], dtype=object)
    is_text = all(isinstance(label, str) for label in labels)
    return not is_text or bool(pd.to_numeric(texts, errors="coerce").notna().any())
