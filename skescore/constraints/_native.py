"""Constraints that an extraction respects before rules are learned."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from skescore.constraints._constraints import Constraints
from skescore.constraints._parts import split
from skescore.constraints._rewriting import rewrite
from skescore.constraints._thresholds import AllowedThresholds, Rounding
from skescore.rules import Condition, Interval, Missing, Rule, RuleSet


def usable_features(
    constraints: Constraints, names: Sequence[str], importances: np.ndarray
) -> list[int]:
    """Return the features that rules may use.

    Parameters
    ----------
    constraints : Constraints
        The constraints.
    names : sequence of str
        Names of all features.
    importances : ndarray of shape (n_features,)
        Importance of each feature; the most important ones are chosen if cost or number is limited.
        Features that are required or used by pinned rules come first.

    Returns
    -------
    list of int
        Indices, increasing.
    """
    allowed_features = [j for j, name in enumerate(names) if name not in constraints.forbidden]
    limit = constraints.max_features
    largest = limit if isinstance(limit, int) else len(names)
    pinned = [f for p in constraints.pinned for f in p.feature_names]
    features = list(dict.fromkeys(names.index(f) for f in (*pinned, *constraints.required)))
    for j in sorted(allowed_features, key=lambda j: -importances[j]):
        is_affordable = constraints.affords(names[f] for f in {*features, j})
        if j not in features and len(features) < largest and is_affordable:
            features.append(j)
    return sorted(features)


def step_columns(
    X: np.ndarray, constraints: Constraints, names: Sequence[str], categories: Mapping[int, Any]
) -> np.ndarray:
    """Replace numbers by the next allowed threshold, so that all cuts lie between thresholds.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_features)
        The rows; missing values stay missing.
    constraints : Constraints
        Its `thresholds` are used.
    names : sequence of str
        Names of the features.
    categories : mapping of int to object
        Categorical columns by index; they are not changed.

    Returns
    -------
    ndarray of shape (n_rows, n_features)
        A copy, or `X` if nothing changes.

    Notes
    -----
    A value v becomes the smallest allowed threshold t with v ≤ t, so that v ≤ c holds if and only
    if t ≤ c for each allowed c. Thresholds beyond the largest value are replaced by it.
    """
    result = X
    for j, name in enumerate(names):
        allowed = constraints.allowed_thresholds(name)
        if allowed is None or j in categories:
            continue
        result = X.copy() if result is X else result
        values, inverse = np.unique(X[:, j], return_inverse=True)
        steps = np.array([_step(v, allowed) for v in values.tolist()])
        # Steps stay in the range of the column.
        largest = np.nanmax(values) if np.isfinite(values).any() else math.inf
        result[:, j] = np.minimum(steps, largest)[inverse.ravel()]
    return result


def _step(value: float, allowed: AllowedThresholds) -> float:
    if math.isnan(value):
        return value
    if isinstance(allowed, Rounding):
        return allowed.near(value)[1]
    return next((t for t in allowed.values if value <= t), math.inf)


def bounds_on_steps(ruleset: RuleSet, constraints: Constraints, X: np.ndarray) -> RuleSet:
    """Move bounds between steps to allowed thresholds, without effect on the rows.

    Parameters
    ----------
    ruleset : RuleSet
        Rules that were learned from :func:`step_columns`.
    constraints : Constraints
        Its `thresholds` are used.
    X : ndarray of shape (n_rows, n_features)
        The rows before :func:`step_columns`.

    Returns
    -------
    RuleSet
        Rules without those that hold for no step. They are the same rules if none would remain.

    Notes
    -----
    For the largest threshold t below a bound, a step is below the bound if and only if v ≤ t. Hence
    lower bounds at thresholds become exclusive, and upper bounds inclusive.
    """
    names, domain = ruleset.feature_names, ruleset.domain
    has_missing = np.zeros(len(names)) if domain is None else np.asarray(domain.missing) > 0

    def change(condition: Any) -> list[Condition] | None:
        if not isinstance(condition, Interval):
            return [condition]
        feature = condition.feature
        allowed = constraints.allowed_thresholds(names[feature])
        if allowed is None:
            return [condition]
        moved = _interval_on_steps(condition, allowed, float(np.nanmax(X[:, feature])))
        if moved is None:
            return [Missing(feature)] if condition.missing else None
        if moved.is_trivial and has_missing[feature]:
            return [] if condition.missing else [Missing(feature, negated=True)]
        return [moved]

    rules: list[Rule] = []
    for rule in ruleset.rules:
        conditions = rewrite(rule.conditions, change)
        if conditions is not None:
            rules.append(replace(rule, conditions=tuple(conditions)))
    return ruleset.replace(rules=rules) if rules else ruleset


def _interval_on_steps(
    condition: Interval, allowed: AllowedThresholds, largest: float
) -> Interval | None:
    """Return the interval of the values whose steps an interval accepts; None for no value.

    Steps are at most `largest`.
    """
    lower, upper = condition.lower, condition.upper
    lower_closed, upper_closed = condition.lower_closed, condition.upper_closed
    if lower > largest or (lower == largest and not lower_closed):
        return None
    if math.isfinite(lower) and not _is_exact(lower, allowed):
        lower, lower_closed = _threshold_below(lower, allowed, inclusive=not lower_closed), False
    if upper > largest or (upper == largest and upper_closed):
        upper = min((t for t in allowed.near(upper) if t >= upper), default=math.inf)
    elif not _is_exact(upper, allowed):
        upper, upper_closed = _threshold_below(upper, allowed, inclusive=upper_closed), True
    if lower > upper or (lower == upper and not (lower_closed and upper_closed)):
        return None
    return replace(
        condition, lower=lower, upper=upper, lower_closed=lower_closed, upper_closed=upper_closed
    )


def _threshold_below(bound: float, allowed: AllowedThresholds, *, inclusive: bool) -> float:
    """Return the largest threshold below a bound, or up to the bound; -inf if there is none."""
    end = bound if inclusive else math.nextafter(bound, -math.inf)
    return max((t for t in allowed.near(end) if t <= end), default=-math.inf)


def _is_exact(bound: float, allowed: AllowedThresholds) -> bool:
    """Return whether steps are on the same side of a bound as their values: 0 if digits are few."""
    return bound == 0 and isinstance(allowed, Rounding) and allowed.kind == "digits"


def remaining_rows(X: Any, constraints: Constraints, names: Sequence[str]) -> np.ndarray:
    """Mark the rows that no pinned rule decides.

    Parameters
    ----------
    X : array-like or DataFrame of shape (n_rows, n_features)
        The rows.
    constraints : Constraints
        Its `pinned` rules are used.
    names : sequence of str
        Names of the features.

    Returns
    -------
    ndarray of bool, shape (n_rows,)
    """
    premises = [pinned.in_table(names).conditions for pinned in constraints.pinned]
    rules = [Rule(conditions, 0.0) for conditions in premises]
    return ~RuleSet(rules, names, task="regression").covers(X)


#: Parameters of extractors that limit the same quantity as a constraint.
_PARAMETERS = {
    "max_rules": ("max_rules", "max_leaf_nodes"),
    "max_conditions": ("max_conditions", "max_depth"),
    "min_support": ("min_samples_leaf",),
    "min_precision": ("min_precision",),
}


def limited_parameters(
    constraints: Constraints, parameters: Mapping[str, Any], n_rows: int
) -> dict[str, Any]:
    """Return the parameters of an extractor that constraints tighten, with their new values.

    Parameters
    ----------
    constraints : Constraints
        The constraints.
    parameters : mapping of str to object
        Parameters of the extractor.
    n_rows : int
        Number of training rows.

    Returns
    -------
    dict of str to object

    Examples
    --------
    >>> limited_parameters(Constraints(max_rules=4), {"max_rules": 16, "max_depth": None}, 100)
    {'max_rules': 4}
    """
    limits: dict[str, Any] = {}
    for name, targets in _PARAMETERS.items():
        limit = getattr(constraints, name)
        if limit is None or isinstance(limit, Mapping):
            continue
        if name == "max_rules":
            limit = max(1, limit - len(constraints.pinned))
        if name == "min_support":
            limit = constraints.smallest_support(n_rows)
        for target in targets:
            if target in parameters:
                limits[target] = _tightened(parameters[target], limit, is_lower=name[:3] == "min")
    return {name: value for name, value in limits.items() if value != parameters[name]}


def _tightened(value: Any, limit: Any, *, is_lower: bool) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return limit
    if not is_lower:
        return min(value, limit)
    if isinstance(value, float) and isinstance(limit, int):
        return limit  # a share of the rows
    return max(value, limit)


def native_labels(
    constraints: Constraints,
    n_classes: int,
    parameters: Collection[str] = (),
    *,
    keeps_monotone: bool,
) -> frozenset[str]:
    """Return the labels of the constraints that the extraction takes into account.

    Parameters
    ----------
    constraints : Constraints
        The constraints.
    n_classes : int
        Number of classes; 0 in a regression.
    parameters : collection of str, default=()
        Names of the parameters of the extractor.
    keeps_monotone : bool
        Whether the algorithm keeps monotone directions for numbers and two classes.

    Returns
    -------
    frozenset of str
    """
    names = ["forbidden", "feature_costs", "thresholds"]
    names += ["max_features"] if isinstance(constraints.max_features, int) else []
    names += ["monotone"] if keeps_monotone and n_classes <= 2 else []
    names += [name for name, targets in _PARAMETERS.items() if set(targets) & set(parameters)]
    parts = split(constraints).items()
    return frozenset(label for label, part in parts if any(getattr(part, n) for n in names))


def monotone_signs(
    constraints: Constraints, names: Sequence[str], classes: Sequence[Any] | None
) -> list[int] | None:
    """Return +1, -1 or 0 for each feature, for scikit-learn's trees; None if all are 0.

    Parameters
    ----------
    constraints : Constraints
        The constraints.
    names : sequence of str
        Names of the features.
    classes : sequence of labels or None
        The classes (the second is positive in scikit-learn); None for a regression.

    Returns
    -------
    list of int or None
    """
    if not constraints.monotone or (classes is not None and len(classes) != 2):
        return None
    order = constraints.class_order
    flips = classes is not None and order is not None and list(order) != list(classes)
    signs = {"+": -1 if flips else 1, "-": 1 if flips else -1}
    result = [signs.get(constraints.monotone.get(name, ""), 0) for name in names]
    return result if any(result) else None
