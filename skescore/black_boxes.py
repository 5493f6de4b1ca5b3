"""Black boxes by name, trained where nobody brings a model; and whether a model suits data."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn import ensemble
from sklearn.base import BaseEstimator, is_classifier, is_regressor
from sklearn.compose import TransformedTargetRegressor, make_column_transformer
from sklearn.frozen import FrozenEstimator
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC, SVR
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from skescore._text import did_you_mean, listed

if TYPE_CHECKING:
    from skescore.datasets._loading import Dataset

__all__ = [
    "BLACK_BOXES",
    "BlackBoxError",
    "BlackBoxSpec",
    "check_matches",
    "make_black_box",
    "type_name",
]

_DROP = "drop (on the command line: --drop)"

RandomState = int | np.random.RandomState | None


class BlackBoxError(ValueError):
    """A black box cannot be made, loaded or used; the text says why and what to do."""


class BlackBoxSpec(NamedTuple):
    """How to make a black box for each task, given a random state, and one line about it.

    `scale` says what is scaled in front of it by default: nothing, the features, or for a
    regressor the target too: penalties and step sizes are set for targets of about one.
    """

    classifier: Callable[[RandomState], BaseEstimator]
    regressor: Callable[[RandomState], BaseEstimator]
    summary: str
    scale: tuple[str, ...] = ()


_BOTH = ("features", "target")

BLACK_BOXES: Mapping[str, BlackBoxSpec] = MappingProxyType(
    {
        "random-forest": BlackBoxSpec(
            lambda seed: ensemble.RandomForestClassifier(n_estimators=100, random_state=seed),
            lambda seed: ensemble.RandomForestRegressor(n_estimators=100, random_state=seed),
            "100 decision trees, averaged",
        ),
        "gradient-boosting": BlackBoxSpec(
            lambda seed: ensemble.HistGradientBoostingClassifier(random_state=seed),
            lambda seed: ensemble.HistGradientBoostingRegressor(random_state=seed),
            "gradient-boosted trees on binned features",
        ),
        "mlp": BlackBoxSpec(
            lambda seed: MLPClassifier(max_iter=2000, random_state=seed),
            lambda seed: MLPRegressor(max_iter=2000, random_state=seed),
            "neural network, one layer of 100 units, on standardised features",
            _BOTH,
        ),
        "svm": BlackBoxSpec(
            lambda seed: SVC(),
            lambda seed: SVR(),
            "support vectors with a Gaussian kernel, on standardised features",
            _BOTH,
        ),
        "knn": BlackBoxSpec(
            lambda seed: KNeighborsClassifier(n_neighbors=5),
            lambda seed: KNeighborsRegressor(n_neighbors=5),
            "the five nearest neighbours, on standardised features",
            ("features",),
        ),
        "decision-tree": BlackBoxSpec(
            lambda seed: DecisionTreeClassifier(random_state=seed),
            lambda seed: DecisionTreeRegressor(random_state=seed),
            "one decision tree of any depth",
        ),
    }
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
        Columns of names; the model gets one 0/1 column per value.
    scaled : bool, default=True
        False leaves out the scalers that some models come with: they then see the data's units.
    params : mapping of str to value, optional
        Parameters of the model itself, such as ``{"n_neighbors": 9}``.

    Returns
    -------
    estimator : sklearn.base.BaseEstimator
        Unfitted. Models that depend on the units of the features come with a scaler in front;
        "mlp" and "svm" for regression scale the target as well and predict in its units.

    Raises
    ------
    BlackBoxError
        A ValueError: `name` or `task` is unknown, or the model has no such parameter.

    Examples
    --------
    >>> from skescore.black_boxes import make_black_box
    >>> make_black_box("decision-tree", "classification", random_state=0)
    DecisionTreeClassifier(random_state=0)
    >>> make_black_box("knn", "regression", scaled=False, params={"n_neighbors": 9})
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
    model = (spec.classifier if task == "classification" else spec.regressor)(random_state)
    known = model.get_params(deep=False)
    for key, value in (params or {}).items():
        if key not in known:
            raise BlackBoxError(
                f"The black box {name!r} ({type(model).__name__}) has no parameter {key!r}. "
                f"{did_you_mean(key, known)}"
            )
        model.set_params(**{key: value})
    if scaled and "features" in spec.scale:
        model = make_pipeline(StandardScaler(), model)
    if scaled and "target" in spec.scale and task == "regression":
        model = TransformedTargetRegressor(model, transformer=StandardScaler())
    if not categories:
        return model
    # Dense, because not every model takes sparse rows; values never seen become all zeros.
    encoder = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    columns = make_column_transformer((encoder, list(categories)), remainder="passthrough")
    return make_pipeline(columns, model)


def check_matches(black_box: BaseEstimator, dataset: Dataset) -> None:
    """Refuse a fitted black box that was made for other data.

    Use it before a model that was trained elsewhere is queried: one for other columns either fails
    deep inside or, worse, predicts.

    Parameters
    ----------
    black_box : estimator
        Fitted classifier or regressor, frozen or not.
    dataset : Dataset
        What it shall be explained on.

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
            "cannot be explained. Pass a model that predicts the target."
        )
    if kind != dataset.task:
        raise BlackBoxError(
            f"The black box {type_name(black_box)} is for {kind}, but {dataset.name} is for "
            f"{dataset.task} (target {dataset.y.name!r}). Pass another black box, another target, "
            f"or task={kind!r} (on the command line: --task {kind})."
        )
    _check_features(black_box, dataset)
    known = getattr(black_box, "classes_", None)
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
