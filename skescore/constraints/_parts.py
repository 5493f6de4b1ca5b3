"""Single constraints: the parts of a declaration that violations and conflicts refer to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from skescore._text import nearest
from skescore.constraints._thresholds import EVERY_FEATURE

if TYPE_CHECKING:
    from skescore.constraints._constraints import Constraints

#: Parameters that name features of the rules.
_BY_FEATURE = ("forbidden", "required", "monotone", "thresholds", "together", "apart")
_LIMITS = (
    "max_conditions",
    "max_features",
    "max_rules",
    "max_rules_per_class",
    "min_support",
    "min_precision",
)


def split(constraints: Constraints) -> dict[str, Constraints]:
    """Split a declaration into single constraints, by label, in the order of the parameters."""
    parts: dict[str, Constraints] = {}
    for label, changes in _labeled(constraints):
        parts.setdefault(label, type(constraints)(**changes))
    return parts


def select(constraints: Constraints, labels: Iterable[str]) -> Constraints:
    """Keep the single constraints with the given labels."""
    chosen = set(labels)
    changes: dict[str, Any] = {}
    for label, part in _labeled(constraints):
        if label in chosen:
            chosen_part = {k: v for k, v in part.items() if k != "class_order"}
            for name, value in chosen_part.items():
                changes[name] = _merge_values(changes.get(name), value)
    unknown = chosen - set(split(constraints))
    if unknown:
        label = min(unknown)
        near = nearest(label, list(split(constraints)))
        guess = f" Did you mean {near!r}?" if near else ""
        raise ValueError(f"There is no constraint {label!r}.{guess}")
    # The order of the classes is not a constraint, but determines the meaning of others.
    return type(constraints)(**changes, class_order=constraints.class_order)


def _merge_values(one: Any, other: Any) -> Any:
    if one is None:
        return other
    if not isinstance(other, Mapping):
        return (*one, *other)
    # Only groups of categories have several constraints per feature.
    return one | {k: (*one[k], *v) if k in one else v for k, v in other.items()}


def _labeled(constraints: Constraints) -> Iterator[tuple[str, dict[str, Any]]]:
    order = {} if constraints.class_order is None else {"class_order": constraints.class_order}
    for name in ("forbidden", "required"):
        for feature in getattr(constraints, name):
            yield f"{name}: {feature}", {name: (feature,)} | order
    if constraints.max_cost is not None:
        costs = {"feature_costs": constraints.feature_costs, "max_cost": constraints.max_cost}
        yield f"max_cost: {constraints.max_cost:g}", costs | order
    for feature, direction in constraints.monotone.items():
        yield f"monotone: {feature} {direction}", {"monotone": {feature: direction}} | order
    for pinned in constraints.pinned:
        yield f"pinned: {pinned}", {"pinned": (pinned,)} | order
    for feature, allowed in constraints.thresholds.items():
        yield f"thresholds: {feature} {allowed}", {"thresholds": {feature: allowed}} | order
    for name in ("together", "apart"):
        for feature, groups in getattr(constraints, name).items():
            for group in groups:
                text = ", ".join(map(str, group))
                yield f"{name}: {feature} ({text})", {name: {feature: (group,)}} | order
    for name in _LIMITS:
        limit = getattr(constraints, name)
        if limit is not None:
            yield f"{name}: {_limit_text(limit)}", {name: limit} | order
    for column, gap in constraints.max_gap.items():
        yield f"max_gap: {column} {gap:g}", {"max_gap": {column: gap}} | order


def _limit_text(limit: Any) -> str:
    if isinstance(limit, Mapping):
        return ", ".join(f"{label} {n}" for label, n in limit.items())
    return f"{limit:g}"


def named_features(constraints: Constraints) -> Iterator[tuple[str, str]]:
    """Yield the label of each single constraint and each feature that it names."""
    for label, part in split(constraints).items():
        for name in _BY_FEATURE:
            for feature in getattr(part, name):
                if feature != EVERY_FEATURE or name != "thresholds":
                    yield label, feature
        for feature in part.feature_costs:
            yield label, feature
        for pinned in part.pinned:
            for feature in pinned.feature_names:
                yield label, feature
