"""MLflow saves, loads and serves rules."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris
from sklearn.neighbors import KNeighborsClassifier

from skescore import ExtractorSearchCV
from skescore.compat import (
    autolog_mlflow,
    load_mlflow_rules,
    log_mlflow_search,
    save_mlflow_model,
)
from skescore.rules import Fallback, Interval, OneOf, Rule, RuleSet

RULES = RuleSet(
    [Rule([Interval(0, upper=2.5), OneOf(1, ["red"])], "small")],
    ["size", "color"],
    task="classification",
    fallback=Fallback("large"),
)
X = pd.DataFrame(
    {"size": [1.0, 3.0, np.nan], "color": ["red", "blue", None], "other": [1, 2, 3]},
    index=[5, 6, 7],
)


@pytest.mark.engine
@pytest.mark.filterwarnings("default")
def test_mlflow_serves_saved_rules(tmp_path, monkeypatch):
    mlflow = pytest.importorskip("mlflow")
    monkeypatch.chdir(tmp_path)
    save_mlflow_model(RULES, tmp_path / "model", X)
    model = mlflow.pyfunc.load_model(str(tmp_path / "model"))
    prediction = model.predict(X)
    assert prediction.tolist() == ["small", "large", "large"]
    assert prediction.index.tolist() == [5, 6, 7]
    assert model.metadata.signature.inputs.input_names() == ["size", "color"]
    assert load_mlflow_rules(tmp_path / "model") == RULES
    assert not list((tmp_path / "model").rglob("*.pkl"))


@pytest.mark.engine
@pytest.mark.filterwarnings("default")
def test_mlflow_predicts_the_rows_of_its_signature(tmp_path, monkeypatch):
    mlflow = pytest.importorskip("mlflow")
    monkeypatch.chdir(tmp_path)
    n = 60
    rows = pd.DataFrame(
        {
            "color": pd.Categorical(["red", "blue", None] * 20),
            "count": pd.array(range(n), dtype="Int64"),
            "vip": pd.array([True, False] * 30, dtype="boolean"),
            "late": pd.Series([None] * 30 + ["yes", "no"] * 15, dtype=object),
            "mixed": pd.Series(["a", 1] * 30, dtype=object),
        }
    )
    rows.loc[30:35, ["count", "vip"]] = pd.NA
    rules = RuleSet(
        [
            Rule([OneOf(0, ["red"]), Interval(1, lower=3), OneOf(2, [True])], "a"),
            Rule([Interval(1, upper=50, missing=True), OneOf(3, ["yes"])], "b"),
            Rule([OneOf(4, ["a"])], "c"),
        ],
        list(rows),
        task="classification",
        ordered=True,
        fallback=Fallback("d"),
    )
    expected = rules.predict(rows).tolist()
    assert set(expected) == {"a", "b", "c", "d"}
    save_mlflow_model(rules, tmp_path / "model", rows)
    model = mlflow.pyfunc.load_model(str(tmp_path / "model"))
    assert model.predict(rows).tolist() == expected
    assert model.predict(rows.astype({"color": object, "count": float})).tolist() == expected
    inputs = model.metadata.signature.inputs
    assert inputs.input_names() == list(rows)
    assert str(inputs.input_types()[3]) == "DataType.string"
    example = json.loads((tmp_path / "model" / "input_example.json").read_text(encoding="utf-8"))
    assert example["data"][0] == ["red", 0, True, None, "a"]


def test_mlflow_needs_a_data_frame(tmp_path):
    with pytest.raises(TypeError, match="X must be a DataFrame"):
        save_mlflow_model(RULES, tmp_path, X.to_numpy())
    with pytest.raises(FileNotFoundError, match="holds no rules"):
        load_mlflow_rules(tmp_path)


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
def test_autolog_logs_searches_to_a_local_store(tmp_path, monkeypatch):
    mlflow = pytest.importorskip("mlflow")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    mlflow.set_tracking_uri((tmp_path / "store").as_uri())
    mlflow.set_experiment("rules")
    X, y = load_iris(return_X_y=True, as_frame=True)
    search = ExtractorSearchCV(
        KNeighborsClassifier(9), extractors=["cart"], n_trials=4, cv=2, random_state=0
    )
    original = ExtractorSearchCV.fit
    autolog_mlflow(time_limit=1)
    autolog_mlflow(time_limit=1)  # twice is once
    try:
        with mlflow.start_run() as outer:
            search.fit(X.to_numpy(), y)
            mlflow.log_metric("own", 1)  # the run of the user is still active
        search.fit(X, y)
    finally:
        autolog_mlflow(False)
    assert ExtractorSearchCV.fit is original
    runs = mlflow.search_runs(experiment_names=["rules"], output_format="list")
    assert len(runs) == 2
    (own,) = [run for run in runs if run.info.run_id == outer.info.run_id]
    (run,) = [run for run in runs if run is not own]
    assert own.data.metrics["own"] == 1
    assert run.info.status == "FINISHED"
    best = search.leaderboard_.iloc[0]
    for name in ("score", "correctness", "fidelity", "n_rules", "completeness_volume"):
        assert run.data.metrics[name] == pytest.approx(best[name])
    assert run.data.params["estimator"] == "KNeighborsClassifier"
    assert run.data.params["best_extractor"] == "cart"
    assert run.data.params["best_max_leaf_nodes"] == str(search.best_params_["max_leaf_nodes"])
    folder = Path(mlflow.artifacts.download_artifacts(run_id=run.info.run_id, artifact_path=""))
    names = {path.name for path in folder.iterdir()}
    assert {"rules.json", "rules.txt", "leaderboard.csv", "report.html"} <= names
    assert RuleSet.load(folder / "rules.json").to_text() == search.rules_.to_text()
    model = mlflow.pyfunc.load_model(f"runs:/{run.info.run_id}/rules")
    assert model.predict(X).tolist() == search.rules_.predict(X).tolist()


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
def test_failed_logging_keeps_the_search(tmp_path, monkeypatch):
    mlflow = pytest.importorskip("mlflow")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    monkeypatch.setattr(mlflow, "log_params", lambda params: 1 / 0)
    mlflow.set_tracking_uri((tmp_path / "store").as_uri())
    mlflow.set_experiment("rules")
    search = ExtractorSearchCV(
        KNeighborsClassifier(9), extractors=["cart"], n_trials=2, cv=2, random_state=0
    )
    autolog_mlflow(report=False)
    try:
        with pytest.warns(UserWarning, match="not logged to MLflow .ZeroDivisionError"):
            search.fit(*load_iris(return_X_y=True, as_frame=True))
    finally:
        autolog_mlflow(False)
    assert len(search.rules_) > 0
    assert mlflow.active_run() is None
    with pytest.raises(ZeroDivisionError):
        log_mlflow_search(search, report=False)
