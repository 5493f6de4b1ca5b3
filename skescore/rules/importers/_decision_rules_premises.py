"""Premises in the JSON of the package decision-rules."""

from __future__ import annotations

import math
import sys
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from skescore._text import listed
from skescore._validation import check_number, check_whole
from skescore.rules._conditions import AtLeast, Condition, Interval, Linear, OneOf


def part(data: Any, key: str, kind: Any, place: str) -> Any:
    """A field of the JSON, which must be there and of the right kind."""
    value = data.get(key) if isinstance(data, Mapping) else None
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        wanted = {Mapping: "an object", list: "a list", str: "a text", bool: "true or false"}
        raise ValueError(
            f"The JSON has a fault in {place}: {key!r} must be {wanted.get(kind, 'a number')}, got "
            f"{value!r}."
        )
    return value


class Premises:
    """Makes conditions of premises.

    Parameters
    ----------
    names : sequence of str
        Names of the features.
    categories : mapping from str to sequence, optional
        Values of categorical features.
    as_evaluated : bool
        Whether bounds of 0 are read as decision-rules evaluates them.
    """

    def __init__(
        self,
        names: Sequence[str],
        categories: Mapping[str, Sequence[Any]] | None,
        *,
        as_evaluated: bool,
    ) -> None:
        self.names = names
        self.values = {}
        for name, values in (categories or {}).items():
            if name not in names:
                raise ValueError(
                    f"categories names {name!r}, which is none of the features {listed(names)}."
                )
            self.values[names.index(name)] = {str(value): value for value in values}
        self.as_evaluated = as_evaluated
        self.doubtful: dict[str, str] = {}
        self.overlooked: list[str] = []

    def conditions(self, data: Any, place: str) -> list[Condition]:
        """The conditions that must all hold where a premise must."""
        kind = part(data, "type", str, place)
        negated = bool(data.get("negated") or False)
        if kind == "compound":
            return self._compound(data, negated, place)
        features = [self._feature(index) for index in part(data, "attributes", list, place)]
        if kind == "elementary_numerical" and len(features) == 1:
            return self._interval(data, features[0], negated, place)
        if kind == "elementary_nominal" and len(features) == 1:
            values = [part(data, "value", str, place)]
        elif kind == "discrete_set" and len(features) == 1:
            values = part(data, "values_set", list, place)
        elif kind == "attributes" and len(features) == 2:
            return [_relation(features, part(data, "operator", str, place), negated)]
        else:
            raise ValueError(f"conditions of the type {kind!r} cannot be expressed in a RuleSet.")
        feature = features[0]
        return [OneOf(feature, tuple(self._value(feature, v) for v in values), negated=negated)]

    def _feature(self, index: Any) -> int:
        feature = check_whole("an attribute", index)
        if not 0 <= feature < len(self.names):
            raise ValueError(
                f"attributes must be column indices below {len(self.names)}, got {index!r}."
            )
        return feature

    def _compound(self, data: Any, negated: bool, place: str) -> list[Condition]:
        if negated:
            raise ValueError("a negated compound condition cannot be expressed in a RuleSet.")
        parts = [self.conditions(c, place) for c in part(data, "subconditions", list, place)]
        operator = part(data, "operator", str, place)
        if operator == "CONJUNCTION" and parts:
            return [condition for side in parts for condition in side]
        if operator == "CONJUNCTION":
            raise ValueError("without conditions it never holds in decision-rules: leave it out.")
        if operator != "ALTERNATIVE":
            raise ValueError(f"operator must be CONJUNCTION or ALTERNATIVE, got {operator!r}.")
        if not parts or not all(parts):
            return []
        sides = [side[0] if len(side) == 1 else AtLeast(len(side), tuple(side)) for side in parts]
        return [AtLeast(1, tuple(sides))]

    def _interval(self, data: Any, feature: int, negated: bool, place: str) -> list[Condition]:
        lower = _bound(data.get("left"), -math.inf)
        upper = _bound(data.get("right"), math.inf)
        lower_closed = part(data, "left_closed", bool, place)
        upper_closed = part(data, "right_closed", bool, place)
        if self.as_evaluated and 0 in (lower, upper) and lower > -math.inf:
            self.overlooked.append(place)
            lower = -math.inf
            # With both sides free, it still asks that there be a value.
            if upper == math.inf:
                upper, upper_closed = sys.float_info.max, True
        if not negated:
            return [Interval(feature, lower, upper, lower_closed, upper_closed)]
        sides = []
        if lower > -math.inf:
            sides.append(Interval(feature, upper=lower, upper_closed=not lower_closed))
        if upper < math.inf:
            sides.append(Interval(feature, lower=upper, lower_closed=not upper_closed))
        if not sides:
            raise ValueError("the negation of a condition without bounds never holds.")
        return [sides[0] if len(sides) == 1 else AtLeast(1, tuple(sides))]

    def _value(self, feature: int, text: Any) -> Any:
        known = self.values.get(feature)
        if known is None:
            if isinstance(text, str) and _looks_like_number(text):
                self.doubtful.setdefault(self.names[feature], text)
            return text
        if str(text) not in known:
            raise ValueError(
                f"{text!r} is str(value) of none of the categories that were given for "
                f"{self.names[feature]!r}: {listed(list(known.values()))}."
            )
        return known[str(text)]

    def warn(self) -> None:
        """Tell what the reader of the rules may not expect."""
        if self.doubtful:
            some = ", ".join(f"{name} = {text!r}" for name, text in self.doubtful.items())
            warnings.warn(
                f"Values of the JSON look like numbers but are read as texts ({some}). Say with "
                "categories={name: values} what values these features hold.",
                UserWarning,
                stacklevel=3,
            )
        if self.overlooked:
            warnings.warn(
                f"decision-rules overlooks lower bounds next to a 0 ({listed(self.overlooked, 3)}),"
                " and so do the rules read. Pass zero_bounds='written' to read what stands there.",
                UserWarning,
                stacklevel=3,
            )


def _bound(value: Any, free: float) -> float:
    return free if value is None else check_number("a bound", value)


def _looks_like_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return text in ("True", "False")
    return True


def _relation(features: Sequence[int], operator: str, negated: bool) -> Condition:
    """A comparison of two numeric features: a bound of their difference."""
    opposite = {"=": "!=", "!=": "=", ">": "<=", "<=": ">", "<": ">=", ">=": "<"}
    if operator not in opposite:
        raise ValueError(f"operator must be one of {', '.join(opposite)}, got {operator!r}.")
    operator = opposite[operator] if negated else operator
    terms = ((features[0], 1.0), (features[1], -1.0))
    below = Linear(terms, upper=0.0, upper_closed=operator == "<=")
    above = Linear(terms, lower=0.0, lower_closed=operator == ">=")
    if operator == "=":
        return Linear(terms, 0.0, 0.0, True, True)
    if operator == "!=":
        return AtLeast(1, (below, above))
    return below if operator in ("<", "<=") else above
