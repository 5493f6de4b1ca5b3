"""Shapley values of small games: exact ones from the worth of all coalitions, and sampled ones."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from skescore.attribution._formula import Formula

Floats = NDArray[np.float64]

#: Rows of a formula's inputs evaluated at a time.
_BATCH = 1 << 18
#: Players of a game whose coalitions are all looked at.
MOST_PLAYERS = 16


def shapley_of_tables(worth: Floats) -> Floats:
    """Compute exact Shapley values of games whose worths are known for every coalition.

    Parameters
    ----------
    worth : ndarray of shape (n_games, 2**n_players)
        Column ``m`` is the worth of the players whose bits are set in ``m``.

    Returns
    -------
    ndarray of shape (n_games, n_players)
        The values; those of a game sum to the worth of all players less that of none.
    """
    n_players = worth.shape[1].bit_length() - 1
    if worth.shape[1] != 1 << n_players:
        raise ValueError(
            f"worth must have a column for each of 2**n coalitions, got {worth.shape[1]} columns."
        )
    coalitions = np.arange(1 << n_players)
    sizes = np.bitwise_count(coalitions)
    values = np.empty((len(worth), n_players))
    for player in range(n_players):
        without = coalitions[coalitions >> player & 1 == 0]
        # How likely a random order brings exactly this coalition before the player.
        weights = 1 / (n_players * np.array([math.comb(n_players - 1, s) for s in sizes[without]]))
        gains = worth[:, without | 1 << player] - worth[:, without]
        values[:, player] = gains @ weights
    return values


def _absent(formula: Formula) -> NDArray[np.bool_]:
    """Masks of shape (2**arity, n_inputs): the variables that are not in each coalition."""
    variables = np.array(formula.variables, dtype=np.intp)
    if len(variables) > MOST_PLAYERS:
        raise ValueError(
            f"Exact Shapley values look at all coalitions, of at most {MOST_PLAYERS} variables, "
            f"got {len(variables)}."
        )
    masks = np.zeros((1 << len(variables), formula.n_inputs), dtype=bool)
    coalitions = np.arange(len(masks))
    for place, variable in enumerate(variables.tolist()):
        masks[:, variable] = coalitions >> place & 1 == 0
    return masks


def _spread(formula: Formula, values: Floats) -> Floats:
    result = np.zeros((len(values), formula.n_inputs))
    result[:, list(formula.variables)] = values
    return result


def kleene_shapley(formula: Formula, X: NDArray[np.bool_]) -> Floats:
    """Exact Shapley values of the game whose absent inputs are Unassigned.

    The worth is 1 where the formula has the row's decision, -1 where it has the other and 0 where
    it is Unassigned.
    """
    absent = _absent(formula)
    worth = np.empty((len(X), len(absent)))
    signs = np.where(formula.evaluate(X), 1.0, -1.0)
    size = max(1, _BATCH // len(absent))
    for begin in range(0, len(X), size):
        rows = X[begin : begin + size]
        coded = np.where(rows, 1, -1).astype(np.int8)[:, None, :] * ~absent
        said = formula.evaluate_kleene(coded.reshape(-1, formula.n_inputs))
        worth[begin : begin + size] = said.reshape(len(rows), -1)
    return _spread(formula, shapley_of_tables(worth * signs[:, None]))


def completion_shapley(formula: Formula, X: NDArray[np.bool_]) -> Floats:
    """Exact Shapley values of the game whose absent inputs are drawn as fair coins.

    The worth is the share of completions with the row's decision.
    """
    absent = _absent(formula)
    n_players = len(formula.variables)
    worth = np.empty((len(X), len(absent)))
    now = formula.evaluate(X)
    size = max(1, _BATCH // len(absent))
    for begin in range(0, len(X), size):
        rows = X[begin : begin + size]
        flipped = (rows[:, None, :] ^ absent).reshape(-1, formula.n_inputs)
        same = formula.evaluate(flipped).reshape(len(rows), -1) == now[begin : begin + size, None]
        # Column m flips the players absent from m; summing over fewer of them averages.
        total = same.astype(float)
        for player in range(n_players):
            halves = total.reshape(len(rows), -1, 2, 1 << player)
            halves[:, :, 0, :] = (halves[:, :, 0, :] + halves[:, :, 1, :]) / 2
        worth[begin : begin + size] = total
    return _spread(formula, shapley_of_tables(worth))


def sampled_shapley(
    worth: Callable[[NDArray[np.bool_], NDArray[np.intp]], Floats],
    n_rows: int,
    n_players: int,
    *,
    n_pairs: int,
    generator: np.random.Generator,
) -> tuple[Floats, int]:
    """Estimate Shapley values from random orders, each walked forwards and backwards.

    Parameters
    ----------
    worth : callable
        Gives the worths of coalitions (rows of flags) in the games with the given indices.
    n_rows, n_players : int
        Number of games, and of players of each.
    n_pairs : int
        Orders per game; each is used in both directions.
    generator : Generator
        Draws the orders.

    Returns
    -------
    tuple of ndarray of shape (n_rows, n_players) and int
        The estimates, and the coalitions asked for per game.
    """
    values = np.zeros((n_rows, n_players))
    games = np.repeat(np.arange(n_rows), n_players + 1)
    for _ in range(n_pairs):
        orders = np.argsort(generator.random((n_rows, n_players)), axis=1)
        for order in (orders, orders[:, ::-1]):
            position = np.argsort(order, axis=1)
            present = position[:, None, :] < np.arange(n_players + 1)[None, :, None]
            said = worth(present.reshape(-1, n_players), games).reshape(n_rows, -1)
            np.add.at(values, (np.arange(n_rows)[:, None], order), np.diff(said, axis=1))
    # No player and all of them are asked for once, the rest of every walk anew.
    return values / (2 * n_pairs), 2 + 2 * n_pairs * (n_players - 1)
