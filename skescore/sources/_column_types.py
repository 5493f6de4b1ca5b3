"""Types of database columns, and expressions that give their values the same meaning everywhere.

The guide documents this meaning (``docs/guide/sources.md``). Each table is read through a subquery
that converts every column, so no other query depends on column types.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

Kind = Literal["text", "flag", "number", "integer", "null", "any", "other"]

#: Numeric types of Arrow.
NUMBERS_OF_ARROW = "u?int|float|double|halffloat|decimal"
#: Numeric types of DuckDB.
NUMBERS_OF_DUCKDB = r"U?(TINY|SMALL|BIG|HUGE)?INT|U?INTEGER|FLOAT|DOUBLE|DECIMAL"

#: Largest number of decimal digits for which one division yields the nearest float.
_EXACT_DIGITS = 15
_TEXT = "CAST({} AS TEXT) COLLATE "
#: DuckDB expression that converts wider integers to 64 bits, or raises an error; its fields are the
#: quoted column, the column within a literal, and the remedy.
_CHECKED_INTEGER = (
    "COALESCE(TRY_CAST({0} AS BIGINT), CASE WHEN {0} IS NOT NULL THEN CAST(error("
    "'The integers of column {text} must lie from -2^63 to 2^63 - 1, but one does not. {remedy}') "
    "AS BIGINT) END)"
)


def checked_integer(remedy: str) -> str:
    """Return a DuckDB expression that converts integers to 64 bits, or raises an error."""
    return _CHECKED_INTEGER.replace("{remedy}", remedy)


@dataclass(frozen=True)
class ColumnType:
    """Type of a column of a database.

    Parameters
    ----------
    kind : str
        ``"text"``, ``"flag"``, ``"number"`` (floats, or integers that floats represent exactly),
        ``"integer"`` (of up to 64 bits), ``"null"`` (all values are missing), ``"any"`` (each value
        has its own type, in SQLite), or ``"other"``, which neither rules nor labels support.
    name : str
        Name of the type in the database, for messages.
    expression : str
        SQL expression that converts the column; ``{}`` is the quoted column, and ``{text}`` the
        same within a literal.
    """

    kind: Kind
    name: str
    expression: str = "{}"


def type_of_decimal(name: str, digits: int | None) -> ColumnType:
    """Return the type of a decimal column, whose values are converted to the nearest floats."""
    if digits is not None and digits <= _EXACT_DIGITS:
        return ColumnType("number", name, "CAST({} AS FLOAT8)")
    # Databases may round twice, unless they parse the digits.
    return ColumnType("number", name, "CAST(CAST({} AS VARCHAR) AS FLOAT8)")


def type_of_duckdb(name: str) -> ColumnType:
    """Return the type of a DuckDB column from its name."""
    if name == "BOOLEAN":
        return ColumnType("flag", name)
    if name == '"NULL"':
        return ColumnType("null", name)
    if name == "VARCHAR":
        return ColumnType("text", name, "{} COLLATE C")
    if name.startswith("ENUM"):
        return ColumnType("text", name, "CAST({} AS VARCHAR) COLLATE C")
    if name in ("BIGINT", "UBIGINT"):
        return ColumnType("integer", name)
    if name == "FLOAT":
        return ColumnType("number", name, "CAST({} AS FLOAT8)")
    if name in ("HUGEINT", "UHUGEINT"):
        remedy = "CAST the column to DOUBLE, or to VARCHAR, in a view."
        return ColumnType("integer", name, checked_integer(remedy))
    if decimal := re.fullmatch(r"DECIMAL\((\d+),\d+\)", name):
        return type_of_decimal(name, int(decimal[1]))
    if re.fullmatch(NUMBERS_OF_DUCKDB, name):
        return ColumnType("number", name)
    return ColumnType("other", name)


def type_of_spark(name: str) -> ColumnType:
    """Return the type of a Spark column from its name; text with a collation is not supported."""
    if name in ("boolean", "string", "bigint", "void"):
        kinds: dict[str, Kind] = {"boolean": "flag", "string": "text", "bigint": "integer"}
        return ColumnType(kinds.get(name, "null"), name)
    if name in ("tinyint", "smallint", "int", "float", "double"):
        return ColumnType("number", name, "CAST({} AS FLOAT8)" if name == "float" else "{}")
    if decimal := re.fullmatch(r"decimal\((\d+),\d+\)", name):
        return type_of_decimal(name, int(decimal[1]))
    return ColumnType("other", name)


_NAMES_OF_POSTGRESQL: Mapping[str, ColumnType] = {
    "boolean": ColumnType("flag", "boolean"),
    "smallint": ColumnType("number", "smallint"),
    "integer": ColumnType("number", "integer"),
    "bigint": ColumnType("integer", "bigint"),
    "oid": ColumnType("integer", "oid", "CAST({} AS BIGINT)"),
    "real": ColumnType("number", "real", "CAST({} AS FLOAT8)"),
    "numeric": ColumnType("number", "numeric", "CAST({} AS FLOAT8)"),
    "double precision": ColumnType("number", "double precision"),
    **{
        name: ColumnType("text", name, _TEXT + '"C"')
        for name in ("text", "character varying", "name", "citext", "public.citext")
    },
}


def type_of_postgresql(name: str, *, is_enum: bool = False) -> ColumnType:
    """Return the type of a PostgreSQL column; CHAR(n), which pads values, is not supported."""
    if is_enum:
        return ColumnType("text", name, _TEXT + '"C"')
    return _NAMES_OF_POSTGRESQL.get(name, ColumnType("other", name))


#: Databases whose comparisons ignore case or trailing blanks unless a collation prevents it.
_FOLDING_DIALECTS = ("mysql", "tsql")


def type_of_sqlalchemy(sql_type: Any, dialect: str, types: Any) -> ColumnType:
    """Return the type of a column from its description by SQLAlchemy.

    Parameters
    ----------
    declared : object
        SQLAlchemy's description of the type.
    dialect : str
        Name of the database.
    types : module
        ``sqlalchemy.types``.
    """
    name = str(sql_type) if type(sql_type).__name__ != "NullType" else "an unknown type"
    if dialect == "sqlite":
        return ColumnType("any", name, "{} COLLATE BINARY")
    if isinstance(sql_type, types.Boolean):
        return ColumnType("flag", name)
    if isinstance(sql_type, types.String) and not isinstance(sql_type, types.LargeBinary):
        if dialect in _FOLDING_DIALECTS or (dialect == "postgres" and name.startswith("CHAR")):
            return ColumnType("other", name)
        return ColumnType("text", name, _TEXT + '"C"' if dialect == "postgres" else "{}")
    if isinstance(sql_type, types.Integer):
        return ColumnType("integer", name)
    if isinstance(sql_type, types.Float):
        return ColumnType("number", name, "CAST({} AS FLOAT8)")
    if isinstance(sql_type, types.Numeric):
        if dialect == "postgres":
            return type_of_postgresql("numeric")
        return type_of_decimal(name, sql_type.precision)
    return ColumnType("other", name)


def selected_columns(
    source: str, columns: Iterable[str], types: Mapping[str, ColumnType], mark: str
) -> str:
    """Return a subquery that converts the columns of a relation."""
    expressions = []
    for column in dict.fromkeys(columns):
        identifier = mark + column.replace(mark, 2 * mark) + mark
        expression = types[column].expression.format(identifier, text=identifier.replace("'", "''"))
        expressions.append(f"{expression} AS {identifier}")
    return f"(SELECT {', '.join(expressions)} FROM {source}) AS typed_rows"
