"""Tests with a fixed number of rows as anytime-valid bets."""

from __future__ import annotations

import base64
import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom, norm

Floats = NDArray[np.float64]

#: The odds ratio that a test is designed for, and its number of rows relative to that for a power
#: of one half by the normal approximation.
_ODDS_RATIO, _EXTRA_ROWS = 2.25, 1.4
_MIN_ROWS, _MAX_ROWS = 5, 1_000_000


class HorizonTest:
    """Bets on the number of events at one horizon, for each candidate rate.

    The capital is the conditional probability that the number of events reaches a critical value at
    the horizon, divided by its initial probability. It is a martingale if the candidate is the true
    rate, and a supermartingale if the true rates are smaller, since it grows with the number of
    events. Such a bet has the power of the best test with this number of rows; a likelihood ratio
    needs more rows for the same power, but has no horizon.

    Parameters
    ----------
    rates : ndarray of shape (n_monitors, n_rates)
        Candidate rates under the null hypothesis.
    target : ndarray of shape (n_monitors, n_rates)
        The capital ends as 0, or as at least ``1 / target``.
    horizon : ndarray of int, shape (n_monitors,)
        Number of rows. A block of rows that contains the horizon extends it to its end.

    Attributes
    ----------
    capital : ndarray of shape (n_monitors, n_rates)
        The capital, 1 in the beginning.

    Examples
    --------
    With a rate of 0.1, at least 5 of 20 rows have an event with a probability of 0.043:

    >>> test = HorizonTest(np.array([[0.1]]), np.array([[0.05]]), np.array([20]))
    >>> for events in ([2], [3]):
    ...     test.update(np.array([0]), np.array(events), np.array([10]))
    >>> test.capital.round(2).tolist()
    [[23.16]]
    """

    def __init__(self, rates: Floats, target: Floats, horizon: NDArray[np.int64]) -> None:
        self._rates, self._horizon = rates, horizon
        self._target = np.minimum(target, 1.0)
        self._n_rows = np.zeros(len(rates), dtype=np.int64)
        self._n_events = np.zeros(len(rates), dtype=np.int64)
        self.capital = np.ones(rates.shape)
        n_rows = horizon[:, np.newaxis]
        self._critical = _critical_value(n_rows, rates, self._target)
        self._p_critical = binom.sf(self._critical - 1, n_rows, rates)

    @classmethod
    def design(cls, rates: Floats, target: Floats, estimate: Floats) -> HorizonTest:
        """Choose horizons at which a large increase of the rate is detected with a fair power.

        Parameters
        ----------
        rates, target : ndarray of shape (n_monitors, n_rates)
            See the class.
        estimate : ndarray of shape (n_monitors, 1)
            Estimates of the rate from the baseline, which decide about the horizon.
        """
        odds = estimate / (1.0 - estimate) * _ODDS_RATIO
        gap = odds / (1.0 + odds) - rates
        distance = norm.isf(np.clip(target, 1e-300, 0.5))
        needed = distance**2 * rates * (1.0 - rates) / np.maximum(gap, 1e-6) ** 2
        n_rows = _EXTRA_ROWS * np.where(distance > 0, needed, 0.0).max(axis=1)
        return cls(rates, target, np.clip(n_rows, _MIN_ROWS, _MAX_ROWS).astype(np.int64))

    def update(
        self, active: NDArray[np.intp], events: NDArray[np.int64], trials: NDArray[np.int64]
    ) -> None:
        """Add a block of rows to some monitors.

        Parameters
        ----------
        active : ndarray of int
            The monitors.
        events, trials : ndarray of int, of the same shape
            Events and rows of the block.
        """
        is_open = self._n_rows[active] < self._horizon[active]
        active, events, trials = active[is_open], events[is_open], trials[is_open]
        self._n_rows[active] += trials
        self._n_events[active] += events
        is_last = self._n_rows[active] >= self._horizon[active]
        self._continue(active[~is_last])
        self._finish(active[is_last], events[is_last], trials[is_last])

    def _continue(self, monitors: NDArray[np.intp]) -> None:
        """Compute the capital of monitors before their horizon."""
        if not len(monitors):
            return
        n_left = (self._horizon - self._n_rows)[monitors, np.newaxis]
        n_needed = self._critical[monitors] - self._n_events[monitors, np.newaxis]
        p_critical = binom.sf(n_needed - 1, n_left, self._rates[monitors])
        p_initial = self._p_critical[monitors]
        # Nothing is bet where even events in all rows would not reach the target.
        ratio = p_critical / np.maximum(p_initial, 1e-300)
        self.capital[monitors] = np.where(p_initial > 0, ratio, 1.0)

    def _finish(
        self, monitors: NDArray[np.intp], events: NDArray[np.int64], trials: NDArray[np.int64]
    ) -> None:
        """Bet the capital on the events of the last block, so that it reaches the target."""
        if not len(monitors):
            return
        capital, rates = self.capital[monitors], self._rates[monitors]
        n_rows = trials[:, np.newaxis]
        n_needed = _critical_value(n_rows, rates, capital * self._target[monitors])
        is_reached = events[:, np.newaxis] >= n_needed
        p_reached = binom.sf(n_needed - 1, n_rows, rates)
        self.capital[monitors] = np.where(is_reached, capital / np.maximum(p_reached, 1e-300), 0.0)

    def state(self) -> dict[str, Any]:
        """Return the state of the stream for JSON."""
        return {
            "n_rows": self._n_rows.tolist(),
            "n_events": self._n_events.tolist(),
            "capital": packed(self.capital),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a state that :meth:`state` returned for the same baseline."""
        self._n_rows = np.array(state["n_rows"], dtype=np.int64)
        self._n_events = np.array(state["n_events"], dtype=np.int64)
        self.capital = unpacked(state["capital"], self.capital.shape)


def _critical_value(n_rows: Any, rates: Floats, p: Floats) -> Floats:
    """Return the smallest number of events that is reached with a probability of at most `p`."""
    quantile = binom.isf(np.minimum(p, 1.0), n_rows, rates)  # exceeded with at most `p`
    critical = np.where(p >= 1.0, 0.0, np.maximum(quantile + 1.0, 0.0))
    # The quantile is rounded; a probability beyond `p` would only reduce the gain.
    return np.where(p <= 0.0, n_rows + 1.0, critical)


def packed(values: Floats) -> str:
    """Write floats as text, without loss."""
    return base64.b64encode(zlib.compress(values.astype("<f8").tobytes(), 6)).decode("ascii")


def unpacked(text: str, shape: tuple[int, ...]) -> Floats:
    """Read floats that :func:`packed` wrote."""
    values = np.frombuffer(zlib.decompress(base64.b64decode(text)), dtype="<f8")
    return values.reshape(shape).copy()
