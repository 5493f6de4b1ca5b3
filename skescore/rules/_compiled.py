"""Kernel that matches rows to boxes in one pass, compiled by numba where it is installed.

Without numba, the functions run as Python, which is slow but lets tests compare them with the NumPy
kernels. Import this module only where the compiled kernel pays, because numba takes long to load.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from skescore._optional import import_optional

__all__ = ["IS_COMPILED", "narrow"]

#: Number of rows processed at a time: their values fit into the first-level cache.
_ROWS = 128
#: Largest number of thresholds that are compared one by one; above it, bisection is faster.
_COMPARED_THRESHOLDS = 48

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
    """Return the types of the arguments of `narrow`, in double and in single precision."""
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
            integers,
            integers,
            masks,
            masks,
        )
        for kind in (types.float64, types.float32)
    ]


@_compile()
def _compare(values, thresholds, bins):  # type: ignore[no-untyped-def]
    """Add the number of thresholds that each value reaches; four thresholds at a time."""
    n_rows, n_thresholds = len(values), len(thresholds)
    k = 0
    while k + 4 <= n_thresholds:
        a, b, c, d = thresholds[k], thresholds[k + 1], thresholds[k + 2], thresholds[k + 3]
        for i in range(n_rows):
            x = values[i]
            bins[i] += np.uint16(x >= a) + np.uint16(x >= b) + np.uint16(x >= c) + np.uint16(x >= d)
        k += 4
    while k < n_thresholds:
        a = thresholds[k]
        for i in range(n_rows):
            bins[i] += np.uint16(values[i] >= a)
        k += 1


@_compile()
def _bisect(values, thresholds, bins):  # type: ignore[no-untyped-def]
    """Add the number of thresholds that each value reaches, by bisection."""
    for i in range(len(values)):
        x, low, length = values[i], 0, len(thresholds)
        while length > 0:
            half = length // 2
            if x >= thresholds[low + half]:
                low += half + 1
                length -= half + 1
            else:
                length = half
        bins[i] += np.uint16(low)


@_compile()
def _find_bins(values, thresholds, bins):  # type: ignore[no-untyped-def]
    """Store the bin of each value; the last one is for missing values, which reach nothing."""
    missing = np.uint16(len(thresholds) + 1)
    for i in range(len(values)):
        bins[i] = np.uint16(0) if values[i] == values[i] else missing
    if len(thresholds) <= _COMPARED_THRESHOLDS:
        _compare(values, thresholds, bins)
    else:
        _bisect(values, thresholds, bins)


@_compile()
def _look_up(masks, index, words):  # type: ignore[no-untyped-def]
    """Remove the boxes that do not accept the rows' bins from the rows' words."""
    n_words = masks.shape[1]
    if n_words == 1:
        for i in range(len(index)):
            words[i, 0] &= masks[index[i], 0]
    else:
        for i in range(len(index)):
            for word in range(n_words):
                words[i, word] &= masks[index[i], word]


@_compile(*_signatures())
def narrow(  # type: ignore[no-untyped-def]
    block, columns, threshold_starts, thresholds, group_starts, mask_starts, masks, words
):
    """Remove the boxes that do not contain the rows from the rows' words.

    Parameters
    ----------
    block : ndarray of shape (n_rows, n_columns)
        The rows.
    columns : ndarray of int64, shape (n_features,)
        The column of each feature.
    threshold_starts : ndarray of int64, shape (n_features + 1,)
        The position of each feature's first threshold, and their number.
    thresholds : ndarray
        The thresholds of all features, of the same type as the rows.
    group_starts : ndarray of int64, shape (n_groups + 1,)
        The position of the first feature of each group with a joint lookup table.
    mask_starts : ndarray of int64, shape (n_groups + 1,)
        The position of the first mask of each group.
    masks : ndarray of uint64, shape (n_masks, n_words)
        The lookup tables.
    words : ndarray of uint64, shape (n_rows, n_words)
        The masks of the boxes that contain each row; changed in place.
    """
    n_features = len(columns)
    values = np.empty((n_features, _ROWS), block.dtype)
    bins, index = np.empty(_ROWS, np.uint16), np.empty(_ROWS, np.uint16)
    for begin in range(0, len(block), _ROWS):
        size = min(_ROWS, len(block) - begin)
        for i in range(size):
            for k in range(n_features):
                values[k, i] = block[begin + i, columns[k]]
        for group in range(len(group_starts) - 1):
            index[:size] = 0
            for k in range(group_starts[group], group_starts[group + 1]):
                start, stop = threshold_starts[k], threshold_starts[k + 1]
                _find_bins(values[k, :size], thresholds[start:stop], bins[:size])
                n_bins = np.uint16(stop - start + 2)
                for i in range(size):
                    index[i] = index[i] * n_bins + bins[i]
            tables = masks[mask_starts[group] : mask_starts[group + 1]]
            _look_up(tables, index[:size], words[begin : begin + size])
