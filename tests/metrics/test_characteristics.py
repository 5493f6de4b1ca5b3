"""Characteristics of rule sets compared with RuleKit's engine and with plain loops."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_diabetes, load_iris

from skescore.metrics import characteristics, confusion
from skescore.rules import Fallback, Interval, OneOf, Rule, RuleSet
from skescore.scorers import make_performance_scorer

# RuleKit engine 2.1.24: the rules of ten models, and the figures of the engine for each model.
REFERENCE = json.loads(
    (Path(__file__).parents[1] / "data" / "rulekit_rule_sets.json").read_text(encoding="utf-8")
)["rule_sets"]
CASES = [pytest.param(case, id=case["id"]) for case in REFERENCE]

#: Ours by the engine's name. What it tried while growing cannot be told from the rules.
NAMES = {
    "#rules": "n_rules",
    "#conditions_per_rule": "conditions_per_rule",
    "#induced_conditions_per_rule": "induced_conditions_per_rule",
    "avg_rule_coverage": "avg_rule_coverage",
    "avg_rule_precision": "avg_rule_precision",
    "avg_rule_quality": "avg_rule_quality",
    "avg_pvalue": "avg_pvalue",
    "avg_FDR_pvalue": "avg_rulekit_fdr_pvalue",
    "avg_FWER_pvalue": "avg_rulekit_fwer_pvalue",
    "fraction_0.05_significant": "fraction_significant",
    "fraction_0.05_FDR_significant": "fraction_rulekit_fdr_significant",
    "fraction_0.05_FWER_significant": "fraction_rulekit_fwer_significant",
}
KEYS = [
    "n_rules",
    "conditions_per_rule",
    "literals_per_rule",
    "avg_rule_coverage",
    "avg_rule_precision",
    "avg_rule_quality",
    *(f"avg_{c}pvalue" for c in ("", "fdr_", "fwer_", "rulekit_fdr_", "rulekit_fwer_")),
    *(f"fraction_{c}significant" for c in ("", "fdr_", "fwer_", "rulekit_fdr_", "rulekit_fwer_")),
    "rules_per_example",
]
CONFLICTS = ["voting_conflicts", "negative_voting_conflicts"]


def rows_of(case: Any, which: str) -> tuple[np.ndarray, np.ndarray]:
    bunch = load_diabetes(scaled=False) if case["dataset"] == "diabetes" else load_iris()
    X, y = np.asarray(bunch.data), np.asarray(bunch.target)
    if case["task"] == "classification":
        y = np.asarray(bunch.target_names)[y]
    if case["dataset"] == "iris_vv":
        X, y = X[50:], y[50:]
    every_third = np.arange(len(X)) % 3 == 0
    used = {
        "rows with index % 3 != 0": ~every_third,
        "rows with index % 3 == 0": every_third,
    }.get(which, every_third | True)
    return X[used], y[used]


def engine_rules(case: Any, n_features: int) -> RuleSet:
    rules = []
    for rule in case["rules"]:
        premise = [
            Interval(
                feature,
                -math.inf if lower is None else lower,
                math.inf if upper is None else upper,
                *closed,
            )
            for feature, lower, upper, *closed in rule["conditions"]
        ]
        rules.append(Rule(premise, rule["output"], weight=rule["weight"]))
    return RuleSet(
        rules,
        [f"x{j}" for j in range(n_features)],
        task=case["task"],
        ordered=False,
        voting="votes" if case["task"] == "classification" else "mean",
    )


@pytest.mark.parametrize("case", CASES)
def test_characteristics_equal_those_of_rulekit(case: Any) -> None:
    X, y = rows_of(case, case["train"])
    rules = engine_rules(case, X.shape[1])
    theirs = dict(case["model_characteristics"])
    ours = characteristics(
        rules,
        X,
        y,
        measure=case["voting_measure"],
        untested=0.0,
        induced=theirs["#induced_conditions_per_rule"],
    )
    assert theirs["#induced_conditions_per_rule"] >= theirs["#conditions_per_rule"]
    assert theirs.keys() == NAMES.keys()
    for name, value in theirs.items():
        tolerance = 1e-6 if "pvalue" in name else 1e-9
        assert ours[NAMES[name]] == pytest.approx(value, rel=tolerance, abs=1e-300), name


@pytest.mark.parametrize("case", [c for c in CASES if "iris" in c.values[0]["dataset"]])
def test_conflicts_equal_those_of_rulekit(case: Any) -> None:
    which = case["train" if case["evaluated_on"] == "training rows" else "evaluated_on"]
    X, y = rows_of(case, which)
    ours = characteristics(engine_rules(case, X.shape[1]), X, y)
    for name, value in case["performance"].items():
        assert ours[name.lstrip("#")] == pytest.approx(value, rel=1e-12), name


def test_characteristics_apply_standard_corrections() -> None:
    # The corrections give different results for the p-values of the tenth model.
    case = REFERENCE[9]
    X, y = rows_of(case, case["train"])
    ours = characteristics(engine_rules(case, X.shape[1]), X, y)
    raw = sorted(rule["pvalue"] for rule in case["rules"])
    bh = [min(p * 10 / rank for rank, p in enumerate(raw, 1) if rank > k) for k in range(10)]
    holm = [max(p * (10 - j) for j, p in enumerate(raw[: k + 1])) for k in range(10)]
    assert ours["avg_fdr_pvalue"] == pytest.approx(np.mean(np.minimum(bh, 1)), rel=1e-6)
    assert ours["avg_fwer_pvalue"] == pytest.approx(np.mean(np.minimum(holm, 1)), rel=1e-6)
    assert ours["fraction_fdr_significant"] == np.mean(np.array(bh) <= 0.05) == 0.9
    assert ours["fraction_fwer_significant"] == np.mean(np.array(holm) <= 0.05) == 0.8


def test_characteristics_have_constant_keys() -> None:
    some = RuleSet([Rule([], "a")], ["x"], task="classification", classes=["a", "b"])
    numbers = RuleSet([Rule([], 1.0)], ["x"], task="regression")
    for rules, y in ((some, ["a", "b"]), (numbers, [1.0, 2.0])):
        for empty in (rules, rules.replace(rules=[])):
            figures = characteristics(empty, [[0.0], [1.0]], y)
            assert list(figures) == KEYS + (CONFLICTS if rules is some else [])
            assert all(type(value) in (int, float) for value in figures.values())


def test_characteristics_without_rules_are_zero_or_nan() -> None:
    rules = RuleSet([], ["x"], task="classification", classes=["a", "b"])
    figures = characteristics(rules, [[0.0], [1.0]], ["a", "b"])
    zeros = {"n_rules", "rules_per_example", *CONFLICTS}
    assert {key for key, value in figures.items() if value == 0} == zeros
    assert all(math.isnan(value) for key, value in figures.items() if key not in zeros)


def test_characteristics_count_conditions_and_literals() -> None:
    rules = RuleSet(
        [
            Rule([Interval(0, 0, 9), Interval(1, lower=0)], "a"),  # 2 features, 3 literals
            Rule([OneOf(2, [1, 2])], "b"),
            Rule([], "a"),
        ],
        ["x", "y", "z"],
        task="classification",
    )
    figures = characteristics(rules, [[1, 1, 1], [2, 2, 3]], ["a", "b"])
    assert figures["n_rules"] == 3
    assert figures["conditions_per_rule"] == 1.0
    assert figures["literals_per_rule"] == pytest.approx(rules.n_literals / 3)
    assert figures["rules_per_example"] == 2.5


def test_characteristics_pass_parameters_to_measure() -> None:
    rules = RuleSet([Rule([], "a")], ["x"], task="classification", classes=["a", "b"])
    X, y = [[0.0], [1.0], [2.0]], ["a", "b", "a"]
    for m in (1.0, 5.0):
        figures = characteristics(rules, X, y, measure="m_estimate", m=m)
        assert figures["avg_rule_quality"] == pytest.approx((2 + m * 2 / 3) / (3 + m))


def test_conflicts_of_ordered_rules_are_decided_by_first_rule() -> None:
    low, all_ = Rule([Interval(0, upper=2)], "a"), Rule([], "b")
    x, y = np.arange(5.0)[:, None], np.array([*"abbbb"])
    for rules, wrong in (([low, all_], 2), ([all_, low], 1)):
        figures = characteristics(RuleSet(rules, ["x"], task="classification"), x, y)
        assert [figures[key] for key in CONFLICTS] == [3, wrong]


@st.composite
def voting_rules(draw: st.DrawFn) -> tuple[RuleSet, np.ndarray, np.ndarray]:
    side = st.tuples(st.integers(0, 6), st.integers(0, 6)).map(sorted)
    weights = st.sampled_from([0.5, 1.0, 3.0])
    rules = [
        Rule([Interval(0, low, high, True, True)], draw(st.sampled_from("abc")), weight=weight)
        for (low, high), weight in draw(st.lists(st.tuples(side, weights), min_size=1, max_size=6))
    ]
    x = np.array(draw(st.lists(st.integers(0, 6), min_size=1, max_size=12)), dtype=float)[:, None]
    y = np.array(draw(st.lists(st.sampled_from("abc"), min_size=len(x), max_size=len(x))))
    voting = draw(st.sampled_from([None, "votes"]))
    fallback = draw(st.sampled_from([None, Fallback("b")]))
    ruleset = RuleSet(
        rules,
        ["x"],
        task="classification",
        classes=["a", "b", "c"],
        ordered=False,
        voting=voting,
        fallback=fallback,
    )
    return ruleset, x, y


@given(case=voting_rules())
def test_characteristics_agree_with_loop(case: Any) -> None:
    rules, X, y = case
    torn = wrong = n_matches = 0
    for row, label in zip(X, y, strict=True):
        firing = [
            rule for rule in rules if all(i.lower <= row[0] <= i.upper for i in rule.intervals)
        ]
        n_matches += len(firing)
        if len({rule.output for rule in firing}) > 1:
            torn += 1
            wrong += rules.predict(row[None])[0] != label
    figures = characteristics(rules, X, y, alpha=0.1)
    assert [figures[key] for key in CONFLICTS] == [torn, wrong]
    assert figures["rules_per_example"] == pytest.approx(n_matches / len(X))
    # The flags and the shares of significant rules use the same threshold.
    counts = confusion(rules, X, y)
    for name, correction in (("", None), ("fdr_", "fdr_bh"), ("rulekit_fdr_", "rulekit_fdr")):
        flags = counts.significant(0.1, correction)
        assert figures[f"fraction_{name}significant"] == flags.mean()


@given(case=voting_rules(), data=st.data())
def test_characteristics_weights_equal_repeated_rows(case: Any, data: st.DataObject) -> None:
    rules, X, y = case
    times = data.draw(st.lists(st.integers(0, 3), min_size=len(y), max_size=len(y)).filter(any))
    second_repeated = np.repeat(np.arange(len(y)), times)
    weighted = characteristics(rules, X, y, sample_weight=times)
    assert weighted == pytest.approx(
        characteristics(rules, X[second_repeated], y[second_repeated]), rel=1e-12, nan_ok=True
    )


def test_characteristics_handle_untested_rules() -> None:
    rules = RuleSet(
        [Rule([Interval(0, upper=4)], 1.0), Rule([Interval(0, upper=0)], 0.0)],
        ["x"],
        task="regression",
    )
    x = np.arange(12.0)
    ours = characteristics(rules, x[:, None], x**2)
    assert math.isnan(ours["avg_pvalue"])
    assert math.isnan(ours["avg_fwer_pvalue"])
    assert ours["fraction_fwer_significant"] == 1.0
    engine = characteristics(rules, x[:, None], x**2, untested=0.0)
    assert engine["avg_pvalue"] == pytest.approx(
        confusion(rules, x[:, None], x**2).p_values()[0] / 2
    )
    assert engine["fraction_significant"] == 1.0


def test_characteristics_count_induced_conditions() -> None:
    rules = RuleSet(
        [
            Rule([Interval(0, 0, 1), Interval(1, upper=2)], 1.0),
            Rule([Interval(0, upper=3)], 2.0),
            Rule([], 3.0),
        ],
        ["x", "z"],
        task="regression",
    )
    pruned, X, y = rules[1:], [[0.0, 0.0], [5.0, 0.0]], [1.0, 2.0]
    figures = characteristics(pruned, X, y, induced=rules)
    assert figures["induced_conditions_per_rule"] == 4 / 2  # three comparisons and one
    assert math.isnan(
        characteristics(rules[:0], X, y, induced=rules)["induced_conditions_per_rule"]
    )
    assert "induced_conditions_per_rule" not in characteristics(pruned, X, y)
    with pytest.raises(ValueError, match="induced must be"):
        characteristics(pruned, X, y, induced=-1.0)


def test_characteristics_contain_times() -> None:
    rules = RuleSet([Rule([], 1.0)], ["x"], task="regression")
    X, y = [[0.0], [1.0]], [1.0, 2.0]
    took = {"time_pruning_s": np.float32(0.5), "time_total_s": 2}
    figures = characteristics(rules, X, y, times=took)
    assert list(figures) == [*KEYS, "time_total_s", "time_pruning_s"]
    assert (figures["time_total_s"], figures["time_pruning_s"]) == (2.0, 0.5)
    assert {type(figures[name]) for name in took} == {float}
    with pytest.raises(ValueError, match=r"no entry 'time_total'. Did you mean 'time_total_s'"):
        characteristics(rules, X, y, times={"time_total": 1.0})
    for wrong in (-1.0, math.nan, math.inf, [1.0]):
        with pytest.raises(ValueError, match=r"times\['time_total_s'\] must be .*Pass seconds"):
            characteristics(rules, X, y, times={"time_total_s": wrong})
    with pytest.raises(TypeError, match=r"times\['time_total_s'\] must be a number"):
        characteristics(rules, X, y, times={"time_total_s": "1 s"})


def test_characteristics_reject_invalid_input() -> None:
    rules = RuleSet([Rule([], "a")], ["x"], task="classification", classes=["a", "b"])
    X, y = [[0.0], [1.0]], ["a", "b"]
    with pytest.raises(ValueError, match="alpha must be"):
        characteristics(rules, X, y, alpha=1.5)
    with pytest.raises(ValueError, match="no measure of rules 'c3'"):
        characteristics(rules, X, y, measure="c3")
    with pytest.raises(ValueError, match="one label per row"):
        characteristics(rules, X, y[:1])
    with pytest.raises(ValueError, match="at least one row"):
        characteristics(rules, np.zeros((0, 1)), [])


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1), (1, 2, 0)])
def test_conflicts_decide_close_votes_like_predict(order: tuple[int, ...]) -> None:
    """In floating point, 0.1 + 0.2 exceeds 0.3."""
    items = [Rule([], "b", weight=0.1), Rule([], "b", weight=0.2), Rule([], "a", weight=0.3)]
    rules = RuleSet(
        [items[i] for i in order], ["x"], task="classification", ordered=False, voting="votes"
    )
    X, y = [[0.0], [1.0]], ["a", "b"]
    wrong = int((rules.predict(X) != np.array(y)).sum())
    assert characteristics(rules, X, y)["negative_voting_conflicts"] == wrong == 1


@pytest.mark.parametrize("total", [1.0, 0.99999, 0.01])
def test_characteristics_accept_weights_that_add_up_to_1(total: float) -> None:
    rules = RuleSet(
        [Rule([Interval(0, upper=2)], "a"), Rule([Interval(0, lower=1)], "b")],
        ["x"],
        task="classification",
        ordered=False,
    )
    X, y = [[0.0], [1.5], [3.0]], ["a", "b", "b"]
    figures = characteristics(rules, X, y, sample_weight=np.full(3, total / 3))
    assert figures["rules_per_example"] == pytest.approx(4 / 3)
    assert figures["voting_conflicts"] == pytest.approx(total / 3)
    assert math.isnan(figures["avg_pvalue"])
    assert math.isnan(figures["fraction_significant"])
    assert make_performance_scorer("rules_per_example")(
        rules, X, y, sample_weight=np.full(3, total / 3)
    ) == pytest.approx(4 / 3)
