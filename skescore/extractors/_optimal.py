"""Optimal trees and lists: rules with the smallest possible loss, and the proof."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from skescore import _validation as check
from skescore.extractors._base import BaseExtractor, Extraction, documented
from skescore.extractors._binned import BinnedTable, HistogramSource, needs_rows
from skescore.extractors._sampling import N_QUERIES
from skescore.optimal import SOLVERS, Cuts, Frontier, SearchSpace, SolverLimits, candidate_cuts
from skescore.rules import Condition, Interval, Missing, OneOf, RowTable, Rule, RuleSet

_CRITERIA = {
    "classification": ("errors",),
    "regression": ("squared_error", "absolute_error"),
}


class BaseOptimalExtractor(BaseExtractor):
    """Base of the extractors that search for optimal rules and prove their optimality."""

    takes_categories = True

    start: Any
    cuts_per_feature: int | None
    n_features_to_select: int | None
    criterion: str | None
    max_nodes: int | None
    time_limit: float | None

    #: Kind of the rules, a key of :data:`skescore.optimal.SOLVERS`.
    _kind: str

    @abstractmethod
    def _space(self, cuts: Cuts) -> SearchSpace:
        """Return the space of rules over some cuts."""

    def _node_limit(self, extraction: Extraction) -> int | None:
        """Return the largest number of nodes of the search."""
        return self.max_nodes

    def _check_parameters(self) -> None:
        self._check_settings(self._task())

    def _check_settings(self, task: str) -> None:
        check.check_integer("cuts_per_feature", self.cuts_per_feature, 1, optional=True)
        check.check_integer("n_features_to_select", self.n_features_to_select, 1, optional=True)
        check.check_integer("max_nodes", self.max_nodes, 1, optional=True)
        check.check_number("time_limit", self.time_limit, 0, optional=True)
        check.check_choice("criterion", self.criterion, (None, *_CRITERIA[task]))
        if not isinstance(self._start(), RuleSet | None):
            raise TypeError(
                f"start must be rules or a fitted extractor, got {self.start!r}. Fit it, and pass "
                "it in FrozenEstimator where it would be cloned."
            )

    def _start(self) -> Any:
        """Return the rules that the search starts from; None without any."""
        return getattr(self.start, "rules_", self.start)

    def _named_rules(self, extraction: Extraction) -> RuleSet:
        return self._extract(extraction)  # the search supports missing values

    def _extract(self, extraction: Extraction) -> RuleSet:
        cuts = _cuts_to_compare(extraction, self.cuts_per_feature, self.n_features_to_select)
        frontier = SOLVERS[self._kind](
            RowTable.of(extraction.X, extraction.settings["feature_names"]),
            extraction.predictions,
            self._space(cuts),
            loss=self.criterion or _CRITERIA[extraction.task][0],
            classes=None if extraction.classes is None else range(len(extraction.classes)),
            start=[] if self.start is None else [_coded_rules(self._start(), extraction)],
            limits=SolverLimits(self.time_limit, self._node_limit(extraction)),
        )
        self._keep(_named_frontier(frontier, extraction))
        rules = self.frontier_.rules[-1]
        assert rules is not None
        return rules

    def _keep(self, frontier: Frontier) -> None:
        """Store the frontier and the proof."""
        self.frontier_, self.lower_bounds_ = frontier, frontier.lower
        self.gap_, self.status_ = float(frontier.gap[-1]), frontier.status[-1]


def _cuts_to_compare(
    extraction: Extraction, per_feature: int | None, n_features: int | None
) -> Cuts:
    """Return the candidate cuts of the features that rules may use."""
    X, categories = extraction.X, extraction.categories
    cuts = candidate_cuts(X, per_feature, categories=list(categories))
    filled = X.copy()
    for j in cuts.missing_features:
        gaps = np.isnan(X[:, j])
        filled[gaps, j] = len(categories[j]) if j in categories else np.median(X[~gaps, j])
    categories_with_gaps = {
        j: (*values, None) if j in cuts.missing_features else values
        for j, values in categories.items()
    }
    filled_extraction = replace(
        extraction, X=np.nan_to_num(filled), categories=categories_with_gaps
    )
    chosen = set(filled_extraction.important_features(n_features).tolist())
    return Cuts(
        cuts.n_features,
        {j: feature_cuts for j, feature_cuts in cuts.thresholds.items() if j in chosen},
        {j: feature_cuts for j, feature_cuts in cuts.categories.items() if j in chosen},
        tuple(j for j in cuts.missing_features if j in chosen),
    )


def _coded_rules(rules: RuleSet, extraction: Extraction) -> RuleSet:
    """Convert conditions on category values to conditions on codes."""
    names = list(extraction.settings["feature_names"])
    unknown = [name for name in rules.feature_names if name not in names]
    if unknown:
        raise ValueError(
            f"start must hold rules about features of X, but {unknown[0]!r} is none of them. "
            "Extract them from the same columns."
        )

    def coded(condition: Condition) -> Condition | None:
        """Return the condition on codes; None if the search does not support it."""
        if not isinstance(condition, Interval | Missing | OneOf):
            return None
        j = names.index(rules.feature_names[condition.feature])
        if not isinstance(condition, OneOf) or j not in extraction.categories:
            return replace(condition, feature=j)
        known_categories = list(extraction.categories[j])
        codes = tuple(
            float(known_categories.index(value))
            for value in condition.values
            if value in known_categories
        )
        return replace(condition, feature=j, values=codes) if codes else None

    coded_rules = []
    for rule in rules:
        conditions = [
            coded_condition
            for one in rule.conditions
            if (coded_condition := coded(one)) is not None
        ]
        if len(conditions) == len(rule.conditions):
            coded_rules.append(Rule(tuple(conditions), rule.output))
    return RuleSet(coded_rules, names, task=rules.task, classes=rules.classes)


def _named_frontier(frontier: Frontier, extraction: Extraction) -> Frontier:
    """Replace codes in the rules of a frontier by labels and category values."""

    def condition(coded: Condition) -> Condition:
        if not isinstance(coded, OneOf):
            return coded
        values = extraction.categories[coded.feature]
        return replace(coded, values=tuple(values[int(code)] for code in coded.values))

    def named(rules: RuleSet | None) -> RuleSet | None:
        if rules is None:
            return None
        classes = extraction.settings["classes"]
        return RuleSet(
            [
                Rule(
                    tuple(map(condition, rule.conditions)),
                    rule.output if classes is None else classes[rule.output],
                    rule.statistics,
                )
                for rule in rules
            ],
            **extraction.settings,
            ordered=rules.ordered,
            disjoint=rules.disjoint,
        )

    cuts = frontier.space["cuts"]
    categories = {
        j: [extraction.categories[int(j)][int(code)] for code in codes]
        for j, codes in cuts["categories"].items()
    }
    space = dict(frontier.space) | {
        "cuts": cuts | {"categories": categories},
        "classes": extraction.settings["classes"],
    }
    return replace(frontier, rules=tuple(map(named, frontier.rules)), space=space)


# --- trees ----------------------------------------------------------------------------------------


@documented
class OptimalTreeExtractor(BaseOptimalExtractor):
    """Decision tree with the smallest loss among all trees with a limited number of leaves.

    Of all trees over some cuts of the features, one with the fewest errors on the training rows,
    and for every number of leaves a proven bound of the fewest. Its leaves are the rules, and no
    row satisfies two of them. The black box is queried once. Categories and missing values are
    taken as they are.

    Parameters
    ----------
    {estimator}
    max_leaf_nodes : int, default=4
        Most leaves, from 2 to 10,000.
    cuts_per_feature : int or None, default=16
        Most cuts of a number, those nearest to its quantiles. None: between any two neighboring
        values, which takes longer.
    n_features_to_select : int or None, default=20
        {selection}
    {loss}
    start : RuleSet or fitted extractor, optional
        Rules about the same features to begin with, CART's say: the tree is never worse than these
        are where they are leaves of one that the space holds. Conclusions do not matter.
    max_nodes : int or None, default=100
        Sets of rows that the search looks at, after which the best tree found is taken; see
        ``status_``. None for no limit.
    time_limit : float, optional
        Seconds after which the best tree found is taken. The rules then depend on the machine.
    {common}

    Attributes
    ----------
    rules_ : RuleSet
        The rules.
    {sizes}
    {proof}
    {fitted}

    See Also
    --------
    skescore.optimal.optimal_trees : The search, and what it compares.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> from skescore.extractors import OptimalTreeExtractor
    >>> data = load_iris(as_frame=True)
    >>> labels = data.target_names[data.target]
    >>> extractor = OptimalTreeExtractor(KNeighborsClassifier(9), max_leaf_nodes=3)
    >>> print(extractor.fit(data.data, labels).rules_)  # doctest: +NORMALIZE_WHITESPACE
    1. IF petal width (cm) ≤ 0.8 THEN setosa   [50 rows, 100 % agree with the model]
    2. IF petal length (cm) ≤ 4.85 AND petal width (cm) > 0.8 THEN versicolor
       [49 rows, 96 % agree with the model]
    3. IF petal length (cm) > 4.85 AND petal width (cm) > 0.8 THEN virginica
       [51 rows, 96 % agree with the model]
    otherwise, where no rule holds: virginica
    >>> extractor.lower_bounds_.tolist(), extractor.gap_, extractor.status_
    ([99.0, 49.0, 4.0], 0.0, 'optimal')
    """

    _kind = "tree"

    def __init__(
        self,
        estimator: Any,
        *,
        max_leaf_nodes: int = 4,
        cuts_per_feature: int | None = 16,
        n_features_to_select: int | None = 20,
        criterion: str | None = None,
        start: Any = None,
        max_nodes: int | None = 100,
        time_limit: float | None = None,
        features: Any = None,
        sampling: Any = None,
        n_queries: int = N_QUERIES,
        prune: str | None = None,
        uncovered: str = "default",
        abstain_label: Any = None,
        batch_size: int | None = None,
    ) -> None:
        self.estimator = estimator
        self.max_leaf_nodes = max_leaf_nodes
        self.cuts_per_feature = cuts_per_feature
        self.n_features_to_select = n_features_to_select
        self.criterion = criterion
        self.start = start
        self.max_nodes = max_nodes
        self.time_limit = time_limit
        self.features = features
        self.sampling = sampling
        self.n_queries = n_queries
        self.prune = prune
        self.uncovered = uncovered
        self.abstain_label = abstain_label
        self.batch_size = batch_size

    def _check_settings(self, task: str) -> None:
        check.check_integer("max_leaf_nodes", self.max_leaf_nodes, 2, 10_000)
        super()._check_settings(task)

    def fit_sums(self, source: HistogramSource) -> OptimalTreeExtractor:
        """Find the best tree from the sums of rows in bins.

        Rows in the same bins form a cell. The sums of the cells determine all trees over the cuts.
        At most 262144 cells are supported.

        Parameters
        ----------
        source : HistogramSource
            The rows; :func:`skescore.sources.extract_source` calls this method with them.

        Returns
        -------
        self
            The fitted extractor. It has no black box, so ``fidelity`` is not available.

        Raises
        ------
        ValueError
            If a parameter requires the rows themselves, or there are too many cells.
        """
        columns, classes = source.columns, source.classes
        self._check_settings("regression" if classes is None else "classification")
        n_features = self.n_features_to_select
        needs_rows(
            self,
            criterion=self.criterion == "absolute_error",
            prune=self.prune is not None,
            n_features_to_select=n_features is not None
            and n_features < len(columns)
            and "name the columns in features=...",
        )
        table = BinnedTable(source)
        bins, sums = source.cells()
        columns_with_gaps = tuple(
            j for j, c in enumerate(columns) if 0 < (bins[:, j] == c.n_bins).sum() < len(bins)
        )
        cuts = Cuts(
            len(columns),
            {j: c.cuts for j, c in enumerate(columns) if c.values is None},
            {j: c.values for j, c in enumerate(columns) if c.values is not None},
            columns_with_gaps,
        )
        if classes is not None:
            cell, label = np.nonzero(sums)
            y = np.array(list(classes), dtype=object)[label]
            weights = sums[cell, label] * source.unit
        else:
            # Two rows reproduce the sums of a cell, and so its loss in every leaf.
            weight, mean, deviation = table.moments(sums).T
            cell = np.tile(np.arange(len(sums)), 2)
            spread = np.sqrt(deviation / weight)
            y, weights = np.concatenate([mean - spread, mean + spread]), np.tile(weight / 2, 2)
        names = [column.name for column in columns]
        values = {c.name: c.values_in(bins[cell, j]) for j, c in enumerate(columns)}
        frontier = SOLVERS[self._kind](
            pd.DataFrame(values, columns=names),
            y,
            self._space(cuts),
            loss="errors" if classes is not None else "squared_error",
            classes=classes,
            sample_weight=weights,
            start=[] if self.start is None else [self._start()],
            limits=SolverLimits(self.time_limit, self.max_nodes),
        )

        def finish_rules(rules: RuleSet | None) -> RuleSet | None:
            if rules is None:
                return None
            rules_in_domain = rules.replace(domain=table.domain)
            if classes is None and rules is frontier.rules[-1]:
                rules_in_domain = table.with_means(rules_in_domain)
            return table.finish_rules(rules_in_domain, self.uncovered, self.abstain_label)

        self._keep(replace(frontier, rules=tuple(map(finish_rules, frontier.rules))))
        assert self.frontier_.rules[-1] is not None
        self._learn_sums(source, self.frontier_.rules[-1])
        return self

    def _space(self, cuts: Cuts) -> SearchSpace:
        return SearchSpace(self.max_leaf_nodes, cuts=cuts)


# --- lists ----------------------------------------------------------------------------------------


#: The default number of nodes is this divided by the number of rows, but at least 30.
_ROWS, _FEWEST_NODES = 1_000_000, 30
#: Largest default number of nodes. Nodes of a regression take five times as long.
_MOST_NODES = {"classification": 1000, "regression": 200}


@documented
class OptimalListExtractor(BaseOptimalExtractor):
    """Ordered list with the smallest loss among all lists with a limited number of rules.

    Of all lists over some cuts of the features, one with the fewest errors on the training rows,
    and for every number of rules a proven bound of the fewest: so that one knows how much a better
    list could be better. The last rule always holds and counts. The black box is queried once.
    Categories and missing values are taken as they are.

    Parameters
    ----------
    {estimator}
    max_rules : int, default=4
        Most rules, from 1 to 10,000.
    max_conditions : {1, 2, 3}, default=2
        Most tests in a premise; an interval with two bounds is two of them.
    cuts_per_feature : int or None, default=8
        Most cuts of a number, those nearest to its quantiles. None: between any two neighboring
        values, which takes long.
    n_features_to_select : int or None, default=20
        {selection}
    {loss}
    start : RuleSet or fitted extractor, optional
        Rules about the same features to begin with, those of another extractor say: the list is
        never worse than these are where the space holds them. What they ask beside it is replaced
        by what is nearest. Conclusions do not matter.
    max_nodes : int or None, default=None
        Nodes of the search, after which the best list found is taken; see ``status_``. None: a
        million divided by the number of rows, but from 30 to 1000 (200 in regression), which takes
        some seconds.
    time_limit : float, optional
        Seconds after which the best list found is taken. The rules then depend on the machine.
    {common}

    Attributes
    ----------
    rules_ : RuleSet
        The rules.
    {sizes}
    {proof}
    {fitted}

    See Also
    --------
    skescore.optimal.optimal_lists : The search, and what it compares.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> from skescore.extractors import OptimalListExtractor
    >>> data = load_iris(as_frame=True)
    >>> labels = data.target_names[data.target]
    >>> extractor = OptimalListExtractor(KNeighborsClassifier(9), max_rules=3)
    >>> extractor = extractor.fit(data.data.iloc[:, 2:], labels)
    >>> print(extractor.rules_)  # doctest: +NORMALIZE_WHITESPACE
    1. IF petal length (cm) > 4.55 AND petal width (cm) > 1.55 THEN virginica
       [50 rows, 98 % agree with the model]
    2. ELSE IF petal length (cm) ≤ 2.45 THEN setosa   [50 rows, 100 % agree with the model]
    3. ELSE versicolor   [50 rows, 98 % agree with the model]
    >>> extractor.lower_bounds_.tolist(), extractor.gap_, extractor.status_
    ([100.0, 50.0, 2.0], 0.0, 'optimal')
    """

    _kind = "list"

    def __init__(
        self,
        estimator: Any,
        *,
        max_rules: int = 4,
        max_conditions: int = 2,
        cuts_per_feature: int | None = 8,
        n_features_to_select: int | None = 20,
        criterion: str | None = None,
        start: Any = None,
        max_nodes: int | None = None,
        time_limit: float | None = None,
        features: Any = None,
        sampling: Any = None,
        n_queries: int = N_QUERIES,
        prune: str | None = None,
        uncovered: str = "default",
        abstain_label: Any = None,
        batch_size: int | None = None,
    ) -> None:
        self.estimator = estimator
        self.max_rules = max_rules
        self.max_conditions = max_conditions
        self.cuts_per_feature = cuts_per_feature
        self.n_features_to_select = n_features_to_select
        self.criterion = criterion
        self.start = start
        self.max_nodes = max_nodes
        self.time_limit = time_limit
        self.features = features
        self.sampling = sampling
        self.n_queries = n_queries
        self.prune = prune
        self.uncovered = uncovered
        self.abstain_label = abstain_label
        self.batch_size = batch_size

    def _check_parameters(self) -> None:
        check.check_integer("max_rules", self.max_rules, 1, 10_000)
        check.check_integer("max_conditions", self.max_conditions, 1, 3)
        super()._check_parameters()

    def _space(self, cuts: Cuts) -> SearchSpace:
        return SearchSpace(self.max_rules, self.max_conditions, cuts)

    def _node_limit(self, extraction: Extraction) -> int:
        nodes = max(_FEWEST_NODES, min(_MOST_NODES[extraction.task], _ROWS // len(extraction.X)))
        return nodes if self.max_nodes is None else self.max_nodes
