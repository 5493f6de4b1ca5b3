"""Tables of which only histograms are known, as an algorithm that needs no more sees them."""

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

#: Equations about measured columns, one in a line: the constant, then the coefficients.
Equations: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True)
class Column:
    """A column of a table, and the bins that it is divided into.

    Parameters
    ----------
    name : str
        The feature.
    low, high : float, default=0.0
        The range of its numbers.
    cuts : tuple of float, default=()
        Numbers between the bins, increasing; a value equal to a cut lies in the bin below it.
    values : tuple, optional
        The values of a categorical column, which are its bins; None for numbers.

    Examples
    --------
    >>> from skescore.extractors._binned import Column
    >>> Column("age", 0.0, 99.0, (18.0, 65.0)).n_bins, Column("color", values=("red",)).n_bins
    (3, 1)
    """

    name: str
    low: float = 0.0
    high: float = 0.0
    cuts: tuple[float, ...] = ()
    values: tuple[Any, ...] | None = None

    @property
    def n_bins(self) -> int:
        """Bins of known values."""
        return len(self.cuts) + 1 if self.values is None else len(self.values)

    def values_in(self, bins: NDArray[np.intp]) -> NDArray[Any]:
        """A value of each of some bins; NaN or None for that after the last."""
        if self.values is not None:
            values = np.empty(len(self.values) + 1, dtype=object)
            values[:] = [*self.values, None]
            return values[bins]
        last = np.nextafter(self.cuts[-1], np.inf) if self.cuts else 0.0
        return np.array([*self.cuts, last, np.nan])[bins]


@dataclass(frozen=True)
class LabelMoments:
    """Labels of the rows of a node: what they weigh, their mean and standard deviation."""

    weight: float
    mean: float
    standard_deviation: float

    def told_by(self, rule: Rule) -> Rule:
        """The rule of that node, which concludes the mean unless it has an equation."""
        statistics = RuleStatistics(
            self.weight, mean=self.mean, standard_deviation=self.standard_deviation
        )
        output = rule.output if isinstance(rule.output, LinearOutput) else self.mean
        return replace(rule, output=output, statistics=statistics)


@dataclass(frozen=True)
class Measured:
    """A column that equations are about: its numbers are told as steps from a center.

    Parameters
    ----------
    name : str
        The column.
    place : int
        Its number.
    center : float
        A number that is at most its least.
    step : float
        A power of two, so large that no number is more than one step away.
    """

    name: str
    place: int
    center: float
    step: float


class HistogramSource(Protocol):
    """Rows of which only sums are known.

    Sums are whole numbers, so that they do not depend on the order of the rows. In a
    classification there is one for each class, in a regression the weight, the label times the
    weight, and its square times the weight; labels are told as they differ from `center`, and units
    turn sums into what they stand for. Once columns are measured, the sums of these follow, those
    of the products of each with itself and those after it, and those of its products with labels;
    all times the weight.
    """

    @property
    def columns(self) -> Sequence[Column]:
        """The features."""

    @property
    def classes(self) -> Sequence[Any] | None:
        """The labels of a classification."""

    @property
    def label_range(self) -> tuple[float, float]:
        """The least and the greatest label of a regression."""

    @property
    def weighted(self) -> bool:
        """Whether rows have weights."""

    @property
    def unit(self) -> float:
        """The weight that a sum of 1 stands for."""

    @property
    def label_unit(self) -> float:
        """What a sum of labels of 1 stands for."""

    @property
    def square_unit(self) -> float:
        """What a sum of squares of 1 stands for."""

    @property
    def center(self) -> float:
        """What labels differ from."""

    @property
    def measured(self) -> Sequence[Measured]:
        """The columns that equations are about."""

    @property
    def product_unit(self) -> float:
        """What a sum of 1 of measured columns and their products stands for."""

    def use(self, columns: Sequence[int], measured: Sequence[int] = ()) -> None:
        """Sum by the bins of some columns only; some columns are measured from now on."""

    def histograms(self, nodes: RuleSet | None, totals: Sequence[Sums] | None) -> list[list[Sums]]:
        """Sums of each node's rows: per column an array of shape (n_bins + 1, n_sums).

        The last line is that of rows without a value. The nodes are rules of which no two hold
        for a row; None stands for all rows, as one node. It is an error if the sums are not those
        of the nodes' `totals`, where these are known. All rows are in the first bin of a column
        that is not used.
        """

    def cells(self) -> tuple[NDArray[np.intp], Sums]:
        """The bins in which rows lie together, one column each, and the sums of these rows."""

    def labels(self, nodes: RuleSet) -> list[LabelMoments]:
        """Labels of each node's rows, of a regression."""

    def residuals(
        self, nodes: RuleSet, equations: Sequence[Equations], totals: Sequence[Sums]
    ) -> list[list[Fraction]]:
        """Absolute residuals of labels from some equations, times the weight, summed.

        Each node has equations of its own: one line each, a constant and the coefficients of the
        measured columns in steps, which give how far a label is from the center.
        """


def needs_rows(extractor: Any, **settings: bool | str) -> None:
    """Raise a ValueError for a setting that needs the rows themselves.

    Parameters
    ----------
    extractor : BaseExtractor
        Whose settings they are.
    **settings : bool or str
        Whether it does, or what can be done then beside leaving it out.
    """
    for name, wrong in settings.items():
        if wrong:
            remedy = wrong if isinstance(wrong, str) else "leave it out"
            raise ValueError(
                f"{name}={getattr(extractor, name)!r} needs the rows themselves, but of these only "
                f"sums are known: {remedy}, or fit a sample."
            )


class BinnedTable:
    """The columns of a source without gaps and categories: everything is a number of a bin.

    As of rows in memory, a numeric column that lacks values becomes two, its numbers, filled where
    there are none with the end of their range that has labels most like those, and whether a value
    is missing; the values of a category, a missing one among them, are in the order of their mean
    label.

    Parameters
    ----------
    source : HistogramSource
        The rows.

    Attributes
    ----------
    total : ndarray
        The sums of all rows.
    domain : Domain
        The box around the rows.
    category_order : dict of str to list
        The values of each category in order; None stands for a missing one.
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
        lacking = [j for j, sums in enumerate(root) if sums[-1].any()]
        for j, (column, sums) in enumerate(zip(columns, root, strict=True)):
            if column.values is not None:
                categories[j] = (*column.values, GAP) if j in lacking else column.values
                self._orders[j] = self._order(sums if j in lacking else sums[:-1])
            elif j in lacking:
                fill[j] = float(self._fill(sums))
        self._terms = GapTerms(fill, dict(enumerate(fill, start=len(columns))), categories)
        self._ranked = {
            j: tuple(categories[j][i] for i in order) for j, order in self._orders.items()
        }
        self.category_order = {
            columns[j].name: list(map(known_value, values)) for j, values in self._ranked.items()
        }
        self.domain = self._domain(root)
        self._first: list[list[Sums]] | None = [self._features(root)]

    @property
    def names(self) -> list[str]:
        """The features that rules of the algorithm are about."""
        names = [column.name for column in self._source.columns]
        return names + [f"{names[j]} is missing" for j in self._terms.fill]

    def _weights(self, sums: Sums) -> Sums:
        return sums.sum(axis=-1) if self._source.classes is not None else sums[..., 0]

    def _profile(self, sums: Sums) -> NDArray[np.float64]:
        """Class probabilities, or the mean."""
        means = sums if self._source.classes is not None else sums[..., 1:2]
        return np.asarray(means / np.maximum(self._weights(sums), 1)[..., None])

    def _order(self, sums: Sums) -> NDArray[np.intp]:
        means = sums if self._source.classes is not None else sums[:, 1:2]
        weights = self._weights(sums)
        there = np.flatnonzero(weights)  # a value may have rows of no weight only
        order = there[order_of_means(weights[there], means[there])]
        return np.concatenate([order, np.flatnonzero(weights == 0)])

    def _fill(self, sums: Sums) -> int:
        """The bin that rows without a value are put into."""
        known = np.flatnonzero(self._weights(sums[:-1]))
        if not len(known):
            return 0
        least, greatest = int(known[0]), int(known[-1])
        weights = np.cumsum(self._weights(sums[known]))
        half = int(np.searchsorted(2 * weights, weights[-1]))
        median = known[half] / 1
        if 2 * weights[half] == weights[-1]:
            median = (known[half] + known[half + 1]) / 2
        low = known <= median
        if low.all():
            return least
        halves = (self._profile(sums[known[side]].sum(axis=0)) for side in (low, ~low))
        return least if is_nearer(self._profile(sums[-1]), *halves) else greatest

    def _domain(self, root: list[Sums]) -> Domain:
        columns = self._source.columns
        ends = np.array([[c.low for c in columns], [c.high for c in columns]])
        values = {j: c.values for j, c in enumerate(columns) if c.values is not None}
        domain = Domain.around(ends, categories=values)
        weight = float(self._weights(self.total))
        return replace(
            domain, missing=tuple(float(self._weights(sums[-1])) / weight for sums in root)
        )

    def _features(self, raw: list[Sums]) -> list[Sums]:
        """Histograms of the algorithm's features, from those of the columns."""
        result, told = [], []
        for j, sums in enumerate(raw):
            if j in self._orders:
                result.append(sums[self._orders[j]])
                continue
            known = sums[:-1]
            if j in self._terms.fill:
                known = known.copy()
                known[int(self._terms.fill[j])] += sums[-1]
                told.append(np.stack([sums[:-1].sum(axis=0), sums[-1]]))
            result.append(known)
        return result + told

    def important_features(self, n: int | None) -> NDArray[np.intp]:
        """The features that say most of the labels, see :func:`important_features`."""
        assert self._first is not None
        features = self._first[0]
        weights = [self._weights(sums) * self._source.unit for sums in features]
        if self._source.classes is not None:
            means = [sums * self._source.unit for sums in features]
            counts = self.total * self._source.unit
            scatter = float(counts.sum() - (counts**2).sum() / counts.sum())
        else:
            means = [sums[:, 1:2] * self._source.label_unit for sums in features]
            scatter = float(self.moments(self.total[None])[0, 2])
        return important_histograms(weights, means, scatter, n, self._terms.categories)

    def use(self, features: NDArray[np.intp], *, measure: bool = False) -> None:
        """Tell of some features only, and of the numbers in columns without gaps."""
        self._used = frozenset(features.tolist())
        assert self._first is not None
        self._first = [self._narrowed(features) for features in self._first]
        columns = {self._terms.marked.get(j, j) for j in self._used}
        measured = []
        if measure:
            told = {*self._terms.fill, *self._orders}
            measured = [j for j in range(len(self._source.columns)) if j not in told]
            self._first = None  # which says nothing of these
        self._source.use(sorted(columns), measured)

    def _narrowed(self, features: list[Sums]) -> list[Sums]:
        if self._used is None:
            return features
        return [
            sums if j in self._used else sums.sum(axis=0, keepdims=True)
            for j, sums in enumerate(features)
        ]

    def moments(self, sums: Sums) -> NDArray[np.float64]:
        """Weight, mean and summed squared deviation of labels, of sums of a regression."""
        source, result = self._source, np.empty((len(sums), 3))
        for place, (weight, first, second, *_) in enumerate(sums.tolist()):
            whole = Fraction(source.unit) * weight
            of_labels = Fraction(source.label_unit) * first
            squares = Fraction(source.square_unit) * second
            mean = of_labels / whole
            deviation = max(squares - of_labels * mean, Fraction(0))
            result[place] = whole, mean + Fraction(source.center), deviation
        return result

    def box(self, margin: float) -> Domain:
        """The domain of the algorithm: numbers of bins that hold rows, widened by a share."""
        assert self._first is not None
        held = [np.flatnonzero(self._weights(sums)) for sums in self._first[0]]
        ends = np.array([[bins[side] if len(bins) else 0.0 for bins in held] for side in (0, -1)])
        return Domain.around(ends, margin, self._terms.categories)

    def look(self, paths: Sequence[Path], totals: Sequence[Sums] | None) -> list[list[Sums]]:
        """Histograms of the nodes at the ends of some ways.

        Parameters
        ----------
        paths : sequence of tuple
            The ways from the root.
        totals : sequence of ndarray or None
            What the rows of each node sum up to; None for the root.

        Returns
        -------
        list of lists of ndarray
            Per node and feature.
        """
        if list(paths) == [()] and self._first is not None:
            found, self._first = self._first, None
            return found
        found = self._source.histograms(self.named(self._nodes(paths)), totals)
        return [self._narrowed(self._features(raw)) for raw in found]

    def _nodes(self, paths: Sequence[Path]) -> RuleSet:
        rules = [
            Rule(tuple(_step(*step) for step in path), place) for place, path in enumerate(paths)
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
        """Summed absolute residuals of the labels of some nodes, see :meth:`look`."""
        return self._source.residuals(self.named(self._nodes(paths)), equations, totals)

    def sides(self, lower: NDArray[np.float64], upper: NDArray[np.float64]) -> NDArray[np.float64]:
        """How long boxes of numbers of bins are, as far as the rows reach."""
        sides = np.zeros(lower.shape)  # also of columns that tell gaps
        for j, column in enumerate(self._source.columns):
            if column.values is None:
                ends = np.array([column.low, *column.cuts, column.high])
                first = np.clip(np.ceil(lower[:, j]), 0, column.n_bins - 1).astype(np.intp)
                behind = np.clip(np.ceil(upper[:, j]), first + 1, column.n_bins).astype(np.intp)
                sides[:, j] = np.maximum(ends[behind] - ends[first], 0.0)
        return sides

    def told(self, rules: RuleSet) -> RuleSet:
        """Rules that conclude the means of the rows for which they hold, one each."""
        moments = self._source.labels(rules)
        return rules.replace(rules=list(map(LabelMoments.told_by, moments, rules.rules)))

    def finished(self, rules: RuleSet, uncovered: str, abstain_label: Any) -> RuleSet:
        """Rules about the table, with what is said where none holds, as a fit leaves them."""
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

    def named(self, ruleset: RuleSet) -> RuleSet:
        """Rules about numbers of bins, in terms of the table.

        Parameters
        ----------
        ruleset : RuleSet
            Rules of the algorithm.

        Returns
        -------
        RuleSet
            Rules about the columns of the source, in the box around its rows.
        """
        columns = self._source.columns
        ranked = name_categories(ruleset, self._ranked)
        names = [column.name for column in columns]
        found = self._terms.named(ranked, names, self.domain)
        rules = [
            replace(rule, conditions=tuple(self._in_units(c) for c in rule.conditions))
            for rule in found.rules
        ]
        return found.replace(rules=rules)

    def _in_units(self, condition: Condition) -> Condition:
        if not isinstance(condition, Interval):
            return condition
        # The last bin that lies below it, and the last one in it.
        cuts, low, high = self._source.columns[condition.feature].cuts, -np.inf, np.inf
        if not np.isinf(condition.lower):
            at = condition.lower
            low = _cut_above(cuts, math.ceil(at) - 1 if condition.lower_closed else math.floor(at))
        if not np.isinf(condition.upper):
            at = condition.upper
            high = _cut_above(cuts, math.floor(at) if condition.upper_closed else math.ceil(at) - 1)
        return Interval(condition.feature, low, high, missing=condition.missing)


def _cut_above(cuts: Sequence[float], bin_: int) -> float:
    """Where a bin ends."""
    if bin_ < 0:
        return -np.inf
    return cuts[bin_] if bin_ < len(cuts) else np.inf


def _step(feature: int, cut: int, left: bool) -> Interval:
    return Interval(feature, upper=cut + 0.5) if left else Interval(feature, lower=cut + 0.5)
