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


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Rules, a model and a table in a folder."""
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
    assert main(arguments(files, "--format", "json", "--output", str(output))) == 0
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
