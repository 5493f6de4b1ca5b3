"""Completeness: share of the domain, or of rows, that rules cover.

The two shares differ: rules around dense groups of rows cover nearly all rows but only a small
part of the domain. Report both, and do not compare one with the other.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from skescore._binomial import clopper_pearson
from skescore._validation import row_weights
from skescore.rules import AtLeast, Condition, Domain, Missing, OneOf, Rule, RuleSet, truth_table
from skescore.rules._volumes import Seed, Volume, sampling_stream, union_volume

__all__ = ["Completeness", "instance_completeness", "volume_completeness"]


Floats = NDArray[np.float64]

#: Maximum number of boxes into which a rule is split; with more boxes, its volume is sampled.
_MAX_PARTS = 1024
_NEGLIGIBLE = 1e-9
_FLOATS_PER_BATCH = 2_000_000
#: Volumes are cached up to this number of boxes times features.
_MAX_CACHED = 100_000


@dataclass(frozen=True, slots=True)
class Completeness:
    """Share of the domain that rules cover, with a confidence interval if it is an estimate.

    ``float(...)`` returns the share.

    Attributes
    ----------
    value : float
        The share, from 0 to 1.
    exact : bool
        Whether the share was computed without sampling.
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
    r"""Compute the share of the domain's volume that at least one rule covers.

    Use it to learn how much of the feature space the rules describe, whether or not it contains
    rows. It is the completeness of the ICE score.

    Parameters
    ----------
    ruleset : RuleSet
        Rules with a domain. The fallback does not count; a rule without conditions does.
    n_samples : int, default=100_000
        Number of random points if an exact volume is too expensive.
    confidence : float, default=0.99
        Confidence level of the interval around an estimate, in (0, 1).
    random_state : int, Generator, RandomState or None, default=0
        Seed of the sampling. With None, estimates differ between calls.

    Returns
    -------
    Completeness

    Raises
    ------
    ValueError
        If the rule set has no domain, is declared disjoint although its boxes overlap, or requires
        categories that the domain does not list; or if a parameter is out of range.

    Notes
    -----
    With boxes :math:`B_i` and domain box :math:`D`, :math:`c_v = \mathrm{vol}(D \cap \bigcup_i B_i)
    / \mathrm{vol}(D)`: overlaps count once, and parts outside the domain do not count. Each feature
    is scaled to [0, 1] by the domain and boxes are clipped; an unbounded side extends to the
    domain's side. Open and closed faces have equal volume.

    Features that are constant in the domain are not dimensions of the volume: a box counts if its
    rule holds at the constant, and is empty otherwise. Open and closed faces then differ: at the
    constant 18, ``age ≤ 18`` holds and ``age > 18`` does not. If all features are constant, the
    share is 1 or 0.

    A categorical feature whose values the domain lists has one unit of length per value, so a set
    of values is one interval or several.

    If a share :math:`m` of the training rows lacks a feature (`missing` of the domain), its
    interval has the weight :math:`1 - m`, and missing values have the weight :math:`m`. A condition
    such as ``age ≤ 30`` then measures :math:`1 - m` times its share of the interval, and ``or
    missing`` adds :math:`m`. The measure of a box is the product over the features, as if their
    values were missing independently.

    The volume of a union of boxes is exact unless many boxes overlap in many dimensions. With
    conditions other than intervals, the volume has two bounds: the volume of the rules that have
    intervals only, and the volume of all rules without the other conditions. If the two agree, for
    example because the first is the whole domain, the share is exact. Otherwise it is estimated
    from uniform points of the domain, with a Clopper-Pearson interval clipped to these two bounds.

    References
    ----------
    F. Sabbatini, R. Calegari: ICE: an evaluation metric to assess symbolic knowledge quality.
    2024. Completeness as the share of the input space's volume that rules cover.

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

    If a quarter of the rows has no length:

    >>> float(volume_completeness(rules.replace(domain=Domain((0,), (4,), missing=(0.25,)))))
    0.5625
    """
    domain = _domain_of(ruleset)
    boxes = unit_boxes(ruleset)

    def measure(mask: NDArray[np.bool_], disjoint: bool) -> Volume:
        settings = disjoint, n_samples, confidence, random_state
        lower, upper, rule = boxes.lower[mask], boxes.upper[mask], boxes.rule[mask]
        if isinstance(random_state, int) and lower.size <= _MAX_CACHED:
            # Scores of one rule set compute its volume repeatedly.
            parts = (ends.tobytes() for ends in (lower, upper, rule))
            return _cached_volume(*parts, lower.shape, *settings)
        return _volume(lower, upper, rule, *settings)

    if boxes.pure.all():
        volume = measure(boxes.pure, ruleset.disjoint)
        return Completeness(volume.value, volume.exact, volume.low, volume.high)
    inner = measure(boxes.pure, False)
    outer = measure(np.ones(len(boxes.pure), dtype=bool), False)
    bottom, top = (inner.value if inner.exact else 0.0), (outer.value if outer.exact else 1.0)
    if top - bottom <= _NEGLIGIBLE * top:
        return Completeness(top, True, top, top)
    low, high = np.asarray(domain.lower), np.asarray(domain.upper)
    _check_no_categories(ruleset, high > low)
    to_rows = _rows_of_points(ruleset)
    rng = sampling_stream(random_state)
    hits = sum(
        int(np.count_nonzero(ruleset.covers(to_rows(points))))
        for points in _random_points(rng, domain, n_samples)
    )
    lower_bound, upper_bound = (
        min(max(end, bottom), top) for end in clopper_pearson(hits, n_samples, confidence)
    )
    return Completeness(
        min(max(hits / n_samples, lower_bound), upper_bound), False, lower_bound, upper_bound
    )


def _volume(
    lower: Floats,
    upper: Floats,
    rule: NDArray[np.intp],
    disjoint: bool,
    n_samples: int,
    confidence: float,
    seed: Seed,
) -> Volume:
    return union_volume(
        lower,
        upper,
        rule=rule,
        disjoint=disjoint,
        n_samples=n_samples,
        confidence=confidence,
        random_state=seed,
    )


@lru_cache(maxsize=32)
def _cached_volume(
    lower: bytes, upper: bytes, rule: bytes, shape: tuple[int, int], *settings: Any
) -> Volume:
    low, high = (np.frombuffer(b, dtype=np.float64).reshape(shape) for b in (lower, upper))
    return _volume(low, high, np.frombuffer(rule, dtype=np.intp), *settings)


def instance_completeness(
    ruleset: RuleSet, X: ArrayLike, *, sample_weight: ArrayLike | None = None
) -> float:
    """Compute the share of rows that at least one rule covers.

    Use it to learn what share of similar rows the rules cover, or if a volume means little, for
    example with categorical features.

    Parameters
    ----------
    ruleset : RuleSet
        Rules to evaluate. The fallback does not count.
    X : array-like or DataFrame of shape (n_rows, n_features)
        The rows.
    sample_weight : array-like of shape (n_rows,), optional
        Weight of each row, zero or positive; equal by default.

    Returns
    -------
    float
        Share from 0 to 1.

    Raises
    ------
    ValueError
        If there are no rows, or the weights are negative, not finite, all zero or not one per row.

    Notes
    -----
    The share is the weight of the covered rows divided by the weight of all rows. Missing values
    satisfy only conditions that include them.

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
            "volume_completeness needs no rows."
        )
    if sample_weight is None:
        return float(np.count_nonzero(covered) / n_rows)
    weights = row_weights(sample_weight, n_rows)
    if not weights.any():
        raise ValueError(
            f"`sample_weight` must hold a positive number, got {n_rows} zeros. "
            "Pass sample_weight=None to weight all rows equally."
        )
    return float(np.sum(weights * covered) / np.sum(weights))


def _domain_of(ruleset: RuleSet) -> Domain:
    if ruleset.domain is None:
        raise ValueError(
            "Completeness by volume needs a `ruleset` with a domain, got domain=None. Pass "
            "domain=... when making the RuleSet, or use instance_completeness."
        )
    return ruleset.domain


class UnitBoxes(NamedTuple):
    """Nonempty boxes in the unit cube that represent rules."""

    lower: Floats
    upper: Floats
    #: True if the box equals the rule; False if the rule covers only a part of it.
    pure: NDArray[np.bool_]
    #: Index of the rule; several boxes of one rule do not overlap.
    rule: NDArray[np.intp]


def unit_boxes(ruleset: RuleSet, *, comparable: bool = False) -> UnitBoxes:
    """Convert the rules of a rule set with a domain to boxes in the unit cube.

    A feature without missing values is mapped to [0, 1]; a constant feature is dropped. With a
    share m of missing values, observed values are mapped to [0, 1 - m] and missing values to the
    rest. Missing values are placed at the end where fewer boxes split, or at the upper end if the
    boxes must be `comparable` with boxes of other rule sets.
    """
    domain, boxes = _domain_of(ruleset), _category_boxes(ruleset)
    low, high = np.asarray(domain.lower), np.asarray(domain.upper)
    missing = np.asarray(domain.missing)
    varying = high > low
    # With zero length, only open and closed faces separate boxes such as x ≤ 18 and x > 18.
    table = ruleset.boxes
    meets_low = (table.lower < low) | (table.lower_closed & (table.lower == low))
    meets_high = (low < table.upper) | (table.upper_closed & (table.upper == low))
    accepts_observed = boxes.accepts_observed & (varying | (meets_low & meets_high)[boxes.rule])
    lower, upper = (np.clip(b, low, high) for b in (boxes.lower, boxes.upper))
    with np.errstate(over="ignore"):  # The domain may be longer than the largest float.
        scale = np.where(high - low < np.inf, 1.0, 0.5)
    length = np.where(varying, high * scale - low * scale, 1.0)
    lower, upper = ((b * scale - low * scale) / length for b in (lower, upper))
    is_complete = missing == 0
    is_satisfiable = accepts_observed[:, is_complete].all(axis=1)
    lower, upper, pure, accepts_observed = (
        lower[is_satisfiable],
        upper[is_satisfiable],
        boxes.pure[is_satisfiable],
        accepts_observed[is_satisfiable],
    )
    accepts_missing, rule = boxes.missing[is_satisfiable], boxes.rule[is_satisfiable]
    is_plain = is_complete & varying
    gap_features = np.flatnonzero(~is_complete)
    if not len(gap_features):
        return UnitBoxes(lower[:, is_plain], upper[:, is_plain], pure, rule)
    (lows, highs), has_second = _sides(
        lower[:, gap_features],
        upper[:, gap_features],
        accepts_observed[:, gap_features],
        accepts_missing[:, gap_features],
        missing[gap_features],
        varying[gap_features],
        is_flippable=not comparable,
    )
    # A box that would split into too many parts is sampled.
    is_unsplit = has_second.sum(axis=1) > np.log2(_MAX_PARTS)
    pure = pure & ~is_unsplit
    lows[is_unsplit[:, None] & has_second], highs[is_unsplit[:, None] & has_second] = 0.0, 1.0
    has_second[is_unsplit] = False
    lows, highs = np.hstack([lower[:, is_plain], lows]), np.hstack([upper[:, is_plain], highs])
    rows = np.arange(len(pure))
    for position in np.flatnonzero(has_second.any(axis=0)):
        is_split, n = has_second[rows, position], len(lows)
        lows, highs = (
            np.concatenate([lows, lows[is_split]]),
            np.concatenate([highs, highs[is_split]]),
        )
        feature = position + np.count_nonzero(is_plain)
        lows[n:, feature], highs[n:, feature] = 1.0 - missing[gap_features[position]], 1.0
        rows = np.concatenate([rows, rows[is_split]])
    order = np.argsort(rule[rows], kind="stable")
    return UnitBoxes(lows[order], highs[order], pure[rows][order], rule[rows][order])


def _sides(
    lower: Floats,
    upper: Floats,
    accepts_observed: NDArray[np.bool_],
    accepts_missing: NDArray[np.bool_],
    missing: Floats,
    varying: NDArray[np.bool_],
    *,
    is_flippable: bool,
) -> tuple[tuple[Floats, Floats], NDArray[np.bool_]]:
    """Compute the sides of boxes along features with missing values.

    Also return which boxes have a second part, of missing values, at the end of the feature.
    """
    observed_share = 1.0 - missing
    low = np.where(varying, lower * observed_share, 0.0)
    high = np.where(varying, upper * observed_share, observed_share)
    accepts_both = accepts_observed & accepts_missing
    # Place missing values at the end that more boxes reach, so fewer boxes split.
    if is_flippable:
        at_start, at_end = accepts_both & (low == 0), accepts_both & (high == observed_share)
        mirrored = at_start.sum(axis=0) > at_end.sum(axis=0)
        low, high = (
            np.where(mirrored, observed_share - high, low),
            np.where(mirrored, observed_share - low, high),
        )
    has_second = accepts_both & (high < observed_share)
    first_low = np.where(accepts_observed, low, np.where(accepts_missing, observed_share, 0.0))
    first_high = np.where(
        accepts_observed,
        np.where(accepts_both & ~has_second, 1.0, high),
        np.where(accepts_missing, 1.0, 0.0),
    )
    return (first_low, first_high), has_second


def _random_points(rng: np.random.Generator, domain: Domain, n_points: int) -> Iterator[Floats]:
    """Draw uniform points of the domain, with missing values, in batches that fit memory."""
    low, high, missing = (np.asarray(v) for v in (domain.lower, domain.upper, domain.missing))
    size = max(1, _FLOATS_PER_BATCH // max(1, len(low)))
    for start in range(0, n_points, size):
        share = rng.random((min(size, n_points - start), len(low)))
        # Clipping sets constant features to their exact value.
        points = np.clip(low * (1.0 - share) + high * share, low, high)
        if missing.any():
            points[rng.random(points.shape) < missing] = np.nan
        yield points


def _check_no_categories(ruleset: RuleSet, varying: NDArray[np.bool_]) -> None:
    for number, rule in enumerate(ruleset.rules, 1):
        for condition in _flatten(rule.non_intervals):
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
                    f"({condition}), and categories without known values have no volume. "
                    "Use bounds if the feature is numeric, list its values in the domain, or use "
                    "instance_completeness."
                )


def _is_known(ruleset: RuleSet, condition: OneOf) -> bool:
    """Return whether the domain lists the values of the feature."""
    assert ruleset.domain is not None
    return ruleset.domain.values_of(condition.feature) is not None


def _flatten(conditions: Iterable[Condition]) -> Iterator[Condition]:
    for condition in conditions:
        if isinstance(condition, AtLeast):
            yield from _flatten(condition.conditions)
        else:
            yield condition


# The values of a categorical feature lie on a line, each with length 1.


class _Boxes(NamedTuple):
    """Boxes that represent rules; the length of categorical features is their number of values."""

    lower: Floats
    upper: Floats
    #: Whether the box contains the numbers between its bounds, and missing values, by feature.
    accepts_observed: NDArray[np.bool_]
    missing: NDArray[np.bool_]
    #: True if the box equals the rule; False if the rule covers only a part of it.
    pure: NDArray[np.bool_]
    #: Index of the rule.
    rule: NDArray[np.intp]


def _category_boxes(ruleset: RuleSet) -> _Boxes:
    """Split every rule into disjoint boxes; a rule that no category satisfies has no box."""
    table = ruleset.boxes
    lower, upper = table.lower, table.upper
    accepts_observed, missing = np.ones(lower.shape, dtype=bool), table.accepts_missing
    pure = np.ones(len(lower), dtype=bool)
    if ruleset.boxes_only:
        return _Boxes(lower, upper, accepts_observed, missing, pure, np.arange(len(lower)))
    all_pieces = []
    for i, rule in enumerate(ruleset.rules):
        pieces, pure[i] = _pieces(rule, ruleset)
        if np.prod([len(p) for p in pieces.values()], initial=1.0) > _MAX_PARTS:
            pieces, pure[i] = {}, False
        all_pieces.append(pieces)
    n_boxes = [math.prod(map(len, pieces.values())) for pieces in all_pieces]
    rows = np.repeat(np.arange(len(all_pieces)), n_boxes)
    lower, upper, accepts_observed, missing = (
        a[rows] for a in (lower, upper, accepts_observed, missing)
    )
    starts = np.cumsum([0, *n_boxes])
    for pieces, start, end in zip(all_pieces, starts[:-1], starts[1:], strict=True):
        stride = 1
        for j, feature_pieces in pieces.items():  # all combinations of one piece per feature
            index = np.arange(end - start) // stride % len(feature_pieces)
            stride *= len(feature_pieces)
            accepts_observed[start:end, j] = np.array([p.accepts_observed for p in feature_pieces])[
                index
            ]
            missing[start:end, j] = np.array([p.missing for p in feature_pieces])[index]
            if feature_pieces and feature_pieces[0].ends is not None:
                ends = np.array([p.ends for p in feature_pieces], dtype=float)[index]
                lower[start:end, j], upper[start:end, j] = ends.T
    return _Boxes(lower, upper, accepts_observed, missing, pure[rows], rows)


class _Piece(NamedTuple):
    """Part of the values that a rule accepts along one feature; `ends` is None without interval."""

    ends: tuple[int, int] | None
    accepts_observed: bool
    missing: bool


def _pieces(rule: Rule, ruleset: RuleSet) -> tuple[dict[int, list[_Piece]], bool]:
    """Return disjoint parts of the accepted values by feature, and whether they equal the rule."""
    assert ruleset.domain is not None
    accepted: dict[int, np.ndarray] = {}
    pieces: dict[int, list[_Piece]] = {}
    pure = True
    for condition in rule.non_intervals:
        if isinstance(condition, Missing):
            truth = truth_table(condition)
            pieces[condition.feature] = [_Piece(None, truth.passing, truth.missing)]
            continue
        values = ruleset.domain.values_of(condition.features[0])
        if not isinstance(condition, OneOf) or values is None:
            pure = False
            continue
        flags = _satisfying_values(condition, values)
        feature = condition.feature
        accepted[feature] = accepted.get(feature, np.ones(len(flags), dtype=bool)) & flags
    for feature, flags in accepted.items():
        missing = bool(flags[-1])
        edges = np.flatnonzero(np.diff(np.concatenate([[0], flags[:-1].astype(np.int8), [0]])))
        runs = [(int(a), int(b)) for a, b in edges.reshape(-1, 2)]
        # Missing values belong to the first run of values, or form a separate piece.
        pieces[feature] = [_Piece(run, True, missing and not k) for k, run in enumerate(runs)]
        if missing and not runs:
            pieces[feature] = [_Piece((0, len(flags) - 1), False, True)]
    return pieces, pure


@lru_cache(maxsize=4096)
def _satisfying_values(condition: OneOf, values: tuple[Any, ...]) -> NDArray[np.bool_]:
    """Return whether each value of the domain, and last a missing value, satisfies a condition."""
    column = pd.Series([*values, None], dtype=object).to_numpy()
    return condition.holds(lambda _: column)


def _rows_of_points(ruleset: RuleSet) -> Callable[[Floats], Any]:
    """Return a function that converts points of the domain to rows, and codes to categories."""
    assert ruleset.domain is not None
    categories = ruleset.domain.categories
    if not categories:
        return lambda points: points

    def to_rows(points: Floats) -> pd.DataFrame:
        columns: dict[int, Any] = dict(enumerate(points.T))
        for feature, values in categories:
            # Missing values remain NaN, which np.minimum propagates.
            code = np.minimum(points[:, feature], len(values) - 0.5)
            code = np.where(np.isnan(code), -1, code).astype(np.intp)
            columns[feature] = pd.Categorical.from_codes(code, categories=pd.Index(values))
        frame = pd.DataFrame(columns)
        frame.columns = list(ruleset.feature_names)
        return frame

    return to_rows
