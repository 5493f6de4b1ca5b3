"""Cells measured in processes of their own, which are ended where a cell takes too long."""

from __future__ import annotations

import contextlib
import functools
import os
import pickle
import queue
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any

import cloudpickle

from skescore._deadline import time_limit
from skescore._processes import end_with_parent
from skescore.bench._cells import Group, failed_row, measure_group

__all__ = ["measure_limited", "work"]

#: Seconds that a cell may take beyond its limit to end by itself and say so.
_GRACE = 2.0
#: The training of a black box may take so many times the limit of a cell.
_TRAINING = 4.0
_PROGRAM = """
import os, sys
sys.path[:] = sys.argv.pop(1).split(os.pathsep)
from skescore.bench._limited import work
work(int(sys.argv[1]))
"""


def measure_limited(
    groups: Sequence[Group], n_jobs: int, seconds: float
) -> Iterator[dict[str, Any]]:
    """Measure groups of cells; a cell that takes longer gives a failed row that says so.

    Parameters
    ----------
    groups : sequence of Group
        What to measure.
    n_jobs : int
        Processes.
    seconds : float
        Wall-clock time that a cell may take, that of its black box apart.

    Yields
    ------
    dict
        Rows, as they come.
    """
    waiting: queue.SimpleQueue[Group] = queue.SimpleQueue()
    for group in groups:
        waiting.put(group)
    # None: a thread is done; an error is raised here.
    found: queue.SimpleQueue[dict[str, Any] | BaseException | None] = queue.SimpleQueue()
    workers = [_Worker(seconds) for _ in range(min(n_jobs, len(groups)))]

    def serve(worker: _Worker) -> None:
        try:
            while not waiting.empty():
                for row in worker.measure(waiting.get_nowait()):
                    found.put(row)
        except queue.Empty:
            pass
        except BaseException as error:
            found.put(error)
        found.put(None)

    threads = [threading.Thread(target=serve, args=(w,), daemon=True) for w in workers]
    for thread in threads:
        thread.start()
    at_work = len(threads)
    try:
        while at_work:
            row = found.get()
            if row is None:
                at_work -= 1
            elif isinstance(row, BaseException):
                raise row
            else:
                yield row
    finally:
        for worker in workers:
            worker.end()


class _Worker:
    """A process that measures one group after the other, and is begun anew where it was ended."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._process: subprocess.Popen[bytes] | None = None
        self._ended = self._late = False

    def measure(self, group: Group) -> Iterator[dict[str, Any]]:
        left = list(group.entries)
        while left and not self._ended:
            process = self._running()
            assert process.stdin is not None
            send(process.stdin, (group._replace(entries=tuple(left)), self._seconds))
            trained = False
            while left:
                limit = self._seconds + _GRACE if trained else _TRAINING * self._seconds
                message = self._next(process, limit)
                if message is None:
                    break
                trained = True
                if isinstance(message, dict):
                    left.pop(0)
                    yield message
            if left and not self._ended:
                code = self.end()
                self._ended = False
                reason: Exception = TimeoutError(
                    f"no rules within {self._seconds:g} s; its process was ended"
                )
                if code is not None:
                    reason = RuntimeError(f"its process ended by itself, with exit code {code}")
                lost = [left.pop(0)] if trained else left
                where = "" if trained else "the black box cannot be trained: "
                for entry in lost:
                    yield failed_row(group, entry, reason, where)
                if not trained:
                    return

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            command = [sys.executable, "-P", "-c", _PROGRAM, os.pathsep.join(_module_paths())]
            self._process = subprocess.Popen(
                [*command, str(os.getpid())], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                env={**os.environ, "OMP_NUM_THREADS": "1"},
            )  # fmt: skip
        return self._process

    def _next(self, process: subprocess.Popen[bytes], limit: float) -> Any:
        """The next message; None if there is none in time, or no process any more."""
        timer = threading.Timer(limit, process.kill)
        timer.start()
        try:
            return cloudpickle.load(process.stdout)  # our own process wrote it
        except (EOFError, pickle.UnpicklingError, OSError):
            self._late = not timer.is_alive()
            return None
        finally:
            timer.cancel()

    def end(self) -> int | None:
        """End the process; gives its exit code, or None if it was ended for being late."""
        self._ended = True
        process, self._process = self._process, None
        if process is None:
            return None
        process.kill()
        code = process.wait()
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()
        return None if self._late else code


def _module_paths() -> list[str]:
    """Where modules are looked for, this package first, the current folder by its name."""
    own = str(Path(__file__).parents[2])
    return [own, *(str(Path(place).absolute()) for place in sys.path)]


def send(stream: IO[bytes], message: Any) -> None:
    """Write a message whole."""
    stream.write(cloudpickle.dumps(message))
    stream.flush()


def work(parent: int) -> None:
    """Measure groups that come over standard input; what libraries print goes to the errors."""
    end_with_parent(parent)
    results = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    groups = os.fdopen(os.dup(0), "rb")
    while True:
        try:
            group, seconds = cloudpickle.load(groups)
        except EOFError:
            return
        limit = functools.partial(time_limit, seconds)
        for row in measure_group(group, limit=limit, ready=lambda: send(results, "ready")):
            send(results, row)
