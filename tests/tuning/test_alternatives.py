"""Up to three rule lists that a search offers."""

import math
from dataclasses import replace

import pytest
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.ensemble import RandomForestClassifier
from sklearn.tree import DecisionTreeClassifier

from skescore import ExtractorSearchCV
from skescore.rules import Rule, RuleSet
from skescore.tuning import (
    Alternative,
    Candidate,
    Candidates,
    choose_alternatives,
    make_alternatives,
)


def candidate(trial, n_rules, correctness, fidelity):
    """Make a candidate from correctness and fidelity on each of three folds."""
    folds = [
        {"n_rules": n_rules, "correctness": c, "fidelity": f}
        for c, f in zip(correctness, fidelity, strict=True)
    ]
    return Candidate.from_measures("cart", {"max_leaf_nodes": n_rules}, trial, folds)


CANDIDATES = Candidates(
    [
        candidate(0, 1, [0.60, 0.61, 0.62], [0.60, 0.60, 0.60]),
        candidate(1, 2, [0.84, 0.90, 0.87], [0.90, 0.91, 0.92]),
        candidate(2, 3, [0.90, 0.86, 0.88], [0.93, 0.93, 0.93]),
        candidate(3, 8, [0.86, 0.86, 0.86], [0.97, 0.97, 0.97]),
        candidate(4, 30, [0.85, 0.85, 0.85], [0.99, 0.99, 0.99]),
    ]
)


def choices(winner, max_rules=8, **options):
    return {
        role: choice.candidate.trial
        for choice in choose_alternatives(
            CANDIDATES, ("cart", winner), max_rules=max_rules, **options
        )
        for role in choice.roles
    }


def test_alternatives_have_their_roles():
    # Trial 1 is behind trial 2 by less than a standard error of the differences.
    assert choices(0) == {"best": 0, "shortest": 1, "most faithful": 3}
    assert choices(1) == {"best": 1, "shortest": 1, "most faithful": 3}


def test_list_that_fails_on_a_fold_is_not_as_right_as_the_best():
    # R² as measured on folds; the equations of two rules extrapolate badly on the last fold.
    steady = candidate(0, 9, [0.90, 0.92, 0.91], [0.9, 0.9, 0.9])
    erratic = candidate(1, 2, [0.89, 0.91, -20.0], [0.9, 0.9, 0.9])
    candidates = Candidates([steady, erratic])
    (best, _) = choose_alternatives(candidates, ("cart", 0), max_rules=8)
    assert best.candidate.trial == 0
    assert best.roles == ("best", "shortest")


def test_most_faithful_list_respects_max_rules():
    assert choices(0, max_rules=3)["most faithful"] == 2
    assert choices(0, max_rules=30)["most faithful"] == 4


def test_most_faithful_list_respects_max_rules_on_all_rows(monkeypatch):
    assert choices(0, n_rules={("cart", 3): 9})["most faithful"] == 2
    X, y = load_iris(return_X_y=True)
    tree = DecisionTreeClassifier(random_state=0)
    search = ExtractorSearchCV(tree, extractors=["cart"], n_trials=2, cv=3, random_state=0)
    search.fit(X, y)
    faithful = search.alternatives_[-1]
    assert faithful.roles == ("most faithful",)
    del search._alternatives
    fit = search.fit_candidate

    def fit_with_more_rules(candidate):
        extractor = fit(candidate)
        if candidate.trial == faithful.trial:
            extractor.rules_ = extractor.rules_.replace(rules=[*extractor.rules_] * 9)
        return extractor

    monkeypatch.setattr(search, "fit_candidate", fit_with_more_rules)
    lists = search.alternatives_
    assert [one.trial for one in lists if "most faithful" in one.roles] != [faithful.trial]
    assert all(one.n_rules <= 8 for one in lists)


def test_gain_compares_with_next_better_size():
    first = choose_alternatives(CANDIDATES, ("cart", 0), max_rules=8)[0]
    assert first.next_candidate is not None
    assert first.next_candidate.trial == 1
    best = choose_alternatives(CANDIDATES, ("cart", 2), max_rules=8)[0]
    assert best.next_candidate is None


def test_make_alternatives_merges_equal_rules():
    chosen = choose_alternatives(CANDIDATES, ("cart", 0), max_rules=8)
    rules = {n: RuleSet([Rule([], n)], ["x"], task="classification") for n in ("a", "b")}
    lists = make_alternatives(chosen, lambda one: rules["a" if one.trial < 2 else "b"])
    assert [one.roles for one in lists] == [("best", "shortest"), ("most faithful",)]
    assert [one.trial for one in lists] == [0, 3]
    assert lists[0].correctness == pytest.approx(0.61)


def test_alternative_is_written_with_the_rows_of_its_figures():
    rules = RuleSet([Rule([], "a")], ["x"], task="classification")
    one = Alternative(("best", "shortest"), "cart", {}, 3, 1.0, 0.6, 0.75, 3.0, 0.7, 0.7, rules)
    title = "best and shortest: cart with 1 rule"
    figures = (
        "correctness 0.600 (accuracy on held-out rows), "
        "fidelity 0.750 (accuracy against the model on held-out rows)"
    )
    gain = "with 2 more rules: correctness +0.100, fidelity -0.050"
    assert str(one) == f"{title}, {figures}\n{rules}\n{gain}"
    bare = replace(one, correctness=math.nan, fidelity=math.nan, next_rules=math.nan)
    assert str(bare) == f"{title}\n{rules}"


def test_choose_alternatives_accepts_no_candidates():
    assert choose_alternatives(Candidates([]), ("cart", 0), max_rules=8) == []


@pytest.mark.slow
def test_search_offers_lists_with_their_figures():
    X, y = load_breast_cancer(return_X_y=True)
    forest = RandomForestClassifier(10, random_state=0)
    search = ExtractorSearchCV(forest, extractors=["cart"], n_trials=2, cv=3, random_state=0).fit(
        X, y
    )
    alternatives = search.alternatives_
    assert [role for one in alternatives for role in one.roles].count("best") == 1
    assert alternatives[0].rules is search.rules_
    for one in alternatives:
        row = search.leaderboard_.query("extractor == @one.extractor and trial == @one.trial")
        assert one.correctness == pytest.approx(row["correctness"].iloc[0])
        assert one.fidelity == pytest.approx(row["fidelity"].iloc[0])
        assert one.n_rules == len(one.rules)
        assert math.isnan(one.next_rules) == (one.describe_gain() == "")
    assert search.alternatives_ is alternatives
    search.fit(X[:, ::-1], y)  # forgets the lists of the first fit
    assert search.alternatives_[0].rules is search.rules_


def test_constant_winner_is_reported_with_another_list():
    X = load_breast_cancer().data
    rare = (X[:, 0] > 20).astype(int)
    forest = RandomForestClassifier(10, random_state=0)
    search = ExtractorSearchCV(
        forest, extractors=["cart"], n_trials=1, cv=3, max_rules=1, random_state=0
    )
    with pytest.warns(UserWarning, match="constant"):
        search.fit(X, rare)
    assert search.alternatives_[0].is_constant
