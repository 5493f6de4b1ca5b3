"""Checks of what an extractor is given: rows, black boxes, seeds and machines."""

from __future__ import annotations

import copy
import json
import os
import random
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import joblib
import numpy as np
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from skescore.extractors import CallableClassifier, CallableRegressor
from skescore.testing._samples import (
    COLUMNS,
    around,
    check,
    expect,
    expect_same_rules,
    fitted,
    frame_of,
    frozen,
    need_reproducible,
    neighbours,
    recording,
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
    """Columns in another order are refused or found by their names, and never mixed up."""
    task = task_of(extractor)
    X, y = sample(task)
    copied = with_rules(around(extractor, neighbours(task)).fit(frame_of(X), y))
    frame = frame_of(rows_around(X))
    turned = frame[list(COLUMNS[::-1])]
    renamed = frame.set_axis([f"{column} of another kind" for column in COLUMNS], axis=1)
    for method in ("predict", "covers"):
        call = getattr(copied, method)
        expected = np.asarray(call(frame)).tolist()
        try:
            found = np.asarray(call(turned)).tolist()
        except ValueError:
            found = expected
        expect(
            found == expected,
            name,
            f"{method} mixed up columns in another order: refuse them with a ValueError, or look "
            "them up by their names.",
        )
        _expect_refused(name, f"{method} for columns of other names", call, renamed)


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
    y_pred = np.asarray(with_rules(copied).predict(X))
    expect(y_pred.shape == (len(X),), name, f"predict must predict every row of {what}.")
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
def check_one_prediction(name: str, extractor: Any) -> None:
    """A black box that always predicts the same gives rules that do, and for a class a warning."""
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
        f"rules of a black box that always predicts {expected[0]} must predict that.",
    )
    warned = task == "regression" or any(issubclass(w.category, UserWarning) for w in caught)
    text = "fit must warn (UserWarning) of a black box that predicts one class only."
    expect(warned, name, text)


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


# --- black boxes ----------------------------------------------------------------------------------


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
    """A FrozenEstimator is used as it is; rules come from its predictions, not the target."""
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
        "rules must come from the black box's predictions: they changed with another target, "
        "though the FrozenEstimator predicts the same.",
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
    if shown is None:  # it keeps no estimator_; the caller's own one knows what it was shown
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


# --- the same data and seed -----------------------------------------------------------------------

_PROGRAM = """
import json, sys
sys.path[:] = json.loads(sys.argv[2])
import joblib
extractor, X, y = joblib.load(sys.argv[1])
sys.stdout.write(extractor.fit(X, y).rules_.to_json())
"""


@check
def check_reproducible(name: str, extractor: Any) -> None:
    """Copies with one seed in `random_state` give the same rules."""
    rules = [fitted(extractor).rules_ for _ in range(4)]
    expect(
        all(other == rules[0] for other in rules[1:]),
        name,
        "fits on the same rows must give the same rules. Draw random numbers from "
        "sklearn.utils.check_random_state(self.random_state) alone, and loop over no sets.",
    )


@check
def check_global_random_state(name: str, extractor: Any) -> None:
    """NumPy's global generator is neither seeded nor used, nor Python's."""
    kept: Any = np.random.get_state()
    kept_by_python = random.getstate()
    try:
        np.random.seed(3)
        random.seed(3)
        before: Any = np.random.get_state()
        before_in_python = random.getstate()
        fitted(extractor)
        after: Any = np.random.get_state()
        same = np.array_equal(before[1], after[1]) and before[2:] == after[2:]
        expect(same, name, "fit must leave NumPy's global generator alone.")
        same = before_in_python == random.getstate()
        expect(same, name, "fit must leave Python's global generator alone.")
    finally:
        np.random.set_state(kept)
        random.setstate(kept_by_python)


def _same_with(name: str, extractor: Any, parameter: str, values: tuple[Any, ...]) -> None:
    if parameter not in extractor.get_params(deep=False):
        skip(f"has no parameter {parameter}")
    expected = fitted(extractor, **{parameter: None})
    for value in values:
        found = fitted(extractor, **{parameter: value})
        text = f"{parameter}={value} must not change the rules."
        expect_same_rules(name, extractor, found, expected, text)


@check
def check_batch_size(name: str, extractor: Any) -> None:
    """How many rows the black box is shown at once does not matter."""
    _same_with(name, extractor, "batch_size", (13, 1000))


@check
def check_n_jobs(name: str, extractor: Any) -> None:
    """How many workers there are does not matter."""
    _same_with(name, extractor, "n_jobs", (1, 2))


@check
def check_hash_seed(name: str, extractor: Any) -> None:
    """Python's hash seed, another one in each process, does not matter."""
    task = task_of(extractor)
    X, y = sample(task)
    copied = around(extractor, neighbours(task))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "extractor.joblib"
        try:
            joblib.dump((copied, X, y), path)
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
    if any(found != expected for found, _ in outputs):
        need_reproducible(extractor)
        raise AssertionError(
            f"{name}: rules must not depend on PYTHONHASHSEED: sort what comes out of a set."
        )
