"""Figures of the page are those that rows and predictions give, and those of the run."""

from __future__ import annotations

import json
import re

import joblib
import numpy as np
import pandas as pd
import pytest
from recomputed import Run, is_rounded, predict, rule_of_rows
from sklearn.ensemble import RandomForestClassifier

from skescore.cli import main
from skescore.report import write_report
from skescore.rules import Domain, Interval, Rule, RuleSet

QUICK = ("--black-box", "decision-tree", "--extractors", "cart", "--trials", "1", "--cv", "2")
GIVEN = ("--extractors", "cart", "--trials", "1", "--cv", "2", "--black-box", "MODEL", "--trust")
#: Searches: target, and arguments after the table.
CASES = {
    "limited": ("risk", *QUICK, "--max-rules", "4", "--test", "TEST"),
    "weighted": ("risk", *QUICK, "--class-weight", "balanced", "--performance", "f1_macro"),
    "given": ("risk", *GIVEN, "--max-rules", "5"),
    "numbers": ("price", *QUICK, "--max-rules", "4", "--test", "TEST"),
}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("figures")
    random = np.random.default_rng(7)
    table = pd.DataFrame(
        {"weight": random.normal(3000, 500, 180).round(), "age": random.integers(15, 45, 180)}
    )
    price = table["weight"] / 100 + table["age"] / 3 + random.normal(0, 2, 180)
    table["price"] = price.round(2)
    table["risk"] = np.where(price > 42, "high", np.where(price > 37, "mid", "low"))
    table.iloc[:120].to_csv(folder / "table.csv", index=False)
    table.iloc[120:].to_csv(folder / "test.csv", index=False)
    model = RandomForestClassifier(5, random_state=0)
    model.fit(table.iloc[:120][["weight", "age"]], table.iloc[:120]["risk"])
    joblib.dump(model, folder / "model.joblib")
    return folder


def searched(name, files, out):
    """Run a search with a report; return its run and the rows of --test."""
    target, *arguments = CASES[name]
    names = {"TEST": "test.csv", "MODEL": "model.joblib"}
    argv = [str(files / names[part]) if part in names else part for part in arguments]
    other = "price" if target == "risk" else "risk"
    table = str(files / "table.csv")
    common = ("--target", target, "--drop", other, "--output", str(out), "--report", "--quiet")
    assert main(["tune", table, *argv, *common]) == 0
    test = Run(out, str(files / "test.csv"), drop=[other]) if "TEST" in arguments else None
    return Run(out, table, drop=[other]), test


def number(text):
    """Return the first number of a text."""
    return re.search(r"[<>]? ?-?\d[\d.]*", text)[0]


def check_tiles(browser, run, test, own):
    """Compare the numbers of the first two tiles with agreement with the data and the model."""
    texts = browser.texts("#tiles .tile")
    ones = np.ones(len(run.y))
    scale = 100 if run.is_classification else 1
    if test is not None:
        ones = np.ones(len(test.y))
        predicted, answers = predict(run.rules, test.X), np.asarray(run.model.predict(test.X))
        assert is_rounded(number(texts[0]), scale * test.agreement(test.y, predicted, ones))
        assert is_rounded(number(texts[1]), scale * test.agreement(answers, predicted, ones))
        assert "test rows" in texts[0]
        assert "test rows" in texts[1]
    else:
        assert is_rounded(number(texts[0]), scale * own["correctness"])
        assert "held-out rows are right (data)" in texts[0]
        record = run.record["alternatives"]["lists"][0]
        assert is_rounded(number(texts[1]), scale * record["fidelity"])
        assert ("generated rows" in texts[1]) == (not run.trained_here)
        assert ("as rows are weighed" in texts[0]) == run.is_weighted
    assert not any("new rows" in text for text in texts)
    without = 100 * np.mean(rule_of_rows(run.rules, run.X) < 0)
    assert is_rounded(number(texts[2]), without)
    assert number(texts[3]) == str(len(run.rules["rules"]))


def check_cards(browser, run):
    """Compare the counts of the cards and of the picture with the rows of each rule."""
    assigned, predicted = rule_of_rows(run.rules, run.X), predict(run.rules, run.X)
    weighted, lines = run.statistics(run.rules), browser.texts("#glance .glance-text")
    records = browser.texts("#cards .card:not(.otherwise) .record")
    assert len(records) == len(lines) == len(run.rules["rules"])
    for k, (record, line) in enumerate(zip(records, lines, strict=True)):
        own = assigned == k
        assert f"decides {own.sum()} of {len(run.y)} rows" in record
        if run.is_classification:
            right = int((run.y[own] == predicted[own]).sum())
            assert line == f"{right} of {own.sum()} rows right (data)"
            wrong = own.sum() - right
            assert f"{wrong} wrong" in record or (not wrong and "all right" in record)
            agreement = re.search(r"· ([<>]? ?[\d.]+) % agree with the model(.*)", record)
            assert is_rounded(agreement[1], 100 * weighted[k]["agree"])
            assert ("weighed" in agreement[2]) == run.is_weighted
        else:
            errors = re.search(r"mean error ([\d.]+) \(data\), ([\d.]+) \(model", record)
            assert is_rounded(errors[1], weighted[k]["target_error"])
            assert is_rounded(errors[2], weighted[k]["model_error"])
            median = number(line.partition("median ")[2])
            assert is_rounded(median, float(np.median(run.y[own])))


@pytest.mark.parametrize("name", CASES)
def test_page_figures_equal_recomputed_ones(name, browser, files, tmp_path) -> None:
    run, test = searched(name, files, tmp_path / "run")
    browser.open(tmp_path / "run" / "report.html")
    record = run.record["best"]
    own = run.held_out(record["extractor"], record["params"])
    check_tiles(browser, run, test, own)
    check_cards(browser, run)
    search = run.record["search"]
    expected = (search["performance"] or "weighted F1").replace("_", " ")
    headings = browser.texts("#board thead th")
    assert (expected if run.is_classification else "R²") in headings
    assert "F1" not in headings
    limit = "" if search["max_rules"] is None else str(search["max_rules"])
    assert browser.run("return byId('max-rules').value") == limit
    assert "beyond the limits" not in browser.text("#chosen-by")
    quality, panel = run.black_box_quality(), browser.text("#right-panel")
    black_box = re.search(r"Black box.*?([<>]? ?[\d.]+)(?: of 100| %)", panel)[1]
    assert is_rounded(black_box, 100 * quality["accuracy" if run.is_classification else "R²"])
    assert ("may have been trained on" in panel) == (not run.trained_here)
    if test is not None:
        assert browser.texts(".panel h3")[
            browser.texts(".panel h3").index(f"On {len(test.y)} test rows")
        ]
    assert browser.violations() == []
    assert browser.complaints() == []


def test_serious_warnings_come_first(browser, runs, tmp_path) -> None:
    folder = runs.write_run(tmp_path)
    record = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    record.setdefault("best", {})["shortcomings"] = ["the rules never predict 'a'"]
    record["notes"] = ["the rules never predict 'a'", "another note"]
    (folder / "run.json").write_text(json.dumps(record), encoding="utf-8")
    assert main(["report", str(folder), "--quiet"]) == 0
    browser.open(folder / "report.html")
    assert browser.texts("#warnings li") == ["the rules never predict 'a'"]
    assert "the rules never" not in "".join(browser.texts(".notes li"))
    is_first = "return byId('warnings').getBoundingClientRect().top < "
    assert browser.run(f"{is_first} byId('rules').getBoundingClientRect().top")
    assert browser.violations() == []


def test_different_runs_are_not_compared_by_score(browser, runs, tmp_path) -> None:
    one = runs.write_run(tmp_path / "a")
    two = runs.write_run(tmp_path / "b", search={"reference": "black-box"})
    assert main(["report", str(one), str(two), "--quiet"]) == 0
    browser.open(one / "comparison.html")
    assert "Different reference: the data in a, the predictions of the model in b." in (
        browser.text("#differences")
    )
    names = browser.texts("#versus tbody th")
    assert "Rules" in names
    assert "ICE" not in names
    assert browser.run("return byId('both').hidden")
    assert browser.violations() == []


def test_row_of_the_else_is_pictured_on_what_fails(browser, tmp_path) -> None:
    rules = RuleSet(
        [Rule([Interval(0, upper=2.0)], "a"), Rule([Interval(1, lower=5.0)], "b"), Rule([], "c")],
        ["size", "age"],
        task="classification",
        classes=["a", "b", "c"],
        domain=Domain([0.0, 0.0], [9.0, 9.0]),
        ordered=True,
    )
    X, y = [[4.0, 3.0], [1.0, 1.0], [3.0, 6.0]], ["c", "a", "b"]
    browser.open(write_report(rules, X, y, path=tmp_path / "page.html"))
    assert browser.texts(".row-path .step") == ["1 ✗", "2 ✗", "3 ✓"]
    assert browser.texts(".row-name") == ["size (rule 1)", "age (rule 2)"]
    outside = (
        "return [...document.querySelectorAll('.row-track')].every((track) => {"
        "const [mark, inside] = ['.mark', '.inside'].map((one) => "
        "track.querySelector(one).getBoundingClientRect());"
        "return mark.right < inside.left || mark.left > inside.right; })"
    )
    assert browser.run(outside)


def test_row_is_pictured_on_its_conditions(usual) -> None:
    marks = usual.run("return document.querySelectorAll('.row-picture .mark').length")
    tracks = usual.run("return document.querySelectorAll('.row-picture .inside').length")
    assert marks == tracks > 0
    assert usual.text(".row-path .step.holds").endswith("✓")
