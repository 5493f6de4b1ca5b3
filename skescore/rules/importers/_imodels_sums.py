"""imodels' sums of trees: FIGS, boosted rules, SLIPPER and tree-based additive models.

Every leaf that a row reaches adds a number per class. One number of each leaf can be taken away
from all of its classes without changing who wins or by how much, which halves the rules of two
classes. Where sums tie but for rounding, though, that may turn the answer; so the short form is
taken only if it answers like the model for every combination of leaves.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np
from sklearn.utils.validation import check_is_fitted

from skescore.rules._conditions import Interval
from skescore.rules._rule import Rule, RuleStatistics
from skescore.rules._ruleset import RuleSet
from skescore.rules.importers._imodels_parts import (
    Frame,
    conjunction,
    labels,
    reachable_leaves,
)

#: The way to a leaf, what it adds to every class, and what was seen there.
Leaf: TypeAlias = tuple[tuple[Interval, ...], np.ndarray, RuleStatistics | None]
#: Gives the winning class from what the leaves add, shape (n_combinations, n_classes, n_trees).
Decide: TypeAlias = Callable[[np.ndarray], np.ndarray]
#: Combinations of leaves that are looked at to find out whether the short form does.
_COMBINATIONS = 1 << 15
#: The second class of a tree-based additive model wins with more than this.
_HALF = 0.5


def _combinations(trees: Sequence[Sequence[Leaf]]) -> np.ndarray | None:
    """What the leaves add, for every choice of one leaf per tree; None if there are too many."""
    sizes = [len(tree) for tree in trees]
    total = 1
    for size in sizes:
        total *= size
    if total > _COMBINATIONS:
        return None
    chosen = np.unravel_index(np.arange(total), sizes)
    added = [
        np.array([leaf[1] for leaf in tree])[index]
        for tree, index in zip(trees, chosen, strict=True)
    ]
    return np.ascontiguousarray(np.stack(added, axis=-1))


def _in_order(added: np.ndarray) -> np.ndarray:
    """Add up the trees one after the other, as rule sets do."""
    total = np.zeros(added.shape[:2])
    for k in range(added.shape[2]):
        total += added[:, :, k]
    return total


def _least_removed(added: np.ndarray) -> np.ndarray:
    """Take the least number of each leaf away from all of its classes."""
    return np.asarray(added - added.min(axis=1, keepdims=True))


def _short_form_answers_alike(
    trees: Sequence[Sequence[Leaf]], decide: Decide, scale: float, *, unknown: bool
) -> bool:
    added = _combinations(trees)
    if added is None:
        return unknown
    short = _in_order(scale * _least_removed(added)).argmax(axis=1)
    return bool((short == decide(added)).all())


def _short_rules(
    trees: Sequence[Sequence[Leaf]], classes: Sequence[Any], scale: float
) -> tuple[list[Rule], bool]:
    """Rules of the short form, and whether some tree has one for each of its leaves."""
    rules, complete = [], False
    for tree in trees:
        silent = 0
        for conditions, added, seen in tree:
            weights = scale * (added - added.min())
            said = [
                Rule(conditions, label, seen, float(weight))
                for label, weight in zip(classes, weights, strict=True)
                if weight != 0
            ]
            silent += not said
            rules += said
        complete |= not silent
    return rules, complete


def _full_rules(trees: Sequence[Sequence[Leaf]], classes: Sequence[Any]) -> list[Rule]:
    return [
        Rule(conditions, label, seen, float(weight))
        for tree in trees
        for conditions, added, seen in tree
        for label, weight in zip(classes, added, strict=True)
    ]


# --- FIGS ------------------------------------------------------------------------------------


def figs(model: Any, about: Frame) -> RuleSet:
    """Read a sum of trees that were grown together."""
    check_is_fitted(model, "trees_")
    if getattr(model, "categorical_features_", None) is not None:
        raise ValueError(
            "The model was fitted with categorical_features, which it encodes by itself: its "
            "rules speak of the encoded columns, not of X. Encode X in front of the model."
        )
    classes = labels(model) if hasattr(model, "classes_") else None
    if classes is None and model.n_outputs != 1:
        raise ValueError(
            f"The model has {model.n_outputs} outputs; rules have one. Fit one model per output."
        )
    trees = [list(_figs_leaves(root, (), classes)) for root in model.trees_]
    if classes is None:
        rules = [Rule(way, float(v[0]), seen) for tree in trees for way, v, seen in tree]
        return about.voting(rules, None, "sum", complete=True)

    def decide(added: np.ndarray) -> np.ndarray:
        return np.asarray(added.sum(axis=-1).argmax(axis=1))

    # Ties are nothing rare here: the leaves hold shares of few rows.
    if _short_form_answers_alike(trees, decide, 1.0, unknown=False):
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
            seen = RuleStatistics(float(counts.sum()), None if classes is None else tuple(counts))
            yield conditions, np.asarray(node.value, dtype=float).reshape(-1), seen
        return
    feature, cut = int(node.feature), float(node.threshold)
    yield from _figs_leaves(node.left, (*steps, Interval(feature, upper=cut)), classes)
    yield from _figs_leaves(node.right, (*steps, Interval(feature, lower=cut)), classes)


# --- boosted rules ---------------------------------------------------------------------------


def boosted_classifier(model: Any, about: Frame) -> RuleSet:
    """Read boosted trees: each votes for its leaf's class and against all others."""
    check_is_fitted(model, "estimators_")
    classes = _trusted_labels(model)
    n_classes, total = len(classes), float(model.estimator_weights_.sum())
    if n_classes == 1:
        return about.ruleset([Rule((), classes[0])], classes)
    trees = []
    for inner, weight in _stages(model):
        if not hasattr(inner, "tree_"):
            raise TypeError(
                f"{type(model).__name__} boosts {type(inner).__name__}, which skescore cannot "
                "read; it reads boosted decision trees and SlipperClassifier."
            )
        leaves: list[Leaf] = []
        for leaf, conditions in reachable_leaves(inner.tree_):
            added = np.full(n_classes, -1 / (n_classes - 1) * weight)
            added[int(inner.classes_[np.argmax(inner.tree_.value[leaf, 0])])] = weight
            leaves.append((conditions, added, None))
        trees.append(leaves)

    def decide(added: np.ndarray) -> np.ndarray:
        sums = _in_order(added) / total
        return (sums[:, 1] - sums[:, 0] > 0).astype(int) if n_classes == 2 else sums.argmax(axis=1)

    # These make the class shares those of the model, which divides the sums by both.
    scale = 1 / (total * (n_classes - 1))
    if _short_form_answers_alike(trees, decide, scale, unknown=True):
        rules, complete = _short_rules(trees, classes, scale)
        return about.voting(rules, classes, "logistic", complete=complete)
    return about.voting(_full_rules(trees, classes), classes, "votes", complete=True)


def slipper(model: Any, about: Frame) -> RuleSet:
    """Read SLIPPER: each rule votes for the second class where it holds, else for the first."""
    check_is_fitted(model, "estimators_")
    classes = _trusted_labels(model)
    total = float(model.estimator_weights_.sum())
    # Against the first class, what a rule says where it holds counts twice: for and not against.
    rules = [Rule((), classes[0], None, 2.0)]
    for inner, weight in _stages(model):
        conditions = conjunction(_slipper_condition(part) for part in inner.rule)
        if conditions is not None:
            rules.append(Rule(conditions, classes[1], None, 4 * weight / total))
    return about.voting(rules, classes, "logistic")


def _stages(model: Any) -> Iterator[tuple[Any, float]]:
    """The boosted models with their weights; the list of weights may be longer."""
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
            f"{type(model).__name__} of imodels compares the codes 0, 1, ... that its parts answer "
            f"with the labels {classes!r}, so its own predictions are wrong. The rules answer what "
            "its parts have learned; for predictions that agree, fit it on codes.",
            UserWarning,
            stacklevel=4,
        )
    return classes


# --- additive models -------------------------------------------------------------------------


def tree_gam(model: Any, about: Frame) -> RuleSet:
    """Read an additive model of small trees: a start, and what each leaf adds to it."""
    check_is_fitted(model, "estimators_")
    if model.estimators_marginal:
        raise ValueError(
            "The model mixes in a gradient boosting model per feature "
            f"(n_boosting_rounds_marginal={model.n_boosting_rounds_marginal!r}), which skescore "
            "does not read: fit it with n_boosting_rounds_marginal=0."
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
    # The second class wins if its sum, clipped to be a share, is more than the rest.
    rules = [Rule(conditions, classes[1], None, value) for conditions, value in addends]
    return about.voting([*rules, Rule((), classes[0], None, _HALF)], classes, "votes")
