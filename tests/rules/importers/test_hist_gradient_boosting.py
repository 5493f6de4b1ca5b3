"""Rules of histogram-based gradient boosting, compared with the models themselves."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skescore.rules import Domain, RuleSet, as_ruleset

SMALL: dict[str, Any] = {"max_iter": 8, "max_leaf_nodes": 10, "random_state": 0}


def table(n_rows: int, seed: int) -> tuple[pd.DataFrame, pd.Series]:
    """Make a table with missing values and categories, and a target that depends on them."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "age": rng.normal(size=n_rows),
            "color": rng.choice(["red", "blue", "green", "x", "y"], n_rows),
            "size": rng.integers(0, 5, n_rows).astype(float),
        }
    )
    y = 2 * X["age"] + (X["color"] == "red") * X["size"]
    for name in ("age", "size"):
        is_missing = rng.random(n_rows) < 0.15
        X.loc[is_missing, name] = np.nan
        y[is_missing] += 1.5
    X["color"] = X["color"].astype("category").where(rng.random(n_rows) > 0.1)
    return X, y


@pytest.mark.parametrize("n_classes", [2, 3])
def test_hist_boosting_labels_equal_model(n_classes: int) -> None:
    (X, y), (rows, _) = table(1500, 0), table(10_000, 1)
    labels = pd.qcut(y, n_classes, labels=["low", "middle", "top"][:n_classes]).astype(str)
    rows["color"] = rows["color"].cat.add_categories("never seen")
    rows.loc[::40, "color"] = "never seen"
    model = HistGradientBoostingClassifier(**SMALL).fit(X, labels)
    rules = as_ruleset(model)
    assert rules.feature_names == ("age", "color", "size")
    assert (rules.predict(rows) == model.predict(rows)).all()
    few = rows[:500]
    assert rules.predict_proba(few) == pytest.approx(model.predict_proba(few), abs=1e-12)
    assert RuleSet.from_json(rules.to_json()) == rules


@pytest.mark.parametrize("loss", ["squared_error", "absolute_error"])
def test_hist_boosting_predictions_equal_model_exactly(loss: str) -> None:
    (X, y), (rows, _) = table(1500, 0), table(10_000, 1)
    model = HistGradientBoostingRegressor(**SMALL, loss=loss).fit(X, y)
    domain = Domain((-9, 0, 0), (9, 0, 4))
    rules = as_ruleset(model, domain=domain)
    assert rules.predict(rows).tolist() == model.predict(rows).tolist()
    assert rules.domain == domain


def test_hist_boosting_reads_leaves_of_missing_values() -> None:
    X = np.array([[1.0], [2.0], [np.nan]] * 30)
    model = HistGradientBoostingRegressor(max_iter=1, learning_rate=1, min_samples_leaf=5)
    rules = as_ruleset(model.fit(X, np.where(np.isnan(X[:, 0]), 9.0, 0.0)))
    assert [rule.premise_text() for rule in rules] == ["", "x0 is known", "x0 is missing"]
    assert rules.predict([[5.0], [np.nan], [-5.0]]) == pytest.approx([0, 9, 0])


def test_hist_boosting_handles_missing_values_after_training() -> None:
    (X, y), (rows, _) = table(1500, 0), table(2000, 1)
    complete = X[["age", "size"]].fillna(0.3).to_numpy()
    model = HistGradientBoostingRegressor(**SMALL).fit(complete, y)
    rows = rows[["age", "size"]].to_numpy()
    assert as_ruleset(model).predict(rows).tolist() == model.predict(rows).tolist()


def test_hist_boosting_reads_categorical_codes() -> None:
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=900), rng.choice([3.0, 7.0, 8.0, np.nan], 900)])
    y = np.where(X[:, 1] == 7, -1.0, 1.0) * X[:, 0]
    model = HistGradientBoostingRegressor(**SMALL, categorical_features=[1]).fit(X, y)
    rows = np.vstack([X, [[0.2, 4.0], [-0.2, np.nan], [0.2, 7.5]]])
    assert as_ruleset(model).predict(rows).tolist() == model.predict(rows).tolist()


def test_hist_boosting_inverts_scaler() -> None:
    X, y = table(800, 0)  # with so many values, some equal bounds of bins
    X = X[["age", "size"]] * 10 + 3
    model = make_pipeline(StandardScaler(), HistGradientBoostingRegressor(**SMALL)).fit(X, y)
    assert as_ruleset(model).predict(X) == pytest.approx(model.predict(X), abs=1e-12)


def test_hist_boosting_rejects_unsupported_models() -> None:
    X, y = np.arange(60.0).reshape(-1, 1), np.arange(60.0)
    with pytest.raises(ValueError, match=r"loss='poisson'"):
        as_ruleset(HistGradientBoostingRegressor(**SMALL, loss="poisson").fit(X, y))
    with pytest.raises(ValueError, match="feature_names must name the model's 1 features, got"):
        as_ruleset(HistGradientBoostingRegressor(**SMALL).fit(X, y), feature_names=["a", "b"])
    with pytest.raises(NotFittedError):
        as_ruleset(HistGradientBoostingRegressor())
