"""CART: a decision tree on the black box's predictions, read as rules."""

from __future__ import annotations

import copy
import math
import warnings
from collections.abc import Collection
from dataclasses import replace
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from skescore import _validation as check
from skescore._validation import LARGEST_SQUARED
from skescore.constraints import (
    ConstrainedRules,
    enforce_on_tree,
    monotone_signs,
)
from skescore.extractors._base import BaseExtractor, Extraction, documented
from skescore.extractors._binned import (
    BinnedTable,
    HistogramSource,
    LabelMoments,
    reject_row_settings,
)
from skescore.extractors._histogram_tree import Growth, grow
from skescore.extractors._missing import known_value
from skescore.extractors._sampling import N_QUERIES
from skescore.extractors._sharing import Sharing, once
from skescore.extractors._subtrees import first_leaves, without_equal_siblings
from skescore.rules import Domain, Rule, RuleSet, with_statistics
from skescore.rules.importers import tree_to_ruleset

_CRITERIA = {
    "classification": ("gini", "entropy", "log_loss"),
    "regression": ("squared_error", "absolute_error", "poisson"),
}
#: Default number of leaves, and the largest default if there are more classes.
_DEFAULT_LEAVES, _MAX_DEFAULT_LEAVES = 6, 8
#: Largest number of leaves in a search that tries all sizes of a tree.
PATH_LEAVES = 32
#: Largest number in single precision.
_MAX_FLOAT32 = float(np.finfo(np.float32).max)


@documented
class CARTExtractor(BaseExtractor):
    """Rules from a decision tree that imitates the black box.

    Try this extractor first: it is fast, covers all rows, and queries the black box once.
    Trepan is often more faithful with the same number of rules, but its M-of-N conditions are
    longer. Categorical and text columns of a DataFrame are split into sets of values.

    Parameters
    ----------
    {estimator}
    max_leaf_nodes : int, None or "auto", default="auto"
        Largest number of leaves, each of which is a rule, at least 1; the tree grows best first.
        None: limited only by `max_depth`. "auto": None if `max_depth` is set; otherwise the number
        of classes, but at least 6 and at most 8, and 6 in regression.
    max_depth : int or None, default=None
        Largest number of splits on a path to a leaf; None for no limit.
    n_features_to_select : int or None, default=100
        {selection}
    max_features : int, float, {"sqrt", "log2"} or None, default=None
        Number of features that each split considers, as in scikit-learn's trees.
    criterion : str or None, default=None
        Split criterion of scikit-learn's tree; None: "gini" or "squared_error".
    min_samples_leaf : int or float, default=1
        Smallest number (or share) of rows in a leaf, as in scikit-learn's trees.
    ccp_alpha : float, default=0.0
        Complexity parameter of cost-complexity pruning, at least 0.
    simplify : bool, default=True
        True: return an ordered list without conditions that earlier rules make redundant. False:
        return one independent rule per leaf.
    merge_leaves : bool, default=False
        Whether to replace a subtree whose leaves all predict the same class by a leaf. This saves
        rules without changing predictions, and has no effect in regression.
    {common}
    random_state : int, RandomState instance or None, default=None
        Seed for the choice between equally good splits. Pass an int for reproducible rules.

    Attributes
    ----------
    rules_ : RuleSet
        The rules.
    {sizes}
    tree_ : DecisionTreeClassifier or DecisionTreeRegressor
        The tree, fitted to the black box's predictions; `category_order_` lists its codes.
    category_order_ : dict of str to list
        Values of each categorical feature, in the order in which the tree splits them.
    {fitted}

    Notes
    -----
    The values of a categorical feature are ordered once: by the black box's mean prediction or,
    with more than two classes, along the first principal component of their class shares. The tree
    splits the values by their indices in this order. Values that did not occur in training satisfy
    only conditions that exclude other values ("color ≠ red").

    References
    ----------
    L. Breiman, J. Friedman, C. Stone, R. Olshen: Classification and Regression Trees. CRC Press,
    1984.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> from skescore.extractors import CARTExtractor
    >>> data = load_iris(as_frame=True)
    >>> labels = data.target_names[data.target]
    >>> extractor = CARTExtractor(KNeighborsClassifier(9), max_leaf_nodes=3, random_state=0)
    >>> print(extractor.fit(data.data, labels).rules_)
    1. IF petal width (cm) ≤ 0.8 THEN setosa
       [50 rows, 100 % agree with the model, 100 % right (data)]
    2. ELSE IF petal length (cm) ≤ 4.75 THEN versicolor
       [45 rows, 100 % agree with the model, 98 % right (data)]
    3. ELSE virginica   [55 rows, 93 % agree with the model, 89 % right (data)]
    """

    takes_categories = True
    _orders_categories = True
    _keeps_monotone = True
    #: Factor for the number of leaves of trees that ignore monotonicity constraints; 0 if trees
    #: satisfy them.
    _growth: int = 0

    def __init__(
        self,
        estimator: Any,
        *,
        max_leaf_nodes: Any = "auto",
        max_depth: int | None = None,
        n_features_to_select: int | None = 100,
        max_features: Any = None,
        criterion: str | None = None,
        min_samples_leaf: float = 1,
        ccp_alpha: float = 0.0,
        simplify: bool = True,
        merge_leaves: bool = False,
        features: Any = None,
        sampling: Any = None,
        n_queries: int = N_QUERIES,
        prune: str | None = None,
        uncovered: str = "default",
        abstain_label: Any = None,
        batch_size: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.max_leaf_nodes = max_leaf_nodes
        self.max_depth = max_depth
        self.n_features_to_select = n_features_to_select
        self.max_features = max_features
        self.criterion = criterion
        self.min_samples_leaf = min_samples_leaf
        self.ccp_alpha = ccp_alpha
        self.simplify = simplify
        self.merge_leaves = merge_leaves
        self.features = features
        self.sampling = sampling
        self.n_queries = n_queries
        self.prune = prune
        self.uncovered = uncovered
        self.abstain_label = abstain_label
        self.batch_size = batch_size
        self.random_state = random_state

    def fit_sums(self, source: HistogramSource) -> CARTExtractor:
        """Learn rules from the histograms of any number of rows.

        The black box is not queried; the rules describe the labels of the rows.

        Parameters
        ----------
        source : HistogramSource
            Source of the histograms; :func:`skescore.sources.extract_source` calls this method.

        Returns
        -------
        self
            The fitted extractor. It has no ``tree_`` and, without a black box, no ``fidelity``.

        Raises
        ------
        ValueError
            If a parameter requires the rows themselves.

        Notes
        -----
        The rules are the same as from :meth:`fit` on bin numbers, except that the first feature is
        used if several splits are equally good.
        """
        classes = None if source.classes is None else list(source.classes)
        task = "regression" if classes is None else "classification"
        self._check_settings(task)
        criterion = self._criterion_of_sums(task)
        table = BinnedTable(source)
        table.use(table.important_features(self.n_features_to_select))
        total = table.total
        max_leaves = self._max_leaves(0 if classes is None else int(np.count_nonzero(total)))
        growth = Growth(
            task, criterion, max_leaves, self.max_depth, 0.0, source.unit, source.label_unit
        )
        weight = float(growth.weight(total))
        min_weight = self.min_samples_leaf
        if not isinstance(min_weight, Integral):
            min_weight = math.ceil(min_weight * weight)
        growth = replace(growth, min_weight=float(min_weight) if min_weight > 1 else 0.0)
        model = grow(table.fetch_histograms, growth)
        rules = tree_to_ruleset(
            model, simplify=self.simplify, feature_names=table.names, classes=classes, missing=False
        )
        if classes is None:
            # Rows may match several rules of the ordered list, but belong to a single leaf.
            leaves = tree_to_ruleset(model, feature_names=table.names, missing=False)
            moments = source.labels(table.restore_rules(leaves))
            rules = rules.replace(rules=list(map(LabelMoments.describe_rule, moments, rules.rules)))
        elif source.weighted:
            weights = model.tree_.weighted_n_node_samples[model.tree_.children_left < 0]
            rules = rules.replace(rules=list(map(_with_weight, rules.rules, weights.tolist())))
        self.category_order_ = table.category_order
        rules = table.finish_rules(table.restore_rules(rules), self.uncovered, self.abstain_label)
        self._store_rules(source, rules)
        return self

    def _check_parameters(self) -> None:
        self._check_settings(self._task())

    def _criterion_of_sums(self, task: str) -> str:
        """Return the criterion; raise a ValueError if a parameter requires rows."""
        criterion = self.criterion or _CRITERIA[task][0]
        reject_row_settings(
            self,
            criterion=criterion in ("absolute_error", "poisson"),
            max_features=self.max_features is not None,
            ccp_alpha=self.ccp_alpha > 0,
            prune=self.prune is not None,
        )
        return criterion

    def _max_leaves(self, n_classes: int) -> int | None:
        if not isinstance(self.max_leaf_nodes, str):
            return self.max_leaf_nodes
        return (
            max(_DEFAULT_LEAVES, min(n_classes, _MAX_DEFAULT_LEAVES))
            if self.max_depth is None
            else None
        )

    def _check_settings(self, task: str) -> None:
        if self.max_leaf_nodes != "auto":
            check.check_integer(
                "max_leaf_nodes",
                self.max_leaf_nodes,
                1,
                optional=True,
                remedy='"auto" is 6 to 8, or None if max_depth is given.',
            )
        check.check_integer("max_depth", self.max_depth, 1, optional=True)
        check.check_integer("n_features_to_select", self.n_features_to_select, 1, optional=True)
        if isinstance(self.min_samples_leaf, Integral):
            check.check_integer("min_samples_leaf", self.min_samples_leaf, 1)
        else:
            check.check_number("min_samples_leaf", self.min_samples_leaf, 0.0, 1.0)
        if isinstance(self.max_features, bool):  # scikit-learn would treat it as a number
            raise TypeError(
                "max_features must be an int, a float, 'sqrt', 'log2' or None, got "
                f"{self.max_features!r}."
            )
        check.check_number("ccp_alpha", self.ccp_alpha, 0.0)
        check.check_flag("simplify", self.simplify)
        check.check_flag("merge_leaves", self.merge_leaves)
        check.check_choice("criterion", self.criterion, (None, *_CRITERIA[task]))

    def _extract(self, extraction: Extraction) -> RuleSet:
        classification = extraction.task == "classification"
        extraction.check_magnitude(_MAX_FLOAT32, "trees work in single precision")
        n_classes = len(np.unique(extraction.predictions)) if classification else 0
        ordered = extraction.categories
        names = extraction.settings["feature_names"]
        self.category_order_ = {
            str(names[j]): list(map(known_value, values)) for j, values in ordered.items()
        }
        exponents = _scaling_exponents(extraction.settings["domain"])
        extraction.check_predictions(LARGEST_SQUARED)
        self.tree_ = tree = self._fit_tree(extraction, exponents, n_classes)
        max_leaves = self.max_leaf_nodes
        if (
            classification
            and isinstance(max_leaves, int | np.integer)
            and (1 < max_leaves < n_classes)
        ):
            warnings.warn(
                f"max_leaf_nodes={max_leaves} is less than the {n_classes} classes that the black "
                "box predicts, so some of them are never predicted.",
                UserWarning,
                stacklevel=3,
            )
        settings = {name: value for name, value in extraction.settings.items() if name != "task"}
        rules = tree_to_ruleset(tree, simplify=self.simplify, **settings)
        if exponents.any():
            rules = _undo_scaling(rules, exponents)
            is_split = tree.tree_.feature >= 0
            power = exponents[tree.tree_.feature[is_split]]
            tree.tree_.threshold[is_split] = np.ldexp(tree.tree_.threshold[is_split], -power)
        if tree.monotonic_cst is not None:  # the values of its leaves do not describe the rows
            labels, classes = extraction.predictions, extraction.classes
            labels = labels if classes is None else classes[labels]
            rules = with_statistics(rules, extraction.X, labels)
        return rules

    def _other_constrained_rules(
        self, extraction: Extraction, rows: Any, labels: np.ndarray, native: Collection[str]
    ) -> list[ConstrainedRules]:
        """Grow trees without monotonicity constraints, and then adjust the outputs of their leaves.

        In scikit-learn's monotone trees, splits bound the outputs of all leaves below. Adjusting
        the outputs of a larger tree reduces the fidelity less.
        """
        constraints = self._constraints
        if constraints is None or not constraints.monotone:
            return []
        state = {name: vars(self)[name] for name in ("simplify", "tree_", "category_order_")}
        n_classes = 0 if extraction.classes is None else len(extraction.classes)
        max_rules = self._max_leaves(n_classes)
        results = []
        try:
            self.simplify = False
            for self._growth in (1, 3):
                leaves = self._extract_rules(extraction)
                results.append(
                    enforce_on_tree(leaves, constraints, rows, labels, max_rules, native)
                )
        finally:
            self.__dict__.pop("_growth", None)
            for name, value in state.items():
                setattr(self, name, value)
        return results

    def _monotone_signs(self, extraction: Extraction) -> list[int] | None:
        """Return the monotonicity constraints of the columns in scikit-learn's format."""
        if self._constraints is None or self._growth:
            return None
        names, classes = extraction.settings["feature_names"], extraction.classes
        if classes is not None and len(np.unique(extraction.predictions)) < 2:
            return None
        labels = None if classes is None else classes.tolist()
        return monotone_signs(self._constraints, list(map(str, names)), labels)

    def _columns(self, extraction: Extraction, exponents: np.ndarray) -> np.ndarray:
        """Return the input of the tree: scaled rows, with all unselected features set to 0."""
        X, n_features = extraction.X, self.n_features_to_select
        if n_features is not None and n_features < X.shape[1]:
            chosen = once(
                Sharing.of(extraction),
                ("important features", n_features),
                lambda: extraction.important_features(n_features),
            )
            # Constant features are never split.
            X = np.where(np.isin(np.arange(X.shape[1]), chosen), X, 0.0)
        return _scale(X, exponents)

    def _fit_tree(self, extraction: Extraction, exponents: np.ndarray, n_classes: int) -> Any:
        """Fit the tree to the predictions; candidates of a search share the largest tree."""
        n_rows = len(extraction.X)
        is_path = self.max_depth is None and self.ccp_alpha == 0 and self.max_features is None
        max_leaves = self._max_leaves(n_classes)
        if max_leaves is not None:
            max_leaves *= max(1, self._growth)
        sharing = Sharing.of(extraction) if self.random_state is not None and is_path else None
        n_grown = max_leaves
        if max_leaves is not None:
            # The tree allocates memory for all leaves in advance.
            n_grown = min(max_leaves, max(2, n_rows))
            if sharing is not None:
                n_grown = max(n_grown, min(PATH_LEAVES, max(2, n_rows)))
            n_grown = max(2, n_grown)
        is_classification = extraction.task == "classification"
        tree = (DecisionTreeClassifier if is_classification else DecisionTreeRegressor)(
            criterion=self.criterion or _CRITERIA[extraction.task][0],
            max_leaf_nodes=n_grown,
            max_depth=self.max_depth,
            max_features=self.max_features,
            min_samples_leaf=self.min_samples_leaf,
            ccp_alpha=self.ccp_alpha,
            monotonic_cst=self._monotone_signs(extraction),
            random_state=self.random_state,
        )
        if isinstance(self.random_state, np.random.RandomState):
            sharing = None
        key = "tree", repr(tree), repr(self.n_features_to_select)
        tree = once(
            sharing,
            key,
            lambda: tree.fit(self._columns(extraction, exponents), extraction.predictions),
        )
        if max_leaves is not None:
            tree = first_leaves(tree, max_leaves)
        if self.merge_leaves and is_classification:
            tree = without_equal_siblings(tree)
        return copy.deepcopy(tree) if sharing is not None else tree


def _with_weight(rule: Rule, weight: float) -> Rule:
    assert rule.statistics is not None
    return replace(rule, statistics=replace(rule.statistics, n_rows=weight))


def _scaling_exponents(domain: Domain) -> np.ndarray:
    """Return exponents of two that scale features with magnitudes below 1 to at least 1.

    Trees treat numbers that differ by less than 1e-7 as equal, regardless of the unit. Above 1,
    this is within the rounding of single precision.
    """
    largest = np.maximum(np.abs(domain.lower), np.abs(domain.upper))
    return np.where((largest > 0) & (largest < 1), 1 - np.frexp(largest)[1], 0)


def _scale(X: np.ndarray, exponents: np.ndarray) -> np.ndarray:
    """Scale features by powers of two, in the single precision of the tree."""
    if not exponents.any():
        return X
    result = np.empty(X.shape, dtype=np.float32)
    return np.ldexp(X, exponents, out=result, casting="same_kind")


def _undo_scaling(ruleset: RuleSet, exponents: np.ndarray) -> RuleSet:
    """Convert the bounds of the rules to the original units, exactly."""

    def unscale(bound: float, feature: int) -> float:
        return math.ldexp(bound, -int(exponents[feature]))

    rules = [
        Rule(
            tuple(
                replace(c, lower=unscale(c.lower, c.feature), upper=unscale(c.upper, c.feature))
                for c in rule.intervals
            ),
            rule.output,
            rule.statistics,
        )
        for rule in ruleset.rules
    ]
    return ruleset.replace(rules=rules)
