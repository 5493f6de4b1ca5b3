"""SQL runs in a temporary PostgreSQL server, on rows that are easily misread."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from loaded_files import load_file

from skescore.rules import Interval, Linear, OneOf, Rule, RuleSet

TESTS = Path(__file__).parents[1]


arbitrary = load_file("rules/exporters/arbitrary.py")
postgresql = load_file("tuning/storage/conftest.py").postgresql
X = arbitrary.hostile_rows()
# The smallest floats times 0.5 are errors there.
X = X.mask(X.select_dtypes("number").abs() < 1e-300, 0.0)


@pytest.fixture(scope="module")
def table(postgresql: Any) -> Iterator[Any]:
    """Yield a connection to a database with the rows; every other missing number is NaN."""
    psycopg = pytest.importorskip("psycopg")
    with psycopg.connect(postgresql.new_database(), autocommit=True) as connection:
        columns = ", ".join(
            f'"{name}" {"TEXT" if name == "sex" else "DOUBLE PRECISION"}' for name in X.columns
        )
        connection.execute(f"CREATE TABLE some_rows ({columns}, place INTEGER)")
        with connection.cursor().copy("COPY some_rows FROM STDIN") as copy:
            for i, row in enumerate(X.itertuples(index=False, name=None)):
                lacks = [isinstance(v, float) and np.isnan(v) and i % 2 == 0 for v in row]
                copy.write_row([*(None if n else v for v, n in zip(row, lacks, strict=True)), i])
        yield connection


@pytest.mark.parametrize("ruleset", arbitrary.hostile_sets(), ids=range(12))
def test_postgresql_predicts_hostile_rows(table: Any, ruleset: RuleSet) -> None:
    query = f"SELECT {ruleset.to_sql(exact=True, dialect='postgres')} FROM some_rows ORDER BY place"
    results = [None if v != v else v for (v,) in table.execute(query).fetchall()]
    expected = arbitrary.answers(ruleset, X)
    wrong = [
        (X.iloc[i].to_dict(), a, b)
        for i, (a, b) in enumerate(zip(results, expected, strict=True))
        if a != b
    ]
    assert not wrong, f"{wrong[:3]}\n{ruleset!r}\n{query}"


#: Integers that floats do not represent, beside some that they do.
LARGE = [0, 1, 2, 7, 2**53 - 1, 2**53, 2**53 + 1, -(2**53), -(2**53) - 1, 2**62, 2**62 + 1]
LARGE += [2**63 - 2, 2**63 - 1]


@pytest.fixture(scope="module")
def integers(postgresql: Any) -> Iterator[Any]:
    """Yield a connection to a database with large integers."""
    psycopg = pytest.importorskip("psycopg")
    with psycopg.connect(postgresql.new_database(), autocommit=True) as connection:
        connection.execute("CREATE TABLE some_rows (x BIGINT, flag BOOLEAN, bit INTEGER)")
        for number in LARGE:
            row = number, number % 2 == 1, number % 3
            connection.execute("INSERT INTO some_rows VALUES (%s, %s, %s)", row)
        yield connection


def check_integers(connection: Any, ruleset: RuleSet, exact: bool, **options: Any) -> None:
    sql = ruleset.to_sql(exact=exact, dialect="postgres", **options)
    rows = connection.execute(f"SELECT x, flag, bit, {sql} FROM some_rows").fetchall()
    frame = pd.DataFrame([row[:3] for row in rows], columns=["x", "flag", "bit"])
    assert [row[3] for row in rows] == ruleset.predict(frame).tolist()


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("negated", [False, True])
@pytest.mark.parametrize(
    "values",
    [
        [2**53 + 1, 0.5],
        [2**53 + 1, 2.0**53, 0.5],
        [2.0**53],
        [-(2**53) - 1, 2**62 + 1, 1e300],
        [2**63 - 1, 2.0**63, 7],
    ],
    ids=str,
)
def test_postgresql_compares_large_integers_with_lists(
    integers: Any, values: Any, negated: bool, exact: bool
) -> None:
    rules = [Rule([OneOf(0, values, negated)], "in"), Rule([], "out")]
    check_integers(integers, RuleSet(rules, ["x", "flag", "bit"], task="classification"), exact)


LARGE_BOUNDS = [
    Interval(0, upper=2.0**53),
    Interval(0, lower=2.0**53),
    Interval(0, lower=2.0**53, lower_closed=True),
    Interval(0, lower=2.0**53, upper=2.0**53, lower_closed=True),
    Interval(0, lower=-(2.0**53), upper=2.0**62),
    Interval(0, upper=2.0**63, upper_closed=False),
    Interval(0, lower=-1e300, upper=2.0**53 - 1),
    Linear([(0, 1.0)], upper=2.0**53),
]


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("condition", LARGE_BOUNDS, ids=str)
def test_postgresql_compares_large_integers_with_bounds(
    integers: Any, condition: Any, exact: bool
) -> None:
    rules = [Rule([condition], "in"), Rule([], "out")]
    check_integers(integers, RuleSet(rules, ["x", "flag", "bit"], task="classification"), exact)


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("negated", [False, True])
@pytest.mark.parametrize("values", [[True], [False], [True, False]], ids=str)
def test_postgresql_compares_flags(integers: Any, values: Any, negated: bool, exact: bool) -> None:
    for feature, booleans in ((1, ["flag"]), (2, [])):
        rules = [Rule([OneOf(feature, values, negated)], "in"), Rule([], "out")]
        ruleset = RuleSet(rules, ["x", "flag", "bit"], task="classification")
        check_integers(integers, ruleset, exact, booleans=booleans)
