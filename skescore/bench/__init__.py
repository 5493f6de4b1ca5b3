"""Benchmarks: data sets × black boxes × extractors × seeds and folds, resumable, with tables."""

from skescore._optional import package_versions
from skescore.bench._configuration import BenchConfig, ConfigurationError, config_from, read_config
from skescore.bench._machine import describe_machine
from skescore.bench._plots import critical_difference_plot
from skescore.bench._rows import read_rows, row_columns
from skescore.bench._running import BenchResult, FolderInUseError, run_bench
from skescore.bench._statistics import Comparison, compare_ranks
from skescore.bench._suites import SUITES, suite_config
from skescore.bench._tables import Ranking, failures, rank_extractors, ranked_columns, summarise

__all__ = [
    "SUITES",
    "BenchConfig",
    "BenchResult",
    "Comparison",
    "ConfigurationError",
    "FolderInUseError",
    "Ranking",
    "compare_ranks",
    "config_from",
    "critical_difference_plot",
    "describe_machine",
    "failures",
    "package_versions",
    "rank_extractors",
    "ranked_columns",
    "read_config",
    "read_rows",
    "row_columns",
    "run_bench",
    "suite_config",
    "summarise",
]
