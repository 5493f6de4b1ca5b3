"""Connections to tables of databases and to Parquet files."""

from __future__ import annotations

import glob
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit
from uuid import uuid4

from skescore._optional import import_optional
from skescore._text import did_you_mean, listed

__all__ = [
    "ColumnError",
    "SourceError",
    "SqlTable",
    "check_columns",
    "is_spark",
    "is_url",
    "open_parquet",
    "open_spark",
    "open_url",
]

#: Names of dialects in SQLAlchemy and in sqlglot.
_DIALECTS = {"postgresql": "postgres", "mssql": "tsql", "mariadb": "mysql"}
#: Object identifier of the type BOOLEAN in PostgreSQL.
_BOOLEAN_OID = 16
#: Numeric types of DuckDB.
_NUMBERS_OF_DUCKDB = r"U?(TINY|SMALL|BIG|HUGE)?INT|U?INTEGER|FLOAT|DOUBLE|DECIMAL"


class SourceError(OSError):
    """Raised if rows of a source cannot be read; no partial result is returned.

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
    """A table of an open connection."""

    name: str
    source: str
    dialect: str
    columns: tuple[str, ...]
    booleans: frozenset[str]
    run: Callable[[str], Sequence[Any]]
    stream: Callable[[str, int], Iterator[Any]] | None = None

    def fetch(self, query: str) -> Sequence[Any]:
        """Return all rows of a query, or raise a SourceError."""
        with failing(self.name):
            return self.run(query)

    def check_numbers(self, columns: Iterable[str | None]) -> None:
        """Raise a ColumnError for numeric columns in which SQLite also stores texts.

        SQLite sorts texts after all numbers, and casts them to 0.
        """
        names = [column for column in columns if column is not None]
        if self.dialect != "sqlite" or not names:
            return
        quoted = [_path_part(name, "`") for name in names]
        texts = (f"min(CASE WHEN typeof({c}) IN ('text', 'blob') THEN {c} END)" for c in quoted)
        (text_values,) = self.fetch(f"SELECT {', '.join(texts)} FROM {self.source}")
        for column, text in zip(names, text_values, strict=True):
            if text is not None:
                raise ColumnError(
                    f"Column {column!r} of {self.name} must hold numbers, but it holds the text "
                    f"{text!r}. Store a number or NULL in its place, or convert it in a view."
                )

    def read(self, query: str, batch_size: int) -> Iterator[Any]:
        """Iterate over the rows of a query in Arrow batches; only for databases in this process."""
        assert self.stream is not None
        with failing(self.name):
            yield from self.stream(query, batch_size)


class ColumnError(ValueError):
    """Raised if a column does not exist or has the wrong type."""


@contextmanager
def failing(name: str) -> Iterator[None]:
    """Convert errors of drivers to a SourceError that names the source."""
    try:
        yield
    except (SourceError, ColumnError, GeneratorExit):
        raise
    except Exception as error:  # drivers share no class of errors
        text = " ".join(str(error).split())
        raise SourceError(
            f"{name} could not be counted, and no part of it was: {type(error).__name__}: {text}"
        ) from error


def check_columns(
    columns: Sequence[str],
    features: Iterable[str],
    target: str | None,
    weight: str | None,
    name: str,
) -> None:
    """Raise a ColumnError if a column does not exist."""
    required = [("the target", target), *(("the feature", feature) for feature in features)]
    required.append(("the weights", weight))
    for role, column in required:
        if column is not None and column not in columns:
            raise ColumnError(
                f"{name} must have a column for {role} {column!r}, but its columns are "
                f"{listed(columns)}. {did_you_mean(column, columns)}"
            )


def is_url(source: Any) -> bool:
    """Return whether a source is the URL of a database."""
    return isinstance(source, str) and "://" in source


def is_spark(source: Any) -> bool:
    """Return whether a source is a table of Spark."""
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
        flags = frozenset(column for column, kind in types.items() if kind == "boolean")
        yield SqlTable(
            name,
            _path(view),
            "spark",
            tuple(types),
            flags,
            lambda query: [tuple(row) for row in session.sql(query).collect()],
        )
    finally:
        session.catalog.dropTempView(view)


def open_url(url: str) -> AbstractContextManager[SqlTable]:
    """Connect to a table, named by ``table=NAME`` or ``table=SCHEMA.NAME`` in the URL."""
    parts = urlsplit(url)
    options = dict(parse_qsl(parts.query))
    table = options.pop("table", "")
    displayed_url = f"{parts.scheme}://{parts.hostname or ''}{parts.path}"
    if not table:
        raise ValueError(
            f"The URL {displayed_url!r} must name a table, as in '{displayed_url}?table=NAME'. Add "
            "it."
        )
    bare = url.partition("?")[0] + (f"?{urlencode(options)}" if options else "")
    name = f"{displayed_url}?table={table}"
    backend = parts.scheme.partition("+")[0]
    if backend in ("duckdb", "sqlite") and parts.scheme == backend:
        path = unquote(parts.path.removeprefix("/"))
        if not Path(path).is_file():
            raise SourceError(f"There is no database {path!r}. Check the path in {name!r}.")
        if backend == "duckdb":
            return _duckdb(path, table, name)
    if parts.scheme in ("postgresql", "postgres"):
        return _postgresql(bare, table, name)
    return _sqlalchemy(bare, table, name)


def _path(table: str, mark: str = '"') -> str:
    """Quote the name of a table with an optional schema."""
    return ".".join(_path_part(part, mark) for part in table.split("."))


def _path_part(part: str, mark: str = '"') -> str:
    return mark + part.replace(mark, 2 * mark) + mark


@contextmanager
def _duckdb(path: str, table: str, name: str) -> Iterator[SqlTable]:
    duckdb = import_optional("duckdb", extra="sql", purpose=f"Scoring {name}")
    with failing(name):
        connection = duckdb.connect(path, read_only=True)
    try:
        yield _duckdb_table(connection, _path(table), name)
    finally:
        connection.close()


def _duckdb_table(connection: Any, source: str, name: str) -> SqlTable:
    with failing(name):
        connection.execute("BEGIN TRANSACTION")  # all queries see the same rows
        described = connection.execute(f"DESCRIBE SELECT * FROM {source}").fetchall()
    columns = tuple(row[0] for row in described)
    flags = frozenset(row[0] for row in described if row[1] == "BOOLEAN")
    return SqlTable(
        name,
        source,
        "duckdb",
        columns,
        flags,
        lambda query: connection.execute(query).fetchall(),
        lambda query, size: connection.sql(query).to_arrow_reader(size),
    )


def parquet_files(source: str | Path) -> list[str]:
    """Return the sorted paths of a Parquet file, folder or glob."""
    path = Path(source)
    if path.is_dir():
        paths = sorted(str(file) for file in path.rglob("*.parquet"))
    else:
        paths = [str(path)] if path.is_file() else sorted(glob.glob(str(source), recursive=True))
    if not paths:
        raise SourceError(f"There is no Parquet file at {str(source)!r}. Check the path.")
    return paths


def _rows_of_parquet(connection: Any, files: Sequence[str], name: str) -> str:
    """Return the relation of several files; by default, DuckDB would use the types of the first."""
    quoted = ["'" + path.replace("'", "''") + "'" for path in files]
    listed_files = f"[{', '.join(quoted)}]"
    if len(files) == 1:
        return f"read_parquet({listed_files})"
    written = connection.execute(
        "SELECT name, min(file_name), count(DISTINCT file_name) FROM parquet_schema("
        f"{listed_files}) GROUP BY name, type, converted_type, logical_type"
    ).fetchall()
    types: dict[str, dict[str, str]] = {}  # of one file for each combination of types
    for file in [files[0], *sorted({row[1] for row in written} - {files[0]})]:
        path = file.replace("'", "''")
        description = connection.execute(
            f"DESCRIBE SELECT * FROM read_parquet('{path}')"
        ).fetchall()
        types[file] = {row[0]: row[1] for row in description}
    columns, mixed = types[files[0]], False
    stored = {row[0] for row in written} & set(columns)  # other columns come from names of folders
    for column, kind in columns.items():
        for file, file_types in types.items():
            file_type = file_types.get(column, kind) if column in stored else kind
            if file_type != kind:
                mixed = True
                if '"NULL"' not in (kind, file_type):  # all values of the file are missing
                    check_types(name, column, {files[0]: kind, file: file_type}, _NUMBERS_OF_DUCKDB)
    if not mixed:
        return f"read_parquet({listed_files})"
    for column in stored:  # DuckDB would fill a missing column with NULL
        if sum(row[2] for row in written if row[0] == column) < len(files):
            raise ColumnError(f"Some files of {name} have no column {column!r}. Add it.")
    chosen = ", ".join(map(_path_part, columns))
    return f"(SELECT {chosen} FROM read_parquet({listed_files}, union_by_name = true)) AS files"


def check_types(name: str, column: str, kinds: Mapping[str, str], numbers: str) -> None:
    """Raise a ColumnError if the types of a column in several files are not all numeric."""
    if not all(re.match(numbers, kind) for kind in kinds.values()):
        type_list = " and ".join(f"{kind} in {file}" for file, kind in kinds.items())
        raise ColumnError(
            f"Column {column!r} of {name} must have one type in all files, but it is {type_list}. "
            "Write the files with one type."
        )


@contextmanager
def open_parquet(source: str | Path, memory: str | None = None) -> Iterator[SqlTable]:
    """Open Parquet files with DuckDB."""
    duckdb = import_optional("duckdb", extra="sql", purpose=f"Scoring {source} by DuckDB")
    files, name = parquet_files(source), str(source)
    connection = duckdb.connect(config={} if memory is None else {"memory_limit": memory})
    try:
        with failing(name):
            rows = _rows_of_parquet(connection, files, name)
        yield _duckdb_table(connection, rows, name)
    finally:
        connection.close()


@contextmanager
def _postgresql(url: str, table: str, name: str) -> Iterator[SqlTable]:
    psycopg = import_optional("psycopg", extra="postgresql", purpose=f"Scoring {name}")
    with failing(name):
        connection = psycopg.connect(url)
        # All queries see the same rows.
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        connection.read_only = True
    try:
        source = _path(table)
        with failing(name):
            described = connection.execute(f"SELECT * FROM {source} LIMIT 0").description
        columns = tuple(column.name for column in described or ())
        flags = frozenset(c.name for c in described or () if c.type_code == _BOOLEAN_OID)
        yield SqlTable(
            name,
            source,
            "postgres",
            columns,
            flags,
            lambda query: connection.execute(query).fetchall(),
        )
    finally:
        connection.close()


@contextmanager
def _sqlalchemy(url: str, table: str, name: str) -> Iterator[SqlTable]:
    sqlalchemy = import_optional("sqlalchemy", extra="sql", purpose=f"Scoring {name}")
    with failing(name):
        engine = sqlalchemy.create_engine(url)
    try:
        with failing(name):
            connection = engine.connect()
        with connection:
            schema, _, bare = table.rpartition(".")
            with failing(name):
                descriptions = sqlalchemy.inspect(connection).get_columns(
                    bare, schema=schema or None
                )
            flags = {c["name"] for c in descriptions if isinstance(c["type"], sqlalchemy.Boolean)}
            dialect = _DIALECTS.get(engine.dialect.name, engine.dialect.name)
            # Queries are written in standard SQL, except for SQLite, and then translated.
            source = _path(table, "`" if dialect == "sqlite" else '"')
            yield SqlTable(
                name,
                source,
                dialect,
                tuple(c["name"] for c in descriptions),
                frozenset() if dialect == "sqlite" else frozenset(flags),
                lambda query: connection.exec_driver_sql(query).fetchall(),
            )
    finally:
        engine.dispose()
