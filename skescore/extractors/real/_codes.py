"""Rows as codes: numbers of bins and categories instead of values.

Rules cannot distinguish rows with equal codes, so such rows are grouped. The cost of all further
steps depends on the number of distinct rows.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from skescore._random import combine, mix
from skescore.rules import Interval, OneOf

#: Largest key of a coded row; keys are sorted as integers.
_MAX_KEY = 2**62
#: Shares of redrawn features in successive variants.
_SHARES = (0.25, 0.5, 0.75, 1.0)
#: Mask of 64 bits.
_ALL_BITS = 2**64 - 1


@dataclass(frozen=True, eq=False)
class CodedFeature:
    """Encoding of a feature: cuts or categories, and an example value and a count per code."""

    cuts: np.ndarray | None
    categories: tuple[Any, ...] | None
    examples: np.ndarray
    counts: np.ndarray

    @property
    def ordered(self) -> bool:
        """True if neighboring codes are adjacent bins."""
        return self.categories is None

    def condition(self, index: int, allowed: np.ndarray) -> Interval | OneOf:
        """Return the condition for allowed codes, which must be adjacent for an ordered feature."""
        codes = np.flatnonzero(allowed)
        if self.categories is not None:
            return OneOf(index, tuple(self.categories[code] for code in codes))
        assert self.cuts is not None
        bounds = [-math.inf, *self.cuts.tolist(), math.inf]
        return Interval(index, bounds[codes[0]], bounds[codes[-1] + 1])


def code_numbers(values: np.ndarray, cuts: np.ndarray) -> tuple[np.ndarray, CodedFeature]:
    """Encode a numeric feature by its bins; the example of a bin is its (lower) median.

    Empty bins are merged with their neighbors by dropping cut points.
    """
    ordered = np.sort(values)
    # A cut is used if a row lies between the previous cut and this one.
    below = np.searchsorted(ordered, cuts, side="right")
    used = (np.diff(below, prepend=0) > 0) & (below < len(values))
    cuts, below = cuts[used], below[used]
    counts = np.diff(below, prepend=0, append=len(values))
    middle = np.cumsum(counts) - counts + (counts - 1) // 2
    codes = np.searchsorted(cuts, values, side="left").astype(_code_type(len(counts)))
    return codes, CodedFeature(cuts, None, ordered[middle], counts)


def code_categories(
    values: np.ndarray, categories: Sequence[Any]
) -> tuple[np.ndarray, CodedFeature]:
    """Encode a categorical feature."""
    codes = values.astype(_code_type(len(categories)))
    counts = np.bincount(codes, minlength=len(categories))
    examples = np.arange(float(len(categories)))
    return codes, CodedFeature(None, tuple(categories), examples, counts)


def _code_type(n_codes: int) -> Any:
    return np.min_scalar_type(max(1, n_codes - 1))


def code_rows(
    X: np.ndarray, cuts: Mapping[int, np.ndarray], categories: Mapping[int, tuple[Any, ...]]
) -> tuple[np.ndarray, list[CodedFeature]]:
    """Encode each feature: numbers by their cut points, categories by their values."""
    coded = [
        code_categories(column, categories[j]) if j in categories else code_numbers(column, cuts[j])
        for j, column in enumerate(X.T)
    ]
    features = [feature for _, feature in coded]
    kind = _code_type(max(len(feature.counts) for feature in features))
    codes = np.empty((len(coded), len(X)), dtype=kind)
    for row, (column, _) in zip(codes, coded, strict=True):
        row[:] = column
    return codes, features


@dataclass(frozen=True, eq=False)
class Evidence:
    """Coded points, the classes that the black box predicts for them, and their weights."""

    codes: np.ndarray
    labels: np.ndarray
    weights: np.ndarray

    def __len__(self) -> int:
        return len(self.labels)

    def part(self, index: np.ndarray) -> Evidence:
        """Select points by index or mask."""
        return Evidence(self.codes[:, index], self.labels[index], self.weights[index])


def row_keys(codes: np.ndarray, features: Sequence[CodedFeature]) -> np.ndarray:
    """Return for each row a number that identifies its combination of codes."""
    keys = np.zeros(codes.shape[1], dtype=np.int64)
    largest = 1
    for column, feature in zip(codes, features, strict=True):
        n_codes = len(feature.counts)
        if largest * n_codes > _MAX_KEY:
            distinct, keys = np.unique(keys, return_inverse=True)
            largest = len(distinct)
        keys *= n_codes
        keys += column
        largest *= n_codes
    return keys


def distinct_rows(
    codes: np.ndarray, features: Sequence[CodedFeature], labels: np.ndarray, n_classes: int
) -> tuple[Evidence, np.ndarray, np.ndarray]:
    """Group rows by codes and class; return the groups, their first rows and their purity."""
    keys = row_keys(codes, features)
    if len(keys) and int(keys.max()) * n_classes > _MAX_KEY:
        keys = np.unique(keys, return_inverse=True)[1]
    keys *= n_classes
    keys += labels
    distinct, first, counts = np.unique(keys, return_index=True, return_counts=True)
    pattern = np.cumsum(np.diff(distinct // n_classes, prepend=-1) != 0) - 1
    weights = counts.astype(float)
    purity = weights / np.bincount(pattern, weights=weights)[pattern]
    return Evidence(codes[:, first], labels[first], weights), first, purity


def make_variants(
    codes: np.ndarray, features: Sequence[CodedFeature], max_variants: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return variants of a row for queries of the black box, and masks of their changed codes.

    The first variants change one feature to each of its other codes; if there are too many, a
    pseudorandom selection is returned. The remaining variants, up to `max_variants`, change several
    features: each feature takes the code of a random row with a probability that cycles through
    1/4, 1/2, 3/4 and 1. The random numbers are hashes of the row's codes.
    """
    n_features = len(features)
    n_codes = np.array([len(feature.counts) for feature in features])
    key: Any = np.uint64(_row_key(codes))
    changed_feature = np.repeat(np.arange(n_features), n_codes - 1)
    other = np.arange(len(changed_feature)) - np.repeat(
        np.cumsum(n_codes - 1) - (n_codes - 1), n_codes - 1
    )
    other = other + (other >= codes[changed_feature])  # skip the row's own code
    if len(changed_feature) > max_variants:
        chosen = np.sort(
            np.argsort(combine(key, np.arange(len(changed_feature))), kind="stable")[:max_variants]
        )
        changed_feature, other = changed_feature[chosen], other[chosen]
    varying = np.flatnonzero(n_codes > 1)
    n_redrawn = max_variants - len(changed_feature) if len(varying) else 0
    changed = np.repeat(codes[None, :].astype(np.intp), len(changed_feature) + n_redrawn, axis=0)
    changed[np.arange(len(changed_feature)), changed_feature] = other
    # Each feature has two columns of random numbers; those of constant features are not drawn.
    is_redrawn = _uniform(key, n_redrawn, varying) < np.resize(_SHARES, n_redrawn)[:, None]
    drawn = _uniform(key, n_redrawn, n_features + varying)
    for column_index, j in enumerate(varying.tolist()):
        counts = features[j].counts
        steps = np.cumsum(counts) / counts.sum()
        picked = np.searchsorted(steps[:-1], drawn[:, column_index], side="right")
        changed[len(changed_feature) :, j][is_redrawn[:, column_index]] = picked[
            is_redrawn[:, column_index]
        ]
    return changed, changed != codes


def _uniform(key: np.uint64, n_points: int, columns: np.ndarray) -> np.ndarray:
    """Return pseudorandom numbers in [0, 1) for the given columns, shape (n_points, n_columns)."""
    points = combine(combine(key, 0), np.arange(n_points))
    bits = combine(points[:, None], columns)
    return np.asarray((bits >> np.uint64(11)) * 2.0**-53)


def _row_key(codes: np.ndarray) -> int:
    """Return the key of a row: 0, combined with its codes one by one.

    The last step per combination repeats :func:`skescore._random.mix`, which is slow for one
    number.
    """
    key = 0
    for hashed_code in mix(codes).tolist():
        z = ((key ^ hashed_code) + 0x9E3779B97F4A7C15) & _ALL_BITS
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _ALL_BITS
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _ALL_BITS
        key = z ^ (z >> 31)
    return key
