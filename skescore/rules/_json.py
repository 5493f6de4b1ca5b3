"""Lossless conversion of rule sets to JSON and back; reading never runs code."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from skescore._io import json_of
from skescore._rule_readers import RULESET_FORMAT
from skescore.rules._conditions import AtLeast, Condition, Interval, Linear, Missing, OneOf
from skescore.rules._domain import Domain, Fallback
from skescore.rules._rule import LinearOutput, Rule, RuleStatistics

if TYPE_CHECKING:
    from skescore.rules._ruleset import RuleSet

#: Supported versions. Sets that mention missing values are written as version 2, others as 1.
JSON_VERSIONS = (1, 2)


def _bounds_to_json(condition: Interval | Linear) -> dict[str, Any]:
    data: dict[str, Any] = {}
    if condition.lower > -math.inf:
        data |= {"lower": condition.lower, "lower_closed": condition.lower_closed}
    if condition.upper < math.inf:
        data |= {"upper": condition.upper, "upper_closed": condition.upper_closed}
    return data


def _condition_to_json(condition: Condition) -> dict[str, Any]:
    if isinstance(condition, Interval | OneOf):
        missing = {"missing": True} if condition.missing else {}
    if isinstance(condition, Interval):
        bounds = _bounds_to_json(condition)
        return {"type": "interval", "feature": condition.feature, **bounds, **missing}
    if isinstance(condition, OneOf):
        return {
            "type": "one_of",
            "feature": condition.feature,
            "values": list(condition.values),
            "negated": condition.negated,
            **missing,
        }
    if isinstance(condition, Missing):
        return {"type": "missing", "feature": condition.feature, "negated": condition.negated}
    if isinstance(condition, AtLeast):
        inner = [_condition_to_json(c) for c in condition.conditions]
        return {"type": "at_least", "m": condition.m, "conditions": inner}
    terms = [list(term) for term in condition.terms]
    return {"type": "linear", "terms": terms, **_bounds_to_json(condition)}


def _value_to_json(value: Any) -> Any:
    if isinstance(value, LinearOutput):
        return {"intercept": value.intercept, "terms": [list(t) for t in value.terms]}
    return value


def _check_nesting(conditions: Iterable[Condition]) -> None:
    """Raise a ValueError for conditions that are nested too deeply to be read."""
    level = list(conditions)
    for _ in range(_MAX_DEPTH - 1):
        inner = (c for part in level if isinstance(part, AtLeast) for c in part.conditions)
        level = list({id(condition): condition for condition in inner}.values())
        if not level:
            return
    raise ValueError(
        f"The conditions of rules must not be nested more than {_MAX_DEPTH} deep to be written as "
        "JSON. Simplify the rules first."
    )


def _rule_to_json(rule: Rule) -> dict[str, Any]:
    _check_nesting(rule.conditions)
    data: dict[str, Any] = {
        "if": [_condition_to_json(c) for c in rule.conditions],
        "then": _value_to_json(rule.output),
    }
    if rule.weight != 1.0:
        data["weight"] = _value_to_json(rule.weight)
    if rule.statistics is not None:
        statistics = rule.statistics
        fields = {
            "n_rows": statistics.n_rows,
            "class_counts": statistics.class_counts and list(statistics.class_counts),
            "mean": statistics.mean,
            "standard_deviation": statistics.standard_deviation,
            "target_counts": statistics.target_counts and list(statistics.target_counts),
            "model_error": statistics.model_error,
            "target_error": statistics.target_error,
            "weighted": statistics.weighted or None,
        }
        data["statistics"] = {name: value for name, value in fields.items() if value is not None}
    return data


def _domain_to_json(domain: Domain) -> dict[str, Any]:
    data: dict[str, Any] = {"lower": list(domain.lower), "upper": list(domain.upper)}
    if domain.categories:
        data["categories"] = [[feature, list(values)] for feature, values in domain.categories]
    if any(domain.missing):
        data["missing"] = list(domain.missing)
    return data


def _mentions_missing(condition: Condition) -> bool:
    """Return whether a condition mentions missing values."""
    if isinstance(condition, AtLeast):
        return any(map(_mentions_missing, condition.conditions))
    return isinstance(condition, Missing) or getattr(condition, "missing", False)


def _version(ruleset: RuleSet) -> int:
    is_complete = ruleset.domain is None or not any(ruleset.domain.missing)
    mentions_missing = any(_mentions_missing(c) for rule in ruleset.rules for c in rule.conditions)
    return 1 if is_complete and not mentions_missing else 2


def ruleset_to_json(ruleset: RuleSet, *, indent: int | None = 2) -> str:
    """Write a rule set as lossless JSON."""
    domain, fallback = ruleset.domain, ruleset.fallback
    data = {
        "format": RULESET_FORMAT,
        "version": _version(ruleset),
        "task": ruleset.task,
        "feature_names": list(ruleset.feature_names),
        "classes": None if ruleset.classes is None else list(ruleset.classes),
        "ordered": ruleset.ordered,
        "disjoint": ruleset.disjoint,
        # Earlier releases cannot read this field, so it is only written if rules vote.
        **({"voting": ruleset.voting} if ruleset.voting else {}),
        **({"reference": ruleset.reference} if ruleset.reference else {}),
        "domain": domain and _domain_to_json(domain),
        "fallback": fallback
        and {
            "policy": fallback.policy,
            "output": fallback.output,
            "class_counts": fallback.class_counts and list(fallback.class_counts),
            "abstain_label": fallback.abstain_label,
        },
        "rules": [_rule_to_json(rule) for rule in ruleset.rules],
    }
    # Floats are written in their shortest exact form; NaN and infinity are not allowed.
    return json.dumps(data, indent=indent, ensure_ascii=False, allow_nan=False)


def _fields(
    name: str, data: Any, required: tuple[str, ...], optional: tuple[str, ...] = ()
) -> dict[str, Any]:
    """Return a JSON object after checking that it has all required and no unknown fields."""
    if not isinstance(data, dict):
        raise TypeError(f"{name} must be an object, got {data!r}")
    missing = [name for name in required if name not in data]
    if missing:
        raise ValueError(f"{name} lacks the field {missing[0]!r}")
    unknown = sorted(data.keys() - {*required, *optional})
    if unknown:
        allowed = ", ".join((*required, *optional))
        raise ValueError(f"{name} has the unknown field {unknown[0]!r}; known: {allowed}")
    return data


def _list(name: str, data: Any) -> list[Any]:
    if not isinstance(data, list):
        raise TypeError(f"{name} must be a list, got {data!r}")
    return data


def _terms(data: Any) -> list[Any]:
    for term in _list("terms", data):
        if len(_list("a term", term)) != 2:
            raise ValueError(f"a term must be a pair of feature and coefficient, got {term!r}")
    return [tuple(term) for term in data]


_BOUNDS = ("lower", "lower_closed", "upper", "upper_closed")


def _interval_from_json(data: dict[str, Any]) -> Interval:
    _fields("an interval", data, ("type", "feature"), (*_BOUNDS, "missing"))
    return Interval(**{name: value for name, value in data.items() if name != "type"})


def _one_of_from_json(data: dict[str, Any]) -> OneOf:
    _fields("a one_of", data, ("type", "feature", "values"), ("negated", "missing"))
    flags = {name: data.get(name, False) for name in ("negated", "missing")}
    return OneOf(data["feature"], tuple(_list("values", data["values"])), **flags)


def _missing_from_json(data: dict[str, Any]) -> Missing:
    _fields("a missing", data, ("type", "feature"), ("negated",))
    return Missing(data["feature"], data.get("negated", False))


def _at_least_from_json(data: dict[str, Any]) -> AtLeast:
    _fields("an at_least", data, ("type", "m", "conditions"))
    return AtLeast(data["m"], _conditions_from_json("conditions", data["conditions"]))


def _linear_from_json(data: dict[str, Any]) -> Linear:
    _fields("a linear", data, ("type", "terms"), _BOUNDS)
    bounds = {name: value for name, value in data.items() if name in _BOUNDS}
    return Linear(tuple(_terms(data["terms"])), **bounds)


_CONDITION_READERS: dict[str, Callable[[dict[str, Any]], Condition]] = {
    "interval": _interval_from_json,
    "one_of": _one_of_from_json,
    "missing": _missing_from_json,
    "at_least": _at_least_from_json,
    "linear": _linear_from_json,
}


#: Largest depth of nested conditions; a larger one might exceed the recursion limit.
_MAX_DEPTH = 50


def _check_depth(data: Any) -> None:
    level = [data]
    for _ in range(_MAX_DEPTH):
        level = [
            inner
            for part in level
            if isinstance(part, dict) and isinstance(part.get("conditions"), list)
            for inner in part["conditions"]
        ]
        if not level:
            return
    raise ValueError(f"conditions are nested more than {_MAX_DEPTH} deep")


def _conditions_from_json(name: str, data: Any) -> tuple[Condition, ...]:
    conditions = []
    for number, item in enumerate(_list(name, data), 1):
        try:
            if not isinstance(item, dict) or "type" not in item:
                raise ValueError(f"a condition must be an object with a 'type', got {item!r}")
            reader = _CONDITION_READERS.get(str(item["type"]))
            if reader is None:
                known_types = ", ".join(_CONDITION_READERS)
                raise ValueError(
                    f"unknown type of condition {item['type']!r}; known: {known_types}"
                )
            conditions.append(reader(item))
        except (TypeError, ValueError) as error:
            raise ValueError(f"condition {number}: {error}") from error
    return tuple(conditions)


def _value_from_json(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    _fields("a linear output", value, ("intercept", "terms"))
    return LinearOutput(value["intercept"], tuple(_terms(value["terms"])))


_OPTIONAL_STATISTICS = (
    "class_counts",
    "mean",
    "standard_deviation",
    "target_counts",
    "model_error",
    "target_error",
    "weighted",
)


def _rule_from_json(data: Any) -> Rule:
    _fields("a rule", data, ("if", "then"), ("weight", "statistics"))
    _check_depth({"conditions": data["if"]})
    output, weight = _value_from_json(data["then"]), _value_from_json(data.get("weight", 1.0))
    statistics = data.get("statistics")
    if statistics is not None:
        statistics = _rename_spread(statistics)
        _fields("statistics", statistics, ("n_rows",), _OPTIONAL_STATISTICS)
        statistics = RuleStatistics(**_with_counts(statistics, "class_counts", "target_counts"))
    return Rule(_conditions_from_json("'if'", data["if"]), output, statistics, weight)


def _rename_spread(data: Any) -> Any:
    """Rename the field "spread" of older files to "standard_deviation"."""
    if isinstance(data, dict) and "spread" in data and "standard_deviation" not in data:
        return {("standard_deviation" if k == "spread" else k): v for k, v in data.items()}
    return data


def _with_counts(data: dict[str, Any], *names: str) -> dict[str, Any]:
    counts = {name: data.get(name) for name in names}
    return data | {n: None if c is None else _list(n, c) for n, c in counts.items()}


def _fallback_from_json(data: Any) -> Fallback:
    _fields("fallback", data, ("policy", "output"), ("class_counts", "abstain_label"))
    return Fallback(**_with_counts(data, "class_counts"))


def _domain_from_json(data: Any) -> Domain:
    _fields("domain", data, ("lower", "upper"), ("categories", "missing"))
    categories = []
    for pair in _list("categories", data.get("categories", [])):
        if len(_list("a categorical feature", pair)) != 2:
            raise ValueError(f"a categorical feature must be a pair of column and values: {pair!r}")
        categories.append((pair[0], tuple(_list("values", pair[1]))))
    lower, upper = (tuple(_list(name, data[name])) for name in ("lower", "upper"))
    missing = tuple(_list("missing", data.get("missing", [])))
    return Domain(lower, upper, tuple(categories), missing)


def _parse(text: str) -> dict[str, Any]:
    """Parse the text and check that it is a rule set of a known version."""
    try:
        data = json_of(text, finite=True)
    except ValueError as error:
        raise ValueError(f"This is not JSON: {error}.") from error
    if not isinstance(data, dict) or data.get("format") != RULESET_FORMAT:
        format_name = data.get("format") if isinstance(data, dict) else type(data).__name__
        raise ValueError(
            f"This JSON is not a rule set: its 'format' must be {RULESET_FORMAT!r}, got "
            f"{format_name!r}. Rule sets are written by RuleSet.to_json()."
        )
    version = data.get("version")
    if type(version) is not int or version not in JSON_VERSIONS:
        raise ValueError(
            f"The rule set has version {version!r}, but this skescore reads versions "
            f"{' and '.join(map(str, JSON_VERSIONS))}. "
            "A later skescore may read it: pip install --upgrade skescore."
        )
    return data


def ruleset_from_json(ruleset_class: type[RuleSet], text: str) -> RuleSet:
    """Read the output of :func:`ruleset_to_json`."""
    data = _parse(text)
    location = "the rule set"
    try:
        _fields(
            location,
            data,
            ("format", "version", "task", "feature_names", "classes", "ordered", "rules"),
            ("disjoint", "voting", "reference", "domain", "fallback"),
        )
        names = _list("feature_names", data["feature_names"])
        if not all(isinstance(name, str) for name in names):
            raise TypeError(f"feature_names must be texts, got {names!r}")
        rules = []
        for number, item in enumerate(_list("rules", data["rules"]), 1):
            location = f"rule {number}"
            rules.append(_rule_from_json(item))
        location = "the rule set"
        classes, domain, fallback = (data.get(k) for k in ("classes", "domain", "fallback"))
        return ruleset_class(
            rules,
            names,
            task=data["task"],
            classes=None if classes is None else _list("classes", classes),
            domain=None if domain is None else _domain_from_json(domain),
            ordered=data["ordered"],
            disjoint=data.get("disjoint", False),
            voting="probabilities" if data.get("voting") == "shares" else data.get("voting"),
            fallback=None if fallback is None else _fallback_from_json(fallback),
            reference=data.get("reference"),
        )
    except (TypeError, ValueError) as error:
        raise ValueError(f"The JSON has a fault in {location}: {error}") from error
    except RecursionError as error:
        raise ValueError(f"The JSON has a fault in {location}: it is nested too deeply") from error
