"""Revised rules: changed rules are named, others stay unless they cost too much."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.tree import DecisionTreeClassifier

from skescore import ExtractorSearchCV
from skescore.constraints import (
    ConstrainedRules,
    Constraints,
    PinnedRule,
    RejectedRulesError,
    violations,
)
from skescore.extractors import RevisedRulesExtractor
from skescore.monitoring import RuleBaseline, find_changes, revise_rules
from skescore.rules import Interval, Rule, RuleSet

RULES = RuleSet(
    [
        Rule([Interval(0, upper=0.3)], "a"),
        Rule([Interval(0, upper=0.6)], "b"),
        Rule([Interval(1, upper=0.5)], "a"),
        Rule([], "b"),
    ],
    ["x", "z"],
    task="classification",
    ordered=True,
)


def rows(n: int, seed: int, *, is_new: bool) -> tuple[pd.DataFrame, np.ndarray]:
    """Return rows with 5 % noise; in new rows, the third rule holds for small x only."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"x": rng.uniform(size=n), "z": rng.uniform(size=n)})
    y = np.asarray(RULES.predict(X), dtype=object)
    if is_new:
        y[(RULES.assign(X) == 2) & (X["x"] > 0.8)] = "b"
    is_wrong = rng.random(n) < 0.05
    return X, np.where(is_wrong, np.where(y == "a", "b", "a"), y)


@pytest.fixture(scope="module")
def search() -> ExtractorSearchCV:
    """Return a search on new rows."""
    tree = DecisionTreeClassifier(min_samples_leaf=20, random_state=0)
    search = ExtractorSearchCV(
        tree, extractors=["cart"], scoring="accuracy", max_rules=6, n_trials=2, cv=3, random_state=0
    )
    search._retains_folds = True
    return search.fit(*rows(1200, 3, is_new=True))


@pytest.fixture(scope="module")
def baseline() -> RuleBaseline:
    return RuleBaseline.from_rows(RULES, *rows(2000, 0, is_new=False))


def test_revision_replaces_the_changed_rule_only(search, baseline) -> None:
    changes = find_changes(RULES, baseline, search)
    assert {c.rule for c in changes if c.kind == "error"} - {"all rows"} == {"rule 3"}
    revision = revise_rules(search, RULES, baseline)
    assert revision.changed == (2,)
    frame = revision.to_frame()
    assert frame["status"].tolist() == ["kept", "kept", "extracted again", "kept"]
    assert frame["reason"].map(bool).tolist() == [False, False, True, False]
    assert revision.is_accepted
    X, y = rows(4000, 2, is_new=True)
    new_numbers = frame.loc["rule 3", "new_rules"]
    is_replaced = RULES.assign(X) == 2
    assert (np.isin(revision.rules.assign(X) + 1, new_numbers) == is_replaced).all()
    np.testing.assert_array_equal(
        revision.rules.predict(X[~is_replaced]), RULES.predict(X[~is_replaced])
    )
    errors = [(np.asarray(r.predict(X)) != y).mean() for r in (RULES, revision.rules)]
    assert errors[1] < errors[0] - 0.03
    assert "rule 3 is extracted again, as rules" in str(revision)


def test_revision_rejects_rules_that_cost_too_much(search, baseline) -> None:
    """Without known changes all rules are kept, and the oracle gives their cost."""
    revision = revise_rules(search, RULES, changes=[], max_cost=0.01)
    X, y = search.data_.X, np.asarray(search.data_.target)
    folds = np.array_split(np.arange(len(y)), 1)
    kept_score = float((RULES.predict(X.iloc[folds[0]]) == y[folds[0]]).mean())
    assert revision.score == pytest.approx(kept_score, abs=1e-3)
    expected = (search.best_score_ - revision.score) / search.best_score_
    assert revision.cost == pytest.approx(expected)
    assert not revision.is_accepted
    assert "all rules are new" in str(revision)
    assert revise_rules(search, RULES, changes=[], max_cost=0.5).is_accepted


@pytest.mark.slow
def test_adopt_makes_revised_rules_the_winner(baseline) -> None:
    tree = DecisionTreeClassifier(min_samples_leaf=20, random_state=0)
    search = ExtractorSearchCV(tree, extractors=["cart"], n_trials=2, cv=3, random_state=0)
    search.fit(*rows(900, 1, is_new=True))
    board = search.leaderboard_
    revision = revise_rules(search, RULES, baseline)
    search.adopt(revision.extractor)
    assert search.rules_ == revision.rules
    assert search.best_name_ == "revised"
    assert search.best_score_ == pytest.approx(revision.score)
    first = search.leaderboard_.iloc[0]
    assert first["n_rules"] == np.mean([fold["n_rules"] for fold in search.candidates_[-1].folds])
    pd.testing.assert_frame_equal(
        search.leaderboard_.iloc[1:].reset_index(drop=True), board, check_dtype=True
    )
    # Everything after the search accepts the winner.
    assert len(search.held_out_scores([first])) == 1
    assert RuleBaseline.from_search(search).counts.n_rows.sum() == 900
    assert {role for one in search.alternatives_ for role in one.roles} >= {"best"}
    search.choose(board.iloc[0])
    assert search.best_name_ == "cart"
    with pytest.raises(ValueError, match="name must be new"):
        search.adopt(revision.extractor)


def test_revision_needs_changes_or_a_baseline(search) -> None:
    with pytest.raises(ValueError, match="a baseline to find them"):
        revise_rules(search, RULES)


def test_revision_respects_max_rules(search, baseline) -> None:
    assert not revise_rules(search, RULES, baseline).is_limited
    search.set_params(max_rules=4)
    try:
        revision = revise_rules(search, RULES, baseline, max_cost=0.0)
    finally:
        search.set_params(max_rules=6)
    assert revision.is_limited
    assert len(revision.rules) == 4
    assert "exceed the largest number of rules" in str(revision)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("constraints", "violated"),
    [
        (Constraints(forbidden=["z"]), {2}),
        (Constraints(thresholds={"x": {"decimals": 1}, "z": [0.25, 0.75]}), {2}),
        (Constraints(max_conditions=1, min_support=50, max_rules=3), {None}),
        (Constraints(monotone={"z": "-"}, class_order=["a", "b"]), {2}),
        (Constraints(pinned=[PinnedRule.from_ruleset(RULES, 1)]), set()),
    ],
)
def test_revised_rules_satisfy_constraints(constraints, violated, baseline) -> None:
    tree = DecisionTreeClassifier(min_samples_leaf=20, random_state=0)
    search = ExtractorSearchCV(
        *(tree,), extractors=["cart"], n_trials=2, cv=3, random_state=0, constraints=constraints
    ).fit(*rows(1200, 3, is_new=True))
    revision = revise_rules(search, RULES, baseline, max_cost=1.0)
    X = search.data_.X
    labels = revision.extractor.oracle_.query(X)
    assert violations(revision.rules, constraints, X, labels) == []
    assert {v.rule_index for v in revision.violations} >= violated
    frame = revision.to_frame()
    for k in violated - {None}:
        assert frame["status"].iloc[k] != "kept"
        assert "violates" in frame["reason"].iloc[k]
    if None in violated:
        assert "the earlier rules violate" in str(revision)
    search.adopt(revision.extractor)
    assert violations(search.rules_, constraints, X, labels) == []
    if constraints.pinned:
        assert frame["status"].iloc[1] == "kept"


def test_revision_states_that_no_rules_satisfy_constraints(search, monkeypatch) -> None:
    """Repairs always fail here, as with contradictory limits that are not detected."""
    search.set_params(constraints=Constraints(forbidden=["z"]))
    rejected = ConstrainedRules(
        None, {"forbidden: z": "rejected"}, tuple(violations(RULES, search.constraints))
    )

    def reject(*args) -> None:
        raise RejectedRulesError(rejected)

    monkeypatch.setattr(RevisedRulesExtractor, "_enforce_constraints", reject)
    try:
        revision = revise_rules(search, RULES, changes=[])
    finally:
        search.set_params(constraints=None)
    assert not revision.is_accepted
    assert "no revised rules satisfy the constraints: all rules are new" in str(revision)
    assert revision.to_dict()["cost"] is None
    assert set(revision.to_frame()["status"]) == {"not revised"}
    with pytest.raises(ValueError, match="no revised rules"):
        _ = revision.rules
