"""Real storages (files, a PostgreSQL of these tests, the proxy of Optuna) and real workers."""

from __future__ import annotations

import contextlib
import glob
import importlib.util
import json
import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import optuna
import pytest

from skescore.tuning import open_storage

#: Requirements that `tox` names must be installed; elsewhere missing ones are skipped.
NEEDED = os.environ.get("SKESCORE_ENGINES", "").split(",")


def is_there(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:  # of the package that it would be in
        return False


def need(engine: str, *modules: str) -> None:
    missing = [name for name in modules if not is_there(name)]
    if missing:
        give_up(engine, f"{missing} not installed")


def give_up(engine: str, reason: str) -> None:
    if engine in NEEDED:
        pytest.fail(f"{engine}: {reason}")
    pytest.skip(f"{engine}: {reason}")


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


@pytest.fixture(autouse=True)
def _quiet_studies() -> Iterator[None]:
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    yield
    optuna.logging.set_verbosity(before)


# --- PostgreSQL ----------------------------------------------------------------------------------


class PostgreSQL:
    """A server on the loopback, with a password that must be quoted in a URL."""

    def __init__(self, folder: Path, programs: Path, user: str | None) -> None:
        self.folder, self.programs, self.user = folder, programs, user
        self.port = free_port()
        self.password = f"p@ss:w/{{rd}} {secrets.token_hex(8)}"
        self.count = 0

    def run(self, program: str, *arguments: str) -> None:
        # The server does not run as root.
        other: dict[str, Any] = {} if self.user is None else {"user": self.user, "extra_groups": ()}
        log = self.folder / "out.txt"
        with log.open("a") as output:  # a pipe would stay open as long as the server runs
            code = subprocess.run(
                [self.programs / program, *arguments],
                stdout=output,
                stderr=output,
                cwd="/",
                check=False,
                **other,
            ).returncode
        if code:
            raise RuntimeError(f"{program} failed: {log.read_text()}")

    def start(self) -> None:
        secret = self.folder / "password"
        secret.write_text(self.password)
        if self.user is not None:
            account = pwd.getpwnam(self.user)
            for path in (self.folder, secret):
                os.chown(path, account.pw_uid, account.pw_gid)
        self.data = str(self.folder / "data")
        self.run(
            "initdb",
            "-D",
            self.data,
            "-U",
            "anna",
            "-A",
            "scram-sha-256",
            "--pwfile",
            str(secret),
            "--no-sync",
            "--no-locale",
            "-E",
            "UTF8",
        )
        self.go_on()

    def go_on(self) -> None:
        options = f"-p {self.port} -c listen_addresses=127.0.0.1 -c unix_socket_directories="
        self.run("pg_ctl", "-D", self.data, "-w", "-o", f"{options} -c fsync=off", "start")

    def stop(self, mode: str = "immediate") -> None:
        self.run("pg_ctl", "-D", self.data, "-m", mode, "-w", "stop")

    def url(self, database: str, password: str | None = None) -> str:
        secret = quote(self.password if password is None else password, safe="")
        return f"postgresql://anna:{secret}@127.0.0.1:{self.port}/{database}"

    def new_database(self) -> str:
        """Return the URL of an empty database."""
        import psycopg

        self.count += 1
        name = f"studies{self.count}"
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")
        return self.url(name)


@contextlib.contextmanager
def running_postgresql() -> Iterator[PostgreSQL]:
    """Run a server for the tests that need it."""
    need("postgresql", "psycopg")
    positions = [shutil.which("initdb"), *sorted(glob.glob("/usr/lib/postgresql/*/bin/initdb"))]
    results = [Path(place).resolve().parent for place in positions if place]
    if not results:
        give_up("postgresql", "no initdb")
    user = None
    if os.geteuid() == 0:
        names = {account.pw_name for account in pwd.getpwall()}
        user = next((name for name in ("postgres", "nobody") if name in names), None)
        if user is None:
            give_up("postgresql", "root may not run it, and there is no other user")
    # pytest's own temporary folders are closed to other users.
    folder = Path(tempfile.mkdtemp(prefix="skescore-postgresql-"))
    server = PostgreSQL(folder, results[0], user)
    try:
        server.start()
        yield server
        server.stop()
    finally:
        shutil.rmtree(folder)


@pytest.fixture(scope="session")
def postgresql() -> Iterator[PostgreSQL]:
    with running_postgresql() as server:
        yield server


# --- workers -------------------------------------------------------------------------------------


class Workers:
    """Processes that were forked by `workers.py`."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, Path(__file__).with_name("workers.py")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == "ready\n"

    def start(self, **order: Any) -> int:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(order) + "\n")
        self.process.stdin.flush()
        return int(self.process.stdout.readline())

    @staticmethod
    def is_running(pid: int) -> bool:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return False
        return True

    @staticmethod
    def wait_until(condition: Callable[[], Any], seconds: float = 60.0) -> Any:
        end = time.monotonic() + seconds
        while not (result := condition()):
            if time.monotonic() > end:
                raise TimeoutError("what was waited for did not happen")
            time.sleep(0.02)
        return result

    def stop(self) -> None:
        self.process.communicate()


@pytest.fixture(scope="session")
def workers() -> Iterator[Workers]:
    if not hasattr(os, "fork"):
        pytest.skip("workers are forked")
    started = Workers()
    yield started
    started.stop()


# --- storages ------------------------------------------------------------------------------------


@pytest.fixture(params=["journal", "sqlite", "postgresql", "grpc"])
def url(request: pytest.FixtureRequest, tmp_path: Path, workers: Workers) -> Iterator[str]:
    """Return an empty storage of each kind."""
    if request.param == "journal":
        yield str(tmp_path / "study.journal")
    elif request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/study.db"
    elif request.param == "postgresql":
        yield request.getfixturevalue("postgresql").new_database()
    else:
        need("grpc", "grpc", "google.protobuf")
        port = free_port()
        log = str(tmp_path / "proxy.txt")
        pid = workers.start(storage=f"sqlite:///{tmp_path}/study.db", port=port, log=log)
        yield f"grpc://127.0.0.1:{port}"
        os.kill(pid, signal.SIGKILL)
        assert not Path(log).exists(), Path(log).read_text()


@pytest.fixture(params=["postgresql", "grpc"])
def restartable(
    request: pytest.FixtureRequest, tmp_path: Path, workers: Workers
) -> Iterator[tuple[str, Callable[[], None], Callable[[], None]]]:
    """Return a storage behind a server, a function to stop it and one to restart it."""
    if request.param == "postgresql":
        server = request.getfixturevalue("postgresql")
        yield server.new_database(), server.stop, server.go_on
        return
    need("grpc", "grpc", "google.protobuf")
    port, running = free_port(), []

    def start() -> None:
        storage, log = f"sqlite:///{tmp_path}/behind.db", str(tmp_path / "proxy.txt")
        running.append(workers.start(storage=storage, port=port, log=log))

    start()
    yield f"grpc://127.0.0.1:{port}", lambda: os.kill(running.pop(), signal.SIGKILL), start
    os.kill(running.pop(), signal.SIGKILL)


@pytest.fixture
def opened(url: str) -> Iterator[Callable[[], optuna.storages.BaseStorage]]:
    """Return a function that opens the storage like another process or machine."""
    storages = []

    def open_it() -> optuna.storages.BaseStorage:
        storages.append(open_storage(url))
        return storages[-1]

    yield open_it
    for storage in storages:
        close(storage)


def close(storage: Any) -> None:
    if hasattr(storage, "engine"):
        storage.engine.dispose()
    if hasattr(storage, "wait_server_ready"):
        storage.close()
