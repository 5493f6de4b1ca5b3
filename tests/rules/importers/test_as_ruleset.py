"""Fitted models become a RuleSet, or an error explains why they cannot."""

from __future__ import annotations

from importlib import import_module

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.datasets import load_iris
from sklearn.ensemble import IsolationForest
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from skescore.rules import Interval, Rule, RuleSet, as_ruleset
from skescore.rules.importers import MODEL_READERS

X = np.arange(6.0)[:, None]
Y = np.array(["a", "a", "a", "b", "b", "b"])
RULES = RuleSet([Rule([Interval(0, upper=1)], 1.0)], ["x"], task="regression")


def test_as_ruleset_returns_rule_sets_unchanged():
    assert as_ruleset(RULES) is RULES
    with pytest.raises(TypeError, match=r"takes no options, got \['simplify'\]"):
        as_ruleset(RULES, simplify=True)


def test_as_ruleset_reads_trees_and_pipelines():
    tree = DecisionTreeClassifier().fit(X, Y)
    assert [r.conditions for r in as_ruleset(tree)] == [
        (Interval(0, upper=2.5000001192092896),),
        (Interval(0, lower=2.5000001192092896),),
    ]
    assert as_ruleset(make_pipeline(tree)) == as_ruleset(tree)
    scaled = make_pipeline(StandardScaler(), make_pipeline("passthrough", tree)).fit(X, Y)
    assert as_ruleset(scaled, simplify=True)[-1].conditions == ()
    assert as_ruleset(scaled).predict(X).tolist() == Y.tolist()
    numbers = as_ruleset(DecisionTreeRegressor().fit(X, X[:, 0]))
    assert numbers.predict(X).tolist() == X[:, 0].tolist()


@pytest.mark.parametrize(
    "model",
    [
        DecisionTreeClassifier(),
        DecisionTreeRegressor(),
        make_pipeline(DecisionTreeClassifier()),
        make_pipeline(StandardScaler(), DecisionTreeClassifier()),
        Pipeline([("scale", StandardScaler().fit(X)), ("tree", DecisionTreeRegressor())]),
    ],
)
def test_as_ruleset_rejects_unfitted_models(model):
    with pytest.raises(NotFittedError, match="not fitted yet"):
        as_ruleset(model)


@pytest.mark.parametrize(
    ("model", "name"),
    [
        (object(), "object"),
        (LogisticRegression(), "LogisticRegression"),
        (LogisticRegression().fit(X, Y), "LogisticRegression"),
        (IsolationForest(n_estimators=2).fit(X), "IsolationForest"),
        (make_pipeline(StandardScaler(), LogisticRegression()).fit(X, Y), "LogisticRegression"),
        (GridSearchCV(LogisticRegression(), {"C": [1.0]}, cv=2).fit(X, Y), "LogisticRegression"),
        (None, "NoneType"),
        ("IF x > 1 THEN a", "str"),
        ([Rule([], 1)], "list"),
    ],
    ids=lambda v: type(v).__name__ if not isinstance(v, str) else v,
)
def test_as_ruleset_rejects_models_without_rules(model, name):
    text = f"^{name} has no rules .* RuleSet, .* and Pipelines .*@as_ruleset.register"
    with pytest.raises(TypeError, match=text) as caught:
        as_ruleset(model)
    assert all(reader.name in str(caught.value) for reader in MODEL_READERS)


@pytest.mark.parametrize("reader", MODEL_READERS, ids=lambda reader: reader.name)
def test_model_readers_exist_and_are_documented(reader):
    module, _, function = reader.function.partition(":")
    assert callable(getattr(import_module(f"skescore.rules.importers.{module}"), function))
    library = reader.name.removeprefix("scikit-learn ")
    documentation = str(as_ruleset.__doc__).casefold()
    assert all(word in documentation for word in library.casefold().split())


class Extractor(BaseEstimator):
    """A minimal third-party extractor: fit sets the attribute `rules_`."""

    def __init__(self, estimator=None):
        self.estimator = estimator

    def fit(self, X, y=None):
        self.rules_ = RULES
        return self


def test_as_ruleset_reads_fitted_extractors():
    assert as_ruleset(Extractor().fit(X)) is RULES
    with pytest.raises(NotFittedError):
        as_ruleset(Extractor())
    scaled = make_pipeline(StandardScaler(), Extractor()).fit(X)
    (condition,) = as_ruleset(scaled)[0].conditions
    assert condition.upper == pytest.approx(X.mean() + X.std(), rel=1e-15)


def test_as_ruleset_rejects_rules_of_another_type():
    class Other:
        rules_ = ("x > 1",)

    with pytest.raises(TypeError, match=r"^Other has no rules that skescore can read"):
        as_ruleset(Other())


def test_as_ruleset_accepts_registered_types():
    class Theirs:
        text = "x"

    class Inherited(Theirs):
        pass

    with pytest.raises(TypeError, match="Theirs has no rules"):
        as_ruleset(Theirs())

    # This class exists only in this test, so that it need not be unregistered.
    @as_ruleset.register(Theirs)
    def _(model, *, output=1.0):
        return RuleSet([Rule([], output)], [model.text], task="regression")

    assert as_ruleset(Theirs(), output=4.0).predict([[0.0]]).tolist() == [4.0]
    assert as_ruleset(Inherited()).feature_names == ("x",)


def test_as_ruleset_reads_best_model_of_search():
    X, y = load_iris(return_X_y=True)
    scaled = make_pipeline(StandardScaler(), DecisionTreeClassifier(random_state=0))
    search = GridSearchCV(scaled, {"decisiontreeclassifier__max_leaf_nodes": [3, 4]}).fit(X, y)
    rules = as_ruleset(search)
    assert rules == as_ruleset(search.best_estimator_)
    assert (rules.predict(X) == search.predict(X)).all()
