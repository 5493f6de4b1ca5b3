"""Heartbeats of workers, and what other workers conclude from missing ones."""

from __future__ import annotations

import math
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import optuna
import pytest
from optuna.storages import BaseStorage
from optuna.trial import Trial, TrialState

from skescore.tuning import Heartbeat, announce_worker, open_storage, retry_stale

Open = Callable[[], BaseStorage]


@pytest.fixture
def study(tmp_path: Path) -> optuna.Study:
    return joined(tmp_path)


def joined(folder: Path) -> optuna.Study:
    """Return the study as another process sees it."""
    return optuna.create_study(
        study_name="study", storage=open_storage(folder / "a.journal"), load_if_exists=True
    )


class Clock:
    now = 1000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Return a clock for the observer; the system time must not matter."""
    new_clock = Clock()
    monkeypatch.setattr(time, "monotonic", new_clock.monotonic)
    return new_clock


def killed(study: optuna.Study, **changes: Any) -> Trial:
    """Return a trial that a worker started before it was killed."""
    trial = study.ask()
    with Heartbeat(trial):
        trial.suggest_float("x", 0, 1)
    beat = study.trials[trial.number].user_attrs["heartbeat"]
    trial.set_user_attr("heartbeat", beat | changes)
    return trial


ELSEWHERE = {"machine": "another", "host": "far"}


@pytest.fixture
def ended() -> int:
    """Return the id of a process that has ended."""
    process = subprocess.Popen([sys.executable, "-S", "-c", ""])
    process.wait()
    return process.pid


def retries(study: optuna.Study) -> list[int]:
    """Return the numbers of the trials that other trials repeat."""
    results = [trial.user_attrs.get("retry_of") for trial in study.trials]
    return [number for number in results if number is not None]


# --- stale workers -------------------------------------------------------------------------------


def test_retry_stale_fails_trials_of_ended_processes(study: optuna.Study, ended: int) -> None:
    trial = killed(study, process=ended)
    assert retry_stale(study) == [0]
    failed, again = study.trials
    assert failed.state == TrialState.FAIL
    assert failed.user_attrs["error"].startswith(f"The process of its worker (process {ended} on")
    assert again.state == TrialState.WAITING
    assert again.user_attrs == {"retry_of": 0, "position": 0}
    assert retry_stale(study) == []
    retry = study.ask()
    assert retry.number == 1
    assert retry.suggest_float("x", 0, 1) == trial.params["x"]


def test_retry_stale_detects_reused_process_ids(study: optuna.Study) -> None:
    killed(study)
    assert retry_stale(study) == []
    killed(study, started=1.0)
    assert retry_stale(study) == [1]


def test_retry_stale_treats_zombies_as_ended(study: optuna.Study) -> None:
    process = subprocess.Popen([sys.executable, "-S", "-c", ""])
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    killed(study, process=process.pid)
    assert retry_stale(study) == [0]
    process.wait()


def test_retry_stale_ignores_ids_of_other_machines(
    study: optuna.Study, clock: Clock, ended: int
) -> None:
    killed(study, process=ended, **ELSEWHERE)
    assert retry_stale(study, grace=10) == []
    clock.now += 10
    assert retry_stale(study, grace=10) == []
    clock.now += 0.1
    assert retry_stale(study, grace=10) == [0]
    assert "worker (process" in study.trials[0].user_attrs["error"]
    assert "no heartbeat for more than 10 s" in study.trials[0].user_attrs["error"]


def test_retry_stale_restarts_grace_period_on_heartbeat(study: optuna.Study, clock: Clock) -> None:
    trial = killed(study, **ELSEWHERE)
    beat = study.trials[0].user_attrs["heartbeat"]
    for count in range(5):
        assert retry_stale(study, grace=10) == []
        clock.now += 9
        trial.set_user_attr("heartbeat", beat | {"count": count})
    assert retry_stale(study, grace=10) == []
    clock.now += 11
    assert retry_stale(study, grace=10) == [0]


def test_retry_stale_keeps_a_grace_period_per_process(
    study: optuna.Study, clock: Clock, tmp_path: Path
) -> None:
    killed(study, **ELSEWHERE)
    assert retry_stale(study, grace=10) == []
    clock.now += 11
    other = joined(tmp_path)
    assert retry_stale(other, grace=10) == []  # it was written a moment ago
    assert retry_stale(study, grace=10) == [0]
    assert retry_stale(other, grace=10) == []


def test_retry_stale_separates_studies(study: optuna.Study, clock: Clock) -> None:
    other = optuna.create_study(study_name="other", storage=study._storage)
    killed(study, **ELSEWHERE)
    killed(other, **ELSEWHERE)
    assert retry_stale(study, grace=10) == []
    clock.now += 6
    assert retry_stale(other, grace=10) == []
    clock.now += 6
    assert retry_stale(study, grace=10) == [0]
    assert retry_stale(other, grace=10) == []


def test_retry_stale_handles_workers_without_heartbeat(study: optuna.Study, clock: Clock) -> None:
    killed(study)
    study.enqueue_trial({"x": 0.25})
    study.ask()  # and nothing more
    assert retry_stale(study, grace=10) == []
    clock.now += 11
    assert retry_stale(study, grace=10) == [0, 1]
    assert study.trials[1].params == {}
    study.ask()
    assert study.ask().suggest_float("x", 0, 1) == 0.25  # what it was enqueued with


@pytest.mark.parametrize("is_repetition", [False, True])
def test_retry_stale_fails_trials_if_all_workers_ended(
    study: optuna.Study, ended: int, is_repetition: bool
) -> None:
    announce_worker(study)
    ((key, worker),) = [item for item in study.user_attrs.items() if item[0].startswith("worker")]
    assert worker["process"] == os.getpid()
    study.enqueue_trial({"x": 0.25}, user_attrs={"retry_of": 7} if is_repetition else None)
    study.ask().suggest_float("y", 0, 1)  # and nothing more
    assert retry_stale(study) == []
    study.set_user_attr(f"{key}1", worker | ELSEWHERE)
    study.set_user_attr(key, worker | {"process": ended})
    assert retry_stale(study) == []  # another machine may be at work
    study.set_user_attr(f"{key}1", worker | {"process": ended})
    assert retry_stale(study) == [0]
    # It did no harm, even if it was a second attempt.
    again = study.trials[1]
    assert again.state == TrialState.WAITING
    assert again.user_attrs == {"retry_of": 0}
    assert again.system_attrs["fixed_params"] == {"x": 0.25}  # the sampler draws its own again


def test_retry_stale_without_heartbeats_does_nothing(study: optuna.Study, clock: Clock) -> None:
    study.ask()
    assert retry_stale(study, grace=10) == []
    clock.now += 1000
    assert retry_stale(study, grace=10) == []
    assert study.trials[0].state == TrialState.RUNNING


# --- consequences --------------------------------------------------------------------------------


def test_retry_stale_repeats_a_trial_once(study: optuna.Study, ended: int) -> None:
    killed(study, process=ended)
    assert retry_stale(study) == [0]
    killed(study, process=ended)
    assert retry_stale(study) == [1]
    assert [trial.state for trial in study.trials] == [TrialState.FAIL] * 2
    assert "second attempt, after trial 0" in study.trials[1].user_attrs["error"]


def test_retry_stale_keeps_finished_trials(
    study: optuna.Study, ended: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    trial = killed(study, process=ended)
    before = study.get_trials()
    study.tell(trial, 0.5)
    after = study.get_trials()
    with monkeypatch.context() as patch:
        patch.setattr(study, "get_trials", lambda **options: before)
        assert retry_stale(study) == []
    assert study.get_trials() == after
    assert after[0].state == TrialState.COMPLETE


def test_retry_stale_repeats_trials_once_in_several_workers(opened: Open, ended: int) -> None:
    first = optuna.create_study(study_name="study", storage=opened())
    dead = [killed(first, process=ended).number for _ in range(6)]
    other_items = [optuna.load_study(study_name="study", storage=opened()) for _ in range(4)]
    barrier = threading.Barrier(len(other_items))
    results: list[int] = []

    def retry(study: optuna.Study) -> None:
        barrier.wait()
        results.extend(retry_stale(study))

    run_all([lambda study=study: retry(study) for study in other_items])
    assert sorted(results) == dead
    assert sorted(retries(first)) == dead
    assert len(first.trials) == 2 * len(dead)


def test_workers_get_different_trials(opened: Open) -> None:
    first = optuna.create_study(study_name="study", storage=opened())
    for number in range(8):
        first.enqueue_trial({"x": number / 8})
    other_items = [optuna.load_study(study_name="study", storage=opened()) for _ in range(4)]
    barrier = threading.Barrier(len(other_items))
    queries: list[int] = []

    def ask(study: optuna.Study) -> None:
        barrier.wait()
        queries.extend(study.ask().number for _ in range(2))

    run_all([lambda study=study: ask(study) for study in other_items])
    assert sorted(queries) == list(range(8))


def run_all(functions: list[Callable[[], None]]) -> None:
    errors: list[BaseException] = []

    def guarded(function: Callable[[], None]) -> None:
        try:
            function()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(function,)) for function in functions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


# --- heartbeats ----------------------------------------------------------------------------------


def test_heartbeat_is_recorded(study: optuna.Study, tmp_path: Path, workers: Any) -> None:
    other = joined(tmp_path)

    def count() -> int:
        return int(other.trials[0].user_attrs["heartbeat"]["count"])

    trial = study.ask()
    with Heartbeat(trial, interval=0.01) as heartbeat:
        assert other.trials[0].user_attrs["heartbeat"]["process"] == os.getpid()
        workers.wait_until(lambda: count() >= 3)
        assert not heartbeat.lost
    last = count()
    study.tell(trial, 1.0)
    assert count() == last
    assert not any(thread.name == "skescore-heartbeat" for thread in threading.enumerate())


def test_heartbeat_detects_a_failed_trial(
    study: optuna.Study, tmp_path: Path, clock: Clock, workers: Any
) -> None:
    other = joined(tmp_path)
    trial = study.ask()
    with Heartbeat(trial, interval=1000):
        trial.suggest_float("x", 0, 1)
        assert retry_stale(other, grace=10) == []
        clock.now += 11
        assert retry_stale(other, grace=10) == [0]
        with Heartbeat(trial, interval=1000) as heartbeat:
            assert heartbeat.lost
    assert study.tell(trial, 0.5, skip_if_finished=True).state == TrialState.FAIL

    trial = study.ask()
    with Heartbeat(trial, interval=0.01) as heartbeat:
        other.tell(trial.number, state=TrialState.FAIL)
        workers.wait_until(lambda: heartbeat.lost)


def test_heartbeat_survives_storage_failures(
    study: optuna.Study, monkeypatch: pytest.MonkeyPatch, workers: Any
) -> None:
    trial = study.ask()
    real, counts = trial.set_user_attr, []

    def sometimes(key: str, value: Any) -> None:
        counts.append(value["count"])
        if 0 < len(counts) < 4:
            raise ConnectionError("out of reach")
        real(key, value)

    with Heartbeat(study.ask()), monkeypatch.context() as patch:  # the study is marked
        heartbeat = Heartbeat(trial, interval=0.01)
        with heartbeat:
            patch.setattr(trial, "set_user_attr", sometimes)
            workers.wait_until(lambda: study.trials[0].user_attrs["heartbeat"]["count"] >= 4)
    assert not heartbeat.lost


def test_heartbeat_in_memory_is_not_recorded() -> None:
    study = optuna.create_study()
    trial = study.ask()
    with Heartbeat(trial, interval=0.001) as heartbeat:
        assert not any(thread.name == "skescore-heartbeat" for thread in threading.enumerate())
    assert retry_stale(study) == []
    assert not heartbeat.lost
    assert study.trials[0].user_attrs == {}
    assert study.user_attrs == {}
    with Heartbeat(optuna.trial.FixedTrial({"x": 1})) as heartbeat:
        assert not heartbeat.lost


@pytest.mark.parametrize("value", [0, -1, math.nan, math.inf, "60", None, True])
def test_heartbeat_times_must_be_positive(value: Any) -> None:
    study = optuna.create_study()
    with pytest.raises(ValueError, match="interval must be a positive number of seconds, got"):
        Heartbeat(study.ask(), interval=value)
    with pytest.raises(ValueError, match="grace must be a positive number of seconds, got"):
        retry_stale(study, grace=value)
