"""Measures of single rules as scores of rule sets, and effects of a selection on other scores."""

from __future__ import annotations

import copy
import math
import pickle
import statistics
from typing import Any

import numpy as np
import optuna
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.datasets import load_diabetes, load_iris
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from skescore.extractors import CARTExtractor
from skescore.metrics import (
    RULE_MEASURES,
    RuleMeasure,
    fire_score,
    ice_score,
    rule_quality,
    volume_completeness,
)
from skescore.rules import Domain, Fallback, Interval, Rule, RuleSet, as_ruleset
from skescore.scorers import evaluate_rules, get_rule_scorer, ice, make_rule_scorer, neg_fire
from skescore.selection import prune, select_rules, selection_effect, significant_rules
from skescore.tuning import ExtractorSearchCV

IRIS = load_iris(as_frame=True)
X_IRIS, Y_IRIS = IRIS.data[::2], IRIS.target[::2]
LEAVES = as_ruleset(DecisionTreeClassifier(max_depth=4, random_state=0).fit(X_IRIS, Y_IRIS))

RULES = RuleSet(
    [Rule([Interval(0, upper=2)], "low"), Rule([Interval(0, lower=1)], "high")],
    ["length"],
    task="classification",
    ordered=True,
    domain=Domain((0,), (4,)),
    fallback=Fallback("low"),
)
X = np.array([[0.5], [1.5], [2.5], [3.5], [3.75]])
Y = np.array(["low", "low", "high", "low", "high"])
# First rule: p 2, n 0, P 3, N 2; second rule: p 2, n 2, P 2, N 3.
PRECISIONS, ROWS = (1.0, 0.5), (2, 4)


def counts_of(rules: RuleSet, X: Any, y: Any) -> list[tuple[int, int, int, int]]:
    """Return p, n, P and N of every rule, counted row by row."""
    result = []
    matches = rules.match(X)
    for index, rule in enumerate(rules):
        right = [label == rule.output for label in y]
        holds = [bool(flag) for flag in matches[:, index]]
        p = sum(r and h for r, h in zip(right, holds, strict=True))
        result.append((p, sum(holds) - p, sum(right), len(right) - sum(right)))
    return result


# --- values --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("aggregate", "expected"),
    [
        ("mean", 0.75),
        ("min", 0.5),
        ("median", 0.75),
        ("max", 1.0),
        ("weighted", (1.0 * 2 + 0.5 * 4) / 6),
        (math.prod, 0.5),
    ],
)
def test_rule_scorer_aggregates_equal_hand_computed_values(aggregate: Any, expected: float) -> None:
    value = make_rule_scorer("precision", aggregate=aggregate)(RULES, X, Y)
    assert value == pytest.approx(expected)
    assert type(value) is float


@given(measure=st.sampled_from(sorted(RULE_MEASURES)), seed=st.integers(0, 2**32 - 1))
def test_rule_scorer_agrees_with_rule_quality(measure: str, seed: int) -> None:
    rows = np.random.default_rng(seed).integers(0, len(X_IRIS), 40)
    some, labels = X_IRIS.iloc[rows], Y_IRIS.iloc[rows]
    counts = counts_of(LEAVES, some, labels)
    values = [rule_quality(measure, *each, undefined=-2.0) for each in counts]
    for aggregate, oracle in [
        ("mean", statistics.fmean),
        ("min", min),
        ("max", max),
        ("median", statistics.median),
    ]:
        scorer = make_rule_scorer(measure, aggregate=aggregate, undefined=-2.0)
        assert scorer(LEAVES, some, labels) == pytest.approx(oracle(values), rel=1e-9, abs=1e-12)
    # A weighted mean needs no value for rules without rows.
    covered = [p + n for p, n, _, _ in counts]
    total = sum(v * c for v, c in zip(values, covered, strict=True) if c) / sum(covered)
    weighted = make_rule_scorer(measure, aggregate="weighted", undefined=-2.0)
    assert weighted(LEAVES, some, labels) == pytest.approx(total, rel=1e-9, abs=1e-12)


def test_rule_scorer_passes_parameters() -> None:
    one, two = (make_rule_scorer("f_measure", beta=b)(RULES, X, Y) for b in (1, 2))
    assert one == pytest.approx((2 * 2 / (3 + 2) + 2 * 2 / (2 + 4)) / 2)
    assert one != two
    assert make_rule_scorer("f_measure")(RULES, X, Y) == two


def test_rule_scorer_counts_assigned_rows() -> None:
    # After the first rule, the rows 2.5, 3.5 and 3.75 are left to the second one.
    scorer = make_rule_scorer("precision", assigned=True)
    assert scorer(RULES, X, Y) == pytest.approx((1 + 2 / 3) / 2)


def test_rule_scorer_weights_equal_repetitions() -> None:
    times = np.array([1, 3, 2, 1, 2])
    for aggregate in ("mean", "weighted"):
        scorer = make_rule_scorer("c2", aggregate=aggregate)
        repeated = scorer(RULES, np.repeat(X, times, axis=0), np.repeat(Y, times))
        assert scorer(RULES, X, Y, sample_weight=times) == pytest.approx(repeated)


def errors(counts: Any) -> Any:
    return counts.n / counts.total


ERRORS = RuleMeasure(
    "errors", errors, "n / T", "[0, 1]", lambda P, N: (0, 1), greater_is_better=False
)


def test_rule_scorer_negates_losses() -> None:
    scorer = make_rule_scorer(ERRORS, aggregate="min")
    assert scorer(RULES, X, Y) == -2 / 5
    assert make_rule_scorer(ERRORS, aggregate="max")(RULES, X, Y) == 0
    assert scorer.name == "neg_min_rule_errors"


def test_rule_scorer_accepts_numbers_within_one_deviation() -> None:
    rules = RuleSet(
        [Rule([Interval(0, upper=2)], 10.0), Rule([Interval(0, lower=2)], 20.0)],
        ["x"],
        task="regression",
    )
    X, y = [[0.0], [1.0], [3.0], [4.0]], [9.0, 11.0, 20.0, 24.0]
    # The spreads are 1 and 2: they include both rows of the first rule, and one of the second.
    assert make_rule_scorer("precision")(rules, X, y) == pytest.approx((1 + 1 / 2) / 2)


# --- undefined values ----------------------------------------------------------------------------

SPARE = RULES.replace(rules=[*RULES, Rule([Interval(0, lower=9)], "high")])


def test_rule_scorer_warns_about_rules_without_rows() -> None:
    why = r"precision is undefined: 1 of 3 rules have no value on these 5 rows.*undefined=..."
    with pytest.warns(UndefinedMetricWarning, match=why):
        assert math.isnan(make_rule_scorer("precision")(SPARE, X, Y))
    # Here, a warning would fail the test.
    assert make_rule_scorer("precision", undefined=0)(SPARE, X, Y) == pytest.approx(0.5)
    assert make_rule_scorer("precision", undefined=-math.inf)(SPARE, X, Y) == -math.inf
    weighted = make_rule_scorer("precision", aggregate="weighted")
    assert weighted(SPARE, X, Y) == weighted(RULES, X, Y)
    odd = {"odd": lambda p, n, P, N: p * math.nan}
    with pytest.warns(UndefinedMetricWarning, match="odd is undefined: 2 of 3 rules have no val"):
        assert math.isnan(make_rule_scorer(odd, aggregate="weighted")(SPARE, X, Y))
    few = [Rule([Interval(0, upper=0)], "low"), Rule([Interval(0, lower=0)], "high")]
    of_three = RULES.replace(rules=few), [[0.0], [1.0], [2.0]], ["low", "high", "low"]
    assert weighted(*of_three) == pytest.approx((1 * 1 + 2 * 0.5) / 3)


def test_rule_scorer_warns_without_rules_or_covered_rows() -> None:
    none = RULES.replace(rules=[])
    with pytest.warns(UndefinedMetricWarning, match="There are no rules, so c2 is undefined"):
        assert math.isnan(make_rule_scorer()(none, X, Y))
    assert make_rule_scorer(undefined=-1)(none, X, Y) == -1
    nowhere = RULES.replace(rules=[SPARE[2]])
    with pytest.warns(UndefinedMetricWarning, match="1 of 1 rules have no value"):
        assert math.isnan(make_rule_scorer("precision")(nowhere, X, Y))
    with pytest.warns(UndefinedMetricWarning, match="no rule covers any of these 5 rows"):
        assert math.isnan(make_rule_scorer(aggregate="weighted")(nowhere, X, Y))


# --- scikit-learn and other callers --------------------------------------------------------------


def test_rule_scorer_works_in_grid_search() -> None:
    scorer = make_rule_scorer("c2", aggregate="min", undefined=-1.0, assigned=True)
    search = GridSearchCV(
        CARTExtractor(KNeighborsClassifier(5), random_state=0),
        {"max_leaf_nodes": [3, 8]},
        scoring=scorer,
        cv=3,
        error_score="raise",
    ).fit(X_IRIS, Y_IRIS)
    best = search.best_estimator_
    # Some of eight leaves fit noise.
    assert search.best_params_ == {"max_leaf_nodes": 3}
    assert scorer(search, X_IRIS, Y_IRIS) == scorer(best.rules_, X_IRIS, Y_IRIS)


@pytest.mark.slow
def test_rule_scorer_works_in_studies_and_extractor_search() -> None:
    scorer = make_rule_scorer("precision", aggregate="weighted", assigned=True)
    extractor = CARTExtractor(KNeighborsClassifier(5), random_state=0)

    def objective(trial: optuna.Trial) -> float:
        leaves = trial.suggest_int("max_leaf_nodes", 3, 6)
        candidate = clone(extractor).set_params(max_leaf_nodes=leaves)
        return float(cross_val_score(candidate, X_IRIS, Y_IRIS, scoring=scorer, cv=3).mean())

    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.RandomSampler(seed=0))
    study.optimize(objective, n_trials=4)
    # If one rule covers each row, the precision weighted by rows equals the accuracy.
    accuracies = [
        cross_val_score(clone(extractor).set_params(**trial.params), X_IRIS, Y_IRIS, cv=3).mean()
        for trial in study.trials
    ]
    assert [trial.value for trial in study.trials] == pytest.approx(accuracies)
    search = ExtractorSearchCV(
        KNeighborsClassifier(5),
        extractors=("cart",),
        n_trials=3,
        cv=3,
        random_state=0,
        scoring=scorer,
    ).fit(X_IRIS, Y_IRIS)
    assert search.best_score_ == search.leaderboard_["score"].max()
    assert search.score(X_IRIS, Y_IRIS) == scorer(search.rules_, X_IRIS, Y_IRIS)


def test_prune_accepts_rule_scorers() -> None:
    X_rows, y = X_IRIS.to_numpy(), Y_IRIS.to_numpy()
    scorer = make_rule_scorer("c2", undefined=-1.0)
    rules = LEAVES.replace(domain=Domain.around(X_rows))
    fewer = prune(rules, X_rows, y, scorer)
    assert scorer(fewer, X_rows, y) > scorer(rules, X_rows, y)
    assert len(fewer) < len(rules)
    assert prune(rules, X_rows, y, "mean_rule_sensitivity", max_steps=1) != rules


def test_rule_scorer_accepts_pipelines() -> None:
    tree = DecisionTreeClassifier(max_depth=2, random_state=0)
    rows = X_IRIS.to_numpy()
    scaled = make_pipeline(StandardScaler(), tree).fit(rows, Y_IRIS)
    plain = DecisionTreeClassifier(max_depth=2, random_state=0).fit(rows, Y_IRIS)
    scorer = make_rule_scorer("correlation")
    assert scorer(scaled, rows, Y_IRIS) == pytest.approx(scorer(plain, rows, Y_IRIS))


def test_rule_scorer_reads_frames_by_name() -> None:
    scorer = make_rule_scorer()
    reversed_columns = X_IRIS[X_IRIS.columns[::-1]]
    assert scorer(LEAVES, reversed_columns, Y_IRIS) == scorer(LEAVES, X_IRIS, Y_IRIS)


def test_rule_scorer_measures_fidelity_without_y() -> None:
    model = CARTExtractor(KNeighborsClassifier(5), max_leaf_nodes=3, random_state=0)
    model.fit(X_IRIS, Y_IRIS)
    scorer = make_rule_scorer("precision", reference="black_box")
    answers = model.oracle_.query(X_IRIS)
    assert scorer(model, X_IRIS) == make_rule_scorer("precision")(model, X_IRIS, answers)


def test_rule_scorer_rejects_transformed_target() -> None:
    rows, y = load_diabetes(return_X_y=True)
    inner = CARTExtractor(LinearRegression(), max_leaf_nodes=4, random_state=0)
    model = TransformedTargetRegressor(inner, func=np.log, inverse_func=np.exp).fit(rows, y)
    scorer = make_rule_scorer("precision")
    with pytest.raises(
        ValueError, match=r"other units than the rules: .*score the inner regressor"
    ):
        scorer(model, rows, y)
    assert 0 < scorer(model.regressor_, rows, np.log(y)) < 1
    # This also holds if one leaf predicts the same in both units: the root of 1 is 1.
    few, ones = np.arange(9.0)[:, None], np.repeat([1.0, 9.0, 25.0], 3)
    roots = TransformedTargetRegressor(
        CARTExtractor(DecisionTreeRegressor(), random_state=0), func=np.sqrt, inverse_func=np.square
    ).fit(few, ones)
    assert roots.regressor_.predict(few).tolist() == [1] * 3 + [3] * 3 + [5] * 3
    with pytest.raises(ValueError, match=r"the rules predict 3.0, but the estimator predicts 9.0"):
        scorer(roots, few, ones)
    plain = DecisionTreeRegressor(max_leaf_nodes=4, random_state=0).fit(rows, y)
    assert 0 < scorer(plain, rows, y) < 1


def test_rule_scorer_can_be_copied_pickled_and_cloned() -> None:
    scorer = make_rule_scorer("m_estimate", aggregate="weighted", m=5.0)
    for other in (
        copy.deepcopy(scorer),
        pickle.loads(pickle.dumps(scorer)),
        clone(scorer, safe=False),
    ):
        assert other(RULES, X, Y) == scorer(RULES, X, Y)
        assert repr(other) == repr(scorer)
    assert repr(scorer) == (
        "weighted_rule_m_estimate(measure='m_estimate', aggregate='weighted', assigned=False, "
        "undefined=nan, parameters={'m': 5.0}, reference='data')"
    )
    assert "measure=errors, aggregate=prod," in repr(make_rule_scorer(ERRORS, aggregate=math.prod))
    assert pickle.loads(pickle.dumps(make_rule_scorer(RULE_MEASURES["c2"])))(RULES, X, Y) == (
        make_rule_scorer("c2")(RULES, X, Y)
    )
    evaluation = evaluate_rules(RULES, X, Y)
    assert scorer.score(evaluation) == scorer(RULES, X, Y)
    assert not scorer.gives_dict


def test_rule_scorer_accepts_functions() -> None:
    own = {"net": lambda p, n, P, N: p - n + P / 10 + N / 100}
    scorer = make_rule_scorer(own, aggregate="max")
    assert scorer(RULES, X, Y) == pytest.approx(2 + 0.3 + 0.02)
    assert scorer.name == "max_rule_net"
    assert scorer.settings["measure"].bounds(3, 2) == (-math.inf, math.inf)
    for wrong in ({}, {"a": max, "b": min}, {"a": 3}, {1: max}):
        with pytest.raises(TypeError, match=r"measure must be .* with one name"):
            make_rule_scorer(wrong)
    with pytest.raises(ValueError, match="The measure of single rules is 'mean_rule_c2"):
        get_rule_scorer("c2")


@pytest.mark.parametrize("name", ["mean_rule_c2", "min_rule_lift", "weighted_rule_rule_interest"])
def test_get_rule_scorer_accepts_names_of_rule_measures(name: str) -> None:
    assert get_rule_scorer(name).name == name
    how, _, measure = name.partition("_rule_")
    assert get_rule_scorer(name)(RULES, X, Y) == make_rule_scorer(measure, aggregate=how)(
        RULES, X, Y
    )


@pytest.mark.parametrize(
    ("arguments", "kind", "message"),
    [
        ({"measure": "presicion"}, ValueError, "no measure of rules 'presicion'. Did you mean"),
        ({"measure": None}, ValueError, "no measure of rules None"),
        ({"aggregate": "sum"}, ValueError, "aggregate must be one of 'mean', .* got 'sum'"),
        ({"aggregate": ["mean"]}, ValueError, r"aggregate must be one of .* got \['mean'\]"),
        ({"reference": "truth"}, ValueError, "reference must be one of 'data', 'black_box', got"),
        ({"assigned": "no"}, TypeError, "assigned must be True or False, got 'no'"),
        ({"undefined": None}, TypeError, "undefined must be a number, got None"),
        ({"beta": 2}, TypeError, "'c2' has no parameter 'beta'"),
        ({"measure": "f_measure", "beta": -1}, ValueError, "beta must be"),
        ({"measure": "f_measure", "beta": [1, 2]}, TypeError, "must be single numbers"),
    ],
)
def test_make_rule_scorer_rejects_invalid_arguments(
    arguments: dict[str, Any], kind: type[Exception], message: str
) -> None:
    with pytest.raises(kind, match=message):
        make_rule_scorer(**arguments)


def test_rule_scorer_rejects_invalid_names_and_aggregates() -> None:
    with pytest.raises(ValueError, match="no measure of rules 'c3'"):
        get_rule_scorer("mean_rule_c3")
    with pytest.raises(ValueError, match="no score 'sum_rule_c2'"):
        get_rule_scorer("sum_rule_c2")
    with pytest.raises(TypeError, match=r"aggregate must return one number .* sorted returned \["):
        make_rule_scorer(aggregate=sorted)(RULES, X, Y)


# --- the effect of a selection -------------------------------------------------------------------


def test_selection_effect_equals_hand_computed_values() -> None:
    fewer = select_rules(RULES, X, Y, "precision", 0.8)
    effect = selection_effect(RULES, fewer, X, Y)
    assert list(effect.columns) == ["before", "after", "change"]
    after = effect["after"]
    assert (after["n_rules"], after["n_conditions"]) == (1, 1)
    assert after["completeness_volume"] == 0.5
    assert after["completeness_instances"] == 2 / 5
    # The two rows of the rule are correct; the other three count as wrong in FiRe.
    assert after["fire"] == pytest.approx(fire_score(3 / 5, 1))
    assert after["ice"] == pytest.approx(ice_score(1.0, 1, 0.5))
    assert after["q"] == 0
    before = effect["before"]
    assert before["ice"] == ice(RULES, X, Y)
    assert before["fire"] == -neg_fire(RULES, X, Y)
    pd.testing.assert_series_equal(effect["change"], after - before, check_names=False)


def test_selection_effect_passes_settings_and_weights() -> None:
    weights = [1, 1, 4, 1, 4]
    effect = selection_effect(
        RULES, RULES, X, Y, sample_weight=weights, psi=2, completeness="instances"
    )
    assert effect.loc["fire", "before"] == pytest.approx(fire_score(1 / 11, 2, psi=2))
    assert (effect["change"] == 0).all()


def test_selection_effect_uses_one_domain() -> None:
    # In its own domain, the rule would cover everything.
    fewer = RULES.replace(rules=RULES.rules[:1], domain=Domain((0,), (2,)))
    assert float(volume_completeness(fewer)) == 1
    assert selection_effect(RULES, fewer, X, Y).loc["completeness_volume", "after"] == 0.5
    # Rules without a domain are measured in the box around the rows.
    effect = selection_effect(RULES.replace(domain=None), fewer, X, Y)
    expected = volume_completeness(fewer.replace(domain=RULES.domain_around(X)))
    assert effect.loc["completeness_volume", "after"] == float(expected)
    assert float(expected) == pytest.approx(1.5 / 3.25)


def test_selection_effect_is_undefined_without_rules() -> None:
    rng = np.random.default_rng(0)
    rows, labels = rng.random((60, 1)), rng.choice(["a", "b"], 60)
    rules = RuleSet(
        [Rule([Interval(0, k / 4, (k + 1) / 4)], "ab"[k % 2]) for k in range(4)],
        ["x"],
        task="classification",
        fallback=Fallback("b"),
    )
    none = significant_rules(rules, rows, labels)
    assert len(none) == 0
    with pytest.warns(UndefinedMetricWarning, match="There are no rules"):
        effect = selection_effect(rules, none, rows, labels)
    assert effect["after"].isna()[["ice", "fire", "q"]].all()
    assert effect.loc["n_rules", "change"] == -4
    filled = selection_effect(rules, none, rows, labels, undefined=0.0)
    assert filled.loc["ice", "after"] == 0


def test_selection_effect_rejects_other_rules() -> None:
    other = RuleSet([Rule([], 1.0)], ["length"], task="regression")
    rules = RuleSet([Rule([], "low")], ["width"], task="classification")
    with pytest.raises(ValueError, match="the same task, got 'classification' and 'regression'"):
        selection_effect(RULES, other, X, Y)
    with pytest.raises(ValueError, match=r"the same feature_names, got \('length',\) and"):
        selection_effect(RULES, rules, X, Y)
    with pytest.raises(TypeError, match="after must be a RuleSet, got"):
        selection_effect(RULES, list(RULES), X, Y)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="accepts no reference, got 'black_box'"):
        selection_effect(RULES, RULES, X, Y, reference="black_box")
