"""Prices of constraints equal those of all trees, one by one."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest

from skescore.constraints import Constraints, violations
from skescore.editing import price
from skescore.optimal import Cuts, SearchSpace, SolverLimits
from skescore.scorers import SCORE_SPECS

LIMITS = SolverLimits(time_limit=60)
FIRE = SCORE_SPECS["fire"]

#: A leaf: for each test on the way whether it holds.
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


class Oracle:
    """Small tables whose features have two values, 0 and 1, so that a tree is a truth table."""

    def __init__(self, X: pd.DataFrame, y: np.ndarray) -> None:
        self.X, self.y = X, y
        self.cells = list(itertools.product((0, 1), repeat=X.shape[1]))

    def decide(self, tree: tuple[Path, ...], outputs: tuple[str, ...], row: Any) -> str:
        for path, output in zip(tree, outputs, strict=True):
            if all((row[test] == 0) == holds for test, holds in path):
                return output
        raise AssertionError

    def satisfies(self, tree: Any, outputs: tuple[str, ...], wish: dict[str, Any]) -> bool:
        used = {test for path in tree for test, _ in path}
        names = list(self.X)
        if any(names.index(name) in used for name in wish.get("forbidden", ())):
            return False
        if any(names.index(name) not in used for name in wish.get("required", ())):
            return False
        if len(tree) > wish.get("max_rules", 9):
            return False
        rows = self.X.to_numpy().tolist()
        if "min_support" in wish:
            counts = [sum(all((r[t] == 0) == h for t, h in path) for r in rows) for path in tree]
            if min(counts) < wish["min_support"]:
                return False
        for name, direction in wish.get("monotone", {}).items():
            j = names.index(name)
            for cell in self.cells:
                if cell[j] == 0:
                    above = (*cell[:j], 1, *cell[j + 1 :])
                    low, high = (self.decide(tree, outputs, c) for c in (cell, above))
                    if (low > high) if direction == "+" else (low < high):
                        return False
        return True

    def best(self, n_leaves: int, wish: dict[str, Any]) -> float:
        """Return the least FiRe of all trees that satisfy a wish; infinite if there are none."""
        classes = sorted(set(self.y))
        rows = self.X.to_numpy().tolist()
        best = np.inf
        for size in range(1, n_leaves + 1):
            for tree in all_trees(self.X.shape[1], size):
                masks = [[all((r[t] == 0) == h for t, h in path) for r in rows] for path in tree]
                if not all(any(mask) for mask in masks):
                    continue
                for outputs in itertools.product(classes, repeat=size):
                    if not self.satisfies(tree, outputs, wish):
                        continue
                    errors = sum(
                        self.decide(tree, outputs, r) != label
                        for r, label in zip(rows, self.y, strict=True)
                    )
                    value = FIRE.value(errors / len(rows), size, 1.0, {"psi": 1.0})
                    best = min(best, float(value))
        return best


def tiny_case(seed: int) -> tuple[Oracle, dict[str, Any]]:
    random = np.random.default_rng(seed)
    X = pd.DataFrame(random.integers(0, 2, (int(random.integers(6, 14)), 3)).astype(float))
    X.columns = ["a", "b", "c"]
    y = np.array(["no", "yes"])[
        (X["a"] + (1 - X["b"]) + random.normal(0, 0.7, len(X)) > 1).to_numpy().astype(int)
    ]
    if len(set(y)) < 2:
        y[0] = "yes" if y[0] == "no" else "no"
    wishes: list[dict[str, Any]] = [
        {"forbidden": [str(random.choice(list("abc")))]},
        {"required": ["c"]},
        {"monotone": {"a": str(random.choice(["+", "-"]))}},
        {"monotone": {"a": "+", "b": "+"}},
        {"max_rules": 2},
        {"min_support": 3},
        {"monotone": {"b": "+"}, "forbidden": ["c"]},
    ]
    return Oracle(X, y), wishes[int(random.integers(len(wishes)))]


def check_tiny_case(seed: int) -> bool:
    """Compare with all trees; return whether the constraint has a price."""
    oracle, wish = tiny_case(seed)
    space = SearchSpace(cuts=Cuts(3, {0: (0.5,), 1: (0.5,), 2: (0.5,)}, {}))
    result = price(
        Constraints(**wish),
        oracle.X,
        oracle.y,
        max_rules=3,
        scoring="fire",
        space=space,
        limits=LIMITS,
    )
    expected = oracle.best(3, wish) - oracle.best(3, {})
    if not np.isfinite(expected):
        assert result.rules is None
        assert np.isinf(result.upper)
        return False
    assert result.lower == pytest.approx(expected, abs=1e-9), (seed, wish)
    assert result.upper == pytest.approx(expected, abs=1e-9), (seed, wish)
    assert result.rules is not None
    domain = result.rules.domain_around(oracle.X)
    rules = result.rules.replace(domain=domain)
    assert not violations(rules, Constraints(**wish), oracle.X, oracle.y)
    return expected > 1e-9


def test_price_equals_all_trees() -> None:
    assert sum(check_tiny_case(seed) for seed in range(20)) >= 3


@pytest.mark.slow
def test_price_equals_all_trees_500_times() -> None:
    assert sum(check_tiny_case(seed) for seed in range(20, 520)) > 100
