"""The nearest change of a row that changes the answer of rules."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from skescore._validation import label_order, python_value
from skescore.rules import _answers as answers
from skescore.rules import _prediction as voting
from skescore.rules._columns import Table
from skescore.rules._conditions import AtLeast, Condition, Interval, OneOf
from skescore.rules._rule import LinearOutput
from skescore.rules._ruleset import RuleSet

#: Changed rows that are answered at a time, and in the second search altogether.
_BATCH, _COMBINED = 1 << 10, 1 << 14
#: How far beyond a bound a value may go, in ranges of its feature, to be written with few digits.
_BEYOND = 0.01


@dataclass(frozen=True)
class Change:
    """A feature that goes from one value to another; `before` is None where it is missing."""

    feature: str
    before: Any
    after: Any


@dataclass(frozen=True)
class Counterfactual:
    """The least change found that gets another answer.

    Attributes
    ----------
    changes : tuple of Change
        The features that change.
    distance : float
        Sum over the changes, each in units of its feature's range.
    answer : str, int, float or bool
        What :meth:`RuleSet.predict` answers then.
    rule : int or None
        Index of the rule that answers then; None for the fallback or a vote.
    rules : tuple of int
        Indices of the rules that hold then.
    """

    changes: tuple[Change, ...]
    distance: float
    answer: Any
    rule: int | None
    rules: tuple[int, ...]


class _Options(NamedTuple):
    """Values that a feature may go to, the nearest first; the first is the one it has."""

    values: np.ndarray
    costs: np.ndarray


class CounterfactualSearch:
    """Changes of one row."""

    def __init__(self, ruleset: RuleSet, table: Table) -> None:
        self.ruleset = ruleset
        used: set[int] = set()
        self.cuts: dict[int, set[float]] = {}
        self.lists: dict[int, set[Any]] = {}
        for rule in ruleset.rules:
            for part in (rule.output, rule.weight):
                if isinstance(part, LinearOutput):
                    used.update(feature for feature, _ in part.terms)
            for condition in rule.conditions:
                used.update(condition.features)
                self.note(condition)
        self.used = sorted(used)
        self.values: dict[int, Any] = {}
        for j in self.used:
            value = python_value(table.column(j)[0])
            self.values[j] = None if value is None or value != value else value
        changeable = sorted(self.cuts.keys() | self.lists.keys())
        self.options = {j: self.choices(j, table) for j in changeable}

    def note(self, condition: Condition) -> None:
        """Remember the bounds and values at which a condition may change."""
        if isinstance(condition, AtLeast):
            for part in condition.conditions:
                self.note(part)
        elif isinstance(condition, Interval):
            ends = {b for b in (condition.lower, condition.upper) if math.isfinite(b)}
            self.cuts.setdefault(condition.feature, set()).update(ends)
        elif isinstance(condition, OneOf):
            self.lists.setdefault(condition.feature, set()).update(condition.values)

    def choices(self, j: int, table: Table) -> _Options:
        """All values of a feature that make a difference, by their distance."""
        domain, listed_values = self.ruleset.domain, self.lists.get(j, set())
        if j not in self.cuts:
            now = self.values[j]
            known = listed_values | set((domain.values_of(j) if domain else None) or ())
            values = np.empty(1 + len(known - {now}), dtype=object)
            values[:] = [now, *sorted(known - {now}, key=label_order)]
            return _Options(values, np.minimum(np.arange(len(values)), 1.0))
        points = self.cuts[j] | {float(v) for v in listed_values if not isinstance(v, str)}
        scale = domain.ranges[j] if domain else 1.0
        start = float(table.numbers(j, slice(None))[0])
        if scale == 0:  # no change of a feature that never changed is near
            return _Options(np.array([start]), np.zeros(1))
        places = np.array([start, *_places(sorted(points), start, _BEYOND * scale)])
        with np.errstate(over="ignore", invalid="ignore"):
            costs = np.abs(places - start) / scale
        if math.isnan(start):
            costs[:] = 1.0
        costs[0] = 0.0
        order = np.argsort(costs, kind="stable")
        order = order[np.isfinite(costs[order])]
        return _Options(places[order], costs[order])

    def table(self, changes: list[dict[int, int]]) -> Table:
        """The row with each of some changes; a change gives features the number of an option."""
        base = np.full(self.ruleset.n_features, None, dtype=object)
        for j, value in self.values.items():
            base[j] = value
        rows = np.tile(base, (len(changes), 1))
        for row, change in zip(rows, changes, strict=True):
            for j, option in change.items():
                row[j] = self.options[j].values[option]
        return Table(rows, self.ruleset.feature_names)

    def cost(self, change: dict[int, int]) -> float:
        """Distance of a change."""
        return float(sum(self.options[j].costs[option] for j, option in change.items()))

    def answering(self, table: Table) -> np.ndarray:
        """Index of the rule that answers each row; -1 for the fallback or a vote."""
        if self.ruleset.voting is not None:
            return np.full(len(table), -1)
        return answers._answering_rule(self.ruleset, table)

    def by_rules(self, table: Table) -> np.ndarray:
        """Whether rules answer each row, rather than the fallback's own answer."""
        if self.ruleset.voting is None:
            return np.asarray(self.answering(table) >= 0)
        sums = voting.class_sums if self.ruleset.classes is not None else voting.numbers
        return sums(self.ruleset, table)[1]

    def others(self, changes: list[dict[int, int]], answer: Any) -> np.ndarray:
        """Whether each change gets another answer than the one given."""
        ruleset, changes = self.ruleset, [{}, *changes]
        table, kept = self.table(changes), np.arange(len(changes))
        if ruleset.fallback is None:  # rows without a rule have no answer at all
            kept = np.flatnonzero(self.by_rules(table))
            table = self.table([changes[i] for i in kept])
        result = np.zeros(len(changes), dtype=bool)
        said = ruleset.predict(table)
        if ruleset.task == "classification":
            result[kept] = [label != answer for label in said.tolist()]
        else:
            result[kept] = ~np.isclose(said, answer, rtol=1e-9, atol=0.0, equal_nan=True)
            # Affine answers always differ a little: other rules must give them.
            who = ruleset.match(table) if ruleset.voting else self.answering(table)[:, None]
            result[kept] &= (who != who[0]).any(axis=1)
        return result[1:]

    def singles(self) -> list[dict[int, int]]:
        """All changes of one feature."""
        return [{j: k} for j, options in self.options.items() for k in range(1, len(options.costs))]

    def entries(self) -> Iterator[dict[int, int]]:
        """The least change for each rule that makes its intervals and lists of values hold."""
        for rule in self.ruleset.rules:
            held: dict[int, Any] = {}
            for condition in rule.conditions:
                if isinstance(condition, Interval | OneOf):
                    values = self.options[condition.feature].values
                    holds = condition.holds(lambda _, values=values: values)  # type: ignore[misc]
                    held[condition.feature] = held.get(condition.feature, True) & holds
            if held and all(holds.any() for holds in held.values()):
                yield {j: int(holds.argmax()) for j, holds in held.items() if not holds[0]}

    def nearest(self, answer: Any) -> Counterfactual | None:
        """The least change that gets another answer."""
        singles = self.by_distance(self.singles())
        firsts = self.by_distance([*singles, *(c for c in self.entries() if len(c) > 1)])
        found = self.first(firsts, answer)
        if found is None:
            side = math.isqrt(_COMBINED)
            pairs = [{**one, **two} for one in reversed(firsts[:side]) for two in singles[:side]]
            found = self.first(self.by_distance(pairs), answer)
        if found is None:
            return None
        return self.told(self.without_needless(found, answer))

    def without_needless(self, change: dict[int, int], answer: Any) -> dict[int, int]:
        """What is left of a change without the parts, dear ones first, that it can do without."""
        for j in sorted(change, key=lambda j: -float(self.options[j].costs[change[j]])):
            fewer = {i: option for i, option in change.items() if i != j}
            if fewer and self.others([fewer], answer)[0]:
                return self.without_needless(fewer, answer)
        return change

    def by_distance(self, changes: list[dict[int, int]]) -> list[dict[int, int]]:
        """Changes with the least first; of equal ones that of fewer features."""
        return sorted(changes, key=lambda change: (self.cost(change), len(change)))

    def first(self, changes: list[dict[int, int]], answer: Any) -> dict[int, int] | None:
        """The first change that gets another answer."""
        for begin in range(0, len(changes), _BATCH):
            batch = changes[begin : begin + _BATCH]
            hits = np.flatnonzero(self.others(batch, answer))
            if len(hits):
                return batch[hits[0]]
        return None

    def told(self, change: dict[int, int]) -> Counterfactual:
        """A change in the words of the features."""
        table, names = self.table([change]), self.ruleset.feature_names
        rule = int(self.answering(table)[0])
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


def _places(cuts: list[float], start: float, reach: float) -> Iterator[float]:
    """Every cut, and of every stretch between cuts the value next to the start."""
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
    """A number between two that is near the first and, if it may, has few digits."""
    room = min(reach, (high - low) / 2)
    if 1e-15 < room < 1e15:
        unit = math.ceil(-math.log10(room))
        power = 10.0 ** abs(unit)
        steps = math.floor(low * power if unit > 0 else low / power) + 1
        value = steps / power if unit > 0 else steps * power
        if low < value <= low + 2 * room and value < high:
            return value
    return math.nextafter(low, math.inf)
