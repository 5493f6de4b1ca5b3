"""Common parts of the readers of boosted trees from different libraries.

A split sends numbers, categories and missing values to one of its sides. The rows that reach a leaf
are described by one set of values for each feature on the path. Such a set becomes a condition of
the leaf's rule; if it consists of several intervals, the leaf becomes several rules. The values of
all leaves are added.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

from sklearn.base import is_classifier

from skescore._text import listed
from skescore.rules._conditions import Condition, Interval, Missing, OneOf
from skescore.rules._domain import Domain
from skescore.rules._rule import Rule, RuleStatistics
from skescore.rules._ruleset import RuleSet

#: Lower bound, upper bound, and whether the interval contains each of them.
_Span: TypeAlias = tuple[float, float, bool, bool]
_REAL_LINE: _Span = (-math.inf, math.inf, False, False)


@dataclass(frozen=True, slots=True)
class NumberSet:
    """Union of intervals that do not touch, with or without missing values."""

    spans: tuple[_Span, ...]
    missing: bool

    def __bool__(self) -> bool:
        return self.missing or bool(self.spans)

    def intersect(self, other: NumberSet) -> NumberSet:
        """Return the values that both sets contain."""
        spans = (_intersect_spans(a, b) for a in self.spans for b in other.spans)
        return NumberSet(
            tuple(span for span in spans if span is not None), self.missing and other.missing
        )

    def conditions(self, feature: int) -> tuple[Condition | None, ...]:
        """Return one condition per interval; None represents a condition that always holds."""
        if not self.spans:
            return (Missing(feature),)
        if self.spans == (_REAL_LINE,):
            return (None,) if self.missing else (Missing(feature, negated=True),)
        first, *later_spans = self.spans
        return (
            Interval(feature, *first, missing=self.missing),
            *(Interval(feature, *span) for span in later_spans),
        )


def _intersect_spans(a: _Span, b: _Span) -> _Span | None:
    """Return the numbers in both intervals; None if there are none."""
    lower, lower_open = max((a[0], not a[2]), (b[0], not b[2]))
    upper, upper_closed = min((a[1], a[3]), (b[1], b[3]))
    if lower > upper or (lower == upper and (lower_open or not upper_closed)):
        return None
    return lower, upper, not lower_open, upper_closed


def at_most(threshold: float, *, missing: bool) -> NumberSet:
    """Return the numbers up to a threshold; all numbers for an infinite threshold."""
    span = _REAL_LINE if threshold == math.inf else (-math.inf, threshold, False, True)
    return NumberSet((span,), missing)


def above(threshold: float, *, missing: bool) -> NumberSet:
    """Return the numbers above a threshold; none for infinity, all for minus infinity."""
    if threshold == math.inf:
        return NumberSet((), missing)
    span = _REAL_LINE if threshold == -math.inf else (threshold, math.inf, False, False)
    return NumberSet((span,), missing)


@dataclass(frozen=True, slots=True)
class CategorySet:
    """Set of categories: `values` or, if `negated`, all others; `missing` adds missing values."""

    values: frozenset[Any]
    negated: bool
    missing: bool

    def __bool__(self) -> bool:
        return self.missing or self.negated or bool(self.values)

    def intersect(self, other: CategorySet) -> CategorySet:
        """Return the values that both sets contain."""
        missing = self.missing and other.missing
        if self.negated and other.negated:
            return CategorySet(self.values | other.values, True, missing)
        if self.negated:
            return CategorySet(other.values - self.values, False, missing)
        if other.negated:
            return CategorySet(self.values - other.values, False, missing)
        return CategorySet(self.values & other.values, False, missing)

    def conditions(self, feature: int) -> tuple[Condition | None, ...]:
        """Return a tuple of one condition; None represents a condition that always holds."""
        if self.values:
            return (OneOf(feature, tuple(self.values), self.negated, missing=self.missing),)
        if not self.negated:
            return (Missing(feature),)
        return (None,) if self.missing else (Missing(feature, negated=True),)


ValueSet: TypeAlias = NumberSet | CategorySet
#: Values that rows may have, by feature; other features may have any value.
Region: TypeAlias = Mapping[int, Any]


class Branch(NamedTuple):
    """Side of a split: the region of its rows, and the node that they reach."""

    region: Region
    child: Any


Premise: TypeAlias = tuple[Condition, ...]
#: Largest number of leaves, to limit memory; more rules are not readable.
MAX_RULES = 300_000


def binary_split(
    feature: int, left: ValueSet, right: ValueSet, left_child: Any, right_child: Any
) -> list[Branch]:
    """Return the two branches of a split on one feature."""
    return [Branch({feature: left}, left_child), Branch({feature: right}, right_child)]


def threshold_split(
    feature: int, threshold: float, *, missing_left: bool, left_child: Any, right_child: Any
) -> list[Branch]:
    """Return the branches of a split that sends numbers up to the threshold to the left."""
    return binary_split(
        feature,
        at_most(threshold, missing=missing_left),
        above(threshold, missing=not missing_left),
        left_child,
        right_child,
    )


def reachable_leaves(
    root: Any, branches_of: Callable[[Any], Sequence[Branch]]
) -> Iterator[tuple[Any, list[Premise]]]:
    """Yield every leaf of a tree that a row can reach, from left to right.

    Parameters
    ----------
    root : object
        Root node, in any representation.
    branches_of : callable
        Returns the branches of a node, which are disjoint and complete; none for a leaf.

    Yields
    ------
    leaf : object
        A leaf; it is repeated for every path that leads to it.
    premises : list of tuple of conditions
        Disjoint premises; a row follows the path if one of them holds.
    """
    stack: list[tuple[Any, Region]] = [(root, {})]
    while stack:
        node, region = stack.pop()
        branches = branches_of(node)
        if not branches:
            alternatives = [
                values.conditions(feature) for feature, values in sorted(region.items())
            ]
            yield (
                node,
                [
                    tuple(condition for condition in premise if condition is not None)
                    for premise in itertools.product(*alternatives)
                ],
            )
        for branch in reversed(branches):
            child_region = intersect_regions(region, branch.region)
            if child_region is not None:
                stack.append((branch.child, child_region))


def intersect_regions(one: Region, other: Region) -> Region | None:
    """Return the intersection of two regions; None if it is empty."""
    result = dict(one)
    for feature, values in other.items():
        result[feature] = result[feature].intersect(values) if feature in result else values
        if not result[feature]:
            return None
    return result


class AdditiveLeaf(NamedTuple):
    """Leaf that adds `value` to one of the model's outputs, fitted on `n_rows` rows."""

    premises: list[Premise]
    value: float
    output: int = 0
    n_rows: float | None = None


def class_rule_maker(classes: Sequence[Any], n_outputs: int) -> Callable[..., Rule]:
    """Return a function that creates a rule from conditions, an output's index and log odds.

    With one output for two classes, negative log odds become a vote for the first class. Some
    models have two outputs for two classes.
    """
    if n_outputs == 1:
        return lambda conditions, k, value, statistics=None: Rule(
            conditions, classes[value > 0], statistics, abs(value)
        )
    return lambda conditions, k, value, statistics=None: Rule(
        conditions, classes[k], statistics, value
    )


def number_rule(conditions: Premise, k: int, value: float, statistics: Any = None) -> Rule:
    """Create a rule that adds a number to the output in regression."""
    return Rule(conditions, value, statistics)


def additive_ruleset(
    start: Sequence[float],
    leaves: Iterable[AdditiveLeaf],
    feature_names: Sequence[str],
    *,
    classes: Sequence[Any] | None,
    domain: Domain | None = None,
) -> RuleSet:
    """Create a rule set from leaves whose values are added.

    Parameters
    ----------
    start : sequence of float
        Initial value of each output, which becomes a rule that always holds.
    leaves : iterable of AdditiveLeaf
        The leaves, tree by tree.
    feature_names : sequence of str
        Names of the columns.
    classes : sequence or None
        Labels: one per output, or two for a single output, which is the log odds of the second
        class. None in regression.
    domain : Domain, optional
        Box around the training rows.

    Returns
    -------
    RuleSet
        Rules with ``voting="logistic"`` in classification and ``"sum"`` in regression. Leaves with
        value 0 are omitted.
    """
    make_rule = number_rule if classes is None else class_rule_maker(classes, len(start))
    rules = [make_rule((), k, float(value)) for k, value in enumerate(start)]
    for leaf in leaves:
        if len(rules) > MAX_RULES:
            raise ValueError(
                f"The model has more than {MAX_RULES:,} leaves, which are too many rules. Fit it "
                "with fewer or smaller trees."
            )
        statistics = None
        if leaf.n_rows is not None and len(leaf.premises) <= 1:
            statistics = RuleStatistics(leaf.n_rows)
        if leaf.value != 0:
            rules += [
                make_rule(premise, leaf.output, float(leaf.value), statistics)
                for premise in leaf.premises
            ]
    return RuleSet(
        rules,
        feature_names,
        task="regression" if classes is None else "classification",
        classes=classes,
        domain=domain,
        ordered=False,
        voting="sum" if classes is None else "logistic",
    )


def check_objective(
    objective: str, class_objectives: Sequence[str], sum_objectives: Sequence[str], *, kind: str
) -> bool:
    """Return whether a model is a classifier; raise a ValueError if its leaves are not added."""
    if objective in class_objectives:
        return True
    if objective in sum_objectives:
        return False
    raise ValueError(
        f"The model has the {kind} {objective!r}, whose predictions are not a plain sum of its "
        f"leaves. Supported are {listed((*class_objectives, *sum_objectives), limit=20)}."
    )


def check_estimator(model: Any, objective: str, *, classifies: bool) -> None:
    """Raise a ValueError if an estimator does not predict what its objective is for."""
    if not hasattr(model, "__sklearn_tags__") or is_classifier(model) == classifies:
        return
    name = type(model).__name__
    if classifies:
        raise ValueError(
            f"{name} has the objective {objective!r}, which is for classification, so it predicts "
            "shares, but rules predict labels. Fit the library's classifier, or read the labels "
            "from the booster (model.get_booster() of XGBoost, model.booster_ of LightGBM)."
        )
    raise ValueError(
        f"{name} has the objective {objective!r}, which is for regression, so it predicts labels, "
        "but rules predict the sums of its leaves. Fit it with an objective for classification, "
        "or fit the library's regressor."
    )


def class_labels_of(model: Any, classes: Sequence[Any] | None, n_outputs: int) -> list[Any]:
    """Return the labels of a classifier: the caller's, the model's, or 0, 1, ..."""
    n_classes = max(2, n_outputs)
    labels = getattr(model, "classes_", None) if classes is None else classes
    labels = range(n_classes) if labels is None else labels
    labels = list(labels.tolist() if hasattr(labels, "tolist") else labels)
    if len(labels) != n_classes:
        raise ValueError(f"classes must list the model's {n_classes} labels, got {labels!r}.")
    return labels


def feature_names_of(
    model_names: Sequence[Any] | None, n_features: int, user_names: Sequence[str] | None
) -> list[str]:
    """Return the names of the features: the caller's, the model's, or ``x0``, ``x1``, ..."""
    if user_names is not None:
        if isinstance(user_names, str) or len(user_names) != n_features:
            raise ValueError(
                f"feature_names must name the model's {n_features} features, got {user_names!r}."
            )
        return [str(name) for name in user_names]
    if model_names is None or len(model_names) != n_features:
        return [f"x{j}" for j in range(n_features)]
    return [str(name) for name in model_names]


def category_labels(
    categories: Mapping[Hashable, Sequence[Any]] | None, names: Sequence[str]
) -> dict[int, list[Any]]:
    """Return the caller's labels of categorical features, by the feature's index."""
    result = {}
    for key, labels in (categories or {}).items():
        if key in names:
            index = list(names).index(str(key))
        elif isinstance(key, int) and 0 <= key < len(names):
            index = key
        else:
            raise ValueError(
                f"categories must be keyed by features of the model, got {key!r}; the model has "
                f"{', '.join(names)}."
            )
        result[index] = list(labels)
    return result
