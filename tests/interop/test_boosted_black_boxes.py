"""XGBoost, LightGBM and CatBoost as black boxes by name."""

from __future__ import annotations

import json
from dataclasses import replace
from importlib import import_module
from typing import Any

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from skescore.black_boxes import BlackBoxError, check_matches, load_black_box, make_black_box
from skescore.cli import main
from skescore.datasets import load_dataset
from skescore.extractors import Oracle

NAMES = ("xgboost", "lightgbm", "catboost")
FEW = {"xgboost": "n_estimators", "lightgbm": "n_estimators", "catboost": "iterations"}


@pytest.mark.parametrize("name", NAMES)
def test_make_black_box_accepts_missing_values_and_categories(name: str, ragged_table: Any) -> None:
    X, y = ragged_table(600, 0)
    for column in ("color", "shop"):
        X[column] = X[column].astype(object)
    rows = X.assign(size=X["size"].where(X["size"] > 1))
    rows.loc[::9, "color"] = "never seen"
    settings: dict[str, Any] = {"categories": ["color", "shop"], "params": {FEW[name]: 40}}
    model = clone(make_black_box(name, "regression", 0, **settings)).fit(X, y)
    assert model.score(X, y) > 0.6
    assert np.isfinite(model.predict(rows)).all()
    labels = np.where(y > 1, "yes", "no").astype(object)
    model = clone(make_black_box(name, "classification", 0, **settings)).fit(X, labels)
    assert model.score(X, labels) > 0.8
    assert set(model.predict(rows)) == {"yes", "no"}
    assert (model.predict_proba(rows).argmax(axis=1) == (model.predict(rows) == "yes")).all()
    truth = make_black_box(name, "classification", 0, **settings).fit(X, y > 1)
    assert truth.predict(rows).dtype == bool
    second_fitted = make_black_box(name, "classification", 0, **settings).fit(X, labels)
    assert (second_fitted.predict_proba(rows) == model.predict_proba(rows)).all()


@pytest.mark.parametrize("name", NAMES)
def test_load_black_box_reads_saved_boosted_pipelines(
    name: str, ragged_table: Any, tmp_path: Any
) -> None:
    X, y = ragged_table(300, 0)
    settings: dict[str, Any] = {"categories": ["color", "shop"], "params": {FEW[name]: 10}}
    model = make_black_box(name, "regression", 0, **settings).fit(X, y)
    joblib.dump(model, tmp_path / "model.joblib")
    loaded = load_black_box(tmp_path / "model.joblib", trust=True)
    assert (loaded.predict(X) == model.predict(X)).all()


@pytest.mark.parametrize("ending", ["ubj", "json", "cbm"])
@pytest.mark.parametrize("n_classes", [0, 2, 3])
def test_load_black_box_reads_files_of_save_model(
    ending: str, n_classes: int, tmp_path: Any
) -> None:
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(200, 3)), columns=["a", "b", "c"])
    y: Any = X["a"] - X["b"]
    library = "catboost" if ending == "cbm" else "xgboost"
    if n_classes:
        y = pd.qcut(y, n_classes, labels=False)
        if library == "catboost":  # XGBoost does not store labels
            y = y.map(dict(enumerate(("low", "mid", "high"))))
    prefix = "XGB" if library == "xgboost" else "CatBoost"
    kind = getattr(import_module(library), prefix + ("Classifier" if n_classes else "Regressor"))
    settings = {} if library == "xgboost" else {"verbose": 0, "allow_writing_files": False}
    model = kind(**{FEW[library]: 10}, **settings).fit(X, y)
    model.save_model(tmp_path / f"model.{ending}")
    loaded = load_black_box(tmp_path / f"model.{ending}")
    assert np.array_equal(np.ravel(loaded.predict(X)), np.ravel(model.predict(X)))
    if n_classes:
        assert list(loaded.classes_) == list(model.classes_)


@pytest.mark.parametrize(
    "loss", ["Poisson", "Tweedie:variance_power=1.5", "RMSEWithUncertainty", "Quantile:alpha=0.3"]
)
def test_load_black_box_predicts_in_the_units_of_the_target(loss: str, tmp_path: Any) -> None:
    catboost = pytest.importorskip("catboost")
    X = np.random.default_rng(0).normal(size=(200, 2))
    settings = {"iterations": 5, "verbose": 0, "allow_writing_files": False}
    model = catboost.CatBoostRegressor(loss_function=loss, **settings).fit(X, np.exp(X[:, 0]))
    model.save_model(str(tmp_path / "model.cbm"))
    assert np.array_equal(load_black_box(tmp_path / "model.cbm").predict(X), model.predict(X))


@pytest.mark.parametrize(
    ("trained", "written", "options", "remedy"),
    [
        (["01", "02", "10"], ["01", "02", "10"], {}, "--category shop"),
        (["True", "False", "True"], [True, False, True], {}, "--category shop"),
        ([1, 2, 10], ["01", "02", "10"], {"categories": ["shop"]}, "--numeric shop"),
        (["1", "2", "NA"], ["1", "2", ""], {}, "--missing drop"),
    ],
)
def test_check_matches_rejects_other_forms_of_hashed_categories(
    trained: Any, written: Any, options: Any, remedy: str, tmp_path: Any
) -> None:
    catboost = pytest.importorskip("catboost")
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 3, 200)
    X = pd.DataFrame({"n": rng.normal(size=200)})
    X["shop"] = pd.Series([trained[code] for code in codes], dtype=type(trained[0]))
    settings = {"iterations": 10, "verbose": 0, "allow_writing_files": False}
    y = X["n"] + 2 * (codes % 2)
    model = catboost.CatBoostRegressor(cat_features=["shop"], **settings).fit(X, y)
    model.save_model(str(tmp_path / "model.cbm"))
    table = X.assign(shop=[written[code] for code in codes], y=y)
    table.to_csv(tmp_path / "table.csv", index=False)
    loaded = load_black_box(tmp_path / "model.cbm")
    with pytest.raises(BlackBoxError, match=remedy):
        check_matches(loaded, load_dataset(tmp_path / "table.csv", target="y", **options))
    if "missing" not in remedy:
        option = {"numeric" if options else "categories": ["shop"]}
        data = load_dataset(tmp_path / "table.csv", target="y", **option)
        check_matches(loaded, data)
        assert np.array_equal(loaded.predict(data.X), model.predict(X))


def test_check_matches_rejects_labels_that_are_no_codes_of_xgboost(tmp_path: Any) -> None:
    xgboost = pytest.importorskip("xgboost")
    X = pd.DataFrame({"n": np.arange(90.0)})
    stars = np.repeat([1, 2, 3], 30)
    xgboost.XGBClassifier(n_estimators=3).fit(X, stars - 1).save_model(tmp_path / "model.ubj")
    loaded = load_black_box(tmp_path / "model.ubj")
    with pytest.raises(BlackBoxError, match=r"has the classes 0, 1, 2, but .* also has 3"):
        check_matches(loaded, load_dataset(X.assign(stars=stars), target="stars"))
    check_matches(loaded, load_dataset(X.assign(stars=stars - 1), target="stars"))


@pytest.mark.parametrize(
    ("kind", "objective"),
    [("XGBRegressor", "binary:logistic"), ("XGBClassifier", "reg:squarederror")],
)
def test_load_black_box_predicts_like_the_estimator(
    kind: str, objective: str, tmp_path: Any
) -> None:
    xgboost = pytest.importorskip("xgboost")
    X = np.random.default_rng(0).normal(size=(60, 2))
    model = getattr(xgboost, kind)(n_estimators=3, objective=objective)
    model.fit(X, (X[:, 0] > 0).astype(int)).save_model(tmp_path / "model.ubj")
    assert np.array_equal(load_black_box(tmp_path / "model.ubj").predict(X), model.predict(X))


@pytest.mark.parametrize("objective", ["multi:softmax", "rank:pairwise", "binary:logitraw"])
def test_load_black_box_rejects_objectives_without_labels(objective: str, tmp_path: Any) -> None:
    xgboost = pytest.importorskip("xgboost")
    rng = np.random.default_rng(0)
    rows = xgboost.DMatrix(rng.normal(size=(60, 2)), rng.integers(0, 2, 60))
    params = {"objective": objective} | ({"num_class": 2} if objective[0] == "m" else {})
    xgboost.train(params, rows, 2).save_model(tmp_path / "model.json")
    with pytest.raises(BlackBoxError, match=f"the objective '{objective}'"):
        load_black_box(tmp_path / "model.json")


@pytest.mark.parametrize(
    ("name", "message"),
    [("model.json", "is not a model of XGBoost"), ("model.cbm", "cannot be loaded")],
)
def test_load_black_box_explains_damaged_files(name: str, message: str, tmp_path: Any) -> None:
    (tmp_path / name).write_text('{"a": 1}', encoding="utf-8")
    with pytest.raises(BlackBoxError, match=message) as caught:
        load_black_box(tmp_path / name)
    assert str(caught.value).endswith("Save the model again with save_model.")
    assert "Stack trace" not in str(caught.value)


@pytest.mark.parametrize("name", NAMES)
def test_make_black_box_rejects_unknown_parameters(name: str) -> None:
    with pytest.raises(BlackBoxError, match="has no parameter 'deep'"):
        make_black_box(name, "regression", params={"deep": 3})


def fitted_model(name: str, X: Any, y: Any) -> Any:
    """Fit a small regressor of a boosting library, without a pipeline around it."""
    pipeline = make_black_box(name, "regression", 0, params={FEW[name]: 10})
    return (pipeline[-1] if hasattr(pipeline, "steps") else pipeline).fit(X, y)


def test_check_matches_accepts_unpickled_catboost(tmp_path: Any) -> None:
    friedman = load_dataset("friedman2")
    for X in (friedman.X, friedman.X.to_numpy()):
        joblib.dump(fitted_model("catboost", X, friedman.y), tmp_path / "model.joblib")
        loaded = load_black_box(tmp_path / "model.joblib", trust=True)
        check_matches(loaded, friedman)
        narrow = replace(friedman, X=friedman.X.iloc[:, 1:])
        with pytest.raises(BlackBoxError, match=r"Missing in the data|trained on 4 features"):
            check_matches(loaded, narrow)


def test_check_matches_accepts_names_without_blanks(tmp_path: Any) -> None:
    friedman = load_dataset("friedman2")
    names = ["IL-6 (R)", "a_b c", "d", "e"]
    data = replace(friedman, X=friedman.X.set_axis(names, axis=1))
    joblib.dump(fitted_model("lightgbm", data.X, data.y), tmp_path / "model.joblib")
    loaded = load_black_box(tmp_path / "model.joblib", trust=True)
    check_matches(loaded, data)
    assert (Oracle(loaded, like=data.X).query(data.X) == loaded.predict(data.X)).all()
    with pytest.raises(BlackBoxError, match=r"number 1 was 'IL-6_\(R\)' and is 'a_b_c'"):
        check_matches(loaded, replace(data, X=data.X[[*names[1:], names[0]]]))


@pytest.mark.parametrize("name", NAMES)
def test_tune_selects_columns_of_a_model(name: str, tmp_path: Any, capsys: Any) -> None:
    data = load_dataset("friedman2")
    X = data.X.set_axis(["IL-6 (R)", "a_b c", "d", "e"], axis=1)
    model, table = tmp_path / "model.joblib", tmp_path / "table.csv"
    joblib.dump(fitted_model(name, X[["e", "a_b c"]], data.y), model)
    X.assign(note="x", y=data.y).to_csv(table, index=False)
    words = ["--target", "y", "--black-box", str(model), "--trust", "--trials", "1", "--cv", "2"]
    assert main(["tune", str(table), *words, "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["data"]["features"] == ["e", "a_b c"]


@pytest.mark.parametrize(
    ("name", "places"),
    [
        ("lightgbm", ("Köln", "München", "Ulm")),
        ("lightgbm", ("u", "v", "w")),
        ("xgboost", ("u", "v", "w")),
    ],
)
def test_load_black_box_restores_categories(
    name: str, places: Any, ragged_table: Any, tmp_path: Any
) -> None:
    X, y = ragged_table(300, 0)
    X["shop"] = X["shop"].cat.rename_categories(list(places))
    X["floor"] = pd.Categorical(np.random.default_rng(0).integers(3, 6, 300))
    model = fitted_model(name, X, y + X["floor"].astype(int))
    joblib.dump(model, tmp_path / "model.joblib")
    loaded = load_black_box(tmp_path / "model.joblib", trust=True)
    rows = X.astype({"color": object, "shop": object, "floor": int})
    expected = model.predict(X)
    assert (loaded.predict(rows) == expected).all()
    # The last rows lack some of the categories.
    assert (loaded.predict(rows[-2:]) == expected[-2:]).all()
    assert (loaded.predict(rows.astype({"floor": str})) == expected).all()
    assert (Oracle(loaded, like=rows).query(rows) == expected).all()


@pytest.mark.parametrize("name", ["lightgbm", "xgboost"])
def test_load_black_box_matches_numbers_with_gaps_to_texts(name: str, tmp_path: Any) -> None:
    rng = np.random.default_rng(0)
    codes = rng.integers(-1, 3, 300)
    X = pd.DataFrame({"n": rng.normal(size=300)})
    for labels in (["1", "2", "10"], [1.0, 2.0, 10.0] if name == "lightgbm" else [1, 2, 10]):
        X["shop"] = pd.Categorical.from_codes(codes, labels)
        model = fitted_model(name, X, X["n"] + 9 * (codes == 0))
        joblib.dump(model, tmp_path / "model.joblib")
        loaded = load_black_box(tmp_path / "model.joblib", trust=True)
        texts = X.assign(shop=X["shop"].astype(object))
        texts["shop"] = texts["shop"].map(lambda v: f"{float(v):g}", na_action="ignore")
        numbers = texts.astype({"shop": float})
        assert (loaded.predict(texts) == model.predict(X)).all()
        assert (loaded.predict(numbers) == model.predict(X)).all()


def test_load_black_box_rejects_lost_categories(ragged_table: Any, tmp_path: Any) -> None:
    X, y = ragged_table(60, 0)
    X["shop"] = X["shop"].cat.rename_categories(["Köln", "München", "Ulm"])  # cut by XGBoost 3.2
    joblib.dump(fitted_model("xgboost", X, y), tmp_path / "model.joblib")
    with pytest.raises(BlackBoxError, match="of 'shop', so the texts of a table cannot be"):
        load_black_box(tmp_path / "model.joblib", trust=True)


def test_tune_accepts_model_with_categories(ragged_table: Any, tmp_path: Any, capsys: Any) -> None:
    X, y = ragged_table(120, 0)
    joblib.dump(fitted_model("lightgbm", X, y), tmp_path / "model.joblib")
    X.assign(y=y).to_csv(tmp_path / "rows.csv", index=False)
    words = ["tune", str(tmp_path / "rows.csv"), "--target", "y", "--extractors", "cart"]
    words += ["--black-box", str(tmp_path / "model.joblib"), "--trust", "--trials", "1"]
    assert main([*words, "--cv", "2", "--quiet"]) == 0
    assert "THEN" in capsys.readouterr().out
