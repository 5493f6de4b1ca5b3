"""Several processes on one study, one of which is killed in mid-trial."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import optuna
from optuna.trial import TrialState

from skescore.tuning import Candidates

ENOUGH = 5


def contents(trial: optuna.trial.FrozenTrial) -> tuple[Any, ...]:
    return trial.state, trial.params, trial.values, trial.user_attrs


def test_killed_worker_loses_one_trial(
    url: str,
    opened: Callable[[], optuna.storages.BaseStorage],
    workers: Any,
    tmp_path: Path,
) -> None:
    study = optuna.create_study(study_name="iris/cart", storage=opened(), direction="maximize")
    order = {
        "storage": url,
        "study": study.study_name,
        "extractor": "cart",
        "enough": ENOUGH,
        "interval": 1.0,
        "grace": 600.0,
    }
    logs = [tmp_path / f"worker{number}.txt" for number in range(3)]
    hangs = tmp_path / "hangs"

    def in_good_health() -> bool:
        for log in logs:
            assert not log.exists(), log.read_text()
        return True

    victim = workers.start(**order, seed=0, log=str(logs[0]), hangs=str(hangs))
    workers.wait_until(lambda: in_good_health() and hangs.exists() and hangs.read_text())
    killed = int(hangs.read_text())
    other_items = [workers.start(**order, seed=n, log=str(logs[n])) for n in (1, 2)]
    complete = (TrialState.COMPLETE,)
    workers.wait_until(lambda: in_good_health() and len(study.get_trials(states=complete)) >= 2)
    before = {trial.number: trial for trial in study.get_trials(states=complete)}
    running = study.trials[killed]
    assert running.state == TrialState.RUNNING
    assert running.user_attrs["heartbeat"]["process"] == victim
    os.kill(victim, signal.SIGKILL)
    # On the same machine nobody waits for the grace period, which is ten minutes here.
    workers.wait_until(lambda: in_good_health() and not any(map(workers.is_running, other_items)))

    trials = study.trials
    assert [trial.number for trial in trials] == list(range(len(trials)))
    assert {n: contents(trials[n]) for n in before} == {n: contents(t) for n, t in before.items()}
    assert trials[killed].state == TrialState.FAIL
    assert trials[killed].params == running.params
    assert f"process {victim} on" in trials[killed].user_attrs["error"]
    assert "folds" not in trials[killed].user_attrs
    [retry] = [trial for trial in trials if trial.user_attrs.get("retry_of") == killed]
    assert retry.params == running.params
    assert retry.user_attrs["heartbeat"]["process"] in other_items
    assert all(trial.state == TrialState.COMPLETE for trial in trials if trial.number != killed)
    # Both may start the last one at the same time, and both may see the one to be retried.
    assert ENOUGH + 1 <= len(trials) <= ENOUGH + 4

    originals = [t for t in trials if t.number != killed and "same_as" not in t.user_attrs]
    candidates = Candidates.from_studies([study])
    assert [candidate.trial for candidate in candidates] == [trial.number for trial in originals]
    assert candidates.measure("loss").shape == (len(originals), 3)
    assert len({trial.user_attrs["heartbeat"]["attempt"] for trial in trials}) == len(trials)
