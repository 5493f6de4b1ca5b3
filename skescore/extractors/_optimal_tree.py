"""OptimalTree: the decision tree with the fewest errors of all, or how far from it one is."""

from __future__ import annotations

from typing import Any

from skescore import _validation as check
from skescore.extractors._base import BaseExtractor, Extraction
from skescore.extractors._docstrings import documented
from skescore.extractors._optimal_space import cuts_to_compare, named_frontier
from skescore.optimal import optimal_trees
from skescore.rules import RuleSet

_CRITERIA = {
    "classification": ("errors",),
    "regression": ("squared_error", "absolute_error"),
}


@documented
class OptimalTreeExtractor(BaseExtractor):
    """The decision tree of at most so many leaves that departs least from the black box.

    Of all trees over some cuts of the features, one with the fewest errors on the training rows,
    and for every number of leaves a proven bound of the fewest. Its leaves are the rules, and no
    row satisfies two of them. The black box is queried once. Categories and missing values are
    taken as they are.

    Parameters
    ----------
    {estimator}
    max_leaf_nodes : int, default=4
        Most leaves, at least 2.
    cuts_per_feature : int or None, default=16
        Most cuts of a number, those nearest to its quantiles. None: between any two neighbouring
        values, which takes longer.
    n_features_to_select : int or None, default=20
        {selection}
    criterion : str or None, default=None
        What is summed over the rows: "errors" for classes, "squared_error" or "absolute_error" for
        numbers. None is "errors" or "squared_error"; absolute errors take far longer.
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
    frontier_ : Frontier
        Bounds of the loss, and rules, for each number of leaves.
    lower_bounds_ : ndarray of shape (max_leaf_nodes,)
        No tree of at most 1, 2, ... leaves has a smaller loss on the training rows.
    gap_ : float
        By how much the loss of the best tree of at most `max_leaf_nodes` could be smaller; 0 where
        it is proven to be the best.
    status_ : str
        "optimal", or what ended the search: "node_limit", "time_limit".
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
    >>> print(extractor.fit(data.data, labels).rules_)
    1. IF petal width (cm) ≤ 0.8 THEN setosa   [50 rows, 100 % pure]
    2. IF petal length (cm) ≤ 4.85 AND petal width (cm) > 0.8 THEN versicolor   [49 rows, 96 % pure]
    3. IF petal length (cm) > 4.85 AND petal width (cm) > 0.8 THEN virginica   [51 rows, 96 % pure]
    otherwise, where no rule holds: virginica
    >>> extractor.lower_bounds_.tolist(), extractor.gap_, extractor.status_
    ([99.0, 49.0, 4.0], 0.0, 'optimal')
    """

    takes_categories = True

    def __init__(
        self,
        estimator: Any,
        *,
        max_leaf_nodes: int = 4,
        cuts_per_feature: int | None = 16,
        n_features_to_select: int | None = 20,
        criterion: str | None = None,
        max_nodes: int | None = 100,
        time_limit: float | None = None,
        features: Any = None,
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
        self.max_nodes = max_nodes
        self.time_limit = time_limit
        self.features = features
        self.prune = prune
        self.uncovered = uncovered
        self.abstain_label = abstain_label
        self.batch_size = batch_size

    def _check_parameters(self) -> None:
        check.check_integer("max_leaf_nodes", self.max_leaf_nodes, 2)
        check.check_integer("cuts_per_feature", self.cuts_per_feature, 1, optional=True)
        check.check_integer("n_features_to_select", self.n_features_to_select, 1, optional=True)
        check.check_integer("max_nodes", self.max_nodes, 1, optional=True)
        check.check_number("time_limit", self.time_limit, 0, optional=True)
        check.check_choice("criterion", self.criterion, (None, *_CRITERIA[self._task()]))

    def _named_rules(self, extraction: Extraction) -> RuleSet:
        return self._extract(extraction)  # which takes missing values as they are

    def _extract(self, extraction: Extraction) -> RuleSet:
        frontier = optimal_trees(
            extraction.X,
            extraction.predictions,
            loss=self.criterion or _CRITERIA[extraction.task][0],
            max_rules=self.max_leaf_nodes,
            cuts=cuts_to_compare(extraction, self.cuts_per_feature, self.n_features_to_select),
            classes=None if extraction.classes is None else range(len(extraction.classes)),
            feature_names=extraction.settings["feature_names"],
            time_limit=self.time_limit,
            max_nodes=self.max_nodes,
        )
        self.frontier_ = named_frontier(frontier, extraction)
        self.lower_bounds_ = frontier.lower
        self.gap_, self.status_ = float(frontier.gap[-1]), frontier.status[-1]
        rules = self.frontier_.rules[-1]
        assert rules is not None
        return rules
