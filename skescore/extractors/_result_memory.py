"""A memory of results that is bounded in bytes and forgets what was not used for longest."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable
from typing import Any

import numpy as np

#: What one black box's memory may hold, and what a key and its objects cost beside their arrays.
_MOST_BYTES, _OVERHEAD = 32 * 2**20, 512


class ResultMemory:
    """Keeps results by key; the least recently used go first.

    Copies and pickles start empty: results can be worked out again, and would only make what is
    sent to other processes large.

    Parameters
    ----------
    most_bytes : int, default=33554432
        Bytes that all results together may take; none may take more than a quarter.

    Examples
    --------
    >>> memory = ResultMemory(most_bytes=4000)
    >>> memory.put("a", 1); memory.put("b", (2, 3))
    >>> memory.get("a"), memory.get("b"), memory.get("c")
    (1, (2, 3), None)
    """

    def __init__(self, most_bytes: int = _MOST_BYTES) -> None:
        self.most_bytes = most_bytes
        self.n_bytes = 0
        self._kept: OrderedDict[Hashable, tuple[Any, int]] = OrderedDict()
        self._lock = threading.Lock()  # threads may search with one black box

    def get(self, key: Hashable) -> Any:
        """Give what is kept under a key, or None."""
        with self._lock:
            if key not in self._kept:
                return None
            self._kept.move_to_end(key)
            return self._kept[key][0]

    def put(self, key: Hashable, value: Any) -> None:
        """Keep a result, in place of an earlier one of that key; forget it if it is too large."""
        size = bytes_of(value) + _OVERHEAD
        with self._lock:
            self.n_bytes -= self._kept.pop(key, (None, 0))[1]
            if size > self.most_bytes // 4:
                return
            self._kept[key] = value, size
            self.n_bytes += size
            while self.n_bytes > self.most_bytes:
                self.n_bytes -= self._kept.popitem(last=False)[1][1]

    def __len__(self) -> int:
        return len(self._kept)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.most_bytes,)


def bytes_of(value: Any) -> int:
    """Bytes of the arrays in a result: of an array, or of all in a tuple or an object's fields."""
    if isinstance(value, np.ndarray):
        return value.nbytes
    if isinstance(value, tuple):
        return sum(map(bytes_of, value))
    return sum(map(bytes_of, vars(value).values())) if hasattr(value, "__dict__") else 0
