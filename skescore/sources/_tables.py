"""Connections to tables of databases and to Parquet files."""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit
from uuid import uuid4

from skescore._optional import import_optional
from skescore._text import did_you_mean, listed
from skescore.sources._column_types import (
    ColumnType,
    selected_columns,
    type_of_duckdb,
    type_of_postgresql,
    type_of_spark,
    type_of_sqlalchemy,
)

__all__ = [
    "ColumnError",
    "SourceError",
    "SqlTable",
    "check_columns",
    "check_weights",
    "is_spark",
    "is_url",
    "open_spark",
    "open_url",
]

#: Names of dialects in SQLAlchemy and in sqlglot.
_DIALECTS = {"postgresql": "postgres", "mssql": "tsql", "mariadb": "mysql"}
#: Isolation levels in which all queries of a transaction see the same rows.
_SNAPSHOT_LEVELS = {
    "postgresql": "REPEATABLE READ",
    "mysql": "REPEATABLE READ",
    "mariadb": "REPEATABLE READ",
    "mssql": "SERIALIZABLE",
    "oracle": "SERIALIZABLE",
}
#: Names of column types by their identifiers.
_TYPES_OF_POSTGRESQL = (
    "SELECT oid, format_type(oid, NULL), typtype FROM pg_type WHERE oid = ANY(%s)"
)


class SourceError(OSError):
    """Error for a source whose rows cannot be read; no partial result is returned.

    Examples
    --------
    >>> from skescore.sources import SourceError
    >>> raise SourceError("The connection is lost.")
    Traceback (most recent call last):
        ...
    skescore.sources._tables.SourceError: The connection is lost.
    """


@dataclass(frozen=True)
class SqlTable:
    """A table of an open connection.

    Parameters
    ----------
    name : str
        Name of the source in messages.
    source : str
        Relation in SQL.
    dialect : str
        Dialect of queries.
    types : mapping of str to ColumnType
        Type of each column.
    run : callable
        Function that returns all rows of a query.
    stream : callable, optional
        Function that reads a query in Arrow batches; only for databases in this process.
    random : str
        SQL expression of a random number from 0 to 1; ``{}`` is the seed.
    """

    name: str
    source: str
    dialect: str
    types: Mapping[str, ColumnType]
    run: Callable[[str], Sequence[Any]]
    stream: Callable[[str, int], Iterator[Any]] | None = None
    random: str = "random()"

    @property
    def columns(self) -> list[str]:
        """Names of the columns."""
        return list(self.types)

    def typed_rows(self, columns: Iterable[str]) -> str:
        """Return a relation whose columns have the same meaning in all databases."""
        mark = "`" if self.dialect == "sqlite" else '"'
        return selected_columns(self.source, columns, self.types, mark)

    def fetch(self, query: str) -> Sequence[Any]:
        """Return all rows of a query, or raise a SourceError."""
        with failing(self.name):
            return self.run(query)

    def check_labels(self, column: str) -> None:
        """Raise a ColumnError if a column cannot hold labels."""
        if self.types[column].kind == "other":
            raise ColumnError(
                f"The target {column!r} of {self.name} must hold strings, numbers or booleans, but "
                f"its type is {self.types[column].name}. Convert it in a view, for example by CAST "
                "to a string or a number."
            )
        self.check_values(blobs=[column])

    def check_values(
        self,
        numbers: Iterable[str] = (),
        texts: Iterable[str] = (),
        blobs: Iterable[str] = (),
    ) -> None:
        """Raise a ColumnError if columns of SQLite hold values of an unexpected type.

        SQLite sorts strings after all numbers, casts them to 0, and converts strings that are
        compared with numeric columns.

        Parameters
        ----------
        numbers, texts, blobs : iterable of str
            Columns that must hold numbers, columns that must hold strings, and columns that must
            not hold bytes.
        """
        checks = [
            *((column, "numbers", "'text', 'blob'") for column in numbers),
            *((column, "texts", "'integer', 'real', 'blob'") for column in texts),
            *((column, "texts or numbers", "'blob'") for column in blobs),
        ]
        if self.dialect != "sqlite" or not checks:
            return
        examples = []
        for column, _, kinds in checks:
            name = _quote_name(column, "`")
            examples.append(f"min(CASE WHEN typeof({name}) IN ({kinds}) THEN {name} END)")
        (values,) = self.fetch(f"SELECT {', '.join(examples)} FROM {self.source}")
        for (column, value_kind, _), value in zip(checks, values, strict=True):
            if value is not None:
                kind = "number"
                if isinstance(value, str | bytes):
                    kind = "text" if isinstance(value, str) else "bytes"
                raise ColumnError(
                    f"Column {column!r} of {self.name} must hold {value_kind}, but it holds the "
                    f"{kind} {value!r}. Store another value or NULL in its place, or convert it "
                    "in a view."
                )

    def read(self, query: str, batch_size: int) -> Iterator[Any]:
        """Yield the rows of a query in Arrow batches; only for databases in this process."""
        assert self.stream is not None
        with failing(self.name):
            yield from self.stream(query, batch_size)


class ColumnError(ValueError):
    """Error for a column that does not exist or has the wrong type."""


@contextmanager
def failing(name: str) -> Iterator[None]:
    """Convert errors of drivers to a SourceError that names the source."""
    try:
        yield
    except (SourceError, ColumnError, GeneratorExit):
        raise
    except Exception as error:  # drivers have no common base class of errors
        text = " ".join(str(error).split())
        raise SourceError(
            f"{name} could not be read, and no partial result was used: {type(error).__name__}: "
            f"{text}"
        ) from error


def check_columns(
    columns: Sequence[str],
    features: Iterable[str],
    target: str | None,
    weight: str | None,
    name: str,
) -> None:
    """Raise a ColumnError if a column does not exist."""
    columns_by_role = [("the target", target), *(("the feature", feature) for feature in features)]
    columns_by_role.append(("the weights", weight))
    for role, column in columns_by_role:
        if column is not None and column not in columns:
            raise ColumnError(
                f"{name} must have a column for {role} {column!r}, but its columns are "
                f"{listed(columns)}. {did_you_mean(column, columns)}"
            )
        if column is not None and list(columns).count(column) > 1:
            raise ColumnError(
                f"{name} must have one column for {role} {column!r}, but several have this name. "
                "Rename or drop all but one of them."
            )


def check_weights(name: str, n_missing: int, low: float, high: float) -> None:
    """Raise a SourceError if weights are missing, negative or infinite; NaN is infinite."""
    if n_missing or not (low >= 0 and high < math.inf):
        problem = f"are missing in {n_missing} rows" if n_missing else f"range from {low} to {high}"
        raise SourceError(
            f"The weights of {name} must be finite and not negative, but they {problem}. "
            "Exclude such rows, or give them the weight 0."
        )


def is_url(source: Any) -> bool:
    """Return whether a source is the URL of a database."""
    return isinstance(source, str) and "://" in source


def is_spark(source: Any) -> bool:
    """Return whether a source is a Spark table."""
    return type(source).__module__.partition(".")[0] == "pyspark" and hasattr(
        source, "sparkSession"
    )


@contextmanager
def open_spark(frame: Any) -> Iterator[SqlTable]:
    """Query a Spark table through its session."""
    session, view, name = frame.sparkSession, f"skescore_{uuid4().hex}", "the Spark table"
    with failing(name):
        frame.createOrReplaceTempView(view)
        types = dict(frame.dtypes)
    try:
        yield SqlTable(
            name,
            _quote_table(view),
            "spark",
            {column: type_of_spark(kind) for column, kind in types.items()},
            lambda query: [tuple(row) for row in session.sql(query).collect()],
            random="rand({})",
        )
    finally:
        session.catalog.dropTempView(view)


def open_url(url: str) -> AbstractContextManager[SqlTable]:
    """Connect to a table, named by ``table=NAME`` or ``table=SCHEMA.NAME`` in the URL."""
    url_parts = urlsplit(url)
    options = dict(parse_qsl(url_parts.query))
    table = options.pop("table", "")
    displayed_url = f"{url_parts.scheme}://{url_parts.hostname or ''}{url_parts.path}"
    if not table:
        raise ValueError(
            f"The URL {displayed_url!r} must name a table, as in '{displayed_url}?table=NAME'. Add "
            "it."
        )
    base_url = url.partition("?")[0] + (f"?{urlencode(options)}" if options else "")
    name = f"{displayed_url}?table={table}"
    backend = url_parts.scheme.partition("+")[0]
    if backend in ("duckdb", "sqlite") and url_parts.scheme == backend:
        path = unquote(url_parts.path.removeprefix("/"))
        if not Path(path).is_file():
            raise SourceError(f"There is no database {path!r}. Check the path in {name!r}.")
        return (_open_duckdb if backend == "duckdb" else _open_sqlite)(path, table, name)
    if url_parts.scheme in ("postgresql", "postgres"):
        return _open_postgresql(base_url, table, name)
    return _open_sqlalchemy(base_url, table, name)


def _quote_table(table: str, mark: str = '"') -> str:
    """Quote the name of a table with an optional schema."""
    return ".".join(_quote_name(part, mark) for part in table.split("."))


def _quote_name(part: str, mark: str = '"') -> str:
    return mark + part.replace(mark, 2 * mark) + mark


@contextmanager
def _open_duckdb(path: str, table: str, name: str) -> Iterator[SqlTable]:
    duckdb = import_optional("duckdb", extra="sql", purpose=f"Scoring {name}")
    with failing(name):
        connection = duckdb.connect(path, read_only=True)
    try:
        yield duckdb_table(connection, _quote_table(table), name)
    finally:
        connection.close()


def duckdb_table(connection: Any, source: str, name: str) -> SqlTable:
    """Return the table that `source` names in an open DuckDB connection."""
    with failing(name):
        connection.execute("BEGIN TRANSACTION")  # all queries see the same rows
        columns = connection.execute(f"DESCRIBE SELECT * FROM {source}").fetchall()
    return SqlTable(
        name,
        source,
        "duckdb",
        {name: type_of_duckdb(type_name) for name, type_name, *_ in columns},
        lambda query: connection.execute(query).fetchall(),
        lambda query, size: connection.sql(query).to_arrow_reader(size),
    )


@contextmanager
def _open_sqlite(path: str, table: str, name: str) -> Iterator[SqlTable]:
    with failing(name):
        uri = f"{Path(path).absolute().as_uri()}?mode=rw"
        raw_connection = sqlite3.connect(uri, uri=True, isolation_level=None)
    generators: dict[int, Random] = {}

    def random_number(seed: int) -> float:
        return generators.setdefault(seed, Random(seed)).random()

    def run(query: str) -> list[Any]:
        generators.clear()
        return connection.execute(query).fetchall()

    with closing(raw_connection) as connection:
        with failing(name):
            connection.create_function("skescore_random", 1, random_number)
            connection.execute("PRAGMA query_only = ON")
            connection.execute("BEGIN")  # all queries see the same rows
            source = _quote_table(table, "`")
            columns = connection.execute(f"SELECT * FROM {source} LIMIT 0").description
        yield SqlTable(
            name,
            source,
            "sqlite",
            {row[0]: ColumnType("any", "any", "{} COLLATE BINARY") for row in columns},
            run,
            random="skescore_random({})",
        )


@contextmanager
def _open_postgresql(url: str, table: str, name: str) -> Iterator[SqlTable]:
    psycopg = import_optional("psycopg", extra="postgresql", purpose=f"Scoring {name}")
    with failing(name):
        connection = psycopg.connect(url)
        # All queries see the same rows.
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        connection.read_only = True
    try:
        source = _quote_table(table)
        with failing(name):
            columns = connection.execute(f"SELECT * FROM {source} LIMIT 0").description or ()
            codes = [column.type_code for column in columns]
            rows = connection.execute(_TYPES_OF_POSTGRESQL, (codes,)).fetchall()
        type_of_code = {code: (type_name, form in ("e", b"e")) for code, type_name, form in rows}
        types = {}
        for column in columns:
            type_name, is_enum = type_of_code[column.type_code]
            types[column.name] = type_of_postgresql(type_name, is_enum=is_enum)
        yield SqlTable(
            name, source, "postgres", types, lambda query: connection.execute(query).fetchall()
        )
    finally:
        connection.close()


@contextmanager
def _open_sqlalchemy(url: str, table: str, name: str) -> Iterator[SqlTable]:
    sqlalchemy = import_optional("sqlalchemy", extra="sql", purpose=f"Scoring {name}")
    with failing(name):
        engine = sqlalchemy.create_engine(url)
    try:
        with failing(name):
            level = _SNAPSHOT_LEVELS.get(engine.dialect.name)
            connection = engine.connect()
            if level is not None:
                connection = connection.execution_options(isolation_level=level)
        with connection:
            schema, _, table_name = table.rpartition(".")
            with failing(name):
                descriptions = sqlalchemy.inspect(connection).get_columns(
                    table_name, schema=schema or None
                )
            dialect = _DIALECTS.get(engine.dialect.name, engine.dialect.name)
            types = {
                c["name"]: type_of_sqlalchemy(c["type"], dialect, sqlalchemy.types)
                for c in descriptions
            }
            if dialect == "sqlite":
                connection.exec_driver_sql("BEGIN")  # the driver begins no transaction before DML
            # Queries are written in standard SQL, except for SQLite, and then translated.
            source = _quote_table(table, "`" if dialect == "sqlite" else '"')
            yield SqlTable(
                name,
                source,
                dialect,
                types,
                lambda query: connection.exec_driver_sql(query).fetchall(),
                random="((random() & 1048575) / 1048576.0)" if dialect == "sqlite" else "random()",
            )
    finally:
        engine.dispose()
