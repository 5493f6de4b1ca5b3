"""Data, black boxes, splits, scores and reference values for the comparison of tuners."""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from run import CLASSES, synthetic
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone
from sklearn.datasets import make_friedman1
from sklearn.ensemble import RandomForestRegressor
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier

from skescore.scorers import make_fire_scorer, make_ice_scorer

#: Names of classification data here and in `run.py`.
CLASSIFIED = {"iris": "iris", "wine": "wine", "breast_cancer": "wbc"}
DATA = (*CLASSIFIED, "friedman10", "synthetic")
#: Weights by score: phi and rho of ICE, psi of FiRe.
WEIGHTS: dict[str, dict[str, float]] = {
    "ice11": {"phi": 1, "rho": 1},
    "ice31": {"phi": 3, "rho": 1},
    "ice13": {"phi": 1, "rho": 3},
    "fire1": {"psi": 1},
    "fire3": {"psi": 3},
    "fire5": {"psi": 5},
}
SCORES = tuple(WEIGHTS)
#: Best FiRe(1) and ICE(1, 1) of PSyKE on seed 0, measured like the value `marked` of `measure`.
MARKS = {
    "iris": (0.126776, 0.975668),
    "wine": (0.678302, 0.964745),
    "breast_cancer": (0.162473, 0.978115),
    "synthetic": (0.218481, 0.976020),
}

#: CPU time of the thread that does all the work; other processes do not affect it.
clock = time.thread_time


class Problem(NamedTuple):
    """Fitted black box, the half of the data for the search, and the half for scoring."""

    model: Any
    X_train: np.ndarray
    y_train: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    task: str


class Ledger:
    """Counter of the queries of all clones of one black box, and cache of their fits.

    The time of these fits is not counted for any method, because users bring their black box.
    """

    def __init__(self) -> None:
        self.calls, self.n_rows, self.fit_seconds = 0, 0, 0.0
        self.fitted: dict[bytes, Any] = {}

    def __deepcopy__(self, memory: Any) -> Ledger:
        return self


class Counted(BaseEstimator):
    """Black box whose clones share one ledger."""

    def __init__(self, model: Any, ledger: Any) -> None:
        self.model, self.ledger = model, ledger

    def fit(self, X: Any, y: Any) -> Counted:
        X = np.asarray(X)
        key = X.tobytes()
        if key not in self.ledger.fitted:
            start = clock()
            self.ledger.fitted[key] = clone(self.model).fit(X, y)
            self.ledger.fit_seconds += clock() - start
        self.model_ = self.ledger.fitted[key]
        self.n_features_in_ = X.shape[1]
        if hasattr(self.model_, "classes_"):
            self.classes_ = self.model_.classes_
        return self

    def predict(self, X: Any) -> np.ndarray:
        self.ledger.calls += 1
        self.ledger.n_rows += len(X)
        return self.model_.predict(np.asarray(X))


class CountedClassifier(ClassifierMixin, Counted):
    """Counted classifier; PSyKE recognizes classifiers by their base class."""


class CountedRegressor(RegressorMixin, Counted):
    """Counted regressor."""


def make_counted(problem: Problem) -> Any:
    """Return the black box, fitted on the training half, with a new ledger.

    Searches that cross-validate clone it, so it is fitted again on each fold. A black box that has
    seen the held-out rows of a fold would reveal their labels.
    """
    kind = CountedClassifier if problem.task == "classification" else CountedRegressor
    ledger = Ledger()
    ledger.fitted[problem.X_train.tobytes()] = problem.model
    return kind(clone(problem.model), ledger).fit(problem.X_train, problem.y_train)


def make_problem(data: str, seed: int) -> Problem:
    """Split the data into halves and fit the black box on the first."""
    task = "classification" if data in CLASSIFIED else "regression"
    model: Any
    if task == "classification":
        bunch = CLASSES[CLASSIFIED[data]]()
        X, y = bunch.data, bunch.target_names[bunch.target].astype(str)
        model = DecisionTreeClassifier(random_state=0)
        if data == "iris":
            model = KNeighborsClassifier(9)
    else:
        X, y = (
            synthetic()
            if data == "synthetic"
            else make_friedman1(1000, 10, noise=0.5, random_state=0)
        )
        model = RandomForestRegressor(50, random_state=0)
    X_train, X_test, y_train, y_test = train_test_split(
        X, y, test_size=0.5, random_state=seed, stratify=y if data in CLASSIFIED else None
    )
    return Problem(model.fit(X_train, y_train), X_train, y_train, X_test, y_test, task)


def frame(X: np.ndarray) -> pd.DataFrame:
    """Return rows as the data frame that PSyKE expects."""
    return pd.DataFrame(X, columns=[f"F{j:02d}" for j in range(X.shape[1])])


def make_scorer(score: str) -> Any:
    """Return the scorer of a score; greater is better."""
    make = make_fire_scorer if score.startswith("fire") else make_ice_scorer
    return make(**WEIGHTS[score])


def as_printed(score: str, scorer_value: float) -> float:
    """Return a score with the sign of the papers, in which FiRe is a loss."""
    return -scorer_value if score.startswith("fire") else scorer_value


def measure(rules: Any, data: str, X: Any, y: np.ndarray, score: str) -> dict[str, float]:
    """Return the score of rules on held-out rows (`value`), also as in `MARKS` (`marked`)."""
    mark_scorers = {
        # In `MARKS`, both scores use the same predictive measure of a data set.
        ("fire1", "wine"): make_fire_scorer(loss="f1_weighted"),
        ("fire1", "breast_cancer"): make_fire_scorer(loss="f1_weighted"),
        ("ice11", "iris"): make_ice_scorer(performance="accuracy"),
    }
    scorer = make_scorer(score)
    value = as_printed(score, scorer(rules, X, y))
    mark_scorer = mark_scorers.get((score, data), scorer)
    return {"value": value, "marked": as_printed(score, mark_scorer(rules, X, y))}
