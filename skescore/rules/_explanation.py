"""Explanations of single predictions, with counterfactuals.

An explanation lists the rules that hold for a row, the source of the prediction, and the smallest
change found that leads to another prediction. Every reported change has been checked with
:meth:`RuleSet.predict`.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from skescore._text import listed, value_text
from skescore._validation import label_order, python_value
from skescore.rules import _prediction
from skescore.rules._conditions import AtLeast, Condition, Interval, Missing, OneOf
from skescore.rules._row_table import RowTable
from skescore.rules._rule import LinearOutput
from skescore.rules._text import feature_name, format_label, format_number, output_number

if TYPE_CHECKING:
    from skescore.rules._ruleset import RuleSet

__all__ = ["Change", "CheckedCondition", "Counterfactual", "Explanation", "MatchingRule", "explain"]


#: Numbers of changed rows that are predicted at a time, and in the whole search for pairs.
_BATCH, _COMBINED = 1 << 10, 1 << 14
#: Largest distance of a new value from the bound that it passes, as a share of the feature's range.
#: A larger distance allows values with fewer digits.
_MAX_OVERSHOOT = 0.01


@dataclass(frozen=True)
class Change:
    """Change of one feature; `before` is None for a missing value."""

    feature: str
    before: Any
    after: Any


@dataclass(frozen=True)
class Counterfactual:
    """Smallest change found that leads to another prediction.

    Attributes
    ----------
    changes : tuple of Change
        Changed features, in the order of the features.
    distance : float
        Distance from the row, see the notes of :meth:`RuleSet.explain`.
    prediction : str, int, float or bool
        Prediction of :meth:`RuleSet.predict` after the change.
    rule : int or None
        Index of the rule that predicts after the change; None for the fallback or a vote.
    rules : tuple of int
        Indices of the rules that hold after the change.
    """

    changes: tuple[Change, ...]
    distance: float
    prediction: Any
    rule: int | None
    rules: tuple[int, ...]


class _Options(NamedTuple):
    """Values that a feature may take, by distance; the first value is the current one."""

    values: np.ndarray
    costs: np.ndarray


class CounterfactualSearch:
    """Search for the smallest change of one row that changes its prediction."""

    def __init__(self, ruleset: RuleSet, table: RowTable) -> None:
        self.ruleset = ruleset
        used: set[int] = set()
        self.cuts: dict[int, set[float]] = {}
        self.lists: dict[int, set[Any]] = {}
        self.missing_tests: set[int] = set()
        for rule in ruleset.rules:
            for part in (rule.output, rule.weight):
                if isinstance(part, LinearOutput):
                    used.update(feature for feature, _ in part.terms)
            for condition in rule.conditions:
                used.update(condition.features)
                self.collect_cuts(condition)
        self.used = sorted(used)
        self.values: dict[int, Any] = {}
        for j in self.used:
            value = python_value(table.column(j)[0])
            self.values[j] = None if pd.isna(value) else value
        changeable = sorted(self.cuts.keys() | self.lists.keys() | self.missing_tests)
        self.options = {j: self.list_options(j, table) for j in changeable}

    def collect_cuts(self, condition: Condition) -> None:
        """Collect the bounds and values at which a condition may become true or false."""
        if isinstance(condition, AtLeast):
            for part in condition.conditions:
                self.collect_cuts(part)
        elif isinstance(condition, Interval):
            ends = {b for b in (condition.lower, condition.upper) if math.isfinite(b)}
            self.cuts.setdefault(condition.feature, set()).update(ends)
        elif isinstance(condition, OneOf):
            self.lists.setdefault(condition.feature, set()).update(condition.values)
        elif isinstance(condition, Missing):
            self.missing_tests.add(condition.feature)

    def list_options(self, j: int, table: RowTable) -> _Options:
        """Return the values of a feature that may change the prediction, by distance.

        A missing value may become observed, but not the other way around.
        """
        domain, listed_values = self.ruleset.domain, self.lists.get(j, set())
        if j not in self.cuts:
            current = self.values[j]
            values_to_try = listed_values | set((domain.values_of(j) if domain else None) or ())
            if not values_to_try and current is None:  # rules test only whether a value is missing
                values_to_try = {domain.lower[j] / 2 + domain.upper[j] / 2 if domain else 0.0}
            values = np.empty(1 + len(values_to_try - {current}), dtype=object)
            values[:] = [current, *sorted(values_to_try - {current}, key=label_order)]
            return _Options(values, np.minimum(np.arange(len(values)), 1.0))
        points = self.cuts[j] | {float(v) for v in listed_values if not isinstance(v, str)}
        scale = min(domain.ranges[j], sys.float_info.max) if domain else 1.0
        start = float(table.numbers(j, slice(None))[0])
        if scale == 0:  # every change of a constant feature is infinitely far
            return _Options(np.array([start]), np.zeros(1))
        boundary_values = _boundary_values(sorted(points), start, _MAX_OVERSHOOT * scale)
        points_to_try = np.array([start, *boundary_values])
        with np.errstate(over="ignore", invalid="ignore"):
            costs = np.abs(points_to_try - start) / scale
        if math.isnan(start):
            costs[:] = 1.0
        costs[0] = 0.0
        order = np.argsort(costs, kind="stable")
        order = order[np.isfinite(costs[order])]
        return _Options(points_to_try[order], costs[order])

    def table(self, changes: list[dict[int, int]]) -> RowTable:
        """Return the row after each change; a change maps features to the index of an option."""
        base = np.full(self.ruleset.n_features, None, dtype=object)
        for j, value in self.values.items():
            base[j] = value
        rows = np.tile(base, (len(changes), 1))
        for row, change in zip(rows, changes, strict=True):
            for j, option in change.items():
                row[j] = self.options[j].values[option]
        return RowTable(rows, self.ruleset.feature_names)

    def cost(self, change: dict[int, int]) -> float:
        """Return the distance of a change."""
        return float(sum(self.options[j].costs[option] for j, option in change.items()))

    def assign(self, table: RowTable) -> np.ndarray:
        """Return the index of the rule assigned to each row; -1 for the fallback or a vote."""
        if self.ruleset.voting is not None:
            return np.full(len(table), -1)
        return _prediction.assigned_rule(self.ruleset, table)

    def predicted_by_rules(self, table: RowTable) -> np.ndarray:
        """Return a mask of the rows that rules predict, not the fallback."""
        if self.ruleset.voting is None:
            return np.asarray(self.assign(table) >= 0)
        is_regression = self.ruleset.classes is None
        vote = _prediction.vote_numbers if is_regression else _prediction.class_sums
        return vote(self.ruleset, table)[1]

    def changes_prediction(self, changes: list[dict[int, int]], prediction: Any) -> np.ndarray:
        """Return whether each change leads to another prediction."""
        ruleset, changes = self.ruleset, [{}, *changes]
        table, predicted = self.table(changes), np.arange(len(changes))
        if ruleset.fallback is None or ruleset.fallback.policy == "abstain":
            # Other uncovered rows have no prediction; the first row is the one that is explained.
            predicted = np.flatnonzero(self.predicted_by_rules(table) | (predicted == 0))
            table = self.table([changes[i] for i in predicted])
        result = np.zeros(len(changes), dtype=bool)
        predictions = ruleset.predict(table)
        if ruleset.task == "classification":
            result[predicted] = [label != prediction for label in predictions.tolist()]
        else:
            result[predicted] = ~np.isclose(
                predictions, prediction, rtol=1e-9, atol=0.0, equal_nan=True
            )
            # Affine predictions nearly always differ, so they must come from other rules.
            rules_used = ruleset.match(table) if ruleset.voting else self.assign(table)[:, None]
            result[predicted] &= (rules_used != rules_used[0]).any(axis=1)
        return result[1:]

    def single_changes(self) -> list[dict[int, int]]:
        """Return all changes of a single feature."""
        return [{j: k} for j, options in self.options.items() for k in range(1, len(options.costs))]

    def rule_changes(self) -> Iterator[dict[int, int]]:
        """Yield, by rule, the smallest change that satisfies its conditions on single features."""
        for rule in self.ruleset.rules:
            satisfied: dict[int, Any] = {}
            for condition in rule.conditions:
                if isinstance(condition, Interval | OneOf | Missing):
                    values = self.options[condition.feature].values
                    holds = condition.holds(lambda _, values=values: values)  # type: ignore[misc]
                    satisfied[condition.feature] = satisfied.get(condition.feature, True) & holds
            if satisfied and all(holds.any() for holds in satisfied.values()):
                yield {j: int(holds.argmax()) for j, holds in satisfied.items() if not holds[0]}

    def nearest(self, prediction: Any) -> Counterfactual | None:
        """Return the smallest change found that leads to another prediction, or None."""
        singles = self.by_distance(self.single_changes())
        candidates = self.by_distance([*singles, *(c for c in self.rule_changes() if len(c) > 1)])
        change = self.first_hit(candidates, prediction)
        if change is None:
            side = math.isqrt(_COMBINED)
            pairs = [
                {**one, **two} for one in reversed(candidates[:side]) for two in singles[:side]
            ]
            change = self.first_hit(self.by_distance(pairs), prediction)
        if change is None:
            return None
        return self.describe(self.drop_needless_changes(change, prediction))

    def drop_needless_changes(self, change: dict[int, int], prediction: Any) -> dict[int, int]:
        """Remove unnecessary parts of a change, in descending order of distance."""
        for j in sorted(change, key=lambda j: -float(self.options[j].costs[change[j]])):
            fewer = {i: option for i, option in change.items() if i != j}
            if fewer and self.changes_prediction([fewer], prediction)[0]:
                return self.drop_needless_changes(fewer, prediction)
        return change

    def by_distance(self, changes: list[dict[int, int]]) -> list[dict[int, int]]:
        """Sort changes by distance, and equally distant ones by the number of features."""
        return sorted(changes, key=lambda change: (self.cost(change), len(change)))

    def first_hit(self, changes: list[dict[int, int]], prediction: Any) -> dict[int, int] | None:
        """Return the first change that leads to another prediction, or None."""
        for begin in range(0, len(changes), _BATCH):
            batch = changes[begin : begin + _BATCH]
            hits = np.flatnonzero(self.changes_prediction(batch, prediction))
            if len(hits):
                return batch[hits[0]]
        return None

    def describe(self, change: dict[int, int]) -> Counterfactual:
        """Return a change as a counterfactual."""
        table, names = self.table([change]), self.ruleset.feature_names
        rule = int(self.assign(table)[0])
        return Counterfactual(
            tuple(
                Change(names[j], self.values[j], python_value(self.options[j].values[option]))
                for j, option in sorted(change.items())
            ),
            self.cost(change),
            python_value(self.ruleset.predict(table)[0]),
            None if rule < 0 else rule,
            tuple(np.flatnonzero(self.ruleset.match(table)[0]).tolist()),
        )


def _boundary_values(cuts: list[float], start: float, reach: float) -> Iterator[float]:
    """Yield every cut, and for each interval between cuts its value closest to the start."""
    yield from (cut for cut in cuts if cut != start)
    for low, high in pairwise([-math.inf, *cuts, math.inf]):
        if math.isnan(start):
            upwards = math.isfinite(low)
        elif start <= low or start >= high:
            upwards = start <= low
        else:
            continue
        value = _just_above(low, high, reach) if upwards else -_just_above(-high, -low, reach)
        if low < value < high:
            yield value


def _just_above(low: float, high: float, reach: float) -> float:
    """Return a number just above `low` and below `high`, with few digits if possible."""
    room = min(reach, (high - low) / 2)
    if 1e-15 < room < 1e15:
        unit = math.ceil(-math.log10(room))
        power = 10.0 ** abs(unit)
        steps = low * power if unit > 0 else low / power
        if not math.isfinite(steps):
            return math.nextafter(low, math.inf)
        steps = math.floor(steps) + 1
        value = steps / power if unit > 0 else steps * power
        if low < value <= low + 2 * room and value < high:
            return value
    return math.nextafter(low, math.inf)


@dataclass(frozen=True)
class CheckedCondition:
    """Condition of a rule, its truth for the row, and its nested conditions."""

    text: str
    holds: bool
    parts: tuple[CheckedCondition, ...] = ()


@dataclass(frozen=True)
class MatchingRule:
    """Rule that holds for the row, with its index from 0.

    In a vote, `weight` is its weight for this row, and `votes` its contribution to each class.
    """

    index: int
    text: str
    output: Any
    weight: float | None = None
    votes: Mapping[Any, float] | None = None


@dataclass(frozen=True)
class Explanation:
    """Explanation of the prediction for one row; ``print`` displays it.

    Attributes
    ----------
    prediction : str, int, float or bool
        Prediction of :meth:`RuleSet.predict`.
    row : mapping of str to value
        Values of the features that the rules use; None for missing values.
    matching_rules : tuple of MatchingRule
        Rules that hold, in order.
    rule : int or None
        Index of the assigned rule; None for the fallback or a vote.
    reason : {"first", "purest", "vote", "nearest", "fallback"}
        Source of the prediction: the first rule that holds, the purest rule that holds, the vote of
        all rules that hold, the nearest rule, or the fallback.
    conditions : tuple of CheckedCondition
        Conditions of the assigned rule. All of them hold unless the rule is only the nearest one.
    sums : mapping of label to float, or None
        Votes per class (log odds for ``voting="logistic"``); None without a vote on classes.
    counterfactual : Counterfactual or None
        Change of the row that changes the prediction; None if none was found.
    """

    prediction: Any
    row: Mapping[str, Any]
    matching_rules: tuple[MatchingRule, ...]
    rule: int | None
    reason: str
    conditions: tuple[CheckedCondition, ...]
    sums: Mapping[Any, float] | None
    counterfactual: Counterfactual | None
    _numeric: bool = field(default=False, repr=False)

    @property
    def fallback(self) -> bool:
        """True if the fallback predicts."""
        return self.reason == "fallback"

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        number = "" if self.rule is None else f"rule {self.rule + 1}"
        yield (
            f"prediction: {self._format(self.prediction)}, "
            + {
                "first": f"by {number}, the first that holds",
                "purest": f"by {number}, the purest that holds",
                "vote": "by the vote of all rules that hold",
                "nearest": f"by {number}, the nearest, because no rule holds",
                "fallback": "by the fallback, because "
                + ("the weights add up to 0 or less" if self.matching_rules else "no rule holds"),
            }[self.reason]
        )
        if self.sums is not None and self.reason == "vote":
            sums = (f"{format_label(c)} {format_number(v)}" for c, v in self.sums.items())
            yield f"sums: {', '.join(sums)}"
        if self.matching_rules:
            yield "rules that hold:"
            yield from (f"  {rule.index + 1}. {rule.text}" for rule in self.matching_rules)
        if self.conditions:
            yield f"conditions of {number}:"
            yield from _condition_lines(self.conditions, "  ")
        counterfactual = self.counterfactual
        if counterfactual is None:
            yield "no change found that leads to another prediction"
            return
        by = "" if counterfactual.rule is None else f", by rule {counterfactual.rule + 1}"
        yield f"nearest other prediction: {self._format(counterfactual.prediction)}{by}, if"
        for change in counterfactual.changes:
            # All digits are written: a value just beyond a bound would be rounded to the bound.
            before, after = (
                format_label(value_text(value, all_digits=True))
                for value in (change.before, change.after)
            )
            yield f"  {feature_name([change.feature], 0)} were {after} instead of {before}"

    def _format(self, prediction: Any) -> str:
        return output_number(prediction) if self._numeric else format_label(prediction)


def _condition_lines(checked: tuple[CheckedCondition, ...], indent: str) -> Iterator[str]:
    for condition in checked:
        yield f"{indent}{condition.text}: {'holds' if condition.holds else 'fails'}"
        yield from _condition_lines(condition.parts, indent + "  ")


def explain(ruleset: RuleSet, x: Any) -> Explanation | list[Explanation]:
    """Explain the predictions for one or several rows; see :meth:`RuleSet.explain`."""
    rows = _rows(ruleset, x)
    if len(rows) == 1:
        return _explain_row(ruleset, rows)
    names, all_rows = list(ruleset.feature_names), slice(None)
    columns = [rows.column(j)[all_rows] for j in range(len(names))]
    cache: dict[tuple[Any, ...], Explanation] = {}
    explanations = []
    for i in range(len(rows)):
        values = tuple(python_value(column[i]) for column in columns)
        # Equal rows are explained once. None replaces NaN, because NaN is not equal to itself.
        key = tuple(None if pd.isna(value) else value for value in values)
        if key not in cache:
            cache[key] = _explain_row(ruleset, _rows(ruleset, values))
        explanations.append(cache[key])
    return explanations


def _explain_row(ruleset: RuleSet, row: RowTable) -> Explanation:
    search = CounterfactualSearch(ruleset, row)
    table = search.table([{}])
    prediction = python_value(ruleset.predict(table)[0])
    held_indices = np.flatnonzero(ruleset.match(table)[0]).tolist()
    sums = None
    if ruleset.voting is not None and ruleset.classes is not None:
        class_sums = _prediction.class_sums(ruleset, table)[0][0].tolist()
        sums = dict(zip(ruleset.classes, class_sums, strict=True))
    index = search.assign(table)[0]
    rule = None if index < 0 else int(index)
    if rule is not None:
        one = "first" if ruleset.ordered or ruleset.disjoint else "purest"
        reason = one if rule in held_indices else "nearest"
    else:
        reason = "vote" if held_indices and search.predicted_by_rules(table)[0] else "fallback"
    conditions = () if rule is None else ruleset.rules[rule].conditions
    names = ruleset.feature_names
    return Explanation(
        prediction,
        {names[j]: search.values[j] for j in search.used},
        tuple(_matching_rule(ruleset, i, table) for i in held_indices),
        rule,
        reason,
        tuple(_check_condition(ruleset, condition, table) for condition in conditions),
        sums,
        search.nearest(prediction),
        ruleset.task == "regression",
    )


def _rows(ruleset: RuleSet, x: Any) -> RowTable:
    """Convert rows to a table; a mapping, series or flat sequence is a single row."""
    names = ruleset.feature_names
    if isinstance(x, pd.Series) and all(isinstance(name, str) for name in x.index):
        x = x.to_dict()
    if isinstance(x, Mapping):
        missing = [name for name in names if name not in x]
        if missing:
            raise ValueError(
                f"x lacks the feature{'s' if len(missing) > 1 else ''} {listed(missing)} of the "
                "rules. Pass None for an unknown value."
            )
        x = [x[name] for name in names]
    if not hasattr(x, "columns") and np.ndim(x) == 1:
        values = np.empty((1, len(x)), dtype=object)
        values[0] = [None if value is pd.NA else python_value(value) for value in x]
        x = values
    table = RowTable(x, names)
    if not len(table):
        raise ValueError("x must hold at least one row to explain, got 0 rows.")
    return table


def _matching_rule(ruleset: RuleSet, index: int, table: RowTable) -> MatchingRule:
    rule, text = ruleset.rules[index], ruleset.line(index)
    output: Any = rule.output
    if isinstance(output, LinearOutput):
        output = float(output.evaluate(table.column, 1)[0])
    if ruleset.voting is None:
        return MatchingRule(index, text, output)
    weight = rule.weight
    if isinstance(weight, LinearOutput):
        # A weight that depends on a missing value counts as 0, see `class_sums`.
        weight = float(np.nan_to_num(weight.evaluate(table.column, 1)[0]))
    votes = None
    if ruleset.classes is not None:
        votes = {output: weight}
        if ruleset.voting == "probabilities":
            shares = ruleset.conclusions.class_probabilities(len(ruleset.classes))[index].tolist()
            votes = {c: weight * s for c, s in zip(ruleset.classes, shares, strict=True) if s}
    return MatchingRule(index, text, output, weight, votes)


def _check_condition(ruleset: RuleSet, condition: Condition, table: RowTable) -> CheckedCondition:
    inner = condition.conditions if isinstance(condition, AtLeast) else ()
    return CheckedCondition(
        condition.to_text(ruleset.feature_names),
        bool(condition.holds(table.column)[0]),
        tuple(_check_condition(ruleset, part, table) for part in inner),
    )
