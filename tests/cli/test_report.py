"""``skescore report`` and ``tune --report``: from the command line to the page."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest

from skescore.cli import main
from skescore.datasets import load_dataset
from skescore.report import read_candidates
from skescore.rules import RuleSet

SHORT = (
    "iris",
    "--black-box",
    "decision-tree",
    "--trials",
    "6",
    "--cv",
    "2",
    "--extractors",
    "cart,gridex",
    "--quiet",
)


def content_of(path: Path) -> dict:
    search = re.search(
        r'id="content">(.*?)</script>', path.read_text(encoding="utf-8"), flags=re.DOTALL
    )
    return json.loads(search[1])


@pytest.fixture
def run(capsys):
    """Call the command line; gives the exit code and standard error."""

    def run(*words):
        try:
            code = main([str(word) for word in words])
        except SystemExit as stop:
            code = stop.code
        return code, capsys.readouterr().err

    return run


@pytest.fixture
def report(run):
    return lambda *words: run("report", *words)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Return the folder of a run with its page."""
    folder = tmp_path_factory.mktemp("tune") / "run"
    assert main(["tune", *SHORT, "--output", str(folder), "--report"]) == 0
    return folder


@pytest.fixture
def folder(made, tmp_path):
    copy = tmp_path / "run"
    shutil.copytree(made, copy)
    (copy / "report.html").unlink()
    return copy


def test_tune_writes_the_page_and_all_candidates(made) -> None:
    names = {"rules.json", "leaderboard.csv", "candidates.json", "run.json", "report.html"}
    assert names <= {path.name for path in made.iterdir()}
    restored = read_candidates((made / "candidates.json").read_text())
    run = json.loads((made / "run.json").read_text())
    best = restored.candidates[restored.winner]
    assert (best.extractor, best.params) == (run["best"]["extractor"], run["best"]["params"])
    assert restored.candidates.scores("ice").mean(axis=1)[restored.winner] == pytest.approx(
        run["best"]["score"], rel=1e-12
    )
    content = content_of(made / "report.html")
    assert content["groups"][0]["winner"] == restored.winner
    assert len(content["groups"][0]["candidates"]) == len(restored.candidates)


def test_report_equals_page_of_search(made, folder, report) -> None:
    code, err = report(folder)
    assert code == 0
    assert re.fullmatch(r"wrote .*report\.html \(\d\.\d MB\)\n", err)
    then, now = content_of(made / "report.html"), content_of(folder / "report.html")
    # Computed again from the data, black box and seeds in the run.
    assert now == then
    rules = RuleSet.from_json((made / "rules.json").read_text())
    winner = str(now["groups"][0]["winner"])
    assert RuleSet.from_json(json.dumps(now["views"][winner]["set"])) == rules
    assert report(folder, "--quiet") == (0, "")  # its own file is replaced


def test_report_omits_rules_of_other_candidates_without_time(folder, report) -> None:
    report(folder, "--time-limit", 0, "--output", folder / "short.html")
    content = content_of(folder / "short.html")
    (group,) = content["groups"]
    offered = {str(one["place"]) for one in group["alternatives"]}  # run.json holds their rules
    assert set(content["views"]) == {str(group["winner"]), *offered}
    assert content["rows"]["total"] == 150


def test_data_option_replaces_rows_of_the_run(folder, report, tmp_path) -> None:
    iris = load_dataset("iris")
    path = tmp_path / "some.csv"
    iris.X.assign(more=1.0, species=iris.y).iloc[::3].to_csv(path, index=False)
    assert report(folder, "--data", path)[0] == 0
    content = content_of(folder / "report.html")
    rules = RuleSet.from_json((folder / "rules.json").read_text())
    winner = str(content["groups"][0]["winner"])
    n_matches = rules.match(iris.X.iloc[::3]).sum(axis=0)
    np.testing.assert_array_equal(content["views"][winner]["holds"], n_matches)
    assert content["rows"]["total"] == 50
    assert any("not from the data of the search" in note for note in content["notes"])


def test_report_rejects_unusable_files_and_folders(folder, report, tmp_path) -> None:
    page = tmp_path / "page.html"
    assert report(folder, "--output", page)[0] == 0
    code, err = report(folder, "--output", page)
    assert (code, "already exists" in err) == (1, True)
    assert report(folder, "--output", page, "--overwrite")[0] == 0
    code, err = report(tmp_path / "nothing")
    assert (code, "There is no folder" in err) == (1, True)
    (tmp_path / "empty").mkdir()
    code, err = report(tmp_path / "empty", "--data", "iris")
    assert code == 2
    assert "only allowed with the folder of a run" in err
    assert report(folder, "--time-limit", "-1")[0] == 2


def test_report_compares_two_runs_on_one_page(made, folder, report) -> None:
    code, err = report(made, folder)
    assert (code, "comparison.html" in err) == (0, True)
    page = made / "comparison.html"
    assert "Both make the same prediction for 150 of 150 rows." in page.read_text(encoding="utf-8")
    assert content_of(page)["names"] == ["run (A)", "run (B)"]
    code, err = report(made, folder, made)
    assert (code, "argument RUN_DIR: one or two folders, got 3" in err) == (2, True)
    code, err = report(made, folder, "--data", "iris")
    assert (code, "argument --data: only allowed with one folder" in err) == (2, True)


def test_report_notes_missing_or_changed_black_box(folder, report, tmp_path) -> None:
    path = folder / "run.json"
    run = json.loads(path.read_text())
    run["black_box"] |= {
        "name": str(tmp_path / "gone.skops"),
        "trained_here": False,
        "checksum_sha256": "0",
    }
    path.write_text(json.dumps(run))
    code, err = report(folder)
    assert code == 0
    assert "gone.skops was not loaded, so only the winner's rules are shown" in err
    (tmp_path / "gone.skops").write_bytes(b"other")
    assert "it has changed since the run" in report(folder)[1]


def test_report_option_needs_a_folder_and_respects_files(run, tmp_path) -> None:
    code, err = run("tune", *SHORT, "--report")
    assert code == 2
    assert "argument --report: needs the files in the folder of --output" in err
    code, err = run("tune", *SHORT, "--output", tmp_path / "a", "--report", tmp_path / "b" / "c")
    assert (code, "there is no folder" in err) == (1, True)
    assert not (tmp_path / "a").exists()
    page = tmp_path / "page.html"
    page.write_text("mine")
    code, err = run("tune", *SHORT, "--output", tmp_path / "a", "--report", page)
    assert (code, "already contains" in err) == (1, True)
    assert page.read_text() == "mine"
