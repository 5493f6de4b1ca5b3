"""Tree ensembles as rules, compared with the ensembles themselves."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
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
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from skescore import as_ruleset, as_rulesets, make_ice_scorer
from skescore.extractors import GridRExExtractor
from skescore.metrics import volume_completeness
from skescore.rules import Domain, OneOf, Rule, RuleSet
from skescore.rules.importers import affine_map, in_user_units, options_from_rows
from skescore.scorers import evaluate_rules

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
    """Return training rows, random rows, and rows on or right next to a bound."""
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
def test_ensemble_rules_predict_classes_like_model(model: Any, load: Any):
    data = load()
    labels = data.target_names[data.target]
    model.fit(data.data, labels)
    rules = as_ruleset(model)
    X = rows_around(data.data, rules)
    assert rules.predict(X).tolist() == model.predict(X).tolist()
    if not isinstance(model, AdaBoostClassifier):  # its probabilities are not shares of votes
        np.testing.assert_allclose(rules.predict_proba(X), model.predict_proba(X), atol=1e-12)


@pytest.mark.parametrize("model", REGRESSORS, ids=lambda m: type(m).__name__)
def test_ensemble_rules_predict_numbers_like_model(model: Any):
    X, y = load_diabetes(return_X_y=True)
    model.fit(X, y)
    rules = as_ruleset(model)
    rows = rows_around(X, rules)
    np.testing.assert_allclose(rules.predict(rows), model.predict(rows), rtol=1e-13)


def test_as_rulesets_returns_rule_set_per_tree():
    X, y = load_iris(return_X_y=True)
    labels = np.array(["c", "a", "b"])[y]  # not in the order of the codes
    forest = RandomForestClassifier(5, random_state=0).fit(X, labels)
    trees = as_rulesets(forest)
    assert len(trees) == 5
    for rules, tree in zip(trees, forest.estimators_, strict=True):
        expected = forest.classes_[tree.predict(X).astype(int)]
        assert rules.predict(X).tolist() == expected.tolist()
        assert len(rules) == tree.get_n_leaves()
    with pytest.raises(TypeError, match="KNeighborsClassifier is not a forest"):
        as_rulesets(KNeighborsClassifier())


def test_forest_rules_are_scored():
    data = load_wine(as_frame=True)
    model = make_pipeline(StandardScaler(), RandomForestClassifier(5, max_depth=2, random_state=0))
    model.fit(data.data, data.target)
    rules = as_ruleset(model)
    assert rules.feature_names == tuple(data.data.columns)
    assert rules.voting == "probabilities"
    assert (rules.predict(data.data) == model.predict(data.data)).all()
    score = make_ice_scorer()(model, data.data, data.target)
    assert 0.1 < score < 1


def test_ensemble_rules_keep_names_and_domain():
    X, y = load_iris(return_X_y=True, as_frame=True)
    forest = RandomForestClassifier(2, max_depth=1, random_state=0).fit(X, y)
    assert as_ruleset(forest).feature_names == tuple(X.columns)
    domain = Domain.around(X.to_numpy())
    rules = as_ruleset(forest, feature_names=list("abcd"), domain=domain)
    assert (rules.feature_names, rules.domain) == (tuple("abcd"), domain)
    with pytest.raises(ValueError, match="must name the model's 4 features, got 2"):
        as_ruleset(forest, feature_names=["a", "b"])


def test_as_ruleset_rejects_ensembles_without_rules():
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match=r"2 outputs; rules have one"):
        as_ruleset(RandomForestRegressor(2).fit(X, np.c_[y, y]))
    boosted = GradientBoostingRegressor(init=LinearRegression(), n_estimators=2).fit(X, y)
    with pytest.raises(ValueError, match=r"init=LinearRegression\(\), which rules cannot express"):
        as_ruleset(boosted)
    with pytest.raises(TypeError, match="AdaBoost boosts LogisticRegression"):
        as_ruleset(AdaBoostClassifier(LogisticRegression(), n_estimators=2).fit(X, y))
    with pytest.raises(TypeError, match="BaggingClassifier has no rules that skescore can read"):
        as_ruleset(BaggingClassifier().fit(X, y))
    with pytest.raises(ValueError, match="not fitted"):
        as_ruleset(RandomForestClassifier())


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (
            AdaBoostRegressor(n_estimators=2),
            "weighted median .* no rule set can predict in the same way",
        ),
        (RandomTreesEmbedding(2), "does not predict, so no rule set"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_as_ruleset_rejects_unsupported_tree_ensembles(model: Any, message: str):
    X, y = load_iris(return_X_y=True)
    with pytest.raises(TypeError, match=message):
        as_ruleset(model.fit(X, y))


# --- wrapped models -------------------------------------------------------------------------------


def test_as_ruleset_reads_frozen_models():
    X, y = load_iris(return_X_y=True)
    forest = RandomForestClassifier(2, max_depth=2, random_state=0).fit(X, y)
    assert as_ruleset(FrozenEstimator(forest)) == as_ruleset(forest)


def test_as_ruleset_rejects_searches_without_refit():
    X, y = load_iris(return_X_y=True)
    search = GridSearchCV(DecisionTreeClassifier(), {"max_depth": [1, 2]}, cv=2, refit=False)
    with pytest.raises(TypeError, match=r"GridSearchCV .*refit=True"):
        as_ruleset(search.fit(X, y))


def test_as_ruleset_rejects_classes():
    with pytest.raises(TypeError, match="RandomForestClassifier is a class: pass a fitted model"):
        as_ruleset(RandomForestClassifier)


def test_as_ruleset_error_states_remedy_for_irreversible_step():
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


def hostile_rows(X: np.ndarray, seed: int = 1, n_rows: int = 2000) -> np.ndarray:
    """Return rows near the data and far away, with gaps in every column."""
    rng = np.random.default_rng(seed)
    rows = X[rng.integers(len(X), size=n_rows)] * rng.choice([1, 1, 1.1, -3, 1e6], (n_rows, 1))
    return np.where(rng.uniform(size=rows.shape) < 0.3, np.nan, rows)


TREES = [
    DecisionTreeClassifier(max_leaf_nodes=8, random_state=0),
    DecisionTreeClassifier(random_state=0),
    DecisionTreeClassifier(splitter="random", random_state=0),
    DecisionTreeRegressor(max_depth=4, random_state=0),
    DecisionTreeRegressor(max_depth=3, criterion="poisson", random_state=0),
]
FORESTS = [
    RandomForestClassifier(5, random_state=0),
    RandomForestRegressor(5, max_depth=4, random_state=0),
    ExtraTreesClassifier(5, random_state=0),
    ExtraTreesRegressor(5, random_state=0),
]


@pytest.mark.parametrize("model", [*TREES, *FORESTS], ids=str)
@pytest.mark.parametrize("complete", [False, True])
def test_tree_rules_route_missing_values_like_tree(model: Any, complete: bool):
    X, y = load_wine(return_X_y=True)
    X[:, 3] = np.round(X[:, 3])  # one column has no gaps
    model = clone(model).fit(X if complete else np.c_[with_gaps(X[:, :12]), X[:, 12]], y)
    rules = as_ruleset(model, missing=True)
    rows = hostile_rows(X)
    assert rules.covers(rows).all()
    if rules.task == "classification":
        assert (rules.predict(rows) == model.predict(rows)).all()
    else:
        np.testing.assert_allclose(rules.predict(rows), model.predict(rows), rtol=1e-13)
    by_default = as_ruleset(model)
    if rules.voting is not None:
        assert by_default == rules
        assert "missing" not in str(as_ruleset(model, missing=False))
    elif complete:
        assert "missing" not in str(by_default)
    elif len(rules) > 20:
        assert by_default == rules


@pytest.mark.parametrize(
    ("model", "options"),
    [
        (DecisionTreeClassifier(max_depth=1), {}),
        (DecisionTreeClassifier(max_depth=1), {"simplify": True}),
        (DecisionTreeClassifier(max_depth=1, splitter="random"), {}),
        (DecisionTreeRegressor(max_depth=4), {}),
        (DecisionTreeRegressor(max_depth=4), {"simplify": True}),
        (RandomForestClassifier(3, max_depth=1), {}),
        (ExtraTreesRegressor(3, max_depth=2), {}),
    ],
    ids=str,
)
def test_tree_rules_predict_missing_values_alike_or_raise(model: Any, options: dict):
    """Half of such trees do not show whether they were fitted with missing values."""
    refused = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(40, 3)).round(1)
        y = (X[:, 0] + 0.5 * rng.normal(size=40) > 0).astype(int)
        X[rng.uniform(size=X.shape) < rng.choice([0.02, 0.1, 0.3])] = np.nan
        model = clone(model).set_params(random_state=seed).fit(X, y)
        read_rules = as_ruleset(model, **options, **options_from_rows(model, X))
        assert read_rules.predict(X) == pytest.approx(model.predict(X))
        rules = as_ruleset(model, **options)
        if not rules.covers(X).all():
            refused += 1
            with pytest.raises(ValueError, match=r"are missing there.*missing=True"):
                rules.predict(X)
        X = X[rules.covers(X)]
        assert rules.predict(X) == pytest.approx(model.predict(X))
    # Voting ensembles and simplified trees cover every row; other rules miss some.
    assert (refused > 0) == (rules.voting is None and not options)


def test_tree_scores_count_rows_with_missing_values():
    X = np.array([[0.0], [1.0], [np.nan], [np.nan]])
    y = ["a", "b", "b", "b"]
    tree = DecisionTreeClassifier().fit(X, y)
    assert evaluate_rules(tree, X, y).covered.all()
    frame = pd.DataFrame(X, columns=["age"])
    search = GridSearchCV(DecisionTreeClassifier(), {"max_depth": [1]}, cv=2)
    search.fit(frame, ["a", "a", "b", "b"])
    assert options_from_rows(make_pipeline(search), frame) == {"missing": True}
    assert options_from_rows(FrozenEstimator(tree), X[:2]) == {}
    assert options_from_rows(GradientBoostingRegressor(), X) == {}


@pytest.mark.parametrize("model", TREES, ids=str)
def test_simplified_tree_rules_route_missing_values(model: Any):
    X, y = load_wine(return_X_y=True)
    model = clone(model).fit(with_gaps(X), y)
    rules, rows = as_ruleset(model, simplify=True, missing=True), hostile_rows(X)
    np.testing.assert_allclose(rules.predict(rows), model.predict(rows), rtol=1e-13)
    assert rules.rules[-1].conditions == ()
    leaves = as_ruleset(model, domain=Domain.around(with_gaps(X)))
    assert rules.n_literals < leaves.n_literals
    assert leaves.match(rows).sum(axis=1).tolist() == [1] * len(rows)
    assert float(volume_completeness(leaves)) == pytest.approx(1.0)


def test_tree_rules_describe_splits_on_missing_values():
    X = pd.DataFrame({"age": [1.0, 2.0, np.nan, np.nan]})
    tree = DecisionTreeClassifier().fit(X, ["a", "a", "b", "b"])
    assert as_ruleset(tree).to_text().splitlines() == [
        "1. IF age is known THEN a   [2 rows, 100 % right (data)]",
        "2. IF age is missing THEN b   [2 rows, 100 % right (data)]",
    ]
    assert len(as_ruleset(tree, missing=False)) == 1
    forest = RandomForestClassifier(5, random_state=0).fit(X, ["a", "a", "b", "b"])
    assert as_ruleset(forest).predict(X).tolist() == forest.predict(X).tolist()


def test_tree_rules_detect_support_of_missing_values():
    X = np.array([[0.0], [1.0], [np.nan], [np.nan]])
    tree = DecisionTreeClassifier().fit(X, ["a", "b", "b", "b"])
    # Missing values follow the majority, as they would without having been seen.
    assert as_ruleset(tree).covers([[np.nan]]).tolist() == [False]
    messages = [as_ruleset(tree, missing=True), as_ruleset(tree, domain=Domain.around(X))]
    assert [rules.predict(X).tolist() for rules in messages] == [["a", "b", "b", "b"]] * 2
    # The domain describes each feature.
    Z = np.c_[X, [3.0, 3.0, 3.0, 4.0]]
    tree = DecisionTreeClassifier().fit(Z, ["a", "b", "b", "c"])
    rules = as_ruleset(tree, domain=Domain.around(Z))
    assert rules.predict(Z).tolist() == ["a", "b", "b", "c"]
    assert {c.missing for rule in rules for c in rule.conditions if c.feature == 1} == {False}
    assert {c.missing for rule in rules for c in rule.conditions if c.feature == 0} == {False, True}
    X, y = np.array([[0.0], [1.0], [2.0], [np.nan]]), ["a", "b", "b", "a"]
    elsewhere = DecisionTreeClassifier().fit(X, y)
    assert as_ruleset(elsewhere).predict(X).tolist() == y
    assert as_ruleset(elsewhere, missing=False).covers([[np.nan]]).tolist() == [False]


@pytest.mark.slow
@pytest.mark.parametrize("strategy", ["mean", "median", "most_frequent", "constant"])
@pytest.mark.parametrize(
    "model",
    [TREES[1], TREES[3], FORESTS[0], GradientBoostingRegressor(n_estimators=9, random_state=0)],
    ids=lambda model: type(model).__name__,
)
def test_pipeline_rules_turn_imputation_into_conditions(model: Any, strategy: str):
    X, y = load_wine(return_X_y=True)
    filled = ColumnTransformer([("fill", SimpleImputer(strategy=strategy), slice(0, 12))])
    pipeline = make_pipeline(filled, StandardScaler(), clone(model)).fit(with_gaps(X), y)
    rules, rows = as_ruleset(pipeline), hostile_rows(X)
    if rules.task == "classification":
        assert (rules.predict(rows) == pipeline.predict(rows)).all()
    else:
        np.testing.assert_allclose(rules.predict(rows), pipeline.predict(rows), rtol=1e-9)


def test_in_user_units_follows_imputed_text():
    X = np.array([["red"], ["red"], [None], ["blue"]], dtype=object)
    imputer = SimpleImputer(strategy="most_frequent", missing_values=None).fit(X)
    rules = RuleSet(
        [Rule([OneOf(0, ["red"])], 1.0), Rule([OneOf(0, ["red"], negated=True)], 2.0)],
        ["x0"],
        task="regression",
    )
    assert in_user_units(rules, affine_map(imputer)).predict(X).tolist() == [1, 1, 1, 2]


def test_as_ruleset_warns_about_imputer_before_linear_outputs():
    X, y = load_wine(return_X_y=True)
    model = make_pipeline(SimpleImputer(), GridRExExtractor(LinearRegression()))
    model.fit(with_gaps(X)[:, :2], y.astype(float))
    with pytest.warns(UserWarning, match="The Pipeline imputes missing values"):
        rules = as_ruleset(model)
    np.testing.assert_allclose(rules.predict(X[:, :2]), model.predict(X[:, :2]), rtol=1e-9)


def test_boosting_rules_support_exponential_loss() -> None:
    X, y = np.arange(20.0)[:, None], np.arange(20) % 7 > 3
    model = GradientBoostingClassifier(n_estimators=3, loss="exponential").fit(X, y)
    rules = as_ruleset(model)
    assert rules.predict(X).tolist() == model.predict(X).tolist()
    np.testing.assert_allclose(rules.predict_proba(X), model.predict_proba(X), atol=1e-12)


@pytest.mark.parametrize("labels", [["no", "yes"], [1, 0]])
def test_boosting_rules_predict_like_model_at_zero_log_odds(labels) -> None:
    X = np.array([[0, 0], [0, 1], [1, 0], [1, 1]] * 10, dtype=float)
    y = np.array(labels)[X.sum(axis=1).astype(int) % 2]
    model = GradientBoostingClassifier(n_estimators=5, max_depth=1).fit(X, y)
    assert (model.decision_function(X) == 0).all()  # stumps learn nothing from XOR
    rules = as_ruleset(model)
    assert rules.predict(X).tolist() == model.predict(X).tolist()
    np.testing.assert_allclose(rules.predict_proba(X), model.predict_proba(X))


def test_monotone_tree_rules_state_no_shares_of_rows() -> None:
    rng = np.random.default_rng(0)
    rows = rng.integers(0, 6, (100, 3)).astype(float)
    y = (rng.random(100) < 0.2 + 0.1 * rows[:, 0] - 0.08 * rows[:, 1]).astype(int)
    options = {"max_leaf_nodes": 8, "random_state": 0, "monotonic_cst": [1, 1, 0]}
    tree = DecisionTreeClassifier(**options).fit(rows, y)
    rules = as_ruleset(tree)
    assert rules.reference is None
    assert "right (data)" not in str(rules)
    np.testing.assert_allclose(rules.predict_proba(rows), tree.predict_proba(rows))
    numbers = as_ruleset(DecisionTreeRegressor(**options).fit(rows, y))
    assert {rule.statistics.mean for rule in numbers if rule.statistics} == {None}


def test_monotone_forest_rules_vote_like_forest() -> None:
    rng = np.random.default_rng(0)
    rows = rng.integers(0, 6, (100, 3)).astype(float)
    y = (rng.random(100) < 0.2 + 0.1 * rows[:, 0] - 0.08 * rows[:, 1]).astype(int)
    forest = RandomForestClassifier(
        5, max_leaf_nodes=8, random_state=0, monotonic_cst=[1, 1, 0]
    ).fit(rows, y)
    rules = as_ruleset(forest)
    np.testing.assert_allclose(rules.predict_proba(rows), forest.predict_proba(rows))
