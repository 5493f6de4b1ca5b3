"""Rules read from the real XGBoost predict like its models, to the last row.

XGBoost adds float32 numbers, so that its sums are rounded at each tree.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import xgboost
from scipy.sparse import csr_matrix
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from xgboost import XGBClassifier, XGBRegressor, XGBRFClassifier, XGBRFRegressor

from skescore.rules import RuleSet, as_ruleset
from skescore.rules.importers import read_xgboost
from skescore.scorers import make_knowledge_scorer

SMALL: dict[str, Any] = {
    "n_estimators": 8,
    "max_depth": 5,
    "enable_categorical": True,
    "max_cat_to_onehot": 2,
    "n_jobs": 1,
}
DART = {"booster": "dart", "rate_drop": 0.3}
CLASSIFIERS = [
    XGBClassifier(**SMALL),
    XGBClassifier(**SMALL | {"max_cat_to_onehot": 10}, base_score=0.8),
    XGBClassifier(**SMALL, **DART),
    XGBRFClassifier(**SMALL),
]
REGRESSORS = [
    XGBRegressor(**SMALL),
    XGBRegressor(**SMALL, base_score=7.0),
    XGBRegressor(**SMALL, **DART),
    XGBRegressor(**SMALL, objective="reg:absoluteerror"),
    XGBRFRegressor(**SMALL),
]


def _name(model: Any) -> str:
    return type(model).__name__


#: Relative to the largest prediction: some dozens of roundings to float32.
TOLERANCE = 1e-5


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("model", CLASSIFIERS, ids=_name)
def test_xgboost_labels_equal_model(model: Any, n_classes: int, ragged_table: Any) -> None:
    (X, y), (rows, _) = ragged_table(1500, 0), ragged_table(10_000, 1)
    model.fit(X, pd.qcut(y, n_classes, labels=range(n_classes)).astype(int))
    rules = as_ruleset(model)
    assert (rules.predict(rows) == model.predict(rows)).all()
    few = rows[:500]
    assert rules.predict_proba(few) == pytest.approx(model.predict_proba(few), abs=TOLERANCE)
    assert RuleSet.from_json(rules.to_json()) == rules


@pytest.mark.parametrize("model", REGRESSORS, ids=_name)
def test_xgboost_numbers_equal_model(model: Any, ragged_table: Any) -> None:
    (X, y), (rows, _) = ragged_table(1500, 0), ragged_table(10_000, 1)
    expected = model.fit(X, y).predict(rows)
    difference = np.abs(as_ruleset(model).predict(rows) - expected).max()
    assert difference < TOLERANCE * np.abs(expected).max()


def test_xgboost_rules_agree_next_to_thresholds(ragged_table: Any) -> None:
    X, y = ragged_table(1500, 0)
    X = X[["age", "size", "rate"]].to_numpy()
    model = XGBRegressor(n_estimators=10, max_depth=3, n_jobs=1).fit(X, y)
    rules = as_ruleset(model)
    bounds = {b for r in rules for c in r.intervals if c.feature == 0 for b in (c.lower, c.upper)}
    rows = []
    for bound in sorted(bounds - {-np.inf, np.inf}):
        near = np.float32(bound)
        for value in (bound, float(near), float(np.nextafter(near, np.float32(9)))):
            rows += [
                [v, 2.0, np.nan] for v in (np.nextafter(value, -9), value, np.nextafter(value, 9))
            ]
    assert len(rows) > 100
    assert rules.predict(np.array(rows)) == pytest.approx(model.predict(np.array(rows)), abs=1e-5)


def test_xgboost_booster_uses_all_trees_and_models_best(ragged_table: Any) -> None:
    (X, y), (rows, truth) = ragged_table(1500, 0), ragged_table(1000, 1)
    model = XGBRegressor(
        **SMALL | {"n_estimators": 200}, early_stopping_rounds=3, learning_rate=0.7
    )
    model.fit(X, y, eval_set=[(rows, truth)], verbose=False)
    booster = model.get_booster()
    assert model.best_iteration + 1 < booster.num_boosted_rounds()
    assert as_ruleset(model).predict(rows) == pytest.approx(model.predict(rows), abs=1e-4)
    expected = booster.predict(xgboost.DMatrix(rows, enable_categorical=True))
    assert as_ruleset(booster).predict(rows) == pytest.approx(expected, abs=1e-4)


def test_xgboost_booster_accepts_names_of_classes(ragged_table: Any) -> None:
    (X, y), (rows, _) = ragged_table(1500, 0), ragged_table(2000, 1)
    booster = XGBClassifier(**SMALL).fit(X, (y > 1).astype(int)).get_booster()
    expected = booster.predict(xgboost.DMatrix(rows, enable_categorical=True)) > 0.5
    assert (as_ruleset(booster).predict(rows) == expected).all()
    named = read_xgboost(booster, classes=["no", "yes"])
    assert (named.predict(rows) == np.where(expected, "yes", "no")).all()
    with pytest.raises(ValueError, match="classes must list the model's 2 labels, got"):
        read_xgboost(booster, classes=["no", "yes", "perhaps"])


def test_xgboost_rules_support_one_output_per_class(ragged_table: Any) -> None:
    X, y = ragged_table(500, 0)
    rows = xgboost.DMatrix(X, (y > 1).astype(int), enable_categorical=True)
    booster = xgboost.train({"objective": "multi:softmax", "num_class": 2, "nthread": 1}, rows, 5)
    assert (as_ruleset(booster).predict(X) == booster.predict(rows)).all()


@pytest.mark.parametrize("labels", [[10, 20, 30, 40, 50], ["a", "", "longer text", "b", "c"]])
def test_xgboost_rules_support_categories_of_other_types(labels: Any, ragged_table: Any) -> None:
    X, y = ragged_table(1500, 0)
    codes = X["color"].cat.codes.to_numpy()
    X["color"] = pd.Categorical.from_codes(codes, pd.Index(labels))
    model = XGBRegressor(**SMALL).fit(X, y)
    assert as_ruleset(model).predict(X) == pytest.approx(model.predict(X), abs=1e-4)


def test_xgboost_garbled_labels_need_categories(ragged_table: Any) -> None:
    X, y = ragged_table(1500, 0)
    labels = ["grün", "rot", "weiß", "blau", "schwarz"]
    X["color"] = pd.Categorical.from_codes(X["color"].cat.codes.to_numpy(), labels)
    model = XGBRegressor(**SMALL).fit(X, y)
    with pytest.raises(ValueError, match=r"stores wrong offsets .*pass categories=\{'color': \["):
        as_ruleset(model)
    rules = as_ruleset(model, categories={"color": labels})
    assert rules.predict(X) == pytest.approx(model.predict(X), abs=1e-4)


def test_xgboost_codes_of_arrays_are_categories(ragged_table: Any) -> None:
    X, y = ragged_table(1500, 0)
    codes = X[["age", "color"]].assign(color=X["color"].cat.codes.replace(-1, np.nan)).to_numpy()
    model = XGBRegressor(**SMALL, feature_types=["q", "c"]).fit(codes, y)
    rows = np.vstack([codes, [[0.5, 77.0], [np.nan, np.nan]]])
    assert as_ruleset(model).predict(rows) == pytest.approx(model.predict(rows), abs=1e-4)
    named = xgboost.DMatrix(codes, y, feature_names=["a", "b"], feature_types=["q", "c"])
    booster = xgboost.train({"max_cat_to_onehot": 2}, named, num_boost_round=5)
    with pytest.raises(ValueError, match=r"only the codes of categories: pass categories=\{'b': "):
        as_ruleset(booster)
    rules = as_ruleset(booster, categories={"b": X["color"].cat.categories})
    frame = X[["age", "color"]].set_axis(["a", "b"], axis=1)
    assert rules.predict(frame) == pytest.approx(booster.predict(named), abs=1e-4)


@pytest.mark.parametrize("categories", [["m", "c", "x"], [20, 10, 40]])
@pytest.mark.parametrize("most", [1, 10])
def test_xgboost_unseen_categories_equal_no_other(categories: list[Any], most: int) -> None:
    """In a frame, XGBoost 3 reads an unseen category as the next larger one, or fails."""
    rng = np.random.default_rng(0)
    codes, number = rng.integers(0, 3, 300), rng.normal(size=300)
    y = np.array([1.0, 20.0, 300.0])[codes] + number
    settings = SMALL | {"max_cat_to_onehot": most}
    on_codes = XGBRegressor(**settings, feature_types=["c", "q"])
    on_codes.fit(np.column_stack([codes, number]), y)
    frame = pd.DataFrame({"c": pd.Categorical.from_codes(codes, pd.Index(categories)), "x": number})
    rules = as_ruleset(XGBRegressor(**settings).fit(frame, y))
    unseen = np.column_stack([np.full(300, 77), number])
    assert as_ruleset(on_codes).predict(unseen) == pytest.approx(on_codes.predict(unseen), rel=1e-5)
    for category in ("d", "zz") if isinstance(categories[0], str) else (15, 99):
        rows = frame.assign(c=pd.Series([category] * 300, dtype=object))
        assert rules.predict(rows) == pytest.approx(on_codes.predict(unseen), rel=1e-5)


def test_xgboost_reader_rejects_unsupported_models() -> None:
    X = np.arange(200.0).reshape(-1, 1)
    y = X[:, 0] % 7
    with pytest.raises(
        ValueError, match="objective 'count:poisson', whose predictions are not a plain"
    ):
        as_ruleset(XGBRegressor(n_estimators=2, objective="count:poisson").fit(X, y))
    with pytest.raises(ValueError, match="booster 'gblinear', which has no trees"):
        as_ruleset(XGBRegressor(n_estimators=2, booster="gblinear").fit(X, y))
    with pytest.raises(ValueError, match=r"treats -1 as a missing value"):
        as_ruleset(XGBRegressor(n_estimators=2, missing=-1).fit(X, y))
    with pytest.raises(ValueError, match="2 outputs, but rules have one"):
        as_ruleset(XGBRegressor(n_estimators=2).fit(X, np.column_stack([y, y])))
    with pytest.raises(NotFittedError):
        as_ruleset(XGBRegressor())


@pytest.mark.parametrize(
    ("model", "predicted"),
    [
        (XGBRegressor(objective="binary:logistic"), "predicts shares"),
        (XGBRFRegressor(objective="binary:hinge"), "predicts shares"),
        (XGBClassifier(objective="reg:squarederror"), "predicts labels"),
    ],
)
def test_xgboost_reader_rejects_objectives_of_the_other_task(model: Any, predicted: str) -> None:
    X = np.random.default_rng(0).normal(size=(60, 2))
    model.set_params(n_estimators=2, n_jobs=1).fit(X, (X[:, 0] > 0).astype(int))
    with pytest.raises(ValueError, match=predicted):
        as_ruleset(model)
    assert len(as_ruleset(model.get_booster())) > 1


def test_scorer_rejects_sparse_rows_of_xgboost() -> None:
    X, y = csr_matrix(np.eye(8)), np.arange(8) % 2
    model = XGBClassifier(n_estimators=1, n_jobs=1).fit(X, y)
    with pytest.raises(ValueError, match="absent entries are missing values for XGBoost"):
        make_knowledge_scorer()(model, X, y)


@pytest.mark.parametrize("is_sparse", [False, True])
def test_rules_on_one_hot_columns_refuse_absent_entries(is_sparse):
    X = pd.DataFrame({"color": ["red", "green", "blue", "white"] * 25})
    y = X["color"].isin(["red", "white"]).astype(int)
    encoder = OneHotEncoder(sparse_output=is_sparse)
    pipeline = make_pipeline(encoder, xgboost.XGBClassifier(n_estimators=3)).fit(X, y)
    if is_sparse:
        with pytest.raises(ValueError, match="absent entries are missing values for XGBoost"):
            as_ruleset(pipeline)
    else:
        rules = as_ruleset(pipeline)
        assert np.allclose(rules.predict_proba(X), pipeline.predict_proba(X), atol=1e-6)
