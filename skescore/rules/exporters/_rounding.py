"""Rounding of bounds to the fewest digits without changing predictions for given rows."""

from __future__ import annotations

import dataclasses
import math
import sys
from collections.abc import Callable, Iterator, Mapping, Set
from itertools import groupby
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from skescore._validation import check_number
from skescore.rules._boxes import BoxTable
from skescore.rules._conditions import AtLeast, Condition, Interval, Linear, Missing, OneOf
from skescore.rules._domain import Domain
from skescore.rules._row_table import RowTable
from skescore.rules._rule import LinearOutput
from skescore.rules._text import decimals_for_range

if TYPE_CHECKING:
    from skescore.rules._ruleset import RuleSet

#: Bounded quantity: the index of a feature, or the terms of a linear condition.
_Quantity: TypeAlias = int | tuple[tuple[int, float], ...]
#: Whether a bound separates values equal to it from smaller values (True) or larger ones (False).
_Kinds: TypeAlias = set[bool]
#: New value of a bound, and the side of values equal to it: as before (None), with larger values
#: (True: ``x < 3``, ``x >= 3``) or with smaller values (False: ``x <= 3``, ``x > 3``).
_Moved: TypeAlias = tuple[float, bool | None]
#: Shares of the distance to the next row by which bounds may move; the first share that does not
#: change predictions is used.
_REACHES = (1.0, 0.25, 0.05, 0.01, 1e-3, 1e-4, 1e-6, 1e-8)
#: Largest number of times that a function is shortened; its text rarely changes more than twice.
_MAX_ROUNDS = 10
_LARGEST = sys.float_info.max
#: Largest number up to which floats represent every integer.
_MAX_EXACT_INTEGER = 2.0**53


def shorten_numbers(ruleset: RuleSet, X: Any, reach: float | None = None) -> RuleSet:
    """Shorten the bounds of all conditions; see :meth:`RuleSet.shorten`."""
    if reach is not None:
        reach = check_number("reach", reach, 0.0, remedy="It is a share of a feature's range.")
    table = RowTable.of(X, ruleset.feature_names)
    if len(table) == 0:
        raise ValueError(
            "X must hold at least one row, got none: without rows, bounds could be any numbers."
        )

    def limit(values: np.ndarray) -> float:
        finite = values[np.isfinite(values)]
        return math.inf if reach is None or not len(finite) else reach * float(np.ptp(finite))

    bounds = _bounds_of(ruleset)
    sorted_values = {quantity: _values(table, quantity) for quantity in bounds}
    ranges = {q: _allowed_ranges(sorted_values[q], kinds) for q, kinds in bounds.items()}
    limits = {q: limit(sorted_values[q]) for q in bounds}
    nearest = ruleset.fallback is not None and ruleset.fallback.policy == "nearest"
    if not nearest:
        return _replace_bounds(ruleset, _shorten_bounds(ranges, limits, 1.0))
    predictions = ruleset.predict(table)
    for share in _REACHES:
        shorter = _replace_bounds(ruleset, _shorten_bounds(ranges, limits, share))
        same = shorter.predict(table)
        if np.array_equal(predictions, same, equal_nan=predictions.dtype.kind == "f"):
            return shorter
    return ruleset


def readable_bounds(ruleset: RuleSet, X: np.ndarray) -> RuleSet:
    """Round the bounds of rules so that every training row stays on the same side of each bound.

    Columns of whole numbers get whole bounds, conditions on columns with two values name one of
    them, and all other bounds get the fewest digits within 1/2000 of the feature's range. The text
    of the rules is then short and exact.

    Parameters
    ----------
    ruleset : RuleSet
        The rules, in the units of the rows.
    X : ndarray of float, shape (n_rows, n_features)
        Training rows of the rules; values of categorical columns are ignored.

    Returns
    -------
    RuleSet
        Rules that hold for the same rows. The domain lists the values of columns with two values.
    """
    table = RowTable(X, ruleset.feature_names)
    nearest = ruleset.fallback is not None and ruleset.fallback.policy == "nearest"
    if not nearest:  # the nearest rule depends on the distances to bounds
        ruleset = _name_two_values(ruleset, table)
    bounds, intervals = _bounds_of(ruleset), _intervals_by_feature(ruleset)
    moved: dict[_Quantity, dict[float, _Moved]] = {}
    for quantity, bound_kinds in bounds.items():
        values = _values(table, quantity)
        finite = values[np.isfinite(values)]
        new_bounds = None
        if not nearest and isinstance(quantity, int) and len(finite):
            new_bounds = _whole_bounds(finite, bound_kinds, intervals.get(quantity, set()))
        if new_bounds is None:
            decimals = decimals_for_range(finite[0], finite[-1]) if len(finite) else None
            limit = 0.0 if decimals is None else 0.5 * 10.0**-decimals
            allowed = {quantity: _allowed_ranges(values, bound_kinds)}
            new_bounds = _shorten_bounds(allowed, {quantity: limit}, 1.0)[quantity]
        moved[quantity] = new_bounds
    result = _extend_domain(_replace_bounds(ruleset, moved), moved)
    if nearest and not np.array_equal(ruleset.predict(table), result.predict(table)):
        return ruleset
    return result


def readable_outputs(ruleset: RuleSet, predictions: np.ndarray) -> RuleSet:
    """Round the outputs of rules for regression to the digits of their text.

    Parameters
    ----------
    ruleset : RuleSet
        Rules for regression.
    predictions : ndarray of float, shape (n_rows,)
        Predictions from which the rules were learned. Constants keep at least four significant
        digits, and enough decimals to distinguish 1/1000 of the predictions' range. Functions
        change by at most about 1/1000 of their own range.

    Returns
    -------
    RuleSet
        The rules with shorter numbers.
    """
    decimals = decimals_for_range(float(predictions.min()), float(predictions.max()))

    def shorter(output: Any) -> Any:
        if isinstance(output, LinearOutput):
            return _shorten_function(output, ruleset.domain)
        value = float(output)
        if value == 0 or not math.isfinite(value):
            return value
        digits = 3 - math.floor(math.log10(abs(value)))
        return round(value, digits if decimals is None else max(digits, decimals))

    rules = [dataclasses.replace(rule, output=shorter(rule.output)) for rule in ruleset]
    fallback = ruleset.fallback
    if fallback is not None and fallback.output is not None:
        fallback = dataclasses.replace(fallback, output=shorter(fallback.output))
    return ruleset.replace(rules=rules, fallback=fallback)


def _shorten_function(function: LinearOutput, domain: Domain | None) -> LinearOutput:
    """Round the numbers of a function so that its text in a domain is exact."""
    for _ in range(_MAX_ROUNDS):
        constant, sizes = function.number_texts(domain)
        pairs = zip(function.terms, sizes, strict=True)
        terms = tuple((f, math.copysign(float(size), c)) for (f, c), size in pairs)
        shorter = LinearOutput(float(constant), terms)
        if shorter == function:
            break
        function = shorter
    return function


def _bounded(conditions: tuple[Condition, ...]) -> Iterator[tuple[_Quantity, Interval | Linear]]:
    for condition in conditions:
        if isinstance(condition, AtLeast):
            yield from _bounded(condition.conditions)
        elif isinstance(condition, Interval):
            yield condition.feature, condition
        elif isinstance(condition, Linear):
            yield condition.terms, condition


def _bounds_of(ruleset: RuleSet) -> dict[_Quantity, dict[float, _Kinds]]:
    """Return the bounds of every quantity, and which values each bound separates."""
    result: dict[_Quantity, dict[float, _Kinds]] = {}
    boxes = ruleset.boxes
    # x >= b and x < b separate the values below b, x > b and x <= b those above.
    for bounds, below in ((boxes.lower, boxes.lower_closed), (boxes.upper, ~boxes.upper_closed)):
        for j in np.flatnonzero(np.isfinite(bounds).any(axis=0)).tolist():
            kinds = result.setdefault(j, {})
            at = np.flatnonzero(np.isfinite(bounds[:, j]))
            for bound, kind in {*zip(bounds[at, j].tolist(), below[at, j].tolist(), strict=True)}:
                kinds.setdefault(bound, set()).add(kind)
    if not ruleset.boxes_only:
        for rule in ruleset.rules:
            for quantity, condition in _bounded(rule.non_intervals):
                bound_kinds = result.setdefault(quantity, {})
                if condition.lower > -math.inf:
                    bound_kinds.setdefault(condition.lower, set()).add(condition.lower_closed)
                if condition.upper < math.inf:
                    bound_kinds.setdefault(condition.upper, set()).add(not condition.upper_closed)
    return result


def _values(table: RowTable, quantity: _Quantity) -> np.ndarray:
    """Return the sorted observed values of a quantity on the rows."""
    rows = slice(None)
    if isinstance(quantity, int):
        values = table.numbers(quantity, rows)
    else:
        # Infinite values may cancel to NaN, as in Linear.holds.
        with np.errstate(over="ignore", invalid="ignore"):
            values = np.asarray(sum(c * table.numbers(f, rows) for f, c in quantity))
    return np.sort(values[~np.isnan(values)])


def _allowed_ranges(
    values: np.ndarray, kinds: dict[float, _Kinds]
) -> list[tuple[float, float, float]]:
    """Return for every bound the closed range of numbers that separate the same values."""
    bounds = np.array(sorted(kinds))
    if len(values) == 0:
        return [(b, b, b) for b in bounds.tolist()]
    low, high = np.full(len(bounds), -_LARGEST), np.full(len(bounds), _LARGEST)
    for below in (True, False):
        used = np.array([below in kinds[b] for b in bounds.tolist()])
        cut = np.searchsorted(values, bounds, side="left" if below else "right")
        last = np.where(cut > 0, values[np.maximum(cut - 1, 0)], -np.inf)
        first = np.where(cut < len(values), values[np.minimum(cut, len(values) - 1)], np.inf)
        # A bound may equal one of its two neighbors, depending on the side that it separates.
        start = np.nextafter(last, np.inf) if below else last
        stop = first if below else np.nextafter(first, -np.inf)
        low = np.where(used, np.maximum(low, start), low)
        high = np.where(used, np.minimum(high, stop), high)
    # Bounds move at most halfway to the next bound, so that they keep their order.
    middle = bounds[:-1] / 2 + bounds[1:] / 2
    inside = (middle > bounds[:-1]) & (middle <= bounds[1:])
    middle = np.where(inside, middle, bounds[1:])
    low[1:] = np.maximum(low[1:], middle)
    high[:-1] = np.minimum(high[:-1], np.nextafter(middle, -np.inf))
    return list(zip(bounds.tolist(), low.tolist(), high.tolist(), strict=True))


def _shorten_bounds(
    ranges: Mapping[_Quantity, list[tuple[float, float, float]]],
    limits: Mapping[_Quantity, float],
    share: float,
) -> dict[_Quantity, dict[float, _Moved]]:
    """Return the shortest bounds within the limits and a share of the allowed ranges."""
    result: dict[_Quantity, dict[float, _Moved]] = {}
    for quantity, allowed in ranges.items():
        new_bounds, limit = result.setdefault(quantity, {}), limits[quantity]
        for bound, low, high in allowed:
            if share < 1:
                low, high = bound - share * (bound - low), bound + share * (high - bound)
            low, high = max(low, bound - limit), min(high, bound + limit)
            new_bounds[bound] = _shortest(bound, low, high), None
    return result


def _replace_bounds(ruleset: RuleSet, moved: Mapping[_Quantity, Mapping[float, _Moved]]) -> RuleSet:
    """Replace the bounds of rules."""

    def replace(condition: Condition) -> Condition:
        if isinstance(condition, AtLeast):
            return AtLeast(condition.m, tuple(map(replace, condition.conditions)))
        if not isinstance(condition, Interval | Linear):
            return condition
        new_bounds = moved[
            condition.feature if isinstance(condition, Interval) else condition.terms
        ]
        lower, above = new_bounds.get(condition.lower, (condition.lower, None))
        upper, below = new_bounds.get(condition.upper, (condition.upper, None))
        return dataclasses.replace(
            condition,
            lower=lower,
            upper=upper,
            lower_closed=condition.lower_closed if above is None else above,
            upper_closed=condition.upper_closed if below is None else not below,
        )

    boxes = _move_box_bounds(ruleset.boxes, {j: m for j, m in moved.items() if isinstance(j, int)})
    if ruleset.boxes_only:
        return ruleset.with_boxes(boxes)
    other_conditions = [tuple(map(replace, rule.non_intervals)) for rule in ruleset.rules]
    return ruleset.with_boxes(boxes, other_conditions)


def _move_box_bounds(boxes: BoxTable, moved: Mapping[int, Mapping[float, _Moved]]) -> BoxTable:
    """Replace the bounds of boxes."""
    lower, upper = boxes.lower.copy(), boxes.upper.copy()
    lower_closed, upper_closed = boxes.lower_closed.copy(), boxes.upper_closed.copy()
    for j, new_bounds in moved.items():
        before = np.array(sorted(new_bounds))
        after = np.array([new_bounds[b][0] for b in before.tolist()])
        sides = [new_bounds[b][1] for b in before.tolist()]
        is_changed = np.array([side is not None for side in sides], dtype=bool)
        above = np.array([bool(side) for side in sides], dtype=bool)
        for bounds, is_closed, includes_bound in (
            (lower, lower_closed, above),
            (upper, upper_closed, ~above),
        ):
            at = np.flatnonzero(np.isfinite(bounds[:, j]))
            position = np.searchsorted(before, bounds[at, j])
            bounds[at, j] = after[position]
            is_closed[at, j] = np.where(
                is_changed[position], includes_bound[position], is_closed[at, j]
            )
    return BoxTable(lower, upper, lower_closed, upper_closed, boxes.missing)


def _nearest_integer(value: float) -> int:
    """Return the nearest whole number; the lower one near the middle, where trees cut."""
    return math.ceil(value - 0.51)


def _whole_bounds(
    values: np.ndarray, kinds: dict[float, _Kinds], intervals: set[Interval]
) -> dict[float, _Moved] | None:
    """Return integer bounds that separate the same values of a column of integers.

    Returns None for other columns, or if an interval would contain no number. A bound between two
    neighboring integers becomes the nearer one (the lower one in a tie). An integer that is another
    bound is never used, and the smallest and largest values are avoided if possible.
    """
    bounds = sorted(kinds)
    if (values != np.floor(values)).any() or max(-bounds[0], bounds[-1]) > _MAX_EXACT_INTEGER:
        return None
    integer_bounds: dict[float, _Moved] = {b: (b, None) for b in bounds if b.is_integer()}
    fractional_bounds = [b for b in bounds if not b.is_integer()]
    together = [list(group) for _, group in groupby(fractional_bounds, math.floor)]
    ends = {float(values[0]), float(values[-1])}
    for groups in (together, [[b] for b in fractional_bounds]):
        for reserved in (ends | integer_bounds.keys(), integer_bounds.keys()):
            for preferred in (_nearest_integer, math.floor, math.ceil):
                trial = _place_bounds(groups, reserved, preferred)
                if trial is not None and _keep_volume(intervals, integer_bounds | trial):
                    return integer_bounds | trial
    return None


def _place_bounds(
    groups: list[list[float]], reserved: Set[float], preferred: Callable[[float], int]
) -> dict[float, _Moved] | None:
    """Assign an increasing whole number to each group of bounds; return None if impossible."""
    result: dict[float, _Moved] = {}
    last = -math.inf
    for group in groups:
        low = float(math.floor(group[0]))
        neighbors = [low, low + 1]
        if preferred(math.fsum(group) / len(group)) != low:
            neighbors.reverse()
        allowed = [n for n in neighbors if n > last and n not in reserved]
        if not allowed:
            return None
        last = allowed[0]
        result.update(dict.fromkeys(group, (last, last > low)))
    return result


def _keep_volume(intervals: set[Interval], moved: Mapping[float, _Moved]) -> bool:
    """Return whether every interval keeps a positive length after its bounds have moved."""
    for interval in intervals:
        lower, above = moved.get(interval.lower, (interval.lower, None))
        upper, below = moved.get(interval.upper, (interval.upper, None))
        is_closed = interval.lower_closed if above is None else above
        is_closed = is_closed and (interval.upper_closed if below is None else not below)
        if lower > upper or (lower == upper and not is_closed):
            return False
        if lower == upper and interval.lower < interval.upper:
            return False  # the interval would have no volume
    return True


def _extend_domain(ruleset: RuleSet, moved: Mapping[_Quantity, Mapping[float, _Moved]]) -> RuleSet:
    """Extend the domain by 1 beyond the first or last value of a column if a bound moved there.

    Otherwise, a box that contains only this value would have no volume.
    """
    assert ruleset.domain is not None
    lower, upper = list(ruleset.domain.lower), list(ruleset.domain.upper)
    for feature, new_bounds in moved.items():
        if isinstance(feature, int):
            for bound, above in new_bounds.values():
                if above is False and bound <= math.ceil(lower[feature]):
                    lower[feature] = bound - 1
                if above is True and bound >= math.floor(upper[feature]):
                    upper[feature] = bound + 1
    if (tuple(lower), tuple(upper)) == (ruleset.domain.lower, ruleset.domain.upper):
        return ruleset
    domain = dataclasses.replace(ruleset.domain, lower=tuple(lower), upper=tuple(upper))
    return ruleset.replace(domain=domain)


def _interval_mask(interval: Interval, values: np.ndarray) -> np.ndarray:
    return interval.holds(lambda _: values)


def _name_two_values(ruleset: RuleSet, table: RowTable) -> RuleSet:
    """Replace intervals on columns with two values by conditions that name the value."""
    domain = ruleset.domain
    assert domain is not None
    two_values: dict[int, tuple[int, ...]] = {}
    for feature, intervals in _intervals_by_feature(ruleset).items():
        column = table.numbers(feature, slice(None))
        values = np.unique(column[~np.isnan(column)][:_N_FIRST_ROWS])
        if len(values) > 2 or len(values := np.unique(column[~np.isnan(column)])) != 2:
            continue
        matches = [_interval_mask(interval, values) for interval in intervals]
        # Codes such as 0 and 1, 1 and 2, or -1 and 1.
        is_code_pair = values[1] == values[0] + 1 or values[1] == -values[0] == 1
        is_integral = (
            bool((values == np.floor(values)).all()) and abs(values).max() < _MAX_EXACT_INTEGER
        )
        if is_integral and is_code_pair and all(h.any() for h in matches):
            two_values[feature] = tuple(int(v) for v in values)
    if not two_values:
        return ruleset

    def name(condition: Condition) -> Condition | None:
        """Express a condition by the two values; return None if it always holds."""
        if isinstance(condition, AtLeast):
            parts = [name(part) for part in condition.conditions]
            m = condition.m - parts.count(None)
            return AtLeast(m, tuple(p for p in parts if p is not None)) if m > 0 else None
        if not isinstance(condition, Interval) or condition.feature not in two_values:
            return condition
        feature, values = condition.feature, two_values[condition.feature]
        matches = _interval_mask(condition, np.array(values, dtype=float)).tolist()
        if not all(matches):
            value = values[matches.index(True)]
            return OneOf(feature, (value,), missing=condition.missing)
        if condition.missing or not domain.missing[feature]:
            return None
        return Missing(feature, negated=True)

    lower, upper = list(domain.lower), list(domain.upper)
    for feature, pair in two_values.items():
        lower[feature], upper[feature] = 0.0, float(len(pair))
    categories = (*domain.categories, *two_values.items())
    rules = []
    for rule in ruleset.rules:
        conditions = tuple(renamed for c in rule.conditions if (renamed := name(c)) is not None)
        rules.append(dataclasses.replace(rule, conditions=conditions))
    return ruleset.replace(
        rules=rules, domain=Domain(tuple(lower), tuple(upper), categories, domain.missing)
    )


#: Number of rows that are searched for a third value first.
_N_FIRST_ROWS = 64


def _intervals_by_feature(ruleset: RuleSet) -> dict[int, set[Interval]]:
    boxes, intervals = ruleset.boxes, dict[int, set[Interval]]()
    for j in np.flatnonzero(boxes.bounded.any(axis=0)).tolist():
        columns = (boxes.lower, boxes.upper, boxes.lower_closed, boxes.upper_closed, boxes.missing)
        different = {*zip(*(column[:, j].tolist() for column in columns), strict=True)}
        intervals[j] = {Interval(j, *bounds) for bounds in different}
    if not ruleset.boxes_only:
        for rule in ruleset.rules:
            for _, condition in _bounded(rule.non_intervals):
                if isinstance(condition, Interval):
                    intervals.setdefault(condition.feature, set()).add(condition)
    return intervals


def _shortest(bound: float, low: float, high: float) -> float:
    """Return the number with the fewest digits between two limits; the bound if none is shorter."""
    low, high = min(low, bound), max(high, bound)
    for candidates in (_whole_numbers(bound), _decimals(bound)):
        for pair in candidates:
            candidates_between = [number for number in pair if low <= number <= high]
            if candidates_between:
                return min(candidates_between, key=lambda number: abs(number - bound))
    return bound


def _whole_numbers(bound: float) -> Iterator[list[float]]:
    """Yield whole numbers below and above, with one digit before trailing zeros, then two, ..."""
    integer_part = math.floor(bound)
    # The digits of the bound count: the integer below -999.5, which is -1000, has one more.
    for zeros in range(len(str(abs(int(bound)))) - 1, -1, -1):
        step = 10**zeros
        yield _neighbors(integer_part // step * step, step)


def _neighbors(below: int, step: int) -> list[float]:
    return [_as_float(lambda: float(below)), _as_float(lambda: float(below + step))]


def _decimals(bound: float) -> Iterator[list[float]]:
    """Yield the numbers below and above with one decimal, two, and so on."""
    numerator, denominator = bound.as_integer_ratio()
    digits = max(0, -math.frexp(bound)[1]) * 0.302 + 18  # more digits than a float has
    for decimals in range(1, int(digits) + 1):
        power = 10**decimals
        below = numerator * power // denominator
        # Quotients of integers are rounded correctly, so they equal the floats of the decimals.
        yield [below / power, (below + 1) / power]


def _as_float(make: Callable[[], float]) -> float:
    try:
        return make()
    except OverflowError:
        return math.inf
