"""Groups of cells measured here or in several processes, which end when this one is killed."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator, Sequence
from typing import Any

from joblib import Parallel, delayed

from skescore.bench._cells import Group, measure_group

__all__ = ["measure_groups"]

#: The process that this one works for, once it watches over it.
_WATCHED: list[int] = []
#: Seconds between two looks.
_PAUSE = 1.0


def measure_groups(groups: Sequence[Group], n_jobs: int) -> Iterator[dict[str, Any]]:
    """Measure groups of cells.

    Parameters
    ----------
    groups : sequence of Group
        What to measure.
    n_jobs : int
        Processes; with one, all is done here.

    Yields
    ------
    dict
        Rows of the results: here as each is finished, from processes by the group.
    """
    if n_jobs == 1 or len(groups) < 2:
        for group in groups:
            yield from measure_group(group)
        return
    # Arrays are copied to the processes: what is mapped from a file cannot be written to, which
    # not every model bears.
    parallel = Parallel(n_jobs=n_jobs, return_as="generator_unordered", max_nbytes=None)
    for rows in parallel(delayed(_measure_for)(os.getpid(), group) for group in groups):
        yield from rows


def _measure_for(parent: int, group: Group) -> list[dict[str, Any]]:
    """Measure a group in a process that another one started."""
    if not _WATCHED and os.name == "posix" and os.getppid() == parent:
        _WATCHED.append(parent)
        threading.Thread(target=_watch, args=(parent,), daemon=True).start()
    return list(measure_group(group))


def _watch(parent: int) -> None:
    """End this process when its parent is gone: a killed run must not go on in the background."""
    while os.getppid() == parent:
        time.sleep(_PAUSE)
    os._exit(1)
