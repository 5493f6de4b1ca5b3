"""Cells of the domain in which no condition of the rules or of the model changes.

The cuts of all conditions divide each numeric column into intervals. Categories and the missing
value are separate cells. A box is one set of cells per column: a range of intervals with or without
the missing value, or a set of categories. Rules and leaves become boxes without rounding.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from skescore.rules import Condition, Domain, Interval, Missing, OneOf, Rule
from skescore.verification._rows import RowCodes

_WORD = 64


class UnreadableModelError(ValueError):
    """Error for rules or models that cannot be described by boxes of cells."""


@dataclass(eq=False)
class CellBoxes:
    """Boxes of cells, one per row of the arrays.

    Parameters
    ----------
    low, high : ndarray of int, shape (n_boxes, n_features)
        Range of intervals in numeric columns, without the end; 0 and 1 for categories.
    missing : ndarray of bool, shape (n_boxes, n_features)
        Whether the box includes missing values of a numeric column.
    words : ndarray of uint64, shape (n_boxes, n_words)
        Bits of the included categories, followed by the bit of the missing value.
    """

    low: np.ndarray
    high: np.ndarray
    missing: np.ndarray
    words: np.ndarray

    def __len__(self) -> int:
        return len(self.low)

    def take(self, index: Any) -> CellBoxes:
        """Return some of the boxes."""
        return CellBoxes(self.low[index], self.high[index], self.missing[index], self.words[index])

    def copy(self) -> CellBoxes:
        """Return a copy with its own arrays."""
        return CellBoxes(self.low.copy(), self.high.copy(), self.missing.copy(), self.words.copy())

    @classmethod
    def concatenate(cls, parts: Sequence[CellBoxes]) -> CellBoxes:
        """Concatenate boxes."""
        return cls(
            np.concatenate([part.low for part in parts]),
            np.concatenate([part.high for part in parts]),
            np.concatenate([part.missing for part in parts]),
            np.concatenate([part.words for part in parts]),
        )


class CellGrid:
    """Cells of all columns.

    Parameters
    ----------
    codes : RowCodes
        Rows that determine the types of columns and the categories.
    domain : Domain
        Domain of the rules, on the columns of the rows.
    cuts : sequence of ndarray
        Cuts of all conditions of rules and model, by column; see :func:`cuts_of`.

    Attributes
    ----------
    starts : list of ndarray
        Smallest number of each interval, by column.
    lower, upper : ndarray of shape (n_features,)
        Smallest range of each column that includes the domain and the rows.
    """

    def __init__(self, codes: RowCodes, domain: Domain, cuts: Sequence[np.ndarray]) -> None:
        self.codes = codes
        self.n_features = codes.n_features
        self.is_category = np.isin(np.arange(self.n_features), list(codes.categories))
        self.lower = np.minimum(codes.lower, domain.lower)
        self.upper = np.maximum(codes.upper, domain.upper)
        self.domain_lower, self.domain_upper = np.array(domain.lower), np.array(domain.upper)
        is_whole = codes.is_whole
        for low, high in ((self.lower, self.upper), (self.domain_lower, self.domain_upper)):
            # Bounds of the domain have a margin for rounding, which includes no further integer.
            low[is_whole], high[is_whole] = np.ceil(low[is_whole]), np.floor(high[is_whole])
        is_missing = np.isnan(codes.matrix).any(axis=0)
        self.missing_share = np.array(domain.missing)
        self.has_missing = is_missing | (self.missing_share > 0)
        self.starts = [self._interval_starts(j, cuts[j]) for j in range(self.n_features)]
        self._words_by_condition: dict[Any, np.ndarray] = {}
        self._layout_words()
        self._weigh_cells()

    def _interval_starts(self, j: int, cuts: np.ndarray) -> np.ndarray:
        """Return the smallest number of each interval of a column."""
        if self.is_category[j]:
            return np.zeros(1)
        if self.codes.is_whole[j]:
            cuts = np.ceil(cuts)
        inner_cuts = cuts[(cuts > self.lower[j]) & (cuts <= self.upper[j])]
        return np.concatenate([[self.lower[j]], np.unique(inner_cuts)])

    def _layout_words(self) -> None:
        """Assign words of bits to the categorical columns."""
        self.word_slices: dict[int, slice] = {}
        start = 0
        for j in np.flatnonzero(self.is_category).tolist():
            n_bits = len(self.codes.categories[j]) + 1
            n_words = -(-n_bits // _WORD)
            self.word_slices[j] = slice(start, start + n_words)
            start += n_words
        self.n_words = start

    def _weigh_cells(self) -> None:
        """Compute the measure of each interval, category and missing value in the domain."""
        self.cumulative: list[np.ndarray] = []
        self.category_weights: dict[int, np.ndarray] = {}
        observed_share = 1.0 - self.missing_share
        for j in range(self.n_features):
            if self.is_category[j]:
                n = len(self.codes.categories[j])
                weights = np.full(n + 1, observed_share[j] / max(n, 1))
                weights[n] = self.missing_share[j] if n else 1.0
                self.category_weights[j] = weights
                self.cumulative.append(np.array([0.0, 1.0]))
                continue
            ends = np.append(self.starts[j][1:], math.inf)
            lengths = self.lengths(j, self.domain_lower[j], self.domain_upper[j])(
                self.starts[j], ends
            )
            self.cumulative.append(np.append(0.0, np.cumsum(lengths)) * observed_share[j])

    def lengths(self, j: int, low: Any, high: Any) -> Any:
        """Return a function that computes the share of a range of a column in intervals.

        Parameters
        ----------
        j : int
            Index of a numeric column.
        low, high : float or ndarray
            Range, including both ends.

        Returns
        -------
        callable
            Function of the starts of intervals and the starts of the next ones.
        """
        if self.codes.is_whole[j]:
            total = np.floor(high) - np.ceil(low) + 1

            def share_of_integers(start: Any, end: Any) -> Any:
                first = np.maximum(np.ceil(start), np.ceil(low))
                last = np.minimum(np.ceil(end) - 1, np.floor(high))
                return np.maximum(last - first + 1, 0.0) / total

            return share_of_integers
        width = high - low

        def share(start: Any, end: Any) -> Any:
            overlap = np.minimum(end, high) - np.maximum(start, low)
            is_point = (start <= low) & (low < end)
            with np.errstate(invalid="ignore", divide="ignore"):
                return np.where(width > 0, np.maximum(overlap, 0.0) / width, is_point * 1.0)

        return share

    def ends(self, j: int) -> np.ndarray:
        """Return the start of the next interval for each interval; infinity for the last."""
        return np.append(self.starts[j][1:], math.inf)

    def whole_space(self) -> CellBoxes:
        """Return one box that includes all cells."""
        n = self.n_features
        words = np.zeros((1, self.n_words), dtype=np.uint64)
        for j, position in self.word_slices.items():
            n_categories = len(self.codes.categories[j])
            bits = np.ones(n_categories + 1, dtype=bool)
            bits[n_categories] = self.has_missing[j]
            words[0, position] = self.pack(j, bits)
        high = np.array([[len(starts) for starts in self.starts]], dtype=np.int32)
        missing = (self.has_missing & ~self.is_category)[None, :]
        return CellBoxes(np.zeros((1, n), dtype=np.int32), high, missing, words)

    def pack(self, j: int, bits: np.ndarray) -> np.ndarray:
        """Return the words of a set of categories, given a bit per category and for missing."""
        position = self.word_slices[j]
        n_words = position.stop - position.start
        padded = np.zeros(n_words * _WORD, dtype=bool)
        padded[: len(bits)] = bits
        return np.packbits(padded, bitorder="little").view("<u8").astype(np.uint64)

    def unpack(self, j: int, words: np.ndarray) -> np.ndarray:
        """Return a bit per category of a column, and one for the missing value."""
        as_bytes = np.ascontiguousarray(words[self.word_slices[j]]).astype("<u8").view(np.uint8)
        n_bits = len(self.codes.categories[j]) + 1
        return np.unpackbits(as_bytes, count=n_bits, bitorder="little").astype(bool)

    def boxes_of_rules(self, rules: Sequence[Rule], columns: Sequence[int]) -> CellBoxes:
        """Convert the premises of rules to boxes.

        Parameters
        ----------
        rules : sequence of Rule
            Rules whose conditions are intervals, listed values or missing values.
        columns : sequence of int
            Column of each feature of the rules.

        Returns
        -------
        CellBoxes
            One box per rule; without cells for a rule that never holds in the domain.

        Raises
        ------
        UnreadableModelError
            If a condition has another type.
        """
        boxes = self.whole_space().take(np.zeros(len(rules), dtype=np.intp)).copy()
        for i, rule in enumerate(rules):
            for condition in rule.conditions:
                self.restrict(boxes, i, columns, condition)
        return boxes

    def restrict(
        self, boxes: CellBoxes, i: int, columns: Sequence[int], condition: Condition
    ) -> None:
        """Intersect a box with a condition.

        Parameters
        ----------
        boxes : CellBoxes
            Boxes, which are modified.
        i : int
            Index of the box.
        columns : sequence of int
            Column of each feature of the condition.
        condition : Condition
            An interval, listed values or a missing value.

        Raises
        ------
        UnreadableModelError
            If the condition has another type.
        """
        if isinstance(condition, Interval):
            self._restrict_interval(boxes, i, columns[condition.feature], condition)
        elif isinstance(condition, OneOf | Missing):
            self._restrict_listed(boxes, i, columns[condition.feature], condition)
        else:
            raise UnreadableModelError(
                f"The condition `{condition}` is not a bound or set of values of one column."
            )

    def _restrict_interval(self, boxes: CellBoxes, i: int, j: int, condition: Interval) -> None:
        """Intersect a box with an interval of a column."""
        if condition.is_trivial:
            return
        if self.is_category[j]:
            self._restrict_listed(boxes, i, j, condition)
            return
        start, stop = half_open(condition)
        low, high = self.cell_range(j, start, stop)
        boxes.low[i, j] = max(boxes.low[i, j], low)
        boxes.high[i, j] = min(boxes.high[i, j], high)
        boxes.missing[i, j] &= condition.missing

    def cell_range(self, j: int, start: float, stop: float) -> tuple[int, int]:
        """Return the range of intervals between two cuts of a column."""
        if self.codes.is_whole[j]:
            start, stop = np.ceil(start), np.ceil(stop)
        low, high = np.searchsorted(self.starts[j], [start, stop], side="left").tolist()
        return low, high if stop < math.inf else len(self.starts[j])

    def _restrict_listed(
        self, boxes: CellBoxes, i: int, j: int, condition: Interval | OneOf | Missing
    ) -> None:
        """Intersect a box with the categories, or the missing value, that satisfy a condition."""
        if not self.is_category[j]:  # only conditions on missing values reach numeric columns
            if isinstance(condition, Missing) and condition.negated:
                boxes.missing[i, j] = False
            else:
                boxes.high[i, j] = boxes.low[i, j]
            return
        boxes.words[i, self.word_slices[j]] &= self._accepted_words(j, condition)

    def _accepted_words(self, j: int, condition: Interval | OneOf | Missing) -> np.ndarray:
        """Return the bits of the categories and the missing value that satisfy a condition."""
        key = j, condition
        if key not in self._words_by_condition:
            values = self.codes.categories[j]
            column = np.array([*values, None], dtype=object)
            if not any(isinstance(value, str) for value in values):
                column = column.astype(float)
            accepted = replace(condition, feature=0).holds(lambda _: column)
            self._words_by_condition[key] = self.pack(j, accepted)
        return self._words_by_condition[key]

    def volumes(self, boxes: CellBoxes) -> np.ndarray:
        """Return the share of the domain in each box, by the product measure."""
        result = np.ones(len(boxes))
        for j in range(self.n_features):
            result *= self.column_shares(j, boxes)
        return result

    def column_shares(self, j: int, boxes: CellBoxes) -> np.ndarray:
        """Return the share of a column's measure in each box."""
        if self.is_category[j]:
            weights = self.category_weights[j]
            return np.array([weights[self.unpack(j, words)].sum() for words in boxes.words])
        total = self.cumulative[j]
        ranges = total[np.maximum(boxes.high[:, j], boxes.low[:, j])] - total[boxes.low[:, j]]
        return np.asarray(ranges + boxes.missing[:, j] * self.missing_share[j])

    def are_empty(self, boxes: CellBoxes) -> np.ndarray:
        """Mark boxes without cells."""
        number_columns = ~self.is_category
        has_cells = (boxes.low < boxes.high) | boxes.missing
        result = ~has_cells[:, number_columns].all(axis=1)
        for position in self.word_slices.values():
            result |= ~boxes.words[:, position].any(axis=1)
        return np.asarray(result)

    def count_cells(self, boxes: CellBoxes) -> list[int]:
        """Return the number of cells in each box, as integers of any size."""
        counts = [1] * len(boxes)
        for j in range(self.n_features):
            if self.is_category[j]:
                words = boxes.words[:, self.word_slices[j]]
                sizes = np.bitwise_count(words).sum(axis=1).tolist()
            else:
                ranges = np.maximum(boxes.high[:, j] - boxes.low[:, j], 0)
                sizes = (ranges + boxes.missing[:, j]).tolist()
            counts = [count * size for count, size in zip(counts, sizes, strict=True)]
        return counts

    def contains(self, boxes: CellBoxes, i: int, points: np.ndarray) -> np.ndarray:
        """Return for each point whether it is in box `i`."""
        result = np.ones(len(points), dtype=bool)
        for j in range(self.n_features):
            values = points[:, j]
            is_missing = np.isnan(values)
            if self.is_category[j]:
                bits = self.unpack(j, boxes.words[i])
                codes = np.where(is_missing, len(bits) - 1, values).astype(np.intp)
                result &= bits[codes]
                continue
            start, stop = self.bounds(j, boxes, i)
            is_inside = (values >= start) & (values < stop)
            result &= np.where(is_missing, boxes.missing[i, j], is_inside)
        return result

    def bounds(self, j: int, boxes: CellBoxes, i: int) -> tuple[float, float]:
        """Return the smallest number of a box in a column, and the first number above the box."""
        low, high = int(boxes.low[i, j]), int(boxes.high[i, j])
        if low >= high:
            return math.inf, -math.inf
        starts = self.starts[j]
        return float(starts[low]), float(starts[high]) if high < len(starts) else math.inf


def half_open(condition: Interval) -> tuple[float, float]:
    """Return the smallest number that satisfies an interval, and the first number above it."""
    start, stop = condition.lower, condition.upper
    if start > -math.inf and not condition.lower_closed:
        start = math.nextafter(start, math.inf)
    if stop < math.inf and condition.upper_closed:
        stop = math.nextafter(stop, math.inf)
    return start, stop


def cuts_of(conditions: Sequence[Condition], columns: Sequence[int], n: int) -> list[np.ndarray]:
    """Return the cuts of intervals by column."""
    cuts: list[set[float]] = [set() for _ in range(n)]
    for condition in conditions:
        if isinstance(condition, Interval):
            cuts[columns[condition.feature]].update(half_open(condition))
    return [np.array(sorted(c for c in column if math.isfinite(c))) for column in cuts]
