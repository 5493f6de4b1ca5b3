"""How far a benchmark is, and how long it will take."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

__all__ = ["BenchProgress", "duration"]

#: Seconds between two lines where there is no terminal.
_PAUSE = 10.0
#: Rows from which the time that is left can be told.
_ENOUGH = 10


class BenchProgress:
    """Shows how many rows are measured: a bar on a terminal, elsewhere a line now and then.

    Use it as a context; `start` and `row` are the callbacks of ``run_bench``.
    """

    def __init__(self, *, shown: bool = True, clock: Callable[[], float] = time.monotonic) -> None:
        self._shown, self._clock = shown, clock
        self._bar: Progress | None = None
        self._there = self._total = self.measured = self.failed = 0

    def __enter__(self) -> BenchProgress:
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def start(self, there: int, missing: int) -> None:
        """Tell how many rows are there already and how many are to be measured."""
        self._there, self._total = there, missing
        self._begin = self._told = self._clock()
        if not self._shown:
            return
        if there and missing:
            self._say(f"{there} of {there + missing} rows are there already; going on")
        console = Console(stderr=True)
        if missing and (console.is_terminal or console.is_jupyter):
            self._bar = Progress(
                TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(),
                TimeElapsedColumn(), TextColumn("left"), TimeRemainingColumn(),
                console=console, transient=True,
            )  # fmt: skip
            self._task = self._bar.add_task("measuring", total=there + missing, completed=there)
            self._bar.start()

    def row(self, row: Mapping[str, Any]) -> None:
        """Count a row."""
        self.measured += 1
        self.failed += row.get("state") == "failed"
        if not self._shown:
            return
        if self._bar is not None:
            failed = f", {self.failed} failed" if self.failed else ""
            text = f"{row['data']}, {row['black_box']}, {row['extractor']}{failed}"
            self._bar.update(self._task, advance=1, description=text)
            return
        now, left = self._clock(), self._total - self.measured
        if left and now - self._told < _PAUSE:
            return
        self._told = now
        elapsed = now - self._begin
        text = f"{self._there + self.measured} of {self._there + self._total} rows"
        if self.failed:
            text += f", {self.failed} failed"
        text += f", {duration(elapsed)}"
        # The first few may be slow or fast: what comes of them is no estimate.
        if left and self.measured >= min(_ENOUGH, self._total / 2):
            text += f", about {duration(elapsed / self.measured * left)} left"
        self._say(text)

    def _say(self, text: str) -> None:
        sys.stderr.write(text + "\n")
        sys.stderr.flush()


def duration(seconds: float) -> str:
    """Write a time for people.

    Examples
    --------
    >>> duration(5.2), duration(75), duration(7300)
    ('5 s', '1 min 15 s', '2 h 1 min')
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
