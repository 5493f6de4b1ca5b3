from __future__ import annotations

import contextlib
import csv
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time

import joblib
import pandas as pd
import psutil
import pytest
from sklearn.tree import DecisionTreeClassifier

from skescore._quantities import measured_quantities
from skescore.bench import config_from, csv_text, read_rows, run_bench
from skescore.cli import main
from skescore.datasets import load_dataset

SMALL = [
    "bench",
    "--data",
    "iris,wine,diabetes",
    "--black-boxes",
    "decision-tree",
    "--extractors",
    "cart,gridrex",
    "--folds",
    "2",
]


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("COLUMNS", raising=False)
    return tmp_path / "cache" / "skescore" / "bench"


@pytest.fixture(scope="module")
def measured_once(tmp_path_factory):
    folder = tmp_path_factory.mktemp("measured")
    assert main([*SMALL, "--output", str(folder), "--quiet"]) == 0
    return folder


@pytest.fixture
def measured(measured_once, tmp_path):
    """Return the folder of a finished run, for tests of its output."""
    return shutil.copytree(measured_once, tmp_path / "out")


def usage_error(capsys, *words):
    with pytest.raises(SystemExit) as error:
        main(list(words))
    assert error.value.code == 2
    return capsys.readouterr().err


def test_bench_prints_tables_ranks_and_verdict(run, cache):
    code, out, err = run(*SMALL)
    assert code == 0
    assert out.startswith("bench: 3 data sets × 1 model × 2 extractors, 1 seed × 2 folds: 8 ro")
    assert "iris (150 rows, 4 features); decision-tree: weighted F1 0." in out
    assert "diabetes (442 rows, 10 features); decision-tree: R² " in out
    assert "regression: ranks by ICE over 1 data set" in out
    assert "There is only one data set" in out
    assert "There is only one extractor, so there is nothing to compare." in out
    assert "gridrex is skipped on iris, wine: it is for regression only" in err
    assert err.splitlines()[-1].startswith("8 of 8 rows, ")
    assert list(cache.iterdir()) == []  # no file remains


def test_measures_are_columns_of_bench(run, tmp_path):
    words = [
        "bench",
        "--data",
        "iris",
        "--black-boxes",
        "decision-tree",
        "--extractors",
        "cart",
        "--folds",
        "1",
        "--measures",
        "overlap,fidelity_uniform",
        "--output",
    ]
    code, out, _ = run(*words, str(tmp_path / "out"))
    assert code == 0
    assert "neg_overlap" in out
    rows = read_rows(tmp_path / "out" / "rows.csv")
    assert rows["fidelity_uniform"].between(0, 1).all()
    code, _, err = run(*words, str(tmp_path / "out"), "--measures", "overlap")
    assert code == 1
    assert "rows.csv" in err


@pytest.mark.slow
def test_bench_means_equal_means_of_rows(run, tmp_path):
    _, out, _ = run(*SMALL, "--output", str(tmp_path / "out"), "--format", "json")
    result = json.loads(out)
    rows = read_rows(tmp_path / "out" / "rows.csv")
    assert len(result["rows_measured"]) == len(rows) == 8
    first = result["summary"][0]
    some = rows[(rows["data"] == "iris") & (rows["extractor"] == "cart")]
    assert first["ice_mean"] == pytest.approx(some["ice"].mean())
    assert result["ranked_by"] == "ice"
    assert result["rankings"][1]["extractors"][0]["extractor"] in ("cart", "gridrex")
    assert result["run"]["command_line"][:2] == ["skescore", "bench"]
    recorded = json.loads((tmp_path / "out" / "run.json").read_text())
    assert recorded["configuration"] == result["configuration"]
    # Again: nothing to measure, the same tables.
    _, text, err = run(*SMALL, "--output", str(tmp_path / "out"))
    second_outcome = run(*SMALL, "--output", str(tmp_path / "out"))
    assert (second_outcome[0], second_outcome[1]) == (0, text)
    assert "of 8 rows" not in err


@pytest.mark.slow
def test_bench_writes_csv_and_markdown(run, measured):
    _, out, _ = run(*SMALL, "--output", str(measured), "--format", "csv", "--quiet")
    assert out.encode() == (measured / "rows.csv").read_bytes()
    assert len(list(csv.DictReader(io.StringIO(out)))) == 8
    _, out, err = run(*SMALL, "--output", str(measured), "--format", "markdown", "--quiet")
    assert "| extractor | ICE | FiRe | Q | rules |" in out
    assert err == ""


def test_bench_shows_failures(run, tmp_path):
    path = tmp_path / "bench.toml"
    path.write_text(
        "data = ['iris']\nblack_boxes = ['decision-tree']\nfolds = 2\n"
        "extractors = ['cart', {name = 'gridex', params = {n_slices = 0}}]\n"
    )
    code, out, err = run("bench", "--config", str(path))
    assert code == 0
    assert "4 rows, 2 failed" in out
    assert "2 of 2" in out
    assert "2 of 4 rows failed" in out
    assert "ValueError: n_slices" in out
    assert "4 of 4 rows, 2 failed, " in err
    # Options replace parts of the file.
    _, out, _ = run("bench", "--config", str(path), "--extractors", "cart", "--seeds", "1,2")
    assert "1 extractor, 2 seeds × 2 folds: 4 rows" in out


def test_quality_of_model_does_not_depend_on_failures(run, measured):
    path = measured / "rows.csv"
    _, out, _ = run(*SMALL, "--output", str(measured), "--quiet")
    rows = read_rows(path)
    rows.loc[0, ["state", "error"]] = "failed", "ValueError: no rules"
    path.write_text(csv_text(rows), encoding="utf-8")
    _, later, _ = run(*SMALL, "--output", str(measured), "--quiet")
    (heading,) = (line for line in out.splitlines() if line.startswith("iris (150 rows"))
    assert heading in later.splitlines()
    assert "1 of 2" in later


@pytest.mark.slow
def test_bench_writes_plots_and_parquet(run, measured):
    pytest.importorskip("matplotlib")
    code, _, err = run(*SMALL, "--output", str(measured), "--plots", "--parquet")
    assert code == 0
    table = pd.read_parquet(measured / "rows.parquet")
    pd.testing.assert_frame_equal(
        table, read_rows(measured / "rows.csv"), check_dtype=False, check_exact=True
    )
    assert "</svg>" in (measured / "ranks_classification.svg").read_text()
    assert "ranks_regression.svg" in err


@pytest.mark.slow
def test_bench_writes_a_report(run, measured):
    pytest.importorskip("jinja2")
    code, _, _ = run(*SMALL, "--output", str(measured), "--report", "--quiet")
    assert code == 0
    page = (measured / "report.html").read_text()
    assert "classification: by ICE over 2 data" in page
    assert "regression: by ICE over 1 data" in page
    assert "classification: by fidelity over 2 data" in page
    assert "There is only one data set" in page
    assert "gridrex is left out on iris, wine: it is for regression only." in page
    # A page made later shows the same figures for the same rows.
    assert run("report", str(measured), "--output", str(measured / "later.html"))[0] == 0
    assert (measured / "later.html").read_text() == page


def test_bench_runs_methods_of_a_file_quickly(run, tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(
        "from sklearn.tree import DecisionTreeClassifier\n"
        "METHODS = {'stump': {'classification': DecisionTreeClassifier(max_depth=1)}}\n"
    )
    table = tmp_path / "long.csv"
    lines = [f"{i},{i % 5},{'a' if i < 300 else 'b'}" for i in range(600)]
    table.write_text("\n".join(["x,z,kind", *lines]) + "\n")
    words = ["bench", "--data", f"iris,{table}", "--target", "kind", "--quick", "--extractors"]
    words += ["cart", "--methods", str(path), "--black-boxes", "knn,decision-tree", "--keep-rules"]
    code, out, err = run(*words, "--output", str(tmp_path / "out"))
    assert code == 0
    assert out.startswith("bench: 2 data sets × 1 model × 2 extractors, 1 seed × 1 split")
    assert "only a random sample of 500 of the 600 rows is used" in err
    lines_of_rules = (tmp_path / "out" / "rules.jsonl").read_text().splitlines()[1:]
    assert {json.loads(line)["extractor"] for line in lines_of_rules} == {"cart", "stump"}


def test_keep_rules_needs_output(capsys):
    assert "--keep-rules: needs the folder of --output" in usage_error(
        capsys, *SMALL, "--keep-rules"
    )


def test_bench_accepts_data_files(run, tmp_path, capsys):
    rows = ["length,width,kind"] + [f"{i},{i % 7},{'a' if i < 20 else 'b'}" for i in range(40)]
    (tmp_path / "mine.csv").write_text("\n".join(rows) + "\n")
    words = ["bench", "--data", f"{tmp_path / 'mine.csv'},iris", "--black-boxes", "knn"]
    words += ["--target", "kind", "--extractors", "cart", "--folds", "2"]
    code, out, _ = run(*words)
    assert code == 0
    assert "mine (40 rows, 2 features)" in out


def test_bench_applies_options_of_data_files(run, tmp_path):
    rows = ["id,length,color,kind"]
    rows += [f"n{i},{i},{'red' if i % 3 else 'blue'},{'a' if i < 20 else 'b'}" for i in range(40)]
    rows[7] = "n6,,red,a"
    path = tmp_path / "mine.csv"
    path.write_text("\n".join(rows) + "\n")
    words = ["bench", "--data", f"{path},iris", "--target", "kind", "--folds", "2"]
    words += ["--black-boxes", "decision-tree", "--extractors", "cart,cream"]
    code, _, err = run(*words, "--drop", "id", "--category", "color", "--missing", "error")
    assert code == 1
    assert "(on the command line: --missing drop)" in err
    code, out, err = run(*words, "--missing", "drop")
    assert code == 0
    assert "mine (39 rows, 2 features); decision-tree: weighted F1 1.000" in out
    assert "8 of 8 rows" in err  # all extractors accept categories


def test_bench_accepts_black_box_from_file(run, tmp_path):
    iris = load_dataset("iris")
    path = tmp_path / "mine.joblib"
    joblib.dump(DecisionTreeClassifier(max_depth=2, random_state=0).fit(iris.X, iris.y), path)
    words = ["bench", "--data", "iris", "--black-boxes", str(path), "--extractors", "cart"]
    code, _, err = run(*words)
    assert code == 1
    assert "mine.joblib was not opened: a .joblib file can run any code" in err
    code, out, err = run(*words, "--trust", "--folds", "2")
    assert code == 0
    assert "mine: weighted F1 0.960 on held-out rows, on which it may have been" in out
    assert "mine was trained elsewhere and is not trained" in err


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ([], "name a benchmark: --suite NAME (smoke, "),
        (["--suite", "smok"], "there is no suite 'smok'. Did you mean 'smoke'?"),
        (["--suite", "smoke", "--config", "x.toml"], "not allowed with argument --suite"),
        (["--data", "iris", "--extractors", "gridx"], "Did you mean 'gridex'?"),
        (["--data", "iris", "--black-boxes", "knm"], "there is no model 'knm'"),
        (["--data", "iris", "--black-boxes", "m.h5"], "Files with models end in .skops, .onnx,"),
        (["--data", "iris", "--seeds", "a"], "must be an integer"),
        (["--data", "iris", "--rank-by", "icy"], "there is no score 'icy'. Did you mean 'ice'?"),
        (["--data", "iris", "--alpha", "1"], "must be below 1"),
        (["--data", "iris", "--drop", "id"], "--drop: applies to files, but --data names no file"),
        (["--suite", "smoke", "--category", "x"], "--category: applies to the files of --data"),
        (["--data", "iris", "--target", "kind"], "applies to files, but --data names no file"),
        (["--suite", "smoke", "--target", "kind"], "applies to the files of --data"),
        (["--data", "iris", "--plots"], "--plots: needs the folder of --output"),
        (["--data", "iris", "--report"], "--report: name a file, or a folder with --output"),
    ],
)
def test_bench_rejects_wrong_usage(capsys, words, says):
    assert says in usage_error(capsys, "bench", *words)


@pytest.mark.slow
def test_bench_rejects_folder_of_another_bench(run, measured):
    code, out, err = run(*SMALL, "--seeds", "1", "--output", str(measured))
    assert (code, out) == (1, "")
    assert "another benchmark: seeds is [0] in the folder and [1] now" in err
    code, _, err = run(*SMALL, "--seeds", "1", "--output", str(measured), "--overwrite")
    assert code == 0
    assert set(read_rows(measured / "rows.csv")["seed"]) == {1}


KILLED = ["--data", "iris,wine", "--black-boxes", "random-forest", "--extractors", "cart,exact"]
SETTINGS = {
    "data": ["iris", "wine"],
    "black_boxes": ["random-forest"],
    "extractors": ["cart", "exact"],
    "seeds": [0, 1],
    "folds": 2,
}


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Return the rows of an uninterrupted run."""
    return run_bench(config_from(SETTINGS | {"name": "bench"}), tmp_path_factory.mktemp("w")).rows


def has_ended(process):
    try:
        return process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="there is no SIGKILL")
@pytest.mark.parametrize(("kept_in_cache", "n_jobs"), [(False, 2), (True, 1)])
def test_killed_bench_is_resumed(tmp_path, cache, whole, kept_in_cache, n_jobs):
    words = [sys.executable, "-m", "skescore", "bench", *KILLED, "--seeds", "0,1", "--folds", "2"]
    words += ["--format", "csv", "--n-jobs", str(n_jobs)]
    if not kept_in_cache:
        words += ["--output", str(tmp_path / "out")]
    folder = cache if kept_in_cache else tmp_path
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    children = []
    try:
        while process.poll() is None:  # killed once it has written some rows
            files = list(folder.glob("*/rows.csv"))
            if files and files[0].read_bytes().count(b"\n") > 4:
                break
            time.sleep(0.01)
        children = psutil.Process(process.pid).children(recursive=True)
        process.kill()
        assert process.wait() == -signal.SIGKILL
        # They detect it, while those of joblib would wait for work for 300 s.
        _, left = psutil.wait_procs(children, timeout=150)
        assert all(map(has_ended, left))
    finally:
        for child in [process, *children]:
            with contextlib.suppress(psutil.NoSuchProcess):
                child.kill()
        process.wait()
    (file,) = folder.glob("*/rows.csv")
    there = read_rows(file)
    assert 4 <= len(there) < 16
    with file.open("ab") as torn:
        torn.write(b"wine,classification,random-for")
    second_outcome = subprocess.run(words, capture_output=True, check=True)
    assert f"resuming after {len(there)} of 16 rows" in second_outcome.stderr.decode()
    (tmp_path / "shown.csv").write_bytes(second_outcome.stdout)
    printed = read_rows(tmp_path / "shown.csv")
    pd.testing.assert_frame_equal(
        printed.drop(columns="seconds"), whole.drop(columns="seconds"), check_exact=True
    )
    if kept_in_cache:
        assert list(cache.iterdir()) == []


def test_bench_splits_tables_on_narrow_terminal(run, measured, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    _, out, _ = run(*SMALL, "--output", str(measured), "--quiet")
    assert max(map(len, out.splitlines())) <= 80
    heads = [line.split() for line in out.splitlines() if line.startswith("extractor ")]
    assert heads[0] == ["extractor", "ICE", "FiRe", "Q", "rules"]
    covered = ["completeness_volume", "completeness_instances"]
    labels = " ".join(measured_quantities()[name].heading for name in covered)
    assert heads[1] == ["extractor", *labels.split(), "fidelity", "seconds"]


def test_bench_prints_whole_errors_of_methods(run, tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(
        "class Mine:\n    def fit(self, X, y):\n        return self\n"
        "METHODS = {'mine': Mine(), 'two': lambda X, y: None}\n"
    )
    words = ["bench", "--data", "iris", "--quick", "--extractors", "cart", "--methods", str(path)]
    code, out, _ = run(*words, "--black-boxes", "knn")
    assert code == 0
    errors = re.findall(r"^error \d: (.*)$", out, flags=re.M)
    assert errors[0].endswith("lambda X, y, random_state: Mine().fit(X, y).")
    assert "must accept the three arguments (X, y, random_state)" in errors[1]
    assert "..." not in "".join(errors)


def test_bench_prints_whole_long_errors(run, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "70")
    path = tmp_path / "mine.py"
    path.write_text(
        "def fails(X, y, random_state):\n"
        "    raise RuntimeError('begin ' + 'word ' * 200 + 'end')\n"
        "METHODS = {'mine': fails}\n"
    )
    words = ["bench", "--data", "iris", "--quick", "--extractors", "cart", "--methods", str(path)]
    _, out, _ = run(*words, "--black-boxes", "knn")
    error = " ".join(out.partition("error 1: ")[2].split())
    assert error == f"RuntimeError: begin {'word ' * 200}end"


def test_methods_option_documents_its_signature(capsys):
    with pytest.raises(SystemExit):
        main(["bench", "--help"])
    text = " ".join(capsys.readouterr().out.split())
    assert "its dict METHODS maps labels to extractors" in text
    assert "functions of (X, y, random_state)" in text
    assert "return a fitted model or a RuleSet" in text
