"""Objective in studies of a user."""

from __future__ import annotations

import math
import pickle
import random
import weakref
from collections.abc import Iterator
from math import exp
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import pytest
from optuna.distributions import CategoricalDistribution, IntDistribution
from optuna.trial import FixedTrial, TrialState
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_iris
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import KFold, StratifiedKFold, cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from skescore.black_boxes import CallableClassifier
from skescore.extractors import CARTExtractor, GridExExtractor, ITERExtractor, generate_rows
from skescore.metrics import fire_score, ice_score, q_score
from skescore.scorers import (
    ice,
    knowledge,
    make_fire_scorer,
    make_ice_scorer,
    make_q_scorer,
    neg_fire,
    neg_q,
)
from skescore.tuning import ExtractorObjective

# Fewer leaves than classes are a bad candidate, not an invalid one.
pytestmark = pytest.mark.filterwarnings("ignore:max_leaf_nodes=:UserWarning")

X, Y = (part[::2] for part in load_iris(return_X_y=True))
LABELS = np.array(["setosa", "versicolor", "virginica"])[Y]
FOLDS = StratifiedKFold(3, shuffle=True, random_state=0)
BLACK_BOX = DecisionTreeClassifier(max_depth=4, random_state=0)
PARAMS = {
    "max_leaf_nodes": 4,
    "max_depth": 3,
    "min_samples_leaf": 2,
    "criterion": "gini",
    "merge_leaves": True,
    "sampling": None,
}


@pytest.fixture(autouse=True)
def _quiet_studies() -> Iterator[None]:
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    yield
    optuna.logging.set_verbosity(before)


def objective(**options: Any) -> ExtractorObjective:
    settings = {"cv": FOLDS, "random_state": 0} | options
    return ExtractorObjective(BLACK_BOX, X, LABELS, **settings)


def study_of(study_objective: ExtractorObjective, n_trials: int, **options: Any) -> optuna.Study:
    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.RandomSampler(seed=0))
    study.optimize(study_objective, n_trials=n_trials, **options)
    return study


# --- the value -----------------------------------------------------------------------------------


@pytest.mark.parametrize("scorer", [ice, neg_fire, make_ice_scorer(reference="black_box")])
def test_objective_equals_cross_val_score(scorer: Any) -> None:
    value = objective(scoring=scorer)(FixedTrial(PARAMS))
    by_sklearn = cross_val_score(
        CARTExtractor(BLACK_BOX, random_state=0, **PARAMS), X, LABELS, scoring=scorer, cv=FOLDS
    )
    assert value == pytest.approx(by_sklearn.mean(), rel=1e-12)


def test_objective_equals_cross_val_score_in_regression() -> None:
    rows, target = (part[:80] for part in load_diabetes(return_X_y=True))
    black_box = DecisionTreeRegressor(max_depth=3, random_state=0)
    params = {
        "n_slices": 3,
        "importance_threshold": 0.5,
        "depth": 1,
        "threshold": 30.0,
        "min_examples": 25,
        "max_rules": None,
        "n_features_to_select": None,
        "sampling": None,
        "n_queries": 2000,
        "prune": "redundant",
    }
    study_objective = ExtractorObjective(
        black_box, rows, target, extractor="gridex", scoring="fire", cv=4, random_state=3
    )
    expected = cross_val_score(
        GridExExtractor(black_box, random_state=3, **params), rows, target, scoring=neg_fire, cv=4
    )
    assert study_objective(FixedTrial(params)) == pytest.approx(expected.mean(), rel=1e-12)


def test_objective_accepts_any_callable() -> None:
    def negated_size(model: Any, X: Any, y: Any) -> np.float64:
        return -np.float64(len(model.rules_))

    extractor = CARTExtractor(BLACK_BOX, random_state=0, **PARAMS)
    by_sklearn = cross_val_score(extractor, X, LABELS, scoring=negated_size, cv=FOLDS)
    assert objective(scoring=negated_size)(FixedTrial(PARAMS)) == by_sklearn.mean() < -3


def test_objective_stores_measured_values() -> None:
    trial = FixedTrial(PARAMS)
    value = objective()(trial)
    attributes = trial.user_attrs
    assert attributes["extractor"] == "cart"
    assert len(attributes["folds"]) == 3
    for (train, test), fold in zip(FOLDS.split(X, LABELS), attributes["folds"], strict=True):
        model = CARTExtractor(BLACK_BOX, random_state=0, **PARAMS).fit(X[train], LABELS[train])
        parts = knowledge(model, X[test], LABELS[test])
        assert fold["score"] == pytest.approx(parts["ice"])
        for name in (
            "performance",
            "loss",
            "n_rules",
            "completeness_volume",
            "completeness_instances",
        ):
            assert fold[name] == pytest.approx(parts[name])
        assert (fold["black_box_calls"], fold["black_box_rows"]) == (1, len(train))
        assert fold["seconds"] > 0
    scores = [fold["score"] for fold in attributes["folds"]]
    assert value == pytest.approx(np.mean(scores))
    assert attributes["score_std"] == pytest.approx(np.std(scores))
    for name in ("performance", "n_rules", "seconds", "black_box_rows"):
        assert attributes[name] == pytest.approx(
            np.mean([fold[name] for fold in attributes["folds"]])
        )


def test_stored_values_determine_other_scores() -> None:
    trial = FixedTrial(PARAMS)
    objective()(trial)
    folds = trial.user_attrs["folds"]
    afterwards = [
        ice_score(f["performance"], f["n_rules"], f["completeness_volume"], phi=2, rho=3)
        for f in folds
    ]
    scorer = make_ice_scorer(phi=2, rho=3)
    assert np.mean(afterwards) == pytest.approx(objective(scoring=scorer)(FixedTrial(PARAMS)))
    afterwards = [-fire_score(f["loss"], f["n_rules"], psi=2) for f in folds]
    scorer = make_fire_scorer(psi=2)
    assert np.mean(afterwards) == pytest.approx(objective(scoring=scorer)(FixedTrial(PARAMS)))


def test_objective_stores_fidelity_if_it_is_scored() -> None:
    trial = FixedTrial(PARAMS)
    value = objective(scoring=make_ice_scorer(reference="black_box"))(trial)
    folds = trial.user_attrs["folds"]
    formula = [
        1 / (1 + exp(5 * (1 - f["performance"]) - 5)) / (1 + exp(0.3 * f["n_rules"] - 5))
        for f in folds
    ]
    assert value == pytest.approx(np.mean(formula))  # the tree is complete


def test_search_counts_predictions_of_the_fallback() -> None:
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(90, 3))
    y = np.where((rows[:, 0] ** 2 + rows[:, 1] ** 2) < 1.2, "in", "out")
    rows[rng.random(90) < 0.3, 0] = np.nan
    black_box = DecisionTreeClassifier(max_depth=5, random_state=0)
    folds = KFold(3, shuffle=True, random_state=0)
    candidate = ITERExtractor(black_box, max_iterations=20, random_state=0)
    options = {"extractor": candidate, "scoring": "fidelity", "cv": folds, "random_state": 0}
    study = study_of(ExtractorObjective(black_box, rows, y, **options), 6)
    trials = study.get_trials(states=[TrialState.COMPLETE])
    assert min(trial.user_attrs["completeness_instances"] for trial in trials) < 1
    for trial in trials:
        measured = trial.user_attrs["folds"]
        for fold, (train, test) in zip(measured, folds.split(rows), strict=True):
            extractor = clone(candidate).set_params(**trial.params).fit(rows[train], y[train])
            assert fold["correctness"] == extractor.score(rows[test], y[test])
            assert fold["fidelity"] == fold["score"] == extractor.fidelity(rows[test])


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


def test_objective_fits_and_queries_once_per_fold() -> None:
    black_box = counting()
    study_objective = ExtractorObjective(
        black_box,
        X,
        LABELS,
        cv=FOLDS,
        scoring=make_ice_scorer(reference="black_box"),
        space={"max_leaf_nodes": IntDistribution(2, 9)},  # without generated query rows
    )
    study_of(study_objective, 6)
    sizes = [len(part) for fold in FOLDS.split(X, LABELS) for part in fold]
    assert black_box.fits == sizes[::2]
    assert sorted(black_box.questions) == sorted(sizes)  # training and held-out rows, each once


def unseen_rows_of(rows: np.ndarray, number: int) -> np.ndarray:
    """Generate the rows on which a search measures fidelity to a given model."""
    samplings = ("permute", "permute-near")
    return np.concatenate([generate_rows(rows, 1000, s, random_state=number) for s in samplings])


@pytest.mark.parametrize("given_y", [True, False])
def test_objective_never_fits_a_fitted_black_box(given_y: bool) -> None:
    black_box = counting().fit(X, LABELS)
    black_box.fits.clear()
    model = FrozenEstimator(black_box) if given_y else black_box
    study_objective = ExtractorObjective(
        model, X, LABELS if given_y else None, cv=FOLDS, random_state=0
    )
    value = study_objective(FixedTrial(PARAMS))
    assert black_box.fits == []
    expected = []
    splits = FOLDS.split(X, LABELS if given_y else black_box.predict(X))
    for number, (train, test) in enumerate(splits):
        extractor = CARTExtractor(FrozenEstimator(black_box), random_state=0, **PARAMS)
        rules = extractor.fit(X[train])
        # Predictions are compared on generated rows that the model was not fitted on.
        unseen = unseen_rows_of(X[test], number)
        expected.append(ice(rules, unseen, black_box.predict(unseen)))
    assert value == pytest.approx(np.mean(expected))


def test_objective_accepts_a_function_as_black_box() -> None:
    black_box = CallableClassifier(lambda rows: np.where(rows[:, 2] < 2.5, "small", "large"))
    folds = KFold(3, shuffle=True, random_state=0)
    study_objective = ExtractorObjective(black_box, X, None, cv=folds, random_state=0)
    params = PARAMS | {"max_leaf_nodes": 2, "min_samples_leaf": 1}
    value = study_objective(FixedTrial(params))
    expected = []
    for number, (train, test) in enumerate(folds.split(X)):
        rules = CARTExtractor(black_box, random_state=0, **params).fit(X[train])
        unseen = unseen_rows_of(X[test], number)
        expected.append(ice(rules, unseen, black_box.predict(unseen)))
    assert value == pytest.approx(np.mean(expected))
    best = 1 / (1 + exp(-5)) / (1 + exp(0.6 - 5))  # perfect, two rules
    assert best - 0.02 < value <= best


# --- the extractor and its space -----------------------------------------------------------------


def test_objective_keeps_parameters_outside_of_the_space() -> None:
    sizes = []

    def spy(model: CARTExtractor, X: Any, y: Any) -> float:
        sizes.append((model.simplify, model.max_leaf_nodes, model.random_state))
        return 0.0

    prototype = CARTExtractor(BLACK_BOX, simplify=False, max_leaf_nodes=9, random_state=7)
    study_objective = ExtractorObjective(
        BLACK_BOX,
        X,
        LABELS,
        extractor=prototype,
        scoring=spy,
        cv=FOLDS,
        space={"max_depth": IntDistribution(1, 3)},
    )
    study_objective(FixedTrial({"max_depth": 2}))
    assert sizes == [(False, 9, 7)] * 3
    # A seed of the objective overrides that of the prototype, which stays unchanged.
    reseeded = ExtractorObjective(
        BLACK_BOX, X, LABELS, extractor=prototype, scoring=spy, cv=FOLDS, random_state=1
    )
    reseeded(FixedTrial(PARAMS))
    assert sizes[3:] == [(False, 9, 1)] * 3  # parameters that are set on it are not searched
    assert prototype.random_state == 7


def test_objective_uses_space_of_registered_instance() -> None:
    by_name = objective(extractor="gridex")
    by_instance = objective(extractor=GridExExtractor(BLACK_BOX))
    assert by_instance.name == by_name.name == "gridex"
    assert by_instance.space == by_name.space


@pytest.mark.parametrize(
    ("options", "kind", "message"),
    [
        ({"extractor": "grid-ex"}, ValueError, "Did you mean 'gridex'"),
        ({"scoring": "icee"}, ValueError, "Did you mean 'ice'"),
        ({"scoring": "knowledge"}, TypeError, "one number per candidate.*choose one"),
        ({"scoring": {"ice": ice, "q": neg_q}}, ValueError, "one score, .*others as measures"),
        ({"scoring": {"ice": 3}}, TypeError, "must be a name or a scorer"),
        (
            {"space": {"max_leafs": IntDistribution(2, 3)}},
            ValueError,
            r"\['max_leafs'\], which CARTExtractor does not have; its parameters .*max_leaf_nodes",
        ),
        (
            {"space": {"estimator__max_depth": IntDistribution(2, 3)}},
            ValueError,
            "The black box is not searched",
        ),
        (
            {"space": {"max_leaf_nodes": [2, 3]}},
            TypeError,
            r"space\['max_leaf_nodes'\] must be an Optuna distribution, got \[2, 3\]",
        ),
    ],
)
def test_objective_rejects_invalid_options(
    options: dict[str, Any], kind: type[Exception], message: str
) -> None:
    with pytest.raises(kind, match=message):
        objective(**options)


def test_objective_needs_a_black_box_that_predicts() -> None:
    with pytest.raises(TypeError, match=r"detector, got StandardScaler.*CallableClassifier"):
        ExtractorObjective(StandardScaler(), X, LABELS)
    with pytest.raises(NotFittedError):
        ExtractorObjective(KNeighborsClassifier(), X, None)


def test_objective_rejects_scorers_of_a_dict() -> None:
    study_objective = objective(scoring=lambda model, X, y: {"one": 1.0})
    with pytest.raises(TypeError, match="one number per candidate, but <function"):
        study_objective(FixedTrial(PARAMS))


# --- trials that fail, and trials that repeat ----------------------------------------------------


def nan_for_two_rules(model: Any, X: Any, y: Any) -> float:
    return math.nan if len(model.rules_) == 2 else 1.0


def test_objective_prunes_trials_with_undefined_score() -> None:
    space = {"max_leaf_nodes": CategoricalDistribution([2, 3])}
    study_objective = objective(scoring=nan_for_two_rules, space=space)
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0), direction="maximize")
    for leaves in (2, 3, 2, 3):
        study.enqueue_trial({"max_leaf_nodes": leaves})
    study.optimize(study_objective, n_trials=4, catch=(ValueError,))
    states = [trial.state for trial in study.trials]
    assert states == [TrialState.PRUNED, TrialState.COMPLETE] * 2
    assert study.best_params == {"max_leaf_nodes": 3}
    failed = study.trials[0]
    assert failed.user_attrs["n_rules"] == 2.0  # its measurements are stored
    assert [math.isnan(fold["score"]) for fold in failed.user_attrs["folds"]] == [True] * 3
    with pytest.raises(optuna.TrialPruned, match="undefined on some fold"):
        study_objective(FixedTrial({"max_leaf_nodes": 2}))


def test_objective_states_why_score_is_undefined() -> None:
    # Each held-out part is one row, on which R2 is undefined.
    rows, target = (part[:4] for part in load_diabetes(return_X_y=True))
    study_objective = ExtractorObjective(
        FrozenEstimator(DecisionTreeRegressor().fit(rows, target)),
        rows,
        target,
        scoring=make_ice_scorer(),  # compared with the data
        cv=KFold(4),
        space={"max_leaf_nodes": IntDistribution(2, 2)},
    )
    with pytest.raises(optuna.TrialPruned, match="undefined on some fold: ICE is undefined on"):
        study_objective(FixedTrial({"max_leaf_nodes": 2}))


def test_objective_extracts_repeated_trials_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fits = []
    fit = CARTExtractor.fit
    monkeypatch.setattr(
        CARTExtractor, "fit", lambda self, X, y=None: fits.append(len(X)) or fit(self, X, y)
    )
    study_objective = objective(space={"max_leaf_nodes": CategoricalDistribution([3])})
    first, second = study_of(study_objective, 3), study_of(study_objective, 2)
    assert len(fits) == 2 * 3  # once per study and fold
    trials = first.trials
    assert "same_as" not in trials[0].user_attrs
    for trial in trials[1:]:
        assert trial.user_attrs["same_as"] == 0
        assert trial.value == trials[0].value
        assert trial.user_attrs["folds"] == trials[0].user_attrs["folds"]
    assert [t.user_attrs.get("same_as") for t in second.trials] == [None, 0]


def test_objective_raises_errors_of_extraction() -> None:
    study_objective = objective(space={"max_leaf_nodes": IntDistribution(0, 0)})
    with pytest.raises(ValueError, match="max_leaf_nodes must be an integer of 1 or more"):
        study_of(study_objective, 1)
    study = study_of(study_objective, 2, catch=(ValueError,))
    assert [trial.state for trial in study.trials] == [TrialState.FAIL] * 2


# --- storages ------------------------------------------------------------------------------------


def storage_at(kind: str, folder: Path) -> Any:
    if kind == "sqlite":
        storage = optuna.storages.RDBStorage(f"sqlite:///{folder / 'study.db'}")
        weakref.finalize(storage, storage.engine.dispose)  # Python 3.13 requires it
        return storage
    journal = optuna.storages.journal
    return optuna.storages.JournalStorage(journal.JournalFileBackend(str(folder / "study.log")))


@pytest.mark.parametrize("kind", ["sqlite", "journal"])
def test_stored_study_can_be_continued(kind: str, tmp_path: Path) -> None:
    study_objective = objective(extractor="gridex")
    study = optuna.create_study(
        storage=storage_at(kind, tmp_path),
        study_name="rules",
        direction="maximize",
        sampler=optuna.samplers.RandomSampler(seed=1),
    )
    study.optimize(study_objective, n_trials=3)
    second_result = optuna.load_study(storage=storage_at(kind, tmp_path), study_name="rules")
    assert second_result is not study
    for written, read in zip(study.trials, second_result.trials, strict=True):
        assert read.user_attrs == written.user_attrs
        assert read.user_attrs["extractor"] == "gridex"
        folds = read.user_attrs["folds"]
        assert read.value == pytest.approx(np.mean([fold["score"] for fold in folds]))
        rescored = [
            ice_score(f["performance"], f["n_rules"], f["completeness_volume"]) for f in folds
        ]
        assert read.value == pytest.approx(np.mean(rescored))
    # Another process would make its own objective.
    second_result.optimize(objective(extractor="gridex"), n_trials=1)
    assert (
        len(optuna.load_study(storage=storage_at(kind, tmp_path), study_name="rules").trials) == 4
    )
    best = second_result.best_trial
    by_hand = cross_val_score(
        GridExExtractor(BLACK_BOX, random_state=0, **best.params), X, LABELS, scoring=ice, cv=FOLDS
    )
    assert best.value == pytest.approx(by_hand.mean())


@pytest.mark.parametrize("kind", ["sqlite", "journal"])
def test_storages_keep_undefined_scores(kind: str, tmp_path: Path) -> None:
    study_objective = objective(
        scoring=nan_for_two_rules, space={"max_leaf_nodes": IntDistribution(2, 2)}
    )
    study = optuna.create_study(
        storage=storage_at(kind, tmp_path), study_name="rules", direction="maximize"
    )
    study.optimize(study_objective, n_trials=1)
    (trial,) = optuna.load_study(storage=storage_at(kind, tmp_path), study_name="rules").trials
    assert trial.state == TrialState.PRUNED
    assert all(math.isnan(fold["score"]) for fold in trial.user_attrs["folds"])


# --- side effects --------------------------------------------------------------------------------


def test_objective_can_be_pickled() -> None:
    study_objective = objective()
    value = study_objective(FixedTrial(PARAMS))
    assert pickle.loads(pickle.dumps(study_objective))(FixedTrial(PARAMS)) == value


def test_objective_keeps_models_and_random_state() -> None:
    random.seed(0)
    np.random.seed(0)
    states = random.getstate(), np.random.get_state()[1].tolist()
    black_box = clone(BLACK_BOX)
    extractor = CARTExtractor(black_box)
    before = repr(extractor)
    study_of(ExtractorObjective(black_box, X, LABELS, extractor=extractor, random_state=5), 2)
    assert repr(extractor) == before
    assert not hasattr(black_box, "tree_")
    assert not hasattr(extractor, "rules_")
    assert states == (random.getstate(), np.random.get_state()[1].tolist())


def test_objective_rejects_a_study_that_minimizes() -> None:
    # The default direction of Optuna would find the worst rules.
    with pytest.raises(ValueError, match="study must maximize the score"):
        optuna.create_study().optimize(objective(), n_trials=1)


@pytest.mark.parametrize(
    "scorer",
    [
        make_q_scorer(),
        make_q_scorer(uncovered="penalize", completeness="instances"),
        make_fire_scorer(psi=3, loss="f1_macro", uncovered="ignore", size="conditions"),
        make_ice_scorer(phi=2, performance="accuracy", uncovered="penalize", size="literals"),
    ],
    ids=lambda scorer: repr(scorer)[:40],
)
def test_stored_parameters_reproduce_score(scorer: Any) -> None:
    study_objective = objective(extractor="gridex", scoring=scorer)
    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.RandomSampler(seed=3))
    study.optimize(study_objective, n_trials=4)
    settings = scorer.settings
    share = f"completeness_{settings.get('completeness', 'volume')}"
    for trial in study.get_trials(states=(TrialState.COMPLETE,)):
        again = []
        for fold in trial.user_attrs["folds"]:
            if scorer.name == "neg_q":
                again.append(-q_score(fold["loss_q"], fold["size"], fold[share]))
            elif scorer.name == "neg_fire":
                again.append(-fire_score(fold["loss"], fold["size"], psi=settings["psi"]))
            else:
                again.append(
                    ice_score(
                        fold["performance"],
                        fold["size"],
                        fold[share],
                        phi=settings["phi"],
                        rho=settings["rho"],
                    )
                )
        assert trial.value == pytest.approx(np.mean(again))
