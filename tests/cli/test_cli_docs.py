"""docs/cli.md describes every command, option, file and environment variable."""

from __future__ import annotations

import argparse
import re
import tomllib
from pathlib import Path

import pytest
from loaded_files import load_file

import skescore
from skescore.bench import config_from, row_columns
from skescore.cli import COMMANDS

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def writer():
    return load_file(ROOT / "docs" / "cli_options.py")


def test_documented_options_match_parsers(writer, monkeypatch):
    # The page does not depend on the width of a terminal.
    for columns in ("80", "200"):
        monkeypatch.setenv("COLUMNS", columns)
        assert writer.filled(PAGE) == PAGE, "run: python docs/cli_options.py"


def test_cli_docs_have_a_section_per_command(writer):
    described = re.findall(r"<!-- options of (.+?) -->", PAGE)
    assert sorted(described) == sorted(writer.parsers())
    headings = re.findall(r"^#+ (skescore.*)$", PAGE, flags=re.MULTILINE)
    assert headings == ["skescore on the command line", *described]
    assert {f"skescore {name}" for name in COMMANDS} < set(described)


def test_cli_docs_describe_every_option(writer):
    for prog, parser in writer.parsers().items():
        section = PAGE.partition(f"<!-- options of {prog} -->")[2].partition("<!-- end -->")[0]
        for action in parser._actions:
            if isinstance(action, argparse._SubParsersAction | argparse._HelpAction):
                continue
            for name in action.option_strings or [action.metavar or action.dest]:
                (line,) = [x for x in section.splitlines() if re.match(f"- .*`{name}`.*: ..", x)]
                assert "%" not in line or "% " in line, line  # placeholders are filled in


def test_cli_docs_name_every_value():
    assert not re.findall(r"^- `.*`{?}?`:", PAGE, flags=re.MULTILINE)
    assert "- `--name` `NAME`: python, javascript" in PAGE  # argparse derives it from the option


def test_cli_docs_describe_every_environment_variable():
    package = Path(skescore.__file__).parent
    text = "".join(path.read_text(encoding="utf-8") for path in package.rglob("*.py"))
    read = set(re.findall(r"environ(?:\.get\(|\[)\"([A-Z_]+)\"", text))
    read -= {"PATH"}  # all commands have it
    assert not {name for name in read if f"`{name}`" not in PAGE}


@pytest.mark.parametrize("code", [0, 1, 2])
def test_cli_docs_describe_exit_codes(code):
    assert re.search(rf"^\| {code} \| \w+", PAGE, flags=re.MULTILINE)


def test_cli_docs_show_a_valid_bench_configuration(tmp_path):
    (source,) = re.findall(r"```toml\n(.*?)```", PAGE, flags=re.DOTALL)
    for name in ("houses.csv", "model.skops", "rules.json"):
        (tmp_path / name).touch()
    config = config_from(tomllib.loads(source), base=tmp_path)
    assert [entry.label for entry in config.extractors][:2] == ["4 slices", "by hand"]
    assert config.seeds == (0, 1)


def test_documented_columns_match_bench():
    text = re.search(r"^Columns of a row: (.*?)\n\n", PAGE, flags=re.DOTALL | re.MULTILINE)[1]
    assert re.findall(r"`(\w+)`", text) == list(row_columns())
