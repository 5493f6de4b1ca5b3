"""Every evaluator of conditions agrees on the same rows: missing values and edge floats included.

A loop in plain Python states what each condition means. NumPy, matching kernels, simplification,
volumes, SQL in three databases, generated Python, JavaScript and Java, ONNX, PMML, DMN, SWI-Prolog,
the report's JavaScript, plots, optimal trees and the certificate checker must return the same
truth.
"""

from __future__ import annotations

import itertools
import json
import math
import runpy
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import duckdb
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from foreign_programs import (
    has_node_package,
    run_dmn,
    run_java,
    run_javascript,
    run_onnx,
    run_pmml,
)

import skescore
from skescore.certificates import _check
from skescore.metrics import volume_completeness
from skescore.optimal import SearchSpace, candidate_cuts, optimal_trees
from skescore.plots import overlap_matrix, parallel_rules
from skescore.report import rule_view
from skescore.rules import (
    AtLeast,
    Domain,
    Fallback,
    Interval,
    Linear,
    Missing,
    OneOf,
    Rule,
    RuleSet,
    _conditions,
)
from skescore.rules.exporters import to_dmn, to_java, to_javascript, to_onnx, to_pmml

TESTS = Path(__file__).parents[1]
NAMES = ["x", "y", "color"]
LOW, HIGH, LARGEST, SMALLEST = -1.5, 2.0, float(np.finfo(float).max), 5e-324
EDGES = [
    -math.inf,
    -LARGEST,
    *(math.nextafter(LOW, end) for end in (-math.inf, math.inf)),
    LOW,
    -SMALLEST,
    -0.0,
    0.0,
    SMALLEST,
    *(math.nextafter(HIGH, end) for end in (-math.inf, math.inf)),
    HIGH,
    LARGEST,
    math.inf,
    None,
]
ROWS = list(itertools.product(EDGES, [None, 0.0, 1.0], [None, "red", "blue", "green"]))
#: Share of missing values in each feature of the domain.
SHARE = 0.25
COLORS = ("blue", "green", "red")
DOMAIN = Domain((-3.0, 0.0, 0.0), (3.0, 1.0, 3.0), ((2, COLORS),), (SHARE, SHARE, SHARE))
FLAGS = [False, True]
BOUNDS = [(LOW, HIGH), (-math.inf, HIGH), (LOW, math.inf), (0.0, math.inf), (-math.inf, 0.0)]
CONDITIONS = [
    *(
        Interval(0, low, high, low_closed, high_closed, missing)
        for (low, high), low_closed, high_closed, missing in itertools.product(
            BOUNDS, FLAGS, FLAGS, FLAGS
        )
        if (low_closed <= math.isfinite(low)) and (high_closed <= math.isfinite(high))
    ),
    *(Interval(0, HIGH, HIGH, True, True, missing) for missing in FLAGS),
    *(Interval(0, 0.0, 0.0, True, True, missing) for missing in FLAGS),
    *(Missing(feature, negated) for feature in (0, 2) for negated in FLAGS),
    *(
        OneOf(feature, values, negated, missing)
        for feature, values in ((0, [HIGH, 0.0]), (2, ["red"]), (2, ["red", "blue"]))
        for negated in FLAGS
        for missing in FLAGS
    ),
    Linear([(0, 1.0), (1, 2.0)], upper=HIGH),
    Linear([(0, 1.0), (1, -2.0)], LOW, HIGH, True, False),
    AtLeast(2, [Interval(0, LOW, HIGH), Interval(1, upper=0.5, missing=True), OneOf(2, ["red"])]),
    AtLeast(1, [Missing(0), OneOf(2, ["red"], negated=True), Interval(1)]),
    AtLeast(2, [Interval(1, lower=0.5), AtLeast(1, [Missing(2), Interval(0, upper=0.0)])]),
]


def truth(condition, row):
    """State what a condition means, one value at a time."""
    if isinstance(condition, AtLeast):
        return sum(truth(part, row) for part in condition.conditions) >= condition.m
    if isinstance(condition, Linear):
        if any(row[feature] is None for feature in condition.features):
            return False
        return within(condition, sum(c * row[feature] for feature, c in condition.terms))
    value = row[condition.feature]
    if isinstance(condition, Missing):
        return (value is None) != condition.negated
    if value is None:
        return condition.missing
    if isinstance(condition, Interval):
        return within(condition, value)
    return (value in condition.values) != condition.negated


def within(bounds, value):
    above = value >= bounds.lower if bounds.lower_closed else value > bounds.lower
    below = value <= bounds.upper if bounds.upper_closed else value < bounds.upper
    free_below, free_above = math.isinf(bounds.lower), math.isinf(bounds.upper)
    return (above or free_below) and (below or free_above)


def one_rule(*conditions, domain=None):
    """Return rules that predict 1 where one of the conditions holds, and else 0."""
    rules = [Rule([condition], 1) for condition in conditions]
    return RuleSet(
        rules,
        NAMES,
        task="classification",
        classes=[0, 1],
        fallback=Fallback(0),
        domain=domain,
    )


def differing(condition, matches, rows=ROWS):
    """Return the rows on which an evaluator differs from the loop."""
    pairs = zip(rows, matches, strict=True)
    return [row for row, answer in pairs if bool(answer) != truth(condition, row)]


def assert_all_agree(answers, rows=ROWS):
    wrong = {
        str(condition): rows_of[:3]
        for condition, matches in zip(CONDITIONS, answers, strict=True)
        if (rows_of := differing(condition, matches, rows))
    }
    assert not wrong


FRAMES = {
    "nan": pd.DataFrame(ROWS, columns=NAMES).astype({"x": float, "y": float}),
    "none": pd.DataFrame(ROWS, columns=NAMES, dtype=object),
    "nullable": pd.DataFrame(ROWS, columns=NAMES).astype(
        {"x": "Float64", "y": "Float64", "color": "string"}
    ),
    "na": pd.DataFrame(
        [[pd.NA if value is None else value for value in row] for row in ROWS],
        columns=NAMES,
        dtype=object,
    ),
}


@pytest.mark.parametrize("kind", ["nan", "none", "na"])
def test_conditions_hold_on_columns(kind):
    columns = [FRAMES[kind][name].to_numpy() for name in NAMES]
    assert_all_agree([condition.holds(columns.__getitem__) for condition in CONDITIONS])


@pytest.mark.parametrize("kind", FRAMES)
def test_kernels_match_rows(kind):
    frame = FRAMES[kind]
    assert_all_agree([one_rule(condition).covers(frame) for condition in CONDITIONS])
    together = one_rule(*CONDITIONS)
    assert_all_agree(together.match(frame).T)
    assert_all_agree([one_rule(condition).predict(frame) for condition in CONDITIONS])


@pytest.mark.parametrize("domain", [None, pytest.param(DOMAIN, marks=pytest.mark.slow)])
def test_simplification_keeps_truth(domain):
    frame = FRAMES["nan"]
    rows = ROWS
    if domain is not None:
        rows = [row for row in ROWS if row[0] is None or abs(row[0]) < 3]
        frame = pd.DataFrame(rows, columns=NAMES).astype({"x": float, "y": float})
    for pair in itertools.combinations(CONDITIONS, 2):
        rules = one_rule(*pair, domain=domain)
        expected = [int(any(truth(condition, row) for condition in pair)) for row in rows]
        assert rules.simplify().predict(frame).tolist() == expected, pair
    for condition in CONDITIONS:
        rules = one_rule(condition, domain=domain)
        expected = [int(truth(condition, row)) for row in rows]
        assert rules.simplify(frame).predict(frame).tolist() == expected, condition
        assert rules.standalone().predict(frame).tolist() == expected, condition


def expected_volume(condition):
    """Return the volume of a condition on one feature in the domain, by its truth."""
    if isinstance(condition, Interval):
        observed = (min(condition.upper, 3.0) - max(condition.lower, -3.0)) / 6.0
    elif condition.feature == 0:
        observed = float(truth(condition, [1.0] * 3))
    else:
        observed = np.mean([truth(condition, [None, None, color]) for color in COLORS])
    return (1 - SHARE) * observed + SHARE * truth(condition, [None] * 3)


def test_volumes_measure_truth():
    for condition in CONDITIONS:
        if not isinstance(condition, Interval | Missing | OneOf):
            continue
        if isinstance(condition, OneOf) and condition.feature == 0:
            continue  # single numbers have no volume
        measured = volume_completeness(one_rule(condition, domain=DOMAIN))
        assert float(measured) == pytest.approx(expected_volume(condition), abs=1e-12), condition


def drawn_truth(condition, feature):
    """Read from a plot of one rule which observed values satisfy it, and the missing sign."""
    (conditions,) = (rule.conditions for rule in one_rule(condition).rules)
    ax = parallel_rules(one_rule(condition, domain=DOMAIN), features=[feature], legend=False)
    bars = [
        (patch.get_x(), patch.get_x() + patch.get_width())
        for patch in ax.patches
        if patch.get_gid() == "rule 1"
    ]
    signs = [text.get_text() for text in ax.texts if text.get_text() in "∘∅✓"]
    left, right = ax.patches[0].get_x(), ax.patches[0].get_x() + ax.patches[0].get_width()
    plt.close(ax.figure)
    if not bars and conditions and "∅" not in signs:
        bars = [(left, right)] if "✓" in signs else bars

    def is_drawn(share):
        position = left + share * (right - left)
        return any(low < position < high for low, high in bars)

    return is_drawn, "∘" in signs or "∅" in signs


def test_plots_draw_truth():
    for condition in CONDITIONS:
        if not isinstance(condition, Interval | Missing | OneOf):
            continue
        if condition.is_trivial or (isinstance(condition, OneOf) and condition.feature == 0):
            continue  # single numbers are not drawn, since bars have a minimum width
        if isinstance(condition, Interval) and condition.lower == condition.upper:
            continue
        feature = condition.feature
        is_drawn, accepts_missing = drawn_truth(condition, feature)
        assert accepts_missing == truth(condition, [None] * 3), condition
        observed = COLORS if feature == 2 else [-2.9, -1.6, -1.4, -0.1, 0.1, 1.9, 2.1, 2.9]
        for k, value in enumerate(observed):
            share = (k + 0.5) / 3 if feature == 2 else (value + 3) / 6
            row = [value if j == feature else None for j in range(3)]
            assert is_drawn(share) == truth(condition, row), (condition, value)


def test_overlap_plot_measures_truth():
    boxes = [c for c in CONDITIONS if isinstance(c, Interval) and c.lower < c.upper]
    ax = overlap_matrix(one_rule(*boxes, domain=DOMAIN), colorbar=False)
    labels = [label.get_text() for label in ax.get_yticklabels()]
    plt.close(ax.figure)
    for label, condition in zip(labels, boxes, strict=True):
        value = float(label.rpartition("(")[2].removesuffix(")"))
        assert value == pytest.approx(expected_volume(condition), abs=0.006), condition


def test_optimal_trees_read_truth():
    rows = [row for row in ROWS if row[0] is None or 0 < abs(row[0]) <= HIGH]
    frame = pd.DataFrame(rows, columns=NAMES).astype({"x": float, "y": float})
    for condition, negation in candidate_cuts(frame, None).pairs():
        holds = [truth(condition, row) for row in rows]
        assert [not truth(negation, row) for row in rows] == holds, condition
        # One split separates exactly the rows that satisfy the condition.
        frontier = optimal_trees(frame, np.array(holds, dtype=int), SearchSpace(2, cuts=None))
        assert frontier.upper[1] == 0, condition
        assert frontier.rules[1].predict(frame).tolist() == holds, condition


@pytest.fixture
def never_missing(monkeypatch):
    """Change the meaning of intervals in its only place: no missing value satisfies any."""

    def refuse(bounds):
        return bounds.missing & False

    original = _conditions.interval_accepts_missing
    for module in [m for name, m in sys.modules.items() if name.startswith("skescore.")]:
        if getattr(module, "interval_accepts_missing", None) is original:
            monkeypatch.setattr(module, "interval_accepts_missing", refuse)
    stated = truth

    def changed_condition(condition, row):
        if isinstance(condition, Interval) and row[condition.feature] is None:
            return False
        return stated(condition, row)

    monkeypatch.setitem(globals(), "truth", changed_condition)


@pytest.mark.slow
@pytest.mark.parametrize("domain", [None, DOMAIN])
def test_simplification_follows_changed_semantics(never_missing, monkeypatch, domain):
    assert not truth(Interval(0, upper=1.0, missing=True), [None] * 3)
    conditions = [c for c in CONDITIONS if isinstance(c, Missing) or getattr(c, "missing", False)]
    monkeypatch.setitem(globals(), "CONDITIONS", conditions)
    test_kernels_match_rows("nan")
    test_simplification_keeps_truth(domain)


def test_other_evaluators_follow_changed_semantics(never_missing):
    test_volumes_measure_truth()
    test_plots_draw_truth()
    test_overlap_plot_measures_truth()
    test_python_source_agrees()
    test_duckdb_agrees()
    test_sqlite_agrees()


def test_python_source_agrees():
    answers = []
    for condition in CONDITIONS:
        namespace = {}
        exec(compile(one_rule(condition).to_python(), "written.py", "exec"), namespace)
        rows = (dict(zip(NAMES, row, strict=True)) for row in ROWS)
        answers.append([namespace["predict"](row) for row in rows])
    assert_all_agree(answers)


def test_checker_of_certificates_agrees():
    answers = []
    for condition in CONDITIONS:
        (rule,) = json.loads(one_rule(condition).to_json())["rules"]
        values = [[_check._json_value(value) for value in row] for row in ROWS]
        holds = [all(_check._holds(c, row) for c in rule["if"]) for row in values]
        answers.append(holds)
    assert_all_agree(answers)


# --- databases ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def server():
    storage = runpy.run_path(str(TESTS / "tuning" / "storage" / "conftest.py"))
    with storage["running_postgresql"]() as running:
        yield running


def assert_database_agrees(connection, dialect, mark):
    rows = ROWS + [(math.nan, *row[1:]) for row in ROWS if row[0] is None]
    stated = ROWS + [row for row in ROWS if row[0] is None]
    cursor = connection.cursor()
    cursor.execute(
        "CREATE TABLE edge_rows (position INTEGER, x DOUBLE PRECISION, y DOUBLE PRECISION, "
        "color TEXT)"
    )
    numbered = [(i, *row) for i, row in enumerate(rows)]
    cursor.executemany(f"INSERT INTO edge_rows VALUES ({', '.join([mark] * 4)})", numbered)
    answers = []
    for condition in CONDITIONS:
        expression = one_rule(condition).to_sql(dialect=dialect, exact=dialect != "sqlite")
        cursor.execute(f"SELECT {expression} FROM edge_rows ORDER BY position")
        answers.append([answer for (answer,) in cursor.fetchall()])
    assert_all_agree(answers, stated)


def test_duckdb_agrees():
    with duckdb.connect(config={"threads": 1}) as connection:
        assert_database_agrees(connection, "duckdb", "?")


def test_sqlite_agrees():
    with closing(sqlite3.connect(":memory:")) as connection:
        assert_database_agrees(connection, "sqlite", "?")


@pytest.mark.engine
def test_postgresql_agrees(server):
    import psycopg

    with psycopg.connect(server.new_database(), prepare_threshold=None) as connection:
        assert_database_agrees(connection, "postgres", "%s")


# --- other languages ------------------------------------------------------------------------------


@pytest.mark.skipif(shutil.which("swipl") is None, reason="swipl (SWI-Prolog) is not on the PATH")
def test_prolog_agrees(tmp_path):
    # SWI-Prolog raises an error where a sum overflows.
    rows = [row for row in ROWS if row[0] is None or math.isfinite(row[0])]
    literal = runpy.run_path(str(TESTS / "rules" / "exporters" / "test_prolog.py"))["literal"]
    facts = [f"row([{', '.join(map(literal, row))}])." for row in rows]
    names = [f"condition_{i}" for i in range(len(CONDITIONS))]
    theories = [
        one_rule(condition).to_prolog(predicate=name)
        for condition, name in zip(CONDITIONS, names, strict=True)
    ]
    query = (
        ":- initialization((forall((member(P, [{}]), row(Values)), (append(Values, [Output], All),"
        " Goal =.. [P|All], call(Goal), format('~w~n', [Output]))), halt))."
    )
    program = [":- style_check(-singleton).", *theories, *facts, query.format(", ".join(names))]
    (tmp_path / "theory.pl").write_text("\n".join(program), encoding="utf-8")
    command = [shutil.which("swipl"), "-q", "theory.pl"]
    printed = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, check=True, timeout=120
    )
    answers = np.array(printed.stdout.split(), dtype=int).reshape(len(CONDITIONS), len(rows))
    assert_all_agree(answers, rows)


RECORDS = [dict(zip(NAMES, row, strict=True)) for row in ROWS]


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not on the PATH")
def test_javascript_source_agrees(tmp_path):
    sources = [to_javascript(one_rule(condition)) for condition in CONDITIONS]
    assert_all_agree(run_javascript(sources, RECORDS, tmp_path))


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("javac") is None, reason="javac is not on the PATH")
def test_java_source_agrees(tmp_path):
    sources = [to_java(one_rule(c), f"Rules{i}") for i, c in enumerate(CONDITIONS)]
    assert_all_agree(run_java(sources, RECORDS, tmp_path))


@pytest.mark.engine
def test_onnx_agrees():
    pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    models = [to_onnx(one_rule(condition, domain=DOMAIN)) for condition in CONDITIONS]
    assert_all_agree(run_onnx(models, FRAMES["nan"]))


@pytest.mark.engine
@pytest.mark.skipif(shutil.which("javac") is None, reason="javac is not on the PATH")
def test_pmml_agrees(tmp_path):
    pytest.importorskip("jpmml_evaluator")
    documents = [to_pmml(one_rule(condition, domain=DOMAIN)) for condition in CONDITIONS]
    assert_all_agree(run_pmml(documents, RECORDS, tmp_path))


@pytest.mark.engine
def test_dmn_agrees(tmp_path):
    if not has_node_package("feelin"):
        pytest.skip("needs feelin")
    rows = [row for row in ROWS if row[0] is None or math.isfinite(row[0])]
    records = [dict(zip(NAMES, row, strict=True)) for row in rows]
    documents = [to_dmn(one_rule(condition, domain=DOMAIN)) for condition in CONDITIONS]
    assert_all_agree(run_dmn(documents, [records] * len(documents), tmp_path), rows)


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not on the PATH")
def test_report_javascript_agrees(tmp_path):
    script = Path(skescore.__file__).parent / "report" / "static" / "rules.js"
    views = [rule_view(one_rule(condition), None) for condition in CONDITIONS]
    rows = json.dumps(ROWS)  # standard JSON has no infinity, but JavaScript has
    program = f"""
{script.read_text(encoding="utf-8")}
const rows = {rows}, views = {json.dumps(views)};
console.log(JSON.stringify(views.map((view) => {{
  const rules = new Rules(view);
  return rows.map((row) => rules.predict(row).code);
}})));
"""
    (tmp_path / "conditions.js").write_text(program, encoding="utf-8")
    printed = subprocess.run(
        [shutil.which("node"), "conditions.js"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    assert_all_agree(json.loads(printed.stdout))
