"""ExtractorSearchCV: several measures, other weights, samplers, studies, measures and messages."""

from __future__ import annotations

import copy
import math
import pickle
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import optuna
import pandas as pd
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import TrialState
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_iris
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import accuracy_score, make_scorer
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from skescore.extractors import TrepanExtractor
from skescore.metrics import fire_score, ice_score
from skescore.scorers import (
    ice,
    knowledge,
    make_fire_scorer,
    make_ice_scorer,
    make_performance_scorer,
    make_rule_scorer,
    neg_fire,
    neg_q,
)
from skescore.tuning import ExtractorObjective, ExtractorSearchCV
from skescore.tuning.spaces import starting_points

# Fewer leaves than classes are a bad candidate, not an invalid one.
pytestmark = pytest.mark.filterwarnings("ignore:max_leaf_nodes=:UserWarning")

X, Y = (part[::2] for part in load_iris(return_X_y=True))
X = X[:, :2]  # with two features, many rules are needed to distinguish the kinds
X_NUMBERS, Y_NUMBERS = (part[:90] for part in load_diabetes(return_X_y=True))
FOLDS = StratifiedKFold(3, shuffle=True, random_state=0)
BLACK_BOX = DecisionTreeClassifier(max_depth=4, random_state=0)
SEVERAL = ("loss", "n_rules", "incompleteness")
# Volume counts: boxes that GridEx omits make it incomplete.
SPACES: dict[str, Any] = {
    "cart": {"max_leaf_nodes": IntDistribution(2, 8)},
    "gridex": {"n_slices": IntDistribution(2, 6), "min_examples": IntDistribution(1, 9)},
}


@pytest.fixture(autouse=True)
def _quiet_studies() -> Any:
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    yield
    optuna.logging.set_verbosity(before)


def search_of(black_box: Any = BLACK_BOX, **options: Any) -> ExtractorSearchCV:
    settings: dict[str, Any] = {
        "n_trials": 12,
        "cv": FOLDS,
        "random_state": 0,
        "spaces": SPACES,
        "allocation": "even",
        "sampler": optuna.samplers.RandomSampler(seed=2),
        "standard_errors": 0,
        "n_repeats": 0,
        "pruner": None,
    }
    settings |= options
    names = settings.setdefault("extractors", ("cart", "gridex"))
    if settings["spaces"] is SPACES:
        settings["spaces"] = {name: SPACES[name] for name in names}
    return ExtractorSearchCV(black_box, **settings)


def params_of(search: ExtractorSearchCV) -> dict[str, list[dict[str, Any]]]:
    return {name: [t.params for t in study.trials] for name, study in search.studies_.items()}


def folds_of(search: ExtractorSearchCV, row: Any) -> list[dict[str, Any]]:
    trial = search.studies_[row["extractor"]].trials[row["trial"]]
    folds: list[dict[str, Any]] = trial.user_attrs["folds"]
    return folds


@pytest.fixture(scope="module")
def by_ice() -> ExtractorSearchCV:
    return search_of().fit(X, Y)


@pytest.fixture(scope="module")
def by_several() -> ExtractorSearchCV:
    return search_of(scoring=SEVERAL).fit(X, Y)


# --- several measures ----------------------------------------------------------------------------


def losses_of(search: ExtractorSearchCV, names: tuple[str, ...]) -> dict[tuple[str, int], Any]:
    """Return the losses of every trial, computed from the measurements on the folds."""
    part = {"incompleteness": "completeness_volume"}
    result = {}
    for name, study in search.studies_.items():
        for trial in study.trials:
            values = []
            for measure in names:
                mean = np.mean([f[part.get(measure, measure)] for f in trial.user_attrs["folds"]])
                values.append(1 - mean if measure == "incompleteness" else mean)
            result[name, trial.number] = tuple(np.round(values, 10))
    return result


def ice_of(
    parts: dict[str, Any], phi: float = 1, rho: float = 1, completeness: str = "volume"
) -> float:
    share = parts[f"completeness_{completeness}"]
    return ice_score(parts["performance"], parts["size"], share, phi=phi, rho=rho)


def selection_scores_by_hand(
    score: Callable[[dict[str, Any]], float], folds: list[dict[str, Any]], rest: dict[str, Any]
) -> np.ndarray:
    """Return the scores by which a candidate is selected: held-out rows and rules of all rows."""
    scores = []
    names = ("performance", "loss", "size", "completeness_volume", "completeness_instances")
    for fold in folds:
        both = {name: 0.632 * fold[name] + 0.368 * rest[name] for name in names}
        if fold["size"] == rest["size"]:
            scores.append(score(both | {"size": fold["size"]}))
        else:
            scores.append(min(score(both), 0.632 * score(fold) + 0.368 * score(rest)))
    return np.array(scores)


def front_by_hand(losses: dict[tuple[str, int], Any]) -> set[tuple[float, ...]]:
    points = set(losses.values())
    return {
        p for p in points if not any(q != p and all(np.array(q) <= np.array(p)) for q in points)
    }


def test_scoring_minimizes_several_measures(by_several: ExtractorSearchCV) -> None:
    losses = losses_of(by_several, SEVERAL)
    for name, study in by_several.studies_.items():
        assert [direction.name for direction in study.directions] == ["MINIMIZE"] * 3
        for trial in study.trials:
            assert trial.values == pytest.approx(losses[name, trial.number], abs=1e-9)
            by_scorer = np.mean([fold["score"] for fold in trial.user_attrs["folds"]])
            assert trial.user_attrs["score"] == pytest.approx(by_scorer)  # ICE in addition


def test_pareto_front_equals_pairwise_comparison(by_several: ExtractorSearchCV) -> None:
    front = by_several.pareto_front_
    losses = losses_of(by_several, SEVERAL)
    expected = front_by_hand(losses)
    assert 1 < len(expected) < len(set(losses.values()))
    front_losses = [losses[row.extractor, row.trial] for row in front.itertuples()]
    assert len(front_losses) == len(expected)
    assert set(front_losses) == expected
    assert front["n_rules"].is_monotonic_increasing
    assert front["knee"].sum() == 1
    knee = by_several.knee_
    assert bool(knee["knee"])
    # The nearest to the ideal if every measure ranges from 0 to 1 on the front.
    points = np.array(front_losses)
    width = np.ptp(points, axis=0)
    scaled = ((points - points.min(axis=0)) / np.where(width > 0, width, 1)) ** 2
    nearest = points[np.argmin(np.round(scaled.sum(axis=1), 9))]
    assert losses[knee["extractor"], knee["trial"]] == pytest.approx(nearest)


def test_knee_wins_among_several_measures(by_several: ExtractorSearchCV) -> None:
    knee, first = by_several.knee_, by_several.leaderboard_.iloc[0]
    assert (first["extractor"], first["trial"]) == (knee["extractor"], knee["trial"])
    assert (by_several.best_name_, by_several.best_params_) == (knee["extractor"], knee["params"])
    assert by_several.best_score_ == first["score"]
    assert first["score"] < by_several.leaderboard_["score"].max()  # ICE would select another
    parameters = by_several.best_extractor_.get_params(deep=False)
    assert {n: parameters[n] for n in by_several.best_params_} == by_several.best_params_
    rest = by_several.leaderboard_.iloc[1:]
    assert rest["score"].is_monotonic_decreasing
    assert len(by_several.leaderboard_) == 12
    assert by_several.score(X, Y) == ice(by_several.best_extractor_, X, Y)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("refit", "scorer"), [("ice", ice), ("neg_fire", neg_fire), (neg_q, neg_q)]
)
def test_refit_names_the_score_that_selects_the_winner(
    by_several: ExtractorSearchCV, refit: Any, scorer: Any
) -> None:
    search = search_of(scoring=SEVERAL, refit=refit).fit(X, Y)
    assert params_of(search) == params_of(by_several)
    scores = [
        cross_val_score(search.make_candidate(row), X, Y, scoring=scorer, cv=FOLDS).mean()
        for _, row in search.leaderboard_.iterrows()
    ]
    assert search.leaderboard_["score"].tolist() == pytest.approx(scores)
    assert search.best_score_ == pytest.approx(max(scores))
    assert search.score(X, Y) == scorer(search.best_extractor_, X, Y)


def test_refit_false_keeps_the_knee_of_two_measures() -> None:
    search = search_of(scoring=["n_rules", "loss"], refit=False, n_trials=8).fit(X, Y)
    assert not hasattr(search, "best_extractor_")
    assert search.best_params_ == search.knee_["params"]
    losses = losses_of(search, ("n_rules", "loss"))
    assert len(search.pareto_front_) == len(front_by_hand(losses))


@pytest.mark.slow
def test_scoring_minimizes_measures_of_regression() -> None:
    black_box = DecisionTreeRegressor(max_depth=3, random_state=0)
    search = search_of(
        black_box, scoring=SEVERAL, cv=3, sampler=None, allocation="halving", spaces=None
    ).fit(X_NUMBERS, Y_NUMBERS)
    expected = front_by_hand(losses_of(search, SEVERAL))
    losses = losses_of(search, SEVERAL)
    front = search.pareto_front_
    assert {losses[row.extractor, row.trial] for row in front.itertuples()} == expected
    assert len(search.stopped_) == 1
    n_baselines = sum("baseline" in t.user_attrs for t in search.studies_["cart"].trials)
    assert n_baselines > 2
    assert len(search.leaderboard_) == 12 + n_baselines
    # The extractor that continues added more to the common front of the first four trials.
    (loser,) = search.stopped_
    trials = search.studies_[loser].trials
    assert sum("baseline" not in trial.user_attrs for trial in trials) == 4


# --- other weights -------------------------------------------------------------------------------

FIRE = [{"psi": psi} for psi in (0.5, 1, 3, 9)]
ICE = [{"phi": 1}, {"rho": 1}, {"phi": 3, "rho": 1}, {"phi": 1, "rho": 5}]
ICE.append({"phi": 1, "rho": 2, "completeness": "instances"})


@pytest.mark.parametrize("weights", [*FIRE, *ICE], ids=repr)
def test_best_for_equals_rescoring_all_candidates(
    by_ice: ExtractorSearchCV, weights: dict[str, Any]
) -> None:
    def score(parts: dict[str, Any]) -> float:
        if "psi" in weights:
            return -fire_score(parts["loss"], parts["size"], psi=weights["psi"])
        return ice_of(parts, **weights)

    best_row = by_ice.best_for(**weights)
    best, size_of_best, of_found = -math.inf, math.inf, math.nan
    for _, row in by_ice.leaderboard_[by_ice.leaderboard_["score_on_all_rows"].notna()].iterrows():
        folds = folds_of(by_ice, row)
        rest = by_ice.studies_[row["extractor"]].trials[row["trial"]].user_attrs["all_rows"]
        selection_score = selection_scores_by_hand(score, folds, rest).mean()
        if selection_score > best + 1e-12:
            best, size_of_best = selection_score, row["size"]
        if (row["extractor"], row["trial"]) == (best_row["extractor"], best_row["trial"]):
            assert best_row["score"] == pytest.approx(np.mean([score(f) for f in folds]), rel=1e-12)
            of_found = selection_score
    assert of_found == pytest.approx(best, rel=1e-12)
    assert best_row["size"] <= size_of_best


@pytest.mark.parametrize(
    ("weights", "scoring"),
    [
        ({"psi": 1}, "neg_fire"),
        ({"psi": 5}, make_fire_scorer(psi=5)),
        ({"phi": 1, "rho": 8}, make_ice_scorer(rho=8)),
        ({"phi": 4}, make_ice_scorer(phi=4)),
    ],
    ids=repr,
)
def test_best_for_equals_search_with_weights(
    by_ice: ExtractorSearchCV, weights: dict[str, Any], scoring: Any
) -> None:
    other = search_of(scoring=scoring).fit(X, Y)
    scorer = neg_fire if scoring == "neg_fire" else scoring
    assert params_of(other) == params_of(by_ice)  # the sampler uses no scores
    best_row = by_ice.best_for(**weights)
    assert best_row["score"] == pytest.approx(other.best_score_, rel=1e-12)
    winner = other.leaderboard_.iloc[0]
    assert (best_row["extractor"], best_row["size"]) == (winner["extractor"], winner["size"])
    again = cross_val_score(by_ice.make_candidate(best_row), X, Y, scoring=scorer, cv=FOLDS)
    assert best_row["score"] == pytest.approx(again.mean(), rel=1e-12)


@pytest.mark.filterwarnings("ignore:The best candidate by neg_fire is a constant")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.UndefinedMetricWarning")
def test_best_for_without_candidates_raises() -> None:
    # R² is undefined on one row.
    search = ExtractorSearchCV(
        DecisionTreeRegressor(max_depth=2),
        extractors=["cart"],
        scoring="neg_fire",
        cv=12,
        n_trials=2,
        random_state=0,
    ).fit(X_NUMBERS[:12], Y_NUMBERS[:12])
    assert len(search.candidates_) == 0
    with pytest.raises(ValueError, match="needs a finished candidate"):
        search.best_for(psi=1)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ({}, r"weights of one score \(phi and rho of ICE; psi of FiRe\), got \{\}"),
        ({"psi": 1, "phi": 1}, r"got \{'psi': 1, 'phi': 1\}"),
        ({"psi": 0}, "psi.*0"),
        ({"psi": math.nan}, "psi.*nan"),
        ({"phi": -1}, "phi.*-1"),
        ({"rho": math.inf}, "rho.*inf"),
        ({"phi": 1, "completeness": "rows"}, r"'volume', 'instances'.*got 'rows'"),
        ({"psi": 1, "completeness": "rows"}, r"'volume', 'instances'.*got 'rows'"),
    ],
    ids=repr,
)
def test_best_for_rejects_invalid_weights(
    by_ice: ExtractorSearchCV, weights: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        by_ice.best_for(**weights)


# --- the winner and other candidates -------------------------------------------------------------


def test_make_candidate_rebuilds_every_leaderboard_row() -> None:
    extractors = ("cart", "trepan")  # the second draws rows at random
    spaces = {
        "cart": {"max_leaf_nodes": IntDistribution(2, 6)},
        "trepan": {"max_leaf_nodes": IntDistribution(2, 3)},
    }
    search = search_of(extractors=extractors, spaces=spaces, n_trials=4).fit(X, Y)
    for _, row in search.leaderboard_.iterrows():
        candidate = search.make_candidate(row)
        assert candidate.estimator is search.estimator
        assert not hasattr(candidate, "rules_")
        scores = cross_val_score(candidate, X, Y, scoring=ice, cv=FOLDS)
        assert row["score"] == pytest.approx(scores.mean(), rel=1e-12)
    for row in (search.knee_, search.best_for(psi=1)):
        assert (
            search.make_candidate(row).get_params()["max_leaf_nodes"]
            == row["params"]["max_leaf_nodes"]
        )
    rebuilt = search.make_candidate({"extractor": "cart", "params": {"max_leaf_nodes": 5}}).fit(
        X, Y
    )
    assert len(rebuilt.rules_) == 5


def test_searched_random_state_is_used_by_the_winner() -> None:
    spaces = {"cart": {"random_state": CategoricalDistribution([7, 8])}}
    search = search_of(extractors=["cart"], spaces=spaces, n_trials=2).fit(X, Y)
    row = search.leaderboard_.iloc[0]
    assert search.make_candidate(row).random_state == row["params"]["random_state"]
    assert search.best_extractor_.random_state == search.best_params_["random_state"]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"scoring": "accuracy", "max_rules": 4}, 0.0),
        ({"scoring": "accuracy"}, 0.5),
        ({"max_rules": 4}, 0.5),
        ({"scoring": "accuracy", "max_rules": 4, "standard_errors": 1}, 1.0),
    ],
)
def test_standard_errors_default_depends_on_size_limit(
    options: dict[str, Any], expected: float
) -> None:
    options = {"standard_errors": None} | options
    search = search_of(n_trials=8, extractors=("cart",), **options).fit(X, Y)
    assert search.standard_errors_ == expected
    if expected == 0.0:
        board = search.leaderboard_
        done = board[(board["state"] == "complete") & (board["within_limits"] == True)]  # noqa: E712
        selection_score = 0.632 * done["score"] + 0.368 * done["score_on_all_rows"]
        assert selection_score.iloc[0] == pytest.approx(selection_score.max())


@pytest.mark.parametrize("standard_errors", [0, 0.5, 1.0, 3.0])
def test_winner_is_smallest_within_standard_error(
    by_ice: ExtractorSearchCV, standard_errors: float
) -> None:
    search = search_of(standard_errors=standard_errors).fit(X, Y)
    assert params_of(search) == params_of(by_ice)
    board = search.leaderboard_
    scored_rows = []
    for _, row in board[board["score_on_all_rows"].notna()].iterrows():
        rules = search.make_candidate(row).fit(X, Y)
        assert row["score_on_all_rows"] == pytest.approx(make_ice_scorer()(rules, X, Y))
        rest = knowledge(rules, X, Y)
        rest["size"] = rest["n_rules"]
        scored_rows.append((row, selection_scores_by_hand(ice_of, folds_of(search, row), rest)))
    assert len(scored_rows) > 2
    best = max(scored_rows, key=lambda pair: (pair[1].mean().round(12), -pair[0]["size"]))[1]
    near = []
    for row, scores in scored_rows:
        behind = best - scores
        error = np.std(behind, ddof=1) / math.sqrt(3)
        if behind.mean() <= standard_errors * error + 1e-12:
            near.append((row["size"], -scores.mean(), row["black_box_rows"]))
            assert row["tied"]
    winner = board.iloc[0]
    scores_of_winner = next(scores for row, scores in scored_rows if row.equals(winner))
    assert (winner["size"], -scores_of_winner.mean()) == pytest.approx(min(near)[:2])
    assert board["tied"].sum() == len(near)
    assert board["score"][1:].is_monotonic_decreasing


def test_candidate_failing_on_all_rows_does_not_win() -> None:
    best = search_of(extractors=("cart",)).fit(X, Y).best_params_
    ice = make_ice_scorer()

    def picky(model: Any, rows: Any, y: Any) -> float:
        if len(rows) == len(X) and model.max_leaf_nodes == best["max_leaf_nodes"]:
            raise RuntimeError("no rules of all rows")
        return float(ice(model, rows, y))

    search = search_of(extractors=("cart",), scoring=picky).fit(X, Y)
    board = search.leaderboard_
    failed = board["params"].map(lambda params: params == best)
    assert failed.any()
    assert board["score_on_all_rows"][failed].isna().all()
    assert not failed[0]
    others = board[~failed & board["score_on_all_rows"].notna()]
    assert board["score"][0] >= others["score"].quantile(0.5)


def test_equal_candidates_are_refitted_once(
    by_ice: ExtractorSearchCV,
) -> None:
    signs = {
        "score": 1,
        "performance": 1,
        "loss": -1,
        "loss_q": -1,
        "size": -1,
        "completeness_volume": 1,
        "completeness_instances": 1,
    }
    board = by_ice.leaderboard_[by_ice.leaderboard_["same_as"].isna()]
    parts = [
        [sign * fold[name] for fold in folds_of(by_ice, row) for name, sign in signs.items()]
        for _, row in board.iterrows()
    ]
    is_refitted = board["score_on_all_rows"].notna().tolist()
    assert 2 < sum(is_refitted) < len(is_refitted)
    for index, own in enumerate(parts):
        equalled = [
            all(x >= y for x, y in zip(other, own, strict=True))
            for k, other in enumerate(parts)
            if k != index
        ]
        # A candidate that a later trial equals was extracted before.
        assert is_refitted[index] or any(equalled)


# --- samplers and studies of the user ------------------------------------------------------------


@pytest.mark.slow
def test_sampler_is_copied_for_each_study() -> None:
    sampler = optuna.samplers.RandomSampler(seed=5)
    before = copy.deepcopy(sampler)._rng.rng.get_state()[1].tolist()
    search = search_of(sampler=sampler, n_trials=10)
    first = params_of(search.fit(X, Y))
    samplers = [study.sampler for study in search.studies_.values()]
    assert all(isinstance(used_sampler, optuna.samplers.RandomSampler) for used_sampler in samplers)
    assert len({id(used_sampler) for used_sampler in [sampler, *samplers]}) == 3
    assert sampler._rng.rng.get_state()[1].tolist() == before
    assert params_of(search.fit(X, Y)) == first
    other = search_of(sampler=optuna.samplers.RandomSampler(seed=6), n_trials=10).fit(X, Y)
    assert params_of(other) != first


@pytest.mark.filterwarnings("ignore:PartialFixedSampler is experimental")
def test_partial_fixed_sampler_keeps_parameters() -> None:
    sampler = optuna.samplers.PartialFixedSampler(
        {"min_examples": 3}, optuna.samplers.RandomSampler(seed=0)
    )
    search = search_of(extractors=["gridex"], sampler=sampler, n_trials=8).fit(X, Y)
    starting = {"n_slices", "min_examples"}
    later = search.studies_["gridex"].trials[5:]  # after the starting points
    assert [set(trial.params) for trial in later] == [starting] * 3
    assert {trial.params["min_examples"] for trial in later} == {3}


class Noting(optuna.samplers.RandomSampler):
    """Sampler that records its calls."""

    def __init__(self) -> None:
        super().__init__(seed=3)
        self.asked = 0

    def sample_independent(self, *arguments: Any) -> Any:
        self.asked += 1
        return super().sample_independent(*arguments)


def test_studies_keep_their_sampler_and_trials() -> None:
    sampler = Noting()
    study = optuna.create_study(study_name="mine", direction="maximize", sampler=sampler)
    objective = ExtractorObjective(
        BLACK_BOX,
        X,
        Y,
        cv=FOLDS,
        space=SPACES["cart"],
        random_state=int(np.random.RandomState(0).randint(2**31 - 1)),
    )
    study.enqueue_trial({"max_leaf_nodes": 5})
    study.enqueue_trial({"max_leaf_nodes": 4})
    study.optimize(objective, n_trials=2)
    search = search_of(studies={"cart": study}, sampler=None, n_trials=12).fit(X, Y)
    assert search.studies_["cart"] is study
    assert [trial.params for trial in study.trials[:2]] == [
        {"max_leaf_nodes": 5},
        {"max_leaf_nodes": 4},
    ]
    assert len(study.trials) == len(search.studies_["gridex"].trials) == 6  # they count
    rows = search.leaderboard_[search.leaderboard_["extractor"] == "cart"]
    assert sorted(rows["trial"]) == list(range(6))
    for _, row in rows.iterrows():
        scores = cross_val_score(search.make_candidate(row), X, Y, scoring=ice, cv=FOLDS)
        assert row["score"] == pytest.approx(scores.mean(), rel=1e-12)
    # Measured candidates are not extracted again.
    for trial in study.trials[2:]:
        first = next(t.number for t in study.trials if t.params == trial.params)
        assert trial.user_attrs.get("same_as") == (first if first < trial.number else None)
    assert study.sampler is sampler
    drawn = len(study.trials) - len(starting_points("cart", SPACES["cart"], Y, "classification"))
    assert sampler.asked == drawn > 0


def test_studies_with_foreign_trials_are_rejected() -> None:
    foreign = optuna.create_study(direction="maximize")
    foreign.optimize(lambda trial: trial.suggest_int("max_leaf_nodes", 2, 8), n_trials=2)
    with pytest.raises(ValueError, match=r"studies\['cart'\] holds trials that were not measured"):
        search_of(studies={"cart": foreign}).fit(X, Y)
    other_folds = optuna.create_study(direction="maximize")
    other_folds.optimize(ExtractorObjective(BLACK_BOX, X, Y, cv=4, space=SPACES["cart"]), 2)
    with pytest.raises(ValueError, match=r"not measured on 3 folds .* Pass a study without trials"):
        search_of(studies={"cart": other_folds}).fit(X, Y)


def test_studies_of_another_direction_are_rejected() -> None:
    study = optuna.create_study(direction="minimize")
    message = r"of 'cart' has the directions \['minimize'\], but the search of ice needs"
    with pytest.raises(ValueError, match=message):
        search_of(studies={"cart": study}).fit(X, Y)
    with pytest.raises(ValueError, match=r"studies names \['gridx'\], not among extractors"):
        search_of(studies={"gridx": study}).fit(X, Y)


# --- further measures ----------------------------------------------------------------------------


def test_measures_are_means_over_folds() -> None:
    own = make_rule_scorer("precision", aggregate="min")

    def hits(model: Any, X: Any, y: Any) -> int:
        return int((model.predict(X) == y).sum())

    spaces = {"cart": {"max_leaf_nodes": CategoricalDistribution([2, 3])}}
    search = search_of(
        extractors=["cart"], measures=["mean_rule_c2", own, hits], n_trials=4, spaces=spaces
    ).fit(X, Y)
    board = search.leaderboard_
    scorers = {"mean_rule_c2": make_rule_scorer("c2"), own.name: own, "hits": hits}
    columns = board.columns.tolist()
    assert columns[columns.index("fidelity") + 1 : columns.index("seconds")] == [*scorers]
    for _, row in board.iterrows():
        for name, scorer in scorers.items():
            scores = cross_val_score(search.make_candidate(row), X, Y, scoring=scorer, cv=FOLDS)
            assert row[name] == pytest.approx(scores.mean(), rel=1e-12)
            assert [f[name] for f in folds_of(search, row)] == pytest.approx(scores.tolist())
    assert board["mean_rule_c2"].nunique() == len({str(params) for params in board["params"]}) == 2


def test_measures_use_weights_if_they_accept_them() -> None:
    """Measures of predictions, other scorers and other references use weights as well."""

    def length(model: Any, X: Any, y: Any) -> int:
        return len(model.rules_)

    fidelity = make_performance_scorer("accuracy", reference="black_box")
    plain = make_scorer(lambda y, predictions: np.mean(y == predictions))
    measures = [
        {"others": make_scorer(accuracy_score)},
        {"alike": fidelity},
        {"plain": plain},
        length,
    ]
    weights = np.where(Y == 2, 20.0, 1.0)
    search = search_of(extractors=["cart"], scoring="accuracy", measures=measures, n_trials=2)
    row = search.fit(X, Y, sample_weight=weights).leaderboard_.iloc[0]
    expected = []
    for train, test in FOLDS.split(X, Y):
        black_box = clone(BLACK_BOX).fit(X[train], Y[train], sample_weight=weights[train])
        rules = search.make_candidate(row).set_params(estimator=FrozenEstimator(black_box))
        predictions = rules.fit(X[train], sample_weight=weights[train]).predict(X[test])
        right, alike = predictions == Y[test], predictions == black_box.predict(X[test])
        expected.append([np.average(right, weights=weights[test])] * 2)
        expected[-1] += [np.average(alike, weights=weights[test]), right.mean(), rules.n_rules_]
    means = row[["score", "others", "alike", "plain", "length"]].tolist()
    assert means == pytest.approx(np.mean(expected, axis=0).tolist())


# --- estimator interface -------------------------------------------------------------------------


def test_clone_keeps_parameters() -> None:
    study = optuna.create_study(direction="maximize")
    search = search_of(studies={"cart": study}, measures=("mean_rule_c2",), callbacks=[print])
    again = clone(search)
    assert repr(again.get_params()["sampler"]).partition(" ")[0].endswith("RandomSampler")
    same = ("n_trials", "measures", "callbacks", "standard_errors", "allocation", "study_name")
    assert all(again.get_params()[name] == search.get_params()[name] for name in same)
    assert again.studies["cart"] is not study  # a clone's trials are its own
    again.set_params(n_trials=3, estimator__max_depth=1)
    assert (search.n_trials, search.estimator.max_depth) == (12, 4)
    with pytest.raises(ValueError, match="Invalid parameter 'n_trial'"):
        search.set_params(n_trial=3)


def test_search_of_several_measures_can_be_pickled(by_several: ExtractorSearchCV) -> None:
    again = pickle.loads(pickle.dumps(by_several))
    pd.testing.assert_frame_equal(again.pareto_front_, by_several.pareto_front_)
    pd.testing.assert_series_equal(again.best_for(psi=3), by_several.best_for(psi=3))
    assert again.make_candidate(again.knee_).fit(X, Y).rules_ == by_several.rules_


@pytest.mark.slow
def test_searches_of_cross_validation_are_independent() -> None:
    search = search_of(n_trials=4)
    scores = cross_val_score(search, X, Y, scoring=ice, cv=FOLDS, error_score="raise")
    for (train, test), score in list(zip(FOLDS.split(X, Y), scores, strict=True))[1:]:
        alone = search_of(n_trials=4).fit(X[train], Y[train])
        assert all(len(study.trials) == 2 for study in alone.studies_.values())
        assert score == ice(alone.best_extractor_, X[test], Y[test])


@pytest.mark.slow
@pytest.mark.parametrize("task", ["classification", "regression"])
def test_frozen_black_box_needs_no_y(task: str) -> None:
    if task == "classification":
        model: Any = DecisionTreeClassifier(max_depth=4, random_state=0).fit(X, Y)
        rows = X
    else:
        model = DecisionTreeRegressor(max_depth=3, random_state=0).fit(X_NUMBERS, Y_NUMBERS)
        rows = X_NUMBERS
    frozen = search_of(FrozenEstimator(model), cv=3, n_trials=4, spaces=None).fit(rows)
    with_labels = search_of(FrozenEstimator(model), cv=3, n_trials=4, spaces=None)
    with_labels.fit(rows, model.predict(rows))
    differing = ["seconds", "correctness"]  # without y there are no labels to compare with
    pd.testing.assert_frame_equal(
        frozen.leaderboard_.drop(columns=differing),
        with_labels.leaderboard_.drop(columns=differing),
    )
    assert frozen.leaderboard_["correctness"].isna().all()
    assert frozen.score(rows) == frozen.score(rows, model.predict(rows))
    assert set(frozen.black_box_quality_.values()) == {1.0}


def test_progress_bar_without_terminal_prints_end(
    capfd: pytest.CaptureFixture[str],
) -> None:
    outputs = []

    def note(study: Any, trial: Any) -> None:
        outputs.append(capfd.readouterr())

    search = search_of(n_trials=5, progress_bar=True, callbacks=[note]).fit(X, Y)
    assert outputs == [("", "")] * 5
    best = {
        name: max(trial.value for trial in study.trials) for name, study in search.studies_.items()
    }
    assert capfd.readouterr() == (
        "",
        f"3 trials of CART, best ice {best['cart']:.4g}\n"
        f"2 trials of GridEx, best ice {best['gridex']:.4g}\n",
    )


# --- invalid arguments ---------------------------------------------------------------------------


def own_score(model: Any, X: Any, y: Any) -> float:
    return 0.0


@pytest.mark.parametrize(
    ("options", "kind", "message"),
    [
        ({"allocation": "fair"}, ValueError, "'halving', 'even', got 'fair'"),
        ({"standard_errors": -1}, ValueError, "standard_errors must be .*0 or more.*got -1"),
        ({"standard_errors": math.nan}, ValueError, "standard_errors must be .*got nan"),
        ({"standard_errors": "one"}, TypeError, "standard_errors must be .*got 'one'"),
        ({"standard_errors": True}, TypeError, "standard_errors must be .*got True"),
        ({"n_trials": None}, ValueError, "n_trials=None needs a timeout in seconds"),
        ({"n_trials": None, "timeout": math.nan}, ValueError, "timeout must be .*got nan"),
        ({"n_trials": None, "timeout": math.inf}, ValueError, "timeout must be .*got inf"),
        ({"timeout": -1}, ValueError, "timeout must be .*got -1"),
        ({"timeout": "1h"}, TypeError, "timeout must be .*got '1h'"),
        ({"pruner": "median"}, TypeError, "'bound', an Optuna pruner or None, got 'median'"),
        ({"pruner": "bound", "scoring": own_score}, ValueError, "'bound' needs .*own_score.*None"),
        ({"pruner": "bound", "scoring": SEVERAL}, ValueError, "compares one score.*pruner=None"),
        ({"refit": "ice"}, ValueError, "must be True or False if scoring is a .*got 'ice'"),
        ({"refit": "icee", "scoring": SEVERAL}, ValueError, "no score 'icee'"),
        ({"scoring": ("loss", "rules")}, ValueError, "'rules', which is not a measure"),
        ({"measures": "mean_rule_c2"}, TypeError, r"sequence of scorers.*got 'mean_rule_c2'"),
        ({"measures": ["c3"]}, ValueError, "no score 'c3'"),
        ({"measures": [own_score, own_score]}, ValueError, "not in use, got 'own_score'"),
        ({"measures": [lambda *_: 0.0] * 2}, ValueError, "not in use, got '<lambda>'"),
        ({"storage": 3}, TypeError, "storage must be .*got 3"),
        ({"storage": "studies.txt"}, ValueError, "storage must be .*got 'studies.txt'"),
        (
            {"spaces": {"cart": {"max_leaf_nodes": FloatDistribution(2.5, 3)}}},
            TypeError,
            "max_leaf_nodes",
        ),
    ],
    # Functions would store their addresses, which differ between processes.
    ids=lambda value: re.sub(r" at 0x\w+", "", str(value))[:60],
)
def test_parameters_reject_invalid_values(
    options: dict[str, Any], kind: type[Exception], message: str
) -> None:
    with pytest.raises(kind, match=message):
        search_of(**({"extractors": ["cart"], "n_trials": 2} | options)).fit(X, Y)


def test_measures_name_columns_of_negated_losses() -> None:
    search = search_of(extractors=["cart"], measures=["overlap", "stability"], n_trials=1)
    columns = search.fit(X, Y).leaderboard_.columns
    assert {"neg_overlap", "stability"} <= {*columns}
    assert "overlap" not in columns


def test_measure_with_existing_name_is_rejected() -> None:
    def loss(model: Any, X: Any, y: Any) -> float:
        return 0.0

    with pytest.raises(ValueError, match="not in use, got 'loss'"):
        search_of(measures=[loss]).fit(X, Y)


@pytest.mark.parametrize("name", ["failure", "n_repaired", "stopped_after", "warnings"])
def test_measure_with_reserved_name_is_rejected(name: str) -> None:
    with pytest.raises(ValueError, match=f"not in use, got '{name}'"):
        search_of(measures=[{name: "accuracy"}]).fit(X, Y)


def test_failed_trials_are_not_on_the_pareto_front() -> None:
    spaces = SPACES | {"gridex": {"n_slices": CategoricalDistribution([0])}}
    search = search_of(scoring=SEVERAL, spaces=spaces, n_trials=8).fit(X, Y)
    assert set(search.pareto_front_["extractor"]) == {"cart"}
    assert {candidate.extractor for candidate in search.candidates_} == {"cart"}
    states = {trial.state for trial in search.studies_["gridex"].trials}
    assert states == {TrialState.FAIL}
    assert search.leaderboard_["state"].tolist() == ["complete"] * 4 + ["fail"] * 4


class FailingExtractor(TrepanExtractor):
    """Never returns rules."""

    def _extract(self, *arguments: Any) -> Any:
        raise RuntimeError("no rules")


def test_search_for_several_measures_reports_that_all_trials_of_an_extractor_failed() -> None:
    failing = FailingExtractor(BLACK_BOX)
    spaces = {**SPACES, "FailingExtractor": {"max_leaf_nodes": IntDistribution(2, 8)}}
    search = search_of(
        extractors=("cart", "gridex", failing),
        scoring=SEVERAL,
        spaces=spaces,
        allocation="halving",
        n_trials=18,
    ).fit(X, Y)
    assert search.stopped_ == {"FailingExtractor": "after 4 trials each trial failed"}
