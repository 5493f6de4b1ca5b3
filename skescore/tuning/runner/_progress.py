"""Progress display of a search."""

from __future__ import annotations

import math
import sys
import threading
import time
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from skescore._text import plural
from skescore.registry import extractor_label


class SearchProgress:
    """Shows how far a search is: a bar on a terminal or in a notebook, elsewhere lines.

    Beside a terminal there is a line every few seconds, and one per extractor at the end.

    Use it as a context and as a callback of the studies.

    Parameters
    ----------
    total : int or None
        Number of trials; None where they cannot be counted.
    label : str
        Name of the score.
    sign : int, default=1
        -1 if what is maximized is the score's negative.
    shown : bool, default=True
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
        shown: bool = True,
        seconds: float = 5.0,
    ) -> None:
        self._label, self._sign = label, sign
        self._best: dict[str, float] = {}
        self._counts: dict[str, int] = {}
        self._bar: Progress | None = None
        self._lines = False
        self._total = total
        self._shown = shown
        self._seconds = seconds
        self._over = threading.Event()
        self._teller: threading.Thread | None = None

    def __enter__(self) -> SearchProgress:
        if self._shown:
            console = Console(stderr=True)
            self._lines = not (console.is_terminal or console.is_jupyter)
            if self._lines:
                self._begin = time.perf_counter()
                self._teller = threading.Thread(target=self._tell, daemon=True)
                self._teller.start()
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
        if self._teller is not None:
            self._over.set()
            self._teller.join()
        if self._lines and kind is None:
            for name in self._counts:
                count = self._counts[name]
                sys.stderr.write(f"{plural(count, 'trial')} of {self._named(name)}\n")

    def __call__(self, study: Any, trial: Any) -> None:
        """Count a trial."""
        name = study.study_name.rpartition("/")[2]
        self._counts[name] = self._counts.get(name, 0) + 1
        score = trial.user_attrs.get("score", math.nan)
        if trial.state.name == "COMPLETE" and not math.isnan(score):
            self._best[name] = max(self._best.get(name, -math.inf), score)
        if self._bar is not None:
            leader = max(self._best, key=lambda name: self._best[name], default=name)
            self._bar.update(self._task, advance=1, description=f"searching {self._named(leader)}")

    def _tell(self) -> None:
        """Write a line from time to time, also while one trial takes long."""
        while not self._over.wait(self._seconds):
            best = dict(self._best)
            done = sum(self._counts.values())
            trials = (
                f"{done} of {plural(self._total, 'trial')}"
                if self._total
                else (plural(done, "trial"))
            )
            leader = max(best, key=lambda name: best[name], default="")
            shown = f"; {self._named(leader)}" if leader else ""
            elapsed = time.perf_counter() - self._begin
            sys.stderr.write(f"{trials} after {elapsed:.0f} s{shown}\n")

    def _named(self, name: str) -> str:
        label = extractor_label(name)
        if name not in self._best:
            return label
        return f"{label}, best {self._label} {self._sign * self._best[name]:.4g}"
