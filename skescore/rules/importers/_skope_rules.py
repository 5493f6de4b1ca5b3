"""Conversion of models of `skescore.compat.SkopeRules` and of the package skope-rules."""

from __future__ import annotations

import re
from typing import Any

from sklearn.utils.validation import check_is_fitted

from skescore.rules._conditions import Interval
from skescore.rules._domain import Fallback
from skescore.rules._rule import Rule
from skescore.rules._ruleset import RuleSet

#: Comparison with a column, which has its internal name in skope-rules.
_TERM = re.compile(r"__C__(\d+) (<=|>) (\S+)")


def read_skope_rules(model: Any) -> RuleSet:
    """Convert a fitted SkopeRules model to a rule set with the same predictions.

    Parameters
    ----------
    model : SkopeRules
        A fitted model of :mod:`skescore.compat` or of the package skope-rules.

    Returns
    -------
    RuleSet
        Rules for class 1, in the order of ``rules_``; the fallback is class 0.

    Raises
    ------
    sklearn.exceptions.NotFittedError
        If the model is not fitted.
    """
    check_is_fitted(model, "rules_without_feature_names_")
    names = getattr(model, "feature_names", None)
    if names is None:
        n_features = len(model.feature_dict_)
        names = [model.feature_dict_[f"__C__{j}"] for j in range(n_features)]
    rules = []
    for text, _ in model.rules_without_feature_names_:
        conditions = []
        for column, operator, value in _TERM.findall(text):
            side = {"upper": float(value)} if operator == "<=" else {"lower": float(value)}
            conditions.append(Interval(int(column), **side))  # type: ignore[arg-type]
        rules.append(Rule(tuple(conditions), 1))
    return RuleSet(
        rules,
        [str(name) for name in names],
        task="classification",
        classes=[0, 1],
        ordered=False,
        fallback=Fallback(0),
    )
