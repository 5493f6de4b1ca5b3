"""imodels' rule lists and its Bayesian rule set: one rule answers."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.stats import beta
from sklearn.utils.validation import check_is_fitted

from skescore.rules._conditions import Interval
from skescore.rules._domain import Fallback
from skescore.rules._rule import Rule, RuleStatistics
from skescore.rules._ruleset import RuleSet
from skescore.rules.importers._imodels_parts import Frame, conjunction, labels

#: Chance that the interval a Bayesian rule list stores holds the true share.
_CREDIBLE = 0.95


def greedy_list(model: Any, about: Frame) -> RuleSet:
    """Read a greedy rule list or OneR: ``x >= cutoff``, or ``x < cutoff`` where it is flipped."""
    return _list(model, about, closed_below=True, counted=True)


def fast_frugal_tree(model: Any, about: Frame) -> RuleSet:
    """Read a fast-and-frugal tree: ``x > cutoff``, or ``x <= cutoff`` where it is flipped."""
    return _list(model, about, closed_below=False, counted=False)


def _list(model: Any, about: Frame, *, closed_below: bool, counted: bool) -> RuleSet:
    check_is_fitted(model, "rules_")
    classes = labels(model)
    rules = []
    *exits, last = model.rules_
    for step in exits:
        feature, cut = int(step["index_col"]), float(step["cutoff"])
        if step["flip"]:
            condition = Interval(feature, upper=cut, upper_closed=not closed_below)
        else:
            condition = Interval(feature, lower=cut, lower_closed=closed_below)
        seen = (step["val_right"], step["num_pts_right"])
        rules.append(_exit((condition,), *seen, classes, counted))
    # The last entry answers whatever is left, even where it looks like a step.
    rules.append(_exit((), last["val"], last["num_pts"], classes, counted))
    return about.ruleset(rules, classes)


def _exit(
    conditions: tuple[Interval, ...], share: Any, n_rows: Any, classes: list[Any], counted: bool
) -> Rule:
    """Answer with the likelier class; the first of equal ones, and of none (a share of no rows)."""
    share, n_rows = float(share), int(n_rows)
    output = classes[int(np.argmax([1 - share, share]))]
    if not counted or np.isnan(share):
        return Rule(conditions, output, RuleStatistics(n_rows))
    # A share of whole rows: the product is a whole number but for rounding.
    second = round(share * n_rows)
    return Rule(conditions, output, RuleStatistics(n_rows, (n_rows - second, second)))


def bayesian_list(model: Any, about: Frame) -> RuleSet:
    """Read a Bayesian rule list: all features of an itemset are 1."""
    check_is_fitted(model, "rules_")
    classes, place = labels(model), {name: i for i, name in enumerate(model.feature_placeholders)}
    rules = []
    for position, itemset in enumerate(model.d_star):
        names = () if itemset == 0 else model.itemsets[itemset]
        conditions = tuple(_equals(place[name], 1.0) for name in names)
        share = float(model.theta[position])
        seen = _counts(share, model.ci_theta[position], np.asarray(model.alpha, dtype=float))
        rules.append(Rule(conditions, classes[int(share >= 0.5)], seen))
        if itemset == 0:  # the default rule; nothing reaches what is listed after it
            break
    return about.ruleset(rules, classes)


def _counts(share: float, interval: Any, prior: np.ndarray) -> RuleStatistics | None:
    """Work out the rows behind a share from the width of its credible interval.

    The model keeps the mean and an interval of each rule's Beta distribution, but not the counts
    that they come from. The width falls as the counts grow, so it tells their sum.
    """
    width = float(interval[1]) - float(interval[0])

    def excess(total: float) -> float:
        low, high = beta.interval(_CREDIBLE, share * total, (1 - share) * total)
        return float(high - low) - width

    least, most = float(prior.sum()), 1e12
    if not excess(most) <= 0 <= excess(least):
        return None
    n_rows = round(brentq(excess, least, most) - least)
    total = n_rows + least
    return RuleStatistics(n_rows, ((1 - share) * total, share * total))


def bayesian_set(model: Any, about: Frame) -> RuleSet:
    """Read a Bayesian rule set: the second class where any rule holds, else the first."""
    check_is_fitted(model, "rules_")
    classes = labels(model)
    place: dict[str, tuple[int, float]] = {}
    for i, name in enumerate(model.attr_names_orig):
        place[str(name)] = (i, 1.0)
        place[f"{str(name).strip()}_neg"] = (i, 0.0)
    rules = []
    for names in model.rules_:
        conditions = conjunction(_equals(*place[str(name)]) for name in names)
        if conditions is not None:
            rules.append(Rule(conditions, classes[1]))
    return about.ruleset(rules, classes, fallback=Fallback(classes[0]))


def _equals(feature: int, value: float) -> Interval:
    return Interval(feature, value, value, lower_closed=True, upper_closed=True)
