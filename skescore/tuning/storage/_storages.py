"""Storages of studies: names, opening, and recovery from failures."""

from __future__ import annotations

import contextlib
import errno
import importlib.util
import json
import os
import re
import sqlite3
import time
import warnings
import weakref
from collections.abc import Callable, Generator
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TypeVar
from urllib.parse import quote, quote_plus, urlsplit

import optuna
from optuna.exceptions import ExperimentalWarning, StorageInternalError
from optuna.storages import BaseStorage, InMemoryStorage, JournalStorage, RDBStorage
from optuna.storages.journal import JournalFileBackend, JournalFileOpenLock, JournalFileSymlinkLock

from skescore._optional import import_optional, install_commands

if TYPE_CHECKING:
    from sqlalchemy.engine import URL, Connection
    from sqlalchemy.exc import DBAPIError

# Functions for databases import SQLAlchemy, because a search in memory does not need it.

_GRPC_PORT = 13000
_FORMS = (
    "None (in memory), a path ending in .journal or .log, 'journal:///study.journal', "
    "'sqlite:///study.db', 'postgresql://host/database', 'mysql://host/database' (user and "
    "password before the host), 'grpc://host:13000', or an Optuna storage. A path after three "
    "slashes is relative, after four absolute"
)


def storage_name(storage: str | Path | BaseStorage | None) -> str:
    """Return a printable name of a storage without its password.

    Parameters
    ----------
    storage : str, Path, optuna storage or None
        As for :func:`open_storage`.

    Returns
    -------
    str
        The URL with ``***`` instead of a password before the host or in an option.

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
        backend = getattr(storage, "_backend", storage)  # inside of Optuna's cache
        if isinstance(backend, RDBStorage):
            return storage_name(backend.url)
        if hasattr(storage, "_host"):
            return f"grpc://{storage._host}:{getattr(storage, '_port', _GRPC_PORT)}"
        path = getattr(backend, "_file_path", None)
        return type(storage).__name__ if path is None else f"journal:///{path}"
    # Everything from the user's colon to the last @ is hidden, even in an invalid URL.
    user = r"^((?:[\w+.-]+:/+|(?![\w+.-]+:/))[^:/@]*):.*@"
    text = re.sub(user, r"\1:***@", str(storage), flags=re.DOTALL)
    secret = r"([?&;][^=&;]*(?:passw|pwd|secret|token)[^=&;]*=)[^&;]*"
    return re.sub(secret, r"\1***", text, flags=re.IGNORECASE)


def _unknown_form_error(text: str) -> ValueError:
    """Return the error for a storage of an unknown form."""
    return ValueError(f"storage {storage_name(text)!r} has no known form: it must be {_FORMS}.")


_T = TypeVar("_T")


def is_storage_failure(error: BaseException) -> bool:
    """Return whether an error is a failure of a storage that may recover, such as a restart.

    Parameters
    ----------
    error : BaseException
        The error.

    Returns
    -------
    bool
        True for errors of a database, a proxy or the file of a journal that may be temporary.
    """
    if isinstance(error, JournalWriteError):
        return error.errno not in _PERMANENT_ERRORS
    if isinstance(error, StorageInternalError):
        return True
    return any(kind.__name__ in _FAILURES for kind in type(error).__mro__)


#: Errors of gRPC and SQLAlchemy by name, because a search in memory does not import these packages.
_FAILURES = ("RpcError", "DBAPIError")
#: Seconds before each further attempt, long enough for a restart of the storage.
PAUSES = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0)


def call_with_retries(action: Callable[[], _T], storage: BaseStorage | None = None) -> _T:
    """Call a function that uses a storage, and repeat it for a minute if the storage fails.

    Parameters
    ----------
    action : callable
        Called without arguments, once more after each failure.
    storage : optuna storage, optional
        The storage, named in errors.

    Returns
    -------
    object
        Result of the function.

    Raises
    ------
    ConnectionError
        If the storage still fails after a minute.

    Examples
    --------
    >>> call_with_retries(lambda: "answered")
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
                    f"storage {storage_name(storage)!r} failed for {sum(PAUSES):g} s: "
                    f"{_describe_error(error)}. Finished trials are kept: repair the storage and "
                    "repeat the search to resume it."
                ) from error
            if not failures:
                warnings.warn(
                    f"The storage failed; retrying for {sum(PAUSES):g} s: {_describe_error(error)}",
                    UserWarning,
                    stacklevel=5,
                )
            time.sleep(pause)
    raise AssertionError  # pragma: no cover


def _describe_error(error: BaseException) -> str:
    """Return the first line of an error, without the query of a database error."""
    cause = error.__cause__ or error
    if callable(details := getattr(cause, "details", None)):  # of gRPC
        return str(details())
    return str(getattr(cause, "orig", None) or cause).strip().partition("\n")[0]


class JournalWriteError(OSError):
    """Error for a journal that cannot be written."""

    def __str__(self) -> str:
        return f"The journal {self.filename!r} cannot be written: {self.strerror}."


#: Errors that do not disappear by themselves.
_PERMANENT_ERRORS = (errno.EACCES, errno.EPERM, errno.EROFS)
#: Extensions of journal files.
_JOURNAL_ENDINGS = (".journal", ".log")
#: First bytes of every journal.
_JOURNAL_START = b'{"op_code":'


class _Journal(JournalFileBackend):
    """Journal file that stays valid if a writer is killed, and calls ``fsync`` once per trial.

    Optuna's own backend calls ``fsync`` after every line. This takes milliseconds for each
    attribute of a trial, while other workers wait for the lock. Lines of a killed process are not
    lost. If the machine crashes, lines written since the end of the last trial may be lost.
    """

    def __init__(self, path: str) -> None:
        # Symbolic links as locks also work on old network file systems, but require a privilege on
        # Windows. Both kinds of locks use the lock file of Optuna, so other programs respect them.
        is_windows = os.name == "nt"
        self._lock_file = JournalFileOpenLock(path) if is_windows else JournalFileSymlinkLock(path)
        self._path = path
        #: Whether the file was read successfully and is therefore a journal.
        self.in_use = False
        super().__init__(path, lock_obj=self._lock_file)

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
                "was in use. Run the search again, with another file if necessary."
            ) from error

    def _append(self, lines: str, logs: list[dict[str, Any]]) -> None:
        self._warn_about_old_lock()
        self._lock_file.acquire()
        lock = self._lock_identity()
        try:
            with open(self._path, "ab+") as file:
                _cut_unfinished_line(file)
                file.write(lines.encode())
                file.flush()
                if any("datetime_complete" in log or "study_name" in log for log in logs):
                    os.fsync(file.fileno())
        finally:
            self._release(lock)

    def _release(self, lock: tuple[int, int] | None) -> None:
        """Release the lock; if Ctrl-C interrupts this, raise the interrupt instead of an error.

        Optuna's locks replace the interrupt by an error, and may then leave the lock behind.
        """
        try:
            self._lock_file.release()
        except OSError as error:
            if not isinstance(error.__context__, KeyboardInterrupt):
                raise
            if self._lock_identity() == lock:
                os.unlink(f"{self._path}.lock")
            raise error.__context__ from None

    def _lock_identity(self) -> tuple[int, int] | None:
        """Return the identity of the lock file, or None without a lock."""
        try:
            lock = os.lstat(f"{self._path}.lock")  # as Optuna names it
        except OSError:
            return None
        return lock.st_ino, lock.st_mtime_ns

    def _warn_about_old_lock(self) -> None:
        """Issue a warning if a lock is so old that its owner was probably killed."""
        lock = f"{self._path}.lock"  # as Optuna names it
        try:
            age = time.time() - os.lstat(lock).st_mtime
        except OSError:
            return
        if age > _OLD_LOCK_SECONDS:
            warnings.warn(
                f"The journal {self._path!r} has been locked for {age:.0f} s by a process that "
                f"was probably killed. The lock expires after 30 s; delete {lock!r} if no "
                "process uses the journal.",
                UserWarning,
                stacklevel=2,
            )


#: Age in seconds of a lock whose owner was probably killed; locks usually last milliseconds.
_OLD_LOCK_SECONDS = 5.0


def _cut_unfinished_line(file: BinaryIO) -> None:
    """Remove an incomplete last line; only the owner of the lock may call it."""
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - 1))
    if file.read(1) in {b"", b"\n"}:
        return
    length, block = size, 1 << 16
    while length:
        start = max(0, length - block)
        file.seek(start)
        line_end = file.read(length - start).rfind(b"\n")
        if line_end >= 0:
            length = start + line_end + 1
            break
        length = start
    file.truncate(length)


def _open_journal(path: str) -> BaseStorage:
    _check_folder(path)
    if os.path.exists(path):
        with open(path, "rb") as file:
            begin = file.read(len(_JOURNAL_START))
        # A file of another kind must not be truncated like a journal with an incomplete line.
        if not _JOURNAL_START.startswith(begin):
            raise _journal_error(path, f"it begins with {begin!r}")
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
        raise _journal_error(path, str(error)) from error


def _journal_error(path: str, reason: str) -> ValueError:
    return ValueError(
        f"storage: {path!r} is not an Optuna journal, or is damaged ({reason}). Move it, or name "
        "another file."
    )


def _check_folder(path: str) -> None:
    """Raise an error if the folder of a file does not exist."""
    folder = Path(path).absolute().parent
    if not folder.is_dir():
        raise FileNotFoundError(
            f"storage: the folder {str(folder)!r} does not exist. Create it, or name another file."
        )


#: Supported drivers of PostgreSQL, the preferred one first.
_POSTGRESQL_DRIVERS = ("psycopg", "psycopg2")
#: Seconds for which a worker waits while others write to the same SQLite file.
_SQLITE_TIMEOUT = 60.0
#: Number of attempts to open a database whose tables other workers are creating.
_N_ATTEMPTS = 6


class _SerialSQLite(RDBStorage):
    """SQLite storage with serial transactions that do not wait for the disk.

    SQLite has no row locks: two transactions may both read that a trial is waiting before either
    writes. So each transaction locks the database before it reads. With a write-ahead log, neither
    a killed process nor a stopped machine damages the file, but the latter may lose the last
    transactions. The log needs shared memory, so all processes must be on one machine.
    """

    def __init__(self, url: str, **options: Any) -> None:
        super().__init__(url, **options)
        self._add_listeners()

    def __setstate__(self, state: dict[Any, Any]) -> None:
        super().__setstate__(state)
        self._add_listeners()

    def _add_listeners(self) -> None:
        from sqlalchemy import event

        event.listen(self.engine, "connect", _enable_write_ahead_log)
        event.listen(self.engine, "begin", _begin_immediate)
        self.engine.dispose()  # close earlier connections


def _enable_write_ahead_log(connection: Any, record: Any) -> None:
    # This fails if another process has the file open; that process has already set the mode.
    with contextlib.suppress(sqlite3.OperationalError):
        connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=NORMAL")


def _begin_immediate(connection: Connection) -> None:
    connection.exec_driver_sql("BEGIN IMMEDIATE")


def _open_database(text: str) -> BaseStorage:
    """Open a database by its URL; choose an installed driver if a PostgreSQL URL names none."""
    from sqlalchemy.engine import make_url
    from sqlalchemy.exc import NoSuchModuleError, OperationalError, SQLAlchemyError

    try:
        url = make_url(re.sub("^postgres(?=[:+])", "postgresql", text))
    except (SQLAlchemyError, ValueError):
        raise _unknown_form_error(text) from None  # its text may contain the password
    kind = url.get_backend_name()
    options: dict[str, Any] = {"connect_args": {"timeout": _SQLITE_TIMEOUT}}
    storage_class: Callable[..., RDBStorage] = _SerialSQLite
    if kind == "sqlite":
        if url.database in {None, "", ":memory:"} or "mode=memory" in text:
            raise ValueError(
                f"storage {text!r} would be a different database in every thread. Name a file, or "
                "use None to keep studies in memory."
            )
        if not str(url.database).startswith("file:"):
            _check_folder(str(url.database))
    else:
        # This reopens connections that were closed in the meantime, for example by a restart.
        options, storage_class = {"pool_pre_ping": True}, RDBStorage
    if kind == "postgresql" and url.drivername == kind:
        url = url.set(drivername=f"postgresql+{_postgresql_driver()}")
    for attempt in range(_N_ATTEMPTS):
        try:
            # Optuna treats braces as a template.
            text_of_url = re.sub(r"([{}])", r"\1\1", url.render_as_string(hide_password=False))
            storage = storage_class(text_of_url, engine_kwargs=options)
            # Drivers warn of connections that are not closed.
            weakref.finalize(storage, storage.engine.dispose)
            return storage
        except (ImportError, NoSuchModuleError):
            raise _missing_driver_error(url, text) from None
        except Exception as error:
            _close_connections(error)
            cause = _database_error(error)
            if cause is None:
                raise
            # Another worker may be creating the same tables, which exist at the next attempt.
            may_be_creating = kind == "sqlite" or not isinstance(cause, OperationalError)
            if not may_be_creating or attempt == _N_ATTEMPTS - 1:
                raise _unreachable_error(url, text, cause) from None
            time.sleep(0.05 * 2**attempt)
    raise AssertionError("the last attempt returns or raises")


def _close_connections(error: BaseException) -> None:
    """Close the connections of storages whose creation failed."""
    trace = error.__traceback__
    while trace is not None:
        storage = trace.tb_frame.f_locals.get("self")
        if isinstance(storage, RDBStorage) and hasattr(storage, "engine"):
            storage.engine.dispose()
        trace = trace.tb_next


def _database_error(error: BaseException | None) -> DBAPIError | None:
    """Return the database error that an error of Optuna wraps."""
    from sqlalchemy.exc import DBAPIError

    while error is not None and not isinstance(error, DBAPIError):
        error = error.__cause__
    return error


def _postgresql_driver() -> str:
    for driver in _POSTGRESQL_DRIVERS:
        if importlib.util.find_spec(driver):
            return driver
    return _POSTGRESQL_DRIVERS[0]  # named in the error


def _missing_driver_error(url: URL, text: str) -> ImportError:
    kind, driver = url.get_backend_name(), url.drivername.partition("+")[2]
    remedy = (
        f"Run: {install_commands('postgresql')[0]}"
        if kind == "postgresql"
        else "Run: pip install pymysql, and begin the URL with mysql+pymysql://"
    )
    driver_name = f" {driver!r}" if driver else ""
    return ImportError(
        f"storage {storage_name(text)!r} needs a driver{driver_name} that is not installed or "
        f"cannot be imported. {remedy}",
        name=driver or None,
    )


def _unreachable_error(url: URL, text: str, cause: DBAPIError) -> ConnectionError:
    reason = " ".join(str(cause.orig).split())
    for secret in _passwords(url):
        reason = reason.replace(secret, "***")
    return ConnectionError(
        f"storage {storage_name(text)!r} cannot be opened: {reason}. Check that the database "
        "exists, runs and accepts this user."
    )


def _passwords(url: URL) -> set[str]:
    """Return all spellings of a password that an error message might contain."""
    password = "" if url.password is None else str(url.password)
    return {password, quote(password, safe=""), quote_plus(password)} - {""}


_GRPC_TIMEOUT = 20.0


def open_storage(storage: str | Path | BaseStorage | None) -> BaseStorage:
    """Open a storage of studies.

    Use it for a storage named on a command line or in a configuration file. Several processes can
    open the same storage; on several machines, use a database or a proxy.

    Parameters
    ----------
    storage : str, Path, optuna storage or None
        None keeps studies in memory. A path that ends in ``.journal`` or ``.log``, or
        ``"journal:///path"``, is a journal file; ``"sqlite:///path"`` is an SQLite file. As in
        SQLAlchemy, a path after three slashes is relative and after four absolute.
        ``"postgresql://user:password@host/database"`` uses psycopg 3, or psycopg2 if only that is
        installed; ``"mysql://..."`` uses SQLAlchemy's default driver. ``"grpc://host:port"`` is
        Optuna's storage proxy. An Optuna storage is returned unchanged.

    Returns
    -------
    optuna.storages.BaseStorage
        The storage, for ``optuna.create_study``.

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
    No error shows a password. Unlike in Optuna's own storage, transactions of SQLite are serial, so
    two workers cannot start the same enqueued trial. SQLite uses a write-ahead log, so all
    processes must be on one machine. An incomplete last line of a journal, left by a killed
    process, is removed before the next line is written.

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
    scheme, separator, location = text.partition("://")
    if isinstance(storage, Path) or not separator:
        if text.endswith(_JOURNAL_ENDINGS):
            return _open_journal(text)
        raise ValueError(f"storage must be {_FORMS}; got {text!r}.")
    kind = scheme.partition("+")[0]
    if scheme == "journal":
        if not location.startswith("/") or not location.strip("/"):
            raise _unknown_form_error(text)
        return _open_journal(location[1:])
    if scheme == "grpc":
        return _open_proxy(text)
    if kind in {"sqlite", "postgresql", "postgres", "mysql", "mariadb"}:
        return _open_database(text)
    raise _unknown_form_error(text)


def _open_proxy(text: str) -> BaseStorage:
    try:
        url = urlsplit(text)
        host, port = url.hostname, _GRPC_PORT if url.port is None else url.port
    except ValueError:
        raise _unknown_form_error(text) from None
    if not host or url.path.strip("/") or url.query or url.username is not None:
        raise _unknown_form_error(text)
    purpose = f"The storage {text!r}"
    import_optional("grpc", extra="grpc", purpose=purpose)
    import_optional("google.protobuf", extra="grpc", purpose=purpose)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExperimentalWarning)
        proxy = optuna.storages.GrpcStorageProxy(
            host=f"[{host}]" if ":" in host else host, port=port
        )
    try:
        proxy.wait_server_ready(timeout=_GRPC_TIMEOUT)
    except ConnectionError:
        proxy.close()
        raise ConnectionError(
            f"storage {text!r}: no proxy responds within {_GRPC_TIMEOUT:g} s. Start it with "
            "optuna.storages.run_grpc_proxy_server, or check host and port."
        ) from None
    return proxy
