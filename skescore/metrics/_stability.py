"""Stability of rules across samples: similarity of rule sets and of predictions."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from skescore._validation import check_integer
from skescore.metrics._fidelity import known_predictions
from skescore.metrics._overlap import rules_and_rows
from skescore.metrics._prediction import common_codes
from skescore.metrics._rule_counts import Floats
from skescore.rules import AtLeast, Condition, Interval, Linear, RowTable, RuleSet, as_ruleset

__all__ = ["Stability", "prediction_agreement", "rule_similarity", "stability"]


def rule_similarity(one: Any, other: Any, X: Any = None, *, n_bins: int = 10) -> float:
    r"""Measure the share of rules that two rule sets have in common, up to small shifts of bounds.

    Use it for rules learned from two samples of the same data: rules from which people draw
    conclusions should not depend on the sample.

    Parameters
    ----------
    one, other : RuleSet, or what :func:`skescore.rules.as_ruleset` reads
        Rules to compare.
    X : array-like or DataFrame of shape (n_rows, n_features), optional
        Rows whose quantiles decide which bounds are equivalent; by default, only equal bounds are.
    n_bins : int, default=10
        Number of quantile bins of each column.

    Returns
    -------
    float
        From 0 (no rule in common) to 1; greater is better.

    Raises
    ------
    ValueError
        If the rule sets are for different tasks, or the rows do not fit.

    Notes
    -----
    The value is the Dice-Sorensen index :math:`2 |R \cap R'| / (|R| + |R'|)`, where a rule that
    occurs twice counts twice, and 1 for two empty sets. Two rules are equal if they have the same
    class and equivalent conditions; bounds are equivalent if they lie between the same quantiles of
    their column. Outputs of regression rules, which are almost never equal, and the order of rules
    are ignored. Linear conditions must be exactly equal.

    References
    ----------
    V. Margot, G. Luta: A new method to compare the interpretability of rule-based algorithms.
    AI 2(4), 2021, arXiv:2004.01570. Stability.

    Examples
    --------
    >>> from skescore.metrics import rule_similarity
    >>> from skescore.rules import Interval, Rule, RuleSet
    >>> def at(bound):
    ...     return RuleSet(
    ...         [Rule([Interval(0, upper=bound)], "low"), Rule([], "high")],
    ...         ["length"], task="classification",
    ...     )
    >>> rows = [[x / 100] for x in range(100)]
    >>> rule_similarity(at(0.42), at(0.44), rows), rule_similarity(at(0.42), at(0.44))
    (1.0, 0.5)
    """
    check_integer("n_bins", n_bins, 1)
    rules = _of_one_task(one, other)
    return _dice(*[_counter(ruleset, _edges(ruleset, X, n_bins)) for ruleset in rules])


def _of_one_task(*rules: Any) -> list[RuleSet]:
    rulesets = [as_ruleset(rule_source) for rule_source in rules]
    tasks = sorted({ruleset.task for ruleset in rulesets})
    if len(tasks) > 1:
        raise ValueError(
            f"Rule sets must be for one task to be compared, got {' and '.join(tasks)}."
        )
    return rulesets


def _edges(ruleset: RuleSet, X: Any, n_bins: int) -> dict[str, Floats] | None:
    """Compute inner quantiles of the columns in intervals, by name; None without rows."""
    if X is None:
        return None
    table = RowTable.of(X, ruleset.feature_names)
    if not len(table):
        raise ValueError("X must hold at least one row to compute quantiles, got 0 rows.")
    edges = {}
    for feature in sorted(
        {
            i.feature
            for rule in ruleset.rules
            for c in rule.conditions
            for i in _flatten(c)
            if isinstance(i, Interval)
        }
    ):
        numbers = table.numbers(feature, slice(None))
        numbers = numbers[np.isfinite(numbers)]
        levels = np.arange(1, n_bins) / n_bins
        edges[ruleset.feature_names[feature]] = (
            np.quantile(numbers, levels) if len(numbers) else np.empty(0)
        )
    return edges


def _flatten(condition: Condition) -> tuple[Condition, ...]:
    if isinstance(condition, AtLeast):
        return tuple(one for part in condition.conditions for one in _flatten(part))
    return (condition,)


def _counter(ruleset: RuleSet, edges: dict[str, Floats] | None) -> Counter[Hashable]:
    """Count the rules by a key that is equal for equivalent rules."""
    names = ruleset.feature_names

    def bound(name: str, value: float, is_closed: bool) -> Hashable:
        if math.isinf(value) or edges is None:
            return value, is_closed
        return int(np.searchsorted(edges[name], value))

    def key(condition: Condition) -> Hashable:
        if isinstance(condition, Interval):
            name = names[condition.feature]
            ends = (
                bound(name, condition.lower, condition.lower_closed),
                bound(name, condition.upper, condition.upper_closed),
            )
            return "interval", name, *ends, condition.missing
        if isinstance(condition, AtLeast):
            return "at least", condition.m, frozenset(map(key, condition.conditions))
        if isinstance(condition, Linear):
            terms = frozenset((names[feature], c) for feature, c in condition.terms)
            return "linear", terms, replace(condition, terms=((0, 1.0),))
        return names[condition.feature], replace(condition, feature=0)

    return Counter(
        (
            frozenset(key(condition) for condition in rule.conditions),
            None if ruleset.classes is None else rule.output,
        )
        for rule in ruleset.rules
    )


def _dice(one: Counter[Hashable], other: Counter[Hashable]) -> float:
    n_rules = one.total() + other.total()
    return 2 * (one & other).total() / n_rules if n_rules else 1.0


def prediction_agreement(
    one: Any, other: Any, X: Any, sample_weight: ArrayLike | None = None
) -> float:
    r"""Measure how well the predictions of two rule sets agree.

    Parameters
    ----------
    one, other : RuleSet, or what :func:`skescore.rules.as_ruleset` reads
        Rules to compare.
    X : array-like or DataFrame of shape (n_rows, n_features)
        The rows, at least one.
    sample_weight : array-like of shape (n_rows,), optional
        Weight of each row, zero or positive.

    Returns
    -------
    float
        Greater is better: from 0 to 1 for classes, from -1 to 1 for numbers. NaN in regression if
        there is no row that both predict.

    Raises
    ------
    ValueError
        If the rule sets are for different tasks, or rows or weights do not fit.

    Notes
    -----
    In classification, the value is the share of rows with equal predictions; two rule sets without
    fallback also agree on rows that neither covers. In regression, it is Lin's concordance
    :math:`2 s_{ab} / (s_a^2 + s_b^2 + (\bar a - \bar b)^2)` of the rows that both predict, which is
    symmetric, and 1 only for equal predictions.

    References
    ----------
    L. I. Lin: A concordance correlation coefficient to evaluate reproducibility. Biometrics 45,
    1989, doi:10.2307/2532051.

    Examples
    --------
    >>> from skescore.rules import Interval, Rule, RuleSet
    >>> rules = RuleSet([Rule([], "a")], ["x"], task="classification", classes=["a", "b"])
    >>> other = rules.replace(rules=[Rule([Interval(0, upper=1)], "a"), Rule([], "b")])
    >>> prediction_agreement(rules, other, [[0.0], [1.0], [2.0], [3.0]])
    0.5
    """
    first, second = _of_one_task(one, other)
    weights = rules_and_rows("prediction_agreement", first, X, sample_weight)[2]
    (a, a_known), (b, b_known) = (known_predictions(ruleset, X) for ruleset in (first, second))
    if first.task == "classification":
        a_codes, b_codes = common_codes(a, b)  # does not round integers
        same = np.where(a_known & b_known, a_codes == b_codes, a_known == b_known)
        return float(np.average(same, weights=weights))
    is_counted = a_known & b_known & (weights > 0)
    if not is_counted.any():
        return math.nan
    a, b, weights = (
        a[is_counted].astype(np.float64),
        b[is_counted].astype(np.float64),
        weights[is_counted],
    )
    means = np.average([a, b], axis=1, weights=weights)
    distance = np.average((a - b) ** 2, weights=weights)
    if not distance:
        return 1.0
    # The denominator is the expected distance of independent predictions.
    p, q = a - means[0], b - means[1]
    expected_distance = np.average(p**2 + q**2, weights=weights) + (means[0] - means[1]) ** 2
    return float(np.clip(1 - distance / expected_distance, -1.0, 1.0))


@dataclass(frozen=True, eq=False)
class Stability:
    """Similarity of several rule sets, returned by :func:`stability`.

    Attributes
    ----------
    rules : float
        Mean similarity of pairs of rule sets, see :func:`rule_similarity`.
    predictions : float
        Mean agreement of the predictions of pairs, see :func:`prediction_agreement`.
    similarities : ndarray of shape (n_rule_sets, n_rule_sets)
        Similarity of each pair.

    Examples
    --------
    >>> from skescore.rules import Rule, RuleSet
    >>> rules = RuleSet([Rule([], "a")], ["x"], task="classification", classes=["a", "b"])
    >>> result = stability([rules, rules], [[0.0]])
    >>> result.rules, result.predictions
    (1.0, 1.0)
    """

    rules: float
    predictions: float
    similarities: Floats


def stability(
    rulesets: Sequence[Any],
    X: Any,
    *,
    n_bins: int = 10,
    sample_weight: ArrayLike | None = None,
) -> Stability:
    """Measure how similar the rules from several samples of the same data are.

    Use it with the rules of cross-validation folds, bootstrap samples or seeds. FiRe and ICE score
    each rule set by itself, so two sets with nothing in common may have the same score.

    Parameters
    ----------
    rulesets : sequence of RuleSet, or of what :func:`skescore.rules.as_ruleset` reads
        At least two rule sets.
    X : array-like or DataFrame of shape (n_rows, n_features)
        Rows to predict, whose quantiles determine which bounds are equivalent.
    n_bins : int, default=10
        Number of quantile bins of each column, see :func:`rule_similarity`.
    sample_weight : array-like of shape (n_rows,), optional
        Weight of each row in the agreement of predictions, zero or positive.

    Returns
    -------
    Stability

    Raises
    ------
    ValueError
        If there are fewer than two rule sets, their tasks differ, or the rows do not fit.

    References
    ----------
    V. Margot, G. Luta: A new method to compare the interpretability of rule-based algorithms.
    AI 2(4), 2021, arXiv:2004.01570.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.model_selection import cross_validate
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from skescore.metrics import stability
    >>> X, y = load_iris(return_X_y=True)
    >>> tree = DecisionTreeClassifier(max_leaf_nodes=4, random_state=0)
    >>> trees = cross_validate(tree, X, y, return_estimator=True)["estimator"]
    >>> result = stability(trees, X)
    >>> round(result.rules, 2), round(result.predictions, 2)
    (0.55, 0.97)
    """
    check_integer("n_bins", n_bins, 1)
    if isinstance(rulesets, RuleSet) or len(rulesets) < 2:
        raise ValueError(
            "rulesets must hold at least two rule sets to be compared, got "
            f"{1 if isinstance(rulesets, RuleSet) else len(rulesets)}."
        )
    rules = _of_one_task(*rulesets)
    counters = [_counter(ruleset, _edges(ruleset, X, n_bins)) for ruleset in rules]
    similarities = np.eye(len(rules))
    agreements = []
    for i, j in itertools.combinations(range(len(rules)), 2):
        similarities[i, j] = similarities[j, i] = _dice(counters[i], counters[j])
        agreements.append(prediction_agreement(rules[i], rules[j], X, sample_weight))
    pairs = similarities[np.triu_indices(len(rules), 1)]
    return Stability(float(pairs.mean()), float(np.mean(agreements)), similarities)
