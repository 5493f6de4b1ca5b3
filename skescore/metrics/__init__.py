"""Measures of rule sets: pure functions of numbers, without an estimator in sight."""

from __future__ import annotations

from skescore.metrics.attribution import (
    attribution_agreement,
    attribution_complexity,
    faithfulness,
    jensen_shannon_divergence,
    plausibility,
    text_tokens,
    top_k_accuracy,
    zero_maps,
)
from skescore.metrics.characteristics import characteristics
from skescore.metrics.completeness import (
    Completeness,
    instance_completeness,
    volume_completeness,
)
from skescore.metrics.confusion import RuleCounts, confusion
from skescore.metrics.knowledge import (
    fire_score,
    ice_performance,
    ice_readability,
    ice_score,
    q_score,
)
from skescore.metrics.performance import (
    PERFORMANCE_METRICS,
    PerformanceMetric,
    performance_report,
    performance_table,
    performance_value,
)
from skescore.metrics.prediction import METRICS, prediction_loss, prediction_performance
from skescore.metrics.quality import MEASURES, rule_quality
from skescore.metrics.rule_report import rule_report
from skescore.metrics.selection import select_rules, significant_rules
from skescore.metrics.significance import (
    adjust_p_values,
    fisher_p_value,
    significant_fraction,
    variance_p_value,
)
from skescore.metrics.weighting import with_weights

__all__ = [
    "MEASURES",
    "METRICS",
    "PERFORMANCE_METRICS",
    "Completeness",
    "PerformanceMetric",
    "RuleCounts",
    "adjust_p_values",
    "attribution_agreement",
    "attribution_complexity",
    "characteristics",
    "confusion",
    "faithfulness",
    "fire_score",
    "fisher_p_value",
    "ice_performance",
    "ice_readability",
    "ice_score",
    "instance_completeness",
    "jensen_shannon_divergence",
    "performance_report",
    "performance_table",
    "performance_value",
    "plausibility",
    "prediction_loss",
    "prediction_performance",
    "q_score",
    "rule_quality",
    "rule_report",
    "select_rules",
    "significant_fraction",
    "significant_rules",
    "text_tokens",
    "top_k_accuracy",
    "variance_p_value",
    "volume_completeness",
    "with_weights",
    "zero_maps",
]
