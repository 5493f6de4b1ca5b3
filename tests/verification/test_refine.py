"""Repair of rules reduces disagreements near the data and adds none elsewhere."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestRegressor
from small_ensembles import enumerate_cells, make_problem

from skescore.extractors import CARTExtractor
from skescore.rules import Interval, LinearOutput, Rule, RuleSet
from skescore.verification import VerificationLimits, refine, verify

LIMITS = VerificationLimits(time_limit=20.0, max_splits=200, max_samples=20_000)


def disagreement(problem, rules: RuleSet, cells) -> float:
    """Return the exact share of disagreement near the data."""
    assigned = rules.assign(cells.rows)
    has_output = (assigned >= 0) | (rules.fallback is not None)
    rows = cells.rows[has_output]
    predictions, outputs = problem.model.predict(rows), rules.predict(rows)
    if problem.tolerance is None:
        wrong = predictions != outputs
    else:
        wrong = np.abs(predictions - outputs) > problem.tolerance
    return float(cells.near[has_output][wrong].sum())


def check_repair(seed: int) -> tuple[float, float]:
    problem = make_problem(seed)
    result = verify(
        problem.rules,
        problem.model,
        problem.X,
        tolerance=problem.tolerance,
        radius=problem.radius,
        limits=LIMITS,
    )
    better = refine(problem.rules, result, problem.model, problem.X, n_rows=4000)
    assert len(better) <= len(problem.rules) + 2
    cells = enumerate_cells(problem)
    assert (better.covers(cells.rows) == problem.rules.covers(cells.rows)).all()
    before, after = (disagreement(problem, rules, cells) for rules in (problem.rules, better))
    assert after <= before + 1e-9, problem.label
    return before, after


@pytest.mark.slow
def test_refine_never_raises_disagreement() -> None:
    pairs = [check_repair(seed) for seed in range(4)]
    assert sum(after < 0.9 * before for before, after in pairs) >= 2, pairs


@pytest.mark.slow
def test_refine_never_raises_disagreement_of_many() -> None:
    for seed in range(4, 80):
        check_repair(seed)


@pytest.mark.slow
def test_refine_adds_exceptions_with_categories() -> None:
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {
            "size": rng.normal(size=300),
            "color": pd.Categorical(rng.choice(["blue", "green", "red"], 300)),
        }
    )
    y = np.where((X["size"] > 0) | (X["color"] == "red"), "buy", "sell")
    model = HistGradientBoostingClassifier(max_iter=20, categorical_features="from_dtype")
    model.fit(X, y)
    rules = RuleSet(
        [Rule([Interval(0, upper=0)], "sell"), Rule([], "buy")],
        ["size", "color"],
        task="classification",
    )
    before = verify(rules, model, X, limits=LIMITS)
    better = refine(rules, before, model, X, max_new_rules=1, n_rows=4000)
    after = verify(better, model, X, limits=LIMITS)
    assert "red" in str(better.rules[0])
    assert after.near_disagreement.upper < before.near_disagreement.lower
    assert better.reference == "black_box"
    assert sum(rule.statistics.n_rows for rule in better.rules) == len(X)


@pytest.mark.slow
def test_refine_moves_linear_outputs() -> None:
    """A forest that jumps by 1 at x = 0.6 is a line and an exception with a moved intercept."""
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(400, 2))
    forest = RandomForestRegressor(30, min_samples_leaf=3, random_state=0)
    forest.fit(X, X[:, 1] + (X[:, 0] > 0.6))
    rules = RuleSet([Rule([], LinearOutput(0.0, ((1, 1.0),)))], ["x", "z"], task="regression")
    before = verify(rules, forest, X, tolerance=0.2, limits=LIMITS)
    assert before.near_disagreement.lower > 0.3
    better = refine(rules, before, forest, X, max_new_rules=1)
    output = better.rules[0].output
    assert output.intercept == pytest.approx(1.0, abs=0.1)
    assert output.terms == ((1, 1.0),)
    after = verify(better, forest, X, tolerance=0.2, limits=LIMITS)
    assert after.near_disagreement.upper < 0.05


def test_refine_needs_the_verification_of_its_rules() -> None:
    X = np.arange(90.0)[:, None] / 9
    model = HistGradientBoostingClassifier(max_iter=2, learning_rate=0.9).fit(X, X[:, 0] > 5)
    rules = CARTExtractor(model, max_leaf_nodes=2).fit(X).rules_
    result = verify(rules, model, X, limits=LIMITS)
    with pytest.raises(ValueError, match="of other rules"):
        refine(rules[:1], result, model, X)
    assert refine(rules, result, model, X, max_new_rules=0) is rules
