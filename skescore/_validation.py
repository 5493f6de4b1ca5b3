"""What a rule may be made of: checks of single values, with the name of the parameter in the error.

A wrong type is a TypeError, a value out of range a ValueError. NumPy's scalars become Python's, so
that equality, hashes and JSON do not depend on the dtype that a value came in.
"""

from __future__ import annotations

import math
import operator
from numbers import Real
from typing import Any

import numpy as np


def python_value(value: Any) -> Any:
    """Turn a NumPy scalar into Python's."""
    return value.item() if isinstance(value, np.generic) else value


def check_number(name: str, value: Any, *, finite: bool = False) -> float:
    """Give a number as a float; NaN, text and bools are refused."""
    if type(value) is not float:
        if isinstance(value, bool | np.bool_) or not isinstance(value, Real):
            raise TypeError(f"{name} must be a number, got {value!r}.")
        try:
            value = float(value)
        except OverflowError as error:
            raise ValueError(f"{name} must fit a float, got {value!r}.") from error
    if math.isnan(value) or (finite and math.isinf(value)):
        kind = "a finite number" if finite else "a number or infinite"
        raise ValueError(f"{name} must be {kind}, got {value!r}.")
    return value


def check_whole(name: str, value: Any) -> int:
    """Give a whole number as an int; bools and floats are refused."""
    if isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} must be a whole number, got {value!r}.")
    try:
        return operator.index(value)
    except TypeError:
        raise TypeError(f"{name} must be a whole number, got {value!r}.") from None


def check_feature(value: Any) -> int:
    """Give a column index as an int."""
    feature = check_whole("feature", value)
    if feature < 0:
        raise ValueError(f"feature must be a column index of 0 or more, got {value!r}.")
    return feature


def check_flag(name: str, value: Any) -> bool:
    """Give True or False as Python's."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} must be True or False, got {value!r}.")
    return bool(value)


def check_label(name: str, value: Any) -> Any:
    """Give a class label or categorical value: text, a bool or a finite number."""
    value = python_value(value)
    if not isinstance(value, str | bool | int | float):
        raise TypeError(f"{name} must be a str, int, float or bool, got {value!r}.")
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{name} must not be NaN or infinite, got {value!r}.")
    return value


def label_order(label: Any) -> tuple[bool, Any]:
    """Sort key of labels: numbers by size, then texts."""
    return isinstance(label, str), label
