"""Domains and fallbacks: where rules apply, and the prediction for uncovered rows."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from skescore._validation import (
    check_choice,
    check_feature,
    check_label,
    check_number,
    label_order,
    python_value,
    row_weights,
)
from skescore.rules._conditions import AtLeast, Condition, Missing, OneOf
from skescore.rules._row_table import RowTable

if TYPE_CHECKING:
    from skescore.rules._ruleset import RuleSet

#: Smallest number of columns for which NumPy reduces columns fast.
_WIDE = 512

UNCOVERED_POLICIES = ("default", "nearest", "abstain")


@dataclass(frozen=True, slots=True)
class Domain:
    """Box around the training rows.

    Parameters
    ----------
    lower, upper : sequence of float of length n_features
        Finite bounds; they are equal for a constant feature. The bounds of a categorical feature
        with K values are 0 and K, one unit of length per value.
    categories : iterable of (int, sequence), default=()
        Pairs of the column index and the known values of a categorical feature.
    missing : sequence of float of length n_features, default=()
        Share of missing values of each feature; by default 0. In volumes, the interval of a feature
        has the weight ``1 - missing``, and missing values the remaining weight.

    Raises
    ------
    ValueError
        If a bound is not finite, a lower bound exceeds the upper bound, or categories or shares do
        not match the bounds.

    Examples
    --------
    >>> Domain((0, 1), (2, 1)).ranges
    (2.0, 0.0)
    >>> Domain((0, 0), (2, 3), [(1, ["blue", "green", "red"])]).values_of(1)
    ('blue', 'green', 'red')
    """

    lower: tuple[float, ...]
    upper: tuple[float, ...]
    categories: tuple[tuple[int, tuple[Any, ...]], ...] = ()
    missing: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        for name in ("lower", "upper"):
            bounds = tuple(check_number(name, v, finite=True) for v in getattr(self, name))
            object.__setattr__(self, name, bounds)
        if len(self.lower) != len(self.upper):
            raise ValueError(
                "lower and upper must have the same length, "
                f"got {len(self.lower)} and {len(self.upper)}."
            )
        for j, (low, high) in enumerate(zip(self.lower, self.upper, strict=True)):
            if not low <= high:
                raise ValueError(
                    f"A domain needs lower <= upper, got {low!r} and {high!r} for feature {j}."
                )
        object.__setattr__(self, "categories", self._check_categories())
        object.__setattr__(self, "missing", self._check_missing())

    def _check_missing(self) -> tuple[float, ...]:
        shares = tuple(check_number("missing", share) for share in self.missing)
        if not shares:
            return (0.0,) * len(self.lower)
        if len(shares) != len(self.lower):
            raise ValueError(
                f"missing must hold a share for each of the {len(self.lower)} features, got "
                f"{len(shares)}."
            )
        for j, share in enumerate(shares):
            if not 0 <= share <= 1:
                raise ValueError(
                    f"missing must hold shares from 0 to 1, got {share!r} for feature {j}."
                )
        return shares

    def _check_categories(self) -> tuple[tuple[int, tuple[Any, ...]], ...]:
        pairs: dict[int, tuple[Any, ...]] = {}
        for feature, labels in self.categories:
            feature = check_feature(feature)
            values = tuple(check_label("categories", value) for value in labels)
            if feature in pairs or feature >= len(self.lower):
                raise ValueError(
                    f"categories must name each of the {len(self.lower)} features at most once, "
                    f"got feature {feature}."
                )
            if not values or len(set(values)) != len(values):
                raise ValueError(
                    f"categories must hold at least one value and no duplicates, got "
                    f"{list(values)!r} for feature {feature}."
                )
            if (self.lower[feature], self.upper[feature]) != (0.0, float(len(values))):
                raise ValueError(
                    f"The bounds of feature {feature} must be 0 and its number of categories, "
                    f"{len(values)}, got {self.lower[feature]!r} and {self.upper[feature]!r}."
                )
            pairs[feature] = values
        return tuple(sorted(pairs.items()))

    def values_of(self, feature: int) -> tuple[Any, ...] | None:
        """Return the known values of a categorical feature; None for a numeric one."""
        return dict(self.categories).get(feature)

    @classmethod
    def around(
        cls,
        X: np.ndarray,
        margin: float = 1e-9,
        categories: Mapping[int, Sequence[Any]] | None = None,
    ) -> Domain:
        """Return the domain around rows, with a margin as a share of each feature's range.

        Columns of categorical features hold the indices of their `categories`. NaN is a missing
        value; its share in each column becomes the domain's `missing`. A feature without known
        values is constant 0 and has no categories.
        """
        categories = {j: values for j, values in (categories or {}).items() if len(values)}
        X = np.asarray(X)
        low, high = _column_range(X)
        shares: tuple[float, ...] = ()
        if np.isnan(low).any():
            missing_mask = np.isnan(X)
            shares = tuple(missing_mask.mean(axis=0).tolist())
            has_values = ~missing_mask.all(axis=0)
            low = np.where(has_values, np.where(missing_mask, np.inf, X).min(axis=0), 0.0)
            high = np.where(has_values, np.where(missing_mask, -np.inf, X).max(axis=0), 0.0)
        # Numbers are halved first, because the range of numbers near the largest float overflows.
        extra = margin * 2 * (high / 2 - low / 2)
        largest = np.finfo(float).max
        with np.errstate(over="ignore"):
            low, high = low - extra, high + extra
        low, high = np.clip(low, -largest, largest), np.clip(high, -largest, largest)
        for feature, values in categories.items():
            low[feature], high[feature] = 0.0, len(values)
        pairs = tuple((feature, tuple(values)) for feature, values in categories.items())
        return cls(tuple(low), tuple(high), pairs, shares)

    @property
    def ranges(self) -> tuple[float, ...]:
        """Length of the domain along each feature; 0 for constant features."""
        return tuple(high - low for low, high in zip(self.lower, self.upper, strict=True))


def _column_range(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the minimum and maximum of each column.

    NumPy reduces a narrow array one number at a time. It is therefore reshaped so that many rows
    form one wide row, which is reduced many numbers at a time.
    """
    n_rows, n_columns = X.shape
    n_side_by_side = max(1, _WIDE // max(1, n_columns))
    if not X.flags.c_contiguous or n_rows < 4 * n_side_by_side:
        return X.min(axis=0), X.max(axis=0)
    n_folded = n_rows // n_side_by_side * n_side_by_side
    wide, remaining_rows = X[:n_folded].reshape(-1, n_side_by_side * n_columns), X[n_folded:]
    low = wide.min(axis=0).reshape(n_side_by_side, n_columns)
    high = wide.max(axis=0).reshape(n_side_by_side, n_columns)
    return np.vstack([low, remaining_rows]).min(axis=0), np.vstack([high, remaining_rows]).max(
        axis=0
    )


@dataclass(frozen=True, slots=True)
class Fallback:
    """Prediction for uncovered rows, which does not count as a rule.

    Parameters
    ----------
    output : str, int, float or bool
        Default prediction. Extractors use the majority class or the mean of the black box's
        predictions for the uncovered training rows (for all training rows if all are covered).
    policy : {"default", "nearest", "abstain"}, default="default"
        ``"default"`` predicts `output`; ``"nearest"`` predicts by the rule with the nearest box
        (distances are in units of the features' ranges); ``"abstain"`` predicts `abstain_label`.
    class_counts : tuple of float, optional
        Classification: number of these predictions for each class.
    abstain_label : str, int or float, optional
        Prediction of an abstaining rule set in classification; by default ``"no rule"`` if all
        classes are texts, otherwise -1. In regression, the prediction is always NaN.
    """

    output: Any
    policy: str = "default"
    class_counts: tuple[float, ...] | None = None
    abstain_label: Any = None

    def __post_init__(self) -> None:
        check_choice("uncovered", self.policy, UNCOVERED_POLICIES)
        put = object.__setattr__
        put(self, "output", check_label("the fallback's output", self.output))
        if self.abstain_label is not None:
            put(self, "abstain_label", check_label("abstain_label", self.abstain_label))
        if self.class_counts is not None:
            counts = (check_number("class_counts", c, finite=True) for c in self.class_counts)
            put(self, "class_counts", tuple(counts))

    def check(self, classes: Sequence[Any] | None) -> None:
        """Raise a ValueError unless the fallback matches the classes (None in regression)."""
        if classes is None:
            if isinstance(self.output, str | bool):
                raise ValueError(
                    f"The fallback must predict a number in regression, got {self.output!r}."
                )
            return
        if self.output not in classes:
            raise ValueError(
                f"The fallback predicts {self.output!r}, which is not among the classes "
                f"{list(classes)}."
            )
        if self.class_counts is not None and len(self.class_counts) != len(classes):
            raise ValueError(
                f"The fallback has {len(self.class_counts)} class_counts for {len(classes)} "
                "classes."
            )
        if self.policy == "abstain" and self.abstain_label in classes:
            raise ValueError(
                f"abstain_label must not be one of the classes, got {self.abstain_label!r}. Pass "
                "another label."
            )

    def abstention(self, classes: Sequence[Any]) -> Any:
        """Return the prediction of an abstaining rule set in classification.

        A ValueError is raised if there is no `abstain_label`, and the default label is one of the
        classes or all classes are booleans.
        """
        if self.abstain_label is not None:
            return self.abstain_label
        return default_abstain_label(classes)


def default_abstain_label(classes: Sequence[Any]) -> Any:
    """Return a label of the same type as the classes that differs from all of them."""
    if all(isinstance(c, bool) for c in classes):
        raise ValueError(
            "uncovered='abstain' has no label left besides True and False: pass abstain_label=..., "
            "or choose uncovered='default' or 'nearest'."
        )
    if all(isinstance(c, str) for c in classes):
        label: Any = "no rule"
    else:
        label = -1
    if label in classes:
        raise ValueError(
            f"uncovered='abstain' would predict {label!r}, which is one of the classes: pass "
            "abstain_label=... with a label that is not."
        )
    return label


def label_array(labels: Sequence[Any]) -> np.ndarray:
    """Return class labels as an array of their common type, or of objects if types differ."""
    kinds = {bool if isinstance(v, bool) else type(v) for v in labels}
    if len(kinds) <= 1 or kinds == {int, float}:
        array = np.asarray(labels)
        # Integers without a common type would be rounded, and texts would lose a NUL at the end.
        if kinds == {int}:
            same = array.dtype.kind in "iu"
        elif kinds == {int, float}:
            same = all(map(operator.eq, array.tolist(), labels))
        else:
            same = not any(str(label).endswith("\0") for label in labels)
        if same:
            return array
    result = np.empty(len(labels), dtype=object)
    result[:] = labels
    return result


def domain_around(ruleset: RuleSet, X: Any, sample_weight: Any = None) -> Domain:
    """Return the domain around rows; see :meth:`RuleSet.domain_around`."""
    table = RowTable(X, ruleset.feature_names)
    if len(table) == 0:
        raise ValueError("X must hold at least one row to find a domain, got 0 rows.")
    rows: Any = slice(None)
    weights = None
    if sample_weight is not None:
        weights = row_weights(sample_weight, len(table))
        rows = np.flatnonzero(weights)
        weights = weights[rows]
        if not len(rows):
            raise ValueError(
                f"sample_weight must hold a positive number, got {len(table)} zeros. Pass None to "
                "weight all rows equally."
            )
    listed, compared = _collect_uses(c for rule in ruleset.rules for c in rule.conditions)
    used = {f for rule in ruleset.rules for c in rule.conditions for f in c.features}
    ends = np.zeros((2, ruleset.n_features))
    missing = np.zeros(ruleset.n_features)
    categories = {}
    for j in range(ruleset.n_features):
        try:
            column = table.column(j)[rows]
            missing_mask = table.missing(j, rows)
            if j not in compared and (column.dtype.kind in "OUST" or j in listed):
                values = {python_value(v) for v in column[~missing_mask].tolist()}
                # Without an observed value, the categories are those in conditions.
                if values := values or listed.get(j, set()):
                    categories[j] = tuple(sorted(values, key=label_order))
            else:
                numbers = table.numbers(j, rows)
                numbers = numbers[np.isfinite(numbers)]
                if len(numbers):
                    ends[:, j] = numbers.min(), numbers.max()
            missing[j] = np.average(missing_mask, weights=weights)
        except (TypeError, ValueError):
            if j in used:
                raise  # columns that no rule uses may hold any values, and do not affect volumes
    return replace(Domain.around(ends, categories=categories), missing=tuple(missing.tolist()))


def text_features(ruleset: RuleSet) -> dict[str, list[str] | None]:
    """Return the features whose values are compared with texts, and their known values.

    Parameters
    ----------
    ruleset : RuleSet
        The rules.

    Returns
    -------
    dict of str to list of str, or to None
        Known values by feature name; None if the domain does not list them.
    """
    pairs = list(ruleset.domain.categories) if ruleset.domain is not None else []
    domain_categories = dict(pairs)
    if not ruleset.boxes_only:
        conditions = (c for rule in ruleset.rules for c in condition_parts(rule.non_intervals))
        pairs += [(c.feature, c.values) for c in conditions if isinstance(c, OneOf)]
    # Values that are numbers are compared as numbers.
    texts = {feature for feature, values in pairs if any(isinstance(v, str) for v in values)}
    return {
        ruleset.feature_names[feature]: list(domain_categories[feature])
        if feature in domain_categories
        else None
        for feature in sorted(texts)
    }


def condition_parts(conditions: Iterable[Condition]) -> Iterator[Condition]:
    """Yield conditions and their nested conditions."""
    for condition in conditions:
        yield condition
        if isinstance(condition, AtLeast):
            yield from condition_parts(condition.conditions)


def _collect_uses(conditions: Iterable[Condition]) -> tuple[dict[int, set[Any]], set[int]]:
    """Return the listed values by feature, and the features that are compared with numbers."""
    listed: dict[int, set[Any]] = {}
    compared: set[int] = set()
    for condition in condition_parts(conditions):
        if isinstance(condition, OneOf):
            listed.setdefault(condition.feature, set()).update(condition.values)
        elif not isinstance(condition, Missing | AtLeast):
            compared.update(condition.features)
    return listed, compared
