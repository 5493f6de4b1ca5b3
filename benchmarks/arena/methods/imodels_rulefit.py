"""RuleFit of imodels, with its defaults."""

from imodels import RuleFitClassifier, RuleFitRegressor

REQUIRES = ["imodels>=2"]


def _classes(X, y, random_state):
    model = RuleFitClassifier(random_state=random_state)
    return model.fit(X.to_numpy(), y, feature_names=list(X.columns))


def _numbers(X, y, random_state):
    model = RuleFitRegressor(random_state=random_state)
    return model.fit(X.to_numpy(), y, feature_names=list(X.columns))


METHODS = {"imodels RuleFit": {"classification": _classes, "regression": _numbers}}
