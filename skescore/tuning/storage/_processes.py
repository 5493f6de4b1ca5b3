"""Which process runs a trial, and whether it is known to have ended."""

from __future__ import annotations

import functools
import os
import platform
import uuid
from pathlib import Path
from typing import Any


def this_worker() -> dict[str, Any]:
    """Who runs a trial: this process, and which of its attempts."""
    pid = os.getpid()
    return {
        "host": platform.node(),
        "machine": _machine(),
        "process": pid,
        "started": _process_start(pid),
        # Two attempts of one process are told apart.
        "attempt": uuid.uuid4().hex[:8],
    }


def name_of(beat: Any) -> str:
    """A worker in words, by its sign of life."""
    if not isinstance(beat, dict):
        return "worker"
    return f"worker (process {beat.get('process')} on {beat.get('host')})"


@functools.cache
def _machine() -> str:
    """Where a process number means this process: the running system, and the container in it."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return f"{platform.node()} {uuid.getnode():x}"


def _process_start(pid: int) -> str | None:
    """When a process began, in a form that tells it from a later one with the same number.

    None where the system does not say, empty for a process that has ended but is not buried yet.
    """
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    # The name of the program stands in parentheses and may hold anything.
    fields = stat.rpartition(")")[2].split()
    return "" if fields[0] in {"Z", "X", "x"} else fields[19]


def is_gone(beat: dict[str, Any]) -> bool:
    """Whether the process behind a sign of life is known to have ended; only known nearby."""
    pid = beat.get("process")
    if beat.get("machine") != _machine() or not isinstance(pid, int) or os.name != "posix":
        return False  # elsewhere, asking about a process could even end it
    try:
        os.kill(pid, 0)  # asks, and does nothing
    except ProcessLookupError:
        return True
    except OSError:
        pass  # another user's
    started = _process_start(pid)
    return started is not None and started != beat.get("started")
