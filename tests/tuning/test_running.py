"""The loop of a search: budgets, rounds, pruners, interrupts, storages, and other processes."""

from __future__ import annotations

import contextlib
import datetime
import functools
import itertools
import json
import math
import os
import pickle
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import optuna
import pandas as pd
import pytest
from optuna.distributions import CategoricalDistribution, IntDistribution
from optuna.exceptions import StorageInternalError
from optuna.storages import RDBStorage
from optuna.trial import TrialState
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import KFold
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier

from skescore.black_boxes import CallableClassifier
from skescore.extractors import CARTExtractor
from skescore.metrics import ice_score
from skescore.rules import RuleSet
from skescore.tuning import (
    ExtractorObjective,
    ExtractorSearchCV,
    FoldEvaluator,
    FoldResult,
    SearchCallback,
    open_storage,
    search_space,
)
from skescore.tuning.spaces import starting_points

# Fewer leaves than classes are a bad candidate, not an invalid one.
pytestmark = pytest.mark.filterwarnings("ignore:max_leaf_nodes=:UserWarning")

X, Y = (part[::3] for part in load_iris(return_X_y=True))
BLACK_BOX = DecisionTreeClassifier(max_depth=3, random_state=0)
LEAVES = {"cart": {"max_leaf_nodes": IntDistribution(2, 9)}}


@pytest.fixture(autouse=True)
def _quiet_studies() -> Iterator[None]:
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    yield
    optuna.logging.set_verbosity(before)


def search_of(black_box: Any = BLACK_BOX, **options: Any) -> ExtractorSearchCV:
    settings = {"extractors": ("cart", "gridex"), "n_trials": 12, "cv": 3, "random_state": 0}
    settings["n_repeats"] = 0
    settings |= options
    return ExtractorSearchCV(black_box, **settings)


def board_of(search: ExtractorSearchCV) -> pd.DataFrame:
    return search.leaderboard_.drop(columns="seconds")


def baselines_of(search: ExtractorSearchCV) -> list[optuna.trial.FrozenTrial]:
    """Return the trials that the search makes in addition to its budget."""
    return [trial for trial in trials_of(search) if "baseline" in trial.user_attrs]


def trials_of(search: ExtractorSearchCV) -> list[optuna.trial.FrozenTrial]:
    return [trial for study in search.studies_.values() for trial in study.trials]


@pytest.fixture(scope="module")
def unbroken() -> ExtractorSearchCV:
    return search_of().fit(X, Y)


@pytest.fixture
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[], Any]]:
    """Return a function that opens the storage, a journal by default, like another process."""
    kind = getattr(request, "param", "journal")
    path = f"{tmp_path}/s.journal" if kind == "journal" else f"sqlite:///{tmp_path}/s.db"
    storages = []

    def open_it() -> Any:
        storages.append(open_storage(path))
        return storages[-1]

    yield open_it
    for storage in storages:
        if hasattr(storage, "engine"):
            storage.engine.dispose()


class BreakdownError(Exception):
    """Unexpected error of a callback."""


def raising(error: BaseException, name: str, number: int) -> Callable[..., None]:
    """Return a callback that raises after one trial."""

    def callback(study: optuna.Study, trial: optuna.trial.FrozenTrial) -> None:
        if study.study_name.endswith(name) and trial.number == number:
            raise error

    return callback


# --- rounds --------------------------------------------------------------------------------------


def test_halving_stops_the_worse_extractor(
    unbroken: ExtractorSearchCV,
) -> None:
    assert list(unbroken.stopped_) == ["gridex"]
    n_baselines = len(baselines_of(unbroken))
    counts = {name: len(study.trials) for name, study in unbroken.studies_.items()}
    # 4 for each, then 4 for the better.
    assert counts == {"cart": 8 + n_baselines, "gridex": 4}
    n_first = {"cart": 4 + n_baselines, "gridex": 4}
    best = {
        name: max(t.value for t in s.trials[: n_first[name]] if t.state == TrialState.COMPLETE)
        for name, s in unbroken.studies_.items()
    }
    assert best["cart"] > best["gridex"]
    reason = unbroken.stopped_["gridex"]
    assert reason.startswith("after 4 trials ")
    assert f"CART had {best['cart']:.4g}" in reason
    board = unbroken.leaderboard_
    assert set(board["stopped"][board["extractor"] == "gridex"]) == {reason}
    assert set(board["stopped"][board["extractor"] == "cart"]) == {""}
    assert len(board) == 12 + n_baselines


def test_stop_reason_names_the_upper_bound() -> None:
    # A single box for everything: the labels of two of three kinds are certainly wrong.
    spaces = {"gridex": {"n_slices": CategoricalDistribution([1])}}
    search = search_of(spaces=spaces).fit(X, Y)
    (score,) = set(search.leaderboard_["score"][search.leaderboard_["extractor"] == "gridex"])
    leader = max(trial.value for trial in search.studies_["cart"].trials[:4])
    reason = search.stopped_["gridex"]
    assert reason.startswith("after 4 trials ")
    assert "it cannot beat CART" in reason
    assert f"{score:.4g}" in reason  # of equal candidates the best parts are those of each
    assert f"of the trials ({leader:.4g})" in reason


@pytest.mark.parametrize("n_trials", [2, 9, 13])
def test_search_spends_the_budget_exactly(n_trials: int) -> None:
    search = search_of(
        n_trials=n_trials, extractors=["cart", "gridex"], spaces=LEAVES, refit=False
    ).fit(X, Y)
    assert len(trials_of(search)) == len(search.leaderboard_) == n_trials
    even = search_of(n_trials=n_trials, allocation="even", spaces=LEAVES, refit=False).fit(X, Y)
    counts = [len(study.trials) for study in even.studies_.values()]
    assert counts == [math.ceil(n_trials / 2), n_trials // 2]
    assert even.stopped_ == {}


def test_timeout_limits_search_without_n_trials() -> None:
    def three_each(study: optuna.Study, trial: optuna.trial.FrozenTrial) -> None:
        if trial.number == 2:
            study.stop()

    search = search_of(n_trials=None, timeout=1e6, callbacks=[three_each], spaces=LEAVES)
    search.fit(X, Y)
    assert {name: len(study.trials) for name, study in search.studies_.items()} == {
        "cart": 3,
        "gridex": 3,
    }
    short = search_of(extractors=["gridex"], n_trials=None, timeout=1e-9, refit=False)
    with pytest.raises(ValueError, match="No trial was started within timeout=1e-09 seconds"):
        short.fit(X, Y)


def test_trials_draw_different_parameters() -> None:
    space = {"max_leaf_nodes": IntDistribution(2, 10_000)}
    search = search_of(extractors=["cart"], n_trials=24, spaces={"cart": space}).fit(X, Y)
    drawn = [trial.params["max_leaf_nodes"] for trial in trials_of(search)]
    first, second = drawn[len(starting_points("cart", space, Y, "classification")) :][:2]
    assert first != second


def test_callbacks_receive_measurements() -> None:
    recorded = []

    def note(study: optuna.Study, trial: optuna.trial.FrozenTrial) -> None:
        recorded.append((study, trial))

    search = search_of(n_trials=6, callbacks=[note], spaces=LEAVES, pruner=None).fit(X, Y)
    assert len(recorded) == 6
    for study, trial in recorded:
        name = study.study_name
        assert study is search.studies_[name]
        assert trial.state == TrialState.COMPLETE
        assert trial == study.trials[trial.number]
        assert trial.user_attrs["extractor"] == name
        assert len(trial.user_attrs["folds"]) == 3
        mean = np.mean([fold["score"] for fold in trial.user_attrs["folds"]])
        assert trial.value == trial.user_attrs["score"] == pytest.approx(mean)
        assert trial.user_attrs["black_box_rows"] > 0


def test_callback_stops_a_single_study() -> None:
    recorded = []

    def stop_first(study: optuna.Study, trial: optuna.trial.FrozenTrial) -> None:
        recorded.append(study.study_name)
        if study.study_name == "cart":
            study.stop()

    search = search_of(callbacks=[stop_first, lambda *_: None], spaces=LEAVES).fit(X, Y)
    assert recorded == ["cart", *["gridex"] * 11]
    assert len(search.leaderboard_) == 12
    search.set_params(callbacks=[lambda study, _: study.stop()], n_trials=30).fit(X, Y)
    assert len(search.leaderboard_) == 2


# --- pruners -------------------------------------------------------------------------------------


@pytest.mark.parametrize("scoring", ["neg_fire", "neg_q", "ice"])
def test_bound_pruner_keeps_the_winner(scoring: str) -> None:
    options = {
        "scoring": scoring,
        "standard_errors": 0,
        "cv": 5,
        "spaces": LEAVES,
        "n_trials": 14,
        "extractors": ["cart"],
        "sampler": optuna.samplers.RandomSampler(seed=4),
    }
    black_box = DecisionTreeClassifier(max_depth=5, random_state=0)
    rows = X[:, :2]  # for which more leaves always improve the rules
    bound = search_of(black_box, pruner="bound", **options).fit(rows, Y)
    free = search_of(black_box, pruner=None, **options).fit(rows, Y)
    assert len({trial.value for trial in trials_of(free)}) > 4
    assert bound.best_score_ == free.best_score_
    assert bound.best_params_ == free.best_params_
    stopped = 0
    for pruned, full in zip(trials_of(bound), trials_of(free), strict=True):
        assert pruned.params == full.params
        assert full.state == TrialState.COMPLETE
        if pruned.state == TrialState.PRUNED:
            stopped += 1
            pruned_folds = pruned.user_attrs["folds"]
            assert len(pruned_folds) < 5
            assert pruned.user_attrs["error"] == (
                f"Stopped by the pruner after {len(pruned_folds)} of 5 folds."
            )
            full_folds = full.user_attrs["folds"][: len(pruned_folds)]
            assert [f["score"] for f in pruned_folds] == [f["score"] for f in full_folds]
            # Its held-out mean could not have been the best for any results on the other folds.
            best = {"ice": ice_score(1.0, 1, 1.0)}.get(scoring, 0.0)
            reach = (
                sum(fold["score"] for fold in pruned_folds) + best * (5 - len(pruned_folds))
            ) / 5
            assert full.value <= reach < bound.leaderboard_["score"].max()
        else:
            assert pruned.value == full.value
    assert stopped >= (scoring != "ice")
    states = bound.leaderboard_["state"].tolist()
    assert states == ["complete"] * (14 - stopped) + ["pruned"] * stopped
    assert len(bound.candidates_) == len(
        {t.params["max_leaf_nodes"] for t in trials_of(bound)}
        - {t.params["max_leaf_nodes"] for t in trials_of(bound) if t.state == TrialState.PRUNED}
    )


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_duplicates_of_pruned_trials_are_pruned(seed: int) -> None:
    # Many of the four trials that start together are equal.
    spaces = {"cart": {"max_leaf_nodes": CategoricalDistribution([2, 3])}}
    search = search_of(
        extractors=["cart"],
        spaces=spaces,
        scoring="neg_fire",
        pruner="bound",
        sampler=optuna.samplers.RandomSampler(seed=seed),
        n_jobs=2,
    ).fit(X, Y)
    for trial in trials_of(search):
        complete = trial.state == TrialState.COMPLETE
        assert complete == (len(trial.user_attrs["folds"]) == 3)
    scores = search.leaderboard_["score"][search.leaderboard_["state"] == "complete"]
    params = search.leaderboard_["params"].map(str)[scores.index]
    assert all(group.nunique() == 1 for _, group in scores.groupby(params))


def test_optuna_pruner_runs_after_every_fold() -> None:
    def by_size(model: Any, X: Any, y: Any) -> float:
        return float(len(model.rules_))

    study = optuna.create_study(direction="maximize", study_name="cart")
    # One, then four that start together; the last one is judged by those that ended before.
    for leaves in (8, 7, 6, 9, 5, 2):
        study.enqueue_trial({"max_leaf_nodes": leaves})
    black_box = DecisionTreeClassifier(random_state=0)
    noisy = np.random.default_rng(0).permutation(Y)  # enough leaves to distinguish kinds
    pruner = optuna.pruners.MedianPruner(n_startup_trials=2)
    study.pruner = pruner
    search = search_of(
        black_box,
        extractors=["cart"],
        n_trials=6,
        scoring=by_size,
        pruner=pruner,
        studies={"cart": study},
        spaces=LEAVES,
        standard_errors=0,
    ).fit(X, noisy)
    states = {trial.params["max_leaf_nodes"]: trial.state for trial in study.trials}
    assert states[2] == TrialState.PRUNED
    assert states[8] == states[9] == TrialState.COMPLETE
    stopped = next(trial for trial in study.trials if trial.params["max_leaf_nodes"] == 2)
    assert stopped.intermediate_values == {0: 2.0}
    assert stopped.user_attrs["error"] == "Stopped by the pruner after 1 of 3 folds."
    assert search.best_params_["max_leaf_nodes"] in {8, 9}


# --- interrupts ----------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:The best candidate by ice is a constant")
@pytest.mark.parametrize("is_baseline", [True, False])
def test_interrupt_keeps_finished_trials(unbroken: ExtractorSearchCV, is_baseline: bool) -> None:
    n_baselines = len(baselines_of(unbroken))
    last = 1 if is_baseline else n_baselines + 2
    search = search_of(callbacks=[raising(KeyboardInterrupt(), "cart", last)], pruner=None)
    with pytest.raises(KeyboardInterrupt):
        search.fit(X, Y)
    board = search.leaderboard_
    assert sorted(zip(board["extractor"], board["trial"], strict=True)) == [
        *(("cart", number) for number in range(last + 1)),
        *([] if is_baseline else [("gridex", 0), ("gridex", 1)]),
    ]
    assert set(board["state"]) == {"complete"}
    assert search.best_params_ == board.iloc[0]["params"]
    assert is_baseline or (search.predict(X) == Y).mean() > 0.9
    assert search.search_seconds_ > 0
    assert len(search.pareto_front_) >= 1


@pytest.mark.parametrize("options", [{}, {"timeout": 1e6}, {"storage": "journal"}])
def test_interrupt_without_results_is_raised(options: dict[str, Any], tmp_path: Path) -> None:
    def interrupted(model: Any, X: Any, y: Any) -> float:
        raise KeyboardInterrupt

    if "storage" in options:
        options = {"storage": tmp_path / "search.journal"}
    with pytest.raises(KeyboardInterrupt):
        search_of(scoring=interrupted, **options).fit(X, Y)


@pytest.mark.filterwarnings("ignore:The best candidate by ice is a constant")
@pytest.mark.parametrize("number", [1, 8])  # a baseline and a trial of the budget
def test_interrupted_trials_are_repeated(
    opened: Callable[[], Any], unbroken: ExtractorSearchCV, number: int
) -> None:
    storage = opened()
    callback = raising(KeyboardInterrupt(), "cart", number)
    search = search_of(storage=storage, callbacks=[callback], pruner=None)
    with pytest.raises(KeyboardInterrupt):
        search.fit(X, Y)
    n_baselines = len(baselines_of(unbroken))
    assert 1 < n_baselines <= 8
    assert len(search.leaderboard_) < 12 + n_baselines
    going_on = search_of(storage=opened(), pruner=None).fit(X, Y)
    board = going_on.leaderboard_
    assert len(board) == 12 + n_baselines
    expected = [trial.params for trial in baselines_of(unbroken)]
    assert [trial.params for trial in baselines_of(going_on)] == expected
    assert set(board["state"]) == {"complete"}
    states = [trial.state for trial in trials_of(going_on)]
    assert TrialState.RUNNING not in states
    assert TrialState.WAITING not in states
    # No starting point is lost; the baselines are those of CART.
    for name, study in list(going_on.studies_.items())[1:]:
        done = [t.params for t in study.trials if t.state == TrialState.COMPLETE]
        points = starting_points(name, search_space(name, X, Y), Y, "classification")
        for point in points[: len(done)]:
            assert any(point.items() <= params.items() for params in done), (name, point)
    tried = {json.dumps(t.params) for t in trials_of(search)}
    assert tried <= {json.dumps(params) for params in board["params"]}


# --- storages ------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("opened", ["journal", "sqlite"], indirect=True)
def test_storage_does_not_change_results(
    opened: Callable[[], Any], unbroken: ExtractorSearchCV
) -> None:
    search = search_of(storage=opened(), study_name="iris").fit(X, Y)
    pd.testing.assert_frame_equal(board_of(search), board_of(unbroken))
    assert search.rules_ == unbroken.rules_
    assert search.stopped_ == unbroken.stopped_
    names = [study.study_name for study in search.studies_.values()]
    assert names == ["iris/cart", "iris/gridex"]
    second_data = pickle.loads(pickle.dumps(search))
    pd.testing.assert_frame_equal(second_data.leaderboard_, search.leaderboard_)


def test_resumed_search_counts_existing_trials(opened: Callable[[], Any]) -> None:
    options = {"extractors": ["cart"], "spaces": LEAVES}
    first = search_of(storage=opened(), n_trials=5, **options).fit(X, Y)
    existing = [trial.params for trial in trials_of(first)]
    second_fitted = search_of(storage=opened(), n_trials=5, **options).fit(X, Y)
    pd.testing.assert_frame_equal(second_fitted.leaderboard_, first.leaderboard_)  # seconds as well
    more = search_of(storage=opened(), n_trials=7, **options).fit(X, Y)
    assert [t.params for t in trials_of(more)][:5] == existing
    assert len(more.leaderboard_) == len(trials_of(more)) == 7


@pytest.mark.slow
def test_search_reads_its_storage_rarely(
    opened: Callable[[], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each read is a query: three per trial, including the sampler, and three per baseline."""
    read, queries = optuna.Study.get_trials, []

    def counting(study: optuna.Study, *args: Any, **options: Any) -> list[Any]:
        queries.append(study.study_name)
        return read(study, *args, **options)

    monkeypatch.setattr(optuna.Study, "get_trials", counting)
    for n_trials in (12, 36):
        queries.clear()
        options = {"storage": opened(), "n_trials": n_trials, "study_name": f"of {n_trials}"}
        search = search_of(**options).fit(X, Y)
        assert len(queries) <= 3 * (n_trials + len(baselines_of(search))) + 10


class Follower(SearchCallback):
    """Records the stages of a search and the rules of its finished trials."""

    def __init__(self) -> None:
        self.stages: list[str] = []
        self.rules: dict[int, RuleSet] = {}

    def on_stage(self, search: Any, stage: str) -> None:
        self.search = search
        self.stages.append(stage)

    def __call__(self, study: Any, trial: Any) -> None:
        row = {"extractor": study.study_name.rpartition("/")[2], "params": trial.params}
        self.rules[len(self.rules)] = self.search.fit_candidate(row).rules_


@pytest.mark.parametrize("max_rows", [None, 40])
def test_callback_follows_stages_and_extracts_rules(max_rows: int | None) -> None:
    follower = Follower()
    options = {"extractors": ["cart"], "spaces": LEAVES, "n_trials": 3, "pruner": None}
    search = search_of(max_rows=max_rows, callbacks=follower, **options).fit(X, Y)
    sampled = [] if max_rows is None else ["all_rows"]
    stages = [stage for stage in follower.stages if stage != "finalists"]
    assert stages == ["rows", "black_boxes", "trials", *sampled, "winner"]
    is_compared = search.leaderboard_["score_repeated"].notna().any()
    assert follower.stages[3:4] == (["finalists"] if is_compared else [*sampled, "winner"][:1])
    rows = search.leaderboard_.set_index("trial")
    assert set(follower.rules) == set(rows.index)
    if max_rows is None:  # later, rules are extracted from the same rows
        for number, rules in follower.rules.items():
            assert rules == search.fit_candidate(rows.loc[number]).rules_
    assert not hasattr(search, "_trial_rows")


def test_callbacks_can_enqueue_trials(opened: Callable[[], Any]) -> None:
    def queues(study: optuna.Study, trial: optuna.trial.FrozenTrial) -> None:
        if study.study_name.endswith("cart") and trial.number == 6:
            other = optuna.load_study(
                study_name=study.study_name.replace("cart", "gridex"), storage=study._storage
            )
            other.enqueue_trial({"n_slices": 2})

    search = search_of(storage=opened(), callbacks=[queues], pruner=None).fit(X, Y)
    assert {trial.state for trial in trials_of(search)} == {TrialState.COMPLETE}
    assert len(trials_of(search)) == 12 + len(baselines_of(search))
    queued = [t for t in search.studies_["gridex"].trials if "fixed_params" in t.system_attrs]
    assert [trial.params["n_slices"] for trial in queued] == [2]


def test_queued_trials_start_in_batches(opened: Callable[[], Any]) -> None:
    """Results of the first trials decide which of the next are extracted from all rows."""
    first = search_of(
        storage=opened(),
        n_trials=2,
        allocation="even",
        spaces=LEAVES | {"gridex": {"n_slices": IntDistribution(2, 9)}},
    )
    study = first.fit(X, Y).studies_["cart"]
    for leaves in range(2, 10):
        study.enqueue_trial({"max_leaf_nodes": leaves})
    n_running = []

    def watches(study: optuna.Study, trial: optuna.trial.FrozenTrial) -> None:
        n_running.append(
            sum(t.state == TrialState.RUNNING for t in study.get_trials(deepcopy=False))
        )

    search = clone(first).set_params(storage=opened(), n_trials=12, callbacks=[watches])
    search.fit(X, Y)
    assert max(n_running) < 4
    assert len(trials_of(search)) == 12


@pytest.mark.slow
def test_new_worker_is_detected_before_extraction(
    opened: Callable[[], Any],
) -> None:
    boards = []

    def joins(study: optuna.Study, trial: optuna.trial.FrozenTrial) -> None:
        if study.study_name.endswith("gridex") and trial.number == 1:
            # It waits for the running trials of the first until its time is over.
            boards.append(board_of(search_of(storage=opened(), timeout=2).fit(X, Y)))

    search = search_of(storage=opened(), callbacks=[joins]).fit(X, Y)
    n_trials = 12 + len(baselines_of(search))
    assert len(boards[0]) < len(board_of(search)) == n_trials
    given_back = [trial for trial in trials_of(search) if trial.state == TrialState.FAIL]
    assert all("folds" not in trial.user_attrs for trial in given_back)
    assert len(trials_of(search)) == n_trials + len(given_back)


@pytest.mark.slow
@pytest.mark.parametrize(
    "error", [BreakdownError("no more paper"), KeyboardInterrupt()], ids=["error", "interrupt"]
)
def test_resume_between_batches_gives_the_same_result(
    opened: Callable[[], Any], unbroken: ExtractorSearchCV, error: BaseException
) -> None:
    search = search_of(storage=opened(), callbacks=[raising(error, "gridex", 2)])
    with pytest.raises(type(error)):
        search.fit(X, Y)
    going_on = search_of(storage=opened()).fit(X, Y)
    pd.testing.assert_frame_equal(board_of(going_on), board_of(unbroken))
    assert going_on.rules_ == unbroken.rules_


@pytest.fixture(scope="module")
def of_the_dead() -> Callable[[Path], bytes]:
    """Change the process id in a journal to that of a process that has ended."""
    ended = subprocess.Popen([sys.executable, "-S", "-c", ""])
    ended.wait()
    ours, theirs = (f'"process":{number},'.encode() for number in (os.getpid(), ended.pid))

    def make(path: Path) -> bytes:
        path.write_bytes(path.read_bytes().replace(ours, theirs))
        return path.read_bytes()

    return make


@pytest.fixture(scope="module")
def journal_of_the_dead(
    tmp_path_factory: pytest.TempPathFactory, of_the_dead: Callable[[Path], bytes]
) -> list[bytes]:
    """Return the lines of a whole search as if written by a process that has ended."""
    path = tmp_path_factory.mktemp("whole") / "s.journal"
    search_of(storage=open_storage(path)).fit(X, Y)
    return of_the_dead(path).splitlines(keepends=True)


def check_killed_at(lines: list[bytes], unbroken: ExtractorSearchCV, path: Path) -> None:
    path.write_bytes(b"".join(lines))
    check_like(unbroken, path, f"killed after line {len(lines)}: {lines[-1]!r}")


def check_like(unbroken: ExtractorSearchCV, path: Path, broken: object) -> None:
    search = search_of(storage=open_storage(path)).fit(X, Y)
    columns = ["extractor", "params", "score", "state", "n_rules"]
    # As texts, because the score of a pruned trial is NaN, which equals nothing.
    result, expected = (
        sorted(map(str, one.leaderboard_[columns].itertuples(index=False)))
        for one in (search, unbroken)
    )
    assert result == expected, broken
    assert search.rules_ == unbroken.rules_


# Fault: a search that was killed when a trial was in the storage, but no heartbeat of its worker,
# continued as if another worker were there: it waited two minutes, and ran other trials.
@pytest.mark.slow
def test_resume_after_kill_at_trial_creation_is_exact(
    journal_of_the_dead: list[bytes], unbroken: ExtractorSearchCV, tmp_path: Path
) -> None:
    creates = [n for n, line in enumerate(journal_of_the_dead) if b'"op_code":4,' in line]
    assert len(creates) == 12 + len(baselines_of(unbroken))
    # The first and last baselines, and trials of the budget.
    for number in creates[:1] + creates[2:5] + creates[9:11]:
        lines = journal_of_the_dead[: number + 1]
        check_killed_at(lines, unbroken, tmp_path / f"{number}.journal")


@pytest.mark.slow
def test_resume_after_kill_at_any_line_is_exact(
    journal_of_the_dead: list[bytes], unbroken: ExtractorSearchCV, tmp_path: Path
) -> None:
    every = 1 if os.environ.get("SKESCORE_HOSTILE") else 31
    for number in range(1, len(journal_of_the_dead), every):
        check_killed_at(journal_of_the_dead[:number], unbroken, tmp_path / f"{number}.journal")


class KilledError(BaseException):
    """Stand-in for a killed process, which writes nothing more."""


def break_off(path: Path, number: int, how: str) -> None:
    """Search until a line is written: interrupt before or after it, or kill."""
    storage = open_storage(path)
    write, numbers = storage._backend.append_logs, itertools.count()

    def broken(logs: list[dict[str, Any]]) -> None:
        at = next(numbers)
        if at >= number and how == "killed":
            raise KilledError
        if at != number or how == "after":
            write(logs)
        if at == number:
            raise KeyboardInterrupt

    storage._backend.append_logs = broken
    with contextlib.suppress(KilledError, KeyboardInterrupt):
        search_of(storage=storage).fit(X, Y)


# Fault: a search that was interrupted while a trial got its parameters tried some twice
# and others never. These are the lines after which the fourth trial and the ninth exist.
@pytest.mark.parametrize("number", [83, 210])
def test_resume_after_interrupt_at_trial_creation_is_exact(
    number: int, unbroken: ExtractorSearchCV, tmp_path: Path
) -> None:
    path = tmp_path / "s.journal"
    break_off(path, number, "after")
    check_like(unbroken, path, number)


@pytest.mark.slow
def test_resume_after_random_interruptions_is_exact(
    of_the_dead: Callable[[Path], bytes], unbroken: ExtractorSearchCV, tmp_path: Path
) -> None:
    for case in range(int(os.environ.get("SKESCORE_HOSTILE", "0")) // 50 or 8):
        rng, path = np.random.default_rng(case), tmp_path / f"{case}.journal"
        broken = []
        for _ in range(rng.integers(1, 5)):
            number = int(rng.integers(2, rng.choice([60, 290])))
            how = ["before", "after", "killed"][: 3 - any(h == "killed" for _, h in broken)]
            broken.append((number, str(rng.choice(how))))  # trials that kill twice are given up
            break_off(path, *broken[-1])
            of_the_dead(path)
        check_like(unbroken, path, (case, broken))


# Fault: a repeated trial had a later number, which determines the sampler and ties.
@pytest.mark.slow
def test_resume_with_renumbered_trials_is_exact(tmp_path: Path) -> None:
    of = functools.partial(search_of, extractors=("cart",), n_trials=24)
    first = open_storage(tmp_path / "first.journal")
    with pytest.raises(BreakdownError):
        of(storage=first, callbacks=[raising(BreakdownError(), "cart", 15)]).fit(X, Y)
    renumbered = open_storage(tmp_path / "renumbered.journal")
    (name,) = optuna.get_all_study_names(first)
    before = optuna.load_study(study_name=name, storage=first)
    study = optuna.create_study(study_name=name, storage=renumbered, directions=before.directions)
    for key, value in before.user_attrs.items():
        study.set_user_attr(key, value)
    for place in [*range(4, 8), *range(4), *range(8, 12), *reversed(range(12, 16))]:
        trial = before.trials[place]
        trial.user_attrs["position"] = place
        study.add_trial(trial)
    unbroken, going_on = of().fit(X, Y), of(storage=renumbered).fit(X, Y)
    columns = ["params", "score", "n_rules"]
    pd.testing.assert_frame_equal(board_of(going_on)[columns], board_of(unbroken)[columns])
    assert going_on.rules_ == unbroken.rules_


# Fault: the remaining time was measured by a clock that may be set.
def test_changed_clock_has_no_effect(
    unbroken: ExtractorSearchCV, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    hours, more, now = itertools.cycle([0, 3, -3, 0, -7]), itertools.count(), time.time

    class Clock(datetime.datetime):
        @classmethod
        def now(cls, tz: datetime.tzinfo | None = None) -> datetime.datetime:  # type: ignore[override]
            return datetime.datetime.now(tz) + datetime.timedelta(hours=next(hours))

    monkeypatch.setattr(time, "time", lambda: now() + 7200 * next(more))
    where = "optuna.storages.journal._storage.datetime"
    is_class = isinstance(optuna.storages.journal._storage.datetime, type)
    as_module = SimpleNamespace(**vars(datetime) | {"datetime": Clock})
    monkeypatch.setattr(where, Clock if is_class else as_module)
    search = search_of(storage=open_storage(tmp_path / "s.journal"), timeout=3600).fit(X, Y)
    starts = [trial.datetime_start for trial in search.studies_["cart"].trials]
    assert starts != sorted(starts)
    pd.testing.assert_frame_equal(board_of(search), board_of(unbroken))


def test_callback_error_leaves_no_running_trial(
    opened: Callable[[], Any], unbroken: ExtractorSearchCV
) -> None:
    error = BreakdownError("no more paper")
    search = search_of(storage=opened(), callbacks=[raising(error, "cart", 1)])
    with pytest.raises(BreakdownError, match="no more paper"):
        search.fit(X, Y)
    storage = opened()
    for summary in optuna.get_all_study_summaries(storage):
        study = optuna.load_study(study_name=summary.study_name, storage=storage)
        # Those that were started but not measured are queued.
        assert all(trial.state != TrialState.RUNNING for trial in study.trials)
    # So that no other worker waits for it.
    going_on = search_of(storage=storage).fit(X, Y)
    assert len(going_on.leaderboard_) == 12 + len(baselines_of(going_on))
    assert set(going_on.leaderboard_["state"]) <= {"complete", "pruned"}
    assert going_on.best_score_ == unbroken.best_score_


@pytest.mark.parametrize("n_calls", [1, 5])
def test_evaluation_error_leaves_no_partial_trial(
    n_calls: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process ends when a candidate has been evaluated on some folds only."""
    evaluate, n_made = FoldEvaluator.__call__, 0

    def break_down(self: FoldEvaluator, extractor: Any, fold: int) -> FoldResult:
        nonlocal n_made
        n_made += type(extractor).__name__ != "CARTExtractor"
        if n_made > n_calls:
            raise BreakdownError("no more memory")
        return evaluate(self, extractor, fold)

    with monkeypatch.context() as patch:
        patch.setattr(FoldEvaluator, "__call__", break_down)
        with pytest.raises(BreakdownError, match="no more memory"):
            search_of(storage=tmp_path / "a.log", pruner="race").fit(X, Y)
    going_on = search_of(storage=tmp_path / "a.log", pruner="race").fit(X, Y)
    assert {len(candidate.folds) for candidate in going_on.candidates_} == {3}
    afresh = search_of(pruner="race").fit(X, Y)
    assert (going_on.best_name_, going_on.best_score_) == (afresh.best_name_, afresh.best_score_)


DIFFERENT: list[tuple[dict[str, Any], str]] = [
    ({"random_state": 1}, "seed"),
    ({"cv": 4}, "rows"),
    ({"scoring": "neg_fire"}, r"scoring .*neg_fire"),
    ({"scoring": ("loss", "n_rules")}, "directions"),
    ({"measures": ["mean_rule_coverage"]}, "measures"),
    ({"estimator": DecisionTreeClassifier(max_depth=1, random_state=0)}, "black_box"),
    ({"rows": X[::-1]}, ""),
    ({"rows": X * 1.5}, "rows"),
    ({"spaces": {"cart": {"max_leaf_nodes": CategoricalDistribution([3])}}}, "space"),
]


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("stored") / "search.journal"
    search_of(storage=path, extractors=["cart"], n_trials=2, spaces=LEAVES).fit(X, Y)
    return path


def contents(path: Path) -> list[Any]:
    storage = open_storage(path)
    summaries = optuna.get_all_study_summaries(storage)
    studies = [optuna.load_study(study_name=s.study_name, storage=storage) for s in summaries]
    return [(study.study_name, study.user_attrs, study.trials) for study in studies]


@pytest.mark.parametrize(("options", "difference"), DIFFERENT, ids=lambda value: str(value)[:30])
def test_storage_rejects_a_different_search_of_same_name(
    stored: Path, options: dict[str, Any], difference: str
) -> None:
    before = contents(stored)
    rows = options.get("rows", X)
    options = {k: v for k, v in options.items() if k != "rows"}
    settings = {"storage": stored, "extractors": ["cart"], "n_trials": 4, "spaces": LEAVES}
    search = search_of(options.pop("estimator", BLACK_BOX), **settings | options)
    with pytest.raises(ValueError, match=rf"(?s)study 'skescore/cart' .*{difference}.*study name"):
        search.fit(rows, Y)
    assert contents(stored) == before  # and nothing was started
    other = search_of(
        search.estimator, **settings | options | {"study_name": "other", "storage": None}
    )
    assert len(other.fit(rows, Y).leaderboard_) == 4


def test_search_on_other_rows_is_rejected(
    tmp_path: Path,
) -> None:
    frozen = FrozenEstimator(DecisionTreeClassifier(max_depth=3, random_state=0).fit(X, Y))
    options = {"storage": tmp_path / "s.journal", "extractors": ["cart"]}
    options["cv"] = KFold(3, shuffle=True, random_state=0)
    search_of(frozen, n_trials=2, **options).fit(X)
    with pytest.raises(ValueError, match="belongs to another search"):
        search_of(frozen, n_trials=4, **options).fit(X * 1.1)


def test_function_scoring_is_identified_by_name(
    tmp_path: Path,
) -> None:
    def made() -> Callable[..., float]:  # a new function, as in another run of a script
        def few_rules(model: Any, X: Any, y: Any) -> float:
            return -float(len(model.rules_))

        return few_rules

    options = {"storage": tmp_path / "s.journal", "extractors": ["cart"], "spaces": LEAVES}
    search_of(scoring=made(), n_trials=2, **options).fit(X, Y)
    second_fitted = search_of(scoring=made(), n_trials=3, **options).fit(X, Y)
    assert len(second_fitted.leaderboard_) == 3
    other = {"scoring": lambda model, X, y: 0.0, "n_trials": 3} | options
    with pytest.raises(ValueError, match="belongs to another search"):
        search_of(**other).fit(X, Y)


# Fitted on all rows, both predict each of them correctly, as many models do.
NEIGHBOR = FrozenEstimator(KNeighborsClassifier(1).fit(X, Y))
FOREST = FrozenEstimator(ExtraTreesClassifier(5, random_state=0).fit(X, Y))


def flipped(rows: Any) -> Any:
    """Return the class of the nearest neighbor, but class 2 for rows unlike all others."""
    y_pred = NEIGHBOR.predict(rows)
    return np.where(np.asarray(rows)[:, 0] > 2 * np.asarray(rows)[:, 2], y_pred, 2)


@pytest.mark.parametrize("how", ["storage", "studies"])
@pytest.mark.parametrize(
    ("first", "second", "difference"),
    [
        (FOREST, NEIGHBOR, "ExtraTreesClassifier.*now .*KNeighborsClassifier"),
        (
            FrozenEstimator(ExtraTreesClassifier(5, random_state=1).fit(X, Y)),
            FOREST,
            "random_state=1.*now .*random_state=0",
        ),
        (
            CallableClassifier(NEIGHBOR.predict, classes=[0, 1, 2]),
            CallableClassifier(flipped, classes=[0, 1, 2]),
            "predict.*now .*flipped",
        ),
        (
            FrozenEstimator(KNeighborsClassifier(1).fit(X, Y)),
            FrozenEstimator(KNeighborsClassifier(1).fit(X[::-1] * 1.001, Y)),
            "different predictions",
        ),
    ],
    ids=["kind", "parameters", "function", "predictions"],
)
def test_resumed_search_rejects_another_black_box(
    first: Any, second: Any, difference: str, how: str, tmp_path: Path
) -> None:
    options: dict[str, Any] = {"extractors": ["cart"], "spaces": LEAVES}
    if how == "storage":
        options["storage"] = tmp_path / "s.journal"
    else:
        options["studies"] = {"cart": optuna.create_study(direction="maximize")}
    search_of(first, n_trials=2, **options).fit(X)
    with pytest.raises(
        ValueError, match=rf"(?s)belongs to another search .*black_box.*{difference}"
    ):
        search_of(second, n_trials=4, **options).fit(X)
    assert len(search_of(first, n_trials=4, **options).fit(X).leaderboard_) == 4


def test_resumed_search_rejects_changed_extractor_settings(tmp_path: Path) -> None:
    options = {"storage": tmp_path / "s.journal", "extractors": ["cart"], "spaces": LEAVES}
    search_of(n_trials=2, **options).fit(X, Y)
    with pytest.raises(ValueError, match=r"extractor .*features"):
        search_of(n_trials=4, features=[2, 3], **options).fit(X, Y)
    other_settings = {"extractors": [CARTExtractor(BLACK_BOX, min_samples_leaf=20)]}
    with pytest.raises(ValueError, match=r"extractor .*min_samples_leaf=20"):
        search_of(n_trials=4, **options | other_settings).fit(X, Y)


RESUMED = """
import sys
import numpy as np
from sklearn.datasets import load_iris
from skescore.black_boxes import CallableClassifier
from skescore.tuning import ExtractorSearchCV

X, Y = (part[::3] for part in load_iris(return_X_y=True))
lock = __import__("threading").Lock()  # which cannot be pickled

class Model:
    def __init__(self):
        self.lock, self.names = lock, {"a", "b", "c"}
    def __call__(self, rows):
        return np.where(rows[:, 2] < 2.5, 0, np.where(rows[:, 3] < 1.7, 1, 2))

search = ExtractorSearchCV(
    CallableClassifier(Model(), classes=[0, 1, 2]), extractors=("cart",), n_trials=int(sys.argv[2]),
    cv=3, random_state=0, storage=sys.argv[1],
).fit(X)
print(sum("baseline" not in trial.user_attrs for trial in search.studies_["cart"].trials))
"""


@pytest.mark.slow
def test_resume_accepts_an_unpicklable_black_box(
    tmp_path: Path,
) -> None:
    results = [
        subprocess.run(
            [sys.executable, "-c", RESUMED, str(tmp_path / "s.journal"), str(2 + 2 * seed)],
            env=os.environ | {"PYTHONHASHSEED": str(seed)},
            capture_output=True,
            text=True,
        )
        for seed in (0, 1)
    ]
    assert [(run.returncode, run.stdout.strip()) for run in results] == [(0, "2"), (0, "4")], (
        results
    )


class BlinkingStorage(RDBStorage):
    """Database that fails at some calls, as during a restart of its server."""

    def fail_at(self, *calls: int) -> BlinkingStorage:
        self.count, self.failing = 0, set(calls)
        return self

    def _blink(self) -> None:
        self.count += 1
        if self.count in self.failing:
            raise StorageInternalError("it does not answer") from OSError("server closed")

    def create_new_trial(self, *args: Any, **options: Any) -> int:
        self._blink()
        return super().create_new_trial(*args, **options)

    def set_trial_user_attr(self, *args: Any, **options: Any) -> None:
        self._blink()
        super().set_trial_user_attr(*args, **options)

    def set_trial_state_values(self, *args: Any, **options: Any) -> bool:
        self._blink()
        return super().set_trial_state_values(*args, **options)


SMALL: dict[str, Any] = {"extractors": ["cart"], "n_trials": 6, "spaces": LEAVES}


def outcome(search: ExtractorSearchCV) -> Any:
    board = board_of(search)
    rows = board.drop(columns=["trial", "same_as"]).to_dict("records")
    return sorted(json.dumps(row, sort_keys=True, default=str) for row in rows)


@pytest.mark.slow  # while it waits between its attempts
@pytest.mark.parametrize("calls", [(1,), (2,), (20, 22), (40, 41, 42), (25,)])
def test_search_survives_storage_failures(
    calls: tuple[int, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("skescore.tuning.storage._storages.PAUSES", (0.0,) * 4)
    storage = BlinkingStorage(f"sqlite:///{tmp_path}/s.db").fail_at(*calls)
    with pytest.warns(UserWarning, match="retrying"):
        search = search_of(storage=storage, **SMALL).fit(X, Y)
    assert {trial.state for trial in trials_of(search)} <= {TrialState.COMPLETE, TrialState.FAIL}
    assert outcome(search) == outcome(search_of(**SMALL).fit(X, Y))
    storage.engine.dispose()


@pytest.mark.parametrize("call", [1, 2, 4])
def test_trial_is_started_again_after_a_storage_failure(
    call: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    suggest, n_calls = ExtractorObjective.suggest, 0

    def fail_once(self: ExtractorObjective, trial: optuna.Trial) -> dict[str, Any]:
        nonlocal n_calls
        n_calls += 1
        params = suggest(self, trial)
        if n_calls == call:
            raise StorageInternalError("it does not answer") from OSError("server closed")
        return params

    expected = outcome(search_of(**SMALL).fit(X, Y))
    monkeypatch.setattr("skescore.tuning.storage._storages.PAUSES", (0.0,))
    monkeypatch.setattr(ExtractorObjective, "suggest", fail_once)
    with pytest.warns(UserWarning, match="retrying"):
        search = search_of(storage=tmp_path / "a.log", **SMALL).fit(X, Y)
    assert outcome(search) == expected


@pytest.mark.slow
def test_lasting_storage_failure_is_raised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("skescore.tuning.storage._storages.PAUSES", (0.0,) * 2)
    url = f"sqlite:///{tmp_path}/s.db"
    storage = BlinkingStorage(url).fail_at(*range(30, 10_000))
    message = "s.db' failed for.*server closed.*repeat "
    with (
        pytest.warns(UserWarning, match="retrying"),
        pytest.raises(ConnectionError, match=message),
    ):
        search_of(storage=storage, **SMALL).fit(X, Y)
    storage.engine.dispose()


def test_unwritable_journal_is_named(tmp_path: Path) -> None:
    path = tmp_path / "s.journal"
    study = optuna.create_study(storage=open_storage(path))
    path.unlink()
    path.mkdir()
    with pytest.raises(OSError, match=r"s\.journal"):
        study.ask()


def test_replaced_journal_is_named(tmp_path: Path) -> None:
    path = tmp_path / "s.journal"
    study = optuna.create_study(storage=open_storage(path))
    study.ask()
    path.write_text("something else\n" * 500)
    with pytest.raises(ValueError, match=r"s\.journal' was deleted, replaced or damaged"):
        study.get_trials()


DYING = """
import os, sys
import optuna
from optuna.distributions import IntDistribution
from sklearn.datasets import load_iris
from sklearn.tree import DecisionTreeClassifier
from skescore.tuning import ExtractorSearchCV

X, Y = (part[::3] for part in load_iris(return_X_y=True))
ask, count = optuna.Study.ask, 0

def dying(study, *args, **options):
    global count
    count += 1
    if count > int(sys.argv[2]):
        os._exit(9)  # between two trials that are begun together
    return ask(study, *args, **options)

optuna.Study.ask = dying
ExtractorSearchCV(
    DecisionTreeClassifier(max_depth=3, random_state=0), extractors=("cart", "gridex"),
    n_trials=24, cv=3, random_state=0, storage=sys.argv[1],
).fit(X, Y)
"""


@pytest.mark.slow
@pytest.mark.parametrize("n_asked", [14, 15, 17, 19])
def test_resume_within_a_batch_is_exact(n_asked: int, tmp_path: Path) -> None:
    path = tmp_path / "s.journal"
    command = [sys.executable, "-c", DYING, str(path), str(n_asked)]
    assert subprocess.run(command, capture_output=True).returncode == 9
    going_on = search_of(storage=path, n_trials=24).fit(X, Y)
    assert outcome(going_on) == outcome(search_of(n_trials=24).fit(X, Y))


# --- several workers, one of which is killed -----------------------------------------------------

# A process that forks the workers, after its imports. Killed in mid-wave, a worker leaves trials
# behind that were begun. Those that share a budget begin at the same moment.
PROGRAM = """
import json, os, signal, sys, time, traceback, warnings
from pathlib import Path
import optuna
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.model_selection import StratifiedKFold
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier
from optuna.distributions import IntDistribution
from skescore.tuning import ExtractorSearchCV

warnings.filterwarnings("error")
warnings.filterwarnings("ignore", message="max_leaf_nodes=")
warnings.filterwarnings("ignore", message="'x3' alone determines")
# With own spaces, there are no candidates in addition to the budget.
SPACES = {
    "cart": {"max_leaf_nodes": IntDistribution(2, 30)},
    "gridex": {"n_slices": IntDistribution(2, 30)},
}
folder = Path(sys.argv[1])
X, Y = (part[::3] for part in load_iris(return_X_y=True))

class Together(StratifiedKFold):
    def __init__(self, number, room):
        super().__init__(3)
        self.number, self.room = number, room

    def split(self, X, y, groups=None):
        (self.room / f"here{self.number}").touch()
        while len(list(self.room.glob("here*"))) < 2:
            time.sleep(0.001)
        return super().split(X, y, groups)

def search_of(**options):
    settings = {"extractors": ("cart", "gridex"), "n_trials": 12, "cv": 3, "random_state": 0}
    settings |= {"n_repeats": 0, "pruner": None, "spaces": SPACES} | options
    return ExtractorSearchCV(DecisionTreeClassifier(max_depth=3, random_state=0), **settings)

def forked(work, log):
    pid = os.fork()
    if pid:
        return pid
    try:
        work()
        os._exit(0)
    except BaseException:
        Path(log).write_text(traceback.format_exc())
        os._exit(1)

def told(search):
    board = search.leaderboard_
    return {
        "board": board.drop(columns="seconds").to_json(orient="records", double_precision=15),
        "winner": [search.best_name_, search.best_params_, search.best_score_],
        "trials": {
            name: [
                [t.state.name, t.params, *map(t.user_attrs.get, ("retry_of", "error"))]
                for t in study.trials
            ]
            for name, study in search.studies_.items()
        },
    }

def killed():
    path, paused = folder / "killed.journal", folder / "paused"

    def pause(study, trial):
        if study.study_name.endswith("cart") and trial.number == 1:
            paused.touch()
            signal.pause()

    victim = forked(lambda: search_of(storage=path, callbacks=[pause]).fit(X, Y), folder / "log")
    while not paused.exists():
        assert not (folder / "log").exists(), (folder / "log").read_text()
        time.sleep(0.01)
    os.kill(victim, signal.SIGKILL)
    os.waitpid(victim, 0)
    return told(search_of(storage=path).fit(X, Y))

def shared(n_trials, name):
    room = folder / name
    room.mkdir()

    def work(number):
        search = search_of(
            storage=folder / f"{name}.journal", n_trials=n_trials, cv=Together(number, room)
        ).fit(X, Y)
        (room / f"told{number}").write_text(json.dumps(told(search)))

    pids = [forked(lambda: work(number), room / f"log{number}") for number in (1, 2)]
    for pid in pids:
        os.waitpid(pid, 0)
    assert not list(room.glob("log*")), [log.read_text() for log in room.glob("log*")]
    return [json.loads((room / f"told{number}").read_text()) for number in (1, 2)]

print(json.dumps({
    "killed": killed(),
    "shared": shared(14, "shared"),
    "small": [shared(2, f"small{number}") for number in range(2)],
}))
"""


@pytest.fixture(scope="module")
def workers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    if not hasattr(os, "fork"):
        pytest.skip("workers are forked")
    folder = tmp_path_factory.mktemp("workers")
    output = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(folder)], capture_output=True, text=True, check=False
    )
    assert (output.returncode, output.stderr) == (0, "")
    result: dict[str, Any] = json.loads(output.stdout)
    return result


@pytest.mark.slow
def test_trials_of_killed_workers_are_repeated(workers: dict[str, Any]) -> None:
    trials, board = workers["killed"]["trials"], json.loads(workers["killed"]["board"])
    left = [
        (name, number, params)
        for name, some in trials.items()
        for number, (state, params, _, error) in enumerate(some)
        if state == "FAIL" and "process" in (error or "")
    ]
    # The rest of the batch: one more trial of the one, two of the other.
    assert sorted((name, number) for name, number, _ in left) == [
        ("cart", 2),
        ("gridex", 1),
        ("gridex", 2),
    ]
    for name, number, params in left:
        again = [trial for trial in trials[name] if trial[2] == number]
        assert [(state, p) for state, p, _, _ in again] == [("COMPLETE", params)]
    assert {trial[0] for some in trials.values() for trial in some} == {"COMPLETE", "FAIL"}
    # Every trial is in the table once, but repeated ones are not.
    assert len(board) == 12
    rows = [(row["extractor"], row["trial"]) for row in board]
    assert len(set(rows)) == 12
    assert not set(rows) & {(name, number) for name, number, _ in left}
    assert {row["state"] for row in board} == {"complete"}


def check_shared(one: dict[str, Any], other: dict[str, Any], n_trials: int) -> None:
    assert one == other
    board = json.loads(one["board"])
    assert len(board) == n_trials
    assert {row["state"] for row in board} == {"complete"}
    rows = {(row["extractor"], row["trial"]) for row in board}
    assert len(rows) == n_trials
    # Trials beyond the budget that both started at the same moment were given back.
    for name, trials in one["trials"].items():
        for number, (state, *_) in enumerate(trials):
            assert state == ("COMPLETE" if (name, number) in rows else "FAIL")


@pytest.mark.slow
def test_workers_share_budget_and_winner(workers: dict[str, Any]) -> None:
    one, other = workers["shared"]
    check_shared(one, other, 14)


@pytest.mark.slow
def test_simultaneous_workers_keep_the_budget(
    workers: dict[str, Any],
) -> None:
    for one, other in workers["small"]:
        check_shared(one, other, 2)
        assert {row["extractor"] for row in json.loads(one["board"])} == {"cart", "gridex"}
