"""Searches whose winner has a maximum number of rules or a minimum performance."""

from __future__ import annotations

import numpy as np
import optuna
import pytest
from sklearn.datasets import load_iris
from sklearn.frozen import FrozenEstimator
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier

from skescore.extractors import CARTExtractor, TrepanExtractor
from skescore.tuning import ExtractorSearchCV, FoldResult, SearchLimits

X, Y = load_iris(return_X_y=True)


def search_of(**options) -> ExtractorSearchCV:
    settings = {"extractors": ("cart", "gridex"), "n_trials": 14, "cv": 3, "random_state": 0}
    settings["n_repeats"] = 0
    return ExtractorSearchCV(KNeighborsClassifier(9), **(settings | options))


@pytest.fixture(scope="module")
def plain() -> ExtractorSearchCV:
    return search_of().fit(X, Y)


def kept(search: ExtractorSearchCV, limits: SearchLimits) -> list[tuple[str, int]]:
    return [(c.extractor, c.trial) for c in search.candidates_ if limits.allow(c.folds, c.all_rows)]


@pytest.mark.parametrize(
    "limits",
    [{"max_rules": 3}, {"min_performance": 0.93}, {"max_rules": 4, "min_performance": 0.9}],
)
def test_best_for_returns_the_best_within_limits(plain, limits) -> None:
    best_row = plain.best_for(**limits)
    allowed = kept(plain, SearchLimits(**limits))
    assert 0 < len(allowed) < len(plain.candidates_)
    assert (best_row["extractor"], best_row["trial"]) in allowed
    fitted = plain.make_candidate(best_row).fit(X, Y)
    if "max_rules" in limits:
        assert len(fitted.rules_) <= limits["max_rules"]
    if "min_performance" in limits:
        assert best_row["performance"] >= limits["min_performance"]


@pytest.mark.parametrize(
    ("scoring", "max_rules", "leaves"),
    [("ice", 6, 3), ("accuracy", 6, 6), ("accuracy", None, 32), (("loss", "n_rules"), 6, 3)],
)
def test_first_trial_has_the_largest_tree_if_size_is_free(scoring, max_rules, leaves) -> None:
    # An extractor by name has baselines instead, which include all useful sizes.
    cart = CARTExtractor(None, random_state=0)
    search = search_of(extractors=(cart,), n_trials=1, scoring=scoring, max_rules=max_rules)
    search.fit(X, Y)
    assert len(search.leaderboard_) == 1
    assert search.leaderboard_["params"][0]["max_leaf_nodes"] == leaves


def test_best_for_keeps_the_winner_within_wide_limits(plain) -> None:
    best_row = plain.best_for(max_rules=1000)
    assert (best_row["extractor"], best_row["params"]) == (plain.best_name_, plain.best_params_)


def test_search_warns_of_limits_that_cannot_be_met(plain) -> None:
    with pytest.raises(ValueError, match=r"No candidate has a performance of at least 2: .*Relax"):
        plain.best_for(min_performance=2)
    with pytest.warns(UserWarning, match=r"No candidate has at most 1 rule and a performance of"):
        search = search_of(max_rules=1, min_performance=0.9, n_trials=4).fit(X, Y)
    assert len(search.rules_) > 1
    assert not search.leaderboard_["within_limits"].any()
    for wrong in ({"max_rules": 0}, {"min_performance": np.nan}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            search_of(**wrong).fit(X, Y)


def test_search_tells_samplers_of_limits() -> None:
    search = search_of(max_rules=3).fit(X, Y)
    assert len(search.rules_) <= 3
    assert search.leaderboard_["within_limits"].iloc[0]
    for study in search.studies_.values():
        done = study.get_trials(states=(optuna.trial.TrialState.COMPLETE,))
        for trial in done:
            violations = trial.system_attrs["constraints"]
            limits = SearchLimits(max_rules=3)
            attributes = trial.user_attrs
            expected = limits.violations(
                [FoldResult.from_dict(fold) for fold in attributes["folds"]],
                FoldResult.from_dict(attributes.get("all_rows") or {}),
            )
            assert tuple(violations) == expected


def test_choose_selects_another_row(plain) -> None:
    search = search_of(n_trials=6).fit(X, Y)
    assert not search.picked_
    row = search.pareto_front_.iloc[-1]
    search.choose(row)
    assert search.picked_
    assert search.best_name_ == row["extractor"]
    assert search.leaderboard_.iloc[0]["trial"] == row["trial"]
    assert search.rules_ == search.make_candidate(row).fit(X, Y).rules_
    with pytest.raises(ValueError, match="no trial 99 of 'cart'"):
        search.choose({"extractor": "cart", "trial": 99})


def test_choose_uses_the_class_weights() -> None:
    """Without y, the predictions of the black box are weighted, as in ``fit``."""
    rare = (Y == 2) & (np.arange(len(Y)) % 5 > 0)
    rows, labels = X[~rare], Y[~rare]
    black_box = FrozenEstimator(KNeighborsClassifier(9).fit(rows, labels))
    search = ExtractorSearchCV(
        black_box, extractors=["cart"], n_trials=2, cv=2, random_state=0, class_weight="balanced"
    ).fit(rows)
    before = search.rules_
    assert search.choose(search.leaderboard_.iloc[0]).rules_ == before


def test_removal_of_idle_features_uses_sample_weights() -> None:
    """The black box uses the second of two equal columns only, but rules name the first."""
    column = np.arange(60.0) % 20
    rows, labels = np.column_stack([column, column]), (column > 9).astype(int)
    black_box = CARTExtractor(DecisionTreeClassifier(), features=[1])
    extractors = [
        CARTExtractor(None, features=[0]),
        TrepanExtractor(None, features=[1], max_nodes=3),
    ]
    weights = 1.0 + labels
    search = ExtractorSearchCV(black_box, extractors=extractors, n_trials=2, cv=2, random_state=0)
    search.fit(rows, labels, sample_weight=weights)
    assert search.best_name_ == "cart"
    assert search.avoid_idle_features() == []
    assert search.best_name_ == "trepan"
    expected = search.make_candidate(search.leaderboard_.iloc[0])
    assert search.rules_ == expected.fit(rows, labels, sample_weight=weights).rules_


class CountingTree(DecisionTreeClassifier):
    """Tree that counts the rows that it predicts."""

    n_rows = 0

    def predict(self, X, check_input=True):
        CountingTree.n_rows += len(X)
        return super().predict(X, check_input)


def test_search_queries_no_more_rows_than_allowed() -> None:
    results = []
    for n_jobs in (1, 2):
        CountingTree.n_rows = 0
        tree = CountingTree(random_state=0).fit(X, Y)
        search = ExtractorSearchCV(
            FrozenEstimator(tree),
            extractors=("cart", "trepan", "gridex"),
            max_queries=20_000,
            cv=3,
            n_jobs=n_jobs,
            random_state=0,
            refit=False,
        ).fit(X, Y)
        assert 15_000 < search.query_cost_.n_rows <= 20_000
        # The quality of the model and the labels of all rows are not part of the candidates.
        assert CountingTree.n_rows <= search.query_cost_.n_rows + 2 * len(X)
        results.append(search.leaderboard_)
    failed = results[0][results[0]["state"] == "fail"]
    assert failed["error"].str.contains("QueryLimitError: The candidate needs predictions").all()
    assert len(failed) >= 1
    for name in ("extractor", "params", "score"):
        assert results[0][name].astype(str).tolist() == results[1][name].astype(str).tolist()


def test_search_within_one_query_has_one_tree() -> None:
    search = search_of(max_queries=1).fit(X, Y)
    assert search.leaderboard_["extractor"].tolist() == ["cart"]


def test_max_queries_must_be_a_number_of_rows() -> None:
    with pytest.raises(
        ValueError, match="max_queries must be an integer of 1 or more or None, got 0"
    ):
        search_of(max_queries=0).fit(X, Y)
