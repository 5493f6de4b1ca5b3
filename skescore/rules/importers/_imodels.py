"""Conversion of imodels' models to rules with the same predictions."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from scipy.optimize import brentq
from scipy.stats import beta
from sklearn.exceptions import NotFittedError
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from sklearn.utils.validation import check_is_fitted

from skescore._text import listed
from skescore.rules._conditions import Interval
from skescore.rules._domain import Domain, Fallback
from skescore.rules._rule import LinearOutput, Rule, RuleStatistics
from skescore.rules._ruleset import RuleSet
from skescore.rules.importers._sklearn import (
    BOOSTED,
    FORESTS,
    float32_cut,
    leaf_paths,
    read_boosted,
    read_forest,
    read_tree,
    tree_to_ruleset,
)


@dataclass(frozen=True, slots=True)
class Frame:
    """Feature names and domain of the rules of a model."""

    feature_names: tuple[str, ...]
    domain: Domain | None = None

    def ruleset(self, rules: Iterable[Rule], classes: Sequence[Any] | None, **how: Any) -> RuleSet:
        """Create a rule set; classes are None in regression."""
        return RuleSet(
            rules,
            self.feature_names,
            task="regression" if classes is None else "classification",
            classes=classes,
            domain=self.domain,
            **how,
        )

    def voting(
        self,
        rules: Sequence[Rule],
        classes: Sequence[Any] | None,
        voting: str,
        *,
        complete: bool = False,
    ) -> RuleSet:
        """Create a rule set whose rules vote.

        The fallback predicts a sum of 0 for rows without a rule. It is omitted if some rule holds
        for every row (`complete`, or a rule without conditions).
        """
        fallback = None
        if not complete and all(rule.conditions for rule in rules):
            if classes is None:
                fallback = Fallback(0.0)
            else:
                fallback = Fallback(classes[0], class_counts=(1.0,) * len(classes))
        return self.ruleset(rules, classes, ordered=False, voting=voting, fallback=fallback)


def frame(model: Any, feature_names: Sequence[str] | None, domain: Domain | None) -> Frame:
    """Determine the feature names: the caller's, the model's, or ``x0``, ``x1``, ..."""
    # A wrapper around a fitted model has no number of features.
    inner = getattr(model, "estimator_", model)
    n_features = int(getattr(model, "n_features_in_", getattr(inner, "n_features_in_", -1)))
    if n_features < 0:
        raise NotFittedError(f"This {type(model).__name__} is not fitted yet: call fit first.")
    if feature_names is None:
        for attribute in ("feature_names_", "feature_names_in_", "feature_names"):
            for source in (model, inner):
                names = getattr(source, attribute, None)
                if names is not None and len(names) == n_features:
                    return Frame(tuple(str(name) for name in names), domain)
        return Frame(tuple(f"x{j}" for j in range(n_features)), domain)
    if isinstance(feature_names, str) or len(feature_names) != n_features:
        raise ValueError(
            f"feature_names must name the {n_features} features that the model was fitted on, "
            f"got {feature_names!r}."
        )
    return Frame(tuple(feature_names), domain)


def labels(model: Any) -> list[Any]:
    """Return the class labels as Python objects."""
    return list(np.asarray(model.classes_).tolist())


def conjunction(conditions: Iterable[Interval]) -> tuple[Interval, ...] | None:
    """Intersect the intervals on each feature; return None if no number satisfies them all.

    Some rules never hold, because imodels rounds thresholds and moves the cuts of grown trees.
    """
    intervals: dict[int, Interval] = {}
    for condition in conditions:
        earlier = intervals.get(condition.feature)
        if earlier is not None:
            try:
                intersection = earlier.intersect(condition)
            except ValueError:
                return None
            assert isinstance(intersection, Interval)  # as missing values are not allowed
            condition = intersection
        intervals[condition.feature] = condition
    return tuple(intervals.values())


def reachable_leaves(tree: Any) -> Iterator[tuple[int, tuple[Interval, ...]]]:
    """Yield the leaves of a scikit-learn tree that a row can reach, with their conditions."""
    for leaf, path in leaf_paths(tree).items():
        steps = []
        for node, left in path:
            feature, cut = int(tree.feature[node]), float32_cut(float(tree.threshold[node]))
            steps.append(Interval(feature, upper=cut) if left else Interval(feature, lower=cut))
        conditions = conjunction(steps)
        if conditions is not None:
            yield leaf, conditions


# The prediction is constant in each intersection of leaves of all trees. The model predicts one
# point in each of these boxes; adjacent boxes with the same prediction are joined.

#: Largest number of boxes; more rules would not be readable.
_MAX_CELLS = 5000


def boosted_regressor(model: Any, about: Frame) -> RuleSet:
    """Read boosted regression trees, box by box."""
    check_is_fitted(model, "estimators_")
    cells: list[tuple[Interval, ...]] = [()]
    for inner in model.estimators_:
        if not hasattr(inner, "tree_"):
            raise TypeError(
                f"{type(model).__name__} boosts {type(inner).__name__}, but skescore can only "
                "read boosted decision trees."
            )
        leaves = [conditions for _, conditions in reachable_leaves(inner.tree_)]
        parts = (conjunction((*cell, *leaf)) for cell in cells for leaf in leaves)
        cells = [part for part in parts if part is not None]
        if len(cells) > _MAX_CELLS:
            raise ValueError(
                f"The model predicts the weighted median of {len(model.estimators_)} trees, which "
                f"cut the space into more than {_MAX_CELLS} boxes. Fit it with fewer or smaller "
                "trees (n_estimators, estimator=DecisionTreeRegressor(max_depth=1))."
            )
    rows = np.array([_row(cell, len(about.feature_names)) for cell in cells])
    names = getattr(model, "feature_names_in_", None)
    predictions = model.predict(rows if names is None else pd.DataFrame(rows, columns=names))
    rules = [
        Rule(cell, float(prediction)) for cell, prediction in zip(cells, predictions, strict=True)
    ]
    return about.ruleset(rules, None, ordered=False, disjoint=True).simplify()


def _row(cell: Iterable[Interval], n_features: int) -> list[float]:
    """Return a row inside a box, which contains its upper but not its lower bounds."""
    row = [0.0] * n_features
    for side in cell:
        inside = side.upper if side.upper < math.inf else math.nextafter(side.lower, math.inf)
        row[side.feature] = inside
    return row


#: Conditions of a term, and its value where they hold.
_Term: TypeAlias = tuple[tuple[Interval, ...], float | LinearOutput]


def rule_fit(model: Any, about: Frame) -> RuleSet:
    """Read a linear model of rules and of clipped features."""
    check_is_fitted(model, "rules_")
    classes = labels(model) if hasattr(model, "classes_") else None
    # The model predicts the softmax of (1 - sum, sum), so its log odds are 2 sum - 1.
    factor, shift = (1.0, 0.0) if classes is None else (2.0, -1.0)
    terms: list[_Term] = []
    for rule in model.rules_without_feature_names_:
        conditions = _conditions(rule, model.feature_placeholders)
        if conditions is not None:
            terms.append((conditions, factor * float(rule.args[0])))
    terms += _linear_terms(model, factor)
    terms.append(((), factor * float(np.ravel(model.intercept)[0]) + shift))
    terms = [term for term in terms if term[1] != 0]
    if classes is None:
        return about.voting([Rule(*term) for term in terms], None, "sum")
    return about.voting([_vote(*term, classes) for term in terms], classes, "logistic")


def _vote(
    conditions: tuple[Interval, ...], value: float | LinearOutput, classes: Sequence[Any]
) -> Rule:
    """Convert log odds to a rule; negative log odds become a vote for the first class."""
    if isinstance(value, LinearOutput):
        return Rule(conditions, classes[1], None, value)
    return Rule(conditions, classes[int(value > 0)], None, abs(value))


def _linear_terms(model: Any, factor: float) -> Iterator[_Term]:
    """Yield the linear terms of the features: below, between and above their clipping limits."""
    if not model.include_linear:
        return
    scales, limits = np.ones(model.n_features_), None
    if model.lin_standardise:
        scales = model.friedscale.scale_multipliers
        limits = model.friedscale.winsorizer.winsor_lims
    for j, coefficient in enumerate(model.coef[: model.n_features_]):
        slope = factor * float(coefficient) * float(scales[j])
        if slope == 0:
            continue
        low, high = (-np.inf, np.inf) if limits is None else map(float, limits[:, j])
        # The model tests the upper limit first, so it has priority if the limits cross.
        if high < np.inf:
            yield (Interval(j, lower=high),), slope * high
        if low > -np.inf:
            yield (Interval(j, upper=min(low, high), upper_closed=low > high),), slope * low
        if low <= high:
            inside = Interval(j, low, high, lower_closed=True, upper_closed=True)
            yield (inside,), LinearOutput(0.0, ((j, slope),))


def skope_rules(model: Any, about: Frame) -> RuleSet:
    """Read rules that vote with their precisions; the second class needs more than half."""
    check_is_fitted(model, "rules_without_feature_names_")
    classes = labels(model)
    precisions = [float(rule.args[0]) for rule in model.rules_without_feature_names_]
    # The model also uses NumPy's sum, so halves are identical.
    half = float(np.sum(precisions)) / 2
    rules = [Rule((), classes[0], None, half if half > 0 else 1.0)]
    for rule, precision in zip(model.rules_without_feature_names_, precisions, strict=True):
        conditions = _conditions(rule, model.feature_placeholders)
        if conditions is not None and precision != 0:
            rules.append(Rule(conditions, classes[1], None, precision))
    return about.voting(rules, classes, "votes")


def _conditions(rule: Any, placeholders: Sequence[str]) -> tuple[Interval, ...] | None:
    """Return the conditions of a rule on columns with these names; None if it never holds."""
    column_index = {str(name): j for j, name in enumerate(placeholders)}
    conditions = []
    for (name, operator), text in rule.agg_dict.items():
        if operator == "==" and text == name:  # a rule for all rows
            continue
        value = float(text)
        if operator[0] == ">":
            condition = Interval(column_index[name], lower=value, lower_closed=operator == ">=")
        elif operator[0] == "<":
            condition = Interval(column_index[name], upper=value, upper_closed=operator == "<=")
        else:
            condition = Interval(
                column_index[name], value, value, lower_closed=True, upper_closed=True
            )
        conditions.append(condition)
    return conjunction(conditions)


#: Probability of the credible intervals that a Bayesian rule list stores.
_CREDIBLE = 0.95


def greedy_list(model: Any, about: Frame) -> RuleSet:
    """Read a greedy rule list or OneR: ``x >= cutoff``, or ``x < cutoff`` if it is flipped."""
    return _list(model, about, closed_below=True, counted=True)


def fast_frugal_tree(model: Any, about: Frame) -> RuleSet:
    """Read a fast-and-frugal tree: ``x > cutoff``, or ``x <= cutoff`` if it is flipped."""
    return _list(model, about, closed_below=False, counted=False)


def _list(model: Any, about: Frame, *, closed_below: bool, counted: bool) -> RuleSet:
    check_is_fitted(model, "rules_")
    classes = labels(model)
    rules = []
    *exits, last = model.rules_
    for step in exits:
        feature, cut = int(step["index_col"]), float(step["cutoff"])
        if step["flip"]:
            condition = Interval(feature, upper=cut, upper_closed=not closed_below)
        else:
            condition = Interval(feature, lower=cut, lower_closed=closed_below)
        share_and_rows = (step["val_right"], step["num_pts_right"])
        rules.append(_make_exit_rule((condition,), *share_and_rows, classes, counted))
    # The last entry predicts all remaining rows, even if it looks like a step.
    rules.append(_make_exit_rule((), last["val"], last["num_pts"], classes, counted))
    return about.ruleset(rules, classes, reference="data" if counted else None)


def _make_exit_rule(
    conditions: tuple[Interval, ...], share: Any, n_rows: Any, classes: list[Any], counted: bool
) -> Rule:
    """Return a rule for the more probable class; the first for ties and unknown shares."""
    share, n_rows = float(share), int(n_rows)
    output = classes[int(np.argmax([1 - share, share]))]
    if not counted or np.isnan(share):
        return Rule(conditions, output, RuleStatistics(n_rows))
    # The product is an integer up to rounding errors.
    second = round(share * n_rows)
    return Rule(conditions, output, RuleStatistics(n_rows, (n_rows - second, second)))


def bayesian_list(model: Any, about: Frame) -> RuleSet:
    """Read a Bayesian rule list, whose rules require that all features of an itemset are 1."""
    check_is_fitted(model, "rules_")
    classes = labels(model)
    column_index = {name: i for i, name in enumerate(model.feature_placeholders)}
    rules = []
    for position, itemset in enumerate(model.d_star):
        names = () if itemset == 0 else model.itemsets[itemset]
        conditions = tuple(_equals(column_index[name], 1.0) for name in names)
        share = float(model.theta[position])
        statistics = _counts(share, model.ci_theta[position], np.asarray(model.alpha, dtype=float))
        rules.append(Rule(conditions, classes[int(share >= 0.5)], statistics))
        if itemset == 0:  # the default rule, which covers all remaining rows
            break
    return about.ruleset(rules, classes)


def _counts(share: float, interval: Any, prior: np.ndarray) -> RuleStatistics | None:
    """Compute the numbers of rows of a share from the width of its credible interval.

    The model stores the mean and an interval of each rule's Beta distribution, but not the counts.
    The width decreases with the sum of the counts, so it determines this sum.
    """
    width = float(interval[1]) - float(interval[0])

    def excess(total: float) -> float:
        low, high = beta.interval(_CREDIBLE, share * total, (1 - share) * total)
        return float(high - low) - width

    smallest_total, largest_total = float(prior.sum()), 1e12
    if not excess(largest_total) <= 0 <= excess(smallest_total):
        return None
    n_rows = round(brentq(excess, smallest_total, largest_total) - smallest_total)
    total = n_rows + smallest_total
    return RuleStatistics(n_rows, ((1 - share) * total, share * total))


def bayesian_set(model: Any, about: Frame) -> RuleSet:
    """Read a Bayesian rule set: the second class if any rule holds, otherwise the first."""
    check_is_fitted(model, "rules_")
    classes = labels(model)
    column_value: dict[str, tuple[int, float]] = {}
    for i, name in enumerate(model.attr_names_orig):
        column_value[str(name)] = (i, 1.0)
        column_value[f"{str(name).strip()}_neg"] = (i, 0.0)
    rules = []
    for names in model.rules_:
        conditions = conjunction(_equals(*column_value[str(name)]) for name in names)
        if conditions is not None:
            rules.append(Rule(conditions, classes[1]))
    return about.ruleset(rules, classes, fallback=Fallback(classes[0]))


def _equals(feature: int, value: float) -> Interval:
    return Interval(feature, value, value, lower_closed=True, upper_closed=True)


# Every leaf that a row reaches adds a value per class. Subtracting the smallest value of a leaf
# from all its values does not change the differences of the sums, and halves the number of rules
# for two classes (the short form). But rounding errors may decide between equal sums, so the short
# form is used only if it predicts like the model for every combination of leaves.

#: Conditions of a leaf, its value for every class, and its statistics.
Leaf: TypeAlias = tuple[tuple[Interval, ...], np.ndarray, RuleStatistics | None]
#: Returns the predicted class, given the values of leaves (n_combinations, n_classes, n_trees).
Decide: TypeAlias = Callable[[np.ndarray], np.ndarray]
#: Largest number of combinations of leaves for which the short form is checked.
_COMBINATIONS = 1 << 15
#: A tree-based additive model predicts the second class if its share exceeds this value.
_HALF = 0.5


def _combinations(trees: Sequence[Sequence[Leaf]]) -> np.ndarray | None:
    """Return the values of all combinations of one leaf per tree; None if there are too many."""
    sizes = [len(tree) for tree in trees]
    total = 1
    for size in sizes:
        total *= size
    if total > _COMBINATIONS:
        return None
    chosen = np.unravel_index(np.arange(total), sizes)
    addends = [
        np.array([leaf[1] for leaf in tree])[index]
        for tree, index in zip(trees, chosen, strict=True)
    ]
    return np.ascontiguousarray(np.stack(addends, axis=-1))


def _sum_in_order(addends: np.ndarray) -> np.ndarray:
    """Add the values of the trees one after the other, like a rule set."""
    total = np.zeros(addends.shape[:2])
    for k in range(addends.shape[2]):
        total += addends[:, :, k]
    return total


def _subtract_smallest(addends: np.ndarray) -> np.ndarray:
    """Subtract the smallest value of each leaf from the values of all its classes."""
    return np.asarray(addends - addends.min(axis=1, keepdims=True))


def _short_form_predicts_alike(
    trees: Sequence[Sequence[Leaf]], decide: Decide, scale: float, *, unknown: bool
) -> bool:
    """Return whether the short form predicts like the model; `unknown` if that takes too long."""
    addends = _combinations(trees)
    if addends is None:
        return unknown
    short = _sum_in_order(scale * _subtract_smallest(addends)).argmax(axis=1)
    return bool((short == decide(addends)).all())


def _short_rules(
    trees: Sequence[Sequence[Leaf]], classes: Sequence[Any], scale: float
) -> tuple[list[Rule], bool]:
    """Return the rules of the short form, and whether each leaf of some tree has a rule."""
    rules, complete = [], False
    for tree in trees:
        n_without_rules = 0
        for conditions, addends, statistics in tree:
            weights = scale * (addends - addends.min())
            leaf_rules = [
                Rule(conditions, label, statistics, float(weight))
                for label, weight in zip(classes, weights, strict=True)
                if weight != 0
            ]
            n_without_rules += not leaf_rules
            rules += leaf_rules
        complete |= not n_without_rules
    return rules, complete


def _full_rules(trees: Sequence[Sequence[Leaf]], classes: Sequence[Any]) -> list[Rule]:
    return [
        Rule(conditions, label, statistics, float(weight))
        for tree in trees
        for conditions, addends, statistics in tree
        for label, weight in zip(classes, addends, strict=True)
    ]


def figs(model: Any, about: Frame) -> RuleSet:
    """Read a sum of trees."""
    check_is_fitted(model, "trees_")
    if getattr(model, "categorical_features_", None) is not None:
        raise ValueError(
            "The model was fitted with categorical_features, which it encodes by itself, so its "
            "rules are on the encoded columns, not on X. Encode X before you fit the model."
        )
    classes = labels(model) if hasattr(model, "classes_") else None
    if classes is None and model.n_outputs != 1:
        raise ValueError(
            f"The model has {model.n_outputs} outputs; rules have one. Fit one model per output."
        )
    trees = [list(_figs_leaves(root, (), classes)) for root in model.trees_]
    if classes is None:
        rules = [
            Rule(conditions, float(v[0]), statistics)
            for tree in trees
            for conditions, v, statistics in tree
        ]
        return about.voting(rules, None, "sum", complete=True)

    def decide(addends: np.ndarray) -> np.ndarray:
        return np.asarray(addends.sum(axis=-1).argmax(axis=1))

    # Equal sums are common, because leaves hold shares of few rows.
    if _short_form_predicts_alike(trees, decide, 1.0, unknown=False):
        rules, complete = _short_rules(trees, classes, 1.0)
        return about.voting(rules, classes, "logistic", complete=complete)
    return about.voting(_full_rules(trees, classes), classes, "logistic", complete=True)


def _figs_leaves(
    node: Any, steps: tuple[Interval, ...], classes: Sequence[Any] | None
) -> Iterator[Leaf]:
    if node.left is None or node.right is None:
        conditions = conjunction(steps)
        if conditions is not None:
            counts = np.asarray(node.value_sklearn, dtype=float).reshape(-1)
            statistics = RuleStatistics(
                float(counts.sum()), None if classes is None else tuple(counts)
            )
            yield conditions, np.asarray(node.value, dtype=float).reshape(-1), statistics
        return
    feature, cut = int(node.feature), float(node.threshold)
    yield from _figs_leaves(node.left, (*steps, Interval(feature, upper=cut)), classes)
    yield from _figs_leaves(node.right, (*steps, Interval(feature, lower=cut)), classes)


def boosted_classifier(model: Any, about: Frame) -> RuleSet:
    """Read boosted trees, each of which votes for its leaf's class and against all others."""
    check_is_fitted(model, "estimators_")
    classes = _trusted_labels(model)
    n_classes, total = len(classes), float(model.estimator_weights_.sum())
    if n_classes == 1:
        return about.ruleset([Rule((), classes[0])], classes)
    trees = []
    for inner, weight in _stages(model):
        if not hasattr(inner, "tree_"):
            raise TypeError(
                f"{type(model).__name__} boosts {type(inner).__name__}, but skescore can only "
                "read boosted decision trees and SlipperClassifier."
            )
        leaves: list[Leaf] = []
        for leaf, conditions in reachable_leaves(inner.tree_):
            addends = np.full(n_classes, -1 / (n_classes - 1) * weight)
            addends[int(inner.classes_[np.argmax(inner.tree_.value[leaf, 0])])] = weight
            leaves.append((conditions, addends, None))
        trees.append(leaves)

    def decide(addends: np.ndarray) -> np.ndarray:
        sums = _sum_in_order(addends) / total
        return (sums[:, 1] - sums[:, 0] > 0).astype(int) if n_classes == 2 else sums.argmax(axis=1)

    # The model divides the sums by both factors, so the class probabilities are the same.
    scale = 1 / (total * (n_classes - 1))
    if _short_form_predicts_alike(trees, decide, scale, unknown=True):
        rules, complete = _short_rules(trees, classes, scale)
        return about.voting(rules, classes, "logistic", complete=complete)
    return about.voting(_full_rules(trees, classes), classes, "votes", complete=True)


def slipper(model: Any, about: Frame) -> RuleSet:
    """Read SLIPPER: a rule votes for the second class if it holds, otherwise for the first."""
    check_is_fitted(model, "estimators_")
    classes = _trusted_labels(model)
    total = float(model.estimator_weights_.sum())
    # A rule that holds adds its vote for the second class and removes its vote for the first.
    rules = [Rule((), classes[0], None, 2.0)]
    for inner, weight in _stages(model):
        conditions = conjunction(_slipper_condition(part) for part in inner.rule)
        if conditions is not None:
            rules.append(Rule(conditions, classes[1], None, 4 * weight / total))
    return about.voting(rules, classes, "logistic")


def _stages(model: Any) -> Iterator[tuple[Any, float]]:
    """Yield the boosted models with their weights; the list of weights may be longer."""
    for inner, weight in zip(model.estimators_, model.estimator_weights_, strict=False):
        yield inner, float(weight)


def _slipper_condition(part: dict[str, Any]) -> Interval:
    feature, pivot = int(part["feature"]), float(part["pivot"])
    if part["operator"] == ">":
        return Interval(feature, lower=pivot)
    if part["operator"] == "<":
        return Interval(feature, upper=pivot, upper_closed=False)
    return Interval(feature, pivot, pivot, lower_closed=True, upper_closed=True)


def _trusted_labels(model: Any) -> list[Any]:
    classes = labels(model)
    if classes != list(range(len(classes))):
        warnings.warn(
            f"{type(model).__name__} of imodels compares the codes 0, 1, ... that its parts "
            f"predict with the labels {classes!r}, so its own predictions are wrong. The rules "
            "predict what its parts have learned. To get the same predictions, fit it on codes.",
            UserWarning,
            stacklevel=4,
        )
    return classes


def tree_gam(model: Any, about: Frame) -> RuleSet:
    """Read an additive model of small trees: a constant, and the values of leaves."""
    check_is_fitted(model, "estimators_")
    if model.estimators_marginal:
        raise ValueError(
            "The model includes a gradient boosting model per feature "
            f"(n_boosting_rounds_marginal={model.n_boosting_rounds_marginal!r}), which skescore "
            "cannot read: fit it with n_boosting_rounds_marginal=0."
        )
    classes = labels(model) if hasattr(model, "classes_") else None
    shares = getattr(model, "cyclic_coef_", None)
    if shares is None:
        shares = np.ones(len(model.estimators_)) * model.learning_rate
    decays: list[float] = []
    if model.decay_rate_towards_marginal < 1.0:
        decays = list(model.decay_coef_towards_marginal_)
    addends: list[tuple[tuple[Interval, ...], float]] = [((), float(model.bias_))]
    for i, outer in enumerate(model.estimators_):
        tree = getattr(outer, "estimator_", outer).tree_  # shrunken trees are wrapped
        share = float(shares[i]) * float(decays[i]) if i < len(decays) else float(shares[i])
        for leaf, conditions in reachable_leaves(tree):
            addends.append((conditions, share * float(tree.value[leaf, 0, 0])))
    addends = [(conditions, value) for conditions, value in addends if value != 0]
    if classes is None:
        return about.voting([Rule(*addend) for addend in addends], None, "sum")
    # The second class is predicted if its sum, clipped to a share, exceeds one half.
    rules = [Rule(conditions, classes[1], None, value) for conditions, value in addends]
    return about.voting([*rules, Rule((), classes[0], None, _HALF)], classes, "votes")


#: Largest rounding error of a share beyond 0 or 1.
_ROUNDING = 1e-9


def greedy_tree(model: Any, about: Frame) -> RuleSet:
    """Read a scikit-learn tree with the feature names that imodels stores."""
    return read_tree(model, feature_names=about.feature_names, domain=about.domain)


def wrapped_tree(model: Any, about: Frame) -> RuleSet:
    """Read a model that predicts by the scikit-learn model in its ``estimator_``."""
    inner = model.estimator_
    check_is_fitted(inner)
    options: dict[str, Any] = {"feature_names": about.feature_names, "domain": about.domain}
    if isinstance(inner, DecisionTreeClassifier | DecisionTreeRegressor):
        rules = tree_to_ruleset(inner, **options)
    elif isinstance(inner, FORESTS):
        rules = read_forest(inner, **options)
    elif isinstance(inner, BOOSTED):
        rules = read_boosted(inner, **options)
    else:
        raise TypeError(
            f"{type(model).__name__} wraps a {type(inner).__name__}, which skescore cannot read; "
            "it can read scikit-learn's decision trees, forests and boosted trees."
        )
    if rules.classes is None:
        return rules.replace(rules=[_without_mean(rule) for rule in rules])
    is_shrunken = (imodels_class(model) or "").startswith("HS")  # the counted shares are changed
    reference = None if is_shrunken else rules.reference
    if not hasattr(model, "classes_"):
        return rules.replace(reference=reference)
    # The inner model may have been fitted on codes of the labels, such as 1.0 for True.
    label_of = dict(zip(rules.classes, labels(model), strict=True))
    renamed = [replace(rule, output=label_of[rule.output]) for rule in rules]
    return rules.replace(rules=renamed, classes=labels(model), reference=reference)


def _without_mean(rule: Rule) -> Rule:
    """Remove the mean, which differs from the prediction of a shrunken leaf."""
    if rule.statistics is None:
        return rule
    return replace(rule, statistics=replace(rule.statistics, mean=None))


def tao_tree(model: Any, about: Frame) -> RuleSet:
    """Read a tree whose cuts were moved after growth, so that no row reaches some leaves."""
    check_is_fitted(model, "model")
    tree = model.model.tree_
    classes = labels(model) if hasattr(model, "classes_") else None
    rules = []
    for leaf, conditions in reachable_leaves(tree):
        value, weight = tree.value[leaf, 0], float(tree.weighted_n_node_samples[leaf])
        if classes is None:
            rules.append(Rule(conditions, float(value[0])))
            continue
        # The class probabilities, by which the model predicts, are from before the cuts were moved.
        counts = tuple((value / value.sum() * weight).tolist())
        statistics = RuleStatistics(weight, counts)
        rules.append(Rule(conditions, classes[int(np.argmax(value))], statistics))
    return about.ruleset(rules, classes, ordered=False, disjoint=True)


def c45_tree(model: Any, about: Frame) -> RuleSet:
    """Read a C4.5 tree, which imodels stores as XML, with or without shrunken leaves."""
    tree = getattr(model, "estimator_", model)
    check_is_fitted(tree, "dom_")
    classes = labels(tree)
    column_index = {name: i for i, name in enumerate(tree.feature_names)}
    rules = []
    for leaf, steps in _xml_leaves(tree.root, column_index, ()):
        conditions = conjunction(steps)
        if conditions is None:
            continue
        value = float(leaf.nodeValue)
        if len(classes) == 2:
            # The share of the second class: 0 or 1, or a shrunken value.
            share = min(1.0, max(0.0, value))
            if abs(value - share) > _ROUNDING:
                raise ValueError(
                    f"A leaf of {type(model).__name__} has a share {value!r} of the second class. "
                    "The model averages labels, so they must be 0 and 1. Fit the model, and the "
                    "tree in it, on labels 0 and 1."
                )
            output = classes[int(np.argmax([1 - value, value]))]
            n_rows = len(getattr(leaf, "labels", ()))
            statistics = RuleStatistics(n_rows, ((1 - share) * n_rows, share * n_rows))
            rules.append(Rule(conditions, output, statistics if n_rows else None))
        elif tree is not model:
            raise ValueError(
                f"{type(model).__name__} averages the codes of its {len(classes)} classes in each "
                "leaf, which is meaningless. Fit it on two classes, or read its estimator_."
            )
        else:
            # The code of a class. If a leaf has so few of its parent's rows that their share was
            # rounded to 0, it has no vote, and imodels predicts the first class.
            ignored = float(leaf.parentNode.getAttribute("p") or 1) == 0
            rules.append(Rule(conditions, classes[0 if ignored else int(value)]))
    reference = "data" if tree is model else None  # shrinkage changes the counted shares
    return about.ruleset(rules, classes, ordered=False, disjoint=True, reference=reference)


def _xml_leaves(
    node: Any, column_index: dict[str, int], steps: tuple[Interval, ...]
) -> Iterator[tuple[Any, tuple[Interval, ...]]]:
    """Return the text nodes, which hold the predictions, and the comparisons on their paths."""
    for child in node.childNodes:
        if child.nodeName == "#text":
            yield child, steps
            continue
        feature, cut = column_index[child.nodeName], float(child.getAttribute("feature"))
        if child.getAttribute("flag") == "l":
            step = Interval(feature, upper=cut, upper_closed=False)
        else:
            step = Interval(feature, lower=cut, lower_closed=True)
        yield from _xml_leaves(child, column_index, (*steps, step))


_READERS: dict[str, Callable[[Any, Frame], RuleSet]] = {
    "BayesianRuleListClassifier": bayesian_list,
    "BayesianRuleSetClassifier": bayesian_set,
    "BoostedRulesClassifier": boosted_classifier,
    "BoostedRulesRegressor": boosted_regressor,
    "C45TreeClassifier": c45_tree,
    "DecisionTreeCCPClassifier": wrapped_tree,
    "DecisionTreeCCPRegressor": wrapped_tree,
    "FIGSClassifier": figs,
    "FIGSRegressor": figs,
    "FPLassoClassifier": rule_fit,
    "FPLassoRegressor": rule_fit,
    "FPSkopeClassifier": skope_rules,
    "FastFrugalTreeClassifier": fast_frugal_tree,
    "GreedyRuleListClassifier": greedy_list,
    "GreedyTreeClassifier": greedy_tree,
    "GreedyTreeRegressor": greedy_tree,
    "HSC45TreeClassifier": c45_tree,
    "HSC45TreeClassifierCV": c45_tree,
    "HSDecisionTreeCCPClassifierCV": wrapped_tree,
    "HSDecisionTreeCCPRegressorCV": wrapped_tree,
    "HSTreeClassifier": wrapped_tree,
    "HSTreeClassifierCV": wrapped_tree,
    "HSTreeRegressor": wrapped_tree,
    "HSTreeRegressorCV": wrapped_tree,
    "OneRClassifier": greedy_list,
    "RuleFitClassifier": rule_fit,
    "RuleFitRegressor": rule_fit,
    "SkopeRulesClassifier": skope_rules,
    "SlipperClassifier": slipper,
    "TaoTreeClassifier": tao_tree,
    "TaoTreeRegressor": tao_tree,
    "TreeGAMClassifier": tree_gam,
    "TreeGAMRegressor": tree_gam,
}
#: Functions that return the inner model of models that contain another model.
_HOLDERS: dict[str, Callable[[Any], Any]] = {
    "AutoInterpretableClassifier": lambda model: model.est_.best_estimator_[-1],
    "AutoInterpretableRegressor": lambda model: model.est_.best_estimator_[-1],
    "FIGSClassifierCV": lambda model: model.figs,
    "FIGSRegressorCV": lambda model: model.figs,
}
#: Names of the classes that :func:`read_imodels` reads.
SUPPORTED = tuple(sorted([*_READERS, *_HOLDERS]))


def read_imodels(
    model: Any, *, feature_names: Sequence[str] | None = None, domain: Domain | None = None
) -> RuleSet:
    """Convert a fitted model of imodels to a rule set with the same predictions.

    Use it to score, compare, simplify or export models of imodels. The class of the model
    identifies its package, so imodels is not imported.

    Parameters
    ----------
    model : object
        A fitted model of one of the classes below, or of a subclass.
    feature_names : sequence of str, optional
        Names of the features in the rules; by default those that the model was fitted with. imodels
        names the columns of arrays ``X0``, ``X1``, ...; for models without names, they are ``x0``,
        ``x1``, ...
    domain : Domain, optional
        Box around the training rows, which the models do not store; required for volumes.

    Returns
    -------
    RuleSet
        The rules. Their way of predicting depends on the model:

        - A single rule predicts: ``GreedyRuleListClassifier``, ``OneRClassifier``,
          ``FastFrugalTreeClassifier``, ``BayesianRuleListClassifier`` (ordered lists);
          ``BayesianRuleSetClassifier`` (rules for the second class, a fallback for the first);
          ``GreedyTree...``, ``HSTree...``, ``HSTree...CV``, ``DecisionTreeCCP...``,
          ``HSDecisionTreeCCP...CV``, ``TaoTree...``, ``C45TreeClassifier``,
          ``HSC45TreeClassifier`` (leaves, disjoint); ``BoostedRulesRegressor`` (a weighted median,
          cut into disjoint boxes).
        - ``voting="sum"``: ``FIGSRegressor``, ``RuleFitRegressor``, ``FPLassoRegressor``,
          ``TreeGAMRegressor``.
        - ``voting="logistic"``: ``FIGSClassifier``, ``RuleFitClassifier``, ``FPLassoClassifier``,
          ``BoostedRulesClassifier``, ``SlipperClassifier``.
        - ``voting="votes"``: ``SkopeRulesClassifier``, ``FPSkopeClassifier``,
          ``TreeGAMClassifier``.
        - Like the model that was selected: ``FIGS...CV``, ``AutoInterpretable...``. Like
          scikit-learn's forests and boosted trees: ``HSTree...`` around one of these.

    Raises
    ------
    TypeError
        If the model has another class, or contains models that are not trees.
    ValueError
        If its predictions cannot be expressed as rules: several outputs, categorical features that
        FIGS encodes by itself, a weighted median with too many boxes, or an additive model that
        includes gradient boosting.
    sklearn.exceptions.NotFittedError
        If the model is not fitted.

    Warns
    -----
    UserWarning
        For ``BoostedRulesClassifier`` and ``SlipperClassifier`` fitted on labels other than 0, 1,
        ...: imodels 3.0.4 compares codes with labels and predicts wrongly. The rules predict what
        the model's parts have learned.

    Notes
    -----
    - Tested with imodels 3.0.4 on float64 rows. imodels compares float32 columns with thresholds
      of rule texts in float32, so a row on a threshold may be on the other side.
    - `predict_proba` is that of the model, except for ``SkopeRulesClassifier``,
      ``FPSkopeClassifier`` and ``TreeGAMClassifier``: if p is the model's share of the second
      class, the rule set returns p / (p + 1/2), which has the same ranking and exceeds 1/2 for the
      same rows. ``BayesianRuleSetClassifier`` has no shares; its rules have probability 1.
    - ``BayesianRuleSetClassifier`` predicts 0 and 1 for all labels; its rules predict the labels.
      It is intended for columns of 0 and 1; for other values, the rules predict differently.
    - Rules and leaves that no row can satisfy, and rules with weight 0, are omitted.
    - Linear terms of RuleFit are clipped at quantiles of the training rows, so each becomes up to
      three rules: below, between and above. In classification, their weights depend on the row.
    - Leaves of FIGS and of boosted rules have a value for every class, from which the smallest is
      subtracted unless this would change the prediction for equal sums.
    - Class counts of shrunken trees are shares times rows. Those of a Bayesian rule list include
      the prior counts; those of a TAO tree are from before its cuts were moved.
    - Not supported: ``FastRiskScoreClassifier``, ``SLIM...``, ``GPGamRegressor``,
      ``MarginalShrinkageLinearRegressor`` (linear or smooth models without rules), ``BART`` (an
      average of sampled models), ``IRF...`` (a different kind of forest),
      ``FastSmallTreeClassifier`` (requires numba, not tested), ``DistilledRegressor`` (read its
      ``student``).

    Examples
    --------
    A fitted model of imodels::

        model = imodels.FIGSClassifier(max_rules=5).fit(X, y)
        rules = read_imodels(model)
        (rules.predict(X) == model.predict(X)).all()
    """
    name = imodels_class(model)
    if name in _HOLDERS:
        check_is_fitted(model)
        return _read_inner(_HOLDERS[name](model), feature_names, domain)
    if name not in _READERS:
        raise TypeError(
            f"{type(model).__name__} is no model of imodels whose rules skescore can read. "
            f"It reads {listed(SUPPORTED, limit=len(SUPPORTED))}."
        )
    return _READERS[name](model, frame(model, feature_names, domain))


def imodels_class(model: Any) -> str | None:
    """Return the name of the class of imodels of a model; None for other models."""
    for base in type(model).__mro__:
        if base.__module__.partition(".")[0] == "imodels":
            return base.__name__
    return None


def _read_inner(inner: Any, feature_names: Sequence[str] | None, domain: Domain | None) -> RuleSet:
    """Read the inner model of another model, which may be from another package."""
    if imodels_class(inner) is None and isinstance(
        inner, DecisionTreeClassifier | DecisionTreeRegressor
    ):
        return tree_to_ruleset(inner, feature_names=feature_names, domain=domain)
    return read_imodels(inner, feature_names=feature_names, domain=domain)
