"""Where studies are kept, which trials are still running, and what search they are about."""

from __future__ import annotations

import contextlib
import errno
import functools
import hashlib
import importlib.util
import inspect
import json
import math
import os
import platform
import re
import sqlite3
import textwrap
import threading
import time
import uuid
import warnings
import weakref
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from functools import partial
from numbers import Real
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, TypeVar
from urllib.parse import quote, quote_plus, urlsplit

import numpy as np
import optuna
import pandas as pd
import psutil
from optuna.exceptions import (
    ExperimentalWarning,
    StorageInternalError,
    UpdateFinishedTrialError,
)
from optuna.storages import BaseStorage, InMemoryStorage, JournalStorage, RDBStorage
from optuna.storages.journal import JournalFileBackend, JournalFileOpenLock, JournalFileSymlinkLock
from optuna.trial import FrozenTrial, TrialState
from sqlalchemy import event
from sqlalchemy.engine import URL, Connection, make_url
from sqlalchemy.exc import DBAPIError, NoSuchModuleError, OperationalError, SQLAlchemyError

from skescore._optional import import_optional, install_commands
from skescore.tuning._objective import Fold

__all__ = [
    "HEARTBEAT",
    "PLACE",
    "RETRIED",
    "RETRY_OF",
    "Heartbeat",
    "announce_worker",
    "is_storage_failure",
    "open_storage",
    "patiently",
    "retry_stale",
    "storage_name",
]


# Optuna's own heartbeats work in relational databases, and only for ``Study.optimize``. These work
# in every storage, for workers that ask and tell:
#
# .. code-block:: python
#
#     while budget_is_left(study):
#         retry_stale(study)
#         announce_worker(study)
#         trial = study.ask(space)
#         with Heartbeat(trial) as heartbeat:
#             values = objective(trial)
#         if not heartbeat.lost:
#             study.tell(trial, values, skip_if_finished=True)

_T = TypeVar("_T")

#: User attribute of a trial: number of the trial that it repeats.
RETRY_OF = "retry_of"
#: User attribute of a trial: its place among those of its study, where that is not its number, as
#: trials that count for nothing came before. One that is tried again has the place that it had.
PLACE = "place"
#: User attribute of a trial: who runs it, and how many signs of life there have been.
HEARTBEAT = "heartbeat"
#: User attribute of a trial that is failed because it is repeated: it counts for nothing.
RETRIED = "retried"
#: User attribute of a study: its workers give signs of life, so that silence means something.
_HEARTBEATS = "heartbeats"
#: How user attributes of a study begin that say who asks for its trials.
_WORKER = "worker:"
#: Clocks may be set while a process runs: starts that are so many seconds apart are one.
_SAME_START = 2.0

#: What this process saw last: by storage, study and trial the sign of life, and since when. The
#: time is this process's own, because the clocks of two machines may differ.
_SEEN: weakref.WeakKeyDictionary[Any, dict[str, dict[int, tuple[str, float]]]] = (
    weakref.WeakKeyDictionary()
)
_SEEN_LOCK = threading.Lock()
#: Studies that this process has marked by `_HEARTBEATS`, so that it need not look for every trial.
_MARKED: weakref.WeakSet[optuna.Study] = weakref.WeakSet()
#: Studies that have been told of a worker, and its process: a fork is another.
_ANNOUNCED: weakref.WeakKeyDictionary[optuna.Study, int] = weakref.WeakKeyDictionary()


def announce_worker(study: optuna.Study) -> None:
    """Say in a study that this process asks for its trials.

    Call it before the first trial is asked for, and after :func:`retry_stale`. A worker that is
    killed between asking and its first :class:`Heartbeat` is then known by its end: where all
    announced workers have ended, :func:`retry_stale` gives up their trials at once. All workers of
    a study should announce themselves, or none.

    Parameters
    ----------
    study : optuna.Study
        The study. In memory, where a dead process leaves nothing behind, nothing is said.

    Examples
    --------
    >>> import optuna
    >>> optuna.logging.set_verbosity(optuna.logging.WARNING)
    >>> announce_worker(optuna.create_study())
    """
    if _is_lasting(study._storage) and _ANNOUNCED.get(study) != os.getpid():
        _mark(study)
        study.set_user_attr(f"{_WORKER}{platform.node()}:{os.getpid()}", _this_worker())
        _ANNOUNCED[study] = os.getpid()


class Heartbeat:
    """Record in a trial's storage that its worker is alive, as long as the context lasts.

    Wrap it around the objective of every worker of a study that others may join, together with
    :func:`retry_stale`. In memory, where a dead process leaves nothing behind, it does nothing.

    Parameters
    ----------
    trial : optuna.trial.Trial
        A running trial. Its user attribute ``heartbeat`` says who runs it.
    interval : float, default=60
        Seconds between two signs of life; at most half of the grace period of
        :func:`retry_stale`.

    Attributes
    ----------
    lost : bool
        Whether another worker took this one for dead: the trial is finished as failed, and its
        result no longer counts.

    Raises
    ------
    ValueError
        If `interval` is not positive.

    Notes
    -----
    From the first use on, every worker of the study must give signs of life; the study's user
    attribute ``heartbeats`` says so.

    Examples
    --------
    >>> import optuna
    >>> optuna.logging.set_verbosity(optuna.logging.WARNING)
    >>> study = optuna.create_study()
    >>> trial = study.ask()
    >>> with Heartbeat(trial) as heartbeat:
    ...     value = trial.suggest_float("x", 0, 1) ** 2
    >>> heartbeat.lost
    False
    >>> study.tell(trial, value).state.name
    'COMPLETE'
    """

    def __init__(self, trial: Any, *, interval: float = 60) -> None:
        self.trial = trial
        self.interval = _seconds("interval", interval)
        self._lost = threading.Event()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def lost(self) -> bool:
        """Whether another worker took this one for dead; see the attributes of the class."""
        return self._lost.is_set()

    def __enter__(self) -> Heartbeat:
        if _is_lasting(getattr(self.trial, "storage", None)):
            _mark(self.trial.study)
            worker = _this_worker()
            self._beat(worker, 0)
            if not self.lost:
                # The process may end while the storage hangs: nothing waits for the thread.
                self._thread = threading.Thread(
                    target=self._go_on, args=(worker,), name="skescore-heartbeat", daemon=True
                )
                self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop.set()
        if self._thread is not None:
            # A sign of life that came after the result would be an error.
            self._thread.join()

    def _go_on(self, worker: dict[str, Any]) -> None:
        count = 0
        while not self.lost and not self._stop.wait(self.interval):
            count += 1
            try:
                self._beat(worker, count)
            except Exception:
                # A storage that is out of reach for a moment is told at the next beat; for
                # longer, the worker hears of it where it reports its result.
                continue
        self.trial.storage.remove_session()  # a database's connection of this thread

    def _beat(self, worker: dict[str, Any], count: int) -> None:
        try:
            self.trial.set_user_attr(HEARTBEAT, worker | {"count": count})
        except UpdateFinishedTrialError:
            self._lost.set()


def retry_stale(
    study: optuna.Study, *, grace: float = 120, running: Sequence[FrozenTrial] | None = None
) -> list[int]:
    """Fail the running trials whose workers are gone, and enqueue their parameters once more.

    Call it in every worker before it asks for a trial. A worker on the same machine whose process
    has ended is gone at once; any other is when it has given no sign of life for `grace` seconds,
    as watched by this process: the first call only begins to watch.

    Parameters
    ----------
    study : optuna.Study
        The study.
    grace : float, default=120
        Seconds of silence; at least twice the interval of :class:`Heartbeat`.
    running : sequence of FrozenTrial, optional
        Its running trials, if they have been read already. One that has finished since is left as
        it is.

    Returns
    -------
    list of int
        Numbers of the trials that this call failed. Each has the reason in its user attribute
        ``error``. The trial that repeats one names it in its user attribute ``retry_of``; a trial
        that is a repetition itself is not repeated again.

    Raises
    ------
    ValueError
        If `grace` is not positive.

    Notes
    -----
    Of several workers that find the same trial one fails it, and only that one enqueues it again:
    storages accept one end of a trial. A trial without any sign of life was killed between being
    asked for and starting. It is given up at once where all workers that were announced by
    :func:`announce_worker` are gone, and has the same grace otherwise; as it did no harm, it may be
    a repetition and is repeated. Where no worker gives signs of life, nothing is failed.

    Examples
    --------
    >>> import optuna
    >>> optuna.logging.set_verbosity(optuna.logging.WARNING)
    >>> retry_stale(optuna.create_study())
    []
    """
    grace = _seconds("grace", grace)
    # No public name; the study's own methods cannot say who came first.
    if not _is_lasting(study._storage):
        return []
    if running is None:
        running = study.get_trials(deepcopy=False, states=(TrialState.RUNNING,))
    about = study.user_attrs if running else {}
    is_marked = _HEARTBEATS in about
    announced = [worker for key, worker in about.items() if key.startswith(_WORKER)]
    all_gone = bool(announced) and all(map(_is_gone, announced))
    reasons = {}
    with _SEEN_LOCK:
        studies = _SEEN.setdefault(study._storage, {})
        before = studies.get(study.study_name, {})
        now = time.monotonic()
        seen = {}
        for trial in running:
            beat = trial.user_attrs.get(HEARTBEAT)
            if _is_gone(beat):
                reasons[trial.number] = f"The process of its {_name_of(beat)} ended in mid-trial."
            elif beat is None and all_gone:
                reasons[trial.number] = "Its process ended before the trial began."
            elif is_marked:
                sign = json.dumps(beat, sort_keys=True)
                last, since = before.get(trial.number, (None, now))
                seen[trial.number] = sign, since if sign == last else now
                if now - seen[trial.number][1] > grace:
                    reasons[trial.number] = (
                        f"Its {_name_of(beat)} gave no sign of life for more than {grace:g} s."
                    )
        studies[study.study_name] = seen
    return [
        trial.number
        for trial in running
        if trial.number in reasons and _fail(study, trial, reasons[trial.number])
    ]


def _fail(study: optuna.Study, trial: FrozenTrial, reason: str) -> bool:
    """Fail a trial and enqueue it again, unless its worker or another one was quicker."""
    second = trial.user_attrs.get(RETRY_OF)
    # What did not begin cannot have been what ended its process.
    again = second is None or HEARTBEAT not in trial.user_attrs
    outlook = (
        "Its hyper-parameters are tried once more."
        if again
        else f"It was the second attempt, after trial {second}, so that there is no other."
    )
    storage = study._storage
    try:
        storage.set_trial_user_attr(trial._trial_id, "error", f"{reason} {outlook}")
        if again:
            # Before it fails: this process may end as well before it is enqueued.
            storage.set_trial_user_attr(trial._trial_id, RETRIED, True)
        if not storage.set_trial_state_values(trial._trial_id, state=TrialState.FAIL):
            return False
    except UpdateFinishedTrialError:
        return False
    if again:
        # Killed before it suggested what it was enqueued with, it has that in no parameter yet; in
        # the midst of that, the other parameters would not fit what a sampler adds to them.
        params = trial.system_attrs.get("fixed_params", {})
        place = {key: value for key, value in trial.user_attrs.items() if key == PLACE}
        if HEARTBEAT in trial.user_attrs:
            params, place = params | trial.params, {PLACE: trial.number} | place
        study.enqueue_trial(params, user_attrs={RETRY_OF: trial.number} | place)
    return True


def _mark(study: optuna.Study) -> None:
    if study not in _MARKED:
        if _HEARTBEATS not in study.user_attrs:
            study.set_user_attr(_HEARTBEATS, True)
        _MARKED.add(study)


def _is_lasting(storage: Any) -> bool:
    """Whether trials outlive the process that runs them."""
    return isinstance(storage, optuna.storages.BaseStorage) and not isinstance(
        storage, optuna.storages.InMemoryStorage
    )


def _seconds(name: str, value: Any) -> float:
    valid = isinstance(value, Real) and not isinstance(value, bool)
    if not valid or not 0 < float(value) < math.inf:
        raise ValueError(f"{name} must be a positive number of seconds, got {value!r}.")
    return float(value)


def _this_worker() -> dict[str, Any]:
    """Who runs a trial: this process, and which of its attempts."""
    return {
        "host": platform.node(),
        "machine": _machine(),
        "process": os.getpid(),
        "started": psutil.Process().create_time(),
        # Two attempts of one process are told apart.
        "attempt": uuid.uuid4().hex[:8],
    }


def _name_of(beat: Any) -> str:
    if not isinstance(beat, dict):
        return "worker"
    return f"worker (process {beat.get('process')} on {beat.get('host')})"


@functools.cache
def _machine() -> str:
    """Where a process number means this process: the running system, and the container in it."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return f"{platform.node()} {uuid.getnode():x}"


def _is_gone(beat: Any) -> bool:
    """Whether the process behind a sign of life is known to have ended; only known nearby."""
    if not isinstance(beat, dict):
        return False
    pid, started = beat.get("process"), beat.get("started")
    if beat.get("machine") != _machine() or not isinstance(pid, int):
        return False
    try:
        process = psutil.Process(pid)
        if process.status() in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD):
            return True
        # A later process may have the same number.
        later = isinstance(started, Real) and process.create_time() - started > _SAME_START
    except psutil.NoSuchProcess:
        return True
    except psutil.AccessDenied:  # another user's
        return False
    return later


#: Endings by which a path is known to be a journal.
_JOURNAL_ENDINGS = (".journal", ".log")
#: How every journal begins.
_JOURNAL_START = b'{"op_code":'
_GRPC_PORT = 13000
_GRPC_SECONDS = 20.0

_FORMS = (
    "None (in memory), a path ending in .journal or .log, 'journal:///study.journal', "
    "'sqlite:///study.db', 'postgresql://host/database', 'mysql://host/database' (user and "
    "password before the host), 'grpc://host:13000', or an Optuna storage. Three slashes before a "
    "path begin a relative one, four an absolute one"
)


def open_storage(storage: str | Path | BaseStorage | None) -> BaseStorage:
    """Open the place where studies are kept.

    Use it for what a user names on a command line or in a configuration. Several processes may
    open the same one, on several machines a database or a proxy.

    Parameters
    ----------
    storage : str, Path, optuna storage or None
        None keeps studies in memory. A path that ends in ``.journal`` or ``.log``, or
        ``"journal:///path"``, is a journal file; ``"sqlite:///path"`` an SQLite file. For a path
        both go by SQLAlchemy: after three slashes it is relative, after four absolute.
        ``"postgresql://user:password@host/database"`` is driven by psycopg 3, or by psycopg2 if
        only that is installed; ``"mysql://..."`` by what SQLAlchemy finds. ``"grpc://host:port"``
        is Optuna's storage proxy. An Optuna storage is given back as it is.

    Returns
    -------
    optuna.storages.BaseStorage
        To be handed to ``optuna.create_study``.

    Raises
    ------
    TypeError, ValueError
        If `storage` has none of these forms, or a journal is damaged.
    FileNotFoundError
        If the folder of a file does not exist.
    ConnectionError
        If a database or proxy cannot be reached.
    ImportError
        If the driver is not installed.

    Notes
    -----
    No error shows a password. Transactions of SQLite are one after another, which Optuna's are
    not: of two workers that take the same enqueued trial, one gets it. Its file gets a write-ahead
    log, so that all its processes must be on one machine. A journal whose last line was cut off,
    as by the end of the process that wrote it, is mended before the next line.

    Examples
    --------
    >>> import optuna, tempfile
    >>> optuna.logging.set_verbosity(optuna.logging.WARNING)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     study = optuna.create_study(storage=open_storage(f"{folder}/study.journal"))
    ...     study.enqueue_trial({"x": 0.5})
    ...     study.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=1)
    ...     again = optuna.load_study(study_name=None,
    ...                               storage=open_storage(f"{folder}/study.journal"))
    ...     again.best_params
    {'x': 0.5}
    """
    if storage is None:
        return InMemoryStorage()
    if isinstance(storage, BaseStorage):
        return storage
    if not isinstance(storage, str | Path):
        raise TypeError(f"storage must be {_FORMS}; got {storage!r}.")
    text = str(storage)
    scheme, separator, rest = text.partition("://")
    if isinstance(storage, Path) or not separator:
        if text.endswith(_JOURNAL_ENDINGS):
            return _open_journal(text)
        raise ValueError(f"storage must be {_FORMS}; got {text!r}.")
    kind = scheme.partition("+")[0]
    if scheme == "journal":
        if not rest.startswith("/") or not rest.strip("/"):
            raise _unknown_form(text)
        return _open_journal(rest[1:])
    if scheme == "grpc":
        return _open_proxy(text)
    if kind in {"sqlite", "postgresql", "postgres", "mysql", "mariadb"}:
        return _open_database(text)
    raise _unknown_form(text)


def storage_name(storage: str | Path | BaseStorage | None) -> str:
    """Name a storage for people and files, without its password.

    Parameters
    ----------
    storage : str, Path, optuna storage or None
        As for :func:`open_storage`.

    Returns
    -------
    str
        The URL with ``***`` for a password, be it before the host or among the options.

    Examples
    --------
    >>> storage_name("postgresql://anna:secret@db.example.org/studies")
    'postgresql://anna:***@db.example.org/studies'
    >>> storage_name(None)
    'memory'
    """
    if storage is None or isinstance(storage, InMemoryStorage):
        return "memory"
    if isinstance(storage, BaseStorage):
        inner = getattr(storage, "_backend", storage)  # what a study's cache stands before
        if isinstance(inner, RDBStorage):
            return storage_name(inner.url)
        if hasattr(storage, "_host"):
            return f"grpc://{storage._host}:{getattr(storage, '_port', _GRPC_PORT)}"
        path = getattr(inner, "_file_path", None)
        return type(storage).__name__ if path is None else f"journal:///{path}"
    # All from the user's colon to the last @ is hidden, even where the URL has other faults.
    user = r"^((?:[\w+.-]+:/+|(?![\w+.-]+:/))[^:/@]*):.*@"
    text = re.sub(user, r"\1:***@", str(storage), flags=re.DOTALL)
    secret = r"([?&;][^=&;]*(?:passw|pwd|secret|token)[^=&;]*=)[^&;]*"
    return re.sub(secret, r"\1***", text, flags=re.IGNORECASE)


def is_storage_failure(error: BaseException) -> bool:
    """Return whether a storage failed that may work again: it was restarted, or its disk is full.

    Parameters
    ----------
    error : BaseException
        What was raised.

    Returns
    -------
    bool
        Whether it came from a database, a proxy or the file of a journal.
    """
    if isinstance(error, JournalWriteError):
        return error.errno not in _FORBIDDEN
    if isinstance(error, StorageInternalError | DBAPIError):
        return True
    return any(kind.__name__ == "RpcError" for kind in type(error).__mro__)


#: Seconds before each further try where a storage does not answer: a restart takes some.
PAUSES = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0)


def patiently(action: Callable[[], _T], storage: BaseStorage | None = None) -> _T:
    """Do something with a storage, and again for a while if it fails.

    Parameters
    ----------
    action : callable
        Called without arguments, once more after each failure.
    storage : optuna storage, optional
        The storage, to be named in errors.

    Returns
    -------
    object
        What the action returned.

    Raises
    ------
    ConnectionError
        If the storage does not come back within a minute.

    Examples
    --------
    >>> patiently(lambda: "answered")
    'answered'
    """
    for failures, pause in enumerate((*PAUSES, None)):
        try:
            return action()
        except Exception as error:
            if not is_storage_failure(error):
                raise
            if pause is None:
                raise ConnectionError(
                    f"storage {storage_name(storage)!r} failed, and again for {sum(PAUSES):g} s: "
                    f"{_reason(error)}. What was finished is kept: see to the storage, and repeat "
                    "the search to go on with it."
                ) from error
            if not failures:
                warnings.warn(
                    f"The storage failed and is tried again for {sum(PAUSES):g} s: "
                    f"{_reason(error)}",
                    UserWarning,
                    stacklevel=5,
                )
            time.sleep(pause)
    raise AssertionError  # pragma: no cover


def _reason(error: BaseException) -> str:
    """What went wrong in a storage: database errors come with the whole query behind it."""
    cause = error.__cause__ or error
    if callable(details := getattr(cause, "details", None)):  # of gRPC
        return str(details())
    return str(getattr(cause, "orig", None) or cause).strip().partition("\n")[0]


class JournalWriteError(OSError):
    """A journal that cannot be written."""

    def __str__(self) -> str:
        return f"The journal {self.filename!r} cannot be written: {self.strerror}."


#: What does not get better by itself.
_FORBIDDEN = (errno.EACCES, errno.EPERM, errno.EROFS)


class _Journal(JournalFileBackend):
    """A journal file that outlives the death of a writer, and waits for the disk only at the end.

    Optuna's own has every line on the disk before the next, some milliseconds for each attribute
    of a trial, while others wait for the lock. A process that is killed loses nothing of what it
    wrote; only a machine that stops may lose the lines since a trial last ended.
    """

    def __init__(self, path: str) -> None:
        # Symbolic links need a privilege on Windows. Where they do not, they work on old network
        # disks too. Either goes by the existence of the same file, as do Optuna's other programs.
        windows = os.name == "nt"
        self._guard = JournalFileOpenLock(path) if windows else JournalFileSymlinkLock(path)
        self._path = path
        #: Whether it was read before: it is no other file then that was named by mistake.
        self.in_use = False
        super().__init__(path, lock_obj=self._guard)

    def append_logs(self, logs: list[dict[str, Any]]) -> None:
        lines = "".join(json.dumps(log, separators=(",", ":")) + "\n" for log in logs)
        try:
            self._append(lines, logs)
        except OSError as error:
            reason = error.strerror or str(error)
            raise JournalWriteError(error.errno, reason, self._path) from error

    def read_logs(self, log_number_from: int) -> Generator[dict[str, Any], None, None]:
        try:
            yield from super().read_logs(log_number_from)
        except (FileNotFoundError, RecursionError, ValueError) as error:
            if not self.in_use:
                raise
            raise ValueError(
                f"storage: the journal {self._path!r} was deleted, replaced or damaged while it "
                "was in use. Repeat the search, with another file if that is wanted."
            ) from error

    def _append(self, lines: str, logs: list[dict[str, Any]]) -> None:
        self._tell_of_a_lock()
        self._guard.acquire()
        try:
            with open(self._path, "ab+") as file:
                _cut_unfinished_line(file)
                file.write(lines.encode())
                file.flush()
                if any("datetime_complete" in log or "study_name" in log for log in logs):
                    os.fsync(file.fileno())
        finally:
            self._guard.release()

    def _tell_of_a_lock(self) -> None:
        """Say a word of a lock so old that whoever took it has probably ended."""
        lock = f"{self._path}.lock"  # as Optuna names it
        try:
            age = time.time() - os.lstat(lock).st_mtime
        except OSError:
            return
        if age > _OLD_LOCK:
            warnings.warn(
                f"The journal {self._path!r} is locked since {age:.0f} s by a process that has "
                f"probably been killed. The lock is removed after 30 s; delete {lock!r} if no "
                "process uses the journal.",
                UserWarning,
                stacklevel=2,
            )


#: Locks are held for milliseconds; seconds after which one is a left-over.
_OLD_LOCK = 5.0


def _cut_unfinished_line(file: BinaryIO) -> None:
    """Remove a line that nobody will finish: who holds the lock is the only one to write."""
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - 1))
    if file.read(1) in {b"", b"\n"}:
        return
    kept, block = size, 1 << 16
    while kept:
        start = max(0, kept - block)
        file.seek(start)
        line_end = file.read(kept - start).rfind(b"\n")
        if line_end >= 0:
            kept = start + line_end + 1
            break
        kept = start
    file.truncate(kept)


def _open_journal(path: str) -> BaseStorage:
    _check_folder(path)
    if os.path.exists(path):
        with open(path, "rb") as file:
            begin = file.read(len(_JOURNAL_START))
        # Someone's notes must not be taken for a line that was cut off, and removed.
        if not _JOURNAL_START.startswith(begin):
            raise _no_journal(path, f"it begins with {begin!r}")
    try:
        journal = _Journal(path)
    except OSError as error:
        reason = error.strerror or str(error)
        raise JournalWriteError(error.errno, reason, path) from error
    try:
        storage = JournalStorage(journal)
        journal.in_use = True
        return storage
    except (
        ArithmeticError,
        AttributeError,
        LookupError,
        RecursionError,
        TypeError,
        ValueError,
        AssertionError,
    ) as error:
        raise _no_journal(path, str(error)) from error


def _no_journal(path: str, reason: str) -> ValueError:
    return ValueError(
        f"storage: {path!r} is no journal of Optuna, or is damaged ({reason}). Move it away, or "
        "name another file."
    )


def _check_folder(path: str) -> None:
    """Raise unless there is a folder for a file."""
    folder = Path(path).absolute().parent
    if not folder.is_dir():
        raise FileNotFoundError(
            f"storage: the folder {str(folder)!r} does not exist. Create it, or name another file."
        )


def _open_proxy(text: str) -> BaseStorage:
    try:
        parts = urlsplit(text)
        host, port = parts.hostname, _GRPC_PORT if parts.port is None else parts.port
    except ValueError:
        raise _unknown_form(text) from None
    if not host or parts.path.strip("/") or parts.query or parts.username is not None:
        raise _unknown_form(text)
    purpose = f"The storage {text!r}"
    import_optional("grpc", extra="grpc", purpose=purpose)
    import_optional("google.protobuf", extra="grpc", purpose=purpose)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExperimentalWarning)
        proxy = optuna.storages.GrpcStorageProxy(
            host=f"[{host}]" if ":" in host else host, port=port
        )
    try:
        proxy.wait_server_ready(timeout=_GRPC_SECONDS)
    except ConnectionError:
        proxy.close()
        raise ConnectionError(
            f"storage {text!r}: no proxy answers within {_GRPC_SECONDS:g} s. Start it there with "
            "optuna.storages.run_grpc_proxy_server, or check host and port."
        ) from None
    return proxy


def _unknown_form(text: str) -> ValueError:
    """The error for a storage that has none of the forms."""
    return ValueError(f"storage {storage_name(text)!r} has no known form: it must be {_FORMS}.")


#: Drivers of PostgreSQL that may be installed, the better one first.
_POSTGRESQL_DRIVERS = ("psycopg", "psycopg2")
#: How long a worker waits for others that write to the same SQLite file.
_SQLITE_SECONDS = 60.0
#: How often an empty database is tried where several workers create its tables at the same time.
_ATTEMPTS = 6


class _SerialSQLite(RDBStorage):
    """SQLite with one transaction after another, and without waiting for the disk at each.

    SQLite knows no lock on a row, so that two transactions may read that a trial is waiting, or
    running, before either writes. Each takes the only lock there is before it reads. With its log
    written ahead no process that is killed, nor a machine that stops, damages the file; the latter
    may lose the last transactions. That log needs memory that the processes share, so that they
    must be on one machine, which is what SQLite is for.
    """

    def __init__(self, url: str, **options: Any) -> None:
        super().__init__(url, **options)
        self._listen()

    def __setstate__(self, state: dict[Any, Any]) -> None:
        super().__setstate__(state)
        self._listen()

    def _listen(self) -> None:
        event.listen(self.engine, "connect", _write_ahead)
        event.listen(self.engine, "begin", _begin_immediate)
        self.engine.dispose()  # the connections from before


def _write_ahead(connection: Any, record: Any) -> None:
    # Others that have the file open now may forbid it, and will have done it themselves.
    with contextlib.suppress(sqlite3.OperationalError):
        connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=NORMAL")


def _begin_immediate(connection: Connection) -> None:
    connection.exec_driver_sql("BEGIN IMMEDIATE")


def _open_database(text: str) -> BaseStorage:
    """Open a database by its URL; without a driver PostgreSQL gets one that is installed."""
    try:
        url = make_url(re.sub("^postgres(?=[:+])", "postgresql", text))
    except (SQLAlchemyError, ValueError):
        raise _unknown_form(text) from None  # whose text may show the password
    kind = url.get_backend_name()
    options: dict[str, Any] = {"connect_args": {"timeout": _SQLITE_SECONDS}}
    opened: Callable[..., RDBStorage] = _SerialSQLite
    if kind == "sqlite":
        if url.database in {None, "", ":memory:"} or "mode=memory" in text:
            raise ValueError(
                f"storage {text!r} would be another database in every thread. Name a file, or use "
                "None to keep studies in memory."
            )
        if not str(url.database).startswith("file:"):
            _check_folder(str(url.database))
    else:
        # A connection that was cut in the meantime, as by a restart, is made anew.
        options, opened = {"pool_pre_ping": True}, RDBStorage
    if kind == "postgresql" and url.drivername == kind:
        url = url.set(drivername=f"postgresql+{_postgresql_driver()}")
    for attempt in range(_ATTEMPTS):
        try:
            # Optuna takes braces for a template.
            text_of_url = re.sub(r"([{}])", r"\1\1", url.render_as_string(hide_password=False))
            storage = opened(text_of_url, engine_kwargs=options)
            # Drivers complain of connections that nobody closed.
            weakref.finalize(storage, storage.engine.dispose)
            return storage
        except (ImportError, NoSuchModuleError):
            raise _missing_driver(url, text) from None
        except Exception as error:
            _close_halves(error)
            cause = _database_error(error)
            if cause is None:
                raise
            # Another worker creates the same tables in this moment; next time they are there.
            creating = kind == "sqlite" or not isinstance(cause, OperationalError)
            if not creating or attempt == _ATTEMPTS - 1:
                raise _unreachable(url, text, cause) from None
            time.sleep(0.05 * 2**attempt)
    raise AssertionError("the last attempt returns or raises")


def _close_halves(error: BaseException) -> None:
    """Close the connections of storages whose making failed: nobody else knows them any more."""
    trace = error.__traceback__
    while trace is not None:
        half = trace.tb_frame.f_locals.get("self")
        if isinstance(half, RDBStorage) and hasattr(half, "engine"):
            half.engine.dispose()
        trace = trace.tb_next


def _database_error(error: BaseException | None) -> DBAPIError | None:
    """What the database said; Optuna wraps some of it."""
    while error is not None and not isinstance(error, DBAPIError):
        error = error.__cause__
    return error


def _postgresql_driver() -> str:
    for driver in _POSTGRESQL_DRIVERS:
        if importlib.util.find_spec(driver):
            return driver
    return _POSTGRESQL_DRIVERS[0]  # which is what the error names


def _missing_driver(url: URL, text: str) -> ImportError:
    kind, driver = url.get_backend_name(), url.drivername.partition("+")[2]
    remedy = (
        f"Run: {install_commands('postgresql')[0]}"
        if kind == "postgresql"
        else "Run: pip install pymysql, and begin the URL with mysql+pymysql://"
    )
    named = f" {driver!r}" if driver else ""
    return ImportError(
        f"storage {storage_name(text)!r} needs a driver{named} that is not installed or cannot be "
        f"imported. {remedy}",
        name=driver or None,
    )


def _unreachable(url: URL, text: str, cause: DBAPIError) -> ConnectionError:
    reason = " ".join(str(cause.orig).split())
    for secret in _passwords(url):
        reason = reason.replace(secret, "***")
    return ConnectionError(
        f"storage {storage_name(text)!r} cannot be opened: {reason}. Check that the database is "
        "there, runs, and lets this user in."
    )


def _passwords(url: URL) -> set[str]:
    """All spellings of a password that the text of an error might show."""
    found = "" if url.password is None else str(url.password)
    return {found, quote(found, safe=""), quote_plus(found)} - {""}


# --- what a stored search is about ----------------------------------------------------------------

# So that nobody goes on with another search by mistake. Texts and digests depend neither on
# addresses nor on hash seeds: the same search has the same in every process, also around a function
# that cannot be pickled.

#: Where a study keeps it.
SETTINGS = "skescore"
#: Made of rows by mixing their columns: models that agree on the rows may differ elsewhere.
_PROBES = 200
#: Parameters that change no prediction.
_NO_MATTER = frozenset(
    {"n_jobs", "nthread", "num_threads", "pre_dispatch", "thread_count", "verbose", "verbosity"}
)
#: Predictions of one model may differ by so much on two machines, as a share of the largest.
_DIGITS = 6
_MOST_LETTERS = 120


def search_identity(estimator: Any, folds: Sequence[Fold], all_rows: Fold) -> dict[str, Any]:
    """Tell the rows, targets and splits of a search, and its black box, from others.

    Parameters
    ----------
    estimator : estimator
        The black box as the caller gave it.
    folds : sequence of Fold
        The splits, with the black boxes that were fitted on them.
    all_rows : Fold
        All rows, with the black box that was fitted on them.

    Returns
    -------
    dict
        ``rows``: a digest; ``black_box``: what it is, as a text for people, and digests of its
        parameters and of its predictions.
    """
    parameters = stable_text(estimator)
    return {
        "rows": _rows_digest([*folds, all_rows]),
        "black_box": {
            "is": textwrap.shorten(parameters, _MOST_LETTERS, placeholder=" …"),
            "parameters": _short(hashlib.sha256(parameters.encode())),
            "predictions": _predictions_digest(folds, all_rows),
        },
    }


def check_identity(
    study: optuna.Study, wanted: Mapping[str, Any], *, only: Collection[str] | None = None
) -> None:
    """Keep in a study what it is about; raise if it is about something else.

    Parameters
    ----------
    study : optuna.Study
        The study.
    wanted : mapping
        What the search is about.
    only : collection of str, optional
        The parts that have to be equal, where they are known; by default all.

    Raises
    ------
    ValueError
        If it belongs to another search; the message says in what they differ.
    """
    wanted = json.loads(json.dumps(wanted, default=repr))
    known = study.user_attrs.get(SETTINGS)
    if known is None:
        study.set_user_attr(SETTINGS, wanted)
        return
    compared = wanted if only is None else [key for key in wanted if key in only and key in known]
    different = [key for key in compared if known.get(key) != wanted[key]]
    if different:
        told = "; ".join(_told(key, known.get(key), wanted[key]) for key in different)
        raise ValueError(
            f"The stored study {study.study_name!r} belongs to another search ({told}). Give this "
            "search a study name of its own, or repeat that one with the same data, black box "
            "(with its random_state), folds, scoring, spaces and seed."
        )


def _told(key: str, known: Any, wanted: Any) -> str:
    if key == "rows":
        return "other rows, target or folds"
    if key != "black_box":
        return f"{key} {known!r}, now {wanted!r}"
    if not isinstance(known, dict) or "is" not in known:
        return f"black_box of an earlier version that did not note which, now {wanted['is']}"
    if known.get("parameters") != wanted["parameters"]:
        return f"black_box {known['is']}, now {wanted['is']}"
    return f"black_box {known['is']}, now one of these parameters that predicts otherwise"


def stable_text(value: Any, without: Collection[str] = ()) -> str:
    """Write an object so that equal ones have equal texts in every process.

    Parameters
    ----------
    value : object
        An estimator with its parameters, or anything else. What has no such text is named by its
        type, functions by their names.
    without : collection of str, default=()
        Parameters to leave out.

    Returns
    -------
    str
        The text.

    Examples
    --------
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> stable_text(KNeighborsClassifier(3, n_jobs=2))
    'KNeighborsClassifier(n_neighbors=3)'
    """
    return _Writer().text(value, without)


class _Writer:
    """Writes objects, of which none may be inside of itself."""

    def __init__(self) -> None:
        self._inside: list[int] = []

    def text(self, value: Any, without: Collection[str] = ()) -> str:
        if id(value) in self._inside:
            return "..."
        self._inside.append(id(value))
        try:
            return self._text(value, without)
        finally:
            self._inside.pop()

    def _text(self, value: Any, without: Collection[str]) -> str:
        if isinstance(value, np.generic):
            value = value.item()
        if value is None or isinstance(value, bool | int | float | complex | str | bytes):
            return repr(value)
        if isinstance(value, list | tuple):
            return f"[{', '.join(map(self.text, value))}]"
        if isinstance(value, set | frozenset):
            return f"{{{', '.join(sorted(map(self.text, value)))}}}"
        if isinstance(value, Mapping):
            pairs = sorted(f"{self.text(key)}: {self.text(value[key])}" for key in value)
            return f"{{{', '.join(pairs)}}}"
        if isinstance(value, np.ndarray):
            return f"array {_short(hashlib.sha256(_bytes_of(value)))}"
        if isinstance(value, pd.DataFrame | pd.Series | pd.Index):
            return f"{type(value).__name__} {self.text(value.to_numpy())}"
        if isinstance(value, np.random.RandomState):
            return f"RandomState({self.text(value.get_state(legacy=False))})"
        if isinstance(value, np.random.Generator):
            return f"Generator({self.text(value.bit_generator.state)})"
        if isinstance(value, partial):
            inner = (value.func, value.args, value.keywords)
            return f"partial({', '.join(map(self.text, inner))})"
        if hasattr(value, "get_params") and not isinstance(value, type):
            return f"{type(value).__name__}({', '.join(self._parameters(value, without))})"
        owner = getattr(value, "__self__", None)
        name = getattr(value, "__qualname__", None)
        if name is None:
            return type(value).__qualname__
        return name if owner is None or isinstance(owner, type) else f"{self.text(owner)}.{name}"

    def _parameters(self, estimator: Any, without: Collection[str]) -> list[str]:
        """Those that are not at their defaults."""
        try:
            given = estimator.get_params(deep=False)
            usual = inspect.signature(type(estimator).__init__).parameters
        except Exception:  # of a class that is none of scikit-learn's: its predictions tell
            return []
        shown = []
        for name in sorted(set(given) - _NO_MATTER - set(without)):
            text = self.text(given[name])
            if name not in usual or text != self.text(usual[name].default):
                shown.append(f"{name}={text}")
        return shown


def _rows_digest(folds: Sequence[Fold]) -> str:
    digest = hashlib.sha256()
    for fold in folds:
        digest.update(np.asarray(fold.test, dtype=np.int64).tobytes())
        weights = () if fold.test_weight is None else (fold.test_weight,)
        for values in (fold.X_test, fold.y_test, *weights):
            digest.update(_bytes_of(np.asarray(values)))
    return _short(digest)


def _predictions_digest(folds: Sequence[Fold], all_rows: Fold) -> str:
    """Digest what the black boxes predict for their held-out rows, and all of them beside these."""
    digest = hashlib.sha256()
    for fold in (*folds, all_rows):
        digest.update(_bytes_of(_rounded(fold.black_box.predict(fold.X_test))))
    probes = _mixed_rows(all_rows.X_test)
    if probes is not None:
        try:
            digest.update(_bytes_of(_rounded(all_rows.black_box.predict(probes))))
        except Exception:  # it refuses such rows, and does so every time
            digest.update(b"refused")
    return _short(digest)


def _rounded(predictions: np.ndarray) -> np.ndarray:
    """Without the last digits of numbers, which depend on the machine."""
    if predictions.dtype.kind != "f":
        return predictions
    largest = np.abs(predictions[np.isfinite(predictions)]).max(initial=0.0)
    return np.round(predictions / largest, _DIGITS) + 0.0 if largest > 0 else predictions


def _mixed_rows(X: Any) -> Any:
    """Rows whose columns come from different rows; None of what has no columns."""
    if not isinstance(X, np.ndarray | pd.DataFrame) or X.ndim != 2 or not X.shape[1]:
        return None
    random = np.random.default_rng(0)
    places = [random.permutation(len(X))[:_PROBES] for _ in range(X.shape[1])]
    if isinstance(X, np.ndarray):
        return np.stack([X[rows, j] for j, rows in enumerate(places)], axis=1)
    columns = [X.iloc[rows, j].reset_index(drop=True) for j, rows in enumerate(places)]
    return pd.concat(columns, axis=1)


def _bytes_of(array: np.ndarray) -> bytes:
    # An array of objects holds no more than their addresses.
    return repr(array.tolist()).encode() if array.dtype.kind in "OUS" else array.tobytes()


def _short(digest: Any) -> str:
    text: str = digest.hexdigest()
    return text[:16]
