"""Overlap, gaps and redundancy of the rules of a set."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skescore._validation import check_flag
from skescore.metrics._completeness import Completeness, unit_boxes
from skescore.metrics._rule_counts import Flags, Floats, RuleCounts, checked_weights
from skescore.rules import Condition, Interval, RowTable, RuleSet, as_ruleset
from skescore.rules._volumes import overlapping_pairs, union_volume

__all__ = [
    "Redundancy",
    "RuleOverlap",
    "redundancy",
    "rule_overlap",
    "rules_and_rows",
    "volume_overlap",
]


def rules_and_rows(
    caller: str, rules: Any, X: Any, sample_weight: ArrayLike | None
) -> tuple[RuleSet, RowTable, Floats]:
    """Convert rules and rows, and return them with a weight for every row."""
    ruleset = as_ruleset(rules)
    if isinstance(X, RuleCounts):
        raise TypeError(
            f"{caller} needs every row, but counts of rows do not contain the rows. Pass rows."
        )
    table = RowTable.of(X, ruleset.feature_names)
    weights = checked_weights(sample_weight, len(table))
    return ruleset, table, np.ones(len(table)) if weights is None else weights


def _conclusions(ruleset: RuleSet) -> NDArray[np.intp]:
    """Return the index of every rule's conclusion among the different conclusions."""
    output_codes: dict[Any, int] = {}
    codes = [output_codes.setdefault(rule.output, len(output_codes)) for rule in ruleset.rules]
    return np.array(codes, dtype=np.intp)


@dataclass(frozen=True, eq=False)
class RuleOverlap:
    """Overlap of the rules of a set on rows, returned by :func:`rule_overlap`.

    Attributes
    ----------
    pairs : ndarray of shape (n_rules, n_rules) or None
        Share of the rows that two rules both cover; the diagonal holds the share of each rule. None
        if pairs were not counted.
    contrary : ndarray of bool, shape (n_rules, n_rules), or None
        Whether two rules have different conclusions.
    overlap : float
        Share of the rows that two or more rules cover.
    negative_overlap : float
        Share of the rows that two rules with different conclusions both cover.
    uncovered : float
        Share of the rows that no rule covers.

    Examples
    --------
    >>> from skescore.rules import Interval, Rule, RuleSet
    >>> rules = RuleSet(
    ...     [Rule([Interval(0, upper=2)], "low"), Rule([Interval(0, lower=1)], "high")],
    ...     ["length"], task="classification",
    ... )
    >>> rule_overlap(rules, [[0.5], [1.5], [2.5], [3.5]]).worst_pairs()
    [(1, 2, 0.25)]
    """

    pairs: Floats | None
    contrary: Flags | None
    overlap: float
    negative_overlap: float
    uncovered: float

    @cached_property
    def mean_of_pairs(self) -> float:
        """Mean share of rows that two rules both cover over all pairs; 0 for a single rule."""
        pairs = self._defined_shares()[0]
        one, other = np.triu_indices(len(pairs), 1)
        return float(pairs[one, other].mean()) if len(one) else 0.0

    def _defined_shares(self) -> tuple[Floats, Flags]:
        if self.pairs is None or self.contrary is None:
            raise ValueError("Pairs of rules were not counted: call rule_overlap with pairs=True.")
        return self.pairs, self.contrary

    def worst_pairs(self, limit: int = 10) -> list[tuple[int, int, float]]:
        """List the pairs of contradictory rules that jointly cover the largest shares of rows.

        Parameters
        ----------
        limit : int, default=10
            Largest number of pairs to return.

        Returns
        -------
        list of tuple of int, int and float
            Numbers of the two rules, from 1, and the share of the rows that both cover.
        """
        pairs, contrary = self._defined_shares()
        shares = np.where(np.triu(contrary, 1), pairs, 0.0)
        order = np.argsort(-shares, axis=None, kind="stable")[:limit]
        index_pairs = zip(*np.unravel_index(order, shares.shape), strict=True)
        listed = [(int(i), int(j), float(shares[i, j])) for i, j in index_pairs]
        return [(i + 1, j + 1, share) for i, j, share in listed if share > 0]


def rule_overlap(
    rules: Any, X: Any, sample_weight: ArrayLike | None = None, *, pairs: bool = True
) -> RuleOverlap:
    r"""Measure the shares of rows on which rules overlap, contradict each other, or do not hold.

    Use it before people read rules one by one: FiRe and ICE evaluate only the predictions of the
    whole list, not rules that another rule overrides.

    Parameters
    ----------
    rules : RuleSet, or what :func:`skescore.rules.as_ruleset` reads
        Rules to evaluate, without the fallback.
    X : array-like or DataFrame of shape (n_rows, n_features)
        The rows, at least one.
    sample_weight : array-like of shape (n_rows,), optional
        Weight of each row, zero or positive.
    pairs : bool, default=True
        Whether to count rows by pair of rules, which takes memory quadratic in the number of rules.

    Returns
    -------
    RuleOverlap

    Raises
    ------
    TypeError
        If X holds counts of rows.
    ValueError
        If there are no rows, or the rows or weights do not fit.

    See Also
    --------
    volume_overlap : The same as a share of the domain, whether or not it contains rows.
    characteristics : Overlap and other figures of the rule set.

    Notes
    -----
    If :math:`k(x)` rules cover a row, the overlap is :math:`o = P(k(x) \ge 2)`, and the uncovered
    share is :math:`u = P(k(x) = 0)`. The negative overlap :math:`o^- \le o` is the share of rows
    that two rules with different conclusions both cover. All lie between 0 and 1, and 0 is best. In
    regression, different outputs are different conclusions. The mean over pairs,
    :math:`\frac{2}{K(K - 1)} \sum_{i < j} P(i \text{ and } j \text{ hold})`, is the "fraction
    overlap" of Lakkaraju and others; it tends to shrink as the number of rules grows.

    In an ordered list, the first matching rule predicts. The negative overlap is then the share of
    rows for which a later rule, read by itself, contradicts the list.

    References
    ----------
    H. Lakkaraju, S. H. Bach, J. Leskovec: Interpretable decision sets. KDD 2016,
    doi:10.1145/2939672.2939874. Overlap, and fraction uncovered.

    M. Siala, J. Planes, J. Marques-Silva: On trustworthy rule-based models and explanations.
    ECML PKDD 2025, arXiv:2507.07576. Negative overlap.

    G. Vilone, L. Longo: A quantitative evaluation of global, rule-based explanations of post-hoc,
    model agnostic methods. Frontiers in AI 4, 2021, doi:10.3389/frai.2021.717899.

    Examples
    --------
    >>> from skescore.metrics import rule_overlap
    >>> from skescore.rules import Interval, Rule, RuleSet
    >>> rules = RuleSet(
    ...     [Rule([Interval(0, upper=2)], "low"), Rule([Interval(0, lower=1, upper=3)], "high")],
    ...     ["length"], task="classification",
    ... )
    >>> met = rule_overlap(rules, [[0.5], [1.5], [2.5], [3.5]])
    >>> met.overlap, met.negative_overlap, met.uncovered, met.mean_of_pairs
    (0.25, 0.25, 0.25, 0.25)
    """
    ruleset, table, weights = rules_and_rows("rule_overlap", rules, X, sample_weight)
    check_flag("pairs", pairs)
    codes, total = _conclusions(ruleset), weights.sum()
    joint_weights = np.zeros((len(ruleset), len(ruleset))) if pairs else None
    shares = np.zeros(3)
    for rows, matches in ruleset.iter_match(table):
        weight, numbers = weights[rows], matches.astype(np.float64)
        if joint_weights is not None:
            joint_weights += (numbers.T * weight) @ numbers
        count = numbers.sum(axis=1)
        # By Cauchy-Schwarz, equality holds only for equal conclusions; exact for integers.
        contradictory = count * (numbers @ codes.astype(float) ** 2) != (numbers @ codes) ** 2
        shares += [weight[count >= 2].sum(), weight[contradictory].sum(), weight[count == 0].sum()]
    overlap, negative, uncovered = np.clip(shares / total, 0.0, 1.0).tolist()
    if joint_weights is None:
        return RuleOverlap(None, None, overlap, negative, uncovered)
    contrary = codes[:, None] != codes
    return RuleOverlap(
        np.clip(joint_weights / total, 0.0, 1.0), contrary, overlap, negative, uncovered
    )


def volume_overlap(
    rules: Any,
    *,
    negative: bool = True,
    n_samples: int = 100_000,
    confidence: float = 0.99,
    random_state: Any = 0,
) -> Completeness:
    r"""Compute the share of the domain's volume that at least two rules cover.

    Use it to see whether rules can contradict each other on future rows.

    Parameters
    ----------
    rules : RuleSet, or what :func:`skescore.rules.as_ruleset` reads
        Rules with a domain, whose conditions are intervals or values of categories.
    negative : bool, default=True
        Whether to count only rules with different conclusions.
    n_samples : int, default=100000
        Number of random points if an exact volume is too expensive.
    confidence : float, default=0.99
        Confidence level of the interval around an estimate, in (0, 1).
    random_state : int, RandomState instance or None, default=0
        Seed of the sampling.

    Returns
    -------
    Completeness
        Share with its interval; 0 is best.

    Raises
    ------
    ValueError
        If the rule set has no domain, or a rule is not a box.

    Notes
    -----
    :math:`\mathrm{vol}(D \cap \bigcup_{i < j} B_i \cap B_j) / \mathrm{vol}(D)`, over pairs with
    different conclusions if `negative`. Boxes that only touch do not overlap.

    References
    ----------
    M. Siala, J. Planes, J. Marques-Silva: On trustworthy rule-based models and explanations. ECML
    PKDD 2025, arXiv:2507.07576. The authors test whether there is any such point.

    Examples
    --------
    >>> from skescore.rules import Domain, Interval, Rule, RuleSet
    >>> rules = RuleSet(
    ...     [Rule([Interval(0, upper=2)], "low"), Rule([Interval(0, lower=1, upper=3)], "high")],
    ...     ["length"], task="classification", domain=Domain((0,), (4,)),
    ... )
    >>> float(volume_overlap(rules))
    0.25
    """
    ruleset = as_ruleset(rules)
    boxes = unit_boxes(ruleset)
    if not boxes.pure.all():
        number = int(boxes.rule[~boxes.pure][0]) + 1
        raise ValueError(
            f"volume_overlap needs rules that are boxes, but rule {number} has other conditions: "
            f"{ruleset.rules[number - 1]}. Measure their overlap on rows with rule_overlap."
        )
    codes = _conclusions(ruleset)
    one, other = overlapping_pairs(boxes.lower, boxes.upper).T
    rule, its = boxes.rule[one], boxes.rule[other]
    is_counted = (codes[rule] != codes[its]) if negative else (rule != its)
    lower = np.maximum(boxes.lower[one[is_counted]], boxes.lower[other[is_counted]])
    upper = np.minimum(boxes.upper[one[is_counted]], boxes.upper[other[is_counted]])
    volume = union_volume(
        lower, upper, n_samples=n_samples, confidence=confidence, random_state=random_state
    )
    return Completeness(volume.value, volume.exact, volume.low, volume.high)


@dataclass(frozen=True, eq=False)
class Redundancy:
    """Removable rules and comparisons of a rule set, returned by :func:`redundancy`.

    Attributes
    ----------
    rules : ndarray of bool, shape (n_rules,)
        Whether the rule alone could be removed.
    literals : tuple of ndarray of bool
        Whether each comparison of each rule could be removed; a two-sided interval has two
        comparisons, any other condition one.

    Examples
    --------
    >>> from skescore.rules import Interval, Rule, RuleSet
    >>> rules = RuleSet(
    ...     [Rule([Interval(0, upper=1)], "low"), Rule([Interval(0, lower=1)], "high")],
    ...     ["length"], task="classification",
    ... )
    >>> redundancy(rules, [[0.5], [2.5]]).literals
    (array([False]), array([ True]))
    """

    rules: Flags
    literals: tuple[Flags, ...]

    @property
    def share_of_rules(self) -> float:
        """Share of the rules that are removable one at a time; NaN without rules."""
        return float(self.rules.mean()) if len(self.rules) else math.nan

    @property
    def share_of_literals(self) -> float:
        """Share of the comparisons that are removable one at a time; NaN without comparisons."""
        flags = np.concatenate([np.empty(0, dtype=bool), *self.literals])
        return float(flags.mean()) if len(flags) else math.nan


def redundancy(rules: Any, X: Any, sample_weight: ArrayLike | None = None) -> Redundancy:
    """Find rules and comparisons whose removal, one at a time, changes no prediction of the rows.

    Use it to learn how much of the text of rules has no effect on the rows; FiRe and ICE count
    rules, but not their conditions. ``rules.simplify(X)`` removes such parts.

    Parameters
    ----------
    rules : RuleSet, or what :func:`skescore.rules.as_ruleset` reads
        Rules to evaluate.
    X : array-like or DataFrame of shape (n_rows, n_features)
        The rows, at least one.
    sample_weight : array-like of shape (n_rows,), optional
        Weights of the rows; rows of weight 0 are ignored.

    Returns
    -------
    Redundancy

    Raises
    ------
    TypeError
        If X holds counts of rows.
    ValueError
        If there are no rows, or the rows or weights do not fit.

    Notes
    -----
    A part is redundant if without it every row has the same prediction, and the same rows are
    covered. Shares lie between 0 and 1, and 0 is best. Two equivalent parts are both redundant,
    although only one of them can be removed. In an ordered list, conditions implied by earlier
    rules are redundant in later ones. For rules that vote, each change is evaluated on all rows,
    which is slow for hundreds of rules.

    References
    ----------
    M. Siala, J. Planes, J. Marques-Silva: On trustworthy rule-based models and explanations. ECML
    PKDD 2025, arXiv:2507.07576. The authors define redundant literals on the whole feature space.

    Examples
    --------
    >>> from skescore.rules import Interval, Rule, RuleSet
    >>> rules = RuleSet(
    ...     [Rule([Interval(0, upper=1)], "low"), Rule([Interval(0, lower=1, upper=9)], "high")],
    ...     ["length"], task="classification",
    ... )
    >>> result = redundancy(rules, [[0.5], [2.5], [9.5]])
    >>> result.share_of_rules, round(result.share_of_literals, 2)
    (0.0, 0.33)
    """
    ruleset, table, weights = rules_and_rows("redundancy", rules, X, sample_weight)
    # With fewer conditions, disjoint rules may overlap.
    base = ruleset.replace(disjoint=False) if ruleset.disjoint else ruleset
    rows: _OneRulePerRow | _VotingRules
    rows = (_OneRulePerRow if base.voting is None else _VotingRules)(base, table, weights > 0)
    return Redundancy(
        np.array([rows.without_rule(i) for i in range(len(base))], dtype=bool),
        tuple(np.array(list(_of_literals(rows, i)), dtype=bool) for i in range(len(base))),
    )


def _of_literals(rows: _OneRulePerRow | _VotingRules, index: int) -> Iterator[bool]:
    """Yield whether each comparison of a rule is removable."""
    conditions = rows.ruleset.rules[index].conditions
    flags = [rows.table.holds(condition) for condition in conditions]
    failed = np.sum([~flag for flag in flags], axis=0)
    for position, (condition, flag) in enumerate(zip(conditions, flags, strict=True)):
        alone = failed == ~flag  # no other condition fails
        for wider in _drop_comparisons(condition):
            added_rows = alone & ~flag & rows.counted
            if wider is not None:
                added_rows &= rows.table.holds(wider)
            remaining_conditions = (
                *conditions[:position],
                *(() if wider is None else (wider,)),
                *conditions[position + 1 :],
            )
            yield not added_rows.any() or rows.with_more(index, remaining_conditions, added_rows)


def _drop_comparisons(condition: Condition) -> tuple[Condition | None, ...]:
    """Return a condition without each of its comparisons; None if no comparison is left."""
    if isinstance(condition, Interval) and condition.n_literals - condition.missing == 2:
        return replace(condition, lower=-math.inf), replace(condition, upper=math.inf)
    return (None,)


class _OneRulePerRow:
    """Rules that do not vote: exactly one predicts each row."""

    def __init__(self, ruleset: RuleSet, table: RowTable, counted: Flags) -> None:
        self.ruleset, self.table, self.counted = ruleset, table, counted
        self._held = ruleset.match(table)
        self._order = ruleset.assignment_order
        self._rank = np.empty(len(ruleset), dtype=np.intp)
        self._rank[self._order] = np.arange(len(ruleset))
        self._assigned = ruleset.assign(table)

    def without_rule(self, index: int) -> bool:
        """Return whether all predictions stay the same without a rule."""
        rows = np.flatnonzero((self._assigned == index) & self.counted)
        matches = self._held[rows]
        matches[:, index] = False
        if not matches.any(axis=1).all():
            return False
        return self._predicts_alike(rows, self._order[matches[:, self._order].argmax(axis=1)])

    def with_more(self, index: int, conditions: tuple[Condition, ...], added_rows: Flags) -> bool:
        """Return whether all predictions stay the same if a rule also covers the `added_rows`."""
        rows = np.flatnonzero(added_rows)
        before = self._assigned[rows]
        if (before < 0).any():
            return False
        rows = rows[self._rank[before] > self._rank[index]]
        return self._predicts_alike(rows, np.full(len(rows), index))

    def _predicts_alike(self, rows: NDArray[np.intp], rules: NDArray[np.intp]) -> bool:
        """Return whether `rules` predict the same for `rows` as the assigned rules."""
        new, old = (
            self._outputs(rows, rule_indices) for rule_indices in (rules, self._assigned[rows])
        )
        return bool(((new == old) | (np.isnan(new) & np.isnan(old))).all())

    def _outputs(self, rows: NDArray[np.intp], rules: NDArray[np.intp]) -> Floats:
        conclusions = self.ruleset.conclusions
        outputs = conclusions.outputs[rules].astype(np.float64)
        for index in set(rules.tolist()) & conclusions.linear.keys():
            rule_rows = rows[rules == index]
            columns = functools.partial(self._numbers, rule_rows)
            outputs[rules == index] = conclusions.linear[index].evaluate(columns, len(rule_rows))
        return outputs

    def _numbers(self, rows: NDArray[np.intp], feature: int) -> Floats:
        return self.table.numbers(feature, slice(None))[rows]


class _VotingRules:
    """Rules that vote; each change is evaluated on all rows."""

    def __init__(self, ruleset: RuleSet, table: RowTable, counted: Flags) -> None:
        self.ruleset, self.table, self.counted = ruleset.with_arbitrary_fallback(), table, counted
        self._before = self._predictions(self.ruleset)

    def _predictions(self, ruleset: RuleSet) -> tuple[NDArray[Any], Flags]:
        if not len(ruleset):
            return np.empty(int(self.counted.sum())), np.zeros(int(self.counted.sum()), dtype=bool)
        return ruleset.predict(self.table)[self.counted], ruleset.covers(self.table)[self.counted]

    def _same(self, rules: list[Any]) -> bool:
        old, was_covered = self._before
        new, is_covered = self._predictions(self.ruleset.replace(rules=rules))
        return bool((was_covered == is_covered).all() and ((old == new) | ~is_covered).all())

    def without_rule(self, index: int) -> bool:
        """Return whether all predictions stay the same without a rule."""
        return self._same([r for i, r in enumerate(self.ruleset.rules) if i != index])

    def with_more(self, index: int, conditions: tuple[Condition, ...], added_rows: Flags) -> bool:
        """Return whether all predictions stay the same if a rule has other `conditions`."""
        rules = list(self.ruleset.rules)
        rules[index] = replace(rules[index], conditions=conditions)
        return self._same(rules)
