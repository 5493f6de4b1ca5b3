"""Structure of the JSON of a verification: names and types of all fields."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

#: Tolerance for shares.
_ROUNDING = 1e-9
#: Largest integer that every float represents exactly.
_LARGEST_COUNT = 2**53


@dataclass(frozen=True)
class _Value:
    """Field without parts: a description of its values, and a function that accepts them."""

    description: str
    accepts: Callable[[Any], bool]


@dataclass(frozen=True)
class _Optional:
    """Field that may be null."""

    part: Any


@dataclass(frozen=True)
class _ByName:
    """Object with arbitrary names, all of whose values have the same structure."""

    part: Any


def is_number(value: Any) -> bool:
    """Return whether a value of JSON is a finite number."""
    return type(value) in (int, float) and math.isfinite(value)


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value <= _LARGEST_COUNT


def _is_scalar(value: Any) -> bool:
    return value is None or isinstance(value, str | bool) or is_number(value)


def _one_of(*choices: Any) -> _Value:
    listed = " or ".join(map(repr, choices))
    return _Value(listed, lambda v: any(type(v) is type(c) and v == c for c in choices))


_TEXT = _Value("text", lambda value: isinstance(value, str))
_NUMBER = _Value("a finite number", is_number)
_POSITIVE = _Value("a number of at least 0", lambda value: is_number(value) and value >= 0)
_COUNT = _Value("a count", _is_count)
_INDEX = _Value("an index", lambda value: value == -1 or _is_count(value))
_SHARE = _Value(
    "a share from 0 to 1",
    lambda value: is_number(value) and -_ROUNDING <= value <= 1 + _ROUNDING,
)
_CONFIDENCE = _Value("a confidence", lambda value: is_number(value) and 0 < value < 1)
_ANY = _Value("any value", lambda value: True)
_SCALAR = _Value("text, a number, true, false or null", _is_scalar)
_INTERVAL = {
    "lower": _Optional(_SHARE),
    "upper": _Optional(_SHARE),
    "proven_lower": _Optional(_SHARE),
    "proven_upper": _Optional(_SHARE),
    "method": _one_of("proven", "sampled"),
    "confidence": _Value("a confidence", lambda v: is_number(v) and 0 < v <= 1),
    "n_samples": _COUNT,
}
_PROVEN = {"agreeing": _SHARE, "disagreeing": _SHARE, "unknown": _SHARE}
_WITNESS = {
    "row": _ByName(_SCALAR),
    "prediction": _SCALAR,
    "rule_output": _SCALAR,
    "distance": _POSITIVE,
    "nearest_row": _COUNT,
    "changes": _ByName(_SCALAR),
    "probability": _Optional(_SHARE),
}
_RULE = {
    "index": _INDEX,
    "n_rows": _COUNT,
    "volume": _SHARE,
    "near_rows": _POSITIVE,
    "volume_disagreement": _INTERVAL,
    "near_disagreement": _INTERVAL,
    "volume_proven": _Optional(_PROVEN),
    "near_proven": _Optional(_PROVEN),
    "witness": _Optional(_WITNESS),
    "worst": _Optional(_WITNESS),
    "trusted": _Optional(
        {"rules": _ANY, "n_rows": _COUNT, "row_share": _SHARE, "volume_share": _SHARE}
    ),
    "output_range": dict.fromkeys(
        ("lower", "upper", "observed_lower", "observed_upper"), _Optional(_NUMBER)
    ),
    "max_deviation": _Optional(_POSITIVE),
}
_VERIFICATION = {
    "format": _TEXT,
    "version": _one_of(1),
    "model": _TEXT,
    "engine": _one_of("leaf boxes", "sampling"),
    "reason": _TEXT,
    "radius": _POSITIVE,
    "tolerance": _Optional(_POSITIVE),
    "confidence": _CONFIDENCE,
    "domain": [_ByName(_ANY)],  # compared with the domain of rules and rows as a whole
    "volume_disagreement": _INTERVAL,
    "near_disagreement": _INTERVAL,
    "rules": [_RULE],
    "ruleset": _ANY,  # read as rules
    "n_queries": _COUNT,
    "seconds": _POSITIVE,
    "picture": _Optional(
        {
            "rule": _INDEX,
            "features": [_TEXT],
            "x_values": [_NUMBER],
            "y_values": [_NUMBER],
            "states": [[_one_of(0, 1, 2)]],
            "point": [_NUMBER],
        }
    ),
}


def find_malformed_fields(data: Any) -> list[str]:
    """Return a message for each missing, unknown or mistyped field of a verification.

    Parameters
    ----------
    data : object
        Parsed JSON.

    Returns
    -------
    list of str
        Messages; empty for the structure of :meth:`Verification.to_json`.

    Examples
    --------
    >>> from skescore.verification._check_structure import find_malformed_fields
    >>> len(find_malformed_fields({"format": "skescore.Verification"}))
    15
    """
    return list(_mismatches(data, _VERIFICATION, ""))


def _mismatches(value: Any, structure: Any, path: str) -> Iterator[str]:
    """Yield a message for each part of a value that differs from a structure."""
    if isinstance(structure, _Optional):
        if value is not None:
            yield from _mismatches(value, structure.part, path)
    elif isinstance(structure, _Value):
        if not structure.accepts(value):
            yield f"{path} must be {structure.description}."
    elif isinstance(structure, list):
        if not isinstance(value, list):
            yield f"{path} must be a list."
            return
        for i, part in enumerate(value):
            yield from _mismatches(part, structure[0], f"{path}[{i}]")
    elif not isinstance(value, dict):
        yield f"{path or 'The JSON'} must be an object."
    elif isinstance(structure, _ByName):
        for name, part in value.items():
            yield from _mismatches(part, structure.part, f"{path}.{name}")
    else:
        prefix = f"{path}." if path else ""
        for name in [*structure, *(name for name in value if name not in structure)]:
            if name not in value:
                yield f"{prefix}{name} is absent."
            elif name not in structure:
                yield f"{prefix}{name} is not a field of a verification."
            else:
                yield from _mismatches(value[name], structure[name], f"{prefix}{name}")
