"""RIPPER of wittgenstein with default settings: rules for the rarer of two classes.

The last rule, which has no condition, predicts the other class.
"""

import numpy as np

from skescore.rules import Interval, Rule, RuleSet

REQUIRES = ["wittgenstein>=0.3.4"]


def _read_condition(condition, columns):
    """Return the interval of a condition, which is a value or a range closed above."""
    feature = columns.index(condition.feature)
    if not isinstance(condition.val, str):
        value = float(condition.val)
        return Interval(feature, value, value, lower_closed=True)
    text = condition.val
    if text.startswith("<"):
        return Interval(feature, upper=float(text[1:]))
    if text.startswith(">"):
        return Interval(feature, float(text[1:]))
    lower, upper = map(float, text.split(" - "))
    return Interval(feature, lower, upper)


def _learn_ripper(X, y, random_state):
    from wittgenstein import RIPPER

    if len(np.unique(y)) != 2:
        raise ValueError("wittgenstein's RIPPER is for two classes")
    rare_class = int(np.argmin(np.bincount(y)))
    model = RIPPER(random_state=random_state)
    model.fit(X, y=y, pos_class=rare_class)
    columns = list(X.columns)
    rules = [
        Rule([_read_condition(c, columns) for c in rule.conds], rare_class)
        for rule in model.ruleset_.rules
    ]
    rules.append(Rule([], 1 - rare_class))
    return RuleSet(rules, columns, task="classification", classes=[0, 1])


METHODS = {"wittgenstein RIPPER": {"classification": _learn_ripper}}
