"""Histograms of rows that stay where they are: sums per node, column and bin, as whole numbers.

Whole numbers add up to the same in any order, so that every source gives the same to the last bit.
Labels and weights become whole numbers by units, of which so many fit that no sum can overflow.
"""

from __future__ import annotations

import functools
import math
import operator
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, time, timedelta
from decimal import Decimal
from fractions import Fraction
from functools import partial
from typing import Any, ClassVar, Protocol

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from skescore._text import listed
from skescore._validation import one_dimension, python_value
from skescore.extractors import Column, LabelMoments, MeasuredColumn, is_categorical
from skescore.extractors._binned import Equations
from skescore.rules import Rule, RuleSet
from skescore.rules.exporters._sql import SqlParts, sql_parts, translated
from skescore.sources._tables import ColumnError, SourceError, SqlTable, failing

Floats = NDArray[np.float64]
Codes = NDArray[np.intp]
Sums = NDArray[np.int64]

#: Bits of the largest weight or label; sums of so many rows are exact in double precision.
_BITS, _ROWS = 36, 1 << 16
#: Bits of the largest sum.
_ALL_BITS = 62
#: Columns that vary less, or more than one over it, are in no equation.
_LEAST_STEP = 1e-280
#: Different values that a category or the labels of a classification may have.
MOST_VALUES = 1000


# --- what is known of the columns ----------------------------------------------------------------


@dataclass(frozen=True)
class Seen:
    """What some rows hold in a column: numbers of a range, or values, or nothing."""

    low: float = math.inf
    high: float = -math.inf
    values: frozenset[Any] = frozenset()
    n_missing: int = 0

    def __add__(self, other: Seen) -> Seen:
        values = self.values if len(self.values) > MOST_VALUES else self.values | other.values
        return Seen(
            min(self.low, other.low),
            max(self.high, other.high),
            values,
            self.n_missing + other.n_missing,
        )

    @property
    def is_number(self) -> bool:
        """Whether there are no values of a category."""
        return not self.values


@dataclass(frozen=True)
class Survey:
    """What some rows hold in all columns; rows of no weight are none."""

    n_rows: int
    columns: tuple[Seen, ...]
    label: Seen
    weight: Seen

    def __add__(self, other: Survey) -> Survey:
        pairs = zip(self.columns, other.columns, strict=True)
        return Survey(
            self.n_rows + other.n_rows,
            tuple(a + b for a, b in pairs),
            self.label + other.label,
            self.weight + other.weight,
        )

    def check(self, names: Sequence[str], label: str, task: str, source: str) -> None:
        """Raise a SourceError or ValueError for what no rules can be learned from."""
        if not self.n_rows:
            raise SourceError(
                f"{source} must hold at least one row that weighs more than nothing, got none."
            )
        if self.label.n_missing:
            raise SourceError(
                f"{label} of {source} must hold a label in every row, but {self.label.n_missing} "
                "rows have none. Drop such rows first, as in a view."
            )
        weight = self.weight
        if weight.n_missing or weight.low < 0 or weight.high == math.inf:
            given = f"go from {weight.low!r} to {weight.high!r}"
            if weight.n_missing:
                given = f"lack in {weight.n_missing} rows"
            raise SourceError(
                f"The weights of {source} must be finite and zero or more, but they {given}. Drop "
                "such rows first, or weigh them 0."
            )
        for name, seen in zip(names, self.columns, strict=True):
            if seen.is_number and max(-seen.low, seen.high) == math.inf and seen.low <= seen.high:
                raise ValueError(
                    f"Column {name!r} of {source} must hold finite numbers, but they go from "
                    f"{seen.low!r} to {seen.high!r}. Replace infinite ones by NULL or a bound."
                )
            if not seen.is_number and seen.low <= seen.high:
                raise ValueError(
                    f"Column {name!r} of {source} must hold numbers or categories, but it holds "
                    "both. Make it text, or leave it out of features=..."
                )
            _check_few(seen, f"Column {name!r} of {source}", "Leave it out of features=...")
        strange = [v for v in self.label.values if not isinstance(v, str | bool | int | float)]
        if strange:
            raise SourceError(
                f"{label} of {source} must hold texts, numbers, or true and false, but it holds "
                f"{min(strange, key=repr)!r}. Make it text, or a number, in a view."
            )
        if task == "classification":
            _check_few(
                self.label,
                f"{label} of {source}",
                "Pass task='regression' if they are numbers to be predicted.",
            )
        elif not (math.isfinite(self.label.low) and math.isfinite(self.label.high)):
            raise SourceError(
                f"{label} of {source} must hold finite numbers for a regression, got labels from "
                f"{self.label.low!r} to {self.label.high!r}. Drop such rows."
            )

    def describe(self, names: Sequence[str]) -> list[Column]:
        """The columns, without cuts."""
        return [
            Column(name, *((seen.low, seen.high) if seen.low <= seen.high else (0.0, 0.0)))
            if seen.is_number
            else Column(name, values=tuple(sorted(seen.values)))
            for name, seen in zip(names, self.columns, strict=True)
        ]


def _check_few(seen: Seen, what: str, remedy: str) -> None:
    if len(seen.values) > MOST_VALUES:
        raise ValueError(
            f"{what} must hold at most {MOST_VALUES} different values, but it holds more. {remedy}"
        )


# --- whole numbers --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Scale:
    """How weights and labels become whole numbers.

    Parameters
    ----------
    classes : tuple, optional
        The labels of a classification.
    weight_unit : float, optional
        What rows weigh is a multiple of it; None where each row counts as one.
    center : float, default=0.0
        Labels are summed as they differ from it; it is at most the least of them.
    label_unit : float, default=1.0
        What differences, times the weight, are multiples of.
    square_unit : float, default=1.0
        What their squares are.
    of_labels : bool, default=True
        Whether there are sums of labels or classes beside those of weights.
    measured : tuple of MeasuredColumn, default=()
        Columns of which, and of whose products, there are sums in a regression.
    """

    classes: tuple[Any, ...] | None
    weight_unit: float | None = None
    center: float = 0.0
    label_unit: float = 1.0
    square_unit: float = 1.0
    bits: int = _BITS
    of_labels: bool = True
    measured: tuple[MeasuredColumn, ...] = ()

    @classmethod
    def of(cls, survey: Survey, classes: tuple[Any, ...] | None, *, weighted: bool) -> Scale:
        """The units of some rows."""
        bits = min(_BITS, _ALL_BITS - survey.n_rows.bit_length())
        weight = survey.weight.high if weighted else 1.0
        unit = _unit(weight, bits) if weighted else None
        if classes is not None:
            return cls(classes, unit, bits=bits)
        low, high = survey.label.low, survey.label.high
        step = _unit(high / 2 - low / 2, -1)
        if not math.isfinite(step) or not math.isfinite(weight * step * step):
            raise ValueError(
                f"Labels from {low!r} to {high!r} have squares that are too large for a regression."
                " Scale them."
            )
        center = math.floor(low / step) * step if step else low
        reach = high - center
        return cls(
            None,
            unit,
            center,
            _unit(weight * reach, bits),
            _unit(weight * reach * reach, bits),
            bits,
        )

    @property
    def n_sums(self) -> int:
        """How many sums there are of each bin."""
        if not self.of_labels:
            return 1
        m = len(self.measured)
        return 3 + 2 * m + m * (m + 1) // 2 if self.classes is None else len(self.classes)

    @property
    def product_unit(self) -> float:
        """What numbers of measured columns and their products, times the weight, are in."""
        return self.weight_unit or _unit(1.0, self.bits)

    def residual_unit(self, equation: Floats) -> float:
        """What residuals from an equation, times the weight, are multiples of."""
        weight = self.product_unit * 2.0**self.bits
        label = self.label_unit * 2.0**self.bits / weight
        return _unit(weight * (label + float(np.abs(equation).sum())), self.bits)

    def whole(self, values: Floats, unit: float) -> Floats:
        """Multiples of a unit, which is a power of two, so that nothing but this is rounded."""
        return np.floor(values / unit + 0.5)


def measured_column(column: Column, place: int) -> MeasuredColumn | None:
    """A column of numbers, as equations are about it; None if it is none or does not vary."""
    half = column.high / 2 - column.low / 2
    if column.values is not None or not _LEAST_STEP < half < 1 / _LEAST_STEP:
        return None
    whole = _unit(half, -1)
    center = math.floor(column.low / whole) * whole
    return MeasuredColumn(column.name, place, center, _unit(column.high - center, 0))


def _unit(largest: float, bits: int) -> float:
    """The power of two of which so many bits make up a number."""
    if not largest > 0:
        return 1.0
    return math.ldexp(1.0, max(math.frexp(largest)[1] - bits, -1000))


@dataclass(frozen=True)
class LabelSums:
    """Sums over the rows of a node from which its mean and deviation follow.

    `pieces` has two lines, whole units and the rest of them in 2 ** -bits units, for weights,
    weighted deviations from the center, and weighted squares of those.
    """

    n_rows: int
    pieces: tuple[tuple[int, int], tuple[int, int], tuple[int, int]]
    low: float
    high: float

    def __add__(self, other: LabelSums) -> LabelSums:
        added = [(a[0] + b[0], a[1] + b[1]) for a, b in zip(self.pieces, other.pieces, strict=True)]
        return LabelSums(
            self.n_rows + other.n_rows,
            (added[0], added[1], added[2]),
            min(self.low, other.low),
            max(self.high, other.high),
        )

    def moments(self, scale: Scale) -> LabelMoments:
        """What the sums stand for."""
        units = (scale.weight_unit or 1.0, scale.label_unit, scale.square_unit)
        weight, first, second = (
            Fraction(unit) * (whole + Fraction(rest, 1 << scale.bits))
            for unit, (whole, rest) in zip(units, self.pieces, strict=True)
        )
        if self.low == self.high:
            return LabelMoments(float(weight), self.low, 0.0)
        mean = first / weight
        variance = max(second / weight - mean * mean, Fraction(0))
        return LabelMoments(
            float(weight), float(mean + Fraction(scale.center)), math.sqrt(variance)
        )


# --- sources --------------------------------------------------------------------------------------


class Rows(Protocol):
    """Rows that can be asked for sums, wherever they lie."""

    name: str

    def survey(self) -> Survey:
        """What the rows hold."""

    def sums(self, nodes: RuleSet | None, columns: Sequence[Column], scale: Scale) -> list[Sums]:
        """Per column the sums of its bins, shape (n_nodes, n_bins + 1, n_sums).

        The last bin is that of rows without a value.
        """

    def labels(self, nodes: RuleSet, columns: Sequence[Column], scale: Scale) -> list[LabelSums]:
        """The labels of each node's rows."""

    def residuals(
        self,
        nodes: RuleSet,
        columns: Sequence[Column],
        scale: Scale,
        equations: Sequence[Equations],
    ) -> list[Sums]:
        """Per node the weight, and the absolute residuals from each of its equations."""

    def cells(self, columns: Sequence[Column], scale: Scale) -> Cells:
        """The sums of the rows that lie in the same bins."""

    def counts(self) -> dict[Any, int]:
        """How many rows each class has; all of them as None in a regression."""

    def draw(self, chances: Mapping[Any, float], seed: int) -> pd.DataFrame:
        """Rows of each class, each with a chance."""


@dataclass(frozen=True)
class Cells:
    """Bins in which rows lie together: a number that tells them, and the sums of their rows."""

    #: Search trees of all cells take too long with more.
    MOST: ClassVar[int] = 1 << 18

    keys: NDArray[np.int64]
    sums: Sums

    def __add__(self, other: Cells) -> Cells:
        keys = np.concatenate([self.keys, other.keys])
        return Cells.of(keys, np.concatenate([self.sums, other.sums]))

    @classmethod
    def of(cls, keys: NDArray[np.int64], sums: Sums) -> Cells:
        """Cells of which some may be the same."""
        found, cell = np.unique(keys, return_inverse=True)
        if len(found) > cls.MOST:
            raise ColumnError(cls.too_many("more than"))
        totals = np.zeros((len(found), sums.shape[1]), dtype=np.int64)
        np.add.at(totals, cell, sums)
        return cls(found, totals)

    @classmethod
    def too_many(cls, how: str) -> str:
        """What to do about it."""
        return (
            f"Cut, the rows must lie in at most {cls.MOST} cells, so that all trees over the cuts "
            f"can be compared, but they lie in {how} that. Pass fewer cuts=..., name fewer columns "
            "in features=..., or fit a sample, see sample_source."
        )

    @staticmethod
    def sizes(columns: Sequence[Column]) -> list[int]:
        """How many bins each column has, that of missing values among them."""
        return [column.n_bins + 1 for column in columns]


class Histograms:
    """A source with its columns cut; what an extractor learns from.

    See :class:`skescore.extractors.HistogramSource`.
    """

    def __init__(
        self, rows: Rows, columns: Sequence[Column], scale: Scale, label_range: tuple[float, float]
    ) -> None:
        self._rows, self._scale = rows, scale
        self.columns, self.classes = list(columns), scale.classes
        self.label_range, self.weighted = label_range, scale.weight_unit is not None
        self.unit, self.label_unit = scale.weight_unit or 1.0, scale.label_unit
        self.square_unit, self.center = scale.square_unit, scale.center
        self._used: list[int] = list(range(len(columns)))
        self.n_passes = 0

    @property
    def measured(self) -> Sequence[MeasuredColumn]:
        """The columns that equations are about."""
        return self._scale.measured

    @property
    def product_unit(self) -> float:
        """What a sum of 1 of measured columns and their products stands for."""
        return self._scale.product_unit

    def use(self, columns: Sequence[int], measured: Sequence[int] = ()) -> None:
        """Sum by the bins of some columns only; some columns are measured from now on."""
        self._used = list(columns) or [0]
        found = (measured_column(self.columns[j], j) for j in measured)
        self._scale = replace(self._scale, measured=tuple(m for m in found if m is not None))

    def histograms(self, nodes: RuleSet | None, totals: Sequence[Sums] | None) -> list[list[Sums]]:
        """Sums of each node's rows, per column."""
        self.n_passes += 1
        used = [self.columns[j] for j in self._used]
        found = self._rows.sums(nodes, used, self._scale)
        n_nodes = 1 if nodes is None else len(nodes)
        # Every column has to tell the same rows, and the same as the looks before.
        expected = found[0].sum(axis=1) if totals is None else np.array(totals)
        self._check_equal(*((each.sum(axis=1), expected) for each in found))
        result = []
        for node in range(n_nodes):
            by_column = [
                np.zeros((c.n_bins + 1, self._scale.n_sums), np.int64) for c in self.columns
            ]
            for sums in by_column:
                sums[0] = expected[node]
            for j, sums in zip(self._used, found, strict=True):
                by_column[j] = sums[node]
            result.append(by_column)
        return result

    def _check_equal(self, *pairs: tuple[Sums, Sums]) -> None:
        if any((found != expected).any() for found, expected in pairs):
            raise SourceError(
                f"{self._rows.name} changed while it was read. Read a table at rest, or a snapshot."
            )

    def cells(self) -> tuple[NDArray[np.intp], Sums]:
        """The bins in which rows lie together, one column each, and the sums of these rows."""
        sizes = Cells.sizes(self.columns)
        if math.prod(sizes) >= 1 << 62:
            raise ColumnError(Cells.too_many("perhaps far more than"))
        self.n_passes += 1
        found = self._rows.cells(self.columns, self._scale)
        bins = np.empty((len(found.keys), len(sizes)), dtype=np.intp)
        rest = found.keys
        for j in reversed(range(len(sizes))):
            rest, bins[:, j] = np.divmod(rest, sizes[j])
        return bins, found.sums

    def labels(self, nodes: RuleSet) -> list[LabelMoments]:
        """Labels of each node's rows."""
        self.n_passes += 1
        found = self._rows.labels(nodes, self.columns, self._scale)
        return [sums.moments(self._scale) for sums in found]

    def residuals(
        self, nodes: RuleSet, equations: Sequence[Equations], totals: Sequence[Sums]
    ) -> list[list[Fraction]]:
        """Summed absolute residuals of each node's labels from its equations."""
        self.n_passes += 1
        found = self._rows.residuals(nodes, self.columns, self._scale, equations)
        self._check_equal(*((f[:1], total[:1]) for f, total in zip(found, totals, strict=True)))
        return [
            [
                Fraction(self._scale.residual_unit(equation)) * int(n)
                for equation, n in zip(some, sums[1:], strict=True)
            ]
            for some, sums in zip(equations, found, strict=True)
        ]


# --- batches --------------------------------------------------------------------------------------


class Binner:
    """Finds the bins of many numbers.

    The range of the cuts is divided into so many equal cells that no two cuts share one. A number
    is then compared with the cut of its cell alone. That is exact, as the number of the cell, like
    all that it is computed by, grows with the number whatever the rounding.
    """

    _MOST_CELLS = 1 << 13

    def __init__(self, cuts: Sequence[float]) -> None:
        self._cuts = np.array(cuts, dtype=np.float64)
        self._cells = 0
        if len(cuts) < 2:
            return
        with np.errstate(over="ignore"):
            least, length = np.diff(self._cuts).min(), self._cuts[-1] - self._cuts[0]
            wanted, per_cell = length / least * 1.5, 1.5 / least
        if not (wanted < self._MOST_CELLS and per_cell < math.inf):
            return
        self._cells = int(wanted) + 2
        self._start, self._per_cell = self._cuts[0], per_cell
        cells = self._cell(self._cuts)
        if len(np.unique(cells)) < len(cells):
            self._cells = 0
            return
        self._below = np.searchsorted(cells, np.arange(self._cells)).astype(np.int16)
        self._cut = np.full(self._cells, np.inf)
        self._cut[cells] = self._cuts

    def _cell(self, numbers: Floats) -> NDArray[np.intp]:
        with np.errstate(over="ignore"):
            place = (numbers - self._start) * self._per_cell
        # The greater and lesser that pass NaN over: such numbers are in the first cell.
        np.fmax(place, 0.0, out=place)
        np.fmin(place, self._cells - 1, out=place)
        return place.astype(np.intp)

    def bins(self, numbers: Floats) -> NDArray[Any]:
        """The bins; that after the last for NaN."""
        if len(self._cuts) == 1:
            found: NDArray[Any] = (numbers > self._cuts[0]).astype(np.int16)
        elif not self._cells:
            found = np.searchsorted(self._cuts, numbers)
        else:
            cells = self._cell(numbers)
            found = self._below[cells]
            found += numbers > self._cut[cells]
        gone = np.isnan(numbers)
        if gone.any():
            found[gone] = len(self._cuts) + 1
        return found


@dataclass(frozen=True)
class Coded:
    """A batch of rows: columns as floats or numbers of values, and what rows are and weigh.

    `label` holds numbers of classes, or floats; `node` numbers of nodes, None where there is one;
    `measured` the columns that equations are about.
    """

    columns: Sequence[NDArray[Any]]
    label: NDArray[Any]
    weight: Floats | None
    node: NDArray[Any] | None = None
    measured: Sequence[Floats] = ()

    def part(self, rows: Any) -> Coded:
        """Some of the rows."""
        weight, node = self.weight, self.node
        return Coded(
            [column[rows] for column in self.columns],
            self.label[rows],
            None if weight is None else weight[rows],
            None if node is None else node[rows],
            [column[rows] for column in self.measured],
        )

    def pieces(self) -> Iterable[Coded]:
        """Few rows at a time, of those that are in a node."""
        for begin in range(0, len(self.label), _ROWS):
            piece = self.part(slice(begin, begin + _ROWS))
            if piece.node is not None and (piece.node < 0).any():
                piece = piece.part(np.flatnonzero(piece.node >= 0))
            yield piece

    def sums(self, n_nodes: int, columns: Sequence[Column], scale: Scale) -> list[Sums]:
        """The sums of each bin, shape (n_nodes, n_bins + 1, n_sums)."""
        of_classes = scale.of_labels and scale.classes is not None
        n_groups = scale.n_sums if of_classes else 1
        binners = [Binner(c.cuts) if c.values is None else None for c in columns]
        totals = [np.zeros((n_nodes, c.n_bins + 1, scale.n_sums), dtype=np.int64) for c in columns]
        for piece in self.pieces():
            group: NDArray[np.intp] = np.zeros(len(piece.label), dtype=np.intp)
            if of_classes:
                group += piece.label
            if piece.node is not None:
                group += piece.node.astype(np.intp) * n_groups
            factors = piece.factors(scale)
            offsets: dict[int, NDArray[np.intp]] = {}
            for column, binner, values, total in zip(
                columns, binners, piece.columns, totals, strict=True
            ):
                size = column.n_bins + 1
                if size not in offsets:
                    offsets[size] = group * size
                key = values if binner is None else binner.bins(values)
                key = offsets[size] + key
                for place, factor in enumerate(factors):
                    found = np.bincount(key, factor, n_nodes * n_groups * size)
                    found = found.astype(np.int64).reshape(n_nodes, n_groups, size)
                    if of_classes:
                        total += found.transpose(0, 2, 1)
                    else:
                        total[:, :, place] += found[:, 0]
        return totals

    def cells(self, columns: Sequence[Column], scale: Scale) -> Cells:
        """The sums of the rows that lie in the same bins."""
        binners = [Binner(c.cuts) if c.values is None else None for c in columns]
        found = Cells(np.zeros(0, np.int64), np.zeros((0, scale.n_sums), np.int64))
        for piece in self.pieces():
            key = np.zeros(len(piece.label), dtype=np.int64)
            for size, binner, values in zip(
                Cells.sizes(columns), binners, piece.columns, strict=True
            ):
                key = key * size + (values if binner is None else binner.bins(values))
            cells, cell = np.unique(key, return_inverse=True)
            factors = piece.factors(scale)
            if scale.classes is None:
                sums = [np.bincount(cell, factor, len(cells)) for factor in factors]
                totals = np.column_stack(sums)
            else:
                n = len(scale.classes)
                group = cell * n + piece.label
                totals = np.bincount(group, factors[0], len(cells) * n).reshape(-1, n)
            found += Cells(cells, totals.astype(np.int64))
        return found

    def steps(self, scale: Scale) -> list[Floats]:
        """The measured columns, in steps from their centers."""
        pairs = zip(self.measured, scale.measured, strict=True)
        return [(values - m.center) * (1 / m.step) for values, m in pairs]

    def factors(self, scale: Scale) -> list[Floats | None]:
        """What is summed in each group: whole numbers, None for ones."""
        weight = self.weight
        factors: list[Floats | None] = [
            None if weight is None else scale.whole(weight, scale.weight_unit or 1.0)
        ]
        if scale.of_labels and scale.classes is None:
            deviation = self.label - scale.center
            first = deviation if weight is None else weight * deviation
            factors.append(scale.whole(first, scale.label_unit))
            factors.append(scale.whole(first * deviation, scale.square_unit))
            steps, unit = self.steps(scale), scale.product_unit
            weighted = steps if weight is None else [weight * each for each in steps]
            factors += [scale.whole(each, unit) for each in weighted]
            factors += [
                scale.whole(one * other, unit)
                for i, one in enumerate(weighted)
                for other in steps[i:]
            ]
            factors += [scale.whole(each * deviation, scale.label_unit) for each in weighted]
        return factors

    def residuals(self, scale: Scale, equations: Sequence[Equations]) -> list[Sums]:
        """Per node the weight, and the absolute residuals from each of its equations."""
        result = [np.zeros(1 + len(some), dtype=np.int64) for some in equations]
        for piece in self.pieces():
            for n, (some, sums) in enumerate(zip(equations, result, strict=True)):
                part = piece if piece.node is None else piece.part(np.flatnonzero(piece.node == n))
                (weight, *_), steps = (
                    part.factors(replace(scale, of_labels=False)),
                    part.steps(scale),
                )
                sums[0] += len(part.label) if weight is None else int(weight.sum())
                deviation = part.label - scale.center
                for place, equation in enumerate(some, start=1):
                    told = np.full(len(deviation), equation[0])
                    for coefficient, each in zip(equation[1:], steps, strict=True):
                        if coefficient:
                            told += coefficient * each
                    apart = np.abs(deviation - told)
                    if part.weight is not None:
                        apart *= part.weight
                    sums[place] += int(scale.whole(apart, scale.residual_unit(equation)).sum())
        return result

    def label_sums(self, n_nodes: int, scale: Scale) -> list[LabelSums]:
        """Sums of the labels of each node."""
        result = [LabelSums(0, ((0, 0),) * 3, math.inf, -math.inf) for _ in range(n_nodes)]
        for piece in self.pieces():
            deviation = piece.label - scale.center
            weight = np.ones(len(deviation)) if piece.weight is None else piece.weight
            first = weight * deviation
            units = (scale.weight_unit or 1.0, scale.label_unit, scale.square_unit)
            summed = []
            node = np.zeros(len(deviation), np.intp) if piece.node is None else piece.node
            for values, unit in zip((weight, first, first * deviation), units, strict=True):
                whole = np.floor(values / unit)
                rest = np.floor((values / unit - whole) * (1 << scale.bits))
                summed += [np.bincount(node, part, n_nodes) for part in (whole, rest)]
            count = np.bincount(node, minlength=n_nodes)
            for n in np.flatnonzero(count):
                labels = piece.label[node == n]
                s = [int(part[n]) for part in summed]
                result[n] += LabelSums(
                    int(count[n]),
                    ((s[0], s[1]), (s[2], s[3]), (s[4], s[5])),
                    float(labels.min()),
                    float(labels.max()),
                )
        return result


@dataclass(frozen=True)
class TableOfRows:
    """The columns of a batch of rows that are wanted, whatever it is."""

    name: str
    names: tuple[str, ...]
    target: str | None
    weight: str | None
    black_box: Any = None

    @property
    def columns(self) -> list[str]:
        """The columns that are read."""
        return [*self.names, *(n for n in (self.target, self.weight) if n is not None)]

    def check(self, columns: Sequence[str]) -> None:
        """Raise a ValueError where a column is not there."""
        for column in self.columns:
            if column not in columns:
                raise ColumnError(
                    f"{self.name} must have a column {column!r}, but its columns are "
                    f"{listed(columns)}."
                )

    def series(self, batch: Any) -> pd.DataFrame:
        """The rows that weigh something, categories as such."""
        columns = {}
        if hasattr(batch, "schema") and hasattr(batch, "num_rows"):  # Arrow
            self.check(batch.schema.names)
            for name in self.columns:
                columns[name] = _of_arrow(batch.column(name))
        elif hasattr(batch, "columns"):
            self.check(list(map(str, batch.columns)))
            for name in self.columns:
                found = batch[name]
                if not hasattr(found, "iloc"):
                    found = pd.Series(found.to_numpy())
                elif str(found.dtype).startswith("dictionary<"):  # pandas on Arrow
                    found = _of_arrow(found.array.__arrow_array__())
                columns[name] = found
        else:
            raise ColumnError(
                f"A batch must be an Arrow batch or table, or a pandas or polars frame, got "
                f"{type(batch).__name__}."
            )
        frame = pd.DataFrame(columns, copy=False)
        if self.target is not None and are_decimals(frame[self.target]):  # no labels of rules
            frame[self.target] = frame[self.target].map(_plain)
        if self.weight is not None:
            weights = numbers(frame[self.weight], self.weight, self.name)
            if (weights == 0).any():
                frame = frame[weights != 0]
        return frame

    def label(self, frame: pd.DataFrame) -> pd.Series:
        """The labels."""
        if self.target is not None:
            return frame[self.target]
        ask = getattr(self.black_box, "predict", self.black_box)
        found = one_dimension("What black_box predicts", ask(frame[list(self.names)]))
        return pd.Series(found, index=frame.index)

    def survey(self, batch: Any, task: str) -> Survey:
        """What the rows of a batch hold."""
        frame = self.series(batch)
        label = self.label(frame) if len(frame) else pd.Series(dtype=float)
        weight = Seen()
        if self.weight is not None:
            weight = seen_numbers(numbers(frame[self.weight], self.weight, self.name))
        found = [self._seen(frame[name], name) for name in self.names]
        if task == "classification":
            labels = _seen_values(label)
        else:
            labels = seen_numbers(numbers(label, self.target or "the labels", self.name))
        return Survey(len(frame), tuple(found), labels, weight)

    def _seen(self, column: pd.Series, name: str) -> Seen:
        if is_categorical(column) or _are_values(column):
            return _seen_values(column)
        return seen_numbers(numbers(column, name, self.name))

    def counts(self, batch: Any, task: str) -> Counter[Any]:
        """How many rows of a batch each class has."""
        labels = self.label(self.series(batch))
        if labels.isna().any():
            raise SourceError(
                f"The target of {self.name} must hold a label in every row. Drop such rows first."
            )
        if task == "regression":
            return Counter({None: len(labels)})
        return Counter({python_value(k): int(n) for k, n in labels.value_counts().items() if n})

    def drawn(self, batch: Any, chances: Mapping[Any, float], seed: int) -> pd.DataFrame:
        """Rows of a batch, drawn by what it begins with, whoever reads it."""
        frame = self.series(batch)
        start = pd.util.hash_pandas_object(frame.head(64), index=False).to_numpy()
        rng = np.random.default_rng([seed, len(frame), zlib.crc32(start.tobytes())])
        chance: Any = chances.get(None)
        if chance is None:
            labels = self.label(frame).astype(object).map(python_value)
            chance = labels.map(dict(chances)).to_numpy(dtype=float)
        kept = frame[rng.random(len(frame)) < chance]
        texts = {
            name: kept[name].astype(object)
            for name in kept.columns
            if isinstance(kept[name].dtype, pd.CategoricalDtype)
        }
        return kept.assign(**texts)

    def coded(
        self, batch: Any, columns: Sequence[Column], scale: Scale, nodes: RuleSet | None
    ) -> Coded:
        """The rows of a batch, coded."""
        frame = self.series(batch)
        found = [
            numbers(frame[c.name], c.name, self.name)
            if c.values is None
            else codes(frame[c.name], c.values, self.name)
            for c in columns
        ]
        label: NDArray[Any] = np.zeros(len(frame))
        if scale.of_labels and len(frame):
            given = self.label(frame)
            label = (
                numbers(given, str(self.target), self.name)
                if scale.classes is None
                else codes(given, scale.classes, self.name)
            )
            if scale.classes is not None and (label == len(scale.classes)).any():
                raise SourceError(f"{self.name} changed while it was read: labels are missing.")
        weight = None if self.weight is None else numbers(frame[self.weight], "", self.name)
        node = None
        if nodes is not None:
            used = {self.names[j] for j in nodes.used_features}
            lookup = {
                column.name: values if column.values is None else _decoded(values, column)
                for column, values in zip(columns, found, strict=True)
                if column.name in used
            }
            node = assigned(nodes, lookup, len(frame))
        measured = [numbers(frame[m.name], m.name, self.name) for m in scale.measured]
        return Coded(found, label, weight, node, measured)


def assigned(nodes: RuleSet, columns: dict[str, Any], n_rows: int) -> NDArray[np.intp]:
    """The node of each row, from the columns that nodes are about."""
    if not columns or not n_rows:
        return np.zeros(n_rows, dtype=np.intp)
    rules = nodes
    nothing = np.broadcast_to(np.nan, n_rows)
    frame = pd.DataFrame(
        {name: columns.get(name, nothing) for name in rules.feature_names}, copy=False
    )
    return np.asarray(rules.assign(frame))


def _decoded(codes: NDArray[Any], column: Column) -> NDArray[Any]:
    assert column.values is not None
    values = np.empty(len(column.values) + 1, dtype=object)
    values[:] = [*column.values, None]
    return values[codes]


def _of_arrow(column: Any) -> Any:
    import pyarrow as pa

    kind = column.type
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
        column = column.cast(kind)
    if pa.types.is_boolean(kind) or pa.types.is_null(kind):
        return pd.Series(column.to_pandas(), dtype=object)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return column.dictionary_encode().to_pandas()
    return column.to_pandas()


def numbers(column: pd.Series, name: str, source: str) -> Floats:
    """A column as floats, NaN for missing ones."""
    kind = column.dtype.kind
    try:
        if kind in "mMSV":
            raise TypeError(f"type {column.dtype}")
        return column.to_numpy(dtype=np.float64, na_value=np.nan)
    except (TypeError, ValueError) as error:
        raise ColumnError(
            f"Column {name!r} of {source} must hold numbers or categories ({error}). Convert it, "
            "or leave it out of features=..."
        ) from error


def codes(column: pd.Series, values: Sequence[Any], source: str) -> NDArray[np.intp]:
    """The numbers of a column's values; that after the last for a missing one."""
    index = pd.Index(list(values), dtype=object)
    if isinstance(column.dtype, pd.CategoricalDtype):
        known = index.get_indexer(pd.Index(column.cat.categories, dtype=object))
        found = np.append(known, len(values))[column.cat.codes.to_numpy()]
    elif column.dtype.kind in "iuf" and _are_floats(values):
        order = np.array(values, dtype=float)
        given = column.to_numpy(dtype=float)
        found = np.searchsorted(order, given)
        found[found < len(order)] = np.where(
            order[found[found < len(order)]] == given[found < len(order)],
            found[found < len(order)],
            -1,
        )
        found[(found == len(order)) & ~np.isnan(given)] = -1
    else:
        given = column.to_numpy(dtype=object)
        found = index.get_indexer(given)
        found[pd.isna(column).to_numpy()] = len(values)
    if (found < 0).any():
        raise SourceError(
            f"{source} changed while it was read: it holds values that it did not hold at first. "
            "Read a table at rest, or a snapshot."
        )
    return found


def _are_floats(values: Sequence[Any]) -> bool:
    """Whether values are numbers, and floats tell them apart."""
    return len(values) > 0 and all(isinstance(v, int | float) and abs(v) <= 2**53 for v in values)


def _are_values(column: pd.Series) -> bool:
    """Whether a column holds texts alone, be they numbers, or true, false and gaps.

    As in Parquet, these are categories.
    """
    if column.dtype.kind in "biufcmM":
        return False
    return pd.api.types.infer_dtype(column, skipna=True) in ("string", "boolean")


def seen_numbers(found: Floats) -> Seen:
    """What some numbers are."""
    gone = np.isnan(found)
    known = found[~gone] if gone.any() else found
    ends = (float(known.min()), float(known.max())) if len(known) else (math.inf, -math.inf)
    return Seen(*ends, n_missing=int(gone.sum()))


def are_decimals(values: Any) -> bool:
    """Whether values, some of which may be missing, are exact decimals."""
    return values.dtype.kind == "O" and pd.api.types.infer_dtype(values, skipna=True) == "decimal"


def _seen_values(column: pd.Series) -> Seen:
    gone = int(column.isna().sum())
    if isinstance(column.dtype, pd.CategoricalDtype):
        there = np.unique(column.cat.codes.to_numpy())
        values = [column.cat.categories[c] for c in there if c >= 0]
    else:
        values = column.dropna().unique().tolist()
    return Seen(values=frozenset(map(python_value, values[: MOST_VALUES + 1])), n_missing=gone)


def _cells(batch: Any, table: TableOfRows, columns: Sequence[Column], scale: Scale) -> Cells:
    return table.coded(batch, columns, scale, None).cells(columns, scale)


def _counts(batch: Any, table: TableOfRows, task: str) -> Counter[Any]:
    return table.counts(batch, task)


def _drawn(batch: Any, table: TableOfRows, chances: Mapping[Any, float], seed: int) -> pd.DataFrame:
    return table.drawn(batch, chances, seed)


#: Carries out a function for every batch; the results may come in any order.
Each = Callable[[Callable[[Any], Any]], Iterable[Any]]


def _survey(batch: Any, table: TableOfRows, task: str) -> Survey:
    return table.survey(batch, task)


def _sums(
    batch: Any, table: TableOfRows, columns: Sequence[Column], scale: Scale, nodes: RuleSet | None
) -> list[Sums]:
    coded = table.coded(batch, columns, scale, nodes)
    return coded.sums(1 if nodes is None else len(nodes), columns, scale)


def _labels(
    batch: Any, table: TableOfRows, columns: Sequence[Column], scale: Scale, nodes: RuleSet
) -> list[LabelSums]:
    return table.coded(batch, columns, scale, nodes).label_sums(len(nodes), scale)


def _residuals(
    batch: Any,
    table: TableOfRows,
    columns: Sequence[Column],
    scale: Scale,
    nodes: RuleSet,
    equations: Sequence[Equations],
) -> list[Sums]:
    return table.coded(batch, columns, scale, nodes).residuals(scale, equations)


class BatchRows:
    """Rows in batches, one after the other or on several machines."""

    def __init__(self, table: TableOfRows, each: Each, task: str) -> None:
        self.name, self._table, self._each, self._task = table.name, table, each, task

    def _found(self, look: Callable[[Any], Any]) -> Iterable[Any]:
        with failing(self.name):
            yield from self._each(look)

    def _added(self, look: Callable[[Any], Any]) -> list[Any]:
        """The sum of what each batch gives, place by place."""
        total: list[Any] = []
        for found in self._found(look):
            total = [a + b for a, b in zip(total, found, strict=True)] if total else found
        return total

    def survey(self) -> Survey:
        """What the rows hold."""
        total: Survey | None = None
        for found in self._found(partial(_survey, table=self._table, task=self._task)):
            total = found if total is None else total + found
        if total is None:
            nothing = tuple(Seen() for _ in self._table.names)
            return Survey(0, nothing, Seen(), Seen())
        return total

    def sums(self, nodes: RuleSet | None, columns: Sequence[Column], scale: Scale) -> list[Sums]:
        """Sums of each node's rows."""
        look = partial(_sums, table=self._table, columns=columns, scale=scale, nodes=nodes)
        return self._added(look)

    def cells(self, columns: Sequence[Column], scale: Scale) -> Cells:
        """The sums of the rows that lie in the same bins."""
        look = partial(_cells, table=self._table, columns=columns, scale=scale)
        return functools.reduce(operator.add, self._found(look))

    def labels(self, nodes: RuleSet, columns: Sequence[Column], scale: Scale) -> list[LabelSums]:
        """Labels of each node's rows."""
        look = partial(_labels, table=self._table, columns=columns, scale=scale, nodes=nodes)
        return self._added(look)

    def residuals(
        self,
        nodes: RuleSet,
        columns: Sequence[Column],
        scale: Scale,
        equations: Sequence[Equations],
    ) -> list[Sums]:
        """Per node the weight, and the absolute residuals from each of its equations."""
        look = partial(
            _residuals,
            table=self._table,
            columns=columns,
            scale=scale,
            nodes=nodes,
            equations=equations,
        )
        return self._added(look)

    def counts(self) -> dict[Any, int]:
        """How many rows each class has."""
        total: Counter[Any] = Counter()
        for found in self._found(partial(_counts, table=self._table, task=self._task)):
            total.update(found)
        return dict(total)

    def draw(self, chances: Mapping[Any, float], seed: int) -> pd.DataFrame:
        """Rows of each class, each with a chance."""
        look = partial(_drawn, table=self._table, chances=chances, seed=seed)
        return pd.concat(list(self._found(look)), ignore_index=True)


# --- cuts -----------------------------------------------------------------------------------------

#: Bins of a look for quantiles, and how often one looks again where too many rows share a bin.
_FINE, _AGAIN = 1000, 3


def quantile_cuts(rows: Rows, columns: Sequence[Column], scale: Scale, n_cuts: int) -> list[Column]:
    """Cut numbers so that bins weigh about alike.

    Cuts are round numbers: the ends of at most 1000 bins of equal width. Bins that weigh more than
    they should are divided in the same way, up to three times.
    """
    counting = replace(scale, of_labels=False)
    grids = {j: _grid(c.low, c.high, _FINE) for j, c in enumerate(columns) if c.values is None}
    grids = {j: grid for j, grid in grids.items() if len(grid)}
    result = list(columns)
    waiting = list(grids)
    for round_ in range(_AGAIN + 1):
        if not waiting:
            break
        some = [replace(columns[j], cuts=tuple(grids[j])) for j in waiting]
        found = rows.sums(None, some, counting)
        crowded = []
        for j, sums in zip(waiting, found, strict=True):
            weights = sums[0, :-1, 0]
            heavy = np.flatnonzero(weights * 2 * (n_cuts + 1) > weights.sum())
            finer = _divided(columns[j], grids[j], heavy) if round_ < _AGAIN else grids[j]
            if len(finer) > len(grids[j]):
                grids[j] = finer
                crowded.append(j)
            else:
                cuts = _chosen(np.array(grids[j]), weights, n_cuts)
                result[j] = replace(columns[j], cuts=tuple(cuts))
        waiting = crowded
    return result


def _grid(low: float, high: float, most: int) -> list[float]:
    """Round numbers from `low` to below `high`, at most so many, evenly."""
    width = high - low
    if not (0 < width < math.inf and most >= 1):
        return []
    exponent = math.floor(math.log10(width / most))
    for power in (exponent, exponent + 1):
        for factor in (1, 2, 5):
            step = Fraction(factor) * Fraction(10) ** power
            first, last = math.ceil(Fraction(low) / step), math.ceil(Fraction(high) / step)
            if last - first <= most:
                grid = (float(k * step) for k in range(first, last))
                return sorted({x for x in grid if low <= x < high})
    return []


def _divided(column: Column, grid: list[float], heavy: NDArray[np.intp]) -> list[float]:
    """A grid with further cuts in heavy bins."""
    ends = [column.low, *grid, column.high]
    more = max(1, (2 * _FINE) // max(len(heavy), 1) // 2)
    added = {x for bin_ in heavy for x in _grid(ends[bin_], ends[bin_ + 1], min(more, 100))}
    return sorted({*grid, *added})


def _chosen(grid: Floats, weights: Sums, n_cuts: int) -> list[float]:
    """The ends of bins next to quantiles; of several between the same rows a short one."""
    below = np.cumsum(weights)[:-1]
    total = int(weights.sum())
    chosen: dict[int, float] = {}
    for k in range(1, n_cuts + 1):
        wanted = total * k / (n_cuts + 1)
        right = int(np.searchsorted(below, wanted))
        places = [p for p in (right - 1, right) if 0 <= p < len(below)]
        if not places:
            continue
        place = min(places, key=lambda p: abs(float(below[p]) - wanted))
        level = int(below[place])
        if not 0 < level < total or level in chosen:
            continue
        chosen[level] = _shortest(grid[below == level])
    return sorted(chosen.values())


def _shortest(numbers: Floats) -> float:
    """The number with the fewest digits; of several the one nearest to the middle."""
    middle = float(numbers[0] / 2 + numbers[-1] / 2)
    return min(numbers.tolist(), key=lambda x: (len(f"{x:.15g}"), abs(x - middle), x))


# --- histograms by queries ------------------------------------------------------------------------

# The database sums, or hands over nothing but the columns to be summed.

#: Databases that cannot group by several columns, one at a time, in one query.
_WITHOUT_SETS = ("sqlite", "mysql")
#: Columns of a query, and cuts in its text.
_COLUMNS, _CUTS = 20, 5000


class QueryRows:
    """Rows of a table, of which one query for each level is asked; no row is handed over."""

    def __init__(
        self, table: SqlTable, names: Sequence[str], target: str, weight: str | None, task: str
    ) -> None:
        self.name, self._table, self._names, self._task = table.name, table, list(names), task
        everything = self._of(None)
        self._style = everything.style
        self._columns = [*names, target, *([] if weight is None else [weight])]
        self._wanted = TableOfRows(table.name, tuple(names), target, weight)
        self._identifier, self._is_number = everything.identifier, everything.is_number
        self._label = everything.identifier(target)
        self._weight = None
        if weight is not None:
            self._weight = f"CAST({everything.identifier(weight)} AS FLOAT8)"

    def _of(self, nodes: RuleSet | None) -> SqlParts:
        """What queries about nodes are made of."""
        if nodes is None:
            nodes = RuleSet([Rule((), 0)], self._names, task="classification", classes=[0])
        flags = [name for name in self._names if name in self._table.booleans]
        return sql_parts(nodes, dialect=self._table.dialect, columns={}, booleans=flags)

    def _fetch(self, query: str) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in self._table.fetch(translated(query, self._style))]

    @property
    def _where(self) -> str:
        """What weighs nothing is no row; what lacks a weight must be found out."""
        return (
            ""
            if self._weight is None
            else (f" WHERE ({self._weight} IS NULL OR {self._weight} <> 0)")
        )

    def _number(self, name: str) -> str:
        return f"CAST({self._identifier(name)} AS FLOAT8)"

    def _check_numbers(self) -> None:
        label = self._wanted.target if self._task == "regression" else None
        self._table.check_numbers([label, self._wanted.weight])

    # --- the survey

    def survey(self) -> Survey:
        """What the rows hold."""
        self._check_numbers()
        flags, source = self._table.booleans, f"{self._table.source}{self._where}"
        asked = [name for name in self._names if name not in flags]
        columns = [self._identifier(name) for name in asked]
        ends = [part for column in columns for part in (f"min({column})", f"max({column})")]
        found: Sequence[Any] = ()
        if ends:
            (found,) = self._fetch(f"SELECT {', '.join(ends)} FROM {source}")
        pairs = dict(zip(columns, zip(found[::2], found[1::2], strict=True), strict=True))
        kinds = {}
        for name in self._names:
            kinds[name] = "values"
            if name not in flags:
                kinds[name] = self._kind(name, *pairs[self._identifier(name)])
        expressions = [
            self._number(name) if kinds[name] == "numbers" else None for name in self._names
        ]
        number = self._task == "regression"
        expressions.append(f"CAST({self._label} AS FLOAT8)" if number else None)
        expressions.append(self._weight)
        plain = [*map(self._identifier, self._names), self._label, self._weight or self._label]
        looked = ["count(*)"]
        for expression, column in zip(expressions, plain, strict=True):
            if expression is None:
                looked += [f"count({column})", "NULL", "NULL"]
            else:
                known = f"CASE WHEN {self._is_number(expression)} THEN {expression} END"
                looked += [f"count({known})", f"min({known})", f"max({known})"]
        (row,) = self._fetch(f"SELECT {', '.join(looked)} FROM {source}")
        n_rows = int(row[0])
        seen = []
        for place, column in enumerate(plain):
            known, low, high = row[1 + 3 * place : 4 + 3 * place]
            gone = n_rows - int(known)
            if place == len(plain) - 1 and self._weight is None:
                seen.append(Seen())
            elif expressions[place] is None:
                seen.append(self._seen_values(column, source, gone))
            else:
                low, high = (math.inf, -math.inf) if low is None else (float(low), float(high))
                seen.append(Seen(low, high, n_missing=gone))
        return Survey(n_rows, tuple(seen[:-2]), seen[-2], seen[-1])

    def _kind(self, name: str, low: Any, high: Any) -> str:
        kinds = {
            "values" if isinstance(value, str | bool) else "numbers"
            for value in (low, high)
            if value is not None
        }
        strange = [v for v in (low, high) if isinstance(v, date | time | timedelta | bytes)]
        if len(kinds) > 1 or strange:
            raise ValueError(
                f"Column {name!r} of {self.name} must hold numbers or categories, but it holds "
                f"{low!r} and {high!r}. Convert it in a view, or leave it out of features=..."
            )
        return kinds.pop() if kinds else "numbers"

    def _seen_values(self, column: str, source: str, gone: int) -> Seen:
        found = self._fetch(f"SELECT DISTINCT {column} FROM {source} LIMIT {MOST_VALUES + 2}")
        values = [_plain(row[0]) for row in found if row[0] is not None]
        if any(isinstance(value, float) and math.isnan(value) for value in values):
            gone, values = gone + 1, [v for v in values if v == v]
        return Seen(values=frozenset(values), n_missing=gone)

    # --- sums

    def _node(self, nodes: RuleSet | None) -> str:
        """The number of the node of a row, NULL of others."""
        if nodes is None:
            return "0"
        premises = self._of(nodes).premises
        cases = (f"WHEN {premise} THEN {place}" for place, premise in enumerate(premises))
        return f"CASE {' '.join(cases)} END"

    def _bin(self, column: Column) -> str:
        """The number of the bin of a row, or its category."""
        if column.values is not None:
            return self._identifier(column.name)
        value, bound = self._number(column.name), self._style.bound

        def search(low: int, high: int) -> str:
            if low == high:
                return str(low)
            middle = (low + high) // 2
            return (
                f"CASE WHEN {value} <= {bound(column.cuts[middle])} THEN {search(low, middle)} "
                f"ELSE {search(middle + 1, high)} END"
            )

        if self._table.dialect == "postgres" and column.cuts:
            # Counts the numbers of the list that are at most the value.
            above = (repr(math.nextafter(cut, math.inf)) for cut in column.cuts)
            found = f"width_bucket({value}, '{{{','.join(above)}}}'::FLOAT8[])"
        else:
            found = search(0, len(column.cuts))
        return f"CASE WHEN {self._is_number(value)} THEN {found} ELSE {column.n_bins} END"

    def _floor(self, value: str) -> str:
        # Nothing here is negative; SQLite may lack the function, and cuts off as it does.
        floor = value if self._table.dialect == "sqlite" else f"floor({value})"
        return f"CAST({floor} AS BIGINT)"

    def _scaled(self, value: str, unit: float) -> str:
        """A value in units, which are powers of two."""
        return f"({value}) * {self._style.number(1 / unit)}"

    def _deviation(self, scale: Scale) -> str:
        return self._apart(f"CAST({self._label} AS FLOAT8)", scale.center)

    def _apart(self, value: str, center: float) -> str:
        sign = "+" if center < 0 else "-"
        return f"({value} {sign} {self._style.number(abs(center))})"

    def _steps(self, scale: Scale) -> list[str]:
        """The measured columns, in steps from their centers."""
        return [
            self._scaled(self._apart(self._number(m.name), m.center), m.step)
            for m in scale.measured
        ]

    def sums(self, nodes: RuleSet | None, columns: Sequence[Column], scale: Scale) -> list[Sums]:
        """Sums of each node's rows."""
        n_nodes = 1 if nodes is None else len(nodes)
        totals = [np.zeros((n_nodes, c.n_bins + 1, scale.n_sums), np.int64) for c in columns]
        node = self._node(nodes)
        for places in self._parts(columns):
            some = [columns[j] for j in places]
            for place, found, label, at, weights in self._grouped(node, some, scale):
                j = places[place]
                column = columns[j]
                line = column.n_bins
                if column.values is None:
                    line = int(found)
                elif found is not None:
                    line = self._place(_plain(found), column.values)
                if scale.of_labels and scale.classes is not None:
                    totals[j][at, line, self._place(_plain(label), scale.classes)] += weights[0]
                else:
                    totals[j][at, line] += np.array(weights, dtype=np.int64)
        return totals

    def _place(self, value: Any, values: Sequence[Any]) -> int:
        try:
            return list(values).index(value)
        except ValueError:
            raise SourceError(
                f"{self.name} changed while it was read: it holds {value!r}, which it did not hold "
                "at first. Read a table at rest, or a snapshot."
            ) from None

    def _parts(self, columns: Sequence[Column]) -> Iterator[list[int]]:
        """Columns that one query is about."""
        part: list[int] = []
        n_cuts = 0
        most = 1 if self._table.dialect in _WITHOUT_SETS else _COLUMNS
        for j, column in enumerate(columns):
            if part and (len(part) == most or n_cuts + len(column.cuts) > _CUTS):
                yield part
                part, n_cuts = [], 0
            part.append(j)
            n_cuts += len(column.cuts)
        yield part

    def _asked(
        self, columns: Sequence[Column], scale: Scale
    ) -> tuple[list[str], list[str], list[str], list[str]]:
        """Names of bins, what a query has to compute of a row, the label's key, and the sums."""
        bins = [f"b{j}" for j in range(len(columns))]
        inner = [f"{self._bin(c)} AS {name}" for c, name in zip(columns, bins, strict=True)]
        keys: list[str] = []
        sums = ["count(*)"]
        if self._weight is not None:
            whole = f"{self._scaled(self._weight, scale.weight_unit or 1.0)} + 0.5"
            inner.append(f"{self._floor(whole)} AS weight")
            sums = ["sum(weight)"]
        if scale.of_labels and scale.classes is not None:
            inner.append(f"{self._label} AS label")
            keys.append("label")
        elif scale.of_labels:
            first = self._deviation(scale)
            if self._weight is not None:
                first = f"{self._weight} * {first}"
            square = f"({first}) * {self._deviation(scale)}"
            wanted = [(first, scale.label_unit), (square, scale.square_unit)]
            steps, unit = self._steps(scale), scale.product_unit
            weighted = steps
            if self._weight is not None:
                weighted = [f"({self._weight} * ({each}))" for each in steps]
            wanted += [(each, unit) for each in weighted]
            wanted += [
                (f"({one}) * ({other})", unit)
                for i, one in enumerate(weighted)
                for other in steps[i:]
            ]
            wanted += [(f"({o}) * {self._deviation(scale)}", scale.label_unit) for o in weighted]
            for place, (value, unit) in enumerate(wanted):
                inner.append(f"{self._floor(f'{self._scaled(value, unit)} + 0.5')} AS y{place}")
                sums.append(f"sum(y{place})")
        return bins, inner, keys, sums

    def cells(self, columns: Sequence[Column], scale: Scale) -> Cells:
        """The sums of the rows that lie in the same bins."""
        bins, inner, keys, sums = self._asked(columns, scale)
        grouped = ", ".join([*bins, *keys])
        most = Cells.MOST * (1 if scale.classes is None else len(scale.classes)) + 1
        found = self._fetch(
            f"SELECT {grouped}, {', '.join(sums)} FROM (SELECT {', '.join(inner)} FROM "
            f"{self._table.source}{self._where}) AS some_rows GROUP BY {grouped} LIMIT {most}"
        )
        cells, totals = (
            np.zeros(len(found), np.int64),
            np.zeros((len(found), scale.n_sums), np.int64),
        )
        for place, row in enumerate(found):
            key = 0
            for column, size, value in zip(columns, Cells.sizes(columns), row, strict=False):
                line = column.n_bins
                if column.values is None:
                    line = int(value)
                elif value is not None:
                    line = self._place(_plain(value), column.values)
                key = key * size + line
            cells[place] = key
            numbers = [int(v) for v in row[len(bins) + len(keys) :]]
            if scale.classes is None:
                totals[place] = numbers
            else:
                totals[place, self._place(_plain(row[len(bins)]), scale.classes)] = numbers[0]
        return Cells.of(cells, totals)

    def _grouped(
        self, node: str, columns: Sequence[Column], scale: Scale
    ) -> Iterator[tuple[int, Any, Any, int, list[int]]]:
        """Which column, its bin, the label, the node, and the sums."""
        bins, inner, keys, sums = self._asked(columns, scale)
        inner, keys = [f"{node} AS node", *inner], ["node", *keys]
        if len(bins) == 1:
            which, grouped = [], ", ".join([*keys, *bins])
        else:
            # One bit for each column; not all databases put several into one function.
            bits = (f"GROUPING({name}) * {1 << bit}" for bit, name in enumerate(reversed(bins)))
            which = [" + ".join(bits)]
            sets = (f"({', '.join([*keys, name])})" for name in bins)
            grouped = f"GROUPING SETS ({', '.join(sets)})"
        found = self._fetch(
            f"SELECT {', '.join([*which, *keys, *bins, *sums])} FROM (SELECT {', '.join(inner)} "
            f"FROM {self._table.source}{self._where}) AS some_rows WHERE node IS NOT NULL "
            f"GROUP BY {grouped}"
        )
        for row in found:
            place = 0
            if which:  # the bit of the column that it is grouped by is not set
                there = ~int(row[0]) & ((1 << len(bins)) - 1)
                place, row = len(bins) - there.bit_length(), row[1:]
            label = row[1] if len(keys) == 2 else None
            rest = row[len(keys) :]
            yield place, rest[place], label, int(row[0]), [int(v) for v in rest[len(bins) :]]

    def labels(self, nodes: RuleSet, columns: Sequence[Column], scale: Scale) -> list[LabelSums]:
        """Labels of each node's rows."""
        weight = self._weight or self._style.number(1.0)
        first = f"{weight} * {self._deviation(scale)}"
        values = (weight, first, f"({first}) * {self._deviation(scale)}")
        units = (scale.weight_unit or 1.0, scale.label_unit, scale.square_unit)
        inner = [f"{self._node(nodes)} AS node", f"CAST({self._label} AS FLOAT8) AS y"]
        sums = []
        whole = self._style.number(float(1 << scale.bits))
        for place, (value, unit) in enumerate(zip(values, units, strict=True)):
            scaled = self._scaled(value, unit)
            inner += [f"{self._floor(scaled)} AS whole{place}", f"{scaled} AS all{place}"]
            rest = f"(all{place} - whole{place}) * {whole}"
            sums += [f"sum(whole{place})", f"sum({self._floor(rest)})"]
        found = self._fetch(
            f"SELECT node, count(*), {', '.join(sums)}, min(y), max(y) FROM (SELECT "
            f"{', '.join(inner)} FROM {self._table.source}{self._where}) AS some_rows "
            "WHERE node IS NOT NULL GROUP BY node"
        )
        result = [LabelSums(0, ((0, 0),) * 3, math.inf, -math.inf) for _ in nodes]
        for row in found:
            s = [int(value) for value in row[2:8]]
            pieces = (s[0], s[1]), (s[2], s[3]), (s[4], s[5])
            result[int(row[0])] = LabelSums(int(row[1]), pieces, float(row[8]), float(row[9]))
        return result

    def residuals(
        self,
        nodes: RuleSet,
        columns: Sequence[Column],
        scale: Scale,
        equations: Sequence[Equations],
    ) -> list[Sums]:
        """Per node the weight, and the absolute residuals from each of its equations."""
        number = self._style.number
        weight = self._weight or number(1.0)
        unit = scale.weight_unit or 1.0
        inner = [f"{self._node(nodes)} AS node", f"{self._deviation(scale)} AS y"]
        inner += [f"{weight} AS weight"]
        inner += [f"{step} AS x{place}" for place, step in enumerate(self._steps(scale))]

        def units_apart(equation: Floats) -> str:
            told = number(equation[0])
            for place, coefficient in enumerate(equation[1:].tolist()):
                if coefficient:
                    told = f"({told} + {number(coefficient)} * x{place})"
            apart = f"abs(y - ({told})) * weight"
            return self._floor(f"{self._scaled(apart, scale.residual_unit(equation))} + 0.5")

        whole = f"{self._scaled('weight', unit)} + 0.5"
        sums = [f"sum({self._floor(whole)})"]
        for place in range(max(map(len, equations))):
            cases = " ".join(
                f"WHEN {node} THEN {units_apart(some[place])}"
                for node, some in enumerate(equations)
                if place < len(some)
            )
            sums.append(f"sum(CASE node {cases} ELSE 0 END)")
        found = self._fetch(
            f"SELECT node, {', '.join(sums)} FROM (SELECT {', '.join(inner)} FROM "
            f"{self._table.source}{self._where}) AS some_rows WHERE node IS NOT NULL GROUP BY node"
        )
        result = [np.zeros(1 + len(some), dtype=np.int64) for some in equations]
        for row in found:
            node = int(row[0])
            result[node][:] = [int(value) for value in row[1 : 2 + len(equations[node])]]
        return result

    # --- a sample

    def counts(self) -> dict[Any, int]:
        """How many rows each class has."""
        self._check_numbers()
        source = f"{self._table.source}{self._where}"
        if self._task == "regression":
            ((n_rows, known),) = self._fetch(f"SELECT count(*), count({self._label}) FROM {source}")
            found = {None: int(n_rows)}
            gone = int(n_rows) - int(known)
        else:
            rows = self._fetch(
                f"SELECT {self._label}, count(*) FROM {source} GROUP BY {self._label} "
                f"LIMIT {MOST_VALUES + 2}"
            )
            counted = [(_plain(label), int(n)) for label, n in rows]
            found = {label: n for label, n in counted if label == label}  # NaN is no label
            gone = found.get(None, 0) + sum(n for label, n in counted if label != label)
        if gone:
            raise SourceError(
                f"The target of {self.name} must hold a label in every row, but {gone} rows have "
                "none. Drop such rows first, as in a view."
            )
        return found

    def draw(self, chances: Mapping[Any, float], seed: int) -> pd.DataFrame:
        """Rows of each class, each with a chance."""
        dialect = self._table.dialect
        if dialect == "postgres":
            self._table.fetch(f"SELECT setseed({(seed % 2**20) / 2**20})")
        number = "random()"
        if dialect == "sqlite":
            number = "((random() & 1048575) / 1048576.0)"
        elif dialect == "spark":
            number = f"rand({seed})"
        elif dialect == "tsql":
            raise ValueError(
                f"A sample of {self.name} cannot be drawn, as this database gives all rows the "
                "same random number. Export some rows to Parquet."
            )
        if None in chances:
            chance = self._style.number(chances[None])
        else:
            cases = (
                f"WHEN {self._style.label(label)} THEN {self._style.number(p)}"
                for label, p in chances.items()
            )
            chance = f"CASE {self._label} {' '.join(cases)} END"
        joined = " AND" if self._where else " WHERE"
        columns = ", ".join(map(self._identifier, self._columns))
        found = self._fetch(
            f"SELECT {columns} FROM {self._table.source}{self._where}{joined} {number} < {chance}"
        )
        rows = [tuple(map(_plain, row)) for row in found]
        return pd.DataFrame(rows, columns=self._columns)


class StreamedRows(QueryRows):
    """Rows of a database within this process, whose columns are quicker summed by NumPy.

    It reads, and finds the rows of nodes, by all processors.
    """

    def __init__(self, *arguments: Any, batch_size: int) -> None:
        super().__init__(*arguments)
        self._batch_size = batch_size

    def _coded(
        self, nodes: RuleSet | None, columns: Sequence[Column], scale: Scale
    ) -> Iterator[Coded]:
        node = self._node(nodes)
        parts = [f"{self._code(c)} AS b{j}" for j, c in enumerate(columns)]
        if scale.of_labels and scale.classes is not None:
            parts.append(f"{self._coded_value(self._label, scale.classes)} AS label")
        elif scale.of_labels:
            parts.append(f"CAST({self._label} AS FLOAT8) AS label")
        if self._weight is not None:
            parts.append(f"{self._weight} AS weight")
        parts += [f"{self._number(m.name)} AS m{j}" for j, m in enumerate(scale.measured)]
        where = self._where
        if nodes is not None:
            parts.append(f"CAST({node} AS SMALLINT) AS node")
            where += f"{' AND' if where else ' WHERE'} ({node}) IS NOT NULL"
        query = f"SELECT {', '.join(parts)} FROM {self._table.source}{where}"
        for batch in self._table.read(query, self._batch_size):
            found = {name: _array(batch.column(name)) for name in batch.schema.names}
            label = found.get("label", np.zeros(batch.num_rows))
            if scale.classes is not None and scale.of_labels and (label < 0).any():
                self._place("another label", ())
            yield Coded(
                [found[f"b{j}"] for j in range(len(columns))],
                label,
                found.get("weight"),
                found.get("node"),
                [found[f"m{j}"] for j in range(len(scale.measured))],
            )

    def _code(self, column: Column) -> str:
        if column.values is None:
            return self._number(column.name)
        return self._coded_value(self._identifier(column.name), column.values, column.n_bins)

    def _coded_value(self, column: str, values: Sequence[Any], missing: int = -1) -> str:
        cases = (f"WHEN {self._style.label(v)} THEN {place}" for place, v in enumerate(values))
        return f"CAST(CASE {column} {' '.join(cases)} ELSE {missing} END AS SMALLINT)"

    def sums(self, nodes: RuleSet | None, columns: Sequence[Column], scale: Scale) -> list[Sums]:
        """Sums of each node's rows."""
        n_nodes = 1 if nodes is None else len(nodes)
        totals = [np.zeros((n_nodes, c.n_bins + 1, scale.n_sums), np.int64) for c in columns]
        for coded in self._coded(nodes, columns, scale):
            for total, found in zip(totals, coded.sums(n_nodes, columns, scale), strict=True):
                total += found
        return totals

    def cells(self, columns: Sequence[Column], scale: Scale) -> Cells:
        """The sums of the rows that lie in the same bins."""
        parts = (coded.cells(columns, scale) for coded in self._coded(None, columns, scale))
        return functools.reduce(operator.add, parts)

    def labels(self, nodes: RuleSet, columns: Sequence[Column], scale: Scale) -> list[LabelSums]:
        """Labels of each node's rows."""
        result = [LabelSums(0, ((0, 0),) * 3, math.inf, -math.inf) for _ in nodes]
        for coded in self._coded(nodes, [], scale):
            found = coded.label_sums(len(nodes), scale)
            result = [a + b for a, b in zip(result, found, strict=True)]
        return result

    def residuals(
        self,
        nodes: RuleSet,
        columns: Sequence[Column],
        scale: Scale,
        equations: Sequence[Equations],
    ) -> list[Sums]:
        """Per node the weight, and the absolute residuals from each of its equations."""
        parts = (c.residuals(scale, equations) for c in self._coded(nodes, [], scale))
        return [sum(of_node) for of_node in zip(*parts, strict=True)]

    def draw(self, chances: Mapping[Any, float], seed: int) -> pd.DataFrame:
        """Rows of each class, each with a chance."""
        columns = ", ".join(map(self._identifier, self._columns))
        query = f"SELECT {columns} FROM {self._table.source}"
        batches = self._table.read(query, self._batch_size)
        found = [self._wanted.drawn(batch, chances, seed) for batch in batches]
        return pd.concat(found, ignore_index=True)


def _array(column: Any) -> NDArray[Any]:
    found: NDArray[Any] = column.to_numpy(zero_copy_only=False)
    return found


def _plain(value: Any) -> Any:
    if isinstance(value, Decimal):
        return int(value) if value.is_finite() and value == int(value) else float(value)
    return python_value(value)
