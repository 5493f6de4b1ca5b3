"""Single steps that make rules fewer or shorter, and how predictions on some rows change.

A step takes a rule out, drops one of its conditions, or puts one rule in the place of two. Which
rules hold for which rows is computed once; a step then touches only the rows that it changes.
"""

from __future__ import annotations

import heapq
import itertools
import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from skescore.rules._boxes import BoxTable, accepted_states
from skescore.rules._conditions import Condition, Interval
from skescore.rules._row_table import RowTable
from skescore.rules._rule import LinearOutput, Output, Rule, RuleStatistics
from skescore.rules._volumes import adjacent_pairs
from skescore.rules.simplification._exact import simplify_exactly
from skescore.rules.simplification._merging import Conditions, exclude, hull, priority_of, ranks_of

if TYPE_CHECKING:
    from skescore.rules._ruleset import RuleSet


#: Up to so many rules all pairs are compared; of more, only adjacent boxes are.
_MOST_COMPARED = 1000


def closest_pairs(rows: RuleRows, limit: int, alike: bool) -> list[tuple[int, int]]:
    """Pairs of rules, adjacent ones first, then those whose hulls add least."""
    indices = np.flatnonzero(rows.alive)
    codes: dict[Output, int] = {}
    code = np.array([codes.setdefault(rows.rules[i].output, len(codes)) for i in indices.tolist()])
    low, high = _unit_boxes(rows.lower[indices], rows.upper[indices])
    if len(indices) <= _MOST_COMPARED:
        one, other = np.triu_indices(len(indices), 1)
    else:
        touching = np.sort(adjacent_pairs(low, high)[:, :2], axis=1)
        one, other = np.unique(touching, axis=0).T
    apart = np.zeros(len(one))
    fits = code[one] == code[other]
    if not alike:
        numbers = rows.outputs[indices]
        known = numbers[~np.isnan(numbers)]
        spread = float(np.ptp(known)) if len(known) else 0.0
        gap = np.abs(numbers[one] - numbers[other]) / (spread or 1.0)
        fits |= ~np.isnan(gap)
        apart = np.where(np.isnan(gap), 0.0, gap)
    one, other, apart = one[fits], other[fits], apart[fits]
    joint = np.maximum(high[one], high[other]) - np.minimum(low[one], low[other])
    lengths = high - low
    extra = (joint - np.maximum(lengths[one], lengths[other])).sum(axis=1)
    differs = (low[one] != low[other]) | (high[one] != high[other])
    touches = (low[one] <= high[other]) & (low[other] <= high[one])
    adjacent = (differs.sum(axis=1) <= 1) & touches.all(axis=1)
    # Hulls that differ by rounding alone must not change the order.
    worth = np.round(extra + apart, 9)
    order = np.lexsort((other, one, worth, ~adjacent))[:limit]
    return [(int(indices[one[i]]), int(indices[other[i]])) for i in order]


def _unit_boxes(lower: np.ndarray, upper: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Boxes in units of the range of all finite bounds; free sides reach a bit beyond."""
    bounds = np.concatenate([lower, upper])
    finite = np.isfinite(bounds)
    least = np.where(finite, bounds, np.inf).min(axis=0, initial=np.inf)
    most = np.where(finite, bounds, -np.inf).max(axis=0, initial=-np.inf)
    known = least < most
    # Halves, as the range of numbers near the largest float is none itself.
    start = np.where(known, least, 0.0) / 2
    length = np.where(known, most, 1.0) / 2 - start
    length[length == 0] = 1.0
    with np.errstate(over="ignore"):
        low, high = (np.clip((bound / 2 - start) / length, -0.1, 1.1) for bound in (lower, upper))
    return low, high


#: What a linear output gives where a value is missing: a NaN, but not that of rows without a rule.
_UNKNOWN = np.array([0x7FF8000000000001], dtype=np.uint64).view(np.float64)[0]


def without_rule(values: np.ndarray) -> np.ndarray:
    """Which values are those of rows without a rule, and not answers that nobody knows."""
    bits = np.ascontiguousarray(values, dtype=np.float64).view(np.uint64)
    return np.asarray(np.isnan(values) & ((bits & 1) == 0))


class Widened:
    """Rules that may take the place of those at `indices`, and whether they meet any other.

    What was found is kept; after steps only the rules that they have changed are looked at
    again.
    """

    def __init__(self, rows: RuleRows, news: Sequence[Rule], indices: tuple[int, ...]) -> None:
        self._rows = rows
        self._boxes = BoxTable.from_intervals([n.intervals for n in news], rows.ruleset.n_features)
        self._others = [new.non_intervals for new in news]
        self._gaps = gaps_of(self._boxes, self._others)
        self._places = list(indices)
        self._seen = 0
        self._apart: np.ndarray | None = None

    def sides(self, number: int) -> tuple[np.ndarray, np.ndarray]:
        """Bounds of one of them."""
        return self._boxes.lower[number], self._boxes.upper[number]

    def apart(self) -> np.ndarray:
        """Which of them meet no rule but those whose place they take."""
        changes = self._rows.changes
        if self._apart is None:
            self._start, self._stop = cuts(self._boxes)
            changed = list(range(len(self._rows.rules)))
            self._met = np.zeros((len(self._boxes), len(changed)), dtype=bool)
        elif self._seen == len(changes):
            return self._apart
        else:
            changed = sorted(set(changes[self._seen :]))
        sides = self._start, self._stop, self._gaps
        self._met[:, changed] = self._rows.meets(sides, self._others, changed)
        self._met[:, self._places] = False
        self._seen = len(changes)
        self._apart = np.asarray(~self._met.any(axis=1))
        return self._apart


def cuts(boxes: BoxTable) -> tuple[np.ndarray, np.ndarray]:
    """Boxes as ``start <= x < stop``, with free sides as infinity."""
    start, stop = boxes.half_open_bounds()
    return start, np.where(boxes.upper == np.inf, np.inf, stop)


def gaps_of(boxes: BoxTable, others: Sequence[Conditions]) -> np.ndarray:
    """Whether boxes hold numbers, and missing values, along each feature.

    Shape (n_boxes, n_features, 2).
    """
    return np.stack(accepted_states(boxes, others), axis=-1)


_NO_ROWS = np.empty(0, dtype=np.intp)


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """One step: `new` stands in the place of the rule `kept`, and the rule `lost` goes.

    Parameters
    ----------
    old : tuple of Rule
        The rules whose place it takes, which tell whether it is out of date.
    kept, lost : int or None
        Places of rules in the set that the steps began with.
    new : Rule or None
        The new rule.
    rows : ndarray of int
        Rows that the new rule holds for; where only a condition is dropped, the further ones.
    sides : tuple of ndarray of float, shape (n_features,)
        Lower and upper bounds of the new rule; none if there is none.
    """

    old: tuple[Rule, ...]
    kept: int | None
    lost: int | None
    new: Rule | None
    rows: np.ndarray = field(default_factory=lambda: _NO_ROWS)
    sides: tuple[np.ndarray, ...] = ()

    @property
    def indices(self) -> tuple[int, ...]:
        """The indices of the old rules."""
        return tuple(index for index in (self.kept, self.lost) if index is not None)

    @property
    def saved(self) -> int:
        """Rules and literals that there are less to read."""
        before = sum(1 + rule.n_literals for rule in self.old)
        return before - (0 if self.new is None else 1 + self.new.n_literals)


class RuleRows:
    """Rules in the making on some rows.

    Parameters
    ----------
    ruleset : RuleSet
        The rules to begin with.
    table : RowTable
        The rows.

    Attributes
    ----------
    rules : list of Rule
        The rules by their first index; those that are gone stay in the list.
    alive : ndarray of bool, shape (n_rules,)
        Which of them are not gone.
    assigned : ndarray of int, shape (n_rows,)
        Place of the assigned rule, -1 for none.
    values : ndarray of float, shape (n_rows,)
        What it predicts: a number, or the index of a class; NaN without a rule.
    merged_into : ndarray of int, shape (n_rules,)
        Place of the rule that each has become a part of, -1 for those taken out.
    """

    def __init__(self, ruleset: RuleSet, table: RowTable) -> None:
        self.ruleset = ruleset
        self.table = table
        self.rules = list(ruleset.rules)
        self.alive = np.ones(len(self.rules), dtype=bool)
        self.merged_into = np.arange(len(self.rules))
        self.holds = np.ascontiguousarray(ruleset.match(table).T)
        self.lower, self.upper = ruleset.boxes.lower.copy(), ruleset.boxes.upper.copy()
        self._start, self._stop = cuts(ruleset.boxes)
        self._gaps = gaps_of(ruleset.boxes, [rule.non_intervals for rule in self.rules])
        self.by_priority = not (ruleset.ordered or ruleset.disjoint)
        self._codes = {label: i for i, label in enumerate(ruleset.classes or ())}
        self._priority = np.array([self._priority_of(r) for r in self.rules], float).reshape(-1, 2)
        self.rank = ranks_of(self._priority, self.by_priority)
        self.assigned = ruleset.assign(table)
        self.outputs = np.array([*map(self._number, self.rules), np.nan])
        self.linear = {
            i: self._line(rule.output)
            for i, rule in enumerate(self.rules)
            if isinstance(rule.output, LinearOutput)
        }
        self.values = self._values_of(np.arange(len(table)), self.assigned)
        self._drops: dict[int, tuple[list[Step], Widened]] = {}
        self._hulls: dict[tuple[int, int], tuple[Rule, np.ndarray, Widened]] = {}
        #: Places whose rules have changed, in the order of steps taken.
        self.changes: list[int] = []

    def _priority_of(self, rule: Rule) -> tuple[float, float]:
        return priority_of(rule, self._codes.get(rule.output))

    @property
    def indices(self) -> list[int]:
        """The rules that are not gone."""
        return np.flatnonzero(self.alive).tolist()

    def result(self, step: Step | None = None) -> RuleSet:
        """The rules as they stand, or as they would stand after a step."""
        rules = []
        for index in self.indices:
            if step is not None and index == step.kept and step.new is not None:
                rules.append(step.new)
            elif step is None or index != step.lost:
                rules.append(self.rules[index])
        return self.ruleset.replace(rules=rules)

    def _number(self, rule: Rule) -> float:
        if isinstance(rule.output, LinearOutput):
            return np.nan
        return float(self._codes[rule.output] if self._codes else rule.output)

    def _line(self, output: LinearOutput) -> np.ndarray:
        every = slice(None)
        line = output.evaluate(lambda j: self.table.numbers(j, every), len(self.table))
        return np.where(np.isnan(line), _UNKNOWN, line)

    def _values_of(self, rows: np.ndarray, assigned: np.ndarray) -> np.ndarray:
        values = self.outputs[assigned]
        for i, line in self.linear.items():
            own = assigned == i
            values[own] = line[rows[own]]
        return values

    def _next(self, rows: np.ndarray, after: int, leave_out: Sequence[int]) -> np.ndarray:
        """The rule that predicts rows behind a rank, some left out; -1 for none."""
        if not len(rows):
            return _NO_ROWS
        behind = self.alive & (self.rank > after)
        behind[list(leave_out)] = False
        indices = np.flatnonzero(behind)
        if not len(indices):
            return np.full(len(rows), -1)
        indices = indices[np.argsort(self.rank[indices])]
        held = self.holds[np.ix_(indices, rows)]
        first = held.argmax(axis=0)
        return np.where(held[first, np.arange(len(rows))], indices[first], -1)

    def effect(self, step: Step) -> tuple[np.ndarray, np.ndarray]:
        """The rows that a step may assign otherwise, and the index of their rule then."""
        if step.new is None:
            assert step.lost is not None
            rows = np.flatnonzero(self.assigned == step.lost)
            return rows, self._next(rows, int(self.rank[step.lost]), (step.lost,))
        assert step.kept is not None
        rank = np.append(self._rank_after(step), len(self.rank))
        index, rows = rank[step.kept], step.rows
        rows = rows[rank[self.assigned[rows]] > index]
        if step.lost is None:
            return rows, np.full(len(rows), step.kept)
        rows = rows[(self.assigned[rows] != step.kept) & (self.assigned[rows] != step.lost)]
        parts, assignments = [rows], [np.full(len(rows), step.kept)]
        same = all(old.output == step.new.output for old in step.old)
        for part in step.indices:
            own = np.flatnonzero(self.assigned == part)
            then = np.full(len(own), step.kept)
            if index > self.rank[part]:  # others may come before it now
                following = self._next(own, int(self.rank[part]), step.indices)
                then = np.where(rank[following] < index, following, then)
            changed = np.flatnonzero((then != step.kept) | (not same))
            parts.append(own[changed])
            assignments.append(then[changed])
        return np.concatenate(parts), np.concatenate(assignments)

    def _rank_after(self, step: Step) -> np.ndarray:
        if not self.by_priority or step.new is None:
            return self.rank
        priority = self._priority.copy()
        priority[step.kept] = self._priority_of(step.new)
        return ranks_of(priority, True)

    def new_values(self, step: Step, rows: np.ndarray, assigned: np.ndarray) -> np.ndarray:
        """What is predicted on the rows of :meth:`effect` after the step."""
        kept = step.kept
        if kept is None or step.new is None or step.new.output == self.rules[kept].output:
            return self._values_of(rows, assigned)
        self._set_output(kept, step.new)
        values = self._values_of(rows, assigned)
        self._set_output(kept, self.rules[kept])
        return values

    def _set_output(self, index: int, rule: Rule) -> None:
        self.outputs[index] = self._number(rule)
        self.linear.pop(index, None)
        if isinstance(rule.output, LinearOutput):
            self.linear[index] = self._line(rule.output)

    def effects(self, steps: Sequence[Step]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The effects of steps that change no output: number of the step, row and new value."""
        numbers: list[np.ndarray] = [_NO_ROWS]
        rows: list[np.ndarray] = [_NO_ROWS]
        assignments: list[np.ndarray] = [_NO_ROWS]
        widened = [i for i, step in enumerate(steps) if step.new is not None and step.lost is None]
        if widened:  # the many steps that drop a condition, all at once
            gains = [steps[i].rows for i in widened]
            number = np.repeat(widened, [len(gain) for gain in gains])
            kept = np.array([step.kept if step.lost is None else -1 for step in steps])[number]
            row = np.concatenate(gains)
            ranks = np.append(self.rank, len(self.rank))
            wins = ranks[self.assigned[row]] > self.rank[kept]
            numbers.append(number[wins])
            rows.append(row[wins])
            assignments.append(kept[wins])
        for i, step in enumerate(steps):
            if step.new is None or step.lost is not None:
                row, assigned = self.effect(step)
                numbers.append(np.full(len(row), i))
                rows.append(row)
                assignments.append(assigned)
        row = np.concatenate(rows)
        return np.concatenate(numbers), row, self._values_of(row, np.concatenate(assignments))

    def is_current(self, step: Step) -> bool:
        """Whether the rules of a step are still those that it was made for."""
        return all(
            self.alive[index] and any(self.rules[index] is old for old in step.old)
            for index in step.indices
        )

    def removal(self, index: int) -> Step:
        """The step that takes a rule out."""
        return Step((self.rules[index],), None, index, None)

    def drops(self, indices: Sequence[int]) -> list[Step]:
        """The steps that take a bound or another condition away from one of the rules."""
        steps: list[Step] = []
        for index in indices:
            if index not in self._drops:
                made = list(self._drops_of(index))
                widened = Widened(self, [new for step in made if (new := step.new)], (index,))
                made = [replace(step, sides=widened.sides(i)) for i, step in enumerate(made)]
                self._drops[index] = made, widened
            made, widened = self._drops[index]
            if self.ruleset.disjoint:
                steps += itertools.compress(made, widened.apart())
            else:
                steps += made
        return steps

    def merges(self, limit: int, alike: bool) -> list[Step]:
        """The steps that put one rule in the place of two, the most promising ones first."""
        steps = []
        for one, other in closest_pairs(self, limit, alike):
            if (one, other) not in self._hulls:
                made = hull(self.rules[one], self.rules[other])
                held = np.flatnonzero(self._holds(made.conditions))
                self._hulls[one, other] = made, held, Widened(self, [made], (one, other))
            new, rows, widened = self._hulls[one, other]
            if self.ruleset.disjoint and not widened.apart()[0]:
                continue
            sides = widened.sides(0)
            if self.rules[one].output != self.rules[other].output:
                new = replace(new, output=self._joint_output(one, other))
            steps.append(Step((self.rules[one], self.rules[other]), one, other, new, rows, sides))
            # Where overlaps do not decide by order, either index is as good; but for ties.
            by_order = self.ruleset.ordered and not self.ruleset.disjoint
            if by_order or self._ties(new, one, other):
                steps.append(
                    Step((self.rules[one], self.rules[other]), other, one, new, rows, sides)
                )
        return steps

    def _ties(self, new: Rule, one: int, other: int) -> bool:
        """Whether the order decides between a new rule and one that stands between its indices."""
        between = slice(min(one, other) + 1, max(one, other))
        equal = (self._priority[between] == self._priority_of(new)).all(axis=1)
        return self.by_priority and bool((equal & self.alive[between]).any())

    def _joint_output(self, one: int, other: int) -> float:
        own = (self.assigned == one) | (self.assigned == other)
        return float(self.values[own].mean() if own.any() else self.outputs[[one, other]].mean())

    def allowed(self, steps: list[Step]) -> list[Step]:
        """Those of some steps with a new rule after which disjoint rules still are."""
        if not self.ruleset.disjoint or not steps:
            return steps
        return [
            step
            for step in steps
            if step.new is None or Widened(self, [step.new], step.indices).apart()[0]
        ]

    def meets(
        self,
        sides: tuple[np.ndarray, np.ndarray, np.ndarray],
        others: Sequence[Conditions],
        indices: Sequence[int],
    ) -> np.ndarray:
        """Which of some rules may hold together with boxes, shape (n_boxes, n_places).

        The sides are where the boxes start and stop, and what ``gaps_of`` tells of them.
        """
        start, stop, gaps = sides
        met = np.zeros((len(start), len(indices)), dtype=bool)
        living = np.flatnonzero(self.alive[indices])
        at = np.asarray(indices)[living]
        overlap = (self._start[at] < stop[:, None]) & (self._stop[at] > start[:, None])
        known, missing = np.moveaxis(self._gaps[at] & gaps[:, None], -1, 0)
        overlap = (overlap & known) | missing
        met[:, living] = overlap.all(axis=2)
        for i, j in np.argwhere(met).tolist() if any(others) else ():
            met[i, j] = not exclude(others[i], self.rules[indices[j]].non_intervals)
        return met

    def _holds(self, conditions: Sequence[Condition]) -> np.ndarray:
        result = np.ones(len(self.table), dtype=bool)
        for condition in conditions:
            result &= self.table.holds(condition)
        return result

    def _drops_of(self, index: int) -> Iterator[Step]:
        rule = self.rules[index]
        literals = [literal for c in rule.conditions for literal in _literals(c)]
        fails = {literal: ~self._holds((literal,)) for literal in literals}
        total = np.zeros(len(self.table), dtype=np.intp)
        for failing in fails.values():
            total += failing
        near = np.flatnonzero((total == 1) | (total == 2))
        total = total[near]
        for conditions, without in _shortened(rule.conditions):
            missing = np.zeros(len(near), dtype=np.intp)
            for literal in without:
                missing += fails[literal][near]
            new = replace(rule, conditions=conditions)
            yield Step((rule,), index, None, new, near[missing == total])

    def take(self, step: Step) -> None:
        """Take a step."""
        rows, assigned = self.effect(step)
        values = self.new_values(step, rows, assigned)
        rank = self._rank_after(step)
        if step.lost is not None:
            self.alive[step.lost] = False
            self.holds[step.lost] = False
            self.merged_into[self.merged_into == step.lost] = -1 if step.kept is None else step.kept
            self.assigned[self.assigned == step.lost] = -1 if step.kept is None else step.kept
        if step.new is not None and step.kept is not None:
            self.holds[step.kept, step.rows] = True
            self.rules[step.kept] = step.new
            self._priority[step.kept] = self._priority_of(step.new)
            self._set_output(step.kept, step.new)
            box = BoxTable.from_intervals([step.new.intervals], self.ruleset.n_features)
            self.lower[step.kept], self.upper[step.kept] = box.lower[0], box.upper[0]
            (self._start[step.kept],), (self._stop[step.kept],) = cuts(box)
            (self._gaps[step.kept],) = gaps_of(box, [step.new.non_intervals])
        self.rank = rank
        self.assigned[rows] = assigned
        self.values[rows] = values
        self.changes += step.indices
        for index in step.indices:
            self._drops.pop(index, None)
        gone = set(step.indices)
        self._hulls = {pair: made for pair, made in self._hulls.items() if not gone & {*pair}}


def _literals(condition: Condition) -> tuple[Condition, ...]:
    """The comparisons that a condition is made of."""
    if (
        isinstance(condition, Interval)
        and condition.lower > -math.inf
        and condition.upper < math.inf
    ):
        return replace(condition, upper=math.inf), replace(condition, lower=-math.inf)
    return (condition,)


def _shortened(
    conditions: tuple[Condition, ...],
) -> Iterator[tuple[tuple[Condition, ...], tuple[Condition, ...]]]:
    """A premise without each of its comparisons and conditions, and what each time is missing."""
    for i, condition in enumerate(conditions):
        before, after = conditions[:i], conditions[i + 1 :]
        literals = _literals(condition)
        if len(literals) == 2:
            from_below, from_above = literals
            yield (*before, from_above, *after), (from_below,)
            yield (*before, from_below, *after), (from_above,)
        yield (*before, *after), literals


#: Pairs of rules that are looked at for a merge at a time, nearest ones first.
_PAIRS = 500


def simplify_on_rows(ruleset: RuleSet, table: RowTable, tolerance: float) -> RuleSet:
    """Take the steps that cost few enough predictions on the rows, the cheapest first."""
    # Rows may lie anywhere, so nothing is taken for granted of the domain here.
    rows = RuleRows(_exactly_simplified(ruleset, table), table)
    first = rows.assigned.copy()
    budget = _ErrorBudget(rows, tolerance)
    going_on = True
    while going_on:
        _take_what_is_free(rows, budget)
        going_on = tolerance > 0 and _spend(rows, budget)
    due = np.append(rows.merged_into, -1)[first]
    moved = due != rows.assigned
    stale = {*due[moved].tolist(), *rows.assigned[moved].tolist()}
    result = _with_row_counts(
        rows.result(),
        np.append(np.cumsum(rows.alive) - 1, -1)[rows.assigned],
        [number for number, index in enumerate(rows.indices) if index in stale],
    )
    return _exactly_simplified(result, table)


def _exactly_simplified(ruleset: RuleSet, table: RowTable) -> RuleSet:
    """The same predictions everywhere, with statistics that fit the rows."""
    short = simplify_exactly(ruleset, None)
    if short is ruleset:
        return short
    assigned_before, then = ruleset.assign(table), short.assign(table)
    # Statistics that were not added up are still those of the rules that they came from.
    known: dict[int, list[int]] = {}
    for i, rule in enumerate(ruleset.rules):
        known.setdefault(id(rule.statistics), []).append(i)
    stale = []
    for i, rule in enumerate(short.rules):
        own, givers = then == i, known.get(id(rule.statistics), [])
        if givers and not any(np.array_equal(own, assigned_before == giver) for giver in givers):
            stale.append(i)
    return _with_row_counts(short, then, stale)


def _with_row_counts(ruleset: RuleSet, assigned: np.ndarray, stale: list[int]) -> RuleSet:
    """Give some rules the number of rows assigned to them, and nothing else that was seen.

    Where statistics decide who predicts they stay as they are.
    """
    if not stale or not (ruleset.ordered or ruleset.disjoint):
        return ruleset
    rules = list(ruleset.rules)
    n_rows = np.bincount(assigned[assigned >= 0], minlength=len(rules)).tolist()
    for i in stale:
        if rules[i].statistics is not None:
            rules[i] = replace(rules[i], statistics=RuleStatistics(n_rows[i]))
    return ruleset.replace(rules=rules)


class _ErrorBudget:
    """What the steps taken have cost: changed predictions, in units of one row.

    A changed label costs 1, and so does a row that loses its rule or gets one. A changed number
    costs its square over the mean square deviation of the predictions before, so that the mean over
    all rows is 1 - R²; if the row loses its rule or gets one, it costs at least 1.
    """

    def __init__(self, rows: RuleRows, tolerance: float) -> None:
        self.rows = rows
        self.tolerance = tolerance
        self.original = rows.values.copy()
        self.costs = np.zeros(len(self.original))
        fallback, is_numeric = rows.ruleset.fallback, rows.ruleset.task == "regression"
        self.by_nearest = fallback is not None and fallback.policy == "nearest"
        if self.by_nearest:
            self.predicted = rows.ruleset.predict(rows.table)
        #: What rows without a rule are told; NaN where that is nothing, or for the nearest rule.
        self.instead = math.nan
        if is_numeric and fallback is not None and fallback.policy == "default":
            self.instead = float(fallback.output)
        if is_numeric:
            self.before = self.predicted if self.by_nearest else self._told(self.original)
            self.part, self.scale, self.mean_square = self._mean_square()

    def _told(self, values: np.ndarray) -> np.ndarray:
        return np.where(without_rule(values), self.instead, values)

    def _mean_square(self) -> tuple[float, float, float]:
        """What keeps differences and squares from overflowing, and the mean square in its units."""
        known = self.before[np.isfinite(self.before)]
        if not len(known):
            return 1.0, 1.0, 0.0
        part = (
            1.0 if np.abs(known).max() < sys.float_info.max / len(known) / 2 else 0.25 / len(known)
        )
        deviation = known * part - (known * part).mean()
        scale = float(np.abs(deviation).max()) or 1.0
        # Rows that are told nothing add nothing, as they do to the costs.
        return part, scale, float(np.square(deviation / scale).sum() / len(self.before))

    def _costs_of(
        self, rows: np.ndarray, new: np.ndarray, told: np.ndarray | None = None
    ) -> np.ndarray:
        """Costs of new values on some rows; `told` are predictions, by the nearest rule as well."""
        old = self.original[rows]
        lacks, lacked = without_rule(new), without_rule(old)
        turned = lacks != lacked
        if self.rows.ruleset.task == "classification":
            return np.where(lacks | lacked, turned, new != old).astype(float)
        told = self._told(new) if told is None else told
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            before = self.before[rows]
            square = np.square((told * self.part - before * self.part) / self.scale)
            same = told == before
            # The least difference costs something, however far the predictions reach.
            square = np.maximum(square, sys.float_info.min)
            unknown, was_unknown = np.isnan(told), np.isnan(self.before[rows])
            numbers = np.where(same | (unknown & was_unknown), 0.0, square / self.mean_square)
            numbers = np.where(unknown ^ was_unknown, 1.0, numbers)
        numbers = np.where(lacks & lacked, 0.0, numbers)
        return np.where(turned, np.fmax(numbers, 1.0), numbers)

    def cost(self, step: Step) -> float:
        """What a step costs; negative if it brings predictions back."""
        rows, assigned = self.rows.effect(step)
        new = self.rows.new_values(step, rows, assigned)
        return float(self._costs_of(rows, new).sum() - self.costs[rows].sum())

    def allows(self, cost: float) -> bool:
        """Whether a cost is within the tolerance."""
        return bool((self.costs.sum() + cost) / len(self.costs) <= self.tolerance)

    def take(self, step: Step) -> bool:
        """Take a step, unless the nearest rules of rows without one stand in its way."""
        rows, assigned = self.rows.effect(step)
        values = self.rows.values.copy()
        values[rows] = self.rows.new_values(step, rows, assigned)
        costs = self._costs_by_nearest(step, values) if self.by_nearest else None
        if costs is not None:
            if costs.mean() > self.tolerance:
                return False
            self.costs = costs
        else:
            self.costs[rows] = self._costs_of(rows, values[rows])
        self.rows.take(step)
        return True

    def _costs_by_nearest(self, step: Step, values: np.ndarray) -> np.ndarray | None:
        """What all rows cost after a step by the nearest rules; None if the plain costs hold."""
        alone = without_rule(self.original)
        is_label = self.rows.ruleset.task == "classification"
        if not (alone if is_label else alone | without_rule(values)).any():
            return None
        told = self.rows.result(step).predict(self.rows.table)
        if not (told[alone] == self.predicted[alone]).all():
            return np.full(len(values), np.inf)
        return self._costs_of(np.arange(len(values)), values, None if is_label else told)


def _take_what_is_free(rows: RuleRows, budget: _ErrorBudget) -> None:
    progress = True
    while progress:
        progress = False
        for index in rows.indices:
            if len(rows.indices) > 1:
                progress |= _take_if_free(budget, rows.removal(index))
        for step in rows.merges(_PAIRS, alike=True):
            fits = rows.is_current(step) and rows.allowed([step])
            progress |= bool(fits) and _take_if_free(budget, step)
        for index in rows.indices:
            shortened = True
            while shortened:
                steps = sorted(rows.drops([index]), key=lambda step: -step.saved)
                shortened = any(_take_if_free(budget, step) for step in steps)
                progress |= shortened


def _take_if_free(budget: _ErrorBudget, step: Step) -> bool:
    return budget.cost(step) <= 0 and budget.take(step)


def _spend(rows: RuleRows, budget: _ErrorBudget) -> bool:
    """Take the steps that save most for what they cost, as long as the tolerance allows."""
    queue: list[tuple[float, int, Step]] = []
    number = 0

    def offer(steps: list[Step]) -> None:
        nonlocal number
        for step in steps:
            cost = budget.cost(step)
            if budget.allows(cost):
                number += 1
                worth = math.inf if cost <= 0 else step.saved / cost
                heapq.heappush(queue, (-worth, number, step))

    offer([rows.removal(index) for index in rows.indices])
    offer(rows.merges(_PAIRS, alike=rows.ruleset.task == "classification"))
    offer(rows.drops(rows.indices))
    taken = False
    while queue:
        promised, at, step = heapq.heappop(queue)
        if not rows.is_current(step) or (step.new is None and len(rows.indices) == 1):
            continue
        if step.new is not None and not rows.allowed([step]):
            continue
        cost = budget.cost(step)
        worth = -math.inf if cost <= 0 else -step.saved / cost
        if not budget.allows(cost):
            continue
        if worth > promised and queue and worth > queue[0][0]:
            heapq.heappush(queue, (worth, at, step))  # earlier steps have made it dearer
        elif budget.take(step):
            taken = True
            if step.kept is not None:
                offer([rows.removal(step.kept), *rows.drops([step.kept])])
    return taken
