from __future__ import annotations

import io
import json
import math
import sys
import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from skescore.cli._output import (
    Notes,
    Printer,
    json_for_stdout,
    json_ready,
    number,
    plural,
    to_json,
)


@pytest.fixture(autouse=True)
def width_is_unknown(monkeypatch):
    """Whatever the terminal in which the tests run."""
    monkeypatch.delenv("COLUMNS", raising=False)


# Numbers ------------------------------------------------------------------------------------------


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
def test_numbers_in_tables(value, digits, text):
    assert number(value, digits) == text


@given(st.floats(-1e9, 1e9), st.integers(2, 5))
def test_numbers_in_tables_are_right_to_the_digits_shown(value, digits):
    size = abs(value)
    unit = 10.0**-digits
    if size >= 1e6 or size < unit:
        unit *= 10 * size
    else:
        unit *= max(1, size)
    assert abs(float(number(value, digits)) - value) <= 0.5 * unit * (1 + 1e-9)


@given(st.floats(allow_nan=False, allow_infinity=False).filter(lambda value: value != 0))
def test_what_is_not_zero_does_not_look_like_zero(value):
    assert float(number(value)) != 0


def test_one_thing_is_no_plural():
    assert [plural(n, "rule") for n in (0, 1, 2)] == ["0 rules", "1 rule", "2 rules"]


# JSON ---------------------------------------------------------------------------------------------


def test_what_json_does_not_know_is_replaced():
    value = {
        1: np.float64(0.5), "i": np.int64(3), "b": np.bool_(True), "n": math.nan, "t": (1, [2.0]),
        "inf": -math.inf, "none": None, "text": "≤",
    }  # fmt: skip
    ready = json_ready(value)
    assert ready == {
        "1": 0.5, "i": 3, "b": True, "n": None, "t": [1, [2.0]], "inf": None, "none": None,
        "text": "≤",
    }  # fmt: skip
    assert type(ready["1"]) is float
    assert ready["b"] is True
    assert json.loads(to_json(value)) == ready


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_floats_travel_through_json_unchanged(value):
    assert json.loads(to_json({"v": np.float64(value)}))["v"] == value


@pytest.mark.parametrize("encoding", ["utf-8", "ascii", "cp1252"])
def test_json_is_valid_in_every_encoding(encoding, monkeypatch):
    value = {"name": "Länge ≤ 花弁 \N{GRINNING FACE} \udcff"}
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding=encoding, errors="skescore.plain")
    monkeypatch.setattr(sys, "stdout", stream)
    stream.write(json_for_stdout(value))
    stream.flush()
    assert json.loads(raw.getvalue().decode(encoding)) == value


@pytest.mark.parametrize(
    ("encoding", "shown"),
    [
        ("utf-8", "2 ≤ µ < 3, R² ± 1, 变"),
        ("ascii", r"2 <= \xb5 < 3, R2 +/- 1, \u53d8"),
        ("cp1252", r"2 <= µ < 3, R² ± 1, \u53d8"),
    ],
)
def test_signs_that_the_encoding_lacks_keep_their_meaning(encoding, shown):
    text = "2 ≤ µ < 3, R² ± 1, 变"
    assert text.encode(encoding, "skescore.plain").decode(encoding) == shown


def test_encoding_handler_does_not_hide_what_cannot_be_read():
    with pytest.raises(UnicodeDecodeError):
        b"\xff".decode("utf-8", "skescore.plain")


# Text and Markdown --------------------------------------------------------------------------------

COLUMNS = ("", "name", "score", "more")
ROWS = [["1", "a|b", "0.5", "x=1, y=2"], ["10", "花弁", "12.25", ""]]


def made(markdown=False, width=None, monkeypatch=None):
    if width is not None:
        monkeypatch.setenv("COLUMNS", str(width))
    return Printer(markdown)


def test_table_is_aligned_also_with_wide_characters_and_ends_without_blanks():
    printer = made()
    printer.table(COLUMNS, ROWS, left=("name", "more"))
    lines = printer.text().splitlines()
    assert lines == ["    name  score  more", " 1  a|b     0.5  x=1, y=2", "10  花弁  12.25"]
    ends = [cell_len(line[: line.index(cell) + len(cell)]) for line, cell in
            zip(lines, ("score", "0.5", "12.25"), strict=True)]  # fmt: skip
    assert len(set(ends)) == 1


def test_table_without_known_width_has_one_line_per_row():
    printer = made()
    printer.table(("a", "b"), [["x" * 300, "y" * 300]])
    assert len(printer.text().splitlines()) == 2


def test_last_column_goes_below_where_there_is_no_room(monkeypatch):
    printer = made(width=40, monkeypatch=monkeypatch)
    long = "alpha=1, beta=2, gamma=3, delta=4, epsilon=5"
    printer.table(("n", "params"), [["1", long], ["2", "short"]], left=("params",))
    lines = printer.text().splitlines()
    assert lines[:3] == ["n", "   params", "1"]
    assert lines[-2:] == ["2", "   short"]
    assert " ".join(line.strip() for line in lines[3:-2]) == long
    assert max(map(len, lines)) <= 40


def test_rows_become_sentences_on_a_very_narrow_terminal(monkeypatch):
    printer = made(width=40, monkeypatch=monkeypatch)
    columns = ["", "extractor", "score", "spread", "performance", "more"]
    printer.table(columns, [["1", "cart", "0.9751", "0.0006", "0.946", "x=1"]])
    lines = printer.text().splitlines()
    assert " ".join(line.strip() for line in lines) == (
        "1, extractor cart, score 0.9751, spread 0.0006, performance 0.946, more x=1"
    )
    assert max(map(len, lines)) <= 40


def test_markdown_table_keeps_its_cells_apart():
    printer = made(markdown=True)
    printer.table(COLUMNS, ROWS, left=("name", "more"))
    assert printer.text() == (
        "|  | name | score | more |\n"
        "| --: | :-- | --: | :-- |\n"
        "| 1 | a\\|b | 0.5 | x=1, y=2 |\n"
        "| 10 | 花弁 | 12.25 |  |\n\n"
    )


def test_markdown_paragraphs_and_headings_stand_apart():
    printer = made(markdown=True)
    printer.line("one")
    printer.line("two")
    printer.heading("three")
    printer.verbatim("IF a < b THEN *c*")
    assert printer.text() == "one\n\ntwo\n\n## three\n\n```text\nIF a < b THEN *c*\n```\n\n"


def test_markdown_signs_in_names_are_escaped_but_not_inside_of_words():
    printer = made(markdown=True)
    printer.line("*a* [b] <c> `d` _e_ max_leaf_nodes x|y \\")
    assert printer.text() == r"\*a\* \[b\] \<c> \`d\` \_e\_ max_leaf_nodes x\|y \\" + "\n\n"


def test_code_block_cannot_be_ended_by_its_content():
    printer = made(markdown=True)
    printer.verbatim("THEN ```x")
    assert printer.text() == "````text\nTHEN ```x\n````\n\n"


def test_sentences_are_wrapped_only_where_the_width_is_known(monkeypatch):
    text = "word " * 40 + "end"
    free = made()
    free.line(text)
    assert free.text() == text + "\n"
    narrow = made(width=50, monkeypatch=monkeypatch)
    narrow.line(text)
    lines = narrow.text().splitlines()
    assert max(map(len, lines)) <= 50
    assert " ".join(lines) == text


def test_verbatim_text_is_never_wrapped(monkeypatch):
    printer = made(width=40, monkeypatch=monkeypatch)
    text = "1. IF " + "a < 1 AND " * 20 + "b\n2. ELSE c"
    printer.verbatim(text)
    assert printer.text() == text + "\n"


@pytest.mark.parametrize("markdown", [False, True])
def test_terminal_does_not_obey_names_of_columns(markdown):
    printer = made(markdown)
    printer.line("a\x1b[31mb\nc\td\x9be")
    printer.heading("h\x1b]0;title\x07")
    printer.table(("a\x1b",), [["\x1b[2J\r"]])
    printer.verbatim("r\x1b[0m\x00")
    assert not set(printer.text()) & set(map(chr, [*range(10), *range(11, 32), *range(127, 160)]))
    assert r"x1b" in printer.text()
    assert r"\n" in printer.text().splitlines()[0]


def test_headings_are_bold_on_a_terminal_only(monkeypatch):
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


def test_equal_warnings_are_noted_once_with_their_number(capsys):
    notes = Notes()
    with notes.instead_of_warnings("not .* this") as further:
        for _ in range(5):
            warnings.warn("does not converge", RuntimeWarning, stacklevel=1)
        warnings.warn("one rule says it all", UserWarning, stacklevel=1)
        warnings.warn("not even this", UserWarning, stacklevel=1)
        warnings.warn("for programmers", DeprecationWarning, stacklevel=1)
        further.append("one rule says it all")
    assert notes.texts == [
        "RuntimeWarning: does not converge (5 times)",
        "one rule says it all (2 times)",
    ]
    assert capsys.readouterr().err == "".join(f"skescore: note: {t}\n" for t in notes.texts)


def test_many_different_warnings_do_not_flood_the_terminal_but_are_all_kept(capsys):
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


def test_warnings_before_an_error_are_not_lost(capsys):
    notes = Notes()

    def fails():
        with notes.instead_of_warnings():
            warnings.warn("look out", UserWarning, stacklevel=1)
            raise KeyError("x")

    with pytest.raises(KeyError):
        fails()
    assert notes.texts == ["look out"]
    assert capsys.readouterr().err == "skescore: note: look out\n"


def test_quiet_notes_are_only_kept(capsys):
    notes = Notes(quiet=True)
    notes.add("a note")
    with notes.instead_of_warnings():
        for position in range(5):
            warnings.warn(f"warning {position}", UserWarning, stacklevel=1)
    assert notes.texts[0] == "a note"
    assert len(notes.texts) == 6
    assert capsys.readouterr() == ("", "")
