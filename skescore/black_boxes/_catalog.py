"""Catalog of black boxes that are created by name."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd
from sklearn import ensemble
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, TransformerMixin, clone
from sklearn.compose import (
    ColumnTransformer,
    TransformedTargetRegressor,
    make_column_transformer,
)
from sklearn.impute import SimpleImputer
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC, SVR
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from skescore._optional import import_optional
from skescore._text import did_you_mean, listed
from skescore._validation import python_value
from skescore.black_boxes._errors import BlackBoxError

RandomState = int | np.random.RandomState | None


class BlackBoxSpec(NamedTuple):
    """Factories of a black box for each task, and its requirements on the input.

    Factories take a random state; `summary` describes the model in one line. `scale` lists what is
    scaled by default: nothing, the features, or also the target of a regressor whose penalties and
    step sizes require targets of about 1. `missing` states whether the model accepts missing
    values. `categories` is the required format of categorical columns: 0/1 columns, categorical
    columns of a data frame, or text. `coded` states whether class labels must be 0, 1, ...
    """

    classifier: Callable[[RandomState], BaseEstimator]
    regressor: Callable[[RandomState], BaseEstimator]
    summary: str
    scale: tuple[str, ...] = ()
    missing: bool = False
    categories: Literal["one-hot", "columns", "text"] = "one-hot"
    coded: bool = False


def _boosting(package: str, name: str, **settings: Any) -> Any:
    """Create a model of an optional package."""
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
# With a single thread, sums do not depend on the machine.
_XGBOOST: dict[str, Any] = {"enable_categorical": True, "n_jobs": 1}
_LIGHTGBM: dict[str, Any] = {"verbose": -1, "n_jobs": 1}
_CATBOOST: dict[str, Any] = {
    "iterations": 300,
    "verbose": 0,
    "allow_writing_files": False,
    "thread_count": 1,
}
_FEATURES_AND_TARGET = ("features", "target")

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
            _FEATURES_AND_TARGET,
        ),
        "svm": BlackBoxSpec(
            lambda seed: SVC(),
            lambda seed: SVR(),
            "support vectors with a Gaussian kernel, on standardized features",
            _FEATURES_AND_TARGET,
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
    """Return a seed for models that accept only integers."""
    return seed if seed is None or isinstance(seed, int) else int(seed.randint(2**31 - 1))


class LabelCodingClassifier(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):
    """Classifier that encodes labels as 0, 1, ... for models that accept no other labels.

    Parameters
    ----------
    estimator : classifier
        Classifier to fit on the encoded labels.

    Attributes
    ----------
    classes_ : ndarray
        Sorted labels.
    estimator_ : classifier
        The fitted classifier.

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
    """Prepare the categorical columns of a data frame for tree-based models.

    Parameters
    ----------
    columns : sequence of str
        Names of the categorical columns.
    as_text : bool, default=False
        False: use pandas' categorical columns with the 255 most frequent training values; other
        values become missing. True: use text, with ``"missing"`` for missing values.

    Examples
    --------
    >>> import pandas as pd
    >>> columns = CategoricalColumns(["color"]).fit(pd.DataFrame({"color": ["red", "blue"]}))
    >>> columns.transform(pd.DataFrame({"color": ["blue", "green"]}))["color"].tolist()
    ['blue', nan]
    """

    #: Largest number of categories that scikit-learn's histogram boosting accepts.
    _MAX_CATEGORIES = 255

    def __init__(self, columns: Sequence[str], *, as_text: bool = False) -> None:
        self.columns = columns
        self.as_text = as_text

    def fit(self, X: Any, y: Any = None) -> CategoricalColumns:
        """Learn the values of the columns."""
        X = self._frame(X)
        self.feature_names_in_ = np.asarray(X.columns, dtype=object)
        self.n_features_in_ = len(X.columns)
        self.categories_ = {
            name: sorted(
                X[name].astype(object).value_counts().index[: self._MAX_CATEGORIES], key=str
            )
            for name in self.columns
        }
        return self

    def transform(self, X: Any) -> pd.DataFrame:
        """Return the frame with its categorical columns converted."""
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
        if hasattr(X, "columns"):  # a polars frame
            return pd.DataFrame({name: X[name].to_numpy() for name in X.columns})
        raise BlackBoxError(
            f"Categorical columns ({listed(list(self.columns))}) are selected by name: pass a data "
            f"frame, got {type(X).__name__}."
        )


class ModelCategories(CategoricalColumns):
    """Convert the values of a table to the categories that a fitted model was trained on.

    Tables from files hold categories as text, but LightGBM and XGBoost require pandas' categorical
    columns, whose categories their models identify by position, and encoders of scikit-learn may
    know numbers or booleans instead of text.

    Parameters
    ----------
    feature_names : sequence of str
        Names of the columns in the model.
    categories : mapping of str to sequence
        Categories of the categorical columns, in the order of the model.
    as_columns : bool, default=True
        Whether to use pandas' categorical columns, in which other values are missing.

    Examples
    --------
    >>> import pandas as pd
    >>> columns = ModelCategories(["size", "color"], {"color": ["red", "blue"]})
    >>> columns.transform(pd.DataFrame({"size": [1, 2], "color": ["blue", "green"]}))["color"].dtype
    CategoricalDtype(categories=['red', 'blue'], ordered=False, categories_dtype=str)
    """

    def __init__(
        self,
        feature_names: Sequence[str],
        categories: Mapping[str, Sequence[Any]],
        *,
        as_columns: bool = True,
    ) -> None:
        super().__init__(list(categories))
        self.feature_names = feature_names
        self.categories = categories
        self.as_columns = as_columns
        self.feature_names_in_ = np.asarray(feature_names, dtype=object)
        self.n_features_in_ = len(feature_names)
        self.categories_ = {name: list(values) for name, values in categories.items()}

    def fit(self, X: Any, y: Any = None) -> ModelCategories:
        """Return the converter, which is already fitted."""
        return self

    def transform(self, X: Any) -> pd.DataFrame:
        """Return the frame with its categorical columns converted."""
        frame = self._frame(X)
        if not set(self.feature_names_in_) <= {*frame.columns}:
            # Positions are used instead of names, in which LightGBM may have replaced blanks.
            frame = frame.set_axis(list(self.feature_names_in_), axis=1)
        frame = frame.copy(deep=False)
        for name in self.columns:
            frame[name] = _match_labels(frame[name], self.categories_[name])
        return super().transform(frame) if self.as_columns else frame


def _match_labels(column: pd.Series, labels: Sequence[Any]) -> pd.Series:
    """Replace each cell by the label with the same text, such as 1 for "1" or the reverse."""
    is_known = column.isin(labels) | column.isna()
    if is_known.all():
        return column
    label_of = {str(bool(label)): label for label in labels if label in (0, 1)}
    label_of |= {_label_text(label): label for label in labels}
    labels_of_cells = column.astype(object).map(
        lambda cell: label_of.get(_label_text(cell), cell), na_action="ignore"
    )
    return column.astype(object).where(is_known, labels_of_cells).infer_objects()


def _label_text(label: Any) -> str:
    """Return the text of a label; whole numbers have no point."""
    text = str(label)
    return text.partition(".")[0] if re.fullmatch(r"[+-]?\d+\.0+", text) else text


def encoded_categories(model: Any) -> dict[str, list[Any]]:
    """Return the categories of columns that a fitted model of scikit-learn encodes.

    Histogram boosting has an encoder of its own; in a Pipeline, the first steps encode.
    """
    model = getattr(model, "best_estimator_", model)
    names = getattr(model, "feature_names_in_", None)
    if names is None:
        return {}
    if isinstance(model, Pipeline):
        steps = [step for _, step in model.steps if step not in (None, "passthrough")]
        return _categories_of_encoder(steps[0], list(names)) if len(steps) > 1 else {}
    mask = getattr(model, "is_categorical_", None)
    preprocessor = getattr(model, "_preprocessor", None)
    if mask is None or preprocessor is None:
        return {}
    return _categories_of_encoder(preprocessor.named_transformers_["encoder"], names[mask])


def _categories_of_encoder(transformer: Any, names: Sequence[str]) -> dict[str, list[Any]]:
    """Return the categories of columns that a transformer encodes in its first step."""
    if isinstance(transformer, Pipeline):
        steps = [step for _, step in transformer.steps if not isinstance(step, SimpleImputer)]
        return _categories_of_encoder(steps[0], names) if steps else {}
    if isinstance(transformer, ColumnTransformer):
        result = {}
        for name, part, _ in transformer.transformers_:
            positions = transformer._transformer_to_input_indices[name]
            result.update(_categories_of_encoder(part, [names[j] for j in positions]))
        return result
    categories = getattr(transformer, "categories_", ())
    if len(categories) != len(names):
        return {}
    return {
        name: [python_value(label) for label in labels if not pd.isna(label)]
        for name, labels in zip(names, categories, strict=True)
    }


def make_black_box(
    name: str,
    task: str,
    random_state: RandomState = None,
    categories: Sequence[str] = (),
    *,
    scaled: bool = True,
    params: Mapping[str, Any] | None = None,
) -> BaseEstimator:
    """Create an unfitted black box by name.

    Use it if users select the model to explain by name instead of passing a trained one.

    Parameters
    ----------
    name : str
        Name in `BLACK_BOXES`.
    task : {"classification", "regression"}
        The task.
    random_state : int, RandomState or None, default=None
        Seed of the models that draw random numbers; "svm" and "knn" draw none.
    categories : sequence of str, default=()
        Names of the categorical columns. Boosted trees use them directly; other models get one 0/1
        column per value.
    scaled : bool, default=True
        Whether to add the default scalers of some models.
    params : mapping of str to value, optional
        Parameters of the model, such as ``{"n_neighbors": 9}``.

    Returns
    -------
    estimator : sklearn.base.BaseEstimator
        The unfitted model. Models that depend on the units of the features are preceded by a
        scaler; "mlp" and "svm" for regression also scale the target and predict in its units.
        Models that do not support missing values are preceded by an imputer, which fills in medians
        and adds indicators of missing values.

    Raises
    ------
    BlackBoxError
        If `name` or `task` is unknown, the model lacks a parameter, or its package is not
        installed; it is a ValueError.

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
            "name must be the name of a black box (on the command line: --black-box), got "
            f"{name!r}. {did_you_mean(name, BLACK_BOXES)}"
        )
    spec = BLACK_BOXES[name]
    is_classification = task == "classification"
    try:
        model = (spec.classifier if is_classification else spec.regressor)(random_state)
    except ImportError as error:
        raise BlackBoxError(str(error)) from error
    # CatBoost lists only the parameters that were set.
    parameter_names = {*model.get_params(deep=False), *inspect.signature(type(model)).parameters}
    for key, value in (params or {}).items():
        if key not in parameter_names:
            raise BlackBoxError(
                f"The black box {name!r} ({type(model).__name__}) has no parameter {key!r}. "
                f"{did_you_mean(key, parameter_names)}"
            )
        model.set_params(**{key: value})
    if categories and spec.categories == "text":
        model.set_params(cat_features=tuple(categories))
    if spec.coded and is_classification:
        model = LabelCodingClassifier(model)
    if scaled and "features" in spec.scale:
        model = make_pipeline(StandardScaler(), model)
    if not spec.missing:
        imputer = SimpleImputer(strategy="median", add_indicator=True, keep_empty_features=True)
        steps = [step for _, step in model.steps] if isinstance(model, Pipeline) else [model]
        model = make_pipeline(imputer, *steps)
    if scaled and "target" in spec.scale and task == "regression":
        model = TransformedTargetRegressor(model, transformer=StandardScaler())
    if not categories:
        return model
    if spec.categories != "one-hot":
        converter = CategoricalColumns(tuple(categories), as_text=spec.categories == "text")
        return make_pipeline(converter, model)
    # The result is dense, because not all models accept sparse rows. Unseen values become zeros.
    encoder = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    transformer = make_column_transformer((encoder, list(categories)), remainder="passthrough")
    return make_pipeline(transformer, model)
