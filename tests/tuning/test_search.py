"""ExtractorSearchCV: results, records, predictions and errors."""

from __future__ import annotations

import json
import math
import os
import pickle
import random
import subprocess
import sys
import time
from typing import Any

import numpy as np
import optuna
import pandas as pd
import polars as pl
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_iris, load_wine
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression
from sklearn.metrics import accuracy_score, f1_score, r2_score
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    StratifiedKFold,
    cross_val_predict,
    cross_val_score,
)
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from skescore.black_boxes import CallableClassifier, CallableRegressor
from skescore.extractors import CARTExtractor, GridExExtractor
from skescore.metrics import ice_score
from skescore.registry import DEFAULT_EXTRACTORS, EXTRACTORS
from skescore.scorers import ice, knowledge, make_ice_scorer, neg_fire, neg_q
from skescore.tuning import ExtractorObjective, ExtractorSearchCV, search_space
from skescore.tuning.spaces import starting_points

# Fewer leaves than classes are a bad candidate, not an invalid one.
pytestmark = pytest.mark.filterwarnings("ignore:max_leaf_nodes=:UserWarning")

X, Y = (part[::2] for part in load_iris(return_X_y=True))
LABELS = np.array(["setosa", "versicolor", "virginica"])[Y]
X_NUMBERS, Y_NUMBERS = (part[:90] for part in load_diabetes(return_X_y=True))
FOLDS = StratifiedKFold(3, shuffle=True, random_state=0)
BLACK_BOX = DecisionTreeClassifier(max_depth=4, random_state=0)
REGRESSOR = DecisionTreeRegressor(max_depth=3, random_state=0)


def search_of(black_box: Any = BLACK_BOX, **options: Any) -> ExtractorSearchCV:
    settings = {"extractors": ("cart", "gridex"), "n_trials": 6, "cv": 3, "random_state": 0}
    settings["n_repeats"] = 0
    settings |= options
    return ExtractorSearchCV(black_box, **settings)


@pytest.fixture(scope="module")
def fitted() -> ExtractorSearchCV:
    return search_of(cv=FOLDS, n_trials=8, pruner=None).fit(X, LABELS)


def budgeted_trials(study: optuna.Study) -> list[optuna.trial.FrozenTrial]:
    """Return the trials without the baselines, which a search makes in addition."""
    return [trial for trial in study.trials if "baseline" not in trial.user_attrs]


def without_times(board: pd.DataFrame) -> pd.DataFrame:
    return board.drop(columns="seconds")


# --- results -------------------------------------------------------------------------------------


def test_best_score_equals_cross_validation_of_winner(fitted: ExtractorSearchCV) -> None:
    by_sklearn = cross_val_score(clone(fitted.best_extractor_), X, LABELS, scoring=ice, cv=FOLDS)
    assert fitted.best_score_ == pytest.approx(by_sklearn.mean(), rel=1e-12)
    by_hand = []
    for train, test in FOLDS.split(X, LABELS):
        model = clone(fitted.best_extractor_).fit(X[train], LABELS[train])
        covered = model.covers(X[test])
        performance = f1_score(
            LABELS[test][covered], model.predict(X[test])[covered], average="weighted"
        )
        by_hand.append(ice_score(performance, model.n_rules_, model.completeness_))
    assert fitted.best_score_ == pytest.approx(np.mean(by_hand), rel=1e-12)


def test_winner_is_fitted_on_all_rows(fitted: ExtractorSearchCV) -> None:
    best = fitted.best_extractor_
    kind = {"cart": CARTExtractor, "gridex": GridExExtractor}[fitted.best_name_]
    assert type(best) is kind
    parameters = best.get_params(deep=False)
    assert {name: parameters[name] for name in fitted.best_params_} == fitted.best_params_
    by_hand = clone(best).fit(X, LABELS)
    assert by_hand.rules_ == best.rules_
    assert sum(rule.statistics.n_rows for rule in best.rules_) == len(X)
    assert best.estimator_ is not BLACK_BOX


def test_search_predicts_like_winner(fitted: ExtractorSearchCV) -> None:
    best = fitted.best_extractor_
    rows = np.random.default_rng(0).uniform(0, 8, size=(50, 4))
    assert fitted.predict(rows).tolist() == best.predict(rows).tolist()
    assert fitted.predict_proba(rows).tolist() == best.predict_proba(rows).tolist()
    assert fitted.covers(rows).tolist() == best.covers(rows).tolist()
    assert fitted.rules_ is best.rules_
    assert fitted.oracle_ is best.oracle_
    assert fitted.classes_.tolist() == ["setosa", "versicolor", "virginica"]
    assert fitted.n_features_in_ == 4
    assert accuracy_score(LABELS, fitted.predict(X)) > 0.9


def test_score_uses_scoring_parameter(fitted: ExtractorSearchCV) -> None:
    assert fitted.score(X, LABELS) == ice(fitted.best_extractor_, X, LABELS)
    fidelity = search_of(scoring=make_ice_scorer(reference="black_box"), n_trials=2)
    fidelity.fit(X, LABELS)
    assert fidelity.score(X) == fidelity.score(X, LABELS[::-1]) > 0.9


def test_black_box_quality_equals_cross_validation(fitted: ExtractorSearchCV) -> None:
    quality = fitted.black_box_quality_
    answers = cross_val_predict(BLACK_BOX, X, LABELS, cv=FOLDS)
    parts = [(LABELS[test], answers[test]) for _, test in FOLDS.split(X, LABELS)]
    assert quality["accuracy"] == pytest.approx(np.mean([accuracy_score(*p) for p in parts]))
    f1 = np.mean([f1_score(*p, average="weighted") for p in parts])
    assert quality == pytest.approx({"accuracy": quality["accuracy"], "f1_weighted": f1})


@pytest.mark.filterwarnings("ignore:The best candidate by .* is a constant:UserWarning")
@pytest.mark.parametrize("scoring", ["ice", "fire", "q"])
def test_search_of_regression_equals_cross_validation(scoring: str) -> None:
    search = search_of(REGRESSOR, scoring=scoring, n_trials=4).fit(X_NUMBERS, Y_NUMBERS)
    scorer = {"ice": ice, "fire": neg_fire, "q": neg_q}[scoring]
    by_hand = cross_val_score(
        clone(search.best_extractor_), X_NUMBERS, Y_NUMBERS, scoring=scorer, cv=3
    )
    assert search.best_score_ == pytest.approx(by_hand.mean())
    assert not hasattr(search, "classes_")
    assert not hasattr(search, "predict_proba")
    assert search.rules_.task == "regression"
    answers = cross_val_predict(REGRESSOR, X_NUMBERS, Y_NUMBERS, cv=3)
    r2 = [r2_score(Y_NUMBERS[t], answers[t]) for _, t in KFold(3).split(X_NUMBERS)]
    assert search.black_box_quality_ == pytest.approx({"r2": np.mean(r2)})


def test_search_of_regression_compares_a_linear_equation() -> None:
    spaces = {"gridrex": {"n_slices": IntDistribution(2, 3)}}
    search = search_of(REGRESSOR, extractors=["gridrex"], n_trials=1).fit(X_NUMBERS, Y_NUMBERS)
    first = search.leaderboard_.set_index("trial").loc[0]
    assert first["params"] == {"n_slices": 1, "max_terms": None}
    assert first["n_rules"] == 1
    equation = search.make_candidate(first)
    scores = cross_val_score(equation, X_NUMBERS, Y_NUMBERS, scoring=ice, cv=3)
    assert first["score"] == pytest.approx(scores.mean())
    (rule,) = search.fit_candidate(first).rules_.rules
    line = LinearRegression().fit(X_NUMBERS, search.oracle_.query(X_NUMBERS))
    assert dict(rule.output.terms) == pytest.approx(dict(enumerate(line.coef_)), rel=0.05)
    own = search_of(REGRESSOR, extractors=["gridrex"], n_trials=1, spaces=spaces)
    assert len(own.fit(X_NUMBERS, Y_NUMBERS).leaderboard_) == 1
    classes = search_of(extractors=["gridex"], n_trials=1).fit(X, LABELS)
    assert len(classes.leaderboard_) == 1


@pytest.mark.parametrize(
    ("black_box", "scoring", "hint"),
    [(BLACK_BOX, "r2", "numbers.*'accuracy'"), (REGRESSOR, "f1_weighted", "classes.*'r2'")],
)
def test_search_rejects_score_of_another_task(black_box: Any, scoring: str, hint: str) -> None:
    rows = (X, LABELS) if black_box is BLACK_BOX else (X_NUMBERS, Y_NUMBERS)
    with pytest.raises(ValueError, match=f"scoring='{scoring}' measures predictions of {hint}"):
        search_of(black_box, scoring=scoring).fit(*rows)


def test_search_for_r2_equals_scikit_learn() -> None:
    search = search_of(REGRESSOR, extractors=["cart"], scoring="r2", n_trials=2)
    search.fit(X_NUMBERS, Y_NUMBERS)
    scores = cross_val_score(
        clone(search.best_extractor_), X_NUMBERS, Y_NUMBERS, scoring="r2", cv=3
    )
    assert search.best_score_ == pytest.approx(scores.mean())


@pytest.mark.parametrize("scoring", ["neg_fire", neg_fire, make_ice_scorer(rho=5), None])
def test_scoring_decides_the_winner(scoring: Any) -> None:
    calls = []

    def most_rules(model: Any, X: Any, y: Any) -> int:
        calls.append(len(y))
        return len(model.rules_)

    search = search_of(scoring=scoring or most_rules, n_trials=6).fit(X, LABELS)
    board = search.leaderboard_
    if scoring is None:
        assert set(calls) == {25, len(X)}  # held-out rows, and all rows for possible winners
        assert search.best_score_ == board["n_rules"].max()
    else:
        scorer = neg_fire if scoring == "neg_fire" else scoring
        by_hand = cross_val_score(clone(search.best_extractor_), X, LABELS, scoring=scorer, cv=3)
        assert search.best_score_ == pytest.approx(by_hand.mean())


# --- records -------------------------------------------------------------------------------------


def test_leaderboard_has_every_trial_with_the_best_first(fitted: ExtractorSearchCV) -> None:
    board = fitted.leaderboard_
    assert board.columns.tolist() == [
        "extractor",
        "score",
        "score_std",
        "performance",
        "loss",
        "loss_q",
        "n_rules",
        "size",
        "completeness_volume",
        "completeness_instances",
        "correctness",
        "fidelity",
        "seconds",
        "black_box_calls",
        "black_box_rows",
        "score_on_all_rows",
        "score_repeated",
        "tied",
        "params",
        "trial",
        "state",
        "same_as",
        "stopped",
        "error",
    ]
    assert sum(len(budgeted_trials(study)) for study in fitted.studies_.values()) == 8
    assert board["score"].is_monotonic_decreasing
    assert board.index.tolist() == list(range(len(board)))
    assert sorted(zip(board["extractor"], board["trial"], strict=True)) == [
        (name, number)
        for name in ("cart", "gridex")
        for number in range(len(fitted.studies_[name].trials))
    ]
    for row in board.to_dict("records"):
        trial = fitted.studies_[row["extractor"]].trials[row["trial"]]
        assert (row["score"], row["params"]) == (trial.value, trial.params)
        for name in ("score_std", "performance", "loss", "n_rules", "seconds", "black_box_rows"):
            assert row[name] == trial.user_attrs[name]
        assert (row["state"], row["error"]) == ("complete", "")
    best = board.iloc[0]
    assert (best["extractor"], best["params"]) == (fitted.best_name_, fitted.best_params_)
    assert best["score"] == fitted.best_score_


def test_leaderboard_breaks_ties_by_rules_then_extractor() -> None:
    search = search_of(scoring=lambda *_: 1.0, n_trials=8, extractors=("gridex", "cart"))
    with pytest.warns(UserWarning, match="is a constant"):  # as it has the fewest rules
        board = search.fit(X, LABELS).leaderboard_
    assert (board["score"] == 1.0).all()
    assert board["n_rules"][0] == 1
    assert board["n_rules"].is_monotonic_increasing
    for _, tied in board.groupby("n_rules"):
        order = [(("gridex", "cart").index(r.extractor), r.trial) for r in tied.itertuples()]
        assert order == sorted(order)


@pytest.mark.slow
def test_search_divides_trials_and_names_studies() -> None:
    search = search_of(n_trials=5).fit(X, LABELS)
    # After one trial each, the best extractor gets the others.
    numbers = {name: len(budgeted_trials(study)) for name, study in search.studies_.items()}
    assert numbers == {"cart": 4, "gridex": 1}
    even = search_of(n_trials=5, allocation="even").fit(X, LABELS)
    numbers = {name: len(budgeted_trials(study)) for name, study in even.studies_.items()}
    assert numbers == {"cart": 3, "gridex": 2}
    assert [study.study_name for study in search.studies_.values()] == ["cart", "gridex"]
    directions = {study.direction for study in search.studies_.values()}
    assert directions == {optuna.study.StudyDirection.MAXIMIZE}
    assert search.search_seconds_ > 0


def test_starting_points_come_first() -> None:
    # CART by name has baselines instead of promising candidates.
    extractors = (CARTExtractor(None), "gridex")
    options = {"extractors": extractors, "allocation": "even"}
    studies = search_of(n_trials=5, **options).fit(X, LABELS).studies_
    for name, study in studies.items():
        space = search_space(name, X, LABELS)
        promising = starting_points(name, space, LABELS, "classification")
        for trial, expected in zip(study.trials, promising, strict=False):
            assert {key: trial.params[key] for key in expected} == expected
    studies = search_of(n_trials=2).fit(X, LABELS).studies_
    assert {name: len(budgeted_trials(study)) for name, study in studies.items()} == {
        "cart": 1,
        "gridex": 1,
    }
    trials = studies["cart"].trials
    assert ["baseline" in trial.user_attrs for trial in trials] == [True] * (len(trials) - 1) + [
        False
    ]


def test_repeated_candidates_are_marked() -> None:
    spaces = {"cart": {"max_leaf_nodes": CategoricalDistribution([3])}}
    search = search_of(extractors=["cart"], n_trials=3, spaces=spaces).fit(X, LABELS)
    trials = search.studies_["cart"].trials
    assert [trial.user_attrs.get("same_as") for trial in trials] == [None, 0, 0]
    assert len(set(search.leaderboard_["score"])) == 1


BROKEN = {"gridex": {"n_slices": CategoricalDistribution([0])}}


def test_failed_candidates_are_listed_last() -> None:
    spaces = BROKEN | {"cart": {"max_leaf_nodes": CategoricalDistribution([3])}}
    search = search_of(n_trials=4, spaces=spaces, allocation="even")
    board = search.fit(X, LABELS).leaderboard_
    assert board["extractor"].tolist() == ["cart", "cart", "gridex", "gridex"]
    assert board["state"].tolist() == ["complete", "complete", "fail", "fail"]
    failed = board.iloc[2:]
    assert failed["score"].isna().all()
    assert failed["params"].tolist() == [{"n_slices": 0}] * 2
    expected = "ValueError: n_slices must be an integer from 1 to 1000000, got 0."
    assert failed["error"].tolist() == [expected] * 2


def test_leaderboard_lists_undefined_candidates() -> None:
    def sometimes_nan(model: Any, X: Any, y: Any) -> float:
        return math.nan if isinstance(model, CARTExtractor) else 1.0

    search = search_of(scoring=sometimes_nan, n_trials=4, allocation="even").fit(X, LABELS)
    assert search.best_name_ == "gridex"
    assert search.leaderboard_["extractor"].head(2).tolist() == ["gridex", "gridex"]
    failed = search.leaderboard_.iloc[2:]
    assert failed["extractor"].tolist() == ["cart"] * len(search.studies_["cart"].trials)
    assert failed["score"].isna().all()
    assert (failed["n_rules"] >= 1).all()
    assert failed["error"].str.contains("undefined on some fold").all()


def test_search_raises_first_error_if_all_fail() -> None:
    with pytest.raises(ValueError, match="None of the 2 trials succeeded: ValueError: n_slices"):
        search_of(extractors=["gridex"], n_trials=2, spaces=BROKEN).fit(X, LABELS)


def test_callbacks_see_every_trial_and_stop_a_study() -> None:
    trials = []

    def note(study: optuna.Study, trial: optuna.trial.FrozenTrial) -> None:
        trials.append((study.study_name, trial.number))

    def stop_cart(study: optuna.Study, trial: optuna.trial.FrozenTrial) -> None:
        if study.study_name == "cart":
            study.stop()

    search = search_of(n_trials=10, callbacks=[note, stop_cart]).fit(X, LABELS)
    # The first candidate of CART is a baseline, which does not count.
    assert trials == [("cart", 0), *[("gridex", number) for number in range(10)]]
    assert len(search.leaderboard_) == 11
    trials.clear()
    spaces = {"cart": {"max_leaf_nodes": IntDistribution(2, 8)}}
    search = search_of(n_trials=10, callbacks=[note, stop_cart], spaces=spaces).fit(X, LABELS)
    assert trials == [("cart", 0), *[("gridex", number) for number in range(9)]]
    assert len(search.leaderboard_) == 10


@pytest.mark.slow
def test_timeout_starts_no_further_trial() -> None:
    def dawdle(study: optuna.Study, trial: optuna.trial.FrozenTrial) -> None:
        time.sleep(2.1)

    search = search_of(n_trials=20, timeout=2, callbacks=[dawdle]).fit(X, LABELS)
    # One tree is always evaluated, so that the result is not a constant.
    assert search.leaderboard_["trial"].tolist() == [1, 0]
    assert search.leaderboard_["extractor"].tolist() == ["cart", "cart"]
    with pytest.raises(ValueError, match="No trial was started within timeout=0 seconds"):
        search_of(extractors=["gridex"], timeout=0).fit(X, LABELS)


def test_spaces_replace_default_spaces() -> None:
    spaces = {
        "gridex": {
            "n_slices": IntDistribution(3, 4),
            "importance_threshold": FloatDistribution(0.9, 1),
        }
    }
    search = search_of(n_trials=8, spaces=spaces, allocation="even").fit(X, LABELS)
    numbers = {trial.number for trial in budgeted_trials(search.studies_["cart"])}
    assert len(numbers) == 4
    for row in search.leaderboard_.to_dict("records"):
        if row["extractor"] == "gridex":
            assert set(row["params"]) == {"n_slices", "importance_threshold"}
            assert row["params"]["n_slices"] in {3, 4}
            assert row["params"]["importance_threshold"] >= 0.9
        elif row["trial"] in numbers:
            assert set(row["params"]) >= {"max_leaf_nodes", "max_depth"}
        else:
            assert set(row["params"]) == {"max_leaf_nodes", "merge_leaves", "sampling"}


# --- refit ---------------------------------------------------------------------------------------


def test_refit_false_gives_leaderboard_without_winner() -> None:
    search = search_of(refit=False, n_trials=2, pruner=None).fit(X, LABELS)
    assert search.best_params_
    assert search.leaderboard_["score"].notna().all()
    for name in ("best_extractor_", "classes_", "rules_", "predict_proba"):
        assert not hasattr(search, name)
    with pytest.raises(AttributeError, match="refit=False"):
        search.predict(X)
    with pytest.raises(TypeError, match=r"refit=True"):
        ice(search, X, LABELS)


@pytest.mark.slow
def test_second_fit_forgets_first() -> None:
    search = search_of(n_trials=2).fit(pd.DataFrame(X, columns=list("abcd")), LABELS)
    assert search.feature_names_in_.tolist() == list("abcd")
    search.set_params(refit=False).fit(X, LABELS)
    for name in ("best_extractor_", "classes_", "feature_names_in_"):
        assert not hasattr(search, name)
    search.set_params(refit=True, estimator=REGRESSOR).fit(X_NUMBERS, Y_NUMBERS)
    assert not hasattr(search, "classes_")
    assert search.n_features_in_ == 10


@pytest.mark.parametrize("method", ["predict", "predict_proba", "covers", "score"])
def test_methods_raise_not_fitted_error_before_fit(method: str) -> None:
    with pytest.raises(NotFittedError):
        getattr(search_of(), method)(X)
    with pytest.raises(NotFittedError):
        ice(search_of(), X, LABELS)


# --- the black box -------------------------------------------------------------------------------


class Counting(KNeighborsClassifier):
    """Black box that counts its fits and the rows of each query."""

    fits: list[int]
    questions: list[int]

    def fit(self, X: Any, y: Any) -> Counting:
        type(self).fits.append(len(X))
        return super().fit(X, y)

    def predict(self, X: Any) -> np.ndarray:
        type(self).questions.append(len(X))
        return super().predict(X)


def counting() -> Counting:
    kind = type("Fresh", (Counting,), {"fits": [], "questions": []})
    return kind(5)


# Without generated points of GridEx, all candidates query the same rows.
SAME_ROWS = {
    "gridex": {"n_slices": IntDistribution(2, 8)},
    "cart": {"max_leaf_nodes": IntDistribution(2, 8)},
}


def test_black_box_is_fitted_and_queried_once_per_fold() -> None:
    black_box = counting()
    search = search_of(black_box, cv=FOLDS, n_trials=8, spaces=SAME_ROWS).fit(X, LABELS)
    sizes = [len(part) for fold in FOLDS.split(X, LABELS) for part in fold]
    assert black_box.fits == [*sizes[::2], len(X)]  # the last query is that of the winner as well
    # Held-out rows for the quality of the black box, training rows once for all extractors.
    assert sorted(black_box.questions) == sorted([*sizes, len(X)])
    assert search.query_cost_.n_rows == sum(sizes[::2]) + len(X)
    assert 0 < search.query_cost_.seconds < search.search_seconds_
    winner = search.best_extractor_
    assert type(winner.estimator) is type(winner.estimator_) is type(winner.oracle_.estimator)
    assert not hasattr(winner.estimator, "classes_")  # not fitted, so that a clone is fitted again
    # The table states the queries of each candidate, even if others queried the same before.
    assert (search.leaderboard_["black_box_calls"] == 1).all()
    assert search.leaderboard_["black_box_rows"].tolist() == pytest.approx([50.0] * 8)


def test_query_cost_includes_trees_trials_and_finalists() -> None:
    black_box = counting()
    options = {"extractors": ["cart", "trepan"], "n_trials": 8, "n_repeats": 2, "refit": False}
    rows, labels = load_wine(return_X_y=True)
    search = search_of(black_box, **options).fit(rows, labels)
    assert search.leaderboard_["score_repeated"].notna().sum() > 1
    # The quality of the black box is measured on held-out rows.
    assert sum(black_box.questions) == search.query_cost_.n_rows + len(rows)


@pytest.mark.slow
def test_frozen_black_box_is_not_refitted() -> None:
    black_box = counting().fit(X, LABELS)
    black_box.fits.clear()
    search = search_of(FrozenEstimator(black_box), n_trials=2).fit(X, LABELS)
    assert black_box.fits == []
    assert search.best_extractor_.estimator_.estimator is black_box
    assert accuracy_score(LABELS, search.predict(X)) > 0.9


@pytest.mark.slow
@pytest.mark.parametrize("frozen", [False, True])
def test_fitted_black_box_needs_no_y(frozen: bool) -> None:
    black_box = counting().fit(X, LABELS)
    black_box.fits.clear()
    model = FrozenEstimator(black_box) if frozen else black_box
    search = search_of(model, n_trials=4, cv=FOLDS).fit(X)
    assert black_box.fits == []
    assert search.black_box_quality_ == {"accuracy": 1.0, "f1_weighted": 1.0}
    answers = black_box.predict(X)
    with_answers = search_of(FrozenEstimator(black_box), n_trials=4, cv=FOLDS).fit(X, answers)
    differing = ["seconds", "correctness"]  # without y there are no labels to compare with
    pd.testing.assert_frame_equal(
        search.leaderboard_.drop(columns=differing),
        with_answers.leaderboard_.drop(columns=differing),
    )
    assert search.leaderboard_["correctness"].isna().all()
    assert search.rules_ == with_answers.rules_
    assert search.best_extractor_.estimator is model


def test_fit_without_y_keeps_feature_names() -> None:
    names = list("abcd")
    black_box = BLACK_BOX.__class__(max_depth=3).fit(pd.DataFrame(X, columns=names), LABELS)
    search = search_of(black_box, n_trials=2).fit(X)  # a warning would fail this test
    assert search.rules_.n_features == 4


def test_search_accepts_functions_as_black_boxes() -> None:
    def label(rows: Any) -> np.ndarray:
        return np.where(np.asarray(rows)[:, 2] < 2.5, "small", "large")

    black_box = CallableClassifier(label, classes=["large", "small"])
    search = search_of(black_box, n_trials=4).fit(X)
    assert search.predict(X).tolist() == label(X).tolist()
    assert len(search.rules_) == 2
    double = CallableRegressor(lambda rows: 2 * np.asarray(rows)[:, 0])
    search = search_of(double, n_trials=4).fit(X)
    assert r2_score(2 * X[:, 0], search.predict(X)) > 0.5


def test_search_does_not_change_the_black_box() -> None:
    black_box = DecisionTreeClassifier(max_depth=3)
    search = search_of(black_box, n_trials=2).fit(X, LABELS)
    assert not hasattr(black_box, "tree_")
    assert search.estimator is black_box
    search.best_extractor_.set_params(estimator__max_depth=1)
    assert black_box.max_depth == 3


# --- data and labels -----------------------------------------------------------------------------


@pytest.mark.parametrize("container", ["array", "list", "pandas", "polars"])
def test_containers_give_the_same_rules(container: str) -> None:
    names = ["sepal length", "sepal width", "petal length", "petal width"]
    rows: Any = {
        "array": X,
        "list": X.tolist(),
        "pandas": pd.DataFrame(X, columns=names, index=np.arange(len(X))[::-1]),
        "polars": pl.DataFrame(X, schema=names, orient="row"),
    }[container]
    labels: Any = {
        "array": LABELS,
        "list": LABELS.tolist(),
        "pandas": pd.Series(LABELS, index=np.arange(len(X)) + 5),
        "polars": pl.Series(LABELS),
    }[container]
    search = search_of(n_trials=4, cv=FOLDS).fit(rows, labels)
    expected = search_of(n_trials=4, cv=FOLDS).fit(X, LABELS)
    assert search.best_params_ == expected.best_params_
    assert search.best_score_ == expected.best_score_
    assert search.predict(rows).tolist() == expected.predict(X).tolist()
    assert [r.output for r in search.rules_] == [r.output for r in expected.rules_]
    if container in {"pandas", "polars"}:
        assert search.rules_.feature_names == tuple(names)
        assert search.feature_names_in_.tolist() == names


@pytest.mark.parametrize("labels", [Y, Y == 0, Y.astype(float), np.array([3, 7, 9])[Y]], ids=repr)
def test_labels_of_any_type_are_accepted(labels: np.ndarray) -> None:
    search = search_of(n_trials=2).fit(X, labels)
    assert search.classes_.tolist() == np.unique(labels).tolist()
    assert search.predict(X).dtype == labels.dtype
    assert accuracy_score(labels, search.predict(X)) > 0.9


def test_search_can_be_pickled(fitted: ExtractorSearchCV) -> None:
    again = pickle.loads(pickle.dumps(fitted))
    assert again.rules_ == fitted.rules_
    assert again.predict(X).tolist() == fitted.predict(X).tolist()
    pd.testing.assert_frame_equal(again.leaderboard_, fitted.leaderboard_)
    assert again.studies_["cart"].best_value == fitted.studies_["cart"].best_value
    assert ice(again, X, LABELS) == ice(fitted, X, LABELS)


# --- compatibility with scikit-learn -------------------------------------------------------------


def test_scorers_score_a_search_like_its_rules(fitted: ExtractorSearchCV) -> None:
    for scorer in (ice, neg_fire, neg_q, make_ice_scorer(reference="black_box")):
        assert scorer(fitted, X, LABELS) == scorer(fitted.best_extractor_, X, LABELS)
    assert knowledge(fitted, X, LABELS)["n_rules"] == len(fitted.rules_)


@pytest.mark.slow
def test_search_can_be_cross_validated() -> None:
    inner = search_of(n_trials=2, cv=2)
    scores = cross_val_score(inner, X, LABELS, scoring=ice, cv=FOLDS, error_score="raise")
    own = cross_val_score(inner, X, LABELS, cv=FOLDS, error_score="raise")
    assert scores.tolist() == own.tolist()
    train, test = next(iter(FOLDS.split(X, LABELS)))
    by_hand = clone(inner).fit(X[train], LABELS[train])
    assert scores[0] == ice(by_hand.best_extractor_, X[test], LABELS[test])


@pytest.mark.slow
def test_search_works_in_pipeline_and_grid_search() -> None:
    pipeline = make_pipeline(StandardScaler(), search_of(n_trials=2, cv=2))
    grid = {"extractorsearchcv__estimator__max_depth": [1, 4]}
    outer = GridSearchCV(pipeline, grid, scoring=ice, cv=FOLDS, error_score="raise")
    outer.fit(X, LABELS)
    assert outer.best_params_ == {"extractorsearchcv__estimator__max_depth": 4}
    inner, rows = outer.best_estimator_[-1], outer.best_estimator_[:-1].transform(X)
    assert ice(outer, X, LABELS) == ice(inner.best_extractor_, rows, LABELS)


# --- reproducibility -----------------------------------------------------------------------------


def test_search_repeats_its_result_for_the_same_seed(fitted: ExtractorSearchCV) -> None:
    again = search_of(cv=FOLDS, n_trials=8, pruner=None).fit(X, LABELS)
    pd.testing.assert_frame_equal(
        without_times(again.leaderboard_), without_times(fitted.leaderboard_)
    )
    other = search_of(cv=FOLDS, n_trials=8, random_state=1).fit(X, LABELS)
    assert other.leaderboard_["params"].tolist() != fitted.leaderboard_["params"].tolist()
    drawn = [
        search_of(cv=FOLDS, n_trials=4, random_state=np.random.RandomState(5)).fit(X, LABELS)
        for _ in range(2)
    ]
    assert drawn[0].leaderboard_["params"].tolist() == drawn[1].leaderboard_["params"].tolist()


@pytest.mark.slow
def test_n_jobs_does_not_change_the_result(fitted: ExtractorSearchCV) -> None:
    two = search_of(cv=FOLDS, n_trials=8, pruner=None, n_jobs=2).fit(X, LABELS)
    pd.testing.assert_frame_equal(
        without_times(two.leaderboard_), without_times(fitted.leaderboard_)
    )
    assert two.rules_ == fitted.rules_
    assert two.black_box_quality_ == fitted.black_box_quality_


PROGRAM = """
import json
import numpy as np
from sklearn.datasets import load_iris
from sklearn.tree import DecisionTreeClassifier
from skescore.tuning import ExtractorSearchCV
from skescore.tuning.spaces import search_space, starting_points
X, y = (part[::2] for part in load_iris(return_X_y=True))
labels = np.array(["setosa", "versicolor", "virginica"])[y]
search = ExtractorSearchCV(
    DecisionTreeClassifier(max_depth=4, random_state=0), n_trials=8, cv=3, random_state=0
).fit(X, labels)
board = search.leaderboard_.drop(columns="seconds").to_json(orient="records", double_precision=15)
print(json.dumps([json.loads(board), search.rules_.to_json()]))
"""


@pytest.mark.slow
def test_hash_seed_does_not_change_the_result() -> None:
    runs = [
        subprocess.Popen(
            [sys.executable, "-c", PROGRAM],
            env=os.environ | {"PYTHONHASHSEED": seed},
            stdout=subprocess.PIPE,
            text=True,
        )
        for seed in ("1", "2")
    ]
    outputs = [run.communicate()[0] for run in runs]
    assert [run.returncode for run in runs] == [0, 0]
    assert outputs[0] == outputs[1]
    board, _ = json.loads(outputs[0])
    assert len(board) >= 8


@pytest.mark.parametrize("level", [optuna.logging.DEBUG, optuna.logging.WARNING])
def test_search_keeps_global_states(level: int, capfd: pytest.CaptureFixture[str]) -> None:
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(level)
    random.seed(1)
    np.random.seed(1)
    states = random.getstate(), np.random.get_state()[1].tolist()
    try:
        search_of(n_trials=2).fit(X, LABELS)
        assert optuna.logging.get_verbosity() == level
        with pytest.raises(ValueError, match="None of the"):  # also if all trials fail
            search_of(n_trials=2, spaces=BROKEN, extractors=["gridex"]).fit(X, LABELS)
        assert optuna.logging.get_verbosity() == level
    finally:
        optuna.logging.set_verbosity(before)
    assert states == (random.getstate(), np.random.get_state()[1].tolist())
    assert capfd.readouterr() == ("", "")  # no line per trial


# --- invalid arguments ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "kind", "message"),
    [
        ({"extractors": ("cart", "gridx")}, ValueError, "no extractor 'gridx'. Did you mean"),
        ({"extractors": ()}, ValueError, r"at least one name, .* got \(\)"),
        ({"extractors": "cart"}, ValueError, "sequence of at least one name.* got 'cart'"),
        ({"extractors": 3}, ValueError, "sequence of at least one name.* or None .* got 3"),
        ({"extractors": ["cart", "cart"]}, ValueError, r"must differ .*\['cart', 'cart'\]"),
        (
            {"extractors": ("cart", "gridex"), "n_trials": 1},
            ValueError,
            r"at least one per extractor \(2\), got 1",
        ),
        ({"n_trials": 0}, ValueError, r"at least one per extractor \(\d\), got 0"),
        ({"n_trials": 2.5}, ValueError, r"must be an integer .* got 2\.5"),
        ({"spaces": {"gridx": {}}}, ValueError, r"spaces names \['gridx'\], not among"),
        ({"spaces": {"cart": {"leaves": IntDistribution(2, 3)}}}, ValueError, r"\['leaves'\]"),
        ({"spaces": {"cart": {"max_leaf_nodes": 3}}}, TypeError, "must be an Optuna distribution"),
        ({"scoring": "icee"}, ValueError, "no score 'icee'. Did you mean 'ice'"),
        ({"scoring": {"ice": 3}}, TypeError, "scoring"),
        ({"scoring": knowledge}, TypeError, r"one number per candidate, but knowledge\(.*choose"),
        ({"scoring": "knowledge"}, TypeError, "one number per candidate"),
        (
            {"estimator": StandardScaler()},
            TypeError,
            "must be a scikit-learn classifier",
        ),
        ({"estimator": "forest"}, TypeError, "must be .*got 'forest'"),
    ],
)
def test_parameters_reject_invalid_values(
    options: dict[str, Any], kind: type[Exception], message: str
) -> None:
    black_box = counting()
    options = {"estimator": black_box} | options
    search = ExtractorSearchCV(**options)
    with pytest.raises(kind, match=message):
        search.fit(X, LABELS)
    assert black_box.fits == []  # nothing expensive has been done


def test_scoring_that_returns_a_dict_is_rejected() -> None:
    with pytest.raises(ValueError, match=r"None of .* TypeError: scoring must return one number"):
        search_of(scoring=lambda *_: {"a": 1.0}, n_trials=2).fit(X, LABELS)


@pytest.mark.slow
def test_unsuitable_extractor_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = EXTRACTORS["gridex"]._replace(tasks=("regression",))
    monkeypatch.setitem(EXTRACTORS, "gridex", spec)
    with pytest.raises(ValueError, match=r"'gridex' does regression only, but .* classification"):
        search_of().fit(X, LABELS)
    search = search_of(KNeighborsRegressor(), n_trials=2).fit(X_NUMBERS, Y_NUMBERS)
    assert set(search.studies_) == {"cart", "gridex"}


@pytest.mark.parametrize(
    ("rows", "target", "message"),
    [
        (X, None, "requires y"),
        (X, LABELS[:-1], "inconsistent numbers of samples"),
        (X, ["setosa"] * len(X), "only one class, 'setosa'"),
        (np.where(X > 7, np.inf, X), LABELS, "infinity"),
        (X[:1], LABELS[:1], "1 sample"),
        (pd.DataFrame({"a": ["x", 1.5] * 4, "b": range(8)}), [0, 1] * 4, "'a' holds 'x' in row 0"),
    ],
)
def test_fit_rejects_invalid_data(rows: Any, target: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        search_of().fit(rows, target)


@pytest.mark.slow
def test_search_tries_all_suitable_extractors_by_default() -> None:
    def tried(black_box: Any, X: Any, y: Any, n_trials: int = 20) -> tuple[str, ...]:
        search = ExtractorSearchCV(
            black_box, n_trials=n_trials, cv=2, random_state=0, allocation="even"
        )
        search.fit(X, y)
        assert set(search.leaderboard_["extractor"]) == set(search.extractors_)
        assert set(search.studies_) == set(search.extractors_)
        return search.extractors_

    by_task = {
        task: tuple(name for name in DEFAULT_EXTRACTORS if task in EXTRACTORS[name].tasks)
        for task in ("classification", "regression")
    }
    by_task["classification"] += ("optimal-list", "optimal-tree")  # as there are few rows
    assert tried(BLACK_BOX, X, LABELS) == by_task["classification"]
    assert tried(BLACK_BOX, X, LABELS, n_trials=3) == by_task["classification"][:3]
    assert tried(REGRESSOR, X[:, :3], X[:, 3]) == by_task["regression"]
    frame = pd.DataFrame({"length": X[:, 2], "size": np.where(X[:, 3] > 1, "big", "small")})
    able = make_pipeline(OneHotEncoder(handle_unknown="ignore"), DecisionTreeClassifier())
    names = tried(able, frame, LABELS)
    assert names == by_task["classification"]


@pytest.mark.parametrize("name", ["optimal-list", "optimal-tree"])
def test_search_without_a_limit_tries_optimal_extractors(name: str) -> None:
    search = ExtractorSearchCV(
        BLACK_BOX, extractors=[name], scoring="accuracy", n_trials=2, cv=2, random_state=0
    )
    assert len(search.fit(X, LABELS).rules_) > 1


def test_groups_reach_the_splitter() -> None:
    groups = np.arange(len(X)) % 4
    search = ExtractorSearchCV(BLACK_BOX, n_trials=2, cv=GroupKFold(4), random_state=0)
    with pytest.raises(ValueError, match="groups"):
        search.fit(X, LABELS)
    folds = search.fit(X, LABELS, groups=groups).studies_["cart"].trials[0].user_attrs["folds"]
    assert len(folds) == 4


def test_search_has_the_attributes_of_extractors(fitted: ExtractorSearchCV) -> None:
    winner = fitted.best_extractor_
    assert fitted.n_rules_ == winner.n_rules_ == len(fitted.rules_)
    assert fitted.coverage_ == winner.coverage_
    assert fitted.completeness_ == winner.completeness_
    assert fitted.fidelity(X) == winner.fidelity(X)
    # Without y, the score compares with the black box.
    assert fitted.score(X) == fitted.score(X, fitted.oracle_.query(X))


def test_cv_results_equal_leaderboard(fitted: ExtractorSearchCV) -> None:
    results, board = fitted.cv_results_, fitted.leaderboard_
    assert fitted.best_estimator_ is fitted.best_extractor_
    assert results["params"][fitted.best_index_] == fitted.best_params_
    assert results["mean_test_score"][fitted.best_index_] == fitted.best_score_
    lengths = {len(values) for values in results.values()}
    assert lengths == {len(board)}
    assert results["param_extractor"].tolist() == board["extractor"].tolist()
    folds = np.stack([results[f"split{k}_test_score"] for k in range(3)])
    assert folds.mean(axis=0) == pytest.approx(results["mean_test_score"], nan_ok=True)
    best = int(np.nanargmax(results["mean_test_score"]))
    assert results["rank_test_score"][best] == 1
    for name, values in results.items():
        if name.startswith("param_") and name != "param_extractor":
            for params, value in zip(results["params"], values, strict=True):
                assert params.get(name.removeprefix("param_"), np.ma.masked) is value or (
                    params[name.removeprefix("param_")] == value
                )


@pytest.mark.slow
def test_extractors_accept_names_classes_and_instances() -> None:
    extractors = (CARTExtractor(None, criterion="entropy", max_depth=5), GridExExtractor, "iter")
    search = ExtractorSearchCV(
        KNeighborsClassifier(), extractors=extractors, n_trials=9, cv=2, random_state=0
    ).fit(X, LABELS)
    assert search.extractors_ == ("cart", "gridex", "iter")
    board = search.leaderboard_
    for params in board.loc[board["extractor"] == "cart", "params"]:
        assert set(params) <= {"max_leaf_nodes", "min_samples_leaf", "merge_leaves", "sampling"}
    for _, row in board.iterrows():
        made = search.make_candidate(row)
        assert made.estimator is search.estimator
        if row["extractor"] == "cart":
            assert (made.criterion, made.max_depth) == ("entropy", 5)
    named = ExtractorSearchCV(
        KNeighborsClassifier(),
        extractors=(GridExExtractor,),
        n_trials=4,
        cv=2,
        random_state=0,
        callbacks=lambda study, trial: seen.append(trial.number),
    )
    seen: list[int] = []
    table = named.fit(X, LABELS).leaderboard_
    by_name = named.set_params(extractors=("gridex",)).fit(X, LABELS).leaderboard_
    assert table["score"].tolist() == by_name["score"].tolist()
    assert seen == [0, 1, 2, 3] * 2
    with pytest.raises(ValueError, match="must differ"):
        named.set_params(extractors=("gridex", GridExExtractor)).fit(X, LABELS)
    with pytest.raises(TypeError, match="names, extractor classes and extractors, got 3"):
        named.set_params(extractors=("cart", 3)).fit(X, LABELS)


class WithASpace(CARTExtractor):
    """Unregistered extractor with a search space."""

    @staticmethod
    def search_space(n_rows: int, y: Any, task: str) -> dict[str, Any]:
        return {"max_leaf_nodes": IntDistribution(2, 5)}


def test_unregistered_extractor_class_is_accepted() -> None:
    search = ExtractorSearchCV(
        KNeighborsClassifier(), extractors=(WithASpace,), n_trials=3, cv=2, random_state=0
    ).fit(X, LABELS)
    assert search.best_name_ == "WithASpace"
    assert type(search.best_extractor_) is WithASpace
    objective = ExtractorObjective(KNeighborsClassifier(), X, LABELS, extractor=WithASpace(None))
    assert objective.space == {"max_leaf_nodes": IntDistribution(2, 5)}
