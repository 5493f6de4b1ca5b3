"""OptimalList: the decision list with the fewest errors of all, or how far from it one is."""

from __future__ import annotations

from typing import Any

from skescore import _validation as check
from skescore.extractors._base import BaseExtractor, Extraction
from skescore.extractors._docstrings import documented
from skescore.extractors._optimal_space import cuts_to_compare, named_frontier
from skescore.optimal import optimal_lists
from skescore.rules import RuleSet

_CRITERIA = {
    "classification": ("errors",),
    "regression": ("squared_error", "absolute_error"),
}
#: Without a limit of nodes there are as many as this divided by the rows, between two bounds.
_ROWS_VISITED, _FEWEST_NODES, _MOST_NODES = 1_000_000, 30, 1000


@documented
class OptimalListExtractor(BaseExtractor):
    """The ordered list of at most so many rules that departs least from the black box.

    Of all lists over some cuts of the features, one with the fewest errors on the training rows,
    and for every number of rules a proven bound of the fewest: so that one knows how much a better
    list could be better. The last rule always holds and counts. The black box is queried once.
    Categories and missing values are taken as they are.

    Parameters
    ----------
    {estimator}
    max_rules : int, default=4
        Most rules, at least 1.
    max_conditions : {1, 2}, default=2
        Most tests in a premise; an interval with two bounds is two of them.
    cuts_per_feature : int or None, default=8
        Most cuts of a number, those nearest to its quantiles. None: between any two neighbouring
        values, which takes long.
    n_features_to_select : int or None, default=20
        {selection}
    criterion : str or None, default=None
        What is summed over the rows: "errors" for classes, "squared_error" or "absolute_error" for
        numbers. None is "errors" or "squared_error"; absolute errors take far longer.
    max_nodes : int or None, default=None
        Nodes of the search, after which the best list found is taken; see ``status_``. None: a
        million divided by the number of rows, but from 30 to 1000, which takes some seconds.
    time_limit : float, optional
        Seconds after which the best list found is taken. The rules then depend on the machine.
    {common}

    Attributes
    ----------
    rules_ : RuleSet
        The rules.
    {sizes}
    frontier_ : Frontier
        Bounds of the loss, and rules, for each number of rules.
    lower_bounds_ : ndarray of shape (max_rules,)
        No list of at most 1, 2, ... rules has a smaller loss on the training rows.
    gap_ : float
        By how much the loss of the best list of at most `max_rules` could be smaller; 0 where it is
        proven to be the best.
    status_ : str
        "optimal", or what ended the search: "node_limit", "time_limit", "memory_limit".
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
    >>> print(extractor.rules_)
    1. IF petal length (cm) > 4.55 AND petal width (cm) > 1.55 THEN virginica   [50 rows, 98 % pure]
    2. ELSE IF petal length (cm) ≤ 2.45 THEN setosa   [50 rows, 100 % pure]
    3. ELSE versicolor   [50 rows, 98 % pure]
    >>> extractor.lower_bounds_.tolist(), extractor.gap_, extractor.status_
    ([100.0, 50.0, 2.0], 0.0, 'optimal')
    """

    takes_categories = True

    def __init__(
        self,
        estimator: Any,
        *,
        max_rules: int = 4,
        max_conditions: int = 2,
        cuts_per_feature: int | None = 8,
        n_features_to_select: int | None = 20,
        criterion: str | None = None,
        max_nodes: int | None = None,
        time_limit: float | None = None,
        features: Any = None,
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
        self.max_nodes = max_nodes
        self.time_limit = time_limit
        self.features = features
        self.prune = prune
        self.uncovered = uncovered
        self.abstain_label = abstain_label
        self.batch_size = batch_size

    def _check_parameters(self) -> None:
        check.check_integer("max_rules", self.max_rules, 1)
        check.check_integer("max_conditions", self.max_conditions, 1, 2)
        check.check_integer("cuts_per_feature", self.cuts_per_feature, 1, optional=True)
        check.check_integer("n_features_to_select", self.n_features_to_select, 1, optional=True)
        check.check_integer("max_nodes", self.max_nodes, 1, optional=True)
        check.check_number("time_limit", self.time_limit, 0, optional=True)
        check.check_choice("criterion", self.criterion, (None, *_CRITERIA[self._task()]))

    def _named_rules(self, extraction: Extraction) -> RuleSet:
        return self._extract(extraction)  # which takes missing values as they are

    def _extract(self, extraction: Extraction) -> RuleSet:
        nodes = max(_FEWEST_NODES, min(_MOST_NODES, _ROWS_VISITED // len(extraction.X)))
        frontier = optimal_lists(
            extraction.X,
            extraction.predictions,
            loss=self.criterion or _CRITERIA[extraction.task][0],
            max_rules=self.max_rules,
            max_conditions=self.max_conditions,
            cuts=cuts_to_compare(extraction, self.cuts_per_feature, self.n_features_to_select),
            classes=None if extraction.classes is None else range(len(extraction.classes)),
            feature_names=extraction.settings["feature_names"],
            time_limit=self.time_limit,
            max_nodes=nodes if self.max_nodes is None else self.max_nodes,
        )
        self.frontier_ = named_frontier(frontier, extraction)
        self.lower_bounds_ = frontier.lower
        self.gap_, self.status_ = float(frontier.gap[-1]), frontier.status[-1]
        rules = self.frontier_.rules[-1]
        assert rules is not None
        return rules
