"""Tables with missing values, as an algorithm that knows none sees them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from skescore.rules import AtLeast, Condition, Domain, Interval, Missing, OneOf, Rule, RuleSet

#: Stands among the values of a category for a missing one.
GAP = "\0missing"


class FilledTable:
    """An extraction without gaps, and its rules in terms of the table that has them.

    A numeric column that lacks values becomes two: its numbers, filled where there are none, and
    whether a value is missing (0 or 1). It is filled with the end of its range whose half has
    predictions nearer to those of the rows without a value, so that a rule may take them together,
    ``age ≤ 30 or missing``, or by themselves, ``age is missing``. Among the values of a category a
    missing one is one more.

    Parameters
    ----------
    extraction : Extraction
        Rows with NaN, among the codes of categories as well.
    margin : float
        Share of a feature's range by which the domain is wider.

    Attributes
    ----------
    extraction : Extraction
        The same without NaN; columns that tell gaps are the last.
    """

    def __init__(self, extraction: Any, margin: float) -> None:
        gaps = np.isnan(extraction.X)
        rows, names = extraction.X.copy(), list(extraction.settings["feature_names"])
        columns_with_gaps = np.flatnonzero(gaps.any(axis=0)).tolist()
        n_classes = None if extraction.classes is None else len(extraction.classes)
        self._table, self._n_features = extraction, rows.shape[1]
        self._categories = {
            j: (*values, GAP) if j in columns_with_gaps else values
            for j, values in extraction.categories.items()
        }
        numeric = [j for j in columns_with_gaps if j not in self._categories]
        self._fill = {
            j: _filling(rows[:, j], gaps[:, j], extraction.predictions, n_classes) for j in numeric
        }
        for j in columns_with_gaps:
            categories = extraction.categories.get(j)
            rows[gaps[:, j], j] = self._fill[j] if categories is None else len(categories)
        #: The feature whose gaps each further column tells.
        self._marked = dict(enumerate(numeric, start=self._n_features))
        self._terms = GapTerms(self._fill, self._marked, self._categories)
        rows = np.hstack([rows, gaps[:, numeric].astype(float)])
        names += [f"{names[j]} is missing" for j in numeric]
        domain = Domain.around(rows, margin, self._categories)
        self.extraction = replace(
            extraction,
            X=rows,
            settings=extraction.settings | {"feature_names": names, "domain": domain},
            categories=self._categories,
            decode=self._decode,
            no_quantities=(*numeric, *self._marked),
        )

    def _decode(self, points: np.ndarray) -> Any:
        """Points of the algorithm, as rows of the table."""
        rows = points[:, : self._n_features].copy()
        for j, values in self._categories.items():
            if values[-1] == GAP:
                rows[rows[:, j] >= len(values) - 1, j] = np.nan
        for column, j in self._marked.items():
            rows[points[:, column] >= 0.5, j] = np.nan
        return rows if self._table.decode is None else self._table.decode(rows)

    def named(self, ruleset: RuleSet) -> RuleSet:
        """The algorithm's rules as rules of the table, but for those that no row can satisfy."""
        settings = self._table.settings
        return self._terms.named(ruleset, settings["feature_names"], settings["domain"])


@dataclass(frozen=True)
class GapTerms:
    """What a table without gaps says of one with gaps, and its rules in terms of that.

    Parameters
    ----------
    fill : mapping of int to float
        What numeric features that lack values are filled with.
    marked : mapping of int to int
        Further columns, and the features whose gaps they tell.
    categories : mapping of int to tuple
        The values of categories, `GAP` for a missing one, in order.
    """

    fill: Mapping[int, float]
    marked: Mapping[int, int]
    categories: Mapping[int, tuple[Any, ...]]

    def named(self, ruleset: RuleSet, feature_names: Any, domain: Domain) -> RuleSet:
        """The algorithm's rules as rules of the table, but for those that no row can satisfy."""
        rules = []
        for rule in ruleset.rules:
            try:
                conditions = [
                    table_condition
                    for c in rule.conditions
                    if (table_condition := self._condition(c)) is not None
                ]
                rules.append(Rule(tuple(conditions), rule.output, rule.statistics, rule.weight))
            except ValueError:  # it holds for no row, as a value would be missing and known
                continue
        return ruleset.replace(rules=rules, feature_names=feature_names, domain=domain)

    def _condition(self, condition: Condition) -> Condition | None:
        """A condition in terms of the table; None if it always holds."""
        if isinstance(condition, AtLeast):
            return self._at_least(condition)
        if isinstance(condition, OneOf):
            return self._set(condition)
        assert isinstance(condition, Interval)
        j = condition.feature
        if j in self.marked:
            holds_if_known, holds_if_missing = condition.holds(
                lambda _: np.array([0.0, 1.0])
            ).tolist()
            if not (holds_if_known or holds_if_missing):
                raise _NeverHoldsError
            return (
                None
                if holds_if_known and holds_if_missing
                else Missing(self.marked[j], negated=holds_if_known)
            )
        if j not in self.fill:
            return condition
        filled = np.array([self.fill[j]])
        return replace(condition, missing=bool(condition.holds(lambda _: filled)[0]))

    def _at_least(self, condition: AtLeast) -> AtLeast | None:
        m, conditions = condition.m, []
        for part in condition.conditions:
            try:
                table_condition = self._condition(part)
            except _NeverHoldsError:
                continue
            if table_condition is None:
                m -= 1
            else:
                conditions.append(table_condition)
        if m > len(conditions):
            raise _NeverHoldsError
        return AtLeast(m, tuple(conditions)) if m > 0 else None

    def _set(self, condition: OneOf) -> Condition:
        feature, negated = condition.feature, condition.negated
        if self.categories[feature][-1] != GAP:
            return condition
        known_values = tuple(v for v in condition.values if v != GAP)
        if not known_values:
            return Missing(feature, negated=negated)
        return OneOf(feature, known_values, negated, missing=(GAP in condition.values) != negated)


class _NeverHoldsError(ValueError):
    """No row satisfies a condition."""


def known_value(value: Any) -> Any:
    """A value of a category as its table has it: None for a missing one."""
    return None if value == GAP else value


def _filling(
    column: np.ndarray, gaps: np.ndarray, predictions: np.ndarray, n_classes: int | None
) -> float:
    """The end of a column's range that missing values are most like."""
    observed = column[~gaps]
    if not len(observed):
        return 0.0
    low = observed <= np.median(observed)
    if low.all():
        return float(observed.min())

    def profile(group_predictions: np.ndarray) -> np.ndarray:
        if n_classes is None:
            return np.array([group_predictions.mean()])
        return np.bincount(group_predictions, minlength=n_classes) / len(group_predictions)

    of_known = predictions[~gaps]
    halves = profile(of_known[low]), profile(of_known[~low])
    return float(
        observed.min() if is_nearer(profile(predictions[gaps]), *halves) else observed.max()
    )


def is_nearer(missing: np.ndarray, low: np.ndarray, high: np.ndarray) -> bool:
    """Whether the predictions of rows without a value are nearer to those of low values."""
    return bool(np.abs(missing - low).sum() <= np.abs(missing - high).sum())
