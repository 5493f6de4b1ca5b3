"""Outputs of rules under an order are optimal: compared with the enumeration of all outputs."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skescore.constraints._relabel import isotonic_values, ordered_labels

relations = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), max_size=6)


@given(
    costs=st.lists(st.lists(st.integers(0, 5), min_size=3, max_size=3), min_size=5, max_size=5),
    relation=relations,
)
def test_ordered_labels_are_the_cheapest(
    costs: list[list[int]], relation: list[tuple[int, int]]
) -> None:
    array = np.array(costs, dtype=float)
    ranks = ordered_labels(array, relation)
    assert all(ranks[a] <= ranks[b] for a, b in relation)
    cheapest = min(
        sum(array[i, rank] for i, rank in enumerate(labels))
        for labels in itertools.product(range(3), repeat=5)
        if all(labels[a] <= labels[b] for a, b in relation)
    )
    assert sum(array[i, rank] for i, rank in enumerate(ranks)) == cheapest


@given(
    values=st.lists(st.integers(0, 6), min_size=5, max_size=5),
    weights=st.lists(st.integers(1, 4), min_size=5, max_size=5),
    relation=relations,
)
def test_isotonic_values_are_optimal(
    values: list[int], weights: list[int], relation: list[tuple[int, int]]
) -> None:
    from scipy.optimize import minimize

    goal, weight = np.array(values, dtype=float), np.array(weights, dtype=float)
    fitted = isotonic_values(goal, weight, relation, {})
    assert all(fitted[a] <= fitted[b] + 1e-9 for a, b in relation)
    reference = minimize(
        lambda v: weight @ (v - goal) ** 2,
        np.full(5, goal.mean()),
        jac=lambda v: 2 * weight * (v - goal),
        constraints=[{"type": "ineq", "fun": lambda v, a=a, b=b: v[b] - v[a]} for a, b in relation],
        method="SLSQP",
        options={"maxiter": 200, "ftol": 1e-12},
    )
    assert weight @ (fitted - goal) ** 2 == pytest.approx(reference.fun, abs=1e-4)


def test_fixed_values_bound_the_others() -> None:
    fitted = isotonic_values(
        np.array([9.0, 2.0, 0.0, 1.0]), np.ones(4), [(0, 1), (1, 2), (2, 3)], {1: 2.0}
    )
    assert fitted.tolist() == pytest.approx([2.0, 2.0, 2.0, 2.0], abs=1e-6)
