"""Callbacks of a benchmark, and a progress display."""

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

from skescore.registry import extractor_label

__all__ = ["BenchCallback", "BenchProgress"]

#: Seconds between two lines if there is no terminal.
_SECONDS_BETWEEN_LINES = 10.0
#: Smallest number of measured rows from which the remaining time is estimated.
_MIN_ROWS_TO_ESTIMATE = 10


class BenchCallback:
    """Methods that :func:`run_bench` calls; override the methods of interest.

    Examples
    --------
    >>> from skescore.bench import BenchCallback
    >>> class PrintRows(BenchCallback):
    ...     def on_row(self, row):
    ...         print(row["extractor"], row["state"])
    """

    def on_start(self, n_existing: int, n_missing: int) -> None:
        """Receive the numbers of existing rows in the folder and of rows to measure."""

    def on_row(self, row: Mapping[str, Any]) -> None:
        """Receive a row that was measured."""

    def on_note(self, text: str) -> None:
        """Receive a note for the reader of the results."""


class BenchProgress(BenchCallback):
    """Progress of a benchmark: a bar on a terminal, otherwise occasional lines.

    Use it as a context manager and as the `callback` of :func:`run_bench`.

    Parameters
    ----------
    enabled : bool, default=True
        Whether to show progress.
    note : callable, optional
        Function that is called with each note.
    clock : callable, optional
        Function that returns the time in seconds.
    """

    def __init__(
        self,
        *,
        enabled: bool = True,
        note: Callable[[str], None] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._enabled, self._note, self._clock = enabled, note, clock
        self._bar: Progress | None = None
        self._n_existing = self._n_missing = self.n_measured = self.n_failed = 0

    def __enter__(self) -> BenchProgress:
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def on_start(self, n_existing: int, n_missing: int) -> None:
        """Show the number of existing rows."""
        self._n_existing, self._n_missing = n_existing, n_missing
        self._start = self._last_line = self._clock()
        if not self._enabled:
            return
        n_rows = n_existing + n_missing
        if n_existing and n_missing:
            self._write(f"resuming after {n_existing} of {n_rows} rows")
        console = Console(stderr=True)
        # In notebooks, the bar would need ipywidgets.
        if n_missing and console.is_terminal and not console.is_jupyter:
            self._bar = Progress(
                TextColumn("{task.description}"),
                BarColumn(),
                MofNCompleteColumn(),
                TimeElapsedColumn(),
                TextColumn("left"),
                TimeRemainingColumn(),
                console=console,
                transient=True,
            )
            self._task = self._bar.add_task("measuring", total=n_rows, completed=n_existing)
            self._bar.start()

    def on_row(self, row: Mapping[str, Any]) -> None:
        """Count a row."""
        self.n_measured += 1
        self.n_failed += row.get("state") == "failed"
        if not self._enabled:
            return
        failed = f", {self.n_failed} failed" if self.n_failed else ""
        if self._bar is not None:
            text = f"{row['data']}, {row['black_box']}, {extractor_label(row['extractor'])}{failed}"
            self._bar.update(self._task, advance=1, description=text)
            return
        time, n_left = self._clock(), self._n_missing - self.n_measured
        if n_left and time - self._last_line < _SECONDS_BETWEEN_LINES:
            return
        self._last_line = time
        elapsed = time - self._start
        n_rows = self._n_existing + self._n_missing
        text = f"{self._n_existing + self.n_measured} of {n_rows} rows{failed}, {duration(elapsed)}"
        # The first rows may be fast or slow, so they give no estimate.
        if n_left and self.n_measured >= min(_MIN_ROWS_TO_ESTIMATE, self._n_missing / 2):
            text += f", about {duration(elapsed / self.n_measured * n_left)} left"
        self._write(text)

    def on_note(self, text: str) -> None:
        """Pass a note on."""
        if self._note is not None:
            self._note(text)

    def _write(self, text: str) -> None:
        sys.stderr.write(text + "\n")
        sys.stderr.flush()


def duration(seconds: float) -> str:
    """Format a duration as seconds, minutes or hours."""
    rounded = round(seconds)
    if rounded < 60:
        return f"{rounded} s"
    if rounded < 3600:
        return f"{rounded // 60} min {rounded % 60} s"
    return f"{rounded // 3600} h {rounded % 3600 // 60} min"
