"""Categories on the command line: declared, encoded for the black box, named in rules."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from skescore.black_boxes import BLACK_BOXES, make_black_box
from skescore.registry import DEFAULT_EXTRACTORS, EXTRACTORS, extractor_class, suitable_extractors

#: Boosted trees of other packages are tested where these are installed.
EVERY_BLACK_BOX = [
    pytest.param(name, marks=[pytest.mark.engine] * (name in ("xgboost", "lightgbm", "catboost")))
    for name in BLACK_BOXES
]


@pytest.fixture
def houses(tmp_path):
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "color": rng.choice(["red", "blue", "green"], 120),
            "size": rng.normal(50, 10, 120).round(2),
        }
    )
    table["price"] = np.where(table["color"] == "green", "low", "high")
    path = tmp_path / "houses.csv"
    table.to_csv(path, index=False)
    return path


def test_tune_and_score_round_trip_categories(houses, run, tmp_path):
    words = ("tune", houses, "--target", "price", "--category", "color", "--cv", 2)
    search = ("--black-box", "decision-tree", "--trials", 3, "--extractors", "cart")
    code, out, _ = run(*words, *search, "--output", tmp_path / "run")
    assert code == 0
    assert "color = green THEN low" in out or "color in {blue, red} THEN high" in out
    about = json.loads((tmp_path / "run" / "run.json").read_text(encoding="utf-8"))
    assert about["data"]["categories"] == ["color"]
    assert about["best"]["fidelity"] == 1.0
    rules = tmp_path / "run" / "rules.json"
    code, out, _ = run("score", rules, houses, "--target", "price", "--format", "json")
    assert code == 0
    scores = json.loads(out)
    assert scores["prediction"]["accuracy"]["all_rows"] == 1.0
    assert scores["completeness_volume"] == 1.0


def test_numeric_option_overrides_categories(houses, run):
    search = ("--cv", 2, "--black-box", "decision-tree", "--trials", 1, "--extractors", "cart")
    code, out, _ = run("tune", houses, "--target", "price", *search)
    assert code == 0
    assert "color" in out
    code, _, err = run("tune", houses, "--target", "price", "--numeric", "color,size", *search)
    assert code == 1 or "color" in err


def test_extractors_accept_categories(houses, run):
    words = ("tune", houses, "--target", "price", "--cv", 2, "--black-box", "decision-tree")
    code, out, _ = run(*words, "--extractors", "gridex", "--trials", 3)
    assert code == 0
    assert "color" in out
    for task in ("classification", "regression"):
        expected = {name for name in DEFAULT_EXTRACTORS if task in extractor_class(name).tasks}
        assert set(suitable_extractors(task)) == expected
        assert set(suitable_extractors(task, categories=True)) == expected


@pytest.mark.slow
def test_tune_notes_identifiers(tmp_path, run):
    path = tmp_path / "people.csv"
    names = [f"p{i:03}" for i in range(60)]
    pd.DataFrame({"name": names, "x": np.arange(60) % 7 / 7, "y": ["a", "b"] * 30}).to_csv(
        path, index=False
    )
    search = ("--cv", 2, "--trials", 1, "--extractors", "cart", "--black-box", "knn")
    code, out, err = run("tune", path, "--target", "y", *search)
    assert code == 0
    assert "left out: 'name' (identifiers)" in err
    assert "name" not in out
    code, _, err = run("tune", path, "--target", "y", "--category", "name", *search)
    assert code == 0
    assert "column 'name' has 60 categories" in err


@pytest.mark.parametrize("task", ["classification", "regression"])
@pytest.mark.parametrize("name", EVERY_BLACK_BOX)
def test_black_boxes_accept_categories(name, task):
    X = pd.DataFrame({"color": ["red", "blue", "green"] * 10, "size": np.arange(30.0)})
    y = np.where(X["color"] == "red", 1.0, 0.0)
    model = make_black_box(name, task, 0, categories=("color",))
    model.fit(X, y.astype(int) if task == "classification" else y)
    other = pd.DataFrame({"color": ["purple"], "size": [3.0]})
    assert model.predict(other).shape == (1,)


def test_registry_states_support_of_categories():
    for name, spec in EXTRACTORS.items():
        assert spec.takes_categories == extractor_class(name).takes_categories
        assert spec.tasks == extractor_class(name).tasks
