"""Failures of storages from which a search can recover."""

from __future__ import annotations

import errno
import time
import warnings
from collections.abc import Callable
from typing import TypeVar

from optuna.exceptions import StorageInternalError
from optuna.storages import BaseStorage

from skescore.tuning.storage._names import storage_name

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
        True for errors of a database, a proxy or the file of a journal that may disappear.
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
    """Call a function that uses a storage, again for about a minute if the storage fails.

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
    """Return the first line of a storage's error, without the query of a database error."""
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
