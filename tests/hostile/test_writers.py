"""What is written of rules of every kind, run: Python, DuckDB, SQLite, and JSON read again."""

from __future__ import annotations

import pickle
import sqlite3
from contextlib import closing, suppress

import duckdb
import pytest

from skescore.rules import RuleSet

#: How databases declare what a column of each kind holds.
TYPES = {
    "number": "DOUBLE",
    "code": "BIGINT",
    "big": "DOUBLE",
    "text": "VARCHAR",
    "flag": "BOOLEAN",
}


@pytest.fixture(scope="module")
def duck():
    with duckdb.connect(config={"threads": 1}) as connection:
        yield connection


def held(kind, values):
    """The values as a database holds them, which knows no whole numbers beside floats."""
    return [float(v) if kind in ("number", "big") and v is not None else v for v in values]


def asked(connection, names, kinds, rows, expression):
    """What a database answers for some rows."""
    quoted = ['"' + name.replace('"', '""') + '"' for name in names]
    declared = [f"{name} {TYPES[kind]}" for name, kind in zip(quoted, kinds, strict=True)]
    connection.execute("DROP TABLE IF EXISTS some_rows")
    connection.execute(f"CREATE TABLE some_rows ({', '.join(declared)}, position_ INTEGER)")
    marks = ", ".join("?" * (len(names) + 1))
    values = [(*row, i) for i, row in enumerate(rows)]
    connection.executemany(f"INSERT INTO some_rows VALUES ({marks})", values)
    query = f"SELECT {expression} FROM some_rows ORDER BY position_"
    return [answer for (answer,) in connection.execute(query).fetchall()]


def alike(one, other):
    if one is None or other is None or one != one or other != other:
        return (one is None or one != one) and (other is None or other != other)
    return one == other


def test_what_is_written_answers_alike(attack, tables, duck):
    def check(rng):
        kinds, ruleset = tables.rule_set(rng)
        names = list(ruleset.feature_names)
        if "" in names:  # which no database takes
            names[names.index("")] = "without a name"
            ruleset = ruleset.replace(feature_names=names)
        assert RuleSet.from_json(ruleset.to_json()) == ruleset
        assert pickle.loads(pickle.dumps(ruleset)) == ruleset
        assert ruleset.to_text()
        assert ruleset.to_markdown()
        columns = [held(kind, tables.column(rng, kind, 6)) for kind in kinds]
        rows = list(zip(*columns, strict=True))
        matched = [
            [all(tables.holds(c, row) for c in r.conditions) for r in ruleset] for row in rows
        ]
        wanted = [
            tables.predicted(ruleset, held, row) for held, row in zip(matched, rows, strict=True)
        ]
        namespace = {}
        exec(compile(ruleset.to_python(), "written.py", "exec"), namespace)
        for row, answer in zip(rows, wanted, strict=True):
            found = None
            with suppress(ValueError):  # raised where no rule holds
                found = namespace["predict"](dict(zip(names, row, strict=True)))
            assert alike(found, answer), ("Python", str(ruleset), row, found, answer)
        if "big" in kinds:
            return  # whether such numbers are rounded depends on the types of a database
        if "\0" in str((ruleset.classes, kinds, ruleset.rules)) or "\0" in str(rows):
            return  # a text of databases ends there, or is refused
        for dialect in ("duckdb", "sqlite"):
            try:
                expression = ruleset.to_sql(dialect=dialect, exact=dialect == "duckdb")
            except ValueError as error:
                if not any(word in str(error) for word in ("NUL", "SQL", "BIGINT")):
                    raise
                continue
            if dialect == "duckdb":
                found = asked(duck, names, kinds, rows, expression)
            else:
                with closing(sqlite3.connect(":memory:")) as lite:
                    found = asked(lite, names, kinds, rows, expression)
            wrong = [
                (row, a, b)
                for row, a, b in zip(rows, found, wanted, strict=True)
                if not alike(a, b)
            ]
            assert not wrong, (dialect, str(ruleset), wrong[:2], expression)

    attack(check, 30)
