"""Opening of storages by path or URL."""

from __future__ import annotations

import warnings
from pathlib import Path
from urllib.parse import urlsplit

import optuna
from optuna.exceptions import (
    ExperimentalWarning,
)
from optuna.storages import BaseStorage, InMemoryStorage

from skescore._optional import import_optional
from skescore.tuning.storage._journal import _JOURNAL_ENDINGS, _open_journal
from skescore.tuning.storage._names import _FORMS, _GRPC_PORT, _unknown_form

_GRPC_SECONDS = 20.0


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
    No error shows a password. Unlike Optuna's, transactions of SQLite are serial, so that two
    workers cannot start the same enqueued trial. SQLite uses a write-ahead log, so all processes
    must be on one machine. An incomplete last line of a journal, left by a killed process, is
    removed before the next line is written.

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
            raise _unknown_form(text)
        return _open_journal(location[1:])
    if scheme == "grpc":
        return _open_proxy(text)
    if kind in {"sqlite", "postgresql", "postgres", "mysql", "mariadb"}:
        # Imported here, because a search in memory does not need SQLAlchemy.
        from skescore.tuning.storage._database import _open_database

        return _open_database(text)
    raise _unknown_form(text)


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
            f"storage {text!r}: no proxy responds within {_GRPC_SECONDS:g} s. Start it with "
            "optuna.storages.run_grpc_proxy_server, or check host and port."
        ) from None
    return proxy
