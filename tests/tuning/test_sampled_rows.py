"""Trials on a sample of many rows, and finalists on all rows."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.dummy import DummyClassifier
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor

from skescore.extractors import N_QUERIES
from skescore.tuning import ExtractorSearchCV

RNG = np.random.default_rng(0)
X = RNG.normal(size=(900, 3))
Y = np.where(X[:, 0] + X[:, 1] > 2.4, "rare", "usual")

SPLITS = [(np.arange(450), np.arange(450, 900))]


def search_of(black_box=None, **options) -> ExtractorSearchCV:
    settings = {"extractors": ("cart",), "n_trials": 5, "cv": 3, "random_state": 0, "max_rows": 300}
    if black_box is None:
        settings["scoring"] = "accuracy"  # by scores that count rules, a constant is the best
    return ExtractorSearchCV(black_box or KNeighborsClassifier(5), **(settings | options))


def n_rows_of_trials(search: ExtractorSearchCV) -> set[int]:
    """Return the numbers of rows that candidates were made of, without generated query rows."""
    return {
        fold["black_box_rows"] - (0 if candidate.params["sampling"] is None else N_QUERIES)
        for candidate in search.candidates_
        for fold in candidate.folds
    }


@pytest.mark.slow
def test_search_samples_rows_for_trials_but_not_for_winner() -> None:
    search = search_of().fit(X, Y)
    assert search.n_rows_sampled_ == 300
    assert n_rows_of_trials(search) == {200.0}
    assert sum(rule.statistics.n_rows for rule in search.rules_.rules) == 900
    finalists = search.leaderboard_["score_on_all_rows"].head(3)
    assert finalists.iloc[0] == finalists.max()
    second_fitted = search_of().fit(X, Y)
    assert second_fitted.rules_ == search.rules_
    np.testing.assert_array_equal(second_fitted.leaderboard_["score"], search.leaderboard_["score"])
    # The score of the first on all rows is that of its rules there.
    assert search.score(X, Y) == pytest.approx(finalists.iloc[0])


def test_sample_preserves_class_shares() -> None:
    recorded = []

    class Noting(DummyClassifier):
        def fit(self, X, y, sample_weight=None):
            recorded.append(np.unique(y, return_counts=True)[1])
            return super().fit(X, y, sample_weight)

    with pytest.warns(UserWarning, match="predicts"):
        search_of(Noting(), n_trials=1).fit(X, Y)
    counts_of_all = np.unique(Y, return_counts=True)[1]
    of_sample = [counts for counts in recorded if counts.sum() in (299, 300, 301)]
    assert len(of_sample) == 1
    assert np.abs(of_sample[0] - counts_of_all / 3).max() <= 1


@pytest.mark.slow
@pytest.mark.parametrize("options", [{"max_rows": None}, {"max_rows": 900}, {"cv": SPLITS}])
def test_search_without_sample_uses_all_rows(options) -> None:
    search = search_of(**options).fit(X, Y)
    assert search.n_rows_sampled_ is None
    assert max(n_rows_of_trials(search)) > 300


@pytest.mark.slow
def test_max_rows_supports_regression_and_rejects_few_rows() -> None:
    search = search_of(KNeighborsRegressor(5)).fit(X, X[:, 0])
    assert search.n_rows_sampled_ == 300
    with pytest.raises(ValueError, match=r"max_rows must be .*got 3"):
        search_of(max_rows=3).fit(X, Y)


def test_finalists_are_the_first_candidates_within_limits() -> None:
    search = search_of(n_trials=2, max_rules=4).fit(X[:200], Y[:200])
    first, second = search.leaderboard_.iloc[0].copy(), search.leaderboard_.iloc[0].copy()
    first["within_limits"], second["trial"] = False, 99  # with the same outcome
    search.leaderboard_ = pd.DataFrame([first, second]).reset_index(drop=True)
    assert search._finalist_rows()["trial"].tolist() == [99]
