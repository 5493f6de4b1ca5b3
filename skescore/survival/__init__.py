"""Survival rules as a scikit-learn estimator.

The rules with a survival curve each are :class:`skescore.rules.SurvivalRules`; their scores are in
:mod:`skescore.metrics`.
"""

from skescore.survival._estimator import SurvivalRulesEstimator

__all__ = ["SurvivalRulesEstimator"]
