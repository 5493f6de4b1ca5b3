"""The README does what it says."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import optuna
import pytest

from skescore.cli import main

ROOT = Path(__file__).parent.parent
PAGES = {name: (ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "docs/guide.md")}


def _blocks(language: str, page: str = "README.md") -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGES[page], flags=re.DOTALL)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("page", "number"), [(page, n) for page in PAGES for n in range(len(_blocks("python", page)))]
)
def test_python_examples_run(page, number, capsys, monkeypatch, tmp_path):
    source = _blocks("python", page)[number]
    monkeypatch.chdir(tmp_path)  # what an example writes is not to be met by the next run
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        exec(compile(source, page, "exec"), {})
    finally:
        optuna.logging.set_verbosity(before)
    shown = capsys.readouterr().out
    assert "IF " in shown if page == "README.md" else shown.strip()


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page):
    here = (ROOT / page).parent
    targets = re.findall(r"\]\(([^)#\s]+)", PAGES[page])
    assert targets
    for target in targets:
        assert "://" in target or (here / target).exists(), target


def test_ci_runs_the_test_command_of_the_readme():
    script = ROOT / ".ci" / "run"
    command = _blocks("bash")[1].strip()
    assert command.endswith("tox")
    assert command in script.read_text(encoding="utf-8").splitlines()
    assert os.access(script, os.X_OK)


@pytest.mark.slow
def test_first_command_finds_good_rules(capsys):
    """At least 0.965 cross-validated ICE on wine, as the project promises."""
    words = _blocks("bash")[0].strip().split("&& ")[-1].split()
    assert words[0] == ".venv/bin/skescore"
    assert main([*words[1:], "--format", "json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["best"]["score"] >= 0.965
    assert len(result["leaderboard"]) == 60
