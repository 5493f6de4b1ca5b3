"""Names of measures in RuleKit are accepted as aliases."""

import argparse

import pytest

from skescore._aliases import RULEKIT_PERFORMANCE_METRICS
from skescore.cli._arguments import names_of, prediction_metric, scoring, scorings
from skescore.metrics import PERFORMANCE_METRICS, RULE_MEASURES, performance_value, rule_quality
from skescore.scorers import get_rule_scorer

#: Names of measures of rules in RuleKit's documentation.
_RULE_NAMES_TEXT = """
    Accuracy BinaryEntropy C1 C2 CFoil CNSignificnce Correlation Coverage FBayesianConfirmation
    FMeasure FullCoverage GeoRSS GMeasure InformationGain JMeasure Kappa Klosgen Laplace Lift
    LogicalSufficiency MEstimate MutualSupport Novelty OddsRatio OneWaySupport
    PawlakDependencyFactor Q2 Precision RelativeRisk Ripper RuleInterest RSS SBayesian
    Sensitivity Specificity TwoWaySupport WeightedLaplace WeightedRelativeAccuracy YAILS
"""
RULE_NAMES = _RULE_NAMES_TEXT.split()
#: Names of measures of predictions in RuleKit's documentation, and those of skescore.
PERFORMANCE_NAMES = {
    "classification_error": "zero_one_loss",
    "kappa": "cohen_kappa",
    "sensitivity": "recall",
    "f_measure": "f1",
    "absolute_error": "mean_absolute_error",
    "squared_error": "mean_squared_error",
    "root_mean_squared_error": "root_mean_squared_error",
    "#rules_per_example": "rules_per_example",
    "#negative_voting_conflicts": "negative_voting_conflicts",
}


@pytest.mark.parametrize("name", RULE_NAMES)
def test_rulekit_names_of_rule_measures_are_aliases(name):
    assert name in RULE_MEASURES
    ours = RULE_MEASURES[name].name
    assert rule_quality(name, 30, 10, 50, 100) == rule_quality(ours, 30, 10, 50, 100)
    assert get_rule_scorer(f"mean_rule_{name}").name.endswith(f"_rule_{ours}")


def test_aliases_name_different_measures_and_are_not_listed():
    assert len({RULE_MEASURES[name].name for name in RULE_NAMES}) == len(RULE_NAMES)
    assert not set(RULE_NAMES) & set(RULE_MEASURES)
    assert "cn3_significance" not in RULE_MEASURES
    assert 3 not in RULE_MEASURES


@pytest.mark.parametrize("name", PERFORMANCE_NAMES)
def test_rulekit_names_of_performance_metrics_are_aliases(name):
    metric = PERFORMANCE_METRICS[PERFORMANCE_NAMES[name]]
    assert PERFORMANCE_METRICS[name] is metric
    assert get_rule_scorer(name) is get_rule_scorer(metric.scorer_name)


def test_performance_value_accepts_rulekit_names():
    labels, predictions = [0, 1, 1, 0, 1], [0, 1, 0, 0, 0]
    for name in ("kappa", "sensitivity", "f_measure"):
        ours = performance_value(PERFORMANCE_NAMES[name], labels, predictions)
        assert performance_value(name, labels, predictions) == ours


def test_names_of_returns_the_names_of_aliases():
    read = names_of(["c2", "f_measure"], "measure", {"C2": "c2", "c2": "c2"}.__getitem__)
    assert read("C2, c2") == ("c2",)


def test_command_line_accepts_rulekit_names() -> None:
    for alias, name in RULEKIT_PERFORMANCE_METRICS.items():
        assert prediction_metric(alias) == name
        if name in scorings() or f"neg_{name}" in scorings():
            assert scoring(alias) in (name, f"neg_{name}")
    assert scoring("kappa") == "cohen_kappa"
    assert scoring("classification_error") == "neg_zero_one_loss"
    with pytest.raises(argparse.ArgumentTypeError, match="there is no score 'kapa'"):
        scoring("kapa")
