"""Predicted rows whose labels are pending, in a SQLite file next to the state file."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

#: Number of keys per query; SQLite limits the number of parameters.
_QUERY_KEYS = 500


@dataclass(frozen=True)
class PendingLabels:
    """Rules, predictions, blocks and labels of newly labeled rows, and number of unknown keys."""

    rules: list[int]
    predicted: list[Any]
    blocks: list[int]
    labels: list[Any]
    n_unmatched: int


class PendingRows:
    """Rows whose labels are pending, by key.

    Updates of the state are numbered. If the process is killed before an update is in the state
    file, its changes are undone when the SQLite file is opened again.

    Parameters
    ----------
    path : Path
        Path of the SQLite file.
    n_updates : int
        Number of updates in the state file.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = Path(folder.name) / "pending.sqlite"
    >>> PendingRows(path, 0).add(["a", "b"], [0, 1], ["yes", "no"], [0, 0])
    >>> PendingRows(path, 1).match(["b", "c"], ["yes", "yes"])
    PendingLabels(rules=[1], predicted=['no'], blocks=[0], labels=['yes'], n_unmatched=1)
    >>> folder.cleanup()
    """

    def __init__(self, path: Path, n_updates: int) -> None:
        self.path = path
        self._update = n_updates + 1
        with closing(self._connect()) as connection, connection:
            connection.execute(
                "CREATE TABLE IF NOT EXISTS pending (key TEXT PRIMARY KEY, rule INTEGER, "
                "predicted TEXT, block INTEGER, added INTEGER, labeled INTEGER) WITHOUT ROWID"
            )
            connection.execute("DELETE FROM pending WHERE added > ?", (n_updates,))
            connection.execute("DELETE FROM pending WHERE labeled <= ?", (n_updates,))
            connection.execute("UPDATE pending SET labeled = NULL")

    def _connect(self) -> sqlite3.Connection:
        return sqlite3.connect(self.path)

    def add(
        self, keys: Sequence[str], rules: Iterable[int], predicted: Iterable[Any], blocks: Any
    ) -> None:
        """Add predicted rows.

        Raises
        ------
        ValueError
            If a key occurs twice, or belongs to another row without a label.
        """
        rows = [
            (key, int(rule), json.dumps(value), int(block), self._update)
            for key, rule, value, block in zip(keys, rules, predicted, blocks, strict=True)
        ]
        with closing(self._connect()) as connection, connection:
            n_before = connection.execute("SELECT count(*) FROM pending").fetchone()[0]
            connection.executemany(
                "INSERT OR IGNORE INTO pending (key, rule, predicted, block, added) "
                "VALUES (?, ?, ?, ?, ?)",
                rows,
            )
            n_after = connection.execute("SELECT count(*) FROM pending").fetchone()[0]
            n_repeated = n_before + len(rows) - n_after
            if n_repeated:
                connection.rollback()
                raise ValueError(
                    f"Keys of rows must be unique among all rows without a label, but "
                    f"{n_repeated} of {len(rows)} keys are repeated. Pass another column as --key."
                )

    def match(self, keys: Sequence[str], labels: Sequence[Any]) -> PendingLabels:
        """Return the rows with these keys, and mark them as labeled by this update."""
        by_key = dict(zip(keys, labels, strict=True))
        result = PendingLabels([], [], [], [], 0)
        all_keys = list(by_key)
        with closing(self._connect()) as connection, connection:
            for start in range(0, len(all_keys), _QUERY_KEYS):
                key_batch = all_keys[start : start + _QUERY_KEYS]
                marks = ", ".join("?" * len(key_batch))
                for key, rule, predicted, block in connection.execute(
                    f"SELECT key, rule, predicted, block FROM pending WHERE key IN ({marks})",
                    key_batch,
                ).fetchall():
                    result.rules.append(rule)
                    result.predicted.append(json.loads(predicted))
                    result.blocks.append(block)
                    result.labels.append(by_key[key])
                connection.execute(
                    f"UPDATE pending SET labeled = ? WHERE key IN ({marks})",
                    (self._update, *key_batch),
                )
        n_matched = len(result.rules)
        return PendingLabels(
            result.rules, result.predicted, result.blocks, result.labels, len(all_keys) - n_matched
        )

    @property
    def n_rows(self) -> int:
        """Number of rows whose labels are pending."""
        with closing(self._connect()) as connection:
            query = "SELECT count(*) FROM pending WHERE labeled IS NULL"
            return int(connection.execute(query).fetchone()[0])
