"""Sums over rows from which every score and report of a rule set follows.

Scores depend only on the label of a row and the rules that cover it. So rows can be summed in a
database or batch by batch, and only the sums are transferred.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Protocol

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from skescore._io import json_of
from skescore._validation import (
    finite_numbers,
    one_dimension,
    python_value,
    row_weights,
)
from skescore.metrics._prediction import NO_RULE, LabelSums
from skescore.rules import RowTable, RuleSet
from skescore.rules._prediction import class_sums

__all__ = [
    "BORDER",
    "NARROW",
    "ClassCounts",
    "CountingPasses",
    "Groups",
    "NumberSums",
    "RuleCounts",
    "are_positive",
    "checked_weights",
    "complete",
    "count_rows",
    "one_per_row",
    "positive_range",
]

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

JSON_FORMAT, JSON_VERSION = "skescore.RuleCounts", 1
#: Relative tolerance that counts labels on the border of a closed interval as inside.
BORDER = 32 * np.finfo(np.float64).eps
#: Share of the sum of squares below which a difference of squares loses too many digits.
NARROW = 1e-3
#: Maximum number of passes that improve the center; enough for labels of any size.
_CENTERS = 3


class _Sums:
    """Base of immutable dataclasses of arrays."""

    def __post_init__(self) -> None:
        for sum_field in fields(self):  # type: ignore[arg-type]
            value = getattr(self, sum_field.name)
            if isinstance(value, np.ndarray):
                value.flags.writeable = False


@dataclass(frozen=True, eq=False)
class ClassCounts(_Sums):
    """Numbers of rows by label, as sums of weights.

    Attributes
    ----------
    labels : tuple
        The classes of the rules, then other labels that occur.
    by_rule : ndarray of shape (1 or 2, n_labels, n_rules)
        Rows that each rule covers, and the rows assigned to it unless rules vote.
    predicted : ndarray of shape (n_labels, n_classes + 1)
        Rows by predicted class; the last column counts rows that no rule covers.
    torn : ndarray of shape (2,)
        Rows that rules of different classes cover, and how many of them are predicted wrongly.
    """

    labels: tuple[Any, ...]
    by_rule: Floats
    predicted: Floats
    torn: Floats

    def __add__(self, other: ClassCounts) -> ClassCounts:
        labels = (*self.labels, *(x for x in other.labels if x not in set(self.labels)))
        indices = [labels.index(label) for label in other.labels]
        by_rule = np.zeros((len(self.by_rule), len(labels), self.by_rule.shape[2]))
        predicted = np.zeros((len(labels), self.predicted.shape[1]))
        by_rule[:, : len(self.labels)] += self.by_rule
        by_rule[:, indices] += other.by_rule
        predicted[: len(self.labels)] += self.predicted
        predicted[indices] += other.predicted
        return ClassCounts(labels, by_rule, predicted, self.torn + other.torn)

    def cells(self, classes: Sequence[Any]) -> tuple[NDArray[Any], NDArray[Any], Flags, Floats]:
        """Return true and predicted labels, coverage and weights, once per combination."""
        label, predicted = np.nonzero(self.predicted)
        labels = np.empty(len(self.labels), dtype=object)
        labels[:] = self.labels
        outputs = np.empty(len(classes) + 1, dtype=object)
        outputs[:] = [*classes, classes[0] if classes else None]
        covered = predicted < len(classes)
        return labels[label], outputs[predicted], covered, self.predicted[label, predicted]


@dataclass(frozen=True, eq=False)
class NumberSums(_Sums):
    """Sums over numeric labels.

    Attributes
    ----------
    center : float
        Number from which deviations are measured.
    default : float
        Prediction of uncovered rows; NaN if none is set yet.
    rows : ndarray of shape (2, 5)
        For covered and uncovered rows: sums of weights, deviations, squared deviations, and
        absolute and squared errors of the prediction.
    ends : ndarray of shape (2, 2)
        Smallest and largest labels of covered and uncovered rows; NaN without rows.
    by_rule : ndarray of shape (1 or 2, 3, n_rules)
        Sums of weights, deviations and squared deviations of the rows that each rule covers, and
        of the rows assigned to it unless rules vote.
    rule_ends : ndarray of shape (1 or 2, 2, n_rules)
        Smallest and largest labels of the same rows; NaN without rows.
    moments : ndarray of shape (1 or 2, 2, n_rules) or None
        Means and population standard deviations of the same labels, once all rows were read.
    within : ndarray of shape (1 or 2, 4, n_rules) or None
        Positive and negative rows of each rule, and of all rows. The labels of positive rows lie
        within one standard deviation of the rule's prediction.
    """

    center: float
    default: float
    rows: Floats
    ends: Floats
    by_rule: Floats
    rule_ends: Floats
    moments: Floats | None = None
    within: Floats | None = None

    def __add__(self, other: NumberSums) -> NumberSums:
        if not _same(self.default, other.default):
            raise ValueError(
                "Sums of errors add up only if uncovered rows have the same prediction, got "
                f"{self.default!r} and {other.default!r}. Give the rule set a fallback first."
            )
        other = other.around(self.center)
        same = (
            self.moments is not None
            and other.moments is not None
            and (np.array_equal(self.moments, other.moments, equal_nan=True))
        )
        within = None
        if same and self.within is not None and other.within is not None:
            within = self.within + other.within
        return NumberSums(
            self.center,
            self.default,
            self.rows + other.rows,
            _merge_ends(self.ends, other.ends),
            self.by_rule + other.by_rule,
            _merge_ends(self.rule_ends, other.rule_ends),
            self.moments if same else None,
            within,
        )

    def around(self, center: float) -> NumberSums:
        """Return the sums with deviations from another number."""
        if center == self.center:
            return self
        return replace(
            self,
            center=center,
            rows=_recenter(self.rows, self.center - center, axis=1),
            by_rule=_recenter(self.by_rule, self.center - center, axis=1),
        )

    @property
    def weight(self) -> float:
        """Total weight of all rows."""
        return float(self.rows[:, 0].sum())

    @property
    def mean(self) -> float:
        """Mean of all labels."""
        return self.center + float(self.rows[:, 1].sum()) / self.weight

    @property
    def label_std(self) -> float:
        """Sample standard deviation (ddof 1) of all labels; NaN for a single row."""
        weight, deviation, squares = self.rows[:, :3].sum(axis=0)
        if not weight > 1:
            return math.nan
        if _are_equal(self.ends):
            return 0.0
        std = math.sqrt(max(squares - deviation * (deviation / weight), 0.0) / (weight - 1))
        return 0.0 if std <= BORDER * abs(self.mean) else std

    def is_imprecise(self, part: slice) -> bool:
        """Return whether the center is too far from the labels in `part` for exact deviations."""
        weight, deviation, squares = self.rows[part, :3].sum(axis=0)
        if not weight or _are_equal(self.ends[part]):
            return False
        return bool(squares - deviation * (deviation / weight) <= NARROW * squares)

    @property
    def better_center(self) -> float:
        """Mean of the labels of covered rows, or of all rows if none is covered."""
        weight, deviation = self.rows[0, :2].tolist()
        return self.center + deviation / weight if weight else self.mean

    def label_sums(self, uncovered: str, n_rows: tuple[int, int]) -> LabelSums:
        """Return the sums for metrics, over the rows that the option `uncovered` includes."""
        parts = [0] if uncovered == "ignore" or not self.rows[1, 0] else [0, 1]
        weight, deviation, squares, absolute, squared = self.rows[parts].sum(axis=0).tolist()
        return LabelSums(
            sum(n_rows[part] for part in parts),
            weight,
            deviation,
            squares,
            absolute,
            squared,
            _are_equal(self.ends[parts]),
        )

    def means(self) -> Floats:
        """Compute the mean label of each rule, shape (1 or 2, n_rules); NaN without rows."""
        weight, deviation, _ = np.moveaxis(self.by_rule, 1, 0)
        return np.asarray(self.center + deviation / np.where(weight > 0, weight, np.nan))

    def narrow(self) -> Flags:
        """Return flags of the rules whose deviations must be summed around their own means."""
        weight, deviation, squares = np.moveaxis(self.by_rule, 1, 0)
        squares_from_mean = squares - deviation * (deviation / np.where(weight > 0, weight, 1.0))
        equal = self.rule_ends[:, 0] == self.rule_ends[:, 1]
        return np.asarray((weight > 0) & (squares_from_mean <= NARROW * squares) & ~equal)

    def with_moments(self, deviations: Floats | None) -> NumberSums:
        """Return the sums with the mean and standard deviation of each rule's labels.

        `deviations` are the sums of deviations and squared deviations from the mean of each narrow
        rule; None if no rule is narrow.
        """
        weight, deviation, squares = np.moveaxis(self.by_rule, 1, 0)
        positive_weight = np.where(weight > 0, weight, np.nan)
        mean, squares_from_mean = self.means(), squares - deviation * (deviation / positive_weight)
        if deviations is not None:
            is_narrow = self.narrow()
            first, second = np.moveaxis(deviations, 1, 0)
            mean = np.where(is_narrow, mean + first / positive_weight, mean)
            squares_from_mean = np.where(
                is_narrow, second - first * (first / positive_weight), squares_from_mean
            )
        std = np.sqrt(np.maximum(squares_from_mean, 0.0) / positive_weight)
        equal = self.rule_ends[:, 0] == self.rule_ends[:, 1]
        mean = np.where(equal, self.rule_ends[:, 0], mean)
        # Equal labels have deviation 0, no matter how their mean was rounded.
        std = np.where(equal | (std <= BORDER * np.abs(mean)), np.where(weight > 0, 0, np.nan), std)
        return replace(self, moments=np.stack([mean, std], axis=1), within=None)


def _same(a: float, b: float) -> bool:
    return a == b or (a != a and b != b)


def _recenter(sums: Floats, shift: float, axis: int) -> Floats:
    """Update sums of weights, deviations, squares and others for deviations plus `shift`."""
    moved = np.moveaxis(sums.copy(), axis, 0)
    weight, deviation = moved[0].copy(), moved[1].copy()
    moved[1] += weight * shift
    moved[2] += 2 * shift * deviation + weight * shift**2
    return np.moveaxis(moved, 0, axis)


def _merge_ends(ends: Floats, other_ends: Floats) -> Floats:
    """Combine two arrays of smallest and largest values, stored along the second axis."""
    low, high = np.fmin(ends[:, 0], other_ends[:, 0]), np.fmax(ends[:, 1], other_ends[:, 1])
    return np.stack([low, high], axis=1)


def _are_equal(ends: Floats) -> bool:
    """Return whether all labels of some groups of rows are equal, given the ends of each group."""
    return bool(np.fmin.reduce(ends[:, 0]) == np.fmax.reduce(ends[:, 1]))


@dataclass(frozen=True, eq=False)
class RuleCounts(_Sums):
    """Sums over rows that replace the rows in every score and report of a rule set.

    Pass it instead of the rows: ``ice(rules, counts)``, ``confusion(rules, counts)``,
    ``rule_report(rules, counts)``, ``characteristics(rules, counts)``. Counts of parts of the rows
    add up to the counts of all rows. Created by :func:`count_rows`, and for databases, files and
    batches by :func:`skescore.sources.count_source`.

    Attributes
    ----------
    rules : str
        Digest that identifies the rules.
    n_rows : tuple of int
        Covered and uncovered rows with a positive weight.
    alone : ndarray of shape (n_rules,)
        Rows that only this rule covers.
    classes : ClassCounts or None
        For classification: rows by label.
    numbers : NumberSums or None
        For regression: sums over the labels. The positive rows of a rule depend on the standard
        deviation of all its labels, so measures of single rules need counts of all rows at once,
        not a sum of counts of parts.

    Examples
    --------
    >>> from skescore.metrics import confusion, count_rows
    >>> from skescore.rules import Interval, Rule, RuleSet
    >>> rules = RuleSet(
    ...     [Rule([Interval(0, upper=2)], "low"), Rule([Interval(0, lower=1)], "high")],
    ...     ["length"], task="classification",
    ... )
    >>> monday = count_rows(rules, [[0.5], [1.5]], ["low", "low"])
    >>> tuesday = count_rows(rules, [[2.5], [3.5]], ["high", "low"])
    >>> confusion(rules, monday + tuesday).p.tolist(), (monday + tuesday).n_rows
    ([2.0, 1.0], (4, 0))
    """

    rules: str
    n_rows: tuple[int, int]
    alone: Floats
    classes: ClassCounts | None = None
    numbers: NumberSums | None = None

    def __add__(self, other: RuleCounts) -> RuleCounts:
        if not isinstance(other, RuleCounts):
            return NotImplemented
        if self.rules != other.rules:
            raise ValueError(
                "Counts can be added only if they belong to the same rules, got counts of two "
                "rule sets. Count all rows by the same rules."
            )
        classes, numbers = self.classes, self.numbers
        if classes is not None and other.classes is not None:
            classes = classes + other.classes
        if numbers is not None and other.numbers is not None:
            numbers = numbers + other.numbers
        rows = self.n_rows[0] + other.n_rows[0], self.n_rows[1] + other.n_rows[1]
        return RuleCounts(self.rules, rows, self.alone + other.alone, classes, numbers)

    def __radd__(self, other: Any) -> RuleCounts:
        if isinstance(other, int) and other == 0:  # sum() starts from 0
            return self
        return NotImplemented

    @property
    def weights(self) -> tuple[float, float]:
        """Total weights of the covered and of the uncovered rows."""
        if self.classes is not None:
            columns = self.classes.predicted.sum(axis=0)
            return float(columns[:-1].sum()), float(columns[-1])
        assert self.numbers is not None
        return float(self.numbers.rows[0, 0]), float(self.numbers.rows[1, 0])

    @property
    def coverage(self) -> float:
        """Share of the rows that at least one rule covers, by weight."""
        covered, uncovered = self.weights
        return covered / (covered + uncovered)

    @property
    def overlap(self) -> float:
        """Share of the rows that two or more rules cover, by weight."""
        covered, uncovered = self.weights
        return max(covered - float(self.alone.sum()), 0.0) / (covered + uncovered)

    def check(self, ruleset: RuleSet) -> None:
        """Raise a ValueError unless the counts fit the rules and contain a class of the rules."""
        if self.rules != rules_digest(ruleset):
            raise ValueError(
                f"X must be counts of the rules that are scored, but counts other rules ({self}). "
                "Count the rows by these rules: count_rows(rules, X, y)."
            )
        if self.classes is not None and len(ruleset):
            n_classes = len(ruleset.classes or ())
            if not self.classes.predicted[:n_classes].any():
                labels = ", ".join(sorted(map(repr, self.classes.labels[n_classes:])))
                raise ValueError(
                    f"None of the labels of y ({labels}) is a class of the rules "
                    f"({', '.join(map(repr, (ruleset.classes or ())[:5]))}). Check whether y is "
                    "encoded as for the extraction."
                )

    def __repr__(self) -> str:
        covered, uncovered = self.n_rows
        return f"RuleCounts({len(self.alone)} rules, {covered + uncovered} rows)"

    def to_json(self) -> str:
        """Return the counts as JSON, without loss; :meth:`from_json` reads it."""
        return json.dumps({"format": JSON_FORMAT, "version": JSON_VERSION, **_to_plain(self)})

    @classmethod
    def from_json(cls, text: str) -> RuleCounts:
        """Read the JSON of :meth:`to_json` without running code.

        Raises
        ------
        ValueError
            If the text is not JSON of counts.
        """
        try:
            data = json_of(text, finite=True)
            if data.pop("format") != JSON_FORMAT or data.pop("version") != JSON_VERSION:
                raise ValueError("its format or version is different")
            for name, kind in (("classes", ClassCounts), ("numbers", NumberSums)):
                if data[name] is not None:
                    data[name] = _read(kind, data[name])
            counts = _read(cls, data)
            return replace(counts, n_rows=(int(counts.n_rows[0]), int(counts.n_rows[1])))
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            raise ValueError(
                f"The text is not JSON written by RuleCounts.to_json: {error}. It begins with "
                f"{text[:40]!r}."
            ) from error


def _to_plain(value: Any) -> Any:
    if isinstance(value, _Sums):
        return {item.name: _to_plain(getattr(value, item.name)) for item in fields(value)}  # type: ignore[arg-type]
    if isinstance(value, np.ndarray):
        return {"shape": value.shape, "values": list(map(_to_plain, value.ravel().tolist()))}
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": repr(value)}
    return value


def _read(kind: type, data: dict[str, Any]) -> Any:
    return kind(**{item.name: _parse_value(data[item.name]) for item in fields(kind)})


def _parse_value(value: Any) -> Any:
    if isinstance(value, dict) and "shape" in value:
        values = [_parse_value(item) for item in value["values"]]
        return np.array(values, dtype=np.float64).reshape(value["shape"])
    if isinstance(value, dict):
        return float(value["float"])
    return tuple(value) if isinstance(value, list) else value


def rules_digest(ruleset: RuleSet) -> str:
    """Compute a digest of the rules without their domain and fallback."""
    bare = ruleset.replace(domain=None, fallback=None)
    return hashlib.sha256(bare.to_json(indent=None).encode()).hexdigest()[:16]


class CountingPasses(Protocol):
    """Rows in any storage that can be summed in passes over all rows."""

    def center(self) -> float:
        """Return a number near the labels."""
        ...

    def first(self, default: float, center: float) -> RuleCounts:
        """Count rows, or sum the deviations of their labels from a center."""
        ...

    def deviations(self, means: Floats) -> Floats:
        """Sum deviations and squared deviations from the means of rules: (1 or 2, 2, n_rules)."""
        ...

    def within(self, stds: Floats) -> Floats:
        """Count rows by whether labels are near the predictions of rules: (1 or 2, 4, n_rules)."""
        ...


def complete(ruleset: RuleSet, passes: CountingPasses, *, rule_measures: bool = True) -> RuleCounts:
    """Return the counts after as many passes over the rows as needed; classes need one."""
    if ruleset.classes is not None:
        return passes.first(math.nan, 0.0)
    fallback = ruleset.fallback
    default = math.nan if fallback is None else float(fallback.output)
    counts = passes.first(default, passes.center())
    numbers = _numbers_of(counts)
    for attempt in range(_CENTERS):  # a distant center leaves few significant digits
        if not numbers.is_imprecise(slice(1)) and (attempt or not numbers.is_imprecise(slice(2))):
            break
        counts = passes.first(default, numbers.better_center)
        numbers = _numbers_of(counts)
    if math.isnan(default) and counts.n_rows[1] > 0:
        counts = passes.first(numbers.mean, numbers.better_center)
        numbers = _numbers_of(counts)
    if not rule_measures:
        return counts
    deviations = passes.deviations(numbers.means()) if numbers.narrow().any() else None
    numbers = numbers.with_moments(deviations)
    assert numbers.moments is not None
    numbers = replace(numbers, within=passes.within(numbers.moments[:, 1]))
    return replace(counts, numbers=numbers)


def _numbers_of(counts: RuleCounts) -> NumberSums:
    assert counts.numbers is not None
    return counts.numbers


def count_rows(
    ruleset: RuleSet, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None
) -> RuleCounts:
    """Sum up rows for the scores and reports of a rule set.

    Use it if rows come in parts, or if the same rows are scored repeatedly.

    Parameters
    ----------
    ruleset : RuleSet
        The rules.
    X : array-like or DataFrame of shape (n_rows, n_features)
        The rows, at least one.
    y : array-like of shape (n_rows,)
        Labels of the rows: the truth, or the predictions of a black box.
    sample_weight : array-like of shape (n_rows,), optional
        Weight of each row, zero or positive; a row of weight 2 counts as two rows.

    Returns
    -------
    RuleCounts
        Pass it instead of X and y to scorers, :func:`confusion`, :func:`rule_report` and
        :func:`characteristics`.

    Raises
    ------
    ValueError
        If there are no rows, a label is missing, or weights do not fit.

    See Also
    --------
    skescore.sources.count_source : The same for databases, files and batches.

    Examples
    --------
    >>> from skescore.metrics import characteristics, count_rows
    >>> from skescore.rules import Interval, Rule, RuleSet
    >>> rules = RuleSet(
    ...     [Rule([Interval(0, upper=2)], 1.0), Rule([Interval(0, lower=1)], 3.0)],
    ...     ["length"], task="regression",
    ... )
    >>> counts = count_rows(rules, [[0.5], [1.5], [2.5], [3.5]], [1.0, 1.0, 3.0, 2.0])
    >>> characteristics(rules, counts)["rules_per_example"]
    1.25
    """
    return complete(ruleset, RowPasses(ruleset, X, y, sample_weight))


class RowPasses:
    """Rows in memory that :func:`complete` sums in passes."""

    def __init__(
        self, ruleset: RuleSet, X: Any, y: ArrayLike, sample_weight: ArrayLike | None
    ) -> None:
        self.ruleset, self.table = ruleset, RowTable.of(X, ruleset.feature_names)
        labels = one_per_row(y, len(self.table))
        self.weights = checked_weights(sample_weight, len(self.table))
        if ruleset.classes is None:
            self.y: NDArray[Any] = finite_numbers("y", labels)
        else:
            codes, labels_in_order = pd.factorize(labels)
            if codes.min() < 0:
                raise ValueError(
                    f"y must hold a label in every row, but row {int(codes.argmin())} has none. "
                    "Drop such rows first."
                )
            self.y, self._labels = (
                codes,
                [python_value(label) for label in labels_in_order.tolist()],
            )

    def center(self) -> float:
        return float(np.average(self.y, weights=self.weights))

    def _batches(self) -> Iterator[tuple[slice, Flags, Floats]]:
        """Iterate over batches: their rows, matches and weights."""
        for rows, matches in self.ruleset.iter_match(self.table):
            weights = np.ones(len(matches)) if self.weights is None else self.weights[rows]
            yield rows, matches, weights

    def first(self, default: float, center: float) -> RuleCounts:
        groups = Groups(self.ruleset)
        predictions = self._predictions()
        for rows, matches, weights in self._batches():
            y, predicted = self.y[rows], None if predictions is None else predictions[rows]
            if self.ruleset.classes is not None:
                groups.add_classes(matches, self._labels, y, weights, weights > 0, predicted)
                continue
            assert predicted is not None
            covered = matches.any(axis=1)
            deviation = y - center
            with np.errstate(over="ignore", invalid="ignore"):
                error = y - np.where(covered, predicted, default)
                sums = weights * [np.ones(len(y)), deviation, deviation**2, np.abs(error), error**2]
            has_weight = weights > 0  # Rows of weight 0 are ignored.
            ends = np.where(has_weight, y, np.nan)
            groups.add_numbers(
                matches[has_weight],
                sums[:, has_weight],
                np.stack([ends, ends])[:, has_weight],
                has_weight[has_weight],
            )
        return groups.result(default, center)

    def _predictions(self) -> NDArray[Any] | None:
        """Return predicted numbers, or class codes if rules vote; None for other classification."""
        ruleset = self.ruleset
        if ruleset.classes is None:
            total_ruleset = ruleset if ruleset.fallback else ruleset.with_arbitrary_fallback()
            return np.asarray(total_ruleset.predict(self.table), dtype=np.float64)
        if ruleset.voting is None:
            return None
        return np.asarray(class_sums(ruleset, self.table)[0].argmax(axis=1))

    def _counted_batches(self) -> Iterator[tuple[slice, list[Flags], Floats]]:
        """Iterate over batches: their rows, counted matches (covered and assigned) and weights."""
        for rows, matches, weights in self._batches():
            yield rows, counted_matches(self.ruleset, matches), weights

    def deviations(self, means: Floats) -> Floats:
        total = np.zeros((len(means), 2, means.shape[1]))
        for rows, kinds, weights in self._counted_batches():
            for kind, flags in enumerate(kinds):
                for rule, mean in enumerate(means[kind].tolist()):
                    is_covered = flags[:, rule]
                    deviation = self.y[rows][is_covered] - mean
                    total[kind, :, rule] += weights[is_covered] @ np.stack(
                        [deviation, deviation**2], axis=1
                    )
        return total

    def within(self, stds: Floats) -> Floats:
        total = np.zeros((len(stds), 4, stds.shape[1]))
        for rows, kinds, weights in self._counted_batches():
            for kind, flags in enumerate(kinds):
                is_positive = are_positive(self.ruleset, self.table, self.y[rows], stds[kind], rows)
                pairs = (flags & is_positive, flags & ~is_positive, is_positive, ~is_positive)
                total[kind] += [weights @ pair for pair in pairs]
        return total


def are_positive(
    ruleset: RuleSet, table: RowTable, labels: Floats, std: Floats, rows: slice
) -> Flags:
    """Return which labels lie within a standard deviation of each rule's prediction."""
    low, high = positive_range(ruleset, std)
    result = (labels[:, None] >= low) & (labels[:, None] <= high)
    for index, function in ruleset.conclusions.linear.items():
        predicted = function.evaluate(lambda j: table.numbers(j, rows), len(labels))
        noise = BORDER * (np.abs(predicted) + std[index])
        result[:, index] = np.abs(labels - predicted) <= std[index] + noise
    return np.asarray(result)


def positive_range(ruleset: RuleSet, std: Floats) -> tuple[Floats, Floats]:
    """Return the bounds of the positive labels of each constant rule."""
    outputs = ruleset.conclusions.outputs
    distance = std + BORDER * (np.abs(outputs) + std)
    return outputs - distance, outputs + distance


def counted_matches(ruleset: RuleSet, matches: Flags) -> list[Flags]:
    """Return the covered rows of each rule, and the assigned rows unless rules vote."""
    if ruleset.voting is not None:
        return [matches]
    return [matches, assign_matches(ruleset, matches)[:, None] == np.arange(len(ruleset))]


def assign_matches(ruleset: RuleSet, matches: Flags) -> NDArray[np.intp]:
    """Return the index of the matching rule that predicts each row; -1 for uncovered rows."""
    if not len(ruleset):
        return np.full(len(matches), NO_RULE)
    order = ruleset.assignment_order
    return np.where(matches.any(axis=1), order[matches[:, order].argmax(axis=1)], NO_RULE)


class Groups:
    """Accumulator for groups of rows that match the same rules; a group may be a single row."""

    def __init__(self, ruleset: RuleSet) -> None:
        self._ruleset = ruleset
        n_rules = len(ruleset)
        n_kinds = 1 if ruleset.voting else 2
        self._n_rows, self._alone = np.zeros(2, dtype=np.int64), np.zeros(n_rules)
        self._classes: ClassCounts | None = None
        self._rows, self._ends = np.zeros((2, 5)), np.full((2, 2), np.nan)
        self._by_rule = np.zeros((n_kinds, 3, n_rules))
        self._rule_ends = np.full((n_kinds, 2, n_rules), np.nan)
        outputs = ruleset.conclusions.outputs
        self._factors = np.stack([np.ones(n_rules), outputs, outputs**2]).astype(np.float64)

    def _add_rows(self, matches: Flags, weights: Floats, n_rows: NDArray[Any]) -> Flags:
        """Count covered and uncovered rows, and return flags of the covered groups."""
        n_matches = matches.sum(axis=1)
        alone = n_matches == 1
        self._alone += weights[alone] @ matches[alone]
        covered = np.asarray(n_matches > 0)
        self._n_rows += [int(n_rows[covered].sum()), int(n_rows[~covered].sum())]
        return covered

    def add_classes(
        self,
        matches: Flags,
        labels: Sequence[Any],
        codes: NDArray[np.intp],
        weights: Floats,
        n_rows: NDArray[Any],
        predicted: NDArray[Any] | None = None,
    ) -> None:
        """Add groups of rows with equal labels; `codes` are their indices in `labels`.

        `predicted` are the codes of the predicted classes if rules vote.
        """
        ruleset = self._ruleset
        covered = self._add_rows(matches, weights, n_rows)
        classes = ruleset.classes or ()
        all_labels = (*classes, *(label for label in labels if label not in set(classes)))
        label_indices = np.array([all_labels.index(label) for label in labels], dtype=np.intp)
        codes = label_indices[codes]
        kinds = counted_matches(ruleset, matches)
        if predicted is None:
            assigned = assign_matches(ruleset, matches)
            outputs = np.append(ruleset.conclusions.outputs.astype(np.intp), 0)
            predicted = outputs[assigned]
        predicted = np.where(covered, predicted, len(classes))
        shape = len(all_labels), len(classes) + 1
        cells = np.bincount(codes * shape[1] + predicted, weights, shape[0] * shape[1])
        by_label = sparse.csr_array(
            (weights, (codes, np.arange(len(codes)))), shape=(len(all_labels), len(codes))
        )
        sums = np.stack([by_label @ flags.astype(np.float64) for flags in kinds])
        # By Cauchy-Schwarz, equality holds only for equal classes; exact for whole numbers.
        count, first, squares = (matches.astype(np.float64) @ factor for factor in self._factors)
        torn = count * squares != first**2
        wrong = torn & (predicted != codes)
        pair = np.array([weights[torn].sum(), weights[wrong].sum()])
        group_counts = ClassCounts(all_labels, sums, cells.reshape(shape).astype(np.float64), pair)
        self._classes = group_counts if self._classes is None else self._classes + group_counts

    def add_numbers(self, matches: Flags, sums: Floats, ends: Floats, n_rows: NDArray[Any]) -> None:
        """Add groups by their sums, shape (5, n_groups), and their smallest and largest labels."""
        covered = self._add_rows(matches, sums[0], n_rows)
        for side, rows in enumerate((covered, ~covered)):
            if rows.any():
                self._rows[side] += sums[:, rows].sum(axis=1)
                self._ends[side] = _extend_ends(self._ends[side], ends[:, rows])
        for kind, flags in enumerate(counted_matches(self._ruleset, matches)):
            self._by_rule[kind] += sums[:3] @ flags
            for rule in np.flatnonzero(flags.any(axis=0)).tolist():
                old_ends = self._rule_ends[kind, :, rule]
                self._rule_ends[kind, :, rule] = _extend_ends(old_ends, ends[:, flags[:, rule]])

    def result(self, default: float, center: float) -> RuleCounts:
        """Return the counts of all groups."""
        numbers = None
        if self._ruleset.classes is None:
            numbers = NumberSums(
                center, default, self._rows, self._ends, self._by_rule, self._rule_ends
            )
        n_rows = int(self._n_rows[0]), int(self._n_rows[1])
        return RuleCounts(rules_digest(self._ruleset), n_rows, self._alone, self._classes, numbers)


def _extend_ends(ends: Floats, new: Floats) -> Floats:
    """Return the smallest and the largest label, after groups with other ends are added."""
    return np.array(
        [np.fmin(ends[0], np.fmin.reduce(new[0])), np.fmax(ends[1], np.fmax.reduce(new[1]))]
    )


def checked_weights(sample_weight: ArrayLike | None, n_rows: int) -> Floats | None:
    """Check that weights are valid and one is positive; return None if there are no weights."""
    if not n_rows:
        raise ValueError("X must hold at least one row to count rows of rules, got 0 rows.")
    if sample_weight is None:
        return None
    weights = row_weights(sample_weight, n_rows)
    if not weights.any():
        raise ValueError(
            f"sample_weight must hold a positive number, got {n_rows} zeros. Pass "
            "sample_weight=None to weight all rows equally."
        )
    return weights


def one_per_row(y: ArrayLike, n_rows: int) -> NDArray[Any]:
    """Check that there is one label per row, and return them as an array."""
    labels = one_dimension("y", y)
    if labels.shape != (n_rows,):
        raise ValueError(
            f"y must hold one label per row, shape ({n_rows},), got shape {labels.shape}."
        )
    return labels
