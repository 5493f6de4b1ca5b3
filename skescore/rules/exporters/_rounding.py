"""Bounds in the fewest digits that leave every predict on some rows as it is."""

from __future__ import annotations

import dataclasses
import math
import sys
from collections.abc import Callable, Hashable, Iterator
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from skescore.rules._conditions import AtLeast, Condition, Interval, Linear
from skescore.rules._matching import Table

if TYPE_CHECKING:
    from skescore.rules._ruleset import RuleSet

#: What is bounded: a feature's index, or the terms of a linear condition.
_Quantity: TypeAlias = int | tuple[tuple[int, float], ...]
#: Whether a bound parts the values equal to it from those below (True), from those above (False).
_Kinds: TypeAlias = set[bool]
#: How much of the way to the next row a bound may move, until the predictions stay as they are.
_REACHES = (1.0, 0.25, 0.05, 0.01, 1e-3, 1e-4, 1e-6, 1e-8)
_LARGEST = sys.float_info.max


def shorten_numbers(ruleset: RuleSet, X: Any) -> RuleSet:
    """Write the bounds of all conditions in the fewest digits; see :meth:`RuleSet.shorten`."""
    table = Table.of(X, ruleset.feature_names)
    if len(table) == 0:
        raise ValueError(
            "X must hold at least one row, got none: without rows any number would do for a bound."
        )
    bounds = _bounds_of(ruleset)
    ranges = {
        quantity: _allowed(_values(table, quantity), found) for quantity, found in bounds.items()
    }
    nearest = ruleset.fallback is not None and ruleset.fallback.policy == "nearest"
    if not nearest:
        return _replaced(ruleset, ranges, 1.0)
    predictions = ruleset.predict(table)
    for reach in _REACHES:
        shorter = _replaced(ruleset, ranges, reach)
        same = shorter.predict(table)
        if np.array_equal(predictions, same, equal_nan=predictions.dtype.kind == "f"):
            return shorter
    return ruleset


def _bounded(conditions: tuple[Condition, ...]) -> Iterator[tuple[_Quantity, Interval | Linear]]:
    for condition in conditions:
        if isinstance(condition, AtLeast):
            yield from _bounded(condition.conditions)
        elif isinstance(condition, Interval):
            yield condition.feature, condition
        elif isinstance(condition, Linear):
            yield condition.terms, condition


def _bounds_of(ruleset: RuleSet) -> dict[_Quantity, dict[float, _Kinds]]:
    """The bounds of every quantity, and between which values each of them parts."""
    result: dict[_Quantity, dict[float, _Kinds]] = {}
    for rule in ruleset.rules:
        for quantity, condition in _bounded(rule.conditions):
            found = result.setdefault(quantity, {})
            # x >= b and x < b part off the values below b, x > b and x <= b those above.
            if condition.lower > -math.inf:
                found.setdefault(condition.lower, set()).add(condition.lower_closed)
            if condition.upper < math.inf:
                found.setdefault(condition.upper, set()).add(not condition.upper_closed)
    return result


def _values(table: Table, quantity: _Quantity) -> np.ndarray:
    """The values of a quantity on the rows, sorted, without the missing ones."""
    rows = slice(None)
    if isinstance(quantity, int):
        values = table.numbers(quantity, rows)
    else:
        # Infinite values may cancel to NaN, as in Linear.holds.
        with np.errstate(over="ignore", invalid="ignore"):
            values = np.asarray(sum(c * table.numbers(f, rows) for f, c in quantity))
    return np.sort(values[~np.isnan(values)])


def _allowed(values: np.ndarray, found: dict[float, _Kinds]) -> list[tuple[float, float, float]]:
    """For every bound itself and the closed range of numbers that part the values like it."""
    bounds = np.array(sorted(found))
    if len(values) == 0:
        return [(b, b, b) for b in bounds.tolist()]
    low, high = np.full(len(bounds), -_LARGEST), np.full(len(bounds), _LARGEST)
    for below in (True, False):
        used = np.array([below in found[b] for b in bounds.tolist()])
        cut = np.searchsorted(values, bounds, side="left" if below else "right")
        last = np.where(cut > 0, values[np.maximum(cut - 1, 0)], -np.inf)
        first = np.where(cut < len(values), values[np.minimum(cut, len(values) - 1)], np.inf)
        # A bound may equal one of its two neighbours, depending on what it parts.
        start = np.nextafter(last, np.inf) if below else last
        stop = first if below else np.nextafter(first, -np.inf)
        low = np.where(used, np.maximum(low, start), low)
        high = np.where(used, np.minimum(high, stop), high)
    # Half the way to the next bound is each one's own, so that they keep their order.
    middle = bounds[:-1] / 2 + bounds[1:] / 2
    inside = (middle > bounds[:-1]) & (middle <= bounds[1:])
    middle = np.where(inside, middle, bounds[1:])
    low[1:] = np.maximum(low[1:], middle)
    high[:-1] = np.minimum(high[:-1], np.nextafter(middle, -np.inf))
    return list(zip(bounds.tolist(), low.tolist(), high.tolist(), strict=True))


def _replaced(
    ruleset: RuleSet, ranges: dict[_Quantity, list[tuple[float, float, float]]], reach: float
) -> RuleSet:
    """The rules with the shortest bounds, each at most `reach` of the way to its limits."""
    shorter: dict[Hashable, dict[float, float]] = {}
    for quantity, allowed in ranges.items():
        shorter[quantity] = {
            bound: _shortest(
                bound,
                low if reach == 1 else bound - reach * (bound - low),
                high if reach == 1 else bound + reach * (high - bound),
            )
            for bound, low, high in allowed
        }

    def replace(condition: Condition) -> Condition:
        if isinstance(condition, AtLeast):
            return AtLeast(condition.m, tuple(map(replace, condition.conditions)))
        if not isinstance(condition, Interval | Linear):
            return condition
        quantity = condition.feature if isinstance(condition, Interval) else condition.terms
        known = shorter[quantity]
        lower, upper = (known.get(b, b) for b in (condition.lower, condition.upper))
        if (lower, upper) == (condition.lower, condition.upper):
            return condition
        return dataclasses.replace(condition, lower=lower, upper=upper)

    rules = [
        dataclasses.replace(rule, conditions=tuple(map(replace, rule.conditions)))
        for rule in ruleset.rules
    ]
    return ruleset.replace(rules=rules)


def _shortest(bound: float, low: float, high: float) -> float:
    """The number with the fewest digits between two limits; the bound itself if it is as short."""
    low, high = min(low, bound), max(high, bound)
    for candidates in (_whole_numbers(bound), _decimals(bound)):
        for pair in candidates:
            found = [number for number in pair if low <= number <= high]
            if found:
                return min(found, key=lambda number: abs(number - bound))
    return bound


def _whole_numbers(bound: float) -> Iterator[list[float]]:
    """The whole numbers below and above, first with one digit before all zeros, then with more."""
    whole = math.floor(bound)
    # As many digits as the number itself has: below -999.5 stands -1000, with one more.
    for zeros in range(len(str(abs(int(bound)))) - 1, -1, -1):
        step = 10**zeros
        yield _neighbours(whole // step * step, step)


def _neighbours(below: int, step: int) -> list[float]:
    return [_as_float(lambda: float(below)), _as_float(lambda: float(below + step))]


def _decimals(bound: float) -> Iterator[list[float]]:
    """The numbers below and above with one decimal, two, and so on."""
    numerator, denominator = bound.as_integer_ratio()
    digits = max(0, -math.frexp(bound)[1]) * 0.302 + 18  # beyond the last digit of a float
    for decimals in range(1, int(digits) + 1):
        power = 10**decimals
        below = numerator * power // denominator
        # The quotient of whole numbers is rounded correctly, so it is what the decimal means.
        yield [below / power, (below + 1) / power]


def _as_float(make: Callable[[], float]) -> float:
    try:
        return make()
    except OverflowError:
        return math.inf
