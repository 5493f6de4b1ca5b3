"""Forms of a storage, their errors, and hidden passwords."""

from __future__ import annotations

import importlib.util
import json
import os
import pickle
import sqlite3
import sys
import threading
import time
import traceback
from pathlib import Path
from typing import Any
from urllib.parse import quote

import optuna
import pytest
from hypothesis import given
from hypothesis import strategies as st
from optuna.storages import InMemoryStorage, JournalStorage, RDBStorage
from optuna.trial import TrialState

from skescore.tuning import open_storage
from skescore.tuning.storage import storage_name


def one_trial(storage: optuna.storages.BaseStorage) -> float:
    study = optuna.create_study(study_name="s", storage=storage, load_if_exists=True)
    study.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=1)
    return study.best_value


# --- forms ---------------------------------------------------------------------------------------


def test_open_storage_accepts_none_and_storages() -> None:
    assert isinstance(open_storage(None), InMemoryStorage)
    own = InMemoryStorage()
    assert open_storage(own) is own
    assert open_storage(None) is not open_storage(None)


@pytest.mark.parametrize(
    "form", ["study.log", "study.journal", "journal:///study.any", "sqlite:///study.db"]
)
def test_open_storage_accepts_relative_and_absolute_paths(
    form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    value = one_trial(open_storage(form))
    scheme, _, name = form.rpartition("/")
    assert (tmp_path / name).exists()
    absolute = f"{scheme}/{tmp_path}/{name}" if scheme else str(tmp_path / name)
    monkeypatch.chdir("/")
    second_result = optuna.load_study(study_name="s", storage=open_storage(absolute))
    assert second_result.best_value == value
    if not scheme:
        assert optuna.load_study(study_name="s", storage=open_storage(tmp_path / name)).trials


def test_storages_keep_all_attributes(url: str) -> None:
    """Measurements are restored exactly, also under names that need quotes."""
    folds = [
        {"score": 0.1 + 0.2, "n_rules": 3, "warnings": ["a 'quoted' %s {text} ψ"]},
        {"score": -1e-300},
    ]
    first = open_storage(url)
    study = optuna.create_study(study_name="iris/cart ψ", storage=first, direction="maximize")
    trial = study.ask({"x": optuna.distributions.FloatDistribution(0, 1)})
    trial.set_user_attr("folds", folds)
    study.tell(trial, 0.1 + 0.2)
    second = open_storage(url)
    [result] = optuna.load_study(study_name="iris/cart ψ", storage=second).trials
    assert result.user_attrs["folds"] == folds
    assert result.value == 0.1 + 0.2
    assert result.params == trial.params
    for storage in (first, second):
        close(storage)


def close(storage: Any) -> None:
    if hasattr(storage, "engine"):
        storage.engine.dispose()
    if hasattr(storage, "wait_server_ready"):
        storage.close()


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_open_storage_lets_workers_create_one_database(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    url = f"sqlite:///{tmp_path}/a.db"
    if kind == "postgresql":
        url = request.getfixturevalue("postgresql").new_database()
    barrier = threading.Barrier(4)
    results: list[Any] = []

    def join() -> None:
        barrier.wait()
        try:
            storage: Any = open_storage(url)
            optuna.create_study(study_name="s", storage=storage, load_if_exists=True).ask()
            storage.engine.dispose()
            results.append("joined")
        except Exception as error:
            results.append(error)

    threads = [threading.Thread(target=join) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == ["joined"] * 4
    storage: Any = open_storage(url)
    study = optuna.load_study(study_name="s", storage=storage)
    assert [trial.number for trial in study.trials] == [0, 1, 2, 3]
    storage.engine.dispose()


def test_copied_sqlite_storage_still_locks(tmp_path: Path) -> None:
    storage: Any = open_storage(f"sqlite:///{tmp_path}/{{a}}.db")
    copy = pickle.loads(pickle.dumps(storage))
    assert (tmp_path / "{a}.db").exists()
    with copy.engine.connect() as connection:
        assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"
        # It has only read, and others may not write.
        other = sqlite3.connect(tmp_path / "{a}.db", timeout=0)
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            other.execute("BEGIN IMMEDIATE")
        other.close()
    for one in (storage, copy):
        one.engine.dispose()


def test_open_storage_disables_optuna_heartbeats(tmp_path: Path) -> None:
    storage: Any = open_storage(f"sqlite:///{tmp_path}/a.db")
    optuna.create_study(storage=storage).ask()  # without a warning about missing heartbeats
    assert storage.get_heartbeat_interval() is None
    storage.engine.dispose()


# --- journals ------------------------------------------------------------------------------------


def test_journal_can_be_read_by_optuna(tmp_path: Path) -> None:
    """Programs of Optuna such as the dashboard read and write the same file."""
    path = str(tmp_path / "a.journal")
    ours = optuna.create_study(study_name="s", storage=open_storage(path))
    ours.tell(ours.ask(), 1.0)
    backend = optuna.storages.journal.JournalFileBackend(path)
    theirs = optuna.load_study(study_name="s", storage=JournalStorage(backend))
    theirs.tell(theirs.ask(), 2.0)
    assert [trial.value for trial in ours.trials] == [1.0, 2.0]


@pytest.mark.parametrize("rest", ['{"op_code":8,"worker_id":"x","tr', "{", "x" * 200_000])
def test_journal_with_incomplete_line_is_repaired(tmp_path: Path, rest: str) -> None:
    path = tmp_path / "a.journal"
    ours = optuna.create_study(study_name="s", storage=open_storage(path))
    ours.tell(ours.ask(), 1.0)
    with path.open("a") as file:
        file.write(rest)  # as by a process that is killed while it writes
    late = optuna.load_study(study_name="s", storage=open_storage(path))
    assert [trial.value for trial in late.trials] == [1.0]
    ours.tell(ours.ask(), 2.0)
    late.tell(late.ask(), 3.0)
    for study in (ours, late, optuna.load_study(study_name="s", storage=open_storage(path))):
        assert [trial.value for trial in study.trials] == [1.0, 2.0, 3.0]
    assert all(json.loads(line) for line in path.read_text().splitlines())


def test_journal_with_incomplete_first_line_is_repaired(tmp_path: Path) -> None:
    path = tmp_path / "a.journal"
    path.write_text('{"op_code":0,"worker')
    assert 0 <= one_trial(open_storage(path)) <= 1


@pytest.mark.parametrize(
    "text",
    [
        "notes without an end",
        "2026-01-01 INFO started\n",
        "[1, 2]\n",
        '{"op_code":99}\n',
        '{"op_code":0,"study\n{"op_code":0}\n',
    ],
)
def test_journal_rejects_other_files(tmp_path: Path, text: str) -> None:
    path = tmp_path / "run.log"
    path.write_text(text)
    with pytest.raises(ValueError, match=r"run\.log' is not an Optuna journal"):
        open_storage(path)
    assert path.read_text() == text


def test_journal_syncs_finished_trials(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.journal"
    study = optuna.create_study(study_name="s", storage=open_storage(path))
    synced: list[str] = []
    monkeypatch.setattr(
        os, "fsync", lambda number: synced.append(path.read_text().splitlines()[-1])
    )
    trial = study.ask()
    trial.set_user_attr("folds", [1])
    assert synced == []
    study.tell(trial, 0.25)
    [line] = synced
    assert json.loads(line)["values"] == [0.25]
    study.add_trial(optuna.create_trial(state=TrialState.COMPLETE, value=0.5))
    assert len(synced) == 2


# --- errors --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "storage",
    [
        "study",
        "study.db",
        "",
        "redis://localhost",
        "journal://study.log",
        "journal:///",
        "sqlite",
        "oracle://a:topsecret@b/c",
        "grpc://",
        "grpc://h:port",
        "grpc://h:1/path",
        "grpc://u:topsecret@h:1",
        "postgresql+://a:topsecret@b:port/c",
        Path("study.txt"),
    ],
)
def test_open_storage_rejects_unknown_forms(storage: Any) -> None:
    with pytest.raises(ValueError, match=r"must be None \(in memory\), a path") as caught:
        open_storage(storage)
    assert "topsecret" not in str(caught.value)
    assert "postgresql://host/database" in str(caught.value)


@pytest.mark.parametrize("storage", [1, b"a.log", ["a.log"]])
def test_open_storage_rejects_other_types(storage: Any) -> None:
    with pytest.raises(TypeError, match="storage must be None"):
        open_storage(storage)


@pytest.mark.parametrize(
    "form", ["{}/none/a.log", "journal:///{}/none/a", "sqlite:///{}/none/a.db"]
)
def test_open_storage_requires_the_folder(form: str, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"/none' does not exist\. Create it"):
        open_storage(form.format(tmp_path))


@pytest.mark.parametrize(
    "url", ["sqlite://", "sqlite:///:memory:", "sqlite:///file:a?mode=memory&uri=true"]
)
def test_open_storage_rejects_sqlite_in_memory(url: str) -> None:
    with pytest.raises(
        ValueError, match=r"different database in every thread\. Name a file, or use None"
    ):
        open_storage(url)


def test_open_storage_rejects_other_files(tmp_path: Path) -> None:
    (tmp_path / "a.db").write_text("no database, and long enough to be looked at " * 10)
    with pytest.raises(ConnectionError, match="cannot be opened: file is not a database"):
        open_storage(f"sqlite:///{tmp_path}/a.db")


@pytest.mark.parametrize(
    ("url", "driver", "extra"),
    [
        ("postgresql://a:topsecret@b/c", "psycopg", r"pip install \"psycopg"),
        ("postgres://a:topsecret@b/c", "psycopg", r"pip install \"psycopg"),
        ("postgresql+psycopg2://a:topsecret@b/c", "psycopg2", r"pip install \"psycopg"),
        ("mysql+pymysql://a:topsecret@b/c", "pymysql", "pip install pymysql"),
        ("mysql://a:topsecret@b/c", "", "pip install pymysql"),
        ("mysql+nonsense://a:topsecret@b/c", "nonsense", "pip install pymysql"),
    ],
)
def test_open_storage_names_missing_driver(
    url: str, driver: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("psycopg", "psycopg2", "pymysql", "MySQLdb"):
        monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match=f"needs a driver.*{driver}.*{extra}") as caught:
        open_storage(url)
    assert "topsecret" not in everything_shown(caught.value)


@pytest.mark.parametrize(
    ("installed", "driver"), [({"psycopg2"}, "psycopg2"), ({"psycopg", "psycopg2"}, "psycopg")]
)
def test_postgresql_uses_an_installed_driver(
    installed: set[str], driver: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", installed.__contains__)
    for module in ("psycopg", "psycopg2"):  # the driver that is tried is named
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ImportError, match=f"needs a driver '{driver}'"):
        open_storage("postgresql://a:topsecret@b/c")


def test_open_storage_names_missing_packages_of_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "grpc", None)
    with pytest.raises(ImportError, match=r"The storage 'grpc://h:1' needs .*pip install .*grpcio"):
        open_storage("grpc://h:1")


def test_open_storage_reports_unreachable_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("grpc")

    def not_ready(self: Any, timeout: float) -> None:
        raise ConnectionError

    monkeypatch.setattr(optuna.storages.GrpcStorageProxy, "wait_server_ready", not_ready)
    with pytest.raises(ConnectionError, match=r"no proxy responds within 20 s\. Start it"):
        open_storage("grpc://127.0.0.1:1")


# --- passwords -----------------------------------------------------------------------------------


def everything_shown(error: BaseException) -> str:
    """Return the error and its causes as Python would print them."""
    return "".join(traceback.format_exception(error)) + repr(error)


def test_open_storage_hides_wrong_password(postgresql: Any) -> None:
    for secret in ("top/secret@{word}", "topsecret"):
        with pytest.raises(ConnectionError, match=r"cannot be opened: .*password auth") as caught:
            open_storage(postgresql.url("postgres", secret))
        text = everything_shown(caught.value)
        for spelling in (secret, quote(secret), quote(secret, safe="")):
            assert spelling not in text
        assert f"postgresql://anna:***@127.0.0.1:{postgresql.port}/postgres" in text


def test_open_storage_reports_missing_database(postgresql: Any) -> None:
    with pytest.raises(ConnectionError, match='database "none" does not exist') as caught:
        open_storage(postgresql.url("none"))
    assert postgresql.password not in everything_shown(caught.value)


def test_open_storage_hides_password_of_open_database(postgresql: Any) -> None:
    url = postgresql.new_database()
    storage: Any = open_storage(url)
    assert isinstance(storage, RDBStorage)
    assert storage.engine.dialect.driver == "psycopg"
    study = optuna.create_study(storage=storage)
    name = url.rpartition("/")[2]
    expected = f"postgresql+psycopg://anna:***@127.0.0.1:{postgresql.port}/{name}"
    for one in (storage, study._storage):
        assert storage_name(one) == expected
        assert quote(postgresql.password, safe="") not in repr(one) + repr(vars(one).get("engine"))
    storage.engine.dispose()


@given(
    # Letters that occur nowhere else in the URL, so that finding them means that they leaked.
    secret=st.text("QZX", min_size=1),
    around=st.text(":/?#@%&= {}\n", max_size=3),
)
def test_storage_name_hides_the_password(secret: str, around: str) -> None:
    for password in (secret + around + secret, quote(secret + around, safe="")):
        for scheme in ("postgresql://", "mysql+pymysql://", "any://", "postgresql:/"):
            name = storage_name(f"{scheme}anna:{password}@host/db")
            assert not set("QZX") & set(name)
            assert name.endswith("@host/db")
            assert "anna" in name


@pytest.mark.parametrize(
    ("storage", "name"),
    [
        ("postgresql://anna@host:5432/db", "postgresql://anna@host:5432/db"),
        (
            "postgresql://host/db?user=a&password=topsecret&sslmode=require",
            "postgresql://host/db?user=a&password=***&sslmode=require",
        ),
        ("sqlite:////data/a.db", "sqlite:////data/a.db"),
        (Path("/data/a.log"), "/data/a.log"),
        ("grpc://host:13000", "grpc://host:13000"),
        ("anna:topsecret@host/db", "anna:***@host/db"),
        (InMemoryStorage(), "memory"),
    ],
)
def test_storage_name_describes_each_form(storage: Any, name: str) -> None:
    assert storage_name(storage) == name


def test_storage_name_describes_open_storages(tmp_path: Path) -> None:
    assert storage_name(open_storage(tmp_path / "a.log")) == f"journal:///{tmp_path}/a.log"
    storage: Any = open_storage(f"sqlite:///{tmp_path}/a.db")
    assert storage_name(storage) == f"sqlite:///{tmp_path}/a.db"
    storage.engine.dispose()


@pytest.mark.skipif(os.name == "nt", reason="locks are symbolic links")
def test_old_lock_gives_a_warning(tmp_path: Path) -> None:
    path = tmp_path / "a.journal"
    study = optuna.create_study(study_name="s", storage=open_storage(str(path)))
    lock = tmp_path / "a.journal.lock"
    lock.symlink_to(path)
    an_hour_ago = time.time() - 3600
    os.utime(lock, (an_hour_ago, an_hour_ago), follow_symlinks=False)
    freed = threading.Timer(0.3, lock.unlink)
    freed.start()
    with pytest.warns(UserWarning, match=r"locked for 3600 s .* delete '.*a\.journal\.lock'"):
        study.ask()
    freed.join()
    assert len(study.trials) == 1


@pytest.mark.skipif(os.name == "nt", reason="locks are symbolic links")
@pytest.mark.parametrize("moment", ["before", "while", "after"])
def test_interrupt_during_the_release_of_a_lock_is_raised(
    moment: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = str(tmp_path / "a.journal")
    study = optuna.create_study(study_name="s", storage=open_storage(path))
    rename, unlink = os.rename, os.unlink

    def interrupt_rename(*paths: str) -> None:
        if moment == "while":
            rename(*paths)
        raise KeyboardInterrupt

    def interrupt_unlink(one: str) -> None:
        unlink(one)
        raise KeyboardInterrupt

    interrupted = (
        {"unlink": interrupt_unlink} if moment == "after" else {"rename": interrupt_rename}
    )
    with monkeypatch.context() as patch:
        for name, function in interrupted.items():
            patch.setattr(os, name, function)
        with pytest.raises(KeyboardInterrupt):
            study.set_user_attr("a", 1)
    assert not os.path.lexists(f"{path}.lock")
    study.set_user_attr("b", 2)
    again = optuna.load_study(study_name="s", storage=open_storage(path))
    assert again.user_attrs == study.user_attrs == {"a": 1, "b": 2}
