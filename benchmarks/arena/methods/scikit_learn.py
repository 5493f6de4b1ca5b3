"""Trees of scikit-learn: of every size up to 16 leaves, and tuned over their leaves for a score.

A tuned tree has the number of leaves, from 2 to 32, of the best mean score in five folds of the
black box's predictions; it is then fitted on all rows.
"""

import numpy as np
from sklearn.base import clone
from sklearn.metrics import accuracy_score, f1_score, mean_absolute_error, r2_score
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from skescore.metrics import fire_score, ice_score
from skescore.rules import as_ruleset

_LEAVES = (2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32)


def _ice_of_classes(y, y_pred, n_rules):
    return ice_score(f1_score(y, y_pred, average="weighted"), n_rules, 1.0)


def _ice_of_numbers(y, y_pred, n_rules):
    return ice_score(max(r2_score(y, y_pred), 0.0), n_rules, 1.0)


def _fire_of_classes(y, y_pred, n_rules):
    return -fire_score(1 - accuracy_score(y, y_pred), n_rules)


def _fire_of_numbers(y, y_pred, n_rules):
    return -fire_score(mean_absolute_error(y, y_pred), n_rules)


class _Tuned:
    """A function of (X, y, random_state) that gives the rules of a tuned tree."""

    def __init__(self, tree, folds, score):
        self.tree, self.folds, self.score = tree, folds, score

    def __call__(self, X, y, random_state):
        classifies = isinstance(self.tree, DecisionTreeClassifier)
        rare = np.bincount(y).max() < 5 if classifies else True
        folds = (KFold if rare else StratifiedKFold)(5, shuffle=True, random_state=0)
        means = []
        for leaves in _LEAVES:
            tree = clone(self.tree).set_params(max_leaf_nodes=leaves, random_state=random_state)
            scores = []
            for train, test in folds.split(X, y):
                tree.fit(X.iloc[train], y[train])
                y_pred = tree.predict(X.iloc[test])
                scores.append(self.score(y[test], y_pred, tree.get_n_leaves()))
            means.append(np.mean(scores))
        leaves = _LEAVES[int(np.argmax(means))]
        tree = clone(self.tree).set_params(max_leaf_nodes=leaves, random_state=random_state)
        return as_ruleset(tree.fit(X, y))


def _tuned(of_classes, of_numbers):
    return {
        "classification": _Tuned(DecisionTreeClassifier(), 5, of_classes),
        "regression": _Tuned(DecisionTreeRegressor(), 5, of_numbers),
    }


def _tree(leaves):
    return {
        "classification": DecisionTreeClassifier(max_leaf_nodes=leaves),
        "regression": DecisionTreeRegressor(max_leaf_nodes=leaves),
    }


METHODS = {
    "tree tuned for ICE": _tuned(_ice_of_classes, _ice_of_numbers),
    "tree tuned for FiRe": _tuned(_fire_of_classes, _fire_of_numbers),
    "tree (default)": _tree(None),
    **{f"tree {leaves}": _tree(leaves) for leaves in range(2, 17)},
}
