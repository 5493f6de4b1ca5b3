"""Anyone's rules become a :class:`RuleSet`."""

from __future__ import annotations

from functools import singledispatch
from typing import Any

from sklearn.pipeline import Pipeline
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from sklearn.utils.validation import check_is_fitted

from skescore.rules.ruleset import RuleSet
from skescore.rules.trees import tree_to_ruleset
from skescore.rules.units import affine_map, does_nothing, in_user_units


@singledispatch
def as_ruleset(model: Any, **options: Any) -> RuleSet:
    """Turn a fitted model into a :class:`RuleSet`.

    Works for rule sets, extractors and searches of this package, scikit-learn's decision trees,
    its searches over either, and Pipelines that end in one of these: scalers in front are undone,
    so that the rules speak in the units of the Pipeline's input. Further kinds are added with
    ``@as_ruleset.register(TheirClass)``.

    Parameters
    ----------
    model : object
        The fitted model.
    **options
        Depends on the kind of model; for trees see
        :func:`skescore.rules.trees.tree_to_ruleset`.

    Returns
    -------
    RuleSet
        The model's rules.

    Raises
    ------
    TypeError
        If the model has no rules that this function knows how to read.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> tree = DecisionTreeClassifier(max_leaf_nodes=3, random_state=0).fit(X, y)
    >>> print(as_ruleset(tree)[0].to_text(list(X.columns)))
    IF petal width (cm) ≤ 0.8 THEN 0   [50 rows, 100 % pure]
    """
    rules = getattr(model, "rules_", None)
    if isinstance(rules, RuleSet):
        return rules
    if hasattr(model, "best_estimator_"):  # a search: the rules are those of its winner
        return as_ruleset(model.best_estimator_, **options)
    promised = hasattr(type(model), "rules_") or hasattr(model, "estimator")
    if rules is None and promised and hasattr(model, "fit"):
        check_is_fitted(model)
    raise TypeError(
        f"{type(model).__name__} has no rules that skescore can read. Known are RuleSet, fitted "
        "extractors, scikit-learn decision trees and Pipelines that end in one of them; add a kind "
        "with @as_ruleset.register(TheirClass)."
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
    check_is_fitted(model)
    return tree_to_ruleset(model, **options)


@as_ruleset.register
def _(model: Pipeline, **options: Any) -> RuleSet:
    inner = as_ruleset(model[-1], **options)
    before = model[:-1]
    return inner if does_nothing(before) else in_user_units(inner, affine_map(before))
