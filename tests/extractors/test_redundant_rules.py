"""Extractors with ``prune="redundant"``: fewer rules, and the same predictions in the domain."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest

from skescore.black_boxes import make_black_box
from skescore.extractors import BaseExtractor
from skescore.registry import make_extractor
from skescore.rules import Interval, Rule, RuleSet, with_statistics

EXTRACTORS = ["cart", "cream", "exact", "gridex", "iter", "real", "trepan"]


def make_rows(seed: int, n_rows: int = 150) -> tuple[pd.DataFrame, np.ndarray]:
    """Return rows with a category, an integer, a number with missing values, and noisy labels."""
    rng = np.random.default_rng(seed)
    day = rng.choice(["Mo", "Su", "Tu"], n_rows, p=[0.4, 0.2, 0.4])
    price = rng.normal(100, 20, n_rows).round()
    price[rng.random(n_rows) < 0.05] = np.nan
    X = pd.DataFrame({"day": day, "price": price, "size": rng.integers(0, 9, n_rows)})
    labels = np.where(day == "Su", "c", np.where((price > 90) & (price < 110), "a", "b"))
    return X, np.where(rng.random(n_rows) < 0.25, rng.choice(["a", "b", "c"], n_rows), labels)


@pytest.mark.parametrize("name", EXTRACTORS)
def test_redundant_rules_are_removed_without_changing_predictions(name: str) -> None:
    n_rules = n_fewer = 0
    for seed in range(2):
        X, y = make_rows(seed)
        model = make_black_box("decision-tree", "classification", 0, ["day"]).fit(X, y)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            seed_options = {} if name in ("gridex", "real") else {"random_state": 0}
            plain, pruned = (
                make_extractor(name, model, prune=prune, **seed_options).fit(X, y)
                for prune in (None, "redundant")
            )
        price = np.random.default_rng(1).uniform(X["price"].min(), X["price"].max(), 1000)
        queries = X.sample(1000, replace=True, random_state=1).assign(price=price)
        for rows in (X, queries):
            np.testing.assert_array_equal(plain.predict(rows), pruned.predict(rows))
        n_rows = [sum(r.statistics.n_rows for r in one.rules_) for one in (plain, pruned)]
        assert n_rows[0] == n_rows[1]
        n_rules += plain.n_rules_
        n_fewer += plain.n_rules_ - pruned.n_rules_
    assert 0 <= n_fewer < n_rules


def test_rule_is_removed_if_a_later_rule_contains_it() -> None:
    X, y = make_rows(2, 300)
    model = make_black_box("random-forest", "classification", 0, ["day"]).fit(X, y)
    plain, pruned = (
        make_extractor("exact", model, prune=prune, random_state=0).fit(X, y)
        for prune in (None, "redundant")
    )
    assert (plain.n_rules_, pruned.n_rules_) == (4, 3)


class SharedRows(BaseExtractor):
    """An ordered list whose first rule is covered by the next two together."""

    batch_size = None

    def __init__(self, estimator, prune=None, uncovered="default", abstain_label=None):
        self.estimator = estimator
        self.prune = prune
        self.uncovered = uncovered
        self.abstain_label = abstain_label

    def _check_parameters(self):
        pass

    def _extract(self, extraction):
        labels = extraction.settings["classes"]
        boxes = [((1, 3), 1), ((0, 2), 1.5), ((2, 4), 2)]
        rules = [
            Rule([Interval(0, low, high), Interval(1, upper=top)], labels[0])
            for (low, high), top in boxes
        ]
        rules = RuleSet([*rules, Rule([], labels[1])], ordered=True, **extraction.settings)
        return with_statistics(rules, extraction.X, extraction.classes[extraction.predictions])


@pytest.mark.parametrize("is_weighted", [False, True])
def test_rows_are_counted_again_if_several_rules_get_them(is_weighted: bool) -> None:
    X = np.random.default_rng(0).uniform(0, 5, (300, 2))
    y = np.where((X[:, 0] < 4) & (X[:, 1] < 1.5), "a", "b")
    weights = np.where(X[:, 0] < 2, 0.5, 2.0) if is_weighted else np.ones(300)
    model = make_black_box("decision-tree", "classification", 0, [])
    options = {"sample_weight": weights} if is_weighted else {}
    rules = SharedRows(model, prune="redundant").fit(X, y, **options).rules_
    assert len(rules) == 3
    position = rules.assign(X)
    for k, rule in enumerate(rules):
        assert rule.statistics.n_rows == pytest.approx(weights[position == k].sum())
        counts = [weights[(position == k) & (y == label)].sum() for label in rules.classes]
        assert rule.statistics.class_counts == pytest.approx(counts)
        assert rule.statistics.target_counts == pytest.approx(counts)
