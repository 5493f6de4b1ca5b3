"""Rules read from the real LightGBM predict like its models, to the last row."""

from __future__ import annotations

from typing import Any

import lightgbm
import numpy as np
import pandas as pd
import pytest
from lightgbm import LGBMClassifier, LGBMRegressor
from sklearn.compose import make_column_transformer
from sklearn.pipeline import make_pipeline

from skescore.rules import RuleSet, as_ruleset
from skescore.rules.importers import options_from_rows, read_lightgbm

QUIET: dict[str, Any] = {
    "verbose": -1,
    "n_estimators": 10,
    "num_leaves": 15,
    "min_data_per_group": 5,
    "cat_smooth": 1,
    "n_jobs": 1,
}


def _name(model: Any) -> str:
    return f"{type(model).__name__} {model.boosting_type} {model.objective}"


BAGGED = {"boosting_type": "rf", "bagging_freq": 1, "bagging_fraction": 0.6}
CLASSIFIERS = [
    LGBMClassifier(**QUIET),
    LGBMClassifier(**QUIET, **BAGGED),
    LGBMClassifier(**QUIET, boosting_type="dart"),
]
REGRESSORS = [
    LGBMRegressor(**QUIET),
    LGBMRegressor(**QUIET, objective="l1"),
    LGBMRegressor(**QUIET, **BAGGED),
    LGBMRegressor(**QUIET, zero_as_missing=True),
    LGBMRegressor(**QUIET, max_cat_to_onehot=10),
]


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("model", CLASSIFIERS, ids=_name)
def test_lightgbm_labels_equal_model(model: Any, n_classes: int, ragged_table: Any) -> None:
    (X, y), (rows, _) = ragged_table(1500, 0), ragged_table(10_000, 1)
    labels = pd.qcut(y, n_classes, labels=["low", "middle", "top"][:n_classes]).astype(str)
    rows["color"] = rows["color"].cat.add_categories("never seen")
    rows.loc[::40, "color"] = "never seen"
    model.fit(X, labels)
    rules = as_ruleset(model)
    assert (rules.predict(rows) == model.predict(rows)).all()
    few = rows[:500]
    assert rules.predict_proba(few) == pytest.approx(model.predict_proba(few), abs=1e-9)
    assert RuleSet.from_json(rules.to_json()) == rules


@pytest.mark.parametrize("objective", ["multiclass", "multiclassova"])
def test_lightgbm_rules_support_one_output_per_class(objective: str, ragged_table: Any) -> None:
    X, y = ragged_table(500, 0)
    model = LGBMClassifier(**QUIET, objective=objective, num_class=2).fit(X, y > 1)
    assert (as_ruleset(model).predict(X) == model.predict(X)).all()


def test_lightgbm_probabilities_respect_sigmoid_slope(ragged_table: Any) -> None:
    X, y = ragged_table(300, 0)
    model = LGBMClassifier(**QUIET, sigmoid=3.0).fit(X, y > 1)
    assert as_ruleset(model).predict_proba(X) == pytest.approx(model.predict_proba(X), abs=1e-9)


@pytest.mark.parametrize("model", REGRESSORS, ids=_name)
def test_lightgbm_numbers_equal_model(model: Any, ragged_table: Any) -> None:
    (X, y), (rows, _) = ragged_table(1500, 0), ragged_table(10_000, 1)
    rules = as_ruleset(model.fit(X, y))
    assert rules.predict(rows) == pytest.approx(model.predict(rows), abs=1e-12)


def test_lightgbm_unseen_missing_value_counts_as_zero(ragged_table: Any) -> None:
    (X, y), (rows, _) = ragged_table(1500, 0), ragged_table(10_000, 1)
    model = LGBMRegressor(**QUIET).fit(X.fillna({"age": -0.5, "size": 1.0, "rate": 0.0}), y)
    assert as_ruleset(model).predict(rows) == pytest.approx(model.predict(rows), abs=1e-12)


def test_lightgbm_treats_zeros_as_missing_on_request() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 2))
    X[rng.random(X.shape) < 0.3] = 0.0
    y = np.where(X[:, 0] == 0, 3.0, X[:, 0]) + X[:, 1]
    model = LGBMRegressor(**QUIET, zero_as_missing=True).fit(X, y)
    rows = np.vstack([X, X * 1e-36, -X * 1e-35, np.where(X > 1, np.nan, X)])
    rules = as_ruleset(model)
    assert rules.predict(rows) == pytest.approx(model.predict(rows), abs=1e-12)
    # Some leaf contains numbers on both sides of 0, but not 0: two rules with one output.
    assert len(rules) > len({rule.output for rule in rules})


def test_lightgbm_booster_predicts_like_its_rules(ragged_table: Any) -> None:
    (X, y), (rows, _) = ragged_table(1500, 0), ragged_table(10_000, 1)
    codes = pd.qcut(y, 3, labels=[0, 1, 2]).astype(int)
    settings = {k: v for k, v in QUIET.items() if k != "n_estimators"}
    settings |= {"objective": "multiclass", "num_class": 3}
    booster = lightgbm.train(settings, lightgbm.Dataset(X, codes), num_boost_round=10)
    expected = booster.predict(rows).argmax(axis=1)
    assert (as_ruleset(booster).predict(rows) == expected).all()
    named = as_ruleset(booster, classes=["a", "b", "c"], feature_names=list("vwxyz"))
    assert (
        named.predict(rows.set_axis(list("vwxyz"), axis=1)) == np.array(list("abc"))[expected]
    ).all()
    with pytest.raises(ValueError, match="classes must list the model's 3 labels, got"):
        as_ruleset(booster, classes=["a", "b"])


def test_lightgbm_categories_parameter_names_codes(ragged_table: Any) -> None:
    X, y = ragged_table(1500, 0)
    codes = X.assign(
        color=X["color"].cat.codes.astype(float).replace(-1, np.nan),
        shop=X["shop"].cat.codes.astype(float).replace(-1, np.nan),
    )
    model = LGBMRegressor(**QUIET).fit(codes.to_numpy(), y, categorical_feature=[1, 4])
    expected = pytest.approx(model.predict(codes.to_numpy()), abs=1e-12)
    assert as_ruleset(model).predict(codes.to_numpy()) == expected
    names = {1: list(X["color"].cat.categories), "Column_4": list(X["shop"].cat.categories)}
    rules = read_lightgbm(model, categories=names)
    assert rules.predict(X.to_numpy()) == expected
    with pytest.raises(ValueError, match="categories must be keyed by features of the model"):
        read_lightgbm(model, categories={"taste": ["sweet"]})


@pytest.mark.parametrize("labels", [[10, 20, 5], ["low", "mid", "high"]])
@pytest.mark.parametrize("listed", [(), ("b",)])
def test_lightgbm_reads_ordered_categories_by_code(labels: list[Any], listed: Any) -> None:
    rng = np.random.default_rng(0)
    codes = rng.integers(-1, 3, 300)
    sizes = pd.Categorical.from_codes(codes, labels, ordered=True)
    X = pd.DataFrame({"a": sizes, "b": rng.integers(0, 3, 300), "c": rng.normal(size=300)})
    options = {"categorical_feature": list(listed)} if listed else {}
    model = LGBMRegressor(**QUIET).fit(X, (codes >= 1) + (X["b"] == 2) * 2.0, **options)
    categories = {"a": labels} | {name: [0, 1, 2] for name in listed}
    ruleset = as_ruleset(model, categories=categories)
    assert ruleset.predict(X) == pytest.approx(model.predict(X))
    if not listed:
        with pytest.raises(ValueError, match="which columns are ordered"):
            as_ruleset(model)


@pytest.mark.parametrize(
    ("labels", "n_values", "is_read"),
    [
        (["x", "y"], 5, True),  # only "a" can have two labels
        (["x", "y", "z"], 2, False),
        ([10, 20], 2, False),  # rules with the wrong numbers would be applied without an error
        ([3, 1, 2], 3, False),
    ],
)
def test_lightgbm_assigns_no_labels_to_wrong_columns(
    labels: list[Any], n_values: int, is_read: bool
) -> None:
    rng = np.random.default_rng(0)
    codes = np.append(rng.integers(0, len(labels), 298), [0, len(labels) - 1])
    X = pd.DataFrame(
        {"a": pd.Categorical.from_codes(codes, labels), "b": rng.integers(0, n_values, 300)}
    )
    y = (codes == 1) + 2.0 * (X["b"] % 3 == 1)
    model = LGBMRegressor(**QUIET).fit(X, y, categorical_feature=["b"])
    if not is_read:
        with pytest.raises(ValueError, match=r"labels belong to which column.*or categories={'b'"):
            as_ruleset(model)
    options: Any = [{"X": X}, {"categories": {"a": labels, "b": range(n_values)}}]
    for option in [*options, options_from_rows(model, X), *([{}] if is_read else [])]:
        assert as_ruleset(model, **option).predict(X) == pytest.approx(model.predict(X))
    with pytest.raises(ValueError, match="of which 1 are categorical; got 2 and 0"):
        as_ruleset(model, X=X.astype({"a": object, "b": int}).assign(a=0))


def test_lightgbm_early_stopping_limits_trees(ragged_table: Any) -> None:
    (X, y), (rows, noise) = ragged_table(1500, 0), ragged_table(1000, 1)
    model = LGBMRegressor(**QUIET | {"n_estimators": 300}, learning_rate=0.5)
    stop = lightgbm.early_stopping(3, verbose=False)
    model.fit(X, y, eval_X=(rows,), eval_y=(noise,), callbacks=[stop])
    assert model.best_iteration_ < 300
    assert as_ruleset(model).predict(rows) == pytest.approx(model.predict(rows), abs=1e-12)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"objective": "poisson"}, "objective 'poisson', whose predictions are not a plain sum"),
        ({"linear_tree": True}, r"linear functions in its leaves \(linear_tree=True\)"),
    ],
)
def test_lightgbm_reader_rejects_unsupported_models(settings: Any, message: str) -> None:
    X = np.arange(200.0).reshape(-1, 1)
    model = LGBMRegressor(**QUIET, **settings).fit(X, X[:, 0])
    with pytest.raises(ValueError, match=message):
        as_ruleset(model)


def test_lightgbm_rules_have_names_of_rows() -> None:
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(200, 2)), columns=["x (cm)", "y (cm)"])
    model = LGBMRegressor(**QUIET).fit(X, X["x (cm)"])
    assert as_ruleset(model).feature_names == ("x_(cm)", "y_(cm)")
    ruleset = as_ruleset(model, **options_from_rows(model, X))
    assert ruleset.feature_names == ("x (cm)", "y (cm)")
    assert ruleset.predict(X) == pytest.approx(model.predict(X))


@pytest.mark.parametrize(
    ("model", "predicted"),
    [
        (LGBMRegressor(objective="binary", **QUIET), "predicts shares"),
        (LGBMClassifier(objective="regression", **QUIET), "predicts labels"),
    ],
)
def test_lightgbm_reader_rejects_objectives_of_the_other_task(model: Any, predicted: str) -> None:
    X = np.random.default_rng(0).normal(size=(60, 2))
    model.fit(X, (X[:, 0] > 0).astype(int))
    with pytest.raises(ValueError, match=predicted):
        as_ruleset(model)
    assert len(as_ruleset(model.booster_)) > 1


def test_lightgbm_labels_follow_columns_that_a_pipeline_moves() -> None:
    rng = np.random.default_rng(0)
    draws = rng.integers(3, size=(200, 2))
    X = pd.DataFrame({"x": rng.normal(size=200)})
    X["one"] = pd.Categorical.from_codes(draws[:, 0], ["a", "b", "c"])
    X["two"] = pd.Categorical.from_codes(draws[:, 1], ["c", "b", "a"])
    y = (draws[:, 0] == 0) * 2 + (draws[:, 1] == 1) + 0.3 * X["x"] > 1
    moved = make_column_transformer(("passthrough", ["two"]), remainder="passthrough")
    moved = moved.set_output(transform="pandas")
    pipeline = make_pipeline(moved, LGBMClassifier(**QUIET)).fit(X, y)
    assert options_from_rows(pipeline, X).keys() == {"X"}
    for options in ({"X": X}, options_from_rows(pipeline, X)):
        rules = as_ruleset(pipeline, **options)
        np.testing.assert_array_equal(rules.predict(X), pipeline.predict(X))
