"""Boxes: the intervals of many rules as arrays."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from skescore.rules._conditions import (
    Condition,
    Interval,
    Missing,
    interval_accepts_missing,
    truth_table,
)


@dataclass(frozen=True, eq=False)
class BoxTable:
    """Boxes as arrays, with one row per rule and one column per feature.

    Parameters
    ----------
    lower, upper : ndarray of shape (n_rules, n_features)
        Bounds; -inf and inf for unbounded sides.
    lower_closed, upper_closed : ndarray of bool, same shape
        Whether the box contains the bound itself.
    missing : ndarray of bool, same shape, optional
        Whether an interval with a bound also accepts missing values; by default False. An interval
        without bounds is not a condition: it accepts all values, and its flag is set to False.

    Raises
    ------
    ValueError
        If the shapes differ, a bound is NaN or a box is empty.
    """

    lower: np.ndarray
    upper: np.ndarray
    lower_closed: np.ndarray
    upper_closed: np.ndarray
    missing: np.ndarray = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        if self.missing is None:
            object.__setattr__(self, "missing", np.zeros(np.shape(self.lower), dtype=bool))
        for name in ("lower", "upper", "lower_closed", "upper_closed", "missing"):
            kind = float if name in ("lower", "upper") else bool
            values = getattr(self, name)
            array = np.asarray(values, dtype=kind)
            if array is values and array.flags.writeable:
                array = array.copy()  # the caller may modify the original later
            array.flags.writeable = False
            object.__setattr__(self, name, array)
        shape = self.lower.shape
        if self.lower.ndim != 2 or any(
            a.shape != shape
            for a in (self.upper, self.lower_closed, self.upper_closed, self.missing)
        ):
            raise ValueError(
                "lower, upper and their flags must have the same shape (n_rules, n_features), got "
                f"{self.lower.shape}, {self.upper.shape}, {self.lower_closed.shape}, "
                f"{self.upper_closed.shape} and {self.missing.shape}."
            )
        if (self.missing & ~self.bounded).any():
            flags = self.missing & self.bounded
            flags.flags.writeable = False
            object.__setattr__(self, "missing", flags)
        is_closed = self.lower_closed & self.upper_closed
        is_nonempty = (self.lower < self.upper) | ((self.lower == self.upper) & is_closed)
        if not is_nonempty.all():
            row, feature = np.argwhere(~is_nonempty)[0].tolist()
            raise ValueError(
                f"Box {row} holds no number along feature {feature}: "
                f"lower={self.lower[row, feature].item()!r}, "
                f"upper={self.upper[row, feature].item()!r}, "
                f"lower_closed={self.lower_closed[row, feature].item()}, "
                f"upper_closed={self.upper_closed[row, feature].item()}. "
                "Remove that box, or swap or close its bounds."
            )

    def __reduce__(self) -> tuple[Any, ...]:
        # Unpickled arrays would be writable; the constructor locks them.
        return BoxTable, (
            self.lower,
            self.upper,
            self.lower_closed,
            self.upper_closed,
            self.missing,
        )

    def __len__(self) -> int:
        return len(self.lower)

    @classmethod
    def from_intervals(cls, rules: Sequence[Sequence[Interval]], n_features: int) -> BoxTable:
        """Convert the intervals of many rules to arrays."""
        shape = (len(rules), n_features)
        lower, upper = np.full(shape, -np.inf), np.full(shape, np.inf)
        lower_closed, upper_closed, missing = (np.zeros(shape, bool) for _ in range(3))
        for row, intervals in enumerate(rules):
            for interval in intervals:
                at = row, interval.feature
                lower[at], upper[at] = interval.lower, interval.upper
                lower_closed[at], upper_closed[at] = interval.lower_closed, interval.upper_closed
                missing[at] = interval.missing
        return cls(lower, upper, lower_closed, upper_closed, missing)

    @property
    def bounded(self) -> np.ndarray:
        """Mask of the intervals that have a bound, shape (n_rules, n_features)."""
        return (self.lower > -np.inf) | (self.upper < np.inf)

    @property
    def accepts_missing(self) -> np.ndarray:
        """Mask of the intervals that accept missing values, shape (n_rules, n_features).

        An interval without bounds accepts all values.
        """
        return np.asarray(interval_accepts_missing(self) | ~self.bounded)

    def intervals(self, row: int) -> tuple[Interval, ...]:
        """Return the intervals of one box that have a bound, in feature order."""
        bounded = np.flatnonzero((self.lower[row] > -np.inf) | (self.upper[row] < np.inf))
        return tuple(
            Interval(
                int(j),
                float(self.lower[row, j]),
                float(self.upper[row, j]),
                bool(self.lower_closed[row, j]),
                bool(self.upper_closed[row, j]),
                bool(self.missing[row, j]),
            )
            for j in bounded
        )

    def take(self, rows: np.ndarray | slice) -> BoxTable:
        """Select boxes by index, in the given order."""
        return BoxTable(
            self.lower[rows],
            self.upper[rows],
            self.lower_closed[rows],
            self.upper_closed[rows],
            self.missing[rows],
        )

    def half_open_bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the boxes as ``start <= x < stop``, which is exact for floating-point numbers.

        ``x > b`` and ``x <= b`` become ``x >= next`` and ``x < next``, where `next` is the float
        after b. If a stop is inf, the box is unbounded above, or excludes only infinity; ``upper``
        distinguishes these cases.
        """
        with np.errstate(over="ignore"):  # the float after the largest one is infinity
            start = np.where(self.lower_closed, self.lower, np.nextafter(self.lower, np.inf))
            stop = np.where(self.upper_closed, np.nextafter(self.upper, np.inf), self.upper)
        return np.where(self.lower == -np.inf, -np.inf, start), stop


def accepted_states(
    boxes: BoxTable, non_intervals: Sequence[Sequence[Condition]]
) -> tuple[np.ndarray, np.ndarray]:
    """Return masks of observed and missing values that intervals and `Missing` conditions accept.

    Parameters
    ----------
    boxes : BoxTable
        The intervals of each premise.
    non_intervals : sequence of sequences of conditions
        Other conditions of each premise.

    Returns
    -------
    observed, missing : ndarray of bool, shape (n_rules, n_features)
        Whether observed values (within the bounds) and missing values are accepted.
    """
    observed, missing = np.ones(boxes.lower.shape, dtype=bool), boxes.accepts_missing
    for i, conditions in enumerate(non_intervals):
        for condition in conditions:
            if isinstance(condition, Missing):
                truth = truth_table(condition)
                observed[i, condition.feature] &= truth.passing
                missing[i, condition.feature] &= truth.missing
    return observed, missing


def nearest_box(
    boxes: BoxTable, X: np.ndarray, scale: np.ndarray, penalties: np.ndarray | None = None
) -> np.ndarray:
    """Return the index of the nearest box for each row; ties go to the first box.

    Distances are divided by `scale`; features with scale 0 and missing values are ignored.
    `penalties`, of shape (n_rows, n_rules), are added to the squared distances.
    """
    used = np.flatnonzero((scale > 0) & np.isfinite(scale) & boxes.bounded.any(axis=0))
    lower, upper, scale = boxes.lower[:, used], boxes.upper[:, used], scale[used]
    result = np.empty(len(X), dtype=np.intp)
    size = max(1, int(4e6 // (len(boxes) * max(1, len(used)))))
    for begin in range(0, len(X), size):
        rows = X[begin : begin + size, used][:, None, :]
        penalty = np.zeros((len(rows), len(boxes)))
        if penalties is not None:
            penalty = penalties[begin : begin + size]
        with np.errstate(over="ignore", invalid="ignore"):
            gap = np.maximum(np.maximum(lower - rows, rows - upper), 0)
            # The distance of an infinite value from an unbounded side is 0.
            np.nan_to_num(gap, copy=False, nan=0.0, posinf=math.inf)
            # Squares are added by feature, so ties do not depend on the order of additions.
            total = penalty.copy()
            for k in range(len(used)):
                total += (gap[:, :, k] / scale[k]) * (gap[:, :, k] / scale[k])
        result[begin : begin + size] = total.argmin(axis=1)
        smallest = total.min(axis=1)
        inexact = np.flatnonzero((smallest == 0) | (smallest > _MAX_SQUARE))
        if len(inexact):
            distances = _scaled_distances(rows[inexact], lower, upper, scale, penalty[inexact])
            result[begin + inexact] = distances.argmin(axis=1)
    return result


#: Limit above which sums of squares are compared by mantissa and exponent.
_MAX_SQUARE = 1e300


def _scaled_distances(
    rows: np.ndarray, lower: np.ndarray, upper: np.ndarray, scale: np.ndarray, penalties: np.ndarray
) -> np.ndarray:
    """Return squared distances, scaled by a power of two per row to avoid over- and underflow."""
    huge_power = 10**6  # exceeds the exponent of every float
    with np.errstate(over="ignore", invalid="ignore"):
        gap = np.maximum(np.maximum(lower - rows, rows - upper), 0)
        half = np.maximum(np.maximum(lower / 2 - rows / 2, rows / 2 - upper / 2), 0)
        long = np.isinf(gap) & np.isfinite(half)
        size, power = np.frexp(np.nan_to_num(np.where(long, half, gap), nan=0.0, posinf=math.inf))
        unit, unit_power = np.frexp(scale)
        size, power = size / unit, power.astype(np.int64) + long - unit_power
        power = np.where(size == 0, -huge_power, np.where(np.isinf(size), huge_power, power))
        penalty_power = np.where(penalties > 0, np.frexp(penalties)[1] // 2, -huge_power)
        largest = np.max(power, axis=2, initial=-huge_power)
        row_power = np.maximum(largest, penalty_power).min(axis=1, keepdims=True)
        total = np.ldexp(penalties, np.clip(-2 * row_power, -2000, 2000).astype(np.int32))
        shift = np.clip(power - row_power[:, :, None], -2000, 2000).astype(np.int32)
        for k in range(size.shape[2]):
            total += np.ldexp(size[:, :, k], shift[:, :, k]) ** 2
    return np.asarray(total)
