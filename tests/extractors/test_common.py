"""Properties of every extractor.

The module finds the extractors by itself; their settings are in `conftest.py`. The
contract that everyone's extractors keep is the suite of :mod:`skescore.testing`; here are, beside
it, scikit-learn's own checks and what holds of ours alone.
"""

from __future__ import annotations

import inspect
import pickle
import re
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone, is_classifier
from sklearn.datasets import make_classification, make_friedman1
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from sklearn.utils.estimator_checks import parametrize_with_checks

from skescore import extractors
from skescore.extractors import BaseExtractor
from skescore.registry import EXTRACTORS, extractor_class
from skescore.rules import AtLeast, LinearOutput

#: Classes of one kind of black box, numbers of the other.
BLACK_BOXES = [DecisionTreeClassifier(random_state=0), DecisionTreeRegressor(random_state=0)]


def subclasses(cls: type) -> set[type]:
    return {cls, *(s for child in cls.__subclasses__() for s in subclasses(child))}


#: Tested with the real platform, which is optional, with own learners, and with
#: earlier rules.
APART = {
    extractor_class("psyke:cart"),
    extractors.SurrogateExtractor,
    extractors.RevisedRulesExtractor,
}
EXPORTED = {
    getattr(extractors, name)
    for name in extractors.__all__
    if getattr(extractors, name) in subclasses(BaseExtractor) - {BaseExtractor, *APART}
}


def test_registry_lists_all_exported_extractors():
    ours = {
        c
        for c in subclasses(BaseExtractor)
        if c.__module__.startswith("skescore.") and (c in EXPORTED or not c.__subclasses__())
    }
    assert ours - {BaseExtractor, *APART} == EXPORTED
    assert {extractor_class(name) for name in EXTRACTORS} == EXPORTED


#: Proofs of optimality, and needless queries, would take most of the time.
LIMITS = {
    "optimal-list": {"cuts_per_feature": 4, "max_nodes": 40},
    "optimal-tree": {"max_nodes": 20},
    "trepan": {"min_sample": 200},
}


@parametrize_with_checks(
    [
        extractor_class(name)(black_box, **LIMITS.get(name, {}))
        for name, spec in EXTRACTORS.items()
        for black_box in BLACK_BOXES
        if ("classification" if is_classifier(black_box) else "regression") in spec.tasks
    ],
)
def test_extractors_pass_scikit_learn_checks(estimator, check):
    check(estimator)


def test_extractors_keep_the_contract(extractor, check):
    check(extractor)


# --- the data ---


def data_of(task: str) -> tuple[np.ndarray, np.ndarray]:
    if task == "classification":
        return make_classification(150, 4, n_informative=3, n_redundant=0, random_state=1)
    return make_friedman1(150, 5, random_state=1)


@pytest.fixture
def cls(name):
    return extractor_class(name)


@pytest.fixture
def task(able):
    return able


@pytest.fixture
def data(task):
    return data_of(task)


@pytest.fixture
def unfitted(make, task):
    return make(KNeighborsClassifier(5) if task == "classification" else KNeighborsRegressor(5))


@pytest.fixture(scope="module")
def known():
    return {}


@pytest.fixture
def fitted(known, name, task, data, unfitted):
    """Return an extractor that is fitted once for all tests that do not change it."""
    if (name, task) not in known:
        known[name, task] = unfitted.fit(*data)
    return known[name, task]


# --- parameters ---


def test_parameters_are_keywords_stored_unchanged(cls):
    parameters = dict(inspect.signature(cls).parameters)
    assert next(iter(parameters)) == "estimator"
    parameters.pop("estimator")
    assert {"uncovered", "abstain_label", "batch_size"} <= set(parameters)
    assert all(p.kind is p.KEYWORD_ONLY for p in parameters.values())
    values = {name: object() for name in ["estimator", *parameters]}
    extractor = cls(**values)
    assert all(getattr(extractor, name) is value for name, value in values.items())
    assert set(vars(extractor)) == set(values)


# --- attributes after fit ---


def test_fit_sets_documented_attributes(data, fitted):
    X, _ = data
    assert fitted.n_rules_ >= 2
    assert fitted.rules_.feature_names == tuple(f"x{j}" for j in range(X.shape[1]))
    assert isinstance(fitted.coverage_, float)
    assert isinstance(fitted.completeness_, float)
    assert fitted.completeness_ > 0
    assert fitted.oracle_.estimator is fitted.estimator_
    assert fitted.estimator_ is not fitted.estimator


def test_domain_encloses_rows_closely(data, fitted):
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


def test_predictions_come_from_first_matching_rule(data, fitted, task):
    X, _ = data
    random = np.random.default_rng(0)
    rows = np.vstack([X, random.uniform(X.min(axis=0) - 1, X.max(axis=0) + 1, (200, X.shape[1]))])
    answers, covered = fitted.predict(rows), fitted.covers(rows)
    shares = fitted.predict_proba(rows) if task == "classification" else [None] * len(rows)
    for row, answer, is_covered, share in zip(rows, answers, covered, shares, strict=True):
        matching = [r for r in fitted.rules_ if all(holds(c, row) for c in r.conditions)]
        assert bool(matching) == is_covered
        if matching and isinstance(matching[0].output, LinearOutput):
            assert answer == pytest.approx(output_of(matching[0], row))
        else:
            assert answer == (matching[0].output if matching else fitted.rules_.fallback.output)
        if matching and share is not None:
            counts = np.array(matching[0].statistics.class_counts)
            np.testing.assert_allclose(share, counts / counts.sum())


def test_outputs_summarize_black_box_predictions(data, unfitted, task, monkeypatch):
    X, y = data
    monkeypatch.setattr(type(unfitted), "readable_bounds", False)  # shortens numbers, see below
    drawn = {"min_examples", "min_sample"} & set(unfitted.get_params())  # points beyond the rows
    fitted = unfitted.set_params(**dict.fromkeys(drawn, 0)).fit(X, y)
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
            assert rule.statistics.standard_deviation == pytest.approx(inside.std(), abs=1e-9)


def test_fallback_describes_uncovered_rows(data, fitted, task):
    X, y = data
    predictions = clone(fitted.estimator).fit(X, y).predict(X)
    uncovered = ~fitted.covers(X)
    if uncovered.any():
        predictions = predictions[uncovered]
    fallback = fitted.rules_.fallback
    if task == "classification":
        counts = np.bincount(predictions, minlength=len(fitted.classes_))
        assert fallback.output == counts.argmax()
        assert fallback.class_counts == tuple(counts)
    else:
        # In four digits, or more if the range of predictions requires more.
        assert fallback.output == pytest.approx(predictions.mean(), rel=5.1e-4)
        assert len(repr(fallback.output).replace(".", "").strip("-0")) <= 6


def test_fidelity_reuses_predictions_of_fit(data, unfitted):
    X, y = data
    fitted = unfitted.fit(X, y)
    calls = fitted.oracle_.n_calls
    answers = clone(fitted.estimator).fit(X, y).predict(X)
    assert fitted.fidelity(X) == fitted.score(X, answers)
    assert fitted.oracle_.n_calls == calls  # the rows of fit are remembered
    other = X + 0.25
    assert fitted.fidelity(other) == fitted.score(other, fitted.estimator_.predict(other))
    assert fitted.oracle_.n_calls == calls + 1


@pytest.mark.parametrize(
    "case",
    [(name, "both") for name, spec in EXTRACTORS.items() if len(spec.tasks) == 2],
    ids=lambda case: case[0],
)
def test_second_fit_forgets_first(make):
    X, y = data_of("classification")
    extractor = make(KNeighborsClassifier(5)).fit(X, y)
    other_X, other_y = data_of("regression")
    extractor.set_params(estimator=KNeighborsRegressor(5)).fit(other_X, other_y)
    fresh = make(KNeighborsRegressor(5)).fit(other_X, other_y)
    assert extractor.rules_ == fresh.rules_
    assert set(vars(extractor)) == set(vars(fresh))
    assert extractor.oracle_.n_rows == fresh.oracle_.n_rows


def test_extractors_survive_pickle(data, fitted):
    X, _ = data
    other = pickle.loads(pickle.dumps(fitted))
    assert other.rules_ == fitted.rules_
    assert (other.n_rules_, other.completeness_) == (fitted.n_rules_, fitted.completeness_)
    np.testing.assert_array_equal(other.predict(X), fitted.predict(X))


def test_parameters_are_documented(cls):
    text = inspect.getdoc(cls)
    assert all(re.search(rf"^{name} : ", text, re.M) for name in inspect.signature(cls).parameters)
