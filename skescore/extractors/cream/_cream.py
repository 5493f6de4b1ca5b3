"""CREAM and ExACT: explainable clustering of rows, with or without predictions of a black box."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.utils import check_consistent_length, column_or_1d
from sklearn.utils.validation import _num_samples, check_is_fitted, validate_data

from skescore._validation import check_choice, plain_target
from skescore.extractors._base import PARTS, SELECTION, BaseExtractor, Extraction, documented
from skescore.extractors._input import check_columns, check_labels
from skescore.extractors._sampling import N_QUERIES
from skescore.extractors._sharing import Sharing
from skescore.extractors.cream._boxes import BoxParameters, cluster
from skescore.extractors.cream._targets import (
    LARGEST,
    LabelTarget,
    NoTarget,
    NumberTarget,
    Target,
)
from skescore.rules import Domain, RuleSet

_TASKS = ("classification", "regression")

#: Parts of the docstrings of the four classes.
_SHARED = {
    "boxes": """
error_threshold : float or None, default=None
    Largest impurity of rows that are not split further: the share of rows outside the majority
    class, the standard deviation of numbers, or with ``output="linear"`` the mean absolute
    residual of the linear model (in the target's units). None: 0.15 for classes, 0.1 without a
    target, a tenth of the standard deviation for numbers.
gauss_components : int, default=2
    Largest number of components of the Gaussian mixtures that suggest boxes, at least 2; all
    numbers from 2 are tried.
criterion : {"bic", "bic/m"}, default="bic"
    Criterion that the number of components m minimizes: the Bayesian information criterion
    ("bic"), or this criterion divided by m ("bic/m", as in PSyKE).
scale : bool, default=True
    Whether mixtures and distances use standardized features, and a target with the weight of
    all features together. False: raw numbers, so features in large units dominate.
max_samples : int or None, default=5000
    Largest number of rows that are clustered for one split, at least 10; they are drawn at random.
    Boxes are moved and compared on up to four times as many rows, and outputs are computed from
    all rows. None: all rows.
""",
    "weighted": """
weighted : bool, default=True
    Whether the impurities inside and outside of a box are weighted by their numbers of rows when
    the box is chosen. False: equal weights (as in PSyKE), which favor small pure boxes.
""",
    "rules": """
ignore_threshold : float, default=0.0
    Smallest importance (see `importances`) of features in rules, from 0 to 1. Other features are
    removed from the rules, whose outputs are then computed again.
importances : array-like of shape (n_features,), optional
    Importance of each feature, for `ignore_threshold`. By default its F statistic (analysis of
    variance, or linear regression) for the target, or for the clusters without a target, divided
    by the largest one.
output : {"constant", "linear"}, default="constant"
    Output of rules in regression: the mean of their rows, or a linear function of the features,
    fitted by least squares (with shrinkage if there are fewer than two rows per coefficient).
max_terms : int or None, default=3
    Largest number of features in a linear output, at least 1; they are chosen by forward
    selection for each rule. None: all.
""",
    "features": """
n_features_to_select : int or None, default=5
    """
    + SELECTION
    + """
""",
    "extraction": PARTS["common"]
    + """random_state : int, RandomState instance or None, default=None
    Seed of the mixtures and of drawn rows. Pass an int for reproducible rules.

Attributes
----------
rules_ : RuleSet
    The rules: an ordered list of closed boxes; the last rule has no conditions.
labels_ : ndarray of int, shape (n_rows,)
    Index of the first rule that holds for each training row.
n_rules_ : int
    Number of rules.
coverage_ : float
    Share of the training rows that some rule covers: 1, unless the rules were pruned.
completeness_ : float
    Share of the domain's volume that some rule covers: 1, unless the rules were pruned.
importances_ : ndarray of shape (n_features,)
    Importance of each feature, the largest is 1; all 0 if `ignore_threshold` is 0.
"""
    + PARTS["fitted"].lstrip(),
    "clustering": """
task : {"classification", "regression"} or None, default=None
    Kind of y. None: "regression" for an array of floats, otherwise "classification".
random_state : int, RandomState instance or None, default=None
    Seed of the mixtures and of drawn rows. Pass an int for the same clusters on every run.

Attributes
----------
rules_ : RuleSet
    One rule per cluster: an ordered list of closed boxes; the last rule has no conditions.
labels_ : ndarray of int, shape (n_rows,)
    Cluster of each row: the index of the first rule that holds.
n_clusters_ : int
    Number of clusters.
importances_ : ndarray of shape (n_features,)
    Importance of each feature, the largest is 1; all 0 if `ignore_threshold` is 0.
n_features_in_ : int
    Number of features.
feature_names_in_ : ndarray of shape (`n_features_in_`,)
    Names of the features, if X had string column names.
""",
}


_documented = partial(documented, parts=PARTS | _SHARED)


class BoxExtractor(BaseExtractor):
    """Base of both extractors, with the parameters of ExACT."""

    takes_categories: ClassVar[bool] = True
    _orders_categories: ClassVar[bool] = True
    _split_outside: ClassVar[bool]
    #: Whether the rows are sorted by content before rows are drawn.
    _orders_rows: ClassVar[bool] = False
    labels_: np.ndarray
    importances_: np.ndarray

    def __init__(
        self,
        estimator: Any,
        *,
        depth: int = 3,
        n_features_to_select: int | None = 5,
        error_threshold: float | None = None,
        gauss_components: int = 2,
        criterion: str = "bic",
        scale: bool = True,
        max_samples: int | None = 5000,
        ignore_threshold: float = 0.0,
        importances: Any = None,
        output: str = "constant",
        max_terms: int | None = 3,
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
        self.depth = depth
        self.n_features_to_select = n_features_to_select
        self.error_threshold = error_threshold
        self.gauss_components = gauss_components
        self.criterion = criterion
        self.scale = scale
        self.max_samples = max_samples
        self.ignore_threshold = ignore_threshold
        self.importances = importances
        self.output = output
        self.max_terms = max_terms
        self.features = features
        self.sampling = sampling
        self.n_queries = n_queries
        self.prune = prune
        self.uncovered = uncovered
        self.abstain_label = abstain_label
        self.batch_size = batch_size
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, **fit_params: Any) -> Any:
        super().fit(X, y, sample_weight, **fit_params)
        has_changed = self.prune is not None or self._constraints is not None
        if has_changed or len(self.labels_) != _num_samples(X):  # weights repeat rows
            self.labels_ = self.rules_.assign(self._rows(X))
        return self

    def explain(self) -> RuleSet:
        """Return the rules, the same as ``rules_``."""
        check_is_fitted(self, "rules_")
        return self.rules_

    def _check_parameters(self) -> None:
        BoxParameters.of(self, split_outside=self._split_outside)
        if self.output == "linear" and self._task() == "classification":
            raise ValueError(
                "output='linear' is for regression, but the black box is a classifier, whose rules "
                "predict labels. Leave output='constant'."
            )

    def _extract(self, extraction: Extraction) -> RuleSet:
        extraction.check_magnitude(LARGEST, "their squares would overflow")
        order, sharing = np.arange(len(extraction.X)), Sharing.of(extraction)
        if self._orders_rows:
            extraction, order = extraction.in_content_order()
            sharing = None if sharing is None else sharing.with_scope("content order")
        X, y_pred = extraction.X, extraction.predictions
        target: Target
        if extraction.classes is not None:
            target = LabelTarget(y_pred, len(extraction.classes))
        else:
            linear = self.output == "linear"
            numbers = X
            if extraction.unmeasured:  # constant columns get no linear term
                numbers = X.copy()
                numbers[:, extraction.unmeasured] = 0.0
            target = NumberTarget(numbers, y_pred, linear, self.max_terms, "The black box predicts")
        clustering = cluster(
            BoxParameters.of(self, split_outside=self._split_outside),
            X,
            target,
            extraction.settings["feature_names"],
            sharing,
        )
        self.labels_, self.importances_ = np.empty_like(clustering.labels), clustering.importances
        self.labels_[order] = clustering.labels
        return RuleSet.from_boxes(
            clustering.boxes, clustering.conclusions, ordered=True, **extraction.settings
        )


@_documented
class CREAMExtractor(BoxExtractor):
    """Nested boxes around clusters, chosen so that the rules are as homogeneous as possible.

    Use it if rows with similar predictions form clusters. The rows, described by their features and
    the black box's predictions, are split by a box around one cluster into those inside and those
    outside. Both parts are split again, up to `depth` times. The rules form an ordered list, inner
    boxes first. The last one covers all remaining rows. The black box is queried once.

    Parameters
    ----------
    {estimator}
    depth : int, default=3
        Largest number of nested splits, at least 1; there are at most ``2**depth`` rules.
    {features}
    {boxes}
    {weighted}
    {rules}
    {extraction}

    Notes
    -----
    A Gaussian mixture is fitted to the features and the target, which is the black box's
    prediction. In each component, DBSCAN finds the densest part. Its radius starts at the knee of
    the sorted distances to neighbors and grows by a tenth of this value until there are at most as
    many clusters as components and at most 0.5 % of the rows are noise. Mixtures are fitted to at
    most 1000 rows, and at most 600 rows of a component are clustered, regardless of `max_samples`.

    The faces of the box around a part lie halfway to the next row outside. A side with no rows
    beyond it has no face. Because the outermost rows of a cluster depend on chance, the faces are
    then moved, one feature at a time, among 31 positions with equally many rows between them. This
    continues as long as a move reduces the scatter of the target inside and outside by at least
    0.2 % of the total. The scatter is the Gini impurity of labels, or the standard deviation of
    numbers, times the number of rows. Faces that exclude no row are removed. The box with the
    smallest impurity inside and outside is used.

    The boxes overlap, and each rule means "in this box and in no earlier one". The order of the
    rules must therefore not be changed.

    Linear models of few rows overfit. Their mean absolute residual is therefore multiplied by
    ``n_rows / (n_rows - n_coefficients)``, and splits that would increase this product are omitted.

    References
    ----------
    F. Sabbatini, R. Calegari: Explainable clustering with CREAM. KR 2023.
    doi:10.24963/kr.2023/58
    F. Sabbatini, R. Calegari: Unveiling opaque predictors via explainable clustering: the CReEPy
    algorithm. CEUR-WS 3615, paper 1, 2023.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> from skescore.extractors import CREAMExtractor
    >>> data = load_iris(as_frame=True)
    >>> labels = data.target_names[data.target]
    >>> extractor = CREAMExtractor(
    ...     KNeighborsClassifier(9), depth=2, ignore_threshold=0.9, random_state=0
    ... )
    >>> print(extractor.fit(data.data, labels).explain())
    1. IF petal length (cm) ≤ 2.45 THEN setosa
       [50 rows, 100 % agree with the model, 100 % right (data)]
    2. ELSE IF petal length (cm) ≤ 4.85 THEN versicolor
       [49 rows, 96 % agree with the model, 94 % right (data)]
    3. ELSE virginica   [51 rows, 96 % agree with the model, 92 % right (data)]
    >>> extractor.completeness_, extractor.oracle_.n_calls
    (1.0, 1)
    """

    _split_outside = True
    _orders_rows = True

    def __init__(
        self,
        estimator: Any,
        *,
        depth: int = 3,
        n_features_to_select: int | None = 5,
        error_threshold: float | None = None,
        gauss_components: int = 2,
        criterion: str = "bic",
        scale: bool = True,
        max_samples: int | None = 5000,
        weighted: bool = True,
        ignore_threshold: float = 0.0,
        importances: Any = None,
        output: str = "constant",
        max_terms: int | None = 3,
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
            depth=depth,
            n_features_to_select=n_features_to_select,
            error_threshold=error_threshold,
            gauss_components=gauss_components,
            criterion=criterion,
            scale=scale,
            max_samples=max_samples,
            ignore_threshold=ignore_threshold,
            importances=importances,
            output=output,
            max_terms=max_terms,
            features=features,
            sampling=sampling,
            n_queries=n_queries,
            prune=prune,
            uncovered=uncovered,
            abstain_label=abstain_label,
            batch_size=batch_size,
            random_state=random_state,
        )
        self.weighted = weighted


@_documented
class ExACTExtractor(BoxExtractor):
    """Chain of nested boxes, each inside the previous one, around the largest clusters.

    Like :class:`CREAMExtractor`, but the largest useful box is chosen, and only its inside is split
    again. The result is a short list of rules, inner boxes first. Its last rule covers all
    remaining rows, so the list is complete. The black box is queried once.

    Parameters
    ----------
    {estimator}
    depth : int, default=3
        Largest number of nested boxes, at least 1; there are at most ``depth + 1`` rules.
    {features}
    {boxes}
    {rules}
    {extraction}

    Notes
    -----
    Boxes are found, and their faces moved, as in :class:`CREAMExtractor`, except that the scatter
    inside a box has the weight ``1 / (r + 1)`` if the inside may be split r more times. Among the
    boxes that reduce the impurity at least half as much as the best one, the largest is used.

    References
    ----------
    F. Sabbatini, R. Calegari: ExACT explainable clustering: unraveling the intricacies of cluster
    formation. KR 2023 workshops, CEUR-WS 3548, paper 3.
    F. Sabbatini, R. Calegari: Unveiling opaque predictors via explainable clustering: the CReEPy
    algorithm. CEUR-WS 3615, paper 1, 2023.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> from skescore.extractors import ExACTExtractor
    >>> data = load_iris(as_frame=True)
    >>> labels = data.target_names[data.target]
    >>> extractor = ExACTExtractor(
    ...     KNeighborsClassifier(9), depth=2, ignore_threshold=0.9, random_state=0
    ... )
    >>> print(extractor.fit(data.data, labels).explain())
    1. IF petal length (cm) ≥ 4.75 THEN virginica
       [55 rows, 93 % agree with the model, 89 % right (data)]
    2. ELSE IF petal length (cm) ≥ 2.45 THEN versicolor
       [45 rows, 100 % agree with the model, 98 % right (data)]
    3. ELSE setosa   [50 rows, 100 % agree with the model, 100 % right (data)]
    """

    _split_outside = False

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # A chain of few boxes is too coarse for the minimum score of scikit-learn's checks.
        for part in ("classifier_tags", "regressor_tags"):
            inner = getattr(tags, part)
            if inner is not None:
                setattr(tags, part, replace(inner, poor_score=True))
        return tags


class BoxClusterer(ClusterMixin, BaseEstimator):
    """Base of both clusterers, with the parameters of ExACT."""

    _split_outside: ClassVar[bool]

    def __init__(
        self,
        *,
        depth: int = 3,
        error_threshold: float | None = None,
        gauss_components: int = 2,
        criterion: str = "bic",
        scale: bool = True,
        max_samples: int | None = 5000,
        ignore_threshold: float = 0.0,
        importances: Any = None,
        output: str = "constant",
        max_terms: int | None = 3,
        task: str | None = None,
        random_state: Any = None,
    ) -> None:
        self.depth = depth
        self.error_threshold = error_threshold
        self.gauss_components = gauss_components
        self.criterion = criterion
        self.scale = scale
        self.max_samples = max_samples
        self.ignore_threshold = ignore_threshold
        self.importances = importances
        self.output = output
        self.max_terms = max_terms
        self.task = task
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Any:
        """Find the clusters.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_rows, n_features)
            The rows, finite numbers.
        y : array-like of shape (n_rows,), optional
            Labels or numbers that should be homogeneous within a cluster. None: clusters consist of
            rows that are close together.

        Returns
        -------
        self
            The fitted clusterer.

        Raises
        ------
        ValueError, TypeError
            If the rows, the target or a parameter are invalid; the message states the remedy.
        """
        parameters = BoxParameters.of(self, split_outside=self._split_outside)
        check_choice("task", self.task, (None, *_TASKS))
        check_columns(X, type(self).__name__)
        rows = validate_data(self, X, dtype=float, ensure_min_samples=2)
        names = getattr(self, "feature_names_in_", None)
        if names is None:
            names = [f"x{j}" for j in range(rows.shape[1])]
        extent = np.abs(rows).max(axis=0)
        if (extent > LARGEST).any():
            at = int(extent.argmax())
            raise ValueError(
                f"Feature {str(names[at])!r} holds numbers up to {extent[at]:.3g}, more than "
                f"{LARGEST:.3g}; their squares would overflow. Scale the feature."
            )
        target, classes = self._target(rows, y)
        clustering = cluster(parameters, rows, target, names)
        if y is None:
            classes = list(range(len(clustering.boxes)))
        self.rules_ = RuleSet.from_boxes(
            clustering.boxes,
            clustering.conclusions,
            names,
            task="regression" if classes is None else "classification",
            classes=classes,
            domain=Domain.around(rows),
            reference=None if y is None else "data",
        )
        self.labels_, self.importances_ = clustering.labels, clustering.importances
        return self

    def _target(self, rows: np.ndarray, y: Any) -> tuple[Target, list[Any] | None]:
        """Return the target and its classes; the classes are None for numbers."""
        numbers = False
        if y is not None:
            y = column_or_1d(plain_target(y), warn=True)
            check_consistent_length(rows, y)
            numbers = (self.task or _TASKS[y.dtype.kind == "f"]) == "regression"
        if self.output == "linear" and not numbers:
            raise ValueError(
                "output='linear' requires a numeric target, but y "
                f"{'is None' if y is None else 'holds labels'}. Pass floats as y, or "
                "task='regression', or output='constant'."
            )
        if y is None:
            return NoTarget(rows), None
        if numbers:
            return NumberTarget(rows, _finite(y), self.output == "linear", self.max_terms), None
        check_labels(y)
        if y.dtype.kind == "f" and not np.isfinite(y).all():
            raise ValueError("y lacks a label in some rows (NaN or infinity). Drop those rows.")
        classes, codes = np.unique(y, return_inverse=True)
        return LabelTarget(codes, len(classes)), classes.tolist()

    def fit_predict(self, X: Any, y: Any = None) -> np.ndarray:
        """Find the clusters and return the cluster of each row.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_rows, n_features)
            The rows.
        y : array-like of shape (n_rows,), optional
            As in :meth:`fit`.

        Returns
        -------
        ndarray of int, shape (n_rows,)
            The same as ``labels_``.
        """
        return np.asarray(self.fit(X, y).labels_)

    def predict(self, X: Any) -> np.ndarray:
        """Return the cluster of each row.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_rows, n_features)
            The rows.

        Returns
        -------
        ndarray of int, shape (n_rows,)
            Index of the first rule that holds.
        """
        check_is_fitted(self, "rules_")
        return self.rules_.assign(validate_data(self, X, reset=False, dtype=float))

    def explain(self) -> RuleSet:
        """Return the rules, the same as ``rules_``."""
        check_is_fitted(self, "rules_")
        return self.rules_

    @property
    def n_clusters_(self) -> int:
        """Number of clusters."""
        check_is_fitted(self, "rules_")
        return len(self.rules_)


def _finite(y: np.ndarray) -> np.ndarray:
    try:
        values = np.asarray(y, dtype=float)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"y must hold numbers for task='regression', got {y[0]!r}: {error}. Pass "
            "task='classification' for labels."
        ) from error
    bad = np.flatnonzero(~np.isfinite(values))
    if len(bad):
        raise ValueError(
            f"y holds {values[bad[0]]} in row {bad[0]} ({len(bad)} of {len(values)} rows are not "
            "finite). Drop those rows."
        )
    return values


@_documented
class CREAMClusterer(BoxClusterer):
    """Clusters in nested boxes, as homogeneous as possible, each described by a rule.

    Use it if each cluster needs a description. Clusters consist of rows with similar labels or
    numbers, or without y of rows that are close together.

    Parameters
    ----------
    depth : int, default=3
        Largest number of nested splits, at least 1; there are at most ``2**depth`` rules.
    {boxes}
    {weighted}
    {rules}
    {clustering}

    Notes
    -----
    Boxes are found as in :class:`CREAMExtractor`. Without y, their faces are not moved. The
    impurity is then the variance within a cluster as a share of the variance of all rows, summed
    over the standardized features, and rules predict the number of the cluster.

    References
    ----------
    F. Sabbatini, R. Calegari: Explainable clustering with CREAM. KR 2023.
    doi:10.24963/kr.2023/58

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from skescore.extractors import CREAMClusterer
    >>> data = load_iris(as_frame=True)
    >>> clusterer = CREAMClusterer(depth=2, ignore_threshold=0.9, random_state=0)
    >>> print(clusterer.fit(data.data, data.target_names[data.target]).explain())
    1. IF petal length (cm) ≤ 2.45 THEN setosa   [50 rows, 100 % right (data)]
    2. ELSE IF petal length (cm) ≤ 5.15 THEN versicolor   [66 rows, 76 % right (data)]
    3. ELSE virginica   [34 rows, 100 % right (data)]
    >>> clusterer.predict(data.data.iloc[[0, 149]])
    array([0, 1])
    """

    _split_outside = True

    def __init__(
        self,
        *,
        depth: int = 3,
        error_threshold: float | None = None,
        gauss_components: int = 2,
        criterion: str = "bic",
        scale: bool = True,
        max_samples: int | None = 5000,
        weighted: bool = True,
        ignore_threshold: float = 0.0,
        importances: Any = None,
        output: str = "constant",
        max_terms: int | None = 3,
        task: str | None = None,
        random_state: Any = None,
    ) -> None:
        super().__init__(
            depth=depth,
            error_threshold=error_threshold,
            gauss_components=gauss_components,
            criterion=criterion,
            scale=scale,
            max_samples=max_samples,
            ignore_threshold=ignore_threshold,
            importances=importances,
            output=output,
            max_terms=max_terms,
            task=task,
            random_state=random_state,
        )
        self.weighted = weighted


@_documented
class ExACTClusterer(BoxClusterer):
    """Clusters in a chain of boxes, each inside the previous one, each described by a rule.

    Like :class:`CREAMClusterer`, but the largest useful box is chosen, and only its inside is split
    again; see :class:`ExACTExtractor`.

    Parameters
    ----------
    depth : int, default=3
        Largest number of nested boxes, at least 1; there are at most ``depth + 1`` rules.
    {boxes}
    {rules}
    {clustering}

    References
    ----------
    F. Sabbatini, R. Calegari: ExACT explainable clustering: unraveling the intricacies of cluster
    formation. KR 2023 workshops, CEUR-WS 3548, paper 3.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from skescore.extractors import ExACTClusterer
    >>> data = load_iris(as_frame=True)
    >>> clusterer = ExACTClusterer(depth=2, ignore_threshold=0.9, random_state=0)
    >>> print(clusterer.fit(data.data).explain())
    1. IF petal length (cm) ≥ 4.45 THEN 0   [71 rows, 100 % of this class]
    2. ELSE IF petal length (cm) ≥ 2.45 THEN 1   [29 rows, 100 % of this class]
    3. ELSE 2   [50 rows, 100 % of this class]
    >>> clusterer.predict(data.data.iloc[[0, 149]])
    array([2, 0])
    """

    _split_outside = False
