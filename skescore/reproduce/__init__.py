"""Reproduction of the tables of three papers, compared with the published figures."""

from __future__ import annotations

from importlib import import_module
from typing import Any

#: Module of each public name, imported on first use.
_HOMES = {
    "BREX_METHODS": "_brex_methods",
    "BREX_TABLES": "_printed",
    "BREX_TITLES": "_printed",
    "BenchmarkFormula": "_brex",
    "BrexRow": "_brex",
    "BrexRun": "_brex",
    "CAPTUM": "_brex_methods",
    "FIRE_ROWS": "_fire",
    "FIRE_TABLE": "_printed",
    "FigureVerdict": "_brex",
    "ICE_DATA": "_ice",
    "ICE_EXTRACTORS": "_ice",
    "ICE_MEASURES": "_printed",
    "ICE_TABLE": "_printed",
    "PSI": "_printed",
    "PrintedFiRe": "_printed",
    "TableLine": "_brex",
    "as_frame": "_cells",
    "benchmark_formulas": "_brex",
    "captum_maps": "_brex_methods",
    "completion_shapley": "_brex_methods",
    "error_counts": "_printed",
    "figure_verdicts": "_brex",
    "half_width": "_brex",
    "ice_follows": "_printed",
    "ice_reachable": "_printed",
    "kleene_shapley": "_brex_methods",
    "losses_that_fit": "_printed",
    "measure_cells": "_cells",
    "plot_divergence": "_brex",
    "reproduce_brex": "_brex",
    "reproduce_fire": "_fire",
    "reproduce_ice": "_ice",
    "rounding_interval": "_printed",
    "sampled_shapley": "_brex_methods",
    "shapley_of_tables": "_brex_methods",
    "table_lines": "_brex",
    "train_network": "_brex_methods",
    "verdict": "_public_split",
}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"skescore.reproduce.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
