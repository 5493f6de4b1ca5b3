"""Features as axes of plots: their choice, their ranges, and the positions of rules."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from skescore._text import did_you_mean
from skescore._validation import label_order, python_value
from skescore.plots._style import shorten
from skescore.rules import AtLeast, Condition, Interval, Missing, OneOf, RowTable, Rule, RuleSet

#: Number of pixels of a category, whose interval is its number ± 0.5.
_PER_CATEGORY = 12


@dataclass(frozen=True)
class Side:
    """Feature as an axis of a plot; categories are at 0, 1, 2, ..."""

    feature: int
    name: str
    low: float
    high: float
    values: tuple[Any, ...] | None = None

    def centers(self, resolution: int) -> np.ndarray:
        """Return the positions of the pixels along the axis."""
        n = resolution if self.values is None else _PER_CATEGORY * len(self.values)
        edges = np.linspace(self.low, self.high, n + 1)
        return np.asarray((edges[:-1] + edges[1:]) / 2)

    def at(self, centers: np.ndarray) -> np.ndarray:
        """Return the values of the feature at positions on the axis."""
        if self.values is None:
            return centers
        values = np.empty(len(self.values), dtype=object)
        values[:] = self.values
        return values[np.rint(centers).astype(int)]

    def positions(self, column: np.ndarray) -> np.ndarray:
        """Return the positions of values on the axis; NaN for unknown values."""
        if self.values is None:
            return np.asarray(column, dtype=float)
        codes = {value: float(code) for code, value in enumerate(self.values)}
        return np.array([codes.get(python_value(v), np.nan) for v in column.tolist()])

    def scattered(self, column: np.ndarray, seed: int) -> np.ndarray:
        """Return the positions of values, which are jittered for categories."""
        positions = self.positions(column)
        if self.values is None:
            return positions
        return positions + np.random.default_rng(seed).uniform(-0.3, 0.3, size=len(positions))

    def pieces(self, conditions: Iterable[Condition]) -> list[tuple[float, float]]:
        """Return the intervals in which conditions on this feature hold, possibly unbounded."""
        intervals = [(-np.inf, np.inf)]
        for condition in conditions:
            if isinstance(condition, Interval) and condition.feature == self.feature:
                condition_intervals = [(condition.lower, condition.upper)]
            elif isinstance(condition, Missing) and condition.feature == self.feature:
                condition_intervals = intervals if condition.negated else []
            elif isinstance(condition, OneOf) and condition.feature == self.feature:
                is_listed = [v in condition.values for v in self.values or ()]
                is_accepted = np.array(is_listed, dtype=bool) != condition.negated
                edges = np.flatnonzero(np.diff(np.r_[False, is_accepted, False]))
                condition_intervals = [(a - 0.5, b - 0.5) for a, b in edges.reshape(-1, 2).tolist()]
            else:
                continue
            pairs = [(max(a, c), min(b, d)) for a, b in intervals for c, d in condition_intervals]
            # A closed interval may be a point, but categories do not share one.
            intervals = [(a, b) for a, b in pairs if a < b or (a, b) in condition_intervals]
        return intervals

    def label_axis(self, axis: Any) -> None:
        """Label a matplotlib axis with the name and values of the feature."""
        axis.set_label_text(shorten(self.name, 40))
        if self.values is not None:
            step = 1 + (len(self.values) - 1) // 20
            texts = [shorten(v, 16) for v in self.values[::step]]
            axis.set_ticks(range(0, len(self.values), step), texts)


def feature_index(feature: Any, names: Sequence[str]) -> int:
    """Return the index of a feature given by name or index."""
    if isinstance(feature, str):
        if feature in names:
            return list(names).index(feature)
        shown_names = names if len(names) <= 40 else list(names)[:40]
        raise ValueError(f"There is no feature {feature!r}. {did_you_mean(feature, shown_names)}")
    is_whole = isinstance(feature, (int, np.integer)) and not isinstance(feature, bool)
    if is_whole and 0 <= feature < len(names):
        return int(feature)
    raise ValueError(
        f"A feature must be a name or an index from 0 to {len(names) - 1}, got {feature!r}."
    )


def two_features(
    features: Any, names: Sequence[str], rulesets: Sequence[RuleSet]
) -> tuple[int, int]:
    """Return the two features to draw: the requested ones, or the two with the most conditions."""
    if features is None:
        if len(names) < 2:
            raise ValueError(f"The plot needs two features, but there is only {list(names)!r}.")
        counts = np.sum([feature_counts(rules) for rules in rulesets], axis=0, dtype=float)
        counts = np.zeros(len(names)) + counts
        first, second = np.argsort(-counts, kind="stable")[:2].tolist()
        return first, second
    if isinstance(features, str) or not hasattr(features, "__len__") or len(features) != 2:
        raise ValueError(f"features must be two names or indices, got {features!r}.")
    pair = feature_index(features[0], names), feature_index(features[1], names)
    if pair[0] == pair[1]:
        raise ValueError(f"features must be two different ones, got {features!r}.")
    return pair


def feature_counts(ruleset: RuleSet, n_rules: int | None = None) -> np.ndarray:
    """Count the conditions of the (first) rules on each feature."""
    counts = np.zeros(ruleset.n_features)
    for rule in ruleset.rules[:n_rules]:
        for condition in rule.conditions:
            counts[list(condition.features)] += 1
    return counts


def side_of(
    feature: int,
    names: Sequence[str],
    *,
    ruleset: RuleSet | None = None,
    table: RowTable | None = None,
    margin: float = 0.04,
) -> Side:
    """Return the axis of a feature, with its range in the domain and the rows, or in the rules.

    `margin` is the share of the range that is added at both ends. If only bounds of rules are
    known, it is a quarter, because rules hold beyond their bounds.
    """
    categories: set[Any] = set()
    ends: list[float] = []
    bounds: list[float] = []
    is_category = False
    for rule in ruleset.rules if ruleset is not None else ():
        for condition in _flatten(rule.conditions):
            if isinstance(condition, OneOf) and condition.feature == feature:
                categories |= set(condition.values)
                is_category = True
            elif isinstance(condition, Interval) and condition.feature == feature:
                bounds += [condition.lower, condition.upper]
    domain = None if ruleset is None else ruleset.domain
    if domain is not None:
        values = domain.values_of(feature)
        if values is None:
            ends += [domain.lower[feature], domain.upper[feature]]
        else:
            is_category, categories = True, categories | set(values)
    if table is not None and len(table):
        column = table.column(feature)
        if column.dtype.kind in "OUSTb" or is_category:
            is_category = True
            categories |= {python_value(v) for v in column.tolist() if v is not None and v == v}
        else:
            numbers = column[np.isfinite(column)].astype(float)
            ends += [float(numbers.min()), float(numbers.max())] if len(numbers) else []
    name = str(names[feature])
    if is_category:
        sorted_categories = tuple(sorted(categories, key=label_order))
        return Side(feature, name, -0.5, max(len(sorted_categories), 1) - 0.5, sorted_categories)
    if not ends:
        ends = [bound for bound in bounds if np.isfinite(bound)]
        margin = 0.25 if ends else margin
        ends = ends or [0.0, 1.0]
    low, high = min(ends), max(ends)
    padding = margin * (high - low) if high > low else 0.5 * max(1.0, abs(low))
    return Side(feature, name, low - padding, high + padding)


def has_further_conditions(rule: Rule, features: Sequence[int], *, missing: bool = False) -> bool:
    """Return whether a rule has conditions other than intervals and values of these features.

    Conditions on missing values also count unless `missing` is set, as most plots do not show them.
    """
    simple = (Interval, OneOf, Missing) if missing else (Interval, OneOf)
    return any(not isinstance(c, simple) or c.feature not in features for c in rule.conditions)


def _flatten(conditions: Iterable[Condition]) -> Iterable[Condition]:
    for condition in conditions:
        if isinstance(condition, AtLeast):
            yield from _flatten(condition.conditions)
        else:
            yield condition
