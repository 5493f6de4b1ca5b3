"""Results for tables that never change, such as the folds of a search."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, TypeVar

T = TypeVar("T")


class FixedRows:
    """Tables that are not changed, each with results that depend on its rows alone.

    A search extracts rules from the same few tables again and again. Checking the rows, encoding
    their categories and computing their digest once is enough. Tables are recognized by identity.
    Copies and pickles are empty.

    Examples
    --------
    >>> import numpy as np
    >>> from skescore.extractors._fixed_rows import FixedRows
    >>> X, fixed = np.array([[1.0, 2.0]]), FixedRows()
    >>> fixed.add(X)
    >>> fixed.once(X, "sum", X.sum)
    3.0
    >>> X in fixed, X.copy() in fixed
    (True, False)
    """

    def __init__(self) -> None:
        # The tables are kept, so that no other one gets the id of a table.
        self._tables: dict[int, tuple[Any, dict[Hashable, Any]]] = {}

    def add(self, X: Any) -> None:
        """Add a table that nobody changes from now on."""
        self._tables.setdefault(id(X), (X, {}))

    def __contains__(self, X: Any) -> bool:
        return id(X) in self._tables

    def once(self, X: Any, key: Hashable, make: Callable[[], T]) -> T:
        """Return the result of a key for a table, which must not be changed.

        It is computed the first time; for other tables, each time.
        """
        if X not in self:
            return make()
        results = self._tables[id(X)][1]
        if key not in results:
            results[key] = make()
        result: T = results[key]
        return result

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), ()
