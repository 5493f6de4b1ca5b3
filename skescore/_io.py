"""Where unfinished work is kept, and how one process keeps others out of it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

__all__ = ["cache_folder", "take_lock"]


def cache_folder() -> Path:
    """Name the folder for what a later run may go on with; it need not exist.

    Returns
    -------
    Path
        Inside ``XDG_CACHE_HOME``, ``LOCALAPPDATA`` or ``~/.cache``, the first that is set.
    """
    given = os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA")
    return (Path(given) if given else Path.home() / ".cache") / "skescore"


def take_lock(file: Any) -> bool:
    """Lock an open file until it is closed or the process ends, however it ends.

    Parameters
    ----------
    file : file object
        Open for writing.

    Returns
    -------
    bool
        False where another process has the lock; nothing is waited for.
    """
    try:
        if os.name == "nt":
            import msvcrt

            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
