"""The JSON of decision-rules, read without the package."""

from __future__ import annotations

import copy
import json
from typing import Any

import numpy as np
import pandas as pd
import pytest

from skescore.rules import AtLeast, Interval, Linear, OneOf
from skescore.rules.importers import read_decision_rules


def number(column: int, **bounds: Any) -> dict[str, Any]:
    sides = {"left": None, "right": None, "left_closed": False, "right_closed": False}
    return {"type": "elementary_numerical", "attributes": [column], "negated": False} | (
        sides | bounds
    )


def nominal(column: int, value: str, *, negated: bool = False) -> dict[str, Any]:
    return {
        "type": "elementary_nominal",
        "attributes": [column],
        "negated": negated,
        "value": value,
    }


def compound(*parts: Any, operator: str = "CONJUNCTION", negated: bool = False) -> dict[str, Any]:
    return {
        "type": "compound",
        "attributes": [],
        "negated": negated,
        "operator": operator,
        "subconditions": list(parts),
    }


def rule(premise: Any, value: Any, weight: float | None = 1.0, **more: Any) -> dict[str, Any]:
    return {
        "uuid": "1",
        "string": "",
        "premise": premise,
        "conclusion": {"value": value} | more.pop("conclusion", {}),
        "coverage": more.pop("coverage", None),
        "voting_weight": weight,
    }


def classification(*rules: Any, **meta: Any) -> dict[str, Any]:
    return {
        "meta": {
            "attributes": ["length", "color of it"],
            "decision_attribute": "kind",
            "decision_attribute_distribution": {"a": 3, "b": 4},
            "default_conclusion": {"value": "b"},
        }
        | meta,
        "rules": list(rules),
    }


def regression(*rules: Any, **meta: Any) -> dict[str, Any]:
    return {
        "meta": {
            "attributes": ["length", "color of it"],
            "decision_attribute": "size",
            "y_train_median": 7.5,
        }
        | meta,
        "rules": list(rules),
    }


ROWS = pd.DataFrame(
    {
        "length": [1.0, 2.0, 3.0, 4.0, np.nan, 2.0],
        "color of it": pd.Series(["red", "red", "blue", "green", "red", None], dtype=object),
    }
)


def test_decision_rules_add_votes_per_class() -> None:
    data = classification(
        rule(number(0, left=2.0, left_closed=True), "a", 0.5),
        rule(compound(nominal(1, "red")), "b", 0.3),
        rule(number(0, right=3.0), "b", 0.3),
    )
    ours = read_decision_rules(data)
    # Votes by row for a: none, 0.5, 0.5, 0.5, none, 0.5; for b: 0.6, 0.6, 0, 0, 0.3, 0.3.
    assert ours.predict(ROWS).tolist() == ["b", "b", "a", "a", "b", "a"]
    assert (ours.voting, ours.ordered, ours.fallback.output) == ("votes", False, "b")
    assert ours.classes == ("a", "b")
    assert read_decision_rules(json.dumps(data)) == ours


def test_decision_rules_strategies_set_order_of_rules() -> None:
    data = classification(
        rule(number(0, left=2.0), "b", 0.3),
        rule(nominal(1, "red"), "a", 0.5),
        rule(number(0, left=1.0), "a", 0.5),
    )
    best = read_decision_rules(data, strategy="best_rule")
    assert [r.output for r in best] == ["a", "a", "b"]
    assert best.predict(ROWS).tolist() == ["a", "a", "a", "a", "a", "a"]
    first = read_decision_rules(data, strategy="first")
    assert first.predict(ROWS).tolist() == ["a", "a", "b", "b", "a", "a"]
    assert first.ordered
    assert first.voting is None


def test_decision_rules_regression_predicts_weighted_mean() -> None:
    data = regression(
        rule(
            number(0, left=2.0, left_closed=True),
            10.0,
            0.5,
            conclusion={"low": 9.0, "train_covered_y_mean": 10.0, "train_covered_y_std": 2.0},
            coverage={"p": 3, "n": 1},
        ),
        rule(nominal(1, "red"), 4.0, 0.25, conclusion={"low": 0.0, "train_covered_y_std": None}),
    )
    ours = read_decision_rules(data)
    assert ours.predict(ROWS).tolist() == [4.0, 8.0, 10.0, 10.0, 4.0, 10.0]
    assert ours.fallback.output == 7.5
    statistics = ours[0].statistics
    assert (statistics.n_rows, statistics.mean, statistics.standard_deviation) == (4, 10.0, 2.0)
    assert ours[1].statistics is None
    ruleset = read_decision_rules(
        data | {"meta": data["meta"] | {"default_conclusion": {"value": 1}}}
    )
    assert ruleset.fallback.output == 1
    nothing = data["meta"] | {"default_conclusion": {"value": float("nan")}}
    assert read_decision_rules(data | {"meta": nothing}).fallback.policy == "abstain"


@pytest.mark.parametrize(
    ("premise", "conditions"),
    [
        (number(0, left=1.0, right=2.0, left_closed=True), [Interval(0, 1, 2, True, False)]),
        (number(0, right=2.0, right_closed=True) | {"negated": True}, [Interval(0, 2)]),
        (
            number(0, left=1.0, right=2.0, left_closed=True) | {"negated": True},
            [
                AtLeast(
                    1, [Interval(0, upper=1, upper_closed=False), Interval(0, 2, lower_closed=True)]
                )
            ],
        ),
        (nominal(1, "red", negated=True), [OneOf(1, ["red"], negated=True)]),
        (
            {"type": "discrete_set", "attributes": [1], "values_set": ["red", "blue"]},
            [OneOf(1, ["blue", "red"])],
        ),
        (
            {"type": "attributes", "attributes": [0, 1], "operator": "<="},
            [Linear([(0, 1), (1, -1)], upper=0)],
        ),
        (
            {"type": "attributes", "attributes": [1, 0], "operator": ">", "negated": True},
            [Linear([(0, -1), (1, 1)], upper=0)],
        ),
        (
            compound(number(0, left=1.0), compound(number(0, right=5.0), nominal(1, "red"))),
            [Interval(0, 1, 5, False, False), OneOf(1, ["red"])],
        ),
        (
            compound(
                nominal(1, "red"),
                compound(number(0, left=1.0), nominal(1, "blue")),
                operator="ALTERNATIVE",
            ),
            [AtLeast(1, [OneOf(1, ["red"]), AtLeast(2, [Interval(0, 1), OneOf(1, ["blue"])])])],
        ),
        (compound(operator="ALTERNATIVE"), []),
    ],
)
def test_decision_rules_convert_conditions(premise: Any, conditions: list[Any]) -> None:
    (parsed,) = read_decision_rules(classification(rule(premise, "a")))
    assert list(parsed.conditions) == conditions


def test_decision_rules_keep_types_of_labels() -> None:
    for labels in ([3, 10, 2], [0.5, 2.0, 1.0], [True, False], ["1", "2"]):
        data = classification(
            *(rule(number(0, left=i + 1.0), label) for i, label in enumerate(labels[:2])),
            decision_attribute_distribution=dict.fromkeys(labels, 2),
            default_conclusion={"value": labels[-1]},
        )
        with_text = read_decision_rules(json.dumps(data))
        assert with_text == read_decision_rules(data)
        assert list(map(repr, with_text.classes)) == list(map(repr, sorted(labels)))


def test_decision_rules_default_to_most_frequent_class() -> None:
    counts = {"a": 4, "b": 4, "c": 1}
    data = classification(
        rule(number(0, left=9.0), "a"),
        decision_attribute_distribution=counts,
        default_conclusion=None,
    )
    # decision-rules sorts by label, then by count, and takes the last.
    assert read_decision_rules(data).predict(ROWS).tolist() == ["b"] * 6


def test_decision_rules_keep_class_counts_if_determined() -> None:
    covered = {"coverage": {"p": 5, "n": 2, "P": 9, "N": 9}}
    (two,) = read_decision_rules(classification(rule(number(0), "a", **covered)))
    assert two.statistics.class_counts == (5, 2)
    three = {"decision_attribute_distribution": {"a": 1, "b": 1, "c": 1}}
    (one,) = read_decision_rules(
        classification(rule(number(0), "a", coverage={"p": 5, "n": 2}), **three)
    )
    assert (one.statistics.n_rows, one.statistics.class_counts) == (7, None)
    (pure,) = read_decision_rules(
        classification(rule(number(0), "a", coverage={"p": 5, "n": 0}), **three)
    )
    assert pure.statistics.class_counts == (5, 0, 0)


def test_decision_rules_warn_about_values_like_numbers() -> None:
    data = classification(rule(nominal(1, "1"), "a"))
    with pytest.warns(UserWarning, match="color of it = '1'"):
        (text,) = read_decision_rules(data)
    assert text.conditions == (OneOf(1, ["1"]),)
    (parsed,) = read_decision_rules(data, categories={"color of it": [1, 2]})
    assert repr(parsed.conditions) == repr((OneOf(1, [1]),))
    with pytest.raises(ValueError, match="names 'color', which is not one of the features"):
        read_decision_rules(data, categories={"color": [1]})


def damaged(path: str, value: Any) -> Any:
    data = copy.deepcopy(
        classification(rule(compound(number(0, left=1.0), nominal(1, "red")), "a"))
    )
    *steps, last = path.split("/")
    parent: Any = data
    for step in steps:
        parent = parent[int(step)] if step.isdigit() else parent[step]
    parent[last] = value
    return data


@pytest.mark.parametrize(
    ("path", "value", "fault"),
    [
        ("meta", None, "'meta' must be an object, got None"),
        ("meta/attributes", "length", "'attributes' must be a list"),
        ("meta/default_conclusion", 3, "'default_conclusion' must be an object"),
        ("rules", {}, "'rules' must be a list"),
        ("rules/0/premise", [], "rule 1: 'premise' must be an object"),
        ("rules/0/premise/operator", "OR", "CONJUNCTION or ALTERNATIVE, got 'OR'"),
        ("rules/0/premise/negated", True, "rule 1: a negated compound"),
        ("rules/0/premise/subconditions", [], "rule 1: without conditions it never holds"),
        ("rules/0/premise/subconditions/0/left", "1", "rule 1: a bound must be a number, got '1'"),
        ("rules/0/premise/subconditions/0/left", float("nan"), "rule 1: a bound must be"),
        ("rules/0/premise/subconditions/0/left_closed", 1, "must be true or false, got 1"),
        ("rules/0/premise/subconditions/0/right", 0.5, "rule 1: No number lies between"),
        ("rules/0/premise/subconditions/0/attributes", [2], "column indices below 2, got 2"),
        ("rules/0/premise/subconditions/0/attributes", [-1], "column indices below 2, got -1"),
        ("rules/0/premise/subconditions/0/attributes", ["a"], "must be an integer, got 'a'"),
        ("rules/0/premise/subconditions/0/type", "fuzzy", "type 'fuzzy' cannot be expressed"),
        ("rules/0/premise/subconditions/1/value", 3, "'value' must be a text, got 3"),
        ("rules/0/conclusion", {"value": None}, "its conclusion must be a str"),
        ("rules/0/coverage", {"p": "8", "n": 1}, "p must be a number, got '8'"),
        ("rules/0/voting_weight", None, "Rule 1 of the JSON has no voting_weight"),
        ("rules/0/voting_weight", float("nan"), "voting_weight of rule 1 must be a finite"),
        ("rules/0/voting_weight", "1", "voting_weight of rule 1 must be a number"),
        ("rules/0/voting_weight", -1.0, "voting_weight -1.0, which decision-rules counts in"),
        ("rules/0/voting_weight", 1e-9, "voting_weight 1e-09"),
    ],
)
def test_decision_rules_locate_faults(path: str, value: Any, fault: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011, the fault is looked for
        read_decision_rules(damaged(path, value))
    assert fault in str(caught.value)


def test_decision_rules_reject_other_json() -> None:
    for model, kind, fault in [
        ("{", ValueError, "text that is no JSON"),
        ("[]", ValueError, "must hold an object, got list"),
        (3, TypeError, "got int"),
        ({"meta": {"attributes": []}, "rules": []}, ValueError, "Survival rules"),
        ("[" * 100_000, ValueError, "no JSON"),
    ]:
        with pytest.raises(kind, match=fault):
            read_decision_rules(model)
    deep = nominal(1, "red")
    for _ in range(3000):
        deep = compound(deep)
    with pytest.raises(ValueError, match="nested too deeply"):
        read_decision_rules(classification(rule(deep, "a")))


def test_decision_rules_reject_invalid_options() -> None:
    data = classification(rule(number(0, left=1.0), "a"))
    with pytest.raises(ValueError, match="strategy must be one of"):
        read_decision_rules(data, strategy="majority")
    with pytest.raises(ValueError, match="zero_bounds must be one of"):
        read_decision_rules(data, zero_bounds="both")


def test_decision_rules_zero_bound_requires_value() -> None:
    data = classification(rule(number(0, left=0.0, left_closed=True), "a"))
    with pytest.warns(UserWarning, match=r"ignores a lower bound .* rules \('rule 1'\)"):
        ours = read_decision_rules(data)
    rows = pd.DataFrame({"length": [-5.0, 5.0, np.nan], "color of it": ["red"] * 3})
    assert ours.covers(rows).tolist() == [True, True, False]
    written = read_decision_rules(data, zero_bounds="written")
    assert written.covers(rows).tolist() == [False, True, False]


@pytest.mark.parametrize("value", [[], {}, [["a"]]])
def test_decision_rules_reject_invalid_defaults(value):
    sets = classification(rule(nominal(1, "red"), "a"), default_conclusion={"value": value})
    with pytest.raises(ValueError, match="the value of default_conclusion must be a str"):
        read_decision_rules(sets)


@pytest.mark.parametrize(
    ("model", "fault"),
    [
        (
            classification(default_conclusion=None, decision_attribute_distribution={"a": "3"}),
            "a count",
        ),
        (regression(y_train_median="7"), "y_train_median must be a number"),
        (regression(default_conclusion={"value": "x"}), "the default conclusion must be"),
    ],
)
def test_decision_rules_reject_texts_instead_of_numbers(model, fault):
    with pytest.raises(ValueError, match=f"The JSON has a fault: {fault}"):
        read_decision_rules(model)


@pytest.mark.parametrize("weight", [float("nan"), float("inf"), "1", []])
def test_decision_rules_reject_invalid_weights(weight):
    sets = classification(rule(nominal(1, "red"), "a", weight))
    with pytest.raises(ValueError, match="rule 1"):
        read_decision_rules(sets)
