"""Shapley values of Boolean games, against the average over all orders."""

from __future__ import annotations

import math
from itertools import permutations, product

import numpy as np
import pytest
from numpy.typing import NDArray

from skescore.attribution import Formula, random_formula
from skescore.reproduce._brex_methods import (
    completion_shapley,
    kleene_shapley,
    sampled_shapley,
    shapley_of_tables,
)

XOR = Formula.parse("(x1 ^ x3) & x4", n_inputs=5)


def by_orders(worth: NDArray[np.float64], n_players: int) -> list[float]:
    """What every player adds, in the mean over all orders of entering."""
    total = [0.0] * n_players
    for order in permutations(range(n_players)):
        coalition = 0
        for player in order:
            total[player] += worth[coalition | 1 << player] - worth[coalition]
            coalition |= 1 << player
    return [value / math.factorial(n_players) for value in total]


def test_a_table_gives_the_mean_over_all_orders() -> None:
    worth = np.random.default_rng(0).normal(size=(6, 16))
    values = shapley_of_tables(worth)
    for game in range(len(worth)):
        assert values[game] == pytest.approx(by_orders(worth[game], 4), abs=1e-12)
    assert values.sum(axis=1) == pytest.approx(worth[:, -1] - worth[:, 0])


def test_a_known_game() -> None:
    # Two pairs of gloves: one left glove, two right ones (Shapley 1953: 2/3, 1/6, 1/6).
    worth = np.array([[0, 0, 0, 1, 0, 1, 0, 1]], dtype=float)
    assert shapley_of_tables(worth)[0] == pytest.approx([2 / 3, 1 / 6, 1 / 6])


def test_columns_must_be_all_coalitions() -> None:
    with pytest.raises(ValueError, match=r"2\*\*n coalitions, got 6 columns"):
        shapley_of_tables(np.zeros((1, 6)))


@pytest.mark.parametrize("formula", [XOR, random_formula(4, n_inputs=5, random_state=3)], ids=str)
def test_games_of_formulae_by_asking_the_formula(formula: Formula) -> None:
    n = formula.n_inputs
    X = np.array(list(product([False, True], repeat=n)))[::3]
    kleene, completed = kleene_shapley(formula, X), completion_shapley(formula, X)
    everything = np.array(list(product([False, True], repeat=n)))
    for row, x in enumerate(X):
        sign = 1 if formula.evaluate(x[None])[0] else -1
        worths = np.zeros((2, 1 << n))
        for coalition in range(1 << n):
            present = (coalition >> np.arange(n) & 1).astype(bool)
            worths[0, coalition] = sign * formula.kleene(x[None], ~present[None])[0]
            agreeing = everything[(everything[:, present] == x[present]).all(axis=1)]
            worths[1, coalition] = np.mean((formula.evaluate(agreeing) * 2 - 1) == sign)
        assert kleene[row] == pytest.approx(by_orders(worths[0], n), abs=1e-12)
        assert completed[row] == pytest.approx(by_orders(worths[1], n), abs=1e-12)


def test_samples_average_to_the_exact_values() -> None:
    X = np.array([[1, 0, 0, 1, 1], [0, 0, 1, 0, 1]], dtype=bool)
    coded = np.where(X, 1, -1).astype(np.int8)
    signs = np.where(XOR.evaluate(X), 1.0, -1.0)
    asked = 0

    def worth(present: NDArray[np.bool_], rows: NDArray[np.intp]) -> NDArray[np.float64]:
        nonlocal asked
        asked += len(present)
        return XOR.evaluate_kleene(coded[rows] * present) * signs[rows]

    generator = np.random.default_rng(1)
    values, queries = sampled_shapley(worth, 2, 5, n_pairs=400, generator=generator)
    assert values == pytest.approx(kleene_shapley(XOR, X), abs=0.06)
    # Each walk sums to the worth of all players less that of none, so that all of them do.
    assert values.sum(axis=1) == pytest.approx([1.0, 1.0])
    assert queries == 2 + 2 * 400 * 4
    assert asked == 2 * 2 * 400 * 6
