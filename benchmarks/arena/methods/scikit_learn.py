"""Trees of scikit-learn: with 2 to 16 leaves, without a limit, and tuned for a score.

A tuned tree has 1 to 32 leaves. The number of leaves maximizes the mean score on five folds,
measured against the predictions of the black box. The tree is then fitted on all rows.
"""

import numpy as np
from sklearn.base import clone
from sklearn.metrics import accuracy_score, f1_score, mean_absolute_error, r2_score
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from skescore.metrics import fire_score, ice_score
from skescore.rules import as_ruleset

_N_LEAVES = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32)


def _ice_of_labels(y, y_pred, n_rules):
    return ice_score(f1_score(y, y_pred, average="weighted"), n_rules, 1.0)


def _ice_of_numbers(y, y_pred, n_rules):
    return ice_score(max(r2_score(y, y_pred), 0.0), n_rules, 1.0)


def _fire_of_labels(y, y_pred, n_rules):
    return -fire_score(1 - accuracy_score(y, y_pred), n_rules)


def _fire_of_numbers(y, y_pred, n_rules):
    return -fire_score(mean_absolute_error(y, y_pred), n_rules)


def _limit_leaves(tree, n_leaves):
    """Return an unfitted tree with a limit of leaves; scikit-learn itself needs at least 2."""
    tree = clone(tree).set_params(max_leaf_nodes=max(n_leaves, 2))
    return tree.set_params(min_samples_split=2**31 - 1) if n_leaves == 1 else tree


class _TreeTuner:
    """Callable that returns the rules of a tuned tree for (X, y, random_state)."""

    def __init__(self, tree, score):
        self.tree, self.score = tree, score

    def __call__(self, X, y, random_state):
        is_classifier = isinstance(self.tree, DecisionTreeClassifier)
        can_stratify = is_classifier and np.bincount(y).max() >= 5
        folds = (StratifiedKFold if can_stratify else KFold)(5, shuffle=True, random_state=0)
        means = []
        for n_leaves in _N_LEAVES:
            tree = _limit_leaves(self.tree, n_leaves).set_params(random_state=random_state)
            scores = []
            for train, test in folds.split(X, y):
                tree.fit(X.iloc[train], y[train])
                y_pred = tree.predict(X.iloc[test])
                scores.append(self.score(y[test], y_pred, tree.get_n_leaves()))
            means.append(np.mean(scores))
        n_leaves = _N_LEAVES[int(np.argmax(means))]
        tree = _limit_leaves(self.tree, n_leaves).set_params(random_state=random_state)
        return as_ruleset(tree.fit(X, y))


def _tuned_tree(label_score, number_score):
    return {
        "classification": _TreeTuner(DecisionTreeClassifier(), label_score),
        "regression": _TreeTuner(DecisionTreeRegressor(), number_score),
    }


def _tree(n_leaves):
    return {
        "classification": DecisionTreeClassifier(max_leaf_nodes=n_leaves),
        "regression": DecisionTreeRegressor(max_leaf_nodes=n_leaves),
    }


METHODS = {
    "tree tuned for ICE": _tuned_tree(_ice_of_labels, _ice_of_numbers),
    "tree tuned for FiRe": _tuned_tree(_fire_of_labels, _fire_of_numbers),
    "tree (default)": _tree(None),
    **{f"tree {n_leaves}": _tree(n_leaves) for n_leaves in range(2, 17)},
}
