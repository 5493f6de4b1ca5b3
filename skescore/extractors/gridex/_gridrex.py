"""GridREx: GridEx with a linear model in every box."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from sklearn.metrics import r2_score

from skescore._random import draw_seed
from skescore.extractors import _validation as check
from skescore.extractors._extraction import Extraction
from skescore.extractors._linear_models import Units, ridge_slopes
from skescore.extractors._sharing import Sharing, once
from skescore.extractors.gridex._grid import cut_domain
from skescore.extractors.gridex._gridex import GridExExtractor
from skescore.extractors.gridex._planes import Planes, PlaneSettings, PlanesTable
from skescore.extractors.gridex._reference import least_norm_slopes
from skescore.rules import BoxTable, RuleSet

#: Shares, for the default threshold, of one plane's mean absolute residual and of the deviation.
_SHARE_OF_RESIDUAL, _SHARE_OF_DEVIATION = 0.5, 0.01


class GridRExExtractor(GridExExtractor):
    """Disjoint boxes from a refined grid, each with a linear model of the black box's answers.

    A plane follows a slope that constants need many boxes for: where the black box is a smooth
    function of numbers, expect fewer rules than from :class:`GridExExtractor`, each with a longer
    conclusion. Regression only.

    Parameters
    ----------
    estimator : estimator
        The black box: a scikit-learn regressor. An unfitted one is cloned and fitted on (X, y);
        wrap a fitted one in ``FrozenEstimator``, any other model's function in
        :class:`CallableRegressor`.
    n_slices : int or sequence of int, default=2
        Slices per cut feature. A sequence goes with a sequence `importance_threshold` of the same
        length: the slices for features of at least that importance.
    importance_threshold : float or sequence of float or None, default=None
        Cut only features whose importance (see `importances`) is at least this, from 0 to 1; a
        sequence must increase. None cuts all features. Features that are not cut still take part
        in the planes.
    depth : int, default=2
        Most levels of cutting, at least 1.
    threshold : float or None, default=None
        A box is final once the mean absolute residual of its plane is below this, and touching
        cells join while that of their union is; in the target's units. None stands for half the
        mean absolute residual of one plane through all rows, but for at least a hundredth of the
        answers' standard deviation, so that a linear black box gives one rule.
    min_examples : int, default=1
        Answers wanted per cell: cells with fewer rows are filled up with uniform random points,
        about which the black box is asked. Up to 1 there are no such points and nothing is random.
    level_strategies : sequence of mappings, optional
        One mapping per level with ``n_slices`` and ``importance_threshold``, in place of the
        parameters of those names and of `depth`.
    importances : array-like of shape (n_features,), optional
        Importance of each feature, for `importance_threshold`. By default the F statistic of the
        feature against the black box's answers, divided by the largest.
    coefficient_tolerance : float, default=0.0
        Leaves out of a rule's conclusion the features with little effect: those whose coefficient,
        times the side of the rule's box along the feature, is less than this share of the range of
        all answers. The plane is fitted again on the others. 0 keeps all; 0.05 say makes shorter
        equations. What it costs is in `fidelity_loss_`.
    prune : str or None, default=None
        Score to prune the rules by after extraction ("ice", "neg_fire", "neg_q", ...), see
        :func:`skescore.prune`; None keeps all rules.
    uncovered : {"default", "nearest", "abstain"}, default="default"
        What ``predict`` answers where no rule holds: the black box's mean, the answer of the
        nearest box, or NaN.
    abstain_label : str, int or float, optional
        Unused: regression abstains with NaN.
    batch_size : int, optional
        Most rows in one call of the black box; by default all at once.
    random_state : int, RandomState instance or None, default=None
        Seed of the points that fill up cells. Pass an int for the same rules on every run.

    Attributes
    ----------
    rules_ : RuleSet
        The rules, disjoint half-open boxes; conclusions are :class:`skescore.rules.LinearOutput`,
        or plain numbers where the plane is level.
    n_rules_ : int
        Their number.
    coverage_ : float
        Share of the training rows that some rule covers.
    completeness_ : float
        Share of the domain's volume that some rule covers.
    threshold_ : float
        The threshold that was used.
    residuals_ : ndarray of shape (n_extracted_rules,)
        Mean absolute residual in each box, of the rule's conclusion from the black box's answers on
        rows and queried points. Rules that `prune` took out are still in it.
    dropped_coefficients_ : int
        How many coefficients `coefficient_tolerance` left out.
    fidelity_loss_ : float
        R² against the black box on the training rows with all coefficients, less that with those
        left: what `coefficient_tolerance` cost.
    importances_ : ndarray of shape (n_features,)
        Importance of each feature, the largest is 1; all 0 where no strategy asks for them.
    estimator_ : estimator
        The fitted black box.
    oracle_ : Oracle
        Asks the black box and counts the questions.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, if X had string column names.

    Notes
    -----
    The plane of a box is the least-squares one through rows and queried points. Features are
    standardised in each box before it is solved, and coefficients are given back in the features'
    own units. A feature that is constant in a box gets the coefficient 0; features that are copies
    of each other share theirs.

    A plane through few points would look perfect and be wrong in between. In a box with d varying
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
    1. IF km < 99.5 THEN 2 + 0.3·km + bags   [100 rows, ± 8.775]
    2. IF km ≥ 99.5 THEN 17 + 0.15·km   [100 rows, ± 4.33]
    otherwise, where no rule holds: 28.89
    >>> extractor.oracle_.n_calls, round(extractor.fidelity(journeys), 6)
    (1, 1.0)
    """

    tasks: ClassVar[tuple[str, ...]] = ("regression",)

    def __init__(
        self,
        estimator: Any,
        *,
        n_slices: int | Sequence[int] = 2,
        importance_threshold: float | Sequence[float] | None = None,
        depth: int = 2,
        threshold: float | None = None,
        min_examples: int = 1,
        level_strategies: Sequence[Mapping[str, Any]] | None = None,
        importances: Any = None,
        coefficient_tolerance: float = 0.0,
        prune: str | None = None,
        uncovered: str = "default",
        abstain_label: Any = None,
        batch_size: int | None = None,
        random_state: Any = None,
    ) -> None:
        super().__init__(
            estimator,
            n_slices=n_slices,
            importance_threshold=importance_threshold,
            depth=depth,
            threshold=threshold,
            min_examples=min_examples,
            level_strategies=level_strategies,
            importances=importances,
            prune=prune,
            uncovered=uncovered,
            abstain_label=abstain_label,
            batch_size=batch_size,
            random_state=random_state,
        )
        self.coefficient_tolerance = coefficient_tolerance

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check.check_number("coefficient_tolerance", self.coefficient_tolerance, 0.0)

    def _extract(self, extraction: Extraction) -> RuleSet:
        settings = self._settings(extraction, float(self.coefficient_tolerance))
        sharing = Sharing.of(extraction)
        levels = self._levels(extraction, sharing)
        self.threshold_ = float(levels[0].threshold)
        boxes, done = cut_domain(
            extraction,
            levels,
            draw_seed(self.random_state),
            lambda X, answers, box, n_boxes: PlanesTable.collect(
                X, answers, box, n_boxes, settings
            ),
            rounding=self._reference_rounding,
            sharing=sharing,
            kind=("linear", settings.tolerance),
        )
        tables: list[Any] = [part.statistics for part in done]
        planes = Planes.joined(settings.units, tables)
        n_rows = np.concatenate([part.n_rows for part in done])
        self.residuals_ = planes.residual * settings.units.unit[-1]
        self.dropped_coefficients_ = planes.n_dropped
        rules = _rule_set(extraction, boxes, planes.conclude(n_rows))
        self.fidelity_loss_ = 0.0
        if self.dropped_coefficients_:
            in_full = _rule_set(extraction, boxes, planes.conclude_in_full(n_rows))
            before, after = (
                r2_score(extraction.answers, each.predict(extraction.X))
                for each in (in_full, rules)
            )
            self.fidelity_loss_ = float(before - after)
        return rules

    def _settings(self, extraction: Extraction, tolerance: float) -> PlaneSettings:
        domain = extraction.settings["domain"]
        units = Units.of(np.array(domain.lower), np.array(domain.upper), extraction.answers)
        solver = least_norm_slopes if self._reference_rounding else ridge_slopes
        return PlaneSettings(units, tolerance, solver)

    def _default_threshold(self, extraction: Extraction, sharing: Sharing | None) -> float:
        X, answers = extraction.X, extraction.answers

        def residual_of_one_plane() -> float:
            settings = self._settings(extraction, 0.0)
            whole = PlanesTable.collect(X, answers, np.zeros(len(X), np.intp), 1, settings)
            return float(whole.closed(X[:1], X[:1]).diversity[0])

        if self._reference_rounding:
            sharing = None
        residual = once(sharing, "residual of one plane", residual_of_one_plane)
        deviation = float(np.std(answers))
        # Answers that are all the same join below any number but 0.
        smallest = float(np.finfo(float).tiny)
        return max(_SHARE_OF_RESIDUAL * residual, _SHARE_OF_DEVIATION * deviation, smallest)


def _rule_set(extraction: Extraction, boxes: BoxTable, conclusions: Any) -> RuleSet:
    return RuleSet.from_boxes(
        boxes, conclusions, ordered=False, disjoint=True, **extraction.settings
    )
