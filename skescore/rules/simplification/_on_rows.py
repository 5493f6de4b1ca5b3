"""Greedy simplification of rules with a tolerance on given rows.

A step removes a rule, drops one of its conditions, or merges two rules. The matrix of rows and
rules that hold is computed once. Evaluating a step reads only the rows that it reassigns.
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
from skescore.rules.simplification._merging import (
    Conditions,
    are_exclusive,
    hull,
    priority_of,
    ranks_of,
)

if TYPE_CHECKING:
    from skescore.rules._ruleset import RuleSet


#: Largest number of rules for which all pairs are compared; with more rules, only adjacent boxes.
_MAX_COMPARED_RULES = 1000


def closest_pairs(rows: RuleRows, limit: int, same_output: bool) -> list[tuple[int, int]]:
    """Return pairs to merge: adjacent boxes first, then by growth of the hull and output gap."""
    indices = np.flatnonzero(rows.alive)
    codes: dict[Output, int] = {}
    code = np.array([codes.setdefault(rows.rules[i].output, len(codes)) for i in indices.tolist()])
    low, high = _unit_boxes(rows.lower[indices], rows.upper[indices])
    if len(indices) <= _MAX_COMPARED_RULES:
        one, other = np.triu_indices(len(indices), 1)
    else:
        touching = np.sort(adjacent_pairs(low, high)[:, :2], axis=1)
        one, other = np.unique(touching, axis=0).T
    output_gap = np.zeros(len(one))
    is_candidate = code[one] == code[other]
    if not same_output:
        numbers = rows.outputs[indices]
        finite_outputs = numbers[~np.isnan(numbers)]
        spread = float(np.ptp(finite_outputs)) if len(finite_outputs) else 0.0
        gap = np.abs(numbers[one] - numbers[other]) / (spread or 1.0)
        is_candidate |= ~np.isnan(gap)
        output_gap = np.where(np.isnan(gap), 0.0, gap)
    one, other, output_gap = one[is_candidate], other[is_candidate], output_gap[is_candidate]
    hull_lengths = np.maximum(high[one], high[other]) - np.minimum(low[one], low[other])
    lengths = high - low
    added_length = (hull_lengths - np.maximum(lengths[one], lengths[other])).sum(axis=1)
    differs = (low[one] != low[other]) | (high[one] != high[other])
    touches = (low[one] <= high[other]) & (low[other] <= high[one])
    adjacent = (differs.sum(axis=1) <= 1) & touches.all(axis=1)
    # Rounding errors of the hulls must not change the order.
    distance = np.round(added_length + output_gap, 9)
    order = np.lexsort((other, one, distance, ~adjacent))[:limit]
    return [(int(indices[one[i]]), int(indices[other[i]])) for i in order]


def _unit_boxes(lower: np.ndarray, upper: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Scale boxes by the range of all finite bounds; unbounded sides extend 10 % beyond it."""
    bounds = np.concatenate([lower, upper])
    finite = np.isfinite(bounds)
    smallest = np.where(finite, bounds, np.inf).min(axis=0, initial=np.inf)
    largest = np.where(finite, bounds, -np.inf).max(axis=0, initial=-np.inf)
    has_range = smallest < largest
    # Numbers are halved, because the range of numbers near the largest float would overflow.
    start = np.where(has_range, smallest, 0.0) / 2
    length = np.where(has_range, largest, 1.0) / 2 - start
    length[length == 0] = 1.0
    with np.errstate(over="ignore"):
        low, high = (np.clip((bound / 2 - start) / length, -0.1, 1.1) for bound in (lower, upper))
    return low, high


#: Value of a linear output with a missing feature: a NaN other than that of uncovered rows.
_UNKNOWN = np.array([0x7FF8000000000001], dtype=np.uint64).view(np.float64)[0]


def mark_uncovered(values: np.ndarray) -> np.ndarray:
    """Return a mask of the values of uncovered rows; unknown values of linear outputs are False."""
    bits = np.ascontiguousarray(values, dtype=np.float64).view(np.uint64)
    return np.asarray(np.isnan(values) & ((bits & 1) == 0))


class Generalizations:
    """Candidates for replacing the rules at `indices`, with a cached test of disjointness.

    After steps, only the rules that they changed are tested again.
    """

    def __init__(self, rows: RuleRows, new_rules: Sequence[Rule], indices: tuple[int, ...]) -> None:
        self._rows = rows
        self._boxes = BoxTable.from_intervals(
            [n.intervals for n in new_rules], rows.ruleset.n_features
        )
        self._non_intervals = [new.non_intervals for new in new_rules]
        self._accepted = accepted_by(self._boxes, self._non_intervals)
        self._replaced = list(indices)
        self._n_changes = 0
        self._disjoint: np.ndarray | None = None

    def sides(self, number: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the lower and upper bounds of one candidate."""
        return self._boxes.lower[number], self._boxes.upper[number]

    def are_disjoint(self) -> np.ndarray:
        """Return a mask of the candidates that overlap no rule except the one they replace."""
        changes = self._rows.changes
        if self._disjoint is None:
            self._start, self._stop = half_open_bounds(self._boxes)
            changed = list(range(len(self._rows.rules)))
            self._overlaps = np.empty((len(self._boxes), len(changed)), dtype=bool)
        elif self._n_changes == len(changes):
            return self._disjoint
        else:
            changed = sorted(set(changes[self._n_changes :]))
        sides = self._start, self._stop, self._accepted
        self._overlaps[:, changed] = self._rows.overlaps(sides, self._non_intervals, changed)
        self._overlaps[:, self._replaced] = False
        self._n_changes = len(changes)
        self._disjoint = np.asarray(~self._overlaps.any(axis=1))
        return self._disjoint


def half_open_bounds(boxes: BoxTable) -> tuple[np.ndarray, np.ndarray]:
    """Return boxes as ``start <= x < stop``, with infinite bounds for unbounded sides."""
    start, stop = boxes.half_open_bounds()
    return start, np.where(boxes.upper == np.inf, np.inf, stop)


def accepted_by(boxes: BoxTable, premises: Sequence[Conditions]) -> np.ndarray:
    """Return masks of accepted observed and missing values, shape (n_rules, n_features, 2)."""
    return np.stack(accepted_states(boxes, premises), axis=-1)


_NO_ROWS = np.empty(0, dtype=np.intp)


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """Step of the simplification, which replaces a rule by `new`, removes another rule, or both.

    Parameters
    ----------
    old : tuple of Rule
        The rules when the step was created. The step is outdated if one of them has changed.
    replaced, removed : int or None
        Indices of the replaced and the removed rule in the initial set.
    new : Rule or None
        The new rule.
    rows : ndarray of int
        Rows for which the new rule holds. If a condition is dropped, only the additional rows.
    sides : tuple of ndarray of float, shape (n_features,)
        Lower and upper bounds of the new rule; empty if there is none.
    """

    old: tuple[Rule, ...]
    replaced: int | None
    removed: int | None
    new: Rule | None
    rows: np.ndarray = field(default_factory=lambda: _NO_ROWS)
    sides: tuple[np.ndarray, ...] = ()

    @property
    def indices(self) -> tuple[int, ...]:
        """Indices of the old rules."""
        return tuple(index for index in (self.replaced, self.removed) if index is not None)

    @property
    def saved(self) -> int:
        """Number of rules and literals that the step saves."""
        before = sum(1 + rule.n_literals for rule in self.old)
        return before - (0 if self.new is None else 1 + self.new.n_literals)


class RuleRows:
    """State of a simplification: the current rules and their assignment of rows.

    Parameters
    ----------
    ruleset : RuleSet
        The initial rules.
    table : RowTable
        The rows.

    Attributes
    ----------
    rules : list of Rule
        The rules by their initial index, removed ones included.
    alive : ndarray of bool, shape (n_rules,)
        Mask of the rules that have not been removed.
    assigned : ndarray of int, shape (n_rows,)
        Index of the assigned rule; -1 if no rule holds.
    values : ndarray of float, shape (n_rows,)
        Prediction of that rule: a number or the index of a class; NaN without a rule.
    merged_into : ndarray of int, shape (n_rules,)
        Index of the rule into which each rule was merged; -1 for removed rules.
    """

    def __init__(self, ruleset: RuleSet, table: RowTable) -> None:
        self.ruleset = ruleset
        self.table = table
        self.rules = list(ruleset.rules)
        self.alive = np.ones(len(self.rules), dtype=bool)
        self.merged_into = np.arange(len(self.rules))
        self.holds = np.ascontiguousarray(ruleset.match(table).T)
        self.lower, self.upper = ruleset.boxes.lower.copy(), ruleset.boxes.upper.copy()
        self._start, self._stop = half_open_bounds(ruleset.boxes)
        self._accepted = accepted_by(ruleset.boxes, [rule.non_intervals for rule in self.rules])
        self.by_priority = not (ruleset.ordered or ruleset.disjoint)
        self._codes = {label: i for i, label in enumerate(ruleset.classes or ())}
        self._priority = np.array([self._priority_of(r) for r in self.rules], float).reshape(-1, 2)
        self.rank = ranks_of(self._priority, self.by_priority)
        self.assigned = ruleset.assign(table)
        self.outputs = np.array([*map(self._number, self.rules), np.nan])
        self.linear = {
            i: self._evaluate_line(rule.output)
            for i, rule in enumerate(self.rules)
            if isinstance(rule.output, LinearOutput)
        }
        self.values = self._values_of(np.arange(len(table)), self.assigned)
        self._drop_cache: dict[int, tuple[list[Step], Generalizations]] = {}
        self._merge_cache: dict[tuple[int, int], tuple[Rule, np.ndarray, Generalizations]] = {}
        #: Indices of changed rules, in the order of the steps.
        self.changes: list[int] = []

    def _priority_of(self, rule: Rule) -> tuple[float, float]:
        return priority_of(rule, self._codes.get(rule.output))

    @property
    def indices(self) -> list[int]:
        """Indices of the remaining rules."""
        return np.flatnonzero(self.alive).tolist()

    def result(self, step: Step | None = None) -> RuleSet:
        """Return the current rules, or those after a further step."""
        rules = []
        for index in self.indices:
            if step is not None and index == step.replaced and step.new is not None:
                rules.append(step.new)
            elif step is None or index != step.removed:
                rules.append(self.rules[index])
        return self.ruleset.replace(rules=rules)

    def _number(self, rule: Rule) -> float:
        if isinstance(rule.output, LinearOutput):
            return np.nan
        return float(self._codes[rule.output] if self._codes else rule.output)

    def _evaluate_line(self, output: LinearOutput) -> np.ndarray:
        all_rows = slice(None)
        line = output.evaluate(lambda j: self.table.numbers(j, all_rows), len(self.table))
        return np.where(np.isnan(line), _UNKNOWN, line)

    def _values_of(self, rows: np.ndarray, assigned: np.ndarray) -> np.ndarray:
        values = self.outputs[assigned]
        for i, line in self.linear.items():
            own_rows = assigned == i
            values[own_rows] = line[rows[own_rows]]
        return values

    def _find_next(self, rows: np.ndarray, after: int, excluded: Sequence[int]) -> np.ndarray:
        """Return the first rule after a rank that holds for each row; -1 if there is none."""
        if not len(rows):
            return _NO_ROWS
        is_later = self.alive & (self.rank > after)
        is_later[list(excluded)] = False
        indices = np.flatnonzero(is_later)
        if not len(indices):
            return np.full(len(rows), -1)
        indices = indices[np.argsort(self.rank[indices])]
        candidate_holds = self.holds[np.ix_(indices, rows)]
        first = candidate_holds.argmax(axis=0)
        return np.where(candidate_holds[first, np.arange(len(rows))], indices[first], -1)

    def effect(self, step: Step) -> tuple[np.ndarray, np.ndarray]:
        """Return the rows that a step may reassign, and the indices of their rules after it."""
        if step.new is None:
            assert step.removed is not None
            rows = np.flatnonzero(self.assigned == step.removed)
            return rows, self._find_next(rows, int(self.rank[step.removed]), (step.removed,))
        assert step.replaced is not None
        ranks = np.append(self._rank_after(step), len(self.rank))
        new_rank, rows = ranks[step.replaced], step.rows
        rows = rows[ranks[self.assigned[rows]] > new_rank]
        if step.removed is None:
            return rows, np.full(len(rows), step.replaced)
        rows = rows[(self.assigned[rows] != step.replaced) & (self.assigned[rows] != step.removed)]
        parts, assignments = [rows], [np.full(len(rows), step.replaced)]
        same_output = all(old.output == step.new.output for old in step.old)
        for index in step.indices:
            own_rows = np.flatnonzero(self.assigned == index)
            new_index = np.full(len(own_rows), step.replaced)
            if new_rank > self.rank[index]:  # rules in between may now predict some rows
                following = self._find_next(own_rows, int(self.rank[index]), step.indices)
                new_index = np.where(ranks[following] < new_rank, following, new_index)
            changed = np.flatnonzero((new_index != step.replaced) | (not same_output))
            parts.append(own_rows[changed])
            assignments.append(new_index[changed])
        return np.concatenate(parts), np.concatenate(assignments)

    def _rank_after(self, step: Step) -> np.ndarray:
        if not self.by_priority or step.new is None:
            return self.rank
        priority = self._priority.copy()
        priority[step.replaced] = self._priority_of(step.new)
        return ranks_of(priority, True)

    def new_values(self, step: Step, rows: np.ndarray, assigned: np.ndarray) -> np.ndarray:
        """Return the predictions after a step for the rows that :meth:`effect` returned."""
        replaced = step.replaced
        if replaced is None or step.new is None or step.new.output == self.rules[replaced].output:
            return self._values_of(rows, assigned)
        self._set_output(replaced, step.new)
        values = self._values_of(rows, assigned)
        self._set_output(replaced, self.rules[replaced])
        return values

    def _set_output(self, index: int, rule: Rule) -> None:
        self.outputs[index] = self._number(rule)
        self.linear.pop(index, None)
        if isinstance(rule.output, LinearOutput):
            self.linear[index] = self._evaluate_line(rule.output)

    def effects(self, steps: Sequence[Step]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the effects of steps that change no output: number of the step, row, new value."""
        numbers: list[np.ndarray] = [_NO_ROWS]
        rows: list[np.ndarray] = [_NO_ROWS]
        assignments: list[np.ndarray] = [_NO_ROWS]
        generalizing = [
            i for i, step in enumerate(steps) if step.new is not None and step.removed is None
        ]
        if generalizing:  # there are many steps that drop a condition, so evaluate them together
            gained_rows = [steps[i].rows for i in generalizing]
            number = np.repeat(generalizing, [len(gain) for gain in gained_rows])
            replaced = np.array([step.replaced if step.removed is None else -1 for step in steps])[
                number
            ]
            row = np.concatenate(gained_rows)
            ranks = np.append(self.rank, len(self.rank))
            wins = ranks[self.assigned[row]] > self.rank[replaced]
            numbers.append(number[wins])
            rows.append(row[wins])
            assignments.append(replaced[wins])
        for i, step in enumerate(steps):
            if step.new is None or step.removed is not None:
                row, assigned = self.effect(step)
                numbers.append(np.full(len(row), i))
                rows.append(row)
                assignments.append(assigned)
        row = np.concatenate(rows)
        return np.concatenate(numbers), row, self._values_of(row, np.concatenate(assignments))

    def is_up_to_date(self, step: Step) -> bool:
        """Return whether no rule of a step has changed since the step was created."""
        return all(
            self.alive[index] and any(self.rules[index] is old for old in step.old)
            for index in step.indices
        )

    def removal(self, index: int) -> Step:
        """Return the step that removes a rule."""
        return Step((self.rules[index],), None, index, None)

    def drops(self, indices: Sequence[int]) -> list[Step]:
        """Return the steps that drop one bound or condition of the given rules."""
        steps: list[Step] = []
        for index in indices:
            if index not in self._drop_cache:
                index_steps = list(self._make_drops(index))
                generalizations = Generalizations(
                    self, [new for step in index_steps if (new := step.new)], (index,)
                )
                index_steps = [
                    replace(step, sides=generalizations.sides(i))
                    for i, step in enumerate(index_steps)
                ]
                self._drop_cache[index] = index_steps, generalizations
            index_steps, generalizations = self._drop_cache[index]
            if self.ruleset.disjoint:
                steps += itertools.compress(index_steps, generalizations.are_disjoint())
            else:
                steps += index_steps
        return steps

    def merges(self, limit: int, same_output: bool) -> list[Step]:
        """Return the steps that merge two rules, the most promising ones first."""
        steps = []
        for one, other in closest_pairs(self, limit, same_output):
            if (one, other) not in self._merge_cache:
                hull_rule = hull(self.rules[one], self.rules[other])
                covered_rows = np.flatnonzero(self._holds(hull_rule.conditions))
                self._merge_cache[one, other] = (
                    hull_rule,
                    covered_rows,
                    Generalizations(self, [hull_rule], (one, other)),
                )
            new, rows, generalization = self._merge_cache[one, other]
            if self.ruleset.disjoint and not generalization.are_disjoint()[0]:
                continue
            sides = generalization.sides(0)
            if self.rules[one].output != self.rules[other].output:
                statistics = new.statistics and replace(
                    new.statistics, model_error=None, target_error=None
                )
                new = replace(new, output=self._joint_output(one, other), statistics=statistics)
            steps.append(Step((self.rules[one], self.rules[other]), one, other, new, rows, sides))
            # The index of the merged rule matters only if the order of rules matters.
            by_order = self.ruleset.ordered and not self.ruleset.disjoint
            if by_order or self._has_tie_between(new, one, other):
                steps.append(
                    Step((self.rules[one], self.rules[other]), other, one, new, rows, sides)
                )
        return steps

    def _has_tie_between(self, new: Rule, one: int, other: int) -> bool:
        """Return whether a rule between two indices has the same priority as a new rule."""
        between = slice(min(one, other) + 1, max(one, other))
        equal = (self._priority[between] == self._priority_of(new)).all(axis=1)
        return self.by_priority and bool((equal & self.alive[between]).any())

    def _joint_output(self, one: int, other: int) -> float:
        own_rows = (self.assigned == one) | (self.assigned == other)
        return float(
            self.values[own_rows].mean() if own_rows.any() else self.outputs[[one, other]].mean()
        )

    def allowed(self, steps: list[Step]) -> list[Step]:
        """Select the steps after which disjoint rules remain disjoint."""
        if not self.ruleset.disjoint or not steps:
            return steps
        return [
            step
            for step in steps
            if step.new is None or Generalizations(self, [step.new], step.indices).are_disjoint()[0]
        ]

    def overlaps(
        self,
        bounds: tuple[np.ndarray, np.ndarray, np.ndarray],
        premises: Sequence[Conditions],
        indices: Sequence[int],
    ) -> np.ndarray:
        """Return which rules may overlap each premise, shape (n_premises, n_indices).

        `bounds` holds the half-open bounds of the premises and the result of ``accepted_by``.
        """
        start, stop, accepted = bounds
        may_overlap = np.zeros((len(start), len(indices)), dtype=bool)
        alive = np.flatnonzero(self.alive[indices])
        at = np.asarray(indices)[alive]
        overlap = (self._start[at] < stop[:, None]) & (self._stop[at] > start[:, None])
        observed, missing = np.moveaxis(self._accepted[at] & accepted[:, None], -1, 0)
        overlap = (overlap & observed) | missing
        may_overlap[:, alive] = overlap.all(axis=2)
        for i, j in np.argwhere(may_overlap).tolist() if any(premises) else ():
            may_overlap[i, j] = not are_exclusive(premises[i], self.rules[indices[j]].non_intervals)
        return may_overlap

    def _holds(self, conditions: Sequence[Condition]) -> np.ndarray:
        result = np.ones(len(self.table), dtype=bool)
        for condition in conditions:
            result &= self.table.holds(condition)
        return result

    def _make_drops(self, index: int) -> Iterator[Step]:
        rule = self.rules[index]
        literals = [literal for c in rule.conditions for literal in _literals(c)]
        fails = {literal: ~self._holds((literal,)) for literal in literals}
        n_failing = np.zeros(len(self.table), dtype=np.intp)
        for failing in fails.values():
            n_failing += failing
        near_misses = np.flatnonzero((n_failing == 1) | (n_failing == 2))
        n_failing = n_failing[near_misses]
        for conditions, dropped in _drop_each_literal(rule.conditions):
            n_dropped = np.zeros(len(near_misses), dtype=np.intp)
            for literal in dropped:
                n_dropped += fails[literal][near_misses]
            new = replace(rule, conditions=conditions)
            yield Step((rule,), index, None, new, near_misses[n_dropped == n_failing])

    def take(self, step: Step) -> None:
        """Apply a step."""
        rows, assigned = self.effect(step)
        values = self.new_values(step, rows, assigned)
        rank = self._rank_after(step)
        if step.removed is not None:
            self.alive[step.removed] = False
            self.holds[step.removed] = False
            self.merged_into[self.merged_into == step.removed] = (
                -1 if step.replaced is None else step.replaced
            )
            self.assigned[self.assigned == step.removed] = (
                -1 if step.replaced is None else step.replaced
            )
        if step.new is not None and step.replaced is not None:
            self.holds[step.replaced, step.rows] = True
            self.rules[step.replaced] = step.new
            self._priority[step.replaced] = self._priority_of(step.new)
            self._set_output(step.replaced, step.new)
            box = BoxTable.from_intervals([step.new.intervals], self.ruleset.n_features)
            self.lower[step.replaced], self.upper[step.replaced] = box.lower[0], box.upper[0]
            (self._start[step.replaced],), (self._stop[step.replaced],) = half_open_bounds(box)
            (self._accepted[step.replaced],) = accepted_by(box, [step.new.non_intervals])
        self.rank = rank
        self.assigned[rows] = assigned
        self.values[rows] = values
        self.changes += step.indices
        for index in step.indices:
            self._drop_cache.pop(index, None)
        changed = set(step.indices)
        self._merge_cache = {
            pair: merge for pair, merge in self._merge_cache.items() if not changed & {*pair}
        }


def _literals(condition: Condition) -> tuple[Condition, ...]:
    """Split a condition into its elementary comparisons."""
    if (
        isinstance(condition, Interval)
        and condition.lower > -math.inf
        and condition.upper < math.inf
    ):
        return replace(condition, upper=math.inf), replace(condition, lower=-math.inf)
    return (condition,)


def _drop_each_literal(
    conditions: tuple[Condition, ...],
) -> Iterator[tuple[tuple[Condition, ...], tuple[Condition, ...]]]:
    """Yield a premise without each of its literals and conditions, with the dropped literals."""
    for i, condition in enumerate(conditions):
        before, after = conditions[:i], conditions[i + 1 :]
        literals = _literals(condition)
        if len(literals) == 2:
            from_below, from_above = literals
            yield (*before, from_above, *after), (from_below,)
            yield (*before, from_below, *after), (from_above,)
        yield (*before, *after), literals


#: Number of closest pairs of rules that are considered for a merge at a time.
_MAX_PAIRS = 500


def simplify_on_rows(ruleset: RuleSet, table: RowTable, tolerance: float) -> RuleSet:
    """Simplify rules greedily while the changed predictions on the rows stay within a tolerance."""
    # Rows may lie outside the domain, so the domain is ignored.
    rows = RuleRows(_simplify_and_recount(ruleset, table), table)
    first = rows.assigned.copy()
    budget = _ErrorBudget(rows, tolerance)
    has_progress = True
    while has_progress:
        _take_free_steps(rows, budget)
        has_progress = tolerance > 0 and _spend_tolerance(rows, budget)
    expected = np.append(rows.merged_into, -1)[first]
    moved = expected != rows.assigned
    stale = {*expected[moved].tolist(), *rows.assigned[moved].tolist()}
    stale = {index for index in stale if rows.rules[index].statistics is not None}
    result = _with_row_counts(
        rows.result(),
        np.append(np.cumsum(rows.alive) - 1, -1)[rows.assigned],
        [number for number, index in enumerate(rows.indices) if index in stale],
    )
    return _simplify_and_recount(result, table)


def _simplify_and_recount(ruleset: RuleSet, table: RowTable) -> RuleSet:
    """Simplify rules without changing any prediction, and recount outdated statistics."""
    short = simplify_exactly(ruleset, None)
    if short is ruleset:
        return short
    assigned_before, assigned_after = ruleset.assign(table), short.assign(table)
    # Statistics that were not changed are the same objects as in the original rules.
    indices_of: dict[int, list[int]] = {}
    for i, rule in enumerate(ruleset.rules):
        indices_of.setdefault(id(rule.statistics), []).append(i)
    stale = []
    for i, rule in enumerate(short.rules):
        own_rows, sources = assigned_after == i, indices_of.get(id(rule.statistics), [])
        is_lost = rule.statistics is None and not sources
        is_same = any(np.array_equal(own_rows, assigned_before == source) for source in sources)
        if is_lost or (rule.statistics is not None and sources and not is_same):
            stale.append(i)
    return _with_row_counts(short, assigned_after, stale)


def _with_row_counts(ruleset: RuleSet, assigned: np.ndarray, stale: list[int]) -> RuleSet:
    """Replace the statistics of some rules by the number of rows assigned to them.

    Statistics that determine which rule predicts are not replaced.
    """
    if not stale or not (ruleset.ordered or ruleset.disjoint):
        return ruleset
    rules = list(ruleset.rules)
    n_rows = np.bincount(assigned[assigned >= 0], minlength=len(rules)).tolist()
    for i in stale:
        rules[i] = replace(rules[i], statistics=RuleStatistics(n_rows[i]))
    return ruleset.replace(rules=rules)


class _ErrorBudget:
    """Cost of all steps: the changed predictions, in units of rows.

    A changed label, and a row that becomes covered or uncovered, costs 1. In regression, a changed
    number costs its squared difference divided by the variance of the original predictions, so the
    mean over all rows is 1 - R²; a row that becomes covered or uncovered costs at least 1.
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
        #: Prediction for uncovered rows; NaN without a fallback, or if it is the nearest rule.
        self.uncovered_value = math.nan
        if is_numeric and fallback is not None and fallback.policy == "default":
            self.uncovered_value = float(fallback.output)
        if is_numeric:
            self.before = self.predicted if self.by_nearest else self._with_fallback(self.original)
            self.part, self.scale, self.mean_square = self._mean_square()

    def _with_fallback(self, values: np.ndarray) -> np.ndarray:
        return np.where(mark_uncovered(values), self.uncovered_value, values)

    def _mean_square(self) -> tuple[float, float, float]:
        """Return factors that prevent overflow, and the scaled variance of the predictions."""
        finite = self.before[np.isfinite(self.before)]
        if not len(finite):
            return 1.0, 1.0, 0.0
        part = (
            1.0
            if np.abs(finite).max() < sys.float_info.max / len(finite) / 2
            else 0.25 / len(finite)
        )
        deviation = finite * part - (finite * part).mean()
        scale = float(np.abs(deviation).max()) or 1.0
        # Rows without a prediction add nothing to the variance or to the costs.
        return part, scale, float(np.square(deviation / scale).sum() / len(self.before))

    def _costs_of(
        self, rows: np.ndarray, new: np.ndarray, predictions: np.ndarray | None = None
    ) -> np.ndarray:
        """Return the costs of new values on some rows; `predictions` include the fallback."""
        old = self.original[rows]
        is_uncovered, was_uncovered = mark_uncovered(new), mark_uncovered(old)
        coverage_changed = is_uncovered != was_uncovered
        if self.rows.ruleset.task == "classification":
            return np.where(is_uncovered | was_uncovered, coverage_changed, new != old).astype(
                float
            )
        predictions = self._with_fallback(new) if predictions is None else predictions
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            before = self.before[rows]
            square = np.square((predictions * self.part - before * self.part) / self.scale)
            same = predictions == before
            # Every difference has a positive cost, even if its square underflows.
            square = np.maximum(square, sys.float_info.min)
            is_unknown, was_unknown = np.isnan(predictions), np.isnan(self.before[rows])
            numbers = np.where(same | (is_unknown & was_unknown), 0.0, square / self.mean_square)
            numbers = np.where(is_unknown ^ was_unknown, 1.0, numbers)
        numbers = np.where(is_uncovered & was_uncovered, 0.0, numbers)
        return np.where(coverage_changed, np.fmax(numbers, 1.0), numbers)

    def cost(self, step: Step) -> float:
        """Return the cost of a step; it is negative if the step restores predictions."""
        rows, assigned = self.rows.effect(step)
        new = self.rows.new_values(step, rows, assigned)
        return float(self._costs_of(rows, new).sum() - self.costs[rows].sum())

    def allows(self, cost: float) -> bool:
        """Return whether an additional cost stays within the tolerance."""
        return bool((self.costs.sum() + cost) / len(self.costs) <= self.tolerance)

    def take(self, step: Step) -> bool:
        """Apply a step, unless it changes too many predictions by the nearest rule."""
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
        """Return the costs of all rows if the fallback is the nearest rule; otherwise None."""
        was_uncovered = mark_uncovered(self.original)
        is_label = self.rows.ruleset.task == "classification"
        if not (was_uncovered if is_label else was_uncovered | mark_uncovered(values)).any():
            return None
        predictions = self.rows.result(step).predict(self.rows.table)
        if not (predictions[was_uncovered] == self.predicted[was_uncovered]).all():
            return np.full(len(values), np.inf)
        return self._costs_of(np.arange(len(values)), values, None if is_label else predictions)


def _take_free_steps(rows: RuleRows, budget: _ErrorBudget) -> None:
    """Remove, merge and shorten rules as long as this costs nothing."""
    progress = True
    while progress:
        progress = False
        for index in rows.indices:
            if len(rows.indices) > 1:
                progress |= _take_if_free(budget, rows.removal(index))
        for step in rows.merges(_MAX_PAIRS, same_output=True):
            fits = rows.is_up_to_date(step) and rows.allowed([step])
            progress |= bool(fits) and _take_if_free(budget, step)
        for index in rows.indices:
            shortened = True
            while shortened:
                steps = sorted(rows.drops([index]), key=lambda step: -step.saved)
                shortened = any(_take_if_free(budget, step) for step in steps)
                progress |= shortened


def _take_if_free(budget: _ErrorBudget, step: Step) -> bool:
    return budget.cost(step) <= 0 and budget.take(step)


def _spend_tolerance(rows: RuleRows, budget: _ErrorBudget) -> bool:
    """Apply the steps with the best ratio of saved literals to cost within the tolerance."""
    queue: list[tuple[float, int, Step]] = []
    number = 0

    def offer(steps: list[Step]) -> None:
        nonlocal number
        for step in steps:
            cost = budget.cost(step)
            if budget.allows(cost):
                number += 1
                priority = math.inf if cost <= 0 else step.saved / cost
                heapq.heappush(queue, (-priority, number, step))

    offer([rows.removal(index) for index in rows.indices])
    offer(rows.merges(_MAX_PAIRS, same_output=rows.ruleset.task == "classification"))
    offer(rows.drops(rows.indices))
    has_progress = False
    while queue:
        queued_priority, at, step = heapq.heappop(queue)
        if not rows.is_up_to_date(step) or (step.new is None and len(rows.indices) == 1):
            continue
        if step.new is not None and not rows.allowed([step]):
            continue
        cost = budget.cost(step)
        priority = -math.inf if cost <= 0 else -step.saved / cost
        if not budget.allows(cost):
            continue
        if priority > queued_priority and queue and priority > queue[0][0]:
            heapq.heappush(queue, (priority, at, step))  # earlier steps have increased its cost
        elif budget.take(step):
            has_progress = True
            if step.replaced is not None:
                offer([rows.removal(step.replaced), *rows.drops([step.replaced])])
    return has_progress
