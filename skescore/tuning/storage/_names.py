"""Forms and printable names of storages."""

from __future__ import annotations

import re
from pathlib import Path

from optuna.storages import BaseStorage, InMemoryStorage, RDBStorage

_GRPC_PORT = 13000


_FORMS = (
    "None (in memory), a path ending in .journal or .log, 'journal:///study.journal', "
    "'sqlite:///study.db', 'postgresql://host/database', 'mysql://host/database' (user and "
    "password before the host), 'grpc://host:13000', or an Optuna storage. Three slashes before a "
    "path begin a relative one, four an absolute one"
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
        inner = getattr(storage, "_backend", storage)  # inside of Optuna's cache
        if isinstance(inner, RDBStorage):
            return storage_name(inner.url)
        if hasattr(storage, "_host"):
            return f"grpc://{storage._host}:{getattr(storage, '_port', _GRPC_PORT)}"
        path = getattr(inner, "_file_path", None)
        return type(storage).__name__ if path is None else f"journal:///{path}"
    # Everything from the user's colon to the last @ is hidden, even in an invalid URL.
    user = r"^((?:[\w+.-]+:/+|(?![\w+.-]+:/))[^:/@]*):.*@"
    text = re.sub(user, r"\1:***@", str(storage), flags=re.DOTALL)
    secret = r"([?&;][^=&;]*(?:passw|pwd|secret|token)[^=&;]*=)[^&;]*"
    return re.sub(secret, r"\1***", text, flags=re.IGNORECASE)


def _unknown_form(text: str) -> ValueError:
    """Return the error for a storage of an unknown form."""
    return ValueError(f"storage {storage_name(text)!r} has no known form: it must be {_FORMS}.")
