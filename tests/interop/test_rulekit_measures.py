"""Rule measures compared with the real RuleKit, on data without recorded values."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
from rulekit.classification import RuleClassifier
from rulekit.params import Measures
from rulekit.regression import RuleRegressor
from sklearn.datasets import load_wine, make_friedman1

from skescore.metrics import (
    RULE_MEASURES,
    RuleConfusion,
    characteristics,
    confusion,
    rule_quality,
    rule_report,
)
from skescore.rules import RuleSet, as_ruleset

#: The engine's measures by our names; "Significnce" is its own spelling, and survival is left out.
NAMES = {
    ours: theirs
    for theirs in sorted(set(Measures.__members__) - {"LogRank"})
    for ours in RULE_MEASURES
    if ours.replace("_", "") == theirs.replace("Significnce", "Significance").lower()
}
#: The Python package names these two in a way that the engine does not understand.
MISNAMED = ("cn2_significance", "yails")
#: Those that all is compared for, for both kinds of learners.
SOME = ("c2", "correlation", "precision", "m_estimate", "weighted_laplace")
CLOSE = {"rtol": 1e-9, "atol": 1e-12}
#: The engine's tests sum and integrate in their own way.
P_VALUES = {"rtol": 1e-6, "atol": 0.0}


@cache
def wine() -> tuple[pd.DataFrame, pd.Series]:
    X, y = load_wine(return_X_y=True, as_frame=True)
    return X, y.map({0: "first", 1: "second", 2: "third"}).rename("kind")


@cache
def friedman() -> tuple[pd.DataFrame, pd.Series]:
    X, y = make_friedman1(100, n_features=6, noise=1.0, random_state=0)
    return pd.DataFrame(X, columns=list("abcdef")), pd.Series(y, name="number")


def around(X: pd.DataFrame, n_rows: int = 1000) -> pd.DataFrame:
    """Return rows that combine values of different rows, with contradictions and gaps."""
    rng = np.random.default_rng(3)
    return pd.DataFrame({name: rng.choice(X[name].to_numpy(), n_rows) for name in X.columns})


@cache
def fitted_classifier(measure: str = "c2", limit: int = 0) -> Any:
    options = {"max_rule_count": limit, "minsupp_new": 0.2 if limit else 0.05}
    return RuleClassifier(voting_measure=Measures[NAMES[measure]], **options).fit(*wine())


def classifier(measure: str = "c2", limit: int = 0) -> tuple[Any, RuleSet]:
    model = fitted_classifier(measure, limit=limit)
    return model, as_ruleset(model)


@cache
def regressor(measure: str = "c2", *, mean_based: bool = True) -> tuple[Any, RuleSet]:
    X, y = friedman()
    model = RuleRegressor(
        voting_measure=Measures[NAMES[measure]], mean_based_regression=mean_based
    ).fit(X, y)
    return model, as_ruleset(model)


def assert_same_rules(model: Any, counts: RuleConfusion, measure: str) -> None:
    """Check every count and p-value, and every weight that is a number."""
    rules = model.model.rules
    assert len(rules) == len(counts) > 3
    for name in ("p", "n", "P", "N"):
        theirs = [getattr(rule, f"weighted_{name}") for rule in rules]
        np.testing.assert_array_equal(getattr(counts, name), theirs)
    weights = np.array([rule.weight for rule in rules])
    is_finite = np.isfinite(weights)
    quality = counts.quality(measure)
    np.testing.assert_allclose(quality[is_finite], weights[is_finite], **CLOSE)
    # The same values from the engine's own counts, one rule at a time.
    for rule, ours in zip(rules, quality, strict=True):
        four = (rule.weighted_p, rule.weighted_n, rule.weighted_P, rule.weighted_N)
        assert rule_quality(measure, *four) == pytest.approx(ours, rel=1e-12)
    p_values = [rule.pvalue for rule in rules]
    np.testing.assert_allclose(counts.p_values(untested=0.0), p_values, **P_VALUES)


#: The engine's figures of a model by our names, and whether they are p-values.
FIGURES = {
    "n_rules": ("rules_count", False),
    "conditions_per_rule": ("conditions_per_rule", False),
    "avg_rule_coverage": ("avg_rule_coverage", False),
    "avg_rule_precision": ("avg_rule_precision", False),
    "avg_rule_quality": ("avg_rule_quality", False),
    "avg_pvalue": ("pvalue", True),
    "avg_rulekit_fdr_pvalue": ("FDR_pvalue", True),
    "avg_rulekit_fwer_pvalue": ("FWER_pvalue", True),
    "fraction_significant": ("fraction_significant", False),
    "fraction_rulekit_fdr_significant": ("fraction_FDR_significant", False),
    "fraction_rulekit_fwer_significant": ("fraction_FWER_significant", False),
}


def assert_same_figures(model: Any, figures: dict[str, float]) -> None:
    for ours, (theirs, is_p_value) in FIGURES.items():
        value = float(getattr(model.model.stats, theirs))
        tolerance = P_VALUES if is_p_value else CLOSE
        np.testing.assert_allclose(figures[ours], value, err_msg=ours, **tolerance)


def test_rule_measures_include_all_of_rulekit() -> None:
    # Coleman is a factor of two other measures and not available by itself.
    assert set(RULE_MEASURES) - set(NAMES) == {"coleman"}
    assert set(Measures.__members__) - set(NAMES.values()) == {"LogRank"}


@pytest.mark.parametrize("measure", sorted(set(NAMES) - set(MISNAMED)))
def test_rule_measures_equal_rulekit_on_impure_rules(measure: str) -> None:
    # The voting measure only affects weights. If the engine has no weight, as J-measure has none
    # for a pure rule, the model cannot be read, but another one with the same rules can.
    model, (other, ours) = fitted_classifier(measure, limit=2), classifier(limit=2)
    assert [str(rule) for rule in model.model.rules] == [str(rule) for rule in other.model.rules]
    counts = confusion(ours, *wine())
    assert (counts.n > 0).any(), "pure rules leave half of the engine's formulas untried"
    assert_same_rules(model, counts, measure)
    unknown = ~np.isfinite([rule.weight for rule in model.model.rules])
    assert not (unknown & (counts.n > 0)).any()
    assert np.isfinite(counts.quality(measure)).all()
    assert measure == "j_measure" or not unknown.any()


@pytest.mark.parametrize("measure", sorted(MISNAMED))
def test_rulekit_uses_correlation_for_misnamed_measures(measure: str) -> None:
    """The engine computes another measure under these names; the test fails if that changes."""
    model, ours = classifier(measure, limit=2)
    assert_same_rules(model, confusion(ours, *wine()), "correlation")


@pytest.mark.parametrize("measure", SOME)
def test_rule_measures_equal_rulekit_in_classification(measure: str) -> None:
    model, ours = classifier(measure)
    X, y = wine()
    assert_same_rules(model, confusion(ours, X, y), measure)
    assert_same_figures(model, characteristics(ours, X, y, measure=measure))


@pytest.mark.parametrize("measure", SOME)
def test_rule_measures_equal_rulekit_in_regression(measure: str) -> None:
    model, ours = regressor(measure)
    X, y = friedman()
    assert_same_rules(model, confusion(ours, X, y), measure)
    assert_same_figures(model, characteristics(ours, X, y, measure=measure, untested=0.0))


def test_rule_measures_equal_rulekit_with_medians() -> None:
    model, ours = regressor(mean_based=False)
    X, y = friedman()
    assert_same_rules(model, confusion(ours, X, y), "c2")
    assert_same_figures(model, characteristics(ours, X, y, untested=0.0))
    assert model.predict(around(X)) == pytest.approx(ours.predict(around(X)), rel=1e-9)


@pytest.mark.parametrize("measure", SOME)
def test_rule_measures_as_weights_vote_like_rulekit(measure: str) -> None:
    """Weights are computed here from the rows, and predictions agree with those of the engine."""
    for (model, read), (X, y) in (
        (classifier(measure), wine()),
        (classifier(measure, limit=2), wine()),
        (regressor(measure), friedman()),
    ):
        weights = confusion(read, X, y).quality(measure)
        ours = read.replace(
            rules=[replace(rule, weight=w) for rule, w in zip(read, weights.tolist(), strict=True)]
        )
        for rows in (X, around(X)):
            if ours.classes is None:
                np.testing.assert_allclose(ours.predict(rows), model.predict(rows), **CLOSE)
            else:
                np.testing.assert_array_equal(ours.predict(rows), model.predict(rows))


@pytest.mark.parametrize("limit", [0, 2])
def test_characteristics_equal_conflicts_of_rulekit(limit: int) -> None:
    model, ours = classifier(limit=limit)
    X, y = wine()
    other_rows = around(X)
    torn = []
    for rows, truth in ((X, y), (other_rows, np.resize(y, len(other_rows)))):
        answers, theirs = model.predict(rows, return_metrics=True)
        figures = characteristics(ours, rows, truth)
        for name in ("rules_per_example", "voting_conflicts"):
            np.testing.assert_allclose(figures[name], theirs[name], err_msg=name, **CLOSE)
        matches = ours.match(rows)
        outputs = np.array([rule.output for rule in ours])
        conflict = np.array([len(set(outputs[row])) > 1 for row in matches])
        wrong = conflict & (answers != np.asarray(truth))
        assert figures["negative_voting_conflicts"] == wrong.sum()
        torn.append(wrong.sum())
    assert torn[1] > 20


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_rule_report_equals_numbers_of_rulekit(task: str) -> None:
    """The table of rules contains the numbers of the engine."""
    (model, ours), (X, y) = (
        (classifier(), wine()) if task == "classification" else (regressor(), friedman())
    )
    report = rule_report(ours, X, y, measures="all", correction="rulekit_fdr", untested=0.0)
    rules = model.model.rules
    np.testing.assert_array_equal(report["p"], [rule.weighted_p for rule in rules])
    np.testing.assert_allclose(report["c2"], [rule.weight for rule in rules], **CLOSE)
    np.testing.assert_allclose(report["p_value"], [rule.pvalue for rule in rules], **P_VALUES)
    stats = model.model.stats
    assert report["fdr_p_value"].mean() == pytest.approx(stats.FDR_pvalue, rel=1e-6)
    assert report["significant"].mean() == pytest.approx(stats.fraction_FDR_significant)
    covered = (report["p"] + report["n"]) / (report["P"] + report["N"])
    assert covered.mean() == pytest.approx(stats.avg_rule_coverage, rel=1e-9)
