"""Where the rows of ``skescore bench`` are kept while they are measured."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

from skescore._io import cache_folder
from skescore.bench._machine import package_versions
from skescore.bench._plan import Plan
from skescore.bench._running import is_in_use

__all__ = ["rows_folder"]

_ROWS_KEPT_DAYS = 30
#: Runs of the same command at the same time.
_MOST_AT_ONCE = 8


@contextlib.contextmanager
def rows_folder(given: Path | None, plan: Plan) -> Iterator[Path]:
    """Give the folder of ``--output``, or one in the user's cache that is deleted at the end.

    Parameters
    ----------
    given : Path or None
        What ``--output`` names.
    plan : Plan
        What is measured: the same again finds what was broken off.

    Yields
    ------
    Path
        The folder; it need not exist in the cache.

    Raises
    ------
    ValueError
        If it cannot be written to, or the command runs too often at the same time.
    """
    if given is not None:
        try:
            given.mkdir(parents=True, exist_ok=True)
            if not os.access(given, os.W_OK | os.X_OK):
                raise PermissionError(None, "Permission denied")
        except OSError as error:
            raise ValueError(
                f"--output {given} cannot be written to: {error.strerror or error}. Name "
                "another folder."
            ) from error
        yield given
        return
    about = json.dumps([plan.record(), package_versions()], sort_keys=True, default=str)
    digest = hashlib.sha256(about.encode()).hexdigest()[:16]
    cache = cache_folder() / "bench"
    _forget_old(cache)
    folders = [cache / f"{digest}-{number}" for number in range(1, _MOST_AT_ONCE + 1)]
    free = [folder for folder in folders if not is_in_use(folder)]
    if not free:
        raise ValueError("This command runs too often at the same time. Name a folder: --output.")
    yield free[0]
    shutil.rmtree(free[0], ignore_errors=True)


def _forget_old(cache: Path) -> None:
    """Delete what nobody went on with."""
    for folder in cache.glob("*"):
        with contextlib.suppress(OSError):
            if folder.stat().st_mtime < time.time() - _ROWS_KEPT_DAYS * 86400:
                shutil.rmtree(folder)
