"""Everyday tables on the command line: read, tuned, and read again for the rules."""

from __future__ import annotations

import io
import json
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.tree import DecisionTreeClassifier

from skescore.cli import main
from skescore.rules import Domain, Interval, Rule, RuleSet

SEARCH = ("--black-box", "decision-tree", "--trials", 2, "--extractors", "cart", "--cv", 2)


@pytest.fixture(scope="module")
def shop():
    rng = np.random.default_rng(0)
    days = pd.Timestamp("2024-01-03") + pd.to_timedelta(rng.integers(0, 300, 240), unit="D")
    price = rng.uniform(1, 2000, 240)
    town = rng.choice([f"t{i}" for i in range(40)], 240)
    table = pd.DataFrame(
        {
            "Nr": rng.permutation(240),
            "Tag": days.strftime("%d.%m.%Y"),
            "Preis": [f"{v:,.2f} €".translate(str.maketrans(",.", ".,")) for v in price],
            "Ort": town,
        }
    )
    table["gut"] = np.where((price > 900) | (days.month > 8), "ja", "nein")
    return table


@pytest.fixture
def write(tmp_path):
    def write(table, name="shop.csv"):
        path = tmp_path / name
        table.to_csv(path, sep=";", index=False, encoding="cp1252")
        return path

    return write


@pytest.mark.slow
def test_tune_and_other_commands_read_a_german_table(shop, write, run, tmp_path):
    path, later = write(shop.iloc[:200]), write(shop.iloc[200:], "later.csv")
    code, out, err = run(
        "tune", path, "--target", "gut", *SEARCH, "--test", later, "--output", tmp_path / "run"
    )
    assert code == 0
    assert "left out: 'Nr' (identifiers)" in err
    assert "Preis" in out
    assert "Nr" not in out
    about = json.loads((tmp_path / "run" / "run.json").read_text(encoding="utf-8"))
    assert any(name.startswith("Tag: days since") for name in about["data"]["features"])
    test = about["test"]
    assert (test["rows"], test["source"]) == (40, str(later))
    # Lines are wrapped if the path is long.
    line = f"on the 40 rows of {later}: fidelity (accuracy against the model) "
    line += f"{test['fidelity']:.3f}; accuracy (data) of"
    assert "".join(line.split()) in "".join(out.split())
    rules = tmp_path / "run" / "rules.json"
    code, out, _ = run("score", rules, later, "--target", "gut", "--format", "json")
    assert code == 0
    scored = json.loads(out)
    assert scored["data"]["rows"] == 40
    assert scored["prediction"]["accuracy"]["all_rows"] == pytest.approx(test["rules"])
    # Without their run, names in rules determine how a table is read.
    alone = tmp_path / "alone.json"
    alone.write_bytes(rules.read_bytes())
    code, out, _ = run("score", alone, later, "--target", "gut", "--format", "json")
    assert code == 0
    assert json.loads(out)["prediction"] == scored["prediction"]
    assert run("rules", rules, "--shorten", path)[0] == 0
    # Rows need neither a target nor columns that no rule uses.
    unlabeled = write(shop.iloc[200:].drop(columns=["gut", "Nr", "Ort"]), "unlabeled.csv")
    for where in (rules, alone):
        code, out, _ = run("predict", where, unlabeled)
        assert code == 0
        predicted = pd.read_csv(io.StringIO(out))["prediction"]
        assert (predicted == shop["gut"].iloc[200:].to_numpy()).mean() == pytest.approx(
            test["rules"]
        )
    code, out, _ = run(
        "score", rules, write(shop.drop(columns="Ort"), "no_town.csv"), "--target", "gut"
    )
    assert code == 0
    code, _, err = run("report", tmp_path / "run")
    assert code == 0
    assert "cannot be read again" not in err


@pytest.mark.slow
def test_tune_reads_test_rows_before_the_search(shop, write, run):
    path = write(shop)
    code, out, err = run("tune", path, "--target", "gut", *SEARCH, "--test", path.parent / "no.csv")
    assert (code, out) == (1, "")
    assert "no.csv' is neither" in err
    later = write(shop.drop(columns="Preis"), "later.csv")
    code, out, err = run("tune", path, "--target", "gut", *SEARCH, "--test", later)
    assert (code, out) == (1, "")
    assert "'Preis'" in err
    numbers = write(shop.assign(gut=shop["gut"].map({"ja": 1, "nein": 0})), "numbers.csv")
    code, out, err = run("tune", path, "--target", "gut", *SEARCH, "--test", numbers)
    assert (code, out) == (1, "")
    assert "none of the labels of gut (0, 1) is a class of shop ('ja', 'nein')" in err
    later = write(shop.replace({"gut": {"ja": "jein"}}), "later.csv")
    code, _, err = run("tune", path, "--target", "gut", *SEARCH, "--test", later)
    assert code == 0
    assert "later.csv with classes that do not occur in shop: 'jein'" in err


@pytest.mark.slow
def test_options_accept_lists_and_repetition(shop, write, run):
    words = ("tune", write(shop), "--target", "gut", *SEARCH, "--format", "json")
    code, out, _ = run(*words, "--drop", "Tag,Preis", "--category", "Nr", "--drop=Ort")
    assert code == 0
    assert json.loads(out)["data"]["features"] == ["Nr"]
    assert json.loads(out)["data"]["categories"] == ["Nr"]
    code, out, _ = run(
        *words,
        "--drop",
        "Tag",
        "--numeric=Nr,Ort",
        "--na-values=0,1",
        "--sep",
        ";",
        "--decimal",
        ",",
        "--encoding",
        "cp1252",
        "--sample",
        100,
    )
    assert code == 1 or json.loads(out)["data"]["rows"] == 100


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--decimal", ";"), "must be '.' or ','"),
        (("--sample", "1"), "at least 2"),
        (("--missing", "guess"), "invalid choice"),
    ],
)
def test_table_options_reject_wrong_usage(words, message, shop, write, capsys):
    with pytest.raises(SystemExit) as caught:
        main(["tune", str(write(shop)), "--target", "gut", *words])
    assert caught.value.code == 2
    assert message in capsys.readouterr().err


def test_tune_passes_original_columns_to_trained_model(shop, write, run, tmp_path):
    table = shop.assign(size=np.arange(240) % 17, id=np.arange(240))
    columns = make_column_transformer(
        (OneHotEncoder(handle_unknown="error"), ["Ort"]), remainder="passthrough"
    )
    model = make_pipeline(columns, DecisionTreeClassifier(max_depth=3, random_state=0))
    model.fit(table[["size", "Ort", "id"]], table["gut"])
    path = tmp_path / "model.joblib"
    joblib.dump(model, path)
    code, out, err = run(
        "tune",
        write(table),
        "--target",
        "gut",
        *SEARCH[2:],
        "--black-box",
        path,
        "--trust",
        "--format",
        "json",
    )
    assert code == 0, err
    # 40 towns, more than are kept of a table, and an identifier: the model has all of them.
    assert json.loads(out)["data"]["features"] == ["size", "Ort", "id"]
    assert json.loads(out)["black_box"]["quality"]["accuracy"] == pytest.approx(
        model.score(table[["size", "Ort", "id"]], table["gut"])
    )


@pytest.fixture
def plants(tmp_path, monkeypatch):
    """Rules that know the class NA, in a table in which missing labels are empty."""
    monkeypatch.chdir(tmp_path)
    table = pd.DataFrame({"height": range(40), "plant": ["NA"] * 20 + ["oak"] * 20})
    table.loc[[3, 30], "plant"] = None
    table.to_csv("plants.csv", index=False)
    table.to_excel("plants.xlsx", index=False)
    rules = RuleSet(
        [Rule([Interval(0, upper=19.5)], "NA"), Rule([], "oak")],
        ["height"],
        task="classification",
        ordered=True,
        domain=Domain((0,), (39,)),
    )
    rules.save("rules.json")
    model = DecisionTreeClassifier(max_depth=1, random_state=0)
    known = table.dropna()
    joblib.dump(model.fit(known[["height"]], known["plant"]), "model.joblib")
    return table


@pytest.mark.parametrize("data", ["plants.csv", "plants.xlsx"])
def test_commands_keep_labels_that_rules_know(plants, run, data):
    target = ("--target", "plant")
    code, out, _ = run("score", "rules.json", data, *target, "--format", "json")
    assert code == 0
    assert json.loads(out)["data"]["rows"] == 38
    assert json.loads(out)["prediction"]["accuracy"]["all_rows"] == 1
    code, out, _ = run("watch", "init", "rules.json", data, *target)
    assert "1    20  0.000 [0.000, 0.176]" in out  # 19 labels
    code, out, err = run("calibrate", "rules.json", data, *target)
    assert (code, "2 rows of" in err) == (0, True)
    code, out, _ = run("edit", "rules.json", data, *target, "--format", "json")
    assert code == 0
    assert json.loads(out)["effect"]["n_rows"] == 38
    code, out, err = run("certify", "rules.json", data, *target, "--seconds", 5, "--format", "json")
    assert json.loads(out)["rows"]["n_rows"] == 38


def test_tune_keeps_labels_that_the_model_knows(plants, run):
    search = ("--trials", 1, "--extractors", "cart", "--cv", 2, "--format", "json")
    model = ("--black-box", "model.joblib", "--trust")
    code, out, _ = run("tune", "plants.csv", "--target", "plant", *model, *search)
    assert code == 0
    assert json.loads(out)["data"]["rows"] == 38
    labels = ("--labels", "NA=NA")
    run("tune", "plants.csv", "--target", "plant", *SEARCH, *labels, "--output", "run")
    assert json.loads(Path("run/run.json").read_text())["data"]["rows"] == 38
    code, out, _ = run("report", "run", "--output", "page.html", "--time-limit", 0)
    assert code == 0


def test_edit_and_certify_report_rows_without_a_label(plants, run):
    note = "2 of 40 rows are left out, because the target 'plant' is missing there"
    for command in (("edit",), ("certify", "--seconds", 5)):
        _, _, err = run(*command, "rules.json", "plants.csv", "--target", "plant")
        assert f"note: about plants:\n  - {note}\n" in err
