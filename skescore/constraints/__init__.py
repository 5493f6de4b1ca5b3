"""Constraints on rules: features, monotonicity, pinned rules, thresholds, sizes."""

from skescore.constraints._cells import UndecidableError
from skescore.constraints._constraints import Constraints
from skescore.constraints._monotone import (
    MonotonicityBreach,
    monotonicity_breaches,
    reachable_rules,
)
from skescore.constraints._options import read_options
from skescore.constraints._pinned import PinnedRule
from skescore.constraints._thresholds import Cutoffs, Rounding
from skescore.constraints._violations import Violation, violations

__all__ = [
    "Constraints",
    "Cutoffs",
    "MonotonicityBreach",
    "PinnedRule",
    "Rounding",
    "UndecidableError",
    "Violation",
    "monotonicity_breaches",
    "reachable_rules",
    "read_options",
    "violations",
]
