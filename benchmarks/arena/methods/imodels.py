"""Learners of imodels with default settings; the slower RuleFit is in `imodels_rulefit.py`."""

import numpy as np
from imodels import (
    BoostedRulesClassifier,
    FIGSClassifier,
    FIGSRegressor,
    GreedyRuleListClassifier,
    SkopeRulesClassifier,
)

REQUIRES = ["imodels>=2"]


def _learner(model):
    """Return a function that fits a model with the column names as a parameter of `fit`."""

    def learn(X, y, random_state):
        if "random_state" in model.get_params(deep=False):
            model.set_params(random_state=random_state)
        np.random.seed(random_state)  # trees of some models use the global generator
        return model.fit(X.to_numpy(), y, feature_names=list(X.columns))

    learn.__qualname__ = type(model).__name__
    return learn


METHODS = {
    "imodels FIGS": {
        "classification": _learner(FIGSClassifier()),
        "regression": _learner(FIGSRegressor()),
    },
    "imodels GreedyRuleList": {"classification": _learner(GreedyRuleListClassifier())},
    "imodels SkopeRules": {"classification": _learner(SkopeRulesClassifier())},
    "imodels BoostedRules": {"classification": _learner(BoostedRulesClassifier())},
}
