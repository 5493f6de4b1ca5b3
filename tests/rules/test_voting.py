"""Rules that predict by voting, compared with plain loops over rows and rules."""

from __future__ import annotations

import math
import pickle
import tracemalloc

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skescore.rules import (
    BoxTable,
    Conclusions,
    Fallback,
    Interval,
    LinearOutput,
    OneOf,
    RowTable,
    Rule,
    RuleSet,
    RuleStatistics,
)
from skescore.selection import prune

VOTES = RuleSet(
    [
        Rule([Interval(0, upper=1)], "a", RuleStatistics(3, (2, 1)), weight=0.5),
        Rule([Interval(0, lower=0)], "b", RuleStatistics(4, (1, 3)), weight=0.25),
        Rule([Interval(1, lower=0)], "b", weight=0.25),
    ],
    ["x", "y"],
    task="classification",
    ordered=False,
    voting="votes",
    fallback=Fallback("b"),
)
ROWS = [[0.5, -1.0], [0.5, 1.0], [2.0, -1.0], [-1.0, -1.0], [math.nan, -1.0]]


# --- values computed by hand -------------------------------------------------------------------


def test_votes_add_weights_and_break_ties_by_first_class():
    # Votes 0.5 to 0.25; 0.5 to 0.5; only b; only a; no rule holds.
    assert VOTES.predict(ROWS).tolist() == ["a", "a", "b", "a", "b"]
    shares = VOTES.predict_proba(ROWS)
    assert shares[0].tolist() == pytest.approx([2 / 3, 1 / 3])
    assert shares[4].tolist() == [0, 1]


def test_probabilities_multiply_weights_by_class_shares():
    both = VOTES.replace(voting="probabilities")
    # 0.5 * (2/3, 1/3) + 0.25 * (1/4, 3/4) = (0.396, 0.354)
    assert both.predict([[0.5, -1.0]]).tolist() == ["a"]
    assert both.predict_proba([[0.5, -1.0]])[0].tolist() == pytest.approx([0.52777778, 0.47222222])
    # A third rule without counts has probability 1 for its class.
    assert both.predict([[0.5, 1.0]]).tolist() == ["b"]


def test_logistic_voting_returns_probabilities():
    odds = VOTES.replace(voting="logistic")
    first = odds.predict_proba([[0.5, -1.0]])[0]
    assert first[0] == pytest.approx(1 / (1 + math.exp(-0.25)))
    assert first.sum() == pytest.approx(1)


def test_mean_and_sum_combine_weighted_outputs():
    rules = [
        Rule([Interval(0, upper=1)], 10.0, weight=3),
        Rule([Interval(0, lower=0)], LinearOutput(1, [(1, 2)])),
    ]
    settings = {"task": "regression", "ordered": False, "fallback": Fallback(-7.0)}
    mean = RuleSet(rules, ["x", "y"], voting="mean", **settings)
    total = RuleSet(rules, ["x", "y"], voting="sum", **settings)
    X = [[0.5, 4.0], [5.0, 4.0], [-1.0, 4.0], [math.nan, 1.0]]
    assert mean.predict(X).tolist() == [(3 * 10 + 9) / 4, 9, 10, -7]
    assert total.predict(X).tolist() == [39, 9, 30, -7]


def test_mean_uses_fallback_for_zero_weights():
    rules = RuleSet(
        [Rule([], 1.0, weight=1), Rule([Interval(0, lower=0)], 5.0, weight=-1)],
        ["x"],
        task="regression",
        ordered=False,
        voting="mean",
        fallback=Fallback(2.0),
    )
    assert rules.predict([[-1.0], [1.0]]).tolist() == [1, 2]
    assert rules.covers([[1.0]]).tolist() == [True]
    with pytest.raises(ValueError, match="no fallback"):
        rules.replace(fallback=None).predict([[1.0]])


def test_linear_weights_depend_on_the_row():
    rules = RuleSet(
        [Rule([], "no", weight=1.0), Rule([], "yes", weight=LinearOutput(0, [(0, 2.0)]))],
        ["x"],
        task="classification",
        ordered=False,
        voting="logistic",
    )
    assert rules.predict([[0.4], [0.5], [0.6], [math.nan]]).tolist() == ["no", "no", "yes", "no"]
    assert rules.predict_proba([[2.0]])[0, 1] == pytest.approx(1 / (1 + math.exp(-3)))


def test_voting_abstains_where_uncovered():
    silent = VOTES.replace(fallback=Fallback("b", "abstain"))
    assert silent.predict(ROWS).tolist()[-1] == "no rule"
    assert silent.predict_proba(ROWS)[-1].tolist() == [0.5, 0.5]


def test_predict_proba_gives_winner_one_if_undefined():
    against = Rule([Interval(0, upper=1)], "a", weight=-1.0)
    nothing = Rule([Interval(0, lower=1)], "a", weight=0.0)
    rules = VOTES.replace(
        rules=[against, Rule([Interval(0, upper=1)], "b", weight=0.5), nothing],
        feature_names=["x"],
        classes=["a", "b"],
        domain=None,
        fallback=None,
    )
    assert rules.predict_proba([[0.0], [2.0]]).tolist() == [[0, 1], [1, 0]]


# --- comparison with a loop --------------------------------------------------------------------


def loop(ruleset: RuleSet, row: list[float]) -> object:
    """Return the predictions of a plain loop over rows."""
    columns = [np.array([value]) for value in row]
    sums = dict.fromkeys(ruleset.classes or (), 0.0)
    total = weights = 0.0
    is_covered = False
    for rule in ruleset.rules:
        if not rule.holds(lambda j: columns[j], 1)[0]:
            continue
        is_covered = True
        weight = rule.weight
        if ruleset.task == "regression":
            total += weight * rule.output
            weights += weight
        elif ruleset.voting != "probabilities":
            sums[rule.output] += weight
        else:
            counts = rule.statistics.class_counts
            for label, count in zip(ruleset.classes, counts, strict=True):
                sums[label] += weight * (count / sum(counts))
    if not is_covered or (ruleset.voting == "mean" and weights <= 0):
        return ruleset.fallback.output
    if ruleset.task == "regression":
        return total / weights if ruleset.voting == "mean" else total
    return max(sums, key=lambda label: sums[label])  # the first of equal ones


numbers = st.sampled_from([-1.5, -1.0, 0.0, 0.25, 1.0, 2.0, 3.5])
conditions = st.builds(
    lambda j, a, b: Interval(j, min(a, b), max(a, b), lower_closed=True),
    st.integers(0, 1),
    numbers,
    numbers,
)


@st.composite
def rule_sets(draw: st.DrawFn) -> RuleSet:
    voting = draw(st.sampled_from(["votes", "probabilities", "logistic", "mean", "sum"]))
    regression = voting in {"mean", "sum"}
    rules = []
    for _ in range(draw(st.integers(1, 8))):
        tests = draw(st.lists(conditions, max_size=2, unique_by=lambda c: c.feature))
        counts = tuple(draw(st.lists(st.integers(1, 9), min_size=3, max_size=3)))
        rules.append(
            Rule(
                tests,
                draw(numbers) if regression else draw(st.sampled_from("abc")),
                None if regression else RuleStatistics(sum(counts), counts),
                draw(numbers),
            )
        )
    return RuleSet(
        rules,
        ["x", "y"],
        task="regression" if regression else "classification",
        classes=None if regression else ["a", "b", "c"],
        ordered=False,
        voting=voting,
        fallback=Fallback(9.0 if regression else "c"),
    )


@given(rule_sets(), st.lists(st.tuples(numbers, numbers | st.just(math.nan)), min_size=1))
def test_voting_agrees_with_loop(ruleset: RuleSet, rows: list[tuple[float, float]]):
    assert ruleset.predict(rows).tolist() == [loop(ruleset, list(row)) for row in rows]
    second_restored = RuleSet.from_json(ruleset.to_json())
    assert second_restored == ruleset
    assert second_restored.predict(rows).tolist() == ruleset.predict(rows).tolist()
    assert pickle.loads(pickle.dumps(ruleset)) == ruleset


def test_voting_ignores_size_of_row_blocks(monkeypatch: pytest.MonkeyPatch):
    X = np.random.default_rng(0).uniform(-2, 3, (200, 2))
    before = VOTES.predict_proba(X)
    monkeypatch.setattr("skescore.rules._prediction._PAIRS", 20)
    assert (VOTES.predict_proba(X) == before).all()


@pytest.mark.parametrize("voting", ["votes", "probabilities", "logistic"])
def test_voting_ignores_size_of_rule_blocks(voting: str, monkeypatch: pytest.MonkeyPatch):
    rules = VOTES.rules * 7
    X = np.random.default_rng(0).uniform(-2, 3, (200, 2))
    before = VOTES.replace(rules=rules, voting=voting).predict_proba(X)
    monkeypatch.setattr("skescore.rules._matching._BLOCK", 4)
    assert (VOTES.replace(rules=rules, voting=voting).predict_proba(X) == before).all()


@pytest.mark.parametrize("voting", ["mean", "sum"])
def test_regression_voting_ignores_size_of_rule_blocks(
    voting: str, monkeypatch: pytest.MonkeyPatch
):
    generator = np.random.default_rng(0)
    rules = [
        Rule([Interval(0, lower=low)], LinearOutput(low, [(1, low)]), weight=low + 3)
        for low in generator.uniform(-2, 3, 30)
    ]
    settings = {"task": "regression", "ordered": False, "voting": voting}
    settings["fallback"] = Fallback(-1.0)
    X = generator.uniform(-2, 3, (200, 2))
    before = RuleSet(rules, ["x", "y"], **settings).predict(X)
    monkeypatch.setattr("skescore.rules._matching._BLOCK", 4)
    assert (RuleSet(rules, ["x", "y"], **settings).predict(X) == before).all()


def test_voting_memory_is_linear_in_rules():
    cuts = np.linspace(0, 1, 20_001)
    boxes = BoxTable(cuts[:-1, None], cuts[1:, None], *[np.ones((20_000, 1), dtype=bool)] * 2)
    rules = RuleSet.from_boxes(
        boxes,
        Conclusions(np.arange(20_000.0)),
        ["x"],
        task="regression",
        ordered=False,
        voting="sum",
    )
    X = (cuts[:-1, None] + cuts[1:, None])[::100] / 2
    tracemalloc.start()
    try:
        assert rules.predict(X).tolist() == list(range(0, 20_000, 100))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 40e6  # a matcher of all rules would need 20 000 * 20 000 bits, and a byte each


def test_from_boxes_keeps_weights():
    boxes = BoxTable(
        *(np.array([[v], [w]]) for v, w in [(0, 1), (2, 3), (True, True)]),
        np.array([[True], [True]]),
    )
    box_rules = RuleSet.from_boxes(
        boxes,
        Conclusions(np.array([0, 1]), weights=np.array([1.0, 2.5])),
        ["x"],
        task="classification",
        classes=["a", "b"],
        ordered=False,
        voting="votes",
    )
    assert [rule.weight for rule in box_rules] == [1.0, 2.5]
    assert box_rules.predict([[0.5], [1.5], [2.5]]).tolist() == ["a", "b", "b"]
    assert RuleSet.from_json(box_rules.to_json()) == box_rules
    assert pickle.loads(pickle.dumps(box_rules)) == box_rules


# --- invalid combinations ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"ordered": True}, r"voting='votes' lets all rules that hold .* pass ordered=False"),
        (
            {"voting": "mean"},
            r"for classification, one of 'votes', 'probabilities', 'logistic', got 'm",
        ),
        ({"voting": 3}, "got 3"),
        ({"fallback": Fallback("a", "nearest")}, "choose policy='default' or 'abstain'"),
    ],
)
def test_voting_rejects_contradictory_settings(changes: dict[str, object], message: str):
    with pytest.raises(ValueError, match=message):
        VOTES.replace(**changes)


def test_voting_rejects_operations_on_one_rule_per_row():
    with pytest.raises(ValueError, match="assign requires that one rule predicts each row"):
        VOTES.assign(ROWS)
    with pytest.raises(ValueError, match="simplify requires that one rule"):
        VOTES.simplify()
    with pytest.raises(ValueError, match="prune requires that one rule"):
        prune(VOTES, ROWS, ["a"] * len(ROWS))
    assert VOTES.replace(voting=None).assign(ROWS).tolist()[-1] == -1


@pytest.mark.parametrize("weight", [math.nan, math.inf])
def test_rule_rejects_nonfinite_weights(weight: float):
    with pytest.raises(ValueError, match="weight must be a finite number"):
        Rule([], "a", weight=weight)


def test_ruleset_rejects_linear_weights_in_regression():
    with pytest.raises(ValueError, match=r"Rule 1 of a regression has the weight 2·x0; it must"):
        RuleSet([Rule([], 1.0, weight=LinearOutput(0, [(0, 2)]))], ["x"], task="regression")
    with pytest.raises(ValueError, match="Rule 1 uses feature 3"):
        RuleSet([Rule([], "a", weight=LinearOutput(0, [(3, 2)]))], ["x"], task="classification")


def test_rule_text_states_weight_only_with_voting():
    assert str(VOTES[0]) == "IF x ≤ 1 THEN a   [weight 0.5, 3 rows, 67 % of this class]"
    assert Rule([OneOf(0, ["r"])], "a").to_text() == "IF x0 = r THEN a"


def test_voting_reads_frames_by_name():
    frame = pd.DataFrame(ROWS, columns=["x", "y"])[["y", "x"]]
    assert VOTES.predict(frame).tolist() == VOTES.predict(ROWS).tolist()
    assert len(RowTable(frame, VOTES.feature_names)) == len(ROWS)


def test_load_reads_earlier_names_of_voting():
    votes = VOTES.replace(voting="probabilities")
    assert RuleSet.from_json(votes.to_json().replace('"probabilities"', '"shares"')) == votes
    statistics = RuleStatistics(3, mean=2.0, standard_deviation=0.5)
    numbers = RuleSet([Rule([], 2.0, statistics)], ["x"], task="regression")
    written = numbers.to_json()
    assert '"spread"' not in written
    assert RuleSet.from_json(written.replace('"standard_deviation"', '"spread"')) == numbers


def test_probabilities_treat_infinity_times_zero_as_zero():
    first = Rule([], "a", RuleStatistics(1, (1, 0)), LinearOutput(0.0, [(0, 1e308)]))
    rules = RuleSet(
        [first, Rule([], "b", RuleStatistics(1, (0, 1)), 1.0)],
        ["x"],
        task="classification",
        ordered=False,
        voting="probabilities",
    )
    with np.errstate(over="ignore"):
        assert rules.predict([[1e9]]).tolist() == ["a"]
        assert rules.predict_proba([[1e9]]).tolist() == [[1.0, 0.0]]
