"""Limits of time and queries that long computations check, so that they can be stopped."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass

__all__ = [
    "ExtractionTimeoutError",
    "QueryBudget",
    "QueryLimitError",
    "check_deadline",
    "query_limit",
    "spend_queries",
    "time_limit",
]

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


class QueryLimitError(RuntimeError):
    """Error of an extraction that would exceed the `max_queries` of its search."""


@dataclass
class QueryBudget:
    """Number of rows for which a search may still query the black box.

    `is_exceeded` is True once an extraction was stopped because it needed more.
    """

    n_left: float = math.inf
    is_exceeded: bool = False

    @property
    def is_spent(self) -> bool:
        """Whether no further extraction may start."""
        return self.is_exceeded or self.n_left <= 0


_BUDGET: ContextVar[tuple[QueryBudget, bool] | None] = ContextVar("skescore_budget", default=None)


@contextlib.contextmanager
def query_limit(budget: QueryBudget, *, stops: bool = True) -> Iterator[None]:
    """Count the queries in the block, and stop extractions that exceed the budget if `stops`."""
    token = _BUDGET.set((budget, stops))
    try:
        yield
    finally:
        _BUDGET.reset(token)


def spend_queries(n_rows: int) -> None:
    """Count rows before they are predicted; raise a QueryLimitError if there are too many."""
    current = _BUDGET.get()
    if current is None:
        return
    budget, stops = current
    if stops and n_rows > budget.n_left:
        budget.is_exceeded = True
        raise QueryLimitError(
            f"The candidate needs predictions for {n_rows} more rows, but max_queries leaves only "
            f"{max(0, int(budget.n_left))}. Raise max_queries."
        )
    budget.n_left -= n_rows
