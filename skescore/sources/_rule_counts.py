"""Counts of the rows of rules, by batches or by queries.

A database groups the rows by the rules that cover them, with one bit per rule, and by label. There
are few such groups, and all counts follow from them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skescore.metrics import RuleCounts
from skescore.metrics._rule_counts import BORDER, Groups, positive_range
from skescore.rules import Fallback, RuleSet
from skescore.rules.exporters._sql import translate
from skescore.sources._batch_reader import BatchReader
from skescore.sources._reducers import Reducer, RowSource
from skescore.sources._table_queries import TableQueries
from skescore.sources._tables import SourceError

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]

#: Number of rules whose bits fit in one BIGINT, without its sign.
_BITS = 62
#: Maximum number of rules in a query in which each rule needs several columns of the result.
_QUERY_RULES = 50
#: Magnitude below which squares raise an error in PostgreSQL.
_MIN_SQUARED = 1e-161


class SourcePasses:
    """Passes over a source for :func:`skescore.metrics._rule_counts.complete`."""

    def __init__(self, ruleset: RuleSet, source: RowSource) -> None:
        self._ruleset, self._source = ruleset, source

    def center(self) -> float:
        """Return a number near the expected labels, before any row is read."""
        if self._ruleset.fallback is not None:
            return float(self._ruleset.fallback.output)
        outputs = self._ruleset.conclusions.outputs
        finite = outputs[np.isfinite(outputs)]
        return float(finite.mean()) if len(finite) else 0.0

    def _reduce(self, method: str, *arguments: Any) -> Any:
        return self._source.reduce(RuleReducer(self._ruleset, method, arguments))

    def first(self, default: float, center: float) -> RuleCounts:
        """Count rows, or sum their labels around a center."""
        counts: RuleCounts = self._reduce("first", default, center)
        return counts

    def deviations(self, means: Floats) -> Floats:
        """Sum deviations and squared deviations from the means of rules."""
        return np.asarray(self._reduce("deviations", means))

    def within(self, stds: Floats) -> Floats:
        """Count rows by whether labels are near the predictions of rules."""
        return np.asarray(self._reduce("within", stds))


@dataclass(frozen=True)
class RuleReducer(Reducer[Any]):
    """Sums over the rows of rules.

    Parameters
    ----------
    ruleset : RuleSet
        The rules.
    method : {"first", "deviations", "within"}
        The sums, as methods of :class:`SourcePasses`.
    arguments : tuple
        Arguments of the method.
    """

    ruleset: RuleSet
    method: str
    arguments: tuple[Any, ...]

    def reduce_batch(self, reader: BatchReader, batch: Any) -> Any:
        """Sum a batch."""
        rows = reader.rule_rows(batch, self.ruleset)
        return None if rows is None else getattr(rows, self.method)(*self.arguments)

    def reduce_table(self, table: TableQueries) -> Any:
        """Sum a table."""
        return getattr(RuleQueries(self.ruleset, table), self.method)(*self.arguments)


class RuleQueries:
    """Queries that sum the rows of rules in a table.

    Parameters
    ----------
    ruleset : RuleSet
        The rules.
    table : TableQueries
        The table.
    """

    def __init__(self, ruleset: RuleSet, table: TableQueries) -> None:
        self._ruleset, self._table = ruleset, table
        self._is_regression = ruleset.classes is None
        has_default = ruleset.fallback is not None and ruleset.fallback.policy != "abstain"
        fallback = None
        if self._is_regression and (has_default or ruleset.fallback is None):
            # The weights of rules may sum to zero; the queries handle uncovered rows.
            fallback = Fallback(0.0 if ruleset.fallback is None else ruleset.fallback.output)
        self._parts = table.parts_of(ruleset.replace(fallback=fallback))
        label = self._parts.identifier(table.target)
        self._label = f"CAST({label} AS FLOAT8)" if self._is_regression else label
        weight = table.weight_column
        self._weight = None if weight is None else self._parts.identifier(weight)
        number_label = table.target if self._is_regression else None
        table.check_numbers([*self._parts.numeric, number_label, weight])
        table.table.check_values(texts=self._parts.texts)
        self._n_words = max(1, math.ceil(len(ruleset) / _BITS))

    def _rows(self, *expressions: str) -> str:
        """Return a subquery that computes expressions for every row with nonzero weight."""
        premises = self._parts.premises
        words = []
        for word in range(self._n_words):
            bits = [
                f"WHEN {premise} THEN {1 << bit}"
                for bit, premise in enumerate(premises[word * _BITS : (word + 1) * _BITS])
            ]
            if self._ruleset.disjoint and bits:  # at most one of these rules holds
                words.append(f"CASE {' '.join(bits)} ELSE 0 END AS held{word}")
            else:
                bit_sum = " + ".join(f"CASE {bit} ELSE 0 END" for bit in bits)
                words.append(f"{bit_sum or '0'} AS held{word}")
        weight = "" if self._weight is None else f", CAST({self._weight} AS FLOAT8) AS weight"
        # Rows of weight zero must not count; rows without a weight must be reported.
        condition = ""
        if self._weight is not None:
            condition = f" WHERE {self._weight} IS NULL OR {self._weight} <> 0"
        expressions_sql = ", ".join([*words, f"{self._label} AS label", *expressions])
        return f"(SELECT {expressions_sql}{weight} FROM {self._table.rows}{condition}) AS some_rows"

    def _sum(self, value: str) -> str:
        # DuckDB offers compensated summation, which does not lose digits over many rows.
        function = "fsum" if self._table.dialect == "duckdb" else "sum"
        return f"{function}({value})"

    def _square(self, value: str) -> str:
        if self._table.dialect != "postgres":
            return f"{value} * {value}"
        # PostgreSQL raises an error if a square underflows; others return zero.
        minimum = self._parts.style.number(_MIN_SQUARED)
        return f"(CASE WHEN abs({value}) <= {minimum} THEN 0 ELSE {value} * {value} END)"

    def _fetch(self, query: str) -> list[Sequence[Any]]:
        rows = self._table.table.fetch(translate(query, self._parts.style))
        return [tuple(float(v) if isinstance(v, Decimal) else v for v in row) for row in rows]

    def first(self, default: float, center: float) -> RuleCounts:
        """Count rows, or sum their labels around a center, in one query."""
        words = [f"held{word}" for word in range(self._n_words)]
        keys = [*words] if self._is_regression else [*words, "label"]
        prediction = self._parts.prediction
        expressions = []
        if prediction is not None:
            # NULL alone would not have a numeric type.
            value = f"CAST({prediction} AS FLOAT8)" if self._is_regression else prediction
            expressions.append(f"{value} AS predicted")
            if not self._is_regression:
                keys.append("predicted")
        checks = ["count(*)", "count(label)"]
        if self._weight is not None:
            checks += ["count(weight)", "min(weight)", "max(weight)", self._sum("weight")]
        sums = self._regression_sums(default, center) if self._is_regression else []
        rows = self._fetch(
            f"SELECT {', '.join([*keys, *checks, *sums])} FROM {self._rows(*expressions)} "
            f"GROUP BY {', '.join(keys)}"
        )
        if not rows:
            raise SourceError(
                f"{self._table.name} must hold at least one row with a positive weight, got none."
            )
        columns: list[Any] = list(zip(*rows, strict=True))
        match_matrix = _unpack_masks(columns[: self._n_words], len(self._ruleset))
        key_columns, values = columns[self._n_words : len(keys)], columns[len(keys) :]
        labels = None if self._is_regression else key_columns[0]
        n_rows = self._check_row_counts(values, labels)
        weights = n_rows.astype(np.float64)
        if self._weight is not None:
            weights = self._check_weights(n_rows, *values[2:6])
        groups = Groups(self._ruleset)
        if labels is None:
            totals = np.array(values[len(checks) :], dtype=np.float64)  # NULL becomes NaN
            self._add_numbers(groups, match_matrix, weights, totals, n_rows)
        else:
            unique_labels = list(dict.fromkeys(labels))
            code_of = {label: code for code, label in enumerate(unique_labels)}
            codes = np.array([code_of[label] for label in labels], dtype=np.intp)
            predicted_codes = None if prediction is None else self._codes(key_columns[1])
            groups.add_classes(match_matrix, unique_labels, codes, weights, n_rows, predicted_codes)
        return groups.result(default, center)

    def _regression_sums(self, default: float, center: float) -> list[str]:
        """Return sums of deviations and errors, the range of labels, the number of errors."""
        weight = "" if self._weight is None else "weight * "
        no_rule = " AND ".join(f"held{word} = 0" for word in range(self._n_words))
        default_value = "NULL" if math.isnan(default) else self._parts.style.number(default)
        error = f"(label - CASE WHEN {no_rule} THEN {default_value} ELSE predicted END)"
        deviation = f"(label - {self._parts.style.number(center)})"
        return [
            self._sum(f"{weight}{deviation}"),
            self._sum(f"{weight}{self._square(deviation)}"),
            self._sum(f"{weight}abs({error})"),
            self._sum(f"{weight}{self._square(error)}"),
            "min(label)",
            "max(label)",
            f"count({error})",
        ]

    def _add_numbers(
        self,
        groups: Groups,
        match_matrix: NDArray[np.bool_],
        weights: Floats,
        totals: Floats,
        n_rows: Counts,
    ) -> None:
        label_range = totals[4:6]
        if not np.isfinite(label_range).all():
            raise SourceError(
                f"The target of {self._table.name} must hold finite numbers for a regression, got "
                f"labels from {label_range[0].min()!r} to {label_range[1].max()!r}. Drop such rows."
            )
        totals[2:4] = np.where(totals[6] == n_rows, totals[2:4], np.nan)
        groups.add_numbers(match_matrix, np.vstack([weights, totals[:4]]), label_range, n_rows)

    def _check_row_counts(self, values: list[Any], labels: Sequence[Any] | None) -> Counts:
        """Return the rows of each group; raise a SourceError if labels are missing."""
        n_rows = np.array(values[0], dtype=np.int64)
        n_labels = np.array(values[1], dtype=np.int64)
        if labels is not None:  # databases count NaN as a value
            n_labels[[label != label for label in labels]] = 0
        n_missing = int((n_rows - n_labels).sum())
        if n_missing:
            raise SourceError(
                f"The target of {self._table.name} must hold a label in every row, but {n_missing} "
                "rows have none. Exclude such rows, for example in a view."
            )
        self._table.check_row_count(int(n_rows.sum()))
        return n_rows

    def _codes(self, labels: Sequence[Any]) -> NDArray[np.intp]:
        """Return the codes of predicted classes; the code of uncovered rows is not used."""
        codes = {label: code for code, label in enumerate(self._ruleset.classes or ())}
        return np.array([0 if label is None else codes[label] for label in labels], dtype=np.intp)

    def _check_weights(
        self, n_rows: Counts, n_weights: Any, low: Any, high: Any, total: Any
    ) -> Floats:
        n_missing = int(n_rows.sum() - sum(n_weights))
        minimum = math.nan if n_missing else min(low)
        if n_missing or not minimum >= 0 or not np.isfinite(np.array(high, dtype=float)).all():
            problem = f"{n_missing} rows have none"
            if not n_missing:
                problem = f"they range from {minimum!r} to {max(high)!r}"
            raise SourceError(
                f"The weights of {self._table.name} must be finite and zero or more, but {problem}."
                " Exclude such rows, or set their weights to 0."
            )
        return np.array(total, dtype=np.float64)

    def _rule_condition(self, kind: int, rule: int) -> str:
        """Return the condition that a rule covers a row (kind 0) or is assigned to it."""
        if kind:
            return f"assigned = {rule + 1}"
        return f"(held{rule // _BITS} & {1 << rule % _BITS}) <> 0"

    def _sum_all(self, expressions: list[str], summands: list[str]) -> Floats:
        """Sum over all rows; NULL counts as zero."""
        if self._parts.rule_number is not None:
            expressions = [*expressions, f"{self._parts.rule_number} AS assigned"]
        columns = ", ".join(["count(*)", *map(self._sum, summands)])
        (row,) = self._fetch(f"SELECT {columns} FROM {self._rows(*expressions)}")
        self._table.check_row_count(int(row[0]))
        return np.array([0.0 if value is None else value for value in row[1:]], dtype=np.float64)

    def _blocks(self) -> list[range]:
        n_rules = len(self._ruleset)
        return [range(i, min(i + _QUERY_RULES, n_rules)) for i in range(0, n_rules, _QUERY_RULES)]

    def deviations(self, means: Floats) -> Floats:
        """Sum deviations and squared deviations from the means of rules."""
        result = np.zeros((len(means), 2, means.shape[1]))
        weight = "weight * " if self._weight is not None else ""
        for rules in self._blocks():
            summands, indices = [], []
            for kind in range(len(means)):
                for rule in rules:
                    mean = float(means[kind, rule])
                    if math.isnan(mean):
                        continue
                    condition = self._rule_condition(kind, rule)
                    deviation = f"(label - {self._parts.style.number(mean)})"
                    for power, value in enumerate((deviation, self._square(deviation))):
                        summands.append(f"CASE WHEN {condition} THEN {weight}{value} END")
                        indices.append((kind, power, rule))
            if summands:
                result[tuple(np.transpose(indices))] = self._sum_all([], summands)
        return result

    def within(self, stds: Floats) -> Floats:
        """Count rows by whether labels are near the predictions of rules."""
        result = np.zeros((len(stds), 4, stds.shape[1]))
        weight = "weight" if self._weight is not None else "1"
        for rules in self._blocks():
            lines = {rule: text for rule, text in self._parts.outputs.items() if rule in rules}
            expressions = [f"{text} AS line{rule}" for rule, text in lines.items()]
            summands, indices = [], []
            for kind in range(len(stds)):
                for rule in rules:
                    near_condition = self._near_condition(stds[kind], rule)
                    condition = self._rule_condition(kind, rule)
                    hit, miss = (
                        f"CASE WHEN {near_condition} THEN {a} ELSE {b} END"
                        for a, b in ((weight, "0"), ("0", weight))
                    )
                    conditional_sums = [
                        f"CASE WHEN {condition} THEN {value} ELSE 0 END" for value in (hit, miss)
                    ]
                    for position, value in enumerate([*conditional_sums, hit, miss]):
                        summands.append(value)
                        indices.append((kind, position, rule))
            result[tuple(np.transpose(indices))] = self._sum_all(expressions, summands)
        return result

    def _near_condition(self, std: Floats, rule: int) -> str:
        """Return the condition that a label is within a standard deviation of the prediction."""
        if math.isnan(std[rule]):
            return "1 = 0"
        number = self._parts.style.number
        if rule in self._parts.outputs:
            line, width = f"line{rule}", number(float(std[rule]))
            border = f"{width} + {number(float(BORDER))} * (abs({line}) + {width})"
            return f"{self._parts.is_number(line)} AND abs(label - {line}) <= {border}"
        low, high = (float(bounds[rule]) for bounds in positive_range(self._ruleset, std))
        return f"label >= {number(low)} AND label <= {number(high)}"


def _unpack_masks(words: Sequence[Sequence[int]], n_rules: int) -> NDArray[np.bool_]:
    """Unpack one bit per rule to masks of matches, shape (n_groups, n_rules)."""
    numbers = [np.array([int(value) for value in word], dtype=np.int64) for word in words]
    match_matrix = np.zeros((len(numbers[0]), n_rules), dtype=bool)
    for rule in range(n_rules):
        match_matrix[:, rule] = numbers[rule // _BITS] >> (rule % _BITS) & 1
    return match_matrix
