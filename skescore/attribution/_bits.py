"""Rows of bits and truth tables: how they are checked and laid out."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = [
    "LARGEST_TABLE",
    "all_assignments",
    "as_bits",
    "as_rows",
    "as_whole",
    "halves",
    "refuse_value",
]

#: A table has 2**inputs entries; more than this many inputs are refused rather than tried.
LARGEST_TABLE = 24


def as_whole(name: str, value: object, *, low: int, remedy: str) -> int:
    """Check a count or an index.

    Parameters
    ----------
    name : str
        What the caller calls it.
    value : object
        What came.
    low : int
        Smallest value allowed.
    remedy : str
        What to do, as a sentence.

    Returns
    -------
    int
        The number.

    Raises
    ------
    ValueError
        If it is not a whole number of at least `low`.
    """
    if isinstance(value, int | np.integer) and not isinstance(value, bool) and value >= low:
        return int(value)
    raise ValueError(f"{name} must be a whole number >= {low}, got {value!r}. {remedy}")


def all_assignments(n_inputs: int) -> NDArray[np.uint8]:
    """Give all rows of zeros and ones.

    Use it for truth tables: input i of row k is bit i of k.

    Parameters
    ----------
    n_inputs : int
        Number of columns, at most 24.

    Returns
    -------
    ndarray of uint8, shape (2**n_inputs, n_inputs)
        The assignments.

    Raises
    ------
    ValueError
        If `n_inputs` is not a whole number from 0 to 24.

    Examples
    --------
    >>> from skescore.attribution import all_assignments
    >>> all_assignments(2).tolist()
    [[0, 0], [1, 0], [0, 1], [1, 1]]
    """
    remedy = "Sample rows instead: make_boolean_dataset(formula, n_samples=1000)."
    n_inputs = as_whole("n_inputs", n_inputs, low=0, remedy=remedy)
    if n_inputs > LARGEST_TABLE:
        raise ValueError(f"n_inputs must be at most {LARGEST_TABLE}, got {n_inputs!r}. {remedy}")
    codes = np.arange(1 << n_inputs, dtype=np.uint32)
    return (codes[:, None] >> np.arange(n_inputs, dtype=np.uint32) & 1).astype(np.uint8)


def halves(
    table: NDArray[Any],
) -> list[tuple[NDArray[Any], NDArray[Any]]]:
    """Cut a truth table in two, by each input in turn.

    Parameters
    ----------
    table : ndarray, shape (2**n,)
        Input i of entry k is bit i of k.

    Returns
    -------
    list of pairs of ndarray
        Of each input the entries where it is 0 and, in the same order, where it is 1.
    """
    bits = table.size.bit_length() - 1
    cubes = [table.reshape(-1, 2, 1 << bit) for bit in range(bits)]
    return [(cube[:, 0], cube[:, 1]) for cube in cubes]


def as_rows(X: ArrayLike, n_inputs: int, name: str) -> NDArray[Any]:
    """Check the shape of one row or many.

    Parameters
    ----------
    X : array-like
        The rows.
    n_inputs : int
        Number of columns wanted.
    name : str
        What the caller calls it.

    Returns
    -------
    ndarray
        The rows.

    Raises
    ------
    ValueError
        If the shape is wrong.
    """
    rows = np.asarray(X)
    if rows.ndim not in (1, 2) or rows.shape[-1] != n_inputs:
        raise ValueError(
            f"{name} must have shape (n_rows, {n_inputs}), got {rows.shape!r}. The formula has "
            f"n_inputs={n_inputs}: give each of them a column, whether it occurs or not."
        )
    return rows


def as_bits(X: ArrayLike, n_inputs: int, name: str = "X") -> NDArray[np.bool_]:
    """Check rows of zeros and ones.

    Parameters
    ----------
    X : array-like
        One row or many.
    n_inputs : int
        Number of columns wanted.
    name : str, default="X"
        What the caller calls it.

    Returns
    -------
    ndarray of bool
        Of the same shape.

    Raises
    ------
    ValueError
        If the shape is wrong or another value occurs.
    """
    rows = as_rows(X, n_inputs, name)
    if rows.dtype != np.bool_:
        wrong = (rows != 0) & (rows != 1)
        if wrong.any():
            refuse_value(name, rows, wrong, "0 or 1")
    return rows.astype(np.bool_)


def refuse_value(
    name: str, values: NDArray[Any], wrong: NDArray[np.bool_], allowed: str
) -> NoReturn:
    """Raise the error about the first wrong value.

    Parameters
    ----------
    name : str
        What the caller calls the array.
    values : ndarray
        The array.
    wrong : ndarray of bool
        Where its values are wrong.
    allowed : str
        What they must be.

    Raises
    ------
    ValueError
        Always.
    """
    where = tuple(int(index) for index in np.argwhere(wrong)[0])
    value = values[where]
    shown = value.item() if isinstance(value, np.generic) else value
    axes = ("row", "column")[-len(where) :]
    place = ", ".join(f"{axis} {index}" for axis, index in zip(axes, where, strict=True))
    remedy = "(X + 1) / 2 turns -1 and +1 into 0 and 1." if shown == -1 else ""
    raise ValueError(f"{name} must hold {allowed}, got {shown!r} in {place}. {remedy}".rstrip())
