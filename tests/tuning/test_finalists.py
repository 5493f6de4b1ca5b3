"""Finalists are compared on repeated folds."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import KFold, StratifiedKFold

from skescore.scorers import make_ice_scorer
from skescore.tuning import Candidate, ExtractorSearchCV
from skescore.tuning._folds import FoldResult
from skescore.tuning._objective import SearchObjective
from skescore.tuning._selection import compare_finalists, repeated_cv

X, Y = load_iris(return_X_y=True)


def make_search(**options):
    settings = {"extractors": ["cart", "gridex"], "n_trials": 6, "cv": 3, "random_state": 0}
    return ExtractorSearchCV(
        RandomForestClassifier(10, random_state=0), **(settings | options)
    ).fit(X, Y)


def make_fold(score, **measures):
    parts = {"performance": score, "loss": 1 - score, "loss_q": 1 - score, "n_rules": 3}
    return (
        parts
        | {
            "size": 3,
            "completeness_volume": 1.0,
            "completeness_instances": 1.0,
            "score": score,
            "fidelity": 0.9,
            "black_box_rows": 10,
        }
        | measures
    )


def make_finalist(trial, *scores, **measures):
    folds = [make_fold(score, **measures) for score in scores]
    return Candidate.from_measures("cart", {}, trial, folds)


def test_repeated_cv_keeps_the_number_of_folds():
    assert isinstance(repeated_cv(4, "classification", 1), StratifiedKFold)
    assert isinstance(repeated_cv(None, "regression", 1), KFold)
    assert repeated_cv(4, "classification", 1).get_n_splits() == 4
    shuffled = repeated_cv(KFold(3, shuffle=True, random_state=0), "regression", 1)
    assert (shuffled.n_splits, shuffled.random_state) == (3, 1)
    assert repeated_cv(KFold(3), "regression", 1) is None


def test_compare_finalists_chooses_by_all_folds():
    finalists = [make_finalist(0, 0.9, 0.9), make_finalist(1, 0.8, 0.9)]
    objective = SearchObjective.of("accuracy")
    results = [FoldResult(make_fold(score)) for score in (0.5, 0.7, 0.9, 0.9)]
    winner, scores = compare_finalists(finalists, lambda _: results, objective, 0.0)
    assert winner == 1
    np.testing.assert_allclose(scores, [0.75, 0.875])


def choose_of_two(second_scores, standard_errors=0.5, **measures):
    """Return the winner of a finalist with the mean 0.8 and of another one."""
    first, objective = make_finalist(0, 0.9, 0.7, 0.9, 0.7), SearchObjective.of("accuracy")
    finalists = [first, make_finalist(1, *second_scores, **measures)]
    results = [FoldResult(make_fold(0.8)), FoldResult(make_fold(0.8, **measures))]
    return compare_finalists(finalists, lambda _: results, objective, standard_errors)[0]


def test_compare_finalists_prefers_fidelity_in_ties():
    nearly_equal, worse = (0.91, 0.685, 0.91, 0.69), (0.88, 0.68, 0.88, 0.69)
    assert choose_of_two(nearly_equal) == 0
    assert choose_of_two(nearly_equal, fidelity=0.95) == 1
    assert choose_of_two(nearly_equal, fidelity=0.95, size=4) == 0  # larger
    assert choose_of_two(nearly_equal, 0.0, fidelity=0.95) == 0  # every difference counts
    assert choose_of_two(worse, fidelity=0.95) == 0


def test_compare_finalists_skips_one_that_fails():
    finalists = [make_finalist(0, 0.9), make_finalist(1, 0.8)]
    results = [FoldResult(make_fold(0.2)), FoldResult({}, failure="ValueError: no")]
    winner, scores = compare_finalists(
        finalists, lambda _: results, SearchObjective.of("accuracy"), 0.0
    )
    assert winner == 0
    assert np.isnan(scores[1])


@pytest.mark.slow
def test_search_scores_finalists_on_repeated_folds():
    search = make_search()
    board = search.leaderboard_
    finalists = board[board["score_repeated"].notna()]
    assert 2 <= len(finalists) <= 3
    assert board["score_repeated"].notna()[0]
    splitters = [StratifiedKFold(3), repeated_cv(3, "classification", search.extractor_seed_ + 1)]
    for _, row in finalists.iterrows():
        scores = []
        for splitter in splitters:
            for train, test in splitter.split(X, Y):
                black_box = clone(search.estimator).fit(X[train], Y[train])
                extractor = search.make_candidate(row).set_params(estimator=black_box)
                extractor.fit(X[train], Y[train])
                scores.append(make_ice_scorer()(extractor, X[test], Y[test]))
        assert row["score_repeated"] == pytest.approx(np.mean(scores))


@pytest.mark.slow
def test_search_without_repeats_has_no_repeated_scores():
    for options in ({"n_repeats": 0}, {"cv": StratifiedKFold(3)}):
        assert make_search(**options).leaderboard_["score_repeated"].isna().all()
    with pytest.raises(ValueError, match="n_repeats"):
        make_search(n_repeats=-1)


@pytest.mark.slow
def test_search_has_the_same_finalists_in_two_processes():
    first, second = make_search(), make_search(n_jobs=2)
    assert first.best_params_ == second.best_params_
    scores = [s.leaderboard_["score_repeated"].to_numpy() for s in (first, second)]
    np.testing.assert_array_equal(*scores)
