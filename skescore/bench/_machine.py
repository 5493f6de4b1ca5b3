"""Description of the machine on which times were measured."""

from __future__ import annotations

import platform
from pathlib import Path
from typing import Any

import joblib
import psutil

__all__ = ["describe_machine"]


def describe_machine() -> dict[str, Any]:
    """Describe the machine on which the times were measured.

    Returns
    -------
    dict
        ``processor``, ``cores`` (available to this process), ``memory_gb`` and ``platform``.
    """
    return {
        "processor": _processor(),
        "cores": joblib.cpu_count(),
        "memory_gb": round(psutil.virtual_memory().total / 2**30, 1),
        "platform": platform.platform(),
    }


def _processor() -> str | None:
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except (OSError, UnicodeDecodeError):
        pass
    return platform.processor() or platform.machine() or None
