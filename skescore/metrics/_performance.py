"""Measures of predictions, by name: those that rule learners report, whoever has them.

The catalogue is that of RuleKit, as a table: one entry per measure, which says whether it is
scikit-learn's or ours. Every function of ours can be called by itself too, as in
``skescore.metrics._performance.youden(y_true, y_pred)``.
"""

from __future__ import annotations

import math
import warnings
from typing import Any

import pandas as pd
from sklearn.exceptions import UndefinedMetricWarning

from skescore._text import did_you_mean
from skescore.metrics._arguments import TASKS
from skescore.metrics._catalogue import (
    KINDS,
    PERFORMANCE_METRICS,
    PerformanceMetric,
    find_metric,
)
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
from skescore.metrics._rows import Labels, check_undefined

__all__ = [
    "KINDS",
    "PERFORMANCE_METRICS",
    "PerformanceMetric",
    "absolute_error",
    "accuracy",
    "balanced_accuracy",
    "classification_error",
    "correlation",
    "cross_entropy",
    "f_measure",
    "fallout",
    "false_negative",
    "false_positive",
    "geometric_mean",
    "kappa",
    "lift",
    "logistic_loss",
    "margin",
    "negative_predictive_value",
    "normalized_absolute_error",
    "performance_report",
    "performance_table",
    "performance_value",
    "precision",
    "psep",
    "relative_error",
    "relative_error_lenient",
    "relative_error_strict",
    "root_mean_squared_error",
    "root_relative_squared_error",
    "sensitivity",
    "soft_margin_loss",
    "specificity",
    "squared_correlation",
    "squared_error",
    "true_negative",
    "true_positive",
    "youden",
]

#: Who answers for the kinds that no vector of predictions is enough for.
_ELSEWHERE = {
    "rules": "characteristics(ruleset, X, y)[{!r}], or a scorer of that name, knows the rules",
    "survival": "skescore.metrics._survival knows what was censored",
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
    """Measure predictions by a measure of the catalogue.

    Use it where the measure is chosen by name; the functions themselves are in
    :mod:`skescore.metrics._performance`.

    Parameters
    ----------
    metric : str or PerformanceMetric
        A name of :data:`PERFORMANCE_METRICS`, or a measure of your own.
    y_true : array-like of shape (n_rows,)
        The truth.
    y_pred : array-like of shape (n_rows,) or (n_rows, n_classes)
        The answers; for a measure of confidence, what ``predict_proba`` gives.
    sample_weight : array-like of shape (n_rows,), optional
        Weights of the rows, zero or positive. A weight of 2 is a row given twice.
    undefined : float, default=NaN
        The value where there is none; NaN comes with an ``UndefinedMetricWarning``.
    **options
        ``pos_label`` of binary measures, ``labels`` of those of confidence, ``harmonic``, ``zero``
        and ``clip`` of single ones.

    Returns
    -------
    float
        The value; whether greater is better says ``PERFORMANCE_METRICS[metric]``.

    Raises
    ------
    ValueError
        If there is no such measure, it needs more than predictions, or the rows do not fit it.
    TypeError
        If the measure has no such option, or something is of the wrong type.

    Examples
    --------
    >>> performance_value("psep", ["no", "no", "yes"], ["no", "yes", "yes"], pos_label="yes")
    0.5
    >>> performance_value("correlation", [1.0, 2.0, 4.0], [2.0, 3.0, 5.0])
    1.0
    """
    found = find_metric(metric, options)
    if found.function is None:
        raise ValueError(
            f"{found.name!r} needs more than predictions: "
            f"{_ELSEWHERE[found.kind].format(found.name)}."
        )
    return float(
        found.function(y_true, y_pred, sample_weight=sample_weight, undefined=undefined, **options)
    )


def performance_table(kind: str | None = None) -> pd.DataFrame:
    """List the measures of predictions, and whose they are.

    Parameters
    ----------
    kind : str, optional
        Only those of one of :data:`KINDS`.

    Returns
    -------
    DataFrame
        One row per measure, by name: ``kind``, ``owner`` ("scikit-learn", "skescore" or
        "scikit-survival"), ``function`` (where to import it from), ``scorer`` (its name as a
        scorer, empty if there is none), ``better`` ("greater", "smaller" or ""), ``best`` value,
        ``formula`` and ``source``. What owes to scikit-survival is called with survival rules,
        whose scorers :func:`skescore.metrics._survival.make_survival_scorer` makes.

    Raises
    ------
    ValueError
        If there is no such kind.

    Examples
    --------
    >>> table = performance_table("regression")
    >>> table.loc[["absolute_error", "relative_error"], "owner"].tolist()
    ['scikit-learn', 'skescore']
    """
    if kind is not None and kind not in KINDS:
        raise ValueError(f"There is no kind {kind!r} of measures. {did_you_mean(kind, KINDS)}")
    chosen = [m for m in PERFORMANCE_METRICS.values() if kind in (None, m.kind)]
    better = {True: "greater", False: "smaller", None: ""}
    rows = [
        {
            "kind": metric.kind,
            "owner": _owner(metric)[0],
            "function": _owner(metric)[1],
            "scorer": "" if metric.kind == "survival" else metric.scorer_name,
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
        return "scikit-survival", f"skescore.metrics._survival.{metric.name}"
    if metric.scikit_learn:
        return "scikit-learn", f"sklearn.metrics.{metric.scikit_learn}"
    if metric.kind == "rules":
        return "skescore", "skescore.metrics._rule_reports"
    return "skescore", f"skescore.metrics._performance.{metric.name}"


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
    """Measure predictions by everything in the catalogue that suits them.

    Use it to look at a model from all sides, or to compare it with what another program reports.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n_rows,)
        The truth and the answers.
    task : {"classification", "regression"}
        The kind of answers.
    y_prob : array-like of shape (n_rows, n_classes), optional
        What ``predict_proba`` gives; without it, measures of confidence are left out.
    labels : array-like of shape (n_classes,), optional
        What the columns of `y_prob` stand for; by default the labels of `y_true` in order.
    pos_label : label, optional
        The positive one of two classes, by default 1. Measures of two classes are left out where
        there are more, and where there is no word about which is positive.
    sample_weight : array-like of shape (n_rows,), optional
        Weights of the rows, zero or positive.
    undefined : float, default=NaN
        What stands where a measure has no value.

    Returns
    -------
    DataFrame
        One row per measure, by name: ``value``, ``better`` ("greater" or "smaller"), ``best`` value
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
    if task not in TASKS:
        raise ValueError(f"task must be 'classification' or 'regression', got {task!r}.")
    check_undefined(undefined)
    if task == "regression":
        for name, given in (("y_prob", y_prob), ("labels", labels), ("pos_label", pos_label)):
            if given is not None:
                raise ValueError(f"{name} is for task='classification', got {given!r}.")
        options: dict[str, dict[str, Any]] = {"regression": {}}
    else:
        options = {"multiclass": {}}
        rows = Labels.of(y_true, y_pred, sample_weight)
        if pos_label is not None or rows.one_is_positive:
            rows.positive(pos_label)  # more labels than two, if one is said to be positive
            options["binary"] = {"pos_label": pos_label}
        if y_prob is not None:
            options["probability"] = {"labels": labels}
        elif labels is not None:
            raise ValueError(f"labels name the columns of y_prob, which is None; got {labels!r}.")
    table = performance_table()
    table = table[table["kind"].isin(list(options))]
    with warnings.catch_warnings():
        # What has no value is to be seen in the table.
        warnings.simplefilter("ignore", UndefinedMetricWarning)
        values = [
            performance_value(
                name, y_true, y_prob if kind == "probability" else y_pred,
                sample_weight=sample_weight, undefined=undefined, **options[kind],
            )
            for name, kind in zip(table.index, table["kind"], strict=True)
        ]  # fmt: skip
    report = table[["better", "best", "formula"]]
    report.insert(0, "value", values)
    return report
