"""Suspicious data, groups and drift on the command line."""

from __future__ import annotations

import csv
import io
import json
import shlex
import shutil

import numpy as np
import pandas as pd
import pytest
import skops.io
from sklearn.frozen import FrozenEstimator
from sklearn.tree import DecisionTreeClassifier

from skescore.cli import main
from skescore.datasets import load_dataset
from skescore.rules import Domain, Fallback, Interval, Rule, RuleSet
from skescore.suspicions import SuspiciousDataWarning, profile_columns
from skescore.tuning import ExtractorSearchCV

SHORT = ("--black-box", "decision-tree", "--extractors", "cart", "--trials", "1", "--cv", "3")


@pytest.fixture(scope="module")
def visits(tmp_path_factory):
    """Write two rows per patient, whose outcome belongs to the patient."""
    random = np.random.default_rng(0)
    people = pd.DataFrame(
        {
            "patient": [f"P{number}" for number in random.permutation(90)],
            "age": random.integers(20, 80, 90),
            "sugar": random.normal(5, 1, 90).round(2),
            "ill": random.choice(["no", "yes"], 90),
        }
    )
    again = people.assign(sugar=people["sugar"] + random.normal(0, 0.05, 90).round(2))
    table = pd.concat([people, again]).sample(frac=1, random_state=0)
    path = tmp_path_factory.mktemp("visits") / "visits.csv"
    table.to_csv(path, index=False)
    return path


@pytest.mark.slow
def test_tune_reports_repeated_groups_first(visits, tmp_path, capsys, monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)  # lines are not wrapped
    run = tmp_path / "run"
    command = ["tune", str(visits), "--target", "ill", *SHORT, "--output", str(run)]
    assert main(command) == 0
    out, err = capsys.readouterr()
    warning = err.partition("skescore: warning: ")[2].splitlines()[0]
    assert "90 of 90 values of 'patient' occur in several rows" in warning
    assert warning.endswith(f"--output {run} --groups patient --overwrite")
    assert out.startswith(f"Warning: {warning}\n")
    record = json.loads((run / "run.json").read_text(encoding="utf-8"))
    assert record["suspicions"][0] == record["notes"][0] == warning
    assert main([*command, "--overwrite", "--groups", "patient"]) == 0
    out, err = capsys.readouterr()
    assert "several rows" not in out + err
    assert "folds with whole groups (90 different patient)" in out
    record = json.loads((run / "run.json").read_text(encoding="utf-8"))
    assert record["search"]["groups"] == record["data"]["reading"]["groups"] == "patient"


@pytest.mark.slow
def test_misspelled_class_adds_no_rule(tmp_path, capsys):
    random = np.random.default_rng(0)
    table = pd.DataFrame(random.normal(size=(300, 2)).round(3), columns=["x", "z"])
    table["kind"] = np.where(table.sum(axis=1) + random.normal(0, 0.5, 300) > 0, "bad", "benign")
    table.loc[[3, 9], "kind"] = "Benign"
    table.to_csv(tmp_path / "typo.csv", index=False)
    assert main(["tune", str(tmp_path / "typo.csv"), "--target", "kind", *SHORT]) == 0
    out = capsys.readouterr().out
    assert out.startswith(
        "Warning: Classes of 'kind' have nearly the same names: 'Benign' (2 rows)"
    )
    assert "never predict" not in out


@pytest.mark.slow
def test_remedies_run_as_printed(tmp_path, capsys, monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)  # lines are not wrapped
    random = np.random.default_rng(0)
    table = pd.DataFrame(random.normal(size=(120, 2)).round(3), columns=["x", "z"])
    table["kind"] = np.where(table.sum(axis=1) > 0, "bad", "good")
    table.loc[[3, 9], "kind"] = "Good"
    table = pd.concat([table, table[:40]])
    table.to_csv(tmp_path / "copies.csv", index=False)
    command = ["tune", str(tmp_path / "copies.csv"), "--target", "kind", *SHORT]
    reported = []
    for _ in range(3):
        assert main(command) == 0
        out = capsys.readouterr().out
        warning = out.splitlines()[0]
        if not warning.startswith("Warning: "):
            break
        reported.append(warning)
        command = shlex.split(warning.partition(": skescore ")[2])
    assert "exact copies" in reported[0]
    assert "nearly the same name" in reported[1]
    assert command[-3:] == ["--drop-duplicates", "--labels", "Good=good"]
    assert out.startswith("copies: 120 rows, 2 features")
    assert "Good" not in out


def test_score_uses_labels_of_the_run(tmp_path, capsys):
    random = np.random.default_rng(0)
    table = pd.DataFrame(random.normal(size=(120, 2)).round(3), columns=["x", "z"])
    table["kind"] = np.where(table["x"] > 0, "bad", "good")
    table.loc[table.index[table["kind"] == "bad"][:2], "kind"] = "Bad"
    table.to_csv(tmp_path / "t.csv", index=False)
    command = ["tune", str(tmp_path / "t.csv"), "--target", "kind", *SHORT]
    assert main([*command, "--labels", "Bad=bad", "--output", str(tmp_path / "run")]) == 0
    capsys.readouterr()
    rules = str(tmp_path / "run" / "rules.json")
    assert main(["score", rules, str(tmp_path / "t.csv"), "--target", "kind"]) == 0
    assert "rules do not have" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (["--labels", "Good=good", "--labels", "Good=bad"], "two names, 'good' and 'bad'"),
        (["--labels", "Good"], "'Good' is not a pair"),
    ],
)
def test_labels_option_rejects_invalid_names(labels, message, capsys):
    with pytest.raises(SystemExit):
        main(["tune", "iris", *labels])
    assert message in capsys.readouterr().err


def test_fitted_model_keeps_its_classes(tmp_path, capsys):
    table = pd.DataFrame({"x": np.arange(40.0), "y": ["Well"] * 3 + ["well"] * 17 + ["ill"] * 20})
    model = DecisionTreeClassifier(random_state=0).fit(table[["x"]], table["y"])
    skops.io.dump(model, tmp_path / "model.skops")
    table.to_csv(tmp_path / "t.csv", index=False)
    command = ["tune", str(tmp_path / "t.csv"), "--target", "y", "--trials", "1", "--cv", "2"]
    command += ["--extractors", "cart", "--black-box", str(tmp_path / "model.skops"), "--trust"]
    with pytest.raises(SystemExit):
        main([*command, "--labels", "Well=well"])
    assert "still predicts 'Well'; rename" in capsys.readouterr().err
    assert main(command) == 0
    warnings_shown = capsys.readouterr().err
    assert "nearly the same name" in warnings_shown
    assert "--labels" not in warnings_shown


def test_sources_keep_all_rows_and_labels(tmp_path, capsys):
    (tmp_path / "rows").mkdir()
    pd.DataFrame({"x": [1.0, 2.0], "y": ["a", "b"]}).to_parquet(tmp_path / "rows" / "one.parquet")
    with pytest.raises(SystemExit):
        main(["tune", str(tmp_path / "rows"), "--target", "y", "--drop-duplicates"])
    assert "--drop-duplicates: needs a single table" in capsys.readouterr().err


def test_groups_and_time_exclude_each_other(visits, capsys):
    with pytest.raises(SystemExit):
        main(["tune", str(visits), "--target", "ill", "--groups", "patient", "--time", "age"])
    assert "not allowed with --groups" in capsys.readouterr().err


def test_search_warns_of_suspicious_data():
    random = np.random.default_rng(0)
    weight = random.normal(2900, 700, 200)
    X = pd.DataFrame({"age": random.integers(15, 45, 200), "bwt": weight})
    search = ExtractorSearchCV(
        DecisionTreeClassifier(random_state=0), extractors=["cart"], n_trials=1, cv=2
    )
    with pytest.warns(SuspiciousDataWarning, match=r"'bwt' alone determines .* --drop bwt"):
        search.fit(X, pd.Series(weight < 2500, name="low"))
    assert [suspicion.name for suspicion in search.suspicions_] == ["leakage"]


@pytest.fixture(scope="module")
def rules(visits, tmp_path_factory):
    """Write rules with a run.json that holds the distribution of the training rows."""
    X = load_dataset(visits, target="ill", groups="patient").X
    rules = RuleSet(
        [Rule([Interval(1, upper=5.0)], "no")],
        list(X),
        task="classification",
        classes=["no", "yes"],
        fallback=Fallback("yes"),
        domain=Domain(X.min().tolist(), X.max().tolist()),
    )
    folder = tmp_path_factory.mktemp("run")
    (folder / "rules.json").write_text(rules.to_json(), encoding="utf-8")
    distribution = {name: profile.to_dict() for name, profile in profile_columns(X).items()}
    about = {"features": list(X), "table": None, "distribution": distribution}
    (folder / "run.json").write_text(json.dumps({"data": about}), encoding="utf-8")
    return folder / "rules.json"


def test_predict_keeps_columns_and_names_classes(visits, rules, capsys):
    capsys.readouterr()
    options = ["--keep", "patient,age", "--labels", "healthy,ill"]
    assert main(["predict", str(rules), str(visits), *options]) == 0
    out, err = capsys.readouterr()
    rows = list(csv.DictReader(io.StringIO(out)))
    table = pd.read_csv(visits)
    assert [row["patient"] for row in rows] == table["patient"].tolist()
    assert [int(row["age"]) for row in rows] == table["age"].tolist()
    assert {row["prediction"] for row in rows} <= {"healthy", "ill"}
    assert "warning" not in err
    assert main(["predict", str(rules), str(visits), "--keep", "Patent"]) == 1
    assert "Did you mean 'patient'?" in capsys.readouterr().err
    assert main(["predict", str(rules), str(visits), "--labels", "one"]) == 1
    assert "must name each of the 2 classes" in capsys.readouterr().err
    assert main(["predict", str(rules), str(visits), "--labels", "noo=x"]) == 1
    assert "Did you mean 'no'?" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["n/k", "5.1 mmol"])
def test_predict_reports_columns_without_numbers(visits, rules, tmp_path, capsys, text):
    path = tmp_path / "texts.csv"
    pd.read_csv(visits).assign(sugar=text).to_csv(path, index=False)
    capsys.readouterr()
    assert main(["predict", str(rules), str(path)]) == 0
    assert "'sugar' is missing in all 180 rows, but in 0 %" in capsys.readouterr().err
    assert main(["predict", str(rules), str(path), "--strict"]) == 1


@pytest.mark.parametrize("has_run", [True, False])
def test_predict_reports_other_units(visits, rules, tmp_path, capsys, has_run):
    table = pd.read_csv(visits)
    table.assign(sugar=table["sugar"] * 18).to_csv(tmp_path / "mg.csv", index=False)
    if not has_run:
        rules = shutil.copy(rules, tmp_path / "rules.json")
    capsys.readouterr()
    command = ["predict", str(rules), str(tmp_path / "mg.csv")]
    assert main(command) == 0
    err = capsys.readouterr().err
    assert "all 180 rows are above the training maximum of 'sugar'" in err
    assert "other units?" in err
    for other in (
        ["score", *command[1:], "--target", "ill"],
        ["explain", *command[1:], "--row", "1"],
    ):
        assert main(other) == 0
        warning = capsys.readouterr().err.partition("skescore: warning: ")[2]
        assert warning.startswith("all 180 rows are above the training maximum of 'sugar'")
    assert main([*command, "--strict"]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert "--strict: rows of" in err


def test_predict_is_strict_about_columns_that_rules_use(visits, rules, tmp_path, capsys):
    table = pd.read_csv(visits)
    table.assign(age=table["age"] * 1000).to_csv(tmp_path / "rows.csv", index=False)
    capsys.readouterr()
    assert main(["predict", str(rules), str(tmp_path / "rows.csv"), "--strict"]) == 0
    err = capsys.readouterr().err
    note = "note: in columns that no rule uses: all 180 rows are above the training maximum of"
    assert f"{note} 'age'" in err
    assert "warning" not in err


def test_predict_suggests_columns_of_another_case(visits, rules, tmp_path, capsys):
    table = pd.read_csv(visits).rename(columns={"sugar": "SUGAR", "age": "Age"})
    table.to_csv(tmp_path / "caps.csv", index=False)
    capsys.readouterr()
    assert main(["predict", str(rules), str(tmp_path / "caps.csv")]) == 1
    assert "Did you mean 'SUGAR' for 'sugar'" in capsys.readouterr().err


@pytest.mark.slow
def test_remedies_for_test_rows_run_as_printed(tmp_path, capsys, monkeypatch):
    """The printed commands remove training rows from the test, or the test itself."""
    monkeypatch.delenv("COLUMNS", raising=False)
    random = np.random.default_rng(0)
    table = pd.DataFrame(random.normal(size=(160, 2)).round(2), columns=["a", "b"])
    table["y"] = np.where(table["a"] + table["b"] > 0, "yes", "no")
    train, test = tmp_path / "train.csv", tmp_path / "test.csv"
    table[:100].to_csv(train, index=False)
    table[80:115].to_csv(test, index=False)

    def suspicions_of(command):
        assert main([*command, "--output", str(tmp_path / "run"), "--overwrite"]) == 0
        capsys.readouterr()
        record = json.loads((tmp_path / "run" / "run.json").read_text(encoding="utf-8"))
        texts = [text for text in record["suspicions"] if "test" in text]
        return record, [(text, shlex.split(text.rpartition(": ")[2])[1:]) for text in texts]

    command = ["tune", str(train), "--target", "y", "--test", str(test), *SHORT]
    _, [(text, remedied)] = suspicions_of(command)
    assert text.startswith("20 of 35 test rows are among the training rows. ")
    record, [(text, remedied)] = suspicions_of(remedied)
    assert record["test"]["rows"] == 15
    assert any("20 of 35 rows are left out, because they equal" in n for n in record["notes"])
    assert text.startswith("The test set has only 15 rows, ")
    record, none_left = suspicions_of(remedied)
    assert none_left == []
    assert record.get("test") is None


@pytest.mark.slow
def test_tune_scores_test_rows_of_one_class(tmp_path, capsys):
    random = np.random.default_rng(0)
    table = pd.DataFrame(random.normal(size=(200, 2)).round(3), columns=["a", "b"])
    table["y"] = np.where(table["a"] > 0, "yes", "no")
    train, test, run = tmp_path / "train.csv", tmp_path / "test.csv", tmp_path / "run"
    table[:120].to_csv(train, index=False)
    later = table[120:][table["y"][120:] == "yes"]
    later.to_csv(test, index=False)
    command = ["tune", str(train), "--target", "y", "--test", str(test), *SHORT]
    assert main([*command, "--output", str(run)]) == 0
    capsys.readouterr()
    record = json.loads((run / "run.json").read_text(encoding="utf-8"))
    rules = RuleSet.load(run / "rules.json")
    expected = np.mean(rules.predict(later[["a", "b"]]) == "yes")
    assert record["test"]["rules"] == pytest.approx(expected)
    assert record["test"]["rows"] == len(later)


@pytest.mark.filterwarnings("ignore:The best candidate")
def test_search_accepts_a_model_with_class_weights():
    random = np.random.default_rng(0)
    X = random.normal(size=(600, 3))
    y = np.where(X[:, 0] + 1.5 * random.normal(size=600) > 2.5, "ill", "well")
    model = DecisionTreeClassifier(max_depth=2, class_weight="balanced", random_state=0)
    search = ExtractorSearchCV(model, extractors=["cart"], n_trials=1, cv=2, random_state=0)
    search.fit(X, y)
    assert search.black_box_quality_["accuracy"] < (y == "well").mean()
    assert "no_better_than_constant" not in [one.name for one in search.suspicions_]
    noise = random.permutation(y)
    with pytest.warns(SuspiciousDataWarning, match=r"on held-out rows, against"):
        search.fit(X, noise)
    stump = DecisionTreeClassifier(max_depth=1, max_leaf_nodes=2, random_state=0).fit(X[:9], y[:9])
    with pytest.warns(SuspiciousDataWarning, match=r"on these rows, against"):
        search.set_params(estimator=FrozenEstimator(stump)).fit(X, noise)
