"""Catalog of metrics of predictions, with their formulas and origins.

Names are those of scikit-learn where it has the metric, those of RuleKit and RapidMiner elsewhere.
"""

from __future__ import annotations

import inspect
import math
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import pandas as pd
from sklearn.exceptions import UndefinedMetricWarning

from skescore._text import did_you_mean
from skescore._validation import TASKS, check_choice, check_number_or_nan
from skescore.metrics import _classification as classes
from skescore.metrics import _regression as numbers
from skescore.metrics._rows import Labels

__all__ = [
    "KINDS",
    "PERFORMANCE_METRICS",
    "PerformanceMetric",
    "find_metric",
    "performance_report",
    "performance_table",
    "performance_value",
]

#: Inputs of metrics: labels of two classes, labels of any classes, numbers, probabilities,
#: rules with rows, or event times.
KINDS = ("binary", "multiclass", "regression", "probability", "rules", "survival")
#: Arguments of every metric; all others are options.
_COMMON = ("y_true", "y_pred", "y_prob", "sample_weight", "undefined")


@dataclass(frozen=True, slots=True)
class PerformanceMetric:
    """A metric of predictions.

    An instance of your own may be passed to :func:`performance_value`, and to
    :func:`skescore.scorers.make_performance_scorer`, instead of a name.

    Parameters
    ----------
    name : str
        Name of the metric.
    function : callable or None
        ``function(y_true, y_pred, *, sample_weight, undefined, **options)``; None where predictions
        alone are not enough.
    kind : str
        Input of the metric: ``"binary"`` or ``"multiclass"`` labels, numbers (``"regression"``),
        class probabilities for `y_pred` and ``labels`` (``"probability"``), ``"rules"`` or
        ``"survival"``.
    greater_is_better : bool or None
        False for a loss, None for what is neither good nor bad.
    best : float
        The best value; NaN if it depends on the data.
    formula : str
        The same to be read: y true, z predicted, q the probability of the true class; TP, FP, TN
        and FN are rows by outcome.
    scikit_learn : str, default=""
        The function of ``sklearn.metrics`` that this is, if there is one.
    rulekit : mapping of str to value, optional
        Options with which RuleKit's value comes out, where the defaults give another.
    rulekit_name : str, default=""
        RuleKit's name of it, where that is another.
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
    rulekit_name: str = ""
    source: str = ""

    @property
    def scorer_name(self) -> str:
        """Name of the scorer; a loss is negated, so that greater is better."""
        return f"neg_{self.name}" if self.greater_is_better is False else self.name

    @property
    def options(self) -> tuple[str, ...]:
        """Names of the options of the function besides weights and `undefined`."""
        if self.function is None:
            return ()
        return tuple(k for k in inspect.signature(self.function).parameters if k not in _COMMON)


def find_metric(metric: str | PerformanceMetric, options: Mapping[str, Any]) -> PerformanceMetric:
    """Find a metric and check the names of its options."""
    if isinstance(metric, PerformanceMetric):
        checked_metric = metric
    else:
        named_metric = PERFORMANCE_METRICS.get(metric) if isinstance(metric, str) else None
        if named_metric is None:
            raise ValueError(
                f"There is no metric of predictions {metric!r}. "
                f"{did_you_mean(metric, PERFORMANCE_METRICS)}"
            )
        checked_metric = named_metric
    for option in options:
        if option not in checked_metric.options:
            raise TypeError(
                f"The metric {checked_metric.name!r} has no option {option!r}. "
                f"{did_you_mean(option, checked_metric.options)}"
            )
    return checked_metric


_TABLE = "statistics of two-by-two tables"
_STATISTICS = "statistics of errors"
_RAPIDMINER = "RapidMiner"
_RULEKIT = "catalog of RuleKit"
_NAN = math.nan
_CLIPPED = {"clip": True, "undefined": 0.0}

#: Catalog of metrics of predictions by any model, with options, formulas and origins.
PERFORMANCE_METRICS: Mapping[str, PerformanceMetric] = MappingProxyType(
    {
        m.name: m
        for m in (
            PerformanceMetric(
                "accuracy",
                classes.accuracy,
                "multiclass",
                True,
                1.0,
                "share of rows with z = y",
                scikit_learn="accuracy_score",
                source=_STATISTICS,
            ),
            PerformanceMetric(
                "zero_one_loss",
                classes.zero_one_loss,
                "multiclass",
                False,
                0.0,
                "share of rows with z ≠ y",
                scikit_learn="zero_one_loss",
                rulekit_name="classification_error",
                source=_STATISTICS,
            ),
            PerformanceMetric(
                "balanced_accuracy",
                classes.balanced_accuracy,
                "multiclass",
                True,
                1.0,
                "mean over the classes of y of the share with z = y",
                scikit_learn="balanced_accuracy_score",
                source=_STATISTICS,
            ),
            PerformanceMetric(
                "cohen_kappa",
                classes.cohen_kappa,
                "multiclass",
                True,
                1.0,
                "(a - e) / (1 - e), a = accuracy, e = that of independent labels",
                scikit_learn="cohen_kappa_score",
                rulekit_name="kappa",
                source="J. Cohen 1960",
            ),
            PerformanceMetric(
                "rules_per_example",
                None,
                "rules",
                None,
                _NAN,
                "mean number of rules that hold for a row",
                source=_RULEKIT,
            ),
            PerformanceMetric(
                "voting_conflicts",
                None,
                "rules",
                False,
                0.0,
                "rows that rules of two or more classes hold for",
                source=_RULEKIT,
            ),
            PerformanceMetric(
                "negative_voting_conflicts",
                None,
                "rules",
                False,
                0.0,
                "rows that rules of two or more classes hold for, and z ≠ y",
                source=_RULEKIT,
            ),
            PerformanceMetric(
                "cross_entropy",
                classes.cross_entropy,
                "probability",
                False,
                0.0,
                "mean of -log2(q)",
                source=_RAPIDMINER,
            ),
            PerformanceMetric(
                "margin",
                classes.margin,
                "probability",
                True,
                1.0,
                "min q",
                source=_RAPIDMINER,
            ),
            PerformanceMetric(
                "soft_margin_loss",
                classes.soft_margin_loss,
                "probability",
                False,
                0.0,
                "mean of 1 - q",
                source=_RAPIDMINER,
            ),
            PerformanceMetric(
                "logistic_loss",
                classes.logistic_loss,
                "probability",
                False,
                math.log1p(math.exp(-1)),
                "mean of ln(1 + exp(-q))",
                source=_RAPIDMINER,
            ),
            PerformanceMetric(
                "precision",
                classes.precision,
                "binary",
                True,
                1.0,
                "TP / (TP + FP)",
                scikit_learn="precision_score",
                source=_TABLE,
            ),
            PerformanceMetric(
                "recall",
                classes.recall,
                "binary",
                True,
                1.0,
                "TP / (TP + FN)",
                scikit_learn="recall_score",
                rulekit_name="sensitivity",
                source=_TABLE,
            ),
            PerformanceMetric(
                "specificity",
                classes.specificity,
                "binary",
                True,
                1.0,
                "TN / (TN + FP)",
                source=_TABLE,
            ),
            PerformanceMetric(
                "negative_predictive_value",
                classes.negative_predictive_value,
                "binary",
                True,
                1.0,
                "TN / (TN + FN)",
                source=_TABLE,
            ),
            PerformanceMetric(
                "fallout",
                classes.fallout,
                "binary",
                False,
                0.0,
                "FP / (FP + TN)",
                source=_TABLE,
            ),
            PerformanceMetric(
                "youden",
                classes.youden,
                "binary",
                True,
                1.0,
                "TP/(TP + FN) + TN/(TN + FP) - 1",
                source="W. J. Youden 1950",
            ),
            PerformanceMetric(
                "geometric_mean",
                classes.geometric_mean,
                "binary",
                True,
                1.0,
                "sqrt(TP/(TP + FN) · TN/(TN + FP))",
                source="M. Kubat, S. Matwin 1997",
            ),
            PerformanceMetric(
                "psep",
                classes.psep,
                "binary",
                True,
                1.0,
                "TP/(TP + FP) + TN/(TN + FN) - 1",
                source=_RAPIDMINER,
            ),
            PerformanceMetric(
                "lift",
                classes.lift,
                "binary",
                True,
                _NAN,
                "TP/(TP + FP) / ((TP + FN)/(TP + FP + TN + FN))",
                source="S. Brin et al. 1997",
            ),
            PerformanceMetric(
                "f1",
                classes.f1,
                "binary",
                True,
                1.0,
                "2 TP / (2 TP + FP + FN)",
                scikit_learn="f1_score",
                rulekit={"harmonic": True},
                rulekit_name="f_measure",
                source="C. J. van Rijsbergen 1979",
            ),
            PerformanceMetric(
                "false_positive",
                classes.false_positive,
                "binary",
                False,
                0.0,
                "FP",
                source=_TABLE,
            ),
            PerformanceMetric(
                "false_negative",
                classes.false_negative,
                "binary",
                False,
                0.0,
                "FN",
                source=_TABLE,
            ),
            PerformanceMetric(
                "true_positive",
                classes.true_positive,
                "binary",
                True,
                _NAN,
                "TP",
                source=_TABLE,
            ),
            PerformanceMetric(
                "true_negative",
                classes.true_negative,
                "binary",
                True,
                _NAN,
                "TN",
                source=_TABLE,
            ),
            PerformanceMetric(
                "mean_absolute_error",
                numbers.mean_absolute_error,
                "regression",
                False,
                0.0,
                "mean of |y - z|",
                scikit_learn="mean_absolute_error",
                rulekit_name="absolute_error",
                source=_STATISTICS,
            ),
            PerformanceMetric(
                "relative_error",
                numbers.relative_error,
                "regression",
                False,
                0.0,
                "mean of |y - z| / |y| where y ≠ 0",
                source=_RAPIDMINER,
            ),
            PerformanceMetric(
                "relative_error_lenient",
                numbers.relative_error_lenient,
                "regression",
                False,
                0.0,
                "mean of |y - z| / max(|y|, |z|)",
                source=_RAPIDMINER,
            ),
            PerformanceMetric(
                "relative_error_strict",
                numbers.relative_error_strict,
                "regression",
                False,
                0.0,
                "mean of |y - z| / min(|y|, |z|)",
                source=_RAPIDMINER,
            ),
            PerformanceMetric(
                "normalized_absolute_error",
                numbers.normalized_absolute_error,
                "regression",
                False,
                0.0,
                "sum |y - z| / sum |y - mean y|",
                source=_STATISTICS,
            ),
            PerformanceMetric(
                "mean_squared_error",
                numbers.mean_squared_error,
                "regression",
                False,
                0.0,
                "mean of (y - z)²",
                scikit_learn="mean_squared_error",
                rulekit_name="squared_error",
                source=_STATISTICS,
            ),
            PerformanceMetric(
                "root_mean_squared_error",
                numbers.root_mean_squared_error,
                "regression",
                False,
                0.0,
                "sqrt(mean of (y - z)²)",
                scikit_learn="root_mean_squared_error",
                source=_STATISTICS,
            ),
            PerformanceMetric(
                "root_relative_squared_error",
                numbers.root_relative_squared_error,
                "regression",
                False,
                0.0,
                "sqrt(sum (y - z)² / sum (y - mean y)²)",
                source=_STATISTICS,
            ),
            PerformanceMetric(
                "correlation",
                numbers.correlation,
                "regression",
                True,
                1.0,
                "Pearson's r of y and z",
                rulekit=_CLIPPED,
                source="K. Pearson 1895",
            ),
            PerformanceMetric(
                "squared_correlation",
                numbers.squared_correlation,
                "regression",
                True,
                1.0,
                "squared Pearson's r of y and z",
                rulekit=_CLIPPED,
                source="K. Pearson 1895",
            ),
            PerformanceMetric(
                "integrated_brier_score",
                None,
                "survival",
                False,
                0.0,
                "mean over time of the squared distance of the predicted from the known survival",
                source="E. Graf et al. 1999",
            ),
        )
    }
)


#: Functions for the kinds of metrics that need more than predictions.
_ELSEWHERE = {
    "rules": "characteristics(ruleset, X, y)[{!r}], or a scorer of that name, knows the rules",
    "survival": "skescore.metrics.{} and skescore.scorers.make_survival_scorer know what was "
    "censored",
}


def performance_value(
    metric: str | PerformanceMetric,
    y_true: Any,
    y_pred: Any,
    *,
    sample_weight: Any = None,
    undefined: float = math.nan,
    **options: Any,
) -> float:
    """Measure predictions by a metric of the catalog.

    Parameters
    ----------
    metric : str or PerformanceMetric
        A name of :data:`PERFORMANCE_METRICS`, or a user-defined metric.
    y_true : array-like of shape (n_rows,)
        True labels or numbers.
    y_pred : array-like of shape (n_rows,) or (n_rows, n_classes)
        The predictions; for a metric of class probabilities, what ``predict_proba`` gives.
    sample_weight : array-like of shape (n_rows,), optional
        Weights of the rows, zero or positive. A weight of 2 is a row given twice.
    undefined : float, default=NaN
        The value where there is none; NaN comes with an ``UndefinedMetricWarning``.
    **options
        ``pos_label``, the positive class of binary metrics, which labels other than 0 and 1, or -1
        and 1, need; ``labels``, the classes of the columns of probabilities, by default the labels
        of `y_true` in order; ``harmonic``, ``zero`` and ``clip`` of single metrics.

    Returns
    -------
    float
        The value; whether greater is better says ``PERFORMANCE_METRICS[metric]``.

    Raises
    ------
    ValueError
        If there is no such metric, it needs more than predictions, or the rows do not fit it.
    TypeError
        If the metric has no such option, or something is of the wrong type.

    Examples
    --------
    >>> performance_value("psep", ["no", "no", "yes"], ["no", "yes", "yes"], pos_label="yes")
    0.5
    >>> performance_value("correlation", [1.0, 2.0, 4.0], [2.0, 3.0, 5.0])
    1.0
    """
    checked_metric = find_metric(metric, options)
    if checked_metric.function is None:
        raise ValueError(
            f"{checked_metric.name!r} needs more than predictions: "
            f"{_ELSEWHERE[checked_metric.kind].format(checked_metric.name)}."
        )
    return float(
        checked_metric.function(
            y_true, y_pred, sample_weight=sample_weight, undefined=undefined, **options
        )
    )


def performance_table(kind: str | None = None) -> pd.DataFrame:
    """List the metrics of predictions, and whose they are.

    Parameters
    ----------
    kind : str, optional
        Only those of one kind: ``"binary"``, ``"multiclass"``, ``"regression"``,
        ``"probability"``, ``"rules"`` or ``"survival"``.

    Returns
    -------
    DataFrame
        One row per metric, by name: ``kind``, ``owner`` ("scikit-learn", "skescore" or
        "scikit-survival"), ``function`` (where to import it from), ``scorer`` (its name as a
        scorer, empty if there is none), ``rulekit`` (RuleKit's name of it), ``better`` ("greater",
        "smaller" or ""), ``best`` value, ``formula`` and ``source``.

    Raises
    ------
    ValueError
        If there is no such kind.

    Examples
    --------
    >>> table = performance_table("regression")
    >>> table.loc[["mean_absolute_error", "relative_error"], "owner"].tolist()
    ['scikit-learn', 'skescore']
    """
    if kind is not None and kind not in KINDS:
        raise ValueError(f"There is no kind {kind!r} of metrics. {did_you_mean(kind, KINDS)}")
    chosen = [m for m in PERFORMANCE_METRICS.values() if kind in (None, m.kind)]
    better = {True: "greater", False: "smaller", None: ""}
    rows = [
        {
            "kind": metric.kind,
            "owner": _owner(metric)[0],
            "function": _owner(metric)[1],
            "scorer": "" if metric.kind == "survival" else metric.scorer_name,
            "rulekit": metric.rulekit_name or metric.name,
            "better": better[metric.greater_is_better],
            "best": metric.best,
            "formula": metric.formula,
            "source": metric.source,
        }
        for metric in chosen
    ]
    return pd.DataFrame(rows, index=pd.Index([metric.name for metric in chosen], name="metric"))


def _owner(metric: PerformanceMetric) -> tuple[str, str]:
    if metric.kind == "survival":
        return "scikit-survival", f"skescore.metrics.{metric.name}"
    if metric.scikit_learn:
        return "scikit-learn", f"sklearn.metrics.{metric.scikit_learn}"
    name = "characteristics" if metric.kind == "rules" else "performance_value"
    return "skescore", f"skescore.metrics.{name}"


def performance_report(
    y_true: Any,
    y_pred: Any,
    *,
    task: str,
    y_prob: Any = None,
    labels: Any = None,
    pos_label: Any = None,
    sample_weight: Any = None,
    undefined: float = math.nan,
) -> pd.DataFrame:
    """Measure predictions by everything in the catalog that suits them.

    Use it to look at a model from all sides, or to compare it with what another program reports.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n_rows,)
        True and predicted labels or numbers.
    task : {"classification", "regression"}
        Task: predict labels or numbers.
    y_prob : array-like of shape (n_rows, n_classes), optional
        Output of ``predict_proba``; without it, metrics of class probabilities are left out.
    labels : array-like of shape (n_classes,), optional
        The classes of the columns of `y_prob`; by default the labels of `y_true` in order.
    pos_label : label, optional
        The positive one of two classes, by default 1. Metrics of two classes are left out where
        there are more, and where it is open which is positive.
    sample_weight : array-like of shape (n_rows,), optional
        Weights of the rows, zero or positive.
    undefined : float, default=NaN
        Value of undefined metrics.

    Returns
    -------
    DataFrame
        One row per metric, by name: ``value``, ``better`` ("greater" or "smaller"), ``best`` value
        and ``formula``.

    Raises
    ------
    ValueError
        If there is no such task, or the rows do not fit it.
    TypeError
        If something is of the wrong type.

    Examples
    --------
    >>> report = performance_report([0, 0, 1, 1], [0, 1, 1, 1], task="classification")
    >>> report.loc[["accuracy", "specificity", "lift"], "value"].round(3).to_dict()
    {'accuracy': 0.75, 'specificity': 0.5, 'lift': 1.333}
    """
    check_choice("task", task, TASKS)
    check_number_or_nan("undefined", undefined)
    if task == "regression":
        for name, value in (("y_prob", y_prob), ("labels", labels), ("pos_label", pos_label)):
            if value is not None:
                raise ValueError(f"{name} is for task='classification', got {value!r}.")
        options: dict[str, dict[str, Any]] = {"regression": {}}
    else:
        options = {"multiclass": {}}
        rows = Labels.of(y_true, y_pred, sample_weight)
        if pos_label is not None or rows.one_is_positive:
            rows.positive(pos_label)  # Refuse more than two labels with a pos_label.
            options["binary"] = {"pos_label": pos_label}
        if y_prob is not None:
            options["probability"] = {"labels": labels}
        elif labels is not None:
            raise ValueError(f"labels name the columns of y_prob, which is None; got {labels!r}.")
    table = performance_table()
    table = table[table["kind"].isin(list(options))]
    with warnings.catch_warnings():
        # The table shows undefined values without a warning.
        warnings.simplefilter("ignore", UndefinedMetricWarning)
        values = [
            performance_value(
                name,
                y_true,
                y_prob if kind == "probability" else y_pred,
                sample_weight=sample_weight,
                undefined=undefined,
                **options[kind],
            )
            for name, kind in zip(table.index, table["kind"], strict=True)
        ]
    report = table[["better", "best", "formula"]]
    report.insert(0, "value", values)
    return report
