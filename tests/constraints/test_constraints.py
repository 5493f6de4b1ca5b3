"""Declarations of constraints: checks, JSON, options of the command line, and single parts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from constraint_cases import make_constraints
from hypothesis import given
from hypothesis import strategies as st

from skescore.constraints import Constraints, Cutoffs, PinnedRule, Rounding
from skescore.rules import (
    AtLeast,
    Interval,
    Linear,
    LinearOutput,
    Missing,
    OneOf,
    Rule,
    RuleSet,
)


@given(seed=st.integers(0, 2**32))
def test_json_keeps_generated_constraints(seed: int) -> None:
    constraints = make_constraints(seed)
    assert Constraints.from_json(constraints.to_json()) == constraints
    assert hash(constraints) == hash(Constraints.from_json(constraints.to_json(indent=None)))


@given(seed=st.integers(0, 2**32))
def test_parts_add_up_to_the_constraints(seed: int) -> None:
    constraints = make_constraints(seed)
    labels = list(constraints.parts())
    whole = constraints.only(labels)
    assert list(whole.parts()) == labels
    assert whole == constraints
    for label in labels:
        assert label not in constraints.without(label).parts()


def test_json_keeps_pinned_rules_of_every_kind() -> None:
    conditions = [
        AtLeast(1, [Interval(0, 1, 2, True), OneOf(1, ["a"], True)]),
        Linear([(0, 1.5), (2, -1)], upper=3),
        Missing(2),
    ]
    pinned = PinnedRule(Rule(conditions, LinearOutput(1, [(2, 0.5)])), ["z", "c", "b"], 3)
    constraints = Constraints(pinned=[pinned])
    copy = Constraints.from_json(constraints.to_json())
    assert copy == constraints
    assert copy.pinned[0].in_table(["c", "z", "b"]) == Rule(
        [
            AtLeast(1, [Interval(1, 1, 2, True), OneOf(0, ["a"], True)]),
            Linear([(1, 1.5), (2, -1)], upper=3),
            Missing(2),
        ],
        LinearOutput(1, [(2, 0.5)]),
    )


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("[1]", "JSON object"),
        ("{", "not JSON"),
        ('{"forbiden": ["age"]}', "Did you mean 'forbidden'"),
        ('{"forbidden": "age"}', "list of feature names"),
        ('{"monotone": {"age": "up"}}', "must be one of '\\+', '-'"),
        ('{"thresholds": {"age": {"digit": 2}}}', "Did you mean 'digits'"),
        ('{"thresholds": {"age": []}}', "at least one number"),
        ('{"max_cost": 3}', "feature_costs"),
        ('{"min_support": 2.5}', "integer number of rows"),
        ('{"min_precision": 1.5}', "min_precision must be"),
        ('{"class_order": ["a", "a"]}', "two different labels"),
        ('{"pinned": [{"if": [], "then": "a", "when": 1}]}', "pinned rule 1"),
        ('{"pinned": [{"if": [{"type": "interval", "feature": 0}], "then": 1}]}', "must be names"),
        ('{"version": 2}', "version 2"),
    ],
)
def test_json_errors_name_the_fault(text: str, match: str) -> None:
    with pytest.raises(ValueError, match=match):
        Constraints.from_json(text)


def test_options_extend_a_file(tmp_path: Path) -> None:
    file = tmp_path / "wishes.json"
    file.write_text(Constraints(forbidden=["age"], max_rules=3).to_json())
    rules = RuleSet([Rule([Interval(0, upper=3)], "no")], ["b"], task="classification")
    (tmp_path / "rules.json").write_text(rules.to_json())
    constraints = Constraints.from_options(
        constraints=str(file),
        forbid=["sex"],
        monotone=["net:income:-"],
        thresholds=["a:18,65", "*:2 digits", "b:1 decimal"],
        together=["color:red,blue", "color:1,2", "color:01,1.50,nan"],
        max_conditions="yes:2,no:3",
        min_support="0.1",
        class_order="no,yes",
        pin=[f"{tmp_path / 'rules.json'}:1@2"],
    )
    assert constraints == Constraints(
        forbidden=["age", "sex"],
        monotone={"net:income": "-"},
        thresholds={
            "a": Cutoffs((18.0, 65.0)),
            "*": Rounding("digits", 2),
            "b": Rounding("decimals", 1),
        },
        together={"color": [["red", "blue"], [1, 2], ["01", "1.50", "nan"]]},
        max_conditions={"yes": 2, "no": 3},
        max_rules=3,
        min_support=0.1,
        class_order=["no", "yes"],
        pinned=[PinnedRule.from_ruleset(rules, 0).__class__(rules[0], ["b"], 1)],
    )


@pytest.mark.parametrize(
    "options",
    [
        {"monotone": ["income"]},
        {"thresholds": ["age:eighteen"]},
        {"pin": ["rules.json"]},
        {"pin": ["missing.json:1"]},
        {"constraints": "missing.json"},
        {"max_gap": ["sex:much"]},
    ],
)
def test_option_errors_name_the_option(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="--" + next(iter(options)).replace("_", "-")):
        Constraints.from_options(**options)


@given(
    value=st.floats(-1e9, 1e9),
    allowed=st.one_of(
        st.builds(Rounding, st.just("decimals"), st.integers(0, 6)),
        st.builds(Rounding, st.just("digits"), st.integers(1, 6)),
        st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=5, unique=True).map(
            lambda values: Cutoffs(tuple(sorted(values)))
        ),
    ),
)
def test_near_thresholds_are_allowed_and_adjacent(value: float, allowed: Any) -> None:
    near = allowed.near(value)
    assert all(map(allowed.allows, near))
    if isinstance(allowed, Cutoffs):
        below = [t for t in allowed.values if t <= value]
        above = [t for t in allowed.values if t >= value]
        assert set(near) == {*below[-1:], *above[:1]}
        return
    low, high = near
    assert low <= value <= high
    digits = 10.0**-allowed.n * (1 if allowed.kind == "decimals" else 10.0 * max(1, abs(value)))
    assert high - low <= digits * (1 + 1e-6) + 1e-14 * abs(value)


def test_check_names_suggests_names() -> None:
    constraints = Constraints(forbidden=["incone"])
    with pytest.raises(ValueError, match="Did you mean 'income'"):
        constraints.check_names(["income", "age"], ["no", "yes"])
    with pytest.raises(ValueError, match="class_order with the 3 classes"):
        Constraints(monotone={"age": "+"}).check_names(["age"], ["a", "b", "c"])
    with pytest.raises(ValueError, match="min_precision is for classification"):
        Constraints(min_precision=0.5).check_names(["age"], None)
    with pytest.raises(ValueError, match="names the class 'maybe'"):
        Constraints(max_rules_per_class={"maybe": 1}).check_names(["age"], ["no", "yes"])


def test_constraints_are_immutable() -> None:
    constraints = Constraints(forbidden=["age"])
    with pytest.raises(AttributeError):
        constraints.forbidden = ()  # type: ignore[misc]
    assert json.loads(constraints.to_json())["forbidden"] == ["age"]
    assert not Constraints()
    assert np.all([bool(constraints)])
