from __future__ import annotations

import hashlib
import json
import math
import re
import warnings
from dataclasses import replace
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from sklearn.metrics import (
    accuracy_score,
    f1_score,
    mean_absolute_error,
    mean_squared_error,
    r2_score,
)
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from skescore.cli import main
from skescore.datasets import load_dataset
from skescore.metrics import (
    RULE_MEASURES,
    characteristics,
    rule_overlap,
    rule_report,
)
from skescore.rules import (
    Domain,
    Fallback,
    Interval,
    LinearOutput,
    Rule,
    RuleSet,
    RuleStatistics,
)
from skescore.scorers import SET_MEASURES, SET_SCORERS, evaluate_rules

COMMAND = "score"

NAMES = ("a", "b")
DOMAIN = Domain((0.0, 0.0), (10.0, 20.0))


@pytest.fixture
def write(tmp_path):
    def write(content, name):
        path = tmp_path / name
        if isinstance(content, RuleSet):
            content = content.to_json()
        if isinstance(content, pd.DataFrame):
            content = content.to_csv(index=False)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def interval(feature, lower=-math.inf, upper=math.inf):
    return Interval(feature, lower=lower, upper=upper)


# They cover 5/8 of the domain's volume: all of a < 5, and of a ≥ 5 the quarter where b < 5.
CLASSES = RuleSet(
    [
        Rule((interval(0, upper=5.0),), "low"),
        Rule((interval(0, lower=5.0), interval(1, upper=5.0)), "high"),
    ],
    NAMES,
    task="classification",
    domain=DOMAIN,
    fallback=Fallback("low"),
)
NUMBERS = RuleSet(
    [
        Rule((interval(0, upper=5.0),), 1.0),
        Rule((interval(0, lower=5.0), interval(1, upper=5.0)), 3.0),
    ],
    NAMES,
    task="regression",
    domain=DOMAIN,
    fallback=Fallback(2.0),
)
A = np.array([1.0, 2.0, 3.0, 4.0, 6.0, 7.0, 8.0, 9.0])
B = np.array([1.0, 9.0, 1.0, 9.0, 1.0, 2.0, 8.0, 9.0])
COVERED = (A < 5) | (B < 5)
KINDS = pd.DataFrame(
    {"a": A, "b": B, "y": ["low", "low", "high", "low", "high", "low", "high", "low"]}
)
VALUES = pd.DataFrame({"a": A, "b": B, "y": [1.0, 1.5, 0.5, 1.0, 3.5, 2.0, 7.0, 2.5]})


@pytest.fixture
def rules(write):
    return write(CLASSES, "rules.json")


@pytest.fixture
def kinds(write):
    return write(KINDS, "kinds.csv")


# Results ------------------------------------------------------------------------------------------


def scored(run, *words):
    code, out, err = run(*words, "--target", "y", "--format", "json")
    assert (code, err) == (0, "")
    return json.loads(out)


@pytest.mark.parametrize("completeness", ["volume", "instances"])
def test_scores_of_classes_equal_formulas_of_papers(completeness, rules, kinds, run):
    weights = ("--psi", "0.5", "--phi", "2", "--rho", "3", "--completeness", completeness)
    score = scored(run, rules, kinds, *weights)
    truth, answers = KINDS["y"].to_numpy(), np.where(A < 5, "low", "high")
    assert score["n_rules"] == 2
    assert score["n_conditions"] == 3
    assert score["completeness_volume"] == pytest.approx(0.625)
    assert score["completeness_instances"] == 6 / 8
    assert score["rows_covered"] == 6
    accuracy = accuracy_score(truth[COVERED], answers[COVERED])
    f1 = f1_score(truth[COVERED], answers[COVERED], average="weighted")
    assert score["prediction"]["accuracy"]["covered_rows"] == pytest.approx(accuracy)
    assert score["prediction"]["f1_weighted"]["covered_rows"] == pytest.approx(f1)
    # Two rows without a rule are wrong, whatever the fallback is: four of eight are right.
    assert score["prediction"]["accuracy"]["all_rows"] == pytest.approx(4 / 8)
    share = 0.625 if completeness == "volume" else 0.75
    p, r = expit(-5 * (2 * (1 - f1) - 1)), expit(-(0.3 * 3 * 2 - 5))
    assert score["scores"]["ice"] == pytest.approx(p * r * share)
    assert score["scores"]["fire"] == pytest.approx((1 - 4 / 8) * 4 * 2**0.05)
    assert score["scores"]["q"] == pytest.approx((1 - f1) * 2 * (2 - share))


def test_scores_of_numbers_equal_formulas_of_papers(write, run):
    score = scored(run, write(NUMBERS, "r.json"), write(VALUES, "values.csv"), "--psi", 2)
    truth, answers = VALUES["y"].to_numpy(), np.where(A < 5, 1.0, 3.0)
    # On all rows, those without a rule are predicted by the stored mean.
    everywhere = np.where(COVERED, answers, 2.0)
    prediction = score["prediction"]
    for name, measure in [
        ("r2", r2_score),
        ("mean_absolute_error", mean_absolute_error),
        ("mean_squared_error", mean_squared_error),
    ]:
        assert prediction[name]["covered_rows"] == pytest.approx(
            measure(truth[COVERED], answers[COVERED])
        )
        assert prediction[name]["all_rows"] == pytest.approx(measure(truth, everywhere))
    assert score["scores"]["fire"] == pytest.approx(
        mean_absolute_error(truth, everywhere) * 1 * 2**0.05
    )
    assert score["scores"]["q"] == pytest.approx(
        mean_absolute_error(truth[COVERED], answers[COVERED]) * 2 * (2 - 0.625)
    )
    r2 = r2_score(truth[COVERED], answers[COVERED])
    assert score["scores"]["ice"] == pytest.approx(
        expit(-5 * (1 - r2 - 1)) * expit(-(0.3 * 2 - 5)) * 0.625
    )


def test_score_equals_figures_of_the_search(tmp_path, run, capsys):
    words = ["tune", "iris", "--black-box", "decision-tree", "--trials", "4", "--cv", "2"]
    assert main([*words, "--output", str(tmp_path), "--format", "json"]) == 0
    tuned = json.loads(capsys.readouterr().out)
    code, out, _ = run(tmp_path / "rules.json", "iris", "--format", "json")
    assert code == 0
    data = json.loads(out)
    iris = load_dataset("iris")
    rules = RuleSet.from_json(json.dumps(tuned["rules"]))
    expected = accuracy_score(iris.y, rules.predict(iris.X.to_numpy()))
    assert data["prediction"]["accuracy"]["all_rows"] == pytest.approx(expected)
    del tuned["data"]["distribution"]
    assert data["data"] == tuned["data"]
    for name in ("n_rules", "completeness_volume", "completeness_instances"):
        assert data[name] == tuned["best"][name]


def _rows(text, sign):
    results = {}
    for line in text.splitlines():
        cells = [
            c.strip()
            for c in (
                line.strip("|").split("|") if sign == "|" else re.split(r" {2,}", line.strip())
            )
        ]
        results.setdefault(cells[0], cells[1:])
    return results


@pytest.mark.parametrize(("form", "sign"), [("text", " "), ("markdown", "|")])
def test_text_and_markdown_equal_figures_of_json(form, sign, rules, kinds, run):
    score = scored(run, rules, kinds)
    code, out, err = run(rules, kinds, "--target", "y", "--format", form)
    assert (code, err) == (0, "")
    assert out.startswith(f"{rules}: 2 rules with 3 conditions, on 8 rows of kinds\n")
    rows = _rows(out, sign)
    for label, name in [("ICE", "ice"), ("FiRe", "fire"), ("Q", "q")]:
        assert rows[label][0] == f"{score['scores'][name]:.4f}"
    assert rows["completeness by volume"][0] == "0.625"
    assert rows["completeness by rows"][0] == f"{6 / 8:.3f}"
    assert "(6 of 8)" in rows["completeness by rows"][1]
    for label, name in [("accuracy", "accuracy"), ("weighted F1", "f1_weighted")]:
        values = score["prediction"][name]
        assert rows[label] == [f"{values['covered_rows']:.3f}", f"{values['all_rows']:.3f}"]
    assert "(ICE and Q use completeness by volume.)" in out
    assert "rows that no rule covers count as wrong" in out


def test_score_states_source_and_checksum(rules, kinds, run):
    score = scored(run, rules, kinds)
    assert score["data"]["source"] == str(kinds)
    assert score["data"]["checksum_sha256"] == hashlib.sha256(kinds.read_bytes()).hexdigest()
    assert score["rules"] == str(rules)


# The tables of users ------------------------------------------------------------------------------


def test_score_ignores_column_order_and_further_columns(rules, write, kinds, run):
    wider = KINDS[["y", "b", "a"]].assign(id=range(8), note="text", hole=np.nan)
    score = scored(run, rules, write(wider, "wider.csv"))
    expected = scored(run, rules, kinds)
    assert score["scores"] == expected["scores"]
    assert score["prediction"] == expected["prediction"]
    assert score["data"]["features"] == ["a", "b"]


def test_missing_drop_omits_rows(rules, write, run):
    holes = KINDS.copy()
    holes.loc[2, "b"] = np.nan
    path = write(holes, "holes.csv")
    score = scored(run, rules, path, "--missing", "drop")
    assert (score["data"]["rows"], score["data"]["rows_dropped"]) == (7, 1)
    assert score["prediction"]["accuracy"]["covered_rows"] == pytest.approx(4 / 5)
    _, out, _ = run(rules, path, "--target", "y", "--missing", "drop")
    assert "on 7 rows of holes (1 row with missing values dropped)" in out


def test_unknown_classes_count_as_wrong_and_are_noted(rules, write, run):
    table = KINDS.assign(y=KINDS["y"].where(KINDS.index != 4, "middle"))
    words = (rules, write(table, "t.csv"), "--target", "y", "--format", "json")
    code, out, err = run(*words)
    assert code == 0
    assert err == "skescore: note: 1 row with classes that the rules do not have: 'middle'\n"
    data = json.loads(out)
    assert data["prediction"]["accuracy"]["all_rows"] == pytest.approx(3 / 8)
    assert data["notes"] == ["1 row with classes that the rules do not have: 'middle'"]


def test_rules_without_covered_rows_have_no_scores(write, kinds, run):
    nowhere = CLASSES.replace(rules=[Rule((interval(0, lower=9.5),), "high")])
    code, out, err = run(write(nowhere, "r.json"), kinds, "--target", "y", "--format", "json")
    assert code == 0
    data = json.loads(out)
    assert data["scores"]["ice"] is None
    assert data["scores"]["q"] is None
    assert data["completeness_instances"] == 0
    assert "ICE is undefined on these rows (8 rows, 0 covered by the 1 rules)" in err
    code, out, _ = run(write(nowhere, "r.json"), kinds, "--target", "y")
    assert code == 0
    assert _rows(out, " ")["ICE"][0] == "-"
    assert "1 rule with 1 condition," in out


@pytest.mark.parametrize("task", ["auto", "regression"])
def test_task_of_integers_follows_rules(task, write, run):
    """Eight integers would be taken for classes, but these rules predict numbers."""
    table = VALUES.assign(y=[1, 1, 0, 1, 3, 2, 7, 2])
    path = write(table, "t.csv")
    assert load_dataset(path, target="y").task == "classification"
    score = scored(run, write(NUMBERS, "r.json"), path, "--task", task)
    assert score["data"]["task"] == "regression"
    assert set(score["prediction"]) >= {"r2", "mean_absolute_error"}


# Bad input ----------------------------------------------------------------------------------------


def failed(run, *words):
    code, out, err = run(*words)
    assert (code, out) == (1, "")
    assert err.startswith("skescore: error: ")
    assert "Traceback" not in err
    return err


def changed(**changes):
    return json.dumps(json.loads(CLASSES.to_json()) | changes)


def first_rule(**changes):
    data = json.loads(CLASSES.to_json())
    data["rules"][0] |= changes
    return json.dumps(data)


RULES_FILES = {
    "empty": ("", ["is not JSON"]),
    "words": ("hello", ["is not JSON", "line 1"]),
    "half": (CLASSES.to_json()[:200], ["is not JSON", "line"]),
    "deep": ("[" * 100_000, ["is not JSON"]),
    "binary": (b"\xff\xfe\x00", ["not UTF-8", "no rules"]),
    "list": ("[]", ["not a rule set", "'list'", "RuleSet.to_json()"]),
    "other object": ('{"rules": []}', ["not a rule set", "'format'", "RuleSet.to_json()"]),
    "later version": (changed(version=99), ["version 99", "pip install --upgrade skescore"]),
    "no names": (changed(feature_names=None), ["feature_names", "None"]),
    "rules no list": (changed(rules=5), ["rules must be a list", "5"]),
    "unknown feature": (
        first_rule(**{"if": [{"type": "interval", "feature": 7, "upper": 1.0}]}),
        ["Rule 1 uses feature 7", "a, b"],
    ),
    "unknown condition": (
        first_rule(**{"if": [{"type": "magic"}]}),
        ["rule 1", "unknown type of condition 'magic'", "interval"],
    ),
    "bound is text": (
        first_rule(**{"if": [{"type": "interval", "feature": 0, "upper": "x"}]}),
        ["rule 1", "upper must be a number", "'x'"],
    ),
    "unknown class": (first_rule(then="purple"), ["Rule 1 concludes 'purple'", "'low'"]),
    "no rules": (CLASSES.replace(rules=[]), ["contains no rules", "skescore tune"]),
}


@pytest.mark.parametrize("name", RULES_FILES)
def test_rules_file_without_usable_rules_is_named(name, write, kinds, run):
    content, messages = RULES_FILES[name]
    path = write(content, "broken.json")
    err = failed(run, path, kinds, "--target", "y")
    assert err.startswith(f"skescore: error: {path}")
    for text in messages:
        assert text in err


def test_rules_file_must_exist(tmp_path, kinds, run):
    err = failed(run, tmp_path / "none.json", kinds, "--target", "y")
    assert f"There is no file {tmp_path / 'none.json'}" in err
    err = failed(run, tmp_path, kinds, "--target", "y")
    assert f"{tmp_path} is a folder without rules.json; pass the folder of a run" in err


def test_folder_of_a_run_stands_for_its_rules(tmp_path, rules, kinds, run):
    assert rules == tmp_path / "rules.json"
    _, expected, _ = run(rules, kinds, "--target", "y")
    code, out, _ = run(tmp_path, kinds, "--target", "y")
    assert (code, out) == (0, expected)


def test_target_of_the_run_is_the_default(tmp_path, rules, kinds, run):
    target = {"data": {"target": "y", "features": list(CLASSES.feature_names)}}
    (tmp_path / "run.json").write_text(json.dumps(target), encoding="utf-8")
    _, expected, _ = run(rules, kinds, "--target", "y")
    code, out, _ = run(rules, kinds)
    assert (code, out) == (0, expected)


def test_rules_file_that_cannot_be_read_is_named(rules, kinds, monkeypatch, run):
    read = Path.read_text

    def refuse(self, *args, **options):
        if self == rules:
            raise PermissionError(13, "Permission denied", str(self))
        return read(self, *args, **options)

    monkeypatch.setattr(Path, "read_text", refuse)
    err = failed(run, rules, kinds, "--target", "y")
    assert str(rules) in err
    assert "Permission denied" in err


def test_missing_columns_are_named_with_a_suggestion(rules, write, run):
    path = write(KINDS.rename(columns={"b": "B"}), "t.csv")
    err = failed(run, rules, path, "--target", "y")
    for text in ["'b'", "Did you mean 'B'?", "'a', 'B', 'y'", f"The rules in {rules}"]:
        assert text in err


@pytest.mark.parametrize(
    ("changes", "messages"),
    [
        ({"y": [0, 1, 0, 1, 1, 0, 1, 0]}, ["(0, 1)", "('high', 'low')", "Encode y"]),
        ({"y": [True, False] * 4}, ["(False, True)", "('high', 'low')"]),
        ({"y": ["LOW", "HIGH"] * 4}, ["'HIGH', 'LOW'", "('high', 'low')"]),
    ],
)
def test_score_rejects_unsuitable_data(changes, messages, rules, write, run):
    err = failed(run, rules, write(KINDS.assign(**changes), "t.csv"), "--target", "y")
    for text in messages:
        assert text in err


def test_score_accepts_rows_of_one_class(rules, write, run):
    path = write(KINDS.assign(y="low"), "t.csv")
    accuracy = scored(run, rules, path)["prediction"]["accuracy"]
    is_low = CLASSES.predict(KINDS[["a", "b"]]) == "low"
    shares = {"covered_rows": is_low[COVERED].mean(), "all_rows": (is_low & COVERED).mean()}
    assert accuracy == pytest.approx(shares)
    assert accuracy["all_rows"] == 0.5  # rows without a rule count as wrong


@pytest.mark.parametrize(
    ("cells", "notes"),
    [
        ([1.0, np.nan], []),
        ([1.0, np.inf], ["4 infinite values in column 'b' are read as missing"]),
        (["x", "1"], ["'x' in column 'b' is read as missing (4 rows)"]),
    ],
)
def test_score_accepts_missing_values_unless_forbidden(cells, notes, rules, write, run):
    path = write(KINDS.assign(b=cells * 4), "t.csv")
    code, out, _ = run(rules, path, "--target", "y", "--format", "json")
    assert code == 0
    drift = "'b' is missing in 4 of 8 rows, but in 0 % of the training rows"
    assert json.loads(out)["notes"] == [drift, *notes]
    err = failed(run, rules, path, "--target", "y", "--missing", "error")
    assert "column 'b'" in err
    assert "--missing drop" in err or "infinite" in err


def test_score_rejects_rules_for_another_task(rules, kinds, run):
    err = failed(run, rules, "diabetes")
    assert f"rules in {rules} are for classification, but diabetes is for regression" in err
    err = failed(run, rules, kinds, "--target", "y", "--task", "regression")
    assert f"rules in {rules} are for classification, but --task is for regression" in err


def test_score_needs_a_target(rules, kinds, run):
    assert "target is missing" in failed(run, rules, kinds)
    err = failed(run, rules, kinds, "--target", "z")
    assert "target must be among the columns, got 'z'" in err
    assert "'nothing.csv' is neither" in failed(run, rules, "nothing.csv", "--target", "y")


def test_score_accepts_linear_outputs(write, run):
    steep = NUMBERS.replace(rules=[Rule((), LinearOutput(0.0, ((0, 1.0),)))])
    score = scored(run, write(steep, "r.json"), write(VALUES, "v.csv"))
    expected = mean_absolute_error(VALUES["y"], A)
    assert score["prediction"]["mean_absolute_error"]["all_rows"] == pytest.approx(expected)
    assert score["completeness_volume"] == 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "RULES.json, DATA"),
        (["r.json"], "the following arguments are required: DATA"),
        (["r.json", "iris", "--psi", "0"], "--psi: must be a number above 0, got '0'"),
        (["r.json", "iris", "--trials", "4"], "there is no option --trials"),
        (["r.json", "iris", "--missing", "fill"], "--missing: invalid choice: 'fill'"),
    ],
)
def test_score_exits_with_two_on_wrong_usage(words, message, run):
    code, out, err = run(*words)
    assert (code, out) == (2, "")
    assert message in err
    assert err.endswith("Try 'skescore score --help'.\n")


# Measures of single rules -------------------------------------------------------------------------


def test_characteristics_equal_library(rules, kinds, run):
    score = scored(run, rules, kinds, "--measures", "c2,lift")
    assert score["measures"] == ["c2", "lift"]
    report = rule_report(CLASSES, KINDS[["a", "b"]], KINDS["y"], measures=["c2", "lift"])
    assert [rule["number"] for rule in score["rules_by_themselves"]] == [1, 2]
    for rule, expected in zip(score["rules_by_themselves"], report.to_dict("records"), strict=True):
        assert set(rule) == set(expected) - {"coverage", "precision"} | {"number"}
        for name in set(rule) - {"number"}:
            assert rule[name] == expected[name], name
    # By hand: of four rows with a < 5, three are low, of five low rows altogether.
    first = score["rules_by_themselves"][0]
    assert [first[name] for name in ("p", "n", "P", "N")] == [3, 1, 5, 3]
    assert first["lift"] == pytest.approx(3 / 4 / (5 / 8))
    figures = characteristics(CLASSES, KINDS[["a", "b"]], KINDS["y"])
    assert score["characteristics"] == pytest.approx(figures)
    assert "characteristics" not in scored(run, rules, kinds)


@pytest.mark.parametrize("words", ["all", "c2, all", " all "])
def test_measures_option_accepts_all(words, rules, kinds, run):
    score = scored(run, rules, kinds, "--measures", words)
    assert score["measures"] == list(RULE_MEASURES)
    assert set(RULE_MEASURES) <= set(score["rules_by_themselves"][0])


def test_undefined_measures_are_null_and_a_dash(write, kinds, run):
    nowhere = write(CLASSES.replace(rules=[Rule((interval(0, lower=9.5),), "high")]), "r.json")
    words = (nowhere, kinds, "--target", "y", "--measures", "precision")
    code, out, _ = run(*words, "--format", "json")
    assert code == 0
    assert json.loads(out)["rules_by_themselves"][0]["precision"] is None
    code, out, _ = run(*words)
    assert code == 0
    assert re.search(r"^rule +precision\n +1 +-$", out, re.MULTILINE)


@pytest.mark.parametrize(("form", "sign"), [("text", " "), ("markdown", "|")])
def test_measures_are_tabulated_by_rule_number(form, sign, rules, kinds, run):
    code, out, err = run(
        rules, kinds, "--target", "y", "--measures", "precision,c2", "--format", form
    )
    assert (code, err) == (0, "")
    assert "1. IF a ≤ 5 THEN low\n2. IF a > 5 AND b ≤ 5 THEN high\n" in out
    below = out[out.index("rows of each rule") :]
    result = _rows(below[: below.index("measures\n")], sign)
    assert result["rule"][:6] == ["right", "wrong", "all right", "all wrong", "overlap", "alone"]
    assert result["1"][:6] == ["3", "1", "5", "3", "0.000", "4"]
    assert result["2"][:6] == ["1", "1", "3", "5", "0.000", "2"]
    result = _rows(below[below.index("measures\n") :], sign)
    assert result["rule"] == ["precision", "c2"]
    assert result["1"][0] == "0.750"
    assert result["precision"][0] == "0.625"
    assert result["conflicts"][0] == "0"


def test_tables_of_all_measures_fit_a_terminal(rules, kinds, monkeypatch, run):
    monkeypatch.setenv("COLUMNS", "100")
    code, out, _ = run(rules, kinds, "--target", "y", "--measures", "all")
    assert code == 0
    assert max(map(len, out.splitlines())) <= 100
    heads = [line.split()[1:] for line in out.splitlines() if line.startswith("rule ")]
    assert [name for head in heads[1:] for name in head] == list(RULE_MEASURES)


def test_assigned_rows_option_restricts_measures(write, kinds, run):
    listed = write(CLASSES.replace(rules=[CLASSES.rules[0], Rule((), "high")]), "r.json")
    score = scored(run, listed, kinds, "--measures", "precision")
    answered = scored(run, listed, kinds, "--measures", "precision", "--assigned-rows")
    counts = [
        (r["rules_by_themselves"][1]["p"], r["rules_by_themselves"][1]["n"])
        for r in (score, answered)
    ]
    assert counts == [(3, 5), (2, 2)]
    words = (listed, kinds, "--target", "y", "--measures", "precision")
    assert "including those that another rule predicts" in run(*words)[1]
    assert "on the rows assigned to it" in run(*words, "--assigned-rows")[1]


def test_assigned_rows_option_rejects_voting_rules(write, kinds, run):
    votes = write(CLASSES.replace(ordered=False, disjoint=False, voting="votes"), "r.json")
    words = (votes, kinds, "--target", "y", "--measures", "c2")
    assert run(*words)[0] == 0
    err = failed(run, *words, "--assigned-rows")
    assert f"the rules in {votes} predict together (voting 'votes'). Leave the option out." in err


def test_measures_of_regression_rules_equal_library(write, run):
    words = (write(NUMBERS, "r.json"), write(VALUES, "v.csv"))
    score = scored(run, *words, "--measures", "precision")
    report = rule_report(NUMBERS, VALUES[["a", "b"]], VALUES["y"])
    values = [rule["precision"] for rule in score["rules_by_themselves"]]
    assert values == report["precision"].tolist()
    assert "voting_conflicts" not in score["characteristics"]
    code, out, _ = run(*words, "--target", "y", "--measures", "precision")
    assert code == 0
    assert "within a standard deviation" in out


def test_measures_option_rejects_unknown_names(rules, kinds, run):
    for words, message in [
        (["--measures", "c2,presicion"], "no measure of rules 'presicion'. Did you mean 'prec"),
        (["--measures", ","], "needs at least one measure of rules"),
        (["--assigned-rows"], "--assigned-rows needs --measures"),
    ]:
        code, out, err = run(rules, kinds, "--target", "y", *words)
        assert (code, out) == (2, "")
        assert message in err


# --- rows in place --------------------------------------------------------------------------------


@pytest.fixture
def days(tmp_path):
    """Return a folder of Parquet files and the same rows as one table."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.uniform(0, 12, (60, 2)), columns=list(NAMES))
    frame["class"] = rng.choice(["low", "high", "odd"], 60)
    frame["number"] = rng.normal(size=60)
    frame["weight"] = rng.choice([0.5, 2.0], 60)
    folder = tmp_path / "days"
    folder.mkdir()
    for i in range(3):
        frame[20 * i : 20 * i + 20].to_parquet(folder / f"{i}.parquet")
    return folder, frame


@pytest.mark.parametrize("source", ["folder", "glob", "file"])
def test_score_in_place_equals_score_in_memory(run, write, tmp_path, days, source):
    folder, frame = days
    rules = write(CLASSES, "rules.json")
    table = write(frame.drop(columns=["number", "weight"]), "all.csv")
    words = ["--target", "class", "--measures", "all", "--format", "json"]
    expected = json.loads(run(rules, table, *words)[1])
    sources = {"folder": [folder], "glob": [f"{folder}/*.parquet"]}
    if source == "file":
        frame.to_parquet(tmp_path / "all.parquet")
        sources["file"] = [tmp_path / "all.parquet", "--in-place"]
    code, data, _ = run(rules, *sources[source], *words)
    data = json.loads(data)
    assert code == 0
    for key in ("n_rules", "rows_covered"):
        assert data[key] == expected[key]
    # Rows in place are not compared with the training rows.
    assert data["notes"] == expected["notes"][1:] or data["notes"] == expected["notes"]
    assert "above the training maximum of 'a'" in expected["notes"][0]
    assert data["data"]["rows"] == 60
    for key in ("scores", "prediction", "characteristics"):
        pd.testing.assert_frame_equal(
            pd.json_normalize(data[key]), pd.json_normalize(expected[key]), rtol=1e-12
        )
    numbers = [pd.DataFrame(r["rules_by_themselves"]) for r in (data, expected)]
    pd.testing.assert_frame_equal(*numbers, rtol=1e-11)


def test_score_in_place_uses_weights(run, write, days):
    folder, frame = days
    words = [write(CLASSES, "rules.json"), folder, "--target", "class", "--weight", "weight"]
    code, out, _ = run(*words, "--format", "json")
    assert code == 0
    holds = CLASSES.covers(frame[list(NAMES)])
    expected = np.average(holds, weights=frame["weight"])
    assert json.loads(out)["completeness_instances"] == pytest.approx(expected, rel=1e-12)
    assert "60 rows" in run(*words)[1]


@pytest.mark.slow
def test_black_box_of_file_predicts_rows_in_place(run, write, days, tmp_path):
    folder, frame = days
    X = frame[list(NAMES)]
    labels = np.where(CLASSES.covers(X), frame["class"], CLASSES.classes[0])
    box = DecisionTreeClassifier(max_depth=1, random_state=0).fit(X.fillna(0), labels)
    path = tmp_path / "model.joblib"
    joblib.dump(box, path)
    words = [write(CLASSES, "rules.json"), folder, "--target", "class", "--black-box", path]
    code, out, _ = run(*words, "--trust", "--format", "json")
    assert code == 0
    data = json.loads(out)
    same = (CLASSES.predict(X) == box.predict(X)).mean()
    assert data["fidelity"]["accuracy"]["all_rows"] == pytest.approx(same)
    assert "predictions of the model" in run(*words, "--trust")[1]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["duckdb:///a.db?table=t", "--black-box", "m.skops"],
            "the model cannot predict rows in a database",
        ),
        (["{folder}"], "need --target"),
        (["{folder}", "--target", "class", "--sep", ";"], "--sep only applies to files"),
        (
            ["{folder}", "--target", "class", "--missing", "drop"],
            "--missing only applies to files",
        ),
        (["{folder}", "--target", "klass"], "target 'klass'"),
        (["{folder}", "--target", "class", "--task", "regression"], "are for classification"),
        (["{folder}/*.csv", "--target", "class"], "no Parquet file"),
        (["iris", "--weight", "w"], "rows of a data source"),
        (["duckdb:///none.db?table=t", "--target", "class"], "no database 'none.db'"),
    ],
)
def test_score_in_place_rejects_uncountable_rows(run, write, days, words, message):
    rules = write(CLASSES, "rules.json")
    code, out, err = run(rules, *(word.format(folder=days[0]) for word in words))
    assert code in (1, 2)
    assert out == ""
    assert message in err


def test_messages_hide_passwords(run, write):
    rules = write(CLASSES, "rules.json")
    url = "postgresql://anna:s3cret@127.0.0.1:1/shop?table=sales"
    code, _, err = run(rules, url, "--target", "class")
    assert code == 1
    assert "s3cret" not in err


# Measures beyond the scores -----------------------------------------------------------------------


@pytest.fixture
def model(tmp_path):
    """Return the file of a black box of the columns a and b."""
    path = tmp_path / "model.joblib"
    joblib.dump(DecisionTreeClassifier(random_state=0).fit(KINDS[["a", "b"]], KINDS["y"]), path)
    return path


def test_more_option_adds_measures(rules, kinds, run):
    assert "more" not in scored(run, rules, kinds)
    score = scored(run, rules, kinds, "--more")
    evaluation = evaluate_rules(CLASSES, KINDS[["a", "b"]], KINDS["y"])
    messages = {name for name, m in SET_MEASURES.items() if m.needs in ("rules", "rows", "labels")}
    assert set(score["more"]) == messages
    for name, value in score["more"].items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # nothing is printed beside these rules
            expected = SET_SCORERS[SET_MEASURES[name].scorer_name].score(evaluation)
        greater = SET_MEASURES[name].greater_is_better
        assert value == (None if math.isnan(expected) else expected if greater else 0 - expected)
    met = rule_overlap(CLASSES, KINDS).worst_pairs()
    assert [(*pair["rules"], pair["share"]) for pair in score["contradictions"]] == met
    assert "features" not in score


@pytest.mark.parametrize(("form", "sign"), [("text", " "), ("markdown", "|")])
def test_black_box_option_adds_fidelity_measures(form, sign, write, model, run):
    with_statistics = CLASSES.replace(
        rules=[replace(rule, statistics=RuleStatistics(4, (3, 1))) for rule in CLASSES.rules]
    )
    rows = KINDS.assign(town=[*"nnssnnss"], other=range(8))
    words = (
        write(with_statistics, "seen.json"),
        write(rows, "towns.csv"),
        "--black-box",
        model,
        "--trust",
        "--group",
        "town",
    )
    score = scored(run, *words)
    box = joblib.load(model)
    same = box.predict(KINDS[["a", "b"]]) == CLASSES.predict(KINDS[["a", "b"]])
    assert {one["group"]: one["fidelity"] for one in score["fidelity_by_group"]} == {
        town: same[rows["town"] == town].mean() for town in "ns"
    }
    assert score["more"]["fidelity_rows"] == pytest.approx(same.mean())
    by_class = {one["group"]: one["rows"] for one in score["fidelity_by_class"]}
    assert by_class == KINDS["y"].value_counts().to_dict()
    assert {one["feature"] for one in score["features"]} == {"a", "b"}
    assert [one["printed"] for one in score["calibration"]] == [
        0.75 if rule.output == CLASSES.classes[0] else 0.25 for rule in CLASSES
    ]
    code, out, err = run(*words, "--target", "y", "--format", form)
    assert (code, err) == (0, "")
    for words in (
        "measures beyond the scores",
        "fidelity boundary",
        "by class",
        "by group",
        "permutation importance",
        "printed shares of rules",
        "95 % interval",
    ):
        assert words in out
    assert sign in out


def test_more_option_omits_class_measures_in_regression(write, tmp_path, run):
    path = tmp_path / "model.joblib"
    joblib.dump(DecisionTreeRegressor(random_state=0).fit(VALUES[["a", "b"]], VALUES["y"]), path)
    score = scored(
        run,
        write(NUMBERS, "rules.json"),
        write(VALUES, "values.csv"),
        "--black-box",
        path,
        "--trust",
    )
    assert not {"fidelity_boundary"} & set(score["more"])
    assert "fidelity_by_class" not in score
    assert score["more"]["fidelity_gap"] >= 0


def test_score_counts_texts_among_labels_of_numbers_as_wrong(write, run):
    rules = RuleSet(
        [Rule([Interval(0, upper=3)], 0)],
        ["a"],
        task="classification",
        fallback=Fallback(1),
        classes=[0, 1],
    )
    rows = pd.DataFrame({"a": range(8), "y": [0, 0, 0, "maybe", 1, 1, 1, 1]})
    words = ("--target", "y", "--format", "json")
    code, out, err = run(write(rules, "r.json"), write(rows, "r.csv"), *words)
    assert code == 0, err
    result = json.loads(out)
    assert result["prediction"]["accuracy"]["covered_rows"] == 0.75
    assert any("'maybe'" in note for note in result["notes"])


def test_group_option_keeps_all_groups_of_rules_with_a_class_na(tmp_path, write, run):
    rows = pd.DataFrame({"a": np.arange(60.0), "town": [f"{k % 30:03d}" for k in range(60)]})
    rows["y"] = np.where(rows["a"] < 30, "NA", "oak")
    rules = RuleSet(
        [Rule([Interval(0, upper=30)], "NA")],
        ["a"],
        task="classification",
        fallback=Fallback("oak"),
        classes=["NA", "oak"],
    )
    model = tmp_path / "model.joblib"
    joblib.dump(DecisionTreeClassifier().fit(rows[["a"]], rows["y"]), model)
    words = ("--target", "y", "--black-box", model, "--trust", "--group", "town")
    code, out, err = run(write(rules, "na.json"), write(rows, "na.csv"), *words, "--format", "json")
    assert code == 0, err
    groups = {one["group"]: one["rows"] for one in json.loads(out)["fidelity_by_group"]}
    assert groups == {f"{k:03d}": 2 for k in range(30)}


def test_more_option_skips_ablation_of_many_voting_rules(write, kinds, run):
    rule = CLASSES[0]
    votes = CLASSES.replace(rules=[rule] * 600, ordered=False, disjoint=False, voting="votes")
    result = scored(run, write(votes, "votes.json"), kinds, "--more")["more"]
    assert result["redundant_rules"] is result["redundant_literals"] is None
    assert result["overlap"] > 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--group", "town"], "--group needs --black-box"),
        (
            ["--group", "town", "--black-box", "m.skops", "--missing", "drop"],
            "--group needs all rows; use --missing keep",
        ),
        (["--more", "--in-place"], "--more and --group need all rows"),
    ],
)
def test_more_option_rejects_useless_options(words, message, rules, kinds, run):
    code, out, err = run(rules, kinds, "--target", "y", *words)
    assert (code, out) == (2, "")
    assert message in err


def test_score_rejects_a_model_of_other_columns(rules, kinds, tmp_path, run):
    path = tmp_path / "model.joblib"
    joblib.dump(DecisionTreeClassifier().fit(KINDS[["a"]], KINDS["y"]), path)
    assert run(rules, kinds, "--target", "y", "--black-box", path)[0] == 1
    code, _, err = run(rules, kinds, "--target", "y", "--black-box", path, "--trust")
    assert code == 1
    assert "b" in err
