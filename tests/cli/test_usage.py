"""What is said of wrong usage, and what help looks like."""

from __future__ import annotations

import argparse

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skescore.cli import COMMANDS, build_parser, main
from skescore.cli._arguments import Parser, without_passwords

URL = "postgresql://anna:secret@host/studies"


@pytest.fixture
def wrong(capsys):
    """Call the command line wrongly; gives the one line that it says."""

    def wrong(*words):
        with pytest.raises(SystemExit) as stop:
            main(words)
        assert stop.value.code == 2
        out, err = capsys.readouterr()
        assert out == ""
        line, hint = err.splitlines()
        assert hint.startswith("Try 'skescore")
        return line

    return wrong


def parsers():
    def inner(parser):
        yield parser
        for action in parser._actions:
            if isinstance(action, argparse._SubParsersAction):
                for choice in action.choices.values():
                    yield from inner(choice)

    return list(inner(build_parser()))


PROGS = [parser.prog for parser in parsers()]


# Did you mean -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["tun", "iris"], "COMMAND: invalid choice: 'tun'. Did you mean 'tune'? Known: bench,"),
        (["benhc"], "Did you mean 'bench'?"),
        (["reproduce", "fires"], "TABLE: invalid choice: 'fires'. Did you mean 'fire'? Known:"),
        (["tune", "iris", "--format", "jsn"], "invalid choice: 'jsn'. Did you mean 'json'?"),
        (["tune", "iris", "--task", "regresion"], "Did you mean 'regression'?"),
        (["rules", "r.json", "--to", "SQL"], "invalid choice: 'SQL'. Did you mean 'sql'?"),
        (["completion", "fsh"], "Did you mean 'fish'?"),
        (["completion", "cmd"], "invalid choice: 'cmd'. Known: bash, fish, tcsh, zsh."),
        (["reproduce", "ice", "--split", "3"], "no option --split. Did you mean '--splits'?"),
        (["reproduce", "ice", "--data", "wines"], "no data set 'wines'. Did you mean 'wine'?"),
        (["reproduce"], "the following arguments are required: TABLE"),
    ],
)  # fmt: skip
def test_the_nearest_name_is_told(words, told, wrong):
    assert told in wrong(*words)


def test_choices_that_are_no_text():
    parser = Parser(prog="x")
    parser.add_argument("--depth", type=int, choices=(1, 2))
    assert parser.parse_args(["--depth", "2"]).depth == 2
    with pytest.raises(SystemExit):
        parser.parse_args(["--depth", "3"])


# Passwords ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "words",
    [
        ["tune", "--storge", URL],
        ["tune", "iris", "--storge", URL],
        ["tune", "iris", f"--storge={URL}"],
        ["tune", "iris", f"--storage:{URL}"],
        ["--storage", URL, "tune", "iris"],
        ["tune", "iris", URL],
        ["tune", "iris", "--format", URL],
        ["tune", "iris", "--trials", URL],
        ["tune", "iris", "--scoring", URL],
        ["tune", "iris", "--extractors", URL],
        ["bench", "--suite", URL],
        ["score", "r.json", "iris", "--storage", URL],
    ],
)
def test_no_password_is_told_back(words, capsys):
    with pytest.raises(SystemExit) as stop:
        main(words)
    assert stop.value.code == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err
    assert "secret" not in err


def test_no_password_in_the_error_of_a_data_file(capsys):
    assert main(["tune", URL]) == 1
    _, err = capsys.readouterr()
    assert "postgresql://anna:***@host/studies" in err
    assert "secret" not in err


words = st.text(st.characters(exclude_characters="\n\r \t", codec="utf-8"), min_size=3)


@given(words, st.sampled_from(["postgresql", "mysql+pymysql", "grpc"]))
def test_passwords_of_any_signs_are_hidden(password, scheme):
    secret = f"<{password}>"
    text = without_passwords(f"too many arguments: '{scheme}://anna:{secret}@host/db'")
    assert text == f"too many arguments: '{scheme}://anna:***@host/db'"


@pytest.mark.parametrize(
    "text",
    [
        "'sqlite:///study.db' is no file",
        "grpc://host:13000",
        "postgresql://anna@host/db",
        "--trials: must be an integer of at least 1, got 'a:b@c'",
    ],
)
def test_texts_without_passwords_stay(text):
    assert without_passwords(text) == text


def test_passwords_among_the_options_of_a_url():
    text = without_passwords("x postgresql://host/db?user=anna&password=secret&ssl=1 y")
    assert text == "x postgresql://host/db?user=anna&password=***&ssl=1 y"


# Help ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("columns", [80, 100, 250])
@pytest.mark.parametrize("prog", PROGS)
def test_help_fits_the_page(prog, columns, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(columns))
    (parser,) = [parser for parser in parsers() if parser.prog == prog]
    text = parser.format_help()
    wide = [x for x in text.splitlines() if len(x) > min(columns, 102)]
    # Examples are to be copied, so they stay in one line; choices have no place to break.
    assert [x for x in wide if not x.startswith("  ")] == []
    assert [x for x in wide if "skescore" not in x and "{" not in x] == []


def test_wrapping_keeps_examples_and_breaks_between_paragraphs(monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    parser = Parser(
        prog="x",
        description="word " * 20 + "\n\nshort\nlines",
        epilog="examples:\n  skescore " + "word " * 10,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    text = parser.format_help()
    assert "word word\nword word" in text.replace("word word word word word ", "")
    assert "\n\nshort\nlines\n" in text
    assert "examples:\n  skescore " + "word " * 10 in text


def test_lines_that_only_the_code_has_broken_are_joined(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    full = (
        "Turn a black box into rules that a person can read, and choose the best trade-off between"
    )
    end = "Show the rules of a model, whatever it is made of, on a page, and save them for"
    end += "\n`skescore score run/rules.json`."
    parser = Parser(
        prog="x",
        description=f"{full}\nsurprisingly few errors,\nand\n\n{end}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    text = parser.format_help()
    assert "the best\ntrade-off between surprisingly few errors,\nand\n\n" in text
    assert "save them\nfor `skescore score run/rules.json`." in text


def test_words_with_hyphens_are_not_torn(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    for parser in parsers():
        text = parser.format_help().partition("\n\n")[2]
        assert [line for line in text.splitlines() if line.endswith("-")] == []


@pytest.mark.parametrize("columns", ["80", "120"])
def test_commands_and_what_they_do_stand_in_one_line(columns, monkeypatch):
    monkeypatch.setenv("COLUMNS", columns)
    lines = build_parser().format_help().splitlines()
    starts = set()
    for name, (_, summary) in COMMANDS.items():
        (line,) = [line for line in lines if line.split()[:1] == [name]]
        assert " ".join(line.split()) == f"{name} {summary}"
        starts.add(line.index(summary))
    assert len(starts) == 1


@pytest.mark.parametrize("prog", PROGS)
def test_examples_are_understood(prog):
    (parser,) = [parser for parser in parsers() if parser.prog == prog]
    lines = parser.epilog.splitlines()
    examples = [line for line in lines if line.startswith("  skescore ")]
    assert lines[0] == "examples:"
    assert len(examples) >= 2
    whole = build_parser()
    for example in examples:
        for command in example.split("&&"):
            words = command.partition(" > ")[0].split()
            assert words[0] == "skescore"
            if words[1] != "help":
                assert whole.parse_args(words[1:]).run


@pytest.mark.parametrize("words", [[], ["tune"], ["reproduce"], ["reproduce", "ice"]])
def test_help_as_a_command_is_the_option(words, capsys):
    texts = []
    for arguments in (["help", *words], [*words, "--help"]):
        with pytest.raises(SystemExit) as stop:
            main(arguments)
        assert stop.value.code == 0
        texts.append(capsys.readouterr().out)
    assert texts[0] == texts[1]
    assert texts[0].startswith(" ".join(["usage: skescore", *words]))


def test_every_command_is_listed_with_its_own_line():
    text = build_parser([]).format_help()
    for name, (_, summary) in COMMANDS.items():
        assert f"    {name}" in text
        assert " ".join(summary.split()) in " ".join(text.split())
