"""REAL: rules by generalising single rows with questions to the black box."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from sklearn.base import clone

from skescore.extractors import _validation as check
from skescore.extractors._base import BaseExtractor, Extraction
from skescore.extractors._discretiser import Discretiser
from skescore.extractors._sharing import Sharing, once
from skescore.extractors.real._codes import (
    CodedFeature,
    Evidence,
    code_rows,
    distinct_rows,
    variants,
)
from skescore.extractors.real._literals import Grower, Premise, inside
from skescore.rules import Rule, RuleSet
from skescore.rules._conditions import Condition
from skescore.rules._rule import RuleStatistics

# --- from rules that were made one by one to a list in which each has something to say -----------


def subsumed(index: int, premises: Sequence[Premise], outputs: np.ndarray) -> bool:
    """Whether another rule of the same class holds wherever a rule does.

    Parameters
    ----------
    index : int
        The rule.
    premises : sequence of premises
        All rules.
    outputs : ndarray of int, shape (n_rules,)
        Their classes.

    Returns
    -------
    bool
        Of rules with the same premise only the first is not subsumed.
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
    """Put rules in an order in which the first that holds answers.

    Next comes the rule with the largest surplus of right over wrong answers among the rows without
    a rule so far; of equal ones the first.

    Parameters
    ----------
    rows : Evidence
        The distinct rows.
    premises : sequence of premises
        The rules.
    outputs : ndarray of int, shape (n_rules,)
        Their classes.
    n_classes : int
        Number of classes.
    tolerance : float
        Share of the rows that may stay without a rule.

    Returns
    -------
    list of (int, ndarray)
        The rules of the list, and how often each class was answered where each of them answers.
    """
    enough = tolerance * rows.weights.sum()
    candidates = list(range(len(premises)))
    result = []
    while candidates and rows.weights.sum() > enough:
        answered = [_class_weights(rows, premises[i], n_classes) for i in candidates]
        surplus = [
            2 * counts[outputs[i]] - counts.sum()
            for i, counts in zip(candidates, answered, strict=True)
        ]
        best = int(np.argmax(surplus))
        if surplus[best] <= 0:
            break
        chosen = candidates.pop(best)
        result.append((chosen, answered[best]))
        rest = np.ones(len(rows), dtype=bool)
        rest[inside(rows, premises[chosen])] = False
        rows = rows.part(rest)
    return result


def _class_weights(rows: Evidence, premise: Premise, n_classes: int) -> np.ndarray:
    index = inside(rows, premise)
    return np.bincount(rows.answers[index], weights=rows.weights[index], minlength=n_classes)


# --- rEAL's course: from one row without a rule to the next, with questions along the way --------
# How precise rules must be decides the course; how many are wanted, and for how many rows, only
# where it ends. So candidates of a search that differ in the latter go the same way, and each
# begins where the longest course so far has ended.


@dataclass(frozen=True, eq=False)
class CodedRows:
    """The training rows in codes.

    Parameters
    ----------
    discretiser : Discretiser or None
        Cuts the numeric features; None if there are none.
    features : tuple of CodedFeature
        How each feature is coded.
    rows : Evidence
        The distinct rows.
    first : ndarray of int
        Index of the first row of each.
    purity : ndarray of float
        Share of each one's class among the rows with its codes.
    """

    discretiser: Discretiser | None
    features: tuple[CodedFeature, ...]
    rows: Evidence
    first: np.ndarray
    purity: np.ndarray


@dataclass(frozen=True, eq=False)
class Turn:
    """What came of one row: the weight that waited before, points asked about, and the rule."""

    waited: float
    n_asked: int
    premise: tuple[np.ndarray, ...] | None
    output: int


@dataclass(frozen=True, eq=False)
class Course:
    """The rows looked at so far, those that wait, and what the black box was asked."""

    turns: tuple[Turn, ...]
    waiting: np.ndarray
    asked: Evidence


class RuleMaker:
    """Makes rules that cover the rows, most typical rows first.

    Parameters
    ----------
    extraction : Extraction
        The rows, and the black box to ask.
    coded : CodedRows
        The rows in codes.
    least : float
        Least share of either kind of evidence that must agree with a rule.
    n_queries : int
        Most variants of a row to ask about.
    sharing : Sharing or None
        Where others that have the same coded rows find what was done here.
    """

    def __init__(
        self,
        extraction: Extraction,
        coded: CodedRows,
        least: float,
        n_queries: int,
        sharing: Sharing | None,
    ) -> None:
        self._extraction, self._coded, self._sharing = extraction, coded, sharing
        self._least, self._n_queries = least, n_queries
        self._grower = Grower(coded.features, coded.rows, least)

    def make(self, max_rules: int | None, tolerance: float) -> tuple[list[Premise], np.ndarray]:
        """Make rules until few rows are left.

        Parameters
        ----------
        max_rules : int or None
            Most rules.
        tolerance : float
            Share of the rows that may be left without one.

        Returns
        -------
        premises : list of premises
            The rules.
        outputs : ndarray of int, shape (n_rules,)
            Their classes.
        """
        weights, oracle = self._coded.rows.weights, self._extraction.oracle
        enough = tolerance * weights.sum()
        key = "REAL's course", self._least, self._n_queries
        course = once(self._sharing, key, self._start)
        known = len(course.turns)
        premises: list[Premise] = []
        outputs: list[int] = []
        number = 0
        while max_rules is None or len(premises) < max_rules:
            is_new = number == len(course.turns)
            waits = weights[course.waiting].sum() if is_new else course.turns[number].waited
            if not waits > enough:
                break
            if is_new:
                course = self._turn(course, float(waits))
            elif course.turns[number].n_asked:
                oracle.count_again(course.turns[number].n_asked)
            turn = course.turns[number]
            if turn.premise is not None:
                premises.append(list(turn.premise))
                outputs.append(turn.output)
            number += 1
        if self._sharing is not None and len(course.turns) > known:
            self._sharing.put(key, course)
        return premises, np.array(outputs, dtype=np.intp)

    def _start(self) -> Course:
        coded = self._coded
        waiting = np.argsort(-_typicality(coded.features, coded.rows), kind="stable")
        waiting = waiting[coded.purity[waiting] >= self._least * (1 - 1e-12)]
        empty = np.empty((len(coded.features), 0), dtype=coded.rows.codes.dtype)
        return Course((), waiting, Evidence(empty, np.empty(0, dtype=np.intp), np.empty(0)))

    def _turn(self, course: Course, waited: float) -> Course:
        """Look at the row that comes next."""
        rows, asked = self._coded.rows, course.asked
        seed, waiting = course.waiting[0], course.waiting[1:]
        codes, output = rows.codes[:, seed], int(rows.answers[seed])
        turn = Turn(waited, 0, None, output)
        # Points asked about for other rows may contradict even the full conjunction.
        if self._grower.allows(codes, output, asked):
            new = self._ask(codes, int(self._coded.first[seed]))
            asked = asked.joined(new) if len(new) else asked
            premise = self._grower.grow(codes, output, asked)
            turn = replace(turn, n_asked=len(new))
            if premise is not None:  # else the black box answers the same row differently
                turn = replace(turn, premise=tuple(premise))
                held = np.zeros(len(rows), dtype=bool)
                held[inside(rows, premise)] = True
                waiting = waiting[~(held[waiting] & (rows.answers[waiting] == output))]
        return Course((*course.turns, turn), waiting, asked)

    def _ask(self, codes: np.ndarray, row: int) -> Evidence:
        """Ask about variants of a row."""
        key = "REAL's variants", self._n_queries, row
        known: Evidence | None = None if self._sharing is None else self._sharing.get(key)
        if known is not None:
            if len(known):
                self._extraction.oracle.count_again(len(known))
            return known
        features, X = self._coded.features, self._extraction.X
        changed, differs = variants(codes, features, self._n_queries)
        points = np.repeat(X[row][None, :], len(changed), axis=0)
        for j, feature in enumerate(features):
            at = differs[:, j]
            points[at, j] = feature.examples[changed[at, j]]
        answers = np.empty(0, dtype=np.intp)
        if len(points):
            answers = self._extraction.ask(points, remember=False)
        new = Evidence(changed.T.astype(codes.dtype), answers, np.ones(len(answers)))
        if self._sharing is not None:
            self._sharing.put(key, new)
        return new


def _typicality(features: tuple[CodedFeature, ...], rows: Evidence) -> np.ndarray:
    """How much the values of each distinct row are those of its class."""
    result = np.zeros(len(rows))
    for codes, feature in zip(rows.codes, features, strict=True):
        n_codes = len(feature.counts)
        cell = rows.answers * n_codes + codes
        result += np.log(np.bincount(cell, weights=rows.weights)[cell])
    return np.round(result, 9)  # so that rounding does not put one of two equal rows first


# --- REAL: rules by generalising single rows with questions to the black box ---------------------


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
    takes_categories: ClassVar[bool] = True

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
        sharing = None
        # Codes of categories depend on more than the rows, cuts on the discretiser.
        if self.discretiser is None and not extraction.categories:
            sharing = Sharing.of(extraction)
        coded = once(sharing, "REAL's rows", lambda: self._coded(extraction))
        # Fitted anew for every extractor, as far as anyone can tell.
        self.discretiser_ = copy.deepcopy(coded.discretiser)
        maker = RuleMaker(extraction, coded, self.min_precision, self.n_queries, sharing)
        premises, outputs = maker.make(self.max_rules, self.tolerance)
        self.n_rules_made_ = len(premises)
        kept = list(range(len(premises)))
        if self.subsumption:
            kept = [i for i in kept if not subsumed(i, premises, outputs)]
        premises, outputs = [premises[i] for i in kept], outputs[kept]
        classes = extraction.settings["classes"]
        listed = best_list(coded.rows, premises, outputs, len(classes), self.tolerance)
        rules = [
            Rule(
                _conditions(coded.features, premises[number]),
                classes[outputs[number]],
                RuleStatistics(answered.sum(), tuple(answered.tolist())),
            )
            for number, answered in listed
        ]
        return RuleSet(rules, ordered=True, **extraction.settings)

    def _coded(self, extraction: Extraction) -> CodedRows:
        """Put the rows into codes."""
        assert extraction.classes is not None
        discretiser = self._fitted_discretiser(extraction)
        cuts = {}
        if discretiser is not None:
            numeric = (j for j in range(extraction.X.shape[1]) if j not in extraction.categories)
            cuts = dict(zip(numeric, discretiser.cut_points_, strict=True))
        codes, features = code_rows(extraction.X, cuts, extraction.categories)
        rows, first, purity = distinct_rows(
            codes, features, extraction.answers, len(extraction.classes)
        )
        return CodedRows(discretiser, tuple(features), rows, first, purity)

    def _fitted_discretiser(self, extraction: Extraction) -> Discretiser | None:
        """Fit the discretiser on the numeric columns, if there are any."""
        n_features = extraction.X.shape[1]
        numeric = [j for j in range(n_features) if j not in extraction.categories]
        if not numeric:
            return None
        numbers: Any = extraction.X if len(numeric) == n_features else extraction.X[:, numeric]
        if hasattr(self, "feature_names_in_"):
            numbers = pd.DataFrame(numbers, columns=self.feature_names_in_[numeric], copy=False)
        given = self.discretiser
        usual = Discretiser("tree", min_bin_share=0.05, joint=True)
        fresh = usual if given is None else clone(given)
        return fresh.fit(numbers, extraction.answers)


def _conditions(features: Sequence[CodedFeature], premise: Premise) -> tuple[Condition, ...]:
    return tuple(
        feature.condition(j, allowed)
        for j, (feature, allowed) in enumerate(zip(features, premise, strict=True))
        if not allowed.all()
    )
