"""Standalone rules never hold together, and they predict like the list."""

from __future__ import annotations

import contextlib
import itertools
import random

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skescore.rules import (
    AtLeast,
    Domain,
    Fallback,
    Interval,
    Linear,
    Missing,
    OneOf,
    Rule,
    RuleSet,
    RuleStatistics,
)

NAMES = ["age", "size", "color"]
BOUNDS = st.sampled_from([0.0, 1.0, 2.0, 3.0])


@st.composite
def conditions(draw, depth=0):
    kind = draw(
        st.sampled_from(["interval"] * 3 + ["one of", "missing"] + ["at least"] * (not depth))
    )
    missing = draw(st.sampled_from([False, False, True]))
    if kind == "interval":
        low, high = sorted([draw(BOUNDS), draw(BOUNDS)])
        free = draw(st.sampled_from(["low", "high", "neither"]))
        low, high = (-np.inf if free == "low" else low), (np.inf if free == "high" else high)
        closed = (True, True) if low == high else (draw(st.booleans()), draw(st.booleans()))
        return Interval(draw(st.integers(0, 1)), low, high, *closed, missing)
    if kind == "one of":
        values = draw(st.sets(st.sampled_from(["blue", "green", "red"]), min_size=1, max_size=2))
        return OneOf(2, sorted(values), draw(st.booleans()), missing)
    if kind == "missing":
        return Missing(draw(st.integers(0, 2)), draw(st.booleans()))
    inner = draw(st.lists(conditions(depth + 1), min_size=1, max_size=3))
    return AtLeast(draw(st.integers(1, len(inner))), inner)


@st.composite
def lists(draw):
    rules = []
    for _ in range(draw(st.integers(1, 5))):
        premise = draw(st.lists(conditions(), max_size=3))
        try:
            rules.append(Rule(tuple(premise), draw(st.sampled_from("ab"))))
        except ValueError:  # the conditions contradict each other
            continue
    settings = {"ordered": draw(st.booleans()), "domain": None}
    if draw(st.booleans()):
        categories = [(2, ("blue", "green", "red"))]
        settings["domain"] = Domain((0, 0, 0), (3, 3, 3), categories, (0.1, 0.1, 0.1))
    return RuleSet(
        rules, NAMES, task="classification", classes=["a", "b"], fallback=Fallback("b"), **settings
    )


def rows(*, gaps):
    numbers = [-1.0, 0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0]
    colors = ["blue", "green", "red", "never seen"]
    index = pd.MultiIndex.from_product(
        [
            [*numbers, np.nan] if gaps else numbers,
            [*numbers, np.nan] if gaps else numbers,
            [*colors, None] if gaps else colors,
        ]
    )
    return pd.DataFrame(index.tolist(), columns=NAMES)


@settings(max_examples=60)
@given(ruleset=lists())
def test_standalone_preserves_predictions(ruleset):
    # Without a domain, features without a condition on missing values count as observed.
    X = rows(gaps=ruleset.domain is not None)
    standalone = ruleset.standalone()
    assert not standalone.ordered
    assert (standalone.match(X).sum(axis=1) <= 1).all()
    assert (standalone.covers(X) == ruleset.covers(X)).all()
    assert (standalone.predict(X) == ruleset.predict(X)).all()


def test_standalone_intersects_lists_to_missing():
    rules = [Rule([OneOf(2, ["blue"])], "a"), Rule([OneOf(2, ["blue"], True)], "a"), Rule([], "b")]
    domain = Domain((0, 0, 0), (3, 3, 2), [(2, ("blue", "red"))], (0, 0, 0.1))
    standalone = RuleSet(rules, NAMES, task="classification", domain=domain).standalone()
    assert standalone.rules[-1].conditions == (Missing(2),)


def test_standalone_excludes_earlier_missing_values():
    rules = [Rule([OneOf(2, ["red"], missing=True)], "a"), Rule([Missing(2)], "b"), Rule([], "b")]
    standalone = RuleSet(rules, NAMES, task="classification").standalone()
    assert [len(rule.conditions) for rule in standalone] == [1, 1]
    assert Missing(2) not in [c for rule in standalone for c in rule.conditions]


def test_standalone_splits_lists_and_ranges():
    rules = [Rule([OneOf(0, [1, 2])], "a"), Rule([Interval(0, lower=0.5)], "b"), Rule([], "a")]
    ruleset = RuleSet(rules, NAMES[:1], task="classification")
    X = np.arange(-1.0, 4.0)[:, None]
    assert ruleset.standalone().predict(X).tolist() == ruleset.predict(X).tolist()


def test_standalone_merges_parts_of_one_premise():
    rules = [
        Rule([Interval(0, upper=1), Interval(1, upper=1)], "a", RuleStatistics(3, (3, 0))),
        Rule([Interval(1, upper=1)], "b", RuleStatistics(4, (1, 3))),
        Rule([OneOf(2, ["red"])], "a", RuleStatistics(2, (2, 0))),
        Rule([], "b", RuleStatistics(5, (0, 5))),
    ]
    ruleset = RuleSet(rules, NAMES, task="classification")
    assert str(ruleset.standalone()).splitlines() == [
        "1. IF age ≤ 1 AND size ≤ 1 THEN a   [3 rows, 100 % of this class]",
        "2. IF age > 1 AND size ≤ 1 THEN b   [4 rows, 75 % of this class]",
        "3. IF size > 1 AND color = red THEN a   [2 rows, 100 % of this class]",
        "4. IF size > 1 AND color ≠ red THEN b   [5 rows, 100 % of this class]",
    ]


def test_standalone_drops_statistics_of_split_rules():
    rules = [Rule([Interval(0, 1, 2)], "a", RuleStatistics(3)), Rule([], "b", RuleStatistics(4))]
    standalone = RuleSet(rules, NAMES, task="classification").standalone()
    assert [rule.statistics for rule in standalone] == [RuleStatistics(3), None, None]
    assert [str(rule) for rule in standalone][1:] == ["IF age ≤ 1 THEN b", "IF age > 2 THEN b"]


def test_standalone_splits_linear_conditions():
    rules = [Rule([Linear([(0, 1), (1, 2)], 1, 2)], "a"), Rule([], "b")]
    standalone = RuleSet(rules, NAMES, task="classification").standalone()
    assert [rule.premise_text(NAMES) for rule in standalone] == [
        "1 < age + 2·size ≤ 2",
        "age + 2·size ≤ 1",
        "age + 2·size > 2",
    ]


@pytest.mark.parametrize("inner", [lambda c: c, lambda c: AtLeast(2, [c, Interval(0, upper=3)])])
def test_standalone_leaves_undefined_sums_to_later_rules(inner):
    rules = [
        Rule([inner(Linear([(0, 1.0), (1, 1.0)], upper=1))], "a"),
        Rule([Missing(0)], "b"),
        Rule([Missing(1)], "c"),
        Rule([], "d"),
    ]
    ruleset = RuleSet(rules, ["x", "y"], task="classification")
    X = list(itertools.product([0.0, 2.0, np.nan], repeat=2))
    standalone = ruleset.standalone()
    assert standalone.match(X).sum(axis=1).tolist() == [1] * len(X)
    assert standalone.predict(X).tolist() == ruleset.predict(X).tolist()


def test_standalone_keeps_disjoint_rules():
    rules = [Rule([Interval(0, upper=1)], "a"), Rule([Interval(0, 1)], "b")]
    ruleset = RuleSet(rules, NAMES, task="classification", ordered=False, disjoint=True)
    assert ruleset.standalone() == ruleset


def test_standalone_rejects_votes_and_hundreds_of_parts():
    rules = [Rule([Interval(0, upper=1)], "a")]
    voting = RuleSet(rules, NAMES, task="classification", ordered=False, voting="votes")
    with pytest.raises(ValueError, match="standalone requires that one rule predicts"):
        voting.standalone()
    names = [f"x{j}" for j in range(40)]
    many = [Rule([Interval(j, 0, 1), Interval(j + 1, 0, 1)], "a") for j in range(39)]
    with pytest.raises(ValueError, match="fall into more than 400 standalone parts"):
        RuleSet([*many, Rule([], "b")], names, task="classification").standalone()


@pytest.mark.slow
def test_standalone_handles_all_conditions_of_one_feature():
    rng = random.Random(0)
    flags = list(itertools.product([False, True], repeat=2))
    texts, codes = (
        [
            OneOf(0, values, *how)
            for n in (1, 2)
            for how in flags
            for values in itertools.combinations(all_values, n)
        ]
        for all_values in ("abc", (0, 1, 2))
    )
    ends = [(-np.inf, 1), (0, 1), (1, 2), (0, 2), (1, np.inf), (1, 1)]
    numbers = [
        Interval(0, low, high, lower_closed, upper_closed, missing)
        for low, high in ends
        for lower_closed, upper_closed in flags
        for missing in (False, True)
        if low < high or (lower_closed and upper_closed)
    ]
    gaps = [Missing(0), Missing(0, True)]
    points = [-1, 0, 0.5, 1, 1.5, 2, 3, np.nan]
    pools = (texts, [*"abcd", None]), (numbers, points), ([*numbers, *codes], points)
    for pool, values in pools:
        X = np.array(values, dtype=object).reshape(-1, 1)
        for _ in range(40):
            rules = []
            for label in (rng.choice("xy") for _ in range(3)):
                with contextlib.suppress(ValueError):  # the rules contradict each other
                    queries = [rng.choice([*pool, *gaps * 4]) for _ in range(rng.randint(1, 2))]
                    rules.append(Rule(queries, label))
            ruleset = RuleSet([*rules, Rule([], "w")], ["v"], task="classification")
            ruleset = ruleset.replace(domain=ruleset.domain_around(X))
            predictions = ruleset.predict(X).tolist()
            standalone = ruleset.standalone()
            assert (standalone.match(X).sum(axis=1) == 1).all()
            assert standalone.predict(X).tolist() == predictions
            assert ruleset.simplify().predict(X).tolist() == predictions
            assert ruleset.simplify(X).predict(X).tolist() == predictions


def test_standalone_negates_alternatives_with_two_bounds() -> None:
    either = AtLeast(1, [Interval(0, 1, 2), Interval(1, upper=0)])
    ruleset = RuleSet([Rule([either], "a"), Rule([], "b")], ["x", "y"], task="classification")
    alone = ruleset.standalone()
    points = np.array(list(itertools.product([0.5, 1.5, 2.5], [-1.0, 1.0])))
    assert alone.match(points).sum(axis=1).tolist() == [1] * 6
    assert alone.predict(points).tolist() == ruleset.predict(points).tolist()


@pytest.mark.parametrize("has_gaps", [False, True])
@pytest.mark.parametrize("m", [1, 2])
def test_standalone_counts_intervals_without_bounds(m, has_gaps):
    ends = [np.nan, 1.0, 5.2] if has_gaps else [1.0, 5.2]
    rows = np.array(list(itertools.product(ends, ends)))
    domain = Domain((0, 0), (9, 9), missing=(0.1, 0.1) if has_gaps else ())
    for parts in (
        [Interval(0, 5, 5.5), Interval(0)],
        [Interval(0), Interval(1)],
        [Interval(0, 5), Interval(1, missing=True)],
        [Interval(0, 5), Interval(1), Missing(1)],
    ):
        rules = RuleSet(
            [Rule([AtLeast(m, parts)], "b"), Rule([], "a")],
            ["x", "y"],
            task="classification",
            domain=domain,
        )
        alone = rules.standalone()
        assert (alone.match(rows).sum(axis=1) == 1).all()
        assert alone.predict(rows).tolist() == rules.predict(rows).tolist()
