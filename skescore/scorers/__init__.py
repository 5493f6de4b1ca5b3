"""Scores as scikit-learn scorers: of rule sets, of predictions, of attributions."""

from skescore._expressions import Expression, Variable
from skescore._quantities import (
    MeasuredQuantity,
    QuantityLimit,
    limited_quantities,
    measured_quantities,
)
from skescore._scores import (
    COMPLETENESSES,
    SCORE_SPECS,
    UNCOVERED,
    ScoreSpec,
    Weight,
    all_weights,
    find_score,
)
from skescore.scorers._attributions import (
    AttributionReport,
    AttributionScorer,
    make_attribution_scorer,
)
from skescore.scorers._evaluation import SIZES, RuleEvaluation, evaluate_rules
from skescore.scorers._predictions import (
    PERFORMANCE_SCORERS,
    FidelityScorer,
    PerformanceScorer,
    make_performance_scorer,
)
from skescore.scorers._quantities import minimized_quantities
from skescore.scorers._rules import (
    SCORERS,
    SET_SCORERS,
    RuleScorer,
    get_rule_scorer,
    ice,
    knowledge,
    make_fire_scorer,
    make_ice_scorer,
    make_knowledge_scorer,
    make_q_scorer,
    make_rule_scorer,
    make_score_scorer,
    make_set_scorer,
    neg_fire,
    neg_q,
    register_installed_scores,
    register_score,
)
from skescore.scorers._set_measures import SET_AXES, SET_MEASURES, SetMeasure
from skescore.scorers._survival import SurvivalScorer, make_survival_scorer

__all__ = [
    "COMPLETENESSES",
    "PERFORMANCE_SCORERS",
    "SCORERS",
    "SCORE_SPECS",
    "SET_AXES",
    "SET_MEASURES",
    "SET_SCORERS",
    "SIZES",
    "UNCOVERED",
    "AttributionReport",
    "AttributionScorer",
    "Expression",
    "FidelityScorer",
    "MeasuredQuantity",
    "PerformanceScorer",
    "QuantityLimit",
    "RuleEvaluation",
    "RuleScorer",
    "ScoreSpec",
    "SetMeasure",
    "SurvivalScorer",
    "Variable",
    "Weight",
    "all_weights",
    "evaluate_rules",
    "find_score",
    "get_rule_scorer",
    "ice",
    "knowledge",
    "limited_quantities",
    "make_attribution_scorer",
    "make_fire_scorer",
    "make_ice_scorer",
    "make_knowledge_scorer",
    "make_performance_scorer",
    "make_q_scorer",
    "make_rule_scorer",
    "make_score_scorer",
    "make_set_scorer",
    "make_survival_scorer",
    "measured_quantities",
    "minimized_quantities",
    "neg_fire",
    "neg_q",
    "register_installed_scores",
    "register_score",
]
