"""What trees do with missing values, and what rules can say of it.

A tree sends a missing value to one side of a split; a missing value satisfies no condition of a
rule. The rules of a tree therefore hold on no row that has to pass a split with its value missing,
and where the rules of many trees vote, only those that hold do.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np


def learned_from_missing(model: Any) -> bool:
    """Tell whether a fitted tree has seen rows with missing values.

    Parameters
    ----------
    model : DecisionTreeClassifier or DecisionTreeRegressor
        A fitted tree.

    Returns
    -------
    bool
        False also where missing values happened to fit best on the side of most rows everywhere.
    """
    tree = model.tree_
    inner = np.flatnonzero(tree.children_left != -1)
    rows, left, right = tree.n_node_samples, tree.children_left, tree.children_right
    # Of splits that saw no missing value, scikit-learn notes the side of most rows.
    expected = rows[left[inner]] > rows[right[inner]]
    noted = np.asarray(tree.missing_go_to_left)[inner].astype(bool)
    return bool((noted != expected).any() or np.isinf(tree.threshold[inner]).any())


def check_splits(models: Iterable[Any], what: str, names: Sequence[str] | None) -> None:
    """Refuse trees that ask whether a value is missing, which no condition can.

    Parameters
    ----------
    models : iterable of fitted trees
        The tree, or all those of a forest.
    what : str
        How the error calls them.
    names : sequence of str, optional
        Names of the features.

    Raises
    ------
    ValueError
        If a split parts missing values from all others.
    """
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

    Parameters
    ----------
    model : DecisionTreeClassifier or DecisionTreeRegressor
        A fitted tree.

    Raises
    ------
    ValueError
        If it was fitted on rows with missing values.
    """
    if learned_from_missing(model):
        raise ValueError(
            "simplify=True would answer rows with missing values otherwise than the tree, which "
            "was fitted on such rows. Leave it out: then no rule holds for them, and predict says "
            "so. Or fill missing values in front of the tree: make_pipeline(SimpleImputer(), ...)."
        )
