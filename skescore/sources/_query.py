"""Counts of rules by one query: the database sums, and no row is pulled.

Rows are grouped by which rules hold for them, one bit per rule, and by their label. There are few
such groups, and everything else follows from them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skescore.metrics import RuleCounts
from skescore.metrics._rule_counts import BORDER, Groups, reach
from skescore.rules import Fallback, RuleSet
from skescore.rules.exporters._sql import sql_parts, translated
from skescore.sources._tables import SourceError, SqlTable, check_columns

Floats = NDArray[np.float64]

#: Rules whose bits one BIGINT holds, without its sign.
_BITS = 62
#: Rules that one query asks about where each takes several columns of the result.
_AT_ONCE = 50
#: Smaller numbers have no square.
_LEAST_SQUARED = 1e-161


def near_labels(ruleset: RuleSet) -> float:
    """A number that labels are expected to be near to, before any has been seen."""
    if ruleset.fallback is not None:
        return float(ruleset.fallback.output)
    outputs = ruleset.conclusions.outputs
    finite = outputs[np.isfinite(outputs)]
    return float(finite.mean()) if len(finite) else 0.0


class QueryLooks:
    """Rows of a database, as :func:`skescore.metrics._rule_counts.complete` looks at them."""

    def __init__(self, ruleset: RuleSet, table: SqlTable, target: str, weight: str | None) -> None:
        self._ruleset, self._table = ruleset, table
        check_columns(ruleset, table.columns, target, weight, table.name)
        flags = [n for n in ruleset.feature_names if n in table.booleans]
        voted = ruleset.fallback is not None and ruleset.fallback.policy != "abstain"
        stand_in = None
        if ruleset.classes is None and (voted or ruleset.fallback is None):
            # Weights of rules may add up to nothing; rows without a rule are seen to by the query.
            stand_in = Fallback(0.0 if ruleset.fallback is None else ruleset.fallback.output)
        known = ruleset.replace(fallback=stand_in)
        self._parts = sql_parts(known, dialect=table.dialect, columns={}, booleans=flags)
        label = self._parts.identifier(target)
        number = ruleset.classes is None
        self._label = f"CAST({label} AS FLOAT8)" if number else label
        self._weight = None if weight is None else self._parts.identifier(weight)
        table.check_numbers([*self._parts.numeric, target if number else None, weight])
        self._n_words = max(1, math.ceil(len(ruleset) / _BITS))
        self._n_rows: int | None = None

    def center(self) -> float:
        return near_labels(self._ruleset)

    def _rows(self, *more: str) -> str:
        """The rows with what queries ask of each, as a table in parentheses."""
        premises = self._parts.premises
        words = []
        for word in range(self._n_words):
            bits = [
                f"WHEN {premise} THEN {1 << bit}"
                for bit, premise in enumerate(premises[word * _BITS : (word + 1) * _BITS])
            ]
            if self._ruleset.disjoint and bits:  # the first that holds is the only one
                words.append(f"CASE {' '.join(bits)} ELSE 0 END AS held{word}")
            else:
                added = " + ".join(f"CASE {bit} ELSE 0 END" for bit in bits)
                words.append(f"{added or '0'} AS held{word}")
        weight = "" if self._weight is None else f", CAST({self._weight} AS FLOAT8) AS weight"
        # What weighs nothing must not count in any way; what lacks a weight must be found out.
        kept = (
            ""
            if self._weight is None
            else (f" WHERE {self._weight} IS NULL OR {self._weight} <> 0")
        )
        parts = ", ".join([*words, f"{self._label} AS label", *more])
        return f"(SELECT {parts}{weight} FROM {self._table.source}{kept}) AS some_rows"

    def _sum(self, value: str) -> str:
        # Compensated where the database can: many rows would lose digits one after the other.
        function = "fsum" if self._table.dialect == "duckdb" else "sum"
        return f"{function}({value})"

    def _square(self, value: str) -> str:
        if self._table.dialect != "postgres":
            return f"{value} * {value}"
        # Where all others have zero, PostgreSQL has an error.
        least = self._parts.style.number(_LEAST_SQUARED)
        return f"(CASE WHEN abs({value}) <= {least} THEN 0 ELSE {value} * {value} END)"

    def _fetch(self, query: str) -> list[Sequence[Any]]:
        rows = self._table.fetch(translated(query, self._parts.style))
        return [tuple(float(v) if isinstance(v, Decimal) else v for v in row) for row in rows]

    def first(self, default: float, center: float) -> RuleCounts:
        number = self._ruleset.classes is None
        words = [f"held{word}" for word in range(self._n_words)]
        keys = [*words] if number else [*words, "label"]
        said = self._parts.prediction
        # A NULL alone would be of a type that is no number's.
        value = f"CAST({said} AS FLOAT8)" if number else said
        inner = [] if said is None else [f"{value} AS said"]
        if said is not None and not number:
            keys.append("said")
        checks = ["count(*)", "count(label)"]
        weighted = self._weight is not None
        if weighted:
            checks += ["count(weight)", "min(weight)", "max(weight)", self._sum("weight")]
        sums = []
        if number:
            times = "weight * " if weighted else ""
            uncovered = " AND ".join(f"{word} = 0" for word in words)
            value = "NULL" if math.isnan(default) else self._parts.style.number(default)
            error = f"(label - CASE WHEN {uncovered} THEN {value} ELSE said END)"
            deviation = f"(label - {self._parts.style.number(center)})"
            sums = [
                self._sum(f"{times}{deviation}"),
                self._sum(f"{times}{self._square(deviation)}"),
                self._sum(f"{times}abs({error})"),
                self._sum(f"{times}{self._square(error)}"),
                "min(label)",
                "max(label)",
                f"count({error})",
            ]
        query = (
            f"SELECT {', '.join([*keys, *checks, *sums])} FROM {self._rows(*inner)} "
            f"GROUP BY {', '.join(keys)}"
        )
        found = self._fetch(query)
        if not found:
            raise SourceError(
                f"{self._table.name} must hold at least one row that weighs more "
                "than nothing, got none."
            )
        columns: list[Any] = list(zip(*found, strict=True))
        held = _unpacked(columns[: self._n_words], len(self._ruleset))
        rest = columns[len(keys) :]
        n_rows = np.array(rest[0], dtype=np.int64)
        known = np.array(rest[1], dtype=np.int64)
        if not number:  # to databases NaN is a value
            known[[label != label for label in columns[self._n_words]]] = 0
        self._check_labels(n_rows, known)
        weights = n_rows.astype(np.float64)
        if weighted:
            weights = self._checked_weights(n_rows, *rest[2:6])
        self._check_unchanged(int(n_rows.sum()))
        groups = Groups(self._ruleset)
        if number:
            totals = np.array(rest[len(checks) :], dtype=np.float64)  # NULL becomes NaN
            ends = totals[4:6]
            if not np.isfinite(ends).all():
                raise SourceError(
                    f"The target of {self._table.name} must hold finite numbers for a regression, "
                    f"got labels from {ends[0].min()!r} to {ends[1].max()!r}. Drop such rows."
                )
            totals[2:4] = np.where(totals[6] == n_rows, totals[2:4], np.nan)
            groups.add_numbers(held, np.vstack([weights, totals[:4]]), ends, n_rows)
        else:
            labels = list(dict.fromkeys(columns[self._n_words]))
            places = {label: place for place, label in enumerate(labels)}
            codes = np.array([places[label] for label in columns[self._n_words]], dtype=np.intp)
            predicted = self._codes(columns[self._n_words + 1]) if said is not None else None
            groups.add_classes(held, labels, codes, weights, n_rows, predicted)
        return groups.result(default, center)

    def _codes(self, labels: Sequence[Any]) -> NDArray[np.intp]:
        """Codes of the predicted classes; rows without a rule have none, and any will do."""
        codes = {label: code for code, label in enumerate(self._ruleset.classes or ())}
        return np.array([0 if label is None else codes[label] for label in labels], dtype=np.intp)

    def _check_labels(self, n_rows: NDArray[np.int64], known: NDArray[np.int64]) -> None:
        lacking = int((n_rows - known).sum())
        if lacking:
            raise SourceError(
                f"The target of {self._table.name} must hold a label in every row, but {lacking} "
                "rows have none. Drop such rows first, as in a view."
            )

    def _checked_weights(
        self, n_rows: NDArray[np.int64], known: Any, low: Any, high: Any, total: Any
    ) -> Floats:
        lacking = int(n_rows.sum() - sum(known))
        least = math.nan if lacking else min(low)
        if lacking or not least >= 0 or not np.isfinite(np.array(high, dtype=float)).all():
            raise SourceError(
                f"The weights of {self._table.name} must be finite and zero or more, but "
                + (
                    f"{lacking} rows have none."
                    if lacking
                    else f"they go from {least!r} to {max(high)!r}."
                )
                + " Drop such rows first, or weigh them 0."
            )
        return np.array(total, dtype=np.float64)

    def _check_unchanged(self, n_rows: int) -> None:
        """Sums of several looks must be those of the same rows."""
        if self._n_rows is not None and n_rows != self._n_rows:
            raise SourceError(
                f"{self._table.name} changed while it was counted: it had {self._n_rows} rows at "
                f"first and has {n_rows} now. Count a table at rest, or a snapshot of it."
            )
        self._n_rows = n_rows

    def _counted(self, kind: int, rule: int) -> str:
        """Whether a row counts for a rule."""
        if kind:
            return f"assigned = {rule + 1}"
        return f"(held{rule // _BITS} & {1 << rule % _BITS}) <> 0"

    def _summed(self, more: list[str], summands: list[str]) -> Floats:
        """Sums over all rows; what a row has no value for is zero."""
        if self._parts.rule_number is not None:
            more = [*more, f"{self._parts.rule_number} AS assigned"]
        columns = ", ".join(["count(*)", *map(self._sum, summands)])
        (row,) = self._fetch(f"SELECT {columns} FROM {self._rows(*more)}")
        self._check_unchanged(int(row[0]))
        return np.array([0.0 if value is None else value for value in row[1:]], dtype=np.float64)

    def _blocks(self) -> list[range]:
        n_rules = len(self._ruleset)
        return [range(i, min(i + _AT_ONCE, n_rules)) for i in range(0, n_rules, _AT_ONCE)]

    def deviations(self, means: Floats) -> Floats:
        result = np.zeros((len(means), 2, means.shape[1]))
        weight = "weight * " if self._weight is not None else ""
        for rules in self._blocks():
            summands, places = [], []
            for kind in range(len(means)):
                for rule in rules:
                    mean = float(means[kind, rule])
                    if math.isnan(mean):
                        continue
                    counted = self._counted(kind, rule)
                    deviation = f"(label - {self._parts.style.number(mean)})"
                    for power, value in enumerate((deviation, self._square(deviation))):
                        summands.append(f"CASE WHEN {counted} THEN {weight}{value} END")
                        places.append((kind, power, rule))
            if summands:
                result[tuple(np.transpose(places))] = self._summed([], summands)
        return result

    def within(self, stds: Floats) -> Floats:
        result = np.zeros((len(stds), 4, stds.shape[1]))
        weight = "weight" if self._weight is not None else "1"
        for rules in self._blocks():
            lines = {rule: text for rule, text in self._parts.outputs.items() if rule in rules}
            more = [f"{text} AS line{rule}" for rule, text in lines.items()]
            summands, places = [], []
            for kind in range(len(stds)):
                for rule in rules:
                    near = self._near(stds[kind], rule)
                    counted = self._counted(kind, rule)
                    hit, miss = (
                        f"CASE WHEN {near} THEN {a} ELSE {b} END"
                        for a, b in ((weight, "0"), ("0", weight))
                    )
                    its = [f"CASE WHEN {counted} THEN {value} ELSE 0 END" for value in (hit, miss)]
                    for place, value in enumerate([*its, hit, miss]):
                        summands.append(value)
                        places.append((kind, place, rule))
            result[tuple(np.transpose(places))] = self._summed(more, summands)
        return result

    def _near(self, std: Floats, rule: int) -> str:
        """Whether a label lies within a standard deviation of what the rule predicts."""
        if math.isnan(std[rule]):
            return "1 = 0"
        number = self._parts.style.number
        if rule in self._parts.outputs:
            line, width = f"line{rule}", number(float(std[rule]))
            border = f"{width} + {number(float(BORDER))} * (abs({line}) + {width})"
            return f"{self._parts.is_number(line)} AND abs(label - {line}) <= {border}"
        low, high = (float(ends[rule]) for ends in reach(self._ruleset, std))
        return f"label >= {number(low)} AND label <= {number(high)}"


def _unpacked(words: Sequence[Sequence[int]], n_rules: int) -> NDArray[np.bool_]:
    """Which rules hold, from one bit per rule."""
    numbers = [np.array([int(value) for value in word], dtype=np.int64) for word in words]
    held = np.zeros((len(numbers[0]), n_rules), dtype=bool)
    for rule in range(n_rules):
        held[:, rule] = numbers[rule // _BITS] >> (rule % _BITS) & 1
    return held
