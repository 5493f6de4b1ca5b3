"""Conversion of scikit-learn's trees and ensembles to rules with the same predictions."""

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

# A tree compares ``float32(x) <= threshold``. Rounding to float32 is monotone, so this is
# equivalent to ``x <= t`` for another float ``t``. Rules use ``t``, so they predict like the tree
# for every float64 row, even if it is within rounding of a threshold.

#: Step on a path from the root: a node, and whether the path goes to its left (``<=``) side.
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
        if np.float32(middle) <= below:  # the midpoint rounds down to an even number
            return middle
    return math.nextafter(middle, -math.inf)


def _on_float32_grid(value: np.float32) -> float:
    """Return the number; for infinity, the next number if float32 had no overflow."""
    return math.copysign(2.0**128, value) if np.isinf(value) else float(value)


def leaf_paths(tree: Any) -> dict[int, list[_Step]]:
    """Return the path from the root to every leaf, in order of node numbers."""
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
    """Drop the conditions that are redundant in an ordered list.

    A step is implied if all leaves on its other side are listed before, because they predict all
    rows on that side. No steps remain for the last leaf.
    """
    # Number of leaves behind each step that have not been listed.
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
    """Return the conditions of a path; None if only uncovered missing values take the path.

    A split has a feature, a threshold, and whether missing values go left (None: to neither side).
    """
    conditions: list[Condition] = []
    bounds: dict[tuple[int, bool], tuple[float, float]] = {}
    for node, left in path:
        feature, cut, gaps_left = splits[node]
        if math.isinf(cut):  # known values go left, missing values right
            if gaps_left is None and not left:
                return None
            conditions.append(Missing(feature, negated=left))
            continue
        # Intervals are joined per feature, separately if they accept missing values.
        key = feature, gaps_left == left
        low, high = bounds.get(key, (-math.inf, math.inf))
        bounds[key] = (low, min(cut, high)) if left else (max(cut, low), high)
    for (feature, missing), (low, high) in bounds.items():
        if low < high:
            conditions.append(Interval(feature, low, high, missing=missing))
        elif missing:  # thresholds between the same float32 numbers separate only missing values
            conditions.append(Missing(feature))
        else:
            return None
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
    """Convert a fitted scikit-learn tree to rules, one per leaf.

    Parameters
    ----------
    model : DecisionTreeClassifier or DecisionTreeRegressor
        A fitted tree with one output.
    feature_names : sequence of str, optional
        Names of the features in the rules; by default those that the tree was fitted with, or
        ``x0``, ``x1``, ...
    classes : sequence, optional
        Labels of a tree that was fitted on class indices: its class ``i`` is ``classes[i]``.
    domain : Domain, optional
        Box around the training rows, which a tree does not store.
    simplify : bool, default=False
        False: return independent rules. True: return an ordered list without conditions that
        earlier rules make redundant; its last rule always holds.
    missing : bool, optional
        Whether conditions state to which side the tree sends missing values: ``age ≤ 30 or
        missing``. By default, True for the features with missing values in the domain. If the
        domain has none, True for all features if the tree must have been fitted on missing values,
        or if ``simplify=True`` and there is no domain; see Notes.
    **settings
        Other parameters of :class:`RuleSet`.

    Returns
    -------
    RuleSet
        The leaves, in order of node numbers.

    Raises
    ------
    ValueError
        If the tree has several outputs, or `feature_names` does not name all features.

    Notes
    -----
    A tree sends missing values to one side of every split. Without missing values in training, this
    is the side of most rows. A tree does not store whether it was fitted on missing values. This is
    known only from a domain, or from a split that sends missing values to the side of fewer rows or
    separates them from all numbers.

    With ``missing=True``, rules predict like the tree for every row, but have longer conditions.
    With ``False``, no rule holds for rows with a missing value at a split on their path. If it is
    unknown whether values were missing, independent rules are created as with ``False``, so
    :meth:`RuleSet.predict` raises a ValueError for such rows. The last rule of a list would predict
    them anyway, so a list (``simplify=True``) is created as with ``True``.

    Monotonicity constraints bound the class probabilities and means of leaves. The class counts of
    such a tree give its probabilities instead of the shares of the training rows, so `reference` is
    None by default, and the statistics have no mean.

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
    # Monotonicity constraints bound the values of leaves, which then do not describe the rows.
    is_bounded = getattr(model, "monotonic_cst", None) is not None
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
        if is_bounded:
            statistics = replace(statistics, mean=None)
        rules.append(Rule(conditions, output, statistics))
    return RuleSet(
        rules,
        feature_names,
        task="classification" if classification else "regression",
        classes=classes if classification else None,
        domain=domain,
        ordered=simplify,
        disjoint=not simplify,
        **({"reference": None if is_bounded else "data"} | settings),
    )


def _read_splits(
    tree: Any, handles_missing: np.ndarray
) -> dict[int, tuple[int, float, bool | None]]:
    """Return the splits of a tree by node number, in the format of :func:`_conditions`."""
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
    # scikit-learn < 1.3 stores counts, later versions shares; both give the same counts.
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
    # scikit-learn subtracts squares; a variance within their rounding errors is replaced by 0.
    rounding_error = 16 * np.finfo(float).eps * output**2
    variance = float(tree.impurity[leaf]) if tree.impurity[leaf] > rounding_error else 0.0
    standard_deviation = math.sqrt(variance) if squared else None
    # With absolute errors, leaves predict the median.
    mean = None if criterion == "absolute_error" else output
    n_rows = int(tree.n_node_samples[leaf])
    return output, RuleStatistics(n_rows, mean=mean, standard_deviation=standard_deviation)


def read_tree(model: Any, **options: Any) -> RuleSet:
    """Check that a tree is fitted, and convert it by :func:`tree_to_ruleset`."""
    check_is_fitted(model)
    return tree_to_ruleset(model, **options)


def learned_from_missing(model: Any) -> bool:
    """Return whether a tree must have been fitted on rows with missing values.

    If False, it may have been: missing values that went to the side of most rows leave no trace.
    """
    tree = model.tree_
    inner = np.flatnonzero(tree.children_left != -1)
    rows, left, right = tree.n_node_samples, tree.children_left, tree.children_right
    # For splits without missing values, scikit-learn stores the side of most rows.
    expected = rows[left[inner]] > rows[right[inner]]
    goes_left = np.asarray(tree.missing_go_to_left)[inner].astype(bool)
    return bool((goes_left != expected).any() or np.isinf(tree.threshold[inner]).any())


def _features_with_missing(model: Any, domain: Domain | None, simplify: bool) -> np.ndarray:
    """Return the features for which rules state by default where missing values go."""
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
#: Reasons why other ensembles of scikit-learn cannot be converted.
_UNSUPPORTED = {
    "AdaBoostRegressor": "predicts the weighted median of its trees, which is not a vote of rules",
    "RandomTreesEmbedding": "encodes rows by its trees but does not predict",
}


def trees_of_forest(model: Any, **options: Any) -> tuple[RuleSet, ...]:
    """Convert every tree of a fitted forest to a rule set."""
    _check_kind(model, FORESTS)
    check_is_fitted(model)
    if model.n_outputs_ != 1:
        raise ValueError(
            f"The forest has {model.n_outputs_} outputs; rules have one. Fit one forest per output."
        )
    options = {"feature_names": getattr(model, "feature_names_in_", None)} | options
    if options.get("missing") is None:  # all trees are fitted on the same rows
        options["missing"] = any(map(learned_from_missing, model.estimators_))
    if hasattr(model, "classes_"):  # the trees store only class indices
        options = {"classes": model.classes_.tolist()} | options
    return tuple(tree_to_ruleset(tree, **options) for tree in model.estimators_)


def read_forest(
    model: Any,
    *,
    feature_names: Sequence[str] | None = None,
    domain: Domain | None = None,
    missing: bool = True,
) -> RuleSet:
    """Convert a fitted forest to a rule set in which one leaf of every tree votes.

    Parameters
    ----------
    model : forest
        A fitted RandomForestClassifier, RandomForestRegressor, ExtraTreesClassifier or
        ExtraTreesRegressor with one output.
    feature_names : sequence of str, optional
        Names of the features in the rules; by default those that the forest was fitted with, or
        ``x0``, ``x1``, ...
    domain : Domain, optional
        Box around the training rows, which a forest does not store.
    missing : bool, default=True
        Whether conditions state to which side a tree sends missing values. False: rules are
        shorter, and trees do not vote for rows with a missing value at a split on their path.

    Returns
    -------
    RuleSet
        The leaves of all trees, with ``voting="probabilities"`` (classification) or ``"mean"``.

    Raises
    ------
    TypeError
        If the model is of another kind.
    ValueError
        If the model has several outputs.

    Notes
    -----
    Predictions are those of the forest. Class probabilities are identical if row weights are whole
    numbers, such as those of bootstrap samples; otherwise they agree up to rounding errors.

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
    """Convert boosted trees to a rule set whose rules vote.

    Parameters
    ----------
    model : GradientBoostingClassifier, GradientBoostingRegressor or AdaBoostClassifier
        A fitted model. AdaBoost must consist of trees; gradient boosting must start from a constant
        (``init=None`` or ``"zero"``).
    feature_names : sequence of str, optional
        Names of the features in the rules; by default those that the model was fitted with, or
        ``x0``, ``x1``, ...
    domain : Domain, optional
        Box around the training rows, which trees do not store.

    Returns
    -------
    RuleSet
        Rules with ``voting="sum"`` (regression), ``"logistic"`` (gradient boosting) or ``"votes"``
        (AdaBoost). The initial value of gradient boosting is a rule that always holds. For
        AdaBoost, class probabilities differ from those of the model: they are the shares of the
        votes, not their softmax.

    Raises
    ------
    ValueError
        If gradient boosting starts from the predictions of another model.
    TypeError
        If the model is of another kind, or boosts models other than trees.
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
    if len(classes) == 2:  # all votes are for the second class, added in the model's order
        vote = _on_second(classes)
        rules.append(Rule((), classes[0], None, -_TIE))
    # With the exponential loss, the sum is half of the log odds.
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


#: Log odds that are added, so that a sum of 0 predicts the second class, as in the model; too small
#: to change other sums.
_TIE = 1e-300


def _on_second(classes: list[Any]) -> Callable[..., Rule]:
    return lambda conditions, k, value: Rule(conditions, classes[1], None, value)


def _check_kind(model: Any, kinds: tuple[type, ...]) -> None:
    """Raise a TypeError for models whose trees cannot be converted to voting rules."""
    if not isinstance(model, kinds):
        kind_names = ", ".join(kind.__name__ for kind in kinds)
        why = _UNSUPPORTED.get(type(model).__name__, "is not one of the supported models")
        raise TypeError(
            f"{type(model).__name__} {why}, so no rule set can predict in the same way. "
            f"Supported are {kind_names}."
        )


def _names(model: Any, user_names: Sequence[str] | None) -> list[str]:
    """Return the names of the features; the inner trees were fitted without names."""
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
            f"The model starts from the predictions of init={model.init!r}, which rules cannot "
            "express. With init=None or init='zero' it starts from a constant."
        )
    # The initial prediction does not depend on the row.
    return np.asarray(model._raw_predict_init(np.zeros((1, model.n_features_in_))))[0]


def _adaboost(model: Any, names: Sequence[str], domain: Domain | None) -> RuleSet:
    classes = model.classes_.tolist()
    rules = []
    for inner, weight in zip(model.estimators_, model.estimator_weights_, strict=False):
        if not isinstance(inner, DecisionTreeClassifier):
            raise TypeError(
                f"AdaBoost boosts {type(inner).__name__}, but skescore can only read boosted "
                "decision trees."
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
