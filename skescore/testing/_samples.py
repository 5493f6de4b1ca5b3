"""The data and black boxes of the checks, and what several checks need."""

from __future__ import annotations

import functools
import unittest
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone
from sklearn.frozen import FrozenEstimator
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from skescore.extractors import black_box_task
from skescore.rules import RuleSet

Check = Callable[[str, Any], None]

#: All checks, in the order in which they are run.
CHECKS: list[Check] = []

#: Column names with what may hurt: blanks, quotes, signs of other languages, digits in front.
COLUMNS = ("width (cm)", "2nd", "it's a «size»")


def check(function: Check) -> Check:
    """Add a function to the suite; whatever an extractor raises in it becomes a finding."""

    @functools.wraps(function)
    def checked(name: str, extractor: Any) -> None:
        try:
            function(name, extractor)
        except (AssertionError, unittest.SkipTest):
            raise
        except Exception as error:
            raise AssertionError(
                f"{name}: {function.__name__} met an unexpected {type(error).__name__}: {error}"
            ) from error

    CHECKS.append(checked)
    return checked


def skip(reason: str) -> NoReturn:
    """Say that a check has nothing to look at."""
    raise unittest.SkipTest(reason)


def expect(holds: Any, name: str, text: str) -> None:
    """Raise an AssertionError that names the extractor."""
    if not holds:
        raise AssertionError(f"{name}: {text}")


def task_of(extractor: Any) -> str:
    """The task of an extractor is that of its black box."""
    return black_box_task(extractor.get_params(deep=False).get("estimator"))


def sample(task: str) -> tuple[np.ndarray, np.ndarray]:
    """Rows with a target that two of the three features decide; new arrays on every call."""
    random = np.random.default_rng(11)
    X = random.uniform(-2.0, 2.0, size=(120, 3))
    if task == "classification":
        return X, ((X[:, 0] > 0.3) & (X[:, 1] > -1.0)).astype(int)
    return X, 3.0 * X[:, 0] + 5.0 * (X[:, 1] > 0.0)


def rows_around(X: np.ndarray, beyond: float = 0.5) -> np.ndarray:
    """Rows that no extractor has been shown, some of them outside of the training rows' box."""
    random = np.random.default_rng(12)
    return random.uniform(X.min(axis=0) - beyond, X.max(axis=0) + beyond, (150, X.shape[1]))


def frame_of(X: np.ndarray) -> pd.DataFrame:
    """A new frame of some rows."""
    return pd.DataFrame(X.copy(), columns=list(COLUMNS))


def neighbours(task: str) -> Any:
    """A black box that is not fitted."""
    return KNeighborsClassifier(5) if task == "classification" else KNeighborsRegressor(5)


def tree(task: str) -> Any:
    """A black box that is content with any data; not fitted."""
    kind = DecisionTreeClassifier if task == "classification" else DecisionTreeRegressor
    return kind(max_depth=4, random_state=0)


def frozen(task: str, X: np.ndarray, y: np.ndarray) -> FrozenEstimator:
    """A fitted black box."""
    return FrozenEstimator(neighbours(task).fit(X, y))


def around(extractor: Any, black_box: Any, **parameters: Any) -> Any:
    """Copy an extractor, unfitted and reproducible, with another black box."""
    copied = clone(extractor).set_params(estimator=black_box, **parameters)
    if copied.get_params(deep=False).get("random_state", 0) is None:
        copied.set_params(random_state=0)
    return copied


def fitted(extractor: Any, **parameters: Any) -> Any:
    """Copy an extractor and fit it on the sample.

    That its rules are a rule set is the business of one check; others cannot go on without.
    """
    task = task_of(extractor)
    X, y = sample(task)
    copied = around(extractor, neighbours(task), **parameters)
    copied.fit(X, y)
    return with_rules(copied)


def with_rules(extractor: Any) -> Any:
    """Give a fitted extractor back, or skip the check if there are no rules to look at."""
    if not isinstance(getattr(extractor, "rules_", None), RuleSet):
        skip("rules_ is no RuleSet, see check_rules")
    return extractor


def expect_same_rules(name: str, extractor: Any, found: Any, expected: Any, text: str) -> None:
    """Compare rules; an extractor that never gives the same ones is found by another check."""
    if with_rules(found).rules_ == with_rules(expected).rules_:
        return
    need_reproducible(extractor)
    raise AssertionError(f"{name}: {text}\n{found.rules_}\ninstead of\n{expected.rules_}")


def need_reproducible(extractor: Any) -> None:
    """Skip what compares fits if fits of copies differ anyhow, which one check finds."""
    rules = [fitted(extractor).rules_ for _ in range(4)]
    if any(other != rules[0] for other in rules[1:]):
        skip("the rules differ from fit to fit, see check_reproducible")


def _described(X: Any) -> Any:
    """The columns of a frame, or what else it is."""
    return list(X.columns) if hasattr(X, "columns") else type(X).__name__


class _Recording(BaseEstimator):
    """A black box that predicts by the first column and notes what it is shown."""

    def fit(self, X: Any, y: Any) -> Any:
        self.shown_ = [_described(X)]
        return self

    def _first(self, X: Any) -> np.ndarray:
        self.shown_.append(_described(X))
        return np.asarray(X, dtype=float)[:, 0]


class RecordingClassifier(ClassifierMixin, _Recording):
    """See :class:`_Recording`; the classes are 0 and 1."""

    def fit(self, X: Any, y: Any) -> Any:
        """Note the rows and the classes."""
        self.classes_ = np.unique(y)
        return super().fit(X, y)

    def predict(self, X: Any) -> np.ndarray:
        """Predict 1 where the first column is positive."""
        return (self._first(X) > 0).astype(int)


class RecordingRegressor(RegressorMixin, _Recording):
    """See :class:`_Recording`."""

    def predict(self, X: Any) -> np.ndarray:
        """Predict twice the first column, cut off to whole numbers."""
        return np.floor(2.0 * self._first(X))


def recording(task: str) -> Any:
    """A black box that notes what it is shown; not fitted."""
    return RecordingClassifier() if task == "classification" else RecordingRegressor()
