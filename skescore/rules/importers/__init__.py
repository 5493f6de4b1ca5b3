"""Conversion of models and rules of other libraries to rule sets, one module per library.

:data:`MODEL_READERS` lists the models that :func:`skescore.rules.as_ruleset` recognizes.
"""

from skescore._rule_readers import MODEL_READERS, ModelReader
from skescore.rules.importers._as_ruleset import as_ruleset, as_rulesets, options_from_rows
from skescore.rules.importers._catboost import read_catboost
from skescore.rules.importers._decision_rules import read_decision_rules
from skescore.rules.importers._ebm import read_ebm
from skescore.rules.importers._hist_gradient_boosting import read_hist_gradient_boosting
from skescore.rules.importers._imodels import read_imodels
from skescore.rules.importers._lightgbm import read_lightgbm
from skescore.rules.importers._psyke import read_psyke
from skescore.rules.importers._rule_texts import read_rule_texts
from skescore.rules.importers._rulekit import read_rulekit, read_rulekit_text
from skescore.rules.importers._scaling import AffineMap, affine_map, in_user_units
from skescore.rules.importers._sklearn import read_boosted, read_forest, tree_to_ruleset
from skescore.rules.importers._skope_rules import read_skope_rules
from skescore.rules.importers._tables import is_table_of_conditions, read_table
from skescore.rules.importers._wittgenstein import read_wittgenstein
from skescore.rules.importers._xgboost import read_xgboost

__all__ = [
    "MODEL_READERS",
    "AffineMap",
    "ModelReader",
    "affine_map",
    "as_ruleset",
    "as_rulesets",
    "in_user_units",
    "is_table_of_conditions",
    "options_from_rows",
    "read_boosted",
    "read_catboost",
    "read_decision_rules",
    "read_ebm",
    "read_forest",
    "read_hist_gradient_boosting",
    "read_imodels",
    "read_lightgbm",
    "read_psyke",
    "read_rule_texts",
    "read_rulekit",
    "read_rulekit_text",
    "read_skope_rules",
    "read_table",
    "read_wittgenstein",
    "read_xgboost",
    "tree_to_ruleset",
]
