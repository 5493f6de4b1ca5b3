"""Tests with a fixed number of rows as anytime-valid bets."""

from __future__ import annotations

import base64
import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc, expit, logit
from scipy.stats import binom, norm

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

#: Odds ratio that a test detects with the power `_POWER`, if the baseline permits it.
_ODDS_RATIO = 2.25
#: Power at `_ODDS_RATIO`, if the rate of the baseline is its estimate.
_POWER = 0.53
#: Minimum distance of a detected rate from the baseline's estimate: this number times the normal
#: distribution's critical value, in standard errors of the baseline.
_MIN_DISTANCE = 1.7
#: Maximum number of events, and of rows, of a test.
_MAX_EVENTS, _MAX_ROWS = 4000, 1_000_000
#: The number of events is determined from every sixth candidate, the horizon from all of them.
_SEARCH_STEP = 6


class HorizonTest:
    """Bets that a number of events is reached within a number of rows.

    For each candidate rate, the capital before the horizon is the conditional probability that the
    critical number of events will be reached, divided by its initial probability. It is a
    martingale if the candidate is the true rate, and a supermartingale if the true rates are
    smaller, since it increases with the number of events. Such a bet has the power of the best test
    with this number of rows. A likelihood ratio needs more rows for the same power, but has no
    horizon. Critical value and horizon are the same for all candidates, so each capital is at least
    ``1 / target`` as soon as the critical value is reached.

    Parameters
    ----------
    rates : ndarray of shape (n_monitors, n_rates)
        Candidate rates under the null hypothesis.
    target : ndarray of shape (n_monitors, n_rates)
        Maximum probability of success under each candidate.
    critical, horizon : ndarray of int, shape (n_monitors,)
        Number of events, and of rows. A block of rows that contains the horizon extends it to the
        end of the block: the capital before the block is bet on a new critical value in it. The
        horizon 0 means no test.

    Attributes
    ----------
    is_reached : ndarray of bool, shape (n_monitors,)
        Whether the test has succeeded: the capital of every candidate is at least ``1 / target``.

    Examples
    --------
    With a rate of 0.1, at least 5 of 20 rows have an event with a probability of 0.043:

    >>> test = HorizonTest(
    ...     np.array([[0.1]]), np.array([[0.05]]), np.array([5]), np.array([20])
    ... )
    >>> for events in ([2], [3]):
    ...     test.update(np.array([0]), np.array(events), np.array([9]))
    >>> test.is_reached.tolist()
    [True]
    """

    def __init__(self, rates: Floats, target: Floats, critical: Integers, horizon: Integers):
        self._rates, self._target = rates, np.minimum(target, 1.0)
        self._critical, self._horizon = critical, horizon
        self._n_rows = np.zeros(len(rates), dtype=np.int64)
        self._n_events = np.zeros(len(rates), dtype=np.int64)
        self.is_reached = np.zeros(len(rates), dtype=bool)

    @classmethod
    def design(cls, rates: Floats, target: Floats, estimate: Floats, n_baseline: Floats) -> Any:
        """Choose critical values and horizons.

        Parameters
        ----------
        rates, target : ndarray of shape (n_monitors, n_rates)
            See the class.
        estimate, n_baseline : ndarray of shape (n_monitors,)
            Estimates of the rate from the baseline, and its number of rows. They affect the power,
            not the validity.

        Returns
        -------
        HorizonTest
            Test with the fewest events for which the power suffices. The horizon is the largest one
            for which no candidate has a larger probability of success than its target.
        """
        candidates = slice(None, None, _SEARCH_STEP)
        base = target[np.arange(len(rates)), np.abs(rates - estimate[:, np.newaxis]).argmin(1)]
        distance = np.maximum(norm.isf(np.clip(base, 1e-300, 0.4)), 1.0)
        shift = 0.5 * _MIN_DISTANCE * distance / np.sqrt(np.maximum(n_baseline, 1.0))
        angle = np.minimum(np.arcsin(np.sqrt(estimate)) + shift, 0.49 * np.pi)
        detected = np.maximum(expit(logit(estimate) + np.log(_ODDS_RATIO)), np.sin(angle) ** 2)
        low = np.zeros(len(rates))
        high = np.ceil(
            4.0 * distance**2 * detected * estimate / (detected - estimate) ** 2 + 2.0 * distance**2
        )
        high = np.minimum(high, _MAX_EVENTS)
        while (high - low > 1).any():
            middle = np.floor((low + high) / 2)
            n_rows = _longest(middle, rates[:, candidates], target[:, candidates], estimate)
            suffices = _tail(middle, n_rows, detected) >= _POWER
            low, high = np.where(suffices, low, middle), np.where(suffices, middle, high)
        n_rows = _longest(high, rates, target, estimate)
        horizon = np.where((n_rows >= high) & (n_rows > 0), n_rows, 0.0)
        return cls(rates, target, high.astype(np.int64), horizon.astype(np.int64))

    def update(self, active: NDArray[np.intp], events: Integers, trials: Integers) -> None:
        """Add a block of rows to some monitors.

        Parameters
        ----------
        active : ndarray of int
            Indices of the monitors.
        events, trials : ndarray of int, of the same shape
            Events and rows of the block.
        """
        is_open = (self._n_rows[active] < self._horizon[active]) & ~self.is_reached[active]
        active, events, trials = active[is_open], events[is_open], trials[is_open]
        is_last = self._n_rows[active] + trials > self._horizon[active]
        self._finish(active[is_last], events[is_last], trials[is_last])
        self._n_rows[active] += trials
        self._n_events[active] += events
        ongoing = active[~is_last]
        self.is_reached[ongoing] = self._n_events[ongoing] >= self._critical[ongoing]

    def _finish(self, monitors: NDArray[np.intp], events: Integers, trials: Integers) -> None:
        """Bet the capital on the events of a block that contains the horizon."""
        if not len(monitors):
            return
        column = (slice(None), np.newaxis)
        rates, horizon = self._rates[monitors], self._horizon[monitors]
        n_left = (horizon - self._n_rows[monitors])[column]
        n_needed = (self._critical - self._n_events)[monitors][column]
        p_initial = binom.sf(self._critical[monitors][column] - 1, horizon[column], rates)
        p_now = binom.sf(n_needed - 1, n_left, rates)
        capital = np.where(p_initial > 0, p_now / np.maximum(p_initial, 1e-300), 1.0)
        critical = _critical_value(trials[column], rates, capital * self._target[monitors])
        self.is_reached[monitors] = events >= critical.max(axis=1)

    def state(self) -> dict[str, Any]:
        """Return the state of the stream as JSON data."""
        return {
            "n_rows": self._n_rows.tolist(),
            "n_events": self._n_events.tolist(),
            "is_reached": self.is_reached.tolist(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Restore a result of :meth:`state` for the same baseline."""
        self._n_rows = np.array(state["n_rows"], dtype=np.int64)
        self._n_events = np.array(state["n_events"], dtype=np.int64)
        self.is_reached = np.array(state["is_reached"], dtype=bool)


def _tail(critical: Floats, n_rows: Floats, rate: Floats) -> Floats:
    """Return the probability of at least `critical` events; 0 if there are fewer rows."""
    is_possible = n_rows >= critical
    safe = np.where(is_possible, n_rows, critical)
    return np.where(is_possible, betainc(critical, safe - critical + 1.0, rate), 0.0)


def _longest(critical: Floats, rates: Floats, target: Floats, estimate: Floats) -> Floats:
    """Return the largest number of rows for which no candidate exceeds its target.

    Only numbers of rows with at most the critical number of events on average are tried.
    """
    limit = np.minimum(np.ceil(critical / estimate), _MAX_ROWS)
    low, high = critical - 1.0, np.maximum(limit, critical) + 1.0
    critical = critical[:, np.newaxis]
    while (high - low > 1).any():
        middle = np.floor((low + high) / 2)
        p_success = _tail(critical, middle[:, np.newaxis], rates)
        is_valid = (p_success <= target).all(axis=1)
        low, high = np.where(is_valid, middle, low), np.where(is_valid, high, middle)
    return low


def _critical_value(n_rows: Any, rates: Floats, p: Floats) -> Floats:
    """Return the smallest number of events that is reached with a probability of at most `p`."""
    quantile = binom.isf(np.minimum(p, 1.0), n_rows, rates)  # exceeded with probability <= p
    critical = np.maximum(quantile + 1.0, 0.0)
    critical += binom.sf(critical - 1.0, n_rows, rates) > p  # corrects a rounded quantile
    critical = np.where(p >= 1.0, 0.0, critical)
    return np.where(p <= 0.0, n_rows + 1.0, critical)


def packed(values: NDArray[Any]) -> str:
    """Encode numbers as text, without loss."""
    data = values.astype(values.dtype.newbyteorder("<")).tobytes()
    return base64.b64encode(zlib.compress(data, 6)).decode("ascii")


def unpacked(text: str, shape: tuple[int, ...], kind: Any = np.float64) -> NDArray[Any]:
    """Decode numbers from the result of :func:`packed`."""
    data = zlib.decompress(base64.b64decode(text))
    return np.frombuffer(data, dtype=np.dtype(kind).newbyteorder("<")).astype(kind).reshape(shape)
