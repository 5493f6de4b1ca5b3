"""Held-out counts of rules, compared with loops over the rows."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_diabetes
from sklearn.model_selection import RepeatedKFold
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from skescore import CARTExtractor, ExtractorSearchCV
from skescore.metrics import count_decisions
from skescore.monitoring import RuleBaseline, rate_interval
from skescore.rules import Domain, Fallback, Interval, OneOf, Rule, RuleSet

RULES = RuleSet(
    [
        Rule([Interval(0, upper=0.4), OneOf(1, ("a", "b"))], "no"),
        Rule([Interval(0, lower=0.7)], "yes"),
    ],
    ["x", "kind", "unused"],
    task="classification",
    ordered=True,
    domain=Domain((0.0, 0.0, 0.0), (1.0, 2.0, 1.0), [(1, ("a", "b"))]),
    fallback=Fallback("no"),
)


def rows(n: int = 400, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    """Return rows with missing values, values outside of the domain and a new category."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "x": np.where(rng.random(n) < 0.1, np.nan, rng.uniform(-0.1, 1.1, n)),
            "kind": rng.choice(np.array(["a", "b", "c", None], dtype=object), n),
            "unused": "text",
        }
    )
    y = rng.choice(np.array(["no", "yes", "maybe", None], dtype=object), n)
    return X, y


def test_count_decisions_equals_a_loop_over_rows() -> None:
    X, y = rows()
    counts = count_decisions(RULES, X, y, model_predictions=np.roll(y, 1))
    expected = np.zeros((7, 3), dtype=int)
    for (x, kind, _), label, model in zip(X.itertuples(index=False), y, np.roll(y, 1), strict=True):
        rule, prediction = 2, "no"
        if x <= 0.4 and kind in ("a", "b"):
            rule = 0
        elif x >= 0.7:
            rule, prediction = 1, "yes"
        gaps = math.isnan(x) or pd.isna(kind)
        outside = x < 0 or x > 1 or kind == "c"
        values = [True, label is not None, label not in (None, prediction)]
        values += [model is not None, model not in (None, prediction), outside, gaps]
        expected[:, rule] += values
    np.testing.assert_array_equal(np.array(list(counts.to_dict().values())), expected)


def test_count_decisions_rejects_labels_of_another_type() -> None:
    X, _ = rows(2)
    with pytest.raises(ValueError, match="labels of the type of the classes"):
        count_decisions(RULES, X, [1, 0])


def test_baseline_survives_json() -> None:
    X, y = rows()
    baseline = RuleBaseline.from_rows(RULES, X, y)
    copy = RuleBaseline.from_json(baseline.to_json())
    assert copy.to_json() == baseline.to_json()
    pd.testing.assert_frame_equal(copy.to_frame(), baseline.to_frame())
    copy.check_rules(RULES)
    with pytest.raises(ValueError, match="other rules"):
        copy.check_rules(RULES[:1])


def test_baseline_describes_the_features_of_each_rule() -> None:
    X, y = rows()
    first, _, other = RuleBaseline.from_rows(RULES, X, y).features
    assert list(first) == ["x", "kind"]
    x = X["x"][(X["x"] <= 0.4) & X["kind"].isin(["a", "b"])]
    assert first["x"]["quantiles"]["0.5"] == pytest.approx(x.median())
    assert set(first["kind"]["values"]) == {"a", "b"}
    assert other["x"]["n_missing"] == X["x"].isna().sum()


@pytest.mark.parametrize("text", ["[]", "{}", '{"format": "skescore rule baseline", "version": 1}'])
def test_baseline_rejects_other_files(text: str) -> None:
    with pytest.raises(ValueError, match="baseline"):
        RuleBaseline.from_json(text)


def test_tolerances_of_a_regression_use_other_rows() -> None:
    rng = np.random.default_rng(1)
    X = rng.uniform(size=(4000, 1))
    y = np.where(X[:, 0] < 0.5, 0.0, 5.0) + rng.normal(scale=1 + 2 * (X[:, 0] >= 0.5))
    rules = RuleSet(
        [Rule([Interval(0, upper=0.5)], 0.0), Rule([], 5.0)], ["x"], task="regression", ordered=True
    )
    baseline = RuleBaseline.from_rows(rules, X, y)
    assert baseline.error_tolerances is not None
    # The 95 % quantile of a normal distribution bounds 90 % of absolute differences.
    np.testing.assert_allclose(baseline.error_tolerances[:2], [1.645, 4.935], rtol=0.1)
    np.testing.assert_allclose(baseline.to_frame()["error"][:2], 0.1, atol=0.03)
    assert baseline.counts.n_labeled.sum() == 2000


@pytest.mark.parametrize("fallback", [None, Fallback(0.0, "abstain"), Fallback(0.0, "nearest")])
def test_tolerances_ignore_rows_without_a_rule(fallback: Fallback | None) -> None:
    """A rule with few rows gets the tolerance of all rows that rules predict."""
    X = np.repeat([0.0, 2.0, 4.0], [20, 200, 200])[np.random.default_rng(0).permutation(420), None]
    rules = [Rule([Interval(0, upper=1)], 1000.0), Rule([Interval(0, 1, 2)], 2000.0)]
    rules = RuleSet(rules, ["x"], task="regression", domain=Domain([0], [4]), fallback=fallback)
    y = 1000 + 500 * X[:, 0] + 1e6 * (X[:, 0] > 2)
    tolerances = RuleBaseline.from_rows(rules, X, y).error_tolerances
    counts = count_decisions(rules, X, y + 500, error_tolerances=tolerances)
    assert counts.n_errors.tolist() == [20, 200, 0]


def test_rate_interval_covers_the_rate() -> None:
    from scipy.stats import binom

    x = np.arange(41)
    lower, upper = rate_interval(x, np.full(41, 40), level=0.9)
    for rate in np.linspace(0.001, 0.999, 101):
        assert binom.pmf(x, 40, rate) @ ((lower <= rate) & (rate <= upper)) >= 0.9


def test_baseline_of_a_search_equals_a_loop() -> None:
    """Only the first of two repeated splits counts, and no training rows are measured."""
    rng = np.random.default_rng(2)
    X = pd.DataFrame({"x": rng.uniform(size=200), "z": rng.uniform(size=200)})
    y = np.where((X["x"] > 0.5) ^ (rng.random(200) < 0.3), "yes", "no")
    cv = RepeatedKFold(n_splits=3, n_repeats=2, random_state=0)
    tree = DecisionTreeClassifier(random_state=0)
    search = ExtractorSearchCV(tree, extractors=["cart"], n_trials=2, cv=cv, random_state=0)
    baseline = RuleBaseline.from_search(search.fit(X, y))
    rule = search.rules_.assign(X)
    expected = np.zeros((4, len(search.rules_) + 1), dtype=int)
    for train, test in list(cv.split(X))[:3]:
        model = clone(tree).fit(X.iloc[train], y[train])
        extractor = CARTExtractor(
            model, random_state=search.extractor_seed_, **search.best_params_
        ).fit(X.iloc[train])
        domain = extractor.rules_.domain
        used = sorted(extractor.rules_.used_features)
        for row in test:
            values = X.iloc[[row]]
            prediction = extractor.predict(values)[0]
            outside = any(not domain.lower[f] <= values.iloc[0, f] <= domain.upper[f] for f in used)
            events = [1, prediction != y[row], prediction != model.predict(values)[0], outside]
            expected[:, rule[row]] += np.array(events, dtype=int)
    counts = baseline.counts
    observed = [counts.n_rows, counts.n_errors, counts.n_disagreements, counts.n_outside]
    np.testing.assert_array_equal(observed, expected)
    np.testing.assert_array_equal(counts.n_labeled, counts.n_rows)
    assert counts.n_errors.sum() > (search.predict(X) != y).sum()
    assert RuleBaseline.from_json(baseline.to_json()).origin == "cross-validation"


@pytest.mark.slow
def test_baseline_of_a_regression_search_has_tolerances() -> None:
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    tree = DecisionTreeRegressor(max_depth=4, random_state=0)
    search = ExtractorSearchCV(tree, extractors=["cart"], n_trials=2, cv=2, random_state=0)
    baseline = RuleBaseline.from_search(search.fit(X, y))
    assert baseline.error_tolerances is not None
    assert all(math.isfinite(width) for width in baseline.error_tolerances)
    # The odd rows are counted, a tenth of which is beyond the tolerance on average.
    assert baseline.counts.n_labeled.sum() == len(y) // 2
    assert 0.05 <= baseline.counts.n_errors.sum() / baseline.counts.n_labeled.sum() <= 0.2


def test_baseline_of_a_pickled_search_is_the_same() -> None:
    """Copies recompute the folds."""
    import pickle

    X, y = load_diabetes(return_X_y=True, as_frame=True)
    tree = DecisionTreeRegressor(max_depth=4, random_state=0)
    search = ExtractorSearchCV(tree, extractors=["cart"], n_trials=2, cv=2, random_state=0)
    search.set_params(keep_folds=True).fit(X, y)
    copy = pickle.loads(pickle.dumps(search))
    assert search._search_folds is not None
    assert not hasattr(copy, "_search_folds")
    assert RuleBaseline.from_search(copy).to_json() == RuleBaseline.from_search(search).to_json()
