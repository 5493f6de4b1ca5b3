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
    """Return the rules with the statistics of some rows.

    In an ordered or disjoint rule set a row counts for the rule that predicts it, otherwise for
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
        The same rules with other statistics. A rule without rows counts 0.

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
    rules = [
        replace(rule, statistics=_statistics(codes[rows], n_classes))
        for rule, rows in zip(ruleset.rules, _rows_of_rules(ruleset, X), strict=True)
    ]
    return ruleset.replace(rules=rules)


def with_target(
    ruleset: RuleSet,
    X: Any,
    target: np.ndarray,
    predictions: np.ndarray | None = None,
    *,
    weighted: bool = False,
) -> RuleSet:
    """Add the target of the training rows to the statistics of rules.

    Rows are counted as by :func:`with_statistics`. Other statistics do not change, and rules
    without statistics get none.

    Parameters
    ----------
    ruleset : RuleSet
        The rules.
    X : array-like or DataFrame of shape (n_rows, n_features)
        The training rows; of weighted rows, each as often as it weighs.
    target : ndarray of shape (n_rows,)
        Their labels or numbers in the data. Labels that are no classes of the rules are not
        counted.
    predictions : ndarray of shape (n_rows,), optional
        Regression: predictions of the black box.
    weighted : bool, default=False
        Whether the rows are repeated by their weights.

    Returns
    -------
    RuleSet
        The same rules with `target_counts`, or with `target_error` and `model_error`.

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
    values: dict[str, np.ndarray] = {"weighted": np.full(len(ruleset), weighted)}
    if ruleset.ordered or ruleset.disjoint:
        rule_of_pair, row_of_pair = ruleset.assign(X), np.arange(len(target))
        is_assigned = rule_of_pair >= 0
        rule_of_pair, row_of_pair = rule_of_pair[is_assigned], row_of_pair[is_assigned]
    else:
        row_of_pair, rule_of_pair = np.nonzero(ruleset.match(X))
    n_rows = np.bincount(rule_of_pair, minlength=len(ruleset))
    if ruleset.classes is not None:
        codes, n_classes = _codes(ruleset, target)[row_of_pair], len(ruleset.classes)
        cells = (rule_of_pair * n_classes + codes)[codes >= 0]
        counts = np.bincount(cells, minlength=len(ruleset) * n_classes)
        values["target_counts"] = counts.reshape(len(ruleset), n_classes)
    else:
        outputs = _outputs_of_pairs(ruleset, X, rule_of_pair, row_of_pair)
        for name, numbers in (("target_error", target), ("model_error", predictions)):
            if numbers is not None:
                errors = np.abs(np.asarray(numbers, dtype=float)[row_of_pair] - outputs)
                sums = np.bincount(rule_of_pair, weights=errors, minlength=len(ruleset))
                values[name] = sums / np.maximum(n_rows, 1)
    return _with_values(ruleset, n_rows, values)


def _with_values(ruleset: RuleSet, n_rows: np.ndarray, values: dict[str, Any]) -> RuleSet:
    """Add arrays to the statistics of rules, as arrays if the rule set consists of arrays."""
    conclusions = ruleset.conclusions
    if conclusions.n_rows is not None:  # made from arrays
        arrays = values | {"weighted": bool(values["weighted"].any())}
        settings = {name: getattr(ruleset, name) for name in ruleset._fields[3:]}
        return RuleSet.from_boxes(ruleset.boxes, replace(conclusions, **arrays), **settings)
    rules = []
    for number, rule in enumerate(ruleset.rules):
        rule_values = {name: array[number].tolist() for name, array in values.items()}
        if not n_rows[number]:  # a mean over no rows
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
    """Return the indices of labels among the classes, -1 for others; in regression the labels."""
    if ruleset.classes is None:
        return labels
    return np.asarray(pd.Index(ruleset.classes).get_indexer(pd.Index(labels)))


def _statistics(codes: np.ndarray, n_classes: int) -> RuleStatistics:
    """Describe the codes of classes, or the numbers, of a rule's rows."""
    if n_classes:
        counts = np.bincount(codes[codes >= 0], minlength=n_classes)
        return RuleStatistics(len(codes), tuple(counts.tolist()))
    if not len(codes):
        return RuleStatistics(0)
    spread = 0.0 if (codes == codes[0]).all() else float(np.std(codes))
    mean = float(codes[0]) if spread == 0.0 else float(np.mean(codes))
    return RuleStatistics(len(codes), mean=mean, standard_deviation=spread)
