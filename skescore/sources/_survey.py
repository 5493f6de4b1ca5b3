"""Surveys of row sources: the range or the values of every column."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, time, timedelta
from typing import Any

from skescore.extractors import Column
from skescore.sources._batch_reader import MAX_VALUES, BatchReader, ColumnSummary, plain_value
from skescore.sources._reducers import Reducer
from skescore.sources._table_queries import TableQueries
from skescore.sources._tables import SourceError


@dataclass(frozen=True)
class Survey:
    """Summaries of all columns of the rows of nonzero weight."""

    n_rows: int
    columns: tuple[ColumnSummary, ...]
    label: ColumnSummary
    weight: ColumnSummary

    def __add__(self, other: Survey) -> Survey:
        pairs = zip(self.columns, other.columns, strict=True)
        return Survey(
            self.n_rows + other.n_rows,
            tuple(a + b for a, b in pairs),
            self.label + other.label,
            self.weight + other.weight,
        )

    def check(self, names: Sequence[str], label: str, task: str, source: str) -> None:
        """Raise an error if no rules can be learned from the columns.

        Parameters
        ----------
        names : sequence of str
            The features.
        label : str
            The subject of messages about the labels.
        task : {"classification", "regression"}
            The kind of labels.
        source : str
            The name of the source.

        Raises
        ------
        SourceError
            If there are no rows, or labels or weights are missing or invalid.
        ValueError
            If a column cannot be a feature.
        """
        if not self.n_rows:
            raise SourceError(
                f"{source} must hold at least one row that weighs more than nothing, got none."
            )
        if self.label.n_missing:
            raise SourceError(
                f"{label} of {source} must hold a label in every row, but {self.label.n_missing} "
                "rows have none. Drop such rows first, as in a view."
            )
        weight = self.weight
        if weight.n_missing or weight.low < 0 or weight.high == math.inf:
            problem = f"go from {weight.low!r} to {weight.high!r}"
            if weight.n_missing:
                problem = f"lack in {weight.n_missing} rows"
            raise SourceError(
                f"The weights of {source} must be finite and zero or more, but they {problem}. "
                "Drop such rows first, or weigh them 0."
            )
        for name, column in zip(names, self.columns, strict=True):
            self._check_feature(name, column, source)
        self._check_labels(label, task, source)

    def _check_feature(self, name: str, column: ColumnSummary, source: str) -> None:
        has_numbers = column.low <= column.high
        if column.is_numeric and has_numbers and max(-column.low, column.high) == math.inf:
            raise ValueError(
                f"Column {name!r} of {source} must hold finite numbers, but they go from "
                f"{column.low!r} to {column.high!r}. Replace infinite ones by NULL or a bound."
            )
        if not column.is_numeric and has_numbers:
            raise ValueError(
                f"Column {name!r} of {source} must hold numbers or categories, but it holds "
                "both. Make it text, or leave it out of features=..."
            )
        _check_n_values(column, f"Column {name!r} of {source}", "Leave it out of features=...")

    def _check_labels(self, label: str, task: str, source: str) -> None:
        invalid = [v for v in self.label.values if not isinstance(v, str | bool | int | float)]
        if invalid:
            raise SourceError(
                f"{label} of {source} must hold texts, numbers, or true and false, but it holds "
                f"{min(invalid, key=repr)!r}. Make it text, or a number, in a view."
            )
        if task == "classification":
            _check_n_values(
                self.label,
                f"{label} of {source}",
                "Pass task='regression' if they are numbers to be predicted.",
            )
        elif not (math.isfinite(self.label.low) and math.isfinite(self.label.high)):
            raise SourceError(
                f"{label} of {source} must hold finite numbers for a regression, got labels from "
                f"{self.label.low!r} to {self.label.high!r}. Drop such rows."
            )

    def describe(self, names: Sequence[str]) -> list[Column]:
        """Return the columns, without cuts."""
        return [
            Column(name, *((column.low, column.high) if column.low <= column.high else (0.0, 0.0)))
            if column.is_numeric
            else Column(name, values=tuple(sorted(column.values)))
            for name, column in zip(names, self.columns, strict=True)
        ]


def _check_n_values(column: ColumnSummary, subject: str, remedy: str) -> None:
    if len(column.values) > MAX_VALUES:
        raise ValueError(
            f"{subject} must hold at most {MAX_VALUES} different values, but it holds more. "
            f"{remedy}"
        )


@dataclass(frozen=True)
class SurveyReducer(Reducer[Survey]):
    """Summaries of all columns.

    Parameters
    ----------
    task : {"classification", "regression"}
        Whether labels are summarized as values or as numbers.
    """

    task: str

    def combine(self, parts: Iterable[Survey | None], name: str) -> Survey:
        """Add the surveys of all batches."""
        surveys = [part for part in parts if part is not None]
        if not surveys:
            return Survey(0, (), ColumnSummary(), ColumnSummary())
        return super().combine(surveys, name)

    def reduce_batch(self, reader: BatchReader, batch: Any) -> Survey:
        """Summarize the columns of a batch."""
        n_rows, (*columns, label, weight) = reader.summarize(batch, self.task)
        return Survey(n_rows, tuple(columns), label, weight)

    def reduce_table(self, table: TableQueries) -> Survey:
        """Summarize the columns of a table."""
        is_regression = self.task == "regression"
        table.check_numbers([table.target if is_regression else None, table.weight_column])
        numeric = self._numeric_features(table)
        columns = [(table.identifier(name), name in numeric) for name in table.features]
        columns.append((table.label, is_regression))
        if table.weight_column is not None:
            columns.append((table.identifier(table.weight_column), True))
        aggregates = ["count(*)"]
        for column, is_numeric in columns:
            if is_numeric:
                number = f"CAST({column} AS FLOAT8)"
                observed = f"CASE WHEN {table.parts.is_number(number)} THEN {number} END"
                aggregates += [f"count({observed})", f"min({observed})", f"max({observed})"]
            else:
                aggregates += [f"count({column})", "NULL", "NULL"]
        (row,) = table.fetch(f"SELECT {', '.join(aggregates)} FROM {table.weighted_rows}")
        n_rows = int(row[0])
        summaries = []
        for j, (column, is_numeric) in enumerate(columns):
            n_observed, low, high = row[1 + 3 * j : 4 + 3 * j]
            n_missing = n_rows - int(n_observed)
            if not is_numeric:
                summaries.append(_summarize_values(table, column, n_missing))
            elif low is None:
                summaries.append(ColumnSummary(n_missing=n_missing))
            else:
                summaries.append(ColumnSummary(float(low), float(high), n_missing=n_missing))
        if table.weight_column is None:
            summaries.append(ColumnSummary())
        return Survey(n_rows, tuple(summaries[:-2]), summaries[-2], summaries[-1])

    def _numeric_features(self, table: TableQueries) -> set[str]:
        """Return the features that hold numbers, judged by their smallest and largest value."""
        names = [name for name in table.features if name not in table.table.booleans]
        if not names:
            return set()
        ends = [f"{end}({table.identifier(name)})" for name in names for end in ("min", "max")]
        (row,) = table.fetch(f"SELECT {', '.join(ends)} FROM {table.weighted_rows}")
        pairs = zip(row[::2], row[1::2], strict=True)
        return {
            name
            for name, (low, high) in zip(names, pairs, strict=True)
            if _is_numeric(table.name, name, low, high)
        }


def _is_numeric(source: str, name: str, low: Any, high: Any) -> bool:
    ends = [value for value in (low, high) if value is not None]
    kinds = {not isinstance(value, str | bool) for value in ends}
    if len(kinds) > 1 or any(isinstance(v, date | time | timedelta | bytes) for v in ends):
        raise ValueError(
            f"Column {name!r} of {source} must hold numbers or categories, but it holds "
            f"{low!r} and {high!r}. Convert it in a view, or leave it out of features=..."
        )
    return kinds != {False}


def _summarize_values(table: TableQueries, column: str, n_missing: int) -> ColumnSummary:
    rows = table.fetch(
        f"SELECT DISTINCT {column} FROM {table.weighted_rows} LIMIT {MAX_VALUES + 2}"
    )
    values = [plain_value(row[0]) for row in rows if row[0] is not None]
    if any(isinstance(value, float) and math.isnan(value) for value in values):
        n_missing, values = n_missing + 1, [v for v in values if v == v]
    return ColumnSummary(values=frozenset(values), n_missing=n_missing)
