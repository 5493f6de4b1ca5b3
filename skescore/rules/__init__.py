"""Rules, the common data structure of all parts of skescore.

A :class:`Rule` is a premise and a conclusion. A :class:`RuleSet` is an immutable list of rules that
predicts rows and can be displayed and saved as JSON. :func:`as_ruleset` converts models of other
libraries.
"""

from skescore.rules._boxes import BoxTable
from skescore.rules._conditions import (
    AtLeast,
    Condition,
    Interval,
    Linear,
    Missing,
    OneOf,
    TruthTable,
    truth_table,
)
from skescore.rules._domain import Domain, Fallback
from skescore.rules._explanation import Explanation
from skescore.rules._row_table import RowTable, convert_rows
from skescore.rules._rule import Conclusions, LinearOutput, Rule, RuleStatistics
from skescore.rules._ruleset import RuleSet
from skescore.rules._statistics import with_row_weights, with_statistics, with_target
from skescore.rules._survival import (
    SurvivalCurve,
    SurvivalRules,
    read_outcomes,
)
from skescore.rules.importers._as_ruleset import as_ruleset, as_rulesets

__all__ = [
    "AtLeast",
    "BoxTable",
    "Conclusions",
    "Condition",
    "Domain",
    "Explanation",
    "Fallback",
    "Interval",
    "Linear",
    "LinearOutput",
    "Missing",
    "OneOf",
    "RowTable",
    "Rule",
    "RuleSet",
    "RuleStatistics",
    "SurvivalCurve",
    "SurvivalRules",
    "TruthTable",
    "as_ruleset",
    "as_rulesets",
    "convert_rows",
    "read_outcomes",
    "truth_table",
    "with_row_weights",
    "with_statistics",
    "with_target",
]
