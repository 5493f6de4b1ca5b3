"""Schema of certificates, and limits of their check.

:func:`parse_certificate` accepts only texts of limited size with finite numbers, unique names and
exactly the fields that ``_CERTIFICATE`` declares. :func:`certificate_schema` returns the
declaration as JSON Schema; ``docs/guide/certificates.md`` explains the fields.
"""

from __future__ import annotations

import json
import math
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

#: Largest number of bytes of memory per character of JSON.
_BYTES_PER_CHARACTER = 32
METRICS_OF_LOSS = {
    "errors": ("accuracy", "f1_weighted"),
    "squared_error": ("r2", "mean_squared_error", "root_mean_squared_error"),
    "absolute_error": ("mean_absolute_error",),
}
LOSS_OF_METRIC = {metric: loss for loss, metrics in METRICS_OF_LOSS.items() for metric in metrics}
#: Names of the metrics in sentences.
METRIC_NAMES = {
    "accuracy": "accuracy",
    "f1_weighted": "weighted F1",
    "r2": "R²",
    "mean_squared_error": "mean squared error",
    "root_mean_squared_error": "root mean squared error",
    "mean_absolute_error": "mean absolute error",
}
#: Metrics whose best value is 1.
PERFORMANCES = ("accuracy", "f1_weighted", "r2")


class RejectedError(Exception):
    """Raised if the certificate is wrong."""


class LimitError(Exception):
    """Raised if a limit ends a step; the argument is the resource."""


class Budget:
    """Limits of time and memory."""

    def __init__(self, time_limit: float | None, memory_limit: float) -> None:
        self.deadline = math.inf if time_limit is None else time.monotonic() + time_limit
        self.n_bytes = memory_limit

    def check_time(self) -> None:
        """Raise a LimitError if the time limit is reached."""
        if time.monotonic() > self.deadline:
            raise LimitError("time")

    def check_memory(self, n_bytes: float) -> None:
        """Raise a LimitError if a step exceeds the memory limit."""
        if n_bytes > self.n_bytes:
            raise LimitError("memory")

    def share(self, fraction: float) -> Budget:
        """Return a budget with a share of the remaining time."""
        part = Budget(None, self.n_bytes)
        now = time.monotonic()
        part.deadline = now + (self.deadline - now) * fraction
        return part


def parse_certificate(text: str, budget: Budget) -> Any:
    """Parse JSON of limited size with finite numbers and unique names, and check its schema."""
    budget.check_memory(_BYTES_PER_CHARACTER * len(text))

    def number(digits: str) -> float:
        if not math.isfinite(value := float(digits)):
            raise RejectedError(f"{digits[:20]} is not a finite number")
        return value

    def integer(digits: str) -> int:
        if len(digits) > 300:
            raise RejectedError(f"{digits[:20]}... is too large")
        return int(digits)

    def record(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        fields = dict(pairs)
        if len(fields) < len(pairs):
            raise RejectedError(f"a field occurs twice among {str(list(fields))[:100]}")
        return fields

    try:
        data = json.loads(
            text,
            parse_float=number,
            parse_int=integer,
            parse_constant=number,
            object_pairs_hook=record,
        )
    except (RecursionError, ValueError) as error:
        raise RejectedError(f"it is not JSON ({str(error)[:100]})") from error
    _CERTIFICATE.check(data, "the certificate", budget)
    return data


def certificate_schema() -> dict[str, Any]:
    """Return the format of certificates as JSON Schema (draft 2020-12).

    The checker has further requirements: unique names of fields, finite numbers, integers without
    a decimal point, conditions that some number satisfies and that are at most 50 deep, and an `m`
    of at most the number of conditions.

    Returns
    -------
    dict
        The schema.

    Examples
    --------
    >>> from skescore.certificates import certificate_schema
    >>> certificate_schema()["required"]
    ['format', 'version', 'score', 'settings', 'rows', 'given', 'frontiers']
    """
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "skescore.Certificate",
        **_CERTIFICATE.document,
        "$defs": {
            "condition": {"anyOf": [schema.document for schema in _CONDITIONS.values()]},
            "f1_node": _either(_F1_BRANCHES, _F1_LEAF).document,
        },
    }


@dataclass(frozen=True)
class _Schema:
    """Declaration of a value of a certificate.

    Parameters
    ----------
    document : dict
        The declaration as JSON Schema.
    check : callable
        Function of a value, its location and the budget that raises a RejectedError for invalid
        values.
    """

    document: dict[str, Any]
    check: Callable[[Any, str, Budget], None]


def _refuse(location: str, rule: str, value: Any) -> NoReturn:
    raise RejectedError(f"{location} must be {rule}, not {repr(value)[:60]}")


def _number(low: float = -1.8e308, high: float = 1.8e308, *, whole: bool = False) -> _Schema:
    def check(value: Any, location: str, budget: Budget) -> None:
        kinds = (int,) if whole else (int, float)
        if type(value) not in kinds or not low <= value <= high:
            kind = "an integer" if whole else "a number"
            _refuse(location, f"{kind} from {low:g} to {high:g}", value)

    kind = "integer" if whole else "number"
    return _Schema({"type": kind, "minimum": low, "maximum": high}, check)


def _text(max_length: int = 10_000) -> _Schema:
    def check(value: Any, location: str, budget: Budget) -> None:
        if not isinstance(value, str) or len(value) > max_length:
            _refuse(location, f"a text of at most {max_length} characters", value)

    return _Schema({"type": "string", "maxLength": max_length}, check)


def _choice(*choices: Any) -> _Schema:
    def check(value: Any, location: str, budget: Budget) -> None:
        if not any(type(value) is type(choice) and value == choice for choice in choices):
            _refuse(location, f"one of {choices}", value)

    return _Schema({"enum": list(choices)}, check)


def _either(*schemas: _Schema) -> _Schema:
    """Return a schema that accepts values of any of several schemas."""

    def check(value: Any, location: str, budget: Budget) -> None:
        for schema in schemas[:-1]:
            try:
                return schema.check(value, location, budget)
            except RejectedError:
                continue
        return schemas[-1].check(value, location, budget)

    return _Schema({"anyOf": [schema.document for schema in schemas]}, check)


def _list(item: _Schema, least: int = 0, most: float = math.inf) -> _Schema:
    def check(value: Any, location: str, budget: Budget) -> None:
        if not isinstance(value, list) or not least <= len(value) <= most:
            size = f"at least {least}" if most == math.inf else f"{least} to {most}"
            _refuse(location, f"a list of {size} items", value)
        budget.check_time()
        for i, one in enumerate(value):
            item.check(one, f"{location}[{i}]", budget)

    document = {"type": "array", "items": item.document, "minItems": least}
    return _Schema(document if most == math.inf else document | {"maxItems": most}, check)


def _record(required: Mapping[str, _Schema], **optional: _Schema) -> _Schema:
    def check(value: Any, location: str, budget: Budget) -> None:
        if not isinstance(value, dict):
            _refuse(location, "an object", value)
        for name in required.keys() - value.keys():
            raise RejectedError(f"{location} lacks {name!r}")
        for name, one in value.items():
            schema = required.get(name) or optional.get(name)
            if schema is None:
                raise RejectedError(f"{location} has the unknown field {name[:60]!r}")
            schema.check(one, f"{location}.{name}", budget)

    properties = {name: schema.document for name, schema in {**required, **optional}.items()}
    document = {"type": "object", "properties": properties, "additionalProperties": False}
    return _Schema(document | {"required": list(required)}, check)


def _table(item: _Schema, pattern: str, rule: str) -> _Schema:
    """Return a schema of an object with any number of fields of the same kind."""

    def check(value: Any, location: str, budget: Budget) -> None:
        if not isinstance(value, dict):
            _refuse(location, "an object", value)
        for name, one in value.items():
            if not re.fullmatch(pattern, name):
                _refuse(f"a field of {location}", rule, name)
            item.check(one, f"{location}.{name[:60]}", budget)

    names = {"pattern": f"^{pattern}$"}
    document = {"type": "object", "propertyNames": names, "additionalProperties": item.document}
    return _Schema(document, check)


def _check_condition(value: Any, location: str, budget: Budget, depth: int = 0) -> None:
    """Check the schema of a condition, which may contain other conditions."""
    is_known = isinstance(value, dict) and str(value.get("type")) in _CONDITIONS
    if not is_known or depth > 50:
        _refuse(location, f"a condition of type {list(_CONDITIONS)}, at most 50 deep", value)
    _CONDITIONS[value["type"]].check(value, location, budget)
    if value["type"] == "at_least":
        m = _number(1, len(value["conditions"]), whole=True)
        m.check(value["m"], f"{location}.m", budget)
        for i, one in enumerate(value["conditions"]):
            _check_condition(one, f"{location}.conditions[{i}]", budget, depth + 1)
    low, high = value.get("lower", -math.inf), value.get("upper", math.inf)
    is_closed = bool(value.get("lower_closed") and value.get("upper_closed"))
    if low > high or (low == high and not is_closed):
        _refuse(location, "a condition that some number satisfies", value)


_CONDITION = _Schema({"$ref": "#/$defs/condition"}, _check_condition)
#: Schema of conditions inside of another one, which `_check_condition` checks with their depth.
_INNER_CONDITION = _Schema(_CONDITION.document, lambda *_: None)
_FLAG = _choice(False, True)
_COUNT = _number(0, 2**53, whole=True)
_WEIGHT = _number(0)
_LABEL = _either(_FLAG, _text(), _number())
_TERM = _list(_number(), 2, 2)
_BOUNDS = {
    "lower": _number(),
    "lower_closed": _FLAG,
    "upper": _number(),
    "upper_closed": _FLAG,
}
_LINEAR = _record({"intercept": _number(), "terms": _list(_TERM)})
_CONDITIONS: dict[str, _Schema] = {
    "interval": _record({"type": _choice("interval"), "feature": _COUNT}, **_BOUNDS, missing=_FLAG),
    "one_of": _record(
        {"type": _choice("one_of"), "feature": _COUNT, "values": _list(_LABEL, 1)},
        negated=_FLAG,
        missing=_FLAG,
    ),
    "missing": _record({"type": _choice("missing"), "feature": _COUNT}, negated=_FLAG),
    "at_least": _record(
        {"type": _choice("at_least"), "m": _COUNT, "conditions": _list(_INNER_CONDITION, 1)},
    ),
    "linear": _record({"type": _choice("linear"), "terms": _list(_TERM, 1)}, **_BOUNDS),
}
_STATISTICS = _record(
    {"n_rows": _WEIGHT},
    class_counts=_list(_WEIGHT),
    mean=_number(),
    standard_deviation=_WEIGHT,
    target_counts=_list(_WEIGHT),
    model_error=_WEIGHT,
    target_error=_WEIGHT,
    weighted=_FLAG,
)
_RULE = _record(
    {"if": _list(_CONDITION), "then": _either(_LABEL, _LINEAR)},
    weight=_either(_number(), _LINEAR),
    statistics=_STATISTICS,
)
_NONE = _choice(None)
_RULES = _record(
    {
        "format": _choice("skescore.RuleSet"),
        "version": _choice(1, 2),
        "task": _choice("classification", "regression"),
        "feature_names": _list(_text()),
        "classes": _either(_NONE, _list(_LABEL, 1)),
        "ordered": _FLAG,
        "rules": _list(_RULE, 1),
    },
    disjoint=_FLAG,
    voting=_choice("votes", "probabilities", "logistic", "mean", "sum"),
    reference=_choice("data", "black_box"),
    domain=_either(
        _NONE,
        _record(
            {"lower": _list(_number()), "upper": _list(_number())},
            categories=_list(_list(_either(_COUNT, _list(_LABEL, 1)), 2, 2)),
            missing=_list(_number(0, 1)),
        ),
    ),
    fallback=_either(
        _NONE,
        _record(
            {"policy": _choice("default", "nearest", "abstain"), "output": _LABEL},
            class_counts=_either(_NONE, _list(_WEIGHT)),
            abstain_label=_either(_NONE, _LABEL),
        ),
    ),
)
_FEATURES_TABLE = ("[0-9]{1,9}", "the index of a column")
_CUTS = _record(
    {
        "n_features": _COUNT,
        "thresholds": _table(_list(_number()), *_FEATURES_TABLE),
        "categories": _table(_list(_LABEL), *_FEATURES_TABLE),
        "missing_features": _list(_COUNT),
    },
    category_sets=_table(_list(_list(_LABEL, 1)), *_FEATURES_TABLE),
)
_SPACES = {
    "tree": _record({"cuts": _CUTS}),
    "list": _record(
        {
            "kind": _choice("list"),
            "max_conditions": _number(1, 3, whole=True),
            "default_counts": _choice(True),
            "cuts": _CUTS,
            "n_tests": _COUNT,
            "n_rows": _COUNT,
            "classes": _either(_NONE, _list(_LABEL, 1)),
        }
    ),
}


def _check_f1_node(value: Any, location: str, budget: Budget) -> None:
    """Check the schema of the nodes of a proof."""
    nodes = [value]
    while nodes:
        node = nodes.pop()
        budget.check_time()
        if isinstance(node, dict) and "branches" in node:
            _F1_BRANCHES.check(node, location, budget)
            nodes += node["branches"]
        else:
            _F1_LEAF.check(node, location, budget)


_F1_NODE = _Schema({"$ref": "#/$defs/f1_node"}, _check_f1_node)
_F1_BRANCHES = _record(
    {
        "class": _COUNT,
        "between": _list(_number(), 2, 2),
        "branches": _list(_Schema(_F1_NODE.document, lambda *_: None), 2, 2),
    }
)
#: Schema of leaves, which are empty for infeasible nodes; larger multipliers would be inaccurate.
_F1_LEAF = _either(
    _record({}),
    _record({"linear": _list(_COUNT), "multipliers": _list(_number(-1e6, 1e6))}),
)
_F1_PROOF = _record(
    {"classes": _list(_LABEL, 1), "target": _number(0, 1e6), "root": _F1_NODE},
)
_SHARE = _number(0, 1)
_METRIC_VALUES = {
    name: _number(high=1) if name in PERFORMANCES else _number(0) for name in LOSS_OF_METRIC
}
#: Metrics of the given rules by policy for uncovered rows.
_GIVEN_METRICS = {
    f"{name} {policy}": schema
    for name, schema in _METRIC_VALUES.items()
    for policy in ("ignore", "penalize")
}
_PER_RULES = 10_000
_FRONTIER = _record(
    {
        "kind": _choice("tree", "list"),
        "loss": _choice("errors", "squared_error", "absolute_error"),
        "lower": _list(_WEIGHT, 1, _PER_RULES),
        "upper": _list(_WEIGHT, 1, _PER_RULES),
        "status": _list(
            _choice(
                "optimal",
                "target",
                "time_limit",
                "node_limit",
                "work_limit",
                "memory_limit",
                "rounding",
                "interrupted",
            )
        ),
        "seconds": _WEIGHT,
        "total_weight": _WEIGHT,
        "space": _either(*_SPACES.values()),
        "measured": _list(
            _record(
                {"n_rules": _COUNT},
                **_METRIC_VALUES,
            )
        ),
        "rules": _list(_RULES, 1),
    },
    f1_bounds=_list(
        _record(
            {
                "max_leaves": _number(1, _PER_RULES, whole=True),
                "upper_bound": _number(0, 1),
                "incumbent": _SHARE,
                "rules": _either(_NONE, _RULES),
                "proof": _either(_record({}), _F1_PROOF),
                "seconds": _WEIGHT,
            }
        )
    ),
)


_CERTIFICATE = _record(
    {
        "format": _choice("skescore.Certificate"),
        "version": _choice(1),
        "score": _text(100),
        "settings": _record(
            {
                "metric": _choice(*LOSS_OF_METRIC),
                "completeness": _choice("volume", "instances"),
                "weights": _table(_number(5e-324), r"[^\W\d]\w*", "a name"),
                "cuts_per_feature": _either(_NONE, _number(1, 2**31 - 1, whole=True)),
            },
            stated_cuts=_FLAG,
        ),
        "rows": _record(
            {
                "n_rows": _COUNT,
                "task": _choice("classification", "regression"),
                "reference": _text(),
                "weighted": _FLAG,
                "checksum": _text(64),
            },
            class_weights=_list(_WEIGHT, 1),
            squares=_WEIGHT,
        ),
        "given": _record(
            {
                "n_rules": _number(1, 2**53, whole=True),
                "completeness_volume": _SHARE,
                "completeness_instances": _SHARE,
                "metrics": _record({}, **_GIVEN_METRICS),
                "rules": _either(_NONE, _RULES),
            }
        ),
        "frontiers": _list(_FRONTIER, 1, 2),
    },
    held_out=_either(
        _NONE,
        _record(
            {
                "kind": _choice("tree", "list"),
                "n_rules": _COUNT,
                "best": _list(_number()),
                "given": _list(_number()),
            }
        ),
    ),
)
