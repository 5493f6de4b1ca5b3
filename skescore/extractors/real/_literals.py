"""Growing one conjunctive rule around a row: which of its literals are needed, and how wide.

A premise is a list with the allowed codes of every feature; a feature whose codes are all allowed
has no literal. What a premise says of the black box is judged by two kinds of evidence, training
rows and queried points, and each by itself must agree with the rule's class in a share of `least`
or more.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from skescore.extractors.real._codes import CodedFeature, Evidence

#: Allowed codes of each feature.
Premise: TypeAlias = list[np.ndarray]
#: Gains that differ by less are equal, so that rounding does not decide.
_EQUAL = 1e-9
#: Literals are ranked by so many points at most; what they are judged by are all points.
_SAMPLE = 20_000
#: So many codes of points are counted at a time.
_CELLS = 1 << 20
#: So many sets of categories at most are compared at a time.
_CHOICES = 64


def inside(evidence: Evidence, premise: Premise) -> np.ndarray:
    """Indices of the points that a premise holds for."""
    index: np.ndarray | None = None
    for codes, allowed in zip(evidence.codes, premise, strict=True):
        if not allowed.all():
            held = allowed[codes] if index is None else allowed[codes[index]]
            index = np.flatnonzero(held) if index is None else index[held]
    return np.arange(len(evidence)) if index is None else index


class _Kind:
    """One kind of evidence, as seen by the rule of one class.

    Counts come in pairs: points for which the black box predicts another class, and the class.
    """

    def __init__(self, evidence: Evidence, output: int) -> None:
        self.evidence = evidence
        self.agrees = (evidence.labels == output).astype(np.intp)

    def pair(self, index: np.ndarray) -> np.ndarray:
        """Weight of some points that do not and that do agree."""
        return np.bincount(self.agrees[index], weights=self.evidence.weights[index], minlength=2)

    def histogram(
        self,
        feature: int,
        n_codes: int,
        index: np.ndarray,
        weights: np.ndarray | None = None,
    ) -> np.ndarray:
        """Weights of some points by code of a feature, shape (n_codes, 2)."""
        if weights is None:
            weights = self.evidence.weights[index]
        cells = self.evidence.codes[feature][index].astype(np.intp) * 2 + self.agrees[index]
        return np.bincount(cells, weights=weights, minlength=2 * n_codes).reshape(n_codes, 2)

    def histograms(
        self,
        features: Sequence[int],
        n_codes: int,
        index: np.ndarray,
        weights: np.ndarray,
    ) -> np.ndarray:
        """The same for several features, shape (n_features, n_codes, 2)."""
        cells = self.evidence.codes[features][:, index].astype(np.intp)
        cells += (np.arange(len(features)) * n_codes)[:, None]
        cells *= 2
        cells += self.agrees[index]
        counts = np.bincount(
            cells.ravel(), np.tile(weights, len(features)), 2 * n_codes * len(features)
        )
        return counts.reshape(len(features), n_codes, 2)

    def sample(self, index: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Some points with their weights, evenly spaced by weight if they are too many."""
        weights = self.evidence.weights[index]
        if len(index) <= _SAMPLE:
            return index, weights
        total = np.cumsum(weights)
        at = (np.arange(_SAMPLE) + 0.5) * (total[-1] / _SAMPLE)
        return index[np.searchsorted(total, at)], np.ones(_SAMPLE)

    def nearby(self, premise: Premise, literals: Sequence[int]) -> tuple[np.ndarray, list]:
        """What holds, and what would be gained by allowing more codes of one feature.

        Returns the pair of the premise, and for each literal a histogram of the points that only
        this literal keeps out.
        """
        codes = self.evidence.codes
        kept_out = np.zeros(len(self.evidence), dtype=np.uint16)
        for j in literals:
            kept_out += ~premise[j][codes[j]]
        held = self.pair(np.flatnonzero(kept_out == 0))
        by_one = np.flatnonzero(kept_out == 1)
        gains = []
        for j in literals:
            by_this = by_one[~premise[j][codes[j][by_one]]]
            gains.append(self.histogram(j, len(premise[j]), by_this))
        return held, gains


def _precise(pair: np.ndarray, least: float) -> bool:
    """Whether enough of the points agree; where there are none, nothing contradicts."""
    against, agreeing = pair
    # Shares such as 0.95 are no exact floats; the counts are.
    return bool(agreeing >= least * (against + agreeing) * (1 - 1e-12))


class PremiseGrower:
    """Makes rules from rows: premises of which a share of `least` of either evidence agrees."""

    def __init__(self, features: Sequence[CodedFeature], rows: Evidence, least: float) -> None:
        self.features = features
        self.rows = rows
        self.least = least

    def allows(self, codes: np.ndarray, output: int, queried: Evidence) -> bool:
        """Whether a row's full conjunction is not contradicted by queried points."""
        same = np.flatnonzero((queried.codes == codes[:, None]).all(axis=0))
        return _precise(_Kind(queried, output).pair(same), self.least)

    def grow(self, codes: np.ndarray, output: int, queried: Evidence) -> Premise | None:
        """Generalise the conjunction of all of a row's values as far as the evidence allows.

        Returns None if, down to the full conjunction, all that was tried holds for too much that
        the black box predicts differently.
        """
        kinds = [_Kind(self.rows, output), _Kind(queried, output)]
        literals, premise = self._needed(codes, kinds)
        if premise is None:
            return None
        # The literals that came last are the least needed.
        premise = self._drop(premise, literals[::-1], kinds)
        return self._widen(premise, kinds)

    def _needed(
        self, codes: np.ndarray, kinds: Sequence[_Kind]
    ) -> tuple[list[int], Premise | None]:
        """Of the full conjunction keep literals, the most telling first, until it is precise.

        Literals are kept as wide as they are worth most: up to or from the row's code on, or the
        row's category with others that go with it.
        """
        premise: Premise = [np.ones(len(f.counts), dtype=bool) for f in self.features]
        order: list[int] = []
        indices = [np.arange(len(kind.evidence)) for kind in kinds]
        pairs = [kind.pair(index) for kind, index in zip(kinds, indices, strict=True)]
        while not all(_precise(pair, self.least) for pair in pairs):
            literal = self._most_telling(codes, premise, kinds, indices)
            if literal is None:
                return order, None
            j, premise[j] = literal
            order = [*(k for k in order if k != j), j]
            for k, kind in enumerate(kinds):
                indices[k] = indices[k][premise[j][kind.evidence.codes[j][indices[k]]]]
                pairs[k] = kind.pair(indices[k])
        return order, premise

    def _most_telling(
        self,
        codes: np.ndarray,
        premise: Premise,
        kinds: Sequence[_Kind],
        indices: Sequence[np.ndarray],
    ) -> tuple[int, np.ndarray] | None:
        """The literal that gains most where a premise holds; None if none is left."""
        samples = [kind.sample(index) for kind, index in zip(kinds, indices, strict=True)]
        ordered = self._ordered_choices(codes, premise, kinds, samples)
        best: tuple[float, int, np.ndarray] | None = None
        for j, feature in enumerate(self.features):
            if j in ordered:
                gain, chosen = ordered[j]
                if best is None or gain > best[0] + _EQUAL:
                    best = gain, j, chosen
                continue
            if feature.ordered or premise[j].sum() == 1:
                continue
            histograms = [
                kind.histogram(j, len(feature.counts), *sample)
                for kind, sample in zip(kinds, samples, strict=True)
            ]
            choices = _choices(premise[j], int(codes[j]), histograms)
            gains = _gains(
                [(choices @ h)[None] for h in histograms], [h.sum(axis=0)[None] for h in histograms]
            )[0]
            at = int(np.argmax(gains >= gains.max() - _EQUAL))
            if best is None or gains[at] > best[0] + _EQUAL:
                best = float(gains[at]), j, choices[at]
        return None if best is None else best[1:]

    def _ordered_choices(
        self,
        codes: np.ndarray,
        premise: Premise,
        kinds: Sequence[_Kind],
        samples: Sequence[tuple[np.ndarray, np.ndarray]],
    ) -> dict[int, tuple[float, np.ndarray]]:
        """The best literal of each ordered feature and its gain, of many features at a time."""
        wanted = [j for j, f in enumerate(self.features) if f.ordered and premise[j].sum() > 1]
        n_codes = max((len(premise[j]) for j in wanted), default=0)
        size = max(1, _CELLS // max(1, n_codes, *(len(index) for index, _ in samples)))
        found = {}
        every = np.arange(n_codes)
        for start in range(0, len(wanted), size):
            some = wanted[start : start + size]
            allowed = np.zeros((len(some), n_codes), dtype=bool)
            for i, j in enumerate(some):
                allowed[i, : len(premise[j])] = premise[j]
            code = codes[some].astype(np.intp)[:, None]
            # Up to a code not below the row's, then from a code not above it; less than is allowed.
            last = n_codes - 1 - allowed[:, ::-1].argmax(axis=1)[:, None]
            first = allowed.argmax(axis=1)[:, None]
            valid = np.hstack([(every >= code) & (every < last), (every > first) & (every <= code)])
            tables = []
            for kind, (index, weights) in zip(kinds, samples, strict=True):
                table = kind.histograms(some, n_codes, index, weights)
                upto = table.cumsum(axis=1)  # of whole numbers, so that no order of sums matters
                tables.append(np.concatenate([upto, upto[:, -1:] - upto + table], axis=1))
            gains = np.where(valid, _gains(tables, [t[:, n_codes - 1] for t in tables]), -np.inf)
            at = (gains >= gains.max(axis=1, keepdims=True) - _EQUAL).argmax(axis=1)
            for i, j in enumerate(some):
                side, bound = divmod(int(at[i]), n_codes)
                own = np.arange(len(premise[j]))
                chosen = premise[j] & ((own >= bound) if side else (own <= bound))
                found[j] = float(gains[i, at[i]]), chosen
        return found

    def _drop(self, premise: Premise, literals: Sequence[int], kinds: Sequence[_Kind]) -> Premise:
        """Drop literals, one after the other, without which the rule is still precise."""
        premise, literals = list(premise), list(literals)
        nearby = None
        for j in list(literals):
            if nearby is None:
                nearby = [kind.nearby(premise, literals) for kind in kinds]
            at = literals.index(j)
            if all(_precise(held + gains[at].sum(axis=0), self.least) for held, gains in nearby):
                premise[j] = np.ones_like(premise[j])
                literals.remove(j)
                nearby = None
        return premise

    def _widen(self, premise: Premise, kinds: Sequence[_Kind]) -> Premise:
        """Allow more codes, one by one, as long as the rule stays precise; most rows first.

        Categories that nothing speaks against are allowed all at once.
        """
        premise = [allowed.copy() for allowed in premise]
        while True:
            literals = [j for j, allowed in enumerate(premise) if not allowed.all()]
            nearby = [kind.nearby(premise, literals) for kind in kinds]
            best: tuple[float, int, list[int]] | None = None
            for at, j in enumerate(literals):
                for codes in self._extensions(j, premise[j], [gains[at] for _, gains in nearby]):
                    if all(
                        _precise(held + gains[at][codes].sum(axis=0), self.least)
                        for held, gains in nearby
                    ):
                        against, agreeing = nearby[0][1][at][codes].sum(axis=0)
                        if best is None or agreeing - against > best[0]:
                            best = float(agreeing - against), j, codes
            if best is None:
                return premise
            premise[best[1]][best[2]] = True

    def _extensions(
        self, feature: int, allowed: np.ndarray, gains: Sequence[np.ndarray]
    ) -> list[list[int]]:
        """Codes that may be allowed next: beside an interval; categories without objections."""
        if self.features[feature].ordered:
            codes = np.flatnonzero(allowed)
            beside = int(codes[0]) - 1, int(codes[-1]) + 1
            return [[code] for code in beside if 0 <= code < len(allowed)]
        objections = sum(gain[:, 0] for gain in gains)
        free = np.flatnonzero(~allowed & (objections == 0)).tolist()
        return [free] if free else [[code] for code in np.flatnonzero(~allowed).tolist()]


def _choices(allowed: np.ndarray, code: int, histograms: Sequence[np.ndarray]) -> np.ndarray:
    """Narrower literals that hold for a category, one per row."""
    every = np.arange(len(allowed))
    # The category itself, then with the one most of the class besides, the one after it, ...
    counts = sum(h / max(1.0, h.sum()) for h in histograms)
    total = counts.sum(axis=1)
    share = np.where(total > 0, counts[:, 1] / np.where(total > 0, total, 1), -1.0)
    share[code] = 2.0
    share[~allowed] = -2.0
    rank = np.empty(len(every), dtype=np.intp)
    rank[np.lexsort((every, -share))] = every
    n_allowed = int(allowed.sum())
    sizes = np.arange(1, n_allowed)
    if n_allowed > _CHOICES:
        sizes = np.unique(np.geomspace(1, n_allowed - 1, _CHOICES).astype(np.intp))
    choices = (rank < sizes[:, None]) & allowed
    return choices[choices.sum(axis=1) < allowed.sum()]


def _gains(kept: Sequence[np.ndarray], totals: Sequence[np.ndarray]) -> np.ndarray:
    """FOIL's gain of each choice: how much surer of the class, times its rows that stay.

    Rows and queried points count alike, however many there are of each.
    """
    before: Any = 0.0
    after: Any = 0.0
    for some, total in zip(kept, totals, strict=True):
        scale = np.maximum(1.0, total.sum(axis=1))[:, None]
        before = before + total / scale
        after = after + some / scale[:, None]
    tiny = 1e-12
    share = np.maximum(after[..., 1], tiny) / np.maximum(after.sum(axis=-1), tiny)
    known = np.maximum(before[:, 1], tiny) / np.maximum(before.sum(axis=1), tiny)
    return np.asarray(kept[0][..., 1] * (np.log2(share) - np.log2(known)[:, None]))
