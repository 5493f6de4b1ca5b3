"""Conditions and sums as SQL."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from skescore._text import did_you_mean
from skescore.rules._conditions import Condition, Interval, Linear, OneOf
from skescore.rules._rule import LinearOutput, Rule
from skescore.rules.exporters._common import answering_rules, elementary
from skescore.rules.exporters._sql_dialects import Dialect

if TYPE_CHECKING:
    from skescore.rules._ruleset import RuleSet

#: DuckDB and SQLite limit the depth of an expression to 1000. A sum of so many parts is as deep as
#: their number and the depth of a part together; longer ones are joined in blocks.
_DEEPEST = 920


def _joined(parts: Sequence[str], word: str) -> str:
    inner = max((sum(map(part.count, (" AND ", " OR ", " + "))) for part in parts), default=0)
    if len(parts) + inner <= _DEEPEST:
        return word.join(parts)
    size = math.isqrt(len(parts) - 1) + 1
    blocks = [word.join(parts[i : i + size]) for i in range(0, len(parts), size)]
    return word.join(f"({block})" for block in blocks)


def either(premises: Sequence[str]) -> str:
    """Whether any premise holds."""
    return _joined(premises, "\n    OR ")


def added(summands: Sequence[str], style: Dialect) -> str:
    """A sum that starts from 0, in parentheses."""
    if not summands:
        return style.number(0.0)
    return f"({_joined([style.number(0.0), *summands], f'{chr(10)}    + ')})"


class Terms:
    """Writes the conditions of a rule set with the names of a table's columns.

    Parameters
    ----------
    ruleset : RuleSet
        The rules.
    style : Dialect
        How names and values are written.
    columns : mapping of str to str
        Columns of the features that are called otherwise in the table.
    booleans : sequence of str, default=()
        Features whose columns are BOOLEAN, although rules compare them with numbers.

    Raises
    ------
    ValueError
        If a name cannot be written or stands for two columns, or a feature is compared with both
        numbers and texts.
    """

    def __init__(
        self,
        ruleset: RuleSet,
        style: Dialect,
        columns: Mapping[str, str],
        booleans: Sequence[str] = (),
    ) -> None:
        if isinstance(booleans, str):
            raise TypeError(f"booleans must be a sequence of names, got the text {booleans!r}.")
        for parameter, given in (("columns", columns), ("booleans", booleans)):
            for name in given:
                if name not in ruleset.feature_names:
                    raise ValueError(
                        f"{parameter} names the feature {name!r}, which the rules do not know. "
                        f"{did_you_mean(name, ruleset.feature_names)}"
                    )
        self._style = style
        self._names = [str(columns.get(name, name)) for name in ruleset.feature_names]
        rules = [ruleset.rules[i] for i in answering_rules(ruleset)]
        self._flags = self._check_kinds(rules, ruleset.feature_names)
        self._columns: dict[int, str] = {}
        for feature in sorted(_used(rules)):
            self._check_name(feature)
            column = style.identifier(self._names[feature], "feature")
            if ruleset.feature_names[feature] in booleans and feature not in self._flags:
                column = f"CAST({column} AS INTEGER)"
            self._columns[feature] = column

    def _check_name(self, feature: int) -> None:
        name = self._names[feature]
        alike = [n for n in self._names if self._style.folded(n) == self._style.folded(name)]
        if len(alike) > 1:
            raise ValueError(
                f"The columns {alike} are one and the same to databases that do not tell upper "
                "from lower case. Pass columns={feature: column} with other names, or a dialect "
                "that tells them apart, such as 'postgres'."
            )

    def _check_kinds(self, rules: Iterable[Rule], names: Sequence[str]) -> set[int]:
        """The features whose values are True and False, and nothing else."""
        kinds: dict[int, set[str]] = {}
        for condition in elementary(c for rule in rules for c in rule.conditions):
            values = condition.values if isinstance(condition, OneOf) else (0.0,)
            for feature in condition.features:
                kinds.setdefault(feature, set()).update(map(_kind, values))
        for feature, found in kinds.items():
            if "texts" in found and len(found) > 1:
                raise ValueError(
                    f"The rules compare feature {names[feature]!r} with texts and with numbers, "
                    "but a column of a table cannot hold both. Make its values one kind."
                )
        return {feature for feature, found in kinds.items() if found == {"flags"}}

    # --- conditions --------------------------------------------------------------------------

    def premise(self, rule: Rule) -> str | None:
        """All conditions of a rule; None where there are none."""
        return " AND ".join(self._condition(c) for c in rule.conditions) or None

    def _condition(self, condition: Condition) -> str:
        """A condition that is never true where a value is missing; it may be unknown (NULL)."""
        if isinstance(condition, Interval):
            return self._between(self._columns[condition.feature], condition)
        if isinstance(condition, Linear):
            text = self.affine(None, condition.terms)
            return self._between(f"({text})" if len(condition.terms) > 1 else text, condition)
        if isinstance(condition, OneOf):
            return self._one_of(condition)
        inner = [self._condition(c) for c in condition.conditions]
        if condition.m == 1:
            return f"({' OR '.join(inner)})"
        if condition.m == len(inner):
            return f"({' AND '.join(inner)})"
        counted = (f"CASE WHEN {text} THEN 1 ELSE 0 END" for text in inner)
        return f"({' + '.join(counted)}) >= {condition.m}"

    def _between(self, value: str, bounds: Interval | Linear) -> str:
        lower, upper, bound = bounds.lower, bounds.upper, self._style.bound
        if math.isinf(lower) and math.isinf(upper):
            return self.is_number(value)
        if lower == upper:
            return f"{value} = {bound(lower)}"
        equal = "=" if bounds.lower_closed else ""
        if math.isinf(upper) and self._style.nan:
            return f"0e0 - {value} <{equal} {bound(-lower)}"
        parts = [] if math.isinf(lower) else [f"{value} >{equal} {bound(lower)}"]
        if not math.isinf(upper):
            parts.append(f"{value} <{'=' if bounds.upper_closed else ''} {bound(upper)}")
        return " AND ".join(parts)

    def is_number(self, value: str) -> str:
        """Whether a number is neither NULL nor NaN; true or unknown, or false."""
        if not self._style.nan:
            return f"{value} IS NOT NULL"
        return f"({value} <= 0 OR 0e0 - {value} <= 0)"

    def _one_of(self, condition: OneOf) -> str:
        column = self._columns[condition.feature]
        flags = condition.feature in self._flags
        # Where a column holds numbers, True and False stand for 1 and 0.
        values = [v if flags or type(v) is not bool else int(v) for v in condition.values]
        written = [self._style.label(value) for value in values]
        if len(written) == 1:
            text = f"{column} {'<>' if condition.negated else '='} {written[0]}"
        else:
            text = f"{column} {'NOT IN' if condition.negated else 'IN'} ({', '.join(written)})"
        if condition.negated and self._style.nan and not flags and not isinstance(values[0], str):
            return f"{text} AND {self.is_number(column)}"
        return text

    # --- sums --------------------------------------------------------------------------------

    def affine(self, intercept: float | None, terms: Iterable[tuple[int, float]]) -> str:
        """A sum of features, added up in the order given."""
        text = "" if intercept is None else self._style.number(intercept)
        for feature, coefficient in terms:
            column = self._columns[feature]
            if text:
                sign = "-" if coefficient < 0 else "+"
                text += f" {sign} {self._style.number(abs(coefficient))} * {column}"
            else:
                text = f"{self._style.number(coefficient)} * {column}"
        return text


def _kind(value: Any) -> str:
    if isinstance(value, str):
        return "texts"
    return "flags" if isinstance(value, bool) else "numbers"


def _used(rules: Sequence[Rule]) -> set[int]:
    used = {f for rule in rules for c in rule.conditions for f in c.features}
    for rule in rules:
        for part in (rule.output, rule.weight):
            if isinstance(part, LinearOutput):
                used.update(feature for feature, _ in part.terms)
    return used
