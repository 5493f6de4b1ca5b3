"""Learners of imodels, with their defaults; RuleFit, which takes longer, is beside."""

import numpy as np
from imodels import (
    BoostedRulesClassifier,
    FIGSClassifier,
    FIGSRegressor,
    GreedyRuleListClassifier,
    SkopeRulesClassifier,
)

REQUIRES = ["imodels>=2"]


def _named(model):
    """Names of columns reach these models by a parameter of their fit."""

    def learn(X, y, random_state):
        if "random_state" in model.get_params(deep=False):
            model.set_params(random_state=random_state)
        np.random.seed(random_state)  # the trees in some of them have no seed of their own
        return model.fit(X.to_numpy(), y, feature_names=list(X.columns))

    learn.__qualname__ = type(model).__name__
    return learn


METHODS = {
    "imodels FIGS": {
        "classification": _named(FIGSClassifier()),
        "regression": _named(FIGSRegressor()),
    },
    "imodels GreedyRuleList": {"classification": _named(GreedyRuleListClassifier())},
    "imodels SkopeRules": {"classification": _named(SkopeRulesClassifier())},
    "imodels BoostedRules": {"classification": _named(BoostedRulesClassifier())},
}
