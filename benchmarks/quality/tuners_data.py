"""What the tuners are compared on: data, black boxes, splits, scores and marks."""

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

#: Names here and in `run.py`.
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
#: To be beaten with seed 0: FiRe(1) and ICE(1, 1) of PSyKE's best, in the units of `marked`.
MARKS = {
    "iris": (0.126776, 0.975668),
    "wine": (0.678302, 0.964745),
    "breast_cancer": (0.162473, 0.978115),
    "synthetic": (0.218481, 0.976020),
}

#: The time of this thread, as all work is done in one; other work does not disturb it.
clock = time.thread_time


class Problem(NamedTuple):
    """A fitted black box; the half to search on, and the half that scores."""

    model: Any
    rows: np.ndarray
    y: np.ndarray
    others: np.ndarray
    truth: np.ndarray
    task: str


class Ledger:
    """What the copies of one black box have been asked, and their fits, each of which is made once.

    Neither PSyKE's time nor ours holds these fits: the black box is what one comes with.
    """

    def __init__(self) -> None:
        self.calls, self.rows, self.fit_seconds = 0, 0, 0.0
        self.fitted: dict[bytes, Any] = {}

    def __deepcopy__(self, memory: Any) -> Ledger:
        return self


class Counted(BaseEstimator):
    """A black box whose clones write in the same ledger."""

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
        self.ledger.rows += len(X)
        return self.model_.predict(np.asarray(X))


class CountedClassifier(ClassifierMixin, Counted):
    """PSyKE knows a classifier by its base class."""


class CountedRegressor(RegressorMixin, Counted):
    """And a regressor by not being a classifier."""


def counted(problem: Problem) -> Any:
    """The black box, fitted on the half to search on, with a new ledger.

    Searches that cross-validate get it unfitted, as a clone: one that has seen the held-out rows of
    a fold tells their labels to whoever asks it about points nearby.
    """
    kind = CountedClassifier if problem.task == "classification" else CountedRegressor
    ledger = Ledger()
    ledger.fitted[problem.rows.tobytes()] = problem.model
    return kind(clone(problem.model), ledger).fit(problem.rows, problem.y)


def make_problem(data: str, seed: int) -> Problem:
    """Split in halves and fit the black box on the first."""
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
    rows, held_out, y_rows, truth = train_test_split(
        X, y, test_size=0.5, random_state=seed, stratify=y if data in CLASSIFIED else None
    )
    return Problem(model.fit(rows, y_rows), rows, y_rows, held_out, truth, task)


def frame(X: np.ndarray) -> pd.DataFrame:
    """Rows as PSyKE wants them."""
    return pd.DataFrame(X, columns=[f"F{j:02d}" for j in range(X.shape[1])])


def make_scorer(score: str) -> Any:
    """Greater is better."""
    make = make_fire_scorer if score.startswith("fire") else make_ice_scorer
    return make(**WEIGHTS[score])


def as_printed(score: str, scored: float) -> float:
    """The score as the papers show it: FiRe is a loss."""
    return -scored if score.startswith("fire") else scored


def measure(rules: Any, data: str, X: Any, y: np.ndarray, score: str) -> dict[str, float]:
    """The score of fitted rules on the held-out half, and that in the units of the marks."""
    marked = {
        # The marks took one predictive measure per data set for both scores.
        ("fire1", "wine"): make_fire_scorer(loss="f1_weighted"),
        ("fire1", "breast_cancer"): make_fire_scorer(loss="f1_weighted"),
        ("ice11", "iris"): make_ice_scorer(performance="accuracy"),
    }
    scorer = make_scorer(score)
    value = as_printed(score, scorer(rules, X, y))
    in_marks = marked.get((score, data), scorer)
    return {"value": value, "marked": as_printed(score, in_marks(rules, X, y))}
