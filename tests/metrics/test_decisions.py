"""Decisions of rules for rows, compared with a plain loop over rows."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest

from skescore.metrics import count_decisions, decide_rows
from skescore.rules import (
    AtLeast,
    Domain,
    Fallback,
    Interval,
    Linear,
    LinearOutput,
    OneOf,
    Rule,
    RuleSet,
)

RULES = RuleSet(
    [
        Rule([AtLeast(2, [Interval(0, upper=2), Interval(1, 1), Interval(2, upper=0)])], "low"),
        Rule([OneOf(3, ["a", "b"])], "high"),
    ],
    ["x", "y", "z", "kind"],
    task="classification",
    classes=["low", "high"],
    ordered=True,
    domain=Domain((0, 0, -1, 0), (4, 4, 1, 2), [(3, ("a", "b"))]),
    fallback=Fallback("low"),
)


def rows_at_limits() -> pd.DataFrame:
    values = [-1.0, 0.0, 2.0, 4.0, 5.0, math.nan]
    kinds = ["a", "b", "c", None]
    return pd.DataFrame(
        [(x, y, 0.5, kind) for x in values for y in values for kind in kinds],
        columns=["x", "y", "z", "kind"],
    )


def is_beyond(row: Any) -> bool:
    """Return whether a known value is outside of the domain; the limits belong to it."""
    numbers = [(row.x, 0, 4), (row.y, 0, 4), (row.z, -1, 1)]
    is_outside = any(value < low or value > high for value, low, high in numbers)
    return is_outside or (isinstance(row.kind, str) and row.kind not in ("a", "b"))


def test_decide_rows_agrees_with_loop() -> None:
    X = rows_at_limits()
    y = np.array((["low", "high", None, "other"] * len(X))[: len(X)], dtype=object)
    model = np.array((["high", "low", "low"] * len(X))[: len(X)], dtype=object)
    result = decide_rows(RULES, X, y, model_predictions=model)
    predicted = RULES.predict(X)
    for i, row in enumerate(X.itertuples()):
        assert result.is_outside[i] == is_beyond(row)
        assert result.is_incomplete[i] == bool(pd.isna([row.x, row.y, row.z, row.kind]).any())
        expected = -1 if y[i] is None else int(y[i] != predicted[i])
        assert result.label_outcome[i] == expected
        assert result.model_outcome[i] == int(model[i] != predicted[i])


def test_count_decisions_adds_up_over_parts() -> None:
    X = rows_at_limits()
    y = np.array((["low", "high", None] * len(X))[: len(X)], dtype=object)
    full_counts = count_decisions(RULES, X, y)
    parts = count_decisions(RULES, X[:50], y[:50]) + count_decisions(RULES, X[50:], y[50:])
    for name, value in vars(full_counts).items():
        np.testing.assert_array_equal(getattr(parts, name), value, err_msg=name)


def test_decide_rows_accepts_errors_at_tolerance() -> None:
    rules = RuleSet(
        [
            Rule([Linear([(0, 1.0)], upper=1.0)], LinearOutput(0.0, [(0, 2.0)])),
            Rule([Interval(0, upper=3)], 4.0),
        ],
        ["x"],
        task="regression",
        ordered=True,
        domain=Domain((0,), (4,)),
    )
    X, y = [[1.0], [1.0], [2.0], [2.0], [5.0]], [2.5, 2.75, 4.25, 4.5, 0.0]
    result = decide_rows(rules, X, y, error_tolerances=[0.5, 0.25, 0.0])
    # Without a fallback, the outcome of rows without a rule is unknown.
    assert result.label_outcome.tolist() == [0, 1, 0, 1, -1]
    assert result.is_outside.tolist() == [False, False, False, False, True]
    with pytest.raises(ValueError, match="needs a tolerance for each of 2 rules"):
        decide_rows(rules, X, y, error_tolerances=[0.5, 0.25])


def test_decide_rows_without_domain_has_no_limits() -> None:
    result = decide_rows(RULES.replace(domain=None), rows_at_limits())
    assert not result.is_outside.any()
    assert set(result.label_outcome) == {-1}


def test_decide_rows_rejects_voting_rules() -> None:
    votes = RULES.replace(ordered=False, voting="votes")
    with pytest.raises(ValueError, match=r"Counting decisions.*predict together"):
        decide_rows(votes, rows_at_limits())


def test_decide_rows_compares_model_predictions_without_labels() -> None:
    rows = rows_at_limits()
    predictions = RULES.predict(rows)
    result = decide_rows(RULES, rows, model_predictions=predictions)
    assert set(result.label_outcome) == {-1}
    assert set(result.model_outcome) == {0}
    counts = result.counts()
    restored = type(counts).from_dict(counts.to_dict())
    assert restored.to_dict() == counts.to_dict()


def test_decide_rows_of_a_single_class_needs_no_fallback() -> None:
    rules = RuleSet([Rule([Interval(0, upper=1)], "a")], ["x"], task="classification")
    assert decide_rows(rules, [[0.0], [5.0]], ["a", "a"]).label_outcome.tolist() == [0, -1]
