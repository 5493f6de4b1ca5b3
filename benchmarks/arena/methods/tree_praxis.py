"""The best sparse tree of PRAXIS (tree-praxis) with default settings.

Its columns are thresholds of boosted trees, as in its example, but without the elimination of
columns, which often takes more than half a minute.
"""

import contextlib
import io

import numpy as np

from skescore.rules import Interval, Rule, RuleSet

REQUIRES = ["tree-praxis>=0.0.30"]


def _learn(X, y, random_state):
    from praxis import PRAXIS, ThresholdGuessBinarizer

    classes, codes = np.unique(y, return_inverse=True)
    if len(classes) < 2:
        rule = Rule([], int(classes[0]))
        return RuleSet([rule], list(X.columns), task="classification", classes=classes.tolist())
    binarizer = ThresholdGuessBinarizer(column_elimination=False, random_state=random_state)
    with contextlib.redirect_stdout(io.StringIO()):
        columns = binarizer.fit_transform(X.to_numpy(float), codes)
        model = PRAXIS()
        model.fit(columns, codes, rashomon_mult=0.0)
        paths, labels = model.get_tree_paths(0)
    rules = []
    for path, label in zip(paths, labels.tolist(), strict=True):
        conditions = []
        for test in path:
            feature, threshold = binarizer.thresholds_[abs(test) - 1]
            bounds = {"upper": float(threshold)} if test > 0 else {"lower": float(threshold)}
            conditions.append(Interval(int(feature), **bounds))
        rules.append(Rule(conditions, int(classes[label])))
    return RuleSet(rules, list(X.columns), task="classification", classes=classes.tolist())


METHODS = {"tree-praxis": {"classification": _learn}}
