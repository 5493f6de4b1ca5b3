"""Conversion of interpret's explainable boosting machines (EBM) to rules."""

from __future__ import annotations

import contextlib
import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_is_fitted

from skescore._text import listed
from skescore._validation import python_value
from skescore.rules._conditions import Condition, Interval, Missing, OneOf
from skescore.rules._rule import Rule
from skescore.rules._ruleset import RuleSet


def read_ebm(model: Any, *, X: Any = None) -> RuleSet:
    """Convert a fitted explainable boosting machine to voting rules with the same predictions.

    Each bin of each term becomes a rule, such as ``IF 20 ≤ age < 35 THEN 0.31``; equal neighboring
    bins become one rule. The rules are the exact shape functions. To explain the model by a few
    rules, pass it to an extractor instead.

    Parameters
    ----------
    model : ExplainableBoostingClassifier or ExplainableBoostingRegressor
        The fitted model, with the identity link in regression.
    X : array-like or DataFrame of shape (n_rows, n_features), optional
        The training rows, or other rows with the same types of columns; required if all categories
        of a nominal feature look like numbers, because the model stores them as texts.

    Returns
    -------
    RuleSet
        Rules with ``voting="sum"`` in regression and ``voting="logistic"`` in classification.

    Raises
    ------
    ValueError
        If a regressor has a link other than the identity, or if `X` is missing although it is
        unknown whether categories are numbers or texts.
    """
    check_is_fitted(model, "term_scores_")
    names = [str(name) for name in model.feature_names_in_]
    classes = None
    if hasattr(model, "classes_"):
        classes = [label.item() if hasattr(label, "item") else label for label in model.classes_]
    elif getattr(model, "link_", "identity") != "identity":
        raise ValueError(
            f"Votes of rules are added, but this model has the link {model.link_!r}. Pass it to an "
            "extractor as a black box instead: CARTExtractor(model)."
        )
    values = [_category_values(model, feature, X) for feature in range(len(names))]
    rules = list(_rules((), np.asarray(model.intercept_), classes))
    for features, scores in zip(model.term_features_, model.term_scores_, strict=True):
        axes = [_axis(model, feature, len(features), values[feature]) for feature in features]
        rules += _term_rules(axes, np.asarray(scores), classes)
    return RuleSet(
        rules,
        names,
        task="regression" if classes is None else "classification",
        classes=classes,
        ordered=False,
        voting="sum" if classes is None else "logistic",
    )


def _category_values(model: Any, feature: int, X: Any) -> dict[str, Any]:
    """Return the value of each category of a feature, which the model stores as a text."""
    bins = model.bins_[feature][0]
    if not isinstance(bins, dict):
        return {}
    texts = dict.fromkeys(text for resolution in model.bins_[feature] for text in resolution)
    numbers = {text: number for text in texts if (number := _number_or_none(text)) is not None}
    if X is None:
        if texts and len(numbers) == len(texts):
            name = model.feature_names_in_[feature]
            raise ValueError(
                f"The model stores the categories of {name!r} as texts ({listed(list(texts))}), so "
                "it is unknown whether they are numbers: pass the training rows, "
                "as_ruleset(model, X=X_train)."
            )
        return {text: text for text in texts}
    column = X.iloc[:, feature] if hasattr(X, "iloc") else np.asarray(X, dtype=object)[:, feature]
    distinct = list(map(python_value, pd.unique(pd.Series(column, dtype=object).dropna())))
    value_of = {value: value for value in distinct}  # True and False instead of 1 and 0
    has_texts = any(isinstance(value, str) for value in distinct)
    return {
        text: text
        if text in value_of or text not in numbers or (has_texts and numbers[text] not in value_of)
        else value_of.get(numbers[text], numbers[text])
        for text in texts
    }


def _number_or_none(text: str) -> int | float | None:
    """Return the number that the model writes as a text; None if there is none."""
    for kind in (int, float):
        with contextlib.suppress(ValueError):
            if str(number := kind(text)) == text and math.isfinite(number):
                return number
    return None


def _axis(
    model: Any, feature: int, n_features: int, values: dict[str, Any]
) -> list[tuple[int, Condition]]:
    """Return the index and condition of each bin of a feature in a term of `n_features`.

    `values` are the values of its categories.
    """
    resolutions = model.bins_[feature]
    bins = resolutions[min(len(resolutions), n_features) - 1]
    bins_by_index: list[tuple[int, Condition]] = [(0, Missing(feature))]
    if not isinstance(bins, dict):
        edges = [-np.inf, *np.asarray(bins, dtype=float).tolist(), np.inf]
        for index, (low, high) in enumerate(itertools.pairwise(edges), 1):
            is_closed = bool(np.isfinite(low))
            interval = Interval(feature, low, high, is_closed, False)
            bins_by_index.append((index, Missing(feature, True) if len(edges) == 2 else interval))
        return bins_by_index
    categories: dict[int, list[Any]] = {}
    for category, index in bins.items():
        categories.setdefault(index, []).append(values[category])
    bins_by_index += [
        (index, OneOf(feature, tuple(members))) for index, members in categories.items()
    ]
    unknown: Condition = Missing(feature, True)
    if bins:
        unknown = OneOf(feature, tuple(values[category] for category in bins), negated=True)
    return [*bins_by_index, (-1, unknown)]


def _term_rules(
    axes: Sequence[Sequence[tuple[int, Condition]]], scores: np.ndarray, classes: Any
) -> Iterator[Rule]:
    """Yield the rules of a term; equal neighboring bins of its last feature become one rule."""
    *others, last = axes
    for combination in itertools.product(*others):
        conditions = tuple(condition for _, condition in combination)
        position = tuple(index for index, _ in combination)
        pending: tuple[Condition, np.ndarray] | None = None
        for index, condition in last:
            score = scores[(*position, index)]
            merged = None
            if pending is not None and np.array_equal(pending[1], score):
                merged = _merge_conditions(pending[0], condition)
            if pending is not None and merged is None:
                yield from _rules((*conditions, pending[0]), pending[1], classes)
            pending = (merged or condition, score)
        if pending is not None:
            yield from _rules((*conditions, pending[0]), pending[1], classes)


def _merge_conditions(first: Condition, second: Condition) -> Condition | None:
    """Return the condition of the union of two neighboring bins; None if there is none."""
    if isinstance(first, Interval) and isinstance(second, Interval):
        return Interval(first.feature, first.lower, second.upper, first.lower_closed, False)
    return None


def _rules(conditions: Sequence[Condition], score: np.ndarray, classes: Any) -> Iterator[Rule]:
    """Yield one rule in regression, or one per class whose log odds change."""
    values = np.ravel(score).tolist()
    if classes is None:
        if values[0] or not conditions:
            yield Rule(tuple(conditions), values[0])
        return
    labels = classes[1:] if len(values) == 1 else classes
    for label, value in zip(labels, values, strict=True):
        if value:
            yield Rule(tuple(conditions), label, None, value)
