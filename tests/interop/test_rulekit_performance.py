"""Measures of predictions compared with the real RuleKit, also weighted, on other data."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
from jpype import JClass
from rulekit._helpers import ExampleSetFactory
from rulekit._problem_types import ProblemType
from rulekit.classification import RuleClassifier
from rulekit.regression import RuleRegressor
from sklearn.datasets import load_breast_cancer, load_wine, make_friedman1

from skescore.metrics import (
    PERFORMANCE_METRICS,
    characteristics,
    performance_value,
)
from skescore.rules import as_ruleset

CLOSE = {"rel": 1e-9, "abs": 1e-12}
DATA = ("cancer", "wine", "friedman")
OUR_NAMES = {metric.rulekit_name or name: name for name, metric in PERFORMANCE_METRICS.items()}


@cache
def data(name: str) -> tuple[pd.DataFrame, pd.Series]:
    if name == "friedman":
        X, y = make_friedman1(120, n_features=6, noise=1.0, random_state=1)
        return pd.DataFrame(X, columns=list("abcdef")), pd.Series(y, name="number")
    load = load_breast_cancer if name == "cancer" else load_wine
    bunch = load(as_frame=True)
    X = bunch.data.rename(columns=lambda column: column.replace(" ", "_").replace("/", "_"))
    return X, bunch.target.map(dict(enumerate(map(str, bunch.target_names)))).rename("kind")


@cache
def fitted(name: str) -> Any:
    learner = RuleRegressor if name == "friedman" else RuleClassifier
    return learner(max_rule_count=3, minsupp_new=0.2).fit(*data(name))


def mixed_rows(name: str) -> tuple[pd.DataFrame, pd.Series]:
    """Return values of different rows, so that rules err, contradict each other or do not hold."""
    X, y = data(name)
    rng = np.random.default_rng(4)
    rows = {column: rng.choice(X[column].to_numpy(), 300) for column in X.columns}
    return pd.DataFrame(rows), pd.Series(np.resize(y, 300), name=y.name)


def engine(
    name: str, X: pd.DataFrame, y: pd.Series, weights: np.ndarray | None = None
) -> tuple[dict[str, float], str]:
    """Return the measures of the engine for its predictions, and the label it treats as positive.

    Python has no other access to this counter or to weights.
    """
    model = fitted(name).model._java_object  # this starts the engine
    kind = ProblemType.REGRESSION if name == "friedman" else ProblemType.CLASSIFICATION
    if weights is None:
        examples = ExampleSetFactory(kind).make(X, y)
    else:
        examples = ExampleSetFactory(kind).make(X.assign(weight=weights), y)
        columns = examples.getAttributes()
        columns.setSpecialAttribute(columns.get("weight"), "weight")
    predicted = model.apply(examples)
    counter = JClass("adaa.analytics.rules.logic.performance.RulePerformanceCounter")(predicted)
    counter.countValues()
    positive = ""
    if name != "friedman":
        positive = str(list(predicted.getAttributes().getLabel().getMapping().getValues())[-1])
    results = {str(r.getName()).lstrip("#"): float(r.getValue()) for r in counter.getResult()}
    return results, positive


def compared(
    name: str, X: pd.DataFrame, y: pd.Series, weights: np.ndarray | None = None
) -> tuple[dict[str, float], dict[str, float]]:
    """Return our values and the engine's for all measures of predictions that it reports."""
    theirs, positive = engine(name, X, y, weights)
    answers = fitted(name).predict(X)
    ours = {}
    for key in theirs:
        metric = PERFORMANCE_METRICS[OUR_NAMES[key]]
        options = dict(metric.rulekit)
        if metric.kind == "binary":
            options["pos_label"] = positive
        if metric.kind != "rules":
            ours[key] = performance_value(
                metric, y.to_numpy(), answers, sample_weight=weights, **options
            )
    assert len(ours) == {"cancer": 18, "wine": 4, "friedman": 10}[name]
    return ours, {key: theirs[key] for key in ours}


@pytest.mark.parametrize("where", ["given", "mixed"])
@pytest.mark.parametrize("name", DATA)
def test_performance_values_equal_rulekit(name: str, where: str) -> None:
    ours, theirs = compared(name, *(data(name) if where == "given" else mixed_rows(name)))
    assert ours == pytest.approx(theirs, **CLOSE)


@pytest.mark.parametrize("name", DATA)
def test_performance_values_of_weighted_rows_equal_rulekit(name: str) -> None:
    X, y = mixed_rows(name)
    weights = np.random.default_rng(2).choice([0.5, 1.0, 3.0], len(y))
    ours, theirs = compared(name, X, y, weights)
    # Three measures of the engine do not treat weights as numbers of rows. The test fails if that
    # changes.
    if name == "friedman":
        truth = y.to_numpy()
        error = np.abs(truth - fitted(name).predict(X))
        beside = np.abs(weights * truth - np.average(truth, weights=weights))
        expected = weights @ error / beside.sum()
        assert theirs.pop("normalized_absolute_error") == pytest.approx(expected, **CLOSE)
        expected = np.sqrt(weights**2 @ error**2 / (weights**2 @ (truth - truth.mean()) ** 2))
        assert theirs.pop("root_relative_squared_error") == pytest.approx(expected, **CLOSE)
    else:
        unweighted = compared(name, X, y)[0]["balanced_accuracy"]
        assert theirs.pop("balanced_accuracy") == pytest.approx(unweighted, **CLOSE)
    assert {key: ours[key] for key in theirs} == pytest.approx(theirs, **CLOSE)


@pytest.mark.parametrize("name", ["cancer", "wine"])
def test_conflicts_equal_rulekit(name: str) -> None:
    X, y = mixed_rows(name)
    theirs, _ = engine(name, X, y)
    figures = characteristics(as_ruleset(fitted(name)), X, y)
    votes = [key for key, metric in PERFORMANCE_METRICS.items() if metric.kind == "rules"]
    assert set(votes) <= set(theirs)
    assert figures["negative_voting_conflicts"] > 0
    for key in votes:
        assert figures[key] == pytest.approx(theirs[key], **CLOSE)


def test_performance_metrics_include_all_of_rulekit() -> None:
    reported = {key for name in DATA for key in engine(name, *data(name))[0]}
    # The engine does not report these two kinds for such data.
    others = ("probability", "survival")
    expected_keys = {
        key for key, name in OUR_NAMES.items() if PERFORMANCE_METRICS[name].kind not in others
    }
    assert reported == expected_keys
