"""Measures that FiRe, Q and ICE do not include, as scorers."""

from __future__ import annotations

import math
import pickle
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.datasets import load_diabetes, load_iris
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import cross_validate
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from skescore.extractors import CARTExtractor
from skescore.metrics import (
    OFF_DATA,
    count_rows,
    feature_agreement,
    fidelity,
    group_fidelity,
    redundancy,
    rule_calibration,
    rule_overlap,
    stability,
)
from skescore.rules import Fallback, Interval, LinearOutput, OneOf, Rule, RuleSet
from skescore.scorers import (
    SET_MEASURES,
    SET_SCORERS,
    SetMeasure,
    evaluate_rules,
    get_rule_scorer,
    make_set_scorer,
)

X, Y = load_iris(return_X_y=True)
FITTED = CARTExtractor(KNeighborsClassifier(9), max_leaf_nodes=4, random_state=0).fit(
    X[::2], Y[::2]
)
X_NUMBERS, Y_NUMBERS = (part[:120] for part in load_diabetes(return_X_y=True))
NUMBERS = CARTExtractor(KNeighborsRegressor(5), max_leaf_nodes=4, random_state=0).fit(
    X_NUMBERS, Y_NUMBERS
)
TEST, TRUTH = X[1::2], Y[1::2]
WEIGHTS = np.arange(75.0) % 3
#: Rules that overlap, contradict each other and leave rows out.
RULES = RuleSet(
    [Rule([Interval(0, upper=2)], "low"), Rule([Interval(0, lower=1, upper=3)], "high")],
    ["x"],
    task="classification",
    ordered=False,
)
ROWS, LABELS = [[0.5], [1.5], [2.5], [3.5]], ["low", "high", "high", "low"]
ENDS = {"[0, 1]": (0, 1), "[0, inf)": (0, math.inf)}


def sign(name: str) -> float:
    return 1.0 if SET_MEASURES[name].greater_is_better else -1.0


def test_set_scorer_states_name_and_default_options() -> None:
    assert make_set_scorer("overlap").name == "neg_overlap"
    assert make_set_scorer("stability").name == "stability"
    assert SET_MEASURES["stability"].options == ("n_splits", "n_bins", "random_state")
    assert SET_MEASURES["stability"].function.__defaults__ == (3, 10, 0)
    assert SET_MEASURES["prediction_stability"].function.__defaults__ == (3, 10, 0)
    assert SET_MEASURES["fidelity_uniform"].function.__defaults__ == (1000, 0.1, 0)
    assert SET_MEASURES["feature_agreement"].function.__defaults__ == (3, 1000, 0)
    assert SET_MEASURES["calibrated_rules"].function.__defaults__ == (0.95,)


def value(name: str, *args: Any) -> float:
    result = make_set_scorer(name)(*args)
    assert isinstance(result, float)
    return sign(name) * result


@pytest.mark.parametrize("name", SET_MEASURES)
def test_set_scorer_values_are_within_range(name: str) -> None:
    classes = value(name, FITTED, TEST, TRUTH, WEIGHTS)
    low, high = ENDS[SET_MEASURES[name].range.partition(";")[0]]
    assert low <= classes <= high
    # Rows of weight zero do not count, unless rows are sampled from them.
    if SET_MEASURES[name].needs in ("rules", "labels"):
        is_used = WEIGHTS > 0
        assert value(name, FITTED, TEST[is_used], TRUTH[is_used], WEIGHTS[is_used]) == classes
    if name == "fidelity_boundary":
        with pytest.warns(UndefinedMetricWarning, match="fidelity_boundary is undefined"):
            assert math.isnan(value(name, NUMBERS, X_NUMBERS, Y_NUMBERS))
    else:
        assert value(name, NUMBERS, X_NUMBERS, Y_NUMBERS) <= high
    with pytest.warns(
        UndefinedMetricWarning, match=f"{name} is undefined for 0 rules of cl.* and 4"
    ):
        assert math.isnan(value(name, RULES.replace(rules=[], classes=["low"]), ROWS, LABELS))


def test_set_scorer_measures_rules_and_rows() -> None:
    met = rule_overlap(RULES, ROWS)
    assert value("overlap", RULES, ROWS, LABELS) == met.overlap == 0.25
    assert value("negative_overlap", RULES, ROWS, LABELS) == met.negative_overlap == 0.25
    assert value("uncovered", RULES, ROWS, LABELS) == met.uncovered == 0.25
    weights = [1, 2, 1, 0]
    counts = count_rows(RULES, ROWS, LABELS, weights)
    for name, share in (("overlap", 0.5), ("negative_overlap", 0.5), ("uncovered", 0.0)):
        assert value(name, RULES, ROWS, LABELS, weights) == share
        assert value(name, RULES, counts) == share
    right = count_rows(RULES, ROWS, ["low"] * 4, weights)  # for any prediction in the overlap
    assert value("negative_overlap", RULES, right) == 0.5
    with pytest.raises(TypeError, match="needs every row, but counts of rows"):
        value("redundant_rules", RULES, counts)
    result = redundancy(RULES, ROWS)
    assert value("redundant_rules", RULES, ROWS, LABELS) == result.share_of_rules
    assert value("redundant_literals", RULES, ROWS, LABELS) == result.share_of_literals > 0


def test_set_scorer_measures_size_of_rules() -> None:
    names = [f"name {i}" for i in range(200)]
    rules = RuleSet(
        [Rule([OneOf(0, names)], LinearOutput(1.0, [(1, 1.0), (2, 2.0)])), Rule([], 1.0)],
        ["x", "y", "z"],
        task="regression",
    )
    rows, numbers = [["name 3", 1.0, 1.0], ["none", 2.0, 3.0]], [4.0, 1.0]
    assert value("terms_per_rule", rules, rows, numbers) == (200 + 2 + 0) / 2
    assert value("longest_rule", rules, rows, numbers) == 202
    assert value("conditions_per_rule", rules, rows, numbers) == 0.5


def test_set_scorer_measures_calibration() -> None:
    calibration = rule_calibration(FITTED.rules_, TEST, TRUTH, WEIGHTS, reference="data")
    assert value("calibration_error", FITTED, TEST, TRUTH, WEIGHTS) == calibration.error
    assert value("calibrated_rules", FITTED, TEST, TRUTH, WEIGHTS) == calibration.share_within
    of_box = make_set_scorer("calibration_error", reference="black_box")
    expected = rule_calibration(FITTED.rules_, TEST, FITTED.oracle_.query(TEST)).error
    assert of_box(FITTED, TEST, None) == -expected
    never = make_set_scorer("calibrated_rules", undefined=0.25)
    assert never(RULES, ROWS, LABELS) == 0.25  # these rules have no statistics
    shifted = TransformedTargetRegressor(clone(NUMBERS), func=np.log, inverse_func=np.exp)
    with pytest.raises(ValueError, match="have other units than the rules"):
        value("calibration_error", shifted.fit(X_NUMBERS, Y_NUMBERS), X_NUMBERS, Y_NUMBERS)


def test_set_scorer_measures_fidelity() -> None:
    rules, box = FITTED.rules_, FITTED.estimator_
    for where in OFF_DATA:
        expected = fidelity(rules, box, TEST, where=where)
        assert value(f"fidelity_{where}", FITTED, TEST, TRUTH) == expected
        few = make_set_scorer(f"fidelity_{where}", n_rows=50, random_state=3)
        expected = fidelity(rules, box, TEST, where=where, n_rows=50, random_state=3)
        assert few(FITTED, TEST, TRUTH) == expected
    assert value("fidelity_rows", FITTED, TEST, TRUTH) == FITTED.fidelity(TEST)
    by_class = group_fidelity(box.predict(TEST), rules.predict(TEST), task="classification")
    assert value("fidelity_gap", FITTED, TEST, TRUTH) == by_class.gap
    agreement = feature_agreement(rules, box, TEST).agreement
    assert value("feature_agreement", FITTED, TEST, TRUTH) == agreement
    # Rules alone have no black box, unless it is given.
    with pytest.raises(TypeError, match="queries the black box, but black_box is None"):
        value("fidelity_gap", rules, TEST, TRUTH)
    evaluation = evaluate_rules(rules, TEST, TRUTH, black_box=box.predict)
    assert SET_SCORERS["neg_fidelity_gap"].score(evaluation) == -by_class.gap
    of_box = evaluate_rules(rules, TEST, reference="black_box", black_box=box.predict)
    assert of_box.performance("accuracy", "ignore") == FITTED.fidelity(TEST)


def test_set_scorer_counts_uncovered_rows_as_disagreement() -> None:
    def always(X: Any) -> np.ndarray:
        return np.array([RULES.classes[0]] * len(X), dtype=object)

    e = evaluate_rules(RULES, ROWS, LABELS, black_box=always)
    predictions = RULES.replace(fallback=Fallback(RULES.classes[0])).predict(ROWS)
    right = (predictions == RULES.classes[0]) & RULES.covers(ROWS)
    assert SET_SCORERS["fidelity_rows"].score(e) == right.mean()
    two = RULES.replace(rules=RULES.rules[:1], classes=["low", "high"])
    half = evaluate_rules(two, ROWS, LABELS, black_box=lambda X: np.array([*"ab"])[[0, 0, 1, 1]])
    assert SET_SCORERS["neg_fidelity_gap"].score(half) == 0.0  # the rules never predict a or b
    low = evaluate_rules(
        two, ROWS, LABELS, black_box=lambda X: np.array(["low", "high", "low", "low"], dtype=object)
    )
    # The rules predict one of three low rows; the other two have no rule.
    assert SET_SCORERS["neg_fidelity_gap"].score(low) == -0.25


def test_set_scorer_fidelity_gap_of_numbers_uses_quarters() -> None:
    box = NUMBERS.estimator_.predict(X_NUMBERS)
    quarters = np.searchsorted(np.quantile(box, [0.25, 0.5, 0.75]), box)
    predictions = NUMBERS.rules_.predict(X_NUMBERS)
    expected = group_fidelity(box, predictions, quarters, task="regression").gap
    assert value("fidelity_gap", NUMBERS, X_NUMBERS, Y_NUMBERS) == pytest.approx(expected)


@pytest.mark.parametrize("weighted", [False, True])
def test_set_scorer_stability_extracts_rules_again(weighted: bool) -> None:
    weights = np.repeat([1.0, 2.0], 60) if weighted else None
    scorer = make_set_scorer("stability", n_splits=2, n_bins=4, random_state=7)
    result = scorer(NUMBERS, X_NUMBERS, Y_NUMBERS, weights)
    stream = np.random.default_rng(np.random.SeedSequence(7, spawn_key=(13,)))
    expected = []
    for _ in range(2):
        order = stream.permutation(120)
        created = []
        for half in (np.sort(order[:60]), np.sort(order[60:])):
            second_extractor = clone(NUMBERS).set_params(
                estimator=FrozenEstimator(NUMBERS.estimator_)
            )
            options = {} if weights is None else {"sample_weight": weights[half]}
            created.append(second_extractor.fit(X_NUMBERS[half], **options).rules_)
        expected.append(stability(created, X_NUMBERS, n_bins=4).rules)
    assert result == pytest.approx(np.mean(expected))
    tree = DecisionTreeClassifier(max_leaf_nodes=3, random_state=0).fit(X, Y)
    assert 0.8 < value("prediction_stability", tree, X, Y) <= 1.0
    with pytest.raises(TypeError, match="a rule set cannot be fitted"):
        value("stability", RULES, ROWS, LABELS)
    assert 0 <= make_set_scorer("stability", n_splits=1, n_bins=1)(tree, X, Y) <= 1
    for option in ("n_splits", "n_bins"):
        with pytest.raises(ValueError, match=f"{option} must be"):
            make_set_scorer("stability", **{option: 0})(tree, X, Y)
    # A generator returns other halves at every call.
    moving = make_set_scorer(
        "prediction_stability", n_splits=1, random_state=np.random.default_rng(0)
    )
    e = evaluate_rules(NUMBERS, X_NUMBERS, Y_NUMBERS)
    assert len({moving.score(e) for _ in range(4)}) > 1


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("stability", {"n_splits": 3, "n_bins": 10, "random_state": 0}),
        ("prediction_stability", {"n_splits": 3, "n_bins": 10, "random_state": 0}),
        ("fidelity_jittered", {"n_rows": 1000, "scale": 0.1, "random_state": 0}),
        ("feature_agreement", {"n_repeats": 3, "max_rows": 1000, "random_state": 0}),
    ],
)
def test_set_scorer_omitted_options_equal_defaults(name: str, options: dict[str, Any]) -> None:
    arguments = NUMBERS, X_NUMBERS, Y_NUMBERS
    assert make_set_scorer(name)(*arguments) == make_set_scorer(name, **options)(*arguments)


def test_set_scorer_stability_extracts_rules_of_frozen_extractors() -> None:
    scorer = SET_SCORERS["stability"]
    X, y = load_iris(return_X_y=True)
    tree = DecisionTreeClassifier(random_state=0)
    fitted = CARTExtractor(tree, max_leaf_nodes=3, random_state=0).fit(X, y)
    assert scorer(FrozenEstimator(fitted), X, y) == scorer(fitted, X, y) < 1.0


def test_set_scorer_stability_warns_about_too_few_rows() -> None:
    with pytest.warns(UndefinedMetricWarning) as caught:
        assert math.isnan(value("stability", FITTED, TEST[:1], TRUTH[:1]))
    messages = [str(one.message) for one in caught]
    assert any(text.startswith("Half of the 1 rows gives no rules: ") for text in messages)


def test_set_scorer_works_in_cross_validation_and_pickles() -> None:
    extractor = CARTExtractor(KNeighborsClassifier(9), max_leaf_nodes=3, random_state=0)
    piped = make_pipeline(StandardScaler(), extractor)
    names = ["fidelity_uniform", "neg_redundant_literals", "stability", "neg_calibration_error"]
    scoring = {name: get_rule_scorer(name) for name in names}
    results = cross_validate(piped, X, Y, scoring=scoring, cv=3)
    for name in names:
        assert np.isfinite(results[f"test_{name}"]).all()
    second_data = pickle.loads(pickle.dumps(SET_SCORERS["stability"]))
    assert repr(second_data) == repr(SET_SCORERS["stability"])
    assert second_data(FITTED, TEST, TRUTH) == SET_SCORERS["stability"](FITTED, TEST, TRUTH)
    assert get_rule_scorer("negative_overlap") is SET_SCORERS["neg_negative_overlap"]


def test_set_scorer_accepts_custom_measures() -> None:
    own = SetMeasure("names", lambda e, least=1: float(len(e.ruleset) >= least), "has rules")
    assert make_set_scorer(own)(RULES, ROWS, LABELS) == 1.0
    assert make_set_scorer(own, least=3)(RULES, ROWS, LABELS) == 0.0
    numbers = SetMeasure("numbers", lambda e: 1.0, "for numbers", tasks=("regression",))
    with pytest.warns(UndefinedMetricWarning, match="numbers is undefined for 2 rules of class"):
        assert math.isnan(make_set_scorer(numbers)(RULES, ROWS, LABELS))
    with pytest.raises(ValueError, match="needs must be one of"):
        SetMeasure("names", lambda e: 1.0, "", needs="nothing")


WRONG: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"measure": "overlp"}, ValueError, "no measure of rule sets 'overlp'. Did you mean 'overlap'"),
    ({"measure": 3}, ValueError, "no measure of rule sets 3"),
    ({"measure": "overlap", "n_rows": 3}, TypeError, "'overlap' has no option 'n_rows'"),
    ({"measure": "stability", "splits": 3}, TypeError, "no option 'splits'. Did you mean 'n_spl"),
    ({"measure": "overlap", "reference": "box"}, ValueError, "reference must be"),
    ({"measure": "overlap", "undefined": "none"}, TypeError, "undefined must be a number"),
]


@pytest.mark.parametrize(("options", "kind", "message"), WRONG)
def test_make_set_scorer_rejects_invalid_options(
    options: Any, kind: type[Exception], message: str
) -> None:
    with pytest.raises(kind, match=message):
        make_set_scorer(**options)
