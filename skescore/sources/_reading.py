"""How rows that lie elsewhere are reached: by queries, or batch by batch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from skescore._text import did_you_mean, listed
from skescore.sources._batches import each_batch
from skescore.sources._histograms import BatchRows, QueryRows, Rows, StreamedRows, TableOfRows
from skescore.sources._scoring import table_of
from skescore.sources._tables import SourceError, is_spark, is_url


@dataclass(frozen=True)
class SourceReading:
    """How a source is reached."""

    source: Any
    target: str | None
    weight: str | None
    black_box: Any
    batch_size: int
    memory: str | None
    n_jobs: int | None = None

    @contextmanager
    def opened(self, features: Any) -> Iterator[tuple[Callable[[str], Rows], list[str]]]:
        """What gives rows for a task, and the features: all other columns, or those named."""
        names = _feature_names(features)
        if isinstance(self.source, Iterator):
            raise SourceError(
                "The batches must be gone through several times, but they are an iterator. Pass a "
                "function that gives a new one."
            )
        others = {self.target, self.weight}
        if self.target is not None and (opened := table_of(self.source, self.memory)) is not None:
            with opened as table:
                self._check(table.columns, names, table.name)
                names = names or [name for name in table.columns if name not in others]
                arguments = (table, names, self.target, self.weight)

                def queries(task: str) -> Rows:
                    if table.stream is None:
                        return QueryRows(*arguments, task)
                    return StreamedRows(*arguments, task, batch_size=self.batch_size)

                yield queries, names
            return
        if is_url(self.source) or is_spark(self.source):
            raise ValueError(
                "The black box predicts batches of rows, but a database hands over none. Store its "
                "predictions in a column and pass target=..., or export the table to Parquet."
            )
        name = (
            str(self.source)
            if isinstance(self.source, str | Path)
            else f"the {type(self.source).__name__}"
        )
        probe = TableOfRows(name, (), None, None)
        columns = _columns(self.source, probe, self.batch_size)
        self._check(columns, names, name)
        names = names or [column for column in columns if column not in others]
        wanted = TableOfRows(name, tuple(names), self.target, self.weight, self.black_box)
        each = each_batch(self.source, wanted, self.batch_size, self.n_jobs)
        yield lambda task: BatchRows(wanted, each, task), names

    def _check(self, columns: Sequence[str], names: list[str] | None, name: str) -> None:
        wanted = [("the target", self.target), ("the weights", self.weight)]
        wanted += [("the feature", feature) for feature in names or ()]
        for what, column in wanted:
            if column is not None and column not in columns:
                raise ValueError(
                    f"{name} must have a column for {what} {column!r}, but its columns are "
                    f"{listed(columns)}. {did_you_mean(column, columns)}"
                )
        if not names and set(columns) <= {self.target, self.weight}:
            raise ValueError(f"{name} must have a column for a feature, got {listed(columns)}.")


def _columns(source: Any, probe: TableOfRows, batch_size: int) -> list[str]:
    """The columns of a source that is read batch by batch."""
    if hasattr(source, "collect_schema"):
        return list(source.collect_schema().names())
    if hasattr(source, "schema") or hasattr(source, "columns"):
        return _names(source)
    return next(iter(each_batch(source, probe, batch_size)(_names)), [])


def _names(rows: Any) -> list[str]:
    found = getattr(getattr(rows, "schema", None), "names", None)  # of Arrow; polars has a method
    return list(map(str, getattr(rows, "columns", ()) if not isinstance(found, list) else found))


def _feature_names(features: Any) -> list[str] | None:
    if features is None:
        return None
    names = [features] if isinstance(features, str) else list(features)
    if not names or not all(isinstance(name, str) for name in names):
        raise ValueError(
            f"features must name columns of the source, at least one, got {features!r}."
        )
    return names
