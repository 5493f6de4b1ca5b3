"""Progress display of a search."""

from __future__ import annotations

import math
import sys
import threading
import time
from html import escape
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from skescore._text import plural
from skescore.registry import extractor_label
from skescore.tuning.runner._trials import is_baseline

#: Seconds between two updates in a notebook.
_SECONDS_IN_NOTEBOOK = 0.5


class _NotebookBar:
    """Bar in the output of a notebook cell, which needs no widgets.

    The bar of rich needs ipywidgets, without which it shows nothing but a warning.
    """

    def __init__(self) -> None:
        from IPython.display import display

        self._handle = display(self._content("searching", 0, None), raw=True, display_id=True)

    def show(self, text: str, n_done: int, total: int | None) -> None:
        """Replace the content of the output."""
        self._handle.update(self._content(text, n_done, total), raw=True)

    def _content(self, text: str, n_done: int, total: int | None) -> dict[str, str]:
        bar = f'<progress value="{n_done}" max="{total}"></progress> ' if total else ""
        return {"text/plain": text, "text/html": f"<div>{bar}{escape(text)}</div>"}


class SearchProgress:
    """Show the progress of a search: a bar on a terminal or in a notebook, lines elsewhere.

    In a notebook, the last state remains. Without a terminal, it writes a line every few seconds
    and one per extractor at the end.

    Use it as a context manager and as a callback of the studies.

    Parameters
    ----------
    total : int or None
        Number of trials; None if only the time is limited.
    label : str
        Name of the score.
    sign : int, default=1
        -1 if the search maximizes the negative of the score.
    enabled : bool, default=True
        False shows nothing.
    seconds : float, default=5.0
        Time between two lines.
    """

    def __init__(
        self,
        total: int | None,
        label: str,
        sign: int = 1,
        *,
        enabled: bool = True,
        seconds: float = 5.0,
    ) -> None:
        self._label, self._sign = label, sign
        self._best: dict[str, float] = {}
        self._counts: dict[str, int] = {}
        #: Number of finished trials that belong to the total.
        self._n_budgeted = 0
        self._bar: Progress | None = None
        self._notebook_bar: _NotebookBar | None = None
        self._writes_lines = False
        self._total = total
        self._enabled = enabled
        self._seconds = seconds
        #: What the search does before its first trial; empty during trials.
        self.activity = ""
        self._is_over = threading.Event()
        self._writer: threading.Thread | None = None

    def __enter__(self) -> SearchProgress:
        if self._enabled:
            console = Console(stderr=True)
            self._start = time.perf_counter()
            if console.is_jupyter:
                self._notebook_bar = _NotebookBar()
                self._seconds = _SECONDS_IN_NOTEBOOK
            self._writes_lines = not (console.is_terminal or console.is_jupyter)
            if self._writes_lines or console.is_jupyter:
                self._writer = threading.Thread(target=self._write_lines, daemon=True)
                self._writer.start()
            else:
                self._bar = Progress(
                    TextColumn("{task.description}"),
                    BarColumn(),
                    MofNCompleteColumn(),
                    TimeElapsedColumn(),
                    console=console,
                    transient=True,
                )
                self._task = self._bar.add_task("searching", total=self._total)
                self._bar.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()
        if self._writer is not None:
            self._is_over.set()
            self._writer.join()
        if self._notebook_bar is not None:
            self._notebook_bar.show(self._status(), self._n_budgeted, self._total)
        if self._writes_lines and kind is None:
            for name, count in self._counts.items():
                sys.stderr.write(f"{plural(count, 'trial')} of {self._describe(name)}\n")

    def __call__(self, study: Any, trial: Any) -> None:
        """Count a finished trial."""
        name = study.study_name.rpartition("/")[2]
        self._counts[name] = self._counts.get(name, 0) + 1
        is_budgeted = not is_baseline(trial)
        self._n_budgeted += is_budgeted
        score = trial.user_attrs.get("score", math.nan)
        if trial.state.name == "COMPLETE" and not math.isnan(score):
            self._best[name] = max(self._best.get(name, -math.inf), score)
        if self._bar is not None:
            leader = max(self._best, key=lambda name: self._best[name], default=name)
            self._bar.update(
                self._task,
                advance=int(is_budgeted),
                description=f"searching {self._describe(leader)}",
            )

    def _write_lines(self) -> None:
        """Write the status every few seconds, also during a long trial."""
        while not self._is_over.wait(self._seconds):
            if self._notebook_bar is not None:
                self._notebook_bar.show(self._status(), self._n_budgeted, self._total)
            else:
                sys.stderr.write(f"{self._status()}\n")

    def _status(self) -> str:
        """Return the number of trials, the time and the best score."""
        period = f"after {time.perf_counter() - self._start:.0f} s"
        if self.activity:
            return f"{self.activity}, {period}"
        best = dict(self._best)
        n_trials = sum(self._counts.values())
        trials = plural(n_trials, "trial")
        if self._total:
            trials = f"{self._n_budgeted} of {plural(self._total, 'trial')}"
            if n_trees := n_trials - self._n_budgeted:  # compared in addition to the budget
                trials = f"{plural(n_trees, 'tree')} of CART and {trials}"
        leader = max(best, key=lambda name: best[name], default="")
        suffix = f"; {self._describe(leader)}" if leader else ""
        return f"{trials} {period}{suffix}"

    def _describe(self, name: str) -> str:
        """Return the label of an extractor with its best score."""
        label = extractor_label(name)
        if name not in self._best:
            return label
        return f"{label}, best {self._label} {self._sign * self._best[name]:.4g}"
