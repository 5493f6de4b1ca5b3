"""Contradictions between constraints, proven and reduced to a minimal subset."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, permutations
from typing import Any

import numpy as np

from skescore._text import plural
from skescore.constraints._cells import CellSpace
from skescore.constraints._constraints import Constraints
from skescore.constraints._labeled_rows import LabeledRows
from skescore.constraints._monotone import DecisionRegions, check_ordered
from skescore.constraints._parts import split
from skescore.constraints._pinned import PinnedRule
from skescore.constraints._regions import Clause, RegionSearch, outside
from skescore.constraints._violations import _CHECKS, _Context, gap_classes, group_masks
from skescore.rules import LinearOutput, Rule, RuleSet, convert_rows

#: Largest number of pinned rules whose orders are all examined.
_MAX_PINNED = 5


@dataclass(frozen=True)
class Conflict:
    """Constraints that no rules satisfy together, while all but any one of them can be satisfied.

    Parameters
    ----------
    labels : tuple of str
        Labels of the constraints, see :meth:`Constraints.parts`.
    reason : str
        Why they contradict each other.
    """

    labels: tuple[str, ...]
    reason: str

    def __str__(self) -> str:
        listed = "".join(f"\n  {label}" for label in self.labels)
        if len(self.labels) == 1:
            return f"no rules satisfy this constraint, because {self.reason}:{listed}"
        return f"no rules satisfy these constraints together, because {self.reason}:{listed}"


class InfeasibleConstraintsError(ValueError):
    """Error for constraints that contradict each other.

    Parameters
    ----------
    conflict : Conflict
        A minimal set of contradicting constraints.
    """

    def __init__(self, conflict: Conflict) -> None:
        super().__init__(f"The constraints contradict each other: {conflict}")
        self.conflict = conflict

    def __reduce__(self) -> tuple[Any, ...]:
        return InfeasibleConstraintsError, (self.conflict,)


def find_conflict(
    constraints: Constraints, ruleset: RuleSet, X: Any = None, y: Any = None
) -> Conflict | None:
    """Find constraints that contradict each other.

    Parameters
    ----------
    constraints : Constraints
        The constraints.
    ruleset : RuleSet
        Any rules with the feature names, classes and domain in question; without rules it may be
        made by ``RuleSet([], names, task=..., classes=...)``.
    X : array-like or DataFrame of shape (n_rows, n_features), optional
        Rows, for the constraints on support, precision and gaps.
    y : array-like of shape (n_rows,), optional
        Their labels.

    Returns
    -------
    Conflict or None
        A minimal subset that is proven to be contradictory. None if no contradiction is proven.

    Notes
    -----
    Contradictions are proven by necessary conditions, such as limits of the number of rules that
    enough rows allow, and by the exact comparison of pinned rules along monotone features. Single
    constraints are dropped one by one as long as the rest is still contradictory, so that the
    subset is minimal.

    Examples
    --------
    >>> from skescore.constraints import Constraints, find_conflict
    >>> from skescore.rules import RuleSet
    >>> rules = RuleSet([], ["age", "income"], task="classification", classes=["no", "yes"])
    >>> print(find_conflict(Constraints(forbidden=["age"], required=["age", "income"]), rules))
    no rules satisfy these constraints together, because 'age' is forbidden and required:
      forbidden: age
      required: age
    """
    columns = None if X is None else getattr(X, "columns", ruleset.feature_names)
    constraints.check_names(
        ruleset.feature_names, ruleset.classes, None if columns is None else list(map(str, columns))
    )
    for feature in constraints.monotone:
        index = ruleset.feature_names.index(feature)
        space = CellSpace([], ruleset.domain, [index])
        check_ordered(space.cells[0], feature)
    rows = None
    if X is not None and len(X):
        X = convert_rows(X)
        labels = np.zeros(len(X)) if y is None else y
        rows = LabeledRows(X, labels, ruleset)
    prover = _Prover(ruleset, rows, has_labels=y is not None)
    if prover.reason(constraints) is None:
        return None
    labels = list(split(constraints))
    for label in list(labels):
        fewer = [one for one in labels if one != label]
        if prover.reason(constraints.only(fewer)) is not None:
            labels = fewer
    reason = prover.reason(constraints.only(labels))
    assert reason is not None
    return Conflict(tuple(labels), reason)


def check_feasible(constraints: Constraints, ruleset: RuleSet, X: Any, y: Any = None) -> None:
    """Raise an InfeasibleConstraintsError if constraints contradict each other."""
    conflict = find_conflict(constraints, ruleset, X, y)
    if conflict is not None:
        raise InfeasibleConstraintsError(conflict)


class _Prover:
    """Necessary conditions of feasible constraints."""

    def __init__(self, ruleset: RuleSet, rows: LabeledRows | None, *, has_labels: bool) -> None:
        self.ruleset = ruleset
        self.names = list(ruleset.feature_names)
        self.rows = rows
        self.has_labels = has_labels

    def reason(self, constraints: Constraints) -> str | None:
        """Return why constraints are contradictory, None if no proof succeeds."""
        proofs = (
            self._features,
            self._pinned_parts,
            self._positions,
            self._sizes,
            self._support,
            self._precision,
            self._pinned_orders,
        )
        return next((text for proof in proofs for text in proof(constraints)), None)

    def _features(self, constraints: Constraints) -> Iterator[str]:
        for feature in constraints.required:
            if feature in constraints.forbidden:
                yield f"{feature!r} is forbidden and required"
        pinned = [f for p in constraints.pinned for f in p.feature_names]
        needed = list(dict.fromkeys([*constraints.required, *pinned]))
        costs = [constraints.feature_costs.get(f, 0.0) for f in needed]
        if constraints.max_cost is not None and sum(costs) > constraints.max_cost:
            yield f"the needed features cost {sum(costs):g}"
        limit = constraints.max_features
        if isinstance(limit, int) and len(needed) > limit:
            yield f"{plural(len(needed), 'feature')} are needed"
        if isinstance(limit, Mapping) and self.ruleset.classes is not None:
            labels = [str(label) for label in self.ruleset.classes]
            if set(labels) <= set(limit) and len(needed) > sum(limit.values()):
                yield f"{plural(len(needed), 'feature')} are needed"
            for label in labels:
                rules = [p for p in constraints.pinned if str(p.rule.output) == label]
                used = {f for p in rules for f in p.feature_names}
                if len(used) > limit.get(label, math.inf):
                    yield f"pinned rules of class {label} use {plural(len(used), 'feature')}"

    def _pinned_parts(self, constraints: Constraints) -> Iterator[str]:
        """Check single pinned rules: everything but the number of rows and their order."""
        for pinned in constraints.pinned:
            rule = pinned.in_table(self.names)
            alone = self.ruleset.replace(rules=[rule], fallback=None, voting=None, ordered=True)
            context = _Context(alone, constraints, None, None, check_rows=False)
            for label, part in split(constraints).items():
                for name in ("forbidden", "thresholds", "together", "apart", "max_conditions"):
                    if getattr(part, name):
                        for violation in _CHECKS[name](context, label, part):
                            yield violation.evidence.replace("rule 1", f"the pinned rule {pinned}")

    def _positions(self, constraints: Constraints) -> Iterator[str]:
        positioned = [p for p in constraints.pinned if p.position is not None]
        for one, other in combinations(positioned, 2):
            if one.position == other.position and not self._are_equal(one, other):
                yield f"two pinned rules are to be rule {(one.position or 0) + 1}"
        last = max((p.position or 0 for p in positioned), default=-1) + 1
        largest, text = self._largest_number(constraints)
        n_pinned = len({self._key(p) for p in constraints.pinned})
        if last > largest:
            yield f"a pinned rule is to be rule {last}, but there are at most {text}"
        elif n_pinned > largest:
            yield f"{plural(n_pinned, 'rule')} are pinned, but there are at most {text}"

    def _key(self, pinned: PinnedRule) -> Any:
        rule = pinned.in_table(self.names)
        return frozenset(rule.conditions), rule.output

    def _are_equal(self, one: PinnedRule, other: PinnedRule) -> bool:
        return bool(self._key(one) == self._key(other))

    def _largest_number(self, constraints: Constraints) -> tuple[float, str]:
        """Return the largest number of rules, and its description."""
        largest = math.inf if constraints.max_rules is None else float(constraints.max_rules)
        limit = constraints.max_rules_per_class
        if self.ruleset.classes is not None and limit is not None:
            labels = [str(label) for label in self.ruleset.classes]
            by_class = limit if isinstance(limit, Mapping) else dict.fromkeys(labels, limit)
            if set(labels) <= set(by_class):
                largest = min(largest, sum(by_class.values()))
        if self.rows is not None and constraints.min_support is not None:
            largest = min(largest, len(self.rows) // constraints.smallest_support(len(self.rows)))
        text = "0 rules" if largest == 0 else plural(int(min(largest, 1e9)), "rule")
        return largest, text

    def _sizes(self, constraints: Constraints) -> Iterator[str]:
        largest, text = self._largest_number(constraints)
        if largest < 1 and constraints.min_support is None:
            yield f"there are at most {text}"
        limits = constraints.max_rules_per_class
        for output in dict.fromkeys(p.rule.output for p in constraints.pinned):
            keys = {self._key(p) for p in constraints.pinned if p.rule.output == output}
            limit = limits.get(str(output)) if isinstance(limits, Mapping) else limits
            if limit is not None and len(keys) > limit:
                yield f"{plural(len(keys), 'pinned rule')} conclude {output}"
        if self.ruleset.classes is None:
            return  # linear outputs use features without conditions
        pinned = {f for p in constraints.pinned for f in p.feature_names}
        missing = [f for f in constraints.required if f not in pinned]
        n_free = largest - len({self._key(p) for p in constraints.pinned})
        slots = n_free * self._most_conditions(constraints) if n_free > 0 else 0
        if len(missing) > slots:
            features = plural(len(missing), "required feature")
            yield f"{features} need more conditions than {text} have"

    def _most_conditions(self, constraints: Constraints) -> float:
        limit = constraints.max_conditions
        if isinstance(limit, Mapping):
            labels = [str(label) for label in self.ruleset.classes or ()]
            return max((limit.get(label, math.inf) for label in labels), default=math.inf)
        return math.inf if limit is None else limit

    def _support(self, constraints: Constraints) -> Iterator[str]:
        if constraints.min_support is None or self.rows is None:
            return
        n_rows = len(self.rows)
        smallest = constraints.smallest_support(n_rows)
        if smallest > n_rows:
            yield f"there are only {plural(n_rows, 'row')}"
        for pinned in constraints.pinned:
            mask = self.rows.mask(pinned.in_table(self.names).conditions)
            if mask.sum() < smallest:
                yield f"only {plural(int(mask.sum()), 'row')} satisfy the pinned rule {pinned}"

    def _precision(self, constraints: Constraints) -> Iterator[str]:
        precision = constraints.min_precision
        if precision is None or self.rows is None or not self.has_labels:
            return
        if constraints.min_support is None or self.rows.classes is None:
            return
        smallest = constraints.smallest_support(len(self.rows))
        fixed = [p.in_table(self.names) for p in constraints.pinned]
        pinned_features = {f for p in constraints.pinned for f in p.feature_names}
        required = set(constraints.required) - pinned_features
        if fixed and not required:
            return
        if any(p.position is not None for p in constraints.pinned):
            fixed = []  # rules in front of them may decide any row
        remaining = self.rows.assign(fixed) < 0 if fixed else self.rows.overall
        counts = self.rows.counts(remaining)
        limits = constraints.max_rules_per_class
        best = 0
        for label, n_rows in zip(self.rows.classes, counts.tolist(), strict=True):
            limit = limits.get(str(label)) if isinstance(limits, Mapping) else limits
            best = max(best, n_rows if limit != 0 else 0)
        if best < precision * smallest - 1e-9:
            yield f"no class has {math.ceil(precision * smallest - 1e-9)} rows"

    # --- pinned rules that decide before all others -----------------------------------------------

    def _pinned_orders(self, constraints: Constraints) -> Iterator[str]:
        """Check all orders of pinned rules that no other rule precedes."""
        orders = self._orders(constraints)
        reason = None
        for order in orders:
            reason = self._reason_of_order(order, constraints)
            if reason is None:
                return
        if reason is not None:
            yield reason

    def _orders(self, constraints: Constraints) -> list[list[tuple[PinnedRule, Rule]]]:
        """Return the orders of pinned rules; none if other rules may stand before them."""
        pinned = list({self._key(p): p for p in constraints.pinned}.values())
        positions = sorted(p.position for p in pinned if p.position is not None)
        if not pinned or len(pinned) > _MAX_PINNED or len(pinned) < len(constraints.pinned):
            return []
        if positions != list(range(len(positions))):
            return []
        pairs = [(p, p.in_table(self.names)) for p in pinned]
        return [
            list(order)
            for order in permutations(pairs)
            if all(p.position is None or p.position == i for i, (p, _) in enumerate(order))
        ]

    def _reason_of_order(
        self, order: Sequence[tuple[PinnedRule, Rule]], constraints: Constraints
    ) -> str | None:
        rules = [rule for _, rule in order]
        listed = self.ruleset.replace(rules=rules, fallback=None, voting=None, ordered=True)
        reasons = (
            *self._unreachable(order, listed),
            *self._weak_in_order(order, constraints),
            *self._not_monotone(order, listed, constraints),
            *self._gap_of_order(rules, constraints),
        )
        return next(iter(reasons), None)

    def _unreachable(
        self, order: Sequence[tuple[PinnedRule, Rule]], listed: RuleSet
    ) -> Iterator[str]:
        if all(p.position is None for p, _ in order):
            return
        deciders = DecisionRegions(listed).deciders
        for i, (pinned, _) in enumerate(order):
            if pinned.position is not None and i not in deciders:
                yield f"earlier pinned rules decide all rows of the pinned rule {pinned}"

    def _weak_in_order(
        self, order: Sequence[tuple[PinnedRule, Rule]], constraints: Constraints
    ) -> Iterator[str]:
        if self.rows is None:
            return
        smallest = constraints.smallest_support(len(self.rows))
        precision = constraints.min_precision
        assigned = self.rows.assign([rule for _, rule in order])
        for i, (pinned, rule) in enumerate(order):
            mask = assigned == i
            if mask.sum() < smallest:
                rows = plural(int(mask.sum()), "row")
                yield f"the pinned rule {pinned} decides only {rows} after the others"
            if precision and self.has_labels and self.rows.classes is not None and mask.any():
                code = self.rows.classes.index(rule.output)
                share = float(np.mean(self.rows.codes[mask] == code))
                if share < precision:
                    yield f"only {share:.3g} of the rows of the pinned rule {pinned} have its class"

    def _not_monotone(
        self,
        order: Sequence[tuple[PinnedRule, Rule]],
        listed: RuleSet,
        constraints: Constraints,
    ) -> Iterator[str]:
        """Compare the rows of pinned rules along all monotone features together."""
        if not constraints.monotone:
            return
        rank = _ranks(constraints, self.ruleset)
        monotone = {self.names.index(f): d for f, d in constraints.monotone.items()}
        space = CellSpace.of_rules(listed.rules, listed.domain, monotone)
        boxes = [space.boxes(rule.conditions) for _, rule in order]
        for i, (one, first_rule) in enumerate(order):
            for j, (other, second_rule) in enumerate(order):
                low, high = rank(first_rule.output), rank(second_rule.output)
                if low is None or high is None or low <= high or i == j:
                    continue
                if _precedes(space, boxes, i, j, monotone):
                    yield (
                        f"the pinned rule {one} applies to lower rows than the pinned rule {other}"
                    )

    def _gap_of_order(self, rules: Sequence[Rule], constraints: Constraints) -> Iterator[str]:
        if self.rows is None or self.rows.classes is None:
            return
        assigned = self.rows.assign(rules)
        for column, limit in constraints.max_gap.items():
            groups = group_masks(self.rows.X, self.names, column)
            for label in gap_classes(self.ruleset.classes, constraints):
                chosen = [i for i, rule in enumerate(rules) if rule.output == label]
                fixed = np.isin(assigned, chosen)
                lowest = [float(fixed[m].mean()) for m in groups.values()]
                highest = [float((fixed | (assigned < 0))[m].mean()) for m in groups.values()]
                if max(lowest, default=0.0) - min(highest, default=0.0) > limit + 1e-12:
                    yield f"the pinned rules alone predict {label} too differently by {column}"


def _ranks(constraints: Constraints, ruleset: RuleSet) -> Any:
    classes = constraints.ranked_classes(ruleset)

    def rank(output: Any) -> float | None:
        if isinstance(output, LinearOutput):
            return None
        return float(output) if classes is None else float(classes.index(output))

    return rank


def _precedes(
    space: CellSpace, boxes: list[list[Any]], lower: int, upper: int, monotone: Mapping[int, str]
) -> bool:
    """Return whether a row of one rule lies below a row of another in all monotone features.

    Variables are the features of the lower row, followed by the monotone features of the upper row.
    """
    n = len(space.features)
    second = {space.index[f]: n + k for k, f in enumerate(monotone)}
    variables = [second.get(i, i) for i in range(n)]
    clauses: list[Clause] = [outside(b, space) for i in range(lower) for b in boxes[i]]
    clauses += [outside(b, space, variables) for i in range(upper) for b in boxes[i]]
    pairs = []
    for feature, direction in monotone.items():
        i = space.index[feature]
        pairs.append((i, second[i]) if direction == "+" else (second[i], i))
    for one in boxes[lower]:
        for other in boxes[upper]:
            region = [a & b for a, b in zip(one, other, strict=True)]
            for i in second:
                region[i] = one[i] & space.cells[i].ordered
            region += [other[i] & space.cells[i].ordered for i in second]
            if RegionSearch(pairs, is_strict=False).first(region, clauses) is not None:
                return True
    return False


__all__ = [
    "Conflict",
    "InfeasibleConstraintsError",
    "check_feasible",
    "find_conflict",
]
