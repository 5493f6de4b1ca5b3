"""Conversion of interpret's explainable boosting machines (EBM) to rules."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from skescore.rules._conditions import Condition, Interval, Missing, OneOf
from skescore.rules._rule import Rule
from skescore.rules._ruleset import RuleSet


def read_ebm(model: Any) -> RuleSet:
    """Convert a fitted explainable boosting machine to voting rules with the same predictions.

    Each bin of each term becomes a rule, such as ``IF 20 ≤ age < 35 THEN 0.31``; equal neighboring
    bins become one rule. The rules are the exact shape functions. To explain the model by a few
    rules, pass it to an extractor instead.

    Parameters
    ----------
    model : ExplainableBoostingClassifier or ExplainableBoostingRegressor
        The fitted model, with the identity link in regression.

    Returns
    -------
    RuleSet
        Rules with ``voting="sum"`` in regression and ``voting="logistic"`` in classification.

    Raises
    ------
    ValueError
        If a regressor has a link other than the identity.
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
    rules = list(_rules((), np.asarray(model.intercept_), classes))
    for features, scores in zip(model.term_features_, model.term_scores_, strict=True):
        axes = [_axis(model, feature, len(features)) for feature in features]
        rules += _term_rules(axes, np.asarray(scores), classes)
    return RuleSet(
        rules,
        names,
        task="regression" if classes is None else "classification",
        classes=classes,
        ordered=False,
        voting="sum" if classes is None else "logistic",
    )


def _axis(model: Any, feature: int, n_features: int) -> list[tuple[int, Condition]]:
    """Return the index and condition of each bin of a feature in a term of `n_features`."""
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
    categories: dict[int, list[str]] = {}
    for category, index in bins.items():
        categories.setdefault(index, []).append(category)
    bins_by_index += [
        (index, OneOf(feature, tuple(listed))) for index, listed in categories.items()
    ]
    unknown = OneOf(feature, tuple(bins), negated=True) if bins else Missing(feature, True)
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
