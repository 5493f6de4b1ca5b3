"""How far a search is."""

from __future__ import annotations

import math
import sys
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn


class SearchProgress:
    """Shows how far a search is: a bar on a terminal or in a notebook, elsewhere lines at the end.

    Use it as a context and as a callback of the studies.

    Parameters
    ----------
    total : int or None
        Number of trials; None where they cannot be counted.
    label : str
        Name of the score.
    sign : int, default=1
        -1 if what is maximised is the score's negative.
    shown : bool, default=True
        False shows nothing.
    """

    def __init__(self, total: int | None, label: str, sign: int = 1, *, shown: bool = True) -> None:
        self._label, self._sign = label, sign
        self._best: dict[str, float] = {}
        self._counts: dict[str, int] = {}
        self._bar: Progress | None = None
        self._lines = False
        self._total = total
        self._shown = shown

    def __enter__(self) -> SearchProgress:
        if self._shown:
            console = Console(stderr=True)
            self._lines = not (console.is_terminal or console.is_jupyter)
            if not self._lines:
                self._bar = Progress(
                    TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(),
                    TimeElapsedColumn(), console=console, transient=True,
                )  # fmt: skip
                self._task = self._bar.add_task("searching", total=self._total)
                self._bar.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()
        if self._lines and kind is None:
            for name in self._counts:
                count = self._counts[name]
                trials = "1 trial" if count == 1 else f"{count} trials"
                sys.stderr.write(f"{trials} of {self._told(name)}\n")

    def __call__(self, study: Any, trial: Any) -> None:
        """Count a trial."""
        name = study.study_name.rpartition("/")[2]
        self._counts[name] = self._counts.get(name, 0) + 1
        score = trial.user_attrs.get("score", math.nan)
        if trial.state.name == "COMPLETE" and not math.isnan(score):
            self._best[name] = max(self._best.get(name, -math.inf), score)
        if self._bar is not None:
            leader = max(self._best, key=lambda name: self._best[name], default=name)
            self._bar.update(self._task, advance=1, description=f"searching {self._told(leader)}")

    def _told(self, name: str) -> str:
        if name not in self._best:
            return name
        return f"{name}, best {self._label} {self._sign * self._best[name]:.4g}"
