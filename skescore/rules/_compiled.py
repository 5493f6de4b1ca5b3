"""Kernel that matches rows to boxes in one pass, compiled by numba if it is installed.

Without numba, the functions run as Python, which is slow but allows tests to compare them with the
NumPy kernels. Import this module only for many rows, because loading numba takes long.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from skescore._optional import import_optional

__all__ = ["IS_COMPILED", "index_memory", "match_boxes", "pad_thresholds"]

#: Number of rows that are processed at a time; their values fit into the first-level cache.
_ROWS = 128

#: Largest number of thresholds that are all compared; above it, bisection is faster.
_COUNTED_THRESHOLDS = 128

try:
    numba: Any = import_optional("numba", extra="fast", purpose="Compiling the matching of rows")
except ImportError:
    numba = None

#: Whether numba compiles the functions of this module.
IS_COMPILED = numba is not None


def _compile(*signatures: Any) -> Callable[[Any], Any]:
    """Return a decorator that compiles a function if numba is installed."""

    def decorate(function: Any) -> Any:
        if numba is None:
            return function
        types = list(signatures) or None
        try:
            return numba.njit(types, cache=True, nogil=True)(function)
        except RuntimeError:  # no folder is writable, so compiled code cannot be cached
            return numba.njit(types, nogil=True)(function)

    return decorate


def _signatures() -> list[Any]:
    """Return the types of the arguments of `match_boxes`, in double and in single precision."""
    if numba is None:
        return []
    types = numba.types
    integers, masks = types.int64[::1], types.uint64[:, ::1]
    return [
        types.void(
            types.Array(kind, 2, "A", readonly=True),  # arrays of any layout
            integers,
            integers,
            kind[::1],
            types.uint16[::1],
            integers,
            integers,
            masks,
            lane[::1],
            masks,
        )
        for kind, lane in ((types.float64, types.int64), (types.float32, types.int32))
    ]


def index_memory(dtype: np.dtype) -> np.ndarray:
    """Allocate memory for the indices of rows: integers with the width of the values."""
    return np.empty(_ROWS, dtype=np.int64 if dtype == np.float64 else np.int32)


def pad_thresholds(thresholds: np.ndarray) -> np.ndarray:
    """Append NaN, which no value reaches, to get a multiple of four thresholds."""
    return np.append(thresholds, np.full(-len(thresholds) % 4, np.nan, dtype=thresholds.dtype))


# The functions below get whole arrays and positions instead of views, because numba's reference
# counting of views takes as long as the work on a few rows. Unsigned positions avoid the check for
# negative positions, which count from the end.


@_compile()
def _transpose(block, begin, n_rows, columns, values):  # type: ignore[no-untyped-def]
    """Copy columns of a few rows to contiguous memory, eight rows at a time."""
    i = 0
    while i + 8 <= n_rows:
        row = begin + i
        for k in range(len(columns)):
            j = columns[k]
            values[k, i] = block[row, j]
            values[k, i + 1] = block[row + 1, j]
            values[k, i + 2] = block[row + 2, j]
            values[k, i + 3] = block[row + 3, j]
            values[k, i + 4] = block[row + 4, j]
            values[k, i + 5] = block[row + 5, j]
            values[k, i + 6] = block[row + 6, j]
            values[k, i + 7] = block[row + 7, j]
        i += 8
    while i < n_rows:
        for k in range(len(columns)):
            values[k, i] = block[begin + i, columns[k]]
        i += 1


@_compile()
def _add_digit_of_four(  # type: ignore[no-untyped-def]
    values, k, n_rows, thresholds, start, missing, index
):
    """Append the bin of each value to the index of its row, as a digit, for four thresholds."""
    # Integers with the width of the values, and 31-bit factors, allow vector instructions.
    lane = index.dtype.type
    mask = lane(0x7FFFFFFF)
    n_bins = (missing + lane(1)) & mask
    a, b = thresholds[start], thresholds[start + 1]
    c, d = thresholds[start + 2], thresholds[start + 3]
    for i in range(n_rows):
        x = values[k, i]
        digit = (lane(x >= a) + lane(x >= b)) + (lane(x >= c) + lane(x >= d))
        index[i] = (index[i] & mask) * n_bins + (digit if x == x else missing)


@_compile()
def _add_digit_of_eight(  # type: ignore[no-untyped-def]
    values, k, n_rows, thresholds, start, missing, index
):
    """Append the bin of each value to the index of its row, as a digit, for eight thresholds.

    `_add_reached` adds further thresholds, which missing values do not reach.
    """
    lane = index.dtype.type
    mask = lane(0x7FFFFFFF)
    n_bins = (missing + lane(1)) & mask
    a, b = thresholds[start], thresholds[start + 1]
    c, d = thresholds[start + 2], thresholds[start + 3]
    e, f = thresholds[start + 4], thresholds[start + 5]
    g, h = thresholds[start + 6], thresholds[start + 7]
    for i in range(n_rows):
        x = values[k, i]
        digit = (lane(x >= a) + lane(x >= b)) + (lane(x >= c) + lane(x >= d))
        digit += (lane(x >= e) + lane(x >= f)) + (lane(x >= g) + lane(x >= h))
        index[i] = (index[i] & mask) * n_bins + (digit if x == x else missing)


@_compile()
def _add_digit(  # type: ignore[no-untyped-def]
    values, k, n_rows, thresholds, start, stop, missing, index
):
    """Append the bin of each value to the index of its row, as a digit, for any thresholds.

    The number of thresholds is a multiple of four, padded with NaN, which no value reaches. The bin
    of missing values is `missing`.
    """
    lane = index.dtype.type
    n_bins = missing + lane(1)
    for i in range(n_rows):
        x, low, length = values[k, i], start, stop - start
        while length > 0:
            half = length // 2
            is_reached = x >= thresholds[low + half]
            low += half + 1 if is_reached else 0
            length = length - half - 1 if is_reached else half
        index[i] = index[i] * n_bins + (lane(low - start) if x == x else missing)


@_compile()
def _add_reached(values, k, n_rows, thresholds, start, stop, index):  # type: ignore[no-untyped-def]
    """Add the number of further thresholds that each value reaches to the last digit of its row.

    Comparing all thresholds is faster than a search, because CPUs compare several rows at once.
    """
    lane = index.dtype.type
    for first in range(start, stop, 4):
        a, b = thresholds[first], thresholds[first + 1]
        c, d = thresholds[first + 2], thresholds[first + 3]
        for i in range(n_rows):
            x = values[k, i]
            index[i] += (lane(x >= a) + lane(x >= b)) + (lane(x >= c) + lane(x >= d))


@_compile()
def _look_up_words(  # type: ignore[no-untyped-def]
    masks, start, index, words, begin, n_rows, is_first
):
    """Intersect the word of each row with the mask of its bins; store the first mask."""
    if is_first:
        for i in range(n_rows):
            words[np.uintp(begin + i), 0] = masks[np.uintp(start + index[i]), 0]
    else:
        for i in range(n_rows):
            words[np.uintp(begin + i), 0] &= masks[np.uintp(start + index[i]), 0]


@_compile()
def _look_up_rows(  # type: ignore[no-untyped-def]
    masks, start, index, words, begin, n_rows, is_first
):
    """Like `_look_up_words`, but with several words per row."""
    for i in range(n_rows):
        for word in range(masks.shape[1]):
            mask = masks[np.uintp(start + index[i]), word]
            words[begin + i, word] = mask if is_first else words[begin + i, word] & mask


@_compile(*_signatures())
def match_boxes(  # type: ignore[no-untyped-def]
    block,
    columns,
    threshold_starts,
    thresholds,
    missing_bins,
    group_starts,
    mask_starts,
    masks,
    index,
    words,
):
    """Compute masks of the boxes that contain each row.

    Parameters
    ----------
    block : ndarray of shape (n_rows, n_columns)
        The rows.
    columns : ndarray of int64, shape (n_features,)
        Column of each feature.
    threshold_starts : ndarray of int64, shape (n_features + 1,)
        Position of each feature's first threshold, and at the end the number of thresholds.
    thresholds : ndarray
        Thresholds of all features, with the same type as the rows; see `pad_thresholds`.
    missing_bins : ndarray of uint16, shape (n_features,)
        Bin of missing values of each feature, which is its last bin.
    group_starts : ndarray of int64, shape (n_groups + 1,)
        Position of the first feature of each group with a joint lookup table.
    mask_starts : ndarray of int64, shape (n_groups + 1,)
        Position of the first mask of each group.
    masks : ndarray of uint64, shape (n_masks, n_words)
        The lookup tables.
    index : ndarray of int64 or int32, shape (n,)
        Memory for the indices of rows that are processed at a time, see :func:`index_memory`.
    words : ndarray of uint64, shape (n_rows, n_words)
        Output: mask of the boxes that contain each row.
    """
    n_at_once = len(index)
    values = np.empty((len(columns), n_at_once), block.dtype)
    for begin in range(0, len(block), n_at_once):
        n_rows = min(n_at_once, len(block) - begin)
        _transpose(block, begin, n_rows, columns, values)
        for group in range(len(group_starts) - 1):
            index[:n_rows] = 0
            for k in range(group_starts[group], group_starts[group + 1]):
                start, stop = threshold_starts[k], threshold_starts[k + 1]
                missing = index.dtype.type(missing_bins[k])
                if stop - start == 4:
                    _add_digit_of_four(values, k, n_rows, thresholds, start, missing, index)
                elif 8 <= stop - start <= _COUNTED_THRESHOLDS:
                    _add_digit_of_eight(values, k, n_rows, thresholds, start, missing, index)
                    _add_reached(values, k, n_rows, thresholds, start + 8, stop, index)
                else:
                    _add_digit(values, k, n_rows, thresholds, start, stop, missing, index)
            start, is_first = mask_starts[group], group == 0
            if masks.shape[1] == 1:
                _look_up_words(masks, start, index, words, begin, n_rows, is_first)
            else:
                _look_up_rows(masks, start, index, words, begin, n_rows, is_first)
