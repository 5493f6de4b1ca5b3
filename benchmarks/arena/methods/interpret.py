"""Trees of interpret with default settings."""

from interpret.glassbox import ClassificationTree, RegressionTree

from skescore.rules import as_ruleset

REQUIRES = ["interpret-core>=0.6"]


def _learner(model_class):
    def learn(X, y, random_state):
        model = model_class(random_state=random_state).fit(X, y)
        return as_ruleset(model.sk_model_, feature_names=list(X.columns))

    learn.__qualname__ = model_class.__name__
    return learn


METHODS = {
    "interpret tree": {
        "classification": _learner(ClassificationTree),
        "regression": _learner(RegressionTree),
    }
}
