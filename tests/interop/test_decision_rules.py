"""Rules read from decision-rules predict like its own rule sets, to the last row."""

from __future__ import annotations

import json
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from decision_rules import measures
from decision_rules.classification.prediction import VotingPredictionStrategy
from decision_rules.classification.rule import ClassificationConclusion, ClassificationRule
from decision_rules.classification.ruleset import ClassificationRuleSet
from decision_rules.conditions import (
    AttributesRelationCondition,
    CompoundCondition,
    DiscreteSetCondition,
    ElementaryCondition,
    LogicOperators,
    NominalAttributesEqualityCondition,
    NominalCondition,
)
from decision_rules.core.prediction import BestRulePredictionStrategy, FirstRuleCoveringStrategy
from decision_rules.regression.rule import RegressionConclusion, RegressionRule
from decision_rules.regression.ruleset import RegressionRuleSet
from decision_rules.serialization import JSONSerializer
from decision_rules.survival.ruleset import SurvivalRuleSet
from sklearn.datasets import load_diabetes, load_iris

from skescore.rules import RuleSet, as_ruleset
from skescore.rules.importers import read_decision_rules

NUMBERS = ["length", "width of it", "höhe"]
COLUMNS = [*NUMBERS, "color", "shape"]
COLORS = ["red", "green", "blue, dark", "nearly }"]
SHAPES = ["round", "square"]


def frame(n_rows: int, seed: int, *, missing: float = 0.0) -> pd.DataFrame:
    """Return numbers on a coarse grid, so that they equal bounds, and texts."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({name: rng.integers(1, 9, n_rows) / 2 for name in NUMBERS})
    X["color"] = pd.Series(rng.choice(COLORS, n_rows), dtype=object)
    X["shape"] = pd.Series(rng.choice(SHAPES, n_rows), dtype=object)
    for name in NUMBERS:
        X.loc[rng.random(n_rows) < missing, name] = np.nan
    # decision-rules reads missing categories as the text "nan", which does not occur here.
    for name in ("color", "shape"):
        X.loc[rng.random(n_rows) < missing, name] = np.nan
    return X


def condition(rng: np.random.Generator, depth: int = 0) -> Any:
    kind = rng.integers(0, 7 if depth < 2 else 5)
    if kind >= 5:
        parts = [condition(rng, depth + 1) for _ in range(rng.integers(1, 4))]
        return CompoundCondition(parts, list(LogicOperators)[kind - 5])
    if kind == 0:
        part: Any = NominalCondition(3, str(rng.choice(COLORS)))
    elif kind == 1:
        part = DiscreteSetCondition(3, set(rng.choice(COLORS, 2, replace=False).tolist()))
    elif kind == 2:
        signs = [r.value for r in AttributesRelationCondition.Relation if r.value != "!="]
        part = AttributesRelationCondition(0, int(rng.integers(1, 3)), str(rng.choice(signs)))
    else:
        low, high = np.sort(rng.choice(np.arange(1, 10) / 2, 2, replace=False))
        low, high = [(low, high), (-np.inf, high), (low, np.inf)][rng.integers(0, 3)]
        part = ElementaryCondition(
            int(rng.integers(0, 3)), float(low), float(high), *(rng.random(2) < 0.5).tolist()
        )
    # decision-rules cannot write the negation of a closed comparison of two features.
    closed = isinstance(part, AttributesRelationCondition) and part.operator in (">=", "<=")
    part.negated = not closed and bool(rng.random() < 0.3)
    return part


def premise(rng: np.random.Generator) -> Any:
    """Return a conjunction that holds for some rows and leaves others to the default."""
    while True:
        conjunction = CompoundCondition([condition(rng) for _ in range(rng.integers(1, 4))])
        if 0 < conjunction.covered_mask(frame(300, 0).to_numpy()).mean() < 0.2:
            return conjunction


def classifier(seed: int, labels: list[Any], measure: Any = measures.precision) -> Any:
    rng = np.random.default_rng(seed)
    rules = [
        ClassificationRule(
            premise(rng),
            ClassificationConclusion(labels[rng.integers(0, len(labels))], "kind of"),
            COLUMNS,
        )
        for _ in range(6)
    ]
    ruleset = ClassificationRuleSet(rules)
    X = frame(200, seed)
    indices = np.random.default_rng(seed).integers(0, len(labels), 200)
    y = pd.Series([labels[i] for i in indices], name="kind of")
    ruleset.update(X, y, measure)
    return ruleset


def regressor(seed: int) -> Any:
    rng = np.random.default_rng(seed)
    rules = [
        RegressionRule(
            premise(rng),
            RegressionConclusion(float(rng.normal()), "size", fixed=True, low=-9.0, high=9.0),
            COLUMNS,
        )
        for _ in range(9)
    ]
    ruleset = RegressionRuleSet(rules)
    y = pd.Series(np.random.default_rng(seed).normal(size=200), name="size")
    ruleset.update(frame(200, seed), y, measures.precision)
    return ruleset


def read(ruleset: Any, **options: Any) -> RuleSet:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Rules with the voting_weight 0 are left out")
        return as_ruleset(ruleset, **options)


def as_text(ruleset: Any) -> str:
    """Return the JSON of a rule set as a text."""
    return json.dumps(JSONSerializer.serialize(ruleset), default=lambda number: number.item())


def small(rules: list[tuple[Any, Any]], measure: Any = measures.precision) -> Any:
    """Return a classification rule set from pairs of condition and label."""
    ruleset = ClassificationRuleSet(
        [
            ClassificationRule(CompoundCondition([c]), ClassificationConclusion(v, "kind"), COLUMNS)
            for c, v in rules
        ]
    )
    X = frame(200, 1)
    ruleset.update(X, pd.Series(np.where(X.color == "red", "yes", "no"), name="kind"), measure)
    return ruleset


@pytest.mark.parametrize("labels", [["b", "a", "c"], [2, 10, 1], [True, False]])
@pytest.mark.parametrize("seed", range(5))
def test_decision_rules_votes_predict_same_classes(seed: int, labels: list[Any]) -> None:
    theirs = classifier(seed, labels)
    ours = read(theirs)
    X = frame(2000, seed + 100)
    assert 0.1 < ours.covers(X).mean() < 1
    assert ours.predict(X).tolist() == theirs.predict(X).tolist()


@pytest.mark.parametrize("seed", range(5))
def test_decision_rules_votes_predict_same_numbers(seed: int) -> None:
    theirs = regressor(seed)
    ours = read(theirs)
    X = frame(2000, seed + 100)
    assert ours.voting == "mean"
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("seed", range(4))
def test_decision_rules_cover_same_rows_with_gaps(seed: int) -> None:
    theirs = regressor(seed)
    X = frame(1000, seed, missing=0.3)
    with np.errstate(invalid="ignore"):
        coverage = theirs.calculate_coverage_matrix(X)
    np.testing.assert_array_equal(read(theirs).match(X), coverage)


@pytest.mark.parametrize("make", [lambda seed: classifier(seed, ["b", "a", "c"]), regressor])
@pytest.mark.parametrize("seed", range(4))
def test_decision_rules_strategies_predict_alike(seed: int, make: Any) -> None:
    theirs, X = make(seed), frame(1000, seed + 50)
    for strategy, name in [("best_rule", "best_rule"), (FirstRuleCoveringStrategy, "first")]:
        theirs.set_prediction_strategy(strategy)
        for ours in (read(theirs), read_quietly(as_text(theirs), strategy=name)):
            assert (ours.ordered, ours.voting) == (True, None)
            assert ours.predict(X).tolist() == theirs.predict(X).tolist()


def read_quietly(data: Any, **options: Any) -> RuleSet:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Rules with the voting_weight 0 are left out")
        return read_decision_rules(data, **options)


@pytest.mark.parametrize("labels", [["b", "a", "c"], [2, 10, 1], [0.5, 1.0]])
def test_decision_rules_json_equals_object(labels: list[Any]) -> None:
    theirs = classifier(3, labels)
    assert read_quietly(as_text(theirs)) == read(theirs)
    assert read_quietly(as_text(theirs)).classes == tuple(sorted(labels))


def test_decision_rules_on_iris_keep_weights_and_counts() -> None:
    X, y = load_iris(return_X_y=True, as_frame=True)
    premises = [
        ([ElementaryCondition(2, right=2.45)], 0),
        ([ElementaryCondition(2, left=2.45), ElementaryCondition(3, right=1.7)], 1),
        ([ElementaryCondition(3, left=1.7, left_closed=True)], 2),
        ([ElementaryCondition(2, left=4.85, left_closed=True)], 2),
    ]
    theirs = ClassificationRuleSet(
        [
            ClassificationRule(
                CompoundCondition(conditions), ClassificationConclusion(label, "y"), list(X.columns)
            )
            for conditions, label in premises
        ]
    )
    theirs.update(X, y, measures.correlation)
    ours = read(theirs)
    assert ours.predict(X).tolist() == theirs.predict(X).tolist()
    assert [rule.weight for rule in ours] == [rule.voting_weight for rule in theirs.rules]
    assert ours[0].statistics.class_counts == (50, 0, 0)
    assert [rule.statistics.n_rows for rule in ours] == ours.match(X).sum(axis=0).tolist()
    assert ours[1].statistics.class_counts is None  # the counts by class are not written


def test_decision_rules_on_diabetes_keep_means_and_deviations() -> None:
    X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    theirs = RegressionRuleSet(
        [
            RegressionRule(
                CompoundCondition([ElementaryCondition(column, left, right, True, False)]),
                RegressionConclusion(100.0, "target", low=0.0, high=400.0),
                list(X.columns),
            )
            for column, left, right in [(2, 24.0, 30.0), (8, -np.inf, 4.5), (3, 100.0, np.inf)]
        ]
    )
    theirs.update(X, y, measures.precision)
    ours = read(theirs)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), rtol=1e-12)
    uncovered = X[~ours.covers(X)]
    assert set(ours.predict(uncovered)) == {y.median()}
    for rule, rows in zip(ours, ours.match(X).T, strict=True):
        assert rule.statistics.n_rows == rows.sum()
        assert rule.statistics.mean == pytest.approx(y[rows].mean())
        assert rule.statistics.standard_deviation == pytest.approx(y[rows].std(ddof=0))


def test_decision_rules_warn_about_rules_of_weight_0() -> None:
    always, red = ElementaryCondition(0, right=99.0), NominalCondition(3, "red")
    theirs = small([(always, "yes"), (red, "yes")], measures.correlation)
    assert theirs.rules[0].voting_weight == 0
    with pytest.warns(UserWarning, match="voting_weight 0 are left out \\(1\\)"):
        ours = as_ruleset(theirs)
    X = frame(300, 5)
    assert len(ours) == 1
    assert ours.predict(X).tolist() == theirs.predict(X).tolist()


def test_decision_rules_reject_negative_weights_if_ambiguous() -> None:
    red, blue = NominalCondition(3, "red"), NominalCondition(3, "green")
    theirs = small([(red, "no"), (red, "yes"), (blue, "yes")], measures.correlation)
    assert theirs.rules[0].voting_weight < 0
    X = frame(300, 5)
    assert as_ruleset(theirs).predict(X).tolist() == theirs.predict(X).tolist()
    # No rule predicts "yes", which would win with a sum of 0 here, but not in decision-rules.
    with pytest.raises(ValueError, match="voting_weight -"):
        as_ruleset(small([(red, "no")], measures.correlation))
    with pytest.raises(ValueError, match="voting_weight -"):
        as_ruleset(theirs, strategy="best_rule")
    theirs.set_prediction_strategy(FirstRuleCoveringStrategy)
    assert as_ruleset(theirs).predict(X).tolist() == theirs.predict(X).tolist()


@pytest.mark.parametrize(
    "bounds", [(0.0, 0.5), (0.0, np.inf), (-0.5, 0.0), (-np.inf, 0.0), (-0.5, 0.5)]
)
def test_decision_rules_read_zero_bounds_as_evaluated(bounds: tuple[float, float]) -> None:
    condition = ElementaryCondition(0, *bounds, True, False)
    theirs = small([(condition, "yes")])
    theirs.rules[0].voting_weight = 1.0
    theirs.default_conclusion = ClassificationConclusion("no", "kind")
    X = frame(5, 0)
    X["length"] = [-1.0, -0.25, 0.25, 1.0, np.nan]
    hit = 0.0 in bounds and bounds[0] > -np.inf
    if hit:
        with pytest.warns(UserWarning, match="ignores a lower bound if a bound is 0"):
            ours = as_ruleset(theirs)
    else:
        ours = as_ruleset(theirs)
    assert ours.predict(X).tolist() == [str(v)[:3] for v in theirs.predict(X)]
    written = as_ruleset(theirs, zero_bounds="written").covers(X).tolist()
    assert written == [bounds[0] <= x < bounds[1] for x in X["length"]]
    assert (written != ours.covers(X).tolist()) == hit


def test_decision_rules_categories_set_types_of_values() -> None:
    X = pd.DataFrame({"gender": [0, 1, 1, 0], "age": [30.0, 40.0, 50.0, 60.0]})
    y = pd.Series(["a", "b", "b", "b"], name="y")
    rule = ClassificationRule(
        CompoundCondition([NominalCondition(0, "1.0")]),
        ClassificationConclusion("b", "y"),
        list(X.columns),
    )
    theirs = ClassificationRuleSet([rule])
    theirs.update(X, y, measures.precision)
    theirs.default_conclusion = ClassificationConclusion("a", "y")
    ours = as_ruleset(theirs, categories={"gender": [0.0, 1.0]})
    assert ours.predict(X).tolist() == theirs.predict(X).tolist() == ["a", "b", "b", "a"]
    with pytest.warns(UserWarning, match="gender = '1.0'"):
        texts = as_ruleset(theirs)
    with pytest.warns(UserWarning, match=r"strings such as '1\.0', but it holds numbers such as 0"):
        assert not texts.covers(X).any()
    with pytest.raises(ValueError, match=r"is not str\(value\) of any of the categories"):
        as_ruleset(theirs, categories={"gender": [0, 1]})


def test_decision_rules_keep_type_of_numbers_in_sets() -> None:
    X = pd.DataFrame({"gender": [0, 1, 2, 0], "age": [30.0, 40.0, 50.0, 60.0]})
    y = pd.Series(["a", "b", "b", "b"], name="y")
    rule = ClassificationRule(
        CompoundCondition([DiscreteSetCondition(0, {1, 2})]),
        ClassificationConclusion("b", "y"),
        list(X.columns),
    )
    theirs = ClassificationRuleSet([rule])
    theirs.update(X, y, measures.precision)
    theirs.default_conclusion = ClassificationConclusion("a", "y")
    ours = as_ruleset(theirs)
    assert ours.predict(X).tolist() == theirs.predict(X).tolist() == ["a", "b", "b", "a"]
    assert theirs.rules[0].premise.subconditions[0].values_set == {1, 2}


def test_decision_rules_abstain_without_default() -> None:
    theirs = small([(NominalCondition(3, "red"), "yes"), (NominalCondition(3, "green"), "no")])
    theirs.set_default_conclusion_enabled(False)
    X = frame(100, 2)
    assert as_ruleset(theirs).predict(X).tolist() == theirs.predict(X).tolist()
    assert "" in theirs.predict(X)


def test_decision_rules_default_to_most_frequent_class() -> None:
    theirs = small([(NominalCondition(3, "red"), "yes")])
    data = JSONSerializer.serialize(theirs)
    del data["meta"]["default_conclusion"]
    back = JSONSerializer.deserialize(data, ClassificationRuleSet)
    assert back.default_conclusion.value == "no"
    assert read_decision_rules(data).fallback.output == "no"


def test_decision_rules_minimal_json_has_no_weights() -> None:
    theirs = classifier(3, ["a", "b"])
    data = JSONSerializer.serialize(theirs, mode="minimal")
    with pytest.raises(ValueError, match=r"has no voting_weight.*update"):
        read_decision_rules(data)
    theirs.set_prediction_strategy(FirstRuleCoveringStrategy)
    X = frame(500, 9)
    ours = read_decision_rules(data, strategy="first")
    assert ours.predict(X).tolist() == theirs.predict(X).tolist()


def test_decision_rules_keep_prediction_strategy() -> None:
    theirs = small([(NominalCondition(3, "red"), "yes"), (NominalCondition(3, "green"), "no")])
    for strategy, voting in [
        (VotingPredictionStrategy, "votes"),
        (BestRulePredictionStrategy, None),
    ]:
        theirs.set_prediction_strategy(strategy)
        assert as_ruleset(theirs).voting == voting

    class Other(VotingPredictionStrategy):
        pass

    theirs.set_prediction_strategy(Other)
    with pytest.raises(ValueError, match=r"strategy must be .* got 'Other'"):
        as_ruleset(theirs)


def test_decision_rules_reject_unsupported_rules() -> None:
    negated = CompoundCondition([NominalCondition(3, "red"), NominalCondition(4, "round")])
    negated.negated = True
    for condition, fault in [
        (negated, "negated compound"),
        (NominalAttributesEqualityCondition([3, 4]), "nominal_attributes_equality"),
        (CompoundCondition([]), "never holds"),
        (ElementaryCondition(0, 3.0, 2.0), "No number lies between"),
    ]:
        theirs = small([(condition, "yes"), (NominalCondition(3, "red"), "yes")])
        with pytest.raises(ValueError, match=f"rule 1: .*{fault}"):
            as_ruleset(theirs)
    with pytest.raises(ValueError, match="SurvivalRuleSet"):
        as_ruleset(SurvivalRuleSet([], "time"))
