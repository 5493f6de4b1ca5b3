"""GridREx: GridEx with a linear model in every box."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import numpy as np
from sklearn.metrics import r2_score

from skescore import _validation as check
from skescore.extractors._base import Extraction, documented
from skescore.extractors._linear_models import (
    CHUNK,
    Fits,
    Groups,
    Points,
    Units,
    absolute_residuals,
    sparse_slopes,
)
from skescore.extractors._sharing import Sharing, once
from skescore.extractors.gridex._grid import Collector
from skescore.extractors.gridex._gridex import GridExExtractor
from skescore.rules import Conclusions, LinearOutput, RuleSet

#: Pairs of boxes, or boxes, whose linear models are worked on at once.
_BLOCK = 1024
#: Mean residuals that are closer than this share of the predictions' range count as equal.
_TIE = 1e-9


@dataclass(eq=False)
class LinearModels:
    """The linear models of boxes whose rows are done with.

    `full` are the residual vectors with all slopes, `vectors` those with the slopes that are kept;
    figures are in `units`.
    """

    units: Units
    full: np.ndarray
    full_residual: np.ndarray
    vectors: np.ndarray
    residual: np.ndarray
    mean: np.ndarray
    deviation: np.ndarray

    def __len__(self) -> int:
        return len(self.mean)

    @property
    def impurity(self) -> np.ndarray:
        """Mean absolute residual of each box's model, in the target's units."""
        return self.full_residual * self.units.unit[-1]

    @property
    def n_dropped(self) -> int:
        """How many slopes have been dropped from all models."""
        dropped = (self.full[:, :-2] != 0) & (self.vectors[:, :-2] == 0)
        return int(np.count_nonzero(dropped))

    def _arrays(self) -> list[np.ndarray]:
        return [getattr(self, field.name) for field in fields(self)[1:]]

    def take(self, index: np.ndarray) -> LinearModels:
        """Those of some of the boxes."""
        return LinearModels(self.units, *(array[index] for array in self._arrays()))

    @classmethod
    def joined(cls, units: Units, parts: Sequence[LinearModels]) -> LinearModels:
        """Several tables one after the other."""
        columns = zip(*(part._arrays() for part in parts), strict=True)
        return cls(units, *(np.concatenate(column) for column in columns))

    def conclude(self, n_rows: np.ndarray) -> Conclusions:
        """Outputs and statistics of the rules that the boxes become."""
        return self._conclusions(n_rows, self.vectors)

    def conclude_in_full(self, n_rows: np.ndarray) -> Conclusions:
        """The same, had no slope been dropped."""
        return self._conclusions(n_rows, self.full)

    def _conclusions(self, n_rows: np.ndarray, vectors: np.ndarray) -> Conclusions:
        intercepts, slopes = self.units.models(vectors)
        level = ~slopes.any(axis=1)
        linear = {
            int(i): LinearOutput(intercepts[i], tuple(enumerate(slopes[i].tolist())))
            for i in np.flatnonzero(~level)
        }
        return Conclusions(
            np.where(level, intercepts, np.nan),
            n_rows=n_rows,
            mean=self.units.origin[-1] + self.mean * self.units.unit[-1],
            standard_deviation=self.deviation * self.units.unit[-1],
            linear=linear,
        )


class LinearBox:
    """The points of one box, and the moments that its linear model depends on."""

    __slots__ = ("_fits", "_table", "points")

    def __init__(self, table: LinearTable, points: np.ndarray, fits: Fits | None) -> None:
        self._table, self.points, self._fits = table, points, fits

    @property
    def fits(self) -> Fits:
        """The moments, as a table of one box."""
        if self._fits is None:
            self._fits = Fits.collect(self._table.points, Groups.of([self.points]))
        return self._fits

    def union(self, other: LinearBox) -> LinearBox:
        """Both boxes together."""
        points = np.concatenate([self.points, other.points])
        return LinearBox(self._table, points, self.fits.plus(other.fits))

    def union_impurities(
        self, others: Sequence[LinearBox], threshold: float
    ) -> Sequence[float | None]:
        """Rank of the union with each of some boxes; None where they may not join."""
        points = self._table.points
        unknown = [other for other in others if other._fits is None]
        if unknown:
            found = Fits.collect(points, Groups.of([other.points for other in unknown]))
            for i, other in enumerate(unknown):
                other._fits = found.take([i])
        union = self.fits.plus(Fits.stacked([other.fits for other in others]))
        vectors = _vectors(union, self._table.max_terms)
        groups = Groups.of([self.points, *(other.points for other in others)])
        numbers = np.arange(len(others))
        assert groups.order is not None
        if len(groups.order) <= CHUNK:
            residuals = vectors @ points.look_up(groups.order).T
            sums = np.add.reduceat(np.abs(residuals, out=residuals), groups.begin, axis=1)
            total = sums[:, 0] + sums[numbers, numbers + 1]
        else:
            boxes = np.concatenate([np.zeros_like(numbers), numbers + 1])
            models = np.concatenate([numbers, numbers])
            sums = absolute_residuals(points, groups, vectors, boxes, models)
            total = sums[: len(others)] + sums[len(others) :]
        residual = total / union.n
        allowed = residual * points.units.unit[-1] < threshold
        ranks = np.round(residual / _TIE)
        return [rank if ok else None for rank, ok in zip(ranks.tolist(), allowed, strict=True)]


class LinearTable:
    """Boxes with a linear model each that may still be joined.

    The impurity of a box is the mean absolute residual of its model.

    Models have at most `max_terms` slopes. Those with less effect across their box than
    `tolerance`, a share of the predictions' range, are dropped in the end.
    """

    def __init__(self, points: Points, tolerance: float, max_terms: int | None) -> None:
        self.points, self.max_terms, self._tolerance = points, max_terms, tolerance
        # There may be too many boxes with fewer points than features to keep so much of each.
        large = points.by_box.size > len(points.units.usable) + 1
        self._place = np.where(large, np.cumsum(large) - 1, -1)
        self._known = Fits.collect(points, points.by_box.take(np.flatnonzero(large)))
        self._joined: tuple[np.ndarray, Sequence[LinearBox]] | None = None

    def __len__(self) -> int:
        return len(self._place)

    @property
    def scatter(self) -> np.ndarray:
        """Summed squared residuals of the linear models."""
        fits = self._fits(np.arange(len(self)))
        vectors = _vectors(fits, self.max_terms)[:, :-1]
        return np.einsum("bi,bij,bj->b", vectors, fits.gram, vectors)

    def _fits(self, index: np.ndarray) -> Fits:
        """Moments of some boxes."""
        place = self._place[index]
        known = place >= 0
        if known.all():
            return self._known.take(place)
        found = Fits.collect(self.points, self.points.by_box.take(index[~known]))
        both = Fits.stacked([self._known.take(place[known]), found])
        order = np.argsort(np.append(np.flatnonzero(known), np.flatnonzero(~known)))
        return both.take(order)

    def each(self, index: np.ndarray) -> list[LinearBox]:
        """Some boxes, one by one."""
        place = self._place[index].tolist()
        return [
            LinearBox(
                self, self.points.by_box.points(i), None if at < 0 else self._known.take([at])
            )
            for i, at in zip(index.tolist(), place, strict=True)
        ]

    def joinable(self, pairs: np.ndarray, threshold: float) -> tuple[np.ndarray, np.ndarray]:
        """Whether each pair of adjacent boxes may join, and the rank of their union."""
        residual = np.empty(len(pairs))
        # Pairs of one box together, so that its points are looked up once.
        order = np.argsort(pairs.min(axis=1), kind="stable")
        for begin in range(0, len(pairs), _BLOCK):
            block = order[begin : begin + _BLOCK]
            boxes, member = np.unique(pairs[block].ravel(), return_inverse=True)
            fits = self._fits(boxes)
            union = fits.take(member[::2]).plus(fits.take(member[1::2]))
            by_box = np.argsort(member, kind="stable")
            sums = np.empty(len(member))
            sums[by_box] = absolute_residuals(
                self.points, self.points.by_box.take(boxes),
                _vectors(union, self.max_terms), member[by_box], by_box // 2,
            )  # fmt: skip
            residual[block] = (sums[::2] + sums[1::2]) / union.n
        return residual * self.points.units.unit[-1] < threshold, np.round(residual / _TIE)

    def assemble(self, kept: np.ndarray, unions: Sequence[LinearBox]) -> LinearTable:
        """A table of some of the boxes, followed by unions, to be closed."""
        self._joined = kept, unions
        return self

    def closed(self, lower: np.ndarray, upper: np.ndarray) -> LinearModels:
        """The linear models of all boxes, once nothing is to be joined any more."""
        kept, unions = self._joined or (np.arange(len(self)), [])
        sides = (upper - lower) / self.points.units.unit[:-1]
        parts = []
        for begin in range(0, len(kept), _BLOCK):
            some = slice(begin, min(begin + _BLOCK, len(kept)))
            groups = self.points.by_box.take(kept[some])
            parts.append(self._models(groups, self._fits(kept[some]), sides[some]))
        for begin in range(0, len(unions), _BLOCK):
            made = unions[begin : begin + _BLOCK]
            groups = Groups.of([union.points for union in made])
            fits = Fits.stacked([union.fits for union in made])
            first = len(kept) + begin
            parts.append(self._models(groups, fits, sides[first : first + len(made)]))
        return LinearModels.joined(self.points.units, parts)

    def _models(self, groups: Groups, fits: Fits, sides: np.ndarray) -> LinearModels:
        full = reduced = _vectors(fits, self.max_terms)
        if self._tolerance > 0:
            effect = np.abs(full[:, :-2]) * sides
            reduced = _vectors(fits.restricted(effect >= self._tolerance), self.max_terms)
        each = np.arange(len(fits.n))
        residual = [
            absolute_residuals(self.points, groups, vectors, each, each) / fits.n
            for vectors in ([full] if reduced is full else [full, reduced])
        ]
        return LinearModels(
            self.points.units, full, residual[0], reduced, residual[-1], fits.mean[:, -1],
            np.sqrt(fits.gram[:, -1, -1] / fits.n),
        )  # fmt: skip


def _vectors(fits: Fits, max_terms: int | None) -> np.ndarray:
    """Residual vectors of the linear models of boxes."""
    return fits.vectors(sparse_slopes(fits.n, fits.gram, max_terms))


#: Shares, for the default threshold, of one model's mean absolute residual and of the deviation.
_SHARE_OF_RESIDUAL, _SHARE_OF_DEVIATION = 0.5, 0.01


@documented
class GridRExExtractor(GridExExtractor):
    """Disjoint boxes from a refined grid, each with a linear model of the black box's predictions.

    A linear model follows a slope that constants need many boxes for: where the black box is a
    smooth function of numbers, expect fewer rules than from :class:`GridExExtractor`, each with a
    longer conclusion. Regression only. Features that are not cut still take part in the linear
    models.

    Parameters
    ----------
    {estimator}
    {grid}
    threshold : float or None, default=None
        A box is final once the mean absolute residual of its linear model is below this, and
        touching cells join while that of their union is; in the target's units. None stands for
        half the mean absolute residual of one model of all rows, but for at least a hundredth of
        the predictions' standard deviation, so that a linear black box gives one rule.
    {cells}
    max_terms : int or None, default=3
        Most features in a rule's conclusion, at least 1; they are chosen by forward selection,
        box by box. None: all.
    coefficient_tolerance : float, default=0.0
        Leaves out of a rule's conclusion the features with little effect: those whose coefficient,
        times the side of the rule's box along the feature, is less than this share of the range of
        all predictions. The model is fitted again on the others. 0 keeps all; 0.05 say makes
        shorter equations. What it costs is in `fidelity_loss_`.
    {common}
    random_state : int, RandomState instance or None, default=None
        Seed of the points that fill up cells. Pass an int for the same rules on every run.

    Attributes
    ----------
    rules_ : RuleSet
        The rules, disjoint half-open boxes; conclusions are :class:`skescore.rules.LinearOutput`,
        or plain numbers where the model is constant.
    {sizes}
    threshold_ : float
        The threshold that was used.
    residuals_ : ndarray of shape (n_extracted_rules,)
        Mean absolute residual in each box, of the rule's conclusion from the black box's
        predictions on rows and queried points. Rules that `prune` took out are still in it.
    dropped_coefficients_ : int
        How many coefficients `coefficient_tolerance` left out.
    fidelity_loss_ : float
        R² against the black box on the training rows with all coefficients, less that with those
        left: what `coefficient_tolerance` cost.
    importances_ : ndarray of shape (n_features,)
        Importance of each feature, the largest is 1; all 0 where no strategy asks for them.
    {fitted}

    Notes
    -----
    The linear model of a box is fitted by least squares to rows and queried points. Features are
    standardised in each box before, and coefficients are given back in the features'
    own units. A feature that is constant in a box gets the coefficient 0; features that are copies
    of each other share theirs.

    A model of few points would look perfect and be wrong in between. In a box with d varying
    features and n < 2·(d + 2) points, the slopes b are therefore those that minimise the mean of
    (z - a - b·x)² + (d/n)·v·(b·b), where features are measured in units of their range in the
    training rows and v is their mean variance in the box.

    Everything else is as in :class:`GridExExtractor`: one call of the black box for the rows, one
    per level for points, and a cost that grows with rows and features. An effect is measured across
    the box, as far as it lies in the domain.

    References
    ----------
    F. Sabbatini, R. Calegari: Symbolic knowledge extraction from opaque machine learning
    predictors: GridREx & PEDRO. KR 2022. doi:10.24963/kr.2022/57

    Examples
    --------
    >>> import pandas as pd
    >>> from skescore.extractors import CallableRegressor
    >>> from skescore.extractors.gridex import GridRExExtractor
    >>> journeys = pd.DataFrame({"km": range(200), "bags": [0, 1, 2, 3] * 50})
    >>> def fare(rows):
    ...     return (2 + 0.3 * rows.km + rows.bags).where(rows.km < 100, 17 + 0.15 * rows.km)
    >>> extractor = GridRExExtractor(CallableRegressor(fare), importance_threshold=0.5)
    >>> print(extractor.fit(journeys).rules_)
    1. IF km ≤ 99 THEN 2 + 0.3·km + bags   [100 rows, ± 8.775]
    2. IF km > 99 THEN 17 + 0.15·km   [100 rows, ± 4.33]
    otherwise, where no rule holds: 28.89
    >>> extractor.oracle_.n_calls, round(extractor.fidelity(journeys), 6)
    (1, 1.0)
    """

    tasks: ClassVar[tuple[str, ...]] = ("regression",)
    #: Mean absolute residuals do not follow from sums.
    fit_sums: ClassVar[Any] = None

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
        boxes, done = self._boxes(extraction, levels)
        tables: list[Any] = [part.statistics for part in done]
        models = LinearModels.joined(tables[0].units, tables)
        n_rows = np.concatenate([part.n_rows for part in done])
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
                r2_score(extraction.predictions, each.predict(extraction.X))
                for each in (rules_of(models.conclude_in_full(n_rows)), rules)
            )
            self.fidelity_loss_ = float(before - after)
        return rules

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
            whole = collect(X, predictions, np.zeros(len(X), np.intp), 1)
            return float(whole.closed(X[:1], X[:1]).impurity[0])

        residual = once(Sharing.of(extraction), "residual of one model", residual_of_one_model)
        deviation = float(np.std(predictions))
        # Predictions that are all the same join below any number but 0.
        smallest = float(np.finfo(float).tiny)
        return max(_SHARE_OF_RESIDUAL * residual, _SHARE_OF_DEVIATION * deviation, smallest)
