"""Crash-safe files: written atomically, extended by complete lines, locked by one process.

The module also returns the package versions that such files record.
"""

from __future__ import annotations

import functools
import json
import math
import os
import platform
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout
from platformdirs import user_cache_path

__all__ = [
    "LineFile",
    "cache_folder",
    "check_regular",
    "expand_home",
    "json_of",
    "package_versions",
    "try_lock",
    "write_atomically",
]

_LARGEST = int(sys.float_info.max)
#: Packages whose versions are stored with results.
_RESULTS_DEPEND_ON = (
    "skescore",
    "numpy",
    "scipy",
    "scikit-learn",
    "pandas",
    "optuna",
    "joblib",
    "psyke",
)


def cache_folder() -> Path:
    """Return the folder for the state of interrupted runs; it may not exist."""
    return user_cache_path("skescore", appauthor=False)


def expand_home(path: str | os.PathLike[str]) -> Path:
    """Expand ``~`` in a path; ``~name`` is kept if there is no such user.

    Examples
    --------
    >>> expand_home("~$rows.xlsx").name
    '~$rows.xlsx'
    """
    return Path(os.path.expanduser(path))  # Path.expanduser raises an error


def write_atomically(path: Path, content: str | bytes) -> None:
    """Write a file completely or not at all."""
    if isinstance(content, str):
        content = content.encode("utf-8", errors="backslashreplace")
    part = path.with_name(path.name + ".part")
    try:
        with named_errors(path):
            part.write_bytes(content)
            part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


@contextmanager
def named_errors(path: Path) -> Iterator[None]:
    """Add the file name to system errors without one, such as the error for a full disk."""
    try:
        yield
    except OSError as error:
        if error.filename is not None or error.errno is None:
            raise
        raise type(error)(error.errno, error.strerror, str(path)) from error


def check_regular(path: Path, where: str) -> None:
    """Raise a ValueError if a path is a device, pipe or socket, which may never end.

    A missing file raises no error here; reading it raises one.
    """
    try:
        kind = path.stat().st_mode
    except (OSError, ValueError):
        return
    if not (stat.S_ISREG(kind) or stat.S_ISDIR(kind)):
        raise ValueError(
            f"{where} is a device or a pipe, which cannot be read twice. Save its content as a "
            "file, and pass that file."
        )


def json_of(text: str | bytes, *, finite: bool = False) -> Any:
    """Parse untrusted JSON; deep nesting, repeated fields and huge numbers raise a ValueError.

    Parameters
    ----------
    text : str or bytes
        The JSON.
    finite : bool, default=False
        Whether to also reject ``NaN``, ``Infinity`` and numbers such as ``1e999``.

    Examples
    --------
    >>> json_of('{"a": [1, 2.5]}')
    {'a': [1, 2.5]}
    >>> json_of("[" * 100_000)
    Traceback (most recent call last):
        ...
    ValueError: it is nested too deeply
    >>> json_of('{"a": 1, "a": 2}')
    Traceback (most recent call last):
        ...
    ValueError: an object has the field 'a' twice
    """

    def parse_integer(digits: str) -> int:
        value = int(digits)
        if abs(value) > _LARGEST:
            raise ValueError("a number must be no larger than the largest float, 1.8e308")
        return value

    def number(digits: str) -> float:
        value = float(digits)
        if finite and not math.isfinite(value):
            raise ValueError(f"{digits} is not a finite number")
        return value

    def record(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        fields = dict(pairs)
        if len(fields) < len(pairs):
            names = [name for name, _ in pairs]
            twice = next(name for name in names if names.count(name) > 1)
            raise ValueError(f"an object has the field {twice!r} twice")
        return fields

    try:
        return json.loads(
            text,
            parse_int=parse_integer,
            parse_float=number,
            parse_constant=number,
            object_pairs_hook=record,
        )
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error


@contextmanager
def try_lock(path: Path) -> Iterator[bool]:
    """Hold a lock in the block; yield False without waiting if another process holds it."""
    lock = FileLock(path)
    try:
        lock.acquire(blocking=False)
    except Timeout:
        yield False
        return
    try:
        yield True
    finally:
        # The file is deleted while the lock is held. A process that has opened it notices this and
        # creates a new file.
        with suppress(OSError):
            path.unlink()
        lock.release()


class LineFile:
    """Text file that is extended by complete lines, so that interrupted runs can resume.

    Use it if a process may be killed at any moment. Each line is written by one call and ends with
    its only line feed, so the last line is complete if and only if the file ends with a line feed.
    An incomplete last line is removed when the file is opened again.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = Path(folder.name) / "rows.csv"
    >>> LineFile(path, "a,b").append("1,2")
    >>> _ = path.write_bytes(path.read_bytes() + b"3,")
    >>> LineFile(path, "a,b").lines, path.read_text().split()
    (['1,2'], ['a,b', '1,2'])
    >>> folder.cleanup()
    """

    def __init__(
        self, path: Path, head: str, *, check: Callable[[str], None] | None = None
    ) -> None:
        self.path = path
        content = path.read_bytes() if path.exists() else b""
        complete = content[: content.rfind(b"\n") + 1]
        lines = complete.decode("utf-8", errors="replace").split("\n")[:-1]
        file_head, *self.lines = lines or [head]
        if complete and check is not None:
            check(file_head)
        elif file_head != head:
            raise ValueError(
                f"{path} begins with {file_head[:100]!r} instead of {head[:100]!r}. Move the file, "
                "or name another folder."
            )
        if not complete:
            write_atomically(path, head + "\n")
        elif complete != content:
            os.truncate(path, len(complete))

    def append(self, line: str) -> None:
        """Add a line."""
        data = line.encode("utf-8", errors="backslashreplace") + b"\n"
        with named_errors(self.path), self.path.open("ab", buffering=0) as file:
            written = file.write(data)
            while written is not None and written < len(data):  # interrupted by a signal
                data = data[written:]
                written = file.write(data)


def package_versions() -> dict[str, str]:
    """Return the versions of Python and of the installed packages on which results depend."""
    versions = {name: _installed_version(name) for name in _RESULTS_DEPEND_ON}
    installed = {name: text for name, text in versions.items() if text is not None}
    return {"python": platform.python_version(), **installed}


@functools.cache  # looking up a version reads and parses a file
def _installed_version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
