"""Fewer and shorter rules that predict alike.

Without rows, no prediction changes on the whole domain: rules that others cover go, touching boxes
of one output are joined, and bounds go behind which nothing is left to decide. With rows, single
steps are taken as long as the predictions on these rows stay within a tolerance.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from skescore.rules._boxes import BoxTable, accepted_states
from skescore.rules._conditions import Condition, Interval, Missing, OneOf
from skescore.rules._domain import Domain
from skescore.rules._rule import Rule, RuleStatistics, combined
from skescore.rules.simplification._merging import (
    Conditions,
    all_implied,
    exclude,
    priority_of,
    ranks_of,
    united,
    without_implied,
)

if TYPE_CHECKING:
    from skescore.rules._ruleset import RuleSet


# The faces of all boxes cut every feature's axis into a few pieces, and a box becomes a range of
# pieces per feature: whole numbers, half-open, the same whether faces are open or closed. What
# holds for the pieces holds for every floating-point number. Missing values are one more piece, at
# one end of the axis: behind the numbers, or before them where that suits more boxes. A side that
# holds missing values and numbers that do not reach that end is no range of pieces; it stands
# beside the box as a condition.

#: Steps of subtraction that one simplification, and one question in it, may take.
_STEPS, _STEPS_PER_QUESTION = 100_000, 500
#: Relative rounding error of a sum of cell counts that is put up with.
_ROUNDING = 1e-9


@dataclass(slots=True)
class CellBoxes:
    """Boxes as ranges of pieces, ``low <= piece < high``.

    Numbers are the pieces from `first` to `last` of all those from 0 to `end`; the others stand
    for missing values.
    """

    low: np.ndarray
    high: np.ndarray
    first: np.ndarray
    last: np.ndarray
    end: np.ndarray


@dataclass(slots=True)
class Sides:
    """What rules say of each feature by itself, shape (n_rules, n_features).

    Of the numbers between the bounds, and of missing values, `known` and `missing` tell whether
    they lie within the side; `speaks` tells of which features something is said of missing values,
    by a rule or by the domain, shape (n_features,).
    """

    boxes: BoxTable
    known: np.ndarray
    missing: np.ndarray
    speaks: np.ndarray
    extra_conditions: list[Conditions]

    @classmethod
    def of(cls, ruleset: RuleSet, domain: Domain | None) -> Sides:
        """Take the sides of all rules, and the conditions that are none."""
        boxes = ruleset.boxes
        known, missing = accepted_states(boxes, [rule.non_intervals for rule in ruleset.rules])
        bounded = boxes.bounded
        numeric, speaks = bounded.any(axis=0), (missing & bounded).any(axis=0)
        others: list[Conditions] = []
        for rule in ruleset.rules:
            kept: list[Condition] = []
            for condition in rule.non_intervals:
                if isinstance(condition, Missing) and numeric[condition.feature]:
                    speaks[condition.feature] = True
                else:
                    kept.append(condition)
            others.append(tuple(kept))
        if domain is not None:
            speaks = speaks | (np.asarray(domain.missing) > 0)
        return cls(boxes, known, missing, np.asarray(speaks & numeric), others)

    def first_pieces(self) -> np.ndarray:
        """Whether missing values stand before the numbers; sides that are no range move aside."""
        both = self.known & self.missing & self.boxes.bounded
        from_below, from_above = (
            both & (self.boxes.lower > -np.inf),
            both & (self.boxes.upper < np.inf),
        )
        before = from_above.sum(axis=0) > from_below.sum(axis=0)
        aside = np.where(before, from_below, from_above)
        if aside.any():
            columns = [
                a.copy()
                for a in (
                    self.boxes.lower,
                    self.boxes.upper,
                    self.boxes.lower_closed,
                    self.boxes.upper_closed,
                    self.boxes.missing,
                )
            ]
            for i, j in np.argwhere(aside).tolist():
                (side,) = (c for c in self.boxes.intervals(i) if c.feature == j)
                self.extra_conditions[i] = (*self.extra_conditions[i], side)
                for column, free in zip(
                    columns, (-np.inf, np.inf, False, False, False), strict=True
                ):
                    column[i, j] = free
            self.boxes = BoxTable(*columns)
        return np.asarray(before)


def cell_boxes(sides: Sides, domain: Domain | None) -> CellBoxes:
    """Cut the axes at the faces of boxes."""
    before = sides.first_pieces()
    boxes = sides.boxes
    start, stop = boxes.half_open_bounds()
    free_below, free_above = boxes.lower == -np.inf, boxes.upper == np.inf
    shape = boxes.lower.shape
    low, high = np.zeros(shape, dtype=np.int64), np.ones(shape, dtype=np.int64)
    first, last, end = (np.full(shape[1], n, dtype=np.int64) for n in (0, 1, 1))
    categorical = [] if domain is None else [feature for feature, _ in domain.categories]
    for j in np.flatnonzero(boxes.bounded.any(axis=0) | sides.speaks).tolist():
        gaps = bool(sides.speaks[j])
        if domain is None or j in categorical:
            gaps = True
            cuts = np.unique(
                np.concatenate([start[~free_below[:, j], j], stop[~free_above[:, j], j]])
            )
            n_numbers = len(cuts) + 1
            begin = np.searchsorted(cuts, start[:, j], side="right")
            after = np.searchsorted(cuts, stop[:, j], side="right")
            after[free_above[:, j]] = n_numbers
            empty = ~sides.known[:, j]
        else:
            least = domain.lower[j]
            with np.errstate(over="ignore"):
                beyond = float(np.nextafter(domain.upper[j], np.inf))
            begins = np.maximum(start[:, j], least)
            stops = np.minimum(np.where(free_above[:, j], np.inf, stop[:, j]), beyond)
            empty = (begins >= stops) | ~sides.known[:, j]
            cuts = np.unique(np.concatenate([[least, beyond], begins[~empty], stops[~empty]]))
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
    """Split what lies outside of a cut into disjoint boxes; the cut must meet the box."""
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
    """Steps left: where none are, a check counts as failed."""

    def __init__(self, total: int, per_question: int) -> None:
        self.total = total
        self.per_question = per_question

    def asked(self) -> int:
        """Steps that the next question may take."""
        return min(self.total, self.per_question)


def covering_boxes(
    low: np.ndarray,
    high: np.ndarray,
    boxes_low: np.ndarray,
    boxes_high: np.ndarray,
    forbidden: np.ndarray,
    budget: Budget,
) -> list[int] | None:
    """Which boxes cover a box, where the first one that holds a point does."""
    met_low, met_high = np.maximum(boxes_low, low), np.minimum(boxes_high, high)
    # All their cells together are too few: most questions end here.
    cells = np.prod((met_high - met_low).astype(float), axis=1).sum()
    if cells < np.prod((high - low).astype(float)) * (1 - _ROUNDING):
        return None
    used: set[int] = set()
    left = budget.asked()
    stack = [(low, high)]
    while stack:
        if left == 0:
            return None
        left -= 1
        budget.total -= 1
        low, high = stack.pop()
        meets = np.flatnonzero(((boxes_low < high) & (boxes_high > low)).all(axis=1))
        if len(meets) == 0 or forbidden[meets[0]]:
            return None
        first = int(meets[0])
        used.add(first)
        stack += slabs(low, high, boxes_low[first], boxes_high[first])
    return sorted(used)


class ExactRules:
    """Rules in the order of the set, with the cells of their boxes."""

    def __init__(self, ruleset: RuleSet, domain: Domain | None) -> None:
        self.ruleset = ruleset
        sides = Sides.of(ruleset, domain)
        cells = cell_boxes(sides, domain)
        boxes = sides.boxes
        self.lower, self.upper = boxes.lower.copy(), boxes.upper.copy()
        self.lower_closed, self.upper_closed = boxes.lower_closed.copy(), boxes.upper_closed.copy()
        self.low, self.high, self.end = cells.low, cells.high, cells.end
        self.first, self.last, self.speaks = cells.first, cells.last, sides.speaks
        codes: dict[Any, int] = {}
        self.code = np.array(
            [codes.setdefault(rule.output, len(codes)) for rule in ruleset.rules], dtype=np.intp
        )
        self.extra_conditions: list[Conditions] = [
            without_implied(others) for others in sides.extra_conditions
        ]
        self.statistics: list[RuleStatistics | None] = [r.statistics for r in ruleset.rules]
        self.alive = np.ones(len(ruleset), dtype=bool)
        self.by_priority = not (ruleset.ordered or ruleset.disjoint)
        priority = [self._priority(rule, seen) for rule, seen in enumerate(self.statistics)]
        self.priority = np.array(priority).reshape(-1, 2)
        self.rank = ranks_of(self.priority, self.by_priority)
        self.budget = Budget(_STEPS, _STEPS_PER_QUESTION)
        empty = np.asarray((self.low >= self.high).any(axis=1))
        empty |= np.array([exclude(others, others) for others in self.extra_conditions], dtype=bool)
        self.frozen = empty & self._touching_constants(domain)
        self.by_nearest = (
            ruleset.fallback is not None
            and ruleset.fallback.policy == "nearest"
            and not self._covers_everything()
        )
        if self.by_nearest:
            self.frozen = empty
        self.alive[empty & ~self.frozen] = False
        self.low[empty] = self.high[empty] = 0  # such rules meet nothing
        if domain is not None:
            self._free_borders(domain)

    def _touching_constants(self, domain: Domain | None) -> np.ndarray:
        """Rules that a measure of volume may count though they miss a constant by an open face."""
        if domain is None:
            return np.zeros(len(self.alive), dtype=bool)
        lower, upper = np.asarray(domain.lower), np.asarray(domain.upper)
        reached = (self.lower <= upper) & (lower <= self.upper)
        missed = (self.low >= self.high) & (lower == upper)
        return np.asarray(missed.any(axis=1) & reached.all(axis=1))

    def _covers_everything(self) -> bool:
        pure = np.array([not others for others in self.extra_conditions], dtype=bool)
        where = np.flatnonzero(pure & (self.low < self.high).all(axis=1))
        none = np.zeros(len(where), dtype=bool)
        whole = np.zeros(len(self.end), dtype=self.end.dtype), self.end
        found = covering_boxes(*whole, self.low[where], self.high[where], none, self.budget)
        return found is not None

    def _free_borders(self, domain: Domain) -> None:
        """Take away the bounds that the domain sets as well."""
        ours = (self.alive & ~self.frozen)[:, None]
        self.lower[ours & (self.low <= self.first)] = -np.inf
        self.upper[ours & (self.high >= self.last)] = np.inf

    def _priority(self, rule: int, seen: RuleStatistics | None) -> tuple[float, float]:
        old = self.ruleset.rules[rule]
        return priority_of(Rule((), old.output, seen), self.ruleset.output_index(old))

    def ranks_after(self, kept: int, lost: int) -> np.ndarray:
        """What :attr:`rank` would be if a rule took over another one's rows."""
        if not self.by_priority:
            return self.rank
        priority = self.priority.copy()
        seen = combined(self.statistics[kept], self.statistics[lost])
        priority[kept] = self._priority(kept, seen)
        return ranks_of(priority, True)

    @property
    def open(self) -> np.ndarray:
        """Indices of the rules that may change, in the order in which they predict."""
        where = np.flatnonzero(self.alive & ~self.frozen)
        return where[np.argsort(self.rank[where])]

    def meeting(self, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        """Indices of the rules whose boxes meet a box, in the order in which they predict."""
        meets = self.alive & ((self.low < high) & (self.high > low)).all(axis=1)
        where = np.flatnonzero(meets)
        return where[np.argsort(self.rank[where])]

    def covered_before(
        self, low: np.ndarray, high: np.ndarray, rank: int, given: Conditions, leave_out: int
    ) -> bool:
        """Whether rules before a rank surely cover a box, where the given conditions hold."""
        where = [
            m
            for m in self.meeting(low, high).tolist()
            if self.rank[m] < rank
            and m != leave_out
            and all_implied(given, self.extra_conditions[m])
        ]
        none = np.zeros(len(where), dtype=bool)
        return (
            covering_boxes(low, high, self.low[where], self.high[where], none, self.budget)
            is not None
        )

    def strike(self, rule: int, merged_into: int | None = None) -> None:
        """Take a rule out, and let another one have its rows."""
        self.alive[rule] = False
        self.low[rule] = self.high[rule] = 0
        if merged_into is not None:
            seen = combined(self.statistics[merged_into], self.statistics[rule])
            self.statistics[merged_into] = seen

    def join(self, kept: int, lost: int) -> None:
        """Let a rule, widened already, stand for another one as well."""
        self.strike(lost, merged_into=kept)
        self.priority[kept] = self._priority(kept, self.statistics[kept])
        self.rank = ranks_of(self.priority, self.by_priority)

    def free(self, rule: int, feature: int, below: bool) -> None:
        """Take a bound away."""
        low, high = self.freed(rule, feature, below)
        self.low[rule], self.high[rule] = low, high
        (self.lower if below else self.upper)[rule, feature] = -np.inf if below else np.inf

    def freed(self, rule: int, feature: int, below: bool) -> tuple[np.ndarray, np.ndarray]:
        """The box without one of its bounds."""
        low, high = self.low[rule].copy(), self.high[rule].copy()
        if below:
            low[feature] = min(low[feature], self.first[feature])
        else:
            high[feature] = max(high[feature], self.last[feature])
        if low[feature] <= self.first[feature] and high[feature] >= self.last[feature]:
            low[feature], high[feature] = 0, self.end[feature]
        return low, high

    def widen(self, rule: int, feature: int, other: int) -> None:
        """Take over the farther bounds of another rule along a feature."""
        if self.low[other, feature] < self.low[rule, feature]:
            for bounds in (self.low, self.lower, self.lower_closed):
                bounds[rule, feature] = bounds[other, feature]
        if self.high[other, feature] > self.high[rule, feature]:
            for bounds in (self.high, self.upper, self.upper_closed):
                bounds[rule, feature] = bounds[other, feature]

    @property
    def holds_numbers(self) -> np.ndarray:
        """Whether a rule's side of a feature holds numbers."""
        return np.asarray((self.low < self.last) & (self.high > self.first))

    @property
    def holds_missing(self) -> np.ndarray:
        """Whether it holds missing values; False where nothing is said of these."""
        before = self.first > 0
        return np.asarray(self.speaks & np.where(before, self.low == 0, self.high > self.last))

    @property
    def boxes(self) -> BoxTable:
        """The bounds as they are now."""
        bounds = self.lower, self.upper, self.lower_closed, self.upper_closed
        return BoxTable(*bounds, self.holds_missing)

    def result(self) -> RuleSet:
        """The rules that are left; the very rule set if nothing has changed."""
        # How near a box is depends on bounds that hold no number of the domain as well.
        numbers, boxes = self.holds_numbers | self.by_nearest, self.boxes
        gaps = self.holds_missing
        rules = []
        for i in np.flatnonzero(self.alive).tolist():
            old = self.ruleset.rules[i]
            if self.frozen[i]:
                rules.append(old)
                continue
            said: list[Condition] = [c for c in boxes.intervals(i) if numbers[i, c.feature]]
            for j in np.flatnonzero(self.speaks).tolist():
                if not numbers[i, j]:
                    said.append(Missing(j))
                elif not gaps[i, j] and not boxes.bounded[i, j]:
                    said.append(Missing(j, negated=True))
            conditions = (*said, *self.extra_conditions[i])
            made = Rule(conditions, old.output, self.statistics[i])
            rules.append(old if made == old else made)
        if tuple(rules) == self.ruleset.rules:
            return self.ruleset
        return self.ruleset.replace(rules=rules)


def simplify_exactly(ruleset: RuleSet, domain: Domain | None) -> RuleSet:
    """Leave out and join rules without changing any prediction on the domain."""
    if len(ruleset) == 0 or _nearest_among_gaps(ruleset):
        return ruleset
    table = ExactRules(ruleset, domain)
    changed = True
    while changed:
        changed = _strike_needless(table)
        changed |= merge_boxes(table)
        changed |= unite_values(table)
        changed |= unite_missing(table)
        # Shorter rules last: boxes that are widened one by one may no longer fit together.
        if not changed and ruleset.ordered and not ruleset.disjoint:
            changed = _drop_implied(table)
    short = table.result()
    # Bounds that are gone leave fewer cells, in which more can be told of missing values.
    fewer = (len(short), short.n_literals) < (len(ruleset), ruleset.n_literals)
    return simplify_exactly(short, domain) if fewer and table.speaks.any() else short


def _nearest_among_gaps(ruleset: RuleSet) -> bool:
    """Whether the nearest rule predicts, and how far one is depends on what is missing."""
    nearest = ruleset.fallback is not None and ruleset.fallback.policy == "nearest"
    return nearest and any(
        isinstance(c, Missing) for rule in ruleset.rules for c in rule.non_intervals
    )


def _strike_needless(table: ExactRules) -> bool:
    """Take out the rules that others cover: earlier ones always, later ones alike."""
    if table.by_nearest:
        return False
    before = int(table.alive.sum())
    for rule in table.open.tolist():
        if table.covered_before(
            table.low[rule], table.high[rule], table.rank[rule], table.extra_conditions[rule], rule
        ):
            table.strike(rule)
    # From the end, so that a row of rules hands its statistics down to the last one.
    for rule in table.open[::-1].tolist():
        _strike_if_predicted_alike(table, rule)
    return int(table.alive.sum()) < before


def _strike_if_predicted_alike(table: ExactRules, rule: int) -> None:
    low, high, given = table.low[rule], table.high[rule], table.extra_conditions[rule]
    where, forbidden = [], []
    for m in table.meeting(low, high).tolist():
        later, differs = table.rank[m] > table.rank[rule], table.code[m] != table.code[rule]
        known = all_implied(given, table.extra_conditions[m])
        if m == rule:
            continue
        if later and differs:
            if not exclude(given, table.extra_conditions[m]):
                where.append(m)
                forbidden.append(True)
        elif known:
            where.append(m)
            forbidden.append(False)
    found = covering_boxes(
        low, high, table.low[where], table.high[where], np.array(forbidden, bool), table.budget
    )
    if found is None:
        return
    covering_now = [where[i] for i in found if table.rank[where[i]] > table.rank[rule]]
    one = len(covering_now) == 1 and not table.by_priority
    table.strike(rule, merged_into=covering_now[0] if one else None)


def _drop_implied(table: ExactRules) -> bool:
    """Take away the bounds of an ordered list behind which earlier rules cover everything."""
    if table.by_nearest:
        return False
    changed = False
    for rule in table.open.tolist():
        bounded = (table.lower[rule] > -np.inf) | (table.upper[rule] < np.inf)
        for feature in np.flatnonzero(bounded).tolist():
            for below, bounds in ((True, table.lower), (False, table.upper)):
                wide = table.freed(rule, feature, below)
                if np.isfinite(bounds[rule, feature]) and _can_grow(table, rule, wide):
                    table.free(rule, feature, below)
                    changed = True
        for feature in np.flatnonzero(table.speaks & ~bounded).tolist():  # is missing, is known
            whole = table.low[rule].copy(), table.high[rule].copy()
            whole[0][feature], whole[1][feature] = 0, table.end[feature]
            narrow = table.high[rule, feature] - table.low[rule, feature] < table.end[feature]
            if narrow and _can_grow(table, rule, whole):
                table.low[rule], table.high[rule] = whole
                changed = True
    return changed


def _can_grow(table: ExactRules, rule: int, wide: tuple[np.ndarray, np.ndarray]) -> bool:
    """Whether earlier rules cover all that a wider box would add to a rule."""
    more = slabs(*wide, table.low[rule], table.high[rule])
    given, rank = table.extra_conditions[rule], table.rank[rule]
    return all(table.covered_before(*slab, rank, given, rule) for slab in more)


def merge_boxes(table: ExactRules) -> bool:
    """Join rules of one output whose boxes are equal but for one feature, on which they touch."""
    changed, progress = False, True
    while progress:
        progress = False
        words = _words(table)
        runs = [_runs(table, words, feature) for feature in range(table.low.shape[1])]
        # The feature with most to join goes first: grids collapse by whole rows and columns.
        for feature in sorted(range(len(runs)), key=lambda j: -sum(map(len, runs[j]))):
            for run in runs[feature]:
                progress |= _merge_run(table, run, feature)
            if progress:
                changed = True
                break
    return changed


def _words(table: ExactRules) -> np.ndarray:
    """A random-looking word for every rule's range on every feature, in which equal ones agree."""
    feature = np.arange(table.low.shape[1], dtype=np.uint64)
    mixed = _mix(table.low.astype(np.uint64) + (feature << np.uint64(40)))
    return _mix(mixed + table.high.astype(np.uint64))


def _mix(values: np.ndarray) -> np.ndarray:
    """Scatter whole numbers over all words of 64 bits (the finalizer of splitmix64)."""
    values = (values + np.uint64(0x9E3779B97F4A7C15)).astype(np.uint64)
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def _runs(table: ExactRules, words: np.ndarray, feature: int) -> list[list[int]]:
    """Rules that may be equal but for a feature, along which each touches one before it."""
    open_rules = np.sort(table.open)
    kinds: dict[Any, int] = {}
    kind = [
        kinds.setdefault((table.code[i], frozenset(table.extra_conditions[i])), len(kinds))
        for i in open_rules.tolist()
    ]
    rest = words.sum(axis=1, dtype=np.uint64) - words[:, feature]
    key = rest[open_rules] + _mix(np.array(kind, dtype=np.uint64))
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
        kept = _merged_along(table, current, rule, feature)
        progress |= kept is not None
        if kept is not None:
            current = kept
        elif table.high[rule, feature] > table.high[current, feature]:
            current = rule
    return progress


def _merged_along(table: ExactRules, one: int, other: int, feature: int) -> int | None:
    """Join two rules if that changes no prediction; the index of the joint rule."""
    same = (table.low[one] == table.low[other]) & (table.high[one] == table.high[other])
    same[feature] = table.low[other, feature] <= table.high[one, feature]
    alike = table.code[one] == table.code[other]
    if not (
        same.all()
        and alike
        and set(table.extra_conditions[one]) == set(table.extra_conditions[other])
    ):
        return None
    high = max(table.high[one, feature], table.high[other, feature])
    low = min(table.low[one, feature], table.low[other, feature])
    known = low == table.first[feature] and high == table.last[feature]
    if known and high - low < table.end[feature] and not table.speaks[feature]:
        return None  # all numbers but no missing value: no interval says that
    kept = _place(table, one, other)
    if kept is None:
        return None
    lost = one + other - kept
    table.widen(kept, feature, lost)
    table.join(kept, lost)
    return kept


def _place(table: ExactRules, one: int, other: int) -> int | None:
    """Which of two rules of one output may stand for both; None if neither."""
    first, last = min(one, other), max(one, other)
    if table.by_nearest:
        # Of equally near boxes the first predicts, so none of another output may stand between.
        between = np.flatnonzero(table.code[first:last] != table.code[first]) + first
        empty = (table.low[between] >= table.high[between]).any(axis=1)
        if (table.alive[between] & ~(empty & ~table.frozen[between])).any():
            return None
    for kept, lost in ((first, last), (last, first)):
        rank = table.ranks_after(kept, lost)
        if all(_may_move(table, part, rank, kept, (one, other)) for part in (one, other)):
            return kept
    return None


def _may_move(
    table: ExactRules, part: int, rank: np.ndarray, kept: int, pair: tuple[int, int]
) -> bool:
    """Whether no prediction changes if a rule predicts at another one's new index."""
    was_before, is_before = table.rank < table.rank[part], rank < rank[kept]
    given = table.extra_conditions[part]
    for m in table.meeting(table.low[part], table.high[part]).tolist():
        if m in pair or table.code[m] == table.code[part] or was_before[m] == is_before[m]:
            continue
        if exclude(given, table.extra_conditions[m]):
            continue
        if table.by_priority:
            return False
        # What matters is where that rule really predicts, or would if this one stood behind it.
        low = np.maximum(table.low[part], table.low[m])
        high = np.minimum(table.high[part], table.high[m])
        limit = int(table.rank[m] if was_before[m] else table.rank[part])
        if not table.covered_before(low, high, limit, (*given, *table.extra_conditions[m]), part):
            return False
    return True


def unite_missing(table: ExactRules) -> bool:
    """Join rules of one output that are equal but for a feature that is missing in one of them."""
    changed = False
    for j in np.flatnonzero(table.speaks).tolist():
        for rule in table.open.tolist():
            if table.alive[rule] and not table.holds_numbers[rule, j]:
                changed |= _unite_with_numbers(table, rule, j)
    return changed


def _unite_with_numbers(table: ExactRules, rule: int, feature: int) -> bool:
    for partner in np.sort(table.open).tolist():
        same = (table.low[rule] == table.low[partner]) & (table.high[rule] == table.high[partner])
        same[feature] = table.holds_numbers[partner, feature]
        alike = table.code[rule] == table.code[partner]
        if not (
            same.all()
            and alike
            and set(table.extra_conditions[rule]) == set(table.extra_conditions[partner])
        ):
            continue
        kept = _place(table, rule, partner)
        if kept is None:
            continue
        (side,) = (c for c in table.boxes.intervals(partner) if c.feature == feature)
        table.extra_conditions[kept] = (*table.extra_conditions[kept], replace(side, missing=True))
        table.free(kept, feature, True)
        table.free(kept, feature, False)
        table.join(kept, rule + partner - kept)
        return True
    return False


def unite_values(table: ExactRules) -> bool:
    """Join rules of one output that are equal but for the values of one categorical feature."""
    changed = False
    while _unite_one_pair(table):
        changed = True
    return changed


def _unite_one_pair(table: ExactRules) -> bool:
    seen: dict[Any, list[tuple[int, OneOf | Interval | Missing]]] = {}
    for rule in np.sort(table.open).tolist():
        box = table.low[rule].tobytes(), table.high[rule].tobytes(), table.code[rule]
        for condition in table.extra_conditions[rule]:
            if not isinstance(condition, OneOf | Interval | Missing):
                continue
            rest = frozenset(c for c in table.extra_conditions[rule] if c is not condition)
            alike = seen.setdefault((*box, condition.feature, rest), [])
            for partner, known in alike:
                both = united(known, condition)
                kept = None if both is None else _place(table, partner, rule)
                if both is None or kept is None:
                    continue
                others = (both if c is known else c for c in table.extra_conditions[partner])
                table.extra_conditions[kept] = tuple(c for c in others if not c.is_trivial)
                table.join(kept, partner + rule - kept)
                return True
            alike.append((rule, condition))
    return False
