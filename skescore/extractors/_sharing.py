"""Shared intermediate results of search candidates that extract from the same rows.

The cache belongs to the black box that a search passes to all candidates, so nothing is shared
between black boxes. Keys contain a digest of the rows and their predictions.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, TypeVar

import numpy as np

from skescore.extractors._oracle import CachedBlackBox, ResultCache, digest

__all__ = ["Sharing", "digest", "once"]

T = TypeVar("T")


class Sharing:
    """Part of a black box's cache for some rows and their predictions."""

    def __init__(self, cache: ResultCache, scope: Hashable) -> None:
        self._cache, self._scope = cache, scope

    @classmethod
    def of(cls, extraction: Any) -> Sharing | None:
        """Return the shared part of an extraction; None outside of a search."""
        black_box, rows = extraction.oracle.estimator, extraction.oracle.first_query
        if not isinstance(black_box, CachedBlackBox) or rows is None:
            return None
        domain = extraction.settings["domain"]
        n_classes = None if extraction.classes is None else len(extraction.classes)
        bounds = np.asarray([domain.lower, domain.upper], dtype=float)
        names = tuple(extraction.settings["feature_names"])
        scope = (
            rows,
            digest(extraction.predictions, bounds),
            # The digest of the rows does not determine the meaning of codes.
            extraction.content_digest if extraction.categories else None,
            extraction.X.shape,
            n_classes,
            names,
            tuple(extraction.categories.items()),
            extraction.no_quantities,
            extraction.query_rows,
        )
        return cls(black_box.cache, scope)

    def with_scope(self, scope: Hashable) -> Sharing:
        """Return a part of the cache with separate keys for `scope`."""
        return Sharing(self._cache, (self._scope, scope))

    def get(self, key: Hashable) -> Any:
        """Return the value of a key, or None."""
        return self._cache.get((self._scope, key))

    def put(self, key: Hashable, value: Any) -> None:
        """Store a value, which must not be modified."""
        self._cache.put((self._scope, key), value)


def once(sharing: Sharing | None, key: Hashable, make: Callable[[], T]) -> T:
    """Return the shared value of a key, computed if necessary; it must not be modified."""
    if sharing is None:
        return make()
    value = sharing.get(key)
    if value is None:
        value = make()
        sharing.put(key, value)
    return value
