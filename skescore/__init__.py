"""Symbolic knowledge extraction: rules of a black box, their scores and the best trade-off.

Public names are imported when they are first used, so ``import skescore`` is fast.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from skescore._views import register_view

#: Module of each public name.
_HOMES = {
    "CARTExtractor": "extractors",
    "CREAMClusterer": "extractors",
    "CREAMExtractor": "extractors",
    "CallableClassifier": "black_boxes",
    "CallableRegressor": "black_boxes",
    "Discretizer": "extractors",
    "ExACTClusterer": "extractors",
    "ExACTExtractor": "extractors",
    "ExtractorObjective": "tuning",
    "ExtractorSearchCV": "tuning",
    "GridExExtractor": "extractors",
    "GridRExExtractor": "extractors",
    "ITERExtractor": "extractors",
    "OptimalListExtractor": "extractors",
    "OptimalTreeExtractor": "extractors",
    "PSyKEExtractor": "extractors.psyke",
    "REALExtractor": "extractors",
    "RuleSet": "rules",
    "TrepanExtractor": "extractors",
    "as_black_box": "black_boxes",
    "as_ruleset": "rules",
    "as_rulesets": "rules",
    "characteristics": "metrics",
    "confusion": "metrics",
    "fire_score": "metrics",
    "ice_score": "metrics",
    "instance_completeness": "metrics",
    "load_dataset": "datasets",
    "make_fire_scorer": "scorers",
    "make_ice_scorer": "scorers",
    "make_knowledge_scorer": "scorers",
    "make_performance_scorer": "scorers",
    "make_q_scorer": "scorers",
    "make_rule_scorer": "scorers",
    "performance_report": "metrics",
    "performance_table": "metrics",
    "performance_value": "metrics",
    "prune": "selection",
    "q_score": "metrics",
    "register_extractor": "registry",
    "rule_quality": "metrics",
    "rule_report": "metrics",
    "search_space": "tuning",
    "select_rules": "selection",
    "selection_effect": "selection",
    "significant_rules": "selection",
    "volume_completeness": "metrics",
}

#: Functions that show results, imported on first use.
_VIEWS = {
    "candidates.html": "report:candidates_html",
    "search.html": "report:search_html",
    "search.plot": "plots:plot_search",
    "search.report": "report:write_report",
    "verification.html": "verification._html:verification_html",
    "verification.view": "verification._html:verification_view",
}
for _name, _view in _VIEWS.items():
    register_view(_name, f"{__name__}.{_view}")

__all__ = ["__version__", *sorted(_HOMES)]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("skescore")
    if name in _HOMES:
        return getattr(import_module(f"skescore.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
