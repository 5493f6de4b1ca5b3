"""Parts of the command line: options, folds, types of files, texts and notes."""

from __future__ import annotations

import argparse
import io
import itertools
import json
import math
import re
import sys
import time
import warnings
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from optuna.distributions import CategoricalDistribution
from optuna.trial import TrialState
from rich.cells import cell_len
from sklearn.datasets import load_iris
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.tree import DecisionTreeClassifier

from skescore._quantities import limited_quantities
from skescore.cli import COMMANDS, build_parser
from skescore.cli._arguments import (
    CONSTRAINT_NAMES,
    integer,
    jobs,
    knowledge_scorer_from,
    names_from,
    names_of,
    number_above,
    scorer_from,
)
from skescore.cli._import import domain_of, find_kind
from skescore.cli._inputs import check_features, raw_table
from skescore.cli._output import (
    Notes,
    Printer,
    json_for_stdout,
    json_ready,
    number,
    plural,
    to_json,
)
from skescore.cli._report import _load_model
from skescore.cli._score import _count_text
from skescore.cli._trials import (
    _ROW_OPTIONS,
    _SEARCH_OPTIONS,
    TrialStorage,
    WorkerProcesses,
    redact_passwords,
)
from skescore.cli._tune_result import find_shortcomings
from skescore.cli._tune_search import FirstRules, make_splitter
from skescore.datasets import Dataset, load_dataset, read_table
from skescore.rules import Domain, Rule, RuleSet
from skescore.scorers import all_weights
from skescore.tuning import ExtractorSearchCV, SearchProgress


def refused(reader, text):
    with pytest.raises(argparse.ArgumentTypeError) as caught:
        reader(text)
    return str(caught.value)


# Numbers and names --------------------------------------------------------------------------------


@given(st.floats(min_value=1e-300, allow_infinity=False, allow_nan=False))
def test_number_above_parses_exactly(value):
    assert number_above(0)(repr(value)) == value


@pytest.mark.parametrize("text", ["0", "-1", "inf", "-inf", "nan", "", "one", "1,5"])
def test_number_above_rejects_other_texts(text):
    assert refused(number_above(0), text) == f"must be a number above 0, got {text!r}"


@given(st.integers(), st.integers(-5, 5))
def test_integer_respects_bounds(value, minimum):
    reader = integer(minimum, 100)
    if minimum <= value <= 100:
        assert reader(str(value)) == value
    else:
        assert refused(reader, str(value)) == (
            f"must be an integer from {minimum} to 100, got {str(value)!r}"
        )


@pytest.mark.parametrize("text", ["1.0", "1e3", "x", "", "nan"])
def test_integer_rejects_other_texts(text):
    assert refused(integer(2), text) == f"must be an integer of at least 2, got {text!r}"


@pytest.mark.parametrize(("text", "value"), [("1", 1), ("8", 8), ("-1", -1)])
def test_jobs_accepts_counts_of_joblib(text, value):
    assert jobs(text) == value


@pytest.mark.parametrize("text", ["0", "all", "1.5"])
def test_jobs_rejects_other_texts(text):
    assert "at least 1, or -1" in refused(jobs, text)
    assert repr(text) in refused(jobs, text)


def test_names_of_splits_at_commas_and_removes_duplicates():
    read = names_of(("cart", "gridex"), "extractor")
    assert read("gridex, cart,gridex,") == ("gridex", "cart")


@pytest.mark.parametrize("text", ["", " , "])
def test_names_of_rejects_empty_lists(text):
    assert refused(names_of(("cart",), "extractor"), text) == "needs at least one extractor"


def test_names_of_suggests_nearest_name():
    message = refused(names_of(("cart", "gridex"), "extractor"), "cart,gridx")
    assert message == ("there is no extractor 'gridx'. Did you mean 'gridex'? Known: cart, gridex.")


# Help ---------------------------------------------------------------------------------------------


def commands():
    parser = build_parser()
    (choice,) = (a for a in parser._actions if isinstance(a, argparse._SubParsersAction))
    return {"": parser, **choice.choices}


def test_commands_are_listed_in_order():
    assert list(commands()) == ["", *COMMANDS]
    assert list(COMMANDS) == [
        "tune",
        "score",
        "certify",
        "verify",
        "edit",
        "rules",
        "predict",
        "calibrate",
        "explain",
        "serve",
        "watch",
        "import",
        "report",
        "bench",
        "reproduce",
        "doctor",
        "completion",
    ]


def test_parser_lists_commands_without_imports():
    assert build_parser([]).format_help() == build_parser().format_help()


@pytest.mark.parametrize("name", ["", *COMMANDS])
def test_help_has_examples_and_explains_every_option(name):
    parser = commands()[name]
    text = parser.format_help()
    assert "examples:\n  skescore " in text
    for action in parser._actions:
        if not isinstance(action, argparse._SubParsersAction):
            assert action.help, action.option_strings
            assert action.help is not argparse.SUPPRESS
            for option in action.option_strings:
                assert option in text


@pytest.mark.parametrize("name", COMMANDS)
def test_help_states_defaults_of_parser(name):
    parser = commands()[name]
    promised = {
        "trials": 60,
        "cv": 5,
        "seed": 0,
        "n_jobs": 1,
        "psi": 1,
        "phi": 1,
        "rho": 1,
        "scoring": "ice",
        "black_box": "random-forest",
        "format": "text",
    }
    if name == "tune":
        promised |= {"n_jobs": None, "trials": 20}  # None also lets forests use all cores
    if name == "predict":
        promised["format"] = "csv"
    if name in ("certify", "edit", "score", "watch"):
        del promised["black_box"]  # the target by default
    for action in parser._actions:
        if action.dest in promised:
            assert (
                promised[action.dest] is None or f"default {promised[action.dest]}" in action.help
            )
            assert action.default == promised[action.dest]


# Scorers ------------------------------------------------------------------------------------------


def options(**changes):
    values = {
        "scoring": "ice",
        "reference": "data",
        "psi": 2.0,
        "phi": 3.0,
        "rho": 4.0,
        "completeness": "instances",
        "performance": None,
    }
    return argparse.Namespace(**values | changes)


def test_scorer_from_uses_weights_of_options():
    ice = scorer_from(options())
    assert (ice.name, ice.reference) == ("ice", "data")
    assert (ice.settings["phi"], ice.settings["rho"]) == (3.0, 4.0)
    assert ice.settings["completeness"] == "instances"
    fire = scorer_from(options(scoring="fire", reference="black-box"))
    assert (fire.name, fire.reference, fire.settings["psi"]) == ("neg_fire", "black_box", 2.0)
    q = scorer_from(options(scoring="q"))
    assert (q.name, q.settings["completeness"]) == ("neg_q", "instances")


def test_knowledge_scorer_from_uses_weights_of_options():
    settings = knowledge_scorer_from(options()).settings
    assert settings["fire"]["psi"] == 2.0
    assert (settings["ice"]["phi"], settings["ice"]["rho"]) == (3.0, 4.0)
    assert settings["q"]["completeness"] == settings["ice"]["completeness"] == "instances"


# Features -----------------------------------------------------------------------------------------


def test_check_features_rejects_constant_columns():
    X = pd.DataFrame({"one": np.ones(40), "two": np.full(40, 2)})
    y = pd.Series(["a", "b"] * 20, name="y")
    with pytest.raises(ValueError, match=r"data: every feature is constant \('one', 'two'\)"):
        check_features(Dataset(X, y, "classification", "data", "data.csv", ""))


@pytest.mark.parametrize("quiet", [False, True])
def test_notes_join_findings_into_one_message(quiet, capsys):
    notes = Notes(quiet=quiet)
    notes.add_findings("data", [])
    notes.add_findings("data", ["first", "second"])
    assert notes.texts == ["first", "second"]
    message = "skescore: note: about data:\n  - first\n  - second\n"
    assert capsys.readouterr().err == ("" if quiet else message)


@pytest.mark.parametrize("n_features", [8, 9])
def test_find_shortcomings_reports_long_equations(n_features):
    random = np.random.default_rng(0)
    X = pd.DataFrame(random.normal(size=(80, n_features))).add_prefix("x")
    y = X.sum(axis=1).rename("sum")
    spaces = {"gridrex": {"max_terms": CategoricalDistribution((None,))}}
    search = ExtractorSearchCV(LinearRegression(), extractors=["gridrex"], spaces=spaces, cv=2)
    search.set_params(n_trials=1, random_state=0).fit(X, y)
    dataset = Dataset(X, y, "regression", "data", "data.csv", "")
    text = "the equations of these rules have up to 9 terms: to shorten them"
    reported = [one.startswith(text) for one in find_shortcomings(dataset, search, [])]
    assert reported == [True] * (n_features == 9)


def test_notes_merge_the_same_conversion_of_many_columns():
    orders = itertools.permutations(["?", "1", "2", "3", "4", "5"])
    columns = dict(zip("abcd", orders, strict=False))
    findings = read_table(pd.DataFrame(columns)).findings
    notes = Notes(quiet=True)
    notes.add_findings("data", [*findings, "last"])
    first = "'?' in column 'a' is read as missing (1 row)"
    assert notes.texts == [f"{first}; likewise in 3 other columns: 'b', 'c', 'd'", "last"]
    assert len(findings) == 4
    notes.add_findings("data", findings[:3])
    assert notes.texts[2:] == list(findings[:3])
    codes = pd.DataFrame({name: [-9, -9, n, 5, 7, 7] for n, name in enumerate("abcd")})
    notes.add_findings("data", read_table(codes).findings)
    assert notes.texts[-1].endswith("--na-values=-9; likewise in 3 other columns: 'b', 'c', 'd'")


# Folds --------------------------------------------------------------------------------------------


def test_splitter_stratifies_despite_rare_classes(tmp_path):
    iris = load_dataset("iris")
    table = iris.X.assign(kind=iris.y)
    table.loc[[0, 60], "kind"] = ["unica", "unica"]
    dataset = load_dataset(table, target="kind")
    notes = Notes(quiet=True)
    folds = make_splitter(dataset, 5, 0, notes)
    with pytest.warns(UserWarning, match="least populated"):
        parts = list(folds.split(dataset.X, dataset.y))
    for _, test in parts:
        counts = dataset.y[test].value_counts()
        assert 9 <= counts["virginica"] <= 11
        assert 9 <= counts["setosa"] <= 11
    assert notes.texts == [
        "classes with fewer rows than there are folds (5): 'unica' (2); they are missing in some "
        "folds"
    ]


def test_splitter_uses_no_strata_for_rare_classes_only():
    table = pd.DataFrame({"a": np.arange(6) ** 2, "y": list("xyxyxy")})
    dataset = load_dataset(table, target="y")
    assert isinstance(make_splitter(dataset, 5, 0, Notes()), KFold)
    assert isinstance(make_splitter(dataset, 3, 0, Notes()), StratifiedKFold)


# Files --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "content", "kind"),
    [
        ("a.skops", "", "model"),
        ("a.PKL", "", "model"),
        ("a.joblib", "", "model"),
        ("a.txt", "", "rulekit"),
        ("a.rules", "", "rulekit"),
        ("a.csv", "", "table"),
        ("a.parquet", "", "table"),
        ("a.tsv", "", "table"),
        ("a.json", '{"format": "skescore.RuleSet"}', "rules"),
        ("a.json", '{"meta": {}, "rules": []}', "decision-rules"),
        ("a.json", '[{"rule": 1, "feature": "a", "operator": "<", "value": 1}]', "table"),
        ("a.json", '{"rule": [], "feature": [], "operator": [], "value": []}', "table"),
    ],
)
def test_find_kind_detects_file_types(name, content, kind, tmp_path):
    path = tmp_path / name
    path.write_text(content, encoding="utf-8")
    assert find_kind(path) == kind


def test_domain_of_covers_rows():
    rows = pd.DataFrame(
        {
            "number": [1.5, np.nan, -2.5],
            "flag": [True, False, True],
            "name": ["b", "a", None],
            "code": [7.0, 8.0, np.nan],
            "whole": [3, 4, 5],
        }
    )
    result = domain_of(rows, {"code"})
    expected = Domain.around(
        np.array([[1.5, 1, 0, 0, 3], [np.nan, 0, 1, 1, 4], [-2.5, 1, np.nan, np.nan, 5]]),
        categories={2: ["a", "b"], 3: ["7", "8"]},
    )
    assert result == expected
    for column, part in (([np.nan, np.nan], "has no values"), ([1.0, np.inf], "infinite values")):
        with pytest.raises(ValueError, match=part):
            domain_of(pd.DataFrame({"a": column}), set())


@pytest.mark.parametrize(
    ("text", "names"),
    [("a,b", ["a", "b"]), (" a , b c", ["a", "b c"]), ('"a,b",c', ["a,b", "c"]), ("a", ["a"])],
)
def test_names_from_splits_at_commas_outside_quotes(text, names):
    assert names_from(text) == names


# Worker processes and passwords -------------------------------------------------------------------


@pytest.mark.slow
def test_workers_note_a_failing_worker(capsys):
    notes = Notes()
    options = SimpleNamespace(
        workers=2, storage="kept.journal", command_line=["skescore", "tune", "nowhere.csv"]
    )
    with WorkerProcesses(options, TrialStorage("kept.journal", "a"), notes):
        pass
    [note] = notes.texts
    assert note.startswith("a worker failed: ")
    assert "nowhere.csv" in note
    assert capsys.readouterr().err == f"skescore: note: {note}\n"


@pytest.mark.parametrize("joined", [False, True])
def test_redact_passwords_hides_password_of_storage(joined):
    url = "postgresql://anna:geheim@db.example.org/studies?password=geheim"
    words = [f"--storage={url}"] if joined else ["--storage", url]
    command_line = redact_passwords(["skescore", "tune", "iris", *words, "--cv", "3"])
    assert "geheim" not in " ".join(command_line)
    hidden = "postgresql://anna:***@db.example.org/studies?password=***"
    assert command_line[-2:] == ["--cv", "3"]
    assert " ".join(command_line[3:-2]).replace("=", " ", int(joined)) == f"--storage {hidden}"


def test_redact_passwords_hides_password_of_table():
    command_line = redact_passwords(
        ["skescore", "tune", "postgresql://anna:geheim@host/db?table=t"]
    )
    assert command_line == ["skescore", "tune", "postgresql://anna:***@host/db?table=t"]


# Numbers in tables --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [
        (0.0, 3, "0.000"),
        (-0.0, 3, "0.000"),
        (1.0, 3, "1.000"),
        (0.97513, 4, "0.9751"),
        (-0.12, 3, "-0.120"),
        (9.9994, 3, "9.999"),
        (12.3456, 3, "12.35"),
        (117.3240, 4, "117.32"),
        (4009.446, 3, "4009"),
        (123456.7, 3, "123457"),
        (1234567.0, 3, "1.23e+06"),
        (0.00001234, 3, "1.23e-05"),
        (-0.0004, 3, "-0.0004"),
        (0.001, 3, "0.001"),
        (None, 3, "-"),
        (math.nan, 3, "-"),
        (math.inf, 3, "inf"),
        (-math.inf, 3, "-inf"),
    ],
)
def test_number_formats_values(value, digits, text):
    assert number(value, digits) == text


@given(st.floats(-1e9, 1e9), st.integers(2, 5))
def test_number_rounds_correctly(value, digits):
    size = abs(value)
    unit = 10.0**-digits
    if size >= 1e6 or size < unit:
        unit *= 10 * size
    else:
        unit *= max(1, size)
    assert abs(float(number(value, digits)) - value) <= 0.5 * unit * (1 + 1e-9)


@given(st.floats(allow_nan=False, allow_infinity=False).filter(lambda value: value != 0))
def test_number_never_prints_small_values_as_zero(value):
    assert float(number(value)) != 0


def test_plural_keeps_singular_of_one():
    assert [plural(n, "rule") for n in (0, 1, 2)] == ["0 rules", "1 rule", "2 rules"]


# JSON ---------------------------------------------------------------------------------------------


def test_to_json_converts_other_types():
    value = {
        1: np.float64(0.5),
        "i": np.int64(3),
        "b": np.bool_(True),
        "n": math.nan,
        "t": (1, [2.0]),
        "inf": -math.inf,
        "none": None,
        "text": "≤",
    }
    ready = json_ready(value)
    assert ready == {
        "1": 0.5,
        "i": 3,
        "b": True,
        "n": None,
        "t": [1, [2.0]],
        "inf": None,
        "none": None,
        "text": "≤",
    }
    assert type(ready["1"]) is float
    assert ready["b"] is True
    assert json.loads(to_json(value)) == ready


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_to_json_keeps_floats_exactly(value):
    assert json.loads(to_json({"v": np.float64(value)}))["v"] == value


@pytest.mark.parametrize("encoding", ["utf-8", "ascii", "cp1252"])
def test_json_for_stdout_is_valid_in_every_encoding(encoding, monkeypatch):
    value = {"name": "Länge ≤ 花弁 \N{GRINNING FACE} \udcff"}
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding=encoding, errors="skescore.plain")
    monkeypatch.setattr(sys, "stdout", stream)
    stream.write(json_for_stdout(value))
    stream.flush()
    assert json.loads(raw.getvalue().decode(encoding)) == value


@pytest.mark.parametrize(
    ("encoding", "expected"),
    [
        ("utf-8", "2 ≤ µ < 3, R² ± 1, 变"),
        ("ascii", r"2 <= \xb5 < 3, R2 +/- 1, \u53d8"),
        ("cp1252", r"2 <= µ < 3, R² ± 1, \u53d8"),
    ],
)
def test_encoding_handler_replaces_missing_signs(encoding, expected):
    text = "2 ≤ µ < 3, R² ± 1, 变"
    assert text.encode(encoding, "skescore.plain").decode(encoding) == expected


def test_encoding_handler_rejects_undecodable_bytes():
    with pytest.raises(UnicodeDecodeError):
        b"\xff".decode("utf-8", "skescore.plain")


# Text and Markdown --------------------------------------------------------------------------------

COLUMNS = ("", "name", "score", "more")
ROWS = [["1", "a|b", "0.5", "x=1, y=2"], ["10", "花弁", "12.25", ""]]


def made(markdown=False, width=None, monkeypatch=None):
    if width is not None:
        monkeypatch.setenv("COLUMNS", str(width))
    return Printer(markdown)


def test_printer_table_aligns_wide_characters():
    printer = made()
    printer.table(COLUMNS, ROWS, left=("name", "more"))
    lines = printer.text().splitlines()
    assert lines == ["    name  score  more", " 1  a|b     0.5  x=1, y=2", "10  花弁  12.25"]
    ends = [
        cell_len(line[: line.index(cell) + len(cell)])
        for line, cell in zip(lines, ("score", "0.5", "12.25"), strict=True)
    ]
    assert len(set(ends)) == 1


def test_printer_table_has_one_line_per_row_without_width():
    printer = made()
    printer.table(("a", "b"), [["x" * 300, "y" * 300]])
    assert len(printer.text().splitlines()) == 2


def test_printer_table_moves_last_column_below(monkeypatch):
    printer = made(width=40, monkeypatch=monkeypatch)
    long = "alpha=1, beta=2, gamma=3, delta=4, epsilon=5"
    printer.table(("n", "params"), [["1", long], ["2", "short"]], left=("params",))
    lines = printer.text().splitlines()
    assert lines[:3] == ["n", "   params", "1"]
    assert lines[-2:] == ["2", "   short"]
    assert " ".join(line.strip() for line in lines[3:-2]) == long
    assert max(map(len, lines)) <= 40


def test_printer_table_prints_sentences_on_narrow_terminal(monkeypatch):
    printer = made(width=40, monkeypatch=monkeypatch)
    columns = ["", "extractor", "score", "spread", "performance", "more"]
    printer.table(columns, [["1", "cart", "0.9751", "0.0006", "0.946", "x=1"]])
    lines = printer.text().splitlines()
    assert " ".join(line.strip() for line in lines) == (
        "1, extractor cart, score 0.9751, spread 0.0006, performance 0.946, more x=1"
    )
    assert max(map(len, lines)) <= 40


def test_printer_table_separates_cells_in_markdown():
    printer = made(markdown=True)
    printer.table(COLUMNS, ROWS, left=("name", "more"))
    assert printer.text() == (
        "|  | name | score | more |\n"
        "| --: | :-- | --: | :-- |\n"
        "| 1 | a\\|b | 0.5 | x=1, y=2 |\n"
        "| 10 | 花弁 | 12.25 |  |\n\n"
    )


def test_printer_separates_markdown_blocks():
    printer = made(markdown=True)
    printer.line("one")
    printer.line("two")
    printer.heading("three")
    printer.verbatim("IF a < b THEN *c*")
    assert printer.text() == "one\n\ntwo\n\n## three\n\n```text\nIF a < b THEN *c*\n```\n\n"


def test_printer_escapes_markdown_outside_words():
    printer = made(markdown=True)
    printer.line("*a* [b] <c> `d` _e_ max_leaf_nodes x|y \\")
    assert printer.text() == r"\*a\* \[b\] \<c> \`d\` \_e\_ max_leaf_nodes x\|y \\" + "\n\n"


def test_printer_lengthens_fences_around_backticks():
    printer = made(markdown=True)
    printer.verbatim("THEN ```x")
    assert printer.text() == "````text\nTHEN ```x\n````\n\n"


def test_printer_wraps_sentences_at_known_width_only(monkeypatch):
    text = "word " * 40 + "end"
    free = made()
    free.line(text)
    assert free.text() == text + "\n"
    narrow = made(width=50, monkeypatch=monkeypatch)
    narrow.line(text)
    lines = narrow.text().splitlines()
    assert max(map(len, lines)) <= 50
    assert " ".join(lines) == text


def test_printer_never_wraps_verbatim_text(monkeypatch):
    printer = made(width=40, monkeypatch=monkeypatch)
    text = "1. IF " + "a < 1 AND " * 20 + "b\n2. ELSE c"
    printer.verbatim(text)
    assert printer.text() == text + "\n"


@pytest.mark.parametrize("markdown", [False, True])
def test_printer_escapes_control_characters(markdown):
    printer = made(markdown)
    printer.line("a\x1b[31mb\nc\td\x9be")
    printer.heading("h\x1b]0;title\x07")
    printer.table(("a\x1b",), [["\x1b[2J\r"]])
    printer.verbatim("r\x1b[0m\x00")
    assert not set(printer.text()) & set(map(chr, [*range(10), *range(11, 32), *range(127, 160)]))
    assert r"x1b" in printer.text()
    assert r"\n" in printer.text().splitlines()[0]


def test_printer_prints_bold_headings_on_a_terminal_only(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    for name in ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE"):
        monkeypatch.delenv(name, raising=False)
    printer = made()
    printer.heading("best")
    assert printer.text() == "\nbest\n"
    monkeypatch.setattr(sys, "stdout", SimpleNamespace(isatty=lambda: True, encoding="utf-8"))
    printer = made(width=80, monkeypatch=monkeypatch)
    printer.heading("best")
    assert printer.text() == "\n\x1b[1mbest\x1b[0m\n"
    printer = made(markdown=True)
    printer.heading("best")
    assert printer.text() == "## best\n\n"


# Notes --------------------------------------------------------------------------------------------


def test_notes_count_equal_warnings(capsys):
    notes = Notes()
    with notes.instead_of_warnings("not .* this"):
        for _ in range(5):
            warnings.warn("does not converge", RuntimeWarning, stacklevel=1)
        warnings.warn("one rule says it all", UserWarning, stacklevel=1)
        warnings.warn("not even this", UserWarning, stacklevel=1)
        warnings.warn("for programmers", DeprecationWarning, stacklevel=1)
    assert notes.texts == [
        "RuntimeWarning: does not converge (5 times)",
        "one rule says it all",
    ]
    assert capsys.readouterr().err == "".join(f"skescore: note: {t}\n" for t in notes.texts)


def test_notes_show_few_warnings_and_keep_all(capsys):
    notes = Notes()
    with notes.instead_of_warnings():
        for position in range(20):
            warnings.warn(f"warning {position}", UserWarning, stacklevel=1)
    assert notes.texts == [f"warning {position}" for position in range(20)]
    lines = capsys.readouterr().err.splitlines()
    assert lines == [
        *(f"skescore: note: warning {position}" for position in range(3)),
        "skescore: note: 17 further warnings; --format json lists all",
    ]


def test_notes_keep_warnings_before_an_error(capsys):
    notes = Notes()

    def fails():
        with notes.instead_of_warnings():
            warnings.warn("look out", UserWarning, stacklevel=1)
            raise KeyError("x")

    with pytest.raises(KeyError):
        fails()
    assert notes.texts == ["look out"]
    assert capsys.readouterr().err == "skescore: note: look out\n"


def test_quiet_notes_are_not_printed(capsys):
    notes = Notes(quiet=True)
    notes.add("a note")
    with notes.instead_of_warnings():
        for position in range(5):
            warnings.warn(f"warning {position}", UserWarning, stacklevel=1)
    assert notes.texts[0] == "a note"
    assert len(notes.texts) == 6
    assert capsys.readouterr() == ("", "")


def test_model_of_a_run_rejects_devices():
    messages = {"name": "/dev/zero", "checksum_sha256": "0"}
    with pytest.raises(ValueError, match="a device or a pipe"):
        _load_model(argparse.Namespace(trust=False), messages)


def test_progress_names_the_work_before_trials(capsys: pytest.CaptureFixture[str]) -> None:
    class SlowTree(DecisionTreeClassifier):
        def fit(self, X: Any, y: Any) -> SlowTree:  # type: ignore[override]
            time.sleep(0.2)
            return super().fit(X, y)

    progress = SearchProgress(1, "ICE", seconds=0.05)
    X, y = load_iris(return_X_y=True)
    search = ExtractorSearchCV(
        SlowTree(), extractors=["cart"], n_trials=1, cv=2, callbacks=[progress]
    )
    with progress:
        search.fit(X, y)
    lines = capsys.readouterr().err.splitlines()
    assert "fitting the model, after 0 s" in lines
    assert re.match(r"\d+ trials of CART", lines[-1])


def test_digest_covers_all_options_that_change_trials() -> None:
    options = vars(build_parser().parse_args(["tune", "iris"]))
    named = {*_SEARCH_OPTIONS, *CONSTRAINT_NAMES, *_ROW_OPTIONS, *all_weights()}
    budgets = {"trials", "timeout", "max_queries", "allocation", *limited_quantities()}
    read_from_data = {"data", "target", "trust", "from_run"}
    processes = {"n_jobs", "workers", "storage", "study", "fresh", "exit_code", "parser", "run"}
    outputs = {"format", "quiet", "output", "overwrite", "report"}
    after_search = {
        *("certify", "keep_cost", "max_disagreement", "pick", "repeats", "standalone", "test"),
        *("tolerance", "verify", "witnesses"),
    }
    assert named | budgets | read_from_data | processes | outputs | after_search == options.keys()


def test_raw_table_keeps_zeros_of_classes(tmp_path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("x,y\n1,01\n2,02\n3,10\n", encoding="utf-8")
    options = build_parser().parse_args(["calibrate", str(tmp_path / "rules.json"), str(path)])
    classes = ["01", "02", "10"]
    rules = RuleSet([Rule([], "01")], ["x"], task="classification", classes=classes)
    table = raw_table(options, rules, str(path))
    assert table["y"].tolist() == classes
    assert table["x"].tolist() == [1, 2, 3]


def test_counts_of_a_million_rows_keep_all_digits():
    for rows, text in ((1_234_567.0, "1234567"), (1_234_567.5, "1234568"), (12.5, "12.5")):
        assert _count_text(rows) == text


def test_first_rules_are_followed_by_visibly_better_ones_only(capsys):
    follower = FirstRules(options(black_box="decision-tree"), {})
    data = argparse.Namespace(row_weights=None, fidelity_rows_label="held-out rows")
    search = argparse.Namespace(data_=data, estimator=DecisionTreeClassifier())
    follower.on_stage(search, "trials")
    study = argparse.Namespace(study_name="iris/gridex")
    for score in (0.9, None, 0.95, 0.95 + 1e-9, 0.94, 0.96):
        attrs = {"n_rules": 2, "correctness": 0.8, "fidelity": 0.9}
        if score is not None:
            attrs["score"] = score
        follower(study, SimpleNamespace(state=TrialState.COMPLETE, user_attrs=attrs, params={}))
    scores = re.findall(r"better: GridEx with 2 rules, ICE ([0-9.]+)", capsys.readouterr().err)
    assert scores == ["0.9500", "0.9600"]
