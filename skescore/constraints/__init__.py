"""Constraints on rules: features, monotonicity, pinned rules, thresholds, sizes."""

from skescore.constraints._cells import UndecidableError
from skescore.constraints._conflict import (
    Conflict,
    InfeasibleConstraintsError,
    check_feasible,
    find_conflict,
)
from skescore.constraints._constrain import (
    ConstrainedRules,
    RejectedRulesError,
    constrain,
    enforce,
    enforce_on_tree,
    most_faithful,
)
from skescore.constraints._constraints import Constraints
from skescore.constraints._monotone import (
    MonotonicityBreach,
    monotonicity_breaches,
    reachable_rules,
)
from skescore.constraints._native import (
    bounds_on_steps,
    limited_parameters,
    monotone_signs,
    native_labels,
    remaining_rows,
    step_columns,
    usable_features,
)
from skescore.constraints._pinned import PinnedRule
from skescore.constraints._thresholds import Cutoffs, Rounding
from skescore.constraints._violations import Violation, violations

__all__ = [
    "Conflict",
    "ConstrainedRules",
    "Constraints",
    "Cutoffs",
    "InfeasibleConstraintsError",
    "MonotonicityBreach",
    "PinnedRule",
    "RejectedRulesError",
    "Rounding",
    "UndecidableError",
    "Violation",
    "bounds_on_steps",
    "check_feasible",
    "constrain",
    "enforce",
    "enforce_on_tree",
    "find_conflict",
    "limited_parameters",
    "monotone_signs",
    "monotonicity_breaches",
    "most_faithful",
    "native_labels",
    "reachable_rules",
    "remaining_rows",
    "step_columns",
    "usable_features",
    "violations",
]
