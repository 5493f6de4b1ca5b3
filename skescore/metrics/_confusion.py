"""Confusion counts of each rule on labeled rows, from which measures of rules are computed.

Rows are processed in batches, so memory does not grow with the product of rows and rules. A
regression takes a second pass for the rows within a standard deviation of each rule's prediction,
and another one for standard deviations that rounding affects. Matches are cached as bits unless
there are too many.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from skescore._validation import finite_numbers
from skescore.metrics._rule_counts import (
    BORDER,
    NARROW,
    Flags,
    Floats,
    RuleCounts,
    are_positive,
    checked_weights,
    one_per_row,
    positive_range,
)
from skescore.metrics._rule_quality import RuleMeasure, rule_quality
from skescore.metrics._significance import (
    adjust_p_values,
    fisher_p_value,
    significant,
    variance_p_value,
)
from skescore.rules import RowTable, RuleSet

__all__ = ["Flags", "Floats", "RuleConfusion", "Tally", "class_codes", "confusion"]

#: Pairs of row and rule per batch, which fit the cache of a CPU core.
_NUMBERS = 1 << 17
#: Largest size of the cached matches of a regression; above it, each pass matches the rows again.
_MAX_CACHED_BYTES = 1 << 26


@dataclass(frozen=True, eq=False)
class RuleConfusion:
    """Counts of the labeled rows that each rule covers; every array has one entry per rule.

    Counts are sums of weights where rows have weights.

    Attributes
    ----------
    p, n : ndarray of float
        Positive and negative rows that the rule covers.
    P, N : ndarray of float
        All positive and negative rows, covered or not.
    unique : ndarray of float
        Rows that only this rule covers.
    mean, std : ndarray of float or None
        For regression: mean and population standard deviation of the labels of covered rows; NaN
        for a rule that covers no row.
    label_std : float or None
        For regression: sample standard deviation (ddof 1) of all labels; NaN for a single row.

    Examples
    --------
    >>> from skescore.rules import Interval, Rule, RuleSet
    >>> rules = RuleSet(
    ...     [Rule([Interval(0, upper=2)], "low"), Rule([Interval(0, lower=1)], "high")],
    ...     ["length"], task="classification",
    ... )
    >>> counts = confusion(rules, [[0.5], [1.5], [2.5], [3.5]], ["low", "low", "high", "low"])
    >>> counts.covered.tolist(), counts.overlap.round(3).tolist()
    ([2.0, 3.0], [0.5, 0.333])
    >>> counts.quality("precision").round(3).tolist()
    [1.0, 0.333]
    """

    p: Floats
    n: Floats
    P: Floats
    N: Floats
    unique: Floats
    mean: Floats | None = None
    std: Floats | None = None
    label_std: float | None = None

    def __post_init__(self) -> None:
        for count_field in fields(self):
            value = getattr(self, count_field.name)
            if isinstance(value, np.ndarray):
                value.flags.writeable = False

    def __len__(self) -> int:
        return len(self.p)

    @property
    def covered(self) -> Floats:
        """Number of rows that each rule covers."""
        return np.asarray(self.p + self.n)

    @property
    def overlap(self) -> Floats:
        """Share of each rule's rows that other rules cover too; NaN for a rule without rows."""
        covered = self.covered
        shared = np.maximum(covered - self.unique, 0.0)
        return np.divide(shared, covered, out=np.full(len(self), np.nan), where=covered > 0)

    def quality(
        self, measure: str | RuleMeasure, *, undefined: float = np.nan, **parameters: float
    ) -> Floats:
        """Compute a quality measure of every rule.

        Parameters
        ----------
        measure : str or RuleMeasure
            A name in :data:`skescore.metrics.RULE_MEASURES`, or a user-defined measure.
        undefined : float, default=NaN
            Value where the measure is undefined.
        **parameters : float
            Parameters of the measure, see :func:`rule_quality`.

        Returns
        -------
        ndarray of float, shape (n_rules,)
        """
        values = rule_quality(
            measure, self.p, self.n, self.P, self.N, undefined=undefined, **parameters
        )
        return np.asarray(values, dtype=np.float64)

    def p_values(self, correction: str | None = None, *, untested: float = np.nan) -> Floats:
        """Compute the p-value of every rule.

        Parameters
        ----------
        correction : str, optional
            Correction for multiple tests, see :func:`skescore.metrics.adjust_p_values`.
        untested : float, default=NaN
            Regression: raw p-value of a rule that cannot be tested because it covers at most one
            row or all labels are equal. NaN excludes it from the correction; RuleKit uses 0.0.

        Returns
        -------
        ndarray of float, shape (n_rules,)
            Classification: one-sided Fisher test, the probability that a random rule of this size
            covers at least as many positive rows; NaN if all weights add up to less than a row.
            Regression: lower tail of the chi-square test of variance, the probability that random
            labels are at least as close together.
        """
        if self.std is None or self.label_std is None:
            # Fisher's test needs at least one whole row, which small weights may not add up to.
            is_tested = np.floor(self.P * (1 + 1e-9)) + np.floor(self.N * (1 + 1e-9)) > 0
            raw: Any = np.full(len(self.p), np.nan)
            counts = (array[is_tested] for array in (self.p, self.n, self.P, self.N))
            raw[is_tested] = fisher_p_value(*counts)
        else:
            # The labels of a single row have no deviation, so no rule can be tested.
            expected = np.nan_to_num(self.label_std, nan=0.0)
            std = np.nan_to_num(self.std, nan=0.0)
            raw = variance_p_value(expected, std, self.covered, undefined=untested)
        if correction is not None:
            return adjust_p_values(raw, correction)
        return np.asarray(raw, dtype=np.float64)

    def significant(
        self,
        alpha: float = 0.05,
        correction: str | None = "fdr_bh",
        *,
        untested: float = np.nan,
    ) -> Flags:
        """Return flags of the rules that are significant.

        Parameters
        ----------
        alpha : float, default=0.05
            Significance level, between 0 and 1.
        correction : str or None, default="fdr_bh"
            See :meth:`p_values`. :func:`skescore.metrics.significant_fraction` describes what each
            correction controls.
        untested : float, default=NaN
            See :meth:`p_values`; NaN is never significant.

        Returns
        -------
        ndarray of bool, shape (n_rules,)
        """
        return significant(self.p_values(untested=untested), alpha, correction)


def confusion(
    ruleset: RuleSet,
    X: Any,
    y: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    *,
    assigned: bool = False,
) -> RuleConfusion:
    r"""Count the positive and negative rows that each rule covers, and those in total.

    Use it to judge each rule by itself: all measures of rules are computed from these counts.

    Parameters
    ----------
    ruleset : RuleSet
        Rules to evaluate.
    X : array-like or DataFrame of shape (n_rows, n_features), or RuleCounts
        Rows, at least one; or counts of rows, which include labels and weights.
    y : array-like of shape (n_rows,), optional
        Labels of the rows: the truth, or the predictions of a black box. A label that is no class
        of the rules makes a row negative for every rule.
    sample_weight : array-like of shape (n_rows,), optional
        Weight of each row, zero or positive; a row of weight 2 counts as two rows.
    assigned : bool, default=False
        False counts all rows that satisfy a rule's conditions, whether or not other rules cover
        them. True counts the rows that are assigned to it, which matters for ordered rule sets, in
        which later rules mean "else".

    Returns
    -------
    RuleConfusion

    Raises
    ------
    ValueError
        If there are no rows, the labels do not fit the rows or the rule set, weights are negative,
        not finite, all zero or not one per row, or `assigned` is set for rules that predict
        together (``RuleSet.voting``).

    Notes
    -----
    In classification, the rows of the rule's class are positive. In regression, with the output
    :math:`v` and the population standard deviation :math:`s` of the labels of covered rows, rows
    with :math:`v - s \le y \le v + s` are positive, up to rounding. A linear output is evaluated on
    each row, but :math:`s` remains the deviation of the labels, so the counts show how much better
    than a constant the output fits. A row without a value of the output is negative. A rule that
    covers no row has no standard deviation and no positive rows: :math:`P = 0`.

    References
    ----------
    A. Gudyś, M. Sikora, Ł. Wróbel: RuleKit: a comprehensive suite for rule-based learning.
    Knowledge-Based Systems 194, 2020, doi:10.1016/j.knosys.2020.105480. Positive and negative
    examples of rules.

    Examples
    --------
    >>> from skescore.rules import Interval, Rule, RuleSet
    >>> rules = RuleSet(
    ...     [Rule([Interval(0, upper=2)], "low"), Rule([Interval(0, lower=1)], "high")],
    ...     ["length"], task="classification",
    ... )
    >>> X, y = [[0.5], [1.5], [2.5], [3.5]], ["low", "low", "high", "low"]
    >>> counts = confusion(rules, X, y)
    >>> counts.p.tolist(), counts.n.tolist(), counts.P.tolist(), counts.N.tolist()
    ([2.0, 1.0], [0.0, 2.0], [3.0, 1.0], [1.0, 3.0])
    >>> confusion(rules, X, y, assigned=True).n.tolist()
    [0.0, 1.0]
    """
    if isinstance(X, RuleCounts):
        return _of_counts(ruleset, X, assigned)
    if y is None:
        raise ValueError("y must hold a label per row, but it is None; pass y.")
    tally = Tally(ruleset, X, sample_weight, assigned=assigned)
    if ruleset.classes is None:
        return tally.regression(y)
    return tally.classification(class_codes(ruleset, y, len(tally.table)))


def _of_counts(ruleset: RuleSet, counts: RuleCounts, assigned: bool) -> RuleConfusion:
    """Build confusion counts from counts of rows."""
    if assigned:
        ruleset.check_one_rule_per_row("assigned=True")
    counts.check(ruleset)
    kind = int(assigned)
    if counts.classes is not None:
        class_counts, totals = counts.classes.by_rule[kind], counts.classes.predicted.sum(axis=1)
        outputs = ruleset.conclusions.outputs.astype(np.intp)
        p, P = class_counts[outputs, np.arange(len(ruleset))], totals[outputs]
        # A difference instead of a sum could leave rounding errors for absent rows.
        other_classes = [np.delete(np.arange(len(totals)), k) for k in outputs]
        n = np.array([class_counts[rows, i].sum() for i, rows in enumerate(other_classes)])
        N = np.array([totals[rows].sum() for rows in other_classes])
        return _confusion(p, n, P, N, counts.alone)
    numbers = counts.numbers
    assert numbers is not None
    if numbers.moments is None or numbers.within is None:
        raise ValueError(
            "Positive rows of a regression depend on the standard deviation of all labels of a "
            "rule, which counts of separate batches do not include. Count all rows at once with "
            "count_rows, or with count_source(..., rule_measures=True)."
        )
    p, n, P, N = numbers.within[kind]
    mean, std = numbers.moments[kind]
    return _confusion(p, n, P, N, counts.alone, mean, std, numbers.label_std)


def _confusion(
    p: Floats, n: Floats, P: Floats, N: Floats, unique: Floats, *label_columns: Any
) -> RuleConfusion:
    # Sums of the same weights in another order may differ in their last bits.
    p, n = np.minimum(p, P), np.minimum(n, N)
    return RuleConfusion(p, n, P, N, np.minimum(unique, p + n), *label_columns)


class Tally:
    """Counter of the rows of one table; see :func:`confusion` for the counts."""

    def __init__(
        self, ruleset: RuleSet, X: Any, sample_weight: ArrayLike | None, *, assigned: bool = False
    ) -> None:
        self.ruleset, self.table = ruleset, RowTable.of(X, ruleset.feature_names)
        self.weights = checked_weights(sample_weight, len(self.table))
        self._assigned = ruleset.assign(self.table) if assigned else None
        self._unique = np.zeros(len(ruleset))

    def _sums(self, flags: Flags, weights: Floats | None) -> Floats:
        """Sum the weights of the rows with each flag, shape (n_rules,)."""
        if weights is None:  # far fewer than 2**24 rows, so single precision is exact
            ones = np.ones(len(flags), dtype=np.float32)
            return np.asarray(ones @ flags.astype(np.float32), dtype=np.float64)
        return np.asarray(weights @ flags)

    def _batches(self) -> Iterator[tuple[slice, Flags, Floats | None, Flags]]:
        """Iterate over batches: their rows, matches, weights, and rows that match one rule only."""
        n_rules = len(self.ruleset)
        size = max(1, _NUMBERS // max(1, n_rules))
        ones = np.ones(n_rules, dtype=np.float32)
        for rows, matches in self.ruleset.iter_match(self.table):
            for begin in range(0, len(matches), size):
                flags = matches[begin : begin + size]
                part = slice(rows.start + begin, rows.start + begin + len(flags))
                alone = flags.astype(np.float32) @ ones == 1
                if self._assigned is not None:
                    flags = self._assigned[part, None] == np.arange(n_rules)
                yield part, flags, None if self.weights is None else self.weights[part], alone

    def _add_unique(self, flags: Flags, weights: Floats | None, alone: Flags) -> None:
        self._unique += self._sums(flags[alone], None if weights is None else weights[alone])

    def classification(
        self, codes: NDArray[np.intp], watch: Callable[[slice, Flags], None] | None = None
    ) -> RuleConfusion:
        """Count rows with classes; `watch` receives the rows and the rule flags of each batch."""
        outputs = self.ruleset.conclusions.outputs.astype(np.intp)
        p, n = np.zeros((2, len(outputs)))
        for rows, matches, weights, alone in self._batches():
            self._add_unique(matches, weights, alone)
            if watch is not None:
                watch(rows, matches)
            positive = codes[rows, None] == outputs
            hits = self._sums(matches & positive, weights)
            p += hits
            if weights is None:
                n += self._sums(matches, None) - hits
            else:  # A difference of sums could leave rounding errors for absent rows.
                n += self._sums(matches & ~positive, weights)
        # The last code represents labels that are not classes.
        n_classes = len(self.ruleset.classes or ())
        label_codes = np.where(codes < 0, n_classes, codes)
        totals = np.bincount(label_codes, self.weights, n_classes + 1).astype(np.float64)
        # Sum the other classes; a difference from the total would leave rounding errors.
        other_totals = np.array([np.delete(totals, k).sum() for k in range(n_classes + 1)])
        return _confusion(p, n, totals[outputs], other_totals[outputs], self._unique)

    def regression(self, labels: ArrayLike) -> RuleConfusion:
        """Count rows with numeric labels."""
        y = finite_numbers("y", one_per_row(labels, len(self.table)))
        n_rules = len(self.ruleset)
        center = float(np.average(y, weights=self.weights))
        moments = _LabelMoments(n_rules, center)
        keep = len(y) * -(-n_rules // 8) <= _MAX_CACHED_BYTES
        cached_batches: list[tuple[slice, NDArray[np.uint8], Floats | None]] = []
        for rows, matches, weights, alone in self._batches():
            self._add_unique(matches, weights, alone)
            moments.add(matches, y[rows], weights)
            if keep:
                cached_batches.append((rows, np.packbits(matches, axis=1), weights))

        def repeat_batches() -> Iterator[tuple[slice, Flags, Floats | None]]:
            if not keep:
                return (batch[:3] for batch in self._batches())
            unpacked = (np.unpackbits(bits, axis=1, count=n_rules) for _, bits, _ in cached_batches)
            return (
                (r, h.view(bool), w) for (r, _, w), h in zip(cached_batches, unpacked, strict=True)
            )

        if len(moments.narrow):
            for rows, matches, weights in repeat_batches():
                moments.add_narrow(matches, y[rows], weights)
        mean, std = moments.result()
        p, n, P, N = np.zeros((4, n_rules))
        all_positive = self._count_positive(y, std)
        for rows, matches, weights in repeat_batches():
            positive = are_positive(self.ruleset, self.table, y[rows], std, rows)
            p += self._sums(matches & positive, weights)
            P += self._sums(positive, weights) if all_positive is None else 0.0
            if weights is not None:
                n += self._sums(matches & ~positive, weights)
                N += self._sums(~positive, weights)
        P = P if all_positive is None else all_positive
        if self.weights is None:
            n, N = moments.weight - p, len(y) - P
        return _confusion(p, n, P, N, self._unique, mean, std, _sample_std(y, self.weights, center))

    def _count_positive(self, y: Floats, std: Floats) -> Floats | None:
        """Count the positive labels of each rule by sorting; None with weights or linear rules."""
        if self.weights is not None or self.ruleset.conclusions.linear:
            return None
        (low, high), ordered = positive_range(self.ruleset, std), np.sort(y)
        count = np.searchsorted(ordered, high, "right") - np.searchsorted(ordered, low, "left")
        # NaN, the deviation of a rule without rows, would be sorted after all labels.
        return np.where(np.isnan(std), 0.0, count)


class _LabelMoments:
    """Means and standard deviations of labels per rule, from batches of rows.

    Sums of squares around a `center` near the labels are fast, but lose digits for rules whose
    labels lie close together and far from the center. Such `narrow` rules need a second pass.
    """

    def __init__(self, n_rules: int, center: float) -> None:
        self._center = center
        self._sums = np.zeros((3, n_rules))
        self._second_sums = np.zeros((2, 0))

    def add(self, matches: Flags, labels: Floats, weights: Floats | None) -> None:
        """Add a batch of rows."""
        deviations = labels - self._center
        factor = np.ones(len(labels)) if weights is None else weights
        numbers = matches.astype(np.float64)
        # One product per power: products of thin matrices are slow, especially with many threads.
        for total in self._sums:
            total += factor @ numbers
            factor = factor * deviations

    @property
    def weight(self) -> Floats:
        """Total weight of the rows of each rule."""
        return np.asarray(self._sums[0])

    @property
    def narrow(self) -> NDArray[np.intp]:
        """Indices of the rules that need a second pass for exact deviations."""
        weight, first, second = self._sums
        squares = second - first * (first / np.where(weight > 0, weight, 1.0))
        return np.flatnonzero((weight > 0) & (squares <= NARROW * second))

    def add_narrow(self, matches: Flags, labels: Floats, weights: Floats | None) -> None:
        """Add a batch of rows in the second pass, for narrow rules."""
        narrow = self.narrow
        if not self._second_sums.size:
            self._second_sums = np.zeros((2, len(narrow)))
        deviations = labels[:, None] - self._rough_mean()[narrow]
        factors = matches[:, narrow] * (1.0 if weights is None else weights[:, None])
        for total in self._second_sums:
            factors *= deviations
            total += factors.sum(axis=0)

    def _rough_mean(self) -> Floats:
        weight = np.where(self.weight > 0, self.weight, np.nan)
        return np.asarray(self._center + self._sums[1] / weight)

    def result(self) -> tuple[Floats, Floats]:
        """Return means and population standard deviations; NaN without rows."""
        weight = np.where(self.weight > 0, self.weight, np.nan)
        mean, squares = self._rough_mean(), self._sums[2] - self._sums[1] * (self._sums[1] / weight)
        if self._second_sums.size:
            narrow = self.narrow
            first, second = self._second_sums
            mean[narrow] += first / weight[narrow]
            squares[narrow] = second - first * (first / weight[narrow])
        std = np.sqrt(np.maximum(squares, 0.0) / weight)
        # Equal labels have deviation 0, no matter how their mean was rounded.
        return mean, np.where(std <= BORDER * np.abs(mean), 0.0, std)


def _sample_std(y: Floats, weights: Floats | None, center: float) -> float:
    """Compute the sample standard deviation (ddof 1) of all labels; NaN for a single row."""
    factors = np.ones(len(y)) if weights is None else weights
    total = factors.sum()
    if not total > 1:
        return np.nan
    std = float(np.sqrt(factors @ (y - center) ** 2 / (total - 1)))
    return 0.0 if std <= BORDER * abs(center) else std


def class_codes(ruleset: RuleSet, y: ArrayLike, n_rows: int) -> NDArray[np.intp]:
    """Return the indices of labels among the classes of a rule set, -1 for others."""
    label_codes, labels = pd.factorize(one_per_row(y, n_rows))
    if label_codes.min() < 0:
        raise ValueError(
            f"y must hold a label in every row, but row {int(label_codes.argmin())} has none. "
            "Drop such rows first."
        )
    classes = {label: code for code, label in enumerate(ruleset.classes or ())}
    codes = np.array([classes.get(label, -1) for label in labels.tolist()], dtype=np.intp)
    if len(ruleset) and codes.max() < 0:
        raise ValueError(
            f"y must hold classes of the rules, {list(classes)}, but it holds "
            f"{labels.tolist()[:5]!r}. Pass labels of the same type, such as strings."
        )
    return np.asarray(codes[label_codes])
