"""Rules from scikit-learn's ensembles of trees, which answer together."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.ensemble import (
    AdaBoostClassifier,
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.utils.validation import check_is_fitted

from skescore.rules._domain import Domain
from skescore.rules._rule import Rule
from skescore.rules._ruleset import RuleSet
from skescore.rules.importers._trees import tree_to_ruleset

# --- what trees do with missing values, and what rules can say of it -----------------------------
# A tree sends a missing value to one side of a split; a missing value satisfies no condition of a
# rule. The rules of a tree therefore hold on no row that has to pass a split with its value
# missing, and where the rules of many trees vote, only those that hold do.


def learned_from_missing(model: Any) -> bool:
    """Tell whether a fitted tree has seen rows with missing values."""
    tree = model.tree_
    inner = np.flatnonzero(tree.children_left != -1)
    rows, left, right = tree.n_node_samples, tree.children_left, tree.children_right
    # Of splits that saw no missing value, scikit-learn notes the side of most rows.
    expected = rows[left[inner]] > rows[right[inner]]
    noted = np.asarray(tree.missing_go_to_left)[inner].astype(bool)
    return bool((noted != expected).any() or np.isinf(tree.threshold[inner]).any())


def check_splits(models: Iterable[Any], what: str, names: Sequence[str] | None) -> None:
    """Refuse trees that ask whether a value is missing, which no condition can."""
    for model in models:
        tree = model.tree_
        asking = np.flatnonzero((tree.children_left != -1) & np.isinf(tree.threshold))
        if len(asking):
            feature = int(tree.feature[asking[0]])
            name = f"x{feature}" if names is None else str(names[feature])
            raise ValueError(
                f"The {what} asks whether {name!r} is missing, which no condition of a rule can. "
                "Fill missing values in front of it: make_pipeline(SimpleImputer(), ...)."
            )


def check_simplified(model: Any) -> None:
    """Refuse to simplify a tree that has learned where missing values go.

    In its ordered list, rows with missing values would fall to a later rule than those of their
    leaf.
    """
    if learned_from_missing(model):
        raise ValueError(
            "simplify=True would answer rows with missing values otherwise than the tree, which "
            "was fitted on such rows. Leave it out: then no rule holds for them, and predict says "
            "so. Or fill missing values in front of the tree: make_pipeline(SimpleImputer(), ...)."
        )


# --- Rules from scikit-learn's ensembles of trees, which answer together -------------------------

FORESTS = (
    RandomForestClassifier,
    RandomForestRegressor,
    ExtraTreesClassifier,
    ExtraTreesRegressor,
)
BOOSTED = (GradientBoostingClassifier, GradientBoostingRegressor, AdaBoostClassifier)
#: Why others of scikit-learn's ensembles in the same modules cannot be read.
_UNSPEAKABLE = {
    "AdaBoostRegressor": "answers the weighted median of its trees, for which rules cannot vote",
    "RandomTreesEmbedding": "encodes rows by its trees and predicts nothing",
}


def trees_of_forest(model: Any, **options: Any) -> tuple[RuleSet, ...]:
    """Turn every tree of a fitted forest into a rule set of its own."""
    _check_kind(model, FORESTS)
    check_is_fitted(model)
    if model.n_outputs_ != 1:
        raise ValueError(
            f"The forest has {model.n_outputs_} outputs; rules have one. Fit one forest per output."
        )
    options = {"feature_names": getattr(model, "feature_names_in_", None)} | options
    check_splits(model.estimators_, "forest", getattr(model, "feature_names_in_", None))
    if options.get("simplify"):
        for tree in model.estimators_:
            check_simplified(tree)
    if hasattr(model, "classes_"):  # the trees themselves know numbers of classes only
        options = {"classes": model.classes_.tolist()} | options
    return tuple(tree_to_ruleset(tree, **options) for tree in model.estimators_)


def read_forest(
    model: Any, *, feature_names: Sequence[str] | None = None, domain: Domain | None = None
) -> RuleSet:
    """Turn a fitted forest into one rule set in which a leaf of every tree answers.

    Parameters
    ----------
    model : RandomForestClassifier, RandomForestRegressor, ExtraTrees... of either kind
        A fitted forest with one output.
    feature_names : sequence of str, optional
        Names for the rules; by default those the forest was fitted with, else ``x0``, ``x1``, ...
    domain : Domain, optional
        Box of the training rows, which a forest does not remember.

    Returns
    -------
    RuleSet
        The leaves of all trees, with ``voting="shares"`` (classification) or ``"mean"``.

    Raises
    ------
    TypeError
        If it is another kind of model.
    ValueError
        If it has several outputs, or asks whether a value is missing.

    Warns
    -----
    UserWarning
        If the forest was fitted on rows with missing values.

    Notes
    -----
    Answers are those of the forest. Class shares are exact where rows were weighted by whole
    numbers, as bootstrap samples are; with others they agree but for rounding errors.

    On rows with missing values only those trees vote that need none of these: a missing value
    satisfies no condition, while the forest sends it to one side of every split.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> forest = RandomForestClassifier(5, max_depth=2, random_state=0).fit(X, y)
    >>> rules = read_forest(forest)
    >>> bool((rules.predict(X) == forest.predict(X)).all())
    True
    """
    _check_kind(model, FORESTS)
    check_is_fitted(model)
    trees = trees_of_forest(model, feature_names=_names(model, feature_names))
    if any(map(learned_from_missing, model.estimators_)):
        warnings.warn(
            f"{type(model).__name__} was fitted on rows with missing values. Its rules answer as "
            "it does on complete rows; where values are missing, only rules that do not need them "
            "vote. For rules that answer alike everywhere fill missing values before, in fit and "
            "in predict.",
            UserWarning,
            stacklevel=4,
        )
    classification = trees[0].task == "classification"
    return RuleSet(
        [rule for tree in trees for rule in tree.rules],
        trees[0].feature_names,
        task=trees[0].task,
        classes=trees[0].classes,
        domain=domain,
        ordered=False,
        voting="shares" if classification else "mean",
    )


def read_boosted(
    model: Any, *, feature_names: Sequence[str] | None = None, domain: Domain | None = None
) -> RuleSet:
    """Turn boosted trees into one rule set whose rules add up.

    Parameters
    ----------
    model : GradientBoostingClassifier, GradientBoostingRegressor or AdaBoostClassifier
        A fitted model. AdaBoost must be made of trees, gradient boosting must start from a
        constant (``init=None`` or ``"zero"``).
    feature_names : sequence of str, optional
        Names for the rules; by default those the model was fitted with, else ``x0``, ``x1``, ...
    domain : Domain, optional
        Box of the training rows, which trees do not remember.

    Returns
    -------
    RuleSet
        With ``voting="sum"`` (regression), ``"logistic"`` (gradient boosting) or ``"votes"``
        (AdaBoost). The value that gradient boosting starts from is a rule that always holds.

    Raises
    ------
    ValueError
        If the model starts from another model or a loss has no log odds.
    TypeError
        If it is another kind of model, or what is boosted are no trees.
    """
    _check_kind(model, BOOSTED)
    check_is_fitted(model)
    names = _names(model, feature_names)
    if isinstance(model, AdaBoostClassifier):
        return _adaboost(model, names, domain)
    start = _start(model)
    if isinstance(model, GradientBoostingRegressor):
        rules = [Rule((), float(start[0]))]
        for (tree,) in model.estimators_:
            leaves = tree_to_ruleset(tree, feature_names=names).rules
            rules += [replace(leaf, weight=model.learning_rate) for leaf in leaves]
        return RuleSet(rules, names, task="regression", domain=domain, ordered=False, voting="sum")
    classes = model.classes_.tolist()
    vote = _binary_vote(classes) if len(classes) == 2 else _plain_vote(classes)
    rules = [vote((), k, float(value)) for k, value in enumerate(start)]
    for stage in model.estimators_:
        for k, tree in enumerate(stage):
            for leaf in tree_to_ruleset(tree, feature_names=names).rules:
                assert isinstance(leaf.output, float)
                rules.append(vote(leaf.conditions, k, model.learning_rate * leaf.output))
    return RuleSet(
        rules,
        names,
        task="classification",
        classes=classes,
        domain=domain,
        ordered=False,
        voting="logistic",
    )


def _check_kind(model: Any, kinds: tuple[type, ...]) -> None:
    """Refuse models whose trees do not answer together as those of other models do."""
    if not isinstance(model, kinds):
        known = ", ".join(kind.__name__ for kind in kinds)
        why = _UNSPEAKABLE.get(type(model).__name__, "is none of these models of trees")
        raise TypeError(
            f"{type(model).__name__} {why}, so there is no rule set that answers alike. "
            f"Read here are {known}."
        )


def _names(model: Any, given: Sequence[str] | None) -> list[str]:
    """Names for the features; the trees inside were fitted without any."""
    if given is None:
        known = getattr(model, "feature_names_in_", [f"x{j}" for j in range(model.n_features_in_)])
        return [str(name) for name in known]
    if len(given) != model.n_features_in_:
        raise ValueError(
            f"feature_names must name the model's {model.n_features_in_} features, "
            f"got {len(given)}."
        )
    return [str(name) for name in given]


def _start(model: Any) -> np.ndarray:
    """What gradient boosting starts from, one number per tree of a stage."""
    constant = isinstance(model.init_, str | DummyClassifier | DummyRegressor)
    if not constant:
        raise ValueError(
            f"The model starts from the answers of init={model.init!r}, which no rule can say; "
            "with init=None or init='zero' it starts from a constant."
        )
    # Of any row: the start does not depend on it.
    return np.asarray(model._raw_predict_init(np.zeros((1, model.n_features_in_))))[0]


def _binary_vote(classes: Sequence[Any]) -> Callable[..., Rule]:
    """Of two classes, what speaks against the second speaks for the first."""
    return lambda conditions, k, value: Rule(conditions, classes[value > 0], None, abs(value))


def _plain_vote(classes: Sequence[Any]) -> Callable[..., Rule]:
    return lambda conditions, k, value: Rule(conditions, classes[k], None, value)


def _adaboost(model: Any, names: Sequence[str], domain: Domain | None) -> RuleSet:
    classes = model.classes_.tolist()
    rules = []
    for inner, weight in zip(model.estimators_, model.estimator_weights_, strict=False):
        if not hasattr(inner, "tree_"):
            raise TypeError(
                f"AdaBoost was made of {type(inner).__name__}, whose rules skescore cannot read; "
                "of decision trees it can."
            )
        leaves = tree_to_ruleset(inner, feature_names=names).rules
        rules += [replace(leaf, statistics=None, weight=float(weight)) for leaf in leaves]
    return RuleSet(
        rules,
        names,
        task="classification",
        classes=classes,
        domain=domain,
        ordered=False,
        voting="votes",
    )
