"""A time limit that long computations look at themselves, so that they can be stopped anywhere."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from contextvars import ContextVar

__all__ = ["ExtractionTimeoutError", "check_deadline", "time_limit"]

#: The moment at which what runs now has to stop, on a clock that nobody sets; None for never.
_DEADLINE: ContextVar[float | None] = ContextVar("skescore_deadline", default=None)


class ExtractionTimeoutError(TimeoutError):
    """Raised by an extraction that was still at work when its :func:`time_limit` was over."""


@contextlib.contextmanager
def time_limit(seconds: float | None) -> Iterator[None]:
    """Stop extractions within the block that are still at work after some time.

    Use it where no single extraction may hold up the others. The limit is looked at before each
    query to the black box, between the steps of pruning, and in the long loops of the algorithms;
    a single call of a black box is not broken off. An outer limit that ends earlier holds.

    Parameters
    ----------
    seconds : float or None
        Time from now on; None sets no limit.

    Raises
    ------
    ExtractionTimeoutError
        From within the block, where an extraction is at work after that time.

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
    ...     print(error)
    The time limit is over and the extraction was stopped. Allow more time, or fewer rules.
    """
    outer = _DEADLINE.get()
    own = None if seconds is None else time.monotonic() + seconds
    known = [moment for moment in (outer, own) if moment is not None]
    token = _DEADLINE.set(min(known, default=None))
    try:
        yield
    finally:
        _DEADLINE.reset(token)


def check_deadline() -> None:
    """Raise an ExtractionTimeoutError if the time limit is over."""
    deadline = _DEADLINE.get()
    if deadline is not None and time.monotonic() >= deadline:
        raise ExtractionTimeoutError(
            "The time limit is over and the extraction was stopped. Allow more time, or fewer "
            "rules."
        )
