"""Queries of a table, and SQL expressions from which reducers compose queries."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import Any

from skescore.extractors import Column
from skescore.rules import Rule, RuleSet
from skescore.rules.exporters._sql import ColumnKindError, SqlParts, sql_parts, translate
from skescore.sources._batch_reader import BatchReader
from skescore.sources._scale import Scale
from skescore.sources._tables import ColumnError, SourceError, SqlTable


class TableQueries:
    """A table of a database, and the SQL expressions of its rows.

    Parameters
    ----------
    table : SqlTable
        Table to query.
    features : sequence of str
        Names of the features.
    target : str
        Column of labels.
    weight : str, optional
        Column of weights.
    """

    def __init__(
        self, table: SqlTable, features: Sequence[str], target: str, weight: str | None
    ) -> None:
        self.name, self.table, self.features = table.name, table, list(features)
        self.dialect = table.dialect
        self.target, self.weight_column = target, weight
        self.reader = BatchReader(table.name, tuple(features), target, weight)
        self._check_types()
        #: SQL of the rows, whose columns have the same meaning in all databases.
        names = (*self.features, self.target, self.weight_column)
        self.rows = table.typed_rows([name for name in names if name is not None])
        self._n_rows: int | None = None
        self._number_columns: set[str] = set()

    def _check_types(self) -> None:
        self.table.check_labels(self.target)
        if self.weight_column is not None:
            weight_type = self.table.types[self.weight_column]
            if weight_type.kind not in ("number", "integer", "any", "null"):
                raise ColumnError(
                    f"The weights {self.weight_column!r} of {self.name} must be numbers, but their "
                    f"type is {weight_type.name}. Convert them in a view."
                )

    # --- queries

    def parts_of(self, nodes: RuleSet) -> SqlParts:
        """Translate rules to SQL expressions."""
        types = {n: self.table.types[n] for n in nodes.feature_names if n in self.table.types}
        kinds = {name: column_type.kind for name, column_type in types.items()}
        used_names = {nodes.feature_names[j] for j in nodes.used_features}
        for name in sorted(used_names):
            if kinds[name] == "other":
                raise ColumnError(
                    f"Column {name!r} of {self.name} must hold numbers, strings or booleans, "
                    f"but its type is {types[name].name}. Convert it in a view, for example by "
                    "CAST to a string or a number."
                )
        try:
            return sql_parts(nodes, dialect=self.dialect, kinds=kinds)
        except ColumnKindError as error:
            raise ColumnError(f"{error.args[0]} {self.name}: {error.args[1]}") from error

    @cached_property
    def parts(self) -> SqlParts:
        """SQL expressions of a rule without conditions."""
        rule = Rule((), 0)
        return self.parts_of(RuleSet([rule], [self.target], task="classification", classes=[0]))

    @property
    def style(self) -> Any:
        """Style of numbers and labels in the dialect of the database."""
        return self.parts.style

    def fetch(self, query: str) -> list[tuple[Any, ...]]:
        """Return all rows of the result of a query."""
        return [tuple(row) for row in self.table.fetch(translate(query, self.style))]

    def subquery(self, expressions: Sequence[str]) -> str:
        """Return a subquery that computes expressions for every row with nonzero weight."""
        return f"(SELECT {', '.join(expressions)} FROM {self.weighted_rows}) AS some_rows"

    @property
    def weighted_rows(self) -> str:
        """SQL of the rows with nonzero weight; rows without a weight are kept for a later check."""
        if self.weight is None:
            return self.rows
        return f"{self.rows} WHERE ({self.weight} IS NULL OR {self.weight} <> 0)"

    def check_numbers(self, columns: Sequence[str | None]) -> None:
        """Raise a ColumnError if numeric columns hold strings; check each column once."""
        names = {name for name in columns if name is not None} - self._number_columns
        for name in sorted(names):
            if self.table.types[name].kind == "text":
                raise ColumnError(
                    f"Column {name!r} of {self.name} must hold numbers, but its type is "
                    f"{self.table.types[name].name}. Convert it in a view, for example by CAST."
                )
        self.table.check_values(numbers=sorted(names))
        self._number_columns |= names

    def check_row_count(self, n_rows: int) -> None:
        """Raise a SourceError if the number of rows differs from that of an earlier query."""
        if self._n_rows is not None and n_rows != self._n_rows:
            raise SourceError(
                f"{self.name} changed while it was counted: it had {self._n_rows} rows at "
                f"first and has {n_rows} now. Count a table that does not change, or a snapshot."
            )
        self._n_rows = n_rows

    def position_of(self, value: Any, values: Sequence[Any]) -> int:
        """Return the index of a value among the values of the survey."""
        try:
            return list(values).index(value)
        except ValueError:
            raise SourceError(
                f"{self.name} changed while it was read: it holds {value!r}, which it did not hold "
                "at first. Read a table that does not change, or a snapshot."
            ) from None

    # --- expressions

    def identifier(self, name: str) -> str:
        """Quote the name of a column."""
        return self.parts.identifier(name)

    def number(self, name: str) -> str:
        """Return the SQL expression of a column as a floating-point number."""
        return f"CAST({self.identifier(name)} AS FLOAT8)"

    @property
    def label(self) -> str:
        """SQL expression of the label of a row."""
        return self.identifier(self.target)

    @property
    def label_number(self) -> str:
        """SQL expression of the label of a row as a floating-point number."""
        return self.number(self.target)

    @cached_property
    def weight(self) -> str | None:
        """SQL expression of the weight of a row; None if all rows have the weight 1."""
        return None if self.weight_column is None else self.number(self.weight_column)

    def node_case(self, nodes: RuleSet | None) -> str:
        """Return a SQL expression of the index of a row's node; NULL for rows without a node.

        Without `nodes`, all rows are in node 0.
        """
        if nodes is None:
            return "0"
        premises = self.parts_of(nodes).premises
        cases = (f"WHEN {premise} THEN {index}" for index, premise in enumerate(premises))
        return f"CASE {' '.join(cases)} END"

    def bin_case(self, column: Column) -> str:
        """Return a SQL expression of the index of a row's bin in a column, or of its category."""
        if column.values is not None:
            return self.identifier(column.name)
        value, bound = self.number(column.name), self.style.bound

        def search(low: int, high: int) -> str:
            if low == high:
                return str(low)
            middle = (low + high) // 2
            return (
                f"CASE WHEN {value} <= {bound(column.cuts[middle])} THEN {search(low, middle)} "
                f"ELSE {search(middle + 1, high)} END"
            )

        if self.dialect == "postgres" and column.cuts:
            # width_bucket counts the thresholds that do not exceed the value.
            thresholds = (repr(math.nextafter(cut, math.inf)) for cut in column.cuts)
            index = f"width_bucket({value}, '{{{','.join(thresholds)}}}'::FLOAT8[])"
        else:
            index = search(0, len(column.cuts))
        return f"CASE WHEN {self.parts.is_number(value)} THEN {index} ELSE {column.n_bins} END"

    def floor(self, value: str) -> str:
        """Round a value down to an integer."""
        # SQLite may lack floor. Its cast truncates, which is the same for positive values.
        floor = value if self.dialect == "sqlite" else f"floor({value})"
        return f"CAST({floor} AS BIGINT)"

    def in_units(self, value: str, unit: float) -> str:
        """Divide a value by a unit, which is a power of two."""
        return f"({value}) * {self.style.number(1 / unit)}"

    def rounded(self, value: str, unit: float) -> str:
        """Round a value to multiples of a unit."""
        return self.floor(f"{self.in_units(value, unit)} + 0.5")

    def difference(self, value: str, center: float) -> str:
        """Subtract a number from a value."""
        sign = "+" if center < 0 else "-"
        return f"({value} {sign} {self.style.number(abs(center))})"

    def deviation(self, scale: Scale) -> str:
        """Return the deviation of the label from the center."""
        return self.difference(self.label_number, scale.center)

    def steps(self, scale: Scale) -> list[str]:
        """Return the measured columns as steps from their centers."""
        return [
            self.in_units(self.difference(self.number(m.name), m.center), m.step)
            for m in scale.measured
        ]
