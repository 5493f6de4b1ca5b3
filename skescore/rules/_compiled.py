"""Kernel that matches rows to boxes in one pass, compiled by numba where it is installed.

Without numba, the functions run as Python, which is slow but lets tests compare them with the NumPy
kernels. Import this module only where the compiled kernel pays, because numba takes long to load.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from skescore._optional import import_optional

__all__ = ["IS_COMPILED", "match_boxes", "pad_thresholds"]

#: Number of rows processed at a time: their values fit into the first-level cache.
_ROWS = 128

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
        except RuntimeError:  # no folder is writable, so nothing can be stored
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
            masks,
        )
        for kind in (types.float64, types.float32)
    ]


def pad_thresholds(thresholds: np.ndarray) -> np.ndarray:
    """Append NaN, which no value reaches, until the number of thresholds is a multiple of four."""
    return np.append(thresholds, np.full(-len(thresholds) % 4, np.nan, dtype=thresholds.dtype))


@_compile()
def _transpose(block, columns, values):  # type: ignore[no-untyped-def]
    """Copy columns of a few rows to contiguous memory, eight rows at a time."""
    n_rows, i = len(block), 0
    while i + 8 <= n_rows:
        for k in range(len(columns)):
            j = columns[k]
            values[k, i] = block[i, j]
            values[k, i + 1] = block[i + 1, j]
            values[k, i + 2] = block[i + 2, j]
            values[k, i + 3] = block[i + 3, j]
            values[k, i + 4] = block[i + 4, j]
            values[k, i + 5] = block[i + 5, j]
            values[k, i + 6] = block[i + 6, j]
            values[k, i + 7] = block[i + 7, j]
        i += 8
    while i < n_rows:
        for k in range(len(columns)):
            values[k, i] = block[i, columns[k]]
        i += 1


@_compile()
def _add_digit_of_four(values, thresholds, missing, n_bins, index):  # type: ignore[no-untyped-def]
    """Append the bin of each value to the index of its row, as a digit; four thresholds."""
    a, b, c, d = thresholds[0], thresholds[1], thresholds[2], thresholds[3]
    for i in range(len(values)):
        x = values[i]
        digit = np.uint16(x >= a) + np.uint16(x >= b) + np.uint16(x >= c) + np.uint16(x >= d)
        index[i] = index[i] * n_bins + (digit if x == x else missing)


@_compile()
def _add_digit_of_eight(values, thresholds, missing, n_bins, index):  # type: ignore[no-untyped-def]
    """Append the bin of each value to the index of its row, as a digit; eight thresholds."""
    a, b, c, d = thresholds[0], thresholds[1], thresholds[2], thresholds[3]
    e, f, g, h = thresholds[4], thresholds[5], thresholds[6], thresholds[7]
    for i in range(len(values)):
        x = values[i]
        digit = np.uint16(x >= a) + np.uint16(x >= b) + np.uint16(x >= c) + np.uint16(x >= d)
        digit += np.uint16(x >= e) + np.uint16(x >= f) + np.uint16(x >= g) + np.uint16(x >= h)
        index[i] = index[i] * n_bins + (digit if x == x else missing)


@_compile()
def _add_digit(values, thresholds, missing, index):  # type: ignore[no-untyped-def]
    """Append the bin of each value to the index of its row, as a digit.

    The number of thresholds is a multiple of four; NaN, which nothing reaches, fills them up. The
    bin of missing values is `missing`.
    """
    n_bins = missing + np.uint16(1)
    if len(thresholds) == 4:
        _add_digit_of_four(values, thresholds, missing, n_bins, index)
        return
    if len(thresholds) == 8:
        _add_digit_of_eight(values, thresholds, missing, n_bins, index)
        return
    for i in range(len(values)):
        x, low, length = values[i], 0, len(thresholds)
        while length > 0:
            half = length // 2
            is_reached = x >= thresholds[low + half]
            low += half + 1 if is_reached else 0
            length = length - half - 1 if is_reached else half
        index[i] = index[i] * n_bins + (np.uint16(low) if x == x else missing)


@_compile()
def _look_up_words(masks, index, words, is_first):  # type: ignore[no-untyped-def]
    """Intersect the word of each row with the mask of its bins; store it if this is the first."""
    if is_first:
        for i in range(len(index)):
            words[i] = masks[index[i]]
    else:
        for i in range(len(index)):
            words[i] &= masks[index[i]]


@_compile()
def _look_up_rows(masks, index, words, is_first):  # type: ignore[no-untyped-def]
    """Do the same as `_look_up_words` with several words per row."""
    n_words = masks.shape[1]
    for i in range(len(index)):
        for word in range(n_words):
            mask = masks[index[i], word]
            words[i, word] = mask if is_first else words[i, word] & mask


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
    words,
):
    """Find the boxes that contain each row.

    Parameters
    ----------
    block : ndarray of shape (n_rows, n_columns)
        The rows.
    columns : ndarray of int64, shape (n_features,)
        The column of each feature.
    threshold_starts : ndarray of int64, shape (n_features + 1,)
        The position of each feature's first threshold, and their number.
    thresholds : ndarray
        The thresholds of all features, of the same type as the rows; see `pad_thresholds`.
    missing_bins : ndarray of uint16, shape (n_features,)
        The bin of missing values of each feature, which is its last one.
    group_starts : ndarray of int64, shape (n_groups + 1,)
        The position of the first feature of each group with a joint lookup table.
    mask_starts : ndarray of int64, shape (n_groups + 1,)
        The position of the first mask of each group.
    masks : ndarray of uint64, shape (n_masks, n_words)
        The lookup tables.
    words : ndarray of uint64, shape (n_rows, n_words)
        Receives the mask of the boxes that contain each row.
    """
    values = np.empty((len(columns), _ROWS), block.dtype)
    index = np.empty(_ROWS, np.uint16)
    all_masks, all_words = masks.reshape(masks.size), words.reshape(words.size)
    for begin in range(0, len(block), _ROWS):
        size = min(_ROWS, len(block) - begin)
        _transpose(block[begin : begin + size], columns, values)
        for group in range(len(group_starts) - 1):
            index[:size] = 0
            for k in range(group_starts[group], group_starts[group + 1]):
                used = thresholds[threshold_starts[k] : threshold_starts[k + 1]]
                _add_digit(values[k, :size], used, missing_bins[k], index[:size])
            start, stop, end = mask_starts[group], mask_starts[group + 1], begin + size
            if masks.shape[1] == 1:
                _look_up_words(
                    all_masks[start:stop], index[:size], all_words[begin:end], group == 0
                )
            else:
                _look_up_rows(masks[start:stop], index[:size], words[begin:end], group == 0)
