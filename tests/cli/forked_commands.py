"""Processes of the command line that share their imports, for tests.

A server forks one for every command it is sent. Each is a process of its own, as one from a shell
would be: it can be interrupted and killed. At a named evaluation of a candidate it waits.
"""

from __future__ import annotations

import contextlib
import importlib
import itertools
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any


class Command:
    """Running command."""

    def __init__(self, folder: Path, pid: int) -> None:
        self.folder, self.pid = folder, pid

    @property
    def running(self) -> bool:
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return False
        return True

    def until(self, condition: Callable[[], Any], seconds: float = 120) -> Command:
        end = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < end, f"what was waited for did not happen: {self.err}"
            time.sleep(0.02)
        return self

    def until_it_waits(self) -> Command:
        reached = self.folder / "reached"
        self.until(lambda: reached.exists() or not self.running)
        assert reached.exists(), self.err
        return self

    def go_on(self) -> Command:
        (self.folder / "released").touch()
        return self

    def end(self, sign: int | None = None) -> Command:
        """Wait for its end, after a signal if one is named."""
        if sign is not None:
            os.kill(self.pid, sign)
        return self.until(lambda: not self.running)

    @property
    def code(self) -> int:
        return int((self.folder / "code").read_text())

    @property
    def out(self) -> str:
        return (self.folder / "out").read_text(encoding="utf-8")

    @property
    def err(self) -> str:
        return (self.folder / "err").read_text(encoding="utf-8")

    @property
    def result(self) -> dict[str, Any]:
        return json.loads(self.out)


class Commands:
    """Starter of commands that ends those still running when it is closed."""

    def __init__(self) -> None:
        self._server = subprocess.Popen(
            [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self._numbers = itertools.count()
        self._started: list[Command] = []
        assert self._server.stdout is not None
        assert self._server.stdout.readline() == "ready\n"

    def start(
        self,
        directory: Path,
        *words: Any,
        wait_at: int = 0,
        cache: Path | None = None,
        **environment: str,
    ) -> Command:
        """Run a command in a folder, where its cache is as well."""
        folder = directory / f"command-{next(self._numbers)}"
        folder.mkdir()
        order = {
            "folder": str(folder),
            "directory": str(directory),
            "words": list(map(str, words)),
            "wait_at": wait_at,
            "environment": {"XDG_CACHE_HOME": str(cache or directory / "cache"), **environment},
        }
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        self._server.stdin.write(json.dumps(order) + "\n")
        self._server.stdin.flush()
        self._started.append(Command(folder, int(self._server.stdout.readline())))
        return self._started[-1]

    def run(self, directory: Path, *words: Any, **options: Any) -> Command:
        return self.start(directory, *words, **options).end()

    def close(self) -> None:
        for command in self._started:
            if command.running:
                os.kill(command.pid, signal.SIGKILL)
        self._server.communicate()


# --- server --------------------------------------------------------------------------------------


def _wait_at(number: int, reached: Path, released: Path) -> None:
    """Make the evaluation of that number wait."""
    from skescore.tuning import FoldEvaluator

    evaluate = FoldEvaluator.__call__
    count = 0

    def waiting(self: FoldEvaluator, extractor: Any, fold: int) -> dict[str, Any]:
        nonlocal count
        count += 1
        if count == number:
            reached.touch()
            while not released.exists():
                time.sleep(0.01)
        return evaluate(self, extractor, fold)

    FoldEvaluator.__call__ = waiting  # type: ignore[method-assign]


def _run(order: dict[str, Any]) -> int:
    from skescore.cli import main

    folder = Path(order["folder"])
    for number, name in ((0, os.devnull), (1, folder / "out"), (2, folder / "err")):
        os.dup2(os.open(name, os.O_RDWR | os.O_CREAT, 0o666), number)
    os.chdir(order["directory"])
    os.environ.update(order["environment"])
    if order["wait_at"]:
        _wait_at(order["wait_at"], folder / "reached", folder / "released")
    try:
        code = main(order["words"])
    except SystemExit as stop:
        code = int(stop.code or 0)
    sys.stdout.flush()
    sys.stderr.flush()
    return code


def _serve() -> None:
    for module in (
        "alembic.command",
        "optuna.storages._rdb.storage",
        "psycopg",
        "sklearn.ensemble",
        "skescore.black_boxes",
        "skescore.cli._tune",
        "skescore.cli._tune_search",
        "skescore.datasets",
        "skescore.report",
        "skescore.tuning.storage",
    ):
        with contextlib.suppress(ImportError):
            importlib.import_module(module)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # ended processes are reaped at once
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    for line in sys.stdin:
        order = json.loads(line)
        pid = os.fork()
        if pid:
            sys.stdout.write(f"{pid}\n")
            sys.stdout.flush()
            continue
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        # If tests run in the background, the shell makes all of them ignore it.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        code = 99
        try:
            code = _run(order)
        finally:
            Path(order["folder"], "code").write_text(str(code))
            os._exit(code)


if __name__ == "__main__":
    _serve()
