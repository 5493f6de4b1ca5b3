"""Revision extracts some rules again and keeps the others with their rows."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder
from sklearn.tree import DecisionTreeRegressor

from skescore import CARTExtractor, ExtractorSearchCV
from skescore.extractors import RevisedRulesExtractor
from skescore.rules import Fallback, Interval, OneOf, Rule, RuleSet


def rows(n: int, seed: int) -> pd.DataFrame:
    """Return numbers with missing values, and categories."""
    rng = np.random.default_rng(seed)
    x, kind = rng.uniform(size=n), rng.choice(np.array(["a", "b", "c"], dtype=object), n)
    return pd.DataFrame({"x": np.where(rng.random(n) < 0.1, np.nan, x), "kind": kind})


def labels(X: pd.DataFrame, border: float) -> np.ndarray:
    is_large = X["x"].to_numpy() > border
    return np.select([is_large & (X["kind"] == "a"), is_large], ["no", "maybe"], "yes")


def fitted_model(X: pd.DataFrame, border: float):
    encoder = make_column_transformer((OrdinalEncoder(), ["kind"]), remainder="passthrough")
    model = make_pipeline(encoder, HistGradientBoostingClassifier(max_iter=5, random_state=0))
    return model.fit(X, labels(X, border))


@settings(max_examples=6, deadline=None)
@given(st.integers(0, 1000), st.sets(st.integers(0, 5)), st.booleans(), st.integers(1, 4))
def test_revision_keeps_other_rules_and_their_rows(seed, numbers, simplify, size) -> None:
    """A loop over the rows compares the rule before with the rule after."""
    old, new = rows(300, seed), rows(250, seed + 1)
    earlier = CARTExtractor(
        fitted_model(old, 0.4), max_leaf_nodes=5, simplify=simplify, random_state=0
    )
    rules = earlier.fit(old).rules_
    changed = sorted(k for k in numbers if k < len(rules))
    extractor = RevisedRulesExtractor(
        fitted_model(new, 0.7), rules, changed, max_leaf_nodes=size, random_state=0
    ).fit(new)
    revised = extractor.rules_
    assert sorted(set(extractor.origins_)) == list(range(len(rules)))
    for k in range(len(rules)):
        repeats = [
            r for r, origin in zip(revised.rules, extractor.origins_, strict=True) if origin == k
        ]
        if k not in changed:
            assert [(r.conditions, r.output) for r in repeats] == [
                (rules.rules[k].conditions, rules.rules[k].output)
            ]
        assert len(repeats) <= size
    for X in (old, new):
        before, after = rules.assign(X), revised.assign(X)
        for one, other in zip(before.tolist(), after.tolist(), strict=True):
            assert extractor.origins_[other] == one
    statistics = [rule.statistics.n_rows for rule in revised.rules]
    assert statistics == np.bincount(revised.assign(new), minlength=len(revised)).tolist()


def test_revision_turns_overlapping_rules_into_ordered_list() -> None:
    rules = RuleSet(
        [Rule([Interval(0, upper=0.6)], "yes"), Rule([OneOf(1, ["a", "b"])], "no")],
        ["x", "kind"],
        task="classification",
        classes=["maybe", "no", "yes"],
        fallback=Fallback("no"),
    )
    X = rows(400, 0)
    model = fitted_model(X, 0.3)
    extractor = RevisedRulesExtractor(model, rules, changed=[2], random_state=0).fit(X)
    assert extractor.rules_.ordered
    assert extractor.rules_.rules[0].conditions == rules.rules[0].conditions
    before, after = rules.assign(X), extractor.rules_.assign(X)
    np.testing.assert_array_equal(after[before >= 0], before[before >= 0])
    # Rows of no rule get rules of their own.
    is_free = before < 0
    assert (after[is_free] >= 2).all()
    agreement = extractor.predict(X)[is_free] == model.predict(X)[is_free]
    assert agreement.mean() > 0.9


def test_revision_of_regression_keeps_fallback() -> None:
    rules = RuleSet(
        [Rule([Interval(0, upper=0.5)], 1.0)], ["x"], task="regression", fallback=Fallback(7.0)
    )
    X = pd.DataFrame({"x": np.linspace(0, 1, 101)})
    model = DecisionTreeRegressor(random_state=0).fit(X, np.where(X["x"] > 0.25, 3.0, 2.0))
    extractor = RevisedRulesExtractor(model, rules, changed=[0], max_leaf_nodes=2).fit(X)
    assert extractor.predict(X)[[0, 40, 90]].tolist() == [2.0, 3.0, 7.0]


def test_search_compares_revisions_with_its_candidates() -> None:
    """Folds share a cache that must distinguish the rows of different rules."""
    X = rows(300, 3)
    y = labels(X, 0.5)
    rules = RuleSet(
        [Rule([Interval(0, upper=0.5)], "yes"), Rule([], "no")],
        ["x", "kind"],
        task="classification",
        classes=["maybe", "no", "yes"],
        ordered=True,
    )
    encoder = make_column_transformer((OrdinalEncoder(), ["kind"]), remainder="passthrough")
    model = make_pipeline(encoder, HistGradientBoostingClassifier(max_iter=5, random_state=0))
    search = ExtractorSearchCV(model, extractors=["cart"], n_trials=1, cv=2, random_state=0)
    search.set_params(keep_folds=True).fit(X, y)
    revisions = [RevisedRulesExtractor(model, rules, changed) for changed in ([0], [1], [])]
    together = search.held_out_scores(revisions)
    search._search_folds = None
    alone = [search.held_out_scores([revision])[0] for revision in revisions]
    np.testing.assert_array_equal(together, alone)


@pytest.mark.parametrize(
    ("rules", "changed", "text"),
    [
        (None, [], "rules must be a RuleSet"),
        (RuleSet([Rule([], "a")], ["x"], task="classification"), [2], "changed must hold indices"),
        (RuleSet([Rule([], "a")], ["x"], task="classification"), [], "Pass the same columns"),
    ],
)
def test_revision_rejects_unsuitable_rules(rules, changed, text) -> None:
    X = rows_of_numbers = np.random.default_rng(0).uniform(size=(50, 2))
    model = HistGradientBoostingClassifier(max_iter=2).fit(X, rows_of_numbers[:, 0] > 0.5)
    with pytest.raises((TypeError, ValueError), match=text):
        RevisedRulesExtractor(model, rules, changed).fit(X)
