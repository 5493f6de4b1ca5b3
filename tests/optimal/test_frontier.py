"""Validation of frontiers, and combined bounds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from skescore.optimal import Frontier
from skescore.rules import Rule, RuleSet

GOOD: dict[str, Any] = {
    "kind": "tree",
    "loss": "errors",
    "sizes": [1, 2],
    "lower": [5, 1],
    "upper": [5, 2],
    "rules": [None, None],
    "total_weight": 9,
    "space": {},
    "status": ["optimal", "time_limit"],
}


def test_frontier_bounds_are_read_only() -> None:
    arguments = np.array([5.0, 2.0])
    frontier = Frontier(**GOOD | {"upper": arguments})
    arguments[0] = 0
    assert frontier.gap.tolist() == [0, 1]
    with pytest.raises(ValueError, match="read-only"):
        frontier.lower[0] = 0


def test_with_bounds_takes_tighter_bounds() -> None:
    rules = RuleSet([Rule([], 0)], ["x"], task="classification", classes=[0])
    one = Frontier(**GOOD | {"upper": [5, 4], "lower": [5, 2], "seconds": 1})
    other = Frontier(**GOOD | {"rules": [None, rules], "seconds": 2})
    both = one.with_bounds(other)
    assert (both.lower.tolist(), both.upper.tolist()) == ([5, 2], [5, 2])
    assert both.status == ("optimal", "optimal")
    assert both.rules == (None, rules)
    assert both.seconds == 3
    with pytest.raises(ValueError, match="same kind, loss, sizes and space"):
        one.with_bounds(Frontier(**GOOD | {"kind": "list"}))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"kind": "forest"}, "kind must be one of"),
        ({"loss": "error"}, "loss must be one of 'errors'.*Did you mean 'errors'"),
        ({"sizes": [0, 1]}, "sizes must be 1, 2, 3"),
        ({"sizes": [1, 2, 3]}, "one entry for each of the 3 sizes"),
        ({"lower": [5, 3]}, "lower must be at most upper, got 3.0 and 2.0 for 2 rules"),
        ({"lower": [1, 2]}, "lower must not grow"),
        ({"upper": [5, 6]}, "upper must not grow"),
        ({"upper": [5, np.nan]}, "upper must be finite"),
        ({"lower": [5, -1]}, "lower must be finite and 0 or more"),
        ({"status": ["optimal", "optimal"]}, "must not be 'optimal' for 2 rules"),
        ({"status": ["optimal", "timeout"]}, "status must be one of"),
        ({"total_weight": -1}, "total_weight must be"),
    ],
)
def test_frontier_rejects_contradictions(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Frontier(**GOOD | changes)


def test_frontier_rejects_too_many_rules() -> None:
    two = RuleSet([Rule([], "a"), Rule([], "b")], ["x"], task="classification")
    Frontier(**GOOD | {"rules": [None, two]})
    with pytest.raises(ValueError, match="at most 1 rules at size 1, got 2"):
        Frontier(**GOOD | {"rules": [two, two]})
    with pytest.raises(TypeError, match="rules must be a RuleSet or None"):
        Frontier(**GOOD | {"rules": ["a", "b"]})
