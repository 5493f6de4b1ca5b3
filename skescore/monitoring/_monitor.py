"""Monitor of a rule list: rates of rules that changed, with time and size of the change."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from skescore._validation import check_choice, check_number
from skescore.metrics import DecisionCounts, compare_labels, decide_rows, has_default
from skescore.monitoring._baseline import RuleBaseline, rate_interval
from skescore.monitoring._e_process import RateMonitors
from skescore.monitoring._history import ChangeEstimate, History, HistoryEntry, estimate_change
from skescore.rules import RuleSet, as_ruleset

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["MONITOR_KINDS", "MonitorKind", "RuleChange", "RuleMonitor"]

FORMAT, VERSION = "skescore rule monitor", 2
#: Minimum number of rows of a block, and maximum number of blocks of an update. The order of rows
#: within a block is not used.
_MIN_BLOCK, _MAX_BLOCKS = 50, 200
#: Share of the false alarm probability of each kind for the monitor of all rows.
_ALL_ROWS_SHARE = 0.04


@dataclass(frozen=True)
class MonitorKind:
    """A rate that is monitored for each rule.

    Attributes
    ----------
    name : str
        Name of the kind.
    events : str
        Name of the count of events.
    trials : str or None
        Name of the count of rows; None for all rows of the list.
    decreases : bool
        Whether decreases are monitored too.
    prior : float
        Relative share of the false alarm probability.
    tolerance : float
        Default increase of the rate that is not reported.
    meaning : str
        Description of the rate.
    action : str
        Recommended action after a change.
    """

    name: str
    events: str
    trials: str | None
    decreases: bool
    prior: float
    tolerance: float
    meaning: str
    action: str


#: Kinds of monitors by name.
MONITOR_KINDS: Mapping[str, MonitorKind] = {
    kind.name: kind
    for kind in (
        MonitorKind(
            "error",
            "n_errors",
            "n_labeled",
            False,
            0.9,
            0.0,
            "share of its labeled rows that it predicts wrongly",
            "retrain the model on rows since the change, then revise the rules on these rows",
        ),
        MonitorKind(
            "disagreement",
            "n_disagreements",
            "n_queried",
            False,
            0.04,
            0.0,
            "share of its rows that the model predicts differently",
            "revise the rules with the current model",
        ),
        MonitorKind(
            "share",
            "n_rows",
            None,
            True,
            0.03,
            0.02,
            "share of all rows that it decides",
            "find out whether the rows or the way they are recorded changed, without waiting for "
            "labels",
        ),
        MonitorKind(
            "outside",
            "n_outside",
            "n_rows",
            False,
            0.015,
            0.02,
            "share of its rows with values outside of the domain",
            "check how values are recorded; if the values are right, collect labels for these "
            "rows, because neither the model nor the rules have seen such values",
        ),
        MonitorKind(
            "missing",
            "n_missing",
            "n_rows",
            False,
            0.015,
            0.02,
            "share of its rows that lack a value that rules use",
            "repair the source of the missing values",
        ),
    )
}


@dataclass(frozen=True)
class RuleChange:
    """Change detected by a monitor.

    Attributes
    ----------
    kind : str
        Kind of the monitor, see :data:`MONITOR_KINDS`; "any" if only the joint evidence of all
        monitors suffices.
    rule : str
        "rule 1", "rule 2", ..., "no rule" or "all rows".
    text : str
        Rule as text.
    direction : str
        "increase" or "decrease".
    baseline_rate, rate : float
        Rates on the held-out rows, and since the change.
    baseline_interval, rate_interval, difference_interval : tuple of float
        95 % confidence interval of `baseline_rate`, and 95 % confidence sequences of `rate` and of
        the difference; the sequences hold jointly for all times and all times of change.
    since, earliest, latest, detected : dict
        Batch, time and row of the estimated change, of its plausible range, and of its detection.
    false_alarm_probability : float
        Bound on the probability that any monitor of unchanged rules reaches this much evidence.
    n_rows : int
        Number of rows since the change.
    has_returned : bool
        Whether the rate since the change is no longer above (or below) the baseline rate.
    action : str
        Recommended action.
    """

    kind: str
    rule: str
    text: str
    direction: str
    baseline_rate: float
    rate: float
    baseline_interval: tuple[float, float]
    rate_interval: tuple[float, float]
    difference_interval: tuple[float, float]
    since: dict[str, Any]
    earliest: dict[str, Any]
    latest: dict[str, Any]
    detected: dict[str, Any]
    false_alarm_probability: float
    n_rows: int
    has_returned: bool
    action: str

    def to_dict(self) -> dict[str, Any]:
        """Return the change as JSON data."""
        return asdict(self)

    def __str__(self) -> str:
        """Describe the change in a sentence."""
        if self.kind == "any":
            return (
                "all rows: together, the monitors show a change that no single one shows "
                f"(false alarm probability at most {self.false_alarm_probability:.2g})"
            )
        low, high = self.rate_interval
        return (
            f"{self.rule}: {self.kind} {self.baseline_rate:.3g} -> {self.rate:.3g} "
            f"[{low:.3g}, {high:.3g}] since row {self.since['row']} "
            f"{'with a return to normal ' if self.has_returned else ''}"
            f"(batch {self.since['batch']}), "
            f"false alarm probability at most {self.false_alarm_probability:.2g}"
        )


def _block_size(n_rows: int) -> int:
    return max(_MIN_BLOCK, math.ceil(n_rows / _MAX_BLOCKS))


@dataclass(frozen=True)
class _Monitor:
    """One rate of one group of rows in one direction."""

    kind: str
    group: int
    is_decrease: bool
    prior: float


class RuleMonitor:
    """Monitor that detects when rules become less accurate, with a guarantee on false alarms.

    Parameters
    ----------
    rules : RuleSet or estimator
        Rules, one of which predicts each row.
    baseline : RuleBaseline
        Held-out counts of the same rules.
    alpha : float, default=0.05
        Largest probability that any monitor of unchanged rules ever raises an alarm.
    kinds : sequence of str, optional
        Kinds of monitors, see :data:`MONITOR_KINDS`; by default all that the baseline permits.
    tolerances : mapping of str to float, optional
        Changes of rates, by kind, that are not reported. By default 0 for errors and disagreement
        and 0.02 for the others.

    Attributes
    ----------
    n_rows : int
        Number of rows so far.
    n_labels : int
        Number of labels so far.

    Notes
    -----
    If the rows of the baseline and of the stream are independent and identically distributed, the
    probability of an alarm at any time is at most `alpha`. More generally, it suffices that, given
    the past, no row of the stream has a larger probability of an event than the independent rows of
    the baseline. Labels may arrive late or never, as long as this does not depend on whether the
    rule is right. Alarms remain until a new baseline is created.

    The guarantee is a union bound: each monitor has a share of `alpha`. Its evidence is an
    e-process [1]_ [2]_ that mixes over sizes and times of change and includes the uncertainty of
    the baseline. The weighted mean of all e-processes is one more test, for changes that no single
    monitor shows; it does not increase the probability of a false alarm.

    References
    ----------
    .. [1] A. Ramdas, P. Grünwald, V. Vovk and G. Shafer, "Game-theoretic statistics and safe
       anytime-valid inference", Statistical Science 38(4), 2023.
    .. [2] J. Shin, A. Ramdas and A. Rinaldo, "E-detectors: a nonparametric framework for sequential
       change detection", New England Journal of Statistics in Data Science 2(2), 2024.

    Examples
    --------
    >>> import numpy as np
    >>> from skescore.monitoring import RuleBaseline, RuleMonitor
    >>> from skescore.rules import Interval, Rule, RuleSet
    >>> rules = RuleSet(
    ...     [Rule([Interval(0, upper=0.5)], "no"), Rule([], "yes")], ["x"],
    ...     task="classification", ordered=True,
    ... )
    >>> rng = np.random.default_rng(0)
    >>> X, noise = rng.uniform(size=(2000, 1)), rng.uniform(size=2000)
    >>> y = np.where((X[:, 0] > 0.5) ^ (noise < 0.1), "yes", "no")
    >>> monitor = RuleMonitor(rules, RuleBaseline.from_rows(rules, X[:1000], y[:1000]))
    >>> monitor.update(X[1000:], y[1000:])
    []
    >>> changes = monitor.update(X, np.full(2000, "no"))
    >>> changes[0].rule, changes[0].kind, changes[0].since["row"]
    ('rule 2', 'error', 1001)
    """

    def __init__(
        self,
        rules: Any,
        baseline: RuleBaseline,
        *,
        alpha: float = 0.05,
        kinds: Sequence[str] | None = None,
        tolerances: Mapping[str, float] | None = None,
    ) -> None:
        self.ruleset: RuleSet = as_ruleset(rules)
        self.ruleset.check_one_rule_per_row("Monitoring")
        baseline.check_rules(self.ruleset)
        self.baseline = baseline
        self.alpha = check_number("alpha", alpha, above=0, below=1)
        self.kinds = self._checked_kinds(kinds)
        self.tolerances = {name: MONITOR_KINDS[name].tolerance for name in self.kinds}
        for name, value in (tolerances or {}).items():
            check_choice("tolerances", name, self.kinds)
            self.tolerances[name] = check_number(f"tolerances[{name!r}]", value, 0, 1)
        self._monitors = list(self._make_monitors())
        events, trials = self._series([baseline.counts])
        self._rates = RateMonitors(
            events[:, 0],
            trials[:, 0],
            [self.tolerances[m.kind] for m in self._monitors],
            [self.alpha * m.prior for m in self._monitors],
        )
        with np.errstate(divide="ignore"):
            self._log_prior = np.log([m.prior for m in self._monitors])
        self._max_log_mean = -math.inf
        self._history = History()
        self._alarms: dict[int, dict[str, Any]] = {}
        self.n_rows = self.n_labels = self._n_blocks = 0

    def _checked_kinds(self, kinds: Sequence[str] | None) -> tuple[str, ...]:
        available = self._available_kinds()
        if kinds is None:
            return available
        for name in kinds:
            check_choice("kinds", name, MONITOR_KINDS)
            if name not in available:
                raise ValueError(
                    f"kinds contains {name!r}, but the baseline permits only "
                    f"{', '.join(available)}. Create a baseline with labels or model predictions, "
                    "or of rules with a domain."
                )
        if not kinds:
            raise ValueError(f"kinds must name at least one kind, got {kinds!r}.")
        return tuple(name for name in available if name in kinds)

    def _available_kinds(self) -> tuple[str, ...]:
        counts = self.baseline.counts
        is_available = {
            "error": counts.n_labeled.sum() > 0,
            "disagreement": counts.n_queried.sum() > 0,
            "share": True,
            "outside": self.ruleset.domain is not None,
            "missing": len(self.ruleset.used_features) > 0,
        }
        return tuple(name for name in MONITOR_KINDS if is_available[name])

    def _make_monitors(self) -> Iterable[_Monitor]:
        """Yield monitors; their prior weights sum to one."""
        total = sum(MONITOR_KINDS[name].prior for name in self.kinds)
        all_rows = len(self.ruleset) + 1
        for name in self.kinds:
            kind = MONITOR_KINDS[name]
            prior = kind.prior / total
            if kind.trials is None:
                for group in range(all_rows):
                    for is_decrease in (False, True):
                        yield _Monitor(name, group, is_decrease, prior / (2 * all_rows))
                continue
            groups = np.flatnonzero(getattr(self.baseline.counts, kind.trials)).tolist()
            rule_share = 1 - _ALL_ROWS_SHARE if len(groups) > 1 else 1.0
            for group in groups:
                yield _Monitor(name, group, False, prior * rule_share / len(groups))
            if len(groups) > 1:
                yield _Monitor(name, all_rows, False, prior * _ALL_ROWS_SHARE)

    def _by_kind(self, counts: Sequence[DecisionCounts]) -> dict[str, list[np.ndarray[Any, Any]]]:
        """Return events and trials of each kind, of shape (n_rules + 2, n_counts)."""
        by_kind = {}
        for name in self.kinds:
            kind = MONITOR_KINDS[name]
            events = np.array([getattr(c, kind.events) for c in counts])
            totals = [np.full_like(c.n_rows, c.n_rows.sum()) for c in counts]
            trials = np.array(
                totals if kind.trials is None else [getattr(c, kind.trials) for c in counts]
            )
            by_kind[name] = [np.column_stack([v, v.sum(axis=1)]).T for v in (events, trials)]
        return by_kind

    def _series(
        self, counts: Sequence[DecisionCounts]
    ) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        """Return events and trials of every monitor, each of shape (n_monitors, n_counts)."""
        by_kind = self._by_kind(counts)
        events = np.array(
            [
                (by_kind[m.kind][1] - by_kind[m.kind][0] if m.is_decrease else by_kind[m.kind][0])[
                    m.group
                ]
                for m in self._monitors
            ]
        )
        return events, np.array([by_kind[m.kind][1][m.group] for m in self._monitors])

    def update(
        self,
        X: Any,
        y: Any = None,
        *,
        model_predictions: Any = None,
        batch: str | None = None,
        time: str = "",
    ) -> list[RuleChange]:
        """Add rows in the order in which they arrived.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_rows, n_features)
            The rows.
        y : array-like of shape (n_rows,), optional
            Labels; None and NaN mark labels that are not known yet.
        model_predictions : array-like of shape (n_rows,), optional
            Predictions of the model.
        batch : str, optional
            Name of the batch; by default its number.
        time : str, default=""
            Arrival time of the rows, for reports.

        Returns
        -------
        list of RuleChange
            New alarms.
        """
        decisions = decide_rows(
            self.ruleset,
            X,
            y,
            model_predictions=model_predictions,
            error_tolerances=self.baseline.error_tolerances,
            model_tolerances=self.baseline.model_tolerances,
        )
        n_rows = len(decisions.rule)
        size = _block_size(n_rows)
        blocks = [decisions.counts(slice(i, i + size)) for i in range(0, n_rows, size)]
        return self.update_counts(blocks, batch=batch, time=time)

    def update_counts(
        self,
        blocks: DecisionCounts | Iterable[DecisionCounts],
        *,
        batch: str | None = None,
        time: str = "",
    ) -> list[RuleChange]:
        """Add counts of rows, as one block or as several blocks in order.

        Parameters
        ----------
        blocks : DecisionCounts or iterable of DecisionCounts
            Counts, for example from a database query.
        batch : str, optional
            See :meth:`update`.
        time : str, default=""
            See :meth:`update`.

        Returns
        -------
        list of RuleChange
            New alarms.

        Raises
        ------
        ValueError
            If the counts are for another number of rules.
        """
        batch = str(self._n_blocks + 1) if batch is None else batch
        new = []
        for counts in [blocks] if isinstance(blocks, DecisionCounts) else blocks:
            if len(counts.n_rows) != len(self.ruleset) + 1:
                raise ValueError(
                    f"Counts must have {len(self.ruleset) + 1} groups, one for each rule and one "
                    f"for uncovered rows, got {len(counts.n_rows)}. Count with the same rules."
                )
            n_rows = int(counts.n_rows.sum())
            if n_rows == 0:
                continue
            block = self._n_blocks
            self._history.append(
                HistoryEntry(block, block, self.n_rows + 1, (batch, batch), (time, time), counts)
            )
            self.n_rows += n_rows
            self._n_blocks += 1
            new += self._test(counts, batch, time)
        return [self._describe(index) for index in new]

    def update_labels(
        self, counts: Mapping[int, DecisionCounts], *, batch: str, time: str = ""
    ) -> list[RuleChange]:
        """Add labels that arrived after their rows.

        Parameters
        ----------
        counts : mapping of int to DecisionCounts
            Counts of labels and errors by block of rows. The number of a block is the value of
            :attr:`n_blocks` before its rows are added.
        batch : str
            Name of the batch.
        time : str, default=""
            See :meth:`update`.

        Returns
        -------
        list of RuleChange
            New alarms.
        """
        new = []
        for block, labels in sorted(counts.items()):
            self._history.add_to_block(block, labels)
            new += self._test(labels, batch, time)
        return [self._describe(index) for index in new]

    def block_numbers(self, n_rows: int) -> np.ndarray[Any, Any]:
        """Return the block number of each row of the next update, for late labels."""
        return self._n_blocks + np.arange(n_rows) // _block_size(n_rows)

    def count_labels(
        self, rule: Any, predicted: Any, blocks: Any, labels: Any
    ) -> dict[int, DecisionCounts]:
        """Count late labels for :meth:`update_labels`.

        Parameters
        ----------
        rule : array-like of shape (n_labels,)
            Index of the rule that decided each row; the number of rules for uncovered rows.
        predicted : array-like of shape (n_labels,)
            Predictions of the rows.
        blocks : array-like of shape (n_labels,)
            Block numbers of the rows, see :meth:`block_numbers`.
        labels : array-like of shape (n_labels,)
            Labels of the rows.

        Returns
        -------
        dict of int to DecisionCounts
            Counts of labels and errors by block number.
        """
        rule, blocks = np.asarray(rule, dtype=np.intp), np.asarray(blocks, dtype=np.intp)
        tolerances = self.baseline.error_tolerances
        widths = None if tolerances is None else np.asarray(tolerances)[rule]
        outcome = compare_labels(self.ruleset, "labels", np.asarray(predicted), labels, widths)
        if not has_default(self.ruleset):
            outcome[rule == len(self.ruleset)] = -1
        n_groups = len(self.ruleset) + 1
        result = {}
        for block in np.unique(blocks).tolist():
            zeros = DecisionCounts.zeros(len(self.ruleset))
            rows = blocks == block
            result[block] = replace(
                zeros,
                n_labeled=np.bincount(rule[rows & (outcome >= 0)], minlength=n_groups),
                n_errors=np.bincount(rule[rows & (outcome == 1)], minlength=n_groups),
            )
        return result

    @property
    def n_blocks(self) -> int:
        """Number of blocks of rows so far."""
        return self._n_blocks

    def _test(self, counts: DecisionCounts, batch: str, time: str) -> list[int]:
        """Update all monitors; return the indices of new alarms."""
        self.n_labels += int(counts.n_labeled.sum())
        events, trials = self._series([counts])
        self._rates.update(events[:, 0], trials[:, 0])
        weighted = self._log_prior + self._rates.log_evidence
        self._max_log_mean = max(self._max_log_mean, float(np.logaddexp.reduce(weighted)))
        threshold = -math.log(self.alpha)
        alarmed = np.flatnonzero(self._log_prior + self._rates.max_log_evidence >= threshold)
        new = [int(index) for index in alarmed if int(index) not in self._alarms]
        if not new and not self._alarms and self._max_log_mean >= threshold:
            new = [-1]
        for index in new:
            start = 0 if index < 0 else self._estimate(index)[0].start
            self._alarms[index] = {
                "batch": batch,
                "time": time,
                "row": self.n_rows,
                "block": self._history.entries[start].first_block,
            }
        return new

    def changes(self) -> list[RuleChange]:
        """Return all alarms so far, with current estimates; errors come first."""
        order = sorted(self._alarms, key=lambda i: (i < 0, i))
        return [self._describe(index) for index in order]

    def _describe(self, index: int) -> RuleChange:
        if index < 0:
            return self._describe_mean()
        monitor, kind = self._monitors[index], MONITOR_KINDS[self._monitors[index].kind]
        estimate, baseline = self._estimate(index)
        low, high = rate_interval(*baseline)
        interval = (float(low), float(high))
        rates = (baseline[0] / baseline[1], estimate.rate)
        intervals = [interval, estimate.rate_interval, estimate.difference_interval]
        if monitor.is_decrease:  # events are rows that the rule does not decide
            rates = (1 - rates[0], 1 - rates[1])
            intervals = [(1 - b, 1 - a) for a, b in intervals]
            intervals[2] = (intervals[2][0] - 1, intervals[2][1] - 1)
        entries = self._history.entries
        n_since = sum(int(e.counts.n_rows.sum()) for e in entries[estimate.start :])
        evidence = float(self._log_prior[index] + self._rates.max_log_evidence[index])
        return RuleChange(
            kind=monitor.kind,
            rule=self.group_name(monitor.group),
            text=self.group_text(monitor.group),
            direction="decrease" if monitor.is_decrease else "increase",
            baseline_rate=rates[0],
            rate=rates[1],
            baseline_interval=intervals[0],
            rate_interval=intervals[1],
            difference_interval=intervals[2],
            since=self._position(estimate.start),
            earliest=self._position(estimate.earliest),
            latest=self._position(estimate.latest),
            detected=self._detection(index),
            false_alarm_probability=min(1.0, math.exp(-evidence)),
            n_rows=n_since,
            has_returned=estimate.rate <= baseline[0] / baseline[1],
            action=kind.action,
        )

    def _detection(self, index: int) -> dict[str, Any]:
        return {name: self._alarms[index][name] for name in ("batch", "time", "row")}

    def _describe_mean(self) -> RuleChange:
        unknown = (math.nan, math.nan)
        start, detection = self._position(0), self._detection(-1)
        return RuleChange(
            kind="any",
            rule="all rows",
            text="all rows",
            direction="increase",
            baseline_rate=math.nan,
            rate=math.nan,
            baseline_interval=unknown,
            rate_interval=unknown,
            difference_interval=unknown,
            since=start,
            earliest=start,
            latest=detection,
            detected=detection,
            false_alarm_probability=min(1.0, math.exp(-self._max_log_mean)),
            n_rows=self.n_rows,
            has_returned=False,
            action="wait for an alarm of a single rule, or look at the page",
        )

    def _estimate(self, index: int) -> tuple[ChangeEstimate, tuple[int, int]]:
        events, trials = self._series([e.counts for e in self._history.entries])
        before = self._series([self.baseline.counts])
        baseline = (int(before[0][index, 0]), int(before[1][index, 0]))
        first_blocks = np.array([e.first_block for e in self._history.entries])
        alarm = self._alarms.get(index, {"block": 0, "row": self.n_rows})
        estimate = estimate_change(
            events[index],
            trials[index],
            first_blocks,
            baseline,
            default_start=max(
                0, int(np.searchsorted(first_blocks, alarm["block"], side="right")) - 1
            ),
            n_starts=sum(entry.first_row <= alarm["row"] for entry in self._history.entries),
        )
        return estimate, baseline

    def _position(self, entry: int) -> dict[str, Any]:
        first = self._history.entries[entry]
        return {"batch": first.batches[0], "time": first.times[0], "row": first.first_row}

    def rate_history(
        self, kind: str, group: int
    ) -> tuple[list[int], list[float], tuple[float, float]] | None:
        """Return the rate of a group of rows over time.

        Parameters
        ----------
        kind : str
            Kind of the monitor.
        group : int
            Index of the rule; the number of rules for uncovered rows, and one more for all rows.

        Returns
        -------
        tuple or None
            The last row of each period, its rate (NaN without rows), and the 95 % confidence
            interval of the baseline; None if this rate is not monitored.
        """
        positions = [
            position
            for position, m in enumerate(self._monitors)
            if (m.kind, m.group, m.is_decrease) == (kind, group, False)
        ]
        if not positions:
            return None
        index = positions[0]
        entries = self._history.entries
        baseline = self._series([self.baseline.counts])
        low, high = rate_interval(*(values[index] for values in baseline))
        rates: list[float] = []
        if entries:
            events, trials = self._series([e.counts for e in entries])
            with np.errstate(invalid="ignore"):
                rates = (events[index] / trials[index]).tolist()
        last_rows = [entry.first_row - 1 for entry in entries[1:]] + [self.n_rows] * bool(entries)
        return last_rows, rates, (float(low[0]), float(high[0]))

    def group_name(self, group: int) -> str:
        """Return the name of a rule, of uncovered rows, or of all rows."""
        n_rules = len(self.ruleset)
        return {n_rules: "no rule", n_rules + 1: "all rows"}.get(group, f"rule {group + 1}")

    def group_text(self, group: int) -> str:
        """Return a rule as text, or the name of another group."""
        if group >= len(self.ruleset):
            return self.group_name(group)
        return self.ruleset.line(group)

    def to_frame(self) -> pd.DataFrame:
        """Return one row per rule with its rows, rates, evidence and status."""
        import pandas as pd

        lines = []
        current = [e.counts for e in self._history.entries]
        zeros = DecisionCounts.zeros(len(self.ruleset))
        by_kind = self._by_kind([self.baseline.counts, sum(current, zeros)])
        all_rows = len(self.ruleset) + 1
        for group in range(all_rows + 1):
            line: dict[str, Any] = {"rule": self.group_name(group), "status": "unchanged"}
            for name, (events, trials) in by_kind.items():
                if MONITOR_KINDS[name].trials is not None or group < all_rows:
                    with np.errstate(invalid="ignore"):
                        before, now = (events[group] / trials[group]).tolist()
                    line |= {f"baseline_{name}": before, name: now}
                    line[f"false_alarm_probability_{name}"] = math.nan  # without a monitor
            alarms = ["any"] * (-1 in self._alarms and group == all_rows)
            for index, monitor in enumerate(self._monitors):
                if monitor.group != group:
                    continue
                if not monitor.is_decrease:
                    line[f"false_alarm_probability_{monitor.kind}"] = min(
                        1.0, math.exp(-self._log_prior[index] - self._rates.max_log_evidence[index])
                    )
                alarms += [monitor.kind] * (index in self._alarms)
            if alarms:
                line["status"] = ", ".join(dict.fromkeys(alarms))
            lines.append(line)
        return pd.DataFrame(lines).set_index("rule")

    def to_dict(self) -> dict[str, Any]:
        """Return the state as JSON data, without the rules."""
        return {
            "format": FORMAT,
            "version": VERSION,
            "alpha": self.alpha,
            "kinds": list(self.kinds),
            "tolerances": self.tolerances,
            "baseline": self.baseline.to_dict(),
            "rates": self._rates.state(),
            "max_log_mean": None if math.isinf(self._max_log_mean) else self._max_log_mean,
            "history": [entry.to_dict() for entry in self._history.entries],
            "alarms": {str(index): alarm for index, alarm in self._alarms.items()},
            "n_rows": self.n_rows,
            "n_labels": self.n_labels,
            "n_blocks": self._n_blocks,
        }

    @classmethod
    def from_dict(cls, rules: Any, data: Mapping[str, Any]) -> RuleMonitor:
        """Restore a monitor from the result of :meth:`to_dict`.

        Parameters
        ----------
        rules : RuleSet or estimator
            The same rules.
        data : mapping
            The state.

        Returns
        -------
        RuleMonitor

        Raises
        ------
        ValueError
            If the state is damaged or belongs to other rules.
        """
        if data.get("format") != FORMAT or data.get("version") != VERSION:
            raise ValueError(
                f"This is not the state of a monitor: 'format' and 'version' must be {FORMAT!r} "
                f"and {VERSION}, got {data.get('format')!r} and {data.get('version')!r}. Create "
                "one: skescore watch init RULES DATA."
            )
        try:
            baseline = RuleBaseline.from_dict(data["baseline"])
            monitor = cls(
                rules,
                baseline,
                alpha=data["alpha"],
                kinds=data["kinds"],
                tolerances=data["tolerances"],
            )
            monitor._rates.restore(data["rates"])
            mean = data["max_log_mean"]
            monitor._max_log_mean = -math.inf if mean is None else mean
            monitor._history = History(map(HistoryEntry.from_dict, data["history"]))
            monitor._alarms = {int(index): alarm for index, alarm in data["alarms"].items()}
            monitor.n_rows, monitor.n_labels = data["n_rows"], data["n_labels"]
            monitor._n_blocks = data["n_blocks"]
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"The state of the monitor is damaged: {error!r}.") from error
        return monitor

    def __repr__(self) -> str:
        return (
            f"RuleMonitor({len(self.ruleset)} rules, {self.n_rows} rows, {self.n_labels} labels, "
            f"{len(self._alarms)} alarms)"
        )
