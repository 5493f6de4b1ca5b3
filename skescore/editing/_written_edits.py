"""Edits written as short texts, such as ``2.age<=18``, for the command line."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Sequence
from typing import Any

from skescore._text import did_you_mean
from skescore.editing._edits import rule_to_json
from skescore.rules import Condition, Interval, OneOf, Rule, RuleSet
from skescore.rules._text import feature_name

#: Comparisons, longest first, with the side that they bound and whether the bound is closed.
_BOUNDS = {
    "<=": ("upper", True),
    ">=": ("lower", True),
    "<": ("upper", False),
    ">": ("lower", False),
}
#: An ampersand between quoted texts.
_UNQUOTED_AND = re.compile(r'&(?=(?:[^"]*"[^"]*")*[^"]*$)')
_OPERATORS = ("<=", ">=", "!=", "<", ">", "=")


class WrittenEdits:
    """Parser of written edits, whose numbers refer to the rules before all edits.

    Parameters
    ----------
    rules : RuleSet
        The rules before the edits.

    Attributes
    ----------
    touched : list of int
        Current numbers of the edited and added rules.

    Examples
    --------
    >>> from skescore.rules import Interval, Rule, RuleSet
    >>> rules = RuleSet(
    ...     [Rule([Interval(0, upper=17)], "no"), Rule([], "yes")], ["age"], task="classification"
    ... )
    >>> WrittenEdits(rules).read("set", "1.age<=18", rules)
    {'action': 'set_bound', 'number': 1, 'feature': 'age', 'upper': 18.0, 'upper_closed': True}
    """

    def __init__(self, rules: RuleSet) -> None:
        self._numbers: list[int | None] = list(range(1, len(rules) + 1))
        self._is_pinned: set[int] = set()
        self._n_added = 0

    @property
    def touched(self) -> list[int]:
        """Current numbers of edited and added rules."""
        return [i for i, number in enumerate(self._numbers, 1) if number in self._is_pinned]

    def pin(self, number: int) -> None:
        """Treat a rule as edited."""
        self._current(str(number))
        self._is_pinned.add(number)

    def read(self, option: str, text: str, rules: RuleSet) -> dict[str, Any]:
        """Read an edit.

        Parameters
        ----------
        option : {"set", "drop", "move", "merge", "split", "add"}
            Kind of the edit.
        text : str
            Text of the edit.
        rules : RuleSet
            Rules after the previous edits.

        Returns
        -------
        dict
            The edit as JSON, with current numbers.

        Raises
        ------
        ValueError
            If the text cannot be read.
        """
        try:
            reader = getattr(self, f"_read_{option}")
            edit: dict[str, Any] = reader(text.strip(), rules)
        except ValueError as error:
            raise ValueError(f"--{option} {text}: {error}") from error
        return edit

    def record(self, edit: dict[str, Any]) -> None:
        """Update the numbers after an edit.

        Parameters
        ----------
        edit : dict
            Edit returned by :meth:`read`.
        """
        numbers, action = self._numbers, edit["action"]
        if action == "drop":
            del numbers[edit["number"] - 1]
        elif action == "move":
            numbers.insert(edit["to"] - 1, numbers.pop(edit["number"] - 1))
        elif action == "merge":
            del numbers[edit["second"] - 1]
        elif action in ("split", "add"):
            # Parts and new rules get negative numbers, which texts cannot refer to.
            self._n_added += 1
            position = edit.get("number", len(numbers) + 1) - (action == "add")
            numbers.insert(position, -self._n_added)
            self._is_pinned.add(-self._n_added)

    def _current(self, text: str) -> int:
        """Return the current number of a rule."""
        if not text.strip().isdecimal():
            raise ValueError(f"{text!r} is not the number of a rule.")
        number = int(text)
        if number not in self._numbers:
            n_rules = max((n for n in self._numbers if n is not None), default=0)
            exists = number <= n_rules
            raise ValueError(
                f"Rule {number} was dropped or merged by an earlier edit."
                if exists
                else f"There is no rule {number}; the last one is {n_rules}."
            )
        return self._numbers.index(number) + 1

    def _touch(self, text: str) -> int:
        current = self._current(text)
        self._is_pinned.add(int(text))
        return current

    def _read_drop(self, text: str, rules: RuleSet) -> dict[str, Any]:
        return {"action": "drop", "number": self._current(text)}

    def _read_move(self, text: str, rules: RuleSet) -> dict[str, Any]:
        number, colon, target = text.partition(":")
        if not colon or not target.strip().isdecimal():
            raise ValueError("write NUMBER:POSITION, such as 4:1.")
        return {"action": "move", "number": self._touch(number), "to": int(target)}

    def _read_merge(self, text: str, rules: RuleSet) -> dict[str, Any]:
        first, comma, second = text.partition(",")
        if not comma:
            raise ValueError("write two numbers, such as 1,3.")
        other = self._current(second)
        return {"action": "merge", "first": self._touch(first), "second": other}

    def _read_split(self, text: str, rules: RuleSet) -> dict[str, Any]:
        number, feature, operator, value = self._comparison(text, rules)
        edit = {"action": "split", "number": number, "feature": feature}
        if operator == "<=":
            return edit | {"bound": _number(value)}
        if operator == "=":
            return edit | {"values": _values(value, rules, feature)}
        raise ValueError("write NUMBER.FEATURE<=BOUND or NUMBER.FEATURE=VALUE|VALUE.")

    def _read_set(self, text: str, rules: RuleSet) -> dict[str, Any]:
        output = re.fullmatch(r"(\d+|otherwise)\s*=(.*)", text, re.DOTALL)
        if output is not None:
            label = _output(output[2].strip(), rules)
            if output[1] == "otherwise":
                return {"action": "set_fallback", "output": label}
            return {"action": "set_output", "number": self._touch(output[1]), "output": label}
        number, feature, operator, value = self._comparison(text, rules)
        edit = {"number": number, "feature": feature}
        if operator in _BOUNDS:
            side, is_closed = _BOUNDS[operator]
            if value == "none":
                return {"action": "set_bound", **edit, side: None}
            bound = {side: _number(value), f"{side}_closed": is_closed}
            return {"action": "set_bound", **edit, **bound}
        is_removal = value == "none" and value not in _known_values(rules, feature)
        values = None if is_removal else _values(value, rules, feature)
        negated = {"negated": True} if operator == "!=" else {}
        return {"action": "set_categories", **edit, "values": values, **negated}

    def _read_add(self, text: str, rules: RuleSet) -> dict[str, Any]:
        arrows = [match.span() for match in re.finditer("=>", text)]
        if not arrows:
            raise ValueError('write "CONDITION & CONDITION => OUTPUT", such as "age<=18 => no".')
        labels = set(map(str, rules.classes or ()))  # a label may contain an arrow
        is_output = (span for span in arrows if text[span[1] :].strip() in labels)
        arrow = next(is_output, arrows[-1])
        premise, output = text[: arrow[0]], text[arrow[1] :]
        position = re.match(r"(\d+):\s*", premise)
        if position is not None:
            premise = premise[position.end() :]
        parts = [""]
        for part in _UNQUOTED_AND.split(premise):
            start = f"{parts[-1].lstrip()}&"
            if any(name.startswith(start) for name in rules.feature_names):
                parts[-1] += f"&{part}"  # the name contains this character
            else:
                parts.append(part)
        conditions = [_condition(part.strip(), rules) for part in parts if part.strip()]
        rule = rule_to_json(rules, Rule(tuple(conditions), _output(output.strip(), rules)))
        number = {} if position is None else {"number": int(position[1])}
        return {"action": "add", "rule": rule, **number}

    def _comparison(self, text: str, rules: RuleSet) -> tuple[int, str, str, str]:
        number, dot, comparison = text.partition(".")
        if not dot:
            raise ValueError(
                "write NUMBER.FEATURE<=BOUND, NUMBER.FEATURE=VALUE|VALUE, NUMBER=CLASS or "
                "otherwise=CLASS."
            )
        feature, operator, value = split_comparison(comparison, rules.feature_names)
        return self._touch(number), feature, operator, value


def split_comparison(text: str, names: Sequence[str]) -> tuple[str, str, str]:
    """Split a comparison into feature, operator and value.

    Parameters
    ----------
    text : str
        Comparison such as ``petal length (cm) <= 2.5``. A name may be quoted as in printed rules.
    names : sequence of str
        Names of the features, which may contain operators.

    Returns
    -------
    tuple of three str

    Examples
    --------
    >>> split_comparison("a<b >= 3", ["a", "a<b"])
    ('a<b', '>=', '3')
    """
    text = text.strip()
    written_names = {feature_name([name], 0): name for name in names}
    written_names |= {name: name for name in names}
    for start in sorted(written_names, key=len, reverse=True):
        if not text.startswith(start):
            continue
        name, comparison = written_names[start], text[len(start) :].strip()
        for operator in _OPERATORS:
            if comparison.startswith(operator):
                return name, operator, comparison[len(operator) :].strip()
    written = re.split("|".join(_OPERATORS), text)[0].strip()
    if written in names:
        raise ValueError(f"{text!r} lacks a comparison: {', '.join(_OPERATORS)}.")
    raise ValueError(f"There is no feature {written!r}. {did_you_mean(written, names)}")


def _condition(text: str, rules: RuleSet) -> Condition:
    feature, operator, value = split_comparison(text, rules.feature_names)
    index = rules.feature_names.index(feature)
    if operator in _BOUNDS:
        side, is_closed = _BOUNDS[operator]
        bounds: dict[str, Any] = {side: _number(value), f"{side}_closed": is_closed}
        return Interval(index, **bounds)
    values = _values(value, rules, feature)
    lists_values = rules.domain is None or rules.domain.values_of(index) is not None
    if operator == "=" and len(values) == 1 and not (lists_values or isinstance(values[0], str)):
        # Without listed values, only intervals have a volume.
        return Interval(index, values[0], values[0], lower_closed=True, upper_closed=True)
    return OneOf(index, tuple(values), operator == "!=")


def _number(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        raise ValueError(f"{text!r} is not a number.") from None
    if not math.isfinite(number):
        raise ValueError(
            f"{text!r} is not a finite number; none removes a bound, as in 2.age<=none."
        )
    return number


def _known_values(rules: RuleSet, feature: str) -> list[Any]:
    """Return the values of a feature in the domain and in the rules."""
    index = rules.feature_names.index(feature)
    values = list((rules.domain and rules.domain.values_of(index)) or ())
    for condition in (c for rule in rules for c in rule.conditions):
        if isinstance(condition, OneOf) and condition.feature == index:
            values += condition.values
    return values


def _values(text: str, rules: RuleSet, feature: str) -> list[Any]:
    """Read values separated by |, possibly quoted, in the type that the domain or the rules have.

    Raises
    ------
    ValueError
        If the domain lists the values of the feature, and neither it nor a rule has a value.
    """
    candidates = _known_values(rules, feature)
    # A domain without values of the feature contains numbers.
    are_numbers = bool(candidates or rules.domain) and not any(
        isinstance(v, str) for v in candidates
    )
    by_text = {str(value): value for value in candidates}
    values = []
    is_listed = rules.domain and rules.domain.values_of(rules.feature_names.index(feature))
    for part in [text] if text in by_text and "|" not in text else _parts(text):
        name = part.strip()
        value = by_text.get(name, name)
        if name not in by_text and are_numbers:
            value = _number(name)
            value = int(value) if value.is_integer() else value
        if is_listed and value not in candidates:
            raise ValueError(f"{feature} has no value {value!r}. {did_you_mean(name, by_text)}")
        values.append(value)
    return values


def _parts(text: str) -> list[str]:
    """Split a text at |, except within quotation marks."""
    return next(csv.reader([text], delimiter="|", skipinitialspace=True), [""])


def _output(text: str, rules: RuleSet) -> Any:
    if rules.classes is None:
        return _number(text)
    labels = {str(label): label for label in rules.classes}
    if text not in labels:
        raise ValueError(f"There is no class {text!r}. {did_you_mean(text, labels)}")
    return labels[text]
