"""Monitors of deployed rules: baselines, anytime-valid tests of each rule, and calibrated rules."""

from __future__ import annotations

from skescore.monitoring._baseline import RuleBaseline, rate_interval, rules_fingerprint
from skescore.monitoring._e_process import RateMonitors
from skescore.monitoring._history import (
    ChangeEstimate,
    estimate_change,
    rate_confidence_sequence,
)
from skescore.monitoring._monitor import MONITOR_KINDS, MonitorKind, RuleChange, RuleMonitor

__all__ = [
    "MONITOR_KINDS",
    "ChangeEstimate",
    "MonitorKind",
    "RateMonitors",
    "RuleBaseline",
    "RuleChange",
    "RuleMonitor",
    "estimate_change",
    "rate_confidence_sequence",
    "rate_interval",
    "rules_fingerprint",
]
