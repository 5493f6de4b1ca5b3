"""Checks that an extractor works where scikit-learn's estimators do."""

from __future__ import annotations

import copy
import io
from typing import Any

import joblib
import numpy as np
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skescore.rules import as_ruleset
from skescore.scorers import make_fire_scorer, make_ice_scorer
from skescore.testing._samples import (
    around,
    check,
    expect,
    expect_same_rules,
    fitted,
    neighbours,
    sample,
    task_of,
    with_rules,
)


@check
def check_pickle(name: str, extractor: Any) -> None:
    """Fitted and unfitted, it is the same after a journey by pickle and by deepcopy."""
    copied = fitted(extractor)
    X, _ = sample(task_of(extractor))

    def pickled(value: Any) -> Any:
        buffer = io.BytesIO()
        joblib.dump(value, buffer)
        buffer.seek(0)
        return joblib.load(buffer)  # our own bytes of a moment ago

    for how, travel in (("pickle", pickled), ("deepcopy", copy.deepcopy)):
        try:
            unfitted, other = (
                travel(around(extractor, neighbours(task_of(extractor)))),
                travel(copied),
            )
        except Exception as error:
            raise AssertionError(
                f"{name}: {how} must be able to copy the extractor, but it raised "
                f"{type(error).__name__}: {error}"
            ) from error
        expect(not hasattr(unfitted, "rules_"), name, f"{how} must not fit the extractor.")
        expect(other.rules_ == copied.rules_, name, f"rules must be the same after {how}.")
        for method in ("predict", "covers", "predict_proba", "fidelity"):
            if hasattr(copied, method):
                same = np.array_equal(getattr(other, method)(X), getattr(copied, method)(X))
                expect(same, name, f"{method} must give the same after {how}.")


@check
def check_grid_search(name: str, extractor: Any) -> None:
    """GridSearchCV reaches the black box's parameters, and ranks by the scores of rules."""
    task = task_of(extractor)
    X, y = sample(task)
    fitted(extractor)  # without rules there is nothing to score
    search = GridSearchCV(
        around(extractor, neighbours(task)),
        {"estimator__n_neighbors": [3, 9]},
        scoring={"ice": make_ice_scorer(), "neg_fire": make_fire_scorer()},
        refit="ice",
        cv=2,
        error_score="raise",
    ).fit(X, y)
    for score in ("ice", "neg_fire"):
        found = search.cv_results_[f"mean_test_{score}"]
        expect(np.isfinite(found).all(), name, f"a search by {score} gave the scores {found}.")
    expected = around(extractor, neighbours(task).set_params(**{
        key.removeprefix("estimator__"): value for key, value in search.best_params_.items()
    })).fit(X, y)  # fmt: skip
    text = f"a search must set {search.best_params_} of the black box."
    expect_same_rules(name, extractor, search.best_estimator_, expected, text)


@check
def check_pipeline(name: str, extractor: Any) -> None:
    """Behind a scaler it learns the same kind of rules, readable in the caller's units."""
    task = task_of(extractor)
    X, y = sample(task)
    X = X * [1.0, 50.0, 0.02] + [0.0, 1000.0, 3.0]
    pipeline = make_pipeline(StandardScaler(), around(extractor, neighbours(task))).fit(X, y)
    rules, scaled = with_rules(pipeline[-1]).rules_, pipeline[:-1].transform(X)
    answers = np.asarray(pipeline.predict(X))
    expect(answers.shape == (len(X),), name, "a Pipeline with a scaler must answer every row.")
    readable = as_ruleset(pipeline)
    # A row on the very edge of a box may change sides when the edge is written in other units.
    both = readable.covers(X) & rules.covers(scaled)
    found, expected = readable.predict(X[both]), rules.predict(scaled[both])
    same = found == expected if task == "classification" else np.isclose(found, expected)
    expect(
        both.sum() >= 0.9 * rules.covers(scaled).sum() and np.mean(same) >= 0.9,
        name,
        "as_ruleset(pipeline) must answer as the rules do, in the units of the Pipeline's input.",
    )
    score = make_ice_scorer()(pipeline, X, y)
    expect(np.isfinite(score), name, f"the ICE score of a Pipeline with a scaler is {score}.")
