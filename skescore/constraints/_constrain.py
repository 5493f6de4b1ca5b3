"""Rules that satisfy constraints: learned under them, repaired, or rejected."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from skescore._text import plural
from skescore._validation import check_instance, own_rows
from skescore.constraints._conflict import check_feasible
from skescore.constraints._constraints import Constraints
from skescore.constraints._labeled_rows import LabeledRows
from skescore.constraints._minimal import minimal_lists
from skescore.constraints._parts import split
from skescore.constraints._repair import repair
from skescore.constraints._violations import Violation, violated_labels, violations
from skescore.metrics import labels_of_rules
from skescore.rules import RuleSet, as_ruleset, convert_rows, with_statistics

#: Maximum number of minimal lists that are examined before rules are rejected.
_MAX_MINIMAL_LISTS = 150

#: Outcomes for a constraint, with their descriptions.
OUTCOMES = {
    "native": "honored by the extraction",
    "satisfied": "satisfied without a change",
    "repaired": "satisfied by a repair",
    "replaced": "satisfied by a minimal list that replaces the rules",
    "rejected": "not satisfied",
}


@dataclass(frozen=True)
class ConstrainedRules:
    """Rules, and how each constraint was satisfied.

    Parameters
    ----------
    ruleset : RuleSet or None
        The rules; None if they were rejected.
    outcomes : mapping of str to str
        Outcome for the label of each constraint: ``"native"`` if the extraction respected it,
        ``"satisfied"`` without a change, ``"repaired"``, ``"replaced"`` by a minimal list, or
        ``"rejected"``.
    violations : tuple of Violation, default=()
        Violations by the best attempt, if the rules were rejected.
    """

    ruleset: RuleSet | None
    outcomes: Mapping[str, str]
    violations: tuple[Violation, ...] = ()

    @property
    def is_rejected(self) -> bool:
        """True if no rules that satisfy all constraints were found."""
        return self.ruleset is None

    @property
    def n_repaired(self) -> int:
        """Number of constraints that the rules of the extraction violated."""
        return sum(outcome in ("repaired", "replaced") for outcome in self.outcomes.values())

    def __str__(self) -> str:
        lines = [f"{label}: {OUTCOMES[outcome]}" for label, outcome in self.outcomes.items()]
        return "\n".join([*lines, *map(str, self.violations)])


class RejectedRulesError(ValueError):
    """Error for rules that could not be repaired, although no contradiction is proven.

    Parameters
    ----------
    result : ConstrainedRules
        Outcome of the best attempt.
    """

    def __init__(self, result: ConstrainedRules) -> None:
        broken = plural(len({v.constraint for v in result.violations}), "constraint")
        listed = "".join(f"\n  {violation}" for violation in result.violations[:5])
        super().__init__(
            f"No rules were obtained that satisfy all constraints. The best attempt violates "
            f"{broken}, which may contradict other constraints:{listed}"
        )
        self.result = result

    def __reduce__(self) -> tuple[Any, ...]:
        return RejectedRulesError, (self.result,)


def constrain(
    source: Any, constraints: Constraints, X: Any, y: Any = None, *, black_box: Any = None
) -> ConstrainedRules:
    """Extract rules that satisfy constraints, or repair rules.

    Parameters
    ----------
    source : extractor, RuleSet or model
        An extractor of this package, which is cloned and fitted on (X, y) with the constraints; or
        rules (or a model that :func:`as_ruleset` reads) to repair.
    constraints : Constraints
        The constraints.
    X : array-like or DataFrame of shape (n_rows, n_features)
        The rows.
    y : array-like of shape (n_rows,), optional
        Target for an extractor without a fitted black box; for rules, the labels to explain.
    black_box : estimator or callable, optional
        For rules: model whose predictions they explain, instead of `y`.

    Returns
    -------
    ConstrainedRules
        Rules, and how each constraint was satisfied; no rules if they were rejected.

    Raises
    ------
    InfeasibleConstraintsError
        If constraints contradict each other; the error names a minimal subset.
    ValueError
        If a constraint names an unknown feature or class.

    Notes
    -----
    Extractors respect some constraints themselves: they ignore forbidden features, round columns
    with allowed thresholds, and learn only from rows that pinned rules do not decide. CART's splits
    respect monotone directions. Other constraints are satisfied by a repair of the rules
    (``repair``). If that fails, a minimal list replaces them: the pinned rules and an otherwise
    constant prediction.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> from skescore.constraints import Constraints, constrain
    >>> from skescore.extractors import CARTExtractor
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> extractor = CARTExtractor(KNeighborsClassifier(9), max_leaf_nodes=4, random_state=0)
    >>> constraints = Constraints(
    ...     forbidden=["petal width (cm)"], thresholds={"*": {"decimals": 0}}, max_rules=3
    ... )
    >>> result = constrain(extractor, constraints, X, y)
    >>> print(result.ruleset)
    1. IF petal length (cm) ≤ 2 THEN 0   [50 rows, 100 % agree with the model, 100 % right (data)]
    2. ELSE IF petal length (cm) ≤ 5 THEN 1
       [58 rows, 84 % agree with the model, 84 % right (data)]
    3. ELSE 2   [42 rows, 100 % agree with the model, 98 % right (data)]
    >>> print(result)
    forbidden: petal width (cm): honored by the extraction
    thresholds: * 0 decimals: honored by the extraction
    max_rules: 3: honored by the extraction
    """
    check_instance("constraints", constraints, Constraints)
    if hasattr(source, "set_constraints"):
        return _fitted(source, constraints, X, y)
    ruleset = source if isinstance(source, RuleSet) else as_ruleset(source)
    X = convert_rows(X)
    labels = y
    if black_box is not None:
        predict = black_box.predict if hasattr(black_box, "predict") else black_box
        labels = predict(own_rows(X))
    if labels is None:
        raise ValueError("Repairing rules requires labels: pass y or black_box.")
    labels = labels_of_rules(ruleset, "y" if black_box is None else "black_box", labels)
    check_feasible(constraints, ruleset, X, labels)
    return enforce(ruleset, constraints, X, labels)


def _fitted(extractor: Any, constraints: Constraints, X: Any, y: Any) -> ConstrainedRules:
    from sklearn.base import clone

    candidate = clone(extractor).set_constraints(constraints)
    try:
        candidate.fit(X) if y is None else candidate.fit(X, y)
    except RejectedRulesError as error:
        return error.result
    # Unlike the constrained rules, `rules_` have statistics of the target.
    return ConstrainedRules(
        candidate.rules_, candidate.constrained_rules_.outcomes if constraints else {}
    )


def enforce(
    ruleset: RuleSet,
    constraints: Constraints,
    X: Any,
    labels: Any,
    native: Collection[str] = (),
) -> ConstrainedRules:
    """Return rules that satisfy constraints: the same rules if they do, otherwise repaired ones.

    Parameters
    ----------
    ruleset : RuleSet
        The rules.
    constraints : Constraints
        The constraints, which must not be contradictory.
    X : array-like or DataFrame of shape (n_rows, n_features)
        The rows.
    labels : array-like of shape (n_rows,)
        Labels that the rules explain.
    native : collection of str, default=()
        Labels of the constraints that the extraction took into account.

    Returns
    -------
    ConstrainedRules
    """
    labels = np.asarray(labels)
    if ruleset.domain is None:
        # Without a domain, a minimal list would have to decide rows that cannot exist.
        ruleset = ruleset.replace(domain=ruleset.domain_around(X))
    violated = violated_labels(ruleset, constraints, X, labels)
    outcomes = {
        label: "repaired" if label in violated else "native" if label in native else "satisfied"
        for label in split(constraints)
    }
    if not violated and len(ruleset):
        return ConstrainedRules(ruleset, outcomes)
    rows = LabeledRows(X, labels, ruleset)
    repaired = repair(ruleset, constraints, rows)
    remaining = violations(repaired, constraints, X, labels)
    if not remaining:
        return ConstrainedRules(repaired, outcomes)
    for i, candidate in enumerate(minimal_lists(ruleset, constraints, rows)):
        if not violations(candidate, constraints, X, labels):
            replaced = {
                label: "replaced" if outcome == "repaired" else outcome
                for label, outcome in outcomes.items()
            }
            return ConstrainedRules(candidate, replaced)
        if i >= _MAX_MINIMAL_LISTS:
            break
    broken = {violation.constraint for violation in remaining}
    rejected = {
        label: "rejected" if label in broken else outcome for label, outcome in outcomes.items()
    }
    return ConstrainedRules(None, rejected, tuple(remaining))


def enforce_on_tree(
    leaves: RuleSet,
    constraints: Constraints,
    X: Any,
    labels: Any,
    max_rules: int | None = None,
    native: Collection[str] = (),
) -> ConstrainedRules:
    """Return rules that satisfy constraints, from the leaves of a tree that ignores monotonicity.

    The leaves get the outputs with the smallest loss that respect all directions. An exact
    simplification then merges them into fewer rules.

    Parameters
    ----------
    leaves : RuleSet
        Leaves of a tree, possibly more than `max_rules`.
    constraints : Constraints
        The constraints, some of them on monotonicity.
    X : array-like or DataFrame of shape (n_rows, n_features)
        The rows.
    labels : array-like of shape (n_rows,)
        Labels that the rules explain.
    max_rules : int, optional
        Largest number of rules, in addition to the limit of the constraints.
    native : collection of str, default=()
        Labels of the constraints that the extraction took into account.

    Returns
    -------
    ConstrainedRules
    """
    monotone = Constraints(monotone=constraints.monotone, class_order=constraints.class_order)
    directed = enforce(leaves, monotone, X, labels).ruleset
    if directed is None:
        return ConstrainedRules(None, {})
    limits = [limit for limit in (max_rules, constraints.max_rules) if limit is not None]
    limited = constraints.replace(max_rules=min(limits) if limits else None)
    fewer = with_statistics(directed.simplify(), X, labels)
    result = enforce(fewer, limited, X, labels, native)
    outcomes = {label: result.outcomes.get(label, "satisfied") for label in split(constraints)}
    # The outputs were changed above.
    outcomes |= dict.fromkeys(split(monotone), "repaired")
    return replace(result, outcomes=outcomes)


def most_faithful(results: Sequence[ConstrainedRules], X: Any, labels: Any) -> ConstrainedRules:
    """Return the rules that agree most with the labels, the first of equally good ones.

    Parameters
    ----------
    results : sequence of ConstrainedRules
        At least one result; rejected ones are returned only if all are rejected.
    X : array-like or DataFrame of shape (n_rows, n_features)
        The rows.
    labels : array-like of shape (n_rows,)
        Labels of the rows.

    Returns
    -------
    ConstrainedRules
    """

    def loss(result: ConstrainedRules) -> float:
        if result.ruleset is None:
            return math.inf
        predictions = result.ruleset.predict(X)
        if result.ruleset.classes is not None:
            return float(np.mean(predictions != labels))
        return float(np.mean((predictions - labels) ** 2))

    return min(results, key=loss)
