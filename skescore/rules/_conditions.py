"""Conditions: what a rule asks of a row.

Four kinds cover what extractors and rule learners emit: an interval on a numeric feature, a set of
values of a categorical one, "at least m of these conditions" (M-of-N) and a bounded linear
combination (an oblique condition). All are immutable and compare by value.

A missing value (NaN, None) satisfies no condition of any kind.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from skescore._validation import (
    check_feature,
    check_flag,
    check_integer,
    check_label,
    check_number,
    label_order,
)
from skescore.rules._text import (
    NumberFormat,
    bounds_text,
    feature_name,
    format_label,
    linear_text,
    plain_number,
)

#: Gives the values of the feature with the given index, one per row.
Columns: TypeAlias = Callable[[int], np.ndarray]


def _is_empty(lower: float, upper: float, lower_closed: bool, upper_closed: bool) -> bool:
    return lower > upper or (lower == upper and not (lower_closed and upper_closed))


def _within(
    values: np.ndarray, lower: float, upper: float, lower_closed: bool, upper_closed: bool
) -> np.ndarray:
    result = ~np.isnan(values)
    if lower > -math.inf:
        result &= values >= lower if lower_closed else values > lower
    if upper < math.inf:
        result &= values <= upper if upper_closed else values < upper
    return result


@dataclass(frozen=True, slots=True)
class Interval:
    """A numeric feature lies between two bounds.

    Parameters
    ----------
    feature : int
        Column index.
    lower, upper : float, default=-inf, inf
        The bounds, in the feature's units; an infinite bound means that side is free.
    lower_closed : bool, default=False
        Whether the lower bound itself satisfies the condition.
    upper_closed : bool, default=True
        Whether the upper bound itself satisfies the condition. The defaults are those of
        scikit-learn's trees: ``lower < x <= upper``.

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
    """

    feature: int
    lower: float = -math.inf
    upper: float = math.inf
    lower_closed: bool = False
    upper_closed: bool = True

    def __post_init__(self) -> None:
        put = object.__setattr__
        put(self, "feature", check_feature(self.feature))
        for side in ("lower", "upper"):
            bound = check_number(side, getattr(self, side))
            closed = check_flag(f"{side}_closed", getattr(self, f"{side}_closed"))
            put(self, side, bound)
            # The flag of a free side says nothing, so equal intervals get equal flags.
            put(self, f"{side}_closed", closed and math.isfinite(bound))
        if _is_empty(self.lower, self.upper, self.lower_closed, self.upper_closed):
            raise ValueError(
                f"No number lies between lower={self.lower!r} and upper={self.upper!r} "
                f"(lower_closed={self.lower_closed}, upper_closed={self.upper_closed}): "
                "the condition on feature "
                f"{self.feature} could never hold. Exchange the bounds or close them."
            )

    @property
    def features(self) -> tuple[int, ...]:
        """Columns that the condition looks at."""
        return (self.feature,)

    @property
    def n_literals(self) -> int:
        """Elementary comparisons: 0, 1 or 2."""
        return int(math.isfinite(self.lower)) + int(math.isfinite(self.upper))

    @property
    def is_trivial(self) -> bool:
        """Whether both sides are free."""
        return self.n_literals == 0

    def holds(self, columns: Columns) -> np.ndarray:
        """Return for every row whether the condition holds."""
        values = _numbers(columns, self.feature)
        return _within(values, self.lower, self.upper, self.lower_closed, self.upper_closed)

    def intersect(self, other: Interval) -> Interval:
        """Both intervals at once; a ValueError if they contradict each other."""
        if other.feature != self.feature:
            raise ValueError(
                f"Only intervals on one feature intersect, got {self.feature} and {other.feature}."
            )
        low = max(self, other, key=lambda i: (i.lower, not i.lower_closed))
        high = min(self, other, key=lambda i: (i.upper, i.upper_closed))
        return Interval(self.feature, low.lower, high.upper, low.lower_closed, high.upper_closed)

    def to_text(
        self, names: Sequence[str] | None = None, number: NumberFormat = plain_number
    ) -> str:
        """Write the condition with the given feature names."""
        return bounds_text(
            feature_name(names, self.feature),
            self.lower,
            self.upper,
            self.lower_closed,
            self.upper_closed,
            lambda value: number(self.feature, value),
        )

    def __str__(self) -> str:
        return self.to_text()


@dataclass(frozen=True, slots=True)
class OneOf:
    """A categorical feature has one of the given values (or, negated, none of them).

    Parameters
    ----------
    feature : int
        Column index.
    values : iterable of str, int, float or bool
        The values; order and repetitions do not matter.
    negated : bool, default=False
        If True, the feature must have none of the values.

    Examples
    --------
    >>> print(OneOf(1, ["red", "blue"]))
    x1 in {blue, red}
    >>> print(OneOf(1, ["red"], negated=True))
    x1 ≠ red
    """

    feature: int
    values: tuple[Any, ...]
    negated: bool = False

    def __post_init__(self) -> None:
        if isinstance(self.values, str) or not isinstance(self.values, Iterable):
            raise TypeError(f"values must be a collection of values, got {self.values!r}.")
        values = sorted({check_label("values", v) for v in self.values}, key=label_order)
        if not values:
            raise ValueError("values must hold at least one value, got none.")
        object.__setattr__(self, "feature", check_feature(self.feature))
        object.__setattr__(self, "values", tuple(values))
        object.__setattr__(self, "negated", check_flag("negated", self.negated))

    @property
    def features(self) -> tuple[int, ...]:
        """Columns that the condition looks at."""
        return (self.feature,)

    @property
    def n_literals(self) -> int:
        """Values that a reader compares with."""
        return len(self.values)

    is_trivial = False

    def holds(self, columns: Columns) -> np.ndarray:
        """Return for every row whether the condition holds."""
        column = np.asarray(columns(self.feature))
        if column.dtype.kind in "OUST":
            values = pd.Series(column, dtype=object)
            missing = values.isna().to_numpy()
            found = values.isin(self.values).to_numpy()
        else:
            found = np.isin(column, [v for v in self.values if not isinstance(v, str)])
            missing = np.isnan(column) if column.dtype.kind == "f" else np.zeros(len(column), bool)
        return ~missing & (~found if self.negated else found)

    def to_text(
        self, names: Sequence[str] | None = None, number: NumberFormat = plain_number
    ) -> str:
        """Write the condition with the given feature names."""
        name = feature_name(names, self.feature)
        if len(self.values) == 1:
            return f"{name} {'≠' if self.negated else '='} {format_label(self.values[0])}"
        listed = ", ".join(format_label(v) for v in self.values)
        return f"{name} {'not in' if self.negated else 'in'} {{{listed}}}"

    def __str__(self) -> str:
        return self.to_text()


@dataclass(frozen=True, slots=True)
class AtLeast:
    """At least ``m`` of the given conditions hold (an M-of-N condition).

    Parameters
    ----------
    m : int
        How many must hold, from 1 to the number of conditions.
    conditions : iterable of conditions
        The conditions counted.

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
        """Columns that the condition looks at."""
        return tuple(sorted({f for condition in self.conditions for f in condition.features}))

    @property
    def n_literals(self) -> int:
        """Elementary comparisons of all counted conditions."""
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
    """A weighted sum of numeric features lies between two bounds (an oblique condition).

    Parameters
    ----------
    terms : iterable of (int, float)
        Pairs of column index and coefficient; features repeated are summed, zeros dropped.
    lower, upper : float, default=-inf, inf
        Bounds of the sum.
    lower_closed, upper_closed : bool, default=False, True
        Whether the bound itself satisfies the condition.

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
        # The bounds follow the same rules as those of an interval.
        bounds = Interval(0, self.lower, self.upper, self.lower_closed, self.upper_closed)
        object.__setattr__(self, "terms", terms)
        for name in ("lower", "upper", "lower_closed", "upper_closed"):
            object.__setattr__(self, name, getattr(bounds, name))

    @property
    def features(self) -> tuple[int, ...]:
        """Columns that the condition looks at."""
        return tuple(feature for feature, _ in self.terms)

    @property
    def n_literals(self) -> int:
        """Terms of the sum."""
        return len(self.terms)

    @property
    def is_trivial(self) -> bool:
        """Whether both sides are free."""
        return math.isinf(self.lower) and math.isinf(self.upper)

    def holds(self, columns: Columns) -> np.ndarray:
        """Return for every row whether the condition holds."""
        # Infinite values may cancel to NaN, which lies between no bounds.
        with np.errstate(over="ignore", invalid="ignore"):
            total = sum(c * _numbers(columns, f) for f, c in self.terms)
        return _within(
            np.asarray(total), self.lower, self.upper, self.lower_closed, self.upper_closed
        )

    def to_text(
        self, names: Sequence[str] | None = None, number: NumberFormat = plain_number
    ) -> str:
        """Write the condition with the given feature names."""
        return bounds_text(
            linear_text(self.terms, names),
            self.lower,
            self.upper,
            self.lower_closed,
            self.upper_closed,
            lambda value: plain_number(0, value),
        )

    def __str__(self) -> str:
        return self.to_text()


Condition: TypeAlias = Interval | OneOf | AtLeast | Linear


def _check_condition(condition: Any) -> Condition:
    if not isinstance(condition, Interval | OneOf | AtLeast | Linear):
        raise TypeError(
            "conditions must be Interval, OneOf, AtLeast or Linear, "
            f"got {type(condition).__name__}: {condition!r}."
        )
    return condition


def _numbers(columns: Columns, feature: int) -> np.ndarray:
    """The values of a feature as floats."""
    values = np.asarray(columns(feature))
    try:
        return values.astype(float, copy=False)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"A condition compares feature {feature} with numbers, but it holds {values.dtype}: "
            f"{error}. Convert that column to numbers."
        ) from error


def normalise(conditions: Iterable[Condition]) -> tuple[Condition, ...]:
    """Bring a conjunction into its one written form.

    Conditions that always hold are dropped, intervals on one feature become one, and the intervals
    come first, in feature order.
    """
    intervals: dict[int, Interval] = {}
    others: list[Condition] = []
    for condition in conditions:
        if _check_condition(condition).is_trivial:
            continue
        if isinstance(condition, Interval):
            known = intervals.get(condition.feature)
            intervals[condition.feature] = (
                condition if known is None else known.intersect(condition)
            )
        elif condition not in others:
            others.append(condition)
    return (*(intervals[feature] for feature in sorted(intervals)), *others)
