"""Simplified rules compared with the original rules at representative points."""

from __future__ import annotations

import dataclasses
import itertools
import math
import sys
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_diabetes, load_iris
from sklearn.metrics import r2_score
from sklearn.neighbors import KNeighborsRegressor
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from skescore.extractors import CARTExtractor
from skescore.metrics import volume_completeness
from skescore.rules import (
    AtLeast,
    BoxTable,
    Conclusions,
    Condition,
    Domain,
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
    with_statistics,
    with_target,
)
from skescore.rules.importers import tree_to_ruleset

COLORS = ["blue", "green", "red"]
SIDE = 4


# ---------------------------------------------------------------- rule sets of every kind


@st.composite
def intervals(
    draw: st.DrawFn, feature: int, any_faces: bool, gaps: bool
) -> list[Interval | Missing]:
    if gaps and draw(st.integers(0, 5)) == 0:
        return [Missing(feature, draw(st.booleans()))]
    low, high = sorted([draw(st.integers(0, SIDE)), draw(st.integers(0, SIDE))])
    lower = -math.inf if draw(st.booleans()) else float(low)
    upper = math.inf if draw(st.booleans()) else float(high)
    faces = (True, False)
    if any_faces:
        faces = draw(st.booleans()), draw(st.booleans())
    if lower == upper:
        faces = (True, True)
    if math.isinf(lower) and math.isinf(upper):
        return []
    return [Interval(feature, lower, upper, *faces, missing=gaps and draw(st.booleans()))]


@st.composite
def premises(draw: st.DrawFn, n_numbers: int, has_color: bool, gaps: bool) -> list[Condition]:
    any_faces = draw(st.booleans())
    conditions: list[Condition] = []
    for feature in range(n_numbers):
        conditions += draw(intervals(feature, any_faces, gaps))
    if has_color and draw(st.booleans()):
        values = draw(st.lists(st.sampled_from(COLORS), min_size=1, max_size=2, unique=True))
        color: Condition = OneOf(n_numbers, values, draw(st.booleans()))
        if gaps and draw(st.booleans()):
            allowed = dataclasses.replace(color, missing=True)
            color = draw(st.sampled_from([allowed, Missing(n_numbers)]))
        conditions.append(color)
    rare = draw(st.integers(0, 12))
    if rare == 0:
        conditions.append(AtLeast(1, [Interval(0, upper=1), Interval(n_numbers - 1, 2)]))
    if rare == 1:
        conditions.append(Linear([(0, 1.0), (n_numbers - 1, 0.5)], upper=2))
    return conditions


@st.composite
def rule_sets(draw: st.DrawFn) -> RuleSet:
    n_numbers, has_color = draw(st.integers(1, 2)), draw(st.booleans())
    task = draw(st.sampled_from(["classification", "regression"]))
    outputs = ["a", "b"] if task == "classification" else [1.0, 2.0, LinearOutput(1, [(0, 1.0)])]
    rules = []
    gaps = draw(st.booleans())
    for _ in range(draw(st.integers(1, 6))):
        counts = draw(st.integers(0, 4)), draw(st.integers(0, 4))
        statistics = None
        if draw(st.integers(0, 4)) > 0:
            statistics = RuleStatistics(sum(counts), counts)
            if task == "regression":
                statistics = RuleStatistics(
                    sum(counts), mean=float(counts[0]), standard_deviation=float(counts[1])
                )
        conditions = draw(premises(n_numbers, has_color, gaps))
        rules.append(Rule(conditions, draw(st.sampled_from(outputs)), statistics))
    domain = None
    if draw(st.booleans()):
        lower = [float(draw(st.integers(0, 2))) for _ in range(n_numbers)]
        upper = [low + draw(st.integers(0, 3)) for low in lower]  # including constant features
        extra = ([0.0], [3.0], [(n_numbers, COLORS)]) if has_color else ([], [], [])
        shares = [draw(st.sampled_from([0.0, 0.5])) if gaps else 0.0 for _ in lower + extra[0]]
        domain = Domain(tuple(lower + extra[0]), tuple(upper + extra[1]), tuple(extra[2]), shares)
    policy = draw(st.sampled_from([None, "default", "nearest", "abstain"]))
    fallback = policy and Fallback("a" if task == "classification" else 0.5, policy)
    ruleset = RuleSet(
        rules,
        [f"x{j}" for j in range(n_numbers)] + ["color"] * has_color,
        task=task,
        classes=["a", "b"] if task == "classification" else None,
        domain=domain,
        ordered=draw(st.booleans()),
        fallback=fallback or None,
    )
    return _made_disjoint(ruleset) if draw(st.booleans()) else ruleset


def _made_disjoint(ruleset: RuleSet) -> RuleSet:
    sides = Interval | OneOf | Missing
    boxes = [r for r in ruleset.rules if all(isinstance(c, sides) for c in r.conditions)]
    if not boxes:
        return ruleset
    matches = ruleset.replace(rules=boxes).match(points_of(ruleset, everywhere=True))
    retained: list[int] = []
    for i in range(len(boxes)):
        if not (matches[:, retained].any(axis=1) & matches[:, i]).any():
            retained.append(i)
    return ruleset.replace(rules=[boxes[i] for i in retained], disjoint=True)


def speaks_of_missing(ruleset: RuleSet, feature: int) -> bool:
    """Return whether a condition of some rule states how to treat missing values of a feature."""
    sides = [c for rule in ruleset.rules for c in rule.conditions if c.features == (feature,)]
    return any(isinstance(c, Missing) or getattr(c, "missing", False) for c in sides)


def points_of(ruleset: RuleSet, *, everywhere: bool = False) -> np.ndarray:
    """Return points in every cell, on every face and on both sides of it, and missing values.

    With a domain, return only points in it, unless `everywhere`.
    """
    domain = None if everywhere else ruleset.domain
    columns: list[list[Any]] = []
    for j, name in enumerate(ruleset.feature_names):
        if name == "color":
            columns.append([*COLORS, "unseen", None])
            continue
        results = {float(v) for v in range(SIDE + 1)}
        if ruleset.domain is not None:
            results |= {ruleset.domain.lower[j], ruleset.domain.upper[j]}
        near = [math.nextafter(v, way) for v in results for way in (-math.inf, math.inf)]
        values = sorted({*results, *near, *(v + 0.5 for v in results), -1.0})
        if domain is not None:
            values = [v for v in values if domain.lower[j] <= v <= domain.upper[j]]
            if domain.missing[j] or speaks_of_missing(ruleset, j):
                values.append(math.nan)
        else:
            values += [-math.inf, math.inf, math.nan]
        columns.append(values)
    points = np.empty((math.prod(map(len, columns)), len(columns)), dtype=object)
    points[:] = list(itertools.product(*columns))
    return points


def answers_of(ruleset: RuleSet, points: np.ndarray) -> tuple[list[Any], list[str] | None]:
    """Return the output of the rule that applies to each point (or None), and the predictions."""
    outputs = [None if i < 0 else ruleset.rules[i].output for i in ruleset.assign(points)]
    if ruleset.fallback is None and None in outputs:
        return outputs, None
    with np.errstate(invalid="ignore"):
        return outputs, list(map(repr, ruleset.predict(points).tolist()))


@settings(deadline=None, max_examples=80)
@given(ruleset=rule_sets())
def test_simplify_preserves_predictions(ruleset: RuleSet) -> None:
    short = ruleset.simplify()
    points = points_of(ruleset)
    assert answers_of(short, points) == answers_of(ruleset, points)
    assert len(short) <= len(ruleset)
    assert short.n_literals <= ruleset.n_literals
    assert short == ruleset.simplify()
    assert short.simplify() == short  # simplifying again changes nothing
    if ruleset.disjoint:
        assert short.match(points).sum(axis=1).max(initial=0) <= 1


def test_simplify_repeats_until_stable() -> None:
    either = AtLeast(1, [Interval(0, upper=1), Interval(0, 2, lower_closed=False)])
    premises = [
        [Missing(0, negated=True)],
        [OneOf(0, [0])],
        [Interval(0, upper=0, upper_closed=False, missing=True)],
        [Interval(0, 0, lower_closed=False, missing=True), OneOf(1, ["blue"])],
    ]
    rules = [Rule([*premise, either], "a") for premise in premises]
    short = RuleSet(rules, ["age", "color"], task="classification", ordered=True).simplify()
    assert short.rules == (Rule([either], "a"),)


AGE = ["age"]


@pytest.mark.parametrize(
    ("premises", "expected"),
    [
        # Adjacent rules merge if one of them holds for missing values.
        (([Interval(0, upper=30)], [Missing(0)]), [Interval(0, upper=30, missing=True)]),
        (([Missing(0)], [Interval(0, 30)]), [Interval(0, 30, missing=True)]),
        (([Interval(0, 20, 30)], [Missing(0)]), [Interval(0, 20, 30, missing=True)]),
        (
            ([Interval(0, upper=30, missing=True)], [Interval(0, 30, 40)]),
            [Interval(0, upper=40, missing=True)],
        ),
        (([Interval(0, upper=30)], [Interval(0, 30)], [Missing(0)]), []),
        (([Missing(0)], [Missing(0, negated=True)]), []),
        (([Missing(0, negated=True)], [Interval(0, 3, missing=True)]), []),
        # A merged rule covers missing values if one of the rules does.
        (([Interval(0, 3, missing=True)], [Missing(0)]), [Interval(0, 3, missing=True)]),
        (([OneOf(0, ["a"])], [Missing(0)]), [OneOf(0, ["a"], missing=True)]),
        (([OneOf(0, [1], missing=True)], [OneOf(0, [2])]), [OneOf(0, [1, 2], missing=True)]),
        (([OneOf(0, ["a"], missing=True)], [OneOf(0, ["a"], negated=True)]), []),
    ],
)
def test_simplify_merges_neighbors_with_missing_values(premises, expected) -> None:
    rules = RuleSet([Rule(p, "a") for p in premises], AGE, task="classification")
    short = rules.simplify()
    assert [list(rule.conditions) for rule in short] == [expected]


def test_simplify_keeps_bounds_that_exclude_missing_values() -> None:
    rules = RuleSet(
        [Rule([Interval(0, upper=3)], "a"), Rule([Interval(0, 3)], "a")], AGE, task="classification"
    )
    assert rules.simplify() is rules
    changed_rules = rules.replace(rules=[Rule([Missing(0)], "b"), *rules], classes=["a", "b"])
    assert changed_rules.simplify().rules == (Rule([Missing(0)], "b"), Rule([], "a"))
    gaps = rules.replace(domain=Domain((0,), (9,), missing=(0.5,)))
    assert gaps.simplify().rules == (Rule([Missing(0, negated=True)], "a"),)


@pytest.mark.parametrize(
    ("count", "expected"),
    [
        (
            AtLeast(2, [Interval(0, 34), Interval(1, upper=3), Missing(0)]),
            [Interval(0, 34, missing=True), Interval(1, upper=3)],
        ),
        (
            AtLeast(2, [OneOf(2, ["red"]), OneOf(2, ["blue"]), Interval(1, 3)]),
            [OneOf(2, ["red", "blue"]), Interval(1, 3)],
        ),
        (
            AtLeast(1, [Missing(0), Missing(0, negated=True), Interval(1, 3)]),
            [],
        ),
        (
            AtLeast(2, [Interval(0, upper=3), Interval(0, 5), Interval(1, 3)]),
            [AtLeast(2, [Interval(0, upper=3), Interval(0, 5), Interval(1, 3)])],
        ),
        (
            AtLeast(2, [Interval(0, upper=3), Interval(0, upper=5), Interval(1, 3)]),
            [AtLeast(2, [Interval(0, upper=3), Interval(0, upper=5), Interval(1, 3)])],
        ),
    ],
)
def test_simplify_unites_exclusive_counted_conditions(count, expected) -> None:
    rules = RuleSet(
        [Rule([count], "a"), Rule([], "b")],
        ["x", "y", "color"],
        task="classification",
        ordered=True,
        fallback=Fallback("b"),
    )
    short = rules.simplify()
    if expected:
        assert set(short.rules[0].conditions) == set(expected)
    else:
        assert short.rules == (Rule([], "a"),)


def test_simplify_unites_missing_values_with_all_values() -> None:
    premises = [
        [Interval(1, 5, missing=True)],
        [OneOf(2, [False], negated=True, missing=True)],
        [OneOf(2, [False, True])],
    ]
    domain = Domain((0, 1, 0), (2, 1, 1), categories=[(2, [False])], missing=(0, 0.5, 0.5))
    rules = RuleSet(
        [Rule(p, "b") for p in premises], ["x", "y", "z"], task="classification", domain=domain
    )
    assert rules.simplify().rules == (Rule([], "b"),)


def test_simplify_shortens_tree_with_missing_values() -> None:
    rules = RuleSet(
        [
            Rule([Interval(0, upper=3, missing=True), Interval(1, upper=5)], "a"),
            Rule([Interval(0, upper=3, missing=True), Interval(1, 5, missing=True)], "b"),
            Rule([Interval(0, 3)], "c"),
        ],
        ["x", "y"],
        task="classification",
    )
    assert [len(rule.conditions) for rule in rules.simplify()] == [2, 1, 0]


def test_simplify_drops_missing_conditions_on_rows() -> None:
    rules = RuleSet(
        [Rule([Interval(0, 1, 3, missing=True), Missing(1)], "a"), Rule([Interval(0, 3)], "b")],
        ["x", "y"],
        task="classification",
        fallback=Fallback("b"),
    )
    X = np.array([[2.0, math.nan], [math.nan, math.nan], [5.0, 1.0], [4.0, 2.0]])
    short = rules.simplify(X)
    assert short.predict(X).tolist() == rules.predict(X).tolist() == ["a", "a", "b", "b"]
    assert short.n_literals < rules.n_literals


@settings(deadline=None, max_examples=40)
@given(ruleset=rule_sets())
def test_simplify_preserves_completeness(ruleset: RuleSet) -> None:
    pure = [rule for rule in ruleset.rules if not rule.non_intervals]
    if ruleset.domain is None or not pure:
        return
    ruleset = ruleset.replace(rules=pure)
    before, after = volume_completeness(ruleset), volume_completeness(ruleset.simplify())
    assert after.value == pytest.approx(before.value, abs=1e-9)


@pytest.mark.parametrize("has_missing", [False, True])
@pytest.mark.parametrize("fallback", [None, Fallback("b", "nearest")])
def test_simplify_preserves_volume_next_to_constant(has_missing, fallback) -> None:
    beside = Interval(1, 2.0, lower_closed=False, missing=has_missing)
    rules = RuleSet(
        [Rule((Interval(0, 0.5), beside), "a"), Rule([Interval(0, upper=0.25)], "b")],
        ["x", "constant"],
        task="classification",
        classes=["a", "b"],
        domain=Domain((0.0, 2.0), (1.0, 2.0)),
        fallback=fallback,
    )
    short = rules.simplify()
    assert volume_completeness(rules).value == volume_completeness(short).value == 0.25
    # The rule may still hold for missing values, or be the nearest one.
    assert len(short) == (2 if has_missing or fallback else 1)


@pytest.mark.parametrize("seed", range(3))
def test_simplify_shortens_many_overlapping_boxes(seed: int) -> None:
    rng = np.random.default_rng(seed)
    lower = rng.integers(0, 8, (60, 4)).astype(float)
    upper = lower + rng.integers(1, 8, (60, 4))
    lower[rng.random(lower.shape) < 0.5] = -np.inf
    upper[rng.random(upper.shape) < 0.5] = np.inf
    closed = rng.random((2, 60, 4)) < 0.5
    ruleset = RuleSet.from_boxes(
        BoxTable(lower, upper, closed[0], closed[1]),
        Conclusions(rng.integers(0, 2, 60)),
        list("wxyz"),
        task="classification",
        classes=["a", "b"],
        domain=Domain((0,) * 4, (8,) * 4),
    )
    short = ruleset.simplify()
    grid = rng.integers(0, 9, (40_000, 4)).astype(float)
    beside = np.clip(np.nextafter(grid, rng.choice([-np.inf, np.inf], grid.shape)), 0, 8)
    for points in (grid, beside, rng.uniform(0, 8, (40_000, 4))):
        old, new = ruleset.assign(points), short.assign(points)
        outputs = [np.append(s.conclusions.outputs, -1) for s in (ruleset, short)]
        np.testing.assert_array_equal(outputs[0][old], outputs[1][new])
    assert short.n_literals < ruleset.n_literals / 2


# ---------------------------------------------------------------- what is found


def classifier(rules: list[Rule], n_features: int = 2, **settings: Any) -> RuleSet:
    names = [f"x{j}" for j in range(n_features)]
    return RuleSet(rules, names, task="classification", classes=["a", "b"], **settings)


def test_simplify_merges_grid_to_halves() -> None:
    cells = np.array(list(itertools.product(range(4), repeat=3)), dtype=float)
    outputs = (cells[:, 0] < 2).astype(int)
    ruleset = RuleSet.from_boxes(
        BoxTable(cells, cells + 1, np.ones_like(cells, bool), np.zeros_like(cells, bool)),
        Conclusions(outputs, n_rows=np.ones(64), class_counts=np.eye(2)[outputs]),
        ["x", "y", "z"],
        task="classification",
        classes=["no", "yes"],
        ordered=False,
        disjoint=True,
        domain=Domain((0, 0, 0), (3.5, 3.5, 3.5)),
    )
    assert str(ruleset.simplify()).splitlines() == [
        "1. IF x < 2 THEN yes   [32 rows, 100 % of this class]",
        "2. IF x ≥ 2 THEN no   [32 rows, 100 % of this class]",
    ]
    anywhere = ruleset.replace(domain=None).simplify()
    assert [rule.premise_text() for rule in anywhere] == [
        "0 ≤ x0 < 2 AND 0 ≤ x1 < 4 AND 0 ≤ x2 < 4",
        "2 ≤ x0 < 4 AND 0 ≤ x1 < 4 AND 0 ≤ x2 < 4",
    ]


def test_simplify_turns_iris_tree_into_short_list() -> None:
    X, y = load_iris(return_X_y=True)
    tree = DecisionTreeClassifier(max_leaf_nodes=5, random_state=0).fit(X, y)
    domain = Domain.around(X)
    leaves = tree_to_ruleset(tree, domain=domain).replace(ordered=True, disjoint=False)
    by_nodes = tree_to_ruleset(tree, domain=domain, simplify=True)
    short = leaves.simplify()
    assert short.n_literals <= by_nodes.n_literals < leaves.n_literals
    assert short.predict(X).tolist() == leaves.predict(X).tolist()
    assert short.rules[-1].conditions == ()


def test_simplify_keeps_boxes_with_a_float_between() -> None:
    def pair(closed: bool) -> RuleSet:
        left = Rule([Interval(0, 0, 1, upper_closed=False)], "a")
        return classifier([left, Rule([Interval(0, 1, 2, lower_closed=closed)], "a")], 1)

    assert len(pair(True).simplify()) == 1
    assert pair(False).simplify() == pair(False)
    next_float = math.nextafter(1.0, 2.0)
    rules = [Rule([Interval(0, 0, 1)], "a"), Rule([Interval(0, next_float, 2, True)], "a")]
    assert classifier(rules, 1).simplify().rules[0].conditions == (Interval(0, 0, 2),)


def test_simplify_merges_never_accept_missing_values() -> None:
    rules = [Rule([Interval(0, upper=1)], "a"), Rule([Interval(0, 1)], "a")]
    assert classifier(rules, 1).simplify() == classifier(rules, 1)
    within = classifier(rules, 1, domain=Domain((0,), (2,))).simplify()
    assert [rule.conditions for rule in within.rules] == [()]


def test_simplify_keeps_bounds_inside_the_domain() -> None:
    domain = Domain((0,), (2,))
    for condition, shorter in [
        (Interval(0, 1, 2), (Interval(0, 1),)),
        (Interval(0, 1, 2, upper_closed=False), (Interval(0, 1, 2, upper_closed=False),)),
        (Interval(0, 0, 1, lower_closed=True), (Interval(0, upper=1),)),
        (Interval(0, 0, 1), (Interval(0, 0, 1),)),
        (Interval(0, -1, 3), ()),
    ]:
        short = classifier([Rule([condition], "a")], 1, domain=domain).simplify()
        assert short.rules[0].conditions == shorter


def test_simplify_never_merges_across_other_outputs() -> None:
    inner = Rule([Interval(0, 1, 2)], "a")
    middle = Rule([Interval(0, 0, 4)], "b")
    touching = Rule([Interval(0, 2, 5)], "a")
    ruleset = classifier([inner, middle, touching], 1)
    points = points_of(ruleset)
    short = ruleset.simplify()
    assert answers_of(short, points) == answers_of(ruleset, points)
    assert [rule.output for rule in short.rules] == ["a", "b", "a"]
    # They merge if the rule between them lies elsewhere.
    separated = classifier([inner, Rule([Interval(0, 7, 8)], "b"), touching], 1)
    assert [rule.conditions for rule in separated.simplify().rules] == [
        (Interval(0, 1, 5),),
        (Interval(0, 7, 8),),
    ]


def test_simplify_drops_bounds_covered_by_earlier_rules() -> None:
    domain = Domain((0, 0), (4, 4))
    rules = [
        Rule([Interval(0, upper=2), Interval(1, upper=2)], "a"),
        Rule([Interval(0, upper=2), Interval(1, 2)], "a"),
        Rule([Interval(0, 2), Interval(1, upper=1)], "b"),
        Rule([Interval(0, 2), Interval(1, 1)], "a"),
    ]
    short = classifier(rules, domain=domain).simplify()
    assert [rule.conditions for rule in short.rules] == [
        (Interval(0, upper=2),),
        (Interval(1, upper=1),),
        (),
    ]


def test_simplify_combines_statistics() -> None:
    parts = RuleStatistics(3, (1, 2)), RuleStatistics(5, (0, 5))
    rules = [Rule([Interval(0, 0, 1)], "b", parts[0]), Rule([Interval(0, 1, 2)], "b", parts[1])]
    assert classifier(rules, 1).simplify().rules[0].statistics == RuleStatistics(8, (1, 7))


A, B, C = [Interval(0, upper=1)], [Interval(1, upper=1)], [Interval(0, 1), Interval(1, upper=2)]


@pytest.mark.parametrize("premises", [[B, A, C], [A, B, [Interval(0, 1, 2)]]])
def test_simplify_drops_statistics_of_unknown_rows(premises: list[Any]) -> None:
    """The other rules cover the first one, or it is merged with the third."""
    X = np.array(list(itertools.product(range(4), repeat=2)), dtype=float)
    y = np.where(X.sum(axis=1) > 3, "b", "a")
    names, domain = ["x0", "x1"], Domain((0, 0), (3, 3))
    rules = [*(Rule(premise, "a") for premise in premises), Rule([], "b")]
    rules = RuleSet(rules, names, task="classification", domain=domain)
    short = with_statistics(rules, X, y).simplify()
    assert [rule.statistics is None for rule in short] == [True, True, False]
    assert short.rules[-1].statistics == with_statistics(short, X, y).rules[-1].statistics


def test_simplify_drops_errors_of_changed_outputs() -> None:
    X = np.arange(8.0)[:, None]
    rules = [Rule([Interval(0, upper=5)], 1.0), Rule([Interval(0, 5, 6)], 2.0), Rule([], 9.0)]
    rules = with_statistics(RuleSet(rules, ["x"], task="regression"), X, X[:, 0])
    merged = with_target(rules, X, X[:, 0], X[:, 0]).simplify(X, 0.3).rules[0]
    assert merged.output not in (1.0, 2.0)
    assert merged.statistics is not None
    assert merged.statistics.model_error is merged.statistics.target_error is None


def test_simplify_passes_statistics_to_later_rule() -> None:
    rules = [
        Rule([Interval(0, 0, 1)], "b", RuleStatistics(3, (1, 2))),
        Rule([Interval(0, -1, 5)], "b", RuleStatistics(4, (0, 4))),
    ]
    short = classifier(rules, 1).simplify()
    assert [(r.conditions, r.statistics) for r in short.rules] == [
        ((Interval(0, -1, 5),), RuleStatistics(7, (1, 6)))
    ]


def test_simplify_preserves_priority_of_unordered_rules() -> None:
    statistics = RuleStatistics(10, (10, 0))
    rules = [
        Rule([Interval(0, 0, 2)], "a", statistics),
        Rule([Interval(0, 2, 4)], "a", RuleStatistics(10, (5, 5))),
        Rule([Interval(0, 1, 3)], "b", RuleStatistics(10, (2, 8))),
    ]
    ruleset = classifier(rules, 1, ordered=False)
    assert ruleset.simplify() == ruleset  # a rule with 80 % lies between rules with 100 % and 50 %
    wide = Rule([Interval(0, 1, 5)], "b", RuleStatistics(10, (2, 8)))
    alike = [rules[0], Rule([Interval(0, 2, 4)], "a", statistics), wide]
    assert len(ruleset.replace(rules=alike).simplify()) == 2


def test_simplify_unites_values_of_one_feature() -> None:
    def of(*conditions: OneOf) -> list[tuple[Condition, ...]]:
        rules = [Rule([Interval(0, upper=1), c], "a") for c in conditions]
        return [rule.conditions[1:] for rule in classifier(rules).simplify().rules]

    assert of(OneOf(1, ["p"]), OneOf(1, ["q"])) == [(OneOf(1, ["p", "q"]),)]
    assert of(OneOf(1, ["p", "q"], True), OneOf(1, ["q", "r"], True)) == [(OneOf(1, ["q"], True),)]
    assert of(OneOf(1, ["p"]), OneOf(1, ["p", "q"], True)) == [(OneOf(1, ["q"], True),)]
    assert len(of(OneOf(1, ["p"]), OneOf(1, ["p"], True))) == 2
    some = AtLeast(1, [Interval(0, upper=0), OneOf(2, ["s"])])  # it cannot be merged with them
    apart = [Rule([some, OneOf(1, [value])], "a") for value in "pq"]
    assert [rule.conditions for rule in classifier(apart, 3).simplify().rules] == [
        (some, OneOf(1, ["p", "q"]))
    ]
    assert len(of(OneOf(1, ["p"], True), OneOf(1, ["q"], True))) == 2


@pytest.mark.parametrize(
    ("second", "expected"),
    [
        (OneOf(1, ["p", "q"]), OneOf(1, ["q"])),
        (OneOf(1, ["p", "q"], negated=True), OneOf(1, ["q"], negated=True)),
        (OneOf(1, ["p", "q"], missing=True), OneOf(1, ["q"], missing=True)),
    ],
)
def test_simplify_drops_values_covered_by_earlier_rules(second: OneOf, expected: OneOf) -> None:
    first = Rule([Interval(0, upper=2), OneOf(1, ["p"])], "b")
    rules = classifier([first, Rule([Interval(0, upper=1), second], "a")], ordered=True)
    short = rules.simplify()
    assert short[1].conditions[1] == expected
    rows = pd.DataFrame(itertools.product((0, 1.5, 3), ("p", "q", "r", None)))
    assert short.assign(rows).tolist() == rules.assign(rows).tolist()
    partly_covered = classifier([first, Rule([Interval(0, upper=3), second], "a")], ordered=True)
    assert partly_covered.simplify() is partly_covered
    nearest = rules.replace(fallback=Fallback("a", "nearest"))  # distances depend on all values
    assert nearest.simplify() is nearest


def test_simplify_unites_values_across_other_rules() -> None:
    narrow = Interval(0, lower=0.5)
    rules = [
        Rule([OneOf(1, ["p"])], "a"),
        Rule([narrow, OneOf(1, ["p", "q", "r"])], "b"),
        Rule([OneOf(1, ["q"])], "a"),
        Rule([OneOf(1, ["r"])], "a"),
    ]
    short = classifier(rules, ordered=True).simplify()
    assert [rule.conditions for rule in short.rules] == [
        (narrow, OneOf(1, ["q", "r"])),
        (OneOf(1, ["p", "q", "r"]),),
    ]


def test_simplify_accepts_features_with_numbers_and_texts() -> None:
    rules = [Rule([OneOf(0, ["p"])], "a"), Rule([Interval(0, lower=1)], "b"), Rule([], "a")]
    assert classifier(rules, 1, ordered=True).simplify() == classifier(rules, 1, ordered=True)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (Interval(0, lower=1), Missing(0, negated=True)),
        (OneOf(0, ["p"]), Missing(0, negated=True)),
        (AtLeast(1, [Interval(0, lower=1), Interval(1, lower=1)]),) * 2,
        (Linear([(0, 1.0), (1, 1.0)], upper=1),) * 2,
    ],
    ids=["number", "text", "at least", "sum"],
)
def test_simplify_removes_implied_rules(first, second) -> None:
    rules = [Rule([second], "a"), Rule([first], "b"), Rule([], "a")]
    assert classifier(rules, ordered=True).simplify().rules == (Rule([], "a"),)


def test_without_repeated_end_merges_last_rules() -> None:
    low, high = Rule([Interval(0, upper=1)], "a"), Rule([Interval(0, lower=3)], "b")
    for rules, left in (
        ([low, high, Rule([], "b")], [low, Rule([], "b")]),
        ([high, Rule([], "b")], [Rule([], "b")]),
        ([high, low, Rule([Interval(0, 5)], "b")], None),
        ([low, Rule([], "b"), high], None),
        ([high, low, high, Rule([], "b")], [high, low, Rule([], "b")]),
    ):
        ruleset = classifier(rules, 1, ordered=True)
        short = ruleset.without_repeated_end()
        assert short is ruleset if left is None else list(short.rules) == left


def test_simplify_removes_contradictory_values() -> None:
    never = Rule([OneOf(0, ["p"]), OneOf(0, ["q"])], "a")
    doubled = Rule([OneOf(0, ["p"]), OneOf(0, ["p", "q"])], "b")
    short = classifier([never, doubled], 1).simplify()
    assert [rule.conditions for rule in short.rules] == [(OneOf(0, ["p"]),)]


def test_simplify_keeps_rules_touching_a_constant() -> None:
    domain = Domain((0, 1), (4, 1))
    open_at = Rule([Interval(0, upper=2), Interval(1, upper=1, upper_closed=False)], "a")
    ruleset = classifier([open_at, Rule([Interval(0, 3)], "b")], domain=domain)
    assert volume_completeness(ruleset.simplify()).value == volume_completeness(ruleset).value


def test_simplify_removes_rules_outside_the_domain() -> None:
    rules = [Rule([Interval(0, upper=3, upper_closed=False), Interval(1, lower=9)], "a")]
    domain = Domain((3, 0), (3, 5))
    ruleset = RuleSet(rules, ["x", "y"], task="classification", domain=domain, disjoint=True)
    assert len(ruleset.simplify()) == 0


def test_simplify_merges_if_joint_priority_agrees() -> None:
    recorded = [RuleStatistics(n, counts) for n, counts in ((4, (3, 1)), (2, (2, 0)), (4, (2, 2)))]
    rules = [
        Rule([], "b", recorded[0]),
        Rule([Interval(0, 0, 1, True, False)], "a", recorded[1]),
        Rule([Interval(0, 1, 3, True, True)], "a", recorded[2]),
    ]
    ruleset = RuleSet(rules, ["x"], task="classification", classes=["a", "b"], ordered=False)
    joined = ruleset.simplify()
    assert str(joined[1]) == "IF 0 ≤ x ≤ 3 THEN a   [6 rows, 67 % of this class]"
    points = np.arange(-0.5, 4, 0.25)[:, None]
    assert joined.predict(points).tolist() == ruleset.predict(points).tolist()


def test_simplify_returns_same_object_if_unchanged() -> None:
    empty = classifier([])
    assert empty.simplify() is empty
    one = classifier([Rule([Interval(0, 1, 2)], "a")])
    assert one.simplify() is one


# ---------------------------------------------------------------- on rows


@pytest.fixture(scope="module")
def iris() -> tuple[np.ndarray, RuleSet]:
    X, y = load_iris(return_X_y=True)
    tree = DecisionTreeClassifier(random_state=0).fit(X, y)
    return X, as_ruleset(tree).replace(domain=Domain.around(X))


def changed_share(before: RuleSet, after: RuleSet, X: np.ndarray) -> float:
    """Return the share of rows with another prediction or coverage, or 1 - R² if it is larger."""
    old, new = before.assign(X), after.assign(X)
    pairs = [
        (None if i < 0 else before.rules[i].output, None if j < 0 else after.rules[j].output)
        for i, j in zip(old, new, strict=True)
    ]
    if before.task == "classification":
        return sum(a != b for a, b in pairs) / len(pairs)
    old_values, new_values = ([float(v) for v in predictions_of(s, X)] for s in (before, after))
    numbers = [a for a in old_values if not math.isnan(a)]
    mean = sum(numbers) / max(1, len(numbers))
    total = sum((a - mean) ** 2 for a in numbers)
    cost = 0.0
    for (a, b), t, u in zip(pairs, old_values, new_values, strict=True):
        squares = 0.0
        if not math.isnan(t) and not math.isnan(u) and t != u:
            squares = (t - u) ** 2 / total if total else math.inf
        cost += max(squares, 1 / len(pairs)) if (a is None) != (b is None) else squares
    return cost


def predictions_of(ruleset: RuleSet, X: np.ndarray) -> np.ndarray:
    """Return predictions, with NaN for rows without one."""
    if ruleset.fallback is None:
        return np.append(ruleset.conclusions.outputs, np.nan)[ruleset.assign(X)]
    return ruleset.predict(X)


def unexplained(before: RuleSet, after: RuleSet, X: np.ndarray) -> float:
    """Return 1 - R² relative to the original predictions."""
    old, new = before.predict(X), after.predict(X)
    return float(np.mean((old - new) ** 2) / np.var(old))


@pytest.mark.parametrize("policy", ["default", "nearest"])
@pytest.mark.parametrize("tolerance", [0.01, 0.05, 0.2])
def test_simplify_on_rows_counts_errors_of_fallback(policy: str, tolerance: float) -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(300, 5))
    y = X[:, 0] ** 2 + 3 * X[:, 1] * (X[:, 2] > 0) + 0.1 * rng.normal(size=300)
    rules = CARTExtractor(KNeighborsRegressor(5), max_depth=3, random_state=0).fit(X, y).rules_
    rules = rules.replace(fallback=Fallback(float(y.mean()), policy))
    short = rules.simplify(X, tolerance=tolerance)
    assert unexplained(rules, short, X) <= tolerance + 1e-12
    assert len(short) < len(rules) or tolerance == 0.01


@st.composite
def lines(draw: st.DrawFn) -> tuple[RuleSet, np.ndarray]:
    """Draw intervals on one feature with numbers of every size, and some rows."""
    rules = [
        Rule(
            [Interval(0, low := draw(st.integers(0, 8)), low + draw(st.integers(1, 4)))],
            float(draw(st.integers(-3, 3))) * draw(st.sampled_from([0.1, 1.0, 20.0])),
        )
        for _ in range(draw(st.integers(2, 7)))
    ]
    policy = draw(st.sampled_from(["default", "nearest"]))
    output = draw(st.sampled_from([-30.0, 0.0, 1.0, 50.0]))
    ruleset = RuleSet(rules, ["x"], task="regression", fallback=Fallback(output, policy))
    rows = draw(st.lists(st.integers(-2, 28), min_size=2, max_size=40))
    return ruleset, np.array(rows)[:, None] / 2


@settings(deadline=None, max_examples=60)
@given(problem=lines(), tolerance=st.sampled_from([0.0, 0.02, 0.1, 0.4]))
def test_simplify_on_rows_bounds_unexplained_variance(
    problem: tuple[RuleSet, np.ndarray], tolerance: float
) -> None:
    ruleset, X = problem
    short = ruleset.simplify(X, tolerance)
    if np.ptp(ruleset.predict(X)) > 0:
        assert unexplained(ruleset, short, X) <= tolerance + 1e-9
    else:
        np.testing.assert_array_equal(short.predict(X), ruleset.predict(X))


@settings(deadline=None, max_examples=50)
@given(ruleset=rule_sets(), tolerance=st.sampled_from([0.0, 0.2, 0.5]), data=st.data())
def test_simplify_on_rows_recounts_statistics(
    ruleset: RuleSet, tolerance: float, data: st.DataObject
) -> None:
    points = points_of(ruleset, everywhere=True)
    indices = data.draw(st.lists(st.integers(0, len(points) - 1), min_size=1, max_size=40))
    X = points[indices]
    ruleset = ruleset.replace(ordered=True)
    assigned = ruleset.assign(X)
    rules = []
    for i, rule in enumerate(ruleset.rules):  # the statistics are correct for these rows
        n_rows = int((assigned == i).sum())
        counts = (n_rows, 0) if rule.output == "a" else (0, n_rows)
        statistics = RuleStatistics(n_rows, counts if ruleset.task == "classification" else None)
        rules.append(Rule(rule.conditions, rule.output, statistics))
    ruleset = ruleset.replace(rules=rules)
    short = ruleset.simplify(X, tolerance)
    then = short.assign(X)
    for i, rule in enumerate(short.rules):
        assert rule.statistics is not None
        assert rule.statistics.n_rows == (then == i).sum()
        if rule.statistics.class_counts is not None:
            assert sum(rule.statistics.class_counts) == rule.statistics.n_rows


def test_simplify_on_rows_drops_outdated_counts() -> None:
    rules = [
        Rule([Interval(0, 0, 1)], "b", RuleStatistics(50, (0, 50))),
        Rule([Interval(0, 1, 2)], "a", RuleStatistics(60, (60, 0))),
        Rule([Interval(0, 0, 9)], "b", RuleStatistics(70, (0, 70))),
    ]
    X = [[0.5], [1.5], *([x / 20] for x in range(41, 101))]
    short = classifier(rules, 1).simplify(X, tolerance=0.02)
    assert [rule.statistics for rule in short.rules] == [RuleStatistics(62)]
    simplified = classifier(rules, 1).simplify(X, tolerance=0.0)
    assert RuleStatistics(60, (60, 0)) in [rule.statistics for rule in simplified.rules]


@settings(deadline=None, max_examples=30)
@given(ruleset=rule_sets(), tolerance=st.sampled_from([0.0, 0.1, 0.3]), data=st.data())
def test_simplify_on_rows_respects_tolerance(
    ruleset: RuleSet, tolerance: float, data: st.DataObject
) -> None:
    constant = [r for r in ruleset.rules if not isinstance(r.output, LinearOutput)]
    if not constant:
        return
    ruleset = ruleset.replace(rules=constant)
    points = points_of(ruleset, everywhere=True)
    indices = data.draw(st.lists(st.integers(0, len(points) - 1), min_size=1, max_size=40))
    rows = points[indices]
    short = ruleset.simplify(rows, tolerance)
    assert changed_share(ruleset, short, rows) <= tolerance + 1e-9
    assert len(short) <= len(ruleset)
    assert short == ruleset.simplify(rows, tolerance)
    if tolerance == 0 and (ruleset.fallback or ruleset.covers(rows).all()):
        assert answers_of(short, rows) == answers_of(ruleset, rows)
    if ruleset.disjoint:
        assert short.match(points).sum(axis=1).max() <= 1


def test_simplify_on_rows_shortens_with_tolerance(iris: tuple[np.ndarray, RuleSet]) -> None:
    X, ruleset = iris
    sizes = []
    for tolerance in (0.0, 0.05, 0.4):
        short = ruleset.simplify(X, tolerance)
        assert changed_share(ruleset, short, X) <= tolerance
        sizes.append(len(short) + short.n_literals)
    assert len(ruleset) + ruleset.n_literals >= sizes[0] > sizes[1] > sizes[2]


def test_simplify_on_rows_goes_beyond_exact() -> None:
    domain = Domain((0, 0), (10, 10))
    ruleset = classifier([Rule([Interval(0, 1, 2), Interval(1, 3, 5)], "a")], domain=domain)
    assert ruleset.simplify() == ruleset
    short = ruleset.simplify([[1.5, 4.0], [1.5, 9.0]])
    assert [rule.conditions for rule in short.rules] == [(Interval(1, upper=5),)]


def test_simplify_on_rows_keeps_rules_disjoint() -> None:
    cells = itertools.product(range(4), range(2))
    rules = [
        Rule([Interval(0, i, i + 1), Interval(1, j, j + 1)], "b" if (i, j) == (1, 1) else "a")
        for i, j in cells
    ]
    apart = classifier(rules, ordered=False, disjoint=True, fallback=Fallback("a"))
    X = np.array(list(itertools.product(np.arange(0.25, 4, 0.5), np.arange(0.25, 2, 0.5))))
    assert str(apart.simplify(X)).splitlines()[:-1] == [
        "1. IF x1 ≤ 1 THEN a",
        "2. IF x0 ≤ 1 AND x1 > 1 THEN a",
        "3. IF 1 < x0 ≤ 2 AND x1 > 1 THEN b",
        "4. IF x0 > 2 AND x1 > 1 THEN a",
    ]
    in_order = apart.replace(ordered=True, disjoint=False)
    assert str(in_order.simplify(X)).splitlines() == [
        "1. IF x0 ≤ 1 THEN a",
        "2. ELSE IF x0 ≤ 2 AND x1 > 1 THEN b",
        "3. ELSE a",
    ]
    for ruleset in (apart, in_order):  # four rows of 32
        assert len(ruleset.simplify(X, 0.12)) > 1
        assert [str(rule) for rule in ruleset.simplify(X, 0.125)] == ["ALWAYS a"]


def test_simplify_on_rows_merges_similar_outputs() -> None:
    rules = [
        Rule([Interval(0, 0, 1)], 1.0),
        Rule([Interval(0, 1, 2)], 1.2),
        Rule([Interval(0, 2)], 9.0),
    ]
    ruleset = RuleSet(rules, ["x"], task="regression")
    X = np.array([[0.5], [1.5], [1.6], [1.7], [3.0], [4.0], [5.0], [6.0]])
    short = ruleset.simplify(X, 0.01)
    assert [rule.output for rule in short.rules] == pytest.approx([(1.0 + 3 * 1.2) / 4, 9.0])
    assert 0 < changed_share(ruleset, short, X) <= 0.01
    assert len(ruleset.simplify(X, 1e-6)) == 3


def test_simplify_keeps_bounds_for_nearest_policy() -> None:
    rules = [
        Rule([Interval(0, lower=5, missing=True)], "a"),
        Rule([OneOf(0, [1, 2], missing=True)], "b"),
    ]
    ruleset = RuleSet(
        rules,
        ["x"],
        task="classification",
        ordered=False,
        domain=Domain([0.0], [5.0]),
        fallback=Fallback("b", "nearest"),
    )
    assert ruleset.simplify().predict([[5.0]]) == ruleset.predict([[5.0]]) == ["a"]


def test_simplify_on_rows_ignores_uncovered_rows() -> None:
    rules = [Rule([Interval(0, lower=2, upper=4)], 4.0)]
    fallback = Fallback(1.0, policy="nearest")
    ruleset = RuleSet(rules, ["x"], task="regression", fallback=fallback)
    X = np.array([[0.0], [4.5], [4.0], [0.0], [3.5], [3.5]])
    # One row of six gains a rule, which is within the tolerance.
    assert str(ruleset.simplify(X, tolerance=0.3)[0]) == "IF x > 2 THEN 4"


def test_simplify_on_rows_requeues_costlier_steps() -> None:
    X, y = load_diabetes(return_X_y=True)
    X = X[:, :4]
    tree = as_ruleset(DecisionTreeRegressor(max_leaf_nodes=6, random_state=0).fit(X, y))
    ruleset = tree.replace(ordered=True, disjoint=False)
    short = ruleset.simplify(X, tolerance=0.5)
    # At its original position, or skipped, the step would block the removal of another comparison.
    assert short.n_literals == 1
    assert r2_score(ruleset.predict(X), short.predict(X)) >= 0.5


def test_simplify_on_rows_keeps_nearest_rules() -> None:
    fallback = Fallback("a", "nearest")
    rules = [
        Rule([Interval(0, 0, 1)], "a"),
        Rule([Interval(0, 4, 8)], "b"),
        Rule([Interval(0, 8, 9)], "b"),
    ]
    ruleset = classifier(rules, 1, fallback=fallback)
    rows = np.array([[0.5], [2.4], [2.6], [4.5], [9.5]])
    short = ruleset.simplify(rows)
    assert short.predict(rows).tolist() == ruleset.predict(rows).tolist()
    assert len(short) == 2


@pytest.mark.parametrize("tolerance", [-0.1, 1.0, math.nan, math.inf])
def test_simplify_rejects_invalid_tolerance(tolerance: float) -> None:
    with pytest.raises(ValueError, match="tolerance must be a number of 0 or more and below 1"):
        classifier([]).simplify([[0.0, 0.0]], tolerance)


@pytest.mark.parametrize("tolerance", ["0.1", True, None])
def test_simplify_rejects_tolerance_of_wrong_type(tolerance: Any) -> None:
    with pytest.raises(TypeError, match="tolerance must be a number"):
        classifier([]).simplify([[0.0, 0.0]], tolerance)


def test_simplify_rejects_tolerance_without_rows() -> None:
    with pytest.raises(ValueError, match=r"tolerance=0\.1 is a share of the rows"):
        classifier([]).simplify(tolerance=0.1)
    with pytest.raises(ValueError, match="at least one row"):
        classifier([]).simplify(np.empty((0, 2)))
    with pytest.raises(ValueError, match="X has 3 features"):
        classifier([]).simplify([[1.0, 2.0, 3.0]])


@pytest.mark.parametrize("fallback", [None, Fallback(9.0), Fallback(9.0, "nearest")])
@pytest.mark.parametrize("ordered", [True, False])
def test_simplify_on_rows_separates_unknown_from_uncovered(
    fallback: Fallback | None, ordered: bool
) -> None:
    """A linear output gives NaN where a value is missing; without its rule others would predict."""
    rules = [
        Rule((Interval(0, upper=0.5, upper_closed=True),), LinearOutput(1.0, ((1, 2.0),))),
        Rule((Interval(0, lower=0.5),), 3.0),
    ]
    ruleset = RuleSet(
        rules,
        ["a", "b"],
        task="regression",
        ordered=ordered,
        disjoint=not ordered,
        fallback=fallback,
    )
    nan = np.nan
    for X in ([[0.1, nan], [0.9, 1.0], [0.8, nan]], [[0.1, nan], [0.2, nan], [0.9, nan]]):
        simplified = ruleset.simplify(X)
        np.testing.assert_array_equal(simplified.covers(X), ruleset.covers(X))
        np.testing.assert_array_equal(simplified.predict(X), ruleset.predict(X))


def test_simplify_on_rows_counts_small_differences():
    rules = RuleSet(
        [Rule([Interval(0, upper=0)], 1.5), Rule([Interval(0, 0, 1)], 0.5), Rule([], 1e300)],
        ["x"],
        task="regression",
    )
    X = [[-1.0], [0.5], [2.0]]
    assert rules.simplify(X).predict(X).tolist() == [1.5, 0.5, 1e300]
    distant = rules.replace(
        rules=[*rules[:2], Rule([Interval(0, upper=2)], -1.7e308), Rule([], 1.7e308)]
    )
    X.append([3.0])
    assert distant.simplify(X).predict(X).tolist() == distant.predict(X).tolist()


# --- special rule sets ----------------------------------------------------------------------------


def test_simplify_keeps_missing_only_rules() -> None:
    """Missing values form their own cell, even where no rule mentions a number."""
    rules = [
        Rule([Interval(0, 0, 0, True, True)], "a"),
        Rule([Interval(0, upper=1)], "a", RuleStatistics(1, [2, 3])),
        Rule([Missing(0)], "b", RuleStatistics(0, [1, 2])),
        Rule([Interval(0, 0.5, 3), OneOf(0, [2])], "a", RuleStatistics(5, [2, 1])),
        Rule([Interval(0, upper=3, upper_closed=False, missing=True)], "b"),
    ]
    ruleset = RuleSet(rules, ["x"], task="classification", ordered=False, fallback=Fallback("b"))
    X = np.array([[np.nan], [-1.0], [0.0], [0.5], [1.0], [2.0], [3.0], [4.0]])
    assert ruleset.simplify().predict(X).tolist() == ruleset.predict(X).tolist()


def test_simplify_removes_covered_missing_rules() -> None:
    rules = [
        Rule([OneOf(0, ["u"], missing=True)], "p"),
        Rule([Missing(0), OneOf(1, ["v"])], "q"),  # the first rule covers all of its rows
        Rule([OneOf(1, ["w"])], "q"),
    ]
    ruleset = RuleSet(rules, ["x", "z"], task="classification", fallback=Fallback("p"))
    assert ruleset.simplify().rules == (rules[0], rules[2])


def premises_of(ruleset: RuleSet) -> list[tuple[Condition, ...]]:
    return [rule.conditions for rule in ruleset.rules]


def test_simplify_separates_missing_values_from_numbers_beyond() -> None:
    rules = [Rule([Interval(0, 1, 2, missing=True)], "a"), Rule([Interval(0, 3)], "b")]
    assert classifier(rules, 1).simplify() == classifier(rules, 1)


def test_simplify_keeps_rules_of_missing_values_only() -> None:
    rules = [Rule([Missing(0)], "a"), Rule([Interval(0, upper=4, missing=True)], "b")]
    ruleset = classifier(rules, 1, domain=Domain((1,), (9,), missing=(0.5,)))
    short = ruleset.simplify()
    assert premises_of(short)[0] == (Missing(0),)
    points = points_of(ruleset)
    assert answers_of(short, points) == answers_of(ruleset, points)


def test_simplify_removes_covered_rules_at_a_constant() -> None:
    rules = [Rule([], "b"), Rule([Interval(0, upper=3)], "a")]
    ruleset = classifier(rules, 1, domain=Domain((2,), (2,)), ordered=False)
    assert ruleset.simplify().rules == (rules[0],)


def test_simplify_sums_statistics_of_repeated_end() -> None:
    rules = [
        Rule([Interval(0, 0, 3)], "b", RuleStatistics(1, (0, 1))),
        Rule([Interval(0, 1, 4)], "b", RuleStatistics(2, (0, 2))),
        Rule([], "b", RuleStatistics(4, (1, 3))),
    ]
    assert classifier(rules, 1).simplify().rules == (Rule([], "b", RuleStatistics(7, (1, 6))),)


@pytest.mark.parametrize(
    ("domain", "rules", "left"),
    [
        # A rule beyond the domain may be the nearest.
        (Domain((0,), (10,)), [("a", 12, 14)], None),
        # Each number has a rule, so that no distance matters.
        (None, [("b", -math.inf, math.inf), ("a", 0, 1)], [("b", -math.inf, math.inf)]),
        # Neighbors of one output are merged, unless a rule stands between them in the list.
        (
            None,
            [("a", 0, 1), ("b", 5, 6), ("b", 6, 7), ("a", 1, 2)],
            [("a", 0, 1), ("b", 5, 7), ("a", 1, 2)],
        ),
        (
            None,
            [
                ("b", 5, 6),
                ("b", 6, 7),
                ("a", 0, 1),
                ("a", 3, 4),
                ("a", 8, 9),
                ("b", 14, 15),
                ("a", 1, 2),
            ],
            [("b", 5, 7), ("a", 0, 1), ("a", 3, 4), ("a", 8, 9), ("b", 14, 15), ("a", 1, 2)],
        ),
    ],
    ids=["beyond", "everywhere", "between", "further"],
)
def test_simplify_exactly_with_nearest_policy(
    domain: Domain | None,
    rules: list[tuple[str, float, float]],
    left: list[tuple[str, float, float]] | None,
) -> None:
    before, after = (
        [Rule([Interval(0, *ends)], output) for output, *ends in listed]
        for listed in (rules, left or rules)
    )
    ruleset = classifier(before, 1, domain=domain, fallback=Fallback("b", "nearest"))
    assert ruleset.simplify().rules == tuple(after)


def test_simplify_merges_keep_equal_bounds_as_written() -> None:
    sides = [Interval(0, 1, 2), Interval(0, math.nextafter(1, 2), 3, True)]
    rules = [Rule([side], "a") for side in sides]
    short = classifier(rules, 1, fallback=Fallback("b", "nearest")).simplify()
    assert premises_of(short) == [(Interval(0, 1, 3),)]


def test_simplify_merges_ordered_rules_of_low_purity() -> None:
    rules = [
        Rule([Interval(0, 0, 1)], "a", RuleStatistics(2, (1, 1))),
        Rule([Interval(0, 1, 2)], "a", RuleStatistics(2, (1, 1))),
        Rule([Interval(0, 0, 3)], "b", RuleStatistics(5, (0, 5))),
    ]
    short = classifier(rules, 1, ordered=True).simplify()
    assert short.rules[0] == Rule([Interval(0, 0, 2)], "a", RuleStatistics(4, (2, 2)))
    assert len(short) == 2


def test_simplify_merges_beside_a_rule_of_other_priority() -> None:
    rules = [
        Rule([Interval(0, 1, 2, True, False)], "a", RuleStatistics(2, (2, 0))),
        Rule([Interval(0, 0, 1, True, False)], "a", RuleStatistics(4, (2, 2))),
        Rule([Interval(0, 2, 3, True, False)], "b", RuleStatistics(4, (1, 3))),
    ]
    short = classifier(rules, 1, ordered=False).simplify()
    assert premises_of(short) == [(Interval(0, 0, 2, True, False),), rules[2].conditions]


def test_simplify_merges_what_merged_rules_touch() -> None:
    boxes = [((0, 1), (0, 1)), ((0, 1), (1, 2)), ((1, 2), (0, 2))]
    rules = [Rule([Interval(0, *x), Interval(1, *y)], "a") for x, y in boxes]
    short = classifier(rules, ordered=False).simplify()
    assert premises_of(short) == [(Interval(0, 0, 2), Interval(1, 0, 2))]


def test_simplify_merges_after_bounds_are_dropped() -> None:
    rules = [
        Rule([Interval(0, upper=1)], "b"),
        Rule([Interval(0, 1), Interval(1, upper=1)], "a"),
        Rule([Interval(1, 1, 2)], "a"),
    ]
    ruleset = classifier(rules, ordered=True, domain=Domain((0, 0), (4, 4)))
    assert premises_of(ruleset.simplify()) == [(Interval(0, upper=1),), (Interval(1, upper=2),)]


def test_simplify_removes_what_united_rules_cover() -> None:
    rules = [Rule([Missing(0, True)], "a"), Rule([Missing(0)], "a"), Rule([], "b")]
    assert classifier(rules, 1, ordered=True).simplify().rules == (Rule([], "a"),)


# --- on rows: what only some sets of rules show ---------------------------------------------------


def test_simplify_on_rows_keeps_the_last_rule() -> None:
    rules = [Rule([Interval(0, 5, 6)], "a")]
    assert len(classifier(rules, 1).simplify([[1.0], [2.0]])) == 1
    assert len(classifier(rules, 1).simplify([[1.0], [2.0]], 0.5)) == 1


def test_simplify_on_rows_keeps_statistics_beside_uncovered_rows() -> None:
    rules = [
        Rule([Interval(0, 0, 2)], "a", RuleStatistics(5, (4, 1))),
        Rule([Interval(0, 3, 4)], "b", RuleStatistics(6, (1, 5))),
    ]
    X = [[0.5], [-1.0], [2.5], [3.5], [5.0]]
    assert classifier(rules, 1).simplify(X).rules == tuple(rules)


def test_simplify_on_rows_of_linear_outputs() -> None:
    outputs = [LinearOutput(float(i), [(1, 1.0)]) for i in (1, 5)]
    rules = [Rule([Interval(0, upper=1)], outputs[0]), Rule([], outputs[1])]
    ruleset = RuleSet(rules, ["x", "y"], task="regression", ordered=True)
    X = np.array([[0.5, np.nan], [0.6, np.nan], [2.0, 1.0], [3.0, 9.0]])
    # Where the value is missing, either predicts nothing.
    assert ruleset.simplify(X).rules == ruleset.simplify(X, 0.1).rules == (rules[1],)
    X[0, 1] = 4.0
    assert ruleset.simplify(X).rules == tuple(rules)


def test_simplify_on_rows_drops_bounds_with_nearest_policy() -> None:
    rules = [Rule([Interval(0, 0, 2)], "a")]
    ruleset = classifier(rules, 1, fallback=Fallback("b", "nearest"))
    assert premises_of(ruleset.simplify([[0.5], [3.0]])) == [(Interval(0, upper=2),)]


def test_simplify_on_rows_drops_long_conditions_first() -> None:
    rules = [Rule([Interval(0, upper=5), Interval(1, 1, 2)], "a")]
    X = [[4.0, 1.5], [9.0, 0.5], [9.0, 3.0]]
    assert premises_of(classifier(rules).simplify(X)) == [(Interval(0, upper=5),)]


def test_simplify_on_rows_removes_rules_made_needless() -> None:
    def box(x: tuple[float, float], y: tuple[float, float], output: str) -> Rule:
        return Rule([Interval(0, *x), Interval(1, *y)], output)

    rules = [
        box((0, 4), (0, 1), "a"),  # needless once the second is gone, which no row needs
        box((0, 4.5), (0, 1), "b"),
        box((0, 2), (0, 9), "a"),
        box((2.2, 4.3), (-9, 1), "a"),
        Rule([], "b"),
    ]
    inside = [(1, 0.5), (3, 0.5), (1, 5), (3, -5)]
    outside = [(-1, 0.5), (5, 0.5), (1, -5), (3, 5), (1, 10), (3, -10)]
    X = np.array([*inside, *outside], dtype=float)
    short = classifier(rules, ordered=True).simplify(X)
    assert short.rules == tuple(rules[2:])


def test_simplify_on_rows_widens_rules_of_other_values() -> None:
    rules = [
        Rule([Interval(0, 0, 1), OneOf(1, ["p"])], "a"),
        Rule([Interval(0, 2, 3), OneOf(1, ["q"])], "b"),
    ]
    X = np.array([[0.5, "p"], [2.5, "q"], [5.0, "r"]], dtype=object)
    short = classifier(rules, ordered=False, disjoint=True).simplify(X)
    assert premises_of(short) == [(OneOf(1, ["p"]),), (OneOf(1, ["q"]),)]


def test_simplify_on_rows_merges_huge_outputs() -> None:
    largest = sys.float_info.max
    rules = [
        Rule([Interval(0, upper=1)], 0.3 * largest),
        Rule([Interval(0, upper=2)], 0.29 * largest),
        Rule([], 0.0),
    ]
    ruleset = RuleSet(rules, ["x"], task="regression", ordered=True)
    short = ruleset.simplify([[0.5], [1.5], [3.0], [4.0]], 0.1)  # the squares are too large
    assert len(short) == 2
    assert short.rules[0].conditions == rules[1].conditions


@pytest.mark.parametrize(
    ("sides", "values", "X", "left"),
    [
        # A step that has become costlier waits for a single one that is cheaper.
        (
            [(1.5, 3), (3, 4.5), (4.5, math.inf), (-math.inf, 0.5), (0.5, 1.5)],
            [2.0, 14 / 3, 8.0, 6.5, 6.0],
            [4, 1, 4, 5, 2, 2, 1, 0, 0, 1, 4],
            [2.0, (3 * 14 / 3 + 6 * 6.2) / 9],
        ),
        # One that costs less than a row waits as well.
        (
            [(3.5, 4.5), (4.5, math.inf), (2.5, 3.5), (-math.inf, 1.5), (1.5, 2.5)],
            [17.5, 25.0, 10.0, 2.0, 5.0],
            [3, 5, 4, 5, 5, 2, 4, 5, 1],
            [25.0, (2 * 17.5 + 10.0) / 3],
        ),
    ],
)
def test_simplify_on_rows_takes_the_best_step_first(
    sides: list[tuple[float, float]], values: list[float], X: list[float], left: list[float]
) -> None:
    rules = [Rule([Interval(0, *side)], value) for side, value in zip(sides, values, strict=True)]
    ruleset = RuleSet(rules, ["x"], task="regression", ordered=True)
    short = ruleset.simplify(np.array(X)[:, None], 0.3)
    assert [rule.output for rule in short.rules] == pytest.approx(left)


def test_simplify_counts_rows_of_rules_without_counts_again() -> None:
    premises = [
        [Interval(0, upper=3)],
        [Interval(1, 2, 5)],
        [Interval(0, upper=5)],
        [Interval(0, upper=1)],
    ]
    rules = RuleSet(
        [Rule(premise, "a") for premise in premises],
        ["x", "y"],
        task="classification",
        classes=["a", "b"],
        ordered=True,
        domain=Domain((0, 0), (5, 5)),
        fallback=Fallback("a"),
    )
    X = [[2.0, 1.0], [3.0, 4.0], [3.0, 3.0], [0.0, 5.0]]
    [rule] = with_statistics(rules, X, np.array(["a", "b", "a", "a"])).simplify(X)
    assert rule.statistics is not None
    assert rule.statistics.n_rows == 4
