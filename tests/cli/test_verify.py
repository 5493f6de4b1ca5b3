"""``skescore verify``: text, JSON, HTML, exit codes and the check."""

from __future__ import annotations

import json

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier

from skescore.cli import main
from skescore.extractors import CARTExtractor
from skescore.rules import RuleSet
from skescore.verification import verify


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Write rules, a model and a table to a folder."""
    folder = tmp_path_factory.mktemp("verify")
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"age of person": rng.integers(18, 80, 120), "income": rng.random(120)})
    X["buys"] = np.where(X["age of person"] + 20 * X["income"] > 60, "yes", "no")
    X.to_csv(folder / "table.csv", index=False)
    model = RandomForestClassifier(5, max_depth=4, random_state=0).fit(X.iloc[:, :2], X["buys"])
    joblib.dump(model, folder / "model.joblib")
    rules = CARTExtractor(model, max_leaf_nodes=3).fit(X.iloc[:, :2]).rules_
    rules.save(folder / "rules.json")
    return folder


def arguments(folder, *more: str, rules: str = "rules.json") -> list[str]:
    paths = (str(folder / name) for name in (rules, "model.joblib", "table.csv"))
    return ["verify", *paths, "--target", "buys", "--trust", "--seconds", "5", *more]


def test_verify_prints_proofs_and_witnesses(files, capsys) -> None:
    page = files / "page.html"
    assert main(arguments(files, "--html", str(page))) == 0
    text = capsys.readouterr().out
    assert " rules compared with RandomForestClassifier. The model was read exactly" in text
    assert "near the data: disagreement in" in text
    assert "For age of person = " in text
    assert "<svg" in page.read_text(encoding="utf-8")


def test_verify_limits_disagreement_by_exit_code(files, capsys) -> None:
    assert main(arguments(files, "--max-disagreement", "0.9")) == 0
    assert main(arguments(files, "--max-disagreement", "0.0001")) == 1
    assert "more than --max-disagreement 0.0001" in capsys.readouterr().err


def test_verify_writes_json_that_check_confirms(files, capsys) -> None:
    output = files / "result.json"
    assert main(arguments(files, "--output", str(output))) == 0
    assert main(arguments(files, "--check", rules="result.json")) == 0
    assert capsys.readouterr().out.startswith("confirmed: ")
    data = json.loads(output.read_text(encoding="utf-8"))
    share = data["rules"][0]["near_disagreement"]
    share |= {"lower": 0.9, "upper": 1.0, "proven_lower": 0.9, "proven_upper": 1.0}
    (files / "forged.json").write_text(json.dumps(data), encoding="utf-8")
    assert main(arguments(files, "--check", rules="forged.json")) == 1
    assert "rejected" in capsys.readouterr().out
    assert main(arguments(files, "--check")) == 1
    assert "is not the JSON of `skescore verify --format json`" in capsys.readouterr().err


def test_verify_uses_rows_without_a_label(files, capsys) -> None:
    table = pd.read_csv(files / "table.csv")
    table.loc[::3, "buys"] = None
    table.to_csv(files / "partly labeled.csv", index=False)
    rules, model = RuleSet.load(files / "rules.json"), joblib.load(files / "model.joblib")
    result = verify(rules, model, table.iloc[:, :2])
    paths = [str(files / name) for name in ("rules.json", "model.joblib", "partly labeled.csv")]
    for target in ([], ["--target", "buys"]):
        assert main(["verify", *paths, *target, "--trust", "--format", "json"]) == 0
        figures = json.loads(capsys.readouterr().out)
        assert figures["near_disagreement"] == json.loads(result.to_json())["near_disagreement"]
        assert sum(record["n_rows"] for record in figures["rules"]) == 120
    # A search verifies its rules on the rows that have a label.
    labeled = table.dropna().iloc[:, :2].reset_index(drop=True)
    (files / "of a run.json").write_text(verify(rules, model, labeled).to_json(), encoding="utf-8")
    checked = [str(files / "of a run.json"), *paths[1:], "--target", "buys", "--trust", "--check"]
    assert main(["verify", *checked]) == 0


def test_witnesses_option_needs_max_disagreement(capsys):
    with pytest.raises(SystemExit):
        main(["tune", "iris", "--witnesses"])
    assert "--witnesses: needs --max-disagreement" in capsys.readouterr().err


@pytest.mark.slow
def test_tune_extracts_rules_again_from_witnesses(tmp_path, capsys):
    rng = np.random.default_rng(0)
    many_rows = pd.DataFrame({"x": rng.uniform(size=5000), "z": rng.uniform(size=5000)})
    labels = np.where((many_rows["x"] > 0.53) & (many_rows["z"] > 0.3), "yes", "no")
    forest = RandomForestClassifier(15, max_depth=4, random_state=0).fit(many_rows, labels)
    joblib.dump(forest, tmp_path / "forest.joblib")
    many_rows[:40].assign(y=labels[:40]).to_csv(tmp_path / "few.csv", index=False)
    command = ["tune", str(tmp_path / "few.csv"), "--target", "y", "--trust", "--black-box"]
    command += [str(tmp_path / "forest.joblib"), "--extractors", "cart", "--trials", "2", "--cv"]
    command += ["2", "--verify", "5", "--max-disagreement", "0.001", "--output"]
    assert main([*command, str(tmp_path / "plain")]) == 1
    assert "verified candidates has" in capsys.readouterr().err
    assert main([*command, str(tmp_path / "again"), "--witnesses"]) == 0
    record = json.loads((tmp_path / "again" / "run.json").read_text(encoding="utf-8"))
    assert record["best"]["extractor"] == "cart + witnesses"
    result = json.loads((tmp_path / "again" / "verification.json").read_text(encoding="utf-8"))
    assert result["near_disagreement"]["upper"] <= 0.001
