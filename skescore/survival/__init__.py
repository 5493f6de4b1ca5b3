"""Survival rules as a scikit-learn estimator.

:class:`skescore.rules.SurvivalRules` contains the rules and the survival curve of each;
:func:`skescore.metrics.survival_scores` scores them.
"""

from skescore.survival._estimator import SurvivalRulesEstimator

__all__ = ["SurvivalRulesEstimator"]
