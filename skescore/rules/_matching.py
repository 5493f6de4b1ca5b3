"""Kernels that match rows to rules with bit masks.

A rule whose conditions are intervals is a box. The bounds of all boxes are thresholds that divide
the axis of each feature into bins; one more bin holds the missing values. A lookup table stores one
bit mask per bin, with one bit per box: 1 if the box accepts the bin. The boxes that contain a row
are the bitwise AND of one mask per feature, 64 boxes per machine word, and the first rule that
holds is the lowest bit set. The cost of a row depends on the number of thresholds and of used
features, not on the number of conditions. Columns that no rule uses are not read, and
single-precision values are compared without conversion.

If numba is installed (extra `fast`), a compiled kernel reads each row of a row-major array only
once and returns the same words. Loading the kernel takes time, so it is loaded only after a process
has predicted so many rows that the kernel would have saved this time.
"""

from __future__ import annotations

import heapq
import importlib.util
import math
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Lock

import numpy as np
from joblib import effective_n_jobs

from skescore.rules._boxes import BoxTable, accepted_states
from skescore.rules._conditions import Condition, Missing
from skescore.rules._row_table import RowTable

#: Number of rules per block. A lookup table stores one bit per rule and threshold. Large forests
#: have a threshold per rule, so the memory of a single block would grow quadratically.
_BLOCK = 1024
#: Number of rows that are processed at a time; a column of them fits into the cache of a core.
_CHUNK = 65536
#: The same for several threads, which wait for each other between NumPy calls, so that fewer and
#: longer calls are faster.
_CHUNK_OF_THREADS = 131072
#: Smallest number of rows per thread for which several threads are faster.
_ROWS_PER_THREAD = 131072
#: Largest number of thresholds that are compared one by one; above it, bisection is faster.
_COMPARED_THRESHOLDS = 96
#: Number of thresholds that one NumPy call compares.
_THRESHOLDS_PER_CALL = 16
_WORD = 64
#: Largest number of masks in the joint lookup table of several features, which fits into CPU
#: caches.
_MAX_JOINT_MASKS = 16384
#: The same for the compiled kernel, whose tables must fit into the first-level cache.
_MAX_COMPILED_MASKS = 512
#: Number of rows after which a process loads the compiled kernel. The kernel would have saved about
#: as much time on these rows as loading it takes, which is less if numba is already in memory.
_ROWS_WITHOUT_NUMBA = 20_000_000
_ROWS_WITH_NUMBA = 2_000_000


class KernelLoader:
    """Loader of the compiled kernel.

    The environment variable ``SKESCORE_NUMBA`` overrides the number of rows that are processed
    without the kernel: 0 never loads it, 1 loads it immediately.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._n_rows = 0
        self._kernel: Callable[..., None] | None = None
        setting = os.environ.get("SKESCORE_NUMBA", "")
        self._is_decided = setting == "0" or importlib.util.find_spec("numba") is None
        self._is_immediate = setting == "1"

    def load(self, n_rows: int) -> Callable[..., None] | None:
        """Count the rows of a call; return the kernel if it is loaded, or None."""
        if self._is_decided:
            return self._kernel
        self._n_rows += n_rows
        limit = _ROWS_WITH_NUMBA if "numba" in sys.modules else _ROWS_WITHOUT_NUMBA
        if self._is_immediate or self._n_rows > limit:
            with self._lock:
                if not self._is_decided:
                    from skescore.rules import _compiled

                    self._kernel = _compiled.match_boxes if _compiled.IS_COMPILED else None
                    self._is_decided = True
        return self._kernel


kernel_loader = KernelLoader()


class _FeatureBins:
    """Bins of one feature, with a bit mask of the boxes that accept each bin."""

    def __init__(
        self,
        feature: int,
        start: np.ndarray,
        stop: np.ndarray,
        is_unbounded_below: np.ndarray,
        is_unbounded_above: np.ndarray,
        accepts_missing: np.ndarray,
        accepts_observed: np.ndarray,
        n_words: int,
    ) -> None:
        self.feature = feature
        self.thresholds = np.unique(
            np.concatenate([start[~is_unbounded_below], stop[~is_unbounded_above]])
        )
        # Bin k lies above the first k thresholds. The last bin holds the missing values.
        first = np.searchsorted(self.thresholds, start, side="right")  # 0 if start is -inf
        after = np.searchsorted(self.thresholds, stop, side="right")
        after[is_unbounded_above] = len(self.thresholds) + 1
        bins = np.arange(len(self.thresholds) + 1)[:, None]
        accepted = (bins >= first) & (bins < after) & accepts_observed
        self.masks = pack_bits(np.vstack([accepted, accepts_missing]), n_words)
        # Single-precision values are compared with the smallest single-precision number that is not
        # below the threshold; the results are the same.
        with np.errstate(over="ignore"):
            rounded = self.thresholds.astype(np.float32)
            above = np.nextafter(rounded, np.float32(np.inf))
        is_below = rounded.astype(np.float64) < self.thresholds
        self.single_thresholds = np.where(is_below, above, rounded)

    def find_bins(self, values: np.ndarray) -> np.ndarray:
        """Return the index of the bin that contains each value.

        Without thresholds, `values` is a mask of the missing values.
        """
        n_thresholds = len(self.thresholds)
        result: np.ndarray
        if n_thresholds == 0:
            return values.astype(np.uint8)
        is_single = values.dtype == np.float32
        thresholds = self.single_thresholds if is_single else self.thresholds
        if n_thresholds <= _COMPARED_THRESHOLDS:
            result = _count_reached(values, thresholds)
        else:
            result = np.searchsorted(thresholds, values, side="right")
        if len(values) and np.isnan(values.min()):
            result[np.isnan(values)] = n_thresholds + 1
        return result


def _count_reached(values: np.ndarray, thresholds: np.ndarray) -> np.ndarray:
    """Return the number of thresholds that are at most each value; 0 for a missing value."""
    if len(thresholds) == 1:
        return np.greater_equal(values, thresholds[0]).view(np.uint8)
    result: np.ndarray | None = None
    for start in range(0, len(thresholds), _THRESHOLDS_PER_CALL):
        part = thresholds[start : start + _THRESHOLDS_PER_CALL]
        flags = np.less_equal.outer(part, values).view(np.uint8)
        count = np.add.reduce(flags, axis=0, dtype=np.uint8)
        result = count if result is None else np.add(result, count, out=result)
    assert result is not None
    return result


class _JointBins:
    """Combinations of bins of several features that share a lookup table.

    One lookup then returns the boxes that accept the values of all these features.
    """

    def __init__(self, features: list[_FeatureBins]) -> None:
        self.features = features
        self.masks = features[0].masks
        for feature in features[1:]:
            product = self.masks[:, None, :] & feature.masks[None, :, :]
            self.masks = product.reshape(-1, product.shape[2])

    @classmethod
    def group(cls, features: Sequence[_FeatureBins], max_masks: int) -> list[_JointBins]:
        """Group features into few joint lookup tables of limited and similar size."""
        max_masks = max(2, max_masks)
        ordered = sorted(features, key=lambda f: -len(f.masks))
        n_full_tables = sum(min(1.0, math.log(len(f.masks), max_masks)) for f in ordered)
        n_groups = max(1, math.ceil(n_full_tables))
        while True:
            groups: list[tuple[int, int, list[_FeatureBins]]] = [
                (1, k, []) for k in range(n_groups)
            ]
            for feature in ordered:
                size, k, group = groups[0]
                group.append(feature)
                heapq.heapreplace(groups, (size * len(feature.masks), k, group))
            if all(size <= max_masks or len(group) == 1 for size, _, group in groups):
                return [cls(group) for _, _, group in groups if group]
            n_groups += 1 + n_groups // 4

    def find_bins(self, columns: Iterator[np.ndarray]) -> np.ndarray:
        """Return the index of each row's combination of bins in the lookup table.

        `columns` yields the values of each feature.
        """
        result = self.features[0].find_bins(next(columns))
        if len(self.features) == 1:
            return result
        result = result.astype(np.uint16)
        for feature in self.features[1:]:
            result *= np.uint16(len(feature.masks))
            np.add(result, feature.find_bins(next(columns)), out=result, casting="unsafe")
        return result


class _CompiledBins:
    """Arguments of the compiled kernel: thresholds of features, and a bit mask for each bin.

    Parameters
    ----------
    bins : sequence of _FeatureBins
        The bins of each feature.
    n_words : int
        Number of words per mask.
    """

    def __init__(self, bins: Sequence[_FeatureBins], n_words: int) -> None:
        from skescore.rules._compiled import index_memory, pad_thresholds

        self._index_memory = index_memory
        groups = _JointBins.group(bins, _MAX_COMPILED_MASKS // n_words)
        ordered = [feature for group in groups for feature in group.features]
        self._columns = np.array([feature.feature for feature in ordered], dtype=np.int64)
        double = [pad_thresholds(feature.thresholds) for feature in ordered]
        single = [pad_thresholds(feature.single_thresholds) for feature in ordered]
        self._threshold_starts = _starts([len(thresholds) for thresholds in double])
        self._thresholds = {
            np.dtype(np.float64): np.concatenate(double),
            np.dtype(np.float32): np.concatenate(single),
        }
        missing_bins = [len(feature.masks) - 1 for feature in ordered]
        self._missing_bins = np.array(missing_bins, dtype=np.uint16)
        self._group_starts = _starts([len(group.features) for group in groups])
        self._mask_starts = _starts([len(group.masks) for group in groups])
        self._masks = np.ascontiguousarray(np.vstack([group.masks for group in groups]))

    def look_up(self, kernel: Callable[..., None], table: RowTable, rows: slice) -> np.ndarray:
        """Return for each row a bit mask of the boxes that contain it."""
        block = table.block(rows)
        words = np.empty((len(block), self._masks.shape[1]), dtype=np.uint64)
        kernel(
            block,
            self._columns,
            self._threshold_starts,
            self._thresholds[block.dtype],
            self._missing_bins,
            self._group_starts,
            self._mask_starts,
            self._masks,
            self._index_memory(block.dtype),
            words,
        )
        return words


def _starts(sizes: Sequence[int]) -> np.ndarray:
    """Return the positions at which parts of given sizes start, and the position of the end."""
    return np.cumsum([0, *sizes]).astype(np.int64)


def pack_bits(flags: np.ndarray, n_words: int) -> np.ndarray:
    """Pack a boolean matrix into words of 64 bits, lowest bit first."""
    padded = np.zeros((len(flags), n_words * _WORD), dtype=bool)
    padded[:, : flags.shape[1]] = flags
    return np.packbits(padded, axis=1, bitorder="little").view("<u8").astype(np.uint64)


def unpack_bits(words: np.ndarray, n_flags: int) -> np.ndarray:
    """Unpack words of 64 bits into a boolean matrix; the inverse of :func:`pack_bits`."""
    as_bytes = np.ascontiguousarray(words).astype("<u8").view(np.uint8)
    return np.unpackbits(as_bytes, axis=1, count=n_flags, bitorder="little").astype(bool)


class Matcher:
    """Matcher of rows to premises, prepared once for many rows.

    Parameters
    ----------
    boxes : BoxTable
        The intervals of each premise.
    non_intervals : sequence of tuples of conditions
        The other conditions of each premise.

    Attributes
    ----------
    n_rules : int
        Number of premises.
    blocks : tuple of (int, RuleBlock)
        Blocks of premises, each with the index of its first premise.
    """

    def __init__(self, boxes: BoxTable, non_intervals: Sequence[tuple[Condition, ...]]) -> None:
        self.n_rules = len(boxes)
        starts = range(0, max(1, self.n_rules), _BLOCK)
        parts = [slice(begin, begin + _BLOCK) for begin in starts]
        self.blocks = tuple(
            (part.start, RuleBlock(boxes.take(part), non_intervals[part])) for part in parts
        )

    def match(self, table: RowTable, rows: slice | None = None) -> np.ndarray:
        """Return whether each premise holds for each row, shape (n_rows, n_rules)."""
        if len(self.blocks) == 1:
            return self.blocks[0][1].match(table, rows)
        n_rows = len(table) if rows is None else rows.stop - rows.start
        result = np.empty((n_rows, self.n_rules), dtype=bool)
        for begin, block in self.blocks:
            result[:, begin : begin + block.n_rules] = block.match(table, rows)
        return result

    def covers(self, table: RowTable) -> np.ndarray:
        """Return a mask of the rows for which at least one premise holds."""
        result = self.blocks[0][1].covers(table)
        for _, block in self.blocks[1:]:
            result |= block.covers(table)
        return result

    def first(self, table: RowTable, rows: slice) -> np.ndarray:
        """Return the index of the first premise that holds for each row, or at least `n_rules`."""
        result = self.blocks[0][1].first(table, rows)
        for begin, block in self.blocks[1:]:
            later = np.add(block.first(table, rows), begin, dtype=np.intp)
            result = np.where(result < begin, result, later)
        return result


class RuleBlock:
    """Lookup tables of a limited number of premises."""

    def __init__(self, boxes: BoxTable, non_intervals: Sequence[tuple[Condition, ...]]) -> None:
        self.n_rules = len(boxes)
        self.n_words = max(1, -(-self.n_rules // _WORD))
        start, stop = boxes.half_open_bounds()
        below, above = boxes.lower == -np.inf, boxes.upper == np.inf
        used = np.asarray(boxes.bounded.any(axis=0))
        observed, missing = accepted_states(boxes, non_intervals)
        self._non_intervals: dict[int, list[Condition]] = {}
        for i, conditions in enumerate(non_intervals):
            for condition in conditions:
                if isinstance(condition, Missing):
                    used[condition.feature] = True
                else:
                    self._non_intervals.setdefault(i, []).append(condition)
        bins = [
            _FeatureBins(
                j,
                start[:, j],
                stop[:, j],
                below[:, j],
                above[:, j],
                missing[:, j],
                observed[:, j],
                self.n_words,
            )
            for j in np.flatnonzero(used).tolist()
        ]
        self._bins = bins
        self._groups = _JointBins.group(bins, _MAX_JOINT_MASKS // self.n_words)
        self._compiled: _CompiledBins | None = None
        all_rules = np.ones((1, self.n_rules), dtype=bool)
        self._all = pack_bits(all_rules, self.n_words)[0]

    def _look_up(self, table: RowTable, rows: slice) -> np.ndarray:
        """Return for each row a bit mask of the boxes that contain it, by NumPy."""
        columns = self._columns(table, rows)
        words = None
        for group in self._groups:
            # Every bin has a mask, so mode="clip" only skips the check of the indices.
            masks = group.masks.take(group.find_bins(columns), axis=0, mode="clip")
            words = masks if words is None else np.bitwise_and(words, masks, out=words)
        if words is None:
            words = np.broadcast_to(self._all, (rows.stop - rows.start, self.n_words)).copy()
        return words

    def _columns(self, table: RowTable, rows: slice) -> Iterator[np.ndarray]:
        """Yield the values of each feature, or a mask of missing values if nothing is compared."""
        bins = [feature for group in self._groups for feature in group.features]
        compared = [feature.feature for feature in bins if len(feature.thresholds)]
        values = table.float_columns(compared, rows)
        for feature in bins:
            is_compared = len(feature.thresholds) > 0
            yield next(values) if is_compared else table.missing(feature.feature, rows)

    def _look_up_compiled(
        self, kernel: Callable[..., None], table: RowTable, rows: slice
    ) -> np.ndarray:
        """Return for each row a bit mask of the boxes that contain it, by the compiled kernel."""
        compared = [feature for feature in self._bins if len(feature.thresholds)]
        if not compared:
            return self._look_up(table, rows)
        if self._compiled is None:
            self._compiled = _CompiledBins(compared, self.n_words)
        words = self._compiled.look_up(kernel, table, rows)
        for feature in self._bins:
            if len(feature.thresholds) == 0:
                bins = feature.find_bins(table.missing(feature.feature, rows))
                words &= feature.masks.take(bins, axis=0, mode="clip")
        return words

    def _match_words(self, table: RowTable, rows: slice) -> np.ndarray:
        """Return a mask of the premises that hold for each row, shape (n_rows, n_words)."""
        # NumPy is as fast for columns that are contiguous in memory.
        kernel = kernel_loader.load(rows.stop - rows.start) if table.is_row_major else None
        if kernel is None:
            words = self._look_up(table, rows)
        else:
            words = self._look_up_compiled(kernel, table, rows)
        for index, conditions in self._non_intervals.items():
            word, bit = divmod(index, _WORD)
            flag = np.uint64(1 << bit)
            reached = np.flatnonzero(words[:, word] & flag)
            if len(reached) == 0:
                continue
            satisfied = np.ones(len(reached), dtype=bool)
            for condition in conditions:
                satisfied &= table.holds(condition, rows.start + reached)
            words[reached[~satisfied], word] &= ~flag
        return words

    def _chunks(self, start: int, stop: int, size: int) -> Iterator[slice]:
        """Divide rows into chunks of at most `size` rows."""
        # Many rules or features need much memory per row, so fewer rows are processed at a time.
        shares = min(max(1, self.n_words // 4, len(self._bins) // 32), 16)
        size = max(1, size // shares)
        return (slice(i, min(i + size, stop)) for i in range(start, stop, size))

    def match(self, table: RowTable, rows: slice | None = None) -> np.ndarray:
        """Return whether each premise holds for each row, shape (n_rows, n_rules)."""
        start, stop = (0, len(table)) if rows is None else (rows.start, rows.stop)
        result = np.empty((stop - start, self.n_rules), dtype=bool)
        for part in self._chunks(start, stop, _CHUNK):
            words = self._match_words(table, part)
            result[part.start - start : part.stop - start] = unpack_bits(words, self.n_rules)
        return result

    def covers(self, table: RowTable) -> np.ndarray:
        """Return a mask of the rows for which at least one premise holds."""
        result = np.empty(len(table), dtype=bool)
        for rows in self._chunks(0, len(table), _CHUNK):
            result[rows] = self._match_words(table, rows).any(axis=1)
        return result

    def first(self, table: RowTable, rows: slice) -> np.ndarray:
        """Return the index of the first premise that holds for each row, or at least `n_rules`."""
        # :func:`run_in_chunks` has limited the rows; smaller chunks are needed only for many rules.
        parts = list(self._chunks(rows.start, rows.stop, _CHUNK_OF_THREADS))
        if len(parts) == 1:
            return lowest_bit(self._match_words(table, rows))
        return np.concatenate([lowest_bit(self._match_words(table, part)) for part in parts])


def run_in_chunks(process: Callable[[slice], None], n_rows: int, n_jobs: int | None) -> None:
    """Call a function on chunks of rows, in `n_jobs` threads."""
    n_threads = 1 if n_jobs is None else effective_n_jobs(n_jobs)
    n_threads = min(n_threads, n_rows // _ROWS_PER_THREAD)
    size = _CHUNK if n_threads <= 1 else _CHUNK_OF_THREADS

    def process_range(begin: int, end: int) -> None:
        for start in range(begin, end, size):
            process(slice(start, min(start + size, end)))

    if n_threads <= 1:
        process_range(0, n_rows)
        return
    ends = [n_rows * i // n_threads for i in range(1, n_threads)]
    with ThreadPoolExecutor(n_threads) as pool:
        list(pool.map(process_range, [0, *ends], [*ends, n_rows]))


def lowest_bit(words: np.ndarray) -> np.ndarray:
    """Return the index of the lowest bit set in each row; the number of bits if none is set."""
    word, index = words[:, 0], None
    if words.shape[1] > 1:
        index = (words != 0).argmax(axis=1)
        word = words[np.arange(len(words)), index]
        index[word == 0] = words.shape[1] - 1
    # The number of zeros below the lowest bit is its index; it is 64 if no bit is set.
    below = word - np.uint64(1)
    np.bitwise_and(below, np.bitwise_not(word), out=below)
    number = np.bitwise_count(below)
    return number if index is None else index * _WORD + number
