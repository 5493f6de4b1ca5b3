"""Colours of what rules answer: classes, or numbers on a scale."""

from __future__ import annotations

from typing import Any

import numpy as np

from skescore._validation import label_order, python_value
from skescore.plots._style import (
    SEQUENTIAL,
    colours_of,
    legend_beside,
    markers_of,
    matplotlib_module,
    pale,
    short,
)
from skescore.rules import LinearOutput, Rule, RuleSet


class Palette:
    """Colours of the rules of a set, and of points beside them.

    Parameters
    ----------
    ruleset : RuleSet
        The rules.
    y : array-like, optional
        The truth of points.
    """

    def __init__(self, ruleset: RuleSet, y: Any = None) -> None:
        self._ruleset = ruleset
        truth = [] if y is None else [python_value(v) for v in np.asarray(y).tolist()]
        self.is_classes = ruleset.task == "classification"
        if self.is_classes:
            known = {*(ruleset.classes or ()), *truth}
            self.labels = sorted(known, key=label_order)
            self._colours = colours_of(len(self.labels))
            return
        self.values = np.array([output_number(rule, ruleset) for rule in ruleset.rules])
        everything = np.concatenate([self.values, np.asarray(truth, dtype=float)])
        everything = everything[np.isfinite(everything)]
        low, high = (everything.min(), everything.max()) if len(everything) else (0.0, 1.0)
        colors, cm = matplotlib_module("colors"), matplotlib_module("cm")
        if low == high:
            low, high = low - 0.5, high + 0.5
        self._scale = cm.ScalarMappable(colors.Normalize(float(low), float(high)), SEQUENTIAL)

    def colour(self, rule: int) -> str:
        """The full colour of a rule's answer, as ``#rrggbb``."""
        if self.is_classes:
            return self._colours[self.labels.index(self._ruleset.rules[rule].output)]
        value = self.values[rule]
        if not np.isfinite(value):
            return "#999999"
        return str(matplotlib_module("colors").to_hex(self._scale.to_rgba(value)))

    def face(self, rule: int) -> str:
        """The colour for areas: pale for classes, so that points stay visible."""
        return pale(self.colour(rule)) if self.is_classes else self.colour(rule)

    def points(self, ax: Any, x: np.ndarray, y: np.ndarray, truth: Any) -> None:
        """Draw rows as points in the colours of their truth; grey ones without it."""
        n = len(x)
        some = np.unique(np.linspace(0, n - 1, min(n, 600)).astype(int)) if n else np.arange(0)
        x, y = x[some], y[some]
        style: dict[str, Any] = {"s": 14, "edgecolors": "black", "linewidths": 0.4, "zorder": 4}
        if truth is None:
            ax.scatter(x, y, c="0.5", **style)
            return
        values = np.asarray(truth)
        if values.shape != (n,):
            raise ValueError(f"y must hold one answer per row, {n}, got shape {values.shape}.")
        values = values[some]
        if not self.is_classes:
            ax.scatter(x, y, c=values.astype(float), cmap=SEQUENTIAL, norm=self._scale.norm,
                       **(style | {"edgecolors": "white"}))  # fmt: skip
            return
        for label, colour, marker in zip(
            self.labels, self._colours, markers_of(len(self.labels)), strict=True
        ):
            own = np.array([python_value(v) == label for v in values.tolist()], dtype=bool)
            ax.scatter(x[own], y[own], c=colour, marker=marker, **style)

    def legend(self, ax: Any, extra: list[Any], *, faces: bool = True) -> None:
        """Name the colours beside the axes."""
        if self.is_classes:
            patch = matplotlib_module("patches").Patch
            handles = [
                patch(fc=pale(colour) if faces else colour, ec="black", lw=0.5, label=short(label))
                for label, colour in zip(self.labels, self._colours, strict=True)
            ]
            legend_beside(ax, "answer", [*handles, *extra])
            return
        ax.figure.colorbar(self._scale, ax=ax, label="answer of the rule", location="left")
        legend_beside(ax, None, extra)


def output_number(rule: Rule, ruleset: RuleSet) -> float:
    """The number that stands for a rule's answer: its own, or the mean of a linear one.

    Parameters
    ----------
    rule : Rule
        A rule of a regression.
    ruleset : RuleSet
        Its home, for the domain.

    Returns
    -------
    float
        NaN if nothing is known of the mean.
    """
    output = rule.output
    if not isinstance(output, LinearOutput):
        return float(output)
    if rule.statistics is not None and rule.statistics.mean is not None:
        return float(rule.statistics.mean)
    if ruleset.domain is None:
        return float("nan") if output.terms else output.intercept
    bounds = {c.feature: (c.lower, c.upper) for c in rule.intervals}
    total = output.intercept
    for feature, coefficient in output.terms:
        low, high = bounds.get(feature, (-np.inf, np.inf))
        low = max(low, ruleset.domain.lower[feature])
        high = min(high, ruleset.domain.upper[feature])
        total += coefficient * (low + high) / 2
    return float(total)
