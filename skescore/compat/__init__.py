"""Interfaces of other libraries, for migration to skescore.

:class:`SkopeRules` has the interface of skope-rules 1.0.1 and supports current versions of
scikit-learn. The guides "From skope-rules", "From RuleFit", "From wittgenstein" and "From TE2Rules"
list replacements. :func:`save_mlflow_model` saves rules as an MLflow model, and
:func:`autolog_mlflow` logs searches.
"""

from skescore.compat._mlflow import (
    autolog_mlflow,
    load_mlflow_rules,
    log_mlflow_search,
    save_mlflow_model,
)
from skescore.compat._rule_text import Rule, replace_feature_name
from skescore.compat._skope_rules import SkopeRules

__all__ = [
    "Rule",
    "SkopeRules",
    "autolog_mlflow",
    "load_mlflow_rules",
    "log_mlflow_search",
    "replace_feature_name",
    "save_mlflow_model",
]
