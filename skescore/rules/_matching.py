"""Matching rows to rules, fast.

A rule whose conditions are intervals is a box. Per feature the faces of all boxes cut the axis into
a few pieces; a table holds, for every piece, one bit per box: does this box accept that piece? The
boxes that hold a row are then the bitwise AND of one table entry per feature, 64 boxes at a time,
and the first rule that answers is the lowest bit set. A row costs one small comparison per cut and
one look-up per feature, whatever the number of conditions.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from skescore.rules._arrays import BoxTable
from skescore.rules._columns import Table
from skescore.rules._conditions import Condition

#: Rules in one table: it holds a bit per rule for every cut, and large forests have a cut per rule,
#: so that without blocks the memory would grow with the square of the number of rules.
_BLOCK = 1024
#: Rows worked on at a time: a column of them stays in a core's cache.
_CHUNK = 16384
#: Up to so many cuts are counted one by one (vectorised); more are searched by bisection.
_COUNTED_CUTS = 96
_WORD = 64


class _FeatureCuts:
    """The cuts of one feature and the boxes that accept each piece between them."""

    def __init__(
        self,
        feature: int,
        start: np.ndarray,
        stop: np.ndarray,
        free_below: np.ndarray,
        free_above: np.ndarray,
        n_words: int,
    ) -> None:
        self.feature = feature
        self.cuts = np.unique(np.concatenate([start[~free_below], stop[~free_above]]))
        # Piece number k lies after the first k cuts; one more piece holds missing values.
        first = np.searchsorted(self.cuts, start, side="right")  # 0 where start is -inf
        after = np.searchsorted(self.cuts, stop, side="right")
        after[free_above] = len(self.cuts) + 1
        piece = np.arange(len(self.cuts) + 1)[:, None]
        accepted = (piece >= first) & (piece < after)
        self.masks = pack_bits(np.vstack([accepted, free_below & free_above]), n_words)

    def pieces(self, values: np.ndarray) -> np.ndarray:
        n_cuts = len(self.cuts)
        result: np.ndarray
        if n_cuts <= _COUNTED_CUTS:
            result = np.zeros(len(values), dtype=np.uint8)
            for cut in self.cuts:
                result += values >= cut
        else:
            result = np.searchsorted(self.cuts, values, side="right")
        missing = np.isnan(values)
        if missing.any():
            result[missing] = n_cuts + 1
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

    def match(self, table: Table, rows: slice | None = None) -> np.ndarray:
        """Every rule on every row (or a slice of them), shape (n_rows, n_rules)."""
        if len(self.blocks) == 1:
            return self.blocks[0][1].match(table, rows)
        n_rows = len(table) if rows is None else rows.stop - rows.start
        result = np.empty((n_rows, self.n_rules), dtype=bool)
        for begin, block in self.blocks:
            result[:, begin : begin + block.n_rules] = block.match(table, rows)
        return result

    def covers(self, table: Table) -> np.ndarray:
        """Rows that some rule holds for."""
        result = self.blocks[0][1].covers(table)
        for _, block in self.blocks[1:]:
            result |= block.covers(table)
        return result

    def first(self, table: Table) -> np.ndarray:
        """Index of the first rule that holds for each row, -1 where none does."""
        result = self.blocks[0][1].first(table)
        for begin, block in self.blocks[1:]:
            found = block.first(table)
            result = np.where((result < 0) & (found >= 0), found + begin, result)
        return result


class Block:
    """Some rules of a matcher, in tables of their own."""

    def __init__(self, boxes: BoxTable, others: Sequence[tuple[Condition, ...]]) -> None:
        self.n_rules = len(boxes)
        self.n_words = max(1, -(-self.n_rules // _WORD))
        start, stop = boxes.entry_cuts()
        below, above = boxes.lower == -np.inf, boxes.upper == np.inf
        self._cuts = [
            _FeatureCuts(j, start[:, j], stop[:, j], below[:, j], above[:, j], self.n_words)
            for j in np.flatnonzero(boxes.bounded.any(axis=0)).tolist()
        ]
        all_rules = np.ones((1, self.n_rules), dtype=bool)
        self._all = pack_bits(all_rules, self.n_words)[0]
        self._others = {i: conditions for i, conditions in enumerate(others) if conditions}

    def _words(self, table: Table, rows: slice) -> np.ndarray:
        """The matching rules of some rows as bits, shape (n_rows, n_words)."""
        n_rows = rows.stop - rows.start
        words = np.broadcast_to(self._all, (n_rows, self.n_words)).copy()
        for feature in self._cuts:
            pieces = feature.pieces(table.numbers(feature.feature, rows))
            if self.n_words == 1:
                words[:, 0] &= feature.masks[:, 0].take(pieces)
            else:
                words &= feature.masks.take(pieces, axis=0)
        for index, conditions in self._others.items():
            word, bit = divmod(index, _WORD)
            flag = np.uint64(1 << bit)
            reached = np.flatnonzero(words[:, word] & flag)
            if len(reached) == 0:
                continue
            held = np.ones(len(reached), dtype=bool)
            for condition in conditions:
                held &= condition.holds(lambda j: table.values(j, rows)[reached])  # noqa: B023
            words[reached[~held], word] &= ~flag
        return words

    def _chunks(self, stop: int, start: int = 0) -> Iterator[slice]:
        # Many rules make long words; fewer rows at a time then keep the memory level.
        size = max(1, _CHUNK // min(max(1, self.n_words // 4), 16))
        return (slice(i, min(i + size, stop)) for i in range(start, stop, size))

    def match(self, table: Table, rows: slice | None = None) -> np.ndarray:
        """Every rule on every row (or a slice of them), shape (n_rows, n_rules)."""
        start, stop = (0, len(table)) if rows is None else (rows.start, rows.stop)
        result = np.empty((stop - start, self.n_rules), dtype=bool)
        for part in self._chunks(stop, start):
            words = self._words(table, part)
            result[part.start - start : part.stop - start] = unpack_bits(words, self.n_rules)
        return result

    def covers(self, table: Table) -> np.ndarray:
        """Rows that some rule holds for."""
        result = np.empty(len(table), dtype=bool)
        for rows in self._chunks(len(table)):
            result[rows] = self._words(table, rows).any(axis=1)
        return result

    def first(self, table: Table) -> np.ndarray:
        """Index of the first rule that holds for each row, -1 where none does."""
        result = np.empty(len(table), dtype=np.intp)
        for rows in self._chunks(len(table)):
            result[rows] = first_bit(self._words(table, rows))
        return result


def first_bit(words: np.ndarray) -> np.ndarray:
    """Index of the lowest bit set in each row of words, -1 for none."""
    if words.shape[1] == 1:
        word = words[:, 0]
        base: np.ndarray | int = 0
    else:
        index = (words != 0).argmax(axis=1)
        word = words[np.arange(len(words)), index]
        base = index * _WORD
    # The bits below the lowest one set number its index: x ^ (x - 1) has one more.
    result = np.bitwise_count(word ^ (word - np.uint64(1))).astype(np.intp) - 1 + base
    result[word == 0] = -1
    return result


def nearest_box(boxes: BoxTable, X: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """Index of the box with the nearest surface, the first of equally near ones.

    Distances are in units of `scale`; features of scale 0 and missing values add none.
    """
    used = np.flatnonzero((scale > 0) & np.isfinite(scale) & boxes.bounded.any(axis=0))
    lower, upper = boxes.lower[:, used], boxes.upper[:, used]
    result = np.empty(len(X), dtype=np.intp)
    size = max(1, int(4e6 // (len(boxes) * max(1, len(used)))))
    for begin in range(0, len(X), size):
        rows = X[begin : begin + size, used][:, None, :]
        with np.errstate(over="ignore", invalid="ignore"):
            gap = np.maximum(np.maximum(lower - rows, rows - upper), 0) / scale[used]
            # An infinite value is at no distance from a free side.
            np.nan_to_num(gap, copy=False, nan=0.0, posinf=math.inf)
            # Feature by feature, so that ties are ties however the processor adds.
            total = np.zeros(gap.shape[:2])
            for k in range(len(used)):
                total += gap[:, :, k] * gap[:, :, k]
            result[begin : begin + size] = total.argmin(axis=1)
    return result
