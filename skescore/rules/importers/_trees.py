"""Rules from scikit-learn's decision trees, exact to the last bit.

A tree compares ``float32(x) <= threshold``. Rounding to float32 is monotone, so the rows that pass
are exactly those with ``x <= t`` for another float ``t``, which is what the rules hold: they answer
like the tree on every float64 row, also on rows within rounding distance of a threshold.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from skescore.rules._conditions import Interval
from skescore.rules._domain import Domain
from skescore.rules._rule import Rule, RuleStatistics
from skescore.rules._ruleset import RuleSet

#: One step from the root: the node left, and whether to its left (``<=``) side.
_Step = tuple[int, bool]


def float32_cut(threshold: float) -> float:
    """The largest float64 that is at most `threshold` after rounding to float32."""
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
    """The number itself; for infinity, where the grid of float32 would go on."""
    return math.copysign(2.0**128, value) if np.isinf(value) else float(value)


def leaf_paths(tree: Any) -> dict[int, list[_Step]]:
    """The way from the root to every leaf, leaves in order of node number."""
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
    has been answered. The last leaf is left without steps.
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


def _intervals(steps: Iterable[tuple[int, float, bool]]) -> tuple[Interval, ...]:
    """What all steps of a way (feature, cut, whether to its left) ask for together."""
    bounds: dict[int, tuple[float, float]] = {}
    for feature, cut, left in steps:
        low, high = bounds.get(feature, (-math.inf, math.inf))
        bounds[feature] = (low, min(high, cut)) if left else (max(low, cut), high)
    return tuple(Interval(feature, low, high) for feature, (low, high) in bounds.items())


def tree_to_ruleset(
    model: Any,
    *,
    feature_names: Sequence[str] | None = None,
    classes: Sequence[Any] | None = None,
    domain: Domain | None = None,
    simplify: bool = False,
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
    **settings
        Further parameters of :class:`RuleSet`.

    Returns
    -------
    RuleSet
        The leaves in order of node number.
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
    known = np.empty(0, dtype=int)
    if classification:
        known = np.arange(tree.max_n_classes)
        if classes is None:
            classes = model.classes_.tolist()
        else:
            known = model.classes_.astype(int)
    leaves = leaf_paths(tree)
    paths = shortened_paths(leaves) if simplify else leaves
    inner = np.flatnonzero(tree.children_left != -1).tolist()
    cuts = {node: float32_cut(tree.threshold[node]) for node in inner}
    rules = []
    for leaf, path in paths.items():
        conditions = _intervals((int(tree.feature[n]), cuts[n], left) for n, left in path)
        value = tree.value[leaf, 0]
        n_rows = int(tree.n_node_samples[leaf])
        if classification:
            assert classes is not None
            # scikit-learn < 1.3 held counts, later versions shares: both sum to the same here.
            weight = tree.weighted_n_node_samples[leaf]
            counts = value / value.sum() * weight
            whole = np.round(counts)
            counts = np.where(np.abs(counts - whole) <= 1e-12 * weight, whole, counts)
            output = classes[known[np.argmax(value)]]
            all_counts = np.zeros(len(classes))
            all_counts[known] = counts
            statistics = RuleStatistics(n_rows, tuple(all_counts.tolist()))
        else:
            output = float(value[0])
            squared = model.criterion in ("squared_error", "friedman_mse")
            spread = math.sqrt(max(0.0, tree.impurity[leaf])) if squared else None
            # With absolute errors, leaves answer their median.
            mean = None if model.criterion == "absolute_error" else output
            statistics = RuleStatistics(n_rows, mean=mean, spread=spread)
        rules.append(Rule(conditions, output, statistics))
    return RuleSet(
        rules,
        feature_names,
        task="classification" if classification else "regression",
        classes=classes if classification else None,
        domain=domain,
        ordered=simplify,
        disjoint=not simplify,
        **settings,
    )
