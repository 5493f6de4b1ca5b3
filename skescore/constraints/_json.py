"""Lossless conversion of constraints to JSON and back; reading never runs code."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from skescore._io import json_of
from skescore._text import nearest
from skescore.constraints._pinned import PinnedRule
from skescore.constraints._thresholds import Rounding

if TYPE_CHECKING:
    from skescore.constraints._constraints import Constraints

FORMAT, VERSION = "skescore constraints", 1


def constraints_to_json(constraints: Constraints, *, indent: int | None = 2) -> str:
    """Return constraints as JSON; parameters with default values are omitted."""
    defaults = type(constraints)()
    data: dict[str, Any] = {"format": FORMAT, "version": VERSION}
    for name in (field.name for field in fields(constraints)):
        value = getattr(constraints, name)
        if value != getattr(defaults, name):
            data[name] = _value_to_json(name, value)
    return json.dumps(data, indent=indent, ensure_ascii=False, allow_nan=False)


def _value_to_json(name: str, value: Any) -> Any:
    if name == "pinned":
        return [pinned.to_dict() for pinned in value]
    if name == "thresholds":
        return {
            feature: {allowed.kind: allowed.n}
            if isinstance(allowed, Rounding)
            else list(allowed.values)
            for feature, allowed in value.items()
        }
    return dict(value) if isinstance(value, Mapping) else value


def constraints_from_json(kind: type[Constraints], text: str) -> Constraints:
    """Read constraints of the class `kind` from JSON, written by hand or by this package."""
    parameters = [field.name for field in fields(kind)]
    try:
        data = json_of(text, finite=True)
    except ValueError as error:
        raise ValueError(f"This is not JSON: {error}.") from error
    if not isinstance(data, dict):
        raise ValueError(
            'Constraints are a JSON object such as {"forbidden": ["age"]}, got '
            f"{type(data).__name__}."
        )
    data = dict(data)
    if data.pop("format", FORMAT) != FORMAT:
        raise ValueError(f"This JSON has no constraints: its 'format' must be {FORMAT!r}.")
    version = data.pop("version", VERSION)
    if version != VERSION:
        raise ValueError(
            f"The constraints have version {version!r}, this skescore reads version {VERSION}. "
            "A later skescore may read it: pip install --upgrade skescore."
        )
    for name in data:
        if name not in parameters:
            near = nearest(name, parameters)
            guess = f" Did you mean {near!r}?" if near else ""
            raise ValueError(
                f"Constraints have no field {name!r}.{guess} The fields are "
                f"{', '.join(parameters)}."
            )
    try:
        data["pinned"] = _pinned_from_json(data.get("pinned", []))
        return kind(**data)
    except (TypeError, ValueError) as error:
        raise ValueError(f"The constraints are invalid: {error}") from error


def _pinned_from_json(data: Any) -> list[PinnedRule]:
    if not isinstance(data, list):
        raise ValueError(f"pinned must be a list of rules, got {data!r}")
    rules = []
    for number, item in enumerate(data, 1):
        try:
            rules.append(PinnedRule.from_dict(item))
        except (TypeError, ValueError) as error:
            raise ValueError(f"pinned rule {number}: {error}") from error
    return rules
