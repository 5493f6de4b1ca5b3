"""Rules: the language that everything in this package shares.

A :class:`Rule` is a premise and a conclusion; a :class:`RuleSet` is an immutable list of rules that
answers rows, is read by people and travels as JSON. :func:`as_ruleset` makes one from other
libraries' models.
"""

from skescore.rules.conditions import AtLeast, Condition, Interval, Linear, OneOf
from skescore.rules.domain import Domain, Fallback
from skescore.rules.importers import as_ruleset, as_rulesets
from skescore.rules.rule import LinearOutput, Rule, RuleStatistics
from skescore.rules.ruleset import RuleSet
from skescore.rules.tables import BoxTable, Conclusions

__all__ = [
    "AtLeast",
    "BoxTable",
    "Conclusions",
    "Condition",
    "Domain",
    "Fallback",
    "Interval",
    "Linear",
    "LinearOutput",
    "OneOf",
    "Rule",
    "RuleSet",
    "RuleStatistics",
    "as_ruleset",
    "as_rulesets",
]
