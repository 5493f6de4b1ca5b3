"""Attributions: the features that determine one prediction, and their exact responsibilities.

The names below are imported when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

#: Module of each public name.
_HOMES = {
    "Attribution": "_result",
    "AveragedResponsibility": "_averaged",
    "BReX": "_brex",
    "Formula": "_formula",
    "FormulaClassifier": "_formula",
    "Responsibilities": "_responsibility",
    "RuleAttribution": "_rules",
    "all_assignments": "_boolean_data",
    "averaged_responsibility": "_averaged",
    "chain_formula": "_boolean_data",
    "local_faithfulness": "_rules",
    "make_boolean_dataset": "_boolean_data",
    "nearest_contrasts": "_contrasts",
    "paper_formula": "_boolean_data",
    "random_formula": "_boolean_data",
    "SufficientSubset": "_sufficient",
    "SufficientSubsets": "_sufficient",
    "responsibility": "_responsibility",
    "rule_attribution": "_rules",
    "sufficient_subsets": "_sufficient",
    "variable": "_formula",
}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"skescore.attribution.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
