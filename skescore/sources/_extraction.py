"""Extraction of rules from data sources, without loading all rows into memory."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, time, timedelta
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from skescore._text import did_you_mean, listed
from skescore._validation import check_choice, check_integer, check_number
from skescore.black_boxes import black_box_task, is_fitted
from skescore.extractors import BaseExtractor, Column, LabelMoments, MeasuredColumn
from skescore.extractors._binned import Equations
from skescore.rules import RuleSet
from skescore.sources._batch_reader import MAX_VALUES, BatchReader, ColumnSummary, plain_value
from skescore.sources._data_source import DataSource, check_feature_names
from skescore.sources._reducers import Reducer, RowSource
from skescore.sources._sampling import SourceSample, sample_source
from skescore.sources._scale import Scale, measured_column
from skescore.sources._sums import (
    BinReducer,
    CellReducer,
    Cells,
    LabelReducer,
    ResidualReducer,
)
from skescore.sources._table_queries import TableQueries
from skescore.sources._tables import ColumnError, SourceError, check_weights

__all__ = [
    "SourceExtraction",
    "extract_source",
]


@dataclass(frozen=True)
class Survey:
    """Summaries of all columns, for the rows with positive weight."""

    n_rows: int
    columns: tuple[ColumnSummary, ...]
    label: ColumnSummary
    weight: ColumnSummary

    def __add__(self, other: Survey) -> Survey:
        columns = zip(self.columns, other.columns, strict=True)
        return Survey(
            self.n_rows + other.n_rows,
            tuple(a + b for a, b in columns),
            self.label + other.label,
            self.weight + other.weight,
        )

    def check(self, names: Sequence[str], label: str, task: str, source: str) -> None:
        """Raise an error if no rules can be learned from the columns.

        Parameters
        ----------
        names : sequence of str
            Names of the features.
        label : str
            Name of the labels in messages.
        task : {"classification", "regression"}
            Kind of the labels.
        source : str
            Name of the source in messages.

        Raises
        ------
        SourceError
            If there are no rows, or labels or weights are missing or invalid.
        ValueError
            If a column cannot be a feature.
        """
        if not self.n_rows:
            raise SourceError(
                f"{source} must hold at least one row with a positive weight, got none."
            )
        if self.label.n_missing:
            raise SourceError(
                f"{label} of {source} must hold a label in every row, but {self.label.n_missing} "
                "rows have none. Exclude such rows, for example in a view."
            )
        check_weights(source, self.weight.n_missing, self.weight.low, self.weight.high)
        for name, column in zip(names, self.columns, strict=True):
            self._check_feature(name, column, source)
        self._check_labels(label, task, source)

    def _check_feature(self, name: str, column: ColumnSummary, source: str) -> None:
        has_numbers = column.low <= column.high
        if column.is_numeric and has_numbers and max(-column.low, column.high) == math.inf:
            raise ValueError(
                f"Column {name!r} of {source} must hold finite numbers, but they range from "
                f"{column.low!r} to {column.high!r}. Replace infinite values with NULL or a bound."
            )
        if _has_mixed_types(column.values) or (not column.is_numeric and has_numbers):
            raise ValueError(
                f"Column {name!r} of {source} must hold numbers or categories, but it holds "
                "both. Convert it to text, or exclude it from features=..."
            )
        _check_n_values(column, f"Column {name!r} of {source}", "Exclude it from features=...")

    def _check_labels(self, label: str, task: str, source: str) -> None:
        invalid = [v for v in self.label.values if not isinstance(v, str | bool | int | float)]
        if invalid:
            raise SourceError(
                f"{label} of {source} must hold strings, numbers or booleans, but it holds "
                f"{min(invalid, key=repr)!r}. Convert it to text or a number in a view."
            )
        if _has_mixed_types(self.label.values):
            text, number = (
                min((v for v in self.label.values if isinstance(v, str) == is_text), key=repr)
                for is_text in (True, False)
            )
            raise SourceError(
                f"{label} of {source} must hold either strings or numbers, but it holds {text!r} "
                f"and {number!r}. Convert all labels to text in a view."
            )
        if task == "classification":
            _check_n_values(
                self.label,
                f"{label} of {source}",
                "Pass task='regression' if they are numeric targets.",
            )
        elif not (math.isfinite(self.label.low) and math.isfinite(self.label.high)):
            raise SourceError(
                f"{label} of {source} must hold finite numbers for a regression, got labels from "
                f"{self.label.low!r} to {self.label.high!r}. Drop such rows."
            )

    def describe(self, names: Sequence[str]) -> list[Column]:
        """Return the columns, without cuts."""
        return [
            Column(name, *((column.low, column.high) if column.low <= column.high else (0.0, 0.0)))
            if column.is_numeric
            else Column(name, values=tuple(sorted(column.values)))
            for name, column in zip(names, self.columns, strict=True)
        ]


def _has_mixed_types(values: Iterable[Any]) -> bool:
    return len({isinstance(value, str) for value in values}) > 1


def _check_n_values(column: ColumnSummary, subject: str, remedy: str) -> None:
    """Raise a ValueError if a column has too many different values."""
    if len(column.values) > MAX_VALUES:
        raise ValueError(
            f"{subject} must hold at most {MAX_VALUES} different values, but it holds more. "
            f"{remedy}"
        )


@dataclass(frozen=True)
class SurveyReducer(Reducer[Survey]):
    """Summaries of all columns.

    Parameters
    ----------
    task : {"classification", "regression"}
        Whether labels are summarized as values or as numbers.
    """

    task: str

    def combine(self, parts: Iterable[Survey | None], name: str) -> Survey:
        """Add up the surveys of all batches."""
        surveys = [part for part in parts if part is not None]
        if not surveys:
            return Survey(0, (), ColumnSummary(), ColumnSummary())
        return super().combine(surveys, name)

    def reduce_batch(self, reader: BatchReader, batch: Any) -> Survey:
        """Summarize the columns of a batch."""
        n_rows, (*columns, label, weight) = reader.summarize(batch, self.task)
        return Survey(n_rows, tuple(columns), label, weight)

    def reduce_table(self, table: TableQueries) -> Survey:
        """Summarize the columns of a table."""
        is_regression = self.task == "regression"
        table.check_numbers([table.target if is_regression else None, table.weight_column])
        numeric = self._numeric_features(table)
        columns = [(table.identifier(name), name in numeric) for name in table.features]
        columns.append((table.label, is_regression))
        if table.weight_column is not None:
            columns.append((table.identifier(table.weight_column), True))
        aggregates = ["count(*)"]
        for column, is_numeric in columns:
            if is_numeric:
                number = f"CAST({column} AS FLOAT8)"
                value = f"CASE WHEN {table.parts.is_number(number)} THEN {number} END"
                aggregates += [f"count({value})", f"min({value})", f"max({value})"]
            else:
                aggregates += [f"count({column})", "NULL", "NULL"]
        (row,) = table.fetch(f"SELECT {', '.join(aggregates)} FROM {table.weighted_rows}")
        n_rows = int(row[0])
        summaries = []
        for j, (column, is_numeric) in enumerate(columns):
            n_observed, low, high = row[1 + 3 * j : 4 + 3 * j]
            n_missing = n_rows - int(n_observed)
            if not is_numeric:
                summaries.append(_summarize_values(table, column, n_missing))
            elif low is None:
                summaries.append(ColumnSummary(n_missing=n_missing))
            else:
                summaries.append(
                    ColumnSummary(float(low) + 0.0, float(high) + 0.0, n_missing=n_missing)
                )
        if table.weight_column is None:
            summaries.append(ColumnSummary())
        return Survey(n_rows, tuple(summaries[:-2]), summaries[-2], summaries[-1])

    def _numeric_features(self, table: TableQueries) -> set[str]:
        """Return the numeric features, determined from their smallest and largest values."""
        types = table.table.types
        for name in table.features:
            if types[name].kind == "other":
                raise ColumnError(
                    f"Column {name!r} of {table.name} must hold numbers or categories, but its "
                    f"type is {types[name].name}. Convert it in a view, or exclude it from "
                    "features=..."
                )
        names = [name for name in table.features if types[name].kind != "flag"]
        if not names:
            return set()
        ends = [f"{end}({table.identifier(name)})" for name in names for end in ("min", "max")]
        (row,) = table.fetch(f"SELECT {', '.join(ends)} FROM {table.weighted_rows}")
        ranges = zip(row[::2], row[1::2], strict=True)
        return {
            name
            for name, (low, high) in zip(names, ranges, strict=True)
            if _is_numeric(table.name, name, low, high)
        }


def _is_numeric(source: str, name: str, low: Any, high: Any) -> bool:
    ends = [value for value in (low, high) if value is not None]
    kinds = {not isinstance(value, str | bool) for value in ends}
    if len(kinds) > 1 or any(isinstance(v, date | time | timedelta | bytes) for v in ends):
        raise ValueError(
            f"Column {name!r} of {source} must hold numbers or categories, but it holds "
            f"{low!r} and {high!r}. Convert it in a view, or exclude it from features=..."
        )
    return kinds != {False}


def _summarize_values(table: TableQueries, column: str, n_missing: int) -> ColumnSummary:
    rows = table.fetch(
        f"SELECT DISTINCT {column} FROM {table.weighted_rows} LIMIT {MAX_VALUES + 2}"
    )
    values = [plain_value(row[0]) for row in rows if row[0] is not None]
    if any(isinstance(value, float) and math.isnan(value) for value in values):
        n_missing, values = n_missing + 1, [v for v in values if v == v]
    return ColumnSummary(values=frozenset(values), n_missing=n_missing)


Floats = NDArray[np.float64]
Sums = NDArray[np.int64]

#: Number of bins of the first pass, and largest number of passes that divide crowded bins.
_N_BINS, _MAX_PASSES = 1000, 3


def cut_at_quantiles(
    source: RowSource, columns: Sequence[Column], scale: Scale, n_cuts: int
) -> list[Column]:
    """Cut numeric columns so that all bins have about the same weight.

    Cuts are round numbers: the bounds of at most 1000 bins of equal width. Bins with too much
    weight are divided in the same way, up to three times.
    """
    weight_scale = replace(scale, with_labels=False)
    grids = {j: _grid(c.low, c.high, _N_BINS) for j, c in enumerate(columns) if c.values is None}
    grids = {j: grid for j, grid in grids.items() if len(grid)}
    result = list(columns)
    uncut = list(grids)
    for n_passes in range(_MAX_PASSES + 1):
        if not uncut:
            break
        cut_columns = [replace(columns[j], cuts=tuple(grids[j])) for j in uncut]
        column_sums = source.reduce(BinReducer(None, cut_columns, weight_scale))
        next_uncut = []
        for j, sums in zip(uncut, column_sums, strict=True):
            weights = sums[0, :-1, 0]
            heavy = np.flatnonzero(weights * 2 * (n_cuts + 1) > weights.sum())
            finer_grid = grids[j]
            if n_passes < _MAX_PASSES:
                finer_grid = _divide_bins(columns[j], grids[j], heavy)
            if len(finer_grid) > len(grids[j]):
                grids[j] = finer_grid
                next_uncut.append(j)
            else:
                cuts = _choose_cuts(np.array(grids[j]), weights, n_cuts)
                result[j] = replace(columns[j], cuts=tuple(cuts))
        uncut = next_uncut
    return result


def _grid(low: float, high: float, max_points: int) -> list[float]:
    """Return evenly spaced round numbers from `low` to below `high`, at most `max_points`."""
    width = high - low
    if not (0 < width < math.inf and max_points >= 1):
        return []
    exponent = math.floor(math.log10(width / max_points))
    for power in (exponent, exponent + 1):
        for factor in (1, 2, 5):
            step = Fraction(factor) * Fraction(10) ** power
            first, last = math.ceil(Fraction(low) / step), math.ceil(Fraction(high) / step)
            if last - first <= max_points:
                grid = (float(k * step) for k in range(first, last))
                return sorted({x for x in grid if low <= x < high})
    return []


def _divide_bins(column: Column, grid: list[float], heavy_bins: NDArray[np.intp]) -> list[float]:
    """Add cuts to a grid in bins with too much weight."""
    ends = [column.low, *grid, column.high]
    max_points = max(1, (2 * _N_BINS) // max(len(heavy_bins), 1) // 2)
    new_cuts = {
        x for bin_ in heavy_bins for x in _grid(ends[bin_], ends[bin_ + 1], min(max_points, 100))
    }
    return sorted({*grid, *new_cuts})


def _choose_cuts(grid: Floats, weights: Sums, n_cuts: int) -> list[float]:
    """Choose the bounds of bins next to quantiles; of equivalent bounds, those with few digits."""
    weight_below = np.cumsum(weights)[:-1]
    total = int(weights.sum())
    cut_of_weight: dict[int, float] = {}
    for k in range(1, n_cuts + 1):
        quantile = total * k / (n_cuts + 1)
        position = int(np.searchsorted(weight_below, quantile))
        neighbors = [p for p in (position - 1, position) if 0 <= p < len(weight_below)]
        if not neighbors:
            continue
        nearest = min(neighbors, key=lambda p: abs(float(weight_below[p]) - quantile))
        weight = int(weight_below[nearest])
        if not 0 < weight < total or weight in cut_of_weight:
            continue
        cut_of_weight[weight] = _simplest_number(grid[weight_below == weight])
    return sorted(cut_of_weight.values())


def _simplest_number(numbers: Floats) -> float:
    """Return the number with the fewest digits; of several, the one closest to the middle."""
    middle = float(numbers[0] / 2 + numbers[-1] / 2)
    return min(numbers.tolist(), key=lambda x: (len(f"{x:.15g}"), abs(x - middle), x))


class Histograms:
    """Histograms of a row source; implements :class:`skescore.extractors.HistogramSource`.

    Parameters
    ----------
    source : RowSource
        The rows.
    columns : sequence of Column
        The features, with the cuts that divide them into bins.
    scale : Scale
        Units of the sums.
    label_range : tuple of float
        Smallest and largest label in regression.
    """

    def __init__(
        self,
        source: RowSource,
        columns: Sequence[Column],
        scale: Scale,
        label_range: tuple[float, float],
    ) -> None:
        self._source, self._scale = source, scale
        self.columns, self.classes = list(columns), scale.classes
        self.label_range, self.weighted = label_range, scale.weight_unit is not None
        self.unit, self.label_unit = scale.weight_unit or 1.0, scale.label_unit
        self.square_unit, self.center = scale.square_unit, scale.center
        self._used: list[int] = list(range(len(columns)))
        self.n_passes = 0

    @property
    def measured(self) -> Sequence[MeasuredColumn]:
        """Columns whose sums and products are computed for linear equations."""
        return self._scale.measured

    @property
    def product_unit(self) -> float:
        """Unit of the sums of measured columns and of their products."""
        return self._scale.product_unit

    def use(self, columns: Sequence[int], measured: Sequence[int] = ()) -> None:
        """Select the columns whose bins are summed, and the measured columns, by index."""
        self._used = list(columns) or [0]
        candidates = (measured_column(self.columns[j], j) for j in measured)
        self._scale = replace(self._scale, measured=tuple(m for m in candidates if m is not None))

    def histograms(self, nodes: RuleSet | None, totals: Sequence[Sums] | None) -> list[list[Sums]]:
        """Compute the sums of each bin in one pass over the rows.

        Parameters
        ----------
        nodes : RuleSet or None
            Rules that assign rows to nodes; None stands for a single node with all rows.
        totals : sequence of ndarray or None
            Sums of each node in an earlier pass, which must not have changed.

        Returns
        -------
        list of list of ndarray
            For each node and column, the sums of each bin, shape (n_bins + 1, n_sums). The last bin
            is for missing values. For columns that are not used, the first bin contains the
            sums of all rows of the node.

        Raises
        ------
        SourceError
            If the rows have changed since an earlier pass.
        """
        self.n_passes += 1
        used_columns = [self.columns[j] for j in self._used]
        column_sums = self._source.reduce(BinReducer(nodes, used_columns, self._scale))
        n_nodes = 1 if nodes is None else len(nodes)
        # The sums of every column must agree with each other and with earlier passes.
        node_totals = column_sums[0].sum(axis=1) if totals is None else np.array(totals)
        self._check_sums(*((sums.sum(axis=1), node_totals) for sums in column_sums))
        result = []
        for node in range(n_nodes):
            node_sums = [
                np.zeros((c.n_bins + 1, self._scale.n_sums), np.int64) for c in self.columns
            ]
            for sums in node_sums:
                sums[0] = node_totals[node]
            for j, sums in zip(self._used, column_sums, strict=True):
                node_sums[j] = sums[node]
            result.append(node_sums)
        return result

    def _check_sums(self, *pairs: tuple[Sums, Sums]) -> None:
        if any((sums != expected).any() for sums, expected in pairs):
            raise SourceError(
                f"{self._source.name} changed while it was read. Read a table that does not "
                "change, or a snapshot."
            )

    def cells(self) -> tuple[NDArray[np.intp], Sums]:
        """Return the bins of each cell, shape (n_cells, n_columns), and the sums of its rows."""
        if math.prod(Cells.sizes(self.columns)) >= 1 << 62:
            raise ColumnError(Cells.too_many("perhaps far more than"))
        self.n_passes += 1
        cells = self._source.reduce(CellReducer(None, self.columns, self._scale))
        return cells.bins(self.columns), cells.sums

    def labels(self, nodes: RuleSet) -> list[LabelMoments]:
        """Return weight, mean and standard deviation of the labels of each node."""
        self.n_passes += 1
        sums = self._source.reduce(LabelReducer(nodes, self.columns, self._scale))
        return [node_labels.moments(self._scale) for node_labels in sums]

    def residuals(
        self, nodes: RuleSet, equations: Sequence[Equations], totals: Sequence[Sums]
    ) -> list[list[Fraction]]:
        """Return the summed absolute residuals of the labels of each node from its equations."""
        self.n_passes += 1
        scale = self._scale
        node_sums = self._source.reduce(ResidualReducer(nodes, self.columns, scale, equations))
        self._check_sums(*((s[:1], total[:1]) for s, total in zip(node_sums, totals, strict=True)))
        return [
            [
                Fraction(scale.residual_unit(equation)) * int(n)
                for equation, n in zip(of_node, sums[1:], strict=True)
            ]
            for of_node, sums in zip(equations, node_sums, strict=True)
        ]


@dataclass(frozen=True)
class SourceExtraction:
    """Result of :func:`extract_source`: rules from a data source.

    Attributes
    ----------
    extractor : BaseExtractor
        The fitted extractor.
    rules : RuleSet
        Rules of the extractor.
    cuts : dict of str to tuple of float
        Cuts of the numeric columns.
    n_rows : int
        Number of rows in the source.
    n_passes : int
        Number of passes over the rows during the extraction, one per level; 0 with a sample.
    sample : SourceSample or None
        Sample from which the extractor learned; None if it learned from sums over all rows.

    Examples
    --------
    >>> import pandas as pd
    >>> from skescore.extractors import CARTExtractor
    >>> from skescore.sources import extract_source
    >>> rows = pd.DataFrame({"length": [0.5, 1.5, 2.5, 3.5], "size": ["s", "s", "l", "l"]})
    >>> cuts = {"length": [1, 2, 3]}
    >>> extraction = extract_source(CARTExtractor(None), rows, target="size", cuts=cuts)
    >>> print(extraction.rules)
    1. IF length ≤ 2 THEN s   [2 rows, 100 % right (data)]
    2. ELSE l   [2 rows, 100 % right (data)]
    >>> extraction.cuts, extraction.n_rows, extraction.n_passes
    ({'length': (1.0, 2.0, 3.0)}, 4, 1)
    """

    extractor: Any
    rules: RuleSet
    cuts: Mapping[str, tuple[float, ...]]
    n_rows: int
    n_passes: int
    sample: SourceSample | None = None


def extract_source(
    extractor: Any,
    source: Any,
    target: str | None = None,
    *,
    cuts: int | Mapping[str, Sequence[float]] | None = None,
    task: str | None = None,
    sample_weight: str | None = None,
    sample_size: int = 20_000,
    random_state: int = 0,
) -> SourceExtraction:
    """Extract rules from a data source with any number of rows, without loading it into memory.

    A database runs one query per level and returns no rows. Other sources are read batch by batch,
    once per level, and the required memory does not depend on the number of rows. If reading fails,
    an error is raised; rules are never extracted from only a part of the rows.

    Parameters
    ----------
    extractor : BaseExtractor
        The extractor with its settings; it is not changed. CARTExtractor, GridExExtractor,
        GridRExExtractor and OptimalTreeExtractor learn from sums over all rows, and their
        `estimator` may be None if `target` is given. Other extractors learn from a sample, see
        :func:`sample_source`; their `estimator` is fitted to the sample unless it is already
        fitted.
    source : DataSource, str, path, frame, dataset or batches
        The rows, see :class:`DataSource`. An iterator of batches cannot be read again.
    target : str, optional
        Column of the labels that the rules learn: predictions of a black box, or true values. With
        None, the extractor's `estimator`, which must be fitted, predicts the labels batch by batch,
        again for each level. Extractors that learn from a sample need the column.
    cuts : int or mapping of str to sequence of float, optional
        Number of cuts of each column, which are round numbers close to quantiles; or the cuts by
        column. The default is the extractor's `cuts_per_feature` (16 if that is "auto"), or 64 if
        the extractor does not set it.
    task : {"classification", "regression"}, optional
        Kind of the labels. By default, the task of the extractor's `estimator`; regression if the
        extractor supports nothing else; classification if the labels are text.
    sample_weight : str, optional
        Column of weights; a row with weight 2 counts as two rows.
    sample_size : int, default=20000
        Approximate number of rows to draw for an extractor that needs more than sums.
    random_state : int, default=0
        Seed of the sample.

    Returns
    -------
    SourceExtraction
        The rules, the cuts and the number of rows.

    Raises
    ------
    SourceError
        If rows cannot be read, change during the extraction, or lack labels or weights.
    ValueError
        If a column or a setting cannot be used.
    TypeError
        If `extractor` is not an extractor.

    See Also
    --------
    score_source : Compute exact scores on all rows, including for rules from a sample.

    Notes
    -----
    All columns except those of labels and weights are features, unless the extractor has
    `features`. The rules are bit-identical for all sources, because all sums are sums of integers:
    for the search for splits, labels and weights of a regression are rounded to 36 bits relative to
    the largest one. The means of leaves are exact. Among equally good splits, the lowest one of the
    first column is chosen. In memory, the extractor would learn the same rules from bin numbers,
    except that it breaks ties at random.

    CART and GridEx compute sums for each node, column and bin. OptimalTree computes sums once for
    each cell. A cell contains the rows with the same bins in all columns; there may be up to 262144
    cells. It compares all trees over the cuts. The slices of a grid have the same number of bins.

    GridREx also sums products of columns, whose number grows with the square of the number of
    columns, so its `features` should name only a few. It reads the rows again for the residuals of
    the boxes. Its equations use the original numbers of columns without missing values. They agree
    with those learned in memory to about eight digits, and are the same for all sources.

    Cuts close to quantiles are round numbers: bounds of 1000 bins of equal width, which are divided
    up to three times if they contain too many rows.

    References
    ----------
    Z. Huang et al.: JoinBoost: grow trees over normalized data using only SQL. PVLDB 16, 2023.

    Examples
    --------
    >>> import tempfile
    >>> from sklearn.datasets import load_iris
    >>> from skescore.extractors import CARTExtractor
    >>> from skescore.sources import extract_source
    >>> data = load_iris(as_frame=True)
    >>> rows = data.data.assign(species=data.target_names[data.target])
    >>> extractor = CARTExtractor(None, max_leaf_nodes=3)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     rows.to_parquet(f"{folder}/part.parquet")
    ...     extraction = extract_source(extractor, folder, target="species")
    >>> print(extraction.rules)
    1. IF petal width (cm) ≤ 0.8 THEN setosa   [50 rows, 100 % right (data)]
    2. ELSE IF petal width (cm) ≤ 1.7 THEN versicolor   [54 rows, 91 % right (data)]
    3. ELSE virginica   [46 rows, 98 % right (data)]
    """
    if not isinstance(extractor, BaseExtractor):
        raise TypeError(f"extractor must be an extractor, got {type(extractor).__name__}.")
    check_choice("task", task, (None, "classification", "regression"))
    data = DataSource.of(source, target, sample_weight)
    if getattr(extractor, "fit_sums", None) is None:
        return _extract_from_sample(extractor, data, task, sample_size, random_state)
    if data.target is None and extractor.estimator is None:
        raise ValueError(
            "Either target must name the column of labels, or the extractor must have an estimator "
            "that predicts them; got neither."
        )
    data.check_repeatable()
    task = _task_of(extractor, task)
    black_box = extractor.estimator if data.target is None else None
    with data.open(check_feature_names(extractor.features), black_box) as rows:
        survey = rows.reduce(SurveyReducer(task or "classification"))
        if task is None:
            _refuse_numbers_as_classes(survey, rows.name)
            task = "classification"
        label = "The target" if data.target is not None else "What the black box predicts"
        survey.check(rows.features, label, task, rows.name)
        classes = tuple(sorted(survey.label.values)) if task == "classification" else None
        label_range = survey.label.low, survey.label.high
        max_weight = None if data.sample_weight is None else survey.weight.high
        scale = Scale.choose(survey.n_rows, classes, label_range, max_weight)
        n_cuts = getattr(extractor, "cuts_per_feature", None) or 64
        if n_cuts == "auto":  # all cuts would give one cell per row
            n_cuts = 16
        if isinstance(cuts, int):
            n_cuts, cuts = check_integer("cuts", cuts, 1), None
        columns = _cut_columns(rows, survey.describe(rows.features), scale, n_cuts, cuts or {})
        histograms = Histograms(rows, columns, scale, label_range)
        model = clone(extractor).fit_sums(histograms)
    reference = "black_box" if data.target is None else "data"
    model.rules_ = model.rules_.replace(reference=reference)
    cuts_by_name = {column.name: column.cuts for column in columns if column.values is None}
    return SourceExtraction(model, model.rules_, cuts_by_name, survey.n_rows, histograms.n_passes)


def _task_of(extractor: Any, task: str | None) -> str | None:
    """Return the task: given, of the black box, or the only one of the extractor."""
    if task is None and extractor.estimator is not None:
        task = black_box_task(extractor.estimator)
    if task is None and len(extractor.tasks) == 1:
        (task,) = extractor.tasks
    if task is not None and task not in extractor.tasks:
        raise ValueError(
            f"{type(extractor).__name__} extracts rules for {' and '.join(extractor.tasks)} only, "
            f"but task is {task!r}."
        )
    return task


def _refuse_numbers_as_classes(survey: Survey, name: str) -> None:
    if not {type(value) for value in survey.label.values}.isdisjoint((int, float)):
        raise ValueError(
            f"task must be given for the target of {name}, which holds numbers: pass "
            "task='regression', or task='classification' if they stand for classes."
        )


def _extract_from_sample(
    extractor: Any, data: DataSource, task: str | None, n_rows: int, random_state: int
) -> SourceExtraction:
    """Fit an extractor that requires rows to a sample."""
    if data.target is None or extractor.estimator is None:
        parameter = "target" if data.target is None else "an estimator"
        raise ValueError(
            f"{type(extractor).__name__} needs more than sums, and learns from a sample of the "
            f"rows with a black box: pass {parameter} as well."
        )
    task = task or black_box_task(extractor.estimator)
    sample = sample_source(data, task=task, n_rows=n_rows, random_state=random_state)
    X = sample.frame.drop(columns=[data.target, *filter(None, [data.sample_weight])])
    model = clone(extractor).set_params(estimator=extractor.estimator)
    labels = () if is_fitted(extractor.estimator) else (sample.frame[data.target],)
    model.fit(X, *labels, sample_weight=sample.weights)
    return SourceExtraction(model, model.rules_, {}, sample.n_rows, 0, sample)


def _cut_columns(
    rows: RowSource,
    columns: Sequence[Column],
    scale: Scale,
    n_cuts: int,
    user_cuts: Mapping[str, Sequence[float]],
) -> list[Column]:
    """Cut numeric columns at the user's cuts, and the others at quantiles."""
    numeric = [column.name for column in columns if column.values is None]
    for name in user_cuts:
        if name not in numeric:
            raise ValueError(
                f"cuts names the column {name!r}, which is not a numeric feature of {rows.name}; "
                f"these are {listed(numeric)}. {did_you_mean(name, numeric)}"
            )
    result = [
        replace(column, cuts=_check_cuts(column.name, user_cuts[column.name]))
        if column.name in user_cuts
        else column
        for column in columns
    ]
    uncut = [j for j, column in enumerate(columns) if column.name not in user_cuts]
    cut_columns = cut_at_quantiles(rows, [columns[j] for j in uncut], scale, n_cuts)
    for j, column in zip(uncut, cut_columns, strict=True):
        result[j] = column
    return result


def _check_cuts(name: str, cuts: Sequence[float]) -> tuple[float, ...]:
    numbers = [check_number(f"a cut of {name!r}", float(cut), finite=True) for cut in cuts]
    if any(a >= b for a, b in pairwise(numbers)):
        raise ValueError(
            f"cuts must increase, but the cuts of {name!r} are {numbers!r}. Sort them, and leave "
            "out repetitions."
        )
    return tuple(numbers)
