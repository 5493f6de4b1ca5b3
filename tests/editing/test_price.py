"""Prices of constraints equal those of the enumeration of all trees."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris
from sklearn.tree import DecisionTreeClassifier

from skescore.constraints import Constraints, violations
from skescore.editing import price
from skescore.optimal import Cuts, SearchSpace, SolverLimits
from skescore.scorers import SCORE_SPECS, make_ice_scorer

LIMITS = SolverLimits(time_limit=60)
FIRE, ICE = SCORE_SPECS["fire"], SCORE_SPECS["ice"]

#: Loss of labels, predictions and a number of leaves.
Loss = Callable[[np.ndarray, np.ndarray, int], float]
#: A leaf: the results of the tests on its path.
Path = tuple[tuple[int, bool], ...]


def all_trees(n_tests: int, n_leaves: int) -> Iterator[tuple[Path, ...]]:
    """Yield the paths to the leaves of every tree with exactly so many leaves."""
    if n_leaves == 1:
        yield ((),)
        return
    for test in range(n_tests):
        for n_left in range(1, n_leaves):
            for left, right in itertools.product(
                list(all_trees(n_tests, n_left)), list(all_trees(n_tests, n_leaves - n_left))
            ):
                yield (
                    *(((test, True), *path) for path in left),
                    *(((test, False), *path) for path in right),
                )


def fire(y: np.ndarray, said: np.ndarray, size: int) -> float:
    return float(FIRE.value((y != said).mean(), size, 1.0, {"psi": 1.0}))


def minus_ice(y: np.ndarray, said: np.ndarray, size: int) -> float:
    f1 = sum(
        (y == c).mean() * 2 * ((y == c) & (said == c)).sum() / ((y == c).sum() + (said == c).sum())
        for c in set(y)
    )
    return -float(ICE.value(f1, size, 1.0, dict.fromkeys(ICE.weight_names, 1.0)))


class Oracle:
    """Small tables of integers on which all trees are compared one by one."""

    def __init__(self, X: pd.DataFrame, y: np.ndarray) -> None:
        self.X, self.y = X, y
        self.rows = X.to_numpy().tolist()
        n_values = int(X.to_numpy().max()) + 1
        self.cells = list(itertools.product(range(n_values), repeat=X.shape[1]))
        self.tests = [(j, cut + 0.5) for j in range(X.shape[1]) for cut in range(n_values - 1)]
        thresholds = {j: tuple(cut for k, cut in self.tests if k == j) for j in range(X.shape[1])}
        self.cuts = Cuts(X.shape[1], thresholds, {})

    def reaches(self, path: Path, row: Any) -> bool:
        return all(
            (row[self.tests[test][0]] <= self.tests[test][1]) == holds for test, holds in path
        )

    def decide(self, tree: tuple[Path, ...], outputs: tuple[str, ...], row: Any) -> str:
        return next(o for path, o in zip(tree, outputs, strict=True) if self.reaches(path, row))

    def satisfies(self, tree: Any, outputs: tuple[str, ...], wish: dict[str, Any]) -> bool:
        names = list(self.X)
        used = {names[self.tests[test][0]] for path in tree for test, _ in path}
        if used & set(wish.get("forbidden", ())) or set(wish.get("required", ())) - used:
            return False
        if len(tree) > wish.get("max_rules", 9):
            return False
        counts = [sum(self.reaches(path, r) for r in self.rows) for path in tree]
        if min(counts) < wish.get("min_support", 0):
            return False
        bounds = wish.get("thresholds", {}).get("a")
        cuts = {self.tests[t][1] for p in tree for t, _ in p if names[self.tests[t][0]] == "a"}
        if bounds is not None and cuts - set(bounds):
            return False
        for name, direction in wish.get("monotone", {}).items():
            j = names.index(name)
            decisions = {cell: self.decide(tree, outputs, cell) for cell in self.cells}
            for low, high in itertools.product(self.cells, repeat=2):
                if low[j] < high[j] and low[:j] + low[j + 1 :] == high[:j] + high[j + 1 :]:
                    before, after = decisions[low], decisions[high]
                    if (before > after) if direction == "+" else (before < after):
                        return False
        return True

    def best(self, n_leaves: int, wish: dict[str, Any], loss: Loss) -> float:
        """Return the least loss of all trees that satisfy a wish; infinite if there are none."""
        classes = sorted(set(self.y))
        best = np.inf
        for size in range(1, n_leaves + 1):
            for tree in all_trees(len(self.tests), size):
                if not all(any(self.reaches(path, r) for r in self.rows) for path in tree):
                    continue
                for outputs in itertools.product(classes, repeat=size):
                    predictions = np.array([self.decide(tree, outputs, r) for r in self.rows])
                    value = loss(self.y, predictions, size)
                    if value < best and self.satisfies(tree, outputs, wish):
                        best = value
        return best


def tiny_case(seed: int) -> tuple[Oracle, dict[str, Any]]:
    random = np.random.default_rng(seed)
    n_features, n_values = (3, 2) if seed % 2 else (2, 3)
    n_rows = int(random.integers(6, 14))
    X = pd.DataFrame(random.integers(0, n_values, (n_rows, n_features)).astype(float))
    X.columns = list("abc")[:n_features]
    X.iloc[0], X.iloc[1] = 0.0, float(n_values - 1)
    signal = X["a"] + (1 - X["b"]) + random.normal(0, 0.7, len(X)) > 1
    y = np.where(signal, "yes", "no")
    if len(set(y)) < 2:
        y[0] = "yes" if y[0] == "no" else "no"
    last = X.columns[-1]
    wishes: list[dict[str, Any]] = [
        {"forbidden": [str(random.choice(list(X)))]},
        {"required": [last]},
        {"monotone": {"a": str(random.choice(["+", "-"]))}},
        {"monotone": {"a": "+", "b": "+"}},
        {"max_rules": 2},
        {"min_support": 3},
        {"monotone": {"b": "+"}, "forbidden": ["a"]},
        {"thresholds": {"a": [0.5]}},
    ]
    return Oracle(X, y), wishes[int(random.integers(len(wishes)))]


def check_tiny_case(seed: int) -> bool:
    """Compare with all trees; return whether the constraint has a price."""
    oracle, wish = tiny_case(seed)
    space = SearchSpace(cuts=oracle.cuts)
    constraints = Constraints(**wish)
    result = price(
        constraints, oracle.X, oracle.y, max_rules=3, scoring="fire", space=space, limits=LIMITS
    )
    expected = oracle.best(3, wish, fire) - oracle.best(3, {}, fire)
    if not np.isfinite(expected):
        assert result.rules is None
        assert np.isinf(result.upper)
        return False
    assert result.lower == pytest.approx(expected, abs=1e-9), (seed, wish)
    assert result.upper == pytest.approx(expected, abs=1e-9), (seed, wish)
    assert result.rules is not None
    rules = result.rules.replace(domain=result.rules.domain_around(oracle.X))
    assert not violations(rules, constraints, oracle.X, oracle.y)
    return expected > 1e-9


@pytest.mark.slow
def test_price_equals_all_trees() -> None:
    assert sum(check_tiny_case(seed) for seed in range(20)) >= 3


@pytest.mark.slow
def test_price_equals_all_trees_500_times() -> None:
    assert sum(check_tiny_case(seed) for seed in range(20, 520)) > 100


def check_f1_case(seed: int) -> bool:
    """Compare ICE, which uses the weighted F1, with all trees."""
    oracle, wish = tiny_case(seed)
    space = SearchSpace(cuts=oracle.cuts)
    result = price(
        Constraints(**wish), oracle.X, oracle.y, max_rules=3, space=space, tolerance=1e-6
    )
    expected = oracle.best(3, wish, minus_ice) - oracle.best(3, {}, minus_ice)
    if not np.isfinite(expected):
        return False
    assert result.lower - 1e-5 <= expected <= result.upper + 1e-5
    assert result.width <= 1e-4
    return expected > 1e-4


def test_price_of_f1_equals_all_trees() -> None:
    assert sum(check_f1_case(seed) for seed in (0, 2)) == 2


@pytest.mark.slow
def test_price_of_f1_equals_all_trees_40_times() -> None:
    assert sum(check_f1_case(seed) for seed in range(10, 50)) >= 5


def test_price_of_lists_is_an_interval() -> None:
    X, y = load_iris(return_X_y=True, as_frame=True)
    X, y = X.iloc[::3, 2:], y[::3].astype(str)
    free = price(Constraints(max_rules=3), X, y, kind="list", max_rules=3, limits=LIMITS)
    assert (free.lower, free.upper) == (0.0, 0.0)
    forbidden = Constraints(forbidden=[X.columns[1]])
    result = price(forbidden, X, y, kind="list", max_rules=3, limits=LIMITS)
    assert 0 <= result.lower <= result.upper < 0.05
    assert result.rules is not None
    assert result.rules.used_features == {0}
    assert "any list of at most 3 rules" in str(result)
    monotone = Constraints(monotone={X.columns[0]: "+"}, class_order=["0", "1", "2"])
    result = price(monotone, X, y, kind="list", max_rules=3, limits=LIMITS)
    assert 0 <= result.lower <= result.upper


def test_price_of_regression_uses_isotonic_outputs() -> None:
    random = np.random.default_rng(0)
    X = pd.DataFrame({"x": np.repeat(np.arange(3.0), 10)})
    y = np.array([0.0, 3.0, 1.0])[X["x"].astype(int)] + random.normal(0, 0.01, 30)
    wish = Constraints(monotone={"x": "+"})
    result = price(wish, X, y, max_rules=4, limits=LIMITS)
    assert result.rules is not None
    means = [y[X["x"] == value].mean() for value in range(3)]
    pooled = [means[0], (means[1] + means[2]) / 2, (means[1] + means[2]) / 2]
    assert result.rules.predict([[0.0], [1.0], [2.0]]) == pytest.approx(pooled)
    assert result.width == pytest.approx(0, abs=1e-9)
    assert result.lower > 0.04


def test_price_is_exact_for_ice_of_accuracy() -> None:
    X, y = load_iris(return_X_y=True, as_frame=True)
    wish = Constraints(forbidden=["petal length (cm)", "petal width (cm)"])
    scorer = make_ice_scorer(performance="accuracy")
    exact = price(wish, X, y.astype(str), max_rules=3, scoring=scorer, limits=LIMITS)
    assert exact.width == pytest.approx(0, abs=1e-12)
    assert exact.rules is not None
    assert exact.free_rules is not None
    errors = [
        (rules.predict(X) != y.astype(str)).mean() for rules in (exact.free_rules, exact.rules)
    ]
    assert errors[0] < errors[1]


def test_price_rejects_unusable_constraints() -> None:
    X, y = pd.DataFrame({"a": [0.0, 1.0, 2.0]}), np.array(["x", "y", "x"])
    with pytest.raises(ValueError, match="feature 'b'"):
        price(Constraints(forbidden=["b"]), X, y)
    with pytest.raises(TypeError, match="constraints"):
        price({"forbidden": ["a"]}, X, y)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="kind"):
        price(Constraints(forbidden=["a"]), X, y, kind="forest")


def test_price_accepts_arrow_tables() -> None:
    arrow = pytest.importorskip("pyarrow")
    X = pd.DataFrame({"x": [1.0, 2.0, 3.0, 4.0] * 3, "c": ["u", "v", "w", "u"] * 3})
    y = np.where(X["x"] > 2, "yes", "no")
    wish = Constraints(forbidden=["x"])
    table = arrow.Table.from_pandas(X, preserve_index=False)
    costs = [price(wish, rows, y, max_rules=2) for rows in (table, X)]
    assert (costs[0].lower, costs[0].upper) == (costs[1].lower, costs[1].upper)


def test_price_accepts_column_without_values() -> None:
    X = pd.DataFrame({"x": [1.0, 2.0, 3.0, 4.0] * 3, "z": np.nan})
    y = np.where(X["x"] > 2, "yes", "no")
    wish = Constraints(forbidden=["x"])
    costs = [price(wish, rows, y, max_rules=2) for rows in (X, X.assign(z=1.0))]
    assert (costs[0].lower, costs[0].upper) == (costs[1].lower, costs[1].upper)


def test_price_is_not_infinite_without_proof() -> None:
    X = pd.DataFrame({"a": np.arange(8.0), "b": np.arange(8.0) % 2})
    y = np.where(X["a"] < 4, "no", "yes")
    # The list "a ≤ 3.5: no; b ≤ 0.5: yes; yes" satisfies the constraint, but is not searched.
    result = price(Constraints(required=["b"]), X, y, kind="list", max_rules=3, limits=LIMITS)
    assert (result.rules, result.lower, result.upper) == (None, 0.0, np.inf)


@pytest.mark.parametrize("is_interval", [True, False])
def test_price_counts_interval_as_one_condition(is_interval: bool) -> None:
    X = pd.DataFrame({"a": np.arange(8.0), "b": np.arange(8.0) % 2})
    holds = (X["a"] > 2.5) & ((X["a"] <= 4.5) if is_interval else (X["b"] > 0.5))
    limit, y = Constraints(max_conditions=1), np.where(holds, "yes", "no")
    result = price(limit, X, y, kind="list", max_rules=2, scoring="fire", limits=LIMITS)
    assert result.lower == 0.0
    assert (result.upper == 0.0) is is_interval
    assert result.rules is not None
    assert not violations(result.rules, limit)


@pytest.mark.parametrize("kind", ["tree", "list"])
def test_price_joins_overlapping_groups_of_categories(kind: str) -> None:
    X = pd.DataFrame({"color": list("abcd") * 5})
    y = np.where(X["color"].isin(["a", "b"]), "yes", "no")
    constraints = Constraints(together={"color": [["a", "b"], ["b", "c"]]})
    cost = price(constraints, X, y, kind=kind, scoring="fire")
    assert cost.rules is not None
    assert violations(cost.rules, constraints, X, y) == []
    assert (cost.lower, cost.upper) == (0.5, 0.5)


def test_price_of_a_classifier_with_float_labels_is_that_of_classes() -> None:
    X = pd.DataFrame({"a": np.arange(20.0), "b": np.arange(20) % 3})
    constraints = Constraints(forbidden=["a"])
    y = (X["a"] > 12).astype(float)
    tree = DecisionTreeClassifier(random_state=0).fit(X, y)
    cost, of_labels = (price(constraints, X, one, scoring="fire") for one in (tree, y.astype(int)))
    assert (cost.lower, cost.upper) == (of_labels.lower, of_labels.upper)
    assert cost.rules is not None
    assert cost.rules.task == "classification"


def test_price_reports_missing_labels_and_accepts_labels_of_several_types() -> None:
    X = pd.DataFrame({"x": [1.0, 2.0, 3.0, 4.0]})
    forbidden = Constraints(forbidden=["x"])
    missing = (
        pd.Series(["a", None, "b", "b"]),
        pd.Series([1, None, 2, 2], dtype="Int64"),
        pd.Series([True, None, False, False], dtype="boolean"),
        pd.Series([1.0, np.nan, 2.0, 2.0]),
    )
    for y in missing:
        with pytest.raises(ValueError, match="y must hold a label in every row, but row 1 has"):
            price(forbidden, X, y, max_rules=2, scoring="fire")
    mixed = pd.Series(["a", "a", 1, 1], dtype=object)
    assert price(forbidden, X, mixed, max_rules=2, scoring="fire").lower == pytest.approx(0.5)
