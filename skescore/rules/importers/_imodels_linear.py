"""imodels' weighted rules: RuleFit and its kin (linear models of rules), and SkopeRules."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np
from sklearn.utils.validation import check_is_fitted

from skescore.rules._conditions import Interval
from skescore.rules._rule import LinearOutput, Rule
from skescore.rules._ruleset import RuleSet
from skescore.rules.importers._imodels_parts import Frame, conjunction, labels

#: Where something holds, and what it adds there.
_Term: TypeAlias = tuple[tuple[Interval, ...], float | LinearOutput]


def rule_fit(model: Any, about: Frame) -> RuleSet:
    """Read a linear model of rules and of clipped features."""
    check_is_fitted(model, "rules_")
    classes = labels(model) if hasattr(model, "classes_") else None
    # The model answers the softmax of (1 - sum, sum): its log odds are twice the sum, less one.
    factor, shift = (1.0, 0.0) if classes is None else (2.0, -1.0)
    terms: list[_Term] = []
    for rule in model.rules_without_feature_names_:
        conditions = _conditions(rule, model.feature_placeholders)
        if conditions is not None:
            terms.append((conditions, factor * float(rule.args[0])))
    terms += _linear_terms(model, factor)
    terms.append(((), factor * float(np.ravel(model.intercept)[0]) + shift))
    terms = [term for term in terms if term[1] != 0]
    if classes is None:
        return about.voting([Rule(*term) for term in terms], None, "sum")
    return about.voting([_vote(*term, classes) for term in terms], classes, "logistic")


def _vote(
    conditions: tuple[Interval, ...], value: float | LinearOutput, classes: Sequence[Any]
) -> Rule:
    """What speaks against the second class speaks for the first."""
    if isinstance(value, LinearOutput):
        return Rule(conditions, classes[1], None, value)
    return Rule(conditions, classes[int(value > 0)], None, abs(value))


def _linear_terms(model: Any, factor: float) -> Iterator[_Term]:
    """What the features add, in pieces: below and above the limits they were clipped at."""
    if not model.include_linear:
        return
    scales, limits = np.ones(model.n_features_), None
    if model.lin_standardise:
        scales = model.friedscale.scale_multipliers
        limits = model.friedscale.winsorizer.winsor_lims
    for j, coefficient in enumerate(model.coef[: model.n_features_]):
        slope = factor * float(coefficient) * float(scales[j])
        if slope == 0:
            continue
        low, high = (-np.inf, np.inf) if limits is None else map(float, limits[:, j])
        # The model asks for the upper limit first, so that one wins where they cross.
        if high < np.inf:
            yield (Interval(j, lower=high),), slope * high
        if low > -np.inf:
            yield (Interval(j, upper=min(low, high), upper_closed=low > high),), slope * low
        if low <= high:
            inside = Interval(j, low, high, lower_closed=True, upper_closed=True)
            yield (inside,), LinearOutput(0.0, ((j, slope),))


def skope_rules(model: Any, about: Frame) -> RuleSet:
    """Read rules that vote with their precisions for the second class, which needs over half."""
    check_is_fitted(model, "rules_without_feature_names_")
    classes = labels(model)
    precisions = [float(rule.args[0]) for rule in model.rules_without_feature_names_]
    # NumPy's own sum, as in the model, so that halves are the same halves.
    half = float(np.sum(precisions)) / 2
    rules = [Rule((), classes[0], None, half if half > 0 else 1.0)]
    for rule, precision in zip(model.rules_without_feature_names_, precisions, strict=True):
        conditions = _conditions(rule, model.feature_placeholders)
        if conditions is not None and precision != 0:
            rules.append(Rule(conditions, classes[1], None, precision))
    return about.voting(rules, classes, "votes")


def _conditions(rule: Any, placeholders: Sequence[str]) -> tuple[Interval, ...] | None:
    """Read a rule's terms, by the names that the model gives columns inside."""
    place = {str(name): j for j, name in enumerate(placeholders)}
    conditions = []
    for (name, operator), text in rule.agg_dict.items():
        if operator == "==" and text == name:  # always true: how a rule for all rows is written
            continue
        value = float(text)
        if operator[0] == ">":
            condition = Interval(place[name], lower=value, lower_closed=operator == ">=")
        elif operator[0] == "<":
            condition = Interval(place[name], upper=value, upper_closed=operator == "<=")
        else:
            condition = Interval(place[name], value, value, lower_closed=True, upper_closed=True)
        conditions.append(condition)
    return conjunction(conditions)
