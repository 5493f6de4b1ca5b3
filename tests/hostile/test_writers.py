"""Exported rules of every kind run: Python, SQL of three databases, Prolog, JavaScript, JSON."""

from __future__ import annotations

import json
import math
import pickle
import re
import runpy
import shutil
import sqlite3
import subprocess
from contextlib import closing, suppress
from pathlib import Path

import duckdb
import pytest
from foreign_programs import javascript_value

from skescore.rules import AtLeast, Linear, LinearOutput, RuleSet
from skescore.rules.exporters import to_javascript

TESTS = Path(__file__).parents[1]
SERVER = TESTS / "tuning" / "storage" / "conftest.py"
PROLOG = TESTS / "rules" / "exporters" / "test_prolog.py"


def case(rng, tables):
    """Return a rule set, column names for a database, rows, and the predictions of a loop."""
    kinds, ruleset = tables.rule_set(rng)
    names = list(ruleset.feature_names)
    if "" in names:  # which no database takes
        names[names.index("")] = "without a name"
        ruleset = ruleset.replace(feature_names=names)
    columns = [held(kind, tables.column(rng, kind, 6)) for kind in kinds]
    rows = list(zip(*columns, strict=True))
    expected = []
    for row in rows:
        matched = [all(tables.holds(c, row) for c in rule.conditions) for rule in ruleset]
        expected.append(tables.predicted(ruleset, matched, row))
    return kinds, ruleset, rows, expected


def held(kind, values):
    """Return the values as a database holds them, which has no integers among floats."""
    return [float(v) if kind in ("number", "big") and v is not None else v for v in values]


def alike(one, other):
    if one is None or other is None or one != one or other != other:
        return (one is None or one != one) and (other is None or other != other)
    return one == other


def compare(ruleset, rows, found, wanted, written=""):
    answers = zip(rows, found, wanted, strict=True)
    wrong = [(row, a, b) for row, a, b in answers if not alike(a, b)]
    assert not wrong, (str(ruleset), wrong[:2], written)


# --- Python and files -------------------------------------------------------------------------


def test_python_and_files_predict_alike(attack, tables):
    def check(rng):
        _, ruleset, rows, expected = case(rng, tables)
        assert RuleSet.from_json(ruleset.to_json()) == ruleset
        assert pickle.loads(pickle.dumps(ruleset)) == ruleset
        assert ruleset.to_text()
        assert ruleset.to_markdown()
        namespace = {}
        exec(compile(ruleset.to_python(), "written.py", "exec"), namespace)
        results = []
        for row in rows:
            results.append(None)
            with suppress(ValueError):  # raised where no rule holds
                results[-1] = namespace["predict"](
                    dict(zip(ruleset.feature_names, row, strict=True))
                )
        compare(ruleset, rows, results, expected)

    attack(check, 30)


# --- databases --------------------------------------------------------------------------------

#: Types in databases for columns of each kind.
TYPES = {"number": "DOUBLE PRECISION", "code": "BIGINT", "text": "TEXT", "flag": "BOOLEAN"}


@pytest.fixture(scope="module")
def server():
    with runpy.run_path(str(SERVER))["running_postgresql"]() as running:
        yield running


@pytest.fixture
def database(request):
    """Return a dialect, a connection, its placeholder and errors of infinite sums."""
    if request.param == "postgres":
        import psycopg

        url = request.getfixturevalue("server").new_database()
        # Frequent queries are prepared, for tables that no longer exist by then.
        with psycopg.connect(url, autocommit=True, prepare_threshold=None) as connection:
            yield request.param, connection, "%s", psycopg.errors.NumericValueOutOfRange
    elif request.param == "duckdb":
        with duckdb.connect(config={"threads": 1}) as connection:
            yield request.param, connection, "?", ()
    else:
        with closing(sqlite3.connect(":memory:")) as connection:
            yield request.param, connection, "?", ()


def asked(connection, mark, names, kinds, rows, expression):
    """Return the predictions of a database for some rows."""
    cursor = connection.cursor()
    quoted = ['"' + name.replace('"', '""') + '"' for name in names]
    declared = [f"{name} {TYPES[kind]}" for name, kind in zip(quoted, kinds, strict=True)]
    cursor.execute("DROP TABLE IF EXISTS some_rows")
    cursor.execute(f"CREATE TABLE some_rows ({', '.join(declared)}, position_ INTEGER)")
    marks = ", ".join([mark] * (len(names) + 1))
    values = [(*row, i) for i, row in enumerate(rows)]
    cursor.executemany(f"INSERT INTO some_rows VALUES ({marks})", values)
    cursor.execute(f"SELECT {expression} FROM some_rows ORDER BY position_")
    return [answer for (answer,) in cursor.fetchall()]


@pytest.mark.parametrize(
    "database",
    ["duckdb", "sqlite", pytest.param("postgres", marks=pytest.mark.engine)],
    indirect=True,
)
def test_sql_predicts_alike(attack, tables, database):
    dialect, connection, mark, stops = database

    def check(rng):
        kinds, ruleset, rows, expected = case(rng, tables)
        if "big" in kinds:
            return  # whether such numbers are rounded depends on the types of a database
        if dialect == "postgres" and any("\0" in str(value) for row in rows for value in row):
            return  # which no text holds there
        try:
            expression = ruleset.to_sql(dialect=dialect, exact=dialect != "sqlite")
        except ValueError as error:
            if not any(word in str(error) for word in ("NUL", "SQL", "BIGINT")):
                raise
            return
        try:
            result = asked(connection, mark, ruleset.feature_names, kinds, rows, expression)
        except stops:  # PostgreSQL does, while others continue with infinity
            return
        compare(ruleset, rows, result, expected, expression)

    attack(check, 30)


# --- SWI-Prolog -------------------------------------------------------------------------------

# Results are types and characters, so that nothing depends on quoting; each query returns
# all its results.
ANSWER = """
:- set_stream(user_input, encoding(utf8)), style_check(-singleton).
say([]) :- format("none~n").
say([V]) :- integer(V), !, format("i ~w~n", [V]).
say([V]) :- number(V), !, format("f ~w~n", [V]).
say([V]) :- atom_codes(V, Codes), format("a ~w~n", [Codes]).
ask(Values) :- append(Values, [Output], Arguments), Goal =.. [prediction|Arguments],
    catch(findall(Output, Goal, Outputs), error(Formal, _),
          (format("e ~w~n", [Formal]), Outputs = error)),
    ( Outputs == error -> true ; say(Outputs) ).
run(File) :- load_files(File, [silent(true)]), forall(row(Values), ask(Values)),
    unload_file(File), format("end~n").
:- initialization((repeat, read(File), ( File == end_of_file -> halt ; run(File), fail ))).
"""


@pytest.fixture
def swipl(tmp_path):
    """Ask one process of SWI-Prolog, theory after theory."""
    (tmp_path / "answer.pl").write_text(ANSWER, encoding="utf-8")
    fact = runpy.run_path(str(PROLOG))["literal"]
    program = [shutil.which("swipl"), "-q", "answer.pl"]
    with subprocess.Popen(
        program,
        cwd=tmp_path,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
    ) as process:

        def ask(theory, rows):
            facts = "".join(f"row([{', '.join(map(fact, row))}]).\n" for row in rows)
            (tmp_path / "theory.pl").write_text(f"{theory}\n{facts}", encoding="utf-8")
            process.stdin.write("'theory.pl'.\n")
            process.stdin.flush()
            answers = []
            while (line := process.stdout.readline().strip()) != "end":
                assert line, f"SWI-Prolog has ended: {answers}"
                answers.append(line)
            return answers

        yield ask
        process.stdin.close()


def said(line):
    """Return a line of SWI-Prolog as a Python value; booleans are texts there."""
    kind, _, value = line.partition(" ")
    if kind == "a":
        return "".join(chr(int(code)) for code in re.findall(r"\d+", value))
    return {"i": int, "f": float, "none": lambda _: None}[kind](value)


@pytest.mark.skipif(shutil.which("swipl") is None, reason="swipl (SWI-Prolog) is not on the PATH")
def test_prolog_predicts_alike(attack, tables, swipl):
    def check(rng):
        kinds, ruleset, rows, expected = case(rng, tables)
        if "big" in kinds:
            return  # floats are compared with whole numbers as floats
        try:
            theory = ruleset.to_prolog(missing=["null"])
        except ValueError as error:
            if "would be one in Prolog" not in str(error):
                raise
            return
        lines = swipl(theory, rows)
        # It raises an error where a sum overflows.
        retained = [i for i, line in enumerate(lines) if not line.startswith("e evaluation_error")]
        assert len(lines) == len(rows)
        if len(retained) < len(rows):
            sums = any(isinstance(c, Linear | AtLeast) for rule in ruleset for c in rule.conditions)
            assert (
                sums or ruleset.voting or any(isinstance(r.output, LinearOutput) for r in ruleset)
            )
        results = [said(lines[i]) for i in retained]
        expected = [expected[i] for i in retained]
        if ruleset.classes is None:
            results = [math.nan if answer == "nan" else answer for answer in results]
            expected = [None if w is None else float(w) for w in expected]
        expected = [str(w).lower() if isinstance(w, bool) else w for w in expected]
        compare(ruleset, [rows[i] for i in retained], results, expected, theory)
        for one, other in zip(results, expected, strict=True):
            assert type(one) is type(other), (str(ruleset), one, other)

    attack(check, 20)


# --- JavaScript -------------------------------------------------------------------------------

# Predictions are written as types and texts, as JSON has neither NaN nor infinity.
NODE = """
const { createContext, runInContext } = require("vm");
const say = (value) => value === null ? "none" : `${typeof value}:${String(value)}`;
require("readline").createInterface({ input: process.stdin }).on("line", (line) => {
  const [source, rows] = JSON.parse(line);
  const module = { exports: {} };
  const context = createContext({ module, exports: module.exports });
  runInContext(source, context);
  console.log(JSON.stringify(runInContext(rows, context).map((row) => {
    try {
      return say(module.exports.predict(row));
    } catch (error) {
      if (error.message !== "No rule holds for this row.") return `error:${error.message}`;
      return "none";
    }
  })));
});
"""


@pytest.fixture
def node():
    """Ask one process of Node.js, program after program."""
    with subprocess.Popen(
        [shutil.which("node"), "-e", NODE],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        encoding="utf-8",
    ) as process:

        def ask(program, names, rows):
            cells = [
                zip(map(json.dumps, names), map(javascript_value, row), strict=True) for row in rows
            ]
            listed = ("{" + ", ".join(f"[{k}]: {v}" for k, v in row) + "}" for row in cells)
            process.stdin.write(json.dumps([program, f"[{', '.join(listed)}]"]) + "\n")
            process.stdin.flush()
            return json.loads(process.stdout.readline())

        yield ask
        process.stdin.close()


def number_or_text(answer):
    """Return a prediction of Node.js as a Python value."""
    kind, _, value = answer.partition(":")
    read = {"number": lambda v: float(v.replace("Infinity", "inf")), "bigint": int, "string": str}
    read |= {"boolean": lambda v: v == "true", "none": lambda _: None}
    return read[kind](value)


@pytest.mark.skipif(shutil.which("node") is None, reason="node (Node.js) is not on the PATH")
def test_javascript_predicts_alike(attack, tables, node):
    def check(rng):
        _, ruleset, rows, expected = case(rng, tables)
        try:
            program = to_javascript(ruleset)
        except ValueError as error:
            if "JavaScript's numbers" not in str(error):
                raise
            return
        answers = node(program, ruleset.feature_names, rows)
        compare(ruleset, rows, list(map(number_or_text, answers)), expected, program)

    attack(check, 30)
