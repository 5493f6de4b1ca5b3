"""Journal files that remain valid if a process is killed while it writes."""

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

#: Extensions of journal files.
_JOURNAL_ENDINGS = (".journal", ".log")
#: First bytes of every journal.
_JOURNAL_START = b'{"op_code":'


class _Journal(JournalFileBackend):
    """Journal file that stays valid if a writer is killed, and calls ``fsync`` once per trial.

    Optuna's own backend calls ``fsync`` after every line. This takes milliseconds for each
    attribute of a trial, while other workers wait for the lock. Lines of a killed process are not
    lost. If the machine crashes, lines written since the end of the last trial may be lost.
    """

    def __init__(self, path: str) -> None:
        # Locks by symbolic links also work on old network file systems, but need a privilege on
        # Windows. Both kinds of locks use the same file as Optuna, so other programs respect them.
        is_windows = os.name == "nt"
        self._lock_file = JournalFileOpenLock(path) if is_windows else JournalFileSymlinkLock(path)
        self._path = path
        #: Whether the file was read successfully and is therefore a journal.
        self.in_use = False
        super().__init__(path, lock_obj=self._lock_file)

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
                "was in use. Run the search again, with another file if necessary."
            ) from error

    def _append(self, lines: str, logs: list[dict[str, Any]]) -> None:
        self._warn_of_old_lock()
        self._lock_file.acquire()
        try:
            with open(self._path, "ab+") as file:
                _cut_unfinished_line(file)
                file.write(lines.encode())
                file.flush()
                if any("datetime_complete" in log or "study_name" in log for log in logs):
                    os.fsync(file.fileno())
        finally:
            self._lock_file.release()

    def _warn_of_old_lock(self) -> None:
        """Issue a warning if a lock is so old that its owner was probably killed."""
        lock = f"{self._path}.lock"  # as Optuna names it
        try:
            age = time.time() - os.lstat(lock).st_mtime
        except OSError:
            return
        if age > _OLD_LOCK:
            warnings.warn(
                f"The journal {self._path!r} has been locked for {age:.0f} s by a process that "
                f"was probably killed. The lock expires after 30 s; delete {lock!r} if no "
                "process uses the journal.",
                UserWarning,
                stacklevel=2,
            )


#: Age in seconds of a lock whose owner was probably killed; locks usually last milliseconds.
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
        # A file of another kind must not be truncated like a journal with an incomplete line.
        if not _JOURNAL_START.startswith(begin):
            raise _journal_error(path, f"it begins with {begin!r}")
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
        raise _journal_error(path, str(error)) from error


def _journal_error(path: str, reason: str) -> ValueError:
    return ValueError(
        f"storage: {path!r} is not an Optuna journal, or is damaged ({reason}). Move it, or name "
        "another file."
    )


def _check_folder(path: str) -> None:
    """Raise an error if the folder of a file does not exist."""
    folder = Path(path).absolute().parent
    if not folder.is_dir():
        raise FileNotFoundError(
            f"storage: the folder {str(folder)!r} does not exist. Create it, or name another file."
        )
