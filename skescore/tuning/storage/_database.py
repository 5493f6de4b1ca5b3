"""Databases as storages of studies."""

from __future__ import annotations

import contextlib
import importlib.util
import re
import sqlite3
import time
import weakref
from collections.abc import Callable
from typing import Any
from urllib.parse import quote, quote_plus

from optuna.storages import BaseStorage, RDBStorage
from sqlalchemy import event
from sqlalchemy.engine import URL, Connection, make_url
from sqlalchemy.exc import DBAPIError, NoSuchModuleError, OperationalError, SQLAlchemyError

from skescore._optional import install_commands
from skescore.tuning.storage._journal import _check_folder
from skescore.tuning.storage._names import _unknown_form, storage_name

#: Supported drivers of PostgreSQL, the preferred one first.
_POSTGRESQL_DRIVERS = ("psycopg", "psycopg2")
#: Seconds for which a worker waits for others that write to the same SQLite file.
_SQLITE_SECONDS = 60.0
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
        self._listen()

    def __setstate__(self, state: dict[Any, Any]) -> None:
        super().__setstate__(state)
        self._listen()

    def _listen(self) -> None:
        event.listen(self.engine, "connect", _enable_write_ahead_log)
        event.listen(self.engine, "begin", _begin_immediate)
        self.engine.dispose()  # close earlier connections


def _enable_write_ahead_log(connection: Any, record: Any) -> None:
    # This fails if another process has the file open, which has set the mode already.
    with contextlib.suppress(sqlite3.OperationalError):
        connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=NORMAL")


def _begin_immediate(connection: Connection) -> None:
    connection.exec_driver_sql("BEGIN IMMEDIATE")


def _open_database(text: str) -> BaseStorage:
    """Open a database by its URL, with an installed driver if PostgreSQL has none in it."""
    try:
        url = make_url(re.sub("^postgres(?=[:+])", "postgresql", text))
    except (SQLAlchemyError, ValueError):
        raise _unknown_form(text) from None  # its text may contain the password
    kind = url.get_backend_name()
    options: dict[str, Any] = {"connect_args": {"timeout": _SQLITE_SECONDS}}
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
        # Reopens connections that were closed meanwhile, for example by a restart.
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
    named = f" {driver!r}" if driver else ""
    return ImportError(
        f"storage {storage_name(text)!r} needs a driver{named} that is not installed or cannot be "
        f"imported. {remedy}",
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
