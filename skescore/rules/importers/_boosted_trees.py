"""What boosted trees of all libraries share: the ways to their leaves, and leaves that add up.

A split sends numbers, categories and missing values to its two sides. What reaches a leaf is, for
each feature on the way, a set of values; it becomes a condition of the leaf's rule, or several
rules where it has several parts.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

from skescore.rules._conditions import Condition, Interval, Missing, OneOf
from skescore.rules._domain import Domain
from skescore.rules._rule import Rule, RuleStatistics
from skescore.rules._ruleset import RuleSet

#: Bounds of an interval, and which of them belong to it.
_Span: TypeAlias = tuple[float, float, bool, bool]
_ALL: _Span = (-math.inf, math.inf, False, False)


@dataclass(frozen=True, slots=True)
class Numbers:
    """Numbers in some intervals, which do not touch, and whether a missing value is among them."""

    spans: tuple[_Span, ...]
    missing: bool

    def __bool__(self) -> bool:
        return self.missing or bool(self.spans)

    def meet(self, other: Numbers) -> Numbers:
        """Give what is in both."""
        spans = (_both(a, b) for a in self.spans for b in other.spans)
        return Numbers(
            tuple(span for span in spans if span is not None), self.missing and other.missing
        )

    def conditions(self, feature: int) -> tuple[Condition | None, ...]:
        """Give one condition per part; None is a condition that always holds."""
        if not self.spans:
            return (Missing(feature),)
        if self.spans == (_ALL,):
            return (None,) if self.missing else (Missing(feature, negated=True),)
        first, *others = self.spans
        return (
            Interval(feature, *first, missing=self.missing),
            *(Interval(feature, *span) for span in others),
        )


def _both(a: _Span, b: _Span) -> _Span | None:
    """Give the numbers in both intervals; None if there are none."""
    lower, not_closed = max((a[0], not a[2]), (b[0], not b[2]))
    upper, closed = min((a[1], a[3]), (b[1], b[3]))
    if lower > upper or ((lower == upper and not_closed) or (lower == upper and not closed)):
        return None
    return lower, upper, not not_closed, closed


def below(cut: float, *, missing: bool) -> Numbers:
    """Give the numbers up to a cut; all numbers up to infinity."""
    return Numbers((_ALL if cut == math.inf else (-math.inf, cut, False, True),), missing)


def above(cut: float, *, missing: bool) -> Numbers:
    """Give the numbers above a cut; above infinity there are none, above -infinity all."""
    if cut == math.inf:
        return Numbers((), missing)
    return Numbers((_ALL if cut == -math.inf else (cut, math.inf, False, False),), missing)


@dataclass(frozen=True, slots=True)
class Categories:
    """Some categories, or all but some, and whether a missing value is among them."""

    values: frozenset[Any]
    negated: bool
    missing: bool

    def __bool__(self) -> bool:
        return self.missing or self.negated or bool(self.values)

    def meet(self, other: Categories) -> Categories:
        """Give what is in both."""
        missing = self.missing and other.missing
        if self.negated and other.negated:
            return Categories(self.values | other.values, True, missing)
        if self.negated:
            return Categories(other.values - self.values, False, missing)
        if other.negated:
            return Categories(self.values - other.values, False, missing)
        return Categories(self.values & other.values, False, missing)

    def conditions(self, feature: int) -> tuple[Condition | None, ...]:
        """Give the condition; None is one that always holds."""
        if self.values:
            return (OneOf(feature, tuple(self.values), self.negated, missing=self.missing),)
        if not self.negated:
            return (Missing(feature),)
        return (None,) if self.missing else (Missing(feature, negated=True),)


class Branch(NamedTuple):
    """A way out of a node of a tree: the values that go it, by feature, and the node behind it."""

    values: Mapping[int, Numbers | Categories]
    child: Any


Premise: TypeAlias = tuple[Condition, ...]
#: More would fill the memory, and nobody reads them.
MAX_RULES = 300_000


def two_way(
    feature: int,
    left: Numbers | Categories,
    right: Numbers | Categories,
    left_child: Any,
    right_child: Any,
) -> list[Branch]:
    """Give the branches of a split on one feature."""
    return [Branch({feature: left}, left_child), Branch({feature: right}, right_child)]


def ways_to_leaves(
    root: Any, branches_of: Callable[[Any], Sequence[Branch]]
) -> Iterator[tuple[Any, list[Premise]]]:
    """Walk a tree, from left to right, and give every leaf that some row can reach.

    Parameters
    ----------
    root : object
        The root, whatever the tree's nodes are.
    branches_of : callable
        Gives the branches out of a node, of which every row goes one; none for a leaf.

    Yields
    ------
    leaf : object
        A leaf. It comes again for every way that leads there.
    premises : list of tuple of conditions
        What leads there: a row goes this way if one of them holds; never do two.
    """
    stack: list[tuple[Any, dict[int, Any]]] = [(root, {})]
    while stack:
        node, way = stack.pop()
        branches = branches_of(node)
        if not branches:
            parts = [values.conditions(feature) for feature, values in sorted(way.items())]
            yield (
                node,
                [
                    tuple(condition for condition in premise if condition is not None)
                    for premise in itertools.product(*parts)
                ],
            )
        for branch in reversed(branches):
            inside = met(way, branch.values)
            if inside is not None:
                stack.append((branch.child, inside))


def met(
    way: Mapping[int, Any], values: Mapping[int, Numbers | Categories]
) -> dict[int, Any] | None:
    """Give what is in both, feature by feature; None if that is nothing."""
    result = dict(way)
    for feature, side in values.items():
        known = result.get(feature)
        result[feature] = side if known is None else known.meet(side)
        if not result[feature]:
            return None
    return result


class Leaf(NamedTuple):
    """What a leaf adds, to which of the model's outputs, and how many rows it was fitted on."""

    premises: list[Premise]
    value: float
    output: int = 0
    n_rows: float | None = None


def class_vote(classes: Sequence[Any], n_outputs: int) -> Callable[..., Rule]:
    """Make rules that add to log odds, from conditions, the output's index and what is added.

    Of two classes with one output, what speaks against the second speaks for the first; a model
    for many classes may have two outputs for two.
    """
    if n_outputs == 1:
        return lambda conditions, k, value, statistics=None: Rule(
            conditions, classes[value > 0], statistics, abs(value)
        )
    return lambda conditions, k, value, statistics=None: Rule(
        conditions, classes[k], statistics, value
    )


def number_vote(conditions: Premise, k: int, value: float, statistics: Any = None) -> Rule:
    """Make a rule that adds to the one number of a regression."""
    return Rule(conditions, value, statistics)


def additive_ruleset(
    start: Sequence[float],
    leaves: Iterable[Leaf],
    feature_names: Sequence[str],
    *,
    classes: Sequence[Any] | None,
    domain: Domain | None = None,
) -> RuleSet:
    """Make a rule set of leaves that add up.

    Parameters
    ----------
    start : sequence of float
        What the sums start from, one per output. It becomes rules that always hold.
    leaves : iterable of Leaf
        The leaves, tree by tree.
    feature_names : sequence of str
        Names of the columns.
    classes : sequence or None
        The labels: one per output, or two, for the second of which the one output speaks. None for
        a regression.
    domain : Domain, optional
        Box of the training rows.

    Returns
    -------
    RuleSet
        Unordered, with ``voting="logistic"`` where there are classes, else ``"sum"``. Leaves that
        add nothing are left out.
    """
    make = number_vote if classes is None else class_vote(classes, len(start))
    rules = [make((), k, float(value)) for k, value in enumerate(start)]
    for leaf in leaves:
        if len(rules) > MAX_RULES:
            raise ValueError(
                f"The model has more than {MAX_RULES:,} leaves, which are too many rules. Fit it "
                "with fewer or smaller trees."
            )
        seen = None if leaf.n_rows is None or len(leaf.premises) > 1 else leaf.n_rows
        statistics = None if seen is None else RuleStatistics(seen)
        if leaf.value != 0:
            rules += [make(p, leaf.output, float(leaf.value), statistics) for p in leaf.premises]
    return RuleSet(
        rules,
        feature_names,
        task="regression" if classes is None else "classification",
        classes=classes,
        domain=domain,
        ordered=False,
        voting="sum" if classes is None else "logistic",
    )


def feature_names_of(
    known: Sequence[Any] | None, n_features: int, given: Sequence[str] | None
) -> list[str]:
    """Find the names of the features: the caller's, the model's own, or ``x0``, ``x1``, ..."""
    if given is not None:
        if isinstance(given, str) or len(given) != n_features:
            raise ValueError(
                f"feature_names must name the model's {n_features} features, got {given!r}."
            )
        return [str(name) for name in given]
    if known is None or len(known) != n_features:
        return [f"x{j}" for j in range(n_features)]
    return [str(name) for name in known]


def labels_by_code(
    given: Mapping[Hashable, Sequence[Any]] | None, names: Sequence[str]
) -> dict[int, list[Any]]:
    """Check the caller's labels of categorical features, by the feature's name or index."""
    result = {}
    for key, labels in (given or {}).items():
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
