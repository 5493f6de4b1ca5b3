"""Values in SQLite and DuckDB have the same meaning as in memory, in one snapshot."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars
import pyarrow as pa
import pytest
from pyarrow import parquet

from skescore.metrics import confusion
from skescore.rules import Interval, OneOf, Rule, RuleSet
from skescore.sources import DataSource, SourceError, count_source, sample_source

TABLE = """
CREATE TABLE folded (
    kind TEXT COLLATE NOCASE, label TEXT COLLATE NOCASE, big BIGINT, number {number}, day DATE
)
"""
ROWS = """
INSERT INTO folded VALUES
    ('a', 'Yes', 9007199254740993, 0.1, '2024-01-01'), ('A', 'yes', 9007199254740992, 5, NULL),
    ('a ', 'YES', NULL, NULL, NULL), ('á', 'yes', -9007199254740993, -0.0, NULL)
"""


def in_sqlite(folder: Path, *commands: str) -> str:
    connection = sqlite3.connect(folder / "some.sqlite")
    with connection:
        for command in commands:
            connection.execute(command)
    connection.close()
    return f"sqlite:///{folder}/some.sqlite?table=folded"


def in_duckdb(folder: Path, *commands: str) -> str:
    with duckdb.connect(str(folder / "some.duckdb")) as connection:
        for command in commands:
            connection.execute(command)
    return f"duckdb:///{folder}/some.duckdb?table=folded"


@pytest.fixture(params=["sqlite", "duckdb"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Return a table with collations that ignore case, and numbers that floats cannot represent."""
    if request.param == "sqlite":
        return in_sqlite(tmp_path, TABLE.format(number="REAL"), ROWS)
    return in_duckdb(tmp_path, TABLE.format(number="DECIMAL(38, 20)"), ROWS)


@pytest.mark.parametrize(
    ("name", "condition", "expected"),
    [
        ("kind", OneOf(0, ["a"]), 1),
        ("kind", OneOf(0, ["A", "á"]), 2),
        ("kind", OneOf(0, ["a"], negated=True), 3),
        ("big", OneOf(0, [2**53 + 1]), 1),
        ("big", OneOf(0, [2.0**53]), 1),
        ("big", OneOf(0, [0.5], negated=True), 3),
        ("big", Interval(0, 0, 2.0**53), 2),  # both become the same float
        ("big", Interval(0, upper=0, missing=True), 2),
        ("number", OneOf(0, [0.1, 2**53 + 1]), 1),
        ("number", OneOf(0, [0]), 1),
    ],
)
def test_count_source_compares_values_as_in_memory(
    name: str, condition: Any, expected: int, url: str
) -> None:
    rules = RuleSet([Rule([condition], "yes")], [name], task="classification")
    counts = count_source(rules, url, "label")
    assert counts.n_rows == (expected, 4 - expected)
    assert set(counts.classes.labels) == {"yes", "Yes", "YES"}


def test_sample_source_keeps_labels_distinct(url: str) -> None:
    sample = sample_source(url, "label", features=["kind"])
    assert {label: n for label, (_, n) in sample.strata.items()} == {"YES": 1, "Yes": 1, "yes": 2}
    assert set(sample.frame["kind"]) == {"a", "A", "a ", "á"}


@pytest.mark.parametrize("name", ["sqlite", "duckdb"])
def test_sample_source_accepts_infinite_labels(name: str, tmp_path: Path) -> None:
    infinity = {"sqlite": "9e999", "duckdb": "CAST('inf' AS DOUBLE)"}[name]
    store = in_sqlite if name == "sqlite" else in_duckdb
    table = "CREATE TABLE folded (x DOUBLE, label DOUBLE)"
    rows = f"INSERT INTO folded VALUES (1, {infinity}), (2, -{infinity}), (3, 0.5), (4, 0.5)"
    source = store(tmp_path, table, rows)
    sample = sample_source(source, "label", task="classification", n_rows=10)
    counts = {label: n for label, (_, n) in sample.strata.items()}
    assert counts == {float("inf"): 1, float("-inf"): 1, 0.5: 2}


@pytest.mark.parametrize(
    ("name", "condition"), [("kind", Interval(0, 0)), ("big", OneOf(0, ["1"]))]
)
def test_count_source_rejects_columns_of_other_types(name: str, condition: Any, url: str) -> None:
    rules = RuleSet([Rule([condition], "yes")], [name], task="classification")
    with pytest.raises(ValueError, match=rf"{name}' .*(holds|must hold).*[Cc]onvert"):
        count_source(rules, url, "label")


def test_sample_source_depends_on_the_seed(tmp_path: Path) -> None:
    numbers = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000) "
    url = in_sqlite(tmp_path, f"CREATE TABLE folded AS {numbers} SELECT i, i % 2 AS label FROM n")
    first, again, other = (
        sample_source(url, "label", n_rows=300, random_state=seed).frame for seed in (3, 3, 4)
    )
    pd.testing.assert_frame_equal(first, again)
    assert set(first["i"]) != set(other["i"])
    assert len(first) == 300


def test_count_source_reads_one_snapshot_of_sqlite(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process replaces all rows between any two queries."""
    numbers = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 200) "
    url = in_sqlite(
        tmp_path,
        "PRAGMA journal_mode = WAL",
        f"CREATE TABLE folded AS {numbers} SELECT i AS x, i % 7 AS label FROM n",
    )
    rules = RuleSet(
        [Rule([Interval(0, upper=100)], 1.0), Rule([Interval(0, lower=50)], 4.0)],
        ["x"],
        task="regression",
    )
    expected = count_source(rules, url, "label")
    connect, queries = sqlite3.connect, []

    class Disturbed(sqlite3.Connection):
        def execute(self, query: str, *arguments: Any) -> sqlite3.Cursor:
            if queries:
                in_sqlite(tmp_path, "UPDATE folded SET x = 201 - x, label = 6 - label")
            if "sum(" in query:
                queries.append(query)
            return super().execute(query, *arguments)

    def connect_disturbed(*arguments: Any, **options: Any) -> sqlite3.Connection:
        return connect(*arguments, **options, factory=Disturbed if options else sqlite3.Connection)

    monkeypatch.setattr(sqlite3, "connect", connect_disturbed)
    counts = count_source(rules, url, "label")
    assert len(queries) >= 2
    assert counts.to_json() == expected.to_json()
    assert confusion(rules, counts).covered.tolist() == [100, 150]


TEXTS = RuleSet([Rule([Interval(0, upper=3)], "a")], ["x"], task="classification")


@pytest.mark.parametrize("text", ["1", "nan"])
def test_count_source_rejects_texts_of_intervals(text: str, tmp_path: Path) -> None:
    command = f"CREATE TABLE folded AS SELECT '{text}' AS x, 'a' AS label"
    for source in (
        pd.DataFrame({"x": [text], "label": ["a"]}),
        in_sqlite(tmp_path, command),
        in_duckdb(tmp_path, command),
    ):
        with pytest.raises((ValueError, SourceError), match=r"'x'.* number"):
            count_source(TEXTS, source, target="label")


WIDE = (
    "CREATE TABLE parts (k BIGINT, label VARCHAR)",
    f"INSERT INTO parts VALUES ({2**53}, 'a'), ({2**53 - 1}, 'b'), (NULL, 'b'), (-{2**53}, 'c')",
)


@pytest.mark.parametrize(
    "total",
    [
        "sum(abs(k) + 1)",
        *(f"CAST(max(abs(k) + 1) AS {kind})" for kind in ("BIGINT", "HUGEINT", "UHUGEINT")),
    ],
)
def test_wide_integers_of_duckdb_are_exact(total: str, tmp_path: Path) -> None:
    view = f"CREATE VIEW folded AS SELECT {total} AS k, label FROM parts GROUP BY label"
    url = in_duckdb(tmp_path, *WIDE, view)
    # The totals are 2**53 + 1, 2**53 and 2**53 + 1.
    for value, expected in ((2**53 + 1, 2), (2**53, 1), (2**53 + 2, 0), (0.5, 0)):
        rules = RuleSet([Rule([OneOf(0, [value])], "a")], ["k"], task="classification")
        assert count_source(rules, url, target="label").n_rows[0] == expected


def test_wide_integers_of_duckdb_are_exact_labels(tmp_path: Path) -> None:
    values = [2**53 + 1, 2**53, -(2**53) - 1, 2**63 - 1]
    rows = ", ".join(f"(1, {value})" for value in values)
    url = in_duckdb(
        tmp_path, "CREATE TABLE folded (x INT, k HUGEINT)", f"INSERT INTO folded VALUES {rows}"
    )
    rules = RuleSet([Rule([], 2**53 + 1)], ["k"], task="classification")
    counts = count_source(rules, url, target="k")
    assert counts.classes is not None
    assert sorted(counts.classes.labels) == sorted(values)
    assert sorted(sample_source(url, "k").strata) == sorted(values)


@pytest.mark.parametrize("value", [2**63, -(2**63) - 1, 2**100])
def test_integers_beyond_64_bits_are_rejected(value: int, tmp_path: Path) -> None:
    commands = (
        'CREATE TABLE folded ("k\'s" HUGEINT, label TEXT)',
        (f"INSERT INTO folded VALUES ({value}, 'a')"),
    )
    rules = RuleSet([Rule([OneOf(0, [1])], "a")], ["k's"], task="classification")
    with pytest.raises(SourceError, match=r"column \"k's\" must lie from .* CAST the column"):
        count_source(rules, in_duckdb(tmp_path, *commands), target="label")


def test_sample_source_keeps_integers_next_to_missing_values(tmp_path: Path) -> None:
    """Integers beyond 2**53 are not rounded if other rows have missing values."""
    codes = [2**53 + 1, 2**53 + 3, None, 7]
    rows = pa.table({"code": pa.array(codes, pa.int64()), "label": ["a"] * 4})
    frame = polars.from_arrow(rows)
    parquet.write_table(rows, tmp_path / "some.parquet", row_group_size=2)
    create = "CREATE TABLE folded (code BIGINT, label TEXT)"
    values = ", ".join(f"({code or 'NULL'}, 'a')" for code in codes)
    commands = create, f"INSERT INTO folded VALUES {values}"
    for source in (
        rows,
        frame,
        frame.lazy(),
        [rows[:2], rows[2:]],
        [frame[:2], frame[2:]],
        tmp_path / "some.parquet",
        in_sqlite(tmp_path, *commands),
        in_duckdb(tmp_path, *commands),
    ):
        drawn = sample_source(DataSource(source, "label", batch_size=2)).frame["code"]
        assert [None if pd.isna(v) else v for v in drawn.tolist()] == codes


def test_sample_source_rejects_integers_that_floats_of_other_batches_round() -> None:
    whole = pd.DataFrame({"code": [2**53 + 1, 3], "label": ["a", "b"]})
    with pytest.raises(ValueError, match=f"'code'.*one type in all rows.*{2**53 + 1}"):
        sample_source([whole, whole.assign(code=0.5)], "label")
    large = whole.assign(code=np.array([2**63 + 1, 3], dtype=np.uint64))
    gaps = whole.assign(code=[np.nan, 7.0])
    drawn = sample_source([large, gaps], "label").frame["code"].tolist()
    assert drawn[:2] == [2**63 + 1, 3]
    assert drawn[3] == 7
