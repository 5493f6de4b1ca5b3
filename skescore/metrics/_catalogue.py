"""The catalogue of measures of predictions: one entry per measure, and whose it is."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from skescore._text import did_you_mean
from skescore.metrics._classification import (
    f_measure,
    fallout,
    false_negative,
    false_positive,
    geometric_mean,
    lift,
    negative_predictive_value,
    precision,
    psep,
    sensitivity,
    specificity,
    true_negative,
    true_positive,
    youden,
)
from skescore.metrics._performance_errors import (
    absolute_error,
    relative_error,
    relative_error_lenient,
    relative_error_strict,
    root_mean_squared_error,
    squared_error,
)
from skescore.metrics._performance_labels import (
    accuracy,
    balanced_accuracy,
    classification_error,
    kappa,
)
from skescore.metrics._performance_shares import (
    cross_entropy,
    logistic_loss,
    margin,
    soft_margin_loss,
)
from skescore.metrics._regression import (
    correlation,
    normalized_absolute_error,
    root_relative_squared_error,
    squared_correlation,
)

__all__ = ["KINDS", "PERFORMANCE_METRICS", "PerformanceMetric", "find_metric"]

#: What measures are given: labels of two classes or of any number, numbers, confidences in classes,
#: rules and rows, or times of events.
KINDS = ("binary", "multiclass", "regression", "probability", "rules", "survival")
#: Arguments of every measure; what else one has are its options.
_COMMON = ("y_true", "y_pred", "y_prob", "sample_weight", "undefined")


@dataclass(frozen=True, slots=True)
class PerformanceMetric:
    """A measure of predictions.

    An instance of your own may be passed to :func:`performance_value`, and to
    :func:`skescore.scorers.make_performance_scorer`, in place of a name.

    Parameters
    ----------
    name : str
        What to call it.
    function : callable or None
        ``function(y_true, y_pred, *, sample_weight, undefined, **options)``; None where predictions
        alone do not tell.
    kind : str
        One of :data:`KINDS`; ``"probability"`` gets the confidences in all classes for `y_pred`,
        and ``labels``.
    greater_is_better : bool or None
        False for a loss, None for what is neither good nor bad.
    best : float
        The best value; NaN if it depends on the data.
    formula : str
        The same to be read: y true, z answered, w weight, q the confidence in the true class; TP,
        FP, TN and FN are rows by outcome.
    scikit_learn : str, default=""
        The function of ``sklearn.metrics`` that this is, if there is one.
    rulekit : mapping of str to value, optional
        Options with which RuleKit's value comes out, where the defaults give another.
    source : str, default=""
        Who proposed it, or where it comes from.

    Examples
    --------
    >>> from skescore.metrics import PERFORMANCE_METRICS
    >>> metric = PERFORMANCE_METRICS["youden"]
    >>> metric.formula, metric.greater_is_better, metric.best
    ('TP/(TP + FN) + TN/(TN + FP) - 1', True, 1.0)
    >>> metric.function([0, 0, 1, 1], [0, 1, 1, 1])
    0.5
    """

    name: str
    function: Callable[..., float] | None
    kind: str
    greater_is_better: bool | None
    best: float
    formula: str
    scikit_learn: str = ""
    rulekit: Mapping[str, Any] = field(default_factory=dict)
    source: str = ""

    @property
    def scorer_name(self) -> str:
        """What the scorer is called: losses are negated, so that greater is better."""
        return f"neg_{self.name}" if self.greater_is_better is False else self.name

    @property
    def options(self) -> tuple[str, ...]:
        """What may be set beside weights and the value where there is none."""
        if self.function is None:
            return ()
        return tuple(k for k in inspect.signature(self.function).parameters if k not in _COMMON)


def find_metric(metric: str | PerformanceMetric, options: Mapping[str, Any]) -> PerformanceMetric:
    """Find a measure and check the names of its options."""
    if isinstance(metric, PerformanceMetric):
        found = metric
    else:
        known = PERFORMANCE_METRICS.get(metric) if isinstance(metric, str) else None
        if known is None:
            raise ValueError(
                f"There is no measure of predictions {metric!r}. "
                f"{did_you_mean(metric, PERFORMANCE_METRICS)}"
            )
        found = known
    for option in options:
        if option not in found.options:
            raise TypeError(
                f"The measure {found.name!r} has no option {option!r}. "
                f"{did_you_mean(option, found.options)}"
            )
    return found


# --- the catalogue -------------------------------------------------------------------------------

_TABLE = "statistics of two-by-two tables"
_STATISTICS = "statistics of errors"
_RAPIDMINER = "RapidMiner"
_RULEKIT = "catalogue of RuleKit"
_NAN = math.nan
_CLIPPED = {"clip": True, "undefined": 0.0}

#: The measures by name; adding one is one entry.
PERFORMANCE_METRICS: Mapping[str, PerformanceMetric] = MappingProxyType({m.name: m for m in (
    PerformanceMetric(
        "accuracy", accuracy, "multiclass", True, 1.0, "share of rows with z = y",
        scikit_learn="accuracy_score", source=_STATISTICS,
    ),
    PerformanceMetric(
        "classification_error", classification_error, "multiclass", False, 0.0,
        "share of rows with z ≠ y", scikit_learn="zero_one_loss", source=_STATISTICS,
    ),
    PerformanceMetric(
        "balanced_accuracy", balanced_accuracy, "multiclass", True, 1.0,
        "mean over the classes of y of the share with z = y",
        scikit_learn="balanced_accuracy_score", source=_STATISTICS,
    ),
    PerformanceMetric(
        "kappa", kappa, "multiclass", True, 1.0,
        "(a - e) / (1 - e), a = accuracy, e = that of independent answers",
        scikit_learn="cohen_kappa_score", source="J. Cohen 1960",
    ),
    PerformanceMetric(
        "rules_per_example", None, "rules", None, _NAN, "mean number of rules that hold for a row",
        source=_RULEKIT,
    ),
    PerformanceMetric(
        "voting_conflicts", None, "rules", False, 0.0,
        "rows that rules of two or more classes hold for", source=_RULEKIT,
    ),
    PerformanceMetric(
        "negative_voting_conflicts", None, "rules", False, 0.0,
        "rows that rules of two or more classes hold for, and z ≠ y", source=_RULEKIT,
    ),
    PerformanceMetric(
        "cross_entropy", cross_entropy, "probability", False, 0.0, "mean of -log2(q)",
        source=_RAPIDMINER,
    ),
    PerformanceMetric("margin", margin, "probability", True, 1.0, "min q", source=_RAPIDMINER),
    PerformanceMetric(
        "soft_margin_loss", soft_margin_loss, "probability", False, 0.0, "mean of 1 - q",
        source=_RAPIDMINER,
    ),
    PerformanceMetric(
        "logistic_loss", logistic_loss, "probability", False, math.log1p(math.exp(-1)),
        "mean of ln(1 + exp(-q))", source=_RAPIDMINER,
    ),
    PerformanceMetric(
        "precision", precision, "binary", True, 1.0, "TP / (TP + FP)",
        scikit_learn="precision_score", source=_TABLE,
    ),
    PerformanceMetric(
        "sensitivity", sensitivity, "binary", True, 1.0, "TP / (TP + FN)",
        scikit_learn="recall_score", source=_TABLE,
    ),
    PerformanceMetric(
        "specificity", specificity, "binary", True, 1.0, "TN / (TN + FP)", source=_TABLE,
    ),
    PerformanceMetric(
        "negative_predictive_value", negative_predictive_value, "binary", True, 1.0,
        "TN / (TN + FN)", source=_TABLE,
    ),
    PerformanceMetric("fallout", fallout, "binary", False, 0.0, "FP / (FP + TN)", source=_TABLE),
    PerformanceMetric(
        "youden", youden, "binary", True, 1.0, "TP/(TP + FN) + TN/(TN + FP) - 1",
        source="W. J. Youden 1950",
    ),
    PerformanceMetric(
        "geometric_mean", geometric_mean, "binary", True, 1.0,
        "sqrt(TP/(TP + FN) · TN/(TN + FP))", source="M. Kubat, S. Matwin 1997",
    ),
    PerformanceMetric(
        "psep", psep, "binary", True, 1.0, "TP/(TP + FP) + TN/(TN + FN) - 1", source=_RAPIDMINER,
    ),
    PerformanceMetric(
        "lift", lift, "binary", True, _NAN, "TP/(TP + FP) / ((TP + FN)/(TP + FP + TN + FN))",
        source="S. Brin et al. 1997",
    ),
    PerformanceMetric(
        "f_measure", f_measure, "binary", True, 1.0, "2 TP / (2 TP + FP + FN)",
        scikit_learn="f1_score", rulekit={"harmonic": True}, source="C. J. van Rijsbergen 1979",
    ),
    PerformanceMetric(
        "false_positive", false_positive, "binary", False, 0.0, "FP", source=_TABLE,
    ),
    PerformanceMetric(
        "false_negative", false_negative, "binary", False, 0.0, "FN", source=_TABLE,
    ),
    PerformanceMetric("true_positive", true_positive, "binary", True, _NAN, "TP", source=_TABLE),
    PerformanceMetric("true_negative", true_negative, "binary", True, _NAN, "TN", source=_TABLE),
    PerformanceMetric(
        "absolute_error", absolute_error, "regression", False, 0.0, "mean of |y - z|",
        scikit_learn="mean_absolute_error", source=_STATISTICS,
    ),
    PerformanceMetric(
        "relative_error", relative_error, "regression", False, 0.0,
        "mean of |y - z| / |y| where y ≠ 0", source=_RAPIDMINER,
    ),
    PerformanceMetric(
        "relative_error_lenient", relative_error_lenient, "regression", False, 0.0,
        "mean of |y - z| / max(|y|, |z|)", source=_RAPIDMINER,
    ),
    PerformanceMetric(
        "relative_error_strict", relative_error_strict, "regression", False, 0.0,
        "mean of |y - z| / min(|y|, |z|)", source=_RAPIDMINER,
    ),
    PerformanceMetric(
        "normalized_absolute_error", normalized_absolute_error, "regression", False, 0.0,
        "sum |y - z| / sum |y - mean y|", source=_STATISTICS,
    ),
    PerformanceMetric(
        "squared_error", squared_error, "regression", False, 0.0, "mean of (y - z)²",
        scikit_learn="mean_squared_error", source=_STATISTICS,
    ),
    PerformanceMetric(
        "root_mean_squared_error", root_mean_squared_error, "regression", False, 0.0,
        "sqrt(mean of (y - z)²)", scikit_learn="root_mean_squared_error", source=_STATISTICS,
    ),
    PerformanceMetric(
        "root_relative_squared_error", root_relative_squared_error, "regression", False, 0.0,
        "sqrt(sum (y - z)² / sum (y - mean y)²)", source=_STATISTICS,
    ),
    PerformanceMetric(
        "correlation", correlation, "regression", True, 1.0, "Pearson's r of y and z",
        rulekit=_CLIPPED, source="K. Pearson 1895",
    ),
    PerformanceMetric(
        "squared_correlation", squared_correlation, "regression", True, 1.0,
        "squared Pearson's r of y and z", rulekit=_CLIPPED, source="K. Pearson 1895",
    ),
    PerformanceMetric(
        "integrated_brier_score", None, "survival", False, 0.0,
        "mean over time of the squared distance of the predicted from the known survival",
        source="E. Graf et al. 1999",
    ),
)})  # fmt: skip
