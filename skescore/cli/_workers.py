"""Further processes of one command, which take trials from the same storage."""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
from types import TracebackType
from typing import IO, Any, Protocol

from skescore.cli import _output as output

#: Seconds that workers have to end once the budget is spent: they were at their last trials.
_PATIENCE = 60
#: Seconds that they have once the search was broken off.
_HASTE = 10


class _Place(Protocol):
    """Where trials are kept."""

    @property
    def storage(self) -> str | None: ...
    @property
    def study(self) -> str: ...


class Workers:
    """Further processes of this command, as long as the context lasts.

    Parameters
    ----------
    options : argparse.Namespace
        What was asked for.
    kept : Kept
        Where trials are kept.
    notes : Notes, optional
        Told of workers that failed.

    Raises
    ------
    ValueError
        If trials are kept in memory, which other processes cannot reach.

    Notes
    -----
    An interrupt from the terminal reaches this process alone, which hands it on: workers give
    their trials back. What they write is shown only where they fail.
    """

    def __init__(
        self, options: argparse.Namespace, kept: _Place, notes: output.Notes | None = None
    ) -> None:
        self._number = max(options.workers - 1, 0)
        self._notes = notes
        words = [*options.command_line[1:], "--workers", "0", "--quiet"]
        if options.storage is None:
            words += ["--storage", str(kept.storage), "--study", kept.study]
        self._command = [sys.executable, "-m", "skescore", *words]
        self._processes: list[tuple[subprocess.Popen[bytes], IO[bytes]]] = []
        if self._number and kept.storage is None:
            raise ValueError(
                "--workers needs a place that all of them can reach, and no file can be written "
                "in the cache. Name one: --storage trials.journal."
            )

    def __enter__(self) -> Workers:
        apart: dict[str, Any] = {"process_group": 0} if os.name == "posix" else {}
        try:
            for _ in range(self._number):
                errors = tempfile.TemporaryFile()
                process = subprocess.Popen(
                    self._command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                    stderr=errors, **apart,
                )  # fmt: skip
                self._processes.append((process, errors))
        except BaseException:
            self._kill()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if kind is not None:
                for process, _ in self._processes:
                    if os.name == "posix":
                        process.send_signal(signal.SIGINT)
                    else:
                        process.terminate()
            for process, errors in self._processes:
                process.wait(_PATIENCE if kind is None else _HASTE)
                if process.returncode and kind is None:
                    self._tell(process.returncode, errors)
        except subprocess.TimeoutExpired:
            pass
        finally:
            self._kill()

    def _kill(self) -> None:
        for process, errors in self._processes:
            process.kill()  # does nothing to one that has ended
            process.wait()
            errors.close()

    def _tell(self, code: int, errors: IO[bytes]) -> None:
        """Note that a worker failed, and why; its trial was taken over."""
        errors.seek(0)
        lines = errors.read().decode(errors="replace").strip().splitlines()
        reason = lines[-1].removeprefix("skescore: error: ") if lines else f"exit code {code}"
        if self._notes is not None:
            self._notes.add(f"a worker has failed: {reason}")
