"""Points as bits: one bit per point and code, so that 64 points are counted at a time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from skescore.extractors.real._codes import CodedFeature, Evidence

#: Largest number of codes of packed features; with more codes, counting single points is faster.
_MAX_PACKED_CODES = 128
#: Points per word.
_BITS = 64
#: Number of words that are counted at a time.
_WORDS_PER_BATCH = 1 << 16
#: Largest integer up to which sums are exact in single precision.
_EXACT_IN_SINGLE_PRECISION = 2**24

#: Kinds of points: training rows and queried points.
ROWS, QUERIED = 0, 1


class CodeLayout:
    """Layout of the codes of all varying features in one array, with one cell per code.

    The cells of packed features come first, then one cell without points, then the cells of wide
    features.

    Attributes
    ----------
    varying : list of int
        Features with more than one code.
    packed : list of int
        Varying features with few codes, which are stored as one bit per point and code.
    wide : list of int
        The other varying features.
    n_packed_cells : int
        Number of cells of packed features.
    size : int
        Number of cells.
    """

    def __init__(self, features: Sequence[CodedFeature]) -> None:
        self.features = features
        self.n_codes = [len(feature.counts) for feature in features]
        self.varying = [j for j, n in enumerate(self.n_codes) if n > 1]
        self.packed = [j for j in self.varying if self.n_codes[j] <= _MAX_PACKED_CODES]
        self.wide = [j for j in self.varying if self.n_codes[j] > _MAX_PACKED_CODES]
        self._slices: dict[int, slice] = {}
        self.n_packed_cells = self._number_cells(self.packed, 0)
        self.size = self._number_cells(self.wide, self.n_packed_cells + 1)
        self.packed_ordered = [j for j in self.packed if features[j].ordered]
        self.packed_unordered = [j for j in self.packed if not features[j].ordered]
        self.ordered_cells = self._table(self.packed_ordered)
        self.unordered_cells = self._table(self.packed_unordered)

    def _number_cells(self, features: Sequence[int], start: int) -> int:
        """Assign consecutive cells to the codes of features; return the end."""
        for j in features:
            self._slices[j] = slice(start, start + self.n_codes[j])
            start += self.n_codes[j]
        return start

    def _table(self, features: Sequence[int]) -> np.ndarray:
        """Return the cells of each feature, padded with the cell without points."""
        n_codes = max((self.n_codes[j] for j in features), default=0)
        result = np.full((len(features), n_codes), self.n_packed_cells)
        for row, j in zip(result, features, strict=True):
            row[: self.n_codes[j]] = np.arange(self.n_codes[j]) + self._slices[j].start
        return result

    def cells_of(self, feature: int) -> slice:
        """Return the cells of a feature."""
        return self._slices[feature]

    def premise(self, allowed: np.ndarray) -> list[np.ndarray]:
        """Return the allowed codes of each feature."""
        all_codes = np.ones(1, dtype=bool)
        return [
            allowed[self._slices[j]] if n > 1 else all_codes for j, n in enumerate(self.n_codes)
        ]

    def pack(self, points: Evidence, n_classes: int, kind: int) -> PackedPoints:
        """Pack points of one kind with integer weights.

        A point is split by powers of two: weight 5 becomes two points of weights 1 and 4. Points of
        equal weight share words.
        """
        weights = points.weights.astype(np.int64)
        index, factors = [], []
        for bit in range(int(weights.max(initial=0)).bit_length()):
            members = np.flatnonzero((weights >> bit) & 1)
            n_words = -(-len(members) // _BITS)
            index.append(np.append(members, np.full(n_words * _BITS - len(members), -1)))
            factors.append(np.full(n_words, float(1 << bit)))
        points_at = np.concatenate(index) if index else np.empty(0, dtype=np.intp)
        is_point = points_at >= 0
        codes, labels = points.codes[:, points_at], points.labels[points_at]
        cells = np.empty((self.n_packed_cells, len(points_at) // _BITS), dtype=np.uint64)
        for j in self.packed:
            has_code = codes[j] == np.arange(self.n_codes[j])[:, None]
            cells[self.cells_of(j)] = _packed_bits(has_code)
        word_factors = np.zeros((cells.shape[1], 2))
        word_factors[:, kind] = np.concatenate(factors) if factors else 0.0
        return PackedPoints(
            cells,
            codes[self.wide],
            _packed_bits((labels == np.arange(n_classes)[:, None]) & is_point),
            word_factors,
            len(points),
        )


@dataclass(frozen=True, eq=False)
class PackedPoints:
    """Coded points and their classes predicted by the black box, one bit per point.

    Parameters
    ----------
    cells : ndarray of uint64, shape (n_packed_cells, n_words)
        Points with each code of the packed features.
    wide_codes : ndarray of int, shape (n_wide, 64 * n_words)
        Codes of the other features.
    classes : ndarray of uint64, shape (n_classes, n_words)
        Points of each class. Bits beyond the last point are 0.
    factors : ndarray of shape (n_words, 2)
        Weights of the points of each word as training rows and as queried points; one is 0.
    n_points : int
        Number of points.
    """

    cells: np.ndarray
    wide_codes: np.ndarray
    classes: np.ndarray
    factors: np.ndarray
    n_points: int

    def concatenate(self, other: PackedPoints) -> PackedPoints:
        """Concatenate the points of both."""
        return PackedPoints(
            np.concatenate([self.cells, other.cells], axis=1),
            np.concatenate([self.wide_codes, other.wide_codes], axis=1),
            np.concatenate([self.classes, other.classes], axis=1),
            np.concatenate([self.factors, other.factors]),
            self.n_points + other.n_points,
        )

    def satisfying(self, layout: CodeLayout, feature: int, allowed: np.ndarray) -> np.ndarray:
        """Return the points that have an allowed code of a feature, as bits."""
        if layout.n_codes[feature] <= _MAX_PACKED_CODES:
            return np.bitwise_or.reduce(self.cells[layout.cells_of(feature)][allowed], axis=0)
        return _packed_bits(allowed[self.wide_codes[layout.wide.index(feature)]])

    def matching(self, layout: CodeLayout, premise: Sequence[np.ndarray]) -> np.ndarray:
        """Return the points that satisfy a premise, as bits."""
        result = np.full(self.cells.shape[1], ~np.uint64(0))
        for j in layout.varying:
            if not premise[j].all():
                result &= self.satisfying(layout, j, premise[j])
        return result

    def equal_to(self, layout: CodeLayout, codes: np.ndarray) -> np.ndarray:
        """Return the points with exactly the codes of a row, as bits."""
        own_cells = [layout.cells_of(j).start + int(codes[j]) for j in layout.packed]
        result = np.bitwise_and.reduce(self.cells[own_cells], axis=0, initial=~np.uint64(0))
        if layout.wide:
            is_same = (self.wide_codes == codes[layout.wide][:, None]).all(axis=0)
            result &= _packed_bits(is_same)
        return np.asarray(result)

    def exact_factors(self) -> np.ndarray:
        """Return `factors` in the smallest floating-point type in which sums are exact."""
        is_small = self.factors.sum() * _BITS < _EXACT_IN_SINGLE_PRECISION
        return self.factors.astype(np.float32 if is_small else np.float64)

    def weigh(self, masks: np.ndarray) -> np.ndarray:
        """Return the weights of sets of points, as training rows and as queried points."""
        return _weights_of(masks, self.exact_factors())


class ClassCounts:
    """Counts of points for a rule of one class.

    Counts have an axis "2 sides" for points with another and with the same predicted class, and an
    axis "2 kinds" for training rows and queried points.
    """

    def __init__(self, layout: CodeLayout, points: PackedPoints, output: int) -> None:
        self.layout = layout
        self.points = points
        agreeing = points.classes[output]
        disagreeing = np.bitwise_or.reduce(points.classes, axis=0) & ~agreeing
        self.sides = np.stack([disagreeing, agreeing])
        self._factors = points.exact_factors()

    def count_points(self, masks: np.ndarray) -> np.ndarray:
        """Return counts of sets of points, shape (2 kinds, n_sets, 2 sides)."""
        counts = _weights_of(masks[:, None] & self.sides, self._factors)
        return counts.transpose(2, 0, 1)

    def of_cells(self, mask: np.ndarray) -> np.ndarray:
        """Return counts by packed cell, shape (2 kinds, n_packed_cells + 1, 2 sides).

        The last cell has no points.
        """
        cells = self.points.cells
        sides = (self.sides & mask)[:, None]
        result = np.zeros((2, len(cells) + 1, 2))
        size = max(1, _WORDS_PER_BATCH // max(1, 2 * cells.shape[1]))
        for start in range(0, len(cells), size):
            batch = slice(start, min(start + size, len(cells)))
            counts = _weights_of(sides & cells[batch], self._factors)
            result[:, batch] = counts.transpose(2, 1, 0)
        return result

    def of_codes(self, feature: int, mask: np.ndarray) -> np.ndarray:
        """Return counts by code of a wide feature, shape (2 kinds, n_codes, 2 sides)."""
        n_codes = self.layout.n_codes[feature]
        codes = self.points.wide_codes[self.layout.wide.index(feature)]
        result = np.empty((2, n_codes, 2))
        for side, side_mask in enumerate(self.sides):
            index = np.flatnonzero(_unpacked_bits(mask & side_mask))
            factors = self.points.factors[index // _BITS]
            for kind in (ROWS, QUERIED):
                result[kind, :, side] = np.bincount(codes[index], factors[:, kind], n_codes)
        return result

    def of_code_sets(
        self, features: Sequence[int], codes: Sequence[Sequence[int]], masks: np.ndarray
    ) -> list[np.ndarray]:
        """Count points by codes of several features, each feature within its own set of points.

        Parameters
        ----------
        features : sequence of int
            The features.
        codes : sequence of sequence of int
            Codes of each feature that are counted.
        masks : ndarray of uint64, shape (n_features + 1, n_words)
            Set of points for each feature, and an additional set.

        Returns
        -------
        list of ndarray of shape (n_codes, 2 kinds, 2 sides)
            Counts of the additional set, as if it had one code, and then those of each feature.
        """
        layout = self.layout
        is_packed = [layout.n_codes[j] <= _MAX_PACKED_CODES for j in features]
        packed_codes = [own if flag else [] for own, flag in zip(codes, is_packed, strict=True)]
        sizes = [len(own) for own in packed_codes]
        cells = [
            layout.cells_of(j).start + code
            for j, own in zip(features, packed_codes, strict=True)
            for code in own
        ]
        owners = np.repeat(np.arange(len(features)), sizes)
        sets = np.concatenate([masks[-1:], self.points.cells[cells] & masks[owners]])
        counts = self.count_points(sets).transpose(1, 0, 2)
        result = np.split(counts, np.cumsum([1, *sizes])[:-1])
        for at, (j, flag) in enumerate(zip(features, is_packed, strict=True)):
            if not flag:
                result[at + 1] = self.of_codes(j, masks[at])[:, codes[at]].transpose(1, 0, 2)
        return result


def _weights_of(masks: np.ndarray, factors: np.ndarray) -> np.ndarray:
    """Return the weights of sets of points, shape (..., 2 kinds)."""
    counts = np.bitwise_count(masks).astype(factors.dtype)
    weights = counts.reshape(math.prod(masks.shape[:-1]), len(factors)) @ factors
    return weights.reshape(*masks.shape[:-1], 2).astype(float)


def _packed_bits(flags: np.ndarray) -> np.ndarray:
    return np.packbits(flags, axis=-1, bitorder="little").view(np.uint64)


def _unpacked_bits(words: np.ndarray) -> np.ndarray:
    return np.unpackbits(words.view(np.uint8), bitorder="little")
