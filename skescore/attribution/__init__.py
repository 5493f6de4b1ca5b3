"""Attributions: which features decide one answer, and the exact truth where it is known.

The names below are imported when they are first used, all but one: the function
`responsibility` is bound here after the module of the same name, which would hide it otherwise.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from skescore.attribution.responsibility import Responsibilities, responsibility

#: Where each public name lives.
_HOMES = {
    "Attribution": "_result",
    "AveragedResponsibility": "averaged",
    "BReX": "brex",
    "Formula": "boolean",
    "FormulaClassifier": "boolean",
    "RuleAttribution": "rules",
    "all_assignments": "boolean",
    "averaged_responsibility": "averaged",
    "chain_formula": "boolean",
    "local_faithfulness": "rules",
    "make_boolean_dataset": "boolean",
    "nearest_contrasts": "nearest",
    "paper_formula": "boolean",
    "random_formula": "boolean",
    "rule_attribution": "rules",
    "variable": "boolean",
}

__all__ = ["Responsibilities", "responsibility", *sorted(_HOMES)]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"skescore.attribution.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
