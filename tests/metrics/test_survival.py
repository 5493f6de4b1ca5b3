"""Scores of survival rules compared with plain loops, published values and RuleKit."""

from __future__ import annotations

import copy
import itertools
import json
import math
import os
import pickle
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import NotFittedError, UndefinedMetricWarning
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import GridSearchCV, KFold, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeRegressor
from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn.utils.validation import check_X_y

from skescore.metrics import (
    adjust_p_values,
    fire_score,
    ice_score,
    integrated_brier_score,
    log_rank,
    q_score,
    survival_report,
    survival_rules_log_rank,
    survival_scores,
)
from skescore.rules import (
    Domain,
    Interval,
    Rule,
    RuleSet,
    SurvivalRules,
    as_ruleset,
)
from skescore.scorers import make_survival_scorer
from skescore.survival import SurvivalRulesEstimator

if "sksurv" not in os.environ.get("SKESCORE_ENGINES", "").split(","):
    pytest.importorskip("sksurv")

RULEKIT = Path(__file__).parents[1] / "data" / "rulekit_survival.json"

# Remission of leukaemia in weeks: E. J. Freireich et al., Blood 21, 1963.
TREATED = [6, 6, 6, 7, 10, 13, 16, 22, 23, 6, 9, 10, 11, 17, 19, 20, 25, 32, 32, 34, 35]
PLACEBO = [1, 1, 2, 2, 3, 4, 4, 5, 5, 8, 8, 8, 8, 11, 11, 12, 12, 15, 17, 22, 23]
LEUKAEMIA = np.array(TREATED + PLACEBO, dtype=float), np.array([1] * 9 + [0] * 12 + [1] * 21)

Outcomes = tuple[np.ndarray, np.ndarray]


def patients(n_rows: int = 300, seed: int = 0) -> tuple[pd.DataFrame, Outcomes]:
    """Return patients: those above 50 live a quarter as long, and some are censored."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"age": rng.uniform(20, 80, n_rows), "noise": rng.normal(size=n_rows)})
    event = rng.exponential(np.where(X["age"] > 50, 5.0, 20.0)).round(1)
    end = rng.uniform(0, 40, n_rows).round(1)
    return X, (np.minimum(event, end), event <= end)


def structured(y: Outcomes) -> np.ndarray:
    outcomes = np.empty(len(y[0]), dtype=[("event", bool), ("time", float)])
    outcomes["time"], outcomes["event"] = y
    return outcomes


def age_rules(*bounds: tuple[float, float], ordered: bool = False) -> RuleSet:
    rules = [Rule([Interval(0, low, high)], 0.0) for low, high in bounds]
    domain = Domain((20.0, -3.0), (80.0, 3.0))
    names = ["age", "noise"]
    return RuleSet(rules, names, task="regression", ordered=ordered, domain=domain)


def plain_brier(curves: np.ndarray, y: Outcomes, y_train: Outcomes, times: np.ndarray) -> float:
    """Return Graf's integrated Brier score, computed in a loop over rows."""

    def in_view(when: float) -> float:
        """Return the chance of no censoring until then; at equal times, events come first."""
        share = 1.0
        for moment in sorted(set(y_train[0][(~y_train[1]) & (y_train[0] <= when)])):
            n_censored = int(np.sum((y_train[0] == moment) & ~y_train[1]))
            n_at_risk = int(np.sum(y_train[0] > moment)) + n_censored
            share *= 1 - n_censored / n_at_risk
        return share

    scores = []
    for column, when in enumerate(times):
        errors = []
        for (time, event), curve in zip(zip(*y, strict=True), curves, strict=True):
            if time > when:
                errors.append((1 - curve[column]) ** 2 / in_view(when))
            elif event:
                errors.append(curve[column] ** 2 / in_view(time) if in_view(time) else 0.0)
            else:
                errors.append(0.0)
        scores.append(np.mean(errors))
    area = sum(
        (times[i + 1] - times[i]) * (scores[i] + scores[i + 1]) / 2 for i in range(len(times) - 1)
    )
    return area / (times[-1] - times[0])


def plain_log_rank(groups: list[int], time: list[float], event: list[bool]) -> tuple[float, int]:
    """Return the log-rank statistic and its degrees of freedom, computed in a loop over times."""
    rows = list(zip(groups, time, event, strict=True))
    first = min(t for _, t, e in rows if e)
    names = sorted({g for g, t, _ in rows if t >= first})
    excess, spread = np.zeros(len(names)), np.zeros((len(names), len(names)))
    for moment in sorted({t for _, t, e in rows if e}):
        risk = [sum(1 for g, t, _ in rows if g == name and t >= moment) for name in names]
        dead = [sum(1 for g, t, e in rows if g == name and t == moment and e) for name in names]
        n, d = sum(risk), sum(dead)
        for i in range(len(names)):
            excess[i] += dead[i] - d * risk[i] / n
            for j in range(len(names)):
                if n > 1:
                    equal = risk[i] / n * ((i == j) - risk[j] / n)
                    spread[i, j] += equal * d * (n - d) / (n - 1)
    return float(excess @ np.linalg.pinv(spread) @ excess), len(names) - 1


# --- integrated Brier score ----------------------------------------------------------------------


@pytest.mark.parametrize("ordered", [True, False])
def test_brier_score_agrees_with_loop(ordered: bool) -> None:
    X, y = patients(160)
    train, test = slice(0, 90), slice(90, None)
    y_train, y_test = (y[0][train], y[1][train]), (y[0][test], y[1][test])
    rules = SurvivalRules.fit(age_rules((20, 60), (45, 70), ordered=ordered), X[train], y_train)
    times = np.array([1.0, 2.5, 7.0, 12.0])
    curves = rules.predict_survival_function(X[test], times)
    got = integrated_brier_score(rules, X[test], structured(y_test), times=times[::-1])
    assert got == pytest.approx(plain_brier(curves, y_test, y_train, times), rel=1e-10)
    by_all = integrated_brier_score(rules, X[test], y_test, times=times, y_train=y)
    assert by_all == pytest.approx(plain_brier(curves, y_test, y, times), rel=1e-10)
    assert by_all != pytest.approx(got, rel=1e-10)
    is_covered = ((X["age"] > 20) & (X["age"] <= 70)).to_numpy()[test]
    assert 0 < is_covered.sum() < len(is_covered)
    ignoring = integrated_brier_score(rules, X[test], y_test, times=times, uncovered="ignore")
    covered = (y_test[0][is_covered], y_test[1][is_covered])
    assert ignoring == pytest.approx(
        plain_brier(curves[is_covered], covered, y_train, times), rel=1e-10
    )


def test_brier_score_equals_scikit_survival_at_default_times() -> None:
    from sksurv.metrics import brier_score

    X, y = patients(200)
    rules = SurvivalRules.fit(age_rules((20, 50), (50, 80)), X, y)
    times = np.linspace(*np.quantile(y[0], [0.1, 0.9]), 100)
    curves = rules.predict_survival_function(X, times)
    _, errors = brier_score(structured(y), structured(y), curves, times)
    expected = ((errors[1:] + errors[:-1]) / 2).mean()  # the times are equally spaced
    assert integrated_brier_score(rules, X, y) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    ("time", "ends"),
    [
        ([1.0, 5.0, 6.0, 7.0, 8.0], (2.6, 7.0)),  # 90 % is 7.6, but 8 is the last time
        ([1.0] + [5.0] * 20 + [9.0], (1.0, 5.0)),  # 10 % and 90 % are the same time
    ],
)
def test_brier_score_has_default_times_for_few_times(
    time: list[float], ends: tuple[float, float]
) -> None:
    X = pd.DataFrame({"age": np.arange(len(time)) + 30.0, "noise": 0.0})
    y = np.array(time), np.ones(len(time), dtype=bool)
    rules = SurvivalRules.fit(age_rules((20, 33)), X, y)
    grid = np.linspace(*ends, 100)
    assert integrated_brier_score(rules, X, y) == pytest.approx(
        integrated_brier_score(rules, X, y, times=grid), rel=1e-12
    )


def test_brier_score_accepts_times_after_training() -> None:
    X, y = patients(120)
    early = y[0] < 15
    y_train = (y[0][early], y[1][early])
    last = int(np.argmax(y_train[0]))
    y_train[1][last] = True  # scikit-survival alone would reject later rows
    rules = SurvivalRules.fit(age_rules((20, 50)), X[early], y_train)
    assert y[0].max() > y_train[0].max() + 5
    times = np.array([1.0, 4.0, 9.0])
    curves = rules.predict_survival_function(X, times)
    got = integrated_brier_score(rules, X, y, times=times)
    assert got == pytest.approx(plain_brier(curves, y, y_train, times), rel=1e-10)


def test_brier_score_of_perfect_forecast_is_0() -> None:
    X = pd.DataFrame({"age": [30.0, 40.0, 60.0, 70.0] * 5, "noise": 0.0})
    y = np.array([8.0, 9.0, 1.0, 2.0] * 5), np.ones(20, dtype=bool)
    fitted = SurvivalRules.fit(age_rules((25, 35), (35, 45), (55, 65), (65, 75)), X, y)
    assert integrated_brier_score(fitted, X, y) == 0
    one = SurvivalRules.fit(
        RuleSet([Rule([], 0.0)], fitted.ruleset.feature_names, task="regression"), X, y
    )
    half = integrated_brier_score(one, X, y, times=[3.0, 7.0])  # half of the rows alive
    assert half == pytest.approx(0.25)
    scores = survival_scores(one, X, y, completeness="instances")
    assert scores["skill"] == 0
    assert scores["completeness"] == 1


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"rules": age_rules((20, 50))}, TypeError, "SurvivalRules.fit"),
        ({"uncovered": "drop"}, ValueError, "'ignore', 'penalize', got 'drop'"),
        ({"times": [1.0]}, ValueError, "two different numbers or more"),
        ({"times": [2.0, 2.0]}, ValueError, "two different numbers or more"),
        ({"times": [[1.0, 2.0]]}, ValueError, "two different numbers or more"),
        ({"times": ["1", "2"]}, ValueError, "two different numbers or more"),
        ({"times": [1.0, np.nan]}, ValueError, "got nan"),
        ({"times": [-5.0, 2.0]}, ValueError, "times must lie from .* got -5.0"),
        ({"times": [1.0, 500.0]}, ValueError, "to before .* got 500.0"),
        ({"y": ([1.0, 2.0], [1, 0])}, ValueError, "got 2 for 60 rows"),
        ({"y": (np.arange(60.0), np.zeros(60))}, ValueError, "at least one event until the last"),
        ({"y": (np.full(60, 2.0), np.ones(60))}, ValueError, "three different times"),
        ({"y_train": (np.arange(60.0), np.zeros(60))}, ValueError, "y_train must hold at least"),
    ],
)
def test_survival_scores_reject_invalid_arguments(
    change: dict[str, Any], error: type[Exception], message: str
) -> None:
    X, y = patients(60)
    arguments = {"rules": SurvivalRules.fit(age_rules((20, 50)), X, y), "X": X, "y": y}
    with pytest.raises(error, match=message):
        integrated_brier_score(**(arguments | change))


def test_brier_score_ignores_events_after_training() -> None:
    X, (time, event) = patients(60)
    rules = SurvivalRules.fit(age_rules((20, 50)), X, (time, event))
    late = time + time.max() + 1, np.ones(60)
    with pytest.raises(ValueError, match=r"until the last training time .* got none in 60 rows"):
        integrated_brier_score(rules, X, late)
    # The last training time is included.
    late[0][:2], late[1][1], times = [time.max(), 1.0], 0, np.array([2.0, 3.0])
    curves = rules.predict_survival_function(X, times)
    expected = plain_brier(curves, late, (time, event), times)
    assert integrated_brier_score(rules, X, late, times=times) == pytest.approx(expected)


def test_survival_scores_warn_if_skill_is_undefined() -> None:
    X = pd.DataFrame({"age": [30.0, 40.0, 60.0], "noise": 0.0})
    y = np.array([1.0, 9.0, 9.0]), np.array([False, True, True])  # no event before 9
    rules = SurvivalRules.fit(age_rules((20, 50)), X, y)
    match = "skill, ice are undefined .* curve of all rows has 0.0"
    with pytest.warns(UndefinedMetricWarning, match=match):
        scores = survival_scores(rules, X, y, times=[2.0, 3.0])
    assert (scores["brier"], scores["fire"]) == (0.0, fire_score(0.0, 1))


def test_survival_scores_without_covered_rows_are_undefined() -> None:
    X, y = patients(60)
    rules = SurvivalRules.fit(age_rules((500, 600)), X, y)
    assert math.isnan(integrated_brier_score(rules, X, y, uncovered="ignore"))
    with pytest.warns(UndefinedMetricWarning, match="ice, fire, q are undefined for 1 rules"):
        scores = survival_scores(rules, X, y, uncovered="ignore")
    assert math.isnan(scores["ice"])


def test_brier_score_error_names_missing_scikit_survival(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    X, y = patients(60)
    rules = SurvivalRules.fit(age_rules((20, 50)), X, y)
    for module in [name for name in sys.modules if name.partition(".")[0] == "sksurv"]:
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ImportError, match=r"The Brier score needs .*scikit-survival"):
        integrated_brier_score(rules, X, y)
    with pytest.raises(ImportError, match=r"The log-rank test needs .*scikit-survival"):
        log_rank([0] * 60, y)


# --- log-rank tests ------------------------------------------------------------------------------


def test_log_rank_equals_published_value() -> None:
    # 16.79 in the textbooks, for instance D. G. Kleinbaum, M. Klein: Survival analysis, chapter 2.
    test = log_rank(["treated"] * 21 + ["placebo"] * 21, LEUKAEMIA)
    assert test.statistic == pytest.approx(16.793, abs=5e-4)
    assert test.p_value == pytest.approx(4.17e-5, rel=2e-3)
    assert test.degrees == 1


@settings(max_examples=40)
@given(
    st.lists(
        st.tuples(st.integers(0, 3), st.integers(0, 8), st.booleans()), min_size=2, max_size=25
    )
)
def test_log_rank_agrees_with_loop(rows: list[tuple[int, int, bool]]) -> None:
    groups, time, event = map(list, zip(*rows, strict=True))
    test = log_rank(groups, (time, event))
    if math.isnan(test.statistic):
        assert math.isnan(test.p_value)
        assert test.degrees == 0
        if any(event):
            first = min(t for t, e in zip(time, event, strict=True) if e)
            later = [(g, t, e) for g, t, e in rows if t >= first]
            is_single_group = len({g for g, *_ in later}) == 1
            assert is_single_group or all(t == first and e for _, t, e in later)
        return
    statistic, degrees = plain_log_rank(groups, time, event)
    assert test.degrees == degrees
    assert test.statistic == pytest.approx(statistic, rel=1e-7, abs=1e-9)
    assert 0 <= test.p_value <= 1
    swapped = log_rank(["dcba"[g] for g in groups], (time, event))
    assert swapped.statistic == pytest.approx(test.statistic, rel=1e-7, abs=1e-9)


@pytest.mark.parametrize(
    ("groups", "time", "event"),
    [
        ([0, 0, 0], [1, 2, 3], [1, 1, 1]),  # a single group
        ([0, 0, 1], [2, 3, 1], [1, 1, 0]),  # the other group ends before the first event
        ([0, 1, 1], [2, 2, 2], [1, 1, 1]),  # all events at the same time
        ([0, 1, 1], [1, 2, 3], [0, 0, 0]),  # no events
    ],
)
def test_log_rank_is_nan_without_comparison(
    groups: list[int], time: list[int], event: list[int]
) -> None:
    test = log_rank(groups, (time, event))
    assert math.isnan(test.statistic)
    assert math.isnan(test.p_value)
    assert test.degrees == 0


def test_log_rank_rejects_invalid_groups() -> None:
    with pytest.raises(ValueError, match=r"group of each row, .* shape \(1, 2\)"):
        log_rank([[0, 1]], ([1, 2], [1, 1]))
    with pytest.raises(ValueError, match="got 2 for 3 rows"):
        log_rank([0, 1, 1], ([1, 2], [1, 1]))


def test_survival_rules_log_rank_groups_rows_by_curve() -> None:
    X, y = patients(200)
    age = X["age"]
    for ordered in (True, False):
        ruleset = age_rules((20, 50), (40, 70), ordered=ordered)
        test = survival_rules_log_rank(SurvivalRules.fit(ruleset, X, y), X, y)
        first, second = (age <= 50).astype(int), ((age > 40) & (age <= 70)).astype(int)
        groups = np.where(first == 1, 1, 2 * second) if ordered else first + 2 * second
        assert test == pytest.approx(log_rank(groups, y), rel=1e-9)
        assert test.degrees == (2 if ordered else 3)
    none = SurvivalRules.fit(age_rules(), X, y)
    assert survival_rules_log_rank(none, X, y).degrees == 0
    with pytest.raises(TypeError, match="SurvivalRules"):
        survival_rules_log_rank(age_rules(), X, y)


def test_survival_rules_text_of_ordered_rules_has_else() -> None:
    X, y = patients(100)
    rules = SurvivalRules.fit(age_rules((20, 50), (40, 70), ordered=True), X, y)
    first, second, otherwise = rules.to_text().splitlines()
    assert first.startswith("1. IF ")
    assert second.startswith("2. ELSE IF ")
    assert otherwise.startswith("otherwise, ")


def test_brier_score_rejects_last_time() -> None:
    X, y = patients(100)
    rules = SurvivalRules.fit(age_rules((20, 50)), X, y)
    with pytest.raises(ValueError, match="times must lie from"):
        integrated_brier_score(rules, X, y, times=[y[0].min(), y[0].max()])


# --- the report ----------------------------------------------------------------------------------


def p_value_of_the_engine(inside: np.ndarray, y: Outcomes) -> float:
    """Return the p-value of RuleKit's test, which keeps the last rows of a group at risk."""
    time, event = y
    excess = spread = 0.0
    for moment in np.unique(time[event]):
        at_risk = [time[rows] >= min(moment, time[rows].max()) for rows in (inside, ~inside)]
        n_in, n = int(at_risk[0].sum()), int(at_risk[0].sum() + at_risk[1].sum())
        dead = event & (time == moment)
        d = int(dead.sum())
        excess += int((dead & inside).sum()) - d * n_in / n
        if n > 1:
            spread += d * n_in / n * (1 - n_in / n) * (n - d) / (n - 1)
    return float(chi2.sf(excess**2 / spread, 1))


def test_survival_report_equals_rulekit() -> None:
    golden = json.loads(RULEKIT.read_text(encoding="utf-8"))
    ruleset = RuleSet.from_json(json.dumps(golden["ruleset"]))
    y = np.array(golden["time"]), np.array(golden["event"], dtype=bool)
    rules = SurvivalRules.fit(ruleset, golden["X"], y)
    report = survival_report(rules, golden["X"], y)
    members = rules.members(golden["X"])
    theirs = np.array([p_value_of_the_engine(rows, y) for rows in members.T])
    # The engine computes 1 - (1 - p).
    np.testing.assert_allclose(golden["p_values"], theirs, rtol=1e-6, atol=3e-16)
    last_event = y[0][y[1]].max()
    until_the_end = np.array(
        [min(y[0][rows].max(), y[0][~rows].max()) >= last_event for rows in members.T]
    )
    assert until_the_end.tolist() == [False, True, False, True, True]
    np.testing.assert_allclose(
        report["p_value"][until_the_end], theirs[until_the_end], rtol=1e-9, atol=0
    )
    assert (report["p_value"][~until_the_end] < theirs[~until_the_end] / 2).all()


def test_survival_report_describes_rules() -> None:
    X, y = patients(300)
    ruleset = age_rules((20, 50), (-5, 900), (100, 200), (20, 35))
    rules = SurvivalRules.fit(ruleset, X, y)
    report = survival_report(rules, X, y, alpha=0.01)
    young = (X["age"] <= 50).to_numpy()
    assert report.index.tolist() == [1, 2, 3, 4]
    assert report["text"][1] == "20 < age ≤ 50"
    assert report["rows"].tolist() == [young.sum(), 300, 0, (X["age"] <= 35).sum()]
    assert report["events"].tolist()[:3] == [y[1][young].sum(), y[1].sum(), 0]
    assert report["median"][1] == rules.curves[0].median
    assert report["other_median"][1] < report["median"][1]
    assert report[["median", "other_median"]].isna().to_numpy().tolist()[1:3] == [
        [False, True],
        [True, False],
    ]
    test = log_rank(young, y)
    assert report.loc[1, ["statistic", "p_value"]].tolist() == [test.statistic, test.p_value]
    assert report["p_value"].isna().tolist() == [False, True, True, False]
    for column, correction in (("fdr_p_value", "fdr_bh"), ("fwer_p_value", "holm")):
        adjusted = adjust_p_values(report["p_value"], correction)
        np.testing.assert_array_equal(report[column], adjusted)
    assert report["significant"].tolist() == [True, False, False, True]
    at_most = survival_report(rules, X, y, correction=None, alpha=report["p_value"][4])
    assert at_most["significant"][4]
    with pytest.raises(TypeError, match="rules must be SurvivalRules, got RuleSet"):
        survival_report(ruleset, X, y)


def test_survival_report_applies_corrections() -> None:
    X, y = patients(300, seed=5)
    X["age"] = np.random.default_rng(3).permutation(X["age"])  # age has no effect
    bounds = [(float(low), low + 2.0) for low in range(20, 78)]
    rules = SurvivalRules.fit(age_rules(*bounds), X, y)
    results = {
        correction: int(survival_report(rules, X, y, correction=correction)["significant"].sum())
        for correction in (None, "fdr_bh", "holm")
    }
    report = survival_report(rules, X, y)
    columns = {None: "p_value", "fdr_bh": "fdr_p_value", "holm": "fwer_p_value"}
    assert results == {key: (report[column] <= 0.05).sum() for key, column in columns.items()}
    for correction in ("fdr_bh", "holm"):
        adjusted = adjust_p_values(report["p_value"], correction)
        np.testing.assert_array_equal(report[columns[correction]], adjusted)
    assert results[None] > results["fdr_bh"] >= results["holm"]
    with pytest.raises(ValueError, match=r"correction must be .* got 'rulekit_fdr'"):
        survival_report(rules, X, y, correction="rulekit_fdr")
    with pytest.raises(ValueError, match="alpha must be"):
        survival_report(rules, X, y, alpha=1.5)


def test_survival_report_of_ordered_rules_counts_assigned() -> None:
    X, y = patients(300)
    rules = SurvivalRules.fit(age_rules((20, 50), (20, 80), ordered=True), X, y)
    report = survival_report(rules, X, y)
    assert report["rows"].sum() == 300
    assert report["p_value"][1] == pytest.approx(report["p_value"][2])


# --- knowledge -----------------------------------------------------------------------------------


def test_survival_scores_combine_skill_size_and_completeness() -> None:
    X, y = patients(300)
    rules = SurvivalRules.fit(age_rules((20, 50), (50, 65)), X[:200], (y[0][:200], y[1][:200]))
    X, y = X[200:], (y[0][200:], y[1][200:])
    times = [1.0, 3.0, 5.0, 10.0]
    scores = survival_scores(rules, X, y, times=times, psi=1.5, phi=2.0, rho=3.0)
    brier = integrated_brier_score(rules, X, y, times=times)
    ignorant = SurvivalRules(rules.ruleset[:0], (), rules.fallback)
    skill = 1 - brier / integrated_brier_score(ignorant, X, y, times=times)
    assert 0 < skill < 1
    assert scores["brier"] == brier
    assert scores["skill"] == pytest.approx(skill, rel=1e-12)
    assert (scores["n_rules"], scores["completeness"]) == (2, 0.75)  # ages 20 to 65 of 20 to 80
    assert scores["fire"] == fire_score(brier, 2, psi=1.5)
    assert scores["q"] == q_score(brier, 2, 0.75)
    assert scores["ice"] == pytest.approx(ice_score(skill, 2, 0.75, phi=2, rho=3), rel=1e-12)
    plain = survival_scores(rules, X, y, times=times)
    assert plain["fire"] == fire_score(brier, 2)
    assert plain["ice"] == pytest.approx(ice_score(skill, 2, 0.75), rel=1e-12)
    by_rows = survival_scores(rules, X, y, completeness="instances")
    assert by_rows["completeness"] == (X["age"] <= 65).mean()
    homeless = SurvivalRules(rules.ruleset.replace(domain=None), rules.curves, rules.fallback)
    assert survival_scores(homeless, X, y)["completeness"] == pytest.approx(
        (65 - X["age"].min()) / (X["age"].max() - X["age"].min())
    )
    with pytest.raises(ValueError, match=r"completeness must be .* got 'rows'"):
        survival_scores(rules, X, y, completeness="rows")
    with pytest.raises(ValueError, match="psi"):
        survival_scores(rules, X, y, psi=0.0)
    with pytest.warns(UndefinedMetricWarning, match="ice, fire, q are undefined for 0 rules"):
        empty = survival_scores(ignorant, X, y)
    assert empty["skill"] == 0


# --- scorers -------------------------------------------------------------------------------------


class SurvivalTree(BaseEstimator):
    """Leaves of a regression tree on the times, with the survival curves of their rows."""

    def __init__(self, max_leaf_nodes: int = 2, curves: bool = True) -> None:
        self.max_leaf_nodes = max_leaf_nodes
        self.curves = curves

    def fit(self, X: Any, y: np.ndarray) -> SurvivalTree:
        tree = DecisionTreeRegressor(max_leaf_nodes=self.max_leaf_nodes, random_state=0)
        rules = as_ruleset(tree.fit(X, y["time"]))
        self.rules_ = SurvivalRules.fit(rules, X, y) if self.curves else rules
        return self


class WeighedTree(SurvivalTree):
    """A tree that accepts weights but ignores them."""

    def fit(self, X: Any, y: np.ndarray, sample_weight: Any = None) -> SurvivalTree:
        return super().fit(X, y)


def test_survival_scorer_works_in_search() -> None:
    X, y = patients(240)
    y_all = structured(y)
    scoring = {
        "brier": make_survival_scorer(times=[1.0, 3.0, 5.0, 10.0]),
        "fire": make_survival_scorer("fire"),
        "ice": make_survival_scorer("ice", completeness="instances"),
        "skill": make_survival_scorer("skill"),
    }
    search = GridSearchCV(
        SurvivalTree(),
        {"max_leaf_nodes": [2, 100]},
        scoring=scoring,
        refit="brier",
        cv=KFold(3),
        error_score="raise",
    ).fit(X, y_all)
    for name in scoring:
        few, many = search.cv_results_[f"mean_test_{name}"]
        assert few > many  # including FiRe and ICE, which count the rules
    assert search.best_params_ == {"max_leaf_nodes": 2}
    train, test = next(KFold(3).split(X))
    rules = SurvivalTree().fit(X.iloc[train], y_all[train]).rules_
    scores = survival_scores(rules, X.iloc[test], y_all[test])
    brier = integrated_brier_score(rules, X.iloc[test], y_all[test], times=[1.0, 3.0, 5.0, 10.0])
    assert search.cv_results_["split0_test_brier"][0] == -brier != -scores["brier"]
    assert search.cv_results_["split0_test_fire"][0] == -scores["fire"] < 0
    assert search.cv_results_["split0_test_skill"][0] == scores["skill"] > 0
    for holder in (search, search.best_estimator_, search.best_estimator_.rules_):
        assert scoring["fire"](holder, X, y) == scoring["fire"](search, X, y_all)


def test_survival_scorer_accepts_pipelines() -> None:
    X, y = patients(150)
    y_all = structured(y)
    pipeline = make_pipeline(StandardScaler(), SurvivalTree()).fit(X, y_all)
    scorer = make_survival_scorer()
    scaled = StandardScaler().fit_transform(X)
    assert scorer(pipeline, X, y) == -integrated_brier_score(pipeline[-1].rules_, scaled, y)
    plain = make_pipeline(StandardScaler(), SurvivalTree(curves=False)).fit(X, y_all)
    given_curves = make_survival_scorer(curves=(X, y))
    assert given_curves(plain, X, y) == pytest.approx(scorer(pipeline, X, y), rel=1e-12)
    with pytest.raises(TypeError, match=r"rules without survival curves.*curves=\(X, y\)"):
        scorer(plain, X, y)
    with pytest.raises(TypeError, match="StandardScaler has no rules to score"):
        scorer(StandardScaler(), X, y)


class OfTargets(SurvivalRulesEstimator):
    """An estimator that turns targets of scikit-learn's checks into event times."""

    def fit(self, X, y):
        X, y = check_X_y(X, y, dtype=None, y_numeric=True, estimator=self)
        return super().fit(X, (abs(y) + 1, np.ones(len(y), dtype=bool)))

    def score(self, X, y):
        return super().score(X, (abs(np.asarray(y, dtype=float)) + 1, np.ones(len(y), dtype=bool)))


@parametrize_with_checks([OfTargets(DecisionTreeRegressor(max_leaf_nodes=4, random_state=0))])
def test_estimator_passes_checks_of_scikit_learn(estimator: Any, check: Any) -> None:
    check(estimator)


def test_estimator_follows_scikit_survival() -> None:
    from sksurv.metrics import as_integrated_brier_score_scorer, concordance_index_censored

    X, y = patients(240)
    y_all, times = structured(y), [1.0, 3.0, 5.0, 8.0]
    tree = DecisionTreeRegressor(max_leaf_nodes=3, random_state=0)
    model = SurvivalRulesEstimator(tree)
    search = GridSearchCV(
        model, {"rules__max_leaf_nodes": [2, 100]}, scoring=make_survival_scorer(times=times), cv=3
    ).fit(X, y_all)
    assert search.best_params_ == {"rules__max_leaf_nodes": 2}
    assert 0.6 < search.best_estimator_.score(X, y_all) <= 1
    theirs = GridSearchCV(
        as_integrated_brier_score_scorer(model, times),
        {"estimator__rules__max_leaf_nodes": [2, 100]},
        cv=3,
    ).fit(X, y_all)
    ours = search.cv_results_["mean_test_score"]
    assert theirs.cv_results_["mean_test_score"] == pytest.approx(ours, rel=0.02)
    model.fit(X, y_all)
    curves = model.predict_survival_function(X)
    assert np.array([curve(times) for curve in curves]) == pytest.approx(
        model.rules_.predict_survival_function(X, times)
    )
    # The area above a curve, summed over the steps.
    ends = model.unique_times_
    area = sum((1 - curves[0](a)) * (b - a) for a, b in itertools.pairwise(ends))
    risk = model.predict(X)
    assert risk[0] == pytest.approx(area)
    assert model.score(X, y_all) == concordance_index_censored(y[1], y[0], risk)[0]
    small = (1e-10 * y[0], y[1])  # independent of the unit of time
    assert SurvivalRulesEstimator(tree).fit(X, small).score(X, small) == pytest.approx(
        model.score(X, y_all)
    )
    assert ends.tolist() == sorted(set(y[0]))
    assert model.event_times_.tolist() == sorted(set(y[0][y[1]]))
    with pytest.raises(ValueError, match="feature names"):
        model.predict_survival_function(X.iloc[:, :1])
    at_once = np.full(240, 3.0), np.arange(240) % 2 == 0  # all times are equal
    assert SurvivalRulesEstimator(tree).fit(X, at_once).score(X, at_once) == 0.5


def test_estimator_accepts_existing_rules() -> None:
    X, y = patients(100)
    rules = age_rules((20, 50), (50, 80))
    fitted = SurvivalRulesEstimator(rules).fit(X, y)
    assert fitted.rules_ == SurvivalRules.fit(rules, X, y)
    copied = clone(fitted).fit(X, y)
    assert copied.rules_ == fitted.rules_
    frozen = FrozenEstimator(DecisionTreeRegressor(max_leaf_nodes=2).fit(X, y[0]))
    assert SurvivalRulesEstimator(frozen).fit(X, y).rules_.ruleset == as_ruleset(frozen)
    with pytest.raises(TypeError, match="structured array"):
        SurvivalRulesEstimator(rules).fit(X, y[0])
    with pytest.raises(NotFittedError):
        SurvivalRulesEstimator(rules).predict(X)


def test_survival_scorer_can_be_copied_and_pickled() -> None:
    X, y = patients(120)
    scorer = make_survival_scorer("q", uncovered="ignore")
    assert repr(scorer) == "make_survival_scorer('q', uncovered='ignore')"
    assert "curves=..." in repr(make_survival_scorer(curves=(X, y)))
    rules = SurvivalTree().fit(X, structured(y)).rules_
    for same in (copy.deepcopy(scorer), pickle.loads(pickle.dumps(scorer))):
        assert same(rules, X, y) == scorer(rules, X, y) < 0
    results = cross_validate(
        SurvivalTree(),
        X,
        structured(y),
        scoring={"q": scorer, "brier": make_survival_scorer()},
        cv=KFold(2),
        error_score="raise",
    )
    assert np.isfinite(results["test_q"]).all()
    assert not scorer.get_metadata_routing().consumes("score", ["sample_weight"])


@pytest.mark.filterwarnings("ignore:The scoring .* does not support sample_weight")
def test_survival_scorer_receives_no_weights() -> None:
    X, y = patients(120)
    search = GridSearchCV(
        WeighedTree(),
        {"max_leaf_nodes": [2]},
        cv=KFold(2),
        error_score="raise",
        refit=False,
        scoring={"q": make_survival_scorer("q"), "fire": make_survival_scorer("fire")},
    ).fit(X, structured(y), sample_weight=np.ones(120))
    assert np.isfinite(search.cv_results_["mean_test_q"]).all()


def test_make_survival_scorer_rejects_invalid_settings() -> None:
    with pytest.raises(ValueError, match=r"no survival score 'brir'\. Did you mean 'brier'"):
        make_survival_scorer("brir")
    with pytest.raises(TypeError, match=r"no setting 'time'\. Did you mean 'times'"):
        make_survival_scorer(time=[1, 2])
    with pytest.raises(TypeError, match=r"curves must be a pair \(X, y\), got ndarray"):
        make_survival_scorer(curves=np.zeros(2))


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"uncovered": "drop"}, "uncovered must be one of 'ignore', 'penalize', got 'drop'"),
        ({"completeness": "rows"}, "completeness must be one of 'volume', 'instances', got 'rows'"),
        ({"psi": 0.0}, "psi must be > 0"),
        ({"phi": -1.0}, "phi must be "),
        ({"rho": np.nan}, "rho must be "),
    ],
)
def test_make_survival_scorer_checks_values_at_once(setting: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make_survival_scorer("ice", **setting)
    X, y = patients(60)
    with pytest.raises(ValueError, match=message):
        survival_scores(SurvivalRules.fit(age_rules((20, 50)), X, y), X, y, **setting)


def test_survival_rules_describe_survival_forest() -> None:
    """The whole workflow: black box, risk, rules, curves, and scores on held-out rows."""
    from sksurv.datasets import load_gbsg2
    from sksurv.ensemble import RandomSurvivalForest

    from skescore import CallableRegressor, CARTExtractor

    X, y = load_gbsg2()
    X = X.select_dtypes("number").astype(float)
    order = np.random.default_rng(0).permutation(len(X))
    train, test = order[:450], order[450:]
    forest = RandomSurvivalForest(20, min_samples_leaf=20, random_state=0).fit(
        X.iloc[train], y[train]
    )
    black_box = CallableRegressor(lambda rows: forest.predict(rows))
    extractor = CARTExtractor(black_box, max_leaf_nodes=4, random_state=0)
    extractor.fit(X.iloc[train], forest.predict(X.iloc[train]))
    rules = SurvivalRules.fit(extractor, X.iloc[train], y[train])
    scores = survival_scores(rules, X.iloc[test], y[test])
    assert scores["n_rules"] == 4
    assert 0 < scores["skill"] < 0.5
    assert 0 < scores["brier"] < 0.25
    assert survival_rules_log_rank(rules, X.iloc[test], y[test]).p_value < 0.001
    # Leaves with higher risk have lower curves.
    risk = [rule.output for rule in rules.ruleset]
    alive = [curve.at([1000.0])[0] for curve in rules.curves if curve]
    assert np.argsort(risk).tolist() == np.argsort(alive)[::-1].tolist()
