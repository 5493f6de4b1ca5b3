"""Histograms by queries: the database sums, or hands over nothing but the columns to be summed."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, time, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from skescore._validation import python_value
from skescore.extractors._binned import Column
from skescore.rules import Rule, RuleSet
from skescore.rules.exporters._sql import SqlParts, sql_parts, translated
from skescore.sources._histograms import (
    MOST_VALUES,
    Cells,
    Coded,
    LabelSums,
    Scale,
    Seen,
    Sums,
    Survey,
    TableOfRows,
)
from skescore.sources._tables import SourceError, SqlTable

#: Databases that cannot group by several columns, one at a time, in one query.
_WITHOUT_SETS = ("sqlite", "mysql")
#: Columns of a query, and cuts in its text.
_COLUMNS, _CUTS = 20, 5000


class QueryRows:
    """Rows of a table, of which one query for each level is asked; no row is handed over."""

    def __init__(
        self, table: SqlTable, names: Sequence[str], target: str, weight: str | None, task: str
    ) -> None:
        self.name, self._table, self._names, self._task = table.name, table, list(names), task
        everything = self._of(None)
        self._style = everything.style
        self._columns = [*names, target, *([] if weight is None else [weight])]
        self._wanted = TableOfRows(table.name, tuple(names), target, weight)
        self._identifier, self._is_number = everything.identifier, everything.is_number
        self._label = everything.identifier(target)
        self._weight = None
        if weight is not None:
            self._weight = f"CAST({everything.identifier(weight)} AS FLOAT8)"

    def _of(self, nodes: RuleSet | None) -> SqlParts:
        """What queries about nodes are made of."""
        if nodes is None:
            nodes = RuleSet([Rule((), 0)], self._names, task="classification", classes=[0])
        flags = [name for name in self._names if name in self._table.booleans]
        return sql_parts(nodes, dialect=self._table.dialect, columns={}, booleans=flags)

    def _fetch(self, query: str) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in self._table.fetch(translated(query, self._style))]

    @property
    def _where(self) -> str:
        """What weighs nothing is no row; what lacks a weight must be found out."""
        return "" if self._weight is None else (
            f" WHERE ({self._weight} IS NULL OR {self._weight} <> 0)"
        )  # fmt: skip

    def _number(self, name: str) -> str:
        return f"CAST({self._identifier(name)} AS FLOAT8)"

    # --- the survey

    def survey(self) -> Survey:
        """What the rows hold."""
        flags, source = self._table.booleans, f"{self._table.source}{self._where}"
        asked = [name for name in self._names if name not in flags]
        columns = [self._identifier(name) for name in asked]
        ends = [part for column in columns for part in (f"min({column})", f"max({column})")]
        found: Sequence[Any] = ()
        if ends:
            (found,) = self._fetch(f"SELECT {', '.join(ends)} FROM {source}")
        pairs = dict(zip(columns, zip(found[::2], found[1::2], strict=True), strict=True))
        kinds = {}
        for name in self._names:
            kinds[name] = "values"
            if name not in flags:
                kinds[name] = self._kind(name, *pairs[self._identifier(name)])
        expressions = [
            self._number(name) if kinds[name] == "numbers" else None for name in self._names
        ]
        number = self._task == "regression"
        expressions.append(f"CAST({self._label} AS FLOAT8)" if number else None)
        expressions.append(self._weight)
        plain = [*map(self._identifier, self._names), self._label, self._weight or self._label]
        looked = ["count(*)"]
        for expression, column in zip(expressions, plain, strict=True):
            if expression is None:
                looked += [f"count({column})", "NULL", "NULL"]
            else:
                known = f"CASE WHEN {self._is_number(expression)} THEN {expression} END"
                looked += [f"count({known})", f"min({known})", f"max({known})"]
        (row,) = self._fetch(f"SELECT {', '.join(looked)} FROM {source}")
        n_rows = int(row[0])
        seen = []
        for place, column in enumerate(plain):
            known, low, high = row[1 + 3 * place : 4 + 3 * place]
            gone = n_rows - int(known)
            if place == len(plain) - 1 and self._weight is None:
                seen.append(Seen())
            elif expressions[place] is None:
                seen.append(self._seen_values(column, source, gone))
            else:
                low, high = (math.inf, -math.inf) if low is None else (float(low), float(high))
                seen.append(Seen(low, high, n_missing=gone))
        return Survey(n_rows, tuple(seen[:-2]), seen[-2], seen[-1])

    def _kind(self, name: str, low: Any, high: Any) -> str:
        kinds = {
            "values" if isinstance(value, str | bool) else "numbers"
            for value in (low, high)
            if value is not None
        }
        strange = [v for v in (low, high) if isinstance(v, date | time | timedelta | bytes)]
        if len(kinds) > 1 or strange:
            raise ValueError(
                f"Column {name!r} of {self.name} must hold numbers or categories, but it holds "
                f"{low!r} and {high!r}. Convert it in a view, or leave it out of features=..."
            )
        return kinds.pop() if kinds else "numbers"

    def _seen_values(self, column: str, source: str, gone: int) -> Seen:
        found = self._fetch(f"SELECT DISTINCT {column} FROM {source} LIMIT {MOST_VALUES + 2}")
        values = [_plain(row[0]) for row in found if row[0] is not None]
        if any(isinstance(value, float) and math.isnan(value) for value in values):
            gone, values = gone + 1, [v for v in values if v == v]
        return Seen(values=frozenset(values), n_missing=gone)

    # --- sums

    def _node(self, nodes: RuleSet | None) -> str:
        """The number of the node of a row, NULL of others."""
        if nodes is None:
            return "0"
        premises = self._of(nodes).premises
        cases = (f"WHEN {premise} THEN {place}" for place, premise in enumerate(premises))
        return f"CASE {' '.join(cases)} END"

    def _bin(self, column: Column) -> str:
        """The number of the bin of a row, or its category."""
        if column.values is not None:
            return self._identifier(column.name)
        value, bound = self._number(column.name), self._style.bound

        def search(low: int, high: int) -> str:
            if low == high:
                return str(low)
            middle = (low + high) // 2
            return (
                f"CASE WHEN {value} <= {bound(column.cuts[middle])} THEN {search(low, middle)} "
                f"ELSE {search(middle + 1, high)} END"
            )

        if self._table.dialect == "postgres" and column.cuts:
            # Counts the numbers of the list that are at most the value.
            above = (repr(math.nextafter(cut, math.inf)) for cut in column.cuts)
            found = f"width_bucket({value}, '{{{','.join(above)}}}'::FLOAT8[])"
        else:
            found = search(0, len(column.cuts))
        return f"CASE WHEN {self._is_number(value)} THEN {found} ELSE {column.n_bins} END"

    def _floor(self, value: str) -> str:
        # Nothing here is negative; SQLite may lack the function, and cuts off as it does.
        floor = value if self._table.dialect == "sqlite" else f"floor({value})"
        return f"CAST({floor} AS BIGINT)"

    def _scaled(self, value: str, unit: float) -> str:
        """A value in units, which are powers of two."""
        return f"({value}) * {self._style.number(1 / unit)}"

    def _deviation(self, scale: Scale) -> str:
        text = f"CAST({self._label} AS FLOAT8) - {self._style.number(scale.centre)}"
        if scale.centre < 0:
            text = f"CAST({self._label} AS FLOAT8) + {self._style.number(-scale.centre)}"
        return f"({text})"

    def sums(self, nodes: RuleSet | None, columns: Sequence[Column], scale: Scale) -> list[Sums]:
        """Sums of each node's rows."""
        n_nodes = 1 if nodes is None else len(nodes)
        totals = [np.zeros((n_nodes, c.n_bins + 1, scale.n_sums), np.int64) for c in columns]
        node = self._node(nodes)
        for places in self._parts(columns):
            some = [columns[j] for j in places]
            for place, found, label, at, weights in self._grouped(node, some, scale):
                j = places[place]
                column = columns[j]
                line = column.n_bins
                if column.values is None:
                    line = int(found)
                elif found is not None:
                    line = self._place(_plain(found), column.values)
                if scale.of_labels and scale.classes is not None:
                    totals[j][at, line, self._place(_plain(label), scale.classes)] += weights[0]
                else:
                    totals[j][at, line] += np.array(weights, dtype=np.int64)
        return totals

    def _place(self, value: Any, values: Sequence[Any]) -> int:
        try:
            return list(values).index(value)
        except ValueError:
            raise SourceError(
                f"{self.name} changed while it was read: it holds {value!r}, which it did not hold "
                "at first. Read a table at rest, or a snapshot."
            ) from None

    def _parts(self, columns: Sequence[Column]) -> Iterator[list[int]]:
        """Columns that one query is about."""
        part: list[int] = []
        n_cuts = 0
        most = 1 if self._table.dialect in _WITHOUT_SETS else _COLUMNS
        for j, column in enumerate(columns):
            if part and (len(part) == most or n_cuts + len(column.cuts) > _CUTS):
                yield part
                part, n_cuts = [], 0
            part.append(j)
            n_cuts += len(column.cuts)
        yield part

    def _asked(
        self, columns: Sequence[Column], scale: Scale
    ) -> tuple[list[str], list[str], list[str], list[str]]:
        """Names of bins, what a query has to compute of a row, the label's key, and the sums."""
        bins = [f"b{j}" for j in range(len(columns))]
        inner = [f"{self._bin(c)} AS {name}" for c, name in zip(columns, bins, strict=True)]
        keys: list[str] = []
        sums = ["count(*)"]
        if self._weight is not None:
            whole = f"{self._scaled(self._weight, scale.weight_unit or 1.0)} + 0.5"
            inner.append(f"{self._floor(whole)} AS weight")
            sums = ["sum(weight)"]
        if scale.of_labels and scale.classes is not None:
            inner.append(f"{self._label} AS label")
            keys.append("label")
        elif scale.of_labels:
            first = self._deviation(scale)
            if self._weight is not None:
                first = f"{self._weight} * {first}"
            square = f"({first}) * {self._deviation(scale)}"
            for name, value, unit in (
                ("y", first, scale.label_unit), ("square", square, scale.square_unit)
            ):  # fmt: skip
                inner.append(f"{self._floor(f'{self._scaled(value, unit)} + 0.5')} AS {name}")
                sums.append(f"sum({name})")
        return bins, inner, keys, sums

    def cells(self, columns: Sequence[Column], scale: Scale) -> Cells:
        """The sums of the rows that lie in the same bins."""
        bins, inner, keys, sums = self._asked(columns, scale)
        grouped = ", ".join([*bins, *keys])
        most = Cells.MOST * (1 if scale.classes is None else len(scale.classes)) + 1
        found = self._fetch(
            f"SELECT {grouped}, {', '.join(sums)} FROM (SELECT {', '.join(inner)} FROM "
            f"{self._table.source}{self._where}) AS some_rows GROUP BY {grouped} LIMIT {most}"
        )
        cells, totals = (
            np.zeros(len(found), np.int64),
            np.zeros((len(found), scale.n_sums), np.int64),
        )
        for place, row in enumerate(found):
            key = 0
            for column, size, value in zip(columns, Cells.sizes(columns), row, strict=False):
                line = column.n_bins
                if column.values is None:
                    line = int(value)
                elif value is not None:
                    line = self._place(_plain(value), column.values)
                key = key * size + line
            cells[place] = key
            numbers = [int(v) for v in row[len(bins) + len(keys) :]]
            if scale.classes is None:
                totals[place] = numbers
            else:
                totals[place, self._place(_plain(row[len(bins)]), scale.classes)] = numbers[0]
        return Cells.of(cells, totals)

    def _grouped(
        self, node: str, columns: Sequence[Column], scale: Scale
    ) -> Iterator[tuple[int, Any, Any, int, list[int]]]:
        """Which column, its bin, the label, the node, and the sums."""
        bins, inner, keys, sums = self._asked(columns, scale)
        inner, keys = [f"{node} AS node", *inner], ["node", *keys]
        if len(bins) == 1:
            which, grouped = [], ", ".join([*keys, *bins])
        else:
            # One bit for each column; not all databases put several into one function.
            bits = (f"GROUPING({name}) * {1 << bit}" for bit, name in enumerate(reversed(bins)))
            which = [" + ".join(bits)]
            sets = (f"({', '.join([*keys, name])})" for name in bins)
            grouped = f"GROUPING SETS ({', '.join(sets)})"
        found = self._fetch(
            f"SELECT {', '.join([*which, *keys, *bins, *sums])} FROM (SELECT {', '.join(inner)} "
            f"FROM {self._table.source}{self._where}) AS some_rows WHERE node IS NOT NULL "
            f"GROUP BY {grouped}"
        )
        for row in found:
            place = 0
            if which:  # the bit of the column that it is grouped by is not set
                there = ~int(row[0]) & ((1 << len(bins)) - 1)
                place, row = len(bins) - there.bit_length(), row[1:]
            label = row[1] if len(keys) == 2 else None
            rest = row[len(keys) :]
            yield place, rest[place], label, int(row[0]), [int(v) for v in rest[len(bins) :]]

    def labels(self, nodes: RuleSet, columns: Sequence[Column], scale: Scale) -> list[LabelSums]:
        """Labels of each node's rows."""
        weight = self._weight or self._style.number(1.0)
        first = f"{weight} * {self._deviation(scale)}"
        values = (weight, first, f"({first}) * {self._deviation(scale)}")
        units = (scale.weight_unit or 1.0, scale.label_unit, scale.square_unit)
        inner = [f"{self._node(nodes)} AS node", f"CAST({self._label} AS FLOAT8) AS y"]
        sums = []
        whole = self._style.number(float(1 << scale.bits))
        for place, (value, unit) in enumerate(zip(values, units, strict=True)):
            scaled = self._scaled(value, unit)
            inner += [f"{self._floor(scaled)} AS whole{place}", f"{scaled} AS all{place}"]
            rest = f"(all{place} - whole{place}) * {whole}"
            sums += [f"sum(whole{place})", f"sum({self._floor(rest)})"]
        found = self._fetch(
            f"SELECT node, count(*), {', '.join(sums)}, min(y), max(y) FROM (SELECT "
            f"{', '.join(inner)} FROM {self._table.source}{self._where}) AS some_rows "
            "WHERE node IS NOT NULL GROUP BY node"
        )
        result = [LabelSums(0, ((0, 0),) * 3, math.inf, -math.inf) for _ in nodes]
        for row in found:
            s = [int(value) for value in row[2:8]]
            pieces = (s[0], s[1]), (s[2], s[3]), (s[4], s[5])
            result[int(row[0])] = LabelSums(int(row[1]), pieces, float(row[8]), float(row[9]))
        return result

    # --- a sample

    def counts(self) -> dict[Any, int]:
        """How many rows each class has."""
        source = f"{self._table.source}{self._where}"
        if self._task == "regression":
            ((n_rows, known),) = self._fetch(f"SELECT count(*), count({self._label}) FROM {source}")
            found = {None: int(n_rows)}
            gone = int(n_rows) - int(known)
        else:
            rows = self._fetch(
                f"SELECT {self._label}, count(*) FROM {source} GROUP BY {self._label} "
                f"LIMIT {MOST_VALUES + 2}"
            )
            found = {_plain(label): int(n) for label, n in rows}
            gone = found.get(None, 0)
        if gone:
            raise SourceError(
                f"The target of {self.name} must hold a label in every row, but {gone} rows have "
                "none. Drop such rows first, as in a view."
            )
        return found

    def draw(self, chances: Mapping[Any, float], seed: int) -> pd.DataFrame:
        """Rows of each class, each with a chance."""
        dialect = self._table.dialect
        if dialect == "postgres":
            self._table.fetch(f"SELECT setseed({(seed % 2**20) / 2**20})")
        number = "random()"
        if dialect == "sqlite":
            number = "((random() & 1048575) / 1048576.0)"
        elif dialect == "spark":
            number = f"rand({seed})"
        elif dialect == "tsql":
            raise ValueError(
                f"A sample of {self.name} cannot be drawn, as this database gives all rows the "
                "same random number. Export some rows to Parquet."
            )
        if None in chances:
            chance = self._style.number(chances[None])
        else:
            cases = (
                f"WHEN {self._style.label(label)} THEN {self._style.number(p)}"
                for label, p in chances.items()
            )
            chance = f"CASE {self._label} {' '.join(cases)} END"
        joined = " AND" if self._where else " WHERE"
        columns = ", ".join(map(self._identifier, self._columns))
        found = self._fetch(
            f"SELECT {columns} FROM {self._table.source}{self._where}{joined} {number} < {chance}"
        )
        rows = [tuple(map(_plain, row)) for row in found]
        return pd.DataFrame(rows, columns=self._columns)


class StreamedRows(QueryRows):
    """Rows of a database within this process, whose columns are quicker summed by NumPy.

    It reads, and finds the rows of nodes, by all processors.
    """

    def __init__(self, *arguments: Any, batch_size: int) -> None:
        super().__init__(*arguments)
        self._batch_size = batch_size

    def _coded(
        self, nodes: RuleSet | None, columns: Sequence[Column], scale: Scale
    ) -> Iterator[Coded]:
        node = self._node(nodes)
        parts = [f"{self._code(c)} AS b{j}" for j, c in enumerate(columns)]
        if scale.of_labels and scale.classes is not None:
            parts.append(f"{self._coded_value(self._label, scale.classes)} AS label")
        elif scale.of_labels:
            parts.append(f"CAST({self._label} AS FLOAT8) AS label")
        if self._weight is not None:
            parts.append(f"{self._weight} AS weight")
        where = self._where
        if nodes is not None:
            parts.append(f"CAST({node} AS SMALLINT) AS node")
            where += f"{' AND' if where else ' WHERE'} ({node}) IS NOT NULL"
        query = f"SELECT {', '.join(parts)} FROM {self._table.source}{where}"
        for batch in self._table.read(query, self._batch_size):
            found = {name: _array(batch.column(name)) for name in batch.schema.names}
            label = found.get("label", np.zeros(batch.num_rows))
            if scale.classes is not None and scale.of_labels and (label < 0).any():
                self._place("another label", ())
            yield Coded(
                [found[f"b{j}"] for j in range(len(columns))], label, found.get("weight"),
                found.get("node"),
            )  # fmt: skip

    def _code(self, column: Column) -> str:
        if column.values is None:
            return self._number(column.name)
        return self._coded_value(self._identifier(column.name), column.values, column.n_bins)

    def _coded_value(self, column: str, values: Sequence[Any], missing: int = -1) -> str:
        cases = (f"WHEN {self._style.label(v)} THEN {place}" for place, v in enumerate(values))
        return f"CAST(CASE {column} {' '.join(cases)} ELSE {missing} END AS SMALLINT)"

    def sums(self, nodes: RuleSet | None, columns: Sequence[Column], scale: Scale) -> list[Sums]:
        """Sums of each node's rows."""
        n_nodes = 1 if nodes is None else len(nodes)
        totals = [np.zeros((n_nodes, c.n_bins + 1, scale.n_sums), np.int64) for c in columns]
        for coded in self._coded(nodes, columns, scale):
            for total, found in zip(totals, coded.sums(n_nodes, columns, scale), strict=True):
                total += found
        return totals

    def cells(self, columns: Sequence[Column], scale: Scale) -> Cells:
        """The sums of the rows that lie in the same bins."""
        parts = (coded.cells(columns, scale) for coded in self._coded(None, columns, scale))
        return functools.reduce(operator.add, parts)

    def labels(self, nodes: RuleSet, columns: Sequence[Column], scale: Scale) -> list[LabelSums]:
        """Labels of each node's rows."""
        result = [LabelSums(0, ((0, 0),) * 3, math.inf, -math.inf) for _ in nodes]
        for coded in self._coded(nodes, [], scale):
            found = coded.label_sums(len(nodes), scale)
            result = [a + b for a, b in zip(result, found, strict=True)]
        return result

    def draw(self, chances: Mapping[Any, float], seed: int) -> pd.DataFrame:
        """Rows of each class, each with a chance."""
        columns = ", ".join(map(self._identifier, self._columns))
        query = f"SELECT {columns} FROM {self._table.source}"
        batches = self._table.read(query, self._batch_size)
        found = [self._wanted.drawn(batch, chances, seed) for batch in batches]
        return pd.concat(found, ignore_index=True)


def _array(column: Any) -> NDArray[Any]:
    found: NDArray[Any] = column.to_numpy(zero_copy_only=False)
    return found


def _plain(value: Any) -> Any:
    if isinstance(value, Decimal):
        return int(value) if value == int(value) else float(value)
    return python_value(value)
