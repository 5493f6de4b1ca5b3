"""Smallest minimal flip sets from a table of all flips, sixty-four rows of a table at once.

A *flip set* of a row is a set of inputs whose joint flip changes the decision; it is *minimal* if
no part of it does. The degree of responsibility of an input is one over the size of the smallest
minimal flip set it belongs to. Sets of n inputs are written as the bits of a number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from skescore.attribution._bits import halves

__all__ = ["EXHAUSTIVE_LIMIT", "FlipSets", "blocks", "from_changes", "from_table"]

#: Inputs of which all flips are still tried, when asked to.
EXHAUSTIVE_LIMIT = 20
# Bytes that the tables of a block of rows may take. Three of them are alive at a time.
_BUDGET = 1 << 25

#: Of each row and input: the size of its smallest minimal flip set (0 for none), and that set.
FlipSets = tuple[NDArray[np.int16], NDArray[np.int64]]


def blocks(n_rows: int, n_flips: int) -> Iterator[slice]:
    """Cut rows into blocks of which the tables of flips fit the memory budget.

    Parameters
    ----------
    n_rows : int
        Number of rows.
    n_flips : int
        Inputs that flip.

    Yields
    ------
    slice
        A block.
    """
    length = max(1, (8 * _BUDGET >> n_flips) // 64) * 64
    for start in range(0, n_rows, length):
        yield slice(start, min(start + length, n_rows))


def from_table(
    table: NDArray[np.generic], codes: NDArray[np.int64], flips: NDArray[np.bool_], sets: bool
) -> FlipSets:
    """Find the smallest minimal flip sets of rows of one truth table.

    Parameters
    ----------
    table : ndarray, shape (2**n,)
        Decisions; input i of entry k is bit i of k.
    codes : ndarray of int, shape (n_rows,)
        The entry that each row is.
    flips : ndarray of bool, shape (n_rows, n)
        Which inputs may flip.
    sets : bool
        Whether the sets are wanted, or only their sizes.

    Returns
    -------
    tuple of ndarray of int, shape (n_rows, n)
        Sizes and sets, as bits.
    """
    n_rows, n_inputs = flips.shape
    sizes = np.zeros((n_rows, n_inputs), dtype=np.int16)
    found = np.zeros((n_rows, n_inputs), dtype=np.int64)
    # An input that never matters is in no minimal set, and each one left out halves the work.
    relevant = [
        bit for bit, (low, high) in enumerate(halves(table)) if not np.array_equal(low, high)
    ]
    if not relevant:
        return sizes, found
    small = table[_spread(np.arange(1 << len(relevant)), relevant)]
    bits = 1 << np.arange(len(relevant))
    small_codes = (codes[:, None] >> np.array(relevant) & 1) @ bits
    patterns = flips[:, relevant] @ bits
    # Rows that differ in irrelevant inputs alone have the same answer.
    keys, inverse = np.unique(small_codes << len(relevant) | patterns, return_inverse=True)
    small_codes, patterns = keys >> len(relevant), keys & ((1 << len(relevant)) - 1)
    for pattern in np.unique(patterns[patterns > 0]):
        members = np.flatnonzero(patterns == pattern)
        chosen = [bit for bit in range(len(relevant)) if pattern >> bit & 1]
        spread = _spread(np.arange(1 << len(chosen)), chosen)
        columns = [relevant[bit] for bit in chosen]
        for block in blocks(len(members), len(chosen)):
            at = small_codes[members[block]]

            def changes(
                part: slice, at: NDArray[np.int64] = at, spread: NDArray[np.int64] = spread
            ) -> NDArray[np.bool_]:
                return np.asarray(small[at ^ spread[part, None]] != small[at])

            part_sizes, part_sets = from_changes(changes, len(at), len(chosen), sets)
            rows = np.full(len(keys), -1)
            rows[members[block]] = np.arange(len(at))
            place = rows[inverse]
            here = np.flatnonzero(place >= 0)
            sizes[np.ix_(here, np.array(columns))] = part_sizes[place[here]]
            if sets:
                found[np.ix_(here, np.array(columns))] = _spread(part_sets[place[here]], columns)
    return sizes, found


def _spread(codes: NDArray[np.int64], places: list[int]) -> NDArray[np.int64]:
    """Move bit i of each code to `places[i]`."""
    moved = np.zeros_like(codes)
    for bit, place in enumerate(places):
        moved |= (codes >> bit & 1) << place
    return moved


def from_changes(
    changes: Callable[[slice], NDArray[np.bool_]], n_rows: int, n_inputs: int, sets: bool
) -> FlipSets:
    """Find the smallest minimal flip sets of a block of rows from what all flips change.

    Parameters
    ----------
    changes : callable
        Gives, for a slice of the sets 0, 1, ..., 2**n - 1, an array (sets, rows) that tells where
        flipping the set changes the decision.
    n_rows : int
        Rows in the block.
    n_inputs : int
        Number n of inputs that flip.
    sets : bool
        Whether the sets are wanted, or only their sizes.

    Returns
    -------
    tuple of ndarray of int, shape (n_rows, n_inputs)
        Sizes and sets, as bits. Of several smallest sets it is the one with the smallest number.
    """
    sizes = np.zeros((n_rows, n_inputs), dtype=np.int16)
    found = np.zeros((n_rows, n_inputs), dtype=np.int64)
    if n_rows == 0 or n_inputs == 0:
        return sizes, found
    minimal = _minimal(_packed(changes, n_rows, n_inputs), n_inputs)
    codes = np.arange(1 << n_inputs)
    set_sizes = np.bitwise_count(codes)
    missing = np.full((n_inputs, minimal.shape[1]), ~np.uint64(0))
    for size in range(1, n_inputs + 1):
        of_size = codes[set_sizes == size]
        level = minimal[of_size]
        if not level.any():
            continue
        for bit in range(n_inputs):
            holding = np.flatnonzero(of_size >> bit & 1)
            new = np.bitwise_or.reduce(level[holding], axis=0) & missing[bit]
            if not new.any():
                continue
            missing[bit] &= ~new
            rows = np.flatnonzero(_unpacked(new, n_rows))
            sizes[rows, bit] = size
            if sets:
                first = _unpacked(level[holding], n_rows)[:, rows].argmax(axis=0)
                found[rows, bit] = of_size[holding[first]]
    return sizes, found


def _packed(
    changes: Callable[[slice], NDArray[np.bool_]], n_rows: int, n_inputs: int
) -> NDArray[np.uint64]:
    """The table of changes, sixty-four rows in a word."""
    n_sets = 1 << n_inputs
    n_words = -(-n_rows // 64)
    octets = np.zeros((n_sets, 8 * n_words), dtype=np.uint8)
    length = max(1, _BUDGET // (8 * n_rows))
    for start in range(0, n_sets, length):
        part = slice(start, min(start + length, n_sets))
        packed = np.packbits(changes(part), axis=1, bitorder="little")
        octets[part, : packed.shape[1]] = packed
    return octets.view(np.uint64)


def _unpacked(words: NDArray[np.uint64], n_rows: int) -> NDArray[np.bool_]:
    bits = np.unpackbits(words.view(np.uint8), axis=-1, bitorder="little", count=n_rows)
    return bits.view(np.bool_)


def _minimal(changes: NDArray[np.uint64], n_inputs: int) -> NDArray[np.uint64]:
    """Keep the flip sets of which no part is one. Overwrites its argument."""
    n_words = changes.shape[1]

    def cube(table: NDArray[np.uint64], bit: int) -> NDArray[np.uint64]:
        return table.reshape(-1, 2, 1 << bit, n_words)

    closed = changes.copy()  # sets that contain a flip set
    for bit in range(n_inputs):
        view = cube(closed, bit)
        view[:, 1] |= view[:, 0]
    # A set is not minimal if it contains one when any of its members is left out.
    for bit in range(n_inputs):
        cube(changes, bit)[:, 1] &= ~cube(closed, bit)[:, 0]
    return changes
