"""Rules of explainable boosting machines predict as the models do, also on the edges of bins."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine

from skescore import as_ruleset
from skescore.scorers import evaluate_rules

glassbox = pytest.importorskip("interpret.glassbox")
pytestmark = pytest.mark.filterwarnings("ignore")
SETTINGS = {"random_state": 0, "outer_bags": 2, "max_rounds": 60, "n_jobs": 1}


def edge_rows(model, X):
    """Return rows on, below and above the edges of bins, missing values and unseen categories."""
    rng = np.random.default_rng(0)
    rows = X.sample(400, replace=True, random_state=0).reset_index(drop=True)
    for bins, name in zip((b[0] for b in model.bins_), rows, strict=True):
        if isinstance(bins, dict):
            rows[name] = rng.choice([*bins, "unseen"], len(rows)).astype(object)
            rows.loc[::5, name] = None
        elif len(bins):
            near = [bins, np.nextafter(bins, np.inf), np.nextafter(bins, -np.inf)]
            rows[name] = rng.choice(np.concatenate([*near, [np.nan]]), len(rows))
    return rows


def test_ebm_rules_predict_numbers_like_model():
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    model = glassbox.ExplainableBoostingRegressor(interactions=2, **SETTINGS).fit(X, y)
    rules = as_ruleset(model)
    assert rules.voting == "sum"
    for rows in (X, edge_rows(model, X)):
        np.testing.assert_allclose(rules.predict(rows), model.predict(rows), rtol=1e-13)


@pytest.mark.parametrize("load", [load_breast_cancer, load_wine])
def test_ebm_rules_predict_classes_like_model(load):
    X, y = load(return_X_y=True, as_frame=True)
    X = X.iloc[:, :5].copy()
    X["range"] = pd.cut(X.iloc[:, 0], 4, labels=list("abcd")).astype(object)
    X.iloc[::7, 1] = np.nan
    interactions = 2 if y.nunique() == 2 else 0
    model = glassbox.ExplainableBoostingClassifier(interactions=interactions, **SETTINGS)
    model.fit(X, y.map(str))
    rules = as_ruleset(model)
    for rows in (X, edge_rows(model, X)):
        np.testing.assert_array_equal(rules.predict(rows), model.predict(rows))
        np.testing.assert_allclose(rules.predict_proba(rows), model.predict_proba(rows), rtol=1e-12)


def test_ebm_reader_rejects_other_links():
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    model = glassbox.ExplainableBoostingRegressor(
        objective="poisson_deviance", interactions=0, **SETTINGS
    ).fit(X, y)
    with pytest.raises(ValueError, match="has the link 'log'"):
        as_ruleset(model)


@pytest.mark.parametrize(
    "values",
    [
        [0, 1, 2],
        [0.5, 1.0, -2.25],
        [True, False],
        [10**16, 10**16 + 1],
        ["0", "1", "2"],
        ["01", "1", "x"],
        [1, 2, "x"],
    ],
    ids=str,
)
def test_ebm_rules_compare_nominal_features_by_value(values):
    rng = np.random.default_rng(0)
    index = rng.integers(len(values), size=80)
    X = pd.DataFrame({"a": rng.normal(size=80), "code": [values[i] for i in index]})
    settings = {**SETTINGS, "max_rounds": 10, "feature_types": ["continuous", "nominal"]}
    model = glassbox.ExplainableBoostingRegressor(interactions=1, **settings).fit(X, index)
    rules = as_ruleset(model, X=X)
    np.testing.assert_allclose(rules.predict(X), model.predict(X), rtol=1e-12)
    predict = {}
    exec(rules.to_python(), predict)
    rows = [predict["predict"](row) for row in X.to_dict("records")]
    np.testing.assert_allclose(rows, model.predict(X), rtol=1e-12)


def test_ebm_reader_requires_rows_for_nominal_numbers():
    X = pd.DataFrame({"code": np.arange(60) % 3})
    settings = {**SETTINGS, "max_rounds": 10, "feature_types": ["nominal"]}
    model = glassbox.ExplainableBoostingRegressor(interactions=0, **settings)
    model.fit(X, X["code"] ** 2 % 3)
    with pytest.raises(ValueError, match=r"categories of 'code' as texts .* as_ruleset\(model, X"):
        as_ruleset(model)
    assert evaluate_rules(model, X, model.predict(X)).loss("mean_squared_error", "ignore") < 1e-20
