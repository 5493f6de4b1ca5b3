"""Rules read from the real imodels predict like its models, to the last row."""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Callable
from typing import Any

import imodels
import numpy as np
import pandas as pd
import pytest
from imodels.tree.c45_tree.c45_tree import HSC45TreeClassifier, HSC45TreeClassifierCV
from imodels.util.rule import Rule as TextRule
from sklearn.ensemble import (
    BaggingClassifier,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    RandomForestClassifier,
)
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from skescore.rules import Domain, LinearOutput, RuleSet, as_ruleset
from skescore.rules.importers import read_imodels
from skescore.scorers import evaluate_rules, make_ice_scorer

QUICK = {"cv": False, "n_estimators": 20, "random_state": 0}
FIGS_GRID = {"n_rules_list": [3, 5], "n_trees_list": [3], "depth_list": [3]}
SMALL_GAM = {"n_boosting_rounds": 6, "random_state": 0}

#: How each model is made: parameters, and whether it wants columns of 0 and 1.
MODELS: dict[str, dict[str, Any]] = {
    "AutoInterpretableClassifier": {
        "param_grid": [{"est": [imodels.FIGSClassifier()], "est__max_rules": [3]}]
    },
    "AutoInterpretableRegressor": {
        "param_grid": [{"est": [DecisionTreeRegressor()], "est__max_leaf_nodes": [3]}]
    },
    "BayesianRuleListClassifier": {"max_iter": 400},
    "BayesianRuleSetClassifier": {"maxlen": 2, "num_iterations": 100, "n_rules": 50},
    "BoostedRulesClassifier": {"random_state": 0},
    "BoostedRulesRegressor": {},
    "C45TreeClassifier": {"max_rules": 8},
    "DecisionTreeCCPClassifier": {
        "estimator_": DecisionTreeClassifier(random_state=0),
        "desired_complexity": 5,
    },
    "DecisionTreeCCPRegressor": {"desired_complexity": 5},
    "FIGSClassifier": {"random_state": 0},
    "FIGSClassifierCV": FIGS_GRID,
    "FIGSRegressor": {},
    "FIGSRegressorCV": FIGS_GRID,
    "FPLassoClassifier": QUICK,
    "FPLassoRegressor": QUICK,
    "FPSkopeClassifier": {"random_state": 0},
    "FastFrugalTreeClassifier": {},
    "GreedyRuleListClassifier": {},
    "GreedyTreeClassifier": {"random_state": 0},
    "GreedyTreeRegressor": {"max_depth": 4, "random_state": 0},
    "HSC45TreeClassifier": {},
    "HSC45TreeClassifierCV": {},
    "HSDecisionTreeCCPClassifierCV": {"estimator_": DecisionTreeClassifier(random_state=0)},
    "HSDecisionTreeCCPRegressorCV": {"estimator_": DecisionTreeRegressor(max_depth=4)},
    "HSTreeClassifier": {},
    "HSTreeClassifierCV": {},
    "HSTreeRegressor": {"reg_param": 5.0},
    "HSTreeRegressorCV": {},
    "OneRClassifier": {},
    "RuleFitClassifier": QUICK,
    "RuleFitRegressor": QUICK,
    "SkopeRulesClassifier": {"random_state": 0},
    "SlipperClassifier": {"n_estimators": 4, "random_state": 0},
    "TaoTreeClassifier": {"model_args": {"max_leaf_nodes": 8}, "n_iters": 3},
    "TaoTreeRegressor": {"model_args": {"max_leaf_nodes": 8}, "n_iters": 3},
    "TreeGAMClassifier": SMALL_GAM,
    "TreeGAMRegressor": SMALL_GAM | {"decay_rate_towards_marginal": 0.9, "reg_param": 2.0},
}
BINARY_COLUMNS = {
    "BayesianRuleListClassifier",
    "BayesianRuleSetClassifier",
    "FPLassoClassifier",
    "FPLassoRegressor",
    "FPSkopeClassifier",
}
THREE_CLASSES = [
    "BoostedRulesClassifier",
    "C45TreeClassifier",
    "DecisionTreeCCPClassifier",
    "FIGSClassifier",
    "GreedyTreeClassifier",
    "HSTreeClassifier",
    "TaoTreeClassifier",
]
#: Models that are wrong or fail themselves where labels are not 0, 1, ...
CODES_ONLY = {
    "BayesianRuleSetClassifier",
    "BoostedRulesClassifier",
    "HSC45TreeClassifier",
    "HSC45TreeClassifierCV",
    "SlipperClassifier",
}
#: The voting that says what the class shares are is not theirs.
OTHER_SHARES = {"SkopeRulesClassifier", "FPSkopeClassifier", "TreeGAMClassifier"}
#: What imodels has beside them.
OTHERS = [model_class for model_class in imodels.ESTIMATORS if model_class.__name__ not in MODELS]
CLASSIFIERS = sorted(name for name in MODELS if "Classifier" in name)
REGRESSORS = sorted(set(MODELS) - set(CLASSIFIERS))


def make(name: str, **changes: Any) -> Any:
    if name.startswith("HSC45"):
        inner = imodels.C45TreeClassifier(max_rules=8)
        result = HSC45TreeClassifierCV if name.endswith("CV") else HSC45TreeClassifier
        return result(estimator_=inner)
    return getattr(imodels, name)(**MODELS[name] | changes)


def quietly(ask: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """Call a function of imodels without its warnings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ask(*arguments, **options)


def fitted(model: Any, X: Any, y: Any, **options: Any) -> Any:
    """Fit with the seed of NumPy set, which imodels uses."""
    np.random.seed(0)
    quietly(model.fit, X, y, **options)
    return model


def rows(name: str, n_rows: int = 120, seed: int = 0) -> np.ndarray:
    X = np.round(np.random.default_rng(seed).normal(size=(n_rows, 4)), 1)
    return (X > 0).astype(float) if name in BINARY_COLUMNS else X


def target(X: np.ndarray, n_classes: int = 0) -> np.ndarray:
    noise = np.random.default_rng(1).normal(scale=0.3, size=len(X))
    score = X[:, 0] + X[:, 1] * X[:, 2] + noise
    if not n_classes:
        return np.asarray(score)
    return np.digitize(score, [0.1] if n_classes == 2 else [-0.5, 0.6])


def border_rows(rules: RuleSet, name: str, n_rows: int = 300) -> np.ndarray:
    """Return rows on, just below and just above bounds of the rules, in all combinations."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(n_rows, rules.n_features))
    if name == "BayesianRuleSetClassifier":  # defined only for 0 and 1
        return (X > 0).astype(float)
    for j in range(rules.n_features):
        bounds = [
            bound
            for rule in rules.rules
            for condition in rule.conditions
            if condition.features == (j,)
            for bound in (condition.lower, condition.upper)
            if math.isfinite(bound)
        ]
        near = [math.nextafter(b, side) for b in bounds for side in (-math.inf, math.inf)]
        near += [float(np.float32(b)) for b in bounds]
        if bounds:
            is_near_bound = rng.random(n_rows) < 0.7
            X[is_near_bound, j] = rng.choice([*bounds, *near], is_near_bound.sum())
    return X


def assert_answers_alike(model: Any, rules: RuleSet, name: str, X: np.ndarray) -> None:
    for checked in (X, rows(name, 200, seed=9), border_rows(rules, name)):
        expected = model.predict(checked)
        if rules.task == "regression":
            np.testing.assert_allclose(rules.predict(checked), expected, rtol=1e-12, atol=1e-13)
            continue
        np.testing.assert_array_equal(rules.predict(checked), expected)
        if name != "BayesianRuleSetClassifier":  # has no predict_proba
            shares = model.predict_proba(checked)
            if name in OTHER_SHARES:
                # Here, half of all votes count against the second class, and sums are not clipped.
                second = shares[:, 1] / (shares[:, 1] + 0.5)
                inside = (shares[:, 1] > 0) & (shares[:, 1] < 1)
                result = rules.predict_proba(checked)[:, 1]
                np.testing.assert_allclose(result[inside], second[inside], rtol=1e-12)
            else:
                result = rules.predict_proba(checked)
                np.testing.assert_allclose(result, shares, rtol=1e-10, atol=1e-12)


def assert_usable(model: Any, rules: RuleSet, X: np.ndarray, y: np.ndarray) -> None:
    """Check that the rules work in the rest of the package."""
    assert as_ruleset(model) == rules
    assert RuleSet.from_json(rules.to_json()) == rules
    assert str(rules)
    assert len(rules.to_frame()) == len(rules)
    evaluation = evaluate_rules(model, X, y)
    assert 0 <= evaluation.volume <= 1
    assert 0 < evaluation.instances <= 1
    assert 0 <= make_ice_scorer()(model, X, y) <= 1


# --- every model -----------------------------------------------------------------------------


def test_read_imodels_error_lists_all_models() -> None:
    with pytest.raises(TypeError, match="It reads ") as refused:
        read_imodels(LogisticRegression())
    names = re.findall(r"\w{4,}", str(refused.value).partition("It reads ")[2])
    assert sorted(MODELS) == names


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_read_imodels_classifiers_predict_codes_alike(name: str) -> None:
    X = rows(name)
    y = target(X, 2)
    model = fitted(make(name), X, y)
    rules = read_imodels(model)
    assert len(rules) > 1
    assert rules.classes == (0, 1)
    assert_answers_alike(model, rules, name, X)
    assert_usable(model, rules, X, y)


@pytest.mark.parametrize("name", [name for name in CLASSIFIERS if name not in CODES_ONLY])
def test_read_imodels_classifiers_predict_texts_alike(name: str) -> None:
    X = rows(name)
    y = np.array(["yes", "no"])[target(X, 2)]  # in another order
    model = fitted(make(name), X, y)
    rules = read_imodels(model)
    assert rules.classes == ("no", "yes")
    assert_answers_alike(model, rules, name, X)


@pytest.mark.parametrize("name", THREE_CLASSES)
def test_read_imodels_classifiers_predict_three_classes_alike(name: str) -> None:
    X = rows(name)
    model = fitted(make(name), X, target(X, 3))
    rules = read_imodels(model)
    assert rules.classes == (0, 1, 2)
    assert {rule.output for rule in rules} == {0, 1, 2}
    assert_answers_alike(model, rules, name, X)


@pytest.mark.parametrize("name", REGRESSORS)
def test_read_imodels_regressors_predict_alike(name: str) -> None:
    X = rows(name)
    y = target(X)
    model = fitted(make(name), X, y)
    rules = read_imodels(model)
    assert len(rules) > 1
    assert_answers_alike(model, rules, name, X)
    assert_usable(model, rules, X, y)


@pytest.mark.parametrize("model_class", OTHERS, ids=lambda model_class: model_class.__name__)
def test_read_imodels_rejects_other_models(model_class: type) -> None:
    with pytest.raises(TypeError, match=f"{model_class.__name__} is no model of imodels whose"):
        read_imodels(object.__new__(model_class))


def test_read_imodels_docstring_lists_unsupported_models() -> None:
    assert read_imodels.__doc__
    reasons = read_imodels.__doc__.partition("- Not supported:")[2]
    for result in OTHERS:
        short = result.__name__.replace("Classifier", "").replace("Regressor", "")
        assert f"``{short}" in reasons


@pytest.mark.parametrize("name", sorted(MODELS))
def test_read_imodels_rejects_unfitted_models(name: str) -> None:
    with pytest.raises(NotFittedError):
        read_imodels(make(name))


def test_read_imodels_rejects_other_objects() -> None:
    with pytest.raises(TypeError, match="LogisticRegression is no model of imodels"):
        read_imodels(LogisticRegression())


def test_read_imodels_accepts_subclasses() -> None:
    class Mine(imodels.FIGSClassifier):
        pass

    X = rows("")
    model = fitted(Mine(max_rules=4), X, target(X, 2))
    assert_answers_alike(model, read_imodels(model), "", X)


# --- names and domain ------------------------------------------------------------------------


def test_read_imodels_takes_names_from_fit_columns_or_caller() -> None:
    X = rows("")
    y, names = target(X, 2), ["a b", "ü", "class", "1"]
    for name in ("GreedyTreeClassifier", "OneRClassifier", "C45TreeClassifier"):
        assert read_imodels(fitted(make(name), X, y)).feature_names == ("X0", "X1", "X2", "X3")
        model = fitted(make(name), X, y, feature_names=names)
        assert read_imodels(model).feature_names == tuple(names)
        renamed = read_imodels(model, feature_names=["p", "q", "r", "s"])
        assert renamed.feature_names == ("p", "q", "r", "s")
        assert as_ruleset(model, feature_names=["p", "q", "r", "s"]) == renamed
    frame = pd.DataFrame(X, columns=names)
    for name in ("RuleFitClassifier", "SkopeRulesClassifier", "FIGSClassifier", "HSTreeClassifier"):
        model = fitted(make(name), frame, y)
        rules = read_imodels(model)
        assert rules.feature_names == tuple(names)
        # Columns are matched by name, in any order.
        expected = quietly(model.predict, frame)
        np.testing.assert_array_equal(rules.predict(frame[names[::-1]]), expected)
    # These models store no feature names.
    assert read_imodels(fitted(make("TreeGAMClassifier"), X, y)).feature_names[0] == "x0"


def test_read_imodels_keeps_names_of_bayesian_lists() -> None:
    X = rows("BayesianRuleListClassifier")
    model = fitted(make("BayesianRuleListClassifier"), X, target(X, 2), feature_names=list("abcd"))
    assert read_imodels(model).feature_names == tuple("abcd")


@pytest.mark.parametrize("names", [["a"], "abcd"])
def test_read_imodels_rejects_wrong_number_of_names(names: Any) -> None:
    X = rows("")
    model = fitted(imodels.OneRClassifier(), X, target(X, 2))
    with pytest.raises(ValueError, match="feature_names must name the 4 features"):
        read_imodels(model, feature_names=names)


@pytest.mark.parametrize("name", ["FIGSClassifier", "GreedyTreeClassifier", "HSTreeClassifier"])
def test_read_imodels_keeps_domain(name: str) -> None:
    X = rows("")
    domain = Domain.around(X)
    assert read_imodels(fitted(make(name), X, target(X, 2)), domain=domain).domain == domain


# --- rule lists ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["GreedyRuleListClassifier", "OneRClassifier"])
def test_read_imodels_counts_training_rows_of_lists(name: str) -> None:
    X = rows("")
    y = target(X, 2)
    rules = read_imodels(fitted(make(name), X, y))
    assigned = rules.assign(X)
    for i, rule in enumerate(rules):
        labels = y[assigned == i]
        assert rule.statistics is not None
        assert rule.statistics.class_counts == (np.sum(labels == 0), np.sum(labels == 1))
        assert rule.statistics.n_rows == len(labels)


def test_read_imodels_last_entry_predicts_remaining_rows() -> None:
    model = fitted(imodels.GreedyRuleListClassifier(), rows(""), target(rows(""), 2))
    model.rules_ = model.rules_[:2]  # the last entry is now a step, whose condition imodels ignores
    assert "index_col" in model.rules_[-1]
    rules = read_imodels(model)
    assert not rules[-1].conditions
    np.testing.assert_array_equal(rules.predict(rows("")), model.predict(rows("")))


def test_bayesian_list_statistics_equal_counts() -> None:
    name = "BayesianRuleListClassifier"
    X = rows(name)
    y = target(X, 2)
    model = fitted(make(name, alpha=np.array([2.0, 0.5])), X, y)
    rules = read_imodels(model)
    assigned = rules.assign(X)
    assert len(rules) > 1
    for i, rule in enumerate(rules):
        labels = y[assigned == i]
        assert rule.statistics is not None
        assert rule.statistics.n_rows == len(labels)
        expected = (np.sum(labels == 0) + 2.0, np.sum(labels == 1) + 0.5)
        assert rule.statistics.class_counts == pytest.approx(expected)


def test_bayesian_list_predicts_second_class_from_one_half() -> None:
    name = "BayesianRuleListClassifier"
    X = rows(name)
    model = fitted(make(name), X, target(X, 2))
    for theta in (0.5, math.nextafter(0.5, 0), 0.6):
        model.theta = [theta] * len(model.theta)
        np.testing.assert_array_equal(read_imodels(model).predict(X), model.predict(X))


def test_bayesian_set_predicts_labels() -> None:
    name = "BayesianRuleSetClassifier"
    X = rows(name)
    model = fitted(make(name), X, np.array(["no", "yes"])[target(X, 2)])
    answers = model.predict(X)
    assert set(answers.tolist()) == {0, 1}  # imodels loses the labels
    rules = read_imodels(model)
    np.testing.assert_array_equal(rules.predict(X), np.array(["no", "yes"])[answers])


# --- sums of trees ---------------------------------------------------------------------------


def test_figs_breaks_ties_like_the_model() -> None:
    """On few rows of few values sums tie but for rounding; the short form would then go wrong."""
    everywhere = np.array(np.meshgrid(*[np.arange(3.0)] * 3)).reshape(3, -1).T
    short = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        X = rng.integers(0, 3, size=(25, 3)).astype(float)
        y = rng.integers(0, 2 + seed % 2, size=25)
        model = fitted(imodels.FIGSClassifier(max_rules=9), X, y)
        rules = read_imodels(model)
        np.testing.assert_array_equal(rules.predict(everywhere), model.predict(everywhere))
        short += min(rule.weight for rule in rules) > 0
    assert 40 > short > 20  # usually, but not always, one rule per leaf and class suffices


def test_figs_with_many_leaves_keeps_all_votes() -> None:
    rng = np.random.default_rng(0)
    X = rng.integers(0, 9, size=(400, 10)).astype(float)
    model = fitted(imodels.FIGSClassifier(max_rules=30), X, (X.sum(axis=1) > 40).astype(int))
    rules = read_imodels(model)
    assert min(rule.weight for rule in rules) < 0  # the short form has only votes for classes
    checked = rng.integers(0, 9, size=(2000, 10)).astype(float)
    np.testing.assert_array_equal(rules.predict(checked), model.predict(checked))


def test_figs_rules_state_values_of_leaves() -> None:
    X, y = np.array([[0.0], [0.0], [0.0], [0.0], [1.0], [1.0]]), np.array([0, 0, 0, 1, 1, 1])
    rules = read_imodels(fitted(imodels.FIGSClassifier(max_rules=1), X, y))
    assert [(rule.output, rule.weight) for rule in rules] == [(0, 0.5), (1, 1.0)]
    assert [rule.statistics.class_counts for rule in rules] == [(3, 1), (0, 2)]  # type: ignore
    assert [rule.premise_text() for rule in rules] == ["x0 ≤ 0.5", "x0 > 0.5"]


def test_figs_omits_leaves_of_value_0() -> None:
    X, y = np.array([[0.0], [0.0], [1.0], [1.0]]), np.array(["b", "a", "b", "b"])
    model = fitted(imodels.FIGSClassifier(max_rules=1), X, y)
    rules = read_imodels(model)
    assert [rule.output for rule in rules] == ["b"]
    np.testing.assert_array_equal(rules.predict(X), model.predict(X))
    np.testing.assert_allclose(rules.predict_proba(X), model.predict_proba(X))


def test_figs_rejects_several_outputs_and_own_encodings() -> None:
    X = rows("")
    model = fitted(imodels.FIGSRegressor(max_rules=2), X, X[:, :2])
    with pytest.raises(ValueError, match="2 outputs; rules have one"):
        read_imodels(model)
    frame = pd.DataFrame({"a": X[:, 0], "b": np.where(X[:, 1] > 0, "p", "q")})
    model = imodels.FIGSClassifier(max_rules=2)
    fitted(model, frame, target(X, 2), categorical_features=["b"])
    with pytest.raises(ValueError, match="categorical_features"):
        read_imodels(model)


@pytest.mark.parametrize("name", ["BoostedRulesClassifier", "SlipperClassifier"])
def test_boosting_reader_repairs_other_labels(name: str) -> None:
    X = rows("")
    codes = target(X, 2)
    texts = np.array(["no", "yes"])
    wrong = fitted(make(name), X, texts[codes])
    assert set(wrong.predict(X).tolist()) == {"no"}  # the repaired fault
    with pytest.warns(UserWarning, match="compares the codes 0, 1, ... .*'no', 'yes'"):
        rules = read_imodels(wrong)
    right = fitted(make(name), X, codes)
    np.testing.assert_array_equal(rules.predict(X), texts[right.predict(X)])
    np.testing.assert_allclose(rules.predict_proba(X), right.predict_proba(X))


@pytest.mark.parametrize("n_classes", [2, 3])
def test_boosting_rules_of_deeper_trees_predict_alike(n_classes: int) -> None:
    X = rows("")
    tree = DecisionTreeClassifier(max_depth=2, random_state=0)
    model = imodels.BoostedRulesClassifier(estimator=tree, n_estimators=30, random_state=0)
    fitted(model, X, target(X, n_classes))
    assert_answers_alike(model, read_imodels(model), "", X)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_boosting_rules_decide_almost_tied_votes_alike(n_classes: int) -> None:
    everywhere = np.array(np.meshgrid(*[np.arange(3.0)] * 3)).reshape(3, -1).T
    tree = DecisionTreeClassifier(max_depth=2, random_state=0)
    forms = []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        X = rng.integers(0, 3, size=(40, 3)).astype(float)
        y = np.r_[np.arange(n_classes), rng.integers(0, n_classes, size=40 - n_classes)]
        model = imodels.BoostedRulesClassifier(estimator=tree, n_estimators=5, random_state=0)
        fitted(model, X, y)
        model.estimator_weights_ = rng.integers(1, 7, size=len(model.estimators_)) / 10
        rules = read_imodels(model)
        np.testing.assert_array_equal(rules.predict(everywhere), model.predict(everywhere))
        forms.append(rules.voting)
    assert set(forms) == {"logistic", "votes"}  # the full form only where the short one differs


def test_boosting_reader_rejects_other_base_models() -> None:
    X = rows("")
    model = imodels.BoostedRulesClassifier(estimator=LogisticRegression(), n_estimators=3)
    with pytest.raises(TypeError, match="boosts LogisticRegression"):
        read_imodels(fitted(model, X, target(X, 2)))
    model = imodels.BoostedRulesRegressor(estimator=LinearRegression(), n_estimators=3)
    with pytest.raises(TypeError, match="boosts LinearRegression"):
        read_imodels(fitted(model, X, target(X)))


@pytest.mark.parametrize("as_frame", [False, True])
def test_weighted_median_is_cut_into_boxes(as_frame: bool) -> None:
    X: Any = rows("")
    tree = DecisionTreeRegressor(max_depth=2, random_state=0)
    model = imodels.BoostedRulesRegressor(estimator=tree, n_estimators=5, random_state=1)
    fitted(model, pd.DataFrame(X, columns=list("abcd")) if as_frame else X, target(X))
    rules = read_imodels(model)
    assert len(rules) > 10
    assert rules.voting is None
    checked = border_rows(rules, "", 2000)
    assert (rules.match(checked).sum(axis=1) == 1).all()
    model_input = pd.DataFrame(checked, columns=list("abcd")) if as_frame else checked
    np.testing.assert_array_equal(rules.predict(checked), model.predict(model_input))


def test_weighted_median_of_too_many_boxes_is_rejected() -> None:
    X = np.random.default_rng(0).uniform(size=(120, 4))
    tree = DecisionTreeRegressor(max_depth=6, random_state=0)
    model = imodels.BoostedRulesRegressor(estimator=tree, n_estimators=6)
    with pytest.raises(ValueError, match="more than 5000 boxes"):
        read_imodels(fitted(model, X, X @ [1, 2, 3, 4]))


def test_tree_gam_with_marginal_rounds_is_rejected() -> None:
    X = rows("")
    model = imodels.TreeGAMClassifier(n_boosting_rounds=2, n_boosting_rounds_marginal=2)
    with pytest.raises(ValueError, match="n_boosting_rounds_marginal=2"):
        read_imodels(fitted(model, X, target(X, 2)))


# --- weighted rules --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "changes",
    [
        {"lin_trim_quantile": 0.0},
        {"lin_trim_quantile": 0.2},
        {"lin_trim_quantile": 0.7},  # the limits cross
        {"lin_standardise": False},
        {"include_linear": False},
        {"tree_generator": GradientBoostingRegressor(n_estimators=9), "exp_rand_tree_size": False},
    ],
)
@pytest.mark.parametrize("name", ["RuleFitClassifier", "RuleFitRegressor"])
def test_rule_fit_predicts_alike_in_all_forms(name: str, changes: dict[str, Any]) -> None:
    X = rows("")
    X[:, 3] = X[:, 3] > 0  # columns with two values are not scaled
    y = target(X, 2) if name.endswith("Classifier") else 3 + target(X)
    model = fitted(make(name, max_rules=40, **changes), X, y)
    rules = read_imodels(model)
    has_linear = any(
        isinstance(part, LinearOutput) for rule in rules for part in (rule.output, rule.weight)
    )
    if changes.get("lin_trim_quantile") == 0.7:
        assert not has_linear
    else:
        assert has_linear == (model.include_linear and any(model.coef[:4]))
    assert_answers_alike(model, rules, "", X)


def test_rule_fit_clipped_feature_becomes_three_rules() -> None:
    """The expected value by hand: 2 * clip(x, -1, 3) + 5."""
    X = rows("")
    model = fitted(make("RuleFitRegressor"), X, target(X))
    model.rules_without_feature_names_ = []
    model.coef, model.intercept = [0.5, 0.0, 0.0, 0.0], 5.0
    model.friedscale.scale_multipliers = np.array([4.0, 1.0, 1.0, 1.0])
    model.friedscale.winsorizer.winsor_lims = np.array([[-1.0] * 4, [3.0] * 4])
    rules = read_imodels(model, feature_names=list("abcd"))
    assert [str(rule).partition("   ")[0] for rule in rules] == [
        "IF a > 3 THEN 6",
        "IF a < -1 THEN -2",
        "IF -1 ≤ a ≤ 3 THEN 2·a",
        "ALWAYS 5",
    ]
    points = np.array([[-7.0, 0, 0, 0], [-1, 0, 0, 0], [1, 9, 9, 9], [3, 0, 0, 0], [8, 0, 0, 0]])
    assert rules.predict(points).tolist() == [3.0, 3.0, 7.0, 11.0, 11.0]
    np.testing.assert_allclose(model.predict(points), [3.0, 3.0, 7.0, 11.0, 11.0])


def test_rule_fit_omits_rules_without_weight() -> None:
    X = rows("")
    model = fitted(make("RuleFitRegressor"), X, target(X))
    before = len(read_imodels(model))
    model.rules_without_feature_names_[0].args = [0.0]
    rules = read_imodels(model)
    assert len(rules) == before - 1
    np.testing.assert_allclose(rules.predict(X), model.predict(X))


def test_rule_fit_sum_of_no_rules_is_0() -> None:
    X = rows("")
    model = fitted(make("RuleFitRegressor", include_linear=False), X, target(X))
    model.rules_without_feature_names_, model.intercept = model.rules_without_feature_names_[:2], 0
    rules = read_imodels(model)
    assert not rules.covers(border_rows(rules, "")).all()
    assert_answers_alike(model, rules, "", X)


@pytest.mark.parametrize("name", ["SkopeRulesClassifier", "RuleFitClassifier"])
def test_rule_texts_may_be_contradictory_or_empty(name: str) -> None:
    """Thresholds are rounded in rule texts, so imodels may write rules that never hold."""
    X = rows("")
    model = fitted(make(name), X, target(X, 2))
    before = len(read_imodels(model))
    model.rules_without_feature_names_ += [
        TextRule("X_1 <= 0.5 and X_1 > 0.5", args=[9.0]),
        TextRule("X_2 == X_2", args=[0.75]),
        TextRule("X_0 >= 0.1 and X_0 < 0.3", args=[1.5]),
    ]
    rules = read_imodels(model)
    assert len(rules) == before + 2
    for checked in (X, border_rows(rules, "")):
        np.testing.assert_array_equal(rules.predict(checked), model.predict(checked))


def test_skope_rules_without_rules_predict_first_class() -> None:
    X = rows("")
    model = fitted(make("SkopeRulesClassifier", precision_min=1.1), X, target(X, 2))
    assert model.rules_without_feature_names_ == []
    rules = read_imodels(model)
    assert rules.predict(X).tolist() == model.predict(X).tolist() == [0] * len(X)
    np.testing.assert_array_equal(rules.predict_proba(X), model.predict_proba(X))


def test_skope_rules_break_ties_by_first_class() -> None:
    X = np.array([[0.0], [1.0], [2.0], [3.0]])
    model = fitted(make("SkopeRulesClassifier"), X, [0, 1, 0, 1])
    model.rules_without_feature_names_ = [
        TextRule("X_0 > 0.5", args=[0.7]),
        TextRule("X_0 > 1.5", args=[0.1]),
        TextRule("X_0 > 2.5", args=[0.6]),
    ]
    rules = read_imodels(model)
    np.testing.assert_array_equal(rules.predict(X), model.predict(X))
    model.rules_without_feature_names_ = model.rules_without_feature_names_[::2]
    model.rules_without_feature_names_[1].args = [0.7]
    rules = read_imodels(model)
    assert rules.predict(X).tolist() == model.predict(X).tolist() == [0, 0, 0, 1]


# --- trees -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("inner", "n_classes"),
    [
        (RandomForestClassifier(7, max_depth=3, random_state=0), 2),
        (RandomForestClassifier(7, max_depth=3, random_state=0), 3),
        (GradientBoostingClassifier(n_estimators=7, random_state=0), 2),  # imodels takes no more
    ],
)
def test_shrunken_classifiers_predict_alike(inner: Any, n_classes: int) -> None:
    X = rows("")
    y = np.array(["b", "c", "a"])[target(X, n_classes)]
    model = fitted(imodels.HSTreeClassifier(inner, reg_param=3), X, y)
    rules = read_imodels(model)
    assert rules.voting in ("probabilities", "logistic")
    assert_answers_alike(model, rules, "", X)


@pytest.mark.parametrize(
    "inner",
    [
        ExtraTreesRegressor(7, max_depth=3, random_state=0),
        GradientBoostingRegressor(n_estimators=7, random_state=0),
    ],
    ids=lambda inner: type(inner).__name__,
)
def test_shrunken_regressors_predict_alike(inner: Any) -> None:
    X = rows("")
    model = fitted(imodels.HSTreeRegressor(inner, reg_param=3), X, target(X))
    assert_answers_alike(model, read_imodels(model), "", X)


@pytest.mark.parametrize("name", ["HSTreeClassifier", "HSTreeClassifierCV", "GreedyTreeClassifier"])
def test_shares_of_shrunken_leaves_are_not_called_right(name: str) -> None:
    X = rows("")
    rules = as_ruleset(fitted(make(name), X, target(X, 2)))
    assert ("right (data)" in str(rules)) == (name == "GreedyTreeClassifier")


def test_shrunken_reader_rejects_other_models() -> None:
    X = rows("")
    inner = BaggingClassifier(DecisionTreeClassifier(max_depth=2), 3, random_state=0)
    model = fitted(imodels.HSTreeClassifier(inner), X, target(X, 2))
    with pytest.raises(TypeError, match="wraps a BaggingClassifier"):
        read_imodels(model)


def test_shrunken_prefitted_tree_keeps_its_labels() -> None:
    X = rows("")
    tree = DecisionTreeClassifier(max_leaf_nodes=6, random_state=0)
    tree.fit(pd.DataFrame(X, columns=list("abcd")), np.array(["u", "t"])[target(X, 2)])
    model = imodels.HSTreeClassifier(tree, reg_param=20)
    rules = read_imodels(model)
    assert rules.classes == ("t", "u")
    assert rules.feature_names == tuple("abcd")
    frame = pd.DataFrame(border_rows(rules, ""), columns=list("abcd"))
    np.testing.assert_array_equal(rules.predict(frame), model.predict(frame))


@pytest.mark.parametrize("label", [bool, int, str])
def test_shrunken_tree_keeps_types_of_labels(label: Callable[[int], Any]) -> None:
    X = rows("")
    y = np.array([label(code) for code in target(X, 2)])
    model = fitted(make("HSTreeClassifier"), X, y)
    rules = read_imodels(model)
    assert {type(class_label) for class_label in rules.classes or ()} == {label}
    assert {type(rule.output) for rule in rules} == {label}
    assert_answers_alike(model, rules, "", X)


def test_shrunken_leaves_have_no_mean() -> None:
    X = rows("")
    y = target(X)
    rules = read_imodels(fitted(make("HSTreeRegressor"), X, y))
    assigned = rules.assign(X)
    for i, rule in enumerate(rules):
        assert rule.statistics is not None
        assert rule.statistics.mean is None
        assert rule.statistics.n_rows == np.sum(assigned == i)
        assert rule.statistics.standard_deviation == pytest.approx(
            np.std(y[assigned == i]), abs=1e-7
        )


def test_tao_tree_omits_unreachable_leaves() -> None:
    X = rows("")
    model = imodels.TaoTreeClassifier(
        randomize_tree=True, n_iters=1, model_args={"max_leaf_nodes": 30, "random_state": 0}
    )
    fitted(model, X, target(X, 2))
    rules = read_imodels(model)
    assert 1 < len(rules) < model.model.get_n_leaves()
    assert_answers_alike(model, rules, "", X)


def test_c45_rare_leaf_has_no_vote_among_three_classes() -> None:
    """imodels uses a share that it has rounded to three digits."""
    X = rows("")
    model = fitted(imodels.C45TreeClassifier(max_rules=6), X, target(X, 3))
    leaf = next(
        element
        for element in model.dom_.getElementsByTagName("*")
        if element.firstChild.nodeName == "#text" and element.firstChild.nodeValue == "2.0"
    )
    before = model.predict(X)
    leaf.setAttribute("p", "0.0")
    expected = model.predict(X)
    assert (expected != before).any()
    np.testing.assert_array_equal(read_imodels(model).predict(X), expected)


def test_c45_shrunken_trees_need_numeric_labels() -> None:
    X = rows("")
    shrunken = HSC45TreeClassifier(imodels.C45TreeClassifier(max_rules=4))
    fitted(shrunken, X, target(X, 2) + 1)
    with pytest.raises(ValueError, match="on labels 0 and 1"):
        read_imodels(shrunken)
    shrunken = HSC45TreeClassifier(imodels.C45TreeClassifier(max_rules=4))
    fitted(shrunken, X, target(X, 3))
    with pytest.raises(ValueError, match="codes of its 3 classes"):
        read_imodels(shrunken)


def test_c45_keeps_names_that_xml_does_not_allow() -> None:
    X = rows("")
    names = ["age (years)", "age-years", "1 <", ""]
    model = fitted(make("C45TreeClassifier"), X, target(X, 2), feature_names=names)
    rules = read_imodels(model)
    assert rules.feature_names == tuple(names)
    assert_answers_alike(model, rules, "", X)
