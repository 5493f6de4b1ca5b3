"""Selection of rules: filters, weights, pruning, and their effect on the scores."""

from skescore.selection._effect import selection_effect
from skescore.selection._filter import select_rules, significant_rules
from skescore.selection._prune import prune
from skescore.selection._weighting import with_weights

__all__ = ["prune", "select_rules", "selection_effect", "significant_rules", "with_weights"]
