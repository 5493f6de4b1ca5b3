"""What the readers of imodels' models share: names, labels, conditions from trees."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.exceptions import NotFittedError

from skescore.rules._conditions import Interval
from skescore.rules._domain import Domain, Fallback
from skescore.rules._rule import Rule
from skescore.rules._ruleset import RuleSet
from skescore.rules.importers._trees import float32_cut, leaf_paths


@dataclass(frozen=True, slots=True)
class Frame:
    """What the caller says about a model, and what it says of itself."""

    feature_names: tuple[str, ...]
    domain: Domain | None = None

    def ruleset(self, rules: Iterable[Rule], classes: Sequence[Any] | None, **how: Any) -> RuleSet:
        """Make a rule set; a regression has no classes."""
        return RuleSet(
            rules,
            self.feature_names,
            task="regression" if classes is None else "classification",
            classes=classes,
            domain=self.domain,
            **how,
        )

    def voting(
        self,
        rules: Sequence[Rule],
        classes: Sequence[Any] | None,
        voting: str,
        *,
        complete: bool = False,
    ) -> RuleSet:
        """Make a rule set whose rules answer together.

        A sum over no rules is 0, which is an answer like any other: the fallback gives it, unless
        some rule holds for every row (`complete`, or one without conditions).
        """
        fallback = None
        if not complete and all(rule.conditions for rule in rules):
            if classes is None:
                fallback = Fallback(0.0)
            else:
                fallback = Fallback(classes[0], class_counts=(1.0,) * len(classes))
        return self.ruleset(rules, classes, ordered=False, voting=voting, fallback=fallback)


def frame(model: Any, feature_names: Sequence[str] | None, domain: Domain | None) -> Frame:
    """Find the names of the features: the caller's, the model's own, or ``x0``, ``x1``, ..."""
    # A wrapper around a model that was fitted before does not know itself.
    inner = getattr(model, "estimator_", model)
    n_features = int(getattr(model, "n_features_in_", getattr(inner, "n_features_in_", -1)))
    if n_features < 0:
        raise NotFittedError(f"This {type(model).__name__} is not fitted yet: call fit first.")
    if feature_names is None:
        for attribute in ("feature_names_", "feature_names_in_", "feature_names"):
            for source in (model, inner):
                known = getattr(source, attribute, None)
                if known is not None and len(known) == n_features:
                    return Frame(tuple(str(name) for name in known), domain)
        return Frame(tuple(f"x{j}" for j in range(n_features)), domain)
    if isinstance(feature_names, str) or len(feature_names) != n_features:
        raise ValueError(
            f"feature_names must name the {n_features} features that the model was fitted on, "
            f"got {feature_names!r}."
        )
    return Frame(tuple(feature_names), domain)


def labels(model: Any) -> list[Any]:
    """Give the class labels as Python's own values."""
    return list(np.asarray(model.classes_).tolist())


def conjunction(conditions: Iterable[Interval]) -> tuple[Interval, ...] | None:
    """Join the intervals on each feature; None where no number satisfies them all.

    imodels has such rules: it rounds thresholds in rule texts and moves the cuts of grown trees.
    They never hold, so they say nothing.
    """
    joined: dict[int, Interval] = {}
    for condition in conditions:
        known = joined.get(condition.feature)
        if known is not None:
            try:
                condition = known.intersect(condition)
            except ValueError:
                return None
        joined[condition.feature] = condition
    return tuple(joined.values())


def reachable_leaves(tree: Any) -> Iterator[tuple[int, tuple[Interval, ...]]]:
    """Give the leaves of a scikit-learn tree that some row can reach, with the way there."""
    for leaf, path in leaf_paths(tree).items():
        steps = []
        for node, left in path:
            feature, cut = int(tree.feature[node]), float32_cut(float(tree.threshold[node]))
            steps.append(Interval(feature, upper=cut) if left else Interval(feature, lower=cut))
        conditions = conjunction(steps)
        if conditions is not None:
            yield leaf, conditions
