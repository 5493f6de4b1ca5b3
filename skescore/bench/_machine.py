"""What a run depends on beside its configuration: versions and hardware."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

__all__ = ["describe_machine", "package_versions"]

_PACKAGES = (
    "skescore", "numpy", "scipy", "scikit-learn", "pandas", "optuna", "joblib", "psyke",
)  # fmt: skip


def package_versions() -> dict[str, str]:
    """Tell the versions of Python and of the packages that results depend on.

    Returns
    -------
    dict of str to str
        Packages that are not installed are left out.
    """
    found = {"python": platform.python_version()}
    for name in _PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def describe_machine() -> dict[str, Any]:
    """Tell what the times were measured on.

    Returns
    -------
    dict
        ``processor``, ``cores`` (that this process may use), ``memory_gb`` and ``platform``; None
        for what the system does not tell.
    """
    try:
        cores: int | None = len(os.sched_getaffinity(0))
    except AttributeError:  # not on every system
        cores = os.cpu_count()
    return {
        "processor": _processor(),
        "cores": cores,
        "memory_gb": _memory(),
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


def _memory() -> float | None:
    try:
        return round(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30, 1)
    except (AttributeError, OSError, ValueError):
        return None
