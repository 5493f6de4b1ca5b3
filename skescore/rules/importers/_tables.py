"""Reader of tables with one row per condition, such as spreadsheets."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pandas as pd

from skescore._rule_readers import RULE_FILE_READERS
from skescore._text import did_you_mean
from skescore._validation import python_value
from skescore.rules._conditions import Condition, Interval, Missing, OneOf
from skescore.rules._domain import Domain, Fallback
from skescore.rules._rule import Rule, RuleStatistics
from skescore.rules._ruleset import RuleSet
from skescore.rules.exporters._tables import (
    MISSING,
    NOT_MISSING,
    OR_MISSING,
    OTHERWISE,
    OUTPUT_COLUMNS,
)

_REQUIRED = tuple(RULE_FILE_READERS["table"].fields)
_OPTIONAL = ("weight", "rows")
_BOUNDS: dict[str, tuple[str, bool]] = {
    "<": ("upper", False),
    "<=": ("upper", True),
    ">": ("lower", False),
    ">=": ("lower", True),
}
_OPERATORS = (*_BOUNDS, "=", "!=", "in", "not in")
#: Characters of a list that lacks the syntax of a list and would be read as a single name.
_SEVERAL = {*",;{}[]|"}
_SPELLINGS = {"≤": "<=", "≥": ">=", "==": "=", "≠": "!=", "<>": "!="}


def value_of(content: Any) -> Any:
    """Read a cell: a number, true or false, or text with or without quotes."""
    content = python_value(content)
    if content is None or content is pd.NA or (isinstance(content, float) and content != content):
        return None
    if not isinstance(content, str):
        return content
    text = content.strip()
    if not text:
        return None
    try:
        read = json.loads(text, parse_constant=str)
    except (ValueError, RecursionError):
        pass
    else:
        return text if isinstance(read, dict) else read  # braces may be part of a name
    try:
        number = float(text)
    except ValueError:
        return text
    return number if math.isfinite(number) else text


def read_table(
    table: Any,
    *,
    feature_names: Sequence[str] | None = None,
    classes: Sequence[Any] | None = None,
    domain: Domain | None = None,
    ordered: bool | None = None,
    fallback: Fallback | None = None,
    voting: str | None = None,
) -> RuleSet:
    """Convert a table with one row per condition to a rule set.

    Parameters
    ----------
    table : DataFrame, or iterable of mappings
        Table with the columns of :meth:`RuleSet.to_conditions`: ``rule``, ``feature``, ``operator``
        (``<``, ``<=``, ``>``, ``>=``, ``=``, ``!=``, ``in`` or ``not in``, each optionally followed
        by ``or missing``; ``is missing`` or ``is known``), ``value``, ``class`` (in classification)
        or ``number`` (in regression), and optionally ``weight`` and ``rows``. Rows with the same
        ``rule`` are its conditions. A rule with one row and no feature always holds. The rule
        ``otherwise`` is the fallback.
    feature_names : sequence of str, optional
        Names of all features, in order; by default those in the table, in order of appearance.
    classes : sequence, optional
        Class labels, in order; by default sorted.
    domain : Domain, optional
        Box for which the rules are intended.
    ordered : bool, optional
        Whether the first rule that holds predicts; by default, True unless `voting` is set.
    fallback : Fallback, optional
        Fallback that replaces the one in the table.
    voting : str, optional
        Method of voting, see :class:`RuleSet`; required if the table has weights other than 1.

    Returns
    -------
    RuleSet
        The rules, in order of their first rows.

    Raises
    ------
    ValueError
        If the table cannot be read; the message names the row, counted from 1, or the rule.
    TypeError
        If the table is neither a DataFrame nor consists of mappings.

    Examples
    --------
    >>> print(read_table([
    ...     {"rule": 1, "feature": "size", "operator": "<=", "value": 2.5, "class": "small"},
    ...     {"rule": "otherwise", "class": "large"},
    ... ]))
    1. IF size ≤ 2.5 THEN small
    otherwise, where no rule holds: large
    """
    frame = _frame(table)
    output = _output_column(frame)
    task = next(task for task, column in OUTPUT_COLUMNS.items() if column == output)
    rows = [
        {str(name): value_of(content) for name, content in record.items()}
        for record in frame.to_dict("records")
    ]
    names = _names(rows, feature_names)
    groups: dict[Any, list[int]] = {}
    for at, row in enumerate(rows):
        if row["rule"] is None:
            raise ValueError(f"Row {at + 1} of the table has no rule.")
        groups.setdefault(row["rule"], []).append(at)
    rules = []
    for rule, members in groups.items():
        shared = {name: _shared(rows, members, name) for name in (output, "weight", "rows")}
        if shared[output] is None:
            raise ValueError(f"Row {members[0] + 1} of the table has no {output!r}.")
        conditions = [_condition(rows[at], at, names) for at in members]
        conditions_given = [c for c in conditions if c is not None]
        if str(rule).casefold() == OTHERWISE:
            if conditions_given:
                raise ValueError(
                    f"Row {members[0] + 1} of the table gives the rule {OTHERWISE!r} a condition; "
                    "it states the prediction for uncovered rows and must not have conditions."
                )
            fallback = Fallback(shared[output]) if fallback is None else fallback
            continue
        weight = 1.0 if shared["weight"] is None else shared["weight"]
        try:
            statistics = None if shared["rows"] is None else RuleStatistics(shared["rows"])
            rules.append(Rule(tuple(conditions_given), shared[output], statistics, weight))
        except (TypeError, ValueError) as error:
            where = ", ".join(dict.fromkeys(repr(str(rows[at]["feature"])) for at in members))
            raise ValueError(f"Rule {rule} of the table, on {where}: {error}") from error
    if voting is None and any(rule.weight != 1.0 for rule in rules):
        raise ValueError(
            "The table holds weights, so its rules vote: pass "
            "voting='votes' (classification) or voting='mean' or 'sum' (regression)."
        )
    return RuleSet(
        rules,
        list(names),
        task=task,
        classes=classes,
        domain=domain,
        ordered=voting is None if ordered is None else ordered,
        fallback=fallback,
        voting=voting,
    )


def is_table_of_conditions(columns: Iterable[Any]) -> bool:
    """Return whether a table has the columns of :func:`read_table`."""
    return {*_REQUIRED} <= {str(name) for name in columns}


def _frame(table: Any) -> pd.DataFrame:
    if isinstance(table, pd.DataFrame):
        frame = table
    else:
        records = list(table)
        if not all(isinstance(record, Mapping) for record in records):
            raise TypeError(
                "The table must be a DataFrame or a list of records (dict) with the fields "
                f"{', '.join(_REQUIRED)}."
            )
        # Column by column, so that integers in columns of mixed numbers do not become floats.
        column_names = dict.fromkeys([*_REQUIRED, *(name for record in records for name in record)])
        frame = pd.DataFrame(
            {name: pd.Series([r.get(name) for r in records], dtype=object) for name in column_names}
        )
    missing = [name for name in _REQUIRED if name not in frame.columns]
    if missing:
        raise ValueError(
            f"The table lacks the column {missing[0]!r}; it must have {', '.join(_REQUIRED)} and "
            f"'class' or 'number', got {', '.join(map(repr, frame.columns))}."
        )
    if not len(frame):
        raise ValueError("The table of conditions holds no row, so there are no rules.")
    return frame


def _output_column(frame: pd.DataFrame) -> str:
    output_columns = [name for name in OUTPUT_COLUMNS.values() if name in frame.columns]
    if len(output_columns) != 1:
        raise ValueError(
            "The table must have one column of outputs, 'class' for classification or 'number' for "
            f"regression, got {', '.join(map(repr, frame.columns))}."
        )
    unknown = [
        name for name in frame.columns if name not in {*_REQUIRED, *_OPTIONAL, output_columns[0]}
    ]
    if unknown:
        raise ValueError(
            f"The table has the unknown column {unknown[0]!r}. "
            f"{did_you_mean(str(unknown[0]), (*_REQUIRED, *_OPTIONAL, output_columns[0]))}"
        )
    return output_columns[0]


def _names(rows: list[dict[str, Any]], user_names: Sequence[str] | None) -> dict[str, int]:
    """Return the position of every feature."""
    table_names = dict.fromkeys(str(row["feature"]) for row in rows if row["feature"] is not None)
    if user_names is None:
        return {name: j for j, name in enumerate(table_names)}
    all_names = [str(name) for name in user_names]
    names = {name: j for j, name in enumerate(all_names)}
    if len(names) < len(all_names):
        twice = sorted({name for name in all_names if all_names.count(name) > 1})
        raise ValueError(f"feature_names must differ from each other, got {twice} twice.")
    unknown = [name for name in table_names if name not in names]
    if unknown:
        raise ValueError(
            f"The table has conditions on {unknown[0]!r}, which is none of the feature_names. "
            f"{did_you_mean(unknown[0], names)}"
        )
    return names


def _shared(rows: list[dict[str, Any]], members: list[int], name: str) -> Any:
    """Return the value that all rows of a rule share; None if no row has a value."""
    values = {at: rows[at].get(name) for at in members if rows[at].get(name) is not None}
    if not values:
        return None
    first = next(iter(values.values()))
    for at, value in values.items():
        if value != first or isinstance(value, bool) != isinstance(first, bool):
            raise ValueError(
                f"Row {at + 1} of the table has {name}={value!r}, but other rows of its rule have "
                f"{first!r}."
            )
    return first


def _condition(row: dict[str, Any], at: int, names: Mapping[str, int]) -> Condition | None:
    feature, operator, value = row["feature"], row["operator"], row["value"]
    if feature is None:
        if operator is not None or value is not None:
            raise ValueError(f"Row {at + 1} of the table has a condition, but no feature.")
        return None
    missing = False
    if isinstance(operator, str):
        operator = " ".join(operator.lower().split())
        missing = operator.endswith(OR_MISSING)
        operator = operator.removesuffix(OR_MISSING)
    operator = _SPELLINGS.get(operator, operator)
    if operator in {MISSING, NOT_MISSING} and not missing:
        if value is not None:
            raise ValueError(
                f"Row {at + 1} of the table has the condition {feature!r} {operator}, which "
                f"has no value, got {value!r}."
            )
        return Missing(names[str(feature)], negated=operator == NOT_MISSING)
    if operator not in _OPERATORS:
        raise ValueError(
            f"Row {at + 1} of the table has the operator {row['operator']!r}; known are "
            f"{', '.join(_OPERATORS)}, each optionally followed by '{OR_MISSING}', {MISSING} and "
            f"{NOT_MISSING}."
        )
    if value is None:
        raise ValueError(f"Row {at + 1} of the table compares {feature!r} with nothing.")
    feature_index = names[str(feature)]
    try:
        if operator in {"in", "not in"}:
            if isinstance(value, str) and _SEVERAL & {*value}:
                raise ValueError(
                    f'{operator!r} compares with a list such as ["red", "blue"], got {value!r}; '
                    "a single value with such characters is compared by = or !=."
                )
            values = value if isinstance(value, list) else [value]
            return OneOf(feature_index, tuple(values), operator == "not in", missing)
        if operator in {"=", "!="}:
            if operator == "!=" or isinstance(value, str | bool):
                return OneOf(feature_index, (value,), operator == "!=", missing)
            return Interval(feature_index, value, value, True, True, missing)
        if not isinstance(value, int | float) or isinstance(value, bool):
            raise TypeError(f"{operator} compares with numbers, got {value!r}.")
        side, is_closed = _BOUNDS[operator]
        bounds: dict[str, Any] = {side: value, f"{side}_closed": is_closed, "missing": missing}
        return Interval(feature_index, **bounds)
    except (TypeError, ValueError) as error:
        raise ValueError(f"Row {at + 1} of the table: {error}") from error
