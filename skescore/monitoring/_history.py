"""Counts of a stream over time in a bounded number of entries, and estimates of changes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import betaln, xlogy

from skescore.metrics import DecisionCounts
from skescore.monitoring._baseline import rate_interval

Counts = NDArray[np.int64]

#: Maximum number of entries; beyond it, the two neighbors with the fewest rows are merged.
MAX_ENTRIES = 64
#: A time of change is plausible if its likelihood is at least this share of the largest one.
_PLAUSIBLE_RATIO = 1 / 20


@dataclass(frozen=True)
class HistoryEntry:
    """Counts of consecutive blocks of rows.

    Attributes
    ----------
    first_block, last_block : int
        Numbers of the blocks, from 0.
    first_row : int
        Number of the first row in the stream, from 1.
    batches, times : tuple of two str
        First and last batch, and their times.
    counts : DecisionCounts
        The counts.
    """

    first_block: int
    last_block: int
    first_row: int
    batches: tuple[str, str]
    times: tuple[str, str]
    counts: DecisionCounts

    def merge(self, later: HistoryEntry) -> HistoryEntry:
        """Merge with the next entry."""
        return HistoryEntry(
            self.first_block,
            later.last_block,
            self.first_row,
            (self.batches[0], later.batches[1]),
            (self.times[0], later.times[1]),
            self.counts + later.counts,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the entry as JSON data."""
        return {
            "blocks": [self.first_block, self.last_block],
            "first_row": self.first_row,
            "batches": list(self.batches),
            "times": list(self.times),
            "counts": list(self.counts.to_dict().values()),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> HistoryEntry:
        """Restore an entry from the result of :meth:`to_dict`."""
        counts = DecisionCounts(*(np.array(v, dtype=np.int64) for v in data["counts"]))
        first_block, last_block = data["blocks"]
        (first_batch, last_batch), (start, end) = data["batches"], data["times"]
        return cls(
            first_block,
            last_block,
            data["first_row"],
            (first_batch, last_batch),
            (start, end),
            counts,
        )


class History:
    """Counts over time.

    Parameters
    ----------
    entries : sequence of HistoryEntry, default=()
        The entries so far.
    """

    def __init__(self, entries: Any = ()) -> None:
        self.entries: list[HistoryEntry] = list(entries)

    def append(self, entry: HistoryEntry) -> None:
        """Add a block, and merge two entries if there are too many."""
        self.entries.append(entry)
        if len(self.entries) > MAX_ENTRIES:
            sizes = np.array([int(e.counts.n_rows.sum()) for e in self.entries])
            index = int((sizes[:-1] + sizes[1:]).argmin())
            self.entries[index : index + 2] = [self.entries[index].merge(self.entries[index + 1])]

    def add_to_block(self, block: int, counts: DecisionCounts) -> None:
        """Add counts to the entry of an earlier block."""
        for index, entry in enumerate(self.entries):
            if entry.first_block <= block <= entry.last_block:
                self.entries[index] = replace(entry, counts=entry.counts + counts)
                return
        raise ValueError(
            f"There is no block {block} in this history of {len(self.entries)} entries. The labels "
            "belong to another state file."
        )


@dataclass(frozen=True)
class ChangeEstimate:
    """Estimated time and size of an increase of a rate.

    Attributes
    ----------
    start, earliest, latest : int
        Index of the entry at whose start the rate most likely changed, and the first and last
        plausible index, with a likelihood of at least 1/20 of the largest.
    rate : float
        Rate since `start`.
    rate_interval : tuple of float
        Confidence sequence of this rate.
    difference_interval : tuple of float
        Confidence sequence of its difference from the baseline's rate.
    """

    start: int
    earliest: int
    latest: int
    rate: float
    rate_interval: tuple[float, float]
    difference_interval: tuple[float, float]


def rate_confidence_sequence(events: int, trials: int, alpha: float) -> tuple[float, float]:
    """Return an interval that contains the rate at all times with probability ``1 - alpha``.

    The interval contains the rates that a mixture of likelihood ratios with Jeffreys' prior does
    not reject (Robbins, 1970).

    Examples
    --------
    >>> low, high = rate_confidence_sequence(100, 1000, 0.05)
    >>> round(low, 3), round(high, 3)
    (0.069, 0.138)
    """
    if trials == 0:
        return 0.0, 1.0
    mixture = betaln(events + 0.5, trials - events + 0.5) - betaln(0.5, 0.5)

    def excess(rate: float) -> float:
        likelihood = xlogy(events, rate) + xlogy(trials - events, 1.0 - rate)
        return float(mixture - likelihood + math.log(alpha))

    center = events / trials
    lower, upper = 0.0, 1.0
    if events > 0 and excess(1e-300) > 0:
        lower = float(brentq(excess, 1e-300, center))
    if events < trials and excess(1.0 - 1e-16) > 0:
        upper = float(brentq(excess, center, 1.0 - 1e-16))
    return lower, upper


def estimate_change(
    events: Counts,
    trials: Counts,
    first_blocks: Counts,
    baseline: tuple[int, int],
    level: float = 0.95,
    default_start: int = 0,
    n_starts: int | None = None,
) -> ChangeEstimate:
    """Estimate when a rate increased, and by how much.

    Parameters
    ----------
    events, trials : ndarray of shape (n_entries,)
        Events and rows of each entry of a history.
    first_blocks : ndarray of shape (n_entries,)
        Number of the first block of each entry.
    baseline : tuple of int
        Events and rows of the baseline.
    level : float, default=0.95
        Joint level of the confidence sequences for all times and all times of change.
    default_start : int, default=0
        Start if no rate after an entry exceeds the rate before it, as after a return to normal.
    n_starts : int, optional
        Number of first entries at which the change may have started, such as those before the
        alarm; by default all.

    Returns
    -------
    ChangeEstimate

    Examples
    --------
    >>> estimate = estimate_change(
    ...     np.array([10, 9, 31, 29]), np.full(4, 100), np.arange(4), baseline=(100, 1000)
    ... )
    >>> estimate.start, estimate.rate
    (2, 0.3)
    """
    after_events = np.cumsum(events[::-1])[::-1]
    after_trials = np.cumsum(trials[::-1])[::-1]
    before_events = baseline[0] + events.sum() - after_events
    before_trials = baseline[1] + trials.sum() - after_trials
    increases = after_events * before_trials > before_events * after_trials
    likelihood = _log_likelihood(after_events, after_trials) + _log_likelihood(
        before_events, before_trials
    )
    increases &= np.arange(len(events)) < (len(events) if n_starts is None else n_starts)
    likelihood = np.where(increases, likelihood, -np.inf)
    start = int(likelihood.argmax()) if increases.any() else default_start
    plausible = np.flatnonzero(likelihood >= likelihood.max() + math.log(_PLAUSIBLE_RATIO))
    if not increases.any():
        plausible = np.array([start])
    x, n = int(after_events[start]), int(after_trials[start])
    # The prior probabilities 1 / (b + 1)(b + 2) of starts at block b sum to one.
    block = int(first_blocks[start])
    prior = 1.0 / ((block + 1) * (block + 2))
    lower, upper = rate_confidence_sequence(x, n, (1.0 - level) * prior)
    intervals = rate_confidence_sequence(x, n, (1.0 - level) / 2 * prior)
    low, high = rate_interval(*baseline, level=(1.0 + level) / 2)
    return ChangeEstimate(
        start,
        int(plausible[0]),
        int(plausible[-1]),
        x / n if n else math.nan,
        (lower, upper),
        (intervals[0] - float(high), intervals[1] - float(low)),
    )


def _log_likelihood(events: Counts, trials: Counts) -> NDArray[np.float64]:
    """Return the maximum log-likelihood of counts."""
    rate = events / np.maximum(trials, 1)
    return np.asarray(xlogy(events, rate) + xlogy(trials - events, 1.0 - rate))
