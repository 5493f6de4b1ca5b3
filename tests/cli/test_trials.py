"""Interrupted, resumed and shared searches in real processes."""

from __future__ import annotations

import json
import os
import runpy
import signal
import time
from pathlib import Path

import optuna
import pandas as pd
import pytest
from optuna.trial import TrialState

from skescore.cli import main
from skescore.tuning import open_storage

if not hasattr(os, "fork"):
    pytest.skip("commands are forked", allow_module_level=True)

pytestmark = pytest.mark.slow

Commands = runpy.run_path(str(Path(__file__).with_name("forked_commands.py")))["Commands"]

BUDGET = 10
FOLDS = 2
#: Trees of 1 to 3 leaves, which the search evaluates first and in addition to its budget.
N_BASELINES = 5
#: Evaluations, of 36: the first 15 are those of the baselines, on two folds and on all rows. EARLY
#: is in the second baseline, MIDDLE and LATE are in the second and third batch of the budget.
EARLY, MIDDLE, LATE = 6, 24, 32
SEARCH = (
    "tune",
    "iris",
    "--black-box",
    "decision-tree",
    "--cv",
    FOLDS,
    "--extractors",
    "cart,gridex",
    "--format",
    "json",
)
SHORT = (*SEARCH, "--trials", BUDGET)
FILES = {
    *("candidates.json", "rules.json", "leaderboard.csv", "run.json"),
    *("baseline.json", "trials.journal"),
}


@pytest.fixture(scope="module")
def commands():
    started = Commands()
    yield started
    started.close()


@pytest.fixture(scope="module")
def unbroken(commands, tmp_path_factory):
    """Return the result of an uninterrupted search."""
    command = commands.run(tmp_path_factory.mktemp("unbroken"), *SHORT)
    assert command.code == 0
    assert len(budgeted(command.result)) == BUDGET
    assert len(command.result["leaderboard"]) == BUDGET + N_BASELINES
    return command.result


def budgeted(result):
    """Return the rows of the leaderboard without the baselines, which set fewer parameters."""
    rows = result["leaderboard"]
    return [r for r in rows if r["extractor"] != "cart" or "max_depth" in r["params"]]


def table(result):
    """Return the leaderboard without durations and without the workers of trials."""
    left_out = {"seconds", "trial"}
    rows = [{k: v for k, v in r.items() if k not in left_out} for r in result["leaderboard"]]
    return sorted(json.dumps(row, sort_keys=True) for row in rows)


def numbers(result):
    return sorted((row["extractor"], row["trial"]) for row in result["leaderboard"])


def names(folder):
    return {path.name for path in folder.iterdir()}


def assert_cache_holds_only_finished_trials(folder):
    """Check that only the trials that --pick may use are left, and neither journal nor lock."""
    [name] = names(folder / "cache" / "skescore")
    assert name.endswith(".finished")


def stored(path, study="iris-ice"):
    """Return the trials of a journal by extractor."""
    storage = open_storage(path)
    return {
        name.rpartition("/")[2]: optuna.load_study(study_name=name, storage=storage).trials
        for name in optuna.get_all_study_names(storage)
        if name.startswith(f"{study}/")
    }


def finished(studies):
    return {
        (name, trial.number): (trial.state, trial.params, trial.values, trial.user_attrs)
        for name, trials in studies.items()
        for trial in trials
        if trial.state.is_finished()
    }


def count_budgeted(trials):
    """Count the finished trials of the budget."""
    return sum("baseline" not in attributes for _, _, _, attributes in trials.values())


# Interruptions ------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    ("at", "sign"),
    [
        (1, signal.SIGKILL),
        (EARLY, signal.SIGKILL),
        (MIDDLE, signal.SIGKILL),
        (LATE, signal.SIGKILL),
        (EARLY, signal.SIGINT),
        (LATE, signal.SIGTERM),
    ],
)
def test_resumed_search_equals_uninterrupted_search(at, sign, commands, unbroken, tmp_path):
    broken = commands.start(tmp_path, *SHORT, wait_at=at).until_it_waits().end(sign)
    if sign != signal.SIGKILL:
        assert broken.code == 1
        assert ": interrupted" in broken.err  # notes on the rules may follow
    second_outcome = commands.run(tmp_path, *SHORT)
    assert second_outcome.code == 0
    assert table(second_outcome.result) == table(unbroken)
    assert second_outcome.result["best"] == unbroken["best"]
    assert second_outcome.result["rules"] == unbroken["rules"]
    assert_cache_holds_only_finished_trials(tmp_path)


def test_killed_search_keeps_finished_trials(commands, tmp_path):
    path = tmp_path / "kept.journal"
    words = (*SHORT, "--storage", path.name)
    commands.start(tmp_path, *words, wait_at=MIDDLE).until_it_waits().end(signal.SIGKILL)
    before = stored(path)
    lost = {
        (name, trial.number): trial.params
        for name, trials in before.items()
        for trial in trials
        if not trial.state.is_finished()
    }
    assert lost
    assert finished(before)

    second_outcome = commands.run(tmp_path, *words)
    after = stored(path)
    done = finished(after)
    assert {key: done[key] for key in finished(before)} == finished(before)
    repeated = {
        (name, trial.user_attrs["retry_of"]): trial
        for name, trials in after.items()
        for trial in trials
        if "retry_of" in trial.user_attrs
    }
    assert {key: trial.params for key, trial in repeated.items()} == lost
    assert all(trial.state.name == "COMPLETE" for trial in repeated.values())
    count = count_budgeted(finished(before))
    assert 0 < count < BUDGET
    assert f"resuming after {count} stored trials" in second_outcome.err
    # Everything that was started and not lost is in the table once.
    started = {(name, trial.number) for name, trials in after.items() for trial in trials}
    assert numbers(second_outcome.result) == sorted(started - set(lost))
    assert len(budgeted(second_outcome.result)) == BUDGET
    # Lost trials are not among the finished ones.
    assert f"resuming after {BUDGET} stored trials" in commands.run(tmp_path, *words).err


def test_interrupted_tune_shows_results_and_resumes(commands, tmp_path):
    interrupted = (
        commands.start(tmp_path, *SHORT, wait_at=MIDDLE).until_it_waits().end(signal.SIGINT)
    )
    assert interrupted.code == 1
    done = len(budgeted(interrupted.result))
    assert 0 < done < BUDGET
    assert len(interrupted.result["leaderboard"]) == done + N_BASELINES
    [note] = interrupted.result["notes"]
    assert note.startswith(f"interrupted after {done} of {BUDGET} trials; repeat the command")
    assert "Traceback" not in interrupted.err
    assert interrupted.result["rules"]["rules"]
    second_outcome = commands.run(tmp_path, *SHORT)
    # Nothing of the interrupted trials was stored.
    [note] = second_outcome.result["notes"]
    assert note == f"resuming after {done} stored trials; to start again: --fresh"
    assert len(budgeted(second_outcome.result)) == BUDGET


def test_interrupt_during_baselines_counts_no_trial(commands, tmp_path):
    """The budget is not used up by trials in addition to it."""
    command = commands.start(tmp_path, *SHORT, wait_at=EARLY).until_it_waits().end(signal.SIGINT)
    assert command.code == 1
    assert len(command.result["leaderboard"]) == 1
    assert f"interrupted after 0 of {BUDGET} trials" in command.err
    assert len(budgeted(commands.run(tmp_path, *SHORT).result)) == BUDGET


def test_interrupt_before_any_trial_prints_no_results(commands, tmp_path):
    command = commands.start(tmp_path, *SHORT, "--output", "run", wait_at=1).until_it_waits()
    command.end(signal.SIGINT)
    assert (command.code, command.out) == (1, "")
    fitting, ready, interrupted = command.err.splitlines()
    assert fitting == "fitting decision-tree on 150 rows, and on 2 folds of these rows ..."
    assert ready.startswith("model ready after ")
    assert interrupted == "skescore: interrupted"
    assert not (tmp_path / "run").exists()


def test_fresh_option_discards_an_earlier_run(commands, unbroken, tmp_path):
    for folder in ((), ("--output", "run")):
        commands.start(tmp_path, *SHORT, *folder, wait_at=LATE).until_it_waits().end(signal.SIGKILL)
        second_outcome = commands.run(tmp_path, *SHORT, *folder, "--fresh")
        assert second_outcome.result["notes"] == []
        # No trial is a repetition: the numbers have no gap.
        assert numbers(second_outcome.result) == numbers(unbroken)


@pytest.mark.parametrize(
    "other",
    [
        ("--performance", "accuracy"),
        ("--class-weight", "balanced"),
        ("--features", "petal width (cm)"),
        ("--max-rules", "3"),
    ],
)
def test_cached_search_does_not_affect_another(other, commands, tmp_path):
    assert "--pick 99" in commands.run(tmp_path, *SHORT, "--pick", "99").err  # its trials are kept
    command = commands.run(tmp_path, *SHORT, *other)
    assert command.code == 0, command.err


def test_smaller_budget_than_stored_trials_ends_at_once(commands, tmp_path):
    words = ("--storage", "kept.journal")
    command = commands.start(tmp_path, *SHORT, *words, wait_at=LATE).until_it_waits()
    command.end(signal.SIGKILL)  # with a trial that is to be repeated but exceeds the budget
    done = count_budgeted(finished(stored(tmp_path / "kept.journal")))
    assert BUDGET > done > 4
    less = commands.run(tmp_path, *SEARCH, *words, "--trials", 4)
    assert less.code == 0
    assert len(budgeted(less.result)) == done


def test_larger_budget_resumes_stored_trials(commands, tmp_path):
    words = ("--storage", "sqlite:///kept.db", "--study", "mine")
    first = commands.run(tmp_path, *SHORT, *words)
    more = commands.run(tmp_path, *SEARCH, *words, "--trials", BUDGET + 6)
    assert set(numbers(first.result)) < set(numbers(more.result))
    assert len(budgeted(more.result)) == BUDGET + 6
    [note] = more.result["notes"]
    message = f"resuming after {BUDGET} stored trials; to start again: another --study"
    assert note == message


# Output folders -----------------------------------------------------------------------------------


def test_folder_of_a_killed_run_is_resumed(commands, unbroken, tmp_path):
    words = (*SHORT, "--output", "run")
    folder = tmp_path / "run"
    commands.start(tmp_path, *words, wait_at=LATE).until_it_waits().end(signal.SIGKILL)
    assert names(folder) == {"trials.journal", "trials.lock", "trials.unfinished"}
    assert "Repeat its command to resume it" in (folder / "trials.unfinished").read_text()
    second_outcome = commands.run(tmp_path, *words)
    assert second_outcome.code == 0
    assert "resuming after" in second_outcome.err
    assert table(second_outcome.result) == table(unbroken)
    assert names(folder) == FILES
    # A finished one is not.
    refused = commands.run(tmp_path, *words)
    assert refused.code == 1
    assert "already contains rules.json, leaderboard.csv, candidates.json, run.json" in refused.err
    repeated = commands.run(tmp_path, *words, "--overwrite")
    assert repeated.code == 0
    assert "resuming after" not in repeated.err
    assert numbers(repeated.result) == numbers(unbroken)


def test_output_folder_of_interrupted_run_is_resumed(commands, tmp_path):
    words = (*SHORT, "--output", "run")
    commands.start(tmp_path, *words, wait_at=LATE).until_it_waits().end(signal.SIGINT)
    assert names(tmp_path / "run") == FILES | {"trials.unfinished"}
    second_outcome = commands.run(tmp_path, *words)
    assert second_outcome.code == 0
    assert "resuming after" in second_outcome.err
    assert names(tmp_path / "run") == FILES
    lines = (tmp_path / "run" / "leaderboard.csv").read_text().splitlines()
    assert len(lines) == 1 + N_BASELINES + BUDGET


def test_killed_run_with_overwrite_is_resumed(commands, tmp_path):
    words = (*SHORT, "--output", "run", "--overwrite")
    assert commands.run(tmp_path, *words).code == 0
    commands.start(tmp_path, *words, wait_at=LATE).until_it_waits().end(signal.SIGKILL)
    second_outcome = commands.run(tmp_path, *words)
    assert second_outcome.code == 0
    assert "resuming after" in second_outcome.err
    # Another search replaces it.
    commands.start(tmp_path, *words, wait_at=LATE).until_it_waits().end(signal.SIGKILL)
    other = commands.run(tmp_path, *words, "--seed", 1)
    assert other.code == 0
    assert "resuming after" not in other.err


def test_output_folder_of_other_search_is_rejected(commands, tmp_path):
    words = (*SHORT, "--output", "run")
    commands.start(tmp_path, *words, wait_at=LATE).until_it_waits().end(signal.SIGKILL)
    before = (tmp_path / "run" / "trials.journal").read_bytes()
    other = commands.run(tmp_path, *words, "--seed", 1)
    assert other.code == 1
    assert "--output run contains another search that was interrupted" in other.err
    assert (tmp_path / "run" / "trials.journal").read_bytes() == before


@pytest.mark.parametrize("seeds", [(0, 1, 2, 3), (0, 0, 0, 0)], ids=["different", "equal"])
@pytest.mark.parametrize("more", [(), ("--overwrite",)], ids=["new", "overwritten"])
def test_simultaneous_searches_do_not_share_a_folder(seeds, more, commands, tmp_path):
    """The first one locks the folder, the others fail at once, and then it is free again."""
    if more:
        assert commands.run(tmp_path, *SHORT, "--output", "run").code == 0
    words = (*SHORT, "--output", "run", *more)
    first = commands.start(tmp_path, *words, "--seed", seeds[0], wait_at=EARLY).until_it_waits()
    others = [commands.start(tmp_path, *words, "--seed", seed) for seed in seeds[1:]]
    for other in others:
        assert other.end().code == 1
        assert other.err == (
            "skescore: error: --output run is in use by another search. Wait until it ends, or "
            "name another folder.\n"
        )
    assert first.go_on().end().code == 0
    assert names(tmp_path / "run") == FILES
    alone = commands.run(tmp_path, *SHORT, "--seed", seeds[0])
    assert table(first.result) == table(alone.result)
    again = commands.run(tmp_path, *words, "--seed", seeds[-1])
    assert again.code == (0 if more else 1)
    assert more or "already contains rules.json" in again.err


# Cache --------------------------------------------------------------------------------------------


def test_equal_simultaneous_commands_are_independent(commands, unbroken, tmp_path):
    cache = tmp_path / "cache" / "skescore"
    first = commands.start(tmp_path, *SHORT, wait_at=MIDDLE).until_it_waits()
    second = commands.start(tmp_path, *SHORT, wait_at=MIDDLE).until_it_waits()
    assert len(list(cache.glob("*.journal"))) == 2
    for command in (second, first):  # the second one ends before the first
        command.go_on().end()
        assert command.code == 0
        assert command.result["notes"] == []
        assert numbers(command.result) == numbers(unbroken)
        assert table(command.result) == table(unbroken)
    assert_cache_holds_only_finished_trials(tmp_path)


def test_killed_search_is_resumed_next_to_another(commands, tmp_path):
    first = commands.start(tmp_path, *SHORT, wait_at=LATE).until_it_waits()
    second = commands.start(tmp_path, *SHORT, wait_at=MIDDLE).until_it_waits()
    first.end(signal.SIGKILL)
    second_outcome = commands.run(tmp_path, *SHORT)
    assert "resuming after" in second_outcome.err
    second.go_on().end()
    assert second.code == 0
    assert len(budgeted(second.result)) == BUDGET


def test_pick_option_uses_trials_of_a_finished_run(commands, tmp_path):
    def n_stored(command):
        notes = [note for note in command.result["notes"] if note.startswith("resuming after")]
        return sum(int(note.split()[2]) for note in notes)

    finished_run = commands.run(tmp_path, *SHORT)
    picked = commands.run(tmp_path, *SHORT, "--pick", 1)
    assert (finished_run.code, picked.code) == (0, 0)
    assert n_stored(picked) == BUDGET
    assert table(picked.result) == table(finished_run.result)
    assert picked.result["best"]["n_rules"] <= finished_run.result["best"]["n_rules"]
    in_folder = commands.run(tmp_path, *SHORT, "--pick", 2, "--output", "run")
    assert n_stored(in_folder) == BUDGET
    for options in (("--fresh",), ("--trials", 8)):  # other trials than those of the finished run
        assert n_stored(commands.run(tmp_path, *SHORT, "--pick", 1, *options)) == 0
    assert n_stored(commands.run(tmp_path, *SHORT)) == 0  # a finished search is not resumed


@pytest.mark.parametrize("why", ["a file", "damaged"])
def test_unusable_cache_is_ignored(why, commands, tmp_path):
    words = (*SEARCH, "--trials", 2)
    cache = tmp_path / "place"
    if why == "a file":
        cache.write_text("mine")
    else:
        command = commands.start(tmp_path, *words, cache=cache, wait_at=2).until_it_waits()
        command.end(signal.SIGKILL)
        [journal] = (cache / "skescore").glob("*.journal")
        lines = journal.read_bytes().splitlines(keepends=True)
        journal.write_bytes(lines[-1])
    command = commands.run(tmp_path, *words, cache=cache)
    assert command.code == 0
    assert command.result["notes"] == []
    if why == "a file":
        assert cache.read_text() == "mine"
        several = commands.run(tmp_path, *words, "--workers", 2, cache=cache)
        assert several.code == 1
        assert "--workers needs a storage that all workers can reach" in several.err
        assert "--storage trials.journal" in several.err


def test_old_cache_files_are_deleted(commands, tmp_path):
    folder = tmp_path / "cache" / "skescore"
    folder.mkdir(parents=True)
    day = 24 * 60 * 60
    for name, age in {"old": 31, "young": 29}.items():
        for ending in ("journal", "lock"):
            (folder / f"{name}.{ending}").touch()
            os.utime(folder / f"{name}.{ending}", times=(time.time() - age * day,) * 2)
    assert commands.run(tmp_path, *SEARCH, "--trials", 2).code == 0
    kept_names = {name for name in names(folder) if not name.endswith(".finished")}
    assert kept_names == {"young.journal", "young.lock"}


# Storages -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "other",
    [
        ("--seed", 1),
        ("--cv", 4),
        ("--reference", "black-box"),
        ("--psi", 2, "--scoring", "fire"),
        ("--scoring", "pareto"),
        ("--measures", "c2"),
        ("--drop", "petal width (cm)"),
    ],
)
def test_another_search_of_the_same_name_is_rejected(other, commands, tmp_path, searched):
    command = commands.run(
        searched.parent, *SHORT, "--storage", searched.name, "--study", "a", *other
    )
    assert command.code == 1
    assert "another search" in command.err or "needs" in command.err
    assert "'a/cart'" in command.err
    assert "study" in command.err.rpartition("Name another")[2]


@pytest.fixture(scope="module")
def searched(commands, tmp_path_factory):
    """Return a journal with a finished search."""
    folder = tmp_path_factory.mktemp("searched")
    words = ("--storage", "kept.journal", "--study", "a")
    assert commands.run(folder, *SHORT, *words).code == 0
    return folder / "kept.journal"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ("--fresh", "--storage", "kept.journal"),
            "--fresh: only discards trials in --output or in the cache",
        ),
        (("--workers", "0"), "--workers: 0 joins a search, so --storage is required"),
        (("--workers", "-1"), "--workers: must be an integer of at least 0, got '-1'"),
    ],
)
def test_tune_exits_with_two_on_wrong_usage(words, message, commands, tmp_path):
    command = commands.run(tmp_path, *SHORT, *words)
    assert (command.code, command.out) == (2, "")
    assert message in command.err


def test_study_name_separates_searches_in_one_storage(commands, tmp_path):
    words = (*SEARCH, "--trials", 2, "--storage", "kept.journal")
    for scoring in ("ice", "fire", "pareto"):
        command = commands.run(tmp_path, *words, "--scoring", scoring)
        assert command.code == 0
        assert "resuming after" not in command.err
    storage = open_storage(tmp_path / "kept.journal")
    assert set(optuna.get_all_study_names(storage)) == {
        f"iris-{scoring}/{name}"
        for scoring in ("ice", "fire", "pareto")
        for name in ("cart", "gridex")
    }


# Several workers ----------------------------------------------------------------------------------


def test_tune_shares_a_search_between_commands(commands, tmp_path):
    words = (*SHORT, "--storage", "kept.journal")
    first = commands.start(tmp_path, *words, wait_at=1).until_it_waits()
    second = commands.start(tmp_path, *words, wait_at=2).until_it_waits()
    joined = commands.start(tmp_path, *words, "--workers", 0, wait_at=2).until_it_waits()
    every = (first, second, joined)
    for command in every:
        command.go_on()
    for command in every:
        assert command.end().code == 0
    assert joined.out == ""
    assert table(first.result) == table(second.result)
    assert numbers(first.result) == numbers(second.result)
    assert first.result["best"] == second.result["best"]
    result = stored(tmp_path / "kept.journal")
    # Three may start one more than the budget allows at one moment: it ends unmeasured. They may
    # also store the same baseline twice: the first one counts.
    measured, baselines = {}, []
    for key, (state, params, _, attributes) in sorted(finished(result).items()):
        if "interrupted" in attributes or ("baseline" in attributes and params in baselines):
            continue
        measured[key] = state
        baselines += [params] * ("baseline" in attributes)
    assert numbers(first.result) == sorted(measured)
    assert len(budgeted(first.result)) == BUDGET
    assert set(measured.values()) == {TrialState.COMPLETE}
    assert len(measured) == BUDGET + N_BASELINES
    made_by = {
        result[name][number].user_attrs["heartbeat"]["process"]
        for name, number in measured
        if "baseline" not in result[name][number].user_attrs
    }
    assert made_by == {command.pid for command in every}


def test_search_resumes_next_to_orphaned_workers(commands, tmp_path):
    words = (*SHORT, "--storage", "kept.journal")
    main_process = commands.start(tmp_path, *words, wait_at=2).until_it_waits()
    worker = commands.start(tmp_path, *words, "--workers", 0, wait_at=2).until_it_waits()
    main_process.end(signal.SIGKILL)
    second_result = commands.start(tmp_path, *words, wait_at=2).until_it_waits()
    worker.go_on()
    second_result.go_on()
    assert (worker.end().code, second_result.end().code) == (0, 0)
    # Both may start the last one.
    assert len(budgeted(second_result.result)) in {BUDGET, BUDGET + 1}
    assert {row["state"] for row in second_result.result["leaderboard"]} == {"complete"}


@pytest.mark.slow
def test_tune_repeats_the_trial_of_a_killed_worker(commands, tmp_path):
    """The main process waits at its first trial until its worker has begun one."""
    words = (*SHORT, "--output", "run", "--workers", 2)
    command = commands.start(tmp_path, *words, wait_at=1).until_it_waits()
    path = tmp_path / "run" / "trials.journal"

    def worker():
        for some in stored(path).values():
            for trial in some:
                process = trial.user_attrs.get("heartbeat", {}).get("process", command.pid)
                if process != command.pid:
                    return process
        return None

    command.until(worker)
    pid = worker()
    os.kill(pid, signal.SIGKILL)
    command.go_on().end()
    assert command.code == 0
    result = stored(path)
    lost = {
        (name, trial.user_attrs["retry_of"])
        for name, some in result.items()
        for trial in some
        if "retry_of" in trial.user_attrs
    }
    assert numbers(command.result) == sorted(set(finished(result)) - lost)
    assert {row["state"] for row in command.result["leaderboard"]} == {"complete"}
    assert names(tmp_path / "run") == FILES


@pytest.mark.slow
def test_workers_option_needs_no_named_storage(commands, tmp_path):
    command = commands.run(tmp_path, *SHORT, "--workers", 2)
    assert command.code == 0
    assert len(budgeted(command.result)) in {BUDGET, BUDGET + 1}
    assert command.result["notes"] == []  # no worker has failed
    assert_cache_holds_only_finished_trials(tmp_path)


#: Run by every new Python: evaluations of workers never end.
WAITING = """
from pathlib import Path
import time
from skescore.tuning import FoldEvaluator

def waiting(self, extractor, fold):
    Path({reached!r}).touch()
    while True:
        time.sleep(0.01)

FoldEvaluator.__call__ = waiting
"""


@pytest.mark.slow
def test_interrupt_reaches_workers(commands, tmp_path):
    words = (*SEARCH, "--trials", 100_000, "--output", "run", "--workers", 2)
    # Both are in the middle of a trial when the interrupt arrives, however busy the machine is.
    reached, program = tmp_path / "reached", tmp_path / "program" / "sitecustomize.py"
    program.parent.mkdir()
    program.write_text(WAITING.format(reached=str(reached)))
    paths = os.pathsep.join([str(program.parent), *filter(None, [os.environ.get("PYTHONPATH")])])
    command = commands.start(tmp_path, *words, wait_at=MIDDLE, PYTHONPATH=paths).until_it_waits()
    command.until(reached.exists)
    path = tmp_path / "run" / "trials.journal"

    def workers():
        return {
            trial.user_attrs["heartbeat"]["process"]
            for some in stored(path).values()
            for trial in some
            if "heartbeat" in trial.user_attrs
        } - {command.pid}

    [worker] = workers()
    command.end(signal.SIGINT)
    assert command.code == 1
    assert "interrupted after" in command.err
    assert "Traceback" not in command.err
    with pytest.raises(ProcessLookupError):
        os.kill(worker, 0)
    assert not [t for some in stored(path).values() for t in some if t.state.name == "RUNNING"]


# Passwords ----------------------------------------------------------------------------------------


def test_unreachable_database_error_hides_password(capsys):
    words = ["tune", "iris", "--black-box", "decision-tree", "--trials", "12"]
    code = main([*words, "--storage", "postgresql://anna:geheim@127.0.0.1:1/studies"])
    captured = capsys.readouterr()
    assert (code, captured.out) == (1, "")
    assert "anna:***@127.0.0.1:1/studies" in captured.err or "pip install" in captured.err
    assert "geheim" not in captured.err


def test_remedies_leave_out_the_storage_and_its_password(tmp_path, capsys):
    table = pd.DataFrame({"a": range(20), "y": ["no", "yes"] * 10})
    table.to_csv(tmp_path / "few.csv", index=False)
    words = ["tune", str(tmp_path / "few.csv"), "--target", "y", "--trials", "12"]
    code = main([*words, "--storage", "postgresql://anna:geheim@127.0.0.1:1/studies"])
    err = capsys.readouterr().err
    assert code == 1
    remedy = err.partition("The table has only 20 rows, ")[2].partition("\n")[0]
    assert remedy.endswith("--target y --trials 12 --repeats 10")
    assert "geheim" not in err
