"""Completeness: which share of the domain, or of some rows, is covered by rules.

The two shares measure different things and may differ widely: rules around dense groups of rows
cover nearly all rows by a small part of the domain. Report both and never mix them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from skescore._validation import row_weights
from skescore.rules._conditions import AtLeast, Condition, OneOf
from skescore.rules._rule import Rule
from skescore.rules._ruleset import RuleSet
from skescore.rules._volumes import Seed, Volume, clopper_pearson, sampling_stream, union_volume

__all__ = ["Completeness", "instance_completeness", "volume_completeness"]


Floats = NDArray[np.float64]

#: A rule that falls into more boxes than this is left to sampling.
_MOST_PARTS = 1024
_NEGLIGIBLE = 1e-9
_FLOATS_PER_BATCH = 2_000_000


@dataclass(frozen=True, slots=True)
class Completeness:
    """Share of the domain that rules cover, with its interval where it is an estimate.

    ``float(...)`` gives the value.

    Attributes
    ----------
    value : float
        The share, from 0 to 1.
    exact : bool
        True if no sampling was involved.
    low, high : float
        Confidence interval of the share; both equal `value` when `exact`.

    Examples
    --------
    >>> float(Completeness(0.25, exact=True, low=0.25, high=0.25))
    0.25
    """

    value: float
    exact: bool
    low: float
    high: float

    def __float__(self) -> float:
        return self.value


def volume_completeness(
    ruleset: RuleSet,
    *,
    n_samples: int = 100_000,
    confidence: float = 0.99,
    random_state: Seed = 0,
) -> Completeness:
    r"""Share of the domain's volume that at least one rule covers.

    Use it to learn how much of the feature space is explained, populated by rows or not. It is the
    completeness of the ICE score.

    Parameters
    ----------
    ruleset : RuleSet
        Rules with a domain. The fallback is not a rule and does not count; a rule that always
        holds does.
    n_samples : int, default=100_000
        Random points to draw where an exact volume is out of reach.
    confidence : float, default=0.99
        Confidence of the interval around an estimate, in (0, 1).
    random_state : int, Generator, RandomState or None, default=0
        Seed of the sampling. None gives another estimate at each call.

    Returns
    -------
    Completeness

    Raises
    ------
    ValueError
        If the rule set has no domain, is declared disjoint although its boxes overlap, or requires
        values of a categorical feature, for which there is no volume; or if a parameter is out of
        range.

    Notes
    -----
    With boxes :math:`B_i` and domain box :math:`D`,
    :math:`c_v = \mathrm{vol}(D \cap \bigcup_i B_i) / \mathrm{vol}(D)`: overlaps count once, and
    what lies outside of the domain does not count. Each feature is mapped to [0, 1] by the domain
    and boxes are clipped; a free side is the domain's side. Open and closed faces have equal
    volume.

    A feature on which the domain has no length gets no dimension: a box counts if it holds the
    constant, faces included (whether an open face ends right there is too fine for a volume), and
    is empty otherwise. If all features are constant the share is 1 or 0.

    A categorical feature whose values the domain knows has one unit of length for each of them, so
    that a set of values is one interval or several.

    Boxes are measured by :func:`skescore.rules._volumes.union_volume`, which is exact unless many
    boxes are entangled in many dimensions. Rules with conditions other than intervals lie between
    two such unions: that of the pure boxes alone and that of all rules with the other conditions
    left out. Where these agree, for instance because the pure boxes cover everything, the share
    is exact. Otherwise uniform points of the domain are put to the rules, with a Clopper-Pearson
    interval cut to what the two unions allow.

    References
    ----------
    F. Sabbatini, R. Calegari: ICE: an evaluation metric to assess symbolic knowledge quality.
    2024. Completeness as the covered share of the input space's volume.

    Examples
    --------
    >>> from skescore.metrics import volume_completeness
    >>> from skescore.rules import Domain, Interval, Rule, RuleSet
    >>> rules = RuleSet(
    ...     [Rule([Interval(0, upper=2)], "low"), Rule([Interval(0, lower=1, upper=3)], "middle")],
    ...     ["length"],
    ...     task="classification",
    ...     domain=Domain((0,), (4,)),
    ... )
    >>> volume_completeness(rules)
    Completeness(value=0.75, exact=True, low=0.75, high=0.75)
    """
    low, high = _domain_of(ruleset)
    boxes = _category_boxes(ruleset)
    lower, upper, holds_constants = _unit_boxes(boxes.lower, boxes.upper, low, high)

    def measure(chosen: NDArray[np.bool_], disjoint: bool) -> Volume:
        return union_volume(
            lower[chosen],
            upper[chosen],
            disjoint=disjoint,
            n_samples=n_samples,
            confidence=confidence,
            random_state=random_state,
        )

    if boxes.pure.all():
        volume = measure(holds_constants, ruleset.disjoint)
        return Completeness(volume.value, volume.exact, volume.low, volume.high)
    inner = measure(holds_constants & boxes.pure, False)
    outer = measure(holds_constants, False)
    bottom, top = (inner.value if inner.exact else 0.0), (outer.value if outer.exact else 1.0)
    if top - bottom <= _NEGLIGIBLE * top:
        return Completeness(top, True, top, top)
    _check_no_categories(ruleset, high > low)
    named = _rows_of_points(ruleset)
    rng = sampling_stream(random_state)
    hits = sum(
        int(np.count_nonzero(ruleset.covers(named(points))))
        for points in _uniform_points(rng, low, high, n_samples)
    )
    least, most = (
        min(max(end, bottom), top) for end in clopper_pearson(hits, n_samples, confidence)
    )
    return Completeness(min(max(hits / n_samples, least), most), False, least, most)


def instance_completeness(
    ruleset: RuleSet, X: ArrayLike, *, sample_weight: ArrayLike | None = None
) -> float:
    """Share of rows that at least one rule covers.

    Use it to learn how many rows like these the rules cover, or where a volume means little, as
    with categorical features.

    Parameters
    ----------
    ruleset : RuleSet
        The rules. The fallback is not a rule and does not count.
    X : array-like or DataFrame of shape (n_rows, n_features)
        The rows.
    sample_weight : array-like of shape (n_rows,), optional
        Weight of each row, zero or positive. By default all rows weigh the same.

    Returns
    -------
    float
        From 0 to 1.

    Raises
    ------
    ValueError
        If there are no rows, or the weights are negative, not finite, all zero or not one per row.

    Notes
    -----
    Weights of the covered rows over weights of all rows; a row that lacks values counts as covered
    if some rule does not need them.

    Examples
    --------
    >>> from skescore.metrics import instance_completeness
    >>> from skescore.rules import Interval, Rule, RuleSet
    >>> rules = RuleSet([Rule([Interval(0, upper=2)], 1.5)], ["length"], task="regression")
    >>> instance_completeness(rules, [[1.0], [2.0], [2.5], [9.0]])
    0.5
    >>> instance_completeness(rules, [[1.0], [9.0]], sample_weight=[3, 1])
    0.75
    """
    covered = np.asarray(ruleset.covers(X), dtype=bool)
    n_rows = len(covered)
    if not n_rows:
        raise ValueError(
            "`X` must hold at least one row for a share of rows, got 0 rows. "
            "volume_completeness needs none."
        )
    if sample_weight is None:
        return float(np.count_nonzero(covered) / n_rows)
    weights = row_weights(sample_weight, n_rows)
    if not weights.any():
        raise ValueError(
            f"`sample_weight` must hold a positive number, got {n_rows} zeros. "
            "Pass sample_weight=None to weigh all rows alike."
        )
    return float(np.sum(weights * covered) / np.sum(weights))


def _domain_of(ruleset: RuleSet) -> tuple[Floats, Floats]:
    if ruleset.domain is None:
        raise ValueError(
            "`ruleset` must have a domain for completeness by volume, got domain=None. Pass "
            "domain=... when making the RuleSet, or use instance_completeness."
        )
    low = np.asarray(ruleset.domain.lower, dtype=np.float64)
    return low, np.asarray(ruleset.domain.upper, dtype=np.float64)


def _unit_boxes(
    lower: Floats, upper: Floats, low: Floats, high: Floats
) -> tuple[Floats, Floats, NDArray[np.bool_]]:
    """Boxes in units of the domain, without its constant features, and which of them hold those."""
    varying = high > low
    constants = low[~varying]
    holds = (lower[:, ~varying] <= constants) & (constants <= upper[:, ~varying])
    low, high = low[varying], high[varying]
    lower, upper = (
        (np.clip(bound[:, varying], low, high) - low) / (high - low) for bound in (lower, upper)
    )
    return lower, upper, np.asarray(holds.all(axis=1))


def _uniform_points(
    rng: np.random.Generator, low: Floats, high: Floats, n_points: int
) -> Iterator[Floats]:
    """Uniform points of the domain in batches that fit memory."""
    size = max(1, _FLOATS_PER_BATCH // max(1, len(low)))
    for start in range(0, n_points, size):
        share = rng.random((min(size, n_points - start), len(low)))
        # The clip gives constant features their very constant, free of rounding.
        yield np.clip(low * (1.0 - share) + high * share, low, high)


def _check_no_categories(ruleset: RuleSet, varying: NDArray[np.bool_]) -> None:
    for number, rule in enumerate(ruleset.rules, 1):
        for condition in _flat(rule.others):
            if (
                isinstance(condition, OneOf)
                and not _is_known(ruleset, condition)
                and (
                    varying[condition.feature] or any(isinstance(v, str) for v in condition.values)
                )
            ):
                name = ruleset.feature_names[condition.feature]
                raise ValueError(
                    f"Rule {number} requires values of the categorical feature {name!r} "
                    f"({condition}), and there is no volume over categories. "
                    "Use instance_completeness."
                )


def _is_known(ruleset: RuleSet, condition: OneOf) -> bool:
    """Whether the domain knows the values of the feature."""
    assert ruleset.domain is not None
    return ruleset.domain.values_of(condition.feature) is not None


def _flat(conditions: Iterable[Condition]) -> Iterator[Condition]:
    for condition in conditions:
        if isinstance(condition, AtLeast):
            yield from _flat(condition.conditions)
        else:
            yield condition


# The values that a domain knows of a categorical feature stand in a line, one unit of length each.


class _Boxes(NamedTuple):
    """Boxes that stand for rules, in units of length along categorical features."""

    lower: Floats
    upper: Floats
    #: Whether the box is all that the rule requires; otherwise the rule holds in a part of it.
    pure: NDArray[np.bool_]


def _category_boxes(ruleset: RuleSet) -> _Boxes:
    """One or more disjoint boxes for every rule; none where no known category satisfies it."""
    lower, upper = ruleset.boxes.lower, ruleset.boxes.upper
    if ruleset.boxes_only:
        return _Boxes(lower, upper, np.ones(len(lower), dtype=bool))
    parts: list[tuple[Floats, Floats, bool]] = []
    for rule, low, high in zip(ruleset.rules, lower, upper, strict=True):
        runs, pure = _runs(rule, ruleset)
        if np.prod([len(r) for r in runs.values()], initial=1.0) > _MOST_PARTS:
            runs, pure = {}, False
        for chosen in product(*runs.values()):
            part_low, part_high = low.copy(), high.copy()
            for feature, (first, last) in zip(runs, chosen, strict=True):
                part_low[feature], part_high[feature] = first, last
            parts.append((part_low, part_high, pure))
    if not parts:
        return _Boxes(lower[:0], upper[:0], np.empty(0, dtype=bool))
    lows, highs, flags = zip(*parts, strict=True)
    return _Boxes(np.array(lows), np.array(highs), np.array(flags))


def _runs(rule: Rule, ruleset: RuleSet) -> tuple[dict[int, list[tuple[int, int]]], bool]:
    """Runs of known values that a rule allows, per feature, and whether that is all it requires."""
    assert ruleset.domain is not None
    allowed: dict[int, np.ndarray] = {}
    pure = True
    for condition in rule.others:
        values = ruleset.domain.values_of(condition.features[0])
        if not isinstance(condition, OneOf) or values is None:
            pure = False
            continue
        column = pd.Series(list(values), dtype=object).to_numpy()
        held = condition.holds(lambda _: column)  # noqa: B023
        feature = condition.feature
        allowed[feature] = allowed.get(feature, np.ones(len(values), dtype=bool)) & held
    runs = {}
    for feature, held in allowed.items():
        edges = np.flatnonzero(np.diff(np.concatenate([[0], held.astype(np.int8), [0]])))
        runs[feature] = [(int(a), int(b)) for a, b in edges.reshape(-1, 2)]
    return runs, pure


def _rows_of_points(ruleset: RuleSet) -> Callable[[Floats], Any]:
    """What turns points of the domain into rows with the names of categories."""
    assert ruleset.domain is not None
    categories = ruleset.domain.categories
    if not categories:
        return lambda points: points

    def named(points: Floats) -> pd.DataFrame:
        frame = pd.DataFrame(points, columns=list(ruleset.feature_names))
        for feature, values in categories:
            code = np.minimum(points[:, feature].astype(np.intp), len(values) - 1)
            labels = pd.Series(list(values), dtype=object).to_numpy()
            frame[ruleset.feature_names[feature]] = labels[code]
        return frame

    return named
