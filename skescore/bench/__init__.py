"""Benchmarks: data sets × black boxes × extractors × seeds and folds, resumable, with tables."""

from skescore._io import package_versions
from skescore.bench._configuration import BenchConfig, ConfigurationError, config_from, read_config
from skescore.bench._machine import describe_machine
from skescore.bench._plan import Cell, Plan, make_plan, split_rows
from skescore.bench._plots import critical_difference_plot
from skescore.bench._rows import RowFile, csv_text, in_order, read_rows, row_columns
from skescore.bench._running import BenchProgress, BenchResult, FolderInUseError, run_bench
from skescore.bench._statistics import (
    Comparison,
    compare_ranks,
    friedman_test,
    holm_against,
    nemenyi_difference,
    nemenyi_p_values,
)
from skescore.bench._suites import SUITES, suite_config
from skescore.bench._tables import Ranking, failures, rank_extractors, ranked_columns, summarise

__all__ = [
    "SUITES",
    "BenchConfig",
    "BenchProgress",
    "BenchResult",
    "Cell",
    "Comparison",
    "ConfigurationError",
    "FolderInUseError",
    "Plan",
    "Ranking",
    "RowFile",
    "compare_ranks",
    "config_from",
    "critical_difference_plot",
    "csv_text",
    "describe_machine",
    "failures",
    "friedman_test",
    "holm_against",
    "in_order",
    "make_plan",
    "nemenyi_difference",
    "nemenyi_p_values",
    "package_versions",
    "rank_extractors",
    "ranked_columns",
    "read_config",
    "read_rows",
    "row_columns",
    "run_bench",
    "split_rows",
    "suite_config",
    "summarise",
]
