"""Extractors and spaces in other searches, and other samplers in searches of the package."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
import optuna
import pandas as pd
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from sklearn.datasets import load_iris, load_wine
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.model_selection import (
    GridSearchCV,
    HalvingGridSearchCV,
    HalvingRandomSearchCV,
    KFold,
    ParameterGrid,
    RandomizedSearchCV,
    cross_val_score,
)
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from skescore.extractors import CARTExtractor, GridExExtractor
from skescore.registry import make_extractor, suitable_extractors
from skescore.scorers import make_ice_scorer
from skescore.tuning import ExtractorObjective, ExtractorSearchCV, SearchSpace, search_space
from skescore.tuning.spaces import starting_points

IRIS = load_iris(return_X_y=True, as_frame=True)
ICE = make_ice_scorer()


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    yield
    optuna.logging.set_verbosity(before)


def gridex() -> GridExExtractor:
    return GridExExtractor(KNeighborsClassifier(9), random_state=0)


def gridex_space() -> SearchSpace:
    space = search_space("gridex", *IRIS).fixed(min_examples=1, n_slices=4, max_rules=None)
    return space.when("threshold", depth=(2, 3))  # cells of one class always join


# --- scikit-learn's searches ---------------------------------------------------------------------


def check_winner(search: Any, space: SearchSpace) -> None:
    """Check that the winner lies in the space and has the score that the search states."""
    assert space.holds(search.best_params_)
    assert space.active(search.best_params_) == search.best_params_
    assert len(search.best_estimator_.rules_) >= 1
    score = cross_val_score(
        search.estimator.set_params(**search.best_params_), *IRIS, scoring=ICE, cv=search.cv
    ).mean()
    assert search.best_score_ == pytest.approx(score)


def test_grid_search_tries_each_candidate_of_the_grid() -> None:
    space = gridex_space().fixed(sampling=None)
    grid = space.param_grid(2)
    search = GridSearchCV(gridex(), grid, scoring=ICE, cv=3, error_score="raise").fit(*IRIS)
    tried = search.cv_results_["params"]
    assert len(tried) == 2 + 2 * 2  # importances; and with depth 3 thresholds as well
    assert {params["depth"] for params in tried if "threshold" not in params} == {1}
    assert {params["depth"] for params in tried if "threshold" in params} == {3}
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    check_winner(search, space)


def test_random_search_draws_from_the_space() -> None:
    space = gridex_space()
    search = RandomizedSearchCV(
        gridex(),
        space.param_distributions(),
        n_iter=8,
        scoring=ICE,
        cv=3,
        random_state=0,
        error_score="raise",
    ).fit(*IRIS)
    tried = search.cv_results_["params"]
    assert all(space.holds(params) and space.active(params) == params for params in tried)
    assert {params["depth"] > 1 for params in tried} == {True, False}
    check_winner(search, space)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [HalvingGridSearchCV, HalvingRandomSearchCV])
def test_halving_search_gives_the_winner_all_rows(kind: Any) -> None:
    space = search_space("cart", *IRIS).without("criterion").fixed(max_depth=4)
    if kind is HalvingGridSearchCV:
        search = kind(
            CARTExtractor(KNeighborsClassifier(5), random_state=0),
            space.param_grid(3),
            scoring=ICE,
            cv=3,
            random_state=0,
            min_resources=50,
            error_score="raise",
        )
    else:
        search = kind(
            CARTExtractor(KNeighborsClassifier(5), random_state=0),
            space.param_distributions(),
            scoring=ICE,
            cv=3,
            random_state=0,
            min_resources=50,
            error_score="raise",
            n_candidates=6,
        )
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="max_leaf_nodes=2 is less than the 3 classes")
        search.fit(*IRIS)
    assert search.n_resources_ == [50, 150]
    assert space.holds(search.best_params_)
    assert len(search.best_estimator_.rules_) >= 1
    assert search.best_score_ > 0.9


def test_param_grid_reaches_a_step_of_a_pipeline() -> None:
    space = search_space("cart", *IRIS).without("criterion", "min_samples_leaf")
    space = space.fixed(sampling=None)
    pipeline = Pipeline(
        [("scale", StandardScaler()), ("rules", CARTExtractor(KNeighborsClassifier(9)))]
    )
    grid = space.with_(max_leaf_nodes=IntDistribution(3, 9)).param_grid(2, prefix="rules__")
    search = GridSearchCV(pipeline, grid, scoring=ICE, cv=3, error_score="raise").fit(*IRIS)
    assert len(search.cv_results_["params"]) == 4
    assert search.best_params_["rules__max_leaf_nodes"] == 3
    assert len(search.best_estimator_["rules"].rules_) == 3


def test_optuna_search_accepts_distributions() -> None:
    space = search_space("cart", *IRIS)
    with warnings.catch_warnings():
        # Their package uses features that Optuna 5 has deprecated, and is itself experimental.
        warnings.simplefilter("ignore", FutureWarning)
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        integration = pytest.importorskip("optuna_integration")
        search = integration.OptunaSearchCV(
            CARTExtractor(KNeighborsClassifier(9), random_state=0),
            space.distributions(),
            scoring=ICE,
            cv=3,
            n_trials=5,
            random_state=0,
            error_score="raise",
            verbose=0,
        )
        warnings.filterwarnings("ignore", message="max_leaf_nodes=2 is less than the 3 classes")
        search.fit(*IRIS)
    assert len(search.trials_) == 5
    assert {trial.state.name for trial in search.trials_} == {"COMPLETE"}
    check_winner(search, space)


def test_param_grid_reaches_parameters_of_nested_extractors() -> None:
    # Names are no estimators, but the last step of a pipeline may be any of them.
    steps = [make_extractor(name, KNeighborsClassifier(9)) for name in ("cart", "gridex")]
    pipeline = Pipeline([("rules", steps[0])])
    spaces = [
        search_space("cart", *IRIS)
        .fixed(max_leaf_nodes=3, sampling=None)
        .param_grid(1, prefix="rules__"),
        search_space("gridex", *IRIS)
        .fixed(depth=1, n_slices=8, importance_threshold=0.99, max_rules=None, sampling=None)
        .without("min_examples")
        .param_grid(1, prefix="rules__"),
    ]
    grid = [{"rules": [step]} | dict(space) for step, space in zip(steps, spaces, strict=True)]
    search = GridSearchCV(pipeline, grid, scoring=ICE, cv=3, error_score="raise").fit(*IRIS)
    assert len(search.cv_results_["params"]) == 2 + 1  # two criteria of the tree
    assert search.best_score_ > 0.9


# --- samplers and studies of the user ------------------------------------------------------------


@pytest.fixture(scope="module")
def objective() -> ExtractorObjective:
    space = search_space("gridex", *IRIS).with_(depth=IntDistribution(1, 2))
    return ExtractorObjective(
        DecisionTreeClassifier(random_state=0),
        *IRIS,
        extractor="gridex",
        cv=2,
        random_state=0,
        space=space.when("threshold", depth=(2,)),
    )


SAMPLERS = {
    "random": lambda: optuna.samplers.RandomSampler(seed=0),
    "quasi-random": lambda: optuna.samplers.QMCSampler(seed=0, warn_independent_sampling=False),
    "groups": lambda: optuna.samplers.TPESampler(
        seed=0, multivariate=True, group=True, n_startup_trials=3
    ),
    "evolution": lambda: optuna.samplers.CmaEsSampler(
        seed=0, n_startup_trials=3, warn_independent_sampling=False
    ),
    "genes": lambda: optuna.samplers.NSGAIISampler(seed=0, population_size=4),
}


@pytest.mark.parametrize("name", list(SAMPLERS))
def test_samplers_search_a_space_with_conditions(name: str, objective: ExtractorObjective) -> None:
    if name == "evolution":
        pytest.importorskip("cmaes")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        sampler = SAMPLERS[name]()
    study = optuna.create_study(
        direction="maximize", sampler=sampler, pruner=optuna.pruners.NopPruner()
    )
    study.enqueue_trial({"n_slices": 8, "importance_threshold": 0.99, "depth": 1})
    study.optimize(objective, n_trials=12)
    space = objective.space
    assert isinstance(space, SearchSpace)
    assert {trial.state.name for trial in study.trials} == {"COMPLETE"}
    for trial in study.trials:
        assert space.holds(trial.params)
        assert space.active(trial.params) == trial.params
        assert set(space) - set(trial.params) <= {"threshold"}
        assert len(trial.user_attrs["folds"]) == 2
    assert {"threshold" in trial.params for trial in study.trials} == {True, False}
    assert study.trials[0].params["n_slices"] == 8
    assert study.best_value >= study.trials[0].value > 0.6


def test_grid_sampler_visits_each_candidate_once() -> None:
    space = SearchSpace(
        {
            "depth": IntDistribution(1, 2),
            "threshold": FloatDistribution(0.1, 0.3, step=0.1),
            "importance_threshold": CategoricalDistribution((0.5, 0.9)),
            "n_slices": IntDistribution(2, 3),
        },
        conditions={"threshold": {"depth": (2,)}},
    )
    objective = ExtractorObjective(
        DecisionTreeClassifier(random_state=0), *IRIS, extractor="gridex", cv=2, space=space
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        sampler = optuna.samplers.BruteForceSampler(seed=0)
    study = optuna.create_study(direction="maximize", sampler=sampler)
    study.optimize(objective, n_trials=100)

    def keys(candidates: Any) -> list[tuple[tuple[str, float], ...]]:
        return sorted(
            tuple(sorted((name, round(value, 9)) for name, value in params.items()))
            for params in candidates
        )

    grid = list(ParameterGrid(space.param_grid(3)))
    assert len(grid) == 4 + 12
    assert keys(trial.params for trial in study.trials) == keys(grid)


def test_search_accepts_a_dict_of_distributions() -> None:
    space = {"max_leaf_nodes": IntDistribution(3, 5), "max_depth": IntDistribution(4, 4)}
    objective = ExtractorObjective(
        DecisionTreeClassifier(random_state=0), *IRIS, extractor="cart", cv=2, space=space
    )
    study = optuna.create_study(direction="maximize", sampler=SAMPLERS["random"]())
    study.optimize(objective, n_trials=3)
    assert all(set(trial.params) == set(space) for trial in study.trials)
    search = ExtractorSearchCV(
        DecisionTreeClassifier(random_state=0),
        extractors=("cart",),
        spaces={"cart": space},
        n_trials=3,
        cv=2,
        random_state=0,
    ).fit(*IRIS)
    assert set(search.best_params_) == set(space)


def test_search_respects_conditions_of_changed_spaces() -> None:
    space = gridex_space().with_(depth=IntDistribution(1, 2))
    search = ExtractorSearchCV(
        DecisionTreeClassifier(random_state=0),
        extractors=("cart", "gridex"),
        spaces={"gridex": space},
        n_trials=14,
        cv=2,
        random_state=0,
    ).fit(*IRIS)
    table = search.leaderboard_
    tried = table.loc[table["extractor"] == "gridex", "params"]
    assert len(tried)
    for params in tried:
        assert params["n_slices"] == 4
        assert ("threshold" in params) == (params["depth"] == 2)
    assert str(space) in {str(value) for value in search.get_params()["spaces"].values()}


@pytest.mark.parametrize("name", suitable_extractors("classification"))
def test_search_space_works_in_a_study_of_the_user(name: str) -> None:
    """The study is defined by run and uses no objective of the package."""
    X, y = load_wine(return_X_y=True)
    X, y = X[::3, :4], y[::3]
    space = search_space(name, X, y)
    first = starting_points(name, space, y, "classification")

    def objective(trial: optuna.Trial) -> float:
        extractor = make_extractor(name, DecisionTreeClassifier(random_state=0))
        extractor.set_params(**space.suggest(trial))
        if "random_state" in extractor.get_params():
            extractor.set_params(random_state=0)
        return ICE(extractor.fit(X, y), X, y)

    study = optuna.create_study(direction="maximize", sampler=SAMPLERS["random"]())
    study.enqueue_trial(first[-1])
    study.optimize(objective, n_trials=2)
    assert study.trials[0].params == first[-1]
    assert study.best_value > 0.5


# --- no leakage ----------------------------------------------------------------------------------


class Witness(DecisionTreeClassifier):
    """Black box that records the rows it has seen by the number in their first column."""

    seen: ClassVar[set[float]] = set()

    def fit(self, X: Any, y: Any) -> Witness:
        self.seen.update(np.asarray(X)[:, 0].tolist())
        super().fit(X, y)
        return self

    def predict(self, X: Any, check_input: bool = True) -> np.ndarray:
        self.seen.update(np.asarray(X)[:, 0].tolist())
        return super().predict(X)


def test_nested_search_never_sees_scored_rows() -> None:
    X, y = load_iris(return_X_y=True)
    X = pd.DataFrame(np.column_stack([np.arange(150) + 0.25, X[:, 2:]]), columns=list("nlw"))
    order = np.random.default_rng(0).permutation(150)
    X, y = X.iloc[order], y[order]
    checked = []

    def score(search: ExtractorSearchCV, rows: Any, target: Any) -> float:
        held_out = set(rows["n"])
        assert not held_out & Witness.seen
        assert set(X["n"]) - held_out <= Witness.seen  # it was queried with these numbers
        checked.append(len(held_out))
        Witness.seen.clear()
        return float(np.mean(search.predict(rows) == target))

    Witness.seen.clear()
    search = ExtractorSearchCV(
        Witness(random_state=0), extractors=("cart", "gridex"), n_trials=6, cv=2, random_state=0
    )
    scores = cross_val_score(search, X, y, cv=KFold(3), scoring=score, error_score="raise")
    assert checked == [50, 50, 50]
    assert scores.mean() > 0.85


def test_search_of_random_labels_scores_low() -> None:
    # A search that scored on its training rows would find rules for these as well.
    random = np.random.default_rng(0)
    X, y = random.normal(size=(120, 3)), random.integers(2, size=120)
    search = ExtractorSearchCV(
        KNeighborsClassifier(1), extractors=("cart",), n_trials=8, cv=4, random_state=0
    ).fit(X, y)
    assert search.leaderboard_["performance"].max() < 0.65
