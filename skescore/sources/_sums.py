"""Reducers that sum weights and labels by bins, by cells and by nodes.

All sums are of integers, so every source gives bit-identical results.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from skescore.extractors import Column, LabelMoments
from skescore.extractors._binned import Equations
from skescore.sources._batch_reader import plain_value
from skescore.sources._encoding import Binner, EncodedRows
from skescore.sources._reducers import EncodedReducer
from skescore.sources._scale import Scale
from skescore.sources._table_queries import TableQueries
from skescore.sources._tables import ColumnError

Floats = NDArray[np.float64]
Sums = NDArray[np.int64]

#: Databases without GROUPING SETS, in which each query groups by one column.
_WITHOUT_GROUPING_SETS = ("sqlite", "mysql")
#: Maximum number of columns and of cuts in one query.
_MAX_COLUMNS, _MAX_CUTS = 20, 5000


class _ListReducer(EncodedReducer[list[Any]]):
    """Reducer whose result is a list of terms that are added element by element."""

    def add(self, first: list[Any], second: list[Any]) -> list[Any]:
        """Add the results of two batches."""
        return [a + b for a, b in zip(first, second, strict=True)]


class BinReducer(_ListReducer):
    """Sums of each bin: per column an array of shape (n_nodes, n_bins + 1, n_sums).

    The last bin is for missing values.
    """

    def _zeros(self) -> list[Sums]:
        n_sums = self.scale.n_sums
        return [np.zeros((self.n_nodes, c.n_bins + 1, n_sums), np.int64) for c in self.columns]

    def reduce_rows(self, rows: EncodedRows) -> list[Sums]:
        """Sum encoded rows by bin."""
        scale, n_nodes = self.scale, self.n_nodes
        by_class = scale.with_labels and scale.classes is not None
        n_groups = scale.n_sums if by_class else 1
        binners = _binners(self.columns)
        totals = self._zeros()
        for piece in rows.pieces():
            group: NDArray[np.intp] = np.zeros(len(piece.label), dtype=np.intp)
            if by_class:
                group += piece.label
            if piece.node is not None:
                group += piece.node.astype(np.intp) * n_groups
            summands = piece.summands(scale)
            offsets: dict[int, NDArray[np.intp]] = {}
            for column, binner, values, total in zip(
                self.columns, binners, piece.columns, totals, strict=True
            ):
                size = column.n_bins + 1
                if size not in offsets:
                    offsets[size] = group * size
                key = offsets[size] + (values if binner is None else binner.bins(values))
                for sum_index, summand in enumerate(summands):
                    sums = np.bincount(key, summand, n_nodes * n_groups * size)
                    sums = sums.astype(np.int64).reshape(n_nodes, n_groups, size)
                    if by_class:
                        total += sums.transpose(0, 2, 1)
                    else:
                        total[:, :, sum_index] += sums[:, 0]
        return totals

    def reduce_table(self, table: TableQueries) -> list[Sums]:
        """Sum a table by bin, with many columns per query."""
        scale, totals = self.scale, self._zeros()
        for positions in self._query_columns(table):
            columns = [self.columns[j] for j in positions]
            for column_index, bin_value, label, node, sums in self._fetch_groups(table, columns):
                j = positions[column_index]
                line = _bin_position(table, bin_value, self.columns[j])
                if scale.with_labels and scale.classes is not None:
                    code = table.position_of(plain_value(label), scale.classes)
                    totals[j][node, line, code] += sums[0]
                else:
                    totals[j][node, line] += np.array(sums, dtype=np.int64)
        return totals

    def _query_columns(self, table: TableQueries) -> Iterator[list[int]]:
        """Yield the indices of the columns of each query."""
        positions: list[int] = []
        n_cuts = 0
        max_columns = 1 if table.dialect in _WITHOUT_GROUPING_SETS else _MAX_COLUMNS
        for j, column in enumerate(self.columns):
            if positions and (
                len(positions) == max_columns or n_cuts + len(column.cuts) > _MAX_CUTS
            ):
                yield positions
                positions, n_cuts = [], 0
            positions.append(j)
            n_cuts += len(column.cuts)
        yield positions

    def _fetch_groups(
        self, table: TableQueries, columns: Sequence[Column]
    ) -> Iterator[tuple[int, Any, Any, int, list[int]]]:
        """Yield the column, the bin, the label, the node and the sums of each group."""
        query = _SumQuery(table, columns, self.scale)
        node = f"{table.node_case(self.nodes)} AS node"
        bins, keys = query.bins, ["node", *query.keys]
        if len(bins) == 1:
            grouping_bits, group_by = [], ", ".join([*keys, *bins])
        else:
            # One bit per column, because not all databases accept several columns in GROUPING.
            bits = (f"GROUPING({name}) * {1 << bit}" for bit, name in enumerate(reversed(bins)))
            grouping_bits = [" + ".join(bits)]
            sets = (f"({', '.join([*keys, name])})" for name in bins)
            group_by = f"GROUPING SETS ({', '.join(sets)})"
        columns_sql = ", ".join([*grouping_bits, *keys, *bins, *query.sums])
        rows = table.fetch(
            f"SELECT {columns_sql} FROM {table.subquery([node, *query.expressions])} "
            f"WHERE node IS NOT NULL GROUP BY {group_by}"
        )
        for row in rows:
            column_index = 0
            if grouping_bits:  # the bit of the column that groups this row is not set
                unset_bits = ~int(row[0]) & ((1 << len(bins)) - 1)
                column_index, row = len(bins) - unset_bits.bit_length(), row[1:]
            label = row[1] if len(keys) == 2 else None
            values = row[len(keys) :]
            sums = [int(value) for value in values[len(bins) :]]
            yield column_index, values[column_index], label, int(row[0]), sums


def _binners(columns: Sequence[Column]) -> list[Binner | None]:
    return [Binner(c.cuts) if c.values is None else None for c in columns]


def _bin_position(table: TableQueries, bin_value: Any, column: Column) -> int:
    """Return the index of a bin from its number, its category, or NULL."""
    if column.values is None:
        return int(bin_value)
    if bin_value is None:
        return column.n_bins
    return table.position_of(plain_value(bin_value), column.values)


class _SumQuery:
    """SQL expressions of a query that sums by bins.

    Attributes
    ----------
    bins : list of str
        Names of the bins.
    expressions : list of str
        Expressions of each row.
    keys : list of str
        Name of the label in classification.
    sums : list of str
        The sums.
    """

    def __init__(self, table: TableQueries, columns: Sequence[Column], scale: Scale) -> None:
        self.bins = [f"b{j}" for j in range(len(columns))]
        self.expressions = [
            f"{table.bin_case(column)} AS {name}"
            for column, name in zip(columns, self.bins, strict=True)
        ]
        self.keys: list[str] = []
        self.sums = ["count(*)"]
        if table.weight is not None:
            whole_units = table.rounded(table.weight, scale.weight_unit or 1.0)
            self.expressions.append(f"{whole_units} AS weight")
            self.sums = ["sum(weight)"]
        if scale.with_labels and scale.classes is not None:
            self.expressions.append(f"{table.label} AS label")
            self.keys.append("label")
        elif scale.with_labels:
            for position, (value, unit) in enumerate(self._regression_terms(table, scale)):
                self.expressions.append(f"{table.rounded(value, unit)} AS y{position}")
                self.sums.append(f"sum(y{position})")

    def _regression_terms(self, table: TableQueries, scale: Scale) -> Iterator[tuple[str, float]]:
        """Yield the summands of a regression with their units, as EncodedRows.summands does."""
        deviation = table.deviation(scale)
        weighted_deviation = deviation if table.weight is None else f"{table.weight} * {deviation}"
        yield weighted_deviation, scale.label_unit
        yield f"({weighted_deviation}) * {deviation}", scale.square_unit
        steps = table.steps(scale)
        weighted_steps = steps
        if table.weight is not None:
            weighted_steps = [f"({table.weight} * ({step}))" for step in steps]
        for step in weighted_steps:
            yield step, scale.product_unit
        for i, step in enumerate(weighted_steps):
            for other_step in steps[i:]:
                yield f"({step}) * ({other_step})", scale.product_unit
        for step in weighted_steps:
            yield f"({step}) * {deviation}", scale.label_unit


@dataclass(frozen=True)
class Cells:
    """Sums of the rows that share the bins of all columns, by the key of the cell."""

    #: Maximum number of cells, above which searches for trees take too long.
    MAX_CELLS: ClassVar[int] = 1 << 18

    keys: NDArray[np.int64]
    sums: Sums

    def __add__(self, other: Cells) -> Cells:
        keys = np.concatenate([self.keys, other.keys])
        return Cells.merged(keys, np.concatenate([self.sums, other.sums]))

    @classmethod
    def merged(cls, keys: NDArray[np.int64], sums: Sums) -> Cells:
        """Merge cells that have the same key."""
        unique_keys, cell = np.unique(keys, return_inverse=True)
        if len(unique_keys) > cls.MAX_CELLS:
            raise ColumnError(cls.too_many("more than"))
        totals = np.zeros((len(unique_keys), sums.shape[1]), dtype=np.int64)
        np.add.at(totals, cell, sums)
        return cls(unique_keys, totals)

    @classmethod
    def too_many(cls, comparison: str) -> str:
        """Return the message for rows in too many cells."""
        return (
            f"The cuts must divide the rows into at most {cls.MAX_CELLS} cells, so that all trees "
            f"over the cuts can be compared, but there are {comparison} that. Pass fewer cuts=..., "
            "name fewer columns in features=..., or fit a sample, see sample_source."
        )

    @staticmethod
    def sizes(columns: Sequence[Column]) -> list[int]:
        """Return the number of bins of each column, including the bin of missing values."""
        return [column.n_bins + 1 for column in columns]

    def bins(self, columns: Sequence[Column]) -> NDArray[np.intp]:
        """Return the bins of each cell, one column per feature."""
        sizes = self.sizes(columns)
        bins = np.empty((len(self.keys), len(sizes)), dtype=np.intp)
        keys = self.keys
        for j in reversed(range(len(sizes))):
            keys, bins[:, j] = np.divmod(keys, sizes[j])
        return bins


class CellReducer(EncodedReducer[Cells]):
    """Sums of the rows that share the bins of all columns."""

    def reduce_rows(self, rows: EncodedRows) -> Cells:
        """Sum encoded rows by cell."""
        scale, binners = self.scale, _binners(self.columns)
        total = Cells(np.zeros(0, np.int64), np.zeros((0, scale.n_sums), np.int64))
        for piece in rows.pieces():
            key = np.zeros(len(piece.label), dtype=np.int64)
            for size, binner, values in zip(
                Cells.sizes(self.columns), binners, piece.columns, strict=True
            ):
                key = key * size + (values if binner is None else binner.bins(values))
            cells, cell = np.unique(key, return_inverse=True)
            summands = piece.summands(scale)
            if scale.classes is None:
                sums = np.column_stack([np.bincount(cell, s, len(cells)) for s in summands])
            else:
                n = len(scale.classes)
                group = cell * n + piece.label
                sums = np.bincount(group, summands[0], len(cells) * n).reshape(-1, n)
            total += Cells(cells, sums.astype(np.int64))
        return total

    def reduce_table(self, table: TableQueries) -> Cells:
        """Sum a table by cell."""
        scale, columns = self.scale, self.columns
        query = _SumQuery(table, columns, scale)
        group_by = ", ".join([*query.bins, *query.keys])
        limit = Cells.MAX_CELLS * (1 if scale.classes is None else len(scale.classes)) + 1
        rows = table.fetch(
            f"SELECT {group_by}, {', '.join(query.sums)} FROM {table.subquery(query.expressions)} "
            f"GROUP BY {group_by} LIMIT {limit}"
        )
        keys = np.zeros(len(rows), np.int64)
        totals = np.zeros((len(rows), scale.n_sums), np.int64)
        for i, row in enumerate(rows):
            key = 0
            for column, size, value in zip(columns, Cells.sizes(columns), row, strict=False):
                key = key * size + _bin_position(table, value, column)
            keys[i] = key
            sums = [int(v) for v in row[len(query.bins) + len(query.keys) :]]
            if scale.classes is None:
                totals[i] = sums
            else:
                label = plain_value(row[len(query.bins)])
                totals[i, table.position_of(label, scale.classes)] = sums[0]
        return Cells.merged(keys, totals)


@dataclass(frozen=True)
class NodeLabels:
    """Exact sums over the rows of a node, which determine its mean and standard deviation.

    `pieces` has three pairs, for weights, weighted deviations from the center and their weighted
    squares. A pair is the sum of integer units and the sum of remainders, in units of 2 ** -bits.
    """

    n_rows: int
    pieces: tuple[tuple[int, int], tuple[int, int], tuple[int, int]]
    low: float
    high: float

    def __add__(self, other: NodeLabels) -> NodeLabels:
        sums = [(a[0] + b[0], a[1] + b[1]) for a, b in zip(self.pieces, other.pieces, strict=True)]
        return NodeLabels(
            self.n_rows + other.n_rows,
            (sums[0], sums[1], sums[2]),
            min(self.low, other.low),
            max(self.high, other.high),
        )

    @classmethod
    def empty(cls) -> NodeLabels:
        """Return the sums of no rows."""
        return cls(0, ((0, 0),) * 3, math.inf, -math.inf)

    def moments(self, scale: Scale) -> LabelMoments:
        """Compute weight, mean and standard deviation."""
        units = (scale.weight_unit or 1.0, scale.label_unit, scale.square_unit)
        weight, first, second = (
            Fraction(unit) * (whole_units + Fraction(remainder, 1 << scale.bits))
            for unit, (whole_units, remainder) in zip(units, self.pieces, strict=True)
        )
        if self.low == self.high:
            # Sources differ in which of -0.0 and 0.0 is smallest.
            return LabelMoments(float(weight), self.low + 0.0, 0.0)
        mean = first / weight
        variance = max(second / weight - mean * mean, Fraction(0))
        return LabelMoments(
            float(weight), float(mean + Fraction(scale.center)), math.sqrt(variance)
        )


class LabelReducer(_ListReducer):
    """Exact sums of the labels of each node."""

    needs_bins = False

    def reduce_rows(self, rows: EncodedRows) -> list[NodeLabels]:
        """Sum the labels of encoded rows."""
        scale, n_nodes = self.scale, self.n_nodes
        result = [NodeLabels.empty() for _ in range(n_nodes)]
        units = (scale.weight_unit or 1.0, scale.label_unit, scale.square_unit)
        for piece in rows.pieces():
            deviation = piece.label - scale.center
            weight = np.ones(len(deviation)) if piece.weight is None else piece.weight
            weighted = weight * deviation
            node = np.zeros(len(deviation), np.intp) if piece.node is None else piece.node
            sums = []
            for values, unit in zip((weight, weighted, weighted * deviation), units, strict=True):
                whole_units = np.floor(values / unit)
                remainder = np.floor((values / unit - whole_units) * (1 << scale.bits))
                sums += [np.bincount(node, part, n_nodes) for part in (whole_units, remainder)]
            n_rows = np.bincount(node, minlength=n_nodes)
            for n in np.flatnonzero(n_rows):
                labels = piece.label[node == n]
                s = [int(part[n]) for part in sums]
                result[n] += NodeLabels(
                    int(n_rows[n]),
                    ((s[0], s[1]), (s[2], s[3]), (s[4], s[5])),
                    float(labels.min()),
                    float(labels.max()),
                )
        return result

    def reduce_table(self, table: TableQueries) -> list[NodeLabels]:
        """Sum the labels of a table."""
        scale = self.scale
        weight = table.weight or table.style.number(1.0)
        weighted = f"{weight} * {table.deviation(scale)}"
        values = (weight, weighted, f"({weighted}) * {table.deviation(scale)}")
        units = (scale.weight_unit or 1.0, scale.label_unit, scale.square_unit)
        expressions = [f"{table.node_case(self.nodes)} AS node", f"{table.label_number} AS y"]
        sums = []
        rest_units = table.style.number(float(1 << scale.bits))
        for position, (value, unit) in enumerate(zip(values, units, strict=True)):
            multiple = table.in_units(value, unit)
            expressions += [
                f"{table.floor(multiple)} AS whole{position}",
                f"{multiple} AS all{position}",
            ]
            remainder = f"(all{position} - whole{position}) * {rest_units}"
            sums += [f"sum(whole{position})", f"sum({table.floor(remainder)})"]
        rows = table.fetch(
            f"SELECT node, count(*), {', '.join(sums)}, min(y), max(y) FROM "
            f"{table.subquery(expressions)} WHERE node IS NOT NULL GROUP BY node"
        )
        result = [NodeLabels.empty() for _ in range(self.n_nodes)]
        for row in rows:
            s = [int(value) for value in row[2:8]]
            pieces = (s[0], s[1]), (s[2], s[3]), (s[4], s[5])
            result[int(row[0])] = NodeLabels(int(row[1]), pieces, float(row[8]), float(row[9]))
        return result


@dataclass(frozen=True)
class ResidualReducer(_ListReducer):
    """Weight of each node, and the absolute residuals of each of its equations."""

    equations: Sequence[Equations] = ()

    needs_bins = False

    def reduce_rows(self, rows: EncodedRows) -> list[Sums]:
        """Sum the residuals of encoded rows."""
        result = [np.zeros(1 + len(of_node), dtype=np.int64) for of_node in self.equations]
        for piece in rows.pieces():
            for n, (of_node, sums) in enumerate(zip(self.equations, result, strict=True)):
                if piece.node is None:
                    sums += self._node_sums(piece, of_node)
                else:
                    sums += self._node_sums(piece.take(np.flatnonzero(piece.node == n)), of_node)
        return result

    def _node_sums(self, rows: EncodedRows, equations: Equations) -> Sums:
        """Return the weight of rows, and the sum of the absolute residuals of each equation."""
        scale = self.scale
        weights, steps = rows.whole_weights(scale), rows.steps(scale)
        sums = [len(rows.label) if weights is None else int(weights.sum())]
        deviation = rows.label - scale.center
        for equation in equations:
            y_pred = np.full(len(deviation), equation[0])
            for coefficient, step in zip(equation[1:], steps, strict=True):
                if coefficient:
                    y_pred += coefficient * step
            residual = np.abs(deviation - y_pred)
            if rows.weight is not None:
                residual *= rows.weight
            sums.append(int(scale.round_to(residual, scale.residual_unit(equation)).sum()))
        return np.array(sums, dtype=np.int64)

    def reduce_table(self, table: TableQueries) -> list[Sums]:
        """Sum the residuals of a table."""
        scale, number = self.scale, table.style.number
        expressions = [f"{table.node_case(self.nodes)} AS node", f"{table.deviation(scale)} AS y"]
        expressions += [f"{table.weight or number(1.0)} AS weight"]
        expressions += [f"{step} AS x{j}" for j, step in enumerate(table.steps(scale))]

        def residual(equation: Floats) -> str:
            prediction = number(equation[0])
            for j, coefficient in enumerate(equation[1:].tolist()):
                if coefficient:
                    prediction = f"({prediction} + {number(coefficient)} * x{j})"
            distance = f"abs(y - ({prediction})) * weight"
            return table.rounded(distance, scale.residual_unit(equation))

        sums = [f"sum({table.rounded('weight', scale.weight_unit or 1.0)})"]
        for position in range(max(map(len, self.equations))):
            cases = " ".join(
                f"WHEN {node} THEN {residual(of_node[position])}"
                for node, of_node in enumerate(self.equations)
                if position < len(of_node)
            )
            sums.append(f"sum(CASE node {cases} ELSE 0 END)")
        rows = table.fetch(
            f"SELECT node, {', '.join(sums)} FROM {table.subquery(expressions)} "
            "WHERE node IS NOT NULL GROUP BY node"
        )
        result = [np.zeros(1 + len(of_node), dtype=np.int64) for of_node in self.equations]
        for row in rows:
            node = int(row[0])
            result[node][:] = [int(value) for value in row[1 : 2 + len(self.equations[node])]]
        return result
