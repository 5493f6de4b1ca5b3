"""The table of rules: its columns compared with the underlying numbers."""

from __future__ import annotations

import html
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_diabetes, load_iris
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from skescore.metrics import (
    RULE_MEASURES,
    adjust_p_values,
    confusion,
    fisher_p_value,
    rule_quality,
    rule_report,
)
from skescore.rules import Fallback, Interval, LinearOutput, Rule, RuleSet, as_ruleset

COLUMNS = ["text", "output", "p", "n", "P", "N", "coverage", "precision"]
LAST_COLUMNS = [
    "p_value",
    "fdr_p_value",
    "fwer_p_value",
    "significant",
    "overlap",
    "unique_rows",
]


@pytest.fixture(scope="module")
def iris() -> tuple[RuleSet, pd.DataFrame, np.ndarray]:
    bunch = load_iris(as_frame=True)
    X, y = bunch.data, bunch.target_names[bunch.target]
    narrow, wide = X.columns[2], X.columns[3]
    rules = RuleSet(
        [
            Rule([Interval(2, upper=2.5)], "setosa"),
            Rule([Interval(2, 2.5, 5.0)], "versicolor"),
            Rule([Interval(3, lower=1.5)], "virginica"),
            Rule([Interval(0, lower=7.65)], "virginica"),
            Rule([], "setosa"),
        ],
        list(X.columns),
        task="classification",
        ordered=False,
        voting="votes",
    )
    assert (narrow, wide) == ("petal length (cm)", "petal width (cm)")
    return rules, X, y


def test_rule_report_columns_equal_their_sources(iris: Any) -> None:
    rules, X, y = iris
    report = rule_report(rules, X, y)
    assert list(report.columns) == [*COLUMNS, "c2", *LAST_COLUMNS]
    assert report.index.tolist() == [1, 2, 3, 4, 5]
    assert report.index.name == "rule"
    counts = report[["p", "n", "P", "N"]].to_numpy().T
    for name in ("coverage", "precision", "c2"):
        np.testing.assert_allclose(report[name], rule_quality(name, *counts))
    raw = fisher_p_value(*counts)
    np.testing.assert_allclose(report["p_value"], raw)
    np.testing.assert_allclose(report["fdr_p_value"], adjust_p_values(raw, "fdr_bh"))
    np.testing.assert_allclose(report["fwer_p_value"], adjust_p_values(raw, "holm"))
    assert report["significant"].tolist() == (report["fdr_p_value"] <= 0.05).tolist()
    assert report["significant"].tolist() == [True, True, True, True, False]


def test_rule_report_counts_rows_of_iris(iris: Any) -> None:
    rules, X, y = iris
    report = rule_report(rules, X, y)
    inside = (X["petal length (cm)"] > 2.5) & (X["petal length (cm)"] <= 5)
    wide, long = X["petal width (cm)"] > 1.5, X["sepal length (cm)"] > 7.65
    assert report["p"].tolist() == [
        50.0,
        (inside & (y == "versicolor")).sum(),
        (wide & (y == "virginica")).sum(),
        (long & (y == "virginica")).sum(),
        50.0,
    ]
    # The last rule holds for all rows, so that only it has unique rows.
    assert report["unique_rows"].tolist() == [0, 0, 0, 0, (~(inside | wide | long)).sum() - 50]
    assert report["overlap"].tolist()[:4] == [1.0] * 4


def test_rule_report_texts_stand_alone(iris: Any) -> None:
    rules, X, y = iris
    texts = rule_report(rules, X, y)["text"].tolist()
    assert texts == [
        "IF petal length (cm) ≤ 2.5 THEN setosa",
        "IF 2.5 < petal length (cm) ≤ 5 THEN versicolor",
        "IF petal width (cm) > 1.5 THEN virginica",
        "IF sepal length (cm) > 7.65 THEN virginica",
        "ALWAYS setosa",
    ]
    ordered = rules.replace(ordered=True, voting=None)
    assert rule_report(ordered, X, y)["text"].tolist() == texts


def test_rule_report_can_be_sorted_filtered_and_printed(iris: Any) -> None:
    rules, X, y = iris
    report = rule_report(rules, X, y, measures=["kappa"])
    assert report.sort_values("kappa", ascending=False).index[0] == 1
    assert len(report[report["significant"]]) == 4
    assert report[report["output"] == "virginica"].index.tolist() == [3, 4]
    assert "ALWAYS setosa" in str(report)
    assert report["significant"].dtype == bool


def test_rule_report_can_show_long_rules_in_full(iris: Any) -> None:
    rules, X, y = iris
    sides = [Interval(j, lower=-1.5, upper=100.25) for j in range(4)]
    report = rule_report(rules.replace(rules=[Rule(sides, "setosa")]), X, y)
    text = report["text"].iloc[0]
    assert len(text) > 100
    assert text not in str(report)
    assert text in report.to_string()
    with pd.option_context("display.max_colwidth", None):
        assert html.escape(text, quote=False) in report._repr_html_()


@pytest.mark.parametrize("depth", [2, 4])
def test_rule_report_of_trees_has_no_overlap(depth: int) -> None:
    bunch = load_iris()
    tree = DecisionTreeClassifier(max_depth=depth, random_state=0).fit(bunch.data, bunch.target)
    report = rule_report(as_ruleset(tree), bunch.data, bunch.target)
    assert (report["overlap"] == 0).all()
    assert (report["unique_rows"] == report["p"] + report["n"]).all()
    assert report["unique_rows"].sum() == 150
    right = (tree.predict(bunch.data) == bunch.target).sum()
    assert report["p"].sum() == right


def test_rule_report_describes_regression_rules() -> None:
    bunch = load_diabetes(scaled=False)
    tree = DecisionTreeRegressor(max_depth=2, random_state=0).fit(bunch.data, bunch.target)
    rules = as_ruleset(tree)
    report = rule_report(rules, bunch.data, bunch.target, measures=["rss"])
    assert list(report.columns) == [*COLUMNS, "rss", *LAST_COLUMNS]
    leaf = tree.predict(bunch.data)
    for output, p in zip(report["output"], report["p"], strict=True):
        labels = bunch.target[np.isclose(leaf, output)]
        assert p == (np.abs(labels - output) <= labels.std()).sum()
    line = RuleSet([Rule([], LinearOutput(1.0, [(0, 2.0)]))], ["x"], task="regression")
    report = rule_report(line, [[0.0], [1.0]], [1.0, 3.0])
    assert report["text"].tolist() == ["ALWAYS 1 + 2·x"]
    assert report["output"].tolist() == ["1 + 2·x"]
    assert report["precision"].tolist() == [1.0]


def test_rule_report_contains_all_measures(iris: Any) -> None:
    rules, X, y = iris
    report = rule_report(rules, X, y, measures="all")
    assert set(RULE_MEASURES) <= set(report.columns)
    assert report.columns.is_unique
    assert list(rule_report(rules, X, y, measures="lift").columns)[8] == "lift"
    own_report = rule_report(rules, X, y, measures=[RULE_MEASURES["laplace"], "laplace"])
    assert list(own_report.columns) == [*COLUMNS, "laplace", *LAST_COLUMNS]
    assert list(rule_report(rules, X, y, measures=[]).columns) == [*COLUMNS, *LAST_COLUMNS]


@pytest.mark.parametrize(
    ("correction", "fdr", "fwer"),
    [
        ("fdr_bh", "fdr_bh", "holm"),
        ("holm", "fdr_bh", "holm"),
        ("rulekit_fdr", "rulekit_fdr", "holm"),
        ("rulekit_fwer", "fdr_bh", "rulekit_fwer"),
        (None, "fdr_bh", "holm"),
    ],
)
def test_rule_report_applies_corrections(
    iris: Any, correction: str | None, fdr: str, fwer: str
) -> None:
    rules, X, y = iris
    report = rule_report(rules, X, y, correction=correction, alpha=1e-8)
    counts = confusion(rules, X, y)
    np.testing.assert_allclose(report["fdr_p_value"], counts.p_values(fdr))
    np.testing.assert_allclose(report["fwer_p_value"], counts.p_values(fwer))
    assert report["significant"].tolist() == counts.significant(1e-8, correction).tolist()


def test_rule_report_weights_equal_repeated_rows(iris: Any) -> None:
    rules, X, y = iris
    weights = np.random.default_rng(0).integers(0, 4, len(y))
    second_repeated = np.repeat(np.arange(len(y)), weights)
    weighted = rule_report(rules, X, y, sample_weight=weights, measures="all")
    repeated = rule_report(rules, X.iloc[second_repeated], y[second_repeated], measures="all")
    pd.testing.assert_frame_equal(weighted, repeated, rtol=1e-12)


def test_rule_report_assigned_rows_sum_to_all_rows(iris: Any) -> None:
    rules, X, y = iris
    ordered = rules.replace(ordered=True, voting=None, fallback=Fallback("setosa"))
    report = rule_report(ordered, X, y, assigned=True)
    assert (report["p"] + report["n"]).sum() == 150
    assert report["p"].sum() == (ordered.predict(X) == y).sum()


def test_rule_report_of_one_row_has_no_p_value_by_default() -> None:
    rules = RuleSet([Rule([Interval(0, upper=0)], 0.0), Rule([], 1.0)], ["x"], task="regression")
    X, y = [[0.0], [1.0], [2.0]], [0.0, 1.0, 2.0]
    report = rule_report(rules, X, y)
    assert report["p_value"].isna().tolist() == [True, False]
    assert report["significant"].tolist() == [False, False]
    engine = rule_report(rules, X, y, untested=0.0)
    assert engine["p_value"].tolist()[0] == 0.0
    assert engine["significant"].tolist() == [True, False]


def test_rule_report_of_no_rules_is_empty() -> None:
    rules = RuleSet([], ["x"], task="classification", classes=["a", "b"])
    report = rule_report(rules, [[0.0], [1.0]], ["a", "b"])
    assert list(report.columns) == [*COLUMNS, "c2", *LAST_COLUMNS]
    assert len(report) == 0


def test_rule_report_rejects_invalid_input(iris: Any) -> None:
    rules, X, y = iris
    with pytest.raises(ValueError, match="no measure of rules 'lifft'"):
        rule_report(rules, X, y, measures=["lifft"])
    with pytest.raises(ValueError, match=r"correction must be one of .*, got 'bonferroni'"):
        rule_report(rules, X, y, correction="bonferroni")
    with pytest.raises(ValueError, match="alpha must be"):
        rule_report(rules, X, y, alpha=0)
    with pytest.raises(ValueError, match="a label per row, but it is None"):
        rule_report(rules, X)
    with pytest.raises(ValueError, match="one label per row"):
        rule_report(rules, X, y[:-1])


def test_rule_report_corrects_by_holm_by_default() -> None:
    X = np.arange(20.0)[:, None]
    y = np.repeat(["a", "b"], 10)
    rules = RuleSet(
        [Rule([Interval(0, upper=k)], "a") for k in (1, 2, 16)],
        ["x"],
        task="classification",
        classes=["a", "b"],
    )
    report = rule_report(rules, X, y)
    expected = adjust_p_values(report["p_value"].to_numpy(), "holm")
    assert report["fwer_p_value"].tolist() == pytest.approx(expected.tolist())
    assert expected.tolist() != pytest.approx(
        adjust_p_values(report["p_value"].to_numpy(), "rulekit_fwer").tolist()
    )
