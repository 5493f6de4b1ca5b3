"""Refit of a rule list around rules that people want to keep."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from skescore._rows import take_rows
from skescore.constraints import Constraints
from skescore.editing._effect import Effect, predict_rows
from skescore.editing._price import PriceProblem
from skescore.optimal import SearchSpace, SolverLimits
from skescore.rules import RowTable, Rule, RuleSet


@dataclass(frozen=True, eq=False)
class Reoptimization:
    """Refitted rules that keep the pinned rules, compared with the edited rules.

    Parameters
    ----------
    effect : Effect
        Effect of the step from the edited rules to the refitted ones.
    pinned : sequence of int
        Numbers of the kept rules, before the refit.
    is_better : bool
        Whether better rules were found; otherwise the edited rules remain.

    Attributes
    ----------
    distance : float
        Advantage of the refitted rules on the rows of the effect: difference in the share of right
        rows, or in the mean absolute error of a regression.
    """

    effect: Effect
    pinned: Sequence[int]
    is_better: bool

    @property
    def rules(self) -> RuleSet:
        """Refitted rules."""
        return self.effect.after

    @property
    def distance(self) -> float:
        """Difference of the first measure, positive if the refitted rules are better."""
        figure = self.effect.figures[0]
        change = figure.after - figure.before
        return change if figure.greater_is_better else -change

    def to_text(self) -> str:
        """Describe the refit and its distance from the edited rules."""
        pinned_text = (
            f" around rule{'' if len(self.pinned) == 1 else 's'} {', '.join(map(str, self.pinned))}"
            if self.pinned
            else ""
        )
        if not self.is_better:
            return f"Refit{pinned_text}: no better rules were found, so the edited rules stay."
        figure = self.effect.figures[0]
        return (
            f"Refit{pinned_text}: the edited rules were {abs(self.distance):.4g} "
            f"{'worse' if self.distance >= 0 else 'better'} than the refitted ones "
            f"({figure.label}).\n{self.effect.to_text()}"
        )

    def __str__(self) -> str:
        return self.to_text()


def refit(
    rules: RuleSet,
    X: Any,
    labels: np.ndarray,
    *,
    pinned: Sequence[int] = (),
    constraints: Constraints | None = None,
    max_rules: int | None = None,
    limits: SolverLimits | None = None,
) -> RuleSet | None:
    """Replace all rules except the pinned ones by refitted rules.

    The new rules are the leaves of the best tree found for the rows that no pinned rule covers.
    Leaves do not overlap, so those that harm pinned rules least are placed before them. A pinned
    rule moves forward if there are too few leaves before it.

    Parameters
    ----------
    rules : RuleSet
        Rules that do not vote; one rule predicts each row.
    X : array-like or DataFrame of shape (n_rows, n_features)
        The rows.
    labels : ndarray of shape (n_rows,)
        Labels or numbers that the rules should predict.
    pinned : sequence of int, default=()
        Indices of the rules to keep, from 0.
    constraints : Constraints, optional
        Constraints for the new rules.
    max_rules : int, optional
        Largest number of rules; by default the current number.
    limits : SolverLimits, optional
        Limits of the search; by default about 5 seconds, counted as work and thus reproducible.

    Returns
    -------
    RuleSet or None
        None if no rules satisfy the constraints.

    Raises
    ------
    ValueError
        If `max_rules` is below the number of pinned rules.

    Examples
    --------
    >>> import numpy as np
    >>> from skescore.editing import refit
    >>> from skescore.rules import Interval, Rule, RuleSet
    >>> rules = RuleSet(
    ...     [Rule([Interval(0, upper=17)], "no"), Rule([], "no")], ["age"], task="classification",
    ...     classes=["no", "yes"],
    ... )
    >>> X, y = [[16], [17], [30], [50]], np.array(["no", "yes", "yes", "yes"])
    >>> print(refit(rules, X, y, pinned=[0]))
    1. IF age ≤ 17 THEN no
    2. ELSE yes
    """
    rules.check_one_rule_per_row("reoptimize")
    table = RowTable.of(X, rules.feature_names)
    limit = max_rules or len(rules)
    if constraints is not None:
        limit = min(limit, constraints.max_rules or limit)
        # A share of all rows, not of those that no pinned rule covers.
        n_rows = constraints.smallest_support(len(table)) or None
        constraints = constraints.replace(min_support=n_rows)
    n_free = limit - len(pinned)
    if n_free < 0:
        raise ValueError(
            f"max_rules must be at least the number of pinned rules, {len(pinned)}, got {limit!r}."
        )
    # The type of the numbers distinguishes classes from the target of a regression.
    labels = np.asarray(labels).astype(float if rules.classes is None else object)
    kept_rules = [rules[i] for i in sorted(pinned)]
    is_free = np.ones(len(table), dtype=bool)
    if kept_rules:
        is_free = ~rules.replace(rules=kept_rules, fallback=None).covers(table)
    leaves: list[Rule] = []
    if n_free and is_free.any():
        frame = _frame(X, rules.feature_names)
        rows = np.flatnonzero(is_free)
        observed = set(labels[rows].tolist())
        if constraints is not None:
            constraints = _for_classes(constraints, rules, observed)
        max_leaves = 1 if len(observed) == 1 else n_free
        best = _best_tree(take_rows(frame, rows), labels[rows], constraints, max_leaves, limits)
        if best is None:
            return None
        leaves = [replace(leaf, statistics=None) for leaf in best]
    if not kept_rules:
        return rules.replace(rules=leaves, ordered=False, disjoint=True)
    order = _place_pinned(rules, leaves, sorted(pinned), table, labels)
    return rules.replace(rules=order, ordered=True, disjoint=False)


def _for_classes(constraints: Constraints, rules: RuleSet, classes: set[Any]) -> Constraints:
    """Return constraints for rows with some classes of the rules, in the order of the rules."""
    order = constraints.ranked_classes(rules) if constraints.monotone else constraints.class_order
    ranked = [label for label in order or () if label in classes]
    names = {str(label) for label in rules.classes or () if label in classes}
    limits = {}
    for name in ("max_conditions", "max_features", "max_rules_per_class"):
        limit = getattr(constraints, name)
        if isinstance(limit, Mapping):
            limits[name] = {label: n for label, n in limit.items() if label in names}
    return constraints.replace(class_order=ranked if len(ranked) > 1 else None, **limits)


def _frame(X: Any, names: Sequence[str]) -> Any:
    """Return rows with the feature names as columns."""
    if isinstance(X, pd.DataFrame):
        return X.rename(columns=str)[list(names)]
    return pd.DataFrame(np.asarray(X), columns=list(names)).infer_objects()


def _best_tree(
    X: Any,
    labels: np.ndarray,
    constraints: Constraints | None,
    max_rules: int,
    limits: SolverLimits | None,
) -> RuleSet | None:
    wishes = (constraints or Constraints()).replace(pinned=(), max_rules=None)
    # Scores whose metric is the loss of the search.
    scoring = "ice" if labels.dtype.kind == "f" else "fire"
    problem = PriceProblem(wishes, X, labels, "tree", max_rules, scoring, None, None)
    return problem.best_rules(SearchSpace(), limits or SolverLimits(max_work=5.0))


def _place_pinned(
    rules: RuleSet,
    leaves: list[Rule],
    pinned: Sequence[int],
    table: RowTable,
    labels: np.ndarray,
) -> list[Rule]:
    """Place pinned rules at their positions, and the least harmful leaves before them."""
    kept_rules = [rules[i] for i in pinned]
    costs = _added_costs(rules, leaves, kept_rules, table, labels)
    queue = [leaves[i] for i in np.argsort(costs, kind="stable").tolist()]
    result: list[Rule] = []
    for index, rule in zip(pinned, kept_rules, strict=True):
        while len(result) < index and queue:
            result.append(queue.pop(0))
        result.append(rule)
    return result + [leaf for leaf in leaves if leaf in queue]


def _added_costs(
    rules: RuleSet,
    leaves: list[Rule],
    kept_rules: list[Rule],
    table: RowTable,
    labels: np.ndarray,
) -> np.ndarray:
    """Return how much worse each leaf predicts the rows of pinned rules than the pinned rules."""
    base = rules.replace(rules=kept_rules, ordered=True, disjoint=False)
    is_pinned = base.replace(fallback=None).covers(table)
    pinned_cost = _costs(predict_rows(base, table)[0], labels)
    added_costs = []
    for leaf in leaves:
        alone = rules.replace(rules=[leaf], ordered=True, disjoint=False)
        covered = alone.replace(fallback=None).covers(table) & is_pinned
        cost = _costs(predict_rows(alone, table)[0], labels)
        added_costs.append(float((cost - pinned_cost)[covered].sum()))
    return np.array(added_costs)


def _costs(predictions: np.ndarray, labels: np.ndarray) -> np.ndarray:
    if predictions.dtype.kind == "f":
        return np.nan_to_num(np.abs(predictions - labels.astype(float)))
    return np.array([a != b for a, b in zip(predictions, labels.tolist(), strict=True)], float)
