"""Scorers compared with formulas computed by hand, and rejected arguments."""

from __future__ import annotations

import inspect
import math
import warnings
from dataclasses import replace
from fractions import Fraction
from math import exp, nan
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import __version__ as sklearn_version
from sklearn import metrics as sk
from sklearn.base import BaseEstimator, clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import BaggingClassifier
from sklearn.exceptions import NotFittedError, UndefinedMetricWarning
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor, ExtraTreeClassifier
from sklearn.utils.fixes import parse_version

from skescore.black_boxes import CallableClassifier, CallableRegressor
from skescore.certificates import certify
from skescore.extractors import CARTExtractor, GridExExtractor
from skescore.metrics import PREDICTION_METRICS, count_rows, fidelity, rule_report
from skescore.optimal import SearchSpace, bound_f1_of_trees, optimal_lists, optimal_trees
from skescore.rules import Domain, Fallback, Interval, LinearOutput, OneOf, Rule, RuleSet
from skescore.scorers import (
    SCORERS,
    RuleScorer,
    evaluate_rules,
    get_rule_scorer,
    ice,
    knowledge,
    make_fire_scorer,
    make_ice_scorer,
    make_knowledge_scorer,
    make_q_scorer,
    neg_fire,
    neg_q,
)
from skescore.selection import prune, select_rules
from skescore.tuning import ExtractorSearchCV

# Volume: 1/4, and half of another 1/4. 3 conditions, one of them two-sided: 4 literals.
CLASSES = RuleSet(
    [
        Rule([Interval(0, upper=1)], "a"),
        Rule([Interval(0, lower=1, upper=2), Interval(1, lower=0.5)], "b"),
    ],
    ["x", "z"],
    task="classification",
    domain=Domain((0, 0), (4, 1)),
    fallback=Fallback("b"),
)
X_CLASSES = np.array([[0.5, 0.1], [0.9, 0.9], [1.5, 0.9], [1.5, 0.1], [3.0, 0.5]])
# Rules predict a, a, b; the fallback predicts the last two rows, one of them correctly.
Y_CLASSES = np.array(["a", "b", "b", "a", "b"])
COVERED_F1, ALL_F1 = 2 / 3, 1 / 2  # the same for a and b

NUMBERS = RuleSet(
    [Rule([Interval(0, upper=1)], 10.0), Rule([Interval(0, lower=1, upper=2)], 20.0)],
    ["x"],
    task="regression",
    domain=Domain((0,), (4,)),
    fallback=Fallback(12.0),
)
X_NUMBERS = np.array([[0.5], [1.5], [1.9], [3.0]])
Y_NUMBERS = np.array([11.0, 19.0, 24.0, 15.0])  # errors 1, 1, 4, and 3 of the fallback
COVERED_R2 = 1 - 18 / 86


def fire(loss: float, size: float, psi: float = 1.0) -> float:
    return -loss * math.ceil(size / psi) * size**0.05


def q(loss: float, size: float, completeness: float) -> float:
    return -loss * size * (2 - completeness)


def ice_by_hand(
    performance: float, size: float, completeness: float, phi: float = 1.0, rho: float = 1.0
) -> float:
    quality = 1 / (1 + exp(5 * (phi * (1 - performance) - 1)))
    return quality / (1 + exp(0.3 * rho * size - 5)) * completeness


def twice(rules: RuleSet) -> float:
    return 2.0 * len(rules)


def share_of_rows_below_2(rules: RuleSet, X: Any) -> float:
    return float(np.mean(np.asarray(X)[:, 0] < 2))


def half_off(y_true: Any, y_pred: Any, sample_weight: Any = None) -> float:
    return 0.5


# --- formulas ------------------------------------------------------------------------------------

CLASSIFICATION = [
    (neg_fire, fire(3 / 5, 2)),
    (make_fire_scorer(psi=2), fire(3 / 5, 2, psi=2)),
    (make_fire_scorer(uncovered="ignore"), fire(1 / 3, 2)),
    (make_fire_scorer(loss="f1_macro"), fire(1 - ALL_F1, 2)),
    (make_fire_scorer(loss=half_off), fire(0.5, 2)),
    (make_fire_scorer(loss=sk.zero_one_loss), fire(3 / 5, 2)),
    (make_fire_scorer(size="rules"), fire(3 / 5, 2)),
    (make_fire_scorer(size="conditions"), fire(3 / 5, 3)),
    (make_fire_scorer(size="literals"), fire(3 / 5, 4)),
    (make_fire_scorer(size=twice, psi=3), fire(3 / 5, 4, psi=3)),
    (neg_q, q(1 - COVERED_F1, 2, 3 / 8)),
    (make_q_scorer(uncovered="penalize"), q(1 - ALL_F1, 2, 3 / 8)),
    (make_q_scorer(completeness="volume"), q(1 / 3, 2, 3 / 8)),
    (make_q_scorer(completeness="instances"), q(1 / 3, 2, 3 / 5)),
    (make_q_scorer(completeness=share_of_rows_below_2), q(1 / 3, 2, 4 / 5)),
    (make_q_scorer(loss=half_off, size="literals"), q(0.5, 4, 3 / 8)),
    (ice, ice_by_hand(COVERED_F1, 2, 3 / 8)),
    (make_ice_scorer(phi=2.5, rho=0.5), ice_by_hand(2 / 3, 2, 3 / 8, phi=2.5, rho=0.5)),
    (make_ice_scorer(3, 2), ice_by_hand(2 / 3, 2, 3 / 8, phi=3, rho=2)),
    (make_ice_scorer(uncovered="penalize"), ice_by_hand(ALL_F1, 2, 3 / 8)),
    (make_ice_scorer(completeness="instances"), ice_by_hand(2 / 3, 2, 3 / 5)),
    (make_ice_scorer(completeness=share_of_rows_below_2), ice_by_hand(2 / 3, 2, 4 / 5)),
    (make_ice_scorer(size="conditions"), ice_by_hand(2 / 3, 3, 3 / 8)),
    (make_ice_scorer(size=twice), ice_by_hand(2 / 3, 4, 3 / 8)),
    (make_ice_scorer(performance=half_off), ice_by_hand(0.5, 2, 3 / 8)),
]
REGRESSION = [
    (neg_fire, fire((1 + 1 + 4 + 3) / 4, 2)),
    (make_fire_scorer(uncovered="ignore"), fire(6 / 3, 2)),
    (make_fire_scorer(loss="root_mean_squared_error"), fire(math.sqrt(27 / 4), 2)),
    (make_fire_scorer(loss="neg_mean_absolute_error"), fire(9 / 4, 2)),
    (make_fire_scorer(size="literals"), fire(9 / 4, 3)),
    (neg_q, q(6 / 3, 2, 1 / 2)),
    (make_q_scorer(uncovered="penalize"), q(9 / 4, 2, 1 / 2)),
    (make_q_scorer(loss="r2", completeness="instances"), q(18 / 86, 2, 3 / 4)),
    (ice, ice_by_hand(COVERED_R2, 2, 1 / 2)),
    (make_ice_scorer(phi=0.2, rho=3), ice_by_hand(COVERED_R2, 2, 1 / 2, phi=0.2, rho=3)),
    (make_ice_scorer(performance=half_off), ice_by_hand(0.5, 2, 1 / 2)),
]


@pytest.mark.parametrize(("scorer", "expected"), CLASSIFICATION, ids=repr)
def test_scorer_of_classes_equals_hand_computed_values(scorer: RuleScorer, expected: float) -> None:
    assert scorer(CLASSES, X_CLASSES, Y_CLASSES) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(("scorer", "expected"), REGRESSION, ids=repr)
def test_scorer_of_numbers_equals_hand_computed_values(scorer: RuleScorer, expected: float) -> None:
    assert scorer(NUMBERS, X_NUMBERS, Y_NUMBERS) == pytest.approx(expected, rel=1e-12)


SKLEARN = {
    "accuracy": sk.accuracy_score,
    "balanced_accuracy": sk.balanced_accuracy_score,
    "f1_weighted": lambda *labels: sk.f1_score(*labels, average="weighted"),
    "f1_macro": lambda *labels: sk.f1_score(*labels, average="macro"),
    "r2": sk.r2_score,
    "mean_absolute_error": sk.mean_absolute_error,
    "mean_squared_error": sk.mean_squared_error,
    "root_mean_squared_error": sk.root_mean_squared_error,
    "median_absolute_error": sk.median_absolute_error,
}


@pytest.mark.parametrize("name", PREDICTION_METRICS)
def test_scorer_on_covered_rows_uses_scikit_learn_metrics(name: str) -> None:
    if PREDICTION_METRICS[name].tasks == ("classification",):
        rules, X, y, answers, share = CLASSES, X_CLASSES, Y_CLASSES, ["a", "a", "b"], 3 / 8
    else:
        rules, X, y, answers, share = NUMBERS, X_NUMBERS, Y_NUMBERS, [10, 20, 20], 1 / 2
    value = SKLEARN[name](y[:3], answers)
    loss = 1 - value if PREDICTION_METRICS[name].greater_is_better else value
    as_fire = make_fire_scorer(loss=name, uncovered="ignore")(rules, X, y)
    assert as_fire == pytest.approx(fire(loss, 2))
    assert make_q_scorer(loss=name)(rules, X, y) == pytest.approx(q(loss, 2, share))
    if PREDICTION_METRICS[name].greater_is_better:
        as_ice = make_ice_scorer(performance=name)(rules, X, y)
        assert as_ice == pytest.approx(ice_by_hand(value, 2, share))


def test_knowledge_contains_all_scores_and_their_parts() -> None:
    assert knowledge(CLASSES, X_CLASSES, Y_CLASSES) == pytest.approx(
        {
            "ice": ice_by_hand(2 / 3, 2, 3 / 8),
            "neg_fire": fire(3 / 5, 2),
            "neg_q": q(1 / 3, 2, 3 / 8),
            "performance": 2 / 3,
            "loss": 3 / 5,
            "loss_q": 1 / 3,
            "n_rules": 2.0,
            "completeness_volume": 3 / 8,
            "completeness_instances": 3 / 5,
        }
    )


def test_knowledge_passes_settings_to_all_scores() -> None:
    scorer = make_knowledge_scorer(
        psi=2,
        phi=3,
        rho=0.5,
        loss="f1_macro",
        performance="accuracy",
        completeness="instances",
        size="literals",
    )
    scores = scorer(CLASSES, X_CLASSES, Y_CLASSES)
    assert scores["ice"] == pytest.approx(ice_by_hand(2 / 3, 4, 3 / 5, phi=3, rho=0.5))
    assert scores["neg_fire"] == pytest.approx(fire(1 - ALL_F1, 4, psi=2))
    assert scores["neg_q"] == pytest.approx(q(1 - COVERED_F1, 4, 3 / 5))
    assert scores["n_rules"] == 2.0
    assert scores["loss"] == pytest.approx(1 - ALL_F1)


@pytest.mark.parametrize("missing", [None, nan, pd.NA, pd.NaT])
def test_scorer_rejects_missing_labels(missing: Any) -> None:
    y = np.array(["a", missing, "b"], dtype=object)
    for scorer in (ice, neg_fire, neg_q, knowledge):
        with pytest.raises(ValueError, match=r"label in every row, but row 1 has none"):
            scorer(CLASSES, [[0, 0], [0, 0], [1.5, 1]], y)


def test_scorer_rejects_masked_labels() -> None:
    X, masked = [[0.0, 0.0], [1.5, 1.0]], [False, True]
    with pytest.raises(ValueError, match="row 1 has none"):
        ice(CLASSES, X, np.ma.array(["a", "b"], mask=masked))
    with pytest.raises(ValueError, match="finite numbers, got nan"):
        ice(NUMBERS, [[0.5], [1.5]], np.ma.array([1.0, 2.0], mask=masked))


@pytest.mark.parametrize(
    "entrance",
    [
        lambda X, y: certify(CLASSES, X, y, space=SearchSpace(2), kinds=["tree"]),
        lambda X, y: certify(CLASSES, X, lambda rows: y, space=SearchSpace(2), kinds=["tree"]),
        lambda X, y: optimal_trees(X, y, SearchSpace(2, cuts=16)),
        lambda X, y: optimal_lists(X, y, SearchSpace(2)),
        lambda X, y: bound_f1_of_trees(X, y, 2),
        lambda X, y: prune(CLASSES, X, y),
        lambda X, y: select_rules(CLASSES, X, y, "precision", 0.5),
        lambda X, y: count_rows(CLASSES, X, y),
        lambda X, y: rule_report(CLASSES, X, y),
        lambda X, y: ice(CLASSES, X, y),
        lambda X, y: fidelity(CLASSES, lambda rows: y, X),
        lambda X, y: CARTExtractor(CallableClassifier(lambda rows: y)).fit(X),
        lambda X, y: CARTExtractor(DecisionTreeClassifier()).fit(X, y),
        lambda X, y: ExtractorSearchCV(
            DecisionTreeClassifier(), extractors=("cart",), n_trials=1, cv=2
        ).fit(X, y),
    ],
)
@pytest.mark.parametrize(
    "labels",
    [
        ["a", "a", "b", np.nan],
        np.array(["a", "a", "b", None], dtype=object),
        np.ma.array(["a", "a", "b", "b"], mask=[False, False, False, True]),
    ],
    ids=["list", "objects", "masked"],
)
def test_functions_with_y_reject_missing_labels(entrance: Any, labels: Any) -> None:
    X = np.array([[0.0, 0.0], [0.0, 0.0], [1.5, 1.0], [1.5, 1.0]])
    message = "label in every row|lacks a label|no masked entries|not a valid label"
    with pytest.raises(ValueError, match=message):
        entrance(X, labels)


def test_scorer_returns_python_floats() -> None:
    scores = knowledge(NUMBERS, X_NUMBERS, Y_NUMBERS)
    assert {type(value) for value in scores.values()} == {float}
    assert type(ice(CLASSES, X_CLASSES, Y_CLASSES)) is float


def test_scorer_defaults_equal_papers() -> None:
    def defaults(function: Any) -> dict[str, Any]:
        return {name: p.default for name, p in inspect.signature(function).parameters.items()}

    shared = {"reference": "data", "size": "rules", "undefined": nan}
    assert defaults(make_fire_scorer) == pytest.approx(
        {"psi": 1.0, "loss": "auto", "uncovered": "penalize"} | shared, nan_ok=True
    )
    complete = {"completeness": "volume", "uncovered": "ignore"} | shared
    assert defaults(make_q_scorer) == pytest.approx({"loss": "auto"} | complete, nan_ok=True)
    assert defaults(make_ice_scorer) == pytest.approx(
        {"phi": 1.0, "rho": 1.0, "performance": "auto"} | complete, nan_ok=True
    )
    for new_scorer, ready in [
        (make_fire_scorer(), neg_fire),
        (make_q_scorer(), neg_q),
        (make_ice_scorer(), ice),
    ]:
        assert new_scorer.settings == pytest.approx(ready.settings, nan_ok=True)


def test_evaluation_size_counts_literals() -> None:
    one = CLASSES.replace(rules=CLASSES.rules[1:])
    assert evaluate_rules(one, X_CLASSES, Y_CLASSES).size("literals") == 3.0
    assert evaluate_rules(one, X_CLASSES, Y_CLASSES).n_rows == (1, 5)
    assert evaluate_rules(one, count_rows(one, X_CLASSES, Y_CLASSES)).n_rows == (1, 5)


def test_scorer_counts_empty_premise_as_one_literal() -> None:
    rules = RuleSet([Rule([], "a")], ["x"], task="classification", domain=Domain((0,), (1,)))
    scorer = make_fire_scorer(size="literals", loss=half_off)
    assert scorer(rules, [[0.5]], ["a"]) == pytest.approx(fire(0.5, 1))


def test_scorer_reads_frames_by_name() -> None:
    frame = pd.DataFrame(X_CLASSES, columns=["x", "z"])
    for scorer in (neg_fire, ice, make_ice_scorer(completeness="instances")):
        expected = scorer(CLASSES, X_CLASSES, Y_CLASSES)
        assert scorer(CLASSES, frame[["z", "x"]], pd.Series(Y_CLASSES)) == expected


# --- references ----------------------------------------------------------------------------------

X_LINE = np.linspace(0, 1, 11).reshape(-1, 1)


def high_or_low(rows: np.ndarray) -> np.ndarray:
    return np.where(np.asarray(rows)[:, 0] > 0.55, "high", "low")


def test_scorer_ignores_y_with_black_box_reference() -> None:
    black_box = CallableClassifier(high_or_low, classes=["high", "low"])
    extractor = CARTExtractor(black_box, max_leaf_nodes=2).fit(X_LINE)
    opposite = np.where(high_or_low(X_LINE) == "low", "high", "low")
    fidelity = make_fire_scorer(reference="black_box")
    assert fidelity(extractor, X_LINE) == fidelity(extractor, X_LINE, opposite) == 0.0
    assert neg_fire(extractor, X_LINE, opposite) == pytest.approx(fire(1.0, 2))
    perfect = make_ice_scorer(reference="black_box")(extractor, X_LINE)
    assert perfect == pytest.approx(ice_by_hand(1.0, 2, 1.0))


def test_scorer_queries_black_box_on_new_rows() -> None:
    black_box = CallableRegressor(lambda rows: 10 * rows[:, 0])
    extractor = CARTExtractor(black_box, max_leaf_nodes=2).fit(X_LINE)
    rows = np.array([[0.0], [0.2], [0.9]])
    error = np.abs(10 * rows[:, 0] - extractor.predict(rows)).mean()
    scorer = make_fire_scorer(reference="black_box")
    assert scorer(extractor, rows) == pytest.approx(fire(error, 2))


@pytest.mark.parametrize("model", [CLASSES, "tree"], ids=["rules", "tree"])
def test_scorer_rejects_black_box_reference_without_extractor(model: Any) -> None:
    if model == "tree":
        model = DecisionTreeClassifier().fit(X_CLASSES, Y_CLASSES)
    with pytest.raises(TypeError, match=r"needs an extractor with a black box.*'data'"):
        make_ice_scorer(reference="black_box")(model, X_CLASSES, Y_CLASSES)


def test_scorer_needs_y_with_data_reference() -> None:
    with pytest.raises(ValueError, match="y is None; pass y"):
        ice(CLASSES, X_CLASSES)


# --- weights -------------------------------------------------------------------------------------

#: In scikit-learn 1.7 weighted medians are not those of repeated rows.
UNLIKE_REPETITIONS = (
    {"median_absolute_error"} if parse_version(sklearn_version) < parse_version("1.8") else set()
)

WEIGHTED = [
    *SCORERS.values(),
    make_fire_scorer(psi=3, size="conditions"),
    make_fire_scorer(uncovered="ignore", size=twice),
    make_q_scorer(completeness="instances"),
    make_q_scorer(uncovered="penalize"),
    make_ice_scorer(completeness="instances", uncovered="penalize"),
    make_ice_scorer(performance="auto", size="literals", phi=2, rho=2),
    *(make_fire_scorer(loss=name) for name in PREDICTION_METRICS if name not in UNLIKE_REPETITIONS),
]


def only_for(scorer: RuleScorer, task: str) -> bool:
    loss = scorer.settings.get("loss", "auto")
    return loss == "auto" or task in PREDICTION_METRICS[loss].tasks


def scores_agree(one: Any, other: Any) -> bool:
    return one == pytest.approx(other, rel=1e-9, abs=1e-12, nan_ok=True)


@pytest.mark.parametrize("scorer", WEIGHTED, ids=repr)
@settings(max_examples=15)
@given(data=st.data())
def test_scorer_weights_equal_repetitions(scorer: RuleScorer, data: st.DataObject) -> None:
    tasks = [t for t in ("classification", "regression") if only_for(scorer, t)]
    task = data.draw(st.sampled_from(tasks))
    rules, top = (CLASSES, 1.0) if task == "classification" else (NUMBERS, 4.0)
    n_rows = data.draw(st.integers(1, 7))
    cells = st.lists(
        st.floats(0, top), min_size=rules.n_features * n_rows, max_size=rules.n_features * n_rows
    )
    X = np.reshape(data.draw(cells), (n_rows, rules.n_features))
    X[:, 0] *= 4 / top
    label = st.sampled_from("ab") if task == "classification" else st.integers(5, 25).map(float)
    y = np.array(data.draw(st.lists(label, min_size=n_rows, max_size=n_rows)))
    weights = np.array(
        data.draw(st.lists(st.integers(0, 3), min_size=n_rows, max_size=n_rows).filter(any))
    )
    is_used = weights > 0
    if task == "regression" and 1 in (is_used.sum(), is_used[rules.covers(X)].sum()):
        return  # R² of one row is undefined, but not of the same row twice
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UndefinedMetricWarning)  # no row may be covered
        weighted = scorer(rules, X, y, sample_weight=weights)
        repeated = scorer(rules, np.repeat(X, weights, axis=0), np.repeat(y, weights))
    assert scores_agree(weighted, repeated)


def test_scorer_with_weights_equals_hand_computed_values() -> None:
    weights = [1, 2, 3, 4, 5]
    assert neg_fire(CLASSES, X_CLASSES, Y_CLASSES, weights) == pytest.approx(fire(11 / 15, 2))
    scorer = make_ice_scorer(performance="accuracy", completeness="instances")
    value = scorer(CLASSES, X_CLASSES, Y_CLASSES, sample_weight=weights)
    assert value == pytest.approx(ice_by_hand(4 / 6, 2, 6 / 15))


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1, 2], r"shape \(5,\), got shape \(2,\)"),
        ([1, 1, 1, 1, -1], r"got -1\.0 for row 4"),
        ([1, nan, 1, 1, 1], "got nan for row 1"),
        ([0] * 5, "a positive number, got 5 zeros"),
    ],
)
def test_scorer_rejects_invalid_weights(weights: list[float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ice(CLASSES, X_CLASSES, Y_CLASSES, sample_weight=weights)


# --- undefined -----------------------------------------------------------------------------------

NO_RULES = CLASSES.replace(rules=())
FAR = np.array([[3.0, 0.5], [3.5, 0.5]])  # no rule covers these rows
UNDEFINED = [
    (NO_RULES, X_CLASSES, Y_CLASSES, "There are no rules"),
    (CLASSES, FAR, ["a", "b"], "2 rows, 0 covered by the 2 rules"),
    (NUMBERS, [[0.5]], [11.0], "1 rows, 1 covered by the 2 rules"),
]


@pytest.mark.parametrize(("rules", "X", "y", "why"), UNDEFINED)
def test_ice_scorer_returns_undefined_value(rules: RuleSet, X: Any, y: Any, why: str) -> None:
    with pytest.warns(UndefinedMetricWarning, match=f"{why}.*undefined=..."):
        assert math.isnan(ice(rules, X, y))
    # A warning would fail this test.
    assert make_ice_scorer(undefined=0)(rules, X, y) == 0
    assert make_ice_scorer(undefined=-math.inf)(rules, X, y) == -math.inf


@pytest.mark.parametrize("make", [make_fire_scorer, make_q_scorer], ids=["fire", "q"])
def test_fire_and_q_scorers_are_undefined_without_rules(make: Any) -> None:
    with pytest.warns(UndefinedMetricWarning, match=r"There are no rules, so (FiRe|Q)"):
        assert math.isnan(make()(NO_RULES, X_CLASSES, Y_CLASSES))
    assert make(undefined=-7.0)(NO_RULES, X_CLASSES, Y_CLASSES) == -7.0


def test_q_scorer_is_undefined_without_covered_rows() -> None:
    assert neg_fire(CLASSES, FAR, ["a", "b"]) == pytest.approx(fire(1.0, 2))
    with pytest.warns(UndefinedMetricWarning, match="0 covered"):
        assert math.isnan(neg_q(CLASSES, FAR, ["a", "b"]))


def test_knowledge_is_undefined_without_rules() -> None:
    with pytest.warns(UndefinedMetricWarning):
        scores = knowledge(NO_RULES, X_CLASSES, Y_CLASSES)
    assert scores.pop("n_rules") == scores.pop("completeness_volume") == 0.0
    assert scores.pop("completeness_instances") == 0.0
    assert all(math.isnan(value) for value in scores.values())
    scorer = make_knowledge_scorer(undefined=0.0)(NO_RULES, X_CLASSES, Y_CLASSES)
    assert (scorer["ice"], scorer["neg_fire"], scorer["neg_q"]) == (0.0, 0.0, 0.0)


# --- models with rules ---------------------------------------------------------------------------


def test_knowledge_of_rules_from_json_is_equal() -> None:
    second_restored = RuleSet.from_json(CLASSES.to_json())
    assert knowledge(second_restored, X_CLASSES, Y_CLASSES) == knowledge(
        CLASSES, X_CLASSES, Y_CLASSES
    )


@pytest.mark.parametrize("policy", ["default", "nearest", "abstain"])
def test_knowledge_ignores_policy_of_fallback(policy: str) -> None:
    for rules, X, y in [(CLASSES, X_CLASSES, Y_CLASSES), (NUMBERS, X_NUMBERS, Y_NUMBERS)]:
        other = rules.replace(fallback=Fallback(rules.fallback.output, policy))
        assert knowledge(other, X, y) == knowledge(rules, X, y)


def test_scorer_uses_mean_of_y_without_fallback() -> None:
    bare = NUMBERS.replace(fallback=None)
    assert neg_fire(bare, X_NUMBERS, Y_NUMBERS) == pytest.approx(fire((6 + 17.25 - 15) / 4, 2))
    assert ice(bare, X_NUMBERS, Y_NUMBERS) == pytest.approx(ice_by_hand(COVERED_R2, 2, 1 / 2))
    bare = CLASSES.replace(fallback=None)
    assert knowledge(bare, X_CLASSES, Y_CLASSES) == knowledge(CLASSES, X_CLASSES, Y_CLASSES)


@pytest.mark.parametrize("frozen", [False, True])
def test_scorer_accepts_decision_trees(frozen: bool) -> None:
    tree = DecisionTreeClassifier(max_leaf_nodes=2, random_state=0).fit(X_CLASSES, Y_CLASSES)
    answers = tree.predict(X_CLASSES).tolist()
    assert answers == ["a", "b", "b", "a", "b"]  # z decides
    model = FrozenEstimator(tree) if frozen else tree
    truth = ["b", "b", "b", "a", "b"]
    expected = ice_by_hand((1 * 2 / 3 + 4 * 6 / 7) / 5, 2, 1)
    assert ice(model, X_CLASSES, truth) == pytest.approx(expected)
    tree = DecisionTreeRegressor(max_leaf_nodes=2).fit(X_NUMBERS, Y_NUMBERS)
    error = np.abs(tree.predict(X_NUMBERS) - Y_NUMBERS).mean()
    model = FrozenEstimator(tree) if frozen else tree
    assert neg_fire(model, X_NUMBERS, Y_NUMBERS) == pytest.approx(fire(error, 2))


def test_scorer_accepts_extra_trees_fitted_on_frames() -> None:
    frame = pd.DataFrame(X_CLASSES, columns=["x", "z"])
    tree = ExtraTreeClassifier(random_state=0).fit(frame, Y_CLASSES)
    value = neg_q(tree, frame, Y_CLASSES)
    assert value == 0.0
    assert knowledge(tree, frame, Y_CLASSES)["n_rules"] == tree.get_n_leaves()


# Two clusters on a diagonal: rows off the diagonal are covered by no box.
Y_PLANE = np.repeat(["left", "right"], 30)
X_PLANE = np.random.default_rng(0).normal(size=(60, 2)) + 10 * (Y_PLANE == "right")[:, None]
X_PLANE *= [1, 50]
BESIDE = np.vstack([X_PLANE, [[0, 500], [10, 0]]])
Y_BESIDE = np.append(Y_PLANE, ["left", "right"])


def test_knowledge_accepts_pipelines() -> None:
    tree = DecisionTreeClassifier(max_depth=3, random_state=0)
    box = GridExExtractor(tree, n_slices=3, depth=1, max_rules=None)
    pipeline = make_pipeline(StandardScaler(), box).fit(X_PLANE, Y_PLANE)
    inner, rows = pipeline[-1], pipeline[:-1].transform(BESIDE)
    assert inner.covers(rows).tolist() == [True] * 60 + [False] * 2
    expected = knowledge(inner, rows, Y_BESIDE)
    assert knowledge(pipeline, BESIDE, Y_BESIDE) == expected
    assert knowledge(FrozenEstimator(pipeline), BESIDE, Y_BESIDE) == expected
    fidelity = make_fire_scorer(reference="black_box")
    assert fidelity(pipeline, BESIDE) == fidelity(inner, rows) == pytest.approx(fire(2 / 62, 2))
    # A Pipeline of one step transforms nothing; steps that work in place do not change the input.
    assert knowledge(make_pipeline(inner), rows, Y_BESIDE) == expected
    in_place = make_pipeline(StandardScaler(copy=False), box).fit(X_PLANE.copy(), Y_PLANE)
    own_copied = BESIDE.copy()
    assert knowledge(in_place, own_copied, Y_BESIDE) == expected
    assert (own_copied == BESIDE).all()
    # With three steps, the first two transform the rows; the number of rules needs no rows.
    thrice = make_pipeline(StandardScaler(), FunctionTransformer(np.exp), clone(box))
    thrice.fit(X_PLANE, Y_PLANE)
    powers = thrice[:-1].transform(BESIDE)
    assert knowledge(thrice, BESIDE, Y_BESIDE) == knowledge(thrice[-1], powers, Y_BESIDE)
    counts = count_rows(inner.rules_, rows, Y_BESIDE)
    assert neg_fire(pipeline, counts) == pytest.approx(neg_fire(pipeline, BESIDE, Y_BESIDE))


def test_knowledge_accepts_pipelines_with_frame_output() -> None:
    names = pd.DataFrame(X_PLANE, columns=["p", "q"])
    plain, framed = (
        make_pipeline(StandardScaler(), CARTExtractor(DecisionTreeClassifier(), random_state=0))
        for _ in range(2)
    )
    plain.fit(names, Y_PLANE)
    framed.set_output(transform="pandas").fit(names, Y_PLANE)
    assert framed[-1].rules_.feature_names == ("p", "q")
    assert knowledge(framed, names, Y_PLANE) == knowledge(plain, names, Y_PLANE)


def test_scorer_uses_units_of_y_for_transformed_targets() -> None:
    rng = np.random.default_rng(1)
    X = np.append(rng.uniform(0, 0.4, 40), rng.uniform(0.6, 1, 40)).reshape(-1, 1)
    y = 1000 * np.exp(2 * X[:, 0])
    rows = np.vstack([X[:20], [[0.45], [0.5], [0.55]]])  # the last three are in the gap
    truth = 1000 * np.exp(2 * rows[:, 0])
    model = TransformedTargetRegressor(
        GridExExtractor(DecisionTreeRegressor(max_depth=3), n_slices=5, depth=1),
        func=np.log,
        inverse_func=np.exp,
    ).fit(X, y)
    n_rules = model.regressor_.n_rules_
    assert model.regressor_.covers(rows).tolist() == [True] * 20 + [False] * 3
    # Uncovered rows get the mean of the logarithms from the extractor, and so do they in the score.
    error = np.abs(truth - model.predict(rows))
    assert error.mean() > 10
    assert neg_fire(model, rows, truth) == pytest.approx(fire(error.mean(), n_rules))
    covered_only = make_fire_scorer(uncovered="ignore")
    assert covered_only(model, rows, truth) == pytest.approx(fire(error[:20].mean(), n_rules))
    answers = np.exp(model.regressor_.oracle_.query(rows))
    unfaithful = np.abs(answers - model.predict(rows)).mean()
    fidelity = make_fire_scorer(reference="black_box")
    assert fidelity(model, rows) == pytest.approx(fire(unfaithful, n_rules))


def test_scorer_accepts_targets_transformed_twice() -> None:
    X = np.linspace(0, 3, 40).reshape(-1, 1)
    y = np.exp(X[:, 0])
    inner = TransformedTargetRegressor(
        CARTExtractor(DecisionTreeRegressor(), max_leaf_nodes=4, random_state=0),
        transformer=StandardScaler(),
    )
    model = TransformedTargetRegressor(inner, func=np.log, inverse_func=np.exp).fit(X, y)
    extractor = model.regressor_.regressor_
    # The black box, a full tree, predicts y exactly: fidelity equals agreement with y.
    assert model.regressor_.transformer_.mean_ == pytest.approx(1.5)
    error = np.abs(y - model.predict(X)).mean()
    fidelity = make_fire_scorer(reference="black_box")(model, X)
    assert fidelity == pytest.approx(fire(error, extractor.n_rules_))
    assert neg_fire(model, X, y) == pytest.approx(fidelity)


def test_evaluation_can_be_scored_by_several_scorers() -> None:
    evaluation = evaluate_rules(CLASSES, X_CLASSES, Y_CLASSES)
    for scorer in (neg_fire, neg_q, ice, knowledge):
        assert scorer.score(evaluation) == scorer(CLASSES, X_CLASSES, Y_CLASSES)


def test_evaluation_computes_each_metric_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    function = PREDICTION_METRICS["f1_weighted"].function

    def counted(*arrays: Any) -> float:
        calls.append(arrays)
        return function(*arrays)

    metric = PREDICTION_METRICS["f1_weighted"]._replace(function=counted)
    monkeypatch.setitem(PREDICTION_METRICS, "f1_weighted", metric)
    evaluation = evaluate_rules(CLASSES, X_CLASSES, Y_CLASSES)
    for _ in range(3):
        knowledge.score(evaluation), ice.score(evaluation), neg_q.score(evaluation)
    assert len(calls) == 2  # once as a performance, once as a loss
    weights = np.arange(len(Y_CLASSES)) % 2
    second_result = replace(evaluation, sample_weight=weights.astype(float))
    assert ice.score(second_result) == ice(CLASSES, X_CLASSES, Y_CLASSES, sample_weight=weights)
    assert len(calls) == 4


def test_evaluation_calls_custom_metric_every_time() -> None:
    values = iter([0.25, 0.75])
    evaluation = evaluate_rules(CLASSES, X_CLASSES, Y_CLASSES)
    scorer = make_ice_scorer(performance=lambda y_true, y_pred: next(values))
    assert scorer.score(evaluation) < scorer.score(evaluation)


# --- errors --------------------------------------------------------------------------------------


class ListOfRules(BaseEstimator):
    """An extractor with rules in its own format, like those of other libraries."""

    def fit(self, X: Any, y: Any) -> ListOfRules:
        self.rules_ = ["x <= 1", "x > 1"]
        return self

    def predict(self, X: Any) -> Any:
        return np.zeros(len(X))


def without_rules() -> dict[str, Any]:
    X, y = X_PLANE, Y_PLANE
    extractor = CARTExtractor(DecisionTreeClassifier(max_depth=2), max_leaf_nodes=2)
    search = GridSearchCV(extractor, {"max_leaf_nodes": [2]}, cv=2, refit=False, scoring=ice)
    return {
        "LogisticRegression": LogisticRegression().fit(X, y),
        "BaggingClassifier": BaggingClassifier(extractor, n_estimators=2).fit(X, y),
        "ListOfRules": ListOfRules().fit(X, y),
        "str": "iris",
        "NoneType": None,
        "list": [Rule([], "a")],
        "SimpleNamespace": SimpleNamespace(predict=lambda X: X),
        "ABCMeta": CARTExtractor,
        "Pipeline": make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y),
        "GridSearchCV": search.fit(X, y),
        "TransformedTargetRegressor": TransformedTargetRegressor(LinearRegression()).fit(
            X, X[:, 0]
        ),
    }


@pytest.mark.parametrize(("name", "model"), without_rules().items(), ids=without_rules())
@pytest.mark.parametrize("scorer", SCORERS.values(), ids=SCORERS)
def test_scorer_rejects_models_without_rules(name: str, model: Any, scorer: Any) -> None:
    message = f"^{name} has no rule set to score: pass a fitted extractor, a decision tree, or a "
    with pytest.raises(TypeError, match=message):
        scorer(model, X_PLANE, Y_PLANE)


UNFITTED = CARTExtractor(LogisticRegression())


@pytest.mark.parametrize(
    "model",
    [
        UNFITTED,
        GridExExtractor(LogisticRegression()),
        DecisionTreeClassifier(),
        make_pipeline(StandardScaler(), UNFITTED),
        GridSearchCV(UNFITTED, {"max_leaf_nodes": [2]}),
        TransformedTargetRegressor(CARTExtractor(LinearRegression())),
        FrozenEstimator(UNFITTED),
    ],
    ids=lambda model: type(model).__name__,
)
def test_scorer_rejects_unfitted_estimators(model: Any) -> None:
    with pytest.raises(NotFittedError):
        ice(model, X_PLANE, Y_PLANE)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([0, 1, 1, 0, 1], r"labels of y \(0, 1\) is a class of the rules \('a', 'b'\).*Encode y"),
        ([None, "c", 3, "c", "c"], r"labels of y \('c', 3, None\)"),
        (["a", "b"], r"y must have shape \(5,\), one prediction per row, got \(2,\)"),
        ([["a"], ["b"], ["b"], ["a"], ["b"]], r"y must have shape \(5,\).*got \(5, 1\)"),
    ],
)
def test_scorer_rejects_incomparable_y(y: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ice(CLASSES, X_CLASSES, y)


def test_scorer_error_names_five_unknown_labels() -> None:
    with pytest.raises(ValueError, match=r"labels of y \('c', 'd', 'e', 'f', 'g'\) is a class"):
        ice(CLASSES, np.tile(X_CLASSES, (2, 1)), list("cdefghcdef"))


@pytest.mark.parametrize("y", [["a", "b", "c", "d"], [1.0, 2.0, 3.0, nan], [math.inf, 1, 2, 3]])
def test_scorer_rejects_y_without_finite_numbers(y: Any) -> None:
    wrong = next(v for v in y if isinstance(v, str) or not math.isfinite(v))
    with pytest.raises(ValueError, match=f"y must hold finite numbers, got {wrong!r}"):
        ice(NUMBERS, X_NUMBERS, y)


def test_scorer_counts_unknown_labels_as_errors() -> None:
    y = ["a", "c", "b", "a", "c"]
    assert neg_fire(CLASSES, X_CLASSES, y) == pytest.approx(fire(3 / 5, 2))


def test_scorer_accepts_numbers_of_any_type() -> None:
    y = np.array([11, Fraction(19), 24.0, np.float32(15)], dtype=object)
    assert neg_fire(NUMBERS, X_NUMBERS, y) == neg_fire(NUMBERS, X_NUMBERS, Y_NUMBERS)


def test_scorer_treats_equal_numbers_as_equal_labels() -> None:
    rules = RuleSet(
        [Rule([Interval(0, upper=0)], 0), Rule([], 1)],
        ["x"],
        task="classification",
        domain=Domain((-1,), (1,)),
    )
    for y in ([0, 1], [0.0, 1.0], [False, True], np.array([0, 1], dtype=np.uint8)):
        assert neg_fire(rules, [[-1.0], [1.0]], y) == 0.0


def test_scorer_rejects_empty_input() -> None:
    with pytest.raises(ValueError, match="at least one row"):
        ice(CLASSES, np.empty((0, 2)), [])


@pytest.mark.parametrize("make", [make_fire_scorer, make_q_scorer, make_ice_scorer])
@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("reference", "truth", "reference must be one of 'data', 'black_box', got 'truth'"),
        ("uncovered", "nearest", "uncovered must be one of 'ignore', 'penalize', got 'nearest'"),
        ("size", "leaves", "size must be one of .*'terms', got 'leaves'"),
        ("undefined", None, "undefined must be a number, got None"),
    ],
)
def test_make_scorer_checks_common_settings(make: Any, name: str, value: Any, message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        make(**{name: value})


@pytest.mark.parametrize(
    ("make", "options", "message"),
    [
        (make_fire_scorer, {"psi": 0}, "psi must be > 0"),
        (make_ice_scorer, {"phi": -1}, "phi must be > 0"),
        (make_ice_scorer, {"rho": nan}, "rho must be > 0"),
        (make_knowledge_scorer, {"rho": 0}, "rho must be > 0"),
        (make_knowledge_scorer, {"reference": "y"}, "reference must be one of"),
        (make_q_scorer, {"completeness": "area"}, "completeness must be .*, got 'area'"),
        (make_ice_scorer, {"completeness": 0.5}, "completeness must be .*, got 0.5"),
        (make_fire_scorer, {"loss": "acuracy"}, "loss must be .* Did you mean 'accuracy'"),
        (make_q_scorer, {"loss": None}, "loss must be .*, got None"),
        (make_ice_scorer, {"performance": "f1"}, "performance must be .*'f1'"),
        (
            make_ice_scorer,
            {"performance": "mean_squared_error"},
            "best value 1, but 'mean_squared_error' is a loss. Choose one of .*r2",
        ),
    ],
)
def test_make_scorer_checks_settings_of_one_score(make: Any, options: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make(**options)


def test_scorer_rejects_metrics_of_other_tasks() -> None:
    with pytest.raises(ValueError, match="no metric 'r2' for classification"):
        make_ice_scorer(performance="r2")(CLASSES, X_CLASSES, Y_CLASSES)


def test_scorer_rejects_callables_with_invalid_values() -> None:
    with pytest.raises(ValueError, match=r"performance must be <= 1 .*got 80\.0"):
        make_ice_scorer(performance=lambda y, p: 80.0)(CLASSES, X_CLASSES, Y_CLASSES)
    with pytest.raises(ValueError, match=r"loss must be >= 0 .*got -1\.0"):
        make_fire_scorer(loss=lambda y, p: -1.0)(CLASSES, X_CLASSES, Y_CLASSES)
    with pytest.raises(ValueError, match="completeness must be"):
        make_q_scorer(completeness=lambda r, X: 39.0)(CLASSES, X_CLASSES, Y_CLASSES)


# --- by name -------------------------------------------------------------------------------------


def test_get_rule_scorer_accepts_names_and_functions() -> None:
    assert get_rule_scorer("ice") is ice
    assert get_rule_scorer("fire") is get_rule_scorer("neg_fire") is neg_fire
    assert get_rule_scorer("q") is get_rule_scorer("neg_q") is neg_q
    assert get_rule_scorer("knowledge") is knowledge
    assert get_rule_scorer(half_off) is half_off
    assert ice.specs == (ice.spec,)
    assert {spec.name for spec in knowledge.specs} >= {"ice", "fire", "q"}
    assert get_rule_scorer("mean_rule_c2").specs == ()


@pytest.mark.parametrize(
    ("scoring", "kind", "message"),
    [
        ("icee", ValueError, "no score 'icee'. Did you mean 'ice'"),
        ("acuracy", ValueError, "no score 'acuracy'. Did you mean 'accuracy'"),
        ({"ice": ice, "q": neg_q}, TypeError, r"must be a name or a scorer\(estimator, X, y\)"),
        (None, TypeError, "got None. Known names: ice"),
    ],
)
def test_get_rule_scorer_rejects_unknown_scorers(
    scoring: Any, kind: type[Exception], message: str
) -> None:
    with pytest.raises(kind, match=message):
        get_rule_scorer(scoring)


def test_scorer_states_its_score_specs() -> None:
    assert [spec.name for spec in ice.specs] == ["ice"]
    assert len(knowledge.specs) > 1
    assert get_rule_scorer("mean_rule_coverage").specs == ()


def test_scorer_error_names_rows_without_linear_prediction() -> None:
    rules = RuleSet(
        [Rule([Interval(0, lower=0.0)], LinearOutput(1.0, [(1, 2.0)]))],
        ["x", "z"],
        domain=Domain([0.0, 0.0], [9.0, 9.0]),
        task="regression",
    )
    X, y = [[-1.0, 1.0], [1.0, 1.0], [2.0, nan], [3.0, 2.0]], [0.0, 3.0, 4.0, 5.0]
    for scorer in (ice, neg_fire, neg_q):
        with pytest.raises(ValueError, match=r"nan in row 2, .*1 of 4 rows .*--missing drop"):
            scorer(rules, X, y)
    assert math.isfinite(neg_fire(rules, X, y, sample_weight=[1, 1, 0, 1]))


@pytest.mark.parametrize("has_domain", [False, True])
def test_knowledge_scorer_of_instances_needs_no_volume(has_domain):
    rules = RuleSet(
        [Rule([OneOf(0, ["red"])], "a"), Rule([Interval(1, upper=2)], "b")],
        ["color", "x"],
        task="classification",
        fallback=Fallback("b"),
    )
    if has_domain:  # It does not know the categories.
        rules = rules.replace(domain=Domain((0, 1), (1, 3)))
    rows = pd.DataFrame({"color": [None] * 3, "x": [1.0, 2.0, 3.0]})
    y = ["b", "b", "a"]
    parts = make_knowledge_scorer(completeness="instances")(rules, rows, y)
    assert parts["ice"] == make_ice_scorer(completeness="instances")(rules, rows, y)
    if has_domain:
        assert math.isnan(parts["completeness_volume"])
        with pytest.raises(ValueError, match="categories without known values have no volume"):
            make_knowledge_scorer()(rules, rows, y)
    else:
        assert parts["completeness_volume"] == pytest.approx(0.5)
