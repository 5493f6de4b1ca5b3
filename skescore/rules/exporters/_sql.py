"""Export of rule sets to SQL, which predicts rows in a database."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from skescore._names import SQL_KINDS
from skescore._optional import import_optional
from skescore._text import did_you_mean
from skescore._validation import LARGEST_EXACT, check_choice, check_flag, check_sequence
from skescore.rules._conditions import Condition, Interval, Linear, Missing, OneOf, truth_table
from skescore.rules._rule import LinearOutput, Rule
from skescore.rules.exporters._common import (
    abstention,
    always_predicts,
    class_labels,
    class_votes,
    flatten_conditions,
    rules_in_order,
)

if TYPE_CHECKING:
    from skescore.rules._ruleset import RuleSet


#: Databases without floating-point NaN.
_WITHOUT_NAN = ("sqlite", "mysql", "tsql")
#: Databases that distinguish upper and lower case in quoted names.
_CASE_SENSITIVE = ("postgres", "snowflake", "oracle")
#: Infinite numbers, for databases that support them as labels.
_INFINITE = {
    "postgres": "FLOAT8 '{}Infinity'",
    "duckdb": "CAST('{}inf' AS DOUBLE)",
    "sqlite": "{}9e999",
}
#: Databases without TRUE and FALSE; SQLite may interpret them as names of columns.
_WITHOUT_FLAGS = ("tsql", "oracle", "sqlite")
#: Databases in which other columns may follow ``table.*``, but not ``*``.
WITHOUT_STAR = ("oracle", "teradata")
#: Dialects that are written without sqlglot.
_BUILT_IN_DIALECTS = ("duckdb", "postgres", "sqlite")
#: Test that a column of unknown type holds floats, because the text "nan" is not a missing value.
_HOLDS_FLOATS = {
    "duckdb": "typeof({}) IN ('DOUBLE', 'FLOAT')",
    # The last two are names in DuckDB, which also reads this dialect.
    "postgres": "CAST(pg_typeof({}) AS VARCHAR) IN "
    "('double precision', 'real', 'numeric', 'double', 'float')",
}
#: Kinds of columns whose type the rules do not determine; "bits" are compared with True and False.
_UNKNOWN = (None, "bits")
#: Dialects that compare BOOLEAN columns with 1 and 0; None is standard SQL, as in DuckDB.
_COMPARES_FLAGS = (None, "duckdb", "sqlite")
#: Largest integer up to which integers are exact in 32-bit floats.
_MAX_EXACT_FLOAT32 = 2**24
_MAX_INTEGER = 2**63 - 1
#: Number of digits up to which every database converts decimals to the same floats.
_PLAIN_DIGITS = 15
#: Smallest number that SQLite reads exactly.
_MIN_IN_SQLITE = 1e-290


class ColumnKindError(ValueError):
    """Raised if rules compare a column of a table with values of another kind."""


@dataclass(frozen=True)
class Dialect:
    """SQL dialect for names and values; standard SQL if the name is None.

    `exact` is the parameter of :meth:`RuleSet.to_sql`.
    """

    name: str | None = None
    exact: bool = False

    @property
    def nan(self) -> bool:
        """Whether comparisons must exclude NaN."""
        return self.exact and self.name not in _WITHOUT_NAN

    def folded(self, name: str) -> str:
        """Return the name in the form in which the database compares it with others."""
        return name if self.name in _CASE_SENSITIVE else name.casefold()

    def identifier(self, name: str, parameter: str) -> str:
        """Write the name of a column or table."""
        if not isinstance(name, str):
            raise TypeError(f"{parameter} must be a name, got {name!r}.")
        _check_text(name, f"The {parameter} name")
        if not name:
            remedy = "columns={feature: column}" if parameter == "feature" else f"a {parameter}"
            raise ValueError(
                f"The {parameter} name is empty, which databases do not allow, got {name!r}. Pass "
                f"{remedy} with another name."
            )
        # SQLite interprets an unknown name in double quotation marks as text.
        mark = "`" if self.name == "sqlite" else '"'
        return f"{mark}{name.replace(mark, 2 * mark)}{mark}"

    def label(self, value: Any) -> str:
        """Write a class label or the value of a category."""
        if isinstance(value, str):
            _check_text(value, "The label")
            if not value and self.name == "oracle":
                raise ValueError(
                    "The rules contain the text '', which Oracle stores as NULL. Use another text "
                    "for it in the rules and in the table."
                )
            return "'" + value.replace("'", "''") + "'"
        if isinstance(value, bool):
            if self.name in _WITHOUT_FLAGS:
                return str(int(value))
            return str(value).upper()
        if isinstance(value, float):
            if math.isinf(value) and self.name in _INFINITE:
                return _INFINITE[self.name].format("-" if value < 0 else "")
            return self.number(value)
        if abs(value) > _MAX_INTEGER:
            raise ValueError(
                f"The label {value!r} exceeds 2**63 - 1 in absolute value. Make the labels texts."
            )
        return str(value)

    def bound(self, value: float) -> str:
        """Write a number to compare with, in the short form if that is equivalent."""
        if value.is_integer() and abs(value) <= _MAX_EXACT_FLOAT32:
            return str(int(value))
        if self.name == "postgres" and abs(value) >= LARGEST_EXACT:
            return self.number(value)  # a literal is a decimal, to which integers are not rounded
        text = self._floating(value)
        plain = text.removesuffix("e0")
        digits = plain.replace(".", "").replace("-", "")
        is_short = digits.isdigit() and len(digits) <= _PLAIN_DIGITS
        return plain if is_short and not self.exact else text

    def number(self, value: float) -> str:
        """Write a number for calculations, which makes the result floating-point."""
        text = self._floating(value)
        return f"FLOAT8 '{text}'" if self.name == "postgres" else text

    def _floating(self, value: float) -> str:
        text = repr(float(value))
        if not math.isfinite(value):
            raise ValueError(
                f"SQL has no number {text}, which is an output of the rules. Give that rule a "
                "finite one."
            )
        if self.name == "sqlite" and value:
            if abs(value) < _MIN_IN_SQLITE:
                raise ValueError(
                    f"SQLite does not read the number {value!r} exactly: it must be 0 or at least "
                    f"{_MIN_IN_SQLITE} in magnitude. Rescale that feature."
                )
            # SQLite rounds twice when it reads numbers. Further digits avoid a wrong result.
            error = abs(Fraction(text) - Fraction(value)) / Fraction(math.ulp(value))
            if error > Fraction(1, 2) - Fraction(1, 256):
                text = f"{value:.17e}"
        return text if "e" in text else f"{text.removesuffix('.0')}e0"


def _check_text(text: str, subject: str) -> None:
    if "\0" in text or any("\ud800" <= character <= "\udfff" for character in text):
        raise ValueError(
            f"{subject} {text!r} contains a character that databases do not store (NUL or half a "
            "surrogate pair). Rename it without this character."
        )


def find_dialect(name: str | None, *, exact: bool = False) -> Dialect:
    """Return the dialect with the given name; raise an error if it is unknown."""
    if name is None or name in _BUILT_IN_DIALECTS:
        return Dialect(name, exact)
    if not isinstance(name, str):
        raise TypeError(f"dialect must be a name or None, got {name!r}.")
    sqlglot = import_optional("sqlglot", extra="sql", purpose=f"Writing SQL for {name!r}")
    dialect_names = {dialect.value for dialect in sqlglot.Dialects if dialect.value}
    check_choice("dialect", name, sorted(dialect_names))
    return Dialect(name, exact)


def translate(text: str, dialect: Dialect) -> str:
    """Translate standard SQL to a dialect that is not written directly."""
    if dialect.name is None or dialect.name in _BUILT_IN_DIALECTS:
        return text
    sqlglot = import_optional("sqlglot", extra="sql", purpose=f"Writing SQL for {dialect.name!r}")
    tree = sqlglot.parse_one(text, read="duckdb")
    if dialect.name == "tsql":
        # Other texts lose characters that are not in the database's code page.
        national = sqlglot.exp.National
        tree = tree.transform(lambda node: national(this=node.this) if node.is_string else node)
    return str(tree.sql(dialect=dialect.name, pretty=True))


#: DuckDB and SQLite limit the depth of expressions to 1000. The depth of a sum is the number of its
#: parts plus the depth of a part, so longer sums are divided into blocks.
_MAX_DEPTH = 920


def _join_in_blocks(parts: Sequence[str], word: str) -> str:
    inner = max((sum(map(part.count, (" AND ", " OR ", " + "))) for part in parts), default=0)
    if len(parts) + inner <= _MAX_DEPTH:
        return word.join(parts)
    size = math.isqrt(len(parts) - 1) + 1
    blocks = [word.join(parts[i : i + size]) for i in range(0, len(parts), size)]
    return word.join(f"({block})" for block in blocks)


def any_premise(premises: Sequence[str]) -> str:
    """Write a test whether any premise holds."""
    return _join_in_blocks(premises, "\n    OR ")


def write_sum(summands: Sequence[str], style: Dialect) -> str:
    """Write a sum that starts with 0, in parentheses."""
    if not summands:
        return style.number(0.0)
    return f"({_join_in_blocks([style.number(0.0), *summands], f'{chr(10)}    + ')})"


class Terms:
    """Writer of the conditions of a rule set on the columns of a table.

    Features in `booleans` have BOOLEAN columns; other columns are compared with 1 and 0 instead of
    TRUE and FALSE, unless `assumes_flags` is set. `kinds` maps features to the kinds of the table's
    columns; comparisons are then exact, as in memory. Rules after a rule that always holds are
    ignored unless `all_rules` is set.
    """

    def __init__(
        self,
        ruleset: RuleSet,
        style: Dialect,
        columns: Mapping[str, str],
        booleans: Sequence[str] = (),
        *,
        kinds: Mapping[str, str] | None = None,
        all_rules: bool = False,
        assumes_flags: bool = False,
    ) -> None:
        booleans = check_sequence("booleans", booleans, "names")
        for parameter, names in (("columns", columns), ("booleans", booleans)):
            for name in names:
                if name not in ruleset.feature_names:
                    raise ValueError(
                        f"{parameter} names the feature {name!r}, which the rules do not have. "
                        f"{did_you_mean(name, ruleset.feature_names)}"
                    )
        self._style = style
        self._names = [str(columns.get(name, name)) for name in ruleset.feature_names]
        order = range(len(ruleset)) if all_rules else rules_in_order(ruleset)
        rules = [ruleset.rules[i] for i in order]
        self._kinds = _column_kinds(rules, ruleset)
        if kinds is None and not assumes_flags:
            # True and False are compared as 1 and 0 unless the column is known to be BOOLEAN.
            for feature in _compared_kinds(rules):
                is_named = ruleset.feature_names[feature] in booleans
                if self._kinds[feature] == "flags" and not is_named:
                    self._kinds[feature] = "bits"
        self._table_kinds: dict[int, str] = {}
        if kinds is not None:
            table_kinds = (kinds.get(name) for name in ruleset.feature_names)
            self._table_kinds = {j: kind for j, kind in enumerate(table_kinds) if kind is not None}
            self._agree_with_table(ruleset.feature_names)
        self._flags = {feature for feature, kind in self._kinds.items() if kind == "flags"}
        self._columns: dict[int, str] = {}
        for feature in sorted(_used_features(rules)):
            self._check_name(feature)
            column = style.identifier(self._names[feature], "feature")
            if ruleset.feature_names[feature] in booleans and feature not in self._flags:
                column = f"CAST({column} AS INTEGER)"
            self._columns[feature] = column

    def _agree_with_table(self, names: Sequence[str]) -> None:
        """Adapt the kinds that rules imply to the table; raise an error if they do not match."""
        for feature, table_kind in self._table_kinds.items():
            kind = self._kinds.get(feature)
            if kind is None or table_kind in ("null", "other"):
                continue
            if table_kind == "any":  # SQLite, whose flags are numbers
                self._kinds[feature] = "numbers" if kind == "flags" else kind
                continue
            if (kind == "texts") != (table_kind == "text"):
                stored = {"text": "texts", "flag": "true and false"}.get(table_kind, "numbers")
                wanted = {"flags": "true and false"}.get(kind, kind)
                raise ColumnKindError(
                    f"Rules compare column {names[feature]!r} with {wanted}, but it holds {stored} "
                    "in",
                    "Convert the column in a view, or extract rules with values of its type.",
                )
            if kind == "flags" and table_kind != "flag":
                self._kinds[feature] = "numbers"

    def _check_name(self, feature: int) -> None:
        name = self._names[feature]
        equal_names = [n for n in self._names if self._style.folded(n) == self._style.folded(name)]
        if len(equal_names) > 1:
            raise ValueError(
                f"The columns {equal_names} are the same in databases that ignore case. Pass "
                "columns={feature: column} with other names, or a dialect that respects case, such "
                "as 'postgres'."
            )

    @property
    def numeric(self) -> tuple[str, ...]:
        """Columns that rules compare with numbers, or with True and False."""
        return tuple(self._names[f] for f, kind in self._kinds.items() if kind != "texts")

    @property
    def texts(self) -> tuple[str, ...]:
        """Columns that rules compare with texts."""
        return tuple(self._names[f] for f, kind in self._kinds.items() if kind == "texts")

    def premise(self, rule: Rule) -> str | None:
        """Write the conditions of a rule, joined by AND; None if it has no conditions."""
        return " AND ".join(self._condition(c) for c in rule.conditions) or None

    def _condition(self, condition: Condition) -> str:
        """Write a condition; if it does not hold, its value may be NULL."""
        if isinstance(condition, Missing):
            holds_if_missing = truth_table(condition).missing
            write = self._is_missing if holds_if_missing else self._is_known
            return write(condition.feature)
        if isinstance(condition, Interval | OneOf):
            comparison = self._comparison(condition)
            if not truth_table(condition).missing:
                return comparison
            return f"({comparison} OR {self._missing_test(condition.feature)})"
        if isinstance(condition, Linear):
            text = self.affine(None, condition.terms)
            return self._between(f"({text})" if len(condition.terms) > 1 else text, condition)
        inner = [self._condition(c) for c in condition.conditions]
        if condition.m == 1:
            return f"({' OR '.join(inner)})"
        if condition.m == len(inner):
            return f"({' AND '.join(inner)})"
        counted = (f"CASE WHEN {text} THEN 1 ELSE 0 END" for text in inner)
        return f"({' + '.join(counted)}) >= {condition.m}"

    def _comparison(self, condition: Interval | OneOf) -> str:
        """Write a condition that missing values do not satisfy."""
        if isinstance(condition, OneOf):
            return self._one_of(condition)
        value = self._number(condition.feature)
        is_large = any(
            LARGEST_EXACT <= abs(end) < math.inf for end in (condition.lower, condition.upper)
        )
        if is_large and self._style.name == "sqlite" and not value.startswith("CAST"):
            value = f"CAST({value} AS REAL)"  # integers are compared as floats, as in memory
        return self._between(value, condition)

    def _number(self, feature: int) -> str:
        """Write a column as a number, rounded to a float as in memory."""
        column = self._columns[feature]
        is_wide = self._table_kinds.get(feature) in ("integer", "any")
        return f"CAST({column} AS FLOAT8)" if is_wide else column

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
        """Write a test whether a number is neither NULL nor NaN."""
        if not self._style.nan:
            return f"{value} IS NOT NULL"
        return f"({value} <= 0 OR 0e0 - {value} <= 0)"

    def _is_known(self, feature: int) -> str:
        """Write a test whether a value is neither NULL nor NaN."""
        column, kind = self._columns[feature], self._kinds.get(feature)
        if kind == "numbers":
            return self.is_number(column)
        if self._may_be_nan(feature):
            return f"({column} IS NOT NULL AND NOT ({self._is_nan(column)}))"
        return f"{column} IS NOT NULL"

    def _is_missing(self, feature: int) -> str:
        """Write a test whether a value is NULL or NaN, in parentheses if it has two parts."""
        text = self._missing_test(feature)
        return f"({text})" if " OR " in text else text

    def _missing_test(self, feature: int) -> str:
        column, kind = self._columns[feature], self._kinds.get(feature)
        if kind == "numbers" and self._style.nan:
            return f"{column} IS NULL OR NOT {self.is_number(column)}"
        if self._may_be_nan(feature):
            return f"{column} IS NULL OR {self._is_nan(column)}"
        return f"{column} IS NULL"

    def _may_be_nan(self, feature: int) -> bool:
        """Return whether a column whose kind the rules do not determine may hold NaN."""
        is_unknown = self._kinds.get(feature) in _UNKNOWN
        has_no_floats = self._table_kinds.get(feature) in ("text", "flag", "integer", "null")
        return self._style.nan and is_unknown and not has_no_floats

    def _is_nan(self, column: str) -> str:
        """Write a test whether a value is NaN; in databases that report types, texts never are."""
        text = f"LOWER(CAST({column} AS VARCHAR)) = 'nan'"
        of_floats = _HOLDS_FLOATS.get(self._style.name or "")
        return text if of_floats is None else f"{text} AND {of_floats.format(column)}"

    def _one_of(self, condition: OneOf) -> str:
        column = self._columns[condition.feature]
        flags = condition.feature in self._flags
        # In a column of numbers, True and False are compared as 1 and 0.
        values = [v if flags or type(v) is not bool else int(v) for v in condition.values]
        values = self._representable(condition, values)
        if self._table_kinds.get(condition.feature) == "number":
            lists = [[self._style.label(value) for value in values]] if values else []
        else:
            lists = _exact_lists(values, self._style)
        parts = [_membership_test(column, written, condition.negated) for written in lists]
        if not parts:  # no value in the column can match
            return self._is_known(condition.feature) if condition.negated else "1 = 0"
        text = f" {'AND' if condition.negated else 'OR'} ".join(parts)
        if len(parts) > 1 and not condition.negated:
            text = f"({text})"
        if (
            condition.negated
            and self._style.nan
            and not flags
            and not isinstance(condition.values[0], str)
        ):
            return f"{text} AND {self._is_known(condition.feature)}"
        return text

    def _representable(self, condition: OneOf, values: Sequence[Any]) -> list[Any]:
        """Return the values that the table's column can hold; others would be rounded."""
        kind = self._table_kinds.get(condition.feature)
        if kind not in ("number", "integer", "any") or isinstance(values[0], str):
            return list(values)
        whole = [int(v) for v in values if math.isfinite(v) and v == int(v)]
        floats = [v for v in values if v not in whole]
        if kind == "integer":
            return [v for v in whole if -(2**63) <= v < 2**64]
        if kind == "any":
            floats += [float(v) for v in whole if abs(v) > _MAX_INTEGER and float(v) == v]
            return [v for v in whole if abs(v) <= _MAX_INTEGER] + floats
        return [
            float(v) for v in (*whole, *floats) if abs(v) <= sys.float_info.max and float(v) == v
        ]

    def affine(self, intercept: float | None, terms: Iterable[tuple[int, float]]) -> str:
        """Write a sum of features in the given order."""
        text = "" if intercept is None else self._style.number(intercept)
        for feature, coefficient in terms:
            column = self._number(feature)
            if text:
                sign = "-" if coefficient < 0 else "+"
                text += f" {sign} {self._style.number(abs(coefficient))} * {column}"
            else:
                text = f"{self._style.number(coefficient)} * {column}"
        return text


def _membership_test(column: str, written: Sequence[str], negated: bool) -> str:
    """Write a test whether a column equals one of the values, or none if `negated`."""
    if len(written) == 1:
        return f"{column} {'<>' if negated else '='} {written[0]}"
    return f"{column} {'NOT IN' if negated else 'IN'} ({', '.join(written)})"


def _exact_lists(values: Sequence[Any], style: Dialect) -> list[list[str]]:
    """Divide values into lists that databases compare exactly with a column of integers.

    If one value of a list is a float, databases compare all values as floats, which rounds large
    integers. DuckDB rounds integers to the 32 bits of a FLOAT column, but not floats. Only built-in
    dialects are known to support integers of more than 64 bits.
    """
    least = _MAX_EXACT_FLOAT32 if style.exact else LARGEST_EXACT
    if not any(not isinstance(v, str) and abs(v) >= least for v in values):
        return [[style.label(value) for value in values]] if values else []
    limit = 2**64 if style.name in _BUILT_IN_DIALECTS else _MAX_INTEGER
    integers: list[str] = []
    floats: list[str] = []
    for value in values:
        if least <= abs(value) < LARGEST_EXACT:
            floats.append(style.label(float(value)))
        elif isinstance(value, float) and value.is_integer() and abs(value) <= limit:
            integers.append(str(int(value)))
        else:
            (floats if isinstance(value, float) else integers).append(style.label(value))
    return [part for part in (integers, floats) if part]


def _kind(value: Any) -> str:
    if isinstance(value, str):
        return "texts"
    return "flags" if isinstance(value, bool) else "numbers"


def _column_kinds(rules: Sequence[Rule], ruleset: RuleSet) -> dict[int, str]:
    """Return the kinds of the columns that rules use: texts, numbers or flags.

    For columns that `rules` only test for missing values, the kind is determined by the other rules
    of the set, which never predict, or by the domain if there is one.
    """
    kinds = _compared_kinds(rules)
    undecided = _used_features(rules) - kinds.keys()
    for feature, value_kinds in _compared_kinds(ruleset.rules).items():
        if feature in undecided:
            kinds[feature] = value_kinds
    for feature, value_kinds in kinds.items():
        if "texts" in value_kinds and len(value_kinds) > 1:
            raise ValueError(
                f"The rules compare feature {ruleset.feature_names[feature]!r} with texts and with "
                "numbers, but a column of a table cannot hold both. Use values of one kind."
            )
    if ruleset.domain is not None:
        for feature in undecided - kinds.keys():
            kinds[feature] = set(map(_kind, ruleset.domain.values_of(feature) or (0.0,)))
    return {
        feature: "texts"
        if "texts" in value_kinds
        else "flags"
        if value_kinds == {"flags"}
        else "numbers"
        for feature, value_kinds in kinds.items()
    }


def _compared_kinds(rules: Sequence[Rule]) -> dict[int, set[str]]:
    """Return the kinds of values that rules compare each column with; numbers if they sum it."""
    kinds: dict[int, set[str]] = {feature: {"numbers"} for feature in _features_in_sums(rules)}
    for condition in flatten_conditions(c for rule in rules for c in rule.conditions):
        if isinstance(condition, Missing):
            continue
        values = condition.values if isinstance(condition, OneOf) else (0.0,)
        for feature in condition.features:
            kinds.setdefault(feature, set()).update(map(_kind, values))
    return kinds


def _used_features(rules: Sequence[Rule]) -> set[int]:
    return _features_in_sums(rules) | {
        f for rule in rules for c in rule.conditions for f in c.features
    }


def _features_in_sums(rules: Sequence[Rule]) -> set[int]:
    """Return the features in the linear outputs and weights of rules."""
    parts = (part for rule in rules for part in (rule.output, rule.weight))
    return {f for part in parts if isinstance(part, LinearOutput) for f, _ in part.terms}


def to_sql(
    ruleset: RuleSet,
    *,
    dialect: str | None,
    table: str | Sequence[str] | None,
    kind: str,
    output_name: str | None,
    columns: Mapping[str, str],
    booleans: Sequence[str] | None,
    exact: bool,
) -> str:
    """Write an expression or a query; see :meth:`RuleSet.to_sql`."""
    check_choice("kind", kind, SQL_KINDS)
    if output_name is not None and table is None:
        raise ValueError(
            f"output_name={output_name!r} names the column of a query, but without table=... only "
            "an expression is written. Pass the table, or name the expression in your query."
        )
    if kind == "assign":
        ruleset.check_one_rule_per_row("to_sql(kind='assign')")
    style = find_dialect(dialect, exact=check_flag("exact", exact))
    assumes_flags = booleans is None and dialect not in _COMPARES_FLAGS
    terms = Terms(ruleset, style, columns, booleans or (), assumes_flags=assumes_flags)
    writer = _Writer(ruleset, style, terms)
    text = writer.rule_number() if kind == "assign" else writer.prediction()
    if table is not None:
        parts = [table] if isinstance(table, str) else list(table)
        path = ".".join(style.identifier(part, "table") for part in parts)
        name = output_name or ("rule" if kind == "assign" else "prediction")
        star = f"{style.identifier(parts[-1], 'table')}.*" if dialect in WITHOUT_STAR else "*"
        text = f"SELECT {star}, {text} AS {style.identifier(name, 'output_name')} FROM {path}"
    return translate(text, style)


@dataclass(frozen=True)
class SqlParts:
    """Parts of queries about a rule set, in standard SQL for a dialect."""

    style: Dialect
    premises: tuple[str, ...]
    rule_number: str | None
    prediction: str | None
    outputs: Mapping[int, str]
    is_number: Callable[[str], str]
    numeric: tuple[str, ...]
    texts: tuple[str, ...]

    def identifier(self, *names: str) -> str:
        """Write the name of a column, or a path of names."""
        return ".".join(self.style.identifier(name, "column") for name in names)


def sql_parts(
    ruleset: RuleSet, *, dialect: str | None, kinds: Mapping[str, str] | None = None
) -> SqlParts:
    """Write the premises of all rules, the prediction, and the linear outputs of rules.

    `kinds` are the kinds of the columns of a table, see :class:`Terms`. Missing values are handled
    as in :meth:`RuleSet.to_sql` with ``exact=True``. If rules vote, `rule_number` is None. If a
    single rule predicts a class, `prediction` is None, because the rule number determines it.
    """
    style = find_dialect(dialect, exact=True)
    booleans = [name for name, kind in (kinds or {}).items() if kind == "flag"]
    booleans = [name for name in booleans if name in ruleset.feature_names]
    terms = Terms(ruleset, style, {}, booleans, kinds=kinds, all_rules=True)
    writer = _Writer(ruleset, style, terms)
    truth = "1 = 1"
    predicts = ruleset.voting is not None or ruleset.classes is None
    return SqlParts(
        style,
        tuple(terms.premise(rule) or truth for rule in ruleset.rules),
        None if ruleset.voting is not None else writer.rule_number(),
        writer.prediction() if predicts else None,
        {
            i: terms.affine(rule.output.intercept, rule.output.terms)
            for i, rule in enumerate(ruleset.rules)
            if isinstance(rule.output, LinearOutput)
        },
        terms.is_number,
        terms.numeric,
        terms.texts,
    )


def _case(branches: Sequence[tuple[str, str]], otherwise: str | None) -> str:
    """Write a CASE expression that selects the value of the first premise that holds."""
    if not branches:
        return otherwise or "NULL"
    lines = [f"  WHEN {premise} THEN {prediction}" for premise, prediction in branches]
    lines += [] if otherwise is None else [f"  ELSE {otherwise}"]
    return "\n".join(["CASE", *lines, "END"])


class _Writer:
    """Writer of the predictions of a rule set as expressions."""

    def __init__(self, ruleset: RuleSet, style: Dialect, terms: Terms) -> None:
        self.ruleset, self.style, self.terms = ruleset, style, terms
        self.rules = rules_in_order(ruleset)
        self.always_predicts = always_predicts(ruleset)
        self.classes = class_labels(ruleset)

    def rule_number(self) -> str:
        """Write the number of the assigned rule."""
        return self._one_by_one([str(i + 1) for i in self.rules], None)

    def prediction(self) -> str:
        """Write the prediction."""
        self._check_labels()
        if self.ruleset.voting is not None:
            return self._vote() if self.ruleset.classes is not None else self._number()
        predictions = [self._output(self.ruleset.rules[i]) for i in self.rules]
        return self._one_by_one(predictions, self._fallback())

    def _one_by_one(self, predictions: Sequence[str], otherwise: str | None) -> str:
        branches: list[tuple[str, str]] = []
        for index, prediction in zip(self.rules, predictions, strict=True):
            premise = self.terms.premise(self.ruleset.rules[index])
            if premise is None:
                return _case(branches, prediction)
            branches.append((premise, prediction))
        return _case(branches, otherwise)

    def _check_labels(self) -> None:
        """Raise a ValueError for labels that a column cannot hold together."""
        if self.ruleset.classes is None:
            return
        labels = list(self.classes)
        fallback = self.ruleset.fallback
        if fallback is not None and fallback.policy == "abstain":
            labels.append(abstention(self.ruleset))
        kinds = {"text" if isinstance(v, str) else type(v) is bool for v in labels}
        if len(kinds) > 1:
            raise ValueError(
                f"The predictions {labels!r} are of different types, which a column cannot hold. "
                "Use labels of one type, or write kind='assign' and look up the predictions by the "
                "rules' numbers."
            )

    def _output(self, rule: Rule) -> str:
        if isinstance(rule.output, LinearOutput):
            return self.terms.affine(rule.output.intercept, rule.output.terms)
        if self.ruleset.classes is None:
            return self.style.number(float(rule.output))
        return self._class(self.ruleset.classes.index(rule.output))

    def _class(self, index: int) -> str:
        return self.style.label(self.classes[index])

    def _fallback(self) -> str | None:
        """Write the prediction for rows that no rule covers; None stands for NULL."""
        fallback, classes = self.ruleset.fallback, self.ruleset.classes
        if fallback is None or (self.always_predicts and self.ruleset.voting != "mean"):
            return None
        if fallback.policy == "nearest" and len(self.ruleset):
            raise ValueError(
                "SQL cannot find the rule with the nearest box, but the fallback has "
                "policy='nearest'. Choose another one: ruleset.replace(fallback=Fallback("
                f"{fallback.output!r})) predicts {fallback.output!r} if no rule holds."
            )
        if fallback.policy == "abstain":
            return None if classes is None else self.style.label(abstention(self.ruleset))
        if classes is None:
            return self.style.number(float(fallback.output))
        return self._class(classes.index(fallback.output))

    def _where_any(self, prediction: str) -> str:
        """Write a prediction for covered rows, and the fallback's output for other rows."""
        if self.always_predicts:
            return prediction
        if not self.rules:
            return self._fallback() or "NULL"
        premises = [self.terms.premise(self.ruleset.rules[i]) or "" for i in self.rules]
        return _case([(any_premise(premises), prediction)], self._fallback())

    def _summand(self, rule: Rule, value: str) -> str:
        premise = self.terms.premise(rule)
        if premise is None:
            return value
        return f"CASE WHEN {premise} THEN {value} ELSE {self.style.number(0.0)} END"

    def _vote(self) -> str:
        summands: list[list[str]] = [[] for _ in self.classes]
        for i in self.rules:
            rule = self.ruleset.rules[i]
            for k, share in class_votes(self.ruleset, i):
                summands[k].append(self._vote_of(rule, share))
        # Of the classes without votes, only the first can be predicted.
        excluded = [k for k, parts in enumerate(summands) if not parts][1:]
        eligible = [k for k in range(len(summands)) if k not in excluded]
        sums = {k: write_sum(summands[k], self.style) for k in eligible}
        branches: list[tuple[str, str]] = []
        for position, k in enumerate(eligible[:-1]):
            rivals = [f"{sums[k]} >= {sums[j]}" for j in eligible[position + 1 :]]
            branches.append((" AND ".join(rivals), self._class(k)))
        return self._where_any(_case(branches, self._class(eligible[-1])) if eligible else "NULL")

    def _vote_of(self, rule: Rule, share: float) -> str:
        if not isinstance(rule.weight, LinearOutput):
            return self._summand(rule, self.style.number(rule.weight * share))
        weight = self.terms.affine(rule.weight.intercept, rule.weight.terms)
        times = f" * {self.style.number(share)}" if self.ruleset.voting == "probabilities" else ""
        # A weight that is unknown because of a missing value does not count.
        weight_known = self.terms.is_number(f"({weight})")
        none = self.style.number(0.0)
        value = f"CASE WHEN {weight_known} THEN ({weight}) ELSE {none} END{times}"
        return self._summand(rule, value)

    def _number(self) -> str:
        totals, weights = [], []
        for i in self.rules:
            rule = self.ruleset.rules[i]
            assert not isinstance(rule.weight, LinearOutput)  # checked by the rule set
            if isinstance(rule.output, LinearOutput):
                value = f"({self._output(rule)})"
                if rule.weight != 1:
                    value = f"{self.style.number(rule.weight)} * {value}"
            else:
                value = self.style.number(rule.weight * float(rule.output))
            totals.append(self._summand(rule, value))
            weights.append(self._summand(rule, self.style.number(rule.weight)))
        total = write_sum(totals, self.style)
        if self.ruleset.voting == "sum":
            return self._where_any(total)
        weight = write_sum(weights, self.style)
        return _case([(f"{weight} > 0", f"{total} / {weight}")], self._fallback())
