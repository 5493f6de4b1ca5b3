"""Matching rows to rules, fast.

A rule whose conditions are intervals is a box. Per feature the faces of all boxes cut the axis
into a few pieces, and one more piece holds missing values; a table holds, for every piece, one bit
per box: does this box accept that piece? The boxes that hold a row are then the bitwise AND of one
table entry per feature, 64 boxes at a time, and the first rule that predicts is the lowest bit set.
A row costs one small comparison per cut and one look-up per few features, whatever the number of
conditions. Only columns that rules use are touched, and single precision is compared as it is.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from joblib import effective_n_jobs

from skescore.rules._boxes import BoxTable, accepted_states
from skescore.rules._conditions import Condition, Missing
from skescore.rules._row_table import RowTable

#: Rules in one table: it holds a bit per rule for every cut, and large forests have a cut per rule,
#: so that without blocks the memory would grow with the square of the number of rules.
_BLOCK = 1024
#: Rows worked on at a time: a column of them stays in a core's cache.
_CHUNK = 65536
#: Up to so many cuts are counted one by one (vectorized); more are searched by bisection.
_COUNTED_CUTS = 96
_WORD = 64
#: Pieces of several features that have a table together: it stays in a core's cache.
_TOGETHER = 16384


class _FeatureCuts:
    """The cuts of one feature and the boxes that accept each piece between them."""

    def __init__(
        self,
        feature: int,
        start: np.ndarray,
        stop: np.ndarray,
        free_below: np.ndarray,
        free_above: np.ndarray,
        accepts_missing: np.ndarray,
        accepts_known: np.ndarray,
        n_words: int,
    ) -> None:
        self.feature = feature
        self.cuts = np.unique(np.concatenate([start[~free_below], stop[~free_above]]))
        # Piece number k lies after the first k cuts; one more piece holds missing values.
        first = np.searchsorted(self.cuts, start, side="right")  # 0 where start is -inf
        after = np.searchsorted(self.cuts, stop, side="right")
        after[free_above] = len(self.cuts) + 1
        piece = np.arange(len(self.cuts) + 1)[:, None]
        accepted = (piece >= first) & (piece < after) & accepts_known
        self.masks = pack_bits(np.vstack([accepted, accepts_missing]), n_words)
        # Of single precision, just those numbers are at least a cut that are at least this one.
        with np.errstate(over="ignore"):
            near = self.cuts.astype(np.float32)
            above = np.nextafter(near, np.float32(np.inf))
        self._single = np.where(near.astype(np.float64) < self.cuts, above, near)

    def pieces(self, table: RowTable, rows: slice) -> np.ndarray:
        """Number of the piece that holds each value."""
        n_cuts = len(self.cuts)
        result: np.ndarray
        if n_cuts == 0:  # only whether the value is missing counts, which may be a text
            return table.missing(self.feature, rows).astype(np.uint8)
        values = table.floats(self.feature, rows)
        cuts = self._single if values.dtype == np.float32 else self.cuts
        if n_cuts <= _COUNTED_CUTS:
            result = np.empty(len(values), dtype=np.uint8)
            np.greater_equal(values, cuts[0], out=result.view(bool))
            flags = np.empty(len(values), dtype=bool)
            for cut in cuts[1:]:
                np.greater_equal(values, cut, out=flags)
                result += flags.view(np.uint8)
        else:
            result = np.searchsorted(cuts, values, side="right")
        if len(values) and np.isnan(values.min()):
            result[np.isnan(values)] = n_cuts + 1
        return result


class _JointCuts:
    """Features with few pieces together, so that one look-up tells which boxes accept all."""

    def __init__(self, features: list[_FeatureCuts]) -> None:
        self._features = features
        self.masks = features[0].masks
        for feature in features[1:]:
            both = self.masks[:, None, :] & feature.masks[None, :, :]
            self.masks = both.reshape(-1, both.shape[2])

    @classmethod
    def of(cls, features: Sequence[_FeatureCuts], n_words: int) -> list[_JointCuts]:
        """Put features together into few tables, of about the same length, that stay small."""
        most = max(2, _TOGETHER // n_words)
        ordered = sorted(features, key=lambda f: -len(f.masks))
        filled = sum(min(1.0, math.log(len(f.masks), most)) for f in ordered)
        n_groups = max(1, math.ceil(filled))
        while True:
            groups: list[tuple[int, int, list[_FeatureCuts]]] = [
                (1, k, []) for k in range(n_groups)
            ]
            for feature in ordered:
                size, k, group = groups[0]
                group.append(feature)
                heapq.heapreplace(groups, (size * len(feature.masks), k, group))
            if all(size <= most or len(group) == 1 for size, _, group in groups):
                return [cls(group) for _, _, group in groups if group]
            n_groups += 1 + n_groups // 4

    def pieces(self, table: RowTable, rows: slice) -> np.ndarray:
        """Number of the line of the table that each row has."""
        result = self._features[0].pieces(table, rows)
        if len(self._features) == 1:
            return result
        result = result.astype(np.uint16)
        for feature in self._features[1:]:
            result *= np.uint16(len(feature.masks))
            np.add(result, feature.pieces(table, rows), out=result, casting="unsafe")
        return result


def pack_bits(flags: np.ndarray, n_words: int) -> np.ndarray:
    """Pack a boolean matrix into words of 64 bits, lowest bit first."""
    padded = np.zeros((len(flags), n_words * _WORD), dtype=bool)
    padded[:, : flags.shape[1]] = flags
    return np.packbits(padded, axis=1, bitorder="little").view("<u8").astype(np.uint64)


def unpack_bits(words: np.ndarray, n_flags: int) -> np.ndarray:
    """Undo :func:`pack_bits`."""
    as_bytes = np.ascontiguousarray(words).astype("<u8").view(np.uint8)
    return np.unpackbits(as_bytes, axis=1, count=n_flags, bitorder="little").astype(bool)


class Matcher:
    """Boxes and other conditions (mostly none), prepared for matching many rows.

    Its `blocks` are some rules at a time, each with the index of the first of them.
    """

    def __init__(self, boxes: BoxTable, others: Sequence[tuple[Condition, ...]]) -> None:
        self.n_rules = len(boxes)
        starts = range(0, max(1, self.n_rules), _BLOCK)
        pieces = [slice(begin, begin + _BLOCK) for begin in starts]
        self.blocks = tuple((p.start, Block(boxes.take(p), others[p])) for p in pieces)

    def match(self, table: RowTable, rows: slice | None = None) -> np.ndarray:
        """Every rule on every row (or a slice of them), shape (n_rows, n_rules)."""
        if len(self.blocks) == 1:
            return self.blocks[0][1].match(table, rows)
        n_rows = len(table) if rows is None else rows.stop - rows.start
        result = np.empty((n_rows, self.n_rules), dtype=bool)
        for begin, block in self.blocks:
            result[:, begin : begin + block.n_rules] = block.match(table, rows)
        return result

    def covers(self, table: RowTable) -> np.ndarray:
        """Rows that some rule holds for."""
        result = self.blocks[0][1].covers(table)
        for _, block in self.blocks[1:]:
            result |= block.covers(table)
        return result

    def first(self, table: RowTable, rows: slice) -> np.ndarray:
        """Index of the first rule that holds for each of some rows, `n_rules` or more for none."""
        result = self.blocks[0][1].first(table, rows)
        for begin, block in self.blocks[1:]:
            further = np.add(block.first(table, rows), begin, dtype=np.intp)
            result = np.where(result < begin, result, further)
        return result


class Block:
    """Some rules of a matcher, in tables of their own."""

    def __init__(self, boxes: BoxTable, others: Sequence[tuple[Condition, ...]]) -> None:
        self.n_rules = len(boxes)
        self.n_words = max(1, -(-self.n_rules // _WORD))
        start, stop = boxes.half_open_bounds()
        below, above = boxes.lower == -np.inf, boxes.upper == np.inf
        used = np.asarray(boxes.bounded.any(axis=0))
        known, missing = accepted_states(boxes, others)
        self._others: dict[int, list[Condition]] = {}
        for i, conditions in enumerate(others):
            for condition in conditions:
                if isinstance(condition, Missing):
                    used[condition.feature] = True
                else:
                    self._others.setdefault(i, []).append(condition)
        cuts = [
            _FeatureCuts(
                j,
                start[:, j],
                stop[:, j],
                below[:, j],
                above[:, j],
                missing[:, j],
                known[:, j],
                self.n_words,
            )
            for j in np.flatnonzero(used).tolist()
        ]
        self._cuts = _JointCuts.of(cuts, self.n_words)
        all_rules = np.ones((1, self.n_rules), dtype=bool)
        self._all = pack_bits(all_rules, self.n_words)[0]

    def _words(self, table: RowTable, rows: slice) -> np.ndarray:
        """The matching rules of some rows as bits, shape (n_rows, n_words)."""
        n_rows = rows.stop - rows.start
        words = None
        for feature in self._cuts:
            # All pieces have a line, so that nothing is to be checked.
            held = feature.masks.take(feature.pieces(table, rows), axis=0, mode="clip")
            words = held if words is None else np.bitwise_and(words, held, out=words)
        if words is None:
            words = np.broadcast_to(self._all, (n_rows, self.n_words)).copy()
        for index, conditions in self._others.items():
            word, bit = divmod(index, _WORD)
            flag = np.uint64(1 << bit)
            reached = np.flatnonzero(words[:, word] & flag)
            if len(reached) == 0:
                continue
            held = np.ones(len(reached), dtype=bool)
            for condition in conditions:
                held &= table.holds(condition, rows.start + reached)
            words[reached[~held], word] &= ~flag
        return words

    def _chunks(self, stop: int, start: int = 0) -> Iterator[slice]:
        # Many rules make long words; fewer rows at a time then keep the memory level.
        size = max(1, _CHUNK // min(max(1, self.n_words // 4), 16))
        return (slice(i, min(i + size, stop)) for i in range(start, stop, size))

    def match(self, table: RowTable, rows: slice | None = None) -> np.ndarray:
        """Every rule on every row (or a slice of them), shape (n_rows, n_rules)."""
        start, stop = (0, len(table)) if rows is None else (rows.start, rows.stop)
        result = np.empty((stop - start, self.n_rules), dtype=bool)
        for part in self._chunks(stop, start):
            words = self._words(table, part)
            result[part.start - start : part.stop - start] = unpack_bits(words, self.n_rules)
        return result

    def covers(self, table: RowTable) -> np.ndarray:
        """Rows that some rule holds for."""
        result = np.empty(len(table), dtype=bool)
        for rows in self._chunks(len(table)):
            result[rows] = self._words(table, rows).any(axis=1)
        return result

    def first(self, table: RowTable, rows: slice) -> np.ndarray:
        """Index of the first rule that holds for each of some rows, `n_rules` or more for none."""
        parts = list(self._chunks(rows.stop, rows.start))
        if len(parts) == 1:
            return first_bit(self._words(table, rows))
        return np.concatenate([first_bit(self._words(table, part)) for part in parts])


def for_each_part(work: Callable[[slice], None], n_rows: int, n_jobs: int | None) -> None:
    """Carry out some work for a few rows at a time, in threads if wanted."""

    def some(begin: int, end: int) -> None:
        for start in range(begin, end, _CHUNK):
            work(slice(start, min(start + _CHUNK, end)))

    n_chunks = -(-n_rows // _CHUNK)
    threads = min(1 if n_jobs is None else effective_n_jobs(n_jobs), n_chunks)
    if threads <= 1:
        some(0, n_rows)
        return
    ends = [n_chunks * i // threads * _CHUNK for i in range(1, threads)]
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(some, [0, *ends], [*ends, n_rows]))


def first_bit(words: np.ndarray) -> np.ndarray:
    """Index of the lowest bit set in each row of words, the number of all bits for none."""
    word, index = words[:, 0], None
    if words.shape[1] > 1:
        index = (words != 0).argmax(axis=1)
        word = words[np.arange(len(words)), index]
        index[word == 0] = words.shape[1] - 1
    # The bits below the lowest one set number its index; of no bit all 64 are.
    below = word - np.uint64(1)
    np.bitwise_and(below, np.bitwise_not(word), out=below)
    number = np.bitwise_count(below)
    return number if index is None else index * _WORD + number
