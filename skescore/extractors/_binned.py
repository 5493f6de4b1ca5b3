"""Tables that are known only by histograms, for algorithms that do not need rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from skescore.extractors._features import important_histograms
from skescore.extractors._histogram_tree import Path, Sums
from skescore.extractors._input import name_categories, order_of_means
from skescore.extractors._missing import GAP, GapTerms, is_nearer, known_value
from skescore.rules import (
    Condition,
    Domain,
    Fallback,
    Interval,
    LinearOutput,
    Rule,
    RuleSet,
    RuleStatistics,
)
from skescore.rules.exporters import readable_outputs

#: Linear functions of measured columns, one per row: the constant, then the coefficients.
Equations: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True)
class Column:
    """Column of a table and its bins.

    Parameters
    ----------
    name : str
        Name of the feature.
    low, high : float, default=0.0
        Smallest and largest number.
    cuts : tuple of float, default=()
        Increasing numbers between the bins; a value equal to a cut is in the bin below it.
    values : tuple, optional
        Values of a categorical column, one per bin; None for numbers.

    Examples
    --------
    >>> from skescore.extractors import Column
    >>> age = Column("age", 0.0, 99.0, (18.0, 65.0))
    >>> age.n_bins, Column("color", values=("red",)).n_bins
    (3, 1)
    """

    name: str
    low: float = 0.0
    high: float = 0.0
    cuts: tuple[float, ...] = ()
    values: tuple[Any, ...] | None = None

    @property
    def n_bins(self) -> int:
        """Number of bins, without the bin for missing values."""
        return len(self.cuts) + 1 if self.values is None else len(self.values)

    def values_in(self, bins: NDArray[np.intp]) -> NDArray[Any]:
        """Return a value in each of the given bins; NaN or None for the bin of missing values."""
        if self.values is not None:
            values = np.empty(len(self.values) + 1, dtype=object)
            values[:] = [*self.values, None]
            return values[bins]
        last = np.nextafter(self.cuts[-1], np.inf) if self.cuts else 0.0
        return np.array([*self.cuts, last, np.nan])[bins]


@dataclass(frozen=True)
class LabelMoments:
    """Weight, mean and standard deviation of the labels of a node's rows."""

    weight: float
    mean: float
    standard_deviation: float

    def describe_rule(self, rule: Rule) -> Rule:
        """Add the moments to the node's rule; set its output to the mean unless it is linear."""
        statistics = RuleStatistics(
            self.weight, mean=self.mean, standard_deviation=self.standard_deviation
        )
        output = rule.output if isinstance(rule.output, LinearOutput) else self.mean
        return replace(rule, output=output, statistics=statistics)


@dataclass(frozen=True)
class MeasuredColumn:
    """Column in linear functions; its numbers are measured from a center, in units of a step.

    Parameters
    ----------
    name : str
        Name of the column.
    index : int
        Index of the column.
    center : float
        Lower bound of the numbers of the column.
    step : float
        Power of two such that every number is within one step of the center.
    """

    name: str
    index: int
    center: float
    step: float


class HistogramSource(Protocol):
    """Source of sums of rows over bins; the rows themselves are not available.

    Sums are integers, so they do not depend on the order of the rows; the value of a sum is its
    product with a unit. In classification, there is one sum of weights per class. In regression,
    there are sums of the weights w, of w y and of w y², where y is the label minus `center`.
    They are followed by the weighted sums of the measured columns, of the products of each measured
    column with itself and the later ones, and of the products of the measured columns with y.
    """

    @property
    def columns(self) -> Sequence[Column]:
        """Columns with their bins."""

    @property
    def classes(self) -> Sequence[Any] | None:
        """Class labels; None in regression."""

    @property
    def label_range(self) -> tuple[float, float]:
        """Smallest and largest label in regression."""

    @property
    def weighted(self) -> bool:
        """True if rows have weights."""

    @property
    def unit(self) -> float:
        """Weight that a sum of 1 represents."""

    @property
    def label_unit(self) -> float:
        """Value that a sum of labels of 1 represents."""

    @property
    def square_unit(self) -> float:
        """Value that a sum of squares of 1 represents."""

    @property
    def center(self) -> float:
        """Number that is subtracted from the labels."""

    @property
    def measured(self) -> Sequence[MeasuredColumn]:
        """Columns that linear functions may use."""

    @property
    def product_unit(self) -> float:
        """Value that a sum of 1 of measured columns or their products represents."""

    def use(self, columns: Sequence[int], measured: Sequence[int] = ()) -> None:
        """Restrict the histograms to the given columns, and set the measured columns."""

    def histograms(self, nodes: RuleSet | None, totals: Sequence[Sums] | None) -> list[list[Sums]]:
        """Return the sums of each node's rows, one array of shape (n_bins + 1, n_sums) per column.

        The last row of an array is for missing values. The nodes are disjoint rules; None stands
        for one node with all rows. Sums that differ from the `totals` of a node, if given, raise an
        error. In columns that are not used, all rows are in the first bin.
        """

    def cells(self) -> tuple[NDArray[np.intp], Sums]:
        """Return the occupied combinations of bins, one column per feature, and their sums."""

    def labels(self, nodes: RuleSet) -> list[LabelMoments]:
        """Return the label moments of each node's rows; only for regression."""

    def residuals(
        self, nodes: RuleSet, equations: Sequence[Equations], totals: Sequence[Sums]
    ) -> list[list[Fraction]]:
        """Return weighted sums of absolute residuals of the labels from linear functions.

        Each node has its own functions. They predict the label minus the center from a constant and
        the measured columns in steps.
        """


def reject_row_settings(extractor: Any, **settings: bool | str) -> None:
    """Raise a ValueError for a setting that requires the rows themselves.

    Parameters
    ----------
    extractor : BaseExtractor
        The extractor with the settings.
    **settings : bool or str
        For each setting, whether it requires rows, or the remedy if it does.
    """
    for name, needed in settings.items():
        if needed:
            remedy = needed if isinstance(needed, str) else "leave it out"
            raise ValueError(
                f"{name}={getattr(extractor, name)!r} needs the rows themselves, but only their "
                f"sums are known: {remedy}, or fit a sample."
            )


class BinnedTable:
    """Columns of a source as bin numbers, without missing values and categories.

    As for rows in memory, a numeric column with missing values becomes two features: its numbers,
    with missing values at the end of the range with the more similar labels, and an indicator of
    missing values. The values of a categorical column, including missing values, are ordered by
    their mean label.

    Parameters
    ----------
    source : HistogramSource
        The rows.

    Attributes
    ----------
    total : ndarray
        Sums of all rows.
    domain : Domain
        Box around the rows.
    category_order : dict of str to list
        Ordered values of each categorical column; None stands for missing values.
    """

    def __init__(self, source: HistogramSource) -> None:
        self._source, columns = source, source.columns
        root = source.histograms(None, None)[0]
        self.total: Sums = root[0].sum(axis=0)
        self._used: frozenset[int] | None = None
        self._mean: float | None = None
        self._orders: dict[int, NDArray[np.intp]] = {}
        fill: dict[int, float] = {}
        categories = {}
        columns_with_gaps = [j for j, sums in enumerate(root) if sums[-1].any()]
        for j, (column, sums) in enumerate(zip(columns, root, strict=True)):
            if column.values is not None:
                categories[j] = (*column.values, GAP) if j in columns_with_gaps else column.values
                self._orders[j] = self._order_values(sums if j in columns_with_gaps else sums[:-1])
            elif j in columns_with_gaps:
                fill[j] = float(self._fill_bin(sums))
        self._terms = GapTerms(fill, dict(enumerate(fill, start=len(columns))), categories)
        self._ranked = {
            j: tuple(categories[j][i] for i in order) for j, order in self._orders.items()
        }
        self.category_order = {
            columns[j].name: list(map(known_value, values)) for j, values in self._ranked.items()
        }
        self.domain = self._domain(root)
        self._root_histograms: list[list[Sums]] | None = [self._features(root)]

    @property
    def names(self) -> list[str]:
        """Names of the algorithm's features."""
        names = [column.name for column in self._source.columns]
        return names + [f"{names[j]} is missing" for j in self._terms.fill]

    def _bin_weights(self, sums: Sums) -> Sums:
        return sums.sum(axis=-1) if self._source.classes is not None else sums[..., 0]

    def _mean_labels(self, sums: Sums) -> NDArray[np.float64]:
        """Return the shares of the classes, or the mean label."""
        means = sums if self._source.classes is not None else sums[..., 1:2]
        return np.asarray(means / np.maximum(self._bin_weights(sums), 1)[..., None])

    def _order_values(self, sums: Sums) -> NDArray[np.intp]:
        means = sums if self._source.classes is not None else sums[:, 1:2]
        weights = self._bin_weights(sums)
        occupied = np.flatnonzero(weights)  # a value may have only rows of weight 0
        order = occupied[order_of_means(weights[occupied], means[occupied])]
        return np.concatenate([order, np.flatnonzero(weights == 0)])

    def _fill_bin(self, sums: Sums) -> int:
        """Return the number of the bin to which rows with a missing value are added."""
        occupied = np.flatnonzero(self._bin_weights(sums[:-1]))
        if not len(occupied):
            return 0
        lowest, highest = int(occupied[0]), int(occupied[-1])
        weights = np.cumsum(self._bin_weights(sums[occupied]))
        half = int(np.searchsorted(2 * weights, weights[-1]))
        median = occupied[half] / 1
        if 2 * weights[half] == weights[-1]:
            median = (occupied[half] + occupied[half + 1]) / 2
        low = occupied <= median
        if low.all():
            return lowest
        halves = (self._mean_labels(sums[occupied[side]].sum(axis=0)) for side in (low, ~low))
        return lowest if is_nearer(self._mean_labels(sums[-1]), *halves) else highest

    def _domain(self, root: list[Sums]) -> Domain:
        columns = self._source.columns
        ends = np.array([[c.low for c in columns], [c.high for c in columns]])
        values = {j: c.values for j, c in enumerate(columns) if c.values is not None}
        domain = Domain.around(ends, categories=values)
        weight = float(self._bin_weights(self.total))
        return replace(
            domain, missing=tuple(float(self._bin_weights(sums[-1])) / weight for sums in root)
        )

    def _features(self, raw: list[Sums]) -> list[Sums]:
        """Convert histograms of the columns to histograms of the algorithm's features."""
        result, gap_histograms = [], []
        for j, sums in enumerate(raw):
            if j in self._orders:
                result.append(sums[self._orders[j]])
                continue
            filled = sums[:-1]
            if j in self._terms.fill:
                filled = filled.copy()
                filled[int(self._terms.fill[j])] += sums[-1]
                gap_histograms.append(np.stack([sums[:-1].sum(axis=0), sums[-1]]))
            result.append(filled)
        return result + gap_histograms

    def important_features(self, n: int | None) -> NDArray[np.intp]:
        """Return the most important features, see :func:`important_features`."""
        assert self._root_histograms is not None
        features = self._root_histograms[0]
        weights = [self._bin_weights(sums) * self._source.unit for sums in features]
        if self._source.classes is not None:
            means = [sums * self._source.unit for sums in features]
            counts = self.total * self._source.unit
            scatter = float(counts.sum() - (counts**2).sum() / counts.sum())
        else:
            means = [sums[:, 1:2] * self._source.label_unit for sums in features]
            scatter = float(self.moments(self.total[None])[0, 2])
        return important_histograms(weights, means, scatter, n, self._terms.categories)

    def use(self, features: NDArray[np.intp], *, measure: bool = False) -> None:
        """Restrict histograms to the given features; `measure` adds sums for linear functions."""
        self._used = frozenset(features.tolist())
        assert self._root_histograms is not None
        self._root_histograms = [
            self._collapse_unused(features) for features in self._root_histograms
        ]
        columns = {self._terms.marked.get(j, j) for j in self._used}
        measured = []
        if measure:
            unmeasured = {*self._terms.fill, *self._orders}
            measured = [j for j in range(len(self._source.columns)) if j not in unmeasured]
            self._root_histograms = None  # its sums do not include measured columns
        self._source.use(sorted(columns), measured)

    def _collapse_unused(self, features: list[Sums]) -> list[Sums]:
        if self._used is None:
            return features
        return [
            sums if j in self._used else sums.sum(axis=0, keepdims=True)
            for j, sums in enumerate(features)
        ]

    def moments(self, sums: Sums) -> NDArray[np.float64]:
        """Compute the weight, mean and sum of squared deviations of labels from their sums."""
        source, result = self._source, np.empty((len(sums), 3))
        for row, (weight, first, second, *_) in enumerate(sums.tolist()):
            total_weight = Fraction(source.unit) * weight
            label_sum = Fraction(source.label_unit) * first
            squares = Fraction(source.square_unit) * second
            mean = label_sum / total_weight
            deviation = max(squares - label_sum * mean, Fraction(0))
            result[row] = total_weight, mean + Fraction(source.center), deviation
        return result

    def box(self, margin: float) -> Domain:
        """Return the box around the occupied bins, with a margin as a share of its sides."""
        assert self._root_histograms is not None
        occupied_bins = [
            np.flatnonzero(self._bin_weights(sums)) for sums in self._root_histograms[0]
        ]
        ends = np.array(
            [[bins[side] if len(bins) else 0.0 for bins in occupied_bins] for side in (0, -1)]
        )
        return Domain.around(ends, margin, self._terms.categories)

    def fetch_histograms(
        self, paths: Sequence[Path], totals: Sequence[Sums] | None
    ) -> list[list[Sums]]:
        """Return the histograms of the nodes at the ends of paths.

        Parameters
        ----------
        paths : sequence of tuple
            Paths from the root.
        totals : sequence of ndarray or None
            Sums of the rows of each node; None for the root.

        Returns
        -------
        list of lists of ndarray
            Histograms per node and feature.
        """
        if list(paths) == [()] and self._root_histograms is not None:
            histograms, self._root_histograms = self._root_histograms, None
            return histograms
        histograms = self._source.histograms(self.restore_rules(self._nodes(paths)), totals)
        return [self._collapse_unused(self._features(raw)) for raw in histograms]

    def _nodes(self, paths: Sequence[Path]) -> RuleSet:
        rules = [
            Rule(tuple(_split_condition(*step) for step in path), number)
            for number, path in enumerate(paths)
        ]
        return RuleSet(
            rules,
            self.names,
            task="classification",
            classes=range(len(rules)),
            ordered=False,
            disjoint=True,
        )

    def residuals(
        self, paths: Sequence[Path], equations: Sequence[Equations], totals: Sequence[Sums]
    ) -> list[list[Fraction]]:
        """Return summed absolute residuals of nodes, given as in :meth:`fetch_histograms`."""
        return self._source.residuals(self.restore_rules(self._nodes(paths)), equations, totals)

    def sides(self, lower: NDArray[np.float64], upper: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the side lengths of boxes of bins, in the units of the columns."""
        sides = np.zeros(lower.shape)  # 0 for indicators of missing values
        for j, column in enumerate(self._source.columns):
            if column.values is None:
                ends = np.array([column.low, *column.cuts, column.high])
                first = np.clip(np.ceil(lower[:, j]), 0, column.n_bins - 1).astype(np.intp)
                behind = np.clip(np.ceil(upper[:, j]), first + 1, column.n_bins).astype(np.intp)
                sides[:, j] = np.maximum(ends[behind] - ends[first], 0.0)
        return sides

    def with_means(self, rules: RuleSet) -> RuleSet:
        """Set the output of each rule to the mean label of its rows."""
        moments = self._source.labels(rules)
        return rules.replace(rules=list(map(LabelMoments.describe_rule, moments, rules.rules)))

    def finish_rules(self, rules: RuleSet, uncovered: str, abstain_label: Any) -> RuleSet:
        """Add the fallback and round the outputs, like :meth:`BaseExtractor.fit`."""
        source, rules = self._source, rules.without_repeated_end()
        if source.classes is not None:
            counts = (self.total * source.unit).tolist()
            majority = source.classes[int(np.argmax(self.total))]
            return rules.replace(
                fallback=Fallback(majority, uncovered, tuple(counts), abstain_label)
            )
        if self._mean is None:
            everything = RuleSet([Rule((), 0.0)], rules.feature_names, task="regression")
            self._mean = source.labels(everything)[0].mean
        rules = rules.replace(fallback=Fallback(self._mean, uncovered))
        return readable_outputs(rules, np.array(source.label_range))

    def restore_rules(self, ruleset: RuleSet) -> RuleSet:
        """Convert rules on bin numbers to the units of the table.

        Parameters
        ----------
        ruleset : RuleSet
            Rules on bin numbers.

        Returns
        -------
        RuleSet
            Rules on the columns of the source; the domain is the box around its rows.
        """
        columns = self._source.columns
        ranked = name_categories(ruleset, self._ranked)
        names = [column.name for column in columns]
        named_rules = self._terms.restore_rules(ranked, names, self.domain)
        rules = [
            replace(rule, conditions=tuple(self._restore_units(c) for c in rule.conditions))
            for rule in named_rules.rules
        ]
        return named_rules.replace(rules=rules)

    def _restore_units(self, condition: Condition) -> Condition:
        if not isinstance(condition, Interval):
            return condition
        # The last bin below the interval, and the last bin inside.
        cuts, low, high = self._source.columns[condition.feature].cuts, -np.inf, np.inf
        if not np.isinf(condition.lower):
            lower = condition.lower
            last = math.ceil(lower) - 1 if condition.lower_closed else math.floor(lower)
            low = _cut_above(cuts, last)
        if not np.isinf(condition.upper):
            upper = condition.upper
            last = math.floor(upper) if condition.upper_closed else math.ceil(upper) - 1
            high = _cut_above(cuts, last)
        return Interval(condition.feature, low, high, missing=condition.missing)


def _cut_above(cuts: Sequence[float], bin_: int) -> float:
    """Return the upper end of a bin."""
    if bin_ < 0:
        return -np.inf
    return cuts[bin_] if bin_ < len(cuts) else np.inf


def _split_condition(feature: int, cut: int, left: bool) -> Interval:
    return Interval(feature, upper=cut + 0.5) if left else Interval(feature, lower=cut + 0.5)
