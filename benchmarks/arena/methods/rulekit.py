"""RuleKit's rules by sequential covering, with its defaults; needs Java."""

import pandas as pd

REQUIRES = ["rulekit>=2.1"]


def _classes(X, y, random_state):
    from rulekit.classification import RuleClassifier

    return RuleClassifier().fit(X, pd.Series(y, name="target"))


def _numbers(X, y, random_state):
    from rulekit.regression import RuleRegressor

    return RuleRegressor().fit(X, pd.Series(y, name="target"))


METHODS = {"RuleKit": {"classification": _classes, "regression": _numbers}}
