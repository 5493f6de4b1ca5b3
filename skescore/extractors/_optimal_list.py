"""OptimalList: the decision list with the fewest errors of all, or how far from it one is."""

from __future__ import annotations

from typing import Any

from skescore import _validation as check
from skescore.extractors._base import Extraction
from skescore.extractors._docstrings import documented
from skescore.extractors._optimal_space import BaseOptimalExtractor
from skescore.optimal import Frontier, optimal_lists

#: Without a limit of nodes there are as many as this divided by the rows, but not fewer than 30.
_ROWS, _FEWEST_NODES = 1_000_000, 30
#: Nor more than this: a node of regression takes five times as long, and later ones find little.
_MOST_NODES = {"classification": 1000, "regression": 200}


@documented
class OptimalListExtractor(BaseOptimalExtractor):
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
    max_conditions : {1, 2, 3}, default=2
        Most tests in a premise; an interval with two bounds is two of them.
    cuts_per_feature : int or None, default=8
        Most cuts of a number, those nearest to its quantiles. None: between any two neighbouring
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
    >>> print(extractor.rules_)
    1. IF petal length (cm) > 4.55 AND petal width (cm) > 1.55 THEN virginica   [50 rows, 98 % pure]
    2. ELSE IF petal length (cm) ≤ 2.45 THEN setosa   [50 rows, 100 % pure]
    3. ELSE versicolor   [50 rows, 98 % pure]
    >>> extractor.lower_bounds_.tolist(), extractor.gap_, extractor.status_
    ([100.0, 50.0, 2.0], 0.0, 'optimal')
    """

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
        self.prune = prune
        self.uncovered = uncovered
        self.abstain_label = abstain_label
        self.batch_size = batch_size

    def _check_parameters(self) -> None:
        check.check_integer("max_rules", self.max_rules, 1)
        check.check_integer("max_conditions", self.max_conditions, 1, 3)
        super()._check_parameters()

    def _search(self, extraction: Extraction, **options: Any) -> Frontier:
        nodes = max(_FEWEST_NODES, min(_MOST_NODES[extraction.task], _ROWS // len(extraction.X)))
        return optimal_lists(
            extraction.X,
            extraction.predictions,
            max_rules=self.max_rules,
            max_conditions=self.max_conditions,
            max_nodes=nodes if self.max_nodes is None else self.max_nodes,
            **options,
        )
