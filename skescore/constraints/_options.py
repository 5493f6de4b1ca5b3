"""Constraints from options of the command line."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skescore._io import expand_home
from skescore.constraints._json import constraints_from_json
from skescore.constraints._pinned import PinnedRule
from skescore.constraints._thresholds import ROUNDINGS
from skescore.rules import RuleSet

if TYPE_CHECKING:
    from skescore.constraints._constraints import Constraints


def read_options(kind: type[Constraints], options: Mapping[str, Any]) -> Constraints:
    """Read constraints of the class `kind`, see :meth:`Constraints.from_options`."""
    options = {name: value for name, value in options.items() if value not in (None, [], ())}
    file = options.pop("constraints", None)
    base = kind() if file is None else _read_file(kind, file)
    changes: dict[str, Any] = {}
    for name, value in options.items():
        parameter, read = _READERS.get(name, (None, None))
        if parameter is None or read is None:
            raise ValueError(
                f"{name!r} is not an option of constraints. The options are {', '.join(_READERS)}."
            )
        changes[parameter] = _extended(getattr(base, parameter), read(name, value))
    return base.replace(**changes) if changes else base


def _read_file(kind: type[Constraints], file: Any) -> Constraints:
    path = expand_home(file)
    try:
        return constraints_from_json(kind, Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ValueError(f"--constraints {file}: {error}") from error


def _extended(base: Any, value: Any) -> Any:
    """Extend or replace the value in a file by the value of an option."""
    if isinstance(base, Mapping) and isinstance(value, Mapping):
        return {**base, **value}
    if isinstance(base, tuple) and isinstance(value, list):
        return [*base, *value]
    return value


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")


def _several(value: Any) -> list[str]:
    return [value] if isinstance(value, str) else list(value)


def _fields(text: str) -> list[str]:
    """Split at commas; a text with a comma is quoted."""
    return next(csv.reader([text], skipinitialspace=True), [])


def _names(name: str, value: Any) -> list[str]:
    return _several(value)


def _pairs(name: str, value: Any) -> Iterable[tuple[str, str]]:
    """Yield feature and text of ``FEATURE:TEXT``; feature names may contain colons."""
    for item in _several(value):
        feature, colon, text = item.rpartition(":")
        if not colon or not feature or not text.strip():
            raise ValueError(
                f"{_flag(name)} must be FEATURE:{_TEXTS.get(name, 'NUMBER')}, got {item!r}."
            )
        yield feature, text.strip()


_TEXTS = {"monotone": "+ or FEATURE:-", "thresholds": "18,65", "together": "A,B", "apart": "A,B"}


def _number(name: str, text: Any) -> float:
    try:
        number = float(text)
    except ValueError:
        raise ValueError(f"{_flag(name)} must be a number, got {text!r}.") from None
    return int(number) if number.is_integer() else number


def _numbers(name: str, value: Any) -> dict[str, float]:
    return {feature: _number(name, text) for feature, text in _pairs(name, value)}


def _directions(name: str, value: Any) -> dict[str, str]:
    return dict(_pairs(name, value))


def _label(text: str) -> Any:
    """Return a label or category: a number if the text is how Python writes it, unlike ``01``."""
    text = text.strip()
    for kind in (int, float):
        try:
            number = kind(text)
        except ValueError:
            continue
        if str(number) == text and text[-1].isdigit():  # not nan or inf
            return number
    return {"True": True, "False": False}.get(text, text)


def _labels(name: str, value: Any) -> list[Any]:
    texts = _fields(value) if isinstance(value, str) else value
    return [_label(text) if isinstance(text, str) else text for text in texts]


def _groups(name: str, value: Any) -> dict[str, list[list[Any]]]:
    groups: dict[str, list[list[Any]]] = {}
    for feature, text in _pairs(name, value):
        groups.setdefault(feature, []).append(_labels(name, text))
    return groups


def _thresholds(name: str, value: Any) -> dict[str, Any]:
    thresholds: dict[str, Any] = {}
    for feature, text in _pairs(name, value):
        amount, _, unit = text.partition(" ")
        kind = unit.strip().removesuffix("s") + "s"
        if kind in ROUNDINGS:
            thresholds[feature] = {kind: _number(name, amount)}
        else:
            thresholds[feature] = [_number(name, part) for part in text.split(",")]
    return thresholds


def _limit(name: str, value: Any) -> Any:
    """Read a number, or ``CLASS:NUMBER`` pairs separated by commas."""
    text = str(value)
    if ":" not in text:
        return _number(name, text)
    return {label: int(_number(name, n)) for label, n in _pairs(name, _fields(text))}


def _single_number(name: str, value: Any) -> float:
    return _number(name, value)


def _pinned(name: str, value: Any) -> list[PinnedRule]:
    pinned = []
    for item in _several(value):
        file, _, text = item.rpartition(":")
        number, at, position = text.partition("@")
        if not file or not number.isdecimal() or (at and not position.isdecimal()):
            raise ValueError(
                f"{_flag(name)} must be FILE:NUMBER, the number of a rule in a file of rules from "
                f"1, or FILE:NUMBER@POSITION, got {item!r}."
            )
        try:
            rules = RuleSet.from_json(Path(expand_home(file)).read_text(encoding="utf-8"))
            rule = PinnedRule.from_ruleset(rules, int(number) - 1)
        except (OSError, TypeError, ValueError) as error:
            raise ValueError(f"{_flag(name)} {item}: {error}") from error
        index = int(position) - 1 if at else None
        pinned.append(PinnedRule(rule.rule, rule.feature_names, index))
    return pinned


#: Parameter and reader of each option.
_READERS: dict[str, tuple[str, Callable[[str, Any], Any]]] = {
    "forbid": ("forbidden", _names),
    "require": ("required", _names),
    "feature_cost": ("feature_costs", _numbers),
    "max_cost": ("max_cost", _single_number),
    "monotone": ("monotone", _directions),
    "class_order": ("class_order", _labels),
    "pin": ("pinned", _pinned),
    "thresholds": ("thresholds", _thresholds),
    "together": ("together", _groups),
    "apart": ("apart", _groups),
    "max_conditions": ("max_conditions", _limit),
    "max_features": ("max_features", _limit),
    "max_rules": ("max_rules", _single_number),
    "max_rules_per_class": ("max_rules_per_class", _limit),
    "min_support": ("min_support", _single_number),
    "min_precision": ("min_precision", _single_number),
    "max_gap": ("max_gap", _numbers),
}
