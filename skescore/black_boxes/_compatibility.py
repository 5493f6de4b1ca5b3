"""Checks that a trained black box matches a data set."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, is_classifier, is_regressor
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline

from skescore._text import listed, plural
from skescore.black_boxes._catalog import ModelCategories
from skescore.black_boxes._errors import BlackBoxError

if TYPE_CHECKING:
    from skescore.datasets import Dataset

_DROP = "drop (on the command line: --drop)"
#: Maximum number of categories of a column that are compared with those of CatBoost.
_MAX_COMPARED = 200


def check_matches(black_box: BaseEstimator, dataset: Dataset, *, output: int | None = None) -> None:
    """Raise an error if a fitted black box does not match a data set.

    Call it before querying a model from another source. A model for other columns may raise an
    obscure error or return meaningless predictions.

    Parameters
    ----------
    black_box : estimator
        Fitted classifier or regressor, frozen or not.
    dataset : Dataset
        Data set on which the model will be explained.
    output : int, optional
        Index of the output that predicts the target, for a model with several outputs.

    Raises
    ------
    BlackBoxError
        If the model has a different task, different names, order or number of features, or no class
        in common with the data. Some classes may be missing on either side. For a model that was
        fitted on an array, only the number of features is compared. Underscores in the model may
        replace blanks in names, as in LightGBM.

    Examples
    --------
    >>> from skescore.black_boxes import check_matches, make_black_box
    >>> from skescore.datasets import load_dataset
    >>> iris = load_dataset("iris")
    >>> tree = make_black_box("decision-tree", "classification").fit(iris.X, iris.y)
    >>> check_matches(tree, iris)
    """
    task = "classification" if is_classifier(black_box) else "regression"
    if not (is_classifier(black_box) or is_regressor(black_box)):
        raise BlackBoxError(
            f"The black box {type_name(black_box)} is neither a classifier nor a regressor, so it "
            "does not predict the target. Pass a model that does. Extractors and `skescore tune` "
            "explain the labels of clusterers and outlier detectors too: CARTExtractor(model)."
            "fit(X)."
        )
    if task != dataset.task:
        raise BlackBoxError(
            f"The black box {type_name(black_box)} is for {task}, but {dataset.name} is for "
            f"{dataset.task} (target {dataset.y.name!r}). Pass another black box, another target, "
            f"or task={task!r} (on the command line: --task {task})."
        )
    _check_features(black_box, dataset)
    _check_categories(black_box, dataset)
    known_classes = getattr(black_box, "classes_", None)
    if output is not None and isinstance(known_classes, list):
        known_classes = known_classes[output]
    if task == "classification" and known_classes is not None:
        labels, known_classes = (
            list(dataset.class_counts),
            np.asarray(known_classes).ravel().tolist(),
        )
        if not set(labels) & set(known_classes):
            raise BlackBoxError(
                f"The black box has the classes {listed(known_classes)}, but the target "
                f"{dataset.y.name!r} of {dataset.name} has {listed(labels)}: none is shared. "
                "Write the labels as they were when the model was trained (on the command line: "
                "--labels OLD=NEW,...)."
            )
        model = black_box.estimator if isinstance(black_box, FrozenEstimator) else black_box
        model = model[-1] if isinstance(model, Pipeline) else model
        unknown = [label for label in labels if label not in known_classes]
        if unknown and type(model).__module__.startswith("xgboost"):  # stores codes, not labels
            raise BlackBoxError(
                f"The black box of XGBoost has the classes {listed(known_classes)}, but the target "
                f"{dataset.y.name!r} of {dataset.name} also has {listed(unknown)}. Replace "
                "the labels in the table by the codes with which the model was trained."
            )


def _check_features(black_box: BaseEstimator, dataset: Dataset) -> None:
    columns = [str(name) for name in dataset.X.columns]
    names = _fitted_names(black_box)
    if names is None:
        n_expected = getattr(black_box, "n_features_in_", None)
        if n_expected == 0:  # CatBoost does not pickle the number
            n_expected = len(getattr(black_box, "feature_names_", ()))
        if n_expected is not None and n_expected != len(columns):
            raise BlackBoxError(
                f"The black box was trained on {n_expected} features, but {dataset.name} has "
                f"{len(columns)}: {listed(columns)}. Add missing features, or remove surplus "
                f"features with {_DROP}."
            )
        return
    fitted_names = [str(name) for name in names]
    without_blanks = [name.replace(" ", "_") for name in columns]
    if sorted(fitted_names) == sorted(without_blanks):  # LightGBM replaces blanks with underscores
        columns = without_blanks
    missing = pd.Index(fitted_names).difference(columns, sort=False).tolist()
    extra = pd.Index(columns).difference(fitted_names, sort=False).tolist()
    if missing or extra:
        text = f"The black box and {dataset.name} have different features."
        if missing:
            text += f" Missing in the data: {listed(missing)}; add or rename columns."
        if extra:
            text += f" Unknown to the black box: {listed(extra)}; leave them out with {_DROP}."
        raise BlackBoxError(text)
    if fitted_names != columns:
        position = int(np.argmax(np.array(fitted_names) != np.array(columns)))
        raise BlackBoxError(
            f"The features of {dataset.name} are in another order than in the training of the "
            f"black box: number {position + 1} was {fitted_names[position]!r} and is "
            f"{columns[position]!r}. Reorder the columns: {listed(fitted_names)}."
        )


def _check_categories(black_box: BaseEstimator, dataset: Dataset) -> None:
    """Raise an error if the table lost the leading zeros of categories of the model."""
    model = black_box.estimator if isinstance(black_box, FrozenEstimator) else black_box
    if hasattr(model, "get_cat_feature_indices"):
        _check_hashed_categories(model, dataset.X)
    if not (isinstance(model, Pipeline) and isinstance(model[0], ModelCategories)):
        return
    for name, column in zip(model[0].feature_names_in_, dataset.X.columns, strict=True):
        labels = map(str, model[0].categories_.get(name, ()))
        padded = [label for label in labels if re.fullmatch(r"0\d+", label)]
        if padded and pd.api.types.is_numeric_dtype(dataset.X[column].dtype):
            raise BlackBoxError(
                f"The black box knows the category {padded[0]!r} of {str(column)!r}, but the table "
                "was read as numbers, which have no leading zeros. Pass "
                f"categories=[{str(column)!r}] (on the command line: --category {column})."
            )


def _check_hashed_categories(model: Any, X: pd.DataFrame) -> None:
    """Raise an error if categories are missing, or written in another way than for CatBoost.

    CatBoost stores only hashes of categories, but a category that it knows changes predictions.
    """
    indices = model.get_cat_feature_indices()
    for name in X.columns[indices]:
        if n_missing := int(X[name].isna().sum()):
            raise BlackBoxError(
                f"{name!r} is missing in {plural(n_missing, 'row')}, but CatBoost accepts no "
                "missing categories. Fill them in the table as before the training, or leave out "
                "these rows with missing='drop' (on the command line: --missing drop)."
            )
    for name in X.columns[indices]:
        rows = X[~X[name].duplicated()][:_MAX_COMPARED].astype({name: object})
        is_numeric = pd.api.types.is_numeric_dtype(X[name].dtype)
        cells = [str(cell).removesuffix(".0" if is_numeric else "") for cell in rows[name]]
        unknown = _predict_category(model, rows, name, ["\x00"] * len(cells))
        is_unused = _predict_category(model, rows, name, cells) == unknown
        for forms in zip(*map(_other_forms, cells), strict=True):
            is_known = _predict_category(model, rows, name, forms) != unknown
            if (index := np.flatnonzero(is_unused & is_known)[:1].tolist()) != []:
                parameter, option = ("categories", "category") if is_numeric else ("numeric",) * 2
                raise BlackBoxError(
                    f"The black box knows the category {forms[index[0]]!r} of {name!r}, but the "
                    f"table was read as {cells[index[0]]!r}. Pass {parameter}=[{name!r}] (on the "
                    f"command line: --{option} {name})."
                )


def _other_forms(cell: str) -> list[str]:
    """Return a category as an integer, a boolean, a decimal number, and with leading zeros."""
    digits = {"true": "1", "false": "0"}.get(cell.lower(), cell.removesuffix(".0"))
    truth = {"0": "False", "1": "True"}.get(digits, digits)
    return [digits.lstrip("0") or digits, truth, f"{digits}.0", *map(digits.zfill, range(1, 7))]


def _predict_category(model: Any, rows: pd.DataFrame, name: str, cells: Sequence[str]) -> Any:
    """Return the scores of rows as texts, with other cells in a categorical column."""
    rows = rows.assign(**{name: pd.Series(list(cells), rows.index, dtype=object)})
    scores = model.predict(rows, prediction_type="RawFormulaVal")
    return np.array([str(score) for score in scores.tolist()])


def _fitted_names(black_box: BaseEstimator) -> Any:
    """Return the names of the columns that a model was fitted on; None if it was an array."""
    names = getattr(black_box, "feature_names_in_", None)
    if names is not None or not hasattr(black_box, "get_cat_feature_indices"):
        return names
    stored_names = black_box.feature_names_  # CatBoost numbers the columns of an array
    return None if stored_names == [str(j) for j in range(len(stored_names))] else stored_names


def type_name(model: Any) -> str:
    """Return the name of a model's class, for messages.

    Parameters
    ----------
    model : object
        The model; for a frozen model the name of the inner model is returned.

    Returns
    -------
    str
        The name without the module.
    """
    estimator = model.estimator if isinstance(model, FrozenEstimator) else model
    return type(estimator).__name__
