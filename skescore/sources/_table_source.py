"""Tables of databases as row sources."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from skescore.extractors import Column
from skescore.sources._encoding import EncodedRows
from skescore.sources._reducers import EncodedReducer, Reducer, Result
from skescore.sources._table_queries import TableQueries


class TableSource(TableQueries):
    """A table that a database sums with queries, without handing over its rows."""

    def reduce(self, reducer: Reducer[Result]) -> Result:
        """Return the result of a reducer for all rows."""
        return reducer.reduce_table(self)


class StreamedTableSource(TableSource):
    """A table of a database in this process, which NumPy sums faster than queries.

    The database reads the rows and assigns them to nodes on all processors.
    """

    def __init__(self, *arguments: Any, batch_size: int) -> None:
        super().__init__(*arguments)
        self._batch_size = batch_size

    def reduce(self, reducer: Reducer[Result]) -> Result:
        """Return the result of a reducer for all rows."""
        if isinstance(reducer, EncodedReducer):
            encoded = self._encoded_batches(reducer)
            return reducer.combine((reducer.reduce_rows(rows) for rows in encoded), self.name)
        if reducer.needs_rows:
            batches = self._batches(self.table.source, map(self.identifier, self.reader.columns))
            parts = (reducer.reduce_batch(self.reader, batch) for batch in batches)
            return reducer.combine(parts, self.name)
        return super().reduce(reducer)

    def _batches(self, rows: str, expressions: Iterator[str]) -> Iterator[Any]:
        return self.table.read(f"SELECT {', '.join(expressions)} FROM {rows}", self._batch_size)

    def _encoded_batches(self, reducer: EncodedReducer[Any]) -> Iterator[EncodedRows]:
        """Read the encoded columns in batches."""
        nodes, scale = reducer.nodes, reducer.scale
        columns = reducer.columns if reducer.needs_bins else ()
        expressions = [f"{self._encoded_column(c)} AS b{j}" for j, c in enumerate(columns)]
        by_class = scale.with_labels and scale.classes is not None
        if scale.with_labels:
            label = self.label_number
            if scale.classes is not None:
                label = self._value_code(self.label, scale.classes)
            expressions.append(f"{label} AS label")
        if self.weight is not None:
            expressions.append(f"{self.weight} AS weight")
        expressions += [f"{self.number(m.name)} AS m{j}" for j, m in enumerate(scale.measured)]
        rows = self.weighted_rows
        if nodes is not None:
            node = self.node_case(nodes)
            expressions.append(f"CAST({node} AS SMALLINT) AS node")
            rows += f"{' WHERE' if self.weight is None else ' AND'} ({node}) IS NOT NULL"
        for batch in self._batches(rows, iter(expressions)):
            arrays = {
                name: batch.column(name).to_numpy(zero_copy_only=False)
                for name in batch.schema.names
            }
            label = arrays.get("label", np.zeros(batch.num_rows))
            if by_class and (label < 0).any():
                self.position_of("another label", ())
            yield EncodedRows(
                [arrays[f"b{j}"] for j in range(len(columns))],
                label,
                arrays.get("weight"),
                arrays.get("node"),
                [arrays[f"m{j}"] for j in range(len(scale.measured))],
            )

    def _encoded_column(self, column: Column) -> str:
        if column.values is None:
            return self.number(column.name)
        return self._value_code(self.identifier(column.name), column.values, column.n_bins)

    def _value_code(self, column: str, values: Sequence[Any], missing: int = -1) -> str:
        cases = (f"WHEN {self.style.label(v)} THEN {code}" for code, v in enumerate(values))
        return f"CAST(CASE {column} {' '.join(cases)} ELSE {missing} END AS SMALLINT)"
