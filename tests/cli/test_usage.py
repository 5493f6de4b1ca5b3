"""Messages about wrong usage, and the layout of the help."""

from __future__ import annotations

import argparse
import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from skescore.cli import COMMANDS, build_parser, main

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


# Suggestions --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["tun", "iris"], "there is no command 'tun'. Did you mean 'tune'? Known: bench,"),
        (["benhc"], "Did you mean 'bench'?"),
        (["reproduce", "fires"], "TABLE: invalid choice: 'fires' (choose from"),
        (["tune", "iris", "--format", "jsn"], "invalid choice: 'jsn' (choose from"),
        (["tune", "iris", "--trails=4", "x"], "no option --trails. Did you mean '--trials'?"),
        (["tune", "iris", "my wine"], "too many arguments: 'my wine' (an option takes one value;"),
        (["reproduce", "ice", "--split", "3"], "no option --split. Did you mean '--splits'?"),
        (["reproduce", "ice", "--data", "wines"], "no data set 'wines'. Did you mean 'wine'?"),
        (["reproduce"], "the following arguments are required: TABLE"),
    ],
)
def test_messages_suggest_nearest_name(words, message, wrong):
    assert message in wrong(*words)


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
def test_messages_hide_passwords(words, capsys):
    with pytest.raises(SystemExit) as stop:
        main(words)
    assert stop.value.code == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err
    assert "secret" not in err


def test_data_file_error_hides_password(capsys):
    assert main(["tune", URL, "--target", "y"]) == 1
    _, err = capsys.readouterr()
    assert "postgresql://host/studies" in err
    assert "secret" not in err


@pytest.mark.parametrize("scheme", ["postgresql", "mysql+pymysql", "grpc"])
@pytest.mark.parametrize("password", ["<p:a/s@s>", "'p\"w'", "ä ö"])
def test_messages_hide_passwords_with_any_characters(password, scheme, wrong):
    line = wrong("tune", "iris", f"--storge={scheme}://anna:{password}@host/db", "x")
    assert password not in line
    line = wrong("tune", "iris", f"{scheme}://anna:{password}@host/db")
    assert f"{scheme}://anna:***@host/db" in line


@pytest.mark.parametrize(
    "text", ["sqlite:///study.db", "grpc://host:13000", "postgresql://anna@host/db", "a:b@c"]
)
def test_messages_keep_texts_without_passwords(text, wrong):
    assert text in wrong("tune", "iris", text)


def test_messages_hide_passwords_in_queries_of_urls(wrong):
    line = wrong("tune", "iris", "postgresql://host/db?user=anna&password=secret&ssl=1")
    assert "postgresql://host/db?user=anna&password=***&ssl=1" in line


# Help ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("columns", [80, 100, 250])
@pytest.mark.parametrize("prog", PROGS)
def test_help_fits_the_page(prog, columns, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(columns))
    (parser,) = [parser for parser in parsers() if parser.prog == prog]
    text = parser.format_help()
    wide = [x for x in text.splitlines() if len(x) > min(columns, 102)]
    # Examples can be copied, so they stay in one line; choices cannot be wrapped.
    assert [x for x in wide if not x.startswith("  ")] == []
    assert [x for x in wide if "skescore" not in x and "{" not in x] == []


@pytest.mark.parametrize("columns", ["80", "120"])
def test_usage_lists_command_and_summary(columns, monkeypatch):
    monkeypatch.setenv("COLUMNS", columns)
    lines = build_parser().format_help().splitlines()
    starts = set()
    for name, (_, summary) in COMMANDS.items():
        (line,) = [line for line in lines if line.split()[:1] == [name]]
        assert " ".join(line.split()) == f"{name} {summary}"
        starts.add(line.index(summary))
    assert len(starts) == 1


@pytest.mark.parametrize("prog", PROGS)
def test_examples_can_be_parsed(prog):
    (parser,) = [parser for parser in parsers() if parser.prog == prog]
    lines = parser.epilog.splitlines()
    examples = [line for line in lines if line.startswith("  skescore ")]
    assert lines[0] == "examples:"
    assert len(examples) >= 2
    whole = build_parser()
    for example in examples:
        for command in example.split("&&"):
            words = command.partition(" > ")[0].replace("watch init", "watch --init").split()
            assert words[0] == "skescore"
            if words[1] != "help":
                assert whole.parse_args(words[1:]).run


@pytest.mark.parametrize("words", [[], ["tune"], ["reproduce"], ["reproduce", "ice"]])
def test_help_command_equals_help_option(words, capsys):
    texts = []
    for arguments in (["help", *words], [*words, "--help"]):
        with pytest.raises(SystemExit) as stop:
            main(arguments)
        assert stop.value.code == 0
        texts.append(capsys.readouterr().out)
    assert texts[0] == texts[1]
    assert texts[0].startswith(" ".join(["usage: skescore", *words]))


def test_help_lists_every_command_with_its_summary():
    text = build_parser([]).format_help()
    for name, (_, summary) in COMMANDS.items():
        assert f"    {name}" in text
        assert " ".join(summary.split()) in " ".join(text.split())


#: Heavier than the command line.
HEAVY = ("numpy", "scipy", "sklearn", "pandas", "optuna", "rich", "joblib", "skescore.scorers")
_PROGRAM = """
import json, sys
from skescore.cli import build_parser, main
build_parser().format_help()
codes = []
for words in json.loads(sys.argv[1]):
    try:
        codes.append(main(words))
    except SystemExit as stop:
        codes.append(stop.code)
print(json.dumps([codes, [name for name in {heavy!r} if name in sys.modules]]))
"""


def test_help_and_usage_errors_import_nothing_heavy(tmp_path: Path) -> None:
    codes = {
        "tune --help": 0,
        "tune iris --trails 5": 2,
        "tune iris --extractors crat": 2,
        "tune iris --scoring icee": 2,
        "score rules.json iris --measures c3": 2,
        "bench --suite smok": 2,
        "reproduce brex --methods brexit": 2,
        "tune no_such_file.csv": 1,
        "tune iris --test no_such_file.csv": 1,
        "tune iris --black-box no_such_model.skops": 1,
        "score no_such_rules.json wine": 1,
        "predict no_such_rules.json wine": 1,
        "import no_such_model.skops": 1,
        "report no_such_run": 1,
        "bench --data iris,no_such_file.csv": 1,
        "bench": 2,
        "tune iris --workers 0": 2,
        "score rules.json iris --assigned-rows": 1,
    }
    run = subprocess.run(
        [
            sys.executable,
            "-c",
            _PROGRAM.format(heavy=HEAVY),
            json.dumps([words.split() for words in codes]),
        ],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
    )
    result, loaded = json.loads(run.stdout.splitlines()[-1])
    assert dict(zip(codes, result, strict=True)) == codes
    assert loaded == []
    errors = [line for line in run.stderr.splitlines() if ": error: " in line]
    for line, part in zip(
        errors,
        (
            "no option --trails",
            "Did you mean 'cart'",
            "Did you mean 'ice'",
            "measure of rules",
            "Did you mean 'smoke'",
            "no method 'brexit'",
            "nor an existing file. Known: breast",
            "nor an existing file. Known: breast",
            "'no_such_model.skops' does not exist.",
            "no file no_such_rules.json; pass the rules.json",
            "no file no_such_rules.json",
            "no file no_such_model.skops; pass a model or rules",
            "no folder no_such_run. Name",
            "'no_such_file.csv' is neither",
            "name a benchmark",
            "--storage is required",
            "no file rules.json",
        ),
        strict=True,
    ):
        assert part in line


def test_errors_escape_control_characters(tmp_path, capsys):
    """Control characters in names of a file are printed as escapes."""
    path = tmp_path / "data.csv"
    path.write_text("a\x1b]0;owned\x07,b\u202e,y\n" + "1,2,0\n" * 5 + "1,x,1\n" * 5)
    for words in (["--target", "z"], ["--target", "y", "--drop", "nothing"]):
        assert main(["tune", str(path), *words]) == 1
        message = capsys.readouterr().err
        assert "\\x1b]0;owned\\x07" in message
        assert not {"\x1b", "\x07", "\u202e"} & set(message)


def test_storage_error_lists_known_forms(capsys):
    words = [
        "tune",
        "iris",
        "--black-box",
        "decision-tree",
        "--trials",
        "3",
        "--extractors",
        "cart",
    ]
    assert main([*words, "--storage", "redis://anna:secret@host/0"]) == 1
    message = capsys.readouterr().err
    assert "secret" not in message
    for form in ("redis://anna:***@host", "journal:///", "sqlite:///", "mysql://", "grpc://host"):
        assert form in message


def test_measures_option_accepts_rules_and_rule_sets():
    words = ["tune", "iris", "--measures", "c2,overlap, neg_redundant_rules,min_rule_c2,stability"]
    assert build_parser().parse_args(words).measures == (
        "mean_rule_c2",
        "neg_overlap",
        "neg_redundant_rules",
        "min_rule_c2",
        "stability",
    )


# Standard output ----------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="needs a shell")
@pytest.mark.parametrize("command", ["doctor", "--version"])
@pytest.mark.parametrize(
    ("output", "message"), [(">&-", "standard output is closed"), ("| true", "")]
)
def test_unwritable_output_is_an_error(command: str, output: str, message: str) -> None:
    if command == "--version" and not message:
        pytest.skip("argparse writes the version")
    script = f"set -o pipefail; {shlex.quote(sys.executable)} -m skescore {command} {output}"
    result = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False)
    assert result.returncode == 1
    assert message in result.stderr
    assert bool(message) == ("error" in result.stderr)
