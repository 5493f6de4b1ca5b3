"""Ensembles of trees as rules, beside the ensembles themselves."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris, load_wine
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from skescore import as_ruleset, as_rulesets, make_ice_scorer
from skescore.rules import Domain, RuleSet

CLASSIFIERS = [
    RandomForestClassifier(12, random_state=0),
    RandomForestClassifier(12, max_depth=3, class_weight="balanced", random_state=0),
    RandomForestClassifier(12, bootstrap=False, max_features=1, random_state=0),
    ExtraTreesClassifier(12, max_depth=4, random_state=0),
    GradientBoostingClassifier(n_estimators=8, random_state=0),
    GradientBoostingClassifier(n_estimators=8, init="zero", random_state=0),
    AdaBoostClassifier(DecisionTreeClassifier(max_depth=2), n_estimators=8, random_state=0),
]
REGRESSORS = [
    RandomForestRegressor(8, max_depth=6, random_state=0),
    ExtraTreesRegressor(8, max_depth=6, random_state=0),
    GradientBoostingRegressor(n_estimators=20, random_state=0),
    GradientBoostingRegressor(n_estimators=20, loss="huber", random_state=0),
    GradientBoostingRegressor(n_estimators=20, init="zero", random_state=0),
]


def rows_around(X: np.ndarray, ruleset: RuleSet) -> np.ndarray:
    """Training rows, random ones, and rows that sit on a bound or right beside it."""
    generator = np.random.default_rng(0)
    random = generator.uniform(X.min(axis=0) - 1, X.max(axis=0) + 1, (1000, X.shape[1]))
    border = random[:300].copy()
    for row in border:
        j = generator.integers(X.shape[1])
        bounds = ruleset.boxes.upper[:, j]
        bounds = bounds[np.isfinite(bounds)]
        if len(bounds):
            row[j] = np.nextafter(generator.choice(bounds), generator.choice([-np.inf, np.inf]))
    return np.vstack([X, random, border])


@pytest.mark.parametrize("model", CLASSIFIERS, ids=lambda m: type(m).__name__)
@pytest.mark.parametrize("load", [load_iris, load_wine, load_breast_cancer])
def test_classification_answers_like_the_ensemble(model: Any, load: Any):
    data = load()
    labels = data.target_names[data.target]
    model.fit(data.data, labels)
    rules = as_ruleset(model)
    X = rows_around(data.data, rules)
    assert rules.predict(X).tolist() == model.predict(X).tolist()
    if not isinstance(model, AdaBoostClassifier):  # its shares are no shares of votes
        np.testing.assert_allclose(rules.predict_proba(X), model.predict_proba(X), atol=1e-12)


@pytest.mark.parametrize("model", REGRESSORS, ids=lambda m: type(m).__name__)
def test_regression_answers_like_the_ensemble(model: Any):
    X, y = load_diabetes(return_X_y=True)
    model.fit(X, y)
    rules = as_ruleset(model)
    rows = rows_around(X, rules)
    np.testing.assert_allclose(rules.predict(rows), model.predict(rows), rtol=1e-13)


def test_every_tree_is_a_rule_set_of_its_own():
    X, y = load_iris(return_X_y=True)
    labels = np.array(["c", "a", "b"])[y]  # not in the order of the codes
    forest = RandomForestClassifier(5, random_state=0).fit(X, labels)
    trees = as_rulesets(forest)
    assert len(trees) == 5
    for rules, tree in zip(trees, forest.estimators_, strict=True):
        expected = forest.classes_[tree.predict(X).astype(int)]
        assert rules.predict(X).tolist() == expected.tolist()
        assert len(rules) == tree.get_n_leaves()
    with pytest.raises(TypeError, match="KNeighborsClassifier is no forest"):
        as_rulesets(KNeighborsClassifier())


def test_forests_are_scored_like_other_rules():
    data = load_wine(as_frame=True)
    model = make_pipeline(StandardScaler(), RandomForestClassifier(5, max_depth=2, random_state=0))
    model.fit(data.data, data.target)
    rules = as_ruleset(model)
    assert rules.feature_names == tuple(data.data.columns)
    assert rules.voting == "shares"
    assert (rules.predict(data.data) == model.predict(data.data)).all()
    score = make_ice_scorer()(model, data.data, data.target)
    assert 0.1 < score < 1


def test_names_and_domain_are_taken_over():
    X, y = load_iris(return_X_y=True, as_frame=True)
    forest = RandomForestClassifier(2, max_depth=1, random_state=0).fit(X, y)
    assert as_ruleset(forest).feature_names == tuple(X.columns)
    domain = Domain.around(X.to_numpy())
    named = as_ruleset(forest, feature_names=list("abcd"), domain=domain)
    assert (named.feature_names, named.domain) == (tuple("abcd"), domain)
    with pytest.raises(ValueError, match="must name the model's 4 features, got 2"):
        as_ruleset(forest, feature_names=["a", "b"])


def test_what_has_no_rules_is_refused():
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match=r"2 outputs; rules have one"):
        as_ruleset(RandomForestRegressor(2).fit(X, np.c_[y, y]))
    boosted = GradientBoostingRegressor(init=LinearRegression(), n_estimators=2).fit(X, y)
    with pytest.raises(ValueError, match=r"init=LinearRegression\(\), which no rule can say"):
        as_ruleset(boosted)
    with pytest.raises(TypeError, match="AdaBoost was made of LogisticRegression"):
        as_ruleset(AdaBoostClassifier(LogisticRegression(), n_estimators=2).fit(X, y))
    with pytest.raises(TypeError, match="BaggingClassifier has no rules that skescore can read"):
        as_ruleset(BaggingClassifier().fit(X, y))
    with pytest.raises(ValueError, match="not fitted"):
        as_ruleset(RandomForestClassifier())
