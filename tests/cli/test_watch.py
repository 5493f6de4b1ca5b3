"""Watching rules from the command line: baselines, batches, late labels and interruptions."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.tree import DecisionTreeClassifier

from skescore.cli import main
from skescore.monitoring import RuleBaseline, WatchState
from skescore.rules import Domain, Interval, OneOf, Rule, RuleSet

RULES = RuleSet(
    [
        Rule([Interval(0, upper=30), OneOf(1, ("a", "b"))], "no"),
        Rule([Interval(0, upper=60)], "yes"),
        Rule([], "no"),
    ],
    ["age (y)", "kind", "unused"],
    task="classification",
    ordered=True,
    domain=Domain((0, 0, 0), (100, 3, 1), [(1, ("a", "b", "c"))]),
)


def table(n: int, seed: int, errors: tuple[float, ...] = (0.1, 0.1, 0.1)) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"age (y)": rng.integers(0, 100, n), "kind": rng.choice(list("abc"), n)})
    rule = RULES.assign(X.assign(unused=0.0))
    y = np.where((rule == 1) ^ (rng.random(n) < np.array(errors)[rule]), "yes", "no")
    return X.assign(id=[f"{seed}-{i}" for i in range(n)], answer=y)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write rules and an initialized state to the current folder."""
    monkeypatch.chdir(tmp_path)
    Path("rules.json").write_text(RULES.to_json(), encoding="utf-8")
    table(3000, 0).to_csv("held out.csv", index=False)
    assert watch("init", "rules.json", "held out.csv", target="answer") == 0
    return tmp_path


def watch(*words: str, target: str | None = None, **options: Any) -> int:
    """Run the command with fixed times, so that states are comparable."""
    arguments = ["watch", *words, "--state", "state.json", "--time", "noon"]
    for name, value in {"target": target, **options}.items():
        if value is not None:
            arguments += [f"--{name.replace('_', '-')}", *([] if value is True else [str(value)])]
    return main(arguments)


def state() -> dict[str, Any]:
    result: dict[str, Any] = json.loads(Path("state.json").read_text(encoding="utf-8"))
    return result


def test_watch_names_the_changed_rule(folder: Path, capsys) -> None:
    table(1000, 1).to_csv("monday.csv", index=False)
    table(1500, 2, (0.1, 0.3, 0.1)).to_csv("tuesday.csv", index=False)
    assert watch("rules.json", "monday.csv", target="answer") == 0
    outputs = {"page": "page.html", "prometheus": "metrics.prom", "format": "json"}
    capsys.readouterr()
    assert watch("rules.json", "tuesday.csv", target="answer", **outputs) == 3
    result = json.loads(capsys.readouterr().out)
    assert set(result["changed"]) <= {"rule 2", "all rows"}
    change = result["changes"][0]
    assert 850 <= change["since"]["row"] <= 1150
    assert "ELSE IF age (y) ≤ 60 THEN yes" in change["text"]
    page = Path("page.html").read_text(encoding="utf-8")
    assert page.count('<tr class="changed">') == len(result["changed"])
    metrics = Path("metrics.prom").read_text(encoding="utf-8")
    assert 'skescore_alarm{rule="rule 2",kind="error"} 1\n' in metrics
    assert 'skescore_alarm{rule="rule 1",kind="error"} 0\n' in metrics
    assert Path("state.json").stat().st_size < 100_000


def test_watch_counts_a_batch_once(folder: Path, capsys) -> None:
    table(500, 1).to_csv("rows.csv", index=False)
    assert watch("rules.json", "rows.csv", target="answer") == 0
    before = state()
    assert watch("rules.json", "rows.csv", target="answer") == 0
    assert "counted before" in capsys.readouterr().err
    assert state() == before
    assert watch("rules.json", "rows.csv", target="answer", batch="again") == 0
    assert state()["monitor"]["n_rows"] == 1000


def test_watch_reports_keys_with_several_labels(folder: Path, capsys) -> None:
    table(3, 3).drop(columns="answer").to_csv("rows.csv", index=False)
    Path("labels.csv").write_text("id,answer\n3-0,no\n3-0,yes\n3-1,no\n3-1,no\n")
    assert watch("rules.json", "rows.csv", key="id") == 0
    assert watch("rules.json", "labels.csv", key="id", target="answer", labels=True) == 0
    assert "1 label of repeated keys replaced" in capsys.readouterr().err
    assert state()["monitor"]["n_labels"] == 2


def test_watch_matches_keys_with_leading_zeros_in_other_formats(folder: Path) -> None:
    rows = table(50, 3).assign(id=[f"{i:03d}" for i in range(50)])
    rows.drop(columns="answer").to_csv("rows.csv", index=False)
    rows[["id", "answer"]].to_parquet("labels.parquet")
    assert watch("rules.json", "rows.csv", key="id") == 0
    assert watch("rules.json", "labels.parquet", key="id", target="answer", labels=True) == 0
    assert state()["monitor"]["n_labels"] == 50


def test_watch_matches_keys_that_look_like_powers_of_ten(folder: Path) -> None:
    rows = table(2, 3).assign(id=["12e4", "ab12"])
    rows.drop(columns="answer").to_csv("rows.csv", index=False)
    rows[["id", "answer"]].iloc[:1].to_csv("labels.csv", index=False)
    assert watch("rules.json", "rows.csv", key="id") == 0
    assert watch("rules.json", "labels.csv", key="id", target="answer", labels=True) == 0
    assert state()["monitor"]["n_labels"] == 1


def test_watch_matches_late_labels_by_key(folder: Path, capsys) -> None:
    rows = table(800, 3, (0.5, 0.1, 0.1))
    rows.drop(columns="answer").to_csv("rows.csv", index=False)
    labels = rows[["answer", "id"]].sample(frac=1.0, random_state=0)
    labels.iloc[:500].to_csv("one.csv", index=False)
    # Labels that came before and those of unknown rows are ignored.
    pd.concat([labels.iloc[400:], pd.DataFrame({"id": ["?"], "answer": ["no"]})]).to_csv(
        "two.csv", index=False
    )
    assert watch("rules.json", "rows.csv", key="id") == 0
    options = {"key": "id", "target": "answer", "labels": True}
    watch("rules.json", "one.csv", **options)
    capsys.readouterr()
    watch("rules.json", "two.csv", **options)
    assert "101 labels of 401 match no row" in capsys.readouterr().err
    late = state()["monitor"]
    assert late["n_labels"] == 800
    rows.to_csv("prompt.csv", index=False)
    watch("init", "rules.json", "held out.csv", target="answer", overwrite=True)
    watch("rules.json", "prompt.csv", target="answer")
    histories = [[e["counts"] for e in s["history"]] for s in (late, state()["monitor"])]
    assert histories[0] == histories[1]


@pytest.mark.slow
def test_watch_counts_rows_without_a_label(folder: Path, capsys) -> None:
    rows = table(100, 1)
    rows.loc[:9, "answer"] = None
    rows.to_csv("rows.csv", index=False)
    capsys.readouterr()
    assert watch("rules.json", "rows.csv", target="answer") == 0
    note = "note: 10 of 100 rows have no label in column 'answer' and do not count for errors"
    assert note in capsys.readouterr().err
    watch("rules.json", "rows.csv", target="answer", key="id", batch="waiting")
    assert "10 of 100 rows have no label in column 'answer' and wait for" in capsys.readouterr().err


def test_watch_ignores_labels_that_tune_reads_as_missing(folder: Path, capsys) -> None:
    rows = table(300, 1)
    rows["answer"] = rows["answer"] + np.where(rows.index % 3 == 0, "  ", "")
    rows["answer"] = rows["answer"].mask(rows.index % 10 == 0, "?")
    rows["answer"] = rows["answer"].mask(rows.index % 10 == 1, "unlabeled")
    rows.to_csv("batch.csv", index=False)
    options = {"na_values": "unlabeled", "format": "json"}
    assert watch("rules.json", "batch.csv", target="answer", **options) == 0
    result = json.loads(capsys.readouterr().out)
    assert (result["rows"], result["labels"]) == (300, 240)


def test_watch_starts_from_the_baseline_of_tune(tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    for number, name in enumerate(["old", "new", "bad"]):
        errors = (0.4, 0.4, 0.4) if name == "bad" else (0.05, 0.05, 0.05)
        table(1500, number, errors).drop(columns="id").to_csv(f"{name}.csv", index=False)
    options = ["--extractors", "cart", "--trials", "2", "--black-box", "decision-tree", "--quiet"]
    assert main(["tune", "old.csv", "--target", "answer", *options, "--output", "run"]) == 0
    assert main(["watch", "run/rules.json", "new.csv", "--alpha", "0.01"]) == 0
    assert "1500 rows and 1500 labels so far; no change" in capsys.readouterr().out
    assert json.loads(Path("run/watch.json").read_text())["monitor"]["alpha"] == 0.01
    assert main(["watch", "run/rules.json", "bad.csv"]) == 3
    with pytest.raises(SystemExit):
        main(["watch", "run/rules.json", "new.csv", "--alpha", "0.5", "--batch", "again"])
    assert "settings of the first update" in capsys.readouterr().err
    # The rows of --test are held out from everything.
    more = ["--test", "new.csv", "--output", "run", "--overwrite"]
    assert main(["tune", "old.csv", "--target", "answer", *options, *more]) == 0
    baseline = RuleBaseline.from_json(Path("run/baseline.json").read_text())
    assert baseline.origin == "held-out rows"
    new = pd.read_csv("new.csv")
    rules = RuleSet.from_json(Path("run/rules.json").read_text())
    n_wrong = (rules.predict(new[["age (y)", "kind"]]) != new["answer"]).sum()
    assert baseline.counts.n_errors.sum() == n_wrong


@pytest.mark.parametrize("source", ["stdin", "parquet"])
def test_watch_reads_other_sources(folder: Path, monkeypatch, source: str) -> None:
    rows = table(600, 4)
    if source == "parquet":
        Path("parts").mkdir()
        rows.iloc[:100].to_parquet("parts/1.parquet")
        rows.iloc[100:].to_parquet("parts/2.parquet")
        assert watch("rules.json", "parts", target="answer", batch="May") == 0
    else:
        rows.to_csv("rows.csv", index=False)
        with open("rows.csv", encoding="utf-8") as file:
            monkeypatch.setattr(sys, "stdin", file)
            assert watch("rules.json", "-", target="answer") == 0
    counts = np.array([e["counts"] for e in state()["monitor"]["history"]]).sum(axis=0)
    y = np.asarray(RULES.predict(rows.assign(unused=0.0)))
    assert counts[0].sum() == counts[1].sum() == 600
    assert counts[2].sum() == (y != rows["answer"]).sum()


@pytest.mark.parametrize("kind", ["rows", "labels"])
def test_interrupted_update_is_undone(folder: Path, monkeypatch, kind: str) -> None:
    rows = table(300, 5)
    rows.drop(columns="answer").to_csv("rows.csv", index=False)
    rows.to_csv("labels.csv", index=False)
    other = table(100, 6).drop(columns="answer")
    other.to_csv("other.csv", index=False)

    def update_all(*, interrupted: bool) -> dict[str, Any]:
        watch("init", "rules.json", "held out.csv", target="answer", overwrite=True)
        options = [
            ("rows.csv", {"key": "id"}),
            ("labels.csv", {"key": "id", "target": "answer", "labels": True}),
            ("other.csv", {"key": "id"}),
        ]
        for file, option in options:
            if interrupted and file.startswith(kind):
                with monkeypatch.context() as patch:
                    patch.setattr(WatchState, "write", lambda self: 1 / 0)
                    assert watch("rules.json", file, **option) == 1
            watch("rules.json", file, **option)
        return state()

    assert update_all(interrupted=True) == update_all(interrupted=False)


def test_alarm_command_runs_until_it_succeeds(folder: Path, capfd) -> None:
    table(2000, 7, (0.9, 0.9, 0.9)).to_csv("rows.csv", index=False)
    program = "import sys; open('alarm.json', 'w').write(sys.stdin.read()); sys.exit({})"
    fails, works = (f'{sys.executable} -c "{program.format(code)}"' for code in (1, 0))
    assert watch("rules.json", "rows.csv", target="answer", on_alarm=fails) == 3
    assert "exit code 1" in capfd.readouterr().err
    Path("alarm.json").unlink()
    assert watch("rules.json", "rows.csv", target="answer", on_alarm=works) == 3
    assert json.loads(Path("alarm.json").read_text())[0]["kind"] == "error"
    Path("alarm.json").unlink()
    assert watch("rules.json", "rows.csv", target="answer", on_alarm=works) == 3
    assert not Path("alarm.json").exists()


@pytest.mark.parametrize(
    ("words", "options", "text"),
    [
        (["rules.json", "held out.csv"], {"labels": True}, "--labels needs --key and --target"),
        (["rules.json", "duckdb:///x.db?table=t"], {}, "rows in a source need --batch"),
        (["rules.json", "held out.csv"], {"alpha": 0.1}, "settings of the first update"),
        (["rules.json", "held out.csv"], {"overwrite": True}, "only allowed with `watch init`"),
        (["rules.json", "held out.csv"], {"target": "reply"}, "has no column 'reply'"),
        (["rules.json", "held out.csv"], {"target": "kind"}, "is a class of the rules"),
        (["init", "rules.json", "held out.csv"], {}, "already exists"),
        (["rules.json", "held out.csv"], {"key": "kind"}, "are repeated"),
    ],
)
def test_watch_reports_wrong_usage(folder: Path, capsys, words, options, text) -> None:
    with contextlib.suppress(SystemExit):
        assert watch(*words, **options) == 1
    assert text in capsys.readouterr().err


def test_watch_rejects_the_state_of_other_rules(folder: Path, capsys) -> None:
    Path("others.json").write_text(RULES[:2].to_json(), encoding="utf-8")
    assert watch("others.json", "held out.csv", target="answer") == 1
    assert "other rules" in capsys.readouterr().err
    Path("state.json").write_text("{", encoding="utf-8")
    assert watch("rules.json", "held out.csv", target="answer") == 1
    assert "not a usable state file" in capsys.readouterr().err


@pytest.mark.slow
def test_killed_updates_neither_lose_nor_repeat_rows(folder: Path) -> None:
    rows = table(20_000, 8)
    for part in range(2):
        rows.iloc[part * 10_000 : (part + 1) * 10_000].to_csv(f"rows{part}.csv", index=False)
        rows[["id", "answer"]].iloc[part * 10_000 : (part + 1) * 10_000].to_csv(
            f"labels{part}.csv", index=False
        )
    steps: list[list[str]] = []
    for part in range(2):
        steps.append([f"rows{part}.csv", "--key", "id"])
        steps.append([f"labels{part}.csv", "--key", "id", "--target", "answer", "--labels"])
    for step in steps:
        assert main(command(step)) == 0
    expected = state()
    watch("init", "rules.json", "held out.csv", target="answer", overwrite=True)
    started = time.monotonic()
    assert subprocess.run([sys.executable, "-m", "skescore", *command(steps[0])]).returncode == 0
    seconds = time.monotonic() - started
    watch("init", "rules.json", "held out.csv", target="answer", overwrite=True)
    rng = np.random.default_rng(0)
    for step in steps:
        for _ in range(2):
            process = subprocess.Popen([sys.executable, "-m", "skescore", *command(step)])
            try:
                process.wait(float(rng.uniform(0.3, 1.2)) * seconds)
            except subprocess.TimeoutExpired:
                os.kill(process.pid, signal.SIGKILL)
                process.wait()
        assert subprocess.run([sys.executable, "-m", "skescore", *command(step)]).returncode == 0
    assert state() == expected


def command(step: list[str]) -> list[str]:
    return ["watch", "rules.json", *step, "--state", "state.json", "--time", "noon"]


@pytest.mark.parametrize(
    ("columns", "text"),
    [
        (["kind", "age (y)", "unused"], "in another order"),
        (["age (y)", "size", "unused"], "different features"),
        (["age (y)", "kind", "unused"], "lacks the feature 'unused'"),
    ],
)
def test_watch_rejects_a_model_of_other_columns(folder: Path, capsys, columns, text) -> None:
    rows = table(200, 1).assign(size=1.0, unused=0.0)
    codes = rows.assign(kind=rows["kind"].map({"a": 0, "b": 1, "c": 2}))
    joblib.dump(DecisionTreeClassifier().fit(codes[columns], rows["answer"]), "model.joblib")
    rows = rows.drop(columns="unused") if "lacks" in text else rows
    rows.to_csv("monday.csv", index=False)
    assert watch("rules.json", "monday.csv", black_box="model.joblib", trust=True) == 1
    assert text in capsys.readouterr().err
