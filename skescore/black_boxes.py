"""Black boxes by name or from files, and whether a model suits data."""

from __future__ import annotations

import inspect
import io
import os
import zipfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import pandas as pd
from sklearn import ensemble
from sklearn.base import (
    BaseEstimator,
    ClassifierMixin,
    MetaEstimatorMixin,
    TransformerMixin,
    clone,
    is_classifier,
    is_regressor,
)
from sklearn.compose import TransformedTargetRegressor, make_column_transformer
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC, SVR
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from sklearn.utils.validation import check_is_fitted

from skescore._io import at_home, check_regular
from skescore._names import PICKLE_KINDS, no_model_text
from skescore._optional import ENGINE_EXTRAS, import_optional, install_commands
from skescore._text import did_you_mean, listed

if TYPE_CHECKING:
    from skescore.datasets import Dataset

__all__ = [
    "BLACK_BOXES",
    "BlackBoxError",
    "BlackBoxSpec",
    "CategoricalColumns",
    "LabelCodingClassifier",
    "SavedModelError",
    "UnknownEndingError",
    "check_matches",
    "load_black_box",
    "load_model",
    "make_black_box",
    "type_name",
]

_DROP = "drop (on the command line: --drop)"

_SKOPS_REMEDY = "Load it with the versions of the packages that saved it, or save the model again."
_PICKLE_REMEDY = "It is damaged, or needs the packages and versions with which it was saved."

RandomState = int | np.random.RandomState | None


class BlackBoxError(ValueError):
    """A black box cannot be made, loaded or used; the text says why and what to do."""


class BlackBoxSpec(NamedTuple):
    """How to make a black box for each task, given a random state, and one line about it.

    `scale` says what is scaled in front of it by default: nothing, the features, or for a
    regressor the target too: penalties and step sizes are set for targets of about one. `missing`
    says whether it takes missing values as they are. `categories` says how it takes categories:
    as 0/1 columns, as a data frame's categorical columns, or as text. `coded` says whether it takes
    class labels only as numbers from 0.
    """

    classifier: Callable[[RandomState], BaseEstimator]
    regressor: Callable[[RandomState], BaseEstimator]
    summary: str
    scale: tuple[str, ...] = ()
    missing: bool = False
    categories: Literal["one-hot", "columns", "text"] = "one-hot"
    coded: bool = False


def _boosting(package: str, name: str, **settings: Any) -> Any:
    """Make a model of a package that only some installations have."""
    purpose = f"The black box {package!r}"
    library = import_optional(package, extra="boosting", purpose=purpose)
    return getattr(library, name)(**settings)


_HISTOGRAMS = BlackBoxSpec(
    lambda seed: ensemble.HistGradientBoostingClassifier(random_state=seed),
    lambda seed: ensemble.HistGradientBoostingRegressor(random_state=seed),
    "scikit-learn's gradient-boosted trees on binned features",
    missing=True,
    categories="columns",
)
# One thread, so that sums do not depend on the machine.
_XGBOOST: dict[str, Any] = {"enable_categorical": True, "n_jobs": 1}
_LIGHTGBM: dict[str, Any] = {"verbose": -1, "n_jobs": 1}
_CATBOOST: dict[str, Any] = {
    "iterations": 300,
    "verbose": 0,
    "allow_writing_files": False,
    "thread_count": 1,
}
_BOTH = ("features", "target")

BLACK_BOXES: Mapping[str, BlackBoxSpec] = MappingProxyType(
    {
        "random-forest": BlackBoxSpec(
            lambda seed: ensemble.RandomForestClassifier(n_estimators=100, random_state=seed),
            lambda seed: ensemble.RandomForestRegressor(n_estimators=100, random_state=seed),
            "100 decision trees, averaged",
            missing=True,
        ),
        "gradient-boosting": _HISTOGRAMS,
        "hist-gradient-boosting": _HISTOGRAMS,
        "xgboost": BlackBoxSpec(
            lambda seed: _boosting("xgboost", "XGBClassifier", random_state=seed, **_XGBOOST),
            lambda seed: _boosting("xgboost", "XGBRegressor", random_state=seed, **_XGBOOST),
            "gradient-boosted trees of XGBoost",
            missing=True,
            categories="columns",
            coded=True,
        ),
        "lightgbm": BlackBoxSpec(
            lambda seed: _boosting("lightgbm", "LGBMClassifier", random_state=seed, **_LIGHTGBM),
            lambda seed: _boosting("lightgbm", "LGBMRegressor", random_state=seed, **_LIGHTGBM),
            "gradient-boosted trees of LightGBM",
            missing=True,
            categories="columns",
        ),
        "catboost": BlackBoxSpec(
            lambda seed: _boosting(
                "catboost", "CatBoostClassifier", random_state=_integer(seed), **_CATBOOST
            ),
            lambda seed: _boosting(
                "catboost", "CatBoostRegressor", random_state=_integer(seed), **_CATBOOST
            ),
            "gradient-boosted trees of CatBoost, with statistics of categories",
            missing=True,
            categories="text",
            coded=True,
        ),
        "mlp": BlackBoxSpec(
            lambda seed: MLPClassifier(max_iter=2000, random_state=seed),
            lambda seed: MLPRegressor(max_iter=2000, random_state=seed),
            "neural network, one layer of 100 units, on standardized features",
            _BOTH,
        ),
        "svm": BlackBoxSpec(
            lambda seed: SVC(),
            lambda seed: SVR(),
            "support vectors with a Gaussian kernel, on standardized features",
            _BOTH,
        ),
        "knn": BlackBoxSpec(
            lambda seed: KNeighborsClassifier(n_neighbors=5),
            lambda seed: KNeighborsRegressor(n_neighbors=5),
            "the five nearest neighbors, on standardized features",
            ("features",),
        ),
        "decision-tree": BlackBoxSpec(
            lambda seed: DecisionTreeClassifier(random_state=seed),
            lambda seed: DecisionTreeRegressor(random_state=seed),
            "one decision tree of any depth",
            missing=True,
        ),
    }
)


def _integer(seed: RandomState) -> int | None:
    """A seed for models that take only whole numbers."""
    return seed if seed is None or isinstance(seed, int) else int(seed.randint(2**31 - 1))


class LabelCodingClassifier(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):
    """A classifier that is shown the indices of labels, for models that take no other labels.

    Parameters
    ----------
    estimator : classifier
        Fitted on 0, 1, ... in place of the labels.

    Attributes
    ----------
    classes_ : ndarray
        The labels, sorted.
    estimator_ : classifier
        The fitted one.

    Examples
    --------
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> model = LabelCodingClassifier(DecisionTreeClassifier()).fit([[0], [1]], ["no", "yes"])
    >>> model.predict([[1], [0]]).tolist(), model.estimator_.predict([[1], [0]]).tolist()
    (['yes', 'no'], [1, 0])
    """

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator

    def fit(self, X: Any, y: Any, **fit_params: Any) -> LabelCodingClassifier:
        """Fit the estimator on the indices of the labels."""
        self.classes_, codes = np.unique(np.asarray(y), return_inverse=True)
        self.estimator_ = clone(self.estimator).fit(X, codes, **fit_params)
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Predict labels."""
        codes = np.asarray(self.estimator_.predict(X)).ravel().astype(np.intp)
        return np.asarray(self.classes_[codes])

    def predict_proba(self, X: Any) -> np.ndarray:
        """Predict the probability of each label."""
        return np.asarray(self.estimator_.predict_proba(X))


class CategoricalColumns(TransformerMixin, BaseEstimator):
    """Columns of a data frame as models of trees take categories.

    Parameters
    ----------
    columns : sequence of str
        The columns of categories.
    as_text : bool, default=False
        False: pandas' categorical columns with the values seen in training (the 255 most frequent
        ones), others are missing. True: text, in which a missing value is ``"missing"``.

    Examples
    --------
    >>> import pandas as pd
    >>> columns = CategoricalColumns(["color"]).fit(pd.DataFrame({"color": ["red", "blue"]}))
    >>> columns.transform(pd.DataFrame({"color": ["blue", "green"]}))["color"].tolist()
    ['blue', nan]
    """

    #: More are refused by scikit-learn's boosting on histograms.
    _MOST = 255

    def __init__(self, columns: Sequence[str], *, as_text: bool = False) -> None:
        self.columns = columns
        self.as_text = as_text

    def fit(self, X: Any, y: Any = None) -> CategoricalColumns:
        """Learn the values of the columns."""
        X = self._frame(X)
        self.feature_names_in_ = np.asarray(X.columns, dtype=object)
        self.n_features_in_ = len(X.columns)
        self.categories_ = {
            name: sorted(X[name].astype(object).value_counts().index[: self._MOST], key=str)
            for name in self.columns
        }
        return self

    def transform(self, X: Any) -> pd.DataFrame:
        """Give the frame with its categorical columns exchanged."""
        X = self._frame(X)[list(self.feature_names_in_)].copy(deep=False)
        for name, values in self.categories_.items():
            column = X[name].astype(object)
            if self.as_text:
                X[name] = column.where(column.notna(), "missing").astype(str)
            else:
                X[name] = pd.Categorical(column.where(column.isin(values)), categories=values)
        return X

    def _frame(self, X: Any) -> pd.DataFrame:
        if isinstance(X, pd.DataFrame):
            return X
        if hasattr(X, "columns"):  # of polars
            return pd.DataFrame({name: X[name].to_numpy() for name in X.columns})
        raise BlackBoxError(
            f"Columns of categories ({listed(list(self.columns))}) are found by name: pass a data "
            f"frame, got {type(X).__name__}."
        )


def make_black_box(
    name: str,
    task: str,
    random_state: RandomState = None,
    categories: Sequence[str] = (),
    *,
    scaled: bool = True,
    params: Mapping[str, Any] | None = None,
) -> BaseEstimator:
    """Make an unfitted black box by name.

    Use it where a person names the model to be explained instead of bringing a trained one.

    Parameters
    ----------
    name : str
        A name in `BLACK_BOXES`.
    task : {"classification", "regression"}
        Whether the model predicts labels or numbers.
    random_state : int, RandomState or None, default=None
        Seed of the models that draw random numbers; "svm" and "knn" draw none.
    categories : sequence of str, default=()
        Columns of names. Boosted trees take them as they are, other models get one 0/1 column per
        value.
    scaled : bool, default=True
        False leaves out the scalers that some models come with: they then see the data's units.
    params : mapping of str to value, optional
        Parameters of the model itself, such as ``{"n_neighbors": 9}``.

    Returns
    -------
    estimator : sklearn.base.BaseEstimator
        Unfitted. Models that depend on the units of the features come with a scaler in front;
        "mlp" and "svm" for regression scale the target as well and predict in its units. Models
        that take no missing values come with an imputer: medians, and columns that say where a
        value was missing.

    Raises
    ------
    BlackBoxError
        A ValueError: `name` or `task` is unknown, the model has no such parameter, or its package
        is not installed.

    Examples
    --------
    >>> from skescore.black_boxes import make_black_box
    >>> make_black_box("decision-tree", "classification", random_state=0)
    DecisionTreeClassifier(random_state=0)
    >>> make_black_box("knn", "regression", scaled=False, params={"n_neighbors": 9})[-1]
    KNeighborsRegressor(n_neighbors=9)
    """
    if task not in ("classification", "regression"):
        raise BlackBoxError(f"task must be 'classification' or 'regression', got {task!r}.")
    if name not in BLACK_BOXES:
        raise BlackBoxError(
            f"name must be that of a black box (on the command line: --black-box), got {name!r}. "
            f"{did_you_mean(name, BLACK_BOXES)}"
        )
    spec = BLACK_BOXES[name]
    classification = task == "classification"
    try:
        model = (spec.classifier if classification else spec.regressor)(random_state)
    except ImportError as error:
        raise BlackBoxError(str(error)) from error
    # CatBoost tells only of parameters that were set.
    known = {*model.get_params(deep=False), *inspect.signature(type(model)).parameters}
    for key, value in (params or {}).items():
        if key not in known:
            raise BlackBoxError(
                f"The black box {name!r} ({type(model).__name__}) has no parameter {key!r}. "
                f"{did_you_mean(key, known)}"
            )
        model.set_params(**{key: value})
    if categories and spec.categories == "text":
        model.set_params(cat_features=tuple(categories))
    if spec.coded and classification:
        model = LabelCodingClassifier(model)
    if scaled and "features" in spec.scale:
        model = make_pipeline(StandardScaler(), model)
    if not spec.missing:
        filled = SimpleImputer(strategy="median", add_indicator=True, keep_empty_features=True)
        steps = [step for _, step in model.steps] if isinstance(model, Pipeline) else [model]
        model = make_pipeline(filled, *steps)
    if scaled and "target" in spec.scale and task == "regression":
        model = TransformedTargetRegressor(model, transformer=StandardScaler())
    if not categories:
        return model
    if spec.categories != "one-hot":
        columns = CategoricalColumns(tuple(categories), as_text=spec.categories == "text")
        return make_pipeline(columns, model)
    # Dense, because not every model takes sparse rows; values never seen become all zeros.
    encoder = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    encoded = make_column_transformer((encoder, list(categories)), remainder="passthrough")
    return make_pipeline(encoded, model)


def check_matches(black_box: BaseEstimator, dataset: Dataset, *, output: int | None = None) -> None:
    """Refuse a fitted black box that was made for other data.

    Use it before a model that was trained elsewhere is queried: one for other columns either fails
    deep inside or, worse, predicts.

    Parameters
    ----------
    black_box : estimator
        Fitted classifier or regressor, frozen or not.
    dataset : Dataset
        What it shall be explained on.
    output : int, optional
        Index of the output that predicts the target, of a model with several.

    Raises
    ------
    BlackBoxError
        The model is of the other task, knows other feature names, another order or number of
        features, or shares no class with the data. Classes that only one side knows are allowed,
        and of a model fitted on an array only the number of its features is compared.

    Examples
    --------
    >>> from skescore.black_boxes import check_matches, make_black_box
    >>> from skescore.datasets import load_dataset
    >>> iris = load_dataset("iris")
    >>> tree = make_black_box("decision-tree", "classification").fit(iris.X, iris.y)
    >>> check_matches(tree, iris)
    """
    kind = "classification" if is_classifier(black_box) else "regression"
    if not (is_classifier(black_box) or is_regressor(black_box)):
        raise BlackBoxError(
            f"The black box {type_name(black_box)} is neither a classifier nor a regressor, so it "
            "does not predict the target. Pass a model that does. Extractors and `skescore tune` "
            "explain the labels of clusterers and outlier detectors too: CARTExtractor(model)."
            "fit(X)."
        )
    if kind != dataset.task:
        raise BlackBoxError(
            f"The black box {type_name(black_box)} is for {kind}, but {dataset.name} is for "
            f"{dataset.task} (target {dataset.y.name!r}). Pass another black box, another target, "
            f"or task={kind!r} (on the command line: --task {kind})."
        )
    _check_features(black_box, dataset)
    known = getattr(black_box, "classes_", None)
    if output is not None and isinstance(known, list):
        known = known[output]
    if kind == "classification" and known is not None:
        labels, known = list(dataset.class_counts), np.asarray(known).ravel().tolist()
        if not set(labels) & set(known):
            raise BlackBoxError(
                f"The black box knows the classes {listed(known)}, but the target "
                f"{dataset.y.name!r} of {dataset.name} has {listed(labels)}: none is shared. "
                "Write the labels as they were when the model was trained."
            )


def _check_features(black_box: BaseEstimator, dataset: Dataset) -> None:
    columns = [str(name) for name in dataset.X.columns]
    names = getattr(black_box, "feature_names_in_", None)
    if names is None:
        expected = getattr(black_box, "n_features_in_", None)
        if expected is not None and expected != len(columns):
            raise BlackBoxError(
                f"The black box was trained on {expected} features, but {dataset.name} has "
                f"{len(columns)}: {listed(columns)}. Add those that are missing, or leave out "
                f"those that are too many with {_DROP}."
            )
        return
    trained = [str(name) for name in names]
    missing = pd.Index(trained).difference(columns, sort=False).tolist()
    extra = pd.Index(columns).difference(trained, sort=False).tolist()
    if missing or extra:
        text = f"The black box and {dataset.name} have different features."
        if missing:
            text += f" Missing in the data: {listed(missing)}; add or rename columns."
        if extra:
            text += f" Unknown to the black box: {listed(extra)}; leave them out with {_DROP}."
        raise BlackBoxError(text)
    if trained != columns:
        place = int(np.argmax(np.array(trained) != np.array(columns)))
        raise BlackBoxError(
            f"The features of {dataset.name} are in another order than in the training of the "
            f"black box: number {place + 1} was {trained[place]!r} and is {columns[place]!r}. Put "
            f"the columns into this order: {listed(trained)}."
        )


def type_name(model: Any) -> str:
    """Give the name of a model's class, for texts.

    Parameters
    ----------
    model : object
        A frozen model is named by what it holds.

    Returns
    -------
    str
        Without the module.
    """
    inner = model.estimator if isinstance(model, FrozenEstimator) else model
    return type(inner).__name__


class SavedModelError(ValueError):
    """A file of a model cannot be used; the text says why and what to do."""


class UnknownEndingError(SavedModelError):
    """A file is of another kind than those that hold models."""


def load_model(path: str | os.PathLike[str], *, trust: bool = False, what: str = "a model") -> Any:
    """Load whatever object a file holds, without running code from it unless told to.

    Use it for anything that was trained elsewhere. A skops file is data; a pickle or joblib file is
    a program, so it is not even opened without `trust`.

    Parameters
    ----------
    path : str or path-like
        File ending in .skops, .pkl, .pickle or .joblib.
    trust : bool, default=False
        True means: the file comes from someone who may run code on this machine. It opens pickle
        and joblib files, and lets a skops file bring every type that it names.
    what : str, default="a model"
        What the caller wants, for the error about another ending.

    Returns
    -------
    object
        What was saved. Nothing is known of it yet.

    Raises
    ------
    SavedModelError
        A ValueError: the file cannot be read, or would need `trust`.
    UnknownEndingError
        A SavedModelError: the file has another ending.

    Notes
    -----
    The bytes that are checked are the bytes that are loaded, even when the file changes meanwhile.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from skescore.black_boxes import load_model
    >>> with tempfile.TemporaryDirectory() as folder:  # doctest: +ELLIPSIS
    ...     file = Path(folder) / "model.pkl"
    ...     _ = file.write_bytes(b"a program, for all we know")
    ...     load_model(file)
    Traceback (most recent call last):
        ...
    skescore.black_boxes.SavedModelError: ... was not opened: a .pkl file can run any code ...
    """
    where = os.fspath(path)
    file = at_home(path)
    suffix = file.suffix.lower()
    if not file.exists():
        raise SavedModelError(no_model_text(file, where))
    if file.is_dir():
        raise SavedModelError(f"{where} is a folder: pass the file of the model.")
    if suffix == ".skops":
        return _load_skops(file, where, trust)
    if suffix in PICKLE_KINDS:
        return _load_pickle(file, where, trust)
    raise UnknownEndingError(
        f"{where} has the ending {file.suffix!r}, but {what} must be a .skops file or, "
        f"with --trust, one of {', '.join(PICKLE_KINDS)}."
    )


def _load_skops(file: Path, where: str, trust: bool) -> Any:
    try:
        skops = import_optional("skops.io", extra="skops", purpose="Loading a .skops file")
    except ImportError as error:
        raise SavedModelError(f"{where} cannot be loaded. {error}") from error
    content = read_bytes(file, where)
    try:
        size = 0 if trust else _unpacked(content)
        untrusted = [] if size else skops.get_untrusted_types(data=content)
    except Exception as error:
        raise SavedModelError(
            f"{where} is not a skops file, or a damaged one ({_told(error)}). Save the model again "
            "with skops.io.dump."
        ) from error
    if size:
        raise SavedModelError(
            f"{where} has {len(content)} bytes that unpack to {size}, as no model does but one "
            "that was made to fill the memory. If you know who made the file, pass trust=True (on "
            "the command line: --trust)."
        )
    if untrusted and not trust:
        own = [name for name in untrusted if name.startswith("sklearn.")]
        foreign = [name for name in untrusted if name not in own]
        groups = [("of scikit-learn itself", own), ("of elsewhere", foreign)]
        named = "; ".join(f"{label}: {', '.join(names)}" for label, names in groups if names)
        raise SavedModelError(
            f"{where} holds types that skops does not trust by itself ({named}). If you know who "
            "made the file and find nothing strange in this list, pass trust=True (on the command "
            "line: --trust)."
        )
    try:
        return skops.loads(content, trusted=untrusted)
    except Exception as error:
        raise SavedModelError(
            f"{where} cannot be loaded ({_told(error)}). {_missing_package(error) or _SKOPS_REMEDY}"
        ) from error


def _unpacked(content: bytes) -> int:
    """How long an archive is without its compression, if that is far too much; else 0."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        size = sum(member.file_size for member in archive.infolist())
    return size if size > _LARGE_ARCHIVE and size > _COMPRESSION * len(content) else 0


#: Bytes of archives that may be packed as tightly as they like, and how tightly others may be.
_LARGE_ARCHIVE, _COMPRESSION = 1 << 26, 100


def _load_pickle(file: Path, where: str, trust: bool) -> Any:
    if not trust:
        raise SavedModelError(
            f"{where} was not opened: a {file.suffix} file can run any code when it is read. "
            "Convert the model where it was trained, skops.io.dump(model, 'model.skops'), or, if "
            "you trust whoever made the file, pass trust=True (on the command line: --trust)."
        )
    import joblib

    content = read_bytes(file, where)
    try:
        return joblib.load(io.BytesIO(content))
    except Exception as error:
        raise SavedModelError(
            f"{where} cannot be loaded ({_told(error)}). "
            f"{_missing_package(error) or _PICKLE_REMEDY}"
        ) from error


def read_bytes(file: Path, where: str) -> bytes:
    """Read a file that must hold something."""
    check_regular(file, where)
    try:
        content = file.read_bytes()
    except OSError as error:
        raise SavedModelError(f"{where} cannot be read: {error.strerror or error}.") from error
    if not content:
        raise SavedModelError(f"{where} is empty: save it again.")
    return content


def _missing_package(error: BaseException | None) -> str:
    """The command that installs what a file asks for; empty if it is not known."""
    while error is not None:
        if isinstance(error, ModuleNotFoundError) and error.name:
            package = error.name.partition(".")[0]
            if package not in ENGINE_EXTRAS:
                return f"It needs the package {package!r}, which is not installed."
            commands = " && ".join(install_commands(ENGINE_EXTRAS[package]))
            return f"It needs the package {package!r}. Run: {commands}"
        error = error.__cause__ or error.__context__
    return ""


def _told(error: Exception) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


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
    >>> from skescore.black_boxes import load_black_box
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
