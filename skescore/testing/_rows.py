"""Checks of the rows: names of columns, what must be refused, and what is unusual but right."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.utils import get_tags

from skescore.testing._samples import (
    COLUMNS,
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
    tree,
    with_rules,
)


@check
def check_feature_names(name: str, extractor: Any) -> None:
    """Rules speak of a frame's columns, and are otherwise those of an array."""
    task = task_of(extractor)
    X, y = sample(task)
    of_frame = with_rules(around(extractor, neighbours(task)).fit(frame_of(X), y))
    expect(
        of_frame.rules_.feature_names == COLUMNS,
        name,
        f"rules_.feature_names must be the columns {COLUMNS}, got {of_frame.rules_.feature_names}.",
    )
    found = tuple(getattr(of_frame, "feature_names_in_", ()))
    expect(found == COLUMNS, name, f"feature_names_in_ must be the columns {COLUMNS}, got {found}.")
    of_array = fitted(extractor)
    of_array.rules_ = of_array.rules_.replace(feature_names=COLUMNS)
    text = "a DataFrame must give the rules of an array, but for the names."
    expect_same_rules(name, extractor, of_frame, of_array, text)


@check
def check_column_order(name: str, extractor: Any) -> None:
    """Columns in another order are refused or told by their names, and never mixed up."""
    task = task_of(extractor)
    X, y = sample(task)
    copied = with_rules(around(extractor, neighbours(task)).fit(frame_of(X), y))
    frame = frame_of(rows_around(X))
    turned = frame[list(COLUMNS[::-1])]
    renamed = frame.set_axis([f"{column} of another kind" for column in COLUMNS], axis=1)
    for method in ("predict", "covers"):
        ask = getattr(copied, method)
        expected = np.asarray(ask(frame)).tolist()
        try:
            found = np.asarray(ask(turned)).tolist()
        except ValueError:
            found = expected
        expect(
            found == expected,
            name,
            f"{method} mixed up columns in another order: refuse them with a ValueError, or look "
            "them up by their names.",
        )
        _expect_refused(name, f"{method} for columns of other names", ask, renamed)


def _expect_refused(name: str, what: str, call: Callable[..., Any], *arguments: Any) -> None:
    try:
        call(*arguments)
    except ValueError as error:
        expect(str(error).strip(), name, f"{what} must be refused with a text that says why.")
        return
    except Exception as error:
        raise AssertionError(
            f"{name}: {what} must be refused with a ValueError, but it raised "
            f"{type(error).__name__}: {error}"
        ) from error
    raise AssertionError(f"{name}: {what} must be refused with a ValueError, but it went through.")


@check
def check_missing_values(name: str, extractor: Any) -> None:
    """NaN is refused by `fit`, `predict` and `covers`, unless the tags say that it may come."""
    task = task_of(extractor)
    if getattr(get_tags(around(extractor, neighbours(task))).input_tags, "allow_nan", False):
        skip("its tags allow missing values")
    X, y = sample(task)
    copied = with_rules(around(extractor, tree(task)).fit(X, y))
    X[3, 1] = np.nan
    for method in ("predict", "covers"):
        _expect_refused(name, f"NaN in {method}", getattr(copied, method), X)
    black_box = FrozenEstimator(tree(task).fit(*sample(task)))  # which would not mind
    _expect_refused(name, "NaN in fit", around(extractor, black_box).fit, X, y)


@check
def check_number_of_columns(name: str, extractor: Any) -> None:
    """Rows with another number of columns, and rows without a second dimension, are refused."""
    X, _ = sample(task_of(extractor))
    copied = fitted(extractor)
    for what, rows in {
        "one column less": X[:, :2],
        "one column more": np.column_stack([X, X[:, 0]]),
        "a single row without its second dimension": X[0],
    }.items():
        for method in ("predict", "covers"):
            _expect_refused(name, f"{what} in {method}", getattr(copied, method), rows)


@check
def check_unusable_targets(name: str, extractor: Any) -> None:
    """A target of another length, and none at all for an unfitted black box, are refused."""
    task = task_of(extractor)
    X, y = sample(task)
    copied = around(extractor, neighbours(task))
    _expect_refused(name, "a target of another length", copied.fit, X, y[:-1])
    copied = around(extractor, neighbours(task))
    _expect_refused(name, "no target for an unfitted black box", copied.fit, X)


def _expect_sound(name: str, copied: Any, X: np.ndarray, what: str) -> None:
    """What holds of rules for any data."""
    answers = np.asarray(with_rules(copied).predict(X))
    expect(answers.shape == (len(X),), name, f"predict must answer every row of {what}.")
    completeness = getattr(copied, "completeness_", 1.0)
    expect(0 <= completeness <= 1, name, f"completeness_ of {what} is {completeness!r}.")


@check
def check_constant_features(name: str, extractor: Any) -> None:
    """A column that holds one value only is no obstacle."""
    task = task_of(extractor)
    X, y = sample(task)
    X[:, 2] = 4.0
    copied = around(extractor, tree(task)).fit(X, y)
    _expect_sound(name, copied, X, "data with a constant feature")


@check
def check_one_answer(name: str, extractor: Any) -> None:
    """A black box that always answers the same gives that answer, and for a class a warning."""
    task = task_of(extractor)
    X, y = sample(task)
    constant = (
        DummyClassifier(strategy="constant", constant=1)
        if task == "classification"
        else DummyRegressor(strategy="constant", constant=2.5)
    )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        copied = around(extractor, FrozenEstimator(constant.fit(X, y))).fit(X, y)
    expected = constant.predict(X)
    expect(
        np.allclose(np.asarray(with_rules(copied).predict(X), dtype=float), expected),
        name,
        f"rules of a black box that always answers {expected[0]} must answer that.",
    )
    told = task == "regression" or any(issubclass(w.category, UserWarning) for w in caught)
    expect(told, name, "fit must warn (UserWarning) of a black box that answers one class only.")


@check
def check_duplicate_rows(name: str, extractor: Any) -> None:
    """Rows that occur several times are no obstacle."""
    task = task_of(extractor)
    X, y = (np.repeat(values[:40], 3, axis=0) for values in sample(task))
    copied = around(extractor, tree(task)).fit(X, y)
    _expect_sound(name, copied, X, "data with repeated rows")


@check
def check_tiny_data(name: str, extractor: Any) -> None:
    """Two rows, and one column, give rules or a ValueError that says why not."""
    task = task_of(extractor)
    X, y = sample(task)
    two = [int(np.argmin(y)), int(np.argmax(y))]
    for what, rows, target in (
        ("two rows", X[two], y[two]),
        ("one column", X[:, :1], (X[:, 0] > 0).astype(y.dtype)),
    ):
        copied = around(extractor, tree(task))
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # it may well say that this is little
                copied.fit(rows, target)
        except ValueError as error:
            expect(str(error).strip(), name, f"{what} must be refused with a text that says why.")
            continue
        _expect_sound(name, copied, rows, what)
