"""The race of candidates between folds, and the baselines of a search."""

from __future__ import annotations

import itertools
import threading
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import pandas as pd
import pytest
from optuna.distributions import CategoricalDistribution
from optuna.trial import TrialState
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.ensemble import RandomForestClassifier
from sklearn.tree import DecisionTreeClassifier

from skescore.tuning import ExtractorSearchCV, open_storage

pytestmark = [
    pytest.mark.filterwarnings("ignore:max_leaf_nodes=:UserWarning"),
    pytest.mark.filterwarnings("ignore:The best candidate by .* is a constant:UserWarning"),
]

X, Y = (part[::2] for part in load_iris(return_X_y=True))
PARTS = ("performance", "loss", "loss_q", "size", "completeness_volume", "completeness_instances")


@pytest.fixture(autouse=True)
def _quiet_studies() -> Any:
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    yield
    optuna.logging.set_verbosity(before)


def search_of(**options: Any) -> ExtractorSearchCV:
    settings = {"extractors": ("cart", "gridex"), "n_trials": 8, "cv": 3, "random_state": 0}
    settings["n_repeats"] = 0
    black_box = options.pop("black_box", DecisionTreeClassifier(max_depth=4, random_state=0))
    return ExtractorSearchCV(black_box, **settings | options)


def trials_of(search: ExtractorSearchCV) -> list[optuna.trial.FrozenTrial]:
    return [trial for study in search.studies_.values() for trial in study.trials]


def baselines_of(search: ExtractorSearchCV) -> list[dict[str, Any]]:
    return [trial.params for trial in trials_of(search) if "baseline" in trial.user_attrs]


def is_dominated(folds: list[dict[str, Any]], rival: list[dict[str, Any]], n_rows: int) -> bool:
    """Return whether a rival is better on these folds and in no part worse, part by part."""
    for fold, other in zip(folds, rival, strict=False):
        if other["score"] < fold["score"]:
            return False
        for name in PARTS:
            ahead = other[name] - fold[name]
            if name in ("loss", "loss_q", "size"):
                ahead = -ahead
            if ahead < 0:
                return False
    n_done = len(folds)
    if sum(f["score"] for f in rival[:n_done]) <= sum(f["score"] for f in folds):
        return False
    loss = folds[0]["loss"]
    margin = 2 * np.sqrt(2 * loss * (1 - loss) / n_rows)
    return n_done > 1 or loss - rival[0]["loss"] >= margin


# --- the race ------------------------------------------------------------------------------------


def test_race_prunes_dominated_trials_only() -> None:
    search = search_of(n_trials=16).fit(X, Y)
    complete = [t for t in trials_of(search) if t.state == TrialState.COMPLETE]
    rivals = [t.user_attrs["folds"] for t in complete if "all_rows" in t.user_attrs]
    n_pruned = 0
    for trial in trials_of(search):
        folds = trial.user_attrs["folds"]
        if trial.state == TrialState.PRUNED:
            n_pruned += 1
            assert len(folds) < 3
            assert any(is_dominated(folds, rival, n_rows=25) for rival in rivals)
    assert n_pruned >= 2
    # Pruned candidates are not part of the trade-off.
    pruned = {(c.extractor, c.trial) for c in search.candidates_}
    assert len(pruned) == len(complete)


def test_race_keeps_the_shortest_candidate() -> None:
    box = CategoricalDistribution([1])
    search = search_of(spaces={"gridex": {"n_slices": box}}, scoring="accuracy", n_trials=4)
    search.fit(X, Y)
    (study,) = [s for name, s in search.studies_.items() if name == "gridex"]
    # A single box without a condition is the constant, which is not dominated: it is shortest.
    assert {len(trial.user_attrs["folds"]) for trial in study.trials} == {3}


@pytest.mark.slow
@pytest.mark.parametrize("load", [load_iris, load_wine, load_breast_cancer])
def test_race_has_the_best_score_of_a_full_search(load: Any) -> None:
    rows, labels = (part[::2] for part in load(return_X_y=True))
    options = {
        "black_box": RandomForestClassifier(5, random_state=0),
        "allocation": "even",
        "sampler": optuna.samplers.RandomSampler(seed=1),  # draws the same in both
        "standard_errors": 0.0,
        "n_trials": 10,
    }
    race = search_of(**options).fit(rows, labels)
    full = search_of(pruner=None, **options).fit(rows, labels)
    assert [t.params for t in trials_of(race)] == [t.params for t in trials_of(full)]
    assert {t.state for t in trials_of(full)} == {TrialState.COMPLETE}
    assert any(t.state == TrialState.PRUNED for t in trials_of(race))
    assert race.best_score_ >= full.best_score_ - 1e-9
    n_folds = [sum(len(t.user_attrs["folds"]) for t in trials_of(s)) for s in (race, full)]
    assert n_folds[0] < n_folds[1]


@pytest.mark.slow
def test_race_is_the_same_in_two_processes() -> None:
    one, two = (search_of(n_trials=10, n_jobs=n_jobs).fit(X, Y) for n_jobs in (1, 2))
    pd.testing.assert_frame_equal(
        one.leaderboard_.drop(columns="seconds"), two.leaderboard_.drop(columns="seconds")
    )
    assert one.rules_ == two.rules_


@pytest.mark.parametrize(
    "options",
    [{"min_fidelity": 0.9}, {"scoring": ("loss", "terms_per_rule")}],
    ids=["limit", "objective"],
)
def test_race_keeps_undominated_candidates(options: dict[str, Any]) -> None:
    """A candidate that is the best in one respect is never pruned."""
    search = search_of(n_trials=10, **options).fit(X, Y)
    name, sign = ("fidelity", 1) if "min_fidelity" in options else ("neg_terms_per_rule", 1)
    complete = [t for t in trials_of(search) if t.state == TrialState.COMPLETE]
    for trial in trials_of(search):
        if trial.state != TrialState.PRUNED:
            continue
        folds = trial.user_attrs["folds"]
        values = np.array([sign * fold[name] for fold in folds])
        assert any(
            (
                values <= [sign * fold[name] for fold in other.user_attrs["folds"][: len(folds)]]
            ).all()
            for other in complete
        )


# --- baselines -----------------------------------------------------------------------------------


def test_callback_stops_study_during_baselines() -> None:
    recorded = []

    def stop(study: optuna.Study, trial: optuna.trial.FrozenTrial) -> None:
        recorded.append((study.study_name, "baseline" in trial.user_attrs))
        if len(recorded) == 2:
            study.stop()

    search = search_of(callbacks=[stop], n_trials=4).fit(X, Y)
    assert recorded == [("cart", True)] * 2 + [("gridex", False)] * 4
    assert len(search.leaderboard_) == 6


@pytest.mark.slow
def test_resumed_search_adds_no_baseline_twice(tmp_path: Path) -> None:
    expected = search_of().fit(X, Y)
    storage = tmp_path / "s.journal"
    for number in (0, 1):

        def interrupt(study: Any, trial: Any, number: int = number) -> None:
            if trial.number == number:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            search_of(storage=storage, callbacks=[interrupt]).fit(X, Y)
    resumed = search_of(storage=storage).fit(X, Y)
    assert baselines_of(resumed) == baselines_of(expected)
    columns = ["extractor", "trial", "params", "score", "state"]
    pd.testing.assert_frame_equal(resumed.leaderboard_[columns], expected.leaderboard_[columns])


def test_failed_baselines_are_not_repeated(tmp_path: Path) -> None:
    def no_stump(model: Any, rows: Any, y: Any) -> float:
        if len(model.rules_) < 2:
            raise RuntimeError("too few rules")
        return float(np.mean(model.predict(rows) == y))

    options = {"scoring": no_stump, "storage": tmp_path / "s.journal"}
    first = search_of(n_trials=2, **options).fit(X, Y)
    more = search_of(n_trials=3, **options).fit(X, Y)
    board = more.leaderboard_
    assert (board["error"] == "RuntimeError: too few rules").sum() >= 1
    assert baselines_of(more) == baselines_of(first)
    assert len(board) == 3 + len(baselines_of(first))


def test_workers_count_each_baseline_once(tmp_path: Path) -> None:
    """Both evaluate the same baseline at the same time, and one of them stores it."""
    path, numbers = tmp_path / "s.journal", itertools.count()
    searches: list[ExtractorSearchCV] = []

    def join(study: optuna.Study, trial: optuna.trial.FrozenTrial) -> None:
        if next(numbers) == 0:
            other = search_of(storage=open_storage(path), n_trials=4)
            thread = threading.Thread(target=lambda: searches.append(other.fit(X, Y)))
            thread.start()
            thread.join()

    search = search_of(storage=open_storage(path), n_trials=4, callbacks=[join]).fit(X, Y)
    expected = baselines_of(search_of(n_trials=4).fit(X, Y))
    for one in (search, *searches):
        board = one.leaderboard_
        assert len(board) == 4 + len(expected)
        params = [str(params) for params in board["params"][board["extractor"] == "cart"]]
        assert all(params.count(str(point)) >= 1 for point in expected)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_timeout_of_zero_evaluates_a_readable_tree(n_jobs) -> None:
    search = search_of(timeout=0, n_jobs=n_jobs).fit(X, Y)
    board = search_of(n_trials=4).fit(X, Y).leaderboard_
    leaves = [p["max_leaf_nodes"] for p in board["params"][board["extractor"] == "cart"]]
    assert search.best_name_ == "cart"
    assert search.best_params_["max_leaf_nodes"] == max(n for n in leaves if n <= 8)
    assert len(search.leaderboard_) == 1


def test_timeout_of_zero_without_trees_is_an_error() -> None:
    with pytest.raises(ValueError, match="No trial was started within timeout=0"):
        search_of(extractors=["gridex"], timeout=0).fit(X, Y)


def test_samplers_receive_limits_of_baselines() -> None:
    search = search_of(max_rules=3, n_trials=4).fit(X, Y)
    baselines = [t for t in trials_of(search) if "baseline" in t.user_attrs]
    assert len(baselines) > 1
    for trial in baselines:
        n_rules = trial.user_attrs["all_rows"]["n_rules"]
        assert trial.system_attrs["constraints"] == [n_rules - 3]
