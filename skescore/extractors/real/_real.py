"""REAL: rules that generalize single rows with queries of the black box."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, TypeAlias

import numpy as np
import pandas as pd
from sklearn.base import clone

from skescore import _validation as check
from skescore._deadline import check_deadline
from skescore.extractors._base import BaseExtractor, Extraction, documented
from skescore.extractors._discretizer import Discretizer
from skescore.extractors._sampling import N_QUERIES
from skescore.extractors._sharing import Sharing, digest, once
from skescore.extractors.real._codes import (
    CodedFeature,
    Evidence,
    code_rows,
    distinct_rows,
    variants,
)
from skescore.rules import Rule, RuleSet, RuleStatistics

# --- growing one premise around a row -------------------------------------------------------------

# A premise is a list with the allowed codes of every feature; a feature with all codes allowed has
# no literal. Premises are evaluated on two kinds of evidence, training rows and queried points. The
# share that agrees with the rule's class must reach the minimum precision on each of them.

#: Allowed codes of each feature.
Premise: TypeAlias = list[np.ndarray]
#: Difference of gains below which they are ties.
_EQUAL = 1e-9
#: Largest number of points for ranking literals; precision is computed on all points.
_SAMPLE = 20_000
#: Number of codes that are counted at a time.
_CELLS = 1 << 20
#: Largest number of sets of categories that are compared.
_CHOICES = 64


def inside(evidence: Evidence, premise: Premise) -> np.ndarray:
    """Return the indices of the points that satisfy a premise."""
    index: np.ndarray | None = None
    for codes, allowed in zip(evidence.codes, premise, strict=True):
        if not allowed.all():
            satisfies = allowed[codes] if index is None else allowed[codes[index]]
            index = np.flatnonzero(satisfies) if index is None else index[satisfies]
    return np.arange(len(evidence)) if index is None else index


class _ClassEvidence:
    """One kind of evidence for a rule of one class.

    Counts are pairs: points with another predicted class, and points with the class.
    """

    def __init__(self, evidence: Evidence, output: int) -> None:
        self.evidence = evidence
        self.agrees = (evidence.labels == output).astype(np.intp)

    def pair(self, index: np.ndarray) -> np.ndarray:
        """Return the weights of points that disagree and that agree."""
        return np.bincount(self.agrees[index], weights=self.evidence.weights[index], minlength=2)

    def histogram(
        self,
        feature: int,
        n_codes: int,
        index: np.ndarray,
        weights: np.ndarray | None = None,
    ) -> np.ndarray:
        """Return the weights of points by code of a feature, shape (n_codes, 2)."""
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
        """Return the histograms of several features, shape (n_features, n_codes, 2)."""
        cells = self.evidence.codes[features][:, index].astype(np.intp)
        cells += (np.arange(len(features)) * n_codes)[:, None]
        cells *= 2
        cells += self.agrees[index]
        counts = np.bincount(
            cells.ravel(), np.tile(weights, len(features)), 2 * n_codes * len(features)
        )
        return counts.reshape(len(features), n_codes, 2)

    def sample(self, index: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return points with weights; many points are thinned evenly by weight."""
        weights = self.evidence.weights[index]
        if len(index) <= _SAMPLE:
            return index, weights
        total = np.cumsum(weights)
        at = (np.arange(_SAMPLE) + 0.5) * (total[-1] / _SAMPLE)
        return index[np.searchsorted(total, at)], np.ones(_SAMPLE)

    def nearby(self, premise: Premise, literals: Sequence[int]) -> tuple[np.ndarray, list]:
        """Return the counts of a premise and the counts that each literal excludes.

        These are the pair of the premise, and for each literal a histogram of the points that only
        this literal excludes.
        """
        codes = self.evidence.codes
        n_violated = np.zeros(len(self.evidence), dtype=np.uint16)
        for j in literals:
            n_violated += ~premise[j][codes[j]]
        pair = self.pair(np.flatnonzero(n_violated == 0))
        violating_one = np.flatnonzero(n_violated == 1)
        gains = []
        for j in literals:
            excluded = violating_one[~premise[j][codes[j][violating_one]]]
            gains.append(self.histogram(j, len(premise[j]), excluded))
        return pair, gains


def _precise(pair: np.ndarray, min_precision: float) -> bool:
    """Return whether enough points agree, which is true without points."""
    against, agreeing = pair
    # Shares such as 0.95 are not exact in floating point, but counts are.
    return bool(agreeing >= min_precision * (against + agreeing) * (1 - 1e-12))


class PremiseGrower:
    """Grow rules from rows: premises that are precise on both kinds of evidence."""

    def __init__(
        self, features: Sequence[CodedFeature], rows: Evidence, min_precision: float
    ) -> None:
        self.features = features
        self.rows = rows
        self.min_precision = min_precision

    def allows(self, codes: np.ndarray, output: int, queried: Evidence) -> bool:
        """Return whether queried points do not contradict a row's full conjunction."""
        same = np.flatnonzero((queried.codes == codes[:, None]).all(axis=0))
        return _precise(_ClassEvidence(queried, output).pair(same), self.min_precision)

    def grow(self, codes: np.ndarray, output: int, queried: Evidence) -> Premise | None:
        """Generalize the conjunction of all values of a row as far as the evidence allows.

        Return None if even the full conjunction is not precise.
        """
        kinds = [_ClassEvidence(self.rows, output), _ClassEvidence(queried, output)]
        literals, premise = self._add_literals(codes, kinds)
        if premise is None:
            return None
        # The literals that were added last are the least important.
        premise = self._drop(premise, literals[::-1], kinds)
        return self._widen(premise, kinds)

    def _add_literals(
        self, codes: np.ndarray, kinds: Sequence[_ClassEvidence]
    ) -> tuple[list[int], Premise | None]:
        """Add literals of the full conjunction, the best first, until the premise is precise.

        Literals have the width with the largest gain: codes up to or from the row's code, or a set
        of categories with the row's category.
        """
        premise: Premise = [np.ones(len(f.counts), dtype=bool) for f in self.features]
        order: list[int] = []
        indices = [np.arange(len(kind.evidence)) for kind in kinds]
        pairs = [kind.pair(index) for kind, index in zip(kinds, indices, strict=True)]
        while not all(_precise(pair, self.min_precision) for pair in pairs):
            literal = self._best_literal(codes, premise, kinds, indices)
            if literal is None:
                return order, None
            j, premise[j] = literal
            order = [*(k for k in order if k != j), j]
            for k, kind in enumerate(kinds):
                indices[k] = indices[k][premise[j][kind.evidence.codes[j][indices[k]]]]
                pairs[k] = kind.pair(indices[k])
        return order, premise

    def _best_literal(
        self,
        codes: np.ndarray,
        premise: Premise,
        kinds: Sequence[_ClassEvidence],
        indices: Sequence[np.ndarray],
    ) -> tuple[int, np.ndarray] | None:
        """Return the literal with the largest gain; None if none is left."""
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
        kinds: Sequence[_ClassEvidence],
        samples: Sequence[tuple[np.ndarray, np.ndarray]],
    ) -> dict[int, tuple[float, np.ndarray]]:
        """Return the best literal of each ordered feature and its gain."""
        splittable = [j for j, f in enumerate(self.features) if f.ordered and premise[j].sum() > 1]
        n_codes = max((len(premise[j]) for j in splittable), default=0)
        size = max(1, _CELLS // max(1, n_codes, *(len(index) for index, _ in samples)))
        best_literals = {}
        all_codes = np.arange(n_codes)
        for start in range(0, len(splittable), size):
            batch = splittable[start : start + size]
            allowed = np.zeros((len(batch), n_codes), dtype=bool)
            for i, j in enumerate(batch):
                allowed[i, : len(premise[j])] = premise[j]
            code = codes[batch].astype(np.intp)[:, None]
            # Literals up to a code at or above the row's, then from a code at or below it.
            last = n_codes - 1 - allowed[:, ::-1].argmax(axis=1)[:, None]
            first = allowed.argmax(axis=1)[:, None]
            valid = np.hstack(
                [
                    (all_codes >= code) & (all_codes < last),
                    (all_codes > first) & (all_codes <= code),
                ]
            )
            tables = []
            for kind, (index, weights) in zip(kinds, samples, strict=True):
                table = kind.histograms(batch, n_codes, index, weights)
                upto = table.cumsum(axis=1)  # sums of integers are exact
                tables.append(np.concatenate([upto, upto[:, -1:] - upto + table], axis=1))
            gains = np.where(valid, _gains(tables, [t[:, n_codes - 1] for t in tables]), -np.inf)
            at = (gains >= gains.max(axis=1, keepdims=True) - _EQUAL).argmax(axis=1)
            for i, j in enumerate(batch):
                side, bound = divmod(int(at[i]), n_codes)
                own_codes = np.arange(len(premise[j]))
                chosen = premise[j] & ((own_codes >= bound) if side else (own_codes <= bound))
                best_literals[j] = float(gains[i, at[i]]), chosen
        return best_literals

    def _drop(
        self, premise: Premise, literals: Sequence[int], kinds: Sequence[_ClassEvidence]
    ) -> Premise:
        """Drop literals one by one if the rule remains precise without them."""
        premise, literals = list(premise), list(literals)
        nearby = None
        for j in list(literals):
            if nearby is None:
                nearby = [kind.nearby(premise, literals) for kind in kinds]
            at = literals.index(j)
            if all(
                _precise(premise_pair + gains[at].sum(axis=0), self.min_precision)
                for premise_pair, gains in nearby
            ):
                premise[j] = np.ones_like(premise[j])
                literals.remove(j)
                nearby = None
        return premise

    def _widen(self, premise: Premise, kinds: Sequence[_ClassEvidence]) -> Premise:
        """Allow more codes, one by one, while the rule stays precise; those with most rows first.

        Categories without contradicting points are allowed all at once.
        """
        premise = [allowed.copy() for allowed in premise]
        while (extension := self._best_extension(premise, kinds)) is not None:
            feature, codes = extension
            premise[feature][codes] = True
        return premise

    def _best_extension(
        self, premise: Premise, kinds: Sequence[_ClassEvidence]
    ) -> tuple[int, list[int]] | None:
        """Return the feature and codes to allow next; None if no extension is precise."""
        literals = [j for j, allowed in enumerate(premise) if not allowed.all()]
        nearby = [kind.nearby(premise, literals) for kind in kinds]
        best_surplus, best_extension = -np.inf, None
        for at, j in enumerate(literals):
            for codes in self._extensions(j, premise[j], [gains[at] for _, gains in nearby]):
                added = [gains[at][codes].sum(axis=0) for _, gains in nearby]
                pairs = (
                    premise_pair + pair
                    for (premise_pair, _), pair in zip(nearby, added, strict=True)
                )
                if not all(_precise(pair, self.min_precision) for pair in pairs):
                    continue
                against, agreeing = added[0]
                if agreeing - against > best_surplus:
                    best_surplus, best_extension = agreeing - against, (j, codes)
        return best_extension

    def _extensions(
        self, feature: int, allowed: np.ndarray, gains: Sequence[np.ndarray]
    ) -> list[list[int]]:
        """Return sets of codes that may be allowed next."""
        if self.features[feature].ordered:
            codes = np.flatnonzero(allowed)
            neighbor_codes = int(codes[0]) - 1, int(codes[-1]) + 1
            return [[code] for code in neighbor_codes if 0 <= code < len(allowed)]
        objections = sum(gain[:, 0] for gain in gains)
        free = np.flatnonzero(~allowed & (objections == 0)).tolist()
        return [free] if free else [[code] for code in np.flatnonzero(~allowed).tolist()]


def _choices(allowed: np.ndarray, code: int, histograms: Sequence[np.ndarray]) -> np.ndarray:
    """Return narrower sets of categories with a given category, one per row."""
    codes = np.arange(len(allowed))
    # The category itself, then with the purest other category, the next one, ...
    counts = sum(h / max(1.0, h.sum()) for h in histograms)
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


def _gains(remaining: Sequence[np.ndarray], totals: Sequence[np.ndarray]) -> np.ndarray:
    """Return FOIL's information gain of each choice.

    Rows and queried points have equal weight, whatever their numbers.
    """
    before: Any = 0.0
    after: Any = 0.0
    for remaining_counts, total in zip(remaining, totals, strict=True):
        scale = np.maximum(1.0, total.sum(axis=1))[:, None]
        before = before + total / scale
        after = after + remaining_counts / scale[:, None]
    tiny = 1e-12
    share = np.maximum(after[..., 1], tiny) / np.maximum(after.sum(axis=-1), tiny)
    share_before = np.maximum(before[:, 1], tiny) / np.maximum(before.sum(axis=1), tiny)
    return np.asarray(remaining[0][..., 1] * (np.log2(share) - np.log2(share_before)[:, None]))


# --- the extractor --------------------------------------------------------------------------------


#: Cuts of a feature that rules do not use.
_NO_CUTS = np.empty(0)


@documented
class REALExtractor(BaseExtractor):
    r"""Rules that each generalize one row as far as queries to the black box allow.

    The algorithm takes a row without a rule, describes it by all its values, and drops the
    conditions that the black box does not need. It queries variants of the row, once per rule; they
    have the same weight as the rows. The rules are short, also on categorical columns
    (``color in {blue, red}``). Classification only.

    Parameters
    ----------
    estimator : estimator
        The black box: a scikit-learn classifier. An unfitted one is cloned and fitted on (X, y);
        wrap a fitted one in ``FrozenEstimator``, any other model's function in
        :class:`CallableClassifier`.
    discretizer : Discretizer or None, default=None
        Discretizer of the numeric features; a clone is fitted on these columns and the black box's
        predictions. None stands for ``Discretizer("tree", min_bin_share=0.05, joint=True)``.
    min_precision : float, default=0.85
        Smallest precision of a rule, above 0 and up to 1, on the covered training rows and on the
        covered queried points. 1 requires rules without exceptions, as published; there are then
        many narrow rules.
    n_variants : int, default=300
        Largest number of queried variants of a row, in one call. 0: rules are based on the training
        rows only.
    max_rules : int or None, default=16
        Largest number of rules in the list. None: limited only by `max_candidates`.
    max_candidates : int or None, default=50
        Largest number of rules that are grown, and so of calls; the list keeps some of them. None:
        limited only by `tolerance`.
    n_features_to_select : int or None, default=20
        {selection}
    tolerance : float, default=0.01
        Share of rows, from 0 to 0.5, that may remain without a rule.
    subsumption : bool, default=True
        Whether to drop rules whose region another rule of the same class covers.
    {common}

    Attributes
    ----------
    rules_ : RuleSet
        The rules, an ordered list.
    {sizes}
    discretizer_ : Discretizer or None
        The fitted discretizer; None if no feature is numeric.
    n_rules_made_ : int
        Number of grown rules; `rules_` has the useful ones. The black box is called once for the
        rows and at most once per grown rule.
    {fitted}

    Notes
    -----
    1. Numeric values become bins; rows that agree in all bins and categories, and in the black
       box's prediction, are counted once. The cost grows with the rows, and for every rule made
       with the distinct rows.
    2. Rows are taken most typical first: by :math:`\sum_j \log n_{jc}(x_j)`, where
       :math:`n_{jc}(x_j)` is the number of rows of the row's class c that share its bin of feature
       j. A row is passed over once a rule of its class covers it, or if rows with the very same
       bins are predicted differently too often for `min_precision`.
    3. The black box is queried for variants of the row, all at once: with one feature moved to
       each of its other bins (there it takes the value of the bin's middle row), then with
       several features taken from the other rows at random. Predictions are kept for later rules.
       Which variants are queried is fixed by the row itself, so nothing is random.
    4. Of the conjunction of all the row's values those literals go first that are not needed to
       tell the row's class from the others, as ranked by the gain of FOIL over rows and queried
       points; each of the others goes as well if the rule stays precise without it. Then
       intervals take in neighboring bins, and sets other categories, as long as it stays so.
    5. Subsumed rules are deleted. From the rest a list is made: next comes the rule that is right
       for most of the remaining rows, less those for which it is wrong, and rules that would be
       right no more often than wrong are left out. As an ordered list it has one prediction where
       rules of two classes overlap.

    PSyKE's REAL makes rules without exceptions and keeps all of them. Of one-hot columns of iris (3
    nearest neighbors, half of the rows held out) its 11 to 15 rules have fidelities from 0.92 to
    0.97 in four splits and end in an error in two; ours by default 0.89 to 1 (mean 0.962) with 4 to
    6 rules.

    References
    ----------
    M. Craven, J. Shavlik: Using sampling and queries to extract rules from trained neural
    networks. ICML 1994.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> from skescore.extractors.real import REALExtractor
    >>> data = load_iris(as_frame=True)
    >>> labels = data.target_names[data.target]
    >>> extractor = REALExtractor(KNeighborsClassifier(9), min_precision=0.95)
    >>> extractor = extractor.fit(data.data, labels)
    >>> print(extractor.rules_)
    1. IF petal length (cm) ≤ 2.45 THEN setosa   [50 rows, 100 % agree with the model]
    2. ELSE IF 2.45 < petal length (cm) ≤ 5.05 AND petal width (cm) ≤ 1.75 THEN versicolor
       [50 rows, 96 % agree with the model]
    3. ELSE IF petal length (cm) > 4.75 AND petal width (cm) > 1.75 THEN virginica
       [46 rows, 98 % agree with the model]
    4. ELSE IF sepal width (cm) ≤ 3.35 AND petal length (cm) > 5.05 AND petal width (cm) > 0.8
       THEN virginica   [4 rows, 100 % agree with the model]
    otherwise, where no rule holds: virginica
    >>> extractor.n_rules_made_, extractor.oracle_.n_calls
    (7, 8)
    """

    tasks: ClassVar[tuple[str, ...]] = ("classification",)
    takes_categories: ClassVar[bool] = True

    def __init__(
        self,
        estimator: Any,
        *,
        discretizer: Discretizer | None = None,
        min_precision: float = 0.85,
        n_variants: int = 300,
        max_rules: int | None = 16,
        max_candidates: int | None = 50,
        n_features_to_select: int | None = 20,
        tolerance: float = 0.01,
        subsumption: bool = True,
        features: Any = None,
        sampling: Any = None,
        n_queries: int = N_QUERIES,
        prune: str | None = None,
        uncovered: str = "default",
        abstain_label: Any = None,
        batch_size: int | None = None,
    ) -> None:
        self.estimator = estimator
        self.discretizer = discretizer
        self.min_precision = min_precision
        self.n_variants = n_variants
        self.max_rules = max_rules
        self.max_candidates = max_candidates
        self.n_features_to_select = n_features_to_select
        self.tolerance = tolerance
        self.subsumption = subsumption
        self.features = features
        self.sampling = sampling
        self.n_queries = n_queries
        self.prune = prune
        self.uncovered = uncovered
        self.abstain_label = abstain_label
        self.batch_size = batch_size

    def _check_parameters(self) -> None:
        check.check_instance("discretizer", self.discretizer, Discretizer, optional=True)
        check.check_number(
            "min_precision", self.min_precision, high=1, above=0, remedy="Try 0.85 or more."
        )
        check.check_integer("n_variants", self.n_variants, 0)
        check.check_integer("max_rules", self.max_rules, 1, optional=True)
        check.check_integer("max_candidates", self.max_candidates, 1, optional=True)
        check.check_integer("n_features_to_select", self.n_features_to_select, 1, optional=True)
        check.check_number("tolerance", self.tolerance, 0.0, 0.5)
        check.check_flag("subsumption", self.subsumption)

    def _extract(self, extraction: Extraction) -> RuleSet:
        sharing = None
        if self.discretizer is None:  # cuts depend on it
            sharing = Sharing.of(extraction)
        chosen = extraction.important_features(self.n_features_to_select)
        if sharing is not None and len(chosen) < extraction.X.shape[1]:
            sharing = sharing.narrowed(digest(chosen))
        coded = once(sharing, "REAL's rows", lambda: self._coded(extraction, chosen))
        # A copy, so that extractors do not share the fitted object.
        self.discretizer_ = copy.deepcopy(coded.discretizer)
        maker = RuleMaker(extraction, coded, self.min_precision, self.n_variants, sharing)
        premises, outputs = maker.make(self.max_candidates, self.tolerance)
        self.n_rules_made_ = len(premises)
        if self.subsumption:
            unsubsumed = [i for i in range(len(premises)) if not subsumed(i, premises, outputs)]
            premises, outputs = [premises[i] for i in unsubsumed], outputs[unsubsumed]
        classes, rules = extraction.settings["classes"], []
        listed = best_list(coded.rows, premises, outputs, len(classes), self.tolerance)
        for number, counts in listed[: self.max_rules]:
            conditions = [
                feature.condition(j, allowed)
                for j, (feature, allowed) in enumerate(
                    zip(coded.features, premises[number], strict=True)
                )
                if not allowed.all()
            ]
            statistics = RuleStatistics(counts.sum(), tuple(counts.tolist()))
            rules.append(Rule(tuple(conditions), classes[outputs[number]], statistics))
        return RuleSet(rules, ordered=True, **extraction.settings)

    def _coded(self, extraction: Extraction, chosen: np.ndarray) -> CodedRows:
        """Code the rows."""
        assert extraction.classes is not None
        discretizer = self._fitted_discretizer(extraction)
        cuts, n_features = {}, extraction.X.shape[1]
        if discretizer is not None:
            numeric = (j for j in range(n_features) if j not in extraction.categories)
            cuts = dict(zip(numeric, discretizer.cut_points_, strict=True))
        categories = {j: v for j, v in extraction.categories.items() if j in chosen}
        # A feature without cuts has one code and occurs in no rule.
        cuts = {j: cuts[j] if j in chosen and j in cuts else _NO_CUTS for j in range(n_features)}
        codes, features = code_rows(extraction.X, cuts, categories)
        rows, first, purity = distinct_rows(
            codes, features, extraction.predictions, len(extraction.classes)
        )
        return CodedRows(discretizer, tuple(features), rows, first, purity)

    def _fitted_discretizer(self, extraction: Extraction) -> Discretizer | None:
        """Fit the discretizer on the numeric columns, if there are any."""
        n_features = extraction.X.shape[1]
        numeric = [j for j in range(n_features) if j not in extraction.categories]
        if not numeric:
            return None
        numbers: Any = extraction.X if len(numeric) == n_features else extraction.X[:, numeric]
        if hasattr(self, "feature_names_in_"):
            names = [extraction.settings["feature_names"][j] for j in numeric]
            numbers = pd.DataFrame(numbers, columns=names, copy=False)
        usual = Discretizer("tree", min_bin_share=0.05, joint=True)
        fresh = usual if self.discretizer is None else clone(self.discretizer)
        return fresh.fit(numbers, extraction.predictions)


@dataclass(frozen=True, eq=False)
class CodedRows:
    """The distinct coded training rows and the coding of the features.

    `first` has the index of the first row of each group, and `purity` the share of its class among
    the rows with its codes. The discretizer is None without numeric features.
    """

    discretizer: Discretizer | None
    features: tuple[CodedFeature, ...]
    rows: Evidence
    first: np.ndarray
    purity: np.ndarray

    def typicality(self) -> np.ndarray:
        """Return the log frequency of each distinct row's values in its class, summed."""
        result = np.zeros(len(self.rows))
        for codes, feature in zip(self.rows.codes, self.features, strict=True):
            n_codes = len(feature.counts)
            cell = self.rows.labels * n_codes + codes
            result += np.log(np.bincount(cell, weights=self.rows.weights)[cell])
        return np.round(result, 9)  # rounding errors must not break ties


@dataclass(frozen=True, eq=False)
class GrowthStep:
    """Result of one row: the waiting weight before, the number of queries, and the rule."""

    waited: float
    n_queries: int
    premise: tuple[np.ndarray, ...] | None
    output: int


@dataclass(frozen=True, eq=False)
class Progress:
    """Finished steps, waiting rows, and queried points."""

    steps: tuple[GrowthStep, ...]
    waiting: np.ndarray
    queried: Evidence


class RuleMaker:
    """Grow rules that cover the rows, the most typical rows first.

    The minimum precision determines the steps; the number of rules and the tolerance only determine
    their number. So candidates of a search share steps through `sharing`, and each continues the
    longest run so far.
    """

    def __init__(
        self,
        extraction: Extraction,
        coded: CodedRows,
        min_precision: float,
        n_queries: int,
        sharing: Sharing | None,
    ) -> None:
        self._extraction, self._coded, self._sharing = extraction, coded, sharing
        self._min_precision, self._n_queries = min_precision, n_queries
        self._grower = PremiseGrower(coded.features, coded.rows, min_precision)

    def make(self, max_rules: int | None, tolerance: float) -> tuple[list[Premise], np.ndarray]:
        """Return premises and classes of rules that leave a share `tolerance` of rows uncovered."""
        weights, oracle = self._coded.rows.weights, self._extraction.oracle
        max_waiting = tolerance * weights.sum()
        key = "REAL's steps", self._min_precision, self._n_queries
        progress = once(self._sharing, key, self._start)
        n_shared_steps = len(progress.steps)
        premises: list[Premise] = []
        outputs: list[int] = []
        number = 0
        while max_rules is None or len(premises) < max_rules:
            check_deadline()
            is_new = number == len(progress.steps)
            waiting_weight = (
                weights[progress.waiting].sum() if is_new else progress.steps[number].waited
            )
            if not waiting_weight > max_waiting:
                break
            if is_new:
                progress = self._go_on(progress, float(waiting_weight))
            elif progress.steps[number].n_queries:
                oracle.count_again(progress.steps[number].n_queries)
            step = progress.steps[number]
            if step.premise is not None:
                premises.append(list(step.premise))
                outputs.append(step.output)
            number += 1
        if self._sharing is not None and len(progress.steps) > n_shared_steps:
            self._sharing.put(key, progress)
        return premises, np.array(outputs, dtype=np.intp)

    def _start(self) -> Progress:
        coded = self._coded
        waiting = np.argsort(-coded.typicality(), kind="stable")
        waiting = waiting[coded.purity[waiting] >= self._min_precision * (1 - 1e-12)]
        empty = np.empty((len(coded.features), 0), dtype=coded.rows.codes.dtype)
        return Progress((), waiting, Evidence(empty, np.empty(0, dtype=np.intp), np.empty(0)))

    def _go_on(self, progress: Progress, waited: float) -> Progress:
        """Grow a rule from the next row."""
        rows, queried = self._coded.rows, progress.queried
        seed, waiting = progress.waiting[0], progress.waiting[1:]
        codes, output = rows.codes[:, seed], int(rows.labels[seed])
        step = GrowthStep(waited, 0, None, output)
        # Points that were queried for other rows may contradict the full conjunction.
        if self._grower.allows(codes, output, queried):
            new = self._query(codes, int(self._coded.first[seed]))
            queried = queried.joined(new) if len(new) else queried
            premise = self._grower.grow(codes, output, queried)
            step = replace(step, n_queries=len(new))
            if premise is not None:  # None if the black box contradicts the full conjunction
                step = replace(step, premise=tuple(premise))
                is_covered = np.zeros(len(rows), dtype=bool)
                is_covered[inside(rows, premise)] = True
                waiting = waiting[~(is_covered[waiting] & (rows.labels[waiting] == output))]
        return Progress((*progress.steps, step), waiting, queried)

    def _query(self, codes: np.ndarray, row: int) -> Evidence:
        """Query the black box for variants of a row."""
        key = "REAL's variants", self._n_queries, row
        shared_points: Evidence | None = None if self._sharing is None else self._sharing.get(key)
        if shared_points is not None:
            if len(shared_points):
                self._extraction.oracle.count_again(len(shared_points))
            return shared_points
        features, X = self._coded.features, self._extraction.X
        changed, differs = variants(codes, features, self._n_queries)
        points = np.repeat(X[row][None, :], len(changed), axis=0)
        for j, feature in enumerate(features):
            at = differs[:, j]
            points[at, j] = feature.examples[changed[at, j]]
        y_pred = np.empty(0, dtype=np.intp)
        if len(points):
            y_pred = self._extraction.query(points, cache=False)
        new = Evidence(changed.T.astype(codes.dtype), y_pred, np.ones(len(y_pred)))
        if self._sharing is not None:
            self._sharing.put(key, new)
        return new


def subsumed(index: int, premises: Sequence[Premise], outputs: np.ndarray) -> bool:
    """Return whether another rule of the same class covers the region of a rule.

    Among rules with the same premise only the first is not subsumed.
    """
    mine = premises[index]
    for other, premise in enumerate(premises):
        if other == index or outputs[other] != outputs[index]:
            continue
        within = all(not (a & ~b).any() for a, b in zip(mine, premise, strict=True))
        same = within and all((a == b).all() for a, b in zip(mine, premise, strict=True))
        if within and (not same or other < index):
            return True
    return False


def best_list(
    rows: Evidence,
    premises: Sequence[Premise],
    outputs: np.ndarray,
    n_classes: int,
    tolerance: float,
) -> list[tuple[int, np.ndarray]]:
    """Select and order rules greedily for a list in which the first matching rule predicts.

    The next rule has the largest surplus of correct over wrong predictions among the uncovered
    rows; ties go to the first rule. A share `tolerance` of the rows may remain uncovered. Each rule
    is returned with the class counts of the rows that it is the first to cover.
    """
    max_uncovered = tolerance * rows.weights.sum()
    candidates = list(range(len(premises)))
    result = []
    while candidates and rows.weights.sum() > max_uncovered:
        check_deadline()
        covered_rows = [inside(rows, premises[i]) for i in candidates]
        counts = [
            np.bincount(rows.labels[at], weights=rows.weights[at], minlength=n_classes)
            for at in covered_rows
        ]
        surplus = [2 * c[outputs[i]] - c.sum() for i, c in zip(candidates, counts, strict=True)]
        best = int(np.argmax(surplus))
        if surplus[best] <= 0:
            break
        result.append((candidates.pop(best), counts[best]))
        is_left = np.ones(len(rows), dtype=bool)
        is_left[covered_rows[best]] = False
        rows = rows.part(is_left)
    return result
