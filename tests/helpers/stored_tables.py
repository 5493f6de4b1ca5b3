"""Tables of generated values, stored in every database and file format in many layouts.

A column has a kind (number, code, big, text or flag) and a list of Python values, None where
there is none. Storing it may choose a type that holds other values, such as single precision; then
the list is changed to the values that are stored.
"""

from __future__ import annotations

import math
import os
import re
import shutil
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet
from attempts import pick

LABEL, WEIGHT = "the label", "the weight"
#: Types of Arrow that hold the values of each kind.
WHOLE = [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32()]


@dataclass
class StoredColumn:
    """A column of a table."""

    name: str
    kind: str
    values: list[Any]


@dataclass
class StoredTable:
    """Columns of features, labels and weights."""

    features: list[StoredColumn]
    label: StoredColumn
    weight: StoredColumn | None
    #: Options of the DataSource.
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def columns(self) -> list[StoredColumn]:
        """All columns."""
        return [*self.features, self.label, *([self.weight] if self.weight else [])]

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.label.values)


def fits(values: list[Any], low: int, high: int) -> bool:
    return all(value is None or low <= value <= high for value in values)


def in_single_precision(column: StoredColumn) -> None:
    with np.errstate(over="ignore"):
        column.values = [None if v is None else float(np.float32(v)) for v in column.values]


def decimal_digits(values: list[Any]) -> int | None:
    """Return the number of decimals of values that a DECIMAL(38, n) holds exactly."""
    decimals = [Decimal(repr(v)) for v in values if v is not None]
    if not all(v.is_finite() and abs(v) < 10**9 for v in decimals):
        return None
    digits = max((-int(v.as_tuple().exponent) for v in decimals), default=0)
    return max(digits, 0) if digits <= 24 else None


def whole_types(values: list[Any]) -> list[str]:
    """Return names of types of whole numbers of so many bits that hold all values."""
    types = [f"int{b}" for b in (8, 16, 32, 64) if fits(values, -(2 ** (b - 1)), 2 ** (b - 1) - 1)]
    return types + [f"uint{b}" for b in (8, 16, 32, 64) if fits(values, 0, 2**b - 1)]


# --- Arrow ----------------------------------------------------------------------------------------


def as_arrow(rng: np.random.Generator, column: StoredColumn) -> pa.Array:
    """Return a column in one of Arrow's types."""
    values = column.values
    if column.kind == "flag":
        return pa.array(values, pa.bool_())
    if column.kind == "text":
        kind = pick(rng, ["string", "large_string", "dictionary"])
        array = pa.array(values, pa.large_string() if kind == "large_string" else pa.string())
        return array.dictionary_encode() if kind == "dictionary" else array
    if column.kind in ("code", "big"):
        return pa.array(values, getattr(pa, pick(rng, whole_types(values)))())
    kind = pick(rng, ["float64", "float64", "float32", "decimal"])
    if kind == "decimal" and (digits := decimal_digits(values)) is not None:
        decimals = [None if v is None else Decimal(repr(v)) for v in values]
        # Arrow's own type of the digits 0 ... 9 is the one that files hold.
        return pa.array(decimals, pa.decimal128(38, digits))
    if kind == "float32":
        in_single_precision(column)
        return pa.array(column.values, pa.float32())
    # Some missing values are NaN, the others NULL.
    numbers = [math.nan if v is None and rng.random() < 0.5 else v for v in values]
    return pa.array(numbers, pa.float64(), from_pandas=False)


def arrow_table(rng: np.random.Generator, table: StoredTable) -> pa.Table:
    """Return the columns in any order."""
    columns = table.columns
    order = rng.permutation(len(columns)).tolist()
    arrays = {column.name: as_arrow(rng, column) for column in columns}
    return pa.table({columns[j].name: arrays[columns[j].name] for j in order})


def in_arrow(rng: np.random.Generator, table: StoredTable, folder: Path) -> Any:
    rows = arrow_table(rng, table)
    layout = pick(rng, ["table", "batches", "chunks", "reader", "dataset"])
    if layout == "table":
        return rows
    pieces = rows.to_batches(max_chunksize=int(rng.integers(1, 5)))
    if layout == "chunks":
        return pa.Table.from_batches(pieces, rows.schema)
    if layout == "dataset":
        return pyarrow.dataset.dataset([rows.slice(0, 2), rows.slice(2)], schema=rows.schema)
    return pieces if layout == "batches" else lambda: iter(pieces)


def in_pandas(rng: np.random.Generator, table: StoredTable, folder: Path) -> Any:
    rows = arrow_table(rng, table)
    mapper = pd.ArrowDtype if rng.random() < 0.4 else None
    frame = rows.to_pandas(types_mapper=mapper, integer_object_nulls=True)
    frame = frame.set_axis(rng.permutation(len(frame)), axis=0)
    cut = int(rng.integers(len(frame) + 1))
    return pick(rng, [frame, [frame[:cut], frame[cut:]], lambda: iter([frame[:cut], frame[cut:]])])


def in_polars(rng: np.random.Generator, table: StoredTable, folder: Path) -> Any:
    frame = pl.from_arrow(arrow_table(rng, table))
    assert isinstance(frame, pl.DataFrame)
    layout = pick(rng, ["frame", "lazy", "scan", "list"])
    if layout == "scan":
        path = folder / "rows.parquet"
        frame.write_parquet(path)
        return pl.scan_parquet(path, glob=False)
    return {"frame": frame, "lazy": frame.lazy(), "list": [frame[:2], frame[2:]]}[layout]


def in_dask(rng: np.random.Generator, table: StoredTable, folder: Path) -> Any:
    import dask
    import dask.dataframe

    rows = arrow_table(rng, table)
    frame = rows.to_pandas(types_mapper=pd.ArrowDtype if rng.random() < 0.5 else None)
    for column in table.columns:  # pandas alone would round them
        if column.kind in ("code", "big") and frame[column.name].dtype.kind == "f":
            frame[column.name] = pd.array(column.values, dtype="Int64")
    with dask.config.set({"dataframe.convert-string": False}):
        return dask.dataframe.from_pandas(frame, npartitions=int(rng.integers(1, 4)), sort=False)


# --- Parquet --------------------------------------------------------------------------------------

FILE_NAMES = ["a", "a[1]", "a*", "a?", "it's", "{a,b}", "x=5", "year=2024", "B", "part-0", "é"]


def in_parquet(rng: np.random.Generator, table: StoredTable, folder: Path) -> Any:
    """Write several files whose types differ as far as they may, beside files that do not count."""
    root = folder / pick(rng, ["data", "_data", "data[1]", "x=7", ".data"])
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir()
    cut = int(rng.integers(table.n_rows + 1)) if rng.random() < 0.6 else table.n_rows
    rows, paths = arrow_table(rng, table), []
    pieces = [rows] if cut == table.n_rows else [rows.slice(0, cut), rows.slice(cut)]
    for number, piece in enumerate(pieces):
        piece = retyped(rng, piece, table) if number else piece
        parent = root / pick(rng, ["", "", "deep", "x=5", "deep/y=1"])
        parent.mkdir(parents=True, exist_ok=True)
        suffix = pick(rng, [".parquet", ".parquet", ".PARQUET", "", ".parq"])
        paths.append(parent / f"{pick(rng, FILE_NAMES)} {number}{suffix}")
        pyarrow.parquet.write_table(
            piece.select(rng.permutation(piece.column_names).tolist()),
            paths[-1],
            row_group_size=int(rng.integers(1, 6)),
            use_dictionary=bool(rng.integers(2)),
            write_statistics=bool(rng.integers(2)),
        )
    for name in ("_SUCCESS", ".part.crc", "_temporary"):
        if rng.random() < 0.3:
            (root / name).write_text("no rows")
    if rng.random() < 0.2:
        os.symlink(root, root / "loop")
    if rng.random() < 0.2:
        table.options["memory"] = "200MB"
    return paths[0] if len(paths) == 1 and rng.random() < 0.5 else pick(rng, [root, str(root)])


def retyped(rng: np.random.Generator, rows: pa.Table, table: StoredTable) -> pa.Table:
    """Return rows in other types of the same values."""
    for column in table.columns:
        position = rows.column_names.index(column.name)
        array = rows.column(position)
        values = array.to_pylist()
        if column.kind in ("code", "big") and rng.random() < 0.5:
            array = pa.array(values, getattr(pa, pick(rng, whole_types(values)))())
        elif column.kind == "code" and rng.random() < 0.3:
            array = pa.array(values, pa.float64())
        elif column.kind == "text" and rng.random() < 0.5:
            array = pa.array(values, pick(rng, [pa.string(), pa.large_string()]))
        elif pa.types.is_float32(array.type) and rng.random() < 0.5:
            array = array.cast(pa.float64())
        if all(v is None for v in values) and rng.random() < 0.5:
            array = pa.nulls(len(values))
        rows = rows.set_column(position, column.name, array)
    return rows


# --- databases ------------------------------------------------------------------------------------


def quoted(name: str, mark: str = '"') -> str:
    return mark + name.replace(mark, 2 * mark) + mark


def type_in_duckdb(rng: np.random.Generator, column: StoredColumn) -> str:
    values = column.values
    if column.kind == "flag":
        return "BOOLEAN"
    if column.kind == "text":
        return pick(rng, ["VARCHAR", "VARCHAR COLLATE NOCASE", "VARCHAR COLLATE NOACCENT.NOCASE"])
    if column.kind in ("code", "big"):
        names = {"int8": "TINYINT", "int16": "SMALLINT", "int32": "INTEGER", "int64": "BIGINT"}
        types = [names.get(kind) or f"U{names[kind[1:]]}" for kind in whole_types(values)]
        return pick(rng, [*types, *(["HUGEINT"] if column.kind == "code" else [])])
    kind = pick(rng, ["DOUBLE", "DOUBLE", "FLOAT", "DECIMAL"])
    if kind == "FLOAT":
        in_single_precision(column)
    digits = decimal_digits(values)
    if kind == "DECIMAL":
        return "DOUBLE" if digits is None else f"DECIMAL(38, {digits})"
    return kind


def decimals_for(kind: str, values: list[Any]) -> list[Any]:
    """Return decimals for columns of decimals."""
    if not kind.startswith(("DECIMAL", "NUMERIC")):
        return values
    return [Decimal(repr(v)) if isinstance(v, float) and math.isfinite(v) else v for v in values]


def in_duckdb(rng: np.random.Generator, table: StoredTable, folder: Path) -> str:
    types = {column.name: type_in_duckdb(rng, column) for column in table.columns}
    declared = ", ".join(f"{quoted(name)} {kind}" for name, kind in types.items())
    rows = [decimals_for(types[column.name], column.values) for column in table.columns]
    with duckdb.connect(str(folder / "rows.duckdb"), config={"threads": 1}) as connection:
        connection.execute("DROP VIEW IF EXISTS seen; DROP TABLE IF EXISTS stored_rows")
        connection.execute(f"CREATE TABLE stored_rows ({declared})")
        marks = ", ".join("?" * len(rows))
        connection.executemany(
            f"INSERT INTO stored_rows VALUES ({marks})", list(zip(*rows, strict=True))
        )
        connection.execute("CREATE VIEW seen AS SELECT * FROM stored_rows")
    return f"duckdb:///{folder}/rows.duckdb?table={pick(rng, ['stored_rows', 'seen'])}"


def type_in_sqlite(rng: np.random.Generator, column: StoredColumn) -> str:
    if column.kind == "text":
        collation = pick(rng, ["", " COLLATE NOCASE", " COLLATE RTRIM"])
        # In a column without a type, or of numbers, "1" would become the number 1.
        return pick(rng, ["TEXT", "VARCHAR(9)", "BLOB"]) + collation
    if column.kind == "number":
        return pick(rng, ["REAL", "DOUBLE", "", "BLOB"])
    return pick(rng, ["INTEGER", "BIGINT", "NUMERIC", "", "BLOB", "BOOLEAN"])


def in_sqlite(rng: np.random.Generator, table: StoredTable, folder: Path) -> str:
    declared = ", ".join(
        f"{quoted(column.name, '`')} {type_in_sqlite(rng, column)}" for column in table.columns
    )
    connection = sqlite3.connect(folder / "rows.sqlite")
    with connection:
        connection.execute("DROP TABLE IF EXISTS stored_rows")
        connection.execute(f"CREATE TABLE stored_rows ({declared})")
        marks = ", ".join("?" * len(table.columns))
        rows = list(zip(*(column.values for column in table.columns), strict=True))
        connection.executemany(f"INSERT INTO stored_rows VALUES ({marks})", rows)
    connection.close()
    return f"sqlite:///{folder}/rows.sqlite?table=stored_rows"


def type_in_postgresql(rng: np.random.Generator, column: StoredColumn) -> str:
    values = column.values
    if column.kind == "flag":
        return "BOOLEAN"
    if column.kind == "text":
        return pick(rng, ["TEXT", "VARCHAR", "TEXT COLLATE folding", 'TEXT COLLATE "C"'])
    if column.kind in ("code", "big"):
        names = {"int16": "SMALLINT", "int32": "INTEGER", "int64": "BIGINT"}
        types = [names[kind] for kind in whole_types(values) if kind in names]
        return pick(rng, [*types, *(["NUMERIC", "NUMERIC(9)"] if column.kind == "code" else [])])
    kind = pick(rng, ["DOUBLE PRECISION", "DOUBLE PRECISION", "REAL", "NUMERIC"])
    if kind == "REAL":
        in_single_precision(column)
    if kind == "NUMERIC" and decimal_digits(values) is None:
        return "DOUBLE PRECISION"
    return kind


def postgresql_storage(url: str) -> Callable[..., str]:
    """Return a function that stores tables in a database of PostgreSQL."""
    import psycopg

    connection = psycopg.connect(url, autocommit=True, prepare_threshold=None)
    connection.execute(
        "CREATE COLLATION IF NOT EXISTS folding (provider = icu, deterministic = false, "
        "locale = 'und-u-ks-level2')"
    )

    def in_postgresql(rng: np.random.Generator, table: StoredTable, folder: Path) -> str:
        types = {column.name: type_in_postgresql(rng, column) for column in table.columns}
        declared = ", ".join(f"{quoted(name)} {kind}" for name, kind in types.items())
        rows = []
        for column in table.columns:
            gap = math.nan if column.kind == "number" and rng.random() < 0.5 else None
            values = [gap if v is None else v for v in column.values]
            rows.append(decimals_for(types[column.name], values))
        connection.execute("DROP TABLE IF EXISTS stored_rows")
        connection.execute(f"CREATE TABLE stored_rows ({declared})")
        with connection.cursor().copy("COPY stored_rows FROM STDIN") as copy:
            for row in zip(*rows, strict=True):
                copy.write_row(row)
        return f"{url}?table=stored_rows"

    return in_postgresql


def spark_storage(session: Any) -> Callable[..., Any]:
    """Return a function that stores tables in a session of Spark."""
    from pyspark.sql import types

    def in_spark(rng: np.random.Generator, table: StoredTable, folder: Path) -> Any:
        kinds = {
            "flag": types.BooleanType(),
            "text": types.StringType(),
            "number": types.DoubleType(),
            "code": pick(rng, [types.IntegerType(), types.LongType()]),
            "big": types.LongType(),
        }
        schema = types.StructType(
            [types.StructField(column.name, kinds[column.kind]) for column in table.columns]
        )
        rows = list(zip(*(column.values for column in table.columns), strict=True))
        return session.createDataFrame(rows, schema)

    return in_spark


STORAGES: dict[str, Callable[[np.random.Generator, StoredTable, Path], Any]] = {
    "duckdb": in_duckdb,
    "sqlite": in_sqlite,
    "parquet": in_parquet,
    "arrow": in_arrow,
    "pandas": in_pandas,
    "polars": in_polars,
    "dask": in_dask,
}
#: Storages whose names of columns ignore case.
FOLDS_NAMES = ("duckdb", "sqlite", "spark")
#: Errors of values that a database cannot compare or store, each with a remedy.
REFUSALS = re.compile(
    r"exceeds 2\*\*63 - 1|SQLite does not read the number|SQL has no number|databases do not "
    r"store|of different types|cannot hold both|which the floats of other files cannot|out of range"
    r"|Rules compare column|column of a table|must hold numbers|one type in all files|OutOfRange"
)
