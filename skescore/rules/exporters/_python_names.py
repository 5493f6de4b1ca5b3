"""Names, values and conditions as Python writes them."""

from __future__ import annotations

import builtins
import keyword
import math
import re
from collections.abc import Iterable, Sequence
from typing import Any

from skescore.rules._conditions import Condition, Interval, Linear, OneOf
from skescore.rules.exporters._common import elementary, plain_letters

_MAX_NAME = 40


class Variables:
    """One local variable per feature, or two where it is read both as a number and as a label.

    Parameters
    ----------
    feature_names : sequence of str
        The names, which may be anything.
    reserved : iterable of str
        Names that the function needs for itself.
    """

    def __init__(self, feature_names: Sequence[str], reserved: Iterable[str]) -> None:
        self._feature_names = feature_names
        self._taken = {*reserved, *dir(builtins), *keyword.kwlist, *keyword.softkwlist}
        self._names: dict[tuple[int, bool], str] = {}

    def number(self, feature: int) -> str:
        """The variable that holds a feature as a float."""
        return self._variable(feature, True)

    def label(self, feature: int) -> str:
        """The variable that holds a categorical feature."""
        return self._variable(feature, False)

    def reserve(self, conditions: Iterable[Condition], numbers: Iterable[int]) -> None:
        """Give all features that the conditions or sums use their variables, in feature order."""
        pairs = {(feature, True) for feature in numbers}
        for condition in elementary(conditions):
            pairs |= {(f, not isinstance(condition, OneOf)) for f in condition.features}
        for feature, as_number in sorted(pairs):
            self._variable(feature, as_number)

    def items(self) -> list[tuple[str, int, bool]]:
        """All variables with their feature, and whether it is read as a number."""
        return [(name, feature, as_number) for (feature, as_number), name in self._names.items()]

    def _variable(self, feature: int, as_number: bool) -> str:
        if (feature, as_number) not in self._names:
            name = base = _identifier(self._feature_names[feature], feature)
            count = 2
            while name in self._taken:
                name, count = f"{base}_{count}", count + 1
            self._taken.add(name)
            self._names[feature, as_number] = name
        return self._names[feature, as_number]


def _identifier(name: str, feature: int) -> str:
    """A lower-case name of plain letters, since Python takes some other letters for the same."""
    plain = plain_letters(name).lower()
    text = re.sub(r"[^a-z0-9]+", "_", plain)[:_MAX_NAME].strip("_")
    if not text:
        return f"x{feature}"
    return f"x_{text}" if text[0].isdigit() else text


def literal(value: Any) -> str:
    """Write a label or a key in the quotation marks that formatters of Python choose."""
    text = repr(value)
    if not isinstance(value, str) or text[0] == '"' or value.count('"') > value.count("'"):
        return text
    plain = text[1:-1].replace("\\'", "'").replace('"', '\\"')
    return f'"{plain}"'


def number(value: float) -> str:
    """Write a number so that Python reads the same."""
    value = float(value)
    return repr(value) if math.isfinite(value) else f'float("{value}")'


def tuple_text(parts: Iterable[str]) -> str:
    """Write a tuple."""
    listed = list(parts)
    return f"({listed[0]},)" if len(listed) == 1 else f"({', '.join(listed)})"


def summands(
    intercept: float | None, terms: Iterable[tuple[int, float]], names: Variables
) -> list[str]:
    """The parts of a sum of features in the order given, all but the first with their signs."""
    parts = [] if intercept is None else [number(intercept)]
    for feature, coefficient in terms:
        size, sign = abs(coefficient), "-" if coefficient < 0 else "+"
        term = names.number(feature)
        term = term if size == 1 else f"{number(size)} * {term}"
        if parts:
            parts.append(f"{sign} {term}")
        else:
            parts.append(f"-{term}" if sign == "-" else term)
    return parts


def affine(intercept: float | None, terms: Iterable[tuple[int, float]], names: Variables) -> str:
    """Write a sum of features, added up in the order given."""
    return " ".join(summands(intercept, terms, names))


def condition_text(condition: Condition, names: Variables) -> str:
    """Write a condition as an expression that is True or False, also where values are missing."""
    if isinstance(condition, Interval):
        return _between(names.number(condition.feature), condition)
    if isinstance(condition, Linear):
        return _between(affine(None, condition.terms, names), condition)
    if isinstance(condition, OneOf):
        return _one_of(condition, names.label(condition.feature))
    inner = [condition_text(c, names) for c in condition.conditions]
    if condition.m == 1:
        return f"({' or '.join(inner)})"
    if condition.m == len(inner):
        return f"({' and '.join(inner)})"
    return f"{' + '.join(f'({text})' for text in inner)} >= {condition.m}"


def _between(value: str, bounds: Interval | Linear) -> str:
    lower, upper = bounds.lower, bounds.upper
    if math.isinf(lower) and math.isinf(upper):
        return f"{value} == {value}"  # not so for NaN, which lies between no bounds
    if lower == upper:
        return f"{value} == {number(lower)}"
    above, below = "<=" if bounds.lower_closed else "<", "<=" if bounds.upper_closed else "<"
    if math.isinf(lower):
        return f"{value} {below} {number(upper)}"
    if math.isinf(upper):
        return f"{value} {'>=' if bounds.lower_closed else '>'} {number(lower)}"
    return f"{number(lower)} {above} {value} {below} {number(upper)}"


def _one_of(condition: OneOf, value: str) -> str:
    if len(condition.values) == 1:
        text = f"{value} {'!=' if condition.negated else '=='} {literal(condition.values[0])}"
    else:
        listed = tuple_text(map(literal, condition.values))
        text = f"{value} {'not in' if condition.negated else 'in'} {listed}"
    return f"{value} is not None and {text}" if condition.negated else text
