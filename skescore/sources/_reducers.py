"""Row sources, and the reducers that sum their rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from skescore.extractors import Column
from skescore.rules import RuleSet
from skescore.sources._batch_reader import BatchReader
from skescore.sources._encoding import EncodedRows
from skescore.sources._scale import Scale
from skescore.sources._table_queries import TableQueries
from skescore.sources._tables import SourceError

Result = TypeVar("Result")


class RowSource(Protocol):
    """Rows in a database, in files or in batches, which reducers sum in place."""

    name: str
    features: list[str]

    def reduce(self, reducer: Reducer[Result]) -> Result:
        """Return the result of a reducer for all rows."""


class Reducer(ABC, Generic[Result]):
    """A sum over the rows of a source.

    Each reducer defines how a batch of rows is summed, how a database sums a table, and how the
    results of batches are combined.
    """

    #: Whether a database in this process returns its rows instead of summing them.
    needs_rows: ClassVar[bool] = False

    @abstractmethod
    def reduce_batch(self, reader: BatchReader, batch: Any) -> Result | None:
        """Reduce one batch of rows; return None if it has no rows with positive weight."""

    @abstractmethod
    def reduce_table(self, table: TableQueries) -> Result:
        """Reduce a table with SQL queries."""

    def add(self, first: Result, second: Result) -> Result:
        """Add the results of two batches."""
        total: Result = first + second  # type: ignore[operator]
        return total

    def combine(self, parts: Iterable[Result | None], name: str) -> Result:
        """Combine the results of all batches of the source called `name`."""
        total: Result | None = None
        for part in parts:
            if part is not None:
                total = part if total is None else self.add(total, part)
        if total is None:
            raise SourceError(
                f"{name} must hold at least one row with a positive weight, got none."
            )
        return total


@dataclass(frozen=True)
class EncodedReducer(Reducer[Result]):
    """A sum over rows whose columns are encoded as numbers, by node.

    Parameters
    ----------
    nodes : RuleSet or None
        Rules of which at most one covers each row; None is one node with all rows.
    columns : sequence of Column
        Columns with their cuts, including all columns that the nodes use.
    scale : Scale
        Units of the sums.
    """

    nodes: RuleSet | None
    columns: Sequence[Column]
    scale: Scale

    #: Whether the bins of the columns are required, or only the nodes.
    needs_bins: ClassVar[bool] = True

    @property
    def n_nodes(self) -> int:
        """Number of nodes."""
        return 1 if self.nodes is None else len(self.nodes)

    @abstractmethod
    def reduce_rows(self, rows: EncodedRows) -> Result:
        """Reduce encoded rows."""

    def reduce_batch(self, reader: BatchReader, batch: Any) -> Result:
        """Encode a batch of rows and reduce it."""
        return self.reduce_rows(reader.encode(batch, self.columns, self.scale, self.nodes))
