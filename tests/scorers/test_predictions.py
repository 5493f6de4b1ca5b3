"""Measures of predictions as scorers: of any model, in searches, weighted, by name."""

from __future__ import annotations

import copy
import math
import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.exceptions import NotFittedError, UndefinedMetricWarning
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import matthews_corrcoef
from sklearn.model_selection import (
    GridSearchCV,
    KFold,
    StratifiedKFold,
    cross_val_score,
    cross_validate,
)
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from skescore.extractors import CARTExtractor, ITERExtractor
from skescore.metrics import (
    PERFORMANCE_METRICS,
    PerformanceMetric,
    characteristics,
    performance_value,
)
from skescore.rules import Domain, Fallback, Interval, Rule, RuleSet, as_ruleset
from skescore.scorers import (
    PERFORMANCE_SCORERS,
    FidelityScorer,
    PerformanceScorer,
    get_rule_scorer,
    make_performance_scorer,
)
from skescore.selection import prune

X2, Y2 = (part[::3] for part in load_breast_cancer(return_X_y=True))
X3, Y3 = (part[::2] for part in load_iris(return_X_y=True))
X_NUMBERS, Y_NUMBERS = (part[:120] for part in load_diabetes(return_X_y=True))
LABELS = np.array(["bad", "fine"])[Y2]
WEIGHTS = np.where(Y2 == 0, 4.0, 0.5)
FOLDS = StratifiedKFold(3, shuffle=True, random_state=0)
TREE = DecisionTreeClassifier(max_leaf_nodes=4, min_samples_leaf=9, random_state=0)


def of_kind(*kinds: str) -> list[str]:
    return [name for name, metric in PERFORMANCE_METRICS.items() if metric.kind in kinds]


def sign(name: str) -> float:
    return -1.0 if PERFORMANCE_METRICS[name].greater_is_better is False else 1.0


def by_hand(names: list[str], model: Any, X: Any, y: Any, folds: Any) -> dict[str, list[float]]:
    """Return the values of each measure's own function on each fold, negated for losses."""
    scores: dict[str, list[float]] = {name: [] for name in names}
    for train, test in folds.split(X, y):
        fitted = clone(model).fit(X[train], y[train])
        for name in names:
            options: dict[str, Any] = {}
            if PERFORMANCE_METRICS[name].kind == "probability":
                answers, options = fitted.predict_proba(X[test]), {"labels": fitted.classes_}
            else:
                answers = fitted.predict(X[test])
            value = performance_value(name, y[test], answers, **options)
            scores[name].append(sign(name) * value)
    return scores


# --- any model -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "model",
    [
        TREE,
        make_pipeline(StandardScaler(), LogisticRegression()),
        CARTExtractor(TREE, max_leaf_nodes=3, random_state=0),
    ],
    ids=["tree", "pipeline", "extractor"],
)
def test_performance_scorers_of_classes_agree_with_loop(model: Any) -> None:
    names = of_kind("binary", "multiclass", "probability")
    scoring = {name: make_performance_scorer(name) for name in names}
    results = cross_validate(model, X2, Y2, scoring=scoring, cv=FOLDS)
    for name, expected in by_hand(names, model, X2, Y2, FOLDS).items():
        assert results[f"test_{name}"] == pytest.approx(expected), name


@pytest.mark.parametrize(
    "model",
    [
        LinearRegression(),
        TransformedTargetRegressor(
            DecisionTreeRegressor(max_leaf_nodes=4, random_state=0),
            func=np.log,
            inverse_func=np.exp,
        ),
        CARTExtractor(LinearRegression(), max_leaf_nodes=4, random_state=0),
    ],
    ids=["linear", "transformed", "extractor"],
)
def test_performance_scorers_of_numbers_agree_with_loop(model: Any) -> None:
    names, folds = of_kind("regression"), KFold(3)
    scoring = {name: make_performance_scorer(name) for name in names}
    results = cross_validate(model, X_NUMBERS, Y_NUMBERS, scoring=scoring, cv=folds)
    for name, expected in by_hand(names, model, X_NUMBERS, Y_NUMBERS, folds).items():
        assert results[f"test_{name}"] == pytest.approx(expected), name


@pytest.mark.parametrize("name", ["fallout", "specificity", "soft_margin_loss"])
def test_performance_scorer_selects_best_in_search(name: str) -> None:
    leaves, scorer = [2, 3, 4, 8], get_rule_scorer(name)
    search = GridSearchCV(TREE, {"max_leaf_nodes": leaves}, scoring=scorer, cv=FOLDS).fit(X2, Y2)
    means = [
        np.mean(by_hand([name], clone(TREE).set_params(max_leaf_nodes=n), X2, Y2, FOLDS)[name])
        for n in leaves
    ]
    assert len(set(means)) > 1
    assert search.best_params_ == {"max_leaf_nodes": leaves[int(np.argmax(means))]}
    # The fitted search, and a Pipeline around it, score like the estimator inside.
    assert scorer(search, X2, Y2) == scorer(search.best_estimator_, X2, Y2)
    outer = make_pipeline(FunctionTransformer(), search.best_estimator_).fit(X2, Y2)
    assert scorer(outer, X2, Y2) == scorer(search.best_estimator_, X2, Y2)


# Unordered classes, rows without a rule, and rules that contradict each other.
RULES = RuleSet(
    [
        Rule([Interval(0, upper=2)], "low", weight=0.6),
        Rule([Interval(0, 1, 4)], "high", weight=0.3),
    ],
    ["length"],
    task="classification",
    classes=["low", "high"],
    ordered=False,
    voting="votes",
    domain=Domain((0,), (5,)),
    fallback=Fallback("high"),
)
ROWS = np.array([[0.5], [1.5], [2.5], [3.5], [4.5]])
TRUTH = np.array(["low", "high", "high", "low", "low"])


@pytest.mark.parametrize("name", of_kind("binary", "multiclass"))
def test_performance_scorer_accepts_rule_sets(name: str) -> None:
    options = {"pos_label": "low"} if name in of_kind("binary") else {}
    expected = performance_value(name, TRUTH, ["low", "low", "high", "high", "high"], **options)
    scorer = make_performance_scorer(name, **options)
    assert scorer(RULES, ROWS, TRUTH) == pytest.approx(sign(name) * expected)


@pytest.mark.parametrize("name", of_kind("probability"))
def test_performance_scorer_orders_columns_by_classes(name: str) -> None:
    sure = RULES.predict_proba(ROWS)[np.arange(5), [0, 1, 1, 0, 0]]
    assert sure.tolist() == pytest.approx([1, 1 / 3, 1, 0, 0])
    beside_others = np.column_stack([sure, 1 - sure])
    expected = performance_value(name, ["true"] * 5, beside_others, labels=["true", "other"])
    assert make_performance_scorer(name)(RULES, ROWS, TRUTH) == sign(name) * expected


def test_performance_scorer_measures_voting_conflicts() -> None:
    figures = characteristics(RULES, ROWS, TRUTH)
    assert figures["negative_voting_conflicts"] == figures["voting_conflicts"] == 1.0
    for name in of_kind("rules"):
        scorer = make_performance_scorer(name)
        assert scorer(RULES, ROWS, TRUTH) == sign(name) * figures[name]
    weights = [1, 2.5, 1, 0, 1]
    assert PERFORMANCE_SCORERS["neg_voting_conflicts"](RULES, ROWS, TRUTH, weights) == -2.5
    tree = DecisionTreeRegressor(max_depth=2).fit(X_NUMBERS, Y_NUMBERS)
    assert PERFORMANCE_SCORERS["rules_per_example"](tree, X_NUMBERS, Y_NUMBERS) == 1.0
    with pytest.raises(
        ValueError, match="neg_voting_conflicts is for classes, but the rules of Dec"
    ):
        PERFORMANCE_SCORERS["neg_voting_conflicts"](tree, X_NUMBERS, Y_NUMBERS)
    no_rules = GaussianNB().fit(X3, Y3)
    with pytest.raises(TypeError, match="GaussianNB has no rule set"):
        PERFORMANCE_SCORERS["rules_per_example"](no_rules, X3, Y3)


def test_performance_scorer_accepts_frames_and_pipelines() -> None:
    X, y = load_iris(return_X_y=True, as_frame=True)
    extractor = CARTExtractor(KNeighborsClassifier(), max_leaf_nodes=4, random_state=0)
    fitted = clone(extractor).fit(X, y)
    piped = make_pipeline(FunctionTransformer(), extractor).fit(X, y)
    for scorer in (PERFORMANCE_SCORERS["rules_per_example"], get_rule_scorer("voting_conflicts")):
        # Columns in another order are matched by name.
        shuffled = X[X.columns[::-1]]
        assert scorer(fitted.rules_, shuffled, y) == scorer(fitted, X, y) == scorer(piped, X, y)
    assert PERFORMANCE_SCORERS["rules_per_example"](fitted, X, y) >= 1.0


def test_performance_scorer_measures_fidelity() -> None:
    black_box = KNeighborsClassifier(15)
    extractor = CARTExtractor(black_box, max_leaf_nodes=3, random_state=0).fit(X2, LABELS)
    answers = clone(black_box).fit(X2, LABELS).predict(X2)
    assert (answers != LABELS).any()
    scorer = make_performance_scorer("fallout", reference="black_box", pos_label="bad")
    expected = -performance_value("fallout", answers, extractor.predict(X2), pos_label="bad")
    assert scorer(extractor, X2) == scorer(extractor, X2, LABELS) == expected
    with pytest.raises(TypeError, match="reference='black_box' needs an extractor"):
        scorer(as_ruleset(extractor), X2, LABELS)


def test_fidelity_scorer_measures_r2_of_numbers() -> None:
    X, y = load_diabetes(return_X_y=True)
    extractor = CARTExtractor(LinearRegression(), max_leaf_nodes=4, random_state=0).fit(X, y)
    scorer, weights = FidelityScorer(), np.arange(len(y)) % 3
    assert scorer(extractor, X, y) == pytest.approx(extractor.fidelity(X))
    repeated = np.repeat(X, weights, axis=0)
    assert scorer(extractor, X, None, weights) == pytest.approx(extractor.fidelity(repeated))
    results = cross_validate(extractor, X, y, scoring={"fidelity": scorer}, error_score="raise")
    assert 0.5 < results["test_fidelity"].min() < 1.0


def test_fidelity_scorer_scores_abstaining_regression_rules() -> None:
    X, y = load_diabetes(return_X_y=True)
    extractor = ITERExtractor(LinearRegression(), uncovered="abstain", random_state=0)
    extractor.fit(X[:200], y[:200])
    assert np.isnan(extractor.predict(X)).any()
    assert FidelityScorer()(extractor, X) == pytest.approx(extractor.fidelity(X))
    results = cross_validate(extractor, X, y, scoring=FidelityScorer(), error_score="raise")
    assert np.isfinite(results["test_score"]).all()


def test_prune_accepts_performance_scorers() -> None:
    X, y, scorer = X3, Y3, get_rule_scorer("cohen_kappa")
    rules = as_ruleset(DecisionTreeClassifier(max_depth=3, random_state=0).fit(X, np.roll(y, 9)))
    with pytest.raises(ValueError, match="the rule set has no fallback"):
        prune(rules, X, y, "cohen_kappa")
    rules = rules.replace(fallback=Fallback(0))
    pruned = prune(rules, X, y, "cohen_kappa")
    assert len(pruned) < len(rules)
    assert scorer(pruned, X, y) > scorer(rules, X, y)


# --- labels and classes --------------------------------------------------------------------------


def test_performance_scorer_needs_positive_class() -> None:
    tree = clone(TREE).fit(X2, LABELS)
    for pos_label in ("bad", "fine"):
        scorer = make_performance_scorer("precision", pos_label=pos_label)
        expected = performance_value("precision", LABELS, tree.predict(X2), pos_label=pos_label)
        assert scorer(tree, X2, LABELS) == expected
    with pytest.raises(ValueError, match="pos_label must name the positive label"):
        make_performance_scorer("precision")(tree, X2, LABELS)
    with pytest.raises(ValueError, match="one of the model's classes 'bad', 'fine', got 'good'"):
        make_performance_scorer("precision", pos_label="good")(tree, X2[:1], LABELS[:1])


def test_performance_scorer_counts_classes_of_model() -> None:
    tree = DecisionTreeClassifier(max_depth=2, random_state=0).fit(X3, Y3)
    rows = (Y3 < 2) & (tree.predict(X3) < 2)
    assert set(Y3[rows]) == set(tree.predict(X3[rows])) == {0, 1}
    with pytest.raises(ValueError, match="youden is for two classes, but the model has 3: 0, 1, 2"):
        make_performance_scorer("youden")(tree, X3[rows], Y3[rows])


def test_performance_scorer_rejects_unknown_labels() -> None:
    model = GaussianNB().fit(X3[Y3 < 2], Y3[Y3 < 2])
    with pytest.raises(ValueError, match="label 2, which is none of the classes of y_prob, 0, 1"):
        make_performance_scorer("margin")(model, X3, Y3)


def test_performance_scorer_rejects_unsuitable_models() -> None:
    model = LinearRegression().fit(X_NUMBERS, Y_NUMBERS)
    with pytest.raises(TypeError, match="needs a classifier with predict_proba, but LinearRegress"):
        make_performance_scorer("margin")(model, X_NUMBERS, Y_NUMBERS)
    with pytest.raises(ValueError, match=r"is not an integer\. Choose a metric of regression"):
        make_performance_scorer("cohen_kappa")(model, X_NUMBERS, Y_NUMBERS)
    with pytest.raises(
        TypeError, match=r"y_true must be a number or an array of numbers, got .*'bad'"
    ):
        make_performance_scorer("mean_squared_error")(clone(TREE).fit(X2, LABELS), X2, LABELS)
    with pytest.raises(NotFittedError):
        make_performance_scorer("cohen_kappa")(TREE, X2, Y2)
    with pytest.raises(ValueError, match="cohen_kappa compares with y, but y is None; pass y"):
        make_performance_scorer("cohen_kappa")(clone(TREE).fit(X2, Y2), X2)


# --- undefined -----------------------------------------------------------------------------------


def test_performance_scorer_warns_if_undefined() -> None:
    tree = clone(TREE).fit(X2, Y2)
    positives = Y2 == 1
    for name in ("specificity", "fallout"):
        with pytest.warns(UndefinedMetricWarning, match=f"{name} is undefined at TP = "):
            assert math.isnan(make_performance_scorer(name)(tree, X2[positives], Y2[positives]))
        # The value for `undefined` is used unchanged, not negated.
        scorer = make_performance_scorer(name, undefined=-0.5)
        assert scorer(tree, X2[positives], Y2[positives]) == -0.5


def test_performance_scorer_keeps_infinite_losses() -> None:
    assert PERFORMANCE_SCORERS["neg_cross_entropy"](RULES, ROWS, TRUTH) == -math.inf


# --- weights -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", of_kind("binary", "multiclass", "probability"))
def test_performance_scorer_accepts_weights(name: str) -> None:
    tree, scorer = clone(TREE).fit(X2, Y2), make_performance_scorer(name)
    answers = tree.predict_proba(X2) if name in of_kind("probability") else tree.predict(X2)
    expected = sign(name) * performance_value(name, Y2, answers, sample_weight=WEIGHTS)
    assert scorer(tree, X2, Y2, sample_weight=WEIGHTS) == expected
    # Minimum confidence and shares within one class do not depend on these weights.
    unaffected = {"margin", "recall", "specificity", "fallout", "youden", "geometric_mean"}
    if name not in {*unaffected, "balanced_accuracy"}:
        assert scorer(tree, X2, Y2) != pytest.approx(expected)


def test_performance_scorer_receives_routed_weights() -> None:
    model = KNeighborsClassifier(25)
    scorer = get_rule_scorer("zero_one_loss")

    def expected(weights: np.ndarray | None) -> list[float]:
        scores = []
        for train, test in FOLDS.split(X2, Y2):
            answers = clone(model).fit(X2[train], Y2[train]).predict(X2[test])
            part = None if weights is None else weights[test]
            scores.append(
                -performance_value("zero_one_loss", Y2[test], answers, sample_weight=part)
            )
        return scores

    assert expected(WEIGHTS) != pytest.approx(expected(None))
    with sklearn.config_context(enable_metadata_routing=True):
        for request, params in (
            (True, {"sample_weight": WEIGHTS}),
            ("cost", {"cost": WEIGHTS}),
        ):
            requesting = scorer.set_score_request(sample_weight=request)
            scores = cross_val_score(model, X2, Y2, scoring=requesting, cv=FOLDS, params=params)
            assert scores == pytest.approx(expected(WEIGHTS))
            several = cross_validate(
                model, X2, Y2, scoring={"e": requesting}, cv=FOLDS, params=params
            )
            assert several["test_e"] == pytest.approx(expected(WEIGHTS))
        ignored = scorer.set_score_request(sample_weight=False)
        # scikit-learn raises an error for metadata that no object requests.
        with pytest.raises(TypeError, match="sample_weight"):
            cross_val_score(
                model, X2, Y2, scoring=ignored, cv=FOLDS, params={"sample_weight": WEIGHTS}
            )
    assert scorer.get_metadata_routing().score.requests == {"sample_weight": None}
    assert cross_val_score(model, X2, Y2, scoring=scorer, cv=FOLDS) == pytest.approx(expected(None))
    with pytest.raises(TypeError, match=r"neg_zero_one_loss accepts only sample_weight, got"):
        scorer.set_score_request(groups=True)
    with pytest.raises(ValueError, match="sample_weight"):
        scorer.set_score_request(sample_weight=3)


# --- by name -------------------------------------------------------------------------------------


def test_performance_scorers_exist_for_all_metrics_but_survival() -> None:
    assert set(PERFORMANCE_METRICS) - {s.metric for s in PERFORMANCE_SCORERS.values()} == {
        "integrated_brier_score"
    }
    for key, scorer in PERFORMANCE_SCORERS.items():
        assert key == scorer.name
        assert isinstance(scorer, PerformanceScorer)
        assert get_rule_scorer(key) is get_rule_scorer(key.removeprefix("neg_")) is scorer
        loss = PERFORMANCE_METRICS[scorer.metric].greater_is_better is False
        assert key.startswith("neg_") is loss
    assert "negative_predictive_value" in PERFORMANCE_SCORERS  # the name only looks like a loss


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("neg_youden", r"no score 'neg_youden'\. Did you mean 'youden'"),
        ("fallot", r"no score 'fallot'\. Did you mean 'neg_fallout'"),
        ("integrated_brier_score", "no score 'integrated_brier_score'"),
    ],
)
def test_get_rule_scorer_rejects_unknown_names(name: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        get_rule_scorer(name)


@pytest.mark.parametrize(
    ("metric", "options", "kind", "message"),
    [
        ("youdn", {}, ValueError, r"no metric of predictions 'youdn'\. Did you mean 'youden'"),
        ("youden", {"clip": True}, TypeError, "'youden' has no option 'clip'"),
        ("youden", {"reference": "truth"}, ValueError, "'data', 'black_box', got 'truth'"),
        ("youden", {"undefined": None}, TypeError, "undefined must be a number"),
        ("integrated_brier_score", {}, ValueError, "needs the censored rows"),
    ],
)
def test_make_performance_scorer_rejects_invalid_options(
    metric: Any, options: Any, kind: type[Exception], message: str
) -> None:
    with pytest.raises(kind, match=message):
        make_performance_scorer(metric, **options)


def half_off(y_true: Any, y_pred: Any, *, sample_weight: Any, undefined: float) -> float:
    return float(np.average(np.abs(y_true - y_pred) > 0.5, weights=sample_weight))


OWN = PerformanceMetric("half_off", half_off, "regression", False, 0.0, "share of |y - z| > 1/2")
COPIES = {
    "deepcopy": copy.deepcopy,
    "copy": copy.copy,
    "pickle": lambda scorer: pickle.loads(pickle.dumps(scorer)),
    "clone": lambda scorer: clone(GridSearchCV(TREE, {}, scoring=scorer)).scoring,
}


@pytest.mark.parametrize("kind", COPIES)
@pytest.mark.parametrize("metric", ["fallout", OWN], ids=["named", "own"])
def test_performance_scorer_copies_score_equally(kind: str, metric: Any) -> None:
    tree = clone(TREE).fit(X2, Y2)
    scorer = make_performance_scorer(metric, undefined=-1).set_score_request(sample_weight="w")
    second_result = COPIES[kind](scorer)
    assert repr(second_result) == repr(scorer)
    assert second_result(tree, X2, Y2, WEIGHTS) == scorer(tree, X2, Y2, WEIGHTS) < 0
    assert second_result.get_metadata_routing().score.requests == {"sample_weight": "w"}


def test_performance_scorer_repr_shows_settings() -> None:
    scorer = make_performance_scorer("f1", harmonic=True, pos_label="yes", undefined=0)
    assert repr(scorer) == ("f1(harmonic=True, pos_label='yes', undefined=0.0, reference='data')")
    assert repr(make_performance_scorer(OWN)) == "neg_half_off(undefined=nan, reference='data')"


def test_performance_scorer_accepts_frames_and_series() -> None:
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    tree = clone(TREE).fit(X, y)
    shuffled = y.sample(frac=1, random_state=0).index
    scorer = make_performance_scorer("psep")
    value = scorer(tree, X.loc[shuffled], y.loc[shuffled], pd.Series(1.0, index=shuffled))
    assert value == pytest.approx(scorer(tree, X, y))


def test_performance_scorer_accepts_functions() -> None:
    X, y = load_iris(return_X_y=True)
    tree = DecisionTreeClassifier(max_leaf_nodes=3, random_state=0).fit(X, y)
    scorer = make_performance_scorer({"matthews": matthews_corrcoef})
    assert scorer(tree, X, y) == matthews_corrcoef(y, tree.predict(X))
    weights = np.arange(len(y)) + 1.0
    expected = matthews_corrcoef(y, tree.predict(X), sample_weight=weights)
    assert scorer(tree, X, y, sample_weight=weights) == expected
    assert pickle.loads(pickle.dumps(clone(scorer, safe=False)))(tree, X, y) == scorer(tree, X, y)
    for wrong in ({}, {"a": max, "b": min}, {"a": 3}, {1: max}, {1: 3}):
        with pytest.raises(TypeError, match="metric as a dict must hold one name and its function"):
            make_performance_scorer(wrong)
