"""Faults in the middle of searches and benches: what was finished stays, and the rest is the same.

Commands are signalled at random moments and repeated until one ends by itself; disks and memory run
out; journals lose their ends. ``SKESCORE_HOSTILE=10000`` makes some hundred times as many signals.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import runpy
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import psutil
import pytest
from optuna.trial import TrialState

from skescore.tuning.storage import open_storage

if not hasattr(os, "fork"):
    pytest.skip("commands are forked", allow_module_level=True)

FORKED = Path(__file__).parents[1] / "cli" / "forked_commands.py"
SERVER = Path(__file__).parents[1] / "tuning" / "storage" / "conftest.py"
JOURNAL = Path(__file__).parents[1] / "data" / "formats" / "journal.log"
SIGNALS = [signal.SIGKILL, signal.SIGTERM, signal.SIGINT]
SEARCH = (
    "tune",
    "iris",
    "--black-box",
    "decision-tree",
    "--cv",
    "2",
    "--extractors",
    "exact,gridex",
    "--format",
    "json",
    "--trials",
    "8",
    "--quiet",
)
BENCH = (
    "bench",
    "--data",
    "iris,diabetes",
    "--black-boxes",
    "decision-tree",
    "--extractors",
    "cart,gridex,real",
    "--folds",
    "3",
    "--quiet",
)


@pytest.fixture(scope="module")
def commands():
    started = runpy.run_path(str(FORKED))["Commands"]()
    yield started
    started.close()


@pytest.fixture(scope="module")
def database():
    """Return a function that makes empty databases of a PostgreSQL."""
    with runpy.run_path(str(SERVER))["running_postgresql"]() as server:
        yield server.new_database


@pytest.fixture
def new_storage(request):
    """Return a function that returns the options of an empty storage."""
    if request.param in ("postgresql", "grpc"):
        make = request.getfixturevalue("database")
        make_proxy = request.getfixturevalue("proxies")
        is_proxy = request.param == "grpc"
        return lambda: ["--storage", make_proxy(make()) if is_proxy else make()]
    return lambda: [] if request.param is None else ["--storage", request.param]


@pytest.fixture
def proxies():
    """Yield a function that starts a gRPC server in front of a storage, and returns its URL."""
    running = []

    def start(storage):
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
            port = listener.getsockname()[1]
        running.append(subprocess.Popen([sys.executable, "-c", PROXY, storage, str(port)]))
        return f"grpc://127.0.0.1:{port}"

    yield start
    for process in running:
        process.kill()
        process.wait()


PROXY = """
import sys
from optuna.storages import run_grpc_proxy_server
from skescore.tuning import open_storage
run_grpc_proxy_server(open_storage(sys.argv[1]), host="127.0.0.1", port=int(sys.argv[2]))
"""
POSTGRESQL = pytest.param("postgresql", marks=pytest.mark.engine)
GRPC = pytest.param("grpc", marks=pytest.mark.engine)


def board(result):
    """Return the leaderboard without durations; no trial occurs twice."""
    # Queries before an interruption are repeated; a repeated trial has another
    # number, and may come too late to be a candidate that is extracted from all rows as well.
    columns = "extractor", "params", "score", "score_std", "state", "n_rules", "performance"
    rows = [{name: row[name] for name in columns} for row in result]
    numbers = [(row["extractor"], row["trial"]) for row in result]
    assert len(set(numbers)) == len(numbers), "a trial is there twice"
    return sorted(json.dumps(row, sort_keys=True) for row in rows)


def broken(rng, commands, folder, words, longest, *, between=lambda: None):
    """Signal a command up to three times at random moments; the one that ends by itself.

    Of several processes one is signalled.
    """
    messages = []
    for sign in [*rng.permutation(SIGNALS)[: rng.integers(1, 4)].tolist(), None]:
        command = commands.start(folder, *words)
        if sign is not None:
            moment = float(rng.uniform(0, longest))
            messages.append((sign, round(moment, 3)))
            time.sleep(moment)
            if command.running:
                one = psutil.Process(command.pid)
                with contextlib.suppress(psutil.NoSuchProcess):
                    rng.choice([one, *one.children()]).send_signal(sign)
        command.end()
        between()
        if (command.folder / "code").exists() and command.code == 0:
            return command, messages
        assert sign is not None, (messages, command.code, command.err)
        assert "Traceback" not in command.err, (messages, command.err)
    raise AssertionError(messages)


@pytest.mark.slow
@pytest.mark.parametrize(
    "new_storage", ["trials.journal", "sqlite:///trials.db", None, POSTGRESQL], indirect=True
)
def test_signalled_search_gives_uninterrupted_result(attack, commands, tmp_path, new_storage):
    folder = tmp_path / "unbroken"
    folder.mkdir()
    begin = time.monotonic()
    unbroken = commands.run(folder, *SEARCH, *new_storage())
    longest = time.monotonic() - begin
    assert unbroken.code == 0, unbroken.err

    def check(rng):
        case_folder = tmp_path / f"broken-{rng.integers(2**60)}"
        case_folder.mkdir()
        command, signals = broken(rng, commands, case_folder, [*SEARCH, *new_storage()], longest)
        assert command.result["rules"] == unbroken.result["rules"], signals
        expected = board(unbroken.result["leaderboard"])
        assert board(command.result["leaderboard"]) == expected, signals
        assert (
            command.result["leaderboard"][0]["score"] == unbroken.result["leaderboard"][0]["score"]
        )
        shutil.rmtree(case_folder)

    attack(check, 3, 0.003)


@pytest.mark.slow
@pytest.mark.parametrize("n_workers", [2, 4])
@pytest.mark.parametrize("new_storage", ["trials.journal", POSTGRESQL, GRPC], indirect=True)
def test_signalled_workers_finish_every_trial_once(
    attack, commands, tmp_path, new_storage, n_workers
):
    folder = tmp_path / "unbroken"
    folder.mkdir()
    alone = commands.run(folder, *SEARCH, *new_storage())
    rows_alone = alone.result["leaderboard"]
    measured = {row_key(row): row["score"] for row in rows_alone if row["state"] == "complete"}
    words = [*SEARCH, "--workers", str(n_workers)]
    begin = time.monotonic()
    assert commands.run(folder, *words, *new_storage(), "--study", "two").code == 0
    longest = time.monotonic() - begin

    def check(rng):
        case_folder = tmp_path / f"broken-{rng.integers(2**60)}"
        case_folder.mkdir()
        stored, finished = new_storage(), {}

        def between():
            """Check that finished results stay unchanged."""
            result = finished_in(stored[1], case_folder)
            assert finished.items() <= result.items()
            finished.update(result)

        command, signals = broken(
            rng, commands, case_folder, [*words, *stored], longest, between=between
        )
        rows = command.result["leaderboard"]
        complete = {(r["extractor"], r["trial"]) for r in rows if r["state"] == "complete"}
        assert complete == set(finished), signals
        assert len(rows) == 8, signals
        for row in rows:
            # Whether a trial loses the race depends on those that the other worker has finished.
            assert row["state"] in ("complete", "pruned"), signals
            if row["state"] == "complete":
                assert measured.setdefault(row_key(row), row["score"]) == row["score"], signals
        shutil.rmtree(case_folder)

    attack(check, 1, 0.003)


def row_key(row):
    return row["extractor"], json.dumps(row["params"], sort_keys=True)


def finished_in(url, folder):
    """Return the values of all measured trials by extractor and number."""
    path = folder / url
    if "://" not in url and not path.exists():
        return {}
    storage = open_storage(url if "://" in url else str(path))
    try:
        return {
            (study.study_name.rpartition("/")[2], trial.number): (trial.params, trial.values)
            for study in storage.get_all_studies()
            for trial in storage.get_all_trials(study._study_id)
            if trial.state == TrialState.COMPLETE
        }
    finally:
        if hasattr(storage, "engine"):
            storage.engine.dispose()
        if hasattr(storage, "wait_server_ready"):
            storage.close()


@pytest.mark.slow
def test_signalled_bench_gives_uninterrupted_result(attack, commands, tmp_path):
    begin = time.monotonic()
    unbroken = commands.run(tmp_path, *BENCH, "--output", "unbroken")
    longest = time.monotonic() - begin
    assert unbroken.code == 0, unbroken.err

    def rows(folder):
        table = pd.read_csv(folder / "rows.csv")
        cells = ["data", "black_box", "extractor", "seed", "fold"]
        assert not table.duplicated(cells).any(), "a row is there twice"
        return table.drop(columns="seconds").sort_values(cells).to_csv(index=False)

    expected = rows(tmp_path / "unbroken")

    def check(rng):
        name = f"broken-{rng.integers(2**60)}"
        _, signals = broken(rng, commands, tmp_path, [*BENCH, "--output", name], longest)
        assert rows(tmp_path / name) == expected, signals
        shutil.rmtree(tmp_path / name)

    attack(check, 3, 0.003)


def states(path):
    storage = open_storage(str(path))
    return [
        (trial.number, trial.state, trial.params)
        for study in storage.get_all_studies()
        for trial in storage.get_all_trials(study._study_id)
    ]


def test_truncated_journal_loses_last_records_only(tmp_path):
    content = JOURNAL.read_bytes()
    path = tmp_path / "cut.journal"
    lines = content.splitlines(keepends=True)
    for n_removed in (1, 2):
        remaining = b"".join(lines[:-n_removed])
        path.write_bytes(remaining)
        before = states(path)
        last = lines[-n_removed]
        for length in range(0, len(last), max(1, len(last) // 40)):
            path.write_bytes(remaining + last[:length])
            assert states(path) == before


def test_damaged_journal_is_named(attack, tmp_path):
    content, path = JOURNAL.read_bytes(), tmp_path / "damaged.journal"
    path.write_bytes(content)
    expected = [number for number, *_ in states(path)]

    def check(rng):
        damaged = bytearray(content)
        at = int(rng.integers(len(content) // 4, 3 * len(content) // 4))
        length = int(rng.integers(1, 40))
        damaged[at : at + length] = rng.integers(0, 256, length).astype("uint8").tobytes()
        path.write_bytes(damaged)
        try:
            results = [number for number, *_ in states(path)]
        except ValueError as error:
            refusal = str(error)
        else:
            assert results == expected  # where a text within a record has changed
            return
        assert str(path) in refusal
        assert "Move it" in refusal

    attack(check, 40)


# --- exhausted resources ----------------------------------------------------------------------


def limited(folder, words, before=(), **limits):
    """Run a command that has less than it needs; gives its code and what it tells."""

    def limit():
        for name, most in limits.items():
            resource.setrlimit(getattr(resource, f"RLIMIT_{name}"), (most, most))

    environment = {**os.environ, "XDG_CACHE_HOME": str(folder / "cache")}
    outcome = subprocess.run(
        [*before, sys.executable, "-m", "skescore", *words],
        cwd=folder,
        env=environment,
        preexec_fn=limit,
        capture_output=True,
        text=True,
        timeout=300,
    )
    return outcome.returncode, outcome.stderr


@pytest.mark.slow
def test_search_resumes_after_full_disk(commands, tmp_path):
    words = [*SEARCH, "--storage", "trials.journal"]
    code, output = limited(tmp_path, words, FSIZE=20_000)
    assert code not in (0, 99)
    assert "Traceback" not in output
    assert "trials.journal" in output
    resumed = commands.run(tmp_path, *words)
    assert resumed.code == 0, resumed.err
    fresh = tmp_path / "fresh"
    fresh.mkdir()
    unbroken = commands.run(fresh, *words)
    assert board(resumed.result["leaderboard"]) == board(unbroken.result["leaderboard"])


@pytest.mark.slow
def test_bench_resumes_after_full_disk(commands, tmp_path):
    code, output = limited(tmp_path, [*BENCH, "--output", "rows"], FSIZE=3_000)
    assert code != 0
    assert "Traceback" not in output
    assert "rows" in output
    resumed = commands.run(tmp_path, *BENCH, "--output", "rows")
    assert resumed.code == 0, resumed.err
    assert len(pd.read_csv(tmp_path / "rows" / "rows.csv")) == 15  # REAL is for classes only


@pytest.mark.slow
def test_too_little_memory_gives_one_line_error(tmp_path):
    rows = "a,b,y\n" + "\n".join(f"{i},{i % 7},{i % 3}" for i in range(600_000))
    (tmp_path / "many.csv").write_text(rows)
    words = ["tune", "many.csv", "--target", "y", "--task", "classification", "--black-box", "knn"]
    code, output = limited(tmp_path, [*words, "--trials", "2", "--quiet"], AS=450 << 20)
    assert code != 0
    assert "Traceback" not in output, output


@pytest.mark.slow
def test_deleted_folder_is_named(commands, tmp_path):
    words = [*SEARCH, "--storage", "gone/trials.journal"]
    (tmp_path / "gone").mkdir()
    command = commands.start(tmp_path, *words, wait_at=6)
    command.until_it_waits()
    shutil.rmtree(tmp_path / "gone")
    command.go_on().end()
    assert command.code not in (0, 99)
    assert "Traceback" not in command.err
    assert "gone/trials.journal" in command.err


#: For root nothing is read-only, unless it drops its privileges.
NO_ROOT = (
    [] if os.geteuid() else ["setpriv", "--bounding-set=-dac_override", "--inh-caps=-dac_override"]
)


@pytest.mark.slow
@pytest.mark.skipif(
    NO_ROOT and not shutil.which(NO_ROOT[0]), reason="setpriv (util-linux) is not on the PATH"
)
@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["--storage", "shut/t.journal"], "The journal 'shut/t.journal' cannot be written"),
        (["--storage", "old.journal"], "The journal 'old.journal' cannot be written"),
        (["--output", "shut/out"], "--output shut/out cannot be written to"),
        (["--output", "shut"], "--output shut cannot be written to"),
    ],
)
def test_unwritable_folder_is_named(tmp_path, words, named):
    (tmp_path / "shut").mkdir(mode=0o500)
    (tmp_path / "old.journal").touch(0o400)
    code, output = limited(tmp_path, [*SEARCH, *words], before=NO_ROOT)
    assert code not in (0, 99)
    assert named in output
    assert "Traceback" not in output
