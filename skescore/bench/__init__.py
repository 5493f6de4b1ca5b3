"""Benchmarks: data sets × black boxes × extractors × seeds and folds, resumable, with tables."""

from __future__ import annotations

from importlib import import_module
from typing import Any

#: Where each public name lives; imported when first used, as suites are listed before any is run.
_HOMES = {
    "BenchConfig": "bench._configuration",
    "BenchProgress": "bench._running",
    "BenchResult": "bench._running",
    "Cell": "bench._plan",
    "Comparison": "bench._statistics",
    "ConfigurationError": "bench._configuration",
    "FolderInUseError": "bench._running",
    "Plan": "bench._plan",
    "Ranking": "bench._tables",
    "RowFile": "bench._rows",
    "SUITES": "bench._suites",
    "compare_ranks": "bench._statistics",
    "config_from": "bench._configuration",
    "critical_difference_plot": "bench._statistics",
    "csv_text": "bench._rows",
    "describe_machine": "bench._running",
    "failures": "bench._tables",
    "friedman_test": "bench._statistics",
    "holm_against": "bench._statistics",
    "in_order": "bench._rows",
    "make_plan": "bench._plan",
    "nemenyi_difference": "bench._statistics",
    "nemenyi_p_values": "bench._statistics",
    "package_versions": "_io",
    "rank_extractors": "bench._tables",
    "ranked_columns": "bench._tables",
    "read_config": "bench._configuration",
    "read_methods": "bench._configuration",
    "read_rows": "bench._rows",
    "row_columns": "bench._rows",
    "run_bench": "bench._running",
    "split_rows": "bench._plan",
    "suite_config": "bench._suites",
    "summarize": "bench._tables",
}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"skescore.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
