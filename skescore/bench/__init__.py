"""Benchmarks of data sets × black boxes × extractors × seeds and folds: resumable, with tables."""

from __future__ import annotations

from importlib import import_module
from typing import Any

#: Module of each public name, imported on first use so that the command line starts fast.
_MODULES = {
    "BenchConfig": "bench._configuration",
    "BenchCallback": "bench._progress",
    "BenchProgress": "bench._progress",
    "BenchResult": "bench._running",
    "Cell": "bench._plan",
    "Comparison": "bench._statistics",
    "ConfigurationError": "bench._configuration",
    "FolderInUseError": "bench._running",
    "Plan": "bench._plan",
    "RANKABLE_COLUMNS": "bench._suites",
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
    "is_in_use": "bench._running",
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

__all__ = sorted(_MODULES)


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return getattr(import_module(f"skescore.{_MODULES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
