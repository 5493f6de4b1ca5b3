"""Parquet files: files of a path, and a common schema of several files.

Names of files are literal, names of columns are case-sensitive, and names of folders such as
``year=2025`` are columns only on request, for every package that reads the files.
"""

from __future__ import annotations

import glob
import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from skescore._optional import import_optional
from skescore.sources._column_types import (
    NUMBERS_OF_ARROW,
    NUMBERS_OF_DUCKDB,
    checked_integer,
)
from skescore.sources._tables import ColumnError, SourceError, SqlTable, duckdb_table, failing

#: Largest integer up to which floats represent all integers.
_MAX_EXACT = 2**53
_INTEGERS = r"U?(TINY|SMALL|BIG|HUGE)INT|U?INTEGER|u?int\d+"
#: Folder of missing values in Hive's convention.
_NULL_FOLDER = "__HIVE_DEFAULT_PARTITION__"
_WHOLE = re.compile(r"0|-?[1-9]\d{0,17}")


def parquet_files(source: str | Path) -> list[str]:
    """Return the sorted paths of a Parquet file, folder or glob.

    The path of an existing file or folder is literal, even if it contains wildcards. As in
    :func:`pyarrow.dataset.dataset`, a folder stands for all files in it and in its subfolders.
    Links are followed. Files and folders whose names begin with a dot or an underscore are skipped.
    """
    path = Path(source)
    if path.is_dir():
        paths = _files_of_folder(path)
    elif path.is_file():
        paths = [str(path)]
    else:
        paths = []
        for match in sorted(_visible_matches(str(source))):
            paths += _files_of_folder(Path(match)) if Path(match).is_dir() else [match]
    if not paths:
        raise SourceError(f"There is no Parquet file at {str(source)!r}. Check the path.")
    return list(dict.fromkeys(paths))


def _is_hidden(name: str) -> bool:
    return name.startswith((".", "_"))


def _files_of_folder(folder: Path) -> list[str]:
    paths: list[str] = []
    real_parents: dict[str, set[str]] = {str(folder): {os.path.realpath(folder)}}
    for parent, folders, files in os.walk(folder, followlinks=True):
        parents = real_parents[parent]
        visible = []
        for name in sorted(folders):
            path = os.path.join(parent, name)
            target = os.path.realpath(path)
            if _is_hidden(name) or target in parents:  # following the link would never end
                continue
            real_parents[path] = parents | {target}
            visible.append(name)
        folders[:] = visible
        paths += [os.path.join(parent, name) for name in files if not _is_hidden(name)]
    return sorted(paths)


def _visible_matches(pattern: str) -> Iterator[str]:
    """Yield the matches of a glob; hidden names match only if they are spelled out."""
    parts = Path(pattern).parts
    spelled_out = {part[0] for part in parts if _is_hidden(part)}
    literal = [part for part in parts if not glob.has_magic(part)]
    for match in glob.glob(pattern, recursive=True):
        names = [name for name in Path(match).parts if name not in literal]
        if not any(_is_hidden(name) and name[0] not in spelled_out for name in names):
            yield match


@contextmanager
def unchanged_files(files: Sequence[str], name: str) -> Iterator[None]:
    """Raise a SourceError if files that several passes read change in the block."""

    def states() -> list[tuple[int, int, int]]:
        with failing(name):
            stats = [os.stat(file) for file in files]
        return [(stat.st_ino, stat.st_size, stat.st_mtime_ns) for stat in stats]

    initial_states = states()
    yield
    for file, initial_state, state in zip(files, initial_states, states(), strict=True):
        if initial_state != state:
            raise SourceError(
                f"{file} changed while it was read. Read files that do not change, or a copy."
            )


# --- common schema of several files ---------------------------------------------------------------


def _check_same_columns(name: str, names_by_file: Mapping[str, Sequence[str]]) -> None:
    """Raise a ColumnError if files have different columns although all columns are required."""
    (first_file, expected), *other_files = names_by_file.items()
    for file, names in other_files:
        if difference := sorted(set(names) ^ set(expected)):
            owner, other = (first_file, file) if difference[0] in expected else (file, first_file)
            raise ColumnError(
                f"The files of {name} must have the same columns, but {owner} has "
                f"{difference[0]!r} and {other} does not. Pass features=... with columns that all "
                "files have."
            )


def _missing_column_error(name: str, file: str, column: str) -> ColumnError:
    return ColumnError(
        f"All files of {name} must have the column {column!r}, but {file} has none. Add it there."
    )


def reconciled_type(name: str, column: str, types: Mapping[str, str], numbers: str) -> str | None:
    """Return how a column with several types is read: "integer", "float" or "decimal".

    Parameters
    ----------
    name, column : str
        Names of the source and the column in messages.
    types : mapping of str to str
        Type of the column in each file, or in one file per type, without files in which all values
        are missing.
    numbers : str
        Regular expression of numeric types.

    Returns
    -------
    str or None
        None if there is only one type.

    Raises
    ------
    ColumnError
        If the types have no common meaning.
    """
    kinds = set(types.values())
    if len(kinds) < 2:
        return None
    if all(re.fullmatch(_INTEGERS, kind) for kind in kinds):
        return "integer"
    if all(re.match(numbers, kind) for kind in kinds):
        is_decimal = [kind.lower().startswith("decimal") for kind in kinds]
        if all(is_decimal):
            return "decimal"
        if not any(is_decimal):
            return "float"
    type_list = " and ".join(f"{kind} in {file}" for file, kind in list(types.items())[:2])
    raise ColumnError(
        f"Column {column!r} of {name} must have one type in all files, but it is {type_list}. "
        "Write the files with one type."
    )


def _check_exact(name: str, column: str, file: str, ends: Sequence[Any]) -> None:
    """Raise a ColumnError if integers of a file would be rounded to the floats of other files."""
    for value in ends:
        if value is not None and abs(int(value)) > _MAX_EXACT:
            raise ColumnError(
                f"Column {column!r} of {name} must have one type in all files, but {file} holds "
                f"the integer {value}, which the floats of other files cannot represent. "
                "Write the files with one type."
            )


# --- DuckDB ---------------------------------------------------------------------------------------


#: Types to which the types of several files are cast.
_CASTS = {"integer": "BIGINT", "float": "DOUBLE"}


def _file_list(files: Sequence[str]) -> str:
    """Format paths for DuckDB, which interprets them as patterns."""
    literal = (re.sub(r"([*?\[])", r"[\1]", os.path.abspath(file)) for file in files)
    return "[" + ", ".join("'" + path.replace("'", "''") + "'" for path in literal) + "]"


def _file_types(connection: Any, file: str) -> dict[str, str]:
    relation = f"read_parquet({_file_list([file])}, hive_partitioning = false)"
    rows = connection.execute(f"DESCRIBE SELECT * FROM {relation}").fetchall()
    return {row[0]: row[1] for row in rows}


def has_distinct_names(source: str | Path) -> bool:
    """Return whether no names of columns differ only in case."""
    duckdb = import_optional("duckdb", extra="sql", purpose=f"Scoring {source} by DuckDB")
    files = parquet_files(source)
    with failing(str(source)), duckdb.connect() as connection:
        schema = connection.execute(
            f"SELECT name, min(file_name) FROM parquet_schema({_file_list(files)}) GROUP BY ALL"
        ).fetchall()
        names: set[str] = set()
        for file in {row[1] for row in schema}:
            names.update(_file_types(connection, file))
    # DuckDB renames columns whose names it considers equal.
    return names <= {row[0] for row in schema} and len({n.casefold() for n in names}) == len(names)


def _rows_of_files(
    connection: Any, files: Sequence[str], name: str, required: Sequence[str] | None
) -> str:
    """Return the relation of files; by default, DuckDB would use the types of the first file."""
    paths = _file_list(files)
    schema = connection.execute(
        "SELECT name, min(file_name), count(DISTINCT file_name) FROM parquet_schema("
        f"{paths}) GROUP BY name, type, converted_type, logical_type"
    ).fetchall()
    representatives = [os.path.abspath(files[0]), *sorted({row[1] for row in schema})]
    # For each type of each column, one file is described.
    types = {file: _file_types(connection, file) for file in dict.fromkeys(representatives)}
    names = list(dict.fromkeys(column for columns in types.values() for column in columns))
    n_files = Counter[str]()
    for column, _, n_with_type in schema:
        n_files[column] += n_with_type
    if required is None:
        _check_same_columns(name, {file: list(columns) for file, columns in types.items()})
    columns = [c for c in dict.fromkeys(required or names) if c in names]
    expressions = []
    for column in columns:
        if n_files[column] < len(files):
            incomplete = [file for file in files if column not in _file_types(connection, file)]
            if incomplete:
                raise _missing_column_error(name, incomplete[0], column)
        of_files = {f: t[column] for f, t in types.items() if t.get(column, '"NULL"') != '"NULL"'}
        target_type = reconciled_type(name, column, of_files, NUMBERS_OF_DUCKDB)
        if target_type == "float":
            _check_exact_in_duckdb(connection, files, name, column)
        expression = identifier = '"' + column.replace('"', '""') + '"'
        if target_type in _CASTS:
            expression = f"CAST({identifier} AS {_CASTS[target_type]})"
        if target_type == "integer":
            cast = checked_integer("Write the files with one type.")
            expression = cast.format(identifier, text=identifier.replace("'", "''"))
        if set(of_files.values()) & {"FLOAT", "DOUBLE"}:
            # Statistics of files ignore NaN, and DuckDB would skip comparisons that the statistics
            # decide.
            expression = f"CASE WHEN isnan({expression}) THEN NULL ELSE {expression} END"
        expressions.append(f"{expression} AS {identifier}")
    # Messages may refer to other columns.
    extra_columns = [c for c in names if c not in columns and n_files[c] >= len(files)]
    expressions += ['"' + column.replace('"', '""') + '"' for column in extra_columns]
    union = ", union_by_name = true" if len(files) > 1 else ""
    relation = f"read_parquet({paths}, hive_partitioning = false{union})"
    return f"(SELECT {', '.join(expressions)} FROM {relation}) AS files"


def _check_exact_in_duckdb(connection: Any, files: Sequence[str], name: str, column: str) -> None:
    quoted = '"' + column.replace('"', '""') + '"'
    for file in files:
        if re.fullmatch(_INTEGERS, _file_types(connection, file)[column]):
            relation = f"read_parquet({_file_list([file])}, hive_partitioning = false)"
            ends = connection.execute(f"SELECT min({quoted}), max({quoted}) FROM {relation}")
            _check_exact(name, column, file, ends.fetchall()[0])


@contextmanager
def open_parquet(
    source: str | Path, memory: str | None = None, required: Sequence[str] | None = None
) -> Iterator[SqlTable]:
    """Open Parquet files with DuckDB.

    Parameters
    ----------
    source : str or path
        Path of the file, folder or glob.
    memory : str, optional
        Memory limit of DuckDB.
    required : sequence of str, optional
        Columns to read; None means all columns, which must be the same in all files.
    """
    duckdb = import_optional("duckdb", extra="sql", purpose=f"Scoring {source} by DuckDB")
    files, name = parquet_files(source), str(source)
    connection = duckdb.connect(config={} if memory is None else {"memory_limit": memory})
    try:
        with unchanged_files(files, name):
            with failing(name):
                rows = _rows_of_files(connection, files, name, required)
            yield duckdb_table(connection, rows, name)
    finally:
        connection.close()


# --- Arrow ----------------------------------------------------------------------------------------


def arrow_dataset(
    source: str | Path, required: Sequence[str] | None = None, partitioning: str | None = None
) -> tuple[Any, list[str]]:
    """Return an Arrow dataset of Parquet files, and the paths of the files.

    Parameters
    ----------
    source : str or path
        Path of the file, folder or glob.
    required : sequence of str, optional
        Columns to read; None means all columns, which must be the same in all files.
    partitioning : {"hive"}, optional
        Whether names of folders such as ``year=2025`` are columns too.
    """
    purpose = f"Reading {source}"
    dataset = import_optional("pyarrow.dataset", extra="parquet", purpose=purpose)
    fs = import_optional("pyarrow.fs", extra="parquet", purpose=purpose)
    files, name = parquet_files(source), str(source)
    with failing(name):
        schema = _arrow_schema(dataset, files, name, required)
        if partitioning is None:
            return dataset.dataset(files, schema, format="parquet"), files
        base = str(source) if Path(source).is_dir() else ""
        folders = _schema_of_folders(files, base, schema.names, name)
        options = dataset.FileSystemFactoryOptions(
            partition_base_dir=base, partitioning=dataset.partitioning(folders, flavor="hive")
        )
        factory = dataset.FileSystemDatasetFactory(
            fs.LocalFileSystem(), files, dataset.ParquetFileFormat(), options
        )
        for field in folders:
            schema = schema.append(field)
        return factory.finish(schema), files


def _schema_of_folders(files: Sequence[str], base: str, columns: Sequence[str], name: str) -> Any:
    """Return the columns of folders named ``name=value``, which must not be columns of files."""
    arrow = import_optional("pyarrow", extra="parquet", purpose=f"Reading {name}")
    values: dict[str, list[str]] = {}
    for file in files:
        folders = Path(os.path.relpath(file, base) if base else file).parent.parts
        for folder in folders:
            key, is_partition, value = folder.partition("=")
            if is_partition:
                values.setdefault(unquote(key), []).append(value)
    for key, key_values in values.items():
        if key in columns:
            raise ColumnError(
                f"The folders of {name} must not have the name of the column {key!r} of its files. "
                "Rename the folders, or omit partitioning='hive' to read the column."
            )
        if len(key_values) != len(files):
            raise ColumnError(
                f"All files of {name} must lie in one folder {key}=..., as partitioning='hive' "
                "makes it a column. Move the others."
            )
    is_integer = {
        key: all(_WHOLE.fullmatch(value) for value in set(key_values) - {_NULL_FOLDER})
        for key, key_values in values.items()
    }
    return arrow.schema(
        [(key, arrow.int64() if is_integer[key] else arrow.string()) for key in values]
    )


def _arrow_schema(
    dataset: Any, files: Sequence[str], name: str, required: Sequence[str] | None
) -> Any:
    """Return a schema of several files; by default, Arrow would use the types of one file."""
    arrow = import_optional("pyarrow", extra="parquet", purpose=f"Reading {name}")
    schemas = {file: dataset.dataset(file, format="parquet").schema for file in files}
    result = schemas[files[0]]
    names = {file: schema.names for file, schema in schemas.items()}
    if required is None:
        _check_same_columns(name, names)
    all_names = {column for file_names in names.values() for column in file_names}
    columns = result.names if required is None else [c for c in required if c in all_names]
    for column in dict.fromkeys(columns):
        incomplete = [file for file, file_names in names.items() if column not in file_names]
        if incomplete:
            raise _missing_column_error(name, incomplete[0], column)
        if any(file_names.count(column) > 1 for file_names in names.values()):
            continue  # reported when the column is read
        fields = {file: schema.field(column).type for file, schema in schemas.items()}
        fields = {file: _plain_type(arrow, kind) for file, kind in fields.items()}
        types = {file: kind for file, kind in fields.items() if kind != arrow.null()}
        kinds = {file: str(kind) for file, kind in types.items()}
        target_type = reconciled_type(name, column, kinds, NUMBERS_OF_ARROW)
        kind = next(iter(types.values()), arrow.null())
        if target_type == "integer":
            kind = arrow.int64()
        elif target_type == "float":
            kind = arrow.float64()
            _check_exact_in_arrow(dataset, types, name, column)
        elif target_type == "decimal":
            scale = max(decimal.scale for decimal in types.values())
            digits = max(decimal.precision - decimal.scale for decimal in types.values())
            kind = arrow.decimal256(digits + scale, scale)
        index = result.get_field_index(column)
        result = result.set(index, result.field(index).with_type(kind))
    return result


def _plain_type(arrow: Any, kind: Any) -> Any:
    """Return the value type of dictionaries, and one type for all strings."""
    if arrow.types.is_dictionary(kind):
        kind = kind.value_type
    return arrow.string() if arrow.types.is_large_string(kind) else kind


def _check_exact_in_arrow(dataset: Any, types: Mapping[str, Any], name: str, column: str) -> None:
    compute = import_optional("pyarrow.compute", extra="parquet", purpose=f"Reading {name}")
    for file, kind in types.items():
        if re.fullmatch(_INTEGERS, str(kind)):
            values = dataset.dataset(file, format="parquet").to_table(columns=[column])[column]
            ends = compute.min_max(values).as_py()
            _check_exact(name, column, file, list(ends.values()))
