"""Two rules as one: their statistics, their further conditions, their hull."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from skescore.rules._conditions import Condition, Interval, OneOf
from skescore.rules._rule import Rule, RuleStatistics

if TYPE_CHECKING:
    from skescore.rules.simplification._exact import RuleTable

Conditions = tuple[Condition, ...]


def combined(one: RuleStatistics | None, other: RuleStatistics | None) -> RuleStatistics | None:
    """What was seen where either of two rules answers; None if that is unknown of one of them.

    Rows and class counts add up; means weigh as many rows as they were taken from, and the
    spread follows from both means and spreads.

    Examples
    --------
    >>> combined(RuleStatistics(1, mean=0.0, spread=0.0), RuleStatistics(3, mean=4.0, spread=0.0))
    RuleStatistics(n_rows=4, class_counts=None, mean=3.0, spread=1.7320508075688772)
    """
    if one is None or other is None:
        return None
    counts = None
    if one.class_counts is not None and other.class_counts is not None:
        counts = tuple(a + b for a, b in zip(one.class_counts, other.class_counts, strict=True))
    n_rows = one.n_rows + other.n_rows
    share = other.n_rows / n_rows if n_rows > 0 else 0.5
    mean = spread = None
    if one.mean is not None and other.mean is not None:
        # One and the same mean must come out as itself, free of rounding.
        mean = one.mean if one.mean == other.mean else (1 - share) * one.mean + share * other.mean
        if one.spread is not None and other.spread is not None:
            within = math.hypot(math.sqrt(1 - share) * one.spread, math.sqrt(share) * other.spread)
            between = math.sqrt(share * (1 - share)) * abs(other.mean / 2 - one.mean / 2) * 2
            spread = math.hypot(within, between)
    return RuleStatistics(n_rows, counts, mean, spread)


# ---------------------------------------------------------------- conditions beside the box


def implies(one: Condition, other: Condition) -> bool:
    """Whether `other` surely holds wherever `one` does."""
    if one == other:
        return True
    if not (isinstance(one, OneOf) and isinstance(other, OneOf) and one.feature == other.feature):
        return False
    if not one.negated:
        inside = [value in other.values for value in one.values]
        return not any(inside) if other.negated else all(inside)
    return other.negated and all(value in one.values for value in other.values)


def all_implied(given: Sequence[Condition], asked: Sequence[Condition]) -> bool:
    """Whether all conditions asked for surely hold where the given ones do."""
    return all(any(implies(one, other) for one in given) for other in asked)


def exclude(one: Sequence[Condition], other: Sequence[Condition]) -> bool:
    """Whether two conjunctions surely never hold together."""
    return any(_contradict(a, b) for a in one for b in other)


def _contradict(one: Condition, other: Condition) -> bool:
    if not (isinstance(one, OneOf) and isinstance(other, OneOf) and one.feature == other.feature):
        return False
    if one.negated and other.negated:
        return False  # there are values that nobody has listed
    if one.negated:
        one, other = other, one
    inside = [value in other.values for value in one.values]
    return all(inside) if other.negated else not any(inside)


def without_implied(conditions: Conditions) -> Conditions:
    """Leave out the conditions that the others of the same rule imply."""
    kept = list(conditions)
    for condition in conditions:
        rest = [other for other in kept if other is not condition]
        if any(implies(other, condition) for other in rest):
            kept = rest
    return tuple(kept)


def united(one: OneOf, other: OneOf) -> OneOf | None:
    """One condition that holds where either does; None if no condition says that.

    "Any value at all" is not to be said, as a missing value still satisfies neither.
    """
    if one.feature != other.feature:
        return None
    if not one.negated and not other.negated:
        return OneOf(one.feature, (*one.values, *other.values))
    if one.negated and other.negated:
        barred = [value for value in one.values if value in other.values]
    else:
        wanted, unwanted = (other, one) if one.negated else (one, other)
        barred = [value for value in unwanted.values if value not in wanted.values]
    return OneOf(one.feature, tuple(barred), negated=True) if barred else None


def hull(one: Rule, other: Rule) -> Rule:
    """The smallest box around two rules, with the output of the first.

    Of the other conditions it keeps those that both rules make, and joins values of one feature.
    """
    boxes: dict[int, Interval] = {i.feature: i for i in other.intervals}
    conditions: list[Condition] = []
    for mine in one.intervals:
        theirs = boxes.get(mine.feature)
        if theirs is None:
            continue
        low = min(mine, theirs, key=lambda i: (i.lower, not i.lower_closed))
        high = max(mine, theirs, key=lambda i: (i.upper, i.upper_closed))
        both = (low.lower, high.upper, low.lower_closed, high.upper_closed)
        conditions.append(Interval(mine.feature, *both))
    for condition in one.others:
        if condition in other.others:
            conditions.append(condition)
            continue
        for partner in other.others:
            if isinstance(condition, OneOf) and isinstance(partner, OneOf):
                joint = united(condition, partner)
                if joint is not None:
                    conditions.append(joint)
    return Rule(tuple(conditions), one.output, combined(one.statistics, other.statistics))


# ---------------------------------------------------------------- who answers first


def merit_of(rule: Rule, output_index: int | None) -> tuple[float, float]:
    """What an unordered set prefers: purity, then rows."""
    seen = rule.statistics
    return rule.purity(output_index) or 0.0, float(seen.n_rows) if seen else 0.0


def ranks_of(merit: np.ndarray, by_priority: bool) -> np.ndarray:
    """Place of every rule in the order in which they answer; see :attr:`RuleSet._priority`."""
    order = np.lexsort((-merit[:, 1], -merit[:, 0])) if by_priority else np.arange(len(merit))
    ranks = np.empty(len(merit), dtype=np.intp)
    ranks[order] = np.arange(len(merit))
    return ranks


# ---------------------------------------------------------------- merging rules of a table


def merge_boxes(table: RuleTable) -> bool:
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


def _words(table: RuleTable) -> np.ndarray:
    """A random-looking word for every rule's range on every feature, in which equal ones agree."""
    feature = np.arange(table.low.shape[1], dtype=np.uint64)
    mixed = _mix(table.low.astype(np.uint64) + (feature << np.uint64(40)))
    return _mix(mixed + table.high.astype(np.uint64))


def _mix(values: np.ndarray) -> np.ndarray:
    """Scatter whole numbers over all words of 64 bits (the finaliser of splitmix64)."""
    values = (values + np.uint64(0x9E3779B97F4A7C15)).astype(np.uint64)
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def _runs(table: RuleTable, words: np.ndarray, feature: int) -> list[list[int]]:
    """Rules that may be equal but for a feature, along which each touches one before it."""
    open_rules = np.sort(table.open)
    kinds: dict[Any, int] = {}
    kind = [
        kinds.setdefault((table.code[i], frozenset(table.others[i])), len(kinds))
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


def _merge_run(table: RuleTable, run: list[int], feature: int) -> bool:
    current, progress = run[0], False
    for rule in run[1:]:
        kept = _merged_along(table, current, rule, feature)
        progress |= kept is not None
        if kept is not None:
            current = kept
        elif table.high[rule, feature] > table.high[current, feature]:
            current = rule
    return progress


def _merged_along(table: RuleTable, one: int, other: int, feature: int) -> int | None:
    """Join two rules if that changes no answer; the index of the joint rule."""
    same = (table.low[one] == table.low[other]) & (table.high[one] == table.high[other])
    same[feature] = table.low[other, feature] <= table.high[one, feature]
    alike = table.code[one] == table.code[other]
    if not (same.all() and alike and set(table.others[one]) == set(table.others[other])):
        return None
    high = max(table.high[one, feature], table.high[other, feature])
    if table.low[one, feature] == 0 and high == table.last[feature] < table.end[feature]:
        return None  # all numbers but no missing value: no interval says that
    kept = _place(table, one, other)
    if kept is None:
        return None
    lost = one + other - kept
    table.widen(kept, feature, lost)
    table.join(kept, lost)
    return kept


def _place(table: RuleTable, one: int, other: int) -> int | None:
    """Which of two rules of one output may answer for both; None if neither."""
    first, last = min(one, other), max(one, other)
    if table.by_nearest:
        # Of equally near boxes the first answers, so none of another output may stand between.
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
    table: RuleTable, part: int, rank: np.ndarray, kept: int, pair: tuple[int, int]
) -> bool:
    """Whether no answer changes if a rule answers at another one's new place."""
    was_before, is_before = table.rank < table.rank[part], rank < rank[kept]
    given = table.others[part]
    for m in table.meeting(table.low[part], table.high[part]).tolist():
        if m in pair or table.code[m] == table.code[part] or was_before[m] == is_before[m]:
            continue
        if exclude(given, table.others[m]):
            continue
        if table.by_priority:
            return False
        # What matters is where that rule really answers, or would if this one stood behind it.
        low = np.maximum(table.low[part], table.low[m])
        high = np.minimum(table.high[part], table.high[m])
        limit = int(table.rank[m] if was_before[m] else table.rank[part])
        if not table.answered_before(low, high, limit, (*given, *table.others[m]), part):
            return False
    return True


def unite_values(table: RuleTable) -> bool:
    """Join rules of one output that are equal but for the values of one categorical feature."""
    changed = False
    while _unite_one_pair(table):
        changed = True
    return changed


def _unite_one_pair(table: RuleTable) -> bool:
    seen: dict[Any, list[tuple[int, OneOf]]] = {}
    for rule in np.sort(table.open).tolist():
        box = table.low[rule].tobytes(), table.high[rule].tobytes(), table.code[rule]
        for condition in table.others[rule]:
            if not isinstance(condition, OneOf):
                continue
            rest = frozenset(c for c in table.others[rule] if c is not condition)
            alike = seen.setdefault((*box, condition.feature, rest), [])
            for partner, known in alike:
                both = united(known, condition)
                kept = None if both is None else _place(table, partner, rule)
                if both is None or kept is None:
                    continue
                others = table.others[partner]
                table.others[kept] = tuple(both if c is known else c for c in others)
                table.join(kept, partner + rule - kept)
                return True
            alike.append((rule, condition))
    return False
