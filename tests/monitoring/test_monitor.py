"""Monitors of rule lists: alarms, estimates, late labels and states."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from skescore.metrics import count_decisions
from skescore.monitoring import (
    CalibratedRules,
    RuleBaseline,
    RuleMonitor,
    estimate_change,
    prometheus_text,
    rate_confidence_sequence,
)
from skescore.rules import Domain, Interval, Rule, RuleSet

#: Four rules of equal shares; the labels of rule k are wrong with probability `errors[k]`.
RULES = RuleSet(
    [
        Rule([Interval(0, upper=0.25)], "a"),
        Rule([Interval(0, upper=0.5)], "b"),
        Rule([Interval(0, upper=0.75)], "a"),
        Rule([], "b"),
    ],
    ["x"],
    task="classification",
    ordered=True,
    domain=Domain((0.0,), (1.0,)),
)


def rows(
    n: int, seed: int, errors: tuple[float, ...] = (0.1,) * 4
) -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"x": rng.uniform(size=n)})
    rule = RULES.assign(X)
    is_wrong = rng.random(n) < np.array(errors)[rule]
    return X, np.where(is_wrong ^ (rule % 2 == 0), "a", "b")


def monitor(n: int = 4000) -> RuleMonitor:
    return RuleMonitor(RULES, RuleBaseline.from_rows(RULES, *rows(n, 0)))


def test_monitor_names_the_rule_and_the_time() -> None:
    watch = monitor()
    assert watch.update(*rows(3000, 1), batch="Monday") == []
    watch.update(*rows(3000, 2, (0.1, 0.1, 0.3, 0.1)), batch="Tuesday")
    change = next(c for c in watch.changes() if c.rule == "rule 3")
    assert change.kind == "error"
    assert change.since["batch"] == "Tuesday"
    assert change.earliest["row"] <= 3001 <= change.latest["row"] + 250
    assert change.rate_interval[0] <= 0.3 <= change.rate_interval[1]
    assert change.difference_interval[0] <= 0.2 <= change.difference_interval[1]
    assert change.false_alarm_probability < 0.05
    assert {c.rule for c in watch.changes()} <= {"rule 3", "all rows"}
    assert watch.to_frame().loc["rule 3", "status"] == "error"


def test_frame_has_rates_of_rules_without_held_out_rows() -> None:
    X = pd.DataFrame({"x": [0.1] * 20})
    watch = RuleMonitor(RULES, RuleBaseline.from_rows(RULES, X, ["a"] * 20))
    watch.update(pd.DataFrame({"x": [0.1, 0.3, 0.3, 0.3]}), ["a", "a", "b", None])
    frame = watch.to_frame()
    assert frame["error"].tolist()[:2] == [0.0, 0.5]
    assert frame["error"].iloc[2:-1].isna().all()
    assert frame.loc["all rows", ["baseline_error", "error"]].tolist() == [0.0, 1 / 3]
    assert frame["baseline_error"].iloc[1:-1].isna().all()
    assert frame["false_alarm_probability_error"].iloc[1:].isna().all()
    assert 'skescore_rate{rule="rule 2",kind="error"}' not in prometheus_text(watch)


def test_frame_and_metrics_show_an_alarm_of_all_monitors_together() -> None:
    watch = monitor()
    watch._max_log_mean = 10.0
    watch.update(*rows(50, 1))
    assert watch.changes()[0].kind == watch.to_frame().loc["all rows", "status"] == "any"
    assert 'skescore_alarm{rule="all rows",kind="any"} 1\n' in prometheus_text(watch)


@pytest.mark.parametrize(
    ("column", "kind"),
    [
        (np.full(2000, 0.1), "share"),
        (np.linspace(0.8, 1.5, 2000), "outside"),
        (np.where(np.arange(2000) % 4, np.linspace(0, 1, 2000), np.nan), "missing"),
    ],
)
def test_monitor_notices_changed_rows(column: np.ndarray, kind: str) -> None:
    watch = monitor()
    watch.update(pd.DataFrame({"x": column}))
    changes = [c for c in watch.changes() if c.kind == kind]
    assert changes
    if kind == "share":
        assert {c.direction for c in changes} == {"increase", "decrease"}
        assert all((c.rate > c.baseline_rate) == (c.direction == "increase") for c in changes)


def test_alarm_persists_after_the_rate_has_returned() -> None:
    watch = monitor()
    watch.update(*rows(1000, 1, (0.5, 0.1, 0.1, 0.1)))
    assert not watch.changes()[0].has_returned
    watch.update(*rows(20_000, 2, (0.0, 0.1, 0.1, 0.1)))
    change = watch.changes()[0]
    assert (change.rule, change.has_returned) == ("rule 1", True)
    assert change.since["row"] < 500
    assert "return to normal" in str(change)


def test_monitor_notices_disagreement_with_the_model() -> None:
    X, y = rows(4000, 0)
    baseline = RuleBaseline.from_rows(RULES, X, model_predictions=y)
    watch = RuleMonitor(RULES, baseline)
    assert "error" not in watch.kinds
    later, model = rows(2000, 5, (0.5, 0.1, 0.1, 0.1))
    changes = watch.update(later, model_predictions=model)
    assert ("rule 1", "disagreement") in {(c.rule, c.kind) for c in changes}


def test_monitor_continues_from_json() -> None:
    one, other = monitor(), monitor()
    for seed in range(5):
        X, y = rows(700, 10 + seed, (0.3, 0.1, 0.1, 0.1))
        one.update(X, y, batch=str(seed))
        other.update(X, y, batch=str(seed))
        other = RuleMonitor.from_dict(RULES, json.loads(json.dumps(other.to_dict())))
    assert json.dumps(one.to_dict()) == json.dumps(other.to_dict())
    assert [c.to_dict() for c in one.changes()] == [c.to_dict() for c in other.changes()]


def test_late_labels_equal_counts_of_their_rows() -> None:
    watch, prompt = monitor(), monitor()
    X, y = rows(500, 3)
    blocks = watch.block_numbers(500)
    watch.update(X)
    prompt.update(X, y)
    order = np.random.default_rng(0).permutation(500)
    for part in np.array_split(order, 7):
        counts = watch.count_labels(
            RULES.assign(X)[part], RULES.predict(X)[part], blocks[part], y[part]
        )
        watch.update_labels(counts, batch="labels")
    assert watch.n_labels == prompt.n_labels == 500
    for one, other in zip(watch._history.entries, prompt._history.entries, strict=True):
        assert one.counts.to_dict() == other.counts.to_dict()


def test_history_is_bounded_and_complete() -> None:
    watch = monitor()
    for seed in range(30):
        watch.update(*rows(300, seed))
    entries = watch._history.entries
    assert len(entries) == 64
    assert sum(e.counts.n_rows.sum() for e in entries) == 9000
    assert [e.first_block for e in entries[1:]] == [e.last_block + 1 for e in entries[:-1]]
    assert len(json.dumps(watch.to_dict())) < 200_000


def test_monitor_rejects_counts_of_other_rules() -> None:
    watch = monitor()
    with pytest.raises(ValueError, match="5 groups"):
        watch.update_counts(count_decisions(RULES[:2], [[0.1]]))
    with pytest.raises(ValueError, match="other rules"):
        RuleMonitor(RULES[:2], watch.baseline)
    with pytest.raises(ValueError, match="the baseline permits only"):
        RuleMonitor(RULES, watch.baseline, kinds=["disagreement"])


def test_priors_of_all_monitors_sum_to_one() -> None:
    X, y = rows(4000, 0)
    baseline = RuleBaseline.from_rows(RULES, X, y, model_predictions=y)
    for kinds in (None, ["error"], ["share", "missing"]):
        watch = RuleMonitor(RULES, baseline, kinds=kinds)
        assert sum(m.prior for m in watch._monitors) == pytest.approx(1.0)


def test_changes_begin_before_they_are_detected() -> None:
    watch = monitor()
    for seed, error in enumerate((0.3, 0.3, 0.9, 0.9), start=1):
        watch.update(*rows(1000, seed, (0.1, 0.1, error, 0.1)))
    (change,) = [c for c in watch.changes() if c.rule == "rule 3"]
    assert change.detected["row"] <= 1000
    assert change.since["row"] <= change.latest["row"] <= change.detected["row"]


def test_estimate_change_equals_a_search() -> None:
    from scipy.stats import binom

    rng = np.random.default_rng(4)
    for _ in range(20):
        trials = rng.integers(0, 60, 12)
        events = rng.binomial(trials, np.where(np.arange(12) < rng.integers(12), 0.1, 0.4))
        likelihoods = []
        for start in range(12):
            parts = [
                (events[start:].sum(), trials[start:].sum()),
                (20 + events[:start].sum(), 200 + trials[:start].sum()),
            ]
            rates = [x / n if n else 0.0 for x, n in parts]
            log_p = sum(
                binom.logpmf(x, n, r) - binom.logpmf(x, n, 0.5) + n * np.log(0.5)
                for (x, n), r in zip(parts, rates, strict=True)
            )
            likelihoods.append(log_p if rates[0] > rates[1] else -np.inf)
        estimate = estimate_change(events, trials, np.arange(12), (20, 200))
        assert likelihoods[estimate.start] == pytest.approx(max(likelihoods))
        assert likelihoods[estimate.earliest] >= max(likelihoods) - np.log(20) - 1e-9


def test_confidence_sequence_holds_at_all_times() -> None:
    rng = np.random.default_rng(0)
    rate, misses = 0.2, 0
    for _ in range(100):
        events = np.cumsum(rng.random(300) < rate)
        bounds = [rate_confidence_sequence(int(events[i]), i + 1, 0.1) for i in range(0, 300, 15)]
        misses += any(not low <= rate <= high for low, high in bounds)
    assert misses <= 10


def test_monitoring_reads_labels_of_arrow() -> None:
    arrow = pytest.importorskip("pyarrow")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 1))
    text = np.where(X[:, 0] + rng.normal(size=200) / 4 > 0, "yes", "no")
    classifies = RuleSet(
        [Rule([Interval(0, upper=0.0)], "no"), Rule([], "yes")],
        ["x0"],
        task="classification",
        classes=["no", "yes"],
    )
    regresses = RuleSet(
        [Rule([Interval(0, upper=0.0)], -1.0), Rule([], 1.0)], ["x0"], task="regression"
    )
    for rules, y in ((classifies, text), (regresses, X[:, 0])):
        baseline = RuleBaseline.from_rows(rules, X, y)
        for labels in (arrow.array(y.tolist()), arrow.chunked_array([y.tolist()])):
            assert RuleBaseline.from_rows(rules, X, labels).to_json() == baseline.to_json()
            updates = [RuleMonitor(rules, baseline).update(X, given) for given in (labels, y)]
            assert str(updates[0]) == str(updates[1])
            fitted = [CalibratedRules.fit(rules, X, given) for given in (labels, y)]
            assert fitted[0].to_json() == fitted[1].to_json()
