"""Growing one premise around a row.

A premise is a list with the allowed codes of every feature; a feature with all codes allowed has no
literal. Premises are evaluated on two kinds of points, training rows and queried points. The share
that agrees with the rule's class must reach the minimum precision on each of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np

from skescore.extractors.real._codes import CodedFeature
from skescore.extractors.real._packed import ClassCounts, CodeLayout, PackedPoints

#: Allowed codes of each feature.
Premise: TypeAlias = list[np.ndarray]
#: Feature, allowed codes, gain, and counts of the premise with the literal.
Literal: TypeAlias = tuple[int, np.ndarray, float, np.ndarray]
#: Difference of gains below which they are ties.
_EQUAL = 1e-9
#: Largest number of sets of categories that are compared.
_CHOICES = 64


class PremiseGrower:
    """Grow rules from rows: premises that are precise on both kinds of points."""

    def __init__(self, layout: CodeLayout, rows: PackedPoints, min_precision: float) -> None:
        self.layout = layout
        self.features: Sequence[CodedFeature] = layout.features
        self.rows = rows
        self.min_precision = min_precision

    def allows(self, codes: np.ndarray, output: int, queried: PackedPoints) -> bool:
        """Return whether queried points do not contradict a row's full conjunction."""
        if not queried.n_points:
            return True
        full = [np.arange(n) == code for n, code in zip(self.layout.n_codes, codes, strict=True)]
        same = queried.matching(self.layout, full)
        return self._is_precise(ClassCounts(self.layout, queried, output).pairs(same[None])[:, 0])

    def grow(self, codes: np.ndarray, output: int, queried: PackedPoints) -> Premise | None:
        """Generalize the conjunction of all values of a row as far as the evidence allows.

        Return None if even the full conjunction is not precise.
        """
        points = self.rows.joined(queried) if queried.n_points else self.rows
        counts = ClassCounts(self.layout, points, output)
        literals, premise = self._add_literals(codes, counts)
        if premise is None:
            return None
        # The literals that were added last are the least important.
        premise = self._drop(premise, literals[::-1], counts)
        return self._widen(premise, counts)

    def _is_precise(self, pairs: Any) -> bool:
        """Return whether enough points of each kind agree, which is true without points."""
        # Shares such as 0.95 are not exact in floating point, but counts are.
        return all(
            agreeing >= self.min_precision * (against + agreeing) * (1 - 1e-12)
            for against, agreeing in pairs
        )

    def _add_literals(
        self, codes: np.ndarray, counts: ClassCounts
    ) -> tuple[list[int], Premise | None]:
        """Add literals of the full conjunction, the best first, until the premise is precise.

        Literals have the width with the largest gain: codes up to or from the row's code, or a set
        of categories with the row's category.
        """
        premise: Premise = [np.ones(n, dtype=bool) for n in self.layout.n_codes]
        order: list[int] = []
        mask = np.full(counts.sides.shape[1], ~np.uint64(0))
        pairs = counts.pairs(mask[None])[:, 0]
        while not self._is_precise(pairs.tolist()):
            literal = self._best_literal(codes, premise, counts, mask)
            if literal is None:
                return order, None
            j, premise[j], _, pairs = literal
            order = [*(k for k in order if k != j), j]
            mask = mask & counts.points.satisfying(self.layout, j, premise[j])
        return order, premise

    def _best_literal(
        self, codes: np.ndarray, premise: Premise, counts: ClassCounts, mask: np.ndarray
    ) -> Literal | None:
        """Return the literal with the largest gain; None if none is left."""
        best: Literal | None = None
        for literal in sorted(self._literals(codes, premise, counts, mask), key=lambda one: one[0]):
            if best is None or literal[2] > best[2] + _EQUAL:
                best = literal
        return best

    def _literals(
        self, codes: np.ndarray, premise: Premise, counts: ClassCounts, mask: np.ndarray
    ) -> Iterator[Literal]:
        """Yield the best literal of each feature."""
        layout = self.layout
        by_cell = counts.of_cells(mask)
        if layout.packed_ordered:
            tables = by_cell[:, layout.ordered_cells]
            yield from _ordered_literals(layout.packed_ordered, tables, codes, premise)
        for j in layout.varying:
            if (j in layout.starts and self.features[j].ordered) or premise[j].sum() == 1:
                continue
            is_packed = j in layout.starts
            tables = by_cell[:, layout.cells_of(j)] if is_packed else counts.of_codes(j, mask)
            if self.features[j].ordered:
                yield from _ordered_literals([j], tables[:, None], codes, premise)
            else:
                yield _category_literal(j, tables, int(codes[j]), premise[j])

    def _drop(self, premise: Premise, literals: Sequence[int], counts: ClassCounts) -> Premise:
        """Drop literals one by one if the rule remains precise without them."""
        premise, remaining = list(premise), list(literals)
        words = {j: counts.points.satisfying(self.layout, j, premise[j]) for j in remaining}
        pairs = None
        for j in literals:
            if pairs is None:
                masks = _excluded_points(np.stack([words[k] for k in remaining]))
                pairs = counts.pairs(masks).transpose(1, 0, 2)
            # Without the literal, the points that only it excludes are covered as well.
            if self._is_precise((pairs[-1] + pairs[remaining.index(j)]).tolist()):
                premise[j] = np.ones_like(premise[j])
                remaining.remove(j)
                pairs = None
        return premise

    def _widen(self, premise: Premise, counts: ClassCounts) -> Premise:
        """Allow more codes, one by one, while the rule stays precise; those with most rows first.

        Categories without contradicting points are allowed all at once.
        """
        premise = [allowed.copy() for allowed in premise]
        literals = [j for j in self.layout.varying if not premise[j].all()]
        words = {j: counts.points.satisfying(self.layout, j, premise[j]) for j in literals}
        while literals:
            masks = _excluded_points(np.stack([words[j] for j in literals]))
            extension = self._best_extension(premise, literals, counts, masks)
            if extension is None:
                break
            j, codes = extension
            premise[j][codes] = True
            words[j] = counts.points.satisfying(self.layout, j, premise[j])
            literals = [j for j in literals if not premise[j].all()]
        return premise

    def _best_extension(
        self,
        premise: Premise,
        literals: Sequence[int],
        counts: ClassCounts,
        masks: np.ndarray,
    ) -> tuple[int, list[int]] | None:
        """Return the feature and codes to allow next; None if no extension is precise."""
        candidates = self._extensions(premise, literals, counts, masks)
        (covered,) = counts.pairs(masks[-1:]).transpose(1, 0, 2)
        best_surplus, best_extension = -np.inf, None
        for j, codes, added in candidates:
            if not self._is_precise((covered + added).tolist()):
                continue
            against, agreeing = added[0]  # the training rows
            if agreeing - against > best_surplus:
                best_surplus, best_extension = agreeing - against, (j, codes)
        return best_extension

    def _extensions(
        self,
        premise: Premise,
        literals: Sequence[int],
        counts: ClassCounts,
        masks: np.ndarray,
    ) -> list[tuple[int, list[int], np.ndarray]]:
        """Return features and codes that may be allowed next, and the counts of added points."""
        result: list[tuple[int, list[int], np.ndarray]] = []
        for j, mask in zip(literals, masks[:-1], strict=True):
            allowed = premise[j]
            if not self.features[j].ordered:
                gains = counts.of_codes(j, mask)
                is_free = ~allowed & (gains[..., 0].sum(axis=0) == 0)
                free = np.flatnonzero(is_free).tolist()
                codes = [free] if free else [[code] for code in np.flatnonzero(~allowed).tolist()]
                result.extend((j, some, gains[:, some].sum(axis=1)) for some in codes)
                continue
            first = int(allowed.argmax())
            last = len(allowed) - 1 - int(allowed[::-1].argmax())
            neighbors = [code for code in (first - 1, last + 1) if 0 <= code < len(allowed)]
            added = counts.of_some_codes(j, neighbors, mask)
            result.extend((j, [code], added[:, at]) for at, code in enumerate(neighbors))
        return result


def _excluded_points(words: np.ndarray) -> np.ndarray:
    """Return the points that only a literal excludes, for each, and last those of the premise.

    Parameters
    ----------
    words : ndarray of uint64, shape (n_literals, n_words)
        The points that satisfy each literal.

    Returns
    -------
    ndarray of uint64, shape (n_literals + 1, n_words)
        The sets of points.
    """
    before = np.bitwise_and.accumulate(words, axis=0)
    after = np.bitwise_and.accumulate(words[::-1], axis=0)[::-1]
    result = np.empty((len(words) + 1, words.shape[1]), dtype=np.uint64)
    result[:-1] = ~words
    result[1:-1] &= before[:-1]
    result[:-2] &= after[1:]
    result[-1] = before[-1]
    return result


def _ordered_literals(
    features: Sequence[int], tables: np.ndarray, codes: np.ndarray, premise: Premise
) -> Iterator[Literal]:
    """Yield the best literal of each ordered feature.

    Parameters
    ----------
    features : sequence of int
        The features.
    tables : ndarray of shape (2, n_features, n_codes, 2)
        Counts by code.
    codes : ndarray of shape (n_all_features,)
        Codes of the row.
    premise : list of ndarray
        Allowed codes.
    """
    n_codes = tables.shape[2]
    all_codes = np.arange(n_codes)
    # Literals up to a code at or above the row's, then from a code at or below it.
    first = np.array([premise[j].argmax() for j in features])[:, None]
    n_allowed = np.array([premise[j].sum() for j in features])[:, None]
    last = first + n_allowed - 1
    code = codes[features].astype(np.intp)[:, None]
    valid = np.hstack(
        [(all_codes >= code) & (all_codes < last), (all_codes > first) & (all_codes <= code)]
    )
    upto = tables.cumsum(axis=2)  # sums of integers are exact
    remaining = np.concatenate([upto, upto[:, :, -1:] - upto + tables], axis=2)
    gains = np.where(valid, _gains(remaining, upto[:, :, -1]), -np.inf)
    at = (gains >= gains.max(axis=1, keepdims=True) - _EQUAL).argmax(axis=1)
    for i, j in enumerate(features):
        if n_allowed[i, 0] == 1:
            continue
        side, bound = divmod(int(at[i]), n_codes)
        own_codes = np.arange(len(premise[j]))
        chosen = premise[j] & ((own_codes >= bound) if side else (own_codes <= bound))
        yield j, chosen, float(gains[i, at[i]]), remaining[:, i, at[i]]


def _category_literal(feature: int, tables: np.ndarray, code: int, allowed: np.ndarray) -> Literal:
    """Return the set of categories with the largest gain."""
    choices = _choices(allowed, code, tables)
    remaining = np.stack([choices @ table for table in tables])[:, None]
    gains = _gains(remaining, tables.sum(axis=1)[:, None])[0]
    at = int(np.argmax(gains >= gains.max() - _EQUAL))
    return feature, choices[at], float(gains[at]), remaining[:, 0, at]


def _choices(allowed: np.ndarray, code: int, tables: np.ndarray) -> np.ndarray:
    """Return narrower sets of categories with a given category, one per row."""
    codes = np.arange(len(allowed))
    # The category itself, then with the purest other category, the next one, ...
    counts = sum(table / max(1.0, table.sum()) for table in tables)
    total = counts.sum(axis=1)
    share = np.where(total > 0, counts[:, 1] / np.where(total > 0, total, 1), -1.0)
    share[code] = 2.0
    share[~allowed] = -2.0
    rank = np.empty(len(codes), dtype=np.intp)
    rank[np.lexsort((codes, -share))] = codes
    n_allowed = int(allowed.sum())
    sizes = np.arange(1, n_allowed)
    if n_allowed > _CHOICES:
        sizes = np.unique(np.geomspace(1, n_allowed - 1, _CHOICES).astype(np.intp))
    choices = (rank < sizes[:, None]) & allowed
    return choices[choices.sum(axis=1) < allowed.sum()]


def _gains(remaining: np.ndarray, totals: np.ndarray) -> np.ndarray:
    """Return FOIL's information gain of each choice.

    Rows and queried points have equal weight, whatever their numbers.

    Parameters
    ----------
    remaining : ndarray of shape (2, n_features, n_choices, 2)
        Counts with the literal.
    totals : ndarray of shape (2, n_features, 2)
        Counts without it.
    """
    scale = np.maximum(1.0, totals.sum(axis=2))
    before = (totals / scale[..., None]).sum(axis=0)
    after = (remaining / scale[..., None, None]).sum(axis=0)
    tiny = 1e-12
    share = np.maximum(after[..., 1], tiny) / np.maximum(after.sum(axis=-1), tiny)
    share_before = np.maximum(before[:, 1], tiny) / np.maximum(before.sum(axis=1), tiny)
    return np.asarray(remaining[0][..., 1] * (np.log2(share) - np.log2(share_before)[:, None]))
