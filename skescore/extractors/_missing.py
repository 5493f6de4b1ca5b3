"""Fill missing values for algorithms that do not support them, and restore them in the rules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from skescore.extractors._sharing import Sharing, once
from skescore.rules import AtLeast, Condition, Domain, Interval, Missing, OneOf, Rule, RuleSet

#: Category value that represents a missing value.
GAP = "\0missing"


class FilledTable:
    """Extraction with missing values filled in.

    A numeric column with missing values becomes two: the filled numbers, and an indicator of
    missing values (0 or 1). If the mean prediction at missing values is closer to the mean at
    values up to the median than to the mean above it, they are replaced by the minimum of the
    column, otherwise by the maximum. Rules can therefore combine them with numbers (``age ≤ 30 or
    missing``) or separate them (``age is missing``). In a categorical column, missing values are an
    additional category.

    Parameters
    ----------
    extraction : Extraction
        Rows with NaN in numeric columns or among the codes of categories.
    margin : float
        Margin of the domain, as a share of each feature's range.

    Attributes
    ----------
    extraction : Extraction
        The extraction without NaN; the indicators of missing values are the last columns.
    """

    def __init__(self, extraction: Any, margin: float) -> None:
        gaps = np.isnan(extraction.X)
        names = list(extraction.settings["feature_names"])
        has_gaps = gaps.any(axis=0)
        n_rows, self._n_features = extraction.X.shape
        self._table = extraction
        self._categories = {
            j: (*values, GAP) if has_gaps[j] else values
            for j, values in extraction.categories.items()
        }
        numeric = [j for j in np.flatnonzero(has_gaps).tolist() if j not in self._categories]
        self._fill_by_feature = once(
            Sharing.of(extraction), "fill", lambda: _fill_values(extraction, gaps, numeric)
        )
        replacements = np.zeros(self._n_features)
        replacements[numeric] = [self._fill_by_feature[j] for j in numeric]
        for j, values in extraction.categories.items():
            replacements[j] = len(values)
        # Large tables are copied only once.
        rows = np.empty((n_rows, self._n_features + len(numeric)))
        filled = rows[:, : self._n_features]
        filled[:] = extraction.X
        np.copyto(filled, replacements, where=gaps)
        rows[:, self._n_features :] = gaps[:, numeric]
        #: The feature of each indicator column.
        self._marked = dict(enumerate(numeric, start=self._n_features))
        self._terms = GapTerms(self._fill_by_feature, self._marked, self._categories)
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
        """Convert points with filled values to rows of the table."""
        rows = points[:, : self._n_features].copy()
        for j, values in self._categories.items():
            if values[-1] == GAP:
                rows[rows[:, j] >= len(values) - 1, j] = np.nan
        for column, j in self._marked.items():
            rows[points[:, column] >= 0.5, j] = np.nan
        return rows if self._table.decode is None else self._table.decode(rows)

    def restore_rules(self, ruleset: RuleSet) -> RuleSet:
        """Convert rules to rules of the table; drop those that no row satisfies."""
        settings = self._table.settings
        return self._terms.restore_rules(ruleset, settings["feature_names"], settings["domain"])


@dataclass(frozen=True)
class GapTerms:
    """Conversion of rules on a filled table to rules on the table with missing values.

    Parameters
    ----------
    fill : mapping of int to float
        Number that replaces missing values of each numeric feature.
    marked : mapping of int to int
        Feature whose missing values each indicator column marks.
    categories : mapping of int to tuple
        Ordered values of the categorical features, with `GAP` for missing values.
    """

    fill: Mapping[int, float]
    marked: Mapping[int, int]
    categories: Mapping[int, tuple[Any, ...]]

    def restore_rules(self, ruleset: RuleSet, feature_names: Any, domain: Domain) -> RuleSet:
        """Convert rules to rules on the table; drop those that no row satisfies."""
        rules = []
        for rule in ruleset.rules:
            try:
                conditions = [
                    table_condition
                    for c in rule.conditions
                    if (table_condition := self._convert_condition(c)) is not None
                ]
                rules.append(Rule(tuple(conditions), rule.output, rule.statistics, rule.weight))
            except ValueError:  # no row satisfies the rule: a value would be missing and observed
                continue
        return ruleset.replace(rules=rules, feature_names=feature_names, domain=domain)

    def _convert_condition(self, condition: Condition) -> Condition | None:
        """Convert a condition to one of the table; return None if it always holds."""
        if isinstance(condition, AtLeast):
            return self._convert_at_least(condition)
        if isinstance(condition, OneOf):
            return self._convert_one_of(condition)
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

    def _convert_at_least(self, condition: AtLeast) -> AtLeast | None:
        m, conditions = condition.m, []
        for part in condition.conditions:
            try:
                table_condition = self._convert_condition(part)
            except _NeverHoldsError:
                continue
            if table_condition is None:
                m -= 1
            else:
                conditions.append(table_condition)
        if m > len(conditions):
            raise _NeverHoldsError
        return AtLeast(m, tuple(conditions)) if m > 0 else None

    def _convert_one_of(self, condition: OneOf) -> Condition:
        feature, negated = condition.feature, condition.negated
        if self.categories[feature][-1] != GAP:
            return condition
        known_values = tuple(v for v in condition.values if v != GAP)
        if not known_values:
            return Missing(feature, negated=negated)
        return OneOf(feature, known_values, negated, missing=(GAP in condition.values) != negated)


class _NeverHoldsError(ValueError):
    """Raised for a condition that no row satisfies."""


def known_value(value: Any) -> Any:
    """Return a category value as in the table: None for the category of missing values."""
    return None if value == GAP else value


def _fill_values(extraction: Any, gaps: np.ndarray, features: Sequence[int]) -> dict[int, float]:
    """Return the number that replaces missing values of each feature."""
    n_classes = None if extraction.classes is None else len(extraction.classes)
    X, predictions = extraction.X, extraction.predictions
    return {j: _fill_value(X[:, j], gaps[:, j], predictions, n_classes) for j in features}


def _fill_value(
    column: np.ndarray, gaps: np.ndarray, predictions: np.ndarray, n_classes: int | None
) -> float:
    """Return the minimum or maximum of a column, which replaces its missing values."""
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
    """Return whether a mean prediction is at least as close to `low` as to `high`."""
    return bool(np.abs(missing - low).sum() <= np.abs(missing - high).sum())
