from __future__ import annotations

import ast
import csv
import hashlib
import io
import json
import os
import re
import signal
import subprocess
import sys
import sysconfig
import time
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, r2_score
from sklearn.model_selection import KFold, StratifiedKFold, cross_val_score
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier
from threadpoolctl import threadpool_limits

import skescore
from skescore._text import plural
from skescore.black_boxes import BLACK_BOXES, make_black_box
from skescore.cli import build_parser
from skescore.cli._output import number
from skescore.cli._tune_result import rules_text
from skescore.datasets import load_dataset
from skescore.extractors import CARTExtractor, GridExExtractor
from skescore.registry import extractor_label
from skescore.rules import Fallback, Interval, Rule, RuleSet
from skescore.scorers import get_rule_scorer, make_fire_scorer, make_ice_scorer, make_q_scorer
from skescore.tuning import ExtractorSearchCV, FoldEvaluator, FoldResult

#: A quick search; without --extractors all suitable extractors would be tried.
SHORT = (
    "--black-box",
    "decision-tree",
    "--trials",
    "4",
    "--cv",
    "2",
    "--extractors",
    "cart,gridex",
)
FILES = ("rules.json", "leaderboard.csv", "candidates.json", "run.json", "baseline.json")
KEPT = "trials.journal"
SCRIPT = Path(sysconfig.get_path("scripts")) / "skescore"

#: Boosted trees of other packages are tested where these are installed.
EVERY_BLACK_BOX = [
    pytest.param(name, marks=[pytest.mark.engine] * (name in ("xgboost", "lightgbm", "catboost")))
    for name in BLACK_BOXES
]


@pytest.fixture
def result(run):
    """Call the command line for JSON."""

    def result(*words):
        code, out, err = run("tune", *words, "--format", "json", "--quiet")
        assert (code, err) == (0, "")
        return json.loads(out)

    return result


@pytest.fixture(scope="module")
def iris():
    return load_dataset("iris")


@pytest.fixture
def write(tmp_path):
    def write(table, name="data.csv", **options):
        path = tmp_path / name
        if isinstance(table, pd.DataFrame):
            table.to_csv(path, index=False, **options)
        else:
            path.write_bytes(table if isinstance(table, bytes) else table.encode())
        return path

    return write


@pytest.fixture
def flowers(iris):
    """Return the table of a user: iris with short names in a file."""
    return iris.X.set_axis(["sl", "sw", "pl", "pw"], axis=1).assign(kind=iris.y)


def by_hand(dataset, name="decision-tree", *, scoring=None, cv=2, trials=4, seed=0):
    """Return the search of the command, run in Python."""
    splits = StratifiedKFold if dataset.task == "classification" else KFold
    return ExtractorSearchCV(
        make_black_box(name, dataset.task, seed),
        extractors=("cart", "gridex"),
        scoring=make_ice_scorer() if scoring is None else scoring,
        n_trials=trials,
        cv=splits(cv, shuffle=True, random_state=seed),
        random_state=seed,
    ).fit(dataset.X, dataset.y)


# Results ------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    ("data", "options", "scoring"),
    [
        ("iris", (), make_ice_scorer()),
        ("iris", ("--phi", "3", "--rho", "0.5"), make_ice_scorer(3, 0.5)),
        ("iris", ("--scoring", "fire", "--psi", "2"), make_fire_scorer(2)),
        (
            "diabetes",
            ("--scoring", "q", "--completeness", "instances"),
            make_q_scorer(completeness="instances"),
        ),
        ("diabetes", ("--reference", "black-box"), make_ice_scorer(reference="black_box")),
    ],
)
@pytest.mark.filterwarnings("ignore:The best candidate by .* is a constant:UserWarning")
def test_tune_json_equals_search_in_python(data, options, scoring, result):
    output = result(data, *SHORT, *options)
    dataset = load_dataset(data)
    search = by_hand(dataset, scoring=scoring)
    best = output["best"]
    assert best["score"] == search.best_score_
    assert best["extractor"] == search.best_name_
    assert best["params"] == search.best_params_
    assert output["search"]["scoring"] == scoring.name
    assert RuleSet.from_json(json.dumps(output["rules"])) == search.rules_
    board = search.leaderboard_
    assert [row["score"] for row in output["leaderboard"]] == board["score"].tolist()
    assert [row["params"] for row in output["leaderboard"]] == board["params"].tolist()
    answers = clone(search.estimator).fit(dataset.X, dataset.y).predict(dataset.X)
    agreement = accuracy_score if dataset.task == "classification" else r2_score
    assert best["fidelity"] == pytest.approx(
        agreement(answers, search.rules_.predict(dataset.X.to_numpy()))
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", EVERY_BLACK_BOX)
def test_quality_of_black_boxes_equals_cross_validation(name, iris, result):
    model = make_black_box(name, "classification", 0)
    folds = StratifiedKFold(2, shuffle=True, random_state=0)
    with threadpool_limits(1):  # more threads than cores make gradient boosting very slow
        output = result("iris", "--black-box", name, "--trials", 2, "--cv", 2)
        expected = cross_val_score(model, iris.X, iris.y, cv=folds)
    assert output["black_box"]["quality"]["accuracy"] == pytest.approx(expected.mean())
    assert output["black_box"]["name"] == name
    assert output["best"]["score"] > 0.9


@pytest.mark.slow
def test_quality_of_regressors_equals_cross_validation(result):
    output = result("diabetes", "--black-box", "svm", "--trials", 2, "--cv", 3, "--seed", 7)
    dataset = load_dataset("diabetes")
    folds = KFold(3, shuffle=True, random_state=7)
    model = make_black_box("svm", "regression", 7)
    expected = cross_val_score(model, dataset.X, dataset.y, cv=folds).mean()
    assert output["black_box"]["quality"] == {"r2": pytest.approx(expected)}


def _cells(line):
    return re.split(r" {2,}", line.strip())


def test_text_equals_figures_of_json(run, result):
    output = result("iris", *SHORT)
    code, out, err = run("tune", "iris", *SHORT)
    assert code == 0
    board = output["leaderboard"]
    complete = [row for row in board if row["state"] == "complete"]
    for name, label in (("cart", "CART"), ("gridex", "GridEx")):
        count = sum(row["extractor"] == name for row in board)
        best_score = max(row["score"] for row in complete if row["extractor"] == name)
        assert f"\n{plural(count, 'trial')} of {label}, best ICE {best_score:.4g}\n" in err
    lines = out.splitlines()
    assert lines[0] == (
        "iris: 150 rows, 4 features; target class species: setosa (50), versicolor (50), "
        "virginica (50)"
    )
    quality = output["black_box"]["quality"]
    assert lines[1] == (
        f"model decision-tree: accuracy {quality['accuracy']:.3f}, weighted F1 "
        f"{quality['f1_weighted']:.3f} (held-out rows, 2 folds)"
    )
    start = next(
        i
        for i, line in enumerate(lines)
        if line.startswith(f"leaderboard: {len(board)} candidates")
    )
    assert _cells(lines[start + 1]) == [
        "extractor",
        "ICE",
        "±",
        "weighted F1",
        "rules",
        "space covered",
        "rows covered",
        "seconds",
        "parameters",
    ]
    outcomes = ("extractor", "score", "score_std", "n_rules", "loss", "completeness_volume")
    different = {tuple(row[name] for name in outcomes): row for row in reversed(complete)}
    for position, row in enumerate(list(different.values())[::-1][:10], 1):
        cells = _cells(lines[start + 1 + position])
        del cells[8]  # seconds differ from run to run
        assert cells == [
            str(position),
            extractor_label(row["extractor"]),
            f"{row['score']:.4f}",
            f"{row['score_std']:.4f}",
            f"{row['performance']:.3f}",
            f"{row['n_rules']:.1f}",
            f"{row['completeness_volume']:.3f}",
            f"{row['completeness_instances']:.3f}",
            ", ".join(
                f"{k}={v:.3g}" if type(v) is float else f"{k}={v}" for k, v in row["params"].items()
            ),
        ]
    best = output["best"]
    assert (
        f"best: {extractor_label(best['extractor'])} with ICE {best['score']:.4f}; "
        f"its {best['n_rules']} rules, extracted from all rows\n"
        + str(RuleSet.from_json(json.dumps(output["rules"])))
        + "\n"
    ) in out
    assert (
        "on all 150 rows, which the model was trained on: "
        "fidelity (accuracy against the model) "
        f"{best['fidelity']:.3f}, completeness {best['completeness_volume']:.3f} by volume, "
        f"{best['completeness_instances']:.3f} by rows"
    ) in lines
    assert all(line == line.rstrip() for line in lines)


@pytest.mark.slow
def test_losses_are_printed_without_sign(run, result):
    options = ("diabetes", *SHORT, "--scoring", "fire")
    output = result(*options)
    score = output["best"]["score"]
    assert score < 0
    _, out, err = run("tune", *options)
    assert f"with FiRe {number(-score, 4)};" in out
    printed = [_cells(line)[2] for line in out.splitlines() if re.match(r"\d  ", line)]
    scores = [row["score"] for row in output["leaderboard"] if row["state"] == "complete"]
    assert set(printed) <= {number(-score, 4) for score in scores}
    assert [float(text) for text in printed[1:]] == sorted(map(float, printed[1:]))
    assert f"best FiRe {-max(scores):.4g}" in err
    assert "(FiRe: smaller is better." in out
    assert "compared with progression" in out


def test_output_states_reference_of_scores(run):
    _, out, _ = run("tune", "iris", *SHORT, "--reference", "black-box")
    assert "compared with the model's predictions" in out


@pytest.mark.slow
def test_markdown_equals_rows_and_rules_of_text(run):
    code, text, _ = run("tune", "iris", *SHORT)
    assert code == 0
    code, markdown, _ = run("tune", "iris", *SHORT, "--format", "markdown")
    assert code == 0
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in markdown.partition("## best trade-offs")[0].splitlines()
        if line.startswith("| ") and not line.startswith("| --")
    ]
    expected = [_cells(line) for line in text.splitlines() if re.match(r"\d  ", line)]
    assert len(expected) > 1
    assert [row[:8] for row in rows[1:]] == [row[:8] for row in expected]
    assert rows[0][1:3] == ["extractor", "ICE"]
    rules = re.search(r"```text\n(.*?)\n```", markdown, flags=re.DOTALL)[1]
    assert rules + "\n" in text


@pytest.mark.slow
def test_leaderboard_prints_the_ten_best_outcomes(run):
    _, out, _ = run("tune", "iris", "--black-box", "knn", "--trials", 40, "--cv", 2)
    heading = re.search(
        r"leaderboard: \d+ candidates, .*the best 10 of (\d+) different outcomes by ICE", out
    )
    assert heading
    rows = [_cells(line) for line in out.splitlines() if re.match(r" ?\d+  ", line)]
    assert [row[0] for row in rows] == [str(n) for n in range(1, 11)]
    assert len({tuple(row[1:8]) for row in rows}) == 10
    # The first is the best finalist on repeated folds.
    scores = [float(row[2]) for row in rows[1:]]
    assert scores == sorted(scores, reverse=True)


@pytest.mark.slow
def test_stopped_extractor_of_the_first_line_is_explained(run):
    # On the folds of the trials, CART is ahead by 1e-5; on repeated folds, Trepan is.
    _, out, _ = run("tune", "titanic")
    first = re.search(r"^ 1  (\S+)", out, flags=re.MULTILINE)[1]
    note = "; line 1 of the leaderboard is one of its trials"
    stopped = re.findall(r"^   (\w+): after (.*)$", out, flags=re.MULTILINE)
    assert [name for name, reason in stopped if reason.endswith(note)] == [first] == ["Trepan"]


def test_extractors_option_limits_the_search(result):
    output = result("iris", *SHORT, "--extractors", "gridex")
    assert {row["extractor"] for row in output["leaderboard"]} == {"gridex"}
    assert output["search"]["extractors"] == ["gridex"]


@pytest.mark.slow
def test_n_jobs_option_does_not_change_the_result(run, result):
    alone = result("iris", *SHORT)
    code, out, err = run("tune", "iris", *SHORT, "--n-jobs", 2, "--format", "json")
    assert code == 0
    assert "trials of CART, best ICE 0." in err
    together = json.loads(out)
    for key in ("best", "rules", "black_box"):
        assert together[key] == alone[key]


@pytest.mark.slow
def test_tune_fits_forests_on_all_cores_for_large_tables(run, tmp_path, monkeypatch):
    recorded = []

    class RecordedForest(RandomForestClassifier):
        def fit(self, *data, **options):
            recorded.append(joblib.effective_n_jobs(self.n_jobs))
            return super().fit(*data, **options)

    monkeypatch.setattr("sklearn.ensemble.RandomForestClassifier", RecordedForest)
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(2000, 10)).round(2), columns=list("abcdefghij"))
    path = tmp_path / "large.csv"
    X.assign(y=np.where(X["a"] > 0.3, "up", "down")).to_csv(path, index=False)
    words = ["tune", path, "--target", "y", "--extractors", "cart", "--trials", 2, "--cv", 2]
    words += ["--format", "json"]
    results, n_cores = [], []
    for more in ([], ["--n-jobs", 1], ["--sample", 300]):
        results.append(json.loads(run(*words, *more)[1]))
        n_cores.append({*recorded})
        recorded.clear()
    assert n_cores == [{joblib.effective_n_jobs(-1)}, {1}, {1}]
    assert results[0]["rules"] == results[1]["rules"]


@pytest.mark.slow
def test_timeout_reports_trials_not_started(monkeypatch, run):
    evaluate = FoldEvaluator.__call__

    def slowly(self, extractor, fold):
        if type(extractor).__name__ != "CARTExtractor":
            time.sleep(max(0.0, self.deadline - time.monotonic()))
        return evaluate(self, extractor, fold)

    monkeypatch.setattr(FoldEvaluator, "__call__", slowly)
    code, out, err = run("tune", "iris", *SHORT, "--timeout", 2, "--format", "json")
    assert code == 0
    data = json.loads(out)
    board = data["leaderboard"]
    n_baselines = sum(r["extractor"] == "cart" and "max_depth" not in r["params"] for r in board)
    failed, started = data["notes"]
    # A candidate is evaluated on all folds before the next one.
    assert failed.startswith(f"1 of {len(board)} candidates gave no score: ExtractionTimeout")
    assert started == "2 of 4 trials were started within --timeout"
    assert f"skescore: note: {started}\n" in err
    assert n_baselines > 2  # they are no trials of the budget
    assert data["search"]["trials"] == len(board) == 2 + n_baselines
    assert data["search"]["trials_failed"] == 1
    assert data["best"]["extractor"] == "cart"


def test_tiny_timeout_returns_one_tree(run):
    code, out, _ = run("tune", "iris", *SHORT, "--timeout", "1e-9", "--format", "json")
    assert code == 0
    (candidate,) = json.loads(out)["leaderboard"]
    assert candidate["extractor"] == "cart"
    assert candidate["n_rules"] > 1


def test_tiny_timeout_without_trees_is_an_error(run):
    code, out, err = run("tune", "iris", *SHORT, "--timeout", "1e-9", "--extractors", "gridex")
    assert (code, out) == (1, "")
    assert "timeout=1e-09 seconds; allow more time" in err


@pytest.mark.slow
@pytest.mark.parametrize("scoring", ["cohen_kappa", "neg_zero_one_loss", "min_rule_precision"])
def test_scoring_option_accepts_other_measures(scoring, result):
    output = result("iris", *SHORT, "--scoring", scoring)
    expected = by_hand(load_dataset("iris"), scoring=get_rule_scorer(scoring))
    assert output["best"]["score"] == pytest.approx(expected.best_score_)
    assert output["search"]["scoring"] == scoring


# Alternatives -------------------------------------------------------------------------------------


def test_text_offers_alternatives_of_json(run, result):
    alternatives = result("titanic", *SHORT)["alternatives"]
    assert alternatives["measure"] == "accuracy"
    rows = {"rows": "held-out rows, 2 folds", "weighted": False}
    assert alternatives["correctness"] == {"reference": "data"} | rows
    assert alternatives["fidelity"]["rows"].startswith(
        "held-out rows, on which the model was not fitted"
    )
    roles = [role for one in alternatives["lists"] for role in one["roles"]]
    assert sorted(roles) == ["best", "most faithful", "shortest"]
    _, out, err = run("tune", "titanic", *SHORT)
    offered = out.partition("to choose from, by correctness or by fidelity:\n")[2]
    for one in alternatives["lists"]:
        rules = str(RuleSet.from_json(json.dumps(one["rules"])))
        assert one["n_rules"] == len(one["rules"]["rules"])
        assert rules in (out if "best" in one["roles"] else offered)
        assert 0 <= one["correctness"] <= 1
        assert one["next"] is None or one["next"]["n_rules"] > one["n_rules"]
    assert out.count("this list: right for ") == len(alternatives["lists"])
    assert out.count("% of held-out rows (data), agrees with the model on ") == len(
        alternatives["lists"]
    )
    fitting = r"fitting decision-tree on 2201 rows, and on 2 folds of these rows \.\.\.\n"
    ready = r"model ready after \d+\.\d s\n"
    assert re.match(rf"{fitting}{ready}(.*\n)*first rules: CART with ", err)


def test_tune_states_the_sample_of_rows(run, tmp_path):
    numbers = np.random.default_rng(0).normal(size=(5100, 2)).round(3)
    table = pd.DataFrame(numbers, columns=["a", "b"])
    table["label"] = np.where(table["a"] > 0.3, "yes", "no")
    table.to_csv(tmp_path / "rows.csv", index=False)
    code, _, err = run("tune", str(tmp_path / "rows.csv"), "--target", "label", *SHORT)
    assert code == 0
    start = r"on a sample of 5000 of 5100 rows, and on 2 folds of this sample .*\n"
    ready = r"model ready after \d+\.\d s\n"
    later = r"fitting decision-tree on all 5100 rows \.\.\.\nmodel of all rows ready after "
    assert re.search(rf"{start}{ready}(.*\n)*{later}\d+\.\d s\n", err)


def test_tune_counts_the_first_rules_it_shows(run):
    _, _, err = run("tune", "breast_cancer", *SHORT, "--extractors", "gridex", "--trials", 3)
    count, rules = re.search(r"first rules: GridEx with (\d+) .*\n((?:   \d.*\n)*)", err).groups()
    assert int(count) == len(rules.splitlines())
    assert "better: GridEx with 2.5 rules on average, ICE" in err


def test_tune_offers_alternatives_to_a_constant(run):
    _, out, _ = run("tune", "iris", *SHORT, "--extractors", "cart", "--rho", 8)
    assert "1. ALWAYS setosa" in out
    offered = out.partition("to choose from, by correctness or by fidelity:\n")[2]
    assert "1. IF petal " in offered


def test_fidelity_scoring_ignores_the_target(run, result):
    output = result("iris", *SHORT, "--scoring", "fidelity", "--max-rules", 4)
    assert output["search"]["scoring"] == "fidelity"
    assert output["search"]["reference"] == "black-box"
    best = output["leaderboard"][0]
    assert best["score"] == best["fidelity"]
    code, _, err = run("tune", "iris", *SHORT, "--scoring", "fidelity", "--reference", "data")
    assert code == 2
    assert "--scoring fidelity always uses --reference black-box" in err


# Folds --------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_rare_classes_are_noted_once(write, flowers, run):
    flowers.loc[[0, 60], "kind"] = ["unica", "unica"]
    path = write(flowers)
    code, _, err = run("tune", path, "--target", "kind", *SHORT, "--cv", "5")
    assert code == 0
    assert err.count("unica") == err.count("fewer rows than there are folds (5)") == 1
    assert "least populated" not in err


# Files --------------------------------------------------------------------------------------------


def _sha256(path):
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


def test_output_holds_rules_leaderboard_and_run(write, flowers, tmp_path, run):
    path = write(flowers)
    folder = tmp_path / "deep" / "run"
    words = ["tune", path, "--target", "kind", *SHORT, "--seed", 5, "--output", folder]
    code, out, err = run(*words)
    assert code == 0
    assert sorted(p.name for p in folder.iterdir()) == sorted([*FILES, KEPT])
    assert err.endswith(f"wrote {', '.join(str(folder / name) for name in FILES)}\n")

    dataset = load_dataset(path, target="kind")
    search = by_hand(dataset, seed=5)
    assert RuleSet.from_json((folder / "rules.json").read_text(encoding="utf-8")) == search.rules_
    assert str(search.rules_) in out

    with open(folder / "leaderboard.csv", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    board = search.leaderboard_
    assert [row["extractor"] for row in rows] == board["extractor"].tolist()
    assert [float(row["score"]) for row in rows] == board["score"].tolist()
    for row, params in zip(rows, board["params"], strict=True):
        # Values keep their types, 3 and not 3.0, and are empty without such a parameter.
        written = {k.removeprefix("param_"): v for k, v in row.items() if k.startswith("param_")}
        expected = {k: str(v) for k, v in params.items() if v is not None}
        assert {k: v for k, v in written.items() if v} == expected

    about = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    assert about["data"]["checksum_sha256"] == _sha256(path)
    assert about["data"]["source"] == str(path)
    assert about["data"]["features"] == ["sl", "sw", "pl", "pw"]
    assert about["search"]["seed"] == 5
    assert about["run"]["command_line"] == ["skescore", *map(str, words)]
    assert about["run"]["versions"]["skescore"] == skescore.__version__
    assert about["run"]["versions"]["python"] == ".".join(map(str, sys.version_info[:3]))
    assert about["best"]["score"] == search.best_score_
    assert about["notes"] == []


def test_run_records_every_option(result):
    options = build_parser(["tune"]).parse_args(["tune", "iris"])
    arguments = (
        "--labels",
        "setosa=s",
        "--repeats",
        "2",
        "--max-disagreement",
        "0.9",
        "--witnesses",
    )
    recorded = result("iris", *SHORT, *arguments)["run"]["options"]
    assert recorded.keys() == set(options.parser.option_names)
    changed = {
        "labels": [["setosa", "s"]],
        "repeats": 2,
        "max_disagreement": 0.9,
        "witnesses": True,
        "verify": None,
    }
    assert {name: recorded[name] for name in changed} == changed


def test_checksum_of_built_in_data_equals_csv(iris, result):
    text = iris.X.assign(species=iris.y).to_csv(index=False, lineterminator="\n")
    output = result("iris", *SHORT)
    assert output["data"]["checksum_sha256"] == hashlib.sha256(text.encode()).hexdigest()


@pytest.mark.slow
def test_tune_repeats_its_files_for_the_same_seed(tmp_path, run):
    def files(name, seed):
        words = ("tune", "diabetes", *SHORT, "--quiet", "--seed", seed, "--output", tmp_path / name)
        assert run(*words)[0] == 0
        text = (tmp_path / name / "run.json").read_text(encoding="utf-8")
        # Commands of remedies name the folder.
        about = json.loads(text.replace(str(tmp_path / name), "FOLDER"))
        for part, key in [("run", "started"), ("run", "seconds"), ("search", "seconds")]:
            del about[part][key]
        del about["search"]["query_cost"]["seconds"]
        assert about["run"].pop("command_line")[-1] == "FOLDER"
        board = pd.read_csv(tmp_path / name / "leaderboard.csv").drop(columns="seconds")
        return (tmp_path / name / "rules.json").read_bytes(), board.to_csv(), about

    first = files("first", 3)
    assert files("second", 3) == first
    other = files("other", 4)
    assert other[1] != first[1]  # other folds, other scores


def test_output_with_earlier_files_needs_overwrite(tmp_path, run):
    words = ("tune", "iris", *SHORT, "--output", tmp_path)
    (tmp_path / "run.json").write_text("precious", encoding="utf-8")
    (tmp_path / "notes.txt").write_text("mine", encoding="utf-8")
    code, out, err = run(*words)
    assert (code, out) == (1, "")
    assert "already contains run.json" in err
    assert "--overwrite" in err
    assert (tmp_path / "run.json").read_text(encoding="utf-8") == "precious"
    assert not (tmp_path / "rules.json").exists()
    assert run(*words, "--overwrite")[0] == 0
    assert json.loads((tmp_path / "run.json").read_text(encoding="utf-8"))["search"]["trials"] >= 4
    assert (tmp_path / "notes.txt").read_text(encoding="utf-8") == "mine"
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted([*FILES, KEPT, "notes.txt"])


def test_output_must_be_a_writable_folder(tmp_path, write, run):
    path = write("x", "file")
    for folder, message in [(path, "is a file"), (path / "run", "cannot be written to")]:
        code, out, err = run("tune", "iris", *SHORT, "--output", folder)
        assert (code, out) == (1, "")
        assert err.startswith(f"skescore: error: --output {folder} {message}")
        assert "ame another folder" in err or "name a folder" in err


def test_failed_tune_leaves_no_empty_folder(tmp_path, write, run):
    folder = tmp_path / "run"
    assert run("tune", "nothing", *SHORT, "--output", folder)[0] == 1
    assert not folder.exists()
    path = write(pd.DataFrame({"a": [1, 4, 9, 2, 3, 3], "y": list("xyxyxy")}))
    words = ("tune", path, "--target", "y", "--black-box", "knn", "--cv", 2, "--output", folder)
    assert run(*words)[0] == 1
    assert not folder.exists()


# The tables of users ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "classes", "separator"),
    [
        (lambda y: y == "setosa", {False, True}, ","),
        (lambda y: y.map({"setosa": 0, "versicolor": 1, "virginica": 5}), {0, 1, 5}, ";"),
        (
            lambda y: y.map({"setosa": "Bórste", "versicolor": "变色", "virginica": "a,b"}),
            {"Bórste", "变色", "a,b"},
            ",",
        ),
    ],
)
def test_labels_of_all_types_survive(kind, classes, separator, write, flowers, tmp_path, run):
    table = flowers.assign(kind=kind(flowers["kind"])).rename(columns={"pl": "Blütenlänge ≥ 0"})
    path = write(table, sep=separator)
    folder = tmp_path / "run"
    code, out, _ = run("tune", path, "--target", "kind", *SHORT, "--output", folder)
    assert code == 0
    rules = RuleSet.from_json((folder / "rules.json").read_text(encoding="utf-8"))
    assert set(rules.classes) == classes
    assert {type(label) for label in rules.classes} == {type(label) for label in classes}
    assert rules.feature_names == ("sl", "sw", "Blütenlänge ≥ 0", "pw")
    for label in {rule.output for rule in rules}:
        printed = f'"{label}"' if label == "a,b" else label
        assert f"THEN {printed}" in out or f"ELSE {printed}" in out
    code, out, _ = run("score", folder / "rules.json", path, "--target", "kind", "--format", "json")
    assert code == 0
    assert json.loads(out)["prediction"]["accuracy"]["all_rows"] > 0.9


def test_target_may_be_numeric_and_columns_dropped(write, flowers, result):
    table = flowers.assign(id=range(1, 151))
    output = result(write(table), "--target", "pw", "--drop", "id", "--drop", "kind", *SHORT)
    assert output["data"]["task"] == "regression"
    assert output["data"]["features"] == ["sl", "sw", "pl"]
    assert output["rules"]["task"] == "regression"
    assert set(output["black_box"]["quality"]) == {"r2"}


@pytest.mark.slow
def test_task_option_overrides_inference(write, flowers, result):
    table = flowers.assign(count=np.arange(150) % 7).drop(columns="kind")
    path = write(table)
    assert result(path, "--target", "count", *SHORT)["data"]["task"] == "classification"
    output = result(path, "--target", "count", "--task", "regression", *SHORT)
    assert output["data"]["task"] == "regression"


@pytest.mark.slow
def test_missing_drop_omits_rows(write, flowers, run, result):
    flowers.loc[[3, 7], "sl"] = np.nan
    words = (write(flowers), "--target", "kind", "--missing", "drop", *SHORT)
    output = result(*words)
    assert (output["data"]["rows"], output["data"]["rows_dropped"]) == (148, 2)
    _, out, _ = run("tune", *words)
    assert "148 rows, 4 features (2 rows with missing values dropped)" in out.splitlines()[0]


@pytest.mark.slow
def test_doubtful_columns_are_noted_and_recorded(write, flowers, run):
    table = flowers.assign(one=1, copy=flowers["sl"], id=range(150))
    words = ("tune", write(table), "--target", "kind", *SHORT, "--format", "json")
    code, out, err = run(*words)
    assert code == 0
    assert err.splitlines()[0] == "skescore: note: about data:"
    notes = [line.removeprefix("  - ") for line in err.splitlines() if line.startswith("  - ")]
    assert len(notes) == 3
    assert notes[0].startswith("left out: 'id' (identifiers)")
    assert "'one'" in notes[1]
    assert "--drop copy" in notes[2]
    assert json.loads(out)["notes"] == notes
    assert "id" not in json.loads(out)["data"]["features"]
    assert run(*words, "--quiet")[2] == ""
    assert json.loads(run(*words, "--quiet")[1])["notes"] == notes


def test_warnings_of_black_box_become_one_note(monkeypatch, run, tmp_path):
    def hasty(name, task, seed, categories):
        return make_pipeline(StandardScaler(), MLPClassifier(max_iter=2, random_state=seed))

    monkeypatch.setattr("skescore.black_boxes.make_black_box", hasty)
    code, _, err = run("tune", "iris", *SHORT, "--output", tmp_path)
    assert code == 0
    (note,) = [line for line in err.splitlines() if "ConvergenceWarning" in line]
    assert note.startswith("skescore: note: ConvergenceWarning: Stochastic Optimizer: Maximum")
    assert note.endswith("(3 times)")  # two folds, and all rows once
    about = json.loads((tmp_path / "run.json").read_text(encoding="utf-8"))
    assert note.removeprefix("skescore: note: ") in about["notes"]


def test_constant_black_box_gives_note(monkeypatch, run):
    monkeypatch.setattr("skescore.black_boxes.make_black_box", lambda *_: DummyClassifier())
    code, out, err = run("tune", "iris", *SHORT)
    assert code == 0
    assert "note: The black box predicts 'setosa' for all 150 rows" in err
    assert "1 rule, extracted" in out


@pytest.mark.slow
def test_notes_hold_warnings_of_best_candidate_only(run):
    """A limit of two rules is one too few for three classes."""
    options = ("iris", *SHORT[:2], "--cv", 2, "--extractors", "cart", "--trials", 8)
    _, _, err = run("tune", *options, "--rho", 3, "--max-rules", 2)
    note = next(line for line in err.splitlines() if "note" in line)
    assert note.startswith("skescore: note: max_leaf_nodes=2 is less than the 3 classes")
    assert not note.endswith("times)")  # the rules of the folds are not shown
    _, out, err = run("tune", *options)
    assert "max_leaf_nodes=2," in out
    assert "note" not in err


def _is_part_of(text, given):
    """Return whether printed parameters are among the given ones."""
    return all(given.get(name) == value for name, value in ast.literal_eval(text).items())


@pytest.mark.slow
def test_failed_trials_are_counted_and_explained(monkeypatch, run):
    evaluate = FoldEvaluator.__call__

    def fail_gridex(self, extractor, fold):
        if isinstance(extractor, GridExExtractor):
            return FoldResult({}, failure="ValueError: the moon is full")
        return evaluate(self, extractor, fold)

    monkeypatch.setattr(FoldEvaluator, "__call__", fail_gridex)
    code, out, err = run("tune", "iris", *SHORT)
    assert code == 0
    note = re.search(
        r"note: (\d+) of (\d+) candidates gave no score(, the first)?: ValueError: the moon is",
        err,
    )
    assert note is not None
    n_failed, n_trials = map(int, note.groups()[:2])
    assert (note[3] is not None) == (n_failed > 1)
    assert f"leaderboard: {n_trials} candidates, {n_failed} without a score, " in out
    code, out, _ = run("tune", "iris", *SHORT, "--format", "json")
    data = json.loads(out)
    assert data["search"]["trials_failed"] == n_failed
    assert data["search"]["trials_stopped"] == 0
    states = [row["state"] for row in data["leaderboard"]]
    assert states == ["complete"] * (n_trials - n_failed) + ["fail"] * n_failed
    assert data["leaderboard"][-1]["score"] is None
    assert data["leaderboard"][-1]["error"] == "ValueError: the moon is full"


@pytest.mark.slow
def test_stopped_trials_are_not_reported_as_failures(run):
    code, out, err = run("tune", "iris", "--black-box", "decision-tree", "--cv", 2, "--trials", 12)
    assert code == 0
    stopped = re.search(r"leaderboard: \d+ candidates, (\d+) stopped early, ", out)
    assert stopped is not None
    assert "gave no score" not in err


# Black boxes from files ---------------------------------------------------------------------------


@pytest.fixture
def model(iris):
    return make_pipeline(StandardScaler(), LogisticRegression()).fit(iris.X, iris.y)


@pytest.mark.slow
def test_skops_model_is_explained_without_training(model, iris, tmp_path, run, result):
    skops = pytest.importorskip("skops.io")
    path = tmp_path / "model.skops"
    path.write_bytes(skops.dumps(model))
    words = ("iris", "--black-box", path, *SHORT[2:])
    output = result(*words)
    assert output["black_box"]["trained_here"] is False
    assert output["black_box"]["checksum_sha256"] == _sha256(path)
    # Not fitted again: the same model predicts in each fold.
    folds = StratifiedKFold(2, shuffle=True, random_state=0).split(iris.X, iris.y)
    expected = np.mean([model.score(iris.X.iloc[t], iris.y.iloc[t]) for _, t in folds])
    assert output["black_box"]["quality"]["accuracy"] == pytest.approx(expected)
    _, out, _ = run("tune", *words)
    rows = "mean of 2 parts of these rows, on which the model may have been trained"
    assert f"({rows})" in out.splitlines()[1]


@pytest.mark.slow
def test_given_model_is_the_default_reference(model, tmp_path, run, result):
    skops = pytest.importorskip("skops.io")
    path = tmp_path / "model.skops"
    path.write_bytes(skops.dumps(model))
    options = ("iris", *SHORT[2:], "--black-box", path)
    output = result(*options)
    assert output["search"]["reference"] == "black-box"
    assert "generated" in output["alternatives"]["fidelity"]["rows"]
    assert result(*options, "--reference", "data")["search"]["reference"] == "data"
    _, out, _ = run("tune", *options)
    assert "on rows generated from held-out rows" in out
    assert "compared with the model's predictions" in out


def test_joblib_model_is_opened_only_if_trusted(model, tmp_path, run):
    path = tmp_path / "model.joblib"
    joblib.dump(model, path)
    words = ("tune", "iris", "--black-box", path, *SHORT[2:])
    code, out, err = run(*words)
    assert (code, out) == (1, "")
    assert "model.joblib was not opened" in err
    assert "--trust" in err
    assert run(*words, "--trust")[0] == 0


@pytest.mark.parametrize(
    ("data", "messages"),
    [
        ("wine", ["'sepal length (cm)'", "'alcohol'"]),
        ("diabetes", ["is for classification", "diabetes is for regression"]),
    ],
)
def test_model_of_other_data_is_rejected(data, messages, model, tmp_path, run):
    joblib.dump(model, tmp_path / "model.joblib")
    words = ("tune", data, "--black-box", tmp_path / "model.joblib", "--trust", *SHORT[2:])
    code, out, err = run(*words)
    assert (code, out) == (1, "")
    assert all(text in err for text in messages)


# Bad input ----------------------------------------------------------------------------------------

GOOD = "a,b,y\n" + "".join(f"{i},{i * i % 7},{'no' if i % 3 else 'yes'}\n" for i in range(30))
ONE_CLASS = GOOD.replace("yes", "no")
BAD = {
    "constant": ("a,y\n" + "1,no\n1,yes\n" * 9, ["feature is constant ('a')", "Add a column"]),
    "one class": (ONE_CLASS, ["target 'y' has only one class, 'no'", "--target"]),
    "one row": ("a,b,y\n1,2,no\n", ["one data row only", "at least 2"]),
    "header only": ("a,b,y\n", ["no data rows"]),
    "empty": ("", ["is empty"]),
    "no target": (GOOD.replace("a,b,y", "a,b,z"), ["target", "'y'", "'a', 'b', 'z'"]),
    "no column": ("y\nno\nyes\n", ["no feature column"]),
    "ragged": (GOOD + "1,2,3,4\n", ["line 32", "4 cells"]),
    "other encoding": ("é,y\nä,ö\n".encode() + b"4,n\xf3\n", ["UTF-8", "--encoding"]),
    "binary": (b"\x00\x01\x02" * 100, ["binary"]),
    "two rows": ("a,y\n1,no\n2,yes\n", ["only 2 rows", "2 folds", "Use more rows"]),
    "few rows": ("a,y\n1,no\n5,yes\n2,no\n3,yes\n", ["4 rows", "another --black-box"]),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_table_error_states_remedy(name, write, run):
    content, messages = BAD[name]
    path = write(content)
    code, out, err = run("tune", path, "--target", "y", "--black-box", "knn", "--cv", 2)
    assert (code, out) == (1, "")
    assert err.splitlines()[-1].startswith("skescore: error: ")
    assert "Traceback" not in err
    for text in messages:
        assert text in err


HOLES = {
    "hole": (GOOD.replace("4,2,no", "4,,no"), ["column 'b'", "data row 5", "--missing drop"]),
    "nan": (GOOD.replace("4,2,no", "4,NaN,no"), ["column 'b'", "data row 5", "--missing drop"]),
    "infinite": (GOOD.replace("4,2,no", "4,inf,no"), ["column 'b'", "infinite", "data row 5"]),
    "target hole": (GOOD.replace("4,2,no", "4,2,"), ["target", "'y'", "data row 5"]),
}


@pytest.mark.parametrize("name", HOLES)
def test_missing_error_rejects_missing_values(name, write, run):
    content, messages = HOLES[name]
    code, out, err = run("tune", write(content), "--target", "y", "--missing", "error")
    assert (code, out) == (1, "")
    assert err.startswith("skescore: error: ")
    for text in messages:
        assert text in err
    assert err.strip().endswith("--target y --missing keep")


@pytest.mark.parametrize(
    ("words", "mended"),
    [
        ((), "--target kind"),
        (("--target", "knd"), "--target kind"),
        (("--target=knd", "--cv", "2"), "--target=kind --cv 2"),
        (("--cv=2", "--target", "zzz"), "--cv=2 --target kind"),
        (("--target", "kind", "--drop", "slx,sw"), "--target kind --drop sl,sw"),
        (("--target", "knd", "--drop=slx"), "--target kind --drop=sl"),
    ],
)
def test_errors_end_with_a_corrected_command(words, mended, write, flowers, run):
    path = write(flowers)
    code, out, err = run("tune", path, *words)
    assert (code, out) == (1, "")
    assert "'kind'" in err
    assert err.strip().endswith(f"Try: skescore tune {path} {mended}")


def test_words_among_numbers_give_na_values_options(write, flowers, run):
    table = flowers.astype({"sl": object})
    table.loc[:9, "sl"] = ["too long", "long"] * 5
    words = ("tune", write(table), "--target", "kind", *SHORT)
    _, _, err = run(*words)
    assert err.strip().endswith("'--na-values=too long' --na-values=long")


def test_few_numbers_and_words_that_repeat_give_category_option(write, run):
    cards = pd.DataFrame({"card": [*range(2, 11), *"JQKA"] * 4, "red": [0, 1] * 26})
    _, _, err = run("tune", write(cards), "--target", "red", *SHORT)
    assert err.strip().endswith("--category card")


def test_valid_table_is_accepted(write, run):
    words = ("tune", write(GOOD), "--target", "y", "--black-box", "knn", "--cv", 2, "--trials", 2)
    assert run(*words)[0] == 0


@pytest.mark.parametrize(
    ("words", "messages"),
    [
        (["data.csv"], ["target is missing", "--target y", "'a', 'b', 'y'"]),
        (["data.csv", "--target", "Y"], ["got 'Y'. Did you mean 'y'?"]),
        (["data.csv", "--target", "y", "--drop", "bb"], ["drop", "got 'bb'", "Did you mean 'b'?"]),
        (["dota.csv", "--target", "y"], ["'dota.csv' is neither", "'data.csv'"]),
        (["irsi"], ["'irsi' is neither", "Did you mean 'iris'?"]),
        (["."], [". is a folder"]),
        (["data.ods", "--target", "y"], ["data.ods", "'.ods'", "Save the table as CSV"]),
        (["iris", "--cv", "151"], ["--cv 151", "iris", "(150)", "--cv 150"]),
        (["iris", "--task", "regression"], ["'iris'", "classification", "--task"]),
        (["iris", "--black-box", "none.skops"], ["'none.skops' does not exist"]),
        (["iris", "--black-box", "garbage.skops"], ["garbage.skops is not a skops file"]),
        (["iris", "--black-box", "data.csv"], ["data.csv has the ending '.csv'", ".skops"]),
        (["iris", "--black-box", "."], [". is a folder"]),
    ],
)
def test_missing_inputs_give_errors(words, messages, write, tmp_path, monkeypatch, run):
    if "garbage.skops" in words:
        pytest.importorskip("skops")
    for name in ("data.csv", "data.ods", "garbage.skops"):
        write(GOOD, name)
    monkeypatch.chdir(tmp_path)
    code, out, err = run("tune", *words)
    assert (code, out) == (1, "")
    assert err.startswith("skescore: error: ")
    for text in messages:
        assert text in err


def test_unreadable_file_ends_with_an_error(write, monkeypatch, run):
    path = write(GOOD)

    usual = Path.open

    def refuse(self, *args, **options):
        if self.name != Path(path).name:
            return usual(self, *args, **options)
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr(Path, "open", refuse)
    code, out, err = run("tune", path, "--target", "y")
    assert (code, out) == (1, "")
    assert f"{path} cannot be read: Permission denied. Check its name and its access rights" in err


def test_search_without_rules_ends_with_an_error(monkeypatch, run):
    def never(*_):
        raise ValueError("There are no rules, so ICE is undefined.")

    for kind in (CARTExtractor, GridExExtractor):
        monkeypatch.setattr(kind, "fit", never)
    code, out, err = run("tune", "iris", *SHORT)
    assert (code, out) == (1, "")
    assert err.endswith(
        "skescore: error: None of the 4 trials succeeded: ValueError: There are no rules, so ICE "
        "is undefined.\n"
    )
    # Once the fault is fixed, the same command does not continue with the failures.
    monkeypatch.undo()
    code, _, err = run("tune", "iris", *SHORT)
    assert code == 0
    assert "going on" not in err


def test_model_error_has_no_traceback_by_default(monkeypatch, run):
    class Fragile(DummyClassifier):
        def fit(self, X, y):
            raise KeyError("gpu")

    monkeypatch.setattr("skescore.black_boxes.make_black_box", lambda *_: Fragile())
    monkeypatch.delenv("SKESCORE_TRACEBACK", raising=False)
    code, out, err = run("tune", "iris", *SHORT)
    assert (code, out) == (1, "")
    error = "skescore: error: KeyError: 'gpu' (SKESCORE_TRACEBACK=1 shows where)"
    assert err.splitlines()[1:] == [error]
    monkeypatch.setenv("SKESCORE_TRACEBACK", "1")
    code, out, err = run("tune", "iris", *SHORT)
    assert (code, out) == (1, "")
    assert "Traceback" in err
    assert 'raise KeyError("gpu")' in err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "the following arguments are required: COMMAND"),
        (["tine"], "there is no command 'tine'. Did you mean 'tune'?"),
        (["tune"], "the following arguments are required: DATA"),
        (["tune", "iris", "--trails", "4"], "no option --trails. Did you mean '--trials'?"),
        (["tune", "iris", "--tri", "4"], "no option --tri. Did you mean '--trials'?"),
        (["tune", "iris", "wine"], "too many arguments: wine"),
        (["tune", "iris", "--trials", "0"], "--trials: must be an integer of at least 1, got '0'"),
        (
            ["tune", "iris", "--trials", "1", "--extractors", "cart,gridex"],
            "--trials: must be at least one per extractor (2)",
        ),
        (["tune", "iris", "--trials", "2.5"], "--trials: must be an integer"),
        (["tune", "iris", "--trials"], "--trials: expected one argument"),
        (["tune", "iris", "--cv", "1"], "--cv: must be an integer of at least 2, got '1'"),
        (["tune", "iris", "--seed", "-1"], "--seed: must be an integer from 0 to 4294967295"),
        (["tune", "iris", "--n-jobs", "0"], "--n-jobs: must be an integer of at least 1, or -1"),
        (["tune", "iris", "--timeout", "0"], "--timeout: must be a number above 0, got '0'"),
        (["tune", "iris", "--psi", "inf"], "--psi: must be a number above 0, got 'inf'"),
        (["tune", "iris", "--phi", "-1"], "--phi: must be a number above 0, got '-1'"),
        (["tune", "iris", "--rho", "x"], "--rho: must be a number above 0, got 'x'"),
        (["tune", "iris", "--extractors", "crat"], "'crat'. Did you mean 'cart'?"),
        (["tune", "iris", "--black-box", "forest"], "there is no model 'forest'"),
        (["tune", "iris", "--black-box", "forest"], "Did you mean 'random-forest'?"),
        (["tune", "iris", "--scoring", "f-1"], "--scoring: there is no score 'f-1'"),
        (["tune", "iris", "--format", "xml"], "--format: invalid choice: 'xml'"),
    ],
)
def test_main_exits_with_two_on_wrong_usage(words, message, run):
    code, out, err = run(*words)
    assert (code, out) == (2, "")
    assert message in err
    assert err.splitlines()[-1].startswith("Try 'skescore")
    assert len(err.splitlines()) == 2


# The process --------------------------------------------------------------------------------------


@pytest.fixture
def process():
    """Start the installed command; whatever still runs after the test is ended."""
    started = []

    def process(*words, command=(SCRIPT,), env=None, **streams):
        one = subprocess.Popen(
            [*command, *map(str, words)],
            env={**os.environ, **(env or {})},
            **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **streams},
        )
        started.append(one)
        return one

    yield process
    for one in started:
        one.kill()
        one.communicate()


@pytest.mark.slow
def test_installed_command_equals_module(process):
    assert SCRIPT.exists()
    out, err = process("--version").communicate(timeout=60)
    assert (out.decode().strip(), err) == (f"skescore {skescore.__version__}", b"")
    started = process("tune", "iris", "--cv", "1", command=[sys.executable, "-m", "skescore"])
    out, err = started.communicate(timeout=60)
    assert (started.returncode, out) == (2, b"")
    assert err.startswith(b"skescore tune: error: argument --cv")


@pytest.mark.slow
def test_rules_are_printed_in_ascii(process):
    words = ("tune", "iris", *SHORT, "--extractors", "cart", "--quiet")
    started = process(*words, env={"PYTHONIOENCODING": "ascii", "LC_ALL": "C", "PYTHONUTF8": "0"})
    out, err = started.communicate(timeout=60)
    assert (started.returncode, err) == (0, b"")
    assert re.search(r"^1\. IF .* <= ", out.decode("ascii"), flags=re.MULTILINE)
    assert b"?" not in out


@pytest.mark.slow
def test_closed_pipe_is_a_failure_without_message(process):
    reading, writing = os.pipe()
    os.close(reading)
    started = process("tune", "iris", *SHORT, "--quiet", stdout=writing)
    os.close(writing)
    _, err = started.communicate(timeout=60)
    assert (started.returncode, err) == (1, b"")


@pytest.mark.slow
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is full")
def test_full_standard_output_is_a_failure(process):
    with open("/dev/full", "wb") as full:
        started = process("tune", "iris", *SHORT, "--quiet", stdout=full)
        _, err = started.communicate(timeout=60)
    assert started.returncode == 1
    assert err == (
        b"skescore: error: standard output cannot be written: No space left on device.\n"
    )


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="Windows has no such signals")
def test_interrupt_leaves_neither_traceback_nor_folder(write, flowers, tmp_path, process):
    path = write(flowers.assign(one=1))
    folder = tmp_path / "run"
    words = ("tune", path, "--target", "kind", "--trials", 100_000, "--output", folder)
    # If tests run in the background, the shell makes all of them ignore the signal.
    listening = (
        "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); "
        "from skescore.cli import main; sys.exit(main())"
    )
    started = process(*words, command=[sys.executable, "-c", listening])
    assert started.stderr.readline() == b"skescore: note: about data:\n"
    assert b"'one'" in started.stderr.readline()  # the search runs from here on
    started.send_signal(signal.SIGINT)
    out, err = started.communicate(timeout=60)
    assert (started.returncode, out, err) == (1, b"", b"skescore: interrupted\n")
    assert not folder.exists()


@pytest.mark.slow
def test_progress_is_written_to_terminal_only(process):
    pty = pytest.importorskip("pty")
    parent, child = pty.openpty()
    started = process("tune", "iris", *SHORT, stderr=child, env={"TERM": "xterm", "COLUMNS": "120"})
    os.close(child)
    terminal = io.BytesIO()
    try:
        while chunk := os.read(parent, 4096):
            terminal.write(chunk)
    except OSError:  # the other end is closed
        pass
    os.close(parent)
    out, _ = started.communicate(timeout=60)
    assert started.returncode == 0
    assert b", best ICE 0.97" in terminal.getvalue()
    assert b"4/4" in terminal.getvalue()
    assert b"\x1b" not in out
    assert out.startswith(b"iris: 150 rows")


@pytest.mark.slow
def test_limits_and_pick_select_another_row(run):
    settings = (
        "iris",
        "--black-box",
        "decision-tree",
        "--trials",
        12,
        "--cv",
        3,
        "--extractors",
        "cart,gridex",
        "--format",
        "json",
    )
    code, out, _ = run("tune", *settings, "--max-rules", 3, "--min-performance", 0.5)
    assert code == 0
    data = json.loads(out)
    assert data["best"]["n_rules"] <= 3
    assert data["leaderboard"][0]["performance"] >= 0.5
    code, out, _ = run("tune", *settings, "--pick", 1)
    picked = json.loads(out)
    fewest = min(row["n_rules"] for row in picked["leaderboard"] if row["state"] == "complete")
    assert picked["leaderboard"][0]["n_rules"] == fewest
    assert len(picked["rules"]["rules"]) == picked["best"]["n_rules"]
    code, out, err = run("tune", *settings, "--pick", 99)
    assert (code, out) == (1, "")
    assert "--pick 99: the trade-off has only" in err


@pytest.mark.slow
def test_warnings_are_printed_first(run, tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(200, 3)), columns=list("abc"))
    frame["kind"] = np.where(frame["a"] + frame["b"] > 2.4, "rare", "usual")
    frame.to_csv(tmp_path / "rare.csv", index=False)
    common = ("--cv", 3, "--trials", 1, "--extractors", "cart", "--quiet")
    code, out, _ = run("tune", tmp_path / "rare.csv", "--target", "kind", *common)
    assert code == 0
    never = "Note: these rules never predict 'rare'"
    of_winner = re.split(r"(?:an)?other rule lists? to choose from", out)[0]
    rules_say_rare = re.search(r"(THEN|ELSE) rare", of_winner) is not None
    assert (never in out) != rules_say_rare
    assert set(re.findall(r"--(\w+) balanced_accuracy", out)) == {"performance"}
    frame["kind"] = rng.choice(["a", "b"], 200, p=[0.8, 0.2])
    frame["number"] = rng.normal(size=200)
    frame.to_csv(tmp_path / "noise.csv", index=False)
    code, out, _ = run(
        "tune", tmp_path / "noise.csv", "--target", "kind", "--drop", "number", *common
    )
    assert out.startswith("Warning: The model predicts 'kind' no better than a constant")
    code, out, _ = run(
        "tune", tmp_path / "noise.csv", "--target", "number", "--drop", "kind", *common
    )
    assert out.startswith("Warning: The model predicts 'number' no better than a constant")


def test_shortcomings_compare_with_weighted_constant_class(run, tmp_path):
    """The rules are right on fewer rows than a constant, but find the other classes."""
    rng = np.random.default_rng(0)
    a = rng.normal(size=200)
    kinds = np.where(a + 0.4 * rng.normal(size=200) > 1.2, "rare", "usual")
    pd.DataFrame({"a": a, "kind": kinds}).to_csv(tmp_path / "rare.csv", index=False)
    common = ("--cv", 2, "--trials", 1, "--extractors", "cart", "--black-box", "decision-tree")
    rows = tmp_path / "rare.csv"
    more = ("--test", rows, "--output", tmp_path / "run", "--report")
    _, out, _ = run("tune", rows, "--target", "kind", *common, "--class-weight", "balanced", *more)
    quality = float(re.search(r"accuracy ([0-9.]+)", out)[1])
    assert 0.6 < quality < (kinds == "usual").mean()
    assert not out.startswith("Note: ")
    assert "all classes have the same total weight" in out
    assert "Numbers of weighted rows are sums of weights" in out
    assert "of weighted held-out rows (data)" in out
    assert "(each counts once)" in out
    rules = json.loads((tmp_path / "run" / "rules.json").read_text(encoding="utf-8"))
    page = (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    assert "; all classes have the same weight, on held-out rows" in page
    # The other rules of the front are extracted again with the weights.
    assert "differ from the rules of the run" not in page
    right = RuleSet.from_json(json.dumps(rules)).predict(a[:, None]) == kinds
    message = rf"accuracy \(data\) of the rules {right.mean():.3f}, .* completeness by rows"
    assert re.search(message, " ".join(out.split()))


@pytest.mark.slow
def test_completeness_by_rows_ignores_class_weights(run, tmp_path):
    rng = np.random.default_rng(3)
    place = rng.choice(["hi", "mid", "lo"], 60)
    a, b = rng.normal(size=60).round(1), rng.integers(0, 5, 60)
    high = a + 0.5 * rng.normal(size=60) > 0.5
    kinds = np.where(place == "lo", "x", np.where(high, "z", "y"))
    frame = pd.DataFrame({"place": place, "a": a, "b": b, "kind": kinds})
    frame.to_csv(tmp_path / "rows.csv", index=False)
    words = ("--extractors", "real", "--scoring", "accuracy", "--trials", 6, "--cv", 2)
    more = ("--class-weight", "balanced", "--format", "json", "--output", tmp_path / "run")
    _, out, _ = run(
        "tune",
        tmp_path / "rows.csv",
        "--target",
        "kind",
        "--black-box",
        "decision-tree",
        *words,
        *more,
    )
    rules = RuleSet.from_json((tmp_path / "run" / "rules.json").read_text(encoding="utf-8"))
    covered = rules.covers(frame).mean()
    assert covered < 1
    assert json.loads(out)["best"]["completeness_instances"] == pytest.approx(covered)


@pytest.mark.slow
def test_performance_option_changes_scores(run):
    settings = ("wine", *SHORT, "--format", "json")
    plain, balanced = (
        json.loads(run("tune", *settings, *more)[1])["leaderboard"][0]
        for more in ((), ("--performance", "balanced_accuracy"))
    )
    search = by_hand(load_dataset("wine"), scoring=make_ice_scorer(performance="balanced_accuracy"))
    assert balanced["performance"] == search.leaderboard_.iloc[0]["performance"]
    assert balanced["performance"] != plain["performance"]


@pytest.mark.slow
def test_features_option_limits_columns_of_rules(run, flowers, tmp_path):
    flowers.to_csv(tmp_path / "flowers.csv", index=False)
    common = (tmp_path / "flowers.csv", "--target", "kind", *SHORT, "--format", "json")
    code, out, _ = run("tune", *common, "--features", "sl, pw")
    assert code == 0
    rules = RuleSet.from_json(json.dumps(json.loads(out)["rules"]))
    assert list(rules.feature_names) == ["sl", "sw", "pl", "pw"]
    assert {j for rule in rules.rules for c in rule.conditions for j in c.features} <= {0, 3}
    code, out, err = run("tune", *common, "--features", "sl,width")
    assert (code, out) == (1, "")
    assert "width" in err


@pytest.mark.slow
def test_unused_columns_are_reported(run, tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"used": rng.normal(size=300), "other": rng.normal(size=300)})
    frame["twin"] = np.exp(frame["used"])
    frame["kind"] = np.where(frame["used"] > 0, "high", "low")
    frame.to_csv(tmp_path / "twins.csv", index=False)
    tree = DecisionTreeClassifier(random_state=0).fit(
        frame[["used", "other", "twin"]], frame["kind"]
    )
    tree.tree_.feature[tree.tree_.feature >= 0] = 0
    tree.tree_.threshold[0] = 0.0
    joblib.dump(tree, tmp_path / "tree.joblib")
    common = (
        "tune",
        tmp_path / "twins.csv",
        "--target",
        "kind",
        "--black-box",
        tmp_path / "tree.joblib",
        "--trust",
        "--extractors",
        "cart",
        "--trials",
        2,
        "--cv",
        2,
        "--quiet",
    )
    code, out, _ = run(*common, "--features", "twin,other")
    assert code == 0
    assert out.startswith("Note: these rules use twin, but the model does not seem to: permuting")
    assert "with 95 % confidence, at most " in out
    code, out, _ = run(*common)
    assert code == 0
    assert not out.startswith("Note: ") or "twin" in out


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "why"),
    [
        (["iris", "--scoring", "pareto"], "is the knee of the trade-off"),
        (["titanic", "--pick", 1], "was selected by --pick 1"),
        (["iris", "--max-rules", 2], "is the best that satisfies --max-rules"),
    ],
)
def test_leaderboard_explains_an_unexpected_first_row(run, options, why):
    _, out, err = run(
        "tune",
        "--black-box",
        "decision-tree",
        "--extractors",
        "cart",
        "--trials",
        8,
        "--cv",
        2,
        *options,
    )
    table = out.partition("leaderboard: ")[2].partition("\ntrade-off: ")[0]
    scores = [float(_cells(line)[2]) for line in table.splitlines() if re.match(r" ?\d+  ", line)]
    assert scores[0] < max(scores)
    assert scores[1:] == sorted(scores[1:], reverse=True)
    assert f"(The first {why}; the others are sorted by ICE.)" in out
    assert not re.search(r"(?<!\[)\b(0|1) (that are|trials\b|rows\b|rules\b)", out + err)


def test_tune_minimizes_several_losses(run, tmp_path):
    options = ("--black-box", "decision-tree", "--extractors", "cart", "--trials", 4, "--cv", 2)
    scoring = ("--scoring", "loss, n_rules,group_gap:sex")
    code, out, _ = run("tune", "titanic", *options, *scoring, "--output", tmp_path / "run")
    assert code == 0
    assert "best trade-offs between loss, rules and group_gap:sex: " in out
    heading = next(line for line in out.splitlines() if line.startswith("rules  errors"))
    assert heading.split("  ")[3] == "group_gap:sex"
    assert "the knee of the trade-off; its" in out
    about = json.loads((tmp_path / "run" / "run.json").read_text(encoding="utf-8"))
    assert about["search"]["scoring"] == ["loss", "n_rules", "group_gap:sex"]
    # The candidate without any difference between the groups is the constant.
    assert out.partition("group_gap:sex  ")[2].splitlines()[1].split()[:4] == [
        "1.0",
        "0.323",
        "1.000",
        "0.000",
    ]
    code, _, err = run("tune", "titanic", "--scoring", "loss,n_ruls")
    assert code == 2
    assert "there is no objective 'n_ruls'. Did you mean 'n_rules'?" in err
    assert "there is no score 'loss'" in run("tune", "titanic", "--scoring", "loss, loss")[2]


def test_tune_reads_quoted_columns_of_gaps(run, tmp_path):
    rows = [f"{'ab'[i % 2]},{i},{'no' if i < 20 else 'yes'}" for i in range(40)]
    path = tmp_path / "rows.csv"
    path.write_text("\n".join(['"street, city",age,y', *rows]), encoding="utf-8")
    gap = '"group_gap:street, city"'
    options = ("--black-box", "decision-tree", "--extractors", "cart", "--trials", 1, "--cv", 2)
    options = ("tune", path, "--target", "y", *options, "--scoring", f"loss,{gap}")
    code, _, err = run(*options, "--measures", gap, "--output", tmp_path / "run")
    assert code == 0, err
    about = json.loads((tmp_path / "run" / "run.json").read_text(encoding="utf-8"))
    assert about["search"]["scoring"] == ["loss", "group_gap:street, city"]
    assert about["search"]["measures"] == ["neg_group_gap:street, city"]


# --- rows in place --------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        ("--scoring", "fire", "--max-rules", "2"),
        ("--phi", "0.05", "--min-performance", "0.93"),
        ("--scoring", "pareto"),
        ("--class-weight", "balanced"),
    ],
)
def test_finalists_are_scored_by_scoring_on_all_rows(run, tmp_path, options):
    """Limits, the knee and class weights apply to rows in place as to rows in memory."""
    X, y = load_iris(return_X_y=True, as_frame=True)
    rows = X.assign(kind=np.array(["setosa", "versicolor", "virginica"])[y])[20:]
    (tmp_path / "rows").mkdir()
    rows.to_parquet(tmp_path / "rows" / "part.parquet", index=False)
    rows.to_csv(tmp_path / "rows.csv", index=False)
    words = ("--target", "kind", *SHORT, *options, "--format", "json")
    stays, read = (
        json.loads(run("tune", tmp_path / name, *words)[1]) for name in ("rows", "rows.csv")
    )
    assert stays["rules"] == read["rules"]


@pytest.mark.parametrize(
    ("column", "options"),
    [
        (["-1", "1", "2", "3"], ["--na-values=-1"]),
        ([-1.0, 1.0, 2.0, 3.0], ["--na-values=-1"]),
        (["NA", "a", "b", "c"], []),
        (pd.to_datetime([f"202{n}-01-01" for n in range(4)]), []),
        ([None, 1.0, 2.0, 3.0], ["--missing", "drop"]),
    ],
)
def test_tune_ignores_all_rows_stored_differently(run, tmp_path, column, options):
    """Sums over all rows know no words for missing values and would count other rows."""
    number = np.arange(120)
    rows = pd.DataFrame({"x": pd.Series(column).take(number % 4).to_numpy(), "z": number % 7})
    rows["y"] = np.where((number % 4 == 0) | (number % 7 > 4), "yes", "no")
    rows.to_parquet(tmp_path / "part.parquet", index=False)
    words = ("tune", tmp_path, "--target", "y", *SHORT, *options, "--format", "json")
    code, out, err = run(*words)
    assert code == 0, err
    assert "all_rows" not in json.loads(out)
    assert any("evaluated on the sample only" in note for note in json.loads(out)["notes"])


@pytest.mark.slow
def test_tune_compares_finalists_on_all_rows(run, tmp_path):
    X, y = load_iris(return_X_y=True, as_frame=True)
    rows = pd.concat([X.assign(kind=np.array(["setosa", "versicolor", "virginica"])[y])] * 4)
    for part in range(3):
        rows[part::3].to_parquet(tmp_path / f"part{part}.parquet", index=False)
    words = ("tune", tmp_path, "--target", "kind", "--sample", "150", *SHORT)
    code, out, _ = run(*words, "--format", "json")
    assert code == 0
    data = json.loads(out)
    assert data["data"]["rows"] == 150
    everything = data["all_rows"]
    assert everything["rows"] == 600
    assert any("sample of 150 of the 600 rows" in note for note in data["notes"])
    rules = RuleSet.from_json(json.dumps(data["rules"]))
    assert everything["accuracy"] == pytest.approx(
        (rules.predict(rows[X.columns]) == rows["kind"]).mean()
    )
    finalists = everything["finalists"]
    assert 1 <= len(finalists) <= 3
    assert everything["scores"]["ice"] == max(row["score"] for row in finalists)
    _, out, _ = run(*words)
    assert "on all 600 rows: accuracy" in out
    # The black box predicts unseen rows like those of the sample.
    code, out, _ = run(*words, "--reference", "black-box", "--format", "json")
    assert code == 0
    data = json.loads(out)
    assert data["all_rows"]["rows"] == 600
    assert data["all_rows"]["accuracy"] != everything["accuracy"]
    assert data["all_rows"]["accuracy"] > 0.9


def test_database_needs_target_as_reference(run, tmp_path):
    pd.DataFrame({"x": [1.0, 2.0], "y": ["a", "b"]}).to_parquet(tmp_path / "part.parquet")
    code, _, err = run("tune", tmp_path)
    assert code == 2
    assert "needs --target COLUMN" in err
    url = f"sqlite:///{tmp_path}/some.db?table=t"
    code, _, err = run("tune", url, "--target", "y", "--reference", "black-box")
    assert code == 2
    assert "the model cannot predict rows in a database" in err


def test_unmet_limits_fail_with_and_without_quiet(run):
    words = ("tune", "iris", "--black-box", "decision-tree", "--extractors", "cart")
    words = (*words, "--trials", 1, "--cv", 2, "--max-rules", 1, "--min-fidelity", 0.9)
    code, out, err = run(*words, "--quiet")
    assert code == 1
    assert "no candidate satisfies --max-rules 1, --min-fidelity 0.9" in err
    assert "best: " in out
    code, out, err = run(*words)
    assert code == 1
    assert "No candidate has at most 1 rule" in err
    assert "(No candidate satisfies --max-rules 1, --min-fidelity 0.9.)" in out
    assert "that satisfies" not in out


def test_features_option_suggests_names_of_another_case(run):
    code, _, err = run("tune", "titanic", "--features", "Sex", "--black-box", "decision-tree")
    assert code == 1
    assert "--features must name features of titanic, got 'Sex'. Did you mean 'sex'?" in err


@pytest.mark.parametrize(("n_rules", "note"), [(12, []), (13, ["... and 1 more rule"])])
def test_shortened_rules_end_with_the_fallback(n_rules, note):
    rules = RuleSet(
        [Rule([Interval(0, k, k + 1)], "ab"[k % 2]) for k in range(n_rules)],
        ["x"],
        task="classification",
        classes=["a", "b"],
        fallback=Fallback("b"),
    )
    lines = rules_text(rules, 12).splitlines()
    assert lines[:12] == str(rules).splitlines()[:12]
    assert lines[12:] == [*note, "otherwise, where no rule holds: b"]
