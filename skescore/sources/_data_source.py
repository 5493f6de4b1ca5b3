"""Data sources: where rows are, and how they are read. The backend is chosen here alone."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skescore._text import listed
from skescore._validation import check_integer
from skescore.sources._batch_reader import BatchReader
from skescore.sources._batches import BatchSource, batch_mapper, column_names
from skescore.sources._reducers import RowSource
from skescore.sources._table_source import StreamedTableSource, TableSource
from skescore.sources._tables import (
    ColumnError,
    SourceError,
    SqlTable,
    check_columns,
    is_spark,
    is_url,
    open_parquet,
    open_spark,
    open_url,
)

if TYPE_CHECKING:
    import pandas as pd

    from skescore.metrics import RuleCounts
    from skescore.rules import RuleSet

__all__ = ["DataSource"]


@dataclass(frozen=True)
class DataSource:
    """Rows that stay where they are: where they are, and how they are read.

    Parameters
    ----------
    source : str, path, frame, dataset or batches
        ``duckdb:///file.db?table=t``, ``postgresql://user@host/database?table=t`` or any URL of
        SQLAlchemy with a table; a DataFrame of Spark; a Parquet file, folder or glob; an Arrow
        dataset or table; a polars LazyFrame; a dask DataFrame, counted by its workers; a list of
        batches (Arrow, pandas, polars), an iterator of them or a function that returns one.
    target : str, optional
        The column of labels: the truth, or the predictions of a black box.
    sample_weight : str, optional
        The column of weights, which count as repeated rows.
    batch_size : int, default=131072
        Rows of a batch, for sources that are read batch by batch.
    memory : str, optional
        How much memory DuckDB may use for Parquet files, such as ``"1GB"``.
    n_jobs : int, optional
        Processes that reduce batches, for sources that are read batch by batch; None is one, -1
        all processors, see :func:`joblib.parallel_config`. The results are the same. DuckDB and
        dask use all processors they are given.

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

    def __post_init__(self) -> None:
        check_integer("batch_size", self.batch_size, 1)
        check_integer("n_jobs", self.n_jobs, -1, optional=True)

    @classmethod
    def of(
        cls, source: Any, target: str | None = None, sample_weight: str | None = None
    ) -> DataSource:
        """Return `source` itself if it is a DataSource, else make one.

        Raises
        ------
        TypeError
            If `target` or `sample_weight` is given although `source` is a DataSource.
        """
        if not isinstance(source, cls):
            return cls(source, target, sample_weight)
        if target is not None or sample_weight is not None:
            raise TypeError(
                "target and sample_weight must be given to the DataSource, got "
                f"target={target!r} and sample_weight={sample_weight!r} as well."
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
        """Draw a sample in which each class has its share, for a search.

        Parameters
        ----------
        n_rows : int
            Approximate number of rows to draw.
        task : {"classification", "regression"}
            Whether labels are classes, which are drawn separately.
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
            The rules.
        black_box : estimator or callable, optional
            Predicts the labels, instead of the target.

        Returns
        -------
        RuleCounts
            The counts without those of single rules of a regression; see :func:`count_source`.
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
            The features; by default all columns but those of labels and weights.
        black_box : estimator or callable, optional
            Predicts the labels if there is no target.

        Yields
        ------
        RowSource
            The rows.
        """
        opened_table = None if self.target is None else self._open_table()
        if opened_table is not None:
            with opened_table as table:
                features = self._features(table.columns, features, table.name)
                assert self.target is not None
                if table.stream is None:
                    yield TableSource(table, features, self.target, self.sample_weight)
                else:
                    yield StreamedTableSource(
                        table,
                        features,
                        self.target,
                        self.sample_weight,
                        batch_size=self.batch_size,
                    )
            return
        if is_url(self.source) or is_spark(self.source):
            raise ValueError(
                "The black box predicts batches of rows, but a database hands over none. Store its "
                "predictions in a column and pass target=..., or export the table to Parquet."
            )
        if features is None:
            columns = column_names(self.source, self.batch_size)
            features = self._features(columns, features, self.name)
        reader = BatchReader(self.name, tuple(features), self.target, self.sample_weight, black_box)
        yield BatchSource(reader, batch_mapper(self.source, reader, self.batch_size, self.n_jobs))

    def _open_table(self) -> AbstractContextManager[SqlTable] | None:
        """Open the table of a source that is queried with SQL; return None for others."""
        if is_url(self.source):
            return open_url(self.source)
        if is_spark(self.source):
            return open_spark(self.source)
        if isinstance(self.source, str | Path) and importlib.util.find_spec("duckdb"):
            return open_parquet(self.source, self.memory)
        return None

    def _features(
        self, columns: Sequence[str], features: Sequence[str] | None, name: str
    ) -> list[str]:
        check_columns(columns, features or (), self.target, self.sample_weight, name)
        if features is not None:
            return list(features)
        label_columns = {self.target, self.sample_weight}
        if set(columns) <= label_columns:
            raise ColumnError(f"{name} must have a column for a feature, got {listed(columns)}.")
        return [column for column in columns if column not in label_columns]


def feature_names(features: Any) -> list[str] | None:
    """Check the features of an extractor or of a sample, which name columns."""
    if features is None:
        return None
    names = [features] if isinstance(features, str) else list(features)
    if not names or not all(isinstance(name, str) for name in names):
        raise ValueError(
            f"features must name columns of the source, at least one, got {features!r}."
        )
    return names
