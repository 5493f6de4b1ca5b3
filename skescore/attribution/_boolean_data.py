"""Boolean formulas with known responsibilities, random or from the paper, and labeled rows."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skescore._random import ASSIGNMENTS, FORMULAS, child_generator
from skescore._validation import check_choice, check_instance, check_integer, check_number
from skescore.attribution._formula import (
    BINARY,
    CODINGS,
    LARGEST_TABLE,
    Formula,
    Gate,
    variable,
)

__all__ = [
    "all_assignments",
    "chain_formula",
    "make_boolean_dataset",
    "paper_formula",
    "random_formula",
]

_FAMILIES = ("monotone", "non-monotone")
_SHAPES = ("balanced", "chain", "uniform")
_TRIES = 1000


def random_formula(
    arity: int,
    *,
    n_inputs: int = 12,
    family: str = "non-monotone",
    read_once: bool = True,
    extra: int | None = None,
    shape: str = "uniform",
    weights: Mapping[str, float] | None = None,
    p_not: float = 0.25,
    random_state: Any = None,
) -> Formula:
    """Draw a random formula.

    Use it to benchmark explainers: exact responsibilities of its predictions can be computed.

    Parameters
    ----------
    arity : int
        Number of different inputs that occur in the formula; they are drawn at random.
    n_inputs : int, default=12
        Number of inputs of a row.
    family : {"monotone", "non-monotone"}, default="non-monotone"
        Monotone formulas consist of ``and`` and ``or``; others also of ``xor`` and ``not``.
    read_once : bool, default=True
        Whether each input occurs at most once.
    extra : int, optional
        Number of leaves that repeat an input; by default 0 for read-once formulas and 3 for others.
    shape : {"balanced", "chain", "uniform"}, default="uniform"
        Recursive split of the list of leaves: in the middle, before the last leaf, or at random.
    weights : mapping of str to float, optional
        Relative frequencies of ``"and"``, ``"or"`` and ``"xor"``; missing operators are not used.
        By default, all operators of the family are equally likely.
    p_not : float from 0 to 1, default=0.25
        Probability that a node (or leaf) of a non-monotone formula is negated.
    random_state : int, Generator, SeedSequence or RandomState, optional
        Seed. Formulas and rows drawn with the same seed are independent.

    Returns
    -------
    Formula
        A formula in which each input that occurs affects the value of some row; other draws are
        rejected.

    Raises
    ------
    ValueError
        If an argument is invalid, arguments contradict each other, or no such formula was found.

    Notes
    -----
    The paper states the numbers of variables of its formulas, but not how the formulas were drawn.
    The defaults of this function reproduce the divergences that the paper reports for B-ReX.

    References
    ----------
    S. Armoni-Friedmann, H. Chockler, D. A. Kelly: Evaluation of black-box XAI approaches for
    predictors of values of Boolean formulas. 2025, arXiv:2509.09982, section 6.1.

    Examples
    --------
    >>> from skescore.attribution import random_formula
    >>> formula = random_formula(4, family="monotone", random_state=0)
    >>> formula.arity, formula.is_read_once, formula.is_monotone
    (4, True, True)
    >>> formula == random_formula(4, family="monotone", random_state=0)
    True
    """
    n_inputs = check_integer("n_inputs", n_inputs, 1, remedy="The default is 12, as in the paper.")
    arity = check_integer("arity", arity, 1, remedy="A formula needs a variable.")
    if arity > n_inputs:
        raise ValueError(
            f"arity must be at most n_inputs, got {arity!r} of {n_inputs!r} inputs. Pass "
            f"n_inputs={arity}."
        )
    check_choice("family", family, _FAMILIES)
    check_choice("shape", shape, _SHAPES)
    repeats = _checked_extra(extra, read_once, arity)
    operators, p_operators = _checked_weights(weights, family)
    p_not = check_number("p_not", p_not, 0, 1, remedy="Pass 0 for no negations.")
    negated = 0.0 if family == "monotone" else p_not
    generator = child_generator(random_state, FORMULAS)
    for _ in range(_TRIES):
        drawn = generator.permutation(n_inputs)[:arity]
        leaves = np.concatenate([drawn, generator.choice(drawn, repeats)]) if repeats else drawn
        generator.shuffle(leaves)
        gates = _draw_tree(leaves.tolist(), shape, operators, p_operators, negated, generator)
        formula = Formula(gates, n_inputs)
        if len(formula.relevant_variables) == arity:
            return formula
    raise ValueError(
        f"{_TRIES} random formulas with arity={arity!r} and extra={repeats!r} each had a variable "
        "that does not matter. Pass a smaller extra or a larger arity."
    )


def _draw_tree(
    leaves: list[int],
    shape: str,
    operators: list[str],
    p_operators: list[float],
    p_not: float,
    generator: np.random.Generator,
) -> tuple[Gate, ...]:
    """Draw a random tree by splitting the list of leaves, and return its gates."""
    gates: list[Gate] = []
    operands: list[int] = []

    def add(gate: Gate, negate: bool) -> None:
        gates.append(gate)
        if negate:
            gates.append(("not", len(gates) - 1, -1))
        operands.append(len(gates) - 1)

    stack: list[tuple[int, int, str, bool]] = [(0, len(leaves), "", False)]
    while stack:
        start, stop, operator, negate = stack.pop()
        if operator:
            right, left = operands.pop(), operands.pop()
            add((operator, left, right), negate)
            continue
        negate = bool(generator.random() < p_not)
        if stop - start == 1:
            add(("var", leaves[start], -1), negate)
            continue
        operator = operators[int(generator.choice(len(operators), p=p_operators))]
        if shape == "uniform":
            cut = int(generator.integers(start + 1, stop))
        else:
            cut = stop - 1 if shape == "chain" else (start + stop) // 2
        stack += [(start, stop, operator, negate), (cut, stop, "", False), (start, cut, "", False)]
    return tuple(gates)


def _checked_extra(extra: int | None, read_once: bool, arity: int) -> int:
    if extra is None:
        repeats = 0 if read_once else 3
    else:
        repeats = check_integer("extra", extra, 0, remedy="Pass 0 for read-once formulas.")
    if read_once != (repeats == 0):
        raise ValueError(
            f"extra must be 0 for read-once formulas and at least 1 for others, got {extra!r} with "
            f"read_once={read_once!r}. Pass read_once=False to repeat variables."
        )
    if repeats and arity > LARGEST_TABLE:
        raise ValueError(
            f"arity must be at most {LARGEST_TABLE} for repeated variables, got {arity!r}: "
            "checking that each of them matters requires the truth table. Pass read_once=True."
        )
    return repeats


def _checked_weights(
    weights: Mapping[str, float] | None, family: str
) -> tuple[list[str], list[float]]:
    allowed_operators = BINARY[:2] if family == "monotone" else BINARY
    if weights is None:
        weights = dict.fromkeys(allowed_operators, 1.0)
    for operator, weight in weights.items():
        check_choice("an operator of weights", operator, BINARY)
        check_number(
            f"weights[{operator!r}]",
            weight,
            0,
            finite=True,
            remedy="Pass {'and': 1, 'or': 1} for equal frequencies of operators.",
        )
        if operator not in allowed_operators and weight > 0:
            raise ValueError(
                f"weights of a monotone formula must not include 'xor', got {weight!r} for it. "
                "Omit 'xor', or pass family='non-monotone'."
            )
    total = math.fsum(weights.values())
    if not total > 0:
        raise ValueError(
            f"weights must have a positive sum, got {dict(weights)!r}. Pass None for equal ones."
        )
    # The order of operators is fixed, so that equal weights draw equal formulas.
    operators = [operator for operator in allowed_operators if weights.get(operator, 0) > 0]
    return operators, [weights[operator] / total for operator in operators]


_PAPER = {
    "and": "x1 & x2",
    "or": "x1 | x2",
    "xor": "x1 ^ x2",
    "xor-and-xor": "(x1 ^ x2) & (x3 ^ x4)",
}


def paper_formula(name: str, *, n_inputs: int = 12) -> Formula:
    """Return one of the four small formulas of Armoni-Friedmann et al.

    Use it to reproduce Table 5 of their paper.

    Parameters
    ----------
    name : {"and", "or", "xor", "xor-and-xor"}
        Formula of the first two inputs, or of the first four.
    n_inputs : int, default=12
        Number of inputs of a row.

    Returns
    -------
    Formula
        The formula.

    Raises
    ------
    ValueError
        If the name is unknown, or there are too few inputs.

    References
    ----------
    S. Armoni-Friedmann, H. Chockler, D. A. Kelly: Evaluation of black-box XAI approaches for
    predictors of values of Boolean formulas. 2025, arXiv:2509.09982, Table 5.

    Examples
    --------
    >>> from skescore.attribution import paper_formula
    >>> print(paper_formula("xor-and-xor"))
    (x1 ^ x2) & (x3 ^ x4)
    """
    check_choice("name", name, tuple(_PAPER))
    return Formula.parse(_PAPER[name], n_inputs)


def chain_formula(
    arity: int, *, family: str = "non-monotone", n_inputs: int | None = None
) -> Formula:
    """Return a chain of two alternating operators, grouped from the left.

    Use it to reproduce Tables 1 and 2 of the paper (see References).

    Parameters
    ----------
    arity : int
        Number of variables, at least 2; they are the first inputs.
    family : {"monotone", "non-monotone"}, default="non-monotone"
        ``((x1 & x2) | x3) & ...`` or ``((x1 ^ x2) & x3) ^ ...``.
    n_inputs : int, optional
        Number of inputs of a row; by default 12, or `arity` if that is larger.

    Returns
    -------
    Formula
        The formula.

    Raises
    ------
    ValueError
        If an argument is invalid, or there are too few inputs.

    References
    ----------
    S. Armoni-Friedmann, H. Chockler, D. A. Kelly: Evaluation of black-box XAI approaches for
    predictors of values of Boolean formulas. 2025, arXiv:2509.09982, section 6.2.

    Examples
    --------
    >>> from skescore.attribution import chain_formula
    >>> print(chain_formula(4))
    ((x1 ^ x2) & x3) ^ x4
    >>> print(chain_formula(4, family="monotone"))
    ((x1 & x2) | x3) & x4
    """
    arity = check_integer("arity", arity, 2, remedy="A chain links two variables or more.")
    check_choice("family", family, _FAMILIES)
    width = max(12, arity) if n_inputs is None else n_inputs
    chain = variable(0, width)
    for index in range(1, arity):
        link = variable(index, width)
        if index % 2 == 0:
            chain = chain | link if family == "monotone" else chain & link
        else:
            chain = chain & link if family == "monotone" else chain ^ link
    return chain


def all_assignments(n_inputs: int) -> NDArray[np.uint8]:
    """Return all rows of zeros and ones.

    Use it for truth tables: input i of row k is bit i of k.

    Parameters
    ----------
    n_inputs : int
        Number of columns, at most 24.

    Returns
    -------
    ndarray of uint8, shape (2**n_inputs, n_inputs)
        Assignments in the order of the table.

    Raises
    ------
    ValueError
        If `n_inputs` is not an integer from 0 to 24.

    Examples
    --------
    >>> from skescore.attribution import all_assignments
    >>> all_assignments(2).tolist()
    [[0, 0], [1, 0], [0, 1], [1, 1]]
    """
    remedy = "Sample rows instead: make_boolean_dataset(formula, n_samples=1000)."
    n_inputs = check_integer("n_inputs", n_inputs, 0, remedy=remedy)
    if n_inputs > LARGEST_TABLE:
        raise ValueError(f"n_inputs must be at most {LARGEST_TABLE}, got {n_inputs!r}. {remedy}")
    codes = np.arange(1 << n_inputs, dtype=np.uint32)
    return (codes[:, None] >> np.arange(n_inputs, dtype=np.uint32) & 1).astype(np.uint8)


def make_boolean_dataset(
    formula: Formula,
    n_samples: int | None = None,
    *,
    coding: str = "01",
    replace: bool = False,
    random_state: Any = None,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Draw rows and label them by a formula.

    Use it to train and explain models with known responsibilities.

    Parameters
    ----------
    formula : Formula
        Formula that labels the rows.
    n_samples : int, optional
        Number of rows, drawn uniformly; by default all rows of `all_assignments`.
    coding : {"01", "+-1"}, default="01"
        Encoding of false and true in `X`. Labels are 0 and 1 in both.
    replace : bool, default=False
        Whether an assignment may be drawn more than once.
    random_state : int, Generator, SeedSequence or RandomState, optional
        Seed. Formulas and rows drawn with the same seed are independent.

    Returns
    -------
    X : ndarray of int, shape (n_samples, formula.n_inputs)
        The rows.
    y : ndarray of int, shape (n_samples,)
        The labels.

    Raises
    ------
    ValueError
        If there are too few distinct rows without `replace`, or an argument is invalid.

    Examples
    --------
    >>> from skescore.attribution import Formula, make_boolean_dataset
    >>> X, y = make_boolean_dataset(Formula.parse("x1 & x2"))
    >>> X.tolist(), y.tolist()
    ([[0, 0], [1, 0], [0, 1], [1, 1]], [0, 0, 0, 1])
    >>> X, y = make_boolean_dataset(Formula.parse("x1 ^ x2", 12), 500, random_state=0)
    >>> X.shape, X.max()
    ((500, 12), np.int64(1))
    """
    check_choice("coding", coding, CODINGS)
    check_instance("formula", formula, Formula, remedy="Create it: Formula.parse(text).")
    n_inputs = formula.n_inputs
    if n_samples is None:
        bits = all_assignments(n_inputs).astype(np.bool_)
    else:
        n_samples = check_integer("n_samples", n_samples, 1, remedy="None gives all assignments.")
        if not replace and n_samples > 2**n_inputs:
            raise ValueError(
                f"n_samples must be at most 2**n_inputs = {2**n_inputs} distinct rows, got "
                f"{n_samples!r}. Pass replace=True, or None for all of them."
            )
        bits = _drawn(n_inputs, n_samples, replace, child_generator(random_state, ASSIGNMENTS))
    y = formula.evaluate(bits).astype(np.int64)
    X = bits.astype(np.int64)
    return (X if coding == "01" else 2 * X - 1), y


def _drawn(
    n_inputs: int, n_samples: int, replace: bool, generator: np.random.Generator
) -> NDArray[np.bool_]:
    if not replace and n_inputs <= LARGEST_TABLE:
        codes = generator.choice(2**n_inputs, n_samples, replace=False, shuffle=True)
        return (codes[:, None] >> np.arange(n_inputs) & 1).astype(np.bool_)
    bits = generator.integers(0, 2, (n_samples, n_inputs), dtype=np.int8).astype(np.bool_)
    while not replace:  # with this many inputs, few rows are drawn twice
        _, first = np.unique(bits, axis=0, return_index=True)
        bits = bits[np.sort(first)]
        n_missing = n_samples - len(bits)
        if not n_missing:
            break
        new_rows = generator.integers(0, 2, (n_missing, n_inputs), dtype=np.int8).astype(np.bool_)
        bits = np.vstack([bits, new_rows])
    return bits
