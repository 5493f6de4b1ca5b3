from __future__ import annotations

import io
import json
import math
import sqlite3
import sys
from contextlib import closing
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest

from skescore.cli import main
from skescore.rules import (
    AtLeast,
    Domain,
    Fallback,
    Interval,
    OneOf,
    Rule,
    RuleSet,
    RuleStatistics,
    as_ruleset,
)

COMMAND = "rules"

CUT = 0.12345678901234568
RULES = RuleSet(
    [
        Rule((Interval(0, upper=CUT), OneOf(1, ("red", "7"))), "yes", RuleStatistics(4, (1, 3))),
        Rule((Interval(0, lower=3.0),), "no"),
    ],
    ("größe", "color"),
    task="classification",
    classes=("no", "yes"),
    domain=Domain((0.0, 0.0), (5.0, 4.0), [(1, ("7", "blue", "green", "red"))]),
    fallback=Fallback("no"),
)
NUMBERS = RuleSet(
    [Rule((Interval(0, upper=CUT),), 1.5), Rule((Interval(0, lower=CUT),), 2.25)],
    ("a",),
    task="regression",
    fallback=Fallback(0.5),
)
BORDERS = [
    math.nextafter(CUT, 0),
    CUT,
    math.nextafter(CUT, 1),
    math.nextafter(3, 0),
    3.0,
    math.nextafter(3, 4),
    -1e300,
    1e300,
]
ROWS = pd.DataFrame(
    [(size, color) for size in BORDERS for color in ("red", "blue", "7")],
    columns=["größe", "color"],
)


@pytest.fixture
def save(tmp_path):
    def save(ruleset, name="rules.json"):
        (tmp_path / name).write_text(ruleset.to_json(), encoding="utf-8")
        return tmp_path / name

    return save


@pytest.fixture
def written(run, save):
    def written(ruleset, *words):
        code, out, err = run(save(ruleset), *words)
        assert (code, err) == (0, "")
        return out

    return written


# Formats ------------------------------------------------------------------------------------------


def test_rules_prints_text_by_default(written):
    assert written(RULES) == str(RULES) + "\n" == written(RULES, "--to", "text")


@pytest.mark.parametrize(
    ("form", "method"),
    [("sentences", "to_sentences"), ("tree", "to_tree_text"), ("markdown", "to_markdown")],
)
def test_rules_prints_formats_for_people(form, method, written):
    assert written(RULES, "--to", form) == getattr(RULES, method)().rstrip("\n") + "\n"


def test_html_is_a_whole_page_with_all_names(written):
    class Reader(HTMLParser):
        tags, text = (), ""

        def handle_starttag(self, tag, attrs):
            self.tags = (*self.tags, tag)

        def handle_data(self, data):
            self.text += data

    page = written(RULES, "--to", "html")
    reader = Reader()
    reader.feed(page)
    assert page.startswith("<!DOCTYPE html>")
    assert {"html", "head", "body", "table"} <= set(reader.tags)
    assert "script" not in reader.tags
    assert "größe" in reader.text


def test_json_restores_equal_rules(written):
    assert RuleSet.from_json(written(RULES, "--to", "json")) == RULES


@pytest.fixture
def database():
    with closing(sqlite3.connect(":memory:")) as connection:
        yield connection


def test_exported_sql_predicts_like_rules(written, database):
    ROWS.to_sql("my rows", database, index=False)
    query = written(RULES, "--to", "sql", "--dialect", "sqlite", "--table", "my rows")
    result = pd.read_sql_query(query, database)
    assert result[["größe", "color"]].equals(ROWS)
    assert result.iloc[:, -1].tolist() == RULES.predict(ROWS).tolist()
    expression = written(RULES, "--to", "sql", "--dialect", "sqlite")
    assert "SELECT" not in expression.upper()
    rows = database.execute(f'SELECT {expression} FROM "my rows"').fetchall()
    assert [row[0] for row in rows] == RULES.predict(ROWS).tolist()


def test_rules_applies_standalone_and_class_names(written):
    standalone = RULES.standalone().to_text() + "\n"
    assert written(RULES, "--standalone") == standalone != RULES.to_text() + "\n"
    named = written(RULES, "--class-names", "stays", "leaves", "--to", "sentences")
    assert named == RULES.with_class_names(["stays", "leaves"]).to_sentences() + "\n"


def test_sql_for_columns_without_nan_is_plain(written):
    assert written(RULES, "--to", "sql") == RULES.to_sql() + "\n"
    assert written(RULES, "--to", "sql", "--exact") == RULES.to_sql(exact=True) + "\n"
    assert RULES.to_sql(exact=True) != RULES.to_sql()


def test_sql_counts_rows_of_each_rule(written, database):
    ROWS.to_sql("rows", database, index=False)
    words = ("--to", "sql", "--dialect", "sqlite", "--kind", "assign", "--table", "main.rows")
    counted = f"SELECT rule, COUNT(*) FROM ({written(RULES, *words)}) GROUP BY rule ORDER BY rule"
    result = database.execute(counted).fetchall()
    assigned = RULES.assign(ROWS)
    numbers, counts = np.unique(assigned, return_counts=True)
    assert numbers.tolist() == [-1, 0, 1]
    assert result == list(zip([None, 1, 2], counts.tolist(), strict=True))
    assert 1 - result[0][1] / len(ROWS) == RULES.covers(ROWS).mean()


@pytest.mark.parametrize(
    ("table", "path"),
    [
        ("my rows", ["my rows"]),
        ("a.b.c", ["a", "b", "c"]),
        ('"rows.parquet"', ["rows.parquet"]),
        ('s."rows.parquet"', ["s", "rows.parquet"]),
        ('"a""b".c', ['a"b', "c"]),
        ('5" tubes.a', ['5" tubes', "a"]),
    ],
)
def test_table_option_accepts_a_path(table, path, written):
    assert written(RULES, "--to", "sql", "--table", table) == RULES.to_sql(table=path) + "\n"


def test_boolean_option_casts_columns(written):
    words = ("--to", "sql", "--boolean", "a")
    assert written(NUMBERS, *words) == NUMBERS.to_sql(booleans=["a"]) + "\n"
    words = ("--to", "dbt", "--table", "t", "--boolean", "a")
    assert written(NUMBERS, *words) == NUMBERS.to("dbt", table="t", booleans=["a"])
    assert "CAST" in written(NUMBERS, *words)
    conditions = [Interval(0, upper=0.5), Interval(1, upper=0.5)]
    ruleset = RuleSet([Rule(conditions, 1), Rule([], 2)], ["a", "b, c"], task="classification")
    query = ruleset.to_sql(booleans=["a", "b, c"]) + "\n"
    assert written(ruleset, "--to", "sql", "--boolean", 'a,"b, c"') == query


def test_missing_option_sets_atoms_of_prolog(written):
    colors = [OneOf(0, ("null", "red"))]
    ruleset = RuleSet([Rule(colors, 1), Rule([], 2)], ("color",), task="classification")
    theory = written(ruleset, "--to", "prolog", "--missing", "none", "--missing", "nan")
    assert theory == ruleset.to_prolog(missing=["none", "nan"]).rstrip("\n") + "\n"


@pytest.mark.parametrize(("words", "name"), [((), "predict"), (("--name", "risk"), "risk")])
def test_exported_python_predicts_like_rules(words, name, written):
    space = {}
    exec(compile(written(RULES, "--to", "python", *words), "rules.py", "exec"), space)
    answers = [space[name](row) for row in ROWS.to_dict("records")]
    assert answers == RULES.predict(ROWS).tolist()


@pytest.mark.parametrize(("words", "name"), [((), "prediction"), (("--name", "risk"), "risk")])
def test_prolog_equals_theory_of_the_rules(words, name, written):
    theory = written(RULES, "--to", "prolog", *words)
    assert theory == RULES.to_prolog(predicate=name).rstrip("\n") + "\n"
    assert f"\n{name}(" in theory


@pytest.mark.parametrize("ruleset", [RULES, NUMBERS])
def test_csv_export_restores_conditions(ruleset, written):
    table = pd.read_csv(
        io.StringIO(written(ruleset, "--to", "csv")), dtype=str, keep_default_na=False
    )
    back = as_ruleset(table, feature_names=list(ruleset.feature_names))
    assert [rule.conditions for rule in back] == [rule.conditions for rule in ruleset]
    rows = ROWS if ruleset is RULES else pd.DataFrame({"a": BORDERS})
    assert back.predict(rows).tolist() == ruleset.predict(rows).tolist()


def test_csv_export_notes_lost_information(run, save):
    voting = NUMBERS.replace(ordered=False, voting="mean")
    code, out, err = run(save(voting), "--to", "csv")
    assert code == 0
    assert "--voting mean" in err
    back = as_ruleset(
        pd.read_csv(io.StringIO(out), dtype=str, keep_default_na=False), voting="mean"
    )
    assert [(r.conditions, r.output, r.weight) for r in back] == [
        (r.conditions, r.output, r.weight) for r in voting
    ]
    _, _, err = run(save(RULES.replace(ordered=False)), "--to", "csv")
    assert "the purest of several rules" in err
    _, _, err = run(save(RULES.replace(ordered=False, disjoint=True)), "--to", "csv")
    assert err == ""


# Shorter numbers ----------------------------------------------------------------------------------


def digits(ruleset):
    bounds = [b for r in ruleset for i in r.intervals for b in (i.lower, i.upper)]
    return sum(len(repr(b)) for b in bounds if math.isfinite(b))


@pytest.mark.parametrize("form", ["csv", "html", "json", "prolog", "python", "sql"])
def test_shorten_option_shortens_numbers_in_every_format(form, written, tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("größe,y,color\n0.1,1,red\n,2,blue\n0.2,3,7\n4,4,\n", encoding="utf-8")
    assert "0.12345" not in written(RULES, "--to", form, "--shorten", path)
    if form in ("json", "csv", "sql", "python"):  # other formats may round for readers
        assert "0.12345" in written(RULES, "--to", form)


def test_shorten_option_keeps_matched_rows(written, tmp_path):
    random = np.random.default_rng(0)
    rows = pd.DataFrame(
        {
            "color": random.choice(["red", "blue", "7"], 200),
            "größe": random.uniform(0, 4, 200),
            "more": "ignored",
        }
    )
    rows.to_csv(tmp_path / "data.csv", index=False)
    text = written(RULES, "--to", "json", "--shorten", tmp_path / "data.csv")
    short = RuleSet.from_json(text)
    assert digits(short) < digits(RULES)
    assert (short.match(rows) == RULES.match(rows)).all()


def test_shorten_option_keeps_categories_that_look_numeric(written, tmp_path):
    """A column of 7s is read as numbers, but the rules ask for the text "7"."""
    rules = RuleSet(
        [Rule((AtLeast(1, (OneOf(1, ("7",)), Interval(0, upper=CUT))),), "yes")],
        ("a", "kind"),
        task="classification",
        classes=("no", "yes"),
        fallback=Fallback("no"),
    )
    path = tmp_path / "data.csv"
    # If 7 were not "7", the first row might not match, and the bound could move.
    path.write_text("a,kind\n0.1,7\n0.5,8\n")
    short = RuleSet.from_json(written(rules, "--to", "json", "--shorten", path))
    rows = pd.DataFrame({"a": [0.1, 0.5], "kind": ["7", "8"]})
    assert (short.match(rows) == rules.match(rows)).all()


def test_shorten_option_accepts_built_in_data(written):
    rules = RuleSet(
        [Rule((Interval(2, upper=2.4500000476837163),), "setosa")],
        ("sepal length (cm)", "sepal width (cm)", "petal length (cm)", "petal width (cm)"),
        task="classification",
        classes=("setosa", "virginica"),
        fallback=Fallback("virginica"),
    )
    short = RuleSet.from_json(written(rules, "--to", "json", "--shorten", "iris"))
    # The longest petal of a setosa has 1.9 cm, the shortest other one 3.0 cm.
    assert len(repr(short[0].intervals[0].upper)) == 3
    assert 1.9 <= short[0].intervals[0].upper < 3.0


# Files --------------------------------------------------------------------------------------------


def test_output_file_needs_overwrite(run, save, tmp_path):
    path = tmp_path / "rules.py"
    words = (save(RULES), "--to", "python", "--output", path)
    assert run(*words) == (0, "", f"wrote {path}\n")
    first = path.read_bytes()
    assert first.decode("utf-8") == RULES.to_python().rstrip("\n") + "\n"
    path.write_text("mine")
    code, out, err = run(*words)
    assert (code, out) == (1, "")
    assert f"--output {path} already exists" in err
    assert path.read_text() == "mine"
    assert run(*words, "--overwrite")[0] == 0
    assert path.read_bytes() == first
    assert sorted(p.name for p in tmp_path.iterdir()) == ["rules.json", "rules.py"]


def test_output_option_reports_unwritable_paths(run, save, tmp_path):
    for path, reason in (
        (tmp_path, "is a folder"),
        (tmp_path / "no" / "x", "there is no folder"),
        (tmp_path / ("x" * 300), "cannot be written"),
    ):
        code, out, err = run(save(RULES), "--output", path)
        assert (code, out) == (1, "")
        assert reason in err


def in_ascii(monkeypatch, *words):
    """Call the command with a standard output that lacks the signs of other alphabets."""
    raw, errors = io.BytesIO(), io.StringIO()
    with monkeypatch.context() as patch:
        stream = io.TextIOWrapper(raw, encoding="ascii", write_through=True)
        patch.setattr(sys, "stdout", stream)
        patch.setattr(sys, "stderr", errors)
        code = main(["rules", *map(str, words)])
        stream.detach()
    return code, raw.getvalue(), errors.getvalue()


@pytest.mark.parametrize("form", ["python", "sql", "prolog", "csv", "json", "html", "markdown"])
def test_export_never_replaces_characters_silently(form, save, monkeypatch):
    code, out, err = in_ascii(monkeypatch, save(RULES), "--to", form)
    if code == 0:  # a format that writes every character in ASCII
        assert b"?" not in out
        assert b"gr\\u00f6\\u00dfe" in out or b"gr&#" in out
    else:
        assert (code, out) == (1, b"")
        assert "--output FILE, or set PYTHONIOENCODING=utf-8" in err


def test_text_replaces_unencodable_characters(save, monkeypatch):
    code, out, err = in_ascii(monkeypatch, save(NUMBERS))
    assert (code, err) == (0, "")
    assert out.startswith(b"1. IF a <= 0.12345678901234568 THEN 1.5")


def test_rules_refers_tables_to_import(run, tmp_path):
    path = tmp_path / "by hand.csv"
    path.write_text("rule,feature,operator,value,class\n1,a,<,2,yes\n")
    code, out, err = run(path)
    assert (code, out) == (1, "")
    assert f"skescore import '{path}' --output rules.json" in err


# Wrong usage --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ("--dialect", "duckdb"),
            "argument --dialect: needs --to sql or --to dbt, got --to text",
        ),
        (("--exact",), "argument --exact: needs --to sql"),
        (("--to", "python", "--table", "t"), "argument --table: needs --to sql"),
        (("--kind", "assign"), "argument --kind: needs --to sql or --to dbt, got --to text"),
        (("--to", "sql", "--kind", "count"), "invalid choice: 'count'"),
        (("--boolean", "a"), "argument --boolean: needs --to sql or --to dbt, got"),
        (("--to", "python", "--missing", "no"), "argument --missing: needs --to prolog"),
        (("--to", "sql", "--name", "f"), "argument --name: needs --to prolog or --to python"),
        (("--to", "lisp"), "invalid choice: 'lisp'"),
        (("--tabel", "t"), "there is no option --tabel. Did you mean '--table'?"),
        (("more",), "too many arguments: more"),
    ],
)
def test_wrong_usage_exits_with_2(words, message, run, save):
    code, out, err = run(save(RULES), *words)
    assert (code, out) == (2, "")
    assert message in err


def test_unusable_input_exits_with_1(run, save, tmp_path):
    rules = save(RULES)
    other = tmp_path / "other.csv"
    other.write_text("a,color\n1,red\n")
    binary = tmp_path / "model.skops"
    binary.write_bytes(b"PK\x03\x04\xff\xff")
    for words, part in (
        ((tmp_path / "gone.json",), "There is no file"),
        ((binary,), f"skescore import {binary}"),
        ((rules, "--shorten", tmp_path / "gone.csv"), "nor an existing file"),
        ((rules, "--shorten", other), "other.csv lacks the feature 'größe' of the rules"),
        ((rules, "--to", "python", "--name", "not a name"), "not a name"),
        ((rules, "--to", "sql", "--table", "a..b"), "The table name is empty"),
    ):
        code, out, err = run(*words)
        assert (code, out) == (1, "")
        assert err.startswith("skescore: error: ")
        assert part in err


def test_control_characters_do_not_reach_the_terminal(written):
    rules = RuleSet(
        [Rule((Interval(0, upper=1.0),), "\x1b[2Jgone")], ("a\x07",), task="classification"
    )
    for form in ("text", "sentences", "tree"):
        assert not {"\x1b", "\x07"} & set(written(rules, "--to", form))
    assert json.loads(written(rules, "--to", "json"))["feature_names"] == ["a\x07"]


def test_binary_formats_need_a_file(run, save, tmp_path):
    code, _, err = run(save(RULES), "--to", "excel")
    assert code == 2
    assert "excel is binary, so name a file: --output rules.xlsx" in err
    output = tmp_path / "rules.xlsx"
    code, out, err = run(save(RULES), "--to", "excel", "--output", output)
    assert (code, out) == (0, "")
    assert output.read_bytes()[:2] == b"PK"


def test_java_export_uses_given_names(written):
    source = written(RULES, "--to", "java", "--name", "Risk", "--package", "com.example")
    assert source.startswith("package com.example;\n")
    assert "public final class Risk {" in source


def test_dbt_export_uses_given_table(written):
    text = written(RULES, "--to", "dbt", "--table", "shop.orders")
    assert text.endswith("from {{ source('shop', 'orders') }}\n")


def test_rules_notes_that_programs_need_the_prepared_table(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("HOME", str(tmp_path))
    words = ["Oslo", " Oslo", "n/a", "Rome"]
    days = pd.date_range("2024-01-01", periods=60, freq="5D").strftime("%d.%m.%Y")
    table = pd.DataFrame({"city": words * 15, "day": days, "x": range(60)})
    table["y"] = np.where(table["city"] == "n/a", "yes", "no")
    table.to_csv(tmp_path / "t.csv", index=False)
    trials = ["--trials", "2", "--extractors", "cart", "--max-rules", "3", "--quiet"]
    output = ["--output", str(tmp_path / "run")]
    assert main(["tune", str(tmp_path / "t.csv"), "--target", "y", *trials, *output]) == 0
    capsys.readouterr()
    assert main(["rules", str(tmp_path / "run" / "rules.json"), "--to", "sql"]) == 0
    note = capsys.readouterr().err
    assert "a table with the same preparation as in their run" in note
    assert "'n/a' in column 'city' is read as missing (15 rows)" in note
    assert "'day'" not in note  # which no rule uses
    assert main(["rules", str(tmp_path / "run" / "rules.json"), "--to", "sentences"]) == 0
    assert capsys.readouterr().err == ""
    path = tmp_path / "run" / "run.json"
    run = json.loads(path.read_text(encoding="utf-8"))
    conversions = [
        (one["column"], one["kind"]) for one in run["data"]["conversions"] if "city" in one["note"]
    ]
    assert conversions == [("city", "missing"), ("city", "text")]
    # The record decides, whatever the words of the notes; without it, the words do.
    for changed in (
        run | {"notes": []},
        run | {"data": {k: v for k, v in run["data"].items() if k != "conversions"}},
    ):
        path.write_text(json.dumps(changed), encoding="utf-8")
        assert main(["rules", str(tmp_path / "run" / "rules.json"), "--to", "sql"]) == 0
        assert capsys.readouterr().err == note


def test_programs_name_the_codes_of_missing_values(tmp_path, capsys):
    numbers = np.arange(60)
    table = pd.DataFrame({"x": np.where(numbers % 10 == 7, -9, numbers), "hiv": numbers % 2})
    table["y"] = np.where(table["x"] > 30, "yes", "no")
    table.to_csv(tmp_path / "t.csv", index=False)
    options = ["--na-values=-9", "--na-values", "x=99,hiv=9", "--extractors", "cart", "--quiet"]
    output = ["--trials", "2", "--output", str(tmp_path / "run")]
    assert main(["tune", str(tmp_path / "t.csv"), "--target", "y", *options, *output]) == 0
    capsys.readouterr()
    for form in ("sql", "python"):
        assert main(["rules", str(tmp_path / "run" / "rules.json"), "--to", form]) == 0
        note = capsys.readouterr().err
        assert "- '99' in column 'x' is read as missing (--na-values)" in note
        assert "- '-9' is read as missing in the column 'x' (--na-values)" in note
        assert "'9' in" not in note  # of a column that no rule uses


def test_commands_warn_that_a_source_is_not_prepared(tmp_path, monkeypatch, capsys):
    """Words for missing values are converted in files, but not in a folder or a database."""
    monkeypatch.setenv("HOME", str(tmp_path))
    table = pd.DataFrame({"city": ["Oslo", "n/a", "Rome"] * 20, "size": ["n/a", "S"] * 30})
    table["y"] = np.where(table["city"] == "n/a", "yes", "no")
    table.to_csv(tmp_path / "t.csv", index=False)
    (tmp_path / "parts").mkdir()
    table.to_parquet(tmp_path / "parts" / "1.parquet")
    trials = ["--trials", "2", "--extractors", "cart", "--max-rules", "3", "--quiet"]
    output = ["--output", str(tmp_path / "run")]
    assert main(["tune", str(tmp_path / "t.csv"), "--target", "y", *trials, *output]) == 0
    words = [str(tmp_path / "run" / "rules.json"), str(tmp_path / "parts"), "--target", "y"]
    for command in (["score", *words], ["watch", *words, "--batch", "May"]):
        capsys.readouterr()
        assert main(command) in (0, 3)  # 3: rules that changed
        warning = capsys.readouterr().err
        assert "converted cells, but the rows of a source are counted as stored" in warning
        assert "'n/a' in column 'city' is read as missing (20 rows)" in warning
        assert "'size'" not in warning  # which no rule uses
