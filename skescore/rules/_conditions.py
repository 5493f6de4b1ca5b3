"""Conditions of rules.

There are five kinds: an interval of a numeric feature, a set of values of a categorical feature, a
missing (or observed) value, "at least m of these conditions" (M-of-N), and bounds on a linear
combination (an oblique condition). Conditions are immutable and compared by value.

A missing value (NaN, None, pandas' NA) satisfies only conditions that include missing values, such
as ``age ≤ 30 or missing`` and ``age is missing``.
"""

from __future__ import annotations

import math
import sys
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pandas as pd

from skescore._validation import (
    NON_NUMBERS,
    check_feature,
    check_flag,
    check_integer,
    check_label,
    check_number,
    label_order,
    python_value,
)
from skescore.rules._text import (
    NumberFormat,
    bounds_text,
    exact_number,
    feature_name,
    format_label,
    linear_text,
    or_missing,
    plain_number,
)

#: Function that returns the values of the feature with the given index, one per row.
Columns: TypeAlias = Callable[[int], np.ndarray]


def _is_empty(lower: float, upper: float, lower_closed: bool, upper_closed: bool) -> bool:
    return lower > upper or (lower == upper and not (lower_closed and upper_closed))


def is_missing(values: np.ndarray) -> np.ndarray:
    """Return a mask of the missing values of a column of any type: NaN, None, pandas' NA."""
    if values.dtype.kind == "f":
        return np.asarray(np.isnan(values))
    if values.dtype.kind in "OTM":
        # pandas does not recognize None in arrays of NumPy's string type.
        return np.asarray(pd.isna(values.astype(object) if values.dtype.kind == "T" else values))
    return np.zeros(len(values), dtype=bool)


def as_numbers(values: np.ndarray) -> np.ndarray:
    """Convert a column of any type to floats, and missing values to NaN.

    Values that are not numbers, such as a text of digits, raise a TypeError or ValueError.
    """
    if values.dtype.kind not in "biuf":
        _check_no_texts(values)
    try:
        return values.astype(float, copy=False)
    except TypeError:
        missing = is_missing(values)
        if not missing.any():
            raise
        return np.where(missing, np.nan, values).astype(float)


#: Kinds that pandas infers for columns of objects with only numbers and missing values.
_KINDS_OF_NUMBERS = frozenset(
    ("boolean", "decimal", "empty", "floating", "integer", "mixed-integer-float")
)


def _check_no_texts(values: np.ndarray) -> None:
    """Raise a ValueError if a column holds texts, dates, durations or complex numbers."""
    objects = values.astype(object, copy=False)
    if pd.api.types.infer_dtype(objects, skipna=True) in _KINDS_OF_NUMBERS:
        return
    for value in objects.tolist():
        if isinstance(value, NON_NUMBERS) and not pd.isna(value):
            kind = "a text" if isinstance(value, str) else f"of type {type(value).__name__}"
            raise ValueError(f"{python_value(value)!r} is {kind}, not a number")


def _within(
    values: np.ndarray, lower: float, upper: float, lower_closed: bool, upper_closed: bool
) -> np.ndarray:
    result = ~np.isnan(values)
    if lower > -math.inf:
        result &= values >= lower if lower_closed else values > lower
    if upper < math.inf:
        result &= values <= upper if upper_closed else values < upper
    return result


class TruthTable(NamedTuple):
    """Truth of a condition for each state of the tested value.

    All code that evaluates, simplifies, measures, exports or draws conditions uses these three
    entries. `passing` equals `failing` if the condition only tests whether a value is missing.

    Parameters
    ----------
    passing : bool
        Truth for an observed value within the bounds, or among the listed values.
    failing : bool
        Truth for all other observed values.
    missing : bool
        Truth for a missing value.
    """

    passing: bool
    failing: bool
    missing: bool

    def look_up(self, passes: np.ndarray, is_missing: np.ndarray) -> np.ndarray:
        """Return the truth for each value from masks of passing and of missing values."""
        if self.passing == self.failing:
            observed = np.full(len(passes), self.passing)
        else:
            observed = passes if self.passing else ~passes
        return observed | is_missing if self.missing else observed & ~is_missing


def truth_table(condition: Interval | OneOf | Missing | Linear) -> TruthTable:
    """Return the truth table of a condition, which defines the meaning of missing values.

    Parameters
    ----------
    condition : Interval, OneOf, Missing or Linear
        The condition. A linear condition tests a sum, which is missing if any of its terms is.

    Returns
    -------
    TruthTable
    """
    if isinstance(condition, Missing):
        return TruthTable(condition.negated, condition.negated, not condition.negated)
    if isinstance(condition, OneOf):
        return TruthTable(not condition.negated, condition.negated, condition.missing)
    if isinstance(condition, Linear):
        return TruthTable(True, False, False)
    return TruthTable(True, False, interval_accepts_missing(condition))


def interval_accepts_missing(bounds: Any) -> Any:
    """Return whether a missing value satisfies an interval, or each interval of a `BoxTable`.

    Both have the same attributes, so the same code works for objects and arrays.
    """
    return bounds.missing


def with_missing(condition: Interval | OneOf | Missing, accepts_missing: bool) -> Any:
    """Return a copy that accepts or rejects missing values and is the same for other values.

    Parameters
    ----------
    condition : Interval, OneOf or Missing
        The condition.
    accepts_missing : bool
        Whether missing values satisfy the new condition.

    Returns
    -------
    condition of the same kind, or None
        None if no condition of this kind has this truth table.

    Examples
    --------
    >>> print(with_missing(Interval(0, upper=30), True))
    x0 ≤ 30 or missing
    >>> print(with_missing(Missing(0), False))
    None
    """
    if truth_table(condition).missing == accepts_missing:
        return condition
    if isinstance(condition, Missing):
        return None
    flipped = replace(condition, missing=not condition.missing)
    return flipped if truth_table(flipped).missing == accepts_missing else None


@dataclass(frozen=True, slots=True)
class Interval:
    """Condition that a numeric feature is between two bounds.

    Parameters
    ----------
    feature : int
        Column index.
    lower, upper : float, default=-inf, inf
        Bounds in the feature's units; a side with an infinite bound is unbounded.
    lower_closed : bool, default=False
        Whether the lower bound itself satisfies the condition.
    upper_closed : bool, default=True
        Whether the upper bound itself satisfies the condition. The defaults are those of
        scikit-learn's trees: ``lower < x <= upper``.
    missing : bool, default=False
        Whether missing values also satisfy the condition.

    Raises
    ------
    ValueError
        If a bound is NaN or no number lies between the bounds.

    Examples
    --------
    >>> print(Interval(0, upper=2.45))
    x0 ≤ 2.45
    >>> print(Interval(0, 1, 2, lower_closed=True, upper_closed=False))
    1 ≤ x0 < 2
    >>> print(Interval(0, upper=30, missing=True))
    x0 ≤ 30 or missing
    """

    feature: int
    lower: float = -math.inf
    upper: float = math.inf
    lower_closed: bool = False
    upper_closed: bool = True
    missing: bool = False

    def __post_init__(self) -> None:
        put = object.__setattr__
        put(self, "feature", check_feature(self.feature))
        put(self, "missing", check_flag("missing", self.missing))
        for side in ("lower", "upper"):
            bound = check_number(side, getattr(self, side))
            is_closed = check_flag(f"{side}_closed", getattr(self, f"{side}_closed"))
            put(self, side, bound)
            # The flag of an unbounded side has no effect; clearing it makes equal intervals equal.
            put(self, f"{side}_closed", is_closed and math.isfinite(bound))
        if _is_empty(self.lower, self.upper, self.lower_closed, self.upper_closed):
            raise ValueError(
                f"No number lies between lower={self.lower!r} and upper={self.upper!r} "
                f"(lower_closed={self.lower_closed}, upper_closed={self.upper_closed}): "
                "the condition on feature "
                f"{self.feature} could never hold. Exchange the bounds or close them."
            )

    @property
    def features(self) -> tuple[int, ...]:
        """Indices of the tested features."""
        return (self.feature,)

    @property
    def n_literals(self) -> int:
        """Number of comparisons: 0, 1 or 2, and one more for ``or missing``."""
        if self.is_trivial:
            return 0
        return int(math.isfinite(self.lower)) + int(math.isfinite(self.upper)) + int(self.missing)

    @property
    def is_trivial(self) -> bool:
        """True if both sides are unbounded."""
        return math.isinf(self.lower) and math.isinf(self.upper)

    def holds(self, columns: Columns) -> np.ndarray:
        """Return for every row whether the condition holds."""
        values = _numbers(columns, self.feature)
        passes = _within(values, self.lower, self.upper, self.lower_closed, self.upper_closed)
        return truth_table(self).look_up(passes, np.isnan(values))

    def intersect(self, other: Interval) -> Interval | Missing:
        """Return the intersection with another interval on the same feature.

        If no number is in both intervals, the result is :class:`Missing` if both accept missing
        values; otherwise, a ValueError is raised.
        """
        if other.feature != self.feature:
            raise ValueError(
                f"Intervals must be on the same feature, got {self.feature} and {other.feature}."
            )
        low = max(self, other, key=lambda i: (i.lower, not i.lower_closed))
        high = min(self, other, key=lambda i: (i.upper, i.upper_closed))
        bounds = low.lower, high.upper, low.lower_closed, high.upper_closed
        if _is_empty(*bounds) and truth_table(self).missing and truth_table(other).missing:
            return Missing(self.feature)
        return Interval(self.feature, *bounds, self.missing and other.missing)

    def to_text(
        self, names: Sequence[str] | None = None, number: NumberFormat = plain_number
    ) -> str:
        """Write the condition with the given feature names."""
        text = bounds_text(
            feature_name(names, self.feature),
            self.lower,
            self.upper,
            self.lower_closed,
            self.upper_closed,
            lambda value: number(self.feature, value),
        )
        accepts_missing = truth_table(self).missing and not self.is_trivial
        return or_missing(text) if accepts_missing else text

    def __str__(self) -> str:
        return self.to_text()


def _are_decimals(values: np.ndarray) -> bool:
    """Return whether a column holds objects of type Decimal, which are compared as floats."""
    return pd.api.types.infer_dtype(values, skipna=True) == "decimal"


def _comparable(values: Iterable[Any], kind: str) -> np.ndarray:
    """Return the values that a NumPy array of this kind can hold without rounding."""
    numbers = [value for value in values if not isinstance(value, str)]
    if kind in "iu":
        integers = [int(value) for value in numbers if value == int(value)]
        ends = np.iinfo(f"{kind}8")  # NumPy compares integers and other types as floats
        return np.array([v for v in integers if ends.min <= v <= ends.max], dtype=ends.dtype)
    within = (value for value in numbers if abs(value) <= sys.float_info.max)
    return np.array([float(value) for value in within if float(value) == value])


@dataclass(frozen=True, slots=True)
class OneOf:
    """Condition that a categorical feature has one of the given values (or, if negated, none).

    Parameters
    ----------
    feature : int
        Column index.
    values : iterable of str, int, float or bool
        The values; their order and repetitions do not matter.
    negated : bool, default=False
        Whether the feature must have none of the values.
    missing : bool, default=False
        Whether missing values also satisfy the condition.

    Raises
    ------
    TypeError
        If `values` is a single text, or not iterable.
    ValueError
        If there are no values.

    Examples
    --------
    >>> print(OneOf(1, ["red", "blue"]))
    x1 in {blue, red}
    >>> print(OneOf(1, ["red"], negated=True))
    x1 ≠ red
    >>> print(OneOf(1, ["red", "blue"], missing=True))
    x1 in {blue, red} or missing
    """

    feature: int
    values: tuple[Any, ...]
    negated: bool = False
    missing: bool = False

    def __post_init__(self) -> None:
        if isinstance(self.values, str) or not isinstance(self.values, Iterable):
            raise TypeError(f"values must be a collection of values, got {self.values!r}.")
        values = sorted({check_label("values", v) for v in self.values}, key=label_order)
        if not values:
            raise ValueError("values must hold at least one value, got none.")
        object.__setattr__(self, "feature", check_feature(self.feature))
        object.__setattr__(self, "values", tuple(values))
        for flag in ("negated", "missing"):
            object.__setattr__(self, flag, check_flag(flag, getattr(self, flag)))

    @property
    def features(self) -> tuple[int, ...]:
        """Indices of the tested features."""
        return (self.feature,)

    @property
    def n_literals(self) -> int:
        """Number of listed values, plus one for ``or missing``."""
        return len(self.values) + int(self.missing)

    is_trivial = False

    def holds(self, columns: Columns) -> np.ndarray:
        """Return for every row whether the condition holds."""
        column = np.asarray(columns(self.feature))
        if column.dtype.kind == "O" and _are_decimals(column):
            column = as_numbers(column)
        if column.dtype.kind in "OUST":
            decimals = (Decimal(repr(value)) for value in self.values if type(value) is float)
            is_listed = pd.Series(column, dtype=object).isin([*self.values, *decimals]).to_numpy()
        else:
            is_listed = np.isin(column, _comparable(self.values, column.dtype.kind))
        missing = is_missing(column)
        self._check_kind(column, missing)
        return truth_table(self).look_up(is_listed, missing)

    def _check_kind(self, column: np.ndarray, missing: np.ndarray) -> None:
        """Reject dates, times and bytes, and warn if strings are compared with numbers."""
        kinds = {isinstance(value, str) for value in self.values}
        if missing.all():
            return
        is_numeric = column.dtype.kind in "biuf"
        kind = "string"
        if column.dtype.kind == "O":
            kind = pd.api.types.infer_dtype(column, skipna=True)
        if kind.startswith(("date", "time", "bytes", "period", "interval")):
            raise ValueError(
                f"Rules compare x{self.feature} with numbers or strings such as "
                f"{self.values[0]!r}, but it holds {kind} such as {column[~missing][0]!r}. "
                "Convert that column to numbers or strings."
            )
        in_rules, in_column = ("strings", "numbers") if kinds == {True} else ("numbers", "strings")
        is_mismatch = len(kinds) == 1 and is_numeric == (in_column == "numbers")
        if is_mismatch and (is_numeric or kind == "string"):
            warnings.warn(
                f"Rules compare x{self.feature} with {in_rules} such as {self.values[0]!r}, but it "
                f"holds {in_column} such as {python_value(column[~missing][0])!r}, which never "
                f"equal {in_rules}. Convert that column to {in_rules}, or use {in_column} in the "
                "rules.",
                UserWarning,
                stacklevel=3,
            )

    def to_text(
        self, names: Sequence[str] | None = None, number: NumberFormat = plain_number
    ) -> str:
        """Write the condition with the given feature names."""
        name = feature_name(names, self.feature)
        if len(self.values) == 1:
            text = f"{name} {'≠' if self.negated else '='} {format_label(self.values[0])}"
        else:
            listed = ", ".join(format_label(v) for v in self.values)
            text = f"{name} {'not in' if self.negated else 'in'} {{{listed}}}"
        return or_missing(text) if truth_table(self).missing else text

    def __str__(self) -> str:
        return self.to_text()


@dataclass(frozen=True, slots=True)
class Missing:
    """Condition that the value of a feature is missing (or observed, if negated).

    Parameters
    ----------
    feature : int
        Column index.
    negated : bool, default=False
        Whether the value must be observed.

    Examples
    --------
    >>> print(Missing(0))
    x0 is missing
    >>> print(Missing(0, negated=True))
    x0 is known
    """

    feature: int
    negated: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "feature", check_feature(self.feature))
        object.__setattr__(self, "negated", check_flag("negated", self.negated))

    @property
    def features(self) -> tuple[int, ...]:
        """Indices of the tested features."""
        return (self.feature,)

    n_literals = 1
    is_trivial = False

    def holds(self, columns: Columns) -> np.ndarray:
        """Return for every row whether the condition holds."""
        missing = is_missing(np.asarray(columns(self.feature)))
        return truth_table(self).look_up(~missing, missing)

    def to_text(
        self, names: Sequence[str] | None = None, number: NumberFormat = plain_number
    ) -> str:
        """Write the condition with the given feature names."""
        return f"{feature_name(names, self.feature)} is {'known' if self.negated else 'missing'}"

    def __str__(self) -> str:
        return self.to_text()


@dataclass(frozen=True, slots=True)
class AtLeast:
    """Condition that at least ``m`` of the given conditions hold (M-of-N).

    Parameters
    ----------
    m : int
        Number of conditions that must hold, from 1 to the number of conditions.
    conditions : iterable of conditions
        The counted conditions.

    Raises
    ------
    ValueError
        If `m` is out of range.

    References
    ----------
    M. Craven, J. Shavlik: Extracting tree-structured representations of trained networks,
    NIPS 8, 1996.

    Examples
    --------
    >>> print(AtLeast(2, [Interval(0, upper=1), Interval(1, lower=3), OneOf(2, ["a"])]))
    at least 2 of (x0 ≤ 1; x1 > 3; x2 = a)
    """

    m: int
    conditions: tuple[Condition, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "m", check_integer("m", self.m))
        object.__setattr__(self, "conditions", tuple(map(_check_condition, self.conditions)))
        if not 1 <= self.m <= len(self.conditions):
            raise ValueError(
                f"m must lie between 1 and the number of conditions ({len(self.conditions)}), "
                f"got {self.m!r}."
            )

    @property
    def features(self) -> tuple[int, ...]:
        """Indices of the tested features."""
        return tuple(sorted({f for condition in self.conditions for f in condition.features}))

    @property
    def n_literals(self) -> int:
        """Number of literals in all counted conditions."""
        return sum(condition.n_literals for condition in self.conditions)

    is_trivial = False

    def holds(self, columns: Columns) -> np.ndarray:
        """Return for every row whether the condition holds."""
        total = sum(condition.holds(columns).astype(np.intp) for condition in self.conditions)
        return np.asarray(total >= self.m)

    def to_text(
        self, names: Sequence[str] | None = None, number: NumberFormat = plain_number
    ) -> str:
        """Write the condition with the given feature names."""
        listed = "; ".join(condition.to_text(names, number) for condition in self.conditions)
        return f"at least {self.m} of ({listed})"

    def __str__(self) -> str:
        return self.to_text()


@dataclass(frozen=True, slots=True)
class Linear:
    """Condition that a weighted sum of numeric features is between two bounds (oblique).

    It does not hold for rows with a missing value in the sum.

    Parameters
    ----------
    terms : iterable of (int, float)
        Pairs of column index and coefficient. Coefficients of repeated features are summed, and
        zeros are dropped.
    lower, upper : float, default=-inf, inf
        Bounds of the sum.
    lower_closed, upper_closed : bool, default=False, True
        Whether the bound itself satisfies the condition.

    Raises
    ------
    ValueError
        If all coefficients are 0, a coefficient is not finite, or no number lies between the
        bounds.

    Examples
    --------
    >>> print(Linear([(0, 0.5), (1, -2)], upper=3))
    0.5·x0 - 2·x1 ≤ 3
    """

    terms: tuple[tuple[int, float], ...]
    lower: float = -math.inf
    upper: float = math.inf
    lower_closed: bool = False
    upper_closed: bool = True

    def __post_init__(self) -> None:
        summed: dict[int, float] = {}
        for feature, coefficient in self.terms:
            feature = check_feature(feature)
            coefficient = check_number("coefficient", coefficient, finite=True)
            summed[feature] = summed.get(feature, 0.0) + coefficient
        terms = tuple((f, c) for f, c in sorted(summed.items()) if c != 0)
        if not terms or not all(math.isfinite(c) for _, c in terms):
            raise ValueError(
                "terms must hold at least one coefficient that is not 0, all of them finite, got "
                f"{self.terms!r}."
            )
        # The bounds are checked like those of an interval.
        bounds = Interval(0, self.lower, self.upper, self.lower_closed, self.upper_closed)
        object.__setattr__(self, "terms", terms)
        for name in ("lower", "upper", "lower_closed", "upper_closed"):
            object.__setattr__(self, name, getattr(bounds, name))

    @property
    def features(self) -> tuple[int, ...]:
        """Indices of the tested features."""
        return tuple(feature for feature, _ in self.terms)

    @property
    def n_literals(self) -> int:
        """Number of terms of the sum."""
        return len(self.terms)

    @property
    def is_trivial(self) -> bool:
        """True if both sides are unbounded."""
        return math.isinf(self.lower) and math.isinf(self.upper)

    def holds(self, columns: Columns) -> np.ndarray:
        """Return for every row whether the condition holds."""
        values = [_numbers(columns, feature) for feature in self.features]
        # Infinite values may cancel to NaN, which is between no bounds.
        with np.errstate(over="ignore", invalid="ignore"):
            total = sum(c * value for (_, c), value in zip(self.terms, values, strict=True))
        passes = _within(
            np.asarray(total), self.lower, self.upper, self.lower_closed, self.upper_closed
        )
        missing = np.asarray(np.isnan(values).any(axis=0))
        return truth_table(self).look_up(passes, missing)

    def to_text(
        self, names: Sequence[str] | None = None, number: NumberFormat = plain_number
    ) -> str:
        """Write the condition with the given feature names."""
        return bounds_text(
            linear_text(self.terms, [exact_number(abs(c)) for _, c in self.terms], names),
            self.lower,
            self.upper,
            self.lower_closed,
            self.upper_closed,
            exact_number,
        )

    def __str__(self) -> str:
        return self.to_text()


Condition: TypeAlias = Interval | OneOf | Missing | AtLeast | Linear


def _check_condition(condition: Any) -> Condition:
    if not isinstance(condition, Interval | OneOf | Missing | AtLeast | Linear):
        raise TypeError(
            "conditions must be Interval, OneOf, Missing, AtLeast or Linear, "
            f"got {type(condition).__name__}: {condition!r}."
        )
    return condition


def _numbers(columns: Columns, feature: int) -> np.ndarray:
    """Return the values of a feature as floats."""
    values = np.asarray(columns(feature))
    try:
        return as_numbers(values)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"A condition compares feature {feature} with numbers, but it holds {values.dtype}: "
            f"{error}. Convert that column to numbers."
        ) from error


def normalize(conditions: Iterable[Condition]) -> tuple[Condition, ...]:
    """Return the normal form of a conjunction.

    Conditions that always hold are dropped, and the intervals of a feature are intersected.
    Intervals come first, in feature order. Either all or none of the conditions on a feature accept
    missing values. Therefore ``is known`` remains only if no other condition requires the value,
    and ``is missing`` is the only condition on its feature.
    """
    nontrivial = [c for c in conditions if not _check_condition(c).is_trivial]
    accepts_missing: dict[int, bool] = {}
    for condition in nontrivial:
        if isinstance(condition, Interval | OneOf | Missing):
            accepts = truth_table(condition).missing
            accepts_missing[condition.feature] = (
                accepts_missing.get(condition.feature, True) and accepts
            )
    intervals: dict[int, Interval | Missing] = {}
    missing_tests: dict[int, Missing] = {}
    other_conditions: list[Condition] = []
    for condition in nontrivial:
        if (
            isinstance(condition, Interval | OneOf)
            and truth_table(condition).missing
            and not accepts_missing[condition.feature]
        ):
            condition = with_missing(condition, False) or condition
        if isinstance(condition, Interval):
            interval = intervals.setdefault(condition.feature, condition)
            if isinstance(interval, Interval) and interval is not condition:
                intervals[condition.feature] = interval.intersect(condition)
        elif isinstance(condition, Missing):
            if not condition.negated and not accepts_missing[condition.feature]:
                raise ValueError(
                    f"Feature {condition.feature} would have to be both missing and known, so the "
                    "conditions can never hold together. Remove one of them."
                )
            missing_tests[condition.feature] = condition
        elif condition not in other_conditions:
            other_conditions.append(condition)
    if any(accepts_missing.values()):
        # A feature that must be missing has no other condition.
        missing_tests |= {f: c for f, c in intervals.items() if isinstance(c, Missing)}
        must_be_missing = {f for f, c in missing_tests.items() if not c.negated}
        intervals = {f: c for f, c in intervals.items() if f not in must_be_missing}
        other_conditions = [
            c
            for c in other_conditions
            if not (isinstance(c, OneOf) and c.feature in must_be_missing)
        ]
    if missing_tests:
        tested = {*intervals, *(c.feature for c in other_conditions if isinstance(c, OneOf))}
        missing_tests = {f: c for f, c in missing_tests.items() if not (c.negated and f in tested)}
    return (
        *(intervals[feature] for feature in sorted(intervals)),
        *(missing_tests[feature] for feature in sorted(missing_tests)),
        *other_conditions,
    )
