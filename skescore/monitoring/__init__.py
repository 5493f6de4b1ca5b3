"""Monitors of deployed rules: baselines, anytime-valid tests of each rule, and calibrated rules."""

from __future__ import annotations

from skescore.monitoring._baseline import RuleBaseline, rate_interval, rules_fingerprint
from skescore.monitoring._conformal import CalibratedRules, conformal_rank
from skescore.monitoring._e_process import RateMonitors
from skescore.monitoring._exports import log_to_mlflow, prometheus_text
from skescore.monitoring._history import (
    ChangeEstimate,
    estimate_change,
    rate_confidence_sequence,
)
from skescore.monitoring._monitor import MONITOR_KINDS, MonitorKind, RuleChange, RuleMonitor
from skescore.monitoring._page import monitor_page
from skescore.monitoring._pending import PendingLabels, PendingRows
from skescore.monitoring._revision import MAX_COST, Revision, find_changes, revise_rules
from skescore.monitoring._state import WatchState, locked

__all__ = [
    "MAX_COST",
    "MONITOR_KINDS",
    "CalibratedRules",
    "ChangeEstimate",
    "MonitorKind",
    "PendingLabels",
    "PendingRows",
    "RateMonitors",
    "Revision",
    "RuleBaseline",
    "RuleChange",
    "RuleMonitor",
    "WatchState",
    "conformal_rank",
    "estimate_change",
    "find_changes",
    "locked",
    "log_to_mlflow",
    "monitor_page",
    "prometheus_text",
    "rate_confidence_sequence",
    "rate_interval",
    "revise_rules",
    "rules_fingerprint",
]
