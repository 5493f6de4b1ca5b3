"""RuleFit of imodels with default settings."""

from imodels import RuleFitClassifier, RuleFitRegressor

REQUIRES = ["imodels>=2"]


def _learn_classifier(X, y, random_state):
    model = RuleFitClassifier(random_state=random_state)
    return model.fit(X.to_numpy(), y, feature_names=list(X.columns))


def _learn_regressor(X, y, random_state):
    model = RuleFitRegressor(random_state=random_state)
    return model.fit(X.to_numpy(), y, feature_names=list(X.columns))


METHODS = {"imodels RuleFit": {"classification": _learn_classifier, "regression": _learn_regressor}}
