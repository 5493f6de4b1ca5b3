"""Searches with constraints: every candidate and the winner satisfy them, or fail."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.neighbors import KNeighborsClassifier

from skescore.constraints import Constraints, InfeasibleConstraintsError, violations
from skescore.tuning import ExtractorSearchCV

DATA = load_breast_cancer(as_frame=True)
X = DATA.data.iloc[::3, :5]
Y = np.where(DATA.target.iloc[::3] == 1, "benign", "malignant")
CONSTRAINTS = Constraints(
    forbidden=["mean radius"],
    monotone={"mean texture": "+", "mean area": "+"},
    thresholds={"*": {"digits": 2}},
    min_support=15,
)


def make_search(constraints: Constraints) -> ExtractorSearchCV:
    return ExtractorSearchCV(
        KNeighborsClassifier(9),
        extractors=("cart", "gridex"),
        constraints=constraints,
        n_trials=4,
        cv=2,
        random_state=0,
    )


def test_search_returns_rules_that_satisfy_constraints() -> None:
    search = make_search(CONSTRAINTS).fit(X, Y)
    labels = search.best_extractor_.estimator_.predict(X)
    assert violations(search.rules_, CONSTRAINTS, X, labels) == []
    assert set(search.best_extractor_.constrained_rules_.outcomes) == set(CONSTRAINTS.parts())
    board = search.leaderboard_
    assert (board.loc[board["state"] == "complete", "n_repaired"] >= 0).all()
    for alternative in search.alternatives_:
        assert violations(alternative.rules, CONSTRAINTS, X, labels) == []


def test_search_reports_conflicts_before_trials() -> None:
    constraints = CONSTRAINTS.replace(required=["mean area", "mean radius"])
    with pytest.raises(InfeasibleConstraintsError) as caught:
        make_search(constraints).fit(X, Y)
    assert caught.value.conflict.labels == ("forbidden: mean radius", "required: mean radius")


def test_search_without_constraints_omits_n_repaired() -> None:
    search = ExtractorSearchCV(
        KNeighborsClassifier(9), extractors=("cart",), n_trials=2, cv=2, random_state=0
    ).fit(X, Y)
    assert "n_repaired" not in search.leaderboard_
