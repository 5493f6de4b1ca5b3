"""Checks of the contract of extractors, to run at once or as pytest tests."""

from __future__ import annotations

import copy
import functools
import io
import json
import math
import os
import random
import subprocess
import sys
import tempfile
import unittest
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import joblib
import numpy as np
import pandas as pd
from sklearn.base import (
    BaseEstimator,
    ClassifierMixin,
    RegressorMixin,
    clone,
    is_classifier,
    is_regressor,
)
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import accuracy_score, r2_score
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from skescore._optional import import_optional
from skescore._text import did_you_mean
from skescore.black_boxes import CallableClassifier, CallableRegressor, black_box_task
from skescore.metrics import volume_completeness
from skescore.rules import RuleSet, as_ruleset
from skescore.scorers import make_fire_scorer, make_ice_scorer

# --- data and black boxes of the checks ----------------------------------------------------------


Check = Callable[[str, Any], None]

#: All checks in the order of their execution.
CHECKS: list[Check] = []

#: Difficult column names: blanks, quotes, non-ASCII characters, leading digits.
COLUMNS = ("width (cm)", "2nd", "it's a «size»")


def check(function: Check) -> Check:
    """Add a function to the suite; an error of the extractor in it becomes a failure."""

    @functools.wraps(function)
    def checked(name: str, extractor: Any) -> None:
        try:
            function(name, extractor)
        except (AssertionError, unittest.SkipTest):
            raise
        except Exception as error:
            raise AssertionError(
                f"{name}: {function.__name__} raised an unexpected {type(error).__name__}: {error}"
            ) from error

    CHECKS.append(checked)
    return checked


def skip(reason: str) -> NoReturn:
    """Skip a check that does not apply."""
    raise unittest.SkipTest(reason)


def expect(holds: Any, name: str, text: str) -> None:
    """Raise an AssertionError with the name of the extractor unless a condition holds."""
    if not holds:
        raise AssertionError(f"{name}: {text}")


def task_of(extractor: Any) -> str:
    """Return the task of an extractor, which is that of its black box."""
    return black_box_task(extractor.get_params(deep=False).get("estimator"))


def sample(task: str) -> tuple[np.ndarray, np.ndarray]:
    """Return new arrays of rows and a target that depends on two of three features."""
    random = np.random.default_rng(11)
    X = random.uniform(-2.0, 2.0, size=(120, 3))
    if task == "classification":
        return X, ((X[:, 0] > 0.3) & (X[:, 1] > -1.0)).astype(int)
    return X, 3.0 * X[:, 0] + 5.0 * (X[:, 1] > 0.0)


def sample_of(extractor: Any) -> tuple[str, np.ndarray, np.ndarray]:
    """Return the task of an extractor, and rows and a target for it."""
    task = task_of(extractor)
    return task, *sample(task)


def rows_around(X: np.ndarray, beyond: float = 0.5) -> np.ndarray:
    """Return rows that are not in the sample, some of them outside its domain."""
    random = np.random.default_rng(12)
    return random.uniform(X.min(axis=0) - beyond, X.max(axis=0) + beyond, (150, X.shape[1]))


def frame_of(X: np.ndarray) -> pd.DataFrame:
    """Return a new data frame of some rows."""
    return pd.DataFrame(X.copy(), columns=list(COLUMNS))


def neighbors(task: str) -> Any:
    """Return an unfitted black box."""
    return KNeighborsClassifier(5) if task == "classification" else KNeighborsRegressor(5)


def tree(task: str) -> Any:
    """Return an unfitted black box that accepts any data."""
    kind = DecisionTreeClassifier if task == "classification" else DecisionTreeRegressor
    return kind(max_depth=4, random_state=0)


def frozen(task: str, X: np.ndarray, y: np.ndarray) -> FrozenEstimator:
    """Return a fitted black box."""
    return FrozenEstimator(neighbors(task).fit(X, y))


def around(extractor: Any, black_box: Any, **parameters: Any) -> Any:
    """Copy an extractor, unfitted and reproducible, with another black box."""
    clone_ = clone(extractor).set_params(estimator=black_box, **parameters)
    if clone_.get_params(deep=False).get("random_state", 0) is None:
        clone_.set_params(random_state=0)
    return clone_


def fitted(extractor: Any, **parameters: Any) -> Any:
    """Copy an extractor and fit it on the sample; skip the check if it has no rules."""
    task, X, y = sample_of(extractor)
    clone_ = around(extractor, neighbors(task), **parameters)
    clone_.fit(X, y)
    return with_rules(clone_)


def with_rules(extractor: Any) -> Any:
    """Return a fitted extractor, or skip the check if it has no rules."""
    if not isinstance(getattr(extractor, "rules_", None), RuleSet):
        skip("rules_ is no RuleSet, see check_rules")
    return extractor


def expect_same_rules(name: str, extractor: Any, actual: Any, expected: Any, text: str) -> None:
    """Compare rules unless the extractor is not reproducible, which another check reports."""
    if with_rules(actual).rules_ == with_rules(expected).rules_:
        return
    need_reproducible(extractor)
    raise AssertionError(f"{name}: {text}\n{actual.rules_}\ninstead of\n{expected.rules_}")


def need_reproducible(extractor: Any) -> None:
    """Skip a comparison of fits if fits of copies differ, which another check reports."""
    rules = [fitted(extractor).rules_ for _ in range(4)]
    if any(other != rules[0] for other in rules[1:]):
        skip("the rules differ from fit to fit, see check_reproducible")


def _columns_or_type(X: Any) -> Any:
    """Return the columns of a data frame, or the type of other rows."""
    return list(X.columns) if hasattr(X, "columns") else type(X).__name__


class _Recording(BaseEstimator):
    """Black box that predicts by the first column and records the columns it receives."""

    def fit(self, X: Any, y: Any) -> Any:
        self.received_columns_ = [_columns_or_type(X)]
        return self

    def _first(self, X: Any) -> np.ndarray:
        self.received_columns_.append(_columns_or_type(X))
        return np.asarray(X, dtype=float)[:, 0]


class RecordingClassifier(ClassifierMixin, _Recording):
    """Recording black box with the classes 0 and 1."""

    def fit(self, X: Any, y: Any) -> Any:
        """Record the columns and the classes."""
        self.classes_ = np.unique(y)
        return super().fit(X, y)

    def predict(self, X: Any) -> np.ndarray:
        """Predict 1 if the first column is positive."""
        return (self._first(X) > 0).astype(int)


class RecordingRegressor(RegressorMixin, _Recording):
    """Recording black box for regression."""

    def predict(self, X: Any) -> np.ndarray:
        """Predict twice the first column, rounded down to integers."""
        return np.floor(2.0 * self._first(X))


def recording(task: str) -> Any:
    """Return an unfitted black box that records the columns it receives."""
    return RecordingClassifier() if task == "classification" else RecordingRegressor()


# --- parameters, attributes, rules, predictions, scikit-learn -------------------------------------


@check
def check_parameters(name: str, extractor: Any) -> None:
    """Check that the constructor stores its arguments unchanged, with `estimator` among them."""
    parameters = extractor.get_params(deep=False)
    expect("estimator" in parameters, name, "the black box must be the parameter 'estimator'.")
    values = {key: object() for key in parameters}
    try:
        rebuilt = type(extractor)(**values)
    except (TypeError, ValueError) as error:
        raise AssertionError(
            f"{name}: the constructor must store parameters and leave their checks to fit, but "
            f"it raised {type(error).__name__}: {error}"
        ) from error
    stored = rebuilt.get_params(deep=False)
    changes = [key for key, value in values.items() if stored.get(key) is not value]
    expect(not changes, name, f"the constructor must store {changes} unchanged.")


@check
def check_fit_changes_no_parameter(name: str, extractor: Any) -> None:
    """Check that `fit` returns the extractor and changes no parameter."""
    task = task_of(extractor)
    clone_ = around(extractor, neighbors(task))
    before = clone_.get_params(deep=False)
    expect(clone_.fit(*sample(task)) is clone_, name, "fit must return self.")
    after = clone_.get_params(deep=False)
    changes = [key for key in before if after.get(key) is not before[key]]
    expect(not changes, name, f"fit must not change parameters, but it changed {changes}.")


@check
def check_fit_changes_no_data(name: str, extractor: Any) -> None:
    """Check that `fit` changes neither rows nor target."""
    task, X, y = sample_of(extractor)
    around(extractor, neighbors(task)).fit(X, y)
    is_same = np.array_equal(X, sample(task)[0]) and np.array_equal(y, sample(task)[1])
    expect(is_same, name, "fit must not change the caller's arrays.")
    frame = frame_of(X)
    around(extractor, neighbors(task)).fit(frame, y)
    expect(frame.equals(frame_of(X)), name, "fit must not change the caller's DataFrame.")


@check
def check_unfitted(name: str, extractor: Any) -> None:
    """Check that methods that need rules raise NotFittedError before `fit`."""
    clone_ = around(extractor, neighbors(task_of(extractor)))
    X, y = sample(task_of(extractor))
    calls = {
        "predict": (X,),
        "covers": (X,),
        "predict_proba": (X,),
        "score": (X, y),
        "fidelity": (X,),
    }
    for method, arguments in calls.items():
        if method in ("predict", "covers") or hasattr(clone_, method):
            _expect_not_fitted(name, clone_, method, arguments)
    for attribute in ("n_rules_", "coverage_", "completeness_"):
        if hasattr(type(clone_), attribute):
            _expect_not_fitted(name, clone_, attribute, None)
    try:
        as_ruleset(clone_)
    except NotFittedError:
        return
    raise AssertionError(f"{name}: as_ruleset before fit must raise NotFittedError.")


def _expect_not_fitted(name: str, extractor: Any, method: str, arguments: Any) -> None:
    try:
        value = getattr(extractor, method)
        value = value if arguments is None else value(*arguments)
    except NotFittedError:
        return
    except Exception as error:
        raise AssertionError(
            f"{name}: {method} before fit must raise NotFittedError, but it raised "
            f"{type(error).__name__} ({error}). Call sklearn's check_is_fitted(self, 'rules_') "
            "first."
        ) from error
    raise AssertionError(
        f"{name}: {method} before fit must raise NotFittedError, but it returned {value!r}."
    )


@check
def check_clone(name: str, extractor: Any) -> None:
    """Check that a clone has the same parameters but no fitted attributes."""
    clone_ = clone(fitted(extractor))
    is_same = set(clone_.get_params(deep=False)) == set(extractor.get_params(deep=False))
    expect(is_same, name, "a clone must have the same parameters.")
    fitted_names = [key for key in vars(clone_) if key.endswith("_") and not key.startswith("_")]
    expect(not fitted_names, name, f"a clone must not be fitted, but it has {fitted_names}.")


@check
def check_kind(name: str, extractor: Any) -> None:
    """Check that an extractor is a classifier or a regressor like its black box."""
    task = task_of(extractor)
    clone_ = around(extractor, neighbors(task))
    kinds = is_classifier(clone_), is_regressor(clone_)
    expect(
        kinds == (task == "classification", task == "regression"),
        name,
        f"around a black box for {task}, scikit-learn's (is_classifier, is_regressor) return "
        f"{kinds}: let __sklearn_tags__ follow the black box's.",
    )
    if task == "regression":
        expect(not hasattr(clone_, "predict_proba"), name, "a regressor has no predict_proba.")


@check
def check_rules(name: str, extractor: Any) -> None:
    """Check that `rules_` is a RuleSet of the black box's task."""
    task, X, y = sample_of(extractor)
    clone_ = around(extractor, neighbors(task)).fit(X, y)
    rules: Any = getattr(clone_, "rules_", None)
    expect(isinstance(rules, RuleSet), name, f"rules_ must be a RuleSet, got {rules!r:.80}.")
    expect(as_ruleset(clone_) == rules, name, "as_ruleset(extractor) must return rules_.")
    expect(len(rules) >= 1, name, f"rules_ must have at least one rule for {len(X)} rows.")
    expect(rules.task == task, name, f"rules_.task must be {task!r}, got {rules.task!r}.")
    n_features = getattr(clone_, "n_features_in_", None)
    expect(
        rules.n_features == n_features == X.shape[1],
        name,
        f"n_features_in_ and rules_.n_features must be {X.shape[1]}, got {n_features} and "
        f"{rules.n_features}.",
    )
    if task == "regression":
        expect(rules.classes is None, name, "rules of a regression have no classes.")
        expect(not hasattr(clone_, "classes_"), name, "a regressor has no classes_.")
    else:
        classes = np.asarray(getattr(clone_, "classes_", [])).tolist()
        expect(
            classes == list(rules.classes or ()) == np.unique(y).tolist(),
            name,
            f"classes_ and rules_.classes must be those of the black box, {np.unique(y).tolist()}, "
            f"got {classes} and {rules.classes}.",
        )


@check
def check_domain(name: str, extractor: Any) -> None:
    """Check that `rules_.domain`, in which completeness is measured, contains the training rows."""
    X, _ = sample(task_of(extractor))
    domain = fitted(extractor).rules_.domain
    expect(domain is not None, name, "rules_ needs a domain: Domain.around(X).")
    holds = (np.array(domain.lower) <= X.min(axis=0)) & (np.array(domain.upper) >= X.max(axis=0))
    expect(
        holds.all(),
        name,
        f"rules_.domain must contain the training rows, but {domain} does not along the features "
        f"{np.flatnonzero(~holds).tolist()}.",
    )


@check
def check_sizes(name: str, extractor: Any) -> None:
    """Check that `n_rules_`, `coverage_` and `completeness_` are those of the rules."""
    clone_ = fitted(extractor)
    X, _ = sample(task_of(extractor))
    rules = clone_.rules_
    expected: dict[str, Any] = {
        "n_rules_": lambda: len(rules),
        "coverage_": lambda: float(np.mean(rules.covers(X))),
        "completeness_": lambda: float(volume_completeness(rules)),
    }
    present = [attribute for attribute in expected if hasattr(clone_, attribute)]
    if not present:
        skip(f"has none of {', '.join(expected)}")
    for attribute in present:
        actual, value = getattr(clone_, attribute), expected[attribute]()
        expect(
            np.isclose(actual, value, rtol=1e-9, atol=1e-9),
            name,
            f"{attribute} must be {value!r}, the value of the {len(rules)} rules on the training "
            f"data, got {actual!r}. The fallback is not a rule.",
        )


@check
def check_second_fit(name: str, extractor: Any) -> None:
    """Check that a second `fit` on other data does not depend on the first one."""
    task, X, y = sample_of(extractor)
    rows = np.column_stack([-X[:, 1], X[:, 2]])
    other_y = (
        (rows[:, 0] > 0.5).astype(int) if task == "classification" else 2.0 * np.floor(rows[:, 0])
    )
    refitted = around(extractor, neighbors(task))
    refitted.fit(frame_of(X), y)
    refitted.fit(rows, other_y)
    fresh = around(extractor, neighbors(task)).fit(rows, other_y)
    expect_same_rules(name, extractor, refitted, fresh, "a second fit must forget the first.")
    attributes = set(vars(refitted)) ^ set(vars(fresh))
    text = f"a second fit must set the attributes of a first one, but {sorted(attributes)} differ."
    expect(not attributes, name, text)


@check
def check_probabilities(name: str, extractor: Any) -> None:
    """Check that `predict_proba` returns the class probabilities of the rules."""
    clone_ = fitted(extractor)
    if not hasattr(clone_, "predict_proba"):
        skip("has no predict_proba")
    X, _ = sample(task_of(extractor))
    rows = rows_around(X)
    probabilities = np.asarray(clone_.predict_proba(rows))
    classes = np.array(clone_.rules_.classes)
    expect(
        probabilities.shape == (len(rows), len(classes)),
        name,
        f"predict_proba must have shape {(len(rows), len(classes))}, got {probabilities.shape}.",
    )
    expect((probabilities >= 0).all(), name, "predict_proba must not be negative or NaN.")
    sums = probabilities.sum(axis=1)
    expect(np.allclose(sums, 1), name, "predict_proba must sum to 1 in every row.")
    expect(
        np.allclose(probabilities, clone_.rules_.predict_proba(rows)),
        name,
        "predict_proba must be rules_.predict_proba.",
    )


#: Two sorted labels of every type that black boxes predict.
LABELS: dict[str, np.ndarray] = {
    "text": np.array(["no, thanks", "yes"]),
    "objects": np.array(["b", "c"], dtype=object),
    "whole numbers": np.array([7, 1000]),
    "negative numbers": np.array([-3, -1]),
    "small numbers": np.array([-1, 1], dtype=np.int8),
    "float codes": np.array([1.0, 2.0]),
    "truth values": np.array([False, True]),
}


def _are_equal(actual: Any, expected: Any) -> bool:
    """Return whether predictions are equal, with missing ones equal to each other."""
    actual, expected = np.asarray(actual), np.asarray(expected)
    if actual.shape != expected.shape:
        return False
    if expected.dtype.kind == "f" and actual.dtype.kind in "fiu":
        return bool(np.allclose(actual, expected, rtol=1e-9, atol=1e-9, equal_nan=True))
    return actual.tolist() == expected.tolist()


@check
def check_predictions_follow_rules(name: str, extractor: Any) -> None:
    """Check that `covers` and `predict` follow the rules."""
    clone_ = fitted(extractor)
    X, _ = sample(task_of(extractor))
    rows = np.vstack([X, rows_around(X)])
    covered = np.asarray(clone_.covers(rows))
    expect(
        covered.dtype == bool and np.array_equal(covered, clone_.rules_.covers(rows)),
        name,
        f"covers must return rules_.covers, booleans of shape {(len(rows),)}, got "
        f"{covered.dtype} of shape {covered.shape}.",
    )
    y_pred = np.asarray(clone_.predict(rows))
    expect(
        y_pred.shape == (len(rows),),
        name,
        f"predict must return one value per row, {(len(rows),)}, got shape {y_pred.shape}.",
    )
    expect(
        _are_equal(y_pred[covered], clone_.rules_.predict(rows[covered])),
        name,
        "predict must return the predictions of rules_.predict for covered rows.",
    )


@check
def check_uncovered_rows(name: str, extractor: Any) -> None:
    """Check that `predict` by default returns a class or a number for uncovered rows."""
    task = task_of(extractor)
    default = {"uncovered": "default"} if "uncovered" in extractor.get_params(deep=False) else {}
    clone_ = fitted(extractor, **default)
    X, _ = sample(task)
    rows = np.vstack([rows_around(X), X - 1e6, X + 1e6])
    y_pred = np.asarray(clone_.predict(rows))
    if task == "classification":
        unknown = sorted(set(y_pred.tolist()) - set(clone_.rules_.classes or ()), key=repr)
        expect(not unknown, name, f"predict must return only classes, got {unknown[:3]}.")
    else:
        are_finite = y_pred.dtype.kind in "fiu" and np.isfinite(y_pred).all()
        expect(are_finite, name, "predict must return a finite number for every row.")
    uncovered = ~np.asarray(clone_.covers(rows))
    if uncovered.any():
        expect(
            clone_.rules_.fallback is not None,
            name,
            f"{uncovered.sum()} of {len(rows)} rows are uncovered, so rules_ needs a fallback.",
        )
        expect(
            _are_equal(y_pred[uncovered], clone_.rules_.predict(rows[uncovered])),
            name,
            "predict must return the prediction of rules_.fallback for uncovered rows.",
        )


@check
def check_uncovered_policies(name: str, extractor: Any) -> None:
    """Check that `uncovered` changes only the predictions of uncovered rows."""
    if "uncovered" not in extractor.get_params(deep=False):
        skip("has no parameter uncovered")
    task = task_of(extractor)
    X, _ = sample(task)
    rows = np.vstack([X, rows_around(X), X - 1e6])
    default = fitted(extractor, uncovered="default")
    uncovered = ~np.asarray(default.covers(rows))
    expected = np.asarray(default.predict(rows))
    for policy in ("nearest", "abstain"):
        other = fitted(extractor, uncovered=policy)
        predictions = np.asarray(other.predict(rows))
        is_same = np.array_equal(~np.asarray(other.covers(rows)), uncovered)
        if not is_same or not _are_equal(
            predictions[~uncovered].tolist(), expected[~uncovered].tolist()
        ):
            need_reproducible(extractor)
            raise AssertionError(f"{name}: uncovered={policy!r} must not change the rules.")
        if task == "classification":
            is_valid = {
                label in (other.rules_.classes or ()) for label in predictions[uncovered].tolist()
            }
        else:
            is_valid = set(np.isfinite(predictions[uncovered].astype(float)).tolist())
        expect(
            is_valid <= {policy == "nearest"},
            name,
            f"uncovered={policy!r} must predict uncovered rows "
            + ("by the nearest rule." if policy == "nearest" else "by no class or NaN."),
        )


@check
def check_queries_no_black_box(name: str, extractor: Any) -> None:
    """Check that predictions and scores do not query the black box."""
    task, X, y = sample_of(extractor)
    black_box = recording(task).fit(X, y)
    clone_ = with_rules(around(extractor, FrozenEstimator(black_box)).fit(X, y))
    n_queries = len(black_box.received_columns_)
    rows = rows_around(X)
    for method in ("predict", "covers", "predict_proba", "score"):
        if not hasattr(clone_, method):
            continue
        labels = (np.resize(y, len(rows)),) if method == "score" else ()
        getattr(clone_, method)(rows, *labels)
        expect(
            len(black_box.received_columns_) == n_queries,
            name,
            f"{method} must need only the rules, but it queried the black box.",
        )


def _measure(task: str) -> Any:
    return accuracy_score if task == "classification" else r2_score


@check
def check_score(name: str, extractor: Any) -> None:
    """Check that `score` is accuracy or R², and that a weight of two counts as two rows."""
    clone_ = fitted(extractor)
    if not hasattr(clone_, "score"):
        skip("has no score")
    task, X, y = sample_of(extractor)
    actual, score = clone_.score(X, y), _measure(task)(y, clone_.predict(X))
    expect(
        isinstance(actual, float) and math.isclose(actual, score, rel_tol=1e-9),
        name,
        f"score must be {_measure(task).__name__} of y and predict(X), {score!r}, got {actual!r}.",
    )
    weights = np.random.default_rng(0).integers(0, 4, len(y))
    repeated = np.repeat(np.arange(len(y)), weights)
    actual, score = (
        clone_.score(X, y, sample_weight=weights),
        clone_.score(X[repeated], y[repeated]),
    )
    expect(
        math.isclose(actual, score, rel_tol=1e-9),
        name,
        f"score with weights must be that of repeated rows, {score!r}, got {actual!r}.",
    )


@check
def check_fidelity(name: str, extractor: Any) -> None:
    """Check that `fidelity` compares predictions of the rules with those of the black box."""
    task, X, y = sample_of(extractor)
    black_box = frozen(task, X, y)
    clone_ = with_rules(around(extractor, black_box).fit(X, y))
    if not hasattr(clone_, "fidelity"):
        skip("has no fidelity")
    around_X = rows_around(X)
    for rows in (X, around_X[np.asarray(clone_.covers(around_X))]):
        actual = clone_.fidelity(rows)
        score = _measure(task)(black_box.predict(rows), clone_.predict(rows))
        expect(
            math.isclose(actual, score, rel_tol=1e-9),
            name,
            f"fidelity must compare with the black box's predictions, {score!r}, got {actual!r}.",
        )


@check
def check_labels(name: str, extractor: Any) -> None:
    """Check that labels of every type are returned and do not change the rules."""
    if task_of(extractor) != "classification":
        skip("labels are for classification")
    X, y = sample("classification")
    plain = fitted(extractor)
    for kind, labels in LABELS.items():
        clone_ = around(extractor, neighbors("classification")).fit(X, labels[y])
        y_pred = np.asarray(with_rules(clone_).predict(X))
        expect(
            y_pred.dtype.kind == labels.dtype.kind,
            name,
            f"labels that are {kind} must be predicted with this type ({labels.dtype}), got "
            f"{y_pred.dtype}.",
        )
        outputs = [rule.output for rule in clone_.rules_]
        expected = [labels.tolist()[rule.output] for rule in plain.rules_]
        conditions = [rule.conditions for rule in clone_.rules_]
        if conditions != [rule.conditions for rule in plain.rules_] or outputs != expected:
            need_reproducible(extractor)
            raise AssertionError(
                f"{name}: rules must not depend on the names of classes, but those for "
                f"{labels.tolist()} differ from those for [0, 1]:\n{clone_.rules_}\n{plain.rules_}"
            )


@check
def check_json(name: str, extractor: Any) -> None:
    """Check that rules and predictions are unchanged after a conversion to JSON and back."""
    clone_ = fitted(extractor)
    X, _ = sample(task_of(extractor))
    restored = RuleSet.from_json(clone_.rules_.to_json())
    expect(restored == clone_.rules_, name, "RuleSet.from_json(rules_.to_json()) must be rules_.")
    covered = X[clone_.rules_.covers(X)]
    expect(
        _are_equal(restored.predict(covered), clone_.rules_.predict(covered)),
        name,
        "rules must predict the same after a conversion to JSON and back.",
    )


@check
def check_pickle(name: str, extractor: Any) -> None:
    """Check that pickle and deepcopy preserve fitted and unfitted extractors."""
    clone_ = fitted(extractor)
    X, _ = sample(task_of(extractor))

    def pickled(value: Any) -> Any:
        buffer = io.BytesIO()
        joblib.dump(value, buffer)
        buffer.seek(0)
        return joblib.load(buffer)  # bytes written above

    for how, duplicate in (("pickle", pickled), ("deepcopy", copy.deepcopy)):
        try:
            unfitted = duplicate(around(extractor, neighbors(task_of(extractor))))
            again = duplicate(clone_)
        except Exception as error:
            raise AssertionError(
                f"{name}: {how} must be able to copy the extractor, but it raised "
                f"{type(error).__name__}: {error}"
            ) from error
        expect(not hasattr(unfitted, "rules_"), name, f"{how} must not fit the extractor.")
        expect(again.rules_ == clone_.rules_, name, f"rules must be the same after {how}.")
        for method in ("predict", "covers", "predict_proba", "fidelity"):
            if hasattr(clone_, method):
                is_same = np.array_equal(getattr(again, method)(X), getattr(clone_, method)(X))
                expect(is_same, name, f"{method} must return the same after {how}.")


@check
def check_grid_search(name: str, extractor: Any) -> None:
    """Check that GridSearchCV sets the black box's parameters and ranks by scores of rules."""
    task, X, y = sample_of(extractor)
    fitted(extractor)  # skips the check if there are no rules to score
    search = GridSearchCV(
        around(extractor, neighbors(task)),
        {"estimator__n_neighbors": [3, 9]},
        scoring={"ice": make_ice_scorer(), "neg_fire": make_fire_scorer()},
        refit="ice",
        cv=2,
        error_score="raise",
    ).fit(X, y)
    for score in ("ice", "neg_fire"):
        scores = search.cv_results_[f"mean_test_{score}"]
        expect(
            np.isfinite(scores).all(),
            name,
            f"GridSearchCV must get finite scores by {score}, got {scores}.",
        )
    expected = around(
        extractor,
        neighbors(task).set_params(
            **{key.removeprefix("estimator__"): value for key, value in search.best_params_.items()}
        ),
    ).fit(X, y)
    text = f"GridSearchCV must set {search.best_params_} in the black box."
    expect_same_rules(name, extractor, search.best_estimator_, expected, text)


@check
def check_pipeline(name: str, extractor: Any) -> None:
    """Check that rules after a scaler can be shown in the caller's units."""
    task, X, y = sample_of(extractor)
    X = X * [1.0, 50.0, 0.02] + [0.0, 1000.0, 3.0]
    pipeline = make_pipeline(StandardScaler(), around(extractor, neighbors(task))).fit(X, y)
    rules, X_scaled = with_rules(pipeline[-1]).rules_, pipeline[:-1].transform(X)
    y_pred = np.asarray(pipeline.predict(X))
    expect(y_pred.shape == (len(X),), name, "a Pipeline with a scaler must predict every row.")
    readable = as_ruleset(pipeline)
    # A row exactly on the border of a box may change sides when units are converted.
    covered = readable.covers(X) & rules.covers(X_scaled)
    actual, expected = readable.predict(X[covered]), rules.predict(X_scaled[covered])
    is_same = actual == expected if task == "classification" else np.isclose(actual, expected)
    expect(
        covered.sum() >= 0.9 * rules.covers(X_scaled).sum() and np.mean(is_same) >= 0.9,
        name,
        "as_ruleset(pipeline) must predict like the rules, in the units of the Pipeline's input.",
    )
    score = make_ice_scorer()(pipeline, X, y)
    expect(
        np.isfinite(score),
        name,
        f"the ICE score of a Pipeline with a scaler must be finite, got {score}.",
    )


@check
def check_feature_names(name: str, extractor: Any) -> None:
    """Check that rules name a data frame's columns and otherwise equal the rules of an array."""
    task, X, y = sample_of(extractor)
    of_frame = with_rules(around(extractor, neighbors(task)).fit(frame_of(X), y))
    expect(
        of_frame.rules_.feature_names == COLUMNS,
        name,
        f"rules_.feature_names must be the columns {COLUMNS}, got {of_frame.rules_.feature_names}.",
    )
    names = tuple(getattr(of_frame, "feature_names_in_", ()))
    expect(names == COLUMNS, name, f"feature_names_in_ must be the columns {COLUMNS}, got {names}.")
    of_array = fitted(extractor)
    of_array.rules_ = of_array.rules_.replace(feature_names=COLUMNS)
    text = "a DataFrame must lead to the rules of an array, except for the names."
    expect_same_rules(name, extractor, of_frame, of_array, text)


@check
def check_column_order(name: str, extractor: Any) -> None:
    """Check that columns in another order are rejected or matched by name."""
    task, X, y = sample_of(extractor)
    clone_ = with_rules(around(extractor, neighbors(task)).fit(frame_of(X), y))
    frame = frame_of(rows_around(X))
    reversed_frame = frame[list(COLUMNS[::-1])]
    renamed = frame.set_axis([f"{column} of another kind" for column in COLUMNS], axis=1)
    for method in ("predict", "covers"):
        call = getattr(clone_, method)
        expected = np.asarray(call(frame)).tolist()
        try:
            actual = np.asarray(call(reversed_frame)).tolist()
        except ValueError:
            actual = expected
        expect(
            actual == expected,
            name,
            f"{method} mixed up columns in another order: reject them with a ValueError, or match "
            "them by name.",
        )
        _expect_refused(name, f"{method} for columns of other names", call, renamed)


def _expect_refused(name: str, defect: str, call: Callable[..., Any], *arguments: Any) -> None:
    try:
        call(*arguments)
    except ValueError as error:
        expect(str(error).strip(), name, f"{defect} must be rejected with an error message.")
        return
    except Exception as error:
        raise AssertionError(
            f"{name}: {defect} must be rejected with a ValueError, but it raised "
            f"{type(error).__name__}: {error}"
        ) from error
    raise AssertionError(
        f"{name}: {defect} must be rejected with a ValueError, but it was accepted."
    )


@check
def check_missing_values(name: str, extractor: Any) -> None:
    """Check that NaN is rejected, or handled by rules if the tags allow it."""
    task, X, y = sample_of(extractor)
    if getattr(get_tags(around(extractor, neighbors(task))).input_tags, "allow_nan", False):
        X[3, 1] = X[10, 2] = np.nan
        clone_ = with_rules(around(extractor, tree(task)).fit(X, y))
        y_pred = np.asarray(clone_.predict(X))
        is_complete = y_pred.shape == (len(X),) and bool((y_pred == y_pred).all())
        expect(is_complete, name, "predict must return a prediction for every row, even with NaN.")
        X, _ = sample(task)
        clone_ = with_rules(around(extractor, tree(task)).fit(X, y))
        for column in range(X.shape[1]):
            X_missing = X.copy()
            X_missing[:, column] = np.nan
            is_covered = np.asarray(clone_.rules_.covers(X_missing))
            # Another check tests whether predictions follow the rules.
            is_covered &= np.asarray(clone_.predict(X)) == np.asarray(clone_.rules_.predict(X))
            actual, expected_labels = clone_.predict(X_missing), clone_.rules_.predict(X_missing)
            is_same = _are_equal(
                np.asarray(actual)[is_covered], np.asarray(expected_labels)[is_covered]
            )
            expect(is_same, name, "predict must handle NaN as rules_ does.")
        return
    clone_ = with_rules(around(extractor, tree(task)).fit(X, y))
    X[3, 1] = np.nan
    for method in ("predict", "covers"):
        _expect_refused(name, f"NaN in {method}", getattr(clone_, method), X)
    black_box = FrozenEstimator(tree(task).fit(*sample(task)))  # a black box that accepts NaN
    _expect_refused(name, "NaN in fit", around(extractor, black_box).fit, X, y)


@check
def check_number_of_columns(name: str, extractor: Any) -> None:
    """Check that rows with another number of columns or dimensions are rejected."""
    X, _ = sample(task_of(extractor))
    clone_ = fitted(extractor)
    for defect, rows in {
        "one column less": X[:, :2],
        "one column more": np.column_stack([X, X[:, 0]]),
        "a single row without its second dimension": X[0],
    }.items():
        for method in ("predict", "covers"):
            _expect_refused(name, f"{defect} in {method}", getattr(clone_, method), rows)


@check
def check_unusable_targets(name: str, extractor: Any) -> None:
    """Check that a target of wrong length, or none for an unfitted black box, is rejected."""
    task, X, y = sample_of(extractor)
    clone_ = around(extractor, neighbors(task))
    _expect_refused(name, "a target of another length", clone_.fit, X, y[:-1])
    clone_ = around(extractor, neighbors(task))
    _expect_refused(name, "no target for an unfitted black box", clone_.fit, X)


def _expect_sound(name: str, extractor: Any, X: np.ndarray, context: str) -> None:
    """Raise an error unless rules have the properties required for any data."""
    y_pred = np.asarray(with_rules(extractor).predict(X))
    expect(y_pred.shape == (len(X),), name, f"predict must predict every row of {context}.")
    completeness = getattr(extractor, "completeness_", 1.0)
    expect(0 <= completeness <= 1, name, f"completeness_ of {context} is {completeness!r}.")


@check
def check_constant_features(name: str, extractor: Any) -> None:
    """Check that extraction works with a constant column."""
    task, X, y = sample_of(extractor)
    X[:, 2] = 4.0
    clone_ = around(extractor, tree(task)).fit(X, y)
    _expect_sound(name, clone_, X, "data with a constant feature")


@check
def check_one_prediction(name: str, extractor: Any) -> None:
    """Check the rules of a black box with constant predictions, and the warning for one class."""
    task, X, y = sample_of(extractor)
    constant = (
        DummyClassifier(strategy="constant", constant=1)
        if task == "classification"
        else DummyRegressor(strategy="constant", constant=2.5)
    )
    with warnings.catch_warnings(record=True) as records:
        warnings.simplefilter("always")
        clone_ = around(extractor, FrozenEstimator(constant.fit(X, y))).fit(X, y)
    expected = constant.predict(X)
    expect(
        np.allclose(np.asarray(with_rules(clone_).predict(X), dtype=float), expected),
        name,
        f"rules of a black box that always predicts {expected[0]} must predict that.",
    )
    has_warned = task == "regression" or any(issubclass(w.category, UserWarning) for w in records)
    text = "fit must warn (UserWarning) about a black box that predicts only one class."
    expect(has_warned, name, text)


@check
def check_duplicate_rows(name: str, extractor: Any) -> None:
    """Check that extraction works with duplicate rows."""
    task = task_of(extractor)
    X, y = (np.repeat(values[:40], 3, axis=0) for values in sample(task))
    clone_ = around(extractor, tree(task)).fit(X, y)
    _expect_sound(name, clone_, X, "data with repeated rows")


@check
def check_tiny_data(name: str, extractor: Any) -> None:
    """Check that two rows, or one column, lead to rules or a ValueError with a message."""
    task, X, y = sample_of(extractor)
    pair = [int(np.argmin(y)), int(np.argmax(y))]
    for label, rows, target in (
        ("two rows", X[pair], y[pair]),
        ("one column", X[:, :1], (X[:, 0] > 0).astype(y.dtype)),
    ):
        clone_ = around(extractor, tree(task))
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # warnings about few rows are allowed
                clone_.fit(rows, target)
        except ValueError as error:
            expect(str(error).strip(), name, f"{label} must be rejected with an error message.")
            continue
        _expect_sound(name, clone_, rows, label)


@check
def check_unfitted_black_box(name: str, extractor: Any) -> None:
    """Check that an unfitted black box is cloned, and only the clone is fitted."""
    task, X, y = sample_of(extractor)
    black_box = neighbors(task)
    before = copy.deepcopy(vars(black_box))
    clone_ = around(extractor, black_box).fit(X, y)
    try:
        check_is_fitted(black_box)
    except NotFittedError:
        pass
    else:
        raise AssertionError(f"{name}: fit must fit a clone of the black box, not the caller's.")
    expect(vars(black_box) == before, name, "fit must not change the caller's black box.")
    explained = around(extractor, frozen(task, X, y)).fit(X, y)
    expect_same_rules(
        name,
        extractor,
        clone_,
        explained,
        "rules of an unfitted black box must be those of one that was fitted on the same rows.",
    )


@check
def check_frozen_black_box(name: str, extractor: Any) -> None:
    """Check that a FrozenEstimator is not fitted and that rules follow its predictions."""
    task, X, y = sample_of(extractor)
    model = neighbors(task).fit(X, y)
    before = model.predict(rows_around(X))
    expected = around(extractor, FrozenEstimator(model)).fit(X, y)
    refitted = around(extractor, FrozenEstimator(model)).fit(X, y[::-1].copy())
    is_same = np.array_equal(model.predict(rows_around(X)), before)
    expect(is_same, name, "fit must not change the model of a FrozenEstimator.")
    expect_same_rules(
        name,
        extractor,
        refitted,
        expected,
        "rules must come from the black box's predictions: they changed with another target, "
        "although the predictions of the FrozenEstimator did not.",
    )


@check
def check_fitted_black_box_without_target(name: str, extractor: Any) -> None:
    """Check that `fit` needs no target for a fitted black box."""
    task, X, y = sample_of(extractor)
    expected = around(extractor, frozen(task, X, y)).fit(X, y)
    extractor_without_target = around(extractor, frozen(task, X, y)).fit(X)
    expect_same_rules(
        name,
        extractor,
        extractor_without_target,
        expected,
        "fit(X) must give the rules of fit(X, y) for a fitted black box.",
    )


@check
def check_callable_black_box(name: str, extractor: Any) -> None:
    """Check that a function in an adapter can be the black box."""
    task, X, y = sample_of(extractor)
    model = neighbors(task).fit(X, y)
    black_box = (
        CallableClassifier(model.predict, classes=[0, 1])
        if task == "classification"
        else CallableRegressor(model.predict)
    )
    expected = around(extractor, FrozenEstimator(model)).fit(X, y)
    from_callable = around(extractor, black_box).fit(X, y)
    expect_same_rules(
        name,
        extractor,
        from_callable,
        expected,
        "rules of a function must be those of the model that it calls.",
    )


@check
def check_container(name: str, extractor: Any) -> None:
    """Check that the black box receives a data frame if the extractor does."""
    task, X, y = sample_of(extractor)
    model = recording(task)
    clone_ = around(extractor, model).fit(frame_of(X), y)
    queried_columns = getattr(getattr(clone_, "estimator_", None), "received_columns_", None)
    if queried_columns is None:  # without estimator_, the caller's black box recorded the queries
        black_box = FrozenEstimator(recording(task).fit(frame_of(X), y))
        around(extractor, black_box).fit(frame_of(X), y)
        queried_columns = black_box.estimator.received_columns_
    columns = list(frame_of(X).columns)
    wrong_columns = [columns_seen for columns_seen in queried_columns if columns_seen != columns]
    expect(
        not wrong_columns,
        name,
        f"an extractor that is fitted on a DataFrame must pass DataFrames with the columns "
        f"{columns} to the black box, but it passed {wrong_columns[:1]}.",
    )


_PROGRAM = """
import json, sys
sys.path[:] = json.loads(sys.argv[2])
import joblib
extractor, X, y = joblib.load(sys.argv[1])
sys.stdout.write(extractor.fit(X, y).rules_.to_json())
"""


@check
def check_reproducible(name: str, extractor: Any) -> None:
    """Check that copies with the same `random_state` give the same rules."""
    rules = [fitted(extractor).rules_ for _ in range(4)]
    expect(
        all(other == rules[0] for other in rules[1:]),
        name,
        "fits on the same rows must give the same rules. Draw random numbers only from "
        "sklearn.utils.check_random_state(self.random_state), and do not iterate over sets.",
    )


@check
def check_global_random_state(name: str, extractor: Any) -> None:
    """Check that the global generators of NumPy and Python are neither seeded nor used."""
    state: Any = np.random.get_state()
    python_state = random.getstate()
    try:
        np.random.seed(3)
        random.seed(3)
        before: Any = np.random.get_state()
        before_in_python = random.getstate()
        fitted(extractor)
        after: Any = np.random.get_state()
        is_same = np.array_equal(before[1], after[1]) and before[2:] == after[2:]
        expect(is_same, name, "fit must not change NumPy's global generator.")
        is_same = before_in_python == random.getstate()
        expect(is_same, name, "fit must not change Python's global generator.")
    finally:
        np.random.set_state(state)
        random.setstate(python_state)


def _check_unchanged_by(name: str, extractor: Any, parameter: str, values: tuple[Any, ...]) -> None:
    if parameter not in extractor.get_params(deep=False):
        skip(f"has no parameter {parameter}")
    expected = fitted(extractor, **{parameter: None})
    for value in values:
        refitted = fitted(extractor, **{parameter: value})
        text = f"{parameter}={value} must not change the rules."
        expect_same_rules(name, extractor, refitted, expected, text)


@check
def check_batch_size(name: str, extractor: Any) -> None:
    """Check that the batch size does not change the rules."""
    _check_unchanged_by(name, extractor, "batch_size", (13, 1000))


@check
def check_n_jobs(name: str, extractor: Any) -> None:
    """Check that the number of workers does not change the rules."""
    _check_unchanged_by(name, extractor, "n_jobs", (1, 2))


@check
def check_hash_seed(name: str, extractor: Any) -> None:
    """Check that Python's hash seed does not change the rules."""
    task, X, y = sample_of(extractor)
    clone_ = around(extractor, neighbors(task))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "extractor.joblib"
        try:
            joblib.dump((clone_, X, y), path)
        except Exception as error:
            skip(f"cannot be sent to another process ({error}), see check_pickle")
        runs = [
            subprocess.Popen(
                [
                    sys.executable,
                    "-c",
                    _PROGRAM,
                    str(path),
                    json.dumps([str(part) for part in sys.path]),
                ],
                env=os.environ | {"PYTHONHASHSEED": seed},
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                encoding="utf-8",
            )
            for seed in ("1", "2")
        ]
        outputs = [run.communicate() for run in runs]
    for run, (_, errors) in zip(runs, outputs, strict=True):
        if run.returncode and ("ModuleNotFoundError" in errors or "Can't get attribute" in errors):
            skip(f"{type(extractor).__module__} cannot be imported by another process")
        expect(not run.returncode, name, f"fit failed in another process:\n{errors}")
    expected = fitted(extractor).rules_.to_json()
    if any(output != expected for output, _ in outputs):
        need_reproducible(extractor)
        raise AssertionError(
            f"{name}: rules must not depend on PYTHONHASHSEED: sort the elements of sets."
        )


# --- running the checks ---------------------------------------------------------------------------


class CheckOutcome(NamedTuple):
    """Outcome of one check.

    Parameters
    ----------
    check : str
        Name of the check.
    status : {"passed", "skipped"}
        A check is skipped if the extractor lacks the checked feature.
    reason : str, default=""
        Reason why it was skipped.
    """

    check: str
    status: str
    reason: str = ""


def extractor_checks(*, exclude: Iterable[str] = ()) -> Iterator[Check]:
    """Yield the checks of the contract of extractors.

    Use it to run them one by one; :func:`check_extractor` runs all of them.

    Parameters
    ----------
    exclude : iterable of str, default=()
        Names of checks to skip.

    Yields
    ------
    callable
        Function ``check(name, extractor)`` that raises an AssertionError starting with the name, or
        ``unittest.SkipTest`` if the extractor lacks the checked feature.

    Raises
    ------
    ValueError
        If `exclude` contains an unknown name.

    Examples
    --------
    >>> from skescore.testing import extractor_checks
    >>> next(extractor_checks()).__name__
    'check_parameters'
    """
    names = [check.__name__ for check in CHECKS]
    excluded = {exclude} if isinstance(exclude, str) else set(exclude)
    for name in sorted(excluded, key=str):
        if name not in names:
            raise ValueError(f"exclude must name checks, got {name!r}. {did_you_mean(name, names)}")
    return (check for check in CHECKS if check.__name__ not in excluded)


def check_extractor(extractor: Any, *, exclude: Iterable[str] = ()) -> tuple[CheckOutcome, ...]:
    """Run all checks on an extractor and raise an error if one fails.

    Use it in a test of your own extractor. :func:`parametrize_with_extractor_checks` creates a test
    per check.

    Parameters
    ----------
    extractor : extractor
        Unfitted instance with any black box, whose kind (classifier or regressor) determines what
        is checked. Checks work on copies with their own small black boxes. Choose parameters with
        which it is fast on a hundred rows.
    exclude : iterable of str, default=()
        Names of checks to skip.

    Returns
    -------
    tuple of CheckOutcome
        Outcomes of the checks, with the reasons of skipped ones.

    Raises
    ------
    AssertionError
        If checks fail. The error lists all failures, and its cause is the first one.
    TypeError
        If the extractor is a class or not an estimator, or its black box is neither a classifier
        nor a regressor.
    ValueError
        If `exclude` contains an unknown name.

    Notes
    -----
    An extractor needs no base class of this package. Required are ``fit(X, y=None)``, ``predict``,
    ``covers``, ``rules_``, ``get_params`` and ``set_params`` with the black box as ``estimator``,
    and scikit-learn's tags. ``predict_proba``, ``score``, ``fidelity``, ``n_rules_``,
    ``coverage_``, ``completeness_`` and the parameters ``uncovered``, ``batch_size``, ``n_jobs``
    and ``random_state`` are checked if they exist. ``check_hash_seed`` takes some seconds, because
    it starts two processes.

    Examples
    --------
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> from skescore.extractors import CARTExtractor
    >>> from skescore.testing import check_extractor
    >>> extractor = CARTExtractor(KNeighborsClassifier(), max_leaf_nodes=4)
    >>> outcomes = check_extractor(extractor, exclude=["check_hash_seed"])
    >>> [(o.check, o.reason) for o in outcomes if o.status == "skipped"]
    [('check_n_jobs', 'has no parameter n_jobs')]
    """
    name = _name_of(extractor)
    outcomes, failures = [], []
    for check in extractor_checks(exclude=exclude):
        try:
            check(name, extractor)
        except unittest.SkipTest as reason:
            outcomes.append(CheckOutcome(check.__name__, "skipped", str(reason)))
        except AssertionError as error:
            failures.append((check.__name__, error))
        else:
            outcomes.append(CheckOutcome(check.__name__, "passed"))
    if failures:
        texts = "\n".join(f"- {check}: {error}" for check, error in failures)
        raise AssertionError(
            f"{name} fails {len(failures)} of {len(failures) + len(outcomes)} checks:\n{texts}"
        ) from failures[0][1]
    return tuple(outcomes)


def parametrize_with_extractor_checks(
    extractors: Sequence[Any], *, exclude: Iterable[str] = ()
) -> Any:
    """Return a pytest decorator that runs every check on every extractor as a separate test.

    Parameters
    ----------
    extractors : sequence of extractors
        Instances, see :func:`check_extractor`.
    exclude : iterable of str, default=()
        Names of checks to skip.

    Returns
    -------
    pytest.MarkDecorator
        Decorator of a test with arguments ``extractor`` and ``check`` that calls
        ``check(extractor)``.

    Raises
    ------
    ImportError
        If pytest is not installed.
    TypeError, ValueError
        See :func:`check_extractor`.

    Examples
    --------
    >>> from sklearn.linear_model import LinearRegression, LogisticRegression
    >>> from skescore.extractors import CARTExtractor
    >>> from skescore.testing import parametrize_with_extractor_checks
    >>> @parametrize_with_extractor_checks(
    ...     [CARTExtractor(LogisticRegression()), CARTExtractor(LinearRegression())]
    ... )
    ... def test_contract(extractor, check):
    ...     check(extractor)
    """
    pytest = import_optional("pytest", extra="test", purpose="A test per check")
    excluded = [exclude] if isinstance(exclude, str) else list(exclude)
    cases = []
    for extractor in extractors:
        name = _name_of(extractor)
        for check in extractor_checks(exclude=excluded):
            bound = functools.partial(check, name)
            cases.append(pytest.param(extractor, bound, id=f"{name}-{check.__name__}"))
    return pytest.mark.parametrize(("extractor", "check"), cases)


def _name_of(extractor: Any) -> str:
    """Return the name of an extractor in messages; raise an error for other objects."""
    if isinstance(extractor, type):
        raise TypeError(
            f"extractor must be an instance, got the class {extractor.__name__}. Pass "
            f"{extractor.__name__}(black_box)."
        )
    if not hasattr(extractor, "get_params"):
        raise TypeError(
            "extractor must have get_params, as scikit-learn's estimators do, with the black box "
            f"as 'estimator', got {extractor!r}. Derive its class from sklearn.base.BaseEstimator."
        )
    return f"{type(extractor).__name__}-{task_of(extractor)}"
