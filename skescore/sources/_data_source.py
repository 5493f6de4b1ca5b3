"""Data sources: the location of rows, and the backend that reads them."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import cloudpickle
import numpy as np
from joblib import delayed, effective_n_jobs

from skescore._optional import import_optional
from skescore._processes import parallel
from skescore._text import listed
from skescore._validation import check_choice, check_integer
from skescore.extractors import Column
from skescore.sources._batch_reader import BatchReader, with_text_names
from skescore.sources._encoding import EncodedRows
from skescore.sources._parquet import (
    arrow_dataset,
    has_distinct_names,
    open_parquet,
    unchanged_files,
)
from skescore.sources._reducers import EncodedReducer, Reducer, Result, RowSource
from skescore.sources._table_queries import TableQueries
from skescore.sources._tables import (
    ColumnError,
    SourceError,
    SqlTable,
    check_columns,
    failing,
    is_spark,
    is_url,
    open_spark,
    open_url,
)

if TYPE_CHECKING:
    import pandas as pd

    from skescore.metrics import RuleCounts
    from skescore.rules import RuleSet

__all__ = [
    "DataSource",
]


class TableSource(TableQueries):
    """Table of a database that computes sums by queries and returns no rows."""

    def reduce(self, reducer: Reducer[Result]) -> Result:
        """Return the result of a reducer for all rows."""
        return reducer.reduce_table(self)


class StreamedTableSource(TableSource):
    """Table of a database in this process, whose rows NumPy sums faster than queries.

    The database reads the rows and assigns them to nodes with all processors. NumPy sums them in
    batches.

    Parameters
    ----------
    *arguments
        Arguments of :class:`TableQueries`.
    batch_size : int
        Number of rows per batch.
    """

    def __init__(self, *arguments: Any, batch_size: int) -> None:
        super().__init__(*arguments)
        self._batch_size = batch_size

    def reduce(self, reducer: Reducer[Result]) -> Result:
        """Return the result of a reducer for all rows."""
        if isinstance(reducer, EncodedReducer):
            encoded = self._read_encoded_batches(reducer)
            return reducer.combine((reducer.reduce_rows(rows) for rows in encoded), self.name)
        if reducer.needs_rows:
            batches = self._batches(self.rows, map(self.identifier, self.reader.columns))
            parts = (reducer.reduce_batch(self.reader, batch) for batch in batches)
            return reducer.combine(parts, self.name)
        return super().reduce(reducer)

    def _batches(self, rows: str, expressions: Iterator[str]) -> Iterator[Any]:
        return self.table.read(f"SELECT {', '.join(expressions)} FROM {rows}", self._batch_size)

    def _read_encoded_batches(self, reducer: EncodedReducer[Any]) -> Iterator[EncodedRows]:
        """Read the encoded columns in batches."""
        nodes, scale = reducer.nodes, reducer.scale
        columns = reducer.columns if reducer.needs_bins else ()
        expressions = [f"{self._encoded_column(c)} AS b{j}" for j, c in enumerate(columns)]
        by_class = scale.with_labels and scale.classes is not None
        if scale.with_labels:
            label = self.label_number
            if scale.classes is not None:
                label = self._value_code(self.label, scale.classes)
            expressions.append(f"{label} AS label")
        if self.weight is not None:
            expressions.append(f"{self.weight} AS weight")
        expressions += [f"{self.number(m.name)} AS m{j}" for j, m in enumerate(scale.measured)]
        rows = self.weighted_rows
        if nodes is not None:
            node = self.node_case(nodes)
            expressions.append(f"CAST({node} AS SMALLINT) AS node")
            rows += f"{' WHERE' if self.weight is None else ' AND'} ({node}) IS NOT NULL"
        for batch in self._batches(rows, iter(expressions)):
            arrays = {
                name: batch.column(name).to_numpy(zero_copy_only=False)
                for name in batch.schema.names
            }
            label = arrays.get("label", np.zeros(batch.num_rows))
            if by_class and (label < 0).any():
                self.position_of("another label", ())
            yield EncodedRows(
                [arrays[f"b{j}"] for j in range(len(columns))],
                label,
                arrays.get("weight"),
                arrays.get("node"),
                [arrays[f"m{j}"] for j in range(len(scale.measured))],
            )

    def _encoded_column(self, column: Column) -> str:
        if column.values is None:
            return self.number(column.name)
        return self._value_code(self.identifier(column.name), column.values, column.n_bins)

    def _value_code(self, column: str, values: Sequence[Any], default_code: int = -1) -> str:
        cases = (f"WHEN {self.style.label(v)} THEN {code}" for code, v in enumerate(values))
        return f"CAST(CASE {column} {' '.join(cases)} ELSE {default_code} END AS SMALLINT)"


#: Function that applies another function to every batch; results may be in any order.
BatchMapper = Callable[[Callable[[Any], Any]], Iterable[Any]]


class BatchSource:
    """Rows that are read batch by batch: in this process, in several processes, or by dask.

    Parameters
    ----------
    reader : BatchReader
        Reader of the columns of a batch.
    map_batches : callable
        Function that applies another function to every batch.
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
                "function that returns a new iterator. Scores of a regression need only one pass "
                "with rule_measures=False."
            )
        batches, self._batches = self._batches, None
        return batches


def batch_mapper(
    source: Any, reader: BatchReader, batch_size: int, n_jobs: int | None = None
) -> BatchMapper:
    """Return a function that maps another function over the batches, in `n_jobs` processes."""
    module = type(source).__module__.partition(".")[0]
    if module == "dask" or hasattr(source, "to_delayed"):
        return _dask_mapper(source, reader)
    batches: Callable[[], Iterable[Any]]
    if hasattr(source, "to_batches"):  # an Arrow dataset or table
        batches = _arrow_batches(source, reader, batch_size)
    elif module == "polars" and hasattr(source, "collect"):
        reader.check(source.collect_schema().names())
        frame = source.select(reader.columns)
        batches = partial(frame.collect_batches, chunk_size=batch_size)
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
            f"a frame of pandas, polars or dask, or batches of rows, got {type(source).__name__}."
        )
    n_processes = effective_n_jobs(n_jobs)
    if n_processes > 1:
        return partial(_map_in_processes, batches=batches, n_processes=n_processes)
    return lambda function: map(function, batches())


def _map_in_processes(
    function: Callable[[Any], Any], batches: Callable[[], Iterable[Any]], n_processes: int
) -> Iterator[Any]:
    """Apply a function to a few batches at a time; the results are in the order of the batches."""
    pickled_function, batch_iterator = cloudpickle.dumps(function), iter(batches())
    with parallel(n_processes) as pool:
        while chunk := list(islice(batch_iterator, 4 * n_processes)):
            yield from pool(delayed(_call_pickled)(pickled_function, batch) for batch in chunk)


def _call_pickled(pickled_function: bytes, batch: Any) -> Any:
    return _unpickle(pickled_function)(batch)


@lru_cache(maxsize=1)
def _unpickle(pickled_function: bytes) -> Any:
    """Unpickle a function once for all batches, because its black box may take long to load."""
    return cloudpickle.loads(pickled_function)


def _arrow_batches(
    source: Any, reader: BatchReader, batch_size: int
) -> Callable[[], Iterable[Any]]:
    reader.check(list(source.schema.names))
    if hasattr(source, "scanner"):
        return lambda: source.to_batches(
            columns=reader.columns, batch_size=batch_size, batch_readahead=2, fragment_readahead=1
        )
    return lambda: source.select(reader.columns).to_batches(max_chunksize=batch_size)


def _dask_mapper(source: Any, reader: BatchReader) -> BatchMapper:
    """Return a function that lets dask's workers reduce partitions and return only results."""
    dask = import_optional("dask", extra="distributed", purpose=f"Reading {reader.name}")
    reader.check(list(map(str, source.columns)))
    partitions = with_text_names(source)[reader.columns].to_delayed()

    def map_partitions(function: Callable[[Any], Any]) -> Iterable[Any]:
        delayed_function = dask.delayed(function, pure=False)
        results: Iterable[Any] = dask.compute(*[delayed_function(piece) for piece in partitions])
        return results

    return map_partitions


def column_names(source: Any, batch_size: int) -> list[str]:
    """Return the names of the columns of a source that is read batch by batch."""
    if hasattr(source, "collect_schema"):
        return list(source.collect_schema().names())
    if hasattr(source, "schema") or hasattr(source, "columns"):
        return _column_names_of(source)
    probe = BatchReader("the source", (), None, None)
    return next(iter(batch_mapper(source, probe, batch_size)(_column_names_of)), [])


def _column_names_of(rows: Any) -> list[str]:
    names = getattr(getattr(rows, "schema", None), "names", None)  # in polars a method
    return list(map(str, names if isinstance(names, list) else getattr(rows, "columns", ())))


@dataclass(frozen=True)
class DataSource:
    """Rows in files, in a database or in a data frame of another library, with reading options.

    Parameters
    ----------
    source : str, path, frame, dataset or batches
        ``duckdb:///file.db?table=t``, ``postgresql://user@host/database?table=t`` or any URL of
        SQLAlchemy with a table; a DataFrame of Spark; a Parquet file, folder or glob; an Arrow
        dataset or table; a polars LazyFrame; a dask DataFrame, whose partitions are reduced by the
        workers of dask; a list of batches (Arrow, pandas, polars), an iterator over batches, or a
        function that returns such an iterator.
    target : str, optional
        Column of labels: true values, or predictions of a black box.
    sample_weight : str, optional
        Column of weights; a row of weight 2 counts as two rows.
    batch_size : int, default=131072
        Number of rows per batch, for sources that are read in batches.
    memory : str, optional
        Memory limit of DuckDB when it reads Parquet files, such as ``"1GB"``.
    n_jobs : int, optional
        Number of processes for sources that are read in batches; None means one, -1 all
        processors, see :func:`joblib.parallel_config`. Results do not depend on it. DuckDB and dask
        use all processors that are available to them.
    partitioning : {"hive"}, optional
        ``"hive"`` also reads folder names such as ``year=2025`` as columns. They never replace a
        column of the Parquet files. By default, folder names are not columns.

    Notes
    -----
    The guide "Meaning of values in sources" states which values are equal in all sources.

    Examples
    --------
    >>> import pandas as pd
    >>> from skescore.sources import DataSource, sample_source
    >>> rows = pd.DataFrame({"length": range(1000), "size": ["small"] * 900 + ["large"] * 100})
    >>> source = DataSource([rows, rows], "size", batch_size=1000)
    >>> sample_source(source, n_rows=400).n_rows
    2000
    """

    source: Any
    target: str | None = None
    sample_weight: str | None = None
    batch_size: int = 1 << 17
    memory: str | None = None
    n_jobs: int | None = None
    partitioning: str | None = None

    def __post_init__(self) -> None:
        if self.partitioning is not None:
            check_choice("partitioning", self.partitioning, ("hive",))
        check_integer("batch_size", self.batch_size, 1)
        check_integer("n_jobs", self.n_jobs, -1, optional=True)

    @classmethod
    def of(
        cls, source: Any, target: str | None = None, sample_weight: str | None = None
    ) -> DataSource:
        """Return `source` itself if it is a DataSource, otherwise create one from it.

        Raises
        ------
        TypeError
            If `target` or `sample_weight` is passed although `source` is a DataSource.
        """
        if not isinstance(source, cls):
            return cls(source, target, sample_weight)
        if target is not None or sample_weight is not None:
            raise TypeError(
                "target and sample_weight must be None if the source is a DataSource, got "
                f"target={target!r} and sample_weight={sample_weight!r}. Pass them to DataSource."
            )
        return source

    @property
    def name(self) -> str:
        """Name of the source in messages."""
        if isinstance(self.source, str | Path):
            return str(self.source)
        return f"the {type(self.source).__name__}"

    def check_repeatable(self) -> None:
        """Raise a SourceError if the rows can be read only once."""
        if isinstance(self.source, Iterator):
            raise SourceError(
                "The batches must be read several times, but they are an iterator. Pass a function "
                "that returns a new iterator."
            )

    def draw_sample(
        self, n_rows: int, task: str, random_state: int
    ) -> tuple[pd.DataFrame, pd.Series, pd.Series | None]:
        """Draw a sample, stratified by class, for a search.

        Parameters
        ----------
        n_rows : int
            Approximate number of rows to draw.
        task : {"classification", "regression"}
            Task of the labels; classes are sampled separately.
        random_state : int
            Seed of the sample.

        Returns
        -------
        tuple of DataFrame, Series and Series or None
            Features, labels and weights of the rows.

        Raises
        ------
        ValueError
            If the source has no target, or its rows cannot be used; see :func:`sample_source`.
        """
        from skescore.sources import sample_source

        sample = sample_source(
            self, n_rows=n_rows, task=task, least_per_class=0, random_state=random_state
        )
        weights = None if self.sample_weight is None else sample.frame[self.sample_weight]
        label_columns = [name for name in (self.target, self.sample_weight) if name is not None]
        return sample.frame.drop(columns=label_columns), sample.frame[self.target], weights

    def count_rows(self, rules: RuleSet, black_box: Any = None) -> RuleCounts:
        """Count all rows for the scores of rules.

        Parameters
        ----------
        rules : RuleSet
            Rules to score.
        black_box : estimator or callable, optional
            Model whose predictions are used as labels, instead of the target.

        Returns
        -------
        RuleCounts
            Counts; in regression, without counts of single rules, see :func:`count_source`.
        """
        from skescore.sources import count_source

        source = self if black_box is None else replace(self, target=None)
        return count_source(rules, source, black_box=black_box, rule_measures=False)

    @contextmanager
    def open(
        self, features: Sequence[str] | None = None, black_box: Any = None
    ) -> Iterator[RowSource]:
        """Open the rows for reducers, and choose the backend that reads them.

        Parameters
        ----------
        features : sequence of str, optional
            Names of the features; by default all columns except the columns of labels and weights.
        black_box : estimator or callable, optional
            Model that predicts the labels if there is no target.

        Yields
        ------
        RowSource
            The rows.

        Raises
        ------
        ValueError
            If a database table or a DataFrame of Spark has no target.
        """
        required = None if features is None else self._required_columns(features)
        opened_table = None if self.target is None else self._open_table(required)
        if opened_table is not None:
            with opened_table as table:
                yield self._table_source(table, features)
            return
        if is_url(self.source) or is_spark(self.source):
            raise ValueError(
                "target must name a column of a database table, got None: a black box predicts "
                "batches of rows, and tables are not read in batches. Store the predictions in a "
                "column and pass target=..., or export the table to Parquet."
            )
        if isinstance(self.source, str | Path):
            dataset, files = arrow_dataset(self.source, required, self.partitioning)
            with unchanged_files(files, self.name):
                yield self._batch_source(dataset, features, black_box)
            return
        yield self._batch_source(self.source, features, black_box)

    def _required_columns(self, features: Sequence[str]) -> list[str]:
        names = [*features, self.target, self.sample_weight]
        return list(dict.fromkeys(name for name in names if name is not None))

    def _table_source(self, table: SqlTable, features: Sequence[str] | None) -> TableSource:
        features = self._features(table.columns, features, table.name)
        assert self.target is not None
        arguments = table, features, self.target, self.sample_weight
        if table.stream is None:
            return TableSource(*arguments)
        return StreamedTableSource(*arguments, batch_size=self.batch_size)

    def _batch_source(
        self, source: Any, features: Sequence[str] | None, black_box: Any
    ) -> BatchSource:
        if features is None:
            columns = column_names(source, self.batch_size)
            features = self._features(columns, features, self.name)
        reader = BatchReader(self.name, tuple(features), self.target, self.sample_weight, black_box)
        return BatchSource(reader, batch_mapper(source, reader, self.batch_size, self.n_jobs))

    def _open_table(
        self, required: Sequence[str] | None
    ) -> AbstractContextManager[SqlTable] | None:
        """Open the table of a source that is queried with SQL; return None for others.

        DuckDB ignores case in names, so Arrow reads files whose names differ only in case.
        """
        if is_url(self.source):
            return open_url(self.source)
        if is_spark(self.source):
            return open_spark(self.source)
        if (
            isinstance(self.source, str | Path)
            and self.partitioning is None
            and importlib.util.find_spec("duckdb")
            and has_distinct_names(self.source)
        ):
            return open_parquet(self.source, self.memory, required)
        return None

    def _features(
        self, columns: Sequence[str], features: Sequence[str] | None, name: str
    ) -> list[str]:
        check_columns(columns, features or (), self.target, self.sample_weight, name)
        if features is not None:
            return list(features)
        label_columns = {self.target, self.sample_weight}
        if set(columns) <= label_columns:
            raise ColumnError(f"{name} must have at least one feature, got {listed(columns)}.")
        return [column for column in columns if column not in label_columns]


def check_feature_names(features: Any) -> list[str] | None:
    """Return the columns that `features` names as a list; None for all columns."""
    if features is None:
        return None
    names = [features] if isinstance(features, str) else list(features)
    if not names or not all(isinstance(name, str) for name in names):
        raise ValueError(f"features must name at least one column of the source, got {features!r}.")
    return names
