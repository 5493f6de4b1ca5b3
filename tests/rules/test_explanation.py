"""Explanations describe the rules, and every reported change leads to another prediction."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_diabetes, load_iris
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from skescore.rules import (
    AtLeast,
    Domain,
    Explanation,
    Fallback,
    Interval,
    Linear,
    LinearOutput,
    Missing,
    OneOf,
    Rule,
    RuleSet,
    RuleStatistics,
    as_ruleset,
)

NAMES = ["length", "width", "color"]
VOTINGS = {
    "classification": ("votes", "probabilities", "logistic"),
    "regression": ("mean", "sum"),
}
DOMAIN = Domain((0, 0, 0), (10, 5, 3), [(2, ["blue", "green", "red"])])
COLORS = st.sampled_from(["blue", "green", "red"])


def apply_changes(row: list[Any], counterfactual: Any, names: list[str]) -> list[Any]:
    """Return the row with the changes of a counterfactual, and check their old values."""
    row = list(row)
    for change in counterfactual.changes:
        position = names.index(change.feature)
        assert change.before == row[position] or (change.before is None and row[position] is None)
        row[position] = change.after
    return row


@st.composite
def intervals(draw: Any, feature: int) -> Interval:
    low, length = draw(st.integers(0, 7)), draw(st.integers(1, 5))
    low, high = draw(st.sampled_from([(low, low + length), (-math.inf, low), (low, math.inf)]))
    return Interval(feature, low, high, *(draw(st.booleans()) for _ in range(3)))


def conditions() -> Any:
    colors = st.builds(
        OneOf,
        st.just(2),
        st.lists(COLORS, min_size=1, max_size=2),
        negated=st.booleans(),
        missing=st.booleans(),
    )
    gaps = st.builds(Missing, st.integers(0, 2), st.booleans())
    plain = st.one_of(intervals(0), intervals(1), colors, gaps)
    at_least = st.lists(plain, min_size=2, max_size=3).map(lambda parts: AtLeast(2, parts))
    sums = st.builds(lambda b: Linear([(0, 1), (1, -1)], upper=b), st.integers(-2, 5))
    return st.one_of(plain, plain, plain, at_least, sums)


@st.composite
def rule_sets(draw: Any) -> RuleSet:
    task = draw(st.sampled_from(["classification", "regression"]))
    outputs: Any = st.sampled_from("abc")
    if task == "regression":
        affine = st.builds(lambda c: LinearOutput(1, [(0, c)]), st.integers(1, 3))
        outputs = st.one_of(st.sampled_from([1.0, 2.0, 5.0]), affine)
    rules = []
    for _ in range(draw(st.integers(0, 5))):
        try:
            premise = Rule(draw(st.lists(conditions(), max_size=3)), "a").conditions
        except ValueError:  # the intervals contradict each other
            continue
        counts = (
            tuple(draw(st.lists(st.integers(0, 9), min_size=3, max_size=3)))
            if task == "classification"
            else None
        )
        statistics = RuleStatistics(draw(st.integers(0, 9)), counts)
        rules.append(Rule(premise, draw(outputs), statistics, draw(st.integers(-1, 4))))
    voting = draw(st.sampled_from([None, *VOTINGS[task]])) if rules else None
    policies = ["default", "abstain"] + ([] if voting else ["nearest"])
    fallback = Fallback("a" if task == "classification" else 3.0, draw(st.sampled_from(policies)))
    return RuleSet(
        rules,
        NAMES,
        task=task,
        classes=["a", "b", "c"] if task == "classification" else None,
        domain=draw(st.sampled_from([None, DOMAIN])),
        ordered=False if voting else draw(st.booleans()),
        voting=voting,
        fallback=fallback,
    )


ROWS = st.tuples(
    st.one_of(st.floats(-2, 12), st.integers(0, 10), st.none()),
    st.one_of(st.floats(-1, 6), st.integers(0, 5)),
    st.one_of(COLORS, st.none()),
).map(list)


def test_counterfactual_fills_but_never_removes_values() -> None:
    rules = RuleSet(
        [Rule([Missing(0)], "a"), Rule([Interval(1, upper=2, missing=True)], "b")],
        NAMES,
        task="classification",
        domain=DOMAIN,
        fallback=Fallback("c"),
    )
    text = str(rules.explain([None, 1.0, "red"]))
    assert "  length is missing: holds" in text
    assert "nearest other prediction: b, by rule 2, if\n  length were 5 instead of missing" in text
    text = str(rules.explain([3.0, None, "red"]))
    assert "  width ≤ 2 or missing: holds" in text
    assert "width were 2.01 instead of missing" in text
    assert rules.explain([3.0, 5.0, "red"]).counterfactual.prediction == "b"
    assert rules[:1].explain([3.0, 5.0, "red"]).counterfactual is None


@given(rules=rule_sets(), row=ROWS)
def test_explanation_agrees_with_predictions(rules: RuleSet, row: list[Any]) -> None:
    explanation = rules.explain(row)
    rows = pd.DataFrame([row], columns=NAMES).astype({"length": float, "color": object})
    assert same(explanation.prediction, rules.predict(rows)[0])
    assert [rule.index for rule in explanation.matching_rules] == np.flatnonzero(
        rules.match(rows)[0]
    ).tolist()
    if rules.voting is None:
        index = int(rules.assign(rows)[0])
        if index >= 0:
            assert (explanation.rule, explanation.reason) == (
                index,
                "first" if rules.ordered else "purest",
            )
        else:
            assert explanation.reason in ("nearest", "fallback")
            assert explanation.fallback == (explanation.rule is None)
    else:
        assert explanation.rule is None
        assert explanation.reason == "vote" or not rules.covers(rows)[0] or rules.voting == "mean"
    if explanation.sums is not None:
        sums = list(explanation.sums.values())
        for position, label in enumerate(rules.classes or ()):
            votes = [(rule.votes or {}).get(label, 0.0) for rule in explanation.matching_rules]
            assert sum(votes) == pytest.approx(sums[position])
    if explanation.rule is not None:
        holds = [condition.holds for condition in explanation.conditions]
        assert len(holds) == len(rules[explanation.rule].conditions)
        assert all(holds) == (explanation.reason != "nearest")
    assert str(explanation)


def same(one: Any, other: Any) -> bool:
    return bool(one == other or (one != one and other != other))


@given(rules=rule_sets(), row=ROWS)
def test_counterfactual_changes_the_prediction(rules: RuleSet, row: list[Any]) -> None:
    explanation = rules.explain(row)
    result = explanation.counterfactual
    if result is None:
        return
    assert result.changes
    after = [apply_changes(row, result, NAMES)]
    frame = pd.DataFrame(after, columns=NAMES).astype({"length": float, "color": object})
    assert same(rules.predict(frame)[0], result.prediction)
    assert not same(result.prediction, explanation.prediction)
    assert tuple(np.flatnonzero(rules.match(frame)[0])) == result.rules
    if rules.voting is None and result.rules:
        assert result.rule == rules.assign(frame)[0]
    second_explanation = rules.explain(after[0])
    assert same(second_explanation.prediction, result.prediction)


def slow_nearest(rules: RuleSet, row: list[float]) -> float:
    """Return the distance to the nearest other prediction on a fine grid."""
    grid = np.array(list(product(np.arange(-0.5, 12.5, 0.25), repeat=2)))
    distance = np.abs(grid - row).sum(axis=1) / 10
    is_other = rules.predict(grid) != rules.predict([row])[0]
    return float(distance[is_other].min()) if is_other.any() else math.inf


@given(
    boxes=st.lists(st.tuples(intervals(0), intervals(1), st.sampled_from("ab")), max_size=4),
    row=st.tuples(st.integers(0, 10), st.integers(0, 10)),
    ordered=st.booleans(),
)
def test_counterfactual_is_cheapest_single_change(boxes: Any, row: Any, ordered: bool) -> None:
    rules = RuleSet(
        [Rule([one, two], output) for one, two, output in boxes],
        ["x", "y"],
        task="classification",
        classes=["a", "b"],
        ordered=ordered,
        domain=Domain((0, 0), (10, 10)),
        fallback=Fallback("a"),
    )
    result = rules.explain(row).counterfactual
    here = rules.predict([row])[0]
    steps = np.arange(-0.5, 12.5, 0.25)
    for feature in (0, 1):
        lines = np.repeat([np.array(row, dtype=float)], len(steps), axis=0)
        lines[:, feature] = steps
        is_other = rules.predict(lines) != here
        if is_other.any():
            assert result is not None
            assert result.distance <= np.abs(steps - row[feature])[is_other].min() / 10 + 1e-12
    if result is not None:  # the counterfactual is no nearer than the nearest point of the grid
        assert result.distance >= slow_nearest(rules, list(row)) - 0.05 - 1e-12


def test_explanation_describes_ordered_rules() -> None:
    rules = RuleSet(
        [
            Rule([Interval(0, upper=2.5)], "setosa"),
            Rule([Interval(0, lower=2.5), Interval(1, upper=1.75)], "versicolor"),
            Rule([], "virginica"),
        ],
        ["length", "width"],
        task="classification",
        domain=Domain((1, 0), (7, 2.5)),
    )
    explanation = rules.explain([5.0, 1.7])
    assert (explanation.prediction, explanation.rule, explanation.reason, explanation.row) == (
        "versicolor",
        1,
        "first",
        {"length": 5.0, "width": 1.7},
    )
    result = explanation.counterfactual
    assert result is not None
    assert (result.prediction, result.rule, result.rules) == ("virginica", 2, (2,))
    assert [(c.feature, c.before, c.after) for c in result.changes] == [("width", 1.7, 1.76)]
    assert result.distance == pytest.approx(0.06 / 2.5)
    assert str(explanation) == "\n".join(
        [
            "prediction: versicolor, by rule 2, the first that holds",
            "rules that hold:",
            "  2. ELSE IF length > 2.5 AND width ≤ 1.75 THEN versicolor",
            "  3. ELSE virginica",
            "conditions of rule 2:",
            "  length > 2.5: holds",
            "  width ≤ 1.75: holds",
            "nearest other prediction: virginica, by rule 3, if",
            "  width were 1.76 instead of 1.7",
        ]
    )


def test_explanation_describes_votes_and_categories() -> None:
    rules = RuleSet(
        [
            Rule([OneOf(2, ["red"])], "a", weight=2),
            Rule([Interval(0, lower=3)], "b", weight=1.5),
            Rule([AtLeast(1, [Interval(0, upper=9), OneOf(2, ["blue"])])], "b", weight=0.25),
        ],
        NAMES,
        task="classification",
        ordered=False,
        voting="votes",
        domain=DOMAIN,
        fallback=Fallback("a"),
    )
    explanation = rules.explain({"length": 5, "width": None, "color": "red", "further": 1})
    assert (explanation.prediction, explanation.reason, explanation.sums) == (
        "a",
        "vote",
        {"a": 2.0, "b": 1.75},
    )
    assert [rule.weight for rule in explanation.matching_rules] == [2.0, 1.5, 0.25]
    assert explanation.matching_rules[2].votes == {"b": 0.25}
    result = explanation.counterfactual
    assert result is not None
    assert (result.prediction, result.rule, result.distance) == ("b", None, 1.0)
    assert (result.changes[0].before, result.changes[0].after) == ("red", "blue")
    assert "sums: a 2, b 1.75" in str(explanation)


def test_counterfactual_combines_two_changes() -> None:
    rules = RuleSet(
        [Rule([Interval(0, 4), Interval(1, 2)], "b"), Rule([], "a")],
        ["x", "y"],
        task="classification",
        domain=Domain((0, 0), (10, 10)),
    )
    result = rules.explain([1, 1]).counterfactual
    assert result is not None
    assert [change.after for change in result.changes] == [4.1, 2.1]
    assert result.distance == pytest.approx(0.42)


def test_counterfactual_leaves_earlier_rules() -> None:
    # Satisfying the second rule is not enough, since the first holds wherever x is small.
    rules = RuleSet(
        [
            Rule([Interval(0, upper=5)], "a"),
            Rule([Interval(1, 2), Interval(2, 2)], "b"),
            Rule([], "a"),
        ],
        ["x", "y", "z"],
        task="classification",
        domain=Domain((0, 0, 0), (10, 10, 10)),
    )
    result = rules.explain([1, 1, 1]).counterfactual
    assert result is not None
    assert (result.prediction, result.rule, len(result.changes)) == ("b", 1, 3)


def test_explanation_reports_missing_counterfactual() -> None:
    always = RuleSet([Rule([], "a")], ["x"], task="classification", classes=["a", "b"])
    assert always.explain([1]).counterfactual is None
    assert "no change found" in str(always.explain([1]))
    empty = RuleSet([], ["x"], task="regression", fallback=Fallback(2.0, "nearest"))
    explanation = empty.explain([1])
    assert (explanation.prediction, explanation.fallback, explanation.counterfactual) == (
        2.0,
        True,
        None,
    )


def test_explanation_describes_nearest_rule() -> None:
    rules = RuleSet(
        [Rule([Interval(0, 6), Interval(1, upper=3)], "b"), Rule([Interval(0, upper=1)], "a")],
        ["x", "y"],
        task="classification",
        fallback=Fallback("a", "nearest"),
    )
    explanation = rules.explain([5.0, 2.0])
    assert (
        explanation.prediction,
        explanation.rule,
        explanation.reason,
        explanation.matching_rules,
    ) == ("b", 0, "nearest", ())
    assert [(c.text, c.holds) for c in explanation.conditions] == [
        ("x > 6", False),
        ("y ≤ 3", True),
    ]


@pytest.mark.parametrize("kind", ["mean", None])
def test_explanation_agrees_with_real_trees(kind: str | None) -> None:
    diabetes, iris = load_diabetes(), load_iris()
    trees: list[tuple[Any, np.ndarray]] = [
        (
            DecisionTreeClassifier(max_depth=4, random_state=0).fit(iris.data, iris.target),
            iris.data,
        ),
        (
            DecisionTreeRegressor(max_leaf_nodes=12, random_state=0).fit(
                diabetes.data, diabetes.target
            ),
            diabetes.data,
        ),
    ]
    for tree, X in trees:
        rules = as_ruleset(tree)
        if kind and rules.task == "regression":
            rules = rules.replace(ordered=False, voting=kind)
        for row in X[::25]:
            explanation = rules.explain(row)
            result = explanation.counterfactual
            assert result is not None
            after = apply_changes(row.tolist(), result, list(rules.feature_names))
            assert tree.predict([after])[0] == pytest.approx(result.prediction)
            assert result.prediction != explanation.prediction


ONE = RuleSet([Rule([Interval(0, 2)], "b")], NAMES, task="classification", fallback=Fallback("b"))


@pytest.mark.parametrize(
    "x",
    [
        [3.0, None, "red"],
        (3, math.nan, "red"),
        np.array([3.0, np.nan, 0.0]),
        [[3.0, 1.0, "red"]],
        {"color": "red", "length": 3.0, "width": pd.NA},
        pd.Series({"width": 1.0, "color": "red", "length": 3.0}),
        pd.Series([3.0, 1.0, 2.0]),
        pd.DataFrame({"color": ["red"], "length": [3], "width": [2.0]}),
    ],
    ids=lambda x: type(x).__name__,
)
def test_explain_accepts_every_row_container(x: Any) -> None:
    explanation = ONE.explain(x)
    assert isinstance(explanation, Explanation)
    assert (explanation.row, explanation.rule) == ({"length": 3.0}, 0)


def test_explain_rejects_uncovered_row_without_fallback() -> None:
    rules = ONE.replace(fallback=None, classes=["a", "b"])
    assert rules.explain([3, 1, "red"]).counterfactual is None  # no rule is not another output
    with pytest.raises(ValueError, match="no fallback"):
        rules.explain([1, 1, "red"])


@pytest.mark.parametrize(
    ("x", "words"),
    [
        (pd.DataFrame({"length": [], "width": [], "color": []}), "got 0 rows"),
        ({"length": 1, "color": "red"}, "x lacks the feature 'width'"),
        ([1, 2], "2 features, but the rules have 3"),
        (["long", 2, "red"], "'length' with numbers"),
        (3.0, "two-dimensional"),
    ],
)
def test_explain_rejects_invalid_rows(x: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        ONE.explain(x)


def test_ruleset_explain_returns_explanations():
    rules = RuleSet(
        [Rule([Interval(0, upper=1)], "a"), Rule([], "b")], ["x"], task="classification"
    )
    assert rules.explain([0.5]).prediction == "a"


@pytest.mark.parametrize("value", [math.inf, -math.inf, 1.7e308, -1.7e308])
def test_explain_handles_huge_values(value):
    low, high = Interval(0, upper=0.5, upper_closed=True), Interval(0, lower=0.5)
    domain, task = Domain((0.0,), (1.0,)), "classification"
    rules = RuleSet([Rule((low,), "a"), Rule((high,), "b")], ["x"], task=task, domain=domain)
    explanation = rules.explain([[value]])
    assert explanation.prediction == ("a" if value < 0 else "b")
    assert "x" in str(explanation)


@pytest.mark.parametrize("dtype", ["string", "boolean", "Int64", "category"])
@pytest.mark.parametrize("uses_column", [False, True])
def test_explain_rows_with_missing_values(dtype: str, uses_column: bool) -> None:
    first, second = ("a", "b") if dtype in ("string", "category") else (1, 0)
    column = pd.Series([first, None, second], dtype=dtype)
    X = pd.DataFrame({"x": [1.0, 2.0, 9.0], "z": column})
    conditions = [Interval(0, upper=4.5), *([OneOf(1, [first])] if uses_column else [])]
    rules = RuleSet([Rule(conditions, "no"), Rule([], "yes")], ["x", "z"], task="classification")
    predictions = rules.predict(X).tolist()
    assert [explanation.prediction for explanation in rules.explain(X)] == predictions
    assert rules.explain(X.iloc[[1]]).prediction == predictions[1]


@pytest.mark.parametrize("task", ["regression", "classification"])
def test_explain_names_no_change_to_an_abstention(task: str) -> None:
    outputs: list[Any] = [5.0, 7.0] if task == "regression" else ["a", "b"]
    rules = RuleSet(
        [
            Rule([Interval(0, upper=20)], outputs[0]),
            Rule([Interval(0, lower=40)], outputs[1]),
        ],
        ["age"],
        task=task,
        domain=Domain((0,), (50,)),
        fallback=Fallback(outputs[0], "abstain"),
    )
    assert rules.explain([[19.0]]).counterfactual.prediction == outputs[1]
    assert rules.explain([[39.0]]).counterfactual.prediction == outputs[1]
    assert rules.explain([[21.0]]).counterfactual.prediction == outputs[0]
