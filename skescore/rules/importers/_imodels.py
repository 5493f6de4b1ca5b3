"""Rules from the models of imodels, whose answers they repeat."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from sklearn.utils.validation import check_is_fitted

from skescore._text import listed
from skescore.rules._domain import Domain
from skescore.rules._ruleset import RuleSet
from skescore.rules.importers import (
    _imodels_cells,
    _imodels_linear,
    _imodels_lists,
    _imodels_sums,
    _imodels_trees,
)
from skescore.rules.importers._imodels_parts import Frame, frame
from skescore.rules.importers._trees import tree_to_ruleset

_READERS: dict[str, Callable[[Any, Frame], RuleSet]] = {
    "BayesianRuleListClassifier": _imodels_lists.bayesian_list,
    "BayesianRuleSetClassifier": _imodels_lists.bayesian_set,
    "BoostedRulesClassifier": _imodels_sums.boosted_classifier,
    "BoostedRulesRegressor": _imodels_cells.boosted_regressor,
    "C45TreeClassifier": _imodels_trees.c45_tree,
    "DecisionTreeCCPClassifier": _imodels_trees.wrapped_tree,
    "DecisionTreeCCPRegressor": _imodels_trees.wrapped_tree,
    "FIGSClassifier": _imodels_sums.figs,
    "FIGSRegressor": _imodels_sums.figs,
    "FPLassoClassifier": _imodels_linear.rule_fit,
    "FPLassoRegressor": _imodels_linear.rule_fit,
    "FPSkopeClassifier": _imodels_linear.skope_rules,
    "FastFrugalTreeClassifier": _imodels_lists.fast_frugal_tree,
    "GreedyRuleListClassifier": _imodels_lists.greedy_list,
    "GreedyTreeClassifier": _imodels_trees.greedy_tree,
    "GreedyTreeRegressor": _imodels_trees.greedy_tree,
    "HSC45TreeClassifier": _imodels_trees.c45_tree,
    "HSC45TreeClassifierCV": _imodels_trees.c45_tree,
    "HSDecisionTreeCCPClassifierCV": _imodels_trees.wrapped_tree,
    "HSDecisionTreeCCPRegressorCV": _imodels_trees.wrapped_tree,
    "HSTreeClassifier": _imodels_trees.wrapped_tree,
    "HSTreeClassifierCV": _imodels_trees.wrapped_tree,
    "HSTreeRegressor": _imodels_trees.wrapped_tree,
    "HSTreeRegressorCV": _imodels_trees.wrapped_tree,
    "OneRClassifier": _imodels_lists.greedy_list,
    "RuleFitClassifier": _imodels_linear.rule_fit,
    "RuleFitRegressor": _imodels_linear.rule_fit,
    "SkopeRulesClassifier": _imodels_linear.skope_rules,
    "SlipperClassifier": _imodels_sums.slipper,
    "TaoTreeClassifier": _imodels_trees.tao_tree,
    "TaoTreeRegressor": _imodels_trees.tao_tree,
    "TreeGAMClassifier": _imodels_sums.tree_gam,
    "TreeGAMRegressor": _imodels_sums.tree_gam,
}
#: Models that hold another one, and how to get at it.
_HOLDERS: dict[str, Callable[[Any], Any]] = {
    "AutoInterpretableClassifier": lambda model: model.est_.best_estimator_[-1],
    "AutoInterpretableRegressor": lambda model: model.est_.best_estimator_[-1],
    "FIGSClassifierCV": lambda model: model.figs,
    "FIGSRegressorCV": lambda model: model.figs,
}
#: Names of the classes that :func:`read_imodels` reads.
SUPPORTED = tuple(sorted([*_READERS, *_HOLDERS]))


def read_imodels(
    model: Any, *, feature_names: Sequence[str] | None = None, domain: Domain | None = None
) -> RuleSet:
    """Turn a fitted model of imodels into a rule set that answers alike.

    Use it to score, compare, simplify or export what imodels has learned. Which package the model
    is of is told by its class, so imodels itself is not imported.

    Parameters
    ----------
    model : object
        A fitted model of one of the classes below, or of a subclass of your own.
    feature_names : sequence of str, optional
        Names for the rules. By default those the model was fitted with; imodels calls nameless
        columns ``X0``, ``X1``, ..., and a model that calls them nothing gets ``x0``, ``x1``, ...
    domain : Domain, optional
        Box of the training rows, which the models do not remember; completeness by volume needs it.

    Returns
    -------
    RuleSet
        How its rules answer depends on the model:

        - One rule answers: ``GreedyRuleListClassifier``, ``OneRClassifier``,
          ``FastFrugalTreeClassifier``, ``BayesianRuleListClassifier`` (ordered lists);
          ``BayesianRuleSetClassifier`` (rules for the second class, a fallback for the first);
          ``GreedyTree...``, ``HSTree...``, ``HSTree...CV``, ``DecisionTreeCCP...``,
          ``HSDecisionTreeCCP...CV``, ``TaoTree...``, ``C45TreeClassifier``,
          ``HSC45TreeClassifier`` (leaves, disjoint); ``BoostedRulesRegressor`` (a weighted median,
          cut into disjoint boxes).
        - ``voting="sum"``: ``FIGSRegressor``, ``RuleFitRegressor``, ``FPLassoRegressor``,
          ``TreeGAMRegressor``.
        - ``voting="logistic"``: ``FIGSClassifier``, ``RuleFitClassifier``, ``FPLassoClassifier``,
          ``BoostedRulesClassifier``, ``SlipperClassifier``.
        - ``voting="votes"``: ``SkopeRulesClassifier``, ``FPSkopeClassifier``,
          ``TreeGAMClassifier``.
        - As the model they chose: ``FIGS...CV``, ``AutoInterpretable...``; as scikit-learn's
          forests and boosted trees: ``HSTree...`` around one.

    Raises
    ------
    TypeError
        If the model is of another class, or made of parts that are no trees.
    ValueError
        If its answers cannot be said in rules: several outputs, categorical features that FIGS
        encodes by itself, a weighted median of too many boxes, an additive model that mixes in
        gradient boosting.
    sklearn.exceptions.NotFittedError
        If it is not fitted.

    Warns
    -----
    UserWarning
        For ``BoostedRulesClassifier`` and ``SlipperClassifier`` fitted on labels other than
        0, 1, ...: imodels 3.0.4 compares codes with labels there and predicts wrongly. The rules
        answer what the model's parts have learned.

    Notes
    -----
    - Tested with imodels 3.0.4 on float64 rows. Its rules as texts compare float32 columns in
      float32, where a row on a threshold may fall to the other side.
    - `predict_proba` is the model's too, but for ``SkopeRulesClassifier``, ``FPSkopeClassifier``
      and ``TreeGAMClassifier``: with p the share that the model gives the second class, the rule
      set gives p / (p + 1/2), which ranks rows alike and is above 1/2 where p is.
      ``BayesianRuleSetClassifier`` has no shares at all; its rules are sure.
    - ``BayesianRuleSetClassifier`` answers 0 and 1 whatever the labels were; its rules answer the
      labels. It is meant for columns of 0 and 1, and only there are the rules the model.
    - A rule or leaf that no row can satisfy is left out, as are rules of weight 0.
    - Linear terms of RuleFit are clipped at quantiles of the training rows: each becomes up to
      three rules, below, between and above. With classes, their weights depend on the row.
    - Leaves of FIGS and of boosted rules add a number for every class; only what they add beyond
      the least of these is written, unless that would change the answer where sums tie.
    - Class counts are shares times rows where trees were shrunken, and contain the prior counts in
      a Bayesian rule list; those of a TAO tree are from before its cuts moved.
    - Not read: ``FastRiskScoreClassifier``, ``SLIM...``, ``GPGamRegressor``,
      ``MarginalShrinkageLinearRegressor`` (linear or smooth models, no rules), ``BART`` (an average
      over sampled models), ``IRF...`` (forests of their own kind), ``FastSmallTreeClassifier``
      (needs numba, not tested), ``DistilledRegressor`` (read its ``student``).

    Examples
    --------
    Any model of imodels, fitted as usual::

        model = imodels.FIGSClassifier(max_rules=5).fit(X, y)
        rules = read_imodels(model)
        (rules.predict(X) == model.predict(X)).all()
    """
    name = imodels_class(model)
    if name in _HOLDERS:
        check_is_fitted(model)
        return _held(_HOLDERS[name](model), feature_names, domain)
    if name not in _READERS:
        raise TypeError(
            f"{type(model).__name__} is no model of imodels whose rules skescore can read. "
            f"It reads {listed(SUPPORTED, limit=len(SUPPORTED))}."
        )
    return _READERS[name](model, frame(model, feature_names, domain))


def imodels_class(model: Any) -> str | None:
    """Name the class of imodels that a model is of; None if it is of none."""
    for base in type(model).__mro__:
        if base.__module__.partition(".")[0] == "imodels":
            return base.__name__
    return None


def _held(inner: Any, feature_names: Sequence[str] | None, domain: Domain | None) -> RuleSet:
    """Read the model that another one holds, which need not be of imodels."""
    if imodels_class(inner) is None and isinstance(
        inner, DecisionTreeClassifier | DecisionTreeRegressor
    ):
        return tree_to_ruleset(inner, feature_names=feature_names, domain=domain)
    return read_imodels(inner, feature_names=feature_names, domain=domain)
