"""Smaller trees inside a fitted scikit-learn tree."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np


def first_leaves(model: Any, n_leaves: int) -> Any:
    """Return the tree that would have been fitted with fewer leaves.

    A tree that grows best first splits one node at a time, so the nodes of a smaller tree are the
    first nodes of a larger one.

    Parameters
    ----------
    model : DecisionTreeClassifier or DecisionTreeRegressor
        A tree that was fitted with a limit of leaves.
    n_leaves : int
        Number of leaves, at least 1.

    Returns
    -------
    DecisionTreeClassifier or DecisionTreeRegressor
        A copy of the model with the smaller tree; the model itself if its tree is not larger.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from skescore.extractors import first_leaves
    >>> X, y = load_iris(return_X_y=True)
    >>> tree = DecisionTreeClassifier(max_leaf_nodes=8, random_state=0).fit(X, y)
    >>> int(first_leaves(tree, 3).get_n_leaves())
    3
    """
    n_nodes = 2 * n_leaves - 1
    tree = model.tree_
    if tree.node_count <= n_nodes:
        return model
    # The children of a node have consecutive numbers, so both or neither are among the first nodes.
    return with_leaves(model, tree.children_left >= n_nodes)


def without_equal_siblings(model: Any) -> Any:
    """Return the tree without splits whose leaves all predict the same class.

    Parameters
    ----------
    model : DecisionTreeClassifier
        A fitted tree.

    Returns
    -------
    DecisionTreeClassifier
        A copy of the model with the same predictions; the model itself if no split is redundant.
    """
    is_superfluous = equal_siblings(model.tree_)
    return with_leaves(model, is_superfluous) if is_superfluous.any() else model


def equal_siblings(tree: Any, n_nodes: int | None = None) -> np.ndarray:
    """Return for each node whether it is an inner node whose leaves all predict the same class.

    Parameters
    ----------
    tree : sklearn.tree._tree.Tree
        The tree of a classifier.
    n_nodes : int, optional
        Number of first nodes of the tree to consider; by default all.

    Returns
    -------
    ndarray of bool, shape (n_nodes,)
        True for such nodes; nodes whose children are not considered count as leaves.
    """
    n_nodes = tree.node_count if n_nodes is None else min(n_nodes, tree.node_count)
    left, right = tree.children_left[:n_nodes], tree.children_right[:n_nodes]
    labels = tree.value[:n_nodes, 0].argmax(axis=1)
    is_inner = (left >= 0) & (left < n_nodes)
    only_label = np.where(is_inner, -1, labels)
    for node in np.flatnonzero(is_inner)[::-1]:  # children follow their parents
        below = only_label[left[node]], only_label[right[node]]
        if below[0] == below[1]:
            only_label[node] = below[0]
    return np.asarray(is_inner & (only_label >= 0))


def with_leaves(model: Any, is_leaf: np.ndarray) -> Any:
    """Return the tree with some inner nodes replaced by leaves.

    Parameters
    ----------
    model : DecisionTreeClassifier or DecisionTreeRegressor
        A fitted tree.
    is_leaf : ndarray of bool, shape (n_nodes,)
        Nodes that become leaves.

    Returns
    -------
    DecisionTreeClassifier or DecisionTreeRegressor
        A copy of the model.
    """
    kind, arguments, state = model.tree_.__reduce__()
    nodes = state["nodes"]
    depth = np.full(len(nodes), -1)
    depth[0] = 0
    for number in range(len(nodes)):
        left, right = nodes["left_child"][number], nodes["right_child"][number]
        if depth[number] >= 0 and left >= 0 and not is_leaf[number]:
            depth[left] = depth[right] = depth[number] + 1
    is_reached = depth >= 0
    new_number = np.cumsum(is_reached) - 1
    new_nodes = nodes[is_reached].copy()
    is_inner = (new_nodes["left_child"] >= 0) & ~is_leaf[is_reached]
    for side in ("left_child", "right_child"):
        new_nodes[side] = np.where(is_inner, new_number[new_nodes[side]], -1)
    new_nodes["feature"] = np.where(is_inner, new_nodes["feature"], -2)
    new_nodes["threshold"] = np.where(is_inner, new_nodes["threshold"], -2.0)
    new_nodes["missing_go_to_left"] = np.where(is_inner, new_nodes["missing_go_to_left"], 0)
    tree = kind(*arguments)
    tree.__setstate__(
        state
        | {
            "nodes": new_nodes,
            "values": np.ascontiguousarray(state["values"][is_reached]),
            "node_count": len(new_nodes),
            "max_depth": int(depth.max()),
        }
    )
    result = copy.copy(model)
    result.tree_ = tree
    return result
