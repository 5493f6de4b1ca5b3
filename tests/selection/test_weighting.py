"""Rules weighted by a measure vote like those of RuleKit's engine."""

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
from sklearn.tree import DecisionTreeClassifier

from skescore.metrics import RuleMeasure, rule_quality
from skescore.rules import Domain, Fallback, Interval, Rule, RuleSet, RuleStatistics, as_ruleset
from skescore.selection import with_weights

DATA = Path(__file__).parents[1] / "data"
# RuleKit engine 2.1.24: rules with weights by several measures and the default one.
BY_MEASURE = json.loads((DATA / "rulekit_rule_sets.json").read_text(encoding="utf-8"))["rule_sets"]
PREDICTED = json.loads((DATA / "rulekit_rules.json").read_text(encoding="utf-8"))["rule_sets"]


def all_rows(case: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the whole data set of a model."""
    bunch = load_diabetes(scaled=False) if case["dataset"] == "diabetes" else load_iris()
    X, y = np.asarray(bunch.data), np.asarray(bunch.target)
    if case["task"] == "classification":
        y = np.asarray(bunch.target_names)[y]
    return (X[50:], y[50:]) if case["dataset"] == "iris_vv" else (X, y)


def engine_rules(case: Any, **settings: Any) -> RuleSet:
    """Return the rules without weights; `settings` go to the rule set."""
    rules, names = [], names_of(case)
    for rule in case["rules"]:
        premise = []
        for column, lower, upper, *closed in rule["conditions"]:
            low, high = (-math.inf if lower is None else lower), upper
            feature = column if isinstance(column, int) else names.index(column)
            premise.append(Interval(feature, low, math.inf if high is None else high, *closed))
        rules.append(Rule(premise, rule.get("output", rule.get("consequent"))))
    return RuleSet(rules, names, task=case["task"], **({"ordered": False} | settings))


def names_of(case: Any) -> list[str]:
    bunch = load_iris() if "iris" in case["dataset"] else load_diabetes()
    names = [name.replace(" (cm)", "_cm").replace(" ", "_") for name in bunch.feature_names]
    return [str(name) for name in names]


@pytest.mark.parametrize("case", BY_MEASURE, ids=lambda case: case["id"])
def test_with_weights_equals_weights_of_rulekit(case: Any) -> None:
    X, y = all_rows(case)
    trained = np.arange(len(X)) % 3 != (0 if case["train"] == "rows with index % 3 != 0" else 3)
    ours = with_weights(engine_rules(case), case["voting_measure"], X[trained], y[trained])
    assert ours.voting == ("votes" if case["task"] == "classification" else "mean")
    for rule, theirs in zip(ours, case["rules"], strict=True):
        assert rule.weight == pytest.approx(theirs["weight"], rel=1e-9)


@pytest.mark.parametrize(
    "case", [pytest.param(c, id=f"{c['dataset']}-{k}") for k, c in enumerate(PREDICTED)]
)
def test_with_weights_predicts_like_rulekit(case: Any) -> None:
    X, y = all_rows(case)
    tested = np.arange(len(X)) % 3 == 0
    trained = ~tested
    if case["rows"] == "all":
        tested = trained = tested | True
    # Where no rule holds, the engine predicts the class whose name sorts first.
    default = case["default"] if case["task"] == "regression" else min(y)
    measure = case["params"].get("voting_measure", "correlation").lower()
    rules = engine_rules(case, fallback=Fallback(default))
    ours = with_weights(rules, measure, X[trained], y[trained])
    for rule, theirs in zip(ours, case["rules"], strict=True):
        assert rule.weight == pytest.approx(theirs["weight"], rel=1e-9)
    answers = ours.predict(X[tested])
    if case["task"] == "classification":
        assert answers.tolist() == case["y_pred"]
    else:
        np.testing.assert_allclose(answers, case["y_pred"], rtol=1e-9)


def slow_answer(rules: Any, weights: list[float], row: Any, fallback: str) -> str:
    """Return the prediction of a plain loop over all rules."""
    votes = {"a": 0.0, "b": 0.0}
    is_covered = False
    for (lower, upper, output), weight in zip(rules, weights, strict=True):
        if lower < row <= upper:
            is_covered = True
            votes[output] += weight
    if not is_covered:
        return fallback
    return "a" if votes["a"] >= votes["b"] else "b"


@given(
    ends=st.lists(
        st.tuples(st.integers(0, 7), st.integers(1, 5), st.sampled_from("ab")),
        min_size=1,
        max_size=6,
    ),
    labels=st.lists(st.sampled_from("ab"), min_size=9, max_size=9),
    measure=st.sampled_from(["precision", "laplace", "rss", "c2"]),
)
def test_with_weights_agrees_with_loop(ends: Any, labels: list[str], measure: str) -> None:
    plain = [(low, low + length, output) for low, length, output in ends]
    X = np.arange(1.0, 10.0)
    rules = RuleSet(
        [Rule([Interval(0, low, high)], output) for low, high, output in plain],
        ["x"],
        task="classification",
        classes=["a", "b"],
        ordered=False,
        fallback=Fallback("b"),
    )
    weighted = with_weights(rules, measure, X[:, None], labels)
    weights = []
    for low, high, output in plain:
        holds = [label == output for x, label in zip(X, labels, strict=True) if low < x <= high]
        positives = labels.count(output)
        counts = [holds.count(True), holds.count(False), positives, 9 - positives]
        weights.append(float(rule_quality(measure, *counts, undefined=0.0)))
    assert [rule.weight for rule in weighted] == weights
    expected = [slow_answer(plain, weights, x, "b") for x in X]
    assert weighted.predict(X[:, None]).tolist() == expected


def two_rules(**settings: Any) -> RuleSet:
    return RuleSet(
        [
            Rule([Interval(0, upper=2)], "low", RuleStatistics(3, (1, 2))),
            Rule([Interval(0, lower=5)], "high", RuleStatistics(4, (4, 0)), 7.0),
        ],
        ["x"],
        task="classification",
        domain=Domain((0,), (9,)),
        **({"ordered": False, "fallback": Fallback("low")} | settings),
    )


X, Y = [[1.0], [2.0], [3.0]], ["low", "high", "high"]


def test_with_weights_changes_nothing_else() -> None:
    before = two_rules()
    after = with_weights(before, "precision", X, Y)
    assert [rule.weight for rule in after] == [0.5, 0.0]  # the second holds for no row
    plain = [Rule(r.conditions, r.output, r.statistics) for r in after]
    assert plain == [Rule(r.conditions, r.output, r.statistics) for r in before]
    assert after.replace(rules=before.rules, voting=None) == before


def test_with_weights_accepts_all_options() -> None:
    rules = two_rules()
    assert with_weights(rules, "g_measure", X, Y, g=8.0)[0].weight == pytest.approx(0.1)
    heavy = with_weights(rules, "precision", X, Y, sample_weight=[3, 1, 1])
    assert heavy[0].weight == pytest.approx(0.75)
    assert with_weights(rules, "precision", X, Y, undefined=-1.0)[1].weight == -1.0
    assert with_weights(rules, "precision", X, Y, voting="probabilities").voting == "probabilities"


def test_with_weights_accepts_disjoint_lists() -> None:
    iris = load_iris()
    tree = as_ruleset(DecisionTreeClassifier(max_depth=4).fit(iris.data, iris.target))
    voting = with_weights(
        tree.replace(ordered=True, disjoint=True), "precision", iris.data, iris.target
    )
    assert not voting.ordered
    np.testing.assert_array_equal(voting.predict(iris.data), tree.predict(iris.data))


def loss(**changes: Any) -> RuleMeasure:
    settings = {"name": "mine", "function": lambda k: k.n, "formula": "n", "range": "[0, N]"}
    settings |= {"limits": lambda P, N: (0.0, N), "greater_is_better": False}
    return RuleMeasure(**(settings | changes))


@pytest.mark.parametrize(
    ("changes", "measure", "options", "error", "words"),
    [
        ({"ordered": True}, "c2", {}, ValueError, r"ordered=False.*disjoint=True"),
        ({"fallback": Fallback("low", "nearest")}, "c2", {}, ValueError, "'default' or 'abstain'"),
        ({}, "precison", {}, ValueError, "Did you mean 'precision'"),
        ({}, loss(), {}, ValueError, "'mine' is a loss"),
        ({}, 3, {}, TypeError, "measure must be a name or a RuleMeasure, got 3"),
        ({}, "c2", {"voting": "mean"}, ValueError, "voting must be"),
        ({}, "c2", {"undefined": math.nan}, ValueError, "undefined must be a finite number"),
    ],
)
def test_with_weights_rejects_invalid_arguments(
    changes: Any, measure: Any, options: Any, error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        with_weights(two_rules(**changes), measure, X, Y, **options)


def test_with_weights_rejects_infinite_weights() -> None:
    def endless(k: Any) -> Any:
        return np.full(np.shape(k.p), np.inf)

    measure = loss(function=endless, greater_is_better=True)
    with pytest.raises(ValueError, match="'mine' gives rule 1 the weight inf"):
        with_weights(two_rules(), measure, X, Y)


def test_with_weights_sets_precisions_as_weights():
    rules = RuleSet(
        [Rule([Interval(0, upper=1)], "a"), Rule([Interval(0, lower=0)], "b")],
        ["x"],
        task="classification",
        ordered=False,
    )
    X, y = [[0.0], [0.5], [2.0]], ["a", "b", "b"]
    weighted = with_weights(rules, "precision", X, y)
    assert [rule.weight for rule in weighted] == [0.5, 1.0]
    assert weighted.predict([[0.5]]).tolist() == ["b"]
