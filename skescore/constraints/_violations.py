"""Violations: rules that violate constraints, with evidence and a remedy."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from skescore._text import plural, value_text
from skescore._validation import check_instance, one_dimension
from skescore.constraints._cells import CellSpace, UndecidableError
from skescore.constraints._constraints import Constraints
from skescore.constraints._monotone import (
    FALLBACK,
    MonotonicityBreach,
    monotonicity_breaches,
    reachable_rules,
)
from skescore.constraints._parts import split
from skescore.constraints._pinned import rule_features
from skescore.constraints._rewriting import accepts
from skescore.metrics import group_masks, labels_of_rules
from skescore.rules import (
    AtLeast,
    Condition,
    Interval,
    OneOf,
    Rule,
    RuleSet,
    convert_rows,
)

#: Largest relative rounding error of the difference between two means.
_GAP_ROUNDING = 1e-12


@dataclass(frozen=True)
class Violation:
    """Constraint that rules violate.

    Parameters
    ----------
    constraint : str
        Label of the constraint, see :meth:`Constraints.parts`.
    rule_index : int or None
        Index of the rule, from 0; None for all rules together, -1 for the fallback.
    evidence : str
        Fact that violates the constraint.
    remedy : str
        Change that removes the violation.
    rows : sequence of mapping, default=()
        For monotonicity: two rows that are predicted in the wrong order, as values by feature name.
        Features that are not named may have any value.
    """

    constraint: str
    rule_index: int | None
    evidence: str
    remedy: str
    rows: tuple[Mapping[str, Any], ...] = field(default=(), hash=False)

    def __str__(self) -> str:
        return f"{self.constraint} is violated: {self.evidence}. {self.remedy}"


def violations(
    ruleset: RuleSet, constraints: Constraints, X: Any = None, y: Any = None
) -> list[Violation]:
    r"""List all violations of constraints by a rule set.

    Parameters
    ----------
    ruleset : RuleSet
        The rules.
    constraints : Constraints
        The constraints.
    X : array-like or DataFrame of shape (n_rows, n_features), optional
        The rows, for `min_support`, `min_precision` and `max_gap`.
    y : array-like of shape (n_rows,), optional
        The labels for `min_precision`: the black box's predictions, or the target.

    Returns
    -------
    list of Violation
        Empty if the rules satisfy all constraints.

    Raises
    ------
    ValueError
        If a constraint names an unknown feature or class, requires rows or labels that are not
        passed, or cannot be decided for these rules.

    Notes
    -----
    Monotonicity is decided for all rows of the domain of the rules, or for all possible rows if
    they have no domain, and not only on rows of a table: every pair of cells between the bounds of
    the conditions is either excluded or shown in the violation.

    Examples
    --------
    >>> from skescore.constraints import Constraints, violations
    >>> from skescore.rules import Fallback, Interval, Rule, RuleSet
    >>> rules = RuleSet(
    ...     [Rule([Interval(0, 20, 30)], "yes")], ["income"], task="classification",
    ...     fallback=Fallback("no"),
    ... )
    >>> constraints = Constraints(monotone={"income": "+"}, thresholds={"income": [18, 30]})
    >>> for violation in violations(rules, constraints):
    ...     print(f"{violation.constraint}\n  {violation.evidence}")
    monotone: income +
      rule 1 predicts yes for income = 25, the fallback predicts no for income = 60
    thresholds: income 18, 30
      rule 1 compares income with 20.0
    """
    check_instance("ruleset", ruleset, RuleSet)
    check_instance("constraints", constraints, Constraints)
    context = _Context(ruleset, constraints, X, y)
    result: list[Violation] = []
    for label, part in split(constraints).items():
        for name, check in _CHECKS.items():
            if getattr(part, name):
                result += check(context, label, part)
    return result


def violated_labels(
    ruleset: RuleSet, constraints: Constraints, X: Any = None, y: Any = None
) -> set[str]:
    """Return the labels of violated constraints, and of those that cannot be decided.

    Parameters
    ----------
    ruleset : RuleSet
        The rules.
    constraints : Constraints
        The constraints.
    X, y : optional
        See :func:`violations`.

    Returns
    -------
    set of str
    """
    context = _Context(ruleset, constraints, X, y)
    labels = set()
    for label, part in split(constraints).items():
        checks = (check for name, check in _CHECKS.items() if getattr(part, name))
        try:
            if any(True for check in checks for _ in check(context, label, part)):
                labels.add(label)
        except UndecidableError:
            labels.add(label)
    return labels


class _Context:
    """Rules, and the rows that some constraints require."""

    def __init__(
        self,
        ruleset: RuleSet,
        constraints: Constraints,
        X: Any,
        y: Any,
        *,
        check_rows: bool = True,
    ) -> None:
        self.ruleset = ruleset
        self.names = ruleset.feature_names
        self.rules = ruleset.rules
        self.constraints = constraints
        self.X = None if X is None else convert_rows(X)
        self.y = None if y is None else one_dimension("y", y)
        columns = None if self.X is None else getattr(self.X, "columns", self.names)
        constraints.check_names(
            self.names, ruleset.classes, None if columns is None else list(map(str, columns))
        )
        if check_rows:
            self._check_rows()

    def _check_rows(self) -> None:
        """Raise a ValueError if constraints require rows or labels that are not passed."""
        constraints = self.constraints
        needed = [n for n in ("min_support", "min_precision") if getattr(constraints, n)]
        needed += ["max_gap"] if constraints.max_gap else []
        if needed and self.X is None:
            raise ValueError(f"{needed[0]} requires rows: pass X.")
        if constraints.min_precision and self.y is None:
            raise ValueError("min_precision compares rules with labels: pass y.")
        if constraints.min_precision:
            self.y = labels_of_rules(self.ruleset, "y", self.y)
        if self.X is not None and self.y is not None and len(self.y) != len(self.X):
            raise ValueError(f"X has {len(self.X)} rows, y has {len(self.y)} labels.")

    @cached_property
    def rows_by_rule(self) -> list[np.ndarray]:
        """Masks of the rows that each rule decides, or covers if rules vote."""
        if self.ruleset.voting is not None:
            return list(self.ruleset.match(self.X).T)
        assigned = self.ruleset.assign(self.X)
        return [assigned == i for i in range(len(self.rules))]

    def limit_of(self, limit: Any, rule: Rule) -> int | None:
        """Return the limit for the class of a rule; None without a limit."""
        return limit.get(str(rule.output)) if isinstance(limit, Mapping) else limit

    def uses(self, feature: str) -> list[int]:
        """Return the indices of the rules that use a feature."""
        index = self.names.index(feature)
        return [i for i, rule in enumerate(self.rules) if index in rule_features(rule)]


def conditions_on(rule: Rule, feature: int) -> Iterator[Condition]:
    """Yield the conditions of a rule on a feature, including those within M-of-N conditions."""
    pending = list(rule.conditions)
    while pending:
        condition = pending.pop(0)
        if isinstance(condition, AtLeast):
            pending = [*condition.conditions, *pending]
        elif feature in condition.features:
            yield condition


def _check_forbidden(context: _Context, label: str, part: Constraints) -> Iterator[Violation]:
    (feature,) = part.forbidden
    for i in context.uses(feature):
        remedy = "Drop the condition or the rule."
        yield Violation(label, i, f"rule {i + 1} uses {feature}", remedy)


def _check_required(context: _Context, label: str, part: Constraints) -> Iterator[Violation]:
    (feature,) = part.required
    if not context.uses(feature):
        remedy = f"Add a rule or a condition on {feature}."
        yield Violation(label, None, f"no rule uses {feature}", remedy)


def _check_cost(context: _Context, label: str, part: Constraints) -> Iterator[Violation]:
    used = [context.names[j] for j in sorted(context.ruleset.used_features)]
    costs = {f: part.feature_costs[f] for f in used if part.feature_costs.get(f)}
    if not part.affords(costs):
        total = sum(costs.values())
        listed = ", ".join(f"{feature} {cost:g}" for feature, cost in costs.items())
        remedy = "Drop the conditions on one of these features."
        yield Violation(label, None, f"the features cost {total:g} ({listed})", remedy)


def _check_monotone(context: _Context, label: str, part: Constraints) -> Iterator[Violation]:
    ((feature, direction),) = part.monotone.items()
    ruleset, index = context.ruleset, context.names.index(feature)
    ranked = context.constraints.ranked_classes(ruleset)
    for breach in monotonicity_breaches(ruleset, index, direction, ranked):
        rule = min(breach.lower_rule, breach.upper_rule)
        if rule == FALLBACK:
            rule = max(breach.lower_rule, breach.upper_rule)
        yield Violation(
            label,
            rule,
            _breach_text(context, breach),
            "Change the prediction of one of these rules, or the bound between them.",
            tuple(
                {context.names[f]: value for f, value in row.items()}
                for row in (breach.lower_row, breach.upper_row)
            ),
        )


def _breach_text(context: _Context, breach: MonotonicityBreach) -> str:
    names = context.names
    conditions_of = context.rules

    def predicts(rule: int, row: Mapping[int, Any]) -> str:
        if rule == FALLBACK:
            assert context.ruleset.fallback is not None
            decider, output = "the fallback", context.ruleset.fallback.output
            tested = set(row)
        else:
            decider = f"rule {rule + 1}"
            output = conditions_of[rule].output_text(names, numeric=context.ruleset.classes is None)
            tested = rule_features(conditions_of[rule]) | {breach.feature}
        values = [
            f"{names[f]} = {value_text(row[f])}"
            for f in sorted(row, key=lambda f: (f != breach.feature, f))
            if f in tested
        ]
        return f"{decider} predicts {output} for {', '.join(values)}"

    lower = predicts(breach.lower_rule, breach.lower_row)
    return f"{lower}, {predicts(breach.upper_rule, breach.upper_row)}"


def _check_pinned(context: _Context, label: str, part: Constraints) -> Iterator[Violation]:
    (pinned,) = part.pinned
    indices = [i for i, r in enumerate(context.rules) if pinned.is_rule(r, context.names)]
    if not indices:
        yield Violation(label, None, "the rules do not contain it", "Add it unchanged.")
    elif pinned.position is not None:
        if pinned.position not in indices:
            evidence = f"it is rule {indices[0] + 1}"
            remedy = f"Move it to position {pinned.position + 1}."
            yield Violation(label, indices[0], evidence, remedy)
        elif pinned.position not in reachable_rules(context.ruleset):
            evidence = f"the rules before rule {pinned.position + 1} decide all of its rows"
            remedy = "Change one of them so that some rows are left."
            yield Violation(label, pinned.position, evidence, remedy)
    else:
        for before in _rules_that_preempt(context, indices[0]):
            evidence = f"rule {before + 1} decides rows that satisfy rule {indices[0] + 1}"
            remedy = f"Move rule {indices[0] + 1} before rule {before + 1}."
            yield Violation(label, indices[0], evidence, remedy)


def _rules_that_preempt(context: _Context, index: int) -> list[int]:
    """Return the rules that precede a rule and share rows with it, except pinned ones."""
    order = [int(i) for i in context.ruleset.assignment_order]
    before = [i for i in order[: order.index(index)] if not _is_pinned(context, context.rules[i])]
    return [i for i in before if overlap(context.ruleset, i, index)]


def _is_pinned(context: _Context, rule: Rule) -> bool:
    return any(pinned.is_rule(rule, context.names) for pinned in context.constraints.pinned)


def overlap(ruleset: RuleSet, one: int, other: int) -> bool:
    """Return whether some row of the domain satisfies two rules."""
    rules = ruleset.rules[one], ruleset.rules[other]
    space = CellSpace.of_rules(rules, ruleset.domain)
    return bool(space.boxes([*rules[0].conditions, *rules[1].conditions]))


def _check_thresholds(context: _Context, label: str, part: Constraints) -> Iterator[Violation]:
    ((name, allowed),) = part.thresholds.items()
    for feature, feature_name in enumerate(context.names):
        if context.constraints.allowed_thresholds(feature_name) is not allowed:
            continue
        if name not in ("*", feature_name):
            continue
        for i, rule in enumerate(context.rules):
            for bound in bounds_on(rule, feature):
                if not allowed.allows(bound):
                    near = " or ".join(f"{value:g}" for value in dict.fromkeys(allowed.near(bound)))
                    evidence = f"rule {i + 1} compares {feature_name} with {bound!r}"
                    yield Violation(label, i, evidence, f"Use {near}.")


def bounds_on(rule: Rule, feature: int) -> list[float]:
    """Return the finite bounds in the conditions of a rule on a feature."""
    return [
        bound
        for condition in conditions_on(rule, feature)
        if isinstance(condition, Interval)
        for bound in (condition.lower, condition.upper)
        if np.isfinite(bound)
    ]


def _check_groups(context: _Context, label: str, part: Constraints) -> Iterator[Violation]:
    is_together = bool(part.together)
    ((feature, (group,)),) = (part.together or part.apart).items()
    index = context.names.index(feature)
    for i, rule in enumerate(context.rules):
        for condition in conditions_on(rule, index):
            if not isinstance(condition, OneOf | Interval):
                continue
            accepted = [v for v in group if accepts(condition, v)]
            if is_together and 0 < len(accepted) < len(group):
                evidence = f"rule {i + 1} separates {accepted[0]} from the others"
                yield Violation(label, i, evidence, "Accept all of them or none.")
            elif not is_together and len(accepted) > 1:
                evidence = f"rule {i + 1} accepts {' and '.join(map(str, accepted))}"
                yield Violation(label, i, evidence, "Split the rule by these values.")


def _check_max_conditions(context: _Context, label: str, part: Constraints) -> Iterator[Violation]:
    for i, rule in enumerate(context.rules):
        limit = context.limit_of(part.max_conditions, rule)
        if limit is not None and rule.n_conditions > limit:
            evidence = f"rule {i + 1} has {plural(rule.n_conditions, 'condition')}"
            yield Violation(label, i, evidence, "Drop conditions of the rule.")


def _check_max_features(context: _Context, label: str, part: Constraints) -> Iterator[Violation]:
    limits = part.max_features
    by_class: Mapping[Any, Any] = limits if isinstance(limits, Mapping) else {None: limits}
    for class_name, limit in by_class.items():
        rules = [r for r in context.rules if class_name is None or str(r.output) == class_name]
        features = sorted(set().union(*map(rule_features, rules)))
        if len(features) > limit:
            listed = ", ".join(context.names[j] for j in features)
            of_class = "" if class_name is None else f" of class {class_name}"
            evidence = f"the rules{of_class} use {plural(len(features), 'feature')}: {listed}"
            yield Violation(label, None, evidence, "Drop the conditions on some of them.")


def _check_max_rules(context: _Context, label: str, part: Constraints) -> Iterator[Violation]:
    n_rules = len(context.rules)
    if part.max_rules is not None and n_rules > part.max_rules:
        yield Violation(label, None, f"there are {plural(n_rules, 'rule')}", "Drop or merge rules.")


def _check_rules_per_class(context: _Context, label: str, part: Constraints) -> Iterator[Violation]:
    limits = part.max_rules_per_class
    for output in dict.fromkeys(rule.output for rule in context.rules):
        n_rules = sum(rule.output == output for rule in context.rules)
        limit = limits.get(str(output)) if isinstance(limits, Mapping) else limits
        if limit is not None and n_rules > limit:
            evidence = f"{plural(n_rules, 'rule')} conclude {output}"
            yield Violation(label, None, evidence, "Drop or merge rules of this class.")


def _check_support(context: _Context, label: str, part: Constraints) -> Iterator[Violation]:
    assert context.X is not None
    smallest = part.smallest_support(len(context.X))
    if not context.rules:
        remedy = "Add a rule that enough rows satisfy."
        yield Violation(label, None, "there is no rule", remedy)
    for i, rows in enumerate(context.rows_by_rule):
        if rows.sum() < smallest:
            evidence = (
                f"rule {i + 1} decides {plural(int(rows.sum()), 'row')}, fewer than {smallest}"
            )
            yield Violation(label, i, evidence, "Drop the rule or widen its bounds.")


def _check_precision(context: _Context, label: str, part: Constraints) -> Iterator[Violation]:
    assert part.min_precision is not None
    assert context.y is not None
    for i, rows in enumerate(context.rows_by_rule):
        if not rows.any():
            evidence = f"rule {i + 1} decides no row"
            yield Violation(label, i, evidence, "Drop the rule or widen its bounds.")
            continue
        precision = float(np.mean(context.y[rows] == context.rules[i].output))
        if precision < part.min_precision:
            evidence = f"{precision:.4g} of the rows of rule {i + 1} have its class"
            yield Violation(label, i, evidence, "Add conditions to the rule or drop it.")


def _check_gap(context: _Context, label: str, part: Constraints) -> Iterator[Violation]:
    ((column, limit),) = part.max_gap.items()
    gap = group_gap(context.ruleset, context.constraints, context.X, column)
    if gap.exceeds(limit):
        remedy = f"Use fewer conditions that separate the groups of {column}."
        yield Violation(label, None, gap.description, remedy)


class GroupGap(NamedTuple):
    """Lowest and highest mean of the predictions for groups of rows."""

    low: float
    high: float
    description: str = ""

    @property
    def size(self) -> float:
        """Difference between the means."""
        return self.high - self.low

    def exceeds(self, limit: float) -> bool:
        """Return whether the means differ by more than a limit, up to rounding."""
        return self.size > limit + _GAP_ROUNDING * max(abs(self.low), abs(self.high))


def group_gap(ruleset: RuleSet, constraints: Constraints, X: Any, column: str) -> GroupGap:
    """Return the largest difference between groups of rows in the predictions.

    Rows without a prediction count for no class; in regression they are ignored.

    Parameters
    ----------
    ruleset : RuleSet
        The rules.
    constraints : Constraints
        Constraints whose `class_order` determines the class.
    X : array-like or DataFrame
        The rows.
    column : str
        Name of the column whose values are the groups.

    Returns
    -------
    GroupGap
    """
    groups = group_masks(X, ruleset.feature_names, column)
    predictions = _predictions(ruleset, X)
    largest = GroupGap(0.0, 0.0, f"the groups of {column} do not differ")
    for name, values in _favorable(predictions, ruleset, constraints):
        has_value = ~np.isnan(values)
        means = {
            group: float(values[mask & has_value].mean())
            for group, mask in groups.items()
            if (mask & has_value).any()
        }
        if not means:
            continue
        low, high = min(means, key=means.__getitem__), max(means, key=means.__getitem__)
        if means[high] - means[low] > largest.size:
            largest = GroupGap(
                means[low],
                means[high],
                f"{name} is {means[high]:.4g} for {column} = {high} and {means[low]:.4g} for "
                f"{column} = {low}",
            )
    return largest


def _predictions(ruleset: RuleSet, X: Any) -> np.ndarray:
    """Return the predictions; rows without one have None, or NaN in regression."""
    if ruleset.fallback is not None:
        return np.asarray(ruleset.predict(X))
    predictions = ruleset.with_arbitrary_fallback().predict(X)
    result = np.array(predictions, dtype=float if ruleset.classes is None else object)
    result[~ruleset.covers(X)] = None
    return result


def _favorable(
    predictions: np.ndarray, ruleset: RuleSet, constraints: Constraints
) -> Iterator[tuple[str, np.ndarray]]:
    """Yield the names and values of compared quantities: shares of classes, or predictions."""
    if ruleset.classes is None:
        yield "the mean prediction", np.asarray(predictions, dtype=float)
        return
    for label in gap_classes(ruleset.classes, constraints):
        is_label = [prediction == label for prediction in predictions.tolist()]
        yield f"the share of {label}", np.array(is_label, dtype=float)


def gap_classes(classes: Any, constraints: Constraints) -> tuple[Any, ...]:
    """Return the classes whose shares `max_gap` compares between groups."""
    if constraints.class_order is not None:
        return (constraints.class_order[-1],)
    return (classes[-1],) if len(classes) == 2 else tuple(classes)


#: Check of each parameter.
_CHECKS: dict[str, Callable[[_Context, str, Constraints], Iterator[Violation]]] = {
    "forbidden": _check_forbidden,
    "required": _check_required,
    "feature_costs": _check_cost,
    "monotone": _check_monotone,
    "pinned": _check_pinned,
    "thresholds": _check_thresholds,
    "together": _check_groups,
    "apart": _check_groups,
    "max_conditions": _check_max_conditions,
    "max_features": _check_max_features,
    "max_rules": _check_max_rules,
    "max_rules_per_class": _check_rules_per_class,
    "min_support": _check_support,
    "min_precision": _check_precision,
    "max_gap": _check_gap,
}
