"""REAL: rules by generalising single rows with questions to the black box."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import pandas as pd
from sklearn.base import clone

from skescore.extractors import _validation as check
from skescore.extractors._base import BaseExtractor
from skescore.extractors._extraction import Extraction
from skescore.extractors._literals import Grower, Premise, inside
from skescore.extractors._real_codes import (
    CodedFeature,
    Evidence,
    code_rows,
    distinct_rows,
    variants,
)
from skescore.extractors._real_lists import best_list, subsumed
from skescore.extractors.discretiser import Discretiser
from skescore.rules import Rule, RuleSet
from skescore.rules.conditions import Condition
from skescore.rules.rule import RuleStatistics


class REALExtractor(BaseExtractor):
    r"""Rules that each generalise one row as far as questions to the black box allow.

    A row that no rule of its class covers is described by all its values, and what is not needed
    of this description is dropped: the black box is asked about variants of the row, once per
    rule, and is believed as much as about the rows themselves. Gives short rules with few
    conditions, also on columns of categories (``colour in {blue, red}``). Classification only.

    Parameters
    ----------
    estimator : estimator
        The black box: a scikit-learn classifier. An unfitted one is cloned and fitted on (X, y);
        wrap a fitted one in ``FrozenEstimator``, any other model's function in
        :class:`CallableClassifier`.
    discretiser : Discretiser or None, default=None
        Cuts the numeric features into bins; a clone is fitted on those columns and the black box's
        answers. None stands for ``Discretiser("tree", min_bin_share=0.05, joint=True)``.
    min_precision : float, default=0.95
        Least share, above 0 and up to 1, of the training rows that a rule holds for, and of the
        points asked about that it holds for, that the black box answers as the rule does. 1 asks
        for rules without an exception, as published; such rules are many and narrow.
    n_queries : int, default=300
        Most variants of a row that the black box is asked about, all in one call. 0 asks nothing,
        so that the rules rest on the training rows alone.
    max_rules : int or None, default=50
        Most rules that are made, and so most calls; the list may keep fewer. None: no limit but
        `tolerance`.
    tolerance : float, default=0.01
        Share of the rows, from 0 to 0.5, that may be left without a rule: no more rules are made,
        nor kept, for them.
    subsumption : bool, default=True
        Whether rules that hold for nothing but what another rule of the same class holds for are
        deleted.
    prune : str or None, default=None
        Score to prune the rules by after extraction ("ice", "neg_fire", "neg_q", ...), see
        :func:`skescore.prune`; None keeps all rules.
    uncovered : {"default", "nearest", "abstain"}, default="default"
        What ``predict`` answers where no rule holds: the black box's majority class, the answer of
        the nearest box, or `abstain_label`.
    abstain_label : str, int or float, optional
        Answer of ``uncovered="abstain"``.
    batch_size : int, optional
        Most rows in one call of the black box; by default all at once.

    Attributes
    ----------
    rules_ : RuleSet
        The rules, an ordered list.
    n_rules_ : int
        Their number.
    coverage_ : float
        Share of the training rows that some rule covers.
    completeness_ : float
        Share of the domain's volume that some rule covers.
    discretiser_ : Discretiser or None
        The fitted discretiser; None if no feature is numeric.
    n_rules_made_ : int
        Rules made, of which `rules_` keeps the useful ones. The black box was called at most
        once for each, and once for the rows.
    estimator_ : estimator
        The fitted black box.
    oracle_ : Oracle
        Asks the black box and counts the questions.
    classes_ : ndarray of shape (n_classes,)
        Class labels.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, if X had string column names.

    Notes
    -----
    1. Numeric values become bins; rows that agree in all bins and categories, and in the black
       box's answer, are counted once. The cost grows with the rows, and for every rule made with
       the distinct rows.
    2. Rows are taken most typical first: by :math:`\sum_j \log n_{jc}(x_j)`, where
       :math:`n_{jc}(x_j)` is the number of rows of the row's class c that share its bin of feature
       j. A row is passed over once a rule of its class covers it, or if rows with the very same
       bins are answered differently too often for `min_precision`.
    3. The black box is asked about variants of the row, all at once: with one feature moved to
       each of its other bins (there it takes the value of the bin's middle row), then with
       several features taken from the other rows at random. Answers are kept for later rules.
       Which variants are asked about is fixed by the row itself, so nothing is random.
    4. Of the conjunction of all the row's values those literals go first that are not needed to
       tell the row's class from the others, as ranked by the gain of FOIL over rows and points
       asked about; each of the others goes as well if the rule stays precise without it. Then
       intervals take in neighbouring bins, and sets other categories, as long as it stays so.
    5. Subsumed rules are deleted. From the rest a list is made: next comes the rule that answers
       most of the remaining rows rightly, less those that it answers wrongly, and rules that would
       answer no more rightly than wrongly are left out. As an ordered list it has one answer where
       rules of two classes overlap.

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
    >>> extractor = REALExtractor(KNeighborsClassifier(9)).fit(data.data, labels)
    >>> print(extractor.rules_)
    1. IF petal length (cm) ≤ 2.45 THEN setosa   [50 rows, 100 % pure]
    2. ELSE IF 2.45 < petal length (cm) ≤ 5.05 AND petal width (cm) ≤ 1.75 THEN versicolor
       [50 rows, 96 % pure]
    3. ELSE IF petal length (cm) > 4.75 AND petal width (cm) > 1.75 THEN virginica
       [46 rows, 98 % pure]
    4. ELSE IF sepal width (cm) ≤ 3.35 AND petal length (cm) > 5.05 AND petal width (cm) > 0.8
       THEN virginica   [4 rows, 100 % pure]
    otherwise, where no rule holds: virginica
    >>> extractor.n_rules_made_, extractor.oracle_.n_calls
    (7, 8)
    """

    tasks: ClassVar[tuple[str, ...]] = ("classification",)
    _takes_categories: ClassVar[bool] = True

    def __init__(
        self,
        estimator: Any,
        *,
        discretiser: Discretiser | None = None,
        min_precision: float = 0.95,
        n_queries: int = 300,
        max_rules: int | None = 50,
        tolerance: float = 0.01,
        subsumption: bool = True,
        prune: str | None = None,
        uncovered: str = "default",
        abstain_label: Any = None,
        batch_size: int | None = None,
    ) -> None:
        self.estimator = estimator
        self.discretiser = discretiser
        self.min_precision = min_precision
        self.n_queries = n_queries
        self.max_rules = max_rules
        self.tolerance = tolerance
        self.subsumption = subsumption
        self.prune = prune
        self.uncovered = uncovered
        self.abstain_label = abstain_label
        self.batch_size = batch_size

    def _check_parameters(self) -> None:
        if not isinstance(self.discretiser, Discretiser | None):
            raise TypeError(f"discretiser must be a Discretiser or None, got {self.discretiser!r}.")
        check.check_number("min_precision", self.min_precision, 0.0, 1.0)
        if self.min_precision == 0:
            raise ValueError("min_precision must be above 0, got 0; try 0.9 or more.")
        check.check_integer("n_queries", self.n_queries, 0)
        check.check_integer("max_rules", self.max_rules, 1, optional=True)
        check.check_number("tolerance", self.tolerance, 0.0, 0.5)
        check.check_flag("subsumption", self.subsumption)

    def _extract(self, extraction: Extraction) -> RuleSet:
        assert extraction.classes is not None
        codes, features = code_rows(extraction.X, self._cuts(extraction), extraction.categories)
        rows, first, purity = distinct_rows(
            codes, features, extraction.answers, len(extraction.classes)
        )
        del codes
        premises, outputs = self._make_rules(extraction, features, rows, first, purity)
        self.n_rules_made_ = len(premises)
        kept = list(range(len(premises)))
        if self.subsumption:
            kept = [i for i in kept if not subsumed(i, premises, outputs)]
        premises, outputs = [premises[i] for i in kept], outputs[kept]
        classes = extraction.settings["classes"]
        listed = best_list(rows, premises, outputs, len(classes), self.tolerance)
        rules = [
            Rule(
                _conditions(features, premises[number]),
                classes[outputs[number]],
                RuleStatistics(answered.sum(), tuple(answered.tolist())),
            )
            for number, answered in listed
        ]
        return RuleSet(rules, ordered=True, **extraction.settings)

    def _cuts(self, extraction: Extraction) -> dict[int, np.ndarray]:
        """Fit the discretiser on the numeric columns; cut points by feature."""
        n_features = extraction.X.shape[1]
        numeric = [j for j in range(n_features) if j not in extraction.categories]
        self.discretiser_ = None
        if not numeric:
            return {}
        numbers: Any = extraction.X if len(numeric) == n_features else extraction.X[:, numeric]
        if hasattr(self, "feature_names_in_"):
            numbers = pd.DataFrame(numbers, columns=self.feature_names_in_[numeric], copy=False)
        given = self.discretiser
        usual = Discretiser("tree", min_bin_share=0.05, joint=True)
        fresh = usual if given is None else clone(given)
        self.discretiser_ = fresh.fit(numbers, extraction.answers)
        return dict(zip(numeric, fresh.cut_points_, strict=True))

    def _make_rules(
        self,
        extraction: Extraction,
        features: list[CodedFeature],
        rows: Evidence,
        first: np.ndarray,
        purity: np.ndarray,
    ) -> tuple[list[Premise], np.ndarray]:
        """Premises and classes of rules that cover the rows, up to `tolerance`."""
        grower = Grower(features, rows, self.min_precision)
        empty = np.empty((len(features), 0), dtype=rows.codes.dtype)
        asked = Evidence(empty, np.empty(0, dtype=np.intp), np.empty(0))
        waiting = np.argsort(-_typicality(features, rows), kind="stable")
        waiting = waiting[purity[waiting] >= self.min_precision * (1 - 1e-12)]
        enough = self.tolerance * rows.weights.sum()
        premises: list[Premise] = []
        outputs: list[int] = []
        while len(waiting) and rows.weights[waiting].sum() > enough:
            if self.max_rules is not None and len(premises) >= self.max_rules:
                break
            seed, waiting = waiting[0], waiting[1:]
            codes, output = rows.codes[:, seed], int(rows.answers[seed])
            if not grower.allows(codes, output, asked):
                continue  # points asked about for other rows contradict even the full conjunction
            asked = self._ask(extraction, features, codes, first[seed], asked)
            premise = grower.grow(codes, output, asked)
            if premise is None:  # a black box that answers the same row differently
                continue
            premises.append(premise)
            outputs.append(output)
            held = np.zeros(len(rows), dtype=bool)
            held[inside(rows, premise)] = True
            waiting = waiting[~(held[waiting] & (rows.answers[waiting] == output))]
        return premises, np.array(outputs, dtype=np.intp)

    def _ask(
        self,
        extraction: Extraction,
        features: list[CodedFeature],
        codes: np.ndarray,
        row: int,
        asked: Evidence,
    ) -> Evidence:
        """Ask about variants of a row; what was asked before comes first."""
        changed, differs = variants(codes, features, self.n_queries)
        if not len(changed):
            return asked
        points = np.repeat(extraction.X[row][None, :], len(changed), axis=0)
        for j, feature in enumerate(features):
            at = differs[:, j]
            points[at, j] = feature.examples[changed[at, j]]
        answers = extraction.ask(points, remember=False)
        new = Evidence(changed.T.astype(codes.dtype), answers, np.ones(len(answers)))
        return asked.joined(new)


def _conditions(features: list[CodedFeature], premise: Premise) -> tuple[Condition, ...]:
    return tuple(
        feature.condition(j, allowed)
        for j, (feature, allowed) in enumerate(zip(features, premise, strict=True))
        if not allowed.all()
    )


def _typicality(features: list[CodedFeature], rows: Evidence) -> np.ndarray:
    """How much the values of each distinct row are those of its class."""
    result = np.zeros(len(rows))
    for codes, feature in zip(rows.codes, features, strict=True):
        n_codes = len(feature.counts)
        cell = rows.answers * n_codes + codes
        result += np.log(np.bincount(cell, weights=rows.weights)[cell])
    return np.round(result, 9)  # so that rounding does not put one of two equal rows first
