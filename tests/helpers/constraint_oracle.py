"""Obvious checker of constraints, which enumerates cells and shares no code with the package.

It reads the declaration and the rules, and predicts rows with `RuleSet.predict`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd

from skescore.constraints import Constraints, Cutoffs, PinnedRule
from skescore.rules import AtLeast, Interval, LinearOutput, OneOf, Rule, RuleSet

#: Largest number of rows that an enumeration compares.
MAX_ROWS = 400_000


class TooManyRowsError(Exception):
    """The rules have too many cells for an enumeration."""


def atoms_of(rule: Rule) -> Iterator[Any]:
    """Yield all conditions on single features."""
    pending = list(rule.conditions)
    while pending:
        condition = pending.pop()
        if isinstance(condition, AtLeast):
            pending += condition.conditions
        else:
            yield condition


def features_of(rule: Rule) -> set[int]:
    features = {f for atom in atoms_of(rule) for f in atom.features}
    if isinstance(rule.output, LinearOutput):
        features |= {f for f, _ in rule.output.terms}
    return features


def sample_points(ruleset: RuleSet, feature: int) -> list[Any]:
    """Return values of a feature between, at and next to all bounds, within the domain.

    Without a domain, any feature can be missing.
    """
    domain = ruleset.domain
    atoms = [a for r in ruleset.rules for a in atoms_of(r) if feature in a.features]
    listed = [v for a in atoms if isinstance(a, OneOf) for v in a.values]
    categories = None if domain is None else domain.values_of(feature)
    points: list[Any]
    if categories is not None:
        points = list(categories)
    elif any(isinstance(v, str) for v in listed):
        points = [*dict.fromkeys(listed), "a value that is nowhere listed"]
    else:
        bounds = {b for a in atoms if isinstance(a, Interval) for b in (a.lower, a.upper)}
        bounds |= {float(v) for v in listed}
        low, high = (
            (-math.inf, math.inf)
            if domain is None
            else (
                domain.lower[feature],
                domain.upper[feature],
            )
        )
        ends = sorted(b for b in bounds | {low, high} if math.isfinite(b) and low <= b <= high)
        middles = [a / 2 + b / 2 for a, b in itertools.pairwise(ends)]
        near = [float(np.nextafter(b, s)) for b in ends for s in (-math.inf, math.inf)]
        beyond = [ends[0] - 1, ends[-1] + 1] if ends else [0.0, 1.0]
        points = sorted({p for p in (*ends, *middles, *near, *beyond) if low <= p <= high})
    if domain is None or domain.missing[feature] > 0:
        points.append(None)
    return points


def grid_of(ruleset: RuleSet, features: list[int]) -> tuple[pd.DataFrame, list[list[Any]]]:
    """Return a row for every combination of points of some features."""
    points = [sample_points(ruleset, f) for f in features]
    n_rows = math.prod(map(len, points))
    if n_rows > MAX_ROWS:
        raise TooManyRowsError
    columns: dict[str, Any] = {}
    index = np.indices([len(p) for p in points]).reshape(len(points), -1) if points else []
    for j, name in enumerate(ruleset.feature_names):
        if j not in features:
            columns[name] = np.zeros(n_rows)
            continue
        values = points[features.index(j)]
        if any(isinstance(v, str | bool) for v in values):
            array = np.empty(len(values), dtype=object)
            array[:] = values
        else:
            array = np.array([math.nan if v is None else v for v in values], dtype=float)
        columns[name] = array[index[features.index(j)]]
    return pd.DataFrame(columns), points


def is_monotone(ruleset: RuleSet, feature: int, direction: str, ranked: Any = None) -> bool:
    """Compare the predictions of all pairs of rows of the grid that differ in one feature."""
    used = sorted({f for r in ruleset.rules for f in features_of(r)} | {feature})
    rows, points = grid_of(ruleset, used)
    values = predict_ranks(ruleset, rows, ranked)
    axis = used.index(feature)
    cube = np.moveaxis(values.reshape([len(p) for p in points]), axis, 0)
    observed = [i for i, p in enumerate(points[axis]) if p is not None]
    observed.sort(key=lambda i: points[axis][i])
    cube = cube[observed] if direction == "+" else -cube[observed]
    size = np.nanmax(np.abs(cube), initial=0.0)
    for low, high in itertools.combinations(range(len(observed)), 2):
        if (cube[high] < cube[low] - 1e-7 * (1 + size)).any():  # NaN compares as False
            return False
    return True


def predict_ranks(ruleset: RuleSet, rows: pd.DataFrame, ranked: Any) -> np.ndarray:
    """Return ranks of predicted classes, or numbers; NaN where nothing is predicted."""
    fallback = ruleset.fallback
    if fallback is None:
        values = np.full(len(rows), np.nan)
        covered = ruleset.covers(rows)
        if covered.any():
            values[covered] = _ranks(ruleset.predict(rows[covered]), ruleset, ranked)
        return values
    values = _ranks(ruleset.predict(rows), ruleset, ranked)
    if fallback.policy == "abstain":
        values[~ruleset.covers(rows)] = np.nan
    return values


def _ranks(predictions: np.ndarray, ruleset: RuleSet, ranked: Any) -> np.ndarray:
    if ruleset.classes is None:
        return np.asarray(predictions, dtype=float)
    order = list(ruleset.classes if ranked is None else ranked)
    return np.array([order.index(p) if p in order else np.nan for p in predictions], dtype=float)


def broken(ruleset: RuleSet, constraints: Constraints, X: Any, y: Any) -> set[str]:
    """Return the names of the parameters whose constraints the rules break."""
    names = list(ruleset.feature_names)
    used = {names[f] for r in ruleset.rules for f in features_of(r)}
    n_rules = len(ruleset)
    per_rule = [ruleset.assign(X) == i for i in range(n_rules)]
    checks = {
        "forbidden": not used & set(constraints.forbidden),
        "required": set(constraints.required) <= used,
        "max_cost": constraints.max_cost is None
        or sum(constraints.feature_costs.get(f, 0) for f in used) <= constraints.max_cost,
        "monotone": all(
            is_monotone(ruleset, names.index(f), d, constraints.class_order)
            for f, d in constraints.monotone.items()
        ),
        "pinned": all(is_pinned(ruleset, p, constraints) for p in constraints.pinned),
        "thresholds": all(
            is_allowed(constraints, names[a.feature], bound)
            for r in ruleset.rules
            for a in atoms_of(r)
            if isinstance(a, Interval)
            for bound in (a.lower, a.upper)
        ),
        "groups": all(
            groups_hold(constraints, names[a.feature], a)
            for r in ruleset.rules
            for a in atoms_of(r)
            if isinstance(a, OneOf)
        ),
        "max_conditions": all(
            len(r.conditions) <= limit_of(constraints.max_conditions, r) for r in ruleset.rules
        ),
        "max_features": features_hold(ruleset, constraints),
        "max_rules": n_rules <= (constraints.max_rules or math.inf),
        "max_rules_per_class": all(
            sum(other.output == r.output for other in ruleset.rules)
            <= limit_of(constraints.max_rules_per_class, r)
            for r in ruleset.rules
        ),
        "min_support": constraints.min_support is None
        or (n_rules > 0 and all(m.sum() >= needed(constraints, len(X)) for m in per_rule)),
        "min_precision": constraints.min_precision is None
        or all(
            m.any() and np.mean(np.asarray(y)[m] == r.output) >= constraints.min_precision
            for m, r in zip(per_rule, ruleset.rules, strict=True)
        ),
        "max_gap": all(
            gap(ruleset, constraints, X, c) <= g for c, g in constraints.max_gap.items()
        ),
    }
    return {name for name, is_satisfied in checks.items() if not is_satisfied}


def needed(constraints: Constraints, n_rows: int) -> float:
    support = constraints.min_support
    assert support is not None
    return support if support >= 1 else support * n_rows - 1e-6


def limit_of(limit: Any, rule: Rule) -> float:
    if limit is None:
        return math.inf
    return limit.get(str(rule.output), math.inf) if isinstance(limit, dict) else limit


def features_hold(ruleset: RuleSet, constraints: Constraints) -> bool:
    limit = constraints.max_features
    if not isinstance(limit, dict):
        used = {f for r in ruleset.rules for f in features_of(r)}
        return limit is None or len(used) <= limit
    return all(
        len({f for r in ruleset.rules if str(r.output) == c for f in features_of(r)}) <= n
        for c, n in limit.items()
    )


def is_allowed(constraints: Constraints, feature: str, bound: float) -> bool:
    allowed = constraints.thresholds.get(feature, constraints.thresholds.get("*"))
    if allowed is None or math.isinf(bound):
        return True
    if isinstance(allowed, Cutoffs):
        return bound in allowed.values
    digits = Decimal(repr(bound)).normalize()
    if allowed.kind == "digits":
        return len(digits.as_tuple().digits) <= allowed.n
    return -int(digits.as_tuple().exponent) <= allowed.n


def groups_hold(constraints: Constraints, feature: str, condition: OneOf) -> bool:
    def accepts(value: Any) -> bool:
        return (value in condition.values) != condition.negated

    return all(
        len({accepts(v) for v in group}) == 1 for group in constraints.together.get(feature, ())
    ) and all(sum(accepts(v) for v in group) <= 1 for group in constraints.apart.get(feature, ()))


def same_rule(pinned: PinnedRule, rule: Rule, names: list[str]) -> bool:
    expected = pinned.in_table(names)
    return set(expected.conditions) == set(rule.conditions) and expected.output == rule.output


def is_pinned(ruleset: RuleSet, pinned: PinnedRule, constraints: Constraints) -> bool:
    """Decide on a grid of rows which rule decides the rows of a pinned rule."""
    names = list(ruleset.feature_names)
    indices = [i for i, r in enumerate(ruleset.rules) if same_rule(pinned, r, names)]
    if not indices or (pinned.position is not None and pinned.position not in indices):
        return False
    used = sorted({f for r in ruleset.rules for f in features_of(r)})
    rows, _ = grid_of(ruleset, used)
    assigned = ruleset.assign(rows)
    if pinned.position is not None:
        return bool((assigned == pinned.position).any())
    others = {
        i
        for i, r in enumerate(ruleset.rules)
        if any(same_rule(p, r, names) for p in constraints.pinned)
    }
    return set(assigned[ruleset.match(rows)[:, indices[0]]].tolist()) <= others


def gap(ruleset: RuleSet, constraints: Constraints, X: pd.DataFrame, column: str) -> float:
    predictions = np.asarray(ruleset.predict(X))
    groups = [X[column] == v for v in X[column].dropna().unique()]
    if ruleset.classes is None:
        scores = [predictions.astype(float)]
    elif constraints.class_order is not None:
        scores = [predictions == constraints.class_order[-1]]
    elif len(ruleset.classes) == 2:
        scores = [predictions == ruleset.classes[-1]]
    else:
        scores = [predictions == c for c in ruleset.classes]
    means = [[np.mean(s[g.to_numpy()]) for g in groups] for s in scores]
    return float(max((max(m) - min(m) for m in means), default=0.0))
