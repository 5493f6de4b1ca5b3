"""Arena methods that read rules themselves: the rules predict like their libraries."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer, load_iris

from skescore.bench import read_methods

METHODS = Path(__file__).parents[2] / "benchmarks" / "arena" / "methods"


def learn(file, label, X, y):
    methods = {entry["label"]: entry["extractor"] for entry in read_methods(METHODS / file)}
    return methods[label].learner["classification"](X, y, 0)


def plain(data):
    X, y = data(return_X_y=True)
    # ruleopt computes in single precision
    X = pd.DataFrame(X.astype(np.float32).astype(float))
    return X.set_axis([f"x{j}" for j in range(X.shape[1])], axis=1), y


def test_ripper_method_predicts_like_wittgenstein():
    wittgenstein = pytest.importorskip("wittgenstein")
    X, y = plain(load_breast_cancer)
    rules = learn("wittgenstein.py", "wittgenstein RIPPER", X[::2], y[::2])
    model = wittgenstein.RIPPER(random_state=0)
    model.fit(X[::2], y=y[::2], pos_class=0)
    assert len(rules) == len(model.ruleset_.rules) + 1  # and the default
    assert not rules.rules[-1].conditions
    own = np.where(model.predict(X[1::2]), 0, 1)
    assert np.asarray(rules.predict(X[1::2].to_numpy())).tolist() == own.tolist()
    X, y = plain(load_iris)
    with pytest.raises(ValueError, match="for two classes"):
        learn("wittgenstein.py", "wittgenstein RIPPER", X, y)


@pytest.mark.parametrize("data", [load_iris, load_breast_cancer])
def test_rug_method_predicts_like_ruleopt(data):
    ruleopt = pytest.importorskip("ruleopt")
    solver = pytest.importorskip("ruleopt.solver").HiGHSSolver()
    X, y = plain(data)
    rules = learn("ruleopt.py", "ruleopt RUG", X[::2], y[::2])
    model = ruleopt.RUGClassifier(solver=solver, random_state=0)
    model.fit(X[::2].to_numpy(dtype=np.float32), y[::2])
    own_predictions = model.predict(X[1::2].to_numpy(dtype=np.float32).copy())
    assert np.asarray(rules.predict(X[1::2].to_numpy())).tolist() == own_predictions.tolist()


@pytest.mark.parametrize("data", [load_iris, load_breast_cancer])
def test_scored_rules_predict_like_scoredrulesets(data):
    scoredrulesets = pytest.importorskip("scoredrulesets")
    X, y = plain(data)
    rules = learn("scoredrulesets.py", "scoredrulesets RuleGP", X[::2], y[::2])
    model = scoredrulesets.RuleGPClassifier(feature_names=list(X.columns), random_state=0)
    model.fit(X[::2].to_numpy(), y[::2])
    assert len(rules) == len(model.to_ruleset().rules)
    own_predictions = model.predict(X.to_numpy())
    assert np.asarray(rules.predict(X.to_numpy())).tolist() == own_predictions.tolist()


def test_ruleset_method_predicts_like_iguanas():
    iguanas = pytest.importorskip("iguanas.ruleset_classifier")
    polars = pytest.importorskip("polars")
    xgboost = pytest.importorskip("xgboost")
    X, y = plain(load_breast_cancer)
    rules = learn("iguanas.py", "iguanas", X[::2], y[::2])
    trees = xgboost.XGBClassifier(max_depth=2, n_estimators=5, random_state=0)
    model = iguanas.RulesetClassifier(estimator=trees)
    model.fit(polars.DataFrame(X[::2].to_dict("list")), polars.Series("y", (y[::2] == 0) * 1))
    is_rare = np.asarray(model.predict(polars.DataFrame(X[1::2].to_dict("list")))).ravel()
    own_predictions = np.where(is_rare, 0, 1)
    assert np.asarray(rules.predict(X[1::2].to_numpy())).tolist() == own_predictions.tolist()


@pytest.mark.parametrize("data", [load_iris, load_breast_cancer])
def test_tree_method_predicts_like_praxis(data):
    praxis = pytest.importorskip("praxis")
    X, y = plain(data)
    rules = learn("tree_praxis.py", "tree-praxis", X[::2], y[::2])
    binarizer = praxis.ThresholdGuessBinarizer(column_elimination=False, random_state=0)
    model = praxis.PRAXIS()
    model.fit(binarizer.fit_transform(X[::2].to_numpy(), y[::2]), y[::2], rashomon_mult=0.0)
    own_predictions = model.get_predictions(0, binarizer.transform(X[1::2].to_numpy()))
    assert np.asarray(rules.predict(X[1::2].to_numpy())).tolist() == own_predictions.tolist()
