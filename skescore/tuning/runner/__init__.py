"""Execution of a search: budget, studies, workers and progress."""

from skescore._processes import Helper
from skescore.tuning.runner._allocation import Allocation, TrialUsage, order_for_worker
from skescore.tuning.runner._runner import Runner, SearchCallback, SearchProgress
from skescore.tuning.runner._studies import (
    Studies,
    StudySettings,
    describe_study,
    is_counted,
    quiet_optuna,
)
from skescore.tuning.runner._workers import Batch, Chain, FoldEvaluator, Workers

__all__ = [
    "Allocation",
    "Batch",
    "Chain",
    "FoldEvaluator",
    "Helper",
    "Runner",
    "SearchCallback",
    "SearchProgress",
    "Studies",
    "StudySettings",
    "TrialUsage",
    "Workers",
    "describe_study",
    "is_counted",
    "order_for_worker",
    "quiet_optuna",
]
