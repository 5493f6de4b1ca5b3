"""Groups of rows in a search: folds, black boxes, held-out scores and metadata routing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import sklearn
from sklearn.datasets import load_iris
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from skescore.tuning import ExtractorSearchCV

X, LABELS = load_iris(return_X_y=True)
GROUPS = np.random.default_rng(0).integers(0, 15, len(X))


def make_search(black_box: Any = None, **options: Any) -> ExtractorSearchCV:
    black_box = DecisionTreeClassifier(random_state=0) if black_box is None else black_box
    settings = {"extractors": ["cart"], "n_trials": 1, "cv": 3, "random_state": 0}
    return ExtractorSearchCV(black_box, **(settings | options))


def assert_groups_are_whole(search: ExtractorSearchCV) -> None:
    for fold in search.data_.folds(search.cv):
        is_test = np.isin(np.arange(len(X)), fold.test)
        assert not {*GROUPS[is_test]} & {*GROUPS[~is_test]}


@pytest.mark.parametrize("cv", [3, GroupKFold(4)])
def test_search_keeps_groups_together(cv):
    search = make_search(cv=cv).fit(X, LABELS, groups=GROUPS)
    assert_groups_are_whole(search)
    board = search.leaderboard_
    scores = search.held_out_scores([board.iloc[0]])
    assert scores.mean() == pytest.approx(board.iloc[0]["score"])


def test_search_of_regression_keeps_groups_together():
    black_box = DecisionTreeRegressor(max_depth=3, random_state=0)
    assert_groups_are_whole(make_search(black_box).fit(X[:, :3], X[:, 3], groups=GROUPS))


def test_search_needs_as_many_groups_as_folds():
    with pytest.raises(ValueError, match="at least as many different values"):
        make_search().fit(X, LABELS, groups=np.arange(len(X)) % 2)


class RecordingSearch(GridSearchCV):
    """A search of black box parameters that records the groups it was fitted with."""

    seen: list[Any] = []  # noqa: RUF012 - shared by clones

    def fit(self, X: Any, y: Any = None, **params: Any) -> Any:
        self.seen.append((len(X), params.get("groups")))
        return super().fit(X, y, **params)


def test_search_passes_groups_to_black_box():
    RecordingSearch.seen.clear()
    black_box = RecordingSearch(
        DecisionTreeClassifier(random_state=0), {"max_depth": [2]}, cv=GroupKFold(2)
    )
    search = make_search(black_box).fit(X, LABELS, groups=GROUPS)
    search.choose(search.leaderboard_.iloc[-1])
    assert len(RecordingSearch.seen) == 4  # three folds and all rows
    assert all(len(groups) == n_rows for n_rows, groups in RecordingSearch.seen)


@pytest.mark.parametrize("cv", [3, GroupKFold(3)])
def test_pipeline_routes_groups_to_search(cv):
    with sklearn.config_context(enable_metadata_routing=True):
        search = make_search(cv=cv)
        if cv == 3:
            search.set_fit_request(groups=True)
        pipeline = make_pipeline(StandardScaler(), search).fit(X, LABELS, groups=GROUPS)
        assert_groups_are_whole(pipeline[-1])


@pytest.mark.slow
def test_cross_validation_routes_groups_to_search():
    with sklearn.config_context(enable_metadata_routing=True):
        search = make_search(cv=GroupKFold(3))
        scores = cross_val_score(search, X, LABELS, cv=GroupKFold(2), params={"groups": GROUPS})
    assert np.isfinite(scores).all()
