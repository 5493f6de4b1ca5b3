"""SQL runs in DuckDB and SQLite and predicts like the rule set, row by row."""

from __future__ import annotations

import math
import sqlite3
import textwrap
from contextlib import closing

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from skescore.rules import (
    AtLeast,
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
)

duckdb = pytest.importorskip("duckdb")
sqlglot = pytest.importorskip("sqlglot")

INF, NAN = math.inf, math.nan
NAMES = ["length", "kind"]


@pytest.fixture(scope="module")
def duck():
    """Yield a database in memory."""
    with duckdb.connect(config={"threads": 1}) as connection:
        yield connection


def ask(connection, query, parameters=()):
    """Return all rows of a result; some versions of DuckDB require fetching to the end."""
    return connection.execute(query, list(parameters)).fetchall()


def arrow(X):
    """Create a table in which every other missing number is NULL, and the others NaN."""
    columns = {}
    for name in X.columns:
        values = X[name].to_numpy()
        if values.dtype.kind == "f":
            null = np.isnan(values) & (np.arange(len(values)) % 2 == 0)
            columns[name] = pa.array(values, mask=null, from_pandas=False)
        else:
            columns[name] = pa.array(values.tolist())
    return pa.table(columns)


def in_duckdb(connection, ruleset, X, expressions):
    """Return the values of some expressions on a DuckDB table of the rows."""
    connection.register("some_rows", arrow(X).append_column("position", pa.array(range(len(X)))))
    listed = ", ".join(f"({text}) AS a{i}" for i, text in enumerate(expressions))
    result = ask(connection, f"SELECT {listed} FROM some_rows ORDER BY position")
    connection.unregister("some_rows")
    return [[None if v != v else v for v in column] for column in zip(*result, strict=True)]


def in_sqlite(ruleset, X, expressions):
    """Return the values of some expressions on an SQLite table of the rows."""
    with closing(sqlite3.connect(":memory:")) as connection:
        kinds = {"f": "REAL", "b": "INTEGER"}
        declared = [
            f"`{name.replace('`', '``')}` {kinds.get(X[name].dtype.kind, 'BLOB')}"
            for name in X.columns
        ]
        connection.execute(f"CREATE TABLE some_rows ({', '.join(declared)}, position INTEGER)")
        marks = ", ".join("?" * (X.shape[1] + 1))
        values = [(*row, i) for i, row in enumerate(X.itertuples(index=False, name=None))]
        connection.executemany(f"INSERT INTO some_rows VALUES ({marks})", values)
        listed = ", ".join(expressions)
        query = f"SELECT {listed} FROM some_rows ORDER BY position"
        return list(zip(*connection.execute(query).fetchall(), strict=True))


def assert_equal(results, expected, ruleset, X, *, types=True):
    wrong = [
        (X.iloc[i].to_dict(), a, b)
        for i, (a, b) in enumerate(zip(results, expected, strict=True))
        if a != b or (types and type(a) is not type(b))
    ]
    assert not wrong, f"{wrong[:3]}\n{ruleset!r}\n{ruleset.to_sql(exact=True)}"


def one_rule(output=1.0, *conditions, **changes):
    values = {"feature_names": NAMES, "task": "regression"} | changes
    return RuleSet([Rule(conditions, output)], **values)


def classes(labels, **changes):
    rules = [Rule([Interval(0, upper=i)], label) for i, label in enumerate(labels)]
    return RuleSet(rules, NAMES, task="classification", **changes)


# --- equal predictions ----------------------------------------------------------------------------

SQL_LABELS = ("str", "int", "float", "bool", "number")


@settings(max_examples=25)
@given(data=st.data())
def test_sql_predicts_like_arbitrary_rule_sets(arbitrary, duck, data):
    ruleset = data.draw(arbitrary.rule_sets(policies=("default", "abstain"), labels=SQL_LABELS))
    by_row = any(isinstance(rule.weight, LinearOutput) for rule in ruleset.rules)
    X = arbitrary.border_rows(ruleset, 80, data.draw(st.integers(0, 99)))
    expressions, expected = [ruleset.to_sql(exact=True)], [arbitrary.answers(ruleset, X)]
    if ruleset.voting is None:
        expressions.append(ruleset.to_sql(exact=True, kind="assign"))
        expected.append([None if i < 0 else i + 1 for i in ruleset.assign(X).tolist()])
    for result, expected_value in zip(
        in_duckdb(duck, ruleset, X, expressions), expected, strict=True
    ):
        assert_equal(result, expected_value, ruleset, X)
    if by_row:  # infinite votes may cancel to NaN, which SQLite does not support
        X = arbitrary.border_rows(ruleset, 80, infinite=False)
        expected = [arbitrary.answers(ruleset, X)]
    expressions = [ruleset.to_sql(dialect="sqlite")]
    if ruleset.voting is None:
        expressions.append(ruleset.to_sql(dialect="sqlite", kind="assign"))
    for result, expected_value in zip(in_sqlite(ruleset, X, expressions), expected, strict=True):
        assert_equal(result, expected_value, ruleset, X, types=False)


def test_sql_infers_column_types_from_unreachable_rules(duck):
    rules = [Rule([Missing(1)], 1.0), Rule([], 2.0), Rule([OneOf(1, ["a"])], 3.0)]
    domain = Domain([0.0, 0.0], [1.0, 1.0])
    ruleset = RuleSet(rules, NAMES, task="regression", domain=domain, ordered=True)
    kinds = pd.Series(["a", None, "nan"], dtype=object)
    X = pd.DataFrame({"length": [0.0, 1.0, 0.5], "kind": kinds})
    expected = [2.0, 1.0, 2.0]
    assert ruleset.predict(X).tolist() == expected
    assert in_duckdb(duck, ruleset, X, [ruleset.to_sql(exact=True)]) == [expected]


def test_sql_predicts_extracted_rules_on_10_000_rows(arbitrary, fitted, duck):
    for (name, task), (ruleset, X) in fitted.items():
        ruleset = ruleset.replace(fallback=Fallback(ruleset.fallback.output))
        rng = np.random.default_rng(0)
        anywhere = rng.normal(size=(8000, X.shape[1])) * [2, 20, 0.2]
        rows = [pd.DataFrame(anywhere, columns=X.columns), arbitrary.border_rows(ruleset, 2000)]
        everything = pd.concat(rows, ignore_index=True)
        expected = arbitrary.answers(ruleset, everything)
        numbers = [i + 1 if i >= 0 else None for i in ruleset.assign(everything).tolist()]
        kinds = ("predict", "assign")
        written = [ruleset.to_sql(exact=True, kind=kind) for kind in kinds]
        for result, expected_value in zip(
            in_duckdb(duck, ruleset, everything, written), (expected, numbers), strict=True
        ):
            assert_equal(result, expected_value, f"{name} {task}", everything)
        written = [ruleset.to_sql(exact=True, kind=kind, dialect="sqlite") for kind in kinds]
        for result, expected_value in zip(
            in_sqlite(ruleset, everything, written), (expected, numbers), strict=True
        ):
            assert_equal(result, expected_value, f"{name} {task}", everything)
        assert len(set(expected)) > 1


def test_plain_sql_predicts_rules_of_every_extractor(arbitrary, fitted, duck):
    for name, (ruleset, _) in fitted.items():
        ruleset = ruleset.replace(fallback=Fallback(ruleset.fallback.output))
        rows = arbitrary.border_rows(ruleset, 2000).dropna()
        expected = arbitrary.answers(ruleset, rows)
        plain = ruleset.to_sql()
        assert "0e0 -" not in plain
        assert_equal(in_duckdb(duck, ruleset, rows, [plain])[0], expected, name, rows)
        plain = ruleset.to_sql(dialect="sqlite")
        assert_equal(in_sqlite(ruleset, rows, [plain])[0], expected, name, rows)


@settings(max_examples=60)
@given(
    digits=st.integers(1, 10**15 - 1),
    exponent=st.integers(-18, 0),
    kind=st.sampled_from(["DOUBLE", "BIGINT"]),
)
@example(1, -1, "DOUBLE")
@example(7505, -1, "DOUBLE")
@example(123456789012345, -15, "BIGINT")
def test_plain_sql_decimals_equal_bounds(duck, digits, exponent, kind):
    bound = float(f"{digits}e{exponent}")
    ruleset = one_rule(1.0, Interval(0, upper=bound))
    near = [bound, math.nextafter(bound, -INF), math.nextafter(bound, INF), -1.0, 1e9]
    if kind == "BIGINT":
        near = [float(math.floor(bound)), float(math.ceil(bound)), -1.0, 2.0**62]
    for dialect in (None, "sqlite"):
        written = ruleset.to_sql(kind="assign", dialect=dialect)
        values = ", ".join(
            f"({value!r}e0)" if "e" not in repr(value) else f"({value!r})" for value in near
        )
        if dialect is None:
            table = f"(SELECT CAST(v AS {kind}) AS length FROM (VALUES {values}) AS t(v))"
            result = ask(duck, f"SELECT {written} FROM {table}")
        else:
            with closing(sqlite3.connect(":memory:")) as connection:
                connection.execute("CREATE TABLE t (length REAL)")
                connection.executemany("INSERT INTO t VALUES (?)", [(value,) for value in near])
                result = connection.execute(f"SELECT {written} FROM t").fetchall()
        assert [row[0] for row in result] == [1 if value <= bound else None for value in near]


@settings(max_examples=40)
@given(value=st.floats(allow_nan=False, allow_infinity=False))
@example(0.1)
@example(5e-324)
@example(2.2250738585072014e-308)
@example(9007199254740993.0)
@example(1.7976931348623157e308)
@example(-0.0)
# SQLite in Python 3.11 reads the shortest form of this number as its neighbor.
@example(36.0371378)
def test_sql_numbers_are_read_exactly(duck, value):
    sql = one_rule(value).to_sql(exact=True)
    assert ask(duck, f"SELECT {sql}, typeof({sql})")[0] == (value, "DOUBLE")
    ruleset = one_rule(1.0, Interval(0, value, value, True))
    for number in (value, math.nextafter(value, -INF), math.nextafter(value, INF)):
        query = (
            f"SELECT {ruleset.to_sql(exact=True, kind='assign')} FROM (SELECT ?::DOUBLE AS length)"
        )
        assert ask(duck, query, [number])[0] == (1 if number == value else None,)
    if 0 < abs(value) < 1e-290:
        with pytest.raises(ValueError, match="SQLite does not read the number"):
            one_rule(value).to_sql(dialect="sqlite")
    else:
        with closing(sqlite3.connect(":memory:")) as connection:
            sql = one_rule(value).to_sql(dialect="sqlite")
            assert connection.execute(f"SELECT {sql}").fetchone() == (value,)


@pytest.mark.slow
def test_sqlite_reads_numbers_of_all_lengths_exactly():
    rng = np.random.default_rng(5)
    values = rng.uniform(-1, 1, 10000) * 10.0 ** rng.integers(-30, 30, 10000)
    values[::2] = np.round(values[::2], 3)
    # SQLite 3.40 reads the shortest digits of these two as their neighbors.
    values[:2] = -0.2635315478341341, 45868.93921373587
    with closing(sqlite3.connect(":memory:")) as connection:
        for chunk in values.reshape(-1, 200).tolist():
            written = ", ".join(one_rule(v).to_sql(dialect="sqlite") for v in chunk)
            assert connection.execute(f"SELECT {written}").fetchone() == tuple(chunk)


@pytest.mark.parametrize("kind", ["FLOAT", "BIGINT"])
def test_sets_of_integers_are_not_rounded_to_32_bits(duck, kind):
    rules = [Rule([OneOf(0, [2, 2**24 + 1])], "in the set")]
    ruleset = RuleSet(rules, ["x"], task="classification", fallback=Fallback("other"))
    query = f"SELECT {ruleset.to_sql(exact=True)} FROM (SELECT ?::{kind} AS x)"
    answers = [duck.execute(query, [x]).fetchone()[0] for x in (2, 2**24, 2**24 + 2)]
    assert answers == ["in the set", "other", "other"]


@pytest.mark.parametrize("kind", ["FLOAT", "DOUBLE", "BIGINT", "UTINYINT", "DECIMAL(9, 3)"])
def test_sql_predicts_on_columns_of_all_numeric_types(duck, kind):
    bounds = [0.0, 1.0, 2.5, 3.0, 100.0, 0.1, 300.0]
    rules = [Rule([Interval(0, lower=b)], b) for b in sorted(bounds, reverse=True)]
    rules += [Rule([Linear([(0, 0.1)], upper=0.0)], LinearOutput(0.5, [(0, 0.1)]))]
    ruleset = RuleSet(rules, NAMES, task="regression")
    values = [0, 1, 2, 3, 4, 100, 101, 255]
    if not kind.endswith("INT"):
        values += [2.5, 0.125, 2.501]
    stored = [float(np.float32(v)) if kind == "FLOAT" else float(v) for v in values]
    rows = ", ".join(f"({i}, CAST({v} AS {kind}))" for i, v in enumerate(values))
    query = f"SELECT {ruleset.to_sql(exact=True)} FROM (VALUES {rows}) AS v(i, length) ORDER BY i"
    results = [row[0] for row in ask(duck, query)]
    assert results == ruleset.predict([[v, 0] for v in stored]).tolist()


def test_sql_float_columns_do_not_round_bounds(duck):
    # As 32 bits, 16777217 is 16777216 and 0.1 is greater than 0.1 in 64 bits.
    ruleset = one_rule(1.0, Interval(0, 0.1, 16777217.0, False, False))
    query = f"SELECT {ruleset.to_sql(exact=True, kind='assign')} FROM (SELECT ?::FLOAT AS length)"
    for value in (0.1, 16777216.0, 16777218.0):
        stored = float(np.float32(value))
        expected = 1 if ruleset.covers([[stored, 0]])[0] else None
        assert ask(duck, query, [value])[0] == (expected,)
    assert ruleset.covers([[float(np.float32(0.1)), 0]])[0]


# --- missing values -------------------------------------------------------------------------------

MISSING = {
    "above": [Interval(0, 1)],
    "from": [Interval(0, -1, lower_closed=True)],
    "below": [Interval(0, upper=1)],
    "between": [Interval(0, -5, 5)],
    "any number": [AtLeast(1, [Interval(0)])],
    "linear": [Linear([(0, 2)], -9)],
    "any sum": [AtLeast(1, [Linear([(0, 2)])])],
    "not one of": [OneOf(0, [5], negated=True)],
    "none of": [OneOf(0, [5, 6.5], negated=True)],
    "at least": [AtLeast(2, [Interval(0, -5), Interval(0, -6), OneOf(0, [5], negated=True)])],
}


@pytest.mark.parametrize("conditions", MISSING.values(), ids=MISSING)
def test_sql_missing_numbers_satisfy_no_condition(duck, conditions):
    ruleset = one_rule(1.0, *conditions)
    X = pd.DataFrame({"length": [NAN, NAN, INF, -INF, 1.0, 2.0], "kind": 0.0})
    expected = [1 if is_covered else None for is_covered in ruleset.covers(X)]
    assert expected[:2] == [None, None]
    assert 1 in expected
    written = {
        d: ruleset.to_sql(exact=True, kind="assign", dialect=d)
        for d in (None, "postgres", "duckdb")
    }
    for answers in in_duckdb(duck, ruleset, X, written.values()):
        assert answers == expected
    plain = ruleset.to_sql(exact=True, kind="assign", dialect="sqlite")
    assert list(in_sqlite(ruleset, X, [plain])[0]) == expected
    assert "0e0 -" not in plain  # SQLite has no NaN to exclude


SAYING = {
    "upper": [Interval(0, upper=5, missing=True)],
    "lower": [Interval(0, -5, missing=True)],
    "both": [Interval(0, -5, 1.5, missing=True)],
    "missing": [Missing(0)],
    "known": [Missing(0, negated=True)],
    "one of": [OneOf(0, [1, 5], missing=True)],
    "none of": [OneOf(0, [1, 5], negated=True, missing=True)],
    "at least": [AtLeast(2, [Missing(0), Interval(0, -6, missing=True), OneOf(0, [5])])],
    "any": [AtLeast(1, [Interval(0, missing=True)])],
    "text is missing": [Missing(1)],
    "text is known": [Missing(1, negated=True), OneOf(1, ["a"], negated=True)],
    "a text": [OneOf(1, ["a"], missing=True)],
    "another text": [OneOf(1, ["a"], negated=True, missing=True)],
}


@pytest.mark.parametrize("domain", [None, Domain((0, 0), (1, 2), [(1, ["a", "b"])])])
@pytest.mark.parametrize("conditions", SAYING.values(), ids=SAYING)
def test_sql_missing_values_satisfy_marked_conditions(duck, conditions, domain):
    ruleset = one_rule(1.0, *conditions, domain=domain)
    X = pd.DataFrame({"length": [NAN, NAN, INF, -INF, 1.0, 2.0]})
    X["kind"] = pd.Series(["a", None, "b", "nan", None, "a"], dtype=object)
    if domain is None and conditions in (SAYING["text is missing"],):
        X["kind"] = X["kind"].replace("nan", "b")  # nothing shows that this is no number
    expected = [1 if is_covered else None for is_covered in ruleset.covers(X)]
    assert 1 in expected
    written = {
        d: ruleset.to_sql(exact=True, kind="assign", dialect=d)
        for d in (None, "postgres", "duckdb")
    }
    for answers in in_duckdb(duck, ruleset, X, written.values()):
        assert answers == expected
    plain = ruleset.to_sql(exact=True, kind="assign", dialect="sqlite")
    assert list(in_sqlite(ruleset, X, [plain])[0]) == expected
    assert "0e0 -" not in plain
    assert "CAST" not in plain


def test_sql_tests_missing_values_readably():
    ruleset = one_rule(1.0, Interval(0, upper=30, missing=True), Missing(1))
    assert ruleset.to_sql(kind="assign") == textwrap.dedent(
        """\
        CASE
          WHEN ("length" <= 30 OR "length" IS NULL) AND "kind" IS NULL THEN 1
        END"""
    )


@pytest.mark.slow
def test_sql_predicts_hostile_rows(arbitrary, duck):
    X = arbitrary.hostile_rows()
    finite = X[~np.isinf(X.select_dtypes("number")).any(axis=1)]
    for ruleset in arbitrary.hostile_sets():
        expected = arbitrary.answers(ruleset, X)
        for dialect in (None, "duckdb", "postgres"):
            (result,) = in_duckdb(duck, ruleset, X, [ruleset.to_sql(exact=True, dialect=dialect)])
            assert_equal(result, expected, ruleset, X)
        # Infinite values of a sum may cancel to NaN, which SQLite does not support.
        (result,) = in_sqlite(ruleset, finite, [ruleset.to_sql(dialect="sqlite")])
        assert_equal(result, arbitrary.answers(ruleset, finite), ruleset, finite, types=False)


def test_sql_ignores_undefined_votes(duck):
    rules = [
        Rule([], "a", None, LinearOutput(0.5, [(0, 1)])),
        Rule([], "b", None, LinearOutput(0, [(1, 1)])),
        Rule([], "b", None, 0.25),
    ]
    X = pd.DataFrame(
        [[NAN, NAN], [NAN, 1], [1, NAN], [0, NAN], [NAN, -9], [INF, INF], [-INF, 1], [1, -INF]],
        columns=NAMES,
        dtype=float,
    )
    for voting in ("votes", "probabilities", "logistic"):
        ruleset = RuleSet(rules, NAMES, task="classification", ordered=False, voting=voting)
        with np.errstate(invalid="ignore"):
            expected = ruleset.predict(X).tolist()
        for nulls in (X, pd.concat([X.iloc[1:], X.iloc[:1]])):  # NULL and NaN swap places
            expected_value = expected if nulls is X else [*expected[1:], expected[0]]
            assert (
                in_duckdb(duck, ruleset, nulls, [ruleset.to_sql(exact=True)])[0] == expected_value
            )
        finite = X[~np.isinf(X).any(axis=1)]
        result = in_sqlite(ruleset, finite, [ruleset.to_sql(dialect="sqlite")])[0]
        assert list(result) == expected[: len(finite)]
        assert set(expected) == {"a", "b"}


def test_sql_predicts_purest_of_unordered_rules(duck):
    rules = [
        Rule([Interval(0, upper=3)], "a", RuleStatistics(9, (5, 4))),
        Rule([Interval(0, upper=2)], "b", RuleStatistics(4, (0, 4))),
        Rule([], "a", RuleStatistics(4, (3, 1))),
        Rule([Interval(0, upper=1)], "b"),
    ]
    ruleset = RuleSet(rules, NAMES, task="classification", ordered=False)
    X = pd.DataFrame({"length": [0.5, 1.5, 2.5, 3.5], "kind": 0.0})
    assert ruleset.assign(X).tolist() == [1, 1, 2, 2]
    written = [ruleset.to_sql(exact=True, kind="assign"), ruleset.to_sql(exact=True)]
    assert in_duckdb(duck, ruleset, X, written) == [[2, 2, 3, 3], ["b", "b", "a", "a"]]
    assert ruleset.to_sql(exact=True).count("WHEN") == 1  # nothing after a rule that always holds


def test_sql_missing_prediction_is_null(duck):
    empty = RuleSet([], NAMES, task="regression")
    assert empty.to_sql(exact=True) == empty.to_sql(exact=True, kind="assign") == "NULL"
    assert empty.replace(fallback=Fallback(2.0, "nearest")).to_sql(exact=True) == "2e0"
    assert empty.replace(fallback=Fallback(2.0, "abstain")).to_sql(exact=True) == "NULL"
    for voting in ("sum", "mean"):
        assert (
            empty.replace(ordered=False, voting=voting, fallback=None)
            .to_sql(exact=True)
            .count("2e0")
            == 0
        )
    no_class = RuleSet([], NAMES, task="classification", classes=[], ordered=False, voting="votes")
    assert no_class.to_sql(exact=True) == "NULL"
    assert one_rule(2.5).to_sql(exact=True) == "2.5e0"
    assert (
        one_rule(2.5, fallback=Fallback(1.0, "nearest")).to_sql(exact=True) == "2.5e0"
    )  # no row needs the fallback


# --- layout ---------------------------------------------------------------------------------------

SHOWN = RuleSet(
    [
        Rule([Interval(0, upper=2.5), OneOf(1, ["it's", "b"])], "x"),
        Rule([Interval(0, 3)], "y"),
        Rule([AtLeast(2, [Interval(0, upper=1), OneOf(1, ["a"], True), OneOf(1, ["c"])])], "y"),
    ],
    ["petal length", 'the "kind"'],
    task="classification",
    fallback=Fallback("x", "abstain"),
)


def test_standard_sql_is_readable():
    assert SHOWN.to_sql(exact=True) == textwrap.dedent("""\
        CASE
          WHEN "petal length" <= 2.5e0 AND "the ""kind\""" IN ('b', 'it''s') THEN 'x'
          WHEN 0e0 - "petal length" < -3 THEN 'y'
          WHEN (CASE WHEN "petal length" <= 1 THEN 1 ELSE 0 END + CASE WHEN "the ""kind\""" <> 'a' \
THEN 1 ELSE 0 END + CASE WHEN "the ""kind\""" = 'c' THEN 1 ELSE 0 END) >= 2 THEN 'y'
          ELSE 'no rule'
        END""")


def test_plain_sql_compares_columns_without_nan(duck):
    rules = RuleSet(
        [Rule([Interval(0, lower=2.5)], "a")],
        ["x"],
        task="classification",
        classes=["a", "b"],
        fallback=Fallback("b"),
    )
    assert '0e0 - "x" < -2.5e0' in rules.to_sql(exact=True)
    plain = rules.to_sql()
    assert 'WHEN "x" > 2.5 THEN' in plain
    query = f"SELECT {plain} FROM (VALUES (1e0), (2.5e0), (3e0), (NULL)) AS t(x)"
    assert [row[0] for row in ask(duck, query)] == ["b", "b", "a", "b"]
    with pytest.raises(TypeError, match="exact must be True or False, got 0"):
        rules.to_sql(exact=0)


def test_sql_queries_table(duck):
    ask(duck, 'CREATE SCHEMA IF NOT EXISTS "the lab"')
    ask(duck, 'CREATE OR REPLACE TABLE "the lab"."flo""wers" AS SELECT 1.0 AS a, \'b\' AS b')
    path, columns = ("the lab", 'flo"wers'), {"petal length": "a", 'the "kind"': "b"}
    query = SHOWN.to_sql(exact=True, table=path, columns=columns, dialect="duckdb")
    assert query.startswith('SELECT *, CASE\n  WHEN "a" <= 2.5e0')
    assert query.endswith('END AS "prediction" FROM "the lab"."flo""wers"')
    assert ask(duck, query) == [(1.0, "b", "x")]
    sql = SHOWN.to_sql(
        exact=True, table=path, columns=columns, kind="assign", output_name="Regel 1"
    )
    query = f'SELECT "Regel 1", COUNT(*) FROM ({sql}) GROUP BY ALL'
    assert ask(duck, query) == [(1, 1)]


def test_sqlite_rejects_unknown_columns():
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("CREATE TABLE t (a REAL)")
        with pytest.raises(sqlite3.OperationalError, match="no such column: length"):
            connection.execute(one_rule(1.0, Interval(0, 1)).to_sql(dialect="sqlite", table="t"))


def test_postgres_computes_in_floating_point():
    ruleset = one_rule(LinearOutput(0.5, [(0, -0.1)]), Interval(0, 1, 2))
    assert ruleset.to_sql(exact=True, dialect="postgres") == (
        'CASE\n  WHEN "length" > 1 AND "length" <= 2 '
        "THEN FLOAT8 '0.5e0' - FLOAT8 '0.1e0' * \"length\"\nEND"
    )


DIALECTS = ["spark", "bigquery", "snowflake", "tsql", "mysql", "redshift", "trino", "clickhouse"]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_sql_of_other_dialects_predicts_alike(arbitrary, duck, dialect):
    """Read back by sqlglot as that dialect, the text answers alike in DuckDB."""
    rules = [
        Rule([Interval(0, upper=2.45), OneOf(1, arbitrary.TEXTS)], 'it\'s \\ "new"\nü'),
        Rule([Interval(0, 3), OneOf(1, ["it's", "back\\slash\\"], negated=True)], "b\\"),
        Rule([Linear([(0, 0.1)], -1, 1e-7)], "c"),
    ]
    ruleset = RuleSet(
        rules, ["length", "select"], task="classification", fallback=Fallback("c", "abstain")
    )
    X = arbitrary.border_rows(ruleset, 500)
    text = ruleset.to_sql(exact=True, dialect=dialect)
    assert text == ruleset.to_sql(exact=True, dialect=dialect)
    mark = {"spark": "`", "bigquery": "`", "mysql": "`", "tsql": "["}.get(dialect, '"')
    assert f"{mark}select" in text
    back = sqlglot.transpile(text, read=dialect, write="duckdb")[0].replace("N'", "'")
    if dialect in ("tsql", "mysql"):  # they have no NaN to exclude
        assert "0e0 -" not in text
        X = X.dropna(subset=["length"])
    assert_equal(in_duckdb(duck, ruleset, X, [back])[0], arbitrary.answers(ruleset, X), ruleset, X)


def test_tsql_writes_numbers_for_flags_and_national_texts():
    text = classes([True, False]).to_sql(exact=True, dialect="tsql")
    assert "TRUE" not in text.upper()
    assert "THEN 1" in text
    assert "N'日本'" in classes(["日本"]).to_sql(exact=True, dialect="tsql")


def test_sql_names_the_table_before_a_star_in_oracle_and_teradata(duck):
    duck.execute("CREATE OR REPLACE TABLE parts AS SELECT 1 AS length, 'c' AS kind")
    for dialect in ("oracle", "teradata"):
        query = one_rule().to_sql(dialect=dialect, table=("main", "parts"))
        assert '"parts".*,' in query
        assert duck.execute(query).fetchall() == [(1, "c", 1.0)]


@pytest.mark.parametrize(
    "ruleset", [classes(["", "b"]), one_rule(1.0, OneOf(1, ["", "b"], negated=True))]
)
def test_sql_of_oracle_rejects_empty_texts(ruleset):
    assert "''" in ruleset.to_sql(dialect="teradata")
    with pytest.raises(ValueError, match=r"text '', which Oracle stores as NULL\. Use another"):
        ruleset.to_sql(dialect="oracle")


def test_sql_accepts_columns_named_true():
    ruleset = RuleSet(
        [Rule([OneOf(0, [True])], True)], ["True"], task="classification", classes=[True, False]
    )
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("CREATE TABLE t (`True` INTEGER)")
        connection.executemany("INSERT INTO t VALUES (?)", [(0,), (1,), (5,)])
        query = ruleset.to_sql(dialect="sqlite", table="t")
        assert connection.execute(query).fetchall() == [(0, None), (1, 1), (5, None)]


def test_sql_compares_flags_among_numbers_as_numbers(duck):
    kinds = [OneOf(0, [True]), OneOf(1, [True, 5])]
    ruleset = one_rule(1.0, *kinds)
    options = {"exact": True, "booleans": ["length"]}
    assert ruleset.to_sql(kind="assign", **options) == (
        'CASE\n  WHEN "length" = TRUE AND "kind" IN (1, 5) THEN 1\nEND'
    )
    query = f"SELECT {ruleset.to_sql(**options)} FROM (SELECT TRUE AS length, 1.0::DOUBLE AS kind)"
    assert ask(duck, query)[0] == (1.0,)


@pytest.mark.parametrize("voting", ["votes", pytest.param("mean", marks=pytest.mark.slow)])
def test_sql_of_many_rules_respects_expression_depth(arbitrary, duck, voting):
    rng = np.random.default_rng(2)
    task = "regression" if voting in ("mean", "sum") else "classification"
    rules = [
        Rule([Interval(0, float(v))], i % 7 / 8 if task == "regression" else "abc"[i % 3])
        for i, v in enumerate(rng.normal(size=1100).round(2))
    ]
    ruleset = RuleSet(rules, NAMES, task=task, ordered=False, voting=voting)
    X = pd.DataFrame({"length": rng.normal(size=300), "kind": 0.0})
    expected = arbitrary.answers(ruleset, X)
    # These sums are exact in any order.
    assert in_duckdb(duck, ruleset, X, [ruleset.to_sql(exact=True)])[0] == expected
    assert list(in_sqlite(ruleset, X, [ruleset.to_sql(dialect="sqlite")])[0]) == expected


@pytest.mark.slow
def test_sql_sums_of_many_rules_equal_predictions(duck):
    rng = np.random.default_rng(3)
    names = [f"x{j}" for j in range(150)]
    long = Rule([Interval(j, -9) for j in range(150)], 0.1)  # one deeply nested expression
    rules = [
        Rule([Interval(j % 150, float(v))], float(v)) for j, v in enumerate(rng.normal(size=700))
    ]
    ruleset = RuleSet([long, *rules], names, task="regression", ordered=False, voting="sum")
    X = pd.DataFrame(rng.normal(size=(40, 150)), columns=names)
    expected = ruleset.predict(X).tolist()
    assert list(in_duckdb(duck, ruleset, X, [ruleset.to_sql(exact=True)])[0]) == expected
    assert list(in_sqlite(ruleset, X, [ruleset.to_sql(dialect="sqlite")])[0]) == expected
    more = ruleset.replace(rules=[*ruleset.rules, *rules[:250]])  # too deep without blocks
    result = in_duckdb(duck, more, X, [more.to_sql(exact=True)])[0]
    assert list(result) == pytest.approx(more.predict(X).tolist())


def test_sql_predicts_first_of_2000_rules(duck):
    rules = [Rule([Interval(0, i, i + 1)], float(i)) for i in range(2000)]
    ruleset = RuleSet(rules, NAMES, task="regression")
    X = pd.DataFrame({"length": [0.5, 1999.5, -1], "kind": 0.0})
    assert in_duckdb(duck, ruleset, X, [ruleset.to_sql(exact=True)])[0] == [0.0, 1999.0, None]
    result = in_sqlite(ruleset, X, [ruleset.to_sql(dialect="sqlite")])[0]
    assert result == (0.0, 1999.0, None)


def test_sql_shortens_numbers_with_rows():
    ruleset = one_rule(1.0, Interval(0, upper=2.4499))
    assert "<= 2.4499e0" in ruleset.to_sql(exact=True)
    assert "<= 2 " in ruleset.to_sql(exact=True, X=[[1.9, 0], [3.0, 0]])


# --- errors ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ruleset", "options", "message"),
    [
        (one_rule(), {"kind": "count"}, "kind must be one of 'predict', 'assign', got 'count'"),
        (one_rule(), {"output_name": "a"}, "output_name='a' names the column of a query"),
        (one_rule(), {"dialect": "duck"}, "got 'duck'. Did you mean 'duckdb'"),
        (one_rule(), {"columns": {"lenght": "a"}}, "Did you mean 'length'"),
        (
            one_rule(ordered=False, voting="sum"),
            {"kind": "assign"},
            "requires that one rule predicts",
        ),
        (
            one_rule(1.0, Interval(0, 1), fallback=Fallback(1.0, "nearest")),
            {},
            r"replace\(fallback=Fallback\(1.0\)\)",
        ),
        (classes(["a", 1]), {}, "different types"),
        (classes([True, 2.5]), {}, "different types"),
        (classes([True, False], fallback=Fallback(True, "abstain", None, "?")), {}, "types"),
        (classes([2**63]), {}, r"exceeds 2\*\*63 - 1"),
        (classes(["a\0b"]), {}, "databases do not store"),
        (classes(["\ud800"]), {}, "databases do not store"),
        (one_rule(1.0, Interval(0, 1), OneOf(0, ["a"])), {}, "with texts and with numbers"),
        (one_rule(1.0, OneOf(0, ["a", 1])), {}, "with texts and with numbers"),
        (one_rule(1.0, Interval(0, 1), feature_names=["", "b"]), {}, "feature name is empty"),
        (one_rule(), {"table": ""}, "table name is empty"),
        (one_rule(1.0, Interval(0, 1), feature_names=["a", "A"]), {}, "ignore case"),
        (one_rule(1.0, Interval(0, 1)), {"columns": {"length": "kind"}}, "are the same"),
        (one_rule(), {"X": np.ones((0, 2))}, "at least one row"),
    ],
)
def test_sql_rejects_unsupported_rules(ruleset, options, message):
    with pytest.raises(ValueError, match=message):
        ruleset.to_sql(exact=True, **options)


def test_sql_accepts_unused_invalid_names():
    # The database may lack columns that no rule uses.
    ruleset = one_rule(1.0, Interval(1, 1), feature_names=["", "b", "c", "C"])
    assert '"b"' in ruleset.to_sql(exact=True)
    upper = one_rule(1.0, Interval(0, 1), feature_names=["a", "A"])
    assert '"a"' in upper.to_sql(exact=True, dialect="postgres")
    assert '"b"' in upper.to_sql(exact=True, columns={"a": "b"})


def test_sql_error_names_missing_sqlglot(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "sqlglot", None)
    assert one_rule().to_sql(dialect="sqlite") == "1e0"
    with pytest.raises(ImportError, match="sqlglot"):
        one_rule().to_sql(exact=True, dialect="spark")


def test_sql_sums_overflow_to_infinity(duck):
    parts = [(0, 1.7e308), (1, 1.7e308), (2, -1.7e308), (3, 1.0)]
    rules = RuleSet(
        [Rule([Interval(0, lower=bound)], output) for bound, output in parts],
        ["x"],
        task="regression",
        ordered=False,
        voting="sum",
        fallback=Fallback(0.0),
    )
    X = pd.DataFrame({"x": [-1.0, 0.5, 1.5, 2.5, 3.5]})
    with np.errstate(over="ignore"):
        expected = rules.predict(X).tolist()
    assert expected == [0.0, 1.7e308, INF, INF, INF]
    assert in_duckdb(duck, rules, X, [rules.to_sql(exact=True)])[0] == expected
    assert list(in_sqlite(rules, X, [rules.to_sql(dialect="sqlite")])[0]) == expected


def test_sql_text_nan_is_not_missing(duck):
    """If conditions only test for missing values, the type of the column decides about NaN."""
    rules = RuleSet([Rule([Missing(0, negated=True)], "known")], ["v"], task="classification")
    sql = rules.to_sql(exact=True, dialect="duckdb")
    rows = "(VALUES ('nan'), ('NaN'), ('a'), (NULL)) AS t(v)"
    assert ask(duck, f"SELECT {sql} FROM {rows}") == [("known",)] * 3 + [(None,)]
    for kind in ("DOUBLE", "FLOAT"):
        rows = f"(VALUES ('nan'::{kind}), (1), (NULL)) AS t(v)"
        assert ask(duck, f"SELECT {sql} FROM {rows}") == [(None,), ("known",), (None,)]
    assert "pg_typeof" in rules.to_sql(exact=True, dialect="postgres")


# --- large integers ------------------------------------------------------------------------------

LARGE_LISTS = [
    [2**53 + 1, 0.5],
    [2**53 + 1, 2.0**53, 0.5],
    [2.0**53],
    [2.0**53, -1.5],
    [2**53 + 1, 1, 2.0],
    [-(2**53) - 1, 2**62 + 1, 1e300],
    [2**63 - 1, 2.0**63, 7],
]
LARGE_ROWS = [0, 1, 2, 7, 2**53 - 1, 2**53, 2**53 + 1, -(2**53), -(2**53) - 1, 2**62, 2**62 + 1]
LARGE_ROWS += [2**63 - 2, 2**63 - 1]


def in_duckdb_or_sqlite(engine, rows, kind, query):
    """Return the only column of a query of a table with the column "x"."""
    values = ", ".join(f"({index}, {row})" for index, row in enumerate(rows))
    commands = f"CREATE TABLE t (place INTEGER, x {kind})", f"INSERT INTO t VALUES {values}"
    if engine == "duckdb":
        with duckdb.connect() as connection:
            for command in commands:
                connection.execute(command)
            return [row[0] for row in connection.execute(query).fetchall()]
    with closing(sqlite3.connect(":memory:")) as connection:
        for command in commands:
            connection.execute(command)
        return [row[0] for row in connection.execute(query).fetchall()]


@pytest.mark.parametrize("engine", ["duckdb", "sqlite"])
@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("negated", [False, True])
@pytest.mark.parametrize("values", LARGE_LISTS, ids=str)
def test_sql_lists_compare_large_integers_exactly(values, negated, exact, engine):
    rules = RuleSet(
        [Rule([OneOf(0, values, negated), Interval(0, lower=-1e19)], "in"), Rule([], "out")],
        ["x"],
        task="classification",
    )
    query = f"SELECT {rules.to_sql(dialect=engine, exact=exact)} FROM t ORDER BY place"
    expected = ["in" if (row in values) != negated else "out" for row in LARGE_ROWS]
    assert in_duckdb_or_sqlite(engine, LARGE_ROWS, "BIGINT", query) == expected
    assert rules.predict(pd.DataFrame({"x": LARGE_ROWS})).tolist() == expected


def test_sql_lists_of_ordinary_numbers_stay_whole():
    rules = RuleSet([Rule([OneOf(0, [1, 0.5, 2.0])], 1.0)], ["x"], task="regression")
    assert '"x" IN (0.5e0, 1, 2e0)' in rules.to_sql()


@pytest.mark.parametrize("engine", ["duckdb", "sqlite"])
@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize(
    "condition",
    [
        Interval(0, upper=2.0**53),
        Interval(0, lower=2.0**53),
        Interval(0, lower=2.0**53, upper=2.0**53, lower_closed=True),
        Interval(0, upper=2.0**63, upper_closed=False),
        Interval(0, lower=-(2.0**53), upper=2.0**62, missing=True),
        Linear([(0, 1.0)], upper=2.0**53),
    ],
    ids=str,
)
def test_sql_compares_large_integers_with_bounds_as_floats(condition, exact, engine):
    rules = RuleSet([Rule([condition], "in"), Rule([], "out")], ["x"], task="classification")
    query = f"SELECT {rules.to_sql(dialect=engine, exact=exact)} FROM t ORDER BY place"
    expected = rules.predict(pd.DataFrame({"x": LARGE_ROWS})).tolist()
    assert in_duckdb_or_sqlite(engine, LARGE_ROWS, "BIGINT", query) == expected
