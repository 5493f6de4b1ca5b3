"""Tests of the target in rule statistics: both references, text, JSON, weights."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_diabetes, load_iris
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier

from skescore.black_boxes import CallableRegressor
from skescore.extractors import (
    CARTExtractor,
    CREAMExtractor,
    GridExExtractor,
    GridRExExtractor,
    ITERExtractor,
    REALExtractor,
    TrepanExtractor,
)
from skescore.rules import Interval, Rule, RuleSet, RuleStatistics, as_ruleset, with_target

CLASSIFIERS = [
    CARTExtractor,
    CREAMExtractor,
    GridExExtractor,
    ITERExtractor,
    REALExtractor,
    TrepanExtractor,
]


def members(rules, X):
    """Return the rows of each rule by a loop over rows."""
    if rules.ordered or rules.disjoint:
        assigned = [int(rules.assign(X.iloc[[i]])[0]) for i in range(len(X))]
        return [[i for i, a in enumerate(assigned) if a == k] for k in range(len(rules))]
    return [np.flatnonzero(column).tolist() for column in rules.match(X).T]


@pytest.mark.parametrize("extractor", CLASSIFIERS)
def test_rules_count_both_references_on_training_rows(extractor):
    X, y = load_iris(return_X_y=True, as_frame=True)
    X, y = X.iloc[::2], y.iloc[::2].map({0: "a", 1: "b", 2: "c"})
    fitted = extractor(GaussianNB()).fit(X, y)
    rules, answers = fitted.rules_, fitted.estimator_.predict(X)
    for rule, rows in zip(rules, members(rules, X), strict=True):
        statistics = rule.statistics
        assert statistics.n_rows == len(rows)
        labels = y.iloc[rows].tolist()
        assert statistics.target_counts == tuple(labels.count(label) for label in "abc")
        if statistics.n_points is None:
            agreeing = answers[rows].tolist()
            assert statistics.class_counts == tuple(agreeing.count(label) for label in "abc")
    assert RuleSet.from_json(rules.to_json()).to_json() == rules.to_json()
    assert all("agree with the model" in line for line in str(rules).splitlines() if "[" in line)
    assert all("right (data)" in line for line in str(rules).splitlines() if "[" in line)


@pytest.mark.parametrize("extractor", [CARTExtractor, GridRExExtractor, ITERExtractor])
def test_regression_rules_have_both_mean_errors(extractor):
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    X, y = X.iloc[:150], y.iloc[:150]
    fitted = extractor(RandomForestRegressor(5, random_state=0)).fit(X, y)
    rules, answers = fitted.rules_, fitted.estimator_.predict(X)
    predicted = rules.predict(X)
    for rule, rows in zip(rules, members(rules, X), strict=True):
        model = np.mean([abs(predicted[i] - answers[i]) for i in rows])
        target = np.mean([abs(predicted[i] - y.iloc[i]) for i in rows])
        assert rule.statistics.model_error == pytest.approx(model, rel=1e-9, abs=1e-9)
        assert rule.statistics.target_error == pytest.approx(target, rel=1e-9)
    assert RuleSet.from_json(rules.to_json()).to_json() == rules.to_json()
    assert "(model), " in str(rules)
    assert "± " not in str(rules)
    assert "from the model and by " in rules.to_sentences()


def test_rules_without_target_name_one_reference():
    X, y = load_iris(return_X_y=True, as_frame=True)
    fitted = CARTExtractor(FrozenEstimator(GaussianNB().fit(X, y))).fit(X)
    assert "agree with the model" in str(fitted.rules_)
    assert "(data)" not in str(fitted.rules_)
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    model = RandomForestRegressor(3, random_state=0).fit(X, y)
    fitted = CARTExtractor(FrozenEstimator(model)).fit(X)
    assert "predictions of the model ± " in str(fitted.rules_)


def test_weighted_statistics_are_described_as_weighted():
    X, y = load_iris(return_X_y=True, as_frame=True)
    weights = np.where(y == 2, 3, 1)
    rules = CARTExtractor(GaussianNB(), max_leaf_nodes=3).fit(X, y, sample_weight=weights).rules_
    repeated = np.repeat(np.arange(len(X)), weights)
    expanded = CARTExtractor(GaussianNB(), max_leaf_nodes=3).fit(X.iloc[repeated], y.iloc[repeated])
    counts = [rule.statistics.target_counts for rule in rules]
    assert counts == [rule.statistics.target_counts for rule in expanded.rules_]
    assert all("weighted rows, " in line for line in str(rules).splitlines())
    assert "weighted" not in str(expanded.rules_)
    assert all(rule.statistics.weighted for rule in RuleSet.from_json(rules.to_json()))
    assert "weighted rows" in rules.to_sentences()


def test_weighted_regression_statistics_use_exact_weights() -> None:
    X = np.array([[0.0, 0.0], [0.0, 1.0], [0.0, 2.0], [0.0, 3.0], [9.0, 0.0], [9.0, 1.0]])
    weights = np.array([1, 1, 1, 0.02, 1, 1])

    def predict(rows: np.ndarray) -> np.ndarray:
        return np.where(rows[:, 0] > 5, 1000.0, np.where(rows[:, 1] > 2.5, 10.0, 0.0))

    extractor = CARTExtractor(CallableRegressor(predict), max_leaf_nodes=2)
    rule = extractor.fit(X, sample_weight=weights).rules_.rules[0]
    mean = np.average(predict(X)[:4], weights=weights[:4])
    variance = np.average((predict(X)[:4] - mean) ** 2, weights=weights[:4])
    assert rule.statistics.mean == pytest.approx(mean)
    assert rule.statistics.standard_deviation == pytest.approx(np.sqrt(variance))


def test_with_target_counts_unknown_labels_as_wrong():
    rule = Rule([], "a", RuleStatistics(4))
    rules = RuleSet([rule], ["x"], task="classification", classes=["a", "b"])
    described = with_target(rules, [[0], [1], [2], [3]], np.array(["a", "z", "b", "z"]))
    assert described.rules[0].statistics.target_counts == (1, 1)
    assert described.rules[0].correctness(0) == 0.25


def test_with_target_counts_true_as_one():
    rule = Rule([], 1, RuleStatistics(3))
    rules = RuleSet([rule], ["x"], task="classification", classes=[0, 1])
    described = with_target(rules, [[0], [1], [2]], np.array([True, False, True]))
    assert described.rules[0].statistics.target_counts == (1, 2)


def test_with_target_counts_every_covered_row():
    rules = RuleSet(
        [
            Rule([Interval(0, upper=2)], "a", RuleStatistics(2)),
            Rule([Interval(0, lower=1)], "b", RuleStatistics(2)),
        ],
        ["x"],
        task="classification",
        ordered=False,
    )
    described = with_target(rules, [[0], [1.5], [3]], np.array(["a", "b", "b"]))
    assert [r.statistics.target_counts for r in described] == [(1, 1), (0, 2)]


def test_with_target_keeps_rules_without_statistics():
    rules = RuleSet([Rule([], "a")], ["x"], task="classification")
    assert with_target(rules, [[0]], np.array(["a"])).rules[0].statistics is None


def test_tree_rules_distinguish_weights_from_rows():
    X, y = load_iris(return_X_y=True)
    tree = DecisionTreeClassifier(max_leaf_nodes=2, random_state=0).fit(X, y, np.full(150, 2.5))
    rules = as_ruleset(tree)
    assert "50 rows, 100 % of the weight right (data)" in str(rules)
    assert "50 rows, all of the weight right in the data" in rules.to_sentences()


def merged_end(task, output, one, two):
    """Return the statistics after two equal last rules became one."""
    rules = [Rule([Interval(0, upper=1)], output, one), Rule([], output, two)]
    classes = ["a", "b"] if task == "classification" else None
    ruleset = RuleSet(rules, ["x"], task=task, classes=classes)
    return ruleset.without_repeated_end().rules[0].statistics


def test_merged_rules_combine_target_statistics():
    one = RuleStatistics(4, (3, 1), target_counts=(2, 2))
    two = RuleStatistics(2, (2, 0), target_counts=(1, 1))
    assert merged_end("classification", "a", one, two).target_counts == (3, 3)
    unknown = merged_end("classification", "a", one, RuleStatistics(2, (2, 0)))
    assert unknown.target_counts is None
    one = RuleStatistics(4, mean=1.0, target_error=0.5, weighted=True)
    two = RuleStatistics(12, mean=1.0, target_error=0.1)
    merged = merged_end("regression", 1.0, one, two)
    assert merged.target_error == pytest.approx(0.2)
    assert merged.weighted


def test_statistics_distinguish_queried_points_from_rows():
    X, y = load_iris(return_X_y=True, as_frame=True)
    rules = TrepanExtractor(GaussianNB(), min_sample=500).fit(X, y).rules_
    points = [rule.statistics.n_points for rule in rules]
    assert max(p for p in points if p is not None) >= 500
    assert " of 500 queried rows agree with the model" in str(rules)


@pytest.mark.parametrize("field", ["model_error", "target_error"])
def test_statistics_reject_negative_errors(field):
    with pytest.raises(ValueError, match=f"{field} must be 0 or more"):
        RuleStatistics(3, **{field: -1.0})


def test_ruleset_rejects_target_counts_of_other_classes():
    rule = Rule([], "a", RuleStatistics(2, target_counts=(1, 1, 1)))
    with pytest.raises(ValueError, match="3 target_counts for 2 classes"):
        RuleSet([rule], ["x"], task="classification", classes=["a", "b"])


def test_exports_contain_both_references():
    X, y = load_iris(return_X_y=True, as_frame=True)
    rules = CARTExtractor(RandomForestClassifier(5, random_state=0), max_leaf_nodes=3).fit(X, y)
    for text in (
        rules.rules_.to_python(),
        rules.rules_.to_prolog(),
        rules.rules_.to_html(),
        str(rules.rules_.explain(X.iloc[[0]])),
    ):
        assert "agree with the model" in text
        assert "right (data)" in text
    statements = [line.partition("[")[2].rstrip("]") for line in str(rules.rules_).splitlines()]
    for language in ("tree", "markdown", "html", "prolog", "python", "javascript", "java"):
        text = rules.rules_.to(language)
        assert all(statement in text for statement in statements), language
    assert "agree" not in rules.rules_.to("sql")  # these figures would be part of every query
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        frame = rules.rules_.to_frame()
    assert isinstance(frame, pd.DataFrame)
    assert frame["correctness"].tolist() == [
        rule.correctness(rules.rules_.output_index(rule)) for rule in rules.rules_
    ]
