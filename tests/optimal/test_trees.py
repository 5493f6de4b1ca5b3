"""Compare optimal trees with an enumeration, and check bounds of stopped searches."""

from __future__ import annotations

from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.tree import DecisionTreeClassifier

from skescore.optimal import (
    Frontier,
    SearchSpace,
    SolverLimits,
    candidate_cuts,
    grow_trees,
    losses_of_partitions,
    optimal_trees,
)

LOSSES = ("errors", "squared_error", "absolute_error")


def leaf_loss(y: np.ndarray, w: np.ndarray, loss: str) -> float:
    """Return the least loss of one leaf by enumeration."""
    if loss == "errors":
        return float(min(w[y != label].sum() for label in np.unique(y)))
    if loss == "squared_error":
        mean = (w * y).sum() / w.sum() if w.sum() else 0.0
        return float((w * (y - mean) ** 2).sum())
    return float(min((w * np.abs(y - middle)).sum() for middle in y))


def brute_force(splits: np.ndarray, y: np.ndarray, w: np.ndarray, loss: str, size: int) -> list:
    """Return the least loss for 1 to `size` leaves by enumeration; splits are (rows, tests)."""

    @cache
    def best(rows: tuple[int, ...], leaves: int) -> float:
        index = list(rows)
        least_loss = leaf_loss(y[index], w[index], loss)
        if leaves == 1:
            return least_loss
        for test in splits.T:
            yes = tuple(i for i in rows if test[i])
            no = tuple(i for i in rows if not test[i])
            if yes and no:
                for left in range(1, leaves):
                    least_loss = min(least_loss, best(yes, left) + best(no, leaves - left))
        return least_loss

    return [best(tuple(range(len(y))), leaves) for leaves in range(1, size + 1)]


def tiny_case(seed: int, loss: str) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    rng = np.random.default_rng(seed)
    n_rows, n_features = int(rng.integers(2, 31)), int(rng.integers(1, 7))
    X = rng.integers(0, 2, (n_rows, n_features)).astype(float)
    y = rng.integers(0, rng.integers(2, 5), n_rows)
    if loss != "errors":
        y = np.round(y + rng.normal(size=n_rows), 2)
    kind = seed % 3
    weights = None
    if kind == 1:
        weights = rng.integers(0, 4, n_rows).astype(float)
        weights[0] += 1
    elif kind == 2:
        weights = rng.uniform(0.1, 3, n_rows)
    return X, y, weights


def check_tiny(seed: int, loss: str) -> None:
    X, y, weights = tiny_case(seed, loss)
    frontier = optimal_trees(X, y, SearchSpace(4, cuts=16), loss=loss, sample_weight=weights)
    w = np.ones(len(y)) if weights is None else weights
    truth = brute_force(X <= 0.5, y, w, loss, 4)
    # Losses next to those of one leaf may be as small as the rounding errors of the search.
    is_tiny = frontier.upper < 1e-4 * frontier.upper[0]
    is_rounded = is_tiny & (np.array(frontier.status) == "rounding")
    assert set(np.array(frontier.status)[~is_rounded]) == {"optimal"}
    assert (frontier.lower == frontier.upper)[~is_rounded].all()
    np.testing.assert_allclose(frontier.lower, frontier.upper, rtol=0, atol=1e-7 * max(truth))
    np.testing.assert_allclose(frontier.upper, truth, rtol=1e-9, atol=1e-9)
    check_rules(frontier, X, y, w)


def check_rules(frontier: Frontier, X: Any, y: np.ndarray, w: np.ndarray) -> None:
    """Check that the rules have the stated losses and do not overlap."""
    for size, upper, rules in zip(frontier.sizes, frontier.upper, frontier.rules, strict=True):
        assert rules is not None
        assert len(rules) <= size
        assert (rules.match(X).sum(axis=1) == 1).all()
        predicted = rules.predict(X)
        if frontier.loss == "errors":
            loss = w[predicted != y].sum()
        else:
            power = 2 if frontier.loss == "squared_error" else 1
            loss = (w * np.abs(predicted - y) ** power).sum()
        assert loss == pytest.approx(upper, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("seed", range(12))
def test_trees_equal_enumeration(seed: int, loss: str) -> None:
    check_tiny(seed, loss)


def test_trees_stop_at_targets() -> None:
    ended = set()
    for seed in range(30):
        X, y, weights = tiny_case(seed, "errors")
        w = np.ones(len(y)) if weights is None else weights
        truth = np.array(brute_force(X <= 0.5, y, w, "errors", 4))
        targets = truth * np.random.default_rng(seed).uniform(0.2, 1.3, 4)
        frontier = optimal_trees(X, y, sample_weight=weights, targets=targets)
        assert (frontier.lower <= truth + 1e-9).all()
        assert (frontier.lower >= np.minimum(targets, truth) - 1e-9).all()
        assert (frontier.upper >= truth - 1e-9).all()
        ended |= set(frontier.status)
        check_rules(frontier, X, y, w)
    assert ended == {"optimal", "target"}


@pytest.mark.slow
@pytest.mark.parametrize("loss", LOSSES)
def test_trees_equal_enumeration_of_1000_cases(loss: str) -> None:
    for seed in range(400 if loss == "errors" else 300):
        check_tiny(seed, loss)


@pytest.mark.parametrize("loss", LOSSES)
def test_trees_with_categories_and_gaps_equal_enumeration(loss: str) -> None:
    rng = np.random.default_rng(3)
    n = 24
    frame = pd.DataFrame(
        {
            "a": np.where(rng.random(n) < 0.3, np.nan, rng.integers(0, 4, n)),
            "b": rng.normal(size=n).round(1),
            "c": pd.Categorical(np.where(rng.random(n) < 0.2, None, rng.choice(list("uvw"), n))),
        }
    )
    y = rng.integers(0, 3, n) if loss == "errors" else rng.normal(size=n)
    cuts = candidate_cuts(frame, 4)
    tests = cuts.tests(frame)
    splits = np.column_stack(
        [
            tests.conditions[i].holds(
                lambda j: (
                    frame.iloc[:, j].to_numpy(dtype=object)
                    if j == 2
                    else frame.iloc[:, j].to_numpy()
                )
            )
            for i in range(len(tests))
        ]
    )
    frontier = optimal_trees(frame, y, SearchSpace(3, cuts=cuts), loss=loss)
    truth = brute_force(splits, y, np.ones(n), loss, 3)
    np.testing.assert_allclose(frontier.upper, truth, atol=1e-9)
    assert frontier.status == ("optimal",) * 3
    check_rules(frontier, frame, y, np.ones(n))


def test_trees_accept_missing_values_next_to_integers_beyond_floats() -> None:
    column = pd.Series([2**53 + 2, 5, None, 7, 7], dtype="Int64")
    for frame in (pd.DataFrame({"a": column}), pd.DataFrame({"a": column.astype(object)})):
        frontier = optimal_trees(frame, [1, 0, 1, 0, 0], SearchSpace(3, cuts=None))
        assert frontier.upper.tolist() == [2, 0, 0]


@pytest.mark.parametrize("loss", LOSSES)
def test_trees_are_equal_without_paired_cuts(loss: str, monkeypatch: Any) -> None:
    """The bounds do not depend on whether all pairs of cuts are computed at once."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(40, 3))
    noise = rng.normal(size=40) * 0.3
    y = X[:, 0] * X[:, 1] + noise
    if loss == "errors":
        y = np.digitize(y, [-0.3, 0.3])
    result = optimal_trees(X, y, SearchSpace(4, cuts=None), loss=loss)
    monkeypatch.setattr("skescore.optimal._trees._MAX_PAIRED_CUTS", 0)
    again = optimal_trees(X, y, SearchSpace(4, cuts=None), loss=loss)
    np.testing.assert_allclose(result.upper, again.upper, rtol=1e-9)
    assert set(result.status) == set(again.status) == {"optimal"}


@pytest.mark.parametrize("loss", LOSSES)
def test_tree_bounds_hold_at_node_limit(loss: str) -> None:
    X, y = load_wine(return_X_y=True)
    X, y = X[::3, :5], y[::3] if loss == "errors" else X[::3, 12]
    best = optimal_trees(X, y, SearchSpace(4, cuts=6), loss=loss)
    assert best.status == ("optimal",) * 4
    before = np.zeros(4)
    for node_limit in (1, 2, 5, 20, 100):
        stopped = optimal_trees(
            X, y, SearchSpace(4, cuts=6), loss=loss, limits=SolverLimits(max_nodes=node_limit)
        )
        slack = 1e-7 * best.upper[0]
        assert (stopped.lower <= best.upper + slack).all()
        assert (stopped.upper >= best.upper - slack).all()
        assert (stopped.lower >= before - slack).all()
        before = stopped.lower
        for status, gap in zip(stopped.status, stopped.gap, strict=True):
            assert (status == "optimal") == (gap == 0)


def test_trees_without_time_have_valid_bounds() -> None:
    X, y = load_iris(return_X_y=True)
    frontier = optimal_trees(X, y, SearchSpace(6, cuts=16), limits=SolverLimits(time_limit=0))
    assert frontier.lower[0] == frontier.upper[0] == 100
    assert frontier.lower[1] <= 50 <= frontier.upper[1]
    assert frontier.lower[-1] <= 4
    check_rules(frontier, X, y, np.ones(150))


@pytest.mark.parametrize("cuts", [4, 16, None])
def test_trees_beat_greedy_trees(cuts: int | None) -> None:
    X, y = load_iris(return_X_y=True)
    result = candidate_cuts(X, cuts)
    codes = np.column_stack(
        [np.searchsorted(result.thresholds[j], X[:, j], side="left") for j in range(4)]
    )
    frontier = optimal_trees(X, y, SearchSpace(4, cuts=result))
    for leaves, criterion in product((2, 3, 4), ("gini", "entropy")):
        greedy = DecisionTreeClassifier(max_leaf_nodes=leaves, criterion=criterion, random_state=0)
        errors = (greedy.fit(codes, y).predict(codes) != y).sum()
        assert frontier.upper[leaves - 1] <= errors


def test_tree_errors_equal_streed() -> None:
    """Compare with the results of pystreed 1.4.0 for the same 16 cuts per feature."""
    X, y = load_breast_cancer(return_X_y=True)
    frontier = optimal_trees(X, y, SearchSpace(3, cuts=16))
    assert frontier.upper.tolist() == [212, 47, 28]
    assert frontier.status == ("optimal",) * 3


def test_trees_accept_constant_tables() -> None:
    one = optimal_trees([[1.0]], ["a"], SearchSpace(2, cuts=16))
    assert one.upper.tolist() == [0, 0]
    flat = optimal_trees(np.zeros((4, 2)), [1, 1, 2, 3], SearchSpace(3, cuts=16), classes=[3, 2, 1])
    assert flat.upper.tolist() == flat.lower.tolist() == [2, 2, 2]
    assert flat.rules[2] is not None
    assert flat.rules[2].classes == (3, 2, 1)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"max_rules": 0}, "max_rules must be"),
        ({"max_rules": 10**9}, "max_rules must be an integer from 1 to 10000"),
        ({"loss": "mse"}, "loss must be one of"),
        ({"time_limit": -1}, "time_limit must be"),
        ({"max_nodes": 0}, "max_nodes must be"),
        ({"targets": [1, 0]}, "targets must hold one number for each of the 4 sizes"),
        ({"y": [1]}, "y must hold one value for each of the 3 rows"),
        ({"classes": [1]}, "classes must hold all labels of y, but it lacks 0"),
        ({"sample_weight": [1, 2]}, "sample_weight"),
        ({"loss": "squared_error", "y": [1.0, np.nan, 2.0]}, "y must"),
    ],
)
def test_trees_reject_invalid_parameters(changes: dict[str, Any], message: str) -> None:
    options: dict[str, Any] = {"X": [[1.0], [2.0], [3.0]], "y": [0, 1, 1]} | changes
    limits = {k: options.pop(k) for k in ("time_limit", "max_nodes") if k in options}
    max_rules = options.pop("max_rules", 4)
    with pytest.raises(ValueError, match=message):
        optimal_trees(**options, space=SearchSpace(max_rules), limits=SolverLimits(**limits))


def test_trees_of_equal_numbers_have_no_loss() -> None:
    rng = np.random.default_rng(0)
    for number in (0.1, 0.3, 1e5 / 3):
        for n_rows in range(2, 9):
            X, weights = rng.integers(0, 3, (n_rows, 2)).astype(float), rng.random(n_rows)
            y = np.full(n_rows, number)
            result = optimal_trees(
                X, y, SearchSpace(2, cuts=16), loss="squared_error", sample_weight=weights
            )
            assert result.upper.max() <= 1e-20 * number


@pytest.mark.parametrize("unit", [1e-300, 1e-165, 1e200])
def test_trees_scale_with_weights(unit: float) -> None:
    X, y = np.arange(4.0)[:, None], [1.0, 2.0, 4.0, 0.0]
    usual, scaled = (
        optimal_trees(
            X,
            y,
            SearchSpace(2, cuts=None),
            loss="squared_error",
            sample_weight=np.array([1, 2, 1, 1]) * factor,
        )
        for factor in (1.0, unit)
    )
    assert scaled.lower / unit == pytest.approx(usual.lower)
    assert scaled.upper / unit == pytest.approx(usual.upper)


def test_trees_reject_overflowing_squares() -> None:
    with pytest.raises(ValueError, match=r"y must lie within ±1e\+150"):
        optimal_trees([[0.0], [1.0]], [0.0, 1e200], loss="squared_error")


def test_trees_without_errors_have_no_loss() -> None:
    """The sum of ten weights 0.7 differs in its last bit with the order of the sums."""
    y = np.repeat(["no", "yes"], [10, 4])
    weights = np.repeat([0.7, 1.75], [10, 4])
    result = optimal_trees(
        np.arange(14.0)[:, None], y, SearchSpace(2, cuts=16), sample_weight=weights
    )
    assert result.lower[1] == result.upper[1] == 0


@pytest.mark.parametrize("loss", LOSSES)
def test_grown_trees_lie_between_greedy_and_optimal(loss: str) -> None:
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X = rng.integers(0, 9, (40, 3)).astype(float)
        y = (X @ rng.normal(size=3) + rng.normal(size=40)).round()
        if loss == "errors":
            y = (y > np.median(y)).astype(int) + (X[:, 0] == 4)
        weights = rng.integers(1, 4, 40).astype(float)
        options = {"loss": loss, "sample_weight": weights}
        trees = grow_trees(X, y, SearchSpace(4, cuts=None), **options)
        best = optimal_trees(X, y, SearchSpace(4, cuts=None), **options)
        assert [len(tree) for tree in trees] == sorted(len(tree) for tree in trees)
        losses = losses_of_partitions(X, y, trees, **options)
        for size, (n_leaves, value) in enumerate(losses, start=1):
            assert n_leaves <= size
            assert value >= best.upper[size - 1] * (1 - 1e-9)
        if loss == "errors":
            greedy = DecisionTreeClassifier(max_leaf_nodes=4, random_state=0)
            errors = weights[greedy.fit(X, y, weights).predict(X) != y].sum()
            assert losses[-1][1] <= errors
        again = grow_trees(X, y, SearchSpace(4, cuts=None), **options)
        assert list(map(str, again)) == list(map(str, trees))


def test_grown_trees_beat_greedy_trees_on_wine() -> None:
    X, y = load_wine(return_X_y=True)
    limits = SolverLimits(max_work=0.1)
    trees = grow_trees(X, y, SearchSpace(5, cuts=None), limits=limits)
    greedy = DecisionTreeClassifier(max_leaf_nodes=5, random_state=0).fit(X, y)
    errors = losses_of_partitions(X, y, trees)[-1][1]
    assert errors < (greedy.predict(X) != y).sum()


@pytest.mark.parametrize("loss", LOSSES)
def test_tree_bounds_hold_at_work_limit(loss: str) -> None:
    X, y = load_wine(return_X_y=True)
    best = optimal_trees(X[:, :5], y, SearchSpace(4, cuts=5), loss=loss)
    ended = set()
    for max_work in (0.0, 0.01, 0.05):
        limits = SolverLimits(max_work=max_work)
        stopped, again = (
            optimal_trees(X[:, :5], y, SearchSpace(4, cuts=5), loss=loss, limits=limits)
            for _ in range(2)
        )
        assert (stopped.lower <= best.upper + 1e-9).all()
        assert (stopped.upper >= best.upper - 1e-9).all()
        assert stopped.lower.tolist() == again.lower.tolist()
        assert list(map(str, stopped.rules)) == list(map(str, again.rules))
        ended |= set(stopped.status)
    assert "work_limit" in ended


def test_losses_of_partitions_agree_with_loop() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    y, weights = rng.integers(0, 3, 60), rng.random(60)
    rules = optimal_trees(X[:30], y[:30], SearchSpace(3, cuts=3)).rules[-1]
    assert rules is not None
    first_rules = rules.replace(rules=list(rules)[:2])  # rows of the third leaf have no rule
    expected = 0.0
    first = first_rules.assign(X)
    for part in np.unique(first):
        sums = np.bincount(y[first == part], weights[first == part])
        expected += sums.sum() - sums.max()
    ((n_parts, value),) = losses_of_partitions(X, y, [first_rules], sample_weight=weights)
    assert n_parts == 3
    assert value == pytest.approx(expected)
