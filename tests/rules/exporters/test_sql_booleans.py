"""BOOLEAN columns in numeric comparisons, as in rules learned from booleans."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from skescore.rules import AtLeast, Fallback, Interval, Linear, LinearOutput, OneOf, Rule, RuleSet

duckdb = pytest.importorskip("duckdb")

NAMES = ["smoker", "age"]
X = pd.DataFrame(
    {"smoker": [True, False, None, True, False], "age": [30.0, 30.0, 30.0, np.nan, 70.0]},
    dtype=object,
).astype({"age": float})
RULES = [
    Rule([Interval(0, lower=0.5), Interval(1, upper=50)], 1.0),
    Rule([AtLeast(2, [Interval(0, upper=0.5), Interval(1, lower=50)])], LinearOutput(1, [(0, 2)])),
    Rule([Linear([(0, 1), (1, 1)], upper=30.5)], LinearOutput(0, [(0, -1), (1, 1)])),
    Rule([OneOf(0, [1, 2.5], negated=True)], 4.0),
]


@pytest.mark.parametrize("nan", [True, False])
@pytest.mark.parametrize("order", [(0, 1, 2, 3), (3, 2, 1, 0), (2, 0)])
def test_sql_booleans_predict_like_0_and_1(order, nan):
    rules = [RULES[i] for i in order]
    ruleset = RuleSet(rules, NAMES, task="regression", fallback=Fallback(9.0))
    rows = X.dropna() if not nan else X
    expected = ruleset.predict(rows.astype(float))
    with duckdb.connect() as connection:
        connection.register("people", rows.astype({"smoker": "boolean"}))
        query = ruleset.to_sql(dialect="duckdb", table="people", exact=nan, booleans=["smoker"])
        results = [row[-1] for row in connection.execute(query).fetchall()]
    assert results == expected.tolist()


def test_sql_compares_boolean_columns_with_true():
    ruleset = RuleSet([Rule([OneOf(0, [True])], 1.0)], NAMES, task="regression")
    assert '"smoker" = TRUE' in ruleset.to_sql(exact=True, booleans=["smoker"])
    assert '"smoker" = 1' in ruleset.to_sql(exact=True)


@pytest.mark.parametrize("kind", ["INTEGER", "DOUBLE", "BOOLEAN"])
@pytest.mark.parametrize("is_named", [False, True])
@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("negated", [False, True])
@pytest.mark.parametrize("values", [[True], [False], [True, False]])
def test_sql_compares_flags_with_columns_of_all_types(values, negated, exact, is_named, kind):
    rules = [Rule([OneOf(0, values, negated)], 1.0), Rule([], 0.0)]
    ruleset = RuleSet(rules, ["smoker"], task="regression")
    numbers = [0, 1, None] if kind == "BOOLEAN" else [0, 1, 2, None]
    numbers += [float("nan")] if kind == "DOUBLE" and exact else []
    with duckdb.connect() as connection:
        connection.execute(f"CREATE TABLE people (smoker {kind})")
        connection.executemany("INSERT INTO people VALUES (?)", [[number] for number in numbers])
        booleans = ["smoker"] if is_named and kind == "BOOLEAN" else []
        query = ruleset.to_sql(dialect="duckdb", exact=exact, booleans=booleans)
        results = connection.execute(f"SELECT {query} FROM people").fetchall()
    expected = ruleset.predict(pd.DataFrame({"smoker": numbers}, dtype=object))
    assert [row[0] for row in results] == expected.tolist()


def test_sql_booleans_name_features_instead_of_columns():
    ruleset = RuleSet([Rule([Interval(0, upper=0.5)], 1.0)], NAMES, task="regression")
    sql = ruleset.to_sql(exact=True, columns={"smoker": "smokes"}, booleans=["smoker"])
    assert sql.splitlines()[1] == '  WHEN CAST("smokes" AS INTEGER) <= 0.5e0 THEN 1e0'


@pytest.mark.parametrize("dialect", ["bigquery", "snowflake", "spark"])
def test_sql_casts_booleans_in_every_dialect(dialect):
    pytest.importorskip("sqlglot")
    ruleset = RuleSet([Rule([Interval(0, upper=0.5)], 1.0)], NAMES, task="regression")
    assert "CAST(" in ruleset.to_sql(exact=True, dialect=dialect, booleans=["smoker"])


@pytest.mark.parametrize(
    ("booleans", "kind", "message"),
    [
        (["smokes"], ValueError, r"booleans names the feature 'smokes'.*Did you mean 'smoker'"),
        ("smoker", TypeError, "must be a sequence of names, got 'smoker'"),
    ],
)
def test_sql_rejects_invalid_booleans(booleans, kind, message):
    ruleset = RuleSet([Rule([Interval(0, upper=0.5)], 1.0)], NAMES, task="regression")
    with pytest.raises(kind, match=message):
        ruleset.to_sql(exact=True, booleans=booleans)
