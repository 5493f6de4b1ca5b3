"""Counts of rules over rows that come in batches: one after the other, or on several machines."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import islice
from pathlib import Path
from typing import Any, Protocol

import cloudpickle
import numpy as np
from joblib import delayed, effective_n_jobs
from numpy.typing import NDArray

from skescore._optional import import_optional
from skescore._processes import parallel
from skescore._validation import one_dimension
from skescore.metrics import RuleCounts
from skescore.metrics._rule_counts import RowLooks
from skescore.rules import RuleSet
from skescore.rules._conditions import as_numbers
from skescore.sources._histograms import are_decimals
from skescore.sources._query import near_labels
from skescore.sources._tables import (
    ColumnError,
    SourceError,
    check_columns,
    check_types,
    failing,
    parquet_files,
)

Floats = NDArray[np.float64]
#: Types of Arrow that hold numbers.
_NUMBERS_OF_ARROW = "u?int|float|double|halffloat|decimal"
#: Carries out a function for every batch; the results may come in any order.
Each = Callable[[Callable[[Any], Any]], Iterable[Any]]


@dataclass(frozen=True)
class Reading:
    """What is read of every batch; it travels to where the batches are."""

    ruleset: RuleSet
    target: str | None
    weight: str | None
    black_box: Any
    name: str

    @property
    def columns(self) -> list[str]:
        """The columns that are read: a black box is given all features."""
        names = self.ruleset.feature_names
        every = range(len(names)) if self.black_box is not None else self.ruleset.used_features
        others = (self.target if self.black_box is None else None, self.weight)
        return list(dict.fromkeys([*(names[j] for j in sorted(every)), *(o for o in others if o)]))

    def check(self, columns: Sequence[str]) -> None:
        """Raise a ValueError where a column is not there."""
        target = self.columns[0] if self.target is None else self.target
        check_columns(self.ruleset, columns, target, self.weight, self.name)

    def rows(self, batch: Any) -> RowLooks | None:
        """The rows of a batch that weigh something; None if there are none."""
        frame = (
            batch.to_pandas() if hasattr(batch, "schema") and hasattr(batch, "num_rows") else batch
        )
        if not hasattr(frame, "columns"):
            raise TypeError(
                f"A batch must be an Arrow batch or table, or a pandas or polars frame, got "
                f"{type(batch).__name__}."
            )
        self.check(list(map(str, frame.columns)))
        weights = None if self.weight is None else np.asarray(frame[self.weight], dtype=float)
        if weights is not None and (weights == 0).any():
            kept = np.flatnonzero(weights)
            weights = weights[kept]
            frame = frame.iloc[kept] if hasattr(frame, "iloc") else frame[kept]
        if not len(frame):
            return None
        names = list(self.ruleset.feature_names)
        if self.black_box is None:
            y = np.asarray(frame[self.target].to_numpy())
            if are_decimals(y):  # which are no labels of rules
                y = as_numbers(y)
        else:
            ask = getattr(self.black_box, "predict", self.black_box)
            y = one_dimension("What black_box predicts", ask(frame[names]))
        there = set(map(str, frame.columns))
        lacking = [name for name in names if name not in there]  # which no rule looks at
        if lacking:
            wide = {name: np.full(len(frame), np.nan) for name in lacking}
            frame = frame.assign(**wide) if hasattr(frame, "assign") else frame.with_columns(**wide)
        return RowLooks(self.ruleset, frame, y, weights)


def _look(batch: Any, reading: Reading, look: str, arguments: tuple[Any, ...]) -> Any:
    rows = reading.rows(batch)
    return None if rows is None else getattr(rows, look)(*arguments)


class Wanted(Protocol):
    """What is read of a source."""

    @property
    def name(self) -> str:
        """What the source is called."""

    @property
    def columns(self) -> list[str]:
        """The columns that are read."""

    def check(self, columns: Sequence[str]) -> None:
        """Raise a ValueError where a column is not there."""


class BatchLooks:
    """Rows in batches, as :func:`skescore.metrics._rule_counts.complete` looks at them."""

    def __init__(self, reading: Reading, each: Each) -> None:
        self._reading, self._each = reading, each
        self._n_rows: int | None = None

    def center(self) -> float:
        return near_labels(self._reading.ruleset)

    def _total(self, look: str, *arguments: Any) -> Any:
        total = None
        with failing(self._reading.name):
            look_at = partial(_look, reading=self._reading, look=look, arguments=arguments)
            for found in self._each(look_at):
                if found is not None:
                    total = found if total is None else total + found
        if total is None:
            raise SourceError(
                f"{self._reading.name} must hold at least one row that weighs more than nothing, "
                "got none."
            )
        return total

    def first(self, default: float, center: float) -> RuleCounts:
        counts: RuleCounts = self._total("first", default, center)
        return counts

    def deviations(self, means: Floats) -> Floats:
        return np.asarray(self._total("deviations", means))

    def within(self, stds: Floats) -> Floats:
        return np.asarray(self._total("within", stds))


class _Once:
    """Batches that can be gone through only once."""

    def __init__(self, batches: Iterator[Any]) -> None:
        self._batches: Iterator[Any] | None = batches

    def __call__(self) -> Iterator[Any]:
        if self._batches is None:
            raise SourceError(
                "The batches must be gone through more than once, but they are an iterator. Pass a "
                "function that gives a new one; scores of a regression need a single look with "
                "rule_measures=False."
            )
        batches, self._batches = self._batches, None
        return batches


def each_batch(source: Any, reading: Wanted, batch_size: int, n_jobs: int | None = None) -> Each:
    """How to go through a source batch by batch, in so many processes."""
    module = type(source).__module__.partition(".")[0]
    if module == "dask" or hasattr(source, "to_delayed"):
        return _on_dask(source, reading)
    batches: Callable[[], Iterable[Any]]
    if isinstance(source, str | Path):
        batches = _of_parquet(source, reading, batch_size)
    elif hasattr(source, "to_batches"):  # an Arrow dataset or table
        batches = _of_arrow(source, reading, batch_size)
    elif module == "polars" and hasattr(source, "collect"):
        reading.check(source.collect_schema().names())
        chosen = source.select(reading.columns)
        batches = partial(chosen.collect_batches, chunk_size=batch_size)
    elif hasattr(source, "columns"):  # a frame in memory
        batches = partial(iter, [source])
    elif callable(source):
        batches = source
    elif isinstance(source, Iterator):
        batches = _Once(source)
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
    return lambda look: map(look, batches())


def _in_processes(
    look: Callable[[Any], Any], batches: Callable[[], Iterable[Any]], n_processes: int
) -> Iterator[Any]:
    """Look at a few batches at a time; what is found comes in their order."""
    sent, waiting = cloudpickle.dumps(look), iter(batches())
    with parallel(n_processes) as pool:
        while some := list(islice(waiting, 4 * n_processes)):
            yield from pool(delayed(_looked)(sent, batch) for batch in some)


def _looked(sent: bytes, batch: Any) -> Any:
    return _received(sent)(batch)


@lru_cache(maxsize=1)
def _received(sent: bytes) -> Any:
    """The function that looks, with its black box, which takes long to read."""
    return cloudpickle.loads(sent)


def _of_arrow(source: Any, reading: Wanted, batch_size: int) -> Callable[[], Iterable[Any]]:
    names = list(source.schema.names)
    reading.check(names)
    if hasattr(source, "scanner"):
        return lambda: source.to_batches(
            columns=reading.columns, batch_size=batch_size, batch_readahead=2, fragment_readahead=1
        )
    return lambda: source.select(reading.columns).to_batches(max_chunksize=batch_size)


def _of_parquet(
    source: str | Path, reading: Wanted, batch_size: int
) -> Callable[[], Iterable[Any]]:
    dataset = import_optional("pyarrow.dataset", extra="parquet", purpose=f"Reading {reading.name}")
    files = parquet_files(source)
    with failing(reading.name):
        schema = _schema_of(dataset, files, reading)
        return _of_arrow(dataset.dataset(files, schema, format="parquet"), reading, batch_size)


def _schema_of(dataset: Any, files: Sequence[str], reading: Wanted) -> Any:
    """The columns of some files, whose types Arrow would turn into those of the first."""
    arrow = import_optional("pyarrow", extra="parquet", purpose=f"Reading {reading.name}")
    schemas = [dataset.dataset(file, format="parquet").schema for file in files]
    result = schemas[0]
    for column in set(reading.columns) & set(result.names):
        place = result.get_field_index(column)
        for file, schema in zip(files, schemas, strict=True):
            if column not in schema.names:
                raise ColumnError(f"{file} has no column {column!r}. Add it.")
            kind, other = result.field(place).type, schema.field(column).type
            if other in (kind, arrow.null()):
                continue
            if kind != arrow.null():
                shown = {files[0]: str(kind), file: str(other)}
                check_types(reading.name, column, shown, _NUMBERS_OF_ARROW)
                whole = arrow.types.is_signed_integer(kind) and arrow.types.is_signed_integer(other)
                other = arrow.int64() if whole else arrow.float64()
            result = result.set(place, result.field(place).with_type(other))
    return result


def _on_dask(source: Any, reading: Wanted) -> Each:
    """The workers of dask count their partitions; only the counts come back."""
    dask = import_optional("dask", extra="distributed", purpose=f"Reading {reading.name}")
    reading.check(list(map(str, source.columns)))
    partitions = source[reading.columns].to_delayed()

    def each(look: Callable[[Any], Any]) -> Iterable[Any]:
        counted = dask.delayed(look, pure=False)
        results: Iterable[Any] = dask.compute(*[counted(part) for part in partitions])
        return results

    return each
