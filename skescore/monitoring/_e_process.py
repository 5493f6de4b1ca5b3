"""Anytime-valid tests that rates of events exceed the rates of a baseline sample.

Each monitor has a baseline of `n` rows with `x` events, and a stream of later rows. The null
hypothesis is that every row of both has an event with the same unknown probability (or, in the
stream, with a smaller one, given the past). An e-process is a nonnegative process whose expectation
is at most 1 at every stopping time under every distribution of the null hypothesis. By Ville's
inequality, it ever exceeds ``1 / alpha`` with a probability of at most `alpha`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skescore.monitoring._horizon import HorizonTest, packed, unpacked

Floats = NDArray[np.float64]

#: Odds ratios of the alternatives to the baseline, and their prior probabilities.
_ODDS_RATIOS = np.array([1.6, 2.25, 3.5, 8.0, 40.0])
_ODDS_RATIO_PRIOR = np.array([0.12, 0.63, 0.15, 0.06, 0.04])
#: Candidate rates under the null hypothesis, in standard errors from the baseline's rate. They are
#: dense where the evidence is smallest, a few standard errors above the baseline.
_NULL_EDGES = np.array(
    [
        *(-40.0, -24.0, -16.0, -12.0, -9.0, -7.0, -5.5, -4.5, -3.6, -2.9, -2.3, -1.8, -1.4, -1.0),
        *(-0.7, -0.45, -0.2),
        *(0.15 * i for i in range(37)),
        *(5.7, 6.0, 6.4, 6.8, 7.3, 8.0, 9.0, 10.0, 11.5, 13.0, 16.0, 20.0, 25.0, 32.0, 42.0),
    ]
)
#: Multiples of the tilts at which the baseline is tested against a candidate rate, and their prior
#: probabilities. The tilt 0 is the e-value 1.
_TILT_FACTORS = np.array([0.0, 1.0, 2.5, 6.0])
_TILT_PRIOR = np.array([0.02, 0.55, 0.38, 0.05])
#: The same for the test with a horizon, whose best tilt is known more precisely.
_HORIZON_TILT_FACTORS = np.array([0.0, 1.0, 2.0, 5.0])
_HORIZON_TILT_PRIOR = np.array([0.02, 0.75, 0.20, 0.03])
#: Prior of the time of change, in rows: a probability of a change before the first row, and a
#: power law for later ones.
_P_AT_START, _TIME_SCALE, _TIME_EXPONENT = 0.4, 50.0, 0.3
#: Share of the capital that is bet on a change at the start, see :class:`HorizonTest`.
_HORIZON_SHARE = 0.7
#: Limits above which evidence is truncated.
_MAX_LOG, _MAX_SUM = 600.0, 1e37
#: Sums are rounded down to single precision, so that rounding never adds evidence.
_ROUND_DOWN = 1.0 - 2.0**-23
#: Relative margin for the rounding of probabilities.
_RESERVE = 1e-8


def remaining_prior(n_rows: Any) -> Floats:
    """Return the prior probability of a change after `n_rows` rows, or of no change.

    Examples
    --------
    >>> remaining_prior([0, 1000]).round(3).tolist()
    [0.6, 0.241]
    """
    later = (1.0 + np.asarray(n_rows, dtype=float) / _TIME_SCALE) ** -_TIME_EXPONENT
    return np.asarray((1.0 - _P_AT_START) * later)


def baseline_e_value(
    events: Any, trials: Any, rates: Floats, tilt: Any, factors: Floats, prior: Floats
) -> Floats:
    """Return the e-value of a baseline sample against candidate rates.

    Parameters
    ----------
    events, trials : array-like of shape (n_monitors, 1)
        Numbers of events and rows of the baseline samples.
    rates : ndarray of shape (n_monitors, n_rates)
        Candidate rates, between 0 and 1.
    tilt : array-like of shape (n_monitors, 1)
        Difference of the log-odds between a candidate rate and the alternative, a smaller rate, in
        units of ``1 / (n p (1 - p))``.
    factors, prior : ndarray
        Multiples of the tilt, and their prior probabilities.

    Returns
    -------
    ndarray of shape (n_monitors, n_rates)
        Mixture of likelihood ratios, whose expectation is 1 if the candidate is the true rate. It
        increases with the candidate rate.

    Notes
    -----
    With a difference t of the log-odds, the logarithm of the likelihood ratio of x events in n rows
    against the rate p is ``-t x - n log(1 - p + p exp(-t))``. It increases with p if t(p) does not
    increase and p t(p) does not decrease. This holds for ``t = c / (n p (1 - p))``, with ``1 / 4``
    instead of ``p (1 - p)`` for p > 1/2.
    """
    events, trials = np.asarray(events, dtype=float), np.asarray(trials, dtype=float)
    variance = np.where(rates < 0.5, rates * (1.0 - rates), 0.25)
    unit = np.asarray(tilt, dtype=float) / (np.maximum(trials, 1.0) * variance)
    total = np.zeros(np.broadcast_shapes(events.shape, rates.shape))
    for factor, weight in zip(factors, prior, strict=True):
        shift = factor * unit
        log_ratio = -shift * events - trials * np.log1p(rates * np.expm1(-shift))
        total += weight * np.exp(np.minimum(log_ratio, _MAX_LOG))
    return total


def _tilts(goal: Floats) -> Floats:
    """Return the best tilt for each alternative; `goal` is the required evidence.

    An alternative with the odds ratio r reaches the goal after ``n = 2 goal / (log(r)**2 p (1 -
    p))`` rows. If the N rows of the baseline and these n rows together have the rate p, the
    log-odds of the baseline alone are smaller by about ``n log(r) / N``. The test is valid for any
    factor; 0.85 only affects how soon it detects a change.
    """
    return np.asarray(0.85 * 2.0 * goal / np.log(_ODDS_RATIOS))


def _horizon_tilt(level: Floats) -> Floats:
    """Return the tilt for which the test with a horizon needs the fewest rows."""
    return np.asarray(np.maximum(-1.7 * np.log(level) - 1.0, 1.0))


@dataclass
class RateMonitors:
    """E-processes that detect increases of rates, vectorized over independent monitors.

    Parameters
    ----------
    events, trials : array-like of shape (n_monitors,)
        Events and rows of the baseline samples. A monitor without baseline rows has no evidence.
    tolerance : array-like of shape (n_monitors,), default=0
        Increase of the rate that is still part of the null hypothesis.
    level : array-like of shape (n_monitors,), default=0.01
        Level of the alarms, for which the e-process is optimized; it is valid at every level.

    Attributes
    ----------
    n_rows : ndarray of shape (n_monitors,)
        Number of rows of the stream.
    log_evidence : ndarray of shape (n_monitors,)
        Logarithm of the e-process.
    max_log_evidence : ndarray of shape (n_monitors,)
        Maximum of `log_evidence` so far.

    Notes
    -----
    For each candidate rate under the null hypothesis, the stream is tested by a mixture of
    likelihood ratios over alternatives and times of change (Shiryaev and Roberts), with prior
    probabilities of the times that sum to one. Seven tenths of the capital are instead bet on the
    number of events at a horizon, for changes at the start. This test martingale is multiplied by
    an e-value of the baseline against the same candidate. The minimum over all candidates is an
    e-process of the composite null hypothesis. Between two grid values, it is bounded from below by
    the test martingale of the larger value and the e-value of the smaller one, so the grid does not
    affect validity.

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
        level = np.broadcast_to(np.asarray(self.level, dtype=float), events.shape)
        column = (slice(None), np.newaxis)
        x, n = events[column].astype(float), trials[column].astype(float)
        center = np.arcsin(np.sqrt((x + 0.375) / (n + 0.75)))
        edges = center + _NULL_EDGES * 0.5 / np.sqrt(np.maximum(n, 1.0))
        rates = np.sin(np.clip(edges, 1e-9, np.pi / 2 - 1e-6)) ** 2
        # A cell extends from one rate to the next; the last one to 1, where nothing is tested.
        left_ends = np.column_stack([np.full(len(rates), 1e-18), rates])
        nulls = np.minimum(rates + tolerance[column], 1.0 - 1e-12)
        estimate = np.minimum((x + 0.5) / (n + 1.0) + tolerance[column], 1.0 - 1e-9)
        self._prepare_mixture(x, n, left_ends, nulls, estimate, -np.log(level)[column])
        self._log_success = _RESERVE - np.log(level)
        e_value = baseline_e_value(
            *(x, n, left_ends, _horizon_tilt(level)[column]),
            *(_HORIZON_TILT_FACTORS, _HORIZON_TILT_PRIOR),
        )
        target = _HORIZON_SHARE * level[column] * (1.0 - _RESERVE) ** 2 * e_value
        # In the last cell, the evidence of the baseline alone has to suffice.
        target = np.where(target[:, -1:] >= 1.0, target[:, :-1], 0.0)
        self._horizon_test = HorizonTest.design(nulls, target, estimate[:, 0], n[:, 0])
        self.n_rows = np.zeros(len(events), dtype=np.int64)
        self._n_prior = np.full(len(events), -1, dtype=np.int64)
        self.log_evidence = np.full(len(events), -np.inf)
        self.max_log_evidence = np.full(len(events), -np.inf)
        self._weigh()

    def _prepare_mixture(
        self, x: Floats, n: Floats, left_ends: Floats, nulls: Floats, estimate: Floats, goal: Floats
    ) -> None:
        """Compute the gains of likelihood ratios, and their weights by the baseline."""
        odds = estimate / (1.0 - estimate) * _ODDS_RATIOS
        alternatives = (odds / (1.0 + odds))[:, np.newaxis, :]
        nulls = nulls[:, :, np.newaxis]
        is_tested = alternatives > nulls
        self._if_event = np.where(is_tested, np.log(alternatives / nulls), 0.0)
        self._if_none = np.where(is_tested, np.log((1 - alternatives) / (1 - nulls)), 0.0)
        weights = [
            weight * baseline_e_value(x, n, left_ends, tilt, _TILT_FACTORS, _TILT_PRIOR)
            for weight, tilt in zip(
                _ODDS_RATIO_PRIOR, _tilts(goal).T[:, :, np.newaxis], strict=True
            )
        ]
        self._weights = np.stack([w[:, :-1] for w in weights], axis=2)
        self._log_last = np.log(sum(w[:, -1] for w in weights))
        self._sums = np.zeros(is_tested.shape, dtype=np.float32)

    def update(self, events: Any, trials: Any) -> None:
        """Add a block of rows to every monitor.

        The size of a block must not depend on its events. Changes may occur between blocks.

        Parameters
        ----------
        events, trials : array-like of shape (n_monitors,)
            Events and rows of the block; a monitor without rows in it does not change.
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
        prior = remaining_prior(self.n_rows[active])
        self._n_prior[active] = self.n_rows[active]
        gains = x * self._if_event[active] + (n - x) * self._if_none[active]
        sums = self._sums[active] + (before - prior)[:, np.newaxis, np.newaxis]
        sums *= np.exp(np.minimum(gains, _MAX_LOG))
        self._sums[active] = np.minimum(sums, _MAX_SUM) * _ROUND_DOWN
        self._horizon_test.update(active, events[active], trials[active])
        self.n_rows[active] += trials[active]
        self._weigh(active)

    def _weigh(self, active: Any = slice(None)) -> None:
        """Compute the e-process from the sums over alternatives and times of change."""
        n_prior = self._n_prior[active]
        remaining = np.where(n_prior < 0, 1.0, remaining_prior(np.maximum(n_prior, 0)))
        mixture = self._sums[active] + remaining[:, np.newaxis, np.newaxis]
        smallest = np.einsum("ijk,ijk->ij", self._weights[active], mixture).min(axis=1)
        evidence = math.log1p(-_HORIZON_SHARE) + np.minimum(
            np.log(smallest), self._log_last[active]
        )
        is_reached = self._horizon_test.is_reached[active]
        bet = np.where(is_reached, self._log_success[active], -np.inf)
        evidence = np.logaddexp(evidence, bet)
        self.log_evidence[active] = evidence
        self.max_log_evidence[active] = np.maximum(self.max_log_evidence[active], evidence)

    def state(self) -> dict[str, Any]:
        """Return the state of the stream as JSON data, without the baseline."""
        return {
            "n_rows": self.n_rows.tolist(),
            "n_prior": self._n_prior.tolist(),
            "max_log_evidence": packed(self.max_log_evidence),
            "sums": packed(self._sums),
            "horizon": self._horizon_test.state(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Restore a result of :meth:`state` for the same baseline."""
        n_monitors = len(self.n_rows)
        self.n_rows = np.array(state["n_rows"], dtype=np.int64)
        self._n_prior = np.array(state["n_prior"], dtype=np.int64)
        self.max_log_evidence = unpacked(state["max_log_evidence"], (n_monitors,))
        self._sums = unpacked(state["sums"], self._sums.shape, np.float32)
        self._horizon_test.restore(state["horizon"])
        if not len(self.n_rows) == len(self._n_prior) == n_monitors:
            raise ValueError(
                f"The state must have {n_monitors} monitors, got {len(self.n_rows)}. Use the rules "
                "and the settings with which it was created."
            )
        self._weigh()
