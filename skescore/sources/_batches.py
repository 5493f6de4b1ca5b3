"""Rows that come in batches, one after the other or on several machines."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache, partial
from itertools import islice
from pathlib import Path
from typing import Any

import cloudpickle
from joblib import delayed, effective_n_jobs

from skescore._optional import import_optional
from skescore._processes import parallel
from skescore.sources._batch_reader import BatchReader
from skescore.sources._reducers import Reducer, Result
from skescore.sources._tables import (
    ColumnError,
    SourceError,
    check_types,
    failing,
    parquet_files,
)

#: Types of Arrow that hold numbers.
_NUMBERS_OF_ARROW = "u?int|float|double|halffloat|decimal"
#: Applies a function to every batch; the results may come in any order.
BatchMapper = Callable[[Callable[[Any], Any]], Iterable[Any]]


class BatchSource:
    """Rows that are read batch by batch, in this process, in several, or by dask.

    Parameters
    ----------
    reader : BatchReader
        Reads the columns of a batch.
    map_batches : callable
        Applies a function to every batch.
    """

    def __init__(self, reader: BatchReader, map_batches: BatchMapper) -> None:
        self.name, self.features = reader.name, list(reader.features)
        self._reader, self._map_batches = reader, map_batches

    def reduce(self, reducer: Reducer[Result]) -> Result:
        """Return the result of a reducer for all rows."""
        reduce_batch = partial(_reduce_batch, reducer=reducer, reader=self._reader)
        with failing(self.name):
            return reducer.combine(self._map_batches(reduce_batch), self.name)


def _reduce_batch(batch: Any, reducer: Reducer[Result], reader: BatchReader) -> Result | None:
    return reducer.reduce_batch(reader, batch)


class _SinglePass:
    """Batches that can be read only once."""

    def __init__(self, batches: Iterator[Any]) -> None:
        self._batches: Iterator[Any] | None = batches

    def __call__(self) -> Iterator[Any]:
        if self._batches is None:
            raise SourceError(
                "The batches must be read more than once, but they are an iterator. Pass a "
                "function that returns a new iterator; scores of a regression need a single pass "
                "with rule_measures=False."
            )
        batches, self._batches = self._batches, None
        return batches


def batch_mapper(
    source: Any, reader: BatchReader, batch_size: int, n_jobs: int | None = None
) -> BatchMapper:
    """Return a function that applies another to every batch of a source, in `n_jobs` processes."""
    module = type(source).__module__.partition(".")[0]
    if module == "dask" or hasattr(source, "to_delayed"):
        return _on_dask(source, reader)
    batches: Callable[[], Iterable[Any]]
    if isinstance(source, str | Path):
        batches = _parquet_batches(source, reader, batch_size)
    elif hasattr(source, "to_batches"):  # an Arrow dataset or table
        batches = _arrow_batches(source, reader, batch_size)
    elif module == "polars" and hasattr(source, "collect"):
        reader.check(source.collect_schema().names())
        selected = source.select(reader.columns)
        batches = partial(selected.collect_batches, chunk_size=batch_size)
    elif hasattr(source, "columns"):  # a frame in memory
        batches = partial(iter, [source])
    elif callable(source):
        batches = source
    elif isinstance(source, Iterator):
        batches = _SinglePass(source)
    elif isinstance(source, Iterable):
        batches = partial(iter, source)
    else:
        raise TypeError(
            "source must be the URL of a table, a Parquet file, folder or glob, an Arrow dataset, "
            "a frame of pandas, polars or dask, or batches of rows, got "
            f"{type(source).__name__}."
        )
    n_processes = effective_n_jobs(n_jobs)
    if n_processes > 1:
        return partial(_in_processes, batches=batches, n_processes=n_processes)
    return lambda function: map(function, batches())


def _in_processes(
    function: Callable[[Any], Any], batches: Callable[[], Iterable[Any]], n_processes: int
) -> Iterator[Any]:
    """Apply a function to a few batches at a time; the results are in the order of the batches."""
    pickled, remaining = cloudpickle.dumps(function), iter(batches())
    with parallel(n_processes) as pool:
        while chunk := list(islice(remaining, 4 * n_processes)):
            yield from pool(delayed(_call_pickled)(pickled, batch) for batch in chunk)


def _call_pickled(pickled: bytes, batch: Any) -> Any:
    return _unpickle(pickled)(batch)


@lru_cache(maxsize=1)
def _unpickle(pickled: bytes) -> Any:
    """Unpickle a function once for all batches, since its black box may take long to load."""
    return cloudpickle.loads(pickled)


def _arrow_batches(
    source: Any, reader: BatchReader, batch_size: int
) -> Callable[[], Iterable[Any]]:
    names = list(source.schema.names)
    reader.check(names)
    if hasattr(source, "scanner"):
        return lambda: source.to_batches(
            columns=reader.columns, batch_size=batch_size, batch_readahead=2, fragment_readahead=1
        )
    return lambda: source.select(reader.columns).to_batches(max_chunksize=batch_size)


def _parquet_batches(
    source: str | Path, reader: BatchReader, batch_size: int
) -> Callable[[], Iterable[Any]]:
    dataset = import_optional("pyarrow.dataset", extra="parquet", purpose=f"Reading {reader.name}")
    files = parquet_files(source)
    with failing(reader.name):
        schema = _schema_of(dataset, files, reader)
        return _arrow_batches(dataset.dataset(files, schema, format="parquet"), reader, batch_size)


def _schema_of(dataset: Any, files: Sequence[str], reader: BatchReader) -> Any:
    """Return a schema for several files; by default, Arrow would take the types of the first."""
    arrow = import_optional("pyarrow", extra="parquet", purpose=f"Reading {reader.name}")
    schemas = [dataset.dataset(file, format="parquet").schema for file in files]
    result = schemas[0]
    for column in set(reader.columns) & set(result.names):
        index = result.get_field_index(column)
        for file, schema in zip(files, schemas, strict=True):
            if column not in schema.names:
                raise ColumnError(f"{file} has no column {column!r}. Add it.")
            kind, other = result.field(index).type, schema.field(column).type
            if other in (kind, arrow.null()):
                continue
            if kind != arrow.null():
                types = {files[0]: str(kind), file: str(other)}
                check_types(reader.name, column, types, _NUMBERS_OF_ARROW)
                both_integers = arrow.types.is_signed_integer(
                    kind
                ) and arrow.types.is_signed_integer(other)
                other = arrow.int64() if both_integers else arrow.float64()
            result = result.set(index, result.field(index).with_type(other))
    return result


def _on_dask(source: Any, reader: BatchReader) -> BatchMapper:
    """Let the workers of dask reduce their partitions; only the results come back."""
    dask = import_optional("dask", extra="distributed", purpose=f"Reading {reader.name}")
    reader.check(list(map(str, source.columns)))
    partitions = source[reader.columns].to_delayed()

    def map_partitions(function: Callable[[Any], Any]) -> Iterable[Any]:
        delayed_function = dask.delayed(function, pure=False)
        results: Iterable[Any] = dask.compute(*[delayed_function(part) for part in partitions])
        return results

    return map_partitions


def column_names(source: Any, batch_size: int) -> list[str]:
    """Return the names of the columns of a source that is read batch by batch."""
    if isinstance(source, str | Path):
        dataset = import_optional("pyarrow.dataset", extra="parquet", purpose=f"Reading {source}")
        files = parquet_files(source)
        with failing(str(source)):
            return list(dataset.dataset(files[0], format="parquet").schema.names)
    if hasattr(source, "collect_schema"):
        return list(source.collect_schema().names())
    if hasattr(source, "schema") or hasattr(source, "columns"):
        return _names_of(source)
    probe = BatchReader("the source", (), None, None)
    return next(iter(batch_mapper(source, probe, batch_size)(_names_of)), [])


def _names_of(rows: Any) -> list[str]:
    names = getattr(getattr(rows, "schema", None), "names", None)  # in polars a method
    return list(map(str, names if isinstance(names, list) else getattr(rows, "columns", ())))
