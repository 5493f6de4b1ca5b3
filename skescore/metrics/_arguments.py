"""Checking of what a measure is given, and handing back of its result.

Measures are pure functions of numbers or arrays of numbers. What is not a number, or lies outside
the domain of the formula, must end in an error that names the argument, never in a silent score.
"""

from __future__ import annotations

from dataclasses import fields
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skescore._text import did_you_mean

__all__ = [
    "TASKS",
    "as_numbers",
    "check_choice",
    "check_shapes",
    "check_undefined",
    "finite_numbers",
    "plain",
    "row_weights",
    "short_repr",
]

TASKS = ("classification", "regression")


def as_numbers(
    name: str,
    value: ArrayLike,
    *,
    low: float = -np.inf,
    high: float = np.inf,
    strict: bool = False,
    remedy: str,
) -> NDArray[np.float64]:
    """Return `value` as a float array once every entry lies in the domain of the argument.

    NaN and plus infinity never do; minus infinity does if there is no lower bound.
    """
    if type(value) is float and low <= value <= high and low != value < np.inf:
        return np.asarray(value)  # most calls are about one number, well within
    array = _float_array(name, value)
    inside = (array > low if strict else array >= low) & (array <= high) & (array < np.inf)
    if not inside.all():
        rules = [f"{'>' if strict else '>='} {low:g}"] if low > -np.inf else []
        rules += [f"<= {high:g}"] if high < np.inf else []
        rules += ["finite" if low > -np.inf else "not NaN"]
        at = tuple(int(i) for i in np.argwhere(~inside)[0])
        where = f" at position {at[0] if len(at) == 1 else at}" if at else ""
        raise ValueError(
            f"{name} must be {' and '.join(rules)}, got {float(array[at])!r}{where}. {remedy}"
        )
    return array


def _float_array(name: str, value: ArrayLike) -> NDArray[np.float64]:
    """Convert without guessing: numpy alone would take True for 1 and the text '3' for 3."""
    if np.ma.is_masked(value):
        raise ValueError(f"{name} must have no masked entries. Fill or drop them first.")
    try:
        array = np.asarray(value if hasattr(value, "dtype") else np.asarray(value, dtype=object))
    except ValueError:
        raise TypeError(
            f"{name} must be a number or a regular array of numbers, got {value!r}. "
            "Pass nested sequences of equal length."
        ) from None
    if array.dtype.kind not in "iuf":
        others = [item for item in array.flat if not _is_number(item)]
        if others or array.dtype.kind != "O":
            offending: object = others[0] if others else array
            raise TypeError(
                f"{name} must be a number or an array of numbers, got {offending!r} of type "
                f"{type(offending).__name__}. Convert it to float first."
            )
    try:
        return array.astype(np.float64)
    except OverflowError:
        raise ValueError(
            f"{name} must fit into a float, got an integer above {np.finfo(np.float64).max:g}."
        ) from None


def _is_number(item: object) -> bool:
    return isinstance(item, Real) and not isinstance(item, (bool, np.bool_))


def check_shapes(**arrays: NDArray[np.float64]) -> None:
    try:
        np.broadcast_shapes(*(array.shape for array in arrays.values()))
    except ValueError:
        shapes = ", ".join(f"{name}: {array.shape}" for name, array in arrays.items())
        raise ValueError(
            f"The arguments must have shapes that broadcast to one another, got {shapes}. "
            "Pass arrays of one length, or scalars."
        ) from None


def plain(result: NDArray[np.float64]) -> float | NDArray[np.float64]:
    """Give scalars back as Python floats, so that they print, compare and serialise as such."""
    result = np.asarray(result)
    return float(result) if result.ndim == 0 else result


def row_weights(sample_weight: Any, n_rows: int) -> NDArray[np.float64]:
    """Return weights as floats once there is one per row, finite and zero or more."""
    weights = np.asarray(sample_weight, dtype=float)
    if weights.shape != (n_rows,):
        raise ValueError(
            f"sample_weight must hold one number per row, shape ({n_rows},), got shape "
            f"{weights.shape}."
        )
    wrong = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))
    if len(wrong):
        raise ValueError(
            "sample_weight must be finite and zero or more, got "
            f"{float(weights[wrong[0]])!r} for row {int(wrong[0])}. Drop such rows or weigh them 0."
        )
    return weights


def finite_numbers(name: str, values: Any) -> NDArray[np.float64]:
    """Return the labels or predictions of a regression as floats once all of them are finite."""
    try:
        numbers = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must hold numbers for a regression: {error}.") from error
    if not np.isfinite(numbers).all():
        row = int(np.argmin(np.isfinite(numbers)))
        raise ValueError(
            f"{name} must hold finite numbers, got {float(numbers[row])!r} in row {row}. Drop such "
            "rows."
        )
    return numbers


def check_undefined(undefined: float) -> float:
    """Return the value that stands where a measure has none, once it is a number."""
    if not isinstance(undefined, Real) or isinstance(undefined, bool | np.bool_):
        raise TypeError(f"undefined must be a number, NaN included, got {undefined!r}.")
    return float(undefined)


def check_choice(name: str, value: object, choices: tuple[str, ...]) -> None:
    """Raise a ValueError unless the value is one of the named choices."""
    if not isinstance(value, str) or value not in choices:
        raise ValueError(
            f"{name} must be one of {', '.join(map(repr, choices))}, got {value!r}. "
            f"{did_you_mean(value, choices)}"
        )


def short_repr(settings: Any) -> str:
    """Write a dataclass with those fields only that are not left at their defaults."""
    given = [(each.name, getattr(settings, each.name), each.default) for each in fields(settings)]
    shown = [f"{name}={value!r}" for name, value, default in given if value is not default]
    return f"{type(settings).__name__}({', '.join(shown)})"
