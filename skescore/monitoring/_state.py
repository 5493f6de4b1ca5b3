"""State file of a monitor, written atomically, in which every batch counts once."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from skescore._io import json_of, try_lock, write_atomically
from skescore.monitoring._monitor import RuleMonitor
from skescore.monitoring._pending import PendingRows
from skescore.rules import RuleSet

FORMAT, VERSION = "skescore watch state", 1
#: Maximum number of remembered batch names.
_MAX_BATCHES = 5000


class WatchState:
    """Monitor with a state file.

    Parameters
    ----------
    path : Path
        State file. Rows whose labels are pending are in a SQLite file next to it.
    monitor : RuleMonitor
        The monitor.
    batches : list of str, optional
        Names of the batches so far.
    n_updates : int, default=0
        Number of updates so far.
    n_announced : int, default=0
        Number of alarms for which the user's command has succeeded.

    Examples
    --------
    >>> import tempfile
    >>> from skescore.monitoring import RuleBaseline, RuleMonitor, WatchState
    >>> from skescore.rules import Interval, Rule, RuleSet
    >>> rules = RuleSet([Rule([Interval(0, upper=2)], "low")], ["x"], task="classification")
    >>> baseline = RuleBaseline.from_rows(rules, [[1], [3]], ["low", "high"])
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = Path(folder.name) / "state.json"
    >>> state = WatchState(path, RuleMonitor(rules, baseline))
    >>> state.monitor.update([[1], [2]], batch="Monday")
    []
    >>> state.save("Monday")
    >>> WatchState.load(path, rules).batches
    ['Monday']
    >>> folder.cleanup()
    """

    def __init__(
        self,
        path: Path,
        monitor: RuleMonitor,
        batches: list[str] | None = None,
        n_updates: int = 0,
        n_announced: int = 0,
    ) -> None:
        self.path, self.monitor = path, monitor
        self.batches = list(batches or [])
        self.n_updates, self.n_announced = n_updates, n_announced

    @classmethod
    def load(cls, path: Path, ruleset: RuleSet) -> WatchState:
        """Read a state file.

        Raises
        ------
        FileNotFoundError
            If there is no such file.
        ValueError
            If the file is damaged or belongs to other rules.
        """
        try:
            text = path.read_text(encoding="utf-8")
        except FileNotFoundError:
            raise FileNotFoundError(
                f"There is no state file {path}, and no baseline.json next to the rules. Create a "
                f"state from held-out rows: skescore watch init RULES DATA --state {path}"
            ) from None
        try:
            data = json_of(text)
            if not isinstance(data, dict) or data.get("format") != FORMAT:
                raise ValueError(f"its 'format' must be {FORMAT!r}")
            if data.get("version") != VERSION:
                raise ValueError(f"its version must be {VERSION}, got {data.get('version')!r}")
            monitor = RuleMonitor.from_dict(ruleset, data["monitor"])
            return cls(path, monitor, data["batches"], data["n_updates"], data["n_announced"])
        except (ValueError, KeyError) as error:
            raise ValueError(f"{path} is not a usable state file: {error}") from error

    def to_dict(self) -> dict[str, Any]:
        """Return the state as JSON data."""
        return {
            "format": FORMAT,
            "version": VERSION,
            "n_updates": self.n_updates,
            "n_announced": self.n_announced,
            "batches": self.batches,
            "monitor": self.monitor.to_dict(),
        }

    def write(self) -> None:
        """Write the file atomically."""
        text = json.dumps(self.to_dict(), ensure_ascii=False, allow_nan=False)
        write_atomically(self.path, text + "\n")

    def save(self, batch: str) -> None:
        """Record a batch and write the file; from then on, the batch counts."""
        self.batches = [*self.batches, batch][-_MAX_BATCHES:]
        self.n_updates += 1
        self.write()

    @property
    def pending(self) -> PendingRows:
        """Rows whose labels are pending."""
        return PendingRows(self.path.with_name(self.path.name + ".pending"), self.n_updates)


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock of a state file; raise an OSError if another process holds it."""
    with try_lock(path.with_name(path.name + ".lock")) as has_lock:
        if not has_lock:
            raise OSError(
                f"Another process is updating {path}. Run this command again when it has finished."
            )
        yield
