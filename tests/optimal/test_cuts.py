"""Compare cuts and their tests with conditions evaluated row by row."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd
import pytest

from skescore.black_boxes import CallableClassifier
from skescore.certificates import certify, check_certificate
from skescore.constraints import Constraints, constrain
from skescore.extractors import CARTExtractor, OptimalListExtractor, OptimalTreeExtractor
from skescore.optimal import Cuts, SearchSpace, Tests, candidate_cuts, optimal_trees
from skescore.rules import AtLeast, Interval, Missing, OneOf, RowTable, Rule, RuleSet
from skescore.verification import verify


def rows_of_tests(tests: Tests) -> np.ndarray:
    """Return bit sets as a matrix of booleans."""
    bits = np.unpackbits(tests.rows.astype("<u8").view(np.uint8), axis=1, bitorder="little")
    assert not bits[:, tests.n_rows :].any()
    return bits[:, : tests.n_rows].astype(bool)


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    size = 131  # More than two words of 64 bits.
    return pd.DataFrame(
        {
            "number": rng.normal(size=size),
            "gaps": np.where(rng.random(size) < 0.2, np.nan, rng.integers(0, 4, size)),
            "color": pd.array(rng.choice(["red", "blue", None], size), dtype=object),
            "flag": rng.random(size) < 0.5,
            "constant": 1.0,
            "again": rng.normal(size=size),
        }
    ).assign(again=lambda frame: frame["flag"].astype(float))


def test_tests_of_cuts_have_complementary_negations(table: pd.DataFrame) -> None:
    tests = candidate_cuts(table).tests(table)
    rows = rows_of_tests(tests)
    for condition, negation, line in zip(tests.conditions, tests.negations, rows, strict=True):
        column = table.iloc[:, condition.features[0]].to_numpy()
        np.testing.assert_array_equal(condition.holds(lambda _, c=column: c), line)
        np.testing.assert_array_equal(negation.holds(lambda _, c=column: c), ~line)
        assert 0 < line.sum() < len(line)
    canonical = rows ^ rows[:, :1]
    assert len(np.unique(canonical, axis=0)) == len(rows)
    # "red" equals "not (blue or missing)"; "flag" and "again" have the same test.
    assert len(tests) == 130 + (3 * 2 + 1) + 3 + 1


def test_candidate_cuts_lie_between_values(table: pd.DataFrame) -> None:
    cuts = candidate_cuts(table)
    values = np.unique(table["number"])
    quantile_cuts = np.array(cuts.thresholds[0])
    assert ((values[:-1] <= quantile_cuts) & (quantile_cuts < values[1:])).all()
    assert cuts.thresholds[1] == (0.5, 1.5, 2.5)
    assert cuts.thresholds[4] == ()
    assert cuts.missing_features == (1, 2)
    assert cuts.categories == {2: ("blue", "red"), 3: (False, True)}
    assert json.loads(json.dumps(cuts.to_json()))["categories"]["2"] == ["blue", "red"]


def test_candidate_cuts_are_near_quantiles() -> None:
    column = np.arange(90.0)[:, None]
    assert candidate_cuts(column, 8).thresholds[0] == tuple(np.arange(10, 90, 10) - 0.5)
    skewed = np.concatenate([np.zeros(50), np.arange(1, 51)])[:, None]
    cuts = candidate_cuts(skewed, 4).thresholds[0]
    assert cuts[0] == 0.5
    assert len(cuts) <= 4
    # A column with few values has all its cuts.
    assert candidate_cuts(np.array([[0.0], [0], [0], [1], [2]]), 2).thresholds[0] == (0.5, 1.5)


def test_candidate_cuts_accept_coded_categories() -> None:
    cuts = candidate_cuts(np.array([[0.0, 2], [1, 3], [2, 2]]), categories=[1])
    assert cuts.thresholds == {0: (0.5, 1.5)}
    assert cuts.categories == {1: (2.0, 3.0)}


def test_tests_of_cuts_of_constant_tables_are_empty() -> None:
    tests = candidate_cuts(np.ones((70, 2))).tests(np.ones((70, 2)))
    assert len(tests) == 0
    assert tests.rows.shape == (0, 2)


def test_cuts_with_rules_separate_rows_like_rules(table: pd.DataFrame) -> None:
    values = np.sort(table["number"].to_numpy())
    conditions = [
        Interval(0, float(values[5]), float(values[50]), lower_closed=True, upper_closed=False),
        Interval(0, lower=float(values[90])),
        AtLeast(1, [Interval(1, upper=1.0, missing=True), OneOf(2, ["blue"])]),
        OneOf(2, ["red", "blue"], missing=True),
        OneOf(2, ["blue", "red"], negated=True),
        Missing(1, negated=True),
        Interval(4, upper=7.0),  # separates no rows
    ]
    rules = RuleSet([Rule((c,), 1) for c in conditions], list(table), task="regression")
    none = Cuts(table.shape[1], {}, {})
    cuts = none.with_rules([rules], table)
    assert set(cuts.thresholds) == {0, 1, 4}
    assert cuts.thresholds[4] == ()
    assert cuts.category_sets == {2: (("blue",), ("blue", "red"))}
    assert set(cuts.missing_features) == {1, 2}
    rows = RowTable.of(table, list(table))
    tests = cuts.tests(table)
    parts = {line.tobytes() for line in rows_of_tests(tests)}
    parts |= {(~line).tobytes() for line in rows_of_tests(tests)}
    for condition in (*conditions[1:2], *conditions[3:6], *conditions[2].conditions):
        holds = rows.holds(condition)
        assert holds.tobytes() in parts or len(np.unique(holds)) == 1
    # Each bound of an interval is a separate test.
    for part in (rows.column(0) < values[5], rows.column(0) < values[50]):
        assert part.astype(bool).tobytes() in parts
    assert cuts.with_rules([rules], table) == cuts
    assert json.loads(json.dumps(cuts.to_json()))["category_sets"] == {
        "2": [["blue"], ["blue", "red"]]
    }


def test_cuts_with_rules_keep_other_cuts(table: pd.DataFrame) -> None:
    few = candidate_cuts(table, 3)
    every = candidate_cuts(table)
    rule = Rule((Interval(0, upper=every.thresholds[0][7]), OneOf(2, ["red"])), 1)
    cuts = few.with_rules([RuleSet([rule], list(table), task="regression")], table)
    assert set(cuts.thresholds[0]) == {*few.thresholds[0], every.thresholds[0][7]}
    assert cuts.category_sets == {}  # the value is already a test
    assert cuts.n_cuts == few.n_cuts + 1
    assert set(cuts.select({0, 2}).thresholds) == {0}
    assert set(cuts.select({0, 2}).categories) == {2}


def test_stated_cuts_need_tests_of_missing_values() -> None:
    X = pd.DataFrame({"a": [0.0, 1.0, 2.0, 3.0, np.nan, np.nan]})
    y = np.array(list("ppnnpp"))
    cuts = Cuts(1, {0: (1.5,)}, {}, ())
    with pytest.raises(ValueError, match=r"'a' has 2 missing values\. Add 0 to missing_features"):
        optimal_trees(X, y, space=SearchSpace(2, 1, cuts))
    cuts = Cuts(1, {0: (1.5,)}, {}, (0,))
    assert optimal_trees(X, y, space=SearchSpace(2, 1, cuts)).upper[1] == 0


@pytest.mark.parametrize(
    "column",
    [
        [np.nan] * 6,
        pd.Series([None] * 6, dtype=object),
        pd.Categorical([None] * 6),
        pd.Categorical([None] * 6, categories=["u", "v"]),
        pd.Series([pd.NA] * 6, dtype="Int64"),
        pd.Series([pd.NA] * 6, dtype="boolean"),
    ],
    ids=["float", "object", "no category", "category", "Int64", "boolean"],
)
def test_column_without_values_is_usable(column: Any) -> None:
    X = pd.DataFrame({"x": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0], "z": column})
    y = np.array([0, 0, 1, 1, 0, 1])
    model = CallableClassifier(lambda rows: y[rows["x"].to_numpy().astype(int) - 1], classes=[0, 1])
    for extractor in (
        CARTExtractor(model),
        OptimalTreeExtractor(model, max_leaf_nodes=3),
        OptimalListExtractor(model, max_rules=3),
    ):
        rules = extractor.fit(X).rules_
        assert {c.feature for rule in rules for c in rule.conditions} == {0}
        assert len(rules) > 1
    assert len(verify(rules, model, X).rules) == len(rules)
    assert constrain(rules, Constraints(max_rules=2), X, y).ruleset is not None
    table = X.assign(z=X["z"].astype(float)) if X["z"].dtype == "Int64" else X
    if X["z"].dtype.kind == "f":  # rules may name the column
        conditions = (Interval(0, upper=2.5), Interval(1, upper=3.0, missing=True))
        rules = RuleSet([Rule(conditions, 0), Rule((), 1)], ["x", "z"], task="classification")
    certificate = certify(rules, table, y)
    assert "rejected" not in str(check_certificate(certificate.to_json(), table, y))


@pytest.mark.parametrize("values", [[-np.inf, 0.0, 1.0, 2.0], [-np.inf, np.inf, 0.0, np.inf]])
def test_cuts_next_to_infinite_values_are_finite(values: list[float]) -> None:
    X = pd.DataFrame({"a": values})
    thresholds = candidate_cuts(X).thresholds[0]
    assert np.isfinite(thresholds).all()
    assert len(candidate_cuts(X).tests(X)) == len(thresholds) == len(set(values)) - 1
    y = np.array(["yes", "no", "no", "no"])
    rules = RuleSet(
        [Rule([Interval(0, upper=1.5)], "no"), Rule([], "yes")], ["a"], task="classification"
    )
    certificate = certify(rules, X, y, space=SearchSpace(2))
    assert certificate.frontiers[0].upper.tolist() == [1.0, 0.0]
    assert check_certificate(certificate.to_json(), X, y).verdict == "confirmed"
