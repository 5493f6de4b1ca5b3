"""Execution of a search: budget, studies, workers and progress."""

from skescore.tuning.runner._allocation import Allocation, TrialUsage, order_for_worker
from skescore.tuning.runner._description import describe_study
from skescore.tuning.runner._helpers import Batch, Chain, Helper, start_helpers
from skescore.tuning.runner._progress import SearchProgress
from skescore.tuning.runner._runner import Runner
from skescore.tuning.runner._studies import Studies, StudySettings, quiet_optuna
from skescore.tuning.runner._trials import counts
from skescore.tuning.runner._workers import FoldEvaluator, Workers

__all__ = [
    "Allocation",
    "Batch",
    "Chain",
    "FoldEvaluator",
    "Helper",
    "Runner",
    "SearchProgress",
    "Studies",
    "StudySettings",
    "TrialUsage",
    "Workers",
    "counts",
    "describe_study",
    "order_for_worker",
    "quiet_optuna",
    "start_helpers",
]
