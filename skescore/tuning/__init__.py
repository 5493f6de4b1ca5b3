"""Search for the extractor and the hyper-parameters whose rules score best."""

from skescore.tuning.bootstrap import (
    ScoreInterval,
    compare_scores,
    score_interval,
    win_probability,
)
from skescore.tuning.candidates import Candidate, Candidates
from skescore.tuning.descriptions import describe_study
from skescore.tuning.elicitation import Question, WeightElicitation
from skescore.tuning.heartbeats import beating, revive_stale
from skescore.tuning.objective import ExtractorObjective
from skescore.tuning.pareto import hypervolume, knee, pareto_front, pareto_mask
from skescore.tuning.search import ExtractorSearchCV
from skescore.tuning.spaces import SearchSpace, as_search_space, search_space
from skescore.tuning.stability import WeightStability, weight_stability
from skescore.tuning.storages import open_storage
from skescore.tuning.weights import WinningRegions, winning_regions

__all__ = [
    "Candidate",
    "Candidates",
    "ExtractorObjective",
    "ExtractorSearchCV",
    "Question",
    "ScoreInterval",
    "SearchSpace",
    "WeightElicitation",
    "WeightStability",
    "WinningRegions",
    "as_search_space",
    "beating",
    "compare_scores",
    "describe_study",
    "hypervolume",
    "knee",
    "open_storage",
    "pareto_front",
    "pareto_mask",
    "revive_stale",
    "score_interval",
    "search_space",
    "weight_stability",
    "win_probability",
    "winning_regions",
]
