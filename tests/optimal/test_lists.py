"""Compare optimal lists with an enumeration of all lists."""

from __future__ import annotations

import _thread
import contextlib
import itertools
import json
import signal
import threading
from dataclasses import fields
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris, load_wine

from skescore.optimal import (
    Cuts,
    Frontier,
    SearchSpace,
    SolverLimits,
    candidate_cuts,
    losses_of_partitions,
    optimal_lists,
)
from skescore.rules import Interval, Rule, RuleSet

SPACE, LIMITS = ([field.name for field in fields(one)] for one in (SearchSpace, SolverLimits))


def all_premises(X: np.ndarray, max_conditions: int) -> np.ndarray:
    """Return the rows of every conjunction of values of binary columns."""
    sides = [X[:, j] == value for j in range(X.shape[1]) for value in (0, 1)]
    chosen = itertools.chain.from_iterable(
        itertools.combinations(sides, length) for length in range(1, max_conditions + 1)
    )
    rows = np.array([np.logical_and.reduce(parts) for parts in chosen])
    return np.unique(rows, axis=0)


def constant_loss(y: np.ndarray, weights: np.ndarray, loss: str) -> float:
    """Return the loss of the best constant by enumeration."""
    if not weights.any():
        return 0.0
    if loss == "errors":
        return min(float(weights[y != label].sum()) for label in np.unique(y))
    if loss == "squared_error":
        return float((weights * (y - np.average(y, weights=weights)) ** 2).sum())
    return min(float((weights * np.abs(y - value)).sum()) for value in y)


def least_losses(
    X: np.ndarray, y: np.ndarray, weights: np.ndarray, max_rules: int, conditions: int, loss: str
) -> list[float]:
    """Return the least loss of lists of at most 1, 2, ... rules by enumeration."""
    premises = all_premises(X, conditions)
    constants: dict[bytes, float] = {}
    known_losses: dict[tuple[bytes, int], float] = {}

    def constant(rows: np.ndarray) -> float:
        key = rows.tobytes()
        if key not in constants:
            constants[key] = constant_loss(y[rows], weights[rows], loss)
        return constants[key]

    def expected_losses(rows: np.ndarray, n_rules: int) -> float:
        key = rows.tobytes(), n_rules
        if key not in known_losses:
            known_losses[key] = constant(rows)
            if n_rules > 1 and rows.any():
                ways = (
                    constant(rows & mask) + expected_losses(rows & ~mask, n_rules - 1)
                    for mask in premises
                )
                known_losses[key] = min(known_losses[key], *ways)
        return known_losses[key]

    return [expected_losses(np.ones(len(y), dtype=bool), r) for r in range(1, max_rules + 1)]


def case(
    seed: int, loss: str = "errors", max_conditions: int | None = None
) -> tuple[dict[str, Any], list[float]]:
    """Return a small random problem, and its least losses."""
    rng = np.random.default_rng([seed, 20])
    n_rows, n_features = int(rng.integers(4, 31)), int(rng.integers(1, 7))
    max_rules, conditions = int(rng.integers(1, 5)), int(rng.integers(1, 3))
    if n_features > 4 and conditions == 2 and seed % 5:  # The enumeration would be slow.
        max_rules = min(max_rules, 3)
    X = rng.integers(0, 2, (n_rows, n_features)).astype(float)
    weights = rng.integers(0, 4, n_rows) if seed % 2 else np.ones(n_rows)
    weights[0] = 1
    if loss == "errors":
        y = rng.integers(0, rng.integers(2, 5), n_rows)
    else:
        y = np.round(rng.normal(size=n_rows), 1)
    if max_conditions is not None:
        max_rules, conditions = min(max_rules, 3), max_conditions
    expected_losses = least_losses(X, y, weights, max_rules, conditions, loss)
    space = SearchSpace(max_rules, conditions)
    return {"X": X, "y": y, "sample_weight": weights, "space": space, "loss": loss}, expected_losses


def loss_of(rules: RuleSet, X: Any, y: np.ndarray, weights: np.ndarray, loss: str) -> float:
    predictions = rules.predict(X)
    if loss == "errors":
        return float(weights[predictions != y].sum())
    power = 2 if loss == "squared_error" else 1
    return float((weights * np.abs(predictions - y) ** power).sum())


def check_rules(frontier: Frontier, problem: dict[str, Any]) -> None:
    """Check that the rules belong to the space and have the stated losses."""
    for size, upper, rules in zip(frontier.sizes, frontier.upper, frontier.rules, strict=True):
        assert rules is not None
        assert len(rules) <= size
        loss = loss_of(rules, problem["X"], problem["y"], problem["sample_weight"], frontier.loss)
        assert loss == pytest.approx(upper, abs=1e-9)
        assert not rules[-1].conditions
        assert all(rule.n_literals <= problem["space"].max_conditions for rule in rules)


def check_case(seed: int) -> None:
    problem, expected_losses = case(seed)
    frontier = optimal_lists(**problem)
    assert frontier.lower.tolist() == frontier.upper.tolist() == expected_losses
    assert set(frontier.status) == {"optimal"}
    check_rules(frontier, problem)


def test_lists_equal_enumeration() -> None:
    for seed in range(50):
        check_case(seed)


@pytest.mark.slow
def test_lists_equal_enumeration_of_1000_cases() -> None:
    for seed in range(50, 1050):
        check_case(seed)


@pytest.mark.parametrize("loss", ["squared_error", "absolute_error"])
def test_lists_equal_enumeration_in_regression(loss: str) -> None:
    for seed in range(25):
        problem, expected_losses = case(seed, loss)
        frontier = optimal_lists(**problem)
        np.testing.assert_allclose(frontier.upper, expected_losses, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(frontier.lower, expected_losses, rtol=1e-9, atol=1e-9)
        assert set(frontier.status) == {"optimal"}
        check_rules(frontier, problem)


@pytest.mark.parametrize("loss", ["errors", "squared_error"])
def test_lists_of_three_conditions_equal_enumeration(loss: str) -> None:
    for seed in range(12):
        problem, expected_losses = case(seed, loss, max_conditions=3)
        frontier = optimal_lists(**problem)
        np.testing.assert_allclose(frontier.lower, expected_losses, rtol=1e-9, atol=1e-9)
        check_rules(frontier, problem)


@pytest.mark.parametrize(
    ("loss", "n_cases"),
    [
        ("errors", 12),
        ("squared_error", 4),
        ("absolute_error", 4),
        pytest.param("errors", 80, marks=pytest.mark.slow),
        pytest.param("squared_error", 20, marks=pytest.mark.slow),
        pytest.param("absolute_error", 20, marks=pytest.mark.slow),
    ],
)
def test_list_bounds_hold_at_node_limit(loss: str, n_cases: int) -> None:
    ended = set()
    for seed in range(n_cases):
        problem, expected_losses = case(seed, loss)
        for node_limit in (1, 3, 10, 30):
            frontier = optimal_lists(limits=SolverLimits(max_nodes=node_limit), **problem)
            assert (frontier.lower <= np.array(expected_losses) + 1e-9).all()
            assert (frontier.upper >= np.array(expected_losses) - 1e-9).all()
            ended |= set(frontier.status)
            check_rules(frontier, problem)
    assert ended == {"optimal", "node_limit"}


@pytest.mark.parametrize("n_cases", [20, pytest.param(120, marks=pytest.mark.slow)])
def test_lists_stop_at_targets(n_cases: int) -> None:
    ended = set()
    for seed in range(n_cases):
        problem, expected_losses = case(seed)
        rng = np.random.default_rng(seed)
        targets = np.round(np.array(expected_losses) * rng.uniform(0.2, 1.3, len(expected_losses)))
        frontier = optimal_lists(**problem, targets=targets)
        assert (frontier.lower <= expected_losses).all()
        assert (frontier.lower >= np.minimum(targets, expected_losses)).all()
        assert (frontier.upper >= expected_losses).all()
        for target, low, high, status in zip(
            targets, frontier.lower, frontier.upper, frontier.status, strict=True
        ):
            assert status == ("optimal" if low == high else "target")
            assert low >= target or low == high
        ended |= set(frontier.status)
        check_rules(frontier, problem)
    assert ended == {"optimal", "target"}


def test_lists_of_fractional_weights_equal_enumeration() -> None:
    for seed in range(20):
        problem, _ = case(seed)
        problem["sample_weight"] = np.random.default_rng(seed).random(len(problem["y"]))
        space = problem["space"]
        rows = (problem["X"], problem["y"], problem["sample_weight"])
        expected_losses = least_losses(*rows, space.max_rules, space.max_conditions, "errors")
        frontier = optimal_lists(**problem)
        np.testing.assert_allclose(frontier.lower, expected_losses, atol=1e-9)
        np.testing.assert_allclose(frontier.upper, expected_losses, atol=1e-9)


@pytest.fixture(scope="module")
def wine() -> tuple[pd.DataFrame, np.ndarray]:
    return load_wine(return_X_y=True, as_frame=True)


@pytest.mark.slow
def test_lists_are_equal_with_several_processes() -> None:
    X, y = load_iris(return_X_y=True)
    sequential, parallel = (
        optimal_lists(X, y, SearchSpace(4, cuts=4), limits=SolverLimits(n_jobs=n)) for n in (1, 2)
    )
    assert sequential.lower.tolist() == parallel.lower.tolist() == sequential.upper.tolist()
    assert sequential.rules == parallel.rules


def test_lists_at_node_limit_are_reproducible(wine: tuple[pd.DataFrame, np.ndarray]) -> None:
    first, again = (
        optimal_lists(*wine, space=SearchSpace(5), limits=SolverLimits(max_nodes=300))
        for _ in range(2)
    )
    assert first.status[-1] == "node_limit"
    assert first.lower.tolist() == again.lower.tolist()
    assert first.rules == again.rules
    longer = optimal_lists(*wine, space=SearchSpace(5), limits=SolverLimits(max_nodes=1200))
    assert (longer.lower >= first.lower).all()
    assert (longer.upper <= first.upper).all()


def test_lists_on_wine_have_known_losses(wine: tuple[pd.DataFrame, np.ndarray]) -> None:
    frontier = optimal_lists(*wine, space=SearchSpace(3))
    assert frontier.lower.tolist() == frontier.upper.tolist() == [107, 52, 6]


def test_lists_accept_categories_and_missing_values() -> None:
    rng = np.random.default_rng(3)
    size = 60
    X = pd.DataFrame(
        {
            "color": pd.array(rng.choice(["red", "blue", "green", None], size), dtype=object),
            "age": np.where(rng.random(size) < 0.3, np.nan, rng.normal(size=size).round(2)),
        }
    )
    truth = (X["color"] == "red") | X["age"].isna()
    y = np.where(truth, "yes", "no")
    frontier = optimal_lists(X, y, SearchSpace(3))
    assert frontier.upper[2] == frontier.lower[2] == 0
    rules = frontier.rules[2]
    assert rules is not None
    assert (rules.predict(X) == y).all()
    assert {str(c) for rule in rules for c in rule.conditions} <= {
        "x0 = red",
        "x1 is missing",
        "x0 ≠ red or missing",
        "x1 is known",
    }
    assert json.loads(json.dumps(frontier.space))["cuts"]["categories"] == {
        "0": ["blue", "green", "red"]
    }


def test_lists_use_initial_rules(wine: tuple[pd.DataFrame, np.ndarray]) -> None:
    X, y = wine
    best = optimal_lists(X, y, SearchSpace(4))
    # The bounds are moved away from the cuts.
    shifted_rules = [
        Rule(
            [
                Interval(c.feature, c.lower + 1e-3, c.upper + 1e-3)
                for c in rule.conditions
                if isinstance(c, Interval)
            ],
            rule.output,
        )
        for rule in best.rules[3]
    ]
    start = RuleSet(shifted_rules, list(X.columns), task="classification", classes=[0, 1, 2])
    few = optimal_lists(X, y, SearchSpace(4), limits=SolverLimits(max_nodes=150))
    started = optimal_lists(X, y, SearchSpace(4), start=[start], limits=SolverLimits(max_nodes=150))
    assert started.upper[3] == best.upper[3] <= few.upper[3]
    assert (started.lower <= best.lower).all()


def test_lists_with_little_memory_have_valid_bounds(wine: tuple[pd.DataFrame, np.ndarray]) -> None:
    frontier = optimal_lists(*wine, space=SearchSpace(3), limits=SolverLimits(memory_limit=1000))
    assert frontier.status == ("optimal", "memory_limit", "memory_limit")
    assert frontier.lower.tolist() == [107, 0, 0]
    assert frontier.upper.tolist() == [107, 107, 107]


def test_lists_without_time_have_valid_bounds(wine: tuple[pd.DataFrame, np.ndarray]) -> None:
    frontier = optimal_lists(*wine, space=SearchSpace(4), limits=SolverLimits(time_limit=0))
    assert (frontier.lower <= [107, 52, 6, 3]).all()
    assert (frontier.upper >= [107, 52, 6, 3]).all()
    assert frontier.status[-1] == "time_limit"


def test_lists_after_keyboard_interrupt_have_valid_bounds() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 5)), rng.integers(0, 2, 200)
    known_losses = optimal_lists(X, y, SearchSpace(3, cuts=3))
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # The signal may be ignored.
    timer = threading.Timer(0.5, _thread.interrupt_main)
    timer.start()
    try:
        frontier = optimal_lists(X, y, SearchSpace(6, cuts=3), limits=SolverLimits(time_limit=60))
    finally:
        timer.join()
        signal.signal(signal.SIGINT, before)
    assert frontier.status[-1] == "interrupted"
    assert frontier.status[0] == "optimal"
    assert (frontier.lower[:3] <= known_losses.lower).all()
    assert (frontier.upper[:3] >= known_losses.upper).all()


def test_lists_accept_constant_tables() -> None:
    frontier = optimal_lists(np.ones((4, 2)), [0, 0, 1, 1], SearchSpace(3))
    assert frontier.lower.tolist() == frontier.upper.tolist() == [2, 2, 2]
    one = optimal_lists(np.arange(4.0)[:, None], ["a"] * 4, SearchSpace(2))
    assert one.upper.tolist() == [0, 0]


def test_lists_use_stated_cuts() -> None:
    X = np.arange(8.0)[:, None]
    y = np.array([0, 0, 0, 1, 1, 1, 0, 0])
    assert optimal_lists(X, y, SearchSpace(3)).upper.tolist() == [3, 0, 0]
    coarse = Cuts(1, {0: (1.5,)}, {})
    assert optimal_lists(X, y, SearchSpace(3, cuts=coarse)).upper.tolist() == [3, 3, 3]
    assert optimal_lists(X, y, SearchSpace(3, max_conditions=1)).upper.tolist() == [3, 2, 0]
    assert candidate_cuts(X, 1).thresholds == {0: (3.5,)}


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"loss": "error"}, ValueError, "loss must be one of"),
        ({"max_rules": 0}, ValueError, "max_rules must be an integer from 1 to 10000"),
        ({"max_rules": 10**9}, ValueError, "from 1 to 10000.* got 1000000000"),
        ({"max_conditions": 4}, ValueError, "max_conditions must be an integer from 1 to 3"),
        ({"cuts": "all"}, TypeError, "cuts must be an integer of 1 or more"),
        ({"time_limit": -1}, ValueError, "time_limit must be"),
        ({"max_nodes": 0}, ValueError, "max_nodes must be"),
        ({"memory_limit": -1}, ValueError, "memory_limit must be"),
        ({"classes": [0]}, ValueError, "classes must hold all labels of y, but it lacks 1"),
        ({"sample_weight": [0, 0]}, ValueError, "sample_weight must hold a positive number"),
        ({"targets": [1]}, ValueError, "targets must hold one number for each of the 4 sizes"),
        ({"start": ["rule"]}, TypeError, "start must be a RuleSet"),
        ({"y": [0]}, ValueError, "y must hold one value for each of the 2 rows"),
        ({"loss": "squared_error", "y": [0, np.nan]}, ValueError, "y must hold finite numbers"),
    ],
)
def test_lists_reject_invalid_parameters(
    options: dict[str, Any], error: type[Exception], message: str
) -> None:
    limits = {name: options.pop(name) for name in LIMITS if name in options}
    space = {name: options.pop(name) for name in SPACE if name in options}
    rows = {"X": [[0.0], [1.0]], "y": [0, 1]} | options
    with pytest.raises(error, match=message):
        optimal_lists(**rows, space=SearchSpace(**space), limits=SolverLimits(**limits))


def test_lists_scale_with_tiny_weights() -> None:
    X, y = np.arange(6.0)[:, None], ["a", "b"] * 3
    weights = np.array([0.35, 0.09, 0.3, 0.63, 0.62, 0.98])
    usual, tiny = (
        optimal_lists(X, y, SearchSpace(3, max_conditions=1, cuts=None), sample_weight=w).upper
        for w in (weights, weights * 1e-9)
    )
    assert tiny * 1e9 == pytest.approx(usual)


@pytest.mark.parametrize("unit", [1e-300, 1e200])
def test_lists_of_numbers_scale_with_weights(unit: float) -> None:
    X, y = np.arange(6.0)[:, None], [1.0, 2.0, 4.0, 0.0, 1.0, 3.0]
    usual, scaled = (
        optimal_lists(
            X,
            y,
            SearchSpace(3, max_conditions=1, cuts=None),
            loss="squared_error",
            sample_weight=np.array([1, 2, 1, 1, 3, 1]) * factor,
        )
        for factor in (1.0, unit)
    )
    assert scaled.lower / unit == pytest.approx(usual.lower)
    assert scaled.upper / unit == pytest.approx(usual.upper)


@pytest.mark.parametrize("max_conditions", [1, 2, 3])
def test_lists_start_from_any_list_of_the_space(max_conditions: int) -> None:
    for seed in range(25):
        rng = np.random.default_rng(seed)
        X = rng.integers(0, 3, (60, 4)).astype(float)
        y = rng.integers(0, 5, 60)
        pairs = list(candidate_cuts(X).pairs())
        rules = []
        for label in range(4):
            picks = rng.choice(len(pairs), int(rng.integers(1, max_conditions + 1)), replace=False)
            conditions = [pairs[i][int(rng.integers(2))] for i in picks]
            with contextlib.suppress(ValueError):  # contradictory bounds
                rules.append(Rule(tuple(conditions), label))
        start = RuleSet([*rules, Rule((), 4)], [f"x{j}" for j in range(4)], task="classification")
        ((n_rules, loss),) = losses_of_partitions(X, y, [start])
        space = SearchSpace(n_rules, max_conditions, None)
        limits = SolverLimits(max_nodes=1)
        assert optimal_lists(X, y, space, start=[start], limits=limits).upper[-1] <= loss


def test_list_bounds_hold_at_work_limit(wine: tuple[pd.DataFrame, np.ndarray]) -> None:
    best = optimal_lists(*wine, space=SearchSpace(3))
    for max_work in (0.0, 0.01, 0.05):
        limits = SolverLimits(max_work=max_work)
        stopped, again = (
            optimal_lists(*wine, space=SearchSpace(3), limits=limits) for _ in range(2)
        )
        assert (stopped.lower <= best.upper).all()
        assert (stopped.upper >= best.upper).all()
        assert stopped.lower.tolist() == again.lower.tolist()
        assert stopped.upper.tolist() == again.upper.tolist()
    first = optimal_lists(*wine, space=SearchSpace(3), limits=SolverLimits(max_work=0.01))
    assert first.status[-1] == "work_limit"


@pytest.mark.parametrize("outlier", [1e3, 1e6])
def test_optimal_lists_state_rounding_next_to_outliers(outlier: float) -> None:
    X = np.arange(12.0)[:, None]
    y = np.array([0, 0, 0, 1, 1, 1, 0, 0, 1, 1, 1, outlier])
    space = SearchSpace(max_rules=5, max_conditions=1, cuts=None)
    frontier = optimal_lists(X, y, space, loss="squared_error")
    assert frontier.lower[-1] == 0.0  # five rules separate the runs of equal numbers
    assert frontier.status[-1] == ("optimal" if outlier == 1e3 else "rounding")
