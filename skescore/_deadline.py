"""Time limit that long computations check, so that they can be stopped."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from contextvars import ContextVar

__all__ = ["ExtractionTimeoutError", "check_deadline", "time_limit"]

#: Time on the monotonic clock at which running computations must stop; None for no limit.
_DEADLINE: ContextVar[float | None] = ContextVar("skescore_deadline", default=None)


class ExtractionTimeoutError(TimeoutError):
    """Error of an extraction that exceeds its :func:`time_limit`."""


@contextlib.contextmanager
def time_limit(seconds: float | None) -> Iterator[None]:
    """Stop extractions in the block that exceed a time limit.

    Use it if a single extraction must not delay the others. The limit is checked before each query
    of the black box, between the steps of pruning, and in long loops of the algorithms. A single
    call of the black box is not interrupted. An outer limit that ends earlier takes precedence.

    Parameters
    ----------
    seconds : float or None
        Time limit in seconds, from the beginning of the block; None sets no limit.

    Raises
    ------
    ExtractionTimeoutError
        In the block, if an extraction exceeds the limit.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> from skescore.extractors import CARTExtractor, ExtractionTimeoutError, time_limit
    >>> X, y = load_iris(return_X_y=True)
    >>> with time_limit(60):
    ...     rules = CARTExtractor(KNeighborsClassifier(9)).fit(X, y).rules_
    >>> try:
    ...     with time_limit(0):
    ...         CARTExtractor(KNeighborsClassifier(9)).fit(X, y)
    ... except ExtractionTimeoutError as error:
    ...     print(error)  # doctest: +ELLIPSIS
    The extraction reached the time limit and was stopped. Raise the time limit, ...
    """
    outer = _DEADLINE.get()
    deadline = None if seconds is None else time.monotonic() + seconds
    deadlines = [moment for moment in (outer, deadline) if moment is not None]
    token = _DEADLINE.set(min(deadlines, default=None))
    try:
        yield
    finally:
        _DEADLINE.reset(token)


def check_deadline() -> None:
    """Raise an ExtractionTimeoutError if the time limit is over."""
    deadline = _DEADLINE.get()
    if deadline is not None and time.monotonic() >= deadline:
        raise ExtractionTimeoutError(
            "The extraction reached the time limit and was stopped. Raise the time limit, or allow "
            "fewer rules."
        )
