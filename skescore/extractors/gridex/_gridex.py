"""GridEx: a grid over the domain, refined where the black box's predictions differ."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np

from skescore import _validation as check
from skescore._random import draw_seed
from skescore.extractors._base import BaseExtractor, Extraction, documented
from skescore.extractors._binned import BinnedTable, HistogramSource, reject_row_settings
from skescore.extractors._features import (
    check_importances,
    feature_importances,
)
from skescore.extractors._sampling import N_QUERIES
from skescore.extractors._sharing import Sharing, once
from skescore.extractors.gridex._grid import (
    Boxes,
    Collector,
    Histogram,
    Level,
    cut_adaptively,
    cut_domain,
    make_fetch,
)
from skescore.extractors.gridex._statistics import (
    ClassCountsTable,
    MomentsTable,
    joined_conclusions,
)
from skescore.rules import BoxTable, Conclusions, Domain, RuleSet
from skescore.rules._volumes import join_touching

#: Largest number of slices; more would make cell numbers overflow.
_MAX_SLICES = 1_000_000
#: Largest number of levels; so many bisections separate all floats.
_MAX_LEVELS = 2_100
#: Largest magnitudes of features and predictions; slice widths or squares of larger ones overflow.
_LARGEST_FEATURE, _LARGEST_PREDICTION = 1e300, 1e150
#: Default thresholds: impurity in classification; share of the standard deviation in regression.
_CLASSIFICATION_THRESHOLD, _REGRESSION_SHARE = 0.1, 0.5
#: Difference below which standard deviations are equal, as a share of the predictions' range.
_TIE_TOLERANCE = 1e-12


class _HistogramStatistics:
    """Statistics of boxes from histograms: class counts, or moments of labels."""

    def __init__(self, source: HistogramSource, table: BinnedTable) -> None:
        self._source, self._table = source, table
        self._tolerance = _TIE_TOLERANCE * (source.label_range[1] - source.label_range[0])

    def collect(self, _: Any, bins: Any, box: np.ndarray, n_boxes: int) -> Any:
        """Add up the bins of each box."""
        total = np.zeros((n_boxes, bins.sums.shape[1]), dtype=np.int64)
        np.add.at(total, box, bins.sums)
        if self._source.classes is None:
            return MomentsTable(self._table.moments(total), self._tolerance)
        return ClassCountsTable(total * self._source.unit)

    def default_threshold(self, root: Histogram) -> float:
        """Return the default threshold."""
        if self._source.classes is not None:
            return _CLASSIFICATION_THRESHOLD
        n_rows, _, deviation = self._table.moments(root.total[None])[0].tolist()
        return _REGRESSION_SHARE * math.sqrt(deviation / n_rows)

    def conclude(self, finished: Sequence[Boxes]) -> Conclusions:
        """Return the conclusions of the rules of the boxes."""
        tables: list[Any] = [part.statistics for part in finished]
        conclusions = joined_conclusions([part.conclude(part.impurity) for part in tables])
        if conclusions.class_counts is not None:
            return replace(conclusions, n_rows=conclusions.class_counts.sum(axis=1))
        return replace(conclusions, n_rows=np.concatenate([t.moments[:, 0] for t in tables]))


@documented
class GridExExtractor(BaseExtractor):
    """Disjoint boxes from a grid that is refined where the black box's predictions differ.

    The range of each feature is cut into equal slices. Only cells with rows are kept, and adjacent
    cells with similar predictions are joined. Boxes whose impurity is at least `threshold` are cut
    again, on up to `depth` levels. With `max_rules`, one box is cut at a time along one feature:
    the cut that reduces the impurity most. The black box is queried for the rows, and then once per
    level (or per cut, with `max_rules`) for random points in cells with few rows.

    Parameters
    ----------
    {estimator}
    {grid}
    threshold : float or None, default=None
        A box is final when the impurity of its predictions is below this value. Impurity is the
        share outside the majority class in classification, and the standard deviation (in the units
        of the target) in regression. None: 0.1 in classification, and half the standard deviation
        of all predictions in regression.
    {cells}
    {common}
    random_state : int, RandomState instance or None, default=None
        Seed of the points that fill up cells. Pass an int for reproducible rules.

    Attributes
    ----------
    rules_ : RuleSet
        The rules: disjoint half-open boxes.
    {sizes}
    importances_ : ndarray of shape (n_features,)
        Importance of each feature; the largest is 1. All 0 if no level uses importances.
    {fitted}

    Notes
    -----
    The cost grows with the numbers of rows and features, not with the number of possible cells. In
    classification, adjacent cells with the same majority class are joined, regardless of their
    purity. In regression, adjacent cells are joined while the impurity of their union is below
    `threshold`. Only cells that were cut from the same box are joined. Features that are constant
    on the rows are never cut.

    With many features, cutting all of them (``max_rules=None, n_features_to_select=None``) leaves
    few rows per cell, and therefore nearly one rule per row. With `max_rules`, adjacent cells are
    joined after each cut while the impurity of their union is below `threshold`. In classification,
    boxes of the same class that share a full face are joined at the end.

    References
    ----------
    F. Sabbatini, G. Ciatto, A. Omicini: GridEx: An algorithm for knowledge extraction from
    black-box regressors. EXTRAAMAS 2021. doi:10.1007/978-3-030-82017-6_2

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> from skescore.extractors import GridExExtractor
    >>> data = load_iris(as_frame=True)
    >>> labels = data.target_names[data.target]
    >>> extractor = GridExExtractor(
    ...     KNeighborsClassifier(9), n_slices=8, importance_threshold=0.99, depth=1
    ... )
    >>> print(extractor.fit(data.data, labels).rules_)
    1. IF petal length (cm) ≥ 4.688 THEN virginica
       [60 rows, 85 % agree with the model, 82 % right (data)]
    2. IF petal length (cm) < 2.475 THEN setosa
       [50 rows, 100 % agree with the model, 100 % right (data)]
    3. IF 2.475 ≤ petal length (cm) < 4.688 THEN versicolor
       [40 rows, 100 % agree with the model, 98 % right (data)]
    otherwise, where no rule holds: virginica
    >>> extractor.completeness_, extractor.oracle_.n_calls
    (1.0, 1)
    """

    takes_categories: ClassVar[bool] = True
    _orders_categories: ClassVar[bool] = True

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
        self.max_rules = max_rules
        self.n_features_to_select = n_features_to_select
        self.n_slices = n_slices
        self.importance_threshold = importance_threshold
        self.depth = depth
        self.threshold = threshold
        self.min_examples = min_examples
        self.level_strategies = level_strategies
        self.importances = importances
        self.features = features
        self.sampling = sampling
        self.n_queries = n_queries
        self.prune = prune
        self.uncovered = uncovered
        self.abstain_label = abstain_label
        self.batch_size = batch_size
        self.random_state = random_state

    def _check_parameters(self) -> None:
        check.check_integer("max_rules", self.max_rules, 1, optional=True)
        check.check_integer("n_features_to_select", self.n_features_to_select, 1, optional=True)
        check.check_integer("depth", self.depth, 1, _MAX_LEVELS)
        check.check_number("threshold", self.threshold, 0.0, optional=True)
        check.check_integer("min_examples", self.min_examples, 0)
        for n_slices, importance in self._strategies():
            _check_strategy(n_slices, importance)

    def _strategies(self) -> list[tuple[Any, Any]]:
        """Return the slices and importance thresholds of every level."""
        if self.level_strategies is None:
            return [(self.n_slices, self.importance_threshold)] * self.depth
        levels = self.level_strategies
        if not _is_sequence(levels) or not len(levels):
            error_class = (
                ValueError if _is_sequence(levels) or isinstance(levels, Mapping) else TypeError
            )
            raise error_class(
                "level_strategies must be a list with one mapping per level, such as "
                "[{'n_slices': 4, 'importance_threshold': 0.9}, {'n_slices': 2}], got "
                f"{levels!r}."
            )
        strategies = []
        for level in levels:
            allowed_keys = {"n_slices", "importance_threshold"}
            if (
                not isinstance(level, Mapping)
                or "n_slices" not in level
                or set(level) - allowed_keys
            ):
                error_class = ValueError if isinstance(level, Mapping) else TypeError
                raise error_class(
                    "Each of level_strategies must be a mapping that holds 'n_slices' and may hold "
                    f"'importance_threshold', got {level!r}."
                )
            strategies.append((level["n_slices"], level.get("importance_threshold")))
        return strategies

    def _extract(self, extraction: Extraction) -> RuleSet:
        boxes, finished = self._boxes(extraction, self._levels(extraction))
        conclusions = joined_conclusions(
            [part.statistics.conclude(part.n_rows) for part in finished]
        )
        if self.max_rules is not None and extraction.classes is not None:
            boxes, conclusions = _join_same_class(boxes, conclusions)
        return RuleSet.from_boxes(
            boxes, conclusions, ordered=False, disjoint=True, **extraction.settings
        )

    def fit_sums(self, source: HistogramSource) -> GridExExtractor:
        """Learn rules from histograms of any number of rows.

        The black box is not queried; the rules describe the labels of the rows.

        Parameters
        ----------
        source : HistogramSource
            Source of the histograms; :func:`skescore.sources.extract_source` calls this method.

        Returns
        -------
        self
            The fitted extractor. It has no black box, so ``fidelity`` is not available.

        Raises
        ------
        ValueError
            If a parameter requires the rows themselves.

        Notes
        -----
        The rules are those that :meth:`fit` would learn from bin numbers. All slices of a feature
        have the same number of bins. If the bins are bounded by quantiles, the slices have similar
        numbers of rows.
        """
        self._check_parameters()
        uses_importances = any(limit is not None for _, limit in self._strategies())
        reject_row_settings(
            self,
            max_rules=self.max_rules is None and "pass a number",
            min_examples=self.min_examples > 1,
            prune=self.prune is not None,
            importance_threshold=uses_importances
            and self.importances is None
            and "pass importances=...",
        )
        table = BinnedTable(source)
        classes = None if source.classes is None else list(source.classes)
        settings: dict[str, Any] = {
            "feature_names": table.names,
            "task": "regression" if classes is None else "classification",
            "classes": classes,
            "domain": table.box(self._domain_margin),
        }
        self.importances_ = np.zeros(len(table.names))
        if self.importances is not None:
            self.importances_ = check_importances(self.importances, len(table.names)).copy()
        chosen = table.important_features(self.n_features_to_select)
        statistics = self._prepare_statistics(source, table, chosen)
        bins = table.fetch_histograms([()], None)[0]
        root = Histogram((), bins[0].sum(axis=0), bins)
        threshold = statistics.default_threshold(root) if self.threshold is None else self.threshold
        levels = self._levels_of(settings["domain"], chosen, threshold)
        assert self.max_rules is not None
        problem = SimpleNamespace(settings=settings, classes=classes)
        boxes, finished = cut_adaptively(
            problem,
            levels,
            0,
            statistics.collect,
            self.max_rules,
            root,
            make_fetch(table.fetch_histograms),
        )
        conclusions = self._conclude_sums(statistics, root, finished)
        assert conclusions.n_rows is not None
        if not source.weighted:
            conclusions = replace(conclusions, n_rows=conclusions.n_rows.astype(np.intp))
        if classes is not None:
            boxes, conclusions = _join_same_class(boxes, conclusions)
        rules = RuleSet.from_boxes(boxes, conclusions, ordered=False, disjoint=True, **settings)
        rules = table.restore_rules(rules)
        rules = table.with_means(rules) if classes is None else rules
        self._store_rules(source, table.finish_rules(rules, self.uncovered, self.abstain_label))
        return self

    def _prepare_statistics(
        self, source: HistogramSource, table: BinnedTable, chosen: np.ndarray
    ) -> Any:
        """Restrict the table to the chosen features; return the statistics of boxes."""
        table.use(chosen)
        return _HistogramStatistics(source, table)

    def _conclude_sums(
        self, statistics: Any, root: Histogram, finished: list[Boxes]
    ) -> Conclusions:
        """Return the conclusions of the rules, with the weights of their rows as floats."""
        conclusions: Conclusions = statistics.conclude(finished)
        return conclusions

    def _boxes(self, extraction: Extraction, levels: list[Level]) -> tuple[BoxTable, list[Boxes]]:
        """Cut the domain into boxes."""
        seed, collect = draw_seed(self.random_state), self._collector(extraction)
        if self.max_rules is None:
            return cut_domain(extraction, levels, seed, collect)
        return cut_adaptively(extraction, levels, seed, collect, self.max_rules)

    def _collector(self, extraction: Extraction) -> Collector:
        """Return the function that computes the statistics of cells."""
        if extraction.classes is not None:
            n_classes = len(extraction.classes)
            return lambda X, predictions, box, n_boxes: ClassCountsTable.collect(
                predictions, box, n_boxes, n_classes
            )
        tolerance = _TIE_TOLERANCE * float(np.ptp(extraction.predictions))
        return lambda X, predictions, box, n_boxes: MomentsTable.collect(
            predictions, box, n_boxes, tolerance
        )

    def _levels(self, extraction: Extraction) -> list[Level]:
        """Return the parameters of each level; set `importances_`."""
        X, n_features = extraction.X, extraction.X.shape[1]
        extraction.check_magnitude(_LARGEST_FEATURE, "a grid over them would overflow")
        extraction.check_predictions(_LARGEST_PREDICTION)
        strategies = self._strategies()
        importances = np.zeros(n_features)
        if self.importances is not None:
            importances = check_importances(self.importances, n_features)
        elif any(limit is not None for _, limit in strategies):
            importances = once(
                Sharing.of(extraction),
                "importances",
                lambda: feature_importances(X, extraction.predictions, extraction.task),
            )
        self.importances_ = importances.copy()
        threshold = self.threshold
        if threshold is None:
            threshold = self._default_threshold(extraction)
        chosen = extraction.important_features(self.n_features_to_select)
        return self._levels_of(extraction.settings["domain"], chosen, threshold)

    def _levels_of(self, domain: Domain, chosen: np.ndarray, threshold: float) -> list[Level]:
        """Return the parameters of each level for the chosen features."""
        # A cut of a constant feature would only add empty cells.
        varies = np.asarray(domain.lower) < np.asarray(domain.upper)
        varies &= np.isin(np.arange(len(varies)), chosen)
        return [
            Level(
                np.where(varies, _slices_per_feature(n, t, self.importances_), 1),
                threshold,
                self.min_examples,
            )
            for n, t in self._strategies()
        ]

    def _default_threshold(self, extraction: Extraction) -> float:
        if extraction.task == "classification":
            return _CLASSIFICATION_THRESHOLD
        return _REGRESSION_SHARE * float(np.std(extraction.predictions))


def _join_same_class(boxes: BoxTable, conclusions: Conclusions) -> tuple[BoxTable, Conclusions]:
    """Join boxes of the same class that share a full face."""
    lower, upper = boxes.lower.copy(), boxes.upper.copy()
    first, union = join_touching(lower, upper, conclusions.outputs)
    assert conclusions.class_counts is not None
    assert conclusions.n_rows is not None
    n_rows = np.zeros(len(first), conclusions.n_rows.dtype)
    counts = np.zeros_like(conclusions.class_counts[first])
    np.add.at(n_rows, union, conclusions.n_rows)
    np.add.at(counts, union, conclusions.class_counts)
    is_closed = np.isfinite(lower[first])
    table = BoxTable(lower[first], upper[first], is_closed, np.zeros_like(is_closed))
    return table, Conclusions(conclusions.outputs[first], n_rows=n_rows, class_counts=counts)


def _slices_per_feature(n_slices: Any, threshold: Any, importances: np.ndarray) -> np.ndarray:
    """Return the number of slices of each feature, which is 1 below the first threshold."""
    counts = np.atleast_1d(n_slices)
    limits = np.atleast_1d(-math.inf if threshold is None else threshold)
    reached = np.searchsorted(limits, importances, side="right")
    return np.concatenate([[1], counts])[reached]


def _is_sequence(value: Any) -> bool:
    return isinstance(value, Sequence | np.ndarray) and not isinstance(value, str)


def _check_strategy(n_slices: Any, importance: Any) -> None:
    """Raise an error if the slices and importance thresholds of a level are invalid."""
    counts = n_slices if _is_sequence(n_slices) else [n_slices]
    for count in counts:
        check.check_integer("n_slices", count, 1, _MAX_SLICES)
    if importance is None:
        limits: Any = [0.0]
    else:
        limits = importance if _is_sequence(importance) else [importance]
    for limit in limits:
        check.check_number("importance_threshold", limit, 0.0, 1.0)
    if len(counts) != len(limits) or any(a >= b for a, b in pairwise(limits)):
        raise ValueError(
            "n_slices and importance_threshold must have the same length, and the thresholds must "
            f"increase, got n_slices={n_slices!r} and importance_threshold={importance!r}."
        )
