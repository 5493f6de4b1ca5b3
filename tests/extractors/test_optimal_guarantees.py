"""Optimal extractors never have more training errors than trees and rules of the same size."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from skescore.black_boxes import CallableClassifier, CallableRegressor
from skescore.extractors import (
    CARTExtractor,
    OptimalListExtractor,
    OptimalTreeExtractor,
    TrepanExtractor,
)
from skescore.rules import AtLeast

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")  # fewer rules than classes


def make_problem(seed: int, *, task: str = "classification") -> tuple[pd.DataFrame, Any]:
    """Return a random small table and a black box with noisy predictions."""
    random = np.random.default_rng(seed)
    n_rows, n_features = int(random.integers(6, 50)), int(random.integers(1, 5))
    columns: dict[str, Any] = {}
    for j in range(n_features):
        kind = random.choice(["integers", "numbers", "categories"], p=[0.4, 0.4, 0.2])
        if kind == "integers":
            column = random.integers(0, 6, n_rows).astype(float)
        elif kind == "numbers":
            column = random.normal(size=n_rows) * 10.0 ** random.integers(-3, 4)
        else:
            column = random.choice(list("abcde"), n_rows).astype(object)
        if random.random() < 0.2:
            column[random.random(n_rows) < 0.2] = None if column.dtype == object else np.nan
        columns[f"x{j}"] = column
    table = pd.DataFrame(columns)
    table["row"] = np.arange(n_rows)  # rules do not use it
    ranks = np.column_stack([pd.factorize(table[c], sort=True)[0] for c in table.columns[:-1]])
    signal = (ranks @ random.normal(size=n_features)) + random.normal(size=n_rows)
    if task == "regression":
        answers = np.round(signal + (ranks[:, 0] > np.median(ranks[:, 0])) * 5, 3)
        box: Any = CallableRegressor(lambda rows: answers[rows["row"].to_numpy(dtype=int)])
        return table, box
    n_classes = int(random.integers(2, 5))
    labels = np.digitize(signal, np.quantile(signal, np.arange(1, n_classes) / n_classes))
    return table, CallableClassifier(
        lambda rows: labels[rows["row"].to_numpy(dtype=int)], classes=list(range(n_classes))
    )


def training_loss(extractor: Any, table: pd.DataFrame, box: Any) -> float:
    """Return the errors, or squared errors, of rules with respect to the black box."""
    difference = extractor.predict(table) - box.predict(table)
    return float(
        (difference**2).sum() if "Regressor" in type(box).__name__ else (difference != 0).sum()
    )


def check_guarantees(kind: str, task: str, seed: int) -> bool:
    """Compare with CART, Trepan and initial rules; return whether Trepan was comparable."""
    table, box = make_problem(seed, task=task)
    options: dict[str, Any] = {"features": [c for c in table.columns if c != "row"]}
    size = 2 + seed % 5
    extractors: dict[str, Any] = {
        "tree": OptimalTreeExtractor(box, max_leaf_nodes=size, max_work=0.05, **options),
        "list": OptimalListExtractor(box, max_rules=size, max_work=0.05, **options),
    }
    best = extractors[kind].fit(table)
    loss = float(best.frontier_.upper[-1])
    assert training_loss(best, table, box) == pytest.approx(loss, rel=1e-3)
    assert len(best.rules_) <= size
    cart = CARTExtractor(box, max_leaf_nodes=size, random_state=seed % 3, **options).fit(table)
    bound = training_loss(cart, table, box) * (1 + 1e-9)
    assert loss <= bound or (kind == "list" and "CART has a loss of" in best.status_), seed
    # A start with other rules: the better of both kinds for a smaller size.
    if size > 2:
        other = OptimalTreeExtractor(box, max_leaf_nodes=size - 1, max_work=0.05, **options)
        started = extractors[kind].set_params(start=other.fit(table)).fit(table)
        start_loss = float(other.frontier_.upper[-1]) * (1 + 1e-9)
        is_noted = kind == "list" and "has a loss of" in started.status_
        assert started.frontier_.upper[-1] <= start_loss or is_noted, seed
    if task == "regression" or kind == "list" or seed % 4:
        return False
    trepan = TrepanExtractor(
        box, max_leaf_nodes=size, min_sample=0, random_state=seed, **options
    ).fit(table)
    conditions = [c for rule in trepan.rules_ for c in rule.conditions]
    if any(isinstance(c, AtLeast) for c in conditions):
        return False
    started = extractors[kind].set_params(start=trepan, max_leaf_nodes=max(2, trepan.n_rules_))
    assert started.fit(table).frontier_.upper[-1] <= training_loss(trepan, table, box), seed
    return True


@pytest.mark.parametrize("task", ["classification", "regression"])
@pytest.mark.parametrize("kind", ["tree", "list"])
def test_optimal_rules_are_no_worse_than_others(kind: str, task: str) -> None:
    for seed in range(5):
        check_guarantees(kind, task, seed)


@pytest.mark.slow
@pytest.mark.parametrize("task", ["classification", "regression"])
@pytest.mark.parametrize("kind", ["tree", "list"])
def test_optimal_rules_are_no_worse_on_1000_tables(kind: str, task: str) -> None:
    n_comparable = sum(check_guarantees(kind, task, seed) for seed in range(100, 350))
    assert n_comparable >= 10 or (kind, task) != ("tree", "classification")


def least_errors(X: np.ndarray, y: np.ndarray, n_leaves: int) -> int:
    """Return the fewest errors of trees with at most `n_leaves` leaves by trying all of them."""
    best = len(y) - int(np.bincount(y).max(initial=0))
    if n_leaves == 1 or best == 0:
        return best
    for column in X.T:
        for threshold in np.unique(column)[:-1]:
            below = column <= threshold
            for n_left in range(1, n_leaves):
                left = least_errors(X[below], y[below], n_left)
                if left < best:
                    right = least_errors(X[~below], y[~below], n_leaves - n_left)
                    best = min(best, left + right)
    return best


@pytest.mark.parametrize("n_leaves", [2, 3, 4])
def test_optimal_tree_equals_enumeration(n_leaves: int) -> None:
    for seed in range(12):
        random = np.random.default_rng(seed)
        X = random.integers(0, 5, (12, 2)).astype(float)
        labels = random.integers(0, 3, (5, 5))
        box = CallableClassifier(
            lambda X, labels=labels: labels[X[:, 0].astype(int), X[:, 1].astype(int)],
            classes=[0, 1, 2],
        )
        y = box.predict(X)
        tree = OptimalTreeExtractor(box, max_leaf_nodes=n_leaves, max_work=None).fit(X)
        assert tree.status_ == "optimal over all cuts"
        assert (tree.predict(X) != y).sum() == least_errors(X, y, n_leaves)
