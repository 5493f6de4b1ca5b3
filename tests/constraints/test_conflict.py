"""Conflicts are found, minimal and explained."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.neighbors import KNeighborsClassifier

from skescore.constraints import (
    Constraints,
    InfeasibleConstraintsError,
    PinnedRule,
    constrain,
    find_conflict,
)
from skescore.extractors import CARTExtractor
from skescore.rules import Domain, Interval, OneOf, Rule, RuleSet

X = pd.DataFrame(
    {
        "age": np.arange(40.0),
        "income": np.tile([10.0, 20.0, 30.0, 40.0], 10),
        "color": np.tile(["red", "blue"], 20),
    }
)
Y = np.where(X["age"] + X["income"] > 45, "yes", "no")
RULES = RuleSet(
    [],
    list(X.columns),
    task="classification",
    classes=["no", "yes"],
    domain=Domain((0, 10, 0), (39, 40, 2), [(2, ["blue", "red"])]),
)


def pin(conditions: list[object], output: str, position: int | None = None) -> PinnedRule:
    return PinnedRule(Rule(conditions, output), list(X.columns), position)


POOR = pin([Interval(1, upper=15)], "yes")
RICH = pin([Interval(1, lower=25)], "no")
WIDE = {"max_conditions": 3, "max_rules": 9, "monotone": {"age": "+"}}

CONFLICTS = {
    "forbidden and required": (
        {"forbidden": ["age", "color"], "required": ["income", "age"]},
        ["forbidden: age", "required: age"],
    ),
    "forbidden and pinned": (
        {"forbidden": ["income", "age"], "pinned": [POOR]},
        ["forbidden: income", f"pinned: {POOR}"],
    ),
    "thresholds and pinned": (
        {"pinned": [POOR], "thresholds": {"income": [20], "*": {"digits": 2}}},
        [f"pinned: {POOR}", "thresholds: income 20"],
    ),
    "costs": (
        {
            "required": ["age", "income", "color"],
            "feature_costs": {"age": 2, "income": 2},
            "max_cost": 3,
        },
        ["required: age", "required: income", "max_cost: 3"],
    ),
    "number of features": (
        {"required": ["age", "income"], "max_features": 1},
        ["required: age", "required: income", "max_features: 1"],
    ),
    "support": ({"min_support": 41}, ["min_support: 41"]),
    "support of a pinned rule": (
        {"pinned": [POOR, RICH], "min_support": 11},
        [f"pinned: {POOR}", "min_support: 11"],
    ),
    "position and support": (
        {"pinned": [pin([], "yes", 3)], "min_support": 12, **WIDE},
        ["pinned: ALWAYS yes (rule 4)", "min_support: 12"],
    ),
    "two rules at one position": (
        {"pinned": [pin([], "yes", 0), pin([], "no", 0)], **WIDE},
        ["pinned: ALWAYS yes (rule 1)", "pinned: ALWAYS no (rule 1)"],
    ),
    "unreachable pinned rule": (
        {"pinned": [pin([], "yes", 0), pin([Interval(0, upper=5)], "no", 1)], "max_rules": 9},
        ["pinned: ALWAYS yes (rule 1)", "pinned: IF age ≤ 5 THEN no (rule 2)"],
    ),
    "pinned rules against a direction": (
        {"pinned": [POOR, RICH], "monotone": {"income": "+", "age": "+"}, "max_rules": 9},
        ["monotone: income +", f"pinned: {POOR}", f"pinned: {RICH}"],
    ),
    "pinned rules against two directions": (
        {
            "pinned": [
                pin([Interval(0, upper=9), Interval(1, upper=15)], "yes"),
                pin([Interval(0, lower=20), Interval(1, lower=25)], "no"),
            ],
            "monotone": {"income": "+", "age": "+"},
        },
        [
            "monotone: income +",
            "monotone: age +",
            "pinned: IF age ≤ 9 AND income ≤ 15 THEN yes",
            "pinned: IF age > 20 AND income > 25 THEN no",
        ],
    ),
    "required features and short rules": (
        {"required": ["age", "income"], "max_conditions": 1, "max_rules": 1},
        ["required: age", "required: income", "max_conditions: 1", "max_rules: 1"],
    ),
    "precision and support": (
        {"min_precision": 0.95, "min_support": 30},
        ["min_support: 30", "min_precision: 0.95"],
    ),
    "precision of a pinned rule": (
        {"pinned": [pin([Interval(0, upper=20)], "yes")], "min_precision": 0.9},
        ["pinned: IF age ≤ 20 THEN yes", "min_precision: 0.9"],
    ),
    "gap of pinned rules": (
        {
            "pinned": [pin([OneOf(2, ["red"])], "yes"), pin([OneOf(2, ["blue"])], "no")],
            "max_gap": {"color": 0.5},
        },
        [
            "pinned: IF color = red THEN yes",
            "pinned: IF color = blue THEN no",
            "max_gap: color 0.5",
        ],
    ),
    "separated categories": (
        {"pinned": [pin([OneOf(2, ["red"])], "yes")], "together": {"color": [["red", "blue"]]}},
        ["pinned: IF color = red THEN yes", "together: color (red, blue)"],
    ),
    "rules per class": (
        {"pinned": [POOR, pin([Interval(0, upper=3)], "yes")], "max_rules_per_class": {"yes": 1}},
        [f"pinned: {POOR}", "pinned: IF age ≤ 3 THEN yes", "max_rules_per_class: yes 1"],
    ),
}


@pytest.mark.parametrize("name", CONFLICTS)
def test_conflict_is_the_minimal_subset(name: str) -> None:
    options, labels = CONFLICTS[name]
    constraints = Constraints(**options)  # type: ignore[arg-type]
    conflict = find_conflict(constraints, RULES, X, Y)
    assert conflict is not None
    assert list(conflict.labels) == labels
    for label in labels:  # without any one of them, rules exist
        fewer = constraints.only(labels).without(label)
        result = constrain(RULES.replace(rules=[Rule([], "no")]), fewer, X, Y)
        assert not result.is_rejected, (label, str(result))


def test_pinned_rules_in_a_direction_do_not_conflict() -> None:
    pinned = [pin([Interval(1, upper=15)], "no"), pin([Interval(1, lower=25)], "yes")]
    constraints = Constraints(pinned=pinned, monotone={"income": "+", "age": "-"})
    assert find_conflict(constraints, RULES, X, Y) is None
    result = constrain(RULES.replace(rules=[Rule([], "no")]), constraints, X, Y)
    assert not result.is_rejected


def test_extractors_report_conflicts_before_extraction() -> None:
    extractor = CARTExtractor(KNeighborsClassifier(3))
    constraints = Constraints(forbidden=["age"], required=["age"])
    numbers = X.drop(columns="color")
    with pytest.raises(InfeasibleConstraintsError, match="forbidden and required") as caught:
        constrain(extractor, constraints, numbers, Y)
    copy = pickle.loads(pickle.dumps(caught.value))
    assert copy.conflict == caught.value.conflict


def test_required_features_of_regression_need_a_free_rule() -> None:
    rules = RuleSet([], list(X.columns), task="regression")
    pinned = PinnedRule(Rule([Interval(0, upper=20)], 0.5), list(X.columns))
    conflict = find_conflict(
        Constraints(required=["income"], pinned=[pinned], max_rules=1, max_conditions=2), rules
    )
    assert conflict is not None
    assert conflict.labels == ("required: income", f"pinned: {pinned}", "max_rules: 1")
    assert "do not use the required 'income'" in str(conflict)
    free = Constraints(required=["income"], pinned=[pinned], max_rules=2)
    assert find_conflict(free, rules) is None


def test_monotone_rejects_categories() -> None:
    with pytest.raises(ValueError, match="'color' has categories"):
        find_conflict(Constraints(monotone={"color": "+"}), RULES, X, Y)
