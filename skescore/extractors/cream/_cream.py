"""CREAM and ExACT as extractors: explainable clustering of what the black box answers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sklearn.utils.validation import check_is_fitted

from skescore.extractors._base import BaseExtractor, Extraction
from skescore.extractors._sharing import Sharing
from skescore.extractors.cream._clustering import (
    LARGEST,
    LabelTarget,
    NumberTarget,
    Target,
    check_parameters,
    check_target_magnitude,
    cluster,
)
from skescore.rules import RuleSet


class ClusteringExtraction:
    """What both extractors share; goes in front of :class:`BaseExtractor`."""

    _both: bool
    output: str
    prune: str | None

    def fit(self, X: Any, y: Any = None, **fit_params: Any) -> Any:
        """Learn rules from what the black box answers on the rows.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_rows, n_features)
            The rows; finite numbers.
        y : array-like of shape (n_rows,), optional
            What the black box is fitted on: a clone of it is, unless it comes in a
            ``FrozenEstimator``. Without y the black box must be fitted already and is used as it
            is; extraction itself needs no labels.
        **fit_params
            Handed on to the black box's ``fit`` by metadata routing.

        Returns
        -------
        self
            The fitted extractor.

        Raises
        ------
        ValueError, TypeError
            If the rows, the black box or a parameter cannot be used; the message says what to do.
        """
        super().fit(X, y, **fit_params)  # type: ignore[misc]
        if self.prune is not None:
            self.labels_ = self.rules_.assign(self._rows(X))  # type: ignore[attr-defined]
        return self

    def explain(self) -> RuleSet:
        """Give the rules.

        Returns
        -------
        RuleSet
            The same as ``rules_``.
        """
        check_is_fitted(self, "rules_")
        rules: RuleSet = self.rules_  # type: ignore[attr-defined]
        return rules

    def _check_parameters(self) -> None:
        check_parameters(self)
        if self.output == "linear" and self._task() == "classification":  # type: ignore[attr-defined]
            raise ValueError(
                "output='linear' is for regression, but the black box is a classifier, whose rules "
                "conclude labels. Leave output='constant'."
            )

    def _extract(self, extraction: Extraction) -> RuleSet:
        X, answers = extraction.X, extraction.answers
        extraction.check_magnitude(LARGEST, "their squares would overflow")
        target: Target
        if extraction.classes is not None:
            target = LabelTarget(answers, len(extraction.classes))
        else:
            check_target_magnitude("The black box answers", answers)
            target = NumberTarget(X, answers, self.output == "linear")
        names = extraction.settings["feature_names"]
        found = cluster(self, X, target, names, Sharing.of(extraction))
        self.labels_, self.importances_ = found.labels, found.importances
        return RuleSet.from_boxes(
            found.boxes, found.conclusions, ordered=True, **extraction.settings
        )


class CREAMExtractor(ClusteringExtraction, BaseExtractor):
    """Boxes inside boxes, each around a cluster, chosen so that the rules are as pure as possible.

    Where the black box's answers come in clumps. The rows, described by their features and the
    black box's answer, are split by the box around one clump into its inside and the rest, and both
    are split again, `depth` times in all. The rules form an ordered list, those of the inside
    first; the last one answers everything that is left, so that the list is complete. The black
    box is asked once.

    Parameters
    ----------
    estimator : estimator
        The black box: a scikit-learn classifier or regressor. An unfitted one is cloned and fitted
        on (X, y); wrap a fitted one in ``FrozenEstimator``, any other model's function in
        :class:`CallableClassifier` or :class:`CallableRegressor`.
    depth : int, default=3
        Most boxes inside each other, at least 1; there are at most 2 to this power rules.
    error_threshold : float or None, default=None
        Rows whose answers are at most this diverse are not split any more: the share of answers
        outside the commonest class, their standard deviation, or with ``output="linear"`` their
        mean absolute distance from the plane (in the target's units). None
        stands for 0.1 in classification, for a tenth of the standard deviation of all answers in
        regression.
    gauss_components : int, default=2
        Most components of the Gaussian mixtures that suggest boxes, at least 2; all numbers up to
        it are tried.
    criterion : {"bic", "bic/m"}, default="bic"
        The number of components is the one of least Bayesian information criterion ("bic"), or of
        the least such criterion divided by it ("bic/m", as the reference platform does).
    scale : bool, default=True
        Whether mixtures and distances see standardised features, and a target that counts as much
        as all of them together. False: raw numbers, so that features in large units decide.
    max_samples : int or None, default=5000
        Most rows among which the clusters of one split are looked for, drawn at random; at least
        10. Boxes are moved and judged by up to four times as many, outputs are those of all rows.
        None: all rows.
    weighted : bool, default=True
        Whether the inside and the outside of a box count by their rows when the box is chosen.
        False: both the same (as in the reference platform), which likes small pure boxes.
    ignore_threshold : float, default=0.0
        Features of importance (see `importances`) below this, from 0 to 1, are left out of the
        rules, which then get the outputs that belong to their new boxes.
    importances : array-like of shape (n_features,), optional
        Importance of each feature, for `ignore_threshold`. By default the F statistic of the
        feature against the black box's answers (analysis of variance, or linear
        regression), divided by the largest.
    output : {"constant", "linear"}, default="constant"
        What rules conclude in regression: their mean, or a linear function of the features, fitted
        by least squares (shrunk where there are fewer than two rows per coefficient).
    prune : str or None, default=None
        Score to prune the rules by after extraction ("ice", "neg_fire", "neg_q", ...), see
        :func:`skescore.prune`; None keeps all rules.
    uncovered : {"default", "nearest", "abstain"}, default="default"
        What ``predict`` answers where no rule holds; the last rule always holds.
    abstain_label : str, int or float, optional
        Answer of ``uncovered="abstain"`` in classification.
    batch_size : int, optional
        Most rows in one call of the black box; by default all at once.
    random_state : int, RandomState instance or None, default=None
        Seed of the mixtures and of drawn rows. Pass an int for the same rules on every run.

    Attributes
    ----------
    rules_ : RuleSet
        The rules, an ordered list of closed boxes; the last one has no conditions.
    labels_ : ndarray of int, shape (n_rows,)
        Index of the rule that answers each training row.
    n_rules_ : int
        Number of rules.
    coverage_ : float
        Share of the training rows that some rule covers: 1, unless the rules were pruned.
    completeness_ : float
        Share of the domain's volume that some rule covers: 1, unless the rules were pruned.
    importances_ : ndarray of shape (n_features,)
        Importance of each feature, the largest is 1; all 0 where `ignore_threshold` is 0.
    estimator_ : estimator
        The fitted black box.
    oracle_ : Oracle
        Asks the black box and counts the questions.
    classes_ : ndarray of shape (n_classes,)
        Class labels. Classification only.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, if X had string column names.

    Notes
    -----
    A Gaussian mixture is fitted to the rows' features and the black box's answer. In each of its
    components the densest part is found by DBSCAN, with a radius that starts at the knee of the
    distances to the nearest neighbours and grows by tenths until there are no more clusters than
    components and at most 0.5 % of the rows are noise; noise is left out. Mixtures are fitted to
    1000 rows at most and 600 of a component are clustered, whatever `max_samples` is; the others go
    with them. The box around the part has its faces half way to the next row outside and is open
    where no row lies beyond. It ends where the cluster's outermost rows happen to be; therefore its
    faces are moved, one feature at a time, among 31 places with equally many rows between them, as
    long as that lowers the scatter of the black box's answers inside and outside of it by 0.2 % of
    all rows' (Gini impurity for labels, standard deviation for numbers, times the rows). Faces that
    take nothing off are left out. Of these boxes the one is taken that leaves the least diversity
    inside and outside.

    In an ordered list a box means "in here, and in none of the boxes before"; the boxes overlap, so
    that their order must not be changed.

    Planes lie closer to their own rows the fewer they are, and farther from others; their mean
    absolute distance is therefore multiplied by rows over rows minus coefficients. Rows are not
    split where that would only make it larger.

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
    1. IF petal length (cm) ≤ 2.45 THEN setosa   [50 rows, 100 % pure]
    2. ELSE IF petal length (cm) ≤ 4.85 THEN versicolor   [49 rows, 96 % pure]
    3. ELSE virginica   [51 rows, 96 % pure]
    >>> extractor.completeness_, extractor.oracle_.n_calls
    (1.0, 1)
    """

    _both = True

    def __init__(
        self,
        estimator: Any,
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
        prune: str | None = None,
        uncovered: str = "default",
        abstain_label: Any = None,
        batch_size: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.depth = depth
        self.error_threshold = error_threshold
        self.gauss_components = gauss_components
        self.criterion = criterion
        self.scale = scale
        self.max_samples = max_samples
        self.weighted = weighted
        self.ignore_threshold = ignore_threshold
        self.importances = importances
        self.output = output
        self.prune = prune
        self.uncovered = uncovered
        self.abstain_label = abstain_label
        self.batch_size = batch_size
        self.random_state = random_state


class ExACTExtractor(ClusteringExtraction, BaseExtractor):
    """A chain of boxes, each inside the one before, around what the rows have most of.

    As :class:`CREAMExtractor`, but of the useful boxes the largest is taken, and only its inside
    is split again: a short list of rules that peel the rows from the outside in. The last rule
    answers everything that is left, so that the list is complete. The black box is asked once.

    Parameters
    ----------
    estimator : estimator
        The black box: a scikit-learn classifier or regressor. An unfitted one is cloned and fitted
        on (X, y); wrap a fitted one in ``FrozenEstimator``, any other model's function in
        :class:`CallableClassifier` or :class:`CallableRegressor`.
    depth : int, default=3
        Most boxes inside each other, at least 1; at most so many rules, and one more.
    error_threshold : float or None, default=None
        Rows whose answers are at most this diverse are not split any more: the share of answers
        outside the commonest class, their standard deviation, or with ``output="linear"`` their
        mean absolute distance from the plane (in the target's units). None
        stands for 0.1 in classification, for a tenth of the standard deviation of all answers in
        regression.
    gauss_components : int, default=2
        Most components of the Gaussian mixtures that suggest boxes, at least 2; all numbers up to
        it are tried.
    criterion : {"bic", "bic/m"}, default="bic"
        The number of components is the one of least Bayesian information criterion ("bic"), or of
        the least such criterion divided by it ("bic/m", as the reference platform does).
    scale : bool, default=True
        Whether mixtures and distances see standardised features, and a target that counts as much
        as all of them together. False: raw numbers, so that features in large units decide.
    max_samples : int or None, default=5000
        Most rows among which the clusters of one split are looked for, drawn at random; at least
        10. Boxes are moved and judged by up to four times as many, outputs are those of all rows.
        None: all rows.
    ignore_threshold : float, default=0.0
        Features of importance (see `importances`) below this, from 0 to 1, are left out of the
        rules, which then get the outputs that belong to their new boxes.
    importances : array-like of shape (n_features,), optional
        Importance of each feature, for `ignore_threshold`. By default the F statistic of the
        feature against the black box's answers (analysis of variance, or linear
        regression), divided by the largest.
    output : {"constant", "linear"}, default="constant"
        What rules conclude in regression: their mean, or a linear function of the features, fitted
        by least squares (shrunk where there are fewer than two rows per coefficient).
    prune : str or None, default=None
        Score to prune the rules by after extraction ("ice", "neg_fire", "neg_q", ...), see
        :func:`skescore.prune`; None keeps all rules.
    uncovered : {"default", "nearest", "abstain"}, default="default"
        What ``predict`` answers where no rule holds; the last rule always holds.
    abstain_label : str, int or float, optional
        Answer of ``uncovered="abstain"`` in classification.
    batch_size : int, optional
        Most rows in one call of the black box; by default all at once.
    random_state : int, RandomState instance or None, default=None
        Seed of the mixtures and of drawn rows. Pass an int for the same rules on every run.

    Attributes
    ----------
    rules_ : RuleSet
        The rules, an ordered list of closed boxes; the last one has no conditions.
    labels_ : ndarray of int, shape (n_rows,)
        Index of the rule that answers each training row.
    n_rules_ : int
        Number of rules.
    coverage_ : float
        Share of the training rows that some rule covers: 1, unless the rules were pruned.
    completeness_ : float
        Share of the domain's volume that some rule covers: 1, unless the rules were pruned.
    importances_ : ndarray of shape (n_features,)
        Importance of each feature, the largest is 1; all 0 where `ignore_threshold` is 0.
    estimator_ : estimator
        The fitted black box.
    oracle_ : Oracle
        Asks the black box and counts the questions.
    classes_ : ndarray of shape (n_classes,)
        Class labels. Classification only.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, if X had string column names.

    Notes
    -----
    A Gaussian mixture is fitted to the rows' features and the black box's answer. In each of its
    components the densest part is found by DBSCAN, with a radius that starts at the knee of the
    distances to the nearest neighbours and grows by tenths until there are no more clusters than
    components and at most 0.5 % of the rows are noise; noise is left out. Mixtures are fitted to
    1000 rows at most and 600 of a component are clustered, whatever `max_samples` is; the others go
    with them. The box around the part has its faces half way to the next row outside and is open
    where no row lies beyond. It ends where the cluster's outermost rows happen to be; therefore its
    faces are moved, one feature at a time, among 31 places with equally many rows between them, as
    long as that lowers the scatter of the black box's answers inside and outside of it by 0.2 % of
    all rows' (Gini impurity for labels, standard deviation for numbers, times the rows). Faces that
    take nothing off are left out. Scatter inside, which may be split r times more, counts 1 / (r +
    1). Of these boxes the largest is taken that lowers the diversity at least half as much as the
    best.

    In an ordered list a box means "in here, and in none of the boxes before"; the boxes overlap, so
    that their order must not be changed.

    Planes lie closer to their own rows the fewer they are, and farther from others; their mean
    absolute distance is therefore multiplied by rows over rows minus coefficients. Rows are not
    split where that would only make it larger.

    References
    ----------
    F. Sabbatini, R. Calegari: ExACT explainable clustering: unravelling the intricacies of cluster
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
    1. IF petal length (cm) ≥ 4.75 THEN virginica   [55 rows, 93 % pure]
    2. ELSE IF petal length (cm) ≥ 2.45 THEN versicolor   [45 rows, 100 % pure]
    3. ELSE setosa   [50 rows, 100 % pure]
    """

    _both = False

    def __init__(
        self,
        estimator: Any,
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
        prune: str | None = None,
        uncovered: str = "default",
        abstain_label: Any = None,
        batch_size: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.depth = depth
        self.error_threshold = error_threshold
        self.gauss_components = gauss_components
        self.criterion = criterion
        self.scale = scale
        self.max_samples = max_samples
        self.ignore_threshold = ignore_threshold
        self.importances = importances
        self.output = output
        self.prune = prune
        self.uncovered = uncovered
        self.abstain_label = abstain_label
        self.batch_size = batch_size
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # A chain of few boxes is too coarse for scikit-learn's idea of a reasonable score.
        for part in ("classifier_tags", "regressor_tags"):
            inner = getattr(tags, part)
            if inner is not None:
                setattr(tags, part, replace(inner, poor_score=True))
        return tags
