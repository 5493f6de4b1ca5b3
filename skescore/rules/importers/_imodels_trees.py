"""imodels' single trees, and the trees and forests that it shrinks: each row has one leaf."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
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
from skescore.rules.importers._sklearn import BOOSTED, FORESTS, read_boosted, read_forest
from skescore.rules.importers._trees import tree_to_ruleset

#: How far rounding takes a share beyond 0 or 1.
_ROUNDING = 1e-9


def greedy_tree(model: Any, about: Frame) -> RuleSet:
    """Read a tree that is scikit-learn's but for its names."""
    check_is_fitted(model)
    return tree_to_ruleset(model, feature_names=about.feature_names, domain=about.domain)


def wrapped_tree(model: Any, about: Frame) -> RuleSet:
    """Read a model that answers by the scikit-learn model in its ``estimator_``."""
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
            "it reads scikit-learn's decision trees, forests and boosted trees."
        )
    if rules.classes is None:
        return rules.replace(rules=[_without_mean(rule) for rule in rules])
    if not hasattr(model, "classes_"):
        return rules
    # The inner model was fitted on codes of the labels, not on the labels: 1.0 stands for True.
    named = dict(zip(rules.classes, labels(model), strict=True))
    renamed = [replace(rule, output=named[rule.output]) for rule in rules]
    return rules.replace(rules=renamed, classes=labels(model))


def _without_mean(rule: Rule) -> Rule:
    """Forget the mean, which a shrunken leaf does not answer."""
    if rule.statistics is None:
        return rule
    return replace(rule, statistics=replace(rule.statistics, mean=None))


def tao_tree(model: Any, about: Frame) -> RuleSet:
    """Read a tree whose cuts were moved after it had grown: some leaves are out of reach."""
    check_is_fitted(model, "model")
    tree = model.model.tree_
    classes = labels(model) if hasattr(model, "classes_") else None
    rules = []
    for leaf, conditions in reachable_leaves(tree):
        value, weight = tree.value[leaf, 0], float(tree.weighted_n_node_samples[leaf])
        if classes is None:
            rules.append(Rule(conditions, float(value[0])))
            continue
        # The class shares are still those from before the cuts moved; the model answers by them.
        counts = tuple((value / value.sum() * weight).tolist())
        seen = RuleStatistics(weight, counts)
        rules.append(Rule(conditions, classes[int(np.argmax(value))], seen))
    return about.ruleset(rules, classes, ordered=False, disjoint=True)


def c45_tree(model: Any, about: Frame) -> RuleSet:
    """Read a C4.5 tree, which imodels keeps as XML; also one whose leaves were shrunk."""
    tree = getattr(model, "estimator_", model)
    check_is_fitted(tree, "dom_")
    classes = labels(tree)
    place = {name: i for i, name in enumerate(tree.feature_names)}
    rules = []
    for leaf, steps in _xml_leaves(tree.root, place, ()):
        conditions = conjunction(steps)
        if conditions is None:
            continue
        value = float(leaf.nodeValue)
        if len(classes) == 2:
            # The share of the second class: 0 or 1, or what shrinkage made of it.
            share = min(1.0, max(0.0, value))
            if abs(value - share) > _ROUNDING:
                raise ValueError(
                    f"A leaf of {type(model).__name__} gives its second class the share {value!r}: "
                    "it averages labels, which are shares only if they are 0 and 1. Fit it, and "
                    "the tree in it, on labels 0 and 1."
                )
            output = classes[int(np.argmax([1 - value, value]))]
            n_rows = len(getattr(leaf, "labels", ()))
            seen = RuleStatistics(n_rows, ((1 - share) * n_rows, share * n_rows))
            rules.append(Rule(conditions, output, seen if n_rows else None))
        elif tree is not model:
            raise ValueError(
                f"{type(model).__name__} averages the codes of its {len(classes)} classes in each "
                "leaf, which says nothing. Fit it on two classes, or read its estimator_."
            )
        else:
            # The code of a class. A leaf with so few of its parent's rows that the share was
            # rounded to 0 has no vote, and imodels then answers the first class.
            ignored = float(leaf.parentNode.getAttribute("p") or 1) == 0
            rules.append(Rule(conditions, classes[0 if ignored else int(value)]))
    return about.ruleset(rules, classes, ordered=False, disjoint=True)


def _xml_leaves(
    node: Any, place: dict[str, int], steps: tuple[Interval, ...]
) -> Iterator[tuple[Any, tuple[Interval, ...]]]:
    """Give the text nodes, which hold the answers, with the comparisons on the way there."""
    for child in node.childNodes:
        if child.nodeName == "#text":
            yield child, steps
            continue
        feature, cut = place[child.nodeName], float(child.getAttribute("feature"))
        if child.getAttribute("flag") == "l":
            step = Interval(feature, upper=cut, upper_closed=False)
        else:
            step = Interval(feature, lower=cut, lower_closed=True)
        yield from _xml_leaves(child, place, (*steps, step))
