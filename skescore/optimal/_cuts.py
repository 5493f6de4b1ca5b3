"""Cuts: tests of single features, from which the rules of a search space are built."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from skescore._validation import check_integer, label_order, python_value
from skescore.rules import AtLeast, Condition, Interval, Missing, OneOf, RowTable, RuleSet
from skescore.rules._conditions import is_missing


def halfway(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Return finite numbers halfway between neighbors, at least the lower and below the higher."""
    low = np.maximum(low, -np.finfo(float).max)
    middle = low / 2 + high / 2
    return np.where((low <= middle) & (middle < high), middle, low)


def pack(rows: np.ndarray) -> np.ndarray:
    """Pack sets of rows into bit sets, 64 rows per number.

    Parameters
    ----------
    rows : ndarray of bool, shape (n_sets, n_rows)
        Sets of rows as masks.

    Returns
    -------
    ndarray of uint64, shape (n_sets, ceil(n_rows / 64))
        Bits after the last row are 0.
    """
    n_sets, n_rows = rows.shape
    packed = np.zeros((n_sets, -(-n_rows // 64) * 8), dtype=np.uint8)
    packed[:, : -(-n_rows // 8)] = np.packbits(rows, axis=1, bitorder="little")
    return packed.view("<u8").astype(np.uint64, copy=False)


@dataclass(frozen=True, eq=False)
class Tests:
    """Binary tests and the rows for which each test holds.

    Parameters
    ----------
    conditions : tuple of conditions
        Condition of each test.
    negations : tuple of conditions
        Condition that holds for exactly the rows for which the condition does not hold.
    rows : ndarray of uint64, shape (n_tests, n_words)
        Bit set of the rows for which the condition holds; the first row is the lowest bit.
    n_rows : int
        Number of rows.
    """

    __test__ = False  # pytest must not collect the class

    conditions: tuple[Condition, ...]
    negations: tuple[Condition, ...]
    rows: np.ndarray
    n_rows: int

    def __len__(self) -> int:
        return len(self.conditions)


@dataclass(frozen=True)
class Cuts:
    """Cuts of the features of a table, which define the possible conditions of rules.

    Conditions are ``x ≤ c`` and ``x > c`` for the cuts c of a numeric feature, and ``x = v`` and
    ``x ≠ v`` for the values v of a categorical feature. For a feature with missing values, there
    are also ``x is missing`` and ``x is known``, and all conditions with and without ``or
    missing``.

    Parameters
    ----------
    n_features : int
        Number of columns of the table.
    thresholds : mapping of int to tuple of float
        Increasing cuts of numeric features.
    categories : mapping of int to tuple
        Values of categorical features.
    missing_features : tuple of int, default=()
        Features with missing values.
    category_sets : mapping of int to tuple of tuple, default={}
        Sets of values of categorical features, each a further test ``x in {v, w}``.
    """

    n_features: int
    thresholds: Mapping[int, tuple[float, ...]]
    categories: Mapping[int, tuple[Any, ...]]
    missing_features: tuple[int, ...] = ()
    category_sets: Mapping[int, tuple[tuple[Any, ...], ...]] = field(default_factory=dict)

    def pairs(self) -> Iterator[tuple[Condition, Condition]]:
        """Yield each candidate condition with its negation, in the order of the features.

        Yields
        ------
        tuple of two conditions
            Each row satisfies exactly one of the two.
        """
        for key, thresholds, value_sets in self.columns():
            for test in (*thresholds, *value_sets):
                yield self.pair(*key, test)

    def columns(self) -> Iterator[tuple[tuple[int, bool], Sequence[float], Sequence[Any]]]:
        """Yield the tests of each feature, without and with ``or missing``.

        Yields
        ------
        tuple
            Feature and whether missing values satisfy the tests; the thresholds; the sets of
            values, or None for the test of missing values.
        """
        for j in range(self.n_features):
            for is_with_missing in (False, True) if j in self.missing_features else (False,):
                single_values = tuple((value,) for value in self.categories.get(j, ()))
                value_sets = (*single_values, *self.category_sets.get(j, ()))
                yield (j, is_with_missing), self.thresholds.get(j, ()), value_sets
            if j in self.missing_features:
                yield (j, True), (), (None,)

    def pair(
        self, feature: int, is_with_missing: bool, test: float | tuple[Any, ...] | None
    ) -> tuple[Condition, Condition]:
        """Return the condition of a test and its negation.

        Parameters
        ----------
        feature : int
            Index of the feature.
        is_with_missing : bool
            Whether missing values satisfy the condition.
        test : float, tuple or None
            A threshold, a set of values, or None for the test of missing values.

        Returns
        -------
        tuple of two conditions
            Each row satisfies exactly one of the two.
        """
        negation_missing = feature in self.missing_features and not is_with_missing
        if test is None:
            return Missing(feature), Missing(feature, negated=True)
        if isinstance(test, tuple):
            return (
                OneOf(feature, test, missing=is_with_missing),
                OneOf(feature, test, negated=True, missing=negation_missing),
            )
        return (
            Interval(feature, upper=test, missing=is_with_missing),
            Interval(feature, lower=test, missing=negation_missing),
        )

    def tests(self, X: Any) -> Tests:
        """Evaluate each test on the rows of a table.

        Tests that do not split the rows, or split them like an earlier test, are omitted.

        Parameters
        ----------
        X : array-like, DataFrame or RowTable of shape (n_rows, n_features)
            The rows, with as many columns as the cuts have features.

        Returns
        -------
        Tests
            The tests, in the order of :meth:`pairs`.
        """
        table = RowTable.of(X, column_names(X))
        partitions: set[bytes] = set()
        distinct_pairs: list[tuple[Condition, Condition]] = []
        bit_sets: list[np.ndarray] = []
        for condition, negation in self.pairs():
            holds = table.holds(condition)
            if holds.all() or not holds.any():
                continue
            bit_set = pack(holds[None])
            partition = (pack(~holds[None]) if holds[0] else bit_set).tobytes()
            if partition not in partitions:
                partitions.add(partition)
                distinct_pairs.append((condition, negation))
                bit_sets.append(bit_set)
        n_words = -(-len(table) // 64)
        rows = np.concatenate(bit_sets) if bit_sets else np.zeros((0, n_words), dtype=np.uint64)
        conditions, negations = (tuple(pair[side] for pair in distinct_pairs) for side in (0, 1))
        return Tests(conditions, negations, rows, len(table))

    def check_missing_features(self, X: Any) -> None:
        """Raise an error if a feature with cuts has missing values that no test separates.

        Without such a test, missing values would satisfy neither a comparison nor its negation.

        Parameters
        ----------
        X : array-like, DataFrame or RowTable of shape (n_rows, n_features)
            The rows.
        """
        names = column_names(X)
        table = RowTable.of(X, names)
        cut_features = {*self.thresholds, *self.categories, *self.category_sets}
        for j in sorted(cut_features.difference(self.missing_features)):
            n_missing = int(is_missing(table.column(j)).sum()) if j < len(names) else 0
            if 0 < n_missing < len(table):  # no test splits the rows of a column without values
                raise ValueError(
                    "cuts must list features with missing values in missing_features, got "
                    f"missing_features={self.missing_features!r}, but {names[j]!r} has {n_missing} "
                    f"missing {'value' if n_missing == 1 else 'values'}. Add {j} to "
                    "missing_features."
                )

    @property
    def n_cuts(self) -> int:
        """Number of thresholds, values and sets of values."""
        parts = self.thresholds, self.categories, self.category_sets
        return sum(len(values) for part in parts for values in part.values())

    def select(self, features: Collection[int]) -> Cuts:
        """Return the cuts of some features.

        Parameters
        ----------
        features : collection of int
            Indices of the features.

        Returns
        -------
        Cuts
            Cuts of these features, with the same number of columns.
        """

        def keep_features(part: Mapping[int, Any]) -> dict[int, Any]:
            return {j: values for j, values in part.items() if j in features}

        return replace(
            self,
            thresholds=keep_features(self.thresholds),
            categories=keep_features(self.categories),
            missing_features=tuple(j for j in self.missing_features if j in features),
            category_sets=keep_features(self.category_sets),
        )

    def with_rules(self, rulesets: Iterable[RuleSet], X: Any) -> Cuts:
        """Add the cuts of rules.

        Parameters
        ----------
        rulesets : iterable of RuleSet
            Rules on the columns of X, in the same order.
        X : array-like, DataFrame or RowTable of shape (n_rows, n_features)
            The rows. Thresholds are moved halfway between the neighboring values that they
            separate, so that no two cuts divide the rows in the same way. Cuts that separate no
            rows are omitted.

        Returns
        -------
        Cuts
            These cuts and those of the rules.
        """
        table = RowTable.of(X, column_names(X))
        conditions = [
            c for rules in rulesets for rule in rules for c in _flatten_conditions(rule.conditions)
        ]
        thresholds, sets = dict(self.thresholds), dict(self.category_sets)
        missing_features = set(self.missing_features)
        for j in sorted({c.feature for c in conditions}):
            feature_conditions = [c for c in conditions if c.feature == j]
            column = table.column(j)
            missing = is_missing(column)
            if missing.any() and not missing.all():
                missing_features.add(j)
            bounds = {bound for c in feature_conditions for bound in _bounds_of(c)}
            if bounds and j not in self.categories:
                values = np.unique(column[~missing].astype(float))
                position = np.searchsorted(values, np.array(sorted(bounds)), side="right")
                position = np.unique(position[(position > 0) & (position < len(values))])
                middles = halfway(values[position - 1], values[position]).tolist()
                thresholds[j] = tuple(sorted({*thresholds.get(j, ()), *middles}))
            value_sets = {c.values: None for c in feature_conditions if isinstance(c, OneOf)}
            old_sets = {(value,) for value in self.categories.get(j, ())} | {*sets.get(j, ())}
            if new_sets := tuple(values for values in value_sets if values not in old_sets):
                sets[j] = (*sets.get(j, ()), *new_sets)
        return replace(
            self,
            thresholds=thresholds,
            missing_features=tuple(sorted(missing_features)),
            category_sets=sets,
        )

    def to_json(self) -> dict[str, Any]:
        """Return the cuts as JSON values.

        Returns
        -------
        dict
            Cuts by the index of the feature, as text.
        """
        sets = {str(j): list(map(list, values)) for j, values in self.category_sets.items()}
        return {
            "n_features": self.n_features,
            "thresholds": {str(j): list(cuts) for j, cuts in self.thresholds.items()},
            "categories": {str(j): list(values) for j, values in self.categories.items()},
            "missing_features": list(self.missing_features),
            **({"category_sets": sets} if sets else {}),
        }


def _flatten_conditions(conditions: Iterable[Condition]) -> Iterator[Interval | OneOf | Missing]:
    """Yield the conditions on single features, including those nested in other conditions."""
    for condition in conditions:
        if isinstance(condition, AtLeast):
            yield from _flatten_conditions(condition.conditions)
        elif isinstance(condition, Interval | OneOf | Missing):
            yield condition


def _bounds_of(condition: Condition) -> list[float]:
    """Return the thresholds of an interval, in the form of tests ``x ≤ c``."""
    if not isinstance(condition, Interval):
        return []
    lower, upper = condition.lower, condition.upper
    bounds = [
        float(np.nextafter(lower, -np.inf)) if condition.lower_closed else lower,
        upper if condition.upper_closed else float(np.nextafter(upper, -np.inf)),
    ]
    return [bound for bound in bounds if np.isfinite(bound)]


def candidate_cuts(
    X: Any, per_feature: int | None = None, *, categories: Sequence[int] | None = None
) -> Cuts:
    """Choose candidate cuts of the features of a table.

    Parameters
    ----------
    X : array-like or DataFrame of shape (n_rows, n_features)
        The rows; NaN or None for missing values.
    per_feature : int, optional
        Largest number of cuts of a numeric feature; the cuts nearest to its quantiles are used. By
        default there are cuts between all neighboring values. Categorical features always have all
        their values.
    categories : sequence of int, optional
        Indices of the categorical columns; by default those of text, booleans or declared
        categories.

    Returns
    -------
    Cuts
        The cuts, halfway between values of the rows.

    Examples
    --------
    >>> cuts = candidate_cuts([[1.0], [2.0], [4.0], [float("nan")]])
    >>> for condition, negation in cuts.pairs():
    ...     print(condition, "|", negation)
    x0 ≤ 1.5 | x0 > 1.5 or missing
    x0 ≤ 3 | x0 > 3 or missing
    x0 ≤ 1.5 or missing | x0 > 1.5
    x0 ≤ 3 or missing | x0 > 3
    x0 is missing | x0 is known
    >>> len(cuts.tests([[1.0], [2.0], [4.0], [float("nan")]]))
    5
    """
    check_integer("per_feature", per_feature, 1, optional=True)
    names = column_names(X)
    table = RowTable.of(X, names)
    categorical = set(_categorical_columns(X) if categories is None else categories)
    thresholds: dict[int, tuple[float, ...]] = {}
    values: dict[int, tuple[Any, ...]] = {}
    missing_features = []
    for j in range(len(names)):
        column = table.column(j)
        missing = is_missing(column)
        if missing.any() and not missing.all():
            missing_features.append(j)
        observed = column[~missing]
        if j in categorical or column.dtype.kind in "OUTb":
            has_text = any(isinstance(value, str) for value in observed.tolist())
            if j not in categorical and not has_text:
                try:  # an object column may hold numbers and None
                    thresholds[j] = _cuts_between(observed.astype(float), per_feature)
                    continue
                except (TypeError, ValueError):
                    pass
            distinct = {python_value(value) for value in observed.tolist()}
            values[j] = tuple(sorted(distinct, key=label_order))
        else:
            thresholds[j] = _cuts_between(observed.astype(float), per_feature)
    return Cuts(len(names), thresholds, values, tuple(missing_features))


def column_names(X: Any) -> list[str]:
    """Return the names of the columns; those of an array are x0, x1, ..."""
    if isinstance(X, RowTable):
        return list(X.names)
    # The attribute `columns` of an Arrow table holds its data.
    columns = getattr(X, "column_names", getattr(X, "columns", None))
    if columns is not None:
        return [str(name) for name in columns]
    return [f"x{j}" for j in range(np.shape(X)[1])]


def _categorical_columns(X: Any) -> list[int]:
    """Return the columns of a frame that hold booleans or declared categories."""
    dtypes = getattr(X, "dtypes", None)
    if dtypes is None or not hasattr(X, "columns"):
        return []
    return [j for j, dtype in enumerate(dtypes) if str(dtype) in {"category", "bool", "boolean"}]


def _cuts_between(observed: np.ndarray, max_cuts: int | None) -> tuple[float, ...]:
    """Return cuts halfway between neighboring values, at most `max_cuts` near quantiles."""
    values, counts = np.unique(observed, return_counts=True)
    cuts = halfway(values[:-1], values[1:])
    if max_cuts is not None and len(cuts) > max_cuts:
        quantile_ranks = np.arange(1, max_cuts + 1) * (len(observed) / (max_cuts + 1))
        rows_below = np.cumsum(counts)[:-1]
        right = np.searchsorted(rows_below, quantile_ranks).clip(1, len(rows_below) - 1)
        nearer_left = quantile_ranks - rows_below[right - 1] <= rows_below[right] - quantile_ranks
        cuts = cuts[np.unique(np.where(nearer_left, right - 1, right))]
    return tuple(cuts.tolist())
