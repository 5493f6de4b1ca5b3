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
README = (ROOT / "README.md").read_text(encoding="utf-8")


def _blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, flags=re.DOTALL)


@pytest.mark.parametrize("source", _blocks("python"))
def test_python_examples_run(source, capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)  # what an example writes is not to be met by the next run
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        exec(compile(source, "README.md", "exec"), {})
    finally:
        optuna.logging.set_verbosity(before)
    assert "IF " in capsys.readouterr().out


def test_ci_runs_the_test_command_of_the_readme():
    script = ROOT / ".ci" / "run"
    command = _blocks("bash")[1].strip()
    assert command.endswith("tox")
    assert command in script.read_text(encoding="utf-8").splitlines()
    assert os.access(script, os.X_OK)


def test_first_command_finds_good_rules(capsys):
    """At least 0.965 cross-validated ICE on wine, as the project promises."""
    words = _blocks("bash")[0].strip().split("&& ")[-1].split()
    assert words[0] == ".venv/bin/skescore"
    assert main([*words[1:], "--format", "json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["best"]["score"] >= 0.965
    assert len(result["leaderboard"]) == 60
