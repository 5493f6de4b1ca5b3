"""Sequential covering by RuleKit with default settings; needs Java."""

import pandas as pd

REQUIRES = ["rulekit>=2.1"]


def _learn_classifier(X, y, random_state):
    from rulekit.classification import RuleClassifier

    return RuleClassifier().fit(X, pd.Series(y, name="target"))


def _learn_regressor(X, y, random_state):
    from rulekit.regression import RuleRegressor

    return RuleRegressor().fit(X, pd.Series(y, name="target"))


METHODS = {"RuleKit": {"classification": _learn_classifier, "regression": _learn_regressor}}
