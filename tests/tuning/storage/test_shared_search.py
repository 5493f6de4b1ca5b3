"""The command line on two machines that share a database: real processes, a real server."""

from __future__ import annotations

import json
import runpy
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import optuna
import pytest

from skescore.tuning import open_storage

_HELPER = Path(__file__).parents[2] / "cli" / "forked_commands.py"
BUDGET = 10
SEARCH = (
    "tune",
    "iris",
    "--black-box",
    "decision-tree",
    "--cv",
    3,
    "--extractors",
    "exact,gridex",
    "--trials",
    BUDGET,
    "--format",
    "json",
)


@pytest.fixture(scope="module")
def commands() -> Iterator[Any]:
    # The fixture of the database requires a system with forks.
    started = runpy.run_path(str(_HELPER))["Commands"]()
    yield started
    started.close()


def stored(url: str) -> dict[str, list[optuna.trial.FrozenTrial]]:
    storage = open_storage(url)
    results = {
        name.rpartition("/")[2]: optuna.load_study(study_name=name, storage=storage).trials
        for name in optuna.get_all_study_names(storage)
    }
    storage.engine.dispose()  # type: ignore[attr-defined]
    return results


def numbers(result: dict[str, Any]) -> list[tuple[str, int]]:
    return sorted((row["extractor"], row["trial"]) for row in result["leaderboard"])


def test_shared_search_survives_the_end_of_a_machine(
    postgresql: Any, commands: Any, tmp_path: Path
) -> None:
    url = postgresql.new_database()
    words = (*SEARCH, "--storage", url, "--study", "mine", "--workers", 1)
    victim = commands.start(tmp_path, *words, wait_at=9).until_it_waits()
    first = commands.start(tmp_path, *words, "--output", "run", wait_at=1).until_it_waits()
    second = commands.start(tmp_path, *words, wait_at=1).until_it_waits()
    before = stored(url)
    mine = {
        (name, trial.number)
        for name, some in before.items()
        for trial in some
        if trial.user_attrs.get("heartbeat", {}).get("process") == victim.pid
    }
    lost = {
        (name, n) for name, n in mine if before[name][n].state == optuna.trial.TrialState.RUNNING
    }
    assert mine > lost > set()
    victim.end(signal.SIGKILL)
    for command in (first, second):
        command.go_on()
    for command in (first, second):
        assert command.end().code == 0, command.err

    after = stored(url)
    retried = {
        (name, trial.user_attrs["retry_of"]): trial
        for name, some in after.items()
        for trial in some
        if "retry_of" in trial.user_attrs
    }
    assert set(retried) == lost
    for (name, number), trial in retried.items():
        assert trial.params == before[name][number].params
        finished = optuna.trial.TrialState.COMPLETE, optuna.trial.TrialState.PRUNED
        assert trial.state in finished
        assert "ended during the trial" in after[name][number].user_attrs["error"]
    for name, number in mine - lost:
        assert after[name][number].user_attrs == before[name][number].user_attrs
        assert after[name][number].values == before[name][number].values
    # Trials beyond the budget that both started at the same moment were given back.
    every = {
        (name, trial.number)
        for name, some in after.items()
        for trial in some
        if "interrupted" not in trial.user_attrs
    }
    # Both tables contain every trial once, except for those that were repeated.
    assert numbers(first.result) == numbers(second.result) == sorted(every - lost)
    assert len(every - lost) == BUDGET
    assert first.result["best"] == second.result["best"]
    assert first.result["rules"] == second.result["rules"]
    processes = {
        trial.user_attrs["heartbeat"]["process"]
        for some in after.values()
        for trial in some
        if "heartbeat" in trial.user_attrs
    }
    assert processes == {victim.pid, first.pid, second.pid}

    # The password is stored nowhere.
    secret = url.split(":")[2].rpartition("@")[0]
    for command in (first, second):
        for text in (command.out, command.err):
            assert secret not in text
            assert unquote(secret) not in text
    written = json.loads((tmp_path / "run" / "run.json").read_text())
    command_line = written["run"]["command_line"]
    assert command_line[command_line.index("--storage") + 1] == url.replace(secret, "***")
    for path in (tmp_path / "run").iterdir():
        assert secret not in path.read_text()


def test_shared_search_rejects_other_search_without_password(
    postgresql: Any, commands: Any, tmp_path: Path
) -> None:
    url = postgresql.new_database()
    words = (*SEARCH[:-4], "--trials", 2, "--storage", url)
    assert commands.run(tmp_path, *words).code == 0
    other = commands.run(tmp_path, *words, "--seed", 1)
    assert (other.code, other.out) == (1, "")
    assert "'iris-ice/exact' belongs to another search" in other.err
    assert url.split(":")[2].rpartition("@")[0] not in other.err
    wrong = commands.run(tmp_path, *SEARCH, "--storage", postgresql.url("studies1", "no:@pe"))
    assert wrong.code == 1
    assert "anna:***@127.0.0.1" in wrong.err
    assert "pe@" not in wrong.err
    assert "no%3A" not in wrong.err


@pytest.mark.slow
@pytest.mark.parametrize("more", [(), ("--workers", 2)], ids=["alone", "two workers"])
def test_shared_search_survives_a_server_restart(
    more: tuple[Any, ...], restartable: tuple[str, Any, Any], commands: Any, tmp_path: Path
) -> None:
    words = (
        "tune",
        "iris",
        "--black-box",
        "decision-tree",
        "--cv",
        2,
        "--extractors",
        "exact,gridex",
        "--trials",
        6,
        "--format",
        "json",
        *more,
    )
    (tmp_path / "unbroken").mkdir()
    unbroken = commands.run(tmp_path / "unbroken", *words)
    assert unbroken.code == 0, unbroken.err
    url, stop, go_on = restartable
    command = commands.start(tmp_path, *words, "--storage", url, wait_at=4).until_it_waits()
    stop()
    command.go_on()
    time.sleep(1.0)  # while its queries fail
    go_on()
    assert command.end().code == 0, command.err
    board = command.result["leaderboard"]
    assert len(set(numbers(command.result))) == len(board) == 6
    assert {row["state"] for row in board} <= {"complete", "pruned"}
    if more:  # which extractor continues is decided while one of the workers waits for the server
        return
    assert numbers(command.result) == numbers(unbroken.result)
    columns = "extractor", "trial", "params", "score", "state", "n_rules"
    rows = [
        sorted(
            ({name: row[name] for name in columns} for row in some.result["leaderboard"]),
            key=lambda row: (row["extractor"], row["trial"]),
        )
        for some in (command, unbroken)
    ]
    assert rows[0] == rows[1]
    assert command.result["rules"] == unbroken.result["rules"]
