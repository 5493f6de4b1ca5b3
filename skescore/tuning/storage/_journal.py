"""Journal files that survive the end of a writing process."""

from __future__ import annotations

import json
import os
import time
import warnings
from collections.abc import Generator
from pathlib import Path
from typing import Any, BinaryIO

from optuna.storages import BaseStorage, JournalStorage
from optuna.storages.journal import JournalFileBackend, JournalFileOpenLock, JournalFileSymlinkLock

from skescore.tuning.storage._failures import JournalWriteError

#: Endings by which a path is known to be a journal.
_JOURNAL_ENDINGS = (".journal", ".log")
#: How every journal begins.
_JOURNAL_START = b'{"op_code":'


class _Journal(JournalFileBackend):
    """Journal file that survives the end of a writer and waits for the disk only once per trial.

    Optuna's own has every line on the disk before the next, some milliseconds for each attribute
    of a trial, while others wait for the lock. A process that is killed loses nothing of what it
    wrote; only a machine that stops may lose the lines since a trial last ended.
    """

    def __init__(self, path: str) -> None:
        # Symbolic links need a privilege on Windows. Where they do not, they work on old network
        # disks too. Either goes by the existence of the same file, as do Optuna's other programs.
        windows = os.name == "nt"
        self._guard = JournalFileOpenLock(path) if windows else JournalFileSymlinkLock(path)
        self._path = path
        #: Whether it was read before: it is no other file then that was named by mistake.
        self.in_use = False
        super().__init__(path, lock_obj=self._guard)

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
                "was in use. Repeat the search, with another file if that is wanted."
            ) from error

    def _append(self, lines: str, logs: list[dict[str, Any]]) -> None:
        self._warn_of_old_lock()
        self._guard.acquire()
        try:
            with open(self._path, "ab+") as file:
                _cut_unfinished_line(file)
                file.write(lines.encode())
                file.flush()
                if any("datetime_complete" in log or "study_name" in log for log in logs):
                    os.fsync(file.fileno())
        finally:
            self._guard.release()

    def _warn_of_old_lock(self) -> None:
        """Warn of a lock so old that its owner has probably been killed."""
        lock = f"{self._path}.lock"  # as Optuna names it
        try:
            age = time.time() - os.lstat(lock).st_mtime
        except OSError:
            return
        if age > _OLD_LOCK:
            warnings.warn(
                f"The journal {self._path!r} is locked since {age:.0f} s by a process that has "
                f"probably been killed. The lock is removed after 30 s; delete {lock!r} if no "
                "process uses the journal.",
                UserWarning,
                stacklevel=2,
            )


#: Locks are held for milliseconds; seconds after which one is a left-over.
_OLD_LOCK = 5.0


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
        # Someone's notes must not be taken for a line that was cut off, and removed.
        if not _JOURNAL_START.startswith(begin):
            raise _no_journal(path, f"it begins with {begin!r}")
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
        raise _no_journal(path, str(error)) from error


def _no_journal(path: str, reason: str) -> ValueError:
    return ValueError(
        f"storage: {path!r} is no journal of Optuna, or is damaged ({reason}). Move it away, or "
        "name another file."
    )


def _check_folder(path: str) -> None:
    """Raise an error if the folder of a file does not exist."""
    folder = Path(path).absolute().parent
    if not folder.is_dir():
        raise FileNotFoundError(
            f"storage: the folder {str(folder)!r} does not exist. Create it, or name another file."
        )
