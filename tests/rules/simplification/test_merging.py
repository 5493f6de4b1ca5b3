"""Pairs of conditions and rules: what one implies, excludes, or makes up with another."""

from __future__ import annotations

import math

import pytest

from skescore.rules import AtLeast, Condition, Interval, Linear, Missing, OneOf, Rule
from skescore.rules.simplification._merging import exclude, hull, implies, united
from skescore.rules.simplification._standalone import (
    _intersect_lists,
    _intersect_premises,
    _merge_premises,
)

KNOWN = Missing(0, negated=True)


@pytest.mark.parametrize(
    ("one", "other", "is_implied"),
    [
        (Interval(0, 1, 2), Interval(0, 0, 3), True),
        (Interval(0, 0, 3), Interval(0, 1, 2), False),
        (Interval(0, 0, 2), Interval(0, 1, 3), False),
        (Interval(0, 1, 2), Interval(0, 1, 2, True), True),
        (Interval(0, 1, 2, True), Interval(0, 1, 2), False),
        (Interval(0, 1, 2, missing=True), Interval(0, 0, 3), False),
        (Interval(0, 1, 2), Interval(1, 0, 3), False),
    ],
)
def test_intervals_imply_wider_ones(one: Condition, other: Condition, is_implied: bool) -> None:
    assert implies(one, other) is is_implied


@pytest.mark.parametrize(
    ("one", "other", "is_excluded"),
    [
        (Missing(0), KNOWN, True),
        (Missing(0), Interval(0, 1), True),
        (Missing(0), Interval(0, 1, missing=True), False),
        (Missing(0), OneOf(0, ["p"]), True),
        (Missing(0), Linear([(0, 1.0)], upper=1), True),
        (KNOWN, Interval(0, 1), False),
        (Interval(0, 0, 1), Interval(0, 1, 2), True),
        (Interval(0, 0, 1), Interval(0, 1, 2, True), False),
        (Interval(0, 0, 1), Interval(0, 2, 3), True),
    ],
)
def test_conditions_exclude_each_other(one: Condition, other: Condition, is_excluded: bool) -> None:
    assert exclude([one], [other]) == exclude([other], [one]) == is_excluded


@pytest.mark.parametrize(
    ("one", "other", "union"),
    [
        (Interval(0, 0, 1), Interval(0, 1, 2), Interval(0, 0, 2)),
        (Interval(0, 0, 1, upper_closed=False), Interval(0, 1, 2), None),
        (Interval(0, 0, 1), Interval(0, 3, 4), None),
        (Interval(0, upper=1), Interval(0, lower=0), KNOWN),
    ],
)
def test_touching_intervals_are_united(
    one: Condition, other: Condition, union: Condition | None
) -> None:
    assert united(one, other) == united(other, one) == union


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ([Missing(0)], [OneOf(0, ["p"])], [OneOf(0, ["p"], missing=True)]),
        ([Missing(0)], [Interval(0, 1, 2)], [Interval(0, 1, 2, missing=True)]),
        ([Missing(0)], [Interval(1, 1, 2)], []),
        ([OneOf(0, ["p"])], [OneOf(0, ["q"])], [OneOf(0, ["p", "q"])]),
        ([Linear([(0, 1.0)], upper=1)], [OneOf(0, ["q"])], []),
    ],
)
def test_hull_unites_sides(
    one: list[Condition], other: list[Condition], expected: list[Condition]
) -> None:
    assert list(hull(Rule(one, "a"), Rule(other, "a")).conditions) == expected
    assert list(hull(Rule(other, "a"), Rule(one, "a")).conditions) == expected


def test_hull_keeps_shared_conditions() -> None:
    shared = AtLeast(1, [Interval(0, upper=1), Interval(1, 2)])
    rules = [Rule([shared, Interval(0, i, i + 1)], "a") for i in (0, 4)]
    assert set(hull(*rules).conditions) == {shared, Interval(0, 0, 5)}


@pytest.mark.parametrize(
    ("one", "other", "both"),
    [
        (OneOf(0, ["p", "q"], missing=True), OneOf(0, ["q", "r"]), (OneOf(0, ["q"]),)),
        (
            OneOf(0, ["p", "q"], missing=True),
            OneOf(0, ["q", "r"], missing=True),
            (OneOf(0, ["q"], missing=True),),
        ),
        (OneOf(0, ["p"], missing=True), OneOf(0, ["q"], missing=True), (Missing(0),)),
        (OneOf(0, ["p"]), OneOf(0, ["q"]), None),
        (OneOf(0, ["p"], True, missing=True), OneOf(0, ["q"], True), (OneOf(0, ["p", "q"], True),)),
    ],
)
def test_intersection_of_premises_on_values(
    one: OneOf, other: OneOf, both: tuple[Condition, ...] | None
) -> None:
    assert _intersect_premises((one,), (other,)) == _intersect_premises((other,), (one,)) == both


def test_intersection_of_lists_accepts_missing_if_both_do() -> None:
    one, both = OneOf(0, ["p", "q"], missing=True), OneOf(0, ["q"], missing=True)
    assert _intersect_lists(one, both) == both
    assert _intersect_lists(one, OneOf(0, ["q"])) == OneOf(0, ["q"])
    assert _intersect_lists(OneOf(0, ["q"]), one) == OneOf(0, ["q"])


BESIDE, FURTHER = Interval(1, 5), Interval(1, upper=-5)


@pytest.mark.parametrize(
    ("one", "other", "union"),
    [
        ((Interval(0, 0, 1), BESIDE), (Interval(0, 1, 2), BESIDE), (Interval(0, 0, 2), BESIDE)),
        ((OneOf(0, ["p"]), BESIDE), (OneOf(0, ["p"], True), BESIDE), (BESIDE,)),
        ((Interval(0, upper=1), BESIDE), (Interval(0, 1), BESIDE), (BESIDE,)),
        ((Interval(0, 0, 1), BESIDE), (Interval(0, 3, 4), BESIDE), None),
        ((Interval(0, 0, 1), BESIDE), (Interval(0, 1, 2), FURTHER), None),
        ((Interval(0, 0, 1), BESIDE), (Interval(0, 1, 2),), None),
    ],
)
def test_premises_that_differ_in_one_condition_merge(
    one: tuple[Condition, ...],
    other: tuple[Condition, ...],
    union: tuple[Condition, ...] | None,
) -> None:
    assert _merge_premises(one, other, set()) == union
    assert _merge_premises(other, one, set()) == union


def test_premises_merge_unless_values_are_missing() -> None:
    sides = (Interval(0, upper=1), BESIDE), (Interval(0, 1, math.inf), BESIDE)
    assert _merge_premises(*sides, {0}) == (BESIDE, KNOWN)
