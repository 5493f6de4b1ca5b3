"""Scorers called by scikit-learn: searches, cross-validation, routing, pickling."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable, Iterator
from math import exp
from typing import Any

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.datasets import load_diabetes, load_iris
from sklearn.exceptions import UnsetMetadataPassedError
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import accuracy_score, f1_score, mean_absolute_error, r2_score
from sklearn.model_selection import (
    GridSearchCV,
    HalvingGridSearchCV,
    KFold,
    RandomizedSearchCV,
    StratifiedKFold,
    cross_val_score,
    cross_validate,
)
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from skescore.extractors import CARTExtractor, GridExExtractor
from skescore.metrics import volume_completeness
from skescore.scorers import SCORERS, RuleScorer, ice, knowledge, make_ice_scorer, neg_fire, neg_q

X, Y = (part[::2] for part in load_iris(return_X_y=True))
CLASSES = np.array(["setosa", "versicolor", "virginica"])
LABELS = CLASSES[Y]
X_NUMBERS, Y_NUMBERS = (part[:90] for part in load_diabetes(return_X_y=True))
FOLDS = StratifiedKFold(3, shuffle=True, random_state=0)
BLACK_BOX = DecisionTreeClassifier(max_depth=4, random_state=0)
# These weights make the first class dominate.
WEIGHTS = np.where(Y == 0, 5.0, 0.25)


def cart(**parameters: Any) -> CARTExtractor:
    return CARTExtractor(BLACK_BOX, random_state=0, **parameters)


def gridex(**parameters: Any) -> GridExExtractor:
    return GridExExtractor(BLACK_BOX, random_state=0, importance_threshold=0.9, **parameters)


def ice_of_parts(model: Any, X: np.ndarray, y: np.ndarray) -> float:
    """Return ICE by its formula, from the methods of the extractor."""
    covered = model.covers(X)
    if isinstance(y[0], str | np.integer):
        performance = f1_score(y[covered], model.predict(X)[covered], average="weighted")
    else:
        performance = r2_score(y[covered], model.predict(X)[covered])
    completeness = float(volume_completeness(model.rules_))
    quality = 1 / (1 + exp(5 * (1 - performance - 1)))
    return quality / (1 + exp(0.3 * len(model.rules_) - 5)) * completeness


def neg_fire_of_parts(model: Any, X: np.ndarray, y: np.ndarray) -> float:
    covered, n_rules = model.covers(X), len(model.rules_)
    if isinstance(y[0], str | np.integer):
        loss = 1 - np.mean(covered & (model.predict(X) == y))
    else:
        loss = mean_absolute_error(y, model.predict(X))  # the fallback predicts the mean
    return -loss * n_rules * n_rules**0.05


def by_hand(
    model: Any, X: Any, y: Any, score: Callable[..., float], folds: Any = FOLDS
) -> list[float]:
    """Cross-validate in a plain loop."""
    scores = []
    for train, test in folds.split(X, y):
        fitted = clone(model).fit(X[train], y[train])
        scores.append(score(fitted, X[test], y[test]))
    return scores


def weighted_by_hand(scorer: Any, model: Any, *, weighted: bool = True) -> list[float]:
    """Return scores with weighted test rows of models that were fitted without weights."""
    return [
        scorer(
            clone(model).fit(X[train], LABELS[train]),
            X[test],
            LABELS[test],
            sample_weight=WEIGHTS[test] if weighted else None,
        )
        for train, test in FOLDS.split(X, LABELS)
    ]


# --- searches over extractors --------------------------------------------------------------------

GRIDS = {
    "cart": (cart(), {"max_leaf_nodes": [3, 4, 9], "min_samples_leaf": [1, 10]}),
    "gridex slices": (gridex(), {"n_slices": [3, 8], "depth": [1, 2]}),
    "gridex limits": (
        gridex(n_slices=3),
        {"threshold": [0.01, 0.3], "min_examples": [1, 20], "importance_threshold": [0.5, 0.99]},
    ),
}


@pytest.mark.parametrize("name", GRIDS)
@pytest.mark.parametrize(
    ("scorer", "parts"), [(ice, ice_of_parts), (neg_fire, neg_fire_of_parts)], ids=["ice", "fire"]
)
def test_grid_search_scores_classifiers_like_loop(
    name: str, scorer: RuleScorer, parts: Callable[..., float]
) -> None:
    extractor, grid = GRIDS[name]
    search = GridSearchCV(extractor, grid, scoring=scorer, cv=FOLDS, error_score="raise")
    search.fit(X, LABELS)
    results = search.cv_results_
    expected = [
        np.mean(by_hand(clone(extractor).set_params(**params), X, LABELS, parts))
        for params in results["params"]
    ]
    assert results["mean_test_score"] == pytest.approx(expected)
    assert len(set(np.round(expected, 6))) > 1  # otherwise the comparison would be trivial
    assert search.best_score_ == pytest.approx(max(expected))
    # The fitted search has rules itself.
    assert search.score(X, LABELS) == scorer(search.best_estimator_, X, LABELS)


@pytest.mark.parametrize("scorer", [ice, neg_fire], ids=["ice", "fire"])
def test_grid_search_scores_regressors_like_loop(scorer: RuleScorer) -> None:
    parts = ice_of_parts if scorer is ice else neg_fire_of_parts
    folds = KFold(3)
    black_box = LinearRegression()
    for extractor, grid in [
        (CARTExtractor(black_box, random_state=0), {"max_leaf_nodes": [2, 6]}),
        (GridExExtractor(black_box, depth=1), {"importance_threshold": [0.5, 0.99]}),
    ]:
        search = GridSearchCV(extractor, grid, scoring=scorer, cv=folds, error_score="raise")
        search.fit(X_NUMBERS, Y_NUMBERS)
        expected = [
            np.mean(by_hand(clone(extractor).set_params(**p), X_NUMBERS, Y_NUMBERS, parts, folds))
            for p in search.cv_results_["params"]
        ]
        assert search.cv_results_["mean_test_score"] == pytest.approx(expected)


def test_grid_search_accepts_dict_of_scorers() -> None:
    scoring = {"fire": neg_fire, "ice": ice, "accuracy": "accuracy"}
    search = GridSearchCV(
        cart(), {"max_leaf_nodes": [3, 6]}, scoring=scoring, cv=FOLDS, refit="ice"
    )
    results = search.fit(X, LABELS).cv_results_
    for position, leaves in enumerate([3, 6]):
        model = cart(max_leaf_nodes=leaves)
        expected = by_hand(model, X, LABELS, ice_of_parts)
        assert results["mean_test_ice"][position] == pytest.approx(np.mean(expected))
        expected = by_hand(model, X, LABELS, neg_fire_of_parts)
        assert results["mean_test_fire"][position] == pytest.approx(np.mean(expected))


def test_knowledge_scorer_refits_by_one_score() -> None:
    grid = {"max_leaf_nodes": [3, 4, 12], "min_samples_leaf": [1, 15]}
    search = GridSearchCV(cart(), grid, scoring=knowledge, cv=FOLDS, refit="ice").fit(X, LABELS)
    results = search.cv_results_
    for name in knowledge(search.best_estimator_, X, LABELS):
        assert len(results[f"mean_test_{name}"]) == 6
    assert search.best_index_ == np.argmax(results["mean_test_ice"])
    single = GridSearchCV(cart(), grid, scoring=ice, cv=FOLDS).fit(X, LABELS)
    assert results["mean_test_ice"] == pytest.approx(single.cv_results_["mean_test_score"])
    assert search.best_params_ == single.best_params_
    assert (results["mean_test_n_rules"] <= [p["max_leaf_nodes"] for p in results["params"]]).all()


def test_cross_validation_scores_like_loop() -> None:
    scores = cross_validate(
        gridex(n_slices=5, depth=1),
        X,
        LABELS,
        cv=FOLDS,
        return_estimator=True,
        scoring={"ice": ice, "q": neg_q},
        error_score="raise",
    )
    for fold, (_, test) in enumerate(FOLDS.split(X, LABELS)):
        model = scores["estimator"][fold]
        assert scores["test_ice"][fold] == pytest.approx(ice_of_parts(model, X[test], LABELS[test]))
        assert scores["test_q"][fold] == neg_q(model, X[test], LABELS[test])
    flat = cross_val_score(gridex(n_slices=5, depth=1), X, LABELS, cv=FOLDS, scoring=ice)
    assert flat.tolist() == scores["test_ice"].tolist()
    parts = cross_validate(gridex(n_slices=5, depth=1), X, LABELS, cv=FOLDS, scoring=knowledge)
    assert parts["test_ice"].tolist() == scores["test_ice"].tolist()
    assert parts["test_n_rules"].tolist() == [m.n_rules_ for m in scores["estimator"]]


def test_halving_and_randomized_search_use_scorer() -> None:
    grid = {"max_leaf_nodes": [3, 5, 12]}
    halving = HalvingGridSearchCV(
        cart(), grid, scoring=ice, cv=3, factor=3, min_resources=25, random_state=0
    ).fit(X, LABELS)
    last = halving.cv_results_["iter"] == halving.n_iterations_ - 1
    best = halving.cv_results_["mean_test_score"][last].max()
    assert halving.best_score_ == best
    assert ice(halving, X, LABELS) == ice(halving.best_estimator_, X, LABELS)
    randomized = RandomizedSearchCV(cart(), grid, n_iter=3, scoring=ice, cv=FOLDS, random_state=0)
    every = GridSearchCV(cart(), grid, scoring=ice, cv=FOLDS)
    assert randomized.fit(X, LABELS).best_score_ == every.fit(X, LABELS).best_score_


@pytest.mark.parametrize("output", ["default", "pandas"])
def test_grid_search_scores_pipelines_like_loop(output: str) -> None:
    frame = pd.DataFrame(X, columns=["a", "b", "c", "d"])
    labels = pd.Series(LABELS)
    pipeline = Pipeline([("scale", StandardScaler()), ("rules", gridex(depth=1))])
    pipeline.set_output(transform=output)
    grid = {"rules__n_slices": [3, 8], "scale__with_mean": [True, False]}
    search = GridSearchCV(pipeline, grid, scoring=ice, cv=FOLDS, error_score="raise")
    search.fit(frame, labels)

    def score(fitted: Pipeline, X: pd.DataFrame, y: pd.Series) -> float:
        return ice_of_parts(fitted[-1], fitted[:-1].transform(X), y.to_numpy())

    for position, params in enumerate(search.cv_results_["params"]):
        scores = []
        for train, test in FOLDS.split(frame, labels):
            model = clone(pipeline).set_params(**params)
            model.fit(frame.iloc[train], labels.iloc[train])
            scores.append(score(model, frame.iloc[test], labels.iloc[test]))
        assert search.cv_results_["mean_test_score"][position] == pytest.approx(np.mean(scores))
    assert ice(search, frame, labels) == pytest.approx(score(search.best_estimator_, frame, labels))


def test_scorer_accepts_search_in_pipeline() -> None:
    search = GridSearchCV(cart(), {"max_leaf_nodes": [3, 9]}, scoring=ice, cv=FOLDS)
    pipeline = make_pipeline(StandardScaler(), search).fit(X, LABELS)
    inner = pipeline[-1].best_estimator_
    expected = ice_of_parts(inner, pipeline[:-1].transform(X), LABELS)
    assert ice(pipeline, X, LABELS) == pytest.approx(expected)
    scores = cross_val_score(pipeline, X, LABELS, scoring=ice, cv=3, error_score="raise")
    assert ((scores > 0.8) & (scores < 1)).all()


def test_scorer_accepts_nested_searches() -> None:
    inner = GridSearchCV(cart(), {"max_leaf_nodes": [3, 9]}, scoring=ice, cv=FOLDS)
    outer = GridSearchCV(
        inner, {"estimator__min_samples_leaf": [1, 12]}, scoring=ice, cv=FOLDS, error_score="raise"
    ).fit(X, LABELS)
    for position, params in enumerate(outer.cv_results_["params"]):
        model = clone(inner).set_params(**params)
        scores = by_hand(model, X, LABELS, lambda m, X, y: ice_of_parts(m.best_estimator_, X, y))
        assert outer.cv_results_["mean_test_score"][position] == pytest.approx(np.mean(scores))
    deepest = outer.best_estimator_.best_estimator_
    assert ice(outer, X, LABELS) == pytest.approx(ice_of_parts(deepest, X, LABELS))


def test_grid_search_scores_transformed_targets() -> None:
    folds = KFold(3)
    model = TransformedTargetRegressor(
        CARTExtractor(DecisionTreeRegressor(max_depth=3, random_state=0), random_state=0),
        transformer=StandardScaler(),
    )
    grid = {"regressor__max_leaf_nodes": [2, 5]}
    search = GridSearchCV(model, grid, scoring=neg_fire, cv=folds, error_score="raise")
    search.fit(X_NUMBERS, Y_NUMBERS)

    def score(fitted: Any, X: np.ndarray, y: np.ndarray) -> float:
        n_rules = fitted.regressor_.n_rules_
        return -mean_absolute_error(y, fitted.predict(X)) * n_rules**1.05

    for position, params in enumerate(search.cv_results_["params"]):
        scores = by_hand(clone(model).set_params(**params), X_NUMBERS, Y_NUMBERS, score, folds)
        assert search.cv_results_["mean_test_score"][position] == pytest.approx(np.mean(scores))
    assert search.best_score_ < -20  # in units of y, whose standard deviation is about 80


@pytest.mark.slow
def test_grid_search_scores_alike_with_several_workers() -> None:
    scoring = {"ice": ice, "strict": make_ice_scorer(rho=3, size="literals")}
    grid = {"max_leaf_nodes": [3, 9]}
    one, two = (
        GridSearchCV(cart(), grid, scoring=scoring, cv=FOLDS, refit="ice", n_jobs=n_jobs)
        .fit(X, LABELS)
        .cv_results_
        for n_jobs in (1, 2)
    )
    for name in scoring:
        assert one[f"mean_test_{name}"].tolist() == two[f"mean_test_{name}"].tolist()


def test_cross_validation_rejects_models_without_rules() -> None:
    with pytest.raises(TypeError, match="LogisticRegression has no rule set"):
        cross_val_score(LogisticRegression(), X, LABELS, scoring=ice, error_score="raise")


# --- weights without metadata routing ------------------------------------------------------------


@pytest.mark.parametrize("scoring", [{"ice": ice, "fire": neg_fire}, knowledge, ice], ids=repr)
def test_grid_search_passes_weights_to_fit_and_scores(scoring: Any) -> None:
    tree = DecisionTreeClassifier(random_state=0)
    grid = {"max_leaf_nodes": [2, 4]}
    refit = scoring is ice or "ice"
    search = GridSearchCV(tree, grid, scoring=scoring, cv=FOLDS, refit=refit, error_score="raise")
    results = search.fit(X, LABELS, sample_weight=WEIGHTS).cv_results_
    key = "mean_test_score" if scoring is ice else "mean_test_ice"
    for position, params in enumerate(results["params"]):
        weighted, unweighted = [], []
        for train, test in FOLDS.split(X, LABELS):
            model = clone(tree).set_params(**params)
            model.fit(X[train], LABELS[train], sample_weight=WEIGHTS[train])
            weighted.append(ice(model, X[test], LABELS[test], sample_weight=WEIGHTS[test]))
            unweighted.append(ice(model, X[test], LABELS[test]))
        assert results[key][position] == pytest.approx(np.mean(weighted))
        assert results[key][position] != pytest.approx(np.mean(unweighted), abs=1e-3)


def test_grid_search_passes_weights_to_fit_without_routing() -> None:
    search = GridSearchCV(cart(), {"max_leaf_nodes": [3]}, scoring=ice, error_score="raise")
    search.fit(X, LABELS, sample_weight=WEIGHTS)
    weighted_model = cart().set_params(max_leaf_nodes=3).fit(X, LABELS, sample_weight=WEIGHTS)
    assert search.best_estimator_.rules_ == weighted_model.rules_


# --- weights with metadata routing ---------------------------------------------------------------


@pytest.fixture
def routing() -> Iterator[None]:
    with sklearn.config_context(enable_metadata_routing=True):
        yield


def models_without_weights() -> list[Any]:
    """Return models whose fit requests no weights, so that only scores can change."""
    black_box = DecisionTreeClassifier(max_depth=4, random_state=0)
    with sklearn.config_context(enable_metadata_routing=True):
        tree = DecisionTreeClassifier(max_leaf_nodes=3, random_state=0)
        black_box.set_fit_request(sample_weight=False)
        tree.set_fit_request(sample_weight=False)
        scaler = StandardScaler().set_fit_request(sample_weight=False)
    extractor = CARTExtractor(black_box, max_leaf_nodes=3, min_samples_leaf=12, random_state=0)
    return [tree, extractor, make_pipeline(scaler, extractor)]


@pytest.mark.usefixtures("routing")
@pytest.mark.parametrize("model", models_without_weights(), ids=lambda m: type(m).__name__)
def test_routing_passes_requested_weights(model: Any) -> None:
    scorer = ice.set_score_request(sample_weight=True)
    metadata = {"sample_weight": WEIGHTS}
    scores = cross_val_score(
        model, X, LABELS, scoring=scorer, cv=FOLDS, params=metadata, error_score="raise"
    )
    assert scores == pytest.approx(weighted_by_hand(ice, model))
    unweighted = weighted_by_hand(ice, model, weighted=False)
    assert np.abs(scores - unweighted).min() > 1e-4
    # scikit-learn rejects metadata that no object requests.
    unwanted = ice.set_score_request(sample_weight=False)
    with pytest.raises(TypeError, match="not routed to any object"):
        cross_val_score(model, X, LABELS, scoring=unwanted, cv=FOLDS, params=metadata)


@pytest.mark.usefixtures("routing")
def test_routing_passes_weights_under_another_name() -> None:
    model = models_without_weights()[1]
    scorer = ice.set_score_request(sample_weight="importance")
    metadata = {"importance": WEIGHTS}
    scores = cross_val_score(model, X, LABELS, scoring=scorer, cv=FOLDS, params=metadata)
    assert scores == pytest.approx(weighted_by_hand(ice, model))


@pytest.mark.usefixtures("routing")
def test_routing_rejects_weights_without_request() -> None:
    model = models_without_weights()[1]
    metadata = {"sample_weight": WEIGHTS}
    with pytest.raises(UnsetMetadataPassedError, match="sample_weight"):
        cross_validate(model, X, LABELS, scoring=ice, params=metadata)
    with pytest.raises(UnsetMetadataPassedError, match="sample_weight"):
        cross_validate(model, X, LABELS, scoring={"one": ice, "two": neg_q}, params=metadata)
    grid_search = GridSearchCV(model, {"max_leaf_nodes": [3]}, scoring=ice)
    with pytest.raises(UnsetMetadataPassedError, match="sample_weight"):
        grid_search.fit(X, LABELS, sample_weight=WEIGHTS)


@pytest.mark.usefixtures("routing")
def test_routing_passes_weights_to_requesting_scorers_only() -> None:
    model = models_without_weights()[1]
    scoring = {
        "with": ice.set_score_request(sample_weight=True),
        "without": ice.set_score_request(sample_weight=False),
    }
    search = GridSearchCV(
        model, {"max_leaf_nodes": [3]}, scoring=scoring, cv=FOLDS, refit="with", error_score="raise"
    )
    results = search.fit(X, LABELS, sample_weight=WEIGHTS).cv_results_
    weighted, unweighted = (weighted_by_hand(ice, model, weighted=w) for w in (True, False))
    assert results["mean_test_with"] == pytest.approx([np.mean(weighted)])
    assert results["mean_test_without"] == pytest.approx([np.mean(unweighted)])


@pytest.mark.usefixtures("routing")
def test_routing_passes_weights_to_knowledge_scorer() -> None:
    model = models_without_weights()[1]
    scorer = knowledge.set_score_request(sample_weight=True)
    search = GridSearchCV(model, {"max_leaf_nodes": [3]}, scoring=scorer, cv=FOLDS, refit="ice")
    results = search.fit(X, LABELS, sample_weight=WEIGHTS).cv_results_
    assert results["mean_test_ice"] == pytest.approx([np.mean(weighted_by_hand(ice, model))])


@pytest.mark.usefixtures("routing")
def test_routing_passes_weights_to_black_box_and_score() -> None:
    black_box = DecisionTreeClassifier(max_depth=2, random_state=0)
    black_box.set_fit_request(sample_weight=True)
    model = CARTExtractor(black_box, max_leaf_nodes=3, random_state=0)
    scorer = neg_fire.set_score_request(sample_weight=True)
    scores = cross_val_score(
        model, X, LABELS, scoring=scorer, cv=FOLDS, params={"sample_weight": WEIGHTS}
    )
    expected = []
    for train, test in FOLDS.split(X, LABELS):
        fitted = clone(model).fit(X[train], LABELS[train], sample_weight=WEIGHTS[train])
        wrong = 1 - accuracy_score(
            LABELS[test], fitted.predict(X[test]), sample_weight=WEIGHTS[test]
        )
        expected.append(-wrong * fitted.n_rules_**1.05)
    assert scores == pytest.approx(expected)


@pytest.mark.usefixtures("routing")
def test_routing_without_metadata_does_not_change_scores() -> None:
    model = cart(max_leaf_nodes=3)
    for scorer in (ice, ice.set_score_request(sample_weight=True)):
        scores = cross_val_score(model, X, LABELS, scoring=scorer, cv=FOLDS)
        assert scores == pytest.approx(by_hand(model, X, LABELS, ice_of_parts))


def test_set_score_request_does_not_change_scorer() -> None:
    for scorer in SCORERS.values():
        requesting = scorer.set_score_request(sample_weight=True)
        assert requesting is not scorer
        assert requesting.get_metadata_routing().score.requests == {"sample_weight": True}
        assert scorer.get_metadata_routing().score.requests == {"sample_weight": None}
        reset = requesting.set_score_request(sample_weight=None)
        assert reset.get_metadata_routing().score.requests == {"sample_weight": None}


def test_set_score_request_rejects_invalid_requests() -> None:
    with pytest.raises(TypeError, match=r"ice accepts only sample_weight, got \['groups'\]"):
        ice.set_score_request(groups=True)
    with pytest.raises(ValueError, match="sample_weight"):
        ice.set_score_request(sample_weight=3)


# --- copies --------------------------------------------------------------------------------------

COPIES = {
    "deepcopy": copy.deepcopy,
    "copy": copy.copy,
    "pickle": lambda scorer: pickle.loads(pickle.dumps(scorer)),
    "clone": lambda scorer: clone(GridSearchCV(cart(), {}, scoring=scorer)).scoring,
}


@pytest.mark.parametrize("kind", COPIES)
@pytest.mark.parametrize("name", SCORERS)
def test_scorer_copies_score_equally(kind: str, name: str) -> None:
    model = cart(max_leaf_nodes=4).fit(X, LABELS)
    scorer = SCORERS[name].set_score_request(sample_weight="w")
    second_result = COPIES[kind](scorer)
    assert second_result is not scorer
    assert repr(second_result) == repr(scorer)
    assert second_result(model, X, LABELS, WEIGHTS) == scorer(model, X, LABELS, WEIGHTS)
    assert second_result.get_metadata_routing().score.requests == {"sample_weight": "w"}
    assert second_result.gives_dict is (name == "knowledge")


def test_scorer_repr_shows_settings() -> None:
    assert repr(neg_fire) == (
        "neg_fire(psi=1.0, loss='auto', uncovered='penalize', size='rules', undefined=nan, "
        "reference='data')"
    )
    assert "rho=3" in repr(make_ice_scorer(rho=3, reference="black_box"))
    assert "reference='black_box'" in repr(make_ice_scorer(rho=3, reference="black_box"))
    assert "neg_q(loss='auto'" in repr(GridSearchCV(cart(), {}, scoring=neg_q))


def test_scorer_predicts_once_per_call(monkeypatch: pytest.MonkeyPatch) -> None:
    model = CARTExtractor(KNeighborsClassifier(), max_leaf_nodes=3).fit(X, LABELS)
    calls = []
    predict = CARTExtractor.predict
    monkeypatch.setattr(
        CARTExtractor, "predict", lambda self, X: calls.append(len(X)) or predict(self, X)
    )
    knowledge(model, X, LABELS)
    assert calls == [len(X)]
