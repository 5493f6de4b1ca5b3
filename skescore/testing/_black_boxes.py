"""Checks of how an extractor treats its black box, whatever kind that is."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.utils.validation import check_is_fitted

from skescore.extractors import CallableClassifier, CallableRegressor
from skescore.testing._samples import (
    around,
    check,
    expect,
    expect_same_rules,
    frame_of,
    frozen,
    neighbours,
    recording,
    rows_around,
    sample,
    task_of,
)


@check
def check_unfitted_black_box(name: str, extractor: Any) -> None:
    """An unfitted black box is cloned and the clone is fitted: the caller's stays as it is."""
    task = task_of(extractor)
    X, y = sample(task)
    black_box = neighbours(task)
    before = copy.deepcopy(vars(black_box))
    copied = around(extractor, black_box).fit(X, y)
    try:
        check_is_fitted(black_box)
    except NotFittedError:
        pass
    else:
        raise AssertionError(f"{name}: fit must fit a clone of the black box, not the caller's.")
    expect(vars(black_box) == before, name, "fit must not change the caller's black box.")
    explained = around(extractor, frozen(task, X, y)).fit(X, y)
    expect_same_rules(
        name, extractor, copied, explained,
        "rules of an unfitted black box must be those of one that was fitted on the same rows.",
    )  # fmt: skip


@check
def check_frozen_black_box(name: str, extractor: Any) -> None:
    """A FrozenEstimator is used as it is, and rules come from its answers, not from the target."""
    task = task_of(extractor)
    X, y = sample(task)
    model = neighbours(task).fit(X, y)
    before = model.predict(rows_around(X))
    expected = around(extractor, FrozenEstimator(model)).fit(X, y)
    found = around(extractor, FrozenEstimator(model)).fit(X, y[::-1].copy())
    same = np.array_equal(model.predict(rows_around(X)), before)
    expect(same, name, "fit must leave a FrozenEstimator's model as it is.")
    expect_same_rules(
        name, extractor, found, expected,
        "rules must come from the black box's answers: they changed with another target, though "
        "the FrozenEstimator answers the same.",
    )  # fmt: skip


@check
def check_fitted_black_box_without_target(name: str, extractor: Any) -> None:
    """A black box that is fitted needs no target: `fit(X)` is enough."""
    task = task_of(extractor)
    X, y = sample(task)
    expected = around(extractor, frozen(task, X, y)).fit(X, y)
    found = around(extractor, frozen(task, X, y)).fit(X)
    expect_same_rules(
        name, extractor, found, expected, "fit(X) must give the rules of fit(X, y) for a fitted"
        " black box."
    )  # fmt: skip


@check
def check_callable_black_box(name: str, extractor: Any) -> None:
    """A function behind an adapter is a black box, though it knows nothing of itself."""
    task = task_of(extractor)
    X, y = sample(task)
    model = neighbours(task).fit(X, y)
    black_box = (
        CallableClassifier(model.predict, classes=[0, 1])
        if task == "classification"
        else CallableRegressor(model.predict)
    )
    expected = around(extractor, FrozenEstimator(model)).fit(X, y)
    found = around(extractor, black_box).fit(X, y)
    expect_same_rules(
        name, extractor, found, expected, "rules of a function must be those of the model behind."
    )


@check
def check_container(name: str, extractor: Any) -> None:
    """The black box is shown a frame if the extractor was: models look columns up by name."""
    task = task_of(extractor)
    X, y = sample(task)
    model = recording(task)
    copied = around(extractor, model).fit(frame_of(X), y)
    shown = getattr(getattr(copied, "estimator_", None), "shown_", None)
    if shown is None:  # it keeps no estimator_; the caller's own one tells what it was asked
        black_box = FrozenEstimator(recording(task).fit(frame_of(X), y))
        around(extractor, black_box).fit(frame_of(X), y)
        shown = black_box.estimator.shown_
    columns = list(frame_of(X).columns)
    strange = [what for what in shown if what != columns]
    expect(
        not strange,
        name,
        f"fitted on a DataFrame, the black box must be shown DataFrames with the columns {columns},"
        f" but it was shown {strange[:1]}.",
    )
