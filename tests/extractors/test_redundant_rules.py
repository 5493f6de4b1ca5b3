"""Extractors with ``prune="redundant"``: fewer rules, and the same predictions in the domain."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest

from skescore.black_boxes import make_black_box
from skescore.registry import make_extractor

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
