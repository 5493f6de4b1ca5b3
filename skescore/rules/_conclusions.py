"""Conclusions: the outputs and statistics of many rules as arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from skescore.rules._boxes import BoxTable
from skescore.rules._rule import LinearOutput, Rule, RuleStatistics


def _locked(values: Any, dtype: Any = None) -> np.ndarray:
    """Return a read-only copy."""
    array = np.array(values, dtype=dtype)
    array.flags.writeable = False
    return array


@dataclass(frozen=True, eq=False)
class Conclusions:
    """Outputs and statistics of the rules of a set, as arrays.

    Parameters
    ----------
    outputs : ndarray of shape (n_rules,)
        Index of the class (int), or the number (float; NaN where `linear` has the output).
    n_rows : ndarray of shape (n_rules,), optional
        Training rows assigned to each rule.
    class_counts : ndarray of shape (n_rules, n_classes), optional
        Classification: number of points of each class there.
    mean, standard_deviation : ndarray of shape (n_rules,), optional
        Regression: mean and population standard deviation of the labels there.
    linear : mapping of int to LinearOutput, optional
        The rules that conclude an affine function.
    weights : ndarray of shape (n_rules,), optional
        Weight of each rule's vote in a set with `voting`; 1 by default.
    """

    outputs: np.ndarray
    n_rows: np.ndarray | None = None
    class_counts: np.ndarray | None = None
    mean: np.ndarray | None = None
    standard_deviation: np.ndarray | None = None
    linear: Mapping[int, LinearOutput] = field(default_factory=dict)
    weights: np.ndarray | None = None

    def __post_init__(self) -> None:
        for name in ("outputs", "n_rows", "class_counts", "mean", "standard_deviation", "weights"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, _locked(getattr(self, name)))

    def __reduce__(self) -> tuple[Any, ...]:
        return Conclusions, (
            self.outputs,
            self.n_rows,
            self.class_counts,
            self.mean,
            self.standard_deviation,
            dict(self.linear),
            self.weights,
        )

    def check(self, n_rules: int, n_classes: int | None) -> None:
        """Raise a ValueError unless the arrays fit a number of rules and classes.

        Parameters
        ----------
        n_rules : int
            Number of boxes.
        n_classes : int or None
            Number of classes; None for a regression.
        """
        for name in ("outputs", "n_rows", "class_counts", "mean", "standard_deviation", "weights"):
            array = getattr(self, name)
            shape = (n_rules, n_classes) if name == "class_counts" else (n_rules,)
            if array is not None and array.shape != shape:
                raise ValueError(f"{name} must have the shape {shape}, got {array.shape}.")
        if self.weights is not None and not np.isfinite(self.weights).all():
            raise ValueError(f"weights must be finite numbers, got {self.weights!r}.")
        statistics = [
            n
            for n in ("class_counts", "mean", "standard_deviation")
            if getattr(self, n) is not None
        ]
        if statistics and self.n_rows is None:
            raise ValueError(
                f"{statistics[0]} needs n_rows as well: the rows assigned to each rule."
            )
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
                None if self.standard_deviation is None else self.standard_deviation[index],
            )
        weight = 1.0 if self.weights is None else self.weights[index]
        return Rule(boxes.intervals(index), output, statistics, weight)

    def class_probabilities(self, n_classes: int) -> np.ndarray:
        """Return the class probabilities of each rule; 1 for its output if it has no counts."""
        certain = np.zeros((len(self.outputs), n_classes))
        certain[np.arange(len(self.outputs)), self.outputs] = 1.0
        if self.class_counts is None:
            return certain
        total = self.class_counts.sum(axis=1, keepdims=True)
        return np.where(total > 0, self.class_counts / np.where(total > 0, total, 1), certain)
