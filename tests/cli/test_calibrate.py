"""Calibrated rules from the command line: the same sets in Python, CSV, SQL and functions."""

from __future__ import annotations

import contextlib
import io
import json
import re
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest

from skescore.cli import _calibrate, _inputs, _output, _score, _watch, build_parser, main
from skescore.datasets import DatasetError, load_dataset
from skescore.monitoring import CalibratedRules
from skescore.rules import Fallback, Interval, LinearOutput, OneOf, Rule, RuleSet

CLASSES = RuleSet(
    [
        Rule([Interval(0, upper=30), OneOf(1, ("a", "b"))], 0),
        Rule([Interval(0, upper=60)], 1),
    ],
    ["age (y)", "kind"],
    task="classification",
    classes=[0, 1, 2],
    fallback=Fallback(0),
)
NUMBERS = RuleSet(
    [
        Rule([Interval(0, upper=60)], LinearOutput(1.0, [(0, 0.5)])),
        Rule([Interval(0, upper=61)], 4.0),
        Rule([], 9.0),
    ],
    ["age (y)", "kind"],
    task="regression",
    ordered=True,
)


def table(rules: RuleSet, n: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"age (y)": rng.integers(0, 100, n), "kind": rng.choice(list("abc"), n)})
    y = np.asarray(rules.predict(X))
    if rules.classes is None:
        return X.assign(answer=y + rng.normal(size=n).round(3))
    rule = rules.assign(X)
    return X.assign(answer=np.where(rng.random(n) < np.array([0.02, 0.4, 0.02])[rule], 1 - y, y))


@pytest.fixture(params=[CLASSES, NUMBERS], ids=["classes", "numbers"])
def rules(request: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RuleSet:
    """Write rules, calibration rows and new rows to the current folder."""
    monkeypatch.chdir(tmp_path)
    ruleset: RuleSet = request.param
    Path("rules.json").write_text(ruleset.to_json(), encoding="utf-8")
    table(ruleset, 300, 0).to_csv("held out.csv", index=False)
    table(ruleset, 200, 1).to_csv("new.csv", index=False)
    return ruleset


CALIBRATE = ["calibrate", "rules.json", "held out.csv", "--target", "answer"]


def test_calibrate_output_is_used_by_predict(rules: RuleSet, capsys) -> None:
    assert main([*CALIBRATE, "--output", "calibrated.json", "--level", "0.8"]) == 0
    calibrated = CalibratedRules.from_json(Path("calibrated.json").read_text())
    held_out, new = pd.read_csv("held out.csv"), pd.read_csv("new.csv")
    X = new[["age (y)", "kind"]]
    labels = held_out.pop("answer")
    assert calibrated == CalibratedRules.fit(rules, held_out, labels, level=0.8)
    capsys.readouterr()
    assert main(["predict", "calibrated.json", "new.csv", "--abstain", "--keep", "kind"]) == 0
    captured = capsys.readouterr()
    written = pd.read_csv(io.StringIO(captured.out))
    assert written["kind"].tolist() == new["kind"].tolist()
    main(["rules", "calibrated.json", "--to", "sql", "--dialect", "duckdb", "--table", "new.csv"])
    query = capsys.readouterr().out.replace('"new"."csv"', "read_csv('new.csv')")
    sql = duckdb.sql(query).df()
    scope: dict[str, Any] = {}
    main(["rules", "calibrated.json", "--to", "python", "--name", "answer"])
    exec(capsys.readouterr().out, scope)  # exported by skescore
    python = [scope["answer"](row) for row in X.to_dict(orient="records")]
    predictions = pd.Series(np.asarray(rules.predict(X)))
    if rules.classes is not None:
        sets = calibrated.predict_set(X).tolist()
        texts = [" | ".join(map(str, one)) for one in sets]
        assert written["prediction_set"].astype(str).tolist() == texts
        assert sql["prediction_set"].tolist() == texts
        assert python == sets
        is_unsure = np.array([len(one) > 1 for one in sets])
    else:
        lower, upper = calibrated.predict_interval(X)
        is_unsure = np.isinf(lower)
        ends = np.column_stack([lower, upper])
        np.testing.assert_allclose(python, ends)
        ends[is_unsure] = np.nan
        for frame in (written, sql):
            columns = frame[["lower_bound", "upper_bound"]].astype(float)
            np.testing.assert_allclose(columns, ends)
    assert 0 < is_unsure.sum() < len(X)
    assert f"{is_unsure.sum()} of 200 rows" in captured.err
    expected = predictions.where(~is_unsure)
    np.testing.assert_allclose(written["prediction"].astype(float), expected)


def test_calibrate_measures_coverage_on_other_rows(rules: RuleSet, capsys) -> None:
    held_out = pd.read_csv("held out.csv")
    held_out.loc[:9, "answer"] = np.nan
    held_out.to_csv("held out.csv", index=False)
    assert main([*CALIBRATE, "--test", "new.csv", "--format", "json"]) == 0
    captured = capsys.readouterr()
    result = json.loads(captured.out)
    assert "10 rows of held out.csv without a label" in captured.err
    assert sum(result["calibration_rows"]) == 290
    new = pd.read_csv("new.csv")
    labels = new.pop("answer")
    calibrated = CalibratedRules.fit(
        rules, held_out.iloc[10:, :2], held_out["answer"].iloc[10:].to_numpy(labels.dtype)
    )
    expected = calibrated.coverage(new, labels)["coverage"].to_numpy()
    observed = [line["coverage"] for line in result["coverage"]]
    np.testing.assert_allclose(np.array(observed, dtype=float), expected)
    assert main([*CALIBRATE, "--test", "new.csv"]) == 0
    assert "contain the label with probability at least 0.9" in capsys.readouterr().out


def test_calibrated_rules_work_in_explain_and_rules(rules: RuleSet, capsys) -> None:
    main([*CALIBRATE, "--output", "calibrated.json"])
    capsys.readouterr()
    results = []
    for name in ("rules.json", "calibrated.json"):
        assert main(["explain", name, "new.csv", "--row", "1"]) == 0
        results.append(capsys.readouterr().out)
    assert results[0] == results[1]
    assert main(["rules", "calibrated.json", "--to", "json"]) == 0
    assert capsys.readouterr().out == Path("calibrated.json").read_text()


def records_of_first_rule(rules: RuleSet, fallback: Fallback | None, capsys) -> list[dict]:
    """Return the predictions of the first rule with another fallback, after its calibration."""
    first = rules.replace(rules=rules.rules[:1], fallback=fallback)
    Path("rules.json").write_text(first.to_json(), encoding="utf-8")
    main([*CALIBRATE, "--output", "calibrated.json"])
    capsys.readouterr()
    assert main(["predict", "calibrated.json", "new.csv", "--format", "json"]) == 0
    return json.loads(capsys.readouterr().out)["predictions"]


def test_predict_writes_the_sets_of_uncovered_rows(rules: RuleSet, capsys) -> None:
    records = records_of_first_rule(rules, None, capsys)
    uncovered = [record for record in records if record["rule"] is None]
    assert 0 < len(uncovered) < len(records)
    assert all((record["prediction"] is None) == (record["rule"] is None) for record in records)
    if rules.classes is not None:
        assert {tuple(record["prediction_set"]) for record in uncovered} == {("0", "1")}


def test_predict_keeps_the_predictions_of_the_nearest_rule(rules: RuleSet, capsys) -> None:
    nearest = Fallback(0.0 if rules.classes is None else rules.classes[0], "nearest")
    records = records_of_first_rule(rules, nearest, capsys)
    assert any(record["rule"] is None for record in records)
    assert all(record["prediction"] is not None for record in records)


def test_calibrate_ignores_labels_that_tune_reads_as_missing(rules: RuleSet, capsys) -> None:
    table = pd.read_csv("held out.csv")
    is_missing = table.index % 10 == 0
    table.assign(answer=table["answer"].mask(is_missing)).to_csv("empty.csv", index=False)
    table.assign(answer=table["answer"].mask(is_missing, -999)).to_csv("codes.csv", index=False)
    texts = table["answer"].astype(str) + np.where(table.index % 3 == 0, "  ", "")
    table.assign(answer=texts.mask(is_missing, "?")).to_csv("texts.csv", index=False)
    results = []
    for name in ("empty", "codes", "texts"):
        words = ["calibrate", "rules.json", f"{name}.csv", "--target", "answer"]
        assert main([*words, "--na-values=-999", "--output", f"{name}.json"]) == 0
        results.append(Path(f"{name}.json").read_text())
    assert results[0] == results[1] == results[2]


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["calibrate", "rules.json", "held out.csv"], "--target COLUMN is required"),
        ([*CALIBRATE, "--level", "1"], "level must be"),
        (["predict", "rules.json", "new.csv", "--abstain"], "needs calibrated rules"),
        (["rules", "calibrated.json", "--to", "sql", "--kind", "assign"], "--kind is not"),
        (["rules", "damaged.json"], "damaged.json: The calibrated rules are damaged"),
    ],
)
def test_calibrate_reports_wrong_usage(rules: RuleSet, capsys, words, text) -> None:
    main([*CALIBRATE, "--output", "calibrated.json"])
    Path("damaged.json").write_text('{"format": "skescore calibrated rules", "version": 1}')
    capsys.readouterr()
    with contextlib.suppress(SystemExit):
        assert main(words) == 1
    assert text in capsys.readouterr().err


def test_rules_rejects_formats_without_numbers_for_intervals(rules: RuleSet, capsys) -> None:
    main([*CALIBRATE, "--output", "calibrated.json"])
    capsys.readouterr()
    if rules.classes is not None:
        assert main(["rules", "calibrated.json", "--to", "sentences"]) == 0
        assert "the prediction is 0" in capsys.readouterr().out
        return
    with pytest.raises(SystemExit):
        main(["rules", "calibrated.json", "--to", "sentences"])
    assert "cannot express intervals" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("style", "separator"), [("{:.3f}", ";"), ("{:.3f} €", ";"), ("{:.1f} kg", ",")]
)
def test_calibrate_reads_the_target_like_score(style, separator, tmp_path, capsys) -> None:
    rules = RuleSet([Rule([Interval(0, upper=5)], 3.0), Rule([], 7.0)], ["x"], task="regression")
    rules.save(tmp_path / "rules.json")
    x, y = np.arange(40) % 10, np.arange(40) % 10 + np.linspace(1.13, 1.94, 40)
    texts = [style.format(v) for v in y]
    if separator == ";":
        texts = [text.replace(".", ",") for text in texts]
    frame = pd.DataFrame({"x": x, "z": ["0,5", "1,25"] * 20, "y": texts})
    frame.to_csv(tmp_path / "rows.csv", index=False, sep=separator)
    words = [str(tmp_path / "rules.json"), str(tmp_path / "rows.csv"), "--target", "y"]
    assert main(["calibrate", *words, "--format", "json"]) == 0
    widths = json.loads(capsys.readouterr().out)["half_widths"][:2]
    expected = CalibratedRules.fit(rules, frame[["x"]], y.round(1 if "kg" in style else 3))
    assert widths == pytest.approx(expected.half_widths[:2])


def labels_of(command: str, words: list[str]) -> Any:
    """Return the labels that a command reads, or None if they are no finite numbers."""
    options = build_parser([command]).parse_args([command, *words])
    options.command_line, options.data_name = [command, *words], options.data
    rules, notes = RuleSet.load(options.rules), _output.Notes()
    try:
        if command == "score":
            return _score._load(options, rules).y.tolist()
        if command == "edit":
            return _inputs.read_labeled_rows(options, rules).y.tolist()
        if command == "calibrate":
            return _calibrate._labeled_rows(options, rules, options.data, notes)[1].tolist()
        labels = _watch._WatchedRows(options, rules, notes).y
        return labels[~pd.isna(labels)].tolist()
    except DatasetError as error:
        if not re.search("should be numbers|infinite values|should hold finite", str(error)):
            raise
        return None


PLAIN, THOUSANDS, MASS = "{:.2f}", "{:.3f}k", "{:.2f} kg"
#: Style of the first table, style and further text of a later one, and the factor of its labels.
TARGETS = [
    *((PLAIN, later, "?", 1) for later in ("{:.2f} %", "${:,.2f}", "{:,.2f} €", "{:,.2f}")),
    *((PLAIN, later, "?", None) for later in (THOUSANDS, MASS)),
    (THOUSANDS, MASS, "?", None),
    ("{:.2f}K", "€ {:,.2f}", "?", None),
    ("${:,.2f}", THOUSANDS, "?", None),
    (THOUSANDS, PLAIN, "?", 0.001),
    *((None, later, "?", 1) for later in (THOUSANDS, MASS)),
    *((s, s, word, 1) for s in (PLAIN, THOUSANDS) for word in ("", "NA", "unknown")),
    *((s, s, word, None) for s in (PLAIN, THOUSANDS) for word in ("many", "True", "inf")),
    *((None, MASS, word, None) for word in ("many", "True", "inf")),
]


@pytest.mark.parametrize(("first", "later", "word", "factor"), TARGETS)
@pytest.mark.parametrize("is_german", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_commands_read_the_same_targets(
    first, later, word, factor, is_german, tmp_path, monkeypatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rules = RuleSet([Rule([Interval(0, upper=5)], 3.0), Rule([], 7.0)], ["x"], task="regression")
    rules.save(Path("rules.json"))
    numbers = (1000 + np.linspace(10, 900, 40)).round(2)

    def write(style: str, *words: str) -> None:
        texts = [*words, *map(style.format, numbers[len(words) :])]
        if is_german:
            texts = [text.translate(str.maketrans(".,", ",.")) for text in texts]
        frame = pd.DataFrame({"x": range(40), "y": texts})
        frame.to_csv("rows.csv", index=False, sep=";" if is_german else ",")

    if first is not None:
        write(first)
        data = load_dataset("rows.csv", target="y", task="regression")
        run = {"features": ["x"], "target": "y", "table": data.preparation.to_dict()}
        Path("run.json").write_text(json.dumps({"data": run}), encoding="utf-8")
    write(later, word, word)
    expected = None if factor is None else pytest.approx(numbers[2:] * factor)
    for command in ("score", "edit", "calibrate", "watch"):
        assert labels_of(command, ["rules.json", "rows.csv", "--target", "y"]) == expected, command


@pytest.mark.parametrize(
    ("classes", "texts", "expected"),
    [
        (["$5", "$10"], ["$5", "$10", "?"], ["$5", "$10"]),
        (["1", "2"], ["2.0", "1", "?"], ["2", "1"]),
        (["01", "1"], ["1", "01", "?"], ["1", "01"]),
        (["01", "02"], ["02", "01", "3.0"], ["02", "01", "3.0"]),
        ([5, 10], ["$5", "$10.0", "other"], [5, 10, "other"]),
        ([5, 10], ["5 %", "10%", "many"], [5, 10, "many"]),
        ([1, 2], ["1.0", "2.0", "?", "2 "], [1, 2, 2]),
        ([1, 2], ["1", "2", "02"], [1, 2, "02"]),
    ],
)
def test_commands_read_the_same_classes(
    classes, texts, expected, tmp_path, monkeypatch, capsys
) -> None:
    monkeypatch.chdir(tmp_path)
    rules = [Rule([Interval(0, upper=2)], classes[0]), Rule([], classes[1])]
    RuleSet(rules, ["x"], task="classification", classes=classes).save(Path("rules.json"))
    texts = [f"{text}" for text in texts] * 2
    pd.DataFrame({"x": np.arange(len(texts)) % 4, "y": texts}).to_excel("rows.xlsx", index=False)
    for command in ("score", "edit", "calibrate", "watch"):
        labels = labels_of(command, ["rules.json", "rows.xlsx", "--target", "y"])
        assert labels == expected * 2, command
    n_unknown = sum(label not in classes for label in expected) * 2
    assert (
        n_unknown == 0 or f"{n_unknown} rows with classes in column 'y'" in capsys.readouterr().err
    )
