"""REAL: rules that generalize single rows by queries to the black box."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

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
    make_variants,
)
from skescore.extractors.real._growth import Premise, PremiseGrower
from skescore.extractors.real._packed import QUERIED, ROWS, CodeLayout, PackedPoints
from skescore.rules import Rule, RuleSet, RuleStatistics

#: Cuts of features that rules do not use.
_NO_CUTS = np.empty(0)


@documented
class REALExtractor(BaseExtractor):
    r"""Rules, each of which generalizes one row as far as queries to the black box allow.

    The algorithm starts with a conjunction of all values of an uncovered row, and drops the
    conditions that are not needed for its class. For every rule, the black box is queried once for
    variants of the row. All variants together have as much weight as the training rows. The rules
    are short, even on categorical columns (``color in {blue, red}``). Classification only.

    Parameters
    ----------
    estimator : estimator
        The black box: a scikit-learn classifier. An unfitted one is cloned and fitted on (X, y);
        wrap a fitted one in ``FrozenEstimator``, or another model's function in
        :class:`CallableClassifier`.
    discretizer : Discretizer or None, default=None
        Discretizer of the numeric features; a clone is fitted on these columns and the black box's
        predictions. None: ``Discretizer("tree", min_bin_share=0.05, joint=True)``.
    min_precision : float, default=0.85
        Smallest precision of a rule, above 0 and at most 1, on the training rows and on the queried
        points that it covers. With 1, rules have no exceptions, as in the paper; there are then
        many narrow rules.
    n_variants : int, default=300
        Largest number of variants of a row that are queried in one call. 0: rules are based only on
        the training rows.
    max_rules : int or None, default=16
        Largest number of rules in the list. None: limited only by `max_candidates`.
    max_candidates : int or None, default=50
        Largest number of rules that are grown; the list contains the useful ones. None: limited
        only by `tolerance`.
    n_features_to_select : int or None, default=20
        {selection}
    tolerance : float, default=0.01
        Share of rows, from 0 to 0.5, that may remain without a rule.
    subsumption : bool, default=True
        Whether to drop rules whose region is inside the region of another rule of the same class.
    {common}

    Attributes
    ----------
    rules_ : RuleSet
        The rules: an ordered list.
    {sizes}
    discretizer_ : Discretizer or None
        The fitted discretizer; None if no feature is numeric.
    n_rules_made_ : int
        Number of grown rules. The black box is called once for the rows, and at most once for each
        row from which the growth of a rule was tried.
    {fitted}

    Notes
    -----
    1. Numeric values are replaced by bins. Rows with the same bins, categories and prediction are
       grouped, so the cost per rule grows with the number of distinct rows.
    2. Rows are processed in descending order of typicality :math:`\sum_j \log n_{jc}(x_j)`, where
       :math:`n_{jc}(x_j)` is the number of rows of the row's class c in the same bin of feature j.
       A row is skipped if a rule of its class covers it, or if the predictions of rows with the
       same codes differ too often for `min_precision`.
    3. The black box is queried once for variants of the row. In the first variants, one feature
       takes the median value of another bin; in the others, several features take values of other
       rows. The variants are determined by a hash of the row, so nothing is random. Their
       predictions are also used for later rules.
    4. Literals of the row are added by descending FOIL gain on rows and queried points until the
       rule is precise. Literals that are not needed for the precision are dropped. Then intervals
       are extended by neighboring bins, and sets by categories, while the rule stays precise.
    5. Subsumed rules are deleted. The others are ordered greedily by the number of correct minus
       wrong predictions on the remaining rows; rules without a positive difference are omitted. The
       first rule of the list that holds determines the prediction.

    PSyKE's REAL creates rules without exceptions and keeps all of them. On iris with one-hot
    columns (3 nearest neighbors, half of the rows held out), its 11 to 15 rules have fidelities
    from 0.92 to 0.97 in four splits, and two splits end in an error. With defaults, this class has
    fidelities from 0.89 to 1 (mean 0.962) with 4 to 6 rules.

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
    1. IF petal length (cm) ≤ 2.45 THEN setosa
       [50 rows, 100 % agree with the model, 100 % right (data)]
    2. ELSE IF 2.45 < petal length (cm) ≤ 5.05 AND petal width (cm) ≤ 1.75 THEN versicolor
       [50 rows, 96 % agree with the model, 96 % right (data)]
    3. ELSE IF petal length (cm) > 4.75 AND petal width (cm) > 1.75 THEN virginica
       [46 rows, 98 % agree with the model, 98 % right (data)]
    4. ELSE IF sepal width (cm) ≤ 3.35 AND petal length (cm) > 5.05 AND petal width (cm) > 0.8
       THEN virginica
       [4 rows, 100 % agree with the model, 75 % right (data)]
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
        if self.discretizer is None:  # the default cuts depend on the features
            sharing = Sharing.of(extraction)
        selected = once(
            sharing,
            ("REAL's features", self.n_features_to_select),
            lambda: extraction.important_features(self.n_features_to_select),
        )
        if sharing is not None and len(selected) < extraction.X.shape[1]:
            sharing = sharing.with_scope(digest(selected))
        coded = once(sharing, "REAL's rows", lambda: self._code_rows(extraction, selected))
        # A copy, so that extractors do not share the fitted object.
        self.discretizer_ = copy.deepcopy(coded.discretizer)
        maker = RuleMaker(extraction, coded, self.min_precision, self.n_variants, sharing)
        premises, outputs = maker.grow_rules(self.max_candidates, self.tolerance)
        self.n_rules_made_ = len(premises)
        if self.subsumption:
            unsubsumed = np.flatnonzero(~find_subsumed(premises, outputs))
            premises, outputs = [premises[i] for i in unsubsumed], outputs[unsubsumed]
        classes, rules = extraction.settings["classes"], []
        ordered_rules = order_rules(maker.layout, maker.rows, premises, outputs, self.tolerance)
        for number, counts in ordered_rules[: self.max_rules]:
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

    def _code_rows(self, extraction: Extraction, selected: np.ndarray) -> CodedRows:
        """Replace values by codes, and group rows with equal codes and predictions."""
        assert extraction.classes is not None
        discretizer = self._fitted_discretizer(extraction)
        cuts, n_features = {}, extraction.X.shape[1]
        if discretizer is not None:
            numeric = (j for j in range(n_features) if j not in extraction.categories)
            cuts = dict(zip(numeric, discretizer.cut_points_, strict=True))
        categories = {j: v for j, v in extraction.categories.items() if j in selected}
        # A feature without cuts has a single code and occurs in no rule.
        cuts = {j: cuts[j] if j in selected and j in cuts else _NO_CUTS for j in range(n_features)}
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
        default = Discretizer("tree", min_bin_share=0.05, joint=True)
        discretizer = default if self.discretizer is None else clone(self.discretizer)
        return discretizer.fit(numbers, extraction.predictions)


@dataclass(frozen=True, eq=False)
class CodedRows:
    """Distinct coded training rows and the coding of the features.

    `first` holds the index of the first row of each group, and `purity` the share of its class
    among the rows with its codes. The discretizer is None without numeric features.
    """

    discretizer: Discretizer | None
    features: tuple[CodedFeature, ...]
    rows: Evidence
    first: np.ndarray
    purity: np.ndarray

    def typicality(self) -> np.ndarray:
        """Return the sum of the log frequencies of each distinct row's values in its class."""
        result = np.zeros(len(self.rows))
        for codes, feature in zip(self.rows.codes, self.features, strict=True):
            n_codes = len(feature.counts)
            cell = self.rows.labels * n_codes + codes
            result += np.log(np.bincount(cell, weights=self.rows.weights)[cell])
        return np.round(result, 9)  # rounding errors must not break ties


@dataclass(frozen=True, eq=False)
class GrowthStep:
    """Result for one row: uncovered weight before the step, number of queries, and the rule.

    `premise` is None if no precise rule was found.
    """

    uncovered_weight: float
    n_queries: int
    premise: tuple[np.ndarray, ...] | None
    output: int


@dataclass(frozen=True, eq=False)
class Progress:
    """Finished steps, uncovered rows, and queried points."""

    steps: tuple[GrowthStep, ...]
    uncovered: np.ndarray
    queried: PackedPoints


class RuleMaker:
    """Grow rules that cover the rows, the most typical rows first.

    The minimum precision determines the steps; the limits of the number of rules and the tolerance
    only determine how many there are. Candidates of a search therefore share steps through
    `sharing`, and each candidate continues the longest run so far.
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
        assert extraction.classes is not None
        self._n_classes = len(extraction.classes)
        self.layout = CodeLayout(coded.features)
        self.rows = once(
            sharing,
            "REAL's packed rows",
            lambda: self.layout.pack(coded.rows, self._n_classes, ROWS),
        )
        self._grower = PremiseGrower(self.layout, self.rows, min_precision)

    def grow_rules(
        self, max_rules: int | None, tolerance: float
    ) -> tuple[list[Premise], np.ndarray]:
        """Grow rules until few enough rows are uncovered; return their premises and classes."""
        weights, oracle = self._coded.rows.weights, self._extraction.oracle
        max_uncovered = tolerance * weights.sum()
        key = "REAL's steps", self._min_precision, self._n_queries
        progress = once(self._sharing, key, self._start)
        n_shared_steps = len(progress.steps)
        premises: list[Premise] = []
        outputs: list[int] = []
        number = 0
        while max_rules is None or len(premises) < max_rules:
            check_deadline()
            is_new = number == len(progress.steps)
            uncovered_weight = (
                weights[progress.uncovered].sum()
                if is_new
                else progress.steps[number].uncovered_weight
            )
            if not uncovered_weight > max_uncovered:
                break
            if is_new:
                progress = self._grow_next(progress, float(uncovered_weight))
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
        uncovered = np.argsort(-coded.typicality(), kind="stable")
        uncovered = uncovered[coded.purity[uncovered] >= self._min_precision * (1 - 1e-12)]
        no_rows = coded.rows.part(np.empty(0, dtype=np.intp))
        no_points = self.layout.pack(no_rows, self._n_classes, QUERIED)
        return Progress((), uncovered, no_points)

    def _grow_next(self, progress: Progress, uncovered_weight: float) -> Progress:
        """Grow a rule from the next uncovered row."""
        rows, queried = self._coded.rows, progress.queried
        seed, uncovered = progress.uncovered[0], progress.uncovered[1:]
        codes, output = rows.codes[:, seed], int(rows.labels[seed])
        step = GrowthStep(uncovered_weight, 0, None, output)
        # Points that were queried for other rows may already contradict the full conjunction.
        if self._grower.allows(codes, output, queried):
            new = self._query(codes, int(self._coded.first[seed]))
            queried = queried.concatenate(new) if new.n_points else queried
            premise = self._grower.grow(codes, output, queried)
            step = replace(step, n_queries=new.n_points)
            if premise is not None:  # None if the black box contradicts the full conjunction
                step = replace(step, premise=tuple(premise))
                is_covered = rows.labels[uncovered] == output
                for j in self.layout.varying:
                    if not premise[j].all():
                        is_covered &= premise[j][rows.codes[j][uncovered]]
                uncovered = uncovered[~is_covered]
        return Progress((*progress.steps, step), uncovered, queried)

    def _query(self, codes: np.ndarray, row: int) -> PackedPoints:
        """Query the black box for variants of a row."""
        key = "REAL's variants", self._n_queries, row
        shared_points: PackedPoints | None = (
            None if self._sharing is None else self._sharing.get(key)
        )
        if shared_points is not None:
            if shared_points.n_points:
                self._extraction.oracle.count_again(shared_points.n_points)
            return shared_points
        features, X = self._coded.features, self._extraction.X
        changed, differs = make_variants(codes, features, self._n_queries)
        points = np.repeat(X[row][None, :], len(changed), axis=0)
        for j in self.layout.varying:
            at = differs[:, j]
            points[at, j] = features[j].examples[changed[at, j]]
        y_pred = np.empty(0, dtype=np.intp)
        if len(points):
            y_pred = self._extraction.query(points, cache=False)
        evidence = Evidence(changed.T.astype(codes.dtype), y_pred, np.ones(len(y_pred)))
        new = self.layout.pack(evidence, self._n_classes, QUERIED)
        if self._sharing is not None:
            self._sharing.put(key, new)
        return new


def find_subsumed(premises: Sequence[Premise], outputs: np.ndarray) -> np.ndarray:
    """Return for each rule whether another rule of the same class covers its whole region.

    Of several rules with the same premise, all but the first are subsumed.
    """
    if not premises:
        return np.zeros(0, dtype=bool)
    allowed = np.stack([np.concatenate(premise) for premise in premises]).astype(np.float32)
    # Number of codes that rule i allows but rule j does not.
    n_outside = allowed @ (1 - allowed).T
    is_within = (n_outside == 0) & (outputs[:, None] == outputs)
    is_same = is_within & is_within.T
    is_later = np.tri(len(premises), k=-1, dtype=bool)
    return np.asarray((is_within & (~is_same | is_later)).any(axis=1))


def order_rules(
    layout: CodeLayout,
    rows: PackedPoints,
    premises: Sequence[Premise],
    outputs: np.ndarray,
    tolerance: float,
) -> list[tuple[int, np.ndarray]]:
    """Select and order rules greedily for a list in which the first matching rule predicts.

    The next rule has the largest surplus of correct over wrong predictions on the uncovered rows;
    ties go to the first rule. A share `tolerance` of the rows may remain uncovered. Each rule is
    returned with the class counts of its rows that no earlier rule covers.
    """
    all_rows = np.bitwise_or.reduce(rows.classes, axis=0)
    max_uncovered = tolerance * rows.weigh(all_rows)[ROWS]
    candidates = np.arange(len(premises))
    covered = np.empty((len(premises), len(all_rows)), dtype=np.uint64)
    for i, premise in enumerate(premises):
        covered[i] = rows.matching(layout, premise)
    correct = covered & rows.classes[outputs]
    result = []
    uncovered = all_rows
    while len(candidates) and rows.weigh(uncovered)[ROWS] > max_uncovered:
        check_deadline()
        n_correct = rows.weigh(correct[candidates] & uncovered)[:, ROWS]
        n_covered = rows.weigh(covered[candidates] & uncovered)[:, ROWS]
        surplus = 2 * n_correct - n_covered
        at = int(np.argmax(surplus))
        if surplus[at] <= 0:
            break
        best = int(candidates[at])
        counts = rows.weigh(rows.classes & covered[best] & uncovered)[:, ROWS]
        result.append((best, counts))
        candidates = np.delete(candidates, at)
        uncovered = uncovered & ~covered[best]
    return result
