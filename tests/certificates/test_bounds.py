"""Compare the bound of the weighted F1 with all confusion matrices."""

from __future__ import annotations

from fractions import Fraction
from functools import cache, partial
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import f1_score

from skescore.certificates import bound_weighted_f1
from skescore.certificates._check import (
    Budget,
    Search,
    _enumerate_rules,
    _list_premises,
    largest_f1,
)


def best_of_all(y: list[int], n_classes: int) -> dict[tuple[int, int], float]:
    """Return the best weighted F1 by the errors and the number of predicted classes."""
    best: dict[tuple[int, int], float] = {}
    for predicted in product(range(n_classes), repeat=len(y)):
        errors = sum(a != b for a, b in zip(y, predicted, strict=True))
        key = errors, len(set(predicted))
        value = f1_of(y, predicted)
        best[key] = max(best.get(key, 0.0), value)
    return best


def f1_of(y: list[int], predicted: tuple[int, ...]) -> float:
    total = 0.0
    for k in set(y):
        hits = sum(a == b == k for a, b in zip(y, predicted, strict=True))
        total += y.count(k) * 2 * hits / (y.count(k) + predicted.count(k))
    return total / len(y)


@pytest.mark.parametrize("y", [[0, 0, 1, 1, 1, 2], [0, 1, 1, 1, 1, 1, 1], [0, 0, 0, 1, 1, 2, 2]])
def test_f1_bound_covers_all_predictions(y: list[int]) -> None:
    n_classes = max(y) + 1
    counts = np.bincount(y).tolist()
    best = best_of_all(y, n_classes).items()
    for least_errors in range(len(y) + 1):
        for class_limit in range(1, n_classes + 1):
            bound = bound_weighted_f1(counts, least_errors, class_limit)
            for (errors, n_predicted), value in best:
                if errors >= least_errors and n_predicted <= class_limit:
                    assert value <= bound + 1e-12
        assert bound_weighted_f1(counts, least_errors) == bound


@pytest.mark.parametrize("y", [[0] * 4 + [1] * 5, [0] * 7 + [1] * 2, [0, 0, 1, 1, 1, 2, 2, 2]])
def test_f1_bound_is_nearly_tight(y: list[int]) -> None:
    """With two classes the bound is exact; with three, errors can be divided among classes."""
    n_classes = max(y) + 1
    best: dict[int, float] = {}
    for (errors, _), value in best_of_all(y, n_classes).items():
        best[errors] = max(best.get(errors, 0.0), value)
    bounds = [bound_weighted_f1(np.bincount(y).tolist(), errors) for errors in sorted(best)]
    slack = np.array(bounds) - [best[errors] for errors in sorted(best)]
    assert (slack >= -1e-12).all()
    assert slack[:3].max() < (0.01 if n_classes == 2 else 0.04)


def test_reference_f1_equals_scikit_learn() -> None:
    y, predicted = [0, 0, 1, 2, 2], (0, 1, 1, 1, 2)
    assert f1_of(y, predicted) == pytest.approx(f1_score(y, predicted, average="weighted"))


def test_f1_bound_of_one_class_or_no_errors_is_exact() -> None:
    # Only the first class is predicted, with F1 2·60/(60 + 100) and weight 0.6.
    assert bound_weighted_f1([60, 40], 0, max_classes=1) == pytest.approx(0.6 * 120 / 160)
    assert bound_weighted_f1([60, 40, 0], 0) == 1
    assert bound_weighted_f1([], 0) == 1


@pytest.mark.parametrize("unit", [1e-300, 1e-165, 1e155, 1e305])
def test_f1_bounds_do_not_depend_on_unit(unit: float) -> None:
    weights = [50.0, 40.0, 30.0]
    scaled = [weight * unit for weight in weights]
    budget = Budget(None, 2**30)
    assert bound_weighted_f1(scaled, 6 * unit) == pytest.approx(bound_weighted_f1(weights, 6))
    usual = largest_f1(weights, 6, 3, budget)
    assert largest_f1(scaled, 6 * unit, 3, budget) == pytest.approx(usual)
    assert bound_weighted_f1([5e-324, 1e308], 1e308) == 0


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.floats(0.5, 100), min_size=2, max_size=6),
    st.floats(0, 1),
    st.floats(0, 1),
)
def test_f1_bound_decreases_with_errors(weights: list[float], one: float, other: float) -> None:
    few, many = sorted((one * sum(weights), other * sum(weights)))
    assert bound_weighted_f1(weights, many) <= bound_weighted_f1(weights, few) + 1e-9


def test_f1_bound_of_many_classes_is_valid() -> None:
    weights = np.arange(1, 31)
    assert bound_weighted_f1(weights, 10, 15) <= 1
    # If 15 of 30 classes are predicted, at least the smallest 15 are missed: 120 of 465 rows.
    assert 0.7 < bound_weighted_f1(weights, 0, 15) < 1 - 120 / 465
    assert bound_weighted_f1(weights, 400, 15) <= bound_weighted_f1(weights, 120, 15)


def test_f1_bound_uses_largest_classes_of_many() -> None:
    """Try all sets of predicted classes and all classes of the false alarms."""
    rng = np.random.default_rng(0)
    weights = rng.integers(1, 30, 6)
    for predicted in combinations(range(6), 3):
        dropped = weights.sum() - weights[list(predicted)].sum()
        for sink in predicted:
            missed = int(rng.choice([k for k in predicted if k != sink]))
            n_missed = int(rng.integers(0, weights[missed] + 1))
            hits = np.where(np.isin(range(6), predicted), weights, 0)
            hits[missed] -= n_missed
            false_alarms = np.where(np.arange(6) == sink, dropped + n_missed, 0)
            f1 = (weights * 2 * hits / (weights + hits + false_alarms)).sum() / weights.sum()
            assert f1 <= bound_weighted_f1(weights, float(dropped + n_missed), 3) + 1e-9
    # Three classes have no errors; the fourth class gets all other rows.
    assert bound_weighted_f1([10] * 8, 40, 4) == pytest.approx((3 + 1 / 3) / 8)


def test_f1_bound_of_even_classes_is_tight() -> None:
    assert bound_weighted_f1([50, 50], 10) == pytest.approx(0.9, abs=0.005)


@pytest.mark.parametrize("weights", [[1.0, -2.0], [1.0, float("nan")], [[1.0, 2.0]]])
def test_f1_bound_rejects_invalid_weights(weights: list[float]) -> None:
    with pytest.raises(ValueError, match=r"class_weights must be finite numbers of 0 or more"):
        bound_weighted_f1(weights, 0)


@pytest.mark.parametrize("is_list", [False, True])
@pytest.mark.parametrize("loss", ["errors", "squared_error", "absolute_error"])
def test_search_of_checker_equals_enumeration(loss: str, is_list: bool) -> None:
    """Rounded weights must neither end the search too early nor keep it from ending."""
    rng = np.random.default_rng(0)
    for _ in range(8):
        y = rng.integers(0, 3, 12) if loss == "errors" else rng.normal(size=12).round(1)
        weights = rng.choice([0.1, 0.3, 0.7], 12)
        matrix = rng.random((12, 5)) < 0.5
        splits = [sum(1 << int(i) for i in np.flatnonzero(column)) for column in matrix.T]
        if is_list:
            splits = _list_premises(splits, 2**12 - 1, 2, Budget(60, 2**30))
            bits = [[premise >> i & 1 for premise in splits] for i in range(12)]
            matrix = np.array(bits, dtype=bool)
        cost = cache(partial(loss_of_constant, y, weights, loss))
        enumerated = _enumerate_rules(splits, is_list, cost, Budget(60, 2**30))
        for size in (1, 2, 3, 4):
            least = float(enumerated(2**12 - 1, size))
            search = Search(matrix, y, weights, loss, None, Budget(60, 2**30), is_list)
            for share in (0.5, 1, 1 + 1e-9, 2):
                bound = float(search.exact_bound(size, Fraction(least * share)))
                assert min(least, least * share) - 1e-9 <= bound <= least + 1e-12


def loss_of_constant(y: np.ndarray, weights: np.ndarray, loss: str, bits: int) -> Fraction:
    """Return the loss of the best constant for a set of rows."""
    rows = [i for i in range(len(y)) if bits >> i & 1]
    y, weights = y[rows], weights[rows]
    if loss == "errors":
        return Fraction(min(weights[y != label].sum() for label in np.unique(y)))
    if loss == "squared_error":
        return Fraction((weights * (y - np.average(y, weights=weights)) ** 2).sum())
    return Fraction(min((weights * np.abs(y - value)).sum() for value in y))
