"""Ensembles of trees as rules, beside the ensembles themselves."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris, load_wine
from sklearn.ensemble import (
    AdaBoostClassifier,
    AdaBoostRegressor,
    BaggingClassifier,
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
    RandomTreesEmbedding,
)
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler
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
    assert rules.voting == "probabilities"
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


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (AdaBoostRegressor(n_estimators=2), "weighted median .* no rule set that predicts alike"),
        (RandomTreesEmbedding(2), "predicts nothing, so there is no rule set"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_ensembles_of_trees_that_answer_otherwise_are_refused(model: Any, message: str):
    X, y = load_iris(return_X_y=True)
    with pytest.raises(TypeError, match=message):
        as_ruleset(model.fit(X, y))


# --- what others wrap around a model --------------------------------------------------------------


def test_a_frozen_model_is_read():
    X, y = load_iris(return_X_y=True)
    forest = RandomForestClassifier(2, max_depth=2, random_state=0).fit(X, y)
    assert as_ruleset(FrozenEstimator(forest)) == as_ruleset(forest)


def test_a_search_without_a_winner_says_so():
    X, y = load_iris(return_X_y=True)
    search = GridSearchCV(DecisionTreeClassifier(), {"max_depth": [1, 2]}, cv=2, refit=False)
    with pytest.raises(TypeError, match="GridSearchCV kept no winner: fit it with refit=True"):
        as_ruleset(search.fit(X, y))


def test_a_class_is_no_model():
    with pytest.raises(TypeError, match="RandomForestClassifier is a class: pass a fitted model"):
        as_ruleset(RandomForestClassifier)


def test_what_cannot_be_undone_says_how_to_read_the_last_step():
    X, y = load_iris(return_X_y=True, as_frame=True)
    pipeline = make_pipeline(PolynomialFeatures(), DecisionTreeClassifier(max_depth=2)).fit(X, y)
    remedy = r"as_ruleset\(pipeline\[-1\], feature_names=pipeline\[:-1\]\.get_feature_names_out"
    with pytest.raises(TypeError, match=remedy):
        as_ruleset(pipeline)
    rules = as_ruleset(pipeline[-1], feature_names=pipeline[:-1].get_feature_names_out())
    assert (rules.predict(pipeline[:-1].transform(X)) == pipeline.predict(X)).all()


# --- missing values -------------------------------------------------------------------------------


def with_gaps(X: np.ndarray) -> np.ndarray:
    return np.where(np.random.default_rng(0).uniform(size=X.shape) < 0.1, np.nan, X)


@pytest.mark.parametrize("model", [ExtraTreesClassifier(5, random_state=0),
                                   ExtraTreesRegressor(5, random_state=0)], ids=str)  # fmt: skip
def test_a_forest_that_learned_from_missing_values_warns(model: Any):
    X, y = load_wine(return_X_y=True)
    with pytest.warns(UserWarning, match="was fitted on rows with missing values") as caught:
        rules = as_ruleset(model.fit(with_gaps(X), y))
    assert caught[0].filename == __file__
    np.testing.assert_allclose(rules.predict(X), model.predict(X), rtol=1e-13)
    as_ruleset(model.fit(X, y))  # without a warning


def test_a_split_of_missing_from_present_values_is_refused():
    X = np.array([[1.0], [2.0], [np.nan], [np.nan]])
    for model in (DecisionTreeClassifier(), RandomForestClassifier(5, random_state=0)):
        model.fit(X, [0, 0, 1, 1])
        with pytest.raises(ValueError, match=r"asks whether 'x0' is missing.*SimpleImputer"):
            as_ruleset(model)
    named = DecisionTreeClassifier().fit(pd.DataFrame(X, columns=["age"]), [0, 0, 1, 1])
    with pytest.raises(ValueError, match="The tree asks whether 'age' is missing"):
        as_ruleset(named)


def test_a_tree_that_learned_from_missing_values_is_not_simplified():
    X = np.array([[1.0], [2.0], [2.0], [2.0], [np.nan]])
    y = [1, 0, 0, 0, 1]
    tree = DecisionTreeClassifier().fit(X, y)
    assert tree.predict(X).tolist() == y
    rules = as_ruleset(tree)
    assert rules.covers(X).tolist() == [True] * 4 + [False]  # so that predict complains
    with pytest.raises(ValueError, match="simplify=True would predict rows with missing values"):
        as_ruleset(tree, simplify=True)
    forest = ExtraTreesClassifier(5, random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="simplify=True would predict"):
        as_rulesets(forest, simplify=True)


def test_an_imputer_before_voting_rules_warns():
    X, y = load_wine(return_X_y=True)
    imputer = ColumnTransformer([("fill", SimpleImputer(), slice(0, 13))])
    forest = RandomForestClassifier(3, max_depth=2, random_state=0)
    model = make_pipeline(imputer, forest).fit(with_gaps(X), y)
    with pytest.warns(UserWarning, match="The Pipeline fills missing values, its rules do not"):
        rules = as_ruleset(model)
    assert (rules.predict(X) == model.predict(X)).all()
