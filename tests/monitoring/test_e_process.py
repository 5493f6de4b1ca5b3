"""Anytime-valid tests of rates, compared with exact probabilities and a plain loop."""

from __future__ import annotations

import math
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp
from scipy.stats import binom

from skescore.monitoring import RateMonitors
from skescore.monitoring import _e_process as kernel
from skescore.monitoring._horizon import HorizonTest

LEVEL = 0.2


def baseline_e_value_by_loops(
    events: int, trials: int, rate: float, tilt: float, factors, prior
) -> float:
    """Divide the probabilities of the baseline under an alternative and a candidate rate."""
    variance = rate * (1 - rate) if rate < 0.5 else 0.25
    total = 0.0
    for factor, weight in zip(factors, prior, strict=True):
        shift = factor * tilt / (max(trials, 1) * variance)
        if shift > 700:  # the alternative is the rate 0
            total += weight * (0.0 if events else (1 - rate) ** -trials)
            continue
        odds = rate / (1 - rate) * math.exp(-shift)
        other = odds / (1 + odds)
        log_ratio = trials * (math.log1p(-other) - math.log1p(-rate))
        log_ratio += events * (math.log(other / rate) - math.log1p(-other) + math.log1p(-rate))
        total += weight * math.exp(log_ratio)
    return total


def log_evidence_by_loops(events: int, trials: int, blocks: list[tuple[int, int]]) -> float:
    """Sum over times of change and alternatives for each candidate, one by one."""
    rate = math.asin(math.sqrt((events + 0.375) / (trials + 0.75)))
    edges = []
    for z in kernel._NULL_EDGES:
        angle = rate + z * 0.5 / math.sqrt(max(trials, 1))
        edges.append(math.sin(min(max(angle, 1e-9), math.pi / 2 - 1e-6)) ** 2)
    estimate = (events + 0.5) / (trials + 1)
    starts = [0]
    for _, n in blocks:
        starts.append(starts[-1] + n)
    prior = [1 - kernel.remaining_prior(0)]
    prior += [
        kernel.remaining_prior(one) - kernel.remaining_prior(other)
        for one, other in pairwise(starts[:-1])
    ]
    values = []
    for left, null in zip([1e-18, *edges], [*edges, None], strict=True):
        logs = []
        for ratio, weight in zip(kernel._ODDS_RATIOS, kernel._ODDS_RATIO_PRIOR, strict=True):
            tilt = 0.85 * 2 * math.log(1 / LEVEL) / math.log(ratio)
            e_value = baseline_e_value_by_loops(
                *(events, trials, left, tilt, kernel._TILT_FACTORS, kernel._TILT_PRIOR)
            )
            start = math.log(weight) + math.log(e_value)
            if null is None:
                logs.append(start)
                continue
            logs.append(start + math.log(1 - sum(prior)))
            odds = estimate / (1 - estimate) * ratio
            rate = max(odds / (1 + odds), null)
            for change, p_change in enumerate(prior):
                gains = [
                    x * math.log(rate / null) + (n - x) * math.log((1 - rate) / (1 - null))
                    for x, n in blocks[change:]
                ]
                logs.append(start + math.log(p_change) + sum(gains))
        values.append(math.log(1 - kernel._HORIZON_SHARE) + logsumexp(logs))
    return min(values)


def tail(critical: int, n: int, rate: float) -> float:
    """Sum the probabilities of at least `critical` events in n rows."""
    return sum(
        math.comb(n, k) * rate**k * (1 - rate) ** (n - k) for k in range(max(critical, 0), n + 1)
    )


@pytest.mark.parametrize(("events", "trials"), [(0, 5), (3, 40), (100, 1000), (7, 7)])
def test_rate_monitors_equal_a_loop(events: int, trials: int) -> None:
    blocks = [(1, 2), (0, 3), (4, 4), (2, 9), (30, 40)]
    monitors = RateMonitors([events], [trials], level=LEVEL)
    monitors._horizon_test._horizon[:] = 0  # its bet has its own tests
    for number, (x, n) in enumerate(blocks, 1):
        monitors.update([x], [n])
        expected = log_evidence_by_loops(events, trials, blocks[:number])
        assert monitors.log_evidence[0] == pytest.approx(expected, abs=1e-5)
        assert monitors.log_evidence[0] <= expected + 1e-12


@pytest.mark.parametrize("rate", [0.01, 0.1, 0.3, 0.5, 0.8])
def test_baseline_e_value_has_mean_one(rate: float) -> None:
    x = np.arange(31)[:, np.newaxis]
    values = kernel.baseline_e_value(
        *(x, np.full_like(x, 30), np.full(x.shape, rate), 9.0),
        *(kernel._TILT_FACTORS, kernel._TILT_PRIOR),
    )
    assert binom.pmf(x, 30, rate).T @ values == pytest.approx(1.0)


def test_baseline_e_value_grows_with_the_rate() -> None:
    rates = np.linspace(1e-6, 1 - 1e-6, 997)[np.newaxis]
    for x in (0, 1, 7, 30):
        values = kernel.baseline_e_value(
            [[x]], [[30]], rates, 9.0, kernel._TILT_FACTORS, kernel._TILT_PRIOR
        )[0]
        assert (np.diff(values) >= -1e-12 * values[:-1]).all()


@pytest.mark.parametrize("rate", [0.02, 0.1, 0.5, 0.9])
@pytest.mark.parametrize("trials", [0, 1, 7])
def test_rate_monitors_rarely_give_false_alarms(rate: float, trials: int) -> None:
    """All baselines and all streams of eight rows have their exact probability."""
    length = 8
    streams = np.array(list(product([0, 1], repeat=length)))
    stream_p = rate ** streams.sum(1) * (1 - rate) ** (length - streams.sum(1))
    mean_e, p_alarm = np.zeros(length), 0.0
    for events in range(trials + 1):
        p = stream_p * binom.pmf(events, trials, rate)
        monitors = RateMonitors(
            np.full(len(streams), events), np.full(len(streams), trials), level=1 / 3
        )
        for row in range(length):
            monitors.update(streams[:, row], np.ones(len(streams), dtype=int))
            mean_e[row] += p @ np.exp(monitors.log_evidence)
        p_alarm += p @ (monitors.max_log_evidence >= math.log(3))
    assert mean_e.max() <= 1 + 1e-12
    assert p_alarm <= 1 / 3


def test_rate_monitors_continue_from_their_state() -> None:
    rng = np.random.default_rng(0)
    events, trials = rng.binomial(50, 0.2, 6), np.full(6, 50)
    one, other = RateMonitors(events, trials), RateMonitors(events, trials)
    for _ in range(20):
        n = rng.integers(0, 5, 6)
        x = rng.binomial(n, 0.4)
        one.update(x, n)
        other.update(x, n)
        copy = RateMonitors(events, trials)
        copy.restore(other.state())
        other = copy
    np.testing.assert_array_equal(one.log_evidence, other.log_evidence)
    assert one.state() == other.state()


def test_monitor_without_baseline_has_no_evidence() -> None:
    monitors = RateMonitors([0], [0])
    for _ in range(50):
        monitors.update([20], [20])
    assert monitors.max_log_evidence[0] <= 0.0


def test_rate_monitors_include_tolerance_in_null_hypothesis() -> None:
    monitors = RateMonitors([1000] * 2, [10_000] * 2, [0.0, 0.1])
    for _ in range(100):
        monitors.update([18] * 2, [100] * 2)
    assert monitors.log_evidence[0] > 15
    assert monitors.max_log_evidence[1] < 1


@pytest.mark.parametrize("sizes", [[1] * 9, [3, 1, 2, 5], [20], [4, 8]])
@pytest.mark.parametrize("rates", [[0.05], [0.05, 0.2, 0.6]])
def test_horizon_test_keeps_its_targets(sizes: list[int], rates: list[float]) -> None:
    """All numbers of events in all blocks have their exact probability."""
    grid = np.array(list(product(*(range(n + 1) for n in sizes))))
    shape = (len(grid), len(rates))
    for horizon, critical in ((7, 3), (4, 2), (9, 1), (8, 8)):
        target = np.array([tail(critical, horizon, rate) for rate in rates])
        test = HorizonTest(
            np.broadcast_to(rates, shape).copy(),
            np.broadcast_to(target, shape).copy(),
            np.full(len(grid), critical),
            np.full(len(grid), horizon),
        )
        for block, n in enumerate(sizes):
            test.update(np.arange(len(grid)), grid[:, block], np.full(len(grid), n))
        for rate, limit in zip(rates, target, strict=True):
            for true_rate in (rate, 0.7 * rate):
                p = np.prod(binom.pmf(grid, sizes, true_rate), axis=1)
                assert p @ test.is_reached <= limit * (1 + 1e-9)
        if len(sizes) == 9:  # row by row, the whole target is used
            within = grid[:, :horizon].sum(axis=1) >= critical
            np.testing.assert_array_equal(test.is_reached, within)


@settings(max_examples=60)
@given(
    trials=st.integers(20, 5000),
    share=st.floats(0, 1),
    level=st.floats(1e-6, 0.3),
    tolerance=st.sampled_from([0.0, 0.02]),
)
def test_horizon_is_the_longest_within_the_targets(
    trials: int, share: float, level: float, tolerance: float
) -> None:
    monitors = RateMonitors([round(share * trials)], [trials], tolerance, level)
    test = monitors._horizon_test
    horizon, critical = int(test._horizon[0]), int(test._critical[0])
    if horizon == 0:
        return
    assert horizon >= critical
    success = binom.sf(critical - 1, horizon, test._rates[0])
    assert (success <= test._target[0] * (1 + 1e-9)).all()
    longer = binom.sf(critical - 1, horizon + 1, test._rates[0])
    estimate = (round(share * trials) + 0.5) / (trials + 1) + tolerance
    assert (longer > test._target[0]).any() or horizon + 1 > critical / estimate


@pytest.mark.slow
def test_horizon_bet_detects_a_doubled_rate_sooner() -> None:
    """Median delays of the evidence with and without the bet are compared."""
    rng = np.random.default_rng(0)
    delays = []
    streams = rng.random((400, 400)) < 0.2
    for share in (kernel._HORIZON_SHARE, 0.0):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(kernel, "_HORIZON_SHARE", share)
            baseline = np.random.default_rng(1).binomial(3000, 0.1, 400)
            monitors = RateMonitors(baseline, np.full(400, 3000), level=0.01)
            delay = np.full(400, 401)
            for row in range(400):
                monitors.update(streams[:, row], np.ones(400, dtype=int))
                is_new = (delay > 400) & (monitors.log_evidence >= math.log(100))
                delay[is_new] = row + 1
        delays.append(np.median(delay))
    assert delays[0] < delays[1]
    assert delays[0] <= 95
