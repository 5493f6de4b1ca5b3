"""Rules from scikit-learn's trees, exact to the last bit, and from ensembles, which vote."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
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
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.validation import check_is_fitted

from skescore.rules._conditions import Condition, Interval, Missing
from skescore.rules._domain import Domain
from skescore.rules._rule import Rule, RuleStatistics
from skescore.rules._ruleset import RuleSet
from skescore.rules.importers._boosted_trees import class_rule_maker

# A tree compares ``float32(x) <= threshold``. Rounding to float32 is monotone, so the rows that
# pass are exactly those with ``x <= t`` for another float ``t``, which is what the rules hold: they
# predict like the tree on every float64 row, also on rows within rounding of a threshold.

#: One step from the root: the node left, and whether to its left (``<=``) side.
_Step = tuple[int, bool]


def float32_cut(threshold: float) -> float:
    """Return the largest float64 that is at most `threshold` after rounding to float32."""
    with np.errstate(over="ignore"):
        below = np.float32(threshold)
        if float(below) > threshold:
            below = np.nextafter(below, np.float32(-np.inf))
        above = np.nextafter(below, np.float32(np.inf))
        low, high = _on_float32_grid(below), _on_float32_grid(above)
        middle = low + (high - low) / 2
        if np.float32(middle) <= below:  # a tie that rounds to the even one below
            return middle
    return math.nextafter(middle, -math.inf)


def _on_float32_grid(value: np.float32) -> float:
    """Return the number itself; for infinity, where the grid of float32 would go on."""
    return math.copysign(2.0**128, value) if np.isinf(value) else float(value)


def leaf_paths(tree: Any) -> dict[int, list[_Step]]:
    """Return the way from the root to every leaf, leaves in order of node number."""
    paths: dict[int, list[_Step]] = {0: []}
    leaves = {}
    for node in range(tree.node_count):  # children have larger numbers than their parents
        path = paths.pop(node)
        left = tree.children_left[node]
        if left == -1:
            leaves[node] = path
        else:
            paths[int(left)] = [*path, (node, True)]
            paths[int(tree.children_right[node])] = [*path, (node, False)]
    return leaves


def shortened_paths(leaves: dict[int, list[_Step]]) -> dict[int, list[_Step]]:
    """Drop the conditions that an ordered list does not need.

    A step is implied once all leaves on its other side have been listed: a row that would go there
    has been predicted. The last leaf is left without steps.
    """
    # How many of the leaves not yet listed lie behind each step.
    behind: dict[_Step, int] = {}
    for path in leaves.values():
        for step in path:
            behind[step] = behind.get(step, 0) + 1
    shortened = {}
    for leaf, path in leaves.items():
        shortened[leaf] = [(node, left) for node, left in path if behind[node, not left] > 0]
        for step in path:
            behind[step] -= 1
    return shortened


def _conditions(
    path: Iterable[_Step], splits: Mapping[int, tuple[int, float, bool | None]]
) -> tuple[Condition, ...] | None:
    """Return the conditions of a path; None if only missing values that no rule covers follow it.

    A split has a feature, a threshold, and whether missing values go left; None for neither side.
    """
    conditions: list[Condition] = []
    bounds: dict[tuple[int, bool], tuple[float, float]] = {}
    for node, left in path:
        feature, cut, gaps_left = splits[node]
        if math.isinf(cut):  # known values to the left, missing ones to the right
            if gaps_left is None and not left:
                return None
            conditions.append(Missing(feature, negated=left))
            continue
        # One interval per feature, and one that accepts missing values: deep trees split often.
        key = feature, gaps_left == left
        low, high = bounds.get(key, (-math.inf, math.inf))
        bounds[key] = (low, min(cut, high)) if left else (max(cut, low), high)
    for (feature, missing), (low, high) in bounds.items():
        conditions.append(Interval(feature, low, high, missing=missing))
    return tuple(conditions)


def tree_to_ruleset(
    model: Any,
    *,
    feature_names: Sequence[str] | None = None,
    classes: Sequence[Any] | None = None,
    domain: Domain | None = None,
    simplify: bool = False,
    missing: bool | None = None,
    **settings: Any,
) -> RuleSet:
    """Turn a fitted scikit-learn tree into rules, one per leaf.

    Parameters
    ----------
    model : DecisionTreeClassifier or DecisionTreeRegressor
        A fitted tree with one output.
    feature_names : sequence of str, optional
        Names for the rules; by default those the tree was fitted with, else ``x0``, ``x1``, ...
    classes : sequence, optional
        Labels of a tree that was fitted on class indices: its class ``i`` means ``classes[i]``.
    domain : Domain, optional
        Box of the training rows, which a tree does not remember.
    simplify : bool, default=False
        False: each rule stands by itself. True: an ordered list without the conditions that the
        rules before make superfluous; its last rule always holds.
    missing : bool, optional
        Whether conditions say to which side the tree sends a missing value: ``age ≤ 30 or
        missing``. By default of the features that lack values in the domain; without a domain if
        the tree shows that it was fitted on missing values, and in a list, see below.
    **settings
        Further parameters of :class:`RuleSet`.

    Returns
    -------
    RuleSet
        The leaves in order of node number.

    Notes
    -----
    A tree sends a missing value to one side of every split, whether it has seen any or not; one
    that it has never seen goes to the side of most rows. Trees fitted with and without missing
    values can be the same to the last number, so a tree cannot tell. What tells is a domain, or a
    split that sends missing values elsewhere than to the side of most rows.

    ``missing=True`` makes rules that predict as the tree does on every row, whatever it was fitted
    on, at the price of longer conditions. ``False`` makes rules that hold on no row that has to
    pass a split with its value missing. Where nothing tells, rules are made as with ``False``:
    :meth:`RuleSet.predict` raises a ValueError on such a row. The last rule of a list would
    predict it all the same, so a list (``simplify=True``) is then made as with ``True``.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> X = np.array([[20.0], [25.0], [30.0], [40.0], [np.nan]])
    >>> tree = DecisionTreeClassifier(max_depth=1).fit(X, ["a", "a", "a", "b", "b"])
    >>> print(tree_to_ruleset(tree, feature_names=["age"]).shorten(X, reach=0.001))
    1. IF age ≤ 35 THEN a   [3 rows, 100 % right (data)]
    2. IF age > 35 or missing THEN b   [2 rows, 100 % right (data)]
    """
    tree = model.tree_
    if tree.n_outputs != 1:
        raise ValueError(
            f"The tree has {tree.n_outputs} outputs; rules have one. Fit one tree per output."
        )
    if feature_names is None:
        feature_names = getattr(
            model, "feature_names_in_", [f"x{j}" for j in range(tree.n_features)]
        )
    elif len(feature_names) != tree.n_features:
        raise ValueError(
            f"feature_names must name the tree's {tree.n_features} features, "
            f"got {len(feature_names)}."
        )
    classification = hasattr(model, "classes_")
    class_indices = np.empty(0, dtype=int)
    if classification:
        class_indices = np.arange(tree.max_n_classes)
        if classes is None:
            classes = model.classes_.tolist()
        else:
            class_indices = model.classes_.astype(int)
    leaves = leaf_paths(tree)
    paths = shortened_paths(leaves) if simplify else leaves
    handles_missing = np.full(tree.n_features, missing)
    if missing is None:
        handles_missing = _features_with_missing(model, domain, simplify)
    splits = _read_splits(tree, handles_missing)
    rules = []
    for leaf, path in paths.items():
        conditions = _conditions(path, splits)
        if conditions is None:
            continue
        if classification:
            assert classes is not None
            output, statistics = _class_leaf(tree, leaf, classes, class_indices)
        else:
            output, statistics = _number_leaf(tree, leaf, model.criterion)
        rules.append(Rule(conditions, output, statistics))
    return RuleSet(
        rules,
        feature_names,
        task="classification" if classification else "regression",
        classes=classes if classification else None,
        domain=domain,
        ordered=simplify,
        disjoint=not simplify,
        **({"reference": "data"} | settings),
    )


def _read_splits(
    tree: Any, handles_missing: np.ndarray
) -> dict[int, tuple[int, float, bool | None]]:
    """Return the splits of a tree by node number, as :func:`_conditions` takes them."""
    inner = np.flatnonzero(tree.children_left != -1)
    features = tree.feature[inner].tolist()
    cuts = [t if math.isinf(t) else float32_cut(t) for t in tree.threshold[inner].tolist()]
    missing_left = [
        bool(left) if handles_missing[feature] else None
        for feature, left in zip(features, tree.missing_go_to_left[inner], strict=True)
    ]
    splits = zip(features, cuts, missing_left, strict=True)
    return dict(zip(inner.tolist(), splits, strict=True))


def _class_leaf(
    tree: Any, leaf: int, classes: Sequence[Any], class_indices: np.ndarray
) -> tuple[Any, RuleStatistics]:
    """Return the class that a leaf predicts, and the statistics of its training rows."""
    value = tree.value[leaf, 0]
    # scikit-learn < 1.3 held counts, later versions shares: both sum to the same here.
    weight = tree.weighted_n_node_samples[leaf]
    counts = value / value.sum() * weight
    rounded = np.round(counts)
    all_counts = np.zeros(len(classes))
    all_counts[class_indices] = np.where(
        np.abs(counts - rounded) <= 1e-12 * weight, rounded, counts
    )
    statistics = RuleStatistics(int(tree.n_node_samples[leaf]), tuple(all_counts.tolist()))
    return classes[class_indices[np.argmax(value)]], statistics


def _number_leaf(tree: Any, leaf: int, criterion: str) -> tuple[float, RuleStatistics]:
    """Return the number that a leaf predicts, and the statistics of its training rows."""
    output = float(tree.value[leaf, 0][0])
    squared = criterion in ("squared_error", "friedman_mse")
    # scikit-learn subtracts squares; a variance within their rounding error is none.
    rounding_error = 16 * np.finfo(float).eps * output**2
    variance = float(tree.impurity[leaf]) if tree.impurity[leaf] > rounding_error else 0.0
    standard_deviation = math.sqrt(variance) if squared else None
    # With absolute errors, leaves predict their median.
    mean = None if criterion == "absolute_error" else output
    n_rows = int(tree.n_node_samples[leaf])
    return output, RuleStatistics(n_rows, mean=mean, standard_deviation=standard_deviation)


def read_tree(model: Any, **options: Any) -> RuleSet:
    """Check that a tree is fitted, and read it by :func:`tree_to_ruleset`."""
    check_is_fitted(model)
    return tree_to_ruleset(model, **options)


def learned_from_missing(model: Any) -> bool:
    """Return whether a fitted tree shows that it has seen rows with missing values.

    False decides nothing: missing values that went to the side of most rows leave no trace.
    """
    tree = model.tree_
    inner = np.flatnonzero(tree.children_left != -1)
    rows, left, right = tree.n_node_samples, tree.children_left, tree.children_right
    # Of splits that saw no missing value, scikit-learn notes the side of most rows.
    expected = rows[left[inner]] > rows[right[inner]]
    noted = np.asarray(tree.missing_go_to_left)[inner].astype(bool)
    return bool((noted != expected).any() or np.isinf(tree.threshold[inner]).any())


def _features_with_missing(model: Any, domain: Domain | None, simplify: bool) -> np.ndarray:
    """Return the features of which rules say where missing values go, unless the caller tells."""
    if domain is not None and any(domain.missing):
        return np.asarray(domain.missing) > 0
    undecided = simplify and domain is None
    return np.full(model.tree_.n_features, undecided or learned_from_missing(model))


FORESTS = (
    RandomForestClassifier,
    RandomForestRegressor,
    ExtraTreesClassifier,
    ExtraTreesRegressor,
)
BOOSTED = (GradientBoostingClassifier, GradientBoostingRegressor, AdaBoostClassifier)
#: Why others of scikit-learn's ensembles in the same modules cannot be read.
_UNSPEAKABLE = {
    "AdaBoostRegressor": "predicts the weighted median of its trees, for which rules cannot vote",
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
    if options.get("missing") is None:  # what one tree has seen, others have at hand
        options["missing"] = any(map(learned_from_missing, model.estimators_))
    if hasattr(model, "classes_"):  # the trees themselves know numbers of classes only
        options = {"classes": model.classes_.tolist()} | options
    return tuple(tree_to_ruleset(tree, **options) for tree in model.estimators_)


def read_forest(
    model: Any,
    *,
    feature_names: Sequence[str] | None = None,
    domain: Domain | None = None,
    missing: bool = True,
) -> RuleSet:
    """Turn a fitted forest into one rule set in which a leaf of every tree predicts.

    Parameters
    ----------
    model : RandomForestClassifier, RandomForestRegressor, ExtraTrees... of either kind
        A fitted forest with one output.
    feature_names : sequence of str, optional
        Names for the rules; by default those the forest was fitted with, else ``x0``, ``x1``, ...
    domain : Domain, optional
        Box of the training rows, which a forest does not remember.
    missing : bool, default=True
        Whether conditions say to which side a tree sends a missing value. False: rules that are
        shorter, and trees without a vote on rows that have to pass a split with its value missing.

    Returns
    -------
    RuleSet
        The leaves of all trees, with ``voting="probabilities"`` (classification) or ``"mean"``.

    Raises
    ------
    TypeError
        If it is another kind of model.
    ValueError
        If it has several outputs.

    Notes
    -----
    Predictions are those of the forest. Class probabilities are exact where rows were weighted by
    whole numbers, as bootstrap samples are; with others they agree but for rounding errors.

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
    names = _names(model, feature_names)
    trees = trees_of_forest(model, feature_names=names, missing=missing)
    classification = trees[0].task == "classification"
    return RuleSet(
        [rule for tree in trees for rule in tree.rules],
        trees[0].feature_names,
        task=trees[0].task,
        classes=trees[0].classes,
        domain=domain,
        ordered=False,
        voting="probabilities" if classification else "mean",
        reference=trees[0].reference,
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
        (AdaBoost). The value that gradient boosting starts from is a rule that always holds. Class
        probabilities of AdaBoost's rules are shares of the votes, those of the model a softmax of
        them: labels agree, probabilities do not.

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
            leaves = tree_to_ruleset(tree, feature_names=names, missing=False).rules
            rules += [replace(leaf, weight=model.learning_rate) for leaf in leaves]
        return RuleSet(rules, names, task="regression", domain=domain, ordered=False, voting="sum")
    classes = model.classes_.tolist()
    vote: Callable[..., Rule] = class_rule_maker(classes, len(start))
    rules = []
    if len(classes) == 2:  # all votes are on the second class, added up as the model does
        vote = _on_second(classes)
        rules.append(Rule((), classes[0], None, -_TIE))
    # The exponential loss adds up half of the log odds.
    scale = 2.0 if model.loss == "exponential" else 1.0
    rules += [vote((), k, scale * float(value)) for k, value in enumerate(start)]
    for stage in model.estimators_:
        for k, tree in enumerate(stage):
            for leaf in tree_to_ruleset(tree, feature_names=names, missing=False).rules:
                assert isinstance(leaf.output, float)
                value = model.learning_rate * leaf.output
                rules.append(vote(leaf.conditions, k, scale * value))
    return RuleSet(
        rules,
        names,
        task="classification",
        classes=classes,
        domain=domain,
        ordered=False,
        voting="logistic",
    )


#: Log odds of exactly 0 mean the second class: what makes the difference, and changes no other sum.
_TIE = 1e-300


def _on_second(classes: list[Any]) -> Callable[..., Rule]:
    return lambda conditions, k, value: Rule(conditions, classes[1], None, value)


def _check_kind(model: Any, kinds: tuple[type, ...]) -> None:
    """Refuse models whose trees do not predict together as those of other models do."""
    if not isinstance(model, kinds):
        kind_names = ", ".join(kind.__name__ for kind in kinds)
        why = _UNSPEAKABLE.get(type(model).__name__, "is none of these models of trees")
        raise TypeError(
            f"{type(model).__name__} {why}, so there is no rule set that predicts alike. "
            f"Read here are {kind_names}."
        )


def _names(model: Any, user_names: Sequence[str] | None) -> list[str]:
    """Return names for the features; the trees inside were fitted without any."""
    if user_names is None:
        model_names = getattr(
            model, "feature_names_in_", [f"x{j}" for j in range(model.n_features_in_)]
        )
        return [str(name) for name in model_names]
    if len(user_names) != model.n_features_in_:
        raise ValueError(
            f"feature_names must name the model's {model.n_features_in_} features, "
            f"got {len(user_names)}."
        )
    return [str(name) for name in user_names]


def _start(model: Any) -> np.ndarray:
    """Return the initial predictions of gradient boosting, one per tree of a stage."""
    constant = isinstance(model.init_, str | DummyClassifier | DummyRegressor)
    if not constant:
        raise ValueError(
            f"The model starts from the predictions of init={model.init!r}, which no rule can say; "
            "with init=None or init='zero' it starts from a constant."
        )
    # Of any row: the start does not depend on it.
    return np.asarray(model._raw_predict_init(np.zeros((1, model.n_features_in_))))[0]


def _adaboost(model: Any, names: Sequence[str], domain: Domain | None) -> RuleSet:
    classes = model.classes_.tolist()
    rules = []
    for inner, weight in zip(model.estimators_, model.estimator_weights_, strict=False):
        if not isinstance(inner, DecisionTreeClassifier):
            raise TypeError(
                f"AdaBoost was made of {type(inner).__name__}, whose rules skescore cannot read; "
                "of decision trees it can."
            )
        leaves = tree_to_ruleset(inner, feature_names=names, missing=False).rules
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
