"""Anyone's rules become a :class:`RuleSet`."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import singledispatch
from importlib import import_module
from typing import Any

import numpy as np
import pandas as pd
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from sklearn.utils.validation import check_is_fitted

from skescore.rules._conditions import AtLeast, Linear
from skescore.rules._rule import LinearOutput
from skescore.rules._ruleset import RuleSet
from skescore.rules.importers._scaling import affine_map, does_nothing, in_user_units
from skescore.rules.importers._sklearn import tree_to_ruleset

#: Where models of other libraries are read, by the module that their class comes from. The
#: libraries are not imported: a model that is there has brought its own.
_READERS = {
    "imodels": "_imodels:read_imodels",
    "psyke": "_psyke:read_psyke",
    "rulekit": "_rulekit:read_rulekit",
    "decision_rules": "_decision_rules:read_decision_rules",
    "catboost": "_catboost:read_catboost",
    "lightgbm": "_lightgbm:read_lightgbm",
    "xgboost": "_xgboost:read_xgboost",
    "sklearn.ensemble._forest": "_sklearn:read_forest",
    "sklearn.ensemble._gb": "_sklearn:read_boosted",
    "sklearn.ensemble._hist_gradient_boosting.gradient_boosting": (
        "_hist_gradient_boosting:read_hist_gradient_boosting"
    ),
    "sklearn.ensemble._weight_boosting": "_sklearn:read_boosted",
}


def _foreign_reader(model: Any) -> Callable[..., RuleSet] | None:
    """The function that reads models of this class; None if none is known."""
    for parent in type(model).__mro__:
        if parent.__module__.partition(".")[0] == "skescore":
            return None  # an extractor of ours speaks for itself
        for place in (parent.__module__, parent.__module__.partition(".")[0]):
            if place in _READERS:
                module, _, function = _READERS[place].partition(":")
                reader: Callable[..., RuleSet] = getattr(
                    import_module(f"skescore.rules.importers.{module}"), function
                )
                return reader
    return None


@singledispatch
def as_ruleset(model: Any, **options: Any) -> RuleSet:
    """Turn a fitted model into a :class:`RuleSet`.

    Works for rule sets, extractors and searches of this package; scikit-learn's decision trees,
    random forests, extra trees, gradient boosting (on histograms too) and AdaBoost on trees; models
    of XGBoost, LightGBM, CatBoost, PSyKE, RuleKit, imodels and decision-rules; tables of conditions
    (:meth:`RuleSet.to_conditions`); scikit-learn's searches over any of these, its FrozenEstimator,
    and Pipelines that end in one: scalers in front are undone, so that the rules speak in the units
    of the Pipeline's input, and what imputers fill is said of missing values. Further kinds are
    added with ``@as_ruleset.register(TheirClass)``.

    Parameters
    ----------
    model : object
        The fitted model.
    **options
        Depends on the kind of model; for trees see
        :func:`skescore.rules.importers.tree_to_ruleset`, for others the modules of
        :mod:`skescore.rules.importers`.

    Returns
    -------
    RuleSet
        The model's rules.

    Raises
    ------
    TypeError
        If the model has no rules that this function knows how to read.

    Notes
    -----
    Rules predict as the model does to the last digit, so that their bounds are the model's, often
    with many digits (trees of scikit-learn round rows to 32 bits: ``x ≤ 0.8000000417232512``).
    :meth:`RuleSet.shorten` writes them shortly, where no row of the data changes sides.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> tree = DecisionTreeClassifier(max_leaf_nodes=3, random_state=0).fit(X, y)
    >>> print(as_ruleset(tree).shorten(X, reach=0.001)[0])
    IF petal width (cm) ≤ 0.8 THEN 0   [50 rows, 100 % right (data)]
    """
    rules = getattr(model, "rules_", None)
    if isinstance(rules, RuleSet):
        return rules
    if hasattr(model, "best_estimator_"):  # a search: the rules are those of its winner
        return as_ruleset(model.best_estimator_, **options)
    reader = _foreign_reader(model)
    if reader is not None:
        return reader(model, **options)
    if isinstance(model, type):
        raise TypeError(f"{model.__name__} is a class: pass a fitted model, not its class.")
    if hasattr(model, "cv_results_"):
        raise TypeError(
            f"{type(model).__name__} kept no winner: fit it with refit=True (or the name of a "
            "score), or fit one of its candidates and read that."
        )
    promised = hasattr(type(model), "rules_") or hasattr(model, "estimator")
    if rules is None and promised and hasattr(model, "fit"):
        check_is_fitted(model)
    raise TypeError(
        f"{type(model).__name__} has no rules that skescore can read. Known are RuleSet, fitted "
        "extractors, scikit-learn's trees and ensembles of trees, models of XGBoost, LightGBM, "
        "CatBoost, PSyKE, RuleKit, imodels and decision-rules, tables of conditions, and Pipelines "
        "that end in one of them; add a kind with @as_ruleset.register(TheirClass)."
    )


@as_ruleset.register
def _(model: RuleSet, **options: Any) -> RuleSet:
    if options:
        raise TypeError(
            f"A RuleSet takes no options, got {sorted(options)}; see RuleSet.replace(...)."
        )
    return model


@as_ruleset.register(DecisionTreeClassifier)
@as_ruleset.register(DecisionTreeRegressor)
def _(model: Any, **options: Any) -> RuleSet:
    reader = _foreign_reader(model)  # what others derived from a tree may predict otherwise
    if reader is not None:
        return reader(model, **options)
    check_is_fitted(model)
    return tree_to_ruleset(model, **options)


@as_ruleset.register
def _(model: FrozenEstimator, **options: Any) -> RuleSet:
    return as_ruleset(model.estimator, **options)


@as_ruleset.register
def _(model: pd.DataFrame, **options: Any) -> RuleSet:
    from skescore.rules.importers._tables import read_table

    return read_table(model, **options)


@as_ruleset.register
def _(model: Pipeline, **options: Any) -> RuleSet:
    inner = as_ruleset(model[-1], **options)
    before = model[:-1]
    if does_nothing(before):
        return inner
    try:
        mapping = affine_map(before)
    except TypeError as error:
        if hasattr(model[-1], "rules_"):  # where they are is in the message
            raise
        raise TypeError(
            f"{error} Those of this model: as_ruleset(pipeline[-1], "
            "feature_names=pipeline[:-1].get_feature_names_out())."
        ) from error
    if any(mapping.filled[feature] is not None for feature in _summed(inner)):
        warnings.warn(
            "The Pipeline fills missing values, which sums of features in its rules do not: where "
            "such values are missing they have no value. For the Pipeline's predictions fill them "
            "before.",
            UserWarning,
            stacklevel=3,
        )
    try:
        return in_user_units(inner, mapping, lambda rows: _transformed(before, rows))
    except (TypeError, ValueError):  # columns of text, say, beside those that are scaled
        return in_user_units(inner, mapping)


def _transformed(transformer: Pipeline, rows: np.ndarray) -> Any:
    """Rows of numbers as a transformer gives them, whatever it was fitted on."""
    names = getattr(transformer, "feature_names_in_", None)
    given = rows.copy() if names is None else pd.DataFrame(rows, columns=names)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what there is to say was said when it was fitted
        return np.asarray(transformer.transform(given))


def _summed(ruleset: RuleSet) -> set[int]:
    """The features that sums are made of."""
    sums: list[Linear | LinearOutput] = []
    for rule in ruleset.rules:
        sums += [part for part in (rule.output, rule.weight) if isinstance(part, LinearOutput)]
        inner = list(rule.conditions)
        while inner:
            condition = inner.pop()
            if isinstance(condition, AtLeast):
                inner += condition.conditions
            elif isinstance(condition, Linear):
                sums.append(condition)
    return {feature for part in sums for feature, _ in part.terms}


def options_from_rows(model: Any, X: Any) -> dict[str, Any]:
    """Tell :func:`as_ruleset` what a model does not remember, but rows show.

    Parameters
    ----------
    model : object
        A fitted model, or a Pipeline, FrozenEstimator or search that holds one.
    X : array-like or DataFrame of shape (n_rows, n_features)
        Rows that the model was fitted on, or that its rules are to predict.

    Returns
    -------
    dict
        Options for :func:`as_ruleset`: ``missing=True`` for scikit-learn's trees if values are
        missing, the rows themselves for models of CatBoost.

    Examples
    --------
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> X = [[1.0], [2.0], [np.nan]]
    >>> tree = DecisionTreeClassifier().fit(X, ["a", "b", "b"])
    >>> options_from_rows(tree, X)
    {'missing': True}
    >>> as_ruleset(tree, **options_from_rows(tree, X)).predict(X).tolist()
    ['a', 'b', 'b']
    """
    while isinstance(model, Pipeline | FrozenEstimator) or hasattr(model, "best_estimator_"):
        if isinstance(model, Pipeline):
            model = model[-1]
        else:
            frozen = isinstance(model, FrozenEstimator)
            model = model.estimator if frozen else model.best_estimator_
    home = type(model).__module__
    if home.startswith("catboost"):  # it keeps hashes of categories alone
        return {"X": X}
    if not home.startswith(("sklearn.tree.", "sklearn.ensemble._forest")):
        return {}
    gaps = pd.isna(X if isinstance(X, pd.DataFrame) else np.asarray(X))
    return {"missing": True} if np.any(gaps) else {}


def as_rulesets(model: Any, **options: Any) -> tuple[RuleSet, ...]:
    """Turn every tree of a forest into a rule set of its own.

    Use it to look at, or to score, the trees one by one; :func:`as_ruleset` gives one rule set in
    which they all vote.

    Parameters
    ----------
    model : forest
        A fitted RandomForestClassifier, RandomForestRegressor, ExtraTreesClassifier or
        ExtraTreesRegressor.
    **options
        See :func:`skescore.rules.importers.tree_to_ruleset`.

    Returns
    -------
    tuple of RuleSet
        One per tree, in order; each predictions like its tree.

    Raises
    ------
    TypeError
        If the model is no forest.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> forest = RandomForestClassifier(3, max_depth=1, random_state=0).fit(X, y)
    >>> print(as_rulesets(forest)[1].shorten(X, reach=0.001))
    1. IF petal width (cm) ≤ 0.8 THEN 0   [33 rows, 100 % right (data)]
    2. IF petal width (cm) > 0.8 THEN 1   [67 rows, 60 % right (data)]
    """
    from skescore.rules.importers._sklearn import FORESTS, trees_of_forest

    if not isinstance(model, FORESTS):
        raise TypeError(
            f"{type(model).__name__} is no forest of decision trees; as_ruleset(model) reads one "
            "model as one rule set."
        )
    return trees_of_forest(model, **options)
