"""Anytime-valid tests that rates of events exceed the rates of a baseline sample.

Each monitor has a baseline of `n` rows with `x` events, and watches a stream of later rows. The
null hypothesis is that every row of both has an event with the same unknown probability (or, in
the stream, with a smaller one, given the past). An e-process is a nonnegative process whose
expectation is at most 1 at every stopping time under every distribution of the null hypothesis. By
Ville's inequality, it exceeds ``1 / alpha`` at some time with a probability of at most `alpha`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skescore.monitoring._horizon import HorizonTest, packed, unpacked

Floats = NDArray[np.float64]

#: Odds of the alternatives as multiples of those of the baseline, and their prior probabilities.
_ODDS_RATIOS = np.array([1.6, 2.25, 3.5, 8.0, 40.0])
_ODDS_RATIO_PRIOR = np.array([0.12, 0.63, 0.15, 0.06, 0.04])
#: Candidate rates under the null hypothesis, in standard errors from the baseline's rate.
_NULL_EDGES = np.array(
    [
        *(-16.0, -9.0, -5.5, -3.5, -2.2, -1.5, -1.0, -0.6, -0.3),
        *(0.2 * i for i in range(13)),
        *(2.7, 3.0, 3.5, 4.0, 5.0, 6.0, 8.0, 11.0, 15.0, 21.0, 30.0, 42.0),
    ]
)
#: Distances at which the baseline is tested against a candidate rate, and their prior
#: probabilities. Distance 0 is the e-value 1; the next three suit a doubling of a rate.
_BASELINE_SHIFTS = np.array([0.0, 4.0, 8.0, 18.0, 70.0])
_BASELINE_SHIFT_PRIOR = np.array([0.03, 0.25, 0.40, 0.29, 0.03])
#: Prior of the time of change, in rows: a probability of a change before the first row, and a
#: power law for later ones.
_P_AT_START, _TIME_SCALE, _TIME_EXPONENT = 0.6, 50.0, 0.3
#: Share of the capital that is bet on a change at the start, see :class:`HorizonTest`.
_HORIZON_SHARE = 0.25
#: Evidence beyond these sums is not distinguished.
_MAX_LOG, _MAX_SUM = 600.0, 1e300


def remaining_prior(n_rows: Any) -> Floats:
    """Return the prior probability that a change comes after `n_rows` rows, or never.

    Examples
    --------
    >>> remaining_prior([0, 1000]).round(3).tolist()
    [0.4, 0.16]
    """
    later = (1.0 + np.asarray(n_rows, dtype=float) / _TIME_SCALE) ** -_TIME_EXPONENT
    return np.asarray((1.0 - _P_AT_START) * later)


def baseline_e_value(events: Any, trials: Any, rates: Floats) -> Floats:
    """Return the e-value of a baseline sample against candidate rates.

    Parameters
    ----------
    events, trials : array-like of shape (n_monitors, 1)
        Events and rows of the baseline samples.
    rates : ndarray of shape (n_monitors, n_rates)
        Candidate rates, between 0 and 1.

    Returns
    -------
    ndarray of shape (n_monitors, n_rates)
        A mixture of likelihood ratios: its expectation is 1 if the candidate is the true rate. It
        grows with the candidate rate.
    """
    events, trials = np.asarray(events, dtype=float), np.asarray(trials, dtype=float)
    angle = np.arcsin(np.sqrt(rates))
    shift = 1.0 / (np.maximum(trials, 1.0) * np.sin(angle))
    total = np.zeros(np.broadcast_shapes(events.shape, rates.shape))
    with np.errstate(divide="ignore", invalid="ignore"):
        for distance, prior in zip(_BASELINE_SHIFTS, _BASELINE_SHIFT_PRIOR, strict=True):
            other = np.sin(np.maximum(angle - distance * shift, 0.0)) ** 2
            ratio = _power_log(events, other, rates) + _power_log(
                trials - events, 1.0 - other, 1.0 - rates
            )
            total += prior * np.exp(np.minimum(ratio, 600.0))
    return total


def _power_log(exponent: Floats, numerator: Floats, denominator: Floats) -> Floats:
    """Return ``exponent * log(numerator / denominator)``, 0 for the exponent 0."""
    return np.where(exponent > 0, exponent * np.log(numerator / denominator), 0.0)


@dataclass
class RateMonitors:
    """E-processes that detect increases of rates, vectorized over independent monitors.

    Parameters
    ----------
    events, trials : array-like of shape (n_monitors,)
        Events and rows of the baseline samples. A monitor without baseline rows never has evidence.
    tolerance : array-like of shape (n_monitors,), default=0
        Increase of the rate that is still part of the null hypothesis.
    level : array-like of shape (n_monitors,), default=0.01
        Level of the alarms. The e-process is valid at every level, but reaches ``1 / level`` soon.

    Attributes
    ----------
    n_rows : ndarray of shape (n_monitors,)
        Rows of the stream.
    log_evidence : ndarray of shape (n_monitors,)
        Logarithm of the e-process.
    max_log_evidence : ndarray of shape (n_monitors,)
        Its maximum so far.

    Notes
    -----
    For each candidate rate under the null hypothesis, the stream is tested by a mixture of
    likelihood ratios over alternatives and times of change, in the manner of Shiryaev and Roberts,
    with prior probabilities of the times that sum to one. A quarter of the capital is bet on the
    number of events at a horizon instead, for changes at the start. This test martingale is
    multiplied by an e-value of the baseline against the same candidate. The minimum over all
    candidates is an e-process of the composite null hypothesis. Between two grid values, the test
    martingale of the larger and the e-value of the smaller value bound it from below, so that the
    grid does not invalidate it.

    Examples
    --------
    A rate of 10 % on 1000 baseline rows doubles:

    >>> monitors = RateMonitors([100], [1000])
    >>> for _ in range(20):
    ...     monitors.update([2], [10])
    >>> bool(np.exp(monitors.log_evidence[0]) > 100)
    True
    """

    events: Any
    trials: Any
    tolerance: Any = 0.0
    level: Any = 0.01

    def __post_init__(self) -> None:
        events, trials = np.broadcast_arrays(*np.atleast_1d(self.events, self.trials))
        tolerance = np.broadcast_to(np.asarray(self.tolerance, dtype=float), events.shape)
        column = (slice(None), np.newaxis)
        x, n = events[column].astype(float), trials[column].astype(float)
        center = np.arcsin(np.sqrt((x + 0.375) / (n + 0.75)))
        edges = center + _NULL_EDGES * 0.5 / np.sqrt(np.maximum(n, 1.0))
        rates = np.sin(np.clip(edges, 1e-9, np.pi / 2 - 1e-6)) ** 2
        # A cell reaches from one rate to the next; the last one to 1, where nothing is tested.
        left_ends = np.column_stack([np.full(len(rates), 1e-18), rates])
        with np.errstate(divide="ignore"):
            self._log_baseline = np.log(baseline_e_value(x, n, left_ends))
        nulls = np.minimum(rates + tolerance[column], 1.0 - 1e-12)[:, :, np.newaxis]
        estimate = np.minimum((x + 0.5) / (n + 1.0) + tolerance[column], 1.0 - 1e-9)
        odds = estimate / (1.0 - estimate) * _ODDS_RATIOS
        alternatives = (odds / (1.0 + odds))[:, np.newaxis, :]
        is_tested = alternatives > nulls
        self._if_event = np.where(is_tested, np.log(alternatives / nulls), 0.0)
        self._if_none = np.where(is_tested, np.log((1 - alternatives) / (1 - nulls)), 0.0)
        self._sums = np.zeros(is_tested.shape)
        level = np.broadcast_to(np.asarray(self.level, dtype=float), events.shape)
        target = _HORIZON_SHARE * level[column] * np.exp(self._log_baseline[:, :-1])
        self._horizon_test = HorizonTest.design(nulls[:, :, 0], target, estimate)
        self.n_rows = np.zeros(len(events), dtype=np.int64)
        self._n_prior = np.full(len(events), -1, dtype=np.int64)
        self.log_evidence = np.full(len(events), -np.inf)
        self.max_log_evidence = np.full(len(events), -np.inf)
        self._weigh()

    def update(self, events: Any, trials: Any) -> None:
        """Add a block of rows to every monitor.

        The size of a block must not depend on its events. A change may be between two blocks.

        Parameters
        ----------
        events, trials : array-like of shape (n_monitors,)
            Events and rows of the block; a monitor without rows in it is left as it is.
        """
        events, trials = np.asarray(events, dtype=np.int64), np.asarray(trials, dtype=np.int64)
        active = np.flatnonzero(trials > 0)
        if not len(active):
            return
        x = events[active, np.newaxis, np.newaxis]
        n = trials[active, np.newaxis, np.newaxis]
        before = np.where(
            self._n_prior[active] < 0, 1.0, remaining_prior(np.maximum(self._n_prior[active], 0))
        )
        now = remaining_prior(self.n_rows[active])
        self._n_prior[active] = self.n_rows[active]
        gains = x * self._if_event[active] + (n - x) * self._if_none[active]
        sums = self._sums[active] + (before - now)[:, np.newaxis, np.newaxis]
        with np.errstate(over="ignore"):
            sums *= np.exp(np.minimum(gains, _MAX_LOG))
        self._sums[active] = np.minimum(sums, _MAX_SUM)
        self._horizon_test.update(active, events[active], trials[active])
        self.n_rows[active] += trials[active]
        self._weigh(active)

    def _weigh(self, active: Any = slice(None)) -> None:
        """Compute the e-process from the sums over alternatives and times of change."""
        n_prior = self._n_prior[active]
        remaining = np.where(n_prior < 0, 1.0, remaining_prior(np.maximum(n_prior, 0)))
        mixture = self._sums[active] @ _ODDS_RATIO_PRIOR + remaining[:, np.newaxis]
        bet = self._horizon_test.capital[active]
        martingale = (1.0 - _HORIZON_SHARE) * mixture + _HORIZON_SHARE * bet
        log_baseline = self._log_baseline[active]
        evidence = np.minimum(
            (log_baseline[:, :-1] + np.log(martingale)).min(axis=1), log_baseline[:, -1]
        )
        self.log_evidence[active] = evidence
        self.max_log_evidence[active] = np.maximum(self.max_log_evidence[active], evidence)

    def state(self) -> dict[str, Any]:
        """Return the state of the stream for JSON; the baseline is not part of it."""
        return {
            "n_rows": self.n_rows.tolist(),
            "n_prior": self._n_prior.tolist(),
            "max_log_evidence": packed(self.max_log_evidence),
            "sums": packed(self._sums),
            "horizon": self._horizon_test.state(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a state that :meth:`state` returned for the same baseline."""
        n_monitors = len(self.n_rows)
        self.n_rows = np.array(state["n_rows"], dtype=np.int64)
        self._n_prior = np.array(state["n_prior"], dtype=np.int64)
        self.max_log_evidence = unpacked(state["max_log_evidence"], (n_monitors,))
        self._sums = unpacked(state["sums"], self._sums.shape)
        self._horizon_test.restore(state["horizon"])
        if not len(self.n_rows) == len(self._n_prior) == n_monitors:
            raise ValueError(
                f"The state must have {n_monitors} monitors, got {len(self.n_rows)}. Use the rules "
                "and the settings that it was made with."
            )
        self._weigh()
