"""Learners without support for black boxes as extractors."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_diabetes, load_iris
from sklearn.dummy import DummyClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from skescore.black_boxes import CallableClassifier, CallableRegressor
from skescore.extractors import CARTExtractor, SurrogateExtractor
from skescore.rules import Interval, LinearOutput, Rule, RuleSet

IRIS = load_iris(as_frame=True)
NAMES = IRIS.target_names[IRIS.target]


def test_surrogate_predicts_like_the_learner():
    X, box = IRIS.data, KNeighborsClassifier(9).fit(IRIS.data, NAMES)
    tree = DecisionTreeClassifier(max_leaf_nodes=5)
    extractor = SurrogateExtractor(FrozenEstimator(box), tree, random_state=3).fit(X)
    own_fitted = DecisionTreeClassifier(max_leaf_nodes=5, random_state=3).fit(X, box.predict(X))
    assert extractor.predict(X).tolist() == own_fitted.predict(X).tolist()
    assert extractor.rules_.feature_names == tuple(X.columns)
    assert extractor.rules_.classes == ("setosa", "versicolor", "virginica")
    assert not hasattr(tree, "tree_")  # a clone was fitted


def test_surrogate_supports_regression():
    X, y = load_diabetes(return_X_y=True)
    box = LinearRegression().fit(X, y)
    learner = {"regression": DecisionTreeRegressor(max_leaf_nodes=4, random_state=0)}
    extractor = SurrogateExtractor(FrozenEstimator(box), learner).fit(X)
    own_fitted = DecisionTreeRegressor(max_leaf_nodes=4, random_state=0).fit(X, box.predict(X))
    np.testing.assert_allclose(extractor.predict(X), own_fitted.predict(X))
    with pytest.raises(ValueError, match=r"learner must have an entry for classification, .* regr"):
        SurrogateExtractor(KNeighborsClassifier(), learner).fit(IRIS.data, NAMES)


def test_surrogate_keeps_classes_that_are_never_predicted():
    box = CallableClassifier(lambda X: np.where(X[:, 2] < 3, "a", "c"), classes=["a", "b", "c"])
    extractor = SurrogateExtractor(box, DecisionTreeClassifier()).fit(IRIS.data.to_numpy())
    rules = extractor.rules_
    assert rules.classes == ("a", "b", "c")
    assert {rule.output for rule in rules} == {"a", "c"}
    assert [rule.statistics.class_counts for rule in rules] == [(50, 0, 0), (0, 0, 100)]


def test_surrogate_keeps_names_of_columns():
    box = FrozenEstimator(KNeighborsClassifier(9).fit(IRIS.data, NAMES))

    def learner(X, y, random_state):
        return DecisionTreeClassifier(max_leaf_nodes=3, random_state=0).fit(X[["x3", "x2"]], y)

    extractor = SurrogateExtractor(box, learner).fit(IRIS.data)
    assert extractor.rules_.used_features <= {2, 3}
    assert extractor.fidelity(IRIS.data) > 0.95

    def nameless(X, y, random_state):
        return DecisionTreeClassifier(random_state=0).fit(X.to_numpy()[:, [3, 2]], y)

    with pytest.raises(ValueError, match="learner must find rules about the 4 columns of X, got 2"):
        SurrogateExtractor(box, nameless).fit(IRIS.data)


def test_surrogate_rejects_labels_not_in_y():
    rules = RuleSet(
        [Rule([Interval(2, upper=2.5)], -1), Rule([], 1)],
        ["x0", "x1", "x2", "x3"],
        task="classification",
    )
    with pytest.raises(ValueError, match="the labels of y, 0 to 2, got -1"):
        SurrogateExtractor(KNeighborsClassifier(9), lambda *_: rules).fit(IRIS.data, NAMES)


def test_surrogate_of_constant_predictions_is_one_rule():
    box = DummyClassifier().fit(IRIS.data, NAMES)
    with pytest.warns(UserWarning, match="only one rule"):
        extractor = SurrogateExtractor(FrozenEstimator(box)).fit(IRIS.data)
    assert extractor.rules_.to_text().startswith("1. ALWAYS setosa")
    assert extractor.learner_ is None


def test_categories_and_missing_values_match_table():
    rng = np.random.default_rng(0)
    color = rng.choice(["red", "green", "blue", "gray"], 200)
    size = np.where(rng.random(200) < 0.2, np.nan, rng.normal(size=200))
    X = pd.DataFrame({"color": color, "size": size})

    def predict(table):
        warm = table["color"].isin(["red", "gray"]).to_numpy()
        return np.where(warm, "yes", np.where(table["size"].isna(), "gap", "no"))

    box = CallableClassifier(predict, classes=["gap", "no", "yes"])
    extractor = SurrogateExtractor(box, DecisionTreeClassifier(random_state=0)).fit(X)
    assert extractor.predict(X).tolist() == predict(X).tolist()
    assert "size is missing AND color in {blue, green} THEN gap" in extractor.rules_.to_text()
    cart = CARTExtractor(box, max_leaf_nodes=None, random_state=0, simplify=False).fit(X)
    assert set(extractor.rules_.used_features) == set(cart.rules_.used_features)


def test_surrogate_keeps_weights_of_voting_rules():
    def learn(X, y, random_state):
        rules = [Rule([Interval(0, upper=0.5)], 0, weight=3.0), Rule([], 1, weight=2.0)]
        return RuleSet(rules, list(X.columns), task="classification", ordered=False, voting="votes")

    X = pd.DataFrame({"color": ["red", "red", "blue", "green"] * 5})
    box = CallableClassifier(
        lambda t: np.where(t["color"] == "blue", "no", "yes"), classes=["no", "yes"]
    )
    rules = SurrogateExtractor(box, learn).fit(X).rules_
    assert [rule.weight for rule in rules] == [3.0, 2.0]
    assert rules.voting == "votes"


@pytest.mark.parametrize("learner", [3, "cart"])
def test_surrogate_rejects_invalid_learner(learner):
    with pytest.raises(TypeError, match="learner must be an estimator with fit, a function"):
        SurrogateExtractor(KNeighborsClassifier(), learner).fit(IRIS.data, NAMES)


def test_surrogate_rejects_rules_for_another_task():
    def learn(X, y, random_state):
        return DecisionTreeRegressor(max_depth=1).fit(X, y)

    with pytest.raises(ValueError, match="must find rules for classification, got rules for regre"):
        SurrogateExtractor(KNeighborsClassifier(), learn).fit(IRIS.data, NAMES)


def test_surrogate_drops_rules_without_categories():
    def learn(X, y, random_state):
        rules = [Rule([Interval(0, upper=-0.5)], 1), Rule([Interval(0, upper=0.5)], 0), Rule([], 1)]
        return RuleSet(rules, list(X.columns), task="classification")

    X = pd.DataFrame({"color": ["red", "red", "blue", "green"] * 5})
    box = CallableClassifier(
        lambda t: np.where(t["color"] == "blue", "no", "yes"), classes=["no", "yes"]
    )
    rules = SurrogateExtractor(box, learn).fit(X).rules_
    assert len(rules) == 2
    assert [len(condition.values) for condition in rules[0].conditions] == [1]


@pytest.mark.parametrize("part", ["output", "weight"])
def test_surrogate_rejects_slopes_of_categories(part):
    def learn(X, y, random_state):
        linear = LinearOutput(1.0, ((1, 2.0), (0, 0.5)))
        if part == "output":
            return RuleSet([Rule([], linear)], list(X.columns), task="regression")
        rules = [Rule([], 1, weight=linear)]
        return RuleSet(
            rules, list(X.columns), task="classification", ordered=False, voting="logistic"
        )

    X = pd.DataFrame({"color": ["red", "blue"] * 9, "size": np.arange(18.0)})
    box = CallableRegressor(lambda t: t["size"].to_numpy())
    if part == "weight":
        box = CallableClassifier(lambda t: (t["size"] > 4).astype(int).to_numpy())
    with pytest.raises(ValueError, match="A rule multiplies 'color' by a number, but the column"):
        SurrogateExtractor(box, learn).fit(X)
    assert SurrogateExtractor(box, learn).fit(X.assign(color=1.0)).n_rules_ == 1


class _Plain:
    """Learner without get_params."""

    def fit(self, X, y):
        return DecisionTreeClassifier(max_depth=1).fit(X, y)


def test_learner_that_cannot_be_cloned_names_the_remedy():
    X, y = load_iris(return_X_y=True)
    with pytest.raises(TypeError, match=r"learner _Plain has no get_params.*BaseEstimator"):
        SurrogateExtractor(GaussianNB(), _Plain()).fit(X, y)
    learner = lambda X, y, random_state: _Plain().fit(X, y)  # noqa: E731
    assert len(SurrogateExtractor(GaussianNB(), learner).fit(X, y).rules_) == 2


def test_learner_function_states_its_arguments():
    X, y = load_iris(return_X_y=True)

    def learner(X, y):
        return DecisionTreeClassifier().fit(X, y)

    with pytest.raises(TypeError, match=r"learner learner\(X, y\) must accept .*random_state"):
        SurrogateExtractor(GaussianNB(), learner).fit(X, y)
