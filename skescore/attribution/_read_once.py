"""Responsibilities of read-once formulae in two passes over their gates, many rows at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from skescore.attribution._formula import Formula

__all__ = ["read_once_flip_sets"]

# Larger than any number of flips, and far enough below the largest int64 to be added to.
_NEVER = 1 << 40
_BUDGET = 1 << 25


def read_once_flip_sets(
    formula: Formula, bits: NDArray[np.bool_], sets: bool
) -> tuple[NDArray[np.int64], NDArray[np.bool_] | None]:
    """Find the smallest minimal flip sets of rows of a read-once formula.

    Parameters
    ----------
    formula : Formula
        The formula; no input occurs twice.
    bits : ndarray of bool, shape (n_rows, n_inputs)
        The rows.
    sets : bool
        Whether the sets are wanted, or only their sizes.

    Returns
    -------
    sizes : ndarray of int, shape (n_rows, n_inputs)
        Sizes of the sets; 0 where an input is in none.
    members : ndarray of bool, shape (n_rows, n_inputs, n_inputs), or None
        Of each row and input the inputs of its set.

    Notes
    -----
    The paper's Algorithms 1 and 2. Its list of cases names the case in which both children must
    flip first, though it is the last resort: where one of them suffices, that one is taken. And a
    gate is compared with its own value, not with that of the whole formula.
    """
    n_rows, n_inputs = bits.shape
    sizes = np.zeros((n_rows, n_inputs), dtype=np.int64)
    members = np.zeros((n_rows, n_inputs, n_inputs), dtype=np.bool_) if sets else None
    width = len(formula.gates) * (24 + (2 * formula.arity if sets else 0))
    length = max(1, _BUDGET // width)
    for start in range(0, n_rows, length):
        part = slice(start, start + length)
        _flip_sets(
            formula,
            np.ascontiguousarray(bits[part].T),
            sizes[part],
            None if members is None else members[part],
        )
    return sizes, members


def _flip_sets(
    formula: Formula,
    columns: NDArray[np.bool_],
    sizes: NDArray[np.int64],
    members: NDArray[np.bool_] | None,
) -> None:
    gates, n_rows = formula.gates, columns.shape[1]
    values: list[NDArray[np.bool_]] = []
    costs: list[NDArray[np.int64]] = []  # flips of inputs that it takes to flip the gate
    forced: list[tuple[NDArray[np.bool_], NDArray[np.bool_]]] = []
    nobody = np.zeros(n_rows, dtype=np.bool_)
    for operator, left, right in gates:
        must = (nobody, nobody)
        if operator == "var":
            values.append(columns[left])
            costs.append(np.ones(n_rows, dtype=np.int64))
        elif operator == "not":
            values.append(~values[left])
            costs.append(costs[left])
        else:
            a, b = values[left], values[right]
            # A false operand decides a conjunction: while it stays, nothing else can flip it.
            # A true one decides a disjunction. Nothing decides an exclusive or by itself.
            if operator == "and":
                values.append(a & b)
                must = (~a, ~b)
            elif operator == "or":
                values.append(a | b)
                must = (a, b)
            else:
                values.append(a ^ b)
            costs.append(
                np.where(
                    must[0] | must[1],
                    costs[left] * must[0] + costs[right] * must[1],
                    np.minimum(costs[left], costs[right]),
                )
            )
        forced.append(must)
    cheapest = None if members is None else _cheapest(formula, costs, forced)
    _descend(formula, costs, forced, cheapest, sizes, members)


def _cheapest(
    formula: Formula,
    costs: list[NDArray[np.int64]],
    forced: list[tuple[NDArray[np.bool_], NDArray[np.bool_]]],
) -> list[NDArray[np.bool_]]:
    """Of each gate a smallest set of inputs that flips it, as (arity, rows)."""
    place = {index: i for i, index in enumerate(formula.variables)}
    chosen: list[NDArray[np.bool_]] = []
    for position, (operator, left, right) in enumerate(formula.gates):
        if operator == "var":
            flipped = np.zeros((formula.arity, len(costs[0])), dtype=np.bool_)
            flipped[place[left]] = True
        elif operator == "not":
            flipped = chosen[left]
        else:
            by_left, by_right = forced[position]
            free = ~(by_left | by_right)
            left_first = costs[left] <= costs[right]
            flipped = chosen[left] & (by_left | (free & left_first))
            flipped |= chosen[right] & (by_right | (free & ~left_first))
        chosen.append(flipped)
    return chosen


def _descend(
    formula: Formula,
    costs: list[NDArray[np.int64]],
    forced: list[tuple[NDArray[np.bool_], NDArray[np.bool_]]],
    cheapest: list[NDArray[np.bool_]] | None,
    sizes: NDArray[np.int64],
    members: NDArray[np.bool_] | None,
) -> None:
    """From the root down: how many inputs must flip beside a gate for it to decide the root."""
    n_rows = len(costs[0])
    beside: dict[int, NDArray[np.int64]] = {len(costs) - 1: np.zeros(n_rows, dtype=np.int64)}
    company: dict[int, NDArray[np.bool_]] = {}
    if cheapest is not None:
        company[len(costs) - 1] = np.zeros((formula.arity, n_rows), dtype=np.bool_)
    indices = np.array(formula.variables)
    for position in range(len(costs) - 1, -1, -1):
        operator, left, right = formula.gates[position]
        count, with_it = beside.pop(position), company.pop(position, None)
        if operator == "var":
            reached = count < _NEVER
            sizes[:, left] = np.where(reached, count + 1, 0)
            if members is not None and with_it is not None:
                members[:, left, indices] = (with_it & reached).T
                members[:, left, left] = reached
        elif operator == "not":
            beside[left] = count
            if with_it is not None:
                company[left] = with_it
        else:
            for child, own, sibling, other in (
                (left, forced[position][0], right, forced[position][1]),
                (right, forced[position][1], left, forced[position][0]),
            ):
                # With a deciding sibling a child counts only if it decides as well, and both flip.
                both = own & other
                beside[child] = np.where(other & ~own, _NEVER, count + costs[sibling] * both)
                if with_it is not None and cheapest is not None:
                    company[child] = with_it | (cheapest[sibling] & both)
