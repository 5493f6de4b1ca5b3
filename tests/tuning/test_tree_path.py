"""Path of CART in a search, compared with extractors that are fitted size by size."""

import time
import warnings

import numpy as np
import pytest
from sklearn.datasets import load_diabetes, load_iris, load_wine
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.frozen import FrozenEstimator

from skescore import CARTExtractor, ExtractorSearchCV
from skescore.extractors import time_limit
from skescore.scorers import ice
from skescore.tuning import Fold, evaluate_on_fold, make_folds, tree_path


def folds_of(load, kind):
    X, y = load(return_X_y=True, as_frame=True)
    task = "classification" if kind is RandomForestClassifier else "regression"
    return make_folds(kind(10, random_state=0), X, y, 3, task, fitted=False)


def error_by_size(folds: list[Fold], sizes, **params):
    """Return the mean held-out error and number of rules of each size by plain fits."""
    result = {}
    for size in sizes:
        errors, n_rules = [], []
        for fold in folds:
            extractor = CARTExtractor(None, max_leaf_nodes=size, random_state=0, **params)
            outcome = evaluate_on_fold(extractor, fold, ice)
            errors.append(1 - outcome["correctness"])
            n_rules.append(outcome["n_rules"])
        result[size] = np.mean(errors), np.mean(n_rules)
    return result


@pytest.mark.parametrize("load", [load_iris, load_wine])
def test_tree_path_keeps_undominated_trees(load):
    folds = folds_of(load, RandomForestClassifier)
    prototype = CARTExtractor(RandomForestClassifier(), random_state=0)
    points = tree_path(prototype, folds, (None,), reference="data")
    sizes = [point["max_leaf_nodes"] for point in points]
    assert sizes[0] == 1
    assert sizes == sorted(sizes)
    measured = error_by_size(folds, range(1, 13), merge_leaves=True)
    for size, (error, _) in measured.items():
        smaller = [measured[k][0] for k in sizes if k <= size and k in measured]
        # Thresholds are rounded for each size separately, so a row may change sides.
        assert min(smaller) <= error + 0.02


def test_tree_path_of_numbers_reaches_the_best_size():
    folds = folds_of(load_diabetes, RandomForestRegressor)
    prototype = CARTExtractor(RandomForestRegressor(), random_state=0)
    points = tree_path(prototype, folds, (None,), reference="data")
    assert all("merge_leaves" not in point for point in points)
    measured = error_by_size(folds, range(1, 10))
    sizes = {point["max_leaf_nodes"] for point in points}
    best = min(measured, key=lambda size: measured[size][0])
    assert min(measured[size][0] for size in sizes if size in measured) <= measured[best][0] + 0.02


def test_tree_path_of_integers_equals_floats():
    X, y = load_diabetes(return_X_y=True)
    paths = []
    for target in (y.astype(int), y.astype(int).astype(float)):
        forest = RandomForestRegressor(10, random_state=0)
        folds = make_folds(forest, X, target, 3, "regression", fitted=False)
        paths.append(
            tree_path(
                CARTExtractor(forest, random_state=0), folds, (None, "permute"), reference="data"
            )
        )
    assert paths[0] == paths[1]
    assert {point["max_leaf_nodes"] for point in paths[0]} >= {1, 2}


def test_tree_path_respects_max_rules():
    folds = folds_of(load_wine, RandomForestClassifier)
    prototype = CARTExtractor(RandomForestClassifier(), random_state=0)
    points = tree_path(prototype, folds, (None, "permute"), reference="black_box", max_rules=3)
    assert {point["sampling"] for point in points} <= {None, "permute"}
    for point in points:
        extractor = CARTExtractor(None, random_state=0, **point)
        assert evaluate_on_fold(extractor, folds[0], ice)["n_rules"] <= 4


def test_search_compares_the_path_beyond_its_budget():
    X, y = load_iris(return_X_y=True)
    forest = RandomForestClassifier(10, random_state=0)
    search = ExtractorSearchCV(
        forest, extractors=["cart", "gridex"], n_trials=2, cv=3, random_state=0
    ).fit(X, y)
    board = search.leaderboard_
    path = board[board["extractor"] == "cart"]
    assert len(path) >= 3
    assert {1, 2} <= {params["max_leaf_nodes"] for params in path["params"]}
    assert (board["extractor"] == "gridex").sum() == 1
    assert board["score"].max() == board["score"].iloc[0] or search.standard_errors_ > 0


@pytest.mark.parametrize(
    "scoring",
    [
        "ice",
        pytest.param("neg_fire", marks=pytest.mark.slow),
        pytest.param("neg_q", marks=pytest.mark.slow),
    ],
)
def test_search_is_never_behind_a_tuned_tree_on_its_folds(scoring):
    X, y = load_wine(return_X_y=True)
    forest = RandomForestClassifier(10, random_state=0)
    options = {"scoring": scoring, "cv": 3, "random_state": 0, "standard_errors": 0.0}
    search = ExtractorSearchCV(forest, n_trials=9, **options).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        trees = [
            CARTExtractor(forest, max_leaf_nodes=k, random_state=0) for k in (1, 2, 3, 4, 6, 8)
        ]
        tuned = search.held_out_scores(trees).mean(axis=1).max()
    assert search.leaderboard_["score"].max() >= tuned - 1e-9


@pytest.mark.slow
def test_search_explains_a_given_model_on_unseen_rows():
    X, y = load_wine(return_X_y=True)
    forest = RandomForestClassifier(20, random_state=0).fit(X[::2], y[::2])
    search = ExtractorSearchCV(
        FrozenEstimator(forest), scoring="fidelity", max_rules=4, n_trials=9, random_state=0
    ).fit(X[::2], y[::2])
    best = search.leaderboard_.iloc[0]
    assert best["score"] == best["fidelity"]
    assert len(search.rules_) <= 4
    assert search.fidelity(X[1::2]) > 0.85
    assert not np.isnan(best["correctness"])


def test_tree_path_reports_a_failing_generator():
    folds = folds_of(load_iris, RandomForestClassifier)
    prototype = CARTExtractor(RandomForestClassifier(), random_state=0)

    def fail(rows, n_rows, random_state):
        raise ValueError("no rows today")

    with pytest.warns(UserWarning, match="not compared: ValueError: .*no rows today"):
        points = tree_path(prototype, folds, [None, fail], reference="data")
    assert {point["sampling"] for point in points} == {None}


def test_tree_path_ends_with_the_time_limit():
    folds = folds_of(load_iris, RandomForestClassifier)
    prototype = CARTExtractor(RandomForestClassifier(), random_state=0)
    with time_limit(0):
        assert tree_path(prototype, folds, (None, "permute"), reference="data") == []


def test_tree_path_with_a_timeout_compares_one_generator():
    folds = folds_of(load_iris, RandomForestClassifier)
    prototype = CARTExtractor(RandomForestClassifier(), random_state=0)
    samplings = (None, "permute")
    everything = tree_path(prototype, folds, samplings, reference="data")
    assert tree_path(prototype, folds, samplings, reference="data", timeout=1e6) == everything
    too_late = tree_path(prototype, folds, samplings, reference="data", timeout=0)
    assert too_late == tree_path(prototype, folds, (None,), reference="data")
    assert too_late != everything


def test_search_counts_the_tree_path_against_timeout(monkeypatch):
    def delay(*_, **__):
        time.sleep(0.3)
        return []

    monkeypatch.setattr("skescore.tuning._search.tree_path", delay)
    X, y = load_iris(return_X_y=True, as_frame=True)
    forest = RandomForestClassifier(2, random_state=0)
    search = ExtractorSearchCV(forest, extractors=["cart"], timeout=0.2, random_state=0)
    with pytest.raises(ValueError, match=r"No trial was started within timeout=0\.2"):
        search.fit(X, y)
