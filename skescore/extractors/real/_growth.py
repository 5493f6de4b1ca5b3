"""Growth of a premise around a row.

A premise lists the allowed codes of every feature; a feature whose codes are all allowed has no
literal. Premises are evaluated on two kinds of points, training rows and queried points. On each
kind, the share of covered points of the rule's class must reach the minimum precision.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from skescore.extractors.real._packed import ClassCounts, CodeLayout, PackedPoints

#: Allowed codes of each feature.
Premise: TypeAlias = list[np.ndarray]
#: Counts of covered points that disagree and agree, for training rows and for queried points.
CoveredCounts: TypeAlias = list[list[float]]
#: Difference below which gains are regarded as equal.
_GAIN_TOLERANCE = 1e-9
#: Largest number of sets of categories that are compared for a literal.
_MAX_CATEGORY_SETS = 64
#: Smallest share and weight, which keeps logarithms finite.
_TINY = 1e-12


class PremiseGrower:
    """Grow premises, each from a single row, that are precise on both kinds of points.

    A premise is an array of the allowed codes of all varying features, at the cells of the layout.
    """

    def __init__(self, layout: CodeLayout, rows: PackedPoints, min_precision: float) -> None:
        self.layout = layout
        self.rows = rows
        self.min_precision = min_precision

    def allows(self, codes: np.ndarray, output: int, queried: PackedPoints) -> bool:
        """Return whether the conjunction of all values of a row is precise on queried points."""
        if not queried.n_points:
            return True
        same = queried.equal_to(self.layout, codes)
        covered = ClassCounts(self.layout, queried, output).count_points(same[None])[:, 0]
        return self._is_precise(covered.tolist())

    def grow(self, codes: np.ndarray, output: int, queried: PackedPoints) -> Premise | None:
        """Generalize the conjunction of all values of a row as long as it stays precise.

        Returns None if even the full conjunction is not precise.
        """
        points = self.rows.concatenate(queried) if queried.n_points else self.rows
        counts = ClassCounts(self.layout, points, output)
        allowed = np.ones(self.layout.size, dtype=bool)
        allowed[self.layout.n_packed_cells] = False  # the cell without points
        literals = self._add_literals(allowed, codes, counts)
        if literals is None:
            return None
        # The literals that were added last are the least important, so they are dropped first.
        literals = self._drop_literals(allowed, literals[::-1], counts)
        self._widen_literals(allowed, sorted(literals), counts)
        return self.layout.premise(allowed)

    def _is_precise(self, covered: CoveredCounts) -> bool:
        """Return whether enough points of each kind agree; true for kinds without points."""
        # Shares such as 0.95 are not exact in floating point, so counts are compared.
        for disagreeing, agreeing in covered:
            if not agreeing >= self.min_precision * (disagreeing + agreeing) * (1 - 1e-12):
                return False
        return True

    def _add_literals(
        self, allowed: np.ndarray, codes: np.ndarray, counts: ClassCounts
    ) -> list[int] | None:
        """Add literals of the full conjunction, the best first, until the premise is precise.

        A literal allows codes up to or from the row's code, or a set of categories with the row's
        category, whichever has the largest gain. Returns the features in the order of their
        literals, or None if the full conjunction is not precise.
        """
        order: list[int] = []
        mask = np.full(counts.sides.shape[1], ~np.uint64(0))
        covered = counts.count_points(mask[None])[:, 0]
        while not self._is_precise(covered.tolist()):
            literal = self._best_literal(allowed, codes, counts, mask, covered)
            if literal is None:
                return None
            j, own_codes, covered = literal
            allowed[self.layout.cells_of(j)] = own_codes
            order = [*(k for k in order if k != j), j]
            mask = mask & counts.points.satisfying(self.layout, j, own_codes)
        return order

    def _best_literal(
        self,
        allowed: np.ndarray,
        codes: np.ndarray,
        counts: ClassCounts,
        mask: np.ndarray,
        covered: np.ndarray,
    ) -> tuple[int, np.ndarray, np.ndarray] | None:
        """Return the feature of the literal with the largest gain, its codes and its counts.

        Returns None if no literal is left.
        """
        layout, literals = self.layout, []
        by_cell = counts.of_cells(mask)
        for kind, features, cells in (
            (_Intervals, layout.packed_ordered, layout.ordered_cells),
            (_Categories, layout.packed_unordered, layout.unordered_cells),
        ):
            if features:
                own = codes[features].astype(np.intp)
                literals.append(kind(features, by_cell[:, cells], own, allowed[cells], covered))
        for j in layout.wide:
            kind = _Intervals if layout.features[j].ordered else _Categories
            tables, own = counts.of_codes(j, mask)[:, None], codes[[j]].astype(np.intp)
            literals.append(kind([j], tables, own, allowed[None, layout.cells_of(j)], covered))
        candidates = sorted(
            (j, gain, batch, i)
            for batch, own_literals in enumerate(literals)
            for i, (j, gain) in enumerate(
                zip(own_literals.features, own_literals.best_gains, strict=True)
            )
        )
        best_gain, best = -np.inf, None
        for j, gain, batch, i in candidates:
            if gain > best_gain + _GAIN_TOLERANCE:
                best_gain, best = gain, (j, batch, i)
        if best is None:
            return None
        j, batch, i = best
        return j, *literals[batch].literal(i, layout.n_codes[j])

    def _drop_literals(
        self, allowed: np.ndarray, literals: Sequence[int], counts: ClassCounts
    ) -> list[int]:
        """Drop literals one by one if the rule remains precise without them; return the others."""
        remaining = list(literals)
        satisfied = self._points_by_literal(allowed, remaining, counts)
        covered = None
        for j in literals:
            if covered is None:
                covered = counts.count_points(_excluded_points(satisfied)).transpose(1, 0, 2)
            at = remaining.index(j)
            # Without a literal, the rule also covers the points that only this literal excludes.
            if self._is_precise((covered[-1] + covered[at]).tolist()):
                allowed[self.layout.cells_of(j)] = True
                del remaining[at]
                satisfied = np.delete(satisfied, at, axis=0)
                covered = None if remaining else covered
        return remaining

    def _points_by_literal(
        self, allowed: np.ndarray, features: Sequence[int], counts: ClassCounts
    ) -> np.ndarray:
        """Return the points that satisfy the literal of each feature, as bits."""
        satisfied = np.empty((len(features), counts.sides.shape[1]), dtype=np.uint64)
        for at, j in enumerate(features):
            own_codes = allowed[self.layout.cells_of(j)]
            satisfied[at] = counts.points.satisfying(self.layout, j, own_codes)
        return satisfied

    def _widen_literals(
        self, allowed: np.ndarray, literals: list[int], counts: ClassCounts
    ) -> None:
        """Allow more codes, one by one, while the rule remains precise.

        The codes that add the largest surplus of agreeing training rows come first. Categories
        without contradicting points are allowed all at once.
        """
        satisfied = self._points_by_literal(allowed, literals, counts)
        while literals:
            extension = self._best_extension(allowed, literals, counts, satisfied)
            if extension is None:
                break
            at, codes = extension
            cells = self.layout.cells_of(literals[at])
            allowed[cells][codes] = True
            if allowed[cells].all():
                literals = [*literals[:at], *literals[at + 1 :]]
                satisfied = np.delete(satisfied, at, axis=0)
            else:
                satisfied[at] |= counts.points.satisfying(
                    self.layout, literals[at], _code_mask(codes, self.layout.n_codes[literals[at]])
                )

    def _best_extension(
        self,
        allowed: np.ndarray,
        literals: Sequence[int],
        counts: ClassCounts,
        satisfied: np.ndarray,
    ) -> tuple[int, list[int]] | None:
        """Return the position of the literal and the codes to add; None if none is precise."""
        masks = _excluded_points(satisfied)
        next_codes = [self._next_codes(allowed[self.layout.cells_of(j)], j) for j in literals]
        covered, *code_counts = counts.of_code_sets(literals, next_codes, masks)
        best_surplus, best_extension = -np.inf, None
        for at, (j, codes, by_code) in enumerate(
            zip(literals, next_codes, code_counts, strict=True)
        ):
            extensions = [([code], by_code[i]) for i, code in enumerate(codes)]
            if not self.layout.features[j].ordered:
                is_uncontradicted = by_code[:, :, 0].sum(axis=1) == 0
                if is_uncontradicted.any():
                    uncontradicted = np.array(codes)[is_uncontradicted].tolist()
                    extensions = [(uncontradicted, by_code[is_uncontradicted].sum(axis=0))]
            for added_codes, added in extensions:
                disagreeing, agreeing = added[0].tolist()  # the training rows
                surplus = agreeing - disagreeing
                if surplus > best_surplus and self._is_precise((covered[0] + added).tolist()):
                    best_surplus, best_extension = surplus, (at, added_codes)
        return best_extension

    def _next_codes(self, own_codes: np.ndarray, feature: int) -> list[int]:
        """Return the codes that may be allowed next."""
        if not self.layout.features[feature].ordered:
            return np.flatnonzero(~own_codes).tolist()
        first = int(own_codes.argmax())
        neighbors = first - 1, first + int(own_codes.sum())
        return [code for code in neighbors if 0 <= code < len(own_codes)]


def _code_mask(codes: Sequence[int] | np.ndarray, n_codes: int) -> np.ndarray:
    result = np.zeros(n_codes, dtype=bool)
    result[codes] = True
    return result


def _excluded_points(satisfied: np.ndarray) -> np.ndarray:
    """Return the points that only one literal excludes, per literal, and last the covered points.

    Parameters
    ----------
    satisfied : ndarray of uint64, shape (n_literals, n_words)
        Points that satisfy each literal, as bits.

    Returns
    -------
    ndarray of uint64, shape (n_literals + 1, n_words)
        The sets of points, as bits.
    """
    before = np.bitwise_and.accumulate(satisfied, axis=0)
    after = np.bitwise_and.accumulate(satisfied[::-1], axis=0)[::-1]
    result = np.empty((len(satisfied) + 1, satisfied.shape[1]), dtype=np.uint64)
    result[:-1] = ~satisfied
    result[1:-1] &= before[:-1]
    result[:-2] &= after[1:]
    result[-1] = before[-1]
    return result


class _Intervals:
    """Literals of ordered features: codes up to or from the row's code.

    Parameters
    ----------
    features : sequence of int
        The features.
    tables : ndarray of shape (2 kinds, n_features, n_codes, 2 sides)
        Counts by code, per kind of points and side (disagreeing, agreeing).
    codes : ndarray of int, shape (n_features,)
        Codes of the row.
    allowed : ndarray of bool, shape (n_features, n_codes)
        Codes that are allowed so far.
    covered : ndarray of shape (2 kinds, 2 sides)
        Counts of the points that the premise covers so far.

    Attributes
    ----------
    best_gains : list of float
        Gain of the best literal of each feature; minus infinity if there is none.
    """

    def __init__(
        self,
        features: Sequence[int],
        tables: np.ndarray,
        codes: np.ndarray,
        allowed: np.ndarray,
        covered: np.ndarray,
    ) -> None:
        self.features, self._allowed = features, allowed
        self._n_codes = n_codes = tables.shape[2]
        all_codes = np.arange(n_codes)
        # Literals "up to a code" at or above the row's code, then "from a code" at or below it.
        first = allowed.argmax(axis=1)[:, None]
        last = first + allowed.sum(axis=1)[:, None] - 1
        code = codes[:, None]
        is_valid = np.concatenate(
            [(all_codes >= code) & (all_codes < last), (all_codes > first) & (all_codes <= code)],
            axis=1,
        )
        cumulative = tables.cumsum(axis=2)  # sums of integers are exact
        self._counts = np.concatenate(
            [cumulative, cumulative[:, :, -1:] - cumulative + tables], axis=2
        )
        self.best_gains, self._best = _best_choices(self._counts, is_valid, covered)

    def literal(self, at: int, n_codes: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the allowed codes of the best literal of a feature, and its counts."""
        best = self._best[at]
        side, bound = divmod(best, self._n_codes)
        own_codes = np.arange(n_codes)
        is_chosen = (own_codes >= bound) if side else (own_codes <= bound)
        return self._allowed[at, :n_codes] & is_chosen, self._counts[:, at, best]


class _Categories:
    """Literals of categorical features: sets of categories with the row's category.

    The first set is the category itself. Each further set adds the purest of the other categories.
    For the parameters and attributes, see :class:`_Intervals`.
    """

    def __init__(
        self,
        features: Sequence[int],
        tables: np.ndarray,
        codes: np.ndarray,
        allowed: np.ndarray,
        covered: np.ndarray,
    ) -> None:
        self.features = features
        scale = np.maximum(1.0, covered.sum(axis=1))
        counts = tables[0] / scale[0] + tables[1] / scale[1]
        total = counts[..., 0] + counts[..., 1]
        share = np.where(total > 0, counts[..., 1] / np.where(total > 0, total, 1), -1.0)
        share[np.arange(len(features)), codes] = 2.0  # the row's category is the first
        share[~allowed] = -2.0  # forbidden categories are the last
        self._order = np.argsort(-share, axis=1, kind="stable")
        self._counts = np.take_along_axis(tables, self._order[None, :, :, None], axis=2)
        self._counts = self._counts.cumsum(axis=2)  # sums of integers are exact
        n_allowed = allowed.sum(axis=1)
        sizes = np.arange(1, tables.shape[2] + 1)
        is_valid = sizes < n_allowed[:, None]
        for row in np.flatnonzero(n_allowed > _MAX_CATEGORY_SETS):
            tried_sizes = np.geomspace(1, n_allowed[row] - 1, _MAX_CATEGORY_SETS).astype(np.intp)
            is_valid[row] &= np.isin(sizes, tried_sizes)
        self.best_gains, self._best = _best_choices(self._counts, is_valid, covered)

    def literal(self, at: int, n_codes: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the allowed codes of the best literal of a feature, and its counts."""
        best = self._best[at]
        return _code_mask(self._order[at, : best + 1], n_codes), self._counts[:, at, best]


def _best_choices(
    counts: np.ndarray, is_valid: np.ndarray, covered: np.ndarray
) -> tuple[list[float], list[int]]:
    """Return the largest gain of the valid choices of each feature, and the first such choice."""
    gains = np.where(is_valid, _gains(counts, covered), -np.inf)
    at = (gains >= gains.max(axis=1, keepdims=True) - _GAIN_TOLERANCE).argmax(axis=1)
    return gains[np.arange(len(gains)), at].tolist(), at.tolist()


def _gains(counts: np.ndarray, covered: np.ndarray) -> np.ndarray:
    """Return FOIL's information gain of each choice, based on the number of training rows.

    In shares, training rows and queried points have equal weight, whatever their numbers.

    Parameters
    ----------
    counts : ndarray of shape (2 kinds, n_features, n_choices, 2 sides)
        Counts of the covered points that satisfy the literal.
    covered : ndarray of shape (2 kinds, 2 sides)
        Counts of all points that the premise covers so far.
    """
    scale = np.maximum(1.0, covered.sum(axis=1))
    before = covered[0] / scale[0] + covered[1] / scale[1]
    after = counts[0] / scale[0] + counts[1] / scale[1]
    share = np.maximum(after[..., 1], _TINY) / np.maximum(after[..., 0] + after[..., 1], _TINY)
    share_before = np.maximum(before[1], _TINY) / np.maximum(before[0] + before[1], _TINY)
    return np.asarray(counts[0, ..., 1] * (np.log2(share) - np.log2(share_before)))
