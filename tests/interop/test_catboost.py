"""Rules read from the real CatBoost predict like its models, to the last row."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
import pytest
from catboost import CatBoost, CatBoostClassifier, CatBoostRegressor, sum_models
from sklearn.compose import make_column_transformer
from sklearn.pipeline import make_pipeline

from skescore.cli import main
from skescore.rules import RuleSet, as_ruleset
from skescore.rules.importers import read_catboost

QUIET: dict[str, Any] = {
    "iterations": 10,
    "depth": 4,
    "verbose": 0,
    "allow_writing_files": False,
    "thread_count": 1,
    "random_seed": 0,
}
NAMES = ["color", "shop", "floor"]
#: How categories are coded: apart, by statistics of one feature, or of combinations.
CODINGS = [
    {"one_hot_max_size": 20},
    {"max_ctr_complexity": 1},
    {"max_ctr_complexity": 1, "simple_ctr": ["Buckets", "Counter"]},
    {"max_ctr_complexity": 3},
    {"max_ctr_complexity": 1, "grow_policy": "Depthwise"},
    {"one_hot_max_size": 4, "grow_policy": "Lossguide"},
]


@pytest.fixture(scope="session")
def table(ragged_table: Any) -> Callable[[int, int], Any]:
    """Return a table without missing categories, which CatBoost rejects, and with numeric ones."""

    def make(n_rows: int, seed: int) -> Any:
        X, y = ragged_table(n_rows, seed)
        X["floor"] = np.random.default_rng(seed).integers(0, 6, n_rows)
        for name in ("color", "shop"):
            X[name] = X[name].astype(object).where(X[name].notna(), "none")
        return X, y + X["floor"] * (X["shop"] == "v")

    return make


@pytest.mark.parametrize("coding", CODINGS, ids=str)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_catboost_labels_equal_model(coding: Any, n_classes: int, table: Any) -> None:
    (X, y), (rows, _) = table(1500, 0), table(10_000, 1)
    labels = pd.qcut(y, n_classes, labels=["low", "middle", "top"][:n_classes]).astype(str)
    rows.loc[::40, "color"] = "never seen"
    model = CatBoostClassifier(**QUIET, **coding, cat_features=NAMES).fit(X, labels)
    rules = as_ruleset(model, X=X)
    assert (rules.predict(rows) == model.predict(rows).ravel()).all()
    few = rows[:500]
    assert rules.predict_proba(few) == pytest.approx(model.predict_proba(few), abs=1e-9)
    assert RuleSet.from_json(rules.to_json()) == rules


@pytest.mark.parametrize("loss", ["MultiClass", "MultiClassOneVsAll"])
def test_catboost_rules_support_one_output_per_class(loss: str) -> None:
    X = np.random.default_rng(0).normal(size=(300, 3))
    labels = np.where(X[:, 0] + X[:, 1] / 2 > 0.3, "yes", "no")
    model = CatBoostClassifier(**QUIET, loss_function=loss).fit(X, labels)
    assert (as_ruleset(model).predict(X) == model.predict(X).ravel()).all()


@pytest.mark.parametrize("coding", CODINGS, ids=str)
def test_catboost_numbers_equal_model(coding: Any, table: Any) -> None:
    (X, y), (rows, _) = table(1500, 0), table(10_000, 1)
    rows.loc[::40, "floor"] = 77
    model = CatBoostRegressor(**QUIET, **coding, cat_features=NAMES).fit(X, y)
    assert as_ruleset(model, X=X).predict(rows) == pytest.approx(model.predict(rows), abs=1e-12)


def test_catboost_rules_support_category_combinations(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    codes = rng.integers(12, size=3000), rng.integers(9, size=3000)
    X = pd.DataFrame({"x": rng.normal(size=3000), "a": codes[0], "b": codes[1]})
    X["b"] = X["b"].map("label {}".format)
    y = X["x"] + 9 * rng.normal(size=(12, 9))[codes] + 4 * (X["x"] > 0.3) * (X["a"] % 3 == 1)
    settings = QUIET | {"iterations": 20, "depth": 3, "max_ctr_complexity": 4}
    model = CatBoostRegressor(**settings, cat_features=["a", "b"]).fit(X, y)
    model.save_model(str(tmp_path / "model.json"), format="json")
    counts = json.loads((tmp_path / "model.json").read_text())["features_info"]["ctrs"]
    n_elements = [count["elements"] for count in counts]
    assert {"float_feature", "cat_feature_value"} <= {
        element["combination_element"]
        for several in n_elements
        if len(several) > 1
        for element in several
    }
    rows = X.assign(a=rng.permutation(X["a"]))
    rows.loc[::30, "a"] = 77
    rows.loc[::40, "b"] = "never seen"
    rules = as_ruleset(model, X=X)
    assert rules.predict(rows) == pytest.approx(model.predict(rows), abs=1e-12)
    assert len(rules) > 20 * 2**3 + 1


@pytest.mark.parametrize("nan_mode", ["Min", "Max"])
def test_catboost_rules_agree_next_to_borders(nan_mode: str, table: Any) -> None:
    X, y = table(1500, 0)
    X = X[["age", "size", "rate"]].to_numpy()
    model = CatBoostRegressor(**QUIET, nan_mode=nan_mode).fit(X, y)
    rules = as_ruleset(model)
    bounds = {b for r in rules for c in r.intervals if c.feature == 0 for b in (c.lower, c.upper)}
    rows = []
    for bound in sorted(bounds - {-np.inf, np.inf}):
        near = np.float32(bound)
        for value in (bound, float(near), float(np.nextafter(near, np.float32(9)))):
            rows += [
                [v, 2.0, np.nan] for v in (np.nextafter(value, -9), value, np.nextafter(value, 9))
            ]
    rows = np.vstack([X, rows, np.full((1, 3), np.nan)])
    assert rules.predict(rows) == pytest.approx(model.predict(rows), abs=1e-12)


@pytest.mark.parametrize("nan_mode", ["Min", "Max"])
def test_catboost_rules_handle_numbers_beyond_float32(nan_mode: str) -> None:
    """Such numbers become infinite and join the missing values."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=300) * 1e37, rng.normal(size=300)])
    X[:60, 0] = np.nan
    y = np.where(np.isnan(X[:, 0]), 9.0, X[:, 0] > 0) + X[:, 1]
    model = CatBoostRegressor(**QUIET, nan_mode=nan_mode).fit(X, y)
    largest = float(np.finfo(np.float32).max)
    ends = [largest * (1 + 2.0**-k) for k in range(20, 30)]
    ends += [1e37, largest, np.nextafter(largest, np.inf), 3.5e38, 1e300, np.inf]
    rows = np.array([[sign * end, 0.1] for end in ends for sign in (1, -1)])
    assert as_ruleset(model).predict(rows) == pytest.approx(model.predict(rows), abs=1e-12)
    broken = CatBoostRegressor(**QUIET).fit(np.where(np.isnan(X), np.nan, X * 30), y)
    with pytest.raises(ValueError, match="exceed single precision"):
        as_ruleset(broken)


@pytest.mark.parametrize("kind", ["truth values", "categories", "numbers", "texts"])
@pytest.mark.parametrize("most", [1, 10])
def test_catboost_rules_support_categories_of_every_type(kind: str, most: int) -> None:
    rng = np.random.default_rng(0)
    codes = pd.Series(rng.integers(0, 2 if kind == "truth values" else 5, 600))
    columns = {
        "truth values": codes == 1,
        "categories": codes.map("label {}".format).astype("category"),
        "numbers": codes,
        "texts": codes.map("label {}".format),
    }
    X = pd.DataFrame({"x": rng.normal(size=600), "kind": columns[kind]})
    settings = QUIET | {"one_hot_max_size": most, "depth": 2}
    model = CatBoostRegressor(**settings, cat_features=["kind"]).fit(X, X["x"] + 3 * (codes == 1))
    assert as_ruleset(model, X=X).predict(X) == pytest.approx(model.predict(X), abs=1e-12)


class Subclass(CatBoostClassifier):
    """A class of a user, in a module without the functions of CatBoost."""


def test_catboost_rules_support_subclass(table: Any) -> None:
    X, y = table(300, 0)
    model = Subclass(**QUIET, cat_features=NAMES).fit(X, np.where(y > 1, "yes", "no"))
    assert (as_ruleset(model, X=X).predict(X) == model.predict(X)).all()


def test_catboost_rules_respect_probability_threshold(table: Any, tmp_path: Path) -> None:
    X, y = table(1500, 0)
    X = X[["age", "size", "rate"]]
    model = CatBoostClassifier(**QUIET).fit(X, np.where(y > 1, "yes", "no"))
    model.set_probability_threshold(0.8)
    expected = model.predict_proba(X)[:, 1] > 0.8
    assert 0 < expected.mean() < (model.predict_proba(X)[:, 1] > 0.5).mean()
    model.save_model(tmp_path / "model.cbm")
    base = CatBoost().load_model(tmp_path / "model.cbm")
    for fitted in (model, base):
        assert (as_ruleset(fitted).predict(X) == np.where(expected, "yes", "no")).all()


def test_catboost_reader_rejects_unsupported_models(table: Any) -> None:
    X, y = table(1500, 0)
    model = CatBoostRegressor(**QUIET, one_hot_max_size=20, cat_features=NAMES).fit(X, y)
    with pytest.raises(
        ValueError, match=r"\('color', 'shop', 'floor'\) and stores only hashes of their"
    ):
        as_ruleset(model)
    with pytest.raises(ValueError, match="X lacks a category of 'color'"):
        read_catboost(model, X=X[X["color"] != "red"])
    model = CatBoostRegressor(**QUIET, loss_function="Poisson").fit(X[["floor"]], X["floor"])
    with pytest.raises(ValueError, match="loss 'Poisson', whose predictions are not a plain sum"):
        as_ruleset(model)


def test_catboost_reader_rejects_sums_of_models() -> None:
    X = np.random.default_rng(0).normal(size=(60, 2))
    model = CatBoostRegressor(**QUIET).fit(X, X[:, 0])
    with pytest.raises(ValueError, match="does not store its loss function, like a sum of models"):
        as_ruleset(sum_models([model, model.copy()]))


@pytest.mark.parametrize("complexity", [1, 2])
def test_catboost_reader_rejects_rows_in_another_form(complexity: int) -> None:
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"kind": rng.choice(["01", "02", "11"], 200), "n": rng.normal(size=200)})
    options = {"iterations": 5, "one_hot_max_size": 1, "max_ctr_complexity": complexity}
    model = CatBoostClassifier(**options, verbose=False, allow_writing_files=False)
    model.fit(X, (X["kind"] == "01") ^ (X["n"] > 0), cat_features=["kind"])
    assert (as_ruleset(model, X=X).predict(X) == model.predict(X)).all()
    with pytest.raises(ValueError, match="X lacks categories of 'kind'"):
        as_ruleset(model, X=X.astype({"kind": int}))


def test_import_command_reads_catboost_with_rows(tmp_path: Path, table: Any) -> None:
    X, y = table(300, 0)
    X = X[["age", "color"]]
    model = CatBoostRegressor(**QUIET, one_hot_max_size=9, cat_features=["color"]).fit(X, y)
    joblib.dump(model, tmp_path / "model.joblib")
    X.to_csv(tmp_path / "rows.csv", index=False)
    words = ["import", "model.joblib", "--trust", "--data", "rows.csv", "--output", "rules.json"]
    positions = [str(tmp_path / w) if "." in w else w for w in words]
    assert main(positions) == 0
    rules = RuleSet.from_json((tmp_path / "rules.json").read_text())
    assert rules.predict(X) == pytest.approx(model.predict(X), abs=1e-12)


def test_catboost_reads_categories_of_columns_that_a_pipeline_moves() -> None:
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"x": rng.normal(size=200), "color": rng.choice(["a", "b", "c"], 200)})
    y = (X["color"] == "a") + 0.3 * X["x"] > 0.5
    moved = make_column_transformer(
        ("passthrough", ["color"]), remainder="passthrough", verbose_feature_names_out=False
    ).set_output(transform="pandas")
    pipeline = make_pipeline(moved, CatBoostClassifier(cat_features=["color"], **QUIET)).fit(X, y)
    rules = as_ruleset(pipeline, X=X)
    np.testing.assert_array_equal(rules.predict(X), pipeline.predict(X))
