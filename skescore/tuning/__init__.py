"""Search for the extractor and the hyper-parameters whose rules score best."""

from skescore.tuning._candidates import Candidate, Candidates
from skescore.tuning._objective import ExtractorObjective
from skescore.tuning._pareto import hypervolume, knee, pareto_front, pareto_mask
from skescore.tuning._runner import SearchProgress
from skescore.tuning._search import ExtractorSearchCV
from skescore.tuning._studies import describe_study
from skescore.tuning.spaces import SearchSpace, as_search_space, search_space, starting_points
from skescore.tuning.storage import Heartbeat, open_storage, retry_stale
from skescore.tuning.weights import (
    Question,
    ScoreInterval,
    WeightElicitation,
    WeightStability,
    WinningRegions,
    compare_scores,
    score_interval,
    weight_stability,
    win_probability,
    winning_regions,
)

__all__ = [
    "Candidate",
    "Candidates",
    "ExtractorObjective",
    "ExtractorSearchCV",
    "Heartbeat",
    "Question",
    "ScoreInterval",
    "SearchProgress",
    "SearchSpace",
    "WeightElicitation",
    "WeightStability",
    "WinningRegions",
    "as_search_space",
    "compare_scores",
    "describe_study",
    "hypervolume",
    "knee",
    "open_storage",
    "pareto_front",
    "pareto_mask",
    "retry_stale",
    "score_interval",
    "search_space",
    "starting_points",
    "weight_stability",
    "win_probability",
    "winning_regions",
]
