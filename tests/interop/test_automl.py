"""Real predictors of FLAML and AutoGluon and results of statsmodels as black boxes."""

from __future__ import annotations

import json
import pickle
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_diabetes, load_wine
from sklearn.exceptions import NotFittedError

from skescore import CARTExtractor, ExtractorSearchCV, as_black_box
from skescore.black_boxes import BlackBoxError, load_black_box, model_checksum
from skescore.cli import main

pytestmark = pytest.mark.filterwarnings("ignore")
FLAML = {"verbose": 0, "time_budget": 30, "max_iter": 2, "estimator_list": ["rf"], "n_jobs": 1}
AUTOGLUON = {"hyperparameters": {"RF": {"n_estimators": 10}, "XT": {"n_estimators": 10}}}


def table_of(task):
    """Return rows with a text column, and texts or numbers to predict."""
    if task == "regression":
        X, y = load_diabetes(return_X_y=True, as_frame=True)
        X, y = X[["bmi", "s5", "bp"]], y.rename("target")
    else:
        X, y = load_wine(return_X_y=True, as_frame=True)
        X = X[["alcohol", "proline", "flavanoids"]]
        y = y.map({0: "barolo", 1: "grignolino", 2: "barbera"}).rename("target")
    size = np.where(X.iloc[:, 0] > X.iloc[:, 0].median(), "large", "small")
    return X.assign(size=size.astype(object)), y


def flaml_model(X, y, task, folder):
    model = pytest.importorskip("flaml").AutoML()
    model.fit(X, y, task=task, seed=0, **FLAML)
    path = folder / "model.pkl"
    path.write_bytes(pickle.dumps(model))
    return model, path


def autogluon_model(X, y, task, folder):
    tabular = pytest.importorskip("autogluon.tabular")
    path = folder / "predictor"
    model = tabular.TabularPredictor("target", path=str(path), verbosity=0)
    return model.fit(X.assign(target=y), **AUTOGLUON), path


@pytest.fixture(params=["classification", "regression"])
def task(request):
    return request.param


@pytest.fixture(params=[flaml_model, autogluon_model])
def fitted(request, task, tmp_path):
    X, y = table_of(task)
    return X, y, *request.param(X, y, task, tmp_path)


def test_automl_predictors_are_black_boxes(fitted, task):
    X, y, model, path = fitted
    expected = np.asarray(model.predict(X))
    for black_box in (as_black_box(model), load_black_box(path, trust=True)):
        np.testing.assert_array_equal(black_box.predict(X), expected)
        extractor = CARTExtractor(black_box, max_leaf_nodes=12, random_state=0).fit(X)
        np.testing.assert_array_equal(extractor.oracle_.query(X), expected)
    if task == "classification":
        assert set(extractor.classes_) == set(y)
        assert np.mean(extractor.predict(X) == expected) > 0.9
    else:
        errors = extractor.predict(X) - expected
        assert np.var(errors) < 0.3 * np.var(expected)
    search = ExtractorSearchCV(
        as_black_box(model), extractors=["cart"], n_trials=2, cv=2, random_state=0
    ).fit(X, y)
    assert len(search.rules_) >= 2
    with pytest.raises(TypeError, match=r"statsmodels as as_black_box\(model\)"):
        CARTExtractor(model).fit(X, y)


def test_tune_command_accepts_automl_predictors(fitted, tmp_path, monkeypatch, capsys):
    X, y, _, path = fitted
    monkeypatch.chdir(tmp_path)
    X.assign(target=y).to_csv("rows.csv", index=False)
    words = ["tune", "rows.csv", "--target", "target", "--black-box", str(path), "--trials", "2"]
    words += ["--extractors", "cart", "--output", "run", "--quiet"]
    assert main(words) == 1
    assert "was not opened" in capsys.readouterr().err
    assert main([*words, "--trust"]) == 0
    record = json.loads((tmp_path / "run" / "run.json").read_text())
    assert record["black_box"]["checksum_sha256"] == model_checksum(path)
    words = ["report", "run", "--output", "report.html", "--time-limit", "1", "--trust"]
    assert main(words) == 0
    assert "was not loaded" not in capsys.readouterr().err
    changed = path / "version.txt" if path.is_dir() else path
    changed.write_bytes(changed.read_bytes() + b" ")
    assert main([*words, "--overwrite"]) == 0
    assert "it has changed since the run" in capsys.readouterr().err


def test_automl_recipe_of_guide_runs(capsys):
    pytest.importorskip("flaml")
    page = (Path(__file__).parents[2] / "docs/guide/recipes.md").read_text(encoding="utf-8")
    table = re.search(r"```python\n(.*?)```", page, flags=re.DOTALL)[1]
    (recipe,) = re.findall(r"```py\n([^`]*AutoML[^`]*)```", page)
    names = {}
    exec(table, names)
    capsys.readouterr()
    exec(recipe.replace("time_budget=10", "time_budget=2, n_jobs=1"), names)
    assert re.findall(
        r"^(\d)\. .*(?:barolo|grignolino|barbera)  ", capsys.readouterr().out, re.M
    ) == list("1234")


def test_as_black_box_rejects_unfitted_automl_predictors(tmp_path):
    flaml = pytest.importorskip("flaml")
    with pytest.raises(NotFittedError, match="AutoML is not"):
        as_black_box(flaml.AutoML())
    tabular = pytest.importorskip("autogluon.tabular")
    with pytest.raises(NotFittedError, match="TabularPredictor is not"):
        as_black_box(tabular.TabularPredictor("target", path=str(tmp_path / "new")))


def test_load_black_box_rejects_folders_without_predictor(tmp_path):
    with pytest.raises(BlackBoxError, match="is a folder: pass the file"):
        load_black_box(tmp_path, trust=True)


def test_statsmodels_results_are_black_boxes(tmp_path):
    pytest.importorskip("statsmodels")
    import statsmodels.api as sm
    import statsmodels.formula.api as smf

    X, y = table_of("regression")
    table = X.assign(target=y, high=(y > 140).astype(int), level=pd.cut(y, 3, labels=False))
    numbers = smf.ols("target ~ bmi + s5 + size", table).fit()
    np.testing.assert_array_equal(as_black_box(numbers).predict(X), numbers.predict(X))
    family = sm.families.Binomial()
    for model in (
        smf.logit("high ~ bmi + s5", table).fit(disp=0),
        smf.probit("high ~ bmi + s5", table).fit(disp=0),
        smf.glm("high ~ bmi + s5", table, family=family).fit(),
    ):
        expected = (model.predict(X) > 0.5).astype(int)
        assert 0 < expected.sum() < len(expected)
        np.testing.assert_array_equal(as_black_box(model).predict(X), expected)
        labels = as_black_box(model, classes=["no", "yes"]).predict(X)
        np.testing.assert_array_equal(labels, np.where(expected, "yes", "no"))
        model.save(str(tmp_path / "model.pkl"))
        loaded = load_black_box(tmp_path / "model.pkl", trust=True)
        np.testing.assert_array_equal(loaded.predict(X), expected)
    levels = smf.mnlogit("level ~ bmi + s5", table).fit(disp=0)
    with pytest.raises(ValueError, match="classes must list the labels of a multinomial model"):
        as_black_box(levels)
    expected = np.array(["low", "middle", "high"])[levels.predict(X).to_numpy().argmax(axis=1)]
    black_box = as_black_box(levels, classes=["low", "middle", "high"])
    np.testing.assert_array_equal(black_box.predict(X), expected)
    levels.save(str(tmp_path / "levels.pkl"))
    with pytest.raises(BlackBoxError, match="MultinomialResultsWrapper that is incomplete"):
        load_black_box(tmp_path / "levels.pkl", trust=True)
    counts = smf.poisson("level ~ bmi", table).fit(disp=0)
    np.testing.assert_array_equal(as_black_box(counts).predict(X), counts.predict(X))
