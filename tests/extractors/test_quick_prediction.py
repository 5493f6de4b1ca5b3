"""Shortcuts for forests: the oracle returns the same as `predict`."""

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder

from skescore.black_boxes import make_black_box
from skescore.extractors import CachedBlackBox, Oracle


def _table(n_rows, seed, *, gaps=0.1):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "town": rng.choice(["Bari", "Bonn", "Brno", "Como"], n_rows),
            "age": rng.integers(18, 80, n_rows),
            "fee": rng.normal(size=n_rows),
            "paid": rng.random(n_rows) < 0.5,
        }
    )
    X["town"] = X["town"].mask(rng.random(n_rows) < gaps)
    X["fee"] = X["fee"].mask(rng.random(n_rows) < gaps)
    return X


def _target(X):
    return np.where((X["town"] == "Bonn") ^ (X["fee"] > 0.3), "yes", "no"), X["age"] * X["paid"]


def _unseen(seed):
    X = _table(200, seed, gaps=0.3)
    X.loc[::7, "town"] = "Oslo"
    return X


@pytest.mark.parametrize("kind", ["classification", "regression"])
@pytest.mark.parametrize("name", ["random-forest", "hist-gradient-boosting"])
def test_oracle_equals_built_in_black_boxes_on_unseen_values(name, kind):
    X = _table(200, 0)
    y = _target(X)[kind == "regression"]
    params = {} if name.startswith("hist") else {"n_estimators": 12}
    model = make_black_box(name, kind, 0, ["town", "paid"], params=params).fit(X, y)
    for rows in (X, _unseen(1), X.iloc[:1], X[["paid", "fee", "age", "town"]]):
        expected = model.predict(rows[list(X.columns)])
        for result in (Oracle(model).query(rows), Oracle(CachedBlackBox(model)).query(rows)):
            np.testing.assert_array_equal(result, expected)
            assert result.dtype == expected.dtype


@pytest.mark.parametrize(
    "forest",
    [
        RandomForestClassifier(9, random_state=0),
        RandomForestClassifier(9, random_state=0, n_jobs=2),
        RandomForestClassifier(1, criterion="entropy", max_depth=2, random_state=0),
        ExtraTreesClassifier(9, random_state=0),
        RandomForestRegressor(9, random_state=0),
        ExtraTreesRegressor(9, criterion="absolute_error", random_state=0),
        GradientBoostingClassifier(n_estimators=3, random_state=0),
    ],
)
@pytest.mark.parametrize("container", [np.asarray, pd.DataFrame])
def test_oracle_equals_forests_on_numbers(forest, container):
    rng = np.random.default_rng(0)
    X, new = (container(rng.normal(size=(n, 3)).round(2)) for n in (150, 300))
    if isinstance(X, pd.DataFrame):
        X.columns = new.columns = ["a", "b", "c"]
    y = np.asarray(X)[:, 0] + np.asarray(X)[:, 1] ** 2
    fitted = forest.fit(X, y > 0.5 if hasattr(forest, "predict_proba") else y)
    for model in (fitted, FrozenEstimator(fitted)):
        np.testing.assert_array_equal(Oracle(model).query(new), fitted.predict(new))


@pytest.mark.filterwarnings("ignore:Found unknown categories")
@pytest.mark.parametrize(
    "encoder",
    [
        OneHotEncoder(handle_unknown="ignore"),
        OneHotEncoder(handle_unknown="ignore", drop="if_binary"),
        OneHotEncoder(handle_unknown="ignore", min_frequency=60),
        OneHotEncoder(handle_unknown="infrequent_if_exist", max_categories=3),
        OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1),
    ],
)
def test_oracle_equals_forests_behind_custom_encoders(encoder):
    X = _table(200, 0)
    some = make_column_transformer(
        (encoder, ["town", "paid"]), ("passthrough", [1]), verbose_feature_names_out=False
    )
    model = make_pipeline(some, RandomForestClassifier(9, random_state=0)).fit(X, _target(X)[0])
    rows = _unseen(2)
    np.testing.assert_array_equal(Oracle(model).query(rows), model.predict(rows))


@pytest.mark.parametrize("gaps", [(None, np.nan), (None, None), (np.nan, np.nan)])
@pytest.mark.parametrize("dtype", [object, "category"])
def test_oracle_keeps_kinds_of_missing_text_distinct(gaps, dtype):
    towns = [pd.Series(["a", gap, "b", np.nan] * 30, dtype=dtype) for gap in (*gaps, None, pd.NA)]
    encoder = make_column_transformer((OneHotEncoder(handle_unknown="ignore"), ["town"]))
    model = make_pipeline(encoder, RandomForestClassifier(5, random_state=0))
    model.fit(pd.DataFrame({"town": towns[0]}), np.tile([0, 1, 2, 3], 30))
    for town in towns[1:]:
        X = pd.DataFrame({"town": town})
        try:
            expected = model.predict(X)
        except (TypeError, ValueError):
            with pytest.raises(ValueError, match="failed: "):
                Oracle(model).query(X)
        else:
            np.testing.assert_array_equal(Oracle(model).query(X), expected)


def test_oracle_keeps_errors_of_forests():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 2))
    forest = RandomForestClassifier(3, random_state=0).fit(X, X[:, 0] > 0)
    with pytest.raises(ValueError, match="infinity"):
        Oracle(forest).query(np.array([[np.inf, 1.0]]))
    with pytest.raises(ValueError, match="features"):
        Oracle(forest).query(X[:, :1])


def test_oracle_follows_refitted_forest():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 2))
    forest = RandomForestRegressor(3, random_state=0).fit(X, X[:, 0])
    oracle = Oracle(forest)
    before = oracle.query(X, cache=False)
    forest.fit(X, -X[:, 0])
    after = oracle.query(X, cache=False)
    np.testing.assert_array_equal(after, forest.predict(X))
    assert not np.array_equal(before, after)
