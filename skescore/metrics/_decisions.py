"""Decisions of rules on rows: which rule decides, whether it errs, and whether it extrapolates.

A row belongs to the rule that predicts it. Uncovered rows form a group of their own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from skescore._validation import whole_labels, without_index
from skescore.rules import AtLeast, Condition, Interval, Linear, RowTable, RuleSet

__all__ = [
    "DecisionCounts",
    "RowDecisions",
    "check_label_types",
    "compare_labels",
    "count_decisions",
    "decide_rows",
    "domain_limits",
    "has_default",
    "labels_of_rules",
    "predict_all_rows",
]

Counts = NDArray[np.int64]

#: Codes of an outcome that is unknown, correct or wrong.
UNKNOWN, CORRECT, WRONG = -1, 0, 1


@dataclass(frozen=True)
class DecisionCounts:
    """Counts of rows by the rule that decides them.

    Attributes
    ----------
    n_rows : ndarray of shape (n_rules + 1,)
        Rows that each rule decides; the last number counts the uncovered rows.
    n_labeled, n_errors : ndarray of shape (n_rules + 1,)
        Rows with a label, and how many of them are predicted wrongly.
    n_queried, n_disagreements : ndarray of shape (n_rules + 1,)
        Rows with a prediction of the model, and how many of them the rule predicts differently.
    n_outside : ndarray of shape (n_rules + 1,)
        Rows with a value outside the domain in a feature that the rules use.
    n_missing : ndarray of shape (n_rules + 1,)
        Rows with a missing value in a feature that the rules use.

    Examples
    --------
    >>> from skescore.metrics import count_decisions
    >>> from skescore.rules import Interval, Rule, RuleSet
    >>> rules = RuleSet([Rule([Interval(0, upper=2)], "low")], ["x"], task="classification")
    >>> counts = count_decisions(rules, [[1], [2], [3]], ["low", "high", "high"])
    >>> counts.n_rows.tolist(), counts.n_errors.tolist()
    ([2, 1], [1, 0])
    """

    n_rows: Counts
    n_labeled: Counts
    n_errors: Counts
    n_queried: Counts
    n_disagreements: Counts
    n_outside: Counts
    n_missing: Counts

    def __add__(self, other: DecisionCounts) -> DecisionCounts:
        """Add the counts of other rows."""
        return DecisionCounts(
            **{f.name: getattr(self, f.name) + getattr(other, f.name) for f in fields(self)}
        )

    @classmethod
    def zeros(cls, n_rules: int) -> DecisionCounts:
        """Return the counts of no rows."""
        return cls(*(np.zeros(n_rules + 1, dtype=np.int64) for _ in fields(cls)))

    def to_dict(self) -> dict[str, list[int]]:
        """Return the counts as lists, for JSON."""
        return {f.name: getattr(self, f.name).tolist() for f in fields(self)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> DecisionCounts:
        """Convert the output of :meth:`to_dict` back to counts."""
        return cls(**{f.name: np.array(data[f.name], dtype=np.int64) for f in fields(cls)})


@dataclass(frozen=True)
class RowDecisions:
    """Outcomes of the decisions of rules, row by row.

    Attributes
    ----------
    rule : ndarray of shape (n_rows,)
        Index of the deciding rule; the number of rules for uncovered rows.
    label_outcome, model_outcome : ndarray of shape (n_rows,)
        -1 if the label or the model's prediction is unknown, 0 if the rule agrees with it, else 1.
    is_outside, is_incomplete : ndarray of shape (n_rows,)
        Whether a value of a feature that rules use lies outside the domain, or is missing.
    n_rules : int
        Number of rules.
    """

    rule: NDArray[np.intp]
    label_outcome: NDArray[np.int8]
    model_outcome: NDArray[np.int8]
    is_outside: NDArray[np.bool_]
    is_incomplete: NDArray[np.bool_]
    n_rules: int

    def counts(self, rows: slice = slice(None)) -> DecisionCounts:
        """Count a range of rows."""

        def count(mask: NDArray[np.bool_]) -> Counts:
            return np.bincount(self.rule[rows][mask], minlength=self.n_rules + 1)

        label, model = self.label_outcome[rows], self.model_outcome[rows]
        return DecisionCounts(
            n_rows=np.bincount(self.rule[rows], minlength=self.n_rules + 1),
            n_labeled=count(label != UNKNOWN),
            n_errors=count(label == WRONG),
            n_queried=count(model != UNKNOWN),
            n_disagreements=count(model == WRONG),
            n_outside=count(self.is_outside[rows]),
            n_missing=count(self.is_incomplete[rows]),
        )


def decide_rows(
    ruleset: RuleSet,
    X: Any,
    y: Any = None,
    *,
    model_predictions: Any = None,
    error_tolerances: Any = None,
    model_tolerances: Any = None,
) -> RowDecisions:
    """Return which rule decides each row, and whether it agrees with label and model.

    Parameters
    ----------
    ruleset : RuleSet
        Rules that do not vote.
    X : array-like or DataFrame of shape (n_rows, n_features)
        The rows.
    y : array-like of shape (n_rows,), optional
        Labels; None and NaN mark labels that are not known yet.
    model_predictions : array-like of shape (n_rows,), optional
        Predictions of the model.
    error_tolerances, model_tolerances : array-like of shape (n_rules + 1,), optional
        Regression: largest absolute difference from the label, or from the prediction of the
        model, that is not an error. One number per rule, and a last one for uncovered rows.
        Required in regression with `y` or `model_predictions`.

    Returns
    -------
    RowDecisions

    Raises
    ------
    ValueError
        If the rules vote, or labels have another type than the classes.

    Notes
    -----
    The outcome of uncovered rows is unknown unless the fallback has the policy ``"default"``.

    Examples
    --------
    >>> from skescore.rules import Interval, Rule, RuleSet
    >>> rules = RuleSet([Rule([Interval(0, upper=2)], "low")], ["x"], task="classification")
    >>> decide_rows(rules, [[1], [2], [3]], ["low", "high", None]).label_outcome.tolist()
    [0, 1, -1]
    """
    ruleset.check_one_rule_per_row("Counting decisions")
    table = RowTable.of(X, ruleset.feature_names)
    assigned = np.asarray(ruleset.assign(table), dtype=np.intp)
    assigned[assigned < 0] = len(ruleset)
    is_outside, is_incomplete = _check_values(ruleset, table)
    predicted, predicts_all = None, has_default(ruleset)
    if y is not None or model_predictions is not None:
        predicted = predict_all_rows(ruleset, table)
    outcomes = []
    for name, labels, tolerances in (
        ("y", y, error_tolerances),
        ("model_predictions", model_predictions, model_tolerances),
    ):
        outcome = np.full(len(table), UNKNOWN, dtype=np.int8)
        if labels is not None:
            widths = None
            if ruleset.classes is None:
                widths = _checked_tolerances(name, tolerances, len(ruleset))[assigned]
            outcome = compare_labels(ruleset, name, predicted, labels, widths)
            if not predicts_all:
                outcome[assigned == len(ruleset)] = UNKNOWN
        outcomes.append(outcome)
    return RowDecisions(assigned, outcomes[0], outcomes[1], is_outside, is_incomplete, len(ruleset))


def count_decisions(ruleset: RuleSet, X: Any, y: Any = None, **options: Any) -> DecisionCounts:
    """Count rows by the rule that decides them; see :func:`decide_rows`.

    Examples
    --------
    >>> from skescore.rules import Interval, Rule, RuleSet
    >>> rules = RuleSet([Rule([Interval(0, upper=2)], "low")], ["x"], task="classification")
    >>> count_decisions(rules, [[1], [float("nan")]]).n_missing.tolist()
    [0, 1]
    """
    return decide_rows(ruleset, X, y, **options).counts()


def has_default(ruleset: RuleSet) -> bool:
    """Return whether uncovered rows get a default prediction, which can be wrong."""
    return ruleset.fallback is not None and ruleset.fallback.policy == "default"


def predict_all_rows(ruleset: RuleSet, X: Any) -> NDArray[Any]:
    """Predict all rows; without a default, the prediction of uncovered rows is arbitrary."""
    if not has_default(ruleset):
        ruleset = ruleset.with_arbitrary_fallback()
    return np.asarray(ruleset.predict(X))


def _checked_tolerances(name: str, tolerances: Any, n_rules: int) -> NDArray[np.float64]:
    if tolerances is None or np.shape(tolerances) != (n_rules + 1,):
        raise ValueError(
            f"{name} of a regression needs a tolerance for each of {n_rules} rules and for "
            f"uncovered rows, got {tolerances!r}. RuleBaseline.from_rows estimates them."
        )
    return np.asarray(tolerances, dtype=np.float64)


def compare_labels(
    ruleset: RuleSet, name: str, predicted: Any, labels: Any, widths: Any
) -> NDArray[np.int8]:
    """Return 0 for rows whose prediction agrees with the label, 1 for others, -1 without a label.

    Parameters
    ----------
    ruleset : RuleSet
        The rules.
    name : str
        Name of the parameter in messages.
    predicted, labels : array-like of shape (n_rows,)
        Predictions and labels; None and NaN mark unknown labels.
    widths : array-like of shape (n_rows,) or None
        Regression: largest difference that is not an error.
    """
    labels = without_index(labels)
    labels = np.asarray(labels, dtype=None if hasattr(labels, "dtype") else object)
    if labels.shape != np.shape(predicted):
        raise ValueError(
            f"{name} must hold one label for each of {len(predicted)} rows, got shape "
            f"{labels.shape}. Use None for unknown labels."
        )
    is_unknown = np.asarray(pd.isna(labels))
    if ruleset.classes is None:
        with np.errstate(invalid="ignore"):
            is_wrong = ~(np.abs(labels.astype(float) - predicted) <= widths)
    else:
        classes = pd.Index(list(ruleset.classes), dtype=object)
        codes = classes.get_indexer(pd.Index(labels, dtype=object))
        check_label_types(ruleset, name, labels[(codes < 0) & ~is_unknown])
        is_wrong = codes != classes.get_indexer(pd.Index(predicted, dtype=object))
    outcome = np.where(is_wrong, WRONG, CORRECT)
    outcome[is_unknown] = UNKNOWN
    return outcome.astype(np.int8)


def check_label_types(ruleset: RuleSet, name: str, others: Any) -> None:
    """Raise a ValueError if unknown labels are strings but no class is a string, or vice versa.

    Labels of new classes are errors of the rules, but labels of another type are a mistake.
    """
    class_kinds = {isinstance(label, str) for label in ruleset.classes or ()}
    for label in others:
        if isinstance(label, str) not in class_kinds:
            raise ValueError(
                f"{name} must hold labels of the type of the classes "
                f"{list(ruleset.classes or ())}, got {label!r}. Convert the labels."
            )


def labels_of_rules(ruleset: RuleSet, name: str, labels: Any) -> NDArray[Any]:
    """Return the labels of all rows; raise a ValueError if one is missing or of another type."""
    array = whole_labels(name, labels)
    if ruleset.classes is not None:
        check_label_types(ruleset, name, set(array.tolist()) - set(ruleset.classes))
    return array


def domain_limits(ruleset: RuleSet) -> dict[int, tuple[float, float] | tuple[Any, ...]]:
    """Return the domain of each feature that rules use.

    Returns
    -------
    dict of int to tuple
        Index of the feature, with a lower and an upper bound, or the values of a categorical
        feature. Features without known values are omitted.

    Examples
    --------
    >>> from skescore.rules import Domain, Interval, Rule, RuleSet
    >>> rules = RuleSet(
    ...     [Rule([Interval(0, upper=2)], "low")], ["x", "z"], task="classification",
    ...     domain=Domain([0, 0], [4, 1]),
    ... )
    >>> domain_limits(rules)
    {0: (0.0, 4.0)}
    """
    domain = ruleset.domain
    if domain is None:
        return {}
    numeric = set(_compared_features(c for rule in ruleset.rules for c in rule.conditions))
    for rule in ruleset.rules:
        numeric |= {feature for feature, _ in getattr(rule.output, "terms", ())}
    limits: dict[int, tuple[Any, ...]] = {}
    for feature in sorted(ruleset.used_features | numeric):
        values = domain.values_of(feature)
        if values is not None:
            limits[feature] = values
        elif feature in numeric:
            limits[feature] = (domain.lower[feature], domain.upper[feature])
    return limits


def _compared_features(conditions: Iterable[Condition]) -> Iterator[int]:
    """Yield the features that conditions compare with numbers."""
    for condition in conditions:
        if isinstance(condition, AtLeast):
            yield from _compared_features(condition.conditions)
        elif isinstance(condition, Interval | Linear):
            yield from condition.features


def _check_values(ruleset: RuleSet, table: RowTable) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return which rows have a value outside the domain, and which have a missing value."""
    is_outside = np.zeros(len(table), dtype=bool)
    is_incomplete = np.zeros(len(table), dtype=bool)
    rows, limits = slice(0, len(table)), domain_limits(ruleset)
    for feature in sorted(ruleset.used_features):
        is_missing = table.missing(feature, rows)
        is_incomplete |= is_missing
        if feature not in limits:
            continue
        if ruleset.domain is not None and ruleset.domain.values_of(feature) is not None:
            column = pd.Index(table.column(feature), dtype=object)
            is_beyond = pd.Index(list(limits[feature]), dtype=object).get_indexer(column) < 0
        else:
            numbers, (lower, upper) = table.numbers(feature, rows), limits[feature]
            with np.errstate(invalid="ignore"):
                is_beyond = (numbers < lower) | (numbers > upper)
        is_outside |= is_beyond & ~is_missing
    return is_outside, is_incomplete
