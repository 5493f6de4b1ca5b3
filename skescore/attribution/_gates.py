"""A formula's gates: checked as a tree, then evaluated column by column."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from skescore.attribution._formula_text import BINARY, Gate

__all__ = ["check_gates", "evaluate_gates", "evaluate_gates_kleene"]


def check_gates(gates: Sequence[Gate], n_inputs: int) -> None:
    """Check that gates are one tree over the inputs.

    Parameters
    ----------
    gates : sequence of gates
        To be in postfix order.
    n_inputs : int
        Number of inputs.

    Raises
    ------
    ValueError
        If they are not.
    """
    complete = bool(gates)
    stack: list[int] = []
    for position, (operator, left, right) in enumerate(gates):
        if operator == "var":
            if not 0 <= left < n_inputs:
                raise ValueError(
                    f"n_inputs must exceed every input's index, got {n_inputs!r} with x{left + 1}, "
                    f"index {left}. Pass n_inputs={left + 1} or more."
                )
        else:
            wanted = [left] if operator == "not" else [left, right]
            known = operator == "not" or operator in BINARY
            if not known or stack[len(stack) - len(wanted) :] != wanted:
                complete = False
                break
            del stack[len(stack) - len(wanted) :]
        stack.append(position)
    if not complete or len(stack) != 1:
        shown = repr(gates)
        raise ValueError(
            "gates must be one tree in postfix order, got "
            f"{shown if len(shown) <= 80 else shown[:77] + '...'}. Build formulae with "
            "Formula.parse, Formula.from_expr or variable."
        )


def evaluate_gates(gates: Sequence[Gate], columns: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Evaluate two-valued inputs.

    Parameters
    ----------
    gates : sequence of gates
        In postfix order.
    columns : ndarray of bool, shape (n_inputs, n_rows)
        The inputs.

    Returns
    -------
    ndarray of bool, shape (n_rows,)
        The values.
    """
    stack: list[NDArray[np.bool_]] = []
    for operator, left, _ in gates:
        if operator == "var":
            stack.append(columns[left])
            continue
        last = stack.pop()
        if operator == "not":
            stack.append(~last)
        elif operator == "and":
            stack.append(stack.pop() & last)
        elif operator == "or":
            stack.append(stack.pop() | last)
        else:
            stack.append(stack.pop() ^ last)
    return np.array(stack[0])  # a copy: the formula x1 must not give a view of its input


def evaluate_gates_kleene(gates: Sequence[Gate], columns: NDArray[np.int8]) -> NDArray[np.int8]:
    """Evaluate three-valued inputs by the strong Kleene logic.

    Parameters
    ----------
    gates : sequence of gates
        In postfix order.
    columns : ndarray of int8, shape (n_inputs, n_rows)
        The inputs: -1 is false, 0 is Unassigned, +1 is true.

    Returns
    -------
    ndarray of int8, shape (n_rows,)
        The values in the same coding.
    """
    stack: list[NDArray[np.int8]] = []
    for operator, left, _ in gates:
        if operator == "var":
            stack.append(columns[left])
            continue
        last = stack.pop()
        if operator == "not":
            stack.append(np.asarray(-last))
        elif operator == "and":
            stack.append(np.minimum(stack.pop(), last))
        elif operator == "or":
            stack.append(np.maximum(stack.pop(), last))
        else:
            stack.append(np.asarray(-(stack.pop() * last)))
    return np.array(stack[0])
