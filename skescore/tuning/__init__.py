"""Search for the extractor and the hyperparameters whose rules score best."""

from skescore.tuning._alternatives import (
    READABLE_RULES,
    Alternative,
    choose_alternatives,
    make_alternatives,
)
from skescore.tuning._candidates import Candidate, Candidates
from skescore.tuning._fold_result import SHARE_OF_ALL_ROWS, FoldResult, mixed, mixed_score
from skescore.tuning._held_out import HeldOutExtraction
from skescore.tuning._leaderboard import leaderboard
from skescore.tuning._limits import SearchLimits
from skescore.tuning._objective import (
    ExtractorObjective,
    Fold,
    evaluate_on_fold,
    fold_of_all_rows,
    group_options,
    make_folds,
)
from skescore.tuning._pareto import hypervolume, knee, pareto_front, pareto_mask
from skescore.tuning._row_sources import CountableSource, SearchableSource
from skescore.tuning._search import MAX_PERMUTED_ROWS, ExtractorSearchCV
from skescore.tuning._search_data import SearchData
from skescore.tuning._search_objective import SearchObjective
from skescore.tuning._tree_path import tree_path
from skescore.tuning._winner import N_FINALISTS, choose_winner, judged
from skescore.tuning.runner import FoldEvaluator, SearchProgress, Workers, describe_study
from skescore.tuning.spaces import SearchSpace, as_search_space, search_space, starting_points
from skescore.tuning.storage import Heartbeat, announce_worker, open_storage, retry_stale
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
    "MAX_PERMUTED_ROWS",
    "N_FINALISTS",
    "READABLE_RULES",
    "SHARE_OF_ALL_ROWS",
    "Alternative",
    "Candidate",
    "Candidates",
    "CountableSource",
    "ExtractorObjective",
    "ExtractorSearchCV",
    "Fold",
    "FoldEvaluator",
    "FoldResult",
    "Heartbeat",
    "HeldOutExtraction",
    "Question",
    "ScoreInterval",
    "SearchData",
    "SearchLimits",
    "SearchObjective",
    "SearchProgress",
    "SearchSpace",
    "SearchableSource",
    "WeightElicitation",
    "WeightStability",
    "WinningRegions",
    "Workers",
    "announce_worker",
    "as_search_space",
    "choose_alternatives",
    "choose_winner",
    "compare_scores",
    "describe_study",
    "evaluate_on_fold",
    "fold_of_all_rows",
    "group_options",
    "hypervolume",
    "judged",
    "knee",
    "leaderboard",
    "make_alternatives",
    "make_folds",
    "mixed",
    "mixed_score",
    "open_storage",
    "pareto_front",
    "pareto_mask",
    "retry_stale",
    "score_interval",
    "search_space",
    "starting_points",
    "tree_path",
    "weight_stability",
    "win_probability",
    "winning_regions",
]
