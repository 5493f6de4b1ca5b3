"""Crash-safe files: written atomically, extended by complete lines, locked by one process.

And what they say of the packages that they were made with.
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
    "at_home",
    "cache_folder",
    "check_regular",
    "json_of",
    "package_versions",
    "try_lock",
    "write_atomically",
]

_LARGEST = int(sys.float_info.max)
#: What a kept result says of where it was made.
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


def at_home(path: str | os.PathLike[str]) -> Path:
    """Expand ``~`` in a path; ``~name`` is kept if there is no such user.

    Examples
    --------
    >>> at_home("~$rows.xlsx").name
    '~$rows.xlsx'
    """
    return Path(os.path.expanduser(path))  # Path's own raises an error


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
    """Add the file name to system errors without one, such as that of a full disk."""
    try:
        yield
    except OSError as error:
        if error.filename is not None or error.errno is None:
            raise
        raise type(error)(error.errno, error.strerror, str(path)) from error


def check_regular(path: Path, where: str) -> None:
    """Raise a ValueError for devices, pipes and sockets, which may never end.

    What is not there is left to whoever reads it.
    """
    try:
        kind = path.stat().st_mode
    except (OSError, ValueError):
        return
    if not (stat.S_ISREG(kind) or stat.S_ISDIR(kind)):
        raise ValueError(
            f"{where} is a device or a pipe, which cannot be read twice. Save what comes out of it "
            "as a file, and name that."
        )


def json_of(text: str | bytes, *, finite: bool = False) -> Any:
    """Parse untrusted JSON; deep nesting, repeated fields and huge numbers raise a ValueError.

    Parameters
    ----------
    text : str or bytes
        The JSON.
    finite : bool, default=False
        Whether to refuse ``NaN``, ``Infinity`` and ``1e999`` as well.

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
            raise ValueError(f"{digits} is no finite number")
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
    """Hold a lock in the block, or fail at once if another process holds it."""
    lock = FileLock(path)
    try:
        lock.acquire(blocking=False)
    except Timeout:
        yield False
        return
    try:
        yield True
    finally:
        # Deleted while it is held: whoever has opened it sees that, and makes another one.
        with suppress(OSError):
            path.unlink()
        lock.release()


class LineFile:
    """A text file that is extended by complete lines, so that interrupted runs can resume.

    Use it where a process may be killed at any moment. A line is written by one call and ends with
    a line feed that it does not hold itself, so that the last line is whole exactly if the file
    ends with one; a torn one is cut off when the file is opened again.

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
                f"{path} begins with {file_head[:100]!r} instead of {head[:100]!r}: "
                "move it away, or name another folder."
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
            while written is not None and written < len(data):  # a signal came
                data = data[written:]
                written = file.write(data)


def package_versions() -> dict[str, str]:
    """Return the versions of Python and of the packages on which results depend."""
    versions = {name: _installed_version(name) for name in _RESULTS_DEPEND_ON}
    installed = {name: text for name, text in versions.items() if text is not None}
    return {"python": platform.python_version(), **installed}


@functools.cache  # which reads and parses a file of each package
def _installed_version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
