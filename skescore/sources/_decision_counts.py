"""Counts of the decisions of rules on rows of a source, by one query or by batches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from skescore.metrics import (
    DecisionCounts,
    check_label_types,
    count_decisions,
    domain_limits,
    has_default,
)
from skescore.rules import Fallback, Interval, Missing, OneOf, Rule, RuleSet, as_ruleset
from skescore.rules.exporters._sql import SqlParts
from skescore.sources._batch_reader import BatchReader
from skescore.sources._data_source import DataSource
from skescore.sources._reducers import Reducer
from skescore.sources._table_queries import TableQueries


@dataclass(frozen=True)
class DecisionReducer(Reducer[DecisionCounts]):
    """Reducer that counts rows by the rule that decides them.

    Parameters
    ----------
    ruleset : RuleSet
        The rules.
    target, model_column : str, optional
        Columns of labels and of predictions of the model.
    options : dict
        Tolerances in regression, see :func:`skescore.metrics.decide_rows`.
    """

    ruleset: RuleSet
    target: str | None
    model_column: str | None
    options: dict[str, Any] = field(default_factory=dict)

    def reduce_batch(self, reader: BatchReader, batch: Any) -> DecisionCounts | None:
        """Count a batch of rows."""
        frame = reader.frame(batch)
        if not len(frame):
            return None
        y, model = (
            None if name is None else frame[name].astype(object).where(frame[name].notna(), None)
            for name in (self.target, self.model_column)
        )
        X = frame.reindex(columns=list(self.ruleset.feature_names))
        return count_decisions(self.ruleset, X, y, model_predictions=model, **self.options)

    def reduce_table(self, table: TableQueries) -> DecisionCounts:
        """Count a table with one query."""
        ruleset = self.ruleset
        if ruleset.classes is None and not has_default(ruleset):
            ruleset = ruleset.replace(fallback=Fallback(0.0))
        parts = table.parts_of(ruleset)
        is_regression = ruleset.classes is None
        labels = [name for name in (self.target, self.model_column) if name is not None]
        table.check_numbers([*parts.numeric, *(labels if is_regression else [])])
        expressions = [
            f"{parts.rule_number} AS rule_number",
            self._outcome(table, parts, self.target, "error_tolerances") + " AS label",
            self._outcome(table, parts, self.model_column, "model_tolerances") + " AS model",
            *self._flags(table),
        ]
        names = "rule_number, label, model, is_outside, is_incomplete"
        rows = table.fetch(
            f"SELECT {names}, count(*) FROM (SELECT {', '.join(expressions)} FROM "
            f"{table.table.typed_rows(table.table.columns)}) AS some_rows GROUP BY {names}"
        )
        return self._total(rows)

    def _outcome(
        self, table: TableQueries, parts: SqlParts, column: str | None, tolerances: str
    ) -> str:
        """Return an expression for the label of a row or, in regression, whether it is an error."""
        if column is None:
            return "NULL"
        if self.ruleset.classes is not None:
            return parts.identifier(column)
        label = table.number(column)
        # SQL has no infinite numbers.
        *rule_widths, width = map(parts.style.number, np.minimum(self.options[tolerances], 1e300))
        if rule_widths:
            cases = (f"WHEN {rule} THEN {number}" for rule, number in enumerate(rule_widths, 1))
            width = f"CASE {parts.rule_number} {' '.join(cases)} ELSE {width} END"
        return (
            f"CASE WHEN {parts.is_number(label)} THEN CASE WHEN "
            f"abs({label} - ({parts.prediction})) <= {width} THEN 0 ELSE 1 END END"
        )

    def _flags(self, table: TableQueries) -> list[str]:
        """Return expressions for whether some value is outside the domain, or missing."""
        limits = domain_limits(self.ruleset)
        domain = self.ruleset.domain
        outside = []
        for feature, ends in limits.items():
            if domain is not None and domain.values_of(feature) is not None:
                outside.append(Rule((OneOf(feature, ends, negated=True),), self._any_output))
                continue
            lower, upper = ends
            outside += [
                Rule((Interval(feature, upper=lower, upper_closed=False),), self._any_output),
                Rule((Interval(feature, lower=upper, lower_closed=False),), self._any_output),
            ]
        missing = [
            Rule((Missing(j),), self._any_output) for j in sorted(self.ruleset.used_features)
        ]
        # The types of the columns are known for the original rules.
        n_rules = len(self.ruleset)
        flags = self.ruleset.replace(rules=[*self.ruleset.rules, *outside, *missing])
        premises = table.parts_of(flags).premises[n_rules:]
        result = []
        for name, tests in (
            ("is_outside", premises[: len(outside)]),
            ("is_incomplete", premises[len(outside) :]),
        ):
            test = " OR ".join(f"({test})" for test in tests) or "1 = 0"
            result.append(f"CASE WHEN {test} THEN 1 ELSE 0 END AS {name}")
        return result

    @property
    def _any_output(self) -> Any:
        return 0.0 if self.ruleset.classes is None else self.ruleset.classes[0]

    def _total(self, rows: Sequence[Sequence[Any]]) -> DecisionCounts:
        """Add up the groups of the query."""
        total = DecisionCounts.zeros(len(self.ruleset))
        for rule_number, label, model, is_outside, is_incomplete, n_rows in rows:
            rule = len(self.ruleset) if rule_number is None else int(rule_number) - 1
            total.n_rows[rule] += n_rows
            total.n_outside[rule] += n_rows * int(is_outside)
            total.n_missing[rule] += n_rows * int(is_incomplete)
            for value, n_checked, n_wrong in (
                (label, total.n_labeled, total.n_errors),
                (model, total.n_queried, total.n_disagreements),
            ):
                wrong = self._is_wrong(rule, value)
                if wrong is not None:
                    n_checked[rule] += n_rows
                    n_wrong[rule] += n_rows * wrong
        return total

    def _is_wrong(self, rule: int, value: Any) -> bool | None:
        """Return whether a group of rows is predicted wrongly; None if that is unknown."""
        if value is None or value != value:
            return None
        ruleset, is_uncovered = self.ruleset, rule == len(self.ruleset)
        if is_uncovered and not has_default(ruleset):
            return None
        if ruleset.classes is None:
            return bool(value)
        if value not in ruleset.classes:
            check_label_types(ruleset, str(self.target or self.model_column), [value])
            return True
        assert not is_uncovered or ruleset.fallback is not None
        output = ruleset.fallback.output if is_uncovered else ruleset.rules[rule].output  # type: ignore[union-attr]
        return bool(value != output)


def count_source_decisions(
    rules: Any,
    source: Any,
    target: str | None = None,
    *,
    model_column: str | None = None,
    error_tolerances: Any = None,
    model_tolerances: Any = None,
) -> DecisionCounts:
    """Count the rows of a data source by the rule that decides them.

    A database runs one query and transfers no rows. Other sources are read in batches.

    Parameters
    ----------
    rules : RuleSet or estimator
        Rules, exactly one of which predicts each row.
    source : DataSource, str, path, frame, dataset or batches
        The rows, see :class:`DataSource`. Weights are not supported.
    target : str, optional
        Column of labels; missing labels are not known yet.
    model_column : str, optional
        Column with predictions of the model.
    error_tolerances, model_tolerances : array-like of shape (n_rules + 1,), optional
        Required in regression, see :func:`skescore.metrics.decide_rows`.

    Returns
    -------
    DecisionCounts

    Raises
    ------
    SourceError
        If the rows cannot be read.
    ValueError
        If a column does not exist, or a label has another type than the classes.

    Examples
    --------
    >>> import pandas as pd
    >>> from skescore.rules import Interval, Rule, RuleSet
    >>> from skescore.sources import count_source_decisions
    >>> rules = RuleSet([Rule([Interval(0, upper=2)], "low")], ["length"], task="classification")
    >>> rows = pd.DataFrame({"length": [0.5, 1.5, 2.5], "size": ["low", "high", None]})
    >>> counts = count_source_decisions(rules, [rows, rows], "size")
    >>> counts.n_rows.tolist(), counts.n_errors.tolist()
    ([4, 2], [2, 0])
    """
    ruleset = as_ruleset(rules)
    ruleset.check_one_rule_per_row("Counting decisions")
    data = DataSource.of(source, target)
    if data.sample_weight is not None:
        raise ValueError(
            f"sample_weight must be None, since decisions are counted by rows, got "
            f"{data.sample_weight!r}."
        )
    used_names = [ruleset.feature_names[j] for j in sorted(ruleset.used_features)]
    used_names = used_names or [ruleset.feature_names[0]]
    columns = used_names if model_column is None else [*used_names, model_column]
    options = {"error_tolerances": error_tolerances, "model_tolerances": model_tolerances}
    labels = None if data.target is None else np.empty(0)
    model_predictions = None if model_column is None else np.empty(0)
    no_rows = np.empty((0, ruleset.n_features))
    # Checks the options.
    count_decisions(ruleset, no_rows, labels, model_predictions=model_predictions, **options)
    reducer = DecisionReducer(ruleset, data.target, model_column, options)
    # A source without labels is opened with any column as its target.
    labeled_data = replace(data, target=data.target or used_names[0])
    with labeled_data.open(columns) as rows:
        return rows.reduce(reducer)
