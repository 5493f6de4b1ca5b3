"""Monotonicity is decided exactly, compared with the enumeration of all cells."""

from __future__ import annotations

import numpy as np
from constraint_oracle import is_monotone
from hypothesis import given, settings
from hypothesis import strategies as st

from skescore.constraints import monotonicity_breaches
from skescore.rules import (
    AtLeast,
    Domain,
    Fallback,
    Interval,
    LinearOutput,
    Missing,
    OneOf,
    Rule,
    RuleSet,
)

NAMES = ["a", "b", "color"]
COLORS = ("red", "green", "blue")


@st.composite
def conditions(draw: st.DrawFn) -> object:
    feature = draw(st.integers(0, 2))
    missing = draw(st.booleans()) and draw(st.booleans())
    if feature == 2:
        values = draw(st.sets(st.sampled_from(COLORS), min_size=1, max_size=2))
        return OneOf(2, values, negated=draw(st.booleans()), missing=missing)
    if draw(st.integers(0, 9)) == 0:
        return Missing(feature, negated=draw(st.booleans()))
    low, high = sorted(draw(st.lists(st.integers(0, 4), min_size=2, max_size=2, unique=True)))
    lower = low if draw(st.booleans()) else -np.inf
    upper = high if lower == -np.inf or draw(st.booleans()) else np.inf
    closed = draw(st.booleans()), draw(st.booleans())
    return Interval(feature, lower, upper, *closed, missing=missing)


@st.composite
def rulesets(draw: st.DrawFn, task: str = "classification") -> RuleSet:
    linear = st.builds(
        LinearOutput,
        st.integers(-2, 2),
        st.lists(st.tuples(st.integers(0, 1), st.sampled_from([-1.0, 0.5, 1.0])), max_size=2),
    )
    labels = st.sampled_from(["high", "low", "mid"])
    outputs = labels if task == "classification" else st.one_of(st.integers(-2, 3), linear)
    rules = []
    for _ in range(draw(st.integers(1, 5))):
        parts = draw(st.lists(conditions(), max_size=3))
        if len(parts) > 2 and draw(st.booleans()):
            parts = [AtLeast(2, parts)]
        try:
            rules.append(Rule(parts, draw(outputs)))
        except ValueError:  # a contradiction
            continue
    shares = tuple(draw(st.lists(st.sampled_from([0.0, 0.2]), min_size=3, max_size=3)))
    domain = Domain((0.5, 0, 0), (3.5, 4, 3), [(2, COLORS)], shares)
    policy = draw(st.sampled_from(["default", "default", "abstain"]))
    return RuleSet(
        rules,
        NAMES,
        task=task,
        classes=["high", "low", "mid"] if task == "classification" else None,
        domain=domain if draw(st.booleans()) or task == "regression" else None,
        ordered=draw(st.booleans()),
        fallback=Fallback(draw(labels if task == "classification" else st.integers(-2, 3)), policy)
        if draw(st.booleans())
        else None,
    )


@settings(max_examples=80)
@given(ruleset=rulesets(), feature=st.integers(0, 1), direction=st.sampled_from("+-"))
def test_monotonicity_breaches_equal_enumeration(
    ruleset: RuleSet, feature: int, direction: str
) -> None:
    ranked = ("low", "mid", "high")
    breaches = list(monotonicity_breaches(ruleset, feature, direction, ranked))
    assert (not breaches) == is_monotone(ruleset, feature, direction, ranked)


@settings(max_examples=50)
@given(ruleset=rulesets("regression"), feature=st.integers(0, 1), direction=st.sampled_from("+-"))
def test_monotonicity_breaches_of_affine_rules_equal_enumeration(
    ruleset: RuleSet, feature: int, direction: str
) -> None:
    breaches = list(monotonicity_breaches(ruleset, feature, direction, None))
    assert (not breaches) == is_monotone(ruleset, feature, direction)


def test_linear_outputs_without_value_breach_no_direction() -> None:
    falling = LinearOutput(0.0, [(0, -1.0), (1, -0.5)])
    # Where a is missing, the linear function has no value, so b cannot change it.
    rules = [Rule([Missing(0)], falling), Rule([], 0.0)]
    domain = Domain((0.5, 0, 0), (3.5, 4, 3), [(2, COLORS)], (0.2, 0.0, 0.0))
    missing_only = RuleSet(rules, NAMES, task="regression", domain=domain)
    assert not list(monotonicity_breaches(missing_only, 1, "+", None))
    also_numbers = RuleSet(
        [Rule([Interval(0, upper=2, missing=True)], falling), Rule([], 0.0)],
        NAMES,
        task="regression",
        domain=domain,
    )
    breach = next(monotonicity_breaches(also_numbers, 1, "+", None))
    assert breach.lower_row[0] is not None
    assert breach.lower_row[1] < breach.upper_row[1]
