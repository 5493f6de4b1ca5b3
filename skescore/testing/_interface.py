"""Checks of the interface: parameters, attributes after fit, and what clones and refits keep."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.exceptions import NotFittedError

from skescore.metrics import volume_completeness
from skescore.rules import RuleSet, as_ruleset
from skescore.testing._samples import (
    around,
    check,
    expect,
    expect_same_rules,
    fitted,
    frame_of,
    neighbours,
    rows_around,
    sample,
    skip,
    task_of,
)


@check
def check_parameters(name: str, extractor: Any) -> None:
    """The constructor stores what it is given, untouched; the black box is called `estimator`."""
    parameters = extractor.get_params(deep=False)
    expect("estimator" in parameters, name, "the black box must be the parameter 'estimator'.")
    values = {key: object() for key in parameters}
    try:
        made = type(extractor)(**values)
    except (TypeError, ValueError) as error:
        raise AssertionError(
            f"{name}: the constructor must store parameters and leave checking them to fit, but "
            f"it raised {type(error).__name__}: {error}"
        ) from error
    stored = made.get_params(deep=False)
    changed = [key for key, value in values.items() if stored.get(key) is not value]
    expect(not changed, name, f"the constructor must store {changed} as they come.")


@check
def check_fit_changes_no_parameter(name: str, extractor: Any) -> None:
    """`fit` returns the extractor, and all parameters are what they were."""
    task = task_of(extractor)
    copied = around(extractor, neighbours(task))
    before = copied.get_params(deep=False)
    expect(copied.fit(*sample(task)) is copied, name, "fit must return self.")
    after = copied.get_params(deep=False)
    changed = [key for key in before if after.get(key) is not before[key]]
    expect(not changed, name, f"fit must not change parameters, but it changed {changed}.")


@check
def check_fit_changes_no_data(name: str, extractor: Any) -> None:
    """Rows and target, in arrays and frames, are after `fit` what they were."""
    task = task_of(extractor)
    X, y = sample(task)
    around(extractor, neighbours(task)).fit(X, y)
    same = np.array_equal(X, sample(task)[0]) and np.array_equal(y, sample(task)[1])
    expect(same, name, "fit must not change the caller's arrays.")
    frame = frame_of(X)
    around(extractor, neighbours(task)).fit(frame, y)
    expect(frame.equals(frame_of(X)), name, "fit must not change the caller's DataFrame.")


@check
def check_unfitted(name: str, extractor: Any) -> None:
    """Whatever is asked before `fit` raises NotFittedError."""
    copied = around(extractor, neighbours(task_of(extractor)))
    X, y = sample(task_of(extractor))
    calls = {
        "predict": (X,), "covers": (X,), "predict_proba": (X,), "score": (X, y), "fidelity": (X,),
    }  # fmt: skip
    for method, arguments in calls.items():
        if method in ("predict", "covers") or hasattr(copied, method):
            _expect_not_fitted(name, copied, method, arguments)
    for attribute in ("n_rules_", "coverage_", "completeness_"):
        if hasattr(type(copied), attribute):
            _expect_not_fitted(name, copied, attribute, None)
    try:
        as_ruleset(copied)
    except NotFittedError:
        return
    raise AssertionError(f"{name}: as_ruleset before fit must raise NotFittedError.")


def _expect_not_fitted(name: str, extractor: Any, what: str, arguments: Any) -> None:
    try:
        value = getattr(extractor, what)
        value = value if arguments is None else value(*arguments)
    except NotFittedError:
        return
    except Exception as error:
        raise AssertionError(
            f"{name}: {what} before fit must raise NotFittedError, but it raised "
            f"{type(error).__name__} ({error}). Call sklearn's check_is_fitted(self, 'rules_') "
            "first."
        ) from error
    raise AssertionError(
        f"{name}: {what} before fit must raise NotFittedError, but it gave {value!r}."
    )


@check
def check_clone(name: str, extractor: Any) -> None:
    """A clone has the parameters and nothing of what was learned."""
    copied = clone(fitted(extractor))
    same = set(copied.get_params(deep=False)) == set(extractor.get_params(deep=False))
    expect(same, name, "a clone must have the same parameters.")
    left = [key for key in vars(copied) if key.endswith("_") and not key.startswith("_")]
    expect(not left, name, f"a clone must not be fitted, but it has {left}.")


@check
def check_kind(name: str, extractor: Any) -> None:
    """An extractor is a classifier or a regressor as its black box is."""
    task = task_of(extractor)
    copied = around(extractor, neighbours(task))
    right = is_classifier(copied), is_regressor(copied)
    expect(
        right == (task == "classification", task == "regression"),
        name,
        f"around a black box for {task}, scikit-learn's (is_classifier, is_regressor) give {right}:"
        " let __sklearn_tags__ follow the black box's.",
    )
    if task == "regression":
        expect(not hasattr(copied, "predict_proba"), name, "a regressor has no predict_proba.")


@check
def check_rules(name: str, extractor: Any) -> None:
    """`rules_` is a RuleSet of the black box's task, and everything finds it there."""
    task = task_of(extractor)
    X, y = sample(task)
    copied = around(extractor, neighbours(task)).fit(X, y)
    rules: Any = getattr(copied, "rules_", None)
    expect(isinstance(rules, RuleSet), name, f"rules_ must be a RuleSet, got {rules!r:.80}.")
    expect(as_ruleset(copied) == rules, name, "as_ruleset(extractor) must give rules_.")
    expect(len(rules) >= 1, name, f"rules_ must hold a rule for {len(X)} rows.")
    expect(rules.task == task, name, f"rules_.task must be {task!r}, got {rules.task!r}.")
    n_features = getattr(copied, "n_features_in_", None)
    expect(
        rules.n_features == n_features == X.shape[1],
        name,
        f"n_features_in_ and rules_.n_features must be {X.shape[1]}, got {n_features} and "
        f"{rules.n_features}.",
    )
    if task == "regression":
        expect(rules.classes is None, name, "rules of a regression have no classes.")
        expect(not hasattr(copied, "classes_"), name, "a regressor has no classes_.")
    else:
        classes = np.asarray(getattr(copied, "classes_", [])).tolist()
        expect(
            classes == list(rules.classes or ()) == np.unique(y).tolist(),
            name,
            f"classes_ and rules_.classes must be those of the black box, {np.unique(y).tolist()}, "
            f"got {classes} and {rules.classes}.",
        )


@check
def check_domain(name: str, extractor: Any) -> None:
    """`rules_.domain` is a box that holds the training rows: completeness is measured in it."""
    X, _ = sample(task_of(extractor))
    domain = fitted(extractor).rules_.domain
    expect(domain is not None, name, "rules_ needs a domain: Domain.around(X).")
    holds = (np.array(domain.lower) <= X.min(axis=0)) & (np.array(domain.upper) >= X.max(axis=0))
    expect(
        holds.all(),
        name,
        f"rules_.domain must hold the training rows, but {domain} does not along the features "
        f"{np.flatnonzero(~holds).tolist()}.",
    )


@check
def check_sizes(name: str, extractor: Any) -> None:
    """`n_rules_`, `coverage_` and `completeness_` say of the rules what is so."""
    copied = fitted(extractor)
    X, _ = sample(task_of(extractor))
    rules = copied.rules_
    expected: dict[str, Any] = {
        "n_rules_": lambda: len(rules),
        "coverage_": lambda: float(np.mean(rules.covers(X))),
        "completeness_": lambda: float(volume_completeness(rules)),
    }
    known = [attribute for attribute in expected if hasattr(copied, attribute)]
    if not known:
        skip(f"has none of {', '.join(expected)}")
    for attribute in known:
        found, right = getattr(copied, attribute), expected[attribute]()
        expect(
            np.isclose(found, right, rtol=1e-9, atol=1e-9),
            name,
            f"{attribute} must be {right!r}, what its {len(rules)} rules give on the training "
            f"data, got {found!r}. The fallback is no rule.",
        )


@check
def check_second_fit(name: str, extractor: Any) -> None:
    """A second `fit` on other data leaves nothing of the first."""
    task = task_of(extractor)
    X, y = sample(task)
    other = np.column_stack([-X[:, 1], X[:, 2]])
    target = (
        (other[:, 0] > 0.5).astype(int) if task == "classification" else 2.0 * np.floor(other[:, 0])
    )
    again = around(extractor, neighbours(task))
    again.fit(frame_of(X), y)
    again.fit(other, target)
    fresh = around(extractor, neighbours(task)).fit(other, target)
    expect_same_rules(name, extractor, again, fresh, "a second fit must forget the first.")
    odd = set(vars(again)) ^ set(vars(fresh))
    expect(not odd, name, f"a second fit must forget the first, but {sorted(odd)} remain or lack.")


@check
def check_probabilities(name: str, extractor: Any) -> None:
    """`predict_proba` gives the shares of classes that are the rules', and `predict` their best."""
    copied = fitted(extractor)
    if not hasattr(copied, "predict_proba"):
        skip("has no predict_proba")
    X, _ = sample(task_of(extractor))
    rows = rows_around(X)
    shares = np.asarray(copied.predict_proba(rows))
    classes = np.array(copied.rules_.classes)
    expect(
        shares.shape == (len(rows), len(classes)),
        name,
        f"predict_proba must have shape {(len(rows), len(classes))}, got {shares.shape}.",
    )
    expect((shares >= 0).all(), name, "predict_proba must not be negative or NaN.")
    expect(np.allclose(shares.sum(axis=1), 1), name, "predict_proba must sum to 1 in every row.")
    expect(
        np.allclose(shares, copied.rules_.predict_proba(rows)),
        name,
        "predict_proba must be rules_.predict_proba.",
    )
