"""Parameter checks of the whole package.

A wrong type raises a TypeError; a value out of range, or not among the choices, a ValueError.
Errors name the parameter, the rule, the value and an optional remedy. Checks return the value as a
Python type, so that equality, hashes and JSON do not depend on NumPy's dtypes.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable
from copy import deepcopy
from numbers import Real
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skescore._text import nearest

TASKS = ("classification", "regression")

#: Number above which floats do not represent all integers.
LARGEST_EXACT = 2.0**53

#: Largest accepted integer; larger ones would fail later in NumPy and scikit-learn.
LARGEST_COUNT = 2**31 - 1


def python_value(value: Any) -> Any:
    """Convert a NumPy scalar to a Python value."""
    return value.item() if isinstance(value, np.generic) else value


def label_order(label: Any) -> tuple[bool, Any]:
    """Return the sort key of a label: numbers by size, then strings."""
    return isinstance(label, str), label


def _message(name: str, rule: str, value: Any, remedy: str) -> str:
    return f"{name} must be {rule}, got {python_value(value)!r}. {remedy}".rstrip()


def check_choice(name: str, value: Any, choices: Iterable[Any], *, remedy: str = "") -> None:
    """Raise a ValueError unless `value` is one of the choices, with a suggestion."""
    options = list(choices)
    plain_value = python_value(value)
    if any(
        plain_value is choice or (type(plain_value) is type(choice) and plain_value == choice)
        for choice in options
    ):
        return
    near = nearest(plain_value, [choice for choice in options if isinstance(choice, str)])
    guess = f"Did you mean {near!r}? " if near else ""
    listed = ", ".join(map(repr, options))
    raise ValueError(_message(name, f"one of {listed}", value, guess + remedy))


def check_flag(name: str, value: Any) -> bool:
    """Return a Python bool; 0 and 1 raise a TypeError."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(_message(name, "True or False", value, ""))
    return bool(value)


@overload
def check_integer(
    name: str,
    value: Any,
    low: int | None = None,
    high: int | None = None,
    *,
    optional: Literal[False] = False,
    remedy: str = "",
) -> int: ...
@overload
def check_integer(
    name: str,
    value: Any,
    low: int | None = None,
    high: int | None = None,
    *,
    optional: bool,
    remedy: str = "",
) -> int | None: ...
def check_integer(
    name: str,
    value: Any,
    low: int | None = None,
    high: int | None = None,
    *,
    optional: bool = False,
    remedy: str = "",
) -> int | None:
    """Return an integer from `low` to `high`, or None if optional; otherwise raise an error."""
    if value is None and optional:
        return None
    if low is None:
        rule = "an integer" if high is None else f"an integer of at most {high}"
    else:
        rule = (
            f"an integer of {low} or more" if high is None else f"an integer from {low} to {high}"
        )
    rule += " or None" if optional else ""
    if isinstance(value, bool | np.bool_):
        raise TypeError(_message(name, rule, value, remedy))
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(_message(name, rule, value, remedy)) from None
    if (low is not None and number < low) or (high is not None and number > high):
        raise ValueError(_message(name, rule, value, remedy))
    if number > LARGEST_COUNT:
        raise ValueError(_message(name, f"at most {LARGEST_COUNT}", value, remedy))
    return number


@overload
def check_number(
    name: str,
    value: Any,
    low: float = ...,
    high: float = ...,
    *,
    above: float = ...,
    below: float = ...,
    finite: bool = ...,
    optional: Literal[False] = ...,
    remedy: str = ...,
) -> float: ...
@overload
def check_number(
    name: str,
    value: Any,
    low: float = ...,
    high: float = ...,
    *,
    above: float = ...,
    below: float = ...,
    finite: bool = ...,
    optional: bool,
    remedy: str = ...,
) -> float | None: ...
def check_number(
    name: str,
    value: Any,
    low: float = -math.inf,
    high: float = math.inf,
    *,
    above: float | None = None,
    below: float | None = None,
    finite: bool = False,
    optional: bool = False,
    remedy: str = "",
) -> float | None:
    """Return a number within the limits as a float; strings and bools raise a TypeError.

    The limits `low` and `high` are inclusive, `above` and `below` exclusive. NaN is rejected;
    infinity is accepted unless `finite`, and None if `optional`.
    """
    if value is None and optional:
        return None
    number = value
    if type(value) is not float:
        if isinstance(value, bool | np.bool_) or not isinstance(value, Real):
            rule = _number_rule(low, high, above, below, False, optional)
            raise TypeError(_message(name, rule, value, remedy))
        try:
            number = float(value)
        except OverflowError:
            raise ValueError(f"{name} must fit a float, got {value!r}.") from None
    inside = (
        low <= number <= high
        and (above is None or number > above)
        and (below is None or number < below)
        and not (finite and math.isinf(number))
    )
    if not inside:
        rule = _number_rule(low, high, above, below, finite, optional)
        raise ValueError(_message(name, rule, value, remedy))
    return number


def _number_rule(
    low: float,
    high: float,
    above: float | None,
    below: float | None,
    finite: bool,
    optional: bool,
) -> str:
    """Describe the accepted numbers."""
    ends = []
    if above is not None:
        ends.append(f"above {above:g}")
    if math.isfinite(low):
        ends.append(f"of {low:g} or more")
    if below is not None:
        ends.append(f"below {below:g}")
    if math.isfinite(high):
        ends.append(f"at most {high:g}")
    if math.isfinite(low) and math.isfinite(high):
        ends = [f"from {low:g} to {high:g}"]
    words = ["a finite number" if finite else "a number", " and ".join(ends)]
    text = " ".join(word for word in words if word)
    return text + (" or None" if optional else "")


def check_number_or_nan(name: str, value: Any) -> float:
    """Return a number as a float; unlike `check_number`, accept NaN."""
    if isinstance(value, Real) and math.isnan(value):
        return math.nan
    return check_number(name, value, remedy="NaN is accepted too.")


def check_feature(value: Any) -> int:
    """Return a column index as an int."""
    return check_integer("feature", value, 0, remedy="It is the index of a column.")


def check_label(name: str, value: Any) -> Any:
    """Return a class label or category: a string, a bool or a finite number."""
    value = python_value(value)
    if not isinstance(value, str | bool | int | float):
        raise TypeError(_message(name, "a str, int, float or bool", value, ""))
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{name} must not be NaN or infinite, got {value!r}.")
    return value


def check_sequence(name: str, value: Any, of: str, *, remedy: str = "") -> tuple[Any, ...]:
    """Return an iterable as a tuple; a string, which is a single item, raises a TypeError.

    `of` describes the items in the error, such as ``"names"``.
    """
    if isinstance(value, str | bytes) or not isinstance(value, Iterable):
        raise TypeError(_message(name, f"a sequence of {of}", value, remedy))
    return tuple(value)


def check_instance(
    name: str, value: Any, kind: type, *, optional: bool = False, remedy: str = ""
) -> None:
    """Raise a TypeError unless `value` is an instance of `kind` (or None, if optional)."""
    if not isinstance(value, kind) and not (optional and value is None):
        article = "an" if kind.__name__[0] in "AEIOU" else "a"
        rule = f"{article} {kind.__name__}{' or None' if optional else ''}"
        raise TypeError(_message(name, rule, value, remedy))


def as_numbers(
    name: str,
    value: ArrayLike,
    *,
    low: float = -np.inf,
    high: float = np.inf,
    strict: bool = False,
    remedy: str,
) -> NDArray[np.float64]:
    """Return `value` as a float array, and raise an error unless it lies between the bounds.

    NaN and plus infinity are always rejected. Minus infinity is rejected if there is a lower bound.
    """
    if type(value) is float and low <= value <= high and low != value < np.inf:
        return np.asarray(value)  # most calls pass a single valid number
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
    """Convert to an array of floats; unlike NumPy, reject True and the string '3'."""
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
        non_numbers = [item for item in array.flat if not _is_number(item)]
        if non_numbers or array.dtype.kind != "O":
            offending: object = non_numbers[0] if non_numbers else array
            raise TypeError(
                f"{name} must be a number or an array of numbers, got {offending!r} of type "
                f"{type(offending).__name__}. Convert it to float first."
            )
    try:
        return array.astype(np.float64)
    except OverflowError:
        raise ValueError(
            f"{name} must fit into a float, got an integer beyond ±{np.finfo(np.float64).max:g}."
        ) from None


def _is_number(item: object) -> bool:
    return isinstance(item, Real) and not isinstance(item, (bool, np.bool_))


def check_shapes(**arrays: NDArray[np.float64]) -> None:
    try:
        np.broadcast_shapes(*(array.shape for array in arrays.values()))
    except ValueError:
        shapes = ", ".join(f"{name}: {array.shape}" for name, array in arrays.items())
        raise ValueError(
            f"The shapes of the arguments must be broadcastable, got {shapes}. "
            "Pass arrays of equal length, or scalars."
        ) from None


def plain(result: NDArray[np.float64]) -> float | NDArray[np.float64]:
    """Convert scalars to Python floats."""
    result = np.asarray(result)
    return float(result) if result.ndim == 0 else result


def row_weights(sample_weight: Any, n_rows: int, *, finite_sum: bool = True) -> NDArray[np.float64]:
    """Return weights as floats; there must be one per row, finite and not negative.

    Their sum must be finite too, unless the caller scales them.
    """
    if np.ma.is_masked(sample_weight):
        raise ValueError("sample_weight must have no masked entries. Set such weights to 0.")
    check_only_numbers("sample_weight", np.asarray(sample_weight))
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
            f"{float(weights[wrong[0]])!r} for row {int(wrong[0])}. Drop such rows or use weight 0."
        )
    with np.errstate(over="ignore"):
        total = weights.sum()
    if finite_sum and total == np.inf:
        raise ValueError(
            "sample_weight must have a finite sum, got weights up to "
            f"{float(weights.max())!r}. Divide the weights by the largest."
        )
    return weights


#: Types that NumPy would convert to floats, possibly losing information.
NON_NUMBERS = (str, bytes, complex, np.complexfloating, np.datetime64, np.timedelta64)


def check_only_numbers(name: str, values: NDArray[Any]) -> None:
    """Raise a TypeError if an array holds strings, dates, durations or complex numbers."""
    kind = values.dtype.kind
    if kind in "biuf":
        return
    offending: str | None = str(values.dtype)
    if kind == "O":
        unusable = (v for v in values.flat if isinstance(v, NON_NUMBERS))
        first = next(unusable, None)
        offending = None if first is None else type(first).__name__
    if offending is not None:
        raise TypeError(
            f"{name} must hold numbers, got values of type {offending}. Convert them to floats."
        )


def one_dimension(name: str, values: Any) -> NDArray[Any]:
    """Return labels or predictions as an array without masked values or conversion.

    NumPy alone would ignore the mask of a masked array, and convert all elements of a list to
    strings if some are: 1 to ``"1"``, and NaN to ``"nan"``, which is one more class. It would also
    round large integers to floats next to floats, or next to integers of another range.
    """
    if np.ma.is_masked(values):
        raise ValueError(f"{name} must have no masked entries. Fill or drop them first.")
    array = np.asarray(values)
    if array.ndim != 1 or hasattr(values, "dtype") or array.dtype.kind not in "USf":
        return array
    if array.dtype.kind == "f" and not (np.abs(array) >= LARGEST_EXACT).any():
        return array
    items = values.to_pylist() if hasattr(values, "to_pylist") else list(values)
    kept_types = (float, np.floating) if array.dtype.kind == "f" else (str,)
    if not all(isinstance(item, kept_types) for item in items):
        array = np.fromiter(items, dtype=object, count=len(array))
    return array


def without_index(labels: Any) -> Any:
    """Return labels of pandas, polars or Arrow as an array or list, and others unchanged."""
    if hasattr(labels, "to_pylist"):  # Arrow does not copy strings to an array by default
        return labels.to_pylist()
    return labels.to_numpy() if hasattr(labels, "to_numpy") else labels


def whole_labels(name: str, values: Any) -> NDArray[Any]:
    """Return class labels as an array; missing labels raise a ValueError."""
    import pandas as pd  # imported late, as modules that only read names do not need it

    labels = one_dimension(name, values)
    missing = np.flatnonzero(pd.isna(labels))
    if len(missing):
        raise ValueError(
            f"{name} must hold a label in every row, but row {int(missing[0])} has none. Drop such "
            "rows first."
        )
    return labels


def plain_target(y: Any) -> Any:
    """Return a target as an array without masked values or conversion to strings."""
    return one_dimension("y", y) if isinstance(y, list | tuple | np.ma.MaskedArray) else y


def own_rows(values: Any) -> Any:
    """Copy rows or labels for foreign code, which may change them in place.

    Objects without ``copy``, such as polars tables, which are immutable, are returned unchanged.
    """
    if isinstance(values, list):
        return deepcopy(values)
    return values.copy() if hasattr(values, "copy") else values


def as_pandas(table: Any) -> Any:
    """Convert tables of polars and Arrow to pandas, since an array would lose the column names."""
    is_foreign = hasattr(table, "columns") and not hasattr(table, "iloc")
    return table.to_pandas() if is_foreign and hasattr(table, "to_pandas") else table


#: Magnitude above which squares of numbers, and sums of them, overflow.
LARGEST_SQUARED = 1e150


def check_is_table(X: Any) -> None:
    """Raise a ValueError if rows are a sequence of texts instead of a table."""
    is_sequence = isinstance(X, list | tuple) or getattr(X, "ndim", 2) == 1
    if is_sequence and len(X) and isinstance(next(iter(X)), str):
        raise ValueError(
            "X must be a table with one column per feature, got a sequence of texts. To explain a "
            "text classifier, pass its last step, and the columns that the steps before it compute "
            "from the texts: pipeline[-1] and pd.DataFrame(pipeline[:-1].transform(texts).toarray()"
            ", columns=pipeline[:-1].get_feature_names_out())."
        )


def check_squares(name: str, numbers: NDArray[np.float64]) -> None:
    """Raise a ValueError for regression targets whose squares overflow.

    Parameters
    ----------
    name : str
        Name of the numbers in the message.
    numbers : ndarray of float
        The numbers, finite.
    """
    largest = float(np.abs(numbers).max(initial=0.0))
    if largest > LARGEST_SQUARED:
        raise ValueError(
            f"{name} must lie within ±{LARGEST_SQUARED:g}, because squared errors are compared, "
            f"got {largest:g}. Express the numbers in a larger unit."
        )


def finite_numbers(name: str, values: Any) -> NDArray[np.float64]:
    """Return the labels or predictions of a regression as floats; all must be finite."""
    try:
        numbers = one_dimension(name, values).astype(np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must hold numbers in regression: {error}.") from error
    if not np.isfinite(numbers).all():
        row = int(np.argmin(np.isfinite(numbers)))
        raise ValueError(
            f"{name} must hold finite numbers, got {float(numbers[row])!r} in row {row}. Drop such "
            "rows."
        )
    return numbers
