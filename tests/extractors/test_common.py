"""What every extractor must do, whatever it extracts.

The module finds the extractors by itself: a new one needs no more than an entry in `OPTIONS`.
"""

from __future__ import annotations

import copy
import inspect
import pickle
import re
from typing import Any

import joblib
import numpy as np
import pytest
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.datasets import make_classification, make_friedman1
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import accuracy_score, r2_score
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from sklearn.utils.estimator_checks import parametrize_with_checks

from skescore import extractors
from skescore.extractors import (
    BaseExtractor,
    CARTExtractor,
    CREAMExtractor,
    ExACTExtractor,
    GridExExtractor,
    GridRExExtractor,
    ITERExtractor,
    REALExtractor,
    TrepanExtractor,
)
from skescore.metrics import volume_completeness
from skescore.registry import EXTRACTORS, extractor_class
from skescore.rules import AtLeast, LinearOutput, RuleSet, as_ruleset

#: Every extractor, with parameters under which it gives several rules on the data below.
OPTIONS: dict[type[BaseExtractor], dict[str, Any]] = {
    CARTExtractor: {"max_leaves": 6, "random_state": 0},
    CREAMExtractor: {"depth": 2, "random_state": 0},
    ExACTExtractor: {"depth": 2, "random_state": 0},
    GridExExtractor: {"n_slices": 3, "depth": 1, "random_state": 0},
    GridRExExtractor: {"n_slices": 2, "depth": 1, "random_state": 0},
    ITERExtractor: {"min_examples": 0, "min_update": 0.2, "random_state": 0},
    REALExtractor: {},
    TrepanExtractor: {"max_nodes": 4, "min_sample": 0, "random_state": 0},
}

BLACK_BOXES = [
    LogisticRegression(),
    LinearRegression(),
    DecisionTreeClassifier(random_state=0),
    DecisionTreeRegressor(random_state=0),
]


def subclasses(cls: type) -> set[type]:
    return {cls, *(s for child in cls.__subclasses__() for s in subclasses(child))}


EXPORTED = {
    getattr(extractors, name)
    for name in extractors.__all__
    if getattr(extractors, name) in subclasses(BaseExtractor) - {BaseExtractor}
}


def test_every_extractor_is_exported_registered_and_tested_here():
    ours = {c for c in subclasses(BaseExtractor) if c.__module__.startswith("skescore.")}
    assert ours - {BaseExtractor} == EXPORTED
    assert set(OPTIONS) == EXPORTED
    assert {extractor_class(name) for name in EXTRACTORS} == EXPORTED


@parametrize_with_checks(
    [
        cls(black_box)
        for cls in OPTIONS
        for black_box in BLACK_BOXES
        if ("classification" if is_classifier(black_box) else "regression") in cls.tasks
    ]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


# --- the data ---


def data_of(task: str) -> tuple[np.ndarray, np.ndarray]:
    if task == "classification":
        return make_classification(150, 4, n_informative=3, n_redundant=0, random_state=1)
    return make_friedman1(150, 5, random_state=1)


CASES = [(cls, task) for cls in OPTIONS for task in cls.tasks]


@pytest.fixture(params=CASES, ids=lambda case: f"{case[0].__name__}-{case[1]}")
def case(request):
    return request.param


@pytest.fixture
def cls(case):
    return case[0]


@pytest.fixture
def task(case):
    return case[1]


@pytest.fixture
def data(task):
    return data_of(task)


@pytest.fixture
def unfitted(cls, task):
    model = KNeighborsClassifier(5) if task == "classification" else KNeighborsRegressor(5)
    return cls(model, **OPTIONS[cls])


@pytest.fixture
def fitted(data, unfitted):
    return unfitted.fit(*data)


# --- parameters ---


def test_parameters_are_keywords_stored_as_they_come(cls):
    parameters = dict(inspect.signature(cls).parameters)
    assert next(iter(parameters)) == "estimator"
    parameters.pop("estimator")
    assert {"uncovered", "abstain_label", "batch_size"} <= set(parameters)
    assert all(p.kind is p.KEYWORD_ONLY for p in parameters.values())
    values = {name: object() for name in ["estimator", *parameters]}
    extractor = cls(**values)
    assert all(getattr(extractor, name) is value for name, value in values.items())
    assert set(vars(extractor)) == set(values)


def test_parameters_of_the_black_box_are_reached(unfitted):
    assert unfitted.get_params()["estimator__n_neighbors"] == 5
    assert unfitted.set_params(estimator__n_neighbors=3).estimator.n_neighbors == 3


def test_fit_changes_no_parameter_and_no_data(data, unfitted):
    X, y = data
    before, X_before, y_before = unfitted.get_params(), X.copy(), y.copy()
    black_box_before = copy.deepcopy(vars(unfitted.estimator))
    assert unfitted.fit(X, y) is unfitted
    assert unfitted.get_params() == before
    assert vars(unfitted.estimator) == black_box_before  # a clone of it is fitted
    assert unfitted.estimator_ is not unfitted.estimator
    np.testing.assert_array_equal(X, X_before)
    np.testing.assert_array_equal(y, y_before)


def test_a_clone_is_not_fitted(fitted):
    copied = clone(fitted)
    assert copied.get_params().keys() == fitted.get_params().keys()
    assert not hasattr(copied, "rules_")
    with pytest.raises(NotFittedError):
        copied.predict(np.zeros((1, 4)))


def test_the_kind_follows_the_black_box(unfitted, task):
    assert is_classifier(unfitted) == (task == "classification")
    assert is_regressor(unfitted) == (task == "regression")
    assert hasattr(unfitted, "predict_proba") == (task == "classification")


@pytest.mark.parametrize(
    "use",
    [
        lambda e: e.predict([[0.0]]),
        lambda e: e.covers([[0.0]]),
        lambda e: e.score([[0.0]], [0]),
        lambda e: e.fidelity([[0.0]]),
        lambda e: e.n_rules_,
        lambda e: e.completeness_,
        lambda e: as_ruleset(e),
    ],
    ids=["predict", "covers", "score", "fidelity", "n_rules_", "completeness_", "as_ruleset"],
)
def test_nothing_can_be_asked_before_fit(unfitted, use):
    with pytest.raises(NotFittedError, match="is not fitted yet"):
        use(unfitted)


def test_predict_proba_cannot_be_asked_before_fit(cls):
    with pytest.raises(NotFittedError, match="is not fitted yet"):
        cls(LogisticRegression()).predict_proba([[0.0]])


# --- what fit leaves ---


def test_attributes_after_fit(data, fitted, task):
    X, _ = data
    rules = fitted.rules_
    assert isinstance(rules, RuleSet)
    assert rules.task == task
    assert as_ruleset(fitted) is rules
    assert fitted.n_rules_ == len(rules) >= 2
    assert fitted.n_features_in_ == rules.n_features == X.shape[1]
    assert rules.feature_names == tuple(f"x{j}" for j in range(X.shape[1]))
    assert isinstance(fitted.coverage_, float)
    assert fitted.coverage_ == fitted.covers(X).mean()
    assert isinstance(fitted.completeness_, float)
    assert fitted.completeness_ == pytest.approx(float(volume_completeness(rules)))
    assert 0 < fitted.completeness_ <= 1
    assert fitted.oracle_.estimator is fitted.estimator_
    if task == "classification":
        assert fitted.classes_.tolist() == [0, 1] == list(rules.classes)
    else:
        assert not hasattr(fitted, "classes_")
        assert rules.classes is None


def test_the_domain_holds_the_rows_closely(data, fitted):
    X, _ = data
    lower, upper = np.array(fitted.rules_.domain.lower), np.array(fitted.rules_.domain.upper)
    assert (lower <= X.min(axis=0)).all()
    assert (upper >= X.max(axis=0)).all()
    np.testing.assert_allclose(upper - lower, np.ptp(X, axis=0), rtol=1e-8)


def holds(condition: Any, row: np.ndarray) -> bool:
    if isinstance(condition, AtLeast):
        return sum(holds(c, row) for c in condition.conditions) >= condition.m
    value = row[condition.feature]
    if value < condition.lower or (value == condition.lower and not condition.lower_closed):
        return False
    return not (
        value > condition.upper or (value == condition.upper and not condition.upper_closed)
    )


def output_of(rule: Any, row: np.ndarray) -> Any:
    if isinstance(rule.output, LinearOutput):
        return rule.output.intercept + sum(row[j] * c for j, c in rule.output.terms)
    return rule.output


def test_answers_are_those_of_the_first_rule_that_holds(data, fitted, task):
    X, _ = data
    random = np.random.default_rng(0)
    rows = np.vstack([X, random.uniform(X.min(axis=0) - 1, X.max(axis=0) + 1, (200, X.shape[1]))])
    answers, covered = fitted.predict(rows), fitted.covers(rows)
    shares = fitted.predict_proba(rows) if task == "classification" else [None] * len(rows)
    for row, answer, is_covered, share in zip(rows, answers, covered, shares, strict=True):
        held = [r for r in fitted.rules_ if all(holds(c, row) for c in r.conditions)]
        assert bool(held) == is_covered
        if held and isinstance(held[0].output, LinearOutput):
            assert answer == pytest.approx(output_of(held[0], row))
        else:
            assert answer == (held[0].output if held else fitted.rules_.fallback.output)
        if held and share is not None:
            counts = np.array(held[0].statistics.class_counts)
            np.testing.assert_allclose(share, counts / counts.sum())


def test_conclusions_are_what_the_black_box_answers_where_the_rule_does(data, fitted, task):
    X, y = data
    answers = clone(fitted.estimator).fit(X, y).predict(X)
    index = fitted.rules_.assign(X)
    for number, rule in enumerate(fitted.rules_):
        inside = answers[index == number]
        assert rule.statistics.n_rows == len(inside) > 0
        if task == "classification":
            counts = [int(np.sum(inside == c)) for c in fitted.classes_]
            assert rule.statistics.class_counts == tuple(counts)
            assert rule.output == fitted.classes_[int(np.argmax(counts))]
        else:
            if isinstance(rule.output, LinearOutput):  # least squares go through the mean
                rows = X[index == number]
                assert np.mean([output_of(rule, row) for row in rows]) == pytest.approx(
                    inside.mean(), rel=1e-6
                )
            else:
                assert rule.output == pytest.approx(inside.mean(), rel=1e-12)
            assert rule.statistics.mean == pytest.approx(inside.mean(), rel=1e-12)
            assert rule.statistics.spread == pytest.approx(inside.std(), abs=1e-9)


def test_rules_know_the_black_box_and_nothing_of_the_truth(cls, data, task):
    X, y = data
    model = DecisionTreeClassifier if task == "classification" else DecisionTreeRegressor
    frozen = FrozenEstimator(model(max_depth=4, random_state=0).fit(X, y))
    with_truth = cls(frozen, **OPTIONS[cls]).fit(X, y).rules_
    with_noise = cls(frozen, **OPTIONS[cls]).fit(X, y[::-1]).rules_
    without = cls(frozen, **OPTIONS[cls]).fit(X).rules_
    assert with_truth == with_noise == without


def test_the_fallback_is_the_black_box_on_all_rows_and_no_rule(data, fitted, task):
    X, y = data
    answers = clone(fitted.estimator).fit(X, y).predict(X)
    fallback = fitted.rules_.fallback
    if task == "classification":
        counts = np.bincount(answers)
        assert fallback.output == counts.argmax()
        assert fallback.class_counts == tuple(counts)
    else:
        assert fallback.output == pytest.approx(answers.mean(), rel=1e-12)


def test_answering_does_not_ask_the_black_box(data, fitted):
    X, y = data
    n_rows = fitted.oracle_.n_rows
    fitted.predict(X[:7] + 0.01)
    fitted.covers(X[:7] + 0.01)
    fitted.score(X[:7] + 0.01, y[:7])
    assert fitted.oracle_.n_rows == n_rows


def test_score_and_its_weights(data, fitted, task):
    X, y = data
    measure = accuracy_score if task == "classification" else r2_score
    assert fitted.score(X, y) == measure(y, fitted.predict(X))
    assert isinstance(fitted.score(X, y), float)
    weights = np.random.default_rng(0).integers(0, 4, len(y))
    repeated = np.repeat(np.arange(len(y)), weights)
    assert fitted.score(X, y, sample_weight=weights) == pytest.approx(
        fitted.score(X[repeated], y[repeated])
    )


def test_fidelity_is_the_score_against_the_black_box(data, fitted):
    X, y = data
    calls = fitted.oracle_.n_calls
    answers = clone(fitted.estimator).fit(X, y).predict(X)
    assert fitted.fidelity(X) == fitted.score(X, answers)
    assert fitted.oracle_.n_calls == calls  # the rows of fit are remembered
    other = X + 0.25
    assert fitted.fidelity(other) == fitted.score(other, fitted.estimator_.predict(other))
    assert fitted.oracle_.n_calls == calls + 1


@pytest.mark.parametrize(
    "case", [(cls, "both") for cls in OPTIONS if len(cls.tasks) == 2], ids=lambda c: c[0].__name__
)
def test_a_second_fit_leaves_nothing_of_the_first(cls):
    X, y = data_of("classification")
    extractor = cls(KNeighborsClassifier(5), **OPTIONS[cls]).fit(X, y)
    other_X, other_y = data_of("regression")
    extractor.set_params(estimator=KNeighborsRegressor(5)).fit(other_X, other_y)
    fresh = cls(KNeighborsRegressor(5), **OPTIONS[cls]).fit(other_X, other_y)
    assert extractor.rules_ == fresh.rules_
    assert set(vars(extractor)) == set(vars(fresh))
    assert extractor.oracle_.n_rows == fresh.oracle_.n_rows


def test_fits_twice_the_same(data, unfitted):
    assert clone(unfitted).fit(*data).rules_ == clone(unfitted).fit(*data).rules_


@pytest.mark.parametrize("how", ["pickle", "joblib", "deepcopy"])
def test_travels(data, fitted, task, how, tmp_path):
    X, _ = data
    if how == "pickle":
        other = pickle.loads(pickle.dumps(fitted))
    elif how == "joblib":
        joblib.dump(fitted, tmp_path / "extractor.joblib")
        other = joblib.load(tmp_path / "extractor.joblib")
    else:
        other = copy.deepcopy(fitted)
    assert other.rules_ == fitted.rules_
    assert (other.n_rules_, other.completeness_) == (fitted.n_rules_, fitted.completeness_)
    np.testing.assert_array_equal(other.predict(X), fitted.predict(X))
    assert other.fidelity(X) == fitted.fidelity(X)
    if task == "classification":
        np.testing.assert_array_equal(other.predict_proba(X), fitted.predict_proba(X))


def test_parameters_are_documented(cls):
    text = inspect.getdoc(cls)
    assert all(re.search(rf"^{name} : ", text, re.M) for name in inspect.signature(cls).parameters)
