"""OptimalTree: the decision tree with the fewest errors of all, or how far from it one is."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from skescore import _validation as check
from skescore.extractors._base import Extraction
from skescore.extractors._binned import BinnedTable, HistogramSource, needs_rows
from skescore.extractors._docstrings import documented
from skescore.extractors._optimal_space import BaseOptimalExtractor
from skescore.optimal import Cuts, Frontier, optimal_trees
from skescore.rules import RuleSet


@documented
class OptimalTreeExtractor(BaseOptimalExtractor):
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
    >>> print(extractor.fit(data.data, labels).rules_)
    1. IF petal width (cm) ≤ 0.8 THEN setosa   [50 rows, 100 % pure]
    2. IF petal length (cm) ≤ 4.85 AND petal width (cm) > 0.8 THEN versicolor   [49 rows, 96 % pure]
    3. IF petal length (cm) > 4.85 AND petal width (cm) > 0.8 THEN virginica   [51 rows, 96 % pure]
    otherwise, where no rule holds: virginica
    >>> extractor.lower_bounds_.tolist(), extractor.gap_, extractor.status_
    ([99.0, 49.0, 4.0], 0.0, 'optimal')
    """

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
        self.prune = prune
        self.uncovered = uncovered
        self.abstain_label = abstain_label
        self.batch_size = batch_size

    def _check_settings(self, task: str) -> None:
        check.check_integer("max_leaf_nodes", self.max_leaf_nodes, 2)
        super()._check_settings(task)

    def fit_sums(self, source: HistogramSource) -> OptimalTreeExtractor:
        """Find the best tree over the cuts of rows of which only sums are known.

        Rows that lie in the same bins are one cell; all trees over the cuts follow from the sums of
        the cells, of which there may be 262144.

        Parameters
        ----------
        source : HistogramSource
            The rows, see :func:`skescore.sources.extract_source`, which calls this.

        Returns
        -------
        self
            The fitted extractor. It knows no black box, so that ``fidelity`` is not to be had.

        Raises
        ------
        ValueError
            If a setting needs the rows themselves, or there are too many cells.
        """
        columns, classes = source.columns, source.classes
        self._check_settings("regression" if classes is None else "classification")
        most = self.n_features_to_select
        needs_rows(
            self,
            criterion=self.criterion == "absolute_error",
            prune=self.prune is not None,
            n_features_to_select=most is not None
            and most < len(columns)
            and "name the columns in features=...",
        )
        table = BinnedTable(source)
        bins, sums = source.cells()
        lacking = tuple(
            j for j, c in enumerate(columns) if 0 < (bins[:, j] == c.n_bins).sum() < len(bins)
        )
        cuts = Cuts(
            len(columns),
            {j: c.cuts for j, c in enumerate(columns) if c.values is None},
            {j: c.values for j, c in enumerate(columns) if c.values is not None},
            lacking,
        )
        if classes is not None:
            cell, label = np.nonzero(sums)
            y = np.array(list(classes), dtype=object)[label]
            weights = sums[cell, label] * source.unit
        else:
            # Two rows have the sums of a cell, and so its loss in every leaf.
            weight, mean, deviation = table.moments(sums).T
            cell = np.tile(np.arange(len(sums)), 2)
            spread = np.sqrt(deviation / weight)
            y, weights = np.concatenate([mean - spread, mean + spread]), np.tile(weight / 2, 2)
        names = [column.name for column in columns]
        values = {c.name: c.values_in(bins[cell, j]) for j, c in enumerate(columns)}
        frontier = optimal_trees(
            pd.DataFrame(values, columns=names), y,
            loss="errors" if classes is not None else "squared_error",
            max_rules=self.max_leaf_nodes, cuts=cuts, classes=classes, sample_weight=weights,
            start=[] if self.start is None else [self._start()], time_limit=self.time_limit,
            max_nodes=self.max_nodes,
        )  # fmt: skip

        def finished(rules: RuleSet | None) -> RuleSet | None:
            if rules is None:
                return None
            found = rules.replace(domain=table.domain)
            if classes is None and rules is frontier.rules[-1]:
                found = table.told(found)
            return table.finished(found, self.uncovered, self.abstain_label)

        self._keep(replace(frontier, rules=tuple(map(finished, frontier.rules))))
        assert self.frontier_.rules[-1] is not None
        self._learn_sums(source, self.frontier_.rules[-1])
        return self

    def _search(self, extraction: Extraction, **options: Any) -> Frontier:
        return optimal_trees(
            extraction.X,
            extraction.predictions,
            max_rules=self.max_leaf_nodes,
            max_nodes=self.max_nodes,
            **options,
        )
