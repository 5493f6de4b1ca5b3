"""Measures of rule sets and predictions as pure functions, independent of estimators."""

from __future__ import annotations

from skescore.metrics._calibration import RuleCalibration, rule_calibration
from skescore.metrics._catalog import (
    PERFORMANCE_METRICS,
    PerformanceMetric,
    performance_report,
    performance_table,
    performance_value,
)
from skescore.metrics._completeness import (
    Completeness,
    instance_completeness,
    volume_completeness,
)
from skescore.metrics._confusion import RuleConfusion, confusion
from skescore.metrics._decisions import (
    DecisionCounts,
    RowDecisions,
    check_label_types,
    compare_labels,
    count_decisions,
    decide_rows,
    domain_limits,
    has_default,
    labels_of_rules,
    predict_all_rows,
)
from skescore.metrics._fidelity import (
    OFF_DATA,
    FeatureAgreement,
    GroupFidelity,
    feature_agreement,
    fidelity,
    group_fidelity,
    rows_off_data,
)
from skescore.metrics._groups import (
    group_gap,
    group_masks,
    group_rates,
    group_shares,
    group_values,
)
from skescore.metrics._knowledge import (
    fire_score,
    ice_performance,
    ice_readability,
    ice_score,
    q_score,
    score_slopes,
)
from skescore.metrics._overlap import (
    Redundancy,
    RuleOverlap,
    redundancy,
    rule_overlap,
    volume_overlap,
)
from skescore.metrics._prediction import (
    PREDICTION_METRICS,
    PredictionMetric,
    prediction_loss,
    prediction_performance,
)
from skescore.metrics._rule_counts import RuleCounts, count_rows
from skescore.metrics._rule_quality import RULE_MEASURES, RuleMeasure, rule_quality
from skescore.metrics._rule_reports import characteristics, rule_report
from skescore.metrics._significance import (
    CORRECTIONS,
    adjust_p_values,
    fisher_p_value,
    significant_fraction,
    variance_p_value,
)
from skescore.metrics._stability import (
    Stability,
    prediction_agreement,
    rule_similarity,
    stability,
)
from skescore.metrics._survival import (
    LogRank,
    integrated_brier_score,
    log_rank,
    survival_report,
    survival_rules_log_rank,
    survival_scores,
)
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

__all__ = [
    "CORRECTIONS",
    "OFF_DATA",
    "PERFORMANCE_METRICS",
    "PREDICTION_METRICS",
    "RULE_MEASURES",
    "Completeness",
    "DecisionCounts",
    "FeatureAgreement",
    "GroupFidelity",
    "LogRank",
    "PerformanceMetric",
    "PredictionMetric",
    "Redundancy",
    "RowDecisions",
    "RuleCalibration",
    "RuleConfusion",
    "RuleCounts",
    "RuleMeasure",
    "RuleOverlap",
    "Stability",
    "adjust_p_values",
    "attribution_agreement",
    "attribution_complexity",
    "characteristics",
    "check_label_types",
    "compare_labels",
    "confusion",
    "count_decisions",
    "count_rows",
    "decide_rows",
    "domain_limits",
    "faithfulness",
    "feature_agreement",
    "fidelity",
    "fire_score",
    "fisher_p_value",
    "group_fidelity",
    "group_gap",
    "group_masks",
    "group_rates",
    "group_shares",
    "group_values",
    "has_default",
    "ice_performance",
    "ice_readability",
    "ice_score",
    "instance_completeness",
    "integrated_brier_score",
    "jensen_shannon_divergence",
    "labels_of_rules",
    "log_rank",
    "performance_report",
    "performance_table",
    "performance_value",
    "plausibility",
    "predict_all_rows",
    "prediction_agreement",
    "prediction_loss",
    "prediction_performance",
    "q_score",
    "redundancy",
    "rows_off_data",
    "rule_calibration",
    "rule_overlap",
    "rule_quality",
    "rule_report",
    "rule_similarity",
    "score_slopes",
    "significant_fraction",
    "stability",
    "survival_report",
    "survival_rules_log_rank",
    "survival_scores",
    "text_tokens",
    "top_k_accuracy",
    "variance_p_value",
    "volume_completeness",
    "volume_overlap",
    "zero_maps",
]
