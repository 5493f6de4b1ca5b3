"""Running a search: budget, studies, workers and progress."""

from skescore.tuning.runner._allocation import Allocation, Standing, in_turns_beside_others
from skescore.tuning.runner._description import describe_study
from skescore.tuning.runner._progress import SearchProgress
from skescore.tuning.runner._runner import Runner
from skescore.tuning.runner._studies import Studies, quiet_optuna
from skescore.tuning.runner._trials import counts
from skescore.tuning.runner._workers import FoldEvaluator, Workers

__all__ = [
    "Allocation",
    "FoldEvaluator",
    "Runner",
    "SearchProgress",
    "Standing",
    "Studies",
    "Workers",
    "counts",
    "describe_study",
    "in_turns_beside_others",
    "quiet_optuna",
]
