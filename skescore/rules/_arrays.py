"""Rules as arrays: the fast path of everything that looks at many rules or rows at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from skescore.rules._conditions import Interval
from skescore.rules._rule import LinearOutput, Rule, RuleStatistics


@dataclass(frozen=True, eq=False)
class BoxTable:
    """Boxes as arrays, one row per rule and one column per feature.

    Parameters
    ----------
    lower, upper : ndarray of shape (n_rules, n_features)
        Bounds; -inf and inf mark free sides.
    lower_closed, upper_closed : ndarray of bool, same shape
        Whether the face itself belongs to the box.

    Raises
    ------
    ValueError
        If the shapes differ, a bound is NaN or a box is empty.
    """

    lower: np.ndarray
    upper: np.ndarray
    lower_closed: np.ndarray
    upper_closed: np.ndarray

    def __post_init__(self) -> None:
        for name in ("lower", "upper", "lower_closed", "upper_closed"):
            kind = bool if name.endswith("closed") else float
            given = getattr(self, name)
            array = np.asarray(given, dtype=kind)
            if array is given and array.flags.writeable:
                array = array.copy()  # the caller may go on to change it
            array.flags.writeable = False
            object.__setattr__(self, name, array)
        shape = self.lower.shape
        if self.lower.ndim != 2 or any(
            a.shape != shape for a in (self.upper, self.lower_closed, self.upper_closed)
        ):
            raise ValueError(
                "lower, upper and their flags must have one shape (n_rules, n_features), got "
                f"{self.lower.shape}, {self.upper.shape}, {self.lower_closed.shape} and "
                f"{self.upper_closed.shape}."
            )
        closed = self.lower_closed & self.upper_closed
        filled = (self.lower < self.upper) | ((self.lower == self.upper) & closed)
        if not filled.all():
            row, feature = np.argwhere(~filled)[0].tolist()
            raise ValueError(
                f"Box {row} holds no number along feature {feature}: "
                f"lower={self.lower[row, feature].item()!r}, "
                f"upper={self.upper[row, feature].item()!r}, "
                f"lower_closed={self.lower_closed[row, feature].item()}, "
                f"upper_closed={self.upper_closed[row, feature].item()}. "
                "Leave that box out, or exchange or close its bounds."
            )

    def __reduce__(self) -> tuple[Any, ...]:
        # Unpickled arrays would be writable; the constructor locks them.
        return BoxTable, (self.lower, self.upper, self.lower_closed, self.upper_closed)

    def __len__(self) -> int:
        return len(self.lower)

    @classmethod
    def from_intervals(cls, rules: Sequence[Sequence[Interval]], n_features: int) -> BoxTable:
        """Collect the intervals of many rules."""
        shape = (len(rules), n_features)
        lower, upper = np.full(shape, -np.inf), np.full(shape, np.inf)
        lower_closed, upper_closed = np.zeros(shape, bool), np.zeros(shape, bool)
        for row, intervals in enumerate(rules):
            for interval in intervals:
                at = row, interval.feature
                lower[at], upper[at] = interval.lower, interval.upper
                lower_closed[at], upper_closed[at] = interval.lower_closed, interval.upper_closed
        return cls(lower, upper, lower_closed, upper_closed)

    @property
    def bounded(self) -> np.ndarray:
        """Whether each box has a bound along each feature, shape (n_rules, n_features)."""
        return (self.lower > -np.inf) | (self.upper < np.inf)

    def intervals(self, row: int) -> tuple[Interval, ...]:
        """The bounded sides of one box, in feature order."""
        bounded = np.flatnonzero((self.lower[row] > -np.inf) | (self.upper[row] < np.inf))
        return tuple(
            Interval(
                int(j),
                float(self.lower[row, j]),
                float(self.upper[row, j]),
                bool(self.lower_closed[row, j]),
                bool(self.upper_closed[row, j]),
            )
            for j in bounded
        )

    def take(self, rows: np.ndarray | slice) -> BoxTable:
        """Some of the boxes, in the given order."""
        return BoxTable(
            self.lower[rows], self.upper[rows], self.lower_closed[rows], self.upper_closed[rows]
        )

    def entry_cuts(self) -> tuple[np.ndarray, np.ndarray]:
        """Rewrite all boxes as ``start <= x < stop`` on floating-point numbers, exactly.

        ``x > b`` and ``x <= b`` become ``x >= next`` and ``x < next`` with the float after b. A
        stop of inf can mean either a free side or one that keeps out infinity alone: :attr:`upper`
        tells which.
        """
        with np.errstate(over="ignore"):  # infinity comes after the largest float
            start = np.where(self.lower_closed, self.lower, np.nextafter(self.lower, np.inf))
            stop = np.where(self.upper_closed, np.nextafter(self.upper, np.inf), self.upper)
        return np.where(self.lower == -np.inf, -np.inf, start), stop


def _locked(values: Any, dtype: Any = None) -> np.ndarray:
    """A copy that cannot be written to."""
    array = np.array(values, dtype=dtype)
    array.flags.writeable = False
    return array


@dataclass(frozen=True, eq=False)
class Conclusions:
    """What each rule of a set concludes and what was seen there, as arrays.

    Parameters
    ----------
    outputs : ndarray of shape (n_rules,)
        Index of the class (int), or the number (float; NaN where `linear` has the output).
    n_rows : ndarray of shape (n_rules,), optional
        Training rows that each rule answers.
    class_counts : ndarray of shape (n_rules, n_classes), optional
        Classification: the black box's answers there.
    mean, spread : ndarray of shape (n_rules,), optional
        Regression: mean and population standard deviation of the black box's answers there.
    linear : mapping of int to LinearOutput, optional
        The rules that conclude an affine function.
    weights : ndarray of shape (n_rules,), optional
        How much each rule says where rules answer together; 1 by default.
    """

    outputs: np.ndarray
    n_rows: np.ndarray | None = None
    class_counts: np.ndarray | None = None
    mean: np.ndarray | None = None
    spread: np.ndarray | None = None
    linear: Mapping[int, LinearOutput] = field(default_factory=dict)
    weights: np.ndarray | None = None

    def __post_init__(self) -> None:
        for name in ("outputs", "n_rows", "class_counts", "mean", "spread", "weights"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, _locked(getattr(self, name)))

    def __reduce__(self) -> tuple[Any, ...]:
        return Conclusions, (
            self.outputs, self.n_rows, self.class_counts, self.mean, self.spread, dict(self.linear),
            self.weights,
        )  # fmt: skip

    def check(self, n_rules: int, n_classes: int | None) -> None:
        """Raise a ValueError unless the arrays fit a number of rules and classes.

        Parameters
        ----------
        n_rules : int
            Number of boxes.
        n_classes : int or None
            Number of classes; None for a regression.
        """
        for name in ("outputs", "n_rows", "class_counts", "mean", "spread", "weights"):
            array = getattr(self, name)
            shape = (n_rules, n_classes) if name == "class_counts" else (n_rules,)
            if array is not None and array.shape != shape:
                raise ValueError(f"{name} must have the shape {shape}, got {array.shape}.")
        if self.weights is not None and not np.isfinite(self.weights).all():
            raise ValueError(f"weights must be finite numbers, got {self.weights!r}.")
        seen = [n for n in ("class_counts", "mean", "spread") if getattr(self, n) is not None]
        if seen and self.n_rows is None:
            raise ValueError(f"{seen[0]} needs n_rows as well: the rows that each rule answers.")
        stray = [i for i in self.linear if not 0 <= i < n_rules or n_classes is not None]
        if stray:
            raise ValueError(
                f"linear gives rule {stray[0]} an affine output, but there is no such rule of a "
                "regression."
            )
        if n_classes is None:
            unknown = ~np.isfinite(self.outputs)
            unknown[list(self.linear)] = False
            if unknown.any():
                raise ValueError(
                    f"Output {np.flatnonzero(unknown)[0]} must be a finite number, got "
                    f"{self.outputs[unknown][0].item()!r}."
                )
        elif len(self.outputs) and (
            self.outputs.dtype.kind not in "iu"
            or self.outputs.min() < 0
            or self.outputs.max() >= n_classes
        ):
            raise ValueError(
                f"outputs must be indices of the {n_classes} classes, got {self.outputs!r}."
            )

    @classmethod
    def from_rules(cls, rules: Sequence[Rule], classes: Sequence[Any] | None) -> Conclusions:
        """Collect the outputs of rules; their statistics stay with the rules."""
        if classes is not None:
            code = {label: i for i, label in enumerate(classes)}
            outputs = np.fromiter((code[r.output] for r in rules), np.intp, count=len(rules))
            counts = np.zeros((len(rules), len(classes)))
            for row, rule in zip(counts, rules, strict=True):
                if rule.statistics is not None and rule.statistics.class_counts is not None:
                    row[:] = rule.statistics.class_counts
            return cls(outputs, class_counts=counts)
        linear = {i: r.output for i, r in enumerate(rules) if isinstance(r.output, LinearOutput)}
        numbers = [np.nan if isinstance(r.output, LinearOutput) else r.output for r in rules]
        return cls(np.asarray(numbers, dtype=float), linear=linear)

    def rule(self, index: int, boxes: BoxTable, classes: Sequence[Any] | None) -> Rule:
        """Make one rule of a set whose premises are all boxes."""
        output: Any = self.linear.get(index)
        if output is None:
            output = self.outputs[index].item()
            if classes is not None:
                output = classes[output]
        statistics = None
        if self.n_rows is not None:
            counts = self.class_counts
            statistics = RuleStatistics(
                self.n_rows[index],
                None if counts is None else tuple(counts[index].tolist()),
                None if self.mean is None else self.mean[index],
                None if self.spread is None else self.spread[index],
            )
        weight = 1.0 if self.weights is None else self.weights[index]
        return Rule(boxes.intervals(index), output, statistics, weight)

    def shares(self, n_classes: int) -> np.ndarray:
        """Class shares per rule; a rule without counts is sure of its class."""
        certain = np.zeros((len(self.outputs), n_classes))
        certain[np.arange(len(self.outputs)), self.outputs] = 1.0
        if self.class_counts is None:
            return certain
        total = self.class_counts.sum(axis=1, keepdims=True)
        return np.where(total > 0, self.class_counts / np.where(total > 0, total, 1), certain)
