"""`skescore tune --from RUN --since DATE`: earlier rules that are revised on new rows."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from skescore.cli import main
from skescore.rules import Interval, RuleSet

N = 1200
TUNE = ["--extractors", "cart", "--trials", "2", "--black-box", "decision-tree", "--quiet"]


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a run on the first half of a table; the rule on young people changes later."""
    folder = tmp_path_factory.mktemp("original")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "when": pd.date_range("2026-01-01", periods=2 * N, freq="h").strftime("%d.%m.%Y %H:%M"),
            "age": rng.integers(18, 90, 2 * N),
            "job": rng.choice(list("abc"), 2 * N),
        }
    )
    buys = np.where(frame["age"] < 40, False, frame["job"] == "b")
    buys[N:] |= (frame["age"] < 40)[N:] & (frame["job"] == "c")[N:]
    frame["buys"] = np.where(buys ^ (rng.random(2 * N) < 0.03), "yes", "no")
    frame.iloc[:N].to_csv(folder / "old.csv", index=False)
    frame.to_csv(folder / "all.csv", index=False)
    words = [
        str(folder / "old.csv"),
        "--target",
        "buys",
        "--time",
        "when",
        "--max-rules",
        "8",
        *TUNE,
    ]
    words += [*TUNE, "--scoring", "accuracy", "--output", str(folder / "run")]
    assert main(["tune", *words]) == 0
    return folder


@pytest.fixture
def folder(original: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Copy the run to the current folder."""
    shutil.copytree(original, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run_of(name: str) -> tuple[RuleSet, dict[str, Any]]:
    rules = RuleSet.from_json(Path(name, "rules.json").read_text(encoding="utf-8"))
    return rules, json.loads(Path(name, "run.json").read_text(encoding="utf-8"))


@pytest.mark.slow
def test_tune_from_a_run_revises_its_rules(folder: Path, capsys) -> None:
    since = ["--since", "20.02.2026"]
    words = ["tune", "all.csv", "--from", "run", *since, "--keep-cost", "0.05"]
    capsys.readouterr()
    assert main([*words, "--output", "revised", "--n-jobs", "1"]) == 0
    out = capsys.readouterr().out
    old, _ = run_of("run")
    rules, about = run_of("revised")
    # Options of the earlier run apply, and only rows since the date are used.
    assert about["search"]["scoring"] == "accuracy"
    assert about["search"]["max_rules"] == 8
    assert about["data"]["rows"] == 2 * N - 24 * 50
    assert about["data"]["reading"]["since"] == "20.02.2026"
    revision = about["revision"]
    assert revision["is_accepted"]
    assert revision["from"] == "run"
    texts = [str(rule.conditions) + str(rule.output) for rule in rules]
    for k, line in enumerate(revision["rules"][: len(old)]):
        assert f"{line['rule']} is {line['status']}" in out
        if line["status"] == "kept":
            text = str(old.rules[k].conditions) + str(old.rules[k].output)
            assert texts[line["new_rules"][0] - 1] == text
    again = [line for line in revision["rules"] if line["status"] == "extracted again"]
    assert again
    assert all("error" in line["reason"] for line in again)
    new = pd.read_csv("all.csv").iloc[-900:].assign(**{"when: hour": 0, "when: weekday": 0})
    errors = [(np.asarray(r.predict(new)) != new["buys"]).mean() for r in (old, rules)]
    assert errors[1] < errors[0] - 0.05


@pytest.mark.slow
def test_revised_rules_satisfy_constraints(folder: Path, capsys) -> None:
    words = ["tune", "all.csv", "--from", "run", "--since", "20.02.2026", "--keep-cost", "1"]
    assert main([*words, "--thresholds", "age:30,40,50", "--output", "revised"]) == 0
    out = capsys.readouterr().out
    rules, about = run_of("revised")
    bounds = {
        bound
        for rule in rules
        for condition in rule.conditions
        if isinstance(condition, Interval) and rules.feature_names[condition.feature] == "age"
        for bound in (condition.lower, condition.upper)
    }
    assert bounds <= {30.0, 40.0, 50.0, -np.inf, np.inf}
    assert about["revision"]["is_accepted"]
    assert "violates thresholds: age" in out
    assert any("is violated" in text for text in about["revision"]["violations"])


@pytest.mark.slow
def test_revised_rules_can_be_reported_watched_and_revised(folder: Path, capsys) -> None:
    since = ["--time", "when", "--since", "20.02.2026"]
    words = ["tune", "all.csv", "--from", "run", *since, "--keep-cost", "0.05", "--report"]
    assert main([*words, "--output", "revised"]) == 0
    rules, _ = run_of("revised")
    page = Path("revised", "report.html").read_text(encoding="utf-8")
    assert "revised" in page
    assert main(["watch", "revised/rules.json", "old.csv", "--alpha", "1e-300"]) == 0
    assert main(["tune", "--from", "revised", "--since", "1.3.2026", "--output", "third"]) == 0
    third, about = run_of("third")
    assert about["data"]["source"] == "all.csv"
    assert about["search"]["scoring"] == "accuracy"
    assert {line["status"] for line in about["revision"]["rules"]} == {"kept"}
    assert [r.conditions for r in third] == [r.conditions for r in rules]


@pytest.mark.slow
def test_revision_replaces_rules_that_cost_too_much(folder: Path, capsys) -> None:
    """No alarm requires new rules, but any cost is too much, so new rules replace all."""
    baseline = json.loads(Path("run/baseline.json").read_text())
    counts = baseline["counts"]
    counts["n_errors"] = [n // 3 for n in counts["n_labeled"]]
    Path("run/baseline.json").write_text(json.dumps(baseline))
    words = ["tune", "all.csv", "--from", "run", "--since", "2026-02-20", "--keep-cost", "0"]
    assert main([*words, "--output", "new", "--format", "json"]) == 0
    revision = run_of("new")[1]["revision"]
    assert {line["status"] for line in revision["rules"]} == {"replaced"}
    assert revision["cost"] > 0
    assert not revision["is_accepted"]
    assert run_of("new")[1]["best"]["extractor"] == "cart"


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["tune"], "the following arguments are required: DATA"),
        (["tune", "all.csv", "--target", "buys", "--since", "1.3.2026"], "needs --time COLUMN"),
        (["tune", "all.csv", "--target", "buys", "--keep-cost", "1"], "needs --from"),
        (["tune", "--from", "nowhere"], "nowhere"),
        (["tune", "--from", "."], "is not the folder of a run"),
        (["tune", "all.csv", "--from", "run", "--since", "soon"], "since must be a date"),
        (["tune", "all.csv", "--from", "run", "--since", "1.1.2030"], "leaves 0 of 2400 rows"),
        (["tune", "all.csv", "--from", "run", "--output", "run"], "must differ from the folder"),
        (["tune", "--from", "run", "--keep-cost", "-1"], "must be a number of at least 0"),
    ],
)
def test_revision_reports_wrong_usage(folder: Path, capsys, words, text) -> None:
    code = 1
    try:
        code = main(words)
    except SystemExit as stop:
        code = int(stop.code or 0)
    assert code in (1, 2)
    assert text in capsys.readouterr().err


def test_run_without_baseline_cannot_be_revised(folder: Path, capsys) -> None:
    Path("run/baseline.json").unlink()
    assert main(["tune", "all.csv", "--from", "run", "--since", "2026-02-20"]) == 1
    assert "has no baseline.json" in capsys.readouterr().err
