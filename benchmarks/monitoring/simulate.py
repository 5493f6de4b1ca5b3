"""Simulate false alarms and delays of the monitors of rule lists.

    python benchmarks/monitoring/simulate.py false-alarms --runs 1000
    python benchmarks/monitoring/simulate.py delays --runs 4000
    python benchmarks/monitoring/simulate.py detectors --runs 200     (needs river)

Each command writes a CSV file next to this script; `report.py` writes the page from these files.

Rules have equal shares and rows are independent, so the counts of a block of rows are drawn
directly. All runs are vectorized with :class:`skescore.monitoring.RateMonitors` and the prior
weights of :class:`skescore.monitoring.RuleMonitor`.
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.stats import binom, hypergeom

from skescore.metrics import DecisionCounts
from skescore.monitoring import RateMonitors, RuleBaseline, RuleMonitor, rules_fingerprint
from skescore.rules import Domain, Interval, Rule, RuleSet

FOLDER = Path(__file__).parent
ALPHA = 0.05
N_RULES = (4, 8, 16, 32)
#: Rates of an unchanged list: errors, disagreement with the model, rows outside the domain, and
#: rows with missing values.
RATES = {"error": 0.1, "disagreement": 0.05, "outside": 0.01, "missing": 0.02}
BASELINE_ROWS_PER_RULE = 1000
#: Sizes and numbers of blocks of rows: short blocks first, because most alarms are early.
BLOCKS = ((50, 40), (250, 72), (1000, 80))


def make_rules(n_rules: int) -> RuleSet:
    """Return a list of rules that cover equal shares of rows uniform on [0, 1]."""
    rules = [Rule([Interval(0, upper=(k + 1) / n_rules)], "ab"[k % 2]) for k in range(n_rules - 1)]
    return RuleSet(
        [*rules, Rule([], "ab"[(n_rules - 1) % 2])],
        ["x"],
        task="classification",
        ordered=True,
        domain=Domain((0.0,), (1.0,)),
    )


def draw_counts(
    rng: np.random.Generator, n_rules: int, n_rows: int, n_runs: int
) -> list[np.ndarray]:
    """Draw the counts of a block of unchanged rows with labels, in the order of `DecisionCounts`.

    Each array has the shape (n_runs, n_rules + 1).
    """
    rows = rng.multinomial(n_rows, np.full(n_rules, 1 / n_rules), size=n_runs)
    rows = np.column_stack([rows, np.zeros(n_runs, dtype=rows.dtype)])
    errors, disagreements, outside, missing = (
        rng.binomial(rows, RATES[kind]) for kind in ("error", "disagreement", "outside", "missing")
    )
    return [rows, rows, errors, rows, disagreements, outside, missing]


def delay_labels(
    rng: np.random.Generator, counts: list[np.ndarray], pending: np.ndarray
) -> tuple[list[np.ndarray], np.ndarray]:
    """Drop 30 % of the labels, and delay the others geometrically by 5 blocks on average."""
    pending = pending + rng.binomial(counts[0], 0.7)
    arrived = rng.binomial(pending, 0.2)
    errors = rng.binomial(arrived, RATES["error"])
    return [counts[0], arrived, errors, *counts[3:]], pending - arrived


def counts_per_run(counts: list[np.ndarray]) -> list[DecisionCounts]:
    """Return the counts of each run."""
    return [DecisionCounts(*run) for run in zip(*counts, strict=True)]


def run_unchanged(
    n_rules: int,
    n_runs: int,
    seed: int,
    has_late_labels: bool,
    kinds: tuple[str, ...] | None = None,
) -> np.ndarray:
    """Return for each run whether any monitor of an unchanged list raised an alarm."""
    rng = np.random.default_rng([n_rules, seed, has_late_labels])
    rules = make_rules(n_rules)
    baselines = counts_per_run(draw_counts(rng, n_rules, BASELINE_ROWS_PER_RULE * n_rules, n_runs))
    baseline = RuleBaseline(rules_fingerprint(rules), baselines[0])
    rule_monitor = RuleMonitor(rules, baseline, kinds=kinds)
    events, trials = rule_monitor._series(baselines)
    shape = events.shape
    tolerance = [[rule_monitor.tolerances[m.kind]] for m in rule_monitor._monitors]
    level = [[ALPHA * m.prior] for m in rule_monitor._monitors]
    monitors = RateMonitors(
        events.ravel(),
        trials.ravel(),
        np.broadcast_to(tolerance, shape).ravel(),
        np.broadcast_to(level, shape).ravel(),
    )
    is_alarmed = np.zeros(n_runs, dtype=bool)
    pending = np.zeros((n_runs, n_rules + 1), dtype=np.int64)
    for n_rows, n_blocks in BLOCKS:
        for _ in range(n_blocks):
            counts = draw_counts(rng, n_rules, n_rows, n_runs)
            if has_late_labels:
                counts, pending = delay_labels(rng, counts, pending)
            events, trials = rule_monitor._series(counts_per_run(counts))
            monitors.update(events.ravel(), trials.ravel())
            weighted = rule_monitor._log_prior[:, np.newaxis] + monitors.log_evidence.reshape(shape)
            # The weighted mean raises an alarm whenever a single monitor does by the union bound.
            is_alarmed |= np.logaddexp.reduce(weighted, axis=0) >= -math.log(ALPHA)
    return is_alarmed


def simulate_false_alarms(n_runs: int, chunk: int = 20, *, resume: bool = False) -> None:
    """Write the frequency of false alarms over 100,000 rows.

    Without other kinds, the monitors of errors use the whole 5 %. Runs are simulated in chunks.
    """
    lines: list[dict] = []
    if resume:
        lines = pd.read_csv(FOLDER / "false_alarms.csv").to_dict(orient="records")
    finished = {(line["monitors"], line["labels"], line["rules"]) for line in lines}
    scenarios = [
        (kinds, has_late_labels, n_rules)
        for kinds in (("error",), None)
        for has_late_labels in (False, True)
        for n_rules in N_RULES
    ]
    for kinds, has_late_labels, n_rules in scenarios:
        names = (
            "errors" if kinds else "all kinds",
            "late, 30 % missing" if has_late_labels else "at once",
        )
        if (*names, n_rules) in finished:
            continue
        alarms: list[bool] = []
        for i in range(0, n_runs, chunk):
            size = min(chunk, n_runs - i)
            alarms += run_unchanged(n_rules, size, i, has_late_labels, kinds).tolist()
        lines.append(
            {
                "monitors": names[0],
                "labels": names[1],
                "rules": n_rules,
                "runs": n_runs,
                "rows": sum(a * b for a, b in BLOCKS),
                "alarms": sum(alarms),
            }
        )
        print(lines[-1], flush=True)
        pd.DataFrame(lines).to_csv(FOLDER / "false_alarms.csv", index=False)


def fixed_horizon(n_rules: int, power: float) -> int:
    """Return the fewest rows with which a binomial test of .1 against .2 has the power.

    The test knows both rates and the time of the change, and has the level 5 % divided by the
    number of rules.
    """
    for n in range(1, 10_000):
        critical = binom.ppf(1 - ALPHA / n_rules, n, 0.1) + 1
        if binom.sf(critical - 1, n, 0.2) >= power:
            return n
    raise AssertionError("no sample size suffices")


def fixed_two_sample_horizon(n_rules: int, n_baseline: int, power: float = 0.5) -> int:
    """Return the fewest rows for the power with held-out rows instead of a known rate.

    The test is Fisher's test with randomization, the uniformly most powerful unbiased test. It
    knows the time of the change and the number of rows to wait for.
    """
    events = np.arange(n_baseline + 1)
    p_baseline = binom.pmf(events, n_baseline, 0.1)
    events, p_baseline = events[p_baseline > 1e-12], p_baseline[p_baseline > 1e-12]
    for n in range(fixed_horizon(n_rules, power) - 15, 10_000):
        later = np.arange(n + 1)
        total = np.arange(events[-1] + n + 1)
        critical = hypergeom.isf(ALPHA / n_rules, n_baseline + n, total, n)
        beyond = hypergeom.sf(critical, n_baseline + n, total, n)
        at_critical = hypergeom.pmf(critical, n_baseline + n, total, n)
        share = (ALPHA / n_rules - beyond) / at_critical
        sums = events[:, np.newaxis] + later
        rejects = (later > critical[sums]) + share[sums] * (later == critical[sums])
        if p_baseline @ rejects @ binom.pmf(later, n, 0.2) >= power:
            return n
    raise AssertionError("no sample size suffices")


def informed_sequential_median(n_rules: int, n_runs: int = 100_000) -> float:
    """Return the median delay of Wald's test, which knows both rates and the time of the change."""
    is_event = np.random.default_rng(n_rules).random((n_runs, 500)) < 0.2
    gains = np.where(is_event, math.log(0.2 / 0.1), math.log(0.8 / 0.9))
    is_reached = np.cumsum(gains, axis=1) >= math.log(n_rules / ALPHA)
    return float(np.median(np.where(is_reached.any(axis=1), is_reached.argmax(axis=1) + 1, np.inf)))


def simulate_delays(n_runs: int) -> None:
    """Write the median number of rows of a rule from a change of its errors to its alarm."""
    lines = []
    for n_rules in N_RULES:
        rules = make_rules(n_rules)
        rng = np.random.default_rng(n_rules)
        (counts,) = counts_per_run(draw_counts(rng, n_rules, 1000 * n_rules, 1))
        layout = RuleMonitor(rules, RuleBaseline(rules_fingerprint(rules), counts))
        log_prior = layout._log_prior[0]
        sequential = informed_sequential_median(n_rules)
        two_sample = {n: fixed_two_sample_horizon(n_rules, n) for n in (500, 1000, 3000, 10_000)}
        for n_baseline in (500, 1000, 3000, 10_000):
            for n_before in (0, 1000, 10_000):
                delay = simulate_delay(rng, n_runs, n_baseline, n_before, log_prior)
                lines.append(
                    {
                        "rules": n_rules,
                        "baseline_rows": n_baseline,
                        "rows_before": n_before,
                        "runs": n_runs,
                        "median": float(np.median(delay)),
                        "lower_quartile": float(np.quantile(delay, 0.25)),
                        "upper_quartile": float(np.quantile(delay, 0.75)),
                        "fixed_50": fixed_horizon(n_rules, 0.5),
                        "fixed_80": fixed_horizon(n_rules, 0.8),
                        "fixed_two_sample": two_sample[n_baseline],
                        "informed_sequential": sequential,
                    }
                )
                print(lines[-1], flush=True)
        pd.DataFrame(lines).to_csv(FOLDER / "delays.csv", index=False)


def simulate_delay(
    rng: np.random.Generator, n_runs: int, n_baseline: int, n_before: int, log_prior: float
) -> np.ndarray:
    """Return the rows of the rule from a change of its error rate from .1 to .2 to the alarm."""
    monitors = RateMonitors(
        rng.binomial(n_baseline, 0.1, n_runs),
        np.full(n_runs, n_baseline),
        level=ALPHA * math.exp(log_prior),
    )
    for _ in range(n_before // 50):
        monitors.update(rng.binomial(50, 0.1, n_runs), np.full(n_runs, 50))
    delay = np.full(n_runs, np.inf)
    row = 0
    while np.isinf(delay).mean() > 0.2 and row < 3000:
        size = 1 if row < 250 else 5  # rows of the rule between two checks
        row += size
        monitors.update(rng.binomial(size, 0.2, n_runs), np.full(n_runs, size))
        is_new = np.isinf(delay) & (log_prior + monitors.log_evidence >= -math.log(ALPHA))
        delay[is_new] = row
    return delay


class RepeatedTests:
    """Detector that compares all rows so far with the baseline by z-tests every 100 rows."""

    def __init__(self, n_rules: int, baseline: np.ndarray) -> None:
        from scipy.stats import norm

        self._critical = norm.isf(ALPHA / n_rules)
        self._x0, self._n0 = int(baseline.sum()), len(baseline)
        self._x = self._n = 0
        self.drift_detected = False

    def update(self, x: int) -> None:
        """Add a row."""
        self._x, self._n = self._x + x, self._n + 1
        self.drift_detected = False
        if self._n % 100 == 0:
            pooled = (self._x + self._x0) / (self._n + self._n0)
            error = math.sqrt(pooled * (1 - pooled) * (1 / self._n + 1 / self._n0))
            difference = self._x / self._n - self._x0 / self._n0
            self.drift_detected = difference > self._critical * error


def make_detectors(n_rules: int, baseline: np.ndarray) -> dict:
    """Return detectors with default settings after an update with the baseline."""
    from river import drift

    detectors = {
        "river ADWIN": drift.ADWIN(),
        "river ADWIN, delta = .05 / rules": drift.ADWIN(delta=ALPHA / n_rules),
        "river DDM": drift.binary.DDM(),
        "river Page-Hinkley": drift.PageHinkley(mode="up"),
    }
    for detector in detectors.values():
        for x in baseline.tolist():
            detector.update(x)
    detectors["repeated z-tests"] = RepeatedTests(n_rules, baseline)
    return detectors


def simulate_detectors(n_runs: int, n_rules: int = 4, n_rows: int = 100_000) -> None:
    """Write false alarms and delays of other detectors on the errors of each rule."""
    alarms: dict[str, list[bool]] = {}
    delay: dict[str, list[float]] = {}
    for run in range(n_runs):
        rng = np.random.default_rng([7, run])
        is_alarmed: dict[str, bool] = {}
        for _ in range(n_rules):
            baseline = (rng.random(BASELINE_ROWS_PER_RULE) < 0.1).astype(int)
            stream = (rng.random(n_rows // n_rules) < 0.1).astype(int).tolist()
            for name, detector in make_detectors(n_rules, baseline).items():
                is_alarmed[name] = is_alarmed.get(name, False) or first_alarm(
                    detector, stream
                ) < len(stream)
        baseline = (rng.random(BASELINE_ROWS_PER_RULE) < 0.1).astype(int)
        changed_stream = (rng.random(3000) < 0.2).astype(int).tolist()
        for name, detector in make_detectors(n_rules, baseline).items():
            alarms.setdefault(name, []).append(is_alarmed[name])
            delay.setdefault(name, []).append(first_alarm(detector, changed_stream) + 1)
        lines = [
            {
                "detector": name,
                "rules": n_rules,
                "runs": run + 1,
                "rows": n_rows,
                "alarms": sum(alarms[name]),
                "median_delay": float(np.median(delay[name])),
                "never": sum(d > 3000 for d in delay[name]),
            }
            for name in alarms
        ]
        if run % 20 == 19:
            print(lines, flush=True)
            pd.DataFrame(lines).to_csv(FOLDER / "detectors.csv", index=False)


def first_alarm(detector: object, stream: list[int]) -> int:
    """Return the index of the first alarm, or the length of the stream if there is none."""
    for index, x in enumerate(stream):
        detector.update(x)  # type: ignore[attr-defined]
        if detector.drift_detected:  # type: ignore[attr-defined]
            return index
    return len(stream)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("part", choices=("false-alarms", "delays", "detectors"))
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--resume", action="store_true", help="false-alarms: add missing lines")
    options = parser.parse_args()
    if options.part == "false-alarms":
        simulate_false_alarms(options.runs, resume=options.resume)
    else:
        {"delays": simulate_delays, "detectors": simulate_detectors}[options.part](options.runs)
