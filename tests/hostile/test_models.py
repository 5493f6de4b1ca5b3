"""Rules of models of other libraries predict like them for all objectives and rows."""

from __future__ import annotations

import contextlib
import importlib.util
import math
import warnings
from collections import Counter

import numpy as np
import pandas as pd
import pytest
from attempts import pick
from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from skescore.rules import as_ruleset

SINGLE = float(np.finfo(np.float32).max)
EXTREMES = [0.0, 5e-324, 1e-46, 1e-45, 1.2e-38, 1e-35, 1e-30, 1.0, 1e30, 3.4e38, SINGLE]
BEYOND = [SINGLE * (1 + 2.0**-25), SINGLE * (1 + 2.0**-24), 3.5e38, 1e200, 1.7e308, math.inf]
COLORS = ["red", "blue", "it's", "", "日本", "1"]


def sizes(rng):
    return {"n_estimators": int(rng.integers(1, 6)), "random_state": int(rng.integers(99))}


def xgboost_model(rng, task):
    import xgboost

    objectives = {
        "binary": ["binary:logistic", "binary:logitraw", "binary:hinge"],
        "classes": ["multi:softprob", "multi:softmax"],
        "numbers": [
            "reg:squarederror",
            "reg:absoluteerror",
            "reg:pseudohubererror",
            "reg:quantileerror",
        ],
    }
    objective = pick(rng, objectives[task])
    kinds = {"gbtree": "XGB", "dart": "XGB", "forest": "XGBRF"}
    kind = pick(rng, list(kinds))
    settings = {"quantile_alpha": 0.3} if objective == "reg:quantileerror" else {}
    if kind == "dart":
        settings |= {"booster": "dart", "rate_drop": 0.4}
    cls = getattr(xgboost, kinds[kind] + ("Regressor" if task == "numbers" else "Classifier"))
    return cls(
        objective=objective,
        max_depth=int(rng.integers(1, 5)),
        enable_categorical=True,
        max_cat_to_onehot=pick(rng, [1, 4, 100]),
        base_score=pick(rng, [None, 0.3]),
        tree_method=pick(rng, ["hist", "approx"]),
        n_jobs=1,
        **settings,
        **sizes(rng),
    )


def lightgbm_model(rng, task):
    import lightgbm

    objectives = {
        "binary": ["binary", "cross_entropy"],
        "classes": ["multiclass", "multiclassova"],
        "numbers": ["regression", "regression_l1", "huber", "fair", "quantile", "mape"],
    }
    cls = lightgbm.LGBMRegressor if task == "numbers" else lightgbm.LGBMClassifier
    return cls(
        objective=pick(rng, objectives[task][: 1 if task == "binary" else None]),
        boosting_type=pick(rng, ["gbdt", "rf", "dart"]),
        num_leaves=int(rng.integers(2, 12)),
        min_child_samples=int(rng.integers(1, 6)),
        min_data_per_group=2,
        max_cat_to_onehot=pick(rng, [1, 4]),
        zero_as_missing=bool(rng.random() < 0.2),
        use_missing=bool(rng.random() < 0.9),
        subsample=0.7,
        subsample_freq=1,
        n_jobs=1,
        verbose=-1,
        **sizes(rng),
    )


def catboost_model(rng, task):
    import catboost

    losses = {
        "binary": ["Logloss", "CrossEntropy"],
        "classes": ["MultiClass", "MultiClassOneVsAll"],
        "numbers": ["RMSE", "MAE", "Quantile", "MAPE", "Huber:delta=1.0", "Expectile"],
    }
    cls = catboost.CatBoostRegressor if task == "numbers" else catboost.CatBoostClassifier
    return cls(
        loss_function=pick(rng, losses[task]),
        depth=int(rng.integers(1, 4)),
        nan_mode=pick(rng, ["Min", "Max"]),
        grow_policy=pick(rng, ["SymmetricTree", "Depthwise", "Lossguide"]),
        one_hot_max_size=pick(rng, [2, 10]),
        max_ctr_complexity=1,
        thread_count=1,
        verbose=False,
        allow_writing_files=False,
        **sizes(rng),
    )


def histogram_model(rng, task):
    cls = HistGradientBoostingRegressor if task == "numbers" else HistGradientBoostingClassifier
    losses = ["squared_error", "absolute_error", "quantile"] if task == "numbers" else ["log_loss"]
    loss = pick(rng, losses)
    return cls(
        loss=loss,
        max_iter=int(rng.integers(1, 6)),
        max_leaf_nodes=int(rng.integers(2, 9)),
        min_samples_leaf=int(rng.integers(1, 8)),
        early_stopping=False,
        categorical_features="from_dtype",
        **({"quantile": 0.3} if loss == "quantile" else {}),
    )


def forest_model(rng, task):
    numeric = [
        ExtraTreesRegressor,
        RandomForestRegressor,
        GradientBoostingRegressor,
        DecisionTreeRegressor,
    ]
    classes = [
        ExtraTreesClassifier,
        RandomForestClassifier,
        GradientBoostingClassifier,
        DecisionTreeClassifier,
    ]
    cls = pick(rng, numeric if task == "numbers" else classes)
    settings = {"max_depth": int(rng.integers(1, 5)), **sizes(rng)}
    if cls in (DecisionTreeClassifier, DecisionTreeRegressor):
        settings.pop("n_estimators")
    return cls(**settings)


#: Functions that draw a model, whether it takes missing values and categories, and its rounding.
LIBRARIES = {
    "xgboost": (xgboost_model, True, True, 2e-6),
    "lightgbm": (lightgbm_model, True, True, 1e-9),
    "catboost": (catboost_model, True, True, 1e-9),
    "histograms": (histogram_model, True, True, 1e-9),
    "forests": (forest_model, False, False, 1e-9),
}


def training_rows(rng, takes_gaps, takes_categories):
    n = int(rng.integers(20, 90))
    columns = {}
    for j in range(int(rng.integers(1, 4))):
        values = rng.normal(size=n) * pick(rng, [1.0, 1.0, 1e-30, 1e30])
        if rng.random() < 0.4:
            values = rng.integers(-2, 3, n).astype(float)
        if rng.random() < 0.2:
            values[rng.integers(n, size=3)] = pick(rng, EXTREMES[:-1])
        if takes_gaps and rng.random() < 0.5:
            values[rng.random(n) < 0.3] = np.nan
        columns[f"x{j}"] = values
    if takes_categories and rng.random() < 0.6:
        values = rng.integers(0, int(rng.integers(2, 7)), n)
        codes = np.unique(values, return_inverse=True)[1]
        if rng.random() < 0.4:
            codes[rng.random(n) < 0.2] = -1
        labels = pick(rng, [["red", "blue", "b", "it", "x", "1"], [10, 20, 5, 7, 1, 2]])
        columns["color"] = pd.Categorical.from_codes(codes, labels[: max(codes) + 1])
    return pd.DataFrame(columns)


def labels_of(rng, X, task):
    signal = sum(
        (
            np.nan_to_num(X[name] / (np.nanmax(np.abs(X[name])) or 1.0))
            for name in X
            if name != "color"
        ),
        start=np.zeros(len(X)),
    )
    if "color" in X:
        signal = signal + X["color"].cat.codes.to_numpy() % 2
    signal = signal + rng.normal(size=len(X)) * 0.2
    if task == "numbers":
        return signal * pick(rng, [1.0, 1e-3, 1e6])
    n_classes = 2 if task == "binary" else 3
    ranks = pd.Series(signal).rank(method="first").to_numpy() - 1
    codes = (ranks * n_classes // len(X)).astype(int)
    return np.array(pick(rng, [["no", "yes", "it's"], [0, 1, 2]]))[codes]


def probing_rows(rng, X, ruleset, library):
    """Return rows at and next to all bounds, extreme, incomplete and with unseen categories."""
    rows = [X]
    for j, name in enumerate(ruleset.feature_names):
        if name == "color" or name not in X:
            continue
        bounds = {
            b for r in ruleset for c in r.intervals if c.feature == j for b in (c.lower, c.upper)
        }
        bounds = [b for b in bounds if math.isfinite(b)]
        values = [
            v for b in bounds[:25] for v in (np.nextafter(b, -9e307), b, np.nextafter(b, 9e307))
        ]
        extremes = EXTREMES + ([] if library in ("xgboost", "forests") else BEYOND)
        values += [sign * v for v in extremes for sign in (1, -1)]
        if library != "forests":
            values.append(np.nan)
        probes = X.iloc[rng.integers(len(X), size=len(values))].copy()
        probes[name] = values
        rows.append(probes)
    if "color" in X and library in ("lightgbm", "histograms", "catboost"):
        categories = list(X["color"].cat.categories)
        unseen = X.copy()
        new = "unseen" if isinstance(categories[0], str) else 77
        unseen["color"] = pd.Categorical([new] * len(X), [*categories, new])
        for part in rows:
            part["color"] = part["color"].cat.set_categories([*categories, new])
        rows.append(unseen)
    return pd.concat(rows, ignore_index=True)


def for_catboost(X):
    if "color" not in X:
        return X
    texts = X["color"].astype(object).where(X["color"].notna(), "missing").astype(str)
    return X.assign(color=texts.astype(object))


def check_model(rng, library, results):
    draw, takes_gaps, takes_categories, tolerance = LIBRARIES[library]
    task = pick(rng, ["binary", "classes", "numbers"])
    X = training_rows(rng, takes_gaps, takes_categories)
    y = labels_of(rng, X, task)
    model = draw(rng, task)
    if library == "xgboost" and task != "numbers":
        y = pd.factorize(y, sort=True)[0]
    options = {}
    if library == "catboost":
        X = for_catboost(X)
        options = {"cat_features": ["color"]} if "color" in X else {}
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            model.fit(X, y, **options)
        except Exception:
            results["not fitted"] += 1
            return
        try:
            ruleset = as_ruleset(model, **({"X": X} if library == "catboost" else {}))
        except ValueError:
            results["refused"] += 1
            return
        if library == "catboost":
            restored = X.assign(color=X["color"].astype("category")) if "color" in X else X
            rows = for_catboost(probing_rows(rng, restored, ruleset, library))
        else:
            rows = probing_rows(rng, X, ruleset, library)
        expected = np.asarray(model.predict(rows)).ravel()
        answers = np.asarray(ruleset.predict(rows))
    results["compared"] += 1
    results["rows"] += len(rows)
    if task == "numbers":
        size = np.abs(expected).max() + sum(
            max(abs(float(r.output)), 0.0) for r in ruleset if np.isscalar(r.output)
        )
        wrong = np.abs(answers - expected) > tolerance * max(float(size), 1e-300)
    else:
        wrong = answers.astype(str) != expected.astype(str)
        if wrong.any() and hasattr(model, "predict_proba"):
            with contextlib.suppress(Exception):
                top = np.sort(model.predict_proba(rows), axis=1)
                wrong &= top[:, -1] - top[:, -2] > 10 * tolerance
    assert not wrong.any(), (
        model,
        rows[wrong].head(3).to_dict("list"),
        expected[wrong][:3],
        answers[wrong][:3],
        str(ruleset)[:3000],
    )


NAMES = [
    "histograms",
    "forests",
    *(pytest.param(name, marks=pytest.mark.engine) for name in ("xgboost", "lightgbm", "catboost")),
]


@pytest.mark.parametrize("library", NAMES)
def test_rules_predict_like_their_model(library, attack):
    if library not in ("histograms", "forests") and not importlib.util.find_spec(library):
        pytest.skip(f"{library} is not installed")
    results = Counter()
    attack(lambda rng: check_model(rng, library, results), 6)
    print(f"{library}: {dict(results)}")
    assert results["compared"] >= 2 * (results["refused"] + results["not fitted"])
