"""Monitors of deployed rules: baselines, anytime-valid tests of each rule, and calibrated rules."""

from __future__ import annotations

from skescore.monitoring._baseline import RuleBaseline, rate_interval, rules_fingerprint
from skescore.monitoring._e_process import RateMonitors

__all__ = ["RateMonitors", "RuleBaseline", "rate_interval", "rules_fingerprint"]
