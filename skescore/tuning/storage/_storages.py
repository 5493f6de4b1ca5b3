"""Where studies are kept: in memory, in a journal file, in a database, or behind a proxy."""

from __future__ import annotations

import json
import os
import re
import warnings
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import urlsplit

import optuna
from optuna.exceptions import ExperimentalWarning
from optuna.storages import BaseStorage, InMemoryStorage, JournalStorage, RDBStorage
from optuna.storages.journal import (
    JournalFileBackend,
    JournalFileOpenLock,
    JournalFileSymlinkLock,
)

from skescore._optional import import_optional
from skescore.tuning.storage._heartbeats import positive_seconds

#: Endings by which a path is known to be a journal.
JOURNAL_ENDINGS = (".journal", ".log")
#: How every journal begins.
_JOURNAL_START = b'{"op_code":'
_GRPC_PORT = 13000
_GRPC_SECONDS = 20.0

_FORMS = (
    "None (in memory), a path ending in .journal or .log, 'journal:///study.journal', "
    "'sqlite:///study.db', 'postgresql://user:password@host/database', "
    "'mysql://user:password@host/database', 'grpc://host:13000', or an Optuna storage. Three "
    "slashes before a path begin a relative one, four an absolute one"
)


def open_storage(
    storage: str | Path | BaseStorage | None,
    *,
    heartbeat_interval: float | None = None,
    grace_period: float | None = None,
) -> BaseStorage:
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
    heartbeat_interval : float, optional
        Turns on Optuna's own heartbeats, seconds apart, for workers that call ``Study.optimize``
        on a database; such as 60. Workers that ask and tell would be warned: they have
        :func:`skescore.tuning.beating`, in every storage.
    grace_period : float, optional
        Seconds of silence after which such a trial is failed and tried once more; by default twice
        the interval.

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
    for name, seconds in {
        "heartbeat_interval": heartbeat_interval,
        "grace_period": grace_period,
    }.items():
        if seconds is not None:
            positive_seconds(name, seconds)
    if storage is None:
        return InMemoryStorage()
    if isinstance(storage, BaseStorage):
        return storage
    if not isinstance(storage, str | Path):
        raise TypeError(f"storage must be {_FORMS}; got {storage!r}.")
    text = str(storage)
    scheme, separator, rest = text.partition("://")
    if isinstance(storage, Path) or not separator:
        if text.endswith(JOURNAL_ENDINGS):
            return _open_journal(text)
        raise ValueError(f"storage must be {_FORMS}; got {text!r}.")
    kind = scheme.partition("+")[0]
    if scheme == "journal":
        if not rest.startswith("/") or not rest.strip("/"):
            raise unknown_form(text)
        return _open_journal(rest[1:])
    if scheme == "grpc":
        return _open_proxy(text)
    if kind in {"sqlite", "postgresql", "postgres", "mysql", "mariadb"}:
        # SQLAlchemy takes a while to import, and only databases need it.
        from skescore.tuning.storage._databases import open_database

        return open_database(text, heartbeat_interval, grace_period)
    raise unknown_form(text)


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
    user = r"^((?:[\w+.-]+:/+)?+[^:/@]*):.*@"
    text = re.sub(user, r"\1:***@", str(storage), flags=re.DOTALL)
    secret = r"([?&;][^=&;]*(?:passw|pwd|secret|token)[^=&;]*=)[^&;]*"
    return re.sub(secret, r"\1***", text, flags=re.IGNORECASE)


# --- journals ------------------------------------------------------------------------------------


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
        super().__init__(path, lock_obj=self._guard)

    def append_logs(self, logs: list[dict[str, Any]]) -> None:
        lines = "".join(json.dumps(log, separators=(",", ":")) + "\n" for log in logs)
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
    check_folder(path)
    if os.path.exists(path):
        with open(path, "rb") as file:
            begin = file.read(len(_JOURNAL_START))
        # Someone's notes must not be taken for a line that was cut off, and removed.
        if not _JOURNAL_START.startswith(begin):
            raise _no_journal(path, f"it begins with {begin!r}")
    try:
        return JournalStorage(_Journal(path))
    except (ValueError, KeyError, TypeError, AttributeError, AssertionError) as error:
        raise _no_journal(path, str(error)) from error


def _no_journal(path: str, reason: str) -> ValueError:
    return ValueError(
        f"storage: {path!r} is no journal of Optuna, or is damaged ({reason}). Move it away, or "
        "name another file."
    )


def check_folder(path: str) -> None:
    """Raise unless there is a folder for a file."""
    folder = Path(path).absolute().parent
    if not folder.is_dir():
        raise FileNotFoundError(
            f"storage: the folder {str(folder)!r} does not exist. Create it, or name another file."
        )


# --- proxies -------------------------------------------------------------------------------------


def _open_proxy(text: str) -> BaseStorage:
    try:
        parts = urlsplit(text)
        host, port = parts.hostname, _GRPC_PORT if parts.port is None else parts.port
    except ValueError:
        raise unknown_form(text) from None
    if not host or parts.path.strip("/") or parts.query or parts.username is not None:
        raise unknown_form(text)
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


def unknown_form(text: str) -> ValueError:
    """The error for a storage that has none of the forms."""
    return ValueError(f"storage must be {_FORMS}; got {storage_name(text)!r}.")
