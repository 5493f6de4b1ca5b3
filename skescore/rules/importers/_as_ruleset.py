"""Conversion of fitted models to a :class:`RuleSet`."""

from __future__ import annotations

import warnings
from functools import singledispatch
from typing import Any

import pandas as pd
from scipy import sparse
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from skescore._rule_readers import MODEL_READERS, ModelReader, reader_names
from skescore.rules._conditions import AtLeast, Linear
from skescore.rules._rule import LinearOutput
from skescore.rules._ruleset import RuleSet
from skescore.rules.importers._scaling import affine_map, does_nothing, in_user_units


def find_reader(model: Any) -> ModelReader | None:
    """Return the reader for the class of a model; None if there is none."""
    for parent in type(model).__mro__:
        package, *module = parent.__module__.split(".")
        if package == "skescore" and module[:1] != ["compat"]:
            return None  # extractors of this package, which may derive from any class
        path = f"{parent.__module__}.{parent.__qualname__}."
        for reader in MODEL_READERS:
            if path.startswith(f"{reader.class_path}."):
                return reader
    return None


@singledispatch
def as_ruleset(model: Any, **options: Any) -> RuleSet:
    """Convert a fitted model to a :class:`RuleSet`.

    Supported are:

    - rule sets, extractors and searches of this package;
    - scikit-learn's decision trees, random forests, extra trees, (histogram) gradient boosting and
      AdaBoost on trees;
    - models of XGBoost, LightGBM, CatBoost, PSyKE, RuleKit, imodels, interpret (EBM),
      wittgenstein, skope-rules (1.0.1, or ``SkopeRules`` of :mod:`skescore.compat`) and
      decision-rules;
    - tables of conditions, see :meth:`RuleSet.to_conditions`;
    - scikit-learn's searches over any of these models, a FrozenEstimator that contains one, and
      Pipelines that end in one. Scalers and encoders of a Pipeline are inverted, so the rules are
      in the units and labels of the Pipeline's input. A condition includes missing values if it
      holds for the value that an imputer inserts.

    Add other kinds of models with ``@as_ruleset.register(TheirClass)``.

    Parameters
    ----------
    model : object
        The fitted model.
    **options
        Options of the reader for this kind of model: for trees, see
        :func:`skescore.rules.importers.tree_to_ruleset`; for others, see the functions in
        :mod:`skescore.rules.importers`.

    Returns
    -------
    RuleSet
        The model's rules.

    Raises
    ------
    TypeError
        If no reader supports the model.

    Notes
    -----
    Rules predict exactly like the model, unless the notes of its reader state otherwise. Their
    bounds therefore equal the model's, often with many digits (scikit-learn's trees round rows to
    32 bits: ``x ≤ 0.8000000417232512``). :meth:`RuleSet.shorten` rounds them without moving rows of
    the data to the other side.

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
    if hasattr(model, "best_estimator_"):  # a search
        return as_ruleset(model.best_estimator_, **options)
    reader = find_reader(model)
    if reader is not None:
        return reader.read(model, **options)
    if isinstance(model, type):
        raise TypeError(f"{model.__name__} is a class: pass a fitted model, not its class.")
    if hasattr(model, "cv_results_"):
        raise TypeError(
            f"{type(model).__name__} has no best_estimator_: fit it with refit=True (or the name "
            "of a score), or fit and read one of its candidates."
        )
    has_rules_when_fitted = hasattr(type(model), "rules_") or hasattr(model, "estimator")
    if rules is None and has_rules_when_fitted and hasattr(model, "fit"):
        check_is_fitted(model)
    raise TypeError(
        f"{type(model).__name__} has no rules that skescore can read. It reads RuleSet, fitted "
        f"extractors, {reader_names()}, tables of conditions, and Pipelines that end in one of "
        "them. Add another kind with @as_ruleset.register(TheirClass)."
    )


@as_ruleset.register
def _(model: RuleSet, **options: Any) -> RuleSet:
    if options:
        raise TypeError(
            f"A RuleSet takes no options, got {sorted(options)}; see RuleSet.replace(...)."
        )
    return model


@as_ruleset.register
def _(model: FrozenEstimator, **options: Any) -> RuleSet:
    return as_ruleset(model.estimator, **options)


@as_ruleset.register
def _(model: pd.DataFrame, **options: Any) -> RuleSet:
    from skescore.rules.importers._tables import read_table

    return read_table(model, **options)


@as_ruleset.register
def _(model: Pipeline, **options: Any) -> RuleSet:
    before = model[:-1]
    if does_nothing(before):
        return as_ruleset(model[-1], **options)
    if options.get("X") is not None:  # the last step has other columns, or in another order
        others = {name: value for name, value in options.items() if name != "X"}
        options = others | options_from_rows(model[-1], before.transform(options["X"]))
    inner = as_ruleset(model[-1], **options)
    try:
        mapping = affine_map(before)
    except TypeError as error:
        if hasattr(model[-1], "rules_"):  # the message already names rules_
            raise
        raise TypeError(
            f"{error} To read the rules in the units of the last step: as_ruleset(pipeline[-1], "
            "feature_names=pipeline[:-1].get_feature_names_out())."
        ) from error
    if any(mapping.tables):
        encoded = before.transform(mapping.input_rows(before, 1, {}))
        if sparse.issparse(encoded):
            options_from_rows(model[-1], encoded)  # XGBoost treats absent entries as missing
    if any(mapping.filled[feature] is not None for feature in _features_in_sums(inner)):
        warnings.warn(
            "The Pipeline imputes missing values, but sums of features in its rules have no value "
            "if one of them is missing. Impute missing values first to predict like the "
            "Pipeline.",
            UserWarning,
            stacklevel=3,
        )
    return in_user_units(inner, before)


def _features_in_sums(ruleset: RuleSet) -> set[int]:
    """Return the features of linear conditions, outputs and weights."""
    sums: list[Linear | LinearOutput] = []
    for rule in ruleset.rules:
        sums += [part for part in (rule.output, rule.weight) if isinstance(part, LinearOutput)]
        conditions = list(rule.conditions)
        while conditions:
            condition = conditions.pop()
            if isinstance(condition, AtLeast):
                conditions += condition.conditions
            elif isinstance(condition, Linear):
                sums.append(condition)
    return {feature for part in sums for feature, _ in part.terms}


def options_from_rows(model: Any, X: Any) -> dict[str, Any]:
    """Derive options of :func:`as_ruleset` from rows if the model lacks the information.

    Parameters
    ----------
    model : object
        A fitted model, or a Pipeline, FrozenEstimator or search that contains one.
    X : array-like or DataFrame of shape (n_rows, n_features)
        Training rows of the model, or rows that the rules will predict.

    Returns
    -------
    dict
        Options of :func:`as_ruleset`: ``missing=True`` for scikit-learn's trees and forests if
        values are missing, and the rows for models of CatBoost, and for models of LightGBM whose
        categorical columns are those of the rows.

    Raises
    ------
    ValueError
        If X is a sparse matrix and the model is from XGBoost, which treats absent entries as
        missing.

    Examples
    --------
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> X = [[1.0], [2.0], [float("nan")]]
    >>> tree = DecisionTreeClassifier().fit(X, ["a", "b", "b"])
    >>> options_from_rows(tree, X)
    {'missing': True}
    >>> as_ruleset(tree, **options_from_rows(tree, X)).predict(X).tolist()
    ['a', 'b', 'b']
    """
    rows = X
    while isinstance(model, Pipeline | FrozenEstimator) or hasattr(model, "best_estimator_"):
        if isinstance(model, Pipeline):
            if not does_nothing(model[:-1]):
                rows = model[:-1].transform(rows)
            model = model[-1]
        else:
            frozen = isinstance(model, FrozenEstimator)
            model = model.estimator if frozen else model.best_estimator_
    reader = find_reader(model)
    if reader is None or reader.options_from_rows is None:
        return {}
    options = reader.options_from_rows(model, rows)
    return options | {"X": X} if "X" in options else options  # a Pipeline transforms them again


def as_rulesets(model: Any, **options: Any) -> tuple[RuleSet, ...]:
    """Convert every tree of a forest to a separate rule set.

    Use it to inspect or score the trees one by one; :func:`as_ruleset` returns a single rule set in
    which all trees vote.

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
        Rule sets that predict like the trees, in order.

    Raises
    ------
    TypeError
        If the model is not a forest.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> forest = RandomForestClassifier(3, max_depth=1, random_state=0).fit(X, y)
    >>> print(as_rulesets(forest)[1].shorten(X, reach=0.001))
    1. IF petal width (cm) ≤ 0.8 THEN 0   [33 rows, 100 % of the weight right (data)]
    2. IF petal width (cm) > 0.8 THEN 1   [67 rows, 60 % of the weight right (data)]
    """
    from skescore.rules.importers._sklearn import FORESTS, trees_of_forest

    if not isinstance(model, FORESTS):
        raise TypeError(
            f"{type(model).__name__} is not a forest of decision trees; as_ruleset(model) converts "
            "other models to one rule set."
        )
    return trees_of_forest(model, **options)
