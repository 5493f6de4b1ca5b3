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

#: Drivers of PostgreSQL that may be installed, the better one first.
_POSTGRESQL_DRIVERS = ("psycopg", "psycopg2")
#: How long a worker waits for others that write to the same SQLite file.
_SQLITE_SECONDS = 60.0
#: How often an empty database is tried where several workers create its tables at the same time.
_ATTEMPTS = 6


class _SerialSQLite(RDBStorage):
    """SQLite storage with serial transactions that do not wait for the disk.

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
    """Open a database by its URL, with an installed driver if PostgreSQL has none in it."""
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
    """Close the connections of storages whose creation failed."""
    trace = error.__traceback__
    while trace is not None:
        half = trace.tb_frame.f_locals.get("self")
        if isinstance(half, RDBStorage) and hasattr(half, "engine"):
            half.engine.dispose()
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
    """Return all spellings of a password that an error message might contain."""
    password = "" if url.password is None else str(url.password)
    return {password, quote(password, safe=""), quote_plus(password)} - {""}
