"""Measures of rule sets: pure functions of numbers, without an estimator in sight."""

from __future__ import annotations

from skescore.metrics.completeness import (
    Completeness,
    instance_completeness,
    volume_completeness,
)
from skescore.metrics.knowledge import (
    fire_score,
    ice_performance,
    ice_readability,
    ice_score,
    q_score,
)
from skescore.metrics.prediction import METRICS, prediction_loss, prediction_performance

__all__ = [
    "METRICS",
    "Completeness",
    "fire_score",
    "ice_performance",
    "ice_readability",
    "ice_score",
    "instance_completeness",
    "prediction_loss",
    "prediction_performance",
    "q_score",
    "volume_completeness",
]
