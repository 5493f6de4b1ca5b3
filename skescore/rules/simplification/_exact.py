"""Exact simplification: no prediction changes on the whole domain.

Rules that other rules cover are removed, adjacent boxes with the same output are merged, and bounds
that do not affect any prediction are dropped.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from skescore.rules._boxes import BoxTable, accepted_states
from skescore.rules._conditions import Condition, Interval, Missing, OneOf, with_missing
from skescore.rules._domain import Domain
from skescore.rules._rule import Rule, RuleStatistics, combine_statistics
from skescore.rules.simplification._merging import (
    Conditions,
    all_implied,
    are_exclusive,
    disjunction,
    priority_of,
    ranks_of,
    shorten_counts,
    without_covered_values,
    without_implied,
)

if TYPE_CHECKING:
    from skescore.rules._ruleset import RuleSet


# The bounds of all boxes divide the axis of each feature into bins. A box with open or closed
# bounds becomes a half-open range of bins per feature, so a proof for bins is valid for all
# floating-point numbers. Missing values have their own bin at one end of the axis: after the
# numbers, or before them if this makes more boxes ranges. A side that accepts missing values, and
# numbers not adjacent to the bin of missing values, is not a range; it becomes an extra condition.

#: Largest number of box subtractions in a simplification, and in each of its checks.
_STEPS, _STEPS_PER_CHECK = 100_000, 500
#: Largest relative rounding error of a sum of cell counts.
_ROUNDING = 1e-9


@dataclass(slots=True)
class CellBoxes:
    """Boxes as ranges of bins, ``low <= bin < high``.

    The bins of a feature are ``0 <= bin < end``. Bins with ``first <= bin < last`` contain numbers;
    the remaining bin, if any, contains the missing values.
    """

    low: np.ndarray
    high: np.ndarray
    first: np.ndarray
    last: np.ndarray
    end: np.ndarray


@dataclass(slots=True)
class Sides:
    """Conditions of rules as one side (an interval) per feature, and extra conditions.

    `boxes` contains the sides, with shape (n_rules, n_features). `observed` marks the sides that
    accept numbers within their bounds, and `missing` those that accept missing values.
    `tests_missing`, of shape (n_features,), marks the features for which a rule tests for missing
    values or the domain contains missing values. `extra_conditions` are the conditions of each rule
    that are not sides, such as lists of values.
    """

    boxes: BoxTable
    observed: np.ndarray
    missing: np.ndarray
    tests_missing: np.ndarray
    extra_conditions: list[Conditions]

    @classmethod
    def of(cls, ruleset: RuleSet, domain: Domain | None) -> Sides:
        """Divide the conditions of each rule into sides and extra conditions.

        A test for missing values is part of a side if any rule bounds its feature.
        """
        boxes = ruleset.boxes
        observed, missing = accepted_states(boxes, [rule.non_intervals for rule in ruleset.rules])
        bounded = boxes.bounded
        numeric = np.asarray(bounded.any(axis=0))
        tests_missing = np.asarray((missing & bounded).any(axis=0))
        extra_conditions: list[Conditions] = []
        for rule in ruleset.rules:
            conditions_left: list[Condition] = []
            for condition in rule.non_intervals:
                if isinstance(condition, Missing) and numeric[condition.feature]:
                    tests_missing[condition.feature] = True
                else:
                    conditions_left.append(condition)
            extra_conditions.append(tuple(conditions_left))
        if domain is not None:
            tests_missing = tests_missing | (np.asarray(domain.missing) > 0)
        return cls(boxes, observed, missing, np.asarray(tests_missing & numeric), extra_conditions)

    def place_missing(self) -> np.ndarray:
        """Choose the end of each axis at which missing values are placed.

        Sides that are then not ranges of bins become extra conditions. The result is True for
        features whose missing values precede the numbers.
        """
        accepts_both = self.observed & self.missing & self.boxes.bounded
        from_below = accepts_both & (self.boxes.lower > -np.inf)
        from_above = accepts_both & (self.boxes.upper < np.inf)
        before = from_above.sum(axis=0) > from_below.sum(axis=0)
        is_extra = np.where(before, from_below, from_above)
        if is_extra.any():
            free_side = -np.inf, np.inf, False, False, False
            columns = [getattr(self.boxes, field.name).copy() for field in fields(self.boxes)]
            for i, j in np.argwhere(is_extra).tolist():
                (side,) = (c for c in self.boxes.intervals(i) if c.feature == j)
                self.extra_conditions[i] = (*self.extra_conditions[i], side)
                for column, free in zip(columns, free_side, strict=True):
                    column[i, j] = free
            self.boxes = BoxTable(*columns)
        return np.asarray(before)


def cell_boxes(sides: Sides, domain: Domain | None) -> CellBoxes:
    """Convert boxes to ranges of bins between the bounds of all boxes."""
    before = sides.place_missing()
    boxes = sides.boxes
    start, stop = boxes.half_open_bounds()
    free_below, free_above = boxes.lower == -np.inf, boxes.upper == np.inf
    shape = boxes.lower.shape
    low, high = np.zeros(shape, dtype=np.int64), np.ones(shape, dtype=np.int64)
    first, last, end = (np.full(shape[1], n, dtype=np.int64) for n in (0, 1, 1))
    categorical = [] if domain is None else [feature for feature, _ in domain.categories]
    for j in np.flatnonzero(boxes.bounded.any(axis=0) | sides.tests_missing).tolist():
        gaps = bool(sides.tests_missing[j])
        if domain is None or j in categorical:
            gaps = True
            cuts = np.unique(
                np.concatenate([start[~free_below[:, j], j], stop[~free_above[:, j], j]])
            )
            n_numbers = len(cuts) + 1
            begin = np.searchsorted(cuts, start[:, j], side="right")
            after = np.searchsorted(cuts, stop[:, j], side="right")
            after[free_above[:, j]] = n_numbers
            empty = ~sides.observed[:, j]
        else:
            lowest = domain.lower[j]
            with np.errstate(over="ignore"):
                beyond = float(np.nextafter(domain.upper[j], np.inf))
            begins = np.maximum(start[:, j], lowest)
            stops = np.minimum(np.where(free_above[:, j], np.inf, stop[:, j]), beyond)
            empty = (begins >= stops) | ~sides.observed[:, j]
            cuts = np.unique(np.concatenate([[lowest, beyond], begins[~empty], stops[~empty]]))
            n_numbers = len(cuts) - 1
            begin = np.searchsorted(cuts, begins)
            after = np.where(empty, begin, np.searchsorted(cuts, stops))
        first[j] = int(gaps and before[j])
        last[j], end[j] = first[j] + n_numbers, n_numbers + int(gaps)
        low[:, j], high[:, j] = begin + first[j], after + first[j]
        if gaps:
            gap = 0 if before[j] else int(last[j])
            allowed = sides.missing[:, j]
            low[:, j] = np.where(empty, gap, np.where(allowed & before[j], 0, low[:, j]))
            high[:, j] = np.where(
                empty, gap + allowed, np.where(allowed & (not before[j]), end[j], high[:, j])
            )
    return CellBoxes(low, high, first, last, end)


def slabs(
    low: np.ndarray, high: np.ndarray, cut_low: np.ndarray, cut_high: np.ndarray
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Subtract an overlapping box from a box; return the remaining disjoint boxes."""
    parts = []
    low, high = low.copy(), high.copy()
    for j in np.flatnonzero((low < cut_low) | (high > cut_high)):
        if low[j] < cut_low[j]:
            part_high = high.copy()
            part_high[j] = cut_low[j]
            parts.append((low.copy(), part_high))
            low[j] = cut_low[j]
        if high[j] > cut_high[j]:
            part_low = low.copy()
            part_low[j] = cut_high[j]
            parts.append((part_low, high.copy()))
            high[j] = cut_high[j]
    return parts


class Budget:
    """Remaining number of box subtractions; a check fails when none is left."""

    def __init__(self, total: int, per_check: int) -> None:
        self.total = total
        self.per_check = per_check

    def next_limit(self) -> int:
        """Return the number of subtractions that the next check may take."""
        return min(self.total, self.per_check)


def covering_boxes(
    low: np.ndarray,
    high: np.ndarray,
    boxes_low: np.ndarray,
    boxes_high: np.ndarray,
    forbidden: np.ndarray,
    budget: Budget,
) -> list[int] | None:
    """Return the indices of the boxes that cover a box; None if this cannot be proven.

    Each point belongs to the first box that contains it. The result is None if a point is in no box
    or belongs to a forbidden box, or if the budget is exhausted.
    """
    joint_low, joint_high = np.maximum(boxes_low, low), np.minimum(boxes_high, high)
    # Most checks end here, because the boxes contain fewer cells than the box to cover.
    cells = np.prod((joint_high - joint_low).astype(float), axis=1).sum()
    if cells < np.prod((high - low).astype(float)) * (1 - _ROUNDING):
        return None
    used: set[int] = set()
    n_steps_left = budget.next_limit()
    stack = [(low, high)]
    while stack:
        if n_steps_left == 0:
            return None
        n_steps_left -= 1
        budget.total -= 1
        low, high = stack.pop()
        overlapping = np.flatnonzero(((boxes_low < high) & (boxes_high > low)).all(axis=1))
        if len(overlapping) == 0 or forbidden[overlapping[0]]:
            return None
        first = int(overlapping[0])
        used.add(first)
        stack += slabs(low, high, boxes_low[first], boxes_high[first])
    return sorted(used)


class ExactRules:
    """State of an exact simplification: rules as ranges of bins with extra conditions.

    `alive` marks the rules that are not removed, and `frozen` those that must not change.
    """

    def __init__(self, ruleset: RuleSet, domain: Domain | None) -> None:
        self.ruleset = ruleset
        sides = Sides.of(ruleset, domain)
        cells = cell_boxes(sides, domain)
        boxes = sides.boxes
        self.lower, self.upper = boxes.lower.copy(), boxes.upper.copy()
        self.lower_closed, self.upper_closed = boxes.lower_closed.copy(), boxes.upper_closed.copy()
        self.low, self.high, self.end = cells.low, cells.high, cells.end
        self.first, self.last, self.tests_missing = cells.first, cells.last, sides.tests_missing
        codes: dict[Any, int] = {}
        self.code = np.array(
            [codes.setdefault(rule.output, len(codes)) for rule in ruleset.rules], dtype=np.intp
        )
        self.extra_conditions: list[Conditions] = [
            without_implied(conditions) for conditions in sides.extra_conditions
        ]
        self.statistics: list[RuleStatistics | None] = [r.statistics for r in ruleset.rules]
        self.alive = np.ones(len(ruleset), dtype=bool)
        self.by_priority = not (ruleset.ordered or ruleset.disjoint)
        priority = [
            self._priority(rule, statistics) for rule, statistics in enumerate(self.statistics)
        ]
        self.priority = np.array(priority).reshape(-1, 2)
        self.rank = ranks_of(self.priority, self.by_priority)
        self.budget = Budget(_STEPS, _STEPS_PER_CHECK)
        empty = np.asarray((self.low >= self.high).any(axis=1))
        empty |= np.array(
            [are_exclusive(conditions, conditions) for conditions in self.extra_conditions],
            dtype=bool,
        )
        self.frozen = np.zeros(len(ruleset), dtype=bool)
        self.by_nearest = (
            ruleset.fallback is not None
            and ruleset.fallback.policy == "nearest"
            and not self._covers_everything()
        )
        if self.by_nearest:
            self.frozen |= empty
        self.alive[empty & ~self.frozen] = False
        self.low[empty] = self.high[empty] = 0  # these rules overlap nothing
        if domain is not None:
            self._drop_domain_bounds(domain)

    def _covers_everything(self) -> bool:
        is_box = np.array([not conditions for conditions in self.extra_conditions], dtype=bool)
        where = np.flatnonzero(is_box & (self.low < self.high).all(axis=1))
        none = np.zeros(len(where), dtype=bool)
        space = np.zeros(len(self.end), dtype=self.end.dtype), self.end
        covering = covering_boxes(*space, self.low[where], self.high[where], none, self.budget)
        return covering is not None

    def _drop_domain_bounds(self, domain: Domain) -> None:
        """Drop the bounds that the domain implies."""
        ours = (self.alive & ~self.frozen)[:, None]
        self.lower[ours & (self.low <= self.first)] = -np.inf
        self.upper[ours & (self.high >= self.last)] = np.inf

    def _priority(self, rule: int, statistics: RuleStatistics | None) -> tuple[float, float]:
        old = self.ruleset.rules[rule]
        return priority_of(Rule((), old.output, statistics), self.ruleset.output_index(old))

    def ranks_after(self, merged: int, removed: int) -> np.ndarray:
        """Return the ranks of all rules after merging two rules."""
        if not self.by_priority:
            return self.rank
        priority = self.priority.copy()
        statistics = combine_statistics(self.statistics[merged], self.statistics[removed])
        priority[merged] = self._priority(merged, statistics)
        return ranks_of(priority, True)

    @property
    def changeable_rules(self) -> np.ndarray:
        """Indices of the rules that may change, by rank."""
        where = np.flatnonzero(self.alive & ~self.frozen)
        return where[np.argsort(self.rank[where])]

    def overlapping_rules(self, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        """Return the indices of the rules that overlap a box, by rank."""
        meets = self.alive & ((self.low < high) & (self.high > low)).all(axis=1)
        where = np.flatnonzero(meets)
        return where[np.argsort(self.rank[where])]

    def is_covered_before(
        self, low: np.ndarray, high: np.ndarray, rank: int, premise: Conditions, excluded: int
    ) -> bool:
        """Return whether it is proven that rules before a rank cover a box with a premise."""
        where = [
            m
            for m in self.overlapping_rules(low, high).tolist()
            if self.rank[m] < rank
            and m != excluded
            and all_implied(premise, self.extra_conditions[m])
        ]
        none = np.zeros(len(where), dtype=bool)
        return (
            covering_boxes(low, high, self.low[where], self.high[where], none, self.budget)
            is not None
        )

    def remove(self, rule: int, merged_into: int | None = None) -> None:
        """Remove a rule, and add its statistics to those of the rule `merged_into`."""
        self.alive[rule] = False
        self.low[rule] = self.high[rule] = 0
        if merged_into is not None:
            statistics = combine_statistics(self.statistics[merged_into], self.statistics[rule])
            self.statistics[merged_into] = statistics

    def sharing(self, rule: int, ranks: tuple[float, float]) -> list[int]:
        """Return the rules of the same output between two ranks that may get rows of a rule."""
        if self.by_priority or self.ruleset.disjoint:  # statistics count all covered rows
            return []
        return [
            m
            for m in self.overlapping_rules(self.low[rule], self.high[rule]).tolist()
            if min(ranks) < self.rank[m] < max(ranks)
            and self.code[m] == self.code[rule]
            and not are_exclusive(self.extra_conditions[rule], self.extra_conditions[m])
        ]

    def join(self, merged: int, removed: int) -> None:
        """Remove a rule whose box another rule now covers, and add up their statistics."""
        between = self.sharing(removed, (self.rank[merged], self.rank[removed]))
        self.remove(removed, merged_into=merged)
        for rule in [merged, *between] if between else ():
            self.statistics[rule] = None
        self.priority[merged] = self._priority(merged, self.statistics[merged])
        self.rank = ranks_of(self.priority, self.by_priority)

    def drop_bound(self, rule: int, feature: int, below: bool) -> None:
        """Drop one bound of a rule."""
        low, high = self.box_without_bound(rule, feature, below)
        self.low[rule], self.high[rule] = low, high
        (self.lower if below else self.upper)[rule, feature] = -np.inf if below else np.inf

    def box_without_bound(
        self, rule: int, feature: int, below: bool
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the box of a rule without one of its bounds."""
        low, high = self.low[rule].copy(), self.high[rule].copy()
        if below:
            low[feature] = min(low[feature], self.first[feature])
        else:
            high[feature] = max(high[feature], self.last[feature])
        if low[feature] <= self.first[feature] and high[feature] >= self.last[feature]:
            low[feature], high[feature] = 0, self.end[feature]
        return low, high

    def widen(self, rule: int, feature: int, other: int) -> None:
        """Extend a rule along a feature to the bounds of another rule."""
        if self.low[other, feature] < self.low[rule, feature]:
            for bounds in (self.low, self.lower, self.lower_closed):
                bounds[rule, feature] = bounds[other, feature]
        if self.high[other, feature] > self.high[rule, feature]:
            for bounds in (self.high, self.upper, self.upper_closed):
                bounds[rule, feature] = bounds[other, feature]

    @property
    def holds_numbers(self) -> np.ndarray:
        """Mask of the sides that accept numbers, shape (n_rules, n_features)."""
        return np.asarray((self.low < self.last) & (self.high > self.first))

    @property
    def holds_missing(self) -> np.ndarray:
        """Mask of the sides that accept missing values; False for features that never test them."""
        before = self.first > 0
        return np.asarray(
            self.tests_missing & np.where(before, self.low == 0, self.high > self.last)
        )

    @property
    def boxes(self) -> BoxTable:
        """Current bounds."""
        bounds = self.lower, self.upper, self.lower_closed, self.upper_closed
        return BoxTable(*bounds, self.holds_missing)

    def result(self) -> RuleSet:
        """Return the simplified rules; the original set itself if nothing has changed."""
        # Distances to boxes also depend on bounds outside the domain.
        numbers, boxes = self.holds_numbers | self.by_nearest, self.boxes
        gaps = self.holds_missing
        rules = []
        for i in np.flatnonzero(self.alive).tolist():
            old = self.ruleset.rules[i]
            if self.frozen[i]:
                rules.append(old)
                continue
            conditions_of_box: list[Condition] = [
                c for c in boxes.intervals(i) if numbers[i, c.feature]
            ]
            for j in np.flatnonzero(self.tests_missing).tolist():
                if not numbers[i, j]:
                    conditions_of_box.append(Missing(j))
                elif not gaps[i, j] and not boxes.bounded[i, j]:
                    conditions_of_box.append(Missing(j, negated=True))
            conditions = (*conditions_of_box, *self.extra_conditions[i])
            simplified = Rule(conditions, old.output, self.statistics[i])
            rules.append(old if simplified == old else simplified)
        if tuple(rules) == self.ruleset.rules:
            return self.ruleset
        return self.ruleset.replace(rules=rules)


def simplify_exactly(ruleset: RuleSet, domain: Domain | None) -> RuleSet:
    """Simplify rules without changing any prediction on the domain."""
    if len(ruleset) == 0 or _nearest_among_gaps(ruleset):
        return ruleset
    ruleset = shorten_counts(ruleset)
    table = ExactRules(ruleset, domain)
    changed = True
    while changed:
        changed = _remove_covered(table)
        changed |= merge_boxes(table)
        changed |= unite_values(table)
        changed |= unite_missing(table)
        # Bounds are dropped last, because widened boxes may no longer be mergeable.
        if not changed and ruleset.ordered and not ruleset.disjoint:
            changed = _drop_implied(table)
    short = table.result()
    shortest = without_covered_values(short)
    # With fewer bounds, there are fewer bins, and more can be proven about missing values.
    fewer = (len(short), short.n_literals) < (len(ruleset), ruleset.n_literals)
    again = shortest is not short or (fewer and table.tests_missing.any())
    return simplify_exactly(shortest, domain) if again else shortest


def _nearest_among_gaps(ruleset: RuleSet) -> bool:
    """Return whether the fallback is the nearest rule and a rule tests for missing values."""
    nearest = ruleset.fallback is not None and ruleset.fallback.policy == "nearest"
    return nearest and any(
        isinstance(c, Missing) for rule in ruleset.rules for c in rule.non_intervals
    )


def _remove_covered(table: ExactRules) -> bool:
    """Remove rules that earlier rules cover, or later rules with the same output."""
    if table.by_nearest:
        return False
    before = int(table.alive.sum())
    for rule in table.changeable_rules.tolist():
        if table.is_covered_before(
            table.low[rule], table.high[rule], table.rank[rule], table.extra_conditions[rule], rule
        ):
            table.remove(rule)
    # Rules are removed from the end, so that their statistics accumulate in the last one.
    for rule in table.changeable_rules[::-1].tolist():
        _remove_if_predicted_alike(table, rule)
    return int(table.alive.sum()) < before


def _remove_if_predicted_alike(table: ExactRules, rule: int) -> None:
    """Remove a rule if the rules that would predict its rows instead have the same output."""
    low, high, premise = table.low[rule], table.high[rule], table.extra_conditions[rule]
    where, forbidden = [], []
    for m in table.overlapping_rules(low, high).tolist():
        later, differs = table.rank[m] > table.rank[rule], table.code[m] != table.code[rule]
        is_implied = all_implied(premise, table.extra_conditions[m])
        if m == rule:
            continue
        if later and differs:
            if not are_exclusive(premise, table.extra_conditions[m]):
                where.append(m)
                forbidden.append(True)
        elif is_implied:
            where.append(m)
            forbidden.append(False)
    covering = covering_boxes(
        low, high, table.low[where], table.high[where], np.array(forbidden, bool), table.budget
    )
    if covering is None:
        return
    covering_now = {where[i] for i in covering if table.rank[where[i]] > table.rank[rule]}
    last = max((table.rank[m] for m in covering_now), default=table.rank[rule])
    receivers = sorted(covering_now.union(table.sharing(rule, (table.rank[rule], last))))
    one = len(receivers) == 1 and not table.by_priority
    statistics = table.statistics[rule]
    table.remove(rule, merged_into=receivers[0] if one else None)
    if not (one or table.by_priority) and (statistics is None or statistics.n_rows > 0):
        for m in receivers:
            table.statistics[m] = None


def _drop_implied(table: ExactRules) -> bool:
    """Drop bounds of an ordered list if earlier rules cover everything beyond them."""
    if table.by_nearest:
        return False
    changed = False
    for rule in table.changeable_rules.tolist():
        bounded = (table.lower[rule] > -np.inf) | (table.upper[rule] < np.inf)
        for feature in np.flatnonzero(bounded).tolist():
            for below, bounds in ((True, table.lower), (False, table.upper)):
                wide = table.box_without_bound(rule, feature, below)
                if np.isfinite(bounds[rule, feature]) and _can_grow(table, rule, wide):
                    table.drop_bound(rule, feature, below)
                    changed = True
        # The conditions "is missing" and "is known" are dropped in the same way.
        for feature in np.flatnonzero(table.tests_missing & ~bounded).tolist():
            full_range = table.low[rule].copy(), table.high[rule].copy()
            full_range[0][feature], full_range[1][feature] = 0, table.end[feature]
            narrow = table.high[rule, feature] - table.low[rule, feature] < table.end[feature]
            if narrow and _can_grow(table, rule, full_range):
                table.low[rule], table.high[rule] = full_range
                changed = True
    return changed


def _can_grow(table: ExactRules, rule: int, wide: tuple[np.ndarray, np.ndarray]) -> bool:
    """Return whether earlier rules cover all points that a wider box adds to a rule."""
    added = slabs(*wide, table.low[rule], table.high[rule])
    premise, rank = table.extra_conditions[rule], table.rank[rule]
    return all(table.is_covered_before(*slab, rank, premise, rule) for slab in added)


def merge_boxes(table: ExactRules) -> bool:
    """Merge rules with the same output whose boxes differ, and are adjacent, in one feature."""
    changed, progress = False, True
    while progress:
        progress = False
        words = _words(table)
        runs = [_runs(table, words, feature) for feature in range(table.low.shape[1])]
        # Start with the feature with the most merges, because grids are merged by rows and columns.
        for feature in sorted(range(len(runs)), key=lambda j: -sum(map(len, runs[j]))):
            for run in runs[feature]:
                progress |= _merge_run(table, run, feature)
            if progress:
                changed = True
                break
    return changed


def _words(table: ExactRules) -> np.ndarray:
    """Hash the range of bins of every rule on every feature."""
    feature = np.arange(table.low.shape[1], dtype=np.uint64)
    mixed = _mix(table.low.astype(np.uint64) + (feature << np.uint64(40)))
    return _mix(mixed + table.high.astype(np.uint64))


def _mix(values: np.ndarray) -> np.ndarray:
    """Hash integers to 64 bits (the finalizer of splitmix64)."""
    values = (values + np.uint64(0x9E3779B97F4A7C15)).astype(np.uint64)
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def _runs(table: ExactRules, words: np.ndarray, feature: int) -> list[list[int]]:
    """Group rules that seem equal except for one feature, in which they are adjacent."""
    open_rules = np.sort(table.changeable_rules)
    kinds: dict[Any, int] = {}
    kind = [
        kinds.setdefault((table.code[i], frozenset(table.extra_conditions[i])), len(kinds))
        for i in open_rules.tolist()
    ]
    remaining_words = words.sum(axis=1, dtype=np.uint64) - words[:, feature]
    key = remaining_words[open_rules] + _mix(np.array(kind, dtype=np.uint64))
    low, high = table.low[open_rules, feature], table.high[open_rules, feature]
    order = np.lexsort((open_rules, low, key))
    runs: list[list[int]] = []
    reach, last_key = -1, None
    for at in order.tolist():
        rule = int(open_rules[at])
        if key[at] == last_key and low[at] <= reach:
            runs[-1].append(rule)
            reach = max(reach, int(high[at]))
        else:
            runs.append([rule])
            reach, last_key = int(high[at]), key[at]
    return [run for run in runs if len(run) > 1]


def _merge_run(table: ExactRules, run: list[int], feature: int) -> bool:
    current, progress = run[0], False
    for rule in run[1:]:
        merged = _merged_along(table, current, rule, feature)
        progress |= merged is not None
        if merged is not None:
            current = merged
        elif table.high[rule, feature] > table.high[current, feature]:
            current = rule
    return progress


def _merged_along(table: ExactRules, one: int, other: int, feature: int) -> int | None:
    """Merge two rules if no prediction changes; return the index of the merged rule."""
    same = (table.low[one] == table.low[other]) & (table.high[one] == table.high[other])
    same[feature] = table.low[other, feature] <= table.high[one, feature]
    same_output = table.code[one] == table.code[other]
    if not (
        same.all()
        and same_output
        and set(table.extra_conditions[one]) == set(table.extra_conditions[other])
    ):
        return None
    high = max(table.high[one, feature], table.high[other, feature])
    low = min(table.low[one, feature], table.low[other, feature])
    covers_numbers = low <= table.first[feature] and high >= table.last[feature]
    if covers_numbers and high - low < table.end[feature] and not table.tests_missing[feature]:
        return None  # no interval accepts all numbers and excludes missing values
    has_missing = low < table.first[feature] or high > table.last[feature]
    if has_missing and not covers_numbers and with_missing(Interval(feature, 0.0), True) is None:
        return None
    merged = _merge_index(table, one, other)
    if merged is None:
        return None
    removed = one + other - merged
    table.widen(merged, feature, removed)
    table.join(merged, removed)
    return merged


def _merge_index(table: ExactRules, one: int, other: int) -> int | None:
    """Return the index at which two rules with the same output can be merged, or None."""
    first, last = min(one, other), max(one, other)
    if table.by_nearest:
        # The first of equally near boxes predicts, so all rules in between need the same output.
        between = np.flatnonzero(table.code[first:last] != table.code[first]) + first
        if table.alive[between].any():
            return None
    for merged, removed in ((first, last), (last, first)):
        rank = table.ranks_after(merged, removed)
        if all(_may_move(table, part, rank, merged, (one, other)) for part in (one, other)):
            return merged
    return None


def _may_move(
    table: ExactRules, part: int, rank: np.ndarray, merged: int, pair: tuple[int, int]
) -> bool:
    """Return whether a rule can move to the new rank of the merged rule."""
    was_before, is_before = table.rank < table.rank[part], rank < rank[merged]
    premise = table.extra_conditions[part]
    for m in table.overlapping_rules(table.low[part], table.high[part]).tolist():
        if m in pair or table.code[m] == table.code[part] or was_before[m] == is_before[m]:
            continue
        if are_exclusive(premise, table.extra_conditions[m]):
            continue
        if table.by_priority:
            return False
        # Rows that earlier rules cover do not matter.
        low = np.maximum(table.low[part], table.low[m])
        high = np.minimum(table.high[part], table.high[m])
        limit = int(table.rank[m] if was_before[m] else table.rank[part])
        if not table.is_covered_before(
            low, high, limit, (*premise, *table.extra_conditions[m]), part
        ):
            return False
    return True


def unite_missing(table: ExactRules) -> bool:
    """Merge rules that require a missing value with rules that differ only in this condition."""
    changed = False
    for j in np.flatnonzero(table.tests_missing).tolist():
        for rule in table.changeable_rules.tolist():
            if table.alive[rule] and not table.holds_numbers[rule, j]:
                changed |= _unite_with_numbers(table, rule, j)
    return changed


def _unite_with_numbers(table: ExactRules, rule: int, feature: int) -> bool:
    for partner in np.sort(table.changeable_rules).tolist():
        same = (table.low[rule] == table.low[partner]) & (table.high[rule] == table.high[partner])
        same[feature] = table.holds_numbers[partner, feature]
        same_output = table.code[rule] == table.code[partner]
        if not (
            same.all()
            and same_output
            and set(table.extra_conditions[rule]) == set(table.extra_conditions[partner])
        ):
            continue
        merged = _merge_index(table, rule, partner)
        if merged is None:
            continue
        # Without an interval, the partner accepts all values, including missing ones.
        sides = [c for c in table.boxes.intervals(partner) if c.feature == feature]
        unions = [with_missing(side, True) for side in sides]
        if None in unions:
            continue
        table.extra_conditions[merged] = (*table.extra_conditions[merged], *unions)
        table.drop_bound(merged, feature, True)
        table.drop_bound(merged, feature, False)
        table.join(merged, rule + partner - merged)
        return True
    return False


def unite_values(table: ExactRules) -> bool:
    """Merge rules with the same output that differ in the values of one categorical feature."""
    changed = False
    while _unite_one_pair(table):
        changed = True
    return changed


def _unite_one_pair(table: ExactRules) -> bool:
    candidates_of: dict[Any, list[tuple[int, OneOf | Interval | Missing]]] = {}
    for rule in np.sort(table.changeable_rules).tolist():
        box = table.low[rule].tobytes(), table.high[rule].tobytes(), table.code[rule]
        for condition in table.extra_conditions[rule]:
            if not isinstance(condition, OneOf | Interval | Missing):
                continue
            remaining = frozenset(c for c in table.extra_conditions[rule] if c is not condition)
            candidates = candidates_of.setdefault((*box, condition.feature, remaining), [])
            for partner, candidate in candidates:
                union = disjunction(candidate, condition)
                merged = None if union is None else _merge_index(table, partner, rule)
                if union is None or merged is None:
                    continue
                conditions_after = (
                    union if c is candidate else c for c in table.extra_conditions[partner]
                )
                table.extra_conditions[merged] = tuple(
                    c for c in conditions_after if not c.is_trivial
                )
                table.join(merged, partner + rule - merged)
                return True
            candidates.append((rule, condition))
    return False
