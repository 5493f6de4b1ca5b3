"""Optimal trees and lists: rules with the smallest possible loss, and its proof."""

from __future__ import annotations

import time
import warnings
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from sklearn.exceptions import ConvergenceWarning

from skescore import _validation as check
from skescore._text import T, plural
from skescore.extractors._base import BaseExtractor, Extraction, documented
from skescore.extractors._binned import BinnedTable, HistogramSource, reject_row_settings
from skescore.extractors._cart import CARTExtractor
from skescore.extractors._sampling import N_QUERIES
from skescore.optimal import (
    SOLVERS,
    Cuts,
    Frontier,
    SearchSpace,
    SolverLimits,
    candidate_cuts,
    grow_trees,
    losses_of_partitions,
)
from skescore.rules import AtLeast, Condition, Linear, Missing, OneOf, RowTable, Rule, RuleSet

_CRITERIA = {
    "classification": ("errors",),
    "regression": ("squared_error", "absolute_error"),
}
#: Default work limit of a search without other limits, in CPU seconds of a typical core.
_DEFAULT_WORK = 2.0
#: Share of the limits for local search over all cuts if the proof uses fewer cuts.
_GROWTH_SHARE = 0.4
#: Numbers of cuts per feature that local search may use, and smallest number of splits that it must
#: be able to evaluate with them.
_GROWTH_CUTS, _MIN_SPLITS = (None, 256, 64), 500
#: CPU seconds per row and feature, or per cut, for evaluating a split.
_SPLIT_WORK = 1e-8
#: CPU seconds per multiplication in a matrix product.
_PRODUCT_WORK = 4e-11
#: Smallest number of nodes per rule that a search for lists must be able to evaluate, and its
#: memory limit in bytes.
_NODES_PER_RULE, _LIST_MEMORY = 40, 2**29
#: Largest number of tree sizes that local search optimizes for the proof.
_MAX_GROWN_SIZES = 31
#: Largest number of rows for which CART's trees minimize absolute errors, which is slow.
_MAX_MEDIAN_ROWS = 1000
#: Parts of the docstrings of both extractors.
_DOCUMENTATION = {
    "limits": """
max_work : float, None or "auto", default="auto"
    Largest work of the search, counted in operations and converted to CPU seconds of a typical
    core. The same work gives the same rules on every machine. "auto": 2, or no limit if `max_nodes`
    or `time_limit` is set. None: no limit.
max_nodes : int, optional
    Largest number of nodes of the search. The time per node depends on the data.
time_limit : float, optional
    Largest wall time of the search in seconds. The rules then depend on the speed of the machine.
""",
    "proof": """
frontier_ : Frontier
    Lower bound on the loss and best rules found for each number of rules; its `space` lists all
    cuts.
lower_bounds_ : ndarray of shape (n_sizes,)
    Lower bounds on the training loss of rule sets with at most 1, 2, ... rules over the cuts of
    `frontier_.space`.
gap_ : float
    Difference between the training loss and its lower bound at the largest size; 0 if the rules are
    proven optimal.
status_ : str
    Result of the search at the largest size and its search space, such as "optimal over all cuts",
    "optimal over 16 cuts per feature" or "work limit reached over all cuts". Rules without a loss
    are optimal over all cuts. A note is added if CART or `start` has a smaller loss with rules
    outside of the search space.
""",
}
_STATUS_TEXTS = {
    "optimal": "optimal",
    "work_limit": "work limit reached",
    "time_limit": "time limit reached",
    "node_limit": "node limit reached",
    "memory_limit": "memory limit reached",
    "rounding": "solved up to rounding errors",
    "interrupted": "interrupted",
}


#: Description of the cuts between all neighboring values.
_ALL_CUTS = "all cuts"


@dataclass(frozen=True)
class _CutChoice:
    """Cuts of a search space.

    Parameters
    ----------
    cuts : Cuts
        The cuts.
    is_complete : bool
        Whether the features have no other cuts.
    text : str
        Description for messages.
    """

    cuts: Cuts
    is_complete: bool
    text: str


class BaseOptimalExtractor(BaseExtractor):
    """Base of the extractors that search for rules with a proof of optimality."""

    takes_categories = True

    start: Any
    cuts_per_feature: Any
    n_features_to_select: int | None
    criterion: str | None
    max_work: Any
    max_nodes: int | None
    time_limit: float | None

    #: Kind of rules, a key of :data:`skescore.optimal.SOLVERS`.
    _kind: str
    #: Number of cuts per feature if all cuts would take too long.
    _few_cuts: int

    @abstractmethod
    def _space(self, cuts: Cuts) -> SearchSpace:
        """Return the search space of rules over the given cuts."""

    @abstractmethod
    def _can_prove(self, extraction: Extraction, cuts: Cuts, seconds: float) -> bool:
        """Return whether a proof over the given cuts may succeed within `seconds`."""

    def _check_parameters(self) -> None:
        self._check_settings(self._task())

    def _check_settings(self, task: str) -> None:
        if self.cuts_per_feature != "auto":
            check.check_integer(
                "cuts_per_feature",
                self.cuts_per_feature,
                1,
                optional=True,
                remedy='"auto" uses all cuts where that is affordable.',
            )
        check.check_integer("n_features_to_select", self.n_features_to_select, 1, optional=True)
        if self.max_work != "auto":
            check.check_number("max_work", self.max_work, 0, optional=True)
        check.check_integer("max_nodes", self.max_nodes, 1, optional=True)
        check.check_number("time_limit", self.time_limit, 0, optional=True)
        check.check_choice("criterion", self.criterion, (None, *_CRITERIA[task]))
        if not isinstance(self._start_rules(), RuleSet | None):
            raise TypeError(
                f"start must be rules or a fitted extractor, got {self.start!r}. Fit the "
                "extractor; in a search, which clones it, pass FrozenEstimator(extractor)."
            )

    def _start_rules(self) -> Any:
        """Return the rules of `start`; None if it is None."""
        return getattr(self.start, "rules_", self.start)

    @property
    def _limits(self) -> SolverLimits:
        """Limits of the search."""
        max_work = self.max_work
        if isinstance(max_work, str):
            is_limited = self.time_limit is not None or self.max_nodes is not None
            max_work = None if is_limited else _DEFAULT_WORK
        return SolverLimits(self.time_limit, self.max_nodes, max_work=max_work)

    def _learn_named_rules(self, extraction: Extraction) -> RuleSet:
        return self._extract(extraction)  # the search supports missing values

    @staticmethod
    def _cart_trees(extraction: Extraction, n_leaves: int, loss: str) -> list[RuleSet]:
        """Return the largest trees of :class:`CARTExtractor`, with categories as codes."""
        criteria: list[str | None] = [None]
        if loss == "absolute_error" and len(extraction.X) <= _MAX_MEDIAN_ROWS:
            criteria.append("absolute_error")
        trees: list[RuleSet] = []
        if n_leaves < 2:
            return trees
        for criterion in criteria:
            cart = CARTExtractor(
                None, max_leaf_nodes=n_leaves, criterion=criterion, simplify=False, random_state=0
            )
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # fewer leaves than classes
                try:
                    rules = cart._learn_named_rules(extraction)
                except ValueError:  # trees of scikit-learn do not support such large numbers
                    return trees
            trees.append(_code_rules(rules, extraction))
        return trees

    def _extract(self, extraction: Extraction) -> RuleSet:
        started = time.monotonic()
        space, loss = self._space(Cuts(0, {}, {})), self.criterion or _CRITERIA[extraction.task][0]
        assert space.max_rules is not None
        incumbents = self._cart_trees(extraction, space.max_rules, loss)
        if self.start is not None:
            incumbents.append(_code_rules(self._start_rules(), extraction))
        choice = self._choose_cuts(extraction, incumbents)
        problem = _TrainingProblem(
            RowTable.of(extraction.X, extraction.settings["feature_names"]),
            extraction.predictions,
            {
                "loss": loss,
                "classes": None if extraction.classes is None else range(len(extraction.classes)),
                "sample_weight": extraction.weights,
            },
        )
        limits, start = self._limits, list(incumbents)
        if self._kind == "tree" and self.cuts_per_feature == "auto" and not choice.is_complete:
            start += self._grow_trees(extraction, problem, incumbents)
            choice = replace(choice, cuts=choice.cuts.with_rules(start, extraction.X))
            limits = _remaining_limits(limits, time.monotonic() - started)
        frontier = SOLVERS[self._kind](
            problem.table,
            problem.predictions,
            self._space(choice.cuts),
            start=start,
            limits=limits,
            **problem.options,
        )
        # No other cuts can reduce a loss of 0.
        space_text = choice.text if frontier.upper[-1] > 0 else _ALL_CUTS
        text = space_text + self._describe_better_rules(frontier, incumbents, problem)
        self._store_frontier(_decode_frontier(frontier, extraction), text, stacklevel=6)
        rules = self.frontier_.rules[-1]
        assert rules is not None
        return rules

    def _choose_cuts(self, extraction: Extraction, incumbents: Sequence[RuleSet]) -> _CutChoice:
        """Return the cuts of the search space, which include the cuts of the incumbents."""
        all_cuts = _candidate_cuts(extraction, self.n_features_to_select)
        cuts, per_feature = all_cuts, self.cuts_per_feature
        if per_feature == "auto":
            larger_cuts = all_cuts.with_rules(incumbents, extraction.X)
            is_affordable = self._can_prove(
                extraction, larger_cuts, _available_seconds(self._limits)
            )
            per_feature = None if is_affordable else self._few_cuts
        if per_feature is not None:
            cuts = _quantile_cuts(extraction, all_cuts, per_feature)
        is_complete = cuts.n_cuts == all_cuts.n_cuts
        text = _ALL_CUTS if is_complete else f"{plural(per_feature or 0, 'cut')} per feature"
        n_features = len({*cuts.thresholds, *cuts.categories})
        if n_features < extraction.X.shape[1]:
            text += f" of {plural(n_features, 'feature')}"
        return _CutChoice(cuts.with_rules(incumbents, extraction.X), is_complete, text)

    def _grow_trees(
        self, extraction: Extraction, problem: _TrainingProblem, incumbents: Sequence[RuleSet]
    ) -> list[RuleSet]:
        """Search trees by local search, over as many cuts as it can use within its limits."""
        seconds = _GROWTH_SHARE * _available_seconds(self._limits)
        all_cuts = _candidate_cuts(extraction, self.n_features_to_select)
        for per_feature in _GROWTH_CUTS:
            cuts = all_cuts
            if per_feature is not None:
                cuts = _quantile_cuts(extraction, all_cuts, per_feature)
            if _MIN_SPLITS * _SPLIT_WORK * (extraction.X.size + cuts.n_cuts) <= seconds:
                break
        limits = self._limits
        share_of_time = None if limits.time_limit is None else _GROWTH_SHARE * limits.time_limit
        share_of_work = None if limits.max_work is None else _GROWTH_SHARE * limits.max_work
        trees = grow_trees(
            problem.table,
            problem.predictions,
            self._space(cuts.with_rules(incumbents, extraction.X)),
            start=incumbents,
            limits=SolverLimits(share_of_time, max_work=share_of_work),
            **problem.options,
        )
        sizes = np.unique(np.linspace(1, len(trees), min(len(trees), _MAX_GROWN_SIZES)).astype(int))
        return [trees[size - 1] for size in sizes]

    def _describe_better_rules(
        self, frontier: Frontier, incumbents: Sequence[RuleSet], problem: _TrainingProblem
    ) -> str:
        """Return a note if CART or `start` has a smaller loss outside the search space; else ""."""
        losses = losses_of_partitions(
            problem.table, problem.predictions, incumbents, **problem.options
        )
        smallest = frontier.upper[-1] * (1 - 1e-9)
        better = [
            (loss, rules is incumbents[-1] and self.start is not None)
            for (n_parts, loss), rules in zip(losses, incumbents, strict=True)
            if n_parts <= frontier.sizes[-1] and loss < smallest
        ]
        if not better:
            return ""
        loss, is_start = min(better)
        name = "start" if is_start else "CART"
        return (
            f"; {name} has a loss of {loss:.6g} with rules that {self._space_text()} cannot express"
        )

    @abstractmethod
    def _space_text(self) -> str:
        """Return a description of the rules of the search space, for messages."""

    def _store_frontier(self, frontier: Frontier, space_text: str, *, stacklevel: int) -> None:
        """Store the frontier and the attributes of the proof, and warn if a gap remains."""
        self.frontier_, self.lower_bounds_ = frontier, frontier.lower
        self.gap_ = float(frontier.gap[-1])
        self.status_ = f"{_STATUS_TEXTS[frontier.status[-1]]} over {space_text}"
        if self.gap_ > 0:
            warnings.warn(
                f"The rules are not proven to be optimal ({self.status_}): their loss "
                f"({frontier.loss}) is {frontier.upper[-1]:.6g}, and the proven lower bound is "
                f"{frontier.lower[-1]:.6g}. Raise max_work or time_limit, allow fewer rules, or "
                "set cuts_per_feature to a smaller number.",
                ConvergenceWarning,
                stacklevel=stacklevel,
            )


@dataclass(frozen=True)
class _TrainingProblem:
    """Rows, predictions of the black box, and the loss that a search minimizes.

    Parameters
    ----------
    table : RowTable
        The rows.
    predictions : ndarray
        Class indices or numbers.
    options : dict
        Loss, classes and weights of the rows, as keyword arguments of the solvers.
    """

    table: RowTable
    predictions: np.ndarray
    options: dict[str, Any]


def _available_seconds(limits: SolverLimits) -> float:
    """Return the time that a search may take, in CPU seconds of a typical core."""
    if limits.max_work is None and limits.time_limit is None:
        return _DEFAULT_WORK
    return min(limits.work_limit, limits.deadline(0.0))


def _remaining_limits(limits: SolverLimits, seconds: float) -> SolverLimits:
    """Return the limits that remain after a local search that took `seconds`."""
    time_limit, max_work = limits.time_limit, limits.max_work
    return replace(
        limits,
        time_limit=None if time_limit is None else max(0.0, time_limit - seconds),
        max_work=None if max_work is None else (1 - _GROWTH_SHARE) * max_work,
    )


def _quantile_cuts(extraction: Extraction, all_cuts: Cuts, per_feature: int) -> Cuts:
    """Return cuts near the quantiles, for the features that have cuts in `all_cuts`."""
    cuts = candidate_cuts(extraction.X, per_feature, categories=list(extraction.categories))
    return cuts.select({*all_cuts.thresholds, *all_cuts.categories})


def _candidate_cuts(extraction: Extraction, n_features: int | None) -> Cuts:
    """Return all cuts of the features that rules may use."""
    X, categories = extraction.X, extraction.categories
    cuts = candidate_cuts(X, None, categories=list(categories))
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
    return cuts.select(chosen)


def _code_rules(rules: RuleSet, extraction: Extraction) -> RuleSet:
    """Convert conditions on category values to conditions on codes."""
    names = list(extraction.settings["feature_names"])
    used_names = [rules.feature_names[j] for j in sorted(rules.used_features)]
    unknown = [name for name in used_names if name not in names]
    if unknown:
        raise ValueError(
            f"start must hold rules about features of X, but {unknown[0]!r} is none of them. "
            "Extract them from the same columns."
        )

    features = [names.index(n) if n in used_names else -1 for n in rules.feature_names]
    coded_rules = []
    for i in () if rules.voting else rules.assignment_order:
        rule = rules[int(i)]
        try:
            conditions = [
                _code_condition(c, features, extraction.categories) for c in rule.conditions
            ]
        except _NeverHoldsError:
            continue
        coded_rules.append(Rule(tuple(c for c in conditions if c is not None), rule.output))
    return RuleSet(coded_rules, names, task=rules.task, classes=rules.classes)


class _NeverHoldsError(ValueError):
    """Raised for a condition that no training row satisfies."""


def _code_condition(
    condition: Condition, features: Sequence[int], categories: Mapping[int, tuple[Any, ...]]
) -> Condition | None:
    """Return a condition with renumbered features and with codes; None if all rows satisfy it."""
    if isinstance(condition, Linear):
        terms = tuple((features[j], weight) for j, weight in condition.terms)
        return replace(condition, terms=terms)
    if isinstance(condition, AtLeast):
        m, conditions = condition.m, []
        for nested in condition.conditions:
            try:
                coded = _code_condition(nested, features, categories)
            except _NeverHoldsError:
                continue
            m -= coded is None
            conditions += [] if coded is None else [coded]
        if m > len(conditions):
            raise _NeverHoldsError
        return AtLeast(m, tuple(conditions)) if m > 0 else None
    j = features[condition.feature]
    if not isinstance(condition, OneOf) or j not in categories:
        return replace(condition, feature=j)
    codes = [float(i) for i, value in enumerate(categories[j]) if value in condition.values]
    if codes:
        return replace(condition, feature=j, values=tuple(codes))
    # No training row has any of these values.
    if condition.negated:
        return None if condition.missing else Missing(j, negated=True)
    if condition.missing:
        return Missing(j)
    raise _NeverHoldsError


def _decode_frontier(frontier: Frontier, extraction: Extraction) -> Frontier:
    """Replace the codes of classes and categories in a frontier by their values."""

    def decode_condition(coded: Any) -> Any:
        if not isinstance(coded, OneOf) or coded.feature not in extraction.categories:
            return coded
        values = extraction.categories[coded.feature]
        return replace(coded, values=tuple(values[int(code)] for code in coded.values))

    def decode_rules(rules: RuleSet | None) -> RuleSet | None:
        if rules is None:
            return None
        classes = extraction.settings["classes"]
        return RuleSet(
            [
                Rule(
                    tuple(map(decode_condition, rule.conditions)),
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
    named_cuts = cuts | {"categories": categories}
    if "category_sets" in cuts:
        named_cuts["category_sets"] = {
            j: [list(decode_condition(OneOf(int(j), codes)).values) for codes in sets]
            for j, sets in cuts["category_sets"].items()
        }
    space = dict(frontier.space) | {
        "cuts": named_cuts,
        "classes": extraction.settings["classes"],
    }
    return replace(frontier, rules=tuple(map(decode_rules, frontier.rules)), space=space)


def _documented(cls: T) -> T:
    """Insert the shared parts into the docstring of an optimal extractor."""
    return documented(documented(cls, _DOCUMENTATION))


# --- trees ----------------------------------------------------------------------------------------


@_documented
class OptimalTreeExtractor(BaseOptimalExtractor):
    """Decision tree with the smallest loss among all trees with a limited number of leaves.

    The search considers all trees over the cuts that ``status_`` states. It proves that none of
    them has a smaller loss on the training rows, and computes lower bounds for trees with fewer
    leaves. If the proof takes too long, the best tree found is returned, and a
    ``ConvergenceWarning`` states its loss and the lower bound. The tree of :class:`CARTExtractor`
    with the same number of leaves never has a smaller loss. The leaves are disjoint rules. The
    black box is queried once. Categories and missing values are supported.

    Parameters
    ----------
    {estimator}
    max_leaf_nodes : int, default=4
        Largest number of leaves, from 2 to 10,000.
    cuts_per_feature : int, None or "auto", default="auto"
        Largest number of cuts of a numeric feature; the cuts nearest to its quantiles are used.
        None: all cuts between neighboring values. "auto": all cuts if the proof is expected to
        finish within the limits. Otherwise local search uses all cuts, and the proof uses 16 cuts
        per feature and the cuts of the trees that local search found. The cuts of CART's tree and
        of `start` are always added. A test of a category compares it with a single value, or with a
        set of values from CART's tree or `start`.
    n_features_to_select : int or None, default=20
        {selection}
    {loss}
    start : RuleSet or fitted extractor, optional
        Rules from which the search starts, on the same features. If a tree with at most
        `max_leaf_nodes` leaves partitions the training rows like these rules (uncovered rows count
        as one more leaf), the result has at most the loss of this tree. Otherwise the most similar
        tree is used, and ``status_`` states whether the rules are better. Outputs are not used, so
        linear outputs may have a smaller loss. M-of-N rules usually match no tree of this size.
    {limits}
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
    skescore.optimal.optimal_trees : The search and its search space.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> from skescore.extractors import OptimalTreeExtractor
    >>> data = load_iris(as_frame=True)
    >>> labels = data.target_names[data.target]
    >>> extractor = OptimalTreeExtractor(KNeighborsClassifier(9), max_leaf_nodes=3)
    >>> print(extractor.fit(data.data, labels).rules_)  # doctest: +NORMALIZE_WHITESPACE
    1. IF petal width (cm) ≤ 0.8 THEN setosa
       [50 rows, 100 % agree with the model, 100 % right (data)]
    2. IF petal length (cm) ≤ 4.75 AND petal width (cm) > 0.8 THEN versicolor
       [45 rows, 100 % agree with the model, 98 % right (data)]
    3. IF petal length (cm) > 4.75 AND petal width (cm) > 0.8 THEN virginica
       [55 rows, 93 % agree with the model, 89 % right (data)]
    otherwise, where no rule holds: virginica
    >>> extractor.lower_bounds_.tolist(), extractor.gap_, extractor.status_
    ([99.0, 49.0, 4.0], 0.0, 'optimal over all cuts')
    """

    _kind, _few_cuts = "tree", 16

    def __init__(
        self,
        estimator: Any,
        *,
        max_leaf_nodes: int = 4,
        cuts_per_feature: Any = "auto",
        n_features_to_select: int | None = 20,
        criterion: str | None = None,
        start: Any = None,
        max_work: Any = "auto",
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
        self.max_leaf_nodes = max_leaf_nodes
        self.cuts_per_feature = cuts_per_feature
        self.n_features_to_select = n_features_to_select
        self.criterion = criterion
        self.start = start
        self.max_work = max_work
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
        """Find the best tree from sums of rows in bins.

        Rows in the same bins form a cell; at most 262144 cells are supported. The sums of the cells
        determine the loss of all trees over the cuts between bins.

        Parameters
        ----------
        source : HistogramSource
            The rows; :func:`skescore.sources.extract_source` calls this method.

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
        reject_row_settings(
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
            # Two rows with the sums of a cell have the same loss as the cell in every leaf.
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
            start=[] if self.start is None else [self._start_rules()],
            limits=self._limits,
        )

        def finish_rules(rules: RuleSet | None) -> RuleSet | None:
            if rules is None:
                return None
            rules_in_domain = rules.replace(domain=table.domain)
            if classes is None and rules is frontier.rules[-1]:
                rules_in_domain = table.with_means(rules_in_domain)
            return table.finish_rules(rules_in_domain, self.uncovered, self.abstain_label)

        frontier = replace(frontier, rules=tuple(map(finish_rules, frontier.rules)))
        self._store_frontier(frontier, "all cuts between bins", stacklevel=3)
        assert self.frontier_.rules[-1] is not None
        self._store_rules(source, self.frontier_.rules[-1])
        return self

    def _space(self, cuts: Cuts) -> SearchSpace:
        return SearchSpace(self.max_leaf_nodes, cuts=cuts)

    def _space_text(self) -> str:
        return f"a tree of {plural(self.max_leaf_nodes, 'leaf').replace('leafs', 'leaves')}"

    def _can_prove(self, extraction: Extraction, cuts: Cuts, seconds: float) -> bool:
        if self.max_leaf_nodes == 2:
            return True
        # Medians cannot be computed from sums; they take about as long as 200 sums.
        n_sums = 3 if extraction.classes is None else len(extraction.classes)
        n_sums = 200 if self.criterion == "absolute_error" else n_sums
        n_products = float(cuts.n_cuts) ** 2 * len(extraction.X) * n_sums
        n_subproblems = 4.0 ** min(self.max_leaf_nodes - 3, 99)
        return _PRODUCT_WORK * n_products * n_subproblems <= seconds


# --- lists ----------------------------------------------------------------------------------------


@_documented
class OptimalListExtractor(BaseOptimalExtractor):
    """Ordered list with the smallest loss among all lists with a limited number of rules.

    The search considers all lists over the cuts that ``status_`` states. It proves that none of
    them has a smaller loss on the training rows, and computes lower bounds for lists with fewer
    rules. If the proof takes too long, a ``ConvergenceWarning`` states the loss of the best list
    and the lower bound. If the tree of :class:`CARTExtractor` with `max_rules` leaves can be
    written as a list of rules with at most `max_conditions` tests each, the result has at most this
    loss; otherwise ``status_`` states whether the tree is better. The last rule has no conditions
    and counts as a rule. The black box is queried once. Categories and missing values are
    supported.

    Parameters
    ----------
    {estimator}
    max_rules : int, default=4
        Largest number of rules, from 1 to 10,000.
    max_conditions : {1, 2, 3}, default=2
        Largest number of tests in a premise; an interval with two bounds counts as two tests.
    cuts_per_feature : int, None or "auto", default="auto"
        Largest number of cuts of a numeric feature; the cuts nearest to its quantiles are used.
        None: all cuts between neighboring values. "auto": all cuts if the proof is expected to
        finish within the limits, otherwise 8. The cuts of CART's tree and `start` are always added.
        A test of a category compares it with one value, or with a set from CART's tree or `start`.
    n_features_to_select : int or None, default=20
        {selection}
    {loss}
    start : RuleSet or fitted extractor, optional
        Rules from which the search starts, on the same features. If a list of the search space
        partitions the training rows like these rules (uncovered rows count as one more rule), the
        result has at most the loss of this list. Otherwise the most similar list is used, and
        ``status_`` states whether the rules are better. The outputs of the rules are not used.
    {limits}
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
    skescore.optimal.optimal_lists : The search and its search space.

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
    1. IF petal length (cm) > 4.75 AND petal width (cm) > 1.55 THEN virginica
       [49 rows, 100 % agree with the model, 94 % right (data)]
    2. ELSE IF petal length (cm) ≤ 2.45 THEN setosa
       [50 rows, 100 % agree with the model, 100 % right (data)]
    3. ELSE versicolor   [51 rows, 98 % agree with the model, 92 % right (data)]
    >>> extractor.lower_bounds_.tolist(), extractor.gap_, extractor.status_
    ([100.0, 50.0, 1.0], 0.0, 'optimal over all cuts')
    """

    _kind, _few_cuts = "list", 8

    def __init__(
        self,
        estimator: Any,
        *,
        max_rules: int = 4,
        max_conditions: int = 2,
        cuts_per_feature: Any = "auto",
        n_features_to_select: int | None = 20,
        criterion: str | None = None,
        start: Any = None,
        max_work: Any = "auto",
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
        self.max_work = max_work
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

    def _space_text(self) -> str:
        conditions = plural(self.max_conditions, "test")
        return f"a list of {plural(self.max_rules, 'rule')} of at most {conditions}"

    def _can_prove(self, extraction: Extraction, cuts: Cuts, seconds: float) -> bool:
        n_premises = 2.0 * cuts.n_cuts ** min(2, self.max_conditions)
        if self.max_conditions == 3:
            n_premises *= max(1.0, cuts.n_cuts / 3)
        n_sums = 4 if extraction.classes is None else len(extraction.classes)
        if self.criterion == "absolute_error":
            n_sums = len(np.unique(extraction.predictions))
        vectors = 12 + (6 + n_sums) * self.max_rules
        if 8 * n_premises * vectors > _LIST_MEMORY:
            return False
        seconds_per_node = n_premises * n_sums * (_PRODUCT_WORK * len(extraction.X) + 3e-9)
        return _NODES_PER_RULE * self.max_rules * seconds_per_node <= seconds
