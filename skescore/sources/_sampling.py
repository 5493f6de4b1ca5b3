"""Samples of the rows of a data source, and bounds on what they can miss."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from skescore._validation import check_choice, check_integer, check_number, python_value
from skescore.sources._batch_reader import MAX_VALUES, BatchReader, plain_value
from skescore.sources._data_source import DataSource, check_feature_names
from skescore.sources._reducers import Reducer
from skescore.sources._table_queries import TableQueries
from skescore.sources._tables import ColumnError, SourceError, check_weights

__all__ = ["SourceSample", "sample_source"]


@dataclass(frozen=True)
class SourceSample:
    """A stratified sample of the rows of a data source, drawn without replacement.

    Attributes
    ----------
    frame : DataFrame
        Rows of the sample: features, target, and the column of weights if there is one.
    n_rows : int
        Number of rows of the source.
    strata : dict
        Numbers of drawn rows and of all rows by class. In regression, the only key is None.
    weights : ndarray of float or None
        Number of rows of the source that each row represents, times its own weight; None if the
        source has no weights and all rows represent about equally many.

    Examples
    --------
    >>> import pandas as pd
    >>> from skescore.sources import sample_source
    >>> rows = pd.DataFrame({"length": range(1000), "size": ["small"] * 900 + ["large"] * 100})
    >>> sample = sample_source(rows, "size", n_rows=400)
    >>> sample.strata, sample.n_rows
    ({'large': (100, 100), 'small': (360, 900)}, 1000)
    >>> {label: round(share, 4) for label, share in sample.missed().items()}
    {'large': 0.0, 'small': 0.0083}
    """

    frame: pd.DataFrame
    n_rows: int
    strata: Mapping[Any, tuple[int, int]]
    weights: NDArray[np.float64] | None

    def missed(self, confidence: float = 0.95) -> dict[Any, float]:
        r"""Bound the share of rows that the sample may have missed.

        Parameters
        ----------
        confidence : float, default=0.95
            Probability that the bound holds.

        Returns
        -------
        dict of float
            For each class, the share :math:`m` of its rows such that, with this confidence, the
            sample includes at least one row of any group with a larger share.

        Notes
        -----
        The bound of Clopper and Pearson for no success in :math:`n` draws is
        :math:`m = 1 - (1 - \text{confidence})^{1 / n}`; drawing without replacement can only
        improve it, and it is 0 if all rows were drawn. It holds for a group that was defined before
        the rows were seen.
        """
        check_number("confidence", confidence, 0.0, 1.0)
        return {
            label: 0.0 if n_drawn == n_all else float(1 - (1 - confidence) ** (1 / max(n_drawn, 1)))
            for label, (n_drawn, n_all) in self.strata.items()
        }


def sample_source(
    source: Any,
    target: str | None = None,
    *,
    n_rows: int = 20_000,
    task: str = "classification",
    features: Any = None,
    sample_weight: str | None = None,
    least_per_class: int = 100,
    random_state: int = 0,
) -> SourceSample:
    """Draw a stratified random sample of the rows of a data source.

    Each class has its share of the sample; a rare class gets `least_per_class` rows if it has that
    many and `n_rows` allows it.

    Parameters
    ----------
    source : DataSource, str, path, frame, dataset or batches
        The rows, see :class:`DataSource`. An iterator of batches cannot be read again.
    target : str, optional
        Column of labels; required unless `source` is a DataSource.
    n_rows : int, default=20000
        Approximate number of rows to draw.
    task : {"classification", "regression"}, default="classification"
        Whether labels are classes, which are drawn separately.
    features : sequence of str, optional
        Columns to read in addition to the target; by default all.
    sample_weight : str, optional
        Column of weights; rows of weight 0 are ignored.
    least_per_class : int, default=100
        Minimum number of rows of a rare class, if available; 0 draws all classes in proportion.
    random_state : int, default=0
        Seed of the sample. In PostgreSQL, the sample depends only on the rows and the seed, in
        SQLite also on their order; in other databases, it may differ between calls. If rows are
        read in batches, as in DuckDB, the sample also depends on the batches.

    Returns
    -------
    SourceSample
        The rows of the sample, and the number of all rows.

    Raises
    ------
    SourceError
        If rows cannot be read, lack labels, or have invalid weights.
    ValueError
        If a column or a parameter is invalid.

    Examples
    --------
    >>> import pandas as pd
    >>> from skescore.sources import sample_source
    >>> day = pd.DataFrame({"length": range(500), "price": range(500)})
    >>> sample = sample_source([day, day], "price", n_rows=100, task="regression")
    >>> len(sample.frame), list(sample.frame.columns), sample.strata
    (100, ['length', 'price'], {None: (100, 1000)})
    """
    check_integer("n_rows", n_rows, 1)
    check_integer("least_per_class", least_per_class, 0)
    check_integer("random_state", random_state, 0)
    check_choice("task", task, ("classification", "regression"))
    data = DataSource.of(source, target, sample_weight)
    if data.target is None:
        raise ValueError("target must name the column of labels, got None.")
    data.check_repeatable()
    with data.open(check_feature_names(features)) as rows:
        label_counts = rows.reduce(LabelCountReducer(task))
        counts = dict(sorted(label_counts.items(), key=lambda pair: str(pair[0])))
        n_all = sum(counts.values())
        if not n_all:
            raise SourceError(f"{rows.name} must hold at least one row, got none.")
        if len(counts) > MAX_VALUES:
            raise ValueError(
                f"The target of {rows.name} must hold at most {MAX_VALUES} classes, but it holds "
                "more. Pass task='regression' if they are numeric targets."
            )
        minimum = min(least_per_class, n_rows // (2 * len(counts)))
        quotas = {
            label: min(count, max(round(n_rows * count / n_all), minimum, 1))
            for label, count in counts.items()
        }
        # More rows than the quotas are drawn, and some dropped, so that the quotas are met.
        probabilities = {
            label: min(1.0, (quota + 5 * math.sqrt(quota) + 10) / counts[label])
            for label, quota in quotas.items()
        }
        drawn = rows.reduce(DrawReducer(probabilities, random_state))
    stratum = np.zeros(len(drawn), dtype=np.intp)
    if task == "classification":
        labels = drawn[data.target].astype(object).map(python_value)
        stratum = pd.Index(list(counts), dtype=object).get_indexer(labels)
    order = np.random.default_rng(random_state).permutation(len(drawn))
    samples = [order[stratum[order] == code][:quota] for code, quota in enumerate(quotas.values())]
    if any(
        probabilities[label] == 1 and len(positions) < quotas[label]
        for label, positions in zip(quotas, samples, strict=True)
    ):
        raise SourceError(
            f"{rows.name} changed while it was read. Read a table that does not change, or a "
            "snapshot."
        )
    sorted_rows = np.sort(np.concatenate(samples))
    frame, stratum = drawn.iloc[sorted_rows].reset_index(drop=True), stratum[sorted_rows]
    strata = {
        label: (len(positions), count)
        for positions, (label, count) in zip(samples, counts.items(), strict=True)
    }
    rows_per_draw = np.array([count / max(n_drawn, 1) for n_drawn, count in strata.values()])
    weights = None
    is_uneven = len(strata) > 1 and least_per_class > 0
    if data.sample_weight is not None or (
        is_uneven and rows_per_draw.max() > 1.05 * rows_per_draw.min()
    ):
        weights = rows_per_draw[stratum]
        if data.sample_weight is not None:
            weights = weights * frame[data.sample_weight].to_numpy(dtype=float)
    return SourceSample(frame, n_all, strata, weights)


@dataclass(frozen=True)
class LabelCountReducer(Reducer[dict[Any, int]]):
    """Number of rows by class; in regression, all rows have the key None.

    Parameters
    ----------
    task : {"classification", "regression"}
        Task of the labels.
    """

    task: str

    def add(self, first: dict[Any, int], second: dict[Any, int]) -> dict[Any, int]:
        """Add the counts of two batches."""
        return {label: first.get(label, 0) + second.get(label, 0) for label in {**first, **second}}

    def combine(self, parts: Iterable[dict[Any, int] | None], name: str) -> dict[Any, int]:
        """Add the counts of all batches."""
        return super().combine([{}, *parts], name)

    def reduce_batch(self, reader: BatchReader, batch: Any) -> dict[Any, int]:
        """Count the labels of a batch."""
        return dict(reader.count_labels(batch, self.task))

    def reduce_table(self, table: TableQueries) -> dict[Any, int]:
        """Count the labels of a table."""
        is_regression = self.task == "regression"
        table.check_numbers([table.target if is_regression else None, table.weight_column])
        if table.weight is not None:
            weight = f"count({table.weight}), min({table.weight}), max({table.weight})"
            query = f"SELECT count(*), {weight} FROM {table.weighted_rows}"
            ((n_rows, n_weights, low, high),) = table.fetch(query)
            if n_rows:
                low, high = (math.nan if end is None else float(end) for end in (low, high))
                check_weights(table.name, int(n_rows) - int(n_weights), low, high)
        counts: dict[Any, int]
        if is_regression:
            query = f"SELECT count(*), count({table.label}) FROM {table.weighted_rows}"
            ((n_rows, n_labels),) = table.fetch(query)
            counts, n_missing = {None: int(n_rows)}, int(n_rows) - int(n_labels)
        else:
            rows = table.fetch(
                f"SELECT {table.label}, count(*) FROM {table.weighted_rows} GROUP BY {table.label} "
                f"LIMIT {MAX_VALUES + 2}"
            )
            labels = [(plain_value(label), int(n)) for label, n in rows]
            counts = {label: n for label, n in labels if label == label}  # NaN is missing
            n_missing = counts.get(None, 0) + sum(n for label, n in labels if label != label)
        if n_missing:
            raise SourceError(
                f"The target of {table.name} must hold a label in every row, but {n_missing} rows "
                "have none. Exclude these rows, for example with a view."
            )
        return counts


@dataclass(frozen=True)
class DrawReducer(Reducer[pd.DataFrame]):
    """Rows drawn at random, each with the probability of its class.

    Parameters
    ----------
    probabilities : mapping
        Probability of each class; the key None is for all rows.
    seed : int
        Seed of the random numbers.
    """

    probabilities: Mapping[Any, float]
    seed: int

    needs_rows = True

    def combine(self, parts: Iterable[pd.DataFrame | None], name: str) -> pd.DataFrame:
        """Concatenate the rows of all batches."""
        frames = [part for part in parts if part is not None]
        frame = pd.concat(frames, ignore_index=True)
        for column in frame.columns:
            series = [part[column] for part in frames]
            if any(values.dtype.kind in "iu" for values in series):
                values = [value for batch in series for value in batch.tolist()]
                frame[column] = _without_rounding(frame[column], values, name)
        return frame

    def reduce_batch(self, reader: BatchReader, batch: Any) -> pd.DataFrame:
        """Draw rows of a batch."""
        return reader.draw(batch, self.probabilities, self.seed)

    def reduce_table(self, table: TableQueries) -> pd.DataFrame:
        """Let the database draw rows."""
        if table.dialect == "tsql":
            raise ValueError(
                f"A sample of {table.name} cannot be drawn, as this database returns the same "
                "random number for all rows. Export some rows to Parquet."
            )
        if None in self.probabilities:
            probability = table.style.number(self.probabilities[None])
        else:
            cases = (
                f"WHEN {table.style.label(label)} THEN {table.style.number(p)}"
                for label, p in self.probabilities.items()
            )
            probability = f"CASE {table.label} {' '.join(cases)} END"
        columns = table.reader.columns
        names = ", ".join(map(table.identifier, columns))
        if table.dialect == "postgres":
            query = self._seeded_query(table, names, probability)
        else:
            random_number = table.table.random.format(self.seed)
            conjunction = "WHERE" if table.weight is None else "AND"
            query = (
                f"SELECT {names} FROM {table.weighted_rows} {conjunction} {random_number} < "
                f"{probability}"
            )
        rows = [tuple(map(plain_value, row)) for row in table.fetch(query)]
        frame = pd.DataFrame(rows, columns=columns)
        for position, name in enumerate(columns):
            values = [row[position] for row in rows]
            frame[name] = _without_rounding(frame[name], values, table.name)
        return frame

    def _seeded_query(self, table: TableQueries, names: str, probability: str) -> str:
        """Return a query that draws by a hash of the row, its number among equal rows and the seed.

        PostgreSQL reads rows in any order, so a sequence of random numbers does not suffice.
        """
        values = []
        for name in dict.fromkeys(table.reader.columns):
            is_number = table.table.types[name].kind == "number"
            # -0.0 and 0.0 are equal and need the same text.
            values.append(f"{table.identifier(name)}{' + 0' if is_number else ''}")
        text = f"CAST(ROW({', '.join(values)}) AS TEXT)"
        distinct_rows = (
            f"(SELECT {names}, {text} AS skescore_text, count(*) AS skescore_count "
            f"FROM {table.weighted_rows} GROUP BY {names}) AS grouped_rows"
        )
        number = f"hashtextextended(skescore_text || ' ' || skescore_copy, {self.seed})"
        return (
            f"SELECT {names} FROM (SELECT {names}, skescore_text, {number} AS skescore_hash "
            f"FROM {distinct_rows} CROSS JOIN LATERAL generate_series(1, skescore_count) "
            "AS copies(skescore_copy)) AS numbered_rows "
            f"WHERE (skescore_hash & {2**52 - 1}) / {float(2**52)!r} < {probability} "
            "ORDER BY skescore_hash, skescore_text"
        )


def _without_rounding(column: pd.Series, values: list[Any], source: str) -> pd.Series:
    """Return a column of the integers `values` if pandas has rounded some of them to floats."""
    integers = [value for value in values if isinstance(value, int)]
    largest = max(integers, key=abs, default=0)
    if column.dtype.kind != "f" or abs(largest) <= 2**53:
        return column
    dtype = "UInt64" if largest >= 2**63 else "Int64"
    try:
        return pd.Series([None if pd.isna(v) else v for v in values], dtype=dtype)
    except (TypeError, ValueError, OverflowError) as error:
        raise ColumnError(
            f"Column {column.name!r} of {source} must have one type in all rows, but it holds the "
            f"integer {largest}, which the floats of other rows cannot represent. Convert all "
            "values to floats or to text."
        ) from error
