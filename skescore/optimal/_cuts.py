"""Cuts: the tests on single features that rules of a space are made of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from skescore._validation import check_integer, label_order, python_value
from skescore.rules import Condition, Interval, Missing, OneOf, RowTable
from skescore.rules._conditions import is_missing


def halfway(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Numbers between neighboring values: at least the lower, less than the higher."""
    middle = low / 2 + high / 2
    return np.where((low <= middle) & (middle < high), middle, low)


def pack(rows: np.ndarray) -> np.ndarray:
    """Bit sets of rows: 64 rows of each line of a table of True and False in one number.

    Parameters
    ----------
    rows : ndarray of bool, shape (n_sets, n_rows)
        The sets.

    Returns
    -------
    ndarray of uint64, shape (n_sets, ceil(n_rows / 64))
        Bits behind the last row are 0.
    """
    n_sets, n_rows = rows.shape
    packed = np.zeros((n_sets, -(-n_rows // 64) * 8), dtype=np.uint8)
    packed[:, : -(-n_rows // 8)] = np.packbits(rows, axis=1, bitorder="little")
    return packed.view("<u8").astype(np.uint64, copy=False)


@dataclass(frozen=True, eq=False)
class Tests:
    """Tests with two sides, and the rows on the first of them.

    Parameters
    ----------
    conditions : tuple of conditions
        What holds on the first side of each test.
    negations : tuple of conditions
        What holds on the other side: exactly where the condition does not hold.
    rows : ndarray of uint64, shape (n_tests, n_words)
        The rows where the condition holds, one bit each, the first row lowest.
    n_rows : int
        How many rows there are.
    """

    __test__ = False  # for pytest

    conditions: tuple[Condition, ...]
    negations: tuple[Condition, ...]
    rows: np.ndarray
    n_rows: int

    def __len__(self) -> int:
        return len(self.conditions)


@dataclass(frozen=True)
class Cuts:
    """Where the features of a table are cut: the space of the conditions of rules.

    A number is compared with its cuts, ``x ≤ c`` or ``x > c``; a category with each of its values,
    ``x = v`` or ``x ≠ v``. A feature that lacks values is asked for them as well, ``x is missing``
    or ``x is known``, and each of its comparisons is there with and without ``or missing``.

    Parameters
    ----------
    n_features : int
        Columns of the table.
    thresholds : mapping of int to tuple of float
        The cuts of numeric features, increasing.
    categories : mapping of int to tuple
        The values of categorical features.
    lacking : tuple of int
        The features that lack values in some row.
    """

    n_features: int
    thresholds: Mapping[int, tuple[float, ...]]
    categories: Mapping[int, tuple[Any, ...]]
    lacking: tuple[int, ...] = ()

    def pairs(self) -> Iterator[tuple[Condition, Condition]]:
        """Give each test as its condition and the negation of it, in the order of features.

        Yields
        ------
        tuple of two conditions
            One of them holds for each row that the cuts are of.
        """
        for j in range(self.n_features):
            for gap in (False, True) if j in self.lacking else (False,):
                other = j in self.lacking and not gap
                for cut in self.thresholds.get(j, ()):
                    yield (
                        Interval(j, upper=cut, missing=gap),
                        Interval(j, lower=cut, missing=other),
                    )
                for value in self.categories.get(j, ()):
                    yield (
                        OneOf(j, (value,), missing=gap),
                        OneOf(j, (value,), negated=True, missing=other),
                    )
            if j in self.lacking:
                yield Missing(j), Missing(j, negated=True)

    def tests(self, X: Any) -> Tests:
        """Put each test to the rows of a table.

        Tests that part no rows are left out, as are those that part them like one before.

        Parameters
        ----------
        X : array-like, DataFrame or RowTable of shape (n_rows, n_features)
            The rows, with the columns that the cuts are of.

        Returns
        -------
        Tests
            In the order of :meth:`pairs`.
        """
        table = RowTable.of(X, _names(X))
        seen: set[bytes] = set()
        kept: list[tuple[Condition, Condition]] = []
        lines: list[np.ndarray] = []
        for condition, negation in self.pairs():
            held = table.holds(condition)
            if held.all() or not held.any():
                continue
            line = pack(held[None])
            key = (pack(~held[None]) if held[0] else line).tobytes()
            if key not in seen:
                seen.add(key)
                kept.append((condition, negation))
                lines.append(line)
        n_words = -(-len(table) // 64)
        rows = np.concatenate(lines) if lines else np.zeros((0, n_words), dtype=np.uint64)
        conditions, negations = (tuple(pair[side] for pair in kept) for side in (0, 1))
        return Tests(conditions, negations, rows, len(table))

    def to_json(self) -> dict[str, Any]:
        """State the cuts in plain JSON values.

        Returns
        -------
        dict
            Features by their index, as text.
        """
        return {
            "n_features": self.n_features,
            "thresholds": {str(j): list(cuts) for j, cuts in self.thresholds.items()},
            "categories": {str(j): list(values) for j, values in self.categories.items()},
            "lacking": list(self.lacking),
        }


def candidate_cuts(
    X: Any, per_feature: int | None = None, *, categories: Sequence[int] | None = None
) -> Cuts:
    """Find where the features of a table can be cut.

    Parameters
    ----------
    X : array-like or DataFrame of shape (n_rows, n_features)
        The rows; NaN or None for missing values.
    per_feature : int, optional
        Most cuts of a number: those nearest to its quantiles. By default it is cut between any two
        neighboring values, which separates all rows that it can separate. Categories always have
        all their values.
    categories : sequence of int, optional
        The columns to be taken for categorical ones; by default those that hold text or booleans,
        or are declared categories.

    Returns
    -------
    Cuts
        The cuts, half-way between values of the rows.

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
    table = RowTable.of(X, _names(X))
    n_features = len(_names(X))
    declared = set(_categorical(X) if categories is None else categories)
    thresholds: dict[int, tuple[float, ...]] = {}
    values: dict[int, tuple[Any, ...]] = {}
    lacking = []
    for j in range(n_features):
        column = table.column(j)
        gaps = is_missing(column)
        if gaps.any() and not gaps.all():
            lacking.append(j)
        known = column[~gaps]
        if j in declared or column.dtype.kind in "OUTb":
            if j not in declared and not any(isinstance(value, str) for value in known.tolist()):
                try:  # numbers beside None; texts are none, "01" and "1" differ
                    thresholds[j] = _between(known.astype(float), per_feature)
                    continue
                except (TypeError, ValueError):
                    pass
            found = {python_value(value) for value in known.tolist()}
            values[j] = tuple(sorted(found, key=label_order))
        else:
            thresholds[j] = _between(known.astype(float), per_feature)
    return Cuts(n_features, thresholds, values, tuple(lacking))


def _names(X: Any) -> list[str]:
    if isinstance(X, RowTable):
        return list(X.names)
    columns = getattr(X, "columns", None)
    if columns is not None:
        return [str(name) for name in columns]
    return [f"x{j}" for j in range(np.shape(X)[1])]


def _categorical(X: Any) -> list[int]:
    """Columns of a frame that hold text, booleans or declared categories."""
    dtypes = getattr(X, "dtypes", None)
    if dtypes is None or not hasattr(X, "columns"):
        return []
    return [j for j, dtype in enumerate(dtypes) if str(dtype) in {"category", "bool", "boolean"}]


def _between(known: np.ndarray, most: int | None) -> tuple[float, ...]:
    """Cuts half-way between neighboring values, or the ones nearest to the quantiles."""
    values, counts = np.unique(known, return_counts=True)
    cuts = halfway(values[:-1], values[1:])
    if most is not None and len(cuts) > most:
        wanted = np.arange(1, most + 1) * (len(known) / (most + 1))
        below = np.cumsum(counts)[:-1]  # rows below each cut
        right = np.searchsorted(below, wanted).clip(1, len(below) - 1)
        nearer_left = wanted - below[right - 1] <= below[right] - wanted
        cuts = cuts[np.unique(np.where(nearer_left, right - 1, right))]
    return tuple(cuts.tolist())
