"""GridREx: GridEx with a linear model in every box."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from sklearn.metrics import r2_score

from skescore import _validation as check
from skescore.extractors._base import Extraction, documented
from skescore.extractors._binned import BinnedTable, HistogramSource
from skescore.extractors._linear_models import (
    LinearModels,
    LinearTable,
    Points,
    Units,
    default_threshold,
)
from skescore.extractors._sampling import N_QUERIES
from skescore.extractors._sharing import Sharing, once
from skescore.extractors.gridex._grid import Boxes, Collector, Histogram
from skescore.extractors.gridex._gridex import GridExExtractor
from skescore.extractors.gridex._linear_sums import LinearSums
from skescore.rules import Conclusions, RuleSet


@documented
class GridRExExtractor(GridExExtractor):
    """Disjoint boxes from a refined grid, each with a linear model of the black box's predictions.

    Use it if the black box is a smooth function of numbers: linear models need fewer boxes than the
    constants of :class:`GridExExtractor`, but have longer outputs. Features that are not cut may
    still occur in the linear models. Regression only.

    Parameters
    ----------
    {estimator}
    {grid}
    threshold : float or None, default=None
        A box is final when the mean absolute residual of its linear model is below this value (in
        the target's units). Touching cells are joined while the residual of their union is below
        it. None: half the mean absolute residual of one model of all rows, but at least 1 % of the
        predictions' standard deviation, so that a linear black box gives one rule.
    {cells}
    max_terms : int or None, default=3
        Largest number of features in an output, at least 1; they are chosen by forward selection
        for each box. None: all.
    coefficient_tolerance : float, default=0.0
        Smallest effect of features in an output, as a share of the range of all predictions. The
        effect is the coefficient times the side of the box along the feature. Features with smaller
        effects are dropped, and the model is fitted again; `fidelity_loss_` states the reduction in
        R². 0 keeps all features; 0.05, for example, gives shorter outputs.
    {common}
    random_state : int, RandomState instance or None, default=None
        Seed of the points that fill up cells. Pass an int for reproducible rules.

    Attributes
    ----------
    rules_ : RuleSet
        The rules: disjoint half-open boxes. Outputs are :class:`skescore.rules.LinearOutput`, or
        numbers if the model is constant.
    {sizes}
    threshold_ : float
        The threshold that was used.
    residuals_ : ndarray of shape (n_extracted_rules,)
        Mean absolute residual of each rule's output on the rows and queried points in its box,
        including rules that `prune` removed.
    dropped_coefficients_ : int
        Number of coefficients that `coefficient_tolerance` removed.
    fidelity_loss_ : float
        Reduction in R², with respect to the black box's predictions for the training rows, by
        `coefficient_tolerance`.
    importances_ : ndarray of shape (n_features,)
        Importance of each feature; the largest is 1. All 0 if no level uses importances.
    {fitted}

    Notes
    -----
    The linear model of a box is fitted by least squares to its rows and queried points, with
    features that are standardized in the box. Coefficients are in the original units. Features that
    are constant in a box get the coefficient 0; identical features get equal coefficients.

    A model of few points overfits. In a box with d varying features and n < 2·(d + 2) points, the
    intercept a and the slopes b therefore minimize the mean of (z - a - b·x)² + (d/n)·v·(b·b). Here
    z is the prediction, the features x are in units of their range in the training rows, and v is
    their mean variance in the box. The effects for `coefficient_tolerance` are measured across the
    part of the box in the domain. Everything else is as in :class:`GridExExtractor`.

    References
    ----------
    F. Sabbatini, R. Calegari: Symbolic knowledge extraction from opaque machine learning
    predictors: GridREx & PEDRO. KR 2022. doi:10.24963/kr.2022/57

    Examples
    --------
    >>> import pandas as pd
    >>> from skescore.black_boxes import CallableRegressor
    >>> from skescore.extractors.gridex import GridRExExtractor
    >>> journeys = pd.DataFrame({"km": range(200), "bags": [0, 1, 2, 3] * 50})
    >>> def fare(rows):
    ...     return (2 + 0.3 * rows.km + rows.bags).where(rows.km < 100, 17 + 0.15 * rows.km)
    >>> extractor = GridRExExtractor(CallableRegressor(fare), importance_threshold=0.5)
    >>> print(extractor.fit(journeys).rules_)
    1. IF km ≤ 99 THEN 2 + 0.3·km + bags   [100 rows, predictions of the model ± 8.775]
    2. IF km > 99 THEN 17 + 0.15·km   [100 rows, predictions of the model ± 4.33]
    otherwise, where no rule holds: 28.89
    >>> extractor.oracle_.n_calls, round(extractor.fidelity(journeys), 6)
    (1, 1.0)
    """

    tasks: ClassVar[tuple[str, ...]] = ("regression",)

    def __init__(
        self,
        estimator: Any,
        *,
        max_rules: int | None = 16,
        n_features_to_select: int | None = 5,
        n_slices: int | Sequence[int] = 2,
        importance_threshold: float | Sequence[float] | None = None,
        depth: int = 3,
        threshold: float | None = None,
        min_examples: int = 1,
        level_strategies: Sequence[Mapping[str, Any]] | None = None,
        importances: Any = None,
        max_terms: int | None = 3,
        coefficient_tolerance: float = 0.0,
        features: Any = None,
        sampling: Any = None,
        n_queries: int = N_QUERIES,
        prune: str | None = None,
        uncovered: str = "default",
        abstain_label: Any = None,
        batch_size: int | None = None,
        random_state: Any = None,
    ) -> None:
        super().__init__(
            estimator,
            max_rules=max_rules,
            n_features_to_select=n_features_to_select,
            n_slices=n_slices,
            importance_threshold=importance_threshold,
            depth=depth,
            threshold=threshold,
            min_examples=min_examples,
            level_strategies=level_strategies,
            importances=importances,
            features=features,
            sampling=sampling,
            n_queries=n_queries,
            prune=prune,
            uncovered=uncovered,
            abstain_label=abstain_label,
            batch_size=batch_size,
            random_state=random_state,
        )
        self.max_terms = max_terms
        self.coefficient_tolerance = coefficient_tolerance

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check.check_integer("max_terms", self.max_terms, 1, optional=True)
        check.check_number("coefficient_tolerance", self.coefficient_tolerance, 0.0)

    def _extract(self, extraction: Extraction) -> RuleSet:
        levels = self._levels(extraction)
        self.threshold_ = float(levels[0].threshold)
        boxes, finished = self._boxes(extraction, levels)
        tables: list[Any] = [part.statistics for part in finished]
        models = LinearModels.joined(tables[0].units, tables)
        n_rows = np.concatenate([part.n_rows for part in finished])
        self.residuals_ = models.residual * models.units.unit[-1]
        self.dropped_coefficients_ = models.n_dropped

        def rules_of(conclusions: Conclusions) -> RuleSet:
            return RuleSet.from_boxes(
                boxes, conclusions, ordered=False, disjoint=True, **extraction.settings
            )

        rules = rules_of(models.conclude(n_rows))
        self.fidelity_loss_ = 0.0
        if self.dropped_coefficients_:
            before, after = (
                r2_score(extraction.predictions, candidate_rules.predict(extraction.X))
                for candidate_rules in (rules_of(models.conclude_in_full(n_rows)), rules)
            )
            self.fidelity_loss_ = float(before - after)
        return rules

    def _prepare_statistics(
        self, source: HistogramSource, table: BinnedTable, chosen: np.ndarray
    ) -> Any:
        table.use(chosen, measure=True)
        return LinearSums(source, table, float(self.coefficient_tolerance), self.max_terms)

    def _conclude_sums(
        self, statistics: Any, root: Histogram, finished: list[Boxes]
    ) -> Conclusions:
        threshold = statistics.default_threshold(root) if self.threshold is None else self.threshold
        self.threshold_ = float(threshold)
        models, n_rows = statistics.models(finished)
        self.residuals_ = models.residual * models.units.unit[-1]
        self.dropped_coefficients_ = models.n_dropped
        self.fidelity_loss_ = statistics.fidelity_loss(root, finished, models)
        return models.conclude(n_rows)

    def _collector(self, extraction: Extraction) -> Collector:
        domain = extraction.settings["domain"]
        lower, upper = np.array(domain.lower), np.array(domain.upper)
        units = Units.of(lower, upper, extraction.predictions)
        units.usable[extraction.unmeasured] = False
        return lambda X, predictions, box, n_boxes: LinearTable(
            Points(X, predictions, box, n_boxes, units),
            float(self.coefficient_tolerance),
            self.max_terms,
        )

    def _default_threshold(self, extraction: Extraction) -> float:
        X, predictions = extraction.X, extraction.predictions

        def residual_of_one_model() -> float:
            collect = self._collector(extraction)
            table = collect(X, predictions, np.zeros(len(X), np.intp), 1)
            return float(table.finalize(X[:1], X[:1]).impurity[0])

        residual = once(Sharing.of(extraction), "residual of one model", residual_of_one_model)
        return default_threshold(residual, float(np.std(predictions)))
