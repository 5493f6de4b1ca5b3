"""Statistics of rules on rows with labels."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from skescore.rules._row_table import RowTable
from skescore.rules._rule import RuleStatistics
from skescore.rules._ruleset import RuleSet


def with_statistics(ruleset: RuleSet, X: Any, labels: np.ndarray) -> RuleSet:
    """Compute the statistics of rules on rows.

    In an ordered or disjoint rule set, a row counts for the rule that predicts it; otherwise for
    every rule that covers it.

    Parameters
    ----------
    ruleset : RuleSet
        The rules.
    X : array-like or DataFrame of shape (n_rows, n_features)
        The rows.
    labels : ndarray of shape (n_rows,)
        Labels or numbers to describe, such as the predictions of the black box.

    Returns
    -------
    RuleSet
        The rules with the new statistics, which are 0 rows for rules without rows.

    Examples
    --------
    >>> import numpy as np
    >>> from skescore.rules import Interval, Rule, RuleSet, with_statistics
    >>> rules = RuleSet(
    ...     [Rule([Interval(0, upper=1)], "a"), Rule([], "b")],
    ...     ["x"],
    ...     task="classification",
    ...     classes=["a", "b"],
    ...     ordered=True,
    ... )
    >>> print(with_statistics(rules, [[0], [1], [2]], np.array(["a", "b", "b"])))
    1. IF x ≤ 1 THEN a   [2 rows, 50 % of this class]
    2. ELSE b   [1 row, 100 % of this class]
    """
    codes, n_classes = _codes(ruleset, labels), len(ruleset.classes or ())
    rules = []
    for rule, rows in zip(ruleset.rules, _rows_of_rules(ruleset, X), strict=True):
        statistics = _statistics(codes[rows], n_classes)
        if n_classes and (codes[rows] < 0).any() and (ruleset.ordered or ruleset.disjoint):
            # Shares of the class counts would ignore the rows whose label is no class of the rules.
            counts = statistics.class_counts if ruleset.reference == "data" else None
            statistics = replace(statistics, class_counts=None, target_counts=counts)
        rules.append(replace(rule, statistics=statistics))
    return ruleset.replace(rules=rules)


def with_target(
    ruleset: RuleSet,
    X: Any,
    target: np.ndarray,
    predictions: np.ndarray | None = None,
    row_weights: np.ndarray | None = None,
) -> RuleSet:
    """Add the target of the training rows to the statistics of rules.

    Rows are counted as in :func:`with_statistics`. Other statistics do not change, and rules
    without statistics are not changed.

    Parameters
    ----------
    ruleset : RuleSet
        The rules.
    X : array-like or DataFrame of shape (n_rows, n_features)
        The training rows.
    target : ndarray of shape (n_rows,)
        Target of the rows. Labels that are not classes of the rules are not counted.
    predictions : ndarray of shape (n_rows,), optional
        Regression: predictions of the black box.
    row_weights : ndarray of shape (n_rows,), optional
        Weights of the rows; by default equal.

    Returns
    -------
    RuleSet
        The rules with `target_counts`, or with `target_error` and `model_error`.

    Examples
    --------
    >>> import numpy as np
    >>> from skescore.rules import Interval, Rule, RuleSet, with_statistics, with_target
    >>> rules = RuleSet(
    ...     [Rule([Interval(0, upper=1)], "a"), Rule([], "b")],
    ...     ["x"],
    ...     task="classification",
    ...     ordered=True,
    ...     reference="black_box",
    ... )
    >>> rules = with_statistics(rules, [[0], [1], [2]], np.array(["a", "b", "b"]))
    >>> print(with_target(rules, [[0], [1], [2]], np.array(["a", "a", "a"])))
    1. IF x ≤ 1 THEN a   [2 rows, 50 % agree with the model, 100 % right (data)]
    2. ELSE b   [1 row, 100 % agree with the model, 0 % right (data)]
    """
    is_weighted = row_weights is not None
    values: dict[str, np.ndarray] = {"weighted": np.full(len(ruleset), is_weighted)}
    rule_of_pair, row_of_pair = _pairs(ruleset, X)
    n_rows = np.bincount(rule_of_pair, minlength=len(ruleset))
    pair_weights = None if row_weights is None else row_weights[row_of_pair]
    if ruleset.classes is not None:
        codes = _codes(ruleset, target)[row_of_pair]
        values["target_counts"] = _class_counts(ruleset, rule_of_pair, codes, pair_weights)
    else:
        outputs = _outputs_of_pairs(ruleset, X, rule_of_pair, row_of_pair)
        sizes = np.maximum(n_rows, 1)
        if pair_weights is not None:
            weights = np.bincount(rule_of_pair, pair_weights, minlength=len(ruleset))
            sizes = np.where(weights > 0, weights, 1.0)
        for name, numbers in (("target_error", target), ("model_error", predictions)):
            if numbers is not None:
                errors = np.abs(np.asarray(numbers, dtype=float)[row_of_pair] - outputs)
                errors = errors if pair_weights is None else errors * pair_weights
                values[name] = np.bincount(rule_of_pair, errors, minlength=len(ruleset)) / sizes
    return _with_values(ruleset, n_rows, values)


def with_row_weights(
    ruleset: RuleSet, X: Any, labels: np.ndarray, row_weights: np.ndarray
) -> RuleSet:
    """Set the statistics of rules according to the weights of training rows.

    Rules without statistics, and class counts that include queried points, are not changed.

    Parameters
    ----------
    ruleset : RuleSet
        The rules.
    X : array-like or DataFrame of shape (n_rows, n_features)
        The training rows.
    labels : ndarray of shape (n_rows,)
        Labels from which the statistics are computed.
    row_weights : ndarray of shape (n_rows,)
        Weights of the rows.

    Returns
    -------
    RuleSet
        The rules, in which `n_rows` and `class_counts` are sums of weights, and `mean` and
        `standard_deviation` are weighted.

    Examples
    --------
    >>> import numpy as np
    >>> from skescore.rules import Rule, RuleSet, with_row_weights, with_statistics
    >>> rules = RuleSet([Rule([], "a")], ["x"], task="classification", classes=["a", "b"])
    >>> X, labels = [[0], [1]], np.array(["a", "b"])
    >>> rules = with_statistics(rules, X, labels)
    >>> with_row_weights(rules, X, labels, np.array([1.5, 2.25])).rules[0].statistics.class_counts
    (1.5, 2.25)
    """
    rule_of_pair, row_of_pair = _pairs(ruleset, X)
    pair_weights = row_weights[row_of_pair]
    sums = np.bincount(rule_of_pair, pair_weights, minlength=len(ruleset))
    values = {"n_rows": sums, "weighted": np.full(len(ruleset), True)}
    if ruleset.classes is not None:
        codes = _codes(ruleset, labels)[row_of_pair]
        counts = _class_counts(ruleset, rule_of_pair, codes, pair_weights)
        for number, rule in enumerate(ruleset.rules):
            if rule.statistics is not None and rule.statistics.n_points is not None:
                counts[number] = rule.statistics.class_counts
        values["class_counts"] = counts
        return _with_values(ruleset, sums, values)
    result = _with_values(ruleset, sums, values)
    if (row_weights == 1).all():
        return result
    numbers = np.asarray(labels, dtype=float)[row_of_pair]
    return _with_weighted_moments(result, sums, rule_of_pair, numbers, pair_weights)


def _with_weighted_moments(
    ruleset: RuleSet,
    sums: np.ndarray,
    rule_of_pair: np.ndarray,
    numbers: np.ndarray,
    pair_weights: np.ndarray,
) -> RuleSet:
    """Replace existing means and standard deviations of rules by weighted ones."""
    sizes = np.where(sums > 0, sums, 1.0)
    means = np.bincount(rule_of_pair, numbers * pair_weights, minlength=len(ruleset)) / sizes
    squares = (numbers - means[rule_of_pair]) ** 2 * pair_weights
    deviations = np.sqrt(np.bincount(rule_of_pair, squares, minlength=len(ruleset)) / sizes)
    moments = {"mean": means, "standard_deviation": deviations}
    rules = []
    for number, rule in enumerate(ruleset.rules):
        if rule.statistics is not None and sums[number] > 0:
            changes: dict[str, Any] = {
                name: float(values[number])
                for name, values in moments.items()
                if getattr(rule.statistics, name) is not None
            }
            rule = replace(rule, statistics=replace(rule.statistics, **changes))
        rules.append(rule)
    return ruleset.replace(rules=rules)


def _pairs(ruleset: RuleSet, X: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the indices of rules and rows for all pairs in which the row counts for the rule."""
    if ruleset.ordered or ruleset.disjoint:
        rule_of_row = ruleset.assign(X)
        row_of_pair = np.flatnonzero(rule_of_row >= 0)
        return rule_of_row[row_of_pair], row_of_pair
    row_of_pair, rule_of_pair = np.nonzero(ruleset.match(X))
    return rule_of_pair, row_of_pair


def _class_counts(
    ruleset: RuleSet, rule_of_pair: np.ndarray, codes: np.ndarray, weights: np.ndarray | None
) -> np.ndarray:
    """Count the rows (or sum their weights) by rule and class; codes of -1 do not count."""
    n_classes, is_class = len(ruleset.classes or ()), codes >= 0
    counts = np.bincount(
        (rule_of_pair * n_classes + codes)[is_class],
        None if weights is None else weights[is_class],
        minlength=len(ruleset) * n_classes,
    )
    return counts.reshape(len(ruleset), n_classes)


def _with_values(ruleset: RuleSet, n_rows: np.ndarray, values: dict[str, Any]) -> RuleSet:
    """Add arrays to the statistics of rules, without creating Rule objects if possible."""
    conclusions = ruleset.conclusions
    if conclusions.n_rows is not None:  # the rule set was created from arrays
        arrays = values | {"weighted": bool(values["weighted"].any())}
        settings = {name: getattr(ruleset, name) for name in ruleset._fields[3:]}
        return RuleSet.from_boxes(ruleset.boxes, replace(conclusions, **arrays), **settings)
    rules = []
    for number, rule in enumerate(ruleset.rules):
        rule_values = {name: array[number].tolist() for name, array in values.items()}
        if not n_rows[number]:  # means of no rows
            rule_values = {
                name: value for name, value in rule_values.items() if not name.endswith("_error")
            }
        if rule.statistics is not None:
            rule = replace(rule, statistics=replace(rule.statistics, **rule_values))
        rules.append(rule)
    return ruleset.replace(rules=rules)


def _outputs_of_pairs(
    ruleset: RuleSet, X: Any, rule_of_pair: np.ndarray, row_of_pair: np.ndarray
) -> np.ndarray:
    """Return the output of each rule for each of its rows."""
    conclusions, table = ruleset.conclusions, RowTable(X, ruleset.feature_names)
    outputs = conclusions.outputs[rule_of_pair]
    for index, function in conclusions.linear.items():
        pairs = np.flatnonzero(rule_of_pair == index)
        values = function.evaluate(lambda j: table.numbers(j, slice(None)), len(table))
        outputs[pairs] = values[row_of_pair[pairs]]
    return outputs


def _rows_of_rules(ruleset: RuleSet, X: Any) -> list[np.ndarray]:
    """Return the indices of the rows that count for each rule."""
    if ruleset.ordered or ruleset.disjoint:
        assigned = ruleset.assign(X)
        return [np.flatnonzero(assigned == number) for number in range(len(ruleset))]
    return [np.flatnonzero(column) for column in ruleset.match(X).T]


def _codes(ruleset: RuleSet, labels: np.ndarray) -> np.ndarray:
    """Return the class indices of labels, -1 for others; in regression, return the labels."""
    if ruleset.classes is None:
        return labels
    classes = pd.Index(ruleset.classes, dtype=object)  # True equals 1
    return np.asarray(classes.get_indexer(pd.Index(labels, dtype=object)))


def _statistics(codes: np.ndarray, n_classes: int) -> RuleStatistics:
    """Return the statistics of a rule's rows, given class indices or numbers."""
    if n_classes:
        counts = np.bincount(codes[codes >= 0], minlength=n_classes)
        return RuleStatistics(len(codes), tuple(counts.tolist()))
    if not len(codes):
        return RuleStatistics(0)
    spread = 0.0 if (codes == codes[0]).all() else float(np.std(codes))
    mean = float(codes[0]) if spread == 0.0 else float(np.mean(codes))
    return RuleStatistics(len(codes), mean=mean, standard_deviation=spread)
