"""Measures of predictions as scorers of any classifier or regressor.

They evaluate only predictions. :mod:`skescore.scorers` also has scores of rules as knowledge.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from skescore._text import listed
from skescore._validation import check_choice, check_number_or_nan
from skescore.metrics import (
    PERFORMANCE_METRICS,
    PerformanceMetric,
    characteristics,
    performance_value,
)
from skescore.metrics._catalog import find_metric
from skescore.scorers._evaluation import REFERENCES, evaluate_rules
from skescore.scorers._routing import AcceptsWeights

__all__ = ["PERFORMANCE_SCORERS", "PerformanceScorer", "make_performance_scorer"]


class PerformanceScorer(AcceptsWeights):
    """A measure of predictions as a scorer for scikit-learn's searches and Optuna objectives.

    Created by :func:`make_performance_scorer`.

    Parameters
    ----------
    metric : str or PerformanceMetric
        Name of the measure, or a user-defined one.
    reference : {"data", "black_box"}, default="data"
        Whether to compare with y, or with the black box's predictions.
    settings : dict, optional
        ``undefined`` and options of the measure.
    """

    def __init__(
        self,
        metric: str | PerformanceMetric,
        reference: str = "data",
        settings: dict[str, Any] | None = None,
    ) -> None:
        self.metric = metric
        self.reference = reference
        self.settings: dict[str, Any] = {"undefined": math.nan, **(settings or {})}
        self._requests: dict[str, Any] = {}

    @property
    def name(self) -> str:
        """Name in messages, with the prefix ``neg_`` for a loss."""
        return find_metric(self.metric, {}).scorer_name

    def check_task(self, task: str) -> None:
        """Check that the measure is defined for a task.

        Parameters
        ----------
        task : {"classification", "regression"}
            Task of the black box.

        Raises
        ------
        ValueError
            If the measure is defined for the other task only.
        """
        metric = find_metric(self.metric, {})
        measures_numbers = metric.kind == "regression"
        if metric.kind != "rules" and measures_numbers != (task == "regression"):
            kind, other = ("numbers", "accuracy") if measures_numbers else ("classes", "r2")
            raise ValueError(
                f"scoring={self.name!r} measures predictions of {kind}, but the task is {task}. "
                f"Choose another score, such as 'ice' or {other!r}."
            )

    def __call__(self, estimator: Any, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Score a fitted estimator on rows."""
        metric = find_metric(self.metric, {})
        if metric.kind == "rules":
            value = self._figure(metric, estimator, X, y, sample_weight)
        else:
            value = self._value(metric, estimator, X, y, sample_weight)
        return -value if metric.greater_is_better is False else value

    def _value(
        self, metric: PerformanceMetric, estimator: Any, X: Any, y: Any, sample_weight: Any
    ) -> float:
        options = self._options()
        if metric.kind != "probability":
            predictions = estimator.predict(X)
        elif hasattr(estimator, "predict_proba"):
            predictions = estimator.predict_proba(X)
            options.setdefault("labels", _classes(estimator))
        else:
            raise TypeError(
                f"{self.name} needs a classifier with predict_proba, but "
                f"{type(estimator).__name__} has none. Choose a measure of predicted labels, or of "
                "regression for a regressor."
            )
        if metric.kind == "binary":
            # The rows may contain two of many classes, or one of two.
            _check_binary(self.name, _classes(estimator), options.get("pos_label"))
        truth = self._truth(estimator, X, y)
        return performance_value(
            metric,
            truth,
            predictions,
            sample_weight=sample_weight,
            undefined=self._undefined(metric),
            **options,
        )

    def _figure(
        self, metric: PerformanceMetric, estimator: Any, X: Any, y: Any, sample_weight: Any
    ) -> float:
        """Compute a measure from the rules."""
        e = evaluate_rules(estimator, X, y, reference=self.reference, sample_weight=sample_weight)
        figures = characteristics(e.ruleset, e.X, e.y_true, sample_weight=e.sample_weight)
        if metric.name not in figures:
            raise ValueError(
                f"{self.name} is for classes, but the rules of {type(estimator).__name__} predict "
                "numbers. Choose rules_per_example, or a measure of regression."
            )
        return figures[metric.name]

    def _truth(self, estimator: Any, X: Any, y: Any) -> Any:
        if self.reference == "black_box":
            return evaluate_rules(estimator, X, None, reference="black_box").y_true
        if y is None:
            raise ValueError(f"{self.name} compares with y, but y is None; pass y.")
        return y

    def _options(self) -> dict[str, Any]:
        return {key: value for key, value in self.settings.items() if key != "undefined"}

    def _undefined(self, metric: PerformanceMetric) -> float:
        # Undefined scores are not negated.
        undefined = float(self.settings["undefined"])
        return -undefined if metric.greater_is_better is False else undefined

    def __repr__(self) -> str:
        settings = {**self._options(), "undefined": self.settings["undefined"]}
        arguments = [f"{key}={value!r}" for key, value in settings.items()]
        return f"{self.name}({', '.join([*arguments, f'reference={self.reference!r}'])})"


class FidelityScorer(PerformanceScorer):
    """Agreement of the rules with the black box: accuracy for classes, R² for numbers.

    Rows without a prediction count as wrong (classes), or as predicted by the mean training
    prediction of the black box (numbers).

    Parameters
    ----------
    undefined : float, default=NaN
        Value for rules without predictions.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> from skescore.extractors import CARTExtractor
    >>> from skescore.scorers import FidelityScorer
    >>> X, y = load_iris(return_X_y=True)
    >>> extractor = CARTExtractor(KNeighborsClassifier(9), max_leaf_nodes=3, random_state=0)
    >>> round(FidelityScorer()(extractor.fit(X, y), X), 3)
    0.973
    """

    def __init__(self, undefined: float = math.nan) -> None:
        super().__init__("accuracy", "black_box", {"undefined": undefined})

    @property
    def name(self) -> str:
        """Name in messages."""
        return "fidelity"

    def __call__(self, estimator: Any, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Score a fitted estimator on rows; `y` is ignored."""
        e = evaluate_rules(estimator, X, None, reference="black_box", sample_weight=sample_weight)
        fidelity = e.agreement("r2" if e.ruleset.task == "regression" else "accuracy")
        return float(self.settings["undefined"]) if math.isnan(fidelity) else fidelity


def _classes(estimator: Any) -> Any:
    """Return the classes of an estimator or a rule set; None for a regressor."""
    return getattr(estimator, "classes_", getattr(estimator, "classes", None))


def _check_binary(name: str, classes: Any, pos_label: Any) -> None:
    if classes is None:
        return
    class_labels = np.asarray(classes, dtype=object).tolist()
    if len(class_labels) > 2:
        raise ValueError(
            f"{name} is for two classes, but the model has {len(class_labels)}: "
            f"{listed(class_labels)}. Choose a measure for many classes, or compare one class "
            "with all others."
        )
    if pos_label is not None and pos_label not in class_labels:
        raise ValueError(
            f"pos_label must be one of the model's classes {listed(class_labels)}, got "
            f"{pos_label!r}."
        )


class _UserFunction:
    """Function of a user, with the signature of the catalog's metrics."""

    def __init__(self, function: Callable[..., float]) -> None:
        self.function = function

    def __call__(
        self, y_true: Any, y_pred: Any, *, sample_weight: Any = None, undefined: float = math.nan
    ) -> float:
        weights = {} if sample_weight is None else {"sample_weight": sample_weight}
        return float(self.function(y_true, y_pred, **weights))


def _user_metric(named_function: Mapping[str, Any]) -> PerformanceMetric:
    if len(named_function) != 1 or not all(
        isinstance(k, str) and callable(v) for k, v in named_function.items()
    ):
        raise TypeError(
            "metric as a dict must hold one name and its function of (y_true, y_pred), got "
            f"{dict(named_function)!r}. Use one scorer per measure."
        )
    [(name, function)] = named_function.items()
    formula = f"by {getattr(function, '__name__', type(function).__name__)}"
    return PerformanceMetric(name, _UserFunction(function), "multiclass", True, math.nan, formula)


def make_performance_scorer(
    metric: str | PerformanceMetric | Mapping[str, Callable[..., float]],
    *,
    reference: str = "data",
    undefined: float = math.nan,
    **options: Any,
) -> PerformanceScorer:
    """Create a scorer of predictions from a measure of the catalog.

    Use it in ``GridSearchCV(scoring=...)``, ``cross_validate`` or ``ExtractorSearchCV``, for any
    classifier or regressor: extractors, trees, rule sets and models without rules.

    Parameters
    ----------
    metric : str, PerformanceMetric or dict of str to callable
        A name of :data:`skescore.metrics.PERFORMANCE_METRICS`, or a user-defined metric. A loss is
        negated. ``{name: function}`` holds a function of ``(y_true, y_pred)`` for which greater is
        better, such as a score of ``sklearn.metrics``; it gets `sample_weight` if there is one.
    reference : {"data", "black_box"}, default="data"
        Whether to compare with y, or with the predictions of an extractor's black box (fidelity).
    undefined : float, default=NaN
        Score if the measure is undefined, such as the specificity without negatives. It is not
        negated. A score of NaN comes with an ``UndefinedMetricWarning``.
    **options
        Options of the measure: ``pos_label`` of binary measures, required unless labels are 0 and
        1, or -1 and 1; ``harmonic``, ``zero`` and ``clip``, each for a few measures.

    Returns
    -------
    PerformanceScorer
        Scorer with the name of the measure (prefix ``neg_`` for a loss); greater is better.

    Raises
    ------
    ValueError
        If there is no such measure or reference, or it cannot be a scorer.
    TypeError
        If the measure has no such option, `undefined` is not a number, or a dict does not hold
        exactly one name and function.

    Notes
    -----
    All rows count, including uncovered ones, with the predictions of the model; a bare rule set
    needs a fallback for them. Columns of probabilities have the order of the model's classes.
    Measures of probabilities raise an error for labels that are unknown to the model; stratified
    folds avoid this. Infinite losses remain infinite, for example the cross-entropy if a single
    true class has probability 0. For searches, prefer scikit-learn's ``"neg_log_loss"``.
    ``rules_per_example`` and the voting conflicts require rules. For ``rules_per_example``, neither
    larger nor smaller values are better, so use it only in ``cross_validate``.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from skescore.scorers import make_performance_scorer
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> tree = DecisionTreeClassifier(max_leaf_nodes=4, random_state=0).fit(X, y)
    >>> round(make_performance_scorer("specificity")(tree, X, y), 3)
    0.958
    >>> from sklearn.metrics import jaccard_score
    >>> round(make_performance_scorer({"jaccard": jaccard_score})(tree, X, y), 3)
    0.937
    >>> round(make_performance_scorer("fallout", pos_label=0)(tree, X, y), 3)
    -0.039
    """
    checked_metric = find_metric(
        _user_metric(metric) if isinstance(metric, Mapping) else metric, options
    )
    if checked_metric.kind == "survival":
        raise ValueError(
            f"{checked_metric.name} needs the censored rows, which predictions do not contain; see "
            "skescore.scorers.make_survival_scorer."
        )
    check_choice("reference", reference, REFERENCES)
    check_number_or_nan("undefined", undefined)
    # Keep the name of a registered metric, since searches print and copy it.
    is_unregistered = PERFORMANCE_METRICS.get(checked_metric.name) is not checked_metric
    settings = {"undefined": float(undefined), **options}
    return PerformanceScorer(
        checked_metric if is_unregistered else checked_metric.name, reference, settings
    )


#: Ready-made scorers of :data:`PERFORMANCE_METRICS` by name.
PERFORMANCE_SCORERS: dict[str, PerformanceScorer] = {
    metric.scorer_name: make_performance_scorer(metric)
    for metric in PERFORMANCE_METRICS.values()
    if metric.kind != "survival"
}
