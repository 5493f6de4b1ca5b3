"""Winners of a search by the weights of its score, and their uncertainty."""

from skescore.tuning.weights._bootstrap import (
    ScoreInterval,
    compare_scores,
    score_interval,
    win_probability,
)
from skescore.tuning.weights._elicitation import Question, WeightElicitation
from skescore.tuning.weights._regions import (
    WeightStability,
    WinningRegions,
    weight_stability,
    winning_regions,
)

__all__ = [
    "Question",
    "ScoreInterval",
    "WeightElicitation",
    "WeightStability",
    "WinningRegions",
    "compare_scores",
    "score_interval",
    "weight_stability",
    "win_probability",
    "winning_regions",
]
