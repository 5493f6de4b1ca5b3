"""Survival curves and survival rules, compared with plain loops and published values."""

from __future__ import annotations

import json
import math
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.tree import DecisionTreeRegressor

from skescore.rules import (
    Interval,
    Rule,
    RuleSet,
    SurvivalCurve,
    SurvivalRules,
    as_ruleset,
    read_outcomes,
)

RULEKIT = Path(__file__).parents[1] / "data" / "rulekit_survival.json"

# Remission of leukaemia in weeks: E. J. Freireich et al., Blood 21, 1963.
TREATED = [6, 6, 6, 7, 10, 13, 16, 22, 23, 6, 9, 10, 11, 17, 19, 20, 25, 32, 32, 34, 35]
TREATED_EVENT = [True] * 9 + [False] * 12
PLACEBO = [1, 1, 2, 2, 3, 4, 4, 5, 5, 8, 8, 8, 8, 11, 11, 12, 12, 15, 17, 22, 23]

outcomes = st.lists(st.tuples(st.integers(0, 12), st.booleans()), min_size=1, max_size=40)


def share_alive(rows: list[tuple[float, bool]], when: float) -> float:
    """Return the Kaplan-Meier curve, computed in a loop over times."""
    share = 1.0
    for moment in sorted({time for time, event in rows if event and time <= when}):
        in_sight = sum(1 for time, _ in rows if time >= moment)
        n_events = sum(1 for time, event in rows if event and time == moment)
        share *= (in_sight - n_events) / in_sight
    return share


def interval_rules(*bounds: tuple[float, float], ordered: bool) -> RuleSet:
    rules = [Rule([Interval(0, low, high)] if low < high else [], 0.0) for low, high in bounds]
    return RuleSet(rules, ["dose"], task="regression", ordered=ordered)


# --- curves --------------------------------------------------------------------------------------


def test_survival_curve_agrees_with_published_example() -> None:
    # Values printed in D. G. Kleinbaum, M. Klein: Survival analysis, chapter 2.
    curve = SurvivalCurve.of(TREATED, TREATED_EVENT)
    published = {6: 0.8571, 7: 0.8067, 10: 0.7529, 13: 0.6902, 16: 0.6275, 22: 0.5378, 23: 0.4482}
    assert curve.at(list(published)) == pytest.approx(list(published.values()), abs=5e-5)
    assert (curve.median, curve.n_rows, curve.n_events) == (23, 21, 9)
    assert curve.at([0, 5.9, 22.9, 35, 1e6]) == pytest.approx(
        [1, 1, 0.5378, 0.4482, 0.4482], abs=5e-5
    )
    assert SurvivalCurve.of(PLACEBO, [True] * 21).median == 8
    assert str(curve) == "median survival 23   [21 rows, 9 events]"
    assert repr(curve) == "<SurvivalCurve: median survival 23   [21 rows, 9 events]>"


@given(outcomes)
def test_survival_curve_agrees_with_loop(rows: list[tuple[int, bool]]) -> None:
    curve = SurvivalCurve.of(*zip(*rows, strict=True))
    moments = np.arange(-1, 14) + 0.5 * (len(rows) % 2)
    expected = [share_alive(rows, when) for when in moments]
    np.testing.assert_allclose(curve.at(moments), expected, rtol=1e-12, atol=1e-15)
    assert (np.diff(curve.at(moments)) <= 0).all()
    halved = [time for time in range(13) if share_alive(rows, time) <= 0.5 + 1e-9]
    assert curve.median == (halved[0] if halved else math.inf)


@given(outcomes, st.randoms())
def test_survival_curve_ignores_order_of_rows(rows: list[tuple[int, bool]], random: Any) -> None:
    curve = SurvivalCurve.of(*zip(*rows, strict=True))
    time, event = curve.outcomes()
    assert sorted(zip(time, event, strict=True)) == sorted(rows)
    assert (np.diff(time) >= 0).all()
    random.shuffle(rows)
    second_result = SurvivalCurve.of(*zip(*rows, strict=True))
    assert second_result == curve
    assert hash(second_result) == hash(curve)


def test_survival_curve_is_immutable() -> None:
    curve = SurvivalCurve.of([3, 1], [True, False])
    for same in (curve, pickle.loads(pickle.dumps(curve))):
        assert same == curve
        with pytest.raises(ValueError, match="read-only"):
            same.times[0] = 5
    assert curve != SurvivalCurve.of([3, 1], [False, True])
    assert (curve == "a curve") is False


def test_survival_curve_of_censored_rows_is_constant() -> None:
    curve = SurvivalCurve.of([1, 2, 3], [False] * 3)
    assert curve.at([0, 2, 99]).tolist() == [1, 1, 1]
    assert str(curve) == "median survival not reached   [3 rows, 0 events]"


@pytest.mark.parametrize("times", [[1.0, np.nan], ["1"], [True]])
def test_survival_curve_rejects_invalid_times(times: Any) -> None:
    with pytest.raises(ValueError, match="times must be numbers"):
        SurvivalCurve.of([1], [True]).at(times)


# --- outcomes ------------------------------------------------------------------------------------


def test_read_outcomes_accepts_all_forms() -> None:
    time, event = [2.5, 1.0, 4.0], [True, False, True]
    rows = list(zip(event, time, strict=True))
    forms = [
        (time, event),
        (pd.Series(time, index=[7, 8, 9]), pd.Series([1, 0, 1])),
        (np.array(time), np.array([1.0, 0.0, 1.0])),
        (time, np.array(event, dtype=object)),
        np.array(rows, dtype=[("cens", bool), ("weeks", float)]),
        np.array([row[::-1] for row in rows], dtype=[("weeks", np.float32), ("dead", bool)]),
    ]
    for y in forms:
        outcomes = read_outcomes(y, 3)
        assert outcomes[0].tolist() == time
        assert outcomes[1].tolist() == event
        assert (outcomes[0].dtype, outcomes[1].dtype) == (np.float64, np.bool_)


@pytest.mark.parametrize(
    ("y", "error", "message"),
    [
        ([1.0, 2.0], TypeError, "structured array .* got list"),
        (np.zeros(2, [("a", float), ("b", float)]), TypeError, r"with the fields \('a', 'b'\)"),
        (np.zeros(2, [("a", bool), ("b", bool)]), TypeError, "structured array"),
        (([True, False], [1.0, 2.0]), ValueError, r"In a pair the times come first"),
        ((["1", "2"], [True, True]), ValueError, "times that are numbers, got '1'"),
        (([1.0, -2.0], [True, True]), ValueError, "got -2.0 in row 1"),
        (([np.nan, 2.0], [True, True]), ValueError, "got nan in row 0"),
        (([1.0, np.inf], [True, True]), ValueError, "got inf in row 1"),
        (([1.0, 2.0], [1, 2]), ValueError, "True or False .* got 2"),
        (([1.0, 2.0], [1, np.nan]), ValueError, "True or False .* got nan"),
        (([1.0, 2.0], pd.Series([True, None], dtype="boolean")), ValueError, "got <NA>"),
        (([1.0, 2.0], ["yes", "no"]), ValueError, "True or False .* got 'yes'"),
        (([1.0, 2.0], [True]), ValueError, r"shape \(2,\) and events of shape \(1,\)"),
        (([[1.0]], [[True]]), ValueError, "one time and one event per row"),
        (([], []), ValueError, "at least one outcome"),
        (([1.0], [True]), ValueError, "got 1 for 2 rows"),
    ],
)
def test_read_outcomes_rejects_invalid_outcomes(
    y: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        read_outcomes(y, 2)


# --- rules ---------------------------------------------------------------------------------------


@given(
    st.lists(
        st.tuples(st.integers(0, 9), st.integers(0, 12), st.booleans()), min_size=1, max_size=30
    ),
    st.lists(st.tuples(st.integers(-2, 10), st.integers(-2, 10)), max_size=5),
    st.booleans(),
)
def test_survival_rules_predictions_agree_with_loop(
    rows: list[tuple[int, int, bool]], bounds: list[tuple[int, int]], ordered: bool
) -> None:
    if not any(event for *_, event in rows):
        rows[0] = (*rows[0][:2], True)
    X = [[float(x)] for x, *_ in rows]
    ruleset = interval_rules(*bounds, ordered=ordered)
    rules = SurvivalRules.fit(ruleset, X, ([t for _, t, _ in rows], [e for *_, e in rows]))

    def rules_at(x: float) -> list[int]:
        holds = [i for i, (low, high) in enumerate(bounds) if low >= high or low < x <= high]
        return holds[:1] if ordered else holds

    answers_of = {i: [(t, e) for x, t, e in rows if i in rules_at(x)] for i in range(len(bounds))}
    questions, moments = np.arange(-3.0, 12), np.arange(0, 14)
    expected = []
    for x in questions:
        groups = [answers_of[i] for i in rules_at(x) if answers_of[i]]
        groups = groups or [[(t, e) for _, t, e in rows]]
        expected.append([np.mean([share_alive(k, when) for k in groups]) for when in moments])
    got = rules.predict_survival_function(questions[:, None], moments)
    np.testing.assert_allclose(got, expected, rtol=1e-12, atol=1e-15)
    assert ((got >= 0) & (got <= 1)).all()
    assert [c is None for c in rules.curves] == [not answers_of[i] for i in range(len(bounds))]


def test_survival_rules_agree_with_rulekit() -> None:
    golden = json.loads(RULEKIT.read_text(encoding="utf-8"))
    ruleset = RuleSet.from_json(json.dumps(golden["ruleset"]))
    rules = SurvivalRules.fit(ruleset, golden["X"], (golden["time"], golden["event"]))
    n_rules = rules.members(golden["rows"]).sum(axis=1)
    assert set(n_rules.tolist()) == {1, 2, 3}
    for row, curve in zip(golden["rows"], golden["curves"], strict=True):
        values = rules.predict_survival_function([row], curve["times"])[0]
        np.testing.assert_allclose(values, curve["probabilities"], rtol=1e-12, atol=1e-15)


def test_survival_rules_predict_alike_in_batches() -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 10, (20_000, 1))
    time, event = rng.exponential(5, 20_000).round(1), rng.random(20_000) < 0.7
    rules = SurvivalRules.fit(
        interval_rules((0, 6), (4, 9), (5, 7), ordered=False), X, (time, event)
    )
    sample = [0, 8191, 8192, 16384, 19_999]
    np.testing.assert_allclose(
        rules.predict_survival_function(X, [1, 5])[sample],
        rules.predict_survival_function(X[sample], [1, 5]),
        rtol=1e-12,
    )


def test_survival_rules_mean_of_equal_curves_is_at_most_one() -> None:
    curve = SurvivalCurve.of([1.0, 2.0], [True, True])
    for n_rules in range(1, 30):  # for some n, n * (1 / n) may exceed 1
        ruleset = interval_rules(*[(0, 9)] * n_rules, ordered=False)
        rules = SurvivalRules(ruleset, (curve,) * n_rules, curve)
        assert 1 - 1e-12 <= rules.predict_survival_function([[3.0]], [0.5])[0, 0] <= 1


def test_survival_rules_accept_any_rules() -> None:
    rng = np.random.default_rng(1)
    X = pd.DataFrame({"dose": rng.uniform(0, 10, 200), "age": rng.uniform(20, 80, 200)})
    time = rng.exponential(np.where(X["age"] > 50, 2, 9))
    tree = DecisionTreeRegressor(max_leaf_nodes=2, random_state=0).fit(X, time)
    rules = SurvivalRules.fit(tree, X, (time, np.ones(200, dtype=bool)))
    assert rules.ruleset == as_ruleset(tree)
    older = X["age"] > tree.tree_.threshold[0]
    medians = sorted(curve.median for curve in rules.curves if curve)
    assert medians == sorted(np.sort(time[rows])[(rows.sum() - 1) // 2] for rows in (older, ~older))


def test_survival_rules_describe_themselves() -> None:
    ruleset = interval_rules((0, 5), (50, 60), (1, 0), ordered=False)
    rules = SurvivalRules.fit(ruleset, [[1.0], [2.0], [9.0]], ([3.0, 4.0, 5.0], [1, 0, 0]))
    assert str(rules) == (
        "1. IF 0 < dose ≤ 5 THEN median survival 3   [2 rows, 1 event]\n"
        "2. IF 50 < dose ≤ 60 THEN nothing known   [0 rows]\n"
        "3. ALWAYS median survival not reached   [3 rows, 1 event]\n"
        "otherwise, where no rule holds: median survival not reached   [3 rows, 1 event]"
    )
    ordered = SurvivalRules.fit(ruleset.replace(ordered=True), [[1.0], [9.0]], ([3, 4], [1, 1]))
    assert str(ordered).splitlines()[2] == "3. ELSE median survival 4   [1 row, 1 event]"


def test_survival_rules_are_picklable_and_comparable() -> None:
    y = ([3.0, 4.0, 5.0], [1, 0, 1])
    rules = SurvivalRules.fit(interval_rules((0, 5), ordered=True), [[1.0], [2.0], [9.0]], y)
    assert pickle.loads(pickle.dumps(rules)) == rules
    listed = SurvivalRules(rules.ruleset, list(rules.curves), rules.fallback)  # type: ignore[arg-type]
    assert hash(listed) == hash(rules)
    assert len({rules, SurvivalRules.fit(rules.ruleset, [[1.0], [2.0], [9.0]], y)}) == 1
    with pytest.raises(AttributeError):
        rules.curves = ()  # type: ignore[misc]


def test_survival_rules_reject_invalid_input() -> None:
    ruleset = interval_rules((0, 5), ordered=True)
    with pytest.raises(ValueError, match="at least one event, got 2 censored rows"):
        SurvivalRules.fit(ruleset, [[1.0], [2.0]], ([1, 2], [0, 0]))
    with pytest.raises(ValueError, match="got 1 for 2 rows"):
        SurvivalRules.fit(ruleset, [[1.0], [2.0]], ([1], [1]))
    with pytest.raises(TypeError, match="has no rules"):
        SurvivalRules.fit(object(), [[1.0]], ([1], [1]))
    curve = SurvivalCurve.of([1], [True])
    with pytest.raises(ValueError, match="got 2 for 1 rules"):
        SurvivalRules(ruleset, (curve, curve), curve)
    rules = SurvivalRules(ruleset, (curve,), curve)
    with pytest.raises(ValueError, match=r"list of numbers, got shape \(\)"):
        rules.predict_survival_function([[1.0]], 3.0)
